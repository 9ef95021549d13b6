"""Copy a store row by row into an empty one of either engine: what a command does to move from a file to a server and back."""

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from ...core.errors import StoreError
from ..protocols import Database
from ..records import dump_json
from ..fulltext import rebuild
from ..threads import THREAD_TABLES, make_thread_tables, thread_namespaces
from .importer import continue_numbers, in_cluster

TABLES_OF_A_STORE = {  # table → its order; a table stands behind those that it refers to
    "memories": "seq", "memory_versions": "vid", "memory_tags": "seq, tag", "edges": "src, dst, relation",
    "triples": "seq, subject, predicate, object", "vectors": "seq, model, chunk", "slots": "namespace, slot",
    "slot_refs": "namespace, slot, seq", "facts": "seq, place", "rejections": "namespace, salt, digest", "runs": "run_id",
    "trajectories": "rowid", "judgments": "trajectory_id", "memory_usage": "trajectory_id, rank", "events": "id", "snapshots": "rowid",
    "recalls": "id", "recalled": "recall, rank"}
ROWS_AT_ONCE = 1000  # rows of one transaction; after an interruption the copy goes on behind the last of them
_OWN = ("database_id", "tokeniser", "schema_version", "copy_of")  # keys that describe the store itself, not what it holds


@dataclass(frozen=True, slots=True)
class CopiedTable:
    "Counts the rows of one table that were copied."

    name: str  # the table
    rows: int  # rows in the source
    added: int  # those that were not in the target yet
    digest: str  # digest of all its rows, the same in both stores; 32 hexadecimal digits


def table_rows(db: Database,  # a store
               table: str,    # one of `TABLES_OF_A_STORE`
               ) -> Iterator[tuple[Any, ...]]:
    "Yield the rows of a table in order, their columns by name."
    names = ", ".join(sorted(_columns(db, table)))
    yield from db.iterate(f"SELECT {names} FROM {table} ORDER BY {(TABLES_OF_A_STORE | THREAD_TABLES)[table]}")


def table_digest(db: Database,  # a store
                 table: str,    # one of `TABLES_OF_A_STORE`
                 ) -> str:
    "Return the digest of all rows of a table: the same for the same rows, whatever engine holds them."
    digest = hashlib.blake2b(digest_size=16)
    for row in table_rows(db, table):
        digest.update(dump_json([v.hex() if isinstance(v, bytes) else float(v) if isinstance(v, float) else v for v in row]).encode())
    return digest.hexdigest()


def copy_store(source: Database,  # a store, which others may be using
               target: Database,  # an empty store, or one into which a copy of the same store was begun
               ) -> list[CopiedTable]:
    """Copy everything, all of one moment of the source, and compare digests. What is there already is not copied again, so that an
    interrupted copy is gone on with. Raises `StoreError` for a target that holds something else, and when a digest differs."""
    with source.snapshot():
        _mark(target, str(source.query("SELECT value FROM meta WHERE key = 'database_id'")[0][0]))
        copied = []
        tables = list(TABLES_OF_A_STORE)
        if thread_namespaces(source):
            make_thread_tables(target)
            tables += THREAD_TABLES
        for table in tables:
            copied.append(_copy_table(source, target, table))
        with target.transaction():
            target.executemany("INSERT INTO meta VALUES (?, ?) ON CONFLICT (key) DO UPDATE SET value = excluded.value",
                               [row for row in source.query("SELECT key, value FROM meta") if row[0] not in _OWN])
            for name, number in source.query("SELECT name, seq FROM sqlite_sequence"):
                if name in ("memories", "memory_versions", "events"):
                    continue_numbers(target, str(name), int(number))
            continue_numbers(target, "recalls", int(target.query("SELECT coalesce(max(id), 0) FROM recalls")[0][0]))
    for _ in rebuild(target):
        pass
    with target.transaction():
        target.query("DELETE FROM meta WHERE key = 'copy_of'")
    return copied


def _columns(db: Database, table: str) -> list[str]:
    return [str(row[1]) for row in db.query(f"PRAGMA table_info({table})")]


def _mark(target: Database, identity: str) -> None:
    "Note whose copy a target becomes; refuse one that holds something else."
    with target.transaction():
        if in_cluster(target):
            raise StoreError(f"The store {target.path!r} is in a cluster, whose instances number their rows apart.",
                             "Copy into a database of its own, then make the cluster; or import an export of each namespace.")
        known = target.query("SELECT value FROM meta WHERE key = 'copy_of'")
        if not known and target.query("SELECT 1 FROM events UNION ALL SELECT 1 FROM memories LIMIT 1"):
            raise StoreError(f"The store {target.path!r} holds memories already.",
                             "Copy into an empty one; an export can be imported beside others.")
        if known and known[0][0] != identity:
            raise StoreError(f"The store {target.path!r} holds a part of another store's copy.",
                             "Finish that one, or copy into an empty one.")
        if not known:
            target.query("INSERT INTO meta VALUES ('copy_of', ?)", (identity,))


def _copy_table(source: Database, target: Database, table: str) -> CopiedTable:
    "Copy the rows of one table, a transaction for each thousand, and compare both."
    names = sorted(_columns(source, table))
    insert = f"INSERT INTO {table} ({', '.join(names)}) VALUES ({', '.join('?' * len(names))}) ON CONFLICT DO NOTHING"
    before, rows, waiting = _count(target, table), 0, list[tuple[Any, ...]]()
    for row in table_rows(source, table):
        rows += 1
        waiting.append(row)
        if len(waiting) == ROWS_AT_ONCE:
            _put(target, insert, waiting)
            waiting = []
    _put(target, insert, waiting)
    digest = table_digest(source, table)
    if digest != table_digest(target, table):
        raise StoreError(f"The table {table} of {target.path!r} is not what {source.path!r} holds, after all its rows were copied.",
                         "Did another process write to the target? Copy into an empty store.")
    return CopiedTable(table, rows, _count(target, table) - before, digest)


def _put(target: Database, insert: str, rows: list[tuple[Any, ...]]) -> None:
    if rows:
        with target.transaction():
            target.executemany(insert, rows)


def _count(db: Database, table: str) -> int:
    return int(db.query(f"SELECT count(*) FROM {table}")[0][0])
