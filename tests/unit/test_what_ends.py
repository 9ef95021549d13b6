"""The table of what a statement ends, in docs/companion.md, says what a store does, in both languages."""
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from rlm import Memory

PAGE = Path(__file__).parents[2] / "docs" / "companion.md"


def pairs() -> Iterator[tuple[str, str, str, str]]:
    "Older and newer words of each row, and what the row says that ends and stays."
    section = PAGE.read_text(encoding="utf-8").partition("\n## What a statement ends\n")[2].partition("\n## ")[0]
    for row in re.findall(r"^\| (.+ → .+) \|$", section, re.M):
        english, korean, ends, stays = row.split(" | ")
        if "→" in korean:
            for pair in (english, korean):
                older, newer = pair.split(" → ")
                yield older, newer, ends, stays


def test_the_table_has_rows_in_both_languages() -> None:
    found = list(pairs())
    assert len(found) >= 24 and sum(bool(re.search("[가-힣]", older)) for older, *_ in found) >= len(found) // 2


@pytest.mark.parametrize(("older", "newer", "ends", "stays"), list(pairs()))
def test_a_store_does_what_a_row_says(older: str, newer: str, ends: str, stays: str) -> None:
    with Memory(":memory:", embedder="none") as memory:
        memory.write(older, id="older")
        memory.write(newer, id="newer")
        past = next((hit.past for hit in memory.search(older, min_score=0) if hit.id == "older"), "")
        assert (memory.get("older").valid_to is not None) == ends.startswith("the memory")
        assert past if stays.startswith("the memory, marked") else not (past and ends == "nothing")


@pytest.mark.parametrize("said", ["해지 안 했어", "해지하지 않았어", "해지는 안 했어", "아직 해지 못 했어",
                                  "해지할 거야", "해지해야 해", "해지한 적 없어", "탈퇴 안 했어"])
def test_what_is_not_cancelled_goes_on(said: str) -> None:
    with Memory(":memory:", embedder="none") as memory:
        memory.write("나는 넷플릭스를 구독해", id="older")
        memory.write(f"넷플릭스 {said}")
        assert memory.get("older").valid_to is None
