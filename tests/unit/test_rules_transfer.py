"A file of rules holds all that the rules are, and nothing of it is stored unless all of it is sound."

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rlm import Memory
from rlm.core.clock import ManualClock
from rlm.core.errors import InvalidInput
from rlm.rules import RuleStore
from rlm.store.filters import Filters
from rlm.store.records import STATUSES, MemoryRecord

pytestmark = pytest.mark.usefixtures("bare")
words = st.text("abc 차배-.é", min_size=1, max_size=12).map(lambda s: f"say {s} so")
moments = st.datetimes(datetime(2025, 1, 1), datetime(2027, 1, 1), timezones=st.just(UTC))
jsons = st.dictionaries(st.sampled_from(["a", "나", "z"]), st.none() | st.booleans() | st.integers(-9, 9) | words, max_size=2)
made = st.fixed_dictionaries(
    {"expr": words},
    optional={
        "formal": st.sampled_from(["when a then b", "when hour < 11 then drink = '차'"]),
        "tags": st.lists(st.sampled_from(["x", "y", "음료"]), max_size=2),
        "status": st.sampled_from(STATUSES),
        "success": st.integers(0, 9),
        "fail": st.integers(0, 2),
        "category": st.just("habit"),
        "title": st.just("A title"),
        "summary": words,
        "source_type": st.just("human"),
        "pinned": st.booleans(),
        "immutable": st.booleans(),
        "valid_from": moments.map(lambda t: t.replace(year=2025)),
        "valid_to": st.datetimes(datetime(2026, 2, 1), datetime(2027, 1, 1), timezones=st.just(UTC)),
        "scope": jsons,
        "provenance": jsons,
        "extra": jsons,
        "confidence": st.floats(0, 1),
    },
)
acts = st.lists(st.tuples(st.sampled_from(["use", "promote", "hold", "archive", "release", "tag", "jobs"]), st.integers(0, 4)), max_size=6)


def records(rules: RuleStore) -> list[MemoryRecord]:
    return rules.backend.find(rules.namespace, Filters(kind="rule", status=STATUSES), 1000, newest_first=False)


def live(rules: RuleStore, memory: Memory, clock: ManualClock, done: list[tuple[str, int]]) -> None:
    "Let some of what can happen to rules happen."
    ids = [r.id for r in records(rules)]
    for act, n in done:
        clock.advance(days=9)
        rule_id = ids[n % len(ids)]
        try:
            if act == "use":
                rules.update_usage(rule_id, n % 2, n % 3, clock.now() - timedelta(days=n / 2))
            elif act == "tag":
                memory.update(rule_id, tags=["new"], extra={**memory.get(rule_id).extra, "more": n})
            elif act == "jobs":
                rules.run_due()
            else:
                getattr(rules, act)(rule_id, "said so")
        except InvalidInput:  # what is immutable, or in no state for it
            continue


@settings(max_examples=25)
@given(st.lists(made, min_size=1, max_size=4), acts)
def test_a_round_trip_loses_nothing(given_rules: list[dict[str, Any]], done: list[tuple[str, int]]) -> None:
    clock = ManualClock("2026-01-01T00:00:00.000007Z")
    with Memory(":memory:", clock=clock) as memory, RuleStore(":memory:", clock=ManualClock("2027-06-01")) as there:
        rules = RuleStore.within(memory)
        rules.add_rules(given_rules)
        live(rules, memory, clock, done)
        lines = [*rules.export_lines()]
        assert len(lines) == len(given_rules)
        report = there.import_lines(lines)
        assert report.added == len(lines) and not report.refused
        assert records(there) == records(rules) and [*there.export_lines()] == lines
        again = there.import_lines(lines)
        assert (again.added, again.unchanged, again.refused) == (0, len(lines), {})
        assert records(there) == records(rules)


def test_expiry_pins_and_decisions_survive() -> None:
    clock = ManualClock("2026-01-01")
    with RuleStore(":memory:", clock=clock) as here, RuleStore(":memory:", clock=ManualClock("2027-01-01")) as there:
        here.add_rule("Only in January", rule_id="short", valid_to="2026-02-01", pinned=True)
        here.add_rule("Never changed", rule_id="rock", immutable=True)
        here.add_rule("Judged anew", rule_id="anew", fail=9, status="held")
        here.release("anew", "the doctor agrees")
        clock.advance(days=100)
        assert there.import_lines(here.export_lines()).added == 3
        assert there.get("short").pinned and there.get("rock").immutable
        assert there.get("anew").since == here.get("anew").since is not None
        assert {r.rule_id for r in there.get_rules("any")} == {"rock", "anew"}  # expired is expired there, too


def test_a_rule_said_in_a_conversation_keeps_its_place() -> None:
    with Memory(":memory:", clock=ManualClock("2026-01-01")) as memory, RuleStore(":memory:") as there:
        memory.add_conversation([{"text": "No sugar", "speaker": "Mina", "role": "user"},
                                 {"text": "None at all", "speaker": "Jun", "reply_to": 0}], session="s", kind="rule")
        rules = RuleStore.within(memory)
        assert there.import_lines(rules.export_lines()).added == 2 and records(there) == records(rules)


def test_a_file_written_by_hand_is_taken_in_once() -> None:
    clock = ManualClock("2026-01-01")
    with RuleStore(":memory:", clock=clock) as rules:
        lines = ['{"expr": "Tea, please"}', "", '{"expr": "Tea, please", "formal": "when a then b"}', '{"rule_id": "x", "expr": "y"}']
        assert rules.import_lines(lines).added == 3
        before = records(rules)
        clock.advance(days=3)
        again = rules.import_lines(lines)
        assert (again.added, again.unchanged, again.refused) == (0, 3, {}) and records(rules) == before
        rules.update_usage("x", 1)
        assert rules.import_lines(lines).refused == {"x": "differs from the rule here, which stays; `rlm memory update x` changes it"}


GOOD = {"rule_id": "g", "expr": "good", "created_at": "2026-01-01"}


@pytest.mark.parametrize("bad", [
    "{", "[]", "7", '"text"', "{}", "\ufeff{}", '{"expr": "x", "expr": "y"}', '{"expr": NaN}', "[" * 100_000,
    *(json.dumps({**GOOD, "rule_id": "b", **odd}) for odd in (
        {"colour": "red"}, {"expr": 5}, {"expr": ""}, {"expr": "\ud800"}, {"rule_id": 5}, {"rule_id": ""},
        {"formal": "when a then"}, {"formal": 5},
        {"tags": "x"}, {"tags": [5]}, {"version": 0}, {"version": True}, {"version": 1.5}, {"status": "warm"}, {"success": -1},
        {"fail": "2"}, {"last_used": "yesterday"}, {"last_used": "2025-01-01"}, {"created_at": 5}, {"created_at": "2026-01-01T09:00"},
        {"updated_at": "2025-12-31"}, {"archived_at": "2026-02-01"}, {"archived_at": "2025-02-01", "status": "archived"},
        {"pinned": 1}, {"immutable": "yes"}, {"access_count": -1}, {"given_confidence": 2}, {"valid_from": []},
        {"valid_to": "2026-01-01"}, {"valid_to": "2025-01-01"}, {"turn": 1}, {"reply_to": "b"}, {"scope": []}, {"extra": "x"},
        {"provenance": 5}, {"extra": {"counted_from": 5}}, {"extra": {"counted_from": {}}}, {"kind": "block"}, {"seq": 1},
        {"extra": {"counted_from": {"at": "soon", "success": 0, "failure": 0}}},
        {"extra": {"counted_from": {"at": "2026-01-01T00:00:00.000000Z", "success": -1, "failure": 0}}})),
    json.dumps({**GOOD}),  # the same id twice
])
def test_one_unsound_line_and_nothing_is_stored(bad: str) -> None:
    with RuleStore(":memory:", clock=ManualClock("2026-03-01")) as rules:
        with pytest.raises(InvalidInput, match=r"(?i)\bline 3\b") as caught:
            rules.import_lines([json.dumps(GOOD), "", bad])
        assert "Nothing was imported" in caught.value.hint and not records(rules)


def test_a_confidence_that_was_computed_is_passed_over() -> None:
    with RuleStore(":memory:", clock=ManualClock("2026-01-01")) as rules, RuleStore(":memory:") as there:
        shown = rules.add_rule("Tea").as_dict()
        there.import_lines([json.dumps(shown)])
        assert there.get(shown["rule_id"]).as_dict() == shown and records(there) == records(rules)


@pytest.mark.parametrize("erase", [True, False])
def test_a_rule_that_was_deleted_here_does_not_come_back(erase: bool) -> None:
    with Memory(":memory:", clock=ManualClock("2026-01-01")) as memory:
        rules = RuleStore.within(memory)
        rules.add_rule("Tea", rule_id="a")
        rules.add_rule("Cocoa", rule_id="b")
        lines = [*rules.export_lines()]
        memory.delete("a", erase=erase)
        report = rules.import_lines(lines)
        assert (report.added, report.unchanged, report.refused) == (0, 1, {"a": "was deleted here"})
        assert [r.id for r in records(rules)] == ["b"]
