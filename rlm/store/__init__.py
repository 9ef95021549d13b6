"""The store: records, filters, storage protocols, the SQLite storage, transfer."""

from rlm.store.filters import Filters
from rlm.store.records import Edge, Event, MemoryRecord
from rlm.store.sqlite.database import SQLiteDatabase
from rlm.store.sqlite.storage import SQLiteStorage
from rlm.store.protocols import Storage, Weights

__all__ = ["Edge", "Event", "Filters", "MemoryRecord", "SQLiteDatabase", "SQLiteStorage", "Storage", "Weights"]
