"""Conversations of agent frameworks kept in a `Memory`: for the OpenAI Agents SDK and the Claude Agent SDK.

Each item of a conversation is a memory of its session. What was said is found by later searches; calls of tools, their answers and other
lines are stored, and not recalled. Items come back as they were given, except for credentials, which are taken out (setting `secrets`).
Neither class needs its framework to be installed: both are given and give plain dictionaries.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from rlm.adapters.pages import check_memory, every_memory
from rlm.core.errors import InvalidInput
from rlm.core.ids import digest, new_id
from rlm.service.input_parsing import content_text, read_list
from rlm.service.memory import Memory, run_in_thread
from rlm.store.records import MemoryRecord

_SAID = ("user", "assistant")  # roles whose words are recalled


def words_of(item: Mapping[str, Any],  # an item, or the message within one
             ) -> str:
    "Return what an item says; empty for one that is no message."
    content = item.get("content")
    if isinstance(content, Sequence) and not isinstance(content, str):
        content = content_text([p for p in content if isinstance(p, Mapping) and isinstance(p.get("text"), str)])
    return content.strip() if isinstance(content, str) else ""


def turn_fields(item: Mapping[str, Any],  # an item of a conversation
                message: Mapping[str, Any],  # the message that it holds: itself, or a part of it
                id: str,                  # id of its memory
                ) -> dict[str, Any]:
    "Return an item as a turn of a conversation, with the item itself beside its words."
    text, role = words_of(message), message.get("role")
    plain = json.loads(json.dumps(item, ensure_ascii=False))
    said = bool(text) and role in _SAID
    label = str(item.get("type") or role or "item")
    return {"id": id, "text": text or f"[{label}]", "role": role if role in _SAID else "tool", "extra": {"item": plain},
            **({} if said else {"status": "archived"})}


class AgentSession:
    "A session of the OpenAI Agents SDK: give it to `Runner.run(…, session=AgentSession('chat-7', memory))`. Threads may share it."

    def __init__(self,
                 session_id: str,  # id of the conversation
                 memory: Memory,   # namespace of the conversation
                 ) -> None:
        check_memory(memory)
        self.session_id, self.memory = session_id, memory
        self.session_settings: Any = None  # the SDK's own; not used here

    async def get_items(self,
                        limit: int | None = None,  # maximum number, the latest ones; None: all
                        wrapper: Any = None,       # context of the run; not used
                        ) -> list[Any]:            # oldest first
        "Return the items of the conversation."
        return await run_in_thread(self._items, limit)

    async def add_items(self,
                        items: list[Any],     # in order
                        wrapper: Any = None,  # context of the run; not used
                        ) -> None:
        "Add items to the conversation, all or none."
        if wrong := [item for item in read_list(items, "items") if not isinstance(item, Mapping)]:
            raise InvalidInput(f"An item is given as {type(wrong[0]).__name__}.", "Give dictionaries with role and content.")
        turns = [turn_fields(item, item, new_id()) for item in items]
        if turns:
            await run_in_thread(self._add, turns)

    async def pop_item(self,
                       wrapper: Any = None,  # context of the run; not used
                       ) -> Any | None:      # None: there is none
        "Take the latest item out of the conversation, and return it."
        return await run_in_thread(self._pop)

    async def clear_session(self,
                            wrapper: Any = None,  # context of the run; not used
                            ) -> None:
        "Delete all items of the conversation. They can be restored, as any memory; `rlm memory delete --erase` leaves no trace."
        await run_in_thread(self._clear)

    def _add(self, turns: list[dict[str, Any]]) -> None:
        "Store turns as they are: the SDK hands over what is new, and what it has taken out once more."
        writer = self.memory.writer
        writer.insert(writer.prepare_turns(turns, self.session_id, {"source_type": "openai-agents"}), len(turns))

    def _items(self, limit: int | None) -> list[Any]:
        found = list[Any]()
        for record in every_memory(self.memory, session=self.session_id):
            if limit is not None and len(found) >= limit:
                break
            found.append(record.extra["item"])
        return found[::-1]

    def _pop(self) -> Any | None:
        for record in every_memory(self.memory, session=self.session_id):
            self.memory.delete(record.id)
            return record.extra["item"]
        return None

    def _clear(self) -> None:
        if ids := [r.id for r in every_memory(self.memory, session=self.session_id)]:
            self.memory.delete(ids, restart=True)


class TranscriptStore:
    "A `SessionStore` of the Claude Agent SDK: a copy of its transcripts, for `ClaudeAgentOptions(session_store=TranscriptStore(memory))`."

    def __init__(self,
                 memory: Memory,  # the transcripts' namespace, which holds nothing else
                 ) -> None:
        check_memory(memory)
        self.memory = memory

    async def append(self,
                     key: Any,            # project_key, session_id, and subpath for a subagent
                     entries: list[Any],  # lines of a transcript, in order
                     ) -> None:
        "Add lines; a line whose `uuid` is there already is left alone."
        await run_in_thread(self._append, key, entries)

    async def load(self,
                   key: Any,  # project_key, session_id, and subpath for a subagent
                   ) -> list[Any] | None:  # oldest first; None: there is no such transcript
        "Return the lines of a transcript."
        found = await run_in_thread(lambda: [r.extra["item"] for r in every_memory(self.memory, session=_session(key))])
        return found[::-1] or None

    async def list_sessions(self,
                            project_key: str,  # the project
                            ) -> list[Any]:    # session_id, and mtime in milliseconds since 1970
        "Return the sessions of a project."
        return await run_in_thread(self._sessions, project_key)

    async def delete(self,
                     key: Any,  # project_key, session_id, and subpath for a subagent
                     ) -> None:
        "Delete a transcript; with that of a session those of its subagents."
        await run_in_thread(self._delete, key)

    async def list_subkeys(self,
                           key: Any,  # project_key and session_id
                           ) -> list[str]:
        "Return the subpaths of a session's subagents."
        return await run_in_thread(lambda: sorted({r.provenance["subpath"] for r in self._of_session(key) if r.provenance.get("subpath")}))

    def _append(self, key: Any, entries: list[Any]) -> None:
        session, turns = _session(key), dict[str, dict[str, Any]]()
        for entry in entries:
            id = f"line-{digest(session, str(entry['uuid']))}" if entry.get("uuid") else new_id()
            message = entry.get("message") if isinstance(entry.get("message"), Mapping) else {}
            turns.setdefault(id, turn_fields(entry, message, id))
        here = {r.id for r in self.memory.backend.get(list(turns), self.memory.ctx.namespace)}
        if new := [turn for id, turn in turns.items() if id not in here]:
            source = {"source": "claude-agent-sdk", "project_key": key["project_key"], "session_id": key["session_id"]}
            source |= {"subpath": key["subpath"]} if key.get("subpath") else {}
            self.memory.add_conversation(new, session, provenance=source, tags=[_project_tag(key["project_key"]), _session_tag(key)])

    def _of_session(self, key: Any) -> Iterator[MemoryRecord]:
        return every_memory(self.memory, tags=[_session_tag(key)])

    def _sessions(self, project_key: str) -> list[Any]:
        latest = dict[str, int]()
        for r in every_memory(self.memory, tags=[_project_tag(project_key)]):
            if not r.provenance.get("subpath"):
                name, at = r.provenance["session_id"], int(1000 * r.created_at.timestamp())
                latest[name] = max(at, latest.get(name, 0))
        return [{"session_id": name, "mtime": at} for name, at in latest.items()]

    def _delete(self, key: Any) -> None:
        found = every_memory(self.memory, session=_session(key)) if key.get("subpath") else self._of_session(key)
        if ids := [r.id for r in found]:
            self.memory.delete(ids, restart=True)


def _session(key: Any) -> str:
    return f"transcript-{digest(key['project_key'], key['session_id'], key.get('subpath') or '')}"


def _session_tag(key: Any) -> str:
    return f"session-{digest(key['project_key'], key['session_id'])}"


def _project_tag(project_key: str) -> str:
    return f"project-{digest('project', project_key)}"
