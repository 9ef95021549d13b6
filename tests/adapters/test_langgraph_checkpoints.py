"""The LangGraph checkpointer: LangGraph's conformance suite, threads after a restart, delta channels after pruning."""

import asyncio
from collections.abc import AsyncGenerator, Iterator
from pathlib import Path
from typing import Any, TypedDict

import pytest

pytest.importorskip("langgraph.checkpoint.base", reason="needs langgraph-checkpoint: make adapters")

from langgraph.checkpoint.base import empty_checkpoint

from rlm import Memory
from rlm.adapters.langgraph_checkpoints import LangGraphCheckpointer


def test_all_eight_capabilities_conform(tmp_path: Path) -> None:
    suite = pytest.importorskip("langgraph.checkpoint.conformance", reason="needs langgraph-checkpoint-conformance: make adapters")
    made = iter(range(100))

    @suite.checkpointer_test(name="rlm")
    async def saver() -> AsyncGenerator[Any, None]:
        with LangGraphCheckpointer(tmp_path / f"{next(made)}.db") as one:
            yield one

    report = asyncio.run(suite.validate(saver))
    assert {name: (r.detected, r.failures) for name, r in report.results.items() if not r.detected or r.failures} == {}
    assert len(report.results) == 8 and sum(r.tests_passed for r in report.results.values()) >= 60


class Counted(TypedDict):
    "What a graph hands from node to node."

    said: list[str]


def graph_of(saver: LangGraphCheckpointer) -> Any:
    from langgraph.graph import StateGraph
    graph = StateGraph(Counted).add_node("note", lambda state: {"said": [*state["said"], "noted"]})
    return graph.set_entry_point("note").compile(checkpointer=saver, interrupt_before=["note"])


def test_a_thread_goes_on_after_a_restart(tmp_path: Path) -> None:
    config = {"configurable": {"thread_id": "mina"}}
    with LangGraphCheckpointer(tmp_path / "threads.db") as saver:
        graph_of(saver).invoke({"said": ["보일러"]}, config)
    with LangGraphCheckpointer(tmp_path / "threads.db") as saver:
        assert graph_of(saver).get_state(config).next == ("note",)
        assert graph_of(saver).invoke(None, config) == {"said": ["보일러", "noted"]}
        assert asyncio.run(graph_of(saver).aget_state(config)).values["said"][-1] == "noted"


def test_what_a_thread_held_leaves_the_file(tmp_path: Path) -> None:
    with LangGraphCheckpointer(tmp_path / "threads.db") as saver:
        for thread in ("mina", "jun"):
            graph_of(saver).invoke({"said": [f"the harbour of {thread}"]}, {"configurable": {"thread_id": thread}})
        saver.delete_thread("mina")
        left = b"".join(f.read_bytes() for f in tmp_path.iterdir())
    assert b"harbour of jun" in left and b"harbour of mina" not in left


def conforms(places: Iterator[tuple[Any, str]]) -> None:
    "Run LangGraph's suite on threads in stores: each place with a namespace."
    suite = pytest.importorskip("langgraph.checkpoint.conformance", reason="needs langgraph-checkpoint-conformance: make adapters")

    @suite.checkpointer_test(name="rlm in a store")
    async def saver() -> AsyncGenerator[Any, None]:
        place, namespace = next(places)
        with Memory(place, namespace=namespace, embedder="none") as memory:
            yield LangGraphCheckpointer(memory)

    report = asyncio.run(suite.validate(saver))
    assert {name: (r.detected, r.failures) for name, r in report.results.items() if not r.detected or r.failures} == {}


def test_threads_in_a_server_conform_and_are_of_one_namespace(postgres: str) -> None:
    conforms((postgres, f"suite{n}") for n in range(100))
    config = {"configurable": {"thread_id": "t"}}
    with Memory(postgres, embedder="none", namespace="mina") as mina:
        jun = mina.namespace("jun")
        for memory, place in ((mina, "harbour"), (jun, "lighthouse")):
            graph_of(LangGraphCheckpointer(memory)).invoke({"said": [f"the {place} is closed"]}, config)
        saver = LangGraphCheckpointer(mina)
        saver.copy_thread("t", "copy")
        saver.prune(["copy"])
        assert {t.config["configurable"]["thread_id"] for t in saver.list(None)} == {"t", "copy"}
        saver.delete_thread("t")
        assert graph_of(saver).get_state(config).values == {}
        mina.backend.erase_namespace("mina", mina.clock.now())
        assert list(saver.list(None)) == [] and mina.check() == []
        assert graph_of(LangGraphCheckpointer(jun)).invoke(None, config) == {"said": ["the lighthouse is closed", "noted"]}


def test_threads_in_a_store_conform_and_share_the_fate_of_their_namespace(tmp_path: Path) -> None:
    conforms((tmp_path / f"{n}.db", "default") for n in range(100))
    config = {"configurable": {"thread_id": "t"}}
    with Memory(tmp_path / "store.db", embedder="none", namespace="mina") as mina:
        jun, clock = mina.namespace("jun"), mina.clock
        for memory, place in ((mina, "harbour"), (jun, "lighthouse")):
            graph_of(LangGraphCheckpointer(memory)).invoke({"said": [f"the {place} is closed"]}, config)
        assert graph_of(LangGraphCheckpointer(jun)).get_state(config).values == {"said": ["the lighthouse is closed"]}
        mina.admin.export(tmp_path / "mina.jsonl")
        copy = mina.admin.backup(tmp_path / "copy.db")
        assert "lighthouse" not in (tmp_path / "mina.jsonl").read_text()
        mina.backend.erase_namespace("mina", clock.now())
        assert graph_of(LangGraphCheckpointer(mina)).get_state(config).values == {}
        assert graph_of(LangGraphCheckpointer(jun)).get_state(config).next == ("note",)
        left = b"".join(f.read_bytes() for f in tmp_path.glob("store.db*") if f.is_file())
        assert b"lighthouse is closed" in left and b"harbour is closed" not in left
    with Memory(copy, embedder="none", namespace="mina") as restored:
        assert graph_of(LangGraphCheckpointer(restored)).invoke(None, config) == {"said": ["the harbour is closed", "noted"]}
    with Memory(tmp_path / "other.db", embedder="none", namespace="mina") as other:
        assert other.admin.import_(tmp_path / "mina.jsonl").rows["thread_checkpoints"] > 0
        assert graph_of(LangGraphCheckpointer(other)).get_state(config).next == ("note",)


def test_pruning_keeps_what_delta_channels_are_computed_from() -> None:
    with LangGraphCheckpointer(":memory:") as saver:
        config: Any = {"configurable": {"thread_id": "t", "checkpoint_ns": ""}}
        for step in range(5):  # a stored value at step 1, deltas after it
            state = empty_checkpoint() | {"id": f"id-{step}", "channel_values": {"log": ["seed"]} if step == 1 else {"n": step}}
            config = saver.put(config, state, {"step": step, "counters_since_delta_snapshot": {"log": (step, step)}}, {})
            saver.put_writes(config, [("log", step)], f"task-{step}")
        before = saver.get_delta_channel_history(config=config, channels=["log"])
        saver.prune(["t"])
        assert [t.checkpoint["id"] for t in saver.list(None)] == ["id-4", "id-3", "id-2", "id-1"]
        assert saver.get_delta_channel_history(config=config, channels=["log"]) == before and before["log"]["seed"] == ["seed"]
        with pytest.raises(ValueError, match="keep_latest"):
            saver.prune(["t"], strategy="newest")
