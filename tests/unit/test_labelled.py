"Labelled turns, updates and look-alikes: what the companion decides on the development halves stays as good as it was."
import json
from pathlib import Path
from typing import Any

import pytest

from rlm import Memory

DATA = Path(__file__).parents[1] / "data"
LANGUAGES = ("en", "ko")


def lines(name: str, language: str, split: str = "dev") -> list[dict[str, Any]]:
    "The lines of a set in a language, of one split."
    every = map(json.loads, (DATA / f"companion_{name}.jsonl").read_text(encoding="utf-8").splitlines())
    return [line for line in every if (line["language"], line["split"]) == (language, split)]


def ended(old: str, new: str) -> bool:
    "Whether the second sentence ends the memory of the first."
    with Memory(":memory:", embedder="none") as memory:
        first = memory.write(old)
        memory.write(new)
        return memory.get(first.id).valid_to is not None


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_sets_are_as_their_data_sheet_says(language: str) -> None:
    names, splits = ("turns", "updates", "nonconflicts", "sentences"), ("dev", "held")
    sizes = {name: [len(lines(name, language, split)) for split in splits] for name in names}
    assert all(sum(both) >= 100 and 0 <= both[0] - both[1] <= 1 for both in sizes.values()), sizes
    assert {label for t in lines("turns", language) for label in t["label"]} == {"SAVE", "SKIP", "RETRIEVE"}


@pytest.mark.parametrize("language", LANGUAGES)
def test_hardly_anything_is_retired_that_does_not_contradict(language: str) -> None:
    pairs = lines("nonconflicts", language)
    assert sum(ended(p["a"], p["b"]) for p in pairs) <= len(pairs) // 100  # none of 51 and 64; set aside 2 of 50 and none of 64


@pytest.mark.parametrize(("now", "then"), [
    ("I live in Seoul.", "I lived in Busan."), ("I work at Naver.", "I worked at Kakao in 2019."), ("My name is Mina.", "My name was Mia."),
    ("My boss is Ms Yun.", "My boss was Mr Han."), ("나는 서울에 살아.", "나는 부산에 살았어."),
    ("나는 네이버에서 일해.", "나는 카카오에서 일했어.")])
def test_a_state_told_in_the_past_ends_nothing_of_the_present(now: str, then: str) -> None:
    assert not ended(now, then)


@pytest.mark.parametrize(("old", "new"), [
    ("I live in Seoul.", "I moved to Busan."), ("I work at Naver.", "I joined Kakao."), ("나는 서울에 살아.", "나는 부산으로 이사했어."),
    ("My boss is Ms Yun.", "My boss is now Mr Han.")])
def test_a_change_told_in_the_past_ends_what_it_changed(old: str, new: str) -> None:
    assert ended(old, new)


def test_a_memory_that_says_more_than_what_has_ended_is_kept() -> None:
    assert not ended("The evening was lovely. I live in Seoul.", "I moved to Busan.")


@pytest.mark.parametrize(("language", "least"), [("en", 0.80), ("ko", 0.88)])  # .83 and .92; held out .62 and .73, where .85 is wanted
def test_decisions_about_turns_are_as_good_as_they_were(language: str, least: float) -> None:
    counts = {label: [0, 0, 0] for label in ("SAVE", "SKIP", "RETRIEVE")}  # right, wrongly given, missed
    with Memory(":memory:", embedder="none") as memory:
        memory.write_many(["The dentist is on 12 March.", "나는 서울에 살아.", "I like tea."])
        for turn in lines("turns", language):
            decision = memory.companion.decide(turn["text"])
            given = {name for name, on in (("SAVE", decision.save), ("RETRIEVE", decision.retrieve)) if on} or {"SKIP"}
            for label, count in counts.items():
                count[0] += label in given and label in turn["label"]
                count[1] += label in given and label not in turn["label"]
                count[2] += label not in given and label in turn["label"]
    scores = [2 * right / (2 * right + wrong + missed) for right, wrong, missed in counts.values()]
    assert sum(scores) / 3 >= least, scores
