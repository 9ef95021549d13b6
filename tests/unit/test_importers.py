"""What other programs export: read as it comes, once, and what was deleted here stays deleted."""

import json
import random
import uuid
import zipfile
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from rlm import Memory
from rlm.core.errors import InvalidInput, NotFound
from rlm.recall.snapshots import import_anchors, import_graph
from rlm.service.cli.interchange import format_of
from rlm.service.cli.main import main
from rlm.service.export_files import text_of
from rlm.service.importers import READERS_OF, ForeignConversation, ForeignMemory, import_export, read_export
from rlm.service.interchange import content_hash

NODE = {"metadata": {}, "create_time": 1_700_000_000.5}


def node(id: str, parent: str | None, role: str, parts: list[Any], kind: str = "text", **more: Any) -> dict[str, Any]:
    "A node of ChatGPT's tree."
    message = NODE | {"id": id, "author": {"role": role}, "content": {"content_type": kind, "parts": parts}} | more
    return {"id": id, "message": message, "parent": parent, "children": []}


CHATGPT = [
    {
        "title": "점심",
        "conversation_id": "k1",
        "create_time": 1_700_000_000,
        "current_node": "e",
        "mapping": {
            "root": {"id": "root", "message": None, "parent": None, "children": ["s"]},
            "s": node("s", "root", "system", [""]),
            "ctx": node("ctx", "s", "user", ["Profile"], "user_editable_context"),
            "a": node(
                "a",
                "s",
                "user",
                ["냉면이 먹고 싶어", {"content_type": "image_asset_pointer", "asset_pointer": "file-service://x"}],
                "multimodal_text",
                metadata={"attachments": [{"name": "menu.jpg"}]},
            ),
            "old": node("old", "a", "assistant", ["An answer that was made anew."]),
            "b": node("b", "a", "assistant", ["calls"], recipient="browser"),
            "t": node("t", "b", "tool", ["{}"]),
            "hid": node("hid", "t", "user", ["hidden"], metadata={"is_visually_hidden_from_conversation": True}),
            "e": node("e", "hid", "assistant", ["을지로에 좋은 집이 있어요."]),
        },
    },
    {"title": "Empty", "id": "k2", "mapping": {}, "current_node": None},
]
CLAUDE = [
    {
        "uuid": "c1",
        "name": "Boat",
        "created_at": "2026-01-02T08:00:00Z",
        "chat_messages": [
            {
                "uuid": "m1",
                "sender": "human",
                "text": "When is the engine serviced?",
                "created_at": "2026-01-02T08:00:00.123456Z",
                "content": [{"type": "text", "text": "When is the engine serviced?"}],
                "files": [],
                "attachments": [{"file_name": "log.pdf", "extracted_content": "…"}],
            },
            {
                "uuid": "m2",
                "sender": "assistant",
                "text": "",
                "created_at": "2026-01-02T08:00:09Z",
                "content": [
                    {"type": "thinking", "thinking": "hm"},
                    {"type": "text", "text": "In May."},
                    {"type": "tool_use", "name": "x", "input": {}},
                ],
            },
            {"uuid": "m3", "sender": "assistant", "text": "", "content": [{"type": "tool_use", "name": "x", "input": {}}]},
        ],
    }
]
GEMINI = [
    {
        "header": "Gemini Apps",
        "title": "Prompted Which ferry at noon?",
        "time": "2026-02-03T12:00:00.000Z",
        "safeHtmlItem": [{"html": "<p>The <b>small</b> one.</p>"}],
    },
    {"header": "Search", "title": "Searched for boats", "time": "2026-02-03T12:01:00.000Z"},
]
MEM0 = {
    "results": [
        {
            "id": "u-1",
            "memory": "Likes the window seat",
            "user_id": "mina",
            "created_at": "2025-05-01T10:00:00-07:00",
            "categories": ["travel"],
        }
    ]
}
LANGMEM = [
    {
        "namespace": ["memories", "mina"],
        "key": "k",
        "value": {"kind": "Memory", "content": {"content": "Prefers tea"}},
        "created_at": "2026-01-01T00:00:00+00:00",
    },
    {"namespace": ["raw"], "key": "n", "value": {"count": 3}},
]
GREEUM = [
    {
        "schema_version": 3,
        "block_id": "blk_abc",
        "created_ts": 1723180000,
        "content": {"text": "항구에 배를 댔다", "meta": {"tags": ["boat"], "source": "cli"}},
        "vector": [0.012, 0.5],
        "links": {"neighbors": [{"id": "blk_def", "w": 0.61}]},
    },
    {"schema_version": 3, "block_id": "blk_def", "created_ts": 1723180060, "content": {"text": "The sail is torn.", "meta": {}}},
]
JSONL = [
    {"text": "The boiler is serviced in November.", "tags": ["home"]},
    {
        "id": "chat",
        "messages": [
            {"role": "system", "content": "Be kind."},
            {"role": "human", "content": [{"type": "text", "text": "차가 좋아"}]},
            {"role": "ai", "content": None, "tool_calls": [{"function": {"name": "brew", "arguments": "{}"}}]},
        ],
    },
]


PORTABLE = {
    "schema": "portable-ai-memory",
    "schema_version": "1.0",
    "owner": {"id": "me"},
    "memories": [
        {
            "id": "m1",
            "type": "preference",
            "content": "I drink green tea.",
            "content_hash": content_hash("I drink green tea."),
            "temporal": {"created_at": "2026-02-15T00:00:00Z"},
            "provenance": {"platform": "pam"},
        }
    ],
}


KAKAOTALK = {  # a chat as each system exports it
    "windows": """\ufeff지은 님과 카카오톡 대화
저장한 날짜 : 2026-05-01 21:10:11

--------------- 2026년 4월 30일 목요일 ---------------
[지은] [오후 2:30] 나 다음 달에 이사 가
도와줄래?
[지은] [오후 2:31] 이모티콘
지은님이 민수님을 초대했습니다.
[민수] [오후 2:33] ㅋㅋ
[민수] [오후 2:33] ㅋㅋ
--------------- 2026년 5월 1일 금요일 ---------------
[민수] [오전 12:05] 나 새우 알레르기 있어
""",
    "android": """지은 님과 카카오톡 대화
저장한 날짜 : 2026년 5월 1일 오후 9:10

2026년 4월 30일 오후 2:30
2026년 4월 30일 오후 2:30, 지은 : 나 다음 달에 이사 가
도와줄래?
2026년 4월 30일 오후 2:31, 지은 : 이모티콘
2026년 4월 30일 오후 2:31, 지은님이 민수님을 초대했습니다.
2026년 4월 30일 오후 2:33, 민수 : ㅋㅋ
2026년 4월 30일 오후 2:33, 민수 : ㅋㅋ
2026년 5월 1일 오전 12:05
2026년 5월 1일 오전 12:05, 민수 : 나 새우 알레르기 있어
""",
    "iphone": """지은 님과 카카오톡 대화
저장한 날짜 : 2026. 5. 1. 오후 9:10

2026년 4월 30일 목요일
2026. 4. 30. 오후 2:30, 지은 : 나 다음 달에 이사 가
도와줄래?
2026. 4. 30. 오후 2:31, 지은 : 이모티콘
2026. 4. 30. 오후 2:33, 민수 : ㅋㅋ
2026. 4. 30. 오후 2:33, 민수 : ㅋㅋ
2026년 5월 1일 금요일
2026. 5. 1. 오전 12:05, 민수 : 나 새우 알레르기 있어
""",
    "mac": """Date,User,Message
2026-04-30 14:30:00,"지은","나 다음 달에 이사 가
도와줄래?"
2026-04-30 14:31:00,"지은","이모티콘"
2026-04-30 14:33:00,"민수","ㅋㅋ"
2026-04-30 14:33:00,"민수","ㅋㅋ"
2026-05-01 00:05:00,"민수","나 새우 알레르기 있어"
"""}


def files(folder: Path) -> dict[str, Path]:
    "An export of each program."
    found = {"chatgpt": folder / "chatgpt.zip", "markdown": folder / "notes"}
    with zipfile.ZipFile(found["chatgpt"], "w") as archive:
        archive.writestr("export/conversations.json", json.dumps(CHATGPT))
        archive.writestr("export/user.json", "{\"memory\": true}")
    for name, given in (("claude", CLAUDE), ("gemini", GEMINI), ("mem0", MEM0), ("langmem", LANGMEM), ("pam", PORTABLE)):
        found[name] = folder / f"{name}.json"
        found[name].write_text(json.dumps(given), encoding="utf-8")
    found["greeum"] = folder / "blocks.jsonl"
    found["greeum"].write_text("\n".join(json.dumps(block, ensure_ascii=False) for block in GREEUM), encoding="utf-8")
    found["kakaotalk"] = folder / "KakaoTalk_20260501.txt"
    found["kakaotalk"].write_text(KAKAOTALK["windows"].replace("] ㅋㅋ", "] ㅇㅋ", 1), encoding="utf-8")
    found["jsonl"] = folder / "x.jsonl"
    found["jsonl"].write_text("\n".join(json.dumps(line, ensure_ascii=False) for line in JSONL), encoding="utf-8")
    found["csv"] = folder / "notes.csv"
    found["csv"].write_bytes("날짜,내용,태그\r\n2026. 5. 1.,보일러를 고쳤다,\"집, 겨울\"\r\n,\"차, 두 대\",\r\n,,빈 줄\r\n".encode("cp949"))
    (found["markdown"] / "deep").mkdir(parents=True)
    (found["markdown"] / "deep" / "배.md").write_text(
        "---\ntags: [x, '#y']\ndate: 2026-05-01\n---\nIntro.\n\n# 엔진\n\n5월에 필터를 바꾼다.\n\n## Oil\nTen litres.\n", encoding="utf-8"
    )
    return found


TEXTS = {
    "chatgpt": {"냉면이 먹고 싶어\n[image_asset_pointer]", "을지로에 좋은 집이 있어요."},
    "claude": {"When is the engine serviced?", "In May."},
    "gemini": {"Which ferry at noon?", "The small one."},
    "mem0": {"Likes the window seat"},
    "langmem": {"Prefers tea", '{"count": 3}'},
    "greeum": {"항구에 배를 댔다", "The sail is torn."},
    "kakaotalk": {"나 다음 달에 이사 가\n도와줄래?", "ㅇㅋ", "ㅋㅋ", "나 새우 알레르기 있어"},
    "jsonl": {"The boiler is serviced in November.", "차가 좋아", "calls brew({})"},
    "pam": {"I drink green tea."},
    "csv": {"보일러를 고쳤다", "차, 두 대"},
    "markdown": {"Intro.", "엔진\n\n5월에 필터를 바꾼다.", "Oil\n\nTen litres."},
}


@pytest.mark.parametrize("format", list(READERS_OF))
def test_an_export_is_read_whole_and_once(tmp_path: Path, format: str) -> None:
    path = files(tmp_path)[format]
    with Memory(":memory:", embedder="none") as memory:
        report = import_export(memory, path, format, progress=False)
        assert {r.text for r in memory.list(k=20, status="any")} == TEXTS[format]
        assert report.added == len(TEXTS[format]) and not report.refused
        again = import_export(memory, path, format, progress=False)
        assert (again.added, again.present) == (0, len(TEXTS[format])) and repr(again) and again.as_dict()["format"] == format
        gone = memory.list(k=1)[0]
        memory.delete(gone.id)
        assert import_export(memory, path, format, progress=False).deleted == 1
        assert len(memory.list(k=20, status="any")) == len(TEXTS[format]) - 1
        assert all(r.provenance["source"] == format for r in memory.list(k=20, status="any")) and not memory.check()


def test_a_conversation_keeps_its_order_its_times_and_its_sources(tmp_path: Path) -> None:
    with Memory(":memory:", embedder="none") as memory:
        report = import_export(memory, files(tmp_path)["chatgpt"], "chatgpt")
        assert (report.conversations, report.left_out) == (2, 6)
        first, second = memory.list(k=5, session="chatgpt-k1")[::-1]
        assert (first.turn, first.role, second.role) == (0, "user", "assistant") and first.valid_from.year == 2023
        assert first.extra == {"title": "점심", "attachments": ["menu.jpg"]} and first.provenance["conversation"] == "k1"
        assert memory.search("을지로 집")[0].id == second.id


@pytest.mark.parametrize("system", KAKAOTALK)
def test_a_chat_of_kakaotalk_is_a_conversation_a_day(tmp_path: Path, system: str) -> None:
    path = tmp_path / ("KakaoTalk_Chat_지은.csv" if system == "mac" else "KakaoTalk_1.txt")
    path.write_text(KAKAOTALK[system], encoding="utf-8")
    days = list(read_export(path, "kakaotalk"))
    said = [[(t["valid_from"], t["speaker"], t["text"]) for t in day.turns]
            for day in days if isinstance(day, ForeignConversation)]
    assert said == [[("2026-04-30T14:30:00+09:00", "지은", "나 다음 달에 이사 가\n도와줄래?"),
                     ("2026-04-30T14:33:00+09:00", "민수", "ㅋㅋ"), ("2026-04-30T14:33:00+09:00", "민수", "ㅋㅋ")],
                    [("2026-05-01T00:05:00+09:00", "민수", "나 새우 알레르기 있어")]]
    assert getattr(days[0], "left_out", None) == 1
    db, run = ["--db", str(tmp_path / "m.db"), "--json"], CliRunner()
    told = json.loads(run.invoke(main, ["import", str(path), *db]).stdout)
    assert (told["format"], told["conversations"], told["added"]) == ("kakaotalk", 2, 4)
    noted = json.loads(run.invoke(main, ["memory", "remember", str(path), *db]).stdout)["proposed"]
    assert ("민수", "allergy", "새우") in [(f["subject"], f["relation"], f["value"]) for n in noted for f in n["facts"]]


def test_a_newer_export_adds_what_is_new(tmp_path: Path) -> None:
    with Memory(":memory:", embedder="none") as memory:
        path = tmp_path / "conversations.json"
        path.write_text(json.dumps(CLAUDE), encoding="utf-8")
        import_export(memory, path, "claude")
        more = CLAUDE[0]["chat_messages"] + [{"uuid": "m4", "sender": "human", "text": "And the sail?", "content": []}]  # type: ignore[operator]
        path.write_text(json.dumps([CLAUDE[0] | {"chat_messages": more}]), encoding="utf-8")
        assert import_export(memory, path, "claude").added == 1
        assert [r.turn for r in memory.list(k=5, session="claude-c1")] == [2, 1, 0]


def test_messages_that_two_conversations_number_alike_are_both_stored(tmp_path: Path) -> None:
    def talk(id: str, *texts: str) -> dict[str, object]:
        said = [{"id": str(n), "role": "user", "content": t} for n, t in enumerate(texts)]
        return {"id": id, "messages": said}
    path = tmp_path / "talks.jsonl"
    talks = [talk("a", "The starter is called Gerald.", "Hello!"), talk("b", "We go to Porto in May.", "Hello!")]
    path.write_text("\n".join(map(json.dumps, talks)), encoding="utf-8")
    with Memory(":memory:", embedder="none") as memory:
        assert import_export(memory, path, "jsonl").added == 3  # the same words under one id are one message
        assert {r.text for r in memory.list(k=9)} == {"The starter is called Gerald.", "We go to Porto in May.", "Hello!"}
        again = import_export(memory, path, "jsonl")
        assert (again.added, again.present) == (0, 4)
    with Memory(":memory:", embedder="none") as memory:  # the same, one file after the other
        for each in talks:
            path.write_text(json.dumps(each), encoding="utf-8")
            import_export(memory, path, "jsonl")
        assert len(memory.list(k=9)) == 3


def test_a_note_has_the_tags_and_the_date_of_its_header(tmp_path: Path) -> None:
    (tmp_path / "house.md").write_text("---\ntags: [house, heating]\ndate: 2025-04-01\n---\n# Boiler\nIts pressure is 1.5 bar.\n",
                                       encoding="utf-8")
    (tmp_path / "odd.md").write_text("---\ntags: {a: [\n---\nThe tap drips.\n", encoding="utf-8")
    with Memory(":memory:", embedder="none") as memory:
        assert import_export(memory, tmp_path, "markdown").added == 2
        [house] = memory.list(k=2, tags="heating")
        assert set(house.tags) == {"house", "heating"} and str(house.valid_from.date()) == "2025-04-01"


@pytest.mark.parametrize(
    ("format", "text", "kind"),
    [
        ("chatgpt", "{", InvalidInput),
        ("chatgpt", "[1]", InvalidInput),
        ("claude", '[{"name": "no id"}]', InvalidInput),
        ("mem0", "5", InvalidInput),
        ("jsonl", '{"text": "a"\n[', InvalidInput),
        ("jsonl", "[]", InvalidInput),
        ("kakaotalk", "안녕", InvalidInput),
        ("nothing", "", InvalidInput),
    ],
)
def test_what_is_no_export_is_refused_with_a_sentence(tmp_path: Path, format: str, text: str, kind: type[Exception]) -> None:
    (tmp_path / "x.json").write_text(text, encoding="utf-8")
    with pytest.raises(kind):
        list(read_export(tmp_path / "x.json", format))
    with pytest.raises(NotFound):
        list(read_export(tmp_path / "nowhere", "chatgpt"))
    with pytest.raises(NotFound):
        list(read_export(tmp_path, "claude"))


def test_a_line_that_cannot_be_read_is_named_and_the_others_are_stored(tmp_path: Path) -> None:
    lines = ['{"text": "Mina likes tea.", "date": "2026-01-02"}', '{"content": "The roof\u2028leaks.", "metadata": {"room": "attic"}}',
             '{"text": "broken', '{"text": "x", "owner": 1}', '{"text": "x", "user_id": "al"}', '{"messages": 5}',
             '{"memory": "The tap drips.", "time": 1767312000}']
    (tmp_path / "f.jsonl").write_text("\ufeff" + "\n".join(lines) + "\n", encoding="utf-8")
    db = ["--db", str(tmp_path / "m.db")]
    done = CliRunner().invoke(main, ["import", str(tmp_path / "f.jsonl"), *db, "--later"])
    assert done.exit_code == 0 and [line.partition(":")[0] for line in done.stderr.splitlines()] == [
        f"refused f.jsonl, line {n}" for n in (3, 4, 5, 6)]
    assert "A person's memories are a namespace of their own" in done.stderr
    with Memory(tmp_path / "m.db", embedder="none") as memory:
        kept = {m.text: (str(m.valid_from.date()), m.extra) for m in memory.list(k=9)}
        assert kept.keys() == {"Mina likes tea.", "The roof\u2028leaks.", "The tap drips."}
        assert kept["Mina likes tea."][0] == kept["The tap drips."][0] == "2026-01-02"
        assert kept["The roof\u2028leaks."][1] == {"room": "attic"}


def test_a_message_may_tell_its_time_in_seconds() -> None:
    with Memory(":memory:", embedder="none") as memory:
        [said] = memory.add_conversation([{"role": "user", "content": "The tap drips.", "created_at": 1767312000}])
        assert str(said.valid_from.date()) == "2026-01-02"
        with pytest.raises(InvalidInput):
            memory.add_conversation([{"role": "user", "content": "The tap drips.", "created_at": True}])


def test_a_conversation_that_cannot_be_read_is_named_and_the_others_are_stored(tmp_path: Path) -> None:
    (tmp_path / "conversations.json").write_text(json.dumps([{"title": "Cut", "mapping": None}, *CHATGPT]), encoding="utf-8")
    with Memory(":memory:", embedder="none") as memory:
        report = import_export(memory, tmp_path, "chatgpt", progress=False)
        assert report.added == 2 and list(report.refused) == ["conversations.json, conversation 1"]


def test_what_people_say_of_themselves_is_proposed_where_it_is_asked_for(tmp_path: Path) -> None:
    said = [("2023-01-02", "I live in Seoul. Can you help me with a letter?"), ("2026-02-02", "I moved to Busan."),
            ("2026-02-03", "나는 땅콩 알레르기가 있어. 저녁 추천해 줘.")]
    talks = [{"id": at, "messages": [{"role": "user", "content": words, "created_at": at},
                                     {"role": "assistant", "content": "You live in Oslo. Right?"}]} for at, words in said]
    (tmp_path / "talks.jsonl").write_text("\n".join(map(json.dumps, talks)), encoding="utf-8")
    db = ["--db", str(tmp_path / "m.db"), "--json"]
    for facts, (added, proposed) in ((), (6, 0)), (("--facts",), (0, 2)), (("--facts",), (0, 0)):
        told = json.loads(CliRunner().invoke(main, ["import", str(tmp_path / "talks.jsonl"), "--later", *facts, *db]).stdout)
        assert (told["added"], told["proposed"]) == (added, proposed), facts
    waiting = json.loads(CliRunner().invoke(main, ["review", "waiting", *db]).stdout)
    assert [(w["text"], w["source"]["turn"]) for w in waiting] == [("나는 땅콩 알레르기가 있어.", "jsonl-2026-02-03-0")]
    ended = json.loads(CliRunner().invoke(main, ["memory", "list", "--ended", *db]).stdout)
    assert [(m["text"], m["valid_from"][:10]) for m in ended] == [("I live in Seoul.", "2023-01-02")], "it was so before the move"


def test_secrets_are_taken_out_and_a_blank_memory_is_told_of(tmp_path: Path) -> None:
    path = tmp_path / "m.json"
    path.write_text(
        json.dumps([{"id": "a", "memory": "My password for the bank is Bluefish!92x"}, {"id": "b", "memory": " "}]),
        encoding="utf-8",
    )
    with Memory(":memory:", embedder="none") as memory:
        report = import_export(memory, path, "mem0")
        assert report.added == 1 and list(report.refused) == ["mem0-b"] and "Bluefish" not in memory.list(k=1)[0].text


def test_users_of_mem0_are_not_mixed(tmp_path: Path) -> None:
    given = [{"id": "a", "memory": "Lives in Oslo", "user_id": "ann"}, {"id": "b", "memory": "부산에 산다", "user_id": "bo"}]
    path, db = tmp_path / "m.json", str(tmp_path / "m.db")
    path.write_text(json.dumps(given), encoding="utf-8")
    with Memory(db, embedder="none") as memory:
        with pytest.raises(InvalidInput, match=r"2 users \(ann: 1, bo: 1\)"):
            import_export(memory, path, "mem0")
        with pytest.raises(InvalidInput, match="no memory of the user 'cy'"):
            import_export(memory, path, "mem0", user="cy")
        assert not memory.list()
    done = CliRunner().invoke(main, ["import", "mem0", str(path), "--user", "bo", "-n", "bo", "--db", db, "--later"])
    assert done.exit_code == 0, done.output
    with Memory(db, embedder="none", namespace="bo") as memory:
        assert [m.text for m in memory.list()] == ["부산에 산다"]
        with pytest.raises(InvalidInput, match="names no users"):
            import_export(memory, files(tmp_path)["chatgpt"], "chatgpt", user="bo")


def test_the_command_tells_what_it_did(tmp_path: Path) -> None:
    db, path = str(tmp_path / "m.db"), str(files(tmp_path)["chatgpt"])
    first = CliRunner().invoke(main, ["import", "chatgpt", path, "--db", db, "--later", "--json"])
    assert first.exit_code == 0 and json.loads(first.stdout)["added"] == 2
    again = CliRunner().invoke(main, ["import", "chatgpt", path, "--db", db, "--later"])
    assert again.exit_code == 0 and "present" in again.stdout and "left out: of tools, hidden, other branches" in again.stdout
    wrong = CliRunner().invoke(main, ["import", "claude", path, "--db", db, "--later"])
    assert wrong.exit_code == 1 and "is not laid out as an export of claude" in wrong.stderr


# ---------------------------------------------------------------- leaving, and coming back

def test_a_namespace_leaves_as_portable_ai_memory_and_comes_back(tmp_path: Path) -> None:
    with Memory(tmp_path / "a.db", embedder="none") as memory:
        memory.write("I am allergic to peanuts.", id="nuts", tags=["health", "음식"], category="fact", pinned=True)
        memory.write("민아는 녹차를 좋아한다", id="tea", valid_from="2025-03-01", valid_to="2025-09-01", extra={"deep": [1, {"a": "b"}]})
        turns = [{"speaker": "Mina", "text": "언제?"}, {"role": "assistant", "text": "Tuesday!\n\n# at nine"}]
        memory.add_conversation(turns, session="june")
        memory.link("nuts", "tea", "supports", .5)
        memory.link("tea", "nuts", "unlike")
        memory.companion.accept("nuts")
    run = CliRunner()
    for verb, file, store in (("export", "m.json", "a.db"), ("import", "m.json", "b.db"), ("export", "n.json", "b.db")):
        done = run.invoke(main, [verb, str(tmp_path / file), "--db", str(tmp_path / store)])
        assert done.exit_code == 0, done.output
    document = json.loads((tmp_path / "m.json").read_text(encoding="utf-8"))
    assert (document["schema"], document["schema_version"], document["owner"]) == ("portable-ai-memory", "1.0", {"id": "default"})
    by_id = {m["id"]: m for m in document["memories"]}
    assert by_id["nuts"]["type"] == "fact" and by_id["nuts"]["tags"] == ["health"] and by_id["tea"]["custom_type"] == "memory"
    assert {r["type"] for r in document["relations"]} == {"supports", "related_to"}
    assert document["conversations_index"][0]["message_count"] == 2
    again = json.loads((tmp_path / "n.json").read_text(encoding="utf-8"))
    with Memory(tmp_path / "a.db", embedder="none") as old, Memory(tmp_path / "b.db", embedder="none") as new:
        for id in by_id:
            mine, theirs = old.get(id), new.get(id)
            for name in ("text", "tags", "session", "turn", "speaker", "role", "valid_from", "valid_to", "category", "pinned", "extra"):
                assert getattr(mine, name) == getattr(theirs, name), (id, name)
        assert old.links("tea") == new.links("tea") and len(new.links("tea")) == 2
        assert new.get("nuts").provenance["actor"] == "import", "no trust comes with a file"
        assert import_export(new, tmp_path / "m.json", "pam").present == 4
        new.unlink("tea", "nuts")
        new.delete("nuts")
        report = import_export(new, tmp_path / "m.json", "pam")
        assert (report.added, report.deleted, new.links("tea")) == (0, 1, [])
    assert [m["content"] for m in again["memories"]] == [m["content"] for m in document["memories"]]


def test_what_other_programs_write_as_portable_ai_memory_is_read(tmp_path: Path) -> None:
    def one(id: str, content: str, **more: Any) -> dict[str, Any]:
        return {"id": id, "type": "preference", "content": content, "content_hash": content_hash(content),
                "temporal": {"created_at": "2026-02-15T00:00:00Z"}, "provenance": {"platform": "chatgpt"}} | more
    assert content_hash("  User is a cloud\n infrastructure Engineer ") == \
        "sha256:e1bae3ec291c99eced01fc91b4152a0cef541fccf2034fc11b3f90f4e4d79b6e", "the example of the specification"
    document: dict[str, Any] = {"schema": "portable-ai-memory", "schema_version": "1.0", "owner": {"id": "me"}, "memories": [
        one("m1", "I drink green tea.", tags=["drinks"]), one("m2", "I drank coffee.", status="superseded", temporal={
            "created_at": "2025-01-01T00:00:00Z", "superseded_by": "m1"}), one("m3", "I drink cola.", status="retracted")],
        "relations": [{"id": "r", "from": "m1", "to": "m2", "type": "supersedes", "created_at": "2026-02-15T00:00:00Z"}]}
    (tmp_path / "store.json").write_text(json.dumps(document))
    with Memory(tmp_path / "m.db", embedder="none") as memory:
        assert import_export(memory, tmp_path / "store.json", "pam").added == 2
        assert memory.get("pam-m2").valid_to == memory.get("pam-m1").valid_from and memory.get("pam-m1").tags == ("drinks",)
        assert [(e.src, e.dst, e.relation) for e in memory.links("pam-m1")] == [("pam-m1", "pam-m2", "supersedes")]
        document["memories"][0]["content"] += " Not."
        (tmp_path / "store.json").write_text(json.dumps(document))
        with pytest.raises(InvalidInput, match="digest"):
            import_export(memory, tmp_path / "store.json", "pam")


def test_people_read_a_namespace_as_markdown(tmp_path: Path) -> None:
    with Memory(tmp_path / "a.db", embedder="none") as memory:
        memory.write("I am allergic to peanuts.", tags=["health"], pinned=True, valid_from="2026-01-02")
        memory.write("민아는 녹차를 좋아한다", valid_from="2026-01-02", valid_to="2026-03-04")
        memory.add_conversation([{"speaker": "Mina", "text": "When?\n# not a heading", "time": "2026-05-06"}], session="june")
    done = CliRunner().invoke(main, ["export", "--format", "markdown", "--db", f"{tmp_path}/a.db"])
    assert done.exit_code == 0
    lines = done.output.splitlines()
    headings = [line for line in lines if line.startswith("#")]
    assert headings == ["# What is remembered in default", "## Pinned", "## Known, 2026-01", "## june"]
    assert "- I am allergic to peanuts.  " in lines and "  *2026-01-02 #health*" in lines and "  *2026-01-02 until 2026-03-04*" in lines
    assert "- **Mina:** When?" in lines and "  # not a heading  " in lines


def test_an_import_finds_out_what_a_file_is(tmp_path: Path) -> None:
    (tmp_path / "conversations.json").write_text(json.dumps(CHATGPT))
    (tmp_path / "other.json").write_text(json.dumps(CLAUDE))
    (tmp_path / "facts.jsonl").write_text('{"text": "kept"}\n')
    (tmp_path / "odd.json").write_text("[]")
    db, run = ["--db", str(tmp_path / "m.db"), "--json"], CliRunner()
    for name, format in (("conversations.json", "chatgpt"), ("other.json", "claude"), ("facts.jsonl", "jsonl")):
        assert json.loads(run.invoke(main, ["import", str(tmp_path / name), *db]).stdout)["format"] == format
    with zipfile.ZipFile(files(tmp_path)["chatgpt"]) as archive:
        archive.extractall(tmp_path)
    for name in ("chatgpt.zip", "export"):  # as it was downloaded, and unpacked: other files lie beside the conversations
        assert json.loads(run.invoke(main, ["import", str(tmp_path / name), *db]).stdout)["format"] == "chatgpt", name
    assert json.loads(run.invoke(main, ["import", str(tmp_path / "notes"), *db]).stdout)["format"] == "markdown"
    assert "There is no file" in run.invoke(main, ["import", str(tmp_path / "chatgp.zip"), *db]).stderr
    assert run.invoke(main, ["export", f"{tmp_path}/all.jsonl", *db]).exit_code == 0
    told = json.loads(run.invoke(main, ["import", f"{tmp_path}/all.jsonl", *db]).stdout)
    assert told["format"] == "rlm-store" and told["added"] == 0 and told["present"] > 3
    for words in (["odd.json"], ["what", "odd.json"], ["jsonl", "facts.jsonl", "more"], ["jsonl", "facts.jsonl", "--format", "jsonl"]):
        done = run.invoke(main, ["import", *(str(tmp_path / w) if "." in w else w for w in words), *db])
        assert done.exit_code == 1 and "error" in done.stderr, words


def test_one_turn_that_is_refused_leaves_the_others(tmp_path: Path) -> None:
    chance = random.Random(3)
    said = [{"role": "user", "content": f"word{n}"} for n in range(9)]
    lines: list[dict[str, Any]] = [{"id": str(uuid.UUID(int=chance.getrandbits(128))), "messages": list(said)} for _ in range(300)]
    lines[0]["messages"][4] = {"role": "user", "content": "x" * 1_000_001}
    (tmp_path / "talk.jsonl").write_text("\n".join(map(json.dumps, lines)))
    with Memory(tmp_path / "m.db", embedder="none") as memory:
        report = import_export(memory, tmp_path / "talk.jsonl", "jsonl")
        assert report.added == 2699 and len(report.refused) == 1 and "are allowed" in next(iter(report.refused.values()))


def test_a_store_that_was_searched_leaves_and_comes_back_whole(tmp_path: Path) -> None:
    run, here, there = CliRunner(), ["--db", str(tmp_path / "m.db")], ["--db", str(tmp_path / "n.db"), "--json"]
    for words in (["memory", "write", "hello"], ["memory", "search", "hello"], ["context", "hello"], ["export", f"{tmp_path}/all.jsonl"]):
        assert run.invoke(main, [*words, *here]).exit_code == 0
    lines = (tmp_path / "all.jsonl").read_text(encoding="utf-8").splitlines()
    assert json.loads(lines[0])["sequences"] == {"memories": 1, "events": 1}, "the log of recalls, which counts too, is not exported"
    assert json.loads(run.invoke(main, ["import", f"{tmp_path}/all.jsonl", *there]).stdout)["added"] == 1
    head = json.loads(lines[0])
    head["sequences"]["recalls"] = 2  # as exports had it once
    (tmp_path / "old.jsonl").write_text("\n".join([json.dumps(head), *lines[1:]]), encoding="utf-8")
    assert json.loads(run.invoke(main, ["import", f"{tmp_path}/old.jsonl", *there]).stdout)["present"] == 1


@pytest.mark.seed("004 v2-blocks")
@pytest.mark.parametrize("layout", ["list", "object", "files"])
def test_blocks_of_version_2_keep_their_times_tags_and_neighbours(tmp_path: Path, layout: str) -> None:
    folder = tmp_path / "data"
    folder.mkdir()
    for block in GREEUM if layout == "files" else ():
        (folder / f"{block['block_id']}.json").write_text(json.dumps(block), encoding="utf-8")
    if layout != "files":
        (folder / "b.json").write_text(json.dumps(GREEUM if layout == "list" else {"blocks": GREEUM}), encoding="utf-8")
    with Memory(":memory:", embedder="none") as memory:
        assert import_export(memory, folder, "greeum", progress=False).added == 2
        boat = memory.search("배", 1)[0].memory
        assert (boat.valid_from.timestamp(), list(boat.tags)) == (1723180000, ["boat"])
        assert (boat.id, boat.extra) == ("blk_abc", {"meta": {"source": "cli"}})
        assert memory.graph.neighbors("blk_abc") == [("blk_def", pytest.approx(0.61))]
        for name, snapshot in {"anchors": {"slots": [{"slot": "A", "anchor_block_id": "blk_def", "last_used_ts": 1723182200}]},
                               "graph": {"edges": [{"u": "blk_abc", "v": "blk_def", "w": 0.62, "src": ["sim", "time"]}]}}.items():
            (tmp_path / name).write_text(json.dumps({"version": 1, **snapshot}), encoding="utf-8")
        assert import_anchors(memory.anchors, tmp_path / "anchors") == 1 and memory.anchors.state()[0].id == "blk_def"
        assert import_graph(memory.graph, tmp_path / "graph").links == 1
        (folder / "bad.json").write_text('[{"block_id": "x"}]', encoding="utf-8")
        (folder / "odd.json").write_text(json.dumps([GREEUM[1] | {"block_id": "y", "links": {"neighbors": [{"id": "x", "w": 7}]}}]))
        report = import_export(memory, folder, "greeum", progress=False)
        assert (report.added, report.present, set(report.unread)) == (0, 2, {"bad.json", "odd.json"})
        assert "greeum" in report.refused["bad.json"] and "weight of a neighbour is 7" in report.refused["odd.json"]


def test_tags_and_dates_of_notes_and_tables_are_kept(tmp_path: Path) -> None:
    found = files(tmp_path)
    with Memory(":memory:", embedder="none") as memory:
        import_export(memory, found["markdown"], "markdown", progress=False)
        import_export(memory, found["csv"], "csv", progress=False)
        kept = {m.text.split("\n")[0]: (m.tags, str(m.valid_from)[:10]) for m in memory.list(k=20)}
        assert kept["Intro."] == kept["Oil"] == (("x", "y"), "2026-05-01") and kept["보일러를 고쳤다"] == (("겨울", "집"), "2026-05-01")
    (tmp_path / "other.tsv").write_text("id\tContent\tpriority\tdate\n7\tPay the rent.\thigh\tsoon\n")
    [read] = read_export(tmp_path / "other.tsv", "csv")
    assert isinstance(read, ForeignMemory) and read.id == "7" and format_of(tmp_path / "other.tsv") == "csv"
    assert read.fields == {"text": "Pay the rent.", "extra": {"priority": "high", "date": "soon"}}


@pytest.mark.parametrize("table", ["", "name,age\nMina,31\n"])
def test_a_table_without_texts_says_which_columns_it_has(tmp_path: Path, table: str) -> None:
    (tmp_path / "people.csv").write_text(table)
    with pytest.raises(InvalidInput, match=r"No column of people.csv is the memory's text: .*Name one of them text or content"):
        list(read_export(tmp_path / "people.csv", "csv"))


@pytest.mark.parametrize("name", ["lines.jsonl", "talk.jsonl", "facts.csv", "notes.md"])
def test_what_was_rejected_is_left_out_of_an_import_and_named_and_the_rest_comes_in(name: str, tmp_path: Path) -> None:
    texts, path = ["I have a pacemaker.", "I play chess on Sundays."], tmp_path / name
    lines = {"lines.jsonl": [{"text": t} for t in texts], "talk.jsonl": [{"messages": [{"role": "user", "content": t} for t in texts]}]}
    path.write_text("\n".join(map(json.dumps, lines[name])) if name in lines else "\n".join(["text", *texts]) if name == "facts.csv"
                    else "\n\n".join(f"# {n}\n\n{t}" for n, t in enumerate(texts)), encoding="utf-8")
    with Memory(tmp_path / "m.db", embedder="none") as memory:
        memory.companion.reject(text="I have a pacemaker." if name != "notes.md" else "0\n\nI have a pacemaker.")
        report = import_export(memory, path, format_of(path))
        assert (report.added, len(report.refused)) == (1, 1) and "chess" in memory.list(1)[0].text
        assert "rejected by human" in next(iter(report.refused.values()))
        assert import_export(memory, path, format_of(path)).present == 1


def test_a_user_of_mem0_whose_id_is_a_number_is_read(tmp_path: Path) -> None:
    (path := tmp_path / "m.json").write_text(json.dumps([{"id": "a", "memory": "Lives in Oslo", "user_id": 5},
                                                         {"id": "b", "memory": "부산에 산다", "user_id": 6}]), encoding="utf-8")
    with Memory(":memory:", embedder="none") as memory:
        assert import_export(memory, path, "mem0", user="6").added == 1
        assert [m.text for m in memory.list()] == ["부산에 산다"]


@pytest.mark.parametrize("field", ["provenance", "extra"])
@pytest.mark.parametrize("odd", [None, "a web page", ["부산"]])
def test_a_field_that_holds_no_object_refuses_its_line_alone(tmp_path: Path, field: str, odd: object) -> None:
    lines = [{"text": "The boat is blue.", field: odd}, {"id": "c", "messages": [{"role": "user", "content": "Hello, boat.", "extra": odd},
             {"role": "user", "content": "부산에 산다"}]}, {"text": "The car is red.", field: {"page": 3}}]
    (path := tmp_path / "m.jsonl").write_text("\n".join(json.dumps(line) for line in lines), encoding="utf-8")
    with Memory(":memory:", embedder="none") as memory:
        report = import_export(memory, path, "jsonl")
        assert sorted(m.text for m in memory.list()) == ["The car is red.", "부산에 산다"]
        assert len(report.refused) == 2 and all(f"The {name} is" in why for name, why in zip(
            (field, "extra"), report.refused.values(), strict=True))


def test_a_column_may_be_called_more(tmp_path: Path) -> None:
    (path := tmp_path / "t.csv").write_text("text,more\nI like tea,green\n커피도 좋아한다,\n", encoding="utf-8")
    with Memory(":memory:", embedder="none") as memory:
        assert import_export(memory, path, "csv").added == 2
        assert [m.extra for m in memory.list()] == [{}, {"more": "green"}]
    path.write_text("text,tags\nI like tea,green,black\nI like coffee,,\n", encoding="utf-8")
    with Memory(":memory:", embedder="none") as memory:
        report = import_export(memory, path, "csv")
        assert report.added == 1 and "more cells" in str(report.refused)


def test_an_archive_that_cannot_be_read_within_an_export_leaves_the_others(tmp_path: Path) -> None:
    path, note = tmp_path / "e.zip", "# Boat\n\nThe boat is blue.\n"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("a.zip", "no archive")
        archive.writestr("b.md", note)
    with Memory(":memory:", embedder="none") as memory:
        report = import_export(memory, path, "markdown")
        assert report.added == 1 and report.unread == ("a.zip",) and "not a zip file" in report.refused["a.zip"]
    path.write_bytes(path.read_bytes()[:-30] + b"PK\x05\x06" + bytes(18))  # its list of files is gone
    with Memory(":memory:", embedder="none") as memory, pytest.raises((InvalidInput, NotFound)):
        import_export(memory, path, "markdown")


def test_archives_within_archives_have_an_end(tmp_path: Path) -> None:
    name, data, path = "boat.md", b"# Boat\n\nThe boat is blue.\n", tmp_path / "e.zip"
    for depth in range(1, 9):
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr(name, data)
        with Memory(":memory:", embedder="none") as memory:
            if depth <= 4:
                assert import_export(memory, path, "markdown").added == 1
            else:
                with pytest.raises(NotFound):
                    import_export(memory, path, "markdown")
        name, data = "inner.zip", path.read_bytes()


@pytest.mark.parametrize("text", ["Speaker: 안", "부산에 산다", "a가"])
def test_a_text_as_windows_writes_it_is_read_whole_and_a_beginning_up_to_the_cut(text: str) -> None:
    assert text_of(text.encode("cp949")) == text_of(text.encode("utf-16")) == text_of(text.encode()) == text
    assert text_of(text.encode()[:-1]) == text[:-1]
