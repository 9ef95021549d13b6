"""Corrections that a model asked for and a person has not decided about yet.

A model may not reject a memory for good: what it asks for is written into the log, as an event of the kind `propose` about that memory. It
waits until the memory is rejected or deleted, or a person dismisses it, which the log says too.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from rlm.core.clock import to_iso
from rlm.core.errors import NotFound
from rlm.core.guard import guarded_value
from rlm.core.text import valid_text
from rlm.store.records import Event, MemoryRecord

from .memory import Memory

KINDS = ("propose", "dismiss", "reject", "delete", "erase")  # events that begin and end a proposal
MAX_REASON = 1000  # characters


@dataclass(frozen=True, slots=True)
class RejectionProposal:
    "A rejection that waits for a person."

    memory: MemoryRecord  # memory that would be rejected
    reason: str  # why, in the words of whoever asked for it; empty: not said
    at: datetime  # when it was asked for
    actor: Mapping[str, Any]  # provenance of the caller

    def as_dict(self) -> dict[str, Any]:
        "Return it for JSON."
        return {"id": self.memory.id, "text": self.memory.text, "reason": self.reason, "at": to_iso(self.at), "actor": dict(self.actor)}


def _log(memory: Memory, kind: str, id: str, detail: Mapping[str, Any]) -> None:
    with memory.backend.transaction() as tx:
        tx.log([Event(memory.clock.now(), kind, id, memory.ctx.namespace, detail)])


def propose_rejection(memory: Memory,             # open namespace
                      id: str,                    # id of the memory that is said to be wrong
                      reason: str,                # why; empty: not said
                      actor: Mapping[str, Any],   # provenance of the caller
                      ) -> RejectionProposal:
    "Write down that somebody who may not reject a memory wants it rejected. Raises `NotFound`, `InvalidInput`."
    record = memory.get(id)
    why = guarded_value(valid_text(reason, "reason", MAX_REASON), memory.settings.secrets, "reason") if reason else ""
    _log(memory, "propose", record.id, {"action": "reject", "reason": why, "actor": dict(actor)})
    return RejectionProposal(record, why, memory.clock.now(), actor)


def open_proposals(memory: Memory,  # open namespace
                   ) -> list[RejectionProposal]:
    "Return what waits for a person, oldest first; of several about one memory the last."
    waiting = dict[str, Event]()
    for event in memory.backend.events(memory.ctx.namespace, kinds=KINDS):
        if event.subject is not None:
            waiting.pop(event.subject, None)
            if event.kind == "propose":
                waiting[event.subject] = event
    records = {r.id: r for r in memory.backend.get(list(waiting), memory.ctx.namespace)}
    return [RejectionProposal(records[id], str(e.detail.get("reason", "")), e.at, e.detail.get("actor", {}))
            for id, e in waiting.items() if id in records]


def dismiss_proposal(memory: Memory,       # open namespace
                     id: str,              # id of the memory
                     actor: str = "human",  # author of the decision
                     ) -> RejectionProposal:
    "Let a memory stand that was proposed to be rejected, and return the proposal. Raises `NotFound`."
    found = next((p for p in open_proposals(memory) if p.memory.id == id), None)
    if found is None:
        raise NotFound(f"Nothing is proposed about the memory {id!r}.", "See what waits with: rlm review proposals")
    _log(memory, "dismiss", id, {"action": "reject", "actor": actor})
    return found
