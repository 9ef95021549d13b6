"""What a prompt needs, what a person corrects, what rules say, and what a token opens: routes over the companion and the rules.

To accept, reject, lift and dismiss is a person's decision: it takes the right admin, as it does to sleep and to take it back."""

import logging
from typing import Any

from rlm.core.clock import to_iso
from rlm.core.errors import InvalidInput, RlmError
from rlm.service.capture import capture_prompt
from rlm.service.proposals import RejectionProposal, dismiss_proposal, open_proposals, propose_rejection
from rlm.service.results import memory_dict
from rlm.store.sqlite.rejections import Rejection

from .errors import HttpProblem
from .routing import Call, QuotedId, Routes
from .schemas import AcceptBody, ApplyBody, ContextBody, ObserveBody, ProposeBody, RejectBody, RememberBody, SleepBody

log = logging.getLogger("rlm.serve")
OF_THE_FILE = ("path", "bytes")  # figures about the file as a whole, which other namespaces share: no answer for a tenant
searching, remembering, talking = Routes("/v1", "search"), Routes("/v1", "memories"), Routes("/v1", "conversations")
rules, scope = Routes("/v1", "rules"), Routes("/v1", "upkeep")
review, nights = Routes("/v1/review", "review"), Routes("/v1/sleep", "upkeep")


def rejection_dict(r: Rejection,  # a rejection
                   ) -> dict[str, Any]:
    "Return a rejection for JSON: who, when and why, never what."
    found = {"id": r.id, "at": to_iso(r.created_at), "actor": r.actor, "reason": r.reason, "memory": r.memory_id}
    return {name: value for name, value in found.items() if value is not None}


@searching.add("POST", "/context", "ContextOut", right="read", span="memory.context")
def make_context(call: Call, body: ContextBody) -> Any:
    "Return a block for a prompt within a budget of tokens: pinned memories first, then what answers the question, each line named."
    block = call.memory.companion.context(body.query, body.tokens, door="rest", actor=call.caller.id, apart_from=body.apart_from,
                                          least=body.least, facts=body.facts)
    return {"context": block.text, "tokens": block.tokens, "memories": [id for id, _ in block.used],
            "resolutions": [level for _, level in block.used], "left_out": block.left_out, "rules": block.rules}


@remembering.add("POST", "/observe", "ObservedOut", 507, span="memory.observe")
def observe_prompt(call: Call, body: ObserveBody) -> Any:
    "Keep what a prompt states, if the companion's policy finds it worth keeping: a fact, a wish; no question, no order, no small talk."
    return capture_prompt(call.memory, body.text, call.provenance)


@talking.add("POST", "/conversations:remember", "RememberedOut", 503, 507, span="memory.remember")
def remember_conversation(call: Call, body: RememberBody) -> Any:
    "Note what is worth keeping of a conversation as candidates, with their facts, and say why the rest is not. Turns are not stored."
    try:
        return call.memory.remember([turn.fields() for turn in body.turns], "configured" if body.use_model else None)
    except RlmError as e:
        from rlm.agent.models.base import ModelError  # here, so that servers without a model do not load it
        if not isinstance(e, ModelError):
            raise
        log.warning("%s", e)
        raise HttpProblem(503, "The language model gave no answer.", "Try again later, or let rules read it: use_model false.",
                          {"Retry-After": "5"}) from e


@rules.add("POST", "/rules:apply", "AppliedOut", right="read", span="rules.apply")
def apply_rules(call: Call, body: ApplyBody) -> Any:
    "The rules that fire in a situation, and what they say; with `resolve`, what is to be done where they disagree. Nothing is changed."
    applied = call.memory.rules.apply(body.facts, filter_tags=body.tags, match=body.match)
    if not body.resolve:
        return applied
    from rlm.rules import ConflictResolver  # here, so that servers without rules do not load it
    return ConflictResolver(call.memory.rules).resolve(applied)


@review.add("GET", "", "ReviewOut")
def get_review(call: Call) -> Any:
    "Return what waits for a person, and what was rejected."
    companion = call.memory.companion
    return {"proposals": [p.as_dict() for p in open_proposals(call.memory)], "waiting": [w.as_dict() for w in companion.waiting()],
            "rejections": [rejection_dict(r) for r in companion.rejections()]}


@review.add("POST", "/acceptances", "MemoryOut", 404, 507, status=201, right="admin")
def accept(call: Call, body: AcceptBody) -> Any:
    "Confirm a memory: it is trusted, ends what it contradicts, and is not ended by what nobody has confirmed."
    return memory_dict(call.memory.companion.accept(body.id, body.text, call.caller.id))


@review.add("POST", "/proposals", "ProposalOut", 404, 507, status=201)
def propose(call: Call, body: ProposeBody) -> RejectionProposal:
    "Ask that a memory be rejected. It waits until a person decides; until then the memory stands."
    return propose_rejection(call.memory, body.id, body.reason, call.provenance)


@review.add("DELETE", "/proposals/{id}", "ProposalOut", 404, 507, right="admin")
def dismiss(call: Call, id: QuotedId) -> RejectionProposal:
    "Let a memory stand that was proposed to be rejected."
    return dismiss_proposal(call.memory, id, call.caller.id)


@review.add("POST", "/rejections", "RejectionOut", 404, 507, status=201, right="admin")
def reject(call: Call, body: RejectBody) -> Any:
    "Reject what is wrong, for good: the memories that state it are deleted, and it is refused on every way in until it is lifted."
    if sum(x is not None for x in (body.id, body.text, body.value)) != 1:
        raise InvalidInput("The rejection names nothing, or several things.", "Give an id, a text, or a relation with its value.")
    return rejection_dict(call.memory.companion.reject(body.id, text=body.text, subject=body.subject, relation=body.relation,
                                                       value=body.value, reason=body.reason, actor=call.caller.id))


@review.add("DELETE", "/rejections/{id}", "RejectionOut", 404, 507, right="admin")
def lift(call: Call, id: QuotedId) -> Any:
    "Allow again what was rejected. What was deleted stays deleted until it is restored."
    return rejection_dict(call.memory.companion.lift(id, call.caller.id))


@nights.add("GET", "", "NightsOut")
def get_nights(call: Call) -> Any:
    "Return the nights so far, the newest first."
    return {"nights": call.memory.companion.nights()}


@nights.add("POST", "", "SleepOut", 503, 507, right="admin", span="memory.sleep")
def sleep(call: Call, body: SleepBody) -> Any:
    "Merge memories that say the same, put away what is not used, save what was learned; or tell what would be done."
    return call.memory.companion.sleep(body.dry_run, body.forget)


@nights.add("POST", "/{id}/undo", "WokenOut", 404, 507, right="admin")
def undo_sleep(call: Call, id: QuotedId) -> Any:
    "Take back what a night did, except what it deleted for good."
    return call.memory.companion.undo_sleep(id)


@scope.add("GET", "/namespaces", "NamespacesOut")
def get_namespaces(call: Call) -> Any:
    "Return the namespaces that the token opens, the usual one first. Others are not told of."
    return {"namespaces": call.caller.namespaces}


@scope.add("GET", "/stats", "StatsOut")
def get_stats(call: Call) -> Any:
    "Return how many memories the namespace holds, by kind, status and category."
    return {name: value for name, value in call.memory.stats().items() if name not in OF_THE_FILE and value is not None}


TABLES = (searching, talking, remembering, rules, review, nights, scope)
