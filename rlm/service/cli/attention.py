"""Command `rlm attention status`: what is in mind."""

from typing import Any

import click

from rlm.core.clock import to_iso
from rlm.core.text import clip
from rlm.recall.coordinator import SearchCoordinator
from rlm.service.cli.common import Group, example, print_rows, with_memory
from rlm.service.memory import Memory


@click.group("attention", cls=Group)
def attention_group() -> None:
    "Look at what is in mind: subjects, and the memories they lead to."


def status_of(attention: SearchCoordinator,  # attention of one namespace
              ) -> dict[str, Any]:
    "For JSON: the slots with their checkpoints, and what the layers did in this process."
    with attention.lock:
        attention.peek()
        now = attention.clock.now()
        memory, refs = attention.state.working_memory, attention.state.checkpoints.of
        records = attention.records([r.seq for s in memory.slots.values() for r in refs(s)])
        slots = [{"slot": s.slot_id, "context": s.context, "strength": round(s.strength(now), 3), "uses": s.uses,
                  "last_used_at": to_iso(s.last_used_at), "context_hash": s.context_hash,
                  "checkpoints": [{"id": records[r.seq].id, "relevance": round(r.relevance, 3), "distance": round(r.distance, 3),
                                   "text": records[r.seq].text} for r in refs(s) if r.seq in records]}
                 for s in memory.get_active_slots(now, 0.0)]
        return {"checkpoints": attention.checkpoints(), "slots": slots, "unstored": attention.unstored,
                "counts": attention.counts.as_dict()}


@attention_group.command(epilog=example("rlm attention status", "rlm attention status --json"))
@with_memory()
def status(memory: Memory, as_json: bool) -> None:
    "Show the subjects in mind, the strongest first, and where each leads."
    found = status_of(memory.attention)
    rows = [(s["slot"], s["strength"], s["uses"], clip(s["context"], 40), clip("; ".join(c["text"] for c in s["checkpoints"]), 60))
            for s in found["slots"]]
    print_rows(as_json, found, rows, ["slot", "strength", "uses", "subject", "leads to"])
