"""What people say when something has changed is told of what they said before; what only sounds like it is not."""
from collections.abc import Iterator, Sequence

import pytest

from rlm import Memory
from rlm.companion.fact_extraction import answered, asked_of_listener
from rlm.core.clock import ManualClock

CHANGES = (  # said before, said later, question
    ("The meeting with Han is on Tuesday.", "Han moved the meeting to Wednesday.", "When is the meeting with Han?"),
    ("My appointment with the dentist is on Monday.", "The dentist moved my appointment to Friday.", "When is my dentist appointment?"),
    ("The exam is on May 3.", "They pushed the exam back to May 10.", "When is the exam?"),
    ("My physio appointment is at 9 on Thursday.", "The clinic rang, it's Friday now.", "When is my physio appointment?"),
    ("My rent is 850 a month.", "The landlord put the rent up to 900.", "How much is my rent?"),
    ("Rent is 950 a month.", "The landlord raised the rent to 1,050.", "How much is the rent?"),
    ("I don't drink coffee.", "I'm drinking coffee again.", "Do I drink coffee?"),
    ("I don't eat meat.", "I started eating meat again.", "Do I eat meat?"),
    ("I'm vegetarian.", "I eat meat again.", "Am I vegetarian?"),
    ("I'm on crutches.", "I'm off the crutches.", "Am I on crutches?"),
    ("회의는 화요일이야", "회의가 목요일로 옮겨졌어", "회의 언제야?"),
    ("한 과장님이랑 회의는 화요일이야", "한 과장님이 회의를 수요일로 옮겼어", "회의 언제야?"),
    ("치과 예약은 월요일이야", "치과에서 예약을 금요일로 바꿨어", "치과 예약 언제야?"),
    ("물리치료 예약은 목요일 9시야", "병원에서 전화 왔는데 금요일로 바뀌었대", "물리치료 예약 언제야?"),
    ("시험은 5월 3일이야", "학교에서 시험을 5월 10일로 미뤘어", "시험 언제야?"),
    ("월세는 80만 원이야", "집주인이 월세를 90만 원으로 올렸어", "월세 얼마야?"),
    ("나는 고기를 안 먹어", "다시 고기 먹어", "나 고기 먹어?"),
    ("나 고기 안 먹어", "나 이제 다시 고기 먹기 시작했어", "나 고기 먹어?"),
    ("나는 커피 끊었어", "커피 다시 마셔", "나 커피 마셔?"),
    ("나 다리에 깁스했어", "깁스 풀었어", "나 깁스했어?"),
    ("Biscuit is my dog.", "Biscuit died yesterday.", "Who is Biscuit?"),
    ("Biscuit is alive and well.", "Biscuit died yesterday.", "How is Biscuit?"),
    ("Biscuit needs a walk every morning.", "Biscuit passed away last night.", "When does Biscuit need a walk?"),
    ("My dog's name is Biscuit.", "Biscuit was put to sleep.", "What is my dog's name?"),
    ("We have a dog called Biscuit.", "Biscuit passed away last night.", "Do we have a dog?"),
    ("I have a cat.", "My cat died in her sleep.", "Do I have a cat?"),
    ("My grandmother lives in Leeds.", "My grandmother passed away.", "Where does my grandmother live?"),
    ("I have two cats, Miso and Nori.", "Both cats died.", "Do I have cats?"),
    ("My sister's name is Katherine.", "Her name is spelled Kathryn.", "What is my sister's name?"),
    ("My boss is called Sara.", "It's Sarah with an h.", "What is my boss called?"),
    ("My doctor is Dr. Petrosian.", "Oops, Petrossian with two s.", "Who is my doctor?"),
    ("The dentist is on Thursday at 9.", "Make that Friday.", "When is the dentist?"),
    ("The dentist is on Thursday at 9.", "make that Friday, same time", "When is the dentist?"),
    ("Dinner is at 7.", "Make it 8.", "When is dinner?"),
    ("My rent is 800.", "They raised the rent to 1350.", "How much is my rent?"),
    ("My rent is 800.", "The rent is 850.", "How much is my rent?"),
    ("우리 강아지 이름은 초코야", "초코가 어제 죽었어", "강아지 이름이 뭐야?"),
    ("초코는 우리 강아지야", "초코가 무지개다리를 건넜어", "초코가 누구야?"),
    ("할머니는 대구에 사셔", "할머니가 돌아가셨어", "할머니는 어디 사셔?"),
    ("동생 이름은 지현이야", "아니 지연이라고 써", "동생 이름이 뭐야?"),
    ("치과는 목요일 9시야", "금요일로 해줘", "치과 언제야?"),
    ("월세는 80만 원이야", "90만 원으로 올랐어", "월세 얼마야?"),
    ("회의실은 5층이야", "아뇨 6층이요", "회의실 몇 층이야?"))
LOOK_ALIKES = (
    ("Biscuit is my dog.", "My phone died yesterday.", "Who is Biscuit?"),
    ("Biscuit is my dog.", "Biscuit's father died.", "Who is Biscuit?"),
    ("Biscuit is my dog.", "Biscuit nearly died yesterday.", "Who is Biscuit?"),
    ("Biscuit is my dog.", "Biscuit died of boredom at the vet.", "Who is Biscuit?"),
    ("Biscuit is my dog.", "Did Biscuit die?", "Who is Biscuit?"),
    ("The car needs a new tyre.", "The car died on the highway.", "What does the car need?"),
    ("My grandmother was born in Leeds.", "My grandmother passed away.", "Where was my grandmother born?"),
    ("My grandmother's birthday is on May 3.", "My grandmother passed away.", "When is my grandmother's birthday?"),
    ("My sister's name is Mina.", "My sister passed away.", "What is my sister's name?"),
    ("My sister lives in Leeds.", "My sister's dog died.", "Where does my sister live?"),
    ("I have two cats, Miso and Nori.", "Both cats are asleep.", "Do I have cats?"),
    ("I have two cats, Miso and Nori.", "Both plants died.", "Do I have cats?"),
    ("I have two cats.", "Both of my parents died.", "Do I have cats?"),
    ("My sister's name is Katherine.", "His name is spelled Stephen.", "What is my sister's name?"),
    ("My sister's name is Katherine.", "The lane is spelled Kathrine Lane.", "What is my sister's name?"),
    ("My boss is called Sara.", "It's lunch with an old friend.", "What is my boss called?"),
    ("The dentist is on Thursday at 9.", "Make that two coffees.", "When is the dentist?"),
    ("Dinner is at 7.", "Make it work!", "When is dinner?"),
    ("Dinner is at 7.", "Make that Friday.", "When is dinner?"),
    ("The dentist is on Thursday at 9.", "Can you make it Friday?", "When is the dentist?"),
    ("My rent is 800.", "Her rent is 850.", "How much is my rent?"),
    ("My rent is 800.", "The rent in Paris is 1350.", "How much is my rent?"),
    ("우리 강아지 이름은 초코야", "배터리가 죽었어", "강아지 이름이 뭐야?"),
    ("초코는 우리 강아지야", "배고파 죽겠어", "초코가 누구야?"),
    ("할머니 생신은 3월 2일이야", "할머니가 돌아가셨어", "할머니 생신이 언제야?"),
    ("동생 이름은 지현이야", "아니 그냥 써", "동생 이름이 뭐야?"),
    ("동생 이름은 지현이야", "커피라고 써", "동생 이름이 뭐야?"),
    ("치과는 목요일 9시야", "커피로 해줘", "치과 언제야?"),
    ("회의실은 5층이야", "아뇨 6명이요", "회의실 몇 층이야?"),
    ("The meeting with Han is on Tuesday.", "Han moved the sofa to the living room.", "When is the meeting with Han?"),
    ("The meeting with Han is on Tuesday.", "Han moved to Busan.", "When is the meeting with Han?"),
    ("The meeting with Han is on Tuesday.", "Mina moved the party to Wednesday.", "When is the meeting with Han?"),
    ("The meeting with Han is on Tuesday.", "We might move the meeting to Wednesday.", "When is the meeting with Han?"),
    ("The party is on Saturday.", "We moved forward to Sunday.", "When is the party?"),
    ("The party is on Saturday.", "Did they move the party to Sunday?", "When is the party?"),
    ("My physio appointment is at 9 on Thursday.", "The school rang, the play is Friday at two.", "When is my physio appointment?"),
    ("My physio appointment is at 9 on Thursday.", "Finally home, it's Friday!", "When is my physio appointment?"),
    ("My name is Jo.", "The clinic rang, it's Friday now.", "What is my name?"),
    ("My rent is 850 a month.", "Mina's landlord put her rent up to 900.", "How much is my rent?"),
    ("My rent is 850 a month.", "The gym put the fee up to 40.", "How much is my rent?"),
    ("I don't eat meat.", "Mina eats meat again.", "Do I eat meat?"),
    ("I don't drink coffee.", "I'm drinking tea again.", "Do I drink coffee?"),
    ("I'm vegetarian.", "I eat breakfast again.", "Am I vegetarian?"),
    ("My arm is in a cast.", "The paint came off the door.", "Is my arm in a cast?"),
    ("My arm is in a cast.", "Tom's cast came off.", "Is my arm in a cast?"),
    ("Dad is on blood thinners.", "The cardiologist took Dad off the waiting list.", "Is Dad on blood thinners?"),
    ("Dad is on blood thinners.", "The cardiologist took Mum off the blood thinners.", "Is Dad on blood thinners?"),
    ("I wear braces.", "My sister's braces came off.", "Do I wear braces?"),
    ("회의는 화요일이야", "한 과장님이 책상을 창가로 옮겼어", "회의 언제야?"),
    ("회의는 화요일이야", "회식이 목요일로 옮겨졌어", "회의 언제야?"),
    ("회의는 화요일이야", "회의를 목요일로 옮길까?", "회의 언제야?"),
    ("치과 예약은 월요일이야", "미용실에서 예약을 금요일로 바꿨어", "치과 예약 언제야?"),
    ("물리치료 예약은 목요일 9시야", "학교에서 전화 왔는데 소풍이 금요일로 바뀌었대", "물리치료 예약 언제야?"),
    ("월세는 80만 원이야", "집주인이 보일러를 새 걸로 바꿨어", "월세 얼마야?"),
    ("월세는 80만 원이야", "헬스장이 회비를 9만 원으로 올렸어", "월세 얼마야?"),
    ("나는 고기를 안 먹어", "동생이 다시 고기 먹어", "나 고기 먹어?"),
    ("나 다리에 깁스했어", "넥타이 풀었어", "나 깁스했어?"),
    ("나 다리에 깁스했어", "동생이 깁스 풀었어", "나 깁스했어?"))


@pytest.fixture
def memory() -> Iterator[Memory]:
    with Memory(":memory:", embedder="none", clock=ManualClock("2026-05-01T09:00Z")) as memory:
        yield memory


def tell(memory: Memory, texts: Sequence[str], chat: bool) -> None:
    "Write texts singly, or as a person's turns that an assistant answers."
    for text in texts:
        memory.clock.advance(minutes=1)  # type: ignore[attr-defined]
        if chat:
            memory.add_conversation([{"role": "user", "content": text}, {"role": "assistant", "content": "Noted."}], session="talk")
        else:
            memory.write(text)
    memory.clock.advance(minutes=1)  # type: ignore[attr-defined]


def is_past(memory: Memory, text: str, question: str) -> bool:
    "Whether a search for what was said finds it no longer, or with the mark that it is past."
    return all(hit.past for hit in memory.search(question) if hit.text == text)


@pytest.mark.parametrize("chat", [False, True])
@pytest.mark.parametrize(("before", "later", "question"), CHANGES)
def test_a_change_is_told_of_what_was_said_before(memory: Memory, before: str, later: str, question: str, chat: bool) -> None:
    tell(memory, [before, later], chat)
    assert is_past(memory, before, question)
    assert {hit.text for hit in memory.search(question)[:1]} <= {later}  # what has ended is not found; its words may not be the question's


@pytest.mark.parametrize("chat", [False, True])
@pytest.mark.parametrize(("before", "later", "question"), LOOK_ALIKES)
def test_what_only_sounds_like_a_change_leaves_it_as_it_was(memory: Memory, before: str, later: str, question: str, chat: bool) -> None:
    tell(memory, [before, later], chat)
    assert not is_past(memory, before, question)


MEETINGS = "The meeting with Han is on Tuesday.", "The meeting with Lee is on Friday."


def test_of_two_meetings_the_one_is_moved_that_is_named(memory: Memory) -> None:
    tell(memory, [*MEETINGS, "Han moved the meeting to Wednesday."], False)
    assert [is_past(memory, text, "When is the meeting?") for text in MEETINGS] == [True, False]


def test_of_two_meetings_of_which_neither_is_named_none_is_moved(memory: Memory) -> None:
    tell(memory, [*MEETINGS, "They moved the meeting to Wednesday."], False)
    assert not any(hit.past for hit in memory.search("When is the meeting?"))


@pytest.mark.parametrize(("told_before", "later", "past"), [
    (["I own a boat.", "I own a van."], "I sold both.", True), (["I have a cat.", "I have a dog."], "Both died.", True),
    (["Miso is my cat.", "Nori is my cat."], "Both cats died.", True), (["나는 자전거와 오토바이가 있어"], "둘 다 팔았어", True),
    (["I own a boat.", "I own a van.", "I own a bike."], "I sold both.", False),
    (["I have a cat.", "I have a dog."], "Both plants died.", False), (["나는 자전거와 오토바이가 있어"], "둘 다 멋져", False)])
@pytest.mark.parametrize("chat", [False, True])
def test_both_means_two_things_that_were_said_one_after_the_other(
        memory: Memory, told_before: list[str], later: str, past: bool, chat: bool) -> None:
    tell(memory, [*told_before, later], chat)
    assert [is_past(memory, text, text) for text in told_before] == [past] * len(told_before)


def test_a_short_answer_that_says_no_corrects_what_the_assistant_has_said(memory: Memory) -> None:
    for said, answer in (("사무실은 5층이시군요.", "아뇨 6층이요"), ("So the office is on the 5th floor.", "No, the 6th floor.")):
        memory.add_conversation([{"role": "assistant", "content": said}, {"role": "user", "content": answer}], session=said)
        assert is_past(memory, said, said)


def test_what_has_died_is_told_with_what_it_was_and_a_deletion_takes_it_back(memory: Memory) -> None:
    old = memory.write("Biscuit is my dog.").id
    new = memory.write("Biscuit died yesterday.").id
    assert [h.id for h in memory.search("Who is Biscuit?")] == [new, old] and memory.get(old).valid_to is None
    assert memory.search("Who was Biscuit before?")[0].id in (old, new)
    memory.delete(new)
    assert [(h.id, h.past) for h in memory.search("Who is Biscuit?")] == [(old, "")]


def residences(memory: Memory) -> list[str]:
    "Where the user lives by the facts that are stored, which no method of a memory lists."
    return [f.value for f in memory.backend.facts.about("default", "user", "residence")]


ANSWERS = (  # question of an assistant, answer, question later
    ("Nice to meet you! Do you have any hobbies?", "Running and chess.", "What are my hobbies?"),
    ("Where do you live?", "In Busan.", "Where do I live?"),
    ("What should I call you?", "Mina", "What is my name?"), ("어디 사세요?", "부산이요.", "나 어디 살아?"),
    ("반가워요. 취미가 뭐예요?", "등산이랑 요가요", "내 취미가 뭐야?"), ("성함이 어떻게 되세요?", "이서연입니다.", "내 이름이 뭐야?"))


@pytest.mark.parametrize("together", [True, False])
@pytest.mark.parametrize(("question", "answer", "later"), ANSWERS)
def test_a_short_answer_states_what_an_assistant_asked(memory: Memory, question: str, answer: str, later: str, together: bool) -> None:
    turns = [{"role": "assistant", "content": question}, {"role": "user", "content": answer}]
    for part in [turns] if together else [turns[:1], turns[1:]]:
        memory.add_conversation(part, session="talk")
    assert memory.search(later)[0].text == answer
    proposed = memory.companion.remember(turns).as_dict()["proposed"]
    assert [p["text"] for p in proposed] == [f"{question} {answer}"] and proposed[0]["facts"][0]["subject"] == "user"


def test_a_later_answer_ends_an_earlier_one(memory: Memory) -> None:
    for answer in ("Busan.", "Daegu."):
        turns = [{"role": "assistant", "content": "Where do you live?"}, {"role": "user", "content": answer}]
        memory.add_conversation(turns, session=answer)
        memory.clock.advance(days=1)  # type: ignore[attr-defined]
    assert [(hit.text, bool(hit.past)) for hit in memory.search("Where do I live?", k=9) if hit.text != "Where do you live?"] == [
        ("Daegu.", False), ("Busan.", True)]


@pytest.mark.parametrize(("question", "answer"), [
    ("Do you have any hobbies?", "Not really."), ("Where do you live?", "Far away."), ("Where does your sister live?", "Busan."),
    ("What's your sister's name?", "Mina."), ("Where do you live? And what do you do?", "Busan."), ("Where do you want to go?", "Busan."),
    ("How old are you?", "Old enough."), ("Where do you live?", "Why?"), ("What's your favourite colour?", "I don't have one."),
    ("동생 이름이 뭐예요?", "민수요"), ("어디 사세요?", "비밀이요."), ("어디 가세요?", "부산이요."),
    ("취미가 뭐예요?", "없어요."), ("취미가 뭐예요?", "글쎄요")])
def test_what_refuses_or_is_asked_of_others_states_nothing(question: str, answer: str) -> None:
    assert answered(question, answer) == []


def test_a_person_who_asks_is_answered_with_no_fact(memory: Memory) -> None:
    memory.add_conversation([{"role": "user", "content": "Where do you live?"}, {"role": "user", "content": "Busan."}], session="talk")
    memory.write("Where do you live?", role="assistant", session="one")
    memory.write("Busan.", session="another")
    assert residences(memory) == []


def test_one_question_is_asked_of_the_listener() -> None:
    assert asked_of_listener("Great! What do you do for a living?") == "occupation"
    assert asked_of_listener("What is your question about?") == asked_of_listener("Would you like to live in Busan?") == ""


def test_a_rejected_value_is_no_answer(memory: Memory) -> None:
    memory.companion.reject(relation="residence", value="Busan")
    for answer in ("Busan.", "Daegu."):
        memory.add_conversation([{"role": "assistant", "content": "Where do you live?"}, {"role": "user", "content": answer}], session="a")
    assert residences(memory) == ["Daegu"]
