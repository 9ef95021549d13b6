"""What a request must pass before the application sees it: host, token, rate, size.

Nothing is parsed for a caller who may not come in. A page from anywhere can make a browser send requests to
`127.0.0.1`; two checks stop it. The `Host` header must be a name that this server goes by, else a foreign domain that
was pointed at this machine ("DNS rebinding") would count as the page's own server; and where a browser says which
page a request comes from (`Origin`), it must be ours. A form on a foreign page can send no JSON without asking first,
and that question is never answered here. Beyond loopback the token alone decides.

The body is read whole, whether its length was announced or it comes in chunks, and is handed on only when it is
complete and not too large.
"""

import asyncio
import ipaddress
import math
import time
from collections.abc import Awaitable, Callable, Collection, Iterable, MutableMapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Annotated, Any
from urllib.parse import unquote, urlsplit

from typing_extensions import Doc

from rlm.core.settings import Settings

from .errors import HttpProblem, log_problem
from .tokens import Token, TokenFile, TokenUses

Scope = Annotated[MutableMapping[str, Any], Doc("connection scope of ASGI; of a guarded application with its caller")]
Message = Annotated[MutableMapping[str, Any], Doc("message of ASGI")]
Receive = Annotated[Callable[[], Awaitable[Message]], Doc("source of the body")]
Send = Annotated[Callable[[Message], Awaitable[None]], Doc("sink of the answer")]
App = Annotated[Callable[[Scope, Receive, Send], Awaitable[None]], Doc("application of ASGI")]

BODY_METHODS = ("POST", "PUT", "PATCH")  # methods of requests that bring a body
BULK_PATH, BODILESS_PATH = ":bulk", ("/restore", "/undo")  # ends of paths: of bodies with an object a line, and of requests without a body
PATIENCE_S = 30.0  # seconds that a caller may let the server wait
SINGLE_HEADERS = (b"authorization", b"content-length", b"content-type", b"host", b"idempotency-key", b"if-match", b"origin",
                  b"rlm-namespace", b"transfer-encoding")
OPEN_PATHS = ("/", "/docs", "/health", "/health/live", "/openapi.json")  # need no token: they tell nothing about a memory
MAX_TARGET = 8192  # bytes of path and query together: room for the longest id, twelve bytes to a letter
SMALL_BODY = 65_536  # bytes of a body that is read, and thrown away, when its request is refused
BURST_S = 10.0  # seconds' worth of requests that may come at once
WRONG_RATE = 5.0  # requests a second of one address without a good token that are refused at once; others wait
WRONG_DELAY_S = 1.0  # seconds that they wait
WRONG_WAITING = 100  # requests that wait so at a time; beyond it, connections are closed at once
MAX_CALLERS = 10_000  # buckets that are kept; beyond it, those that are full again are dropped
SECURITY_HEADERS = {  # keep a browser from doing anything with an answer but show it
    "X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer", "Cache-Control": "no-store", "X-Frame-Options": "DENY",
    "Cross-Origin-Resource-Policy": "same-origin", "Cross-Origin-Opener-Policy": "same-origin",
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'"}
_SECURITY = tuple((name.lower().encode(), name.encode(), value.encode()) for name, value in SECURITY_HEADERS.items())


def every_method(path: str,  # path of a request
                 ) -> Collection[str]:
    "Return the methods of bodies, where it is not known which are served."
    return BODY_METHODS


@dataclass(frozen=True)
class GatewayConfig:
    "The rules that a gateway holds requests to."

    tokens: TokenFile | None  # None, or a file that does not exist: callers need no token
    guest: Token  # rights of a caller without a token, where none is needed
    names: frozenset[str] | None = None  # names the server goes by, beside addresses of loopback; None: any
    max_body: int = 8_000_000  # bytes
    rate: float = 0.0  # requests a second of one token, and of one address without a token; 0: any number
    patience_s: float = PATIENCE_S  # seconds that a body may take to arrive; how long its head may, the connection knows
    methods: Callable[[str], Collection[str]] = every_method  # methods that are served at a path


class RateLimiter:
    "A token bucket for each caller: it fills at the allowed rate, holds `BURST_S` seconds' worth, and each request takes one out."

    def __init__(self,
                 rate: float,                                # requests a second; 0: any number
                 now: Callable[[], float] = time.monotonic,  # clock, in seconds
                 ) -> None:
        self.rate, self.now, self._left = rate, now, dict[str, tuple[float, float]]()

    def wait(self,
             caller: str,  # name of the caller
             ) -> float:
        "Return the seconds until the caller may call; 0: now, and this call is counted."
        if not self.rate:
            return 0.0
        most, now = max(1.0, self.rate * BURST_S), self.now()
        if len(self._left) > MAX_CALLERS:
            self._left = {name: (left, at) for name, (left, at) in self._left.items() if left + (now - at) * self.rate < most}
        left, at = self._left.get(caller, (most, now))
        left = min(most, left + (now - at) * self.rate)
        self._left[caller] = (left - (left >= 1), now)
        return 0.0 if left >= 1 else (1 - left) / self.rate


class _WrongTokens:
    """Slows down who guesses tokens, or floods the server without one: beyond a few a second of one address, an answer waits.

    A caller that waits for its answers is so held to one request a second and connection, at the cost of a timer."""

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._limiter, self._waiting = RateLimiter(WRONG_RATE, now), 0

    async def refused(self, address: str, problem: HttpProblem) -> None:
        "Wait, if the address was refused too often; where too many wait, have the connection closed instead."
        if not self._limiter.wait(address):
            return
        if self._waiting >= WRONG_WAITING:
            problem.headers["Connection"] = "close"
            return
        self._waiting += 1
        try:
            await asyncio.sleep(WRONG_DELAY_S)
        finally:
            self._waiting -= 1


def header(scope: Scope,  # connection scope of ASGI
           name: bytes,   # name of a header, in small letters
           ) -> str:
    "Return a header of the request; empty if it is not there."
    return next((value.decode("latin-1") for key, value in scope["headers"] if key == name), "")


@lru_cache(1000)
def is_loopback(host: str,  # a name or an address
                ) -> bool:
    "Return whether only this machine reaches a host."
    with suppress(ValueError):
        return ipaddress.ip_address(host).is_loopback
    return host.lower() == "localhost"


def served_names(settings: Settings,      # serve_host, serve_names
                 ) -> frozenset[str] | None:  # None: any
    "Return the names that a server on loopback goes by, beside addresses of loopback."
    names = frozenset(name.strip().lower() for name in settings.serve_names.split(","))
    return names if is_loopback(settings.serve_host) else None


@lru_cache(1000)
def _hostname(address: str) -> str:
    "Return the name in an address, in small letters; empty if there is none."
    with suppress(ValueError):
        return urlsplit(f"//{address}").hostname or ""
    return ""


def check_names(scope: Scope,                 # connection scope of ASGI
                names: frozenset[str] | None,  # names the server goes by, beside addresses of loopback; None: any
                ) -> None:
    "Refuse a request under a foreign name, or from another site's page. Raises `HttpProblem`."
    host, origin = header(scope, b"host"), header(scope, b"origin")
    if names is not None and not is_loopback(_hostname(host)) and _hostname(host) not in names:
        raise HttpProblem(421, "This server does not go by that name.", "Use an address of this machine, or the setting serve_names.")
    if origin and origin.lower() not in (f"http://{host.lower()}", f"https://{host.lower()}"):
        raise HttpProblem(403, "The request comes from another site's page.", "Only the server's own page may call it from a browser.")


def _check_type(scope: Scope, served: Collection[str] = BODY_METHODS) -> None:
    "Refuse a body that does not say that it is JSON, which no form on a foreign page can send. Raises `HttpProblem`."
    if scope["method"] not in BODY_METHODS or scope["method"] not in served:
        return
    kind, empty = header(scope, b"content-type").partition(";")[0].strip().lower(), header(scope, b"content-length") in ("", "0")
    if scope["path"].endswith(BULK_PATH):
        known: tuple[str, ...] = ("application/x-ndjson",)
    elif scope["method"] == "PATCH":
        known = ("application/json", "application/merge-patch+json")
    else:
        known = ("application/json", "") if scope["path"].endswith(BODILESS_PATH) and empty else ("application/json",)
    if kind not in known:
        raise HttpProblem(415, "A body must be JSON, and say so.", f"Send the header Content-Type: {known[0]}.")


def check_framing(scope: Scope) -> None:
    "Refuse a request that two readers could understand in two ways. Raises `HttpProblem`."
    names = [key for key, _ in scope["headers"]]
    if len(set(names)) < len(names) and (twice := next((n for n in SINGLE_HEADERS if names.count(n) > 1), None)):
        raise HttpProblem(400, f"The header {twice.decode()} is there more than once.", "Send it once.", {"Connection": "close"})
    if b"host" not in names and scope.get("http_version") == "1.1":
        raise HttpProblem(400, "There is no header Host.", "Send it.", {"Connection": "close"})
    if b"transfer-encoding" in names and b"content-length" in names:
        raise HttpProblem(400, "The length of the body is given in two ways.", "Send Content-Length or Transfer-Encoding, not both.",
                          {"Connection": "close"})


def _authenticate(scope: Scope, config: GatewayConfig) -> Token:
    "Return the token of the caller. Raises `HttpProblem`."
    kind, _, secret = header(scope, b"authorization").partition(" ")
    shown = secret.strip() if kind.lower() == "bearer" else ""
    found = config.guest if config.tokens is None else config.tokens.holder(shown, config.guest)
    if found is None:
        raise HttpProblem(401, "There is no token, it is none of ours, or it has expired.",
                          "Send the header Authorization: Bearer, and the token.", {"WWW-Authenticate": "Bearer"})
    return found


def _choose_namespace(scope: Scope, caller: Token) -> Token:
    "Return the token in the namespace that the request names, in UTF-8 as it is or percent-encoded. Raises `HttpProblem`."
    wanted = header(scope, b"rlm-namespace").encode("latin-1").decode("utf-8", "replace")
    for name in (wanted, unquote(wanted)):
        if name in caller.namespaces:
            return caller.within(name)
    if wanted:
        scope["rlm.refused_namespace"] = unquote(wanted)
        if caller.is_guest:
            raise HttpProblem(403, f"Without tokens only the namespace {caller.namespace!r} is open.",
                              "Leave out Rlm-Namespace, or make tokens: rlm tokens add -n NAMESPACE.")
        raise HttpProblem(403, "The token is for another namespace.", "Leave out Rlm-Namespace, or use that namespace's token.")
    return caller


def _limit_rate(limiter: RateLimiter, caller: str) -> None:
    "Count a request. Raises `HttpProblem` for one that comes too soon."
    if (left := limiter.wait(caller)) > 0:
        raise HttpProblem(429, hint="Wait, then go on more slowly.", headers={"Retry-After": str(math.ceil(left))})


def address_of(scope: Scope) -> str:
    "Return the address that a request comes from; empty where the server does not know it."
    client = scope.get("client")
    return str(client[0]) if client else ""


async def _read_body(scope: Scope, receive: Receive, config: GatewayConfig) -> bytes | None:
    "Return the whole body of a request; None: the caller went away. Raises `HttpProblem`."
    def check(size: int) -> None:
        if size > config.max_body:
            raise HttpProblem(413, f"More than {config.max_body:,} bytes.", "Split it.", {"Connection": "close"})
    check(int(header(scope, b"content-length") or 0))
    parts, size, more = list[bytes](), 0, True
    try:
        async with asyncio.timeout(config.patience_s):
            while more:
                message = await receive()
                if message["type"] == "http.disconnect":
                    return None
                parts.append(message.get("body", b""))
                size, more = size + len(parts[-1]), message.get("more_body", False)
                check(size)
    except TimeoutError:
        raise HttpProblem(408, headers={"Connection": "close"}) from None
    return b"".join(parts)


def replay_body(body: bytes,       # body that was received
                receive: Receive,  # source of what else may come
                ) -> Receive:
    "Return a source that gives the application the body once more."
    messages = [{"type": "http.request", "body": body, "more_body": False}]

    async def again() -> Message:
        return messages.pop() if messages else await receive()
    return again


@dataclass
class RequestContext:
    "One request, its answer, and how long it took so far."

    scope: Scope  # connection scope of ASGI
    send: Send  # sink of the answer
    status: int = 0  # status code of the answer; 0: none yet
    begun: float = field(default_factory=time.perf_counter)  # start, in seconds

    async def answer(self, message: Message) -> None:
        "Send a message on, with `SECURITY_HEADERS` where the application has no header of that name."
        if message["type"] == "http.response.start":
            self.status = message["status"]
            own = {key.lower() for key, _ in message["headers"]}
            more = [(name, value) for small, name, value in _SECURITY if small not in own]
            message = {**message, "headers": [*message["headers"], *more]}
        await self.send(message)

    async def refuse(self, problem: HttpProblem) -> None:
        "Answer with an error, unless an answer has begun."
        if not self.status:
            body = problem.body()
            if int(header(self.scope, b"content-length") or 0) > SMALL_BODY or header(self.scope, b"transfer-encoding"):
                problem.headers.setdefault("Connection", "close")  # else the server would read a body that it has refused
            headers = {"Content-Type": "application/problem+json", "Content-Length": str(len(body)), **problem.headers}
            await self.answer({"type": "http.response.start", "status": problem.status,
                               "headers": [(k.lower().encode(), v.encode()) for k, v in headers.items()]})
            await self.answer({"type": "http.response.body", "body": body})


async def _authenticate_and_read(scope: Scope, receive: Receive, config: GatewayConfig, limiter: RateLimiter,
                                 wrong: _WrongTokens) -> bytes | None:
    """Check a request and return its body; None: the caller went away. Raises `HttpProblem`.

    The application sees the path as it was sent, still quoted: only so does it tell the slash between two names from one within a name."""
    scope["path"] = scope["raw_path"].decode("latin-1")
    if len(scope["raw_path"]) + len(scope["query_string"]) > MAX_TARGET:
        raise HttpProblem(414)
    check_framing(scope)
    check_names(scope, config.names)
    _check_type(scope, config.methods(scope["path"]))
    if scope["path"] in OPEN_PATHS:
        _limit_rate(limiter, f"open {address_of(scope)}")
    else:
        try:
            caller = _authenticate(scope, config)
        except HttpProblem as problem:
            if problem.status == 401:
                await wrong.refused(address_of(scope), problem)
                _limit_rate(limiter, f"unknown {address_of(scope)}")
            raise
        _limit_rate(limiter, caller.digest)
        scope["rlm.caller"] = caller  # also of a request that is refused: the access log says who it was
        scope["rlm.caller"] = _choose_namespace(scope, caller)
    return await _read_body(scope, receive, config)


async def _serve_request(app: App, context: RequestContext, receive: Receive) -> None:
    "Have the application answer a request. HEAD is answered as GET is, without the body."
    scope = context.scope
    if scope["method"] != "HEAD":
        await app(scope, receive, context.answer)
        return

    async def head(message: Message) -> None:
        await context.answer({**message, "body": b""} if message["type"] == "http.response.body" else message)
    asked = {**scope, "method": "GET"}
    await app(asked, receive, head)
    scope.update({name: value for name, value in asked.items() if name not in scope})  # the route, for the figures


Observer = Callable[[RequestContext], None]


class Gateway:
    "An ASGI application that checks each request before another application sees it."

    def __init__(self,
                 app: App,                        # application that it guards
                 config: GatewayConfig,           # rules that requests are held to
                 observers: Iterable[Observer] = (),  # called with each request when it is over
                 now: Callable[[], float] = time.monotonic,  # clock, in seconds
                 route: Callable[[str], str] = lambda path: "",  # route of a path, of a request that is answered before it got there
                 ) -> None:
        self.app, self.config, self.observers, self.limiter = app, config, tuple(observers), RateLimiter(config.rate, now)
        self.route = route
        self.wrong = _WrongTokens(now)
        self.uses = None if config.tokens is None else TokenUses(config.tokens.path, config.tokens.clock)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        "Serve one request; the start and end of the server go through."
        if scope["type"] == "lifespan":
            async def ending(message: Message) -> None:
                if message["type"] == "lifespan.shutdown.complete" and self.uses is not None:
                    await asyncio.to_thread(self.uses.save)  # before the server hears it, which then waits for nothing more
                await send(message)
            await self.app(scope, receive, ending)
            return
        if scope["type"] != "http":
            raise RuntimeError(f"a {scope['type']} is not served here")
        context = RequestContext(scope, send)
        try:
            body = await _authenticate_and_read(scope, receive, self.config, self.limiter, self.wrong)
            if self.uses is not None and (caller := scope.get("rlm.caller")) not in (None, self.config.guest):
                self.uses.note(caller)
            if body is not None:
                await _serve_request(self.app, context, replay_body(body, receive))
        except Exception as error:
            await context.refuse(log_problem(error))
        finally:
            if "route" not in scope:
                scope["rlm.route"] = self.route(scope["path"])
            for observe in self.observers:
                observe(context)
