"""Rules as resources: routes over `Memory.rules`.

Rules are listed, added and judged here as in Python; they are applied by `/v1/rules:apply`, a route of the companion.
"""

from typing import Annotated, Any, Literal
from urllib.parse import quote

from fastapi import APIRouter, Depends, Query, Response

from .auth import ReadCaller, WriteCaller
from .memory_routes import Labels, provenance
from .routes import Name, QuotedId, Service, json_response, known_params_only
from .schemas import JudgeBody, ReasonBody, RuleBody, RuleTableBody, RuleUseBody, Time, answers

RuleStatus = Literal["hot", "ltm", "held", "archived", "any"]
Verdict = Literal["right", "wrong", "unknown"]
RuleAction = Literal["promote", "hold", "release", "archive"]


def rule_routes(service: Service,  # memories, metrics and spans
                ) -> APIRouter:
    "Return the routes of all rules: list them, add one."
    routes = APIRouter(prefix="/v1", tags=["rules"], dependencies=[Depends(known_params_only)])

    @routes.get("/rules", **answers("RulesOut"))
    def list_rules(caller: ReadCaller, status: Annotated[list[RuleStatus], Query(
            max_length=5, description="Only of this status; repeat it for several. Without it: hot and ltm, which are applied")] = [],  # noqa: B006
                   tag: Annotated[Labels, Query(description="Only with this tag; repeat it for several")] = [],  # noqa: B006
                   limit: Annotated[int, Query(ge=1, le=10_000, description="How many at most")] = 100) -> Response:
        "Rules, the highest confidence first. Expired ones are left out."
        wanted: Any = "any" if "any" in status else status or ("hot", "ltm")
        with service.pool.use(caller.namespace) as memory:
            return json_response({"rules": [r.as_dict() for r in memory.rules.get_rules(wanted, tag, limit)]})

    @routes.get("/rules:conflicts", **answers("ConflictsOut"))
    def list_conflicts(caller: ReadCaller,
                       rule: Annotated[Name | None, Query(description="Only conflicts of this rule")] = None,
                       stage: Annotated[Name | None, Query(description="Only those that this stage decided")] = None,
                       since: Annotated[Time | None, Query(description="Only from this time on, ISO 8601")] = None,
                       until: Annotated[Time | None, Query(description="Only before this time")] = None,
                       verdict: Annotated[Verdict | None, Query(description="Only those that were judged so")] = None,
                       limit: Annotated[int, Query(ge=1, le=10_000, description="How many at most")] = 100) -> Response:
        "The log of conflicts, the newest first, and the rules that were disproved, or followed wrongly, at least twice."
        from rlm.rules import ConflictLog  # here, so that servers without rules do not load it
        from rlm.rules.conflict_log import repeat_offenders
        with service.pool.use(caller.namespace) as memory:
            found = ConflictLog(memory.rules).read(rule, stage, since, until, verdict)
            return json_response({"conflicts": [d.as_dict() for d in found[:limit]],
                                  "offenders": repeat_offenders(found)})

    @routes.post("/rules:judge", **answers("ConflictOut", 404, 409, 507))
    def judge_conflict(body: JudgeBody, caller: WriteCaller) -> Response:
        "Say whether the decision of a recorded conflict was right. It counts once, for the rules that were followed."
        from rlm.rules import ConflictLog
        with service.pool.use(caller.namespace) as memory:
            return json_response(ConflictLog(memory.rules).judge(body.conflict, body.verdict).as_dict())

    @routes.get("/rules:audit", **answers("RuleAuditOut"))
    def audit_rules(caller: ReadCaller) -> Response:
        "Rules that can contradict each other (with a situation that shows it), never fire, say nothing, or are superfluous."
        from rlm.rules import audit
        with service.pool.use(caller.namespace) as memory:
            return json_response(audit(memory.rules).as_dict())

    @routes.post("/rules:table", **answers("RuleTableOut", 507))
    def import_rule_table(body: RuleTableBody, caller: WriteCaller) -> Response:
        "Import the rules of a decision table, all or none. What can't be read is answered 422 with row and column."
        from rlm.rules.decision_tables import import_table
        with service.pool.use(caller.namespace) as memory:
            found = import_table(memory.rules, body.table)
            return json_response({"added": found.added, "unchanged": found.unchanged, "refused": dict(found.refused)})

    @routes.post("/rules", **answers("RuleOut", 409, 507, status=201))
    def add_rule(body: RuleBody, caller: WriteCaller) -> Response:
        "Store a rule. It starts as hot. A formal side that can't be parsed is answered 422 with the position."
        with service.pool.use(caller.namespace) as memory:
            rule = memory.rules.add_rule(body.fields(), provenance=provenance(caller))
            return json_response(rule.as_dict(), 201, {"Location": f"/v1/rules/{quote(rule.rule_id, safe='')}"})
    return routes


def one_rule_routes(service: Service,  # memories, metrics and spans
                    ) -> APIRouter:
    "Return the routes of one rule: read it, report a use, decide about it."
    routes = APIRouter(prefix="/v1/rules/{id}", tags=["rules"], dependencies=[Depends(known_params_only)])

    @routes.get("", **answers("RuleOut", 404))
    def get_rule(id: QuotedId, caller: ReadCaller) -> Response:
        "One rule by its id."
        with service.pool.use(caller.namespace) as memory:
            return json_response(memory.rules.get(id).as_dict())

    @routes.get("/history", **answers("RuleHistoryOut", 404))
    def rule_history(id: QuotedId, caller: ReadCaller) -> Response:
        "What happened to it, with the evidence for each change; also after it was deleted."
        with service.pool.use(caller.namespace) as memory:
            return json_response(memory.rules.history(id).as_dict())

    @routes.post("/used", **answers("RuleOut", 404, 409, 507))
    def use_rule(id: QuotedId, body: RuleUseBody, caller: WriteCaller) -> Response:
        "Report how often it helped and misled. A rule that misled too often is held: see its status in the answer."
        with service.pool.use(caller.namespace) as memory:
            return json_response(memory.rules.update_usage(id, body.helped, body.failed).as_dict())

    @routes.post("/{action}", **answers("RuleOut", 404, 409, 507))
    def decide_rule(id: QuotedId, action: RuleAction, body: ReasonBody, caller: WriteCaller) -> Response:
        "Promote, hold, release or archive it, as a person decided. Its counts start anew."
        with service.pool.use(caller.namespace) as memory:
            decide: Any = {"promote": memory.rules.promote, "hold": memory.rules.hold, "release": memory.rules.release,
                           "archive": memory.rules.archive}[action]
            return json_response(decide(id, body.reason).as_dict())
    return routes
