"Questions with a misspelt word: what is looked for instead, what it finds, and what is left alone."
import json
from pathlib import Path

import pytest
from toy import index_of

from rlm import Memory
from rlm.core.text import tokens
from rlm.search.lexical.lexical_index import LexicalIndex, is_misspelling

LINES = [json.loads(line) for line in (Path(__file__).parents[1] / "data/misspelt.jsonl").read_text("utf-8").splitlines()]
ASKED = [(q["misspelt"], q["right"], n) for n, line in enumerate(LINES) for q in line["asked"]]


def test_of_eighty_everyday_questions_with_a_misspelt_word_nearly_all_find_their_memory_first_by_words_alone() -> None:
    assert len(ASKED) == 80
    with Memory(":memory:", embedder="none") as memory:
        ids = [r.id for r in memory.write_many([{"text": line["memory"]} for line in LINES])]

        def first(question: str) -> str | None:
            return next((hit.id for hit in memory.search(question, 1)), None)

        assert sum(first(misspelt) == ids[n] for misspelt, _, n in ASKED) >= 77  # 71 when words were looked for as they are written
        assert sum(first(right) == ids[n] for _, right, n in ASKED) >= 78


@pytest.mark.parametrize("pair", ["docter doctor", "alergi allergi", "brithday birthday", "nmae name", "insur insur", "vacin vaccin"])
def test_an_error_of_typing_is_told_in_both_directions(pair: str) -> None:
    one, other = pair.split()
    assert is_misspelling(one, other) == is_misspelling(other, one) == (one != other)


@pytest.mark.parametrize("pair", ["heart heat", "house horse", "write white", "where there", "event even", "plate place", "name game"])
def test_two_words_that_differ_by_a_letter_are_two_words(pair: str) -> None:
    one, other = pair.split()
    assert not is_misspelling(one, other) and not is_misspelling(other, one)


def test_the_commonest_of_several_spellings_is_looked_for() -> None:
    index = index_of("The recipes are here", "A recital", "doctor", "doctors", "doctar")
    assert index.with_spellings(["docter", "recital"]) == ["docter", "doctor", "recital"]


def test_a_word_that_a_memory_has_is_looked_for_as_it_is_until_that_memory_is_gone() -> None:
    index = index_of("my doctor", "my docter", "찌개", "찌게")
    assert index.with_spellings(["docter", "찌게"]) == ["docter", "찌게"]
    for doc in (1, 3):
        index.remove(doc)
    assert index.with_spellings(["docter", "찌게"]) == ["docter", "doctor", "찌게", "찌개"]
    index.add(["docter"], {})
    index.flush()
    assert index.spelling("docter") is None


def test_words_that_come_later_and_those_of_a_loaded_index_are_known() -> None:
    index = index_of("nothing")
    assert index.spelling("docter") is None
    index.add(["doctor"], {})
    index.flush()
    assert index.spelling("docter") == LexicalIndex.from_arrays(index.to_arrays()).spelling("docter") == "doctor"


def test_an_explanation_says_what_was_looked_for_and_numbers_stay() -> None:
    with Memory(":memory:", embedder="none") as memory:
        id = memory.write("My doctor is Elena Marsh, room 4432.").id
        told = memory.explain("Who is my docter?", id)
        assert told.rank == 1 and told.frequencies == {"docter": 0, "doctor": 1} and told.spellings == {"docter": "doctor"}
        assert "No memory has “docter”: “doctor” was looked for, too." in told.verdict
        assert not memory.search("4433")


@pytest.mark.parametrize("pair", [
    "colour color", "favourite favorite", "organise organize", "recognised recognized", "grey gray", "mum mom", "tyre tire",
    "licence license", "neighbour neighbor", "centre center", "analyse analyze", "travelling traveling", "apologise apologize",
    "defence defense"])
def test_british_and_american_english_find_each_other(pair: str) -> None:
    for asked, told in (pair.split(), pair.split()[::-1]):
        assert set(tokens(told)) <= set(index_of(f"the {told} of it").with_spellings(tokens(asked)))
    assert index_of(*pair.split()).with_spellings(tokens(pair)) == tokens(pair)
