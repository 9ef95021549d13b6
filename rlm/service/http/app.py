"""The application: all routes, errors in one shape, the OpenAPI page, and the gateway before them."""

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from importlib.util import find_spec
from typing import Any

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.openapi.utils import get_openapi
from pydantic import BaseModel
from starlette.exceptions import HTTPException

from rlm.core.errors import RlmError, nearest, suggest
from rlm.service.answer_schemas import read_schemas

from . import companion_routes, memory_routes, routes
from .agent_routes import agent_routes
from .pages import content_security_policy, docs_page, docs_policy, read_page
from .errors import HttpProblem, log_problem, problem_of
from .idempotency import CHANGING_METHODS, MAX_KEY, IdempotentRequests
from .middleware import BODY_METHODS, OPEN_PATHS, App, Gateway, GatewayConfig, Observer, served_names
from .routing import DirectRequests, Service, install
from .schemas import FilterFields, TurnBody, WriteBody, error_location, problem_responses
from .tokens import GUEST, Token, TokenFile
from .telemetry import TracingMiddleware, route_namer

TABLES = (memory_routes.everything, routes.searching, memory_routes.one, memory_routes.links, memory_routes.talks, *companion_routes.TABLES,
          companion_routes.rules, routes.looking, routes.attention)
NESTED: dict[str, type[BaseModel]] = {"filters": FilterFields, "turns": TurnBody, "line": WriteBody}  # where an error is → model there
ROUTES = [route for table in TABLES for route in table.routes]


def _problem_response(problem: HttpProblem) -> Response:
    "Return an error as FastAPI answers it."
    return Response(problem.body(), problem.status, problem.headers, media_type="application/problem+json")


def _body_fields(route: Any) -> list[str]:
    "Return the names of the fields that the body of a route has; none where it has no body of its own."
    found = [p.field_info.annotation for p in getattr(getattr(route, "dependant", None), "body_params", ())]
    return sorted(name for model in found for name in getattr(model, "model_fields", ()))


def _told_error(error: Mapping[str, Any], known: Sequence[str]) -> dict[str, str]:
    "Return the place of an error and what is wrong there, in words that help the caller."
    place, what = error["loc"], error["msg"]
    if error["type"] == "json_invalid":
        return {"where": f"character {place[-1]}", "what": f"The body is no JSON: {error.get('ctx', {}).get('error', what)}"}
    if error["type"] == "extra_forbidden" and place[0] == "body":
        inner = NESTED.get(str(place[1]).split(" ")[0])
        fields = known if len(place) == 2 else inner.model_fields if inner else ()
        what = "There is no such field." + (f" {suggest(str(place[-1]), fields, remedies=True)}" if fields else "")
    return {"where": error_location(place), "what": what}


def _handle_errors(app: FastAPI) -> None:
    "Have the application answer errors as problems. What a caller sent is not sent back: the place of an error and its kind are enough."
    @app.exception_handler(RequestValidationError)
    async def malformed(request: Request, error: Any) -> Response:
        known = _body_fields(request.scope.get("route"))
        found = [_told_error(e, known) for e in error.errors()[:20]]
        return _problem_response(HttpProblem(422, "Some of it is missing, unknown or out of range.", errors=found))

    @app.exception_handler(RlmError)
    async def ours(_request: Request, error: Any) -> Response:
        return _problem_response(log_problem(error))

    @app.exception_handler(HttpProblem)
    async def refused(_request: Request, error: Any) -> Response:
        return _problem_response(error)

    @app.exception_handler(Exception)
    async def failed(_request: Request, error: Any) -> Response:
        return _problem_response(problem_of(error))

    @app.exception_handler(HTTPException)
    async def http(request: Request, error: Any) -> Response:
        path, detail, hint, headers = request.scope["path"], "", "", error.headers
        if error.status_code == 405:
            there = served_methods(request.app)(path)
            detail, headers = f"{request.method} is not served at this path.", {"Allow": ", ".join(there)}
            changes = request.method == "PUT" and "PATCH" in there
            hint = f"Served here: {', '.join(there)}.{' PATCH changes some fields.' if changes else ''}"
        elif error.status_code == 404:
            near = nearest(path, [p for p in request.app.openapi()["paths"] if "{" not in p])
            detail, hint = "Nothing is served at this path.", f"{f'Did you mean {near}? ' if near else ''}GET /docs lists what is."
        elif error.status_code == 400:
            detail = "The body can't be read as JSON."
        return _problem_response(HttpProblem(error.status_code, detail, hint, headers))


def served_methods(app: FastAPI,  # application
                   ) -> Callable[[str], list[str]]:
    "Return a function that gives the methods that are served at a path; none where nothing is."
    paths = app.openapi()["paths"]
    name = route_namer(paths)
    return lambda path: sorted(method.upper() for method in paths.get(name(path), ()))


TAGS = {"memories": "What is remembered: one memory, or all of them a page at a time.",
        "search": "Questions, and the memories that answer them.",
        "links": "Links between two memories.",
        "conversations": "Turns of a conversation, stored together and read in order.",
        "review": "What a person corrects: proposals that wait, and what was rejected for good.",
        "looking around": "What lies around a memory, and when things were said.",
        "anchors": "Three places of attention, near which a search or a write can take place.",
        "rules": "What to do when: rules that are added, applied to a situation, and judged by how they did.",
        "agent": "Questions about an ontology, answered by a run of the agent.",
        "upkeep": "Whether the server lives, and its figures."}
DESCRIPTION = ("Requests and answers are JSON. A token opens one namespace or more (`Authorization: Bearer …`, `Rlm-Namespace` for another "
               "than its first). Errors are `application/problem+json`. An unknown field or parameter is an error. HEAD is answered "
               "wherever GET is.")
IDEMPOTENCY_KEY = {"name": "Idempotency-Key", "in": "header", "required": False, "description":
                   "A fresh key for each request, such as a UUID. The same request again under the same key gets the same answer, and is "
                   "not done twice", "schema": {"type": "string", "minLength": 1, "maxLength": MAX_KEY, "pattern": "^[!-~]+$",
                                            "examples": ["5a1f0c8e-6b0e-4c39-9a55-0d6f2f8f7d11"]}}


LINKED = {"MemoryOut": ("/v1/memories/{id}", "id"), "RuleOut": ("/v1/rules/{id}", "rule_id"),  # schema of an answer → its path, its field
          "RejectionOut": ("/v1/review/rejections/{id}", "id"), "ConversationOut": ("/v1/conversations/{session}", "session")}


def _link_answers(paths: Mapping[str, Mapping[str, dict[str, Any]]]) -> None:
    "Add to each answer that names a memory, a rule, a rejection or a conversation the links to what can be done with it."
    there = {schema: [route["operationId"] for path, routes in paths.items() if path.startswith(place) and path.count("{") == 1
                      for route in routes.values()] for schema, (place, _) in LINKED.items()}
    for answer in [a for path in paths.values() for route in path.values() for a in route["responses"].values()]:
        schema = next((c.get("schema", {}).get("$ref", "") for c in answer.get("content", {}).values()), "").rpartition("/")[2]
        if schema in LINKED:
            place, field = LINKED[schema]
            named = {place[place.rindex("{") + 1:-1]: f"$response.body#/{field}"}
            answer["links"] = {name: {"operationId": name, "parameters": named} for name in there[schema]}


def _openapi_page(app: FastAPI) -> Callable[[], dict[str, Any]]:
    "Return a function that gives the OpenAPI page, with the shape of errors in it; the page is made once."
    def openapi() -> dict[str, Any]:
        if app.openapi_schema is None:
            page = get_openapi(title=app.title, version=app.version, summary=app.summary, description=DESCRIPTION, routes=app.routes,
                               tags=[{"name": name, "description": about} for name, about in TAGS.items()])
            schemas = page["components"]["schemas"]
            for unused in ("HTTPValidationError", "ValidationError"):
                schemas.pop(unused, None)
            schemas |= read_schemas("answers.yaml")
            for path in page["paths"].values():
                for method, route in path.items():
                    if method.upper() in CHANGING_METHODS:
                        route.setdefault("parameters", []).append(IDEMPOTENCY_KEY)
                        route["responses"] |= {str(s): found for s, found in problem_responses(409, basis=()).items()}
                    if "422" in route["responses"]:
                        route["responses"]["422"] = dict(problem_responses(422)[422])
            _link_answers(page["paths"])
            app.openapi_schema = page
        return app.openapi_schema
    return openapi


def _serve_page(app: FastAPI, path: str, page: str, headers: Mapping[str, str]) -> None:
    "Have the application answer a path with a page for people."
    @app.get(path, include_in_schema=False)
    async def html() -> Response:
        return Response(page, headers=headers, media_type="text/html; charset=utf-8")


def application(service: Service) -> FastAPI:
    "Return the routes, without the gateway."
    from rlm import __version__

    from ..nights import night_thread  # here, as it loads the rules
    nightly = night_thread(service.pool.store, service.settings)

    @asynccontextmanager
    async def life(_app: FastAPI) -> AsyncIterator[None]:
        nightly.start()
        yield
        nightly.stop()
        service.close()

    app = FastAPI(title="rlm", version=__version__, summary="Long-term memory for language-model agents", docs_url=None, redoc_url=None,
                  lifespan=life, telemetry={"tracing": False, "metrics": False, "logs": False}, redirect_slashes=False,
                  generate_unique_id_function=lambda route: route.name)
    _handle_errors(app)
    app.include_router(memory_routes.bulk_routes(service))
    install(app, service, ROUTES)
    for others in (agent_routes, routes.upkeep_routes):
        app.include_router(others(service))
    app.openapi = _openapi_page(app)  # type: ignore[method-assign]
    for path, page, policy in (("/", read_page(), content_security_policy), ("/docs", docs_page(app.openapi()), docs_policy)):
        _serve_page(app, path, page, {"Content-Security-Policy": policy(page)})
    return app


def guarded_application(service: Service,                 # memories, metrics and spans
                        tokens: TokenFile | None = None,  # None, or a file that does not exist: callers need no token
                        ) -> TracingMiddleware:
    "Return the routes behind the gateway, with a span around each request."
    settings = service.settings
    guest = Token(GUEST, settings.namespace, ("admin",))
    api = application(service)
    served, beside = served_methods(api), dict[str, tuple[str, ...]]()
    config = GatewayConfig(tokens, guest, served_names(settings), settings.serve_max_body, settings.serve_rate,
                           methods=lambda path: served(path) or beside.get(path, ()))
    app: App = IdempotentRequests(api)
    paths = [*OPEN_PATHS, *api.openapi()["paths"]]
    if find_spec("mcp") is not None:  # an extra of its own
        from rlm.service.mcp.http import PATH, with_mcp
        app = with_mcp(app, service.pool, settings.serve_max_body)
        paths.append(PATH)
        beside[PATH] = BODY_METHODS
    app = DirectRequests(app, service, ROUTES)
    observers: list[Observer] = [service.metrics.count_request]
    if service.access_log is not None:
        observers.append(service.access_log)
    return TracingMiddleware(Gateway(app, config, observers, route=route_namer(paths)), service.tracer)
