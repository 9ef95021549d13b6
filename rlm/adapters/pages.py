"""All memories that pass some filters, whatever their number."""

from collections.abc import Iterator
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
