"""The routes of the server, over `Memory`.

An id may have any letter in it, slashes too: it comes quoted, and is one name of the path until a route reads it.
What stands behind the question mark is checked as strictly as a body is: with `sesion=` passed over, a caller would
be shown every conversation and take it for one.
"""

import math
import time
from collections.abc import Mapping
from typing import Annotated, Any
from urllib.parse import unquote

from fastapi import APIRouter, Depends, Path, Query, Request, Response
from fastapi.exceptions import RequestValidationError
from pydantic import AfterValidator
from pydantic_core import to_json

from rlm.core.clock import to_iso
from rlm.core.errors import RlmError
from rlm.core.settings import Settings
from rlm.core.text import clip
from rlm.recall.anchors import AnchorManager
from rlm.service.memory import Memory
from rlm.service.results import SearchResults

from .access_log import AccessLog
from .auth import MetricsCaller, ReadCaller, WriteCaller
from .errors import HttpProblem, is_out_of_files
from .explorer import content_security_policy, read_page
from .metrics import Metrics
from .pool import MemoryPool
from .schemas import WITHOUT_TOKEN, AnchorBody, Label, RecallBody, SearchBody, Slot, Time, answers, json_schema, problem_responses
from .tokens import Token
from .tracing import SpanTracer

MAX_NODES = 120  # memories in a picture of a neighbourhood
ANCHOR_FIELDS = ("slot", "summary", "pinned", "hop_budget", "uses", "failures", "in_use")  # named alike in the state of an anchor
SNIPPET = 160  # characters of a text that a picture or a list shows
READY_AGE_S = 1.0  # seconds for which the answer of /health is kept: anyone may ask, so the store is read once a second at most
Name = Annotated[str, Query(min_length=1, max_length=512)]
QuotedId = Annotated[str, AfterValidator(unquote), Path(description="A name, quoted: `a/b` is `a%2Fb`")]


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
        self._ready_age_s, self._ready, self._asked = ready_age_s, False, -math.inf

    def ready(self) -> bool:
        "Whether the store answers, or did a moment ago."
        if time.monotonic() - self._asked >= self._ready_age_s:
            self._ready, self._asked = self._answers(), time.monotonic()
        return self._ready

    def _answers(self) -> bool:
        "Whether the store answers now."
        try:
            self.pool.store().backend.position()
        except Exception as e:
            if isinstance(e, RlmError) or is_out_of_files(e):
                return False
            raise
        return True

    def close(self) -> None:
        "Close the store, and send the last spans."
        self.pool.close()
        self.tracer.close()
        if self.access_log is not None:
            self.access_log.close()


def json_response(value: Mapping[str, Any],  # contents, as the contract has them
                  status: int = 200,         # status code of HTTP
                  headers: Mapping[str, str] | None = None,  # headers beside its type and length
                  ) -> Response:
    "Return an answer as JSON. It is not validated: the tests hold it to the contract."
    return Response(to_json(value), status, headers, media_type="application/json")


def hit_dicts(hits: SearchResults,  # result of a search
              ) -> list[dict[str, Any]]:
    "Return the hits as `HitOut`."
    return [{"layer": hits.source, "path": [], "shares": {term: dict(share) for term, share in h.parts.items()}} | h.as_dict()
            for h in hits]


def search_response(hits: SearchResults,  # result of a search
                    namespace: str,     # the partition that was searched
                    seconds: float,     # duration of the search
                    ) -> dict[str, Any]:
    "Return the result of a search as `SearchOut`."
    return {"query": hits.query, "namespace": namespace, "source": hits.source, "ranked_by": hits.ranked_by,
            "hits": hit_dicts(hits), "search_time_ms": round(1000 * seconds, 3)}


def recall_response(recalled: Mapping[str, Any],  # result of `Memory.intelligent_search`
                    namespace: str,               # the partition that was searched
                    ) -> dict[str, Any]:
    "Return the result of a recall as `RecallOut`."
    hits: SearchResults = recalled["results"]
    return {"query": hits.query, "namespace": namespace, "ranked_by": hits.ranked_by, **recalled, "results": hit_dicts(hits)}


def layer_of(hits: SearchResults,  # result of a search
             ) -> str:
    "Return what answered: the layer of the first hit, or the source of all."
    return (hits[0].layer if len(hits) else "") or hits.source


def search_routes(service: Service,  # memories, metrics and spans
                  ) -> APIRouter:
    "Return the routes that search."
    routes = APIRouter(prefix="/v1", tags=["search"])

    def search(body: SearchBody, caller: Token) -> Response:
        if body.slot is not None and not caller.may("write"):
            raise HttpProblem(403, "A search near an anchor may move it, and this token does not have the right to write.",
                              "Leave out slot.")
        with service.pool.use(caller.namespace) as memory, service.tracer.span("memory.search", slot=body.slot or "") as span:
            begun = time.perf_counter()
            hits = memory.search(body.query, body.count(), slot=body.slot, radius=body.radius, fallback=body.fallback, context=body.context,
                                 min_score=body.min_score, **body.filters.given())
            seconds = time.perf_counter() - begun
            memory.searcher.record(hits, "rest", caller.id)
            if span is not None:
                span.set_attributes({"rlm.hits": len(hits), "rlm.layer": layer_of(hits)})
        service.metrics.count_search(layer_of(hits), seconds)
        return json_response(search_response(hits, caller.namespace, seconds))

    @routes.post("/memories:search", **answers("SearchOut"))
    def search_memories(body: SearchBody, caller: ReadCaller) -> Response:
        "The memories that answer a question best. It changes nothing, unless it names a slot: then the anchor may move."
        return search(body, caller)

    @routes.post("/search", **answers("SearchOut"), deprecated=True)
    def search_as_earlier(body: SearchBody, caller: ReadCaller) -> Response:
        "Another name of `POST /v1/memories:search`."
        return search(body, caller)
    return routes


def recall_routes(service: Service,  # memories, metrics and spans
                  ) -> APIRouter:
    "Return the route that searches with attention. A recall moves attention, and what is in mind is kept: it takes the right to write."
    routes = APIRouter(prefix="/v1", tags=["search"])

    @routes.post("/recall", **answers("RecallOut"))
    def recall(body: RecallBody, caller: WriteCaller) -> Response:
        "The memories that answer a question best, from what is in mind if that is enough. It moves attention."
        with service.pool.use(caller.namespace) as memory, service.tracer.span("memory.recall") as span:
            begun = time.perf_counter()
            recalled = memory.intelligent_search(body.query, body.count(), **body.filters.given())
            memory.searcher.record(recalled["results"], "rest", caller.id)
            if span is not None:
                span.set_attributes({"rlm.hits": recalled["result_count"], "rlm.layer": recalled["source"]})
        service.metrics.count_search(layer_of(recalled["results"]), time.perf_counter() - begun)
        return json_response(recall_response(recalled, caller.namespace))
    return routes


def parameter_names(dependant: Any,  # FastAPI's description of a route, or of a dependency of it
                    ) -> set[str]:
    "Return the names that a route knows behind the question mark, those of its dependencies too."
    return {p.alias for p in dependant.query_params}.union(*(parameter_names(d) for d in dependant.dependencies))


async def known_params_only(request: Request,  # request, its route known
                            ) -> None:
    "Refuse parameters of an address that its route does not have: a dependency. Raises `RequestValidationError`."
    if not request.query_params:
        return
    known = parameter_names(request.scope["route"].dependant)
    if unknown := [n for n in request.query_params if n not in known]:
        what = "There is no such parameter. Known: " + (", ".join(sorted(known)) or "none") + "."
        raise RequestValidationError([{"type": "extra_forbidden", "loc": ("query", n), "msg": what, "input": None} for n in unknown])


def neighbourhood(memory: Memory,  # open namespace
                  id: str,         # id of the memory in the middle
                  radius: int,     # largest number of links from it
                  limit: int,      # largest number of memories
                  ) -> dict[str, Any]:
    "Return what is around a memory as `NeighboursOut`: nearest first, over the strongest paths. Raises `NotFound`."
    middle = memory.get(id).id
    reached = memory.graph.explore(middle, radius, MAX_NODES + 1)
    hops = {hit.id: hit.hops for hit in reached[:limit]}
    links, cut = dict[tuple[str, str], dict[str, Any]](), len(reached) > limit
    for edge in memory.backend.edges([i for i, h in hops.items() if h < radius], memory.ctx.namespace):  # the strongest first
        if edge.src in hops and edge.dst in hops:
            pair = (min(edge.src, edge.dst), max(edge.src, edge.dst))
            links.setdefault(pair, {"source": edge.src, "target": edge.dst, "weight": edge.weight, "origin": edge.origin})
        else:
            cut = True
    records = memory.backend.get(list(hops), memory.ctx.namespace)
    nodes = [{"id": r.id, "text": clip(r.text, SNIPPET), "kind": r.kind, "valid_from": to_iso(r.valid_from), "hops": hops[r.id]}
             for r in records]
    return {"center": middle, "nodes": nodes, "links": list(links.values()), "cut": cut}


def reading_routes(service: Service,  # memories, metrics and spans
                   ) -> APIRouter:
    "Return the routes that show memories."
    routes = APIRouter(prefix="/v1", tags=["looking around"], dependencies=[Depends(known_params_only)])

    @routes.get("/memories/{id}/neighbours", **answers("NeighboursOut", 404))
    def neighbours(id: QuotedId, caller: ReadCaller, radius: Annotated[int, Query(ge=0, le=3, description="Links away at most")] = 1,
                   limit: Annotated[int, Query(ge=1, le=MAX_NODES, description="Memories at most")] = 60) -> Response:
        "The memories that are linked to it, and theirs, as far as the radius goes."
        with service.pool.use(caller.namespace) as opened:
            return json_response(neighbourhood(opened, id, radius, limit))

    @routes.get("/timeline", **answers("TimelineOut", 404))
    def timeline(caller: ReadCaller, k: Annotated[int, Query(ge=1, le=1000, description="Memories at most")] = 100,
                 since: Annotated[Time | None, Query(description="Only said or true from then on")] = None,
                 until: Annotated[Time | None, Query(description="Only said or true before")] = None,
                 session: Annotated[Name | None, Query(description="Only from this conversation")] = None,
                 speaker: Annotated[Name | None, Query(description="Only said by this speaker")] = None,
                 tag: Annotated[Name | None, Query(description="Only with this tag")] = None) -> Response:
        "What was remembered, latest first; a span of time, a conversation, a speaker or a tag narrows it."
        given = {"since": since, "until": until, "session": session, "speaker": speaker, "tags": None if tag is None else [tag]}
        with service.pool.use(caller.namespace) as opened:
            records = opened.recent(k + 1, **given)
        moments = [{"id": r.id, "at": to_iso(r.valid_from), "text": clip(r.text, SNIPPET), "kind": r.kind, "tags": list(r.tags)}
                   | ({"session": r.session} if r.session else {}) | ({"speaker": who} if (who := r.speaker or r.role) else {})
                   for r in records[:k]]
        return json_response({"moments": sorted(moments, key=lambda m: (m["at"], m["id"]), reverse=True), "more": len(records) > k})
    return routes


ContextName = Annotated[Label | None, Query(description="The conversation that has anchors of its own; without it, those of the namespace",
                                            examples=["chat-7"])]


def anchors_response(anchors: AnchorManager,  # anchors of a namespace, or of a conversation
                     ) -> Response:
    "Return anchors as `AnchorsOut`."
    return json_response({"slots": [{"anchor_block_id": a.id, **{n: getattr(a, n) for n in ANCHOR_FIELDS}} for a in anchors.state()]})


def change_anchor(anchors: AnchorManager,  # anchors of a namespace, or of a conversation
                  slot: Slot,              # name of the anchor
                  body: AnchorBody,        # changes to make
                  ) -> None:
    "Move, pin or release an anchor, or set its hop budget, in one transaction; the rest stays. Raises `NotFound`, `InvalidInput`."
    with anchors.backend.transaction():
        if body.anchor_block_id is not None:
            anchors.put(slot, body.anchor_block_id)
        if body.hop_budget is not None:
            anchors.budget(slot, body.hop_budget)
        if body.pinned is not None:
            anchors.pin(slot) if body.pinned else anchors.unpin(slot)


def anchor_routes(service: Service,  # memories, metrics and spans
                  ) -> APIRouter:
    "Return the routes of the anchors."
    routes = APIRouter(prefix="/v1", tags=["anchors"])

    @routes.get("/anchors", **answers("AnchorsOut"))
    def anchors(caller: ReadCaller, context: ContextName = None) -> Response:
        "The three anchors: where they stand, and whether they are pinned."
        with service.pool.use(caller.namespace) as memory:
            return anchors_response(memory.anchors.of(context))

    @routes.patch("/anchors/{slot}", **answers("AnchorsOut", 404))
    def change(slot: Slot, body: AnchorBody, caller: WriteCaller, context: ContextName = None) -> Response:
        "Put an anchor at a memory, pin or release it, or set how far its searches walk."
        with service.pool.use(caller.namespace) as memory:
            change_anchor(anchors := memory.anchors.of(context), slot, body)
            return anchors_response(anchors)
    return routes


class MetricsResponse(Response):
    "An answer in the text format of Prometheus."

    media_type = "text/plain; version=0.0.4; charset=utf-8"


def upkeep_routes(service: Service,  # memories, metrics and spans
                  ) -> APIRouter:
    "Return the routes of health and metrics. Where no tokens are needed at all, on loopback, none is needed for metrics either."
    routes, problem = APIRouter(tags=["upkeep"]), problem_responses(basis=WITHOUT_TOKEN)[503]["content"]
    unready = {503: {"description": "The store does not answer, or too many ask", "content": problem | json_schema("HealthOut")}}

    @routes.get("/health", **answers("HealthOut", basis=WITHOUT_TOKEN, more=unready))
    def health() -> Response:
        "Whether it lives, and whether its store answers."
        ready = service.ready()
        return json_response({"live": True, "ready": ready}, 200 if ready else 503)

    @routes.get("/health/live", **answers("LiveOut", basis=WITHOUT_TOKEN))
    async def live() -> Response:
        "Tell that the process answers; no store is touched."
        return json_response({"live": True})

    @routes.get("/metrics", responses=problem_responses(), response_class=MetricsResponse)
    def metrics(_caller: MetricsCaller) -> Response:
        "Figures, as Prometheus reads them."
        return MetricsResponse(service.metrics.page())
    return routes


def page_routes(_service: Service,  # not needed: the page asks by itself
                ) -> APIRouter:
    "Return the route of the explorer."
    routes, page = APIRouter(), read_page()
    headers = {"Content-Security-Policy": content_security_policy(page)}

    @routes.get("/", include_in_schema=False)
    async def explorer() -> Response:
        "A page to look at memories with."
        return Response(page, headers=headers, media_type="text/html; charset=utf-8")
    return routes
