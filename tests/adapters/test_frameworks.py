"""LlamaIndex, Google's ADK, Microsoft's Agent Framework and pydantic-ai-harness: what each keeps, finds, and must not find."""

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest

from rlm import Memory
from rlm.core.errors import NotFound

BOILER = "Yuna Park services the boiler."


@pytest.fixture(params=[":memory:", "postgres"])
def memory(request: pytest.FixtureRequest) -> Iterator[Memory]:
    place = request.getfixturevalue("postgres") if request.param == "postgres" else request.param
    with Memory(place, embedder="none") as one:
        yield one
        assert not one.check()


def test_a_llama_index_block_keeps_words_and_answers_the_last_question(memory: Memory) -> None:
    types = pytest.importorskip("llama_index.core.llms", reason="needs llama-index-core: make adapters")
    from rlm.adapters.llama_index import RecallBlock
    block, say = RecallBlock(memory=memory), types.ChatMessage

    async def talk() -> None:
        assert await block.aget() == "" and await block.aget([say(role="user", content="boiler?")]) == ""
        await block.aput([say(role="user", content=BOILER), say(role="tool", content="a secret of a tool"),
                          say(role="assistant", content="적어 두었어요.")], session_id="monday")
        assert BOILER in await block.aget([say(role="user", content="who services the boiler?"), say(role="assistant", content="…")])
        assert await block.aget([say(role="assistant", content="boiler")]) == ""
        await block.aput([say(role="user", content=BOILER), say(role="assistant", content="적어 두었어요.")], session_id="monday")  # again
    asyncio.run(talk())
    assert [(r.session, r.role, r.text) for r in reversed(memory.list())] == [
        ("monday", "user", BOILER), ("monday", "assistant", "적어 두었어요.")]


def test_an_adk_service_keeps_events_once_and_users_apart(memory: Memory) -> None:
    pytest.importorskip("google.adk", reason="needs google-adk: make adapters")
    from google.adk.events import Event
    from google.adk.memory.memory_entry import MemoryEntry
    from google.adk.sessions import Session
    from google.genai.types import Content, FunctionCall, Part

    from rlm.adapters.google_adk import AdkMemoryService
    service, mina = AdkMemoryService(memory), {"app_name": "house", "user_id": "mina"}
    events = [Event(author="user", timestamp=1.8e9, content=Content(role="user", parts=[Part(text=BOILER)])),
              Event(author="helper", content=Content(role="model", parts=[Part(function_call=FunctionCall(name="f", args={}))])),
              Event(author="helper", content=Content(role="model", parts=[Part(text="hidden", thought=True), Part(text="적었어요.")]))]
    session = Session(id="s", events=events, **mina)

    async def talk() -> None:
        for _ in range(2):
            await service.add_session_to_memory(session)
        assert [(r.speaker, r.role, r.text, r.valid_from.year) for r in reversed(memory.list())][:1] == [("user", "user", BOILER, 2027)]
        assert len(memory.list()) == 2
        [parts] = [e.content.parts for e in events[-1:]]
        parts[1].text = "보일러를 적었어요."  # the application edits its history and hands it over again, without its beginning
        await service.add_session_to_memory(Session(id="s", events=events[1:], **mina))
        assert [r.text for r in reversed(memory.list())] == [BOILER, "보일러를 적었어요."]
        memory.update(memory.list()[0].id, text="보일러는 유나가 고쳐요.")  # a person corrects it, and the next hand-over leaves that alone
        await service.add_session_to_memory(session)
        assert [r.text for r in reversed(memory.list())] == [BOILER, "보일러는 유나가 고쳐요."]
        await service.add_memory(memories=[MemoryEntry(content=Content(parts=[Part(text="The harbour closes at five.")]),
                                                       timestamp="2026-05-08T09:00:00+00:00", custom_metadata={"n": 1})], **mina)
        [harbour] = (await service.search_memory(query="harbour", **mina)).memories
        assert (harbour.custom_metadata, harbour.timestamp) == ({"n": 1}, "2026-05-08T09:00:00+00:00")
        boiler, *_ = (await service.search_memory(query="who services the boiler?", **mina)).memories
        for other in ({"app_name": "house", "user_id": "jun"}, {"app_name": "boat", "user_id": "mina"}):
            assert (await service.search_memory(query="who services the boiler?", **other)).memories == []
            with pytest.raises(NotFound):
                await service.delete_memory(memory_id=boiler.id, **other)
        await service.delete_memory(memory_id=boiler.id, **mina)
        await service.delete_memory(**mina)
        await service.add_session_to_memory(session)
        left = (await service.search_memory(query="who services the boiler?", **mina)).memories
        assert boiler.content.parts[0].text == BOILER and boiler.id not in [m.id for m in left]  # deleted stays deleted
    asyncio.run(talk())


def test_an_agent_framework_provider_recalls_across_sessions(memory: Memory) -> None:
    framework = pytest.importorskip("agent_framework", reason="needs agent-framework-core: make adapters")
    from rlm.adapters.agent_framework import RecallProvider
    given = list[list[str]]()

    class Scripted(framework.BaseChatClient):  # type: ignore[misc]
        "Notes what a model would be given."

        async def _inner_get_response(self, *, messages: Any, stream: bool, options: Any, **more: Any) -> Any:
            given.append([m.text for m in messages])
            return framework.ChatResponse(messages=[framework.Message("assistant", ["적어 두었어요."])])

    async def talk() -> None:
        agent = framework.Agent(Scripted(), context_providers=[RecallProvider(memory)])
        for said in (BOILER, "Who services the boiler?"):
            await agent.run(said, session=agent.create_session())
    asyncio.run(talk())
    assert given[0] == [BOILER] and len(given[1]) == 2 and BOILER in given[1][0] and given[1][1] == "Who services the boiler?"
    assert sorted({r.role for r in memory.list()}) == ["assistant", "user"] and len({r.session for r in memory.list()}) == 2

    async def hand_over_again() -> None:
        agent = framework.Agent(Scripted(), context_providers=[RecallProvider(memory)])
        session, count = agent.create_session(), len(memory.list(100))
        await agent.run("Tea, please.", session=session)
        history = [framework.Message("user", ["Tea, please."]), framework.Message("assistant", ["적어 두었어요."])]
        await agent.run([*history, framework.Message("user", ["And milk."])], session=session)
        assert len(memory.list(100)) == count + 4  # two questions, two answers
    asyncio.run(hand_over_again())


def test_a_notebook_store_does_what_the_harness_s_own_does(memory: Memory) -> None:
    harness = pytest.importorskip("pydantic_ai_harness.memory", reason="needs pydantic-ai-harness: make adapters")
    from rlm.adapters.pydantic_ai import NotebookStore
    ours = NotebookStore(memory)
    assert isinstance(ours, harness.SearchableMemoryStore)

    async def steps(store: Any) -> list[object]:
        "What a store answers, versions aside."
        said, first, second = list[object](), harness.MemoryOperation("o1", "f1"), harness.MemoryOperation("o2", "f2")

        async def note(call: Any) -> Any:
            try:
                result = await call
            except (harness.MemoryConflictError, harness.MemoryOperationConflictError) as e:
                said.append(type(e).__name__)
                return None
            said.append((result.replayed, result.existed, result.version is None) if isinstance(result, harness.MemoryMutation)
                        else (result.content, result.truncated, result.operation_id, result.metadata)
                        if isinstance(result, harness.MemoryFile) else result)
            return result
        await note(store.read("a/MEMORY.md", max_chars=10))
        made = await note(store.write("a/MEMORY.md", BOILER, expected_version=None, operation=first))
        for again in (first, harness.MemoryOperation("o1", "other"), None):
            await note(store.write("a/MEMORY.md", BOILER, expected_version=None, operation=again))
        await note(store.get_operation(first))
        await note(store.get_operation(harness.MemoryOperation("o1", "other")))
        await note(store.get_operation(second))
        await note(store.read("a/MEMORY.md", max_chars=4))
        await note(store.write("a/MEMORY.md", "보일러", expected_version="0", operation=second))
        await note(store.write_with_metadata("a/MEMORY.md", " \n", expected_version=made.version, metadata={"by": "mina"}))
        kept = await store.read("a/MEMORY.md", max_chars=99)
        await note(store.read("a/MEMORY.md", max_chars=99))
        await note(store.write("a/x.md", "x", expected_version=None))
        await note(store.write("ab/x.md", "x", expected_version=None))
        for prefix in ("", "a/", "none/"):
            await note(store.list_paths(prefix, limit=2))
        await note(store.delete("a/MEMORY.md", expected_version="0"))
        for operation in (second, second, harness.MemoryOperation("o2", "other")):
            await note(store.delete("a/MEMORY.md", expected_version=kept.version, operation=operation))
        await note(store.delete("a/none.md", expected_version=None))
        again = await note(store.write("a/MEMORY.md", BOILER, expected_version=None))
        assert again.version not in (made.version, kept.version)
        return said

    assert asyncio.run(steps(ours)) == asyncio.run(steps(harness.InMemoryStore()))
    limits = {"limit": 3, "max_files": 9, "max_chars": 99, "max_file_chars": 99}
    found = asyncio.run(ours.search("a/", "who services the boiler?", **limits))
    assert [(m.path, m.snippet) for m in found.matches] == [("a/MEMORY.md", BOILER)]
    for prefix in ("ab/", "", "a/deeper/"):
        assert asyncio.run(ours.search(prefix, "who services the boiler?", **limits)).matches == []
