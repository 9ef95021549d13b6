"What a person says of what was said before changes what is believed: news in a few words, a turn taken back, another value for it."
from collections.abc import Sequence

import pytest

from rlm import Memory
from rlm.companion import pair_judge
from rlm.companion.fact_extraction import text_facts
from rlm.companion.policy import CONTINUES, NEWS
from rlm.companion.rejection import RejectedValue
from rlm.core.clock import ManualClock

NEWS_TOLD = (("I have a cat named Soot.", "We had to put Soot to sleep."),
             ("미용실 예약은 금요일이야.", "아니 목요일."), ("치과 예약은 월요일 9시야.", "그건 작년 얘기야."))
SMALL_TALK = ("lol ok", "wow, what a day", "Nice weather again.", "ㅋㅋ 그러게", "아 배고프다", "same old, same old")


def _over(told: Sequence[str], conversation: bool) -> list[str]:
    "Tell turns one after the other, and return the facts of the first that are no longer current."
    with Memory(":memory:", embedder="none") as memory:
        if conversation:
            first, *_ = memory.add_conversation([{"speaker": "Dana", "text": t} for t in told])
        else:
            first, *_ = [memory.write(t) for t in told]
        return [f"{f.relation} {f.value}" for f in memory.ctx.storage.facts.of([first.seq])[first.seq] if f.valid_to]


@pytest.mark.parametrize(("before", "news"), NEWS_TOLD)
def test_a_turn_that_ends_what_is_stored_is_kept_though_it_would_be_skipped(before: str, news: str) -> None:
    with Memory(":memory:", embedder="none") as memory:
        assert not memory.companion.decide(news).save
        old = memory.companion.observe(before).memory or memory.write(before)
        seen = memory.companion.observe(news)
        assert seen.memory is not None
        assert seen.decision.reason == NEWS
        assert any(f.valid_to for f in memory.ctx.storage.facts.of([old.seq])[old.seq])


@pytest.mark.parametrize("turn", SMALL_TALK)
def test_small_talk_is_skipped_beside_memories(turn: str) -> None:
    with Memory(":memory:", embedder="none") as memory:
        for before, _ in NEWS_TOLD:
            memory.write(before)
        assert memory.companion.observe(turn).memory is None


def test_news_without_a_memory_that_it_changes_is_skipped() -> None:
    with Memory(":memory:", embedder="none") as memory:
        memory.write("I have a cat named Pip.")
        stored = len(memory.list(k=9))
        assert memory.companion.observe("We had to put Soot to sleep.").memory is None
        assert len(memory.list(k=9)) == stored


CORRECTED = (
    ("My physio appointment is on Wednesday at 4.", "It's Thursday now.", "time Wednesday at 4"),
    ("보일러 기사님 화요일에 오셔.", "아니다, 금요일에 오신대.", " 화요일"),
    ("My exam is on 3 June.", "That's wrong, it's the 5th of June.", "time 3 June"),
    ("시험은 6월 3일이야.", "그거 아니야, 6월 5일이야.", "time 6월 3일"),
    ("My daughter Mia plays the flute.", "Oboe, I mean.", "plays the flute"),
    ("I drink oat milk.", "No, the other one, soya milk.", "drink oat milk"),
    ("저는 울산에서 태어났어요.", "아니 포항이요.", "birthplace 울산"), ("딸은 플루트 배워.", "아니 오보에.", "lesson 플루트"),
    ("아메리카노 마셔.", "아니 그거 말고 라떼.", "drink 아메리카노"), ("I live in Ghent.", "No, in Bruges.", "residence Ghent"),
    ("My flight is at 6.", "Scratch that.", "time 6"), ("비행기는 6시예요.", "방금 말한 거 취소요.", "time 6시"),
    ("I like cilantro, olives and anchovies.", "Not the olives though.", "like olives"),
    ("나는 고수랑 올리브랑 멸치 좋아해.", "올리브는 빼고.", "like 올리브"),
    ("My sister lives in Ghent.", "I meant my cousin.", "residence Ghent"),
    ("언니는 전주에 살아.", "언니 말고 사촌 언니.", "residence 전주"),
    ("I'm allergic to nuts.", "My dad, not me.", "allergy nuts"), ("나 땅콩 알레르기 있어.", "내가 아니라 아빠가.", "allergy 땅콩"))
NOT_CORRECTED = (
    ("My physio appointment is on Wednesday at 4.", "It's 3 now."), ("My physio appointment is on Wednesday at 4.", "It's cold now."),
    ("I live in Ghent.", "No, thanks."), ("I drink oat milk.", "No way!"), ("My exam is on 3 June.", "That's wrong of them."),
    ("나 커피 좋아해.", "아니 그냥."), ("딸은 플루트 배워.", "아니 진짜 피곤하다."), ("언니는 전주에 살아.", "아니, 요즘 언니 못 봤어."),
    ("I'm allergic to nuts.", "Sorry, typo."), ("My flight is at 6.", "That was fun."), ("비행기는 6시예요.", "그건 그렇고."))


@pytest.mark.parametrize("conversation", [False, True])
@pytest.mark.parametrize(("told", "corrected", "over"), CORRECTED)
def test_the_turn_before_is_corrected_in_a_few_words(told: str, corrected: str, over: str, conversation: bool) -> None:
    assert over in _over([told, corrected], conversation)


@pytest.mark.parametrize(("told", "after"), NOT_CORRECTED)
def test_what_only_begins_like_a_correction_ends_nothing(told: str, after: str) -> None:
    assert _over([told, after], False) == []


def test_another_person_has_what_was_said_of_the_first() -> None:
    with Memory(":memory:", embedder="none") as memory:
        memory.write("My sister lives in Ghent.")
        said = memory.write("I meant my cousin.")
        kept = [(f.subject, f.negated) for f in memory.ctx.storage.facts.of([said.seq])[said.seq]]
        assert kept == [("user's sister", True), ("user's cousin", False)]


@pytest.mark.parametrize(("told", "news"), [
    ("I live in Leeds.", "Moved to Hull last week!"),
    ("I drink coffee.", "Stopped drinking coffee."),
    ("My partner is Tom.", "Broke up with Tom."),
    ("I work at Barclays.", "Started at Monzo today."), ("나 수원에 살아.", "우리 세종으로 이사 왔어."), ("I'm 39.", "Turned 40 today!")])
def test_news_need_no_pronoun(told: str, news: str) -> None:
    assert _over([told, news], False)


@pytest.mark.parametrize("text", ["Left arm hurts.", "Moved to tears.", "Sold out.", "Stop drinking.", "Finished lunch."])
def test_what_only_looks_like_news_states_nothing(text: str) -> None:
    with Memory(":memory:", embedder="none") as memory:
        said = memory.write(text)
        assert memory.ctx.storage.facts.of([said.seq]) == {}


@pytest.mark.parametrize(("old", "new"), [
    ("Leo is allergic to nuts.", "Turns out I'm not allergic to nuts after all."),
    ("저는 갑각류 알레르기가 있어요.", "알고 보니 저는 우유 알레르기는 아니었어요."),
    ("엄마는 천식이 있어.", "엄마 암 아니래, 다행이야."), ("혈압약 먹어.", "항생제는 이제 안 먹어."),
    ("나 제주 출장은 월요일이야.", "부산 출장은 화요일로 바뀌었어."),
    ("My best friend is Nadia.", "I had lunch with Priya, she's a great friend too."),
    ("나 모닝 타.", "작년에 모닝 팔 뻔했는데 안 팔았어."), ("술 안 마셔요.", "회식에서 다들 맥주 마시고 저는 사이다 마셨어요."),
    ("I don't drink.", "I had a soda at the party."), ("My grandson Theo is 3.", "Theo's cousin is four now."),
    ("아내는 간호사예요.", "처남이 간호사 그만뒀어요.")])
def test_another_thing_or_person_is_no_change(old: str, new: str) -> None:
    tests = (pair_judge.told_by_grammar, pair_judge.told_of_another, pair_judge.leaves_as_it_was, pair_judge.is_about_something_else)
    assert any(test(old, new) for test in tests)


@pytest.mark.parametrize(("old", "new"), [
    ("엄마는 암이래.", "엄마 암 아니래, 다행이야."),
    ("저 당뇨래요.", "당뇨 아니래요. 오진이었대요."),
    ("나 제주 출장은 월요일이야.", "출장은 화요일로 바뀌었어."),
    ("I'm vegetarian.", "I eat meat now."), ("I don't eat fish.", "I've started eating fish again.")])
def test_what_is_changed_is_still_compared(old: str, new: str) -> None:
    tests = (pair_judge.told_by_grammar, pair_judge.told_of_another, pair_judge.leaves_as_it_was, pair_judge.is_about_something_else)
    assert not any(test(old, new) for test in tests)


@pytest.mark.parametrize(("before", "after"), [
    ("Mum's in hospital.", "Mum's home again."),
    ("Dad's in the ICU.", "Dad's out of the ICU, thank God."),
    ("My brother Joel is in prison.", "Joel got out last week."),
    ("Our dog Waffles is lost.", "Waffles came home!"),
    ("My husband works nights.", "He's on days now."),
    ("I'm on nights this month.", "I'm back on days as of today."),
    ("Grandma uses a wheelchair.", "Grandma's walking on her own again."),
    ("Tom and I have been together for two years.", "Tom and I broke up last night."),
    ("I'm expecting a baby in May.", "Baby's here! A little girl."),
    ("My grandson Theo is 3.", "Theo's four now!"),
    ("My son Leo is in year 4.", "Leo went up to year 5 this week."),
    ("I work at Barclays.", "I start as a food stylist at Bon Appetit."),
    ("이번 달은 야간 근무예요.", "오늘부터 다시 주간이에요."),
    ("할머니는 휠체어 타세요.", "할머니 이제 혼자 걸으세요."),
    ("나 목발 짚고 다녀.", "이제 목발 안 짚어."),
    ("저 임신 중이에요.", "오늘 아침에 아기가 태어났어요!"),
    ("저는 국민은행에 다녀요.", "저 이직했어요, 토스로."),
    ("배포 담당자는 지훈이에요.", "배포 담당자가 수빈으로 바뀌었다")])
def test_a_state_that_is_over_ends(before: str, after: str) -> None:
    assert _over([before, after], False)


@pytest.mark.parametrize(("before", "after"), [
    ("Mum's in hospital.", "Dad's home again."),
    ("Mum's in hospital.", "Mum's home is in Leeds."),
    ("My brother Joel is in prison.", "Joel wrote me."),
    ("My husband works nights.", "My wife works days."),
    ("할머니는 휠체어 타세요.", "나 이제 혼자 걸어."),
    ("저 임신 중이에요.", "아기 옷이 나왔어요."),
    ("배포 담당자는 지훈이에요.", "결제 담당자가 수빈으로 바뀌었어요.")])
def test_the_state_of_another_stays(before: str, after: str) -> None:
    assert _over([before, after], False) == []


@pytest.mark.parametrize(("rejected", "said"), [
    ("I live in Oslo.", "My flat is in Oslo."),
    ("I live in Oslo.", "Oslo is where I've settled."),
    ("I smoke.", "I smoke ten a day."),
    ("I smoke.", "저는 흡연자예요."),
    ("저는 네이버에 다녀요.", "나 네이버 직원이야."),
    ("저는 네이버에 다녀요.", "네이버 다니는 중이야."),
    ("나 임신했어.", "I'm pregnant."),
    ("I'm allergic to cats.", "저는 고양이 알레르기예요."),
    ("I live in Oslo.", "Oslo is my home."),
    ("I live in Oslo.", "Oslo's where I live."),
    ("I live in Oslo.", "City of residence: Oslo"),
    ("I live in Oslo.", "As I said before, my home is in Oslo."),
    ("I live in Oslo.", "The city I live in is Oslo."),
    ("I work at Globex.", "It's Globex I work for."),
    ("My wife is Priya.", "Priya's the one I'm married to."),
    ("I'm 34.", "34 is how old I am."),
    ("My favourite colour is green.", "The colour I like best is green."),
    ("I'm allergic to peanuts.", "Peanuts are what I'm allergic to."),
    ("My dog's name is Rex.", "Dog: Rex"),
    ("나는 오슬로에 살아.", "오슬로가 내가 사는 곳이야"),
    ("나는 오슬로에 살아.", "거주지: 오슬로"),
    ("나는 전주에 살아.", "사는 곳: 전주"),
    ("나는 글로벡스에서 일해.", "글로벡스가 제가 일하는 곳이에요"),
    ("나는 34살이야.", "서른네 살이 내 나이야"),
    ("내 이름은 민준이야.", "민준이 내 이름이야"),
    ("내가 제일 좋아하는 색은 초록이야.", "초록이 내가 제일 좋아하는 색이야"),
    ("우리 강아지 이름은 초코야.", "초코가 우리 강아지야")])
def test_a_rejected_value_is_refused_in_other_words(rejected: str, said: str) -> None:
    with Memory(":memory:", embedder="none") as memory:
        memory.companion.reject(text=rejected)
        with pytest.raises(RejectedValue):
            memory.write(said)


@pytest.mark.parametrize(("rejected", "said"), [
    ("I live in Oslo.", "My flat is in Bergen."),
    ("I live in Oslo.", "My sister's flat is in Oslo."),
    ("I smoke.", "My brother smokes ten a day."),
    ("저는 네이버에 다녀요.", "동생이 네이버 직원이야."),
    ("I'm allergic to cats.", "동생은 고양이 알레르기예요."),
    ("나 임신했어.", "My sister is pregnant."),
    ("I live in Oslo.", "Bergen is my home."),
    ("I live in Oslo.", "Oslo is where my sister lives."),
    ("I live in Oslo.", "Oslo is where I was born."),
    ("I live in Oslo.", "Oslo is not my home."),
    ("I live in Oslo.", "Oslo was my home until 2010."),
    ("My name is Robert.", "Robert is my son's name."),
    ("I'm 34.", "Wife's age: 34"),
    ("나는 오슬로에 살아.", "오슬로가 누나가 사는 곳이야"),
    ("나는 오슬로에 살아.", "오슬로가 내 집은 아니야"),
    ("내 이름은 민준이야.", "민준이가 내 동생 이름이야")])
def test_what_is_said_of_another_is_not_refused(rejected: str, said: str) -> None:
    with Memory(":memory:", embedder="none") as memory:
        memory.companion.reject(text=rejected)
        assert memory.write(said).text == said


def test_a_rejected_value_is_no_tag() -> None:
    with Memory(":memory:", embedder="none") as memory:
        memory.companion.reject(text="I live in Oslo.")
        assert memory.write("A quiet day.", tags=["home: Bergen", "Oslo"]).tags
        with pytest.raises(RejectedValue):
            memory.write("A quiet day.", tags=["city_of_residence: Oslo"])


@pytest.mark.parametrize(("before", "later", "over"), [
    ("I live in Bergen.", "Oslo is where I live now.", "residence Bergen"),
    ("I work at Acme.", "Globex is the company I work for.", "employer Acme"),
    ("My manager is Sunita.", "Sunita left, Graham's my manager now.", "manager Sunita"),
    ("내 집은 베르겐이야.", "오슬로가 내가 사는 곳이야.", "residence 베르겐"),
    ("My favourite music is rock.", "The music that Miles plays is jazz.", ""),
    ("I live in Bergen.", "The kitchen is where I work best.", ""),
    ("I live in Bergen.", "Oslo is where I want to live.", ""),
    ("I work at Acme.", "Oslo is where I work.", ""),
    ("내 집은 베르겐이야.", "오슬로가 내가 제일 좋아하는 도시야.", "")])
def test_a_value_that_stands_first_is_read(before: str, later: str, over: str) -> None:
    assert _over([before, later], False) == ([over] if over else [])


@pytest.mark.parametrize(("before", "later", "question"), [
    ("My mum lives in Leeds.", "Mum moved to York.", "Where does Mum live?"),
    ("Mum lives in Leeds.", "My mum lives in York now.", "Where does my mum live?"),
    ("My dad works at Acme.", "Dad works at Boeing now.", "Where does Dad work?"),
    ("My gran is in hospital in Leeds.", "Gran's home again!", "How is gran?")])
def test_mum_is_my_mum(before: str, later: str, question: str) -> None:
    with Memory(":memory:", embedder="none") as memory:
        older = memory.write(before)
        memory.write(later)
        assert memory.get(older.id).valid_to is not None
        assert memory.search(question)[0].text == later


def test_who_bears_a_name_of_kin_in_a_name_is_not_theirs() -> None:
    assert [s.subject for s in text_facts("Mother's Day is on Sunday.").statements] == ["Mother's Day"]


@pytest.mark.parametrize(("first", "turn"), [
    ("My sister adopted a kitten.", "she's a tabby"), ("I have a new colleague named Okon.", "his desk is by the lift"),
    ("I'm dating a guy from work.", "met him on the ferry"), ("나 여자친구 생겼어.", "걔는 간호사야")])
def test_a_turn_of_somebody_by_a_pronoun_is_kept_soon_after_a_turn_that_was(first: str, turn: str) -> None:
    clock = ManualClock("2026-05-01")
    with Memory(":memory:", embedder="none", clock=clock) as memory:
        assert memory.companion.observe(turn).memory is None  # of whom, nothing tells
        assert memory.companion.observe(first).memory is not None
        clock.advance(minutes=1)
        seen = memory.companion.observe(turn)
        assert seen.memory is not None and seen.decision.reason == CONTINUES
        for passing in ("she's so annoying", "it's raining", "their password is hunter22"):
            assert memory.companion.observe(passing).memory is None
        clock.advance(hours=1)
        assert memory.companion.observe(turn).memory is None
    with Memory(":memory:", embedder="none", clock=clock) as memory:
        memory.write(first)  # a note is no turn
        assert memory.companion.observe(turn).memory is None


@pytest.mark.parametrize(("belief", "said"), [
    ("You live in Bristol.", "No, I don't live in Bristol, never have."), ("You work at Delano.", "I work at Brandt."),
    ("You have three kids.", "I only have two kids."), ("You're vegan.", "I'm not vegan.")])
def test_what_a_model_notes_of_you_is_of_the_user_and_ends_as_such(belief: str, said: str) -> None:
    for provenance, over in (({"actor": "model"}, True), ({}, False)):
        with Memory(":memory:", embedder="none") as memory:
            old = memory.write(belief, provenance=provenance)
            memory.write(said)
            assert (memory.get(old.id).valid_to is not None) == over


@pytest.mark.parametrize(("told", "later", "question"), [
    ("쿠팡에서 개발자로 일하고 있어", "나 지난주에 퇴사함", "나 지금 어디 다녀?"),
    ("민수랑 사귄지 2년 됐어", "민수랑 헤어졌어ㅠㅠ", "나 남친 있어?"),
    ("I work at Globex as a cook.", "I quit my job last week.", "Where do I work?")])
def test_what_is_over_answers_where_nothing_else_is_known(told: str, later: str, question: str) -> None:
    with Memory(":memory:", embedder="none", clock=ManualClock("2026-05-01")) as memory:
        memory.write_many([told, "나 망원동 살아", "I live in Oslo."])
        memory.write("드디어 이사 끝! 이제 성수동 주민ㅎㅎ")
        memory.write(later, id="later")
        assert memory.search(question, k=1)[0].id == "later"


def test_another_time_of_one_week_leaves_the_weekly_one() -> None:
    with Memory(":memory:", embedder="none") as memory:
        memory.write("기타 수업은 수욜 7시", id="weekly")
        memory.write("다음주는 기타 수업 목욜로 옮김")
        assert not next(h.past for h in memory.search("기타 수업", k=2) if h.id == "weekly")
        memory.write("기타 수업 목욜로 옮김")
        assert next(h.past for h in memory.search("기타 수업", k=3) if h.id == "weekly")
