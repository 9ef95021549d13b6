"""A memory service of Google's Agent Development Kit over a `Memory`: sessions are kept, and found by words and meaning.

Needs `google-adk`. What users said is told apart by a tag, which every search and deletion asks for.
"""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from rlm.core.errors import NotFound, need

need("google.adk", "The memory service for ADK", "adk")

from google.adk.memory.base_memory_service import BaseMemoryService, SearchMemoryResponse
from google.adk.memory.memory_entry import MemoryEntry
from google.genai.types import Content, Part

from rlm.adapters.pages import check_memory
from rlm.core.ids import digest
from rlm.service.memory import Memory, run_in_thread
from rlm.store.records import MemoryRecord

FOUND = 10  # memories that a search returns, at most


def words_of(content: Any,  # contents of an event or a memory; None: none
             ) -> str:
    "Return the texts of contents, thoughts left out."
    parts = (getattr(content, "parts", None) or ()) if content is not None else ()
    return "\n".join(p.text for p in parts if p.text and not p.thought).strip()


class AdkMemoryService(BaseMemoryService):
    "Long-term memory for ADK's runner: `Runner(…, memory_service=AdkMemoryService(memory))`."

    def __init__(self,
                 memory: Memory,  # the service's namespace, which holds nothing else
                 ) -> None:
        check_memory(memory)
        self.memory = memory

    async def add_session_to_memory(self,
                                    session: Any,  # a session, whole; what is kept of it as it stands is left alone
                                    ) -> None:
        "Keep what was said in a session."
        await self.add_events_to_memory(app_name=session.app_name, user_id=session.user_id, events=session.events, session_id=session.id)

    async def add_events_to_memory(self,
                                   *,
                                   app_name: str,           # name of the application
                                   user_id: str,            # id of the user
                                   events: Sequence[Any],   # events, in order
                                   session_id: str | None = None,  # id of the session; None: a new conversation
                                   custom_metadata: Mapping[str, object] | None = None,  # kept beside each memory
                                   ) -> None:
        "Keep what was said in events, once each; an event whose words the application has changed meanwhile changes its memory."
        turns = [{"id": f"event-{digest(app_name, user_id, session_id or '', e.id)}", "text": text, "speaker": e.author,
                  "role": "user" if e.author == "user" else "assistant", "valid_from": datetime.fromtimestamp(e.timestamp, UTC)}
                 for e in events if (text := words_of(e.content))]
        session = None if session_id is None else f"adk-{digest(app_name, user_id, session_id)}"
        await run_in_thread(self._add, {t["id"]: t for t in turns}, session, app_name, user_id, dict(custom_metadata or {}))

    async def add_memory(self,
                         *,
                         app_name: str,                    # name of the application
                         user_id: str,                     # id of the user
                         memories: Sequence[MemoryEntry],  # entries to keep
                         custom_metadata: Mapping[str, object] | None = None,  # kept beside each memory
                         ) -> None:
        "Keep memories as they are given."
        items = [{"text": words_of(m.content), "speaker": m.author, "tags": [user_tag(app_name, user_id)],
                  "valid_from": m.timestamp, "extra": {**(custom_metadata or {}), **m.custom_metadata}} for m in memories]
        await self.memory.awrite_many([{name: value for name, value in item.items() if value is not None} for item in items])

    async def search_memory(self,
                            *,
                            app_name: str,  # name of the application
                            user_id: str,   # id of the user
                            query: str,     # words in any language
                            ) -> SearchMemoryResponse:
        "Return what was kept of a user and answers a question, best first."
        hits = await self.memory.asearch(query, FOUND, tags=[user_tag(app_name, user_id)])
        return SearchMemoryResponse(memories=[_entry(h.memory) for h in hits])

    async def delete_memory(self,
                            *,
                            app_name: str,  # name of the application
                            user_id: str,   # id of the user
                            memory_id: str | None = None,  # id of a memory; None: nothing is deleted
                            ) -> None:
        "Delete a memory of a user; it can be restored, as any memory. Raises `NotFound`, also for another user's."
        if memory_id is None:
            return
        if user_tag(app_name, user_id) not in (await self.memory.aget(memory_id)).tags:
            raise NotFound(f"There is no memory {memory_id!r} of this user.", "`search_memory` returns their ids.")
        await self.memory.adelete(memory_id)

    def _add(self, turns: dict[str, dict[str, Any]], session: str | None, app_name: str, user_id: str, extra: dict[str, Any]) -> None:
        known = self.memory.backend.memories.latest(list(turns), self.memory.ctx.namespace)  # deleted ones too: they stay deleted
        here = {r.id: r for r in known}
        for id in {r.id for r in self.memory.backend.get(list(here), self.memory.ctx.namespace)}:
            text = self.memory.writer.prepare(turns[id], self.memory.clock.now()).text  # without credentials, as it is stored
            if text != here[id].text and text not in {r.text for r in self.memory.history(id).versions}:  # a person's words stay
                self.memory.update(id, text=text)
        if new := [turn for id, turn in turns.items() if id not in here]:
            self.memory.add_conversation(new, session, tags=[user_tag(app_name, user_id)], extra=extra, source_type="google-adk",
                                         provenance={"app_name": app_name, "user_id": user_id})


def user_tag(app_name: str,  # name of the application
             user_id: str,   # id of the user
             ) -> str:
    "Return the tag of a user's memories; no two users of any applications share one."
    return f"user-{digest(app_name, user_id)}"


def _entry(record: MemoryRecord) -> MemoryEntry:
    role = "model" if record.role == "assistant" else "user"
    return MemoryEntry(id=record.id, author=record.speaker, timestamp=record.valid_from.isoformat(), custom_metadata=dict(record.extra),
                       content=Content(role=role, parts=[Part(text=record.text)]))
