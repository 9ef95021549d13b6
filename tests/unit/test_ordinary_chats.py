"What people type in ordinary chats: lower case, fragments and notes are kept, mended and ended as whole sentences are."
import pytest

from rlm import Memory
from rlm.companion.policy import MemoryPolicy
from rlm.core.clock import ManualClock

KEPT = [
    "doc says my knee is messed up so no more running", "the scan said my shoulder is torn", "mia's hosting book club this week",
    "lena's teacher is Ms. Ortiz", "i usually chew gum when it gets bad", "when it rains i take the bus to work",
    "if my alarm doesnt go off my wife wakes me up", "의사가 나 무릎 연골이 닳았대", "매일 아침에 러닝해", "우유 먹으면 배 아파",
    "나 땡기면 껌 씹어", "하준이 일곱 살 됐어", "독서 모임 이번주는 미아네서", "무릎 나가서 이제 러닝 대신 수영 다님", "금연 3일차"]
PASSED = [
    "everybody says my cooking is bad", "someone told me i'm a genius", "it's hosting season", "today's been a mess", "let's go already",
    "when i was told i laughed so hard", "if i was president i'd ban mondays", "when are we leaving", "when is my flight", "그 정도면 됐어",
    "내가 대통령이면 월요일을 없앤다", "내가 부자면 일 안 해", "이러면 곤란해", "쌍둥이 있으면 좋겠다", "짐 싸기 싫다", "이제 진짜 자야지"]


@pytest.mark.parametrize("turn", KEPT)
def test_a_fragment_that_tells_of_a_life_is_kept(turn: str) -> None:
    assert MemoryPolicy().decide(turn).save


@pytest.mark.parametrize("turn", PASSED)
def test_a_fragment_that_looks_like_one_is_passed_over(turn: str) -> None:
    assert not MemoryPolicy().decide(turn).save


CHANGED = [  # turns in their order, a question, and words of what answers it, which the first hit has; the first turn is over
    (["hey so im meeting priya for lunch on wednesday at noon", "we picked that thai place",
      "ok priya can't do wednesday, we're doing friday now"], "When am I having lunch with Priya?", "friday"),
    (["haircut is on saturday at 10", "saturday doesn't work for them, so sunday at 11"], "When is my haircut?", "sunday"),
    (["flight to denver is on the 12th at 6am", "they cancelled my flight, rebooked for the 13th at 9"], "When is my flight?", "13th"),
    (["moving into the new apartment on june 1", "move in got pushed to june 8"], "When do I move in?", "june 8"),
    (["rent is 1450 a month", "landlord just told me the rents going up to 1520"], "How much is my rent?", "1520"),
    (["my boss is called Dana, seems nice", "so turns out dana is leaving, marcus is taking over as my boss"], "Who's my boss?", "marcus"),
    (["lena's teacher is Ms. Ortiz", "oh wait no its Ms. Ortega, i mixed them up"], "Who is Lena's teacher?", "Ortega"),
    (["i drive a 2014 corolla", "finally sold the corolla, got a used outback"], "What car do I drive?", "outback"),
    (["I'm vegetarian.", "I eat fish these days, so not really vegetarian any more"], "Am I vegetarian?", "fish"),
    (["We're off to Rome in May.", "Rome's off, we're going to Lisbon instead."], "Where are we going in May?", "Lisbon"),
    (["나 이번주 토요일에 지민이랑 점심 먹기로 함", "지민이 토욜 안된대서 일요일로 바꿈"], "지민이랑 점심 언제야?", "일요일"),
    (["감자 병원 예약 월요일 3시", "병원에서 월요일 안된다고 화요일 11시로 바꿔줌"], "감자 병원 예약 언제야?", "화요일"),
    (["부산 가는 기차 12일 아침 7시야", "기차 취소되서 13일 9시꺼로 다시 끊음"], "부산 가는 기차 언제야?", "13일"),
    (["6월 1일에 새집으로 이사해", "이사 6월 8일로 밀림"], "이사 언제야?", "8일"),
    (["월세 65만원이야", "집주인이 월세 70으로 올린대"], "월세 얼마야?", "70"),
    (["팀장님 이름은 정유진", "유진님 퇴사하셔서 팀장 강민수님으로 바뀜"], "우리 팀장 누구야?", "강민수"),
    (["서연이 담임은 김미정 쌤", "아 아니다 김미영 쌤이다 헷갈렸어"], "서연이 담임 누구야?", "김미영"),
    (["6월에 제주도 가기로 했어", "제주도는 취소하고 부산 가기로 했어"], "6월에 어디 가?", "부산"),
]
STAYS = [  # an older turn, and a newer one that leaves it as it was
    ("Dentist is Thursday at 2", "I can't do Friday, is Saturday ok"),
    ("my flight is on the 12th at 6am", "mom's flight got cancelled, rebooked for the 13th"),
    ("rent is 1450 a month", "landlord just told me the gym fees are going up to 60"),
    ("my roommate's name is Jonah", "Kira is my neighbour now"),
    ("my boss is called Dana", "marcus is taking over as my landlord"), ("i have a camera stand", "sold the camera"),
    ("We're off to Rome in May.", "The heating's off, sitting in the kitchen instead"),
    ("Lena's teacher is Ms. Ortiz", "no way, i mixed up the cakes"),
    ("치과 목요일 2시야", "지민이 토욜 안된대서 일요일로 바꿈"), ("5월에 로마 가기로 했어", "회식은 취소하고 집에 가기로 했어"),
    ("부산 기차 12일 7시야", "대전 기차 13일 9시야"), ("월세 65만원이야", "집주인이 관리비 7만원으로 올린대"),
    ("우리 팀장님은 박소연님이야", "우리 집주인은 김도현님이야"), ("서울 가는 버스 8시야", "부산 가는 버스 9시야")]


@pytest.mark.parametrize(("turns", "question", "answer"), CHANGED)
def test_a_change_told_in_passing_ends_what_was_told_before(turns: list[str], question: str, answer: str) -> None:
    with Memory(":memory:", embedder=None, clock=(clock := ManualClock("2026-11-02T09:00:00Z"))) as memory:
        for turn in turns:
            assert memory.companion.observe(turn).memory, turn
            clock.advance(seconds=120)
        hits = memory.search(question, 3)
        assert answer in hits[0].text
        assert all(hit.past for hit in hits if hit.text == turns[0])


@pytest.mark.parametrize(("old", "new"), STAYS)
def test_a_change_of_something_else_leaves_it(old: str, new: str) -> None:
    with Memory(":memory:", embedder=None) as memory:
        memory.write(old)
        memory.write(new)
        assert [hit.past for hit in memory.search(old, 5) if hit.text == old] == [""]
