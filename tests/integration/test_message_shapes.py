"Messages as chat APIs write them, and as careless programs do: every way into a store reads the same ones."
import asyncio
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("mcp", reason="the extra mcp is not installed")
pytest.importorskip("fastapi", reason="the extra serve is not installed")

from click.testing import CliRunner
from mcp import Client
from serving import Running, serving

import rlm
from rlm import Memory
from rlm.core.errors import InvalidInput
from rlm.service.cli import main
from rlm.service.mcp.mcp_server import memory_server
from rlm.service.mcp.sources import LocalMemory

pytestmark = pytest.mark.usefixtures("bare")

CALL = {"id": "call_1", "type": "function", "function": {"name": "weather", "arguments": "{}"}}
MESSAGES: list[dict[str, Any]] = [  # an exchange as OpenAI's library dumps it
    {"role": "user", "content": [{"type": "text", "text": "I live in Busan."}]},
    {"role": "assistant", "content": None, "refusal": None, "annotations": [], "audio": None, "tool_calls": [CALL]},
    {"role": "tool", "tool_call_id": "call_1", "content": "21 degrees"},
    {"role": "assistant", "content": "", "refusal": None},
    {"role": "assistant", "content": None},
    {"role": "assistant", "content": []},
    {"role": "user", "content": " \n"},
    {"role": "user", "content": "제 여동생은 제주에 살아요.", "created_at": 1_777_000_000}]
KEPT, SILENT = ["I live in Busan.", "calls weather({})", "21 degrees", "제 여동생은 제주에 살아요."], [3, 4, 5, 6]
Told = tuple[list[str], list[int]]


@pytest.fixture
def running(tmp_path: Path) -> Iterator[Running]:
    with serving(tmp_path / "memory.db", serve_rate=0) as server:
        yield server


def by_python(running: Running, turns: list[dict[str, Any]]) -> Told:
    with Memory(running.service.settings.db_path, embedder="none") as memory:
        stored = memory.add_conversation(turns)
    return [r.text for r in stored], list(stored.refused)


def by_asyncio(running: Running, turns: list[dict[str, Any]]) -> Told:
    with Memory(running.service.settings.db_path, embedder="none") as memory:
        stored = asyncio.run(memory.aadd_conversation(turns))
    return [r.text for r in stored], list(stored.refused)


def by_rest(running: Running, turns: list[dict[str, Any]]) -> Told:
    with running.client() as client:
        answer = client.post("/v1/conversations", json={"turns": turns})
    assert answer.status_code == 201, answer.text
    return [r["text"] for r in answer.json()["items"]], [one["turn"] for one in answer.json().get("refused", ())]


def by_a_remote_memory(running: Running, turns: list[dict[str, Any]]) -> Told:
    stored = rlm.connect(running.url).add_conversation(turns)
    return [r.text for r in stored], list(stored.refused)


def by_the_command_line(running: Running, turns: list[dict[str, Any]]) -> Told:
    words = ["conversation", "add", "-", "--json", "--db", str(running.service.settings.db_path)]
    done = CliRunner().invoke(main, words, json.dumps(turns))
    assert done.exit_code == 0, done.output
    left_out = [line for line in done.stderr.splitlines() if line.startswith("left out turn ")]
    assert all(line.endswith("It says nothing.") for line in left_out)
    return [r["text"] for r in json.loads(done.stdout)], [int(line.split()[3].rstrip(":")) - 1 for line in left_out]


WAYS: list[Callable[[Running, list[dict[str, Any]]], Told]] = [by_python, by_asyncio, by_rest, by_a_remote_memory, by_the_command_line]


@pytest.mark.parametrize("add", WAYS)
def test_messages_without_words_are_passed_over_and_named_and_the_others_are_stored(running: Running, add: Callable[..., Told]) -> None:
    assert add(running, MESSAGES) == (KEPT, SILENT)


@pytest.mark.parametrize("add", WAYS)
def test_a_conversation_of_one_silent_message_is_no_mistake(running: Running, add: Callable[..., Told]) -> None:
    assert add(running, [{"role": "assistant", "content": ""}]) == ([], [0])


@pytest.mark.parametrize("turn", [{"role": "user"}, {"role": "user", "txt": "hello"}, {"role": "user", "text": 7}])
def test_a_message_whose_words_are_missing_or_no_words_is_a_mistake_still(running: Running, turn: dict[str, Any]) -> None:
    with Memory(running.service.settings.db_path, embedder="none") as memory, pytest.raises(InvalidInput):
        memory.add_conversation([turn])
    with running.client() as client:
        assert client.post("/v1/conversations", json={"turns": [turn]}).status_code in (400, 422)


def test_a_reply_to_a_silent_message_is_stored_without_that_link(running: Running) -> None:
    turns = [{"id": "a", "text": "Tea?"}, {"id": "b", "text": ""}, {"text": "Yes.", "reply_to": 1}, {"text": "Green.", "reply_to": 0}]
    with Memory(running.service.settings.db_path, embedder="none") as memory:
        stored = memory.add_conversation(turns, "tea")
        assert [r.reply_to for r in stored] == [None, None, "a"] and "turn 1: It says nothing." in repr(stored)
        again = memory.add_conversation([*turns, {"text": "With milk."}], "tea")
        assert [r.text for r in again][-1] == "With milk." and len(memory.list(10, session="tea")) == 4 and list(again.refused) == [1]


def test_a_conversation_is_read_for_what_is_worth_keeping_whatever_its_shape(running: Running) -> None:
    with running.client() as client:
        told = client.post("/v1/conversations:remember", json={"turns": MESSAGES}).json()
    assert [r["text"] for r in told["proposed"]] == ["I live in Busan.", "제 여동생은 제주에 살아요."]
    with Memory(":memory:", embedder="none") as memory:
        assert [r.text for r in memory.remember(MESSAGES).proposed] == [r["text"] for r in told["proposed"]]

        async def by_a_tool() -> Any:
            async with Client(memory_server(LocalMemory(memory.namespace("mcp")))) as client:
                return (await client.call_tool("memory_remember", {"messages": MESSAGES})).structured_content
        assert [r["text"] for r in asyncio.run(by_a_tool())["noted"]] == [r["text"] for r in told["proposed"]]
