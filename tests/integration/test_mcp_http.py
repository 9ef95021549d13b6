"The MCP server over HTTP: tokens, tenants, and the same tools as over standard input and output."
import asyncio
import threading
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

pytest.importorskip("mcp", reason="the extra mcp is not installed")

import uvicorn
from mcp import Client
from mcp.client.streamable_http import create_mcp_http_client, streamable_http_client
from mcp_types import ElicitResult
from serving import serving
from test_mcp import READING, Call, a_life, result_of

from rlm import Memory
from rlm.core.settings import load_settings
from rlm.service.http.pool import MemoryPool
from rlm.service.http.server import http_config, listening
from rlm.service.http.tokens import TokenFile
from rlm.service.mcp.http import guarded_mcp

pytestmark = [pytest.mark.usefixtures("bare"), pytest.mark.filterwarnings("ignore::ResourceWarning")]


@contextmanager
def mcp_serving(db: Path, tokens: TokenFile | None = None, read_only: bool = False) -> Iterator[str]:
    "The address of `rlm mcp --http`, while it runs."
    pool = MemoryPool(load_settings(db_path=db), embedder="none")
    server = uvicorn.Server(http_config(guarded_mcp(pool, tokens, read_only)))
    with listening("127.0.0.1", 0) as here:
        thread = threading.Thread(target=server.run, kwargs={"sockets": [here]})
        thread.start()
        try:
            yield f"http://127.0.0.1:{here.getsockname()[1]}/mcp"
        finally:
            server.should_exit = True
            thread.join(30)
    assert not thread.is_alive()


@pytest.fixture
def tokens(tmp_path: Path) -> TokenFile:
    return TokenFile(tmp_path / "tokens")


def connect(url: str, session: Callable[[Call, Client], Awaitable[None]], token: str = "", mode: str = "auto", **headers: str) -> None:
    "Run a session with a client of the SDK that shows this token."
    async def run() -> None:
        given = headers | ({"Authorization": f"Bearer {token}"} if token else {})
        async with (create_mcp_http_client({n.replace("_", "-"): v for n, v in given.items()}) as http,
                    Client(streamable_http_client(url, http_client=http), mode=mode) as client):
            async def call(name: str, **arguments: Any) -> Any:
                return result_of(await client.call_tool(name, arguments))
            await session(call, client)
    asyncio.run(run())


@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_each_tool_does_what_it_says(tmp_path: Path, mode: str) -> None:
    with mcp_serving(tmp_path / "m.db") as url:
        connect(url, a_life, mode=mode)


@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_two_tenants_never_meet(tmp_path: Path, tokens: TokenFile, mode: str) -> None:
    secrets = {name: tokens.add(name)[0] for name in ("alice", "bob")}
    ids = dict[str, str]()

    def saves(name: str) -> Callable[[Call, Client], Awaitable[None]]:
        async def session(call: Call, _client: Client) -> None:
            ids[name] = (await call("memory_save", text=f"{name.title()} plays the {name}phone in Busan."))["memory"]["id"]
        return session

    def looks(name: str, other: str) -> Callable[[Call, Client], Awaitable[None]]:
        async def session(call: Call, client: Client) -> None:
            found = await call("memory_search", query="who plays the phone in Busan?")
            assert [h["memory"]["id"] for h in found["hits"]] == [ids[name]], "its own is found, as a positive control"
            for tool in ("memory_history", "memory_get_related", "memory_pin", "memory_delete"):
                assert isinstance(await call(tool, id=ids[other]), str)
            with pytest.raises(Exception, match="There is no memory"):
                await client.read_resource(f"memory://{ids[other]}")
            assert (await call("memory_stats"))["memories"] == 1
            assert "no argument `namespace`" in await call("memory_search", query="phone", namespace=other)
        return session
    with mcp_serving(tmp_path / "m.db", tokens) as url:
        for name in secrets:
            connect(url, saves(name), secrets[name], mode)
        connect(url, looks("alice", "bob"), secrets["alice"], mode)
        connect(url, looks("bob", "alice"), secrets["bob"], mode)
    with Memory(tmp_path / "m.db", namespace="bob", embedder="none") as memory:
        assert [r.provenance["caller"] for r in memory.list()] == [tokens.tokens()[1].id]


def test_two_tenants_at_once_never_meet(tmp_path: Path, tokens: TokenFile) -> None:
    secrets = {name: tokens.add(name)[0] for name in ("alice", "bob", "carol")}

    async def one(url: str, name: str) -> set[str]:
        async with (create_mcp_http_client({"Authorization": f"Bearer {secrets[name]}"}) as http,
                    Client(streamable_http_client(url, http_client=http)) as client):
            await asyncio.gather(*(client.call_tool("memory_save", {"text": f"{name} says {n} is green."}) for n in range(8)))
            found = result_of(await client.call_tool("memory_search", {"query": "what is green?", "k": 50}))
            return {h["memory"]["text"] for h in found["hits"]}

    async def all_three(url: str) -> list[set[str]]:
        return await asyncio.gather(*(one(url, name) for name in secrets))
    with mcp_serving(tmp_path / "m.db", tokens) as url:
        told = asyncio.run(all_three(url))
    assert told == [{f"{name} says {n} is green." for n in range(8)} for name in secrets]


def test_a_token_opens_what_it_says_and_the_gateway_refuses_the_rest(tmp_path: Path, tokens: TokenFile) -> None:
    both, _ = tokens.add(["work", "home"], label="laptop")
    reader, _ = tokens.add("work", ["read"])

    async def reads(call: Call, client: Client) -> None:
        assert [t.name for t in (await client.list_tools()).tools] == READING
        assert "does not have the right to write" in await call("memory_save", text="x")
        assert (await call("memory_stats"))["namespace"] == "work"

    async def at_home(call: Call, _client: Client) -> None:
        assert (await call("memory_stats"))["namespace"] == "home"
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}}
    with mcp_serving(tmp_path / "m.db", tokens) as url:
        connect(url, reads, reader)
        connect(url, at_home, both, rlm_namespace="home")
        for token, more, status in [("", {}, 401), ("rlm_wrong", {}, 401), (reader, {"Rlm-Namespace": "home"}, 403),
                                    (reader, {"Origin": "https://evil.example"}, 403), (reader, {"Host": "evil.example"}, 421)]:
            given = {"Authorization": f"Bearer {token}"} if token else {}
            answer = httpx.post(url, json=body, headers={"Accept": "application/json, text/event-stream", **given, **more})
            assert answer.status_code == status, answer.text
        assert httpx.get(url.replace("/mcp", "/v1/stats"), headers={"Authorization": f"Bearer {both}"}).status_code == 404
        revoked = tokens.tokens()[1].id
        tokens.revoke(revoked)
        assert httpx.post(url, json=body, headers={"Authorization": f"Bearer {reader}"}).status_code == 401


def test_a_token_file_that_comes_later_is_heeded(tmp_path: Path, tokens: TokenFile) -> None:
    async def counts(call: Call, _client: Client) -> None:
        assert (await call("memory_stats"))["memories"] == 0
    with mcp_serving(tmp_path / "m.db", tokens) as url:
        connect(url, counts)
        secret, _ = tokens.add("work")
        connect(url, counts, secret)
        assert httpx.post(url, json={}).status_code == 401


def test_a_server_that_only_reads_shows_no_tool_that_writes(tmp_path: Path) -> None:
    async def reads(call: Call, client: Client) -> None:
        assert [t.name for t in (await client.list_tools()).tools] == READING
        assert "does not have the right to write" in await call("memory_save", text="x")
    with mcp_serving(tmp_path / "m.db", read_only=True) as url:
        connect(url, reads)


def test_the_server_of_rest_answers_mcp_too(tmp_path: Path, tokens: TokenFile) -> None:
    secret, _ = tokens.add("work", ["admin"])

    async def saves(call: Call, _client: Client) -> None:
        await call("memory_save", text="Tea at five.")
    with serving(tmp_path / "m.db", tokens) as running:
        for mode in ("auto", "legacy"):
            connect(f"{running.url}/mcp", saves, secret, mode)
        with running.client(secret) as client:
            found = client.post("/v1/search", json={"q": "tea"}).json()
            assert [h["memory"]["text"] for h in found["hits"]] == ["Tea at five."]
            assert 'route="/mcp"' in client.get("/metrics").text
        assert httpx.post(f"{running.url}/mcp", json={}).status_code == 401


def test_only_an_admins_token_erases_a_namespace_and_only_when_a_person_types_its_name(tmp_path: Path, tokens: TokenFile) -> None:
    admin, writer = tokens.add(["mina", "joon"], ["admin"])[0], tokens.add("mina")[0]
    typed: list[str | None] = [None, "joon", "mina"]

    async def erased(token: str, name: str | None) -> Any:
        async def person(_context: Any, question: Any) -> ElicitResult:
            assert "mina" in question.message
            return ElicitResult(action="accept", content={"name": name}) if name else ElicitResult(action="decline")
        async with (create_mcp_http_client({"Authorization": f"Bearer {token}"}) as http,
                    Client(streamable_http_client(url, http_client=http), elicitation_callback=person) as client):
            shown = [t.name for t in (await client.list_tools()).tools]
            return ("namespace_erase" in shown), result_of(await client.call_tool("namespace_erase", {}))

    async def unasked(call: Call, _client: Client) -> None:
        assert (await call("namespace_erase"))["status"] == "stands"
    with mcp_serving(tmp_path / "m.db", tokens) as url:
        with Memory(tmp_path / "m.db", namespace="mina", embedder="none") as memory:
            kept = memory.write("Xylophon lessons on Monday.").id
            memory.namespace("joon").write("Joon likes tea.", id=kept)
        shown, said = asyncio.run(erased(writer, "mina"))
        assert not shown and "does not have the right to admin" in said
        connect(url, unasked, admin)
        found = [asyncio.run(erased(admin, name)) for name in typed]
    assert [shown for shown, _ in found] == [True] * 3 and [said["status"] for _, said in found] == ["stands", "stands", "erased"]
    assert found[2][1]["receipt"]["ids"] == [kept] and found[2][1]["receipt"]["namespace"] == "mina"
    with Memory(tmp_path / "m.db", namespace="joon", embedder="none") as memory:
        assert memory.namespaces() == ["joon"] and memory.get(kept).text == "Joon likes tea." and not memory.check()
