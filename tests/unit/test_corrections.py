"Corrections in a chat: the value that a turn takes back is marked where it was said, though no fact was kept of it."

from collections.abc import Iterator

import pytest

from rlm.companion.fact_extraction import alike, correction
from rlm.core.clock import ManualClock
from rlm.service.memory import Memory

MOVERS = ("Omar", "The movers come on Saturday at nine.")


@pytest.fixture
def memory() -> Iterator[Memory]:
    with Memory(":memory:", embedder="none", clock=ManualClock("2026-01-05")) as found:
        yield found


def chat(memory: Memory, *turns: tuple[str, str]) -> list[str]:
    "Store a conversation, and return the ids of its turns."
    said = [{"id": f"c{n}", "speaker": who, "text": text, "time": "2026-01-05"} for n, (who, text) in enumerate(turns)]
    memory.add_conversation(said, session="s")
    return [str(turn["id"]) for turn in said]


@pytest.mark.parametrize(("told", "corrected", "question", "over"), [
    (MOVERS, ("Sena", "No, not Saturday, Sunday."), "When do the movers come?", "come on Saturday at nine (now Sunday at nine)"),
    (MOVERS, ("Sena", "Not Saturday, Sunday."), "When do the movers come?", "come on Saturday at nine (now Sunday at nine)"),
    (MOVERS, ("Sena", "아니, 토요일 말고 일요일이야."), "When do the movers come?", "come on Saturday at nine"),
    (MOVERS, ("Omar", "Sorry, I mean Sunday."), "When do the movers come?", "come on Saturday at nine (now Sunday at nine)"),
    (("Omar", "The movers come on Saturday."), ("Sena", "No, not Saturday, Sunday. And the rent is 950."), "When do the movers come?",
     "come on Saturday (now Sunday)"),
    (("Sena", "The delivery fits into box 12 at the depot."), ("Sena", "No, not 12, 14."), "Which box does the delivery fit into?", "12"),
    (("Sena", "My doctor is Dr. Quispe."), ("Sena", "Oops, I meant Dr. Quiroga."), "Who is Sena's doctor?", "doctor Dr. Quispe"),
    (("Sena", "Rent is 900 euros."), ("Omar", "Not 900, 950."), "How much is the rent?", "is 900 euros (now 950 euros)"),
    (("Sena", "The talk is in room 212."), ("Omar", "No, not 212, 214."), "Where is the talk?", "place room 212 (now room 214)"),
    (("Sena", "The cake arrives with Marek."), ("Omar", "Not Marek, Tomek."), "With whom does the cake arrive?", "Marek (now Tomek)"),
    (("세나", "우리 팀장은 김도윤이야."), ("세나", "아 미안, 김도현이야."), "팀장이 누구야?", "팀장 김도윤"),
    (("세나", "우리 팀장은 김도윤이야."), ("세나", "앗, 박서준이야."), "팀장이 누구야?", "팀장 김도윤"),
    (("세나", "이사는 토요일이야."), ("오마르", "토요일 말고 일요일이지."), "이사는 언제야?", "time 토요일 (now 일요일)"),
    (("세나", "이삿짐센터는 토요일에 온대."), ("오마르", "토요일 말고 일요일이야."), "이삿짐센터는 언제 와?", "토요일"),
    (("세나", "택배는 302호 앞에 있대."), ("오마르", "아니 302호 말고 304호야."), "택배는 어디 앞에 있어?", "302호"),
    (("세나", "발표는 김도윤이 한대."), ("오마르", "김도윤 말고 김도현이야."), "발표는 누가 해?", "김도윤"),
    (("Sena", "I booked the dentist for Tuesday at 9."), ("Sena", "Sorry, not Tuesday, Thursday at 9."), "When is the dentist?", "Tuesday"),
    (("Sena", "My dentist appointment is on Tuesday at 3."), ("Sena", "Sorry, not Tuesday, it got moved to Friday at 10."),
     "When is my dentist appointment?", "time Tuesday at 3 (now Friday at 10)"),
    (("세나", "치과는 화요일 9시에 예약했어."), ("세나", "아니, 화요일 말고 목요일 9시."), "치과 언제야?", "화요일 (now 목요일 9시)"),
    (("세나", "회의는 화요일 3시야."), ("세나", "아 화요일 말고 수요일이라니까."), "회의 언제야?", "time 화요일 3시 (now 수요일 3시)")])
def test_what_a_turn_takes_back_is_marked_and_the_correction_is_first(
        memory: Memory, told: tuple[str, str], corrected: tuple[str, str], question: str, over: str) -> None:
    old, new = chat(memory, told, corrected)
    first, second = memory.search(question, k=2)
    assert (first.id, second.id) == (new, old) and not first.past
    assert second.past.startswith("no longer true: ") and over in second.past
    assert second.past in memory.explain(question, old).verdict and memory.get(old).valid_to is None
    memory.delete(new)
    assert [(h.id, h.past) for h in memory.search(question, k=1)] == [(old, "")]


def test_the_speakers_own_turn_is_marked_not_what_only_repeats_it(memory: Memory) -> None:
    chat(memory, ("Sena", "I booked the dentist for Tuesday at 9."), ("Omar", "Noted, Tuesday at 9."),
         ("Sena", "Sorry, not Tuesday, Thursday."))
    assert [h.id for h in memory.search("When is the dentist?", k=2)] == ["c2", "c0"]


def test_the_turn_that_has_the_value_may_be_some_turns_before(memory: Memory) -> None:
    chat(memory, MOVERS, ("Sena", "Good, I'll be there."), ("Omar", "Bring boxes!"), ("Sena", "Wait, not Saturday, Sunday."))
    assert [h.id for h in memory.search("When do the movers come?", k=2)] == ["c3", "c0"]


@pytest.mark.parametrize("turns", [
    [MOVERS, ("Sena", "Not now, later.")], [MOVERS, ("Sena", "Not Monday, Tuesday.")], [MOVERS, ("Sena", "I mean it.")],
    [MOVERS, ("Sena", "Sorry, I mean Sunday.")],  # another's turn, and it is not said what is meant
    [("Omar", "The Saturday train beats the Saturday bus."), ("Sena", "Not Saturday, Sunday.")],
    [("Omar", "The soup tasted bad to everybody."), ("Sena", "It's not bad, it's great!")], [MOVERS, ("Sena", "Not Saturday, boxes.")],
    [("Omar", "The Saturdays are a band."), ("Sena", "Not Saturday, Sunday.")],
    [("세나", "이삿짐센터는 토요일에 온대."), ("오마르", "농담 말고 진담이야.")],
    [("세나", "이삿짐센터는 토요일에 온대."), ("오마르", "월요일 말고 화요일이야.")],
    [("세나", "우리 팀장은 김도윤이야."), ("세나", "아 미안, 농담이야.")],
    [("세나", "우리 팀장은 김도윤이야."), ("세나", "아 미안, 내일이야.")],
    [("세나", "우리 집은 전세야."), ("세나", "아 미안, 진심이야.")],
    [("세나", "우리 팀장은 김도윤이야."), ("오마르", "아 미안, 김도현이야.")],
    [("세나", "토요일에 오고 토요일에 가."), ("오마르", "토요일 말고 일요일이야.")]])
def test_a_turn_that_only_looks_like_a_correction_marks_nothing(memory: Memory, turns: list[tuple[str, str]]) -> None:
    chat(memory, *turns)
    facts = [f for found in memory.backend.facts.of([1, 2]).values() for f in found]
    assert not [f for f in facts if f.valid_to is not None]


def test_an_assistant_corrects_nobody_and_another_conversation_is_not_meant(memory: Memory) -> None:
    memory.add_conversation([{"speaker": MOVERS[0], "text": MOVERS[1]}], session="s")
    memory.add_conversation([{"role": "assistant", "text": "No, not Saturday, Sunday."}], session="s")
    memory.add_conversation([{"speaker": "Sena", "text": "No, not Saturday, Sunday."}], session="t")
    assert not any(h.past for h in memory.search("When do the movers come?"))


@pytest.mark.parametrize(("old", "new", "same"), [
    ("Saturday", "Sunday", True), ("900", "950", True), ("Quispe", "Quiroga", True), ("김도윤", "박서준", True), ("토요일", "일요일", True),
    ("지우", "지수", True), ("Saturday", "950", False), ("bad", "great", False), ("김도윤", "내일", False), ("토요일", "농담", False)])
def test_a_value_takes_the_place_of_one_of_its_form(old: str, new: str, same: bool) -> None:
    assert alike(old, new) is same


@pytest.mark.parametrize("ending", ["이야", "이지", "이죠", "이잖아", "이라고", "이라니까", "이거든", "이네", "이지요", "입니다"])
def test_the_ending_is_no_part_of_the_corrected_value(ending: str) -> None:
    found = correction(f"토요일 말고 일요일{ending}.")
    assert found and found.value == "일요일" and found.instead_of == ("토요일",)
