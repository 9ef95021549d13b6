"""A LangGraph checkpointer in a file or a server: threads survive a restart, can be copied and pruned, and are erased whole.

Needs `langgraph-checkpoint` (with LangGraph it is installed already). States of a graph are no memories: they are not searched, and
credentials in them stay. They have a file of their own, or lie in the store of a `Memory`, in its namespace: then they are part of its
backups and exports, and erasing the namespace takes them along. One class does both kinds of calls, with asyncio and without.
"""

import json
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from rlm.core.errors import need

need("langgraph.checkpoint.base", "The checkpointer for LangGraph", "langgraph")

from langgraph.checkpoint.base import WRITES_IDX_MAP, BaseCheckpointSaver, CheckpointTuple, get_checkpoint_id, get_checkpoint_metadata

from rlm.adapters.pages import check_memory
from rlm.service.memory import Memory, in_thread, run_in_thread
from rlm.store.protocols import NO_LIMIT, Database
from rlm.store.sqlite.database import SQLiteDatabase
from rlm.store.sqlite.schema import Migration
from rlm.store.threads import KEY as _KEY
from rlm.store.threads import THREAD_TABLES, make_thread_tables

_SCHEMA = f"""
CREATE TABLE checkpoints (
  thread_id TEXT NOT NULL, checkpoint_ns TEXT NOT NULL, checkpoint_id TEXT NOT NULL, parent_id TEXT, run_id TEXT,
  type TEXT NOT NULL, checkpoint BLOB NOT NULL, metadata_type TEXT NOT NULL, metadata BLOB NOT NULL, PRIMARY KEY ({_KEY})) STRICT;
CREATE INDEX checkpoints_run ON checkpoints (run_id);
CREATE TABLE writes (
  thread_id TEXT NOT NULL, checkpoint_ns TEXT NOT NULL, checkpoint_id TEXT NOT NULL, task_id TEXT NOT NULL, idx INTEGER NOT NULL,
  task_path TEXT NOT NULL, channel TEXT NOT NULL, type TEXT NOT NULL, value BLOB NOT NULL, PRIMARY KEY ({_KEY}, task_id, idx)) STRICT;
"""


_STATE, _WRITE = ("parent_id", "run_id", "type", "checkpoint", "metadata_type", "metadata"), ("task_path", "channel", "type", "value")
_STATE_AGAIN, _WRITE_AGAIN = (  # end of an INSERT that replaces a row with the same key; `{}`: its first columns
    f"ON CONFLICT ({{}}{key}) DO UPDATE SET {', '.join(f'{c} = excluded.{c}' for c in columns)}"
    for key, columns in ((_KEY, _STATE), (f"{_KEY}, task_id, idx", _WRITE)))


def thread_config(thread_id: str,       # id of a thread
                  checkpoint_ns: str,   # namespace of a subgraph; empty: the graph itself
                  checkpoint_id: str,   # id of a checkpoint
                  ) -> dict[str, Any]:
    "Return the configuration that names one checkpoint."
    return {"configurable": {"thread_id": thread_id, "checkpoint_ns": checkpoint_ns, "checkpoint_id": checkpoint_id}}


class LangGraphCheckpointer(BaseCheckpointSaver):
    "Threads of LangGraph: `graph.compile(checkpointer=LangGraphCheckpointer(memory))`. Threads of the program may share it."

    def __init__(self,
                 place: "str | Path | Memory",  # an open memory, in whose namespace they are; or a file of their own; `:memory:` vanishes
                 serde: Any = None,             # LangGraph's serializer of states; None: its default
                 ) -> None:
        super().__init__(serde=serde)
        if not isinstance(place, str | Path):
            check_memory(place)
        self.namespace = place.ctx.namespace if isinstance(place, Memory) else None
        if isinstance(place, Memory):
            make_thread_tables(place.backend.db)
            self.db: Database = place.backend.db
            self._states, self._writes = THREAD_TABLES
            self._lead, self._mine = "namespace, ", "namespace = ? AND "
        else:
            self.db = SQLiteDatabase(place, migrations=(Migration(1, "the threads of LangGraph", _SCHEMA),))
            self._states, self._writes, self._lead, self._mine = "checkpoints", "writes", "", ""

    def __enter__(self) -> "LangGraphCheckpointer":
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def close(self) -> None:
        "Close the file, unless it is a memory's, which stays open. Nothing is pending: what was put is stored."
        if self.namespace is None:
            self.db.close()

    def get_tuple(self,
                  config: Any,  # thread_id, checkpoint_ns, and checkpoint_id for an earlier one than the newest
                  ) -> CheckpointTuple | None:
        "Return a checkpoint with its pending writes, the newest of its thread unless one is named."
        asked = config["configurable"]
        where, values = "thread_id = ? AND checkpoint_ns = ?", [str(asked["thread_id"]), asked.get("checkpoint_ns", "")]
        if (id := get_checkpoint_id(config)) is not None:
            where, values = f"{where} AND checkpoint_id = ?", [*values, id]
        return next(self._tuples(where, values, 1), None)

    def list(self,
             config: Any,                              # the thread, and its namespace; None: all threads
             *,
             filter: Mapping[str, Any] | None = None,  # values that the metadata must have
             before: Any = None,                       # a checkpoint; only those older than it
             limit: int | None = None,                 # number of checkpoints, at most
             ) -> Iterator[CheckpointTuple]:
        "Yield checkpoints, newest first."
        asked = config["configurable"] if config else {}
        wanted = [("thread_id = ?", asked.get("thread_id")), ("checkpoint_ns = ?", asked.get("checkpoint_ns")),
                  ("checkpoint_id = ?", asked.get("checkpoint_id")), ("checkpoint_id < ?", get_checkpoint_id(before) if before else None)]
        given = [(test, str(value)) for test, value in wanted if value is not None]
        found = self._tuples(" AND ".join(test for test, _ in given) or "1 = 1", [value for _, value in given], NO_LIMIT)
        for number, one in enumerate(t for t in found if all(t.metadata.get(k) == v for k, v in (filter or {}).items())):
            if limit is not None and number >= limit:
                return
            yield one

    def put(self,
            config: Any,        # the thread, and the checkpoint that this one follows
            checkpoint: Any,    # the state
            metadata: Any,      # source, step, run_id …
            new_versions: Any,  # versions of the channels that changed; the whole state is stored
            ) -> Any:
        "Store a checkpoint, and return the configuration that names it."
        asked, about = config["configurable"], get_checkpoint_metadata(config, metadata)
        thread, ns = str(asked["thread_id"]), asked.get("checkpoint_ns", "")
        row = (*self._owner, thread, ns, checkpoint["id"], asked.get("checkpoint_id"), about.get("run_id"),
               *self.serde.dumps_typed(checkpoint), *self.serde.dumps_typed(about))
        with self.db.transaction():
            self.db.query(f"INSERT INTO {self._states} VALUES ({', '.join('?' * len(row))}) {_STATE_AGAIN.format(self._lead)}", row)
        return thread_config(thread, ns, checkpoint["id"])

    def put_writes(self,
                   config: Any,                        # the checkpoint that the writes follow
                   writes: Sequence[tuple[str, Any]],  # channel and value
                   task_id: str,                       # id of the task that made them
                   task_path: str = "",                # its path in the graph
                   ) -> None:
        "Store what a task wrote. The same task again changes only its error, interrupt and resume."
        asked = config["configurable"]
        key = (*self._owner, str(asked["thread_id"]), asked.get("checkpoint_ns", ""), asked["checkpoint_id"], task_id)
        rows = [(*key, WRITES_IDX_MAP.get(channel, place), task_path, channel, *self.serde.dumps_typed(value))
                for place, (channel, value) in enumerate(writes)]
        with self.db.transaction():
            for row in rows:
                again = _WRITE_AGAIN.format(self._lead) if row[len(key)] < 0 else "ON CONFLICT DO NOTHING"
                self.db.query(f"INSERT INTO {self._writes} VALUES ({', '.join('?' * len(row))}) {again}", row)

    def delete_thread(self,
                      thread_id: str,  # id of a thread
                      ) -> None:
        "Erase a thread: its checkpoints and writes, and their bytes in a file; in a server these go with the next VACUUM."
        self._delete("thread_id = ?", [str(thread_id)])

    def delete_for_runs(self,
                        run_ids: Sequence[str],  # ids of runs
                        ) -> None:
        "Erase what runs stored."
        self._delete("run_id IN (SELECT value FROM json_each(?))", [json.dumps(list(run_ids))])

    def copy_thread(self,
                    source_thread_id: str,  # id of a thread
                    target_thread_id: str,  # id of the copy
                    ) -> None:
        "Copy a thread with its whole history."
        with self.db.transaction():
            for table, rest, again in ((self._states, ", ".join(_STATE), _STATE_AGAIN),
                                       (self._writes, ", ".join(("task_id", "idx", *_WRITE)), _WRITE_AGAIN)):
                self.db.query(f"INSERT INTO {table} SELECT {self._lead}?, checkpoint_ns, checkpoint_id, {rest} FROM {table} "
                              f"WHERE {self._mine}thread_id = ? {again.format(self._lead)}",
                              (str(target_thread_id), *self._owner, str(source_thread_id)))

    def prune(self,
              thread_ids: Sequence[str],       # ids of threads
              *,
              strategy: str = "keep_latest",   # or 'delete'
              ) -> None:
        "Erase all checkpoints of threads but the newest of each namespace, and those that its delta channels are computed from; or all."
        if strategy not in ("keep_latest", "delete"):
            raise ValueError(f"There is no strategy {strategy!r}. Known: keep_latest, delete.")
        for thread in map(str, thread_ids):
            kept = list[str]()
            if strategy == "keep_latest":
                for (ns,) in self.db.query(f"SELECT DISTINCT checkpoint_ns FROM {self._states} WHERE {self._mine}thread_id = ?",
                                           [*self._owner, thread]):
                    kept += [f"{ns}\n{id}" for id in self._needed(thread, ns)]
            self._delete("thread_id = ? AND checkpoint_ns || ? || checkpoint_id NOT IN (SELECT value FROM json_each(?))",
                         [thread, "\n", json.dumps(kept)])

    aget_tuple = in_thread(get_tuple)

    async def alist(self,
                    config: Any,                              # same as in `list`
                    *,
                    filter: Mapping[str, Any] | None = None,  # same as in `list`
                    before: Any = None,                       # same as in `list`
                    limit: int | None = None,                 # same as in `list`
                    ) -> AsyncIterator[CheckpointTuple]:
        "Do what `list` does, in a thread."
        def found() -> tuple[CheckpointTuple, ...]:
            return tuple(self.list(config, filter=filter, before=before, limit=limit))
        for one in await run_in_thread(found):
            yield one

    aput = in_thread(put)
    aput_writes = in_thread(put_writes)
    adelete_thread = in_thread(delete_thread)
    adelete_for_runs = in_thread(delete_for_runs)
    acopy_thread = in_thread(copy_thread)
    aprune = in_thread(prune)

    def _tuples(self, where: str, values: Sequence[Any], limit: int) -> Iterator[CheckpointTuple]:
        "The checkpoints that a condition names, newest first; their ids are read at once, their states one by one."
        keys = self.db.query(f"SELECT {_KEY} FROM {self._states} WHERE {self._mine}{where} ORDER BY checkpoint_id DESC LIMIT ?",
                             [*self._owner, *values, limit])
        one = f"{self._mine}thread_id = ? AND checkpoint_ns = ? AND checkpoint_id = ?"
        for key in keys:
            with self.db.snapshot():  # state and writes of one moment
                rows = self.db.query(f"SELECT parent_id, type, checkpoint, metadata_type, metadata FROM {self._states} WHERE {one}",
                                     [*self._owner, *key])
                writes = self.db.query(f"SELECT task_id, channel, type, value FROM {self._writes} WHERE {one} "
                                       "ORDER BY task_path, task_id, idx", [*self._owner, *key])
            for parent, kind, state, about_kind, about in rows:  # none, where it was deleted meanwhile
                yield CheckpointTuple(
                    thread_config(*key), self._loaded(kind, state), self._loaded(about_kind, about),
                    thread_config(key[0], key[1], parent) if parent else None,
                    [(task, channel, self._loaded(type, value)) for task, channel, type, value in writes])

    @property
    def _owner(self) -> tuple[str, ...]:
        "What stands before the other values of a row: the namespace, in a store."
        return () if self.namespace is None else (self.namespace,)

    def _loaded(self, kind: str, value: bytes) -> Any:
        return self.serde.loads_typed((kind, value))

    def _needed(self, thread: str, ns: str) -> Iterator[str]:
        "The newest checkpoint of a namespace, and those before it until each delta channel has a stored value."
        one = self.get_tuple({"configurable": {"thread_id": thread, "checkpoint_ns": ns}})
        open_channels = set(one.metadata.get("counters_since_delta_snapshot") or ()) if one else set()
        while one:
            yield one.config["configurable"]["checkpoint_id"]
            open_channels -= set(one.checkpoint["channel_values"])
            one = self.get_tuple(one.parent_config) if open_channels and one.parent_config else None

    def _delete(self, where: str, values: Sequence[Any]) -> None:
        with self.db.transaction():
            mine = [*self._owner, *values]
            self.db.query(f"DELETE FROM {self._writes} WHERE {self._mine}({_KEY}) IN (SELECT {_KEY} FROM {self._states} "
                          f"WHERE {self._mine}{where})", [*self._owner, *mine])
            self.db.query(f"DELETE FROM {self._states} WHERE {self._mine}{where}", mine)
        self.db.query("PRAGMA wal_checkpoint(TRUNCATE)")  # a reader elsewhere may keep the log; the next deletion empties it
