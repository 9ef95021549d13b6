"""What a prompt needs, what a person corrects, what rules say, and what a token opens: routes over the companion and the rules."""

import logging
from typing import Any

from fastapi import APIRouter, Depends, Response

from rlm.core.clock import to_iso
from rlm.core.errors import InvalidInput, RlmError
from rlm.service.capture import capture_prompt
from rlm.service.proposals import dismiss_proposal, open_proposals, propose_rejection
from rlm.service.results import memory_dict
from rlm.store.sqlite.rejections import Rejection

from .auth import AdminCaller, ReadCaller, WriteCaller
from .errors import HttpProblem
from .memory_routes import provenance
from .routes import QuotedId, Service, json_response, known_params_only
from .schemas import AcceptBody, ApplyBody, ContextBody, ObserveBody, ProposeBody, RejectBody, RememberBody, SleepBody, answers

log = logging.getLogger("rlm.serve")
OF_THE_FILE = ("path", "bytes")  # figures about the file as a whole, which other namespaces share: no answer for a tenant


def rejection_dict(r: Rejection,  # a rejection
                   ) -> dict[str, Any]:
    "Return a rejection for JSON: who, when and why, never what."
    found = {"id": r.id, "at": to_iso(r.created_at), "actor": r.actor, "reason": r.reason, "memory": r.memory_id}
    return {name: value for name, value in found.items() if value is not None}


def prompt_routes(service: Service,  # memories, metrics and spans
                  ) -> APIRouter:
    "Return the routes for a prompt: a block of memories, and what rules say in a situation."
    routes = APIRouter(prefix="/v1")

    @routes.post("/context", tags=["search"], **answers("ContextOut"))
    def make_context(body: ContextBody, caller: ReadCaller) -> Response:
        "A block for a prompt within a budget of tokens: pinned memories first, then what answers the question, each line named."
        with service.pool.use(caller.namespace) as memory, service.tracer.span("memory.context"):
            block = memory.companion.context(body.query, body.tokens, door="rest", actor=caller.id, apart_from=body.apart_from,
                                             least=body.least, facts=body.facts)
        return json_response({"context": block.text, "tokens": block.tokens, "memories": [id for id, _ in block.used],
                              "resolutions": [level for _, level in block.used], "left_out": list(block.left_out),
                              "rules": list(block.rules)})

    @routes.post("/observe", tags=["memories"], **answers("ObservedOut", 507))
    def observe_prompt(body: ObserveBody, caller: WriteCaller) -> Response:
        "Keep what a prompt states, if the companion's policy finds it worth keeping: a fact, a wish; no question, no order, no small talk."
        with service.pool.use(caller.namespace) as memory, service.tracer.span("memory.observe"):
            return json_response(capture_prompt(memory, body.text, provenance(caller)).as_dict())

    @routes.post("/conversations:remember", tags=["conversations"], **answers("RememberedOut", 503, 507))
    def remember_conversation(body: RememberBody, caller: WriteCaller) -> Response:
        "Note what is worth keeping of a conversation as candidates, with their facts, and say why the rest is not. Turns are not stored."
        with service.pool.use(caller.namespace) as memory, service.tracer.span("memory.remember"):
            try:
                found = memory.remember([turn.fields() for turn in body.turns], "configured" if body.use_model else None)
            except RlmError as e:
                from rlm.agent.models.base import ModelError  # here, so that servers without a model do not load it
                if not isinstance(e, ModelError):
                    raise
                log.warning("%s", e)
                raise HttpProblem(503, "The language model gave no answer.", "Try again later, or let rules read it: use_model false.",
                                  {"Retry-After": "5"}) from e
        return json_response(found.as_dict())

    @routes.post("/rules:apply", tags=["rules"], **answers("AppliedOut"))
    def apply_rules(body: ApplyBody, caller: ReadCaller) -> Response:
        "The rules that fire in a situation, and what they say; with `resolve`, what is to be done where they disagree. Nothing is changed."
        with service.pool.use(caller.namespace) as memory, service.tracer.span("rules.apply"):
            applied = memory.rules.apply(body.facts, filter_tags=body.tags, match=body.match)
            if not body.resolve:
                return json_response(applied.as_dict())
            from rlm.rules import ConflictResolver  # here, so that servers without rules do not load it
            return json_response(ConflictResolver(memory.rules).resolve(applied).as_dict())
    return routes


def review_routes(service: Service,  # memories, metrics and spans
                  ) -> APIRouter:
    "Return the routes of corrections. To accept, reject, lift and dismiss is a person's decision: it takes the right admin."
    routes = APIRouter(prefix="/v1/review", tags=["review"], dependencies=[Depends(known_params_only)])

    @routes.get("", **answers("ReviewOut"))
    def get_review(caller: ReadCaller) -> Response:
        "What waits for a person, and what was rejected."
        with service.pool.use(caller.namespace) as memory:
            proposed, rejected, waiting = open_proposals(memory), memory.companion.rejections(), memory.companion.waiting()
        return json_response({"proposals": [p.as_dict() for p in proposed], "waiting": [w.as_dict() for w in waiting],
                              "rejections": [rejection_dict(r) for r in rejected]})

    @routes.post("/acceptances", **answers("MemoryOut", 404, 507, status=201))
    def accept(body: AcceptBody, caller: AdminCaller) -> Response:
        "Confirm a memory: it is trusted, ends what it contradicts, and is not ended by what nobody has confirmed."
        with service.pool.use(caller.namespace) as memory:
            return json_response(memory_dict(memory.companion.accept(body.id, body.text, caller.id)), 201)

    @routes.post("/proposals", **answers("ProposalOut", 404, 507, status=201))
    def propose(body: ProposeBody, caller: WriteCaller) -> Response:
        "Ask that a memory be rejected. It waits until a person decides; until then the memory stands."
        with service.pool.use(caller.namespace) as memory:
            return json_response(propose_rejection(memory, body.id, body.reason, provenance(caller)).as_dict(), 201)

    @routes.delete("/proposals/{id}", **answers("ProposalOut", 404, 507))
    def dismiss(id: QuotedId, caller: AdminCaller) -> Response:
        "Let a memory stand that was proposed to be rejected."
        with service.pool.use(caller.namespace) as memory:
            return json_response(dismiss_proposal(memory, id, caller.id).as_dict())

    @routes.post("/rejections", **answers("RejectionOut", 404, 507, status=201))
    def reject(body: RejectBody, caller: AdminCaller) -> Response:
        "Reject what is wrong, for good: the memories that state it are deleted, and it is refused on every way in until it is lifted."
        if sum(x is not None for x in (body.id, body.text, body.value)) != 1:
            raise InvalidInput("The rejection names nothing, or several things.", "Give an id, a text, or a relation with its value.")
        with service.pool.use(caller.namespace) as memory:
            made = memory.companion.reject(body.id, text=body.text, subject=body.subject, relation=body.relation, value=body.value,
                                           reason=body.reason, actor=caller.id)
        return json_response(rejection_dict(made), 201)

    @routes.delete("/rejections/{id}", **answers("RejectionOut", 404, 507))
    def lift(id: QuotedId, caller: AdminCaller) -> Response:
        "Allow again what was rejected. What was deleted stays deleted until it is restored."
        with service.pool.use(caller.namespace) as memory:
            return json_response(rejection_dict(memory.companion.lift(id, caller.id)))
    return routes


def sleep_routes(service: Service,  # memories, metrics and spans
                 ) -> APIRouter:
    "Return the routes of nights: it takes the right admin to sleep and to take it back."
    routes = APIRouter(prefix="/v1/sleep", tags=["upkeep"], dependencies=[Depends(known_params_only)])

    @routes.get("", **answers("NightsOut"))
    def get_nights(caller: ReadCaller) -> Response:
        "The nights so far, the newest first."
        with service.pool.use(caller.namespace) as memory:
            return json_response({"nights": memory.companion.nights()})

    @routes.post("", **answers("SleepOut", 503, 507))
    def sleep(body: SleepBody, caller: AdminCaller) -> Response:
        "Merge memories that say the same, put away what is not used, save what was learned; or tell what would be done."
        with service.pool.use(caller.namespace) as memory, service.tracer.span("memory.sleep"):
            return json_response(memory.companion.sleep(body.dry_run, body.forget).as_dict())

    @routes.post("/{id}/undo", **answers("WokenOut", 404, 507))
    def undo_sleep(id: QuotedId, caller: AdminCaller) -> Response:
        "Take back what a night did, except what it deleted for good."
        with service.pool.use(caller.namespace) as memory:
            return json_response(memory.companion.undo_sleep(id).as_dict())
    return routes


def scope_routes(service: Service,  # memories, metrics and spans
                 ) -> APIRouter:
    "Return the routes that tell what a token opens, and how much is there."
    routes = APIRouter(prefix="/v1", tags=["upkeep"], dependencies=[Depends(known_params_only)])

    @routes.get("/namespaces", **answers("NamespacesOut"))
    def get_namespaces(caller: ReadCaller) -> Response:
        "The namespaces that the token opens, the usual one first. Others are not told of."
        return json_response({"namespaces": list(caller.namespaces)})

    @routes.get("/stats", **answers("StatsOut"))
    def get_stats(caller: ReadCaller) -> Response:
        "How many memories the namespace holds, by kind, status and category."
        with service.pool.use(caller.namespace) as memory:
            found = {name: value for name, value in memory.stats().items() if name not in OF_THE_FILE and value is not None}
        return json_response(found)
    return routes
