"What a newcomer gives by mistake is answered by a sentence that names what was wrong."
import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from serving import serving
from toy import Toy

from rlm import Memory
from rlm.core.errors import InvalidInput, StoreError, StoreUnreachable
from rlm.rules.rule_store import RuleStore
from rlm.service.cli import main
from rlm.service.http.errors import problem_of
from rlm.service.http.health import problem_sentence
from rlm.service.importers import import_export


def test_a_name_that_is_too_long_is_not_to_be_parted() -> None:
    with Memory(":memory:", embedder="none") as memory, pytest.raises(InvalidInput, match="Give a shorter one") as wrong:
        memory.write("Bees.", title="t" * 513)
    assert "title" in str(wrong.value) and "parts" not in str(wrong.value)


@pytest.mark.parametrize("count", [7, None, "tokens", lambda text: text, lambda text: None, lambda text: -1, lambda text: -1 if text else 0,
                                   lambda text: None if text else 0, lambda text: float("nan"), lambda text: True])
def test_a_counter_that_counts_nothing_is_named(count: object) -> None:
    with Memory(":memory:", embedder="none") as memory:
        memory.write("The bees live behind the shed.")
        with pytest.raises(InvalidInput, match="counts tokens"):
            memory.context("Where do the bees live?", count=count)  # type: ignore[arg-type]
        assert all(memory.context("Where do the bees live?", count=good).used for good in (len, lambda text: 0))
        with pytest.raises(InvalidInput, match="least"):
            memory.context("Where do the bees live?", least="much")  # type: ignore[arg-type]


def test_an_id_that_is_none_is_asked_for_as_an_id() -> None:
    with Memory(":memory:", embedder="none") as memory, pytest.raises(InvalidInput, match="Give an id, or a list of them"):
        memory.delete(None)  # type: ignore[arg-type]


def test_a_word_of_broken_bytes_on_the_command_line_is_the_text(tmp_path: Path) -> None:
    done = CliRunner().invoke(main, ["memory", "write", "bad\udcff", "--db", str(tmp_path / "m.db")])
    assert done.exit_code == 1 and "The text holds half a surrogate pair" in done.output


def test_a_server_without_tokens_says_how_a_second_namespace_is_opened(tmp_path: Path) -> None:
    with serving(tmp_path / "m.db") as running, running.client() as client:
        refused = client.get("/v1/memories", headers={"Rlm-Namespace": "bo"})
    assert refused.status_code == 403 and "rlm tokens add -n" in refused.text and "'default'" in refused.text


def test_a_blank_speaker_of_a_chat_is_none(tmp_path: Path) -> None:
    chat = tmp_path / "chat.jsonl"
    chat.write_text(json.dumps({"messages": [{"text": "The tap drips.", "speaker": " "}]}), encoding="utf-8")
    with Memory(":memory:", embedder="none") as memory:
        assert import_export(memory, chat, "jsonl").added == 1 and memory.list()[0].speaker is None


@pytest.mark.parametrize("question", ["???", "!!!", "…", "？", "- —"])
def test_a_question_without_a_word_finds_nothing_and_says_why(question: str) -> None:
    with Memory(":memory:", embedder=Toy()) as memory:
        memory.write("The bees live behind the shed.")
        assert "holds no word" in repr(memory.search(question)) and "holds no word" not in repr(memory.search("zebra"))


@pytest.mark.parametrize("wrong", ["gpt4", "opnai:x", "openai", "m2v:", 7, Toy])
def test_a_model_that_there_is_not_is_refused_at_opening(wrong: Any) -> None:
    with pytest.raises(InvalidInput, match="embedder"):
        Memory(":memory:", embedder=wrong)
    with pytest.raises(InvalidInput, match="embedder"):
        RuleStore(":memory:", embedder=wrong)


def test_no_model_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RLM_EMBEDDER", "openai:x")
    for opened in (Memory(":memory:", embedder=None), RuleStore(":memory:", embedder=None)):
        assert opened.settings.embedder == "none"
        opened.close()
    with Memory(":memory:") as memory:
        assert memory.settings.embedder == "openai:x"


def test_a_role_is_read_as_messages_have_it_and_a_slip_is_named() -> None:
    with Memory(":memory:", embedder="none") as memory:
        for role in ("user", "human", "Human", " USER "):
            assert memory.write("I live in Oslo.", role=role).role == "user"
        assert memory.write("You live in Oslo.", role="ai").role == "assistant"
        assert memory.add_conversation([("Mina", "I live in Oslo.")], role="model")[0].role == "assistant"
        assert memory.write("x", role="Wizard").role == "Wizard"
        with pytest.raises(InvalidInput, match="Did you mean 'assistant'"):
            memory.write("x", role="asistant")


def test_a_foreign_role_is_a_speaker(tmp_path: Path) -> None:
    chat = tmp_path / "chat.jsonl"
    said = [{"role": "customer", "content": "I live in Oslo."}, {"role": "agent", "name": "Joon", "content": "Noted."}]
    chat.write_text(json.dumps({"messages": said}), encoding="utf-8")
    with Memory(":memory:", embedder="none") as memory:
        assert import_export(memory, chat, "jsonl").added == 2
        assert {(r.role, r.speaker) for r in memory.list()} == {(None, "customer"), (None, "Joon")}


def test_a_rejection_of_a_relation_that_is_not_known_says_so(tmp_path: Path) -> None:
    with Memory(tmp_path / "m.db", embedder="none") as memory:
        memory.write("I live in Oslo.", id="home")
        reject = memory.companion.reject
        assert "'favourite swamp'" in reject(relation="favourite swamp", value="x").note
        assert "Did you mean 'residence'" in str(reject(relation="residnce", value="Rome"))
        assert not reject(relation="사는 곳", value="로마").note and not reject(relation="residence", value="Oslo").note
        assert memory.companion.rejections()[0].note == ""
    done = CliRunner().invoke(main, ["review", "reject", "--relation", "residnce", "--value", "x", "--db", str(tmp_path / "m.db")])
    assert done.exit_code == 0 and "Did you mean 'residence'" in done.output


def test_what_is_not_served_is_told_before_what_a_body_must_be(tmp_path: Path) -> None:
    with serving(tmp_path / "m.db") as running, running.client() as client:
        put = client.put("/v1/memories/x", content=b"text=y")
        assert (put.status_code, put.headers["allow"]) == (405, "DELETE, GET, PATCH")
        assert "PUT is not served" in put.text and "Served here: DELETE, GET, PATCH. PATCH changes" in put.text
        assert "Served here: POST" in client.get("/v1/search").text
        assert client.post("/v1/memory", content=b"x").status_code == 404
        assert "Did you mean /v1/memories?" in client.get("/v1/memory").text
        assert client.post("/v1/memories", content=b"text=y").status_code == 415
        assert client.post("/v1/write", content=b"text=y", headers={"Content-Type": "text/plain"}).status_code == 415


def test_an_import_of_another_namespace_says_what_python_and_a_terminal_need(tmp_path: Path) -> None:
    with Memory(tmp_path / "m.db", namespace="anna", embedder="none") as memory:
        memory.write("The tap drips.")
        memory.export_jsonl(tmp_path / "m.jsonl")
    with Memory(tmp_path / "n.db", embedder="none") as memory:
        with pytest.raises(InvalidInput, match=r"namespace='anna'.*import_lines.*rlm import"):
            memory.import_jsonl(tmp_path / "m.jsonl")
        with open(tmp_path / "m.jsonl", encoding="utf-8") as lines:
            assert memory.admin.import_lines(lines).namespaces == ("anna",)


def test_a_database_that_gives_no_connection_is_not_another_process() -> None:
    assert "another process" not in problem_sentence(StoreUnreachable("x")).lower()
    told = problem_of(StoreUnreachable("No connection to 'postgresql://…' came about."))
    assert told.status == 503 and "no connection" in told.content["detail"] and "process" not in told.content["detail"]


@pytest.mark.parametrize("lost", ["no/such", "data"])
def test_a_store_in_a_folder_that_is_not_there_is_a_slip_and_no_folder_is_made(lost: str, tmp_path: Path) -> None:
    path = tmp_path / lost / "x.db"
    with pytest.raises(StoreError, match="there is no folder") as wrong:
        Memory(path, embedder="none")
    done = CliRunner().invoke(main, ["memory", "write", "I keep bees.", "--db", str(path)])
    assert str(path.parent) in str(wrong.value) and not any(tmp_path.iterdir())
    assert done.exit_code == 1 and "there is no folder" in done.output


def test_the_folder_of_the_usual_place_is_made_for_its_owner_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("RLM_DB_PATH", raising=False)
    with Memory(embedder="none") as memory:
        memory.write("I keep bees.")
    assert (tmp_path / ".rlm" / "memory.db").exists() and (tmp_path / ".rlm").stat().st_mode & 0o077 == 0


@pytest.mark.parametrize("written", ["1 March 2026", "March 1, 2026", "2026년 3월 1일", "01/03/2026", "2026-03-01 9 Uhr"])
def test_a_date_in_words_is_answered_by_the_form_that_is_taken(written: str) -> None:
    with Memory(":memory:", embedder="none") as memory:
        for call in (lambda: memory.write("We met.", valid_from=written), lambda: memory.search("met", since=written)):
            with pytest.raises(InvalidInput, match=r"Write it like 2026-01-31") as wrong:
                call()
            assert "%2B" not in str(wrong.value)
        with pytest.raises(InvalidInput, match="%2B"):
            memory.search("met", since="2026-03-01T09:00:00 09:00")


def test_a_hit_tells_what_its_memory_does() -> None:
    with Memory(":memory:", embedder="none") as memory:
        until = {"valid_from": "2026-05-01", "valid_to": "2100-01-01"}
        kept = memory.write("The bees live behind the shed.", speaker="Mina", tags=["garden"], **until)
        hit = memory.search("Where do the bees live?")[0]
        assert (hit.speaker, hit.tags, hit.valid_from, hit.valid_to) == (kept.speaker, kept.tags, kept.valid_from, kept.valid_to)


def test_a_block_without_room_for_a_memory_says_how_many_there_are() -> None:
    with Memory(":memory:", embedder="none") as memory:
        for n in range(3):
            memory.write(f"The bees of hive {n} live " + "between the old shed, the hazel hedge and the long wall of the orchard, " * 8)
        block = memory.context("Where do the bees live?", tokens=45)
        assert "(3 more)" in block.text and not block.used and len(block.left_out) == 3 and 0 < block.tokens <= 45
        assert memory.context("Where do the bees live?", tokens=5).text == "" and not memory.context("quarks", tokens=45).left_out
