"""What every backend must do, whatever database it uses: a new one joins by one more entry in `BACKENDS`.

These tests speak the verbs of `SQLStorage` alone. A last one sets a random life of a store against a model in plain Python."""
import ast
import errno
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from datetime import UTC, datetime, timedelta
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    consumes,
    initialize,
    invariant,
    multiple,
    precondition,
    rule,
)

from rlm import Memory
from rlm.core.clock import ManualClock
from rlm.core.errors import InvalidInput, NotFound, RlmError, StoreBusy, StoreError, StoreFull, StoreReadOnly
from rlm.core.text import tokens
from rlm.search.candidates import LATER
from rlm.store import Edge, Event, Filters, MemoryRecord, SQLiteDatabase, SQLStorage, Weights
from rlm.store.integrity import check
from rlm.store.protocols import MAX_TERMS
from rlm.store.records import new_record
from rlm.store.storage import open_database
from rlm.store.transfer.export import export_lines
from rlm.store.transfer.importer import import_lines

Make = Callable[[Path], SQLStorage]
BACKENDS: dict[str, Make] = {
    "sqlite file": lambda folder: SQLStorage(SQLiteDatabase(folder / "store.db")),
    "sqlite memory": lambda folder: SQLStorage(SQLiteDatabase(":memory:")),
}
NOW = datetime(2026, 1, 1, tzinfo=UTC)
ANY = Filters.read(status="any")
W = Weights()


@pytest.fixture(params=[*BACKENDS, pytest.param("postgres", marks=pytest.mark.nightly)])
def backend(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[SQLStorage]:
    if request.param == "postgres":
        if "backup" in request.node.name:
            pytest.skip("a server's backups are made by its own tools")
        made: SQLStorage = SQLStorage(open_database(request.getfixturevalue("postgres"), False, "normal", 30.0))
    else:
        made = BACKENDS[request.param](tmp_path)
    yield made
    made.close()


def day(n: float) -> datetime:
    return NOW + timedelta(days=n)


def store(backend: SQLStorage, *texts: str, at: datetime = NOW, namespace: str = "default", **fields: Any) -> list[MemoryRecord]:
    with backend.transaction() as tx:
        return tx.insert([new_record(text, at, namespace, **fields) for text in texts])


def put(backend: SQLStorage, id: str, text: str = "words", at: datetime = NOW, namespace: str = "default",
        **fields: Any) -> MemoryRecord:
    return store(backend, text, at=at, namespace=namespace, id=id, **fields)[0]


def change(backend: SQLStorage, id: str, at: datetime, namespace: str = "default", **values: Any) -> MemoryRecord:
    with backend.transaction() as tx:
        old = backend.get([id], namespace)[0]
        new = old.changed(**values, version=old.version + 1, updated_at=at)
        return tx.replace(old, new, Event(at, "update", id, namespace))


def remove(backend: SQLStorage, *ids: str, at: datetime = NOW, namespace: str = "default") -> None:
    with backend.transaction() as tx:
        tx.remove(backend.get(ids, namespace), at)


def found(backend: SQLStorage, query: str, namespace: str = "default", k: int = 100, weights: Weights = W, **filters: Any) -> list[str]:
    return [m.record.id for m in backend.fulltext.match(tokens(query), namespace, Filters.read(None, **filters), k, weights)]


def everything(backend: SQLStorage, *namespaces: str) -> list[Any]:
    "All that the protocol shows of a store."
    shown: list[Any] = [backend.position()]
    for n in namespaces or ("default",):
        present = backend.find(n, ANY, 10_000)
        ids = [m.id for m in present]
        shown += [present, backend.events(n), [backend.memories.versions(i, n) for i in ids], backend.edges(ids, n),
                  found(backend, "words one two", n)]
    return shown


# ---------------------------------------------------------------- storing and getting

def test_it_is_a_backend(backend: SQLStorage) -> None:
    assert not backend.read_only
    name, position = backend.position()
    assert len(name) == 32 and position == 0


def test_what_was_inserted_is_given_back(backend: SQLStorage) -> None:
    a, b = store(backend, "one", "two", tags=["가", "b", "a"], extra={"n": [1, {"x": None}]}, title="T", confidence=0.5, category="c")
    assert backend.get([b.id, "nobody", a.id, b.id], "default") == [b, a, b]
    assert backend.get([], "default") == [] and (a.seq, b.seq) == (1, 2) and a.version == 1 and a.tags == ("a", "b", "가")
    assert backend.get([a.id], "default", day(0)) == [a] and backend.get([a.id], "default", day(-1)) == []


def test_nothing_inserted_is_nothing_changed(backend: SQLStorage) -> None:
    before = everything(backend)
    with backend.transaction() as tx:
        assert tx.insert([]) == []
        tx.remove([], NOW)
        tx.link([], "default", NOW)
        tx.log([])
    assert backend.erase([], "default", NOW) == 0 and everything(backend) == before


def test_order_is_the_order_of_storing_and_numbers_are_never_used_again(backend: SQLStorage) -> None:
    first = store(backend, *"abcde")
    assert [m.seq for m in first] == [1, 2, 3, 4, 5]
    assert [m.text for m in backend.find("default", ANY, 3)] == ["e", "d", "c"]
    assert [m.text for m in backend.find("default", ANY, 2, newest_first=False, offset=1)] == ["b", "c"]
    assert backend.find("default", ANY, 5, offset=5) == []
    remove(backend, first[-1].id, at=day(1))
    assert backend.erase([first[-2].id], "default", day(1)) == 1
    assert store(backend, "f")[0].seq == 6


def test_taken_ids_turns_and_missing_questions_are_refused(backend: SQLStorage) -> None:
    put(backend, "a", session="s")
    put(backend, "foreign", namespace="other")
    before = everything(backend, "default", "other")
    for wrong in ({"id": "a"}, {"session": "s", "turn": 0}, {"reply_to": "nobody"}, {"reply_to": "foreign"}):
        with pytest.raises(InvalidInput) as caught, backend.transaction() as tx:
            tx.insert([new_record("fine", NOW), new_record("wrong", NOW, **wrong)])
        assert caught.value.hint and everything(backend, "default", "other") == before


def test_turns_are_numbered_from_zero_in_each_session_of_each_namespace(backend: SQLStorage) -> None:
    with backend.transaction() as tx:
        made = tx.insert([new_record("x", NOW, n, session=s, turn=t) for n, s, t in [
            ("default", "s", None), ("default", "s", None), ("default", "t", None), ("other", "s", None),
            ("default", "s", 9), ("default", "s", None),
            ("default", "s", 4), ("default", "s", None), ("default", None, None)]])
    assert [m.turn for m in made] == [0, 1, 0, 0, 9, 10, 4, 11, None]
    assert put(backend, "next", session="s").turn == 12
    remove(backend, "next")
    assert put(backend, "after", session="s").turn in (12, 13), "the turn of a deleted memory may be given again"


def test_a_deleted_id_comes_back_as_a_later_version(backend: SQLStorage) -> None:
    put(backend, "a", "first")
    remove(backend, "a", at=day(1))
    again = put(backend, "a", "second", at=day(2))
    assert again.version == 2 and [v.text for v in backend.memories.versions("a", "default")] == ["first", "second"]
    assert [len(backend.get(["a"], "default", day(d))) for d in (0.5, 1.5, 2.5)] == [1, 0, 1]
    backend.erase(["a"], "default", day(3))
    assert put(backend, "a", "third", at=day(4)).text == "third" and len(backend.memories.versions("a", "default")) == 1


# ---------------------------------------------------------------- changing

def test_a_replaced_version_stays_in_the_history(backend: SQLStorage) -> None:
    one = put(backend, "a", "old words", tags=["x"])
    two = change(backend, "a", day(1), text="new words", tags=("y",), status="archived", archived_at=day(1))
    assert backend.get(["a"], "default") == [two] and two.seq == one.seq
    assert backend.memories.versions("a", "default") == [one, two]
    assert backend.get(["a"], "default", day(0.5)) == [one] and backend.get(["a"], "default", day(1)) == [two]
    assert found(backend, "old") == found(backend, "new") == [] and found(backend, "new", status="any") == ["a"]
    assert found(backend, "old", as_of=day(0.5)) == ["a"] and found(backend, "new", as_of=day(0.5), status="any") == []
    assert found(backend, "words", as_of=day(0.5), tags=["x"]) == ["a"] and found(backend, "words", as_of=day(0.5), tags=["y"]) == []


def test_an_overtaken_change_is_refused(backend: SQLStorage) -> None:
    old = put(backend, "a")
    change(backend, "a", day(1), text="meanwhile")
    before = everything(backend)
    with pytest.raises(StoreBusy) as caught, backend.transaction() as tx:
        tx.replace(old, old.changed(text="late", version=2, updated_at=day(2)), Event(day(2), "update", "a"))
    assert caught.value.hint and everything(backend) == before


def test_what_was_removed_is_gone_from_the_present_only(backend: SQLStorage) -> None:
    a, b = put(backend, "a", "some words"), put(backend, "b", "some words")
    with backend.transaction() as tx:
        tx.link([Edge("a", "b", "similar", 0.5)], "default", NOW)
    remove(backend, "a", at=day(1))
    assert backend.get(["a", "b"], "default") == [b] and found(backend, "words") == ["b"] and backend.edges(["a", "b"], "default") == []
    assert backend.memories.versions("a", "default") == [a] and found(backend, "words", as_of=day(0.5)) == ["a", "b"]
    assert [e.kind for e in backend.events("default", "a")] == ["write", "delete"]


def test_counters_add_up_without_a_version(backend: SQLStorage) -> None:
    put(backend, "a")
    with backend.transaction() as tx:
        tx.count("a", "default", day(1), access=2, success=1)
        tx.count("a", "default", day(0.5), failure=3)
    got = backend.get(["a"], "default")[0]
    assert (got.access_count, got.success, got.failure, got.last_used_at, got.version) == (2, 1, 3, day(1), 1)
    for wrong in (("nobody", "default"), ("a", "other")):
        with pytest.raises(NotFound), backend.transaction() as tx:
            tx.count(*wrong, NOW, access=1)
    assert backend.get(["a"], "default") == [got]


def test_counters_lose_nothing_when_threads_count_at_once(backend: SQLStorage) -> None:
    put(backend, "a")

    def work() -> None:
        for _ in range(25):
            with backend.transaction() as tx:
                tx.count("a", "default", NOW, access=1)
    threads = [threading.Thread(target=work) for _ in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert backend.get(["a"], "default")[0].access_count == 100


def test_edges_are_kept_updated_and_ordered(backend: SQLStorage) -> None:
    for id in "abc":
        put(backend, id)
    with backend.transaction() as tx:
        tx.link([Edge("a", "b", "similar", 0.5, "sim"), Edge("c", "a", "next", 0.9), Edge("b", "c", "similar", 0.5)], "default", NOW)
        tx.link([Edge("a", "b", "similar", 0.7, "user"), Edge("a", "b", "supports", 0.1)], "default", NOW)
    assert backend.edges(["a"], "default") == [Edge("c", "a", "next", 0.9), Edge("a", "b", "similar", 0.7, "user"),
                                               Edge("a", "b", "supports", 0.1)]
    assert [e.weight for e in backend.edges(["a", "b", "c"], "default")] == [0.9, 0.7, 0.5, 0.1]
    assert backend.edges([], "default") == backend.edges(["a"], "other") == []
    before = everything(backend)
    for wrong, kind in ((Edge("a", "nobody", "x"), NotFound), (Edge("a", "a", "x"), InvalidInput),
                        (Edge("a", "b", "x", 2.0), InvalidInput)):
        with pytest.raises(kind), backend.transaction() as tx:
            tx.link([Edge("b", "a", "first"), wrong], "default", NOW)
        assert everything(backend) == before


def test_events_are_read_in_order_and_from_a_position(backend: SQLStorage) -> None:
    put(backend, "a")
    middle = backend.position()[1]
    with backend.transaction() as tx:
        tx.log([Event(day(1), "promotion", "a", "default", {"from": "hot", "to": "ltm", "why": {"n": 5}}),
                Event(day(1), "job", "daily", "other")])
    remove(backend, "a", at=day(2))
    events = backend.events("default")
    assert [e.kind for e in events] == ["write", "promotion", "delete"] and [e.id for e in events] == sorted(e.id for e in events)
    assert events[1].detail == {"from": "hot", "to": "ltm", "why": {"n": 5}} and events[1].at == day(1)
    assert [e.kind for e in backend.events("default", after=middle)] == ["promotion", "delete"]
    assert [e.kind for e in backend.events("default", "a", limit=2)] == ["write", "promotion"]
    assert [e.subject for e in backend.events("other")] == ["daily"] and backend.events("default", "b") == []
    assert backend.position() == (backend.position()[0], events[-1].id)


def test_erased_is_erased_whole(backend: SQLStorage) -> None:
    put(backend, "a", "secret words")
    put(backend, "b", "answer words", reply_to="a")
    change(backend, "a", day(1), text="secret again")
    with backend.transaction() as tx:
        tx.link([Edge("a", "b", "similar")], "default", NOW)
    assert found(backend, "secret") == ["a", "b"]
    assert backend.erase(["a", "nobody"], "default", day(2)) == 1
    assert backend.get(["a"], "default") == backend.memories.versions("a", "default") == backend.get(["a"], "default", day(0.5)) == []
    assert found(backend, "secret") == found(backend, "secret", as_of=day(0.5)) == [] and backend.edges(["b"], "default") == []
    events = backend.events("default", "a")
    assert [e.kind for e in events] == ["write", "update", "erase"] and "secret" not in str(events)
    assert backend.erase(["a"], "default", day(3)) == 0
    remove(backend, "b", at=day(3))
    assert backend.erase(["b"], "default", day(4)) == 1 and backend.memories.versions("b", "default") == [], "of a deleted memory too"


def test_repair_changes_nothing_that_was_right(backend: SQLStorage) -> None:
    store(backend, "one words", "two words", session="s")
    before = everything(backend)
    backend.repair()
    assert everything(backend) == before


def test_a_backup_is_a_store_of_its_own(backend: SQLStorage, tmp_path: Path) -> None:
    store(backend, "one words", "two words")
    copy = SQLStorage(SQLiteDatabase(backend.backup(tmp_path / "copy.db")))
    assert copy.find("default", ANY, 9) == backend.find("default", ANY, 9) and found(copy, "words") == found(backend, "words")
    copy.close()


# ---------------------------------------------------------------- filters

FILTERS: dict[str, list[dict[str, Any]]] = {
    "tags": [{"tags": ["a"]}, {"tags": ["a", "b"]}, {"tags": ["a", "b"], "match": "any"},
             {"tags": ["x", "y"], "match": "any"}, {"tags": "b"}],
    "category": [{"category": "c0"}, {"category": "none"}], "kind": [{"kind": "rule"}, {"kind": "block"}, {"kind": "strategy"}],
    "status": [{"status": "any"}, {"status": "archived"}, {"status": ["held", "ltm"]}], "session": [{"session": "s0"}],
    "speaker": [{"speaker": "Mina"}], "role": [{"role": "user"}],
    "time": [{"since": day(3)}, {"until": day(3)}, {"since": day(2), "until": day(5)}, {"valid_at": day(4)}, {"valid_at": day(-9)}]}


def crowd(backend: SQLStorage) -> list[MemoryRecord]:
    made = []
    for n in range(48):
        made.append(new_record(f"words about {'many ' * (n % 5)}things {n}", NOW, "default", id=f"m{n:02}",
                               tags=[t for t, m in (("a", 2), ("b", 3)) if n % m == 0],
                               category=f"c{n % 4}", kind=("block", "rule")[n % 7 == 0],
                               status=("hot", "ltm", "held", "archived")[n % 8 // 2],
                               session=f"s{n % 3}" if n % 2 else None, speaker=("Mina", "Joon", None)[n % 3], role=("user", None)[n % 2],
                               valid_from=day(n % 9), valid_to=day(n % 9 + 4) if n % 4 == 0 else None))
    with backend.transaction() as tx:
        return tx.insert(made)


def fits(m: MemoryRecord, tags: Any = (), match: str = "all", status: Any = ("hot", "ltm"), since: Any = None, until: Any = None,
         valid_at: Any = None, **equal: Any) -> bool:
    "The filters once more, in plain Python."
    wanted = {tags} if isinstance(tags, str) else set(tags)
    return (all(getattr(m, name) == value for name, value in equal.items())
            and (not wanted or (wanted <= set(m.tags) if match == "all" else bool(wanted & set(m.tags))))
            and (status == "any" or m.status in ([status] if isinstance(status, str) else status))
            and (since is None or m.valid_from >= since) and (until is None or m.valid_from < until)
            and (valid_at is None or (m.valid_from <= valid_at and (m.valid_to is None or m.valid_to > valid_at))))


@pytest.mark.parametrize("name", BACKENDS)
def test_filters_alone_and_together_apply_before_ranking(name: str, tmp_path: Path) -> None:
    backend = BACKENDS[name](tmp_path)
    made = crowd(backend)
    alone = [f for group in FILTERS.values() for f in group]
    pairs = [a | b for (_, x), (_, y) in combinations(FILTERS.items(), 2) for a in x for b in y]
    ranked = [m.record for m in backend.fulltext.match(tokens("things many words"), "default", ANY, 100, W)]
    assert len(ranked) == 48
    for given in [{}, *alone, *pairs]:
        filters = Filters.read(None, **given)
        right = [m.id for m in ranked if fits(m, **given)]
        assert [m.record.id for m in backend.fulltext.match(tokens("things many words"), "default", filters, 100, W)] == right, given
        assert [m.record.id for m in backend.fulltext.match(tokens("things many words"), "default", filters, 3,
                                                   W)] == right[:3], "k of those that pass"
        assert [m.id for m in backend.find("default", filters, 100, newest_first=False)] == [m.id for m in made if fits(m, **given)]
        past = Filters.read(None, **given, as_of=NOW)
        assert {m.record.id for m in backend.fulltext.match(tokens("things"), "default", past, 100, W)} == {m.id for m in made
                                                                                                   if fits(m, **given) and (
            m.valid_to is None or m.valid_to > NOW or "valid_at" in given)}, "the same of the past"
    for m in made[::5]:
        for given in alone:
            assert backend.memories.passes(m.id, "default", Filters.read(None, **given)) == fits(m, **given)
    backend.close()


def test_what_is_over_by_now_does_not_pass(backend: SQLStorage) -> None:
    put(backend, "past", valid_from=day(-9), valid_to=day(-1))
    put(backend, "open", valid_from=day(-9))
    put(backend, "soon", valid_from=day(-9), valid_to=day(1))

    def passing(now: datetime) -> list[str]:
        filters = Filters.read(now)
        ids = [m.id for m in backend.find("default", filters, 9, newest_first=False)]
        assert ids == [i for i in ("past", "open", "soon") if backend.memories.passes(i, "default", filters)]
        assert sorted(ids) == [m.record.id for m in backend.fulltext.match(["word"], "default", filters, 9, W)]
        return ids
    assert passing(day(-2)) == ["past", "open", "soon"] and passing(day(-1)) == ["open", "soon"]
    assert passing(day(0)) == ["open", "soon"] and passing(day(1)) == ["open"]


def test_filter_values_are_data(backend: SQLStorage) -> None:
    nasty = "x'; DROP TABLE memories; --"
    put(backend, "a", tags=[nasty], category=nasty, session=nasty, speaker=nasty, role=nasty)
    put(backend, "b")
    for given in ({"tags": [nasty]}, {"category": nasty}, {"session": nasty}, {"speaker": nasty}, {"role": nasty}):
        assert found(backend, "words", **given) == ["a"] and found(backend, "words", **given, as_of=NOW) == ["a"]
    assert found(backend, "words", tags=["%"]) == found(backend, "words", category="_") == []


# ---------------------------------------------------------------- search

def test_ranking_is_by_score_and_ties_are_by_id(backend: SQLStorage) -> None:
    for id in ("c", "a", "b"):
        put(backend, id, "same words here")
    put(backend, "z", "same same words")
    matches = backend.fulltext.match(tokens("same"), "default", ANY, 9, W)
    assert [m.record.id for m in matches] == ["z", "a", "b", "c"]
    assert matches[0].score > matches[1].score == matches[2].score == matches[3].score > 0
    assert all(backend.fulltext.match(tokens("same"), "default", ANY, 9, W) == matches for _ in range(5))
    assert [m.record.id for m in backend.fulltext.match(["nothing"], "default", ANY, 9, W)] == []


def test_each_column_finds_and_a_column_without_weight_does_not(backend: SQLStorage) -> None:
    put(backend, "q", "previousword", session="s")
    put(backend, "m", "textword", session="s", title="titleword", summary="summaryword", tags=["tagsword"])
    put(backend, "n", "nextword", session="s")
    for name in ("title", "text", "summary", "tags", "previous", "next"):
        nothing = Weights(**{c: float(c != name) for c in ("title", "text", "summary", "tags", "previous", "next")})
        assert "m" in found(backend, f"{name}word") and "m" not in found(backend, f"{name}word", weights=nothing), name
    words = backend.fulltext.columns(backend.get(["m"], "default"))[0]
    assert {c: w for c, w in words.items() if w} == {c: tokens(f"{c}word") for c in words}


def test_of_very_many_terms_the_rarest_count(backend: SQLStorage) -> None:
    put(backend, "needle", "zebra")
    store(backend, *[" ".join(f"common{n}" for n in range(MAX_TERMS + 20)) for _ in range(3)])
    query = [f"common{n}" for n in range(MAX_TERMS + 20)] + ["zebra"]
    assert backend.fulltext.match(query, "default", ANY, 9, W)[0].record.id == "needle"
    assert backend.fulltext.match([f"unknown{n}" for n in range(500)], "default", ANY, 9, W) == []


def test_statistics_of_terms_count_documents_of_the_namespace(backend: SQLStorage) -> None:
    store(backend, "apple pear", "apple", "plum")
    store(backend, "apple", namespace="other")
    found_terms = backend.fulltext.term_statistics(tokens("apple pear kiwi"), "default").frequencies
    assert {t: found_terms[t] for t in tokens("apple pear kiwi")} == dict(zip(tokens("apple pear kiwi"), [2, 1, 0], strict=True))


def test_columns_of_an_older_version_are_its_own(backend: SQLStorage) -> None:
    one = put(backend, "a", "old", session="s", tags=["t"])
    put(backend, "b", "neighbour", session="s")
    two = change(backend, "a", day(1), text="new")
    old, new = backend.fulltext.columns([one, two])
    assert old["text"] == ["old"] and old["next"] == [] and new["text"] == ["new"] and new["next"] == tokens("neighbour")


# ---------------------------------------------------------------- transactions

class Oops(Exception):
    "Raised in the middle of a transaction."


def test_an_error_inside_undoes_all_of_it(backend: SQLStorage) -> None:
    put(backend, "a", "one words")
    put(backend, "b", "two words")
    before = everything(backend)
    with pytest.raises(Oops):
        with_everything_done(backend)
    assert everything(backend) == before
    assert put(backend, "c").seq >= 3, "and the store goes on; a server's numbers have a gap"


def with_everything_done(backend: SQLStorage) -> None:
    with backend.transaction() as tx:
        tx.insert([new_record("three words", NOW)])
        a, b = backend.get(["a", "b"], "default")
        tx.replace(a, a.changed(text="changed", version=2, updated_at=day(1)), Event(day(1), "update", "a"))
        tx.remove([b], day(1))
        tx.count("a", "default", day(1), access=1)
        tx.log([Event(day(1), "note", "a")])
        assert len(found(backend, "changed")) == 1 and found(backend, "two") == [], "it sees its own changes"
        raise Oops


def test_a_transaction_in_a_transaction_is_part_of_it(backend: SQLStorage) -> None:
    before = everything(backend)
    with suppress(Oops), backend.transaction():
        put(backend, "a")
        put(backend, "b")
        raise Oops
    assert everything(backend) == before
    with backend.transaction():
        put(backend, "a")
        with backend.snapshot():
            assert found(backend, "words") == ["a"]
        put(backend, "b")
    assert found(backend, "words") == ["a", "b"]


def stumble(name: str, backend: SQLStorage, tx: Any) -> None:
    "A write that fails half-way."
    a = backend.get(["a"], "default")[0]
    new = a.changed(text="new words", version=2, updated_at=day(1))
    if name == "insert":
        tx.insert([new_record("fine words", NOW, id="fine"), new_record("words", NOW, id="a")])
    elif name == "nested insert":
        with backend.transaction() as inner:
            inner.insert([new_record("fine words", NOW, id="fine")])
            inner.insert([new_record("words", NOW, id="a")])
    elif name == "link":
        tx.link([Edge("a", "b", "fine"), Edge("a", "nobody", "wrong")], "default", NOW)
    elif name == "replace":
        tx.replace(a.changed(version=7), new, Event(day(1), "update", "a"))
    elif name == "log":
        tx.log([Event(day(1), "fine", "a"), Event(day(1), "wrong", None)])  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["insert", "nested insert", "link", "replace", "log"])
def test_a_failed_write_that_somebody_caught_leaves_no_half(backend: SQLStorage, name: str) -> None:
    put(backend, "a", "one words")
    put(backend, "b", "two words")
    before = everything(backend)
    with suppress(StoreError), backend.transaction() as tx, suppress(RlmError):
        stumble(name, backend, tx)
    after = everything(backend)
    assert after == before, "all of it, or nothing"
    assert found(backend, "fine") == [] and check(backend.db) == []  # type: ignore[attr-defined]
    put(backend, "c")


def test_a_part_that_fails_alone_leaves_the_rest(backend: SQLStorage) -> None:
    with backend.transaction():
        put(backend, "a")
        with suppress(InvalidInput), backend.transaction() as part:
            part.insert([new_record("words", NOW, id="fine"), new_record("words", NOW, id="a")])
        with suppress(Oops), backend.transaction():
            put(backend, "b")
            raise Oops
        put(backend, "c")
    assert found(backend, "words") == ["a", "c"] and check(backend.db) == []  # type: ignore[attr-defined]


def test_what_was_erased_is_not_imported_after_the_namespace_was_made_anew_and_erased_again(backend: SQLStorage) -> None:
    for id in ("one", "purged", "all"):
        put(backend, id, "secret words", namespace="mina")
    before = list(export_lines(backend, day(1), "mina"))
    backend.erase(["one"], "mina", day(1))
    with backend.transaction() as tx:
        tx.remove(backend.get(["purged"], "mina"), day(1))
    assert backend.purge("mina", day(2), day(2)) == 1
    for expected in (1, 1):
        assert backend.erase_namespace("mina", day(3)) == expected
        put(backend, "later", namespace="mina")
    report = import_lines(backend, before)
    assert report.added == 0 and sorted(report.refused) == ["all", "one", "purged"] and found(backend, "secret", namespace="mina") == []
    assert [e.kind for e in backend.events("mina", "one")] == ["erase"]


def test_an_erasure_is_no_part_of_a_transaction(backend: SQLStorage) -> None:
    put(backend, "a")
    for span in (backend.transaction, backend.snapshot):
        with pytest.raises(StoreError, match="erasure") as caught, span():
            backend.erase(["a"], "default", NOW)
        assert caught.value.hint and len(backend.get(["a"], "default")) == 1


def test_a_snapshot_is_of_one_moment(tmp_path: Path) -> None:
    backend, other = (SQLStorage(SQLiteDatabase(tmp_path / "store.db")) for _ in range(2))
    put(backend, "a")
    with backend.snapshot():
        assert found(backend, "words") == ["a"]
        put(other, "b")
        assert found(backend, "words") == ["a"] and len(backend.events("default")) == 1 and backend.get(["b"], "default") == []
    assert found(backend, "words") == ["a", "b"]
    backend.close()
    other.close()


def test_threads_share_a_backend(backend: SQLStorage) -> None:
    failures: list[BaseException] = []

    def work(name: int) -> None:
        try:
            for n in range(10):
                put(backend, f"{name}-{n}", f"words {name} {n}")
                assert f"{name}-{n}" in found(backend, "words", k=1000)
                with backend.snapshot():
                    count = len(backend.find("default", ANY, 1000))
                    assert len(backend.events("default")) == count
        except BaseException as e:
            failures.append(e)
    threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert failures == [] and sorted(m.seq for m in backend.find("default", ANY, 100)) == list(range(1, 41))


def test_a_closed_backend_says_so(backend: SQLStorage) -> None:
    backend.close()
    backend.close()
    for call in (lambda: backend.get(["a"], "default"), lambda: put(backend, "a"), lambda: backend.position(), lambda: found(backend, "a")):
        with pytest.raises(StoreError, match="closed") as caught:
            call()
        assert caught.value.hint


def test_a_store_that_is_only_read_refuses_writes(tmp_path: Path) -> None:
    backend = SQLStorage(SQLiteDatabase(tmp_path / "store.db"))
    put(backend, "a")
    backend.close()
    backend = SQLStorage(SQLiteDatabase(tmp_path / "store.db", read_only=True))
    assert backend.read_only and found(backend, "words") == ["a"]
    for call in (lambda: put(backend, "b"), lambda: backend.erase(["a"], "default", NOW), backend.repair):
        with pytest.raises(StoreReadOnly):
            call()
    backend.close()


# ---------------------------------------------------------------- namespaces

def twins(backend: SQLStorage) -> None:
    "Two partitions with the same ids and sessions, and other words."
    for namespace, word in (("ours", "apple"), ("theirs", "plum")):
        put(backend, "a", f"{word} one", namespace=namespace, session="s", tags=[word])
        put(backend, "b", f"{word} two", namespace=namespace, session="s")
        put(backend, "c", f"{word} three", namespace=namespace, reply_to="a")
        with backend.transaction() as tx:
            tx.link([Edge("a", "b", word)], namespace, NOW)
        change(backend, "b", day(1), namespace, text=f"{word} changed")


def test_namespaces_are_hard_partitions(backend: SQLStorage) -> None:
    twins(backend)
    for mine, word, foreign in (("ours", "apple", "plum"), ("theirs", "plum", "apple")):
        assert found(backend, foreign, mine, status="any") == found(backend, foreign, mine,
                                                                    as_of=day(0.5)) == found(backend, foreign, mine, tags=[foreign]) == []
        assert sorted(found(backend, word, mine)) == sorted(found(backend, word, mine, as_of=day(0.5))) == ["a", "b", "c"]
        assert {m.namespace for m in backend.find(mine, ANY, 99)} == {mine} and len(backend.find(mine, ANY, 99)) == 3
        shown = (backend.get(["a", "b", "c"], mine), backend.get(["b"], mine, day(0.5)), backend.memories.versions("b", mine),
                 backend.events(mine), backend.edges(["a", "b", "c"], mine), backend.fulltext.columns(backend.get(["a", "b", "c"], mine)))
        assert foreign not in repr(shown) and word in repr(shown)
        assert [m.turn for m in backend.get(["a", "b"], mine)] == [0, 1]
        stems = tokens(f"{word} {foreign}")
        assert backend.fulltext.term_statistics(stems, mine).frequencies == dict(zip(stems, [4, 0], strict=True))
        numbers = backend.memories.statistics(mine)
        counts = [numbers[name] for name in ("memories", "versions", "edges", "events")]
        assert counts == [3, 1, 1, 5], "three writes, an update, a turn retracted"
    assert found(backend, "apple plum", "nobody") == backend.events("nobody") == backend.memories.versions("a", "nobody") == []
    assert not backend.memories.passes("a", "nobody", ANY) and backend.memories.statistics("nobody")["memories"] == 0


def test_changes_in_one_namespace_leave_the_other_as_it_was(backend: SQLStorage) -> None:
    twins(backend)
    before = everything(backend, "theirs")[1:]
    with backend.transaction() as tx:
        tx.count("a", "ours", day(2), access=1)
    change(backend, "a", day(2), "ours", text="apple again")
    remove(backend, "c", at=day(2), namespace="ours")
    backend.erase(["a", "b", "c"], "ours", day(3))
    assert everything(backend, "theirs")[1:] == before
    assert found(backend, "apple", "ours", status="any") == backend.find("ours", ANY, 9) == []
    assert check(backend.db) == []  # type: ignore[attr-defined]


# ---------------------------------------------------------------- the whole against a model

WORDS = ["apple", "plum", "zebra", "가족", "학교"]


class Version:
    "What the model remembers of one version."

    def __init__(self, text: str, tags: tuple[str, ...], begin: datetime) -> None:
        self.text, self.tags, self.begin, self.end = text, tags, begin, None

    end: datetime | None


class StoreLife(RuleBasedStateMachine):
    "A store, and what should be in it according to a few dictionaries."

    ids = Bundle("ids")

    @initialize()
    def start(self) -> None:
        self.clock = ManualClock("2026-01-01")
        self.memory = Memory(":memory:", clock=self.clock)
        self.present: dict[str, Version] = {}
        self.past: dict[str, list[Version]] = {}
        self.uses: dict[str, int] = {}
        self.events: dict[str, list[str]] = {}
        self.moments: list[datetime] = []

    def _begin(self, id: str, text: str, tags: list[str]) -> None:
        self.present[id] = Version(text, tuple(sorted(set(tags))), self.clock.now())
        self.uses[id] = 0
        self.events.setdefault(id, []).append("write")

    def _end(self, id: str) -> None:
        self.present[id].end = self.clock.now()
        self.past.setdefault(id, []).append(self.present[id])

    words = st.lists(st.sampled_from(WORDS), min_size=1, max_size=3).map(" ".join)
    tags = st.lists(st.sampled_from(["x", "y"]), max_size=2)

    @rule(target=ids, text=words, tags=tags, session=st.sampled_from([None, "s"]))
    def write(self, text: str, tags: list[str], session: str | None) -> str:
        id = self.memory.write(text, tags=tags, session=session).id
        self._begin(id, text, tags)
        return id

    @rule(target=ids, texts=st.lists(words, max_size=3))
    def converse(self, texts: list[str]) -> Any:
        made = self.memory.add_conversation([("A", t) for t in texts], session="talk")
        for m in made:
            if m.id not in self.present:  # the whole conversation once more is known
                self._begin(m.id, m.text, [])
        return multiple(*(m.id for m in made))

    @rule(id=ids, text=words)
    def write_again(self, id: str, text: str) -> None:
        "An id that is there is refused; one that was there comes back."
        if id in self.present:
            with pytest.raises(InvalidInput):
                self.memory.write(text, id=id)
        else:
            versions = len(self.past.get(id, []))
            assert self.memory.write(text, id=id).version == versions + 1
            self._begin(id, text, [])

    @rule(id=ids, text=words, tags=tags)
    def update(self, id: str, text: str, tags: list[str]) -> None:
        if id not in self.present:
            with pytest.raises(NotFound):
                self.memory.update(id, text=text)
            return
        old, new = self.present[id], Version(text, tuple(sorted(set(tags))), self.clock.now())
        self.memory.update(id, text=text, tags=tags)
        if (old.text, old.tags) != (new.text, new.tags):
            self._end(id)
            self.present[id] = new
            self.events[id].append("update")

    @rule(id=ids)
    def delete(self, id: str) -> None:
        if id in self.present:
            assert self.memory.delete(id) == 1
            self._end(id)
            del self.present[id]
            self.events[id].append("delete")
        else:
            with pytest.raises(NotFound):
                self.memory.delete(id)

    @rule(id=consumes(ids))
    def erase(self, id: str) -> None:
        known = id in self.present or bool(self.past.get(id))
        assert self.memory.delete(id, erase=True) == int(known)
        self.present.pop(id, None)
        self.past.pop(id, None)
        if known:
            self.events[id].append("erase")

    @rule(id=ids)
    def use(self, id: str) -> None:
        if id in self.present:
            self.memory.record_usage(id)
            self.uses[id] += 1
            self.events[id].append("use")

    @rule(a=ids, b=ids)
    def link(self, a: str, b: str) -> None:
        with suppress(InvalidInput, NotFound):
            self.memory.link(a, b)
            self.events[a].append("link")
            assert a in self.present and b in self.present and a != b

    @rule(hours=st.sampled_from([1, 24, -12]))
    def pass_time(self, hours: int) -> None:
        if hours > 0:
            self.moments.append(self.clock.now())
        if hours > 0 or not self.events:  # a clock that goes back is another test's matter: here it would blur the model
            self.clock.advance(hours=hours)

    @rule()
    def repair(self) -> None:
        self.memory.backend.repair()

    def _at(self, moment: datetime) -> dict[str, Version]:
        every = [(i, v) for i, v in self.present.items()] + [(i, v) for i, vs in self.past.items() for v in vs]
        return {i: v for i, v in every if v.begin <= moment and (v.end is None or v.end > moment)}

    @invariant()
    def present_agrees(self) -> None:
        assert {m.id: (m.text, m.tags, m.access_count) for m in self.memory.recent(10_000)} == {
            i: (v.text, v.tags, self.uses[i]) for i, v in self.present.items()}
        for word in WORDS:
            by_itself = Weights(previous=0, next=0)
            terms = tokens(word)
            hits = {m.record.id for m in self.memory.backend.fulltext.match(terms, "default", Filters(), 1000, by_itself)}
            assert hits == {i for i, v in self.present.items() if word in v.text}

    @precondition(lambda self: self.moments)
    @rule(which=st.integers(0), word=st.sampled_from(WORDS))
    def the_past_agrees(self, which: int, word: str) -> None:
        for moment in {self.moments[which % len(self.moments)], self.clock.now()}:
            then = self._at(moment)
            assert {m.id: (m.text, m.tags) for m in self.memory.recent(10_000, as_of=moment)} == {i: (v.text, v.tags)
                                                                                                  for i, v in then.items()}
            assert {h.id for h in self.memory.search(word, k=1000, as_of=moment)} == {i for i, v in then.items() if word in v.text}
            assert {h.id for h in self.memory.search(word, k=1000, as_of=moment, tags=["x"])} == {
                i for i, v in then.items() if word in v.text and "x" in v.tags}
            for id in self.events:
                if id in then:
                    assert self.memory.get(id, as_of=moment).text == then[id].text
                else:
                    with pytest.raises(NotFound):
                        self.memory.get(id, as_of=moment)

    @rule(id=ids)
    def history_agrees(self, id: str) -> None:
        told = self.memory.history(id)
        present = [self.present[id]] if id in self.present else []
        assert [v.text for v in told.versions] == [v.text for v in [*self.past.get(id, []), *present]]
        # not the store's own remark that "apple apple" may be superseded by "apple apple apple"
        assert [e.kind for e in told.events if e.detail.get("relation") != LATER] == self.events[id]

    def teardown(self) -> None:
        if hasattr(self, "memory"):
            assert self.memory.check() == []
            self.memory.close()


TestStoreLife = StoreLife.TestCase
TestStoreLife.settings = settings(max_examples=60, stateful_step_count=30, deadline=None,
                                  suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much])


# ---------------------------------------------------------------- who may know which database it is

ROOMS_ABOVE = ("rules", "recall", "agent", "companion", "federation", "service")
STATEMENT = ("SELECT ", "INSERT ", "UPDATE ", "DELETE FROM", "PRAGMA ", "CREATE TABLE", "ATTACH ", "BEGIN ", "VACUUM")
REACHES = {  # what the facade and the commands still take from the database itself, until the protocol offers it
    "service/memory.py": {"SQLiteDatabase", "SQLStorage", "export_file", "import_file", "backup", "check"},
}


def modules_above(root: Path) -> list[Path]:
    return [p for room in ROOMS_ABOVE for p in sorted((root / "rlm" / room).rglob("*.py"))]


def test_rooms_above_the_store_speak_no_sql(root: Path) -> None:
    wrong = []
    for module in modules_above(root):
        tree = ast.parse(module.read_text(encoding="utf-8"))
        wrong += [f"{module.name}:{n.lineno}: imports sqlite3" for n in ast.walk(tree)
                  if (isinstance(n, ast.Import) and any(a.name.startswith("sqlite3") for a in n.names))
                  or (isinstance(n, ast.ImportFrom) and (n.module or "").startswith("sqlite3"))]
        wrong += [f"{module.name}:{n.lineno}: {n.value[:40]!r}" for n in ast.walk(tree)
                  if isinstance(n, ast.Constant) and isinstance(n.value, str) and n.value.lstrip().startswith(STATEMENT)]
    assert not wrong, "\n".join(wrong)


def test_the_facade_asks_its_backend_only_what_every_backend_answers(root: Path) -> None:
    verbs = {name for name in dir(SQLStorage) if not name.startswith("_")}
    tree = ast.parse((root / "rlm" / "service" / "memory.py").read_text(encoding="utf-8"))
    asked = {n.attr for n in ast.walk(tree) if isinstance(n, ast.Attribute) and isinstance(n.value, ast.Attribute)
             and n.value.attr == "backend"}
    assert asked - verbs <= {"path"}, "the facade asks for what no other storage has"
    through = {n.func.id for n in ast.walk(tree) if isinstance(n, ast.Call) and isinstance(n.func, ast.Name)
               and any(isinstance(a, ast.Attribute) and a.attr == "db" for a in n.args)}
    assert through <= REACHES["service/memory.py"], "a new reach into the database wants a verb of the protocol instead"


def test_whether_a_store_can_be_written_is_found_out_without_a_write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(code: int) -> Any:
        def raising(*_args: Any, **_more: Any) -> Any:
            raise OSError(code, os.strerror(code))
        monkeypatch.setattr("tempfile.TemporaryFile", raising)
        return db.check_writable
    with closing(SQLiteDatabase(tmp_path / "m.db")) as db:
        before = {p.name: p.read_bytes() for p in tmp_path.iterdir()}
        db.check_writable()
        assert {p.name: p.read_bytes() for p in tmp_path.iterdir()} == before
        for code, kind in ((errno.ENOSPC, StoreFull), (errno.EDQUOT, StoreFull), (errno.EROFS, StoreReadOnly), (errno.EMFILE, StoreError)):
            with pytest.raises(kind):
                refuse(code)()
        monkeypatch.undo()
        (tmp_path / "m.db").rename(tmp_path / "other.db")
        with pytest.raises(StoreError, match="moved"):
            db.check_writable()
    SQLiteDatabase(tmp_path / "read.db").close()
    with closing(SQLiteDatabase(tmp_path / "read.db", read_only=True)) as db, pytest.raises(StoreReadOnly):
        db.check_writable()
    with closing(SQLiteDatabase(":memory:")) as db:
        db.check_writable()
