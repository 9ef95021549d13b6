"""A server's database as a store: what is refused, how tables are made, and how a connection is set up."""

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ...core.errors import StoreError, StoreForeign, StoreNewer, StoreReadOnly
from ...core.files import hidden_password
from ..sqlite.schema import Migration

if TYPE_CHECKING:
    from psycopg import Connection

OLDEST_SERVER = 150000  # PostgreSQL 15, as the server numbers itself
STATEMENT_SECONDS = 600  # after which a statement is ended, unless role or database have a statement_timeout of their own
_MIGRATION_LOCK = 0x726C6D31  # key of the advisory lock under which tables are made and changed: 'rlm1'
_LOCAL_HOSTS = ("localhost", "127.0.0.1", "::1")


def is_exposed(host: str,        # host of a connection as libpq knows it; empty or a folder: a socket of this machine
               encrypted: bool,  # whether TLS is in use
               url: str,         # address of the store
               ) -> bool:
    "Return whether texts would go over a network in the clear although the address does not say so."
    local = not host or host.startswith(("/", "@")) or host in _LOCAL_HOSTS
    return not (encrypted or local or "sslmode=" in url or "PGSSLMODE" in os.environ)


def configure(connection: "Connection[Any]",  # a new one
              schema: str,                   # schema of the database that holds the tables
              read_only: bool,               # refuse every write
              ) -> None:
    "Set up a new connection: where names are looked up, how truth values and sums are written and read."
    from psycopg.adapt import Dumper, Loader

    class NumberDumper(Dumper):
        "Truth values as the numbers that the columns hold."

        oid = 20

        def dump(self, obj: Any) -> bytes:
            return b"1" if obj else b"0"

        def quote(self, obj: Any) -> bytes:
            return self.dump(obj)

    class SumLoader(Loader):
        "Sums as Python's own numbers."

        def load(self, data: Any) -> Any:
            text = bytes(data).decode()
            return float(text) if "." in text or "N" in text else int(text)

    connection.adapters.register_dumper(bool, NumberDumper)
    connection.adapters.register_loader("numeric", SumLoader)
    connection.execute(f"SET search_path = {schema}, public; SET idle_in_transaction_session_timeout = '10min'; "
                       f"SET default_transaction_read_only = {'on' if read_only else 'off'}; SET jit = off; "
                       "SET client_min_messages = warning; SELECT set_config('statement_timeout', "
                       f"'{STATEMENT_SECONDS}s', false) WHERE current_setting('statement_timeout') = '0'".encode())


def prepare(connection: "Connection[Any]",           # outside of a transaction
            url: str,                                # address of the store, as it was given
            schema: str,                             # schema of the database that holds the tables
            read_only: bool,                         # never make tables
            migrations: Sequence[Migration],  # steps to the present tables
            ) -> None:
    "Refuse a server or database that can't be a store; make the tables or bring them up to date. Raises `StoreError`."
    place = hidden_password(url)
    if is_exposed(connection.info.host, connection.pgconn.ssl_in_use, url):
        raise StoreError(f"The connection to {place!r} is not encrypted.", "Add sslmode=verify-full to the address, or "
                         "sslmode=disable if everything between here and the server is trusted.")
    version = connection.info.server_version
    if version < OLDEST_SERVER:
        raise StoreError(f"The server of {place!r} is PostgreSQL {version // 10000}; rlm needs {OLDEST_SERVER // 10000} or newer.",
                         "Upgrade the server.")
    newest = migrations[-1].to
    here = connection.execute("SELECT to_regclass(%s), to_regnamespace(%s)", (f"{schema}.meta", schema)).fetchone()
    there = _version(connection, schema, place) if here is not None and here[0] is not None else 0
    if here is not None and here[0] is None and here[1] is not None and connection.execute(
            "SELECT 1 FROM pg_class WHERE relnamespace = %s::regnamespace LIMIT 1", (schema,)).fetchone():
        raise StoreForeign(f"The schema {schema!r} of {place!r} holds tables that are not rlm's.",
                           "Give another database; nothing was changed.")
    if there > newest:
        raise StoreNewer(f"The store {place!r} was made by a newer rlm (schema {there}, this one knows {newest}).", "Upgrade rlm.")
    if there == newest:
        return
    if read_only:
        raise StoreReadOnly(f"The store {place!r} is to be {'brought up to date' if there else 'made'} first.",
                            "Open it once without read_only.")
    with connection.transaction():
        connection.execute("SELECT pg_advisory_xact_lock(%s)", (_MIGRATION_LOCK,))
        connection.execute(f"CREATE SCHEMA IF NOT EXISTS {schema}".encode())
        connection.execute(f"SET LOCAL search_path = {schema}, public".encode())
        found = connection.execute("SELECT to_regclass(%s)", (f"{schema}.meta",)).fetchone()
        there = _version(connection, schema, place) if found is not None and found[0] is not None else 0
        for step in migrations:
            if step.to > there:
                connection.execute(step.sql.encode())
                connection.execute("INSERT INTO meta VALUES ('schema_version', %s) ON CONFLICT (key) DO UPDATE "
                                   "SET value = excluded.value", (str(step.to),))


def _version(connection: "Connection[Any]", schema: str, place: str) -> int:
    "The version of the tables that are there."
    import psycopg
    try:
        row = connection.execute(f"SELECT value FROM {schema}.meta WHERE key = 'schema_version'".encode()).fetchone()
    except psycopg.errors.UndefinedColumn:
        row = None
    if row is None:
        raise StoreForeign(f"The schema {schema!r} of {place!r} holds tables that are not rlm's.",
                           "Give another database; nothing was changed.")
    return int(row[0])
