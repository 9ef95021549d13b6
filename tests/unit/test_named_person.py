"A question that names a person is answered by what is about that person, whether they said it or it names them."
from collections.abc import Iterator

import pytest

from rlm import Memory
from rlm.search.embedding.base import choose_embedder

CHATS = {"s1": [("Mina", "I'll take the train on Saturday."), ("Joon", "Good, I'll pick you up at the station.")],
         "s2": [("Joon", "Did anyone see my umbrella?"), ("Hana", "It is in the kitchen, behind the door.")],
         "s3": [("민아", "토요일에 기차 타고 갈게."), ("하나", "제가 내일 돌려 볼게요. 서버 자리 있어요?")]}
FACTS = {"car": "Mina drives a red Skoda.", "her shoes": "Mina's shoe size is 38.", "job": "민아는 서울에서 치과 의사로 일한다.",
         "childhood": "Mina grew up in Lisbon.", "herb": "Mina can't stand coriander.", "cello": "Joon plays the cello.",
         "pets": "Joon lives in Busan with two cats.", "birthday": "준의 생일은 3월 4일이다.", "nuts": "Hana is allergic to peanuts.",
         "dogs": "하나는 강아지 두 마리를 키운다.", "work": "Hana works for a shipping company.",
         "tea": "민아는 커피보다 녹차를 좋아한다.",
         "his shoes": "Joon's shoe size is 43.", "kia": "Hana drives a blue Kia.", "shellfish": "Joon is allergic to shellfish.",
         "coffee": "하나는 홍차보다 커피를 좋아한다."}
ASKED = {"What colour is Mina's automobile?": "car",
         "Where did Mina spend her childhood?": "childhood", "Which herb does Mina dislike?": "herb",
         "What size of shoes does Mina wear?": "her shoes",
         "What size of shoes does Joon wear?": "his shoes", "Does Joon make music?": "cello",
         "Which pets does Joon have?": "pets", "What is Hana allergic to?": "nuts", "What is Joon allergic to?": "shellfish",
         "Who employs Hana?": "work", "Which car does Hana drive?": "kia", "What did Mina say about Saturday?": "Mina 0",
         "민아 직업이 뭐야?": "job", "민아는 어디에서 일해?": "job", "민아 신발 사이즈 알려 줘": "her shoes",
         "준 생일이 언제야?": "birthday",
         "하나는 무슨 알레르기가 있어?": "nuts", "하나가 키우는 동물은?": "dogs", "하나는 어떤 회사에 다녀?": "work",
         "민아가 토요일에 뭐 타고 온다고 했어?": "민아 0", "민아는 뭘 즐겨 마셔?": "tea", "하나는 뭘 즐겨 마셔?": "coffee",
         "하나는 어떤 음료를 좋아해?": "coffee", "민아가 좋아하는 차는?": "tea"}
NOT_HELD = {"민아는 어떤 차를 몰아?", "What is Mina's profession?"}  # the answer names her in the other script


@pytest.fixture(scope="module")
def people() -> Iterator[Memory]:
    pytest.importorskip("onnxruntime", reason="needs e5: pip install 'rlm[e5]'")
    with Memory(":memory:", embedder=choose_embedder("e5")) as memory:
        for session, turns in CHATS.items():
            told = [{"id": f"{who} {n}", "speaker": who, "text": text} for n, (who, text) in enumerate(turns)]
            memory.add_conversation(told, session=session)
        for name, text in FACTS.items():
            memory.write(text, id=name)
        yield memory


@pytest.mark.parametrize("question", ASKED)
def test_a_fact_about_a_person_comes_before_what_that_person_said_of_something_else(question: str, people: Memory) -> None:
    hits = people.search(question, 3)
    assert hits[0].id == ASKED[question]
    assert [h.relevance for h in hits] == sorted((h.relevance for h in hits), reverse=True)


@pytest.mark.parametrize("question", sorted(NOT_HELD))
def test_a_turn_of_a_person_who_is_asked_about_is_no_answer_by_itself(question: str, people: Memory) -> None:
    assert people.search(question)[0].id not in {"Mina 0", "민아 0"}


def test_where_every_memory_is_a_turn_the_speaker_counts_in_full() -> None:
    with Memory(":memory:", embedder="none") as memory:
        memory.add_conversation([{"id": f"{who} {n}", "speaker": who, "text": text} for n, (who, text) in enumerate(CHATS["s2"])])
        assert memory.explain("What did Hana say about the umbrella?", "Hana 1").parts["(speaker)"]["speaker"] == pytest.approx(.6)
        memory.write("Hana sells umbrellas.", id="fact")
        assert memory.search("What does Hana sell?")[0].id == "fact"
