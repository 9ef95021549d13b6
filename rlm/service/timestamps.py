"""Dates and times as people, tables and programs write them, read as ISO 8601; what may be two days is refused, not guessed."""

import re
from collections.abc import Iterable
from contextlib import suppress
from datetime import UTC, datetime, timedelta

from rlm.core.clock import to_iso
from rlm.core.errors import InvalidInput
from rlm.core.text.calendar_words import KOREAN_WEEKDAYS, MONTHS, month_number
from rlm.core.text.normal_form import LazyPattern

YEARS = range(1900, 2101)  # years that a number may stand for; one of another year counts something else
SCALES = ((1e8, 1e11, 1.0), (1e11, 1e14, 1e3), (1e14, 1e17, 1e6), (1e17, 1e20, 1e9))  # least, most, units a second: s, ms, µs, ns
SERIALS = (20_000, 80_000)  # days since 1899-12-30, as spreadsheets count them: 1954 to 2119
HINT = "Write it like 2026-11-05, or 2026-11-05T09:00:00Z."

_CLOCK = (r"(?:(?:T|,|\s|at)*(?P<noon>오전|오후|[AaPp]\.?[Mm]\.?)?\s*(?P<h>\d{1,2})[:시]\s*(?P<m>\d{2})분?(?::(?P<s>\d{2})(?:[.,]\d+)?)?"
          r"\s*(?P<half>[AaPp]\.?[Mm]\.?)?\s*(?P<zone>Z|UTC|GMT|KST|[+-]\d{2}:?\d{2})?)?")
_WEEKDAY = rf"(?:\s*\(?[{KOREAN_WEEKDAYS}](?:요일)?\)?)?"
_MONTH = r"(?P<month>(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)[a-z]*)\.?"
_DAYS = tuple(LazyPattern(rf"(?:(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)[a-z]*\.?,?\s+)?{day}{_CLOCK}", re.I) for day in (
    rf"(?P<y>\d{{4}})\s*[-./년]\s*(?P<mo>\d{{1,2}})\s*[-./월]\s*(?P<d>\d{{1,2}})\s*[.일]?{_WEEKDAY}",  # 2026-11-05, 2026. 11. 5.
    rf"{_MONTH}\s+(?P<d>\d{{1,2}})(?:st|nd|rd|th)?,?\s+(?P<y>\d{{4}})",  # November 5, 2026
    rf"(?P<d>\d{{1,2}})(?:st|nd|rd|th)?[\s-]{_MONTH}[,\s-]+(?P<y>\d{{4}})",  # 5 November 2026
    r"(?P<a>\d{1,2})(?P<mark>[/.-])(?P<b>\d{1,2})(?P=mark)(?P<y>\d{4}|\d{2})\.?"))  # 05.11.2026, 5/11/2026
_MONTH_ALONE = LazyPattern(r"(\d{4})(?:\s*[-./년]\s*(\d{1,2})\s*월?)?")
_COMPACT = {8: "%Y%m%d", 12: "%Y%m%d%H%M", 14: "%Y%m%d%H%M%S"}  # digits of a compact date


def _iso(found: datetime) -> str:
    return to_iso(found if found.tzinfo else found.replace(tzinfo=UTC))


def _of_number(number: float, given: object) -> str:
    "A moment that a number stands for: seconds, milliseconds, microseconds or nanoseconds since 1970, or the day of a spreadsheet."
    if SERIALS[0] <= number < SERIALS[1]:
        return _iso(datetime(1899, 12, 30) + timedelta(seconds=round(number * 86_400)))
    unit = next((unit for least, most, unit in SCALES if least <= number < most), 0.0)
    if not unit:
        raise InvalidInput(f"The number {given!r} is no time: not of seconds or their parts since 1970, nor a day of a spreadsheet.", HINT)
    found = datetime(1970, 1, 1) + timedelta(seconds=number / unit)
    if found.year not in YEARS:
        raise InvalidInput(f"The number {given!r} would be a time of the year {found.year:,}.", HINT)
    return _iso(found)


def _of_digits(text: str) -> str:
    "A moment written in digits alone: a year, a compact date, or a number that counts."
    if len(text) == 4 and int(text) in YEARS:
        return _iso(datetime(int(text), 1, 1))
    if len(text) in _COMPACT and int(text[:4]) in YEARS:
        try:
            return _iso(datetime.strptime(text, _COMPACT[len(text)]))
        except ValueError:
            pass  # a number that counts
    return _of_number(float(text), text)


def _month_and_day(m: "re.Match[str]", text: str, day_first: bool | None) -> tuple[int, int]:
    "Month and day of a date; raises `InvalidInput` where either number may be the day."
    found = m.groupdict()
    if found.get("month"):
        return month_number(found["month"][:3].lower()), int(found["d"])
    if found.get("mo"):
        return int(found["mo"]), int(found["d"])
    a, b = int(found["a"]), int(found["b"])
    if len(found["y"]) == 2:
        raise InvalidInput(f"The year of {text!r} has two digits.", HINT)
    first = True if found["mark"] == "." or a > 12 else False if b > 12 else day_first
    if first is None and a != b:
        raise InvalidInput(f"{text!r} may be {a} {MONTHS[b - 1][:3].title()} or {b} {MONTHS[a - 1][:3].title()}.", HINT)
    return (b, a) if first else (a, b)


def as_time(value: object,  # a number of seconds or their parts since 1970, a time in words or digits, or anything else
            day_first: bool | None = None,  # whether 5/11/2026 is of November; None: not known
            ) -> str | None:
    "Return a time in ISO 8601, in UTC; None for what is no time. Raises `InvalidInput` for a date with two readings, or none."
    if isinstance(value, int | float) and not isinstance(value, bool):
        return _of_digits(str(value)) if isinstance(value, int) and value > 0 else _of_number(value, value) if value > 0 else None
    if not isinstance(value, str) or not (text := value.strip()):
        return None
    if re.fullmatch(r"\d+(?:\.\d+)?", text) and not re.fullmatch(r"\d{1,4}\.\d{1,2}", text):
        return _of_digits(text) if text.isdigit() else _of_number(float(text), text)
    with suppress(ValueError):
        return _iso(datetime.fromisoformat(text))
    if m := _MONTH_ALONE.fullmatch(text):
        return _of_parts(text, int(m[1]), int(m[2] or 1), 1)
    for pattern in _DAYS:
        if m := pattern.fullmatch(text):
            month, day = _month_and_day(m, text, day_first)
            return _of_parts(text, int(m["y"]), month, day, m)
    if re.fullmatch(r"[\d\s./:-]+", text):
        raise InvalidInput(f"There is no day {text!r}.", HINT)
    return None


def _of_parts(text: str, year: int, month: int, day: int, m: "re.Match[str] | None" = None) -> str:
    "The moment of a day and, where a match has one, a time. Raises `InvalidInput` if there is no such day or hour."
    hour, minute, second, half = 0, 0, 0, ""
    if m and m["h"]:
        hour, minute, second, half = int(m["h"]), int(m["m"]), int(m["s"] or 0), (m["noon"] or m["half"] or "").lower()[:2]
        if half and 1 <= hour <= 12:
            hour = hour % 12 + (12 if half in ("오후", "pm", "p.") else 0)
    zone = "" if m is None else (m["zone"] or "").upper()
    mark = {"": "+00:00", "Z": "+00:00", "UTC": "+00:00", "GMT": "+00:00", "KST": "+09:00"}.get(zone, zone)
    try:
        return _iso(datetime.fromisoformat(f"{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}{mark}"))
    except ValueError:
        raise InvalidInput(f"There is no day or hour {text!r}.", HINT) from None


def has_day_first(values: Iterable[object],  # times of one column, as they are written
                  ) -> bool | None:
    "Return whether dates such as 5/11/2026 have the day first, by those of their column that have one reading; None: they don't tell."
    told = set[bool]()
    for value in values:
        m = _DAYS[3].fullmatch(value.strip()) if isinstance(value, str) else None
        if m and m["mark"] != "." and (int(m["a"]) > 12) != (int(m["b"]) > 12):
            told.add(int(m["a"]) > 12)
    return told.pop() if len(told) == 1 else None
