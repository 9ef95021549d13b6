"""What can go wrong with a file, each for real: every time one of rlm's own errors with a clear sentence and a way out, and
nothing that was stored before is lost."""
import json
import os
import random
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import textwrap
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from rlm import Memory
from rlm.core.clock import SystemClock
from rlm.core.errors import (
    NotFound,
    RlmError,
    StoreBusy,
    StoreCorrupt,
    StoreError,
    StoreForeign,
    StoreFull,
    StoreNewer,
    StoreReadOnly,
)
from rlm.store.sqlite.database import restore

pytestmark = pytest.mark.usefixtures("words_only")
WORDS = "harbour bakery cello otter bicycle 항구 빵집 수달 자전거 회의".split()  # noqa: SIM905


def fill(memory: Memory, count: int = 300) -> list[str]:
    "Write memories of all sorts; their ids."
    rng = random.Random(1)
    ids = [r.id for r in memory.write_many([{"text": f"Note {i}: {' '.join(rng.choices(WORDS, k=8))}.", "tags": [rng.choice(WORDS)]}
                                            for i in range(count)])]
    memory.add_conversation([("Mina", " ".join(rng.choices(WORDS, k=6))) for _ in range(20)])
    for id in ids[:20]:
        memory.update(id, text=f"Another note: {' '.join(rng.choices(WORDS, k=8))}.")
    memory.delete(ids[20:25])
    return ids[:20] + ids[25:]


def contents(memory: Memory) -> list[Any]:
    "Everything that a user could read."
    now = memory.recent(10_000, status="any")
    return [now, [memory.history(r.id).versions for r in now], memory.stats() | {"bytes": 0, "path": ""}]


@pytest.fixture
def path(tmp_path: Path, words_only: None) -> Path:
    "A closed store with something in it."
    path = tmp_path / "memory.db"
    with Memory(path) as memory:
        fill(memory)
    assert not Path(f"{path}-wal").exists()
    return path


def sentence(error: RlmError) -> None:
    "It can be shown to a person: a sentence, and what to do."
    assert error.message[0].isupper() and error.message.endswith("."), error.message
    assert error.hint.endswith("."), error
    assert "Traceback" not in str(error) and "sqlite3." not in str(error)


def refused(kind: type[RlmError], act: Callable[[], Any], *said: str) -> RlmError:
    "The act raises exactly this kind, as a sentence that says these things."
    with pytest.raises(kind) as caught:
        act()
    assert type(caught.value) is kind
    sentence(caught.value)
    for part in said:
        assert part in str(caught.value)
    return caught.value


def run(script: str, *arguments: object, nobody: bool = False) -> Any:
    "Run a script in a process of its own, as another user if need be; what it printed last, read as JSON."
    drop = "os.setgid(65534); os.setuid(65534)\n" if nobody else ""
    begin = "import json, os, statistics, subprocess, sys, tqdm"  # before: another user may not read Python's library
    start = f"{begin}\nfrom rlm import Memory\nfrom rlm.core.errors import RlmError\n"
    start += drop
    done = subprocess.run([sys.executable, "-c", start + textwrap.dedent(script), *map(str, arguments)], capture_output=True, text=True,
                          timeout=120, cwd="/")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


@pytest.fixture
def open_path(path: Path) -> Iterator[Path]:
    "The same store in a folder that everybody may enter."
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o777)
        yield Path(shutil.copy(path, folder))


root_only = pytest.mark.skipif(os.name != "posix" or os.getuid() != 0, reason="needs to be root, to become somebody else")


# ---- files that are no store, or not ours

@pytest.mark.parametrize(("content", "kind", "said"), [
    (b"Dear diary, today I learned about databases.\n", StoreForeign, "no SQLite database"),
    (b"SQLite format 3\0", StoreForeign, "no SQLite database"),  # and then it ends
    (b"\x89PNG\r\n\x1a\n" + bytes(5000), StoreForeign, "no SQLite database"),
])
def test_a_file_that_is_no_database(tmp_path: Path, content: bytes, kind: type[RlmError], said: str) -> None:
    file = tmp_path / "notes.txt"
    file.write_bytes(content)
    refused(kind, lambda: Memory(file), said, str(file))
    assert file.read_bytes() == content and os.listdir(tmp_path) == ["notes.txt"]


def test_another_programs_database(tmp_path: Path) -> None:
    file = tmp_path / "shop.db"
    shop = sqlite3.connect(file)
    shop.execute("CREATE TABLE invoices (number INTEGER)")
    shop.commit()
    shop.close()
    before = file.read_bytes()
    refused(StoreForeign, lambda: Memory(file), "another program", "invoices", "not touched")
    assert file.read_bytes() == before and os.listdir(tmp_path) == ["shop.db"]


def test_a_newer_schema(path: Path) -> None:
    change = sqlite3.connect(path)
    change.execute("PRAGMA user_version = 99")
    change.commit()
    change.close()
    before = path.read_bytes()
    refused(StoreNewer, lambda: Memory(path), "schema 99", "Upgrade rlm", "not touched")
    assert path.read_bytes() == before


def test_a_folder(tmp_path: Path) -> None:
    refused(StoreForeign, lambda: Memory(tmp_path), "is a folder")


def test_a_folder_that_is_not_there_is_missed_and_not_made(tmp_path: Path) -> None:
    deep = tmp_path / "not" / "yet" / "memory.db"
    refused(NotFound, lambda: Memory(deep, read_only=True), "no store")
    refused(StoreError, lambda: Memory(deep), "there is no folder", str(deep.parent))
    assert os.listdir(tmp_path) == []


def test_a_folder_whose_parent_is_a_file(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    refused(StoreError, lambda: Memory(tmp_path / "file" / "memory.db"), "can't be made", "folder")


# ---- damage

def damages() -> Iterator[tuple[str, Callable[[bytearray, random.Random], None]]]:
    "Ways to ruin a file."
    def noise(at: float, size: int) -> Callable[[bytearray, random.Random], None]:
        def act(data: bytearray, rng: random.Random) -> None:
            start = int(at * len(data))
            data[start:start + size] = rng.randbytes(min(size, len(data) - start))
        return act

    def zero(start: int, size: int) -> Callable[[bytearray, random.Random], None]:
        return lambda data, rng: data.__setitem__(slice(start, start + size), bytes(size))

    def cut(part: float, odd: int = 0) -> Callable[[bytearray, random.Random], None]:
        return lambda data, rng: data.__delitem__(slice(int(part * len(data)) // 4096 * 4096 + odd, None))

    yield "header zeroed", zero(0, 100)
    yield "first page zeroed behind the header", zero(100, 3996)
    yield from ((f"noise at {at:.2f}", noise(at, 6000)) for at in (0.02, 0.1, 0.2, 0.35, 0.5, 0.65, 0.8, 0.95))
    yield "noise in the schema", noise(0.002, 3000)
    yield from ((f"cut at {part}", cut(part)) for part in (0.1, 0.5, 0.9))
    yield "cut inside of a page", cut(0.6, 1234)


@pytest.mark.parametrize("ruin", [pytest.param(act, id=name) for name, act in damages()])
def test_damage_is_said_and_a_backup_brings_everything_back(path: Path, ruin: Callable[[bytearray, random.Random], None]) -> None:
    with Memory(path) as memory:
        before = contents(memory)
        memory.backup(path.with_name("backup.db"))
    data = bytearray(path.read_bytes())
    ruin(data, random.Random(7))
    path.write_bytes(data)
    trouble = []

    def attempt(act: Callable[[], Any]) -> Any:
        try:
            return act()
        except (StoreCorrupt, StoreForeign) as e:  # and nothing else
            sentence(e)
            trouble.append(e)

    memory = attempt(lambda: Memory(path, busy_timeout_s=0.2))
    if memory:
        with memory:
            trouble += attempt(memory.check) or []
            read = attempt(lambda: contents(memory))
            assert trouble or read == before, "the damage went unnoticed, and did not hit unused bytes either"
            some = before[0]
            for act in (lambda: memory.search("otter 수달"), lambda: memory.explain("otter", some[0].id), memory.stats,
                        lambda: memory.write("new"), lambda: memory.write("turn", session=some[0].session),
                        lambda: memory.update(some[5].id, text="changed"), lambda: memory.delete(some[6].id),
                        lambda: memory.export_jsonl(path.with_name("export.jsonl"))):
                attempt(act)
    if any(isinstance(e, StoreForeign) for e in trouble):  # nothing in the file says that it was ours
        assert "move it away and restore a backup" in str(trouble[0])
        path.unlink()
    run("""
        from datetime import UTC, datetime
        from rlm.store.sqlite.database import restore
        restore(sys.argv[2], sys.argv[1], datetime.now(UTC))
        print(0)
        """, path, path.with_name("backup.db"))
    with Memory(path) as memory:
        assert contents(memory) == before and memory.check() == []


def test_a_damaged_log_costs_only_what_was_in_it(path: Path) -> None:
    run("m = Memory(sys.argv[1]); m.write('in the log only'); print(0, flush=True); os._exit(0)", path)
    log = Path(f"{path}-wal")
    data = bytearray(log.read_bytes())
    data[len(data) // 2:] = random.Random(0).randbytes(len(data) - len(data) // 2)
    log.write_bytes(data)
    Path(f"{path}-shm").unlink(missing_ok=True)
    with Memory(path) as memory:
        assert memory.check() == [] and len(memory.recent(1000)) in (315, 316)
        memory.write("goes on")


# ---- what may not be written

@root_only
def test_a_read_only_file(open_path: Path) -> None:
    open_path.chmod(0o444)
    said = run("""
        m = Memory(sys.argv[1])
        found = len(m.recent(1000)), len(m.search("otter")), m.check()
        try: m.write("x")
        except RlmError as e: print(json.dumps([found, type(e).__name__, str(e)]))
        """, open_path, nobody=True)
    assert said[0][0] == 315 and said[0][1] == 10 and said[0][2] == []
    assert said[1] == "StoreReadOnly" and "open for reading only" in said[2] and "writable" in said[2]


@root_only
@pytest.mark.parametrize("log", [False, True], ids=["closed", "with a log of a killed process"])
def test_a_read_only_folder(open_path: Path, log: bool) -> None:
    if log:
        run("m = Memory(sys.argv[1]); m.write('otter in the log'); print(0, flush=True); os._exit(0)", open_path)
        assert Path(f"{open_path}-wal").stat().st_size
    for file in open_path.parent.iterdir():
        file.chmod(0o444)
    open_path.parent.chmod(0o555)
    said = run("""
        m = Memory(sys.argv[1])
        found = len(m.recent(1000)), m.check()
        try: m.write("x")
        except RlmError as e: print(json.dumps([found, type(e).__name__, str(e)]))
        """, open_path, nobody=True)
    assert said == [[315 + log, []], "StoreReadOnly", said[2]] and "open for reading only" in said[2]
    open_path.parent.chmod(0o755)


@root_only
def test_a_file_of_somebody_else(open_path: Path) -> None:
    open_path.chmod(0o600)
    attempt = """
        try: Memory(sys.argv[1])
        except RlmError as e: print(json.dumps([type(e).__name__, str(e)]))
        """
    kind, said = run(attempt, open_path, nobody=True)
    assert kind == "StoreError" and "may not be read. Ask its owner" in said
    open_path.parent.chmod(0o755)
    kind, said = run(attempt, open_path.with_name("new.db"), nobody=True)
    assert kind == "StoreError" and "can't be made" in said and "may write to" in said


@root_only
def test_a_folder_that_may_not_be_entered(open_path: Path) -> None:
    open_path.chmod(0o666)
    (locked := open_path.parent / "locked").mkdir(0o700)
    shutil.copy(open_path, locked / "memory.db")
    said = run("""
        from rlm.core.clock import SystemClock
        from rlm.core.settings import load_settings
        from rlm.store.sqlite.database import restore
        m, locked, now = Memory(sys.argv[1]), sys.argv[2], SystemClock().now()
        acts = {"open": lambda: Memory(locked), "backup": lambda: m.backup(locked), "export": lambda: m.export_jsonl(locked),
                "from": lambda: restore(locked, sys.argv[1], now), "to": lambda: restore(sys.argv[1], locked, now),
                "settings": lambda: load_settings(locked)}
        said = {}
        for name, act in acts.items():
            try: act()
            except RlmError as e: said[name] = f"{type(e).__name__}: {e}"
        print(json.dumps(said))
        """, open_path, locked / "memory.db", nobody=True)
    kinds = {name: text.split(":")[0] for name, text in said.items()}
    assert kinds == dict.fromkeys(("open", "backup", "export", "to"), "StoreError") | {"from": "NotFound", "settings": "SettingsError"}
    assert all("can't be" in text and "(Permission denied)." in text for text in said.values()), said


def test_a_name_that_is_too_long(path: Path, tmp_path: Path) -> None:
    long, now = tmp_path / ("x" * 300), SystemClock().now()
    refused(StoreError, lambda: Memory(long), "can't be made (File name too long)")
    refused(NotFound, lambda: restore(long, path, now), "can't be read (File name too long)")
    refused(StoreError, lambda: restore(path, long, now), "can't be replaced (File name too long)")
    with Memory(path) as memory:
        before = contents(memory)
        refused(StoreError, lambda: memory.backup(long), "can't be written (File name too long)")
        refused(StoreError, lambda: memory.export_jsonl(long), "can't be written (File name too long)")
        assert contents(memory) == before
    refused(StoreError, lambda: Memory(tmp_path / ("y" * 252)), "can't be opened", "beside it")  # there is no room for "-wal"


def test_what_a_killed_backup_left_is_gone_after_the_next(path: Path, tmp_path: Path) -> None:
    killed = """
        from rlm.store.sqlite import database
        database.os.replace = lambda *_: os.kill(os.getpid(), 9)
        Memory(sys.argv[1]).backup(sys.argv[2])
        """
    target = tmp_path / "monday[1].db"
    with pytest.raises(AssertionError):
        run(killed, path, target)
    (left,) = tmp_path.glob("*.part")
    left.with_name(f"{left.name}-journal").write_bytes(path.read_bytes())  # as when it is killed earlier
    (other := tmp_path / f"{target.name}.001.part").write_text("not ours")
    with Memory(path) as memory:
        memory.backup(target)
    assert [p.name for p in sorted(tmp_path.glob("*.part*"))] == [other.name] and target.stat().st_size == path.stat().st_size


def test_reading_only_was_asked_for(path: Path) -> None:
    with Memory(path, read_only=True) as memory:
        before = contents(memory)
        for act in (lambda: memory.write("x"), lambda: memory.update(before[0][0].id, text="x"), lambda: memory.delete(before[0][0].id),
                    lambda: memory.delete(before[0][0].id, erase=True), memory.backend.repair):
            refused(StoreReadOnly, act, "reading only")
        assert contents(memory) == before and memory.check() == []


# ---- no room

FULL = """
    import resource
    from rlm.core.errors import StoreFull
    path, room = sys.argv[1], int(sys.argv[2])
    m = Memory(path)
    acknowledged, said = [], ""
    resource.setrlimit(resource.RLIMIT_FSIZE, (room, resource.RLIM_INFINITY))
    try:
        while True:
            acknowledged.append(m.write(f"number {len(acknowledged)} " + "otter " * 200).id)
    except StoreFull as e:
        said = str(e)
    try:
        m.write_many(["otter " * 500] * 200)
    except StoreFull as e:
        said = said and str(e)
    readable = all(m.get(i) for i in acknowledged) and len(m.search("otter", k=100)), m.check()
    resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    acknowledged.append(m.write("room again").id)
    m.close()
    print(json.dumps([acknowledged, said, readable]))
    """


@pytest.mark.skipif(os.name != "posix", reason="needs limits on file sizes")
@pytest.mark.parametrize("more", [20_000, 200_000, 3_000_000])
def test_a_limit_on_the_file_size(path: Path, more: int) -> None:
    acknowledged, said, readable = run(FULL, path, path.stat().st_size + more)
    assert "no room left" in said and "Free some space" in said and "rolled back" in said
    assert readable == [100, []]
    with Memory(path) as memory:
        assert memory.check() == []
        assert len(memory.recent(10_000)) == 315 + len(acknowledged) and all(memory.get(id) for id in acknowledged)


@pytest.mark.skipif(os.name != "posix", reason="needs limits on file sizes")
@pytest.mark.parametrize("room", [0, 5000, 60_000])
def test_no_room_to_make_a_store(tmp_path: Path, room: int) -> None:
    kind, said = run("""
        import resource, time
        resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[2]), resource.RLIM_INFINITY))
        begun = time.monotonic()
        try: Memory(sys.argv[1]).write("x")
        except RlmError as e: print(json.dumps([type(e).__name__, str(e)]))
        assert time.monotonic() - begun < 30, "it waited for room"
        """, tmp_path / "memory.db", room)
    assert kind == "StoreFull" and "no room left" in said
    with Memory(tmp_path / "memory.db") as memory:
        assert memory.write("room now") and memory.check() == []


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    "A file system of two megabytes."
    place = tmp_path / "small"
    place.mkdir()
    if not shutil.which("mount"):
        pytest.skip("there is no mount here to make a small file system with")
    made = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", str(place)], capture_output=True, text=True)
    if made.returncode:
        pytest.skip(f"can't mount a small file system: {made.stderr.strip()}")
    yield place
    subprocess.run(["umount", "-l", str(place)], check=True)


def fill_up(memory: Memory) -> list[str]:
    "Write until there is no room left; the ids."
    ids: list[str] = []

    def write_on() -> None:
        while True:
            ids.append(memory.write("number " + "otter " * 200).id)
    refused(StoreFull, write_on, "no room left", "Free some space", "rolled back")
    return ids


def test_a_full_disk(small_disk: Path) -> None:
    with Memory(small_disk / "memory.db") as memory:
        ids = fill(memory, 100)

        ids += fill_up(memory)
        refused(StoreFull, lambda: memory.write_many(["otter " * 200] * 500), "no room left")
        refused(StoreFull, memory.backend.db.check_writable, "no room")
        refused(StoreFull, lambda: memory.backup(small_disk / "backup.db"), "no room left")
        refused(StoreError, lambda: memory.export_jsonl(small_disk / "export.jsonl"), "can't be written")
        assert sorted(f.name for f in small_disk.iterdir()) == ["memory.db", "memory.db-shm", "memory.db-wal"], "half a copy was left"
        assert all(memory.get(id) for id in ids) and memory.search("otter") and memory.check() == []
        subprocess.run(["mount", "-o", "remount,size=16m", str(small_disk)], check=True)
        ids.append(memory.write("room again").id)
        memory.backend.db.check_writable()
    with Memory(small_disk / "memory.db") as memory:
        assert memory.check() == [] and all(memory.get(id) for id in ids)


def test_an_erasure_without_room_for_the_new_file_says_what_is_left(small_disk: Path) -> None:
    with Memory(small_disk / "memory.db") as memory:
        id = memory.write("zwiebelkuchen").id
        fill_up(memory)
        for _ in range(3):
            with pytest.raises(StoreFull) as caught:
                memory.delete(id, erase=True)
            sentence(caught.value)
        assert memory.check() == []
        subprocess.run(["mount", "-o", "remount,size=16m", str(small_disk)], check=True)
        if memory.search("zwiebelkuchen"):
            memory.delete(id, erase=True)
        else:
            assert "traces" in str(caught.value)
            memory.backend.repair()
        assert not [f for f in small_disk.iterdir() if b"zwiebelkuchen" in f.read_bytes()]


@pytest.mark.parametrize("taken", range(3))  # a store takes three files, so that none to two are left
def test_a_process_that_may_open_no_more_files(path: Path, taken: int) -> None:
    said, found = run("""
        import resource
        others = [os.open(os.devnull, os.O_RDONLY) for _ in range(TAKEN)]
        m = Memory(sys.argv[1])
        m.search("otter")
        resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))
        kept, said = [], []
        while not said:
            try:
                kept.append(Memory(f"{sys.argv[1]}.{len(kept)}", embedder="none"))
                kept[-1].write("another store")
            except RlmError as e:
                said.append(str(e))
        m.write("otters still get in")
        print(json.dumps([said[0], len(m.search("otters"))]), flush=True)
        os._exit(0)
    """.replace("TAKEN", str(taken)), path)
    assert "as many files open as it may" in said and "ulimit" in said and found


@pytest.mark.parametrize("free", range(2))
def test_with_hardly_a_file_left_each_call_works_or_says_so(path: Path, free: int) -> None:
    said, kept, found = run("""
        import resource
        m = Memory(sys.argv[1])
        ids = [r.id for r in m.recent(5)]
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (64, hard))
        others = []
        try:
            while True: others.append(os.open(os.devnull, os.O_RDONLY))
        except OSError: pass
        for _ in range(FREE): os.close(others.pop())
        calls = {"search": lambda: m.search("otter"), "write": lambda: m.write("An otter got in.", id="new"), "check": m.check,
                 "update": lambda: m.update(ids[0], text="Other words."), "explain": lambda: m.explain("otter", ids[1]),
                 "recall": lambda: m.recall("otter"), "context": lambda: m.context("otter"), "rules": lambda: m.rules,
                 "strategies": lambda: m.strategies, "companion": lambda: m.companion, "erase": lambda: m.delete(ids[2], erase=True)}
        said = {}
        for name, call in calls.items():
            try: said[name] = bool(call()) and ""
            except RlmError as e: said[name] = str(e)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        kept = [m.get(ids[0]).text, m.get("new").text]
        m.backend.repair()
        print(json.dumps([said, kept, [len(m.search("otter")) > 0, m.check()]]), flush=True)
        os._exit(0)
    """.replace("FREE", str(free)), path)
    assert kept == ["Other words.", "An otter got in."] and not said["write"] and not said["update"], "what needs no file is done"
    assert all(not words or "as many files open as it may" in words for words in said.values()), said
    assert any(said.values()) and found == [True, []]


def test_too_little_memory_for_an_index_is_a_sentence_and_harms_nothing(path: Path) -> None:
    def fail(*_args: Any, **_fields: Any) -> None:
        raise MemoryError
    with Memory(path) as memory:
        memory.write("An otter in a canoe.", id="canoe")
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("rlm.search.lexical.lexical_index.LexicalIndex.add", fail)
            refused(StoreError, lambda: memory.search("otter canoe"), "not enough memory", "ulimit")
        assert memory.search("otter canoe")[0].id == "canoe" and len(memory.search("otter", k=400)) > 100 and memory.check() == []


@pytest.mark.nightly
@pytest.mark.skipif(sys.platform != "linux", reason="needs a limit on the address space that holds")
def test_two_gigabytes_of_address_space_are_enough_for_twenty_thousand_memories(tmp_path: Path) -> None:
    found = run("""
        import resource
        resource.setrlimit(resource.RLIMIT_AS, (2 << 30, resource.RLIM_INFINITY))
        with Memory(sys.argv[1]) as m:
            m.write_many([f"Note {n}: the otter {n % 977} swims to the harbour {n % 313}." for n in range(20_000)])
            hits = [len(m.search(f"otter in harbour {n}")) for n in range(12)]
            m.write("An otter in a canoe.", id="canoe")
            print(json.dumps([min(hits), m.search("otter canoe")[0].id, m.check()]))
        """, tmp_path / "memory.db")
    assert found == [10, "canoe", []]


# ---- others

def test_a_lock_that_is_held_too_long(path: Path) -> None:
    other = sqlite3.connect(path, isolation_level=None)
    with Memory(path, busy_timeout_s=0.2) as memory:
        before = contents(memory)
        other.execute("BEGIN IMMEDIATE")
        for act in (lambda: memory.write("x"), lambda: memory.update(before[0][0].id, text="x"), lambda: memory.delete(before[0][0].id),
                    lambda: memory.delete(before[0][0].id, erase=True)):
            refused(StoreBusy, act, "another process", "busy_timeout_s", "nothing of this write was stored")
        assert contents(memory) == before, "reading does not wait"
        other.execute("COMMIT")
        memory.write("now it goes")
        assert len(memory.recent(1000)) == 316 and memory.check() == []
    other.close()


@pytest.mark.parametrize("fate", ["deleted", "moved", "replaced"])
def test_a_file_that_goes_away_while_it_is_open(path: Path, fate: str) -> None:
    with Memory(path) as memory:
        before = contents(memory)
        if fate == "replaced":
            memory.backup(path.with_name("copy.db"))
            os.replace(path.with_name("copy.db"), path)
        else:
            path.rename(path.with_name("moved.db")) if fate == "moved" else path.unlink()
        for act in (lambda: memory.write("x"), lambda: memory.delete(before[0][0].id)):
            refused(StoreError, act, "deleted, moved or replaced", "nothing of this write was stored", "open it again")
        assert contents(memory) == before, "what is open can still be read"
        if fate == "moved":
            path.with_name("moved.db").rename(path)
            memory.write("and goes on")
    if fate != "deleted":
        with Memory(path) as memory:
            assert len(memory.recent(1000)) == 315 + (fate == "moved") and memory.check() == []


def test_a_fork_after_opening(path: Path) -> None:
    written = run("""
        m = Memory(sys.argv[1])
        ids = [m.write("before the fork").id]
        out, into = os.pipe()
        child = os.fork()
        ids += [m.write(f"{'parent' if child else 'child'} {i} otter").id for i in range(50)]
        assert m.search("otter") and m.get(ids[0])
        if not child:
            os.write(into, json.dumps(ids).encode())
            m.close()
            os._exit(0)
        assert os.waitpid(child, 0)[1] == 0
        m.write("after the child has closed its store")
        theirs = json.loads(os.read(out, 100_000))
        assert m.check() == []
        m.close()
        print(json.dumps(ids + theirs))
        """, path)
    with Memory(path) as memory:
        assert len(set(written)) == 101 and all(memory.get(id) for id in written)
        assert len(memory.recent(1000)) == 315 + 102 and memory.check() == []


def test_threads_share_a_memory(path: Path) -> None:
    with Memory(path) as memory:
        written: list[str] = []
        wrong: list[BaseException] = []

        def work(n: int) -> None:
            try:
                for i in range(30):
                    made = memory.write(f"thread {n} number {i} otter", session=f"s{i % 3}")
                    written.append(memory.update(made.id, text=made.text + " twice").id)
                    assert memory.get(made.id).version == 2 and memory.search("otter")
            except BaseException as e:
                wrong.append(e)
        threads = [threading.Thread(target=work, args=(n,)) for n in range(8)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        assert wrong == [] and len(set(written)) == 240 and memory.check() == []
        assert [r.turn for r in memory.recent(1000, session="s1")] == list(range(79, -1, -1))


def write_until_closed(memory: Memory, begun: threading.Barrier, written: list[str], ends: list[BaseException]) -> None:
    "What a thread does that nobody told of the end."
    begun.wait()
    try:
        while True:
            written.append(memory.write("otter").id)
            memory.search("otter")
    except BaseException as e:
        ends.append(e)


@pytest.mark.parametrize("in_memory", [False, True], ids=["file", "memory"])
def test_closing_while_others_work(tmp_path: Path, in_memory: bool) -> None:
    for n in range(10):
        memory = Memory(":memory:" if in_memory else tmp_path / f"{n}.db")
        written: list[str] = []
        ends: list[BaseException] = []
        begun = threading.Barrier(6)

        threads = [threading.Thread(target=write_until_closed, args=(memory, begun, written, ends)) for _ in range(5)]
        for t in threads:
            t.start()
        begun.wait()
        while len(written) < 20:
            time.sleep(0.001)  # and not in circles, which would leave the writers little of the interpreter
        memory.close()
        for t in threads:
            t.join()
        assert {(type(e), str(e)) for e in ends} == {(StoreError, f"The store {memory.backend.db.path!r} is closed. Open it again.")}
        if not in_memory:
            with Memory(tmp_path / f"{n}.db") as again:
                assert {r.id for r in again.recent(10_000)} == set(written) and again.check() == []


def test_using_a_closed_memory(path: Path) -> None:
    memory = Memory(path)
    memory.close()
    memory.close()
    for act in (lambda: memory.write("x"), lambda: memory.search("otter"), memory.check, memory.stats, lambda: memory.get("x")):
        refused(StoreError, act, "is closed", "Open it again")
