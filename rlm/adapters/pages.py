"""All memories that pass some filters, whatever their number, and what a conversation does not hold yet."""

from collections.abc import Iterator, Mapping, Sequence
from difflib import SequenceMatcher
from typing import Any

from rlm.service.memory import Memory
from rlm.store.records import MemoryRecord

PAGE = 1000  # memories read at a time
AS_GIVEN = {"facts": False}  # provenance of an item that a program keeps: it ends no other, and none ends it


def every_memory(memory: Memory,  # an open namespace
                 **filters: Any,  # session, tags, category …, as `Memory.list` takes them
                 ) -> Iterator[MemoryRecord]:  # those stored last first
    "Yield all memories that pass filters, of any status."
    cursor = None
    while True:
        page = memory.list(PAGE, cursor=cursor, status="any", **filters)
        yield from page
        if (cursor := page.next_cursor) is None:
            return


def new_turns(memory: Any,           # an open namespace, or one behind a server
              session: str | None,   # the conversation; None: a new one
              turns: Sequence[Mapping[str, Any]],  # turns as a framework hands them over, each with role and text
              ) -> list[Mapping[str, Any]]:
    """Return the turns that a conversation does not hold yet. Some programs hand their whole history over at each run, trimmed or edited:
    two turns that stand together there as they do here are history, and so is what both begin with. One alone may be said again."""
    if session is None or not turns:
        return list(turns)
    held = [(r.role, r.text) for r in memory.list(PAGE, session=session, status="any")][::-1]
    shared = SequenceMatcher(None, held, [(t["role"], t["text"]) for t in turns], autojunk=False).get_matching_blocks()
    end = max((b.b + b.size for b in shared if b.size > 1 or b.a == b.b == 0), default=0)
    known = {n for b in shared for n in range(b.b, b.b + b.size) if n < end}
    return [turn for n, turn in enumerate(turns) if n not in known]
