"""A life moved in from other programs: what goes in comes out, at its time, once, and what can't be read is named."""

import json
import zipfile
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from rlm import Memory
from rlm.core.errors import InvalidInput
from rlm.service.cli.interchange import format_of
from rlm.service.cli.main import main
from rlm.service.importers import (
    ForeignConversation,
    ForeignMemory,
    ForeignReport,
    UnreadablePart,
    import_export,
    read_export,
)
from rlm.service.kakaotalk import chat_title, is_kakaotalk, is_wordless, kakaotalk_messages
from rlm.service.note_text import chat_turns
from rlm.service.timestamps import as_time, has_day_first


def import_files(
    folder: Path, files: dict[str, str | bytes], format: str | None = None, **more: Any
) -> tuple[ForeignReport, list[Any]]:
    "Import files, and return the report and the memories, first ones first."
    for name, content in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    path = folder if len(files) > 1 else folder / next(iter(files))
    with Memory(":memory:", embedder="none") as memory:
        report = import_export(memory, path, format or format_of(path), progress=False, **more)
        return report, list(reversed(memory.list(k=100, status="any")))


# ---------------------------------------------------------------- KakaoTalk

SAID = [
    ("2026-04-30T14:30", "[영업] 김부장", "나 다음 달에 이사 가\n도와줄래?"),
    ("2026-04-30T00:05", "민수: 총무", "2026년 5월 3일\n시간 : 3시"),
    ("2026-04-30T12:05", "Kim, Jisu", "ok [see 3:00 PM] : yes"),
    ("2026-05-01T00:00", "민수: 총무", "나 새우 알레르기 있어"),
]


def chat(head: str, days: dict[str, str], stamp: Any, notice: str, wordless: str) -> str:
    "A chat in the layout of a system: what was said, with a notice and a message without words on the first day."
    lines, day = [head, ""], ""
    for at, who, words in SAID:
        if at[:10] != day:
            lines.append(days[day := at[:10]])
            lines += [stamp(at, who, wordless), notice] if day == SAID[0][0][:10] else []
        lines.append(stamp(at, who, words))
    return "\n".join(lines) + "\n"


def twelve(at: str, am: str, pm: str) -> str:
    hour = int(at[11:13])
    return f"{pm if hour >= 12 else am} {hour % 12 or 12}:{at[14:16]}"


def english_time(at: str) -> str:
    return " ".join(reversed(twelve(at, "AM", "PM").split(" ")))


def korean(at: str, time: str) -> str:
    return f"{at[:4]}년 {int(at[5:7])}월 {int(at[8:10])}일 {time}"


def dotted(at: str, time: str) -> str:
    return f"{at[:4]}. {int(at[5:7])}. {int(at[8:10])}. {time}"


def english(at: str, short: bool = False) -> str:
    month = {"04": "April", "05": "May"}[at[5:7]]
    return f"{month[:3] if short else month} {int(at[8:10])}, {at[:4]}"


KO_DAYS, EN_DAYS = (
    {"2026-04-30": "2026년 4월 30일 목요일", "2026-05-01": "2026년 5월 1일 금요일"},
    {"2026-04-30": "Thursday, April 30, 2026", "2026-05-01": "Friday, May 1, 2026"},
)
RULED = "--------------- {} ---------------"
CHATS = {
    "Windows": chat(
        "우리 님과 카카오톡 대화\n저장한 날짜 : 2026-05-01 21:10:11",
        {d: RULED.format(t) for d, t in KO_DAYS.items()},
        lambda at, who, t: f"[{who}] [{twelve(at, '오전', '오후')}] {t}",
        "지은님이 민수님을 초대했습니다.",
        "사진 3장",
    ),
    "Windows, 24 hours": chat(
        "우리 님과 카카오톡 대화\n저장한 날짜 : 2026-05-01 21:10:11",
        {d: RULED.format(t) for d, t in KO_DAYS.items()},
        lambda at, who, t: f"[{who}] [{at[11:16]}] {t}",
        "[] [14:30] 지은님이 나갔습니다.",
        "삭제된 메시지입니다.",
    ),
    "Windows, English": chat(
        "Family with KakaoTalk Chats\nDate Saved : 2026-05-01 21:10:11",
        {d: RULED.format(t) for d, t in EN_DAYS.items()},
        lambda at, who, t: f"[{who}] [{english_time(at)}] {t}",
        "Jieun invited Minsu.",
        "Photo",
    ),
    "Android": chat(
        "우리 가족 4 카카오톡 대화\n저장한 날짜 : 2026년 5월 1일 오후 9:10",
        {d: f"{t[:-4]} 오전 12:05" for d, t in KO_DAYS.items()},
        lambda at, who, t: f"{korean(at, twelve(at, '오전', '오후'))}, {who} : {t}",
        "2026년 4월 30일 오후 2:31, 지은님이 민수님을 초대했습니다.",
        "이모티콘",
    ),
    "Android, 24 hours": chat(
        "우리 가족 4 카카오톡 대화\n저장한 날짜 : 2026년 5월 1일 21:10",
        {d: f"{t[:-4]} 00:05" for d, t in KO_DAYS.items()},
        lambda at, who, t: f"{korean(at, at[11:16])}, {who} : {t}",
        "2026년 4월 30일 14:31, 지은님이 나갔습니다.",
        "동영상",
    ),
    "Android, English": chat(
        "KakaoTalk Chats with Jieun\nDate Saved : May 1, 2026, 9:10 PM",
        {d: f"{english(d)}, 12:05 AM" for d in EN_DAYS},
        lambda at, who, t: f"{english(at)}, {english_time(at)}, {who} : {t}",
        "April 30, 2026, 2:31 PM, Minsu joined this chatroom.",
        "This message was deleted.",
    ),
    "iPhone": chat(
        "Talk_2026.5.1 21:10-1.txt\n저장한 날짜 : 2026. 5. 1. 오후 9:10",
        KO_DAYS,
        lambda at, who, t: f"{dotted(at, twelve(at, '오전', '오후'))}, {who} : {t}",
        "2026. 4. 30. 오후 2:31: 지은님이 민수님을 초대했습니다.",
        "파일: 계약서.pdf",
    ),
    "iPhone, times alone": chat(
        "우리 님과 카카오톡 대화\n저장한 날짜 : 2026년 5월 1일 오후 9:10",
        KO_DAYS,
        lambda at, who, t: f"{twelve(at, '오전', '오후')}, {who} : {t}",
        "오후 2:31, 지은님이 나갔습니다.",
        "음성메시지",
    ),
    "iPhone, English": chat(
        "Talk_2026.5.1 21:10-1.txt\nDate Saved : May 1, 2026 at 21:10",
        EN_DAYS,
        lambda at, who, t: f"{english(at, True)} at {at[11:16]}, {who} : {t}",
        "Apr 30, 2026 at 14:31: Jieun invited iPad .",
        "Voice Note",
    ),
    "iPhone, English, 12 hours": chat(
        "Talk_2026.5.1 21:10-1.txt\nDate Saved : May 1, 2026 at 9:10\u202fPM",
        EN_DAYS,
        lambda at, who, t: f"{english(at, True)} at {english_time(at)}".replace(" PM", "\u202fPM") + f", {who} : {t}",
        "Apr 30, 2026 at 2:31\u202fPM: Jieun invited iPad .",
        "Voice Call 1:23",
    ),
}


@pytest.mark.parametrize("system", CHATS)
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_each_message_of_a_chat_comes_out_with_its_speaker_and_time(system: str, end: str, tmp_path: Path) -> None:
    name = "KakaoTalk_20260501_2110_11_345_group.txt"
    report, kept = import_files(tmp_path, {name: CHATS[system].replace("\n", end)})
    assert [(f"{m.valid_from:%Y-%m-%dT%H:%M}", m.speaker, m.text) for m in kept] == [
        (as_time(f"{at}:00+09:00")[:16], who, words) for at, who, words in SAID
    ]  # type: ignore[index]
    assert (report.conversations, report.added, report.left_out, report.refused) == (2, 4, 1, {})


def test_a_line_of_a_message_stays_in_it_whatever_it_looks_like() -> None:
    windows = (
        CHATS["Windows"].partition("\n\n")[0]
        + "\n\n"
        + RULED.format("2026년 4월 30일 목요일")
        + """
[지은] [오후 2:30]
첫 줄이 비었다

2026년 5월 3일 일요일
2026년 5월 3일 오후 3:00, 민수 : 붙여 넣은 말
과장님이 나갔습니다.
끝
지은님이 나갔습니다.
[지은] [오후 2:31] 다음
"""
    )
    android = """우리 카카오톡 대화
저장한 날짜 : 2026년 5월 1일 오후 9:10

2026년 4월 30일 오후 2:30
2026년 4월 30일 오후 2:30, 지은 : 일정
2026년 5월 3일 오후 2:00
2026년 5월 3일 결혼식
민수님이 나갔습니다.
[민수] [오후 2:30] 붙여 넣은 말
2026년 4월 30일 오후 2:31, 지은 :
"""
    assert [(at[11:16], who, words) for at, who, words in kakaotalk_messages(windows)] == [
        (
            "14:30",
            "지은",
            "첫 줄이 비었다\n\n2026년 5월 3일 일요일\n2026년 5월 3일 오후 3:00, 민수 : 붙여 넣은 말\n과장님이 나갔습니다.\n끝",
        ),
        ("14:30", "", "지은님이 나갔습니다."),
        ("14:31", "지은", "다음"),
    ]
    assert [(who, words) for _, who, words in kakaotalk_messages(android)] == [
        (
            "지은",
            "일정\n2026년 5월 3일 오후 2:00\n2026년 5월 3일 결혼식\n민수님이 나갔습니다.\n[민수] [오후 2:30] 붙여 넣은 말",
        ),
        ("지은", ""),
    ]


def test_a_chat_keeps_its_name_and_its_messages_from_export_to_export(tmp_path: Path) -> None:
    table = 'Date,User,Message\n2026-04-30 14:30:00,"지은","이사 가"\n2026-04-30 14:31:00,,"지은님이 나갔습니다."\n'
    first, second = "KakaoTalk_Chat_지은_2026-05-01-21-10-11.csv", "KakaoTalk_Chat_지은_2026-06-01-08-00-00.csv"
    with Memory(":memory:", embedder="none") as memory:
        for name, text, added in (
            (first, table, 1),
            (second, table + '2026-05-31 09:00:00,"지은","짐 다 쌌어"\n', 1),
            ("a.txt", CHATS["Android"], 4),
            ("b.txt", CHATS["Android"].replace("가족 4", "가족 5"), 0),
            ("Talk_2026.5.1 21_10-1.txt", CHATS["iPhone"], 4),
            ("Talk_2026.6.1 9_00-1.txt", CHATS["iPhone"].replace("Talk_2026.5.1 21:10", "Talk_2026.6.1 9:00"), 0),
        ):
            (tmp_path / name).write_text(text, encoding="utf-8")
            assert import_export(memory, tmp_path / name, format_of(tmp_path / name), progress=False).added == added, (
                name
            )
    assert chat_title(table, Path(first).stem) == chat_title(table, Path(second).stem) == "KakaoTalk_Chat_지은"
    assert (
        is_kakaotalk(table)
        and not is_kakaotalk("Dear diary,\n2026-05-01")
        and is_wordless("(이모티콘)")
        and not is_wordless("보이스톡 하자")
    )


def test_a_folder_of_chats_is_read_whatever_they_are_called(tmp_path: Path) -> None:
    cp949 = CHATS["Windows"].encode("cp949")
    report, _ = import_files(
        tmp_path, {"Talk_2026.5.1.txt": CHATS["iPhone"], "지은.txt": cp949, "readme.txt": "not a chat"}
    )
    assert (report.format, report.added, report.refused) == ("kakaotalk", 8, {})


# ---------------------------------------------------------------- times


@pytest.mark.parametrize(
    ("written", "read"),
    [
        (1767312000, "2026-01-02T00:00:00"),
        ("1767312000123", "2026-01-02T00:00:00.123"),
        ("1767312000123456", "2026-01-02T00:00:00.123456"),
        (1767312000123456789, "2026-01-02T00:00:00.123"),
        ("46331", "2026-11-05"),
        ("46331.5", "2026-11-05T12:00"),
        ("20261105", "2026-11-05"),
        ("20261105143000", "2026-11-05T14:30"),
        ("2026.11.05", "2026-11-05"),
        ("2026. 11. 5. 오후 2:30", "2026-11-05T14:30"),
        ("2026년 11월 5일 (목) 오전 12:05", "2026-11-05T00:05"),
        ("2026/11/05 2:30 PM", "2026-11-05T14:30"),
        ("2026-11", "2026-11-01"),
        ("November 5, 2026 2:30 PM", "2026-11-05T14:30"),
        ("5 Nov 2026", "2026-11-05"),
        ("Thu, 05 Nov 2026 14:30:00 +0900", "2026-11-05T05:30"),
        ("5.11.2026", "2026-11-05"),
        ("13/11/2026 08:00", "2026-11-13T08:00"),
        ("11/13/2026", "2026-11-13"),
        ("5/5/2026", "2026-05-05"),
    ],
)
def test_times_are_read_as_they_are_written(written: object, read: str) -> None:
    assert str(as_time(written)).startswith(read)


@pytest.mark.parametrize(
    "written", ["5/11/2026", "5/11/26", "2026-13-40", "2026. 2. 30.", "99", 13330000000000000, "12.5", "1e3x5/", 10**25]
)
def test_a_time_of_two_readings_or_none_is_refused_and_words_are_no_time(written: object) -> None:
    if written == "1e3x5/":
        assert as_time(written) is None and as_time("soon") is None and as_time(True) is None
        return
    with pytest.raises(InvalidInput, match=r"may be|no day|two digits|no time|a time of the year"):
        as_time(written)


def test_the_dates_of_a_table_have_one_order(tmp_path: Path) -> None:
    head = "text,date\n"
    report, kept = import_files(tmp_path, {"a.csv": head + "one,5/11/2026\ntwo,13/11/2026\n"})
    assert [f"{m.valid_from:%Y-%m-%d}" for m in kept] == ["2026-11-05", "2026-11-13"]
    assert has_day_first(["5/11/2026", "11/13/2026"]) is False and has_day_first(["13/1/2026", "1/13/2026"]) is None
    report, kept = import_files(
        tmp_path,
        {"b.csv": head + 'one,5/11/2026\n"two\nlines",2026.11.05\nthree,1767312000000\nfour,133300000000000000000\n'},
    )
    assert [(m.text, f"{m.valid_from:%Y-%m-%d}") for m in kept] == [
        ("two\nlines", "2026-11-05"),
        ("three", "2026-01-02"),
    ]
    assert (
        list(report.refused) == ["b.csv, line 2", "b.csv, line 6"]
        and "5 Nov or 11 May" in report.refused["b.csv, line 2"]
    )
    with pytest.raises(InvalidInput, match=r"c.csv, line 2: '5/11/2026' may be 5 Nov or 11 May"):
        import_files(tmp_path, {"c.csv": head + "one,5/11/2026\n"})
    lines = [{"text": "a", "date": 1767312000000}, {"text": "b", "date": "5/11/2026"}]
    report, kept = import_files(tmp_path, {"d.jsonl": "\n".join(map(json.dumps, lines))})
    assert f"{kept[0].valid_from:%Y}" == "2026" and list(report.refused) == ["d.jsonl, line 2"]
    with Memory(":memory:", embedder="none") as memory:
        assert memory.add_conversation([{"content": "x", "created_at": 1767312000000}])[0].valid_from.year == 2026


def test_notes_of_a_phone_are_read_by_their_columns(tmp_path: Path) -> None:
    table = (
        "Title,Body,Folder,Created Time\n우산 챙기기,,집,2026. 11. 5. 오후 2:30\nWifi,guest / harbour22,Home,2026-11-06\n,,,\n"
        "Parcel,at the, gate,Home,2026-11-07\n"
    )
    report, kept = import_files(tmp_path, {"notes.csv": table})
    assert [(m.text, m.title, m.tags, f"{m.valid_from:%d %H}") for m in kept] == [
        ("우산 챙기기", None, ("집",), "05 14"),
        ("guest / harbour22", "Wifi", ("Home",), "06 00"),
    ]
    assert (
        report.left_out == 1
        and list(report.refused) == ["notes.csv, line 5"]
        and "more cells" in report.refused["notes.csv, line 5"]
    )
    assert import_files(tmp_path, {"excel.csv": table.encode("utf-16")})[0].added == 2


# ---------------------------------------------------------------- once, and each by its own id


def test_an_id_that_comes_twice_is_named_with_both_places(tmp_path: Path) -> None:
    lines = [
        '{"id": "a", "text": "The key is under the pot."}',
        '{"id": "b", "text": "The gate is green."}',
        '{"id": "a", "text": "The dog is called Bo."}',
        '{"id": "b", "text": "The gate is green."}',
        '{"id": "t", "messages": [{"id": "1", "role": "user", "content": "Hello"}]}',
        '{"id": "t", "messages": [{"id": "1", "role": "user", "content": "Good evening"}]}',
    ]
    report, kept = import_files(tmp_path, {"f.jsonl": "\n".join(lines)})
    assert [m.text for m in kept] == ["The key is under the pot.", "The gate is green.", "Hello"]
    assert (report.added, report.present) == (3, 1) and list(report.refused) == ["f.jsonl, line 3", "f.jsonl, line 6"]
    assert (
        "f.jsonl, line 1" in report.refused["f.jsonl, line 3"]
        and "f.jsonl, line 5" in report.refused["f.jsonl, line 6"]
    )
    report, kept = import_files(tmp_path, {"g.csv": "id,text\n7,The key is under the pot.\n7,The dog is called Bo.\n"})
    assert len(kept) == 1 and "g.csv, line 2" in report.refused["g.csv, line 3"]


def test_a_memory_that_its_program_says_otherwise_now_is_updated_unless_somebody_here_changed_it(
    tmp_path: Path,
) -> None:
    path = tmp_path / "m.json"

    def bring(memory: Memory, *texts: str) -> ForeignReport:
        path.write_text(json.dumps([{"id": str(n), "memory": t} for n, t in enumerate(texts)]), encoding="utf-8")
        return import_export(memory, path, "mem0", progress=False)

    with Memory(":memory:", embedder="none") as memory:
        bring(memory, "Drinks tea", "Walks to work", "Has a cat")
        memory.update("mem0-1", text="Cycles to work")
        memory.delete("mem0-2")
        report = bring(memory, "Drinks coffee", "Walks to work", "Has two cats")
        assert (report.added, report.updated, report.present, report.deleted) == (0, 1, 1, 1) and "updated" in repr(
            report
        )
        assert [m.text for m in reversed(memory.list())] == ["Drinks coffee", "Cycles to work"]
        assert (bring(memory, "Drinks coffee", "Walks to work").updated, memory.get("mem0-0").version) == (0, 2)


# ---------------------------------------------------------------- files that can't be read


def test_one_bad_file_is_named_and_the_others_come_in(tmp_path: Path) -> None:
    talk = json.dumps(
        [
            {
                "uuid": "c",
                "name": "n",
                "chat_messages": [{"uuid": "m", "sender": "human", "text": "The key is under the pot."}],
            }
        ]
    )
    cases: dict[str, dict[str, str | bytes]] = {
        "claude": {"a/conversations.json": "{broken", "b/conversations.json": talk},
        "csv": {"a.csv": "name,age\nMina,31\n", "b.csv": "text\nThe key is under the pot.\n", "c.csv": b"\xff\xfe\x00"},
        "jsonl": {"a.jsonl": "{broken\n", "b.jsonl": '{"text": "The key is under the pot."}'},
    }
    for format, files in cases.items():
        folder = tmp_path / format
        report, kept = import_files(folder, files, format)
        assert (
            [m.text for m in kept] == ["The key is under the pot."]
            and report.unread
            and set(report.unread) <= set(report.refused)
        ), format
        done = CliRunner().invoke(
            main, ["import", str(folder), "--format", format, "--db", str(tmp_path / "m.db"), "--later"]
        )
        assert done.exit_code == 1 and done.stderr.splitlines()[-1].startswith("could not be read: "), done.output
    (tmp_path / "csv" / "b.csv").unlink()
    with pytest.raises(InvalidInput, match=r"No column of a\.csv"):
        import_files(tmp_path / "csv", {"a.csv": cases["csv"]["a.csv"], "c.csv": cases["csv"]["c.csv"]}, "csv")


def test_hidden_files_are_passed_over_and_an_archive_within_an_archive_is_read(tmp_path: Path) -> None:
    files: dict[str, str | bytes] = {
        "Boat.md": "Red sails.",
        ".trash/Old.md": "Thrown away.",
        ".obsidian/x.md": "{}",
        "sub/.hidden.md": "No.",
    }
    report, kept = import_files(tmp_path / "vault", files, "markdown")
    assert [m.text for m in kept] == ["Red sails."]
    with zipfile.ZipFile(tmp_path / "inner.zip", "w") as archive:
        archive.writestr(
            "Boat 0123456789abcdef0123456789abcdef.md",
            "# Boat\n\nTags: sea, home\nCreated: November 5, 2026 2:30 PM\n\nRed sails.",
        )
        archive.writestr("__MACOSX/._Boat.md", b"\x00\x05")
    with zipfile.ZipFile(tmp_path / "Export.zip", "w") as archive:
        archive.write(tmp_path / "inner.zip", "Export-Part-1.zip")
    report, kept = import_files(tmp_path, {"Export.zip": (tmp_path / "Export.zip").read_bytes()})
    assert (report.format, len(kept), kept[0].tags, f"{kept[0].valid_from:%Y-%m-%d %H:%M}") == (
        "markdown",
        1,
        ("home", "sea"),
        "2026-11-05 14:30",
    )


# ---------------------------------------------------------------- notes

NOTE = """---
title: Boat: the log
tags: [sea]
status: current
---
Wifi of the harbour is *gulls22*. <!-- ask again -->
<!--
# not a heading
-->
<style>
.x { color: red }
</style>
<script>alert("no")</script>

Engine
======

Filter every May.[^1] See [[Harbour#Berth|the berth]], [the plan](Plan%201a.md) and [the shop](https://shop.example). #engine #ff0000

```sh
# restart the pump <!-- stays -->
systemctl restart pump
```
![Untitled](image.png) ![[chart.png]] %%private%%

## Crew

| Name | Phone |
|------|:-----:|
| Kim  | 010-1234 |

~~~
## no heading here
~~~

## Empty

<!-- nothing -->

[^1]: The thin one,
    not the thick.
"""


def test_a_note_says_what_a_person_would_want_to_be_reminded_of(tmp_path: Path) -> None:
    _, kept = import_files(tmp_path, {"Boat.md": NOTE})
    assert [m.text for m in kept] == [
        "Wifi of the harbour is *gulls22*.",
        "Engine\n\nFilter every May. (The thin one, not the thick.) See the berth, the plan and [the shop](https://shop.example). "
        "#engine #ff0000\n\n```sh\n# restart the pump <!-- stays -->\nsystemctl restart pump\n```",
        "Crew\n\n- Name: Kim; Phone: 010-1234\n\n~~~\n## no heading here\n~~~",
    ]
    assert [m.title for m in kept] == ["Boat: the log", "Boat: the log", "Boat: the log › Engine"]
    assert kept[1].tags == ("engine", "sea") and kept[0].extra == {"file": "Boat.md", "status": "current"}


@pytest.mark.parametrize(
    ("name", "text", "kept"),
    [
        ("2026-05-01.md", "Saw a seal.", ("Saw a seal.", "2026-05-01")),
        ("a.md", "---\nNot: [yaml\n---\nSaw a seal.", ("Saw a seal.", "")),
        ("a.md", "---\nOnly a line between rules.\n---\n", ("---\nOnly a line between rules.\n---", "")),
        ("a.md", "---\ndate: 5/11/2026\n---\nSaw a seal.", ("Saw a seal.", "")),
        ("a.md", "Total 50%% off, 20%% more", ("Total 50%% off, 20%% more", "")),
        ("a.md", "List<String> x; a <b and c> d", ("List<String> x; a <b and c> d", "")),
        ("a.md", "It is 100 %% sure. <!-- begins\n\na <style> of life", ("It is 100 %% sure. <!-- begins\n\na <style> of life", "")),
        ("a.md", "- run\n    ```sh\n# not a heading\n    ```", ("- run\n    ```sh\n# not a heading\n    ```", "")),
        ("a.md", "- a\n---\nb | c", ("- a\n---\nb | c", "")),
    ],
)
def test_what_looks_like_markup_and_is_none_stays(name: str, text: str, kept: tuple[str, str], tmp_path: Path) -> None:
    _, [found] = import_files(tmp_path, {name: text})
    assert found.text == kept[0] and (not kept[1] or f"{found.valid_from:%Y-%m-%d}" == kept[1])


# ---------------------------------------------------------------- a dry run


@pytest.mark.parametrize(
    ("name", "content", "format"),
    [
        ("KakaoTalk_1.txt", CHATS["Windows"], "kakaotalk"),
        ("a.csv", "text\nThe key is under the pot.\n", "csv"),
        ("Boat.md", NOTE, "markdown"),
        ("m.json", json.dumps([{"id": "a", "memory": "Drinks tea"}]), "mem0"),
        ("f.jsonl", '{"text": "x"}\n{"text": "broken\n', "jsonl"),
        (
            "conversations.json",
            json.dumps(
                [
                    {
                        "uuid": "c",
                        "name": "n",
                        "chat_messages": [{"uuid": "m", "sender": "human", "text": "I live in Jeju. Is it far?"}],
                    }
                ]
            ),
            "claude",
        ),
    ],
)
def test_a_dry_run_says_what_would_come_in_and_stores_nothing(
    name: str, content: str, format: str, tmp_path: Path
) -> None:
    (tmp_path / name).write_text(content, encoding="utf-8")
    db, run = str(tmp_path / "m.db"), CliRunner()
    asked = ["import", str(tmp_path / name), "--db", db]
    dry = json.loads(run.invoke(main, [*asked, "--dry-run", "--facts", "--json"]).stdout)
    assert not (tmp_path / "m.db").exists() and dry["dry_run"] and dry["examples"]
    wet = json.loads(run.invoke(main, [*asked, "--later", "--json"]).stdout)
    assert {**dry, "examples": [], "dry_run": 0} == {**wet, "dry_run": 0} and wet["added"] and wet["format"] == format
    again = run.invoke(main, [*asked, "--dry-run"])
    assert "Nothing is stored" in again.stdout and again.exit_code == 0
    assert json.loads(run.invoke(main, [*asked, "--dry-run", "--json"]).stdout)["added"] == 0


def test_a_dry_run_of_a_whole_store_counts_what_is_not_here(tmp_path: Path) -> None:
    run, one, other = CliRunner(), ["--db", str(tmp_path / "m.db")], ["--db", str(tmp_path / "n.db")]
    for words in (["memory", "write", "hello"], ["memory", "write", "bye"], ["export", f"{tmp_path}/all.jsonl"]):
        assert run.invoke(main, [*words, *one]).exit_code == 0
    dry = run.invoke(main, ["import", f"{tmp_path}/all.jsonl", "--dry-run", *other])
    assert "2 memories would be added, 0 are there already" in dry.stdout and not (tmp_path / "n.db").exists()
    assert (
        "0 memories would be added, 2"
        in run.invoke(main, ["import", f"{tmp_path}/all.jsonl", "--dry-run", *one]).stdout
    )


def test_parts_of_an_export_say_where_they_stand(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text(
        '{"id": "t", "messages": [{"role": "user", "content": "hi"}]}\n{"text": "x"}\n{"text": 5\n'
    )
    kinds = [(type(part), part.place) for part in read_export(tmp_path / "a.jsonl", "jsonl")]
    assert kinds == [
        (ForeignConversation, "a.jsonl, line 1"),
        (ForeignMemory, "a.jsonl, line 2"),
        (UnreadablePart, "a.jsonl, line 3"),
    ]


# ---------------------------------------------------------------- a life, and questions about it


def chatgpt(*said: tuple[str, list[Any] | None]) -> str:
    "A conversation of ChatGPT in which messages follow one another; contents may be missing."
    nodes: dict[str, Any] = {"root": {"id": "root", "message": None, "parent": None, "children": []}}
    for n, (role, parts) in enumerate(said):
        content = None if parts is None else {"content_type": "multimodal_text", "parts": parts}
        message = {"id": f"m{n}", "author": {"role": role}, "create_time": 1767312000 + n, "content": content, "metadata": None}
        nodes[f"m{n}"] = {"id": f"m{n}", "message": message, "parent": f"m{n - 1}" if n else "root", "children": []}
    return json.dumps([{"title": None, "id": "c", "mapping": nodes, "current_node": f"m{len(said) - 1}"}])


LIFE: dict[str, tuple[dict[str, str | bytes], list[tuple[str, str]]]] = {
    "chatgpt": (
        {
            "conversations.json": chatgpt(
                ("system", [""]),
                ("user", None),
                ("user", [{"content_type": "image_asset_pointer"}]),
                ("user", [None, "I am allergic to shellfish."]),
                ("assistant", ["Jeju has beaches \ue200cite\ue202turn0\ue201 and tubes【4†source】."]),
                ("user", ["내 차는 2019년식 아반떼야."]),
            )
        },
        [
            ("am I allergic", "I am allergic to shellfish."),
            ("내 차가 뭐였지", "아반떼"),
            ("beaches of Jeju", "Jeju has beaches and tubes."),
        ],
    ),
    "mem0": (
        {"mem0.json": json.dumps([{"id": "1", "memory": "Sister Jiwon lives in Daegu", "created_at": 1746205200000}])},
        [("Where does my sister live?", "Daegu")],
    ),
    "notion": (
        {
            f"Boiler {'0123456789abcdef' * 2}.md": "# Boiler\n\nCreated: November 5, 2025 2:30 PM\n\n"
            "| Part | Changed |\n|--|--|\n| Pump | 2024-10-01 |",
            "x.md": "x",
        },
        [("When was the pump changed?", "Part: Pump; Changed: 2024-10-01")],
    ),
    "obsidian": (
        {"Wifi.md": "guest network: gulls22", "Car.md": "## Service\n```\noil 5W-30\n```\n"},
        [
            ("What is the wifi password?", "Wifi: guest network: gulls22"),
            ("Which oil does the car take?", "Car: Service ``` oil 5W-30 ```"),
        ],
    ),
    "a phone": (
        {"notes.csv": "Title,Content,Created\n우산 챙기기,,2026. 3. 5. 오후 2:30\nBike lock,the code is 4417,2026. 3. 6. 오전 9:00\n"},
        [("code of the bike lock", "2026-03-06, unconfirmed] Bike lock: the code is 4417"), ("우산", "우산 챙기기")],
    ),
}


@pytest.mark.parametrize("program", LIFE)
def test_what_moved_in_answers_questions_with_what_it_is_about(program: str, tmp_path: Path) -> None:
    files, questions = LIFE[program]
    for name, content in files.items():
        (tmp_path / name).write_text(str(content), encoding="utf-8")
    path = tmp_path if len(files) > 1 else tmp_path / next(iter(files))
    with Memory(":memory:", embedder="none") as memory:
        import_export(memory, path, format_of(path), progress=False)
        for question, answer in questions:
            assert answer in memory.context(question, 400).text, (question, memory.context(question, 400).text)
        assert not any("None" in m.text for m in memory.list(k=50))


MARKDOWN_CHATS = {
    "bold": "# Busan\n\n**User:** Where is Busan?\n\n**Assistant:** In the south.\n\n- by the sea\n\n**User:** I live in Seoul.",
    "bold alone": "**You**\n\nWhere is Busan?\n\n---\n\n**ChatGPT**\n\nIn the south.\n\n- by the sea\n\n"
                  "---\n\n**You**\n\nI live in Seoul.\n",
    "heading": "Exported on 2026-05-01\n\n### User\n\nWhere is Busan?\n\n### Assistant\nIn the south.\n\n"
               "- by the sea\n\n### User\n\nI live in Seoul.",
    "heading with a time": "## 🧑 User (2026-05-01 10:00)\nWhere is Busan?\n## 🤖 Claude 3.5 Sonnet (2026-05-01 10:01)\nIn the south.\n\n"
                           "- by the sea\n## 🧑 User (2026-05-01 10:02)\nI live in Seoul.",
    "plain": "User: Where is Busan?\n\nAssistant: In the south.\n\n- by the sea\n\nUser: I live in Seoul.",
    "lines": "Human: Where is Busan?\nAI: In the south.\n\n- by the sea\nHuman: I live in Seoul.",
    "said": "You said:\nWhere is Busan?\n\nChatGPT said:\nIn the south.\n\n- by the sea\n\nYou said:\nI live in Seoul."}
KOREAN_CHATS = ["**사용자:** 부산은 어디야?\n\n**어시스턴트:** 남쪽이요.", "나의 말:\n부산은 어디야?\n\nChatGPT의 말:\n남쪽이요.",
                "## 사용자\n부산은 어디야?\n## 제미나이\n남쪽이요."]
NOTES = ["User: admin\nAssistant: Lee", "# Data model\n\n## User\n- id\n## Model\n- name",
         "So it is called:\n\n```\nUser: hi\n\nAssistant: hello\n```\n", "**You** are great.\n\n**AI** is here.", "Mina: hi\n\nYou: ok\n",
         "A day at the sea. " * 30 + "\n\n**User:** Where is Busan?\n\n**Assistant:** In the south."]


@pytest.mark.parametrize("form", MARKDOWN_CHATS)
def test_a_chat_in_markdown_becomes_its_turns(form: str, tmp_path: Path) -> None:
    (tmp_path / "2026-05-01 Busan.md").write_text(MARKDOWN_CHATS[form], encoding="utf-8")
    with Memory(":memory:", embedder="none") as memory:
        report = import_export(memory, tmp_path, "markdown", progress=False)
        turns = [*reversed(memory.list(10))]
        assert (report.conversations, report.added, len({t.session for t in turns})) == (1, 3, 1)
        assert [(t.role, t.text) for t in turns] == [("user", "Where is Busan?"), ("assistant", "In the south.\n\n- by the sea"),
                                                     ("user", "I live in Seoul.")]
        assert all(f"{t.valid_from:%Y-%m-%d}" == "2026-05-01" for t in turns)
        assert import_export(memory, tmp_path, "markdown", progress=False).present == 3
    done = CliRunner().invoke(main, ["conversation", "add", str(tmp_path / "2026-05-01 Busan.md"), "--db", str(tmp_path / "m.db")])
    assert done.exit_code == 0 and "3 turns stored" in done.output


@pytest.mark.parametrize("text", KOREAN_CHATS)
def test_a_korean_chat_in_markdown_becomes_its_turns(text: str) -> None:
    assert [(t["role"], t["text"]) for t in chat_turns(text)] == [("user", "부산은 어디야?"), ("assistant", "남쪽이요.")]


@pytest.mark.parametrize("text", NOTES)
def test_a_note_that_looks_like_a_chat_stays_a_note(text: str, tmp_path: Path) -> None:
    (tmp_path / "note.md").write_text(text, encoding="utf-8")
    with Memory(":memory:", embedder="none") as memory:
        report = import_export(memory, tmp_path, "markdown", progress=False)
        assert report.conversations == 0 and report.added >= 1 and all(m.session is None for m in memory.list(10))
