"A store in PostgreSQL answers as one in a file does, and says plainly what is wrong with a server."
import json
import logging
import os
import re
import subprocess
import sys
import threading
import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from functools import partial
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from click.testing import CliRunner, Result
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from rlm import Memory
from rlm.core.clock import ManualClock
from rlm.core.errors import (
    InvalidInput,
    NotFound,
    StoreBusy,
    StoreError,
    StoreForeign,
    StoreFull,
    StoreNewer,
    StoreReadOnly,
)
from rlm.core.files import hidden_password, server_path, server_url
from rlm.core.settings import load_settings
from rlm.service.cli import main
from rlm.store import Event, Filters, SQLStorage, Weights, slots
from rlm.store.postgres import database, schema
from rlm.store.postgres.dialect import translated
from rlm.store.postgres.schema import POSTGRES_MIGRATIONS, grants, is_exposed
from rlm.store.records import new_record
from rlm.store.storage import open_database
from rlm.store.threads import make_thread_tables
from rlm.store.transfer import store_copy
from rlm.store.writer import SQLWriter

psycopg = pytest.importorskip("psycopg")
NOTES = ("My sister Yuna lives in Busan.", "The deploy window is Wednesdays from 14:00 to 16:00 UTC.", "내 여동생 유나는 부산에 살아.",
         "배포는 수요일 오후에 한다.", "I am allergic to peanuts.", "Gareth is colour-blind.")


@pytest.fixture
def store(postgres: str, bare: Path, clock: ManualClock) -> Iterator[Memory]:
    with Memory(postgres, clock=clock) as opened:
        yield opened


def test_addresses_survive_being_a_path_and_hide_their_password() -> None:
    for address, path in (("postgresql://ana@db.example.org/memories", "postgresql:/memories?user=ana&host=db.example.org"),
                          ("postgres://ana:s%2Fx@db:5433/m?sslmode=require",
                           "postgresql:/m?user=ana&password=s%2Fx&host=db&port=5433&sslmode=require"),
                          ("postgresql:///m?host=/run/postgresql", "postgresql:/m?host=%2Frun%2Fpostgresql")):
        assert str(server_path(address)) == path
        assert server_path(server_url(path) or "") == Path(path), "what was read once is read again the same"
        assert server_url(Path(address)) is not None, "also when a Path has taken one of its slashes away"
    assert server_url("memory.db") is None and server_url(Path("/x/postgresql")) is None
    assert hidden_password(str(server_path("postgresql://ana:hunter2@[::1]/m"))) == "postgresql:///m?user=ana&password=***&host=%3A%3A1"
    for address in ("postgresql://ana:hunter2@db/m", "postgresql:/m?password=hunter2&user=ana&host=db", "postgresql://ana:hunt/er2@db/m"):
        assert hidden_password(address) == "postgresql://ana:***@db/m", "as a person writes it"
    for address in ("postgresql://ana:hunt/er2@db/m", "postgresql://ana:hunt#er2@db/m", "postgresql://ana:hunt?er2@db/m"):
        with pytest.raises(InvalidInput, match="a password, user or database holds") as refused:
            server_path(address)
        assert "hunt" not in str(refused.value)


def test_no_command_shows_the_password_of_an_address(bare: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RLM_DB_PATH", "postgresql://ana:hunter2@db.example/mem")
    runner = CliRunner()
    shown = runner.invoke(main, ["config"]).output + repr(load_settings())
    assert "hunter2" not in shown and shown.count("postgresql://ana:***@db.example/mem ") == 2
    assert json.loads(runner.invoke(main, ["config", "--json"]).output)["db_path"]["value"] == "postgresql://ana:***@db.example/mem"
    for words in (["mcp", "install", "--client", "claude-code"], ["hook", "install"]):
        printed = runner.invoke(main, words)
        assert "hunter2" not in printed.output and "postgresql://ana@db.example/mem" in printed.stdout, "and not a file of that name"
        assert "~/.pgpass" in printed.stderr
    monkeypatch.setenv("RLM_DB_PATH", "postgressql://ana:hunter2@db.example/mem")
    assert "postgressql://ana:***@db.example/mem" in (said := runner.invoke(main, ["config"]).output) and "hunter2" not in said


def test_the_ordinary_case_in_english_and_korean(store: Memory, postgres: str, clock: ManualClock,
                                                     monkeypatch: pytest.MonkeyPatch) -> None:
    assert isinstance(store.backend, SQLStorage)
    written = [store.write(text) for text in NOTES]
    assert [store.search(q)[0].memory.text for q in ("Where does Yuna live?", "유나는 어디에 살아?", "when may we deploy", "peanut")] == [
        NOTES[0], NOTES[2], NOTES[1], NOTES[4]]
    assert not store.search("zebra xylophone")
    store.update(written[0].id, text="My sister Yuna lives in Seoul.")
    assert store.search("Where does Yuna live?")[0].memory.text.endswith("Seoul.")
    assert "Seoul" in str(store.context("Where does Yuna live?"))
    monkeypatch.setattr(slots, "CONTEXTS", 1)
    for talk in ("a", "b"):
        store.anchors.of(talk).move_anchor("A", written[0].id)
        clock.advance(minutes=1)
    assert [store.anchors.of(talk).state()[0].id for talk in ("a", "b")] == [None, written[0].id], "the conversation used last is kept"
    store.delete(written[4].id, erase=True)
    assert not store.search("peanuts") and store.backend.check() == []
    with pytest.raises(NotFound):
        store.get(written[4].id)
    store.rules.add_rules([{"rule_id": "a", "expr": "Tea", "success": 5}, {"rule_id": "b", "expr": "차", "status": "ltm", "fail": 2}])
    assert [(t.rule_id, t.new) for t in store.rules.run_due().done] == [("a", "ltm"), ("b", "hot")]
    with psycopg.connect(postgres) as connection:
        made = "SELECT count(*) FROM pg_indexes WHERE indexname IN ('memories_rule_status', 'memories_rule_used')"
        assert connection.execute(made).fetchone() == (2,)
    with Memory(postgres, namespace="other", clock=store.clock) as other:
        assert not other.search("Yuna"), "nothing crosses from one namespace to another"
    with Memory(postgres, clock=store.clock, read_only=True) as reader:
        assert reader.search("Yuna")
        with pytest.raises(StoreReadOnly):
            reader.write("no")


def test_erased_words_are_in_no_table(store: Memory, postgres: str) -> None:
    without_autovacuum = ("memories", "memory_versions", "memory_tags", "postings", "documents")  # the erasure itself removes their rows
    with psycopg.connect(postgres, autocommit=True) as connection:
        for table in without_autovacuum:
            connection.execute(f"ALTER TABLE rlm.{table} SET (autovacuum_enabled = false)")
    gone = store.write("The vault code is kumquat-9931.", tags=["kumquat-tag"])
    store.update(gone.id, text="The vault code was kumquat-9931, now it is another.")
    store.write("Bananas are yellow.")
    store.delete(gone.id, erase=True)
    with psycopg.connect(postgres) as connection:
        for (table,) in connection.execute("SELECT table_name FROM information_schema.tables WHERE table_schema = 'rlm' "
                                           "AND table_type = 'BASE TABLE'").fetchall():
            found = connection.execute(f"SELECT t::text FROM rlm.{table} t WHERE t::text LIKE '%kumquat%'").fetchall()
            assert not found, (table, found)
        if connection.execute("SELECT 1 FROM pg_available_extensions WHERE name = 'pgstattuple'").fetchone():
            connection.execute("CREATE EXTENSION pgstattuple")
            dead = {t: connection.execute(f"SELECT dead_tuple_count FROM pgstattuple('rlm.{t}')").fetchone() for t in without_autovacuum}
            assert dead == dict.fromkeys(without_autovacuum, (0,)), "what was erased is in no dead row either"
        assert connection.execute("SELECT count(*) FROM rlm.postings WHERE term LIKE '%banana%'").fetchone() == (1,)


VOCABULARY = ("garden", "tomato", "river", "부산", "배포", "Yuna", "deploy", "peanuts", "유나", "window", "the", "of")
WORDS = st.lists(st.sampled_from(VOCABULARY), min_size=1, max_size=6).map(" ".join)
STEPS = st.lists(st.tuples(st.sampled_from(["write", "write", "write", "update", "delete", "erase", "use"]), WORDS,
                           st.sampled_from(["", "a", "b"]), st.integers(0, 9)), min_size=3, max_size=12)


@pytest.fixture(scope="module")
def one_database(postgres_server: str) -> Iterator[str]:
    with psycopg.connect(postgres_server, autocommit=True) as connection:
        connection.execute("CREATE DATABASE rlm_both TEMPLATE template0")
    yield urlsplit(postgres_server)._replace(path="/rlm_both").geturl()
    with psycopg.connect(postgres_server, autocommit=True) as connection:
        connection.execute("DROP DATABASE rlm_both WITH (FORCE)")


@settings(max_examples=10, phases=[Phase.generate], suppress_health_check=list(HealthCheck), derandomize=True)
@given(steps=STEPS, question=WORDS)
def test_both_engines_give_the_same_answers(one_database: str, bare: Path, steps: list[tuple[str, str, str, int]], question: str) -> None:
    clock, told, name = ManualClock("2026-01-01"), [], uuid.uuid4().hex
    with Memory(":memory:", namespace=name, clock=clock) as a, Memory(one_database, namespace=name, clock=clock) as b:
        ids: list[str] = []
        for place, (step, text, session, which) in enumerate(steps):
            clock.advance(seconds=60)
            target = ids[which % len(ids)] if ids else None
            for m in (a, b):
                if step == "write" or target is None:
                    m.write(f"{text} {place}", id=f"m{place}", session=session or None, tags=[session] if session else [])
                elif step == "update":
                    m.update(target, text=f"{text} {place}")
                elif step == "use":
                    m.feedback(target, helped=1, query=text)
                else:
                    m.delete(target, erase=step == "erase")
            if step == "write" or target is None:
                ids.append(f"m{place}")
            elif step in ("delete", "erase"):
                ids.remove(target)
        for m in (a, b):
            hits = m.search(question, k=10)
            told.append(([h.memory.id for h in hits], [pytest.approx(h.score, abs=1e-5) for h in hits],
                         [r.text for r in m.list()], [(e.kind, e.subject) for e in m.backend.events(name)],
                         [(r.record.id, pytest.approx(r.score)) for r in m.backend.fulltext.match(
                             question.split(), name, Filters.read(status="any"), 10, Weights())]))
        assert told[0] == told[1]
        assert b.backend.check() == []


def test_writers_of_several_threads_lose_nothing(store: Memory, postgres: str) -> None:
    def work(name: str) -> None:
        with Memory(postgres, clock=store.clock) as mine:
            for n in range(8):
                mine.write(f"thread {name} says number {n}", id=f"{name}{n}")

    threads = [threading.Thread(target=work, args=(name,)) for name in "abc"]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    events = store.backend.events("default")
    assert len(events) == 24 and len(store.list(k=100)) == 24 and [e.id for e in events] == sorted(e.id for e in events)
    assert store.search("thread b number 7", k=1)[0].memory.id == "b7"


def test_an_export_of_a_file_comes_into_a_server_and_back(store: Memory, tmp_path: Path, clock: ManualClock) -> None:
    with Memory(tmp_path / "a.db", clock=clock) as file:
        for text in NOTES:
            file.write(text, tags=["note"], session="s")
        file.delete(file.write("Left behind.").id)
        file.admin.export(tmp_path / "a.jsonl")
    store.admin.import_(tmp_path / "a.jsonl")
    store.admin.export(tmp_path / "b.jsonl")
    first, second = ([line for line in (tmp_path / name).read_text().splitlines() if '"format"' not in line]
                     for name in ("a.jsonl", "b.jsonl"))
    assert first == second
    store.write("Numbers go on behind what was imported.")
    assert store.backend.check() == [] and len(store.list(k=100)) == len(NOTES) + 1


def test_the_command_line_takes_an_address(postgres: str, bare: Path) -> None:
    def rlm(*words: str) -> Result:
        return CliRunner().invoke(main, words, env={"RLM_DB_PATH": postgres})

    assert rlm("memory", "write", NOTES[0]).exit_code == 0
    found = rlm("memory", "search", "Where does Yuna live?")
    assert found.exit_code == 0 and "Busan" in found.stdout, found.stderr
    refused = rlm("db", "backup", "copy.db")
    assert refused.exit_code and "pg_dump" in refused.stderr and isinstance(refused.exception, SystemExit)


def test_what_is_wrong_with_a_server_is_said_in_a_sentence(postgres: str, bare: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(kind: type[StoreError], words: str, url: str = postgres, **more: object) -> None:
        with pytest.raises(kind, match=words) as caught:
            Memory(url, **more)  # type: ignore[arg-type]
        assert caught.value.hint

    for wrong in ("postgresql://nobody@127.0.0.1:9/none", f"{postgres}&nonsense=1"):
        with pytest.raises(StoreError) as caught:
            Memory(wrong)
        assert "address right" in caught.value.hint and "write" not in caught.value.hint
    with pytest.raises(StoreError, match="does not exist") as caught:
        Memory(urlsplit(postgres)._replace(path="/nowhere").geturl())
    assert "database right" in caught.value.hint and "server up" not in caught.value.hint
    refused(StoreReadOnly, "made", read_only=True)
    with monkeypatch.context() as patch:
        patch.setattr(schema, "OLDEST_SERVER", 990000)
        refused(StoreError, "needs 99")
    with psycopg.connect(postgres, autocommit=True) as connection:
        connection.execute("CREATE SCHEMA rlm; CREATE TABLE rlm.invoices (id int)")
        refused(StoreForeign, "not rlm's")
        connection.execute("DROP SCHEMA rlm CASCADE")
        Memory(postgres).close()
        connection.execute("UPDATE rlm.meta SET value = '999' WHERE key = 'schema_version'")
        refused(StoreNewer, "newer rlm")
        connection.execute("DROP SCHEMA rlm CASCADE; DROP ROLE IF EXISTS rlm_guest; CREATE ROLE rlm_guest LOGIN")
        host = urlsplit(postgres).netloc.rpartition("@")[2]
        refused(StoreError, "rights", urlsplit(postgres)._replace(netloc=f"rlm_guest@{host}").geturl())
        connection.execute("DROP ROLE rlm_guest")


def test_a_connection_lost_in_a_transaction_stores_nothing_and_the_next_call_connects(store: Memory, postgres: str) -> None:
    store.write("before")
    def write_on_a_lost_connection() -> None:
        with store.backend.transaction() as writer:
            write_twice(writer)

    def write_twice(writer: SQLWriter) -> None:
        writer.log([Event(store.clock.now(), "use", "x", "default", {})])
        with psycopg.connect(postgres, autocommit=True) as other:
            other.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() "
                          "AND state = 'idle in transaction'")
        writer.log([Event(store.clock.now(), "use", "y", "default", {})])

    with pytest.raises(StoreError, match="connection"):
        write_on_a_lost_connection()
    assert [e.kind for e in store.backend.events("default")] == ["write"]
    store.write("after")
    assert len(store.list()) == 2


def test_a_full_disk_is_said_in_a_sentence_and_nothing_is_half_done(store: Memory, postgres: str) -> None:
    store.write("before")
    with psycopg.connect(postgres, autocommit=True) as connection:
        connection.execute("CREATE FUNCTION full_disk() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION "
                           "'could not extend file: No space left on device' USING ERRCODE = '53100'; END $$")
        connection.execute("CREATE TRIGGER full_disk BEFORE INSERT ON rlm.memory_tags EXECUTE FUNCTION full_disk()")
        with pytest.raises(StoreFull, match="room") as caught:
            store.write("much", tags=["large"])
        assert caught.value.hint
        connection.execute("DROP TRIGGER full_disk ON rlm.memory_tags")
    assert [m.text for m in store.list()] == ["before"] and store.check() == []
    store.write("after", tags=["large"])
    assert len(store.search("after")) == 1


def test_writers_of_different_namespaces_do_not_wait_for_each_other(store: Memory, postgres: str) -> None:
    with Memory(postgres, namespace="other", clock=store.clock) as other, Memory(postgres, clock=store.clock) as reader:
        store.write("The first memory is about rivers.")
        other.write("Theirs is about mountains.")
        assert reader.search("rivers")
        with store.backend.transaction() as writer:  # on one connection; below it others write, on another one
            late = new_record("The late memory is about lagoons.", store.clock.now(), "default")
            writer.insert([late])
            assert len(store.backend.events("default")) == 2, "what is asked inside sends what was written, and with it the event's number"

            def meanwhile() -> None:
                other.write("Theirs is about glaciers, and was stored first.")
                assert other.search("glaciers") and not reader.search("glaciers lagoons")
                for waiting in (reader.backend, other.backend.for_namespace(None)):
                    with pytest.raises(StoreBusy, match="another process"), waiting.transaction(0.05):
                        pass

            with ThreadPoolExecutor(1) as pool:
                pool.submit(meanwhile).result(timeout=60)
        assert reader.search("lagoons"), "the event with the lower number came later, and is not missed"
        numbers = [e.id for name in ("default", "other") for e in store.backend.for_namespace(None).events(name)]
        assert len(set(numbers)) == len(numbers) == 4
        assert store.backend.position()[1] < other.backend.position()[1] == store.backend.for_namespace(None).position()[1]
        with store.backend.for_namespace(None).transaction():
            assert store.write("In a transaction of the whole store.").id and store.namespace("other").write("And another.").id
        assert store.backend.check() == []


@pytest.fixture
def guest(postgres: str, bare: Path, clock: ManualClock) -> Iterator[str]:
    "The address of a store with memories of two tenants, for a role that owns nothing."
    with Memory(postgres, namespace="ana", clock=clock) as ana, Memory(postgres, namespace="ben", clock=clock) as ben:
        for name, memory in (("ana", ana), ("ben", ben)):
            first, second = memory.write(f"The word of {name} is kumquat.", tags=["secret"]), memory.write("Another one.")
            memory.update(first.id, text=f"The word of {name} is papaya.")
            memory.link(first.id, second.id)
            memory.backend.db.query("INSERT INTO thread_writes VALUES (?, 't', '', 'c', 'k', 0, '', 'said', 'json', ?)", (name, b"{}"))
    role = f"guest_{uuid.uuid4().hex[:8]}"
    with psycopg.connect(postgres, autocommit=True) as connection:
        connection.execute(f"CREATE ROLE {role} LOGIN")
    done = CliRunner().invoke(main, ["db", "init", postgres, "--role", role])
    assert done.exit_code == 0 and "is ready" in done.stdout, done.output
    host = urlsplit(postgres).netloc.rpartition("@")[2]
    yield urlsplit(postgres)._replace(netloc=f"{role}@{host}").geturl()
    with psycopg.connect(postgres, autocommit=True) as connection:
        connection.execute(f"DROP OWNED BY {role} CASCADE; DROP ROLE {role}")


def test_a_query_that_forgets_its_filter_cannot_cross_a_tenant(guest: str, clock: ManualClock) -> None:
    with Memory(guest, namespace="ana", clock=clock) as ana, closing(open_database(guest, False, "normal", 5.0)) as whole:
        db, tables = ana.backend.db, ("memories", "memory_versions", "memory_tags", "edges", "postings", "documents", "events",
                                      "memory_history", "memories_instances", "generations", "thread_writes", "namespace_statistics")
        for table in tables:
            mine, every = (d.query(f"SELECT count(*) FROM {table}")[0][0] for d in (db, whole))
            assert 0 < mine < every, f"{table}: a query without a condition reads rows of one tenant, where there are more"
        assert "ben" not in str(db.query("SELECT text FROM memories") + db.query("SELECT text FROM memory_history"))
        ben = ana.namespace("ben")
        for _ in range(6):  # statements that a connection has prepared for one tenant show another one what is theirs
            told = [str(memory.context("What is the word?")) for memory in (ana, ben)]
            assert [("of ana" in t, "of ben" in t) for t in told] == [(True, False), (False, True)]
        prepared = db._server.prepared.values()  # reaches inside: that the question above was one of a prepared statement
        assert any(said.startswith("EXECUTE") for known in prepared for said in known.said.values())
        db.query("UPDATE memories SET text = 'gone'")
        assert "The word of ben is papaya." in {t for (t,) in whole.query("SELECT text FROM memories")}
        with pytest.raises(StoreError, match="row-level security"):
            db.query("INSERT INTO events (at, namespace, kind, subject) VALUES ('2026', 'ben', 'use', 'x')")
        with pytest.raises(StoreError, match="rights"):
            db.query("ALTER TABLE memories DISABLE ROW LEVEL SECURITY")
    with psycopg.connect(guest) as plain:
        assert plain.execute("SELECT count(*) FROM rlm.memories").fetchone() == (0,), "who names no namespace sees nothing"


def test_a_role_that_owns_nothing_does_all_that_a_memory_does(guest: str, clock: ManualClock) -> None:
    with Memory(guest, namespace="ana", clock=clock) as ana:
        written = [ana.write(text, tags=["note"], session="s") for text in NOTES]
        assert ana.search("Where does Yuna live?")[0].memory.id == written[0].id
        ana.update(written[0].id, text="My sister Yuna lives in Seoul.")
        ana.delete(written[1].id)
        ana.delete(written[4].id, erase=True)
        assert {n.name for n in ana.backend.namespaces()} == {"ana", "ben"}
        ana.backend.repair()
        assert ana.backend.check() == [] and not ana.search("peanuts") and ana.search("유나는 어디에 살아?")
        ana.backend.erase_namespace("ana", clock.now())
        ana.context("Who is allergic to peanuts?")
        assert ana.ctx.recalls.flush() == 0 and {n.name for n in ana.backend.namespaces()} == {"ben"}, "no question is kept of what is gone"
        with ana.backend.transaction():
            ana.backend.db.query("INSERT INTO recalls (at, namespace, query, door, actor, event) "
                                 "VALUES ('2026-01-01', 'ana', 'Who?', 'rest', '', 1)")
        assert ana.admin.erase_namespace("ana").erased == 0 and {n.name for n in ana.backend.namespaces()} == {"ben"}
        assert not ana.list() and len(ana.namespace("ben").list()) == 2
        ana.namespace("ben").delete(ana.namespace("ben").list()[0].id)
    for command, said in ((["purge", "ben", "--days", "0", "--yes"], "1 memory erased."), (["erase", "ben", "--yes"], "1 memory erased.")):
        done = CliRunner().invoke(main, ["namespaces", *command], env={"RLM_DB_PATH": guest, "RLM_EMBEDDER": "none"})
        assert done.exit_code == 0 and said in done.output, done.output


def test_a_store_of_the_first_schema_is_brought_up_to_date(postgres: str, bare: Path, clock: ManualClock) -> None:
    database.PostgresDatabase(postgres, migrations=POSTGRES_MIGRATIONS[:1]).close()
    now = "2026-01-01T00:00:00.000000Z"
    with psycopg.connect(postgres) as old:
        old.execute("SET search_path = rlm; "
                    "INSERT INTO memories (seq, id, namespace, kind, text, status, created_at, updated_at, valid_from) "
                    f"VALUES (7, 'yuna', 'default', 'block', 'Yuna lives in Busan.', 'hot', '{now}', '{now}', '{now}'); "
                    f"INSERT INTO events (at, namespace, kind, subject) VALUES ('{now}', 'default', 'write', 'yuna'); "
                    "INSERT INTO namespace_statistics VALUES ('default', 1, 4); "
                    "INSERT INTO recalls (id, at, namespace, query, door, actor, event) "
                    f"VALUES (9, '{now}', 'default', 'copied', 'cli', '', 1)")
    with Memory(postgres, clock=clock) as memory:
        memory.backend.repair()
        assert memory.search("Yuna")[0].memory.id == "yuna" and memory.check() == []
        memory.searcher.record(memory.search("Yuna"), "cli")
        memory.ctx.recalls.flush()
        assert [r.id for r in memory.ctx.recalls.table.read("default")] == [10, 9]
        assert memory.write("Next.").id and memory.backend.get(["yuna"], "default")[0].seq == 7 and memory.list()[0].text == "Next."


def test_another_machine_needs_encryption_and_an_operator_gets_the_statements() -> None:
    for host, encrypted, address, exposed in (("db.example.org", False, "", True), ("db.example.org", True, "", False),
                                              ("db.example.org", False, "postgresql://db.example.org/m?sslmode=disable", False),
                                              ("127.0.0.1", False, "", False), ("/run/postgresql", False, "", False),
                                              ("", False, "", False)):
        assert is_exposed(host, encrypted, address) is exposed
    said = CliRunner().invoke(main, ["db", "init", "--sql", "--role", 'odd"name'])
    assert said.exit_code == 0 and said.stdout.splitlines() == [f"{s};" for s in grants('odd"name', 170000)]
    assert '"odd""name"' in said.stdout
    assert "MAINTAIN" not in str(grants("x", 160000)) and "MAINTAIN" in str(grants("x", 170000))


def test_text_inside_statements_is_left_alone() -> None:
    assert translated("SELECT '?:x%' || ? FROM t WHERE +a = :b") == "SELECT '?:x%%' || %s FROM t WHERE a = %(b)s"


def test_a_store_is_copied_to_a_server_and_back_and_an_interrupted_copy_goes_on(postgres: str, tmp_path: Path, clock: ManualClock,
                                                                                 monkeypatch: pytest.MonkeyPatch) -> None:
    with Memory(tmp_path / "a.db", clock=clock) as file:
        ids = [file.write(text, tags=["note"], session="s").id for text in NOTES]
        file.update(ids[0], text="My sister Yuna lives in Seoul.")
        file.delete(ids[5])
        file.link(ids[1], ids[3])
        file.searcher.record(file.search("Where does Yuna live?"), "cli")
        make_thread_tables(file.backend.db)
        file.backend.db.query("INSERT INTO thread_checkpoints VALUES ('default', 't', '', 'c', NULL, NULL, 'json', ?, 'json', ?)",
                              (b"\0a", b"{}"))
    with monkeypatch.context() as patch, closing(open_database(tmp_path / "a.db", True, "normal", 1.0)) as old, \
            closing(open_database(postgres, False, "normal", 1.0)) as new:
        patch.setitem(store_copy.TABLES_OF_A_STORE, "events", "no_such_column")
        with pytest.raises(StoreError):
            store_copy.copy_store(old, new)
    for source, target in ((tmp_path / "a.db", postgres), (postgres, tmp_path / "b.db")):
        with closing(open_database(source, True, "normal", 1.0)) as old, closing(open_database(target, False, "normal", 1.0)) as new:
            copied = {table.name: table for table in store_copy.copy_store(old, new)}
            with pytest.raises(StoreError, match="holds memories already"):
                store_copy.copy_store(old, new)
        assert copied["thread_checkpoints"].rows == 1
        assert copied["memories"].rows == 5 and copied["memories"].added == (0 if target == postgres else 5)
    for place in (postgres, tmp_path / "b.db"):
        with Memory(place, clock=clock) as copy:
            assert copy.search("Where does Yuna live?")[0].memory.text.endswith("Seoul.") and copy.backend.check() == []
            assert copy.write("The numbers go on.").id and len(copy.list(k=100)) == 6
            copy.searcher.record(copy.search("numbers"), "cli")
            copy.ctx.recalls.flush()
            assert [r.id for r in copy.ctx.recalls.table.read("default")] == [2, 1]


EMBEDS = """
import sys, time
from toy import Toy
from rlm import Memory
class Slow(Toy):
    batch = 4
    def embed(self, texts, kind):
        if kind == "passage":
            print(len(texts), flush=True)
            time.sleep(0.02)
        return super().embed(texts, kind)
with Memory(sys.argv[1], embedder=Slow(), embedding="later") as memory:
    memory.ctx.embeddings.resume()
    assert memory.ctx.embeddings.worker.wait(60)
    from rlm.service.nights import sleep_if_due
    print("slept" if sleep_if_due(memory) else "awake")
"""


@pytest.mark.nightly
def test_work_in_the_background_is_done_by_one_of_two_processes(postgres: str, bare: Path, clock: ManualClock) -> None:
    with Memory(postgres, embedder="none", clock=clock) as memory:  # months ago, so that a night is due
        memory.write_many([{"text": f"The boat number {n} is in the harbour."} for n in range(40)])
    there = os.environ | {"PYTHONPATH": os.pathsep.join([str(Path(database.__file__).parents[3]), str(Path(__file__).parents[1])])}
    two = [subprocess.Popen([sys.executable, "-c", EMBEDS, postgres], stdout=subprocess.PIPE, text=True, env=there) for _ in range(2)]
    told = [process.communicate(timeout=120)[0].split() for process in two]
    assert [process.returncode for process in two] == [0, 0]
    assert sum(int(word) for words in told for word in words if word.isdigit()) == 40, told
    assert sorted(words[-1] for words in told) == ["awake", "slept"]
    with Memory(postgres, embedder="none") as memory:
        assert len(memory.backend.events("default", kinds=("embed",))) >= 1 and not memory.backend.vectors.missing("toy", limit=1, dim=16)


@pytest.mark.nightly
def test_threads_that_share_a_memory_write_search_and_erase(store: Memory) -> None:
    "Two writers, two readers, one that erases and one that asks for blocks, on one `Memory`: nothing is lost, and what is gone stays gone."
    store.write_many([{"text": f"kumquat {n} of the winter", "id": f"k{n}"} for n in range(40)])
    failed, erased, seen = list[BaseException](), set[str](), list[int]()

    def write(name: str, n: int) -> None:
        store.write(f"thread {name} 번호 {n} says ferry", id=f"{name}{n}")

    def erase(n: int) -> None:
        store.delete(f"k{n}", erase=True)
        erased.add(f"k{n}")

    def search(n: int) -> None:
        gone = set(erased)
        found = {h.id for h in store.search("winter kumquat", k=50)}
        assert not found & gone, found & gone
        seen.append(len(found))

    def run(work: Callable[[int], object]) -> None:
        try:
            for n in range(20):
                work(n)
        except BaseException as e:
            failed.append(e)

    works: list[Callable[[int], object]] = [partial(write, "a"), partial(write, "b"), erase, search, search,
                                            lambda n: store.context("Which ferry says 번호?")]
    threads = [threading.Thread(target=run, args=(work,), daemon=True) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    assert not any(thread.is_alive() for thread in threads) and not failed, failed
    assert len(store.list(k=100)) == 60 and len(seen) == 40 and max(seen) <= 40
    assert {h.id for h in store.search("winter kumquat", k=50)} == {f"k{n}" for n in range(20, 40)}
    assert {h.id for h in store.search("thread ferry", k=50)} == {f"{name}{n}" for name in "ab" for n in range(20)} and store.check() == []


@pytest.mark.nightly
def test_several_processes_serve_one_store(postgres: str, bare: Path) -> None:
    httpx = pytest.importorskip("httpx")
    there = os.environ | {"PYTHONPATH": str(Path(database.__file__).parents[3]), "RLM_DB_PATH": postgres, "RLM_EMBEDDER": "none"}
    command = [sys.executable, "-c", "from rlm.service.cli import main; main()", "serve", "--port", "0", "--workers"]
    with subprocess.Popen([*command, "2"], stdout=subprocess.PIPE, text=True, env=there) as server:
        assert server.stdout is not None
        url = server.stdout.readline().split()[-1]
        for n in range(12):  # a connection each, so that both processes have their turn
            ticket = {"text": f"Yuna has the ticket number {n}.", "id": f"t{n}"}
            assert httpx.post(f"{url}v1/memories", json=ticket, timeout=60).status_code == 201
            found = httpx.post(f"{url}v1/memories:search", json={"query": f"ticket number {n}", "k": 1}, timeout=60).json()
            assert found["hits"][0]["memory"]["id"] == f"t{n}", "what one process stored, the other finds"
        server.terminate()
        assert server.wait(60) == 0


def test_what_is_asked_often_is_prepared_and_what_cannot_be_is_sent_as_it_is(postgres: str) -> None:
    with psycopg.connect(postgres, autocommit=True, cursor_factory=psycopg.ClientCursor) as connection:
        known, cursor, values = database.PreparedStatements(), connection.cursor(), {"a": 3, "b": "x'y"}
        asked = {"SELECT 7 + %(a)s, '100%%', left(%(b)s, %(a)s)": (10, "100%", "x'y"), "SELECT %(b)s IS NULL, %(a)s": (False, 3)}
        for n in range(database.ASKED_OFTEN + 1):
            said = [known.written(cursor, statement, values) for statement in asked]
            known.prepare(connection)
            assert [cursor.execute(s).fetchone() for s in said] == list(asked.values()), n
        assert [s.split()[0] for s in said] == ["EXECUTE", "SELECT"], "the type of what may be NULL is not known"
        known.planned -= 2 * database.PLANS_S
        known.prepare(connection)
        assert cursor.execute(said[0]).fetchone() == (10, "100%", "x'y"), "planned anew"


def test_a_list_of_numbers_is_one_value_of_a_prepared_statement(postgres: str) -> None:
    with psycopg.connect(postgres, autocommit=True, cursor_factory=psycopg.ClientCursor) as connection:
        cursor, known = connection.cursor(), database.PreparedStatements()
        sql = "SELECT n FROM generate_series(1, 9) AS n WHERE n IN ({}) AND n NOT IN (%s, %s) ORDER BY n"
        asked = [(sql.format(", ".join(["%s"] * count)), (*range(1, count + 1), 2, 3)) for count in (1, 3, 5, 7)]
        said = [known.written(cursor, *a) for a in asked[:database.ASKED_OFTEN]]
        known.prepare(connection)
        said.append(known.written(cursor, *asked[-1]))
        assert said[-1].startswith("EXECUTE") and not said[0].startswith("EXECUTE")
        assert [[n for (n,) in cursor.execute(s).fetchall()] for s in said] == [[1], [1], [1, 4, 5], [1, 4, 5, 6, 7]]
        words = known.written(cursor, "SELECT 'a' IN (%s, %s)", ("a", "b"))
        assert cursor.execute(words).fetchone() == (True,), "a list of words stays one"


def test_opening_a_store_again_adds_no_handler_of_logs(postgres: str, bare: Path) -> None:
    Memory(postgres, embedder="none").close()
    before = list(logging.getLogger("psycopg.pool").handlers)
    for _ in range(3):
        Memory(postgres, embedder="none").close()
    assert logging.getLogger("psycopg.pool").handlers == before


def test_a_write_and_a_block_for_a_prompt_take_few_round_trips(store: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    store.write_many([{"text": text} for text in NOTES])
    store.write("Keeps bees.", pinned=True)
    sent, send, me = list[str | bytes](), psycopg.ClientCursor.execute, threading.get_ident()

    def execute(*given: object, **named: object) -> object:
        once = isinstance(given[1], bytes) and given[1].startswith(b"PREPARE")  # of a statement that is sent often
        if threading.get_ident() == me and not once:  # what a thread in the background sends is not this call's
            sent.append(given[1])
        return send(*given, **named)
    monkeypatch.setattr(psycopg.ClientCursor, "execute", execute)
    monkeypatch.setattr(database, "LOOK_S", 1e9)  # once a second a reader also asks whether its namespace went: however slow the machine is

    def costs(act: Callable[[], object]) -> tuple[int, int]:  # round trips, statements
        sent.clear()
        act()
        return len(sent), sum(len(re.findall(r"(?:^|; ?)[A-Z]", (s.decode() if isinstance(s, bytes) else s).strip())) for s in sent)
    store.context("peanuts")
    assert {name: costs(act) for name, act in {
        "search": lambda: store.search("Yuna 부산"),  # a snapshot, the memories, its end
        "block": lambda: store.context("Tell me about Yuna."),  # and what is asked beside the search, and of what was found
        "block of a fact": lambda: store.context("Where does Yuna live?"),  # and the fact that is asked for
        "write": lambda: store.write("The ferry leaves at nine."),  # its turn with what is asked first; the row and all the rest
        "write of a fact": lambda: store.write("내 동생 민아는 대구에 산다."),  # and the facts of it
    }.items()} == {"search": (3, 4), "block": (4, 12), "block of a fact": (5, 13), "write": (2, 9), "write of a fact": (2, 12)}
    talk = [{"role": "user", "content": "Hello"}, {"role": "assistant", "content": "안녕"}]
    assert costs(lambda: store.add_conversation(talk, "c"))[0] == 9, "what the conversation has is asked once, and along with the turn"
    with store.backend.transaction() as tx:  # a part that fails is undone, and what waited before it is stored
        tx.log([Event(store.clock.now(), "use", "a", "default")])
        with suppress(NotFound), store.backend.transaction():
            tx.log([Event(store.clock.now(), "use", "b", "default")])
            store.backend.db.query("UPDATE memories SET access_count = 7")
            raise NotFound("no", "no")
        with store.backend.transaction():
            tx.log([Event(store.clock.now(), "use", "c", "default")])
    assert [e.subject for e in store.backend.events("default", kinds=("use",))] == ["a", "c"]
    assert not any(m.access_count for m in store.list())


def test_what_waits_for_a_person_is_read_from_a_server_too(store: Memory) -> None:
    store.write("김민지는 부산에 산다.")
    told = new_record("The bakery on Kirkgate closes at noon.", store.clock.now(), provenance={"trust": "candidate"})
    with store.backend.transaction() as tx:
        tx.insert([told])
    assert [(w.memory.id, w.state) for w in store.companion.waiting()] == [(told.id, "candidate")]
