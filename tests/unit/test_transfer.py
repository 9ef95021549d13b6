"Export and import: nothing is lost, nothing foreign comes along, and no file can leave a store that is not sound."
import base64
import json
import os
import random
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from toy import Toy

from rlm import Memory
from rlm.core.clock import ManualClock
from rlm.core.errors import InvalidInput, NotFound, RlmError, StoreError
from rlm.core.settings import load_settings
from rlm.search.embedding.service import EmbeddingService
from rlm.search.embedding.worker import reembed
from rlm.search.namespace_search import NamespaceSearch
from rlm.service.cli import main
from rlm.service.memory_context import MemoryContext
from rlm.store import Filters, SQLiteDatabase, SQLStorage
from rlm.store.integrity import check
from rlm.store.recall_log import RecallLog
from rlm.store.threads import THREAD_TABLES, make_thread_tables
from rlm.store.transfer.export import TABLES, export_file, export_lines
from rlm.store.transfer.importer import columns_of, import_lines, read_row

pytestmark = pytest.mark.usefixtures("bare")
EVERY = Filters.read(status="any")
OTHER_TABLES = """
INSERT INTO triples VALUES (1, 'Mina', 'likes', 'tea', 0), (2, 'Mina', 'likes', '커피', 1);
INSERT INTO vectors (seq, model, dim, vector) VALUES (1, 'e5', 3, x'003c00380034');
INSERT INTO slots VALUES ('default', 'A', 'anchor', 2, 'ctx', 'h', 's', 'e5', x'0102', 3, 1, 5, '2026-01-01T00:00:00.000000Z', NULL, '{}');
INSERT INTO slot_refs VALUES ('default', 'A', 1, 0.5, 0.25, '2026-01-01T00:00:00.000000Z', '2026-01-01T00:00:00.000000Z');
INSERT INTO runs VALUES ('r1', 'default', '2026-01-01T00:00:00.000000Z', 'm', 'prov', '/x', NULL);
INSERT INTO trajectories VALUES ('t1', 'r1', 'q', 'a', 3, 1, '[1]', NULL, 'c', 'k', '2026-01-01T00:00:00.000000Z');
INSERT INTO judgments VALUES ('t1', NULL, 'cannot say', 'low', '[]');
INSERT INTO memory_usage VALUES ('t1', 'tea', 1, 0.5);
INSERT INTO snapshots VALUES ('s1', 'default', 'reranker', '2026-01-01T00:00:00.000000Z', '{"n":1}', x'deadbeef');
INSERT INTO rejections VALUES ('default', '00ff', 'ab12', 'r1', '2026-01-01T00:00:00.000000Z', 'human', 'no', 'tea');
INSERT INTO thread_checkpoints VALUES ('default', 't', '', '1', NULL, 'r', 'msgpack', x'00ff', 'json', x'7b7d');
INSERT INTO thread_writes VALUES ('default', 't', '', '1', 'task', 0, '', 'said', 'msgpack', x'a0');
"""


def fill(memory: Memory, clock: ManualClock) -> None:
    "A bit of everything: both languages, history, deletions, erasures, links, another namespace's neighbours."
    memory.write("Mina prefers green tea", id="tea", tags=["drink", "선호"], extra={"n": 1.0, "quote": '"\n\u2028'}, confidence=0.5)
    memory.write("고양이가 소파에서 잔다", id="cat", category="pets", valid_from="2025-05-08", valid_to="2027-01-01")
    memory.write("when tired then rest", kind="rule", formal='when city == "Seoul" then drink = "tea"', id="rest", status="ltm", success=3)
    memory.write("1. search", kind="strategy", title="Find", scope={"tools": ["a"]}, provenance={"task_query": "q"}, source_type="human")
    memory.add_conversation([{"id": "t0", "speaker": "A", "text": "Where is the key?"},
                             {"id": "t1", "speaker": "B", "text": "Under the mat."},
                             {"id": "t2", "speaker": "A", "text": "Thanks", "reply_to": 0}], session="s")
    clock.advance(days=1)
    memory.update("tea", text="Mina prefers black tea", tags=["drink"])
    memory.update("cat", status="archived")
    memory.link("tea", "cat", "similar", 0.25)
    memory.record_usage("tea", success=1)
    memory.write("deleted", id="gone")
    memory.write("secret erased", id="erased")
    memory.write("deleted and back", id="back")
    clock.advance(days=1)
    memory.delete(["gone", "back"])
    memory.delete("erased", erase=True)
    memory.write("deleted and back again", id="back")
    memory.write("last and erased", id="last")
    memory.delete("last", erase=True)


@pytest.fixture
def full(path: Path, clock: ManualClock) -> Iterator[Memory]:
    with Memory(path, clock=clock) as memory, Memory(path, namespace="other", clock=clock) as other:
        fill(memory, clock)
        other.write("a plum of another partition", id="tea", session="s", tags=["foreigntag"], extra={"foreign": "foreignextra"})
        other.write("more plums", id="plum")
        other.update("plum", text="many more plums")
        other.link("tea", "plum", "foreignlink")
        make_thread_tables(memory.backend.db)
        for statement in OTHER_TABLES.strip().split(";\n"):
            memory.backend.db.query(statement.strip().rstrip(";"))
        assert memory.check() == []
        yield memory


def lines_of(backend: SQLStorage, namespace: str | None = None) -> list[str]:
    return list(export_lines(backend, datetime.fromisoformat("2026-02-01T00:00:00Z"), namespace))


def empty() -> SQLStorage:
    return SQLStorage(SQLiteDatabase(":memory:"))


def nameless(lines: list[str]) -> list[str]:
    "An export without the name of the store it came from."
    return [json.dumps({k: v for k, v in json.loads(lines[0]).items() if k != "store"}), *lines[1:]]


def resealed(lines: list[str]) -> list[str]:
    "With the last line's count put right, as somebody who edits by hand would."
    return [*lines[:-1], json.dumps({"format": "rlm-store", "lines": len(lines)})]


def read_all(backend: SQLStorage) -> None:
    "Every row can be read: what check does not ask, a reader would stumble over."
    for (namespace,) in backend.db.query("SELECT DISTINCT namespace FROM events UNION SELECT DISTINCT namespace FROM memories"):
        for m in backend.find(namespace, EVERY, 10_000):
            backend.memories.versions(m.id, namespace)
            backend.fulltext.columns([m])
        for (id,) in backend.db.query("SELECT DISTINCT id FROM memory_versions WHERE namespace = ?", (namespace,)):
            backend.memories.versions(id, namespace)
        backend.events(namespace)
        backend.edges([m.id for m in backend.find(namespace, EVERY, 10_000)], namespace)
        backend.find(namespace, Filters.read(as_of="2026-06-01", status="any"), 10_000)
    backend.db.query("SELECT * FROM rules")
    backend.db.query("SELECT * FROM memory_items")


def over(backend: SQLStorage, namespace: str = "default") -> Memory:
    "A memory over a storage that is open already."
    chosen = load_settings(namespace=namespace, embedder="none")
    embeddings = EmbeddingService(backend, chosen)
    return Memory(context=MemoryContext(chosen, namespace, ManualClock(), backend, embeddings, NamespaceSearch.open(backend, namespace),
                                        RecallLog(backend.db, chosen.recall_log)))


def usable(backend: SQLStorage) -> None:
    "New memories still get numbers of their own."
    made = over(backend)
    try:
        one = made.write("afterwards", session="s")
        assert made.search("afterwards")[0].id == one.id and made.check() == []
        made.update(one.id, text="changed")
        made.delete(one.id)
        assert made.check() == []
    finally:
        made.close()


# ---------------------------------------------------------------- lossless

def test_export_import_export_is_the_same(full: Memory) -> None:
    lines, copy = lines_of(full.backend), empty()
    report = import_lines(copy, lines)
    assert nameless(lines_of(copy)) == nameless(lines)
    assert copy.position()[1] == full.backend.position()[1] and copy.position()[0] != full.backend.position()[0]
    assert (report.unchanged, dict(report.refused)) == (0, {}) and report.added == sum('"table":"memories"' in line for line in lines)
    tables = {json.loads(line)["table"] for line in lines[1:-1]}
    assert tables == set(TABLES), "this test's store leaves a table out"
    read_all(copy)
    usable(copy)


def test_every_table_of_the_schema_is_exported_or_derived() -> None:
    made = {name for (name,) in empty().db.query("SELECT name FROM sqlite_master WHERE type = 'table'")}
    # counts of the full-text index; what is left to be done in this very file, and what it has served; what the texts of memories state
    derived = {"namespace_statistics", "pending_scrubs", "facts", "recalls", "recalled"}
    of_fulltext = {n for n in made if n.startswith(("memories_fts", "memories_terms", "memories_instances", "sqlite_"))}
    assert made == {*TABLES, "meta", *derived} - {*THREAD_TABLES} | of_fulltext


def test_numbers_of_erased_memories_are_not_used_again_after_an_import(full: Memory) -> None:
    for namespace in (None, "default"):
        lines, copy = lines_of(full.backend, namespace), empty()
        import_lines(copy, lines)
        made = over(copy)
        new = made.write("new")
        if namespace is None:
            assert new.seq == full.write("new here too").seq
        made.close()


def test_a_store_that_was_emptied_keeps_its_place(bare: Path) -> None:
    with Memory(":memory:") as memory:
        memory.write("gone", id="a")
        memory.delete("a", erase=True)
        lines, copy = lines_of(memory.backend), empty()
        import_lines(copy, lines)
        assert nameless(lines_of(copy)) == nameless(lines)
        assert copy.position()[1] == memory.backend.position()[1]


def test_an_empty_store_round_trips() -> None:
    lines, copy = lines_of(empty()), empty()
    report = import_lines(copy, lines)
    assert report.added == 0 and len(lines) == 2 and nameless(lines_of(copy)) == nameless(lines)


def test_files_are_written_whole_and_private(full: Memory, tmp_path: Path) -> None:
    target = tmp_path / "out" / "내보내기.jsonl"
    with pytest.raises(StoreError):
        full.export_jsonl(target)
    target.parent.mkdir()
    target.write_text("old")
    count = full.export_jsonl(target)
    assert count == len(target.read_text(encoding="utf-8").splitlines(keepends=True)) or count <= target.read_bytes().count(b"\n")
    assert count == target.read_bytes().count(b"\n") and [p.name for p in target.parent.iterdir()] == [target.name]
    assert target.stat().st_mode & 0o077 == 0 or os.name == "nt"
    with pytest.raises(StoreError):
        full.export_jsonl(tmp_path)


@pytest.mark.parametrize("content", [None, b"", b"\n", b"\xff\xfe\x00", b"{}", b"[1]", b"not json\n", b"[" * 100_000,
                                     b"null\nnull", b'{"format":"rlm-store"}',
                                     b'{"format":"rlm-store","schema":true}\n{"lines":2}',
                                     b'{"format":"rlm-store","schema":0}\n{"lines":2}',
                                     b'{"format":"rlm-store","schema":-1}\n{"lines":2}',
                                     b'{"format":"rlm-store","schema":999}\n{"lines":2}',
                                     b'{"format":"rlm-store","schema":1.5}\n{"lines":2}', b"1" * 10_000, b'{"a":1}' * 2])
def test_what_is_no_export_is_refused_plainly(memory: Memory, tmp_path: Path, content: bytes | None) -> None:
    file = tmp_path / "x.jsonl"
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(NotFound if content is None else InvalidInput) as caught:
        memory.import_jsonl(file)
    assert caught.value.hint and len(str(caught.value)) < 1000 and memory.backend.position()[1] == 0


@pytest.mark.parametrize(("field", "value", "why"), [
    ("formal", "when city == then x", "can't be read at character 12"), ("formal", "__import__('os')", "character"),
    ("extra_json", '{"counted_from": {"at": "soon", "success": 0, "failure": 0}}', "soon"),
    ("extra_json", '{"counted_from": {"at": "2026-01-01T00:00:00.000000Z", "success": -1, "failure": 0}}', "success of counted_from"),
    ("extra_json", '{"counted_from": [1]}', "counted_from of a rule needs")])
def test_a_rule_that_can_not_be_read_does_not_come_in(memory: Memory, tmp_path: Path, field: str, value: str, why: str) -> None:
    memory.write("Tea in the morning.", id="note")
    memory.write("Coffee in Seoul.", id="rule", kind="rule", formal="when city == 'Seoul' then drink = 'coffee'")
    memory.export_jsonl(tmp_path / "good.jsonl")
    rows = [json.loads(line) for line in (tmp_path / "good.jsonl").read_text(encoding="utf-8").splitlines()]
    [at] = [n for n, row in enumerate(rows) if row.get("table") == "memories" and row["id"] == "rule"]
    rows[at][field] = value
    bad = tmp_path / "bad.jsonl"
    bad.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    with Memory(":memory:") as there:
        with pytest.raises(InvalidInput, match=f"Line {at + 1} .*a rule.*{why}") as refused:
            there.import_jsonl(bad)
        assert "Nothing was imported." in str(refused.value.hint) and not there.recent(9) and not there.backend.events("default")
        done = CliRunner().invoke(main, ["db", "import", str(bad), "--db", str(tmp_path / "there.db")])
        assert done.exit_code and f"Line {at + 1} " in done.output + done.stderr and "Traceback" not in done.output
        assert there.import_jsonl(tmp_path / "good.jsonl").added == 2 and there.get("rule").formal


def test_a_folder_is_no_export(memory: Memory, tmp_path: Path) -> None:
    with pytest.raises(NotFound):
        memory.import_jsonl(tmp_path)


# ---------------------------------------------------------------- namespaces

def test_an_export_of_one_namespace_holds_nothing_of_another(full: Memory) -> None:
    ours, theirs = "\n".join(lines_of(full.backend, "default")), "\n".join(lines_of(full.backend, "other"))
    for foreign in ("plum", "foreign", "other"):
        assert foreign not in ours
    for foreign in ("Mina", "고양이", "default", "drink", "similar", "reranker", "t1"):
        assert foreign not in theirs
    copy = empty()
    import_lines(copy, lines_of(full.backend, "other"))
    assert [m.id for m in copy.find("other", EVERY, 99)] == ["plum", "tea"] and copy.find("default", EVERY, 9) == []
    assert lines_of(copy, "other")[1:] == lines_of(full.backend, "other")[1:]


def test_exports_of_each_namespace_together_are_the_whole(full: Memory) -> None:
    copy = empty()
    for namespace in ("default", "other"):
        assert not import_lines(copy, lines_of(full.backend, namespace)).refused
    for namespace in ("default", "other"):
        mine, theirs = over(copy, namespace), over(full.backend, namespace)
        assert [without_seq(m) for m in mine.recent(99, status="any", as_of="2030-01-01")] == [
            without_seq(m) for m in theirs.recent(99, status="any", as_of="2030-01-01")]


def without_seq(m: Any) -> dict[str, Any]:
    return {k: v for k, v in vars(m).items() if k != "seq"}


def test_a_memory_imports_into_its_own_namespace_only(full: Memory, tmp_path: Path, clock: ManualClock) -> None:
    file = tmp_path / "x.jsonl"
    export_file(full.backend, file, clock.now())
    with Memory(":memory:") as ours:
        with pytest.raises(InvalidInput, match="other") as caught:
            ours.import_jsonl(file)
        assert caught.value.hint and ours.backend.position()[1] == 0
        full.export_jsonl(file)
        assert ours.import_jsonl(file).added > 3
        with Memory(":memory:", namespace="mine") as mine, pytest.raises(InvalidInput, match="default"):
            mine.import_jsonl(file)


# ---------------------------------------------------------------- merging

def test_the_same_again_changes_nothing(full: Memory) -> None:
    lines, before = lines_of(full.backend), lines_of(full.backend)
    report = import_lines(full.backend, lines)
    assert report.added == 0 and not report.refused and report.unchanged > 5 and lines_of(full.backend) == before


def test_a_merge_adds_what_is_new_with_its_history_and_names_what_differs(full: Memory, clock: ManualClock) -> None:
    with Memory(":memory:", clock=clock) as here:
        here.write("Here we drink coffee", id="tea")
        here.write("mine", id="mine")
        here.write("once", id="cat")
        here.delete("cat")
        report = import_lines(here.backend, lines_of(full.backend, "default"))
        assert dict(report.refused) == {"tea": "differs from the memory here", "cat": "was deleted here"}
        assert here.get("tea").text == "Here we drink coffee" and here.check() == []
        assert {m.id for m in here.recent(99)} >= {"mine", "tea", "rest", "t0", "t1", "t2", "back"}
        assert [v.text for v in here.history("back").versions] == ["deleted and back", "deleted and back again"]
        assert [e.kind for e in here.history("gone").events] == ["write", "delete"] and here.history("gone").versions[0].text == "deleted"
        assert here.links("tea") == [] and here.search("mat")[0].id == "t1"
        read_all(here.backend)
        again = import_lines(here.backend, lines_of(full.backend, "default"))
        assert again.added == 0 and set(again.refused) == {"tea", "cat"} and here.check() == []


def test_imported_turns_and_turns_that_were_there_become_neighbours(bare: Path, clock: ManualClock) -> None:
    with Memory(":memory:", clock=clock) as one, Memory(":memory:", clock=clock) as two:
        one.add_conversation([{"id": "a0", "text": "zebra", "turn": 0}, {"id": "a2", "text": "walrus", "turn": 2}], session="s")
        two.add_conversation([{"id": "b1", "text": "parrot", "turn": 1}, {"id": "b3", "text": "salmon", "turn": 3}], session="s")
        import_lines(two.backend, lines_of(one.backend))
        assert two.check() == [] and {h.id for h in two.search("parrot")} == {"a0", "b1", "a2"}
        assert {h.id for h in two.search("walrus")} == {"b1", "a2", "b3"}


def test_an_imported_question_is_found_again_by_the_answer_it_left_here(bare: Path, clock: ManualClock) -> None:
    with Memory(":memory:", clock=clock) as here:
        here.write("zebra question", id="q")
        here.write("lynx", id="a", reply_to="q")
        lines = [line for line in lines_of(here.backend) if '"id":"q"' not in line and '"subject":"q"' not in line]
        there_without = empty()
        import_lines(there_without, resealed(lines))
        there = over(there_without)
        assert len(there.search("zebra")) == 0
        import_lines(there.backend, lines_of(here.backend))
        assert {h.id for h in there.search("zebra")} == {"q", "a"} and there.check() == []
        there.close()


def test_a_merge_gives_numbers_of_this_store_to_the_deleted_too(full: Memory, clock: ManualClock) -> None:
    "A deleted memory's old number must not point at somebody else's memory here."
    with Memory(":memory:", clock=clock) as here:
        here.write_many([{"text": "local zebra", "id": f"local{n}"} for n in range(30)])
        import_lines(here.backend, lines_of(full.backend, "default"))
        numbers: dict[int, str] = {}
        for id, seq in here.backend.db.query("SELECT id, seq FROM memories UNION SELECT id, seq FROM memory_versions"):
            assert numbers.setdefault(seq, id) == id
        hit = next(h for h in here.search("deleted", as_of="2026-01-02T12:00:00Z", k=50) if h.id == "gone")
        assert sum(hit.as_dict()["parts"].values()) == pytest.approx(hit.score)


def test_what_two_stores_say_about_one_session_is_not_mixed_up(bare: Path, clock: ManualClock) -> None:
    with Memory(":memory:", clock=clock) as one, Memory(":memory:", clock=clock) as two:
        one.add_conversation([{"id": "a", "text": "zebra"}], session="s")
        two.add_conversation([{"id": "b", "text": "walrus"}], session="s")
        report = import_lines(two.backend, lines_of(one.backend))
        assert dict(report.refused) == {"a": "its turn in the session is taken"} and two.check() == []


# ---------------------------------------------------------------- hostile files

def outcome(lines: list[str], into: Callable[[], SQLStorage] = empty) -> str:
    "Import; whatever comes of it must be all, or nothing and a plain error."
    backend = into()
    before = lines_of(backend)
    error = None
    with closing(backend):
        try:
            import_lines(backend, lines)
        except RlmError as e:
            error = e
        if error:
            assert error.message and error.hint and len(str(error)) < 1000
            assert lines_of(backend) == before, "refused, but something was stored"
            return "refused"
        assert check(backend.db) == [], "accepted, but the store is not sound"
        read_all(backend)
        return "stored"


def test_a_line_more_or_less_is_refused(full: Memory) -> None:
    lines = lines_of(full.backend)
    for n in range(len(lines)):
        assert outcome(lines[:n] + lines[n + 1:]) == "refused"
        assert outcome(lines[:n + 1] + lines[n:]) == "refused"
        assert outcome(lines[:n]) == "refused"


def test_a_line_more_or_less_with_the_count_put_right_leaves_a_sound_store_or_none(full: Memory) -> None:
    lines = lines_of(full.backend)
    results = [outcome(resealed(part)) for n in range(1, len(lines) - 1) for part in (lines[:n] + lines[n + 1:], lines[:n + 1] + lines[n:])]
    assert {"refused", "stored"} == set(results)
    shuffled = lines[1:-1]
    random.Random(0).shuffle(shuffled)
    outcome([lines[0], *shuffled, lines[-1]])


NASTY: list[Any] = [None, "", 0, -1, 1, 2, 1.5, 2**53 + 1, 2**63 - 1, 2**63, 10**400, True, False, "x", "a\0b", "\ud800",
                    [], {}, [1], {"a": 1}, {"$base64": "AAAA"}, {"$base64": "!"}, {"$base64": 5}, float("nan"),
                    float("inf"), -1e308, "2026-01-01", "9999-99-99T00:00:00.000000Z",
                    "2026-01-01T00:00:00.000000Z", "{", "[]", "{}", "null", '{"a":NaN}', '["b","a"]', "default", "other",
                    "tea", "cat", "t1", "hot",
                    "archived", "x" * 2000, " spaced ", "line\nbreak", "e\u0301"]


TELLING = ("id", "namespace", "reply_to", "session", "turn", "version", "tag", "subject", "slot", "src", "vid")


def test_every_value_of_every_row_replaced_by_nasty_ones(full: Memory) -> None:
    lines, rng, seen = lines_of(full.backend), random.Random(1), set[tuple[str, str]]()
    columns = {table: columns_of(full.backend.db, table) for table in TABLES}
    results = list[str]()
    for n, row in enumerate(map(json.loads, lines)):
        for column in row if "table" in row else ():
            key = (row["table"], column)
            for value in NASTY if key not in seen else rng.sample(NASTY, 1):
                changed = {**row, column: value}
                chance = 0.01 if not readable(columns, changed) else 0.5 if column in TELLING else 0.1
                if rng.random() > chance:
                    continue  # most are refused before anything is stored, or are just another text: a few are enough
                results.append(outcome([*lines[:n], json.dumps(changed), *lines[n + 1:]]))
            seen.add(key)
    assert set(results) == {"refused", "stored"} and len(seen) > 100


def readable(columns: dict[str, Any], row: dict[str, Any]) -> bool:
    "Whether a row passes by itself, whatever the others say."
    try:
        read_row(row["table"], columns[row["table"]], json.loads(json.dumps(row)))
    except (InvalidInput, KeyError, TypeError):
        return False
    return True


def test_every_column_of_the_header_replaced_by_nasty_ones(full: Memory) -> None:
    lines = lines_of(full.backend)
    header = json.loads(lines[0])
    for column in header:
        for value in NASTY[::2]:
            outcome([json.dumps({**header, column: value}), *lines[1:]])
    for name in ("memories", "events", "memory_versions", "sqlite_master", "x'; DROP TABLE memories; --"):
        for value in NASTY[:18]:
            changed = {**header, "sequences": {**header["sequences"], name: value}}
            backend = empty()
            try:
                import_lines(backend, [json.dumps(changed), *lines[1:]])
            except RlmError:
                backend.close()
                continue
            usable(backend)


@pytest.mark.parametrize("number", [2**45, 20_000_000, 2**53])
def test_a_number_that_is_far_too_high_is_not_taken_over(bare: Path, clock: ManualClock, number: int) -> None:
    with Memory(":memory:", clock=clock) as memory:
        first = memory.write("the first note, about tea", tags=["a"])
        memory.write("the last note, about tea", id="last")
        memory.link(first.id, "last", "next")
        memory.update("last", text="the very last note, about tea")
        lines = lines_of(memory.backend)
    rows = list(map(json.loads, lines))
    rows[0]["sequences"]["memories"] = number
    for row in rows[1:-1]:
        row |= {name: number for name in ("seq", "src", "dst") if row.get(name) == 2}
    with Memory(":memory:", clock=clock) as memory:
        report = import_lines(memory.backend, [json.dumps(row) for row in rows])
        assert (report.added, memory.check()) == (2, [])
        assert {h.id for h in memory.search("note about tea")} == {first.id, "last"}
        assert memory.backend.memories.seqs("default") == [1, 2] and memory.write("another").seq == 3
        assert [e.dst for e in memory.links(first.id)] == ["last"] and memory.search("very last note")[0].id == "last"
        assert [m.version for m in memory.history("last").versions] == [1, 2]


@pytest.mark.parametrize("bad", [{"chunk": 2**31}, {"dim": 2**40}, {"chunk": -1}])
def test_numbers_that_arrays_are_made_of_are_bounded(full: Memory, bad: dict[str, int]) -> None:
    lines = [json.dumps(row | bad) if row.get("table") == "vectors" else line for line, row in ((line, json.loads(line)) for line in
                                                                                               lines_of(full.backend))]
    with pytest.raises(InvalidInput, match=next(iter(bad))):
        import_lines(empty(), lines)


@pytest.mark.parametrize("bad", ["cut", "no number", "two parts"])
def test_vectors_that_are_damaged_are_made_anew(path: Path, tmp_path: Path, clock: ManualClock, bad: str) -> None:
    with Memory(path, clock=clock, embedder=Toy()) as memory:
        memory.write_many([{"id": f"m{n}", "text": text} for n, text in enumerate(["a boat at sea", "고양이", "a tomato in the garden"])])
        lines = [json.loads(line) for line in lines_of(memory.backend)]
        true = memory.backend.db.query("SELECT * FROM vectors ORDER BY seq, chunk")
    stored = {"cut": lambda raw: raw[:-2], "no number": lambda raw: b"\x00\x7e" + raw[2:], "two parts": lambda raw: raw}[bad]
    for row in [row for row in lines if row.get("table") == "vectors" and row["seq"] == 1]:
        row["vector"]["$base64"] = base64.b64encode(stored(base64.b64decode(row["vector"]["$base64"]))).decode()
        if bad == "two parts":
            lines.insert(-1, row | {"chunk": 1, "vector": {"$base64": base64.b64encode(b"\0\0").decode()}})
    lines[-1]["lines"] = len(lines)
    (file := tmp_path / "some.jsonl").write_text("".join(json.dumps(row) + "\n" for row in lines))
    other = tmp_path / "other.db"
    with Memory(other, clock=clock, embedder=Toy()) as open_, Memory(other, clock=clock, embedder=Toy()) as memory:
        assert not open_.search("harbour")
        memory.import_jsonl(file)
        assert memory.backend.db.query("SELECT * FROM vectors ORDER BY seq, chunk") == true and memory.check() == []
        assert [h.id for h in open_.search("harbour")][:1] == ["m0"], "an index that is open learns of them"
        memory.backend.db.query("UPDATE vectors SET vector = substr(vector, 3) WHERE seq = 2")  # as an earlier version imported it
        (said,) = memory.check()
        assert "another size" in said and memory.backend.vectors.missing("toy", dim=16) == [2]
        assert reembed(memory.backend, Toy(), clock).embedded == 1
        assert memory.backend.db.query("SELECT * FROM vectors ORDER BY seq, chunk") == true and memory.check() == []
        assert [h.id for h in open_.search("kitten")][:1] == ["m1"]


def test_an_open_index_learns_of_what_an_import_brings_without_an_event(bare: Path, clock: ManualClock) -> None:
    with Memory(":memory:", clock=clock, embedder="none") as memory:
        memory.write("a note about tea", id="tea")
        plain = lines_of(memory.backend)
        with memory.backend.transaction():
            memory.backend.db.query("INSERT INTO vectors (seq, model, dim, vector) VALUES (1, 'm', 2, x'0000003c')")
        with_vectors = lines_of(memory.backend)
    with Memory(":memory:", clock=clock, embedder="none") as memory:
        import_lines(memory.backend, plain)
        before = memory.backend.position()
        assert import_lines(memory.backend, with_vectors).rows == {"vectors": 1}
        assert [e.kind for e in memory.backend.events("default", after=before[1])] == ["embed"] and memory.check() == []
        before = memory.backend.position()
        import_lines(memory.backend, with_vectors)
        assert memory.backend.position() == before, "the same again is no event"
    rows = [row for row in map(json.loads, plain) if row.get("table") != "events"]
    rows[-1]["lines"] = len(rows)
    with Memory(":memory:", clock=clock, embedder="none") as memory:
        assert not memory.search("tea")
        import_lines(memory.backend, map(json.dumps, rows))
        assert memory.search("tea")[0].id == "tea" and [e.kind for e in memory.history("tea").events] == ["write"]
        assert import_lines(memory.backend, map(json.dumps, rows)).unchanged == 1


@pytest.mark.parametrize("numbers", [{"seq": -1}, {"seq": 0}, {"seq": 2**63 - 1}, {"seq": 2**60}, {"vid": -5},
                                     {"vid": 2**63 - 1}, {"id": 2**63 - 1}, {"id": -3}])
def test_no_number_of_a_file_can_use_up_the_numbers_of_a_store(full: Memory, numbers: dict[str, int]) -> None:
    lines = lines_of(full.backend, "default")
    column, value = next(iter(numbers.items()))
    table = {"seq": "memories", "vid": "memory_versions", "id": "events"}[column]
    old = next(json.loads(line) for line in lines if f'"table":"{table}"' in line)[column]
    rows = [json.loads(line) for line in lines]
    changed = [json.dumps({**row, column: value} if row.get("table") in (table, "memory_tags") and row.get(column) == old else row)
               for row in rows]
    backend = empty()
    try:
        import_lines(backend, changed)
    except RlmError:
        backend.close()
    else:
        usable(backend)


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(data=st.data())
def test_garbled_text_is_refused_or_sound(full: Memory, data: st.DataObject) -> None:
    lines = lines_of(full.backend)
    n = data.draw(st.integers(0, len(lines) - 1))
    at = data.draw(st.integers(0, len(lines[n])))
    cut = data.draw(st.integers(0, 4))
    put = data.draw(st.text(max_size=4))
    outcome([*lines[:n], lines[n][:at] + put + lines[n][at + cut:], *lines[n + 1:]])


def test_replies_in_a_circle_do_not_come_in(memory: Memory) -> None:
    memory.write("a", id="a")
    memory.write("b", id="b", reply_to="a")
    lines = lines_of(memory.backend)
    assert json.loads(lines[1])["id"] == "a"
    for question in ("a", "b"):
        changed = json.dumps({**json.loads(lines[1]), "reply_to": question})
        assert outcome([lines[0], changed, *lines[2:]]) == "refused"


def test_links_across_namespaces_do_not_come_in(full: Memory) -> None:
    lines = lines_of(full.backend)
    numbers = {(r["namespace"], r["id"]): r["seq"] for r in map(json.loads, lines) if r.get("table") == "memories"}
    for table, columns in (("edges", {"src": numbers["default", "tea"], "dst": numbers["other", "tea"]}),
                           ("slots", {"anchor": numbers["other", "tea"]}),
                           ("slot_refs", {"seq": numbers["other", "tea"]})):
        n = next(n for n, line in enumerate(lines) if f'"table":"{table}"' in line)
        assert outcome([*lines[:n], json.dumps(json.loads(lines[n]) | columns), *lines[n + 1:]]) == "refused", table


def test_a_hostile_file_leaves_a_full_store_as_it_was(full: Memory) -> None:
    lines = lines_of(full.backend)
    other = empty()
    import_lines(other, lines)
    before = nameless(lines_of(other))
    fresh = [line.replace('"id":"tea"', '"id":"new"').replace('"subject":"tea"', '"subject":"new"') for line in lines]
    n = next(n for n, line in enumerate(fresh) if '"table":"edges"' in line)
    for wrong in ('{"table":"events"}', '{"table":"edges","src":1,"dst":1}', "{", json.dumps({**json.loads(fresh[n]), "weight": "heavy"})):
        with pytest.raises(RlmError):
            import_lines(other, [*fresh[:n], wrong, *fresh[n + 1:]])
        assert nameless(lines_of(other)) == before


def test_ten_thousand_memories_move_in_seconds(path: Path, tmp_path: Path) -> None:
    words = ["tea", "coffee", "zebra", "고양이가", "학교에서", "harbour", "walrus", "green", "meeting", "rent"]
    rng = random.Random(0)
    with Memory(path) as memory:
        memory.write_many([{"text": " ".join(rng.choices(words, k=12)), "tags": ["t"],
                            "session": f"s{n // 20}" if n % 2 else None} for n in range(10_000)])
        begin = time.process_time()
        assert memory.export_jsonl(tmp_path / "x.jsonl") == 30_002
        middle = time.process_time()
        with Memory(tmp_path / "copy.db") as copy:
            assert copy.import_jsonl(tmp_path / "x.jsonl").added == 10_000
            assert [h.id for h in copy.search("harbour walrus")] == [h.id for h in memory.search("harbour walrus")]
        end = time.process_time()
    assert middle - begin < 5 and end - middle < 20, "seconds of this process: other work on the machine does not count"


def test_an_import_reads_and_guards_before_its_transaction(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with Memory(tmp_path / "one.db", embedder="none") as one:
        one.write_many(["I live in Busan.", "My dog is called Miso."])
        one.admin.export(tmp_path / "one.jsonl")
    with Memory(tmp_path / "two.db", embedder="none") as two:
        inside = list[bool]()
        for name in ("rlm.store.transfer.importer._guarded", "rlm.store.transfer.importer.read_memory", "rlm.service.memory.facts_of"):
            module, _, function = name.rpartition(".")
            real = getattr(sys.modules[module], function)
            monkeypatch.setattr(name, lambda *args, real=real: (inside.append(two.backend.in_transaction), real(*args))[1])
        assert len(two.admin.import_(tmp_path / "one.jsonl").refused) == 0 and two.search("Where do I live?")[0].text == "I live in Busan."
        assert inside and not any(inside)


def test_an_import_embeds_only_the_namespaces_that_came_in(tmp_path: Path) -> None:
    with Memory(tmp_path / "a.db", embedder="none") as one:
        one.write("I live in Oslo.")
        one.namespace("work").write("I work at Acme.")
        lines = lines_of(one.backend)
    with Memory(tmp_path / "b.db", embedder="none") as two:
        two.namespace("large").write("It is here, without a vector.")
    model = Toy()
    with Memory(tmp_path / "b.db", embedder=model) as two:
        report = two.admin.import_lines(lines)
        assert report.added == 2 and report.namespaces == ("default", "work")
        assert model.texts == 2
