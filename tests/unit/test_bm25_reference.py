"""BM25 of the index in memory against rank-bm25, as an independent reference.

The two agree on what a term's occurrences in a text are worth. Their conventions differ in two places, which are set to ours:
rank-bm25 takes `log((N - n + .5) / (n + .5))` as a term's rarity and lifts what is negative, we add 1 inside (Lucene's form,
never negative); and it measures a text against the mean length of all, we against a usual length. k1 = 1.2, b = .75."""
from collections.abc import Sequence
from random import Random

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from rank_bm25 import BM25Okapi

from rlm.bench.workload import Workload
from rlm.core.text import tokens
from rlm.search.lexical.bm25 import K1, LONG_TEXT, TYPICAL_LENGTHS, B, idf
from rlm.search.lexical.lexical_index import LexicalIndex

WORDS = ["otter", "river", "bakery", "busan", "수달", "강", "빵집", "부산", "a1", "the"]
corpora = st.lists(st.lists(st.sampled_from(WORDS), max_size=LONG_TEXT), min_size=1, max_size=30).filter(any)


def reference(texts: Sequence[Sequence[str]], *queries: Sequence[str]) -> list[np.ndarray]:
    "Scores by rank-bm25, with our rarity and our usual length, for each query."
    bm25, sets = BM25Okapi(texts, k1=K1, b=B), [set(text) for text in texts]
    bm25.avgdl = TYPICAL_LENGTHS["text"]
    bm25.idf = {term: idf(len(texts), sum(term in text for text in sets)) for term in bm25.idf}
    return [np.asarray(bm25.get_scores(list(dict.fromkeys(query)))) for query in queries]


def ours(texts: Sequence[Sequence[str]], *queries: Sequence[str]) -> list[np.ndarray]:
    "The index's scores for each query, 0 for what it does not find."
    index = LexicalIndex()
    for text in texts:
        index.add(text, {})
    return [scored(index, query) for query in queries]


def scored(index: LexicalIndex, query: Sequence[str]) -> np.ndarray:
    "Scores by number, both ways of computing them compared."
    plan = index.plan(query)
    everywhere = index.score_all(plan).astype(float)
    found = index.search(plan, index.docs.size)
    scores = np.zeros(index.docs.size)
    scores[found.docs] = found.scores
    alive = index.docs.alive.values[index.docs.first_passage.values]
    np.testing.assert_allclose(everywhere[alive], scores[alive], rtol=1e-6, atol=1e-6)
    return scores


@settings(max_examples=60)
@given(corpora, st.lists(st.sampled_from([*WORDS, "unheard"]), max_size=6))
def test_random_texts_score_as_rank_bm25_scores_them(texts: list[list[str]], query: list[str]) -> None:
    np.testing.assert_allclose(ours(texts, query), reference(texts, query), rtol=1e-6, atol=1e-6)


def test_a_corpus_in_english_and_korean_scores_as_rank_bm25_scores_it() -> None:
    work = Workload(7)
    texts = [tokens(text)[:LONG_TEXT] for text in work.texts(600)] + [[], ["수달"] * LONG_TEXT, []]
    asked = [tokens(query) for query in work.queries(60)]
    for expected, got in zip(reference(texts, *asked), ours(texts, *asked), strict=True):
        np.testing.assert_allclose(got, expected, rtol=1e-6, atol=1e-6)
        best = np.argsort(-expected, kind="stable")[:10]
        assert np.all(expected[np.argsort(-got, kind="stable")[:10]] >= expected[best[-1]] - 1e-5)


@settings(max_examples=40)
@given(corpora, corpora, st.lists(st.sampled_from(WORDS), min_size=1, max_size=6), st.randoms(use_true_random=False))
def test_an_index_that_grew_and_shrank_scores_as_one_made_today(
        before: list[list[str]], after: list[list[str]], query: list[str], chance: Random) -> None:
    index = LexicalIndex()
    for text in before:
        index.add(text, {})
    index.flush()
    gone = chance.sample(range(len(before)), len(before) // 2)
    for number in gone:
        index.remove(number)
    for text in after:
        index.add(text, {})
        index.flush()
    left = [n for n in range(len(before)) if n not in gone] + [len(before) + n for n in range(len(after))]
    texts = [[*before, *after][n] for n in left]
    np.testing.assert_allclose(scored(index, query)[left], reference(texts, query)[0], rtol=1e-6, atol=1e-6)


def test_the_rarity_is_never_negative_where_that_of_rank_bm25_is_lifted() -> None:
    texts = [["the", "otter"], ["the", "river"], ["the"]]
    assert np.all(ours(texts, ["the"])[0] > 0) and idf(3, 3) > 0
