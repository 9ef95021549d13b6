"""A `MemoryStore` of pydantic-ai-harness over a `Memory`: notes of an agent, found by words and meaning, with their history.

Needs `pydantic-ai-harness`. A note is a memory. What the last write of a note was asked to do is kept with it, so that the same write again
changes nothing, after a restart too; deletions that are asked for again are known for as long as the store is open.
"""

from collections.abc import Mapping
from typing import Any

from rlm.core.errors import AlreadyExists, NotFound, VersionConflict, need

need("pydantic_ai_harness", "The store for pydantic-ai-harness", "pydantic_ai")

from pydantic_ai_harness.memory import (
    MemoryConflictError, MemoryFile, MemoryMutation, MemoryOperation, MemoryOperationConflictError, MemorySearchMatch, MemorySearchResult,
)

from rlm.adapters.pages import AS_GIVEN, check_memory
from rlm.core.ids import digest
from rlm.core.text import is_blank
from rlm.service.memory import Memory, run_in_thread
from rlm.store.records import MemoryRecord

MOST_DELETIONS = 1024  # deletions that are remembered, the latest ones


class NotebookStore:
    "Notes of an agent: `Agent(…, capabilities=[Memory(NotebookStore(memory))])`, where `Memory` is the harness's. Threads may share it."

    def __init__(self,
                 memory: Memory,  # the notes' namespace, which holds nothing else
                 ) -> None:
        check_memory(memory)
        self.memory = memory
        self._deleted = dict[str, str]()  # id of an operation that deleted something → its fingerprint

    async def read(self,
                   path: str,       # path of a note
                   *,
                   max_chars: int,  # characters of it, at most
                   ) -> MemoryFile | None:
        "Return a note; None: there is none."
        record = await run_in_thread(self._find, path)
        if record is None:
            return None
        text, kept = _content(record), record.extra
        return MemoryFile(text[:max_chars], _version(record), kept.get("operation"), len(text) > max_chars, kept.get("metadata"))

    async def get_operation(self,
                            operation: MemoryOperation,  # id and fingerprint of a write or a deletion
                            ) -> MemoryMutation | None:
        "Return what an operation did, if it was done already. Raises `MemoryOperationConflictError` for another one of its id."
        return await run_in_thread(self._done, operation)

    async def write(self,
                    path: str,                      # path of a note
                    content: str,                   # its text
                    *,
                    expected_version: str | None,   # version to replace; None: there is none
                    operation: MemoryOperation | None = None,  # makes the same call again harmless
                    ) -> MemoryMutation:
        "Write a note. Raises `MemoryConflictError` if it is not in the version expected."
        return await self.write_with_metadata(path, content, expected_version=expected_version, metadata=None, operation=operation)

    async def write_with_metadata(self,
                                  path: str,                      # same as in `write`
                                  content: str,                   # same as in `write`
                                  *,
                                  expected_version: str | None,   # same as in `write`
                                  metadata: Mapping[str, str] | None,  # kept with this version
                                  operation: MemoryOperation | None = None,  # same as in `write`
                                  ) -> MemoryMutation:
        "Write a note, and what is to be known of this version."
        return await run_in_thread(self._write, path, content, expected_version, dict(metadata or {}), operation)

    async def delete(self,
                     path: str,                     # path of a note
                     *,
                     expected_version: str | None,  # version to delete; None: there is none
                     operation: MemoryOperation | None = None,  # makes the same call again harmless
                     ) -> MemoryMutation:
        "Delete a note; it can be restored, as any memory. Raises `MemoryConflictError` if it is not in the version expected."
        return await run_in_thread(self._delete, path, expected_version, operation)

    async def list_paths(self,
                         prefix: str = "",  # beginning of paths
                         *,
                         limit: int,        # number of paths, at most
                         ) -> list[str]:
        "Return the paths of notes, in order."
        paths = await run_in_thread(lambda: sorted(self.memory.stats()["by_category"]))
        return [path for path in paths if path.startswith(prefix)][:limit]

    async def search(self,
                     prefix: str,          # notes directly below it, and no others
                     query: str,           # words in any language
                     *,
                     limit: int,           # number of notes, at most
                     max_files: int,       # notes that are looked at, at most
                     max_chars: int,       # characters of all passages together, at most
                     max_file_chars: int,  # characters of a note; not used: the index knows all
                     ) -> MemorySearchResult:
        "Return the passages of notes that answer a question, best first."
        if is_blank(query) or min(limit, max_files, max_chars) <= 0:
            return MemorySearchResult([], 0, False)
        hits = await run_in_thread(self.memory.search, query, max_files, tags=[_folder_tag(prefix)])
        matches, room = list[MemorySearchMatch](), max_chars
        for hit, score in zip(hits, hits.falling_scores(), strict=True):
            path = hit.memory.category or ""
            if len(matches) < limit and room > 0 and path.startswith(prefix):
                matches.append(MemorySearchMatch(path, hit.passage.text[:room], score))
                room -= len(hit.passage.text)
        return MemorySearchResult(matches, len(hits), room < 0)

    def _find(self, path: str) -> MemoryRecord | None:
        try:
            return self.memory.get(_note_id(path))
        except NotFound:
            return None

    def _done(self, operation: MemoryOperation) -> MemoryMutation | None:
        known, found = self._deleted.get(operation.id), MemoryMutation(None, True, True)
        if known is None and (records := self.memory.list(1, tags=[_operation_tag(operation.id)])):
            kept = records[0].extra
            known, found = str(kept["fingerprint"]), MemoryMutation(_version(records[0]), True, bool(kept["existed"]))
        if known not in (None, operation.fingerprint):
            raise MemoryOperationConflictError(f"operation id {operation.id!r} was reused with different arguments")
        return None if known is None else found

    def _write(self, path: str, content: str, expected: str | None, metadata: dict[str, str],
               operation: MemoryOperation | None) -> MemoryMutation:
        if operation is not None and (done := self._done(operation)) is not None:
            return done
        record = self._expected(path, expected)
        about = {"operation": operation.id, "fingerprint": operation.fingerprint, "existed": record is not None} if operation else {}
        extra = about | ({"metadata": metadata} if metadata else {}) | ({} if not is_blank(content) else {"blank": content})
        fields: dict[str, Any] = {"text": path if is_blank(content) else content, "extra": extra,
                                  "tags": [_folder_tag(path), *([_operation_tag(operation.id)] if operation else [])]}
        try:
            if record is None:
                made = self.memory.write(id=_note_id(path), category=path, source_type="notebook", provenance=AS_GIVEN, **fields)
            else:
                made = self.memory.update(record.id, if_version=record.version, **fields)
        except (AlreadyExists, VersionConflict, NotFound) as e:
            raise _conflict(path) from e
        return MemoryMutation(_version(made), False, record is not None)

    def _delete(self, path: str, expected: str | None, operation: MemoryOperation | None) -> MemoryMutation:
        if operation is not None and (done := self._done(operation)) is not None:
            return done
        if (record := self._expected(path, expected)) is not None:
            try:
                self.memory.delete(record.id, if_version=record.version)
            except (VersionConflict, NotFound) as e:
                raise _conflict(path) from e
        if operation is not None:
            self._deleted[operation.id] = operation.fingerprint
            while len(self._deleted) > MOST_DELETIONS:
                del self._deleted[next(iter(self._deleted))]
        return MemoryMutation(None, False, record is not None)

    def _expected(self, path: str, expected: str | None) -> MemoryRecord | None:
        "The note, which must be in this version."
        record = self._find(path)
        if (None if record is None else _version(record)) != expected:
            raise _conflict(path)
        return record


def _note_id(path: str) -> str:
    return f"note-{digest('note', path)}"


def _operation_tag(id: str) -> str:
    return f"operation-{digest('operation', id)}"


def _folder_tag(path: str) -> str:
    return f"folder-{digest('folder', path[:path.rfind('/') + 1])}"


def _version(record: MemoryRecord) -> str:
    return f"{record.seq}.{record.version}"  # a note that was deleted and written anew has another number


def _content(record: MemoryRecord) -> str:
    return str(record.extra.get("blank", record.text))


def _conflict(path: str) -> MemoryConflictError:
    return MemoryConflictError(f"memory path {path!r} is not in the version expected")
