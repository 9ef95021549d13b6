"""What the companion reads as a fact, and what it must not."""
from pathlib import Path

import pytest

from rlm import Memory
from rlm.companion.fact_extraction import asked_facts, text_facts
from rlm.companion.statement import normal_value

DATA = Path(__file__).parents[1] / "data"

SAME = [  # pairs that are about the same thing, with another value
    ("I live in Seoul.", "We've moved to Busan."), ("I work at Acme.", "I just joined Globex."), ("나는 서울에 살아.",
    "부산으로 이사했어요."),
    ("저는 삼성에서 일해요.", "카카오로 이직했습니다."), ("내 생일은 5월 3일이야.", "My birthday is May 4."), ("My name is Ann.",
    "Call me Annie."),
    ("내 이름은 지민이야.", "My name is Jimin."), ("I'm married to Ann.", "My wife is Bea."), ("The meeting is on Tuesday.",
    "The meeting has been moved to Thursday."),
    ("회의는 화요일에 있어.", "회의가 목요일로 바뀌었어."), ("My favourite band is Blur.", "Actually, my favorite band is Pulp now."),
    ("내 전화번호는 010-1234-5678이야.", "내 전화번호를 010-9999-0000으로 바꿨어."), ("I'm 34.", "I turned 35 last week."),
    ("My dog's name is Rex.", "My dog's name is Max."), ("The capital of Kazakhstan is Astana.",
    "The capital of Kazakhstan is Nur-Sultan."),
    ("Lee's manager is Kim.", "Lee's manager is Park."),
]
NOTHING = [  # no statement of the speaker
    "Do I live in Rome?", "If I lived in Paris I would be happy.", "Tom said he lives in Rome.", "I might move to Oslo.",
    "I wish I worked at Acme.", "The report is not.",
    "He lives in Rome.", "Maybe my favourite colour is blue.", "I'm thinking about moving to Oslo.", "I'm kidding, I live on the moon",
    "\"I live in Rome\"",
    "나 로마에 살아?", "로마로 이사할까?", "로마에 살면 좋겠다.", "민수가 로마에 산다고 했어.", "오슬로로 이사하려고 해.",
    "부산에 살았으면 좋겠어.", "아마 내년에 결혼할 것 같아.",
    "", "?!", "👍", "ㅋㅋㅋ", "ok", "Thanks!", "고마워!",
]


@pytest.mark.parametrize(("one", "other"), SAME)
def test_two_wordings_of_one_relation_have_one_key_and_two_values(one: str, other: str) -> None:
    a, b = text_facts(one).statements[-1], text_facts(other).statements[-1]
    assert a.key == b.key and a.single and b.single, (a, b)
    assert normal_value(a.value) != normal_value(b.value)


@pytest.mark.parametrize("text", NOTHING)
def test_what_is_asked_guessed_wished_or_reported_is_no_statement(text: str) -> None:
    assert text_facts(text).statements == ()


@pytest.mark.parametrize("text", ["I no longer like coffee.", "I quit smoking.", "이제 커피 안 마셔.", "담배 끊었어.",
                                  "I don't eat meat anymore.", "I sold my car."])
def test_what_is_over_affirms_nothing(text: str) -> None:
    (found,) = text_facts(text).statements
    assert found.ended or found.negated


@pytest.mark.parametrize("text", ["a" * 5000, "I live in " * 400, "((((" * 300, "\u0000\ufffd", "나는 " * 900,
                                  ", and I " * 250, "the " * 490 + "is x",
                                  "X is " + "a b of " * 250, "' " * 900])
def test_no_text_takes_long_or_fails(text: str) -> None:
    text_facts(text)


def test_a_letter_around_a_fact_is_not_only_the_fact() -> None:
    assert text_facts("I live in Seoul.").nothing_else
    assert not text_facts("Dear Anna, what a lovely evening it was! I live in Seoul.").nothing_else


@pytest.mark.parametrize(("text", "read"), [
    ("My daughter Isla is six and has a nut allergy.", ["Isla | age | six", "Isla | allergy | nut"]),
    ("I don't eat meat, and Ben can't have dairy.", ["user | eat | not meat"]),
    ("Our wholesale customer is Seasalt, they order forty mugs a month.", ["user | wholesale customer | Seasalt"]),
    ("Isla's best friend is Poppy, whose mum is a dentist.", ["Isla | best friend | Poppy"]),
    ("Morning! I'm Hannah, by the way.", ["user | name | Hannah"]), ("I'm British.", ["user | is | British"]),
    ("My locker is 118.", ["user | locker | 118"]), ("Isla's lessons have moved to Sundays.", ["Isla's lessons | time | Sundays"]),
    ("딸 하은이는 여섯 살이고 견과류 알레르기가 있어", ["하은 | age | 여섯 살", "하은 | allergy | 견과류"]),
    ("나는 고기를 안 먹고 정우는 유제품을 못 먹어", ["user | eat | not 고기", "정우 | eat | not 유제품"]),
    ("하은이 수업 일요일로 바뀌었어", ["하은 수업 | time | 일요일"]), ("하은이 단짝은 유나고 유나 엄마는 치과의사야", []),
    ("우리 고양이는 열네 살 페르시안이고 처방식을 먹어", ["user's 고양이 | is | 열네 살 페르시안", "user's 고양이 | eat | 처방식"])])
def test_each_clause_is_read_by_itself(text: str, read: list[str]) -> None:
    assert [str(s) for s in text_facts(text).statements] == read


@pytest.mark.parametrize(("text", "read"), [
    ("나는 서울에 살지 않아", ["user | residence | not 서울"]), ("저는 서울에 안 살아요", ["user | residence | not 서울"]),
    ("고기를 먹지 않아", ["user | eat | not 고기"]), ("나 새우 알러지 없어", ["user | allergy | not 새우"]),
    ("내 최애 음식은 떡볶이야", ["user | favourite 음식 | 떡볶이"]), ("오이 싫어", ["user | like | not 오이"]), ("오이 빼고 다 먹어", []),
    ("나 이번달부터 카카오로 이직했어", ["user | employer | 카카오"]), ("나 다음 주에 대전으로 이사가", []), ("나는 교회에 다녀", []),
    ("저는 네이버에서 백엔드 개발자로 일해요", ["user | employer | 네이버", "user | occupation | 백엔드 개발자"]),
    ("매운거 진짜 못먹는데", ["user | eat | not 매운거"]), ("혈압약 아침마다 먹어", ["user | eat | 혈압약"]),
    ("우리 강아지 이름은 초코야 푸들이야", ["user's 강아지 | name | 초코"]), ("우리 애 이름은 하준이에요", ["user's 아이 | name | 하준"]),
    ("팀장님 성함은 박정훈이셔", ["user's 팀장 | name | 박정훈"]), ("제 이름은 이서연이라고 합니다", ["user | name | 이서연"]),
    ("어머니는 부산에 사세요", ["user's 엄마 | residence | 부산"]), ("엄마 대구로 이사하셨어", ["user's 엄마 | residence | 대구"]),
    ("아 맞다 내 생일 10월 4일이야", ["user | birthday | 10월 4일"]), ("나 지은이랑 결혼해", []),
    ("회의는 화요일 3시로 바뀌었어", ["회의 | time | 화요일 3시"]), ("나 커피 하루 두 잔 마셔", ["user | drink | 커피"]),
    ("누나가 간호사야. 서울대병원에서 일해.", ["user's 누나 | occupation | 간호사", "user's 누나 | employer | 서울대병원"]),
    ("남편은 회계사예요. 저는 네이버에 다녀요.", ["user's 남편 | occupation | 회계사", "user | employer | 네이버"]),
    ("나 남친이랑 헤어졌어", ["user | partner | no longer "]),
    ("누나가 간호사야", ["user's 누나 | occupation | 간호사"]), ("대답은 짧게 해주세요", []), ("헐 벌써 6시네", []),
    ("우리 집 냉장고엔 두유뿐이야", []), ("사이트 카페24로 옮겼어", []), ("고양이 털 알레르기 있어", ["user | allergy | 고양이 털"])])
def test_korean_is_read_as_people_write_it(text: str, read: list[str]) -> None:
    assert [str(s) for s in text_facts(text).statements] == read


@pytest.mark.parametrize(("text", "read"), [
    ("지은이 생일은 5월 14일이야", ["지은 | birthday | 5월 14일"]), ("민수 어머님은 꽃을 좋아하셔", ["민수 엄마 | like | 꽃"]),
    ("지은이 어머니는 부산에 살아", ["지은 엄마 | residence | 부산"]), ("우빈이 딸은 생일이 5월 4일이야", ["우빈 딸 | birthday | 5월 4일"]),
    ("제 사촌오빠는 변호사예요", ["user's 사촌오빠 | occupation | 변호사"]),
    ("울엄마 성함은 박순자시고 환갑이셔", ["user's 엄마 | name | 박순자"]),
    ("팀장님은 김태호 님인데 아침 회의 좋아하심", ["user | 팀장 | 김태호 님", "user's 팀장 | like | 아침 회의"]), ("골프 좋아하셔", []),
    ("저희 어머니께서는 매운 음식을 못 드세요", ["user's 엄마 | eat | not 매운 음식"]), ("누나 한국 들어와서 지금 일산 살아", []),
    ("이모는 미국에 사시고 삼촌은 일본 사셔", ["user's 이모 | residence | 미국", "user's 삼촌 | residence | 일본"]),
    ("형 카카오로 이직했어", ["user's 형 | employer | 카카오"]), ("울 남편 알레르기 있음 땅콩", []),
    ("나 새우 알러지 있음", ["user | allergy | 새우"])])
def test_a_korean_fact_is_about_whom_it_names(text: str, read: list[str]) -> None:
    assert [str(s) for s in text_facts(text).statements] == read


@pytest.mark.parametrize(("text", "read"), [
    ("최애 음식은 엄마표 김치찜", ["user | favourite 음식 | 엄마표 김치찜"]), ("여친 이름은 서지은", ["user's 여자친구 | name | 서지은"]),
    ("결혼기념일은 5월 2일", ["결혼기념일 | time | 5월 2일"]), ("내 이름은 몰라", []), ("내 폰은 고장남", []), ("내 취미는 없어", []),
    ("차는 아반떼 타", ["user | vehicle | 아반떼"]), ("차 소나타로 바꿈", ["user | vehicle | 소나타"]),
    ("폰은 갤럭시 씀", ["user | 폰 | 갤럭시"]),
    ("저 이직했어요 카카오로", ["user | employer | 카카오"]), ("나 네이버 다님", ["user | employer | 네이버"]),
    ("고수는 진짜 못 먹어", ["user | eat | not 고수"]), ("민수는 고기 안 먹어", ["민수 | eat | not 고기"]),
    ("캐모마일만 마셔", ["user | drink | 캐모마일"]), ("혈압약 아침마다 한 알씩 먹어", ["user | eat | 혈압약"]),
    ("나 이제 커피 끊었어 위염이래 ㅠㅠ", ["user |  | no longer 커피"]), ("회의 전에는 커피를 마셔", ["user | drink | 회의 전에는 커피"]),
    ("회의 화요일 11시로 옮겼어", ["회의 | time | 화요일 11시"]), ("면접 금요일로 미뤄졌어", ["면접 | time | 금요일"]),
    ("화요일 3시 반에 치과 예약했어", ["치과 예약 | time | 화요일 3시 반"]), ("수요일에 회의 잡아줘", []),
    ("치과 예약 바꿨어 목요일 5시로", ["치과 예약 | time | 목요일 5시"]), ("강아지 이름 초코로 바꿨어", ["user's 강아지 | name | 초코"]),
    ("주간 회의 암호는 660314야", ["user | 주간 회의 암호 | 660314"]), ("저는 김민준이라고 합니다", ["user | name | 김민준"]),
    ("나를 민준이라고 불러줘", ["user | name | 민준"]), ("나 결혼 안 했어", ["user | marital status | not 결혼"]),
    ("나 서른이야", ["user | age | 서른"])])
def test_a_korean_note_is_read_as_a_sentence_is(text: str, read: list[str]) -> None:
    assert [str(s) for s in text_facts(text).statements] == read


@pytest.mark.parametrize(("text", "read"), [
    ("망원동 삼", ["user | residence | 망원동"]), ("난 서울 산다", ["user | residence | 서울"]), ("담배 핌", ["user | smoke | 담배"]),
    ("월세 90만원", ["user | 월세 | 90만원"]), ("월세 95만원으로 오름", ["user | 월세 | 95만원"]), ("월급 통장 비었음", []),
    ("남편 현대자동차 다님", ["user's 남편 | employer | 현대자동차"]), ("직급은 과장임", ["user | rank | 과장"]),
    ("저 차장으로 승진했어요", ["user | rank | 차장"]), ("우리 팀장님은 이정민 부장님", ["user | 팀장 | 이정민 부장님"]),
    ("팀장님 박소연 부장님으로 바뀜", ["user | 팀장 | 박소연 부장님"]), ("치과 3시", ["치과 | time | 3시"]),
    ("치과 5시로 변경", ["치과 | time | 5시"]),
    ("금요일에 민지랑 약속 있어", ["민지 약속 | time | 금요일"]), ("금요일 민지 약속 취소됨", ["민지 약속 | time | no longer 금요일"]),
    ("생일이 4월 3일이에요", ["user | birthday | 4월 3일"]), ("사용자는 카카오에서 일함", ["user | employer | 카카오"]),
    ("사용자의 딸 이름은 하윤이다", ["user's 딸 | name | 하윤"]), ("사용자 이름은 admin이다", ["사용자 | name | admin"])])
def test_a_note_in_nouns_and_what_a_model_notes_of_the_user_are_read(text: str, read: list[str]) -> None:
    assert [str(s) for s in text_facts(text).statements] == read


@pytest.mark.parametrize(("text", "later", "ends"), [
    ("수진이는 간호사야", "수진이는 간호사가 아니라 조산사야", True), ("민지는 28살이야", "민지는 28살 말고 29살이야", True),
    ("친구는 간호사야", "친구는 조산사야", False), ("신한카드 결제일 14일", "신한카드 결제일 25일로 바꿈", True),
    ("우리 팀장님은 이정민 부장님",
    "팀장님이 박소연 부장님으로 바뀌었어요", True), ("나 남자친구 있어", "남자친구랑 헤어졌어", True), ("금요일에 민지랑 약속 있어",
    "토요일 민지 약속 취소됐어", False), ("민수 약속은 금요일", "민지 약속 취소됐어", False),
    ("저는 대리입니다", "저 과장으로 승진했어요", True),
    ("저는 개발자예요", "저 과장으로 승진했어요", False), ("나 커피 마셔", "오늘은 커피 말고 차 마셨어", False)])
def test_a_correction_ends_what_it_corrects_and_no_neighbour(text: str, later: str, ends: bool) -> None:
    with Memory(":memory:", embedder="none") as memory:
        first = memory.write(text, valid_from="2026-01-01")
        memory.write(later, valid_from="2026-01-10")
        assert (memory.get(first.id).valid_to is not None) == ends


def test_what_a_model_notes_of_the_user_is_found_by_a_question_of_the_user() -> None:
    with Memory(":memory:") as memory:
        for text in ("우리 팀 회식은 금요일", "비타민 매일 먹기", "The office is on the 5th floor.", "사용자는 합정동으로 이사했다",
                     "사용자는 카카오에서 일한다"):
            memory.write(text)
        for question, answer in (("나 어디 살아?", "합정동"), ("where do I live?", "합정동"), ("우리집 어디야", "합정동"),
    ("나 어디 다녀?", "카카오")):
            assert answer in memory.search(question)[0].text


@pytest.mark.parametrize(("question", "asked"), [
    ("What's my mom's name?", ("user's 엄마", "name")), ("엄마 성함이 뭐더라", ("user's mother", "name")),
    ("where does my sister live?", ("user's 누나", "residence")), ("누나 어디 살아?", ("user's sister", "residence")),
    ("When is Mina's birthday?", ("Mina", "birthday")), ("What does my brother do?", ("user's 형", "occupation")),
    ("지은이 생일 언제야?", ("지은", "birthday")), ("내생일언제야", ("user", "birthday")), ("나 무슨일해", ("user", "occupation")),
    ("How old am I?", ("user", "age")), ("how old am i", ("user", "age")), ("나 몇 살이야?", ("user", "age")),
    ("Where am I from?", ("user", "birthplace")),
    ("Do I have any hobbies?", ("user", "hobby")), ("How old is my son?", ("user's son", "age"))])
def test_a_question_asks_for_kin_in_both_languages(question: str, asked: tuple[str, str]) -> None:
    assert asked in asked_facts(question)


@pytest.mark.parametrize("question", [
    "How old are you?", "What's your name?", "너 몇 살이야?", "Where should I live?", "What do I do if it rains?"])
def test_a_question_for_another_asks_for_nothing_of_the_user(question: str) -> None:
    assert "user" not in dict(asked_facts(question))


@pytest.mark.parametrize(("text", "later", "ends"), [
    ("화요일 3시 반에 치과 예약했어", "치과 예약 바꿨어 목요일 5시로", True), ("차는 아반떼 타", "차 소나타로 바꿈", True),
    ("월요일에 회의 있어", "수요일 2시에 회의 있어", False), ("나 서울 살아", "지은이 어머니는 부산에 살아", False),
    ("나 서울 살아", "누나 한국 들어와서 지금 일산 살아", False), ("지은이는 서울에 살아", "지은이 어머니는 부산에 살아", False)])
def test_what_a_korean_note_ends_is_what_it_is_about(text: str, later: str, ends: bool) -> None:
    with Memory(":memory:") as memory:
        first = memory.write(text, valid_from="2026-01-01")
        memory.write(later, valid_from="2026-01-10")
        assert (memory.get(first.id).valid_to is not None) == ends


def test_a_question_about_kin_finds_the_memory_in_the_other_language() -> None:
    with Memory(":memory:") as memory:
        for text in ("내 이름은 이서연이야", "울엄마 성함은 박순자셔", "My sister lives in Toronto.", "나 서울 살아"):
            memory.write(text)
        assert memory.search("What's my mom's name?")[0].text == "울엄마 성함은 박순자셔"
        assert memory.search("누나 어디 살아?")[0].text == "My sister lives in Toronto."


@pytest.mark.parametrize(("question", "asked"), [
    ("나 어디 살지", ("user", "residence")), ("근데 나 요즘 어디 살더라", ("user", "residence")),
    ("저 어느 회사 다녀요?", ("user", "employer")), ("여동생 어디 살아", ("user's 여동생", "residence")),
    ("동생 사는 곳", ("user's 동생", "residence")), ("지은이 어디 살아?", ("지은이", "residence")),
    ("어머니는 어디에 사세요?", ("user's 엄마", "residence")), ("울엄마 성함이 뭐더라", ("user's 엄마", "name")),
    ("남친 이름 뭐게 ㅋㅋ", ("user's 남자친구", "name"))])
def test_a_korean_question_is_about_whom_it_names(question: str, asked: tuple[str, str]) -> None:
    found = asked_facts(question)
    assert asked in found
    assert asked[0] == "user" or not [subject for subject, _ in found if subject == "user"]


@pytest.mark.parametrize(("question", "asked"), [
    ("Where does the user live?", ("user", "residence")), ("where the user lives", ("user", "residence")),
    ("What city do I live in?", ("user", "residence")), ("What is the user's name?", ("user", "name")), ("user name", ("user", "name")),
    ("the user's address", ("user", "residence")), ("Where does the user's sister live?", ("user's sister", "residence")),
    ("사용자는 어디 살아?", ("user", "residence"))])
def test_a_model_asks_about_the_user_by_that_name(question: str, asked: tuple[str, str]) -> None:
    assert asked in asked_facts(question)
    assert not asked_facts("my boat leaks") and not asked_facts("The user guide is long.")


@pytest.mark.parametrize(("text", "value"), [
    ("Mina likes tea.", "tea"), ("Joon loves sailing.", "sailing"), ("My sister hates rain.", "rain"), ("Mina enjoyed Oslo.", "oslo"),
    ("Mina drinks coffee.", "coffee"), ("Mina has adopted a new cat.", "cat")])
def test_a_verb_is_read_whole(text: str, value: str) -> None:
    assert [normal_value(f.value) for f in text_facts(text).statements] == [value]


def test_a_noodle_is_no_condition() -> None:
    assert [s.value for s in text_facts("내가 제일 좋아하는 음식은 라면이야.").statements] == ["라면"]
    assert text_facts("내가 부자라면 부산에 살아.").statements == ()
