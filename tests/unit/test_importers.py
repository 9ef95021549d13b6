"""What other programs export: read as it comes, once, and what was deleted here stays deleted."""

import json
import zipfile
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from rlm import Memory
from rlm.core.errors import InvalidInput, NotFound
from rlm.service.cli.main import main
from rlm.service.importers import READERS_OF, import_export, read_export

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


def files(folder: Path) -> dict[str, Path]:
    "An export of each program."
    found = {"chatgpt": folder / "chatgpt.zip", "markdown": folder / "notes"}
    with zipfile.ZipFile(found["chatgpt"], "w") as archive:
        archive.writestr("export/conversations.json", json.dumps(CHATGPT))
        archive.writestr("export/user.json", "{}")
    for name, given in (("claude", CLAUDE), ("gemini", GEMINI), ("mem0", MEM0), ("langmem", LANGMEM)):
        found[name] = folder / f"{name}.json"
        found[name].write_text(json.dumps(given), encoding="utf-8")
    found["jsonl"] = folder / "x.jsonl"
    found["jsonl"].write_text("\n".join(json.dumps(line, ensure_ascii=False) for line in JSONL), encoding="utf-8")
    (found["markdown"] / "deep").mkdir(parents=True)
    (found["markdown"] / "deep" / "배.md").write_text(
        "---\ntags: x\n---\nIntro.\n\n# 엔진\n\n5월에 필터를 바꾼다.\n\n## Oil\nTen litres.\n", encoding="utf-8"
    )
    return found


TEXTS = {
    "chatgpt": {"냉면이 먹고 싶어\n[image_asset_pointer]", "을지로에 좋은 집이 있어요."},
    "claude": {"When is the engine serviced?", "In May."},
    "gemini": {"Which ferry at noon?", "The small one."},
    "mem0": {"Likes the window seat"},
    "langmem": {"Prefers tea", '{"count": 3}'},
    "jsonl": {"The boiler is serviced in November.", "차가 좋아", "calls brew({})"},
    "markdown": {"Intro.", "엔진\n\n5월에 필터를 바꾼다.", "Oil\n\nTen litres."},
}


@pytest.mark.parametrize("format", list(READERS_OF))
def test_an_export_is_read_whole_and_once(tmp_path: Path, format: str) -> None:
    path = files(tmp_path)[format]
    with Memory(":memory:", embedder="none") as memory:
        report = import_export(memory, path, format, progress=False)
        assert {r.text for r in memory.list(k=20)} == TEXTS[format] and report.added == len(TEXTS[format]) and not report.refused
        again = import_export(memory, path, format, progress=False)
        assert (again.added, again.present) == (0, len(TEXTS[format])) and repr(again) and again.as_dict()["format"] == format
        gone = memory.list(k=1)[0]
        memory.delete(gone.id)
        assert (
            import_export(memory, path, format, progress=False).deleted == 1 and len(memory.list(k=20)) == len(TEXTS[format]) - 1
        )
        assert all(r.provenance["source"] == format for r in memory.list(k=20)) and not memory.check()


def test_a_conversation_keeps_its_order_its_times_and_its_sources(tmp_path: Path) -> None:
    with Memory(":memory:", embedder="none") as memory:
        report = import_export(memory, files(tmp_path)["chatgpt"], "chatgpt")
        assert (report.conversations, report.left_out) == (2, 6)
        first, second = memory.list(k=5, session="chatgpt-k1")[::-1]
        assert (first.turn, first.role, second.role) == (0, "user", "assistant") and first.valid_from.year == 2023
        assert first.extra == {"title": "점심", "attachments": ["menu.jpg"]} and first.provenance["conversation"] == "k1"
        assert memory.search("을지로 집")[0].id == second.id


def test_a_newer_export_adds_what_is_new(tmp_path: Path) -> None:
    with Memory(":memory:", embedder="none") as memory:
        path = tmp_path / "conversations.json"
        path.write_text(json.dumps(CLAUDE), encoding="utf-8")
        import_export(memory, path, "claude")
        more = CLAUDE[0]["chat_messages"] + [{"uuid": "m4", "sender": "human", "text": "And the sail?", "content": []}]  # type: ignore[operator]
        path.write_text(json.dumps([CLAUDE[0] | {"chat_messages": more}]), encoding="utf-8")
        assert import_export(memory, path, "claude").added == 1
        assert [r.turn for r in memory.list(k=5, session="claude-c1")] == [2, 1, 0]


@pytest.mark.parametrize(
    ("format", "text", "kind"),
    [
        ("chatgpt", "{", InvalidInput),
        ("chatgpt", "[1]", InvalidInput),
        ("claude", '[{"name": "no id"}]', InvalidInput),
        ("mem0", "5", InvalidInput),
        ("jsonl", '{"text": "a"}\n[', InvalidInput),
        ("jsonl", "[]", InvalidInput),
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


def test_secrets_are_taken_out_and_a_blank_memory_is_told_of(tmp_path: Path) -> None:
    path = tmp_path / "m.json"
    path.write_text(
        json.dumps([{"id": "a", "memory": "My password for the bank is Bluefish!92x"}, {"id": "b", "memory": " "}]),
        encoding="utf-8",
    )
    with Memory(":memory:", embedder="none") as memory:
        report = import_export(memory, path, "mem0")
        assert report.added == 1 and list(report.refused) == ["mem0-b"] and "Bluefish" not in memory.list(k=1)[0].text


def test_the_command_tells_what_it_did(tmp_path: Path) -> None:
    db, path = str(tmp_path / "m.db"), str(files(tmp_path)["chatgpt"])
    first = CliRunner().invoke(main, ["import", "chatgpt", path, "--db", db, "--later", "--json"])
    assert first.exit_code == 0 and json.loads(first.stdout)["added"] == 2
    again = CliRunner().invoke(main, ["import", "chatgpt", path, "--db", db, "--later"])
    assert again.exit_code == 0 and "present" in again.stdout
    wrong = CliRunner().invoke(main, ["import", "claude", path, "--db", db, "--later"])
    assert wrong.exit_code == 1 and "is not laid out as an export of claude" in wrong.stderr
