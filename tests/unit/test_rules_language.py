"The language of rules: written and read back unchanged, evaluated as the solver sees it, and nothing hostile gets through."

import re
import string
import unicodedata
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlm.core.errors import InvalidInput
from rlm.rules import RuleStore
from rlm.rules.evaluator import compile_expression, compile_rule, read_facts, type_facts
from rlm.rules.expressions import (
    Arithmetic,
    Comparison,
    Constant,
    Expression,
    FormalRule,
    Membership,
    Not,
    Sort,
    Variable,
    conjunction,
    constant,
    disjunction,
    format_expression,
    number,
    variables,
)
from rlm.rules.parser import MAX_CHARS, MAX_DEPTH, MAX_TOKENS, FormalError, parse

BOOLS, NUMBERS, TEXTS = ("vip", "회의"), ("hour", "기온", "n"), ("user", "도시")
SORTS: dict[str, Sort] = {
    **dict.fromkeys(BOOLS, "Bool"),
    **dict.fromkeys(NUMBERS, "Real"),
    **dict.fromkeys(TEXTS, "String"),
    "n": "Int",
}
numbers = st.one_of(st.integers(-(10**6), 10**6), st.fractions(-100, 100, max_denominator=40)).map(
    lambda v: number(Fraction(v))
)
texts = st.text(st.characters(exclude_categories=("Cs",)), max_size=6).map(
    lambda t: constant(unicodedata.normalize("NFC", t))
)


def scaled(op: str, factor: Constant, term: Expression) -> Expression:
    "A product or quotient, with the constant where it belongs."
    if isinstance(term, Constant) or (op == "/" and factor == number(0)):
        return term
    return (
        Arithmetic("/", term, factor)
        if op == "/"
        else Arithmetic("*", factor, term)
        if factor.value == 0
        else Arithmetic("*", term, factor)
    )


def summed(op: str, left: Expression, right: Expression) -> Expression:
    return left if isinstance(left, Constant) and isinstance(right, Constant) else Arithmetic(op, left, right)


terms = st.recursive(
    st.one_of(numbers, st.sampled_from(NUMBERS).map(Variable)),
    lambda inner: st.one_of(
        st.builds(summed, st.sampled_from("+-"), inner, inner),
        st.builds(scaled, st.sampled_from("*/"), numbers, inner),
        inner.map(lambda e: e if isinstance(e, Constant) else Arithmetic("-", number(0), e)),
    ),
    max_leaves=5,
)
words = st.one_of(texts, st.sampled_from(TEXTS).map(Variable))
members = st.one_of(
    st.builds(
        lambda n, vs: Membership(Variable(n), tuple(sorted(set(vs), key=lambda c: c.value))),
        st.sampled_from(TEXTS),
        st.lists(texts, min_size=1, max_size=3),
    ),
    st.builds(
        lambda n, vs: Membership(Variable(n), tuple(sorted(set(vs), key=lambda c: c.value))),
        st.sampled_from(NUMBERS),
        st.lists(numbers, min_size=1, max_size=3),
    ),
)
atoms = st.one_of(
    st.sampled_from(BOOLS).map(Variable),
    st.booleans().map(constant),
    members,
    st.builds(Comparison, st.sampled_from(["==", "!=", "<", "<=", ">", ">="]), terms, terms),
    st.builds(Comparison, st.sampled_from(["==", "!="]), words, words),
)
claims: st.SearchStrategy[Expression] = st.recursive(
    atoms,
    lambda inner: st.one_of(
        inner.map(Not),
        st.lists(inner, min_size=2, max_size=3).map(conjunction),
        st.lists(inner, min_size=2, max_size=3).map(disjunction),
        st.builds(Comparison, st.sampled_from(["==", "!="]), inner, inner),
    ),
    max_leaves=6,
)


def anchored(e: Expression) -> Expression:
    "With a part for every variable, so that its type can be told."
    known = (
        [Variable(b) for b in BOOLS]
        + [Comparison(">", Variable(n), number(0)) for n in NUMBERS]
        + [Comparison("==", Variable(t), constant("x")) for t in TEXTS]
    )
    return conjunction([e, disjunction(known)])


@given(claims)
def test_what_is_written_is_read_back_unchanged(e: Expression) -> None:
    formal = FormalRule(anchored(e), Variable("z"), {}, (("n", "Int"),))
    once = parse(str(formal))
    assert once == formal
    assert parse(str(once)) == once and str(parse(str(once))) == str(once)
    assert {n: once.sorts[n] for n in variables(formal.condition)} == {n: SORTS[n] for n in variables(formal.condition)}


facts = st.fixed_dictionaries(
    {},
    optional={
        **dict.fromkeys(BOOLS, st.booleans()),
        "hour": st.integers(-5, 5),
        "n": st.integers(-5, 5),
        "기온": st.fractions(-5, 5, max_denominator=4),
        **dict.fromkeys(TEXTS, st.sampled_from(["x", "서울"])),
    },
)


@given(claims, facts)
def test_more_facts_never_turn_a_known_truth(e: Expression, situation: dict[str, Any]) -> None:
    test = compile_expression(e, SORTS)
    whole: dict[str, Any] = {
        "vip": True,
        "회의": False,
        "hour": 1,
        "n": 2,
        "기온": Fraction(1, 2),
        "user": "x",
        "도시": "서울",
        **situation,
    }
    value = test(type_facts(situation))
    assert value in (None, test(type_facts(whole))) and test(type_facts(whole)) is not None


@given(claims, facts)
def test_a_negation_is_the_opposite(e: Expression, situation: dict[str, Any]) -> None:
    value, opposite = (compile_expression(x, SORTS)(type_facts(situation)) for x in (e, Not(e)))
    assert opposite is (None if value is None else not value)


@given(st.text(st.characters(exclude_categories=("Cs",)), max_size=80))
def test_any_text_is_read_or_refused_with_its_place(text: str) -> None:
    for whole in (text, f"when {text} then x", f"when x then {text}"):
        try:
            parse(whole)
        except FormalError as e:
            assert 1 <= e.position <= len(whole) + 1 and e.reason and e.hint  # noqa: PT017


@given(
    st.lists(
        st.sampled_from(
            [
                "when",
                "then",
                "for",
                "and",
                "or",
                "not",
                "in",
                "(",
                ")",
                "[",
                "]",
                "==",
                "=",
                "<",
                "x",
                "y",
                "1",
                "'a'",
                ",",
                ":",
                "Int",
                "-",
                "*",
                "if",
                "else",
                "lambda",
                "True",
            ]
        ),
        max_size=14,
    )
)
def test_any_words_are_read_or_refused(pieces: list[str]) -> None:
    try:
        formal = parse(" ".join(pieces))
    except FormalError as e:
        assert e.position >= 1  # noqa: PT017
    else:
        assert parse(str(formal)) == formal


HOSTILE = [
    "when __import__('os').system('x') then y",
    "when eval('1') then y",
    "when (lambda: 1)() then y",
    "when [x for x in y] then z",
    "when x.__class__ then y",
    "when x[0] then y",
    "when f'{x}' == 'a' then y",
    "when b'a' == x then y",
    "when (y := 1) > 0 then z",
    "when x if y else z then w",
    "when {1: 2} then y",
    "when x @ y then z",
    "when x ** 9 ** 9 > 1 then y",
    "when x << 99999999 > 1 then y",
    "when await x then y",
    "when yield then y",
    "when 1j == x then y",
    "when x is None then y",
    "when ... then y",
    "when 'a' * 99999999 == x then y",
    "when x == 1e999999999 then y",
    "when x == " + "9" * 5000 + " then y",
    "when x == '\\N{BULLET}' then y",
    "when a) or (b then c",
    "when *x then y",
]


@pytest.mark.parametrize("text", HOSTILE, ids=lambda t: t[:40])
def test_what_could_do_harm_is_not_part_of_the_language(text: str) -> None:
    with pytest.raises(FormalError) as error:
        parse(text)
    assert 1 <= error.value.position <= len(text) + 1


@pytest.mark.parametrize(
    "text",
    [f"when {'(' * n}a{')' * n} then b" for n in (MAX_DEPTH + 1, 300, 3000)]
    + [f"when {'not ' * n}a then b" for n in (MAX_DEPTH + 2, 900, 2400)]
    + [
        f"when {'- ' * 900}x > 1 then b",
        f"when {'x + ' * 480}x > 1 then b",
        f"when {' < '.join(['x'] * 2000)} then b",
        f"when a == {'[' * 900} then b",
        f"when {'a or ' * MAX_TOKENS}a then b",
        "when a then b" + " " * MAX_CHARS,
        "when " + "a" * MAX_CHARS + " then b",
        "\x00",
        "when \ud800 then x",
    ],
)
def test_what_is_huge_or_deep_is_refused_quickly(text: str) -> None:
    with pytest.raises(FormalError):
        parse(text)


@pytest.mark.parametrize(
    ("text", "position"),
    [
        ("when hour < '아침' then x", 13),
        ("when 도시 == '서울' and 도시 > 3 then x", 21),
        ("when a then 음료 = 3 and 음료 = '차'", 29),
        ("for n: Int, n: Int when n > 1 then x", 13),
        ("for n: Number when n > 1 then x", 8),
        ("for n: Int when a then b", 5),
        ("when x in [] then y", 11),
        ("when x in [1, 'a'] then y", 15),
        ("when x / 0 > 1 then y", 10),
        ("when x / y > 1 then z", 10),
    ],
)
def test_the_place_of_a_mistake_is_named(text: str, position: int) -> None:
    with pytest.raises(FormalError) as error:
        parse(text)
    assert error.value.position == position, error.value
    assert f"character {position}" in str(error.value)


@pytest.mark.parametrize(
    ("text", "position", "told"),
    [
        ("when blood pressure > 140 then alert", 12, "Write blood_pressure if that is one name."),
        ("when 가격 > 100 원 then 할인 = 1", 15, "nothing stands between 100 and 원"),
        ("when total > 100 then discount = 10 else discount = 0", 37, "nothing stands between 10 and else"),
        ("when day >= 2026-01-01 then x", 18, "a date is a number like 20260101"),
        ("when 혈압 ≥ 140 then 경고", 9, "Write >=."),
        ("when a then b = 1; c = 2", 18, "Write and."),
        ("when allergy is None then ask", 17, "`is` is not part of the language"),
        ("when allergy == None then ask", 17, "a fact that is not given is unknown"),
        ("when a then refund = price", 13, "Declare it as Bool, Int, Real, String"),
    ],
)
def test_what_people_write_by_habit_is_refused_with_what_to_write(text: str, position: int, told: str) -> None:
    with pytest.raises(FormalError, match=re.escape(told)) as error:
        parse(text)
    assert error.value.position == position and "forgot a comma" not in str(error.value)


def test_texts_side_by_side_and_a_fraction_that_begins_with_0_are_read_as_before() -> None:
    assert compile_rule(parse("when x == 'a' 'b' and y > 05.5 then z")).fires(type_facts(read_facts({"x": "ab", "y": 6})))


def test_numbers_are_exact_however_they_are_written() -> None:
    rule = compile_rule(parse("when 0.1 + x == 0.3 and y <= 1_000.50 and z == 1e3 then w"))
    assert rule.fires(type_facts(read_facts({"x": 0.2, "y": 1000.5, "z": 1000.0})))
    assert not rule.fires(type_facts(read_facts({"x": 0.2, "y": 1000.51, "z": 1000})))


def test_composed_and_decomposed_korean_are_the_same() -> None:
    apart = unicodedata.normalize("NFD", "when 도시 == '서울' then 음료 = '녹차'")
    assert parse(apart) == parse("when 도시 == '서울' then 음료 = '녹차'")
    assert compile_rule(parse(apart)).fires(
        type_facts(read_facts({unicodedata.normalize("NFD", "도시"): unicodedata.normalize("NFD", "서울")}))
    )


@given(
    st.dictionaries(
        st.text(string.printable, max_size=4),
        st.one_of(st.none(), st.floats(), st.integers(), st.text(max_size=3), st.lists(st.none())),
        max_size=3,
    )
)
def test_any_facts_are_read_or_refused(given_facts: dict[str, Any]) -> None:
    try:
        found = read_facts(given_facts)
    except InvalidInput as e:
        assert e.hint  # noqa: PT017
    else:
        assert all(name.isidentifier() for name in found)


def test_writing_an_expression_needs_no_parentheses_it_can_do_without() -> None:
    assert format_expression(parse("when ((a) and ((b) or (not (c)))) then z").condition) == "a and (b or not c)"


def test_numbers_of_numpy_are_facts() -> None:
    with RuleStore(":memory:") as store:
        store.add_rule(rule_id="r", formal="when n == 2.5 then m = 1")
        assert [f.rule_id for f in store.apply({"n": np.float64(2.5)}).fired] == ["r"]
        assert store.apply({"n": np.float64(2)}).facts == {"n": 2}


@pytest.mark.parametrize("formal", ["when True or n > 3 then m = 1", "when (True or n > 3) and k > 1 then m = 1"])
def test_what_is_true_anyway_waits_for_no_fact(formal: str) -> None:
    with RuleStore(":memory:") as store:
        store.add_rule(rule_id="r", formal=formal)
        assert [f.rule_id for f in store.apply({"city": "Seoul", "k": 2}).fired] == ["r"]


@pytest.mark.seed("000 formal")
@pytest.mark.parametrize("text", ["if dark then lamp = True", "if dark → lamp = True", "dark -> lamp = True", "dark → lamp = True"])
def test_if_and_arrows_say_what_when_and_then_say(text: str) -> None:
    assert parse(text) == parse("when dark then lamp = True")


def test_an_arrow_in_a_text_is_text_and_two_of_a_kind_are_refused() -> None:
    assert parse("for n: Int if n > 1 and x == '->' → y = 'if'") == parse("for n: Int when n > 1 and x == '->' then y = 'if'")
    for text, position in (("if a when b then c", 6), ("a → b -> c", 7), ("→ b = 1", 8), ("if → b = 1", 1)):
        with pytest.raises(FormalError) as error:
            parse(text)
        assert error.value.position == position, error.value


def test_a_fact_in_a_type_that_no_rule_reads_is_told() -> None:
    with RuleStore(":memory:") as rules:
        rules.add_rules([{"rule_id": "tea", "formal": "when hour < 11 then drink = 'tea'"},
                         {"rule_id": "n", "formal": "for 수: Int when 수 > 1 then x"},
                         {"rule_id": "m", "formal": "when 회의 then drink = 'coffee'"}])
        found = rules.apply({"hour": "9", "회의": 1, "수": 1.5, "other": "x"})
        assert not found.fired and found.mistyped == found.as_dict()["mistyped"] == {"hour": "Real", "회의": "Bool", "수": "Int"}
        assert 'The fact hour is "9", and rules read a number: it is unknown to them.' in repr(found)
        assert "mistyped" not in rules.apply({"hour": 9, "회의": True, "수": 2}).as_dict()
        rules.add_rule("nine", formal="when hour == '9' then y", rule_id="text")
        assert rules.apply({"hour": "9"}).mistyped == {}, "one rule reads it as it is given"
        rules.archive("text")
        assert rules.apply({"hour": "9"}).mistyped == {"hour": "Real"}
