"A denial of one thing of several leaves the rest: a memory is over when all that it says is."

import html
from collections.abc import Iterator

import pytest

from rlm.companion.pair_judge import says_more
from rlm.companion.statement import list_members
from rlm.core.clock import ManualClock
from rlm.search.embedding.base import choose_embedder
from rlm.service.memory import Memory

PART = [  # what was said, what denies a part of it, a question, and what is no longer true; empty: only a reader of both knows
    ("Rahim is allergic to nuts and eggs.", "Rahim is no longer allergic to eggs.", "What is Rahim allergic to?", "allergy eggs"),
    ("Paula works at Nordlys and at the museum.", "Paula left Nordlys.", "Where does Paula work?", "employer Nordlys"),
    ("Noor owns a boat and a van.", "Noor sold the van.", "Does Noor have a boat?", "owns a van"),
    ("Noor has a boat & a van.", "Noor sold the boat.", "What does Noor have?", "has a boat"),
    ("Eunji teaches chemistry and physics.", "Eunji no longer teaches physics.", "What does Eunji teach?", "teaches physics"),
    ("I take metformin and lisinopril.", "I stopped taking lisinopril.", "What medicine do I take?", "medication lisinopril"),
    ("I have Netflix and Disney subscriptions.", "I cancelled Netflix.", "Which subscriptions do I have?", "have Netflix"),
    ("Rahim plays chess and tennis.", "Rahim doesn't play tennis anymore.", "What does Rahim play?", "plays tennis"),
    ("I like tea, coffee and cocoa.", "I don't like coffee any more.", "Do I like tea?", "like coffee"),
    ("I drink tea as well as coffee.", "I gave up coffee.", "Do I drink tea?", "drink coffee"),
    ("My son plays football and the drums.", "My son gave up the drums.", "What does my son play?", "plays the drums"),
    ("I live in Seoul and Busan.", "I no longer live in Busan.", "Where do I live?", "residence Busan"),
    ("Asha lives in Pune and works at Tata.", "Asha left Tata.", "Where does Asha live?", "employer Tata"),
    ("I have two cars.", "I sold one of my cars.", "How many cars do I have?", ""),
    ("The lab has two centrifuges and a freezer.", "The lab's freezer broke down for good.", "Which equipment does the lab have?", ""),
    ("I'm learning Spanish and Portuguese.", "I quit Portuguese.", "Which language am I learning?", ""),
    ("나는 새우와 땅콩 알레르기가 있다", "이제 땅콩 알레르기가 없다", "나는 무슨 알레르기가 있어?", "allergy 땅콩"),
    ("나는 메트포르민과 리시노프릴을 먹는다", "이제 리시노프릴을 안 먹어", "내가 먹는 메트포르민은?", "eat 리시노프릴"),
    ("나는 커피랑 홍차를 좋아해", "이제 홍차는 안 좋아해", "나 커피 좋아해?", "like 홍차"),
    ("나는 새우도 땅콩도 못 먹어", "이제 땅콩 먹어", "나 새우 먹을 수 있어?", "eat 땅콩"),
    ("엄마는 혈압약이랑 당뇨약을 드셔", "엄마는 이제 당뇨약을 안 드셔", "엄마는 혈압약을 드셔?", "eat 당뇨약"),
    ("나는 딸기 및 키위 알레르기가 있어", "이제 키위 알레르기는 없어", "나 딸기 알레르기 있어?", "allergy 키위"),
    ("나는 강아지 두 마리를 키운다", "한 마리가 죽었다", "강아지 몇 마리 키워?", ""),
    ("다은이는 강아지 두 마리를 키운다", "다은이네 강아지 한 마리가 죽었다", "다은이는 강아지를 키워?", ""),
    ("나는 차가 두 대 있어", "차 한 대 팔았어", "나는 차가 몇 대 있어?", ""),
    ("민수는 피아노랑 기타를 배운다", "민수는 기타를 그만뒀다", "민수는 피아노를 배워?", ""),
    ("지우는 수학과 물리를 가르친다", "지우는 이제 물리를 안 가르친다", "지우는 수학을 가르쳐?", ""),
    ("나는 자전거와 오토바이가 있어", "오토바이 팔았어", "나는 자전거가 있어?", ""),
    ("나는 고양이하고 강아지를 키워", "강아지는 친구한테 보냈어", "나는 고양이를 키워?", ""),
    ("나는 요가와 수영을 해", "수영은 그만뒀어", "나는 요가를 해?", ""),
    ("Noor owns a boat and a bike.", "Noor swapped the boat for a kayak.", "What does Noor own?", "owns a boat"),
    ("I have yoga on Monday and Thursday.", "The Thursday yoga is cancelled.", "When do I have yoga?", ""),
    ("나는 월요일과 목요일에 요가를 해", "목요일 요가는 취소됐어", "나는 언제 요가를 해?", ""),
    ("Ben has asthma and hay fever.", "Ben's asthma is gone.", "Does Ben have hay fever?", ""),
    ("나는 메트포르민과 리시노프릴을 먹는다", "리시노프릴을 로사르탄으로 바꿨어", "나는 메트포르민을 먹어?", "")]
WHOLE = [
    ("Rahim is allergic to eggs.", "Rahim is no longer allergic to eggs."),
    ("Rahim is allergic to nuts and eggs.", "Rahim is no longer allergic to nuts and eggs."),
    ("Rahim is allergic to nuts and eggs.", "Rahim is no longer allergic to either."),
    ("Noor owns a boat and a van.", "Noor sold both."), ("Noor owns a boat and a van.", "Noor sold the van and the boat."),
    ("I take metformin and lisinopril.", "I stopped taking metformin and lisinopril."),
    ("I take metformin and lisinopril.", "I stopped taking both."), ("I like tea and coffee.", "I no longer like tea or coffee."),
    ("I live in Seoul and Busan.", "I moved to Jeju."), ("I work at Nordlys.", "I left Nordlys."),
    ("Rahim plays chess.", "Rahim doesn't play chess anymore."), ("I like rock and roll.", "I no longer like rock and roll."),
    ("Eunji teaches chemistry and physics.", "Eunji no longer teaches chemistry and physics."),
    ("나는 땅콩 알레르기가 있다", "이제 땅콩 알레르기가 없다"), ("나는 새우와 땅콩 알레르기가 있다", "이제 새우와 땅콩 알레르기가 없다"),
    ("나는 메트포르민과 리시노프릴을 먹는다", "이제 메트포르민과 리시노프릴을 안 먹어"),
    ("나는 메트포르민과 리시노프릴을 먹는다", "이제 둘 다 안 먹어"), ("나는 커피랑 홍차를 좋아해", "이제 커피랑 홍차를 안 좋아해"),
    ("나는 커피랑 홍차를 좋아해", "이제 둘 다 안 좋아해"), ("나는 피아노를 배운다", "피아노 그만뒀어"),
    ("나는 우유를 못 먹어", "이제 우유 먹어"),
    ("나는 차를 좋아해", "이제 차를 안 좋아해"), ("엄마는 혈압약을 드셔", "엄마는 이제 혈압약을 안 드셔")]


@pytest.fixture(scope="module")
def e5() -> object:
    pytest.importorskip("onnxruntime")
    return choose_embedder("e5")


@pytest.fixture(params=["none", "e5"])
def memory(request: pytest.FixtureRequest) -> Iterator[Memory]:
    model = "none" if request.param == "none" else request.getfixturevalue("e5")
    with Memory(":memory:", embedder=model, clock=ManualClock("2026-01-05")) as found:
        yield found


def told(memory: Memory, *said: str) -> list[str]:
    "Store memories, a month apart, and wait until their pairs are read."
    ids = []
    for text in said:
        ids.append(memory.write(text).id)
        memory.ctx.clock.advance(days=30)  # type: ignore[attr-defined]
    assert memory.embeddings.worker.wait(60)
    return ids


@pytest.mark.parametrize(("text", "denial", "question", "over"), PART)
def test_what_denies_a_part_leaves_the_rest_current_and_found(memory: Memory, text: str, denial: str, question: str, over: str) -> None:
    old, new = told(memory, text, denial)
    assert memory.get(old).valid_to is None and memory.superseded_by(new) == []
    found = {h.id: h.past for h in memory.search(question)}
    block, verdict = memory.context(question).text, memory.explain(question, old).verdict
    assert old in found and html.escape(text, quote=False) in block and "Found at rank" in verdict
    if over:
        assert found[old] == f"no longer true: {over}" and f"(no longer true: {over})" in block and f"no longer true: {over}" in verdict


@pytest.mark.parametrize(("text", "denial"), WHOLE)
def test_a_denial_of_all_of_it_ends_the_memory(memory: Memory, text: str, denial: str) -> None:
    old, new = told(memory, text, denial)
    assert memory.get(old).valid_to is not None and [r.id for r in memory.superseded_by(new)] == [old]
    assert old not in [h.id for h in memory.search(denial)] and text not in memory.context(denial).text


def test_members_that_are_denied_one_after_the_other_end_the_memory_with_the_last(memory: Memory) -> None:
    old, _, last = told(memory, PART[0][0], PART[0][1], "Rahim is no longer allergic to nuts.")
    assert memory.get(old).valid_to is not None
    memory.delete(last)
    assert memory.get(old).valid_to is None and [h.past for h in memory.search("Rahim allergic", k=5) if h.id == old] == [
        "no longer true: allergy eggs"]


@pytest.mark.parametrize(("said", "ended"), [
    (["I live in Seoul.", "I live in Seoul and Busan."], [False, False]),  # what is stated again is not over
    (["I live in Seoul and Busan.", "I live in Busan and Jeju."], [False, False]),
    (["I work at Nordlys and at the museum.", "I work at Tata."], [True, False]),
    (["I own a boat.", "I own a van and a bike.", "I sold both."], [False, True, False]),  # of the list, not of what was said before
    (["Rahim is allergic to nuts and eggs.", "Rahim is no longer allergic to cats."], [False, False])])
def test_a_list_replaces_and_is_replaced_by_its_members(memory: Memory, said: list[str], ended: list[bool]) -> None:
    assert [memory.get(id).valid_to is not None for id in told(memory, *said)] == ended


@pytest.mark.parametrize(("value", "members"), [
    ("nuts and eggs", 2), ("nuts, eggs, and milk", 3), ("eggs & milk", 2), ("tea or coffee", 2), ("Netflix as well as Disney", 2),
    ("Ben & Jerry's", 1), ("Oslo, Norway", 1), ("between 3 and 5", 1), ("one and a half", 1), ("Nordlys", 1),
    ("새우와 땅콩", 2), ("배와 사과", 2), ("피자랑 콜라", 2), ("물이랑 빵", 2), ("강아지하고 고양이", 2),
    ("빵 및 우유", 2), ("새우, 땅콩, 게", 3),
    ("새우도 땅콩도", 2), ("사과", 1), ("사과 주스", 1), ("사랑 노래", 1), ("안과 의사", 1), ("포도 주스", 1)])
def test_a_list_of_values_has_its_members(value: str, members: int) -> None:
    assert len(list_members(value)) == members


@pytest.mark.parametrize(("old", "new", "more"), [
    ("I own a boat and a van.", "The van is gone.", True), ("I own a boat and a van.", "Both are gone, the boat and the van.", False),
    ("I own a boat and a van.", "I moved house.", False), ("We keep three hens.", "One of the hens got out.", True),
    ("We keep three hens.", "We only have one of our hens left.", False), ("I drink two coffees a day.", "I drink tea now.", False),
    ("I own a mountain bike and a road bike.", "The road bike was stolen.", True),
    ("고양이 세 마리를 키워", "고양이 한 마리를 입양 보냈어", True), ("고양이 세 마리를 키워", "이제 한 마리만 키워", False),
    ("아침에 요가랑 수영을 해", "수영 수업이 없어졌어", True), ("아침에 수영을 해", "수영 수업이 없어졌어", False)])
def test_a_pair_of_texts_tells_whether_the_older_says_more(old: str, new: str, more: bool) -> None:
    assert says_more(old, new) is more


def test_a_member_of_a_list_loses_its_preposition_and_nothing_within() -> None:
    assert list_members("Wellington, what Ron sent and both that put us off") == ("Wellington", "what Ron sent", "that put us off")
