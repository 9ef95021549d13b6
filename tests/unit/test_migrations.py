"A store of every earlier version opens with today's code, and nothing that goes wrong on the way costs a memory."
import gzip
import os
import re
import signal
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path

import pytest

from make_store_fixture import FOLDER, FOUND, fill
from rlm import Memory
from rlm.core.clock import ManualClock
from rlm.core.errors import StoreError, StoreNewer, StoreReadOnly
from rlm.store import SQLiteDatabase, SQLStorage
from rlm.store.integrity import check
from rlm.store.sqlite.schema import MIGRATIONS, SCHEMA_VERSION, Migration, statements

pytestmark = pytest.mark.usefixtures("bare")
NEXT = SCHEMA_VERSION + 1
FIXTURES = {int(m[1]): p for p in FOLDER.iterdir() if (m := re.fullmatch(r"store_v(\d+)\.db\.gz", p.name))}
LATER = ManualClock("2026-03-01")
GOOD = Migration(NEXT, "moods", "ALTER TABLE memories ADD COLUMN mood TEXT;\n"
                 "UPDATE memories SET mood = 'calm';\nCREATE TABLE moods (name TEXT) STRICT;\n")


def unpack(version: int, path: Path) -> Path:
    path.write_bytes(gzip.decompress(FIXTURES[version].read_bytes()))
    return path


@pytest.fixture
def old(path: Path) -> Path:
    "A store file of the present version, about to become an old one."
    return unpack(SCHEMA_VERSION, path)


def version_of(path: Path) -> int:
    with closing(sqlite3.connect(path)) as connection:
        return int(connection.execute("PRAGMA user_version").fetchone()[0])


def schema_of(path: Path) -> list[tuple[str, str]]:
    with closing(sqlite3.connect(path)) as connection:
        return [(name, " ".join(sql.split())) for name, sql in connection.execute(
            "SELECT name, sql FROM sqlite_master WHERE sql IS NOT NULL ORDER BY 1")]


def content_of(path: Path) -> dict[str, list[object]]:
    "Every row of every table that holds data."
    with closing(sqlite3.connect(path)) as connection:
        tables = [n for (n,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
                  if not n.startswith(("sqlite_", "memories_"))]
        return {t: connection.execute(f"SELECT * FROM {t}").fetchall() for t in tables}


def backups_of(path: Path) -> list[Path]:
    return sorted(path.parent.glob(f"{path.name}.backup-*"))


def usable(path: Path) -> None:
    "The store opens with today's code, is sound, and finds what it held."
    with Memory(path, clock=LATER) as memory:
        assert memory.check() == []
        for query, id in FOUND.items():
            assert memory.search(query)[0].id == id, query
        memory.delete(memory.write("and goes on", session="keys").id)


# ---------------------------------------------------------------- stores of earlier versions

def test_there_is_a_store_of_every_version() -> None:
    assert sorted(FIXTURES) == list(range(1, SCHEMA_VERSION + 1)), "run tools/make_store_fixture.py"
    assert [m.to for m in MIGRATIONS] == list(range(1, SCHEMA_VERSION + 1)) and all(m.why and m.sql for m in MIGRATIONS)


@pytest.mark.parametrize("version", sorted(FIXTURES))
def test_a_store_of_every_version_opens_and_holds_what_it_held(version: int, path: Path) -> None:
    assert version_of(unpack(version, path)) == version
    with Memory(path, clock=LATER) as memory, Memory(path, namespace="team", clock=LATER) as team:
        assert memory.check() == [] and version_of(path) == SCHEMA_VERSION
        for query, id in FOUND.items():
            assert memory.search(query)[0].id == id, query
        assert memory.get("tea").text == "Mina drinks black tea" and memory.get("tea").version == 2
        assert memory.get("tea", as_of="2026-01-01T12:00:00Z").text == "Mina drinks green tea"
        assert memory.search("green", as_of="2026-01-01T12:00:00Z")[0].id == "tea" and len(memory.search("plum")) == 0
        assert [e.kind for e in memory.history("gone").events] == ["write", "delete"] and memory.history("erased").versions == ()
        assert [(e.dst, e.weight) for e in memory.links("tea")] == [("cat", 0.25)] and memory.get("tea").success == 1
        assert [t.reply_to for t in memory.recent(session="keys")] == ["t0", None]
        assert team.search("plum")[0].id == "tea" and len(team.search("Mina")) == 0
        assert {k: len(v) for k, v in content_of(path).items()
                if k in ("triples", "vectors", "slots", "runs", "judgments", "snapshots")} == {
            "triples": 2, "vectors": 1, "slots": 1, "runs": 1, "judgments": 1, "snapshots": 1}
        assert memory.write("new").seq > 10
        memory.update("tea", text="Mina drinks water")
        assert memory.check() == []


@pytest.mark.parametrize("version", sorted(FIXTURES))
def test_a_migrated_store_has_the_schema_of_a_new_one(version: int, path: Path, tmp_path: Path) -> None:
    SQLiteDatabase(unpack(version, path)).close()
    fill(tmp_path / "new.db")
    assert schema_of(path) == schema_of(tmp_path / "new.db"), "if no release has this schema yet: run tools/make_store_fixture.py"
    assert len(backups_of(path)) == int(version < SCHEMA_VERSION)


def test_the_stored_file_is_what_the_script_makes(path: Path, tmp_path: Path) -> None:
    unpack(SCHEMA_VERSION, path)
    fill(tmp_path / "new.db")
    ours, theirs = content_of(path), content_of(tmp_path / "new.db")
    ours.pop("meta"), theirs.pop("meta")
    assert ours == theirs


# ---------------------------------------------------------------- the next version

def test_a_backup_is_made_before_the_first_step(old: Path, caplog: pytest.LogCaptureFixture) -> None:
    before = content_of(old)
    db = SQLiteDatabase(old, migrations=(*MIGRATIONS, GOOD))
    assert db.query("SELECT DISTINCT mood FROM memories") == [("calm",)] and version_of(old) == NEXT
    db.close()
    (copy,) = backups_of(old)
    assert caplog.messages == [f"The store {old} was brought up to date. What it was before is kept in {copy}, with what is erased later: "
                               "delete that when all is well."]
    assert re.fullmatch(rf"memory\.db\.backup-v{SCHEMA_VERSION}-\d{{8}}T\d+Z", copy.name) and copy.stat().st_mode & 0o077 == 0
    assert version_of(copy) == SCHEMA_VERSION and content_of(copy) == before
    usable(copy)
    after = content_of(old)
    assert {t: len(rows) for t, rows in after.items() if t != "moods"} == {t: len(rows) for t, rows in before.items()}
    assert [row[:-1] for row in after["memories"]] == before["memories"]
    backend = SQLStorage(SQLiteDatabase(old, migrations=(*MIGRATIONS, GOOD)))
    assert check(backend.db) == [] and backend.get(["tea"], "default")[0].text == "Mina drinks black tea" and len(backups_of(old)) == 1
    backend.close()


def test_today_s_code_refuses_the_next_version_untouched(old: Path) -> None:
    SQLiteDatabase(old, migrations=(*MIGRATIONS, GOOD)).close()
    before = content_of(old)
    for read_only in (False, True):
        with pytest.raises(StoreNewer, match=f"schema {NEXT}") as caught:
            Memory(old, read_only=read_only)
        assert caught.value.hint
    assert content_of(old) == before


def test_several_steps_are_taken_in_order_from_where_the_store_is(old: Path) -> None:
    more = (*MIGRATIONS, GOOD, Migration(NEXT + 1, "better moods", "UPDATE memories SET mood = mood || '!';\n"))
    SQLiteDatabase(old, migrations=more).close()
    assert content_of(old)["memories"][0][-1] == "calm!" and version_of(old) == NEXT + 1 and len(backups_of(old)) == 1  # type: ignore[index]
    SQLiteDatabase(old, migrations=more).close()
    assert content_of(old)["memories"][0][-1] == "calm!" and len(backups_of(old)) == 1  # type: ignore[index]


@pytest.mark.parametrize("broken", [
    "CREATE TABLE half (x) STRICT;\n", "CREATE TABLE half (x TEXT) STRICT;\nUPDATE memories SET status = 'warm';\n",
    "DELETE FROM memories;\nCREATE TABLE half (x TEXT);\nINSERT INTO half SELECT nothing FROM nowhere;\n", "this is no SQL;\n",
    "CREATE TABLE half (x TEXT);\nCREATE TABLE half2 (x TEXT", "DROP TABLE memory_tags;\nSELECT abs(-9223372036854775808);\n"])
def test_a_step_that_fails_leaves_the_store_as_it_was(old: Path, broken: str) -> None:
    before, schema = content_of(old), schema_of(old)
    with pytest.raises(StoreError) as caught:
        SQLiteDatabase(old, migrations=(*MIGRATIONS, Migration(NEXT, "broken", broken)))
    assert caught.value.hint and version_of(old) == SCHEMA_VERSION
    assert content_of(old) == before and schema_of(old) == schema and len(backups_of(old)) == 1
    usable(old)


def test_a_second_step_that_fails_keeps_the_first(old: Path) -> None:
    with pytest.raises(StoreError):
        SQLiteDatabase(old, migrations=(*MIGRATIONS, GOOD, Migration(NEXT + 1, "broken", "no SQL;\n")))
    assert version_of(old) == NEXT and content_of(old)["memories"][0][-1] == "calm"  # type: ignore[index]


def test_a_store_that_must_be_migrated_is_not_opened_for_reading(old: Path) -> None:
    before = old.read_bytes()
    with pytest.raises(StoreReadOnly, match=f"schema {SCHEMA_VERSION}.*{NEXT}") as caught:
        SQLiteDatabase(old, read_only=True, migrations=(*MIGRATIONS, GOOD))
    assert "without read_only" in caught.value.hint and old.read_bytes() == before and backups_of(old) == []


def test_a_script_is_cut_into_its_statements() -> None:
    script = ("-- a; comment\nCREATE TABLE a (x TEXT DEFAULT 'a;\nb');\n\n"
              "CREATE TRIGGER t AFTER INSERT ON a BEGIN\n  SELECT 1;\n  SELECT 2;\nEND;\nSELECT 3")
    assert [s.split()[-1] for s in statements(script)] == ["b');", "END;", "3"], "the last one too, without its semicolon"


# ---------------------------------------------------------------- in other processes

OPEN = """
import sys
from rlm.store import SQLiteDatabase
from rlm.store.sqlite.schema import MIGRATIONS, Migration
step = Migration({to}, "step", sys.argv[2])
print("ready", flush=True)
sys.stdin.readline()
db = SQLiteDatabase(sys.argv[1], migrations=(*MIGRATIONS, step))
print(db.query("PRAGMA user_version")[0][0], flush=True)
db.close()
"""


def opener(path: Path, sql: str) -> "subprocess.Popen[str]":
    "A process that opens the store, and migrates it, when told to."
    process = subprocess.Popen([sys.executable, "-c", OPEN.format(to=NEXT), str(path), sql], text=True,
                               stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdout and process.stdout.readline() == "ready\n", process.communicate()[1]
    return process


def test_processes_that_open_at_once_migrate_once(old: Path) -> None:
    before = content_of(old)
    counted = "CREATE TABLE steps (n INTEGER) STRICT;\nINSERT INTO steps VALUES (1);\n"
    counted += "UPDATE memories SET access_count = access_count + 1;\n"
    processes = [opener(old, counted) for _ in range(4)]
    for process in processes:
        assert process.stdin
        process.stdin.write("go\n")
        process.stdin.flush()
    for process in processes:
        out, err = process.communicate(timeout=60)
        assert process.returncode == 0 and out == f"{NEXT}\n", err
    after = content_of(old)
    assert after["steps"] == [(1,)] and len(after["memories"]) == len(before["memories"])
    for copy in backups_of(old):
        assert version_of(copy) == SCHEMA_VERSION and content_of(copy) == before, "a backup is what it says it is"
    assert backups_of(old)


@pytest.mark.skipif(os.name == "nt", reason="needs SIGKILL")
def test_a_process_killed_in_the_middle_of_a_step_leaves_the_old_version(old: Path) -> None:
    endless = ("CREATE TABLE half (x BLOB) STRICT;\nDELETE FROM memories;\n"
               "INSERT INTO half WITH RECURSIVE c (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c LIMIT 40) "
               "SELECT randomblob(1000000) FROM c;\n"
               "INSERT INTO half WITH RECURSIVE c (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c) SELECT CAST(count(*) AS BLOB) FROM c;\n")
    before, schema = content_of(old), schema_of(old)
    process = opener(old, endless)
    assert process.stdin
    process.stdin.write("go\n")
    process.stdin.flush()
    log, deadline = Path(f"{old}-wal"), time.monotonic() + 60
    while not (log.exists() and log.stat().st_size > 10_000_000):
        assert process.poll() is None and time.monotonic() < deadline, "it should be writing"
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    assert version_of(old) == SCHEMA_VERSION and content_of(old) == before and schema_of(old) == schema
    (copy,) = backups_of(old)
    assert content_of(copy) == before
    usable(old)
    SQLiteDatabase(old, migrations=(*MIGRATIONS, GOOD)).close()
    assert version_of(old) == NEXT


