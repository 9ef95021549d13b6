"""The short way to a route of a body and a caller: the most frequent requests, without FastAPI's layers and its solving of dependencies.

FastAPI documents such a route as any other and answers whatever is out of the ordinary: a body that is no JSON or does not fit, a right
that is missing, an `Idempotency-Key`. What is in order is parsed by the same model and goes straight to the route's function, in a thread.
"""

import asyncio
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from dataclasses import dataclass
from inspect import iscoroutinefunction, signature
from typing import Any

from fastapi import APIRouter, Response
from fastapi.routing import APIRoute
from pydantic import BaseModel, ValidationError

from .middleware import App, Receive, Scope, Send, header, replay_body
from .tokens import Token

THREADS = 16  # requests that are worked on at once; each search holds the interpreter, so that more of them only wait for one another
_threads = ThreadPoolExecutor(THREADS, "rlm-request")


@dataclass(frozen=True)
class DirectCall:
    "What a route of a body and a caller needs to be called."

    route: APIRoute  # route as FastAPI has it
    model: type[BaseModel]  # model of its body
    right: str  # right that its caller must have


def direct_calls(routers: Iterable[APIRouter],  # routes of an application
                 ) -> Iterator[tuple[str, DirectCall]]:  # path, call
    "Yield the POST routes whose functions take `body` and `caller` alone, wait for nothing and return a whole answer."
    for route in (r for router in routers for r in router.routes if isinstance(r, APIRoute)):
        shape = signature(route.endpoint, eval_str=True)
        if (route.methods == {"POST"} and list(shape.parameters) == ["body", "caller"] and shape.return_annotation is Response
                and not iscoroutinefunction(route.endpoint)):
            (depends,) = shape.parameters["caller"].annotation.__metadata__
            yield route.path, DirectCall(route, shape.parameters["body"].annotation, depends.dependency.right)


class DirectRequests:
    "An ASGI application behind the gateway that answers ordinary requests by itself, and leaves all others to another application."

    def __init__(self,
                 app: App,                         # application that answers all others
                 calls: dict[str, DirectCall],     # path → call
                 ) -> None:
        self.app, self.calls = app, calls

    async def __call__(self,
                       scope: Scope,      # connection scope of ASGI, its caller known
                       receive: Receive,  # source of the body, which is there as a whole
                       send: Send,        # sink of the answer
                       ) -> None:
        "Serve one request. Raises what the route's function raises."
        call = self.calls.get(scope["path"]) if scope["type"] == "http" and scope["method"] == "POST" else None
        caller: Token | None = scope.get("rlm.caller")
        if (call is None or caller is None or not caller.may(call.right) or scope["query_string"] or header(scope, b"idempotency-key")):
            return await self.app(scope, receive, send)
        data: bytes = (await receive())["body"]
        try:
            body = call.model.model_validate_json(data)
        except (ValidationError, ValueError, RecursionError):
            return await self.app(scope, replay_body(data, receive), send)
        scope["route"] = call.route  # its path is what figures and spans name
        function: Callable[..., Response] = call.route.endpoint
        work = asyncio.get_running_loop().run_in_executor(_threads, copy_context().run, function, body, caller)
        answer: Any = await work
        await send({"type": "http.response.start", "status": answer.status_code, "headers": answer.raw_headers})
        await send({"type": "http.response.body", "body": answer.body})
