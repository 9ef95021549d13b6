"""Several PostgreSQL instances as one store: which of them holds a namespace, and how a namespace moves.

Each instance has the same catalogue: the names and addresses of all, and the namespaces that are not where rendezvous hashing puts them. An
instance that a namespace left knows where it went, and refuses to write for it, so that a catalogue that is out of date does no harm.
"""

import hashlib
import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field, replace
from itertools import count
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl, urlencode, urlsplit

from ...core.clock import SystemClock, to_iso
from ...core.errors import InvalidInput, NotFound, StoreClash, StoreError
from ...core.files import hidden_password
from ..fulltext import namespace_key
from ..threads import THREAD_TABLES
from .errors import connection_error, explain_server_error
from .schema import SCHEMA, STORE_LOCK

if TYPE_CHECKING:
    from psycopg import Connection

MOST_INSTANCES = 64  # instances of a cluster: numbers of rows are given in steps of it, so that no two instances give the same
GRACE_S = 2.0  # seconds that the rows of a moved namespace stay where it was, for readers that have not noticed
_OF_MEMORY = "seq IN (SELECT seq FROM memories WHERE namespace = {n})"
_OF_RUN = "run_id IN (SELECT run_id FROM runs WHERE namespace = {n})"
_OF_TRAJECTORY = f"trajectory_id IN (SELECT trajectory_id FROM trajectories WHERE {_OF_RUN})"
_OF_DOCUMENT = ("id IN (SELECT seq FROM memories WHERE namespace = {n} UNION ALL SELECT -vid FROM memory_versions WHERE namespace = {n})")
_SEQUENCES = ("memory_numbers", "memory_versions_vid_seq", "events_id_seq", "recalls_id_seq", "pending_scrubs_id_seq",
              "trajectories_rowid_seq", "snapshots_rowid_seq")  # what gives numbers to rows
PARTS: Mapping[str, str] = {  # table → which of its rows are a namespace's; a table stands behind those that it refers to
    "memories": "namespace = {n}", "memory_versions": "namespace = {n}", "memory_tags": _OF_MEMORY,
    "edges": "src IN (SELECT seq FROM memories WHERE namespace = {n})", "triples": _OF_MEMORY, "vectors": _OF_MEMORY,
    "slots": "namespace = {n}", "slot_refs": "namespace = {n}", "facts": "namespace = {n}", "rejections": "namespace = {n}",
    "runs": "namespace = {n}", "trajectories": _OF_RUN, "judgments": _OF_TRAJECTORY, "memory_usage": _OF_TRAJECTORY,
    "events": "namespace = {n}", "snapshots": "namespace = {n}", "recalls": "namespace = {n}", "recalled": "namespace = {n}",
    **dict.fromkeys(("pending_scrubs", *THREAD_TABLES), "namespace = {n}"), "namespace_statistics": "namespace = {n}",
    "documents": _OF_DOCUMENT, "postings": "starts_with(term, {k})"}

_NUMBERED = {  # sequence → what it numbers
    "memory_numbers": ("memories", "seq"), "memory_versions_vid_seq": ("memory_versions", "vid"), "events_id_seq": ("events", "id"),
    "recalls_id_seq": ("recalls", "id"), "pending_scrubs_id_seq": ("pending_scrubs", "id")}
_NUMBER_OF = {**dict.fromkeys(("seq", "src", "dst", "anchor", "ended_by"), "memory_numbers"), "vid": "memory_versions_vid_seq",
              "events.id": "events_id_seq", "recalls.event": "events_id_seq", "recalls.id": "recalls_id_seq",
              "recalled.recall": "recalls_id_seq", "pending_scrubs.id": "pending_scrubs_id_seq"}  # column → sequence of its numbers


def rendezvous(namespace: str,            # a partition
               instances: Sequence[str],  # names of instances
               ) -> str:
    "Return the instance with the highest hash of both names: one more instance takes its share of the namespaces, and no others change."
    return max(instances, key=lambda name: (hashlib.blake2b(f"{name}\0{namespace}".encode(), digest_size=8).digest(), name))


@dataclass(frozen=True, slots=True)
class ClusterInstance:
    "Identifies one instance of a cluster."

    name: str  # its name
    address: str  # its address, without user and password: these are the caller's
    identity: str  # identity of its store
    number: int  # remainder of the numbers that it gives, from 0


@dataclass(frozen=True, slots=True)
class Catalogue:
    "Lists the instances of a cluster, and the namespaces that are elsewhere than hashing puts them."

    version: int  # raised by each change
    instances: tuple[ClusterInstance, ...]  # by number
    places: Mapping[str, str] = field(default_factory=dict)  # namespace → name of the instance that holds it

    def place(self,
              namespace: str,  # a partition, there or not
              ) -> str:
        "Return the name of the instance that holds a namespace."
        return self.places.get(namespace) or rendezvous(namespace, [i.name for i in self.instances])

    def instance(self,
                 name: str,  # its name
                 ) -> ClusterInstance:
        "Return an instance by its name. Raises `NotFound`."
        for found in self.instances:
            if found.name == name:
                return found
        raise NotFound(f"The cluster has no instance {name!r}.", f"It has: {', '.join(i.name for i in self.instances)}.")

    def to_json(self) -> str:
        "Return the catalogue as it is stored."
        rows = [{"name": i.name, "address": i.address, "identity": i.identity, "number": i.number} for i in self.instances]
        return json.dumps({"version": self.version, "instances": rows, "places": dict(self.places)}, ensure_ascii=False, sort_keys=True)

    @classmethod
    def from_json(cls,
                  text: str,  # a stored catalogue
                  ) -> "Catalogue":
        "Read a stored catalogue."
        found = json.loads(text)
        return cls(found["version"], tuple(ClusterInstance(**row) for row in found["instances"]), found["places"])


def _joined(host: str, path: str, query: Sequence[tuple[str, str]]) -> str:
    "Return an address as libpq reads it: with two slashes also before an empty host."
    return f"postgresql://{host}{path}{'?' if query else ''}{urlencode(query)}"


_OF_CALLER = ("user", "password", "sslpassword", "oauth_client_secret")  # parameters of an address that no catalogue keeps


def bare_address(url: str,  # address of a database
                 ) -> str:
    "Return an address without user, passwords and other secrets."
    found = urlsplit(url)
    query = [(k, v) for k, v in parse_qsl(found.query) if k not in _OF_CALLER]
    return _joined(found.netloc.rpartition("@")[2], found.path, query)


def address_of(instance: ClusterInstance,  # an instance
               caller: str,                # address by which a caller came: its user, password and other parameters are taken
               ) -> str:
    "Return the address by which a caller reaches an instance."
    found, mine = urlsplit(caller), urlsplit(instance.address)
    who = found.netloc.rpartition("@")[0]
    kept = [(k, v) for k, v in parse_qsl(found.query) if k not in ("host", "port", "hostaddr", "dbname")]
    given = dict(kept) | dict(parse_qsl(mine.query))
    return _joined(f"{who}@{mine.netloc}" if who else mine.netloc, mine.path, list(given.items()))


def read_catalogue(connection: "Connection[Any]",  # connection to a database with rlm's tables
                   ) -> Catalogue | None:          # None: the store is no part of a cluster
    "Return the catalogue that an instance has."
    row = connection.execute(f"SELECT body FROM {SCHEMA}.cluster_catalogue".encode()).fetchone()
    return None if row is None else Catalogue.from_json(row[0])


@dataclass(frozen=True, slots=True)
class ClusterPlace:
    "Says which instance holds a namespace, as one instance knows it."

    here: str  # name of the instance that was asked
    name: str  # name of the one that holds the namespace
    address: str  # its address, as the caller reaches it
    catalogue: Catalogue  # catalogue of the instance that was asked
    went: bool = False  # whether the namespace was there and went away


def located(connection: "Connection[Any]",  # connection to the database that an address names
            url: str,                       # the address
            namespace: str | None,          # a partition; None: the instance of the address itself
            sent: bool = False,             # the instance that the namespace left has named this one; its catalogue may not know yet
            ) -> ClusterPlace | None:       # None: the store is no part of a cluster
    "Ask an instance where a namespace is. Raises `StoreError`."
    table = connection.execute("SELECT to_regclass(%s)", (f"{SCHEMA}.cluster_catalogue",)).fetchone()
    catalogue = read_catalogue(connection) if table is not None and table[0] is not None else None
    if catalogue is None:
        return None
    row = connection.execute(f"SELECT value FROM {SCHEMA}.meta WHERE key = 'database_id'".encode()).fetchone()
    here = next((i for i in catalogue.instances if row is not None and i.identity == row[0]), None)
    if here is None:
        raise StoreError(f"The store {hidden_password(url)!r} is none of the cluster whose catalogue it has.",
                         "Is it a copy of an instance? Give the address of an instance.")
    place, went = here.name if namespace is None or sent else catalogue.place(namespace), False
    if namespace is not None and place == here.name:
        connection.execute(b"SET rlm.whole = 'on'")
        gone = connection.execute(f"SELECT instance FROM {SCHEMA}.moved_namespaces WHERE namespace = %s".encode(), (namespace,)).fetchone()
        place, went = (place, False) if gone is None else (str(gone[0]), True)
    return ClusterPlace(here.name, place, address_of(catalogue.instance(place), url), catalogue, went)


def namespace_of_instance(url: str,        # address of a store
                          wanted: str,     # a namespace
                          ) -> str:        # the same, where the very store of the address holds it
    "Return the name of a namespace, there or not, that belongs to the instance that an address names. Raises `StoreError`."
    with instance_connection(url) as connection:
        place = located(connection, url, wanted)
    if place is None or place.name == place.here:
        return wanted
    return next(name for name in map("instance{}".format, count()) if place.catalogue.place(name) == place.here)


@contextmanager
def instance_connection(url: str,  # address of an instance
                        ) -> "Iterator[Connection[Any]]":
    "Yield a connection that sees the whole store of an instance. Raises `StoreError`."
    import psycopg

    from .database import CONNECT_SECONDS
    try:
        opened = psycopg.connect(url, autocommit=True, connect_timeout=CONNECT_SECONDS)
    except psycopg.Error as e:
        raise connection_error(e, url) from e
    try:
        with closing(opened) as connection:
            connection.execute(f"SET search_path = {SCHEMA}, public; SET rlm.whole = 'on'; SET rlm.namespace = ''; SET rlm.terms = ''; "
                               "SET client_min_messages = warning".encode())
            yield connection
    except psycopg.Error as e:
        raise explain_server_error(e, hidden_password(url)) from e


def _first(connection: "Connection[Any]", sql: str, *values: object) -> Any:
    "Return the first column of the first row."
    row = connection.execute(sql.encode(), values or None).fetchone()
    return None if row is None else row[0]


def _namespaces(connection: "Connection[Any]") -> list[str]:
    sql = ("SELECT namespace FROM generations UNION SELECT namespace FROM memories UNION SELECT namespace FROM events "
           "EXCEPT SELECT namespace FROM moved_namespaces ORDER BY 1")
    return [str(row[0]) for row in connection.execute(sql.encode())]


def _store_catalogue(catalogue: Catalogue, urls: Mapping[str, str]) -> list[str]:
    """Write a catalogue to every instance that answers; return the names of those that did not. All write in the order of the instances:
    what an earlier writer has stored in the first is found there. Raises `StoreClash`, where another change is as new."""
    silent = []
    for instance in catalogue.instances:
        try:
            with instance_connection(urls[instance.name]) as connection:
                connection.execute("INSERT INTO cluster_catalogue AS c (version, body) VALUES (%s, %s) ON CONFLICT (one) DO UPDATE "
                                   "SET version = excluded.version, body = excluded.body WHERE c.version < excluded.version",
                                   (catalogue.version, catalogue.to_json()))
                there = read_catalogue(connection)
        except StoreError:
            silent.append(instance.name)
        else:
            if there != catalogue:
                raise StoreClash("Another change of the cluster was stored first.", "Repeat the command.")
    return silent


def _change_catalogue(url: str, change: Callable[[Catalogue], Catalogue], urls: Mapping[str, str]) -> tuple[Catalogue, list[str]]:
    """Store a change of the newest catalogue, and of the next one where another change was stored first. Return what holds now, and the
    names of instances that did not answer. `urls`: addresses of instances that the cluster does not have yet."""
    for _ in range(MOST_INSTANCES):
        new = change(open_catalogue(url))
        with suppress(StoreClash):
            return new, _store_catalogue(new, {i.name: address_of(i, url) for i in new.instances} | dict(urls))
    raise StoreClash("Other changes of the cluster were stored first, each time.", "Repeat the command.")


def _last_numbers(connection: "Connection[Any]", others: Mapping[str, int]) -> dict[str, int]:
    "Return the last number of each sequence of an instance, or that of others where it is higher."
    return {name: max(others.get(name, 0), int(_first(connection, f"SELECT last_value - (NOT is_called)::int FROM {name}")))
            for name in _SEQUENCES}


def _number_apart(connection: "Connection[Any]", number: int, others: Mapping[str, int]) -> None:
    "Let an instance give numbers of one remainder only, above those that others gave: a first instance gave all of them once."
    for sequence, last in _last_numbers(connection, others).items():
        connection.execute(f"ALTER SEQUENCE {sequence} INCREMENT BY {MOST_INSTANCES}".encode())
        connection.execute("SELECT setval(%s::regclass, %s, false)", (sequence, last + 1 + (number - last - 1) % MOST_INSTANCES))


def _instance(name: str, url: str, number: int, others: Mapping[str, int]) -> tuple[ClusterInstance, list[str], dict[str, int]]:
    """Make the tables of an instance, and return it with the namespaces that it holds and the last numbers of it and others.
    Raises `StoreError`, `InvalidInput`."""
    from .database import PostgresDatabase
    if not name.isidentifier():
        raise InvalidInput(f"{name[:60]!r} is no name of an instance.", "Use letters, digits and _.")
    PostgresDatabase(url).close()
    with instance_connection(url) as connection:
        if read_catalogue(connection) is not None:
            raise InvalidInput(f"The store {hidden_password(url)!r} is in a cluster already.", "See `rlm cluster status`.")
        held, numbers = _namespaces(connection), _last_numbers(connection, others)
        _number_apart(connection, number, others)
        identity = str(_first(connection, "SELECT value FROM meta WHERE key = 'database_id'"))
    return ClusterInstance(name, bare_address(url), identity, number), held, numbers


def init_cluster(addresses: Mapping[str, str],  # name → address; the first may hold memories, the others are empty
                 ) -> Catalogue:
    "Make a cluster of instances, and store its catalogue in each. Raises `StoreError`, `InvalidInput`."
    if not addresses or len(addresses) > MOST_INSTANCES:
        raise InvalidInput(f"A cluster of {len(addresses)} instances.", f"Give 1 to {MOST_INSTANCES}, as NAME=ADDRESS.")
    made, places, numbers = list[ClusterInstance](), dict[str, str](), dict[str, int]()
    for number, (name, url) in enumerate(addresses.items()):
        instance, held, numbers = _instance(name, url, number, numbers)
        if held and number:
            raise InvalidInput(f"The instance {name!r} holds memories already: {', '.join(held[:3])}.",
                               "Only the first may; take the others in with `rlm db import` later.")
        if any(instance.identity == other.identity for other in made):
            raise InvalidInput(f"The instance {name!r} is the same database as another one.", "Give each instance once.")
        made.append(instance)
        places |= dict.fromkeys(held, name)
    bare = Catalogue(1, tuple(made))
    found = replace(bare, places={n: p for n, p in places.items() if bare.place(n) != p})
    _refuse_silent(_store_catalogue(found, addresses))
    return found


def _refuse_silent(silent: Sequence[str]) -> None:
    if silent:
        raise StoreError(f"The catalogue could not be stored in: {', '.join(silent)}.", "Start these instances, then repeat the command.")


def open_catalogue(url: str,  # address of an instance
                   ) -> Catalogue:
    "Return the newest catalogue that the instances of a cluster have. Raises `StoreError`, `NotFound`."
    with instance_connection(url) as connection:
        newest = read_catalogue(connection)
    if newest is None:
        raise NotFound(f"The store {hidden_password(url)!r} is in no cluster.", "Make one: rlm cluster init NAME=ADDRESS …")
    for instance in newest.instances:
        try:
            with instance_connection(address_of(instance, url)) as connection:
                other = read_catalogue(connection)
        except StoreError:
            continue
        newest = other if other is not None and other.version > newest.version else newest
    return newest


def add_instance(url: str,      # address of an instance of the cluster
                 name: str,     # name of the new one
                 address: str,  # its address; it is empty
                 ) -> Catalogue:
    "Add an instance. Namespaces that are there stay where they are until they are moved. Raises `StoreError`, `InvalidInput`."
    def added(old: Catalogue) -> Catalogue:
        there = next((i for i in old.instances if i.name == name), None)
        if there is not None and there.address == bare_address(address):
            return old  # an addition that was cut off: it is finished
        if there is not None or len(old.instances) == MOST_INSTANCES:
            raise InvalidInput(f"The instance {name!r} can't be added to {len(old.instances)}.", "Give another name.")
        held, numbers = dict[str, str](), dict[str, int]()
        for instance in old.instances:
            with instance_connection(address_of(instance, url)) as connection:
                held |= dict.fromkeys(_namespaces(connection), instance.name)
                numbers = _last_numbers(connection, numbers)
        instance, own, _ = _instance(name, address, max(i.number for i in old.instances) + 1, numbers)
        if own:
            raise InvalidInput(f"The instance {name!r} holds memories already: {', '.join(own[:3])}.", "Add an empty one.")
        if any(instance.identity == other.identity for other in old.instances):
            raise InvalidInput(f"The instance {name!r} is the same database as another one.", "Give each instance once.")
        new = Catalogue(old.version + 1, (*old.instances, instance))
        return replace(new, places={n: p for n, p in held.items() if new.place(n) != p})

    new, silent = _change_catalogue(url, added, {name: address})
    _refuse_silent(silent)
    return new


@dataclass(frozen=True, slots=True)
class NamespaceMove:
    "Reports the move of a namespace."

    namespace: str  # the partition
    source: str  # name of the instance that it left
    target: str  # name of the instance that holds it now
    rows: int  # rows that were copied
    waited_s: float  # seconds for which its writers had to wait


def move_namespace(url: str,               # address of an instance of the cluster
                   namespace: str,         # the partition
                   to: str | None = None,  # name of an instance; None: where hashing puts it
                   ) -> NamespaceMove | None:  # None: it is there already
    """Move a namespace while it is read and written. Its writers wait for as long as its rows are copied; then they are refused there, and
    find it at its new place. An interrupted move has changed nothing, or is finished by the next one. Raises `StoreError`, `NotFound`."""
    old = open_catalogue(url)
    target = old.instance(to or rendezvous(namespace, [i.name for i in old.instances]))
    source = _holder(old, namespace, url)
    if source.name == target.name:
        _finish(namespace, target, url)
        with instance_connection(address_of(target, url)) as there:
            if namespace not in _namespaces(there):
                raise NotFound(f"There is nothing in namespace {namespace!r}.", "See `rlm cluster status`.")
        return None
    with instance_connection(address_of(source, url)) as here, instance_connection(address_of(target, url)) as there:
        for connection, address in ((here, source.address), (there, target.address)):
            if _first(connection, "SELECT row_security_active('memories')"):
                raise StoreError(f"The role by which {address!r} was reached does not own the tables there.",
                                 "Move as their owner: rlm cluster move … --db postgresql://OWNER@HOST/DATABASE")
        if namespace not in _namespaces(here):
            raise NotFound(f"There is nothing in namespace {namespace!r}.", "See `rlm cluster status`.")
        begun = time.monotonic()
        with here.transaction():
            here.execute(f"SELECT pg_advisory_xact_lock_shared({STORE_LOCK})".encode())
            here.execute("INSERT INTO generations AS g (namespace, n) VALUES (%s, 1) ON CONFLICT (namespace) DO UPDATE SET n = g.n + 1",
                         (namespace,))  # its turn, as every writer takes it
            rows = _copied(here, there, namespace, target.number)
            here.execute("INSERT INTO moved_namespaces VALUES (%s, %s, %s)", (namespace, target.name, to_iso(SystemClock().now())))
        waited = time.monotonic() - begun
    _finish(namespace, target, url)
    return NamespaceMove(namespace, source.name, target.name, rows, waited)


def _holder(catalogue: Catalogue, namespace: str, url: str) -> ClusterInstance:
    "Return the instance that holds a namespace, also when the catalogue is out of date."
    found = catalogue.instance(catalogue.place(namespace))
    for _ in catalogue.instances:
        with instance_connection(address_of(found, url)) as connection:
            gone = _first(connection, "SELECT instance FROM moved_namespaces WHERE namespace = %s", namespace)
        if gone is None:
            return found
        found = catalogue.instance(gone)
    raise StoreError(f"The instances do not agree where the namespace {namespace!r} is.", "See `rlm cluster status`.")


_COLUMNS = "SELECT attname FROM pg_attribute WHERE attrelid = %s::regclass AND attnum > 0 AND NOT attisdropped ORDER BY attnum"


def _copied(here: "Connection[Any]", there: "Connection[Any]", namespace: str, number: int) -> int:
    """Copy all rows of a namespace; return how many. Where numbers of theirs are taken, rows get numbers that only the target gives: in a
    cluster that an early version made, a first instance and the others have given the same ones."""
    from psycopg.errors import UniqueViolation
    try:
        with here.transaction():
            return _copy(here, there, namespace, {})
    except UniqueViolation:
        last = _last_numbers(there, _last_numbers(here, {}))
        return _copy(here, there, namespace, {name: n + MOST_INSTANCES - (n - number) % MOST_INSTANCES for name, n in last.items()})


def _column(table: str, column: str, first: Mapping[str, int]) -> str:
    "Return a column as it is copied; `first`: the number of each sequence behind which new numbers begin, in their old order."
    if not first:
        return f'"{column}"'
    if table in ("documents", "postings") and column in ("id", "doc"):  # negative: a version
        return (f'{MOST_INSTANCES} * "{column}" + CASE WHEN "{column}" > 0 THEN {first["memory_numbers"]} '
                f'ELSE -{first["memory_versions_vid_seq"]} END')
    sequence = _NUMBER_OF.get(f"{table}.{column}") or _NUMBER_OF.get(column)
    return f'"{column}"' if sequence is None else f'{MOST_INSTANCES} * "{column}" + {first[sequence]}'


def _copy(here: "Connection[Any]", there: "Connection[Any]", namespace: str, first: Mapping[str, int]) -> int:
    "Copy all rows of a namespace, in one transaction of the target, with new numbers if `first` says where these begin; return how many."
    from psycopg import sql
    name, key = sql.Literal(namespace).as_string(), sql.Literal(namespace_key(namespace)).as_string()
    rows = 0
    with there.transaction():
        there.execute(f"SELECT pg_advisory_xact_lock_shared({STORE_LOCK})".encode())
        there.execute("DELETE FROM moved_namespaces WHERE namespace = %s", (namespace,))
        _agree_on_model(here, there, namespace)
        _remove(there, namespace)  # what an interrupted move left
        for table, condition in PARTS.items():
            names = [str(row[0]) for row in here.execute(_COLUMNS, (table,))]
            said, columns = ", ".join(_column(table, n, first) for n in names), ", ".join(f'"{n}"' for n in names)
            which = condition.format(n=name, k=key)
            with here.cursor() as source, there.cursor() as target, \
                    source.copy(f"COPY (SELECT {said} FROM {table} WHERE {which}) TO STDOUT".encode()) as out, \
                    target.copy(f"COPY {table} ({columns}) FROM STDIN".encode()) as into:
                for block in out:
                    into.write(block)
            rows += _first(there, f"SELECT count(*) FROM {table} WHERE {which}")
        n = _first(here, "SELECT n FROM generations WHERE namespace = %s", namespace)
        event = _first(there, "SELECT max(id) FROM events WHERE namespace = %s", namespace) or 0
        there.execute("INSERT INTO generations (namespace, n, event) VALUES (%s, %s, %s) ON CONFLICT (namespace) DO UPDATE "
                      "SET n = excluded.n, event = excluded.event", (namespace, n + 1, event))
        for counter, column, table in (("memories", "seq", "memories"), ("memory_versions", "vid", "memory_versions")):
            there.execute("SELECT advance(%s, (SELECT max(" + column + ") FROM " + table + " WHERE namespace = %s))", (counter, namespace))
        for sequence, (table, column) in _NUMBERED.items() if first else ():
            there.execute(f"SELECT setval('{sequence}', greatest(last_value, (SELECT max({column}) FROM {table} WHERE namespace = %s))) "
                          f"FROM {sequence}".encode(), (namespace,))
    return rows


def _agree_on_model(here: "Connection[Any]", there: "Connection[Any]", namespace: str) -> None:
    "Refuse to bring vectors of one model to those of another; an instance that has none takes the model over."
    for key in ("vector_model", "vector_calibration"):
        mine, theirs = (_first(c, "SELECT value FROM meta WHERE key = %s", key) for c in (here, there))
        if mine is not None and theirs is None:
            there.execute("INSERT INTO meta VALUES (%s, %s)", (key, mine))
        elif mine is not None and mine != theirs and key == "vector_model":
            raise StoreError(f"The namespace {namespace!r} has vectors of another model than the instance it would move to.",
                             "Embed one of the two anew: `rlm reembed`.")


def _remove(connection: "Connection[Any]", namespace: str) -> None:
    "Delete all rows of a namespace, those that others refer to last."
    from psycopg import sql
    name, key = sql.Literal(namespace).as_string(), sql.Literal(namespace_key(namespace)).as_string()
    for table, condition in [*PARTS.items()][::-1]:
        connection.execute(f"DELETE FROM {table} WHERE {condition.format(n=name, k=key)}".encode())
    connection.execute("DELETE FROM generations WHERE namespace = %s", (namespace,))


def _finish(namespace: str, target: ClusterInstance, url: str) -> None:
    "Write down where a namespace is now, and remove it from everywhere else once readers have noticed. Done before, it does nothing."
    def moved(old: Catalogue) -> Catalogue:
        if old.place(namespace) == target.name:
            return old
        places = {n: p for n, p in old.places.items() if n != namespace}
        home = rendezvous(namespace, [i.name for i in old.instances]) == target.name
        return Catalogue(old.version + 1, old.instances, places if home else places | {namespace: target.name})

    catalogue, _ = _change_catalogue(url, moved, {})
    urls = {i.name: address_of(i, url) for i in catalogue.instances}
    left = []
    for instance in catalogue.instances:
        with instance_connection(urls[instance.name]) as connection:
            if instance.name != target.name and _first(connection, "SELECT 1 FROM generations WHERE namespace = %s", namespace):
                left.append(instance.name)
    if left:
        time.sleep(GRACE_S)
    for name in left:
        with instance_connection(urls[name]) as connection, connection.transaction():
            _remove(connection, namespace)


@dataclass(frozen=True, slots=True)
class InstanceStatus:
    "Reports the state of an instance."

    name: str  # its name
    address: str  # its address
    answers: bool  # whether it does
    version: int | None  # version of its catalogue; None: it does not answer
    memories: int  # memories that it holds
    namespaces: tuple[str, ...]  # namespaces that it holds
    away: tuple[str, ...]  # those of them that hashing puts elsewhere
    problem: str = ""  # why it does not answer


def cluster_status(url: str,  # address of an instance that answers
                   ) -> list[InstanceStatus]:
    "Return how each instance of a cluster is. Raises `StoreError`, `NotFound`."
    catalogue, found = open_catalogue(url), list[InstanceStatus]()
    names = [i.name for i in catalogue.instances]
    for instance in catalogue.instances:
        try:
            with instance_connection(address_of(instance, url)) as connection:
                own = read_catalogue(connection)
                held = tuple(n for n in _namespaces(connection) if catalogue.place(n) == instance.name)
                count = _first(connection, "SELECT count(*) FROM memories")
            away = tuple(n for n in held if rendezvous(n, names) != instance.name)
            found.append(InstanceStatus(instance.name, instance.address, True, None if own is None else own.version, count, held, away))
        except StoreError as e:
            away = tuple(n for n, p in catalogue.places.items() if p == instance.name)
            found.append(InstanceStatus(instance.name, instance.address, False, None, 0, (), away, e.message))
    return found
