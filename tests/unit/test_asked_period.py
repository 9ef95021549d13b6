"""A question about a time and nothing else is answered with what was told then; any other question as before."""

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest

from rlm import Memory
from rlm.core.clock import ManualClock
from rlm.search.asked_period import asked_period

NOW = datetime(2026, 5, 20, 15, tzinfo=UTC)  # a Wednesday

PERIODS = {
    "What did we do yesterday?": "2026-05-19 2026-05-20",
    "What happened last night?": "2026-05-19 2026-05-20",
    "what's been happening this week?": "2026-05-18 2026-05-25",
    "What did I write in March?": "2026-03-01 2026-04-01",
    "Summarize last week": "2026-05-11 2026-05-18",
    "Tell me what happened in 2025.": "2025-01-01 2026-01-01",
    "What did I tell you on 3 May?": "2026-05-03 2026-05-04",
    "Recap of this month please": "2026-05-01 2026-06-01",
    "What was I doing a week ago?": "2026-05-11 2026-05-18",
    "What have I been up to in the last 3 days?": "2026-05-17 2026-05-21",
    "what did i do on friday": "2026-05-15 2026-05-16",
    "How was last weekend?": "2026-05-16 2026-05-18",
    "What happened in December?": "2025-12-01 2026-01-01",
    "What did we discuss in our chats last week?": "2026-05-11 2026-05-18",
    "어제 무슨 얘기 했지?": "2026-05-19 2026-05-20",
    "이번 주에 뭐 했어?": "2026-05-18 2026-05-25",
    "지난주 요약해줘": "2026-05-11 2026-05-18",
    "3일 전에 뭐 했어?": "2026-05-17 2026-05-18",
    "작년에 무슨 일이 있었지?": "2025-01-01 2026-01-01",
    "5월 3일에 뭐 했어?": "2026-05-03 2026-05-04",
    "오늘 내가 뭐라고 했지?": "2026-05-20 2026-05-21",
    "두 달 전에 무슨 일 있었어?": "2026-03-01 2026-04-01",
    "저번 달에 나 뭐 했더라?": "2026-04-01 2026-05-01",
    "2월에 있었던 일 알려줘": "2026-02-01 2026-03-01",
}

OTHERS = (
    "What do I have today?", "What's on this week?", "이번 주에 뭐 있어?", "오늘 뭐 해?", "내일 뭐 해?", "When did I last see Omar?",
    "What did Omar do last month?", "Did I pay the rent last month?", "What happened to my bike in March?", "What did I do?",
    "무슨 일 있었어?",
    "Who did I meet on Friday?", "What is due in May?", "What will happen in June?", "May I have something?", "지난달 월세 얼마였어?",
    "작년에 어디 살았어?", "What happened between January and March?", "What do I need to do today", "무슨 요일이야", "How is it going?",
    "What happened on 30 February?", "What happened in 2027?", "What did I do " + "very " * 30 + "yesterday?", "")


@pytest.mark.parametrize("question", PERIODS)
def test_a_period_is_read(question: str) -> None:
    found = asked_period(question, NOW)
    assert found is not None and f"{found[0]:%Y-%m-%d} {found[1]:%Y-%m-%d}" == PERIODS[question]


@pytest.mark.parametrize("question", OTHERS)
def test_what_asks_for_more_than_a_period_names_none(question: str) -> None:
    assert asked_period(question, NOW) is None


def test_days_begin_in_the_readers_zone() -> None:
    found = asked_period("어제 뭐 했어?", datetime(2026, 5, 20, 16, tzinfo=UTC), ZoneInfo("Asia/Seoul"))  # the 21st in Seoul
    assert found == (datetime(2026, 5, 19, 15, tzinfo=UTC), datetime(2026, 5, 20, 15, tzinfo=UTC))


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[Memory]:
    with Memory(tmp_path / "memory.db", embedder="none", clock=ManualClock("2026-05-20")) as opened:
        for text, day in (("I went to Lisbon with Omar.", "2026-04-10"), ("I ran a half marathon in Bath.", "2026-05-03"),
                          ("I finished reading Middlemarch.", "2026-05-17"), ("손목을 다쳤다.", "2026-02-14"), ("Noted.", "2026-04-11")):
            opened.write(text, valid_from=day)
        yield opened


def test_what_was_told_then_stands_first_and_says_why(memory: Memory) -> None:
    assert [h.text for h in memory.search("What did I do last month?")] == ["I went to Lisbon with Omar."]
    assert [h.text for h in memory.search("2월에 무슨 일 있었어?")] == ["손목을 다쳤다."]
    best = memory.search("What did I do in May?")
    assert {h.text for h in best[:2]} == {"I ran a half marathon in Bath.", "I finished reading Middlemarch."}
    assert best[0].placed_by == "was told in the time that is asked for" and best.confident
    assert memory.explain("What did I do last month?", best[0].id).rank is None
    assert "Lisbon" in str(memory.context("What did I do last month?", tokens=100))


def test_other_questions_filters_and_empty_periods_are_as_before(memory: Memory) -> None:
    assert memory.search("Who went to Lisbon last month?")[0].placed_by == ""
    assert not any(h.placed_by for h in memory.search("What did I do last month?", since="2026-05-01"))
    assert not memory.search("What happened in March?")
    assert len(memory.search("What did I do this year?", k=2)) == 2
