"A search says how likely its hits answer, returns nothing when the best is unlikely, and cuts where it is told to."
import pytest

from rlm import Memory
from rlm.core.errors import InvalidInput
from rlm.search.embedding.base import choose_embedder
from rlm.search.explainer import BY_WORDS, FLOOR, UNKNOWN, WITH_E5

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
        some = memory.search("Is the dentist where the key is?", min_score=0.3)
        assert [h.id for h in some] == [h.id for h in everything if h.relevance >= 0.3] and len(some) < len(everything)
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
