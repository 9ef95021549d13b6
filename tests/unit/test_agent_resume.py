"A run that was cut off goes on without asking again; a model that calls tools natively does the same work as one that writes blocks."
import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from rlm.agent import RunLimits, ScriptedModel, resume, rlm_run, run
from rlm.agent.loop.loop import first_block
from rlm.agent.loop.prompt import tool_schema
from rlm.agent.models.base import Message
from rlm.agent.models.clients import OpenAIModel, Prices, anthropic_reply, called_code
from rlm.agent.tracing.trajectory import SUFFIX, CallJournal, find_journal, read_log
from rlm.core.errors import InvalidInput, NotFound
from rlm.service.cli.agent import main
from rlm.store.erasure import remove_logs

pytest.importorskip("pydantic_monty")
pytest.importorskip("httpx")
LOOK, ASK = "```repl\ntotal = text.count('tea')\ntotal\n```", "```repl\nsaid = llm_query('Is 차 tea?')\nsaid\n```"
END = "```repl\nFINAL(f'{total} {said}')\n```"


class Chat:
    "A server that says its lines in the order of the messages it is shown: a run that is repeated is told the same."

    def __init__(self, lines: list[Any]) -> None:
        self.lines, self.asked, self.hold = lines, list[dict[str, Any]](), threading.Event()
        self.held_at, self.waiting = 0, threading.Event()
        chat = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                chat.asked.append(body)
                if len(chat.asked) == chat.held_at:
                    chat.waiting.set()
                    chat.hold.wait(60)
                turns = [m for m in body["messages"] if m["role"] == "assistant"]
                said = chat.lines[len(turns)] if body["messages"][0]["role"] == "system" else "yes"
                message = said if isinstance(said, dict) else {"content": said}
                answer = {"choices": [{"message": message, "finish_reason": "stop"}], "usage": {"prompt_tokens": 9, "completion_tokens": 1}}
                data = json.dumps(answer).encode()
                self.send_response(200)
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, *_: object) -> None: ...
        self.http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.http.handle_error = lambda *_: None  # type: ignore[method-assign]  # a client that was killed is no trouble here
        threading.Thread(target=self.http.serve_forever, args=(0.01,), daemon=True).start()
        self.url = f"http://127.0.0.1:{self.http.server_port}/v1"


@pytest.fixture
def chat() -> Iterator[Callable[[list[Any]], Chat]]:
    there: list[Chat] = []

    def make(lines: list[Any]) -> Chat:
        there.append(Chat(lines))
        return there[-1]
    yield make
    for one in there:
        one.hold.set()
        one.http.shutdown()
        one.http.server_close()


def test_a_run_that_was_killed_goes_on_and_pays_only_for_what_is_new(chat: Callable[..., Chat], tmp_path: Path,
                                                                     monkeypatch: pytest.MonkeyPatch) -> None:
    server = chat([LOOK, ASK, END])
    server.held_at = 4  # two steps and what the code asked are paid; the third step is on its way
    (tmp_path / "text.txt").write_text("tea and tea", encoding="utf-8")
    env = {**os.environ, "OPENAI_BASE_URL": server.url}
    line = [str(Path(sys.executable).with_name("rlm-agent")), "run", "--context", "text.txt"]
    line += ["--query", "Is 차 tea?", "--model", "openai:x", "--db", "m.db", "--budget", "90000t"]
    started = subprocess.Popen(line, cwd=tmp_path, env=env)
    assert server.waiting.wait(60)
    os.kill(started.pid, signal.SIGKILL)
    started.wait()
    server.hold.set()
    assert len(server.asked) == 4 and find_journal(tmp_path / "logs", "default").exists()
    monkeypatch.chdir(tmp_path)
    done = CliRunner().invoke(main, ["run", "--resume", "last", "--db", "m.db", "--json"], env={"OPENAI_BASE_URL": server.url})
    found = json.loads(done.stdout)
    assert (done.exit_code, found["answer"], found["converged"]) == (0, "2 yes", True), done.stderr
    asked = server.asked[4:]  # the third step, and the judge
    assert [m["role"] for m in asked[0]["messages"]] == ["system", "user", "assistant", "user", "assistant", "user"]
    assert not any(m["content"] == "Is 차 tea?" for body in asked for m in body["messages"]) and len(asked) == 2
    assert found["usage"]["calls"] == 5 and found["run_id"] + SUFFIX not in os.listdir("logs"), "spent before counts; the journal is gone"
    again = CliRunner().invoke(main, ["run", "--resume", "last", "--db", "m.db"])
    assert again.exit_code == 1 and "no run 'last' to be resumed" in again.stderr


def test_a_run_that_met_a_limit_goes_on_with_a_larger_one(tmp_path: Path) -> None:
    first = ScriptedModel([LOOK, ASK, "yes"])
    options: dict[str, Any] = {"db_path": tmp_path / "m.db", "context": {"text": "tea"}}
    short = run("How often?", model=first, limits=RunLimits(iterations=2), **options)
    assert short["stopped"] == "iterations"
    with pytest.raises(InvalidInput, match="was given a model that no file can hold"):
        resume("last", tmp_path / "m.db")
    more = ScriptedModel([ASK, END, "{}"])  # the note that one step is left is gone, so that step is asked anew; what its code asks is not
    done = resume(short["run_id"], tmp_path / "m.db", model=more, context={"text": "tea"}, limits=RunLimits(iterations=5))
    assert (done.answer, done.converged, done["run_id"]) == ("1 yes", True, short["run_id"])
    kinds = [entry["kind"] for entry in read_log(done["log_path"])]
    assert kinds == ["start", "step", "step", "step", "end", "call", "judgment"]
    start = next(entry for entry in read_log(done["log_path"]) if entry["kind"] == "start")
    assert start["meta"]["limits"]["iterations"] == 5 and start["meta"]["run_id"] == done["run_id"]
    with pytest.raises(NotFound):
        resume("last", tmp_path / "m.db", model=more)


def test_a_run_of_another_namespace_is_not_there_to_be_resumed(tmp_path: Path) -> None:
    options: dict[str, Any] = {"context": {"text": "tea"}, "limits": RunLimits(iterations=1)}
    short = {n: run(f"What does {n} drink?", db_path=tmp_path / "m.db", namespace=n, model=ScriptedModel([LOOK]), **options)
             for n in ("ana", "ben")}
    for name in ("last", short["ben"]["run_id"]):
        with pytest.raises(NotFound) as caught:
            resume(name, tmp_path / "m.db", namespace="cleo", model=ScriptedModel([END]), **options)
        assert not any(short[n]["run_id"] in str(caught.value).replace(name, "") for n in short), "nor is it named"
    with pytest.raises(NotFound):
        resume(short["ben"]["run_id"], tmp_path / "m.db", namespace="ana", model=ScriptedModel([END]), **options)
    done = resume("last", tmp_path / "m.db", namespace="ana", model=ScriptedModel([END]), **{**options, "limits": RunLimits(iterations=3)})
    assert done["run_id"] == short["ana"]["run_id"]


def test_what_is_erased_is_not_in_a_journal_either(tmp_path: Path) -> None:
    model, limits = ScriptedModel([LOOK]), RunLimits(iterations=1)
    made = run("How often?", model=model, limits=limits, db_path=tmp_path / "m.db", context={"text": "tea"})
    assert len(os.listdir(tmp_path / "logs")) == 2 and remove_logs([made["log_path"]]) == [] and os.listdir(tmp_path / "logs") == []


def test_a_journal_keeps_no_credentials_and_survives_a_torn_line(tmp_path: Path) -> None:
    path = tmp_path / f"r-1{SUFFIX}"
    journal = CallJournal(path, {"query": "?"})
    journal.keep("a", {"text": "fine"})
    journal.keep("b", {"text": "the key is sk-proj-abcdefghijklmnopqrstuvwxyz0123456789ABCDEF"})
    with path.open("a", encoding="utf-8") as file:
        file.write('{"key": "c", "ke')
    again = CallJournal(path)
    assert (again.recall("a"), again.recall("a"), again.recall("b"), again.recall("c")) == ({"text": "fine"}, None, None, None)
    again.keep("d", {"text": "later"})
    assert CallJournal(path).recall("d") == {"text": "later"} and path.stat().st_mode & 0o077 == 0
    path.write_text('{"no": "query"}\n', encoding="utf-8")
    with pytest.raises(InvalidInput, match="no journal of a run"):
        CallJournal(path)


# ---------------------------------------------------------------- native calls

def find(name: str, limit: int = 3, deep: bool = False, kinds: list[str] | None = None) -> list[str]:
    """Find something.

    Details."""
    return [name] * limit


def call(*calls: tuple[str, str]) -> dict[str, Any]:
    return {"content": None, "tool_calls": [{"id": str(n), "type": "function", "function": {"name": name, "arguments": arguments}}
                                            for n, (name, arguments) in enumerate(calls)]}


def test_native_calls_run_as_code(chat: Callable[..., Chat]) -> None:
    server = chat([call(("find", '{"name": "a", "limit": 2}'), ("find", '{"name": "차"}')),
                   call(("repl", '{"code": "x = find(\'b\')\\nx[0]"}')),
                   call(("repl", '{"code": "harm()')), call(("FINAL", '{"value": ["b", true]}'))])
    made = rlm_run("?", OpenAIModel("x", url=server.url, native=True), tools={"find": find})
    assert made.converged and made.value == ["b", True]
    assert [s.stdout or s.value for s in made.steps[:2]] == ["['a', 'a']\n['차', '차', '차']\n", "'b'"]
    assert "cut off" in made.steps[2].note and made.steps[2].code == ""
    offered = {t["function"]["name"]: t["function"] for t in server.asked[0]["tools"]}
    assert {"repl", "find", "FINAL"} <= offered.keys() and "call the tool `repl`" in server.asked[0]["messages"][0]["content"]
    assert offered["find"] == tool_schema("find", find) == {
        "name": "find", "description": "Find something.", "parameters": {"type": "object", "required": ["name"], "properties": {
            "name": {"type": "string"}, "limit": {"type": "integer"}, "deep": {"type": "boolean"}, "kinds": {}}}}


def test_anthropics_calls_are_code_too_and_odd_calls_are_no_reply() -> None:
    blocks = [{"type": "text", "text": "I look."}, {"type": "tool_use", "id": "1", "name": "find", "input": {"name": "a"}}]
    assert anthropic_reply({"content": blocks}, Prices(), native=True).text == "I look.\n```repl\nfind(name='a')\n```"
    assert json.loads(anthropic_reply({"content": blocks}, Prices()).text) == {"name": "a"}
    fenced = called_code("", [("repl", {"code": "x = '```'\n"})])
    assert first_block(fenced).code == "x = '```'" and first_block(fenced).closed
    for odd in (("import os", {}), ("find", [1])):
        with pytest.raises(ValueError, match="none"):
            called_code("", [odd])


def test_parameters_of_requests_come_from_options(chat: Callable[..., Chat]) -> None:
    server = chat(["x"])
    OpenAIModel("x", url=server.url, options={"temperature": 0, "reasoning_effort": "low"}).complete([Message("user", "?")])
    assert server.asked[0]["temperature"] == 0 and server.asked[0]["reasoning_effort"] == "low"
