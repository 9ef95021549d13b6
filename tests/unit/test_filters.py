"Which memories pass filters: by what the index knows, by SQL's indexes, and one by one."
from datetime import UTC, datetime, timedelta
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rlm.core.clock import parse_time, zone
from rlm.core.errors import InvalidInput
from rlm.search.metadata_table import whole_second_span
from rlm.search.namespace_index import SAVE_AFTER
from rlm.service.memory import Memory
from rlm.store.filters import Filters
from rlm.store.memories import MemoryTable
from rlm.store.records import MemoryRecord

START = datetime(2026, 5, 1, tzinfo=UTC)
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MOMENTS = [None, START, START + timedelta(days=3), START + timedelta(days=3, microseconds=5), EPOCH - timedelta(seconds=1), EPOCH,
           EPOCH + timedelta(seconds=2)]
SPANS = [(a, b) for a, b in product(MOMENTS, MOMENTS) if (a or b) and not (a and b and b <= a)]


@pytest.fixture(scope="module")
def memory(tmp_path_factory: pytest.TempPathFactory) -> Any:
    path: Path = tmp_path_factory.mktemp("filters") / "memory.db"
    rng, tags = np.random.default_rng(0), ("tea", "차", "boat")
    said = [START + timedelta(days=float(d)) for d in rng.uniform(-3, 8, 90)] + [START + timedelta(days=n) for n in range(6)]
    said += [START + timedelta(days=3, microseconds=n) for n in (1, 5, 9)]
    said += [EPOCH + timedelta(seconds=s) for s in (-2.5, -1, -0.5, 0, 0.5, 1, 1.5, 2, 2.5)]
    with Memory(path, embedder="none") as made:
        made.write_many({"text": f"note {n}", "id": f"m{n}", "valid_from": at, "tags": [t for t in tags if rng.random() < 0.4],
                         "session": f"s{n % 7}", "speaker": ("Mina", "mina", "Joon")[n % 3], "role": ("user", "User")[n % 2],
                         "category": ("a", None)[n % 2], **({"valid_to": at + timedelta(days=2)} if n % 9 == 0 else {})}
                        for n, at in enumerate(said))
        for n in range(0, 90, 8):
            made.update(f"m{n}", status="archived")
        for n in range(3, 90, 11):
            made.delete(f"m{n}")
        yield made


def passes(r: MemoryRecord, f: Filters) -> bool:
    "What filters mean, without SQL."
    tagged = (all if f.match == "all" else any)(tag in r.tags for tag in f.tags) if f.tags else True
    told = all(getattr(f, name) in (None, getattr(r, name)) for name in ("category", "kind", "session", "speaker", "role"))
    span = (f.since is None or r.valid_from >= f.since) and (f.until is None or r.valid_from < f.until)
    moments = [at for at in (f.now, f.valid_at) if at]
    alive = all(r.valid_to is None or r.valid_to > at for at in moments) and (f.valid_at is None or r.valid_from <= f.valid_at)
    return tagged and told and span and alive and r.status in f.status


def right(memory: Memory, filters: Filters) -> list[int]:
    "The numbers of those that pass, ascending."
    everyone = memory.backend.find("default", Filters(status=("hot", "ltm", "held", "archived")), 1000, newest_first=False)
    found = [r for r in everyone if passes(r, filters)]
    assert [r.id for r in everyone if memory.backend.memories.passes(r.id, "default", filters)] == [r.id for r in found]
    return [r.seq or 0 for r in found]


def told(memory: Memory, filters: Filters) -> list[int]:
    "The numbers of those that pass, by the index."
    with memory.index.snapshot():
        passing, c = memory.ctx.search.searcher.filters.resolve(filters), memory.index.metadata
        assert passing is not None
        there = c.present
        by_number = np.sort(c["seq"][passing.mask & there]).tolist()
        by_seq = np.flatnonzero(passing.seqs).tolist() if passing.seqs.dtype == np.bool_ else passing.seqs.tolist()
        assert by_seq == by_number
        return by_seq


@pytest.mark.parametrize(("since", "until"), SPANS)
def test_a_span_of_time_is_what_it_is_for_sql(memory: Memory, since: datetime | None, until: datetime | None) -> None:
    filters = Filters(since=since, until=until, now=START + timedelta(days=5))
    assert told(memory, filters) == right(memory, filters) == memory.backend.memories.matching("default", filters).tolist()


def test_the_index_answers_for_whole_seconds_and_nothing_else() -> None:
    assert whole_second_span(Filters(since=START)) == (START.timestamp(), np.inf) and whole_second_span(Filters()) == (-np.inf, np.inf)
    assert whole_second_span(Filters(since=START, until=START + timedelta(microseconds=1))) is None
    assert whole_second_span(Filters(since=EPOCH)) is None


@pytest.mark.parametrize("given", [
    {"tags": ("tea",)}, {"tags": ("tea", "차")}, {"tags": ("tea", "차"), "match": "any"}, {"tags": ("none",)}, {"session": "s3"},
    {"speaker": "mina"}, {"role": "user"}, {"category": "a"}, {"kind": "block"}, {"kind": "rule"}, {"status": ("archived",)},
    {"valid_at": START}, {"role": "user", "speaker": "Mina", "until": START}, {"status": ("archived", "hot"), "category": "a"},
    {"tags": ("boat",), "session": "s2"}, {"tags": ("boat",), "since": START}, {"session": "s2", "until": START, "role": "user"}], ids=str)
def test_other_filters_let_pass_who_passes(memory: Memory, given: dict[str, Any]) -> None:
    filters = Filters(**given, now=None if "valid_at" in given else START)
    assert told(memory, filters) == right(memory, filters)
    assert bool(right(memory, filters)) != (given in ({"tags": ("none",)}, {"kind": "rule"}))


def test_what_the_index_knows_follows_what_is_stored(tmp_path: Path) -> None:
    asked: list[dict[str, Any]] = [{"role": "user"}, {"speaker": "Mina"}, {"category": "trip"}, {"kind": "strategy"},
                                   {"status": ("archived",)}, {"status": ("held", "hot")}, {"since": START}]

    def agree(memory: Memory) -> None:
        for given in asked:
            filters = Filters(**given, now=START)
            assert told(memory, filters) == right(memory, filters), given
    with Memory(tmp_path / "memory.db", embedder="none") as memory, Memory(tmp_path / "memory.db", embedder="none") as other:
        memory.write_many({"text": f"note {n}", "id": f"m{n}", "role": ("user", "assistant")[n % 2], "speaker": ("Mina", "Joon")[n % 2],
                           "category": ("trip", "tea")[n % 2], "valid_from": START} for n in range(20))
        agree(memory)
        agree(other)
        for n, change in enumerate(({"status": "archived"}, {"status": "held"}, {"speaker": "Mina K"}, {"category": None}, {"role": "User"},
                                    {"category": "cities"}, {"valid_from": START - timedelta(days=1)}, {"text": "another note"})):
            memory.update(f"m{n}", **change)
            agree(memory)
            agree(other)
        memory.update("m0", status="hot")
        memory.delete("m9")
        agree(memory)
        memory.index._unsaved = other.index._unsaved = SAVE_AFTER  # as after many writes
        memory.search("note")
    with Memory(tmp_path / "memory.db", embedder="none") as memory:
        agree(memory)
        assert memory.index.metadata.label_mask("said_by", ["Mina K"]).sum() == 1


@pytest.fixture
def plans(memory: Memory, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    "How SQLite goes about what is asked from here on."
    found, ask = list[str](), memory.backend.db.query

    def planned(sql: str, values: Any = ()) -> Any:
        found.extend(row[3] for row in ask(f"EXPLAIN QUERY PLAN {sql}", values))
        return ask(sql, values)
    monkeypatch.setattr(memory.backend.db, "query", planned)
    return found


@pytest.mark.parametrize(("given", "index"), [
    ({"tags": ("tea",)}, "memory_tags_tag"), ({"session": "s1"}, "memories_turn"), ({"kind": "rule"}, "memories_kind")])
def test_a_few_are_found_without_a_walk_through_all(memory: Memory, plans: list[str], given: dict[str, Any], index: str) -> None:
    memory.backend.memories.matching("default", Filters(**given))
    assert any(index in step for step in plans)
    assert not any(step.endswith("(namespace=?)") or step.startswith("SCAN m") for step in plans), plans


@pytest.mark.parametrize("given", [{"role": "user"}, {"speaker": "Mina"}, {"category": "a"}, {"kind": "block"}, {"status": ("archived",)},
                                   {"since": START}], ids=str)
def test_what_the_index_knows_is_not_asked_of_the_store(memory: Memory, plans: list[str], given: dict[str, Any]) -> None:
    with memory.index.snapshot():
        plans.clear()
        assert memory.ctx.search.searcher.filters.resolve(Filters(**given, now=START)) is not None
    assert not plans


def test_ids_are_looked_up_by_number(memory: Memory, plans: list[str]) -> None:
    db, known = memory.backend.db, {r.seq or 0: r.id for r in memory.recent(40)}
    plans.clear()
    for some in (sorted(known)[:3], sorted(known)):
        assert MemoryTable(db).ids("default", some) == {s: known[s] for s in some} and MemoryTable(db).ids("other", some) == {}
    assert sum("memories USING INTEGER PRIMARY KEY (rowid=?)" in step for step in plans) == 4, plans


def test_days_are_days_of_the_zone_that_is_set() -> None:
    with Memory(":memory:", embedder="none", time_zone="Asia/Seoul") as seoul, Memory(":memory:", embedder="none") as utc:
        for memory in (seoul, utc):
            memory.write("아침에 요가를 했다", valid_from="2026-11-22T07:00:00+09:00", id="yoga")
        assert [m.id for m in seoul.list(since="2026-11-22", until="2026-11-23")] == ["yoga"] and not utc.list(since="2026-11-22")
        assert "[yoga 2026-11-22]" in seoul.context("요가").text and "[yoga 2026-11-21]" in utc.context("요가").text
        assert seoul.get("yoga").valid_from == utc.get("yoga").valid_from and seoul.get("yoga").valid_from.tzinfo is UTC
        with pytest.raises(InvalidInput, match="give the day after"):
            seoul.list(since="2026-11-22", until="2026-11-22")
    summer = [parse_time(f"2026-03-{day}", where=zone("Europe/Berlin")) for day in (29, 30)]
    assert (summer[1] - summer[0]).total_seconds() == 23 * 3600 and summer[0].isoformat() == "2026-03-28T23:00:00+00:00"
