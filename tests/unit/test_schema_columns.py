"A store that lacks a column of its schema is told from one that is well, by a check and when it is opened to be written to."
import gzip
import logging
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from click.testing import CliRunner

from rlm import Memory
from rlm.service.cli import main
from rlm.store.sqlite import database
from rlm.store.sqlite.database import REMAKE, SQLiteDatabase, lacking_columns

OLD = sorted((Path(__file__).parents[1] / "data").glob("store_v*.db.gz"))


def test_a_missing_column_is_named_by_a_check_and_at_the_opening(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = tmp_path / "m.db"
    with Memory(path, embedder="none") as memory:
        memory.write("The boat is in the harbour.")
        assert memory.check() == []
    with Memory(path, embedder="none") as memory:
        assert not caplog.records
    with closing(sqlite3.connect(path)) as old:  # as a state between two versions made it
        old.executescript("DROP TABLE vectors; CREATE TABLE vectors (seq INTEGER, model TEXT, dim INTEGER, vector BLOB)")
    with caplog.at_level(logging.WARNING, "rlm"), Memory(path, embedder="none") as memory:
        assert memory.check() == [f"The table vectors lacks chunk. {REMAKE}"]
    assert "can't be written to: The table vectors lacks chunk. Restore a backup" in caplog.text
    file, new = str(tmp_path / "out.json"), str(tmp_path / "new.db")
    for command in (["export", file, "--format", "pam", "--db", str(path)], ["import", file, "--format", "pam", "--db", new]):
        done = CliRunner().invoke(main, command, env={"RLM_EMBEDDER": "none"})
        assert done.exit_code == 0, done.output
    with Memory(new, embedder="none") as memory:
        assert [m.text for m in memory.list()] == ["The boat is in the harbour."] and memory.check() == []


@pytest.mark.parametrize("old", [None, *OLD], ids=lambda path: path.name[:8] if path else "new")
def test_a_store_of_the_present_schema_is_opened_without_making_another(old: Path | None, tmp_path: Path,
                                                                        monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "m.db"
    if old:
        path.write_bytes(gzip.decompress(old.read_bytes()))
    SQLiteDatabase(path).close()  # made, or brought up to date
    monkeypatch.setattr(database, "migrate", lambda *_: pytest.fail("a schema was made"))  # inside: it shows in no answer, only in time
    SQLiteDatabase(path).close()


def test_a_store_whose_tables_are_written_otherwise_lacks_nothing(tmp_path: Path) -> None:
    path = tmp_path / "m.db"
    SQLiteDatabase(path).close()
    with closing(sqlite3.connect(path)) as other:
        other.executescript("ALTER TABLE vectors ADD COLUMN note TEXT; CREATE TABLE of_another_program (a)")
    with closing(SQLiteDatabase(path)) as db:
        assert lacking_columns(db.query) == []
