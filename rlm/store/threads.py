"""Tables for the threads of an agent framework, kept in the store itself: states of a graph, step by step, and what its tasks wrote.

A store has them from the moment that somebody keeps threads in it. Their rows belong to a namespace like all others, so that a backup and
an export hold them and the erasure of a namespace takes them along. States are bytes that the framework has written and will read; they are
no memories, nothing searches them, and the guard does not look into them.
"""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rlm.core.errors import StoreError
from .protocols import NO_LIMIT, Database
from .sqlite.database import SQLiteDatabase
from .sqlite.schema import Migration

KEY = "thread_id, checkpoint_ns, checkpoint_id"
CheckpointKey = tuple[str, str, str]  # thread, namespace of a subgraph (empty: the graph itself), id of the checkpoint
_STATE, _WRITE = ("parent_id", "run_id", "type", "checkpoint", "metadata_type", "metadata"), ("task_path", "channel", "type", "value")
_STATE_AGAIN, _WRITE_AGAIN = (  # end of an INSERT that replaces a row with the same key; `{}`: its first columns
    f"ON CONFLICT ({{}}{key}) DO UPDATE SET {', '.join(f'{c} = excluded.{c}' for c in columns)}"
    for key, columns in ((KEY, _STATE), (f"{KEY}, task_id, idx", _WRITE)))
THREAD_TABLES = {  # table → the order of its rows in an export
    "thread_checkpoints": f"namespace, {KEY}", "thread_writes": f"namespace, {KEY}, task_id, idx"}
SCHEMA = (
    f"""CREATE TABLE IF NOT EXISTS thread_checkpoints (
  namespace TEXT NOT NULL, thread_id TEXT NOT NULL, checkpoint_ns TEXT NOT NULL, checkpoint_id TEXT NOT NULL, parent_id TEXT, run_id TEXT,
  type TEXT NOT NULL, checkpoint BLOB NOT NULL, metadata_type TEXT NOT NULL, metadata BLOB NOT NULL,
  PRIMARY KEY (namespace, {KEY})) STRICT""",
    "CREATE INDEX IF NOT EXISTS thread_checkpoints_run ON thread_checkpoints (run_id)",
    f"""CREATE TABLE IF NOT EXISTS thread_writes (
  namespace TEXT NOT NULL, thread_id TEXT NOT NULL, checkpoint_ns TEXT NOT NULL, checkpoint_id TEXT NOT NULL, task_id TEXT NOT NULL,
  idx INTEGER NOT NULL, task_path TEXT NOT NULL, channel TEXT NOT NULL, type TEXT NOT NULL, value BLOB NOT NULL,
  PRIMARY KEY (namespace, {KEY}, task_id, idx)) STRICT""")

_OWN_FILE = ";\n".join(SCHEMA).replace("namespace TEXT NOT NULL, ", "").replace("namespace, ", "").replace(
    "thread_checkpoints", "checkpoints").replace("thread_writes", "writes") + ";"  # in a file of one owner


def has_threads(db: Database,  # a live store
                ) -> bool:
    "Return whether a store has the tables."
    return len(db.query("PRAGMA table_info(thread_writes)")) > 0


def make_thread_tables(db: Database,  # a live store
                       ) -> None:
    "Make the tables where they are not there; in a server they always are. Raises `StoreError` for a store that is only read."
    if has_threads(db):
        return
    if db.read_only:
        raise StoreError("This store has no threads, and it is only read.", "Open it to write.")
    with db.transaction():
        for statement in SCHEMA:
            db.query(statement)


def thread_namespaces(db: Database,  # a live store
                      ) -> list[str]:
    "Return the namespaces that have threads, by name."
    return [n for (n,) in db.query("SELECT DISTINCT namespace FROM thread_checkpoints ORDER BY 1")] if has_threads(db) else []


class ThreadTable:
    "The threads of one namespace of a store, or of a file that holds nothing else. What is put or deleted is stored when a call returns."

    def __init__(self,
                 place: "Database | str | Path",  # a live store; or a file for threads alone, made if there is none; `:memory:` vanishes
                 namespace: str | None = None,    # the partition of the store; None: a file of its own
                 ) -> None:
        self.own_file = isinstance(place, str | Path)
        if isinstance(place, str | Path):
            self.db: Database = SQLiteDatabase(place, migrations=(Migration(1, "the threads of LangGraph", _OWN_FILE),))
            self._states, self._writes, self._lead, self._mine = "checkpoints", "writes", "", ""
        else:
            make_thread_tables(place)
            self.db = place
            self._states, self._writes = THREAD_TABLES
            self._lead, self._mine = "namespace, ", "namespace = ? AND "
        self._owner = () if namespace is None else (namespace,)

    def close(self) -> None:
        "Close a file of its own; a store stays open."
        if self.own_file:
            self.db.close()

    def put_state(self,
                  key: CheckpointKey,        # checkpoint to store; one of the same key is replaced
                  parent: str | None,        # id of the checkpoint that it follows
                  run: str | None,           # id of the run that made it
                  state: tuple[str, bytes],  # type and bytes of the state
                  about: tuple[str, bytes],  # type and bytes of its metadata
                  ) -> None:
        "Store the state of a checkpoint."
        row = (*self._owner, *key, parent, run, *state, *about)
        with self.db.transaction():
            self.db.query(f"INSERT INTO {self._states} VALUES ({', '.join('?' * len(row))}) {_STATE_AGAIN.format(self._lead)}", row)

    def put_writes(self,
                   key: CheckpointKey,  # checkpoint that the writes follow
                   task: tuple[str, str],  # id of the task that made them, and its path in the graph
                   writes: Sequence[tuple[int, str, tuple[str, bytes]]],  # place, channel, and type and bytes of the value
                   ) -> None:
        "Store what a task wrote. The same task again changes only what has a place below 0: its error, interrupt and resume."
        with self.db.transaction():
            for place, channel, value in writes:
                row = (*self._owner, *key, task[0], place, task[1], channel, *value)
                again = _WRITE_AGAIN.format(self._lead) if place < 0 else "ON CONFLICT DO NOTHING"
                self.db.query(f"INSERT INTO {self._writes} VALUES ({', '.join('?' * len(row))}) {again}", row)

    def keys(self,
             thread: str | None = None,  # only those of this thread
             ns: str | None = None,      # only those of this subgraph
             id: str | None = None,      # only the one of this id
             before: str | None = None,  # only those with a lower id
             limit: int = NO_LIMIT,      # maximum number
             ) -> list[CheckpointKey]:
        "Return the keys of checkpoints, newest first."
        wanted = [("thread_id = ?", thread), ("checkpoint_ns = ?", ns), ("checkpoint_id = ?", id), ("checkpoint_id < ?", before)]
        given = [(test, value) for test, value in wanted if value is not None]
        where = " AND ".join(test for test, _ in given) or "1 = 1"
        rows = self.db.query(f"SELECT {KEY} FROM {self._states} WHERE {self._mine}{where} ORDER BY checkpoint_id DESC LIMIT ?",
                             [*self._owner, *(value for _, value in given), limit])
        return [(t, n, i) for t, n, i in rows]

    def read(self,
             key: CheckpointKey,  # checkpoint to read
             ) -> tuple[tuple[Any, ...] | None, list[tuple[Any, ...]]]:
        """Return a checkpoint's row (parent, type, state, type of the metadata, metadata; None: it is gone) and its writes (task, channel,
        type, value), of one moment."""
        one, values = f"{self._mine}thread_id = ? AND checkpoint_ns = ? AND checkpoint_id = ?", [*self._owner, *key]
        with self.db.snapshot():
            rows = self.db.query(f"SELECT parent_id, type, checkpoint, metadata_type, metadata FROM {self._states} WHERE {one}", values)
            writes = self.db.query(f"SELECT task_id, channel, type, value FROM {self._writes} WHERE {one} "
                                   "ORDER BY task_path, task_id, idx", values)
        return (rows[0] if rows else None), writes

    def copy(self,
             source: str,  # id of a thread
             target: str,  # id of the copy
             ) -> None:
        "Copy a thread with its whole history."
        with self.db.transaction():
            for table, rest, again in ((self._states, ", ".join(_STATE), _STATE_AGAIN),
                                       (self._writes, ", ".join(("task_id", "idx", *_WRITE)), _WRITE_AGAIN)):
                self.db.query(f"INSERT INTO {table} SELECT {self._lead}?, checkpoint_ns, checkpoint_id, {rest} FROM {table} "
                              f"WHERE {self._mine}thread_id = ? {again.format(self._lead)}", (target, *self._owner, source))

    def delete_thread(self,
                      thread: str,  # id of a thread
                      kept: Sequence[CheckpointKey] = (),  # checkpoints that stay
                      ) -> None:
        "Erase a thread, but for the checkpoints that stay; its bytes in a file go too, in a server with the next VACUUM."
        self._delete("thread_id = ? AND checkpoint_ns || ? || checkpoint_id NOT IN (SELECT value FROM json_each(?))",
                     [thread, "\n", json.dumps([f"{ns}\n{id}" for _, ns, id in kept])])

    def delete_runs(self,
                    runs: Sequence[str],  # ids of runs
                    ) -> None:
        "Erase what runs stored."
        self._delete("run_id IN (SELECT value FROM json_each(?))", [json.dumps(list(runs))])

    def _delete(self, where: str, values: Sequence[Any]) -> None:
        with self.db.transaction():
            mine = [*self._owner, *values]
            self.db.query(f"DELETE FROM {self._writes} WHERE {self._mine}({KEY}) IN (SELECT {KEY} FROM {self._states} "
                          f"WHERE {self._mine}{where})", [*self._owner, *mine])
            self.db.query(f"DELETE FROM {self._states} WHERE {self._mine}{where}", mine)
        self.db.query("PRAGMA wal_checkpoint(TRUNCATE)")  # a reader elsewhere may keep the log; the next deletion empties it
