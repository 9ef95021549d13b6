"""Requests that may be sent twice: the header `Idempotency-Key`.

A client whose connection broke can't know whether its write was stored. When it sends the request again under the same
key, it gets the answer of the first time, and nothing is done twice. A key belongs to one token in one namespace. The
same key with another request is refused (422), and so is the same request while the first is still worked on (409).

Answers are kept in the memory of the process: so many, so large and for so long as the constants say. What the server
could not do (5xx), and what came too soon (429), is not kept: it may be tried again under its key.
"""

import hashlib
import time
from collections import OrderedDict
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from .errors import HttpProblem
from .middleware import App, Message, Receive, Scope, Send, header, replay_body

KEPT_KEYS = 10_000  # keys that are remembered; beyond it the oldest are forgotten
KEPT_BYTES = 32_000_000  # bytes of answers that are remembered
KEPT_S = 86_400.0  # seconds for which a key is remembered: a day
MAX_KEY = 255  # characters of a key
CHANGING_METHODS = ("POST", "PUT", "PATCH", "DELETE")
REPLAYED = (b"idempotency-replayed", b"true")  # header of an answer that was given before
Owner = tuple[str, str, str]  # hash of the token, namespace, key


@dataclass
class _KeptAnswer:
    "A request that came with a key, and its answer."

    request: bytes  # digest of the request
    at: float  # when it came, in seconds
    status: int = 0  # status code of the answer; 0: it is still worked on
    headers: list[Any] = field(default_factory=list)  # headers of the answer
    body: bytes = b""  # contents of the answer


class _IdempotencyCache:
    "Answers by key, the oldest forgotten first."

    def __init__(self) -> None:
        self._kept, self._bytes = OrderedDict[Owner, _KeptAnswer](), 0

    def begin(self, owner: Owner, request: bytes) -> _KeptAnswer | None:
        "Return the answer that was given before; None: this is the first time. Raises `HttpProblem`."
        self._forget()
        found = self._kept.get(owner)
        if found is None:
            self._kept[owner] = _KeptAnswer(request, time.monotonic())
            return None
        if found.request != request:
            raise HttpProblem(422, "The Idempotency-Key was used for another request.", "Use a fresh key for each request.")
        if not found.status:
            raise HttpProblem(409, "The same request is under way.", "Wait for its answer, or ask again a little later.",
                              {"Retry-After": "1"})
        return found

    def finish(self, owner: Owner, status: int, headers: list[Any], body: bytes) -> None:
        "Keep an answer, unless the request may be tried again."
        if status == 429 or not 200 <= status < 500:
            self._drop(owner)
            return
        found = self._kept[owner]
        found.status, found.headers, found.body = status, headers, body
        self._bytes += len(body)

    def abandon(self, owner: Owner) -> None:
        "Forget a request that got no answer."
        if (found := self._kept.get(owner)) is not None and not found.status:
            self._drop(owner)

    def _drop(self, owner: Owner) -> None:
        self._bytes -= len(self._kept.pop(owner).body)

    def _forget(self) -> None:
        "Drop what is too old or too much; what is worked on stays."
        past = time.monotonic() - KEPT_S
        for owner in [o for o, found in islice(self._kept.items(), max(100, len(self._kept) - KEPT_KEYS)) if found.status]:
            if self._kept[owner].at > past and len(self._kept) < KEPT_KEYS and self._bytes < KEPT_BYTES:
                break
            self._drop(owner)


class IdempotentRequests:
    "An ASGI application that answers a request with the same `Idempotency-Key` once more with the same answer."

    def __init__(self, app: App) -> None:
        self.app, self.cache = app, _IdempotencyCache()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        "Serve one request. Raises `HttpProblem`."
        key, caller = header(scope, b"idempotency-key") if scope["type"] == "http" else "", scope.get("rlm.caller")
        if not key or caller is None or scope["method"] not in CHANGING_METHODS:
            return await self.app(scope, receive, send)
        if len(key) > MAX_KEY or not all("!" <= c <= "~" for c in key):
            raise HttpProblem(400, "The Idempotency-Key is no key.",
                              f"Send 1 to {MAX_KEY} letters, digits and signs of ASCII, such as a UUID.")
        body: bytes = (await receive())["body"]
        owner = (caller.digest, caller.namespace, key)
        if (kept := self.cache.begin(owner, _request_digest(scope, body))) is not None:
            await send({"type": "http.response.start", "status": kept.status, "headers": [*kept.headers, REPLAYED]})
            await send({"type": "http.response.body", "body": kept.body})
            return
        started, parts = dict[str, Any](), list[bytes]()

        async def record(message: Message) -> None:
            if message["type"] == "http.response.start":
                started.update(message)
            else:
                parts.append(message.get("body", b""))
                if not message.get("more_body", False):  # before it is sent: a caller who goes away asks again
                    self.cache.finish(owner, started["status"], list(started["headers"]), b"".join(parts))
            await send(message)
        try:
            await self.app(scope, replay_body(body, receive), record)
        finally:
            self.cache.abandon(owner)


def _request_digest(scope: Scope, body: bytes) -> bytes:
    "Return a digest of what a request asks for."
    told = (scope["method"], scope["raw_path"].decode("latin-1"), scope["query_string"].decode("latin-1"), header(scope, b"content-type"),
            header(scope, b"if-match"))
    return hashlib.sha256("\n".join(told).encode() + b"\n" + body).digest()
