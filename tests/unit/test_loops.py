"Compiled or not, loops give what numpy gives."
import importlib.util
from datetime import UTC, datetime
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rlm.core.compiled import interpreted, load
from rlm.core.text import tokens
from rlm.search.lexical.lexical_index import LexicalIndex
from rlm.search.metadata_table import MetadataTable
from rlm.search.scorer import Scorer
from rlm.search.scoring import EXACT, HEAD_CODES, KERNEL_TOP_K, Candidates, RescorePolicy
from rlm.search.semantic_index import quantize_sample
from rlm.search.vector.quantizer import (
    CODE_DOTS,
    VectorCodes,
    arg_lowest,
    binary_code,
    code_scores,
    encode,
    hamming_distances,
)
from rlm.search.vector.vector_index import VectorIndex
from rlm.search.vector.vector_segments import BaseSegment, IndexState
from rlm.store.protocols import IndexDocument

pytestmark = pytest.mark.skipif(importlib.util.find_spec("numba") is None, reason="numba is not installed, so nothing is compiled")


@pytest.fixture(autouse=True, scope="module")
def compiled() -> None:
    load()


def both(ask: Any) -> tuple[Any, Any]:
    "What it gives compiled, and in numpy."
    with interpreted():
        assert CODE_DOTS.run is None
        plain = ask()
    assert CODE_DOTS.run is not None
    return ask(), plain


def coded(n: int, dim: int, seed: int) -> tuple[VectorCodes, np.ndarray]:
    "Codes of memories of which some have several, some of them gone, and a query."
    rng = np.random.default_rng(seed)
    vectors, query = rng.standard_normal((n, dim), dtype=np.float32), rng.standard_normal(dim, dtype=np.float32)
    rows = encode(np.sort(rng.integers(1, 2 * n + 2, n)), np.zeros(n, np.int32), vectors / np.float32(dim**0.5))
    rows.deleted[:] = rng.random(n) < 0.2
    return rows, query / np.float32(dim**0.5)


@pytest.mark.parametrize("n", [0, 1, 63, 64, 65, 1000])
@pytest.mark.parametrize("dim", [64, 128, 384])
def test_sketches_and_codes_are_compared_alike(n: int, dim: int) -> None:
    rows, query = coded(n, dim, n)
    mine = binary_code(query[None])
    fast, plain = both(lambda: hamming_distances(rows.bit_planes, mine[:, 0]))
    assert fast.dtype == plain.dtype and (fast == plain).all()
    some = np.random.default_rng(1).integers(0, max(1, n), min(n, 70))
    for where in (None, some, some[:0]):
        for part in ("coarse", "residual"):
            a, b = both(lambda: code_scores(rows, part, where, query))  # noqa: B023
            assert a.dtype == b.dtype and a.shape == b.shape and np.abs(a - b).max(initial=0) < 1e-6


def test_an_opposite_sketch_is_called_equal_either_way() -> None:
    rows, _ = coded(40, 64, 2)
    fast, plain = both(lambda: hamming_distances(~rows.bit_planes, rows.bit_planes[:, 3]))
    assert (fast == plain).all() and fast[3] == 0


def test_part_of_an_array_is_as_good_as_a_whole_one() -> None:
    rows, query = coded(300, 384, 3)
    some = rows.take(slice(0, 111))
    mine = binary_code(query[None])[:, 0]
    fast, plain = both(lambda: (hamming_distances(some.bit_planes, mine), code_scores(some, "residual", None, query)))
    assert (fast[0] == plain[0]).all() and np.abs(fast[1] - plain[1]).max() < 1e-6


@settings(deadline=None)
@given(st.lists(st.integers(0, 255), max_size=300), st.integers(1, 80))
def test_the_lowest_are_the_same(values: list[int], n: int) -> None:
    some = np.array(values, np.uint8)
    fast, plain = both(lambda: arg_lowest(some, n, 255))
    assert fast.dtype == plain.dtype and fast.tolist() == plain.tolist()


@pytest.mark.parametrize("top", [3, 255])
def test_the_lowest_of_very_many_are_the_same(top: int) -> None:
    some = np.random.default_rng(top).integers(0, top + 1, 200_000).astype(np.uint8)
    fast, plain = both(lambda: arg_lowest(some, 500, 255))
    assert fast.tolist() == plain.tolist() and len(fast) >= 500


@settings(deadline=None)
@given(st.integers(0, 60), st.integers(0, 60), st.integers(0, 9), st.booleans())
def test_the_rows_of_memories_are_found(n: int, late: int, seed: int, ordered: bool) -> None:
    rows, recent = coded(n, 64, seed)[0], coded(late, 64, seed + 1)[0].take(np.random.default_rng(seed).permutation(late))
    where: dict[int, list[int]] = {}
    for at, seq in enumerate(recent.seq.tolist()):
        where.setdefault(seq, []).append(at)
    state, asked = IndexState(BaseSegment(rows), recent, where, ("", 0)), np.random.default_rng(seed).permutation(130)
    asked = np.sort(asked) if ordered else asked
    every = state.rows_of(asked)
    for part, found, belongs in ((rows, *every[:2]), (recent, *every[2:])):
        assert sorted(found.tolist()) == np.flatnonzero(~part.deleted & np.isin(part.seq, asked)).tolist()
        assert (part.seq[found] == asked[belongs]).all()


def said(n: int, seed: int) -> LexicalIndex:
    "Memories of few words, most of them common, some long; some of them gone."
    rng, index = np.random.default_rng(seed), LexicalIndex()
    for _ in range(n):
        words = [f"w{int(w)}" for w in rng.zipf(1.3, int(rng.choice([3, 12, 200], p=[0.5, 0.45, 0.05]))) % 50]
        index.add(words, {"title": words[:2]})
    for doc in np.flatnonzero(rng.random(n) < 0.1).tolist():
        index.remove(doc)
    return index


@settings(deadline=None, max_examples=40)
@given(st.integers(1, 300), st.integers(0, 9), st.sampled_from([0, 40, 10**6]), st.sampled_from([1, 20, 400]))
def test_words_are_found_alike_however_many_come_too_late(n: int, seed: int, budget: int, wanted: int) -> None:
    index, rng = said(n, seed), np.random.default_rng(seed)
    terms, allowed = [f"w{w}" for w in (1, 2, 3, 7, 20, 49, 99)], rng.random(n) < 0.5
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("rlm.search.lexical.lexical_index.POSTING_BUDGET", budget)
        for barred, also in ((None, []), (allowed, []), (None, np.sort(rng.permutation(n)[:5]))):
            fast, plain = both(lambda: index.search(index.plan(terms), wanted, barred, also))  # noqa: B023
            assert fast.docs.tolist() == plain.docs.tolist() and fast.scores.tolist() == plain.scores.tolist()


def test_of_very_many_the_best_that_pass_are_found() -> None:
    index = LexicalIndex()
    for n in range(40_000):
        index.add(["sea"] * (1 + n % 7) + ["otter"] * (n % 3 == 0), {})
    allowed = np.arange(40_000) % 97 == 0
    with_all, without = index.search(index.plan(["sea", "otter"]), 300), index.search(index.plan(["sea", "otter"]), 300, allowed)
    assert len(with_all.docs) == 300 == len(without.docs) and allowed[without.docs].all()
    every = index.score_all(index.plan(["sea", "otter"]))
    assert np.sort(without.scores).tolist() == np.sort(every[allowed])[-300:].tolist()


def test_order_and_repetition_do_not_matter_to_a_late_term() -> None:
    index = said(200, 3)
    plan, where = index.plan(["w1", "w2", "w30"]), np.array([9, 3, 3, 150, 0, 199, 7, 7], np.int32)
    def late() -> list[float]:
        scores = np.zeros(len(where), np.float32)
        plan.add_scores_at(scores, where)
        return scores.tolist()
    fast, plain = both(late)
    assert fast == plain and any(fast)


def facts(n: int, rng: np.random.Generator) -> MetadataTable:
    "Memories in two scripts, of several conversations or none, by several speakers or nobody."
    made, said = MetadataTable(), ("When was the boat sold?", "지난주에 배를 샀어", "Thanks!", "I saw it yesterday in May", "배가 뭐야")
    made.add([IndexDocument(i + 1, {"text": tokens(said[i % 5])}, said[i % 5], True, datetime(2026, 4 + i % 3, 1, tzinfo=UTC), None,
                    None if rng.random() < 0.2 else f"s{int(rng.integers(4))}", (None, "Mina", "Joon")[int(rng.integers(3))],
                    ("user", None)[int(rng.integers(2))]) for i in range(n)])
    return made


@settings(deadline=None, max_examples=60)
@given(st.integers(1, 400), st.integers(0, 99), st.sampled_from([1, 3, 10, 60, KERNEL_TOP_K + 1, 500]),
       st.sampled_from(["When did Mina buy the boat in May?", "배는 언제 샀어?", "boat"]), st.sampled_from([EXACT, HEAD_CODES]))
def test_the_best_are_the_same_and_in_the_same_order(n: int, seed: int, k: int, question: str, by: RescorePolicy) -> None:
    rng, ranking = np.random.default_rng(seed), Scorer()
    ranking.metadata = facts(n, rng)
    features = ranking.query_features(question)
    numbers = np.sort(rng.permutation(n)[:rng.integers(1, n + 1)])
    words, meaning = ((rng.integers(0, 4, len(numbers)) / 4).astype(np.float32) for _ in range(2))  # many are equal, some are nothing
    true = (rng.integers(0, 4, n + 1) / 4).astype(np.float32)
    some = Candidates(numbers, words, meaning, by)
    fast, plain = both(lambda: [(r.seq, r.score, dict(r.parts)) for r in ranking.rank(features, some, k, lambda s: true[s])])
    assert fast == plain and len(fast) >= min(k, np.count_nonzero((words > 0) | (meaning > 0))) * (by is EXACT)
    assert [score for _, score, _ in fast] == sorted((score for _, score, _ in fast), reverse=True)


@pytest.mark.parametrize("dim", [64, 384, 1536])
@pytest.mark.parametrize("n", [0, 1, 256])
def test_a_sample_measures_the_same(n: int, dim: int) -> None:
    rng = np.random.default_rng(n)
    rows, question = rng.standard_normal((n, dim), np.float32) + np.float32(0.2), rng.standard_normal(dim, np.float32)
    rows, question = rows / np.linalg.norm(rows, axis=1, keepdims=True), question / np.linalg.norm(question)
    for unit in (question, np.zeros(dim, np.float32)):
        fast, plain = both(lambda: quantize_sample(rows).cosine_sums(unit))  # noqa: B023
        cosines = rows.astype(float) @ unit
        assert fast == plain and fast[0] == pytest.approx(cosines.sum(), abs=1e-3 * max(1, n))
        assert fast[1] == pytest.approx(((cosines - cosines.mean()) ** 2).sum() if n else 0, rel=0.01, abs=1e-9)


def test_some_memories_are_scored_alike_wherever_their_rows_are() -> None:
    rng = np.random.default_rng(5)
    index = VectorIndex(64, np.zeros(64, np.float32), background=False)
    seqs = np.sort(rng.integers(1, 900, 1000))
    vectors = rng.standard_normal((1000, 64), np.float32)
    chunks = np.concatenate([np.arange(count) for count in np.unique(seqs, return_counts=True)[1]]).astype(np.int32)
    old = seqs < 700
    index.put(seqs[old], chunks[old], vectors[old])
    index.compact()
    index.put(seqs[~old], chunks[~old], vectors[~old])
    index.remove([3, 4, 5, 710, 711])
    assert len(index.state.recent) and len(index.state.base.codes)
    asked, query = rng.permutation(950), rng.standard_normal(64, np.float32)
    for some in (asked, asked[:256], np.sort(asked[:200]), asked[:1], asked[:0]):
        fast, plain = both(lambda: index.score(query, some))  # noqa: B023
        assert np.allclose(fast, plain, atol=1e-6, equal_nan=True) and np.isnan(fast).tolist() == np.isnan(plain).tolist()
        assert not np.isin(some[~np.isnan(fast)], [3, 4, 5, 710, 711]).any()
