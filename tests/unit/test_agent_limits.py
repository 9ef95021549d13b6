"Limits of a run hold while a tool runs, a request is repeated and a child works; what can't be checked, or is cut off, is refused."
import json
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from rlm.agent import RunLimits, ScriptedModel, Trajectory, load_trajectory, rlm_run
from rlm.agent.learning.extraction import SCHEMA as TAUGHT
from rlm.agent.learning.judge import SCHEMA as JUDGED
from rlm.agent.loop.budget import Budget
from rlm.agent.models.base import Completion, Message, Model, ModelError, Usage
from rlm.agent.models.clients import AnthropicModel, OpenAIModel, Prices, RetryPolicy
from rlm.agent.tracing.trajectory import RLMLogger
from rlm.core.errors import InvalidInput
from rlm.service.cli.agent import main, read_budget

pytest.importorskip("pydantic_monty")
pytest.importorskip("httpx")
LONG = 30.0  # seconds that a tool or a server would take: a run that waits for it is told from one that does not, however busy the machine


def block(code: str) -> str:
    return f"I look.\n```repl\n{code}\n```"


class Slow:
    "A thing whose method takes long."

    EXPOSED = ("wait",)

    def wait(self) -> str:
        "Wait."
        return nap()


def nap() -> str:
    "Sleep."
    time.sleep(LONG)
    return "slept"


def took(run: Callable[[], Trajectory]) -> tuple[Trajectory, float]:
    begun = time.monotonic()
    return run(), time.monotonic() - begun


@pytest.mark.parametrize("code", [
    "nap()\nFINAL(1)", "slow.wait()\nFINAL(1)", "while True: pass",
    "while True:\n    try:\n        nap()\n    except Exception:\n        pass",
    "try:\n    nap()\nexcept Exception:\n    pass\nwhile True: pass"])
def test_time_is_over_while_a_step_runs(code: str) -> None:
    limits, model = RunLimits(seconds=1, step_seconds=60), ScriptedModel([block(code)] * 3)
    made, seconds = took(lambda: rlm_run("?", model, tools={"nap": nap}, handles={"slow": Slow()}, limits=limits))
    assert (made.stopped, made.converged, made.iterations) == ("time", False, 1) and "1 seconds of this run are over" in made.reason
    assert seconds < LONG / 2


@pytest.mark.parametrize("kind", ["process", "inprocess"])
def test_time_is_over_in_each_sandbox(kind: str) -> None:
    if kind == "process":
        pytest.importorskip("rlm.agent.sandbox.process")
        import shutil
        if not shutil.which("bwrap"):
            pytest.skip("bubblewrap is not installed")
    limits = RunLimits(seconds=1.5, step_seconds=60)
    code = "try:\n    nap()\nexcept Exception:\n    pass\nwhile True: pass"
    made, seconds = took(lambda: rlm_run("?", ScriptedModel([block(code)] * 3), tools={"nap": nap}, sandbox=kind, limits=limits))
    assert made.stopped == "time" and seconds < LONG / 2


def test_time_is_over_while_a_child_works() -> None:
    model = ScriptedModel([block("rlm_query('inner?')\nFINAL(1)"), block("nap()")])
    made, seconds = took(lambda: rlm_run("?", model, tools={"nap": nap}, submodel=model, limits=RunLimits(seconds=1, step_seconds=60)))
    assert made.stopped == "time" and seconds < LONG / 2


def test_time_is_over_while_a_model_thinks() -> None:
    def think(_: Any) -> str:
        return nap()
    made, seconds = took(lambda: rlm_run("?", ScriptedModel([block("1"), think]), limits=RunLimits(seconds=1)))
    assert made.stopped == "time" and made.iterations == 1 and seconds < LONG / 2


class Server:
    "A server of models that says one thing, and counts how often it was asked."

    def __init__(self, status: int, body: dict[str, Any], headers: dict[str, str] | None = None) -> None:
        self.asked: list[dict[str, Any]] = []
        server = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                server.asked.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
                data = json.dumps(body).encode()
                self.send_response(status)
                for name, value in {**(headers or {}), "Content-Length": str(len(data))}.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, *_: object) -> None:
                pass
        self.http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.http.serve_forever, args=(0.01,), daemon=True).start()
        self.url = f"http://127.0.0.1:{self.http.server_port}/v1"


@pytest.fixture
def serve() -> Iterator[Callable[..., Server]]:
    there: list[Server] = []

    def make(*given: Any) -> Server:
        there.append(Server(*given))
        return there[-1]
    yield make
    for one in there:
        one.http.shutdown()
        one.http.server_close()


def chat(text: str, **beside: str) -> dict[str, Any]:
    return {"choices": [{"message": {"content": text}, **beside}], "usage": {"prompt_tokens": 10, "completion_tokens": 5}}


def test_a_request_is_not_repeated_beyond_the_time(serve: Callable[..., Server]) -> None:
    busy = serve(503, {"error": "busy"}, {"Retry-After": "20"})
    model = OpenAIModel("tea", url=busy.url, patience=RetryPolicy(attempts=50))
    made, seconds = took(lambda: rlm_run("?", model, limits=RunLimits(seconds=3)))
    assert made.stopped == "time" and not made.converged and seconds < 15
    time.sleep(0.2)
    assert len(busy.asked) == 1, "what nobody waits for asks no more"


# ---------------------------------------------------------------- money

def test_a_limit_of_cost_without_prices_is_refused(serve: Callable[..., Server]) -> None:
    server = serve(200, chat(block("FINAL(1)")))
    unknown, free, dear = (OpenAIModel("tea", url=server.url, prices=p) for p in (None, Prices(), Prices(1e9, 1e9)))
    options: dict[str, Any] = {"tools": {"look": len}, "limits": RunLimits(cost=0.5, iterations=1)}
    for model, submodel in ((unknown, None), (ScriptedModel(["x"]), unknown)):
        with pytest.raises(InvalidInput, match=r"prices of 'openai:tea' are not known.*model_prices"):
            rlm_run("?", model, submodel=submodel, **options)
    assert server.asked == []
    assert rlm_run("?", free, **options).stopped == "iterations"
    assert rlm_run("?", dear, **{**options, "limits": RunLimits(cost=0.5)}).stopped == "cost"
    assert rlm_run("?", unknown, **{**options, "limits": RunLimits(tokens=100_000, iterations=1)}).stopped == "iterations"


def test_the_command_refuses_it_too(serve: Callable[..., Server], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    server = serve(200, chat(block("FINAL(1)")))
    monkeypatch.chdir(tmp_path)
    line = ["run", "--ontology", "prov", "--query", "x", "--db", "m.db", "--model", "openai:tea", "--budget", "0.50"]
    done = CliRunner().invoke(main, line, env={"OPENAI_BASE_URL": server.url})
    assert done.exit_code == 1 and "can't be kept" in done.stderr and server.asked == []
    done = CliRunner().invoke(main, [*line, "--json"], env={"OPENAI_BASE_URL": server.url})
    assert done.exit_code == 1 and "can't be kept" in done.output and server.asked == []
    done = CliRunner().invoke(main, [*line, "--max-iterations", "1"], env={"OPENAI_BASE_URL": server.url, "RLM_MODEL_PRICES": "0/0"})
    assert done.exit_code == 3 and len(server.asked) == 1


# ---------------------------------------------------------------- what is cut off

def spoilt(done: list[str]) -> Callable[[str], str]:
    def spoil(word: str) -> str:
        "Do harm."
        done.append(word)
        return word
    return spoil


@pytest.mark.parametrize("reply", [
    Completion(block("spoil('all')"), truncated=True), "I look.\n```repl\nspoil('all')\n", "```python\nspoil('all')\nfor x in",
    Completion("```repl\nspoil('all')", truncated=True), "~~~repl\nspoil('all')\n```"])
def test_a_reply_that_is_cut_off_is_never_run(reply: str | Completion) -> None:
    harm, model = list[str](), ScriptedModel([reply, block("spoil('one')\nFINAL(1)")])
    made = rlm_run("?", model, tools={"spoil": spoilt(harm)})
    assert harm == ["one"] and made.iterations == 2 and made.steps[0].code == "" and "cut off" in made.steps[0].note
    assert "cut off" in model.seen[1][-1].content


def test_replies_that_are_always_cut_off_end_the_run() -> None:
    made = rlm_run("?", ScriptedModel([Completion("x", truncated=True)] * 9), limits=RunLimits(errors=3))
    assert (made.stopped, made.iterations) == ("errors", 3)


def test_a_server_says_that_it_was_cut_off(serve: Callable[..., Server]) -> None:
    for reason, cut in (("length", True), ("stop", False)):
        assert OpenAIModel("tea", url=serve(200, chat("x", finish_reason=reason)).url).complete([Message("user", "?")]).truncated is cut
    for reason, cut in (("max_tokens", True), ("end_turn", False)):
        answer = {"content": [{"type": "text", "text": "x"}], "stop_reason": reason, "usage": {}}
        model = AnthropicModel("tea", url=serve(200, answer).url)
        assert model.complete([Message("user", "?")]).truncated is cut


# ---------------------------------------------------------------- why it ended

class Dying:
    "A model whose server goes away after the first reply."

    name = "dying"

    def __init__(self) -> None:
        self.replies = [block("1")]

    def complete(self, messages: Any, *, schema: Any = None, max_tokens: int | None = None) -> Completion:
        if self.replies:
            return Completion(self.replies.pop(), Usage(1))
        raise ModelError("The model server went away.")


def test_a_model_that_dies_in_the_midst_says_why(tmp_path: Path) -> None:
    model: Model = Dying()
    logger = RLMLogger(tmp_path)
    made = rlm_run("?", model, logger=logger)
    logger.close()
    assert (made.stopped, made.reason) == ("failed", "The model server went away.")
    assert "stopped by failed: The model server" in made.verdict
    assert load_trajectory(logger.path) == made and made.as_dict()["reason"] == made.reason


def test_the_command_says_why_it_stopped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "idle.txt").write_text("```repl\n1\n```\n---\n```repl\n2\n```\n", encoding="utf-8")
    line = ["run", "--ontology", "prov", "--query", "x", "--db", "m.db", "--model", "scripted:idle.txt"]
    done = CliRunner().invoke(main, [*line, "--max-iterations", "2"])
    assert done.exit_code == 3 and "(stopped by iterations: The 2 iterations of this run are used) after 2 steps, log: " in done.stderr
    found = json.loads(CliRunner().invoke(main, [*line, "--json"]).stdout)
    assert found["stopped"] == "failed" and "at its end after 2 replies" in found["reason"]


# ---------------------------------------------------------------- structured output

def strict(schema: Any) -> bool:
    "Whether OpenAI's strict mode takes a schema: every key required, nothing beside them, no sizes."
    if schema.get("type") == "object":
        return (schema["additionalProperties"] is False and set(schema["required"]) == set(schema["properties"])
                and all(map(strict, schema["properties"].values())))
    allowed = {"type", "enum", "items"}
    return "type" in schema and set(schema) <= allowed and ("items" not in schema or strict(schema["items"]))


def test_schemas_fit_the_strict_mode() -> None:
    assert strict(TAUGHT) and strict(JUDGED) and not strict({"type": "string", "maxLength": 3})


def test_a_refused_schema_does_not_end_structured_output(serve: Callable[..., Server]) -> None:
    server = serve(200, chat("x"))
    model = OpenAIModel("tea", url=server.url)
    model._refused.add(json.dumps({"odd": 1}, sort_keys=True))  # as after an answer with status 400: no public name tells
    for schema in ({"odd": 1}, {"fine": 1}):
        model.complete([Message("user", "?")], schema=schema)
    assert ["response_format" in asked for asked in server.asked] == [False, True]


def test_a_question_that_is_late_is_paid_by_nobody() -> None:
    budget = Budget(RunLimits(seconds=1000, tokens=1000))
    assert budget.ask(ScriptedModel(["x"]), [Message("user", "?")]).text == "x" and budget.usage.calls == 1


def test_a_budget_is_read_as_dollars_tokens_and_seconds() -> None:
    assert read_budget(("0.50", "20_000t", "60s"), 5) == RunLimits(iterations=5, cost=0.5, tokens=20_000, seconds=60.0)


@pytest.mark.parametrize("wrong", ["much", "0.5t", "-1", "nan"])
def test_a_budget_that_is_none_is_refused(wrong: str) -> None:
    with pytest.raises(InvalidInput):
        read_budget((wrong,), None)


def test_what_is_left_bounds_a_reply_and_a_prompt_that_is_too_dear_is_not_sent(serve: Callable[..., Server]) -> None:
    server = serve(200, chat(block("1")))
    model = OpenAIModel("tea", url=server.url, prices=Prices(10, 100))
    rlm_run("?", model, limits=RunLimits(cost=0.05, iterations=1))
    [asked] = server.asked
    assert 100 < asked["max_tokens"] < 500, "0.05 dollars are 500 written tokens, less what the prompt costs"
    rlm_run("?", model, limits=RunLimits(tokens=1_000_000, iterations=1))
    assert server.asked[1]["max_tokens"] == 8_192, "servers refuse to be asked for more than a model can write"
    assert rlm_run("?", model, limits=RunLimits(cost=0.001)).stopped == "cost" and len(server.asked) == 2
