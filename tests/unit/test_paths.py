"Paths that are none, copies that have to wait, and settings files that YAML can't read: an error that says so, at once."
import os
import sqlite3
import threading
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from rlm import Memory
from rlm.agent.learning.pipeline import read_curriculum
from rlm.agent.memory.packs import read_strategies
from rlm.agent.memory.stores import open_memory
from rlm.agent.models import open_model
from rlm.agent.tracing.trajectory import RLMLogger
from rlm.core.clock import SystemClock
from rlm.core.errors import InvalidInput, RlmError, SettingsError, StoreBusy, StoreError
from rlm.core.files import machine, read_path, replace_file, written
from rlm.core.settings import load_settings
from rlm.recall.snapshots import import_graph
from rlm.rules import RuleStore
from rlm.service.http.tokens import TokenFile
from rlm.store.sqlite.database import SQLiteDatabase, backup, restore

NO_PATHS = ["a\0b", "\ud800", "~nosuchuser/x.db"]


@pytest.mark.parametrize("odd", NO_PATHS)
def test_what_is_no_path_is_refused_everywhere(odd: str, memory: Memory, tmp_path: Path) -> None:
    now = SystemClock().now()
    good = memory.backup(tmp_path / "good.db")
    acts: list[Callable[[], Any]] = [
        lambda: Memory(odd), lambda: Memory(Path(odd)), lambda: SQLiteDatabase(odd), lambda: memory.export_jsonl(odd),
        lambda: memory.import_jsonl(odd), lambda: memory.backup(odd), lambda: restore(odd, tmp_path / "x.db", now),
        lambda: restore(good, odd, now), lambda: replace_file(odd, []), lambda: RuleStore.within(memory).import_jsonl(odd),
        lambda: RuleStore.within(memory).export_jsonl(odd), lambda: Memory(config=odd), lambda: memory.backend.backup(Path(odd)),
        lambda: memory.graph and import_graph(memory.graph, odd), lambda: read_strategies(odd), lambda: read_curriculum(odd),
        lambda: open_memory(f"{odd}.json"), lambda: open_model(f"scripted:{odd}"), lambda: RLMLogger(odd), lambda: TokenFile(Path(odd))]
    for act in acts:
        with pytest.raises((InvalidInput, SettingsError)) as caught:
            act()
        assert caught.value.hint
    assert [p.name for p in tmp_path.iterdir()] == ["good.db"]


def test_a_home_is_written_out(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    assert read_path("~/x.db") == tmp_path / "x.db" and read_path(Path("x.db")) == Path("x.db")


@pytest.mark.parametrize("line", ["namespace: 2026-02-30", "namespace: !!int x", "namespace: !!timestamp x", "namespace: !!bool x",
                                  "namespace: !!float x", "namespace: 2026-02-30T99:00:00", "? {}\n: 1"])
def test_a_settings_file_that_yaml_cannot_read(line: str, tmp_path: Path) -> None:
    (tmp_path / "rlm.yaml").write_text(line)
    with pytest.raises(SettingsError, match="settings file"):
        load_settings(tmp_path / "rlm.yaml")


@pytest.mark.parametrize("where", [":memory:", "m.db"])
def test_a_backup_is_no_part_of_a_transaction(where: str, tmp_path: Path) -> None:
    with Memory(where if where == ":memory:" else tmp_path / where, embedder="none") as memory:
        for begin in (memory.backend.transaction, memory.backend.snapshot):
            with begin(), pytest.raises(StoreError, match="can't be made in a transaction"):
                memory.backup(tmp_path / "copy.db")
        memory.write("tea")
        assert memory.backup(tmp_path / "copy.db").exists()
        with pytest.raises(StoreError, match="exists already"):
            memory.backend.backup(tmp_path / "copy.db")


def test_in_memory_a_backup_and_an_erasure_wait_for_another_threads_transaction(tmp_path: Path) -> None:
    with Memory(":memory:", embedder="none") as memory:
        begun = threading.Event()
        memory.write("tea", id="t")

        def write() -> None:
            with memory.backend.transaction():
                memory.write("coffee", id="c")
                begun.set()
                time.sleep(0.2)

        for act in (lambda: memory.backup(tmp_path / "copy.db"), lambda: memory.delete("t", erase=True)):
            thread = threading.Thread(target=write)
            thread.start()
            begun.wait(30)
            act()
            thread.join()
            memory.delete("c")
            begun.clear()


def test_a_copy_waits_for_a_writer_only_so_long(tmp_path: Path) -> None:
    with Memory(tmp_path / "m.db", embedder="none") as memory:
        memory.write("tea")
        good = memory.backup(tmp_path / "good.db")
    with closing(sqlite3.connect(tmp_path / "m.db", isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        began = time.monotonic()
        with pytest.raises(StoreBusy):
            restore(good, tmp_path / "m.db", SystemClock().now(), 0.3)
        assert 0.2 < time.monotonic() - began < 10
        other.execute("ROLLBACK")
    with Memory(tmp_path / "m.db", embedder="none") as memory:
        assert memory.search("tea") and memory.check() == []
    restore(good, tmp_path / "m.db", SystemClock().now(), 0.3)


def test_the_error_of_a_disk_that_is_full_is_ours(memory: Memory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*args: Any) -> None:
        error = sqlite3.OperationalError("database or disk is full")
        error.sqlite_errorcode = sqlite3.SQLITE_FULL
        raise error
    monkeypatch.setattr("rlm.store.sqlite.database.copy_pages", full)
    for act in (lambda: memory.backend.backup(tmp_path / "copy.db"), lambda: backup(memory.backend.db, tmp_path / "copy.db")):
        with pytest.raises(RlmError, match="no room"):
            act()


def test_what_another_container_has_not_finished_is_left_alone(tmp_path: Path) -> None:
    target, mine = tmp_path / "index.npz", f"{machine()}-{os.getpid()}"
    theirs = [tmp_path / f"index.npz.{name}.1.part" for name in (f"0123abcd-{os.getpid()}", "0123abcd-999999999", str(os.getpid()))]
    dead, old = tmp_path / f"index.npz.{machine()}-999999999.1.part", tmp_path / "index.npz.0123abcd-7.1.part"
    for part in (*theirs, dead, old):
        part.write_text("words")
    os.utime(old, (0, 0))
    with written(target) as part:
        assert part.name.startswith(f"index.npz.{mine}.")
        part.write_text("whole")
        os.replace(part, target)
    assert [part.read_text() for part in theirs] == ["words"] * 3, "the same number is another process there"
    assert not dead.exists() and not old.exists()
