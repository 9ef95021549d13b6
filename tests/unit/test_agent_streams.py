"A model's reply, told while it is written: what a stream brings, how it ends, and that limits hold in the midst of it."
import json
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from rlm.agent import run
from rlm.agent.loop import RunLimits, rlm_run
from rlm.agent.loop.budget import Budget, BudgetExceeded
from rlm.agent.models import Completion, Message, ModelError, ScriptedModel, Usage, clients
from rlm.agent.models.clients import OpenAIModel, Prices, RetryPolicy
from rlm.core.clock import ManualClock

pytest.importorskip("httpx")
Events = Callable[[dict[str, Any]], Iterator[Any]]  # from a request to what is sent: objects for events, texts as they are
ASKED = [Message("user", "차는?")]


class StreamServer:
    "A server of our own that sends events, one after another, until its script ends or the client is gone."

    def __init__(self, events: Events, status: int = 200) -> None:
        self.asked: list[dict[str, Any]] = []
        server = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                server.asked.append(body)
                streams = body.get("stream") and status == 200
                self.send_response(status if body.get("stream") else 200)
                self.send_header("Content-Type", "text/event-stream" if streams else "application/json")
                self.end_headers()
                for event in events(body):
                    said = event if isinstance(event, str) else f"data: {json.dumps(event)}\n\n" if streams else json.dumps(event)
                    self.wfile.write(said.encode())
                    self.wfile.flush()

            def log_message(self, *_: object) -> None: ...

        self.http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.http.daemon_threads = True
        self.http.handle_error = lambda *_: None  # type: ignore[method-assign]  # a client that left is no trouble here
        threading.Thread(target=self.http.serve_forever, args=(0.01,), daemon=True).start()

    def model(self, **more: Any) -> OpenAIModel:
        patience = RetryPolicy(timeout_s=5.0, attempts=2, sleep=lambda _: None)
        return OpenAIModel("tea", url=f"http://127.0.0.1:{self.http.server_port}/v1", patience=patience, **more)


@pytest.fixture
def serve() -> Iterator[Callable[..., StreamServer]]:
    made: list[StreamServer] = []

    def start(events: Events, status: int = 200) -> StreamServer:
        made.append(StreamServer(events, status))
        return made[-1]
    yield start
    for server in made:
        server.http.shutdown()
        server.http.server_close()


def piece(text: str = "", ended: str | None = None, **more: Any) -> dict[str, Any]:
    return {"choices": [{"delta": {"content": text, **more}, "finish_reason": ended}]}


def test_pieces_are_told_as_they_come_and_make_the_reply(serve: Callable[..., StreamServer]) -> None:
    heard: list[str] = []
    first = threading.Event()

    def events(body: dict[str, Any]) -> Iterator[Any]:
        yield ": a comment, to keep the line open\n\n"
        yield piece("녹")
        assert first.wait(60)  # the rest is sent once the first piece was told
        used = {"choices": [], "usage": {"prompt_tokens": 100, "completion_tokens": 5}}
        yield from (piece("차"), piece("", "stop"), used, "data: [DONE]\n\n")
    server = serve(events)

    def tell(text: str) -> None:
        heard.append(text)
        first.set()
    reply = server.model(prices=Prices(2.0, 10.0)).complete(ASKED, max_tokens=9, stream=tell)
    assert heard == ["녹", "차"] and (reply.text, reply.truncated, reply.usage) == ("녹차", False, Usage(1, 100, 5, 0.00025))
    assert server.asked[0] | {"messages": 0} == {"model": "tea", "messages": 0, "max_tokens": 9, "stream": True,
                                                 "stream_options": {"include_usage": True}}


@pytest.mark.parametrize(("events", "truncated"), [
    ([piece("FINAL(1", "length"), "data: [DONE]\n\n"], True), ([piece("FINAL(1")], True), ([piece("FINAL(1"), "data: {nonsense\n\n"], True),
    ([piece("FINAL(1"), {"error": {"message": "overloaded"}}], True), ([piece("FINAL(1)"), "data: [DONE]\n\n"], False)])
def test_what_breaks_off_is_cut_off(serve: Callable[..., StreamServer], events: list[Any], truncated: bool) -> None:
    reply = serve(lambda _: iter(events)).model().complete(ASKED, stream=[].append)
    assert reply.truncated is truncated and reply.text.startswith("FINAL(1")


def test_a_reply_that_is_cut_off_is_never_run(serve: Callable[..., StreamServer]) -> None:
    replies = iter([[piece("```repl\nFINAL('cut')\n```")], [piece("```repl\nlen(text)\nFINAL('whole')\n```", "stop"), "data: [DONE]\n\n"]])
    found = rlm_run("How long?", serve(lambda _: iter(next(replies))).model(), data={"text": "abc"}, stream=[].append)
    assert found.answer == "whole" and found.steps[0].code == "" and "cut off" in found.steps[0].note


def test_a_stream_that_never_ends_is_left_when_the_time_is_over_and_when_it_is_too_long(
        serve: Callable[..., StreamServer], monkeypatch: pytest.MonkeyPatch) -> None:
    def drip(_: object) -> Iterator[Any]:
        while True:
            yield piece("tea ")
            time.sleep(0.01)
    heard: list[str] = []
    with pytest.raises(BudgetExceeded, match="seconds of this run are over"):
        Budget(RunLimits(seconds=2)).ask(serve(drip).model(), ASKED, stream=heard.append)
    time.sleep(0.1)
    told = len(heard)
    time.sleep(0.2)
    assert told == len(heard) > 0  # nothing is told to a run that is over
    monkeypatch.setattr(clients, "LONGEST_STREAM", 100)
    reply = serve(drip).model().complete(ASKED, stream=heard.append)
    assert reply.truncated and len(reply.text) <= 104


def test_a_reply_that_the_end_of_the_time_cut_off_is_no_reply() -> None:
    "The client may leave the stream a moment before the run that waits for it notices."
    class Late(ScriptedModel):
        def complete(self, *given: Any, **more: Any) -> Completion:
            clock.advance(seconds=60)
            return Completion("half a rep", Usage(1, 10, 5, 0.5), truncated=True)
    clock = ManualClock()
    budget = Budget(RunLimits(seconds=60), clock)
    with pytest.raises(BudgetExceeded, match="seconds of this run are over"):
        budget.ask(Late([]), ASKED)
    assert budget.usage.cost == 0.5, "it is paid for"


def test_tokens_are_estimated_where_the_server_does_not_say(serve: Callable[..., StreamServer]) -> None:
    server = serve(lambda _: iter([piece("```repl\n" + "x = 1\n" * 200 + "```", "stop"), "data: [DONE]\n\n"]))
    found = rlm_run("Count.", server.model(prices=Prices(1.0, 1.0)), limits=RunLimits(tokens=3000), stream=[].append)
    assert found.stopped == "tokens" and found.usage.completion_tokens > 300 and found.usage.cost > 0


def test_a_server_that_does_not_stream_is_asked_for_the_whole(serve: Callable[..., StreamServer]) -> None:
    whole = {"choices": [{"message": {"content": "all"}, "finish_reason": "stop"}]}
    server, heard = serve(lambda _: iter([whole]), 400), []
    model = server.model()
    assert [Budget().ask(model, ASKED, stream=heard.append).text for _ in range(2)] == ["all", "all"] == heard
    assert [bool(body.get("stream")) for body in server.asked] == [True, False, False]


def test_native_calls_come_in_pieces_too(serve: Callable[..., StreamServer]) -> None:
    def call(index: int, **function: str) -> dict[str, Any]:
        return piece(tool_calls=[{"index": index, "function": function}])
    events = [call(0, name="search_entity", arguments='{"te'), call(0, arguments='xt": "Ag"}'),
              call(1, name="FINAL", arguments='{"value": 1}'), piece("", "tool_calls"), "data: [DONE]\n\n"]
    reply = serve(lambda _: iter(events)).model(native=True).complete(ASKED, tools=[{"name": "search_entity"}], stream=[].append)
    assert "print(search_entity(text='Ag'))\nFINAL(value=1)" in reply.text and not reply.truncated
    cut = serve(lambda _: iter(events[:1])).model(native=True).complete(ASKED, tools=[{"name": "search_entity"}], stream=[].append)
    assert cut.truncated


def test_an_error_in_place_of_a_reply_is_a_sentence(serve: Callable[..., StreamServer]) -> None:
    server = serve(lambda _: iter([{"error": {"message": "The model is overloaded"}}]))
    with pytest.raises(ModelError, match="overloaded"):
        server.model().complete(ASKED, stream=[].append)
    assert len(server.asked) == 2  # such trouble may pass
    with pytest.raises(ModelError, match="before the reply began"):
        serve(lambda _: iter(())).model().complete(ASKED, stream=[].append)


def test_a_model_that_does_not_stream_tells_its_reply_at_once_and_what_a_listener_raises_ends_the_run() -> None:
    heard: list[str] = []
    lines = ["```repl\nlen(context)\n```", "```repl\nFINAL(3)\n```"]
    assert run("How long?", context="abc", model=ScriptedModel(lines), db_path=":memory:", stream=heard.append).answer == "3"
    assert heard == lines

    def leave(_: str) -> None:
        raise KeyboardInterrupt
    with pytest.raises(KeyboardInterrupt):
        run("How long?", context="abc", model=ScriptedModel(lines), db_path=":memory:", stream=leave)
