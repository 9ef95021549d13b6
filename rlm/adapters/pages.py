"""What adapters share: the memory that they are given is looked at, and all memories that pass some filters are read."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from rlm.core.errors import InvalidInput
from rlm.service.memory import Memory
from rlm.store.records import MemoryRecord

PAGE = 1000  # memories read at a time
AS_GIVEN = {"facts": False}  # provenance of an item that a program keeps: it ends no other, and none ends it


def check_memory(memory: Any,          # value that a program gave for its memory
                 remote: bool = False,  # whether one behind a server will do
                 ) -> None:
    "Raise `InvalidInput` for what is no open memory, such as the path of one: the first use would fail, and say less."
    if isinstance(memory, Memory):
        return
    if isinstance(memory, str | Path):
        raise InvalidInput(f"The memory is given as {str(memory)!r}, which is a path.", f"Open it: Memory({str(memory)!r}).")
    from rlm.service.remote import RemoteMemory  # a program without a server does without it
    if isinstance(memory, RemoteMemory) and not remote:
        raise InvalidInput("The memory is one behind a server, which can't be used here.", 'Give the file itself: Memory("memory.db").')
    if not isinstance(memory, RemoteMemory):
        raise InvalidInput(f"The memory is given as {type(memory).__name__}.", 'Give an open one: Memory("memory.db").')


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
