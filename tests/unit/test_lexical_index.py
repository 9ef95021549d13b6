"The lexical index: what is kept in files, what is left after removals, and how its parts divide the work."
from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from toy import index_of

from rlm.core.clock import ManualClock
from rlm.search.arrays import GrowableArray
from rlm.search.lexical.bm25 import (
    CONTEXT_FIELDS,
    LONG_TEXT,
    PASSAGE_LENGTH,
    QueryPlan,
    QueryTerm,
    Segment,
    SegmentBuilder,
    split_passages,
)
from rlm.search.lexical.lexical_index import (
    DocTable,
    LexicalIndex,
    best_passages,
    group_segments,
    highest,
    merge_recent,
    score_thresholds,
)
from rlm.store import fulltext
from rlm.store.records import new_record
from rlm.store.sqlite.database import SQLiteDatabase
from rlm.store.storage import SQLStorage

WORDS = [f"w{n}" for n in range(12)]
FIELDS = ("title", "summary", "tags", "previous", "next")


def random_index(draw: Random, n: int) -> tuple[LexicalIndex, list[tuple[list[str], dict[str, list[str]]]]]:
    "An index of `n` memories, some of them long, with fields, flushed now and then; and the memories."
    index, given = LexicalIndex(), []
    for _ in range(n):
        text = draw.choices(WORDS, k=draw.choice((0, 1, 5, 30, 200)))
        fields = {f: draw.choices(WORDS, k=draw.randint(1, 6)) for f in FIELDS if draw.random() < 0.3}
        given.append((text, fields))
        index.add(text, fields)
        if draw.random() < 0.3:
            index.flush()
    return index, given


def scores(index: LexicalIndex, query: list[str]) -> list[float]:
    "The score of each memory that is there, in the order of their numbers."
    index.flush()
    every = index.score_all(index.plan(query)).copy()
    return every[index.docs.alive.values[index.docs.first_passage.values]].tolist()


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10_000), st.integers(1, 25), st.booleans(), st.booleans())
def test_an_index_that_lost_memories_scores_as_one_that_never_had_them(seed: int, n: int, compacted: bool, renumbered: bool) -> None:
    draw = Random(seed)
    index, given = random_index(draw, n)
    gone = set(draw.sample(range(n), n // 2))
    for doc in gone:
        index.remove(doc)
        index.remove(doc)  # once more changes nothing
    if compacted:
        index.compact()
    if renumbered:
        index.renumber()
        assert index.docs.size == index.documents == n - len(gone)
    fresh = LexicalIndex()
    for doc, (text, fields) in enumerate(given):
        if doc not in gone:
            fresh.add(text, fields)
    query = draw.sample(WORDS, 4)
    assert scores(index, query) == scores(fresh, query) and index.documents == fresh.documents == n - len(gone)
    assert all(index.document_frequency(w) == fresh.document_frequency(w) for w in WORDS)


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 10_000), st.integers(0, 25))
def test_an_index_comes_out_of_its_arrays_as_it_went_in(seed: int, n: int) -> None:
    draw = Random(seed)
    index, _ = random_index(draw, n)
    for doc in draw.sample(range(n), n // 3):
        index.remove(doc)
    again = LexicalIndex.from_arrays({**index.to_arrays(), "of another index": np.zeros(3)})
    for both in (index, again):
        both.add(["w1", "w2"], {"previous": ["w3"]})
    query = draw.sample(WORDS, 4)
    assert scores(index, query) == scores(again, query) and index.documents == again.documents
    assert again.vocabulary == index.vocabulary and len(again.segments) == len(index.segments)


def test_the_names_of_arrays_in_files_stay_as_long_as_the_format_does() -> None:
    index = LexicalIndex()
    index.add(["w1"], {})
    assert set(index.to_arrays()) == {"vocabulary", "documents", "unit_doc", "alive", "first", "held", "own", "own_first",
                                      "0.terms", "0.starts", "0.unit", "0.impact", "0.around"}


def test_a_long_text_is_found_by_its_best_passage_and_has_no_context() -> None:
    index = LexicalIndex()
    index.add(["w0"] * LONG_TEXT + ["w1"] * PASSAGE_LENGTH, {"previous": ["w2"], "title": ["w3"]})
    index.add(["w1"], {"previous": ["w2"]})
    assert set(CONTEXT_FIELDS) == {"previous", "next"}
    found = {word: index.search(index.plan([word]), 5).docs.tolist() for word in ("w0", "w1", "w2", "w3", "w4")}
    assert found == {"w0": [0], "w1": [0, 1], "w2": [1], "w3": [0], "w4": []}
    assert index.docs.span(0).stop == len(split_passages(range(LONG_TEXT + PASSAGE_LENGTH))) == index.docs.span(1).start


def test_a_plan_stays_as_it_was_whatever_is_written_afterwards() -> None:
    index, _ = random_index(Random(1), 40)
    plan = index.plan(WORDS[:3])
    before = [(term, [p.tolist() for p, _, _ in lists]) for _, term, lists in plan.postings]
    for _ in range(40):
        index.add(WORDS, {})
        index.flush()
    index.remove(0)
    index.compact()
    assert before == [(term, [p.tolist() for p, _, _ in lists]) for _, term, lists in QueryPlan.postings.func(plan)]  # type: ignore[attr-defined]


def test_a_plan_without_known_terms_scores_nothing() -> None:
    index, _ = random_index(Random(2), 5)
    plan = index.plan(["unheard"])
    assert plan.idf_sum > 0 and not plan.postings and not index.search(plan, 5).docs.size and not index.score_all(plan).any()
    assert QueryPlan([QueryTerm(1.0, "x", 3)], 1.0, []).posting_count == 0


def segment(size: int) -> Segment:
    return Segment(np.array([0], "i4"), np.array([0, size]), np.arange(size, dtype="i4"), np.ones(size, "f4"), np.zeros(size, "u1"))


def test_segments_of_like_size_are_merged_and_large_ones_are_left(monkeypatch: pytest.MonkeyPatch) -> None:
    alive, segments = np.ones(100, bool), [segment(40), segment(8), segment(5)]
    merge_recent(segments, alive)
    assert [len(s.passage) for s in segments] == [40, 13]
    monkeypatch.setattr("rlm.search.lexical.lexical_index.SMALL_MERGE", 50)
    segments = [segment(40), segment(30)]
    merge_recent(segments, alive)
    assert len(segments) == 2
    monkeypatch.setattr("rlm.search.lexical.lexical_index.LARGEST_SEGMENT", 60)
    assert [[len(s.passage) for s in g] for g in group_segments([segment(n) for n in (70, 20, 30, 15, 5)])] == [[70], [20, 30], [15, 5]]


@given(st.lists(st.integers(0, 5), max_size=30), st.integers(1, 10))
def test_the_highest_are_the_first_of_the_highest(values: list[int], n: int) -> None:
    chosen = np.flatnonzero(highest(np.array(values), n)).tolist()
    assert chosen == sorted(sorted((i for i, v in enumerate(values) if v), key=lambda i: (-values[i], i))[:n])


def test_thresholds_fall_to_zero() -> None:
    rng = np.random.default_rng(0)
    found = list(score_thresholds(rng.random(100_000, np.float32), 500))
    assert found == sorted(found, reverse=True) and found[-1] == 0 and len(found) == 3
    assert list(score_thresholds(np.zeros(100_000, np.float32), 500)) == [0] == list(score_thresholds(np.ones(9, np.float32), 5))


@given(st.lists(st.integers(0, 200), min_size=1, max_size=12), st.randoms(use_true_random=False))
def test_a_table_knows_the_passages_and_terms_of_each_memory(lengths: list[int], draw: Random) -> None:
    batch, table = SegmentBuilder(0, 0), DocTable()
    for doc, length in enumerate(lengths):
        assert batch.add([doc] * length, {}) == doc
    table.append(batch)
    for doc, length in enumerate(lengths):
        span = table.span(doc)
        assert span.stop - span.start == len(split_passages(range(length))) and set(table.passage_doc.values[span]) == {doc}
        assert table.terms_of(doc).tolist() == [doc] * (length > 0)
    some = draw.sample(range(len(lengths)), draw.randint(0, len(lengths)))
    assert table.passages(some).tolist() == [p for doc in some for p in range(table.span(doc).start, table.span(doc).stop)]
    docs, best = best_passages(table.passage_doc.values, np.arange(table.passage_doc.size, dtype="f4"))
    assert docs.tolist() == list(range(len(lengths))) and best.tolist() == [table.span(doc).stop - 1 for doc in docs]


def test_values_of_a_growable_array_are_views_of_its_memory() -> None:
    array = GrowableArray("i4")
    array.extend(range(1000))
    view = array.values
    array.extend([7] * 1000)  # in new memory
    view[0] = 99
    assert array.values[0] == 0 and array.size == 2000 and len(array.buffer) == 2000
    old = array.values
    array.replace([1, 2])
    assert array.values.tolist() == [1, 2] and old[5] == 5


def test_an_erasure_forgets_the_tokens_of_texts() -> None:
    clock, storage = ManualClock(), SQLStorage(SQLiteDatabase(":memory:"))
    with storage.transaction() as tx:
        tx.insert([new_record("the xylophone opens the safe", clock.now(), id="a", session="s")])
    assert "xylophon" in fulltext.text_tokens("the xylophone opens the safe")
    assert fulltext._short_tokens.cache_info().currsize  # what is kept is seen nowhere else
    storage.erase(["a"], "default", clock.now())
    assert not fulltext._short_tokens.cache_info().currsize


def test_a_removed_memory_holds_no_term() -> None:
    index = index_of("the boat is blue", "a boat at sea", "order 4472")
    assert index.holding(["boat"]).tolist() == [0, 1]
    index.remove(1)
    assert index.holding(["boat", "4472"]).tolist() == [0, 2]
    index.remove(2)
    assert index.holding(["boat", "4472"]).tolist() == [0]
