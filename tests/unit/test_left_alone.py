"""What is said of somebody else's event, or supposed, ends nothing of one's own; a correction is corrected again."""

import pytest

from rlm import Memory


def past_of(*turns: str) -> list[str]:
    with Memory(":memory:", embedder="none") as memory:
        for n, turn in enumerate(turns):
            memory.add_conversation([{"id": f"t{n}", "speaker": "D", "text": turn}], session="a")
        return [h.past for h in memory.search(turns[0], k=10, min_score=0) if h.id == "t0"]


@pytest.mark.parametrize("turns", [
    ("The meeting is on Monday.", "My sister's meeting is on Tuesday, not Monday."),
    ("결혼식은 9월 20일이야.", "친구 결혼식은 10월로 미뤄졌대."),
    ("내 비행기는 7시야.", "지은이 비행기는 7시가 아니라 9시래."), ("수술은 3월 2일이야.", "엄마 수술은 4월로 미뤄졌어."),
    ("나 수원에 살아.", "서울에 살면 매주 뮤지컬 볼 텐데."), ("나 수원에 살아.", "제주에 살면 매일 바다 볼 텐데.")])
def test_it_is_still_true(turns: tuple[str, str]) -> None:
    assert past_of(*turns) == [""]


@pytest.mark.parametrize("turns", [
    ("The meeting is on Monday.", "No, not Monday, Tuesday."), ("The meeting is on Monday.", "The meeting is on Tuesday, not Monday."),
    ("시험은 월요일이야.", "학교 시험은 화요일로 미뤄졌어."), ("내 비행기는 7시야.", "내 비행기는 7시가 아니라 9시야.")])
def test_it_is_over(turns: tuple[str, str]) -> None:
    assert past_of(*turns)[0].startswith("no longer true")


@pytest.mark.parametrize("last", ["No wait, it was Monday after all.", "No wait, it was Monday."])
def test_a_correction_is_corrected_again(last: str) -> None:
    assert past_of("The meeting is on Monday.", "No, not Monday, Tuesday.", last) == [""]
    assert past_of("회의는 월요일이야.", "아니 월요일 말고 화요일.", "아 아니다, 월요일 맞아.") == [""]
