"Questions that do not repeat the words of a memory find it by words alone: by the list of synonyms, and by what little is shared."
import json
from pathlib import Path

import pytest

from rlm import Memory


@pytest.mark.parametrize(("split", "first", "three"), [("dev", .57, .70), ("held", .41, .46)])
def test_questions_in_other_words(root: Path, split: str, first: float, three: float) -> None:
    found: list[tuple[bool, bool]] = []
    for line in (root / "tests" / "data" / "other_words.jsonl").read_text("utf-8").splitlines():
        life = json.loads(line)
        if life["split"] == split:
            with Memory(":memory:", embedder="none") as memory:
                memory.write_many(life["items"])
                for q in life["questions"]:
                    if q["gold"]:
                        ids = [hit.id for hit in memory.search(q["question"], 3)]
                        found.append((ids[:1] == q["gold"], q["gold"][0] in ids))
    assert sum(a for a, _ in found) / len(found) >= first  # .61, .44
    assert sum(b for _, b in found) / len(found) >= three  # .74, .49
