import type {
  Audit, ContextBlock, ConversationPage, Erased, Filters, Memory, MemoryChanges, MemoryFields, MemoryPage, Moment, PassedOver, Problem, RecallResults,
  Rejection, Review, RulesAnswer, SearchResults, Stats, Turn,
} from "./types.js";

export type * from "./types.js";

/** Method and path of each verb. */
export declare const ROUTES: Record<string, [method: string, path: string]>;

/** What the server refused or could not do. `status` is 0 where it was not reached. */
export declare class MemoryError extends Error {
  readonly status: number;
  readonly hint: string;
  readonly problem?: Problem;
}

export interface Options {
  /** A token of `rlm tokens add`. It is not sent over plain HTTP to another machine. */
  token?: string;
  /** The partition; without one, the token's first. */
  namespace?: string;
  timeoutMs?: number;
  /** Send the token over plain HTTP to another machine. */
  insecure?: boolean;
  /** Another `fetch`. */
  fetch?: typeof globalThis.fetch;
}

export interface SearchOptions extends Filters {
  k?: number;
  slot?: "A" | "B" | "C" | "auto";
  radius?: number;
  fallback?: boolean;
  minScore?: number;
}

export interface ContextOptions {
  tokens?: number;
  /** A conversation whose turns the prompt holds already: they are left out. */
  apartFrom?: string;
  /** Relevance that a memory must have, 0 to 1, where it is known. */
  least?: number;
  /** What is known of the situation, for the rules. */
  facts?: Record<string, boolean | number | string | null>;
}

export interface Link {
  src: string;
  dst: string;
  relation: string;
  weight: number;
}

/** A namespace behind `rlm serve`. What can't be done rejects with a `MemoryError`; the constructor and `namespace` throw it. */
export declare class RemoteMemory {
  constructor(url: string | URL, options?: Options);
  readonly url: string;
  namespace(name: string): RemoteMemory;
  write(text: string, fields?: Omit<MemoryFields, "text">): Promise<Memory>;
  /** All or none; 5,000 at most. */
  writeMany(items: Array<string | MemoryFields>): Promise<Memory[]>;
  /** `history`: the turns are what a program holds of the conversation, trimmed or edited. `refused`: what a person has rejected, left out. */
  addConversation(turns: Array<string | Turn>, options?: { session?: string; tags?: string[]; history?: boolean }):
    Promise<Memory[] & { refused: Array<{ turn: number; reason: string }> }>;
  /** The last turns of a conversation, and a cursor for those before. */
  conversation(session: string, options?: { k?: number; cursor?: string }): Promise<ConversationPage>;
  /** What is worth keeping of a conversation is noted, as candidates that wait for a person; for the rest the answer says why not. */
  remember(turns: Array<string | Turn>, options?: { useModel?: boolean }):
    Promise<{ proposed: Memory[]; passedOver: PassedOver[]; model: string | null }>;
  get(id: string, options?: { asOf?: string | Date }): Promise<Memory>;
  list(options?: Filters & { k?: number; cursor?: string }): Promise<MemoryPage>;
  search(query: string, options?: SearchOptions): Promise<SearchResults>;
  /** A search of working memory, and of the rest where that is not enough. It moves attention, and needs the right to write. */
  recall(query: string, options?: Filters & { k?: number }): Promise<RecallResults>;
  /** A block for a prompt within a budget of tokens. */
  context(query: string, options?: ContextOptions): Promise<ContextBlock>;
  update(id: string, changes: MemoryChanges, options?: { ifVersion?: number }): Promise<Memory>;
  /** The number of memories taken out of the present, or out of the file. */
  delete(id: string, options?: { erase?: boolean; restart?: boolean; ifVersion?: number }): Promise<number>;
  restore(id: string): Promise<Memory>;
  history(id: string): Promise<Record<string, unknown>>;
  explain(query: string, id: string, filters?: Filters): Promise<Record<string, unknown>>;
  link(src: string, dst: string, options?: { relation?: string; weight?: number }): Promise<void>;
  unlink(src: string, dst: string, options?: { relation?: string }): Promise<number>;
  links(id: string): Promise<Link[]>;
  feedback(id: string, options?: { helped?: number; failed?: number; used?: number; query?: string }): Promise<void>;
  /** What the rules of a person say in a situation; `resolve`: conflicts are decided. */
  applyRules(facts: Record<string, unknown>, options?: { tags?: string[]; match?: "all" | "any"; resolve?: boolean }): Promise<RulesAnswer>;
  /** What waits for a person, and what was rejected. */
  review(): Promise<Review>;
  /** A person confirms a memory, in other words if they say so. */
  accept(id: string, options?: { text?: string }): Promise<Memory>;
  /** A person rejects a memory: it is deleted, and not remembered again. */
  reject(id: string, options?: { reason?: string }): Promise<Rejection>;
  /** What was believed at a moment, and what was served by then. */
  audit(options?: { when?: string | Date; query?: string; id?: string; k?: number }): Promise<Audit>;
  /** What was said, latest first. */
  timeline(options?: { k?: number; since?: string | Date; until?: string | Date; session?: string; speaker?: string; tag?: string }): Promise<Moment[]>;
  stats(): Promise<Stats>;
  namespaces(): Promise<string[]>;
  /** A whole namespace that the token opens is erased for good. It takes the right admin; the receipt is kept nowhere else. */
  eraseNamespace(namespace: string): Promise<Erased>;
  /** What was deleted in a namespace at least so many days ago is erased. It takes the right admin. */
  purgeNamespace(namespace: string, days: number, options?: { dryRun?: boolean }): Promise<Erased>;
}
