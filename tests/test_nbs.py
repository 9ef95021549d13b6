"""Every notebook runs from top to bottom by itself: one test case for each, in a process of its own, with a time limit. What it
shows is compared with what is saved in it. A difference is no failure, since words of Python and of packages change with their
versions; the end of the test run names it.

The process gets an empty home and an empty folder for temporary files, so that nothing is left behind for another
notebook, and nothing of the developer's own set-up can make a notebook pass."""
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from nbdev.doclinks import nbglob

from nbrun import OTHERWISE

ROOT = Path(__file__).resolve().parent.parent
NBS = ROOT / "nbs"
NOTEBOOKS = sorted(nbglob(NBS, as_path=True))
LIMIT = float(os.environ.get("RLM_NOTEBOOK_TIMEOUT", "300"))  # seconds for one notebook


def run(notebook: Path, folder: Path, limit: float) -> tuple[int, str]:
    "Execute a notebook as `nbdev_test` does, compare what it shows, and end all its processes when the time is over."
    home, tmp = folder / "home", folder / "tmp"
    home.mkdir()
    tmp.mkdir()
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("RLM_", "AIMEMORY_", "PYTEST_"))}
    fonts = ROOT / ".cache" / "matplotlib"  # matplotlib lists the fonts once, not for every notebook
    env = kept | {"HOME": str(home), "TMPDIR": str(tmp), "PYTHONPATH": str(ROOT), "MPLCONFIGDIR": str(fonts), "IN_TEST": "1",
                  "MPLBACKEND": "agg", "MATPLOTLIBRC": str(NBS / "matplotlibrc"), "RLM_EMBEDDER": "none"}  # as tools/nbrun.py has it
    with (folder / "output.txt").open("w+", encoding="utf-8") as output:
        command = [sys.executable, ROOT / "tools" / "nbrun.py", "--check", "--here", notebook]
        process = subprocess.Popen(command, cwd=ROOT, env=env, stdout=output, stderr=subprocess.STDOUT, start_new_session=True)
        try:
            code = process.wait(timeout=limit)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            code = process.wait()
            output.write(f"\nnot finished after {limit:g} s")
        output.seek(0)
        return code, output.read()


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda p: p.relative_to(NBS).with_suffix("").as_posix())
def test_notebook(notebook: Path, tmp_path: Path, record_property: Callable[[str, object], None]) -> None:
    code, said = run(notebook, tmp_path, LIMIT)
    assert code in (0, OTHERWISE), said
    if code == OTHERWISE:
        record_property("otherwise", f"{notebook.relative_to(ROOT)}\n{said}")


def test_no_notebook_is_left_out() -> None:
    there = {p for p in NBS.rglob("*.ipynb") if ".ipynb_checkpoints" not in p.parts}
    assert there == set(NOTEBOOKS)


def test_a_notebook_that_hangs_is_ended(tmp_path: Path) -> None:
    from execnb.nbio import mk_cell, new_nb, write_nb
    endless = tmp_path / "endless.ipynb"
    write_nb(new_nb([mk_cell("import time\nprint('started')\ntime.sleep(60)")]), endless)
    code, said = run(endless, tmp_path, 3)
    assert code != 0
    assert "not finished after 3 s" in said


def test_a_notebook_that_fails_says_where(tmp_path: Path) -> None:
    from execnb.nbio import mk_cell, new_nb, write_nb
    wrong = tmp_path / "wrong.ipynb"
    write_nb(new_nb([mk_cell("found = 1"), mk_cell("assert found == 2, 'found the wrong one'")]), wrong)
    code, said = run(wrong, tmp_path, 60)
    assert code != 0
    assert "found the wrong one" in said


def test_a_notebook_that_shows_something_else_is_noticed(tmp_path: Path) -> None:
    from execnb.nbio import mk_cell, new_nb, write_nb
    changed = tmp_path / "changed.ipynb"
    cells = [mk_cell(f"print({n})") for n in (1, 2)]
    for cell in cells:
        cell.outputs = [{"output_type": "stream", "name": "stdout", "text": ["1\n"]}]
    write_nb(new_nb(cells), changed)
    before = changed.read_bytes()
    assert run(changed, tmp_path, 60) == (OTHERWISE, "cell 1 shows something else:\n  @@ -1 +1 @@\n  -1\n  +2\n")
    assert changed.read_bytes() == before
