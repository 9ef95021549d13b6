"""The parts of the rules' room, each by itself: expressions, tokens, evaluation, regions, the reasoner, the hot cache."""

import heapq
import random
from collections.abc import Callable
from datetime import UTC, datetime
from fractions import Fraction

import pytest

from rlm.core.clock import ManualClock, to_iso
from rlm.core.errors import InvalidInput, RlmError
from rlm.rules import RuleStore
from rlm.rules.decision_tables import export_table
from rlm.rules.evaluator import compile_rule, read_facts, type_facts
from rlm.rules.expressions import (
    FALSE,
    TRUE,
    And,
    Comparison,
    Constant,
    Variable,
    assignments,
    conjunction,
    constant,
    disjunction,
    json_value,
    number,
    too_long,
)
from rlm.rules.hot_cache import HotCacheManager
from rlm.rules.intervals import ValueSet, is_empty_region, is_inside, overlap, region_of, witness
from rlm.rules.model import check_rule
from rlm.rules.parser import FormalError, parse, split_rule
from rlm.rules.reasoner import Reasoner
from rlm.store.filters import Filters
from rlm.store.records import STATUSES

pytestmark = pytest.mark.usefixtures("bare")


def test_conjunctions_and_disjunctions_are_flat() -> None:
    a, b, c = Variable("a"), Variable("b"), Variable("c")
    assert conjunction([a, And((b, c))]) == And((a, b, c)) and conjunction([a]) == a
    assert conjunction([]) == TRUE and disjunction([]) == FALSE


def test_numbers_and_truth_values_are_told_apart() -> None:
    assert Constant(True, "Bool") != number(1) and number(Fraction(4, 2)) == number(2) and constant(True) == TRUE


def test_what_an_outcome_sets() -> None:
    assert assignments(parse("when x then drink = '녹차' and not vip and hour < 3").outcome) == {"drink": constant("녹차"), "vip": FALSE}


def test_numbers_become_json_however_large() -> None:
    assert [json_value(v) for v in (True, 3, "tea", Fraction(1, 4))] == [True, 3, "tea", 0.25]
    assert json_value(10**350 + Fraction(1, 3)) == 10**350
    assert not too_long(10**400 - 1) and too_long(-(10**400)) and too_long(Fraction(1, 10**400)) and not too_long(Fraction(repr(5e-324)))


@pytest.mark.parametrize(
    ("text", "position"),
    [
        ("when a then b then c", 15),
        ("a then b", 9),
        ("when (a then b)", 6),
        ("when a) or (b then c", 7),
        ("when a[then b", 7),
        ("when 'abc then x", 6),
        ("when f'x' then y", 7),
        ("when a then", 8),
        ("", 1),
        ("when 1if then y", 7),
        ("when a; then b", 7),
    ],
)
def test_a_rule_that_does_not_divide_names_the_character(text: str, position: int) -> None:
    with pytest.raises(FormalError) as error:
        split_rule(text)
    assert error.value.position == position


def test_types_follow_from_use() -> None:
    rule = parse('when 사용자 == "민아" and 9 <= 시각 < 11.5 and not 휴일 then 음료 = "녹차" and 설탕 = False')
    assert rule.sorts == {"사용자": "String", "시각": "Real", "휴일": "Bool", "음료": "String", "설탕": "Bool"}
    assert parse("for n: Int when n > 1 then big").sorts == {"n": "Int", "big": "Bool"}
    assert parse("when a == b and b in ('x', 'y', 'x') then c").sorts["a"] == "String"


def test_texts_keep_their_spaces() -> None:
    assert parse("when a and\n   b then c") == parse("when a and b then c")
    condition = parse("when a == 'x\ty\u00a0z' then c").condition
    assert isinstance(condition, Comparison) and condition.right == constant("x\ty\u00a0z")


@pytest.mark.parametrize(
    ("text", "facts", "expected"),
    [
        ("when vip or hour < 9 then tea", {"vip": True}, True),
        ("when vip and hour < 9 then tea", {"vip": True}, False),
        ("when not (vip and hour < 9) then tea", {"vip": True}, False),
        ("when not (vip and hour < 9) then tea", {"vip": False}, True),
        ("when x + y == 0.3 then z", {"x": 0.1, "y": 0.2}, True),
        ("for n: Int when n > 1 then z", {"n": 2.5}, False),
        ("for n: Int when n > 1 then z", {"n": 2.0}, True),
        ("when vip then z", {"vip": 1}, False),
        ("when x == 1 then z", {"x": True}, False),
        ("when 음료 in ['녹차', '홍차'] then z", {"음료": "녹차"}, True),
        ("when x > 1 then y", {"x": None}, False),
    ],
)
def test_a_rule_fires_when_its_condition_is_known_to_be_true(text: str, facts: dict[str, object], expected: bool) -> None:
    assert compile_rule(parse(text)).fires(type_facts(read_facts(facts))) is expected


def test_a_result_too_long_to_write_is_left_out() -> None:
    huge = compile_rule(parse("when x > 0 then y = x * 1e99 * 1e99 * 1e99 * 1e99 and z = 1"))
    assert huge.effects(type_facts(read_facts({"x": 9999}))) == {"y": 9999 * 10**396, "z": 1}
    assert huge.effects(type_facts(read_facts({"x": 10**4}))) == {"z": 1}


def region(text: str) -> dict[str, ValueSet]:
    formal = parse(f"{text} then z__")
    found = region_of([formal.condition], formal.sorts)
    assert found is not None
    return found


def test_regions() -> None:
    empty = ("when x > 3 and x < 2", "when a and not a", "for n: Int when 2 < n < 3", "when False")
    full = ("when 2 < x < 3", "when x != 3 and 2 < x", "when True")
    assert all(is_empty_region(region(t)) for t in empty) and not any(is_empty_region(region(t)) for t in full)
    assert is_empty_region(region("for n: Int when 2 <= n < 4 and n not in [2, 3]"))
    assert overlap(region("when 도시 == '서울'"), region("when 도시 in ['부산', '대구']")) is None
    both = overlap(region("when 도시 != '서울' and 9 <= 시각 < 11"), region("when 시각 > 10 and vip"))
    assert both is not None and witness(both) == {"vip": True, "도시": "other", "시각": Fraction(21, 2)}
    assert is_inside(region("when x >= 9 and x != 9"), region("when x > 9"))
    assert is_inside(region("for n: Int when n > 9"), region("for n: Int when n >= 10"))
    assert is_inside(region("when a"), {}) and not is_inside({}, region("when a")) and is_inside({}, region("when b in [True, False]"))


def test_questions_about_single_rules_and_pairs() -> None:
    pytest.importorskip("z3")
    r = Reasoner()
    tea = parse("when user == 'Mina' and hour < 11 then drink = 'tea'")
    assert r.clash(tea, parse("when meeting then drink in ['tea', 'coffee']")).verdict == "no"
    assert r.clash(parse("when drink == 'coffee' then drink = 'tea'"), parse("when a then sugar = False")).verdict == "no"
    half = parse("when base >= 0 and vip then price = base * 0.5")
    assert r.clash(half, parse("when sale then price <= base")).verdict == "no"
    assert r.can_fire(parse("when x > y and y > x then z")).verdict == "no"
    assert r.can_fire(parse("for n: Int when 1 < n < 2 then z")).verdict == "no"
    assert r.always_fires(parse("when x > 1 or x <= 1 then z")).verdict == "yes" and r.always_fires(tea).verdict == "no"
    assert r.vacuous(parse("when 기온 > 30 then 기온 > 20")).verdict == "yes" and r.vacuous(tea).verdict == "no"
    assert r.vacuous(parse("when x then a or not a")).verdict == "yes"
    assert r.self_contradictory(parse("when drink == 'coffee' then drink = 'tea'")).verdict == "no"  # it is about the state afterwards
    assert r.self_contradictory(parse("when a then drink = 'coffee' and drink != 'coffee'")).verdict == "yes"
    assert r.self_contradictory(parse("when y > 3 then x < y and x > 4 and y < 5")).verdict == "no"
    assert r.self_contradictory(parse("for x: Int, y: Int when y > 3 then x == y and x <= 3")).verdict == "yes"
    assert r.self_contradictory(tea).verdict == "no"


@pytest.mark.parametrize(
    "start",
    [
        5,
        {},
        {"at": "yesterday", "success": 0, "failure": 0},
        {"at": to_iso(datetime(2026, 1, 31, tzinfo=UTC)), "success": -1, "failure": 0},
    ],
)
def test_a_decision_that_nobody_made_is_refused(start: object) -> None:
    with pytest.raises(InvalidInput):
        check_rule({"extra": {"counted_from": start}}, 100)


@pytest.fixture
def rules() -> RuleStore:
    store = RuleStore(":memory:", clock=ManualClock("2026-02-01"))
    store.add_rule("tea", rule_id="tea", status="ltm", success=9)
    return store


@pytest.mark.parametrize(
    "act",
    [
        lambda r: r.update_usage("tea", -1),
        lambda r: r.update_usage("tea", 1, timestamp="2026-01-05T09:00"),
        lambda r: r.update_usage("tea", 1, timestamp="2031-01-01"),
        lambda r: r.update_usage("tea", 1, timestamp="2025-01-01"),
        lambda r: r.update_usage("nobody", 1),
        lambda r: r.update_usage("tea", 1.5),
        lambda r: r.release("tea"),
        lambda r: r.import_lines(['{"expr": "x", "version": 0}']),
        lambda r: r.import_lines(['{"expr": "x", "fail": -1}']),
    ],
)
def test_what_is_refused_stores_nothing(rules: RuleStore, act: Callable[[RuleStore], object]) -> None:
    before = rules.backend.position()
    with pytest.raises(RlmError):
        act(rules)
    assert rules.backend.position() == before


@pytest.mark.seed("000 get_rules")
def test_the_cache_orders_and_filters_as_sorting_everything_does() -> None:
    "Whether few rules change or many, and whether few have a tag or many."
    rng, store = random.Random(3), RuleStore(":memory:", clock=ManualClock("2026-02-01"))
    tags = ["a", "b", "rare"]
    for size in (150, 3, 40, 200):
        store.add_rules([
            {"expr": f"{size} {n}", "status": rng.choice(STATUSES), "success": rng.randrange(4), "fail": rng.randrange(3),
             "tags": [t for t in tags if rng.random() < (0.05 if t == "rare" else 0.5)]}
            for n in range(size)
        ])
        for rule in rng.sample(list(store.get_rules("any")), 30):
            store.update_usage(rule.rule_id, rng.randrange(3))
        everything = list(store.get_rules("any"))
        assert everything == sorted(everything, key=lambda r: (-r.confidence, r.rule_id))
        for _ in range(60):
            status, chosen = rng.sample(STATUSES, rng.randint(1, 4)), rng.sample(tags, rng.randrange(3))
            match, limit = rng.choice(["all", "any"]), rng.choice([None, 1, 3, 50])
            test = all if match == "all" else any
            passing = [r for r in everything if r.status in status and (not chosen or test(t in r.tags for t in chosen))]
            assert list(store.get_rules(status, chosen, limit, match=match)) == passing[:limit]


def test_a_rule_that_is_valid_later_is_listed_and_does_not_fire(rules: RuleStore) -> None:
    later = "when go then x = 1"
    rules.add_rule(later, formal=later, rule_id="later", valid_from="2090-01-01T00:00:00Z")
    assert "later" in [r.rule_id for r in rules.get_rules("any")] and any(line.startswith("later,") for line in export_table(rules))
    assert not rules.apply({"go": True}).fired


def test_a_cache_keeps_nothing_of_tags_and_variables_that_are_gone(rules: RuleStore) -> None:
    with rules.cache.snapshot():
        rules.cache.compile()
    before = {*rules.cache._by_tag}, {*rules.cache.index._mentions}  # no public name tells of them
    for n in range(20):
        text = f"when x{n} then y{n} = 1"
        rules.add_rule(text, formal=text, rule_id=f"r{n}", tags=[f"tag {n}"])
        with rules.cache.snapshot():
            rules.cache.compile()
        assert f"tag {n}" in rules.cache._by_tag and f"x{n}" in rules.cache.index._mentions
        rules.cache.drop(f"r{n}")
    assert ({*rules.cache._by_tag}, {*rules.cache.index._mentions}) == before


@pytest.mark.seed("000 cache")
def test_a_fresh_cache_agrees_with_one_that_was_kept_in_step(rules: RuleStore) -> None:
    for n in range(120):
        rules.add_rule(f"rule {n}", success=n % 7, formal=f"when x > {n} then y = {n}")
    rules.archive("tea")
    filters = Filters.read(rules.clock.now(), status="any")
    fresh = HotCacheManager(rules.backend, rules.namespace)
    with fresh.snapshot(), rules.cache.snapshot():
        assert fresh.best(filters, None) == rules.cache.best(filters, None) and len(fresh) == 121
        keys = [(-r.score, r.id) for r in fresh.best(filters, None)]
        assert keys[:5] == heapq.nsmallest(5, keys) == [(-r.score, r.id) for r in fresh.best(filters, 5)]
