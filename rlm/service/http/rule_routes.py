"""Rules as resources: routes over `Memory.rules`.

Rules are listed, added and judged here as in Python; they are applied by `/v1/rules:apply`, a route of the companion.
"""

from typing import Annotated, Any, Literal
from urllib.parse import quote

from fastapi import Query

from .memory_routes import Labels
from .routing import Call, Name, QuotedId, Routes, json_response
from .schemas import JudgeBody, ReasonBody, RuleBody, RuleTableBody, RuleUseBody, Time

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
