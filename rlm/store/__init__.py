"""The store: records, schema, database, full text, backend, upkeep, transfer."""

from rlm.store.backend import Backend, Filters, Weights
from rlm.store.database import Database
from rlm.store.records import Edge, Event, MemoryRecord
from rlm.store.sqlite import SQLiteBackend

__all__ = ["Backend", "Database", "Edge", "Event", "Filters", "MemoryRecord", "SQLiteBackend", "Weights"]
