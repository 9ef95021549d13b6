"A question about what was is answered by what was true before the change, and any other by what is true now."
from collections.abc import Iterator

import pytest

from rlm import Memory
from rlm.core.clock import ManualClock
from rlm.search.embedding.base import choose_embedder
from rlm.search.query_features import asks_earlier

BESIDE = ["I like jazz on Sundays.", "The cat needs her pills at eight.", "엄마 생신은 3월 2일이야.", "My bike is a red Brompton.",
          "Tom's flat has a leak.", "강아지 이름은 보리야.", "Bought 3 bags of flour."]
CHATS = [
    (["The dentist is on May 3.", "The dentist moved to May 10."],
     {"When was the dentist originally?": "May 3", "When was the dentist before it moved?": "May 3", "When is the dentist?": "May 10"}),
    (["I work at Acme as a welder.", "I work at Globex now."],
     {"Where did I work before Globex?": "Acme", "What was my last job?": "Acme", "Where do I work?": "Globex"}),
    (["The rent is 500 a month.", "The rent went up to 550."],
     {"What was the rent before?": "500", "How much did the rent use to be?": "500", "What is the rent?": "550"}),
    (["I live in Oslo.", "I moved to Leeds on May 4."],
     {"Where did I live before Leeds?": "Oslo", "When did I move out of my old place?": "Leeds", "Where do I live?": "Leeds"}),
    (["My landlord is Mr Hale.", "New landlord: Mrs Okoro."], {"Who was my previous landlord?": "Hale", "Who is my landlord?": "Okoro"}),
    (["I drive a Fiat.", "Sold the Fiat, got a Skoda."],
     {"What car did I have before the Skoda?": "I drive a Fiat", "What car do I drive?": "Skoda", "When did I sell my old car?": "Sold"}),
    (["Standup is at 9:30 in room 2.", "Standup bumped to 10:00, same room.", "Standup now 11:15."],
     {"When was standup originally?": "9:30", "When is standup?": "11:15"}),
    (["I need my passport before the trip to Peru.", "The trip to Peru moved to June."],
     {"What do I need before the trip to Peru?": "passport"}),
    (["회의는 월요일 10시야.", "회의 수요일로 변경됐어."], {"회의 원래 언제였어?": "월요일", "회의 언제야?": "수요일"}),
    (["나는 삼성에서 일해.", "카카오로 이직했어."], {"전 직장이 어디였지?": "삼성", "나 어디서 일해?": "카카오"}),
    (["우리 집은 마포 오피스텔이고 월세 70이야.", "분당으로 이사했어. 월세 90."],
     {"지난 집 월세가 얼마였지?": "70", "전 집은 어디였어?": "마포", "월세 얼마야?": "90"}),
    (["부산에서 살아.", "대전으로 이사했어."],
     {"이사하기 전에 어디 살았지?": "부산", "부산에서 언제 이사했지?": "대전", "어디 살아?": "대전"}),
    (["월급은 300이야.", "월급이 340으로 올랐어."], {"월급 오르기 전에 얼마였어?": "300", "월급 얼마야?": "340"}),
    (["헬스장은 강남역점 다녀.", "헬스장 잠실점으로 옮겼어."], {"옛날에 다니던 헬스장 어디였더라?": "강남", "헬스장 어디 다녀?": "잠실"})]
ASKED = [(n, question) for n, (_, asked) in enumerate(CHATS) for question in asked]


def told(texts: list[str], model: str) -> Memory:
    clock = ManualClock("2026-04-01T09:00:00Z")
    memory = Memory(":memory:", embedder=choose_embedder(model) if model != "none" else model, clock=clock)
    for text in [*BESIDE[:4], texts[0], *BESIDE[4:], *texts[1:]]:
        memory.write(text)
        memory.embeddings.worker.wait()
        clock.advance(days=2)
    return memory


@pytest.fixture(scope="module")
def memories() -> Iterator[list[Memory]]:
    pytest.importorskip("onnxruntime", reason="needs e5: pip install 'rlm[e5]'")
    found = [told(texts, "e5") for texts, _ in CHATS]
    yield found
    for memory in found:
        memory.close()


@pytest.mark.parametrize(("chat", "question"), ASKED)
def test_what_was_and_what_is_are_told_apart(memories: list[Memory], chat: int, question: str) -> None:
    assert CHATS[chat][1][question] in memories[chat].search(question)[0].text


def test_by_words_alone_what_has_ended_stands_before_what_ended_it() -> None:
    with told(["I work at Acme as a welder.", "I work at Globex now."], "none") as memory:
        first, second = memory.search("Where did I work before Globex?")[:2]
        assert first.text == "I work at Acme as a welder." and first.placed_by == "was true before a memory below"
        assert first.past.startswith("no longer true") and second.text == "I work at Globex now." and first.relevance == second.relevance
        assert memory.search("Where did I work before Globex?", 1)[0].id == first.id
        assert memory.explain("Where did I work before Globex?", first.id).rank == 1


def test_what_was_is_asked_for_by_a_word_of_the_past_and_no_time() -> None:
    for question in ("When was the dentist originally?", "What did the rent use to be?", "What was my last job?", "전 직장이 어디였지?",
                     "이사하기 전에 어디 살았지?", "처음 팀장은 누구였지?"):
        assert asks_earlier(question), question
    for question in ("What should I pack before the trip?", "시험 전에 뭐 해야 해?", "When did I leave my old job?",
                     "전 직장 언제 그만뒀지?", "What did I do last week?", "한 달 전에 다니던 회사가 어디야?",
                     "Where did I live in 2021?", "When is the dentist?"):
        assert not asks_earlier(question), question
