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
    ("My boss is Ms Yun.", "My boss is now Mr Han."), ("I'm a nurse.", "I'm a midwife now."), ("I'm single.", "I'm married now."),
    ("I have two cats.", "I have three cats now."), ("나는 간호사야.", "나 이제 간호사 아니고 약사야."), ("나는 솔로야.", "나 결혼했어."),
    ("고양이가 두 마리야.", "이제 고양이가 세 마리야."), ("우리 팀장은 김민수야.", "팀장이 박지훈으로 바뀌었어."),
    ("회의는 3시야.", "회의 4시로 바뀌었어."), ("치과 예약은 목요일이야.", "치과 예약을 금요일로 옮겼어."),
    ("내 차는 소나타야.", "소나타 팔고 테슬라 샀어."), ("내 생일은 5월 3일이야.", "내 생일은 5월 5일이야, 잘못 말했어."),
    ("내가 제일 좋아하는 색은 파란색이야.", "이제 제일 좋아하는 색은 초록색이야.")])
def test_a_change_told_in_the_past_ends_what_it_changed(old: str, new: str) -> None:
    assert ended(old, new)


@pytest.mark.parametrize(("old", "new"), [
    ("The meeting is at 3 pm.", "The meeting is on Monday."), ("I work for Siemens.", "I started at the gym on Monday."),
    ("I have two cats.", "My sister has three cats."), ("I'm a nurse.", "I'm a mother now."), ("I'm single.", "Tom is married now."),
    ("회의는 3시야.", "회의는 월요일이야."), ("우리 팀장은 김민수야.", "우리 팀장은 천재야."), ("나는 의사야.", "내 동생은 약사야."),
    ("나는 솔로야.", "언니가 결혼했어."), ("치과는 목요일이야.", "회의를 금요일로 옮겼어."),
    ("고양이가 두 마리 있어.", "강아지가 세 마리야.")])
def test_a_day_is_no_hour_and_a_trait_no_name(old: str, new: str) -> None:
    assert not ended(old, new)


def test_a_memory_that_says_more_than_what_has_ended_is_kept() -> None:
    assert not ended("The evening was lovely. I live in Seoul.", "I moved to Busan.")


@pytest.mark.parametrize(("language", "least"), [("en", 0.92), ("ko", 0.95)])  # .95 and .99
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
