"The hook of Claude Code: a process for each event, with a server and without one."
import json
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from serving import serving

from rlm import Memory
from rlm.service.cli import main
from rlm.service.hook import LOG_BYTES, HookFailure, HookServer, answer_of, last_answer, note
from rlm.service.http.tokens import TokenFile
from rlm.service.proposals import propose_rejection
from rlm.service.remote import connect

pytestmark = pytest.mark.usefixtures("bare")
AWAY = "http://127.0.0.1:9"  # nothing listens there


def hook(folder: Path, event: Any, *words: str) -> str:
    "Run the hook with an event, as Claude Code does, and return the block that it gives."
    given = event if isinstance(event, bytes) else json.dumps({"session_id": "s", "cwd": "/srv/boat"} | event).encode()
    done = subprocess.run([sys.executable, "-P", "-m", "rlm.service.hook", "--db", str(folder / "memory.db"), "--namespace", "default",
                           "--log", str(folder / "hook.log"), *words], input=given, capture_output=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, b"")
    if not done.stdout:
        return ""
    found = json.loads(done.stdout)["hookSpecificOutput"]
    assert found["hookEventName"] == json.loads(given)["hook_event_name"]
    return str(found["additionalContext"])


def prompt(text: str, session: str = "s") -> dict[str, str]:
    return {"hook_event_name": "UserPromptSubmit", "prompt": text, "session_id": session}


def last_line(folder: Path) -> dict[str, Any]:
    return dict(json.loads((folder / "hook.log").read_text().splitlines()[-1]))


def test_with_a_server_what_is_known_is_given_and_what_is_said_is_kept(tmp_path: Path) -> None:
    with serving(tmp_path / "memory.db", serve_rate=0) as running, running.client() as client:
        at = ("--url", running.url)
        assert hook(tmp_path, prompt("We use tabs, not spaces, in this repo"), *at) == ""
        assert hook(tmp_path, prompt("저는 땅콩 알레르기가 있어요"), *at) == "" and last_line(tmp_path)["stored"] == 1
        for skipped in ("should I indent with tabs?", "go on", "/clear"):
            hook(tmp_path, prompt(skipped), *at)
            assert "stored" not in last_line(tmp_path), skipped
        hook(tmp_path, {"hook_event_name": "Stop", "last_assistant_message": "The parser uses tabs now. Password: hunter2secret!9"}, *at)
        stored = [m["text"] for m in client.get("/v1/memories").json()["items"]]
        assert len(stored) == 3 and stored[0].startswith("The parser uses tabs now.") and "hunter2" not in "".join(stored)
        block = hook(tmp_path, prompt("do we use tabs?"), *at)
        assert block.startswith("<memories note=") and "We use tabs" in block and "parser" not in block  # its own turns stand there already
        assert "parser" in hook(tmp_path, prompt("do we use tabs?", "another"), *at)
        hook(tmp_path, {"hook_event_name": "PreCompact"}, *at)
        assert "parser" in hook(tmp_path, prompt("do we use tabs?"), *at)
        assert "땅콩" in hook(tmp_path, prompt("땅콩 먹어도 될까?"), *at)
        client.patch(f"/v1/memories/{client.get('/v1/memories').json()['items'][-1]['id']}", json={"pinned": True})
        assert "We use tabs" in hook(tmp_path, {"hook_event_name": "SessionStart", "source": "startup"}, *at)
    log = (tmp_path / "hook.log").read_text()
    assert "tabs" not in log and "땅콩" not in log and "failed" not in log


def test_alone_it_reads_by_words_and_another_process_writes(tmp_path: Path) -> None:
    with Memory(tmp_path / "memory.db") as memory:
        memory.write("I am allergic to peanuts.")
        memory.write("The boat is red.", id="boat", pinned=True)
        propose_rejection(memory.reader, "boat", "It is green.", {"source": "mcp"})
        memory.write("I live in Oslo, near the peanuts.", id="oslo")
        memory.companion.reject("oslo")
    block = hook(tmp_path, prompt("peanut cookies in Oslo?"), "--url", AWAY)
    assert "allergic" in block and "red" in block and "Oslo" not in block and last_line(tmp_path)["by"] == "words"
    assert block.count(", disputed]") == 1, "what a person has not decided about yet is marked"
    hook(tmp_path, prompt("우리 서버는 서울 리전에 있어"), "--url", AWAY)
    for _ in range(1200):
        with Memory(tmp_path / "memory.db", read_only=True) as memory:
            if found := [m for m in memory.list() if "서울" in m.text]:
                break
        time.sleep(.1)
    assert found[0].provenance["source"] == "hook" and found[0].role == "user"


def wait_for_note(folder: Path, count: int) -> list[dict[str, Any]]:
    "What the writing processes have told, once so many have."
    for _ in range(1200):
        told = [json.loads(line) for line in (folder / "hook.log").read_text().splitlines()]
        if len(found := [t for t in told if t.get("event") == "write"]) >= count:
            return found
        time.sleep(.1)
    raise AssertionError(told)


def test_alone_it_knows_what_was_corrected_and_says_what_was_stored(tmp_path: Path) -> None:
    hook(tmp_path, prompt("We use tabs in this repo, and I live in Seoul.", "a"), "--url", AWAY)
    wait_for_note(tmp_path, 1)
    hook(tmp_path, prompt("no, I moved to Busan", "b"), "--url", AWAY)
    wait_for_note(tmp_path, 2)
    lines = hook(tmp_path, prompt("where do I live?", "c"), "--url", AWAY).splitlines()[1:-1]
    assert lines[0].endswith("no, I moved to Busan") and all("no longer true: residence Seoul" in line for line in lines[1:])
    assert "stored" not in last_line(tmp_path)
    hook(tmp_path, prompt("My sister lives in Jeju.", "d"), "--url", AWAY)
    assert [t["stored"] for t in wait_for_note(tmp_path, 3)] == [1, 1, 1]  # none for the question
    with Memory(tmp_path / "memory.db", read_only=True) as memory:
        assert len(memory.list()) == 3


def test_an_answer_that_quotes_its_context_is_stored_without_it(tmp_path: Path) -> None:
    with Memory(tmp_path / "memory.db") as memory:
        memory.write("I am allergic to peanuts.")
    block = hook(tmp_path, prompt("peanut cookies?"), "--url", AWAY)
    hook(tmp_path, {"hook_event_name": "Stop", "last_assistant_message": f"{block}\nSo no peanut cookies."}, "--url", AWAY)
    wait_for_note(tmp_path, 1)
    with Memory(tmp_path / "memory.db", read_only=True) as memory:
        assert memory.list()[0].text == "So no peanut cookies."


def test_what_fails_is_a_reason_in_the_log_and_nothing_else(tmp_path: Path) -> None:
    book = TokenFile(tmp_path / "tokens")
    (tmp_path / "secret").write_text(book.add("default")[0])
    with serving(tmp_path / "memory.db", book) as running:
        assert hook(tmp_path, prompt("hello"), "--url", running.url) == ""
        assert last_line(tmp_path)["failed"].startswith("the server answered 401")
        hook(tmp_path, prompt("We use tabs"), "--url", running.url, "--secret", str(tmp_path / "secret"))
        assert "failed" not in last_line(tmp_path) and last_line(tmp_path)["by"] == "server"
    for event, words, reason in [(b"no json", (), "no JSON"), (b"[]", (), "none of"), (prompt("x"), ("--url", "ftp://x"), "address"),
                                 (prompt("x"), ("--secret", "/no"), "No such file"), ({"hook_event_name": "Nothing"}, (), "none of")]:
        hook(tmp_path, event, *words)
        assert reason in last_line(tmp_path)["failed"], event
    (tmp_path / "memory.db").write_bytes(b"no store at all, but a text")
    hook(tmp_path, prompt("what is known?"), "--url", AWAY)
    assert "memory.db" in last_line(tmp_path)["failed"] or "store" in last_line(tmp_path)["failed"].lower()
    shown = CliRunner().invoke(main, ["hook", "status", "--log", str(tmp_path / "hook.log")])
    assert shown.exit_code == 0 and "no JSON" in shown.output and "8 events" in shown.output
    assert json.loads(CliRunner().invoke(main, ["hook", "status", "--log", str(tmp_path / "none"), "--json"]).output)["events"] == 0


def test_a_token_does_not_leave_the_machine_unencrypted(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("abc")
    with pytest.raises(HookFailure, match="unencrypted"):
        HookServer("http://memory.example", None, str(tmp_path / "secret"))
    with pytest.raises(HookFailure, match="does not speak HTTP"):
        answer_of(b"220 mail ready\r\n")


def test_an_address_may_be_of_ipv6_and_a_proxy_is_not_asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "secret").write_text("abc")
    for url, place, host in (("http://[::1]:8377", ("::1", 8377), "[::1]:8377"), ("http://[::1]/", ("::1", 80), "[::1]"),
                             ("https://memory.example", ("memory.example", 443), "memory.example"),
                             ("http://localhost:1/", ("localhost", 1), "localhost:1")):
        server = HookServer(url, None, str(tmp_path / "secret"))
        assert (server.place, server.host) == (place, host)
    for wrong in ("http://::1:8377", "http://[::1", "http://a/b", "http://a:99999", "http://u:p@a", "http://", "a:80"):
        with pytest.raises(HookFailure, match="is not the address"):
            HookServer(wrong)
    with pytest.raises(HookFailure, match="unencrypted"):
        HookServer("http://[2001:db8::1]:80", None, str(tmp_path / "secret"))
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, AWAY)
    with answering([b'HTTP/1.0 200 OK\r\n\r\n{"a": 1}'], "::1") as port:
        assert HookServer(f"http://[::1]:{port}").ask("/v1/context", {}) == {"a": 1}
    with serving(tmp_path / "memory.db", serve_rate=0) as running:
        hook(tmp_path, prompt("We use tabs"), "--url", running.url)
        assert last_line(tmp_path)["by"] == "server"
        assert connect(running.url).write("the mirror").text == "the mirror"


def test_a_server_that_drips_or_floods_keeps_nobody_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rlm.service.hook.ANSWER_S", 0.3)
    for sent in ([b"x"] * 40, [b"x" * 500_000] * 20, [b""] * 40):
        with answering(sent, "127.0.0.1", 0.05) as port, pytest.raises(HookFailure, match="no whole answer"):
            HookServer(f"http://127.0.0.1:{port}").ask("/v1/context", {})


@contextmanager
def answering(parts: list[bytes], host: str, pause: float = 0.0) -> Iterator[int]:
    "A server that answers one request with parts, one after the other, and no faster."
    if ":" in host and not Path("/proc/net/if_inet6").exists():
        pytest.skip("this machine has no IPv6")
    with socket.create_server((host, 0), family=socket.AF_INET6 if ":" in host else socket.AF_INET) as listening:
        def answer() -> None:
            with suppress(OSError):
                link, _ = listening.accept()
                with link:
                    link.recv(65_536)
                    for part in parts:
                        link.sendall(part)
                        time.sleep(pause)
        thread = threading.Thread(target=answer, daemon=True)
        thread.start()
        yield listening.getsockname()[1]
        thread.join(5)


def test_an_answer_is_read_from_the_transcript_of_earlier_programs(tmp_path: Path) -> None:
    lines: list[Any] = [{"type": "user", "message": {"content": "hi"}},
                        {"type": "assistant", "message": {"content": [{"type": "text", "text": "first"}, {"type": "tool_use"}]}},
                        {"type": "assistant", "isSidechain": True, "message": {"content": "aside"}}, {"type": "system"}]
    (tmp_path / "t.jsonl").write_text("\n".join(map(json.dumps, lines)) + "\n{cut", encoding="utf-8")
    assert last_answer({"transcript_path": str(tmp_path / "t.jsonl")}) == "first"
    assert last_answer({"transcript_path": "/nowhere"}) == "" and last_answer({"last_assistant_message": "new"}) == "new"


def test_the_settings_keep_what_is_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    other = {"matcher": "Bash", "hooks": [{"type": "command", "command": "lint"}]}
    (tmp_path / ".claude").mkdir()
    file = tmp_path / ".claude" / "settings.json"
    file.write_text(json.dumps({"model": "x", "hooks": {"Stop": [other], "PreToolUse": [other]}}))
    for words in (["--write"], ["--write", "-n", "work", "--no-capture"]):
        assert CliRunner().invoke(main, ["hook", "install", *words]).exit_code == 0
    found = json.loads(file.read_text())
    assert found["model"] == "x" and found["hooks"]["PreToolUse"] == [other] and found["hooks"]["Stop"][0] == other
    assert all(len([e for e in entries if e != other]) == 1 for name, entries in found["hooks"].items() if name != "PreToolUse")
    command = found["hooks"]["UserPromptSubmit"][0]["hooks"][0]["command"]
    assert "--namespace work" in command and "--no-capture" in command and "memory.db" in command
    done = subprocess.run(command, shell=True, input=json.dumps(prompt("hello")), text=True, capture_output=True)
    assert (done.returncode, done.stderr) == (0, "")
    file.write_text('{"hooks": []}')
    assert CliRunner().invoke(main, ["hook", "install", "--write"]).exit_code == 1 and file.read_text() == '{"hooks": []}'


def test_the_log_stays_small(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "hook.log"
    path.parent.mkdir()
    path.write_text('{"event": "x"}\n' * (LOG_BYTES // 10))
    note(str(path), {"event": "last"})
    lines = path.read_text().splitlines()
    assert path.stat().st_size < LOG_BYTES and json.loads(lines[-1])["event"] == "last" and json.loads(lines[0]) == {"event": "x"}
