"""A question about a time and nothing else is answered with what was told then; any other question as before."""

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from time import process_time
from zoneinfo import ZoneInfo

import pytest

from rlm import Memory
from rlm.core.clock import ManualClock
from rlm.search.asked_period import asked_period, asks_ahead, asks_for_all, named_days

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
    "What did I do in the second week of March?": "2026-03-08 2026-03-15",
    "What did I do in the last week of April?": "2026-04-24 2026-05-01",
    "What happened at the beginning of the month?": "2026-05-01 2026-05-11",
    "3월 둘째 주에 뭐 했지?": "2026-03-08 2026-03-15",
    "지난달 말에 무슨 일 있었어?": "2026-04-21 2026-05-01",
    "What did I do on Saturday the 9th?": "2026-05-09 2026-05-10",
    "9일 토요일에 뭐 했어?": "2026-05-09 2026-05-10",
    "25일에 뭐 했지?": "2026-04-25 2026-04-26",
    "금요일에 뭐 했더라": "2026-05-15 2026-05-16",
    "지난주 금요일에 뭐 했어?": "2026-05-15 2026-05-16",
    "What's in my notes from March?": "2026-03-01 2026-04-01",
}

COMING = {
    "What do I have today?": "2026-05-20 2026-05-21",
    "What do I need to do today": "2026-05-20 2026-05-21",
    "What's on this week?": "2026-05-18 2026-05-25",
    "What's coming up next week?": "2026-05-25 2026-06-01",
    "What's on tomorrow?": "2026-05-21 2026-05-22",
    "Am I free on Monday?": "2026-05-25 2026-05-26",
    "What's on next week on Tuesday?": "2026-05-26 2026-05-27",
    "What am I doing on the 3rd?": "2026-06-03 2026-06-04",
    "What's planned for the end of the month?": "2026-05-21 2026-06-01",
    "What's on in two weeks?": "2026-06-01 2026-06-08",
    "In the next 3 days, what do I have?": "2026-05-20 2026-05-24",
    "What is due in May?": "2026-05-01 2026-06-01",
    "What will happen in June?": "2026-06-01 2026-07-01",
    "이번 주에 뭐 있어?": "2026-05-18 2026-05-25",
    "오늘 뭐 해?": "2026-05-20 2026-05-21",
    "내일 뭐 해?": "2026-05-21 2026-05-22",
    "모레 뭐 있지?": "2026-05-22 2026-05-23",
    "다음 주 금요일에 뭐 있어?": "2026-05-29 2026-05-30",
    "3일에 뭐 해?": "2026-06-03 2026-06-04",
    "이달 말에 일정 있어?": "2026-05-21 2026-06-01",
    "앞으로 일주일 동안 일정 알려줘": "2026-05-20 2026-05-28",
    "2주 뒤에 뭐 있어?": "2026-06-01 2026-06-08",
    "12월 25일에 뭐 있어?": "2026-12-25 2026-12-26",
}

OTHERS = (
    "When did I last see Omar?", "What do I wear on Friday?", "What do I do on Fridays?",
    "What's next Friday?", "What's the second thing I did?", "내일 누구 만나?",
    "What did Omar do last month?", "Did I pay the rent last month?", "What happened to my bike in March?", "What did I do?",
    "무슨 일 있었어?",
    "Who did I meet on Friday?", "May I have something?", "지난달 월세 얼마였어?",
    "작년에 어디 살았어?", "What happened between January and March?", "무슨 요일이야", "How is it going?",
    "What happened on 30 February?", "What happened in 2027?", "What did I do " + "very " * 30 + "yesterday?", "")


@pytest.mark.parametrize("question", [*PERIODS, *COMING])
def test_a_period_is_read(question: str) -> None:
    found = asked_period(question, NOW)
    assert found is not None and f"{found[0]:%Y-%m-%d} {found[1]:%Y-%m-%d}" == (PERIODS | COMING)[question]
    assert asks_ahead(question) == (question in COMING)


@pytest.mark.parametrize(("text", "days"), [
    ("Dentist on the 12th at 3 pm.", ["06-12"]), ("Wei's birthday party is on June 5.", ["06-05"]), ("Lunch with Ana tomorrow.", ["05-21"]),
    ("Standup moved to Friday.", ["05-22"]), ("Yoga on Friday at six", ["05-22"]), ("I had yoga on Friday.", []),
    ("We talked on Friday.", []), ("School is closed on the 8th.", ["06-08"]),
    ("The pool opens next week.", ["05-25"]),
    ("치과 예약 12일 오후 3시", ["06-12"]), ("6월 5일 웨이 생일 파티", ["06-05"]), ("내일 아나랑 점심", ["05-21"]),
    ("금요일에 요가 했다", []),
    ("금요일 6시 요가", ["05-22"]), ("다음 주에 수영장 연다", ["05-25"]), ("I like yoga.", []), ("Born on 30 February.", []),
    ("The rent rises next year.", []),
    ("Mum stays from Thursday till Sunday.", ["05-21", "05-24"]),
    ("다음 주 화요일 3시 치과", ["05-26"]),
    ("이번 주말에 김장한다", ["05-23"])])
def test_the_days_that_a_text_names(text: str, days: list[str]) -> None:
    assert [f"{start:%m-%d}" for start, _ in named_days(text, NOW)] == days


@pytest.mark.parametrize("piece", ["1일 ", "the 3rd ", "on friday ", "in the ", "every monday ", "월요일마다 "])
def test_of_a_long_text_the_beginning_is_read(piece: str) -> None:
    begun = process_time()
    named_days(piece * 50_000, NOW, period=(NOW, NOW))
    assert process_time() - begun < 1


def test_what_was_planned_then_stands_below_what_happened_then() -> None:
    with Memory(":memory:", embedder="none", clock=ManualClock("2026-05-20T15:00:00Z")) as memory:
        for text in ("Dentist on Friday at 3.", "Had pancakes with the kids.", "다음 주에 이사해."):
            memory.write(text, valid_from="2026-05-19")
        found = memory.search("What did I do yesterday?")
    assert len(found) == 3 and found[0].text == "Had pancakes with the kids."


PLANS = (("2026-05-02", "Dentist on 26 May at 3 pm."), ("2026-05-18", "Yoga on Friday at six."), ("2026-05-19", "Lunch with Ana tomorrow."),
         ("2026-05-19", "I had soup on Friday."),
         ("2026-05-20", "Off work from next Monday, all of next week."),
         ("2025-02-03", "Choir every Thursday."), ("2025-02-03", "매주 토요일 수영"),
         ("2026-05-25", "Flight to Oslo at noon."), ("2026-05-01", "I like the sea."))


def planned(emb: str, question: str) -> list[str]:
    with Memory(":memory:", embedder=emb, clock=ManualClock("2026-05-20T15:00:00Z")) as memory:
        for day, text in PLANS:
            memory.write(text, valid_from=day)
        found = memory.search(question)
    return [h.text.split()[0] for h in found if h.placed_by]


@pytest.mark.parametrize(("question", "first"), [
    ("What's on next week?", ["Dentist", "Flight", "Off", "Choir", "매주"]), ("What do I have today?", ["Lunch"]),
    ("What's on Friday?", ["Yoga"]),
    ("What's on tomorrow?", ["Choir"]),
    ("다음 주에 뭐 있어?", ["Dentist", "Flight", "Off", "Choir", "매주"]), ("금요일에 일정 있어?", ["Yoga"]),
    ("What did I do in the first week of May?", ["I", "Dentist"])])
def test_what_is_to_come_is_found_by_the_days_that_texts_name(question: str, first: list[str]) -> None:
    assert sorted(planned("none", question)) == sorted(first)


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


@pytest.mark.parametrize("question", [
    "What do you know about me?", "Tell me everything you remember", "What have I told you?", "What's new?", "Show me my latest notes",
    "What did I tell you last?", "나에 대해 뭘 알아?", "기억하는 거 다 말해 줘", "최근에 뭐라고 했지?", "내가 뭐라고 했었지?"])
def test_a_question_for_all_is_answered_with_what_was_told_last(question: str) -> None:
    assert asks_for_all(question)
    with Memory(":memory:", embedder="none") as memory:
        ids = [memory.write(text).id for text in ("I don't eat meat.", "Ana collects records.", "나는 배멀미를 해.")]
        found = memory.search(question, k=2)
        assert [h.id for h in found] == ids[:0:-1] and {h.placed_by for h in found} == {"was told last, where all is asked for"}
        assert memory.explain(question, ids[2]).rank == 1


@pytest.mark.parametrize("question", [
    "What do you know about Omar?", "When did I last see Omar?", "What did Ana tell me?", "All the records?", "How is it going?", "",
    "Which notes mention boats?", "오마르에 대해 뭘 알아?", "마지막으로 언제 뛰었지?", "다 먹었어?",
    "new note", "last notes", "최근 메모", "Do you know the gate code?", "What did I say about tea?"])
def test_a_question_that_names_a_thing_is_not_for_all(question: str) -> None:
    assert not asks_for_all(question)
