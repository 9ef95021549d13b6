"The walks of the architecture page are those that are measured."
import re
from pathlib import Path

import pytest

from walk import PARTS, measure, walk

PAGE = Path(__file__).parents[2] / "docs" / "design" / "architecture.md"
MOST_STEPS = 12


def written(name: str) -> list[str]:
    "The steps of a walk as the page lists them."
    part = PAGE.read_text(encoding="utf-8").split(f"### {name}\n")[1].split("\n#")[0]
    return re.findall(r"^\d+\. `([\w.]+)`", part, re.M)


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[str]]:
    return measure(tmp_path_factory.mktemp("walks"))


@pytest.mark.parametrize("name", list(PARTS))
def test_a_walk_is_as_the_page_says_and_enters_nothing_twice(measured: dict[str, list[str]], name: str) -> None:
    steps = measured[name]
    assert steps == written(name)
    assert 5 < len(steps) <= MOST_STEPS and len(set(steps)) == len(steps)


def test_a_walk_shows_a_part_that_is_entered_twice() -> None:
    from rlm import Memory
    with Memory(":memory:", embedder="none") as memory:
        assert walk(lambda: (memory.write("one"), memory.write("two")), {"MemoryWriter"}).count("MemoryWriter.insert") == 2
