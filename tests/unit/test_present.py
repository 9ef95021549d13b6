"A question about the present prefers the later of its best memories; search, explain and every k say the same."
import pytest

from rlm import Memory

TEXTS = [("2025-01-01", "I live in a flat in Leith."), ("2025-06-01", "We live in the house in Portobello at last."),
         ("2025-07-01", "The cat is asleep."), ("2025-01-05", "나는 망원동 원룸에 살아"), ("2025-06-05", "우리는 성수동 빌라에 살아")]


@pytest.fixture
def memory(words_only: None) -> Memory:
    found = Memory(":memory:", embedder="none", supersede="off")
    for n, (day, text) in enumerate(TEXTS):
        found.write(text, id=f"m{n}", valid_from=day)
    return found


@pytest.mark.parametrize(("question", "first"), [
    ("Where do I live now?", "m1"), ("Where do I live?", "m0"), ("지금 어디에 살아?", "m4")])
def test_the_later_comes_first_where_the_question_asks_about_the_present(memory: Memory, question: str, first: str) -> None:
    hits = memory.search(question)
    assert hits[0].id == first and any("(now)" in h.parts for h in hits) == ("now" in question or "지금" in question)
    for hit in hits:
        why = memory.explain(question, hit.id)
        assert why.rank == hit.rank and abs(sum(sum(p.values()) for p in why.parts.values()) - hit.score) < 1e-6
    assert [h.id for h in memory.search(question, 1)] == [first]
