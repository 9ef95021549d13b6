"""Leases: of all processes that share a server, one does a piece of background work."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from .errors import explain_server_error

if TYPE_CHECKING:
    from psycopg_pool import ConnectionPool as Pool

_KEY = "hashtextextended(%s || ' ' || current_schema(), 0)"  # key of the advisory lock of a task in a schema


@contextmanager
def take_lease(pool: "Pool",  # connections to the server
               task: str,     # name of a piece of background work
               place: str,    # address of the store, without a password
               ) -> Iterator[bool]:
    """Hold a piece of background work until the end of the block; False: another process has it. When a process dies, the server takes
    its lease back. Raises `StoreError`."""
    import psycopg
    try:
        with pool.connection() as connection:
            found = connection.execute(f"SELECT pg_try_advisory_lock({_KEY})".encode(), (f"rlm {task}",)).fetchone()
            held = bool(found and found[0])
            try:
                yield held
            finally:
                if held and not connection.closed:
                    connection.execute(f"SELECT pg_advisory_unlock({_KEY})".encode(), (f"rlm {task}",))
    except psycopg.Error as e:
        raise explain_server_error(e, place) from e
