"""What is kept of a prompt that nobody asked to remember: what it states, once; a question or an order states nothing."""

from dataclasses import dataclass
from typing import Any

from rlm.companion.composer import without_block
from rlm.companion.rejection import RejectedValue
from rlm.store.records import MemoryRecord

from .duplicates import same_again
from .memory import Memory


@dataclass(frozen=True, slots=True)
class CapturedPrompt:
    "What became of a prompt."

    kept: bool  # there is a memory of it
    reason: str  # why, or why not, in one line
    memory: MemoryRecord | None = None  # the memory; None: it was not kept
    duplicate: bool = False  # it was known already, and nothing was stored

    def as_dict(self) -> dict[str, Any]:
        "Return the fields for JSON."
        found = {"kept": self.kept, "reason": self.reason, "duplicate": self.duplicate}
        return found | ({} if self.memory is None else {"id": self.memory.id})


def capture_prompt(memory: Memory,              # open namespace
                   text: str,                   # words of a person to a model
                   provenance: dict[str, Any],  # where it comes from
                   ) -> CapturedPrompt:
    "Store a prompt if the companion's policy finds it worth keeping, and return what became of it. Raises `InvalidInput`, `StoreError`."
    decision = memory.companion.decide(text := without_block(text))
    if not decision.save:
        return CapturedPrompt(False, decision.reason)
    if (known := same_again(memory, text, {"role": "user"})) is not None:
        return CapturedPrompt(True, "it was known already", known, True)
    try:
        return CapturedPrompt(True, decision.reason, memory.write(text, role="user", provenance=provenance))
    except RejectedValue as e:
        return CapturedPrompt(False, e.message)
