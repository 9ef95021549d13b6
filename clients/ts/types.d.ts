// Made from the server's OpenAPI page by tools/ts_client.py; not edited by hand.

/** A memory. Fields without a value are left out. */
export interface Memory {
  /** Its id, unique in its namespace. */
  id: string;
  /** The partition it belongs to. */
  namespace: string;
  /** block: something said or known; rule: what to do when; strategy: how a task was solved. */
  kind: "block" | "rule" | "strategy";
  /** The words, exactly as they were given, credentials taken out. */
  text: string;
  /** A short title. */
  title?: string;
  /** One or two sentences. */
  summary?: string;
  /** Of a rule: its condition and outcome. */
  formal?: string;
  /** The caller's own word. */
  category?: string;
  /** Of a strategy: what it was learned from. */
  source_type?: string;
  /** hot: new; ltm: promoted; held: not applied until a person decides; archived: kept, and not found. */
  status: "hot" | "ltm" | "held" | "archived";
  /** Whether it is never forgotten. */
  pinned: boolean;
  /** Whether it is never changed. */
  immutable: boolean;
  /** 1, 2, 3 …: the entity tag (`ETag`) of the memory, without its quotes. */
  version: number;
  /** How often it helped. */
  success: number;
  /** How often it misled. */
  failure: number;
  /** How often it was used. */
  access_count: number;
  /** How far it is trusted, in [0, 1]. */
  confidence?: number;
  /** When its first version was recorded. */
  created_at: string;
  /** When this version was recorded. */
  updated_at: string;
  /** The last use that was reported. */
  last_used_at?: string;
  /** Since when it is archived. */
  archived_at?: string;
  /** From when it is true in the world, or when it was said. */
  valid_from: string;
  /** Until when it is true. */
  valid_to?: string;
  /** The conversation it belongs to. */
  session?: string;
  /** Its place there, from 0. */
  turn?: number;
  /** Who said it, by name. */
  speaker?: string;
  /** In which role. */
  role?: string;
  /** The id of the memory it answers. */
  reply_to?: string;
  /** Tags, sorted. */
  tags?: Array<string>;
  /** Of a strategy: where it applies. */
  scope?: Record<string, unknown>;
  /** Where it came from: the door, the token's public name, what the guard marked. */
  provenance?: Record<string, unknown>;
  /** What else the caller keeps with it. */
  extra?: Record<string, unknown>;
  /** Of one memory by its id, where it has links: those linked with it, strongest first. */
  links?: Record<string, unknown>;
  /** Kinds of secrets that were cut out before it was stored; not there if there were none. */
  redacted?: Array<string>;
  /** Of the answer to a write: true, these words were known already, and nothing was stored. */
  duplicate?: boolean;
  /** Of the answer to a write: ids of the memories that it has ended. */
  superseded?: Array<string>;
}

/** A memory that was found, and why. */
export interface Hit {
  /** Its place; 1 is best. */
  rank: number;
  /** The sum of its parts. */
  score: number;
  /** The probability that it answers the question; null: not known. */
  relevance?: number | null;
  /** What is no longer true of the memory, with what holds now, or the later memory that may have taken its place; without it, nothing. */
  past?: string;
  /** Ids of older memories that were written singly with the same text, newest first; without it, none. */
  duplicates?: Array<string>;
  /** Why it stands above hits of a higher score; without it, its score placed it. */
  placed_by?: string;
  /** Column, cue or similarity, and its share of the score. */
  parts: Record<string, number>;
  /** Word of the question, and its share of the score. */
  terms: Record<string, number>;
  /** Word of the question, or cue in brackets, and its share of the score by column. */
  shares: Record<string, Record<string, number>>;
  /** The sentences that hold most of what was asked: text, and start and end of it in the memory's text. */
  passage: Record<string, unknown>;
  /** What found it: index, history, cache, working memory, checkpoint, anchor A …. */
  layer?: string;
  /** Links walked to it; without it, it was not walked to. */
  hops?: number | null;
  /** Ids on that way, from the anchor to this one. */
  path?: Array<string>;
  /** The memory, whole. */
  memory: Memory;
}

/** What a search found, best first. */
export interface SearchResults {
  /** The question, as it was asked. */
  query: string;
  /** Where it was asked. */
  namespace: string;
  /** What answered: the index; the history, of the past (`as_of`); full text, while a large index is being built; building: nothing, since only what is near was wanted meanwhile. */
  source: "index" | "full text" | "history" | "building";
  /** What a learned ranker was trained on; empty for the usual mix. */
  ranked_by: string;
  /** Hits, best first. */
  hits: Array<Hit>;
  /** Milliseconds in the store, without the way here and back. */
  search_time_ms: number;
  /** How many memories have no vector yet, and were looked for by words alone; without it, none. */
  waiting?: number;
}

/** A page of memories, and where the next one begins. */
export interface MemoryPage {
  /** Memories, newest first. */
  items: Array<Memory>;
  /** The argument `cursor` of the next page; null: this is the last. */
  next_cursor: string | null;
}

/** A block of memories for a prompt. */
export interface ContextBlock {
  /** The block: dated, attributed lines between tags that say it is data; empty: nothing is known. */
  context: string;
  /** What it costs, by the estimate. */
  tokens: number;
  /** Ids of the memories in it, in order. */
  memories: Array<string>;
  /** How each of them stands there: 0 whole, 1 its summary, 2 its facts. */
  resolutions: Array<number>;
  /** Ids of memories that belong to it and had no room. */
  left_out: Array<string>;
  /** Ids of the rules that apply and stand before the memories. */
  rules: Array<string>;
}

/** How much a namespace holds. */
export interface Stats {
  /** The partition. */
  namespace: string;
  /** Memories in it, archived ones too. */
  memories: number;
  /** How many of each kind. */
  by_kind: Record<string, number>;
  /** How many of each status. */
  by_status: Record<string, number>;
  /** How many of each category. */
  by_category: Record<string, number>;
  /** Superseded and deleted versions that are kept. */
  versions: number;
  /** Lines of the diary. */
  events: number;
  /** Links between its memories. */
  edges: number;
  /** Memories that have no vector yet; without it, none has one. */
  without_vector?: number;
  /** Strategies that runs taught, by the ontology they are for. */
  learned_strategies?: Record<string, number>;
  /** When the oldest was recorded. */
  first?: string;
  /** When the latest was changed. */
  last?: string;
}

/** A memory to be stored. */
export interface MemoryFields {
  /** The words, kept exactly. */
  text: string;
  /** Link it near this anchor, which moves to it. */
  slot?: "A" | "B" | "C" | "auto" | null;
  /** With a slot: how it is linked. */
  policy?: Record<string, unknown> | null;
  /** With a slot: a conversation that has anchors of its own; without it, those of the namespace. */
  context?: string | null;
  /** An id of your own; without it, a fresh one is made. */
  id?: string | null;
  /** Tags, for filters. */
  tags?: Array<string>;
  /** A word of your own: fact, preference, experience …. */
  category?: string | null;
  /** A short title. */
  title?: string | null;
  /** One or two sentences, for when space is short. */
  summary?: string | null;
  /** The conversation it belongs to. */
  session?: string | null;
  /** Who said it. */
  speaker?: string | null;
  /** In which role: user, assistant, system, developer, tool or function. */
  role?: string | null;
  /** The id of the memory it answers. */
  reply_to?: string | null;
  /** When it was said or became true; without it, now. */
  valid_from?: string | Date | null;
  /** When it stops being true. */
  valid_to?: string | Date | null;
  /** Never forgotten. */
  pinned?: boolean;
  /** Whatever else the caller keeps with it: a JSON object of at most 65,536 characters. */
  extra?: Record<string, unknown>;
}

/** What is to change about a memory. What is left out stays; null takes a value away (RFC 7396). */
export interface MemoryChanges {
  /** The new words. */
  text?: string;
  /** Of a rule: its condition and outcome. */
  formal?: string | null;
  /** All tags from now on. */
  tags?: Array<string>;
  /** Another category. */
  category?: string | null;
  /** Another title. */
  title?: string | null;
  /** Another summary. */
  summary?: string | null;
  /** Who said it. */
  speaker?: string | null;
  /** In which role. */
  role?: string | null;
  /** hot, ltm, held or archived. */
  status?: "hot" | "ltm" | "held" | "archived";
  /** When it was said or became true. */
  valid_from?: string | Date;
  /** When it stops being true. */
  valid_to?: string | Date | null;
  /** Never forgotten. */
  pinned?: boolean;
  /** All of `extra` from now on: it is replaced as a whole. */
  extra?: Record<string, unknown>;
}

/** Which memories count. What is left out does not restrict. */
export interface Filters {
  /** Only memories with these tags. */
  tags?: Array<string>;
  /** Must all of `tags` be there, or is one enough?. */
  match?: "all" | "any";
  /** Only of this category. */
  category?: string | null;
  /** Only of this kind: block, rule or strategy. */
  kind?: string | null;
  /** Only of this status, or one of several; any: all. Usual: hot, ltm. */
  status?: string | Array<string> | null;
  /** Only from this conversation. */
  session?: string | null;
  /** Only said by this speaker. */
  speaker?: string | null;
  /** Only said in this role. */
  role?: string | null;
  /** Only what was said, or became true, from this time on. */
  since?: string | Date | null;
  /** Only what was said, or became true, before this time. */
  until?: string | Date | null;
  /** Only what was true at this time, by what is known now. */
  valid_at?: string | Date | null;
  /** What the store knew at this time, right or wrong, also superseded or deleted. */
  as_of?: string | Date | null;
}

/** A turn of a conversation, or a message as chat APIs have it, of which one without words is passed over. */
export interface Turn {
  /** The words; parts that hold them; or null, where nothing is said. */
  text?: string | Array<Record<string, unknown>> | null;
  /** Who said it, by name. */
  speaker?: string | null;
  /** In which role: user, assistant, system, developer, tool or function. */
  role?: string | null;
  /** When it was said; also seconds since 1970. */
  valid_from?: string | Date | number | null;
  /** Tools that the assistant calls. */
  tool_calls?: Array<Record<string, unknown>> | null;
  /** The call that a tool answers. */
  tool_call_id?: string | null;
  /** The call of a function, in earlier APIs. */
  function_call?: Record<string, unknown> | null;
  /** An id of your own; without it, a fresh one is made. */
  id?: string | null;
  /** The turn it answers: its place in this list, from 0, or its id. */
  reply_to?: number | string | null;
  /** Tags, for filters. */
  tags?: Array<string>;
  /** Whatever else the caller keeps with it: a JSON object of at most 65,536 characters. */
  extra?: Record<string, unknown>;
  /** Another name of text. */
  content?: string | Array<Record<string, unknown>> | null;
  /** Another name of speaker. */
  name?: string | null;
  /** Another name of valid_from. */
  time?: string | Date | number | null;
  /** Another name of valid_from. */
  created_at?: string | Date | number | null;
}

/** What came to mind, best first, and which layer knew it. */
export interface RecallResults {
  /** The question, as it was asked. */
  query: string;
  /** Where it was asked. */
  namespace: string;
  /** The layer that answered; ltm_fallback: a search of everything; history: of the past; full text: while a large index is being built. */
  source: "working_memory" | "cache" | "checkpoint" | "ltm_fallback" | "history" | "full text";
  /** What a learned ranker was trained on; empty for the usual mix. */
  ranked_by: string;
  /** Hits, best first. */
  results: Array<Hit>;
  /** How many. */
  result_count: number;
  /** Milliseconds in the layers, without the model's; null for the past, and while a large index is being built. */
  search_time_ms: number | null;
  /** How many memories have no vector yet, and were looked for by words alone; without it, none. */
  waiting?: number;
}

/** The last turns of a conversation, or those before. */
export interface ConversationPage {
  /** The conversation. */
  session: string;
  /** Its turns, in order. */
  items: Array<Memory>;
  /** The argument `cursor` for the turns before these; null: there are none. */
  next_cursor: string | null;
}

/** What rules say in a situation. With `resolve` or `record`: whether they agree, what is decided, and what is to be done. */
export interface RulesAnswer {
  /** The situation. */
  facts: Record<string, unknown>;
  /** The rules that fire: id, version, words, what they say, effects and claims. */
  fired: Array<Record<string, unknown>>;
  /** Fact that rules read as another type, so that it is unknown to them → Bool, Int, Real or String. */
  mistyped?: Record<string, string>;
  /** Whether there is no conflict. */
  agreed?: boolean;
  /** What is set in the end. */
  outcomes?: Record<string, unknown>;
  /** What the rules that are followed claim of what is not set. */
  bounds?: Array<string>;
  /** Of each conflict: the rules, the stage that decided, winners, losers, and why. */
  rulings?: Array<Record<string, unknown>>;
}

/** What waits for a person, and what was rejected. */
export interface Review {
  /** What waits, oldest first. */
  proposals: Array<Record<string, unknown>>;
  /** Memories that wait to be accepted or rejected, oldest first, at most 100. */
  waiting: Array<Record<string, unknown>>;
  /** What was rejected, oldest first. */
  rejections: Array<Rejection>;
}

/** A rejection: who, when and why. What was rejected is kept as a keyed hash alone. */
export interface Rejection {
  /** Its id. */
  id: string;
  /** When. */
  at: string;
  /** Who rejected it. */
  actor: string;
  /** Why, in the person's words. */
  reason?: string;
  /** The memory that stated it. */
  memory?: string;
  /** What of a rejection that was just made may be a slip. */
  note?: string;
}

/** What the store held at a moment, and what it had served by then. */
export interface Audit {
  /** The moment. */
  when: string;
  /** Memories as they were then. */
  believed: Array<Memory>;
  /** Answers up to then, the newest first. */
  recalls: Array<Record<string, unknown>>;
  /** Versions and events of the memory that was named, up to then; null: none was named. */
  history: Record<string, unknown> | null;
  /** Id of one of the memories → what of it was no longer true by then. */
  past: Record<string, string>;
}

/** A memory on the time line. */
export interface Moment {
  /** The memory. */
  id: string;
  /** From when it is true, or when it was said. */
  at: string;
  /** The beginning of its text. */
  text: string;
  /** block, rule or strategy. */
  kind: "block" | "rule" | "strategy";
  /** Tags, sorted. */
  tags: Array<string>;
  /** The conversation it belongs to. */
  session?: string | null;
  /** Who said it, by name or role. */
  speaker?: string | null;
}

/** Something that was said and not noted. */
export interface PassedOver {
  /** How it begins; empty: it is not to be shown, or the reason is about the whole. */
  words: string;
  /** Why it was not noted. */
  reason: string;
}

/** The receipt of an erasure, which is kept nowhere else. */
export interface Erased {
  /** Memories, deleted ones included; of a dry run, those that would be erased. */
  erased: number;
  /** The partition they were in. */
  namespace: string;
  /** Recorded time. */
  at: string;
  /** The token that erased. */
  actor: string;
  /** Their ids. */
  ids: Array<string>;
  /** Files beside the store that may still hold their text. */
  copies: Array<string>;
}

/** An error, as RFC 9457 has it. */
export interface Problem {
  /** What kind of error it is. */
  title: string;
  /** The status code of HTTP. */
  status: number;
  /** What was wrong with this request. */
  detail?: string;
  /** What to do about it. */
  hint?: string;
  /** Field by field: where it is, and what is wrong with it. */
  errors?: Array<Record<string, string>>;
}
