"What a local search answers is what a search of everything finds, compiled or not; and it declines where that is not sure."
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from toy import Toy

from rlm import Memory
from rlm.bench.stream import begun, model_of, stream
from rlm.core.compiled import interpreted, prepare
from rlm.recall.local_search import LocalAnswer, NeighbourhoodRanker
from rlm.recall.neighbourhood import Neighbourhood, TrueVectors
from rlm.search.candidates import Searcher
from rlm.search.scoring import DEFAULT_WEIGHTS
from rlm.search.semantic_index import StoredVectors
from rlm.store.filters import Filters


@pytest.fixture(autouse=True, scope="module")
def compiled() -> None:
    prepare()


def answered(memory: Memory, seqs: Any, question: str, k: int, margin: float, passing: Any = None) -> LocalAnswer:
    "The answer of a neighbourhood, which is the same where nothing is compiled."
    index, query = memory.index, memory.query(question)
    with index.snapshot():
        source = TrueVectors(StoredVectors(index.storage, index.semantic.stamp, index.namespace), index.semantic)
        around, ranker = Neighbourhood(index, source, np.asarray(seqs, np.int64)), NeighbourhoodRanker(index)
        features, asked = index.scorer.query_features(question), index.semantic.measure(query.vector)
        terms = Searcher(index).candidates.search_terms(features, query.terms)
        found = ranker.answer(around, terms, features, asked, k, k, passing, margin)
        with interpreted():
            plain = ranker.answer(around, terms, features, asked, k, k, passing, margin)
        assert not ranker.lexical._sums.any() and not index.scorer.session_buffer().any()
    assert found.declined == plain.declined and [r.seq for r in found.ranked] == [r.seq for r in plain.ranked]
    for a, b in zip(found.ranked, plain.ranked, strict=True):
        assert a.score == pytest.approx(b.score, abs=1e-6) and dict(a.parts) == pytest.approx(dict(b.parts), abs=1e-6)
    return found


@pytest.fixture(scope="module")
def streamed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Memory, Any]]:
    "A stream, half of it written one by one, so that there are several segments."
    some, path = stream(700, 4, 300), tmp_path_factory.mktemp("stream") / "memory.db"
    begun(path, some)
    with Memory(path, embedder=model_of(some)) as memory:
        memory.index.model()
        for turn in list(some.turns())[some.live:]:
            memory.write(**turn)
            memory.index.model()
        assert len(memory.index.lexical.segments) > 2
        yield memory, some


def test_the_questions_of_a_stream(streamed: tuple[Memory, Any]) -> None:
    memory, some = streamed
    rng, declined = np.random.default_rng(1), list[str]()
    for n, q in enumerate(some.questions[:120]):
        seqs = rng.permutation(700)[:rng.integers(1, 120)] + 1 if n % 2 else np.arange(max(1, q.about - 40), q.about + 50)
        declined.append(answered(memory, seqs, q.text, (1, 10, 40)[n % 3], (0.5, -2.0)[n // 2 % 2]).declined)
    assert declined.count("") > 30 and len(set(declined)) > 1, "some are sure, others are not"


def test_only_what_passes_is_found(streamed: tuple[Memory, Any]) -> None:
    memory, some = streamed
    passing = np.random.default_rng(2).random(memory.index.metadata["seq"].size) < 0.5
    for q in some.questions[:40]:
        found = answered(memory, np.arange(q.about - 30, q.about + 40).clip(1), q.text, 10, -99.0, passing)
        assert found.ranked and passing[memory.index.metadata.docs([r.seq for r in found.ranked])].all()


def test_words_that_very_many_hold_are_looked_up_late(streamed: tuple[Memory, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    memory, some = streamed
    for q in some.questions[:20]:
        seqs, right = np.arange(q.about - 30, q.about + 40).clip(1), list[list[int]]()
        for budget in (20_000, 60, 5, 0):
            monkeypatch.setattr("rlm.recall.neighbourhood.POSTINGS", budget)
            right.append([r.seq for r in answered(memory, seqs, q.text, 5, -99.0).ranked])
        assert all(seqs == right[0] for seqs in right)


SAID = ("The blue boat with the red sail, last week.", "배를 5월에 샀어, 바다에 가려고.", "My cat likes the garden.",
        "고양이가 정원에서 논다.", "Thanks!", "When is the train to the harbour?", "We bought bread at the bakery in May 2023.")
QUESTIONS = ("When did Mina buy the boat in May?", "배는 언제 샀어?", "Who has a cat in the garden?", "what did Joon say about the train",
             "zzz", "boat garden bread sea", "the")


@pytest.fixture(scope="module")
def talked() -> Iterator[Memory]:
    "Two languages, long texts of several units and vectors, memories that are gone or were written anew."
    with Memory(":memory:", embedder=Toy()) as memory:
        for n in range(90):
            text = SAID[n % len(SAID)] + ("" if n % 7 else " And then we talked about the sea and the station for a while." * 25)
            memory.write(f"{text} {n}", id=f"m{n}", session=f"s{n // 10}" if n % 11 else None, speaker=("Mina", "Joon", None)[n % 3],
                         role=("user", "assistant", None)[n % 3], valid_from=f"202{3 + n % 3}-05-0{1 + n % 9}")
        memory.delete(["m3", "m17"])
        memory.update("m20", text="The otter took the train")
        memory.update("m56", text="The boat " * 200)
        yield memory


@settings(deadline=None, max_examples=30)
@given(inside=st.sets(st.integers(1, 95), max_size=60), k=st.sampled_from([1, 5, 30]), question=st.sampled_from(QUESTIONS))
def test_cues_scripts_and_long_texts(talked: Memory, inside: set[int], k: int, question: str) -> None:
    talked.index.model()
    for margin in (-99.0, 0.5):
        answered(talked, sorted(inside), question, k, margin)


def test_a_neighbourhood_of_everything_needs_no_bound(streamed: tuple[Memory, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    memory, some = streamed
    monkeypatch.setattr(memory.index.scorer, "ranker", replace(DEFAULT_WEIGHTS, opening=0.0))  # moves what was found, after scoring
    for q in some.questions[150:190]:
        with memory.index.snapshot():
            right = memory.ctx.search.searcher.retrieve_and_rank(memory.query(q.text), 10, Filters())[1][:10]
        assert [r.seq for r in answered(memory, np.arange(1, 701), q.text, 10, 1e9).ranked[:10]] == [r.seq for r in right]


def test_a_namespace_of_nothing_has_an_empty_neighbourhood() -> None:
    with Memory(":memory:", embedder="none", checkpoints="full") as memory:
        memory.index.model()
        index, ranker = memory.index, NeighbourhoodRanker(memory.index)
        with index.snapshot():
            around, features = Neighbourhood(index, None, np.zeros(0, np.int64)), index.scorer.query_features("a boat")
            assert ranker.answer(around, ["boat"], features, None, 10, 10).declined == "too few"


def test_what_is_being_erased_is_no_answer(streamed: tuple[Memory, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    memory, some = streamed
    monkeypatch.setattr("rlm.search.semantic_index.SemanticIndex.is_valid", property(lambda self: False))  # the file was overwritten
    index, q = memory.index, some.questions[0]
    features, around = index.scorer.query_features(q.text), Neighbourhood(index, None, np.arange(1, 9))
    assert NeighbourhoodRanker(index).answer(around, ["zzz"], features, None, 10, 10).declined == "being erased"
