"""Long-term memory for language-model agents: one file, two languages, every hit explained."""

__version__ = "0.1.0"

from importlib import import_module
from typing import TYPE_CHECKING, Any

from rlm.core.errors import RlmError

if TYPE_CHECKING:
    from rlm import agent as agent
    from rlm.service.memory import Memory
    from rlm.service.remote import connect

__all__ = ["Memory", "RlmError", "__version__", "connect"]


def __getattr__(name: str) -> Any:
    "Import `Memory`, `connect` or `agent` when it is first asked for: `rlm --help` and `rlm.core` do without numpy and the store."
    if name == "agent":
        return import_module("rlm.agent")
    if name == "Memory":
        from rlm.service.memory import Memory
        globals()["Memory"] = Memory
        return Memory
    if name == "connect":
        from rlm.service.remote import connect
        return connect
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    "The public names, whether they have been imported yet or not."
    return sorted({*globals(), *__all__})
