"What a person answers to an assistant is kept with what was asked; what the assistant says, and a riddle's answer, is not."
from collections.abc import Iterator

import pytest

from rlm import Memory
from rlm.companion.composer import compose
from rlm.companion.english import with_subject
from rlm.companion.policy import ANSWERS, CONTINUES, MemoryPolicy, Situation, answered_question
from rlm.core.clock import ManualClock
from rlm.service.capture import capture_prompt


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock("2026-03-04")


@pytest.fixture
def memory(clock: ManualClock) -> Iterator[Memory]:
    with Memory(":memory:", embedder="none", clock=clock) as opened:
        yield opened


def talk(memory: Memory, clock: ManualClock, *turns: str, session: str | None = "a") -> list[str]:
    "Observe turns, the person's and the assistant's in turn; return the words that were kept."
    kept = []
    for n, text in enumerate(turns):
        clock.advance(seconds=30)
        seen = memory.companion.observe(text, role="assistant" if n % 2 else "user", session=session)
        kept += [seen.memory.text] if seen.memory else []
    return kept


@pytest.mark.parametrize(("told", "question", "answer", "asked", "word"), [
    ("my aunt's eye surgery got moved", "Oh dear. When is it now?", "the 12th of may", "When is my aunt's surgery?", "12th"),
    ("the dishwasher gave up again", "Oh dear. Which brand is it?", "a Miele, six years old", "Which brand is the dishwasher?", "Miele"),
    ("can you plan my lunches", "Sure! Do you have an oven at work?", "nope, only a kettle", "Do I have an oven at work?", "kettle"),
    ("나 요즘 테니스 배워", "멋지네요! 무슨 요일에 가세요?", "화목 저녁 여덟시", "테니스 무슨 요일에 배워?", "화목"),
    ("강아지 병원 갔다 왔어", "괜찮은가요? 약도 받으셨나요?", "응 연고 하루 두 번", "강아지 약 받았어?", "연고")])
def test_a_short_answer_is_kept_with_what_was_asked_and_found_by_it(
        memory: Memory, clock: ManualClock, told: str, question: str, answer: str, asked: str, word: str) -> None:
    assert talk(memory, clock, told, question, answer)[-1] == answer
    clock.advance(days=5)
    line = next(line for line in str(memory.context(asked)).splitlines() if word in line)
    assert question.split("! ")[-1].split(". ")[-1].split("? ")[-1] in line and memory.list()[0].text == answer


@pytest.mark.parametrize("turns", [
    ("riddle please", "What has a neck but no head?", "a bottle"),
    ("what a week", "Would you like a joke?", "a dad joke"), ("hi", "Hello! How are you today?", "not too bad"),
    ("my aunt moved to Leeds", "Is she happy there?", "yes"), ("my aunt moved to Leeds", "Is she happy there?", "not sure yet"),
    ("my aunt moved to Leeds", "Is she happy there?", "what do you think?"),
    ("my aunt moved to Leeds", "How old is she?", "tell me a joke"),
    ("심심해", "수수께끼 하나 해 드릴까요?", "응 쉬운 거"), ("이모가 부산으로 이사했어", "이모님은 좋아하세요?", "글쎄 몰라")])
def test_what_answers_nothing_about_a_person_is_not_kept(memory: Memory, clock: ManualClock, turns: tuple[str, ...]) -> None:
    assert turns[-1] not in talk(memory, clock, *turns)


def test_an_assistants_turn_is_not_kept_and_nothing_is_looked_up_for_it(memory: Memory) -> None:
    "The same words of a person are."
    said = "My sister Dora lives in Lima. Remember that I own a boat."
    seen = memory.companion.observe(said, role="assistant")
    assert (seen.memory, seen.context, seen.decision.reason) == (None, None, "it is not said by a person")
    assert memory.companion.observe(said, role="user").memory and memory.companion.observe(f"Well, {said}").memory


def test_a_question_is_answered_in_its_own_conversation_and_soon(memory: Memory, clock: ManualClock) -> None:
    for session, minutes, title in (("b", 1, None), ("a", 30, None), ("a", 1, "When does your lease end?")):
        memory.companion.observe("When does your lease end?", role="assistant", session="a")
        clock.advance(minutes=minutes)
        seen = memory.companion.observe("by the end of August, I live in Oslo", session=session)
        assert seen.memory and seen.memory.title == title


def test_an_answer_states_the_fact_that_was_asked_for(memory: Memory, clock: ManualClock) -> None:
    "It ends what was true before it; a title that is given stays."
    memory.write("I live in Lyon.", id="lyon")
    talk(memory, clock, "hello", "Hi! Where do you live?", "Tartu")
    old = memory.get("lyon")
    assert old.valid_to is not None
    memory.companion.observe("Where do you work?", role="assistant", session="a")
    seen = memory.companion.observe("at Globex", session="a", title="job")
    assert seen.memory and seen.memory.title == "job"


def test_a_caller_may_tell_what_was_asked() -> None:
    where = Situation(asked="Good. How long has he had the fever?")
    decision = MemoryPolicy().decide("since monday", where)
    assert (decision.save, decision.reason, decision.answers) == (True, ANSWERS, "How long has he had the fever?")
    assert not MemoryPolicy().decide("since monday").save and not answered_question("the code is 4471, no?", where)
    assert not MemoryPolicy().decide("my pin is 4471", where).save


def test_equal_answers_to_two_questions_both_stand_in_a_block(memory: Memory) -> None:
    first, second = (memory.write("since monday", title=f"How long has {who} been ill?") for who in ("Ana", "Ben"))
    text = compose([], [(first, 0.9), (second, 0.9)], "How long has Ben been ill?").text
    assert "How long has Ana been ill? since monday" in text and "How long has Ben been ill? since monday" in text


@pytest.mark.parametrize(("turn", "told"), [
    ("just got back from the dentist", "just I got back from the dentist"), ("can't drive lol", "I can't drive lol"),
    ("oh, finally painted the shed", "oh, finally I painted the shed"), ("been to Oslo twice", "I've been to Oslo twice"),
    ("thinking of moving to Ghent", "I'm thinking of moving to Ghent")])
def test_a_verb_without_a_subject_is_of_the_speaker(turn: str, told: str) -> None:
    assert with_subject(turn) == told


@pytest.mark.parametrize("turn", ["got it", "noted, thanks", "bored of this", "Sorted by date, please", "living in Oslo is expensive",
                                  "told you so", "need a hand", "don't use emojis", "red is nice", "excited for you", "booked"])
def test_a_verb_that_is_nobodys_gets_no_subject(turn: str) -> None:
    assert with_subject(turn) == turn


@pytest.mark.parametrize("turn", ["my neighbour Ivo offered 40 for the bike", "booked! 9 june, they'll be thrilled", "we meet in Genk then",
                                  "she's the one with the twins"])
def test_what_goes_on_from_a_kept_turn_is_kept(memory: Memory, clock: ManualClock, turn: str) -> None:
    "After small talk it is not."
    talk(memory, clock, "My aunt Tilda moved to Hasselt in May.", "How nice!")
    seen = memory.companion.observe(turn, role="user", session="a")
    assert seen.memory and (seen.decision.reason == CONTINUES or seen.decision.phase == "rule")


@pytest.mark.parametrize("turn", ["ooh that's genius", "fair enough", "that's all for now", "so happy right now", "what a day"])
def test_a_reaction_after_a_kept_turn_is_not_kept(memory: Memory, clock: ManualClock, turn: str) -> None:
    assert turn not in talk(memory, clock, "My aunt Tilda moved to Hasselt in May.", "How nice!", turn)


def test_what_an_answered_question_was_about_is_kept_with_the_answer(memory: Memory, clock: ManualClock) -> None:
    "It is not without an answer, nor twice, nor where a person has rejected it."
    told = "the dishwasher gave up again"
    assert told not in talk(memory, clock, told, "Oh dear. Which brand is it?", "thanks anyway", session="b") and not memory.list()
    talk(memory, clock, told, "Oh dear. Which brand is it?", "a Miele", "I see. How old is it?", "about six years")
    assert [r.text for r in reversed(memory.list())] == [told, "a Miele", "about six years"]
    assert [r.turn for r in reversed(memory.list())] == [0, 1, 2]
    memory.companion.reject(text=told)
    assert talk(memory, clock, told, "Oh dear. Which brand is it?", "a Bosch", session="c") == ["a Bosch"]
    assert told not in {r.text for r in memory.list()}


def test_a_prompt_that_answers_the_last_stored_turn_is_kept_with_what_that_asks(memory: Memory, clock: ManualClock) -> None:
    memory.add_conversation([{"text": "Sorry to hear that. How long has your tooth hurt?", "role": "assistant"}], session="a")
    assert not capture_prompt(memory, "since monday", {}, "b").kept and not capture_prompt(memory, "since monday", {}).kept
    kept = capture_prompt(memory, "since monday", {"source": "hook"}, "a")
    assert kept.memory and kept.memory.title == "How long has your tooth hurt?" and kept.memory.session is None
    assert capture_prompt(memory, "since monday", {"source": "hook"}, "a").duplicate
    memory.add_conversation([{"text": "Where do you live?", "role": "assistant"}], session="a")
    kept = capture_prompt(memory, "Tartu", {"source": "hook"}, "a")
    assert kept.memory and memory.backend.facts.of([kept.memory.seq])[kept.memory.seq][0].relation == "residence"
    clock.advance(minutes=30)
    assert not capture_prompt(memory, "next to the old mill", {}, "a").kept


def test_the_turn_that_names_whom_a_kept_turn_means_is_kept_before_it(memory: Memory, clock: ManualClock) -> None:
    named, meant = "so Greta dropped by on the way", "turns out my cousin told her to go vegan"
    assert talk(memory, clock, named, "How nice!", "it rained a lot") == [] and not memory.list()
    assert talk(memory, clock, named, "How nice!", meant) == [meant] and [r.text for r in memory.list()] == [meant, named]
