"""Tables for the threads of an agent framework, kept in the store itself: states of a graph, step by step, and what its tasks wrote.

A store has them from the moment that somebody keeps threads in it. Their rows belong to a namespace like all others, so that a backup and
an export hold them and the erasure of a namespace takes them along. States are bytes that the framework has written and will read; they are
no memories, nothing searches them, and the guard does not look into them.
"""

from rlm.core.errors import StoreError
from .protocols import Database

KEY = "thread_id, checkpoint_ns, checkpoint_id"
THREAD_TABLES = {  # table → the order of its rows in an export
    "thread_checkpoints": f"namespace, {KEY}", "thread_writes": f"namespace, {KEY}, task_id, idx"}
SCHEMA = (
    f"""CREATE TABLE IF NOT EXISTS thread_checkpoints (
  namespace TEXT NOT NULL, thread_id TEXT NOT NULL, checkpoint_ns TEXT NOT NULL, checkpoint_id TEXT NOT NULL, parent_id TEXT, run_id TEXT,
  type TEXT NOT NULL, checkpoint BLOB NOT NULL, metadata_type TEXT NOT NULL, metadata BLOB NOT NULL,
  PRIMARY KEY (namespace, {KEY})) STRICT""",
    "CREATE INDEX IF NOT EXISTS thread_checkpoints_run ON thread_checkpoints (run_id)",
    f"""CREATE TABLE IF NOT EXISTS thread_writes (
  namespace TEXT NOT NULL, thread_id TEXT NOT NULL, checkpoint_ns TEXT NOT NULL, checkpoint_id TEXT NOT NULL, task_id TEXT NOT NULL,
  idx INTEGER NOT NULL, task_path TEXT NOT NULL, channel TEXT NOT NULL, type TEXT NOT NULL, value BLOB NOT NULL,
  PRIMARY KEY (namespace, {KEY}, task_id, idx)) STRICT""")


def has_threads(db: Database,  # a live store
                ) -> bool:
    "Return whether a store has the tables."
    return len(db.query("PRAGMA table_info(thread_writes)")) > 0


def make_thread_tables(db: Database,  # a live store
                       ) -> None:
    "Make the tables where they are not there; in a server they always are. Raises `StoreError` for a store that is only read."
    if has_threads(db):
        return
    if db.read_only:
        raise StoreError("This store has no threads, and it is only read.", "Open it to write.")
    with db.transaction():
        for statement in SCHEMA:
            db.query(statement)


def thread_namespaces(db: Database,  # a live store
                      ) -> list[str]:
    "Return the namespaces that have threads, by name."
    return [n for (n,) in db.query("SELECT DISTINCT namespace FROM thread_checkpoints ORDER BY 1")] if has_threads(db) else []
