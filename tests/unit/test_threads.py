"Threads that share one store: nobody waits for ever, and nobody goes by what was undone."
import gc
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from rlm import Memory
from rlm.core.errors import StoreError
from rlm.rules import RuleStore
from rlm.search import namespace_index
from rlm.store.protocols import identity_of

WATCH = 60.0  # seconds until threads count as stuck: a hundred times what they take


@pytest.fixture(params=["memory", "file"])
def shared_store(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Memory]:
    "A store in memory, and one in a file, with threads that are interrupted often."
    monkeypatch.setenv("RLM_CHECKPOINTS", "full")
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    memory = Memory(":memory:" if request.param == "memory" else tmp_path / "m.db", embedder="none")
    memory.write_many([{"text": f"green tea number {n}", "id": f"t{n}"} for n in range(20)])
    yield memory
    sys.setswitchinterval(before)


def together(*works: Callable[[int], Any], times: int = 60) -> None:
    "Each in a thread of its own, many times. Fails when they are stuck, or one of them fails."
    failed = list[BaseException]()

    def run(work: Callable[[int], Any]) -> None:
        try:
            for n in range(times):
                work(n)
        except BaseException as e:
            failed.append(e)

    threads = [threading.Thread(target=run, args=(work,), daemon=True) for work in works]
    for thread in threads:
        thread.start()
    end = time.monotonic() + WATCH
    for thread in threads:
        thread.join(max(0.0, end - time.monotonic()))
    assert not any(thread.is_alive() for thread in threads), "the threads wait for one another"
    assert not failed, failed


def test_writers_that_anchor_and_searches_do_not_wait_for_one_another(shared_store: Memory) -> None:
    m = shared_store
    together(lambda n: m.write(f"black coffee {n}", slot="auto"), lambda n: m.search("tea", slot="auto"),
             lambda n: m.search("coffee", slot="auto"))
    m.close()


def test_a_search_in_a_transaction_waits_for_no_other_search(shared_store: Memory) -> None:
    m = shared_store

    def within(n: int) -> None:
        with m.backend.transaction():
            m.write(f"black coffee {n}", id=f"c{n}")
            assert any(h.id == f"c{n}" for h in m.search(f"coffee {n}", k=5))

    together(within, lambda n: m.search("tea"), lambda n: m.search("coffee"))
    m.close()


def test_attention_the_graph_and_rules_wait_for_nobody(shared_store: Memory) -> None:
    m = shared_store
    rules = RuleStore.within(m)
    rules.add_rule("give tea", rule_id="r", status="ltm")

    def within(n: int) -> None:
        with m.backend.transaction():
            m.write(f"black coffee {n}", id=f"c{n}")
            m.attention.intelligent_search("tea")
            m.graph.neighbors("t0")
            rules.get_rules()

    def outside(n: int) -> None:
        m.attention.intelligent_search(f"coffee {n % 7}")
        m.graph.stats()
        rules.get_rules()
        if n % 10 == 9:
            m.attention.flush()

    together(within, outside, outside, times=30)
    m.close()


def test_a_thread_that_writes_and_asks_is_not_kept_waiting_by_one_that_keeps(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(namespace_index, "SAVE_AFTER", 1)
    with Memory(tmp_path / "m.db", embedder="none") as m:
        m.write("green tea", id="t")
        holding, took = threading.Event(), list[float]()

        def write() -> None:
            with m.backend.transaction():
                m.write("black coffee", id="c")
                holding.set()
                time.sleep(0.2)  # by now the other thread holds the index, and wants to write its file
                began = time.monotonic()
                assert [h.id for h in m.search("coffee")] == ["c"]
                m.attention.intelligent_search("coffee")
                took.append(time.monotonic() - began)

        thread = threading.Thread(target=write, daemon=True)
        thread.start()
        holding.wait(WATCH)
        assert [h.id for h in m.search("tea coffee")] == ["t"]
        m.attention.flush()
        thread.join(WATCH)
        assert took and took[0] < 10, "it waited for the busy timeout"


def undo(memory: Memory, work: Callable[[], Any]) -> None:
    "Do something in a transaction that fails afterwards."
    with suppress(KeyboardInterrupt), memory.backend.transaction():
        work()
        raise KeyboardInterrupt


def found(memory: Memory, *questions: str) -> dict[str, list[str]]:
    return {q: [h.id for h in memory.search(q)] for q in questions}


def test_what_was_undone_is_found_by_nobody(shared_store: Memory) -> None:
    m = shared_store
    rules = RuleStore.within(m)

    def ghost() -> None:
        m.write("secret coffee", id="ghost")
        rules.add_rule("give coffee", rule_id="ghost rule", status="ltm")
        assert found(m, "coffee")["coffee"] == ["ghost", "ghost rule"] and [r.rule_id for r in rules.get_rules()] == ["ghost rule"]
        assert m.attention.intelligent_search("coffee")["result_count"] == 2
        m.link("ghost", "t0")
        assert m.graph.neighbors("t0")

    m.attention.intelligent_search("coffee")
    undo(m, ghost)
    assert not m.graph.neighbors("t0")
    m.write("black cocoa", id="real")
    rules.add_rule("give cocoa", rule_id="real rule", status="ltm")
    m.write("dark chocolate", id="third")
    assert found(m, "coffee", "cocoa") == {"coffee": [], "cocoa": ["real", "real rule"]}
    assert [r.rule_id for r in rules.get_rules()] == ["real rule"]
    assert m.attention.intelligent_search("coffee")["result_count"] == 0
    assert m.attention.intelligent_search("cocoa")["result_count"] == 2
    m.close()


def test_what_a_part_of_a_transaction_undid_is_not_found_in_the_rest(shared_store: Memory) -> None:
    m = shared_store
    with m.backend.transaction():
        undo(m, lambda: (m.write("secret coffee", id="ghost"), m.search("coffee")))
        m.write("black cocoa", id="real")
        assert found(m, "coffee", "cocoa") == {"coffee": [], "cocoa": ["real"]}
    assert found(m, "coffee", "cocoa") == {"coffee": [], "cocoa": ["real"]}
    m.close()


def test_a_snapshot_in_which_is_written_can_be_undone_too(shared_store: Memory) -> None:
    m = shared_store
    with suppress(KeyboardInterrupt), m.backend.snapshot():
        undo(m, lambda: (m.write("secret coffee", id="ghost"), m.search("coffee")))
        raise KeyboardInterrupt
    m.write("black cocoa", id="real")
    assert found(m, "coffee", "cocoa") == {"coffee": [], "cocoa": ["real"]}
    m.close()


def test_what_is_not_stored_is_kept_in_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with Memory(tmp_path / "m.db", embedder="none") as m:
        m.write("green tea", id="t")
        m.search("tea")

        def ghost() -> None:
            m.write("secret coffee", id="ghost")
            m.search("coffee")
            thread = threading.Thread(target=m.index.save, args=(True,))
            with monkeypatch.context() as patch:
                patch.setattr(namespace_index, "SAVE_AFTER", 1)
                thread.start()
                thread.join()

        undo(m, ghost)
        m.write("black cocoa", id="real")
        m.write("dark chocolate", id="third")
    assert not list(tmp_path.rglob("words*"))
    with Memory(tmp_path / "m.db", embedder="none") as m:
        assert found(m, "coffee", "cocoa") == {"coffee": [], "cocoa": ["real"]}


@pytest.mark.usefixtures("files_at_once")
def test_after_something_was_undone_the_file_of_the_index_still_serves(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with Memory(tmp_path / "m.db", embedder="none") as m:
        m.write_many([{"text": f"green tea number {n}"} for n in range(50)])
        with monkeypatch.context() as patch:
            patch.setattr(namespace_index, "SAVE_AFTER", 1)
            m.search("tea")
        undo(m, lambda: (m.write("secret coffee", id="ghost"), m.search("coffee")))
        read = list[int]()
        real = namespace_index.NamespaceIndex._read
        monkeypatch.setattr(namespace_index.NamespaceIndex, "_read",
                            lambda self, seqs, batch=5000: (read.append(len(seqs)), real(self, seqs, batch)))
        m.write("black cocoa", id="real")
        assert found(m, "coffee", "cocoa") == {"coffee": [], "cocoa": ["real"]} and sum(read) < 10


def test_only_what_somebody_knows_of_makes_anything_begin_anew(memory: Memory) -> None:
    memory.write("green tea")
    memory.search("tea")
    before = memory.backend.position()
    undo(memory, lambda: memory.write("secret coffee"))
    assert memory.backend.position() == before and memory.backend.db.epoch == 0
    undo(memory, lambda: memory.search("tea"))
    assert memory.backend.db.epoch == 0
    undo(memory, lambda: (memory.write("secret coffee"), memory.search("tea")))
    assert memory.backend.position() != before
    assert identity_of(memory.backend.position()[0]) == before[0]


def test_a_thread_whose_connection_cannot_be_opened_is_told_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lost, said = list[Any](), list[BaseException]()
    monkeypatch.setattr(sys, "unraisablehook", lost.append)
    (tmp_path / "here").mkdir()
    with Memory(tmp_path / "here" / "m.db", embedder="none") as memory:
        memory.write("tea", id="t")
        (tmp_path / "here").rename(tmp_path / "there")

        def ask() -> None:
            try:
                memory.backend.position()
            except BaseException as e:
                said.append(e)
        thread = threading.Thread(target=ask)
        thread.start()
        thread.join(30)
        gc.collect()
        assert [type(e) for e in said] == [StoreError] and "can't be opened" in str(said[0]) and not lost
        assert memory.get("t").text == "tea"  # who has a connection goes on


def test_a_search_does_not_wait_for_the_files_of_the_index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    writing, go_on = threading.Event(), threading.Event()
    real = namespace_index.write_index

    def slowly(*given: Any) -> bool:
        writing.set()
        assert go_on.wait(60)
        return real(*given)
    monkeypatch.setattr(namespace_index, "SAVE_AFTER", 1)
    monkeypatch.setattr(namespace_index, "write_index", slowly)
    with Memory(tmp_path / "m.db", embedder="none") as m:
        m.write("green tea", id="t")
        assert [h.id for h in m.search("tea")] == ["t"] and writing.wait(60), "the search is over, its files are not written"
        m.write("black tea", id="b")
        m.delete("t")
        assert [h.id for h in m.search("tea")] == ["b"] and not list(tmp_path.rglob("words*.npz"))
        go_on.set()
    assert list(tmp_path.rglob("words*.npz")), "closing waits for them"
    with Memory(tmp_path / "m.db", embedder="none") as m:
        assert m.check() == [] and [h.id for h in m.search("tea")] == ["b"]
