"Clients of model servers, against a server on this machine: what they send, what they make of answers, what they say of refusals."
import json
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from email.utils import formatdate
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from rlm.agent.loop.budget import Budget, BudgetExceeded, RunLimits
from rlm.agent.models import Message, Model, ModelError, ScriptedModel, Usage, open_model
from rlm.agent.models.clients import AnthropicModel, OpenAIModel, Prices, RetryPolicy, read_prices
from rlm.core.clock import ManualClock
from rlm.core.errors import InvalidInput
from rlm.core.retry import retry_delay
from rlm.core.settings import CASE_BASED, load_settings

pytest.importorskip("httpx")
Answer = tuple[int, Any, dict[str, str]]  # status, body (JSON or bytes), headers
SCHEMA = {"type": "object", "properties": {"success": {"type": "boolean"}}}


class Stand:
    "A server that answers as it is told and writes down what it was asked."

    def __init__(self) -> None:
        self.asked: list[tuple[str, dict[str, str], dict[str, Any]]] = []
        self.answers: list[Answer | Callable[[dict[str, Any]], Answer]] = []
        stand = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                stand.asked.append((self.path, {k.lower(): v for k, v in self.headers.items()}, body))
                said = stand.answers.pop(0) if len(stand.answers) > 1 else stand.answers[0]
                status, answer, headers = said(body) if callable(said) else said
                data = answer if isinstance(answer, bytes) else json.dumps(answer).encode()
                self.send_response(status)
                for name, value in {**headers, "Content-Length": str(len(data))}.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, *_: object) -> None: ...

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.handle_error = lambda *_: None  # type: ignore[method-assign]  # a client that left is no trouble here
        self.url = f"http://127.0.0.1:{self.server.server_port}/v1"
        self.thread = threading.Thread(target=self.server.serve_forever, args=(0.01,), daemon=True)
        self.thread.start()

    def close(self) -> None:
        self.server.shutdown()
        self.server.server_close()
        self.thread.join()


@pytest.fixture
def stand() -> Iterator[Stand]:
    made = Stand()
    yield made
    made.close()


def chat(text: Any, read: int = 10, written: int = 2) -> Answer:
    return 200, {"choices": [{"message": {"content": text}}], "usage": {"prompt_tokens": read, "completion_tokens": written}}, {}


WAITS: list[float] = []
QUICK = RetryPolicy(timeout_s=5.0, sleep=WAITS.append)


def openai(stand: Stand, **more: Any) -> OpenAIModel:
    return OpenAIModel("tea", url=stand.url, patience=QUICK, **more)


def anthropic(stand: Stand, **more: Any) -> AnthropicModel:
    return AnthropicModel("tea", url=stand.url, patience=QUICK, **more)


MESSAGES = [Message("system", "Be brief."), Message("user", "차는?"), Message("assistant", "녹차"), Message("user", "Sure?")]


def test_openai_is_sent_the_conversation_and_the_key(stand: Stand) -> None:
    stand.answers = [chat("응", 100, 5)]
    model = openai(stand, key="sk-1", prices=Prices(2.0, 10.0))
    reply = model.complete(MESSAGES, max_tokens=7)
    path, headers, body = stand.asked[0]
    assert isinstance(model, Model) and (path, headers["authorization"]) == ("/v1/chat/completions", "Bearer sk-1")
    assert [m["role"] for m in body["messages"]] == ["system", "user", "assistant", "user"] and body["max_tokens"] == 7
    assert reply.text == "응" and reply.usage == Usage(1, 100, 5, 0.00025)


def test_a_local_server_needs_no_key(stand: Stand) -> None:
    stand.answers = [chat("hi")]
    openai(stand).complete(MESSAGES)
    assert "authorization" not in stand.asked[0][1]


def test_anthropic_is_sent_the_system_by_itself(stand: Stand) -> None:
    stand.answers = [(200, {"content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}],
                            "usage": {"input_tokens": 3, "cache_read_input_tokens": 4, "output_tokens": 1}}, {})]
    reply = anthropic(stand, key="k").complete(MESSAGES)
    path, headers, body = stand.asked[0]
    assert (path, headers["x-api-key"], body["system"][0]["text"], body["max_tokens"]) == ("/v1/messages", "k", "Be brief.", 8192)
    assert [m["role"] for m in body["messages"]] == ["user", "assistant", "user"] and "anthropic-version" in headers
    assert reply.text == "ab" and reply.usage == Usage(1, 7, 1, 0, 4)


def test_a_schema_is_sent_where_it_is_known(stand: Stand) -> None:
    stand.answers = [chat('{"success": true}')]
    assert json.loads(openai(stand).complete(MESSAGES, schema=SCHEMA).text) == {"success": True}
    assert stand.asked[0][2]["response_format"]["json_schema"]["schema"] == SCHEMA


def test_a_server_that_knows_no_schemas_is_asked_without_from_then_on(stand: Stand) -> None:
    stand.answers = [lambda body: (400, {"error": "unknown field"}, {}) if "response_format" in body else chat("{}")]
    model = openai(stand)
    assert [model.complete(MESSAGES, schema=SCHEMA).text for _ in range(3)] == ["{}"] * 3
    assert ["response_format" in body for _, _, body in stand.asked] == [True, False, False, False]


def test_a_request_that_is_bad_in_itself_is_not_blamed_on_the_schema(stand: Stand) -> None:
    stand.answers = [(400, {"error": {"message": "context too long"}}, {})]
    model = openai(stand)
    with pytest.raises(ModelError, match="context too long"):
        model.complete(MESSAGES, schema=SCHEMA)
    stand.answers = [chat("{}")]
    model.complete(MESSAGES, schema=SCHEMA)
    assert "response_format" in stand.asked[-1][2]


def test_anthropic_answers_a_schema_by_a_tool(stand: Stand) -> None:
    blocks = [{"type": "text", "text": "so:"}, {"type": "tool_use", "name": "reply", "input": {"tea": "녹차"}}]
    stand.answers = [(200, {"content": blocks, "usage": {}}, {})]
    assert json.loads(anthropic(stand).complete(MESSAGES, schema=SCHEMA).text) == {"tea": "녹차"}
    assert stand.asked[0][2]["tool_choice"] == {"type": "tool", "name": "reply"} and stand.asked[0][2]["tools"][0]["input_schema"] == SCHEMA


@pytest.mark.parametrize("status", [408, 429, 500, 503, 529])
def test_what_may_pass_is_tried_again(stand: Stand, status: int) -> None:
    WAITS.clear()
    stand.answers = [(status, {}, {"Retry-After": "7"}), (status, {}, {}), chat("at last")]
    assert openai(stand).complete(MESSAGES).text == "at last"
    assert WAITS[0] == 7 and 0.75 <= WAITS[1] <= 1.25


def test_a_server_says_how_long_to_wait_in_seconds_or_by_a_date() -> None:
    date = formatdate(time.time() + 100, usegmt=True)
    assert (retry_delay(0, "2.5"), retry_delay(0, "9999"), retry_delay(3, "-1")) == (2.5, 300, 0) and 60 < retry_delay(0, date) <= 100
    assert all(0.3 < retry_delay(0, odd) < 0.7 for odd in (None, "", "soon", "nan"))


def test_tokens_from_the_cache_cost_what_they_cost(stand: Stand) -> None:
    used = {"prompt_tokens": 1_000_000, "completion_tokens": 0, "prompt_tokens_details": {"cached_tokens": 900_000}}
    stand.answers = [(200, {"choices": [{"message": {"content": "x"}}], "usage": used}, {})]
    prices = read_prices("tea=1/8/0.1;*=5/5", "tea")
    reply = OpenAIModel("tea", url=stand.url, prices=prices).complete(MESSAGES)
    assert reply.usage == Usage(1, 1_000_000, 0, pytest.approx(0.19), 900_000) and read_prices("tea=1/8", "coffee") is None
    used = {"input_tokens": 100_000, "cache_read_input_tokens": 900_000, "cache_creation_input_tokens": 400_000, "output_tokens": 0}
    stand.answers = [(200, {"content": [{"type": "text", "text": "x"}], "usage": used}, {})]
    reply = AnthropicModel("tea", url=stand.url, key="k", prices=prices).complete(MESSAGES)
    assert reply.usage == Usage(1, 1_400_000, 0, pytest.approx(0.1 + 0.09 + 0.5), 900_000)
    body = stand.asked[-1][2]
    assert body["messages"][-1]["content"][0]["cache_control"] == body["system"][0]["cache_control"] == {"type": "ephemeral"}


@pytest.mark.parametrize(("answer", "said"), [
    ((401, {"error": {"message": "bad key sk-secret"}}, {}), r"refused the key \(status 401\): bad key \*\*\*"),
    ((404, {"error": {"message": "no such model"}}, {}), "knows no 'openai:tea'"),
    ((400, {"detail": "nonsense"}, {}), "status 400"),
    ((429, {"error": {"message": "quota"}}, {}), "status 429, in 4 attempts"),
    ((200, b"<html>hello</html>", {}), "answer that is none: <html>hello</html>"),
    ((200, {"choices": []}, {}), "answer that is none"),
    ((200, {"choices": [{"message": {"content": None}}]}, {}), "answer that is none"),
    ((200, [1, 2], {}), "answer that is none"),
    ((200, b"[" * 100_000, {}), "answer that is none"),
    ((200, {"choices": [{"message": {"content": "x"}}], "usage": {"prompt_tokens": "many"}}, {}), "answer that is none"),
])
def test_what_will_not_pass_is_one_sentence_with_a_remedy(stand: Stand, answer: Answer, said: str) -> None:
    stand.answers = [answer]
    with pytest.raises(ModelError, match=said) as error:
        openai(stand, key="sk-secret").complete(MESSAGES)
    assert error.value.hint and "sk-secret" not in str(error.value) and "\n" not in str(error.value) and len(str(error.value)) < 600
    assert len(stand.asked) == (4 if answer[0] == 429 else 1)


@pytest.mark.parametrize("answer", [{"content": []}, {"content": [{"type": "image"}]}, {}, [], "x", {"content": [{"text": "no type"}]}])
def test_an_odd_answer_of_anthropics_is_an_error(stand: Stand, answer: Any) -> None:
    stand.answers = [(200, answer, {})]
    with pytest.raises(ModelError, match="answer that is none"):
        anthropic(stand).complete(MESSAGES)


def test_nobody_there() -> None:
    gone = Stand()
    gone.close()
    with pytest.raises(ModelError, match=r"can't be reached, in 4 attempts") as error:
        openai(gone).complete(MESSAGES)
    assert "running" in error.value.hint


def test_a_server_that_is_silent_is_left(stand: Stand) -> None:
    done = threading.Event()
    stand.answers = [lambda _: (done.wait(5), chat("late"))[1]]
    try:
        with pytest.raises(ModelError, match="did not answer in time, in 1 attempts"):
            OpenAIModel("tea", url=stand.url, patience=RetryPolicy(timeout_s=0.2, attempts=1)).complete(MESSAGES)
    finally:
        done.set()


@pytest.mark.parametrize(("name", "error", "said"), [
    ("openai:gpt", ModelError, "OPENAI_API_KEY"), ("anthropic:claude", ModelError, "ANTHROPIC_API_KEY"),
    ("gpt", InvalidInput, "openai:NAME"),
    ("case-based:x", InvalidInput, "no model 'case-based:x'"), ("openai:", ModelError, "key"), ("", InvalidInput, "")])
def test_a_model_that_can_not_be_opened(name: str, error: type[Exception], said: str) -> None:
    settings = load_settings(environment={})
    if not name:
        assert open_model(name, settings).name == "case-based"
        return
    with pytest.raises(error, match=said):
        open_model(name, settings)


def test_the_earlier_name_of_the_case_based_model_opens_it() -> None:
    settings = load_settings(environment={"RLM_MODEL": "habit"})  # a settings file of an earlier edition
    assert settings.model in CASE_BASED and open_model(None, settings).name == open_model("habit", settings).name == "case-based"


def test_a_key_that_is_no_key_is_told_without_it() -> None:
    with pytest.raises(ModelError, match="can't be sent") as error:
        OpenAIModel("tea", url="http://127.0.0.1:1/v1", key="열쇠")
    assert "열쇠" not in str(error.value)


def test_models_are_opened_from_settings(stand: Stand) -> None:
    stand.answers = [chat("ok", 1_000_000, 1_000_000)]
    settings = load_settings(environment={"OPENAI_BASE_URL": stand.url, "RLM_MODEL": "openai:local", "RLM_MODEL_PRICES": "1/3"})
    assert open_model(settings=settings).complete(MESSAGES).usage.cost == 4.0
    assert stand.asked[0][2]["model"] == "local"


def test_one_purse_for_many_threads(stand: Stand) -> None:
    stand.answers = [chat("x", 90, 10)]
    budget, model = Budget(RunLimits(tokens=1000), ManualClock()), openai(stand)

    def ask(_: int) -> str:
        try:
            return budget.ask(model, [Message("user", "y" * 360)]).text
        except BudgetExceeded as e:
            return e.reason
    with ThreadPoolExecutor(8) as pool:
        said = list(pool.map(ask, range(40)))
    assert budget.usage.tokens <= 1000 and said.count("x") == budget.usage.calls >= 8 and said.count("tokens") == 40 - said.count("x")


def test_a_question_that_fails_gives_its_promise_back() -> None:
    budget = Budget(RunLimits(tokens=100), ManualClock())
    for _ in range(3):
        with pytest.raises(ModelError):
            budget.ask(ScriptedModel([]), [Message("user", "x" * 200)])
    assert budget.ask(ScriptedModel(["ok"]), [Message("user", "x" * 200)]).text == "ok" and budget.usage.calls == 1
