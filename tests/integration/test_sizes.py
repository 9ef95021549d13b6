"A store that has outgrown one way of searching is searched another way, and the answers stay what they were."

from collections.abc import Iterator

import numpy as np
import pytest

from rlm import Memory
from rlm.bench.workload import Exact, LookupEmbedder, Stock, fill, query_of, recall_of, stock
from rlm.search import semantic_index
from rlm.search.candidates import POOL, Query
from rlm.search.scoring import EXACT, HEAD_CODES

SIZE = 6000  # memories: more than are compared in full, fewer than are left to an index


@pytest.fixture(scope="module")
def some() -> Stock:
    return stock(SIZE, 40, 7)


@pytest.fixture(scope="module")
def memory(some: Stock, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Memory]:
    path = tmp_path_factory.mktemp("sizes") / "memory.db"
    fill(path, some)
    with Memory(path, embedder=LookupEmbedder(some.questions, some.asked)) as opened:
        yield opened


def test_heads_choose_what_vectors_would_have_chosen(memory: Memory, some: Stock) -> None:
    queries = [query_of(some, i) for i in range(len(some.questions))]
    with memory.index.snapshot():
        assert memory.ctx.search.searcher.candidates.retrieve(queries[0], POOL, None).candidates.precision is HEAD_CODES
    assert np.mean(recall_of(memory.ctx.search.searcher, queries)) >= 0.99
    exact = Exact(memory.ctx.search.searcher)
    for query in queries[:10]:
        right, found = exact.search(query, 10)[0], memory.ctx.search.searcher.search(query, 10)[0]
        assert found.seq == right.seq and abs(found.score - right.score) < 1e-4  # by true vectors, not by their heads


@pytest.mark.parametrize("whole", [True, False])
def test_a_filter_holds_whatever_meaning_is_computed_from(memory: Memory, some: Stock, whole: bool,
                                                          monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(semantic_index, "EXACT_LIMIT", SIZE if whole else 0)
    allowed = {m.id for m in memory.recent(300)}
    first = min(m.valid_from for m in memory.recent(300))
    with memory.index.snapshot():
        found = memory.ctx.search.searcher.candidates.retrieve(query_of(some, 0), POOL, None)
        assert found.candidates.precision is (EXACT if whole else HEAD_CODES)
    for text in some.questions[:10]:
        everywhere, hits = memory.search(text, 10), memory.search(text, 10, since=first)
        assert len(hits) == 10 and all(h.memory.valid_from >= first for h in hits)
        assert all(h.id in {g.id for g in hits} for h in everywhere if h.id in allowed)


def test_who_has_nothing_to_do_with_a_question_is_no_answer(memory: Memory) -> None:
    assert not memory.ctx.search.searcher.search(Query("zzzz qqqq", ("zzzz", "qqqq")), 10)
