"A decision table says as rules what it says by the rules of DMN, and what is wrong in it is told by row and column."

import csv
import io
from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from hypothesis import given, settings
from hypothesis import strategies as st

from rlm.core.errors import InvalidInput
from rlm.rules import RuleStore, parse
from rlm.rules.decision_tables import TableError, export_table, import_table, read_table
from rlm.rules.evaluator import compile_rule, type_facts
from rlm.rules.expressions import conjuncts
from rlm.rules.reasoner import Reasoner
from rlm.service.cli.main import main

pytestmark = pytest.mark.usefixtures("bare")


def table(*rows: list[str]) -> str:
    out = io.StringIO()
    csv.writer(out).writerows(rows)
    return out.getvalue()


def decided(text: str, facts: dict[str, Any]) -> dict[str, set[Any]]:
    "Return what the rules of a table say of a situation: name → values and bounds."
    found: dict[str, set[Any]] = {}
    for row in read_table(text):
        rule = compile_rule(row.formal)
        if rule.fires(type_facts(facts)):
            for name, value in rule.effects(type_facts(facts)).items():
                found.setdefault(name, set()).add(value)
            for claim in rule.claims:
                found.setdefault("claims", set()).add(claim)
    return found


# What the cases of the compliance kit for tables ask, in words of our own: name, table, situations with what must follow.
UNIQUE = table(["U", "when 나이", "when 건강", "then 위험"],
               ["1", "[18..60)", '"좋음"', '"낮음"'], ["2", "[18..60)", '"나쁨"', '"중간"'],
               ["3", ">= 60", "-", '"높음"'], ["4", "< 18", "-", '"중간"'])
DISCOUNT = table(["F", "when customer", "when amount", "then discount"],
                 ["", '"business"', ">= 10", "0.15"], ["", '"business"', "-", "0.1"], ["", '"private"', "-", "0.05"], ["", "-", "-", "0"])
ANY = table(["A", "when age", "when member", "then ask"], ["", "> 35", "-", "false"], ["", "-", "true", "false"],
            ["", "<= 35", "false", "true"])
COLLECT = table(["C", "when size", "then topping", "then sauce"], ["", ">= 10", '"ham"', ""], ["", ">= 20", '"blue cheese"', '"mayo"'],
                ["", "not([10..30])", '"olive"', ""])
LEAST = table(["C<", "when rain", "when night", "then speed"], ["", "true", "-", "80"], ["", "-", "true", "70"], ["", "-", "-", "100"])
CASES = [
    (UNIQUE, {"나이": 18, "건강": "좋음"}, {"위험": {"낮음"}}), (UNIQUE, {"나이": 60, "건강": "좋음"}, {"위험": {"높음"}}),
    (UNIQUE, {"나이": 59.5, "건강": "나쁨"}, {"위험": {"중간"}}), (UNIQUE, {"나이": 17, "건강": "나쁨"}, {"위험": {"중간"}}),
    (UNIQUE, {"나이": 30, "건강": "모름"}, {}),
    (DISCOUNT, {"customer": "business", "amount": 10}, {"discount": {0.15}}),
    (DISCOUNT, {"customer": "business", "amount": 9}, {"discount": {0.1}}),
    (DISCOUNT, {"customer": "private", "amount": 99}, {"discount": {0.05}}),
    (DISCOUNT, {"customer": "public", "amount": 99}, {"discount": {0}}),
    (ANY, {"age": 40, "member": True}, {"ask": {False}}), (ANY, {"age": 30, "member": False}, {"ask": {True}}),
    (COLLECT, {"size": 25}, {"topping_ham": {True}, "topping_blue_cheese": {True}, "sauce_mayo": {True}}),
    (COLLECT, {"size": 40}, {"topping_ham": {True}, "topping_blue_cheese": {True}, "sauce_mayo": {True}, "topping_olive": {True}}),
    (COLLECT, {"size": 5}, {"topping_olive": {True}}),
    (LEAST, {"rain": True, "night": True}, {"claims": {"speed <= 80", "speed <= 70", "speed <= 100"}}),
    (LEAST, {"rain": False, "night": False}, {"claims": {"speed <= 100"}}),
]


@pytest.mark.seed("000 tables")
@pytest.mark.parametrize(("text", "facts", "says"), CASES)
def test_a_table_decides_as_its_hit_policy_says(text: str, facts: dict[str, Any], says: dict[str, set[Any]]) -> None:
    assert {name: {float(v) if isinstance(v, int | float) and not isinstance(v, bool) else v for v in map(plain, values)}
            for name, values in decided(text, facts).items()} == says


def plain(value: Any) -> Any:
    return value if isinstance(value, bool | str) else float(value)


CELLS: dict[str, dict[str, Callable[[Any], bool]]] = {
    "x": {"-": lambda v: True, ">= 2": lambda v: v >= 2, "[1..2]": lambda v: 1 <= v <= 2, "(0..2)": lambda v: 0 < v < 2,
          "0, 3": lambda v: v in (0, 3), "not(1)": lambda v: v != 1, "< 1, > 2": lambda v: v < 1 or v > 2, "]0..3]": lambda v: 0 < v <= 3},
    "도시": {"-": lambda v: True, '"서울"': lambda v: v == "서울", '"서울","부산"': lambda v: v in ("서울", "부산"),
           'not("서울")': lambda v: v != "서울"},
    "b": {"-": lambda v: True, "true": lambda v: v is True, "false": lambda v: v is False, "": lambda v: True}}
drawn_row = st.tuples(*(st.sampled_from(sorted(cells)) for cells in CELLS.values()), st.integers(1, 3).map(str))
WORLDS = [dict(zip(CELLS, values, strict=True)) for values in product((0, 0.5, 1, 2, 3), ("서울", "부산", "대전"), (True, False))]


@settings(max_examples=60, deadline=None)
@given(st.sampled_from(["unique", "any", "first", "all"]), st.lists(drawn_row, min_size=1, max_size=4))
def test_a_table_says_in_every_situation_what_its_cells_say(policy: str, rows: list[tuple[str, ...]]) -> None:
    text = table([policy, "when x", "when 도시", "when b", "then y"], *(["", *row] for row in rows))
    hits = [[int(row[3]) for row in rows if all(CELLS[n][c](world[n]) for n, c in zip(CELLS, row[:3], strict=True))] for world in WORLDS]
    try:
        said = [{int(v) for v in decided(text, world).get("y", set())} for world in WORLDS]
    except TableError as e:  # some situation shows it, if not one of ours
        reason = e.reason
    else:
        assert said == [set(h[:1] if policy == "first" else h) for h in hits]
        assert policy != "unique" or max(map(len, hits)) < 2
        assert policy != "any" or max(len({*h}) for h in hits) < 2
        return
    assert {"first": "never reached", "unique": "can match together", "any": "can match together"}[policy] in reason


@settings(max_examples=25, deadline=None)
@given(st.lists(drawn_row, min_size=1, max_size=5, unique=True))
def test_rules_that_are_exported_as_a_table_come_back(rows: list[tuple[str, ...]]) -> None:
    odd = "when x < z and (b or x > 3) then 음료 = \"물\""
    with RuleStore(":memory:") as here, RuleStore(":memory:") as there:
        import_table(here, table(["all", "when x", "when 도시", "when b", "then y", "words", "tags"],
                                 *([f"r{n}", *row, f"줄, {n}", "b, 가"] for n, row in enumerate(rows))))
        here.add_rule("An odd one", rule_id="odd", formal=odd)
        here.add_rule("Words alone")
        text = "\n".join(export_table(here))
        assert odd in text.replace('""', '"')
        assert import_table(there, text).added == len(rows) + 1
        for rule in there.get_rules("any"):
            other = here.get(rule.rule_id)
            assert (rule.expr, rule.tags) == (other.expr, other.tags)
            assert {*conjuncts(parse(str(rule.formal)).condition)} == {*conjuncts(parse(str(other.formal)).condition)}
        there.update_usage("odd", success_inc=1)  # counts are not in the table
        assert import_table(there, text).unchanged == len(rows) + 1


@pytest.mark.parametrize(("text", "row", "column", "reason"), [
    ("x,when a,then b\n", 1, 1, "no hit policy"),
    ("P,when a,then b\n", 1, 1, "no hit policy"), ("C+,when a,then b\n", 1, 1, "no hit policy"),
    ("U,a,then b\n", 1, 2, "heads no column"), ("U,when a b,then c\n", 1, 2, "no name"), ("U,when a: Float,then c\n", 1, 2, "no sort"),
    ("U,when a,when a,then c\n", 1, 3, "twice"), ("U,when a\n", 1, 0, "no column says what follows"),
    ("U,when a,then b\n,>=,1\n", 2, 2, "a value is missing"), ("U,when a,then b\n,3,서울\n", 2, 3, "read as the name of a fact"),
    ("U,when a,then b\n,1,1\n,null,1\n", 3, 2, "null"), ("U,when a,then b\n,[1..2,1\n", 2, 2, "a bracket at each end"),
    ("U,when a,then b\n,1,-\n", 2, 0, "nothing follows"),
    ('U,when a,then b\n,1,1\n,"""x""",1\n', 3, 2, "a text here and a number in row 2"),
    ("U,when a,then b\n,1,1\n,2,1,9\n", 3, 4, "below no header"), ("U,when 시각,then b\n,<= 3,1\n,[3..5],1\n", 3, 0, "together with row 2"),
    ("A,when a,then b\n,-,1\n,-,2\n", 3, 0, "together with row 2"), ("F,when a,then b\n,-,1\n,3,2\n", 3, 0, "never reached"),
    ("C,when a,then b\n,1,\"\"\"?\"\"\"\n", 2, 3, "makes no name"),
    ("U,when a,then b,formal\n,1,1,when x then y\n", 2, 2, "beside its formal"),
])
def test_what_is_wrong_is_told_by_row_and_column(text: str, row: int, column: int, reason: str) -> None:
    with pytest.raises(TableError, match=reason) as caught:
        read_table(text)
    assert (caught.value.row, caught.value.column) == (row, column)


def test_nothing_is_stored_of_a_table_that_is_not_sound() -> None:
    with RuleStore(":memory:") as rules:
        for text in ("U,when a,then b\n,1,1\n,1,2\n", "U,when a,then b\na,1,1\na,2,2\n", "", 'U,when a,then b\n,"1,1\n'):
            with pytest.raises(InvalidInput):
                import_table(rules, text)
        assert not rules.get_rules("any")


def test_semicolons_tabs_and_the_mark_of_a_spreadsheet_are_read() -> None:
    for text in ("\ufeffU;조건 시각;결과 음료\r\n1;[1..5];\"\"\"차\"\"\"\r\n\r\n", 'U\twhen 시각\tthen 음료\n1\t[1..5]\t"""차"""\n'):
        [row] = read_table(text)
        assert str(row.formal) == 'when 1 <= 시각 and 시각 <= 5 then 음료 = "차"'


def test_the_command_line_reads_and_writes_tables(tmp_path: Any) -> None:
    run, path, db = CliRunner().invoke, tmp_path / "할인.csv", str(tmp_path / "m.db")
    path.write_text(DISCOUNT, encoding="utf-8")
    assert "4 added" in run(main, ["rules", "import", str(path), "--db", db]).output
    told = run(main, ["rules", "export", "-", "--format", "csv", "--db", db]).output
    assert told.startswith("all,formal,words,tags") and len(told.splitlines()) == 5
    path.write_text("U,when a,then b\n,1,>\n", encoding="utf-8")
    bad = run(main, ["rules", "import", str(path), "--db", db])
    assert bad.exit_code == 1 and "row 2, column C (then b)" in bad.output
    assert "4 unchanged" in run(main, ["rules", "import", "-", "--format", "csv", "--db", db], input=told).output


def test_a_tag_with_a_comma_or_a_quote_is_one_tag_in_a_table() -> None:
    tags = ("a, b", 'the "old" shop', "가격")
    with RuleStore(":memory:") as rules, RuleStore(":memory:") as other:
        rules.add_rule("x", rule_id="x", formal="when a then b", tags=tags)
        text = "\n".join(export_table(rules))
        assert import_table(other, text).added == 1 and other.get("x").tags == tuple(sorted(tags))
        assert import_table(rules, text).unchanged == 1


def test_an_edited_table_names_the_command_that_changes_a_rule(tmp_path: Path) -> None:
    def run(*words: str, file: str = "") -> Result:
        return CliRunner().invoke(main, [*words, "--db", str(tmp_path / "m.db")], input=file)
    first, second = (table(["all", "when 회의", "then drink", "words"], ["차", "true", n, "회의 전에는 차"]) for n in "12")
    take_in = ("rules", "import", "-", "--format", "csv")
    assert run(*take_in, file=first).exit_code == 0
    refused = run(*take_in, file=second)
    assert refused.exit_code == 1 and "rlm memory update 차" in refused.output
    changed = run("memory", "update", "차", "--formal", "when 회의 then drink = 2")
    assert changed.exit_code == 0 and "0 added, 1 unchanged" in run(*take_in, file=second).output


@pytest.mark.parametrize("policy", ["unique", "first"])
def test_rows_that_have_no_value_in_common_cost_no_proof(policy: str, monkeypatch: pytest.MonkeyPatch) -> None:
    asked, real = list[Any](), Reasoner.satisfiable
    monkeypatch.setattr(Reasoner, "satisfiable", lambda self, claims, sorts: asked.append(claims) or real(self, claims, sorts))
    rows = [f'[{10 * n}..{10 * n + 9}],"""c{n % 7}""",{n}' for n in range(150)]
    table = "\n".join([f"{policy},when amount,when city,then rate", *(f"{n},{row}" for n, row in enumerate(rows, 1))])
    assert len(read_table(table)) == 150
    assert not asked  # 11,175 pairs
    both = "\n".join([f"{policy},when amount: Int,when fee,then rate", "1,[1..5],< 2,1", "2,[6..9],< 2.5,2", "3,7,> 2.2,3"])
    if policy == "unique":
        with pytest.raises(TableError, match=r"match together with row 3"):
            read_table(both)
    else:
        assert "when amount == 7 and fee > 2.2 and fee >= 2.5 then" in str(read_table(both)[2].formal)
