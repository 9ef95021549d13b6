"A hit that stands above others of a higher score keeps the score that was computed and says what placed it."
from itertools import pairwise

import pytest

from rlm import Memory
from rlm.service.results import SearchResults

FACTS = [["You asked where I live, and do I live well?", "I moved to Busan."], ["내가 어디 사는지 물어봤지?", "부산으로 이사했어."]]


def assert_honest(found: SearchResults) -> None:
    "Each score is the sum of its parts, and scores fall except where a hit says what placed it."
    assert all(hit.score == pytest.approx(sum(sum(p.values()) for p in hit.parts.values()), abs=1e-4) for hit in found)
    assert all(above.placed_by or above.score >= below.score - 1e-5 for above, below in pairwise(found))
    falling = found.falling_scores()
    assert falling == sorted(falling, reverse=True) and len(falling) == len(found)


@pytest.mark.parametrize(("texts", "question"), [(FACTS[0], "Where do I live?"), (FACTS[1], "나 어디 살아?"),
                                                 (["You asked who my boss is.", "My boss is Dana."], "Who is my boss?")])
def test_what_states_the_fact_says_that_this_placed_it(texts: list[str], question: str) -> None:
    with Memory(":memory:", embedder="none") as memory:
        memory.write_many(texts)
        found = memory.search(question, min_score=0)
        assert found[0].text == texts[1]
        assert_honest(found)
        assert found[0].placed_by == "states the fact that is asked for" or found[0].score >= found[1].score
        assert found[0].placed_by in found[0].as_dict().get("placed_by", "") and all("(now)" not in hit.parts for hit in found)


def test_a_reply_says_which_turn_it_stands_above() -> None:
    with Memory(":memory:", embedder="none") as memory:
        memory.add_conversation([{"speaker": "Mina", "text": "Which restaurant did your sister book?"},
                                 {"speaker": "Joon", "text": "The blue one at the harbour."}])
        found = memory.search("Which restaurant did my sister book?", min_score=0)
        assert [hit.placed_by for hit in found] == ["answers a question below", ""] and found[0].score < found[1].score
        assert_honest(found)
        why = memory.explain("Which restaurant did my sister book?", found[0].id)
        assert why.rank == 1 and why.score == pytest.approx(found[0].score) and "because it answers a question below" in why.verdict


@pytest.mark.parametrize(("said", "question"), [
    (["The dentist is on Tuesday at 3 pm.", "No, the dentist is on Wednesday."], "Is the dentist on Tuesday at 3 pm?"),
    (["치과는 화요일이야.", "아니, 치과는 수요일이야."], "치과가 화요일이야?")])
def test_a_correction_keeps_its_score_before_what_it_corrects(said: list[str], question: str) -> None:
    with Memory(":memory:", embedder="none") as memory:
        for text in said:
            memory.write(text)
        found = memory.search(question, min_score=0)
        assert found[0].text == said[1]
        assert_honest(found)


def test_the_log_of_recalls_says_what_placed_a_hit() -> None:
    with Memory(":memory:", embedder="none") as memory:
        memory.write_many(FACTS[0])
        memory.context("Where do I live?")
        (recall,) = memory.companion.audit(query="live").recalls
        assert recall.served[0].why["placed_by"] == "states the fact that is asked for"
        assert "as it states the fact" in str(memory.companion.audit(query="live"))
