"""The short way to a route of a body and a caller: the most frequent requests, without FastAPI's solving of dependencies.

FastAPI documents such a route as any other and answers whatever is out of the ordinary: a body that is no JSON or does not fit, a right
that is missing. What is in order is parsed by the same model and goes straight to the route's function, in a thread.
"""

import asyncio
import json
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from inspect import signature
from typing import Any

from fastapi import Request, Response
from fastapi.routing import APIRoute
from pydantic import BaseModel, ValidationError

from .tokens import Token

THREADS = 16  # requests that are worked on at once; each search holds the interpreter, so that more of them only wait for one another
Handler = Callable[[Request], Coroutine[Any, Any, Response]]
_threads = ThreadPoolExecutor(THREADS, "rlm-request")


class DirectRoute(APIRoute):
    "A route whose function takes `body` and `caller` alone, with a right of `require_right`."

    def get_route_handler(self) -> Handler:
        "Return what answers a request."
        usual, function = super().get_route_handler(), self.endpoint
        model, right = body_and_right(function)

        async def answer(request: Request) -> Response:
            caller: Token | None = request.scope.get("rlm.caller")
            kind = request.headers.get("content-type", "")
            if caller is None or not caller.may(right) or kind.partition(";")[0].strip().lower() != "application/json":
                return await usual(request)
            try:
                body = model.model_validate(json.loads(await request.body()))
            except (ValidationError, ValueError, RecursionError):
                return await usual(request)
            found: Response = await asyncio.get_running_loop().run_in_executor(_threads, copy_context().run, function, body, caller)
            return found
        return answer


def body_and_right(function: Callable[..., Any],  # function of a route
                   ) -> tuple[type[BaseModel], str]:
    "Return the model of its body, and the right that its caller must have."
    parameters = signature(function, eval_str=True).parameters
    if list(parameters) != ["body", "caller"]:
        raise TypeError(f"{function.__name__} takes {', '.join(parameters)}: a direct route takes body and caller.")
    (depends,) = parameters["caller"].annotation.__metadata__
    return parameters["body"].annotation, depends.dependency.right
