"""Corrections that were asked for and that a person has not decided about yet.

A model may not reject a memory for good, and a turn that asks to forget something does not say which memories it means. What is asked for
is written into the log, as an event of the kind `propose` about a memory. It waits until the memory is rejected or deleted, or a person
dismisses it, which the log says too.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

from rlm.companion.policy import forgotten_subject
from rlm.core.clock import to_iso
from rlm.core.errors import NotFound
from rlm.core.guard import guarded_value
from rlm.core.text import tokens, valid_text
from rlm.core.text.normal_form import LazyPattern
from rlm.store.filters import Filters
from rlm.store.records import STATUSES, Event, MemoryRecord
from rlm.store.storage import SQLStorage

from .reader import MemoryReader
from .searcher import MemorySearcher

KINDS = ("propose", "dismiss", "reject", "delete", "erase")  # events that begin and end a proposal
MAX_REASON = 1000  # characters
ABOUT = 0.5  # relevance from which a memory is about something without having all its words
MOST_ABOUT = 500  # memories that are looked at
MOST_FORGOTTEN = 10  # memories that one turn proposes to delete, at most
TAKEN_BACK = "it was said to be a joke, or made up"  # reason of such a proposal
_TAKEN_ABOUT = LazyPattern(r"\babout (?P<about>[^.,;!?]+)", re.I)
ASKED_TO_FORGET = "it was asked to be forgotten"  # reason of such a proposal: the words that asked may tell what is to be forgotten


@dataclass(frozen=True, slots=True)
class CorrectionProposal:
    "A correction that waits for a person."

    memory: MemoryRecord  # memory that would be rejected or deleted
    reason: str  # why, in the words of whoever asked for it; empty: not said
    at: datetime  # when it was asked for
    actor: Mapping[str, Any]  # provenance of the caller
    action: Literal["reject", "delete"] = "reject"  # what is asked for: reject, it is wrong; delete, it is to be forgotten

    def as_dict(self) -> dict[str, Any]:
        "Return the proposal as a dictionary for JSON, with the memory as its id and text."
        return {"id": self.memory.id, "text": self.memory.text, "reason": self.reason, "at": to_iso(self.at), "actor": dict(self.actor),
                "action": self.action}


def _log(reader: MemoryReader, kind: str, ids: list[str], detail: Mapping[str, Any]) -> None:
    with reader.storage.transaction() as tx:
        tx.log([Event(reader.ctx.clock.now(), kind, id, reader.namespace, detail) for id in ids])


def propose_rejection(reader: MemoryReader,       # looks up memories
                      id: str,                    # id of the memory that is said to be wrong
                      reason: str,                # why; empty: not said
                      actor: Mapping[str, Any],   # provenance of the caller
                      ) -> CorrectionProposal:
    "Write down that somebody who may not reject a memory wants it rejected. Raises `NotFound`, `InvalidInput`."
    record = reader.get(id)
    why = guarded_value(valid_text(reason, "reason", MAX_REASON), reader.ctx.settings.secrets, "reason") if reason else ""
    _log(reader, "propose", [record.id], {"action": "reject", "reason": why, "actor": dict(actor)})
    return CorrectionProposal(record, why, reader.ctx.clock.now(), actor)


def memories_about(searcher: MemorySearcher,  # finds by words and meaning
                   about: str,                # a subject, such as *the garage code*
                   ) -> list[MemoryRecord]:
    """Return the memories about a subject, those that fit best first: what has each of its words, current or not, and what more likely
    than not answers it. Rules and strategies are not among them. Raises `InvalidInput`."""
    query = searcher.parse(about, {"kind": "block"})
    whole = query._replace(filters=Filters.read(kind="block", status=STATUSES))
    likely = searcher.search(searcher.parse(about, {"kind": "block", "status": "any"}), 50)
    found = {h.id: h.memory for h in likely if (h.relevance or 0.0) >= ABOUT}
    for hit in searcher.full_text(whole, MOST_ABOUT) if query.terms else ():
        if set(query.terms) <= set(tokens(" ".join((hit.memory.title or "", hit.text, *hit.memory.tags)))):
            found.setdefault(hit.id, hit.memory)
    return list(found.values())


def propose_forgetting(reader: MemoryReader,      # looks up memories
                       searcher: MemorySearcher,  # finds what is meant
                       turn: str,                 # words that ask to forget something
                       actor: Mapping[str, Any],  # provenance of the caller
                       ) -> list[CorrectionProposal]:       # those that fit best first, ten at most; empty: it is not clear what is meant
    "Write down which memories a turn asks to forget, and return them: a person deletes them, or lets them stand. Immutable ones stay."
    subject, now = forgotten_subject(turn), reader.ctx.clock.now()
    found = [r for r in memories_about(searcher, subject) if not r.immutable][:MOST_FORGOTTEN] if subject else []
    if found:
        _log(reader, "propose", [r.id for r in found], {"action": "delete", "reason": ASKED_TO_FORGET, "actor": dict(actor)})
    return [CorrectionProposal(r, ASKED_TO_FORGET, now, actor, "delete") for r in found]


def taken_back(reader: MemoryReader,      # looks up memories
               id: str,                   # id of the memory that the turn before became
               turn: str,                 # words that take it back, such as *I was joking about the yacht*
               actor: Mapping[str, Any],  # provenance of the caller
               ) -> list[CorrectionProposal]:  # one, or none where the words name something else
    "Propose to reject the memory of the turn before, which is served as disputed until a person decides."
    found = reader.storage.get([id], reader.namespace)
    about = {term for m in _TAKEN_ABOUT.finditer(turn) for term in tokens(m["about"])}
    if not found or (about and about.isdisjoint(tokens(found[0].text))):
        return []
    return [propose_rejection(reader, id, TAKEN_BACK, actor)]


def open_proposals(reader: MemoryReader) -> list[CorrectionProposal]:
    "Return what waits for a person, oldest first; of several about one memory the last."
    waiting = dict[str, Event]()
    for event in reader.storage.events(reader.namespace, kinds=KINDS):
        if event.subject is not None:
            waiting.pop(event.subject, None)
            if event.kind == "propose":
                waiting[event.subject] = event
    records = {r.id: r for r in reader.storage.get(list(waiting), reader.namespace)}
    return [CorrectionProposal(records[id], str(e.detail.get("reason", "")), e.at, e.detail.get("actor", {}),
                               e.detail.get("action", "reject"))
            for id, e in waiting.items() if id in records]


def marked_as_doubted(storage: SQLStorage,               # the store
                      namespace: str,                    # partition of the memories
                      records: Sequence[MemoryRecord],   # memories that are about to be served
                      ) -> dict[str, MemoryRecord]:      # id → memory, of those
    "Return the memories that somebody has asked to reject, as disputed: a person has not decided yet."
    asked = storage.event_log.proposed(namespace, [r.id for r in records])
    return {r.id: r.changed(provenance={**r.provenance, "trust": "disputed"}) for r in records if r.id in asked}


def dismiss_proposal(reader: MemoryReader,  # looks up memories
                     id: str,               # id of the memory
                     actor: str = "human",  # author of the decision
                     ) -> CorrectionProposal:
    "Let a memory stand that was proposed to be rejected or deleted, and return the proposal. Raises `NotFound`."
    known = reader.known_id(id)
    found = next((p for p in open_proposals(reader) if p.memory.id == known), None)
    if found is None:
        raise NotFound(f"Nothing is proposed about the memory {id!r}.", "See what waits with: rlm review proposals")
    _log(reader, "dismiss", [known], {"action": found.action, "actor": actor})
    return found
