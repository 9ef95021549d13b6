"One pattern finds what all English wordings find in turn; hints leave no match out; a fact is compared with all that it may end."
import gc
import json
from collections.abc import Iterator
from datetime import UTC, datetime
from itertools import product
from pathlib import Path
from re import _parser  # what it makes of an expression is walked, so that hints are proved and not only tried
from typing import Any

import pytest

from rlm import Memory
from rlm.companion.english import grammar
from rlm.companion.statement import english_wording, relation_patterns
from rlm.companion.supersession import ends
from rlm.core.text import split_sentences
from rlm.core.text.normal_form import LazyPattern
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


def language(tree: Any, most: int = 4096) -> set[str] | None:
    "The ASCII texts, in small letters, that a parsed expression matches; None: very many. A look around matches nothing by itself."
    found = {""}
    for op, of in tree:
        name = str(op)
        if name == "LITERAL":
            each: set[str] | None = {chr(of).lower()} if of < 128 else set()
        elif name == "IN":
            each = chars(of)
        elif name == "BRANCH":
            parts = [language(part) for part in of[1]]
            each = None if None in parts else {s for part in parts for s in part or ()}
        elif name == "SUBPATTERN":
            each = language(of[-1])
        elif name in ("MAX_REPEAT", "MIN_REPEAT"):
            once = language(of[2])
            each = None if once is None or of[1] > 3 else {
                "".join(p) for n in range(of[0], of[1] + 1) for p in product(once, repeat=n)} if len(once) ** of[1] <= most else None
        else:
            each = {""} if name in ("AT", "ASSERT", "ASSERT_NOT") else None
        if each is None or len(found) * len(each) > most:
            return None
        found = {a + b for a in found for b in each}
    return found


def chars(listed: Any) -> set[str] | None:
    "The ASCII characters of a class, in small letters; None: many."
    spans = [(of, of) if str(op) == "LITERAL" else of if str(op) == "RANGE" else (0, 127) for op, of in listed]
    found = {chr(c).lower() for low, high in spans for c in range(low, min(high, 127) + 1)}
    return found if len(found) <= 8 and not any(str(op) == "NEGATE" for op, _ in listed) else None


def holds(tree: Any, words: list[str], before: frozenset[str] = frozenset({""})) -> bool:
    "Whether each ASCII text that a parsed expression matches has one of some words, or there is none; what may stand before it counts."
    run = before
    for op, of in tree:
        name, each = str(op), language([(op, of)])
        again = name in ("MAX_REPEAT", "MIN_REPEAT") and of[0] > 0
        at = {"BRANCH": 1, "ASSERT": 1, "SUBPATTERN": -1}.get(name, 2 if again else None)
        inner = [] if at is None else of[at] if name == "BRANCH" else [of[at]]
        if inner and all(holds(part, words, run) for part in inner):
            return True
        if each is None and again and (once := language(of[2])) is not None:  # as often as it must
            each, run = {""}, frozenset(a + b for a in run for b in once)
        elif each is None or len(run) * len(each) > 4096:
            each, run = each or {""}, frozenset({""})
        run = frozenset(a + b for a in run for b in each)
        if all(any(word in text for word in words) for text in run):
            return True
        if name in ("MAX_REPEAT", "MIN_REPEAT") and language([(op, of)]) is None:
            run = frozenset({""})
    return False


def hinted() -> list[LazyPattern]:
    "Every pattern with hints."
    grammar()
    return [p for p in gc.get_objects() if isinstance(p, LazyPattern) and p.hints is not None]


def test_each_ascii_text_that_a_pattern_with_hints_matches_has_one_of_them() -> None:
    wrong = [p.pattern[:80] for p in hinted() if not holds(_parser.parse(p.pattern, p.flags), list(filter(None, p.hints.split("|"))))]
    assert not wrong and len(hinted()) > 40


def test_a_pattern_with_hints_finds_what_it_finds_without_them(sentences: list[str]) -> None:
    for pattern in hinted():
        plain = pattern.compiled
        assert [bool(pattern.search(s)) for s in sentences] == [bool(plain.search(s)) for s in sentences], pattern.pattern[:80]


def test_the_proof_tells_a_hint_that_does_not_hold() -> None:
    for pattern, words, right in ((r"(?:do|does)n['’]?t", "dont|doesnt|don't|doesn't", True), (r"(?:do|does)n't", "don't", False),
                                  (r"a(?:b|c)?d", "ab|ac|ad", True), (r"a(?:b|c)?d", "ab|ac", False), (r"\d+(?=kg)", "kg", True),
                                  ("안 ?[돼되]", "", True), ("안|no", "", False), (r"x*y", "x", False), (r"(?!x)y", "x", False)):
        assert holds(_parser.parse(pattern), list(filter(None, words.split("|")))) == right, pattern
