"""The routes of the server, over `Memory`.

An id may have any letter in it, slashes too: it comes quoted, and is one name of the path until a route reads it.
What stands behind the question mark is checked as strictly as a body is: with `sesion=` passed over, a caller would
be shown every conversation and take it for one.
"""

import asyncio
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Query, Response

from rlm.core.clock import to_iso
from rlm.core.text import clip
from rlm.recall.anchors import AnchorManager
from rlm.service.memory import Memory
from rlm.service.results import SearchResults

from .errors import HttpProblem
from .routing import Call, Name, QuotedId, Routes, Service, json_response, require_right
from .schemas import (WITHOUT_TOKEN, AnchorBody, Label, RecallBody, SearchBody, Slot, Time, answers, json_schema, problem_responses)
from .tokens import Token

_counting = ThreadPoolExecutor(1, "rlm-metrics")  # the figures do not wait behind requests that wait for the store
MAX_NODES = 120  # memories in a picture of a neighbourhood
ANCHOR_FIELDS = ("slot", "summary", "pinned", "hop_budget", "uses", "failures", "in_use")  # named alike in the state of an anchor
SNIPPET = 160  # characters of a text that a picture or a list shows
searching, looking, attention = Routes("/v1", "search"), Routes("/v1", "looking around"), Routes("/v1/anchors", "anchors")


def _hit_dicts(hits: SearchResults) -> list[dict[str, Any]]:
    "Return the hits as `HitOut`."
    return [{"layer": hits.source, "path": [], "shares": dict(h.parts.items())} | h.as_dict()
            for h in hits]


def search_response(hits: SearchResults,  # result of a search
                    namespace: str,     # the partition that was searched
                    seconds: float,     # duration of the search
                    ) -> dict[str, Any]:
    "Return the result of a search as `SearchOut`."
    return {"query": hits.query, "namespace": namespace, "source": hits.source, "ranked_by": hits.ranked_by,
            "hits": _hit_dicts(hits), "search_time_ms": round(1000 * seconds, 3), **_waiting(hits)}


def _waiting(hits: SearchResults) -> dict[str, int]:
    return {"waiting": hits.waiting} if hits.waiting else {}


def _layer_of(hits: SearchResults) -> str:
    "Return what answered: the layer of the first hit, or the source of all."
    return (hits[0].layer if len(hits) else "") or hits.source


@searching.add("POST", "/memories:search", "SearchOut", right="read", earlier="/v1/search")
def search_memories(call: Call, body: SearchBody) -> Any:
    "Return the memories that answer a question best. It changes nothing, unless it names a slot: then the anchor may move."
    if body.slot is not None and not call.caller.may("write"):
        raise HttpProblem(403, "A search near an anchor may move it, and this token does not have the right to write.", "Leave out slot.")
    with call.service.tracer.span("memory.search", slot=body.slot or "") as span:
        begun = time.perf_counter()
        hits = call.memory.search(body.query, body.k, slot=body.slot, radius=body.radius, fallback=body.fallback,
                                  context=body.context, min_score=body.min_score, **body.filters.given())
        seconds = time.perf_counter() - begun
        call.memory.searcher.record(hits, "rest", call.caller.id)
        if span is not None:
            span.set_attributes({"rlm.hits": len(hits), "rlm.layer": _layer_of(hits)})
    call.service.metrics.count_search(_layer_of(hits), seconds)
    return search_response(hits, call.caller.namespace, seconds)


@searching.add("POST", "/recall", "RecallOut")
def recall(call: Call, body: RecallBody) -> Any:
    "The memories that answer a question best, from working memory if that is enough. It moves attention: it takes the right to write."
    with call.service.tracer.span("memory.recall") as span:
        begun = time.perf_counter()
        recalled = call.memory.intelligent_search(body.query, k=body.k, **body.filters.given())
        hits: SearchResults = recalled["results"]
        call.memory.searcher.record(hits, "rest", call.caller.id)
        if span is not None:
            span.set_attributes({"rlm.hits": recalled["result_count"], "rlm.layer": recalled["source"]})
    call.service.metrics.count_search(_layer_of(hits), time.perf_counter() - begun)
    return {"query": hits.query, "namespace": call.caller.namespace, "ranked_by": hits.ranked_by, **recalled, "results": _hit_dicts(hits),
            **_waiting(hits)}


def _neighbourhood(memory: Memory, id: str, radius: int, limit: int) -> dict[str, Any]:
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


@looking.add("GET", "/memories/{id}/neighbours", "NeighboursOut", 404)
def neighbours(call: Call, id: QuotedId, radius: Annotated[int, Query(ge=0, le=3, description="Links away at most")] = 1,
               limit: Annotated[int, Query(ge=1, le=MAX_NODES, description="Memories at most")] = 60) -> Any:
    "Return the memories that are linked to it, and theirs, as far as the radius goes."
    return _neighbourhood(call.memory, id, radius, limit)


@looking.add("GET", "/timeline", "TimelineOut", 404)
def timeline(call: Call, k: Annotated[int, Query(ge=1, le=1000, description="Memories at most")] = 100,
             since: Annotated[Time | None, Query(description="Only said or true from then on")] = None,
             until: Annotated[Time | None, Query(description="Only said or true before")] = None,
             session: Annotated[Name | None, Query(description="Only from this conversation")] = None,
             speaker: Annotated[Name | None, Query(description="Only said by this speaker")] = None,
             tag: Annotated[Name | None, Query(description="Only with this tag")] = None) -> Any:
    "Return what was remembered, latest first; a span of time, a conversation, a speaker or a tag narrows it."
    records = call.memory.recent(k + 1, since=since, until=until, session=session, speaker=speaker, tags=None if tag is None else [tag])
    moments = [{"id": r.id, "at": to_iso(r.valid_from), "text": clip(r.text, SNIPPET), "kind": r.kind, "tags": list(r.tags)}
               | ({"session": r.session} if r.session else {}) | ({"speaker": who} if (who := r.speaker or r.role) else {})
               for r in records[:k]]
    return {"moments": sorted(moments, key=lambda m: (m["at"], m["id"]), reverse=True), "more": len(records) > k}


ContextName = Annotated[Label | None, Query(description="The conversation that has anchors of its own; without it, those of the namespace",
                                            examples=["chat-7"])]


def _anchors_response(anchors: AnchorManager) -> dict[str, Any]:
    "Return anchors as `AnchorsOut`."
    return {"slots": [{"anchor_block_id": a.id, **{n: getattr(a, n) for n in ANCHOR_FIELDS}} for a in anchors.state()]}


def _change_anchor(anchors: AnchorManager, slot: Slot, body: AnchorBody) -> None:
    "Move, pin or release an anchor, or set its hop budget, in one transaction; the rest stays. Raises `NotFound`, `InvalidInput`."
    with anchors.backend.transaction():
        if body.anchor_block_id is not None:
            anchors.put(slot, body.anchor_block_id)
        if body.hop_budget is not None:
            anchors.budget(slot, body.hop_budget)
        if body.pinned is not None:
            anchors.pin(slot) if body.pinned else anchors.unpin(slot)


@attention.add("GET", "", "AnchorsOut")
def anchors(call: Call, context: ContextName = None) -> Any:
    "Return the three anchors: where they stand, and whether they are pinned."
    return _anchors_response(call.memory.anchors.of(context))


@attention.add("PATCH", "/{slot}", "AnchorsOut", 404)
def change(call: Call, slot: Slot, body: AnchorBody, context: ContextName = None) -> Any:
    "Put an anchor at a memory, pin or release it, or set how far its searches walk."
    _change_anchor(mine := call.memory.anchors.of(context), slot, body)
    return _anchors_response(mine)


class MetricsResponse(Response):
    "An answer in the text format of Prometheus."

    media_type = "text/plain; version=0.0.4; charset=utf-8"


def upkeep_routes(service: Service) -> APIRouter:
    "Return the routes of health and metrics. Where no tokens are needed at all, on loopback, none is needed for metrics either."
    routes, problem = APIRouter(tags=["upkeep"]), problem_responses(basis=WITHOUT_TOKEN)[503]["content"]
    unready = {503: {"description": "The store does not answer or takes no writes, or too many ask",
                     "content": problem | json_schema("HealthOut")}}

    @routes.get("/health", **answers("HealthOut", basis=WITHOUT_TOKEN, more=unready))
    async def health() -> Response:
        "Tell whether the store answers and takes writes, within two seconds, and what is wrong if not."
        problem = await service.readiness.problem()
        return json_response({"live": True, "ready": not problem} | ({"problem": problem} if problem else {}), 503 if problem else 200)

    @routes.get("/health/live", **answers("LiveOut", basis=WITHOUT_TOKEN))
    async def live() -> Response:
        "Tell that the process answers; no store is touched."
        return json_response({"live": True})

    @routes.get("/metrics", responses=problem_responses(), response_class=MetricsResponse)
    async def metrics(_caller: Annotated[Token, Depends(require_right("metrics"))]) -> Response:
        "Figures, as Prometheus reads them, whether the store answers or not."
        service.metrics.ready.set(not await service.readiness.problem())
        return MetricsResponse(await asyncio.get_running_loop().run_in_executor(_counting, service.metrics.page))
    return routes
