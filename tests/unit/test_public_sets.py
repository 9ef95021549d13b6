"The public sets as they are published, in made files of the same shapes, and the reduced ones."
import json
import zipfile
from pathlib import Path
from typing import Any

import pytest

from rlm.bench.public_sets import Conversation, read_beam, read_locomo, read_realmem
from rlm.core.errors import InvalidInput

TALK: dict[str, Any] = {
        "speaker_a": "Mina", "speaker_b": "Joon", "session_2_date_time": "9:00 am on 1 June, 2023",
        "session_2": [{"speaker": "Mina", "dia_id": "D2:1", "text": "In April."},
                      {"speaker": "Mina", "dia_id": "D2:3", "text": "Late April."}],
        "session_1_date_time": "1:56 pm on 8 May, 2023", "session_10": [{"speaker": "Joon", "dia_id": "D10:1", "text": "Bye."}],
        "session_1": [{"speaker": "Mina", "dia_id": "D1:1", "text": "Look!", "blip_caption": "a photo of a boat", "img_url": ["x"]}],
        "session_11_date_time": "9:00 am on 9 June, 2023", "events_session_1": {"Mina": []}}
ASKED = [{"question": "When did Mina get the boat?", "answer": "April", "category": 2, "evidence": ["D1:1; D:2:01", "D2:03", "D", "D99:1"]},
         {"question": "Which car?", "adversarial_answer": "red", "category": 5, "evidence": ["D1:1"]},
         {"question": "Who?", "category": 4, "evidence": ["D77:1"]}]


def check_locomo(found: list[Conversation], *names: str) -> None:
    assert [c.name for c in found] == list(names)
    for c in found:
        assert [(t["id"], t["session"]) for t in c.turns] == [("D1:1", "1"), ("D2:1", "2"), ("D2:3", "2"), ("D10:1", "10")]
        assert c.turns[0]["text"] == "Look! a photo of a boat" and f"{c.turns[0]['valid_from']:%Y-%m-%d %H:%M}" == "2023-05-08 13:56"
        assert "valid_from" not in c.turns[3]
        assert [(q.text, q.kind, sorted(q.evidence)) for q in c.questions] == [(ASKED[0]["question"], "temporal", ["D1:1", "D2:1", "D2:3"])]


def test_locomo_is_read_from_the_one_file_the_archive_and_the_folder(tmp_path: Path) -> None:
    whole = [{"sample_id": f"conv-{n}", "conversation": TALK, "qa": ASKED, "event_summary": {}} for n in (26, 30)]
    (tmp_path / "locomo10.json").write_text(json.dumps(whole), encoding="utf-8")
    check_locomo(list(read_locomo(tmp_path / "locomo10.json")), "conv-26", "conv-30")
    with zipfile.ZipFile(tmp_path / "locomo10.zip", "w") as archive:
        for n in (30, 26):
            archive.writestr(f"locomo10/{n}.json", json.dumps(TALK | {"qa": ASKED}))
        archive.writestr("__MACOSX/locomo10/._26.json", "\0")
    check_locomo(list(read_locomo(tmp_path / "locomo10.zip")), "26", "30")
    (tmp_path / "conv-1.json").write_text(json.dumps(TALK | {"qa": ASKED}), encoding="utf-8")
    sessions = [(n, [{k.replace("blip_", ""): v for k, v in t.items()} for t in TALK[f"session_{n}"]]) for n in (1, 2, 10)]
    reduced = {"sessions": [{"session": n, "date": TALK.get(f"session_{n}_date_time"), "turns": turns} for n, turns in sessions]}
    (tmp_path / "conv-2.json").write_text(json.dumps(reduced | {"qa": ASKED}), encoding="utf-8")
    check_locomo(list(read_locomo(tmp_path)), "conv-1", "conv-2")


def test_beam_is_read_from_a_tier_as_it_is_published_and_from_the_reduced_chats(tmp_path: Path) -> None:
    batches = [{"batch_number": n, "time_anchor": None, "turns": [[
        {"role": "user", "id": 2 * n, "time_anchor": "March-15-2024", "content": f"Flight {n}."},
        {"role": "assistant", "id": 2 * n + 1, "content": "Noted." if n else " "}]]} for n in (0, 1)]
    asked: dict[str, Any] = {"abstention": [{"question": "Which seat?"}],
                             "summarization": [{"question": "Sum up.", "source_chat_ids": [[0], 3, 99]}],
                             "knowledge_update": [{"question": "When?", "source_chat_ids": {"original_info": [0], "updated_info": [2]}}]}
    chat = tmp_path / "100K" / "7"
    (chat / "probing_questions").mkdir(parents=True)
    (chat / "chat.json").write_text(json.dumps(batches), encoding="utf-8")
    (chat / "probing_questions" / "probing_questions.json").write_text(json.dumps(asked), encoding="utf-8")
    (found,) = read_beam(tmp_path / "100K")
    turns = [(t["id"], t["session"], t["role"]) for t in found.turns]
    assert (found.name, turns) == ("7", [("0", "0", "user"), ("2", "1", "user"), ("3", "1", "assistant")])
    assert all(f"{t['valid_from']:%Y-%m-%d}" == "2024-03-15" for t in found.turns)
    assert [(q.kind, sorted(q.evidence)) for q in found.questions] == [("summarization", ["0", "3"]), ("knowledge_update", ["0", "2"])]
    lines = [{"id": int(t["id"]), "role": t["role"], "session": int(t["session"]), "date": "March-15-2024", "text": t["text"]}
             for t in found.turns]
    questions = [{"question": q.text, "kind": q.kind, "evidence": sorted(map(int, q.evidence))} for q in found.questions]
    (tmp_path / "chat-7.json").write_text(json.dumps({"turns": lines, "questions": questions}), encoding="utf-8")
    (reduced,) = read_beam(tmp_path)
    assert (reduced.turns, reduced.questions) == (found.turns, found.questions)
    (chat / "chat.json").unlink()
    with pytest.raises(InvalidInput, match=r"chat\.json"):
        list(read_beam(tmp_path / "100K"))


@pytest.mark.parametrize("content", ["[3]", "{}", "no", '{"session_1": [{"text": "a"}], "qa": []}', '{"session_1": "ab", "qa": []}'])
def test_what_is_no_conversation_is_said(content: str, tmp_path: Path) -> None:
    (tmp_path / "x.json").write_text(content, encoding="utf-8")
    with pytest.raises(InvalidInput, match=r"LoCoMo|JSON"):
        list(read_locomo(tmp_path / "x.json"))


def test_published_and_reduced_are_the_same_conversations(shared: Path) -> None:
    published, = read_locomo(shared / "data" / "public_format" / "locomo_one_conversation.json")
    reduced = next(c for c in read_locomo(shared / "data" / "locomo_dev") if c.name == "conv-26")
    turns = {t["id"]: t for t in reduced.turns}
    assert published.turns and all(turns[t["id"]] == t for t in published.turns)
    assert published.questions and set(published.questions) <= set(reduced.questions)


def test_published_and_reduced_are_the_same_people(shared: Path, tmp_path: Path) -> None:
    original = (shared / "data" / "public_format" / "realmem_dialogues.json").read_text(encoding="utf-8")
    (tmp_path / "Kenta_Tanaka_dialogues_256k.json").write_text(original, encoding="utf-8")
    (published,) = read_realmem(tmp_path)
    (reduced,) = (c for c in read_realmem(shared / "data" / "realmem_dev") if c.name == "Kenta_Tanaka")
    assert published.name == reduced.name and published.turns
    turns = {t["id"]: t for t in reduced.turns}
    for turn in published.turns:  # the published file is cut: texts are shorter, and there are fewer sessions
        whole = turns[turn["id"]]
        assert whole["text"].startswith(turn["text"][:100]) and (whole["role"], whole["valid_from"]) == (turn["role"], turn["valid_from"])


def test_what_is_no_person_is_said(tmp_path: Path) -> None:
    (tmp_path / "x_dialogues_256k.json").write_text('{"dialogues": [{"session_uuid": "a"}]}', encoding="utf-8")
    with pytest.raises(InvalidInput, match="RealMem"):
        list(read_realmem(tmp_path))
