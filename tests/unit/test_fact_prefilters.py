"One pattern finds what all English wordings find in turn, and a fact is compared with all that it may end."
import json
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from rlm import Memory
from rlm.companion.statement import english_wording, relation_patterns
from rlm.companion.supersession import ends
from rlm.core.text import split_sentences
from rlm.store.facts import Fact

HERE = Path(__file__).parents[1] / "data"
FILES = ("companion_sentences", "companion_updates", "companion_turns", "korean_pairs", "lives", "mixed_lives")


def strings(value: object) -> Iterator[str]:
    "All texts within a JSON value."
    if isinstance(value, str):
        yield value
    for part in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from strings(part)


@pytest.fixture(scope="module")
def sentences() -> list[str]:
    "Sentences of the labelled files, each once."
    lines = [line for name in FILES for line in (HERE / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()[:150]]
    texts = {text for line in lines for text in strings(json.loads(line)) if len(text) <= 400}
    return sorted({sentence for text in texts for sentence in split_sentences(text)})


def pieces(sentence: str) -> Iterator[str]:
    "What follows each word of a sentence: every predicate that it can have is among them."
    words = sentence.replace("’", "'").rstrip(" .!?").split(" ")
    yield from (" ".join(words[n:]) for n in range(len(words)))


def first_by_trying(predicate: str) -> tuple[str, str, str] | None:
    "The first English wording that leaves a value, all tried in turn."
    for w in relation_patterns("en"):
        if (m := w.pattern.match(predicate)) and (value := predicate[m.end():].strip()):
            return w.relation, w.sense, value
    return None


def test_one_pattern_finds_the_english_wording_that_all_of_them_find_in_turn(sentences: list[str]) -> None:
    found = 0
    for sentence in sentences:
        for piece in pieces(sentence):
            lower = piece[:1].lower() + piece[1:]
            quick = english_wording(lower)
            assert (quick and (quick[0].relation, quick[0].sense, quick[1])) == first_by_trying(lower), lower
            found += quick is not None
    assert found > 200  # the comparison compares something


def test_a_fact_is_compared_with_all_that_it_can_end_or_be_ended_by() -> None:
    flags = [(s, n, e) for s in (False, True) for n in (False, True) for e in (False, True)]
    at = datetime(2026, 1, 1, tzinfo=UTC)

    def fact(flag: tuple[bool, bool, bool], value: str) -> Fact:
        return Fact(1, 0, "Jo", "like", value, "jo", "like", value, *flag, alone=True, valid_from=at)
    left_out = 0
    with Memory(":memory:", embedder="none") as memory:
        seq, facts = memory.write("Jo likes rain.").seq, memory.ctx.storage.facts
        for old in (fact(flag, value) for flag in flags for value in ("rain", "snow", "")):
            facts.put(seq, "default", [old])
            for new in (fact(flag, value) for flag in flags for value in ("rain", "snow", "")):
                found = facts.related("default", new)
                if ends(new, old) or ends(old, new):
                    assert found and facts.related("default", new, [old.value_key]), (old, new)
                left_out += not found
    assert left_out > 100
