"""What is told as true ends what was true before; stories, dreams, rumours and what is said of somebody else end nothing."""
from collections.abc import Sequence
from pathlib import Path

import pytest

from rlm import Memory
from rlm.companion.english import english_introduction
from rlm.companion.fact_extraction import is_untrue, text_facts
from rlm.companion.korean import korean_introduction
from rlm.companion.policy import MemoryPolicy, importance
from rlm.companion.supersession import DENIED
from rlm.companion.value_equality import replaced_part_of_time
from rlm.core.clock import ManualClock
from rlm.service.proposals import dismiss_proposal, marked_as_doubted, open_proposals

ENGLISH = ("I live in Seoul.", "I work at Globex.", "I'm married.", "I'm a nurse.")
KOREAN = ("나는 서울에 살아.", "나는 네이버에서 일해.", "나는 결혼했어.", "나는 개발자야.")


def ended(folder: Path, told: Sequence[str], session: bool = False) -> list[str]:
    "The facts that the last of some texts ends."
    with Memory(folder / "m.db", embedder=None, clock=(clock := ManualClock())) as memory:
        for text in told:
            if session:
                memory.add_conversation([{"role": "user", "content": text}], session="s")
            else:
                memory.write(text)
            clock.advance(seconds=60)
        facts = memory.ctx.storage.facts.of(range(1, len(told)))
        return [f"{f.relation} {f.value}" for found in facts.values() for f in found if f.valid_to]


@pytest.mark.parametrize("text", [
    "누나 이름은 지은이고 부산에 살아", "남편 이름은 준호인데 삼성에서 일해요", "아내 이름은 유리이고 간호사야",
    "제 친구 이름은 지은이고 부산에 살아요",
    "우리 형 이름은 민수이며 대구에 산다", "여동생 이름은 하은이라고 하는데 카카오에 다녀", "사촌 이름은 준서인데 부산에 살아",
    "룸메이트 이름은 철수인데 카카오에서 일해",
    "팀장님 성함은 이정민이고 부산에 살아요", "친구 이름은 수진이야. 부산에 살아.", "누나 생일은 5월 3일이고 부산에 살아",
    "민수 직업은 의사이고 부산에 살아"])
@pytest.mark.parametrize("session", [False, True])
def test_an_introduction_of_somebody_ends_nothing_of_mine(text: str, session: bool, tmp_path: Path) -> None:
    assert ended(tmp_path, [*KOREAN, text], session) == []


@pytest.mark.parametrize("text", [
    "내가 부산에 산다는 소문이 있는데 사실이 아니야", "내가 네이버에서 잘렸다는 소문이 있는데 사실이 아니야",
    "내가 이혼했다는 소문이 돌고 있어", "내가 부산에 산다는 건 오해야",
    "사람들이 내가 부산에 사는 줄 알아", "내 소설에서 나는 부산에 살아", "게임 속에서 나는 의사야", "나는 꿈속에서 부산에 살아",
    "내가 네이버를 그만뒀다는 건 헛소문이야",
    "내가 부산으로 이사했다는 말은 거짓이야", "연극에서 나는 이혼했어", "나는 부산으로 이사했어. 농담이야", "다들 내가 퇴사한 줄 알아",
    "In my novel I live in Busan", "In the play I'm divorced", "Rumour has it I moved to Busan. Nonsense.", "In the game I'm a doctor",
    "I'm divorced in the play",
    "They think I moved to Busan", "If I lived in Busan I'd surf", "My character lives in Busan", "Would you believe I moved to Busan",
    "In D&D I'm a doctor",
    "Supposedly I moved to Busan", "I moved to Busan. Just kidding!", "There's a rumour I quit Globex.", "In my last dream, I'm divorced",
    "I live in Busan in my novel"])
def test_what_is_not_told_as_true_ends_nothing(text: str, tmp_path: Path) -> None:
    assert is_untrue(text) or not text_facts(text).statements
    assert ended(tmp_path, [*(ENGLISH if text.isascii() else KOREAN), text]) == [] and (importance(text).unreal or not is_untrue(text))


@pytest.mark.parametrize(("before", "text"), [
    ("나는 서울에 살아.", "영화를 보고 왔어. 나는 이제 부산에 살아"), ("나는 네이버에서 일해.", "나는 게임 회사에서 일해"),
    ("나는 서울에 살아.", "제 생일은 5월 3일이고 부산에 살아요"),
    ("나는 서울에 살아.", "누나 이름은 지은이고 나는 부산에 살아"), ("나는 개발자야.", "우리 회사 이름은 한빛이고 나는 디자이너야"),
    ("나는 서울에 살아.", "나 수영할 줄 알아. 그리고 부산으로 이사했어"),
    ("I live in Seoul.", "I moved to Busan. It's like a dream"), ("I work at Globex.", "I work at Initech, in the game industry"),
    ("I live in Seoul.", "In the end I moved to Busan"), ("I'm married.", "I'm divorced. Everyone thinks it was sudden"),
    ("나는 땅콩 알레르기가 있어", "검사해 보니 땅콩 알레르기가 아니래"), ("나는 땅콩 알레르기가 있어",
    "병원에서 땅콩 알레르기 아니라고 했어"),
    ("나는 땅콩 알레르기가 있어", "의사가 그러는데 땅콩 알레르기 없대"), ("나는 땅콩 알레르기가 있어",
    "알고 보니 땅콩 알레르기가 아니더라"),
    ("I work at Songdo High School", "I quit Songdo High and start at LG Chem on July 1"), ("I work at Samsung Electronics",
    "I left Samsung"),
    ("나는 삼성전자에서 일해", "나는 삼성 그만뒀어"), ("나는 송도고등학교에서 일해", "나는 송도고 그만뒀어")])
def test_what_is_told_as_true_ends_what_was_true_before(before: str, text: str, tmp_path: Path) -> None:
    assert ended(tmp_path, [before, text])


@pytest.mark.parametrize(("before", "text"), [
    ("나는 땅콩 알레르기가 있어", "민수는 땅콩 알레르기가 아니래"), ("나는 땅콩 알레르기가 있어", "동생이 땅콩 알레르기가 아니래"),
    ("나는 땅콩 알레르기가 있어", "새우 알레르기가 아니래"),
    ("I work at Songdo High School", "I quit Songdo gym"), ("I like Songdo Park", "I quit Songdo"), ("나는 삼성전자에서 일해",
    "민수는 삼성 그만뒀어"),
    ("I work at Samsung Electronics", "My brother quit Samsung")])
def test_what_is_over_for_another_or_of_another_ends_nothing(before: str, text: str, tmp_path: Path) -> None:
    assert ended(tmp_path, [before, text]) == []


@pytest.mark.parametrize(("text", "name"), [
    ("안녕하세요, 박서준입니다", "박서준"), ("안녕하세요! 박서준입니다.", "박서준"), ("저는 박서준이에요", "박서준"), ("나는 박서준이야",
    "박서준"), ("나 서준이야", "서준"),
    ("저는 김지우예요", "김지우"), ("안녕하세요 저는 이하늘입니다", "이하늘"), ("This is Hannah", "Hannah"), ("Hi, this is Hannah.",
    "Hannah"),
    ("Hi all! Hannah here.", "Hannah"), ("I'm Hannah", "Hannah"), ("Call me Hannah", "Hannah"), ("It's Hannah again", "Hannah")])
def test_a_self_introduction_is_found_first_when_the_name_is_asked_for(text: str, name: str, tmp_path: Path) -> None:
    assert [s.value for s in text_facts(text).statements if s.relation == "name"] == [name]
    dog, question = (("우리 강아지 이름은 초코야", "내 이름이 뭐야?") if not text.isascii() else ("My dog's name is Biscuit",
    "What is my name?"))
    with Memory(tmp_path / "m.db", embedder=None) as memory:
        memory.write(text)
        memory.write(dog)
        assert memory.search(question)[0].text == text


@pytest.mark.parametrize("text", [
    "나는 학생이야", "나는 여학생이야", "저는 공무원이에요", "나는 시인이야", "안녕하세요, 서울역입니다", "나는 한국인이야", "나 주민이야",
    "저는 변호사예요", "나 최고야", "나는 고양이야",
    "저는 임산부예요", "나는 장남이야", "나 강남이야", "저는 신입이에요", "나 성인이야", "나 우울증이야", "나는 유부남이야",
    "나는 이민자야", "저는 오늘 휴가입니다",
    "I'm tired", "This is great", "This is Great!", "This is my sister", "This is Hannah's book", "Same here", "Nobody here",
    "Snow here today", "I'm Korean",
    "Call me later", "Call me when you get home", "This is Monday"])
def test_a_state_or_a_group_is_no_name(text: str) -> None:
    assert [str(s) for s in text_facts(text).statements if s.relation == "name"] == []
    assert not (korean_introduction(text) or english_introduction(text))


@pytest.mark.parametrize(("told", "question", "over"), [
    (["8월 3일 오후 2시에 이사업체랑 상담이 있어", "이사업체 상담은 8월 5일로 미뤄졌어, 시간은 그대로"], "이사업체 상담 언제야?",
    "8월 3일"),
    (["The dentist is on Tuesday at 3", "The dentist moved to Friday"], "When is the dentist?", "Tuesday"),
    (["The dentist is on Tuesday at 3", "The dentist is at 5 now"], "When is the dentist?", "at 3"),
    (["치과는 화요일 3시야", "치과는 5시로 바뀌었어"], "치과 언제야?", "3시"), (["회의는 화요일 3시야", "회의는 금요일로 옮겨졌어"],
    "회의 언제야?", "화요일"),
    (["My exam is on May 3 at 2 pm", "My exam was moved to May 5, same time"], "When is my exam?", "May 3"),
    (["The dentist is on Tuesday at 3", "The dentist is on Friday at 4"], "When is the dentist?", "Tuesday at 3")])
def test_of_a_time_only_the_part_that_changes_is_over(told: list[str], question: str, over: str, tmp_path: Path) -> None:
    with Memory(tmp_path / "m.db", embedder=None) as memory:
        memory.add_conversation([{"role": "user", "content": text} for text in told], session="s")
        first, second = memory.search(question)[:2]
        assert (first.text, second.text) == (told[1], told[0]) and f"time {over}" in second.past
        assert [f.value for f in memory.ctx.storage.facts.of([1])[1] if f.valid_to] == [over]
        memory.delete(memory.search(question)[0].id)
        assert not any(f.valid_to for f in memory.ctx.storage.facts.of([1])[1]), "what is deleted has ended nothing"


def test_a_moment_is_taken_apart_where_it_names_both_a_day_and_an_hour() -> None:
    assert replaced_part_of_time("Tuesday at 3", "Friday") == ("Tuesday", "at 3")
    assert replaced_part_of_time("8월 3일 오후 2시", "3시 반") == ("오후 2시", "8월 3일")
    assert replaced_part_of_time("Tuesday", "Friday") == replaced_part_of_time("Tuesday at 3", "Friday at 3") == ("", "")


@pytest.mark.parametrize(("held", "text"), [
    ("I'm vegetarian.", "I never said I was vegetarian"), ("저는 채식해요", "저 채식한다고 한 적 없어요"),
    ("My brother is called Jun.", "That's not true, I don't have a brother"), ("우리 형 이름은 민수야",
    "그건 사실이 아니야, 나는 형이 없어"),
    ("나는 의사야", "저 의사라고 한 적 없는데요"), ("I live in Busan.", "Who told you I live in Busan?"), ("나는 부산에 살아",
    "나는 부산에 산다고 말한 적 없어"),
    ("I'm allergic to peanuts", "No, I never told you I was allergic to peanuts"), ("I have a dog", "That's wrong, I don't have a dog")])
@pytest.mark.parametrize("session", [False, True])
def test_what_a_person_denies_is_doubted_until_a_person_decides(held: str, text: str, session: bool, tmp_path: Path) -> None:
    with Memory(tmp_path / "m.db", embedder=None) as memory:
        wrong, right = memory.write(held), memory.write("I was born in Jeju.")
        if session:
            memory.add_conversation([{"role": "user", "content": text}], session="s")
        else:
            memory.write(text)
            assert MemoryPolicy().decide(text).save
        [proposal] = open_proposals(memory.reader)
        assert (proposal.memory.id, proposal.action, proposal.reason) == (wrong.id, "reject", DENIED)
        assert set(marked_as_doubted(memory.backend, memory.ctx.namespace, [wrong, right])) == {wrong.id}
        dismiss_proposal(memory.reader, wrong.id)
        assert not open_proposals(memory.reader) and memory.get(wrong.id).status == wrong.status


@pytest.mark.parametrize("text", [
    "My sister never said she was vegetarian", "I never said I was rich", "I said I was vegetarian", "민수는 부산에 산다고 한 적 없어",
    "I never had a sister",
    "That's wrong, the bus leaves at 9", "I never said I lived in Seoul", "사실이 아니야, 나는 누나가 없어", "Did I say I was vegetarian?",
    "나는 서울에 산다고 한 적 없어"])
def test_what_denies_something_else_proposes_nothing(text: str, tmp_path: Path) -> None:
    with Memory(tmp_path / "m.db", embedder=None) as memory:
        for held in ("I'm vegetarian.", "I live in Busan.", "I have a brother.", "나는 부산에 살아", "우리 형 이름은 민수야"):
            memory.write(held)
        memory.add_conversation([{"role": "user", "content": text}], session="s")
        assert not open_proposals(memory.reader)


@pytest.mark.parametrize(("before", "text", "over"), [
    ("I live in Busan.", "I used to live in Busan as a child", False), ("I live in Busan.", "I lived in Busan in 2010", False),
    ("I work at Globex.", "I used to work at Globex in 2015", False), ("나는 부산에 살아", "나는 어릴 때 부산에 살았어", False),
    ("나는 부산에 살아", "나는 2010년에 부산에 살았어", False), ("I started at Globex in May", "I used to work at Globex", True),
    ("I live in Busan.", "I used to live in Busan", True), ("I work at Globex.", "I left Globex in 2020", True)])
def test_a_former_state_ends_what_was_true_after_it_only_if_it_lasted(before: str, text: str, over: bool, tmp_path: Path) -> None:
    assert bool(ended(tmp_path, [before, text])) == over
