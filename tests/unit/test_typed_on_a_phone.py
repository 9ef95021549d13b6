"What is typed in a hurry says what it says in full: no apostrophe, no *my*, laughter at the end."

import pytest

from rlm import Memory
from rlm.companion.fact_extraction import asked_facts, text_facts
from rlm.companion.pair_judge import leaves_as_it_was, told_of_another
from rlm.companion.policy import MemoryPolicy


def read(text: str) -> list[str]:
    return [str(s) for s in text_facts(text).statements]


@pytest.mark.parametrize(("typed", "whole"), [
    ("im a plumber at Hale and Sons", "I'm a plumber at Hale and Sons."), ("i dont eat pork", "I don't eat pork."),
    ("ive got a parrot called Kiwi", "I've got a parrot called Kiwi."), ("i cant eat gluten", "I can't eat gluten."),
    ("wife works at the Bellevue", "My wife works at the Bellevue."), ("brother's allergic to bees", "My brother is allergic to bees."),
    ("landlord's name is Osei", "My landlord's name is Osei."), ("i'm coeliac lol", "I'm coeliac."),
    ("i quit smoking 😅", "I quit smoking."),
    ("my phone number's 555 0142", "My phone number is 555 0142."),
    ("started my new job at Arup", "I started a new job at Arup."), ("can't believe my daughter turned 9", "My daughter turned 9.")])
def test_it_states_what_it_states_in_full(typed: str, whole: str) -> None:
    assert read(typed) == read(whole) != []


@pytest.mark.parametrize("text", ["Im Jisoo lives in Busan.", "The wells were its pride.", "His partner is late."])
def test_words_that_look_like_a_contraction_are_left_as_they_are(text: str) -> None:
    assert not any(s.subject.startswith("user") for s in text_facts(text).statements)


def test_a_floor_is_no_day_and_another_appointment_is_left_alone() -> None:
    assert not any(" time " in s for s in read("We're on the 4th floor."))
    assert read("The meeting is on the 4th of May.") == ["The meeting | time | the 4th of May"]
    with Memory(":memory:", embedder="none") as memory:
        memory.write("we're on the 2nd floor, door 2B", id="door")
        memory.write("my physio Dr. Amari moved me to mondays at 4")
        (hit,) = [h for h in memory.search("door 2B", k=5, min_score=0) if h.id == "door"]
        assert not hit.past and memory.get("door").valid_to is None


@pytest.mark.parametrize(("turn", "kept"), [
    ("im in charge of the bakery now", True), ("we only have 1 car haha", True), ("hubby works nights at the depot", True),
    ("can't believe my daughter turned 9", True), ("they said the exhaust pipe's broken lol", False),
    ("haha i'm the queen of england", False),
    ("lol i live in the fridge", False)])
def test_it_is_kept_as_it_would_be_in_full(turn: str, kept: bool) -> None:
    assert MemoryPolicy().decide(turn).save == kept


def test_what_another_does_changes_nothing_of_ones_own() -> None:
    assert leaves_as_it_was("my number's 555 0142", "lena got a new number, it's 555 0199")
    assert told_of_another("i'm vegan", "my gf stopped being vegan") and told_of_another("i'm vegan", "hubby stopped being vegan")
    assert not leaves_as_it_was("my number's 555 0142", "i got a new number, it's 555 0199")
    assert not leaves_as_it_was("my number's 555 0142", "got a new number, it's 555 0199")


@pytest.mark.parametrize(("typed", "whole"), [
    ("whats my phone number", "what's my phone number"), ("whos my landlord", "who's my landlord"),
    ("whens my wife's birthday", "when's my wife's birthday")])
def test_it_asks_what_it_asks_in_full(typed: str, whole: str) -> None:
    assert asked_facts(typed) == asked_facts(whole) != []
