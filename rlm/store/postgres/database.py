"""A store in a PostgreSQL database: connections, transactions that wait their turn, and errors that a person can act on."""

import os
import re
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...core.errors import (
    MissingExtra,
    StoreBusy,
    StoreClash,
    StoreCorrupt,
    StoreError,
    StoreForeign,
    StoreFull,
    StoreNewer,
    StoreReadOnly,
)
from ...core.files import hidden_password
from .dialect import translated
from .schema import POSTGRES_MIGRATIONS, SCHEMA, PostgresMigration

if TYPE_CHECKING:
    from psycopg import Connection
    from psycopg_pool import ConnectionPool as Pool

OLDEST_SERVER = 150000  # PostgreSQL 15, as the server numbers itself
CONNECTIONS = 16  # connections of one process, at most
CONNECT_SECONDS = 10  # patience for a server that does not answer
BATCH = 200  # statements that are sent at once
_MIGRATION_LOCK = 0x726C6D31  # key of the advisory lock under which tables are made and changed: 'rlm1'
_PLAIN_INSERT = re.compile(r"(?s)(INSERT INTO [^%]+ VALUES )(\((?:%s(?:, )?)+\))$")  # many rows of it are one statement
_NOTHING_STORED = "nothing of this write was stored"


class ThreadState:
    "What one thread is doing with a store: its connection while it is in a transaction or snapshot."

    _next = 0

    def __init__(self) -> None:
        self.connection: Connection[Any] | None = None
        self.active = self.failed = self.uncommitted = False
        self.total_changes, self.last_changes = 0, 0
        self.lock = threading.RLock()
        ThreadState._next += 1
        self.number = ThreadState._next


def explain_server_error(error: Exception,  # as psycopg raised it
                         place: str,        # address of the store, without a password
                         ) -> StoreError:
    "Return our error for one of psycopg's, by its SQLSTATE."
    import psycopg
    from psycopg import errors
    from psycopg_pool import PoolClosed, PoolTimeout
    said = str(error).splitlines()[0] if str(error) else type(error).__name__
    if isinstance(error, PoolClosed):
        return StoreError(f"The store {place!r} is closed.", "Open it again.")
    if isinstance(error, PoolTimeout):
        return StoreBusy(f"No connection to {place!r} became free.", "Try again, or let fewer threads use the store at once.")
    if isinstance(error, errors.LockNotAvailable | errors.DeadlockDetected | errors.SerializationFailure | errors.QueryCanceled):
        return StoreBusy(f"The store {place!r} is being written by another process.",
                         f"Try again, or raise the setting busy_timeout_s; {_NOTHING_STORED}.")
    if isinstance(error, errors.IntegrityError):
        return StoreClash(f"The store {place!r} refused contradictory rows.", "Nothing was stored.")
    if isinstance(error, errors.DiskFull | errors.OutOfMemory):
        return StoreFull(f"The server of {place!r} has no room left.", f"Free some space there, then try again; {_NOTHING_STORED}.")
    if isinstance(error, errors.ReadOnlySqlTransaction):
        return StoreReadOnly(f"The store {place!r} is read-only.", "Connect to the primary server, or open the store to read it.")
    if isinstance(error, errors.InsufficientPrivilege):
        return StoreError(f"The role of {place!r} has not the rights for that ({said}).",
                          "Grant them, as docs/postgresql.md shows, or connect as another role.")
    if isinstance(error, errors.UndefinedTable | errors.UndefinedColumn | errors.UndefinedFunction):
        return StoreCorrupt(f"The store {place!r} lacks a part of its tables ({said}).", "Restore a backup of the database.")
    if isinstance(error, errors.DataError):
        return StoreError(f"The store {place!r} can't hold such a value ({said}).", "PostgreSQL takes no NUL character in a text.")
    if isinstance(error, psycopg.OperationalError | psycopg.InterfaceError):
        return StoreError(f"The connection to {place!r} failed ({said}).", "Is the server up? A write that was under way was not "
                          "acknowledged: read before you repeat it. The next call connects again.")
    return StoreError(f"The store {place!r} could not do that ({said}).", "See the message of PostgreSQL.")


class PostgresDatabase:
    "The tables of a store in a PostgreSQL database, in a schema of their own. Threads may share it."

    def __init__(self,
                 url: str,                      # as libpq reads it, such as postgresql://user@host/database
                 *,
                 read_only: bool = False,       # refuse every write
                 synchronous: str = "normal",   # PostgreSQL waits for its disk in any case; 'normal' and 'full' are the same
                 busy_timeout_s: float = 30.0,  # seconds that a write waits for another one
                 schema: str = SCHEMA,          # schema of the database that holds the tables
                 migrations: Sequence[PostgresMigration] = POSTGRES_MIGRATIONS,  # other ones, for tests
                 ) -> None:
        try:
            import psycopg
            import psycopg_pool  # noqa: F401  (asked for here, so that the sentence comes at once)
        except ImportError:
            raise MissingExtra("A store in PostgreSQL needs the package psycopg, which is not installed.",
                               "Install it with: pip install 'rlm[postgres]'") from None
        self.url, self.path, self.schema = url, hidden_password(url), schema
        self.read_only, self.busy_timeout_s, self.synchronous = read_only, busy_timeout_s, synchronous
        self.in_memory, self.epoch, self.closed = False, 0, False
        self._local, self._pid, self._states = threading.local(), os.getpid(), threading.Lock()
        if not re.fullmatch(r"[a-z_][a-z0-9_]{0,62}", schema):
            raise StoreError(f"The name {schema!r} of a schema is none.", "Use small letters, digits and _.")
        try:
            with psycopg.connect(url, autocommit=True, connect_timeout=CONNECT_SECONDS, cursor_factory=psycopg.ClientCursor) as first:
                self._prepare(first, migrations)
        except psycopg.Error as e:
            raise explain_server_error(e, self.path) from e
        self._pool = self._new_pool()

    @property
    def has_files(self) -> bool:
        "Whether derived files may lie beside the store: not beside a server."
        return False

    @property
    def in_transaction(self) -> bool:
        "Whether this thread is in a transaction or snapshot."
        return self.current().active

    def current(self) -> ThreadState:
        "Return what this thread is doing. Raises `StoreError` after `close`."
        if self._pid != os.getpid():  # a forked child must not use its parent's connections
            self._local, self._pid, self._pool = threading.local(), os.getpid(), self._new_pool()
        state: ThreadState | None = getattr(self._local, "state", None)
        if self.closed and (state is None or not state.active):
            raise StoreError(f"The store {self.path!r} is closed.", "Open it again.")
        if state is None:
            state = self._local.state = ThreadState()
        return state

    def shared_lock(self) -> AbstractContextManager[bool]:
        "Return a lock for an object that threads share beside the store, such as an index."
        return threading.RLock()

    def backup(self,
               target: "str | Path",  # a file
               ) -> Path:
        "Refuse: a server's backups are made with the server's own tools."
        raise StoreError(f"The store {self.path!r} is in a server, which makes its own backups; {str(target)!r} was not written.",
                         f"Use pg_dump --schema={self.schema}, or pg_basebackup; or copy it into a file with `rlm db copy`.")

    def close(self) -> None:
        "Close every connection."
        if not self.closed:
            self.closed = True
            self._pool.close()

    def query(self,
              sql: str,                                        # one statement, as the tables write it
              values: Sequence[Any] | Mapping[str, Any] = (),  # for its placeholders
              ) -> list[tuple[Any, ...]]:
        "Run one statement and return its rows. Raises `StoreError`."
        state = self.current()
        if sql == "SELECT changes()":
            return [(state.last_changes,)]
        with self._cursor(state) as cursor:
            cursor.execute(translated(sql), values)
            self._count(state, cursor)
            return cursor.fetchall() if cursor.description else []

    def iterate(self,
                sql: str,                                        # one statement, as the tables write it
                values: Sequence[Any] | Mapping[str, Any] = (),  # for its placeholders
                ) -> Iterator[tuple[Any, ...]]:
        "Run one statement and yield its rows. Raises `StoreError`."
        yield from self.query(sql, values)

    def executemany(self,
                    sql: str,                       # one statement, as the tables write it
                    rows: Iterable[Sequence[Any]],  # values for its placeholders, once for each run
                    ) -> None:
        "Run one statement for each of the rows, together or not at all. Raises `StoreError`."
        statement, state, every = translated(sql), self.current(), list(rows)
        for start in range(0, len(every), BATCH):
            part = every[start:start + BATCH]
            with self._savepoint(state), self._cursor(state) as cursor:
                if plain := _PLAIN_INSERT.match(statement):
                    said = plain[1] + ", ".join(cursor.mogrify(plain[2], row) for row in part)
                else:
                    said = "; ".join(cursor.mogrify(statement, row) for row in part)
                cursor.execute(said.encode())
                while True:
                    self._count(state, cursor)
                    if not cursor.nextset():
                        break

    @contextmanager
    def transaction(self,
                    patience: float | None = None,  # seconds to wait for its turn, at most; None: the busy timeout
                    ) -> Iterator[None]:
        "Store all that is done inside, or nothing. A transaction inside another is a part of it that can fail by itself."
        if self.read_only:
            raise StoreReadOnly(f"The store {self.path!r} is open for reading only.", "Open it without read_only.")
        state = self.current()
        if state.active:
            before = state.failed
            with self._savepoint(state):
                yield
                if state.failed and not before:
                    state.failed = before
                    raise self._half_done()
            return
        wait = int(1000 * (self.busy_timeout_s if patience is None else min(patience, self.busy_timeout_s)))
        begin = (f"BEGIN; SET LOCAL lock_timeout = {max(wait, 1)}; UPDATE store_generation SET n = n + 1; SET LOCAL lock_timeout = 0")
        with self._span(state, begin):
            state.uncommitted = True
            yield

    @contextmanager
    def snapshot(self) -> Iterator[None]:
        "Read all that is read inside as of one moment, whatever others write meanwhile."
        state = self.current()
        if state.active:
            yield
            return
        with self._span(state, "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"):
            yield

    def mark_failed(self) -> None:
        "Note that something failed half-way: the transaction that it was part of, if there is one, must not be committed."
        if not self.closed and (state := self.current()).active:
            state.failed = True

    def change_token(self) -> tuple[int, int, int] | None:
        """Return a value that is the same as long as nothing is written to the store by any process; None in a transaction that has
        written, as its writes may be undone."""
        state = self.current()
        if state.uncommitted:
            return None
        return 0, int(self.query("SELECT n FROM store_generation")[0][0]), 0

    def generation_name(self,
                        identity: str,  # identity of the store
                        ) -> str:
        "Return the name under which events are numbered: the identity, as no number is ever given twice."
        return identity

    def __repr__(self) -> str:
        return f"PostgresDatabase({self.path!r}{', read_only=True' if self.read_only else ''})"

    def _new_pool(self) -> "Pool":
        from psycopg import ClientCursor
        from psycopg_pool import ConnectionPool
        return ConnectionPool(self.url, min_size=1, max_size=CONNECTIONS, timeout=max(self.busy_timeout_s, 1.0), open=True, num_workers=1,
                              configure=self._configure, kwargs={"autocommit": True, "cursor_factory": ClientCursor,
                                                                 "connect_timeout": CONNECT_SECONDS})

    def _configure(self, connection: "Connection[Any]") -> None:
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
        connection.execute(f"SET search_path = {self.schema}, public; SET idle_in_transaction_session_timeout = '10min'; "
                           f"SET default_transaction_read_only = {'on' if self.read_only else 'off'}; SET jit = off; "
                           "SET client_min_messages = warning".encode())

    def _prepare(self, connection: "Connection[Any]", migrations: Sequence[PostgresMigration]) -> None:
        "Refuse a server or database that can't be a store; make the tables or bring them up to date."
        version = connection.info.server_version
        if version < OLDEST_SERVER:
            raise StoreError(f"The server of {self.path!r} is PostgreSQL {version // 10000}; rlm needs {OLDEST_SERVER // 10000} or newer.",
                             "Upgrade the server.")
        newest = migrations[-1].to
        here = connection.execute("SELECT to_regclass(%s), to_regnamespace(%s)", (f"{self.schema}.meta", self.schema)).fetchone()
        there = self._version(connection) if here is not None and here[0] is not None else 0
        if here is not None and here[0] is None and here[1] is not None and connection.execute(
                "SELECT 1 FROM pg_class WHERE relnamespace = %s::regnamespace LIMIT 1", (self.schema,)).fetchone():
            raise StoreForeign(f"The schema {self.schema!r} of {self.path!r} holds tables that are not rlm's.",
                               "Give another database; nothing was changed.")
        if there > newest:
            raise StoreNewer(f"The store {self.path!r} was made by a newer rlm (schema {there}, this one knows {newest}).", "Upgrade rlm.")
        if there == newest:
            return
        if self.read_only:
            raise StoreReadOnly(f"The store {self.path!r} is to be {'brought up to date' if there else 'made'} first.",
                                "Open it once without read_only.")
        with connection.transaction():
            connection.execute("SELECT pg_advisory_xact_lock(%s)", (_MIGRATION_LOCK,))
            connection.execute(f"CREATE SCHEMA IF NOT EXISTS {self.schema}".encode())
            connection.execute(f"SET LOCAL search_path = {self.schema}, public".encode())
            found = connection.execute("SELECT to_regclass(%s)", (f"{self.schema}.meta",)).fetchone()
            there = self._version(connection) if found is not None and found[0] is not None else 0
            for step in migrations:
                if step.to > there:
                    connection.execute(step.sql.encode())
                    connection.execute("INSERT INTO meta VALUES ('schema_version', %s) ON CONFLICT (key) DO UPDATE "
                                       "SET value = excluded.value", (str(step.to),))

    def _version(self, connection: "Connection[Any]") -> int:
        "The version of the tables that are there."
        import psycopg
        try:
            row = connection.execute(f"SELECT value FROM {self.schema}.meta WHERE key = 'schema_version'".encode()).fetchone()
        except psycopg.errors.UndefinedColumn:
            row = None
        if row is None:
            raise StoreForeign(f"The schema {self.schema!r} of {self.path!r} holds tables that are not rlm's.",
                               "Give another database; nothing was changed.")
        return int(row[0])

    def _count(self, state: ThreadState, cursor: Any) -> None:
        "Note how many rows a statement changed."
        if not (cursor.statusmessage or "SELECT").startswith("SELECT"):
            state.last_changes = max(cursor.rowcount, 0)
            state.total_changes += state.last_changes

    def _half_done(self) -> StoreError:
        return StoreError(f"A part of this transaction on {self.path!r} failed, so nothing of it was stored.", "Let the error of "
                          "the part end the transaction, or put the part into a transaction of its own inside it.")

    @contextmanager
    def _cursor(self, state: ThreadState) -> Iterator[Any]:
        "A cursor of the connection of this thread's transaction, or of one that is free."
        import psycopg
        try:
            if state.connection is not None:
                if state.failed and state.connection.info.transaction_status == psycopg.pq.TransactionStatus.INERROR:
                    raise self._half_done()
                with state.connection.cursor() as cursor:
                    yield cursor
            else:
                with self._pool.connection() as connection, connection.cursor() as cursor:
                    yield cursor
        except psycopg.Error as e:
            if state.active:
                state.failed = True
            raise explain_server_error(e, self.path) from e

    @contextmanager
    def _savepoint(self, state: ThreadState) -> Iterator[None]:
        "A part of a transaction that can fail by itself; outside of one nothing."
        if state.connection is None:
            yield
            return
        import psycopg
        before = state.failed
        try:
            state.connection.execute("SAVEPOINT part")
        except psycopg.Error as e:
            raise explain_server_error(e, self.path) from e
        try:
            yield
        except BaseException:
            if not state.connection.broken and not state.connection.closed:
                state.connection.execute("ROLLBACK TO SAVEPOINT part; RELEASE SAVEPOINT part")
                state.failed = before
            raise
        state.connection.execute("RELEASE SAVEPOINT part")

    @contextmanager
    def _span(self, state: ThreadState, begin: str) -> Iterator[None]:
        "A transaction or snapshot. Leaves the thread outside of any."
        import psycopg
        try:
            connection = self._pool.getconn()
        except psycopg.Error as e:
            raise explain_server_error(e, self.path) from e
        state.connection, state.active, state.failed = connection, True, False
        try:
            try:
                connection.execute(begin.encode())
                yield
                if state.failed:
                    raise self._half_done()
                connection.execute("COMMIT")
            finally:
                if not connection.closed and connection.info.transaction_status != psycopg.pq.TransactionStatus.IDLE:
                    connection.execute("ROLLBACK")
        except psycopg.Error as e:
            raise explain_server_error(e, self.path) from e
        finally:
            state.connection, state.active, state.failed, state.uncommitted = None, False, False, False
            self._pool.putconn(connection)
