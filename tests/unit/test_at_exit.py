"A program that writes a few memories and ends, without `close` and without `with`, ends well, and has lost nothing."
import os
import subprocess
import sys
from pathlib import Path

import pytest

from rlm import Memory
from rlm.core.at_exit import close_all, close_at_exit

WRITES = """
from rlm import Memory
memory = Memory({path!r}, embedder={embedder}, embedding={when!r})
for i in range(12):
    memory.write(f"Guest {{i}} sits at table {{i}}.")
"""
SLOW = """
import time, numpy as np
class Slow:
    name, dim, calibration = "test:slow", 8, None
    def embed(self, texts, kind="passage"):
        time.sleep(0.2)
        return np.ones((len(list(texts)), 8), dtype=np.float32) / 8 ** 0.5
"""


def ended(code: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=300, check=False)


@pytest.mark.parametrize("when", ["now", "later"])
def test_a_script_that_ends_while_its_memories_are_embedded_ends_well(tmp_path: Path, when: str) -> None:
    pytest.importorskip("onnxruntime", reason="needs the extra e5")
    path = str(tmp_path / "guests.db")
    done = ended(WRITES.format(path=path, embedder="None", when=when))
    assert (done.returncode, done.stderr) == (0, "")
    with Memory(path, embedder="none") as memory:
        assert memory.stats()["memories"] == 12


def test_the_batch_that_is_under_way_is_finished_and_its_recalls_are_kept(tmp_path: Path) -> None:
    path = str(tmp_path / "guests.db")
    code = SLOW + WRITES.format(path=path, embedder="Slow()", when="later") + "time.sleep(0.3)\nmemory.context('table 3')\n"
    done = ended(code)
    assert (done.returncode, done.stderr) == (0, "")
    with Memory(path, embedder="none") as memory:
        assert [entry.query for entry in memory.audit().recalls] == ["table 3"]


def test_an_exception_at_the_end_of_a_script_is_shown_and_nothing_else(tmp_path: Path) -> None:
    done = ended(WRITES.format(path=":memory:", embedder="'none'", when="now") + "raise SystemExit('over')")
    assert (done.returncode, done.stderr) == (1, "over\n")


def test_what_cannot_be_closed_is_logged_and_the_rest_is_closed(caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch) -> None:
    class Opened:
        def __init__(self, fails: bool) -> None:
            self.fails, self.closed = fails, 0

        def close(self) -> None:
            self.closed += 1
            if self.fails:
                raise OSError("the disk is full")

    monkeypatch.setattr("rlm.core.at_exit._open", type(close_all.__globals__["_open"])())
    good, bad = Opened(False), Opened(True)
    close_at_exit(good)
    close_at_exit(bad)
    monkeypatch.setattr(os, "getpid", lambda: -1)  # in a fork
    close_all()
    assert (good.closed, bad.closed) == (0, 0)
    monkeypatch.undo()
    monkeypatch.setattr("rlm.core.at_exit._open", type(close_all.__globals__["_open"])())
    close_at_exit(good)
    close_at_exit(bad)
    close_all()
    assert (good.closed, bad.closed) == (1, 1) and "the disk is full" in caplog.text
