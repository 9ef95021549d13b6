"""Every notebook runs from top to bottom by itself: one test case for each, in a process of its own, with a time limit. What it
shows is compared with what is saved in it. A difference is no failure, since words of Python and of packages change with their
versions; the end of the test run names it.

The process gets an empty home and an empty folder for temporary files, so that nothing is left behind for another
notebook, and nothing of the developer's own set-up can make a notebook pass."""
import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from nbdev.doclinks import nbglob

from nbrun import OTHERWISE

ROOT = Path(__file__).resolve().parent.parent
NBS = ROOT / "nbs"
NOTEBOOKS = sorted(nbglob(NBS, as_path=True))
LIMIT = float(os.environ.get("RLM_NOTEBOOK_TIMEOUT", "300"))  # seconds for one notebook


KEPT = {name: value for name, value in os.environ.items() if not name.startswith(("RLM_", "AIMEMORY_", "PYTEST_"))}
# matplotlib lists the fonts once, not for every notebook; the rest is as tools/nbrun.py has it
ENV = KEPT | {"PYTHONPATH": str(ROOT), "MPLCONFIGDIR": str(ROOT / ".cache" / "matplotlib"), "IN_TEST": "1", "MPLBACKEND": "agg",
              "PYTHONHASHSEED": "0", "MATPLOTLIBRC": str(NBS / "matplotlibrc"), "RLM_EMBEDDER": "none"}


class NotebookRunner:
    "A process that has imported what every notebook needs, and forks one for each."

    def __init__(self) -> None:
        command = [sys.executable, ROOT / "tools" / "nbrun.py", "--serve"]
        self.process = subprocess.Popen(command, cwd=ROOT, env=ENV, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def run(self, notebook: Path, folder: Path, limit: float) -> tuple[int, str]:
        "Execute a notebook as `nbdev_test` does, compare what it shows, and end all its processes when the time is over."
        assert self.process.stdin and self.process.stdout
        home, tmp, output = folder / "home", folder / "tmp", folder / "output.txt"
        home.mkdir()
        tmp.mkdir()
        env = ENV | {"HOME": str(home), "TMPDIR": str(tmp)}
        self.process.stdin.write(json.dumps({"path": str(notebook), "env": env, "output": str(output)}) + "\n")
        self.process.stdin.flush()
        child, late = int(self.process.stdout.readline()), threading.Event()
        timer = threading.Timer(limit, lambda: (late.set(), os.killpg(child, signal.SIGKILL)))
        timer.start()
        code = int(self.process.stdout.readline())
        timer.cancel()
        return code, output.read_text(encoding="utf-8") + f"\nnot finished after {limit:g} s" * late.is_set()

    def close(self) -> None:
        "End the process."
        assert self.process.stdin and self.process.stdout
        self.process.stdin.close()
        self.process.wait()
        self.process.stdout.close()


@pytest.fixture(scope="module")
def runner() -> Iterator[NotebookRunner]:
    found = NotebookRunner()
    yield found
    found.close()


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda p: p.relative_to(NBS).with_suffix("").as_posix())
def test_notebook(runner: NotebookRunner, notebook: Path, tmp_path: Path, record_property: Callable[[str, object], None]) -> None:
    code, said = runner.run(notebook, tmp_path, LIMIT)
    assert code in (0, OTHERWISE), said
    if code == OTHERWISE:
        record_property("otherwise", f"{notebook.relative_to(ROOT)}\n{said}")


def test_no_notebook_is_left_out() -> None:
    there = {p for p in NBS.rglob("*.ipynb") if ".ipynb_checkpoints" not in p.parts}
    assert there == set(NOTEBOOKS)


def test_a_notebook_that_hangs_is_ended(runner: NotebookRunner, tmp_path: Path) -> None:
    from execnb.nbio import mk_cell, new_nb, write_nb
    endless = tmp_path / "endless.ipynb"
    write_nb(new_nb([mk_cell("import time\nprint('started')\ntime.sleep(60)")]), endless)
    code, said = runner.run(endless, tmp_path, 3)
    assert code != 0
    assert "not finished after 3 s" in said


def test_a_notebook_that_fails_says_where(runner: NotebookRunner, tmp_path: Path) -> None:
    from execnb.nbio import mk_cell, new_nb, write_nb
    wrong = tmp_path / "wrong.ipynb"
    write_nb(new_nb([mk_cell("found = 1"), mk_cell("assert found == 2, 'found the wrong one'")]), wrong)
    code, said = runner.run(wrong, tmp_path, 60)
    assert code != 0
    assert "found the wrong one" in said


def test_a_notebook_that_shows_something_else_is_noticed(runner: NotebookRunner, tmp_path: Path) -> None:
    from execnb.nbio import mk_cell, new_nb, write_nb
    changed = tmp_path / "changed.ipynb"
    cells = [mk_cell(f"print({n})") for n in (1, 2)]
    for cell in cells:
        cell.outputs = [{"output_type": "stream", "name": "stdout", "text": ["1\n"]}]
    write_nb(new_nb(cells), changed)
    before = changed.read_bytes()
    assert runner.run(changed, tmp_path, 60) == (OTHERWISE, "cell 1 shows something else:\n  @@ -1 +1 @@\n  -1\n  +2\n")
    assert changed.read_bytes() == before
