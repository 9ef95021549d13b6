// A client of `rlm serve`, with the verbs of the Python class Memory. Needs nothing but `fetch` (node 18 or newer, browsers, Deno, Bun).

/** Method and path of each verb; tests compare them with the server's OpenAPI page. */
export const ROUTES = {
  write: ["POST", "/v1/memories"],
  writeMany: ["POST", "/v1/memories:bulk"],
  addConversation: ["POST", "/v1/conversations"],
  get: ["GET", "/v1/memories/{id}"],
  list: ["GET", "/v1/memories"],
  conversation: ["GET", "/v1/conversations/{session}"],
  remember: ["POST", "/v1/conversations:remember"],
  search: ["POST", "/v1/memories:search"],
  recall: ["POST", "/v1/recall"],
  context: ["POST", "/v1/context"],
  update: ["PATCH", "/v1/memories/{id}"],
  delete: ["DELETE", "/v1/memories/{id}"],
  restore: ["POST", "/v1/memories/{id}/restore"],
  history: ["GET", "/v1/memories/{id}/history"],
  explain: ["POST", "/v1/memories/{id}/explain"],
  link: ["POST", "/v1/memories/{id}/links"],
  unlink: ["DELETE", "/v1/memories/{id}/links/{target}"],
  links: ["GET", "/v1/memories/{id}/links"],
  feedback: ["POST", "/v1/memories/{id}/feedback"],
  applyRules: ["POST", "/v1/rules:apply"],
  review: ["GET", "/v1/review"],
  accept: ["POST", "/v1/review/acceptances"],
  reject: ["POST", "/v1/review/rejections"],
  audit: ["GET", "/v1/audit"],
  timeline: ["GET", "/v1/timeline"],
  stats: ["GET", "/v1/stats"],
  namespaces: ["GET", "/v1/namespaces"],
  eraseNamespace: ["DELETE", "/v1/namespaces/{namespace}"],
  purgeNamespace: ["POST", "/v1/namespaces/{namespace}/purge"],
};

const LOOPBACK = new Set(["localhost", "127.0.0.1", "[::1]"]);

/** What the server refused or could not do. `status` is 0 where it was not reached. */
export class MemoryError extends Error {
  constructor(message, status, hint = "", problem = undefined) {
    super(hint ? `${message} ${hint}` : message);
    this.name = "MemoryError";
    this.status = status;
    this.hint = hint;
    this.problem = problem;
  }
}

/** A namespace behind `rlm serve`. It holds no connection open. Options that a verb does not know are sent too: the server refuses them. */
export class RemoteMemory {
  #headers;

  constructor(url, { token, namespace, timeoutMs = 30_000, insecure = false, fetch: asked = globalThis.fetch, ...other } = {}) {
    for (const name in other) throw new MemoryError(`There is no option ${name}.`, 0, "Known: token, namespace, timeoutMs, insecure, fetch.");
    const at = typeof url === "string" || url instanceof URL ? address(url) : undefined;
    if (!at) throw new MemoryError(`${url === undefined ? "Nothing" : show(url)} is not the address of a server.`, 0, "Give one such as http://localhost:8377.");
    if (typeof asked !== "function") throw new MemoryError("There is no fetch.", 0, "Use node 18 or newer, or give one: { fetch }.");
    token = token === undefined || token === null ? undefined : text("token", token).trim();
    if (token && !/^[!-~]+$/.test(token))
      throw new MemoryError("The token holds what no token of `rlm tokens add` holds.", 0, "Give one alone, as that command printed it.");
    if (token && at.protocol === "http:" && !LOOPBACK.has(at.hostname) && !insecure)
      throw new MemoryError(`The token would go to ${at.hostname} unencrypted.`, 0, "Use https, or say insecure: true.");
    this.url = String(url).replace(/\/+$/, "");
    this.timeoutMs = timeoutMs;
    this.insecure = insecure;
    this.fetch = asked;
    this.#headers = { Accept: "application/json", ...(token && { Authorization: `Bearer ${token}` }), ...(namespace && inside(namespace)) };
  }

  /** The memory of another namespace that the token opens. */
  namespace(name) {
    const other = new RemoteMemory(this.url, { timeoutMs: this.timeoutMs, insecure: this.insecure, fetch: this.fetch });
    other.#headers = { ...this.#headers, ...inside(name) };
    return other;
  }

  write(text, fields = {}) {
    return this.#ask("write", { body: { text, ...fields } });
  }

  async writeMany(items) {
    if (!list("memories", items).length) return [];
    const lines = items.map((item) => JSON.stringify(typeof item === "string" ? { text: item } : item)).join("\n");
    const answer = await this.#send("writeMany", { raw: lines, headers: { "Content-Type": "application/x-ndjson" } });
    return answer.split("\n").filter(Boolean).map((line) => JSON.parse(line));
  }

  async addConversation(turns, { session, tags = [], ...other } = {}) {
    const given = list("turns", turns).map((turn) => (typeof turn === "string" ? { text: turn } : turn));
    const { items, refused = [] } = await this.#ask("addConversation", { body: { turns: given, tags, ...(session && { session }), ...other } });
    return Object.assign(items, { refused });
  }

  /** The last turns of a conversation, and a cursor for those before. */
  conversation(session, { k = 100, cursor, ...other } = {}) {
    return this.#ask("conversation", { at: { session }, query: { k, cursor, ...other } });
  }

  /** What is worth keeping of a conversation is noted, as candidates; for the rest the answer says why not. */
  async remember(turns, { useModel = false, ...other } = {}) {
    const given = list("turns", turns).map((turn) => (typeof turn === "string" ? { text: turn } : turn));
    const { proposed, passed_over: passedOver, model } = await this.#ask("remember", { body: { turns: given, use_model: useModel, ...other } });
    return { proposed, passedOver, model };
  }

  get(id, { asOf, ...other } = {}) {
    return this.#ask("get", { at: { id }, query: { as_of: asOf, ...other } });
  }

  list({ k = 10, cursor, tags, ...filters } = {}) {
    return this.#ask("list", { query: { k, cursor, tag: tags, ...filters } });
  }

  search(query, { k, slot, radius, fallback, minScore, ...filters } = {}) {
    return this.#ask("search", { body: { query, k, slot, radius, fallback, min_score: minScore, filters } });
  }

  /** A search of working memory, and of the rest where that is not enough. It moves attention. */
  recall(query, { k, ...filters } = {}) {
    return this.#ask("recall", { body: { query, k, filters } });
  }

  context(query, { tokens = 1024, apartFrom, ...other } = {}) {
    return this.#ask("context", { body: { query, tokens, apart_from: apartFrom, ...other } });
  }

  update(id, changes, { ifVersion, ...other } = {}) {
    return this.#ask("update", { at: { id }, body: changes, query: other, headers: match(ifVersion) });
  }

  async delete(id, { erase = false, ifVersion, ...other } = {}) {
    const answer = await this.#ask("delete", { at: { id }, query: { erase: erase || undefined, ...other }, headers: match(ifVersion) });
    return erase ? answer.erased : answer.deleted;
  }

  restore(id) {
    return this.#ask("restore", { at: { id } });
  }

  history(id) {
    return this.#ask("history", { at: { id } });
  }

  explain(query, id, filters = {}) {
    return this.#ask("explain", { at: { id }, body: { query, filters } });
  }

  async link(src, dst, { relation = "related", weight = 1, ...other } = {}) {
    await this.#ask("link", { at: { id: src }, body: { target: dst, relation, weight, ...other } });
  }

  async unlink(src, dst, { relation, ...other } = {}) {
    return (await this.#ask("unlink", { at: { id: src, target: dst }, query: { relation, ...other } })).removed;
  }

  async links(id) {
    return (await this.#ask("links", { at: { id } })).items;
  }

  async feedback(id, { helped = 0, failed = 0, used = 1, query, ...other } = {}) {
    await this.#ask("feedback", { at: { id }, body: { helped, failed, used, query, ...other } });
  }

  /** What the rules of a person say in a situation. */
  applyRules(facts, options = {}) {
    return this.#ask("applyRules", { body: { facts, ...options } });
  }

  /** What waits for a person, and what was rejected. */
  review() {
    return this.#ask("review");
  }

  /** A person confirms a memory, in other words if they say so. */
  accept(id, { text, ...other } = {}) {
    return this.#ask("accept", { body: { id, ...(text && { text }), ...other } });
  }

  /** A person rejects a memory: it is deleted, and not remembered again. */
  reject(id, { reason, ...other } = {}) {
    return this.#ask("reject", { body: { id, ...(reason && { reason }), ...other } });
  }

  /** What was believed at a moment, and what was served by then. */
  audit(options = {}) {
    return this.#ask("audit", { query: options });
  }

  /** What was said, latest first. */
  async timeline({ k = 100, ...narrowed } = {}) {
    return (await this.#ask("timeline", { query: { k, ...narrowed } })).moments;
  }

  stats() {
    return this.#ask("stats");
  }

  async namespaces() {
    return (await this.#ask("namespaces")).namespaces;
  }

  /** A whole namespace that the token opens is erased for good. It takes the right admin; the receipt is kept nowhere else. */
  eraseNamespace(namespace) {
    return this.#ask("eraseNamespace", { at: { namespace } });
  }

  purgeNamespace(namespace, days, { dryRun = false, ...other } = {}) {
    return this.#ask("purgeNamespace", { at: { namespace }, body: { days, dry_run: dryRun, ...other } });
  }

  async #ask(verb, { body, headers = {}, ...more } = {}) {
    const raw = body === undefined ? undefined : json(body);
    const answer = await this.#send(verb, { raw, headers: { ...(raw && { "Content-Type": "application/json" }), ...headers }, ...more });
    try {
      return JSON.parse(answer);
    } catch {
      throw new MemoryError(`${this.url} gave an answer that is no JSON.`, 0, "Is `rlm serve` running there, and no other server?");
    }
  }

  async #send(verb, { at = {}, query = {}, raw, headers = {} }) {
    const [method, place] = ROUTES[verb];
    const path = place.replace(/\{(\w+)\}/g, (_, name) => encodeURIComponent(text(name, at[name])));
    const asked = new URLSearchParams();
    for (const [name, value] of Object.entries(query))
      for (const one of [value].flat()) if (one !== undefined && one !== null) asked.append(name, one instanceof Date ? one.toISOString() : String(one));
    const where = this.url + path + (asked.size ?? String(asked).length ? `?${asked}` : "");
    let answer, said;
    try {
      answer = await this.fetch(where, {
        method, body: raw, headers: { ...this.#headers, ...headers }, redirect: "manual", signal: AbortSignal.timeout(this.timeoutMs),
      });
      said = await answer.text();
    } catch (e) {
      throw new MemoryError(`${this.url} did not answer: ${e.cause?.message ?? e.message}.`, 0, "Is `rlm serve` running there?");
    }
    if (answer.ok) return said;
    let problem;
    try {
      problem = JSON.parse(said) ?? {};
    } catch {
      problem = {}; // an answer of something between here and there
    }
    throw new MemoryError(problem.detail ?? problem.title ?? `The server answered with status ${answer.status}.`, answer.status,
      problem.hint ?? problem.errors?.map(({ where, what }) => (where ? `${where}: ${what}` : what)).join(" "), problem);
  }
}

// A header holds no Korean; the server reads percent-encoded names.
const inside = (namespace) => ({ "Rlm-Namespace": encodeURIComponent(text("namespace", namespace)) });
const match = (version) => (version === undefined ? {} : { "If-Match": `"${version}"` });

const show = (value) => (typeof value === "string" ? JSON.stringify(value) : Array.isArray(value) ? "A list" : value === null ? "null" : `A ${typeof value}`);

function address(url) {
  try {
    const at = new URL(url);
    return ["http:", "https:"].includes(at.protocol) ? at : undefined;
  } catch {
    return undefined;
  }
}

function json(body) {
  try {
    return JSON.stringify(body);
  } catch (e) {
    throw new MemoryError(`The request can't be written as JSON: ${e.message}.`, 0);
  }
}

function text(name, value) {
  if (typeof value !== "string" || !value) throw new MemoryError(`The ${name} is missing, or no text.`, 0, "Give a string.");
  if (!value.isWellFormed?.() && /[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/.test(value))
    throw new MemoryError(`The ${name} holds half a surrogate pair.`, 0);
  return value;
}

function list(what, value) {
  if (!Array.isArray(value)) throw new MemoryError(`The ${what} are no list.`, 0, "Give an array, also when there is only one.");
  return value;
}
