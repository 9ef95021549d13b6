import type { ContextBlock, Filters, Memory, MemoryChanges, MemoryFields, MemoryPage, Problem, SearchResults, Stats, Turn } from "./types.js";

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

export interface Link {
  src: string;
  dst: string;
  relation: string;
  weight: number;
}

/** A namespace behind `rlm serve`. What can't be done rejects with a `MemoryError`. */
export declare class RemoteMemory {
  constructor(url: string, options?: Options);
  readonly url: string;
  namespace(name: string): RemoteMemory;
  write(text: string, fields?: Omit<MemoryFields, "text">): Promise<Memory>;
  /** All or none; 5,000 at most. */
  writeMany(items: Array<string | MemoryFields>): Promise<Memory[]>;
  addConversation(turns: Array<string | Turn>, options?: { session?: string; tags?: string[] }): Promise<Memory[]>;
  get(id: string, options?: { asOf?: string }): Promise<Memory>;
  list(options?: Filters & { k?: number; cursor?: string }): Promise<MemoryPage>;
  search(query: string, options?: SearchOptions): Promise<SearchResults>;
  /** A block for a prompt within a budget of tokens. */
  context(query: string, options?: { tokens?: number }): Promise<ContextBlock>;
  update(id: string, changes: MemoryChanges, options?: { ifVersion?: number }): Promise<Memory>;
  /** The number of memories taken out of the present, or out of the file. */
  delete(id: string, options?: { erase?: boolean; ifVersion?: number }): Promise<number>;
  restore(id: string): Promise<Memory>;
  history(id: string): Promise<Record<string, unknown>>;
  explain(query: string, id: string, filters?: Filters): Promise<Record<string, unknown>>;
  link(src: string, dst: string, options?: { relation?: string; weight?: number }): Promise<void>;
  unlink(src: string, dst: string, options?: { relation?: string }): Promise<number>;
  links(id: string): Promise<Link[]>;
  feedback(id: string, options?: { helped?: number; failed?: number; used?: number; query?: string }): Promise<void>;
  stats(): Promise<Stats>;
  namespaces(): Promise<string[]>;
}
