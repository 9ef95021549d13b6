"""A rejected fact is refused as a note too: a line of a profile, JSON, a label, the value first. What says another thing is stored."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from rlm import Memory
from rlm.companion import rejection, value_equality
from rlm.companion.rejection import RejectedValue, refused_values, rejectable
from rlm.core.clock import ManualClock
from rlm.core.text.normal_form import forget_texts
from rlm.store.records import new_record

_AGAIN = """
I live in Leeds. | Leeds is home | City: Leeds | - Lives in Leeds | Bristol was fun. The user's home is Leeds.
I live in Leeds. | {"user": {"homeCity": "Leeds"}} | Leeds-based | The user is a Leeds-based engineer. | - Leeds-based engineer
My name is Dmitri. | Goes by Dmitri | - Goes by Dmitri | Dmitri is the user's name | Is 34, goes by Dmitri and likes tea.
I like olives. | Likes sushi, ramen and olives. | I like olives and tea.
나는 와인을 좋아해. | 나는 커피, 녹차, 와인을 좋아해.
I live in Leeds. | User profile:¶- Age: 30¶- Home: Leeds | I'm a Leeds resident | Leeds has been my home for years.
I live in Leeds. | About me:¶* Leeds is home
I work at Siemens. | - Works for Siemens | The user is employed by Siemens. | "employer": "Siemens" | Name: Tom; Company: Siemens
I'm 51. | Age: 51 years | {"age": 51} | 51 years old
My cat's name is Miso. | Cat's name: Miso | Cat: Miso | Miso is the user's cat. | {"pets": {"cat": "Miso"}}
My cat's name is Miso. | I have a cat called Miso
My favourite food is ramen. | Fav food = ramen | Ramen's my favourite food. | {"favourite_food": "ramen"}
I'm allergic to shellfish. | Has a shellfish allergy | {"allergies": ["nuts", "shellfish"]}
My birthday is May 4. | Birthday: May 4 | I was born on May 4.
나는 카카오에서 일해. | 회사: 카카오 | - 카카오 근무 | 카카오 직원이에요 | 사용자는 카카오에 재직 중이다. | 이름: 민수, 회사: 카카오
나는 전주에 살아. | 집은 전주예요 | 사는 곳: 전주 | 전주가 집이에요 | 사용자 거주지는 전주입니다. | {"거주지": "전주"}
내가 제일 좋아하는 음식은 라면이야. | 최애 음식: 라면 | 라면이 최애 음식이에요
나는 42살이야. | 사용자는 42세이다. | 나이 42세
우리 고양이 이름은 나비야. | 고양이: 나비 | 나비는 우리 집 고양이예요
나는 새우 알레르기가 있어. | {"알레르기": "새우"} | 새우 알러지 있음
My dentist appointment is on Tuesday at 3. | Dentist appointment: Tuesday at 3 | Dentist appointment: Tuesday, 3 o'clock
The capital of France is Lyon. | Capital of France: Lyon
My rent is €900. | Rent: 900 euros | €900 is my rent.
My gym is FitBar. | Gym: FitBar | FitBar is my gym.
My blood type is A. | Blood type: A
내 혈액형은 A형이야. | 혈액형: A형
My cat's name is Miso. | My cat Miso is sick. | Has a cat named Miso. | User owns a cat named Miso | Pet cat Miso
I live in Leeds. | - **Location:** Leeds | User's current city is Leeds.
I'm 51. | User is a 51-year-old. | 51 yrs old
I'm allergic to shellfish. | Is allergic to shellfish. | Allergic to: shellfish
나는 전주에 살아. | 네, 전주에 사시는군요! | 전주시 거주
나는 카카오에서 일해. | 소속: 카카오 | 카카오에 다님
우리 고양이 이름은 나비야. | 나비라는 고양이를 키움 | 반려묘: 나비
우리 고양이 이름은 나비야. | 우리 고양이 나비가 아파
My sister lives in Bath. | My sister Clara lives in Bath.
My sister Clara lives in Bath. | My sister lives in Bath. | Clara lives in Bath.
나는 전주에 살아. | 전주에 사시는군요!
누나는 제주에 살아. | 누나 집: 제주
우리 강아지 이름은 보리야. | 우리집 강아지 보리가 짖어
내 취미는 도예야. | 도예가 취미예요 | 취미: 도예
"""
_PASSES = """
I live in Leeds. | York is home | Leeds is a city. | Leeds is where my brother lives. | I have a home in Leeds. | Old home: Leeds
I live in Leeds. | His home: Leeds | York-based | My boss is Leeds-based. | A Leeds-based company hired me. | Works for a Leeds-based firm
My name is Dmitri. | Goes by Dimitris | My neighbour goes by Dmitri. | Dmitri goes by bus.
I like olives. | My sister likes sushi and olives. | I like sushi, not olives. | Likes olive trees, ramen and tea.
I live in Leeds. | Favourite city: Leeds | Home is near Leeds. | Born in Leeds. | Is Leeds home? | Home: not Leeds
I live in Leeds. | Leeds isn't home.
I work at Siemens. | Siemens is a company. | Her employer: Siemens | Former employer: Siemens | Employer: Siemens until 2019
I work at Siemens. | Not working at Siemens.
I work at Siemens. | My brother has moved. Works at Siemens now. | Tom:¶- Works at Siemens | {"brother": {"employer": "Siemens"}}
I work at Siemens. | Dream job: Siemens
I'm 51. | Age: 52 years | Dad: 51 | The house is 51 years old. | Bus number: 51
My cat's name is Miso. | Dog's name: Miso | Miso is my dog. | Tom's cat's name: Miso | Favourite soup: miso | My cat loves miso.
My sister's name is Clara. | Clara's sister called. | My sister's boss is Clara. | Clara is my colleague.
My favourite food is ramen. | Least favourite food: ramen | My sister's favourite food is ramen. | I hate ramen.
My sister Clara lives in Bath. | My sister's name is Clara. | My sister Clara is ill.
My sister lives in Bath. | My brother Tom lives in Bath.
My gym is FitBar. | Her gym: FitBar | Sister's gym: FitBar | Gym bag: FitBar | FitBar is her gym. | So FitBar is my gym?
My dentist appointment is on Tuesday at 3 pm. | Dentist appointment: Tuesday at 3 am | Dentist appointment: Tuesday at 4
Assistant: Noted. Leeds it is. | Assistant: Noted. See you at six.
저는 남편과 둘이 삽니다 | 나는 룸메랑 둘이 살아.
Allergy test result, Nils: birch and hazel. | Allergy test result, Ronja: dust mites only.
I live in Leeds. | Wants to move to Leeds. | Hates living in Leeds. | Going home to Leeds
I work at Siemens. | Applied to work at Siemens. | Works with Siemens clients. | Owns Siemens stock.
My cat's name is Miso. | Has a dog named Miso. | Wants a cat named Miso. | Miso is a cat.
I'm 51. | Has a 51-year-old brother. | User's dad is 51 years old.
우리 고양이 이름은 나비야. | 나비라는 강아지를 키움 | 친구가 나비라는 고양이를 키움
누나는 제주에 살아. | 형 집: 제주
나는 전주에 살아. | 전주 여행 계획 중 | 부모님이 전주에 거주
My name is Tom. | Tom called. | Has a son named Tom. | User's son's name: Tom | My middle name is Tom. | Landlord: Tom
나는 카카오에서 일해. | 카카오는 회사다 | 아내 회사: 카카오 | 전 직장: 카카오 | 카카오 안 다녀
나는 카카오에서 일해. | 회사는 카카오 아니야 | 카카오에서 일했었어 | 카카오 다니고 싶어
나는 전주에 살아. | 고향은 전주예요 | 할머니 집은 전주예요 | 여행 도시: 전주 | 친구가 전주에 살아 | 전주에 살았었어
우리 고양이 이름은 나비야. | 강아지: 나비 | 나비는 고양이야 | 친구 고양이: 나비
나는 새우 알레르기가 있어. | 새우 알레르기 없음 | 좋아하는 음식: 새우
내 생일은 5월 4일이야. | 결혼기념일: 5월 4일 | 엄마 생일: 5월 4일
"""


def pairs(table: str) -> list[tuple[str, str]]:
    "A rejected text with each other text of its row."
    rows = (row.split(" | ") for row in table.strip().split("\n") if row)
    return [(row[0], text.replace("¶", "\n")) for row in rows for text in row[1:]]


def meets(rejected: str, text: str) -> bool:
    "Whether a text would be refused after a rejection of another."
    then = ManualClock("2026-01-01").now()
    return not set(rejectable(new_record(rejected, then))).isdisjoint(refused_values(new_record(text, then)))


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[Memory]:
    with Memory(tmp_path / "memory.db", embedder=None, clock=ManualClock("2026-01-01")) as memory:
        yield memory


@pytest.mark.parametrize(("rejected", "text"), pairs(_AGAIN))
def test_a_note_that_says_a_rejected_fact_is_refused(rejected: str, text: str) -> None:
    assert meets(rejected, text)


@pytest.mark.parametrize(("rejected", "text"), pairs(_PASSES))
def test_a_note_of_another_value_person_or_relation_is_stored(rejected: str, text: str) -> None:
    assert not meets(rejected, text)


def test_a_note_is_refused_on_every_way_in_and_in_its_own_namespace_alone(memory: Memory, tmp_path: Path) -> None:
    kept = memory.write("A note.")
    memory.companion.reject(text="I work at Siemens.")
    for call in (lambda: memory.write("- Works for Siemens"), lambda: memory.update(kept.id, text="Employer: Siemens"),
                 lambda: memory.write_many(["I like tea.", '{"employer": "Siemens"}'])):
        with pytest.raises(RejectedValue):
            call()
    memory.write("Employer: Bosch")
    memory.add_conversation([{"role": "assistant", "text": "Noted! Your employer is Siemens."}], session="s")
    assert [r.text for r in memory.list()] == ["Employer: Bosch", "A note."]
    assert memory.namespace("other").write("- Works for Siemens").id


def test_json_that_is_nested_too_deep_is_read_as_text(memory: Memory) -> None:
    memory.companion.reject(text="I work at Siemens.")
    deep = "[" * 490 + '"a"' + "]" * 490
    assert memory.write(deep).text == deep and json.loads(deep)


def test_words_of_notes_are_in_no_cache_after_texts_are_forgotten() -> None:
    "What was erased stays in no cache of the process."
    with Memory(":memory:", embedder="none") as memory:
        memory.companion.reject(memory.write("I live in Leeds.").id)
        memory.write("Home: Quillonborough")
    caches = (rejection._stems, rejection._role, value_equality.verb_of)
    assert any(c.cache_info().currsize for c in caches)  # type: ignore[attr-defined]
    forget_texts()
    assert not any(c.cache_info().currsize for c in caches)  # type: ignore[attr-defined]
