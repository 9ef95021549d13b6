"""A turn of life, told as people tell it, ends what it is over with; what only sounds like one ends nothing."""
from collections.abc import Iterator

import pytest

from rlm import Memory
from rlm.companion.pair_judge import leaves_as_it_was, told_by_grammar
from rlm.companion.rejection import RejectedValue
from rlm.core.clock import ManualClock

OVER = (  # said before, said later
    ("I work at Globex.", "They let me go."), ("I'm a chef at Noma.", "Noma let me go today."),
    ("I work for Deloitte.", "I was made redundant."), ("나 쿠팡에서 일해", "정리해고 됐어"),
    ("저 현대에서 일해요", "회사에서 해고됐어요"), ("나 토스 다녀", "권고사직 당했어"), ("I'm unemployed.", "I got a job at Siemens."),
    ("I'm job hunting.", "I got hired by BMW!"), ("I work at Globex.", "I'm unemployed."), ("나 백수야", "나 취직했어"),
    ("나 취준생이야", "드디어 취업했어!"), ("저는 무직이에요", "네이버에 입사했어요"), ("I'm pregnant.", "The baby was born on Tuesday."),
    ("My wife is pregnant.", "My wife gave birth last night."), ("We're expecting a baby in May.", "Our son was born this morning."),
    ("나 임신했어", "어제 딸 낳았어"), ("아내가 임신 중이야", "아내가 아들을 출산했어"), ("I'm engaged to Sam.", "We got married!"),
    ("I'm engaged.", "We tied the knot in June."), ("I'm engaged to Priya.", "Priya and I got hitched."),
    ("나 약혼했어", "나 지난주에 결혼했어"), ("여자친구 이름은 수진이야", "수진이랑 결혼했어"), ("I study at MIT.", "I graduated!"),
    ("I'm a student.", "I finished university in July."), ("저는 서울대학교에 다녀요", "저 졸업했어요"), ("나 대학생이야", "나 졸업했어"),
    ("나 군인이야", "나 전역했어"), ("동생은 군대에 있어", "동생이 제대했어"), ("I'm in the army.", "I got out of the army in May."),
    ("I'm in hospital.", "I was discharged today."), ("엄마가 입원하셨어", "엄마 퇴원하셨어"),
    ("The rent is 900 a month.", "rent's gone up to 960"), ("My salary is 40k.", "I got a raise to 45k."),
    ("학원비는 30만 원이야", "학원비 35만 원으로 올랐어"), ("The Lisbon trip is on 4 May.", "The Lisbon trip is off."),
    ("My trip to Rome is in June.", "We cancelled the Rome trip."), ("My dentist appointment is on Monday.", "I cancelled the dentist."),
    ("제주 여행은 5월이야", "제주 여행 취소했어요"), ("콘서트는 토요일이야", "콘서트 취소됐대"),
    ("I have a gym membership.", "I cancelled my gym membership."), ("I'm a member of the tennis club.", "I left the tennis club."),
    ("I take piano lessons.", "I quit piano."), ("나 영어 학원 다녀", "영어 학원 끊었어"),
    ("We have a cat called Luna.", "We had to rehome Luna."), ("My dog's name is Rex.", "We gave Rex away."),
    ("우리 고양이 이름은 나비야", "나비 입양 보냈어"), ("My knee hurts.", "My knee is fine now, no pain any more."),
    ("I have breast cancer.", "I got the all clear!"), ("I have a cold.", "I'm over my cold."), ("I broke my arm.", "My arm has healed."),
    ("나 감기 걸렸어", "감기 다 나았어"), ("허리가 아파", "허리 다 나았어"), ("엄마가 아프셔", "엄마 다 나으셨어"),
    ("I'm on 50 mg of sertraline.", "I came off the sertraline."), ("I take lisinopril every morning.", "I stopped the lisinopril."),
    ("엄마는 당뇨약 드셔", "엄마 당뇨약 끊으셨어"), ("저 항생제 먹고 있어요", "항생제 이제 안 먹어요"),
    ("엄마 허리수술하고 병원에 입원중", "엄마 퇴원했어"), ("아빠 입원중", "아빠 어제 퇴원하심"), ("동생 군대에 있어", "동생 어제 전역함!!"),
    ("남동생 군대 갔어", "남동생 제대했대"), ("우리 언니 네이버 다녀", "언니 퇴사함"), ("우리 애 네살이에요", "우리 애 오늘 다섯살 됐어요"),
    ("나 망원동 살아", "드디어 이사 끝! 이제 성수동 주민ㅎㅎ"), ("휴대폰은 아이폰13 써", "폰 갤럭시로 갈아탐"),
    ("미용실 예약 토요일 2시야", "미용실 예약 일욜 11시로 바꿨어"))
APART = (
    ("My wife is Ann.", "My wife is tired."), ("My boss is Sara.", "My boss is angry."),
    ("My boyfriend is Marcus.", "My boyfriend is away."), ("My name is Hannah.", "I'm Done"), ("My name is Hannah.", "I'm Sorry"),
    ("My boyfriend is Marcus.", "Marcus and I are not together this weekend."),
    ("My boyfriend is Marcus.", "Marcus and I are not together until Sunday."), ("I work at Globex.", "They let me go early today."),
    ("I work at Globex.", "My brother got laid off."), ("I work at Globex.", "We let the cleaner go."),
    ("나 카카오 다녀", "동생이 회사에서 잘렸어"), ("I'm unemployed.", "My wife got a job at Aldi."), ("나 백수야", "동생이 취직했어"),
    ("I'm pregnant.", "My sister's baby was born on Tuesday."), ("I'm pregnant.", "I was born in Leeds."),
    ("나 임신했어", "언니가 딸 낳았어"), ("나 임신했어", "고양이가 새끼를 낳았어"), ("I'm engaged to Sam.", "My brother got married!"),
    ("나 약혼했어", "친구가 결혼했어"), ("I study at MIT.", "My sister graduated."), ("I study at MIT.", "I graduated in 2010."),
    ("저는 서울대학교에 다녀요", "동생이 졸업했어요"), ("나 군인이야", "형이 전역했어"),
    ("My rent is 900.", "The temperature went up to 96."), ("월세는 90만 원이야", "동생 월세가 96만 원으로 올랐어"),
    ("The Lisbon trip is on 4 May.", "The Rome trip is off."), ("The Lisbon trip is on 4 May.", "The light is off."),
    ("제주 여행은 5월이야", "일본 여행 취소했어요"), ("내 결혼식은 5월 3일이야", "민수 결혼식은 6월 1일이야"),
    ("I have a gym membership.", "The gym was closed this morning."), ("나 헬스장 다녀", "오늘 헬스장 쉬었어"),
    ("We have a cat called Luna.", "We had to rehome Max."), ("We have a cat called Luna.", "We gave Luna a bath."),
    ("우리 강아지 이름은 초코야", "초코를 유치원에 보냈어"), ("My knee hurts.", "My back is fine now."),
    ("My knee hurts.", "No pain, no gain."), ("나 감기 걸렸어", "동생 감기 다 나았어"), ("허리가 아파", "나 이제 안 추워"),
    ("I'm on sertraline.", "Mum came off the sertraline."), ("I'm on sertraline.", "I came off the motorway at Hull."),
    ("엄마 입원중이야", "이모 퇴원했대"), ("동생 군대에 있어", "사촌동생 전역함"), ("나 쿠팡 다녀", "언니 퇴사함"),
    ("나 서른두살이야", "우리 언니 서른다섯 됐어"), ("나 민수랑 결혼했어", "꿈에서 민수랑 이혼함ㅋㅋㅋ 개꿈"),
    ("치과 예약 토요일 2시야", "치과 예약 토욜이야"), ("나 혈압약 먹어", "아빠 혈압약 끊으셨어"),
    ("우리 서버는 지붕이 샌다.", "우리 서버는 이제 16판을 쓴다."))


@pytest.fixture
def memory() -> Iterator[Memory]:
    with Memory(":memory:", embedder="none", clock=ManualClock("2026-05-01T09:00Z")) as memory:
        yield memory


def is_over(memory: Memory, before: str, later: str, chat: bool) -> bool:
    "Whether a fact of what was said before has an end afterwards."
    for text in (before, later):
        memory.clock.advance(days=1)  # type: ignore[attr-defined]
        if chat:
            memory.add_conversation([{"role": "user", "content": text}, {"role": "assistant", "content": "Noted."}], session="talk")
        else:
            memory.write(text)
    first = next(r for r in memory.backend.memories.records(range(1, 9)).values() if r.text == before)
    return first.valid_to is not None or any(f.valid_to for f in memory.backend.facts.of([first.seq]).get(first.seq, ()))


@pytest.mark.parametrize("chat", [False, True])
@pytest.mark.parametrize(("before", "later"), OVER)
def test_a_turn_of_life_ends_what_was_before(memory: Memory, before: str, later: str, chat: bool) -> None:
    assert is_over(memory, before, later, chat)


@pytest.mark.parametrize("chat", [False, True])
@pytest.mark.parametrize(("before", "later"), APART)
def test_what_only_sounds_like_a_turn_of_life_ends_nothing(memory: Memory, before: str, later: str, chat: bool) -> None:
    assert not is_over(memory, before, later, chat)


@pytest.mark.parametrize(("old", "new", "decided"), [
    ("I weigh 84 kilos.", "The scales say 79 this morning.", False), ("I start work at 9.", "Had to be in at 7 today.", True),
    ("I drink 2 coffees a day.", "Had 4 coffees this morning.", True),
    ("I'm engaged to Beth.", 'We said "I do" on Saturday, Beth and I', False)])
def test_an_amount_of_today_may_replace_an_amount_and_a_quotation_is_no_story(old: str, new: str, decided: bool) -> None:
    assert leaves_as_it_was(old, new) is decided


def test_the_grammar_decides_about_two_only_where_both_are_told_the_same() -> None:
    assert told_by_grammar("The capital of Peru is Lima.", "The capital of Chile is Santiago.")
    assert not told_by_grammar("Electricity comes from Bulb.", "Octopus took over our electricity")


@pytest.mark.parametrize(("wrong", "again", "neighbour"), [
    ("My husband is Tom.", "내 남편은 톰이야", "내 동생은 톰이야"),
    ("My dog's name is Rex.", "우리 강아지 이름은 렉스야", "우리 고양이 이름은 렉스야"),
    ("내 남편은 준호야", "My husband is Junho.", "My husband is Jinho.")])
def test_a_rejected_name_of_somebody_near_does_not_come_back_in_the_other_script(
        memory: Memory, wrong: str, again: str, neighbour: str) -> None:
    memory.companion.reject(text=wrong)
    with pytest.raises(RejectedValue):
        memory.write(again)
    assert memory.write(neighbour).id
