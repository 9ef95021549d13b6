"A search says how likely its hits answer, returns nothing when the best is unlikely, and cuts where it is told to."
import pytest

from rlm import Memory
from rlm.core.errors import InvalidInput
from rlm.search.embedding.base import choose_embedder
from rlm.search.relevance import BY_WORDS, FLOOR, UNKNOWN, WITH_E5

FACTS = {"en": ["I am allergic to peanuts.", "The dentist is on 12 March at 8:40.", "I moved to Busan in May.",
                "The spare key is with Mrs. Okafor."],
         "ko": ["나는 땅콩 알레르기가 있어.", "치과 예약은 3월 12일 8시 40분이야.", "5월에 부산으로 이사했어.",
                "여벌 열쇠는 옆집 아주머니가 갖고 있어."]}
ASKED = {"en": "When is the dentist?", "ko": "치과 예약은 언제야?"}
FOREIGN = {"en": "zebra quantum", "ko": "얼룩말 양자역학"}


@pytest.fixture(scope="module")
def e5() -> object:
    pytest.importorskip("onnxruntime", reason="needs e5: pip install 'rlm[e5]'")
    return choose_embedder("e5")


def filled(language: str, model: object) -> Memory:
    memory = Memory(":memory:", embedder=model)
    for text in FACTS[language]:
        memory.write(text)
    return memory


@pytest.mark.parametrize("language", ["en", "ko"])
def test_an_answer_is_likely_and_what_was_never_said_is_not_answered(language: str, e5: object) -> None:
    with filled(language, e5) as memory:
        hits = memory.search(ASKED[language])
        assert hits.confident and hits[0].text == FACTS[language][1] and hits.refused is None
        assert [h.relevance for h in hits] == sorted((h.relevance for h in hits), reverse=True)
        assert hits[0].as_dict()["relevance"] == hits[0].relevance and "relevance" in repr(hits)
        nothing = memory.search(FOREIGN[language])
        assert len(nothing) == 0 and not nothing.confident
        if nothing.refused is not None:
            assert nothing.refused < FLOOR and "min_score=0" in repr(nothing)
            assert len(memory.search(FOREIGN[language], min_score=0)) > 0


def test_a_least_relevance_cuts_each_hit(e5: object) -> None:
    with filled("en", e5) as memory:
        everything = memory.search("Is the dentist where the key is?", min_score=0)
        assert len(everything) > 1
        least = ((everything[0].relevance or 0) + (everything[-1].relevance or 0)) / 2
        some = memory.search("Is the dentist where the key is?", min_score=least)
        assert [h.id for h in some] == [h.id for h in everything if h.relevance >= least] and 0 < len(some) < len(everything)
        assert len(memory.search("When is the dentist?", min_score=1)) == 0


def test_by_words_alone_there_is_no_floor() -> None:
    with filled("en", "none") as memory:
        assert len(memory.search("zebra quantum")) == 0
        [hit] = memory.search("Okafor")
        assert 0 < hit.relevance < 1


@pytest.mark.parametrize("model", ["none", "e5"])
@pytest.mark.parametrize(("told", "asked"), [
    ("Order {} was shipped on Tuesday.", "When was order {} shipped?"), ("Flight {} leaves at 13:05.", "When does flight {} leave?"),
    ("주문 {}는 화요일에 발송됐어.", "주문 {} 언제 발송됐어?"), ("{}호가 시끄럽다고 했어.", "{}호가 뭐라고 했어?")])
def test_a_thing_whose_number_no_memory_holds_is_unknown(told: str, asked: str, model: str, e5: object) -> None:
    known, other = ("KE907", "KE652") if "Flight" in told else ("4482", "4471")
    with filled("en", e5 if model == "e5" else model) as memory:
        memory.write(told.format(known))
        memory.write("나는 땅콩 알레르기가 있어.")
        assert memory.search(asked.format(known))[0].text == told.format(known)
        nothing = memory.search(asked.format(other))
        assert len(nothing) == 0 and nothing.refused == UNKNOWN and not nothing.confident
        assert memory.search(asked.format(other), min_score=0)[0].relevance == UNKNOWN


def test_an_unmeasured_model_and_the_past_have_no_relevance() -> None:
    with filled("en", "none") as memory:
        for wrong in (-0.1, 1.5, "half", True):
            with pytest.raises(InvalidInput):
                memory.search("dentist", min_score=wrong)
        with pytest.raises(InvalidInput, match="min_score"):
            memory.search("dentist", min_score=0.5, as_of="2020-01-01")
        assert memory.search("dentist", as_of=memory.recent(1)[0].updated_at)[0].relevance is None


def test_evidence_raises_the_probability() -> None:
    for model in (WITH_E5, BY_WORDS):
        assert model.probability(0.9, 0.4, 0, 100) > model.probability(0.2, 0.4, 0, 100) > model.probability(0.2, 0.4, 0.5, 100)
        assert model.probability(0.5, 0.4, 0, 100) > model.probability(0.5, 0.4, 0, 10_000)
        assert model.probability(0.5, 0.4, 0, 0) == model.probability(0.5, 0.4, 0, 30)
    assert WITH_E5.probability(0, 0.6, 0, 100) > WITH_E5.probability(0, 0.2, 0, 100)


def test_who_asks_for_a_person_and_is_no_word_of_the_answer() -> None:
    with Memory(":memory:", embedder="none") as memory:
        memory.write_many([{"id": "kids", "text": "We have two kids: Tobi, who is 6, and Zainab, who is 3."},
                           {"id": "vet", "text": "The boss of the clinic sees our cat on Tuesdays at noon, beside the garden."}])
        hits = memory.search("who is the boss")
        assert [h.id for h in hits] == ["vet"] and memory.search("Who?")[0].id == "kids"  # nothing else is asked for


PLAIN = {"en": ["My sister Nadia lives in Porto and works as a vet.", "My blood type is O negative.", "My brother hates olives.",
                "Derek next door has the spare key, he lives at no. 41.", "Mum's birthday is on 3 May.",
                "The router is on the shelf in the hall.",
                "Priya's phone number is 0113 496 0735.", "The bike lock is 4471.", "Our landlord, Mr Feeney, answers texts only.",
                "My passport is in the blue folder.", "Omar earns 3,900 a month.", "I wear size 39 shoes."],
         "ko": ["언니는 대전에 살고 수의사로 일해.", "내 혈액형은 O형이야.", "오빠는 올리브를 싫어해.",
                "옆집 김 씨가 여벌 열쇠를 갖고 있어.", "엄마 생신은 5월 3일이야.",
                "공유기는 현관 선반에 있어.", "수진이 전화번호는 010-4960-0735야.", "자전거 자물쇠는 4471이야.", "집주인은 문자만 받아.",
                "여권은 파란 서류철에 있어.", "민호 월급은 390만 원이야.", "나는 신발 240 신어."]}
NOT_TOLD = {"en": ["What is Nadia's blood type?", "what's my brother's blood type", "When is my brother's birthday?", "When's my birthday?",
                   "What is Derek's phone number?", "What is the wifi password?", "landlord phone number", "What is my passport number?"],
            "ko": ["언니 혈액형이 뭐야?", "오빠 생일이 언제야?", "내 생일이 언제야?", "옆집 김 씨 전화번호 뭐야?",
                   "우리 집 비밀번호 뭐야?", "집주인 전화번호가 뭐지?",
                   "내 여권 번호 뭐야?"]}
TOLD = {"en": {"What is my blood type?": 1, "When is my mum's birthday?": 4, "When is mums birthday?": 4,
               "What is Priya's phone number?": 6,
               "Do you remember Prya's phone number?": 6, "What's the bike lock combination?": 7, "What is Omar's salary?": 10,
               "What is my shoe size?": 11, "Where is my passport?": 9},
        "ko": {"내 혈액형 뭐야?": 1, "엄마 생신이 언제지?": 4, "어머니 생일 언제야?": 4, "수진이 전화번호 뭐야?": 6,
               "수진 연락처 알려줘": 6,
               "자전거 자물쇠 비밀번호 뭐야?": 7, "민호 월급 얼마야?": 10, "내 신발 사이즈 뭐야?": 11, "여권 어디 있어?": 9}}


@pytest.mark.parametrize("language", ["en", "ko"])
def test_an_attribute_that_no_memory_tells_of_the_person_is_not_answered_by_a_neighbour(language: str, e5: object) -> None:
    with Memory(":memory:", embedder=e5) as memory:
        for text in PLAIN[language]:
            memory.write(text)
        for question in NOT_TOLD[language]:
            for k in (1, 5):
                nothing = memory.search(question, k)
                assert (len(nothing), nothing.refused) == (0, UNKNOWN), question
            assert memory.search(question, min_score=0)[0].relevance == UNKNOWN
            assert not memory.context(question).used, question
        for question, n in TOLD[language].items():
            assert memory.search(question, 1)[0].text == PLAIN[language][n], question


@pytest.mark.parametrize("other", ["The grant number is NRF-2024-8831.", "The room number of the seminar is 212.",
                                   "송장 번호는 2024-8831이다"])
def test_a_number_of_another_thing_undoes_no_refusal(other: str) -> None:
    with Memory(":memory:", embedder="none") as memory:
        memory.write_many(["Dr. Hanae Okafor runs the sleep lab.", "Bilal drives a green Skoda.", other])
        for asked in ("What is Dr. Okafor's phone number?", "Hanae 전화번호가 뭐야?", "What is Bilal's passport number?"):
            assert not memory.search(asked), asked
        assert memory.search(other)[0].text == other


@pytest.mark.parametrize("model", ["none", "e5"])
def test_a_turn_that_only_asks_gives_way_to_its_reply(model: str, e5: object) -> None:
    turns = [("flat", "Omar", "Welcome back. Did you find a flat?"), ("street", "Sena", "Yes, on Calle Mayor 14."),
             ("nuts", "Sena", "오마르는 땅콩 못 먹지?"), ("walnut", "Omar", "아니, 나 땅콩은 괜찮고 호두만 안 돼.")]
    with Memory(":memory:", embedder=e5 if model == "e5" else model) as memory:
        memory.add_conversation([{"id": i, "speaker": who, "text": text} for i, who, text in turns])
        for question, reply, asks in (("오마르는 뭘 못 먹어?", "walnut", "nuts"), ("Which floor is the flat on?", "street", "flat")):
            for k in (1, 3):
                hits = memory.search(question, k)
                assert [h.id for h in hits][:2] == [reply, asks][:k] and not hits.confident, question
                assert abs(sum(sum(p.values()) for p in hits[0].parts.values()) - hits[0].score) < 1e-6
            assert memory.explain(question, reply).rank == 1 and memory.explain(question, asks).rank == 2
        assert memory.search("What did Omar ask about the flat?")[0].id == "flat"


def test_a_question_without_a_reply_stays_first_and_is_less_sure() -> None:
    with Memory(":memory:", embedder="none") as memory:
        memory.add_conversation([{"id": "asks", "speaker": "Omar", "text": "Did you find a flat?"}])
        alone, = memory.search("Which floor is the flat on?")
        memory.write("Did you find a flat?", id="written")
        assert alone.id == "asks" and 0 < alone.relevance < .5


@pytest.mark.parametrize(("told", "asked", "other"), [
    ("My brother lives in Leeds.", "Where does my brother live?", "Where does my sister live?"),
    ("My wife works at Acme.", "Where does my wife work?", "Where does my husband work?"),
    ("장모님은 대전에 사셔.", "장모님은 어디 사셔?", "장인어른은 어디 사셔?"),
    ("우리 형은 개발자야.", "형 직업이 뭐야?", "누나 직업이 뭐야?")])
def test_what_is_told_of_one_relative_answers_nothing_about_another(told: str, asked: str, other: str) -> None:
    with Memory(":memory:", embedder="none") as memory:
        memory.write_many([told, "The train to Bath leaves at nine.", "The bread is in the oven.", "자전거는 지하실에 있다."])
        assert memory.search(asked)[0].text == told and not memory.search(other)


def test_an_hour_is_no_size() -> None:
    with Memory(":memory:", embedder="none") as memory:
        memory.write_many(["My dentist is on Tuesday at 3.", "The bread is in the oven.", "Nadia wears 38."])
        assert not memory.search("What is the dentist's shoe size?")
        memory.write("The dentist's shoe size is 44.")
        assert "44" in memory.search("What is the dentist's shoe size?")[0].text
