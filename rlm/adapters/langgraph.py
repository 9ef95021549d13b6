"""A LangGraph store over a `Memory`: what an agent puts there is found by words and meaning, has a history, and survives a restart.

Needs `langgraph-checkpoint` (with LangGraph it is installed already). An item is a memory: its words are those of the indexed fields, and
the value lies beside them, in `extra`. Credentials in a value are taken out as on every way in (setting `secrets`).
"""

import json
import operator
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import timedelta
from typing import Any

from rlm.core.errors import InvalidInput, NotFound, need

need("langgraph.store.base", "The store for LangGraph", "langgraph")

from langgraph.store.base import (
    BaseStore, GetOp, Item, ListNamespacesOp, MatchCondition, Op, PutOp, Result, SearchItem, SearchOp, TTLConfig, get_text_at_path,
    tokenize_path, validate_op_namespace,
)

from rlm.adapters.pages import AS_GIVEN, check_memory, every_memory
from rlm.core.ids import digest
from rlm.core.text import is_blank
from rlm.service.memory import Memory, run_in_thread
from rlm.store.filters import Filters
from rlm.store.records import MemoryRecord

MOST_FOUND = 10_000  # memories that one question is compared with, at most
_COMPARE: dict[str, Callable[[Any, Any], bool]] = {
    "$eq": operator.eq, "$ne": operator.ne, "$gt": operator.gt, "$gte": operator.ge, "$lt": operator.lt, "$lte": operator.le}


def item_id(namespace: Sequence[str],  # path of the item
            key: str,                  # its key there
            ) -> str:
    "Return the id of the memory that holds an item; no two items share one, whatever their labels."
    return f"item-{digest('key', *namespace, key)}"


def prefix_tag(prefix: Sequence[str],  # beginning of a path
               ) -> str:
    "Return the tag that all memories below a path have."
    return f"below-{digest('path', *prefix)}"


def passes(value: Mapping[str, Any],          # value of an item
           wanted: Mapping[str, Any] | None,  # field → value, or operator → operand
           ) -> bool:
    "Return whether a value has the fields that a filter asks for. Raises `ValueError` for an unknown operator."
    for name, operand in (wanted or {}).items():
        tests = operand if isinstance(operand, Mapping) and any(str(k).startswith("$") for k in operand) else {"$eq": operand}
        for op, other in tests.items():
            if op not in _COMPARE:
                raise ValueError(f"There is no operator {op!r} for the field {name!r}. Known: {', '.join(_COMPARE)}.")
            found = value.get(name)
            try:
                if not _COMPARE[op](found, other):
                    return False
            except TypeError:  # a text beside a number, or nothing at all
                return False
    return True


def leaf_texts(value: object,   # value of an item, or a part of it
               name: str = "",  # path of the part
               ) -> Iterator[str]:
    "Yield the texts and numbers of a value; numbers with the name of their field."
    if isinstance(value, Mapping):
        for key, inner in value.items():
            yield from leaf_texts(inner, str(key))
    elif isinstance(value, list | tuple):
        for inner in value:
            yield from leaf_texts(inner, name)
    elif isinstance(value, str):
        yield value
    elif value is not None:
        yield f"{name}: {value}" if name else str(value)


class LangGraphStore(BaseStore):
    "A LangGraph store over a memory. Threads may share it."

    supports_ttl = True
    __slots__ = ("fields", "memory", "ttl_config")

    def __init__(self,
                 memory: Memory,               # the items' namespace, which holds nothing else
                 fields: Sequence[str] = ("$",),  # paths whose texts are found by a search; $ is the whole value
                 ttl: TTLConfig | None = None,  # lifetime of items in LangGraph's form; items that are over it are never returned
                 ) -> None:
        check_memory(memory)
        self.memory, self.fields, self.ttl_config = memory, tuple(fields), ttl

    def batch(self,
              ops: Iterable[Op],  # operations, in any order
              ) -> list[Result]:  # one for each
        "Do several operations: what reads first, then what writes; of several writes to a key the last one counts."
        listed = list(ops)
        for op in listed:
            validate_op_namespace(op)
        results: list[Result] = [None if isinstance(op, PutOp) else self._read(op) for op in listed]
        for put in {(op.namespace, op.key): op for op in listed if isinstance(op, PutOp)}.values():
            self._put(put)
        return results

    async def abatch(self,
                     ops: Iterable[Op],  # operations, in any order
                     ) -> list[Result]:  # one for each
        "Do several operations in a thread."
        return await run_in_thread(self.batch, list(ops))

    def sweep_ttl(self) -> int:
        "Delete the items whose time is up; return how many. What is deleted can be restored, as any memory."
        every = Filters.read(status="any", tags=[prefix_tag(())])  # without a moment, those that are over are among them
        gone = [r.id for r in self.memory.backend.find(self.memory.ctx.namespace, every, 2**53) if self._expired(r)]
        return self.memory.delete(gone) if gone else 0

    def erase(self,
              prefix: Sequence[str],  # beginning of a path, such as that of a user who leaves: ("users", "mina")
              ) -> int:               # number of items, deleted ones included
        "Remove the items below a path out of the store for good, with their history. Raises `InvalidInput`, `StoreError`."
        if isinstance(prefix, str) or not prefix:
            raise InvalidInput(f"The prefix is {prefix!r}.", 'Give its labels, such as ("users", "mina").')
        gone = self.memory.backend.memories.ids_tagged(self.memory.ctx.namespace, prefix_tag(prefix))
        return self.memory.delete(gone, erase=True) if gone else 0

    def _read(self, op: Op) -> Result:
        if isinstance(op, GetOp):
            return self._get(op)
        return self._search(op) if isinstance(op, SearchOp) else self._namespaces(op)

    def _expired(self, record: MemoryRecord) -> bool:
        return record.valid_to is not None and record.valid_to <= self.memory.clock.now()

    def _get(self, op: GetOp) -> Item | None:
        try:
            record = self.memory.get(item_id(op.namespace, op.key))
        except NotFound:
            return None
        if self._expired(record):
            return None
        if op.refresh_ttl:
            self._refresh(record)
        return Item(**_item(record))

    def _refresh(self, record: MemoryRecord) -> None:
        "Let an item live on from now, if it has a time to live."
        minutes = record.extra["item"].get("ttl")
        if minutes is not None and not self.memory.backend.read_only:
            self.memory.update(record.id, valid_to=self.memory.clock.now() + timedelta(minutes=minutes))

    def _put(self, op: PutOp) -> None:
        id = item_id(op.namespace, op.key)
        known = bool(self.memory.backend.get([id], self.memory.ctx.namespace))
        if op.value is None:
            if known:
                self.memory.delete(id)
            return
        value = json.loads(json.dumps(op.value, ensure_ascii=False))  # a later change of the caller's is not ours
        until = None if op.ttl is None else self.memory.clock.now() + timedelta(minutes=op.ttl)
        item = {"namespace": list(op.namespace), "key": op.key, "value": value, "ttl": op.ttl, "indexed": op.index is not False}
        fields: dict[str, Any] = {"text": self._words(op, value), "extra": {"item": item}, "valid_to": until}
        if known:
            self.memory.update(id, **fields)
        else:
            tags = [prefix_tag(op.namespace[:n]) for n in range(len(op.namespace) + 1)]
            self.memory.write(id=id, tags=tags, source_type="langgraph", provenance=AS_GIVEN,
                              category=json.dumps([*op.namespace], ensure_ascii=False), **fields)

    def _words(self, op: PutOp, value: Mapping[str, Any]) -> str:
        "What an item is found by; its path where the value has no words."
        paths = op.index if isinstance(op.index, list) else self.fields if op.index is None else ()
        found = [text for path in paths for text in
                 (leaf_texts(value) if path == "$" else get_text_at_path(value, tokenize_path(path)))]
        return "\n".join(text for text in found if not is_blank(text)) or f"[{' / '.join([*op.namespace, op.key])}]"

    def _all(self, prefix: Sequence[str]) -> Iterator[MemoryRecord]:
        "All items below a path, those stored last first."
        return every_memory(self.memory, tags=[prefix_tag(prefix)])

    def _search(self, op: SearchOp) -> list[SearchItem]:
        found: list[tuple[MemoryRecord, float | None]]
        if op.query is None or is_blank(op.query):
            every = sorted(self._all(op.namespace_prefix), key=lambda r: r.updated_at, reverse=True)
            found = [(r, None) for r in every if self._matches(r, op)]
        else:
            found = self._found(op, op.query)
        chosen = found[op.offset:op.offset + op.limit]
        if op.refresh_ttl:
            for record, _ in chosen:
                self._refresh(record)
        return [SearchItem(**_item(record), score=score) for record, score in chosen]

    def _found(self, op: SearchOp, query: str) -> list[tuple[MemoryRecord, float | None]]:
        "The items that answer a question, best first: enough of them for the page that is asked for, after the filter."
        wanted, k = op.offset + op.limit, max(50, 4 * (op.offset + op.limit))
        while True:
            hits = self.memory.search(query, min(k, MOST_FOUND), min_score=0.0, tags=[prefix_tag(op.namespace_prefix)], status="any")
            found: list[tuple[MemoryRecord, float | None]] = [
                (h.memory, score) for h, score in zip(hits, hits.falling_scores(), strict=True)
                if h.memory.extra["item"]["indexed"] and self._matches(h.memory, op)]
            if len(found) >= wanted or len(hits) < k or k >= MOST_FOUND:
                return found
            k *= 4

    def _matches(self, record: MemoryRecord, op: SearchOp) -> bool:
        return not self._expired(record) and passes(record.extra["item"]["value"], op.filter)

    def _namespaces(self, op: ListNamespacesOp) -> list[tuple[str, ...]]:
        counts = self.memory.stats()["by_category"]
        paths = {tuple(json.loads(name)) for name in counts if name.startswith("[")}
        chosen = {path[:op.max_depth] for path in paths if all(matches_path(path, c) for c in op.match_conditions or ())}
        return sorted(chosen)[op.offset:op.offset + op.limit]


def matches_path(path: Sequence[str],        # path of a namespace
                 condition: MatchCondition,  # prefix or suffix, in which * stands for any one label
                 ) -> bool:
    "Return whether a path begins or ends as a condition says."
    n = len(condition.path)
    part = path[:n] if condition.match_type == "prefix" else path[len(path) - n:]
    return len(path) >= n and all(want in ("*", label) for want, label in zip(condition.path, part, strict=True))


def _item(record: MemoryRecord) -> dict[str, Any]:
    "The fields of an item."
    item = record.extra["item"]
    return {"namespace": tuple(item["namespace"]), "key": item["key"], "value": item["value"], "created_at": record.created_at,
            "updated_at": record.updated_at}
