"Times from all sorts of hands, and names made from content."
import random
import unicodedata
from contextlib import suppress
from datetime import UTC, date, datetime, timedelta, timezone

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from rlm.core.clock import Clock, ManualClock, SystemClock, from_iso, in_zone, parse_time, to_iso, zone
from rlm.core.errors import InvalidInput
from rlm.core.ids import canonical_json, new_id, squeeze, strategy_id

zones = st.integers(-23 * 60 - 59, 23 * 60 + 59).map(lambda m: timezone(timedelta(minutes=m)))
inside = {"min_value": datetime(2, 1, 1), "max_value": datetime(9998, 12, 31)}
moments = st.datetimes(**inside, timezones=zones)


@given(moments)
@example(datetime(2, 1, 1, tzinfo=UTC))
@example(datetime(2026, 10, 25, 1, 30, fold=1, tzinfo=UTC))
def test_a_moment_survives_its_stamp(when: datetime) -> None:
    stamp = to_iso(when)
    assert len(stamp) == 27 and stamp.endswith("Z") and stamp.isascii()
    assert from_iso(stamp) == when and from_iso(stamp).utcoffset() == timedelta(0)
    assert to_iso(from_iso(stamp)) == stamp
    assert parse_time(stamp) == parse_time(when) == when


@given(moments, moments)
def test_text_order_is_time_order(a: datetime, b: datetime) -> None:
    assert (to_iso(a) < to_iso(b)) == (a < b) and (to_iso(a) == to_iso(b)) == (a == b)


@given(moments)
def test_iso_text_with_any_offset_is_read(when: datetime) -> None:
    assert parse_time(when.isoformat()) == when
    assert parse_time(f"  {when.isoformat(sep=' ')}\n") == when


@given(st.dates(date(2, 1, 1), date(9998, 12, 31)))
def test_a_date_is_its_first_moment_in_utc(day: date) -> None:
    midnight = datetime(day.year, day.month, day.day, tzinfo=UTC)
    year, week, weekday = day.isocalendar()
    assert parse_time(day) == parse_time(day.isoformat()) == parse_time(f"{year:04}-W{week:02}-{weekday}") == midnight


@pytest.mark.parametrize("text", ["2026-01-31T09:00Z", "2026-01-31 09:00:00Z", "20260131T090000Z", "2026-01-31T18:00+09:00",
                                  "2026-01-31T09:00:00.000000+00:00", "2026-01-31T09:00:00.000000Z"])
def test_spellings_of_one_moment(text: str) -> None:
    assert parse_time(text) == datetime(2026, 1, 31, 9, tzinfo=UTC)


@pytest.mark.parametrize("wrong", ["", " ", "soon", "yesterday", "2026-02-30", "2026-13-01", "31.01.2026", "2026-01-31T25:00Z",
                                   "2026-01-31T09:00:00", datetime(2026, 1, 31), "2026-01-31T", "2026-01-31\0", "\ud800",
                                   0, 1.5, True, None, b"2026-01-31", [], "9" * 5000, "-2026-01-01",
                                   "0001-01-01T00:00:00+09:00", "9999-12-31T23:59:59-09:00"])
def test_what_is_no_moment_is_refused_by_name(wrong: object) -> None:
    with pytest.raises(InvalidInput) as error:
        parse_time(wrong, "since")  # type: ignore[arg-type]
    assert "since" in error.value.message and error.value.hint and len(str(error.value)) < 6000


@given(st.text())
def test_no_text_breaks_the_reader(text: str) -> None:
    with suppress(InvalidInput):
        assert to_iso(parse_time(text))


def test_a_naive_moment_has_no_stamp() -> None:
    with pytest.raises(InvalidInput, match="no time zone"):
        to_iso(datetime(2026, 1, 1))


def test_a_manual_clock_stands_moves_and_goes_back() -> None:
    clock = ManualClock("2026-01-01T00:00:00+09:00")
    assert isinstance(clock, Clock) and isinstance(SystemClock(), Clock)
    assert clock.now() == clock.now() == datetime(2025, 12, 31, 15, tzinfo=UTC)
    assert clock.advance(days=1) == datetime(2026, 1, 1, 15, tzinfo=UTC)
    assert clock.advance(hours=-2) == clock.now() == datetime(2026, 1, 1, 13, tzinfo=UTC)
    assert SystemClock().now().utcoffset() == timedelta(0)


def test_random_ids_are_new_each_time() -> None:
    ids = {new_id() for _ in range(10_000)}
    assert len(ids) == 10_000 and all(len(i) == 12 and set(i) <= set("0123456789abcdef") for i in ids)


# ---------------------------------------------------------------- names made from content

words = st.text(st.characters(exclude_categories=["Cs"]), max_size=30)
scopes = st.dictionaries(words, st.one_of(words, st.booleans(), st.none(), st.integers(), st.lists(words, max_size=3)), max_size=4)


@given(words, words, scopes)
def test_composition_and_white_space_do_not_change_a_strategy_id(title: str, content: str, scope: dict[str, object]) -> None:
    def other(text: str) -> str:
        return "\u3000 " + unicodedata.normalize("NFD", text).replace(" ", "\t \n") + "\n"
    named = strategy_id(title, content, {"tools": [title]})
    assert len(named) == 16 and set(named) <= set("0123456789abcdef")
    assert named == strategy_id(other(title), other(content), {"tools": [other(title)]})
    assert strategy_id(title, content, scope) == strategy_id(title, content, dict(reversed(scope.items())))


@pytest.mark.parametrize("title", ["Find the class", "강남 식당", "STRASSE", "Éclair", "ΣΊΣΥΦΟΣ"])
def test_the_title_is_named_without_regard_to_case(title: str) -> None:
    assert strategy_id(title, "c", {}) == strategy_id(title.lower(), "c", {}) == strategy_id(title.swapcase(), "c", {})


def test_content_keeps_its_case_and_everything_counts() -> None:
    ids = {strategy_id("t", "Abc", {}), strategy_id("t", "abc", {}), strategy_id("abc", "t", {}), strategy_id("tabc", "", {}),
           strategy_id("t", "abc", {"a": 1}), strategy_id("t", "abc", {"a": "1"}), strategy_id("t", "abc", {"a": ["1"]}),
           strategy_id("t", "abc", {"a": None}), strategy_id("t", "a bc", {}), strategy_id("t a", "bc", {})}
    assert len(ids) == 10


def test_a_strategy_id_never_changes() -> None:
    "Packs name strategies by it: another value would make every pack that was ever shipped look new."
    assert strategy_id("Find the class", "search_entity, then describe_entity", {"tools": ["search_entity"], "ontology": None}) == FIRST


FIRST = "4ec245da43978213"


@given(words)
def test_squeezing_twice_is_squeezing_once(text: str) -> None:
    assert squeeze(squeeze(text)) == squeeze(text)


@given(scopes)
def test_canonical_json_does_not_see_the_order_of_keys(value: dict[str, object]) -> None:
    items = list(value.items())
    random.Random(0).shuffle(items)
    assert canonical_json(dict(items)) == canonical_json(value)


def test_a_moment_is_told_in_a_zone_also_at_the_end_of_the_calendar() -> None:
    last = datetime(9999, 12, 31, 23, tzinfo=UTC)
    assert in_zone(last, zone("Asia/Seoul")) == last
    assert in_zone(parse_time("2026-03-31T22:30:00Z"), zone("Asia/Seoul")).date() == date(2026, 4, 1)
