"""Where the tools get their memory from: the one store of a program on this machine, or the namespace of the caller's token."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeAlias

from rlm.core.errors import StoreReadOnly

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
            right: str,  # read, write or admin
            ) -> bool:
        "Return whether the store was opened for this. The right admin is never given here: it takes a token, or the command line."
        return right == "read" or (right == "write" and not self.read_only)

    @contextmanager
    def use(self,
            right: str,  # right that is needed: read, write or admin
            ) -> Iterator[Memory]:
        "Give the memory. Raises `StoreReadOnly` for what only an admin's token may do."
        if right == "admin":
            raise StoreReadOnly("This takes the token of an admin, which a server over HTTP knows.",
                                "A person uses the command line: rlm namespaces")
        yield self.memory

    def actor(self) -> dict[str, str]:
        "Return what the provenance of a memory says of the caller."
        return {"source": "mcp", "actor": "model"}
