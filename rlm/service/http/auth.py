"""Which right a route takes: dependencies of FastAPI that give a route its caller.

The gateway has found out who calls and put the token into the scope. A route that no gateway guards answers 401.
"""

from collections.abc import Awaitable, Callable
from typing import Annotated, Any

from fastapi import Depends, Header, Request
from fastapi.security import HTTPBearer

from .errors import HttpProblem
from .tokens import Token

bearer = HTTPBearer(auto_error=False, description="A token of `rlm tokens add`. On loopback none is needed unless there is a token file.")
Namespace = Annotated[str | None, Header(alias="Rlm-Namespace", max_length=512, description="The token's namespace; any other is refused")]


def require_right(right: str,  # one of `RIGHTS`
                  ) -> Callable[..., Awaitable[Token]]:
    "Return a dependency: the caller's token, which has this right. It raises `HttpProblem` with 401 or 403."
    async def caller(request: Request, _shown: Annotated[Any, Depends(bearer)], _namespace: Namespace = None) -> Token:
        found: Token | None = request.scope.get("rlm.caller")
        if found is None:
            raise HttpProblem(401, headers={"WWW-Authenticate": "Bearer"})
        if not found.may(right):
            raise HttpProblem(403, f"This token does not have the right to {right}.")
        return found
    caller.right = right  # type: ignore[attr-defined]  # for routes that are answered directly
    return caller


ReadCaller = Annotated[Token, Depends(require_right("read"))]
AdminCaller = Annotated[Token, Depends(require_right("admin"))]
WriteCaller = Annotated[Token, Depends(require_right("write"))]
MetricsCaller = Annotated[Token, Depends(require_right("metrics"))]
