"""A proxy before a server of OpenAI's protocol: memory for any client that can be given another base URL.

A chat completion gets a block of memories into its last user message, and goes on to the upstream server; the answer comes back
byte by byte as it was sent, streamed or whole. What the person stated is kept while the upstream server answers, whatever becomes of
its answer; the answer is kept as a turn when it is over, without the block if it quotes it. Every other request goes through as it is.
Memory never stands in the way: what fails there is logged, and the request goes on without it.
"""

import asyncio
import hashlib
import json
import logging
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping
from contextlib import asynccontextmanager
from typing import Any

import httpx
from starlette.applications import Starlette
from starlette.background import BackgroundTask
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from rlm.companion.composer import ContextBlock, without_block
from rlm.core.errors import InvalidInput, RlmError
from rlm.core.text import is_blank

from ..capture import capture_prompt
from ..hook import LEAST, MOST_ASKED, MOST_STORED, TOKENS
from .errors import HttpProblem
from .middleware import check_framing, check_names
from .pool import MemoryPool
from .tokens import GUEST, Token, TokenFile

log = logging.getLogger("rlm.proxy")
BASE = "/v1"  # path under which the upstream's base URL is served
CHAT = f"{BASE}/chat/completions"  # the only path that is changed
METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE")
SWITCH, SESSION, TOKEN = "rlm-memory", "rlm-session", "rlm-token"  # headers of a request; they go no further
MODES = ("on", "read", "off")  # context and capture; context alone; neither
DROPPED = frozenset({"host", "content-length", "connection", "keep-alive", "transfer-encoding", "te", "trailer", "upgrade",
                     "proxy-authorization", "proxy-authenticate", "accept-encoding", "origin", "cookie", SWITCH, SESSION, TOKEN})
REACH_S, WAIT_S = 10.0, 600.0  # seconds to reach the upstream, and to wait for a piece of its answer
KEPT_S = 1.0  # seconds that a question waits, at most, until what was stated before it is stored
MAX_CAPTURED = 4_000_000  # bytes of an answer that are looked at


def _message_text(message: Any) -> str:
    "Return the words of a message; empty if it has none, such as one of pictures."
    content = message.get("content") if isinstance(message, dict) else None
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else []
    texts = [p.get("text") for p in parts if isinstance(p, dict) and p.get("type") == "text"]
    return "\n".join(t for t in texts if isinstance(t, str))


def _last_user(messages: list[Any]) -> int | None:
    "Return the place of the last message of the user that has words; None: there is none."
    return next((n for n in range(len(messages) - 1, -1, -1) if isinstance(messages[n], dict) and messages[n].get("role") == "user"
                 and not is_blank(_message_text(messages[n]))), None)


def _with_block(messages: list[Any], at: int, block: str) -> list[Any]:
    "Return the messages with a block before the words of one of them; the others are the same."
    message = messages[at]
    content = message["content"]
    more = f"{block}\n\n{content}" if isinstance(content, str) else [{"type": "text", "text": block}, *content]
    return [*messages[:at], {**message, "content": more}, *messages[at + 1:]]


def _session_of(messages: list[Any], named: str) -> str:
    "Return the name of a conversation: as the client names it, else one that its first user message leads to."
    if named:
        return named[:200]
    first = next((_message_text(m) for m in messages if isinstance(m, dict) and m.get("role") == "user"), "")
    return f"proxy-{hashlib.sha256(first.encode('utf-8', 'replace')).hexdigest()[:12]}"


def answer_text(body: bytes,  # whole answer of a chat completion
                kind: str,    # its type, as the upstream says it
                ) -> str:
    "Return the words of an answer, streamed or whole; empty if it has none, such as a call of a tool."
    parts = list[str]()
    try:
        if kind.startswith("text/event-stream"):
            for line in body.split(b"\n"):
                data = line.removeprefix(b"data:").strip()
                if line.startswith(b"data:") and data != b"[DONE]":
                    parts += [_piece(c, "delta") for c in json.loads(data).get("choices") or [] if c.get("index", 0) == 0]
        else:
            parts += [_piece(c, "message") for c in json.loads(body).get("choices") or [] if c.get("index", 0) == 0]
    except (ValueError, AttributeError, TypeError, RecursionError):
        return ""
    return "".join(parts)


def _piece(choice: Mapping[str, Any], name: str) -> str:
    "The words of a choice."
    return _message_text(choice.get(name) or {})


class MemoryProxy:
    "What the proxy knows: the upstream, the memories, and who may call."

    def __init__(self,
                 upstream: str,            # base URL of a server of OpenAI's protocol, such as https://api.openai.com/v1
                 pool: MemoryPool,         # open namespaces
                 tokens: TokenFile,        # callers that are let in; without a token in it, all that reach the proxy
                 names: frozenset[str] | None,  # names the proxy goes by, beside addresses of loopback; None: any
                 budget: int = TOKENS,     # most tokens of a block
                 capture: bool = True,     # keep what is said
                 transport: httpx.AsyncBaseTransport | None = None,  # way to the upstream; None: the network
                 ) -> None:
        if not re.match(r"https?://[^/\s]", upstream):
            raise InvalidInput(f"{upstream!r} is not the address of a server.", "Give one such as https://api.openai.com/v1.")
        self.upstream, self.pool, self.tokens, self.names = upstream.rstrip("/"), pool, tokens, names
        self.budget, self.capturing, self.keeping = budget, capture, dict[asyncio.Task[None], str]()  # what is being stored, and where
        self.client = httpx.AsyncClient(timeout=httpx.Timeout(WAIT_S, connect=REACH_S), follow_redirects=False, transport=transport)

    def caller(self,
               request: Request,  # request of a client
               ) -> Token:
        "Return who calls. Raises `HttpProblem`."
        check_framing(request.scope)
        check_names(request.scope, self.names)
        guest = Token(GUEST, self.pool.settings.namespace, ("write",))
        found = self.tokens.holder(request.headers.get(TOKEN, "").strip(), guest)
        if found is None or not found.may("read"):
            raise HttpProblem(401, "There is no token in the header Rlm-Token, or it is none of ours.", "Make one with: rlm tokens add")
        return found

    def context(self,
                namespace: str,  # the partition
                question: str,   # words of the last user message
                session: str,    # conversation whose turns are left out
                actor: str,      # public name of the caller
                ) -> ContextBlock:
        "Return the block of memories for a question; its text is empty if there is none."
        with self.pool.use(namespace) as memory:
            return memory.companion.context(question[:MOST_ASKED], self.budget, door="proxy", actor=actor, apart_from=session, least=LEAST)

    def keep(self,
             caller: Token,   # token of the speaker, or of the person who was answered
             words: str,      # words of a person, or of the model
             session: str,    # conversation
             answer: bool = False,  # whether the words are the model's, and are stored as a turn
             ) -> None:
        "Keep what a person states, or an answer as a turn. What fails is logged: the client is answered all the same."
        came, said = {"source": "proxy", "caller": caller.id}, words.strip()[:MOST_STORED]
        if not said:
            return
        try:
            with self.pool.use(caller.namespace) as memory:
                if not answer:
                    capture_prompt(memory, said, came, session)
                else:
                    stored = memory.add_conversation([{"text": said, "role": "assistant", "provenance": came}], session=session)
                    for why in stored.refused.values():
                        log.warning("A turn was not kept: %s", why)
        except (RlmError, HttpProblem) as e:
            log.warning("A turn was not kept: %s", e)

    async def forward(self,
                      request: Request,  # request of a client
                      body: bytes,       # body that is sent on
                      keep: Callable[[str], Awaitable[None]] | None = None,  # takes the words of the answer at its end; None: not read
                      more: Iterable[tuple[str, str]] = (),  # further headers of the answer
                      ) -> Response:
        "Send a request on, and return the answer as it comes. Raises `HttpProblem` when the upstream can't be reached."
        headers = [(k, v) for k, v in request.headers.items() if k not in DROPPED] + [("accept-encoding", "identity")]
        path = request.scope["raw_path"].decode("latin-1").removeprefix(BASE)
        url = self.upstream + path + (f"?{request.url.query}" if request.url.query else "")
        try:
            answer = await self.client.send(self.client.build_request(request.method, url, headers=headers, content=body), stream=True)
        except httpx.HTTPError as e:
            raise HttpProblem(502, f"The upstream server can't be reached ({type(e).__name__}).", "Look at --upstream.") from None
        read = bytearray()

        async def pieces() -> AsyncIterator[bytes]:
            try:
                async for piece in answer.aiter_raw():
                    if keep is not None and len(read) < MAX_CAPTURED:
                        read.extend(piece)
                    yield piece
            finally:
                await answer.aclose()

        sent = StreamingResponse(pieces(), answer.status_code)
        if keep is not None and answer.status_code == 200:
            kind, told = answer.headers.get("content-type", ""), keep

            async def over() -> None:
                await told(answer_text(bytes(read), kind))
            sent.background = BackgroundTask(over)
        passed = [(k, v) for k, v in answer.headers.multi_items() if k not in DROPPED - {"content-length"}]
        sent.raw_headers = [(k.encode("latin-1"), v.encode("latin-1")) for k, v in [*passed, *more]]
        return sent

    async def chat(self,
                   request: Request,  # request for a chat completion
                   body: bytes,       # its JSON
                   caller: Token,     # token of the caller
                   ) -> Response:
        "Answer a chat completion: with memories, as far as the caller wants them."
        mode = request.headers.get(SWITCH, "on").lower()
        if mode not in MODES:
            raise HttpProblem(400, f"Rlm-Memory is {mode[:20]!r}.", f"Say {', '.join(MODES)}, or leave it out.")
        try:
            asked = json.loads(body)
        except (ValueError, RecursionError):
            asked = None
        messages = asked.get("messages") if isinstance(asked, dict) and mode != "off" else None
        if not isinstance(messages, list) or (at := _last_user(messages)) is None:
            return await self.forward(request, body)
        words, session, block = _message_text(messages[at]), _session_of(messages, request.headers.get(SESSION, "")), ""
        if before := [task for task, where in self.keeping.items() if where == caller.namespace]:
            await asyncio.wait(before, timeout=KEPT_S)
        try:
            found = await asyncio.to_thread(self.context, caller.namespace, words, session, caller.id)
            block, told = found.text, [(SWITCH, str(len(found.used) + len(found.rules)))]
        except (RlmError, HttpProblem) as e:
            log.warning("A request goes on without memories: %s", e)
            told = [(SWITCH, "failed")]
        if block:
            body = json.dumps({**asked, "messages": _with_block(messages, at, block)}, ensure_ascii=False).encode("utf-8", "replace")
        if mode == "read" or not self.capturing or not caller.may("write"):
            return await self.forward(request, body, more=told)
        new = words if at == len(messages) - 1 else ""  # after a call of a tool the same words stand there again
        stated = asyncio.create_task(asyncio.to_thread(self.keep, caller, new, session))  # an upstream that fails takes nothing along
        self.keeping[stated] = caller.namespace
        stated.add_done_callback(self.keeping.pop)

        async def answered(text: str) -> None:
            await stated
            await asyncio.to_thread(self.keep, caller, without_block(text, block), session, True)
        return await self.forward(request, body, answered, told)

    async def _read_body(self, request: Request) -> bytes:
        "Return the body of a request, of which no more is read than is allowed. Raises `HttpProblem`."
        read = bytearray()
        async for piece in request.stream():
            read += piece
            if len(read) > self.pool.settings.serve_max_body:
                raise HttpProblem(413, f"More than {self.pool.settings.serve_max_body:,} bytes.", "Split it, or raise serve_max_body.")
        return bytes(read)

    async def answer(self,
                     request: Request,  # request of a client
                     ) -> Response:
        "Answer a request; errors of the proxy have the shape that clients of the protocol read."
        try:
            caller, body = self.caller(request), await self._read_body(request)
            if request.method == "POST" and request.url.path == CHAT:
                return await self.chat(request, body, caller)
            return await self.forward(request, body)
        except HttpProblem as e:
            said = " ".join(str(e.content[k]) for k in ("detail", "hint") if k in e.content) or str(e.content["title"])
            return JSONResponse({"error": {"message": said, "type": "rlm_proxy_error", "code": e.status}}, e.status)


def proxy_application(proxy: MemoryProxy) -> Starlette:
    "Return the proxy as an ASGI application, which closes the memories at its end."
    @asynccontextmanager
    async def life(_app: Starlette) -> AsyncIterator[None]:
        yield
        await asyncio.gather(*proxy.keeping, return_exceptions=True)
        await proxy.client.aclose()
        proxy.pool.close()

    async def elsewhere(_request: Request) -> Response:
        said = f"Nothing is served there: the base URL of a client ends with {BASE}."
        return JSONResponse({"error": {"message": said, "type": "rlm_proxy_error", "code": 404}}, 404)
    return Starlette(routes=[Route(BASE + "/{path:path}", proxy.answer, methods=list(METHODS)),
                             Route("/{path:path}", elsewhere, methods=list(METHODS))], lifespan=life)
