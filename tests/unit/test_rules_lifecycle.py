"A rule's life: promotion and archival follow the evidence, whatever the order, and what can't be is refused."

import logging
import sqlite3
import time
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from rlm import Memory
from rlm.core.clock import ManualClock, to_iso
from rlm.core.errors import InvalidInput, NotFound, RlmError
from rlm.core.promotion import RANK, Evidence, PromotionPolicy, judge, must_hold
from rlm.core.settings import load_settings
from rlm.rules import FormalError, RuleStore
from rlm.store.records import Event, new_record

pytestmark = pytest.mark.usefixtures("bare")
evidence = st.builds(
    Evidence, st.sampled_from(sorted(RANK)), st.integers(0, 600), st.integers(0, 12), st.floats(0, 400)
)
gates = st.builds(
    PromotionPolicy,
    st.integers(1, 10),
    st.integers(0, 5),
    st.integers(0, 6),
    st.integers(1, 6),
    st.sampled_from([0.0, 0.01, 0.2, 1.0]),
    st.floats(1, 60),
    st.floats(1, 300),
)


@given(evidence, gates, st.integers(0, 3), st.integers(0, 3), st.floats(0, 50))
# promoted, it would have been kept for a shorter time
@example(Evidence("hot", 1, 0, 2.0), PromotionPolicy(1, 0, 1, 1, 0.0, 2.0, 1.0), 0, 1, 0.0)
def test_judgment_is_monotone_in_evidence_and_idempotent(
    e: Evidence, gate: PromotionPolicy, more: int, worse: int, older: float
) -> None:
    verdict = judge(e, gate)
    rank = RANK[verdict.status]
    assert (verdict.reason == "") == (verdict.status == e.status)
    assert judge(Evidence(verdict.status, e.success, e.failure, e.idle), gate).status == verdict.status
    assert RANK[judge(Evidence(e.status, e.success + more, e.failure, e.idle), gate).status] >= rank
    assert RANK[judge(Evidence(e.status, e.success, e.failure + worse, e.idle), gate).status] <= rank
    assert RANK[judge(Evidence(e.status, e.success, e.failure, e.idle + older), gate).status] <= rank
    if must_hold(e, gate):
        assert must_hold(Evidence(e.status, e.success, e.failure + worse, e.idle), gate)


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock("2026-01-01T00:00:00Z")


@pytest.fixture
def rules(clock: ManualClock) -> Iterator[RuleStore]:
    with RuleStore(":memory:", clock=clock) as store:
        yield store


def standing(store: RuleStore) -> dict[str, tuple[Any, ...]]:
    return {r.rule_id: (r.status, r.version, r.success, r.fail) for r in store.get_rules("any")}


specimens = st.lists(
    st.tuples(st.sampled_from(["hot", "ltm", "held"]), st.integers(0, 9), st.integers(0, 5)), min_size=1, max_size=6
)


@settings(max_examples=25)
@given(specimens, st.randoms(use_true_random=False), st.integers(0, 200))
def test_a_run_does_not_depend_on_the_order_and_does_nothing_twice(
    made: list[tuple[str, int, int]], rng: Any, days: int
) -> None:
    outcomes = []
    for order in (range(len(made)), rng.sample(range(len(made)), len(made))):
        clock = ManualClock("2026-01-01T00:00:00Z")
        with RuleStore(":memory:", clock=clock) as store:
            store.add_rules(
                [
                    {
                        "rule_id": f"r{n}",
                        "expr": f"rule {n}",
                        "status": made[n][0],
                        "success": made[n][1],
                        "fail": made[n][2],
                    }
                    for n in order
                ]
            )
            clock.advance(days=days)
            expected = {t.rule_id: t.new for t in store.run_due(dry_run=True).done}
            assert {t.rule_id: t.new for t in store.run_due().done} == expected
            before, position = standing(store), store.backend.position()
            assert store.run_due().done == () and standing(store) == before and store.backend.position() == position
            outcomes.append(before)
    assert outcomes[0] == outcomes[1]
    for n, (status, success, fail) in enumerate(made):
        assert outcomes[0][f"r{n}"][0] == judge(Evidence(status, success, fail, days), PromotionPolicy()).status


@pytest.mark.seed("000 promotion")
def test_every_transition_is_an_event_with_its_evidence(rules: RuleStore, clock: ManualClock) -> None:
    rules.add_rule("아침에는 녹차", rule_id="tea")
    rules.update_usage("tea", 5, 1)
    clock.advance(hours=5)
    rules.run_due()
    clock.advance(days=181)
    rules.run_due()
    kinds = [
        (e.kind, e.detail.get("status"), e.detail.get("success"), e.detail.get("failure"))
        for e in rules.backend.events("default", "tea")
    ]
    assert kinds == [
        ("write", None, None, None),
        ("use", None, 5, 1),
        ("promote", ["hot", "ltm"], 5, 1),
        ("archive", ["ltm", "archived"], 5, 1),
    ]
    assert rules.get("tea").version == 3 and [v.status for v in rules.backend.memories.versions("tea", "default")] == [
        "hot",
        "ltm",
        "archived",
    ]
    assert rules.backend.db.query("SELECT status, success, fail, version FROM rules") == [("archived", 5, 1, 3)]


@pytest.mark.seed("000 promotion")
def test_a_rule_is_promoted_by_the_call_that_the_design_prints(rules: RuleStore) -> None:
    rules.add_rule("아침에는 녹차", rule_id="tea")
    promoted = rules.promote_to_ltm("tea")
    assert (promoted.status, promoted.version) == ("ltm", 2) and rules.get("tea").status == "ltm"
    assert [e.kind for e in rules.backend.events("default", "tea")] == ["write", "promote"]


@pytest.mark.seed("000 archival")
def test_promotion_comes_before_archival(rules: RuleStore, clock: ManualClock) -> None:
    rules.add_rules([{"rule_id": "proven", "expr": "x", "success": 5}, {"rule_id": "unused", "expr": "y"}])
    clock.advance(days=31)
    assert [(t.rule_id, t.action) for t in rules.run_due().done] == [("proven", "promote"), ("unused", "archive")]


@pytest.mark.seed("000 parameters")
def test_the_parameters_come_from_file_and_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, clock: ManualClock
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("rml_config.yaml").write_text("N_promote: 4\nTTL_hot: 7 d\n", encoding="utf-8")
    monkeypatch.setenv("K_FAIL_REALTIME", "1")
    monkeypatch.setenv("N_PROMOTE", "3")
    monkeypatch.setenv("RLM_N_PROMOTE", "2")
    with RuleStore(":memory:", clock=clock) as store:
        assert store.gate == PromotionPolicy(n_promote=2, ttl_hot=7.0, k_fail_realtime=1)
        store.add_rule("x", rule_id="a", success=2)
        store.add_rule("y", rule_id="b")
        assert store.update_usage("b", fail_inc=1).status == "held"
        store.run_due()
        assert store.get("a").status == "ltm"
    assert PromotionPolicy.of(load_settings(environment={})).n_promote == 4


def test_a_good_record_outweighs_a_few_failures_where_a_rate_is_set(clock: ManualClock) -> None:
    with RuleStore(":memory:", clock=clock, max_fail_rate=0.01) as store:
        store.add_rule("x", rule_id="busy", success=500)
        assert store.update_usage("busy", fail_inc=2).status == "hot"
        store.run_due()
        assert store.get("busy").status == "ltm" and store.update_usage("busy", fail_inc=2).status == "ltm"
        assert store.update_usage("busy", fail_inc=9).status == "held"


@pytest.mark.seed("000 hold")
def test_a_held_rule_is_told_of_and_not_applied(rules: RuleStore, caplog: pytest.LogCaptureFixture) -> None:
    rules.add_rule("x", rule_id="a", formal="when x then y")
    with caplog.at_level(logging.WARNING, "rlm.rules"):
        assert rules.update_usage("a", fail_inc=4).status == "hot" and rules.update_usage("a", fail_inc=1).status == "held"
    assert "The rule a is held" in caplog.text
    assert (
        rules.apply({"x": True}).fired == ()
        and rules.release("a").status == "hot"
        and len(rules.apply({"x": True}).fired) == 1
    )
    assert rules.run_due().done == (), "what was forgiven is not held against it"


def test_pinned_rules_do_not_age_and_immutable_ones_do_not_change(rules: RuleStore, clock: ManualClock) -> None:
    rules.add_rule("x", rule_id="pin", pinned=True)
    rules.add_rule("y", rule_id="stone", immutable=True, success=9)
    rules.update_usage("stone", fail_inc=9)
    clock.advance(days=999)
    assert rules.run_due().done == () and rules.get("stone").status == "hot" and rules.get("stone").fail == 9
    rules.update_usage("pin", fail_inc=4)
    assert rules.get("pin").status == "hot", "four failures are for the night, five are held at once"
    assert [t.new for t in rules.run_due().done] == ["archived"]
    with pytest.raises(InvalidInput, match="immutable"):
        rules.archive("stone")


@pytest.mark.parametrize(
    ("call", "kind", "said"),
    [
        (lambda r: r.update_usage("nobody", 1), NotFound, "no rule 'nobody'"),
        (lambda r: r.update_usage("a", -1), InvalidInput, "success_inc is -1"),
        (lambda r: r.update_usage("a", 0, -5), InvalidInput, "fail_inc is -5"),
        (lambda r: r.update_usage("a", True), InvalidInput, "success_inc"),
        (lambda r: r.update_usage("a", 1, timestamp=datetime(2026, 1, 1)), InvalidInput, "no time zone"),
        (lambda r: r.update_usage("a", 1, timestamp=datetime(2027, 1, 1, tzinfo=UTC)), InvalidInput, "in the future"),
        (lambda r: r.update_usage("a", 1, timestamp="2025-01-01"), InvalidInput, "was made at"),
        (lambda r: r.update_usage("a", 1, timestamp="yesterday"), InvalidInput, "not a date or time"),
        (lambda r: r.update_usage(5, 1), InvalidInput, "id is given as"),
        (lambda r: r.add_rule("again", rule_id="a"), InvalidInput, "already a memory 'a'"),
        (lambda r: r.add_rule("x", formal=""), InvalidInput, "blank"),
        (
            lambda r: r.add_rules([{"expr": "b", "rule_id": "b"}, {"expr": "b", "rule_id": "b"}]),
            InvalidInput,
            "already a memory 'b'",
        ),
        (lambda r: r.add_rules("one rule"), InvalidInput, "given as str"),
        (lambda r: r.promote("nobody"), NotFound, "nobody"),
        (lambda r: r.run_due(datetime(2026, 1, 1)), InvalidInput, "no time zone"),
        (lambda r: r.get("block"), NotFound, "is a block"),
        (lambda r: r.get_rules(filter_tags="x" * 600), InvalidInput, "tag"),
        (lambda r: r.history("nobody"), NotFound, "nobody"),
    ],
)
def test_what_can_not_be_is_refused_and_nothing_is_stored(
    call: Any, kind: type[RlmError], said: str, rules: RuleStore
) -> None:
    rules.add_rule("a rule", rule_id="a")
    with rules.backend.transaction() as tx:
        tx.insert([new_record("no rule", rules.clock.now(), id="block")])
    before = (rules.backend.position(), standing(rules))
    with pytest.raises(kind, match=said) as error:
        call(rules)
    assert (rules.backend.position(), standing(rules)) == before and error.value.hint


def test_a_clock_that_goes_back_makes_no_rule_older_and_no_version_earlier(
    rules: RuleStore, clock: ManualClock
) -> None:
    rules.add_rule("x", rule_id="a")
    clock.advance(days=10)
    rules.update_usage("a", 5)
    rules.run_due()
    clock.advance(hours=-20)
    assert rules.run_due().done == () and rules.archive("a").status == "archived"
    assert [v.updated_at for v in rules.backend.memories.versions("a", "default")] == sorted(
        v.updated_at for v in rules.backend.memories.versions("a", "default")
    )
    clock.advance(days=-5)
    with pytest.raises(InvalidInput, match="the clock went back"):
        rules.run_due()
    assert rules.run_due(force=True).done == ()


@pytest.mark.seed("000 update_usage")
def test_reports_that_come_late_do_not_make_a_rule_younger(rules: RuleStore, clock: ManualClock) -> None:
    rules.add_rule("x", rule_id="a")
    clock.advance(days=20)
    rules.update_usage("a", 1)
    rules.update_usage("a", 1, timestamp=clock.now() - timedelta(days=9))
    assert rules.get("a").last_used == clock.now() and rules.get("a").success == 2


def test_rules_and_memories_share_a_store(bare: Path, tmp_path: Path) -> None:
    with Memory(tmp_path / "m.db") as memory:
        store = RuleStore.within(memory)
        store.add_rule("민아는 아침에 녹차를 마신다", rule_id="tea", formal="when hour < 11 then drink = 'tea'")
        assert [h.id for h in memory.search("녹차", kind="rule")] == ["tea"] and len(
            store.apply({"hour": 9}).fired
        ) == 1
        memory.update("tea", status="held")
        assert store.apply({"hour": 9}).fired == ()
        broken = "when hour < then drink"
        with pytest.raises(FormalError, match="at character 11"):
            memory.update("tea", status="hot", formal=broken)
        old = memory.get("tea")
        with memory.backend.transaction() as tx:  # as an older rlm would have let it in: it is named, and never applied
            new = old.changed(status="hot", formal=broken, version=old.version + 1)
            tx.replace(old, new, Event(old.updated_at, "update", "tea"))
        assert store.apply({"hour": 9}).fired == () and "character" in store.cache.problems["tea"]
        memory.delete("tea", erase=True)
        assert store.get_rules("any") == () and store.cache.problems == {}


def test_a_use_that_a_memory_reports_counts_like_any(bare: Path, clock: ManualClock) -> None:
    with Memory(":memory:", clock=clock) as memory:
        store = RuleStore.within(memory)
        for name in ("a", "b"):
            store.add_rule(f"rule {name}", rule_id=name, status="ltm")
        assert len(store.get_rules()) == 2
        memory.record_usage("b", success=9)
        assert [r.rule_id for r in store.get_rules(limit=1)] == ["b"] and store.get("b").success == 9
        memory.record_usage("b", success=1, access=3, query="what about b?")
        assert memory.get("b").access_count == 4
        assert [(p.event, p.success) for p in store.history("b").points] == [("write", 0), ("use", 9), ("use", 10)]
        assert memory.backend.events("default", "b")[-1].detail["query"] == "what about b?"
        for _ in range(9):
            memory.record_usage("a", failure=1)
        assert store.get("a").status == "held" and [r.rule_id for r in store.get_rules()] == ["b"]
        note = memory.write("green tea")
        memory.record_usage(note.id, success=2)
        assert memory.backend.events("default", note.id)[-1].detail == {"success": 2, "failure": 0}


def test_many_uses_are_judged_by_their_rate(rules: RuleStore) -> None:
    rules.add_rule("x", rule_id="old", success=10_000, status="ltm")
    rules.add_rule("y", rule_id="new")
    for _ in range(5):
        rules.update_usage("old", fail_inc=1)
        rules.update_usage("new", fail_inc=1)
    assert (rules.get("old").status, rules.get("new").status) == ("ltm", "held")
    assert not [t for t in rules.run_due().done if t.rule_id == "old"]


def test_a_rule_is_applied_from_when_it_is_valid_on(rules: RuleStore, clock: ManualClock) -> None:
    rules.add_rule("when go then x = 1", formal="when go then x = 1", rule_id="later", valid_from="2026-06-01T00:00:00Z")
    rules.add_rule("when go then y = 1", formal="when go then y = 1", rule_id="now")
    assert [a.rule_id for a in rules.apply({"go": True}).fired] == ["now"]
    clock.advance(days=300)
    assert [a.rule_id for a in rules.apply({"go": True}).fired] == ["later", "now"]
    clock.advance(days=-400)
    assert [a.rule_id for a in rules.apply({"go": True}).fired] == ["now"], "a clock that went back stops no rule"


@pytest.mark.seed("000 add_rule")
def test_a_rule_and_the_row_of_the_seed_can_be_added(rules: RuleStore) -> None:
    made = rules.add_rule("tea at nine", formal="when hour >= 9 then drink = 'tea'", tags=["drink"], rule_id="tea")
    rules.update_usage("tea", 3)
    with RuleStore(":memory:") as other:
        copy = other.add_rule(rules.get("tea"))
        assert (copy.rule_id, copy.success, copy.formal, copy.tags) == ("tea", 3, made.formal, made.tags)
        assert copy.last_used == rules.get("tea").last_used
        with pytest.raises(InvalidInput, match="already"):
            other.add_rule(copy.as_dict())
        row = {"rule_id": "r", "expr": "rest at night", "formal": None, "tags": ["a", "b"], "version": 4, "status": "ltm", "success": 6,
               "fail": 1, "last_used": "2026-01-01T00:00:00Z"}
        kept = other.add_rule(row)
        assert {n: v for n, v in kept.as_dict().items() if n in row} == row | {"last_used": "2026-01-01T00:00:00.000000Z"}
        assert not other.backend.check()
        with pytest.raises(InvalidInput, match="version"):
            other.add_rule(row | {"rule_id": "s", "version": 0})


@pytest.mark.seed("000 schema")
def test_the_table_of_rules_has_the_columns_of_its_design(rules: RuleStore) -> None:
    rules.add_rule("tea at nine", formal="when hour >= 9 then drink = 'tea'", tags=["drink", "차"], rule_id="tea", success=2)
    found = rules.backend.db.query("SELECT rule_id, expr, formal, tags, version, status, success, fail, last_used FROM rules")
    assert [tuple(row) for row in found] == [
        ("tea", "tea at nine", "when hour >= 9 then drink = 'tea'", '["drink","차"]', 1, "hot", 2, 0, None)]


RULES = st.lists(st.tuples(st.sampled_from(["hot", "ltm", "held", "archived"]), st.integers(0, 8), st.integers(0, 7), st.integers(0, 400),
                           st.booleans(), st.booleans()), max_size=12)


@settings(max_examples=30, deadline=None)
@given(RULES)
def test_the_job_reads_few_rules_and_misses_none(drawn: list[tuple[str, int, int, int, bool, bool]]) -> None:
    clock = ManualClock("2026-01-01")
    with RuleStore(":memory:", clock=clock) as rules:
        for n, (status, success, fail, day, used, pinned) in enumerate(sorted(drawn, key=lambda d: d[3])):
            clock.advance(days=day - (clock.now() - datetime(2026, 1, 1, tzinfo=UTC)).days)
            rules.add_rule(f"rule {n}", rule_id=f"r{n}", status=status, success=success, fail=fail, pinned=pinned,
                           **({"last_used": clock.now()} if used else {}))
        clock.advance(days=5)
        every = ((r, r.evidence(clock.now())) for r in rules.get_rules("any"))
        verdicts = {r.rule_id: judge(replace(e, idle=0.0) if r.pinned else e, rules.gate) for r, e in every}
        due = {rule_id: v.status for rule_id, v in verdicts.items() if v.reason}
        report = rules.run_due(dry_run=True)
        assert {t.rule_id: t.new for t in report.done} == due
        assert report.judged == sum(status != "archived" for status, *_ in drawn)


@pytest.mark.seed("000 indexes")
def test_the_nightly_job_and_questions_by_status_and_last_use_are_answered_by_indexes(
        rules: RuleStore, monkeypatch: pytest.MonkeyPatch) -> None:
    rules.add_rules([{"expr": f"rule {n}", "status": "archived" if n % 3 else "hot"} for n in range(300)])
    db, asked = rules.backend.db, list[tuple[str, Any]]()
    ask = db.query
    monkeypatch.setattr(db, "query", lambda sql, values=(): asked.append((sql, values)) or ask(sql, values))
    rules.run_due(dry_run=True)
    monkeypatch.undo()
    plans = {sql: [row[3] for row in ask(f"EXPLAIN QUERY PLAN {sql}", values)] for sql, values in asked if "memories" in sql}
    assert len(plans) == 2  # how many there are, and those that are due of a status
    for plan in plans.values():
        assert any("memories_rule_status (status=? AND namespace=?" in step for step in plan)
        assert not [step for step in plan if step.startswith("SCAN") and "subquery" not in step.lower() and "USING" not in step]
    [due] = [plan for sql, plan in plans.items() if "last_used_at <" in sql]
    assert any("last_used_at<?" in step for step in due)
    for condition, index in (("status = 'hot'", "memories_rule_status"), ("last_used < '2026-01-01'", "memories_rule_used")):
        plan = [row[3] for row in ask(f"EXPLAIN QUERY PLAN SELECT rule_id FROM rules WHERE {condition}")]
        assert index in plan[0] and plan[0].startswith("SEARCH"), plan
    tags = [row[3] for row in ask("EXPLAIN QUERY PLAN SELECT seq FROM memory_tags WHERE tag = 'x'")]
    assert "memory_tags_tag" in tags[0]


@pytest.mark.seed("000 add_rule")
def test_a_row_of_the_seeds_own_table_is_added_as_sqlite_hands_it_out(tmp_path: Path) -> None:
    old = sqlite3.connect(tmp_path / "old.db")
    old.row_factory = sqlite3.Row
    old.execute("CREATE TABLE rules (rule_id TEXT PRIMARY KEY, expr TEXT, formal TEXT, tags TEXT, version INTEGER, status TEXT, "
                "success INTEGER, fail INTEGER, last_used TIMESTAMP)")
    old.execute("INSERT INTO rules VALUES ('night', '밤이면 불을 켠다', 'if dark then lamp = True', '[\"light\"]', 3, 'ltm', 7, 1, "
                "'2026-01-02 03:04:05')")
    stored = old.execute("SELECT * FROM rules").fetchone()
    old.close()
    rules, row = RuleStore(tmp_path / "new.db"), dict(stored)
    added = rules.add_rule(stored)
    assert (added.tags, added.version, added.success, added.fail) == (("light",), 3, 7, 1)
    assert to_iso(added.last_used or added.created_at) == "2026-01-02T03:04:05.000000Z", "a TIMESTAMP without a zone is UTC"
    assert rules.apply({"dark": True}).fired[0].rule_id == "night"
    assert rules.update_usage("night", 1, 0, time.time()).success == 8
    with pytest.raises(InvalidInput, match="list of texts"):
        rules.add_rule(row | {"rule_id": "day", "tags": "light"})
    with pytest.raises(InvalidInput, match="is no time"):
        rules.update_usage("night", 1, 0, 1e30)
    with RuleStore(":memory:") as other:
        view = sqlite3.connect(tmp_path / "new.db")
        view.row_factory = sqlite3.Row
        ours = view.execute("SELECT * FROM rules").fetchone()
        view.close()
        assert other.add_rule(ours).success == 8, "a row of the view `rules` names its namespace, and is added to this one"
    rules.close()
