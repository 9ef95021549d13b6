"""Chats that KakaoTalk exports, message by message: texts of Windows, Android and iPhones, tables of Macs, in Korean and in English.

A file has one layout, that of its first message. A line that begins no message of that layout belongs to the message above it, whatever
it looks like: people write dates, brackets and colons, and paste other chats. Notices of the program are told from what is said by their
layout; on Windows, where they have none, by their words.
"""

import csv
import io
import re
from collections.abc import Iterator, Sequence
from datetime import datetime

from rlm.core.text.calendar_words import month_number

_DAY = r"(?P<y>\d{4})(?:년|\.)\s?(?P<mo>\d{1,2})(?:월|\.)\s?(?P<d>\d{1,2})(?:일|\.)"  # 2026년 4월 30일, 2026. 4. 30.
_MONTH = r"(?P<mo>(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)[a-z]*)\.?"
_DAYS = (_DAY, rf"{_MONTH} (?P<d>\d{{1,2}}), (?P<y>\d{{4}})", rf"(?P<d>\d{{1,2}}) {_MONTH} (?P<y>\d{{4}})")
_TIME = r"(?:(?P<noon>오전|오후)\s?)?(?P<h>\d{1,2}):(?P<m>\d\d)(?:\s?(?P<half>[aApP])\.?[mM]\.?)?"
_STAMPS = (*(rf"{day}(?:,|,? at)?\s{_TIME}" for day in _DAYS), *(rf"{_TIME}, {day}" for day in _DAYS[1:]), _TIME)
_WINDOWS = re.compile(rf"\[(?P<who>.*?)\] \[{_TIME}\](?: (?P<text>.*))?")
_MOBILE = tuple(re.compile(rf"{stamp}(?:, (?P<who>.*?) :(?: (?P<text>.*))?|(?P<notice>[,:] .*))") for stamp in _STAMPS)
_RULED = tuple(re.compile(rf"-{{3,}}\s+(?:\w+, )?{day}(?: .요일)?\s+-{{3,}}") for day in _DAYS)
_BARE = tuple(re.compile(rf"(?:\w+day, )?{day}(?: .요일)?(?:(?:,|,? at)?\s{_TIME})?") for day in _DAYS)
_INVITED = re.compile(r".+님이 .+님을 (?:초대|내보)(?:했|하였|냈)습니다\.?|.+ (?:invited|removed) .+\.")
_CAME = re.compile(r"(?P<who>.+)님이 (?:들어왔|나갔)습니다\.|(?P<name>.+) (?:joined this chatroom|left(?: this chatroom)?)\.")
_TITLED = re.compile(  # people who are called by a title: what they do may be told by a speaker
    r"(?:.*\s)?(?:선생|과장|부장|차장|대리|팀장|실장|사장|회장|대표|원장|교수|박사|의사|기사|손|고객|부모|어머|아버|형|누|목사|스)")
_WORDLESS = re.compile(
    r"\(?(?:사진|동영상|이모티콘)\)?|사진 \d+장|음성 ?메시지|삭제된 메시지입니다\.?|채팅방 관리자가 메시지를 가렸습니다\.?|"
    r"(?:파일|File): .+\.\w{2,5}|"
    r"\(?(?:Photos?|Videos?|Emoticons?|Stickers?)\)?|(?:Photo \d+|\d+ photos)|Voice (?:Note|Message)s?|This message was deleted\.?|"
    r"(?:보이스톡|페이스톡|그룹콜|라이브톡|Voice Call|Video Call|Group Call|Live Talk)"
    r"(?: (?:해요|취소|부재중|종료|응답 없음|No Answer|Canceled|Missed|ended))?\.?(?: [\d:]+)?|[0-9a-f]{16,}\.[a-z0-9]{3,4}", re.IGNORECASE)
_SAVED = re.compile(r"\s*(?:저장한\s*날짜|Date Saved|Saved Date)\s*:")
_TABLE = "Date,User,Message"


def _lines(text: str) -> list[str]:
    return text.removeprefix("\ufeff").replace("\r\n", "\n").split("\n")


def is_kakaotalk(text: str,  # a file's text, or its beginning
                 ) -> bool:
    "Return whether a text is a chat that KakaoTalk has exported, by its first two lines."
    first, second = [*_lines(text)[:2], ""][:2]
    return first.strip() == _TABLE or bool(first.strip() and _SAVED.match(second))


def chat_title(text: str,  # an exported chat
               name: str,  # name of its file, without the ending
               ) -> str:   # empty: neither tells
    "Return the title of a chat, the same for each of its exports: without the time of the export and the number of members."
    first = _lines(text)[0].strip()
    if first == _TABLE or first.startswith("Talk_"):
        plain = re.sub(r"[_ ()-]*\d{4}[-.]\d{1,2}[-.]\d{1,2}[-_ .:()\d]*$", "", name)
        return "" if re.fullmatch(r"(?i)(?:kakao)?talk(?:_?chats?)?[\d_ -]*", plain) else plain
    return re.sub(r" \d+(?= 카카오톡 대화$)", "", first)


def is_wordless(text: str,  # a message
                ) -> bool:
    "Return whether a message holds no words: a photo, an emoticon, a file, a call, or one that was deleted."
    return not text or _WORDLESS.fullmatch(text) is not None


def _day_of(m: re.Match[str]) -> str:
    "The day of a match as YYYY-MM-DD; empty where it has none, or there is no such day."
    found = m.groupdict()
    if not found.get("y"):
        return ""
    month = found["mo"] if found["mo"].isdigit() else str(month_number(found["mo"][:3].lower()))
    try:
        return f"{datetime(int(found['y']), int(month), int(found['d'])):%Y-%m-%d}"
    except ValueError:
        return ""


def _time_of(m: re.Match[str]) -> str:
    "The time of a match as HH:MM; empty where there is no such time."
    hour, half = int(m["h"]), m["noon"] or (m["half"] or "").upper()
    if half and 1 <= hour <= 12:
        hour = hour % 12 + (12 if half in ("오후", "P") else 0)
    return f"{hour:02}:{m['m']}" if hour < 24 and int(m["m"]) < 60 else ""


def _first_day(patterns: Sequence[re.Pattern[str]], line: str) -> str:
    "The day that a line consists of; empty for another line."
    return next((day for p in patterns if (m := p.fullmatch(line.strip())) and (day := _day_of(m))), "")


def _day_line(line: str, windows: bool, coming: "re.Match[str] | None", before: str) -> str:
    "The day that a line sets off: ruled on Windows; on a phone another day than before, that of the message below. Empty for another line."
    if windows:
        return _first_day(_RULED, line)
    found = _first_day(_BARE, line) if coming else ""
    return found if coming and found != before and _day_of(coming) in (found, "") else ""


def _is_notice(line: str, speakers: "set[str]") -> bool:
    "Whether a line without a time is a notice of Windows: of one who speaks in the chat, or of a name that is no title of a person."
    m = _CAME.fullmatch(line)
    name = (m["who"] or m["name"]) if m else ""
    return _INVITED.fullmatch(line) is not None or (m is not None and (name in speakers or not _TITLED.fullmatch(name)))


def _table_messages(text: str) -> Iterator[tuple[str, str, str]]:
    for row in csv.DictReader(io.StringIO(text.removeprefix("\ufeff"))):
        try:
            at = f"{datetime.fromisoformat(str(row['Date']).strip()):%Y-%m-%dT%H:%M:%S}+09:00"
        except ValueError:
            at = ""
        who, words = (row["User"] or "").strip(), (row["Message"] or "").strip()
        yield at, "" if _INVITED.fullmatch(words) or _CAME.fullmatch(words) else who, words


def kakaotalk_messages(text: str,  # an exported chat
                       ) -> Iterator[tuple[str, str, str]]:  # time in ISO 8601, empty: not told; speaker, empty: a notice; words
    "Yield the messages of a chat in order, a message of several lines as one, and notices. Times are Korean ones, as exports tell no zone."
    lines = _lines(text)
    if lines[0].strip() == _TABLE:
        yield from _table_messages(text)
        return
    layout = next((p for line in lines for p in (_WINDOWS, *_MOBILE) if (m := p.fullmatch(line)) and _time_of(m) and m["who"]), _WINDOWS)
    began = [m if (m := layout.fullmatch(line)) and _time_of(m) else None for line in lines]
    speakers, windows = {m["who"].strip() for m in began if m and m["who"]}, layout is _WINDOWS
    title = lines[0].strip().removesuffix("님과 카카오톡 대화").strip()
    day, before, said = "", "", list[str]()
    ahead, following = list[re.Match[str] | None](), None  # for each line the message that the next line with words begins
    for m, line in zip(reversed(began), reversed(lines), strict=True):
        ahead.append(following)
        following = m if line.strip() else following
    for line, m, coming in zip(lines, began, reversed(ahead), strict=True):
        if m:
            if said:
                yield said[0], said[1], said[2].strip()
            day = _day_of(m) or day
            at, who, words = (f"{day}T{_time_of(m)}:00+09:00" if day else ""), (m["who"] or "").strip(), m["text"] or ""
            if not windows and title.startswith(f"{who} : ") and f"{who} : {words}".startswith(f"{title} : "):
                who, words = title, words[len(title) - len(who):]  # the person of the chat has a colon in the name
            said, before = [at, who, words if who else line], day
        elif found := _day_line(line, windows, coming, before):
            day = found
        elif windows and said and _is_notice(line.strip(), speakers):
            yield said[0], said[1], said[2].strip()
            said = [said[0], "", line.strip()]
        elif said:
            said[2] += f"\n{line}"
    if said:
        yield said[0], said[1], said[2].strip()
