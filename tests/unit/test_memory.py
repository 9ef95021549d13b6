"The facade: what it refuses, how conversations come in, and that reading changes nothing."
import asyncio
import hashlib
import inspect
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from contextlib import closing, suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from operator import attrgetter
from pathlib import Path
from typing import Any

import pytest

from rlm import Memory
from rlm.core.clock import ManualClock, SystemClock
from rlm.core.errors import (
    AlreadyExists,
    InvalidInput,
    NotFound,
    RlmError,
    SettingsError,
    StoreBusy,
    StoreError,
    StoreReadOnly,
)
from rlm.rules import RuleStore
from rlm.search.explainer import TIES
from rlm.search.namespace_search import NamespaceSearch
from rlm.service.capture import same_again
from rlm.service.results import Hit
from rlm.store.memories import MemoryTable
from rlm.store.protocols import TEXT_COLUMNS
from rlm.store.records import READERS
from rlm.store.sqlite import database
from rlm.store.sqlite.database import restore

pytestmark = pytest.mark.usefixtures("bare")
LABELS = ("title", "category", "session", "speaker", "role")


def everything(memory: Memory) -> tuple[Any, ...]:
    "All that a store holds, to see that nothing changed."
    return (memory.backend.position(), [tuple(r) for t in ("memories", "memory_versions", "memory_tags", "edges", "events")
                                        for r in memory.backend.db.query(f"SELECT * FROM {t}")])


def refused(memory: Memory, call: Callable[[], Any], kind: type[RlmError] = InvalidInput) -> RlmError:
    "The error, after seeing that it says what to do and that nothing was stored."
    before = everything(memory)
    with pytest.raises(kind) as caught:
        call()
    assert type(caught.value) is kind
    assert caught.value.message and caught.value.hint and len(str(caught.value)) < 1000
    assert everything(memory) == before and memory.check() == []
    return caught.value


# ---------------------------------------------------------------- bad input

@pytest.mark.parametrize("text", ["", " \n\t", "x" * 10_000_000, "a\0b", "\ud800", "ok \udfff", None, 5, b"bytes", ["list"], {"text": "x"}],
                         ids=["empty", "blank", "10 MB", "NUL", "surrogate", "surrogate at end", "None", "int", "bytes", "list", "dict"])
def test_text_that_cannot_be_kept_is_refused(memory: Memory, text: Any) -> None:
    one = memory.write("one")
    for call in (lambda: memory.write(text), lambda: memory.write_many(["fine", {"text": text}]), lambda: memory.update(one.id, text=text)):
        assert "text" in refused(memory, call).message
    if text is None or (isinstance(text, str) and not text.strip()):  # a message without words is passed over
        assert list(memory.add_conversation([("A", "fine"), ("B", text)]).refused) == [1]
    else:
        assert "text" in refused(memory, lambda: memory.add_conversation([("A", "fine"), ("B", text)])).message


@pytest.mark.parametrize(("field", "wrong"), [
    *((f, w) for f in LABELS for w in ("", "\0", "\ud800", 5, ["x"], "a\nb")), ("kind", "note"), ("status", "gone"), ("tags", "work"),
    ("tags", [3]), ("tags", ["a\0"]), ("pinned", "yes"), ("extra", {"a": object()}), ("extra", {"\ud800": 1}), ("confidence", 2),
    ("valid_from", "soon"), ("valid_to", "2020-01-01"), ("turn", -1), ("turn", 0.5), ("reply_to", "nobody"), ("reply_to", 5), ("id", ""),
    ("id", "x" * 1000), ("namespace", "other"), ("seq", 1), ("version", 2), ("limit", 5), ("now", None), ("", 1)])
def test_wrong_fields_are_refused(memory: Memory, field: str, wrong: Any) -> None:
    refused(memory, lambda: memory.write("text", **{field: wrong}))
    refused(memory, lambda: memory.write_many(["fine", {"text": "text", field: wrong}]))


@pytest.mark.parametrize("items", ["text", b"text", {"text": "x"}, None, 5, [None], [["x"]], ["fine", 5], [{}],
                                   [{"txt": "x"}], [{5: "x", "text": "y"}]])
def test_what_is_no_list_of_memories_is_refused(memory: Memory, items: Any) -> None:
    refused(memory, lambda: memory.write_many(items))


@pytest.mark.parametrize("batch", [0, -1, 1.5, "10", True, None])
def test_a_batch_holds_at_least_one_memory(memory: Memory, batch: Any) -> None:
    assert "batch" in refused(memory, lambda: memory.write_many(["a", "b"], batch=batch)).message


def test_the_error_names_the_item(memory: Memory) -> None:
    assert "item 2" in refused(memory, lambda: memory.write_many(["a", "b", ""])).message
    assert "item 0" in refused(memory, lambda: memory.write_many([{"text": "a", "colour": "red"}, "b"])).message
    assert "urn 1" in refused(memory, lambda: memory.add_conversation([("A", "a"), ("B", 5)])).message


@pytest.mark.parametrize("k", [0, -1, 10_001, 2.0, "3", True, [1]])
def test_k_is_a_whole_number_from_one_up(memory: Memory, k: Any) -> None:
    memory.write("note")
    assert "k" in refused(memory, lambda: memory.search("note", k=k)).message
    assert "k" in refused(memory, lambda: memory.recent(k=k)).message


@pytest.mark.parametrize("query", ["", "  ", None, 5, b"x", "a\0b", "\ud800", ["x"]])
def test_a_query_is_text(memory: Memory, query: Any) -> None:
    one = memory.write("note")
    assert "query" in refused(memory, lambda: memory.search(query)).message
    assert "query" in refused(memory, lambda: memory.explain(query, one.id)).message


@pytest.mark.parametrize(("name", "value"), [
    ("tag", "x"), ("colour", "red"), ("namespace", "other"), ("now", "2026-01-01"), ("tags", 5), ("tags", [5]),
    ("tags", {"a": 1}), ("match", "some"),
    ("kind", "blocks"), ("status", "gone"), ("status", []), ("status", 5), ("status", ["hot", 5]), ("since", "soon"),
    ("since", 5), ("until", "2026-01-01T00:00"),
    ("valid_at", []), ("as_of", "later"), ("category", 5), ("category", ""), ("session", "\0"), ("speaker", ["a"]),
    ("role", "\ud800"), ("", "x")])
def test_wrong_filters_are_refused(memory: Memory, name: str, value: Any) -> None:
    one = memory.write("note")
    for call in (lambda: memory.search("note", **{name: value}), lambda: memory.recent(**{name: value}),
                 lambda: memory.explain("note", one.id, **{name: value})):
        assert (name or "''") in refused(memory, call).message.replace("tag ", "tags ")


def test_a_time_range_must_not_be_empty(memory: Memory) -> None:
    assert "until" in refused(memory, lambda: memory.search("x", since="2026-02-01", until="2026-01-01")).message


BAD_IDS: list[Any] = ["nobody", "", "\0", "\ud800", "x" * 10_000, None, 5, b"x", 1.5, True]


@pytest.mark.parametrize("id", BAD_IDS)
def test_an_unknown_id_is_not_found_anywhere(memory: Memory, id: Any) -> None:
    one = memory.write("one")
    kind = NotFound if isinstance(id, str) else InvalidInput
    for call in (lambda: memory.get(id), lambda: memory.get(id, as_of="2026-01-02"), lambda: memory.history(id), lambda: memory.links(id),
                 lambda: memory.explain("one", id), lambda: memory.update(id, text="x"), lambda: memory.delete(id),
                 lambda: memory.delete(id, erase=True), lambda: memory.delete([one.id, id]),
                 lambda: memory.delete([one.id, id], erase=True),
                 lambda: memory.record_usage(id), lambda: memory.link(one.id, id), lambda: memory.link(id, one.id)):
        refused(memory, call, kind)


@pytest.mark.parametrize("ids", [None, 5, [["x"]], [None], {"a": 1}.items()])
def test_what_is_no_list_of_ids_is_refused(memory: Memory, ids: Any) -> None:
    memory.write("one")
    refused(memory, lambda: memory.delete(ids))


def test_deleting_nothing_is_nothing(memory: Memory) -> None:
    before = everything(memory)
    assert memory.delete([]) == memory.delete([], erase=True) == 0 and everything(memory) == before


@pytest.mark.parametrize("amounts", [{"success": -1}, {"access": -1}, {"failure": 1.5}, {"success": "1"},
                                     {"access": True}, {"access": 2**60},
                                     {"success": None}, {"failure": 2**63}])
def test_usage_is_counted_in_whole_numbers(memory: Memory, amounts: dict[str, Any]) -> None:
    one = memory.write("one")
    refused(memory, lambda: memory.record_usage(one.id, **amounts))


@pytest.mark.parametrize(("relation", "weight"), [("", 1.0), ("r", 1.1), ("r", -0.1), ("r", float("nan")), ("r", "1"),
                                                  ("a\nb", 1.0), (5, 1.0), ("r", None)])
def test_wrong_links_are_refused(memory: Memory, relation: Any, weight: Any) -> None:
    a, b = memory.write_many(["a", "b"])
    refused(memory, lambda: memory.link(a.id, b.id, relation, weight))
    refused(memory, lambda: memory.link(a.id, a.id))


@pytest.mark.parametrize("name", ["id", "kind", "session", "turn", "reply_to", "success", "failure", "namespace", "seq",
                                  "version", "created_at",
                                  "access_count", "colour"])
def test_what_cannot_change_is_not_updated(memory: Memory, name: str) -> None:
    one = memory.write("one")
    assert name in refused(memory, lambda: memory.update(one.id, **{name: "x"})).message


def test_updates_that_make_no_sense_are_refused(memory: Memory) -> None:
    one = memory.write("one", valid_from="2026-01-01")
    for wrong in ({"valid_to": "2025-01-01"}, {"valid_to": "2026-01-01"}, {"status": None}, {"tags": None},
                  {"status": "gone"}, {"text": None}):
        refused(memory, lambda wrong=wrong: memory.update(one.id, **wrong))


# ---------------------------------------------------------------- references

def test_a_reply_needs_its_question_in_the_same_namespace(path: Path, clock: ManualClock) -> None:
    with Memory(path, clock=clock) as ours, Memory(path, namespace="theirs", clock=clock) as theirs:
        foreign = theirs.write("secret", id="s")
        mine = ours.write("mine")
        for call in (lambda: ours.write("reply", reply_to=foreign.id),
                     lambda: ours.add_conversation([{"text": "reply", "reply_to": foreign.id}]),
                     lambda: ours.write_many([{"text": "early", "reply_to": "later"}, {"text": "late", "id": "later"}])):
            assert "namespace 'default'" in refused(ours, call).message
        refused(ours, lambda: ours.link(mine.id, foreign.id), NotFound)
        refused(ours, lambda: ours.link(foreign.id, mine.id), NotFound)


def test_replies_never_go_round_in_a_circle(memory: Memory) -> None:
    memory.write("question", id="q")
    memory.write("answer", id="a", reply_to="q")
    memory.write("thanks", id="t", reply_to="a")
    for erase in (False, True):
        memory.delete("q", erase=erase)
        assert "circle" in refused(memory, lambda: memory.write("question", id="q", reply_to="t")).message
        assert "circle" in refused(memory, lambda: memory.write("question", id="q", reply_to="a")).message
        memory.write("question again", id="q")


def test_an_answer_can_be_changed_after_its_question_is_gone(memory: Memory) -> None:
    for erase in (False, True):
        question = memory.write("question")
        answer = memory.write("answer", reply_to=question.id)
        memory.delete(question.id, erase=erase)
        changed = memory.update(answer.id, tags=["kept"], text="a better answer")
        assert changed.reply_to == question.id and memory.check() == []
        assert memory.update(changed.id, text="answer").version == 3


def test_a_taken_id_is_refused_and_the_first_stays(memory: Memory) -> None:
    memory.write("first", id="a")
    for call in (lambda: memory.write("second", id="a"), lambda: memory.write_many([{"text": "x", "id": "b"}, {"text": "y", "id": "b"}]),
                 lambda: memory.write_many(["new", {"text": "y", "id": "a"}])):
        assert "already" in refused(memory, call, AlreadyExists).message
    assert memory.get("a").text == "first"


def test_an_id_is_found_however_its_letters_were_composed(memory: Memory) -> None:
    assert memory.write("x", id="cafe\u0301").id == "caf\u00e9"
    for spelling in ("cafe\u0301", "caf\u00e9", " caf\u00e9 "):
        assert memory.get(spelling).text == "x" and memory.history(spelling).versions
    assert memory.write("y", reply_to="cafe\u0301").reply_to == "caf\u00e9"
    assert memory.delete(["cafe\u0301", "caf\u00e9"]) == 1


# ---------------------------------------------------------------- conversations

def test_turns_may_be_pairs_or_dictionaries(memory: Memory) -> None:
    pairs = memory.add_conversation([("Mina", "Where is the key?"), ["Joon", "Under the mat."]], session="one")
    assert [(m.speaker, m.role, m.turn, m.session) for m in pairs] == [("Mina", None, 0, "one"), ("Joon", None, 1, "one")]
    chat = memory.add_conversation([{"role": "user", "content": "What is FTS5?"},
                                    {"role": "assistant", "content": "A full-text index.", "name": "Helper"}])
    assert [(m.role, m.speaker, m.turn) for m in chat] == [("user", None, 0), ("assistant", "Helper", 1)]
    assert chat[0].session == chat[1].session and chat[0].session not in (None, "one")
    timed = memory.add_conversation([{"text": "past", "time": "2025-05-08T09:00:00Z", "speaker": "Mina", "tags": ["own"]},
                                     ("Joon", "now")], tags=["shared"], category="chat")
    assert timed[0].valid_from == datetime(2025, 5, 8, 9, tzinfo=UTC) and [m.tags for m in timed] == [("own",), ("shared",)]
    assert {m.category for m in timed} == {"chat"}
    assert memory.add_conversation([]) == [] and memory.add_conversation(iter([("A", "generated")]))[0].text == "generated"


def test_replies_by_position_and_by_id(memory: Memory) -> None:
    first = memory.write("an older question", id="old")
    turns = memory.add_conversation([{"text": "a", "id": "mine"}, {"text": "b", "reply_to": 0}, {"text": "c", "reply_to": "mine"},
                                     {"text": "d", "reply_to": first.id}, {"text": "e", "reply_to": 1}])
    assert [m.reply_to for m in turns] == [None, "mine", "mine", "old", turns[1].id]


@pytest.mark.parametrize("turns", [
    [{"text": "a", "reply_to": 0}], [("A", "a"), {"text": "b", "reply_to": 1}],
    [("A", "a"), {"text": "b", "reply_to": -1}], [{"text": "b", "reply_to": True}],
    [("A", "a"), {"text": "b", "reply_to": 7}], ["just text"], "just text", [("A", "b", "c")], [("A",)], [5], [None],
    None, 5, {"text": "x"},
    [{"text": "a", "id": 5}], [{"text": "a", "id": ""}], [{"text": "a", "content": "b"}],
    [{"role": "assistant"}], [{"text": "a", "time": "soon"}],
    [{"text": "a", "speaker": "A", "name": "B"}], [{"text": "a", "colour": "red"}], [{"text": "a", 5: "x"}],
    [("A", "a"), {"text": "b", "turn": 0}],
    [{"text": "a", "session": "another"}], [(5, "a")]])
def test_turns_that_make_no_sense_are_refused_whole(memory: Memory, turns: Any) -> None:
    refused(memory, lambda: memory.add_conversation(turns, session="here"))


def test_turns_of_one_id_are_refused_whole(memory: Memory) -> None:
    refused(memory, lambda: memory.add_conversation([{"text": "a", "id": "x"}, {"text": "b", "id": "x"}], session="here"), AlreadyExists)


@pytest.mark.parametrize("session", ["", " ", 5, 0, "\0", "a\nb", True])
def test_a_session_has_a_name_or_none_is_given(memory: Memory, session: Any) -> None:
    assert "session" in refused(memory, lambda: memory.add_conversation([("A", "a")], session=session)).message


def test_a_session_is_continued_after_its_last_turn(memory: Memory) -> None:
    memory.add_conversation([("A", "one"), ("B", "two")], session="s")
    more = memory.add_conversation([("A", "three"), ("B", "four")], session="s")
    single = memory.write("five", session="s")
    assert [m.turn for m in more] == [2, 3] and single.turn == 4
    gap = memory.add_conversation([{"text": "ten", "turn": 10}, ("B", "eleven")], session="s")
    assert [m.turn for m in gap] == [10, 11] and memory.write("six", session="s", turn=5).turn == 5
    assert "turn 5" in refused(memory, lambda: memory.write("again", session="s", turn=5)).message
    assert [m.text for m in memory.recent(20, session="s")][-1] == "one"


def columns(hit: Hit) -> set[str]:
    "Through which columns its words were found."
    return hit.as_dict()["parts"].keys() & {*TEXT_COLUMNS, "nearby"}


def test_neighbours_find_a_turn_and_rank_below_the_turn_itself(memory: Memory) -> None:
    turns = memory.add_conversation([("A", "I trust only one vet with the parrot."), ("B", "The one by the harbour."), ("A", "Sneezes")])
    by_previous = memory.search("parrot")  # a turn that only asks would give way to its reply
    assert [h.id for h in by_previous] == [turns[0].id, turns[1].id] and columns(by_previous[1]) == {"nearby"}
    by_next = memory.search("harbour")
    assert {h.id for h in by_next} == {t.id for t in turns} and by_next[0].id == turns[1].id
    parts = {h.id: columns(h) for h in by_next}
    assert parts[turns[0].id] == {"nearby"} and parts[turns[2].id] == {"nearby"}
    memory.update(turns[1].id, text="The one in the old town.")
    assert len(memory.search("harbour")) == 0 and len(memory.search("town")) == 3
    memory.delete(turns[1].id)
    assert len(memory.search("town")) == 0 and {h.id for h in memory.search("parrot")} == {turns[0].id, turns[2].id}
    assert memory.check() == []


def test_a_reply_stands_beside_its_question_not_beside_the_turn_before(memory: Memory) -> None:
    turns = memory.add_conversation([("A", "zebra"), ("B", "walrus"), {"text": "lynx", "reply_to": 0}])
    assert turns[2].id in {h.id for h in memory.search("zebra")} and turns[2].id not in {h.id for h in memory.search("walrus")}
    memory.update(turns[0].id, text="giraffe")
    assert turns[2].id in {h.id for h in memory.search("giraffe")} and memory.check() == []


def test_only_what_touches_is_indexed_beside_a_turn_and_nothing_beside_a_long_one(memory: Memory) -> None:
    long = "zebra " + "A long answer about many things. " * 50 + "walrus"
    turns = memory.add_conversation([("A", "parrot"), ("B", long), ("A", "salmon")])

    def found(word: str) -> list[int | None]:
        return sorted(h.memory.turn or 0 for h in memory.search(word))
    assert found("parrot") == [0] and found("salmon") == [2], "the long turn is found by its own words only"
    assert found("zebra") == [0, 1] and found("walrus") == [1, 2], "its end touches the next turn, its start the one before"
    memory.update(turns[1].id, text="short now")
    assert found("parrot") == [0, 1] and found("salmon") == [1, 2] and found("zebra") == [] and memory.check() == []


# ---------------------------------------------------------------- changing

def test_an_update_that_changes_nothing_makes_no_version(memory: Memory, clock: ManualClock) -> None:
    one = memory.write("one", tags=["b", "a"], extra={"n": 1}, category="c", valid_from="2025-01-01")
    before = everything(memory)
    clock.advance(days=1)
    for same in ({"text": "one"}, {"tags": ["a", "b", "a"]}, {"extra": {"n": 1}}, {"category": "c"},
                 {"status": "hot"}, {"summary": None},
                 {"valid_from": "2025-01-01T00:00:00Z"}):
        assert memory.update(one.id, **same) == one
    with pytest.raises(InvalidInput, match="nothing to change"):
        memory.update(one.id)
    assert everything(memory) == before


@pytest.mark.parametrize(("old", "new"), [({"n": 1}, {"n": True}), ({"n": 1}, {"n": 1.0}), ({"n": [0]}, {"n": [False]})])
def test_values_that_only_python_calls_equal_are_a_change(memory: Memory, old: dict[str, Any], new: dict[str, Any]) -> None:
    one = memory.write("one", extra=old)
    assert memory.update(one.id, extra=new).version == 2 and repr(memory.get(one.id).extra) == repr(new)


def test_every_field_that_can_be_written_comes_back(memory: Memory) -> None:
    memory.write("question", id="q")
    given: dict[str, Any] = {
        "id": "all", "kind": "rule", "title": "Title", "summary": "Sum\nmary",
        "formal": 'when city == "Seoul" then drink = "tea"', "category": "cat", "source_type": "human",
        "status": "held", "pinned": True, "immutable": True, "success": 3, "failure": 1, "confidence": 0.25,
        "session": "s", "turn": 7, "speaker": "A",
        "role": "user", "reply_to": "q", "tags": ["x", "가"], "scope": {"tools": ["a"]}, "provenance": {"p": None},
        "extra": {"e": {"deep": [1, 2.5]}},
        "valid_from": datetime(2025, 1, 1, tzinfo=UTC), "valid_to": datetime(2027, 1, 1, tzinfo=UTC)}
    assert given.keys() == READERS.keys()
    memory.write("text", **given)
    got = memory.get("all")
    assert {n: getattr(got, n) for n in given} == given | {"tags": ("x", "가")}


@pytest.mark.seed("002 protected")
def test_what_is_immutable_stays_and_goes_only_by_force(memory: Memory) -> None:
    one = memory.write("one", immutable=True)
    for call in (lambda: memory.update(one.id, text="two"), lambda: memory.update(one.id, immutable=False), lambda: memory.delete(one.id),
                 lambda: memory.delete(one.id, erase=True)):
        assert "immutable" in refused(memory, call).message
    assert memory.update(one.id, text="one") == one
    memory.record_usage(one.id)
    assert memory.delete(one.id, force=True) == 1
    two = memory.write("two", immutable=True)
    assert memory.delete(two.id, erase=True, force=True) == 1


def test_a_strategy_keeps_what_its_id_is_made_of(memory: Memory) -> None:
    made = memory.write("1. search 2. describe", kind="strategy", title="Find a class", scope={"tools": ["search"]}, summary="short")
    for change in ({"text": "other"}, {"title": "other"}, {"scope": {}}):
        assert next(iter(change)) in refused(memory, lambda c=change: memory.update(made.id, **c)).message
    assert memory.update(made.id, summary="longer", tags=["t"]).id == made.id
    assert "already" in refused(memory, lambda: memory.write("1. search  2. describe", kind="strategy",
                                                             title=" find a CLASS", scope={"tools": ["search"]}), AlreadyExists).message


def test_history_tells_every_version_and_event_also_of_the_deleted(memory: Memory, clock: ManualClock) -> None:
    one = memory.write("first")
    clock.advance(days=1)
    memory.update(one.id, text="second", tags=["t"])
    clock.advance(days=1)
    memory.delete(one.id)
    told = memory.history(one.id)
    assert [v.text for v in told.versions] == ["first", "second"] and [e.kind for e in told.events] == ["write", "update", "delete"]
    assert told.events[1].detail == {"version": 2, "changed": ["tags", "text"]}
    assert memory.get(one.id, as_of="2026-01-01T12:00:00Z").text == "first" and memory.get(one.id,
                                                                                           as_of="2026-01-02T12:00:00Z").text == "second"
    for gone in ("2026-01-03", "2025-12-31"):
        refused(memory, lambda gone=gone: memory.get(one.id, as_of=gone), NotFound)
    clock.advance(days=1)
    again = memory.write("third", id=one.id)
    assert again.version == 3 and again.seq > one.seq and [v.version for v in memory.history(one.id).versions] == [1, 2, 3]
    clock.advance(days=1)
    memory.delete(one.id, erase=True)
    told = memory.history(one.id)
    assert told.versions == () and told.events[-1].kind == "erase"
    assert not [e for e in told.events if "first" in str(e) or "second" in str(e) or "third" in str(e)]


def test_archiving_is_dated_and_undone(memory: Memory, clock: ManualClock) -> None:
    one = memory.write("one")
    clock.advance(days=1)
    assert memory.update(one.id, status="archived").archived_at == clock.now() and len(memory.search("one")) == 0
    assert len(memory.search("one", status="archived")) == len(memory.search("one", status="any")) == 1
    assert memory.update(one.id, status="ltm").archived_at is None and len(memory.search("one")) == 1
    assert memory.write("old", status="archived").archived_at == clock.now()


def test_usage_adds_up_and_makes_no_version(memory: Memory, clock: ManualClock) -> None:
    one = memory.write("one", success=2)
    clock.advance(days=1)
    memory.record_usage(one.id)
    memory.record_usage(one.id, success=2, failure=1, access=3)
    got = memory.get(one.id)
    assert (got.access_count, got.success, got.failure, got.version, got.last_used_at) == (4, 4, 1, 1, clock.now())
    clock.advance(days=-5)
    memory.record_usage(one.id)
    assert memory.get(one.id).last_used_at == got.last_used_at
    assert memory.update(one.id, text="two").access_count == 5


def test_links_are_seen_from_both_ends_and_end_with_the_memory(memory: Memory) -> None:
    a, b, c = memory.write_many(["a", "b", "c"])
    memory.link(a.id, b.id, "supports", 0.5)
    memory.link(c.id, a.id, weight=0.9)
    memory.link(a.id, b.id, "supports", 0.7)
    assert [(e.src, e.dst, e.relation, e.weight) for e in memory.links(a.id)] == [(c.id, a.id, "related", 0.9),
                                                                                  (a.id, b.id, "supports", 0.7)]
    memory.delete(c.id)
    assert [e.dst for e in memory.links(a.id)] == [b.id]
    memory.delete(b.id, erase=True)
    assert memory.links(a.id) == [] and memory.check() == []


# ---------------------------------------------------------------- time

def test_a_clock_that_goes_back_breaks_nothing(memory: Memory, clock: ManualClock) -> None:
    one = memory.write("first")
    clock.advance(days=2)
    memory.update(one.id, text="second")
    clock.advance(days=-1)
    third = memory.update(one.id, text="third")
    assert third.updated_at >= memory.history(one.id).versions[1].updated_at
    assert memory.get(one.id).text == "third"
    clock.advance(days=-20)
    memory.delete(one.id)
    assert [v.text for v in memory.history(one.id).versions] == ["first", "second", "third"]
    assert memory.get(one.id, as_of="2026-01-02").text == "first", "its past does not vanish"
    memory.write("again", id=one.id)
    for day in range(1, 12):
        moment = f"2026-01-{day:02}T12:00:00Z"
        assert len(memory.search("first second third again", as_of=moment, status="any")) <= 1, "one version at a time"
        assert len(memory.backend.get([one.id], "default", datetime(2026, 1, day, 12, tzinfo=UTC))) <= 1
    assert memory.get(one.id).text == "again" and memory.check() == []


def test_what_is_over_is_not_found_unless_asked_for(memory: Memory, clock: ManualClock) -> None:
    memory.write("lives in Seoul", id="seoul", valid_from="2024-01-01", valid_to="2025-06-01")
    memory.write("lives in Busan", id="busan", valid_from="2025-06-01")
    memory.write("lives in Jeju from spring", id="jeju", valid_from="2026-04-01")

    def found(**filters: Any) -> set[str]:
        assert {h.id for h in memory.search("lives", **filters)} == {m.id for m in memory.recent(**filters)}
        return {h.id for h in memory.search("lives", **filters)}
    assert found() == {"busan", "jeju"}
    assert found(valid_at="2025-01-01") == {"seoul"} and found(valid_at="2025-06-01") == {"busan"}
    assert found(valid_at="2026-05-01") == {"busan", "jeju"}
    assert found(since="2025-01-01") == {"busan", "jeju"} and found(until="2025-06-01", valid_at="2024-01-01") == {"seoul"}
    clock.advance(days=1)
    memory.update("busan", valid_to=clock.now())
    clock.advance(days=1)
    assert found() == {"jeju"} and found(as_of="2026-01-01T12:00:00Z") == {"busan", "jeju"}


def test_the_past_knows_nothing_of_what_was_said_later(memory: Memory, clock: ManualClock) -> None:
    first = memory.write("Shall we go?", session="s")
    then = clock.now()
    clock.advance(days=1)
    memory.write("To the aquarium!", session="s")
    assert {h.id for h in memory.search("aquarium")} > {first.id}
    assert len(memory.search("aquarium", as_of=then)) == 0
    assert memory.explain("aquarium", first.id, as_of=then).rank is None
    assert [h.id for h in memory.search("go", as_of=then)] == [first.id]


# ---------------------------------------------------------------- explaining

def corpus(memory: Memory) -> None:
    memory.add_conversation([("A", "We adopted a parrot called Kiwi."), ("B", "Parrots love fruit, kiwi most of all."),
                             ("A", "And nuts.")], session="s",
                            tags=["pets"])
    memory.write_many([{"text": "Kiwi is also a fruit from New Zealand", "category": "food", "tags": ["fruit"]},
                       {"text": "fruit market on Sunday", "status": "archived"},
                       {"text": "fruit flies", "valid_from": "2025-01-01", "valid_to": "2025-02-01"},
                       {"text": "A rule about fruit", "kind": "rule", "speaker": "B", "role": "user",
                        "title": "Kiwi rule", "summary": "kiwi, kiwi"}])


@pytest.mark.parametrize("query", ["kiwi", "fruit", "kiwi fruit", "parrot nuts", "nothing here",
                                   " ".join(f"word{n}" for n in range(300)) + " kiwi fruit"])
@pytest.mark.parametrize("filters", [{}, {"status": "any"}, {"tags": ["pets"]}, {"category": "food"},
                                     {"as_of": "2026-01-01"}, {"kind": "rule"}], ids=str)
def test_explain_agrees_with_search(memory: Memory, query: str, filters: dict[str, Any]) -> None:
    corpus(memory)
    hits = {h.id: h for h in memory.search(query, k=50, **filters)}
    for m in memory.recent(50, status="any", valid_at="2026-01-02") + memory.recent(50, status="any", valid_at="2025-01-15"):
        told = memory.explain(query, m.id, **filters)
        hit = hits.get(m.id)
        assert told.rank == (hit.rank if hit else None)
        if hit:
            assert told.score == pytest.approx(hit.score, abs=1e-9) and told.parts == hit.parts and not told.held_back_by
            assert sum(hit.as_dict()["parts"].values()) == pytest.approx(hit.score, abs=1e-9)
            assert f"rank {hit.rank}" in told.verdict
        else:
            assert told.held_back_by or not told.parts


@pytest.mark.parametrize(("filters", "name"), [
    ({"tags": ["work"]}, "tags"), ({"tags": ["pets", "work"]}, "tags"),
    ({"tags": ["work", "home"], "match": "any"}, "tags"), ({"category": "c"}, "category"),
    ({"kind": "rule"}, "kind"), ({"status": "held"}, "status"), ({"session": "t"}, "session"),
    ({"speaker": "B"}, "speaker"), ({"role": "user"}, "role"),
    ({"since": "2025-06-01"}, "since"), ({"until": "2025-01-01"}, "until"), ({"valid_at": "2024-01-01"}, "valid_at"),
    ({"valid_at": "2026-06-01"}, "valid_at")])
def test_explain_names_the_one_filter_that_holds_a_memory_back(memory: Memory, clock: ManualClock,
                                                               filters: dict[str, Any], name: str) -> None:
    one = memory.write("fruit", tags=["pets"], speaker="A", valid_from="2025-01-01", valid_to="2026-03-01")
    told = memory.explain("fruit", one.id, **filters, as_of=None)
    assert [h.partition("=")[0] for h in told.held_back_by] == [name] and told.rank is None and name in told.verdict
    assert memory.explain("fruit", one.id, **filters, as_of=clock.now()).held_back_by == told.held_back_by
    assert memory.explain("fruit", one.id, tags=["pets"], speaker="A").held_back_by == ()


def test_explain_says_archived_and_expired(memory: Memory, clock: ManualClock) -> None:
    gone = memory.write("fruit", tags=["pets"], valid_from="2025-01-01", valid_to="2025-02-01")
    for as_of in (None, clock.now()):
        assert memory.explain("fruit", gone.id, as_of=as_of, tags=["pets"]).held_back_by == ("expired",)
    kept = memory.write("fruit", status="archived")
    assert memory.explain("fruit", kept.id).held_back_by == ("status=('hot', 'ltm')",)
    assert [h.partition("=")[0] for h in memory.explain("fruit", gone.id, speaker="X",
                                                        kind="rule").held_back_by] == ["kind", "speaker", "expired"]
    assert "no word" in memory.explain("vegetables", memory.write("fruit").id).verdict


def test_results_are_the_same_every_time_and_ties_go_by_id(memory: Memory) -> None:
    memory.write_many([{"text": "same words", "id": i, "provenance": {"facts": False}} for i in ("c", "a", "d", "b")])
    assert [[h.id for h in memory.search("same words")] for _ in range(3)] == [["a", "b", "c", "d"]] * 3
    assert [h.id for h in memory.search("words same", k=2)] == ["a", "b"]
    assert [m.id for m in memory.recent()] == ["b", "d", "a", "c"]


def test_what_was_deleted_or_erased_is_said_to_be_so_where_it_is_asked_for(memory: Memory, clock: ManualClock) -> None:
    gone = memory.write("one harbour").id
    memory.delete(gone)
    for word, ask in (("deleted", lambda: memory.explain("harbour", gone)), ("deleted", lambda: memory.get(gone))):
        with pytest.raises(NotFound) as refused:
            ask()
        assert refused.value.hint.startswith(f"It was {word} on {clock.now():%Y-%m-%d at %H:%M} UTC")
    memory.delete(gone, erase=True)
    with pytest.raises(NotFound) as refused:
        memory.explain("harbour", gone)
    assert "erased on" in refused.value.hint


def test_statistics_are_counted_once_until_something_happens(memory: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    table, counted = memory.backend.memories, list[str]()
    count = table.statistics
    monkeypatch.setattr(table, "statistics", lambda *given: [counted.append(given[0]), count(*given)][1])
    memory.write("one", category="c")
    first = memory.stats()
    first["by_kind"].clear()
    assert memory.stats()["by_kind"] == {"block": 1} and len(counted) == 1
    with suppress(KeyboardInterrupt), memory.backend.transaction():
        memory.delete(memory.recent(1)[0].id)
        assert memory.stats()["memories"] == 0
        raise KeyboardInterrupt
    memory.write("two")
    assert memory.stats()["memories"] == 2 and memory.stats()["last"] and len(counted) == 3


def test_statistics_count_what_is_there(memory: Memory) -> None:
    assert memory.stats()["memories"] == 0 and memory.stats()["first"] is None
    corpus(memory)
    one = memory.recent(1)[0]
    memory.update(one.id, text="changed")
    found = memory.stats()
    assert found["memories"] == 7 and found["by_kind"] == {"block": 6, "rule": 1} and found["by_status"] == {"hot": 6, "archived": 1}
    assert found["by_category"] == {"food": 1} and found["versions"] == 1
    assert found["events"] == 8 and found["edges"] == 0 and found["bytes"] > 0


# ---------------------------------------------------------------- reading does not write

def reads(memory: Memory, id: str, target: Path) -> None:
    memory.search("fruit kiwi", k=5, tags=["pets"])
    memory.search("fruit", as_of="2026-06-01")
    memory.get(id)
    memory.recent()
    memory.explain("fruit", id)
    memory.history(id)
    memory.stats()
    memory.links(id)
    memory.export_jsonl(target)
    assert memory.check() == []
    repr(memory), repr(memory.search("fruit")), memory.search("fruit")._repr_html_()
    with suppress(RlmError):
        memory.get("nobody")


def fingerprint(path: Path) -> dict[str, tuple[int, str]]:
    "Time and content of the store's files; the index of the log, which readers use to find their way, left out."
    return {p.name: (p.stat().st_mtime_ns, hashlib.sha256(p.read_bytes()).hexdigest()) for p in path.parent.iterdir()
            if not p.name.endswith("-shm")}


def test_reading_writes_nothing(path: Path, tmp_path_factory: pytest.TempPathFactory, clock: ManualClock) -> None:
    elsewhere = tmp_path_factory.mktemp("out") / "export.jsonl"
    with Memory(path, clock=clock) as memory:
        corpus(memory)
        id = memory.recent(1)[0].id
        before, changes, position = fingerprint(path), memory.backend.db.current().total_changes, memory.backend.position()
        clock.advance(days=400)
        reads(memory, id, elsewhere)
        assert fingerprint(path) == before
        assert memory.backend.db.current().total_changes == changes and memory.backend.position() == position
    before = fingerprint(path)
    with Memory(path, read_only=True, clock=clock) as memory:
        reads(memory, id, elsewhere)
        assert memory.backend.position() == position
    after = fingerprint(path)
    assert after[path.name] == before[path.name]
    with Memory(path, clock=clock) as memory:
        reads(memory, id, elsewhere)
    assert fingerprint(path)[path.name] == before[path.name]


def test_a_read_only_store_refuses_every_write_and_reads_all(path: Path, clock: ManualClock) -> None:
    with Memory(path, clock=clock) as memory:
        corpus(memory)
        a, b = memory.recent(2)
        memory.export_jsonl(path.with_suffix(".jsonl"))
    with Memory(path, read_only=True, clock=clock) as memory:
        for call in (lambda: memory.write("x"), lambda: memory.write_many(["x"]), lambda: memory.add_conversation([("A", "x")]),
                     lambda: memory.update(a.id, text="x"), lambda: memory.delete(a.id), lambda: memory.delete(a.id, erase=True),
                     lambda: memory.link(a.id, b.id), lambda: memory.record_usage(a.id),
                     lambda: memory.import_jsonl(path.with_suffix(".jsonl"))):
            assert "reading only" in refused(memory, call, StoreReadOnly).message
        assert memory.get(a.id) == a and len(memory.search("fruit")) and "read_only=True" in repr(memory)
    with pytest.raises(NotFound, match="no store"):
        Memory(path.with_name("missing.db"), read_only=True)
    assert not path.with_name("missing.db").exists()


# ---------------------------------------------------------------- opening and closing

def test_a_closed_store_says_so(path: Path) -> None:
    with Memory(path) as memory:
        one = memory.write("one")
    memory.close()
    for target in (memory, closed_in_memory()):
        for call in (lambda m=target: m.write("x"), lambda m=target: m.search("x"), lambda m=target: m.get(one.id),
                     lambda m=target: m.stats(),
                     lambda m=target: m.check(), lambda m=target: m.delete(one.id),
                     lambda m=target: m.export_jsonl(path.with_suffix(".jsonl"))):
            with pytest.raises(StoreError, match="is closed") as caught:
                call()
            assert caught.value.hint
    assert "Memory(" in repr(memory)


def closed_in_memory() -> Memory:
    memory = Memory(":memory:")
    memory.close()
    return memory


def test_a_block_closes_the_store_also_when_it_fails(path: Path) -> None:
    memory = Memory(path)
    with pytest.raises(NotFound), memory:
        memory.get(memory.write("kept").id[1:])
    with pytest.raises(StoreError, match="closed"):
        memory.search("kept")
    with Memory(path) as memory:
        assert len(memory.search("kept")) == 1


@pytest.mark.parametrize("where", ["", " ", 5, b"x", "a\0b", "\ud800", "x" * 5000, True])
def test_a_path_that_is_none_is_refused(where: Any) -> None:
    with pytest.raises(RlmError) as caught:
        Memory(where)
    assert caught.value.hint


def test_a_path_may_hold_any_character_a_file_name_may(path: Path) -> None:
    for name in ("한글 memory.db", "a?b=c&d#e%41.db", "quote'\".db", ":memory:.db", "file:x.db"):
        with Memory(path.with_name(name)) as memory:
            memory.write("here")
        assert path.with_name(name).stat().st_size > 0


def test_copies_beside_a_store_are_found_whatever_its_name(path: Path) -> None:
    store, other = path.with_name("a[b]*.db"), path.with_name("ab.db")
    with Memory(store) as memory:
        memory.write("tea")
        memory.backup(path)
    Memory(other).close()
    kept = [restore(path, target, SystemClock().now()) for target in (store, other)]
    with Memory(store) as memory:
        assert memory.copies() == [kept[0]]


def test_no_acknowledged_write_is_lost_while_a_store_is_replaced(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source, copy, acknowledged = path.with_name("backup.db"), database.copy_database, list[str]()
    with Memory(path) as memory:
        memory.write("tea")
        memory.backup(source)

    def copy_then_write(*args: Any) -> Path:
        made = copy(*args)
        with suppress(StoreBusy), Memory(path, busy_timeout_s=0.2) as late:
            acknowledged.append(late.write("coffee").text)
        return made

    for mode in ("WAL", "DELETE"):
        with closing(sqlite3.connect(path)) as connection:
            connection.execute(f"PRAGMA journal_mode = {mode}")
        with monkeypatch.context() as patch:
            patch.setattr(database, "copy_database", copy_then_write)
            kept = restore(source, path, SystemClock().now())
        with Memory(path) as new, Memory(str(kept)) as before:
            assert {m.text for m in [*new.list(), *before.list()]} >= {"tea", *acknowledged}, "neither store has it"
            assert [m.text for m in new.list()] == ["tea"] and new.check() == before.check() == []
            new.write("newer")


@pytest.mark.parametrize("namespace", ["", "\0", "\ud800", "a\nb", 5, "x" * 600])
def test_a_namespace_is_a_name(namespace: Any) -> None:
    with pytest.raises(RlmError, match="namespace"):
        Memory(":memory:", namespace=namespace)


def test_an_export_never_replaces_the_store_itself(path: Path) -> None:
    with Memory(path) as memory:
        memory.write("precious")
        (path.parent / "link.db").symlink_to(path)
        for target in (path, str(path), path.parent / "link.db", Path(f"{path}-wal"), Path(f"{path}-shm")):
            with pytest.raises(StoreError, match="store"):
                memory.export_jsonl(target)
        assert len(memory.search("precious")) == 1
    with Memory(path) as memory:
        assert len(memory.search("precious")) == 1 and memory.check() == []


# ---------------------------------------------------------------- many at once

def test_every_method_has_a_twin_for_asyncio() -> None:
    methods = {name: f for name, f in inspect.getmembers(Memory, inspect.isfunction) if not name.startswith("_")}
    twins = {name: f for name, f in methods.items() if inspect.iscoroutinefunction(f)}
    assert twins.keys() == {f"a{name}" for name in methods.keys() - twins.keys()}
    assert all(inspect.signature(f) == inspect.signature(methods[name[1:]]) for name, f in twins.items())


def test_async_twins_work_beside_a_running_loop(path: Path) -> None:
    async def one() -> None:
        with Memory(path) as memory:
            written = await memory.awrite("hello from a loop", tags=["t"])
            many = await memory.awrite_many(["a", "b"])
            turns = await memory.aadd_conversation([("A", "hi"), ("B", "ho")], session="s")
            assert [h.id for h in await memory.asearch("hello", k=1)] == [written.id]
            assert (await memory.aget(written.id)) == written and len(await memory.arecent(50)) == 5
            assert (await memory.aexplain("hello", written.id)).rank == 1
            assert (await memory.aupdate(written.id, text="changed")).version == 2
            assert len((await memory.ahistory(written.id)).versions) == 2
            assert (await memory.astats())["memories"] == 5
            assert await memory.adelete([many[0].id, turns[0].id]) == 2
            await memory.alink(written.id, turns[1].id)
            await memory.arecord_usage(written.id, success=1)
            assert [e.dst for e in await memory.alinks(written.id)] == [turns[1].id] and await memory.acheck() == []
            copy = await memory.abackup(path.with_name("copy.db"))
            assert copy.exists() and await memory.acopies() == []
            assert await memory.aexport_jsonl(path.with_name("out.jsonl")) > 5
            assert (await memory.aimport_jsonl(path.with_name("out.jsonl"))).unchanged == 3
            other = Memory(copy)
            assert len(await other.arecent()) == 3
            await other.aclose()
            with pytest.raises(InvalidInput):
                await memory.asearch("hello", colour="red")
            assert memory.search("changed")[0].id == written.id, "the plain methods work inside a loop too"
    asyncio.run(one())


@pytest.mark.parametrize("where", ["file", "memory"])
def test_fifty_searches_and_writes_at_once(path: Path, where: str) -> None:
    async def all_at_once(memory: Memory) -> None:
        async def one(n: int) -> None:
            made = await memory.awrite(f"note number{n} shared")
            assert made.id in {h.id for h in await memory.asearch(f"number{n}", k=5)}, "its own write is seen at once"
            assert len(await memory.asearch("shared", k=100)) >= 1
        await asyncio.wait_for(asyncio.gather(*(one(n) for n in range(50))), 60)
        assert len(await memory.asearch("shared", k=100)) == 50
    with Memory(path if where == "file" else ":memory:") as memory:
        asyncio.run(all_at_once(memory))
        assert memory.check() == [] and len({m.seq for m in memory.recent(100)}) == 50


def test_a_hit_s_parts_add_up_while_others_write(path: Path) -> None:
    stop, wrong = threading.Event(), list[str]()
    with Memory(path) as memory:
        ids = [m.id for m in memory.add_conversation([("A", f"alpha beta word{n}") for n in range(20)], session="s")]

        def change() -> None:
            n = 0
            while not stop.is_set():
                n += 1
                memory.update(ids[n % 20], text=f"alpha {'beta ' * (n % 5)} word{n}")
        thread = threading.Thread(target=change)
        thread.start()
        try:
            for _ in range(150):
                wrong += [h.id for h in memory.search("alpha beta", k=20)
                          if abs(sum(sum(p.values()) for p in h.parts.values()) - h.score) > 1e-9]
        finally:
            stop.set()
            thread.join()
    assert not wrong, "the score and its parts are of one moment"


def test_two_stores_on_one_file_see_each_other_at_once(path: Path, clock: ManualClock) -> None:
    with Memory(path, clock=clock) as one, Memory(path, clock=clock) as two:
        made = one.write("shared thought")
        assert two.get(made.id) == made and [h.id for h in two.search("thought")] == [made.id]
        two.update(made.id, text="another idea")
        assert len(one.search("thought")) == 0 and one.get(made.id).text == "another idea"
        one.delete(made.id)
        with pytest.raises(NotFound):
            two.get(made.id)
        assert [m.turn for m in (one.write("a", session="s"), two.write("b", session="s"), one.write("c", session="s"))] == [0, 1, 2]


def test_another_process_sees_a_write_at_once_and_the_other_way_round(path: Path) -> None:
    script = ("import sys\nfrom rlm import Memory\nwith Memory(sys.argv[1]) as m:\n"
              "    assert [h.text for h in m.search('parrot')] == ['a parrot'], 'not seen'\n    m.write('a walrus')\n")
    with Memory(path) as memory:
        memory.write("a parrot")
        done = subprocess.run([sys.executable, "-c", script, str(path)], capture_output=True, text=True, timeout=60, check=False)
        assert done.returncode == 0, done.stderr
        assert [h.text for h in memory.search("walrus")] == ["a walrus"]


def test_writers_that_change_one_memory_lose_no_version(path: Path) -> None:
    with Memory(path) as memory:
        one = memory.write("start", extra={"n": 0})
        failures = list[BaseException]()

        def work(name: int) -> None:
            try:
                for n in range(10):
                    memory.update(one.id, text=f"{name} {n}")
                    memory.record_usage(one.id)
            except BaseException as e:
                failures.append(e)
        threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        got = memory.get(one.id)
        assert not failures and (got.version, got.access_count) == (41, 40) and len(memory.history(one.id).versions) == 41
        assert memory.check() == []


def test_a_batch_is_stored_whole_or_not_at_all(memory: Memory) -> None:
    memory.write("there", id="taken")
    refused(memory, lambda: memory.write_many([f"n{n}" for n in range(7)] + [{"text": "x", "id": "taken"}]), AlreadyExists)
    stored = memory.write_many((f"m{n}" for n in range(7)), batch=3)
    assert [m.seq for m in stored] == sorted({m.seq for m in stored}) and len(stored) == 7
    assert {m.created_at for m in stored} == {memory.clock.now()} and timedelta(0) == stored[0].created_at.utcoffset()


def test_what_a_caller_does_to_a_result_changes_no_other(memory: Memory) -> None:
    one, two = memory.write_many(["a", "b"])
    one.extra["note"] = "mine"  # type: ignore[index]
    assert two.extra == {} and memory.get(one.id).extra == {} and memory.write("c").extra == {}


def test_two_namespaces_with_the_same_ids_never_meet(path: Path, clock: ManualClock) -> None:
    with Memory(path, namespace="ours", clock=clock) as ours, Memory(path, namespace="theirs", clock=clock) as theirs:
        for memory, word in ((ours, "apple"), (theirs, "plum")):
            memory.add_conversation([{"id": "a", "speaker": word, "text": f"{word} one"},
                                     {"id": "b", "text": f"{word} two", "reply_to": 0}],
                                    session="s", tags=[word], category=word)
            memory.link("a", "b", word)
        before = (everything_seen(theirs), theirs.stats() | {"bytes": 0})
        ours.write("apple only here", id="mine")
        for call in (lambda: theirs.get("mine"), lambda: theirs.history("mine"), lambda: theirs.explain("apple", "mine"),
                     lambda: theirs.update("mine", text="plum"), lambda: theirs.delete("mine"), lambda: theirs.record_usage("mine"),
                     lambda: theirs.link("a", "mine"), lambda: theirs.links("mine"), lambda: theirs.delete("mine", erase=True)):
            refused(theirs, call, NotFound)
        clock.advance(days=1)
        ours.update("a", text="apple changed", tags=["new"])
        ours.record_usage("b")
        ours.delete("b")
        ours.delete(["a", "mine"], erase=True)
        assert (everything_seen(theirs), theirs.stats() | {"bytes": 0}) == before
        assert "apple" not in repr(before) and ours.search("plum", status="any").hits == () and theirs.check() == []


def everything_seen(memory: Memory) -> list[Any]:
    "All that a memory shows of its namespace, the height of scores aside."
    found = memory.recent(100, status="any")
    explained = [memory.explain("one", m.id) for m in found]
    return [found, [(h.memory, h.rank, h.parts.keys()) for h in memory.search("one two apple plum")],
            [h.memory for h in memory.search("one", as_of="2026-06-01")],
            [(memory.history(m.id).as_dict(), memory.links(m.id)) for m in found],
            [(e.memory, e.rank, e.held_back_by, e.frequencies) for e in explained]]


def test_scores_do_not_depend_on_other_namespaces(path: Path) -> None:
    with Memory(path, namespace="ours") as ours, Memory(path, namespace="theirs") as theirs:
        theirs.write_many(["plum one", "plum two", "pear three"])
        before = [h.score for h in theirs.search("plum pear")]
        ours.write_many([f"apple {n}" for n in range(100)])
        assert [h.score for h in theirs.search("plum pear")] == before


def test_what_a_tool_answers_is_kept_and_not_taken_for_what_was_said() -> None:
    call = {"id": "c1", "type": "function", "function": {"name": "read_page", "arguments": "{}"}}
    turns = [{"role": "system", "content": "Be kind. I live in Paris."}, {"role": "user", "content": "I live in Hamburg. Read my page."},
             {"role": "assistant", "content": None, "tool_calls": [call]},
             {"role": "tool", "tool_call_id": "c1", "content": "I live in Munich."},
             {"role": "assistant", "content": "Your page is about Munich.", "tool_calls": [call]},
             {"role": "function", "content": "I live in Oslo."}]
    with Memory(":memory:", embedder="none") as memory:
        stored = memory.add_conversation(turns, "monday")
        said = ["I live in Hamburg. Read my page.", "Your page is about Munich."]
        assert [r.text for r in reversed(memory.list(session="monday"))] == said and len(stored) == len(turns)
        assert {h.text for h in memory.search("Where do I live? Munich, Paris, Oslo", k=10)} <= set(said)
        block = memory.context("Where do I live?").text
        assert "Hamburg" in block and not any(place in block for place in ("live in Munich", "Paris", "Oslo"))
        assert [r.text for r in reversed(memory.list(session="monday", status="any"))] == [r.text for r in stored]
        [kept] = memory.add_conversation([{"role": "tool", "content": "The boiler is 12 years old.", "status": "hot"}])
        assert kept.status == "hot" and memory.search("boiler")  # a caller who wants it recalled says so


@pytest.mark.parametrize("how", [{}, {"slot": "A"}], ids=str)
def test_of_many_equal_memories_only_those_that_are_returned_are_read(how: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    read, table = list[int](), MemoryTable.records_with_ends

    def counted(self: MemoryTable, seqs: Sequence[int]) -> dict[int, Any]:
        read.append(len(seqs))
        return table(self, seqs)
    with Memory(":memory:", embedder="none") as memory:
        kept = {"text": "The same old note.", "provenance": {"facts": False}}  # items of a program, of which each is a hit
        memory.write_many([kept | {"id": f"m{(i * 7) % 500:03}"} for i in range(500)])
        memory.write("A new note.", id="z")
        monkeypatch.setattr(MemoryTable, "records_with_ends", counted)
        hits = memory.search("new note", 4, **how)
        assert [h.id for h in hits] == ["z", "m000", "m001", "m002"] and max(read) <= 4 + TIES
        assert [h.id for h in memory.recall("new note", 4)] == [h.id for h in hits] and max(read) <= 4 + TIES
        assert [h.id for h in memory.search("same note", 200)] == [f"m{i:03}" for i in range(200)]


FILES = Path("/proc/self/fd")


def open_files(path: Path) -> int:
    return sum(1 for f in FILES.iterdir() if f.is_symlink() and str(path) in str(f.readlink()))


@pytest.mark.skipif(not FILES.exists(), reason="the system tells no open files")
def test_a_memory_that_can_not_be_made_leaves_no_file_open(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(SettingsError, match="'odd' is unknown"):
        Memory(tmp_path / "m.db", embedder="none", anchor_mode="odd")
    with monkeypatch.context() as patch:
        patch.setattr(NamespaceSearch, "open", lambda *_: 1 / 0)
        for make in (Memory, Memory, RuleStore):
            with pytest.raises(ZeroDivisionError):
                make(tmp_path / "m.db", embedder="none")
            assert open_files(tmp_path) == 0
    with Memory(tmp_path / "m.db", embedder="none") as memory:
        with pytest.raises(InvalidInput, match="'odd' is unknown"):
            Memory(context=replace(memory.ctx, settings=replace(memory.settings, anchor_mode="odd")))
        assert memory.write("The context of a caller stays open.").id


@pytest.mark.skipif(not FILES.exists(), reason="the system tells no open files")
@pytest.mark.parametrize("part", ["graph", "anchors.store", "ctx.search.index", "ctx.recalls", "ctx.embeddings.worker"])
def test_an_error_at_the_end_leaves_no_file_open(part: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise RuntimeError("broken")
    memory = Memory(tmp_path / "m.db", embedder="none")
    memory.write("It rains.")
    assert open_files(tmp_path) > 0
    monkeypatch.setattr(type(attrgetter(part)(memory)), "close", fail)
    with pytest.raises(RuntimeError, match="broken"):
        memory.close()
    assert open_files(tmp_path) == 0


def test_the_strategies_of_a_memory_are_one_object() -> None:
    with Memory(":memory:", embedder="none") as memory:
        assert memory.strategies is memory.strategies


def test_a_beginning_names_a_memory_whose_id_the_store_made_and_no_other() -> None:
    with Memory(":memory:", embedder="none") as memory:
        made = memory.write("green tea")
        memory.write("a tin", id="cafe-1")
        assert memory.get(made.id[:4]).id == made.id
        for act in (memory.get, memory.delete, memory.history):
            with pytest.raises(NotFound):
                act("cafe")
        memory.delete(made.id[:4])
        assert [r.id for r in memory.list()] == ["cafe-1"]


def test_a_write_stores_the_same_words_again_unless_they_are_looked_for_first() -> None:
    with Memory(":memory:", embedder="none") as memory:
        first, second = memory.write("The kettle is blue."), memory.write("The kettle is blue.")
        assert first.id != second.id and (known := same_again(memory, "the kettle is  blue.", {})) and known.id in (first.id, second.id)
        assert same_again(memory, "The kettle is red.", {}) is None and len(memory.list()) == 2


def test_an_explanation_leaves_empty_what_added_nothing() -> None:
    with Memory(":memory:", embedder="none") as memory:
        memory.write("The boat needs a new sail.", id="sail")
        headers, rows = memory.explain("boat zebra", "sail").table()
    assert ("zebra", 0) in [(row[0], row[1]) for row in rows] and all("0" not in row[2:-1] for row in rows)
    assert all(any(row[2:-1]) or row[-1] == "0" for row in rows) and headers[-1] == "sum"


def test_labels_of_a_plot_name_a_font_with_korean_letters_where_one_is_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    from matplotlib import font_manager

    from rlm.core.tables import label_fonts
    own = label_fonts(["tea"])
    monkeypatch.setattr(font_manager, "get_font_names", lambda: ["DejaVu Sans", "Malgun Gothic", "NanumGothic"])
    assert label_fonts(["tea", "고양이"]) == [*own, "NanumGothic"] and label_fonts(["tea"]) == own
    monkeypatch.setattr(font_manager, "get_font_names", lambda: ["DejaVu Sans"])
    assert label_fonts(["고양이"]) == own


def test_korean_ids_are_drawn_in_the_fonts_that_label_fonts_gives(memory: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    import matplotlib
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    from rlm.service import results
    monkeypatch.setattr(results, "label_fonts", lambda labels: ["serif", *labels])
    memory.write("나비는 연어를 먹는다", id="고양이")
    axes = memory.search("연어").plot()
    assert [label.get_fontfamily() for label in axes.get_yticklabels()] == [["serif", "고양이"]]
    plt.close(axes.figure)
