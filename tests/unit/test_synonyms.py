"The list of synonyms is read as it is written, and what a synonym adds never outweighs the question's own word."
from importlib.resources import files

import pytest

from rlm import Memory
from rlm.core.text import FUNCTION_WORDS, tokens
from rlm.core.text.tokenizer import ENGLISH_STEMS, bigrams
from rlm.search.lexical.synonyms import synonyms

ROWS = [line for line in (files("rlm") / "data" / "language" / "synonyms.txt").read_text("utf-8").splitlines() if line and line[0] != "#"]


def test_each_word_of_the_list_is_no_function_word_and_has_the_tokens_that_a_memory_with_it_has() -> None:
    for word in " ".join(ROWS).replace(">", " ").split():
        assert word not in FUNCTION_WORDS, word
        assert set(tokens(word)) >= set(bigrams(word) if word >= "가" else [ENGLISH_STEMS[word]]), word


def test_no_line_repeats_a_word() -> None:
    for row in ROWS:
        same, _, kinds = row.partition(">")
        assert len(set(same.split())) == len(same.split()) and len(set(kinds.split())) == len(kinds.split()), row


def test_a_kind_is_looked_for_by_what_it_is_a_kind_of_and_not_the_other_way_round() -> None:
    assert ("cello",) in {s.terms for s in synonyms(tokens("Which instrument do I play?"))}
    assert not {("instrument",), ("guitar",)} & {s.terms for s in synonyms(tokens("Where is my cello?"))}


@pytest.mark.parametrize(("question", "own", "other"), [
    ("Who is my manager?", "The manager is Ana.", "The boss is Ana."), ("상사 이름이 뭐야?", "우리 상사는 김민재야.", "My boss is Ana."),
    ("When is the operation?", "The operation is on Monday.", "수술은 월요일이야.")])
def test_the_questions_own_word_counts_for_more(question: str, own: str, other: str) -> None:
    with Memory(":memory:", embedder="none") as memory:
        memory.write_many([{"id": "other", "text": other}, {"id": "own", "text": own}, {"text": "We painted the hall green."}])
        assert [hit.id for hit in memory.search(question)] == ["own", "other"]


@pytest.mark.parametrize(("question", "told"), [
    ("Who is my manager?", "boss"), ("which instrument do I play", "cello"), ("when is mum's operation?", "knee"),
    ("엄마 수술이 언제야?", "knee"), ("수술이 언제야?", "knee"), ("악기는 뭐 배워?", "cello"),
    ("What is my daughter called?", "daughter"), ("where does the wedding take place", "wedding"), ("집이 어디야?", "home")])
def test_ordinary_questions_in_other_words_find_their_memory_by_words(question: str, told: str) -> None:
    with Memory(":memory:", embedder="none") as memory:
        memory.write_many([{"id": i, "text": text} for i, text in {
            "boss": "My boss Farida wants the budget by Friday.", "cello": "I started learning the cello two weeks ago.",
            "knee": "엄마 무릎 수술은 12월 3일로 잡혔어.", "daughter": "우리 딸 지우는 올해 초등학교 2학년이야.",
            "wedding": "Lina and Paolo are getting married in Verona next June.", "home": "Our flat is in Leeds, near the station.",
            "boiler": "The boiler was serviced by Ray.", "cat": "고양이 미소는 아침마다 약을 먹어."}.items()])
        assert memory.search(question)[0].id == told


def test_an_explanation_names_the_synonym() -> None:
    with Memory(":memory:", embedder="none") as memory:
        told = memory.write("My boss Farida wants the budget by Friday.")
        assert "“boss” counts in part for “manag”" in memory.explain("Who is my manager?", told.id).verdict
        assert "in part" not in memory.explain("Who is my boss?", told.id).verdict
