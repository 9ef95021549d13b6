"The proxy before a server of OpenAI's protocol: a fake upstream says what it was asked, and answers whole, in a stream, or wrongly."
import asyncio
import json
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

pytest.importorskip("fastapi", reason="the extra serve is not installed")
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from rlm import Memory
from rlm.core.settings import load_settings
from rlm.service.http import proxy as proxy_module
from rlm.service.http.pool import MemoryPool
from rlm.service.http.proxy import MemoryProxy, answer_text, proxy_application
from rlm.service.http.server import http_config, listening
from rlm.service.http.tokens import TokenFile

pytestmark = pytest.mark.usefixtures("bare")
REPLY = "Peanuts are out. 땅콩은 안 돼요."


class Upstream:
    "A server that keeps what it was sent."

    def __init__(self) -> None:
        self.bodies, self.headers = list[Any](), list[dict[str, str]]()

    async def answer(self, request: Request) -> Response:
        body = await request.body()
        self.bodies.append(json.loads(body) if body else None)
        self.headers.append(dict(request.headers))
        asked = self.bodies[-1] or {}
        if asked.get("model") == "broken":
            return JSONResponse({"error": {"message": "no such model"}}, 404)
        said = f"You told me:\n{asked['messages'][-1]['content']}" if asked.get("model") == "echo" else REPLY
        if not asked.get("stream"):
            return JSONResponse({"path": request.url.path, "query": request.url.query,
                                 "choices": [{"index": 0, "message": {"role": "assistant", "content": said}}]})

        async def events() -> AsyncIterator[bytes]:
            for word in said.split(" "):
                piece = {"choices": [{"index": 0, "delta": {"content": word + " "}}]}
                yield b"data: " + json.dumps(piece, ensure_ascii=False).encode() + b"\n\n"
                await asyncio.sleep(0)
            yield b"data: [DONE]\n\n"
        return StreamingResponse(events(), media_type="text/event-stream")


@contextmanager
def running(app: Any) -> Iterator[str]:
    "Serve an application, and give its address."
    server = uvicorn.Server(http_config(app))
    with listening("127.0.0.1", 0) as here:
        thread = threading.Thread(target=server.run, kwargs={"sockets": [here]})
        thread.start()
        try:
            yield f"http://127.0.0.1:{here.getsockname()[1]}"
        finally:
            server.should_exit = True
            thread.join(30)


Setting = tuple[Upstream, httpx.Client, Path]


@contextmanager
def proxied(folder: Path, **more: Any) -> Iterator[Setting]:
    upstream, path = Upstream(), folder / "memory.db"
    with Memory(path) as memory:
        memory.write("I am allergic to peanuts.", id="nuts")
    with running(Starlette(routes=[Route("/api/{path:path}", upstream.answer, methods=["GET", "POST"])])) as url:
        pool = MemoryPool(load_settings(db_path=path), embedder="none")
        proxy = MemoryProxy(f"{url}/api/", pool, TokenFile(folder / "tokens"), frozenset({"localhost"}), **more)
        with running(proxy_application(proxy)) as at, httpx.Client(base_url=at, timeout=30) as client:
            yield upstream, client, path


@pytest.fixture
def setting(tmp_path: Path) -> Iterator[Setting]:
    with proxied(tmp_path) as made:
        yield made


def chat(client: httpx.Client, *said: str, headers: dict[str, str] | None = None, **more: Any) -> httpx.Response:
    roles = ["user", "assistant"] * len(said)
    body = {"model": "m", "messages": [{"role": r, "content": s} for r, s in zip(roles, said, strict=False)]} | more
    return client.post("/v1/chat/completions", json=body, headers={"Authorization": "Bearer sk-1", **(headers or {})})


def stored(path: Path, count: int) -> list[str]:
    "What is stored, once so many are: a turn is kept after its answer was sent."
    for _ in range(2400):
        with Memory(path, read_only=True) as memory:
            if len(found := memory.list(50)) >= count:
                break
        threading.Event().wait(.05)
    return [m.text for m in found]


def test_a_question_waits_for_what_was_stated_before_it(setting: Setting, monkeypatch: pytest.MonkeyPatch) -> None:
    upstream, client, _ = setting
    let, stored_now = threading.Event(), proxy_module.capture_prompt

    def slowly(*given: Any) -> Any:
        let.wait(.3)  # the time that loading the grammar takes
        return stored_now(*given)
    monkeypatch.setattr(proxy_module, "capture_prompt", slowly)
    first, then = chat(client, "My dentist is Dr. Park on Main Street."), chat(client, "Who is my dentist?")
    assert "Dr. Park" in upstream.bodies[-1]["messages"][-1]["content"]
    assert (first.headers["rlm-memory"], then.headers["rlm-memory"]) == ("0", "1")


@pytest.mark.parametrize("stream", [False, True])
def test_a_chat_gets_memories_and_what_is_said_is_kept(setting: Setting, stream: bool) -> None:
    upstream, client, path = setting
    answer = chat(client, "May I have peanut butter? We use tabs, not spaces, in this repo.", stream=stream)
    said = answer_text(answer.content, answer.headers["content-type"])
    assert answer.status_code == 200 and said.strip() == REPLY
    sent = upstream.bodies[0]["messages"]
    assert len(sent) == 1 and sent[0]["content"].startswith("<memories note=") and "I am allergic to peanuts." in sent[0]["content"]
    assert sent[0]["content"].endswith("in this repo.") and upstream.headers[0]["authorization"] == "Bearer sk-1"
    assert any(text.strip() == REPLY for text in stored(path, 2))
    client.post("/v1/embeddings?x=1", json={"input": "tabs"})
    assert upstream.bodies[1] == {"input": "tabs"}


def test_only_what_is_new_is_kept_and_an_answer_is_not_given_back_to_its_own_chat(setting: Setting) -> None:
    upstream, client, path = setting
    chat(client, "저는 땅콩 알레르기가 있어요")
    texts = stored(path, 3)
    assert texts[0] == REPLY and texts[1] == "저는 땅콩 알레르기가 있어요"
    chat(client, "저는 땅콩 알레르기가 있어요", REPLY, "땅콩 먹어도 돼?")
    block = upstream.bodies[1]["messages"][2]["content"]
    assert "저는 땅콩 알레르기가 있어요" in block and "Peanuts are out" not in block and len(stored(path, 4)) == 4
    chat(client, "나 땅콩 먹어도 돼?")
    assert "Peanuts are out" in upstream.bodies[2]["messages"][0]["content"]


def test_what_a_person_states_is_kept_whatever_the_upstream_answers(setting: Setting) -> None:
    _, client, path = setting
    assert chat(client, "My sister lives in Jeju.", model="broken").status_code == 404
    assert stored(path, 2)[0] == "My sister lives in Jeju."
    chat(client, "My sister lives in Jeju.")  # tried again: known already
    assert stored(path, 3)[:2] == [REPLY, "My sister lives in Jeju."]


@pytest.mark.parametrize("stream", [False, True])
def test_a_block_that_the_upstream_quotes_is_not_stored(setting: Setting, stream: bool) -> None:
    upstream, client, path = setting
    for session in ("one", "two"):
        chat(client, "May I have peanut butter?", model="echo", stream=stream, headers={"Rlm-Session": session})
        said = stored(path, 2)[0]
        assert said.startswith("You told me:") and said.endswith("May I have peanut butter?") and "allergic" not in said
    assert "memories" not in "".join(stored(path, 3)) and "&lt;" not in upstream.bodies[1]["messages"][0]["content"]
    block = upstream.bodies[0]["messages"][0]["content"].partition("May I")[0]
    chat(client, block + "I live in Busan.")  # a client that sends back what it was shown
    assert stored(path, 5)[:2] == [REPLY, "I live in Busan."]


def test_the_switch_of_a_request_and_what_is_no_chat(setting: Setting) -> None:
    upstream, client, path = setting
    chat(client, "We use tabs; peanuts?", headers={"Rlm-Memory": "off"})
    chat(client, "We use tabs; peanuts?", headers={"Rlm-Memory": "read"})
    assert [b["messages"][0]["content"].startswith("<memories") for b in upstream.bodies] == [False, True]
    assert not any(name.startswith("rlm-") for h in upstream.headers for name in h)
    wrong = chat(client, "x", headers={"Rlm-Memory": "maybe"})
    assert wrong.status_code == 400 and "maybe" in wrong.json()["error"]["message"] and len(upstream.bodies) == 2
    pictures = [{"role": "user", "content": [{"type": "text", "text": "peanuts?"}, {"type": "image_url", "image_url": {"url": "data:,"}}]}]
    client.post("/v1/chat/completions", json={"model": "m", "messages": pictures}, headers={"Rlm-Memory": "read"})
    first, *rest = upstream.bodies[2]["messages"][0]["content"]
    assert "allergic" in first["text"] and rest == pictures[0]["content"]
    for body in (b"no json", b"[]", b'{"messages": 3}', b'{"messages": [3, {"role": "user"}]}'):
        client.post("/v1/chat/completions", content=body, headers={"Content-Type": "application/json"}) if body != b"no json" else None
    assert client.get("/v1/models?limit=2").json()["query"] == "limit=2" and client.get("/models").status_code == 404
    assert chat(client, "peanuts?", model="broken").status_code == 404
    assert len(stored(path, 1)) == 1


def test_memory_does_not_stand_in_the_way(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with proxied(tmp_path) as (upstream, client, path):
        with Memory(path) as memory:
            memory.delete("nuts")
        assert chat(client, "peanuts?").status_code == 200 and upstream.bodies[0]["messages"][0]["content"] == "peanuts?"
        long = chat(client, "\ud800 peanuts?".encode("utf-8", "replace").decode())
        assert long.status_code == 200
    pool = MemoryPool(load_settings(db_path=tmp_path / "m.db"), embedder="none")
    lonely = MemoryProxy("http://127.0.0.1:9/v1", pool, TokenFile(tmp_path / "none"), None)
    with running(proxy_application(lonely)) as at, httpx.Client(base_url=at, timeout=30) as client:
        away = chat(client, "hello")
        assert away.status_code == 502 and "upstream" in away.json()["error"]["message"]


def test_who_may_call(tmp_path: Path) -> None:
    book = TokenFile(tmp_path / "tokens")
    reader, writer = book.add("mine", ["read"])[0], book.add("default", ["write"])[0]
    with proxied(tmp_path) as (upstream, client, path):
        assert chat(client, "peanuts?").status_code == 401
        assert chat(client, "We use tabs.", headers={"Rlm-Token": reader}).status_code == 200
        assert chat(client, "peanuts?", headers={"Rlm-Token": writer}).status_code == 200
        assert ["memories" in b["messages"][0]["content"] for b in upstream.bodies] == [False, True]  # each its own namespace
        assert chat(client, "x", headers={"Rlm-Token": writer, "Host": "evil.example"}).status_code == 421
        assert chat(client, "x", headers={"Rlm-Token": writer, "Origin": "http://evil.example"}).status_code == 403
        assert len(stored(path, 2)) == 2


def test_an_answer_without_words_is_none() -> None:
    assert answer_text(b"no json", "application/json") == "" and answer_text(b"data: {\n", "text/event-stream") == ""
    call = {"choices": [{"index": 0, "message": {"content": None, "tool_calls": []}}, {"index": 1, "message": {"content": "x"}}]}
    assert answer_text(json.dumps(call).encode(), "application/json") == ""


def test_no_more_of_a_body_is_read_than_is_allowed(tmp_path: Path) -> None:
    read, sent = list[int](), list[Any]()

    async def receive() -> dict[str, Any]:
        read.append(1)
        return {"type": "http.request", "body": b" " * 1000, "more_body": len(read) < 500}

    async def send(message: Any) -> None:
        sent.append(message)
    pool = MemoryPool(load_settings(db_path=tmp_path / "memory.db", serve_max_body=10_000), embedder="none")
    proxy = MemoryProxy("http://127.0.0.1:9/v1", pool, TokenFile(tmp_path / "tokens"), None)
    scope = {"type": "http", "method": "POST", "path": "/v1/chat/completions", "raw_path": b"/v1/chat/completions", "query_string": b"",
             "headers": [(b"host", b"localhost")], "client": ("127.0.0.1", 1), "http_version": "1.1", "scheme": "http", "root_path": ""}
    asyncio.run(proxy_application(proxy)(scope, receive, send))
    assert sent[0]["status"] == 413 and len(read) <= 12


def test_a_body_of_many_brackets_goes_on_as_it_is_and_such_an_answer_has_no_words(setting: Setting) -> None:
    _, client, _ = setting
    assert client.post("/v1/chat/completions", content=b"[" * 100_000, headers={"Content-Type": "application/json"}).status_code == 500
    assert answer_text(b"[" * 100_000, "application/json") == ""
    assert answer_text(b"data: " + b"[" * 100_000, "text/event-stream") == ""


def test_the_memories_are_closed_where_what_was_said_could_not_be_kept(tmp_path: Path) -> None:
    pool = MemoryPool(load_settings(db_path=tmp_path / "memory.db"), embedder="none")
    proxy = MemoryProxy("http://127.0.0.1:9/v1", pool, TokenFile(tmp_path / "tokens"), None)
    pool.store()

    async def fails() -> None:
        raise OSError("The disk is gone.")

    async def run() -> None:
        app = proxy_application(proxy)
        async with app.router.lifespan_context(app):
            proxy.keeping[asyncio.create_task(fails())] = "default"
    asyncio.run(run())
    assert not pool.open_memories()
