"""The server over HTTP: many clients, each in the namespace of its token.

The gateway of `rlm serve` stands before it and has found out who calls; the token goes from there to the SDK, which binds sessions to it,
and to the tools. No argument of a tool, and no header but `Rlm-Namespace`, which the gateway checks, says whose memory it is.
"""

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

from mcp.server.auth.middleware.auth_context import AuthContextMiddleware, get_access_token
from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
from mcp.server.auth.provider import AccessToken
from mcp.server.transport_security import TransportSecuritySettings
from starlette.applications import Starlette

from rlm.core.files import hidden_password, read_path
from rlm.core.settings import Settings

from ..http.errors import HttpProblem
from ..http.middleware import App, Gateway, GatewayConfig, Receive, Scope, Send, served_names
from ..http.pool import MemoryPool
from ..http.server import PLACE, answer_at, listening, load_token_store
from ..http.tokens import GUEST, Token, TokenFile
from ..memory import Memory
from .mcp_server import memory_server

PATH = "/mcp"  # where clients find it


class TenantMemory:
    "The memories of a server, of which a caller sees the one that its token opens."

    def __init__(self,
                 pool: MemoryPool,         # open namespaces of the server
                 read_only: bool = False,  # True: no caller may write
                 ) -> None:
        self.pool, self._read_only = pool, read_only

    @property
    def read_only(self) -> bool:
        "Return whether no caller may write."
        return self._read_only

    def caller(self) -> Token:
        "Return the token of the request that is worked on. Raises `HttpProblem` where no gateway has let it in."
        found = get_access_token()
        if found is None or not isinstance(token := (found.claims or {}).get("token"), Token):
            raise HttpProblem(401, "There is no token.", "Send the header Authorization: Bearer, and the token.")
        return token

    def may(self,
            right: str,  # read, write or admin
            ) -> bool:
        "Return whether the caller's token has a right."
        return self.caller().may(right) and (right == "read" or not self.read_only)

    @contextmanager
    def use(self,
            right: str,  # read, write or admin
            ) -> Iterator[Memory]:
        "Give the memory of the caller's namespace. Raises `HttpProblem` for a token without the right."
        token = self.caller()
        if not self.may(right):
            raise HttpProblem(403, f"This caller does not have the right to {right}.")
        with self.pool.use(token.namespace) as memory:
            yield memory

    def actor(self) -> dict[str, str]:
        "Return what the provenance of a memory says of the caller."
        return {"source": "mcp", "actor": "model", "caller": self.caller().id}


def _with_caller(app: App) -> App:
    "Return an application that hands the gateway's token on to the SDK."
    inner: Any = AuthContextMiddleware(app)

    async def known(scope: Scope, receive: Receive, send: Send) -> None:
        if (token := scope.get("rlm.caller")) is not None:
            access = AccessToken(token=token.digest, client_id=token.id, subject=token.namespace, scopes=list(token.rights),
                                 claims={"token": token})
            scope["user"] = AuthenticatedUser(access)
        await inner(scope, receive, send)
    return known


def with_mcp(app: App,                 # application that answers all other paths
             pool: MemoryPool,         # open namespaces of the server
             max_body: int,            # longest request, in bytes
             read_only: bool = False,  # True: no caller may write
             ) -> App:
    "Return an application that answers MCP at `PATH`; what starts and stops the other one starts and stops both."
    security = TransportSecuritySettings(enable_dns_rebinding_protection=False)  # the gateway has looked at the names
    server = memory_server(TenantMemory(pool, read_only))
    bare = server.streamable_http_app(streamable_http_path=PATH, max_request_body_size=max_body, transport_security=security)
    mcp = _with_caller(bare)

    async def either(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            async with bare.router.lifespan_context(bare):
                await app(scope, receive, send)
        elif scope["type"] == "http" and scope["path"] == PATH:
            scope["route"] = bare.routes[0]  # its path is what figures and spans name
            await mcp(scope, receive, send)
        else:
            await app(scope, receive, send)
    return either


def _mcp_only(pool: MemoryPool) -> Starlette:
    "Return an application that answers nothing, and closes the store at its end."
    @asynccontextmanager
    async def life(_app: Starlette) -> AsyncIterator[None]:
        yield
        pool.close()
    return Starlette(lifespan=life)


def guarded_mcp(pool: MemoryPool,                 # open namespaces of the server
                tokens: TokenFile | None = None,  # None, or a file that does not exist: callers need no token
                read_only: bool = False,          # True: no caller may write
                ) -> Gateway:
    "Return MCP alone behind the gateway of `rlm serve`."
    settings = pool.settings
    guest = Token(GUEST, settings.namespace, ("write",))
    config = GatewayConfig(tokens, guest, served_names(settings), settings.serve_max_body, settings.serve_rate)
    return Gateway(with_mcp(_mcp_only(pool), pool, settings.serve_max_body, read_only), config)


def serve_mcp(settings: Settings,          # address, store and tokens
              config: Path | None = None,  # the settings file that was named
              read_only: bool = False,     # True: no caller may write
              ) -> None:
    "Serve MCP over HTTP until told to stop. Raises `SettingsError`, and what the store raises."
    tokens = load_token_store(settings)
    pool = MemoryPool(settings, config=config)
    pool.store().search("Is it ready? 어디까지 준비됐어?", 1)  # the index and the model are there before anyone waits for them
    app = guarded_mcp(pool, tokens, read_only)
    who = "who has a token" if tokens.required() else "anyone on this machine"
    with listening(settings.serve_host, settings.serve_port) as here:
        answer_at(here, app, f"Serving {hidden_password(str(read_path(settings.db_path)))} over MCP for {who} at http://{PLACE}{PATH}")
