"""A store in a PostgreSQL database: connections, and transactions that wait their turn."""

import copy
import logging
import os
import re
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self
from weakref import WeakKeyDictionary

from ...core.errors import (
    MissingExtra,
    StoreError,
    StoreMoved,
    StoreReadOnly,
)
from ...core.files import hidden_password
from ..protocols import Question
from ..fulltext import namespace_key
from ..sqlite.schema import Migration
from .dialect import translated
from .cluster import MOST_INSTANCES, ClusterPlace, located
from .errors import connection_error, explain_server_error, is_lost, moved_error
from .leases import take_lease
from .schema import POSTGRES_MIGRATIONS, SCHEMA, STORE_LOCK, configure, grants, prepare

if TYPE_CHECKING:
    from psycopg import Connection
    from psycopg_pool import ConnectionPool as Pool

_QUIET = logging.NullHandler()  # one, however many pools are opened
CONNECTIONS = 16  # connections of one process, at most
CONNECT_SECONDS = 10  # seconds to wait for a server that does not answer
MOST_LOOKED = 1000  # namespaces of which it is known when they were last asked about
LOOK_S = 1.0  # seconds after which a reader asks again whether its namespace went to another instance
BATCH = 200  # statements that are sent at once
ASKED_OFTEN = 3  # times that a connection has sent a statement when it prepares it
MOST_PREPARED = 60  # statements that a connection prepares; a plan takes up to 100 kB of the server
MOST_COUNTED = 2000  # statements whose uses a connection counts
PLANS_S = 60.0  # seconds after which statements are planned anew: a table may have grown that was empty
MOST_UNSENT = 1 << 18  # characters of statements that wait for the next one that is sent
_GONE = "SELECT instance FROM moved_namespaces WHERE namespace = %s"  # where a namespace went
_GENERATION: Question = ("SELECT n FROM current_generation", ())
_CAUGHT = "INSERT INTO memories ("  # the one statement whose refusal is caught inside its transaction
_WRITES = ("INSERT", "UPDATE", "DELETE")
_OFTEN = ("INSERT", "DELETE")  # writes that are worth preparing
_TURN = f"""
WITH patience AS MATERIALIZED (SELECT set_config('lock_timeout', ?, true)),
  store AS MATERIALIZED (SELECT pg_advisory_xact_lock_shared({STORE_LOCK}) FROM patience)
INSERT INTO generations AS g (namespace, n) SELECT ?, 1 FROM store ON CONFLICT (namespace) DO UPDATE SET n = g.n + 1
RETURNING set_config('lock_timeout', '0', true)"""  # one after the other: each part reads the one before
_PLAIN_INSERT = re.compile(r"(?s)(INSERT INTO [^%]+ VALUES )(\((?:%s(?:, )?)+\))$")  # many rows of it are one statement


class ThreadState:
    "Holds the state of one thread: its connection while it is in a transaction or snapshot, and statements not sent yet."

    _next = 0

    def __init__(self) -> None:
        self.connection: Connection[Any] | None = None
        self.cursor: Any = None  # the connection's one cursor: each statement's result is read before the next is sent
        self.active = self.failed = self.uncommitted = False
        self.turns: set[str | None] = set()  # namespaces whose turn to write its transaction has; None: that of the whole store
        self.unsent: list[tuple[str, int]] = []  # statements of its transaction that were not sent yet, and how many each text has
        self.answered: dict[str, list[tuple[Any, ...]]] = {}  # what was asked ahead: statement with its values → rows
        self.generations: dict[str | None, int] = {}  # generation of each namespace, as its snapshot sees it
        self.total_changes, self.last_changes, self.depth = 0, 0, 0  # depth: savepoints that are open
        self.lock = threading.RLock()
        ThreadState._next += 1
        self.number = ThreadState._next


_PLACEHOLDER = re.compile(r"%s|%\(\w+\)s|%%")
_NUMBERS = re.compile(r"(?<! NOT) IN \((%s(?:, %s)*)\)")  # a list of numbers, as `one_of` writes it


def _with_array(statement: str, values: Sequence[Any] | Mapping[str, Any]) -> tuple[str, Sequence[Any] | Mapping[str, Any]]:
    "A statement with its list of numbers as one value, so that its text, which is prepared, is the same however long the list is."
    if isinstance(values, Mapping) or (found := _NUMBERS.search(statement)) is None:
        return statement, values
    first, many = statement.count("%s", 0, found.start()), found[1].count("%s")
    numbers = values[first:first + many]
    if not all(type(n) is int for n in numbers):
        return statement, values
    listed = "{" + ",".join(map(str, numbers)) + "}"
    return (f"{statement[:found.start()]} = ANY (%s::bigint[]){statement[found.end():]}",
            (*values[:first], listed, *values[first + many:]))


class PreparedStatements:
    """Statements that one connection has prepared, and those that it has sent. To plan the questions of a block for a prompt takes a
    server twice as long as to answer them."""

    def __init__(self) -> None:
        self.sent = Counter[str]()  # how often a statement was sent
        self.said = dict[str, str]()  # statement → what executes it, with its placeholders; itself where it can't be prepared
        self.due = list[str]()  # statements to prepare
        self.planned = time.monotonic()

    def written(self,
                cursor: Any,     # a cursor of the connection
                statement: str,  # a statement as psycopg takes it
                values: Sequence[Any] | Mapping[str, Any],  # values of its placeholders
                ) -> str:
        "Return a statement with its values written in, or what executes it with these."
        statement, values = _with_array(statement, values)
        if (said := self.said.get(statement)) is None:
            if len(self.sent) > MOST_COUNTED:  # statements for so and so many values each have a text of their own
                self.sent.clear()
            self.sent[statement] += 1
            if self.sent[statement] == ASKED_OFTEN and len(self.said) + len(self.due) < MOST_PREPARED:
                self.due.append(statement)
        return str(cursor.mogrify(said or statement, values))

    def prepare(self,
                connection: "Connection[Any]",  # the connection, outside of a transaction
                ) -> None:
        "Prepare what was sent often, and have what is prepared planned anew from time to time."
        import psycopg
        if self.said and time.monotonic() > self.planned + PLANS_S:
            connection.execute("DISCARD PLANS")
            self.planned = time.monotonic()
        while self.due:
            statement = self.due.pop()
            number, name, found = count(1), f"often{len(self.said)}", [p for p in _PLACEHOLDER.findall(statement) if p != "%%"]
            text = _PLACEHOLDER.sub(lambda p, number=number: "%" if p[0] == "%%" else f"${next(number)}", statement)  # type: ignore[misc]
            self.said[statement] = statement
            with suppress(psycopg.ProgrammingError, psycopg.DataError, psycopg.NotSupportedError):  # a placeholder of no certain type
                connection.execute(f"PREPARE {name} AS {text}".encode())
                self.said[statement] = f"EXECUTE {name}({', '.join(found)})" if found else f"EXECUTE {name}"


class ServerConnections:
    "The pool of one process, what its threads are doing, and which namespace each connection may see. Databases of one store share it."

    def __init__(self,
                 new_pool: "Callable[[], Pool]",  # function that opens a pool
                 ) -> None:
        self.new_pool, self.pool, self.closed = new_pool, new_pool(), False
        self.local, self.pid = threading.local(), os.getpid()
        self.looked: dict[str, float] = {}  # namespace → when it was last asked whether it went elsewhere
        self.scopes: WeakKeyDictionary[Connection[Any], str | None] = WeakKeyDictionary()
        self.prepared: WeakKeyDictionary[Connection[Any], PreparedStatements] = WeakKeyDictionary()

    def state(self) -> ThreadState | None:
        "Return the state of this thread; None if it has none yet."
        if self.pid != os.getpid():  # a forked child must not use its parent's connections
            self.local, self.pid, self.pool = threading.local(), os.getpid(), self.new_pool()
        return getattr(self.local, "state", None)

    def statements(self,
                   cursor: Any,  # a cursor of a connection
                   ) -> PreparedStatements:
        "Return the prepared statements of a cursor's connection."
        return self.prepared.setdefault(cursor.connection, PreparedStatements())

    def written_out(self,
                    cursor: Any,                     # a cursor of a connection
                    questions: Iterable[Question],  # statements, as the tables write them, with their values
                    ) -> list[str]:
        "Return questions that are sent often, with their values written in, so that they go in one message."
        known = self.statements(cursor)
        return [known.written(cursor, translated(sql), values) for sql, values in questions]

    def put_back(self,
                 connection: "Connection[Any]",  # a connection that nothing is done with
                 ) -> None:
        "Give a connection back to the pool; what it sends often is prepared."
        import psycopg
        if (known := self.prepared.get(connection)) is not None and connection.info.transaction_status == psycopg.pq.TransactionStatus.IDLE:
            with suppress(psycopg.OperationalError):  # the server is gone: what was stored is stored, and the next call tells of it
                known.prepare(connection)
        self.pool.putconn(connection)

    def close(self) -> None:
        "Close every connection."
        if not self.closed:
            self.closed = True
            self.pool.close()


def scope_statements(namespace: str | None,  # the partition that is read and written; None: the whole store
                     ) -> bytes:
    "Return the statements after which a connection sees one namespace, or the whole store. Row-level security reads these settings."
    from psycopg import sql
    name, terms, whole = (namespace, namespace_key(namespace), "off") if namespace is not None else ("", "", "on")
    values = (("rlm.namespace", name), ("rlm.terms", terms), ("rlm.whole", whole))
    return "".join(f"SET {key} = {sql.Literal(value).as_string()}; " for key, value in values).encode()


def _asked(sql: str, values: Sequence[Any] | Mapping[str, Any]) -> str:
    "A question as a key: the statement with its values."
    return f"{sql} {values!r}"


def _results(cursor: Any) -> list[list[tuple[Any, ...]]]:
    "The rows of this and all further results of a cursor."
    found = [_rows(cursor)]
    while cursor.nextset():
        found.append(_rows(cursor))
    return found


def _rows(cursor: Any) -> list[tuple[Any, ...]]:
    "The rows of a result, none of a statement that has none. `cursor.description` would say so, but takes as long as the rows."
    return cursor.fetchall() if cursor.pgresult.nfields else []


class StatementPipeline:
    """Sends the statements of a thread: each that somebody waits for in a message, those that nobody waits for along with the next one.
    A connection sees one namespace; the settings go along when it saw another one."""

    def __init__(self,
                 server: ServerConnections,  # connections of the process
                 path: str,                  # address of the store, without a password
                 ) -> None:
        self.server, self.path = server, path

    @contextmanager
    def cursor(self,
               state: ThreadState,  # state of the thread
               ) -> Iterator[Any]:
        "Yield a cursor of the connection of this thread's transaction, or of one that is free."
        import psycopg
        try:
            if state.connection is not None:
                if state.failed and state.connection.info.transaction_status == psycopg.pq.TransactionStatus.INERROR:
                    raise self.half_done()
                yield state.cursor
            else:
                connection = self.server.pool.getconn()
                try:
                    yield connection.cursor()
                finally:
                    self.server.put_back(connection)
        except psycopg.Error as e:
            if state.active:
                state.failed = True
            raise explain_server_error(e, self.path) from e

    @contextmanager
    def savepoint(self,
                  state: ThreadState,  # state of the thread
                  ) -> Iterator[None]:
        "Yield a part of a transaction that can fail by itself; outside of one nothing."
        if state.connection is None:
            yield
            return
        self.flush(state)
        before, turns, name = state.failed, set(state.turns), f"part{state.depth}"  # a part in a part has a name of its own
        begin = (f"SAVEPOINT {name}", 1)  # it goes along with the first statement of the part
        state.unsent.append(begin)
        state.depth += 1
        try:
            yield
            self.flush(state)
            state.unsent.append((f"RELEASE SAVEPOINT {name}", 1))  # and its end with the first one after it
        except BaseException:
            begun, state.unsent = begin not in state.unsent, []
            if not state.connection.broken and not state.connection.closed:
                if begun:
                    self.server.scopes.pop(state.connection, None)  # settings are rolled back, too
                    state.connection.execute(f"ROLLBACK TO SAVEPOINT {name}; RELEASE SAVEPOINT {name}".encode())
                state.failed, state.turns = before, turns  # the locks that it took are released
            raise
        finally:
            state.depth -= 1

    @contextmanager
    def span(self,
             state: ThreadState,     # state of the thread
             namespace: str | None,  # the partition that is seen; None: the whole store
             begin: str,             # statement that begins it
             questions: Sequence[Question] = (),  # questions that are asked along; each is answered from that once, when it is asked inside
             ) -> Iterator[None]:
        "Yield a transaction or snapshot. Leaves the thread outside of any."
        import psycopg
        (connection, answers), scopes, before = self._begin(namespace, begin, questions), self.server.scopes, state.answered
        state.connection, state.cursor, state.active, state.failed = connection, connection.cursor(), True, False
        state.answered = before | dict(zip((_asked(*q) for q in questions), answers, strict=True))
        try:
            try:
                yield
                if state.failed:
                    raise self.half_done()
                self.flush(state, "COMMIT")
            finally:
                if not connection.closed and connection.info.transaction_status != psycopg.pq.TransactionStatus.IDLE:
                    scopes.pop(connection, None)
                    connection.execute("ROLLBACK")
        except psycopg.Error as e:
            raise explain_server_error(e, self.path) from e
        finally:
            state.connection, state.cursor, state.answered = None, None, before
            state.active = state.failed = state.uncommitted = False
            state.turns.clear()
            state.unsent.clear()
            state.generations.clear()
            self.server.put_back(connection)

    def _begin(self, namespace: str | None, begin: str,
               questions: Sequence[Question]) -> "tuple[Connection[Any], list[list[tuple[Any, ...]]]]":
        "Begin a transaction on a free connection, on another one when that was lost while nobody used it; return it with the answers."
        import psycopg
        scopes, pool = self.server.scopes, self.server.pool
        for again in (True, False):
            try:
                connection = pool.getconn()
            except psycopg.Error as e:
                raise explain_server_error(e, self.path) from e
            try:
                scope = "" if scopes.pop(connection, ...) == namespace else scope_statements(namespace).decode()
                cursor = connection.cursor()
                cursor.execute(f"{begin}; {scope}{'; '.join(self.server.written_out(cursor, questions))}".encode())
                answers = _results(cursor)
                scopes[connection] = namespace
                return connection, answers[len(answers) - len(questions):]
            except BaseException as e:
                if not connection.closed:
                    connection.rollback()
                pool.putconn(connection)
                if not isinstance(e, psycopg.Error):
                    raise
                if not (again and is_lost(e)):
                    raise explain_server_error(e, self.path) from e
                pool.check()
        raise AssertionError("unreachable")

    def postpone(self,
                 state: ThreadState,     # state of the thread: it is in a transaction
                 namespace: str | None,  # the partition that is seen; None: the whole store
                 cursor: Any,            # a cursor of its connection
                 said: str,              # statements with their values
                 number: int,            # how many they are
                 ) -> None:
        "Let statements of a transaction wait for the next one that is sent: nobody looks at what they return."
        if self.server.scopes.get(cursor.connection, ...) != namespace:
            self.flush(state, scope_statements(namespace).decode().rstrip("; "))
            self.server.scopes[cursor.connection] = namespace
        state.unsent.append((said, number))
        if sum(len(text) for text, _ in state.unsent) > MOST_UNSENT:
            self.flush(state)

    def flush(self,
              state: ThreadState,  # state of the thread
              then: str = "",      # statements
              ) -> None:
        "Send what waits, and statements after it, in one round trip."
        if state.unsent or then:
            with self.cursor(state) as cursor:
                self._together(state, cursor, then or "SELECT 1")

    def _together(self, state: ThreadState, cursor: Any, said: str) -> None:
        "Run what waits and then statements, all of them in one message; leave the cursor at the result of the first of these."
        unsent, state.unsent = state.unsent, []
        cursor.execute("; ".join([*(text for text, _ in unsent), said]).encode())
        for _ in range(sum(number for _, number in unsent)):
            self.count(state, cursor)
            cursor.nextset()

    def send(self,
             state: ThreadState,     # state of the thread
             namespace: str | None,  # the partition that is seen; None: the whole store
             cursor: Any,            # a cursor of a connection
             statement: str,         # statements
             values: Sequence[Any] | Mapping[str, Any] | None = None,  # values of their placeholders; None: they have none
             ) -> None:
        "Run a statement on a connection that sees this database's namespace; the settings go along when it saw another one."
        scopes, connection = self.server.scopes, cursor.connection
        if statement.startswith("VACUUM"):  # which stands alone, and sees every row
            limit = cursor.execute("SELECT current_setting('statement_timeout')").fetchone()[0]
            cursor.execute("SET statement_timeout = 0")
            cursor.execute(statement)
            cursor.execute(f"SET statement_timeout = '{limit}'")
        elif scopes.get(connection, ...) == namespace and not state.unsent:
            cursor.execute(statement, values)
        else:
            said = statement if values is None else cursor.mogrify(statement, values)
            if same := scopes.pop(connection, ...) == namespace:
                self._together(state, cursor, said)
            else:
                self._together(state, cursor, scope_statements(namespace).decode() + said)
            for _ in range(0 if same else 3):
                cursor.nextset()
            scopes[connection] = namespace

    def count(self,
              state: ThreadState,  # state of the thread
              cursor: Any,         # a cursor after a statement
              ) -> None:
        "Note how many rows a statement changed."
        if not (cursor.statusmessage or "SELECT").startswith("SELECT"):
            state.last_changes = max(cursor.rowcount, 0)
            state.total_changes += state.last_changes

    def half_done(self) -> StoreError:
        "Return the error of a transaction of which a part failed."
        return StoreError(f"A part of this transaction on {self.path!r} failed, so nothing of it was stored.", "Let the error of "
                          "the part end the transaction, or put the part into a transaction of its own inside it.")


def open_place(url: str,                                            # address of a store
               home: str | None,                                    # a namespace; None: the instance of the address
               examine: "Callable[[Connection[Any], str], None]",  # looks at a new connection and its address
               ) -> tuple[str, ClusterPlace | None]:                # None: there is no cluster
    "Return the address of the database that holds a namespace, from instance to instance. Raises `StoreError`."
    import psycopg
    name, sent = "", False  # of the instance: its name, where it is known; whether the one that the namespace left has named it
    for _ in range(MOST_INSTANCES):
        try:
            with psycopg.connect(url, autocommit=True, connect_timeout=CONNECT_SECONDS, cursor_factory=psycopg.ClientCursor) as first:
                examine(first, url)
                found = located(first, url, home, sent)
        except psycopg.Error as e:
            error = connection_error(e, url)
            if name:
                error.message = f"The instance {name!r}, which holds the namespace {home!r}, does not answer. {error.message}"
                error.hint = "Start it; the namespaces of the other instances go on."
                error.args = (error.message,)
            raise error from e
        if found is None or found.name == found.here:
            return (url if found is None else found.address), found
        url, name, sent = found.address, found.name, found.went
    raise StoreMoved(f"The instances do not agree where the namespace {home!r} is.", "Is it being moved? See `rlm cluster status`.")


class PostgresDatabase:
    "The tables of a store in a PostgreSQL database, in a schema of their own. Threads may share it."

    def __init__(self,
                 url: str,                      # address in libpq's form: postgresql://user@host/database
                 *,
                 read_only: bool = False,       # refuse every write
                 busy_timeout_s: float = 30.0,  # seconds that a write waits for another one
                 migrations: Sequence[Migration] = POSTGRES_MIGRATIONS,  # other ones, for tests
                 home: str | None = None,       # a namespace: of a cluster, the instance that holds it is opened; None: that of the address
                 ) -> None:
        try:
            import psycopg  # noqa: F401  (asked for here, so that the sentence comes at once)
            import psycopg_pool  # noqa: F401
        except ImportError:
            raise MissingExtra("A store in PostgreSQL needs the package psycopg, which is not installed.",
                               "Install it with: pip install 'rlm[postgres]'") from None
        self.read_only, self.busy_timeout_s = read_only, busy_timeout_s
        self.in_memory, self.epoch = False, 0
        self.namespace: str | None = None  # the partition that statements see; None: the whole store
        self.url, self.place = open_place(url, home, lambda first, address: prepare(first, address, read_only, migrations))  # in a cluster
        self.path = hidden_password(self.url)
        self._server = ServerConnections(self._new_pool)
        self._pipeline = StatementPipeline(self._server, self.path)

    def elsewhere(self,
                  namespace: str,  # a partition, there or not
                  ) -> str | None:
        "Return the address of the instance that holds a namespace, where a cluster has it in another one. Raises `StoreError`."
        view = self.for_namespace(namespace)
        if self.place is None and not view._ask(view.current(), "SELECT 1 FROM cluster_catalogue", ()):
            return None
        url, found = open_place(self.url, namespace, lambda connection, at: None)  # a cluster may have been made or have grown
        own = view._ask(view.current(), "SELECT value FROM meta WHERE key = 'database_id'", ())[0][0]
        return None if found is None or found.catalogue.instance(found.here).identity == own else url

    def for_namespace(self,
                      namespace: str | None,  # a partition; None: the whole store
                      ) -> Self:
        """Return the same store as seen from one namespace: its writers take turns with those of this namespace alone, and with a role that
        owns nothing, rows of others are out of reach. Connections and transactions are shared."""
        if namespace == self.namespace:
            return self
        other = copy.copy(self)
        other.namespace = namespace
        return other

    def lease(self,
              task: str,  # name of a piece of background work
              ) -> AbstractContextManager[bool]:
        "Hold a piece of background work until the end of the block, outside of any transaction. False: another process has it."
        return take_lease(self._server.pool, task, self.path)

    def grant(self,
              role: str,  # a role of the server that owns nothing
              ) -> None:
        "Give a role the rights that a store needs. Raises `StoreError` when the role is not there, or when this one may not grant."
        with self._pipeline.cursor(self.current()) as cursor:
            for statement in grants(role, cursor.connection.info.server_version):
                cursor.execute(statement)

    @property
    def closed(self) -> bool:
        "Return whether `close` was called, here or on another view of the store."
        return self._server.closed

    @property
    def has_files(self) -> bool:
        "Return whether derived files may lie beside the store: not beside a server."
        return False

    @property
    def in_transaction(self) -> bool:
        "Return whether this thread is in a transaction or snapshot."
        return self.current().active

    def current(self) -> ThreadState:
        "Return the state of this thread. Raises `StoreError` after `close`."
        state = self._server.state()
        if self.closed and (state is None or not state.active):
            raise StoreError(f"The store {self.path!r} is closed.", "Open it again.")
        if state is None:
            state = self._server.local.state = ThreadState()
        return state

    def shared_lock(self) -> AbstractContextManager[bool]:
        "Return a lock for an object that threads share beside the store, such as an index."
        return threading.RLock()

    def backup(self,
               target: "str | Path",  # a file
               ) -> Path:
        "Refuse: a server's backups are made with the server's own tools."
        raise StoreError(f"The store {self.path!r} is in a server, which makes its own backups; {str(target)!r} was not written.",
                         f"Use pg_dump --schema={SCHEMA}, or pg_basebackup; or copy it into a file with `rlm db copy`.")

    def close(self) -> None:
        "Close every connection."
        self._server.close()

    def query(self,
              sql: str,                                        # one statement, as the tables write it
              values: Sequence[Any] | Mapping[str, Any] = (),  # values of its placeholders
              ) -> list[tuple[Any, ...]]:
        "Run one statement and return its rows. Raises `StoreError`."
        state = self.current()
        if sql == "SELECT changes()":
            self._pipeline.flush(state)
            return [(state.last_changes,)]
        if state.connection is None:
            self._look_around(state)
        if state.answered and (rows := state.answered.pop(_asked(sql, values), None)) is not None:
            return rows
        statement = translated(sql)
        if state.uncommitted and sql.lstrip().startswith(_WRITES) and "RETURNING" not in sql and ";" not in statement:
            with self._pipeline.cursor(state) as cursor:
                known = self._server.statements(cursor)
                said = known.written(cursor, statement, values) if sql.startswith(_OFTEN) else cursor.mogrify(statement, values)
                self._pipeline.postpone(state, self.namespace, cursor, said, 1)
            return []
        return self._ask_again(state, statement, values)

    @contextmanager
    def ahead(self,
              questions: Iterable[Question],  # statements with their values
              ) -> Iterator[None]:
        "Ask questions in one round trip; each is answered from that once, when it is asked inside the block. Raises `StoreError`."
        state = self.current()
        before = state.answered
        if questions := list(questions):
            with self._pipeline.cursor(state) as cursor:
                self._pipeline.send(state, self.namespace, cursor, "; ".join(self._server.written_out(cursor, questions)))
                state.answered = before | dict(zip((_asked(*q) for q in questions), _results(cursor), strict=True))
        try:
            yield
        finally:
            state.answered = before

    def iterate(self,
                sql: str,                                        # one statement, as the tables write it
                values: Sequence[Any] | Mapping[str, Any] = (),  # values of its placeholders
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
            with self._pipeline.cursor(state) as cursor:
                if len(part) == 1 and sql.startswith("INSERT"):
                    said, number = self._server.statements(cursor).written(cursor, statement, part[0]), 1
                elif plain := _PLAIN_INSERT.match(statement):
                    said, number = plain[1] + ", ".join(cursor.mogrify(plain[2], row) for row in part), 1
                else:
                    said, number = "; ".join(cursor.mogrify(statement, row) for row in part), len(part)
            if state.uncommitted and not sql.startswith(_CAUGHT):
                with self._pipeline.cursor(state) as cursor:
                    self._pipeline.postpone(state, self.namespace, cursor, said, number)
                continue
            with self._pipeline.savepoint(state), self._pipeline.cursor(state) as cursor:
                self._pipeline.send(state, self.namespace, cursor, said)
                while True:
                    self._pipeline.count(state, cursor)
                    if not cursor.nextset():
                        break

    @contextmanager
    def transaction(self,
                    patience: float | None = None,  # seconds to wait for its turn, at most; None: the busy timeout
                    ahead: Sequence[Question] = (),  # questions that it asks first: they go along with its beginning
                    ) -> Iterator[None]:
        "Store all that is done inside, or nothing. A transaction inside another is a part of it that can fail by itself."
        if self.read_only:
            raise StoreReadOnly(f"The store {self.path!r} is open for reading only.", "Open it without read_only.")
        state = self.current()
        if state.active:
            before = state.failed
            with self._pipeline.savepoint(state):
                if state.uncommitted and not state.turns & {None, self.namespace}:
                    with self._pipeline.cursor(state) as cursor:
                        self._pipeline.flush(state, "; ".join(self._server.written_out(cursor, self._turn(0))))
                    state.turns.add(self.namespace)
                with self.ahead(ahead):
                    yield
                if state.failed and not before:
                    state.failed = before
                    raise self._pipeline.half_done()
            return
        wait = int(1000 * (self.busy_timeout_s if patience is None else min(patience, self.busy_timeout_s)))
        with self._pipeline.span(state, self.namespace, "BEGIN", (*self._turn(max(wait, 1)), *ahead)):
            state.uncommitted = True
            state.turns.add(self.namespace)
            yield

    def check_writable(self) -> None:
        "Raise `StoreReadOnly` where the store is only read, or the server takes no writes, as a replica does. Raises `StoreError`."
        if self.read_only or self._ask_again(self.current(), "SELECT current_setting('transaction_read_only')", ()) == [("on",)]:
            raise StoreReadOnly(f"The store {self.path!r} can only be read.", "Open it without read_only, at a server that takes writes.")

    @contextmanager
    def snapshot(self) -> Iterator[None]:
        "Read all that is read inside as of one moment, whatever others write meanwhile."
        state = self.current()
        if state.active:
            yield
            return
        self._look_around(state)
        with self._pipeline.span(state, self.namespace, "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY", (_GENERATION,)):
            state.generations[self.namespace] = int(self.query(*_GENERATION)[0][0])
            yield

    def _look_around(self, state: ThreadState) -> None:
        "Ask now and then whether the namespace went to another instance. Raises `StoreMoved`."
        if self.namespace is None or time.monotonic() < self._server.looked.get(self.namespace, 0.0) + LOOK_S:
            return
        if len(self._server.looked) >= MOST_LOOKED:
            self._server.looked.clear()
        self._server.looked[self.namespace] = time.monotonic()
        gone = self._ask_again(state, _GONE, (self.namespace,))
        if gone:
            self._server.looked.pop(self.namespace, None)
            raise moved_error(self.path, f"moved to {gone[0][0]}")

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
        if (n := state.generations.get(self.namespace)) is None:
            n = int(self.query(*_GENERATION)[0][0])
            if state.active:  # a snapshot, which sees the same until it ends
                state.generations[self.namespace] = n
        return 0, n, 0

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
        logging.getLogger("psycopg.pool").addHandler(_QUIET)  # what it warns of reaches callers as errors
        return ConnectionPool(self.url, min_size=1, max_size=CONNECTIONS, timeout=max(self.busy_timeout_s, 1.0), open=True, num_workers=1,
                              configure=lambda connection: configure(connection, self.read_only),
                              kwargs={"autocommit": True, "cursor_factory": ClientCursor, "connect_timeout": CONNECT_SECONDS})

    def _turn(self, patience: int) -> tuple[Question, ...]:
        """The statements that take this writer's turn, within so many milliseconds (0: any number), and raise the generation. Writers of
        different namespaces do not wait for each other; one of the whole store waits for all."""
        if self.namespace is not None:
            return ((_TURN, (str(patience), self.namespace)),)
        return (("SELECT set_config('lock_timeout', ?, true)", (str(patience),)), (f"SELECT pg_advisory_xact_lock({STORE_LOCK})", ()),
                ("UPDATE store_generation SET n = n + 1 RETURNING set_config('lock_timeout', '0', true)", ()))

    def _ask_again(self, state: ThreadState, statement: str, values: Sequence[Any] | Mapping[str, Any]) -> list[tuple[Any, ...]]:
        "Run one statement and return its rows; a question outside of a transaction whose connection was lost is asked a second time."
        try:
            return self._ask(state, statement, values)
        except StoreError as e:
            if state.connection is not None or not statement.lstrip().startswith("SELECT") or not is_lost(e.__cause__):
                raise
            self._server.pool.check()  # the server was away: connections that broke meanwhile are replaced
            return self._ask(state, statement, values)

    def _ask(self, state: ThreadState, statement: str, values: Sequence[Any] | Mapping[str, Any]) -> list[tuple[Any, ...]]:
        "Run one statement and return its rows."
        with self._pipeline.cursor(state) as cursor:
            if _NUMBERS.search(statement):  # asked again and again, each time for others
                self._pipeline.send(state, self.namespace, cursor, self._server.statements(cursor).written(cursor, statement, values))
            else:
                self._pipeline.send(state, self.namespace, cursor, statement, values)
            self._pipeline.count(state, cursor)
            return _rows(cursor)
