"""Routes over the companion and the rules: what a prompt needs, what a person corrects, what rules say, and what a token opens.

To accept, reject, lift and dismiss is a person's decision: it takes the right admin, as it does to sleep, to take it back, and to erase.
"""

import logging
from collections.abc import Callable
from datetime import timedelta
from typing import Annotated, Any, Literal
from urllib.parse import quote

from fastapi import Query

from rlm.core.clock import to_iso
from rlm.core.errors import InvalidInput, RlmError
from rlm.service.capture import capture_prompt, decide_prompt, teach_policy
from rlm.service.memory import ErasureReport, MemoryAdmin
from rlm.service.proposals import CorrectionProposal, dismiss_proposal, open_proposals, propose_rejection
from rlm.service.results import memory_dict
from rlm.store.facts import Rejection

from .errors import HttpProblem
from .memory_routes import Labels
from .routing import Call, Name, QuotedId, Routes, json_response
from .schemas import (AcceptBody, ApplyBody, ContextBody, JudgeBody, ObserveBody, PolicyBody, ProposeBody, PurgeBody, ReasonBody,
                      RejectBody, RememberBody, RuleBody, RuleTableBody, RuleUseBody, SleepBody, Time)


log = logging.getLogger("rlm.serve")
OF_THE_FILE = ("path", "bytes")  # figures about the file as a whole, which other namespaces share: no answer for a tenant
searching, remembering, talking = Routes("/v1", "search"), Routes("/v1", "memories"), Routes("/v1", "conversations")
applying, scope = Routes("/v1", "rules"), Routes("/v1", "upkeep")
review, nights = Routes("/v1/review", "review"), Routes("/v1/sleep", "upkeep")


def _rejection_dict(r: Rejection) -> dict[str, Any]:
    "Return a rejection for JSON: who, when and why, never what."
    found = {"id": r.id, "at": to_iso(r.created_at), "actor": r.actor, "reason": r.reason, "memory": r.memory_id, "note": r.note or None}
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
    return capture_prompt(call.memory, body.text, call.provenance, body.session)


@remembering.add("POST", "/policy", "PolicyOut", 507, right="read", span="memory.policy")
def decide_turn(call: Call, body: PolicyBody) -> Any:
    "Say whether a turn is worth saving, and why; with `feedback`, learn whether that is right, and say what is decided then."
    if body.feedback is None:
        return {"now": decide_prompt(call.memory, body.text, body.session).as_dict()}
    if not call.caller.may("write"):
        raise HttpProblem(403, "This token does not have the right to write, which it takes to teach the policy.", "Leave out feedback.")
    return teach_policy(call.memory, body.text, body.feedback, body.session)


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


@applying.add("POST", "/rules:apply", "AppliedOut", 507, right="read", span="rules.apply")
def apply_rules(call: Call, body: ApplyBody) -> Any:
    """The rules that fire in a situation, and what they say; with `resolve`, what is to be done where they disagree. Only with `record` is
    something changed: the decision is logged, and a rule that is disproved again gets a failure."""
    if body.record and not call.caller.may("write"):
        raise HttpProblem(403, "This token does not have the right to write, which it takes to record a decision.", "Leave out record.")
    applied = call.memory.rules.apply(body.facts, filter_tags=body.tags, match=body.match)
    if not (body.resolve or body.record):
        return applied
    from rlm.rules import ConflictResolver  # here, so that servers without rules do not load it
    resolver = ConflictResolver(call.memory.rules)
    resolution = resolver.resolve(applied)
    if body.record and resolution.rulings:
        resolver.record(resolution)
    return resolution


@review.add("GET", "", "ReviewOut")
def get_review(call: Call) -> Any:
    "Return what waits for a person, and what was rejected."
    companion = call.memory.companion
    return {"proposals": [p.as_dict() for p in open_proposals(call.memory.reader)], "waiting": [w.as_dict() for w in companion.waiting()],
            "rejections": [_rejection_dict(r) for r in companion.rejections()]}


@review.add("POST", "/acceptances", "MemoryOut", 404, 507, status=201, right="admin")
def accept(call: Call, body: AcceptBody) -> Any:
    "Confirm a memory: it is trusted, ends what it contradicts, and is not ended by what no person has confirmed."
    return memory_dict(call.memory.companion.accept(body.id, body.text, call.caller.id))


@review.add("POST", "/proposals", "ProposalOut", 404, 507, status=201)
def propose(call: Call, body: ProposeBody) -> CorrectionProposal:
    "Ask that a memory be rejected. It waits until a person decides; until then the memory stands."
    return propose_rejection(call.memory.reader, body.id, body.reason, call.provenance)


@review.add("DELETE", "/proposals/{id}", "ProposalOut", 404, 507, right="admin")
def dismiss(call: Call, id: QuotedId) -> CorrectionProposal:
    "Let a memory stand that was proposed to be rejected."
    return dismiss_proposal(call.memory.reader, id, call.caller.id)


@review.add("POST", "/rejections", "RejectionOut", 404, 507, status=201, right="admin")
def reject(call: Call, body: RejectBody) -> Any:
    """Reject what is wrong, for good: it is left out of the memories that state something else too, the others that state it are
    deleted, and it is refused on every way in until it is lifted."""
    if sum(x is not None for x in (body.id, body.text, body.value)) != 1:
        raise InvalidInput("The rejection names nothing, or several things.", "Give an id, a text, or a relation with its value.")
    return _rejection_dict(call.memory.companion.reject(body.id, part=body.part, text=body.text, subject=body.subject,
                                                       relation=body.relation, value=body.value, reason=body.reason, actor=call.caller.id))


@review.add("DELETE", "/rejections/{id}", "RejectionOut", 404, 507, right="admin")
def lift(call: Call, id: QuotedId) -> Any:
    "Allow again what was rejected. What was deleted stays deleted until it is restored."
    return _rejection_dict(call.memory.companion.lift(id, call.caller.id))


@nights.add("GET", "", "NightsOut")
def get_nights(call: Call) -> Any:
    "Return the nights so far, the newest first."
    return {"nights": call.memory.companion.nights()}


@nights.add("POST", "", "SleepOut", 503, 507, right="admin", span="memory.sleep")
def sleep(call: Call, body: SleepBody) -> Any:
    "Merge memories that say the same, archive what is not used, save what was learned; or tell what would be done."
    return call.memory.companion.sleep(body.dry_run, body.forget)


@nights.add("POST", "/{id}/undo", "WokenOut", 404, 507, right="admin")
def undo_sleep(call: Call, id: QuotedId) -> Any:
    "Take back what a night did, except what it deleted for good."
    return call.memory.companion.undo_sleep(id)


@scope.add("GET", "/namespaces", "NamespacesOut")
def get_namespaces(call: Call) -> Any:
    "Return the namespaces that the token opens, the usual one first. Others are not told of."
    return {"namespaces": call.caller.namespaces}


def _receipt(call: Call, namespace: str, erase: Callable[[MemoryAdmin], ErasureReport]) -> dict[str, Any]:
    "Erase in a namespace that the token opens, and return the receipt; a copy is told by its name. Raises `HttpProblem`."
    if namespace not in call.caller.namespaces:
        raise HttpProblem(403, "The token is for another namespace.", f"Use a token of it: rlm tokens add -n {namespace} --right admin")
    with call.service.pool.use(namespace) as memory:
        found = erase(memory.admin)
    return found.as_dict(call.caller.id, bare=True)


@scope.add("DELETE", "/namespaces/{namespace}", "ErasedOut", 404, 507, right="admin")
def erase_namespace(call: Call, namespace: QuotedId) -> Any:
    """Erase a whole namespace for good, such as a user who leaves: memories, deleted ones too, history, runs and attention. The answer is
    the receipt, which is kept nowhere else. A write with a token that still opens it makes the namespace anew."""
    return _receipt(call, namespace, lambda admin: admin.erase_namespace(namespace))


@scope.add("POST", "/namespaces/{namespace}/purge", "ErasedOut", 404, 507, right="admin")
def purge_namespace(call: Call, namespace: QuotedId, body: PurgeBody) -> Any:
    "Erase the memories of a namespace that were deleted long ago; their text was kept as history. The answer is the receipt."
    return _receipt(call, namespace, lambda admin: admin.purge_namespace(namespace, timedelta(days=body.days), body.dry_run))


@scope.add("GET", "/stats", "StatsOut")
def get_stats(call: Call) -> Any:
    "Return how many memories the namespace holds, by kind, status and category."
    return {name: value for name, value in call.memory.stats().items() if name not in OF_THE_FILE and value is not None}


RuleStatus = Literal["hot", "ltm", "held", "archived", "any"]
Verdict = Literal["right", "wrong", "unknown"]
RuleAction = Literal["promote", "hold", "release", "archive"]
Limit = Annotated[int, Query(ge=1, le=10_000, description="How many at most")]
rules = Routes("/v1/rules", "rules")


@rules.add("GET", "", "RulesOut")
def list_rules(call: Call, status: Annotated[list[RuleStatus], Query(
        max_length=5, description="Only of this status; repeat it for several. Without it: hot and ltm, which are applied")] = [],  # noqa: B006
               tag: Annotated[Labels, Query(description="Only with this tag; repeat it for several")] = [],  # noqa: B006
               limit: Limit = 100) -> Any:
    "Rules, the highest confidence first. Expired ones are left out."
    wanted: Any = "any" if "any" in status else status or ("hot", "ltm")
    return {"rules": [r.as_dict() for r in call.memory.rules.get_rules(wanted, tag, limit)]}


@rules.add("GET", ":conflicts", "ConflictsOut")
def list_conflicts(call: Call, rule: Annotated[Name | None, Query(description="Only conflicts of this rule")] = None,
                   stage: Annotated[Name | None, Query(description="Only those that this stage decided")] = None,
                   since: Annotated[Time | None, Query(description="Only from this time on, ISO 8601")] = None,
                   until: Annotated[Time | None, Query(description="Only before this time")] = None,
                   verdict: Annotated[Verdict | None, Query(description="Only those that were judged so")] = None,
                   limit: Limit = 100) -> Any:
    "Return the log of conflicts, the newest first, and the rules that were disproved, or followed wrongly, at least twice."
    from rlm.rules import ConflictLog  # here, so that servers without rules do not load it
    from rlm.rules.conflicts import repeat_offenders
    found = ConflictLog(call.memory.rules).read(rule, stage, since, until, verdict)
    return {"conflicts": [d.as_dict() for d in found[:limit]], "offenders": repeat_offenders(found)}


@rules.add("POST", ":judge", "ConflictOut", 404, 409, 507)
def judge_conflict(call: Call, body: JudgeBody) -> Any:
    "Say whether the decision of a recorded conflict was right. It counts once, for the rules that were followed."
    from rlm.rules import ConflictLog
    return ConflictLog(call.memory.rules).judge(body.conflict, body.verdict)


@rules.add("GET", ":audit", "RuleAuditOut")
def audit_rules(call: Call) -> Any:
    "Rules that can contradict each other (with a situation that shows it), never fire, say nothing, or are superfluous."
    from rlm.rules import audit
    return audit(call.memory.rules)


@rules.add("POST", ":table", "RuleTableOut", 507)
def import_rule_table(call: Call, body: RuleTableBody) -> Any:
    "Import the rules of a decision table, all or none. What can't be read is answered 422 with row and column."
    from rlm.rules.decision_tables import import_table
    found = import_table(call.memory.rules, body.table)
    return {"added": found.added, "unchanged": found.unchanged, "refused": dict(found.refused)}


@rules.add("POST", "", "RuleOut", 409, 507, status=201)
def add_rule(call: Call, body: RuleBody) -> Any:
    "Store a rule. It starts as hot. A formal side that can't be parsed is answered 422 with the position."
    rule = call.memory.rules.add_rule(body.fields(), provenance=call.provenance)
    return json_response(rule.as_dict(), 201, {"Location": f"/v1/rules/{quote(rule.rule_id, safe='')}"})


@rules.add("GET", "/{id}", "RuleOut", 404)
def get_rule(call: Call, id: QuotedId) -> Any:
    "Return one rule by its id."
    return call.memory.rules.get(id)


@rules.add("GET", "/{id}/history", "RuleHistoryOut", 404)
def rule_history(call: Call, id: QuotedId) -> Any:
    "Return what happened to it, with the evidence for each change; also after it was deleted."
    return call.memory.rules.history(id)


@rules.add("POST", "/{id}/used", "RuleOut", 404, 409, 507)
def use_rule(call: Call, id: QuotedId, body: RuleUseBody) -> Any:
    "Report how often it helped and misled. A rule that misled too often is held: see its status in the answer."
    return call.memory.rules.update_usage(id, body.helped, body.failed)


@rules.add("POST", "/{id}/{action}", "RuleOut", 404, 409, 507)
def decide_rule(call: Call, id: QuotedId, action: RuleAction, body: ReasonBody) -> Any:
    "Promote, hold, release or archive it, as a person decided. Its counts start anew."
    mine = call.memory.rules
    decide: Any = {"promote": mine.promote, "hold": mine.hold, "release": mine.release, "archive": mine.archive}[action]
    return decide(id, body.reason)


TABLES = (searching, talking, remembering, applying, review, nights, scope)
