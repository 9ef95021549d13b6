"""Conversations of agent frameworks: they come back as they were given, and what was said is recalled."""

import asyncio
from typing import Any

import pytest

from rlm import Memory
from rlm.adapters.sessions import AgentSession, TranscriptStore
from rlm.core.errors import InvalidInput

ITEMS: list[Any] = [
    {"role": "user", "content": "My boiler is serviced by Yuna Park."},
    {"role": "assistant", "content": [{"type": "output_text", "text": "적어 두었어요."}]},
    {"type": "function_call", "name": "search", "arguments": "{}", "call_id": "c1"},
    {"type": "function_call_output", "call_id": "c1", "output": "nothing"},
]


@pytest.mark.parametrize("items", ["안녕", ["hello"], {"role": "user", "content": "hi"}])
def test_items_that_are_no_list_of_dictionaries_are_refused(items: Any) -> None:
    with Memory(":memory:", embedder="none") as memory, pytest.raises(InvalidInput, match="given as"):
        asyncio.run(AgentSession("chat", memory).add_items(items))


def test_a_session_gives_its_items_back_in_order() -> None:
    async def talk(memory: Memory) -> None:
        session, other = AgentSession("chat", memory), AgentSession("other", memory)
        assert await session.get_items() == [] and await session.pop_item() is None
        await session.add_items(ITEMS)
        await other.add_items(ITEMS[:1])
        await session.add_items([])
        assert await session.get_items() == ITEMS and await session.get_items(limit=2) == ITEMS[2:]
        assert await session.pop_item() == ITEMS[-1] and await session.get_items() == ITEMS[:-1]
        await session.add_items(ITEMS[-1:])
        assert [await session.pop_item(), await session.pop_item()] == ITEMS[:1:-1]
        await session.add_items(ITEMS[-2:])  # an attempt that is taken back and made again
        assert await session.get_items() == ITEMS
        await session.clear_session()
        await session.clear_session()
        assert await session.get_items() == [] and await other.get_items() == ITEMS[:1]
        await session.add_items(ITEMS[:2])
        assert await session.get_items() == ITEMS[:2]

    with Memory(":memory:", embedder="none") as memory:
        asyncio.run(talk(memory))
        assert len(memory.list(status="any")) == 3  # a history that was cleared and written anew is there once
        assert [h.text for h in memory.search("who services the boiler?")][:1] == ["My boiler is serviced by Yuna Park."]
        assert not memory.search("function call search") and not memory.check()


def test_the_session_is_one_to_the_sdk() -> None:
    agents = pytest.importorskip("agents", reason="needs openai-agents: make adapters")
    with Memory(":memory:", embedder="none") as memory:
        assert isinstance(AgentSession("chat", memory), agents.memory.session.Session)


KEY = {"project_key": "boats", "session_id": "s1"}
LINES: list[Any] = [
    {"type": "user", "uuid": "u1", "message": {"role": "user", "content": "The filter is changed in May."}},
    {"type": "title", "title": "Boat"},
    {
        "type": "assistant",
        "uuid": "u2",
        "message": {
            "role": "assistant",
            "content": [{"type": "text", "text": "Noted."}, {"type": "tool_use", "name": "x", "input": {}}],
        },
    },
]


def test_transcripts_are_kept_line_by_line_and_once() -> None:
    async def mirror(store: TranscriptStore) -> None:
        assert await store.load(KEY) is None
        await store.append(KEY, LINES)
        await store.append(KEY, LINES[:1])
        assert await store.load(KEY) == LINES
        await store.append(KEY | {"subpath": "subagents/agent-1"}, LINES[:1])
        await store.append(KEY | {"project_key": "bread"}, LINES[:1])
        assert await store.list_subkeys(KEY) == ["subagents/agent-1"]
        assert [s["session_id"] for s in await store.list_sessions("boats")] == ["s1"]
        await store.delete(KEY)
        assert await store.load(KEY) is None and await store.load(KEY | {"subpath": "subagents/agent-1"}) is None
        assert await store.load(KEY | {"project_key": "bread"}) == LINES[:1]
        await store.append(KEY, LINES)
        assert await store.load(KEY) == LINES

    with Memory(":memory:", embedder="none") as memory:
        asyncio.run(mirror(TranscriptStore(memory)))
        assert memory.search("filter")[0].text == "The filter is changed in May." and not memory.check()


def test_the_sdks_own_contracts_hold() -> None:
    testing = pytest.importorskip("claude_agent_sdk.testing", reason="needs claude-agent-sdk: make adapters")
    opened = list[Memory]()

    def fresh() -> TranscriptStore:
        opened.append(Memory(":memory:", embedder="none"))
        return TranscriptStore(opened[-1])

    asyncio.run(testing.run_session_store_conformance(fresh))
    assert opened
    for memory in opened:
        memory.close()
