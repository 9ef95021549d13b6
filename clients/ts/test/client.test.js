// Run against a server whose address is in RLM_URL, and two tokens: RLM_TOKEN may write, RLM_READER may read.
import assert from "node:assert/strict";
import test from "node:test";

import { MemoryError, RemoteMemory } from "../index.js";

const { RLM_URL: url, RLM_TOKEN: token, RLM_READER: reader } = process.env;
const memory = new RemoteMemory(url, { token });

test("a memory is written, found, changed, deleted and restored", async () => {
  const made = await memory.write("치과 예약은 화요일이야", { id: "민아/치과", tags: ["health"], valid_from: "2026-05-08T09:00:00Z" });
  assert.equal(made.version, 1);
  await memory.write("The car is blue.");
  const found = await memory.search("치과는 언제?", { k: 1, tags: ["health"] });
  assert.equal(found.hits[0].memory.text, "치과 예약은 화요일이야");
  assert.deepEqual((await memory.get(made.id)).tags, ["health"]);
  assert.equal((await memory.update(made.id, { text: "치과 예약은 수요일이야" }, { ifVersion: 1 })).version, 2);
  await assert.rejects(memory.update(made.id, { text: "목요일" }, { ifVersion: 1 }), (e) => e instanceof MemoryError && e.status === 412);
  assert.match((await memory.context("치과")).context, /수요일/);
  assert.equal(await memory.delete(made.id), 1);
  await assert.rejects(memory.get(made.id), { status: 404 });
  assert.equal((await memory.restore(made.id)).text, "치과 예약은 수요일이야");
  assert.ok((await memory.history(made.id)).versions.length >= 2);
  await memory.feedback(made.id, { helped: 1 });
  assert.equal((await memory.get(made.id)).success, 1);
  assert.ok((await memory.explain("치과", made.id)).verdict);
});

test("many, conversations, links, pages and figures", async () => {
  const [one, two] = await memory.writeMany(["first line", { text: "둘", tags: ["list"] }]);
  assert.deepEqual(await memory.writeMany([]), []);
  const turns = await memory.addConversation(["The harbour was lovely.", { text: "좋았어?", role: "assistant" }], { session: "june", tags: ["trip"] });
  assert.deepEqual(turns.map((t) => [t.session, t.tags]), [["june", ["trip"]], ["june", ["trip"]]]);
  await memory.link(one.id, two.id, { relation: "supports", weight: 0.5 });
  assert.ok((await memory.links(two.id)).some((l) => l.relation === "supports" && l.weight === 0.5));
  assert.equal(await memory.unlink(one.id, two.id, { relation: "supports" }), 1);
  const page = await memory.list({ k: 2 });
  assert.equal(page.items.length, 2);
  assert.equal((await memory.list({ k: 2, cursor: page.next_cursor })).items.length, 2);
  assert.equal((await memory.list({ tags: ["trip", "list"], match: "any" })).items.length, 3);
  assert.ok((await memory.stats()).memories >= 4);
  assert.deepEqual(await memory.namespaces(), ["default", "서윤", "가".repeat(60)]);
  const old = await memory.write("예전 일", { valid_from: new Date("2001-02-03T04:05:06Z") });
  assert.deepEqual((await memory.list({ until: new Date("2001-02-04") })).items.map((m) => m.id), [old.id]);
});

test("a namespace may have a Korean name, also a long one", async () => {
  await memory.namespace("서윤").write("보일러는 박유나가 고친다.");
  const hers = new RemoteMemory(url, { token: token + "\n", namespace: "서윤" }); // as a file of a token is read
  assert.deepEqual((await hers.list()).items.map((m) => m.namespace), ["서윤"]);
  assert.deepEqual((await hers.namespace("가".repeat(60)).list()).items, []);
  assert.equal((await memory.purgeNamespace("서윤", 0, { dryRun: true })).erased, 0);
  assert.deepEqual([(await memory.eraseNamespace("서윤")).erased, (await hers.list()).items.length], [1, 0]);
  await assert.rejects(memory.eraseNamespace("joon"), (e) => e.status === 403);
});

test("an option that a verb does not know is refused, with the one that was meant", async () => {
  for (const [call, named] of [
    [() => memory.addConversation(["x"], { sessionId: "w9" }), /sessionId.*'session'/], [() => memory.context("x", { maxTokens: 60 }), /'tokens'/],
    [() => memory.list({ limit: 1 }), /'k'/], [() => memory.search("x", { limit: 1 }), /number of results is k/],
    [() => memory.write("x", { metadata: 1 }), /'extra'/], [() => memory.remember(["x"], { model: true }), /model/],
    [() => memory.recall("x", { limit: 1 }), /k/], [() => memory.get("x", { as_off: "2026" }), /'as_of'/],
    [() => memory.update("x", { text: "y" }, { version: 1 }), /version/], [() => memory.delete("x", { purge: true }), /purge/],
    [() => memory.conversation("x", { limit: 1 }), /'k'/], [() => memory.link("x", "y", { kind: "z" }), /kind/],
    [() => memory.unlink("x", "y", { kind: "z" }), /kind/], [() => memory.feedback("x", { success: 1 }), /success/],
    [() => memory.accept("x", { words: "y" }), /words/], [() => memory.reject("x", { why: "y" }), /why/],
    [() => memory.audit({ at: "2026" }), /at/], [() => memory.timeline({ limit: 1 }), /'k'/],
    [() => memory.applyRules({ dark: true }, { tag: "x" }), /'tags'/], [() => memory.explain("x", "y", { limit: 1 }), /limit/],
  ])
    await assert.rejects(call(), (e) => e.status === 422 && named.test(e.message), String(call));
  assert.throws(() => new RemoteMemory(url, { timeout: 5 }), /no option timeout/);
});

test("what a conversation tells is noted, confirmed or rejected by a person, and told later", async () => {
  const noted = await memory.remember(["My sister Soyeon lives in Jeju.", { role: "assistant", content: "I live nowhere.", created_at: "2026-05-08T09:00:00Z" }, { text: "안녕!" }]);
  assert.deepEqual(noted.proposed.map((m) => m.text), ["My sister Soyeon lives in Jeju."]);
  assert.ok(noted.passedOver.length >= 1 && noted.passedOver.every((p) => p.reason));
  assert.equal((await memory.review()).waiting.length, 1);
  assert.equal((await memory.accept(noted.proposed[0].id)).text, "My sister Soyeon lives in Jeju.");
  const wrong = await memory.write("I own a yacht.");
  assert.equal((await memory.reject(wrong.id, { reason: "없어요" })).reason, "없어요");
  assert.equal((await memory.review()).rejections.length, 1);
  await memory.search("Where does Soyeon live?");
  const told = await memory.audit({ query: "Soyeon" });
  assert.ok(told.recalls.some((r) => r.query === "Where does Soyeon live?"));
  assert.match((await memory.recall("Soyeon", { k: 1 })).results[0].memory.text, /Jeju/);
  assert.deepEqual((await memory.applyRules({ dark: true })).fired, []);
  await memory.addConversation(["하나", "둘"], { session: "later" });
  assert.deepEqual((await memory.conversation("later")).items.map((m) => m.text), ["하나", "둘"]);
  assert.equal((await memory.timeline({ session: "later" })).length, 2);
});

test("a slip is a MemoryError with a sentence, whatever it is", async () => {
  const circle = {};
  circle.self = circle;
  for (const [call, named] of [
    [() => memory.remember("hello"), /turns are no list/], [() => memory.addConversation("hello"), /turns are no list/],
    [() => memory.writeMany("hello"), /memories are no list/], [() => memory.get(), /id is missing/], [() => memory.delete(7), /id is missing/],
    [() => memory.conversation(), /session is missing/], [() => memory.write("x", { extra: circle }), /can't be written as JSON/],
    [() => memory.get("a\ud800"), /half a surrogate/], [() => memory.search(), /./], [() => memory.write(), /./],
    [async () => new RemoteMemory(), /Nothing is not the address/], [async () => new RemoteMemory("localhost"), /not the address/],
    [async () => new RemoteMemory(7), /not the address/], [async () => new RemoteMemory(url, { token: 7 }), /token/],
    [async () => memory.namespace(), /namespace is missing/], [async () => new RemoteMemory(url, { fetch: 1 }), /no fetch/],
    [() => new RemoteMemory(url, { fetch: async () => new Response("<html>") }).list(), /no JSON/],
  ])
    await assert.rejects(call(), (e) => e instanceof MemoryError && named.test(e.message), String(call));
  assert.equal(new RemoteMemory(new URL(url), { token }).url, url);
});

test("what can't be done is said", async () => {
  await assert.rejects(memory.write(" "), (e) => e.status === 422 && e.message.length > 10);
  await assert.rejects(memory.search("a", { colour: "blue" }), { status: 422 });
  await assert.rejects(new RemoteMemory(url).list(), { status: 401 });
  await assert.rejects(new RemoteMemory(url, { token: reader }).write("x"), { status: 403 });
  await assert.rejects(memory.namespace("other").list(), { status: 403 });
  await assert.rejects(new RemoteMemory("http://127.0.0.1:9", { timeoutMs: 5000 }).list(), (e) => e.status === 0 && /did not answer/.test(e.message));
  assert.throws(() => new RemoteMemory(url, { token: "열쇠" }), /tokens add/);
  assert.throws(() => new RemoteMemory("http://memory.example", { token: "secret" }), /unencrypted/);
  assert.throws(() => new RemoteMemory("ftp://memory.example"), /not the address/);
});
