"The demo finds what it says it finds."
import os
import subprocess
import sys
from pathlib import Path

import pytest

from rlm.search.embedding.e5 import e5_problem

WORDS_ALONE = e5_problem()


@pytest.fixture(scope="module")
def found(root: Path) -> dict[str, str]:
    "What the demo prints, by heading."
    paths = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    left = {name: value for name, value in os.environ.items() if not name.startswith("RLM_")}
    script, env = root / "tools" / "demo.sh", left | {"PATH": paths}
    done = subprocess.run(["bash", str(script)], env=env, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return {part.partition("\n")[0]: part for part in done.stdout.split("\n# ")}


def test_the_demo_answers_over_an_ontology_and_shows_the_strategy_it_used(found: dict[str, str]) -> None:
    answer = found["An agent answers a question about the ontology PROV, offline, with strategies that come with rlm"]
    assert {"prov:Submit", "prov:Publish"} <= set(answer.replace(",", " ").split())
    used = found["What it used: the strategy from its memory, and the code that it wrote by it"]
    assert "List all subclasses of a class" in used and "hierarchy('prov:Activity'" in used
    assert "\n9" in found["The same in Korean: how many subclasses does Activity have?"]


def test_the_demo_shows_the_main_job_before_the_memories(found: dict[str, str]) -> None:
    headings = list(found)
    assert headings.index("What it used: the strategy from its memory, and the code that it wrote by it") < headings.index(
        "Six things worth remembering, in two languages, each with its tags")


def test_the_demo_finds_by_words(found: dict[str, str]) -> None:
    assert " deploy " in found["Found in other forms of the words: restart, migrating"]
    assert "녹차" in found["Found in Korean, with other particles and endings"]


@pytest.mark.skipif(bool(WORDS_ALONE), reason=f"needs the extra e5: {WORDS_ALONE}")
def test_the_demo_finds_by_what_it_means(found: dict[str, str]) -> None:
    assert " nuts " in found["Found by what it means, from Korean to English, without a word in common"]
