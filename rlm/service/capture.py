"""What is kept of words that are said again, and of a prompt that nobody asked to remember: what it states, once; a question or an
order states nothing.
"""

from dataclasses import dataclass
from typing import Any

from rlm.companion.composer import without_block
from rlm.companion.memory_facts import noted_answer
from rlm.companion.policy import FORGETS, PolicyDecision, Reward
from rlm.companion.rejection import RejectedValue
from rlm.core.errors import VersionConflict
from rlm.core.text import valid_text
from rlm.store.records import MemoryRecord

from .memory import Memory
from .proposals import propose_forgetting


MAX_WORDS = 300  # characters by which the same words are looked for; the rest is compared
DETAILS = frozenset({"speaker", "role", "category", "tags", "pinned", "title", "summary"})  # fields of a statement


def known_already(memory: Memory,       # open namespace
                  text: str,            # words to remember
                  speaker: str | None,  # speaker
                  ) -> MemoryRecord | None:
    "Return a current memory with these very words of this speaker, white space and capitals aside; None: there is none."
    words = _plain(valid_text(text))
    query = memory.searcher.parse(text[:MAX_WORDS], {"kind": "block"})  # by words alone: nothing has to be embedded for it
    found = (hit.memory for hit in memory.searcher.full_text(query, 10)) if query.terms else ()
    return next((r for r in found if r.speaker == speaker and _plain(r.text) == words), None)


def _plain(text: str) -> str:
    return " ".join(text.split()).casefold()


def same_again(memory: Memory,          # open namespace
               text: str,               # words to remember
               fields: dict[str, Any],  # fields that were given with them
               ) -> MemoryRecord | None:
    """Return the memory that says the same already, used once more; None: there is none, or what is given makes it another one: an id, a
    time, a conversation, or details that the known one does not have. Raises `InvalidInput`."""
    if not text.strip() or not fields.keys() <= DETAILS:
        return None
    known = known_already(memory, text, fields.get("speaker"))
    if known is None or not set(fields.get("tags", ())) <= set(known.tags):
        return None
    if any(getattr(known, name) != value for name, value in fields.items() if name != "tags"):
        return None
    memory.feedback(known.id, used=1)
    return memory.get(known.id)


def write_once(memory: Memory,              # open namespace
               text: str,                   # words to remember
               fields: dict[str, Any],      # fields that were given with them
               provenance: dict[str, Any],  # origin
               **near: Any,                 # slot, policy and context, as `write` takes them
               ) -> tuple[MemoryRecord, bool]:  # the memory, and whether it was known
    """Store a memory, or return the one that says the same already; of callers who say the same at one moment, one stores it. With a slot
    it is stored in any case. Raises what `same_again` and `write` raise."""
    log, namespace = memory.backend.event_log, memory.ctx.namespace
    while True:
        last = log.position()[1]
        if near.get("slot") is None and (known := same_again(memory, text, fields)) is not None:
            return known, True
        if any(value is not None for value in near.values()):
            return memory.write(text, **near, **fields, provenance=provenance), False
        record = memory.writer.prepare({"text": text, **fields, "provenance": provenance}, memory.clock.now())

        def refuse_raced(last: int = last, record: MemoryRecord = record) -> None:
            new = memory.backend.get([id for _, id in log.written_since(namespace, last, 1000)], namespace)
            if any(r.speaker == record.speaker and _plain(r.text) == _plain(record.text) for r in new):
                raise VersionConflict("The same was stored by someone else meanwhile.", "Look for it.")
        try:
            return memory.writer.insert([record], 1, check=refuse_raced)[0], False
        except VersionConflict:
            continue


@dataclass(frozen=True, slots=True)
class CapturedPrompt:
    "What became of a prompt."

    kept: bool  # there is a memory of it
    reason: str  # why, or why not, in one line
    memory: MemoryRecord | None = None  # the memory; None: it was not kept
    duplicate: bool = False  # whether it was known already, so that nothing was stored

    def as_dict(self) -> dict[str, Any]:
        "Return the fields for JSON."
        found = {"kept": self.kept, "reason": self.reason, "duplicate": self.duplicate}
        redacted = {"redacted": list(self.memory.redacted)} if self.memory is not None and self.memory.redacted else {}
        return found | ({} if self.memory is None else {"id": self.memory.id}) | redacted


def decide_prompt(memory: Memory,              # open namespace
                  text: str,                   # words of a person to a model
                  session: str | None = None,  # conversation whose last stored turn the prompt may answer
                  ) -> PolicyDecision:
    "Return what `capture_prompt` would decide. Nothing is changed."
    return memory.companion.decide(without_block(text), None if session is None else memory.companion.after_stored(session))


@dataclass(frozen=True, slots=True)
class TaughtPolicy:
    "What feedback on the decision about a turn has taught."

    judged: PolicyDecision  # decision that the feedback is about
    reward: Reward  # reward that was read from the feedback; 0: it says nothing, and nothing was learned
    now: PolicyDecision  # decision about the same turn afterwards

    def as_dict(self) -> dict[str, Any]:
        "Return the fields for JSON."
        return {"judged": self.judged.as_dict(), "reward": self.reward.value, "why": self.reward.reason, "now": self.now.as_dict()}

    def __str__(self) -> str:
        learned = f"Learned {self.reward.value:+g}" if self.reward.value else "Nothing was learned"
        return f"{learned}: {self.reward.reason}.\nIt was: {self.judged}\nIt is:  {self.now}"


def teach_policy(memory: Memory,              # open namespace
                 text: str,                   # turn of a person
                 feedback: "float | str",     # number, `save` or `skip`, or words, as `Companion.learn` takes them
                 session: str | None = None,  # conversation whose last stored turn it may answer
                 ) -> TaughtPolicy:
    "Learn whether the decision about a turn is right, as the policy makes it now. Raises `InvalidInput`, `StoreError`."
    judged = decide_prompt(memory, text, session)
    reward = memory.companion.learn(judged, feedback)
    return TaughtPolicy(judged, reward, decide_prompt(memory, text, session) if reward.value else judged)


def capture_prompt(memory: Memory,              # open namespace
                   text: str,                   # words of a person to a model
                   provenance: dict[str, Any],  # origin
                   session: str | None = None,  # conversation of which the answers are stored: the prompt may answer what the last one asks
                   ) -> CapturedPrompt:
    """Store a prompt if the companion's policy finds it worth keeping, and return what became of it. One that asks to forget something
    proposes what is to be deleted. Raises `InvalidInput`, `StoreError`."""
    decision = decide_prompt(memory, text := without_block(text), session)
    if not decision.save:
        named = propose_forgetting(memory.reader, memory.searcher, text, provenance) if decision.reason == FORGETS else ()
        return CapturedPrompt(False, decision.reason + (f"; {len(named)} would be deleted: rlm review proposals" if named else ""))
    try:
        kept, known = write_once(memory, text, {"role": "user"} | decision.title, provenance | noted_answer(decision.answers, text))
        return CapturedPrompt(True, "it was known already" if known else decision.reason, kept, known)
    except RejectedValue as e:
        return CapturedPrompt(False, e.message)
