"The REST server over real sockets: what it does, whom it lets in, and what it keeps to itself."
import errno
import json
import os
import re
import socket
import sqlite3
import subprocess
import sys
import threading
import time
import unicodedata
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx
import pytest
from serving import Running, problem, request, serving

from rlm import Memory
from rlm.core.errors import RlmError, StoreBusy, StoreCorrupt, StoreError, StoreFull, StoreMoved, StoreReadOnly
from rlm.recall.anchoring import BEAM
from rlm.search.embedding.worker import EmbeddingWorker
from rlm.service.http.routing import Service
from rlm.service.http.tokens import TokenFile, TokenUses
from rlm.service.writer import MemoryWriter

pytestmark = pytest.mark.usefixtures("bare")


@pytest.fixture
def book(tmp_path: Path) -> TokenFile:
    return TokenFile(tmp_path / "tokens")


@pytest.fixture
def open_server(path: Path) -> Iterator[Running]:
    "For anyone on loopback."
    with serving(path) as running:
        yield running


@pytest.fixture
def client(open_server: Running) -> Iterator[httpx.Client]:
    with open_server.client() as made:
        yield made


def write(client: httpx.Client, text: str, **fields: Any) -> dict[str, Any]:
    answer = client.post("/v1/write", json={"text": text, **fields})
    assert answer.status_code == 201, answer.text
    stored: dict[str, Any] = answer.json()
    return stored


# ---------------------------------------------------------------- what it does

def test_what_was_written_is_found_with_its_reasons(client: httpx.Client, path: Path) -> None:
    stored = write(client, "민아는 커피보다 녹차를 좋아한다", id="tea", tags=["음료"], speaker="민아", valid_from="2026-05-08",
                   extra={"page": 3})
    write(client, "I am allergic to peanuts.", category="fact")
    found = client.post("/v1/search", json={"q": "민아는 녹차를 좋아해?", "top_k": 3}).json()
    best = found["hits"][0]
    assert (found["namespace"], found["source"], best["rank"], best["memory"]["id"]) == ("default", "index", 1, "tea")
    assert best["score"] == pytest.approx(sum(best["parts"].values())) and best["layer"] == "index" and found["search_time_ms"] > 0
    assert client.get("/v1/memories/tea").json() == stored
    with Memory(path) as memory:
        kept = memory.get("tea")
        assert (kept.tags, kept.speaker, kept.extra, dict(kept.provenance)["source"]) == (("음료",), "민아", {"page": 3}, "rest")
        assert [h.id for h in memory.search("민아는 녹차를 좋아해?", 3)] == [h["memory"]["id"] for h in found["hits"]]


def test_what_is_in_mind_answers_first_and_says_so(client: httpx.Client, path: Path) -> None:
    for n in range(4):
        write(client, f"The boat {n} is in the harbour.", id=f"boat{n}", tags=["boats"] if n else [])
    write(client, "Cats like salmon.", id="cats")
    asked = {"q": "Which boat is in the harbour?", "k": 3}
    first, again = (client.post("/v1/recall", json=asked).json() for _ in range(2))
    assert (first["source"], again["source"], again["namespace"], again["query"]) == ("ltm_fallback", "cache", "default", asked["q"])
    assert {h["layer"] for h in first["results"]} == {"index"} and {h["layer"] for h in again["results"]} == {"cache"}
    assert [h["memory"]["id"] for h in again["results"]] == [h["memory"]["id"] for h in first["results"]]
    assert all(h["score"] == pytest.approx(sum(h["parts"].values())) for h in again["results"]) and again["result_count"] == 3
    mind = client.post("/v1/recall", json={"q": "the boat in the harbour", "top_k": 3}).json()
    assert mind["source"] == "working_memory" and {h["layer"] for h in mind["results"]} == {"working memory"}
    tagged = client.post("/v1/recall", json=asked | {"k": 9, "filters": {"tags": ["boats"]}}).json()
    assert {h["memory"]["id"] for h in tagged["results"]} == {"boat1", "boat2", "boat3"}
    past = client.post("/v1/recall", json=asked | {"filters": {"as_of": "2020-01-01"}}).json()
    assert (past["results"], past["source"], past["search_time_ms"]) == ([], "history", None) and again["search_time_ms"] > 0
    write(client, "The boat 9 has left the harbour.", id="boat9")
    assert "boat9" in {h["memory"]["id"] for h in client.post("/v1/recall", json=asked | {"k": 9}).json()["results"]}
    figures = client.get("/metrics").text
    assert 'rlm_search_seconds_count{layer="cache"} 1.0' in figures and 'layer="working memory"} 1.0' in figures
    with Memory(path) as memory:
        assert memory.recall(asked["q"], 3)[0].id.startswith("boat")


def test_filters_do_what_they_do_everywhere(client: httpx.Client) -> None:
    for n in range(4):
        write(client, f"note {n}", tags=["even" if n % 2 == 0 else "odd"], session=f"s{n // 2}", valid_from=f"2026-01-0{n + 1}")
    def ids(**filters: Any) -> set[str]:
        return {h["memory"]["text"] for h in client.post("/v1/search", json={"q": "note", "k": 9, "filters": filters}).json()["hits"]}
    assert ids(tags=["even"]) == {"note 0", "note 2"} and ids(tags=["even", "odd"],
                                                              match="any") == ids() and ids(tags=["even", "odd"]) == set()
    assert ids(session="s1", since="2026-01-04") == {"note 3"} and ids(kind="rule") == set() and ids(status="any") == ids()


def test_the_neighbourhood_of_a_memory(client: httpx.Client, open_server: Running) -> None:
    for n in range(6):
        write(client, f"memory {n}", id=f"m{n}")
    memory = open_server.service.pool.store()
    for a, b, weight in [("m0", "m1", .9), ("m0", "m2", .5), ("m2", "m3", .7), ("m3", "m4", .6), ("m4", "m0", .1)]:
        memory.link(a, b, "similar", weight)
    def around(radius: int, limit: int = 60) -> dict[str, Any]:
        found: dict[str, Any] = client.get("/v1/memories/m0/neighbours", params={"radius": radius, "limit": limit}).json()
        return found
    assert {n["id"]: n["hops"] for n in around(0)["nodes"]} == {"m0": 0}
    assert {n["id"]: n["hops"] for n in around(1)["nodes"]} == {"m0": 0, "m1": 1, "m2": 1, "m4": 1}
    assert {n["id"]: n["hops"] for n in around(2)["nodes"]} == {"m0": 0, "m1": 1, "m2": 1, "m4": 1, "m3": 2}
    assert len(around(2)["links"]) == 5 and not around(2)["cut"]
    assert [n["id"] for n in around(1, limit=2)["nodes"]] == ["m0", "m1"] and around(1, limit=2)["cut"]
    assert client.get("/v1/memories/nobody/neighbours").status_code == 404


@pytest.mark.parametrize("id", ["a/b", "/", "a//b/", "a/neighbours", "neighbours", "%2F", "a%2Fb", "?k=2#x", "..a", "a b+c", "../etc",
                                "가" * 512, "𝄞" * 512, "민아"], ids=lambda id: id[:12])
def test_whatever_a_memory_is_called_it_is_read_back(client: httpx.Client, id: str) -> None:
    write(client, "another", id="b" if id == "a/b" else "a")
    stored = write(client, "its text", id=id)
    place = f"/v1/memories/{quote(id, safe='')}"
    assert client.get(place).json() == stored
    around = client.get(f"{place}/neighbours", params={"radius": 3, "limit": 120}).json()
    assert (around["center"], [n["id"] for n in around["nodes"]]) == (id, [id])
    spelt = quote(unicodedata.normalize("NFD", id), safe="")
    assert len(spelt) > 8000 or client.get(f"/v1/memories/{spelt}/neighbours", params={"radius": 3, "limit": 120}).json() == around


@pytest.mark.seed("004 rest")
def test_an_anchor_is_set_pinned_asked_and_written_near(client: httpx.Client, open_server: Running) -> None:
    for n, text in enumerate(["The boat is in the harbour.", "The harbour has a blue restaurant.", "Cats like salmon."]):
        write(client, text, id=f"m{n}")
    memory = open_server.service.pool.store()
    memory.link("m0", "m1", "similar", 0.8)
    free = client.get("/v1/anchors").json()["slots"]
    assert [(a["slot"], a["anchor_block_id"], a["pinned"]) for a in free] == [(s, None, False) for s in "ABC"]
    held = client.patch("/v1/anchors/B", json={"anchor_block_id": "m0", "pinned": True, "hop_budget": 3}).json()["slots"][1]
    assert (held["anchor_block_id"], held["pinned"], held["hop_budget"], held["summary"]) == ("m0", True, 3,
                                                                                              "The boat is in the harbour.")
    near = client.post("/v1/search", json={"q": "blue restaurant harbour", "slot": "B", "radius": 1}).json()["hits"]
    assert [(h["layer"], h["hops"], h["path"]) for h in near if h["memory"]["id"] == "m1"] == [("anchor B", 1, ["m0", "m1"])]
    new = write(client, "The blue boat belongs to the restaurant.", slot="B", policy={"link_k": 2, "min_w": 0})
    around = client.get(f"/v1/memories/{new['id']}/neighbours").json()
    assert {n["id"] for n in around["nodes"]} >= {"m0", new["id"]} and any("write" in link["origin"] for link in around["links"])
    assert client.get("/v1/anchors").json()["slots"][1]["anchor_block_id"] == "m0", "a pinned anchor moved"
    changed = client.patch("/v1/anchors/B", json={"pinned": False}).json()["slots"][1]
    assert (changed["anchor_block_id"], changed["pinned"], changed["hop_budget"]) == ("m0", False, 3)
    nearer = client.patch("/v1/anchors/B", json={"hop_budget": 1}).json()["slots"][1]
    assert nearer == changed | {"hop_budget": 1}, "another hop budget changed something else"
    with Memory(memory.backend.db.path) as other:
        assert other.anchors.state()[1].id == "m0"


@pytest.mark.seed("004 contexts")
def test_a_conversation_has_anchors_of_its_own(client: httpx.Client) -> None:
    for n, text in enumerate(["The boat is in the harbour.", "The harbour has a blue restaurant.", "고양이는 연어를 좋아한다."]):
        write(client, text, id=f"m{n}")
    place = "/v1/anchors/A?context=chat-7"
    own = client.patch(place, json={"anchor_block_id": "m0", "pinned": True}).json()
    assert own == client.get("/v1/anchors?context=chat-7").json() and own["slots"][0]["anchor_block_id"] == "m0"
    assert [a["anchor_block_id"] for a in client.get("/v1/anchors").json()["slots"]] == [None] * 3, "an anchor of the namespace moved"
    near = write(client, "The boat needs new sails.", slot="A", context="chat-7", policy={"link_k": 1, "min_w": 0}, id="sails")
    assert {n["id"] for n in client.get(f"/v1/memories/{near['id']}/neighbours").json()["nodes"]} >= {"sails", "m0"}
    asked = {"query": "new sails boat", "slot": "A", "radius": 1, "context": "chat-7"}
    assert "anchor A" in {h["layer"] for h in client.post("/v1/memories:search", json=asked).json()["hits"]}
    other = client.post("/v1/memories:search", json=asked | {"context": "chat-8"}).json()["hits"]
    assert other and not any(h["path"] for h in other), "the anchor of another conversation was used"
    assert problem(client.post("/v1/memories:search", json={"query": "sails", "context": "chat-7"}))["status"] == 422
    assert problem(client.get("/v1/anchors?contxt=chat-7"))["status"] == 422
    assert client.get("/v1/anchors?context=chat-8").json()["slots"][0]["pinned"] is False


@pytest.mark.parametrize(("error", "status", "words"), [
    (StoreMoved, 503, "another instance"), (StoreBusy, 503, "Another process is writing"), (StoreFull, 507, "Make room"),
    (StoreReadOnly, 403, "can only be read")])
def test_a_store_that_can_not_take_a_write_is_said_with_a_remedy(client: httpx.Client, monkeypatch: pytest.MonkeyPatch, path: Path,
                                                                 error: type[StoreError], status: int, words: str) -> None:
    def fail(*args: Any, **fields: Any) -> None:
        raise error(f"{path} is elsewhere.", f"See {path}.")
    monkeypatch.setattr(MemoryWriter, "insert", fail)
    answer = client.post("/v1/memories", json={"text": "a memory"})
    said = problem(answer)
    assert said["status"] == status and words in f"{said['detail']} {said['hint']}" and str(path) not in answer.text
    assert ("retry-after" in answer.headers) == (status == 503) and len(said["hint"].split()) > 3


def test_a_lock_that_another_process_holds_is_waited_for_then_told(path: Path) -> None:
    with serving(path, busy_timeout_s=0.2) as running, running.client() as client:
        write(client, "a memory")
        with sqlite3.connect(path, isolation_level=None) as other:
            other.execute("BEGIN IMMEDIATE")
            answer = client.post("/v1/memories", json={"text": "another memory"})
            assert problem(answer)["status"] == 503 and answer.headers["retry-after"] == "1" and "again" in answer.json()["hint"]
            assert client.post("/v1/memories:search", json={"query": "memory"}).json()["hits"], "a search waits for the writer"
            other.execute("ROLLBACK")
        assert client.post("/v1/memories", json={"text": "another memory"}).status_code == 201
    other.close()


@pytest.mark.parametrize(("slot", "body", "status"), [
    ("D", {"pinned": True}, 422), ("A", {}, 422), ("A", {"pinned": None}, 422), ("A", {"pinned": True}, 422),
    ("A", {"hop_budget": 2}, 422),
    ("A", {"anchor_block_id": "nobody"}, 404), ("A", {"anchor_block_id": "m", "hop_budget": 4}, 422), ("A", {"pined": True}, 422),
    ("A", {"anchor_block_id": "m", "pinned": "yes"}, 422), ("a", {"anchor_block_id": "m"}, 422)])
def test_an_anchor_that_can_not_be_changed_stays(client: httpx.Client, slot: str, body: dict[str, Any], status: int) -> None:
    write(client, "a memory", id="m")
    before = client.get("/v1/anchors").json()
    answer = client.patch(f"/v1/anchors/{slot}", json=body)
    assert problem(answer)["status"] == status and client.get("/v1/anchors").json() == before


@pytest.mark.seed("004 rest")
def test_a_change_of_an_anchor_is_whole_or_not_at_all(client: httpx.Client, open_server: Running,
                                                      monkeypatch: pytest.MonkeyPatch) -> None:
    write(client, "a memory", id="m")
    memory = open_server.service.pool.store()
    monkeypatch.setattr(memory.anchors, "pin", lambda slot: 1 / 0)
    assert client.patch("/v1/anchors/A", json={"anchor_block_id": "m", "pinned": True}).status_code == 500
    assert client.get("/v1/anchors").json()["slots"][0]["anchor_block_id"] is None


def test_the_time_line_has_the_latest_first(client: httpx.Client) -> None:
    for n in (2, 1, 3):
        write(client, f"day {n}", valid_from=f"2026-01-0{n}", session="s")
    line = client.get("/v1/timeline").json()
    assert [m["text"] for m in line["moments"]] == ["day 3", "day 2", "day 1"] and not line["more"]
    assert client.get("/v1/timeline", params={"k": 2}).json()["more"]
    assert [m["text"] for m in client.get("/v1/timeline",
                                          params={"since": "2026-01-02", "until": "2026-01-03"}).json()["moments"]] == ["day 2"]
    assert client.get("/v1/timeline", params={"session": "other"}).json()["moments"] == []


def test_the_contract_is_typed_and_names_its_errors(client: httpx.Client) -> None:
    page = client.get("/openapi.json").json()
    kinds = {"/metrics": client.get("/metrics").headers["content-type"], "/v1/memories:bulk": "application/x-ndjson",
             "/v1/agent/runs": "text/event-stream"}
    for path, routes in page["paths"].items():
        for route in routes.values():
            good = next(answer for status, answer in route["responses"].items() if status.startswith("2"))
            assert kinds.get(path, "application/json") in good["content"], path
            assert {"403", "408", "413", "414", "421", "500", "503"} <= route["responses"].keys(), path
            if path.startswith("/v1"):
                assert {"401", "403", "422", "429"} <= route["responses"].keys() and route["security"] == [{"HTTPBearer": []}]
    routes = {route["operationId"]: path for path, methods in page["paths"].items() for route in methods.values()}
    links = [(link, answer) for path in page["paths"].values() for route in path.values() for answer in route["responses"].values()
             for link in answer.get("links", {}).values()]
    assert len(links) > 80 and all(f"{{{name}}}" in routes[link["operationId"]] for link, _ in links for name in link["parameters"])
    text = json.dumps(page)
    assert all(f'"{ref}"' in text for ref in ("SearchOut", "RecallOut", "ProblemOut", "HitOut")) and "HTTPValidationError" not in text


def test_health_tells_whether_the_store_answers(client: httpx.Client, open_server: Running) -> None:
    assert client.get("/health").json() == {"live": True, "ready": True}
    open_server.service.pool.store().close()
    answer = client.get("/health")
    assert (answer.status_code, answer.json()) == (503, {"live": True, "ready": False, "problem": "The store does not answer."})
    assert client.get("/health/live").json() == {"live": True}


def test_health_and_figures_answer_while_the_store_keeps_all_others_waiting(path: Path, monkeypatch: pytest.MonkeyPatch,
                                                                            caplog: pytest.LogCaptureFixture) -> None:
    released, asked = threading.Event(), list[int]()

    def silent(*_args: Any, **_more: Any) -> int:
        asked.append(1)
        assert released.wait(300)
        return 3
    with serving(path) as running, running.client() as client:
        running.service.readiness.wait_s, store = 0.2, running.service.pool.store()
        for part, name in ((store.backend, "position"), (store.backend.edge_table, "count"), (store, "stats")):
            monkeypatch.setattr(part, name, silent)
        monkeypatch.setattr(EmbeddingWorker, "waiting", property(silent))
        with ThreadPoolExecutor(60) as others:
            try:
                waiting = [others.submit(client.get, "/v1/stats") for _ in range(60)]
                for _ in range(3):
                    answer = client.get("/health")
                    assert (answer.status_code, answer.json()["problem"]) == (503, "The store does not answer.")
                assert "\nrlm_ready 0.0\n" in client.get("/metrics").text and client.get("/health/live").status_code == 200
                assert not any(w.done() for w in waiting) and caplog.text.count("Not ready: The store does not answer.") == 1
            finally:
                released.set()
        assert len([1 for _ in range(600) if client.get("/health").status_code == 200 or time.sleep(.05)]) and "Ready again" in caplog.text
        assert "\nrlm_ready 1.0\n" in client.get("/metrics").text


def test_health_names_what_keeps_the_store_from_being_written(path: Path, monkeypatch: pytest.MonkeyPatch,
                                                              caplog: pytest.LogCaptureFixture) -> None:
    def refuse(error: RlmError) -> str:
        def raising() -> None:
            raise error
        monkeypatch.setattr(store.backend.db, "check_writable", raising)
        answer = client.get("/health")
        assert answer.status_code == 503 and not answer.json()["ready"] and str(path) not in answer.text
        return str(answer.json()["problem"])
    with serving(path) as running, running.client() as client:
        store = running.service.pool.store()
        assert refuse(StoreFull(f"There is no room for {path}.")) == "There is no room left for the store."
        assert refuse(StoreReadOnly(f"{path} can't be written to.")) == "The store can only be read."
        assert refuse(StoreCorrupt(f"{path} is damaged.")) == "The store is damaged."
        assert str(path) in caplog.text, "the log says more"
        monkeypatch.undo()
        assert client.get("/health").json() == {"live": True, "ready": True}
    with serving(path, more={"read_only": True}) as running, running.client() as client:
        assert client.get("/health").json() == {"live": True, "ready": True}, "nobody wants to write"


def test_a_request_that_is_refused_is_counted_and_logged_under_its_route(path: Path, book: TokenFile, tmp_path: Path) -> None:
    token, log = book.add("default", ["admin"])[0], tmp_path / "access.log"
    with serving(path, book, serve_max_body=1000, access_log=str(log)) as running, running.client(token) as client, \
            running.client() as stranger:
        assert stranger.get("/v1/memories/a%2Fb/links/c").status_code == stranger.delete("/v1/memories/x").status_code == 401
        assert stranger.post("/mcp", json={}).status_code == 401 and stranger.get("/v1/nowhere").status_code == 401
        assert client.post("/v1/write", json={"text": "x" * 2000}).status_code == 413
        assert client.post("/v1/memories:bulk", content=b"x").status_code == 415
        assert client.get("/v1/timeline", headers={"Rlm-Namespace": "theirs"}).status_code == 403
        assert client.get("/v1/timeline", headers={"Origin": "http://evil.example"}).status_code == 403
        assert client.put("/v1/memories/x", json={}).status_code == 405
        for _ in range(2):
            assert client.post("/v1/write", json={"text": "a kite"}, headers={"Idempotency-Key": "k"}).status_code == 201
        text = client.get("/metrics").text
    refused = {("GET", "/v1/memories/{id}/links/{target}", 401), ("DELETE", "/v1/memories/{id}", 401), ("POST", "/mcp", 401),
               ("GET", "other", 401), ("POST", "/v1/write", 413), ("POST", "/v1/memories:bulk", 415), ("GET", "/v1/timeline", 403),
               ("PUT", "/v1/memories/{id}", 405), ("POST", "/v1/write", 201)}
    counted = set(re.findall(r'rlm_http_requests_total{method="(\w+)",route="([^"]+)",status="(\d+)"}', text))
    assert {(method, route, int(status)) for method, route, status in counted} == refused
    assert 'method="POST",route="/v1/write",status="201"} 2.0' in text, "an answer that is given again"
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    assert refused <= {(line["method"], line["route"], line["status"]) for line in lines}


def test_health_reads_the_store_once_a_second_at_most(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with serving(path, more={"ready_age_s": 60.0}) as running, running.client() as client:
        store, reads = running.service.pool.store(), list[int]()
        position = store.backend.position
        monkeypatch.setattr(store.backend, "position", lambda: (reads.append(1), position())[1])
        assert [client.get("/health").json()["ready"] for _ in range(20)] == [True] * 20 and reads == [1]
        assert [client.get("/health/live").status_code for _ in range(3)] == [200] * 3 and reads == [1]


@pytest.mark.parametrize("trouble", ["sqlite", "system"])
def test_a_lack_of_open_files_is_said_to_pass(client: httpx.Client, open_server: Running, trouble: str, tmp_path: Path,
                                              monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    def failing(*_args: Any, **_more: Any) -> Any:
        if trouble == "system":
            raise OSError(errno.EMFILE, "Too many open files")
        sqlite3.connect(tmp_path / "no folder" / "m.db")
    store = open_server.service.pool.store()
    monkeypatch.setattr(store.backend, "position", failing)
    monkeypatch.setattr(store, "search", failing)
    answer = client.post("/v1/search", json={"q": "x"})
    assert (answer.status_code, answer.headers["retry-after"]) == (503, "1") and "open file" in problem(answer)["detail"]
    deadline = time.monotonic() + 60
    while "open" not in caplog.text and time.monotonic() < deadline:  # it is written when the answer has been sent
        time.sleep(0.01)
    assert "open" in caplog.text
    assert client.get("/health").json() == {"live": True, "ready": False, "problem": "The server has no room for one open file more."}
    monkeypatch.undo()
    assert client.post("/v1/search", json={"q": "x"}).status_code == 200 and client.get("/health").json()["ready"]


def test_what_went_wrong_inside_is_in_the_log(client: httpx.Client, open_server: Running, monkeypatch: pytest.MonkeyPatch,
                                              caplog: pytest.LogCaptureFixture) -> None:
    def failing(*_args: Any, **_more: Any) -> Any:
        raise StoreCorrupt("The store '/home/user/m.db' is damaged.", "Restore a backup.")
    monkeypatch.setattr(open_server.service.pool.store(), "search", failing)
    answer = client.post("/v1/search", json={"q": "x"})
    assert answer.status_code == 500 and "m.db" not in answer.text and "m.db" in caplog.text
    caplog.clear()
    assert client.post("/v1/write", json={"text": "x", "reply_to": "nobody"}).status_code == 422 and not caplog.records


# ---------------------------------------------------------------- what it refuses

def nested(depth: int) -> dict[str, Any]:
    return {"x": nested(depth - 1)} if depth else {}


WRONG: list[tuple[str, str, Any, int]] = [
    ("POST", "/v1/search", {}, 422), ("POST", "/v1/search", {"q": ""}, 422), ("POST", "/v1/search", {"q": " "}, 422),
    ("POST", "/v1/search", {"q": 5}, 422), ("POST", "/v1/search", {"q": "x" * 10_001}, 422), ("POST", "/v1/search", [], 422),
    ("POST", "/v1/search", "x", 422), ("POST", "/v1/search", None, 415), ("POST", "/v1/search", {"q": "x", "k": 0}, 422),
    ("POST", "/v1/search", {"q": "x", "k": 10**30}, 422), ("POST", "/v1/search", {"q": "x", "k": "5"}, 422),
    ("POST", "/v1/search", {"q": "x", "k": True}, 422), ("POST", "/v1/search", {"q": "x", "k": 3, "top_k": 4}, 422),
    ("POST", "/v1/search", {"q": "x", "slot": "D"}, 422), ("POST", "/v1/search", {"q": "x", "radius": 2}, 422),
    ("POST", "/v1/search", {"q": "x", "slot": "A", "radius": 4}, 422),
    ("POST", "/v1/search", {"q": "x", "filters": {"since": "soon"}}, 422),
    ("POST", "/v1/search", {"q": "x", "filters": {"tag": "a"}}, 422),
    ("POST", "/v1/search", {"q": "x", "filters": {"kind": "dream"}}, 422),
    ("POST", "/v1/search", {"q": "x", "filters": {"status": []}}, 422), ("POST", "/v1/search", {"q": "x", "namespace": "other"}, 422),
    ("POST", "/v1/write", {"text": ""}, 422), ("POST", "/v1/write", {"text": "\x00"}, 422),
    ("POST", "/v1/write", {"text": "x", "id": "a\nb"}, 422),
    ("POST", "/v1/write", {"text": "x", "provenance": {}}, 422), ("POST", "/v1/write", {"text": "x", "kind": "strategy"}, 422),
    ("POST", "/v1/write", {"text": "x", "valid_from": "yesterday"}, 422),
    ("POST", "/v1/write", {"text": "x", "reply_to": "nobody"}, 422),
    ("POST", "/v1/write", {"text": "x", "extra": {"x": "y" * 70_000}}, 422),
    ("POST", "/v1/write", {"text": "x", "extra": {f"key {n}": [] for n in range(6000)}}, 422),
    ("POST", "/v1/write", {"text": "x", "extra": nested(40)}, 422),
    ("POST", "/v1/write", {"text": "x", "policy": {"link_k": 3}}, 422), ("POST", "/v1/write", {"text": "x", "tags": ["x"] * 101}, 422),
    ("GET", "/v1/memories/nobody", None, 404), ("GET", "/v1/memories/" + "x" * 600, None, 404),
    ("GET", "/v1/memories/" + "x" * 9000, None, 414), ("GET", "/v1/memories/a/b", None, 404),
    ("GET", "/v1/memories/a%2Fb/neighbours/", None, 404), ("GET", "/v1%2Ftimeline", None, 404),
    ("GET", "/v1/memories/x/neighbours?radius=9", None, 422), ("GET", "/v1/timeline?k=0", None, 422),
    ("GET", "/v1/timeline?since=soon", None, 422), ("GET", "/v1/timeline?tag=", None, 422), ("GET", "/v1/timeline?session=", None, 422),
    ("GET", "/v1/timeline?speaker=", None, 422), ("GET", "/v1/timeline?since=", None, 422), ("GET", "/v1/timeline?k=", None, 422),
    ("GET", "/v1/timeline?tag=%20", None, 422),
    ("GET", "/v1/search", None, 405), ("DELETE", "/v1/memories/x", None, 404), ("GET", "/v1", None, 404), ("GET", "/redoc", None, 404),
    ("GET", "/v1/search/", None, 404), ("GET", "//v1/timeline", None, 404), ("GET", "/V1/timeline", None, 404)]


@pytest.mark.parametrize(("method", "place", "body", "status"), WRONG,
                         ids=[f"{m} {p[:40]} {json.dumps(b)[:50]}" for m, p, b, _ in WRONG])
def test_what_is_wrong_is_refused_plainly(client: httpx.Client, open_server: Running, place: str, method: str, body: Any,
                                          status: int) -> None:
    before = open_server.service.pool.store().backend.position()
    answer = client.request(method, place, **({} if method == "GET" else {"json": body}))
    assert answer.status_code == status, answer.text
    said = json.dumps(problem(answer))
    assert "Traceback" not in said and ".py" not in said and "memory.db" not in said
    assert open_server.service.pool.store().backend.position() == before


@pytest.mark.parametrize("body",
                         [b"{", b'{"q": "x"', b"\xff\xfe", b"[" * 100_000, b'{"q": ' + b"9" * 5000 + b"}", b'{"q": NaN}',
                          b'{"q": "\\ud800"}',
                                  b'{"\\ud800": 1, "q": "x"}', b"null", b'{"q": "x", "q": 1}'], ids=lambda b: repr(b[:20]))
def test_malformed_bodies_are_answered_400_or_422(open_server: Running, body: bytes) -> None:
    status, answer = open_server.raw(request("POST", "/v1/search", body))
    assert status in (400, 422), answer
    assert b"application/problem+json" in answer and b"Traceback" not in answer


@pytest.mark.parametrize("place",
                         ["..", "%2e%2e", "..%2f..%2f..%2fetc%2fpasswd", "%00", "a%00b", "%ff%fe", "....//", "%252e%252e",
                          "'%20OR%201=1", "\\..\\"])
@pytest.mark.parametrize("after", ["", "/neighbours"])
def test_path_tricks_find_nothing(open_server: Running, place: str, after: str) -> None:
    status, answer = open_server.raw(request("GET", f"/v1/memories/{place}{after}"))
    assert status in (400, 404, 422), answer
    assert b"root:" not in answer and b"Traceback" not in answer


@pytest.mark.parametrize(("asked", "status", "said"), [
    ("tag=건강", 400, "건강 is %EA%B1%B4%EA%B0%95"), ("since=2026-01-31T09:00:00+09:00", 422, "%2B"),
    ("tag=%EA%B1%B4%EA%B0%95&since=2026-01-31T09:00:00%2B09:00", 200, "items"), ("since=soon", 422, "2026-01-31T09:00:00Z")])
def test_an_address_that_is_not_encoded_is_answered_with_how_it_is(open_server: Running, asked: str, status: int, said: str) -> None:
    found, answer = open_server.raw(request("GET", f"/v1/memories?{asked}".encode().decode("latin-1")))
    assert (found, said in answer.decode()) == (status, True), answer
    assert status == 200 or b"application/problem+json" in answer


@pytest.mark.parametrize(("headers", "status"), [
    ({"Host": "evil.example"}, 421), ({"Host": "127.0.0.1.evil.example:80"}, 421), ({"Host": ""}, 421), ({"Host": "localhost"}, 200),
    ({"Host": "[::1]:1"}, 200), ({"Host": "127.0.0.1", "Origin": "https://evil.example"}, 403),
    ({"Host": "localhost", "Origin": "null"}, 403),
    ({"Host": "localhost", "Origin": "http://localhost"}, 200), ({"Host": "localhost:1", "Origin": "http://localhost:2"}, 403)])
def test_a_page_from_elsewhere_gets_nothing(open_server: Running, headers: dict[str, str], status: int) -> None:
    assert open_server.raw(request("GET", "/v1/timeline", **headers))[0] == status


def test_a_form_of_another_page_can_store_nothing(client: httpx.Client) -> None:
    for kind in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", ""):
        answer = client.post("/v1/write", content=b'{"text": "x"}', headers={"Content-Type": kind})
        assert problem(answer)["status"] == 415
    preflight = client.options("/v1/write", headers={"Access-Control-Request-Method": "POST"})
    assert preflight.status_code == 405 and not [h for h in preflight.headers if h.startswith("access-control")]


def test_every_answer_carries_the_headers_that_hold_a_browser_back(client: httpx.Client) -> None:
    for path in ("/", "/health", "/v1/timeline", "/v1/memories/nobody", "/nowhere", "/metrics"):
        headers = client.get(path).headers
        assert headers["x-content-type-options"] == "nosniff" and headers["referrer-policy"] == "no-referrer"
        assert "default-src 'none'" in headers["content-security-policy"] and "frame-ancestors 'none'" in headers["content-security-policy"]
        assert "unsafe" not in headers["content-security-policy"] and headers["cache-control"] == "no-store"


def test_a_body_that_is_too_large_is_not_read(path: Path) -> None:
    with serving(path, serve_max_body=1000) as running:
        big, start = json.dumps({"text": "x" * 1000}).encode(), b'{"text": "'
        assert running.raw(request("POST", "/v1/write", big))[0] == 413
        announced = request("POST", "/v1/write", start, Content_Length="1000000000")
        assert running.raw(announced)[0] == 413
        head = request("POST", "/v1/write", Transfer_Encoding="chunked", Content_Type="application/json")
        chunked = head + b"".join(b"a\r\n" + b"x" * 10 + b"\r\n" for _ in range(200)) + b"0\r\n\r\n"
        assert running.raw(chunked)[0] == 413
        small = head + b'10\r\n{"text": "small"\r\n1\r\n}\r\n0\r\n\r\n'
        assert running.raw(small)[0] == 201


# ---------------------------------------------------------------- whom it lets in

def test_a_token_opens_its_namespace_and_no_other(path: Path, book: TokenFile) -> None:
    ours, theirs, looking = book.add("ours")[0], book.add("theirs")[0], book.add("ours", ["read"])[0]
    with serving(path, book) as running, running.client(ours) as a, running.client(theirs) as b, running.client(looking) as c:
        write(a, "The key is under the third stone.", id="secret", session="s")
        write(b, "Another thing entirely.", id="own")
        a_sees, b_sees = [], []
        for client, seen in ((a, a_sees), (b, b_sees)):
            seen += [client.post("/v1/search", json={"q": "key under the stone", "filters": {"status": "any"}}).text,
                     client.get("/v1/timeline").text,
                     client.get("/v1/memories/secret").text, client.get("/v1/memories/secret/neighbours").text,
                     client.get("/v1/timeline", params={"session": "s"}).text]
        assert all("third stone" in text for text in a_sees) and not any("third stone" in text or "ours" in text for text in b_sees)
        foreign, missing = b.get("/v1/memories/secret"), b.get("/v1/memories/secrot")
        assert (foreign.status_code, foreign.text) == (404, missing.text.replace("secrot", "secret"))
        assert b.post("/v1/write", json={"text": "x", "reply_to": "secret"}).status_code == 422
        refused = [b.get("/v1/timeline", headers={"Rlm-Namespace": name}) for name in ("ours", "nowhere")]
        assert [r.status_code for r in refused] == [403, 403] and refused[0].text == refused[1].text
        assert b.get("/v1/timeline", headers={"Rlm-Namespace": "theirs"}).status_code == 200
        assert a.patch("/v1/anchors/A", json={"anchor_block_id": "secret"}).status_code == 200
        assert b.get("/v1/anchors").json()["slots"][0]["anchor_block_id"] is None
        assert b.patch("/v1/anchors/A", json={"anchor_block_id": "secret"}).status_code == 404
        assert c.patch("/v1/anchors/A", json={"pinned": True}).status_code == 403
        assert c.post("/v1/search", json={"q": "stone", "slot": "A"}).status_code == 403
        assert c.post("/v1/recall", json={"q": "stone"}).status_code == 403
        for _ in range(2):
            assert "third stone" in a.post("/v1/recall", json={"q": "key under the stone"}).text
            assert "third stone" not in b.post("/v1/recall", json={"q": "key under the stone"}).text
        assert c.get("/v1/memories/secret").status_code == 200 and problem(c.post("/v1/write", json={"text": "x"}))["status"] == 403
        assert write(b, "mine now", id="secret")["text"] == "mine now" and "third stone" in a.get("/v1/memories/secret").text


def test_without_a_token_that_is_known_nothing_is_told(path: Path, book: TokenFile) -> None:
    good = book.add("default")[0]
    with serving(path, book) as running:
        for shown in ("", "Bearer", "Bearer ", f"Basic {good}", f"Bearer {good}x", f"Bearer {good[:-1]}", f"Token {good}",
                      "Bearer " + "x" * 5000):
            for method, place in (("GET", "/v1/timeline"), ("GET", "/metrics"), ("POST", "/v1/write"),
                                  ("GET", "/v1/memories/x"), ("GET", "/nowhere")):
                body = b'{"text": "x"}' if method == "POST" else b""
                status, answer = running.raw(request(method, place, body, **({"Authorization": shown} if shown else {})))
                assert status == 401 and b"www-authenticate: bearer" in answer.lower() and good[:8].encode() not in answer
        for place in ("/", "/health", "/openapi.json"):
            assert running.raw(request("GET", place))[0] == 200
        assert running.raw(request("GET", "/v1/timeline", Authorization=f"bearer {good}"))[0] == 200


def test_a_revoked_token_is_refused_from_the_next_request_on(path: Path, book: TokenFile) -> None:
    token, kept = book.add("default")
    with serving(path, TokenFile(book.path)) as running, running.client(token) as client:
        assert client.get("/v1/timeline").status_code == 200
        book.revoke(kept.id)
        assert client.get("/v1/timeline").status_code == 401
        again = book.add("default")[0]
        assert client.get("/v1/timeline", headers={"Authorization": f"Bearer {again}"}).status_code == 200
        book.path.write_text("nonsense\n", encoding="utf-8")
        answer = client.get("/v1/timeline", headers={"Authorization": f"Bearer {again}"})
        assert problem(answer)["status"] == 500 and str(book.path) not in answer.text
        book.path.unlink()
        assert client.get("/v1/timeline", headers={"Authorization": f"Bearer {again}"}).status_code == 401


def test_a_server_without_tokens_needs_one_once_there_is_one(path: Path, book: TokenFile) -> None:
    with serving(path, book) as running, running.client() as anyone:
        write(anyone, "before", id="before")
        token = TokenFile(book.path).add("default")[0]
        assert anyone.get("/v1/memories/before").status_code == 401 and anyone.get("/health").status_code == 200
        with running.client(token) as client:
            assert client.get("/v1/memories/before").status_code == 200


@pytest.mark.skipif(os.name != "posix", reason="this system has no such modes")
def test_a_token_file_that_others_may_read_from_now_on_shuts_all_out_and_health_says_so(path: Path, book: TokenFile) -> None:
    token, _ = book.add("ours")
    with serving(path, book, token_file=str(book.path)) as running, running.client(token) as client:
        assert client.get("/health").json() == {"live": True, "ready": True}
        book.path.chmod(0o644)
        refused = client.get("/v1/timeline")
        assert refused.status_code == 500 and "log of the server" in problem(refused)["hint"] and str(book.path) not in refused.text
        assert client.get("/health").status_code == 503
        book.path.chmod(0o600)
        assert client.get("/health").status_code == client.get("/v1/timeline").status_code == 200


def test_a_server_that_stops_keeps_when_each_token_was_last_used(path: Path, book: TokenFile) -> None:
    tokens = [book.add("ours") for _ in range(3)]
    with serving(path, book) as running:
        for token, _ in tokens:
            with running.client(token) as client:
                assert client.get("/v1/timeline").status_code == 200
    assert TokenUses(book.path).read().keys() == {made.id for _, made in tokens}


def test_a_token_of_two_namespaces_is_used_in_the_one_that_is_named(path: Path, book: TokenFile) -> None:
    token, made = book.add(["ours", "shared", "민아"])
    with serving(path, book) as running, running.client(token) as client:
        write(client, "in ours", id="x")
        shared = {"Rlm-Namespace": "shared"}
        assert client.get("/v1/memories/x", headers=shared).status_code == 404
        assert client.post("/v1/write", json={"text": "in shared", "id": "x"}, headers=shared).status_code == 201
        assert client.get("/v1/memories/x").json()["text"] == "in ours"
        assert client.get("/v1/memories/x", headers={"Rlm-Namespace": "theirs"}).status_code == 403
        for spelt in ("민아".encode(), quote("민아").encode(), quote("민아").lower().encode()):
            found = client.get("/v1/memories/x", headers={"Rlm-Namespace": spelt})
            assert found.status_code == 404, "opened, and nothing of that id is in it"
    assert TokenUses(book.path).read().keys() == {made.id}


def test_a_request_that_can_be_read_in_two_ways_is_refused(path: Path, book: TokenFile) -> None:
    token = book.add("default")[0]
    with serving(path, book) as running:
        head = request("GET", "/v1/timeline", Authorization=f"Bearer {token}")
        assert running.raw(head)[0] == 200
        assert running.raw(head.replace(b"\r\n\r\n", b"\r\nAuthorization: Bearer other\r\n\r\n"))[0] == 400
        body = request("POST", "/v1/search", b'{"q": "x"}', Authorization=f"Bearer {token}", Transfer_Encoding="chunked")
        assert running.raw(body)[0] == 400


def test_figures_need_a_right_of_their_own(path: Path, book: TokenFile) -> None:
    plain, watcher = book.add("default")[0], book.add("default", ["metrics"])[0]
    with serving(path, book, metrics_prefix="greeum") as running, running.client(plain) as client, running.client(watcher) as watch:
        write(client, "a thing", id="thing")
        client.post("/v1/search", json={"q": "thing"})
        client.patch("/v1/anchors/A", json={"anchor_block_id": "thing"})
        client.post("/v1/search", json={"q": "thing", "slot": "A"})
        write(client, "another thing", slot="A", policy={"min_w": 0})
        assert client.get("/metrics").status_code == 403 and watch.post("/v1/search", json={"q": "thing"}).status_code == 403
        text = watch.get("/metrics").text
    eight = ("anchors_switches_per_min", "local_hit_rate", "fallback_rate", "avg_hops", "beam_width", "anchor_moves_total",
             "edge_count",
             "edge_growth_rate")
    assert all(f"\n{prefix}_{name} " in text for prefix in ("rlm", "greeum") for name in eight)
    assert 'rlm_search_seconds_count{layer="index"} 1.0' in text and 'route="/v1/write",status="201"} 2.0' in text
    figures = {name: float(value) for name, value in (line.rsplit(" ", 1) for line in text.splitlines() if not line.startswith("#"))}
    assert figures["rlm_local_hit_rate"] == 1 and figures["rlm_fallback_rate"] in (0, 1) and figures["greeum_beam_width"] == BEAM
    assert figures["rlm_edge_count"] == 1 and figures["rlm_anchor_moves_total"] == 1 and figures["rlm_edge_growth_rate"] > 0
    assert 'rlm_search_seconds_count{layer="anchor A"} 1.0' in text
    assert "default" not in text and "thing" not in text and plain not in text


def test_a_token_may_call_so_often_and_others_go_on(path: Path, book: TokenFile) -> None:
    one, other = book.add("default")[0], book.add("default")[0]
    with serving(path, book, serve_rate=0.2) as running, running.client(one) as client, running.client(other) as second:
        assert second.get("/v1/timeline").status_code == 200  # the store is open now: what follows takes less time than a place is given in
        answers = [client.get("/v1/timeline") for _ in range(4)]
        assert [a.status_code for a in answers] == [200] * 2 + [429] * 2
        assert 1 <= int(answers[-1].headers["retry-after"]) <= 5 and problem(answers[-1])["title"] == "Too many requests"
        assert second.get("/v1/timeline").status_code == 200 and client.get("/health").status_code == 200


# ---------------------------------------------------------------- trouble

def test_a_busy_store_is_said_to_be_busy(path: Path) -> None:
    with serving(path, busy_timeout_s=0.1) as running, running.client() as client:
        write(client, "before", id="before")
        other = sqlite3.connect(path, isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        answer = client.post("/v1/write", json={"text": "meanwhile"})
        assert problem(answer)["status"] == 503 and answer.headers["retry-after"] == "1" and str(path) not in answer.text
        for slot in ({}, {"slot": "A"}):
            assert client.post("/v1/search", json={"q": "before", **slot}).json()["hits"][0]["memory"]["id"] == "before"
        deadline = time.monotonic() + 60  # what the search moved is stored a little later, or not
        while not (told := re.search(r"\nrlm_attention_unstored_total [1-9]", client.get("/metrics").text)) and time.monotonic() < deadline:
            time.sleep(0.05)
        assert told
        other.execute("ROLLBACK")
        other.close()
        write(client, "after")


def test_a_failure_inside_is_told_to_the_log_alone(open_server: Running, client: httpx.Client, monkeypatch: pytest.MonkeyPatch,
                                                   caplog: pytest.LogCaptureFixture) -> None:
    def fail(*_: Any, **__: Any) -> None:
        raise OSError("/etc/secret is not there")
    memory = open_server.service.pool.store()
    monkeypatch.setattr(memory, "search", fail)
    answer = client.post("/v1/search", json={"q": "x"})
    assert problem(answer) == {"title": "The server failed", "status": 500, "detail": "Its log says more."}
    deadline = time.monotonic() + 60  # the answer goes out before the log is written
    while "/etc/secret" not in caplog.text and time.monotonic() < deadline:
        time.sleep(0.01)
    assert "/etc/secret" in caplog.text
    monkeypatch.undo()
    assert client.post("/v1/search", json={"q": "x"}).status_code == 200


def test_a_store_that_can_only_be_read(path: Path) -> None:
    Memory(path).close()
    with serving(path, more={"read_only": True}) as running, running.client() as client:
        answer = client.post("/v1/write", json={"text": "x"})
        assert problem(answer)["status"] == 403 and str(path) not in answer.text
        assert client.get("/v1/timeline").status_code == 200


def taken(running: Running, *said: bytes) -> list[socket.socket]:
    "Connections that somebody opened, said that on, and leaves so."
    made = [socket.create_connection(("127.0.0.1", running.port), timeout=120) for _ in said]
    for connection, words in zip(made, said, strict=True):
        connection.sendall(words)
    return made


def rest(connection: socket.socket) -> int:
    "How many bytes come until the server drops it."
    count = 0
    with connection, suppress(ConnectionResetError):
        while part := connection.recv(65536):
            count += len(part)
    return count


def test_who_does_not_finish_a_request_shuts_nobody_out_for_long(path: Path) -> None:
    with serving(path, patience_s=3, connections=20) as running:
        with running.client() as client:
            assert client.get("/health").status_code == 200
            half = taken(running, *[b"", b"GET / HTTP/1.1\r\nHost: localhost\r\nX: "] * 12)
            assert client.get("/health").status_code == 200, "who was there lost the place"
            with running.client() as late:
                answer = late.get("/health")
                assert problem(answer)["status"] == 503 and answer.headers["retry-after"] == "1" and answer.headers["connection"] == "close"
                assert answer.headers["x-content-type-options"] == "nosniff"
        assert [rest(c) for c in half] == [0] * 24
        with running.client() as client:
            assert client.get("/health").status_code == 200


def test_answers_leave_without_waiting_for_the_caller_to_confirm_the_last_one(open_server: Running, client: httpx.Client) -> None:
    "With Nagle's algorithm each answer on a kept connection would wait for the delayed ACK of the one before: 44 ms."
    assert client.get("/health/live").status_code == 200
    assert [s.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY) for s in open_server.here.accepted()] == [1]


IDLE = """
import resource, socket, sys, time
resource.setrlimit(resource.RLIMIT_NOFILE, (256, 256))
sys.path.insert(0, {tests!r})
from pathlib import Path
from serving import serving
with serving(Path({folder!r}) / "m.db", connections={limit}) as running, running.client() as client:
    print(client.post("/v1/write", json={{"text": "kept"}}).status_code, flush=True)
    client.post("/v1/search", json={{"q": "kept"}})  # as `rlm serve` does before it takes callers: whatever is imported late is there
    running.here.limit = {limit} or running.here.limit
    print(running.port, flush=True)
    sys.stdin.readline()  # the others are connected
    begun = time.process_time()
    time.sleep(1)
    print(time.process_time() - begun < .5, flush=True)
    print(client.post("/v1/search", json={{"q": "kept"}}).json()["hits"][0]["memory"]["text"], flush=True)
    sys.stdin.readline()  # and gone
    deadline = time.monotonic() + 30
    while len(running.here.accepted()) > 1 and time.monotonic() < deadline:
        time.sleep(.05)
    with running.client() as late:
        print(late.get("/health").status_code, flush=True)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="there is no file limit")
@pytest.mark.parametrize("limit", [None, 10_000], ids=["as the files allow", "more than there are files"])
def test_idle_callers_do_not_use_up_the_files_of_the_server(tmp_path: Path, limit: int | None) -> None:
    code = IDLE.format(tests=str(Path(__file__).parents[1]), folder=str(tmp_path), limit=limit)
    pipe = subprocess.PIPE
    with subprocess.Popen([sys.executable, "-c", code], stdin=pipe, stdout=pipe, stderr=pipe, text=True) as server:
        assert server.stdin is not None and server.stdout is not None
        assert server.stdout.readline() == "201\n"
        port = int(server.stdout.readline())
        idle = [socket.create_connection(("127.0.0.1", port), timeout=120) for _ in range(300)]
        idle[-1].sendall(request("GET", "/health"))
        assert b"503" in idle[-1].recv(65536).splitlines()[0], "who comes too late is told so"
        server.stdin.write("\n")
        server.stdin.flush()
        quiet, found = server.stdout.readline().strip(), server.stdout.readline().strip()
        for caller in idle:
            caller.close()
        out, err = server.communicate("\n", timeout=60)
    assert (quiet, found, out) == ("True", "kept", "200\n"), err
    assert len(err) < 2000 and "turned away" in err and "Traceback" not in err, err[:2000]


def test_who_asks_and_does_not_take_the_answers_is_dropped(path: Path) -> None:
    with serving(path, patience_s=1) as running, running.client() as client:
        page = len(client.get("/").content)
        connection, = taken(running, request("GET", "/", Connection="keep-alive") * 400)
        deadline, port = time.monotonic() + 60, connection.getsockname()[1]
        while not (there := [s for s in running.here.accepted() if s.getpeername()[1] == port]) and time.monotonic() < deadline:
            time.sleep(.01)
        while there[0].fileno() >= 0 and time.monotonic() < deadline:  # until it is dropped
            time.sleep(.05)
        assert 0 < rest(connection) < 400 * page


def test_many_clients_at_once(path: Path, book: TokenFile) -> None:
    tokens = [book.add(f"team {n}")[0] for n in range(3)]
    with serving(path, book) as running:
        def work(n: int) -> list[int]:
            with running.client(tokens[n % 3]) as client:
                statuses = []
                for i in range(15):
                    statuses.append(client.post("/v1/write", json={"text": f"worker {n} said {i}", "id": f"w{n}-{i}"}).status_code)
                    found = client.post("/v1/search", json={"q": f"worker {n} said {i}", "k": 50}).json()["hits"]
                    assert f"w{n}-{i}" in {h["memory"]["id"] for h in found}
                    assert {int(h["memory"]["id"][1:].split("-")[0]) % 3 for h in found} == {n % 3}
                return statuses
        with ThreadPoolExecutor(9) as pool:
            assert {s for statuses in pool.map(work, range(9)) for s in statuses} == {201}
    for n in range(3):
        with Memory(path, namespace=f"team {n}") as memory:
            assert memory.stats()["memories"] == 45 and memory.check() == []


def test_stopping_closes_the_store(path: Path) -> None:
    with serving(path) as running:
        with running.client() as client:
            write(client, "x")
        service: Service = running.service
        assert service.pool.open_memories()
    assert not service.pool.open_memories()
    assert not [t for t in threading.enumerate() if t.name == "rlm-index"]
