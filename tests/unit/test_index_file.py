"Index files are never trusted: whatever happened to one, it is either what was written or nothing."

import zipfile
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from rlm import Memory
from rlm.core.clock import ManualClock
from rlm.search import namespace_index
from rlm.search.arrays import index_path, read_index, write_index
from rlm.store.erasure import DerivedFiles
from rlm.store.sqlite.database import SQLiteDatabase

STAMP = {"store": "s", "namespace": "default"}
ARRAYS = {"numbers": np.arange(5, dtype=np.int32), "vectors": np.zeros((2, 2), np.float16), "empty": np.zeros(0, np.uint8)}
pytestmark = pytest.mark.usefixtures("bare")


@pytest.fixture
def file(path: Path, tmp_path: Path) -> Path:
    db, place = SQLiteDatabase(path), tmp_path / "index" / "words.npz"
    assert write_index(DerivedFiles(db), place, STAMP, 7, ARRAYS)
    db.close()
    return place


def whole(found: object) -> bool:
    "Whether this is what was written, to the last array."
    stamp, arrays = found  # type: ignore[misc]
    return stamp["position"] == 7 and arrays.keys() == ARRAYS.keys() and all(
        arrays[name].dtype == a.dtype and np.array_equal(arrays[name], a) for name, a in ARRAYS.items())


def test_every_changed_byte_gives_the_index_or_nothing(file: Path) -> None:
    good, outcomes = file.read_bytes(), set[bool]()
    assert whole(read_index(file, STAMP))
    for at in range(len(good)):
        for flip in (0x01, 0x08, 0xFF):
            file.write_bytes(good[:at] + bytes([good[at] ^ flip]) + good[at + 1:])
            found = read_index(file, STAMP)
            assert found is None or whole(found), (at, flip)
            outcomes.add(found is None)
    assert outcomes == {True, False}  # a time of day in the zip file is nobody's business


def test_every_cut_gives_nothing(file: Path) -> None:
    good = file.read_bytes()
    for size in range(len(good)):
        file.write_bytes(good[:size])
        assert read_index(file, STAMP) is None, size


@pytest.mark.parametrize("method", [zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA, 1, 93, 99])
def test_contents_that_claim_to_be_compressed(file: Path, method: int) -> None:
    good = bytearray(file.read_bytes())
    at = good.index(b"PK\x01\x02")
    good[at + 10:at + 12] = method.to_bytes(2, "little")
    file.write_bytes(good)
    assert read_index(file, STAMP) is None


@pytest.mark.parametrize("stamp", [b"[]", b"3", b"{", b"\xff", b"null", b""])
def test_a_stamp_that_is_none(file: Path, stamp: bytes) -> None:
    np.savez(file, stamp=np.frombuffer(stamp, np.uint8), **ARRAYS)  # type: ignore[arg-type]
    assert read_index(file, STAMP) is None


def test_damage_is_said_and_absence_is_not(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", "rlm")
    file = tmp_path / "words.npz"
    assert read_index(file, STAMP) is None and not caplog.records
    file.write_bytes(b"no index at all")
    assert read_index(file, STAMP) is None
    [said] = caplog.records
    assert str(file) in said.getMessage() and "made anew" in said.getMessage()


@pytest.mark.parametrize("at", [0.0, 0.25, 0.5, 0.75, 0.97])
def test_a_damaged_index_is_built_anew(path: Path, clock: ManualClock, monkeypatch: pytest.MonkeyPatch, at: float) -> None:
    monkeypatch.setattr(namespace_index, "SAVE_AFTER", 1)  # a file for every few memories
    with Memory(path, clock=clock) as memory:
        memory.write_many([{"id": f"m{n}", "text": f"boat number {n}"} for n in range(30)])
        said = [(h.id, h.score) for h in memory.search("boat number 7")]
    kept = index_path(Path(f"{path}.index"), "words", "default")
    good = kept.read_bytes()
    place = int(at * len(good))
    kept.write_bytes(good[:place] + bytes(b ^ 0x55 for b in good[place:place + 40]) + good[place + 40:])
    with Memory(path, clock=clock) as memory:
        assert [(h.id, h.score) for h in memory.search("boat number 7")] == said


def test_the_folder_of_the_files_may_go_while_they_are_dropped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with closing(SQLiteDatabase(tmp_path / "memory.db")) as db:
        files = DerivedFiles(db)
        assert files.folder is not None
        files.folder.mkdir(exist_ok=True)
        listed = Path.iterdir

        def gone(self: Path) -> Iterator[Path]:
            self.rmdir()  # another process has removed the last file
            return listed(self)
        monkeypatch.setattr(Path, "iterdir", gone)
        files.drop()
        assert not files.folder.exists()
