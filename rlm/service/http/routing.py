"""What routes are made of: the service that they work with, tables of routes, and the short way past FastAPI to those of a body.

A route is a function of a `Call` and of what the request holds. It returns what JSON holds, a memory, or a value with `as_dict`. FastAPI
documents it and answers whatever is out of the ordinary: a body that is no JSON or does not fit, a right that is missing, an
`Idempotency-Key`. What is in order and has a body alone is parsed by the same model and goes straight to the function, in a thread.

The gateway has found out who calls and put the token into the scope. A route that no gateway guards answers 401.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from dataclasses import dataclass, replace
from inspect import Parameter, getdoc, signature
from typing import Annotated, Any
from urllib.parse import quote, unquote

from fastapi import Depends, FastAPI, Header, Path, Query, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.security import HTTPBearer
from pydantic import AfterValidator, BaseModel
from pydantic_core import to_json

from rlm.core.errors import suggest
from rlm.core.settings import Settings
from rlm.service.memory import Memory
from rlm.service.results import memory_dict
from rlm.store.records import MemoryRecord

from .errors import HttpProblem
from .health import READY_AGE_S, ReadinessProbe
from .middleware import MAX_TARGET, App, Receive, Scope, Send, header, replay_body
from .pool import MemoryPool
from .schemas import answers
from .tokens import Token, TokenFile
from .telemetry import AccessLog, Metrics, SpanTracer

THREADS = 16  # requests that are worked on at once; each search holds the interpreter, so that more of them only wait for one another
_threads = ThreadPoolExecutor(THREADS, "rlm-request")
Name = Annotated[str, Query(min_length=1, max_length=512)]
QuotedId = Annotated[str, AfterValidator(unquote), Path(description="A name, quoted: `a/b` is `a%2Fb`")]
NAMESPACE_IS = "A namespace of the token; any other is refused. A name beyond ASCII is percent-encoded: 서윤 is `%EC%84%9C%EC%9C%A4`"
bearer = HTTPBearer(auto_error=False, description="A token of `rlm tokens add`. On loopback none is needed unless there is a token file.")
Namespace = Annotated[str | None, Header(alias="Rlm-Namespace", max_length=MAX_TARGET, description=NAMESPACE_IS)]


class Service:
    "What the routes work with: the memories of a server, its metrics and its spans."

    def __init__(self,
                 settings: Settings,                # settings of the server
                 ready_age_s: float = READY_AGE_S,  # seconds for which it is known whether the store answers
                 **more: Any,                       # arguments of `Memory`
                 ) -> None:
        self.settings, self.pool, self.tracer = settings, MemoryPool(settings, **more), SpanTracer(settings.traces)
        self.access_log = None if settings.access_log == "off" else AccessLog(settings.access_log)
        self.metrics = Metrics(self.pool.counters, self.pool.embedding_worker, settings.metrics_prefix)
        self.readiness = ReadinessProbe(self._check, ready_age_s)
        self._read_only = bool(more.get("read_only"))  # then it need not be possible to write

    def _check(self) -> None:
        "Use the file of tokens and the store. Raises what is wrong with them."
        TokenFile(self.settings.token_file).tokens()
        backend = self.pool.store().backend
        backend.position()
        if not self._read_only:
            backend.db.check_writable()

    def close(self) -> None:
        "Close the store, and send the last spans."
        self.pool.close()
        self.tracer.close()
        if self.access_log is not None:
            self.access_log.close()


def require_right(right: str,  # one of `RIGHTS`
                  ) -> Callable[..., Awaitable[Token]]:
    "Return a dependency: the caller's token, which has this right. It raises `HttpProblem` with 401 or 403."
    async def caller(request: Request, _shown: Annotated[Any, Depends(bearer)], _namespace: Namespace = None) -> Token:
        found: Token | None = request.scope.get("rlm.caller")
        if found is None:
            raise HttpProblem(401, headers={"WWW-Authenticate": "Bearer"})
        if not found.may(right):
            raise HttpProblem(403, f"This token lacks the right {right!r}.", f"Make one that has it: rlm tokens add --right {right}")
        return found
    return caller


WriteCaller = Annotated[Token, Depends(require_right("write"))]


def _parameter_names(dependant: Any) -> set[str]:
    "Return the names that a route knows behind the question mark, those of its dependencies too."
    return {p.alias for p in dependant.query_params}.union(*(_parameter_names(d) for d in dependant.dependencies))


async def known_params_only(request: Request,  # request, its route known
                            ) -> None:
    "Refuse parameters of an address that its route does not have: a dependency. Raises `RequestValidationError`."
    if not request.query_params:
        return
    known = _parameter_names(request.scope["route"].dependant)
    if unknown := [n for n in request.query_params if n not in known]:
        raise RequestValidationError([
            {"type": "extra_forbidden", "loc": ("query", n), "input": None,
             "msg": f"There is no such parameter. {suggest(n, known or ['none'], remedies=True)}"} for n in unknown])


def json_response(value: Any,                             # value that JSON can hold
                  status: int = 200,                      # status code of HTTP
                  headers: Mapping[str, str] | None = None,  # headers beside the usual ones
                  ) -> Response:
    "Return an answer of JSON. It is written as it is, not validated: the tests hold it to the contract."
    return Response(to_json(value), status, headers, media_type="application/json")


def memory_response(record: MemoryRecord,  # a memory
                    status: int = 200,     # status code of HTTP
                    **more: Any,           # further fields of the answer
                    ) -> Response:
    "Return a memory with its version as entity tag (`ETag`); one that was made just now with its address, too."
    place = {"Location": f"/v1/memories/{quote(record.id, safe='')}"} if status == 201 else {}
    return json_response(memory_dict(record) | more, status, {"ETag": f'"{record.version}"'} | place)


@dataclass(frozen=True, slots=True)
class Call:
    "A request that is to be served: who calls, and the open memory of the caller's namespace."

    service: Service  # memories, metrics and spans
    caller: Token  # token of the request
    memory: Memory  # open namespace

    @property
    def provenance(self) -> dict[str, str]:
        "Return where a memory comes from that this caller writes."
        return {"source": "rest", "caller": self.caller.id}


@dataclass(frozen=True)
class Route:
    "A method and a path, and what answers there."

    method: str  # GET, POST …
    path: str  # path, such as /v1/memories/{id}
    function: Callable[..., Any]  # function of a `Call` and of what the request holds
    right: str  # right that the caller must have
    span: str  # name of the span that is put around a call; empty: none, or the function makes it
    options: Mapping[str, Any]  # options that FastAPI is given beside that

    def answer(self,
               service: Service,          # memories, metrics and spans
               caller: Token,             # token of the request
               given: Mapping[str, Any],  # values that the request holds
               ) -> Response:
        "Call the function, and return what it returns as an answer. Raises what it raises."
        status: int = self.options["status_code"]
        with service.pool.use(caller.namespace) as memory:
            if self.span:
                with service.tracer.span(self.span):
                    found = self.function(Call(service, caller, memory), **given)
            else:
                found = self.function(Call(service, caller, memory), **given)
        if isinstance(found, Response):
            return found
        if isinstance(found, MemoryRecord):
            return memory_response(found, status)
        return json_response(found.as_dict() if hasattr(found, "as_dict") else found, status)

    def endpoint(self, service: Service) -> Callable[..., Response]:
        "Return the function as FastAPI takes it: of what the request holds and the caller."
        def endpoint(*, caller: Token, **given: Any) -> Response:
            return self.answer(service, caller, given)
        mine = [p.replace(kind=Parameter.KEYWORD_ONLY) for p in [*signature(self.function, eval_str=True).parameters.values()][1:]]
        who = Parameter("caller", Parameter.KEYWORD_ONLY, annotation=Annotated[Token, Depends(require_right(self.right))])
        endpoint.__signature__ = signature(endpoint).replace(parameters=[*mine, who])  # type: ignore[attr-defined]
        return endpoint

    def body(self) -> type[BaseModel] | None:
        "Return the model of the body, where the function takes nothing else, so that there is a short way to it."
        others = [*signature(self.function, eval_str=True).parameters.values()][1:]
        return others[0].annotation if self.method == "POST" and [p.name for p in others] == ["body"] else None


class Routes:
    "A table of routes of one subject."

    def __init__(self,
                 prefix: str,  # beginning of all paths
                 tag: str,     # subject, as the OpenAPI page groups routes
                 ) -> None:
        self.prefix, self.tag, self.routes = prefix, tag, list[Route]()

    def add(self,
            method: str,       # GET, POST …
            path: str,         # rest of the path
            name: str,         # schema of the answer
            *problems: int,    # status codes of errors, beside those that every route has
            right: str = "",   # right that the caller must have; empty: read for GET, else write
            span: str = "",    # name of the span that is put around a call
            earlier: str = "",  # another path of the same route, of an earlier edition
            **more: Any,       # arguments of `answers`
            ) -> Callable[[Callable[..., Any]], Route]:
        "Return a decorator that puts a function into the table, and makes a `Route` of it."
        def put(function: Callable[..., Any]) -> Route:
            about = {"name": function.__name__, "description": getdoc(function), "tags": [self.tag], **answers(name, *problems, **more)}
            made = Route(method, self.prefix + path, function, right or ("read" if method == "GET" else "write"), span, about)
            self.routes.append(made)
            if earlier:
                old = {"name": earlier.rsplit("/", 1)[-1], "description": f"Another name of `{method} {made.path}`.", "deprecated": True}
                self.routes.append(replace(made, path=earlier, options={**about, **old}))
            return made
        return put


class DirectRequests:
    "An ASGI application behind the gateway that answers ordinary requests by itself, and leaves all others to another application."

    def __init__(self,
                 app: App,                # application that answers all others
                 service: Service,        # memories, metrics and spans
                 routes: Iterable[Route],  # routes of the application
                 ) -> None:
        self.app, self.service = app, service
        self.calls = {route.path: (route, model) for route in routes if (model := route.body()) is not None}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        "Serve one request. Raises what the route's function raises."
        found = self.calls.get(scope["path"]) if scope["type"] == "http" and scope["method"] == "POST" else None
        caller: Token | None = scope.get("rlm.caller")
        if found is None or caller is None or not caller.may(found[0].right) or scope["query_string"] or header(scope, b"idempotency-key"):
            return await self.app(scope, receive, send)
        (route, model), data = found, (await receive())["body"]
        try:
            body = model.model_validate_json(data)
        except (ValueError, RecursionError):
            return await self.app(scope, replay_body(data, receive), send)
        scope["route"] = route  # its path is what figures and spans name
        work = asyncio.get_running_loop().run_in_executor(_threads, copy_context().run, route.answer, self.service, caller, {"body": body})
        answer: Any = await work
        await send({"type": "http.response.start", "status": answer.status_code, "headers": answer.raw_headers})
        await send({"type": "http.response.body", "body": answer.body})


def install(app: FastAPI,            # application
            service: Service,        # memories, metrics and spans
            routes: Iterable[Route],  # routes to answer
            ) -> None:
    "Have an application answer routes, and document them. An unknown parameter of an address is refused."
    for route in routes:
        app.add_api_route(route.path, route.endpoint(service), methods=[route.method], dependencies=[Depends(known_params_only)],
                          **route.options)
