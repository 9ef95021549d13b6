"What was said later stands in a small block before what it replaces, or neither does; and it says whose statement it has ended."

import pytest

from rlm import Memory
from rlm.companion.composer import compose


@pytest.mark.parametrize("budget", range(30, 120, 5))
def test_a_block_never_holds_the_outdated_turn_without_the_later_one(budget):
    later = "I talked to the whole team again this morning, and for the rest of the year we are going to meet at four."
    with Memory(":memory:", embedder="none") as memory:
        old, new = memory.write("We meet at noon."), memory.write(later)
    block = compose([], [(old, 0.6), (new, 0.6)], "When do we meet?", budget, past={old.id: f"later: {new.id}"})
    used = {id for id, _ in block.used}
    assert used in (set(), {new.id}, {old.id, new.id})


@pytest.mark.parametrize(("before", "after"), [
    ("Lena's violin recital is on June 12.", "The recital was moved to June 19."), ("I live in Seoul.", "I moved to Busan."),
    ("나는 수원에 살아.", "나 청주로 이사 갔어."), ("피아노 수업은 5월 20일이야.", "수업이 5월 27일로 미뤄졌어.")])
def test_a_turn_names_the_turns_of_which_it_has_ended_a_statement(before, after):
    with Memory(":memory:", embedder="none") as memory:
        old, new = memory.add_conversation([{"role": "user", "content": text} for text in (before, after)])
        assert [r.id for r in memory.superseded_by(new.id)] == [old.id]
        assert memory.get(old.id).valid_to is None and new.id in memory.history(old.id).past[0]
