"""A question about the past finds what has ended since, first what was true at the time that it names."""
from datetime import UTC, datetime

import pytest

from rlm import Memory
from rlm.core.clock import ManualClock
from rlm.search.query_features import asks_before, past_moment

SAID = [("I live in London.", "2020-01-03"), ("I moved to Leeds.", "2022-01-03"), ("I moved to Bristol.", "2025-06-10"),
        ("I work at Acme.", "2024-02-05"), ("I started at Globex.", "2025-08-05"), ("Jonas lives in Oslo.", "2024-05-05"),
        ("Jonas moved to Bergen.", "2025-05-05"), ("My sister is a nurse.", "2021-01-01"), ("My sister is a teacher now.", "2025-01-01"),
        ("제 동생은 부산에 살아요.", "2023-01-01"), ("동생이 서울로 이사했어요.", "2025-02-01"), ("The kettle is blue.", "2025-03-01")]


@pytest.fixture
def memory() -> Memory:
    found = Memory(":memory:", embedder="none", clock=ManualClock("2026-01-05"))
    for text, day in SAID:
        found.write(text, valid_from=f"{day}T00:00:00Z")
    return found


@pytest.mark.parametrize(("question", "first"), [
    ("Where did I live in 2021?", "I live in London."), ("Where did I live in March 2025?", "I moved to Leeds."),
    ("Where did I live in December 2025?", "I moved to Bristol."), ("Where do I live?", "I moved to Bristol."),
    ("Where did I work in 2024?", "I work at Acme."), ("Where do I work?", "I started at Globex."),
    ("Where did Jonas live in 2024?", "Jonas lives in Oslo."), ("Where does Jonas live?", "Jonas moved to Bergen."),
    ("What was my sister's job in 2022?", "My sister is a nurse."), ("2024년에 동생은 어디 살았어?", "제 동생은 부산에 살아요."),
    ("동생은 어디 살아?", "동생이 서울로 이사했어요."),
    ("Where did I live last year?", "I moved to Bristol."), ("Where did I live two years ago?", "I moved to Leeds."),
    ("Where did I work last month?", "I started at Globex."), ("Last year in May, where did I work?", "I work at Acme."),
    ("Where did Jonas live a year ago?", "Jonas lives in Oslo."), ("재작년에 동생은 어디 살았어?", "제 동생은 부산에 살아요."),
    ("작년 1월에 동생은 어디 살았어?", "제 동생은 부산에 살아요."), ("1년 전에 어디서 일했지?", "I work at Acme."),
    ("지난달에 어디서 일했지?", "I started at Globex."), ("한 달 전에 다니던 회사가 어디야?", "I started at Globex.")])
def test_what_was_true_at_the_time_is_first(memory: Memory, question: str, first: str) -> None:
    assert memory.search(question)[0].text == first


def test_what_has_ended_is_found_by_a_question_about_the_past_only(memory: Memory) -> None:
    old = {"I live in London.", "I moved to Leeds."}
    assert old & {h.text for h in memory.search("Where did I live before?")}
    assert not old & {h.text for h in memory.search("Where do I live?")}
    assert "I moved to Leeds. (no longer true: residence Leeds" in memory.context("Where did I live in 2023?").text


@pytest.mark.parametrize("question", ["Where did I live before?", "Where did I live before Leeds?", "이사하기 전 집은?"])
def test_what_is_explained_is_what_a_question_about_the_past_found(memory: Memory, question: str) -> None:
    for hit in memory.search(question):
        told = memory.explain(question, hit.id)
        assert (told.rank, told.held_back_by) == (hit.rank, ()) and told.verdict.startswith(f"Found at rank {hit.rank},")


def test_a_question_about_the_past_is_known_by_its_words_or_by_its_tense_and_a_year() -> None:
    past = "Where did I work last month?", "작년에 어디 살았어?", "지난달에 어디서 일했지?", "Where did I live before?", \
        "What was the rent in 2024?", "2024년에 어디 살았어?", "이사하기 전 집은?", "대학 시절 별명은?"
    assert all(map(asks_before, past))
    for question in ("Where do I live?", "What is the plan for 2027?", "What did she say?", "2027년 계획이 뭐야?", "작년 보고서는?"):
        assert not asks_before(question), question


def test_the_moment_of_a_question_is_the_end_of_what_it_names_if_that_is_over() -> None:
    now = datetime(2026, 1, 5, tzinfo=UTC)
    told = {"last month": "2025-12-31", "last week": "2026-01-04", "yesterday": "2026-01-04", "three weeks ago": "2025-12-15",
            "a month ago": "2025-12-05", "지난주": "2026-01-04", "저번 달": "2025-12-31", "작년": "2025-12-31",
            "재작년": "2024-12-31",
            "작년 5월": "2025-05-31", "일 주일 전": "None", "1주일 전": "2025-12-29", "어제": "2026-01-04",
            "지난주말": "2026-01-04", "3000 years ago": "None", "last": "None"}
    assert {text: str(past_moment(text, now))[:10] for text in told} == told
    ends = {"in March 2025": "2025-03-31", "in 2024": "2024-12-31", "2023년 12월에": "2023-12-31", "in 2026": "None", "in May": "None"}
    assert {text: str(past_moment(text, now))[:10] for text in ends} == ends
