"A Korean noun must be found by its bare form and with any particle, a verb by any of its endings, whatever the two look like."
import re
from itertools import combinations

import pytest

from rlm import Memory
from rlm.core.text import tokens

NOUNS = """치과 사과 교과 영화 전화 만화 문화 결과 효과 변화 강화도 제주도 태도 파도 차도 온도 지도 포도 매도 소녀 자녀 샤워 타워 파워
교과서 부서 도서 비서 사서 순서 보고서 계약서 견적서 안내서 자기소개서 개요 가요 동요 중요 수요 대중가요 나라 소라 오로라 카메라 드라마
우리나라 노래 미래 빨래 아래 모래 회사 학교 친구 커피 기차 자전거 휴가 바다 캐나다 감기 경기 비행기 여기 이야기 편지 강아지 아버지 가게
무대 침대 영어 한국어 단어 연어 참여 기여 배려 격려 고려 날개 안개 무지개 동네 어머니 할머니 아시아 러시아 엄마 아빠 언니 의사 간호사
이사 과자 의자 남자 여자 아내 시내 올해 새해 피해 이해 이해도 참여도 분야 시야 가야 철로 솔로 책 집 병원 서울 선생님 가을 마을 겨울 배 차"""
AFTER_VOWELS = "는 를 도 에 에서 에는 에도 보다 처럼 까지 부터 하고 라고 라는 만 의"
AFTER_CONSONANTS = "은 을 도 에 에서 에는 에도 보다 처럼 까지 부터 하고 이라고 이라는 만 의"
VERBS = """먹다 먹어 먹어요 먹었어 먹었다 먹는다 먹습니다 먹어서 먹어도 먹어야 먹으면 먹지만 먹고요
마시다 마셔요 마셔도 마셔서 마셔야 마셨어요 마신다 마십니다 마시지만
보다 봐 봐요 봐서 봐도 봐야 봤어 본다 봅니다
가다 가요 가서 가도 가야 갔어 간다 갑니다 가기로 가거나
오다 와 와요 와서 와도 와야 왔어 온다 옵니다
배우다 배워요 배워서 배워도 배워야 배웠어 배운다
공부하다 공부해요 공부해서 공부해도 공부해야 공부했어 공부한다 공부하지만 공부하기로
만나다 만나요 만나서 만나도 만나야 만났어 만난다
다니다 다녀요 다녀서 다녀도 다녔어 다닌다
보내다 보내요 보내서 보내도 보냈어 보낸다
기다리다 기다려요 기다려서 기다려도 기다렸어 기다린다
주다 줘 줘요 줘서 줘도 줬어 준다
사다 사요 사서 사도 샀어 산다
타다 타요 타서 타도 탔어 탄다
자다 자요 자서 자야 잤어 잔다
찾다 찾아요 찾아서 찾아도 찾았어 찾는다
보이다 보여요 보여서 보여도 보였어 보인다
나오다 나와요 나와서 나와도 나왔어 나온다
켜다 켜요 켜서 켜도 켰어
있다 있어요 있어서 있어도 있었어
좋다 좋아요 좋아서 좋아도 좋았어
비싸다 비싸요 비싸서 비싸도 비쌌어
그리다 그려요 그려서 그려도 그렸어 그린다"""


def forms_of(noun: str) -> list[str]:
    return [noun] + [noun + p for p in (AFTER_CONSONANTS if (ord(noun[-1]) - 0xac00) % 28 else AFTER_VOWELS).split()]


@pytest.mark.parametrize("noun", NOUNS.split())
def test_a_noun_meets_all_its_forms(noun: str) -> None:
    forms = forms_of(noun)
    assert [(a, b) for a, b in combinations(forms, 2) if not set(tokens(a)) & set(tokens(b))] == []
    if len(noun) == 2:
        assert [form for form in forms if noun not in tokens(form)] == []


@pytest.mark.parametrize("verb", VERBS.splitlines(), ids=lambda verb: verb.split()[0])
def test_a_verb_meets_all_its_forms(verb: str) -> None:
    assert [(a, b) for a, b in combinations(verb.split(), 2) if not set(tokens(a)) & set(tokens(b))] == []


def test_two_readings_cost_little() -> None:
    words = [*VERBS.split(), *(form for noun in NOUNS.split() for form in forms_of(noun))]
    assert [word for word in words if len(tokens(word)) > max(len(word), 3)] == []
    assert sum(len(tokens(word)) for word in words) < 1.75 * len(words)  # with one reading: 1.66


@pytest.mark.parametrize(("question", "kept"), [("뭐라고", []), ("뭐야", []), ("얼마야", []), ("뭐라는 거야", ["거야", "거"])])
def test_a_question_word_stays_one(question: str, kept: list[str]) -> None:
    assert tokens(question + " 책") == [*kept, "책"]


def test_everyday_sentences_are_found_by_their_nouns() -> None:
    told = {"치과": "내일 치과도 가야 해", "강화도": "강화도에 가고 싶다", "교과서": "이 교과서를 읽자", "나라": "우리 나라는 넓다",
            "태도": "그의 태도가 좋다", "영화": "영화도 봤다", "바다": "바다가 보고 싶다", "감기": "감기에 걸렸다", "빨래": "빨래를 널었다"}
    with Memory(":memory:", embedder="none") as memory:
        memory.write_many({"id": noun, "text": text} for noun, text in told.items())
        assert {noun: memory.search(noun)[0].id for noun in told} == {noun: noun for noun in told}


def test_a_subject_that_is_new_compiles_no_pattern(monkeypatch: pytest.MonkeyPatch) -> None:
    from rlm.companion.fact_extraction import text_facts

    def read(names: list[str]) -> int:
        return sum(len(text_facts(f"{name}의 생일은 3월 4일이야.").statements) for name in names)

    assert read(["김민우"]) == 1
    compiled, compile_ = list[object](), re._compiler.compile  # type: ignore[attr-defined]
    monkeypatch.setattr("re._compiler.compile", lambda *given: compiled.append(given[0]) or compile_(*given))
    assert read(["이서윤", "박지아", "최도진", "정하영"]) == 4 and not compiled
    assert re.match(f"no {id(compiled)}", "such pattern") is None and compiled  # compiling is seen
