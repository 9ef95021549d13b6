"""A storage backend for CrewAI's unified memory: its records are memories of a namespace, searched, corrected and erased like all others.

Needs `crewai`, whose pins want an environment of their own. CrewAI embeds by itself and asks by a vector alone, so its vectors are kept
with each record and compared here; the store's own model embeds the words as well, for everybody else who asks.
"""

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import numpy as np
from rlm.core.errors import NotFound, need

need("crewai", "The storage for CrewAI", "")

from crewai.memory.storage.backend import EmbeddingDimensionMismatchError
from crewai.memory.types import MemoryRecord as CrewRecord
from crewai.memory.types import ScopeInfo

from rlm.adapters.pages import check_memory, every_memory
from rlm.service.memory import Memory, in_thread
from rlm.store.records import MemoryRecord

TAG = "crewai"  # tag of all memories that hold a record
DIGITS = 5  # decimals of a vector that are kept
_KEPT = ("scope", "categories", "metadata", "importance", "source", "private")  # fields of a record that are no fields of a memory


def aware(moment: datetime,  # CrewAI's moments have no zone and are UTC
          ) -> datetime:
    "Return a moment with its zone."
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def crew_record(memory: MemoryRecord,  # memory that holds a record
                ) -> CrewRecord:
    "Return the record that a memory holds."
    extra = dict(memory.extra)
    moments = {"created_at": memory.valid_from.replace(tzinfo=None), "last_accessed": datetime.fromisoformat(extra["last_accessed"])}
    return CrewRecord(id=memory.id, content=memory.text, embedding=extra.get("embedding"), **moments, **{n: extra[n] for n in _KEPT})


class CrewAIStorage:
    "CrewAI's `StorageBackend` over a `Memory`: `crewai.Memory(storage=CrewAIStorage(memory))`. Threads may share it."

    def __init__(self,
                 memory: Memory,  # an open namespace, best one of its own
                 ) -> None:
        check_memory(memory)
        self.memory = memory

    def save(self,
             records: Sequence[CrewRecord],  # with the vectors that CrewAI made
             ) -> None:
        "Store records, those whose ids are known as new versions. Raises CrewAI's error for vectors of another length than before."
        for record in records:
            self.update(record)

    def update(self,
               record: CrewRecord,  # takes the place of the one with its id
               ) -> None:
        "Store one record."
        vector = None if record.embedding is None else [round(float(x), DIGITS) for x in record.embedding]
        extra = {n: getattr(record, n) for n in _KEPT} | {"last_accessed": aware(record.last_accessed).replace(tzinfo=None).isoformat()}
        extra |= {} if vector is None else {"embedding": vector}
        tags = [TAG, *(c for c in record.categories if c.strip() and c != TAG)]
        if vector is not None and (known := next(self._vectors(None), None)) is not None and len(known[1]) != len(vector):
            raise EmbeddingDimensionMismatchError(len(known[1]), len(vector))
        try:
            self.memory.update(record.id, text=record.content, tags=tags, extra=extra)
        except NotFound:
            self.memory.write(record.content, id=record.id, tags=tags, extra=extra, valid_from=aware(record.created_at),
                              provenance={"source": "crewai"})

    def search(self,
               query_embedding: Sequence[float],  # vector of the question, by the same embedder
               scope_prefix: str | None = None,   # only this scope and those below it
               categories: Sequence[str] | None = None,  # only with one of them
               metadata_filter: Mapping[str, Any] | None = None,  # only with these values
               limit: int = 10,                   # records at most
               min_score: float = 0.0,            # least cosine
               ) -> list[tuple[CrewRecord, float]]:
        "Return the records nearest to a vector with their cosines, best first; what has ended is not served."
        now = self.memory.clock.now()
        found = [(m, v) for m, v in self._vectors(scope_prefix, categories, metadata_filter) if m.valid_to is None or m.valid_to > now]
        if not found:
            return []
        if len(found[0][1]) != len(query_embedding):
            raise EmbeddingDimensionMismatchError(len(found[0][1]), len(query_embedding))
        matrix, asked = np.array([v for _, v in found], np.float32), np.asarray(query_embedding, np.float32)
        scores = matrix @ asked / np.maximum(np.linalg.norm(matrix, axis=1) * np.linalg.norm(asked), 1e-9)
        ranked = sorted(((float(s), m) for s, (m, _) in zip(scores, found, strict=True)), key=lambda pair: (-pair[0], pair[1].id))
        return [(crew_record(m), max(0.0, s)) for s, m in ranked[:limit] if max(0.0, s) >= min_score]

    def delete(self,
               scope_prefix: str | None = None,  # only this scope and those below it
               categories: Sequence[str] | None = None,  # only with one of them
               record_ids: Sequence[str] | None = None,  # only these
               older_than: datetime | None = None,  # only those made before
               metadata_filter: Mapping[str, Any] | None = None,  # only with these values
               ) -> int:
        "Erase the records that pass all filters, and return how many they were."
        ids = [m.id for m in self._kept(scope_prefix, categories, metadata_filter)
               if (record_ids is None or m.id in set(record_ids)) and (older_than is None or m.valid_from < aware(older_than))]
        return self.memory.delete(ids, erase=True) if ids else 0

    def get_record(self,
                   record_id: str,  # id of a record
                   ) -> CrewRecord | None:
        "Return one record; None: there is none of this id."
        try:
            found = self.memory.get(record_id)
        except NotFound:
            return None
        return crew_record(found) if TAG in found.tags else None

    def list_records(self,
                     scope_prefix: str | None = None,  # only this scope and those below it
                     limit: int = 200,                 # records at most
                     offset: int = 0,                  # records that are passed over
                     ) -> list[CrewRecord]:
        "Return records, the newest first."
        found = sorted(self._kept(scope_prefix), key=lambda m: (m.valid_from, m.id), reverse=True)
        return [crew_record(m) for m in found[offset:offset + limit]]

    def get_scope_info(self,
                       scope: str,  # a scope
                       ) -> ScopeInfo:
        "Return what lies in a scope and below it."
        found = [crew_record(m) for m in self._kept(scope)]
        made = sorted(r.created_at for r in found)
        names = sorted({c for r in found for c in r.categories})
        return ScopeInfo(path=scope.rstrip("/") or "/", record_count=len(found), categories=names,
                         oldest_record=made[0] if made else None, newest_record=made[-1] if made else None,
                         child_scopes=self.list_scopes(scope))

    def list_scopes(self,
                    parent: str = "/",  # a scope
                    ) -> list[str]:
        "Return the scopes right below another one."
        top = parent.rstrip("/")
        below = {str(m.extra["scope"])[len(top) + 1:].split("/")[0] for m in self._kept(parent) if str(m.extra["scope"]).rstrip("/") != top}
        return sorted(f"{top}/{name}" for name in below if name)

    def list_categories(self,
                        scope_prefix: str | None = None,  # only this scope and those below it
                        ) -> dict[str, int]:
        "Return how many records each category has."
        every = [c for m in self._kept(scope_prefix) for c in m.extra["categories"]]
        return {c: every.count(c) for c in dict.fromkeys(every)}

    def count(self,
              scope_prefix: str | None = None,  # only this scope and those below it
              ) -> int:
        "Return how many records there are."
        return sum(1 for _ in self._kept(scope_prefix))

    def reset(self,
              scope_prefix: str | None = None,  # only this scope and those below it; None: everything
              ) -> None:
        "Erase the records of a scope. Other memories of the namespace stay."
        self.delete(scope_prefix)

    asave = in_thread(save)
    asearch = in_thread(search)
    adelete = in_thread(delete)

    def _kept(self, scope_prefix: str | None, categories: Sequence[str] | None = None,
              metadata_filter: Mapping[str, Any] | None = None) -> Iterator[MemoryRecord]:
        "Memories that hold records and pass the filters."
        top = (scope_prefix or "").rstrip("/")
        for m in every_memory(self.memory, tags=[TAG]):
            about, scope = m.extra, str(m.extra["scope"])
            inside = not top or scope == top or scope.startswith(f"{top}/")
            if inside and (not categories or set(categories) & set(about["categories"])) and all(
                    about["metadata"].get(k) == v for k, v in (metadata_filter or {}).items()):
                yield m

    def _vectors(self, scope_prefix: str | None, categories: Sequence[str] | None = None,
                 metadata_filter: Mapping[str, Any] | None = None) -> Iterator[tuple[MemoryRecord, Sequence[float]]]:
        "Memories with vectors that pass the filters."
        return ((m, m.extra["embedding"]) for m in self._kept(scope_prefix, categories, metadata_filter) if "embedding" in m.extra)
