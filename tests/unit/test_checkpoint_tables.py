"Threads of an agent framework in a store: exported, imported, copied and erased with their namespace. The adapter itself needs LangGraph."
import json
from contextlib import closing
from pathlib import Path

import pytest

from rlm import Memory
from rlm.core.clock import ManualClock
from rlm.core.errors import InvalidInput
from rlm.store.sqlite.database import SQLiteDatabase
from rlm.store.threads import has_threads, make_thread_tables, thread_namespaces
from rlm.store.transfer.store_copy import copy_store

STATE = ("INSERT INTO thread_checkpoints VALUES (:n, 't', '', '1', NULL, NULL, 'msgpack', :state, 'json', x'7b7d')",
         "INSERT INTO thread_writes VALUES (:n, 't', '', '1', 'task', 0, '', 'said', 'msgpack', :state)")


def keep(memory: Memory, state: bytes) -> None:
    "Store a state and a write, as the adapter does."
    make_thread_tables(memory.backend.db)
    with memory.backend.db.transaction():
        for statement in STATE:
            memory.backend.db.query(statement, {"n": memory.ctx.namespace, "state": state})


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
