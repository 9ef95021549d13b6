"Memories are found by walking the current facts, in step with what is stored, in English and Korean."
import json
from pathlib import Path

import pytest

from rlm import Memory
from rlm.core.errors import InvalidInput

LAMP = ["The author of The Lamp is Jonas Berg.", "Jonas Berg is married to Olga Lind.", "Olga Lind was born in the city of Turku.",
        "The harbour is closed in winter.", "민수의 아내는 영희야.", "영희는 부산에 살아.",
        "My sister is married to Tom Hale.", "Tom Hale works for Siemens."]


@pytest.fixture
def memory(words_only: None) -> Memory:
    found = Memory(":memory:", embedder="none")
    for n, text in enumerate(LAMP):
        found.write(text, id=f"m{n}")
    return found


@pytest.mark.seed("002 graph")
@pytest.mark.parametrize(("question", "wanted", "steps"), [
    ("Where was the wife of the author of The Lamp born?", "m2", 3), ("민수의 아내는 어디 살아?", "m5", 2),
    ("Where does my sister's husband work?", "m7", 2)])
def test_what_needs_several_memories_is_found_by_its_facts(memory: Memory, question: str, wanted: str, steps: int) -> None:
    found = {c.memory.id: len(c.path) for c in memory.companion.connected(question, 3)}
    assert found[wanted] == steps
    near = {c.memory.id for c in memory.companion.connected(question, 5, depth=1) if c.path}
    assert wanted not in near  # the control: one step is too few


def test_a_walk_follows_what_is_true_now(memory: Memory) -> None:
    question = "Where was the wife of the author of The Lamp born?"
    memory.write("Olga Lind was born in the city of Vaasa.", id="newer")
    ids = [c.memory.id for c in memory.companion.connected(question)]
    assert "newer" in ids and "m2" not in ids
    memory.delete("m1")
    assert all(len(c.path) < 2 for c in memory.companion.connected(question))
    with pytest.raises(InvalidInput):
        memory.companion.connected(question, depth=4)


def test_a_block_holds_the_last_step_where_the_setting_says_so(words_only: None) -> None:
    held = []
    for setting in ("off", "on"):
        with Memory(":memory:", embedder="none", graph_rag=setting) as memory:
            memory.write_many(["Olga Lind came to the world in Turku, her birthplace is Turku.", *LAMP[:3]])
            held.append("city of Turku" in memory.context("Who is the spouse of the author of The Lamp?", 120).text)
    assert held == [False, True]


@pytest.mark.nightly
def test_two_hops_over_facts_that_changed(shared: Path, words_only: None) -> None:
    asked = json.loads((shared / "data" / "fact_dev" / "factconsolidation_mh_6k.json").read_text(encoding="utf-8"))
    with Memory(":memory:", embedder="none") as memory:
        for number, fact in enumerate(asked["facts"]):
            memory.write(fact, id=f"fact{number:05}")

        def share(texts_of: object) -> float:
            return sum(any(a.casefold() in " ".join(texts_of(q["q"])).casefold() for a in q["answers"])  # type: ignore[operator]
                       for q in asked["questions"]) / len(asked["questions"])
        assert share(lambda q: [c.memory.text for c in memory.companion.connected(q, 5)]) >= 0.55  # .65 when this was written
        assert share(lambda q: [h.text for h in memory.search(q, 5)]) < 0.3  # the control: words alone
