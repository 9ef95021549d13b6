"The demo finds what it says it finds."
import os
import subprocess
import sys
from pathlib import Path

import pytest

from rlm.store.e5 import package_trouble

WORDS_ALONE = package_trouble()


@pytest.fixture(scope="module")
def found(root: Path) -> dict[str, str]:
    "What the demo prints, by heading."
    paths = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    left = {name: value for name, value in os.environ.items() if not name.startswith("RLM_")}
    script, env = root / "tools" / "demo.sh", left | {"PATH": paths}
    done = subprocess.run(["bash", str(script)], env=env, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return {part.partition("\n")[0]: part for part in done.stdout.split("\n# ")}


def test_the_demo_finds_by_words(found: dict[str, str]) -> None:
    assert " deploy " in found["Found in other forms of the words: restart, migrating"]
    assert "녹차" in found["Found in Korean, with other particles and endings"]


@pytest.mark.skipif(bool(WORDS_ALONE), reason=f"needs the extra e5: {WORDS_ALONE}")
def test_the_demo_finds_by_what_it_means(found: dict[str, str]) -> None:
    assert " nuts " in found["Found by what it means, from Korean to English, without a word in common"]
