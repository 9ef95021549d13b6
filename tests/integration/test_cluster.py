"Several PostgreSQL instances are one store: each namespace is in one of them, and moves without losing a write."
import threading
import time
import uuid
from argparse import Namespace
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from click.testing import CliRunner

from rlm import Memory
from rlm.core.errors import InvalidInput, NotFound, StoreError, StoreMoved
from rlm.core.files import server_path
from rlm.core.settings import load_settings
from rlm.service.cli import main
from rlm.service.hook_alone import word_context
from rlm.service.http.pool import MemoryPool
from rlm.store import Filters
from rlm.store.postgres import cluster, database
from rlm.store.postgres.cluster import (
    ClusterInstance,
    add_instance,
    address_of,
    bare_address,
    cluster_status,
    init_cluster,
    instance_connection,
    move_namespace,
    open_catalogue,
    rendezvous,
)
from rlm.store.records import MemoryRecord

psycopg = pytest.importorskip("psycopg")
EVERY = [f"tenant-{n}" for n in range(40)]
NAMES = [name for i in "abc" for name in [n for n in EVERY if rendezvous(n, ["a", "b", "c"]) == i][:2]]  # two for each of three instances


@contextmanager
def three_databases(postgres_server: str) -> Iterator[dict[str, str]]:
    "Three empty databases, each of which could be on a server of its own."
    found = {name: f"rlm_{name}_{uuid.uuid4().hex}" for name in "abc"}
    with psycopg.connect(postgres_server, autocommit=True) as connection:
        for database in found.values():
            connection.execute(f"CREATE DATABASE {database} TEMPLATE template0")
    yield {name: urlsplit(postgres_server)._replace(path=f"/{database}").geturl() for name, database in found.items()}
    with psycopg.connect(postgres_server, autocommit=True) as connection:
        for database in found.values():
            connection.execute(f"DROP DATABASE IF EXISTS {database} WITH (FORCE)")


@pytest.fixture
def addresses(postgres_server: str) -> Iterator[dict[str, str]]:
    "Three empty databases."
    with three_databases(postgres_server) as found:
        yield found


@pytest.fixture(scope="module")
def joined(postgres_server: str) -> Iterator[dict[str, str]]:
    "The instances of a cluster, with two namespaces in each."
    with three_databases(postgres_server) as found:
        init_cluster(found)
        for name in NAMES:
            with Memory(found["a"], namespace=name, embedder="none") as memory:
                memory.write(f"The {name} keeps bees.")
        yield found


@pytest.fixture(scope="module", autouse=True)
def no_grace() -> Iterator[None]:
    patch = pytest.MonkeyPatch()
    patch.setattr(cluster, "GRACE_S", 0.05)
    yield
    patch.undo()


def held(url: str) -> dict[str, tuple[str, ...]]:
    return {s.name: s.namespaces for s in cluster_status(url)}


def everything(memory: Memory) -> list[object]:
    return [records(memory), memory.backend.events(memory.ctx.namespace), memory.backend.check()]


def records(memory: Memory) -> list[MemoryRecord]:
    return memory.backend.find(memory.ctx.namespace, Filters(), 10**6)


def test_one_more_instance_takes_its_share_and_nothing_else_changes() -> None:
    names = [f"n{n}" for n in range(3000)]
    before, after = ([rendezvous(n, instances) for n in names] for instances in (["a", "b", "c"], ["a", "b", "c", "d"]))
    assert all(new in (old, "d") for old, new in zip(before, after, strict=True))
    assert all(600 < after.count(name) < 900 for name in "abcd")
    assert [rendezvous(n, ["c", "b", "a"]) for n in names] == before


def test_an_address_is_kept_without_who_uses_it() -> None:
    assert bare_address("postgresql://ana@db/m?sslpassword=secret&oauth_client_secret=s&sslmode=require") == "postgresql://db/m?sslmode=require"
    assert bare_address("postgresql://ana:x@db/m?user=eve&sslmode=require") == "postgresql://db/m?sslmode=require"
    other = ClusterInstance("b", "postgresql://db2:5433/m?sslmode=require", "i", 1)
    assert address_of(other, "postgresql://ana:x@db1/m?sslmode=disable") == "postgresql://ana:x@db2:5433/m?sslmode=require"
    assert address_of(other, "postgresql:///m?host=/run/a&user=ana").startswith("postgresql://db2:5433/m?user=ana&")


@pytest.mark.parametrize("given", [["a"], ["a=notes.db"], ["a=postgresql://x/y", "a=postgresql://x/z"]])
def test_what_is_no_instance_is_refused(given: list[str], bare: Path) -> None:
    done = CliRunner().invoke(main, ["cluster", "init", *given])
    assert isinstance(done.exception, InvalidInput) or done.exit_code


def test_a_cluster_from_the_first_namespace_to_the_last_move(addresses: dict[str, str], bare: Path) -> None:
    run, a = CliRunner().invoke, addresses["a"]
    with Memory(a, namespace=NAMES[0], embedder="none") as memory:  # there before the cluster
        memory.write("나는 땅콩 알레르기가 있다. I am allergic to peanuts.", tags=["health"])
    assert "2" in run(main, ["cluster", "init", f"a={a}", f"b={addresses['b']}"], catch_exceptions=False).output
    with pytest.raises(InvalidInput, match="in a cluster already"):
        init_cluster({"x": addresses["b"]})

    # each namespace is in one instance, whichever address is given, and also as a namespace of an open memory
    with Memory(addresses["b"], namespace=NAMES[0], embedder="none") as memory:
        assert memory.search("peanuts")
        for name in NAMES[1:]:
            other = memory.namespace(name)
            one = other.write(f"The {name} keeps bees in Busan.", tags=["bees"])
            other.update(one.id, text=f"The {name} keeps forty bees in Busan.")
            other.close()
    catalogue = open_catalogue(a)
    assert held(a) == {i: tuple(sorted(n for n in NAMES if catalogue.place(n) == i)) for i in "ab"} and all(held(a).values())

    # a namespace moves with all that it has, there and back, and numbers never meet
    name = held(a)["a"][-1]
    with Memory(a, namespace=name, embedder="none") as memory:
        memory.write("A pinned note about harbours.", pinned=True, id="harbour")
        before, hits = everything(memory), [h.id for h in memory.search("bees harbours")]
        moved = move_namespace(addresses["b"], name, "b")
        assert moved is not None and (moved.source, moved.target) == ("a", "b") and moved.rows > 10
        with pytest.raises(StoreMoved, match="moved to b"):
            memory.write("Nothing is written behind its back.")
        memory.backend.db._server.looked.clear()
        with pytest.raises(StoreMoved, match="moved to b"):
            memory.list()
    assert move_namespace(a, name, "b") is None
    with Memory(a, namespace=name, embedder="none") as memory:
        assert everything(memory) == before and [h.id for h in memory.search("bees harbours")] == hits
        memory.write("Written at the new place.")
        assert memory.search("new place")
    with instance_connection(a) as connection:
        for table, which in cluster.PARTS.items():
            if "{k}" not in which and table != "documents":
                assert connection.execute(f"SELECT count(*) FROM {table} WHERE {which.format(n=repr(name))}").fetchone() == (0,), table
    assert move_namespace(a, name) is not None if rendezvous(name, ["a", "b"]) == "a" else move_namespace(a, name, "a") is not None
    with Memory(addresses["b"], namespace=name, embedder="none") as memory:
        assert memory.search("new place") and memory.write("And back.").id and memory.backend.check() == []

    # a third instance: what is there stays until it is moved
    add_instance(a, "c", addresses["c"])
    places = held(a)
    assert places["c"] == () and sorted(n for held_ in places.values() for n in held_) == sorted(NAMES)
    with Memory(a, namespace=NAMES[0], embedder="none") as memory:
        assert memory.search("peanuts")
    assert "moved" in run(main, ["cluster", "move", "--all", "--db", a], catch_exceptions=False).output
    assert {n: i for i, held_ in held(a).items() for n in held_} == {n: rendezvous(n, ["a", "b", "c"]) for n in NAMES}
    for name in NAMES:
        with Memory(a, namespace=name, embedder="none") as memory:
            assert memory.list() and memory.backend.check() == []
    with pytest.raises(NotFound, match="no instance 'z'"):
        move_namespace(a, NAMES[0], "z")
    for to in "abc":
        with pytest.raises(NotFound, match="nothing in namespace"):
            move_namespace(a, "nobody", to)
    with pytest.raises(NotFound, match="nothing in namespace"):
        move_namespace(a, "nobody", next(i for i in "abc" if i != rendezvous("nobody", ["a", "b", "c"])))


def test_what_the_first_instance_held_before_moves_like_all_else(addresses: dict[str, str], bare: Path) -> None:
    a, b, c = addresses.values()
    with Memory(a, namespace="old", embedder="none") as memory:
        for n in range(3):  # numbers 1 to 3, which a second instance might have given, too
            memory.update(memory.write(f"The ferry number {n} leaves early.", id=f"f{n}").id, text=f"The ferry number {n} leaves late.")
    init_cluster({"a": a, "b": b})
    own = next(n for n in EVERY if rendezvous(n, ["a", "b"]) == "b" and rendezvous(n, ["a", "b", "c"]) == "b")
    with Memory(b, namespace=own, embedder="none") as memory:
        for n in range(3):
            memory.update(memory.write(f"The tram number {n} is full.").id, text=f"The tram number {n} is empty.")
    for name, to in (("old", "b"), (own, "a"), ("old", "a"), (own, "b")):
        assert move_namespace(a, name, to) is not None
    add_instance(a, "c", c)
    for name in ("old", own):
        assert move_namespace(a, name, "c") is not None
    with Memory(a, namespace="old", embedder="none") as memory:
        assert [h.id for h in memory.search("ferry number 2 late", k=1)] == ["f2"] and len(memory.history("f2").versions) == 2
        assert memory.backend.check() == []


def test_a_cluster_whose_instances_gave_the_same_numbers_moves_its_namespaces(addresses: dict[str, str], bare: Path) -> None:
    "Clusters of an early version: the first instance had given each number before the second began."
    a, b = addresses["a"], addresses["b"]

    def fill(url: str, name: str) -> None:
        with Memory(url, namespace=name, embedder="none") as memory:
            for n in range(4):
                memory.write(f"The {name} ferry number {n} leaves early.", id=f"f{n}")
                memory.update(f"f{n}", text=f"The {name} ferry number {n} leaves late.")
            memory.write("My sister Yuna lives in Busan.", id="busan", tags=["family"])
            memory.write("My sister Yuna lives in Seoul now.", id="seoul", pinned=True)
            memory.link("f0", "f1")
            memory.anchors.move_anchor("A", "f2")
            assert memory.context("Where does Yuna live?")

    def seen(memory: Memory) -> list[object]:
        found = [h.id for h in memory.search("ferry late")]
        facts = [(f.subject, f.value) for r in records(memory) for f in memory.backend.facts.of([r.seq]).get(r.seq, ())]
        return [found, facts, [v.text for v in memory.history("f2").versions], memory.links("f0"), memory.anchors.state()[0].id,
                [(e.kind, e.subject) for e in memory.backend.events(memory.ctx.namespace)],
                str(memory.context("Where does Yuna live?")), [r.id for r in records(memory)]]
    fill(a, "old")
    init_cluster({"a": a, "b": b})
    with psycopg.connect(b, autocommit=True) as connection:
        for sequence in cluster._SEQUENCES:
            connection.execute(f"SELECT setval('rlm.{sequence}', 1, false)")
    own = next(n for n in EVERY if rendezvous(n, ["a", "b"]) == "b")
    fill(b, own)
    for name, to in (("old", "b"), (own, "a"), ("old", "a"), (own, "b")):
        with Memory(a, namespace=name, embedder="none") as memory:
            before = seen(memory)
        assert move_namespace(a, name, to) is not None
        with Memory(a, namespace=name, embedder="none") as memory:
            assert seen(memory) == before and memory.backend.check() == []
            memory.write(f"Written in {to}.")
            assert memory.search(f"Written in {to}") and memory.backend.check() == []


def test_commands_of_the_whole_store_are_of_the_instance_that_is_named(addresses: dict[str, str], bare: Path, tmp_path: Path) -> None:
    run, a, b = CliRunner().invoke, addresses["a"], addresses["b"]
    here, there = (next(n for n in EVERY if rendezvous(n, ["a", "b"]) == i) for i in "ab")
    with Memory(tmp_path / "notes.db", namespace=here, embedder="none") as memory:
        memory.write("The ferry leaves at nine.")
        memory.namespace(there).write("The tram is full.")
    assert run(main, ["db", "export", str(tmp_path / "all.jsonl"), "--db", str(tmp_path / "notes.db")]).exit_code == 0
    init_cluster({"a": a, "b": b})
    refused = run(main, ["db", "import", str(tmp_path / "all.jsonl"), "--db", a])
    assert refused.exit_code == 1 and f"-n {there}" in refused.output, "what belongs elsewhere does not come in here"
    for name in (here, there):
        assert run(main, ["db", "import", str(tmp_path / "all.jsonl"), "--db", a, "-n", name], catch_exceptions=False).exit_code == 0
    assert {n: i for i, held_ in held(a).items() for n in held_} == {here: "a", there: "b"}
    for url, name in ((a, here), (b, there)):
        told = run(main, ["namespaces", "list", "--json", "--db", url], catch_exceptions=False).output
        assert name in told and (there if name == here else here) not in told
        assert run(main, ["db", "check", "--db", url], catch_exceptions=False).output.count("All is well")
    copied = run(main, ["db", "copy", str(tmp_path / "notes.db"), b])
    assert copied.exit_code == 1 and "in a cluster" in copied.output
    for name, to in ((here, "b"), (there, "a")):  # the numbers of what was imported meet with none
        assert move_namespace(a, name, to) is not None
    assert "1 memory erased." in run(main, ["namespaces", "erase", here, "--yes", "--db", a], catch_exceptions=False).output
    assert held(a) == {"a": (there,), "b": (here,)}, "its events are kept"


def test_a_role_that_owns_nothing_is_told_to_leave_moves_to_the_owner(addresses: dict[str, str], bare: Path) -> None:
    a, role = addresses["a"], f"guest_{uuid.uuid4().hex[:8]}"
    init_cluster({i: addresses[i] for i in "ab"})
    with psycopg.connect(a, autocommit=True) as connection:
        connection.execute(f"CREATE ROLE {role} LOGIN")
    for i in "ab":
        assert CliRunner().invoke(main, ["db", "init", addresses[i], "--role", role]).exit_code == 0
    host = urlsplit(a).netloc.rpartition("@")[2]
    guest = urlsplit(a)._replace(netloc=f"{role}@{host}").geturl()
    with Memory(guest, namespace="mine", embedder="none") as memory:
        memory.write("The ferry leaves at nine.")
    with pytest.raises(StoreError, match="does not own the tables"):
        move_namespace(guest, "mine", "b" if rendezvous("mine", ["a", "b"]) == "a" else "a")
    with psycopg.connect(a, autocommit=True) as connection:
        connection.execute("UPDATE rlm.meta SET value = '2' WHERE key = 'schema_version'")
    with pytest.raises(StoreError, match="earlier rlm, and belong to another role"):
        Memory(guest, namespace="mine", embedder="none")
    for i in "ab":
        with psycopg.connect(addresses[i], autocommit=True) as connection:
            connection.execute(f"DROP OWNED BY {role} CASCADE")
    with psycopg.connect(a, autocommit=True) as connection:
        connection.execute(f"DROP ROLE {role}")


def test_two_instances_that_are_added_at_once_are_both_added(addresses: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    a, b, c = addresses.values()
    init_cluster({"a": a})
    both, store, met = threading.Barrier(2), cluster._store_catalogue, threading.local()

    def store_late(*given: Any) -> list[str]:
        if not hasattr(met, "once"):
            met.once = both.wait(30)  # both have read the same catalogue
        return store(*given)
    monkeypatch.setattr(cluster, "_store_catalogue", store_late)
    threads = [threading.Thread(target=add_instance, args=(a, name, url)) for name, url in (("b", b), ("c", c))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    found = [read_catalogue_of(url) for url in (a, b, c)]
    assert found[0] == found[1] == found[2] and {i.name for i in found[0].instances} == {*"abc"}
    assert sorted(i.number for i in found[0].instances) == [0, 1, 2]
    steps = {}
    for i in found[0].instances:
        with instance_connection(addresses[i.name]) as connection:
            row = connection.execute("SELECT last_value % 64 FROM memory_numbers").fetchone()
            steps[i.name] = row and row[0]
    assert steps == {i.name: i.number for i in found[0].instances}, "no two give the same numbers"


def read_catalogue_of(url: str) -> cluster.Catalogue:
    with instance_connection(url) as connection:
        found = cluster.read_catalogue(connection)
    assert found is not None
    return found


def test_an_addition_that_was_cut_off_is_finished_when_it_is_repeated(addresses: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    a, b, c = addresses.values()
    init_cluster({"a": a, "b": b})
    opened, store, storing = cluster.instance_connection, cluster._store_catalogue, list[int]()

    def of_a_alone(url: str, *rest: Any) -> Any:
        if storing and urlsplit(url).path != urlsplit(a).path:
            raise StoreError("It does not answer.", "")
        return opened(url, *rest)

    def store_in_a(*given: Any) -> list[str]:
        storing.append(1)
        return store(*given)
    with monkeypatch.context() as patch:
        patch.setattr(cluster, "instance_connection", of_a_alone)
        patch.setattr(cluster, "_store_catalogue", store_in_a)
        with pytest.raises(StoreError, match="could not be stored in: b, c"):
            add_instance(a, "c", c)
    assert len(read_catalogue_of(b).instances) == 2
    add_instance(a, "c", c)
    assert read_catalogue_of(a) == read_catalogue_of(b) == read_catalogue_of(c)
    with pytest.raises(InvalidInput, match="can't be added"):
        add_instance(a, "c", b)


@pytest.mark.parametrize("own", [False, True])
def test_a_server_that_was_started_before_the_cluster_finds_a_namespace_that_went(addresses: dict[str, str], bare: Path, own: bool,
                                                                                  monkeypatch: pytest.MonkeyPatch) -> None:
    a, b, c = addresses.values()
    monkeypatch.setattr(database, "LOOK_S", 0.0)
    settings = load_settings(db_path=server_path(a), namespace="garage" if own else "own", environment={})
    with closing(MemoryPool(settings, 8, embedder="none")) as pool:
        with pool.use("garage") as memory:
            memory.write("The van is in the garage.", id="van")
        init_cluster({"a": a, "b": b})
        add_instance(b, "c", c)
        for to, read in (("b", lambda m: m.stats()), ("c", lambda m: m.get("van")), ("a", lambda m: m.search("van"))):
            assert move_namespace(a, "garage", to) is not None
            with pytest.raises(StoreMoved), pool.use("garage") as memory:
                read(memory)
            with pool.use("garage") as memory:
                memory.write(f"Written in {to}.")
                assert memory.get("van").text and memory.search("van") and memory.stats()["memories"] > 1


def test_a_hook_finds_its_namespace_in_whichever_instance_it_is(joined: dict[str, str], bare: Path) -> None:
    for name in NAMES:
        given = Namespace(db=joined["a"], namespace=name, config=None, tokens=300)
        assert f"The {name} keeps bees." in word_context(given, "Who keeps bees?", None)[0]


def test_no_write_is_lost_while_a_namespace_moves(joined: dict[str, str], bare: Path) -> None:
    a, name, done, stop = joined["a"], "busy", list[str](), threading.Event()
    with Memory(a, namespace=name, embedder="none") as memory:
        memory.write_many([{"text": f"The {n}th note."} for n in range(200)])

    def write(writer: int) -> None:
        while not stop.is_set():
            with suppress(StoreMoved), Memory(a, namespace=name, embedder="none") as memory:
                while not stop.is_set():
                    memory.write("A note of a writer.", id=(one := f"w{writer}-{len(done)}-{uuid.uuid4().hex[:6]}"))
                    done.append(one)  # it was acknowledged
    writers = [threading.Thread(target=write, args=(n,)) for n in range(3)]
    for writer in writers:
        writer.start()
    where = [i for i, held_ in held(a).items() if name in held_]
    for to in ("b", "c", "a"):
        seen = len(done)
        move_namespace(a, name, to)
        deadline = time.monotonic() + 30
        while len(done) < seen + 3 and time.monotonic() < deadline:
            time.sleep(0.02)
    stop.set()
    for writer in writers:
        writer.join()
    with Memory(a, namespace=name, embedder="none") as memory:
        ids = [m.id for m in records(memory)]
        assert len(where) == 1 and len(done) > 9 and {*done} <= {*ids} and len(ids) == len({*ids}) == 200 + len(done)
        assert memory.backend.check() == []


@pytest.mark.nightly
@pytest.mark.parametrize("step", ["_copy", "_finish"])
def test_a_move_that_is_cut_off_is_repeated(joined: dict[str, str], bare: Path, step: str, monkeypatch: pytest.MonkeyPatch) -> None:
    name, b = f"cut-{step.strip('_')}", joined["b"]
    with Memory(b, namespace=name, embedder="none") as memory:
        memory.write("Kept.", id="kept")
    target = next(i for i in "abc" if i != open_catalogue(b).place(name))
    whole = getattr(cluster, step)

    def cut(*given: object) -> None:
        if step == "_copy":
            whole(*given)  # the target has it all; the source does not know
        raise KeyboardInterrupt
    with monkeypatch.context() as patch, suppress(KeyboardInterrupt):
        patch.setattr(cluster, step, cut)
        move_namespace(b, name, target)
    with Memory(b, namespace=name, embedder="none") as memory:  # wherever it is, it is whole, and it is written
        assert [m.id for m in memory.list()] == ["kept"]
        memory.write("Later.", id="later")
    move_namespace(b, name, target)
    with Memory(b, namespace=name, embedder="none") as memory:
        assert sorted(m.id for m in memory.list()) == ["kept", "later"] and memory.backend.check() == []
    assert [i for i, held_ in held(b).items() if name in held_] == [target]


def test_an_instance_that_is_down_holds_up_its_own_namespaces_alone(joined: dict[str, str], postgres_server: str, bare: Path) -> None:
    a = joined["a"]
    catalogue = open_catalogue(a)
    mine, lost = (next(n for n in NAMES if catalogue.place(n) == i) for i in "ab")
    database = urlsplit(joined["b"]).path[1:]
    with psycopg.connect(postgres_server, autocommit=True) as connection:
        connection.execute(f"ALTER DATABASE {database} ALLOW_CONNECTIONS false")
        connection.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s", (database,))
        try:
            with Memory(a, namespace=mine, embedder="none") as memory:
                assert memory.list()
                memory.write("The others go on.")
                with pytest.raises(StoreError, match=f"instance 'b', which holds the namespace '{lost}', does not answer"):
                    memory.namespace(lost)
            assert [(s.name, s.answers) for s in cluster_status(a)] == [("a", True), ("b", False), ("c", True)]
            assert CliRunner().invoke(main, ["cluster", "status", "--db", a]).exit_code == 1
        finally:
            connection.execute(f"ALTER DATABASE {database} ALLOW_CONNECTIONS true")
    with Memory(a, namespace=lost, embedder="none") as memory:
        assert memory.list()


def test_a_server_finds_a_namespace_that_went_elsewhere(joined: dict[str, str], bare: Path) -> None:
    b, name = joined["b"], "served"
    missing = urlsplit(b)._replace(query=urlsplit(b).query.replace("host=", "host=/nowhere,")).geturl()  # the first host does not answer
    pool = MemoryPool(load_settings(db_path=server_path(missing), namespace="own", environment={}), 8, embedder="none")
    with pool.use(name) as memory:
        memory.write("Kept.", id="kept")
    target = next(i for i in "abc" if i != open_catalogue(b).place(name))
    move_namespace(b, name, target)
    with pytest.raises(StoreMoved), pool.use(name) as memory:
        memory.write("Refused.")
    with pool.use(name) as memory:
        memory.write("Stored at its new place.", id="new")
        assert sorted(m.id for m in memory.list()) == ["kept", "new"]
    pool.close()
    assert [i for i, held_ in held(b).items() if name in held_] == [target]
