"""A LangGraph checkpointer in a file or a server: threads survive a restart, can be copied and pruned, and are erased whole.

Needs `langgraph-checkpoint` (with LangGraph it is installed already). States of a graph are no memories: they are not searched, and
credentials in them stay. They have a file of their own, or lie in the store of a `Memory`, in its namespace: then they are part of its
backups and exports, and erasing the namespace takes them along. One class does both kinds of calls, with asyncio and without.
"""

from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from rlm.core.errors import need

need("langgraph.checkpoint.base", "The checkpointer for LangGraph", "langgraph")

from langgraph.checkpoint.base import WRITES_IDX_MAP, BaseCheckpointSaver, CheckpointTuple, get_checkpoint_id, get_checkpoint_metadata

from rlm.adapters.pages import check_memory
from rlm.service.memory import Memory, in_thread, run_in_thread
from rlm.store.threads import CheckpointKey, ThreadTable


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
        self.threads = ThreadTable(place.backend.db, place.ctx.namespace) if isinstance(place, Memory) else ThreadTable(place)

    def __enter__(self) -> "LangGraphCheckpointer":
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def close(self) -> None:
        "Close the file, unless it is a memory's, which stays open. Nothing is pending: what was put is stored."
        self.threads.close()

    def get_tuple(self,
                  config: Any,  # thread_id, checkpoint_ns, and checkpoint_id for an earlier one than the newest
                  ) -> CheckpointTuple | None:
        "Return a checkpoint with its pending writes, the newest of its thread unless one is named."
        asked = config["configurable"]
        key = str(asked["thread_id"]), asked.get("checkpoint_ns", ""), get_checkpoint_id(config)
        return next(self._tuples(self.threads.keys(*key, limit=1)), None)

    def list(self,
             config: Any,                              # the thread, and its namespace; None: all threads
             *,
             filter: Mapping[str, Any] | None = None,  # values that the metadata must have
             before: Any = None,                       # a checkpoint; only those older than it
             limit: int | None = None,                 # number of checkpoints, at most
             ) -> Iterator[CheckpointTuple]:
        "Yield checkpoints, newest first."
        asked = config["configurable"] if config else {}
        thread, older = asked.get("thread_id"), get_checkpoint_id(before) if before else None
        keys = self.threads.keys(None if thread is None else str(thread), asked.get("checkpoint_ns"), asked.get("checkpoint_id"), older)
        found = self._tuples(keys)
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
        self.threads.put_state((thread, ns, checkpoint["id"]), asked.get("checkpoint_id"), about.get("run_id"),
                               self.serde.dumps_typed(checkpoint), self.serde.dumps_typed(about))
        return thread_config(thread, ns, checkpoint["id"])

    def put_writes(self,
                   config: Any,                        # the checkpoint that the writes follow
                   writes: Sequence[tuple[str, Any]],  # channel and value
                   task_id: str,                       # id of the task that made them
                   task_path: str = "",                # its path in the graph
                   ) -> None:
        "Store what a task wrote. The same task again changes only its error, interrupt and resume."
        asked = config["configurable"]
        key = str(asked["thread_id"]), asked.get("checkpoint_ns", ""), asked["checkpoint_id"]
        self.threads.put_writes(key, (task_id, task_path), [(WRITES_IDX_MAP.get(channel, place), channel, self.serde.dumps_typed(value))
                                                            for place, (channel, value) in enumerate(writes)])

    def delete_thread(self,
                      thread_id: str,  # id of a thread
                      ) -> None:
        "Erase a thread: its checkpoints and writes, and their bytes in a file; in a server these go with the next VACUUM."
        self.threads.delete_thread(str(thread_id))

    def delete_for_runs(self,
                        run_ids: Sequence[str],  # ids of runs
                        ) -> None:
        "Erase what runs stored."
        self.threads.delete_runs(run_ids)

    def copy_thread(self,
                    source_thread_id: str,  # id of a thread
                    target_thread_id: str,  # id of the copy
                    ) -> None:
        "Copy a thread with its whole history."
        self.threads.copy(str(source_thread_id), str(target_thread_id))

    def prune(self,
              thread_ids: Sequence[str],       # ids of threads
              *,
              strategy: str = "keep_latest",   # or 'delete'
              ) -> None:
        "Erase all checkpoints of threads but the newest of each namespace, and those that its delta channels are computed from; or all."
        if strategy not in ("keep_latest", "delete"):
            raise ValueError(f"There is no strategy {strategy!r}. Known: keep_latest, delete.")
        for thread in map(str, thread_ids):
            kept = list[CheckpointKey]()
            if strategy == "keep_latest":
                for ns in dict.fromkeys(ns for _, ns, _ in self.threads.keys(thread)):
                    kept += [(thread, ns, id) for id in self._needed(thread, ns)]
            self.threads.delete_thread(thread, kept)

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

    def _tuples(self, keys: Sequence[CheckpointKey]) -> Iterator[CheckpointTuple]:
        "The checkpoints of keys; their states are read one by one."
        for key in keys:
            row, writes = self.threads.read(key)
            if row is not None:  # None: it was deleted meanwhile
                parent, kind, state, about_kind, about = row
                yield CheckpointTuple(
                    thread_config(*key), self._loaded(kind, state), self._loaded(about_kind, about),
                    thread_config(key[0], key[1], parent) if parent else None,
                    [(task, channel, self._loaded(type, value)) for task, channel, type, value in writes])

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
