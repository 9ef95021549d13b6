"""A turn that asks not to be kept is not, and one that takes back the turn before makes it disputed; look-alikes do neither."""

from collections.abc import Iterator

import pytest

from rlm import Memory
from rlm.companion.policy import UNKEPT, MemoryPolicy
from rlm.core.clock import ManualClock
from rlm.service.proposals import open_proposals


@pytest.fixture
def memory() -> Iterator[Memory]:
    with Memory(":memory:", embedder="none", clock=ManualClock("2026-05-01T09:00Z")) as memory:
        yield memory


@pytest.mark.parametrize("turn", [
    "my new address is 14 Harbour Street, but don't store this please", "between us and don't save that: I'm interviewing at Monzo",
    "Off the record, I live in Leeds.", "I live in Leeds. Please do not remember it.", "나 다음 달에 퇴사해, 이건 저장하지 마",
    "이건 기록하지 말아줘. 나는 간호사야"])
def test_what_asks_not_to_be_kept_is_not(memory: Memory, turn: str) -> None:
    assert memory.companion.observe(turn, session="s").memory is None
    assert memory.remember([turn, "I live in Bath."]).proposed[0].text == "I live in Bath.", "the control"
    assert len(memory.list()) == 1


@pytest.mark.parametrize("turn", [
    "I live in Leeds and I don't keep this kind of pet.", "My phone doesn't save that format, I live in Leeds.",
    "I live in Leeds, we never store it outside.", "나는 부산에 살아, 동생은 기록을 안 해", "나는 부산에 살아. 사진은 저장 안 했어"])
def test_what_is_not_kept_elsewhere_asks_for_nothing(turn: str) -> None:
    assert MemoryPolicy().decide(turn).reason != UNKEPT


@pytest.mark.parametrize(("told", "taken", "question"), [
    ("I have a yacht and I have three cats.", "lol I was joking about the yacht", "Do I have a yacht?"),
    ("I live in Alaska.", "just kidding haha", "Where do I live?"), ("I live in Alaska.", "I made that up", "Where do I live?"),
    ("나는 하와이에 살아", "농담이야ㅋㅋ", "나 어디 살아?"), ("나는 하와이에 살아", "뻥이야", "나 어디 살아?")])
def test_the_turn_before_is_disputed_when_it_was_a_joke(memory: Memory, told: str, taken: str, question: str) -> None:
    kept = memory.companion.observe(told, session="s").memory
    assert kept is not None
    done = memory.companion.observe(taken, session="s")
    assert [p.memory.id for p in done.proposed] == [kept.id] and "disputed]" in memory.context(question).text
    assert memory.get(kept.id).text == told, "a person decides"


def test_what_is_told_behind_the_joke_is_kept(memory: Memory) -> None:
    memory.companion.observe("I live in Alaska.", session="s")
    done = memory.companion.observe("Just kidding! I live in Denver.", session="s")
    assert done.memory is not None and len(done.proposed) == 1


@pytest.mark.parametrize(("between", "taken"), [
    ("ok thanks", "just kidding"), ("I wonder what to eat", "농담이야"), (None, "I was joking about my boss"),
    (None, "He was just joking with Tom, I live here."), (None, "She made it up to me."),
    (None, "동생이 농담을 좋아해"), (None, "Make it up to him!")])
def test_only_the_turn_before_is_taken_back(memory: Memory, between: str | None, taken: str) -> None:
    memory.companion.observe("I live in Alaska.", session="s")
    if between:
        memory.companion.observe(between, session="s")
    assert not memory.companion.observe(taken, session="s").proposed and not open_proposals(memory.reader)
