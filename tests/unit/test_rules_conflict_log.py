"""The log of conflicts is asked and judged."""
import pytest

from rlm.core.clock import ManualClock
from rlm.core.errors import InvalidInput, NotFound
from rlm.rules import ConflictLog, ConflictResolver, RuleStore
from rlm.rules.conflicts import repeat_offenders

pytestmark = pytest.mark.usefixtures("bare")


@pytest.fixture
def store() -> RuleStore:
    pytest.importorskip("z3")
    clock = ManualClock("2026-03-02T08:00:00Z")
    store = RuleStore(":memory:", clock=clock)
    store.add_rules([{"rule_id": "차", "formal": "when x then drink = 'tea'"},
                     {"rule_id": "latte", "formal": "when x then drink = 'latte'", "success": 9},
                     {"rule_id": "law", "formal": "when drink == 'latte' then milk", "status": "ltm"},
                     {"rule_id": "a", "formal": "when y then z = 1"}, {"rule_id": "b", "formal": "when y then z = 2"}])
    for facts in ({"x": True, "milk": False}, {"x": True, "milk": True}, {"y": True}, {"x": True, "milk": False}):
        ConflictResolver(store).decide(facts)
        clock.advance(days=1)
    return store


@pytest.mark.seed("000 conflict-queries")
def test_conflicts_are_asked_by_rule_stage_time_and_verdict(store: RuleStore) -> None:
    log = ConflictLog(store)
    assert [(d.stage, d.winners, d.disproved) for d in log.read()] == [
        ("entailment", ("차",), ("latte",)), ("tie-break", ("a",), ()), ("vote", ("latte",), ()), ("entailment", ("차",), ("latte",))]
    assert [d.stage for d in log.read(rule="latte", limit=2)] == ["entailment", "vote"]
    assert [d.rules for d in log.read(stage="tie-break")] == [("a", "b")]
    assert [d.stage for d in log.read(since="2026-03-03", until="2026-03-05")] == ["tie-break", "vote"]
    log.judge(log.read(stage="vote")[0].id, "wrong", "민아")
    assert [(d.stage, d.judge) for d in log.read(verdict="wrong")] == [("vote", "민아")] and len(log.read(verdict="unknown")) == 3
    assert [tuple(o.values()) for o in repeat_offenders(log.read())] == [("latte", 3, 1, 2, 1)]
    assert repeat_offenders(log.read(since="2026-03-05")) == []
    assert [o["rule_id"] for o in repeat_offenders(log.read(), least=1)] == ["latte"]


def test_a_verdict_counts_once_for_the_rules_that_were_followed(store: RuleStore) -> None:
    log, before = ConflictLog(store), (store.get("차").success, store.get("latte").fail)
    assert log.judge("last", "unknown").verdict == "unknown" and store.get("차").success == before[0]
    log.judge("last", "right")
    assert (store.get("차").success, store.get("latte").fail) == (before[0] + 1, before[1])
    with pytest.raises(InvalidInput, match="already"):
        log.judge("last", "wrong")
    with pytest.raises(NotFound):
        log.judge("nobody", "wrong")


def test_a_bound_that_is_followed_is_told_beside_what_is_set() -> None:
    with RuleStore(":memory:") as rules:
        rules.add_rules([{"rule_id": "cap", "formal": "when vip then discount <= 15", "success": 3},
                         {"rule_id": "tier", "formal": "when points > 9 then discount = 18"},
                         {"rule_id": "low", "formal": "when 평일 then discount = 5"}])
        found = ConflictResolver(rules).decide({"vip": True, "points": 10})
        assert found.bounds == ("discount <= 15",) and repr(found).endswith("so: discount <= 15")
        assert found.as_dict()["bounds"] == ["discount <= 15"]
        kept = ConflictResolver(rules).decide({"vip": True, "평일": True})
        assert (kept.outcomes, kept.bounds) == ({"discount": 5}, ()), "a bound that what is set keeps to is not said again"
