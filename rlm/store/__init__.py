"""The store: records, filters, what tables stand on, the storage, transfer."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rlm.store.filters import Filters
    from rlm.store.protocols import Weights
    from rlm.store.records import Edge, Event, MemoryRecord
    from rlm.store.sqlite.database import SQLiteDatabase
    from rlm.store.storage import SQLiteStorage, SQLStorage

__all__ = ["Edge", "Event", "Filters", "MemoryRecord", "SQLiteDatabase", "SQLiteStorage", "SQLStorage", "Weights"]

_HOMES = {"Edge": "records", "Event": "records", "Filters": "filters", "MemoryRecord": "records", "SQLiteDatabase": "sqlite.database",
          "SQLiteStorage": "storage", "SQLStorage": "storage", "Weights": "protocols"}  # name → module


def __getattr__(name: str) -> Any:
    "Import a public name when it is first asked for: what only reads words does without the rest of the store."
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = globals()[name] = getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    return found


def __dir__() -> list[str]:
    "The public names, whether they have been imported yet or not."
    return sorted({*globals(), *__all__})
