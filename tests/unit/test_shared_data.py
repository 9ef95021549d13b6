"The folder of shared data is known from the start: a test that clears the environment does not lose it for those after it."

import os
import subprocess
import sys
from pathlib import Path

SAMPLE = """
def test_first(bare): ...
def test_then(bare, shared): assert shared.name == "shelf"
"""


def test_the_shared_folder_outlives_a_bare_environment(tmp_path: Path, root: Path) -> None:
    (tmp_path / "shelf").mkdir()
    (tmp_path / "test_sample.py").write_text(SAMPLE, encoding="utf-8")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "conftest", "-p", "no:cacheprovider", "-c", str(root / "pytest.ini"),
               "--rootdir", str(tmp_path), str(tmp_path)]
    paths = os.pathsep.join([str(root / "tests"), str(root / "tools"), str(root)])
    done = subprocess.run(command, env={**os.environ, "RLM_SHARED": str(tmp_path / "shelf"), "PYTHONPATH": paths}, cwd=tmp_path,
                          capture_output=True, text=True, check=False)
    assert done.returncode == 0 and "2 passed" in done.stdout, done.stdout + done.stderr
