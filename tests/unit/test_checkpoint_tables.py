"Threads of an agent framework in a store: exported, imported, copied and erased with their namespace. The adapter itself needs LangGraph."
import json
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from rlm import Memory
from rlm.core.clock import ManualClock
from rlm.core.errors import InvalidInput
from rlm.store.sqlite.database import SQLiteDatabase
from rlm.store.threads import ThreadTable, has_threads, thread_namespaces
from rlm.store.transfer.store_copy import copy_store

KEY = ("t", "", "1")
ABOUT = ("json", b"{}")


def keep(memory: Memory, state: bytes) -> None:
    "Store a state and a write, as the adapter does."
    threads = ThreadTable(memory.backend.db, memory.ctx.namespace)
    threads.put_state(KEY, None, None, ("msgpack", state), ABOUT)
    threads.put_writes(KEY, ("task", ""), [(0, "said", ("msgpack", state))])


@pytest.fixture(params=["store", "file"])
def threads(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[ThreadTable]:
    if request.param == "file":
        with closing(ThreadTable(tmp_path / "threads.db")) as made:
            yield made
        return
    with Memory(tmp_path / "store.db", embedder="none", namespace="mina") as memory:
        keep(memory.namespace("jun"), b"another's")
        yield ThreadTable(memory.backend.db, "mina")
        assert ThreadTable(memory.backend.db, "jun").read(KEY)[0] == (None, "msgpack", b"another's", *ABOUT)


def test_states_are_kept_copied_and_erased(threads: ThreadTable) -> None:
    for thread, id, run in (("t", "1", "r1"), ("t", "2", "r2"), ("u", "3", "r1")):
        threads.put_state((thread, "", id), str(int(id) - 1), run, ("msgpack", b"old"), ABOUT)
        threads.put_state((thread, "", id), str(int(id) - 1), run, ("msgpack", id.encode()), ABOUT)  # again: replaced
    assert threads.keys() == [("u", "", "3"), ("t", "", "2"), ("t", "", "1")] and threads.keys("t", before="2") == [KEY]
    assert threads.keys("t", limit=1) == [("t", "", "2")] and threads.keys("t", "sub") == [] and threads.keys(id="3") == [("u", "", "3")]
    for value in (b"first", b"again"):
        threads.put_writes(KEY, ("task", ""), [(0, "said", ("raw", value)), (-1, "error", ("raw", value))])
    assert threads.read(KEY) == (("0", "msgpack", b"1", *ABOUT), [("task", "error", "raw", b"again"), ("task", "said", "raw", b"first")])
    threads.copy("t", "v")
    threads.delete_thread("t", kept=[("t", "", "2")])
    assert sorted(threads.keys()) == [("t", "", "2"), ("u", "", "3"), ("v", "", "1"), ("v", "", "2")] and threads.read(KEY) == (None, [])
    assert len(threads.read(("v", "", "1"))[1]) == 2
    threads.delete_runs(["r1"])
    threads.delete_thread("t")
    assert threads.keys() == [("v", "", "2")] and threads.read(("v", "", "1")) == (None, [])


def test_threads_go_where_their_namespace_goes(tmp_path: Path) -> None:
    with Memory(tmp_path / "store.db", embedder="none", namespace="mina", clock=ManualClock()) as mina:
        assert not has_threads(mina.backend.db) and thread_namespaces(mina.backend.db) == []
        keep(mina, b"the harbour of Mina")
        keep(mina.namespace("jun"), b"the harbour of Jun")
        mina.namespace("jun").write("Jun sails.")
        assert [(n.name, n.memories) for n in mina.backend.namespaces()] == [("jun", 1), ("mina", 0)]
        mina.admin.export(tmp_path / "mina.jsonl")
        rows = [json.loads(line) for line in (tmp_path / "mina.jsonl").read_text().splitlines()[1:-1]]
        assert [row["table"] for row in rows] == ["thread_checkpoints", "thread_writes"]
        with closing(SQLiteDatabase(tmp_path / "copy.db")) as copy:
            assert {t.name: t.added for t in copy_store(mina.backend.db, copy)}["thread_writes"] == 2
        assert mina.backend.erase_namespace("mina", mina.clock.now()) == 0
        assert thread_namespaces(mina.backend.db) == ["jun"] and mina.admin.check() == []
        held = b"".join(f.read_bytes() for f in tmp_path.glob("store.db*") if f.is_file())
        assert b"harbour of Jun" in held and b"harbour of Mina" not in held
    with Memory(tmp_path / "other.db", embedder="none", namespace="mina") as other:
        assert other.admin.import_(tmp_path / "mina.jsonl").rows == {"thread_checkpoints": 1, "thread_writes": 1}
        assert other.admin.import_(tmp_path / "mina.jsonl").rows == {}  # again: nothing is doubled
        with pytest.raises(InvalidInput, match="namespace 'mina'"):
            other.namespace("jun").admin.import_(tmp_path / "mina.jsonl")
