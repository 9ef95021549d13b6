"""Words of both languages that several readers share stand in one table each; what is left out of a reader's pattern is left out there."""

import re
from pathlib import Path

import pytest

from rlm.companion.english import english_statements
from rlm.companion.korean import kin_subjects, near_names
from rlm.companion.statement import DATA, language_data
from rlm.core.text.calendar_words import KOREAN_WEEKDAY, MONTH, MONTHS, WEEKDAY, WEEKDAYS, month_number
from rlm.core.text.kinship import FAMILY, KIN, NEAR, english_names, korean_names, names_of
from rlm.core.text.number_words import ENGLISH_NUMBERS, KOREAN_COUNTING, KOREAN_NUMBERS, number_told, one_of, spelled

PACKAGE = Path(__file__).parents[2] / "rlm"


def test_the_calendar_is_written_once() -> None:
    listed = [r"february.{1,4}march", r"tues(?:day)?\W{1,4}wednes", "월화수목금토일"]
    found = {p.relative_to(PACKAGE).as_posix() for p in [*PACKAGE.rglob("*.py"), *PACKAGE.rglob("*.toml")]
             if any(re.search(pattern, p.read_text(encoding="utf-8")) for pattern in listed)}
    assert found - {"data/language/importance.toml"} == {"core/text/calendar_words.py"}  # there, chats write 월욜, too


def test_the_numbers_are_written_once() -> None:
    listed = [r"\"eleven\W{1,4}twelve", r"\bfour\|five\|six\|seven\|eight", "여섯.{1,4}일곱.{1,4}여덟"]
    found = {p.relative_to(PACKAGE).as_posix() for p in PACKAGE.rglob("*.py")
             if any(re.search(pattern, p.read_text(encoding="utf-8")) for pattern in listed)}
    assert found == {"core/text/number_words.py"}


def test_each_month_and_day_is_matched_by_its_pattern() -> None:
    assert [month_number(m) for m in MONTHS] == [month_number(m[:3]) for m in MONTHS] == [*range(1, 13)]
    assert all(re.fullmatch(MONTH, m) for m in MONTHS) and all(re.fullmatch(WEEKDAY, d) for d in WEEKDAYS)
    assert re.fullmatch(KOREAN_WEEKDAY, "수요일") and not re.fullmatch(KOREAN_WEEKDAY, "생요일")
    with pytest.raises(StopIteration):
        month_number("brumaire")


def test_numbers_are_told_in_both_languages() -> None:
    assert [number_told(w) for w in (*ENGLISH_NUMBERS, *KOREAN_NUMBERS, *KOREAN_COUNTING)] == [*range(1, 13)] * 3
    assert number_told("umpteen") == number_told("") == 0
    assert one_of(ENGLISH_NUMBERS, 2, 4) == "two|three|four" and one_of(KOREAN_COUNTING, 11) == "열한|열두"


def test_a_number_is_said_in_one_word() -> None:
    assert [spelled(n) for n in (1, 12, 17, 20, 42)] == [
        ("one", "first"), ("twelve", "twelfth", "십이"), ("seventeen", "십칠"), ("twenty", "이십"), ("사십이",)]
    assert spelled(0) == spelled(100) == ()


def test_the_language_files_are_filled_from_the_calendar() -> None:
    for path in DATA.glob("*.toml"):
        assert not re.search("MONTH|WEEKDAY", str(language_data(path.stem))), path.name
    assert MONTH in language_data("en")["closers"] + language_data("en")["openers"]


def test_a_name_stands_once_among_rows_of_one_language_or_is_told_to_be_of_several() -> None:
    korean = [name for kin in KIN for name in kin.korean]
    assert len(korean) == len(set(korean))
    english = [name for kin in KIN for name in kin.english]
    assert {name for name in english if english.count(name) > 1} == {
        "sister", "older sister", "brother", "older brother", "aunt", "mother-in-law", "father-in-law"}
    assert {*NEAR, *FAMILY} <= {kin.kind for kin in KIN}


def test_a_mother_has_all_of_her_names() -> None:
    assert {"mum", "mother", "엄마", "어머니"} <= {*names_of("mom")} == {*names_of("어머님")}
    assert near_names()["어머님"] == "엄마" and "user's mum" in kin_subjects("user's 엄마")
    assert "mother" in english_names(*FAMILY, pronoun="she") and "mother" not in english_names(*FAMILY, pronoun="he")
    assert "친구" in korean_names("acquaintance") and "친구" not in near_names()  # a friend may be anybody's


@pytest.mark.parametrize(("text", "subject"), [("My granny Edith lives in Hull.", "Edith"), ("My nan Rose lives in Leeds.", "Rose"),
                                               ("My hamster Coco lives in a box.", "Coco"), ("My sister Ann lives in Hull.", "Ann")])
def test_who_is_near_is_read_by_name(text: str, subject: str) -> None:
    assert [s.subject for s in english_statements(text)] == [subject]


def test_a_landlord_keeps_a_title_where_no_name_is_known() -> None:
    assert [s.subject for s in english_statements("My landlord Mr Bae lives in Hull.")] == ["user's landlord Mr Bae"]
