"Facts are read quickly because patterns that can't match are not tried. What is skipped would not have matched."
import json
import re
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from rlm import Memory
from rlm.companion import english, fact_extraction, korean
from rlm.companion.english import Phrases, Words, grammar
from rlm.companion.fact_extraction import correction
from rlm.companion.statement import (
    RelationPattern,
    alternatives,
    english_wording,
    korean_wordings,
    language_data,
    relation_patterns,
)
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


def test_the_index_of_syllables_finds_every_korean_wording(sentences: list[str]) -> None:
    found = 0
    for sentence in sentences:
        if not re.search("[가-힣]", sentence):
            continue
        for piece in pieces(sentence):
            tried = [(w, m["v"]) for w in relation_patterns("ko") if (m := w.pattern.match(piece))]
            assert [(w, m["v"]) for w, m in korean_wordings(piece)] == tried, piece
            found += len(tried)
    assert found > 200


@pytest.mark.parametrize(("pattern", "required"), [
    (r"a(?:b|c)?d", {"a"}), (r"(?:x|y)z?", {"x", "y"}), (r"(?P<v>.+?)(?:을|를)? ?(?:키워|길러)", {"키워", "길러"}), (r"\d+|살", set()),
    (r"(?!no)go+", {"g"}), (r"(?P<v>.+)(?:으로|로)? ?(?:이사(?! ?(?:가(?!셨|서)|간))|전입)", {"이사", "전입"})])
def test_a_pattern_tells_what_its_matches_hold(pattern: str, required: set[str]) -> None:
    assert RelationPattern("r", False, "says", re.compile(pattern)).required == required
    assert alternatives(f"{pattern}|(?:one|two)")[-1] == "(?:one|two)"


def test_no_correction_of_a_bare_value_is_skipped(sentences: list[str]) -> None:
    listed = [f"{opening}{bare}" for opening in ("", "No, ", "Actually, wait, ", "oh ", "아니, ") for bare in (
        "I meant Subin.", "it should be Subin", "Wait no, it's 39", "The clinic rang, it's Friday now.", "make it Tuesday", "6th floor",
        "It's spelled Kathryn", "Jon with an h", "병원에서 전화 왔는데 금요일로 바뀌었대", "금요일로 해줘", "아니 6층이야",
        "수빈이라고 써요",
        "Oboe, I mean.", "soya milk", "오보에", "Scratch that.", "그건 작년 얘기야",
        "Not the olives though", "올리브는 빼고",
        "Correction: 9:40", "not Tuesday, Wednesday", "화요일 말고 수요일이야", "SHOULD BE FINE", "Tony")]
    found = 0
    for sentence in [*sentences, *listed]:
        said = sentence.strip()
        named = (*fact_extraction._BARE_WORDS, *fact_extraction._TAKEN)
        patterns = [fact_extraction._BARE, *fact_extraction._CORRECTIONS, *(pattern for *_, pattern in named)]
        tried = any(pattern.match(said) for pattern in patterns)
        assert (correction(sentence) is not None) == tried, sentence
        found += tried
    assert found > 40


def test_no_pattern_of_what_is_asked_is_skipped(sentences: list[str]) -> None:
    asked = [line.split("\t")[0] for name in ("asked_plainly", "asked_lately") for line in
             (HERE / f"{name}.tsv").read_text(encoding="utf-8").splitlines()]
    asked += ["엄마 어디 살아?", "동생 사는 곳", "언니 다니는 회사", "내가 다니던 데", "무슨 알러지 있어?", "나 무슨 일 해?",
              "민아는 어디서 일해?", "지수는 알레르기 뭐 있어?", "Where’s work, what do I do?", "What is Mina allergic to?",
              "우리 집 어디야?", "내 직장은 어디?"]
    found = 0
    for question in [*sentences, *asked]:
        for gate, patterns in ((fact_extraction._OF_SELF, fact_extraction._ASKED), (fact_extraction._OF_OTHERS, fact_extraction._ASKED_OF)):
            if any(pattern.search(question) for _, pattern in patterns):
                assert gate.search(question), question
                found += 1
        if places := [relation for relation, pattern in korean._asked_places() if pattern.match(question)]:
            assert {relation for _, relation in korean.asked_of_near(question)} >= set(places), question
            found += 1
    assert found > 15


def test_what_is_not_told_as_true_is_found_at_the_beginning_or_anywhere(sentences: list[str]) -> None:
    for n, language in enumerate(("en", "ko")):
        whole = re.compile("|".join(language_data(language)["untrue"]), re.I)
        first, anywhere = fact_extraction._UNTRUE[n]
        assert first.pattern.count("^") >= 4 and "^" not in anywhere.pattern
        for sentence in sentences:
            assert bool(first.match(sentence) or anywhere.search(sentence)) == bool(whole.search(sentence)), sentence


def test_no_english_word_list_is_skipped_where_it_has_a_word(sentences: list[str]) -> None:
    g, hits = grammar(), 0
    phrases = {"adverb": g.adverb, "closer": g.closer, "ended": g.ended, "no longer": english._NO_LONGER, "not that": english._NOT_THAT}
    for sentence in sentences:
        starts = english.word_starts(sentence)
        for words in (g.unsure, g.reported):
            every = Words(starts or frozenset({""}), words.words, words.patterns)  # its cues are there: it always looks
            assert words.within(sentence, starts) == every.within(sentence, starts or every.cues), sentence
        for name, p in phrases.items():
            m = p.pattern.search(sentence)
            assert (p.search(sentence, starts) is None) == (m is None), (name, sentence)
            hits += m is not None
    assert hits > 200
    assert Phrases(frozenset({"none"}), g.ended.pattern).search("I quit", english.word_starts("I quit")) is None  # cues do decide


def test_sentences_of_change_begin_with_a_verb_of_change(sentences: list[str]) -> None:
    patterns = (english._LEFT_JOB, english._GAVE_UP, english._CHANGED, *english._SWAPPED, english._COUNT, english._PREFERS)
    for sentence in sentences:
        for piece in pieces(sentence):
            if any(p.match(piece) for p in patterns):
                assert piece.partition(" ")[0].lower() in english._CHANGE_VERBS, piece


def test_a_pattern_whose_first_word_is_not_known_is_refused() -> None:
    with pytest.raises(ValueError, match=r"any \?more"):
        english.read_words("if|any ?more")
    assert english.read_words("wants? to|rumou?rs?").cues == {"want", "rumo"}


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
