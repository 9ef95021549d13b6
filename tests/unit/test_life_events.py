"""A couple that parts and a death end what was true of them, however they are told; what only sounds like it ends nothing."""
from collections.abc import Iterator, Sequence

import pytest

from rlm import Memory
from rlm.companion.rejection import RejectedValue
from rlm.core.clock import ManualClock

OVER = (  # said before, said later
    ("My husband is Erik.", "Erik and I broke up."), ("My husband is Erik.", "We got divorced."), ("My husband is Erik.", "I left Erik."),
    ("My husband is Erik.", "Erik and I separated in March."), ("Marcus is my boyfriend.", "Marcus and I broke up."),
    ("Marcus is my boyfriend.", "Marcus dumped me."), ("I'm dating Marcus.", "Marcus and I are no longer together."),
    ("I have a boyfriend, Marcus.", "We broke up."), ("I'm engaged to Sam.", "We called off the engagement."),
    ("I'm single.", "I have a boyfriend now."), ("I'm engaged to Sam.", "Sam and I got married in May."),
    ("내 남자친구는 준호야", "준호랑 헤어졌어"), ("내 남편은 준호야", "우리 이혼했어"),
    ("준호는 내 남자친구야", "남자친구랑 헤어졌어"),
    ("남친 이름은 준호야", "저희 헤어졌어요"), ("나 준호랑 사귀고 있어", "준호가 날 찼어"),
    ("Marta lives in Porto.", "Marta died in April."), ("Marta is 84.", "Marta died in hospital after a long illness."),
    ("Marta needs her pills at eight.", "Sadly Marta passed away this morning."), ("My mum lives in Leeds.", "We lost Mum in April."),
    ("Rex is our dog.", "We lost Rex."), ("Rex needs his tablets twice a day.", "We had to put Rex down."),
    ("Rex is 12.", "We had Rex put to sleep in March."), ("아버지는 대구에 사셔", "아버지가 4월에 돌아가셨어요"),
    ("아버지는 84살이야", "아버지께서 오랜 병으로 세상을 떠나셨어요"),
    ("두부는 열 살이야", "두부가 3월에 무지개다리를 건넜어요"),
    ("두부는 우리 강아지야", "두부를 하늘나라로 보냈어"),
    ("민수는 대구에 살아", "민수 부산으로 이사했대"), ("동생은 대구에 살아", "동생이 부산으로 이사 갔대"),
    ("나는 수원에 살아", "청주로 거처를 옮겼어"),
    ("My brother Minho lives in Osaka.", "민호 도쿄로 이사했대."))
APART = (
    ("My husband is Erik.", "Leo and I broke up ten years ago."), ("My husband is Erik.", "My sister and her husband got divorced."),
    ("My husband is Erik.", "Erik and I broke up the chocolate."), ("My husband is Erik.", "Erik left me a message."),
    ("Erik is my brother.", "We broke up."), ("My sister's husband is Erik.", "We broke up."), ("I work at Globex.", "I left Erik."),
    ("내 남편은 준호야", "동생이 이혼했어"), ("준호는 내 동생이야", "준호가 여자친구랑 헤어졌어"),
    ("내 남편은 준호야", "민수랑 다시 만나기로 했어"),
    ("Marta lives in Porto.", "Marta died of laughter."), ("Marta lives in Porto.", "Marta died in the first episode."),
    ("Rex is our dog.", "We lost Rex in the park but he came back."), ("Rex is our dog.", "We lost to Rex on Sunday."),
    ("Marta was born in Porto.", "Marta died in April."), ("두부는 우리 강아지야", "두부 먹고 싶어 죽겠어"),
    ("아버지는 대구에 사셔", "할아버지가 4월에 돌아가셨어요"), ("나는 수원에 살아", "부산으로 이사 갔대"),
    ("나는 수원에 살아", "내가 부산으로 이사 갔대"), ("나는 수원에 살아", "오늘 수원으로 돌아왔어"),
    ("I live in York.", "I'm back in Leeds."))


@pytest.fixture
def memory() -> Iterator[Memory]:
    with Memory(":memory:", embedder="none", clock=ManualClock("2026-05-01T09:00Z")) as memory:
        yield memory


def current(memory: Memory, texts: Sequence[str]) -> list[bool]:
    "Write texts day by day, and say of each whether it holds afterwards as a whole."
    ids = []
    for text in texts:
        memory.clock.advance(days=1)  # type: ignore[attr-defined]
        ids.append(memory.write(text).id)
    memory.clock.advance(days=1)  # type: ignore[attr-defined]
    return [memory.get(id).valid_to is None and not memory.history(id).past for id in ids]


@pytest.mark.parametrize(("before", "later"), OVER)
def test_what_was_true_of_a_couple_or_a_life_is_over(memory: Memory, before: str, later: str) -> None:
    assert current(memory, [before, later]) == [False, True]


@pytest.mark.parametrize(("before", "later"), APART)
def test_what_is_told_of_others_or_of_something_else_ends_nothing(memory: Memory, before: str, later: str) -> None:
    assert current(memory, [before, later]) == [True, True]


@pytest.mark.parametrize("texts", [
    ["My boyfriend is Marcus.", "Marcus and I broke up.", "We're back together."],
    ["내 남자친구는 준호야", "준호랑 헤어졌어", "준호랑 다시 만나"]])
def test_a_couple_that_is_together_again_holds_again(memory: Memory, texts: list[str]) -> None:
    assert current(memory, texts) == [True, False, True]


@pytest.mark.parametrize("texts", [
    ["나 수원 살아.", "나 청주로 이사 갔어.", "나 다시 수원으로 돌아왔어."],
    ["I live in Leeds.", "I moved to York.", "I'm back in Leeds."]])
def test_who_comes_back_lives_where_they_lived_before(memory: Memory, texts: list[str]) -> None:
    assert current(memory, texts) == [False, False, True]
    assert current(memory, ["I'm back in Hull this weekend.", "어제 청주로 내려왔어"]) == [True, True]


def test_an_audit_says_what_of_a_memory_was_past(memory: Memory) -> None:
    old, before = memory.write("I live in Leeds and work at Globex.").id, memory.ctx.clock.now()
    current(memory, ["I moved to York."])
    assert list(memory.audit(query="live").past) == [old] and "no longer true" in str(memory.audit(id=old))
    assert not memory.audit(before, query="live").past and memory.audit(query="live").as_dict()["past"]


def test_a_break_up_that_is_deleted_leaves_the_couple_as_it_was(memory: Memory) -> None:
    old, new = (memory.write(text).id for text in ("My husband is Erik.", "Erik and I broke up."))
    assert memory.get(old).valid_to is not None
    memory.delete(new)
    assert memory.get(old).valid_to is None and not memory.history(old).past


REJECTED = (  # what a person has rejected, the same in other words, and a neighbour
    ("I work at Globex.", ["Globex is my employer.", "나 글로벡스 다녀."], "Globex is a company."),
    ("My sister is Ann.", ["Ann is my sister.", "I have a sister called Ann."], "Ann is my cousin."),
    ("I work at Samsung.", ["나 삼성 다녀"], "나 삼성 폰 써"), ("I'm vegan.", ["나 비건이야"], "나는 채식해"),
    ("I smoke.", ["I'm a smoker.", "나 담배 피워"], "나 담배 안 피워"), ("나 서른두 살이야", ["나 32세야"], "나 33세야"),
    ("My birthday is 4 May.", ["5월 4일이 내 생일이야", "4 May is my birthday."], "6월 4일이 내 생일이야"),
    ("I have a dog named Rex.", ["My dog is called Rex."], "I have a cat named Rex."),
    ("I'm from Gwangju.", ["I was born in Gwangju.", "나 광주 출신이야"], "I live in Gwangju."))


@pytest.mark.parametrize(("wrong", "again", "neighbour"), REJECTED)
def test_a_rejected_value_does_not_come_back_in_other_words(memory: Memory, wrong: str, again: list[str], neighbour: str) -> None:
    memory.companion.reject(text=wrong)
    for text in again:
        with pytest.raises(RejectedValue):
            memory.write(text)
    assert memory.write(neighbour).id
