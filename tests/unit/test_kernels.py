"The kernels of local search, each by itself in plain Python: small inputs whose results can be worked out by hand."
import numpy as np
import pytest

from rlm.core.compiled import Table
from rlm.recall.kernels import (
    ADD_UNREAD,
    COMPARE_VECTORS,
    FIND_POSTINGS,
    HIGHEST_SCORE,
    SAMPLE_THRESHOLD,
    SAMPLED,
    SEGMENT,
    SORT_BY_UNIT,
    SUM_POSTINGS,
    TAKE_OUT_SCORES,
    TOP_UNITS,
    WEIGH_TERMS,
)

NO_MASK = np.zeros(0, bool)


@pytest.fixture
def segments() -> Table:
    "Addresses of two segments: one of two terms with five postings, one without any."
    one = [np.array([0, 2], "i4"), np.array([0, 2, 5]), np.array([0, 2, 0, 1, 2], "i4"), np.array([1, 2, 3, 4, 5], "f4")]
    none = [np.zeros(0, "i4"), np.zeros(1, "i8"), np.zeros(0, "i4"), np.zeros(0, "f4")]
    return Table(f"{SEGMENT} {SEGMENT}", one + none)


def test_known_terms_come_first_and_the_rarest_before_others() -> None:
    rarities, weights, numbers = np.zeros(4), np.zeros(4, "f4"), np.array([2, -1, 0, 1], "i4")
    known, ceiling = WEIGH_TERMS.body(rarities, weights, numbers, np.array([3, 5, 1], "i4"), 10)
    assert known == 3 and numbers[:3].tolist() == [2, 0, 1]
    assert ceiling > rarities[:3].sum() and (np.diff(rarities[:3]) < 0).all()


def test_postings_of_the_rarest_terms_are_read_within_a_budget(segments: Table) -> None:
    numbers, read, (low, high) = np.array([2, 0, 1], "i4"), np.zeros(3, bool), np.zeros((2, 2, 3), "i8")
    assert FIND_POSTINGS.body(low, high, read, numbers, segments.places, 3) == 5
    assert high[0].tolist() == [5, 2, 0] and read.tolist() == [True, False, False]
    FIND_POSTINGS.body(low, high, read, numbers, segments.places, 5)
    assert read.all()


def test_scores_are_summed_taken_out_and_completed(segments: Table) -> None:
    read, weights, (low, high) = np.ones(3, bool), np.array([100, 10, 1], "f4"), np.zeros((2, 2, 3), "i8")
    FIND_POSTINGS.body(low, high, read, np.array([2, 0, 1], "i4"), segments.places, 5)
    slots, touched, scores = np.full(64, 9, "i2"), np.zeros(5, "i4"), np.ones(5, "f4")
    n, bits = SUM_POSTINGS.body(touched, scores, slots, segments.places, low, high, read, weights)
    assert dict(zip(touched[:n].tolist(), scores[:n].tolist(), strict=True)) == {0: 310, 1: 400, 2: 520} and (n, 1 << bits) == (3, 64)

    inside, docs, gone = np.ones(2, "f4"), np.arange(3, dtype="i4"), np.array([0, 88], "i4")
    passing, where = np.array([True, True, False]), np.array([1, 77], "i4")
    assert TAKE_OUT_SCORES.body(inside, scores[:n], slots, bits, where, gone[:0], touched[:n], docs, NO_MASK, passing) == 310
    assert inside.tolist() == [400, 0] and sorted(scores[:n].tolist()) == [0, 0, 310]
    assert TAKE_OUT_SCORES.body(inside[:0], scores[:n], slots, bits, gone[:0], gone, touched[:n], docs, NO_MASK, NO_MASK) == 0

    read[0], late = False, np.zeros(2, "f4")
    assert ADD_UNREAD.body(late, np.array([1, 2], "i4"), segments.places, low, high, read, weights) == 100
    assert late.tolist() == [400, 500]


def test_the_highest_score_is_found_by_its_bits() -> None:
    assert HIGHEST_SCORE.body(np.array([0, 0.25, 1e-40, 3.5, 2], "f4")) == 3.5
    assert HIGHEST_SCORE.body(np.zeros(0, "f4")) == 0


def test_a_memory_is_as_near_as_its_best_vector() -> None:
    meaning = np.zeros(3, "f4")
    COMPARE_VECTORS.body(meaning, np.eye(3, dtype="f4"), np.array([0, 2, 2], "i4"), np.array([0.1, 0.9, 0.5], "f4"), 0.1, 0.2)
    assert meaning.round(5).tolist() == [0, 0, 4]


@pytest.mark.parametrize("few", [False, True], ids=["all above zero", "those above zero beside the sample"])
@pytest.mark.parametrize("n", [0, 3, 51, 1000, 3000])
def test_the_best_units_are_those_of_a_sort(n: int, few: bool) -> None:
    outside = np.random.default_rng(n).permutation(n).astype("f4")
    if few:
        outside[np.arange(n) % SAMPLED != 1] = 0
    units, scores = np.zeros(51, "i4"), np.zeros(51, "f4")
    found = TOP_UNITS.body(units, scores, np.arange(n, dtype="i4"), outside)
    assert sorted(scores[:found].tolist()) == np.sort(outside[outside > 0])[-51:].tolist()
    SORT_BY_UNIT.body(units[:found], scores[:found])
    assert (np.diff(units[:found]) > 0).all() and (outside[units[:found]] == scores[:found]).all()


def test_the_lowest_of_the_best_units_stands_in_front() -> None:
    units, scores = np.zeros(2, "i4"), np.zeros(2, "f4")
    assert TOP_UNITS.body(units, scores, np.array([3, 9, 7, 1], "i4"), np.array([1, 5, 0, 2], "f4")) == 2
    assert (units.tolist(), scores.tolist()) == ([1, 9], [2, 5])


def test_the_threshold_is_exceeded_by_more_than_are_wanted() -> None:
    assert SAMPLE_THRESHOLD.body(np.arange(1600, dtype="f4"), 50) == 1600 - 7 * 16
