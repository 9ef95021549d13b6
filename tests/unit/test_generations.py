"Files that are made from a store are believed only if the store has the very events that they know."
import shutil
from pathlib import Path

import pytest

from rlm import Memory
from rlm.core.clock import ManualClock
from rlm.store.sqlite.events import Generation
from rlm.store.sqlite.storage import SQLiteStorage

pytestmark = pytest.mark.usefixtures("bare")


def test_a_store_holds_its_own_past_and_no_other(path: Path, tmp_path: Path) -> None:
    with Memory(path) as memory:
        storage: SQLiteStorage = memory.backend
        nothing = storage.generation()
        assert (nothing.event, nothing.digest) == (0, "") and storage.holds(nothing)
        memory.write("first")
        one = storage.generation()
        memory.write("second")
        two = storage.generation()
        assert (one.event, two.event) == (1, 2) and one == storage.generation(1) and one.digest != two.digest
        assert storage.holds(one) and storage.holds(two) and storage.holds(nothing)
        assert not storage.holds(Generation(one.identity, 3, two.digest)), "an event that is not there yet"
        assert not storage.holds(Generation("another", 2, two.digest))
        assert Generation.from_stamp({"format": 1, **two.as_stamp()}) == two
        for stamp in ({}, {"identity": 1, "event": 1, "digest": ""}, {"identity": "a", "event": True, "digest": ""}):
            with pytest.raises(ValueError, match="no generation"):
                Generation.from_stamp(stamp)
    shutil.copy(path, tmp_path / "copy.db")
    with Memory(path) as memory:
        memory.write("third")
        three, at = memory.backend.generation(), memory.backend.position()
    with Memory(tmp_path / "copy.db") as memory:
        memory.write("another third")
        assert memory.backend.holds(two) and memory.backend.position() == at and not memory.backend.holds(three)


def test_a_generation_outlives_the_erasure_of_another_namespace_that_came_later(path: Path) -> None:
    clock = ManualClock("2026-01-01")
    with Memory(path, clock=clock) as mine, Memory(path, namespace="theirs", clock=clock) as theirs:
        mine.write("mine")
        known = mine.backend.generation()
        theirs.write("theirs")
        clock.advance(days=1)
        mine.backend.erase_namespace("theirs", clock.now())
        assert mine.backend.holds(known) and mine.backend.holds(mine.backend.generation())
