"""Runs of the agent: the answer is a stream of events, for a run takes seconds."""

import asyncio
import json
import threading
import time
from collections.abc import AsyncIterator
from importlib.util import find_spec
from typing import Any

from fastapi import APIRouter, Depends, Response
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import StreamingResponse

from rlm.core.errors import NotFound, suggest
from rlm.service.advice import MemoryAdvisor

from .errors import HttpProblem, log_problem
from .routing import Service, WriteCaller, known_params_only
from .schemas import Label, Question, RequestModel, about, problem_responses

MAX_RUNS = 2  # runs at a time; each keeps a processor busy
RUN_S = 60.0  # seconds that a run may take
TICK_S = 1.0  # seconds between two events of progress
AGENT_PACKAGES = ("pyoxigraph", "pydantic_monty")  # packages of the extra `agent`; without them the route is not there
RESULT = ("answer", "converged", "judgment", "model", "iterations", "run_id", "reason")  # fields of a run in the event `result`
EXAMPLE = 'event: progress\ndata: {"seconds": 1.0}\n\nevent: result\ndata: {"answer": "Communicate, Create", "converged": true}\n\n'
STREAM: dict[int | str, dict[str, Any]] = {200: {"description": "Events: `progress` once a second, then `result` or `error`",
                                                 "content": {"text/event-stream": {"schema": {"type": "string"}, "example": EXAMPLE}}}}


class RunBody(RequestModel):
    "A question to the agent."

    question: Question = about("The question, in any language", "Find all subclasses of Activity")
    ontology: Label = about("The name of a bundled ontology", "prov")


def server_event(kind: str,  # name of the event
                 data: Any,  # its contents
                 ) -> str:
    "Return an event as it goes over the wire."
    return f"event: {kind}\ndata: {json.dumps(data, ensure_ascii=False)}\n\n"


def agent_available() -> bool:
    "Return whether what a run needs is installed."
    return all(find_spec(package) is not None for package in AGENT_PACKAGES)


def ontology_file(name: str,  # name of a bundled ontology
                  ) -> Any:
    "Return the file of a bundled ontology; other files are the server's. Raises `NotFound`."
    from rlm.agent.ontology.rdf_client import bundled
    if name not in (ours := bundled()):
        raise NotFound(f"There is no ontology {name[:60]!r}.", suggest(name, ours))
    return ours[name]


def run_agent(service: Service,  # memories, metrics and spans
              namespace: str,    # the partition that the run learns in
              question: str,     # question to the agent
              source: Any,       # file of the ontology
              ) -> dict[str, Any]:
    "Run the agent in the store of the server, and return `RESULT`. Raises what `run` raises."
    from rlm.agent import RunLimits, run
    with service.pool.use(namespace) as memory, service.tracer.span("agent.run"):
        given = memory.settings
        found = run(question, source, given.db_path, model=given.model, namespace=namespace, clock=memory.clock,
                    limits=RunLimits(seconds=RUN_S), advisor=MemoryAdvisor(memory)).as_dict()
    return {name: found[name] for name in RESULT}


async def run_events(work: "asyncio.Future[dict[str, Any]]",  # run that is under way
                     ) -> AsyncIterator[str]:
    "Yield progress once a second until the run is over, then its result, or the problem that ended it."
    begun = time.monotonic()
    while not (await asyncio.wait([work], timeout=TICK_S))[0]:
        yield server_event("progress", {"seconds": round(time.monotonic() - begun, 1)})
    error = work.exception()
    if error is None:
        yield server_event("result", work.result())
    elif isinstance(error, Exception):
        yield server_event("error", log_problem(error).content)
    else:
        raise error


def agent_routes(service: Service,  # memories, metrics and spans
                 ) -> APIRouter:
    "Return the route that runs the agent; none where what it needs is not installed."
    routes, places = APIRouter(prefix="/v1/agent", tags=["agent"], dependencies=[Depends(known_params_only)]), threading.Semaphore(MAX_RUNS)
    if not agent_available():
        return routes

    def work(body: RunBody, namespace: str, source: Any) -> dict[str, Any]:
        try:
            return run_agent(service, namespace, body.question, source)
        finally:
            places.release()

    @routes.post("/runs", responses=problem_responses(404, 507) | STREAM, response_class=StreamingResponse)
    async def create_run(body: RunBody, caller: WriteCaller) -> Response:
        "Have the agent answer a question about an ontology, and learn from it. It goes on, 60 s at most, when the caller has gone."
        source = await run_in_threadpool(ontology_file, body.ontology)
        if not places.acquire(blocking=False):
            raise HttpProblem(503, f"{MAX_RUNS} runs are under way.", "Try again a little later.", {"Retry-After": "5"})
        running = asyncio.ensure_future(asyncio.to_thread(work, body, caller.namespace, source))
        return StreamingResponse(run_events(running), media_type="text/event-stream")
    return routes
