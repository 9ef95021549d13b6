"A neighbourhood and the words elsewhere find what a search of everything finds."
from pathlib import Path

import numpy as np
import pytest

from rlm import Memory
from rlm.bench.stream import begun, model_of, stream
from rlm.core.text import tokens
from rlm.recall import neighbourhood
from rlm.recall.neighbourhood import LexicalCandidates, Neighbourhood, TrueVectors
from rlm.search.candidates import REORDERED, Searcher
from rlm.search.semantic_index import StoredVectors

NONE = np.zeros(0, np.int32)


def test_a_neighbourhood_of_all_memories_ranks_as_a_search_does(tmp_path: Path) -> None:
    some = stream(600, 5, 60)
    begun(tmp_path / "memory.db", some)
    with Memory(tmp_path / "memory.db", embedder=model_of(some)) as memory, memory.index.snapshot():
        index = memory.index
        source = TrueVectors(StoredVectors(index.storage, index.semantic.stamp, index.namespace), index.semantic)
        every, lexical = Neighbourhood(index, source, index.metadata["seq"].astype(np.int64)), LexicalCandidates(index)
        for question in some.questions[:40]:
            query = memory.query(question.text)
            full = Searcher(index).retrieve_and_rank(query, 10)[1][:10]
            features = index.scorer.query_features(query.text)
            found = lexical.score(Searcher(index).candidates.plan(features, query), every.units)
            near = index.scorer.rank(features, every.candidates(found.inside, index.semantic.measure(query.vector)), REORDERED)
            near = Searcher(index).reorder(features, query.measured, near, None)[:10]  # as a search moves what opens a conversation
            assert [r.seq for r in near] == [r.seq for r in full] and found.left == 0, question
            assert np.allclose([r.score for r in near], [r.score for r in full], atol=1e-5)


def test_words_elsewhere_are_those_of_a_lexical_search_and_leave_out_the_neighbourhood() -> None:
    with Memory(":memory:", embedder="none") as memory:
        memory.write_many([{"text": f"word{n % 7} name{n % 31} thing{n % 50} number{n}"} for n in range(400)])
        memory.delete(memory.search("number39")[0].id)
        index = memory.index
        with index.snapshot():
            lexical = LexicalCandidates(index)
            for question in ("word3 name5", "thing7 name8 word1", "number17", "nothing of the kind"):
                plan = index.lexical.plan(tokens(question))
                right = index.lexical.search(plan, 20)
                found = lexical.best(lexical.score(plan, NONE), 20)
                assert np.allclose(sorted(found.scores), sorted(right.scores / (plan.idf_sum or 1)), atol=1e-6)
                assert found.left <= min(found.scores, default=0) and 39 not in found.docs
                assert not lexical._sums.any()  # the array is shared by all questions, and must be zero again after each
            every = lexical.best(lexical.score(index.lexical.plan(tokens("word3 name5")), NONE), 400)
            inside = lexical.score(index.lexical.plan(tokens("word3 name5")), every.docs[:5].astype(np.int32))
            assert np.allclose(inside.inside, every.scores[:5]) and every.left == 0
            assert set(lexical.best(inside, 400).docs) == set(every.docs[5:]) and np.isclose(inside.left, every.scores[5:].max())


def test_a_memory_of_several_units_counts_once_by_its_best() -> None:
    with Memory(":memory:", embedder="none") as memory:
        memory.write_many([" ".join(f"word{(n * i) % 11} filler{i % 13} name{(n + i) % 17}" for i in range(90)) for n in range(40)])
        index = memory.index
        with index.snapshot():
            words = tokens("word3 name5 filler7")
            right = index.lexical.search(plan := index.lexical.plan(words), 40)
            exact = dict(zip(right.docs.tolist(), right.scores / plan.idf_sum, strict=True))
            for n in (5, 20, 400):
                lexical = LexicalCandidates(index)
                found = lexical.best(lexical.score(plan, NONE), n)
                assert len(set(found.docs)) == len(found.docs) and index.lexical.docs.passage_doc.size > 100
                assert all(np.isclose(s, exact[d], atol=1e-6) for d, s in zip(found.docs.tolist(), found.scores, strict=True))


@pytest.mark.parametrize("budget", [0, 40, 150, 20_000])
def test_no_memory_elsewhere_has_more_of_the_words_than_the_bound_says(budget: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(neighbourhood, "POSTINGS", budget)  # instead of many memories: beyond it, the commonest words are not read
    with Memory(":memory:", embedder="none") as memory:
        memory.write_many([{"text": f"word{n % 3} name{n % 11}" + " filler" * (n % 9), "tags": [f"word{n % 4}"] if n % 5 else [],
                            "title": f"word{n % 7} name{n % 13}" if n % 2 else None} for n in range(300)]
                          + [" ".join(f"word{(n * i) % 5} name{i % 7}" for i in range(90)) for n in range(20)])
        index = memory.index
        with index.snapshot():
            for question in ("word1", "word1 name5", "word0 word2 name3", "word1 unheard name10"):
                plan, lexical = index.lexical.plan(tokens(question)), LexicalCandidates(index)
                exact = index.lexical.score_all(plan).copy() / (plan.idf_sum or 1)
                near = np.arange(40, 60)
                found = lexical.score(index.lexical.plan(tokens(question)), index.lexical.docs.passages(near).astype(np.int32))
                assert found.left >= np.delete(exact, near).max() - 1e-6
                for n in (1, 5, 30):
                    best = lexical.best(found, n)
                    assert best.left >= np.delete(exact, [*near, *best.docs]).max() - 1e-6
                    assert (best.scores <= exact[best.docs] + 1e-6).all()
