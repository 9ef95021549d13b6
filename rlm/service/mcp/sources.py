"""Where the tools get their memory from: the one store of a program on this machine, or the namespace of the caller's token."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeAlias

from ..memory import Memory

if TYPE_CHECKING:
    from .http import TenantMemory

MemorySource: TypeAlias = "LocalMemory | TenantMemory"  # gives a tool the memory that its caller may use


class LocalMemory:
    "One memory, whose owner started the server: standard input and output have no other caller."

    def __init__(self,
                 memory: Memory,  # open store, in the namespace of the option
                 ) -> None:
        self.memory = memory

    @property
    def read_only(self) -> bool:
        "Return whether the store was opened for reading."
        return self.memory.backend.read_only

    def may(self,
            right: str,  # read or write
            ) -> bool:
        "Return whether the store was opened for this."
        return right == "read" or not self.read_only

    @contextmanager
    def use(self,
            right: str,  # right that is needed: read or write
            ) -> Iterator[Memory]:
        "Give the memory."
        yield self.memory

    def actor(self) -> dict[str, str]:
        "Return what the provenance of a memory says of the caller."
        return {"source": "mcp", "actor": "model"}
