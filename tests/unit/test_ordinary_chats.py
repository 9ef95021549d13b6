"What people type in ordinary chats: lower case, fragments and notes are kept, mended and ended as whole sentences are."
import pytest

from rlm.companion.policy import MemoryPolicy

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
