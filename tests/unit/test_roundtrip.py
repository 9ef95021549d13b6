"Any text that can be written comes back unchanged: from the row, from its own search, from an export, from a backup."
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from rlm import Memory
from rlm.core.clock import ManualClock
from rlm.core.text import tokens
from rlm.store import Filters, SQLiteDatabase, SQLStorage, Weights
from rlm.store.integrity import check
from rlm.store.sqlite.database import backup
from rlm.store.transfer.export import export_lines
from rlm.store.transfer.importer import import_lines

pytestmark = pytest.mark.usefixtures("bare")
ANY = st.characters(exclude_categories=["Cs"], exclude_characters="\0")
TEXTS = st.text(ANY, min_size=1, max_size=80).filter(str.strip)
STEERING = "\x00\u2028\u2029\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"
LABELS = st.text(st.characters(exclude_categories=["Cs", "Cc"], exclude_characters=STEERING), min_size=1, max_size=30).filter(str.strip)
LEAVES = st.one_of(st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False, allow_infinity=False), st.text(
    st.characters(exclude_categories=["Cs"]), max_size=20))
EXTRAS = st.dictionaries(st.text(st.characters(exclude_categories=["Cs"]), max_size=8), st.recursive(
    LEAVES, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(ANY, max_size=5), inner, max_size=3),
    max_leaves=6), max_size=3)
MEMORIES = st.fixed_dictionaries({"text": TEXTS}, optional={
    "title": LABELS, "tags": st.lists(LABELS, max_size=3), "extra": EXTRAS, "summary": TEXTS, "formal": TEXTS, "speaker": LABELS,
    "category": LABELS, "session": st.sampled_from(["s", "t"]), "provenance": EXTRAS, "scope": EXTRAS})


@settings(max_examples=80, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(MEMORIES, min_size=1, max_size=4))
@example([{"text": "\r\n line ends \x85\u2028\u2029 \x1c", "extra": {"\0": "\0", "n": 10**30, "f": 1e-300, "t": True, "o": 1}}])
@example([{"text": '{"json":"lines"}\n{"format":"rlm-store","lines":2}', "tags": ["👨\u200d👩\u200d👧", "می\u200cخواهم", "e\u0301"]}])
def test_what_was_written_is_found_exported_and_imported_unchanged(given_memories: list[dict[str, Any]]) -> None:
    clock, copy = ManualClock("2026-01-01"), SQLStorage(SQLiteDatabase(":memory:"))
    with Memory(":memory:", clock=clock) as memory:
        made = memory.write_many(given_memories)
        for m, given_ in zip(made, given_memories, strict=True):
            assert memory.get(m.id) == m and m.text == given_["text"] and repr(memory.get(m.id).extra) == repr(m.extra)
            found = memory.search(m.text, k=10)
            assert m.id in {id for h in found for id in (h.id, *h.duplicates)} and all(h.memory == m for h in found if h.id == m.id)
        lines = list(export_lines(memory.backend, clock.now()))
        assert not any("\n" in line or "\r" in line for line in lines)
        import_lines(copy, lines)
        assert copy.find("default", Filters.read(status="any"), 99) == memory.backend.find("default", Filters.read(status="any"), 99)
        assert list(export_lines(copy, clock.now()))[1:] == lines[1:] and check(copy.db) == []
        for m in made:
            there, here = copy.fulltext.match(*query(m.text)), memory.backend.fulltext.match(*query(m.text))
            assert [h.record.id for h in there] == [h.record.id for h in here]
    copy.close()


def query(text: str) -> tuple[Any, ...]:
    return tokens(text), "default", Filters.read(status="any"), 9, Weights()


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(texts=st.lists(TEXTS, min_size=1, max_size=3))
def test_files_keep_every_character(tmp_path: Path, texts: list[str]) -> None:
    with Memory(":memory:") as memory, Memory(":memory:") as other:
        made = memory.write_many([{"text": t, "extra": {"copy": t}} for t in texts])
        memory.export_jsonl(tmp_path / "x.jsonl")
        other.import_jsonl(tmp_path / "x.jsonl")
        assert [other.get(m.id) for m in made] == made
        target = tmp_path / "copy.db"
        target.unlink(missing_ok=True)
        backup(memory.backend.db, target)
        with Memory(target) as copy:
            assert [copy.get(m.id) for m in made] == made
        target.unlink()
