"""Every notebook runs from top to bottom by itself: one test case for each, in a process of its own, with a time limit.

The process gets an empty home and an empty folder for temporary files, so that nothing is left behind for another
notebook, and nothing of the developer's own set-up can make a notebook pass."""
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from nbdev.doclinks import nbglob

ROOT = Path(__file__).resolve().parent.parent
NBS = ROOT / "nbs"
NOTEBOOKS = sorted(nbglob(NBS, as_path=True))
LIMIT = float(os.environ.get("RLM_NOTEBOOK_TIMEOUT", "300"))  # seconds for one notebook
RUN = """
import sys
from pathlib import Path
from nbdev.config import get_config
from nbdev.test import test_nb
config = get_config()
ok, _ = test_nb(Path(sys.argv[1]), skip_flags=config.tst_flags.split(), basepath=config.config_path)
sys.exit(not ok)
"""


def run(notebook: Path, folder: Path, limit: float) -> tuple[int, str]:
    "Execute a notebook as `nbdev_test` does, and end all its processes when the time is over."
    home, tmp = folder / "home", folder / "tmp"
    home.mkdir()
    tmp.mkdir()
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("RLM_", "AIMEMORY_", "PYTEST_"))}
    fonts = ROOT / ".cache" / "matplotlib"  # matplotlib lists the fonts once, not for every notebook
    env = kept | {"HOME": str(home), "TMPDIR": str(tmp), "PYTHONPATH": str(ROOT), "MPLBACKEND": "agg",
                  "MPLCONFIGDIR": str(fonts), "RLM_EMBEDDER": "none"}  # as tools/nbrun.py has it
    with (folder / "output.txt").open("w+", encoding="utf-8") as output:
        process = subprocess.Popen([sys.executable, "-c", RUN, str(notebook)], cwd=ROOT, env=env, stdout=output,
                                   stderr=subprocess.STDOUT, start_new_session=True)
        try:
            code = process.wait(timeout=limit)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            code = process.wait()
            output.write(f"\nnot finished after {limit:g} s")
        output.seek(0)
        return code, output.read()


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda p: p.relative_to(NBS).with_suffix("").as_posix())
def test_notebook(notebook: Path, tmp_path: Path) -> None:
    code, said = run(notebook, tmp_path, LIMIT)
    assert code == 0, said


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
