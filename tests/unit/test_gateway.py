"What a request must pass before the application sees it, tried without a server."
import asyncio
import errno
import logging
import threading
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest

from rlm.core.clock import ManualClock
from rlm.core.errors import NotFound, StoreBusy
from rlm.service.http.errors import problem_of
from rlm.service.http.middleware import (
    MAX_CALLERS,
    SECURITY_HEADERS,
    Gateway,
    GatewayConfig,
    Message,
    RateLimiter,
    Receive,
    Scope,
    Send,
)
from rlm.service.http.pool import CONNECTIONS, connection_limit
from rlm.service.http.tokens import Token, TokenFile, TokenUses

Answer = tuple[int, dict[str, str], str]


async def hello(scope: Scope, receive: Receive, send: Send) -> None:
    "An application that says who called and where, and fails when told to."
    if b"fail" in (body := (await receive())["body"]):
        raise OSError("no such file: /srv/secret")
    caller = scope.get("rlm.caller")
    who = [] if caller is None else [(b"x-who", caller.id.encode()), (b"x-where", caller.namespace.encode())]
    await send({"type": "http.response.start", "status": 200, "headers": who})
    await send({"type": "http.response.body", "body": body})


class Caller:
    "A gateway before `hello`, with a token, a clock, and a way to ask."

    def __init__(self, folder: Path, rate: float = 0.0) -> None:
        self.clock = ManualClock("2026-11-25T09:00:00Z")
        self.book, self.seconds = TokenFile(folder / "tokens", self.clock), 0.0
        secret, self.token = self.book.add(["팀", "shared"], expires=self.clock.now() + timedelta(days=1))
        self.bearer = f"Bearer {secret}"
        guest = Token("guest", "default", ("write",))
        config = GatewayConfig(self.book, guest, frozenset(), max_body=40, rate=rate, patience_s=0.05)
        self.gateway = Gateway(hello, config, now=lambda: self.seconds)

    def ask(self, path: str = "/v1/x", body: tuple[bytes, ...] = (b"{}",), twice: str = "", address: str = "127.0.0.1",
            **headers: str) -> Answer:
        "Status, headers and body of the answer; a header that is named twice is sent twice."
        sent = list[Message]()
        parts: list[Message] = [{"type": "http.request", "body": b, "more_body": n + 1 < len(body)} for n, b in enumerate(body)]

        async def receive() -> Message:
            if not parts:
                await asyncio.sleep(60)
            return parts.pop(0)

        async def send(message: Message) -> None:
            sent.append(message)
        named = {"host": "localhost:8377", "content-type": "application/json"} | {k.replace("_", "-"): v for k, v in headers.items()}
        sent_headers = [(k.encode(), v.encode()) for k, v in named.items() for _ in range(1 + (k == twice))]
        scope: Scope = {"type": "http", "method": "POST", "path": path, "raw_path": path.encode(), "query_string": b"",
                        "headers": sent_headers, "client": (address, 1)}
        asyncio.run(self.gateway(scope, receive, send))
        return sent[0]["status"], {k.decode(): v.decode() for k, v in sent[0]["headers"]}, sent[1]["body"].decode()


@pytest.fixture
def make(tmp_path: Path) -> Callable[..., Caller]:
    return lambda **more: Caller(tmp_path, **more)


def test_a_caller_with_a_token_is_let_in(make: Callable[..., Caller]) -> None:
    caller = make()
    assert caller.ask(authorization=caller.bearer) == (200, {"x-who": caller.token.id, "x-where": "팀", **SECURITY_HEADERS}, "{}")
    assert caller.ask(authorization=caller.bearer, host="[::1]:8377", origin="http://[::1]:8377")[0] == 200


@pytest.mark.parametrize(("status", "headers"), [
    (401, {"authorization": ""}), (401, {"authorization": "Bearer x"}), (401, {"authorization": "Basic x"}),
    (421, {"host": "evil.example"}), (403, {"origin": "http://evil.example"}), (403, {"rlm_namespace": "default"}),
    (413, {"content_length": "41"}), (415, {"content_type": "text/plain"})])
def test_whoever_breaks_a_rule_is_refused(make: Callable[..., Caller], status: int, headers: dict[str, str]) -> None:
    caller = make()
    assert caller.ask(**{"authorization": caller.bearer} | headers)[0] == status


def test_a_body_that_is_too_large_or_too_slow_is_refused(make: Callable[..., Caller]) -> None:
    caller = make()
    assert caller.ask(authorization=caller.bearer, body=(b"x" * 30, b"x" * 30))[0] == 413
    assert caller.ask(authorization=caller.bearer, body=())[0] == 408
    assert caller.ask(authorization=caller.bearer, path="/" + "x" * 9000)[0] == 414


def test_an_error_inside_is_told_to_the_log_alone(make: Callable[..., Caller], caplog: pytest.LogCaptureFixture) -> None:
    caller = make()
    with caplog.at_level(logging.ERROR, "rlm.serve"):
        status, _, text = caller.ask(authorization=caller.bearer, body=(b"fail",))
    assert status == 500 and "secret" not in text and "/srv/secret" in caplog.text


def test_a_caller_waits_when_it_calls_too_often(make: Callable[..., Caller]) -> None:
    caller = make(rate=1)
    statuses = [caller.ask(authorization=caller.bearer)[0] for _ in range(11)]
    status, headers, _ = caller.ask(authorization=caller.bearer)
    assert statuses == [200] * 10 + [429] and (status, headers["retry-after"]) == (429, "1")
    caller.seconds += 1.0
    assert caller.ask(authorization=caller.bearer)[0] == 200
    caller.book.revoke(caller.token.id)
    assert caller.ask(authorization=caller.bearer)[0] == 401


def test_a_bucket_holds_ten_seconds_of_requests() -> None:
    seconds = [0.0]
    limiter = RateLimiter(2, lambda: seconds[0])
    assert [limiter.wait("a") for _ in range(20)] == [0.0] * 20 and limiter.wait("a") == 0.5 and limiter.wait("b") == 0
    seconds[0] = 0.5
    assert limiter.wait("a") == 0 and limiter.wait("a") == 0.5 and RateLimiter(0).wait("a") == 0


def test_what_an_error_is_answered_with() -> None:
    assert problem_of(NotFound("There is no memory 'x'.")).status == 404
    busy = problem_of(StoreBusy("The store '/home/user/memory.db' is being written by another process."))
    assert (busy.status, busy.headers) == (503, {"Retry-After": "1"}) and b"/home" not in busy.body()
    assert problem_of(OSError(errno.EMFILE, "Too many open files")).status == 503
    assert problem_of(OSError(errno.EACCES, "No")).status == 500


@pytest.mark.parametrize(("files", "callers"), [(None, CONNECTIONS), (100_000, CONNECTIONS), (1024, 512), (256, 27), (0, 8)])
def test_connections_fit_the_files_of_the_process(files: int | None, callers: int) -> None:
    assert connection_limit(files) == callers


def test_a_token_is_used_in_the_namespace_that_the_request_names(make: Callable[..., Caller]) -> None:
    caller = make()
    assert caller.ask(authorization=caller.bearer, rlm_namespace="shared")[1]["x-where"] == "shared"
    assert caller.ask(authorization=caller.bearer)[1]["x-where"] == "팀"


def test_an_expired_token_is_refused(make: Callable[..., Caller]) -> None:
    caller = make()
    caller.clock.advance(days=1)
    status, _, text = caller.ask(authorization=caller.bearer)
    assert status == 401 and "expired" in text


def test_a_token_that_is_made_later_is_needed_from_then_on(tmp_path: Path) -> None:
    book, guest = TokenFile(tmp_path / "later"), Token("guest", "default", ("write",))
    caller = Caller(tmp_path)
    caller.gateway = Gateway(hello, GatewayConfig(book, guest, frozenset()))
    assert caller.ask()[1]["x-who"] == "guest"
    secret, made = TokenFile(book.path).add("default")
    assert caller.ask()[0] == 401 and caller.ask(authorization=f"Bearer {secret}")[1]["x-who"] == made.id


def test_whoever_guesses_tokens_waits_and_others_do_not(make: Callable[..., Caller]) -> None:
    caller = make(rate=1)
    guesses = [caller.ask(authorization=f"Bearer {n}")[0] for n in range(12)]
    assert guesses == [401] * 10 + [429] * 2
    assert caller.ask(authorization="Bearer x", address="10.0.0.1")[0] == 401
    assert caller.ask(authorization=caller.bearer)[0] == 200, "whoever has a token is not held up by others at the same address"


def test_what_needs_no_token_is_limited_by_address(make: Callable[..., Caller]) -> None:
    caller = make(rate=1)
    assert [caller.ask("/health")[0] for _ in range(12)] == [200] * 10 + [429] * 2
    assert caller.ask("/health", address="10.0.0.1")[0] == 200 and caller.ask(authorization=caller.bearer)[0] == 200


@pytest.mark.parametrize("twice", ["authorization", "host", "content-type", "rlm-namespace", "content-length"])
def test_a_header_that_is_there_twice_is_refused(make: Callable[..., Caller], twice: str) -> None:
    caller = make()
    status, headers, text = caller.ask(authorization=caller.bearer, rlm_namespace="shared", content_length="2", twice=twice)
    assert (status, headers["connection"]) == (400, "close") and twice in text


def test_a_body_whose_length_is_given_in_two_ways_is_refused(make: Callable[..., Caller]) -> None:
    caller = make()
    assert caller.ask(authorization=caller.bearer, content_length="2", transfer_encoding="chunked")[0] == 400


def test_the_use_of_a_token_is_noted(make: Callable[..., Caller]) -> None:
    caller = make()
    caller.ask(authorization="Bearer x")
    assert TokenUses(caller.book.path).read() == {}
    caller.ask(authorization=caller.bearer)
    for thread in threading.enumerate():
        if thread.name == "rlm-token-uses":
            thread.join(60)
    assert TokenUses(caller.book.path).read() == {caller.token.id: caller.clock.now()}


def test_callers_that_are_gone_are_forgotten() -> None:
    seconds = [0.0]
    limiter = RateLimiter(1, lambda: seconds[0])
    for n in range(MAX_CALLERS + 1):
        limiter.wait(f"caller {n}")
    seconds[0] = 1.0
    for _ in range(3):
        limiter.wait("one")
    assert len(limiter._left) == 1, "no public name tells how many are kept"


def test_who_shows_wrong_tokens_too_often_waits(make: Callable[..., Caller], monkeypatch: pytest.MonkeyPatch) -> None:
    waited = list[float]()

    async def sleep(seconds: float) -> None:
        waited.append(seconds)
    caller = make()
    monkeypatch.setattr(asyncio, "sleep", sleep)
    assert {caller.ask(authorization="Bearer x")[0] for _ in range(60)} == {401} and waited == [1.0] * 10
    assert caller.ask(authorization=caller.bearer)[0] == 200 and caller.ask(authorization="Bearer x", address="::1")[0] == 401
    assert len(waited) == 10, "another address, and a good token, do not wait"
    caller.gateway.wrong._waiting = 100  # as many as may wait
    assert caller.ask(authorization="Bearer x")[1]["connection"] == "close" and len(waited) == 10


def test_a_large_body_is_not_read_when_its_request_is_refused(make: Callable[..., Caller]) -> None:
    caller = make()
    assert caller.ask(content_length="39")[1].get("connection") is None
    assert caller.ask(content_length="70000")[1]["connection"] == "close" == caller.ask(transfer_encoding="chunked")[1]["connection"]
