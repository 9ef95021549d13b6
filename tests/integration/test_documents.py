"""Every command line and every Python example in README and the pages under docs runs, in the order it is written."""
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from rlm.search.embedding.e5 import e5_problem

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", ROOT / "README.ko.md", *sorted((ROOT / "docs").rglob("*.md"))]
BLOCK = re.compile(r"^``` ?(\w+)\n(.*?)^```", re.M | re.S)
# what a page shows of the output of the block before
SHOWN = re.compile(r"^``` ?python\n(?:(?!^```).)*^```\n\n```text\n(.*?)\n```", re.M | re.S)
SETUP = re.compile(r"^(make|pip|git) ")  # what the two commands of set-up do is tested by running them


def blocks(page: Path, language: str) -> list[str]:
    return [body for name, body in BLOCK.findall(page.read_text(encoding="utf-8")) if name == language]


def run(command: list[str], folder: Path, stdin: str) -> subprocess.CompletedProcess[str]:
    env = {k: v for k, v in os.environ.items() if not k.startswith(("RLM_", "AIMEMORY_"))}
    env |= {"HOME": str(folder), "PATH": f"{Path(sys.executable).parent}{os.pathsep}{env['PATH']}", "LC_ALL": "C.UTF-8",
            "RLM_EMBEDDER": "none"}  # words alone, so that examples say the same everywhere
    return subprocess.run(command, cwd=folder, env=env, input=stdin, text=True, capture_output=True, timeout=120)


@pytest.mark.parametrize("page", PAGES, ids=lambda p: str(p.relative_to(ROOT)))
def test_command_lines_run(page: Path, tmp_path: Path) -> None:
    lines = [line for body in blocks(page, "sh") for line in body.splitlines() if line.strip() and not SETUP.match(line)]
    done = run(["bash", "-euo", "pipefail"], tmp_path, "\n".join(lines))
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("page", PAGES, ids=lambda p: str(p.relative_to(ROOT)))
def test_python_examples_run(page: Path, tmp_path: Path) -> None:
    done = run([sys.executable, "-W", "error", "-"], tmp_path, "\n".join(blocks(page, "python")))
    assert done.returncode == 0, done.stderr
    for output in SHOWN.findall(page.read_text(encoding="utf-8")):
        assert output in done.stdout


@pytest.mark.skipif(bool(e5_problem()), reason=f"needs e5: {e5_problem()}")
def test_the_first_output_of_readme_is_what_its_reader_gets(tmp_path: Path) -> None:
    "Its cell needs e5, so the check of the notebooks leaves it out. A percentage may differ by two between processors."
    shown = re.search(r"\n\n((?: {4}.*\n)+)", PAGES[0].read_text(encoding="utf-8"))
    env = {k: v for k, v in os.environ.items() if not k.startswith(("RLM_", "AIMEMORY_"))}
    done = subprocess.run([sys.executable, "-W", "error", "-c", blocks(PAGES[0], "python")[0]], cwd=tmp_path, env=env, text=True,
                          capture_output=True, timeout=300)
    assert shown and done.returncode == 0, done.stderr
    pairs = list(zip(shown[1].splitlines(), done.stdout.splitlines(), strict=True))
    assert [a.split()[1:] for a, _ in pairs] == [b.split()[1:] for _, b in pairs]
    assert all(abs(int(a.split()[0][:-1]) - int(b.split()[0][:-1])) <= 2 for a, b in pairs), pairs


def test_there_are_examples_in_both_languages() -> None:
    readme = "\n".join(blocks(PAGES[0], "sh") + blocks(PAGES[0], "python"))
    assert "rlm memory search" in readme and "from rlm import Memory" in readme and re.search("[가-힣]", readme)


def test_no_block_is_written_in_a_language_that_is_not_run() -> None:
    known = {"sh", "python", "text", "yaml", "json"}
    odd = {(page.name, name) for page in PAGES for name, _ in BLOCK.findall(page.read_text(encoding="utf-8")) if name not in known}
    odd.discard(("adapters.md", "py"))  # those need frameworks: tests/adapters/test_page.py runs them, `make adapters`
    assert not odd, f"These blocks are not tested: {odd}"
