"""Runs of the agent: the answer is a stream of events, for a run takes seconds."""

import asyncio
import json
import threading
import time
from collections.abc import AsyncIterator
from typing import Any

from fastapi import APIRouter, Depends, Response
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import StreamingResponse

from rlm.service.advice import TICK_S, agent_available, bundled_ontology, run_agent

from .errors import HttpProblem, log_problem
from .routing import Service, WriteCaller, known_params_only
from .schemas import Label, Question, RequestModel, about, problem_responses

MAX_RUNS = 2  # runs at a time; each keeps a processor busy
EXAMPLE = 'event: progress\ndata: {"seconds": 1.0}\n\nevent: result\ndata: {"answer": "Communicate, Create", "converged": true}\n\n'
STREAM: dict[int | str, dict[str, Any]] = {200: {"description": "Events: `progress` once a second, then `result` or `error`",
                                                 "content": {"text/event-stream": {"schema": {"type": "string"}, "example": EXAMPLE}}}}


class RunBody(RequestModel):
    "A question to the agent."

    question: Question = about("The question, in any language", "Find all subclasses of Activity")
    ontology: Label = about("The name of a bundled ontology", "prov")


def _server_event(kind: str, data: Any) -> str:
    "Return an event as it goes over the wire."
    return f"event: {kind}\ndata: {json.dumps(data, ensure_ascii=False)}\n\n"


async def _run_events(work: "asyncio.Future[dict[str, Any]]") -> AsyncIterator[str]:
    "Yield progress once a second until the run is over, then its result, or the problem that ended it."
    begun = time.monotonic()
    while not (await asyncio.wait([work], timeout=TICK_S))[0]:
        yield _server_event("progress", {"seconds": round(time.monotonic() - begun, 1)})
    error = work.exception()
    if error is None:
        yield _server_event("result", work.result())
    elif isinstance(error, Exception):
        yield _server_event("error", log_problem(error).content)
    else:
        raise error


def agent_routes(service: Service) -> APIRouter:
    "Return the route that runs the agent; none where what it needs is not installed."
    routes, places = APIRouter(prefix="/v1/agent", tags=["agent"], dependencies=[Depends(known_params_only)]), threading.Semaphore(MAX_RUNS)
    if not agent_available():
        return routes

    def work(body: RunBody, namespace: str, source: Any) -> dict[str, Any]:
        try:
            with service.pool.use(namespace) as memory, service.tracer.span("agent.run"):
                return run_agent(memory, body.question, source)
        finally:
            places.release()

    @routes.post("/runs", responses=problem_responses(404, 507) | STREAM, response_class=StreamingResponse)
    async def create_run(body: RunBody, caller: WriteCaller) -> Response:
        "Have the agent answer a question about an ontology, and learn from it. It goes on, 60 s at most, when the caller has gone."
        source = await run_in_threadpool(bundled_ontology, body.ontology)
        if not places.acquire(blocking=False):
            raise HttpProblem(503, f"{MAX_RUNS} runs are under way.", "Try again a little later.", {"Retry-After": "5"})
        running = asyncio.ensure_future(asyncio.to_thread(work, body, caller.namespace, source))
        return StreamingResponse(_run_events(running), media_type="text/event-stream")
    return routes
