"Memories as resources of the REST API: what each route does, for one tenant and for two, and what it refuses."
import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx
import pytest
from serving import Running, problem, request, serving

from rlm import Memory
from rlm.service.http.tokens import TokenFile

pytestmark = pytest.mark.usefixtures("bare")
IDS = ["plain", "a/b", "/", "a/links", "restore", "%2F", "민아의 치과", "가" * 512, "?k=2#x", "..a", "a b+c", "memories:search", '"1"']


@pytest.fixture
def open_server(path: Path) -> Iterator[Running]:
    "For anyone on loopback."
    with serving(path, serve_rate=0) as running:
        yield running


@pytest.fixture
def client(open_server: Running) -> Iterator[httpx.Client]:
    with open_server.client() as made:
        yield made


@pytest.fixture(scope="module")
def refusing(bare: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    "A server with one memory, for requests that change nothing."
    with serving(tmp_path_factory.mktemp("refusing") / "memory.db", serve_rate=0) as running:
        with running.client() as made:
            create(made, "there", id="a")
        yield running


def at(id: str, more: str = "") -> str:
    "The address of a memory."
    return f"/v1/memories/{quote(id, safe='')}{more}"


def create(client: httpx.Client, text: str, **fields: Any) -> dict[str, Any]:
    answer = client.post("/v1/memories", json={"text": text, **fields})
    assert answer.status_code == 201, answer.text
    stored: dict[str, Any] = answer.json()
    return stored


# ---------------------------------------------------------------- one memory

@pytest.mark.parametrize("id", IDS, ids=lambda id: id[:12])
def test_a_memory_is_made_read_changed_deleted_and_restored_whatever_it_is_called(client: httpx.Client, id: str) -> None:
    made = client.post("/v1/memories", json={"text": "The dentist is on Main Street.", "id": id, "tags": ["b", "a"]})
    assert (made.status_code, made.headers["location"], made.headers["etag"]) == (201, at(id), '"1"')
    got = client.get(made.headers["location"])
    assert (got.status_code, got.json(), got.headers["etag"]) == (200, made.json(), '"1"') and got.json()["tags"] == ["a", "b"]
    changed = client.patch(at(id), json={"text": "The dentist has moved.", "tags": [], "category": "fact"}, headers={"If-Match": '"1"'})
    assert (changed.status_code, changed.headers["etag"], changed.json()["category"]) == (200, '"2"', "fact")
    assert "tags" not in changed.json()
    assert client.get(at(id), params={"as_of": made.json()["updated_at"]}).json()["text"] == "The dentist is on Main Street."
    assert client.delete(at(id)).json() == {"deleted": 1} and client.get(at(id)).status_code == 404
    story = client.get(at(id, "/history")).json()
    assert [v["version"] for v in story["versions"]] == [1, 2] and [e["kind"] for e in story["events"]] == ["write", "update", "delete"]
    back = client.post(at(id, "/restore"))
    assert (back.status_code, back.headers["etag"], back.json()["text"]) == (200, '"3"', "The dentist has moved.")
    assert client.get(at(id)).json() == back.json()


def test_a_fresh_id_is_given_where_none_is_sent(client: httpx.Client) -> None:
    made = client.post("/v1/memories", json={"text": "I am allergic to peanuts."})
    assert made.headers["location"] == f"/v1/memories/{made.json()['id']}" and len(made.json()["id"]) == 12
    assert made.json()["provenance"] == {"source": "rest", "caller": "guest"} and "seq" not in made.json()


def test_a_taken_id_is_a_conflict_and_the_first_stays(client: httpx.Client) -> None:
    create(client, "first", id="a")
    for place in ("/v1/memories", "/v1/write"):
        answer = client.post(place, json={"text": "second", "id": "a"})
        assert problem(answer)["status"] == 409 and "already a memory 'a'" in answer.json()["detail"]
    assert client.get(at("a")).json()["text"] == "first"
    assert client.post("/v1/conversations", json={"turns": [{"text": "x", "id": "a"}]}).status_code == 409


@pytest.mark.parametrize("tag", ['"2"', '"0"', 'W/"1"', "1", '"x"', "", '"1", "2"'])
def test_a_version_that_is_not_the_one_named_is_not_changed(client: httpx.Client, tag: str) -> None:
    create(client, "one", id="a")
    for call in (lambda: client.patch(at("a"), json={"text": "two"}, headers={"If-Match": tag}),
                 lambda: client.delete(at("a"), headers={"If-Match": tag})):
        assert problem(call())["status"] == 412
    assert client.get(at("a")).json()["text"] == "one" and len(client.get(at("a", "/history")).json()["events"]) == 1
    assert client.patch(at("a"), json={"text": "two"}, headers={"If-Match": "*"}).status_code == 200


def test_of_many_who_have_seen_one_version_one_changes_it(client: httpx.Client, open_server: Running) -> None:
    create(client, "0", id="n")

    def change(n: int) -> int:
        with open_server.client() as own:
            return own.patch(at("n"), json={"text": f"by {n}"}, headers={"If-Match": '"1"'}).status_code
    with ThreadPoolExecutor(6) as pool:
        assert sorted(pool.map(change, range(12))) == [200] + [412] * 11
    assert client.get(at("n")).headers["etag"] == '"2"'


def test_null_takes_a_value_away_and_what_is_left_out_stays(client: httpx.Client) -> None:
    create(client, "x", id="a", category="fact", title="T", valid_to="2099-01-01", extra={"page": 3})
    left = client.patch(at("a"), json={"category": None, "valid_to": None}, headers={"Content-Type": "application/merge-patch+json"}).json()
    assert not {"category", "valid_to"} & left.keys() and (left["title"], left["extra"]) == ("T", {"page": 3})
    same = client.patch(at("a"), json={"title": "T"})
    assert same.headers["etag"] == '"2"', "a change without a change made a version"


def test_what_is_erased_leaves_no_trace_and_takes_the_right(path: Path, tmp_path: Path) -> None:
    book = TokenFile(tmp_path / "tokens")
    writer, admin = book.add("default", ["write"])[0], book.add("default", ["admin"])[0]
    with serving(path, book) as running, running.client(writer) as client, running.client(admin) as boss:
        create(client, "a secret harbour", id="a")
        refused = client.delete(at("a"), params={"erase": "true"})
        assert problem(refused)["status"] == 403 and client.get(at("a")).status_code == 200
        assert boss.delete(at("a"), params={"erase": "true"}).json() == {"erased": 1}
        assert [e["kind"] for e in boss.get(at("a", "/history")).json()["events"]] == ["write", "erase"]
        assert problem(boss.post(at("a", "/restore")))["status"] == 404
        assert client.post("/v1/memories:search", json={"query": "harbour"}).json()["hits"] == []
    assert b"secret harbour" not in path.read_bytes()


# ---------------------------------------------------------------- many memories

def test_a_list_is_given_in_pages_that_hold_while_others_write(client: httpx.Client) -> None:
    for n in range(7):
        create(client, f"note {n}", tags=["odd"] if n % 2 else [], session=f"s{n % 2}")
    seen, cursor = list[str](), None
    while True:
        page = client.get("/v1/memories", params={"k": 3} | ({"cursor": cursor} if cursor else {})).json()
        seen += [m["text"] for m in page["items"]]
        create(client, f"written meanwhile, with {len(seen)} seen")
        if (cursor := page["next_cursor"]) is None:
            break
        assert cursor.isascii() and not cursor.isdigit()
    assert seen == [f"note {n}" for n in reversed(range(7))]
    assert [m["text"] for m in client.get("/v1/memories", params={"tag": "odd"}).json()["items"]] == ["note 5", "note 3", "note 1"]
    assert len(client.get("/v1/memories?tag=odd&tag=even&match=any").json()["items"]) == 3
    assert client.get("/v1/memories?status=archived&status=held").json() == {"items": [], "next_cursor": None}
    assert len(client.get("/v1/memories?session=s0&k=9").json()["items"]) == 4


def test_many_are_stored_a_line_each_or_none(client: httpx.Client, open_server: Running) -> None:
    lines = [{"text": f"note {n} 기억", "id": f"n{n}", "tags": ["bulk"]} for n in range(5)]
    body = "\n".join(json.dumps(line, ensure_ascii=False) for line in lines) + "\n\n"
    kind = {"Content-Type": "application/x-ndjson"}
    answer = client.post("/v1/memories:bulk", content=body.encode(), headers=kind)
    assert (answer.status_code, answer.headers["content-type"]) == (201, "application/x-ndjson")
    stored = [json.loads(line) for line in answer.text.splitlines()]
    assert [m["id"] for m in stored] == [f"n{n}" for n in range(5)] and stored[3] == client.get(at("n3")).json()
    before = open_server.service.pool.store().backend.position()
    for wrong, status, said in [('{"text": "x"}\n{"text": ""}', 422, "line 2"), ('{"text": "x"}\nnot json', 422, "line 2"),
                                ('{"text": "x"}\n{"text": "y", "id": "n1"}', 409, "n1"), ("", 422, "0 lines"), ("[]", 422, "line 1"),
                                ('{"text": "x", "slot": "A"}', 422, "slot"), ('{"text": "x", "tag": "y"}', 422, "line 1.tag")]:
        refused = client.post("/v1/memories:bulk", content=wrong.encode(), headers=kind)
        assert problem(refused)["status"] == status and said in refused.text, wrong
    assert open_server.service.pool.store().backend.position() == before
    assert client.post("/v1/memories:bulk", json={"text": "x"}).status_code == 415


def test_a_search_under_its_new_name_answers_as_under_the_old_one(client: httpx.Client) -> None:
    create(client, "민아는 커피보다 녹차를 좋아한다", id="tea")
    new = client.post("/v1/memories:search", json={"query": "녹차를 좋아해?", "k": 3}).json()
    old = client.post("/v1/search", json={"q": "녹차를 좋아해?", "top_k": 3}).json()
    assert new | {"search_time_ms": 0} == old | {"search_time_ms": 0} and new["hits"][0]["memory"]["id"] == "tea"
    for both in ({"q": "x", "query": "x"}, {"query": "x", "k": 1, "top_k": 2}):
        assert client.post("/v1/memories:search", json=both).status_code == 422
    past = client.post("/v1/memories:search", json={"query": "녹차", "filters": {"as_of": "2099-01-01"}}).json()
    assert (past["source"], past["hits"][0]["layer"]) == ("history", "history")


# ---------------------------------------------------------------- links, feedback, explanations, conversations

@pytest.mark.parametrize("target", ["b", "a/b", "민아의 치과"])
def test_links_are_made_weighed_listed_and_removed(client: httpx.Client, target: str) -> None:
    create(client, "one", id="a")
    create(client, "two", id=target)
    edge = {"src": "a", "dst": target, "relation": "supports", "weight": 0.5, "origin": "user"}
    made = client.post(at("a", "/links"), json={"target": target, "relation": "supports", "weight": 0.5})
    assert (made.status_code, made.json()) == (201, edge)
    place = at("a", f"/links/{quote(target, safe='')}")
    again = client.put(place, json={"relation": "supports", "weight": 1})
    assert (again.status_code, again.json()) == (200, edge | {"weight": 1.0})
    assert client.get(at(target, "/links")).json() == client.get(at("a", "/links")).json() == {"items": [edge | {"weight": 1.0}]}
    assert client.delete(place, params={"relation": "other"}).json() == {"removed": 0} and client.delete(place).json() == {"removed": 1}
    assert client.get(at("a", "/links")).json() == {"items": []}
    for call in (client.get(at("nobody", "/links")), client.put(at("a", "/links/nobody"), json={}), client.delete(at("nobody", "/links/a")),
                 client.post(at("a", "/links"), json={"target": "nobody"})):
        assert problem(call)["status"] == 404


def test_feedback_is_counted_and_a_rule_that_misleads_is_held(client: httpx.Client, open_server: Running) -> None:
    create(client, "one", id="a")
    assert client.post(at("a", "/feedback"), json={"helped": 2, "query": "which one?"}).json() == {
        "id": "a", "success": 2, "failure": 0, "access_count": 1}
    assert client.post(at("a", "/feedback"), json={}).json()["access_count"] == 2
    assert client.get(at("a")).headers["etag"] == '"1"', "a counter made a version"
    open_server.service.pool.store().rules.add_rule("tea", formal="when morning then drink = 'tea'", rule_id="r")
    client.post(at("r", "/feedback"), json={"failed": 50})
    assert client.get(at("r")).json()["status"] == "held"


def test_it_is_explained_why_a_memory_is_found_or_not(client: httpx.Client) -> None:
    create(client, "Mina drinks green tea.", id="tea", tags=["drink"])
    why = client.post(at("tea", "/explain"), json={"query": "green tea"}).json()
    assert why["rank"] == 1 and why["verdict"].startswith("Found at rank 1") and why["memory"]["id"] == "tea"
    held = client.post(at("tea", "/explain"), json={"query": "green tea", "filters": {"tags": ["food"]}}).json()
    assert "held back by tags" in held["verdict"] and held["held_back_by"] == ["tags=('food',)"]
    assert client.post(at("no", "/explain"), json={"query": "tea"}).status_code == 404


@pytest.mark.parametrize("session", ["s", "2026/05/08", "민아와 점심"])
def test_a_conversation_is_stored_whole_continued_and_read_in_order(client: httpx.Client, session: str) -> None:
    made = client.post("/v1/conversations", json={"session": session, "tags": ["chat"], "turns": [
        {"speaker": "Mina", "text": "치과는 언제 가?", "time": "2026-05-08T09:00:00Z"},
        {"role": "assistant", "content": "화요일.", "reply_to": 0}]})
    assert made.status_code == 201 and made.json()["session"] == session
    first, second = made.json()["items"]
    assert (first["turn"], first["tags"], first["valid_from"][:10], second["reply_to"]) == (0, ["chat"], "2026-05-08", first["id"])
    assert first["provenance"]["source"] == "rest"
    client.post("/v1/conversations", json={"session": session, "turns": [{"text": "고마워"}]})
    place = made.headers["location"]
    assert [m["turn"] for m in client.get(place).json()["items"]] == [0, 1, 2]
    last = client.get(place, params={"k": 2}).json()
    earlier = client.get(place, params={"k": 2, "cursor": last["next_cursor"]}).json()
    assert [m["turn"] for m in (*earlier["items"], *last["items"])] == [0, 1, 2] and earlier["next_cursor"] is None
    assert client.get("/v1/conversations/nothing").status_code == 404
    fresh = client.post("/v1/conversations", json={"turns": [{"text": "hello"}]}).json()
    assert fresh["session"] and fresh["session"] == fresh["items"][0]["session"]
    before = client.get(place).json()
    wrong = {"session": session, "turns": [{"text": "x"}, {"text": "y", "reply_to": 5}]}
    assert client.post("/v1/conversations", json=wrong).status_code == 422
    assert client.get(place).json() == before


# ---------------------------------------------------------------- once, and no more

def test_a_request_that_is_sent_twice_under_its_key_is_done_once(client: httpx.Client) -> None:
    body, key = {"text": "paid the rent"}, {"Idempotency-Key": "k-1"}
    first, again = (client.post("/v1/memories", json=body, headers=key) for _ in range(2))
    assert first.status_code == 201 and (again.status_code, again.content, again.headers["location"]) == (
        201, first.content, first.headers["location"])
    assert "idempotency-replayed" not in first.headers and again.headers["idempotency-replayed"] == "true"
    assert again.headers["x-content-type-options"] == "nosniff"
    assert len(client.get("/v1/memories").json()["items"]) == 1
    other = client.post("/v1/memories", json={"text": "paid it again"}, headers=key)
    assert problem(other)["status"] == 422 and "another request" in other.json()["detail"]
    known = client.post("/v1/memories", json=body, headers={"Idempotency-Key": "k-2"})
    assert known.status_code == 200 and known.json()["duplicate"] and known.json()["id"] == first.json()["id"]
    refused, once_more = (client.post("/v1/memories", json={"text": ""}, headers={"Idempotency-Key": "k-3"}) for _ in range(2))
    assert refused.status_code == 422 and once_more.content == refused.content
    assert client.get("/v1/memories", headers=key).status_code == 200
    for wrong in ("x" * 256, "a b", "\xe9"):
        assert client.post("/v1/memories", json=body, headers={"Idempotency-Key": wrong.encode("latin-1")}).status_code == 400  # type: ignore[dict-item]


def test_a_key_is_one_tenants_own(path: Path, tmp_path: Path) -> None:
    book = TokenFile(tmp_path / "tokens")
    secrets = [book.add("one")[0], book.add("two")[0], book.add("one")[0]]
    with serving(path, book) as running:
        answers = list[httpx.Response]()
        for secret in secrets:
            with running.client(secret, **{"Idempotency-Key": "same"}) as client:
                answers.append(client.post("/v1/memories", json={"text": f"note {len(answers)}"}))
    assert [a.status_code for a in answers] == [201] * 3 and len({a.json()["id"] for a in answers}) == 3
    assert [a.json()["namespace"] for a in answers] == ["one", "two", "one"]


def test_the_same_request_at_the_same_time_is_done_once(client: httpx.Client, open_server: Running) -> None:
    def write(_n: int) -> int:
        with open_server.client() as own:
            return own.post("/v1/memories", json={"text": "once"}, headers={"Idempotency-Key": "k"}).status_code
    with ThreadPoolExecutor(8) as pool:
        assert set(pool.map(write, range(16))) <= {201, 409}
    assert len(client.get("/v1/memories").json()["items"]) == 1


# ---------------------------------------------------------------- two tenants

def test_a_tenant_neither_reads_nor_changes_nor_learns_of_what_is_anothers(path: Path, tmp_path: Path) -> None:
    book = TokenFile(tmp_path / "tokens")
    with serving(path, book) as running, running.client(book.add("mine", ["admin"])[0]) as mine, \
            running.client(book.add("theirs", ["admin"])[0]) as theirs:
        create(theirs, "their harbour", id="a")
        create(theirs, "their other", id="b")
        theirs.post(at("a", "/links"), json={"target": "b"})
        told = theirs.get("/v1/memories", params={"k": 1}).json()
        for call in [("GET", at("a"), None), ("PATCH", at("a"), {"text": "x"}), ("DELETE", at("a"), None),
                     ("DELETE", at("a", "?erase=true"), None),
                     ("GET", at("a", "/history"), None), ("GET", at("a", "/links"), None), ("POST", at("a", "/links"), {"target": "b"}),
                     ("PUT", at("a", "/links/b"), {}), ("DELETE", at("a", "/links/b"), None), ("POST", at("a", "/feedback"), {}),
                     ("POST", at("a", "/explain"), {"query": "harbour"}), ("GET", at("a", "/neighbours"), None)]:
            method, place, body = call
            assert mine.request(method, place, **({} if body is None else {"json": body})).status_code == 404, call
        assert mine.post(at("a", "/restore")).status_code == 404
        assert mine.get("/v1/memories").json() == {"items": [], "next_cursor": None}
        assert mine.get("/v1/memories", params={"cursor": told["next_cursor"]}).status_code == 422
        assert mine.post("/v1/memories:search", json={"query": "harbour"}).json()["hits"] == []
        made = create(mine, "my harbour", id="a")
        before = {p: mine.get(p).json() for p in ("/v1/memories", at("a"), at("a", "/history"), at("a", "/links"), "/v1/timeline")}
        found = mine.post("/v1/memories:search", json={"query": "harbour"}).json()["hits"]
        for n in range(50):
            create(theirs, f"harbour {n} harbour")
        theirs.delete(at("a"), params={"erase": "true"})
        assert {p: mine.get(p).json() for p in before} == before and mine.get(at("a")).json() == made
        assert mine.post("/v1/memories:search", json={"query": "harbour"}).json()["hits"] == found
        assert theirs.get("/v1/memories", headers={"Rlm-Namespace": "mine"}).status_code == 403


# ---------------------------------------------------------------- what is refused

def test_a_mistake_is_told_in_words_that_help(refusing: Running) -> None:
    with refusing.client() as client:
        for path, body, where, what in [("memories:search", b'{"query": "x", "limit": 3}', "limit",
                                         "There is no such field. Did you mean 'k'? Known: "),
                                        ("memories:search", b"{'query': 1}", "character 1", "The body is no JSON"),
                                        ("memories", b'{"content": "x"}', "content", "Did you mean 'text'?"),
                                        ("memories", b'{"text": "x", "user_id": "al"}', "user_id", "the header Rlm-Namespace. Known: "),
                                        ("memories", b'{"txt": "x"}', "txt", "Did you mean 'text'? Known: ")]:
            told = client.post(f"/v1/{path}", content=body, headers={"Content-Type": "application/json"}).json()["errors"]
            assert any(e["where"] == where and what in e["what"] for e in told), told
        assert "k," in client.post("/v1/memories:search", json={"query": "x", "limit": 3}).json()["errors"][0]["what"]
        assert "Did you mean 'k'? Known: " in client.get("/v1/memories", params={"limit": 3}).json()["errors"][0]["what"]
        assert "/docs" in client.get("/v1/memory").json()["hint"]


WRONG: list[tuple[str, str, Any, int]] = [
    ("POST", "/v1/memories", {}, 422), ("POST", "/v1/memories", [], 422), ("POST", "/v1/memories", {"text": 5}, 422),
    ("POST", "/v1/memories", {"text": "x", "namespace": "other"}, 422), ("POST", "/v1/memories", {"text": "x", "kind": "rule"}, 422),
    ("POST", "/v1/memories", {"text": "x", "provenance": {"source": "human"}}, 422), ("POST", "/v1/memories?x=1", {"text": "x"}, 422),
    ("POST", "/v1/memories", {"text": "x", "id": "a"}, 409), ("POST", "/v1/memories", {"text": "x" * 1_000_001}, 422),
    ("PATCH", "/v1/memories/a", {}, 422), ("PATCH", "/v1/memories/a", {"text": None}, 422),
    ("PATCH", "/v1/memories/a", {"tags": None}, 422),
    ("PATCH", "/v1/memories/a", {"id": "b"}, 422), ("PATCH", "/v1/memories/a", {"version": 7}, 422), ("PATCH", "/v1/memories/a", [], 422),
    ("PATCH", "/v1/memories/a", {"status": "warm"}, 422), ("PATCH", "/v1/memories/a", {"valid_to": "1999-01-01"}, 422),
    ("PATCH", "/v1/memories/a", {"extra": {"x": "y" * 70_000}}, 422), ("PATCH", "/v1/memories/no", {"text": "x"}, 404),
    ("PATCH", "/v1/memories/a", {"provenance": {}}, 422), ("PATCH", "/v1/memories", {"text": "x"}, 405), ("PUT", "/v1/memories/a", {}, 405),
    ("DELETE", "/v1/memories/no", None, 404), ("DELETE", "/v1/memories/a?erase=perhaps", None, 422),
    ("DELETE", "/v1/memories/a?force=1", None, 422),
    ("DELETE", "/v1/memories", None, 405), ("POST", "/v1/memories/a/restore", None, 422),
    ("POST", "/v1/memories/no/restore", None, 404),
    ("GET", "/v1/memories?k=0", None, 422), ("GET", "/v1/memories?k=1001", None, 422), ("GET", "/v1/memories?cursor=7", None, 422),
    ("GET", "/v1/memories?kind=dream", None, 422), ("GET", "/v1/memories?sesion=x", None, 422),
    ("GET", "/v1/memories?match=some", None, 422),
    ("GET", "/v1/memories?since=soon", None, 422), ("GET", "/v1/memories/a?as_of=soon", None, 422),
    ("GET", "/v1/memories/a/history?k=1", None, 422),
    ("POST", "/v1/memories/a/links", {"target": "a", "weight": 2}, 422), ("POST", "/v1/memories/a/links", {"target": "a"}, 422),
    ("POST", "/v1/memories/a/links", {"target": "a\nb"}, 404), ("PUT", "/v1/memories/a/links/a%2Fb", {}, 404),
    ("POST", "/v1/memories/a/feedback", {"helped": -1}, 422), ("POST", "/v1/memories/a/feedback", {"helped": "1"}, 422),
    ("POST", "/v1/memories/a/explain", {}, 422), ("POST", "/v1/memories/a/explain", {"query": "x", "k": 1}, 422),
    ("POST", "/v1/conversations", {"turns": []}, 422), ("POST", "/v1/conversations", {"turns": ["x"]}, 422),
    ("POST", "/v1/conversations", {"turns": [{"text": "x", "session": "y"}]}, 422),
    ("POST", "/v1/conversations", {"turns": [{"text": "x", "content": "y"}]}, 422), ("GET", "/v1/conversations", None, 405)]


@pytest.mark.parametrize(("method", "place", "body", "status"), WRONG, ids=[f"{m} {p[:44]} {json.dumps(b)[:44]}" for m, p, b, _ in WRONG])
def test_what_is_wrong_is_refused_plainly(refusing: Running, method: str, place: str, body: Any, status: int) -> None:
    before = refusing.service.pool.store().backend.position()
    with refusing.client() as client:
        answer = client.request(method, place, **({} if body is None else {"json": body}))
    assert answer.status_code == status, answer.text
    said = json.dumps(problem(answer))
    assert "Traceback" not in said and ".py" not in said and "memory.db" not in said
    assert refusing.service.pool.store().backend.position() == before


@pytest.mark.parametrize("place", ["/v1/memories", "/v1/memories:search", "/v1/conversations", "/v1/memories/a/links",
                                   "/v1/memories/a/feedback"])
@pytest.mark.parametrize("body", [b"{", b"\xff\xfe", b"[" * 100_000, b'{"text": ' + b"9" * 5000 + b"}", b'{"text": "\\ud800"}', b"null",
                                  b"5"], ids=lambda b: repr(b[:12]))
def test_a_body_that_is_no_json_is_refused_everywhere(refusing: Running, place: str, body: bytes) -> None:
    status, answer = refusing.raw(request("POST", place, body))
    assert status in (400, 422) and b"application/problem+json" in answer and b"Traceback" not in answer


def test_a_body_that_is_too_large_is_refused_before_it_is_read(path: Path) -> None:
    with serving(path, serve_max_body=1000) as running, running.client() as client:
        for place, kind in (("/v1/memories", "application/json"), ("/v1/memories:bulk", "application/x-ndjson")):
            answer = client.post(place, content=b'{"text": "' + b"x" * 2000 + b'"}', headers={"Content-Type": kind})
            assert problem(answer)["status"] == 413
        assert client.get("/v1/memories").json()["items"] == []


@pytest.mark.parametrize("place", ["/v1/memories", "/v1/memories/a", "/v1/memories/a/history", "/v1/anchors", "/health", "/docs",
                                   "/openapi.json", "/", "/v1/memories/nobody"])
def test_head_is_answered_as_get_is_without_the_body(refusing: Running, place: str) -> None:
    with refusing.client() as client:
        got, head = client.get(place), client.head(place)
    assert head.status_code == got.status_code and head.content == b"" and got.content
    assert {k: v for k, v in head.headers.items() if k != "date"} == {k: v for k, v in got.headers.items() if k != "date"}


def test_writes_of_the_api_are_what_memory_reads(client: httpx.Client, path: Path) -> None:
    create(client, "Mina drinks green tea.", id="tea")
    client.patch(at("tea"), json={"text": "Mina drinks black tea."})
    with Memory(path) as memory:
        assert memory.get("tea").text == "Mina drinks black tea."
        assert memory.history("tea").as_dict() == client.get(at("tea", "/history")).json()
        assert memory.explain("tea", "tea").as_dict() == client.post(at("tea", "/explain"), json={"query": "tea"}).json()


# ---------------------------------------------------------------- the page, and the log

def test_the_page_of_the_contract_needs_no_other_host(client: httpx.Client) -> None:
    page = client.get("/docs")
    assert page.status_code == 200 and "script" not in page.text.lower().replace("description", "") and "http://" not in page.text
    assert "script-src" not in page.headers["content-security-policy"] and "style-src 'sha256-" in page.headers["content-security-policy"]
    contract = client.get("/openapi.json").json()
    for place, methods in contract["paths"].items():
        for operation in methods.values():
            assert f"id='{operation['operationId']}'" in page.text and place in page.text


def test_every_property_of_the_contract_is_described_with_an_example(client: httpx.Client) -> None:
    contract = client.get("/openapi.json").json()
    for name, schema in contract["components"]["schemas"].items():
        assert schema["description"], name
        for field, told in schema["properties"].items():
            assert told.get("description") and told.get("examples"), f"{name}.{field}"
    ids = [o["operationId"] for methods in contract["paths"].values() for o in methods.values()]
    assert len(ids) == len(set(ids)) and all(o["tags"] for m in contract["paths"].values() for o in m.values())


def test_the_access_log_has_a_line_for_each_request_and_no_text(path: Path, tmp_path: Path) -> None:
    target, book = tmp_path / "access.jsonl", TokenFile(tmp_path / "tokens")
    secret, token = book.add("team")
    with serving(path, book, access_log=str(target)) as running, running.client(secret) as client:
        assert target.stat().st_mode & 0o777 == 0o600
        create(client, "a secret harbour", id="mina's id")
        client.get(at("mina's id"), params={"as_of": "2099-01-01"})
        client.head("/v1/timeline?speaker=Mina")
        with running.client("wrong") as other:
            other.get("/v1/timeline")
        client.get("/v1/timeline", headers={"Rlm-Namespace": "mine"})
    lines = [json.loads(line) for line in target.read_text().splitlines()]
    assert [(x["method"], x["route"], x["status"], x.get("token")) for x in lines] == [
        ("POST", "/v1/memories", 201, token.id), ("GET", "/v1/memories/{id}", 200, token.id), ("HEAD", "/v1/timeline", 200, token.id),
        ("GET", "/v1/timeline", 401, None), ("GET", "/v1/timeline", 403, token.id)]
    assert [x.get("namespace") for x in lines] == ["team", "team", "team", None, "mine"], "what was asked for, also where it is refused"
    assert all(x["ms"] > 0 and x["address"] == "127.0.0.1" and x["at"] for x in lines)
    assert not any(word in target.read_text() for word in ("harbour", "mina", "Mina", secret))
