"The vector index finds what is nearest, whatever is written meanwhile, and its file is believed only when it fits."
import gzip
import json
import os
import struct
import subprocess
import sys
import textwrap
import threading
import zlib
from collections import Counter
from collections.abc import Collection, Iterator
from contextlib import suppress
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rlm.core.errors import InvalidInput
from rlm.search.vector import vector_segments
from rlm.search.vector.quantizer import (
    Ints,
    arg_highest,
    arg_lowest,
    binary_code,
    center,
    decode,
    encode,
    half_to_float,
    hamming_distances,
    principal_axes,
    rotate_codes,
    synthetic_vectors,
)
from rlm.search.vector.vector_file import (
    StaleIndexFile,
    VectorFileStamp,
    catch_up,
    index_sections,
    load_index,
    open_index,
    save_index,
    vector_file_path,
)
from rlm.search.vector.vector_index import VectorIndex
from rlm.search.vector.vector_segments import Batch, VectorIndexConfig, rows_holding
from rlm.store.erasure import FillFile

DIM = 192
MEAN = np.full(DIM, 0.1, np.float32)
SMALL = VectorIndexConfig(binary_from=600, coarse=200, coarse_share=0.2, residual=64, rescored=10, axes_from=128, compact_from=100)


class Truth:
    "Vectors as a database would hold them, with a diary."

    def __init__(self, dim: int = DIM) -> None:
        self.dim, self.id = dim, "store"
        self.rows: dict[int, list[np.ndarray]] = {}
        self.events: list[int] = []
        self.asked, self.forgets = 0, False

    def write(self, seq: int, *vectors: np.ndarray) -> None:
        self.rows[seq] = [v.astype(np.float16) for v in vectors]
        self.events.append(seq)

    def delete(self, seq: int) -> None:
        self.rows.pop(seq, None)
        self.events.append(seq)

    def position(self) -> tuple[str, int]:
        return self.id, len(self.events)

    def batches(self, size: int = 100) -> Iterator[Batch]:
        self.asked += 1
        seqs = sorted(self.rows)
        for i in range(0, len(seqs), size):
            yield self.vectors_of(seqs[i:i + size])

    def changed(self, after: int) -> Collection[int] | None:
        return None if self.forgets else set(self.events[after:])

    def vectors_of(self, seqs: Collection[int]) -> Batch:
        found = [(s, c, v) for s in sorted(seqs) for c, v in enumerate(self.rows.get(s, ()))]
        return (np.array([f[0] for f in found], np.int64), np.array([f[1] for f in found], np.int32),
                np.array([f[2] for f in found], np.float16).reshape(-1, self.dim))

    def fetch(self, seqs: Ints, chunks: Any) -> np.ndarray:
        gone = np.full(self.dim, np.nan, np.float16)
        return np.array([rows[c] if c < len(rows := self.rows.get(s, [])) else gone
                         for s, c in zip(seqs.tolist(), chunks.tolist(), strict=True)], np.float16).reshape(-1, self.dim)

    def nearest(self, query: np.ndarray, k: int, allowed: Collection[int] | None = None) -> tuple[list[int], np.ndarray]:
        "By hand: every vector against the query, the best chunk of each memory, ties by number."
        seqs, _, vectors = self.vectors_of([s for s in self.rows if allowed is None or s in allowed])
        scores = center(vectors, MEAN) @ center(query[None], MEAN)[0]
        top: dict[int, float] = {}
        for s, value in zip(seqs.tolist(), scores.tolist(), strict=True):
            top[s] = max(top.get(s, -2), value)
        order = sorted(top, key=lambda s: (-top[s], s))[:k]
        return order, np.array([top[s] for s in order], np.float32)


@cache
def draw(n: int, seed: int = 0, questions: int = 20) -> tuple[np.ndarray, np.ndarray]:
    vectors, queries = synthetic_vectors(n, questions, dim=DIM, seed=seed)
    return vectors + MEAN, queries + MEAN


def filled(n: int, chunks: int = 1, seed: int = 0) -> tuple[Truth, np.ndarray]:
    vectors, queries = draw(n * chunks, seed)
    truth = Truth()
    for i in range(n):
        truth.write(3 * i + 1, *vectors[i * chunks:(i + 1) * chunks])
    return truth, queries


def opened(truth: Truth, path: Path | None = None, config: VectorIndexConfig = SMALL, keep: bool = True, **how: Any) -> VectorIndex:
    "An index of the truth, kept in its file as a store would keep it."
    index, read = open_index(truth, "default", "e5", MEAN, path, config, **{"background": False, **how})
    if path is not None and keep and read == len(index):
        with suppress(OSError):
            save_index(index, path, "default", "e5")
    return index


def agree(index: VectorIndex, truth: Truth, queries: np.ndarray, k: int = 10, allowed: Any = None, **how: Any) -> None:
    "The index answers as the count by hand does."
    given = np.asarray(allowed if isinstance(allowed, np.ndarray) else list(allowed or ()))
    only = None if allowed is None else {*(np.flatnonzero(given) if given.dtype == np.bool_ else given).tolist()}
    for query in queries:
        seqs, scores = index.search(query, k, allowed, **how)
        expected, values = truth.nearest(query, k, only)
        np.testing.assert_allclose(scores, values, atol=2e-6)
        assert seqs.tolist() == expected or (len(seqs) == len(expected) and (np.abs(np.diff(values)) < 2e-6).any())


# ---------------------------------------------------------------- codes


def test_halves_are_widened_as_numpy_does() -> None:
    every = np.arange(65536, dtype=np.uint16).view(np.float16)
    finite = every[np.isfinite(every)]
    assert np.array_equal(half_to_float(finite).view(np.uint32), finite.astype(np.float32).view(np.uint32))
    assert np.array_equal(half_to_float(every), every.astype(np.float32), equal_nan=True)
    assert half_to_float(np.zeros((0, 4), np.float16)).shape == (0, 4)


def test_codes_are_within_half_a_step_and_turning_changes_no_cosine() -> None:
    vectors = center(draw(500)[0], MEAN)
    axes = principal_axes(vectors)
    np.testing.assert_allclose(axes.T @ axes, np.eye(DIM), atol=1e-5)
    rows = encode(np.arange(500), np.zeros(500, np.int32), vectors @ axes)
    assert np.abs(decode(rows) - vectors @ axes).max() <= rows.scale.max() / 2 + 1e-6
    again = rotate_codes(rows, axes.T)
    assert np.abs(decode(again) @ vectors[0] - vectors @ vectors[0]).max() < 0.01
    lengths = ((vectors @ axes) ** 2).mean(axis=0)
    assert (np.diff(lengths) <= 1e-6).all(), "variances fall"


def test_a_vector_at_the_mean_scores_zero() -> None:
    assert not center(MEAN[None], MEAN).any()
    rows = encode(np.array([1]), np.zeros(1, np.int32), np.zeros((1, DIM), np.float32))
    assert not decode(rows).any()


@given(st.lists(st.floats(-1, 1, width=32) | st.just(float("-inf")), max_size=60), st.integers(1, 80))
def test_the_best_are_all_there(values: list[float], n: int) -> None:
    scores = np.array(values, np.float32)
    found = arg_highest(scores, n)
    possible = sorted((v for v in values if v > float("-inf")), reverse=True)
    assert sorted(scores[found].tolist(), reverse=True)[:n] == [np.float32(v) for v in possible[:n]]
    assert (np.diff(found) > 0).all()


@pytest.mark.parametrize("flat", [False, True])
def test_the_best_of_very_many(flat: bool) -> None:
    scores = np.random.default_rng(0).standard_normal(200_000).astype(np.float32)
    if flat:
        scores[:] = 0.5
        scores[::7] = -np.inf
    found = arg_highest(scores, 100)
    assert np.sort(scores[found])[-100:].tolist() == np.sort(scores)[-100:].tolist()


@pytest.mark.parametrize("n", [10, 1000, 40_000, 200_000])
def test_the_fewest_bits(n: int) -> None:
    bits = np.random.default_rng(0).integers(0, 256, n).astype(np.uint8)
    for k in (1, 5, 100, 5000, n):
        found = arg_lowest(bits, k, 255)
        assert np.array_equal(np.sort(bits[found])[:k], np.sort(bits[bits < 255])[:k])
    bits[:] = 255
    bits[:2] = 9
    assert arg_lowest(bits, 5, 255).tolist() == [0, 1]


def test_bits_are_counted() -> None:
    rng = np.random.default_rng(0)
    for n in (0, 1, 100, 40_000):
        planes = rng.integers(0, 2**64, (4, n), dtype=np.uint64)
        mine = rng.integers(0, 2**64, 4, dtype=np.uint64)
        expected = [sum((int(w) ^ int(m)).bit_count() for w, m in zip(column, mine, strict=True)) for column in planes.T[:200]]
        assert hamming_distances(planes, mine)[:200].tolist() == expected


def test_binary_codes_of_near_vectors_differ_little() -> None:
    vectors = center(draw(600)[0], MEAN)
    planes = binary_code(vectors)
    bits = hamming_distances(planes, planes[:, 5])
    assert bits[5] == 0
    angle = np.arccos(np.clip(vectors @ vectors[5], -1, 1))
    assert np.corrcoef(angle, bits)[0, 1] > 0.8
    assert binary_code(vectors[5:6])[:, 0].tolist() == planes[:, 5].tolist()
    assert zlib.crc32(binary_code(np.eye(256, dtype=np.float32) + np.float32(1e-3)).tobytes()) == 103442346, "the same on every machine"


# ---------------------------------------------------------------- searching


@pytest.mark.parametrize("n", [1, 9, 100, 500, 1500])
@pytest.mark.parametrize("chunks", [1, 3])
def test_an_exact_search_is_the_count_by_hand(n: int, chunks: int) -> None:
    truth, queries = filled(n, chunks)
    index = opened(truth)
    assert len(index) == n * chunks
    agree(index, truth, queries, exact=True)
    agree(index, truth, queries[:3], k=n + 5, exact=True)


def test_defaults_are_exact_while_there_are_few() -> None:
    truth, queries = filled(2000)
    agree(opened(truth, config=VectorIndexConfig()), truth, queries)


def test_short_cuts_miss_little() -> None:
    vectors, queries = synthetic_vectors(6000, 60)
    mean = np.zeros(384, np.float32)
    index = VectorIndex(384, mean, None, VectorIndexConfig(binary_from=4000, coarse=1000, residual=300))
    index.build(lambda: [(np.arange(6000), np.zeros(6000, np.int32), vectors)])
    seen = [len({*index.search(q, 10)[0]} & {*index.search(q, 10, exact=True)[0]}) for q in queries]
    assert np.mean(seen) >= 9.8


def test_codes_alone_are_near_the_truth() -> None:
    truth, queries = filled(400, 2)
    index = VectorIndex(DIM, MEAN, None, SMALL)
    index.build(truth.batches)
    for query in queries:
        seqs, scores = index.search(query, 400, exact=True)
        assert np.abs(scores - truth.nearest(query, 400)[1]).max() < 0.01
        np.testing.assert_allclose(index.score(query, seqs), scores, atol=1e-5)


def test_scores_for_given_memories() -> None:
    truth, queries = filled(300, 2)
    index = opened(truth)
    truth.write(2, truth.rows[1][0])
    catch_up(index, truth)
    wanted = np.array([4, 999_999, 2, 1, 0, -5, 4])
    scores = index.score(queries[0], wanted)
    known = dict(zip(*(x.tolist() for x in index.search(queries[0], 400, exact=True)), strict=True))
    assert np.isnan(scores[[1, 4, 5]]).all() and abs(scores[0] - scores[6]) < 1e-6
    assert all(abs(scores[i] - known[int(wanted[i])]) < 0.01 for i in (0, 2, 3))
    assert len(index.score(queries[0], [])) == 0


@pytest.mark.parametrize("n", [500, 5000])
def test_filters_come_before_ranking(n: int) -> None:
    truth, queries = filled(n)
    index = opened(truth)
    rng = np.random.default_rng(1)
    every = np.array(sorted(truth.rows))
    for size in (1, 5, 30, n // 4, n // 2, n):
        some = rng.choice(every, size, replace=False)
        mask = np.zeros(every.max() + 1, bool)
        mask[some] = True
        for allowed in (some, np.sort(some), set(some.tolist()), mask, mask[: some.max() + 1], np.append(mask, [True] * 9)):
            seqs, _ = index.search(queries[0], 10, allowed)
            assert len(seqs) == min(10, size) and {*seqs.tolist()} <= {*some.tolist()}
        agree(index, truth, queries[:3], allowed=some, exact=True)
        agree(index, truth, queries[:3], allowed=mask, exact=True)
    for nothing in ([], np.zeros(0, np.int64), np.zeros(4, bool), {2, 5}, np.array([-1, 10**12])):
        assert len(index.search(queries[0], 10, nothing)[0]) == 0


def test_a_large_filter_by_number_is_a_mask() -> None:
    truth, queries = filled(5000)
    index = opened(truth, config=SMALL)
    some = np.array(sorted(truth.rows))[::2]
    agree(index, truth, queries[:5], allowed=some, exact=True)


def test_all_chunks_of_one_memory_on_top_do_not_hide_the_others() -> None:
    truth, queries = filled(300)
    truth.write(2000, *[queries[0] + i * 1e-3 for i in range(200)])
    index = opened(truth, config=replace(SMALL, residual=16))
    seqs, scores = index.search(queries[0], 10)
    assert seqs[0] == 2000 and len(set(seqs.tolist())) == 10 and (np.diff(scores) <= 0).all()
    agree(index, truth, queries[:1], exact=True)


def test_ties_go_to_the_first_memory() -> None:
    truth, queries = filled(50)
    for seq in (700, 500, 600):
        truth.write(seq, queries[0])
    index = opened(truth)
    assert index.search(queries[0], 3)[0].tolist() == [500, 600, 700]
    truth.write(499, queries[0])
    catch_up(index, truth)
    assert index.search(queries[0], 3)[0].tolist() == [499, 500, 600]


def test_the_same_input_gives_the_same_index() -> None:
    truth, queries = filled(900, 2)
    one, two = opened(truth), opened(truth)
    for name, array in index_sections(one.state).items():
        assert np.array_equal(array, index_sections(two.state)[name]), name
    assert [one.search(q, 10)[0].tolist() for q in queries] == [two.search(q, 10)[0].tolist() for q in queries]


def test_an_empty_index_finds_nothing() -> None:
    truth = Truth()
    index = opened(truth)
    query = np.ones(DIM, np.float32)
    assert len(index) == 0 and len(index.search(query, 10)[0]) == 0 and np.isnan(index.score(query, [1])).all()
    index.compact()
    index.remove([1, 2])
    truth.write(1, query)
    catch_up(index, truth)
    assert index.search(query, 10)[0].tolist() == [1]


def test_wrong_questions_are_refused() -> None:
    index = opened(filled(10)[0])
    for wrong in (np.ones(DIM + 1), np.ones((1, DIM)), np.full(DIM, np.nan)):
        with pytest.raises(InvalidInput):
            index.search(wrong, 10)
    with pytest.raises(InvalidInput):
        index.search(np.ones(DIM), 0)
    with pytest.raises(InvalidInput):
        index.put(np.array([1]), np.array([0], np.int32), np.ones((1, DIM - 1)))
    with pytest.raises(InvalidInput):
        VectorIndex(DIM, np.zeros(3, np.float32))


@pytest.mark.parametrize("n", [0, 1, 3])
def test_the_first_of_several(n: int) -> None:
    assert rows_holding(np.array([5, 5, 4, 5, 3]), 3) == 5
    assert rows_holding(np.array([5, 5, 4, 5, 3]), 4) is None
    assert rows_holding(np.array([7] * n), 1) == (1 if n else None)


# ---------------------------------------------------------------- writing


@settings(max_examples=10)
@given(st.lists(st.tuples(st.sampled_from("wwwwdf"), st.integers(0, 400), st.integers(1, 3)), max_size=60), st.integers(0, 5))
def test_after_any_writes_the_answers_are_those_of_the_rows(steps: list[tuple[str, int, int]], seed: int) -> None:
    truth, queries = filled(120, seed=seed)
    index, vectors = opened(truth), draw(200, seed=9)[0]
    for i, (what, seq, chunks) in enumerate(steps):
        if what == "w":
            truth.write(seq, *vectors[3 * i:3 * i + chunks])
        elif what == "d":
            truth.delete(seq)
        else:
            index.compact()
        if i % 3 == 0:
            catch_up(index, truth)
    catch_up(index, truth)
    assert len(index) == sum(map(len, truth.rows.values()))
    agree(index, truth, queries[:4], exact=True)
    index.compact()
    assert len(index.state.recent) == 0 and not index.state.base.codes.deleted.any()
    agree(index, truth, queries[:4], exact=True)


def test_it_grows_from_nothing() -> None:
    vectors, queries = draw(3000)
    truth = Truth()
    index = VectorIndex(DIM, MEAN, truth.fetch, SMALL, background=False)
    for i in range(0, 3000, 30):
        for j in range(i, i + 30):
            truth.write(j, vectors[j])
        index.put(*truth.vectors_of(range(i, i + 30)))
    state = index.state
    assert state.base.axes is not None and len(index) == 3000
    assert len(state.recent) < len(state.base.codes) / 8 + 30
    agree(index, truth, queries, exact=True)
    seen = [len({*index.search(q, 10)[0].tolist()} & {*truth.nearest(q, 10)[0]}) for q in queries]
    assert np.mean(seen) >= 9


def test_what_the_database_no_longer_has_is_no_answer() -> None:
    truth, queries = filled(200)
    index = opened(truth)
    index.search(queries[0], 10)  # their true vectors are known now, but the hearing of a write ends that
    first = truth.nearest(queries[0], 60)[0]
    for seq in first[:50]:
        del truth.rows[seq]
    index.remove(first[:1])
    index.restore(index.state.base, index.state.recent, ("", 0))
    assert index.search(queries[0], 10)[0].tolist() == first[50:]


def test_true_vectors_are_kept_until_they_change() -> None:
    truth, queries = filled(300)
    index, asked = opened(truth), list[int]()
    fetch = truth.fetch

    def counted(seqs: Ints, chunks: Any) -> np.ndarray:
        asked.append(len(seqs))
        return fetch(seqs, chunks)

    index = VectorIndex(DIM, MEAN, counted, replace(SMALL, cached=50))
    index.build(truth.batches, truth.position())
    first = index.search(queries[0], 10)
    assert asked == [20] and np.array_equal(index.search(queries[0], 10)[1], first[1]) and asked == [20]
    truth.write(int(first[0][0]), queries[0])
    catch_up(index, truth)
    agree(index, truth, queries[:1])
    assert sum(asked) <= 22
    for query in queries:
        index.search(query, 10)
    assert index.cache is not None and len(index.cache) <= 50
    agree(index, truth, queries, exact=True)


def test_a_fetch_that_overlaps_with_a_write_is_not_kept() -> None:
    truth, queries = filled(100)
    fetch = truth.fetch

    def overtaken(seqs: Ints, chunks: Any) -> np.ndarray:
        found = fetch(seqs, chunks)
        if not truth.forgets:
            truth.forgets = True
            truth.write(first, -queries[0])
            index.put(*truth.vectors_of([first]))
        return found

    index = VectorIndex(DIM, MEAN, overtaken, SMALL)
    index.build(truth.batches)
    first = truth.nearest(queries[0], 1)[0][0]
    index.search(queries[0], 10)
    assert first not in index.search(queries[0], 10)[0]
    agree(index, truth, queries, exact=True)


def test_searches_beside_writes_and_compactions() -> None:
    truth, queries = filled(1500)
    index = opened(truth, background=True)
    always = sorted(truth.nearest(queries[0], 5)[0])
    vectors, stop, wrong = draw(4000, seed=4)[0], threading.Event(), list[str]()

    def search() -> None:
        while not stop.is_set():
            seqs, scores = index.search(queries[0], 5, exact=True)
            if not {*always} >= {*seqs.tolist()} or len(seqs) != 5 or (np.diff(scores) > 0).any():
                wrong.append(f"{seqs} {scores}")
            known = index.score(queries[0], always)
            if np.isnan(known).any():
                wrong.append(f"lost {known}")

    threads = [threading.Thread(target=search) for _ in range(3)]
    for thread in threads:
        thread.start()
    others = [s for s in truth.rows if s not in always]
    for i in range(120):
        far = np.repeat((2 * MEAN - queries[0])[None], 20, axis=0) + 0.3 * vectors[20 * i % 3000:20 * i % 3000 + 20]
        seqs = np.array(others[20 * i % 1400:20 * i % 1400 + 20])
        truth.rows.update({int(s): [v.astype(np.float16)] for s, v in zip(seqs, far, strict=False)})  # the store is written first
        index.put(seqs, np.zeros(len(seqs), np.int32), far[:len(seqs)].astype(np.float16))
        index.put(np.array(always), np.zeros(5, np.int32), truth.vectors_of(always)[2])  # an update that changes nothing
    stop.set()
    for thread in threads:
        thread.join()
    index.close()
    assert not wrong, wrong[:3]
    agree(index, truth, queries, exact=True)


def test_writes_during_a_compaction_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    truth, queries = filled(700)
    index, make = opened(truth), vector_segments.compact_codes
    truth.write(2, queries[0])
    catch_up(index, truth)

    def slow(*given: Any) -> Any:
        made = make(*given)
        truth.write(5, queries[1])                  # new
        truth.write(4, queries[2])                  # in the base
        truth.write(2, queries[3])                  # among the rows that are being compacted
        truth.delete(7)
        catch_up(index, truth)
        return made

    monkeypatch.setattr(vector_segments, "compact_codes", slow)
    index.compact()
    monkeypatch.undo()
    assert len(index) == sum(map(len, truth.rows.values()))
    agree(index, truth, queries, exact=True)
    index.compact()
    agree(index, truth, queries, exact=True)


def test_a_byte_a_dimension_and_little_more() -> None:
    vectors = np.random.default_rng(0).standard_normal((2000, 384)).astype(np.float16)
    index = VectorIndex(384, np.zeros(384, np.float32))
    index.build(lambda: [(np.arange(2000), np.zeros(2000, np.int32), vectors)])
    size = sum(a.nbytes for a in index_sections(index.state).values())
    assert size / 2000 < 384 + 32 + 30


# ---------------------------------------------------------------- the file


@pytest.fixture
def side(tmp_path: Path) -> Path:
    return vector_file_path(tmp_path / "memory.db", "default", "e5")


def test_what_is_saved_is_what_is_loaded(side: Path) -> None:
    truth, queries = filled(800, 2)
    first = opened(truth, side)
    assert side.exists() and truth.asked == 2 and [p.name for p in side.parent.iterdir()] == [side.name]
    before = [first.search(q, 10) for q in queries]
    second = opened(truth, side)
    assert truth.asked == 2, "it was not made anew"
    for (seqs, scores), query in zip(before, queries, strict=True):
        again = second.search(query, 10)
        assert np.array_equal(seqs, again[0]) and np.array_equal(scores, again[1])
    agree(second, truth, queries, exact=True)
    assert side.stat().st_mode & 0o77 == 0 and side.parent.stat().st_mode & 0o77 == 0


def test_a_file_of_the_first_version_is_read_and_written_alike(side: Path) -> None:
    "Forty vectors of 24 dimensions; then memories 2 and 41 were written with the vectors of 6 and 7, and 9 was removed."
    rng, data = np.random.default_rng(0), gzip.decompress((Path(__file__).parents[1] / "data" / "vectors_v1.vectors.gz").read_bytes())
    vectors, mean = rng.standard_normal((40, 24)).astype(np.float16), np.full(24, 0.1, np.float32)
    side.parent.mkdir()
    side.write_bytes(data)
    base, recent, event = load_index(side, VectorFileStamp.of(("a store", 40), "default", "toy", mean))
    index = VectorIndex(24, mean, None, SMALL, background=False)
    index.restore(base, recent, ("a store", event))
    assert len(index) == 40 and event == 40 and index.seqs().tolist() == [s for s in range(1, 42) if s != 9]
    for seq, row in ((1, 0), (2, 5), (6, 5), (40, 39), (41, 6)):
        assert index.score(vectors[row].astype(np.float32), [seq])[0] > 0.99
    assert save_index(index, side, "default", "toy") and side.read_bytes() == data


def test_recent_rows_and_gone_ones_are_saved_too(side: Path) -> None:
    truth, queries = filled(700)
    index = opened(truth, side, replace(SMALL, compact_from=10**6))
    truth.write(1, queries[0])
    truth.write(5000, queries[1], queries[2])
    truth.delete(4)
    catch_up(index, truth)
    assert len(index.state.recent) == 3
    save_index(index, side, "default", "e5")
    again = opened(truth, side)
    assert truth.asked == 2 and len(again) == len(index) == 701
    agree(again, truth, queries, exact=True)


def test_a_file_that_is_behind_catches_up(side: Path) -> None:
    truth, queries = filled(700)
    opened(truth, side)
    vectors = draw(300, seed=3)[0]
    for i in range(150):
        truth.write(10_000 + i, vectors[i])
        truth.write(3 * i + 1, vectors[i + 150])
    for seq in (700, 703, 10_003):
        truth.delete(seq)
    index = opened(truth, side)
    assert truth.asked == 2 and index.state.position == truth.position()
    agree(index, truth, queries, exact=True)
    assert catch_up(index, truth).seqs == frozenset()


def test_two_indexes_on_one_store_see_each_others_writes(side: Path) -> None:
    truth, queries = filled(300)
    one, two = opened(truth, side), opened(truth, side)
    truth.write(9000, queries[0])
    assert catch_up(one, truth).seqs == catch_up(two, truth).seqs == {9000}
    for index in (one, two):
        assert index.search(queries[0], 1)[0].tolist() == [9000]
    save_index(one, side, "default", "e5")
    assert two.search(queries[0], 1)[0].tolist() == [9000], "the old file is still mapped"


def test_a_source_that_can_not_tell_what_changed_is_read_anew() -> None:
    truth, queries = filled(300)
    index = opened(truth)
    truth.delete(1)
    truth.forgets = True
    catch_up(index, truth)
    assert len(index) == 299
    agree(index, truth, queries, exact=True)


def resigned(data: bytes, **changed: Any) -> bytes:
    "The file with another header, and a right checksum for it."
    magic, length, _ = struct.unpack_from("<8sII", data)
    text = json.dumps({**json.loads(data[16:16 + length]), **changed}).encode()
    start = struct.pack("<8sII", magic, len(text), zlib.crc32(text)) + text
    return start + bytes(-len(start) % 64) + data[-(-(16 + length) // 64) * 64:]


@pytest.fixture(scope="module")
def good(tmp_path_factory: pytest.TempPathFactory) -> tuple[Truth, np.ndarray, bytes]:
    truth, queries = filled(650)
    path = tmp_path_factory.mktemp("good") / "x.vectors"
    opened(truth, path)
    return truth, queries, path.read_bytes()


HEADER = {"database": ["other", None, 5], "event": [10**9, -1, "1", None], "namespace": ["work"], "model": ["minilm"],
          "dim": [191, 0, "192"], "mean": [0], "learned": [None, [], "x"], "size": [0, 10**9, -64, "x"],
          "sections": [{}, None, [], {"base.seq": [0, "<i8", [650], 0]}]}


@pytest.mark.parametrize(("field", "value"), [(f, v) for f, many in HEADER.items() for v in many])
def test_a_foreign_or_senseless_header_is_refused(side: Path, good: Any, field: str, value: Any) -> None:
    truth, queries, data = good
    side.parent.mkdir()
    side.write_bytes(resigned(data, **{field: value}))
    with pytest.raises(StaleIndexFile):
        load_index(side, VectorFileStamp.of(truth.position(), "default", "e5", MEAN))
    asked = truth.asked
    index = opened(truth, side)
    assert truth.asked == asked + 2, "made anew"
    agree(index, truth, queries[:2], exact=True)
    assert opened(truth, side) and truth.asked == asked + 2, "and well this time"


def test_every_section_of_the_header_matters(side: Path, good: Any) -> None:
    truth, _, data = good
    side.parent.mkdir()
    sections = json.loads(data[16:16 + struct.unpack_from("<8sII", data)[1]])["sections"]
    wanted = VectorFileStamp.of(truth.position(), "default", "e5", MEAN)
    side.write_bytes(resigned(data))
    load_index(side, wanted)
    for name, (at, kind, shape, crc) in sections.items():
        wrongs = [[at, "<f8", shape, crc], [at, "O", shape, crc], [at, "x", shape, crc], [at, kind, [*shape, 2], crc], [at, kind, [], crc],
                  [at, kind, "x", crc], [at, kind, shape, crc ^ 1], [at, kind, shape, None], [-1 << 40, kind, shape, crc],
                  [1 << 60, kind, shape, crc], ["x", kind, shape, crc], [], None]
        if not name.startswith("recent") and name not in ("base.chunk", "base.gone"):  # nothing, or zeros wherever one reads them
            wrongs.append([at + 64, kind, shape, crc])
        for wrong in wrongs:
            side.write_bytes(resigned(data, sections={**sections, name: wrong}))
            with pytest.raises(StaleIndexFile):
                pytest.fail(f"{name} may be {wrong}: {load_index(side, wanted)}")


def test_random_damage_is_noticed(side: Path, good: Any) -> None:
    truth, _, data = good
    side.parent.mkdir()
    length = struct.unpack_from("<8sII", data)[1]
    sections = json.loads(data[16:16 + length])["sections"]
    start = -(-(16 + length) // 64) * 64
    used = [(start + at, int(np.prod(shape)) * np.dtype(kind).itemsize) for at, kind, shape, _ in sections.values()]
    rng, wanted = np.random.default_rng(0), VectorFileStamp.of(truth.position(), "default", "e5", MEAN)
    places = [int(a + rng.integers(0, n)) for a, n in used if n for _ in range(6)] + [int(rng.integers(0, 16 + length)) for _ in range(60)]
    for place in places:
        wrong = bytearray(data)
        wrong[place] ^= 1 << int(rng.integers(0, 8))
        side.write_bytes(wrong)
        with pytest.raises(StaleIndexFile):
            load_index(side, wanted)
    for size in (0, 1, 15, 16, 100, start, len(data) // 2, len(data) - 1):
        side.write_bytes(data[:size])
        with pytest.raises(StaleIndexFile):
            load_index(side, wanted)
    side.write_bytes(data + b"x")
    with pytest.raises(StaleIndexFile):
        load_index(side, wanted)
    side.unlink()
    side.mkdir()
    with pytest.raises(StaleIndexFile):
        load_index(side, wanted)


def test_a_folder_that_can_not_be_written_is_no_hindrance(tmp_path: Path) -> None:
    truth, queries = filled(200)
    (tmp_path / "memory.db.index").write_text("in the way")
    agree(opened(truth, tmp_path / "memory.db.index" / "x.vectors"), truth, queries[:3], exact=True)


def test_a_refused_file_is_not_there(side: Path) -> None:
    index = opened(filled(200)[0], side, keep=False)
    asked: list[tuple[str, int]] = []

    def write(path: Path, event: int, fill: FillFile) -> bool:
        asked.append((path.name, event))
        return False

    assert not save_index(index, side, "default", "e5", write)
    assert asked == [(side.name, index.state.position[1])] and not side.exists()


KILLED = """
import os, random, signal, sys, time
from pathlib import Path
sys.path[:0] = sys.argv[2:3]
from test_vector_index import MEAN, agree, catch_up, filled, opened, save_index
path, random = Path(sys.argv[1]), random.Random(0)
truth, queries = filled(3000)
opened(truth, path)
rebuilt = unfinished = 0
round = 0
while round < 20 or not unfinished and round < 200:  # on a busy machine a child may be killed before it has begun
    round += 1
    child = os.fork()
    if not child:
        index = opened(truth, path)
        while True:
            save_index(index, path, "default", "e5")
    time.sleep(random.uniform(0.005, 0.06))
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    unfinished += any(p.suffix == ".part" for p in path.parent.iterdir())
    asked = truth.asked
    index = opened(truth, path)
    rebuilt += truth.asked != asked
    agree(index, truth, queries[:2], exact=True)
save_index(index, path, "default", "e5")
print(rebuilt, unfinished, [p.name for p in path.parent.iterdir()] == [path.name])
"""


def test_a_killed_writer_harms_nothing(side: Path) -> None:
    run = subprocess.run([sys.executable, "-c", textwrap.dedent(KILLED), str(side), str(Path(__file__).parent)],
                         capture_output=True, text=True, timeout=240, check=False)
    assert run.returncode == 0, run.stderr
    rebuilt, unfinished, clean = run.stdout.split()
    assert rebuilt == "0" and int(unfinished) > 0 and clean == "True"


def test_names_of_any_kind_have_a_file_each(tmp_path: Path) -> None:
    names = ["default", "a/b", "..", "가족", "A", "a", "x" * 500]
    paths = {vector_file_path(tmp_path / "m.db", n, m) for n in names for m in ("e5", "minilm")}
    assert len(paths) == 2 * len(names) and all(p.parent == tmp_path / "m.db.index" and len(p.name) < 60 for p in paths)
    assert os.sep not in vector_file_path("m.db", "a/b", "x").name


@pytest.mark.parametrize("n", [300, 3000])
def test_candidates_hold_the_nearest_and_nobody_who_is_barred(n: int) -> None:
    truth, queries = filled(n, chunks=2)
    index, allowed, held = opened(truth), {s for s in truth.rows if s % 2}, list[float]()
    for query in queries:
        near, some = index.candidates(query, 200), index.candidates(query, 200, allowed)
        assert len(near) <= (220 if n == 3000 else 2 * n) and max(Counter(near.tolist()).values()) <= 2  # as often as it has vectors
        assert {*near.tolist()} <= {*truth.rows} and {*some.tolist()} <= allowed
        held += [len({*truth.nearest(query, 10)[0]} & {*near.tolist()}), len({*truth.nearest(query, 10, allowed)[0]} & {*some.tolist()})]
    assert np.mean(held) >= (10 if n == 300 else 9.5), held
    assert opened(Truth()).candidates(queries[0], 5).tolist() == []
