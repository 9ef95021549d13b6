"What a memory may hold, and that a row of the database gives it back."
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from rlm.core.clock import from_iso
from rlm.core.errors import InvalidInput
from rlm.store.records import (
    COLUMNS,
    FIELDS,
    KINDS,
    LABEL_LIMIT,
    READERS,
    REQUIRED,
    STATUSES,
    Edge,
    check_edge,
    dump_json,
    from_row,
    new_record,
    read_fields,
    read_tags,
    to_row,
)

NOW = datetime(2026, 1, 1, tzinfo=UTC)
texts = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0")).filter(str.strip)
labels = st.text(st.characters(categories=["L", "N", "P", "S", "M"]), min_size=1, max_size=40)
leaves = st.one_of(st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False, allow_infinity=False),
                   st.text(st.characters(exclude_categories=["Cs"])))
values = st.recursive(leaves, lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.text(
    st.characters(exclude_categories=["Cs"]), max_size=5), inner, max_size=3)), max_leaves=8)
objects = st.dictionaries(st.text(st.characters(exclude_categories=["Cs"]), max_size=8), values, max_size=4)
times = st.datetimes(datetime(2, 1, 1), datetime(9998, 12, 31), timezones=st.just(UTC))
given_fields = st.fixed_dictionaries({}, optional={
    "id": labels, "kind": st.sampled_from(KINDS), "status": st.sampled_from(STATUSES), "title": labels, "summary": texts,
    "formal": texts, "category": labels, "source_type": labels, "session": labels, "speaker": labels, "role": labels,
    "pinned": st.booleans(), "immutable": st.booleans(), "success": st.integers(0, 2**53), "failure": st.integers(0, 2**53),
    "valid_from": times, "confidence": st.floats(0, 1), "tags": st.lists(labels, max_size=4), "scope": objects,
    "provenance": objects, "extra": objects})


@given(texts, given_fields)
@example("x", {"extra": {"a": 1.0, "b": [True, None, {"": -0.0}]}, "tags": ["b", "a", "b"]})
def test_a_record_survives_its_row(text: str, fields: dict[str, Any]) -> None:
    record = new_record(text, NOW, **fields)
    row = to_row(record)
    assert len(row) == len(COLUMNS) and all(v is None or type(v) in (str, int, float) for v in row)
    back = from_row(row, record.tags)
    assert back == record and to_row(back) == row
    assert repr(back.extra) == repr(record.extra), "1, 1.0 and True are not the same"


@given(texts, given_fields)
def test_a_record_holds_what_was_given(text: str, fields: dict[str, Any]) -> None:
    record = new_record(text, NOW, **fields)
    assert record.text == text
    assert {n: getattr(record, n) for n in fields if n != "tags"} == {
        n: v if not isinstance(v, str) or n in ("summary", "formal") else READERS[n](v, n) for n, v in fields.items() if n != "tags"}
    assert record.tags == tuple(sorted(set(record.tags)))
    assert (record.archived_at is not None) == (record.status == "archived")


@given(labels)
@example("가족")
@example("👨\u200d👩\u200d👧")
@example("می\u200cخواهم")
@example("C++")
def test_a_word_as_people_write_it_is_a_label_and_reading_it_again_changes_nothing(word: str) -> None:
    label = READERS["category"](word, "category")
    assert READERS["category"](label, "category") == label
    assert read_tags([word]) == read_tags([label]) == (label,)


@pytest.mark.parametrize("wrong", ["", "  ", "a\0b", "\ud800", "a\nb", "a\tb", "\x1b[31mred", "a\u202eb", "a\u2028b",
                                   "x" * (LABEL_LIMIT + 1), 5, None, True, b"x", ["x"]])
@pytest.mark.parametrize("field", ["id", "title", "category", "session", "speaker", "role", "reply_to", "source_type"])
def test_what_is_no_name_is_refused(field: str, wrong: object) -> None:
    if wrong is None and field not in REQUIRED:
        return
    with pytest.raises(InvalidInput) as error:
        new_record("x", NOW, **{field: wrong})
    assert field in error.value.message and error.value.hint
    assert "\x1b" not in str(error.value)


@pytest.mark.parametrize(("field", "wrong"), [
    ("kind", "blok"), ("kind", None), ("kind", ["block"]), ("status", "warm"), ("status", 1), ("pinned", 1), ("pinned", "yes"),
    ("immutable", None), ("success", -1), ("success", 1.0), ("success", True), ("failure", 2**60), ("turn", -1), ("turn", "0"),
    ("confidence", 1.01), ("confidence", -0.1), ("confidence", float("nan")), ("confidence", "high"), ("confidence", True),
    ("valid_from", "soon"), ("valid_from", None), ("valid_to", datetime(2026, 1, 1)), ("tags", "work"), ("tags", {"work": 1}),
    ("tags", [1]), ("tags", [""]), ("tags", 5), ("tags", None), ("scope", []), ("scope", "x"), ("extra", {"a": {1, 2}}),
    ("extra", {"a": float("nan")}), ("extra", {"a": float("inf")}), ("extra", {"a": "\ud800"}), ("extra", {"\udfff": 1}),
    ("extra", {"a": b"x"}), ("extra", {("a",): 1}), ("provenance", None), ("summary", ""), ("summary", 5), ("formal", "\0")])
def test_wrong_values_are_refused_by_name(field: str, wrong: object) -> None:
    with pytest.raises(InvalidInput) as error:
        new_record("x", NOW, **{field: wrong})
    assert field.removesuffix("s") in error.value.message and error.value.hint


def nested(depth: int) -> dict[str, Any]:
    value: dict[str, Any] = {}
    for _ in range(depth):
        value = {"a": value}
    return value


@pytest.mark.parametrize("wrong", [nested(5000), nested(1500), {"a": 10**5000}])
def test_json_that_no_reader_could_take_back_is_refused(wrong: Mapping[str, Any]) -> None:
    with pytest.raises(InvalidInput, match="extra"):
        new_record("x", NOW, extra=wrong)


def test_json_that_holds_itself_is_refused() -> None:
    loop: dict[str, Any] = {}
    loop["self"] = loop
    with pytest.raises(InvalidInput, match="extra"):
        new_record("x", NOW, extra=loop)


def test_two_keys_that_json_spells_alike_are_refused_not_merged() -> None:
    with pytest.raises(InvalidInput, match="extra"):
        new_record("x", NOW, extra={1: "a", "1": "b"})


def test_the_record_does_not_change_with_the_caller_s_dictionary() -> None:
    extra: dict[str, Any] = {"a": [1]}
    record = new_record("x", NOW, extra=extra)
    extra["a"].append(2)
    assert record.extra == {"a": [1]}


@pytest.mark.parametrize("name", ["txt", "namespace", "seq", "version", "created_at", "updated_at", "access_count", "tag", "Text", ""])
def test_an_unknown_field_is_refused_with_the_known_ones(name: str) -> None:
    with pytest.raises(InvalidInput, match="no field") as error:
        read_fields({name: "x"})
    assert "category" in error.value.hint


def test_a_memory_must_be_valid_for_some_time_and_not_answer_itself() -> None:
    for end in (NOW, datetime(2025, 1, 1, tzinfo=UTC)):
        with pytest.raises(InvalidInput, match="valid_to"):
            new_record("x", NOW, valid_to=end)
    with pytest.raises(InvalidInput, match="reply to itself"):
        new_record("x", NOW, id="a", reply_to="a")


def test_a_turn_belongs_to_a_session() -> None:
    with pytest.raises(InvalidInput, match="turn"):
        new_record("x", NOW, turn=3)


def test_strategies_are_named_by_content_and_others_at_random() -> None:
    same = [new_record("Do x", NOW, kind="strategy", title=t).id for t in ("How to", " how  to ")]
    assert same[0] == same[1] and len(same[0]) == 16
    assert len({new_record("Do x", NOW).id for _ in range(9)}) == 9


def test_the_limit_is_counted_in_characters() -> None:
    assert new_record("가" * 10, NOW, limit=10).text == "가" * 10
    with pytest.raises(InvalidInput, match="11 characters; 10 are allowed"):
        new_record("x" * 11, NOW, limit=10)


@pytest.mark.parametrize("edge", [Edge("a", "a", "similar"), Edge("a", "b", ""), Edge("a", "b", "x\n"[:2] + "y"), Edge("a", "b", "r", 1.1),
                                  Edge("a", "b", "r", -0.1), Edge("a", "b", "r", float("nan")), Edge("a", "b", "r", True)])
def test_a_bad_edge_is_refused(edge: Edge) -> None:
    with pytest.raises(InvalidInput) as error:
        check_edge(edge)
    assert error.value.hint


@given(objects)
def test_stored_json_is_read_back_the_same(value: dict[str, Any]) -> None:
    record = new_record("x", NOW, extra=value)
    assert from_row(to_row(record), ()).extra == value
    dump_json(value).encode()


def test_every_field_has_its_column_in_order() -> None:
    assert [c.removesuffix("_json") for c in COLUMNS] == [f for f in FIELDS if f != "tags"]
    assert from_iso(to_row(new_record("x", NOW))[COLUMNS.index("valid_from")]) == NOW
