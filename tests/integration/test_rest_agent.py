"Runs of the agent over REST, and the same words said again."
import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pytest
from serving import problem, serving

from rlm import Memory
from rlm.service import capture
from rlm.service.advice import agent_available
from rlm.store.records import MemoryRecord

pytestmark = pytest.mark.usefixtures("bare")


@pytest.fixture
def client(path: Path) -> Iterator[httpx.Client]:
    with serving(path, serve_rate=0) as running, running.client() as made:
        yield made


def create(client: httpx.Client, text: str, **fields: object) -> httpx.Response:
    return client.post("/v1/memories", json={"text": text, **fields})


@pytest.mark.parametrize("text", ["I am allergic to peanuts.", "저는 땅콩 알레르기가 있어요", "long words " * 200])
def test_the_same_words_again_are_one_memory(client: httpx.Client, text: str) -> None:
    first, again = create(client, text, tags=["health"]), create(client, f" {text.upper()} ")
    assert (first.status_code, again.status_code) == (201, 200) and "duplicate" not in first.json()
    assert again.json()["id"] == first.json()["id"] and again.json()["duplicate"] is True and again.json()["access_count"] == 1
    assert client.get("/v1/stats").json()["memories"] == 1 and again.headers["etag"] == '"1"'


@pytest.mark.parametrize("text", ["I am allergic to peanuts.", "저는 땅콩 알레르기가 있어요"])
def test_the_same_words_of_many_callers_at_once_are_one_memory(text: str, client: httpx.Client) -> None:
    with ThreadPoolExecutor(8) as callers:
        answers = list(callers.map(lambda _: create(client, text), range(16)))
    assert sorted(a.status_code for a in answers) == [200] * 15 + [201] and len({a.json()["id"] for a in answers}) == 1
    assert client.get("/v1/stats").json()["memories"] == 1


@pytest.mark.parametrize("text", ["I am allergic to peanuts.", "저는 땅콩 알레르기가 있어요"])
def test_the_same_words_stored_after_the_search_for_them_are_found(text: str, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with Memory(path) as memory:
        def raced(*given: Any) -> MemoryRecord | None:
            monkeypatch.undo()  # the next search finds it
            memory.write(text)
            return None
        monkeypatch.setattr(capture, "same_again", raced)
        kept, known = capture.write_once(memory, text, {}, {})
        assert known and [r.id for r in memory.list()] == [kept.id]


def test_a_conversation_whose_turns_are_all_deleted_is_answered(client: httpx.Client) -> None:
    talk = {"session": "s", "turns": [{"text": "나는 합창단에서 노래해.", "role": "user"}, {"text": "Noted.", "role": "assistant"}]}
    for turn in client.post("/v1/conversations", json=talk).json()["items"]:
        client.delete(f"/v1/memories/{turn['id']}")
    again = client.post("/v1/conversations", json=talk)
    assert again.status_code == 201 and again.json() == {"session": "s", "items": []}


@pytest.mark.parametrize("more", [{"id": "own"}, {"valid_from": "2026-01-01"}, {"session": "s"}, {"speaker": "Jun"}, {"tags": ["new"]},
                                  {"category": "fact"}, {"text": "It is raining!"}, {"slot": "auto"}], ids=str)
def test_what_is_said_with_more_is_a_memory_of_its_own(client: httpx.Client, more: dict[str, object]) -> None:
    create(client, "It is raining.")
    assert client.post("/v1/memories", json={"text": "It is raining."} | more).status_code == 201
    assert client.get("/v1/stats").json()["memories"] == 2


def test_a_run_of_the_agent_is_a_stream_of_events(client: httpx.Client) -> None:
    if not agent_available():
        pytest.skip("the extra agent is not installed")
    assert problem(client.post("/v1/agent/runs", json={"question": "?", "ontology": "/etc/passwd"}))["status"] == 404
    with client.stream("POST", "/v1/agent/runs", json={"question": "Find all subclasses of Activity", "ontology": "prov"}) as answer:
        assert answer.status_code == 200 and answer.headers["content-type"].startswith("text/event-stream")
        events = [part.split("\n") for part in "".join(answer.iter_text()).strip().split("\n\n")]
    assert {e[0] for e in events[:-1]} <= {"event: progress"} and events[-1][0] == "event: result"
    result = json.loads(events[-1][1].removeprefix("data: "))
    assert result["converged"] and "Publish" in result["answer"]
