"""A fact that is asked of somebody is found under their name in the other script, and not in somebody else's memory."""

import pytest

from rlm import Memory
from rlm.companion.fact_extraction import asked_facts

NAMES = {"Seoyeon": "서연은", "Jisoo": "지수는", "Minjun": "민준은", "Hyunwoo": "현우는", "Jiwon": "지원이는", "Taeyang": "태양은"}


@pytest.mark.parametrize("name", NAMES)
def test_the_one_who_is_asked_about_comes_first(name: str) -> None:
    with Memory(":memory:", embedder="none") as memory:
        memory.write("Theo is allergic to sesame.", id="theo")
        memory.write(f"{NAMES[name]} 새우 알레르기가 있다.", id="asked")
        best = memory.search(f"What is {name} allergic to?")[0]
        assert (best.id, best.placed_by) == ("asked", "")  # by its own score: the name in the other script, 알레르기 for *allergic*
        assert "새우" in str(memory.context(f"What is {name} allergic to?", tokens=90))


@pytest.mark.parametrize(("question", "asked"), {
    "What is Theo allergic to?": ("Theo", "allergy"), "Is Mina allergic to anything?": ("Mina", "allergy"),
    "Does my sister have any allergies?": ("user's sister", "allergy"), "What am I allergic to?": ("user", "allergy"),
    "Do I have any food allergies?": ("user", "allergy"), "서연이는 무슨 알레르기가 있어?": ("서연", "allergy"),
    "지수 알레르기 뭐 있어?": ("지수", "allergy"), "나 무슨 알레르기 있어?": ("user", "allergy"),
    "엄마는 어떤 알레르기가 있으셔?": ("user's 엄마", "allergy")}.items())
def test_allergies_are_asked_for(question: str, asked: tuple[str, str]) -> None:
    assert asked in asked_facts(question)


@pytest.mark.parametrize("question", ["Is Theo allergic to peanuts?", "Why is Theo allergic to sesame?", "Who is allergic to nuts?",
                                      "땅콩 알레르기 있는 사람 누구야?", "What food did Theo bring?"])
def test_other_questions_ask_for_no_allergy(question: str) -> None:
    assert not any(relation == "allergy" for _, relation in asked_facts(question))


def test_a_job_that_was_left_is_not_the_one_that_is_asked_for() -> None:
    with Memory(":memory:", embedder="none") as memory:
        memory.add_conversation([("Theo", "I'm a pastry chef at Bluebell Bakery. Started in 2021."), ("Theo", "I quit Bluebell Bakery.")])
        assert all(not h.placed_by for h in memory.search("What is Theo's job?"))
    with Memory(":memory:", embedder="none") as memory:
        memory.add_conversation([("Theo", "I'm a pastry chef at Bluebell Bakery."), ("Theo", "The flour came late.")])
        assert memory.search("What is Theo's job?")[0].text == "I'm a pastry chef at Bluebell Bakery."
