"The wheel in fresh environments, with no extra and with each light one. It asks the package registry, and takes minutes."
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tree import copy_tree

pytestmark = pytest.mark.nightly
QUIET = ("--quiet", "--disable-pip-version-check", "--no-input")


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    "The wheel of the tree as it is."
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "pip", "wheel", *QUIET, "--no-deps", "--no-build-isolation", "--wheel-dir", str(folder),
               str(copy_tree(folder / "source"))]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    [built] = folder.glob("*.whl")
    return built


@pytest.fixture
def environment(tmp_path: Path) -> Path:
    "A fresh environment; its folder of programs."
    subprocess.run([sys.executable, "-m", "venv", str(tmp_path / "venv")], check=True)
    return tmp_path / "venv" / ("Scripts" if os.name == "nt" else "bin")


@pytest.mark.parametrize("extra", ["", "e5", "m2v", "serve", "mcp", "openai", "otel", "agent", "postgres"])
def test_an_installation_lists_its_commands_writes_and_searches(wheel: Path, environment: Path, extra: str, tmp_path: Path) -> None:
    wanted = f"{wheel}[{extra}]" if extra else str(wheel)
    # pip takes a checkout on PYTHONPATH for an installation, and installs nothing
    left = {n: v for n, v in os.environ.items() if not n.startswith(("RLM_", "AIMEMORY_", "PYTHON"))}
    done = subprocess.run([environment / "python", "-m", "pip", "install", *QUIET, "--retries", "1", "--timeout", "20", wanted],
                          env=left, capture_output=True, text=True, check=False)
    unreachable = ("NewConnectionError", "ConnectTimeout", "No matching distribution", "Read timed out")
    if done.returncode and any(words in done.stderr for words in unreachable):
        pytest.skip(f"the packages can't be fetched here: {done.stderr.strip().splitlines()[-1]}")
    assert done.returncode == 0, done.stderr
    for words, code, said in ((["--help"], 0, "bench"), ([], 2, "bench"), (["memory", "write", "I am allergic to peanuts."], 0, "allergic"),
                              (["memory", "search", "peanut"], 0, "allergic")):
        run = subprocess.run([environment / "rlm", *words], cwd=tmp_path, env=left | {"HOME": str(tmp_path)}, capture_output=True,
                             text=True, check=False)
        assert run.returncode == code and said in run.stdout + run.stderr, (words, run.stdout, run.stderr)
        assert "Traceback" not in run.stderr
