"Amounts: which a question asks for, which a memory may hold, and what a search shows when the best can't hold it."
import pytest

from rlm import Memory
from rlm.search.amounts import asked_amount, may_hold_amount

ASKED = {
    "price": ["How much did the snow tires cost?", "how much is my rent these days", "What's the rent on our flat?",
        "What does the dentist charge?",
              "How much do I pay for parking?", "What did lunch cost?", "How much was the sofa?",
        "What is my salary?", "피아노 학원비 한 달에 얼마더라?",
              "월세 얼마야?", "코 수술비 얼마 나왔더라", "이번 달 관리비는?", "보험료가 얼마여"],
    "age": ["How old is Gravy?", "Gravy는 몇 살이에요?", "할머니 연세가 어떻게 되셔?", "우리 막내 나이?"],
    "hour": ["What time does the clinic close?", "At what time is yoga?", "병원 몇 시까지 해?", "수업은 몇 시야?"],
    "": ["How much does Mina like sushi?", "Which mistake cost me the exam?", "What did it cost me in the end?",
        "how much sleep do I need", "How much is left?",
         "얼마나 걸려?", "얼마 동안 끓여?", "얼마 전에 누가 왔지?", "What time zone is Seoul in?", "몇 시간 걸려?",
        "How many children does Ann have?",
         "Why did merchants pay twice?", "What do I pay attention to?", "누구 집이야?", "What time of year is it best?"]}
TELLS = [("price", "Rent's 820 but there's a yard."), ("price", "귀마개 맞췄는데 180유로 줌"),
        ("price", "보증금 3억에 월 70"), ("price", "Dinner was free."),
         ("price", "The vet was an arm and a leg."), ("price", "A new sail costs too much."),
         ("price", "The plumber charges sixty an hour."), ("price", "Kieran sells his bike for 220"),
        ("price", "밥값은 34만원 나왔어"), ("price", "월 1,340불"),
         ("price", "취소하면 전액 돌려준다"), ("price", "two hundred for the pair"),
         ("price", "sold at 480"), ("price", "offer: 85k"), ("price", "EUR50 a month"),
        ("age", "Gravy was born in spring"), ("age", "막내는 초등학생이야"),
         ("age", "She turns nine"), ("hour", "Pills after dinner"), ("hour", "The clinic closes at seven"),
        ("hour", "약은 식후에"), ("hour", "수업은 오후야")]
LACKS = [("price", "Snow tires on: Scotia Tire on Agricola, Nov 27, 8 in the morning. Ask for Wade."),
        ("price", "Surgery on 11 August, ward 7B, bed 3."),
         ("price", "코 수술 8월 11일 보라매병원"), ("price", "Boat licence renews every 1 May."),
        ("price", "We moved in 2021."), ("price", "월~금 9시 차량"),
         ("age", "We adopted a greyhound called Gravy."), ("age", "그레이비는 그레이하운드야"),
        ("hour", "The clinic is in Leeds."), ("hour", "고양이병원은 서교동에 있다")]


@pytest.mark.parametrize(("kind", "question"), [(kind, q) for kind, every in ASKED.items() for q in every])
def test_the_amount_that_a_question_asks_for_is_told_from_words_that_look_alike(kind: str, question: str) -> None:
    assert asked_amount(question) == kind


@pytest.mark.parametrize(("kind", "text"), TELLS)
def test_a_memory_that_may_tell_the_amount_counts_as_telling_it(kind: str, text: str) -> None:
    assert may_hold_amount(text, kind) and may_hold_amount(text * 100, kind)


@pytest.mark.parametrize(("kind", "text"), LACKS)
def test_dates_names_and_places_are_no_amount(kind: str, text: str) -> None:
    assert not may_hold_amount(text, kind)


@pytest.mark.parametrize(("text", "asked", "never_said"), [
    ("Lunch with Ann cost 23 euros.", "What did lunch with Ann cost?", "What did lunch with Ann cost Joe's sister in the end?"),
    ("내 월세는 70이야", "내 월세 얼마야?", ""),
    ("Snow tires: Scotia Tire, Nov 27, 8 in the morning.", "When do I get the snow tires?", "How much did the snow tires cost?"),
    ("고양이병원은 서교동에 있어", "고양이병원 어디 있어?", "고양이병원은 몇 시까지 해?"),
    ("We adopted a greyhound called Gravy.", "What is the greyhound called?", "How old is the greyhound?")])
def test_what_was_never_said_is_refused_and_what_was_said_is_found(text: str, asked: str, never_said: str) -> None:
    with Memory(":memory:", embedder="none") as memory:
        memory.write(text)
        memory.write("The boat is in the harbour, berth 4.")
        assert [h.text for h in memory.search(asked)][:1] == [text]
        if asked_amount(never_said) and not may_hold_amount(text, asked_amount(never_said)):
            refused = memory.search(never_said)
            assert not refused and refused.refused is not None and refused.refused <= 0.04
            assert memory.search(never_said, min_score=0)  # who asks for all gets it, marked as unlikely


def test_another_memory_that_tells_the_amount_keeps_the_search_answered() -> None:
    with Memory(":memory:", embedder="none") as memory:
        memory.write("The snow tires were fitted on Nov 27.")
        memory.write("Paid 480 for the snow tires.")
        assert "Paid 480 for the snow tires." in [h.text for h in memory.search("How much did the snow tires cost?")]
