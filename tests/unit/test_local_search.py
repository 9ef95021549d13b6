"A local search finds what a search of everything finds, compiled and in numpy."
import importlib.util
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from toy import Toy

from rlm import Memory
from rlm.bench.stream import begun, model_of, stream
from rlm.core.compiled import interpreted, load
from rlm.recall.local_search import LocalAnswer, LocalRanking, NeighbourhoodRanker
from rlm.recall.neighbourhood import Neighbourhood, TrueVectors
from rlm.search.scoring import DEFAULT_WEIGHTS
from rlm.search.semantic_index import StoredVectors
from rlm.search.vector.vector_file import open_index
from rlm.search.vector.vector_segments import DEFAULT_CONFIG


@pytest.fixture(autouse=True, scope="module")
def compiled() -> None:
    if importlib.util.find_spec("numba") is not None:
        load()


def same(fast: LocalRanking, plain: LocalRanking) -> None:
    "Alike but for the last digits of cosines."
    assert [r.seq for r in fast.ranked] == [r.seq for r in plain.ranked] and (fast.size, fast.left) == (plain.size, plain.left)
    for a, b in zip(fast.ranked, plain.ranked, strict=True):
        assert a.score == pytest.approx(b.score, abs=1e-6) and dict(a.parts) == pytest.approx(dict(b.parts), abs=1e-6)


def source_of(index: Any) -> TrueVectors:
    return TrueVectors(StoredVectors(index.storage, index.semantic.stamp, index.namespace), index.semantic)


def asked_of(memory: Memory, question: str) -> tuple[Any, ...]:
    "What is ranked by: the terms to search for, the question's features and its vector, measured."
    query, features = memory.query(question), memory.index.scorer.query_features(question)
    plan = memory.ctx.search.searcher.candidates.plan(features, query)
    return plan, features, memory.index.semantic.measure(query.vector)


def compared(memory: Memory, seqs: Any, question: str, k: int, passing: Any = None) -> tuple[LocalRanking, LocalRanking]:
    "Both steps, compiled and in numpy; returns what both say."
    index = memory.index
    plan, features, asked = asked_of(memory, question)
    with index.snapshot():
        around, ranker = Neighbourhood(index, source_of(index), np.asarray(seqs, np.int64)), NeighbourhoodRanker(index)

        def both() -> tuple[LocalRanking, LocalRanking]:
            first = ranker.rank(around, plan, features, asked, k, passing)
            return first, ranker.rank_with_matches(first, features, asked, k)
        with interpreted():
            plain = both()
        for fast, slow in zip(both(), plain, strict=True):
            same(fast, slow)
        assert not ranker.lexical._sums.any() and not index.scorer.session_buffer().any()
    return plain


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
    rng, looked = np.random.default_rng(1), 0
    for n, q in enumerate(some.questions[:60]):
        seqs = rng.permutation(700)[:rng.integers(1, 120)] + 1 if n % 2 else np.arange(max(1, q.about - 40), q.about + 50)
        first, second = compared(memory, seqs, q.text, (1, 10, 40)[n % 3])
        looked += second.size > first.size
    assert looked > 40


def test_only_what_passes_is_found(streamed: tuple[Memory, Any]) -> None:
    memory, some = streamed
    passing = np.random.default_rng(2).random(memory.index.metadata["seq"].size) < 0.5
    for q in some.questions[:40]:
        steps = compared(memory, np.arange(q.about - 30, q.about + 40).clip(1), q.text, 10, passing)
        found = memory.index.metadata.docs([r.seq for seen in steps for r in seen.ranked])
        assert passing[found].all()


def test_words_that_very_many_hold_are_looked_up_late(streamed: tuple[Memory, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    memory, some = streamed
    around = [np.arange(q.about - 30, q.about + 40).clip(1) for q in some.questions[:20]]
    whole = [compared(memory, seqs, q.text, 10)[0] for seqs, q in zip(around, some.questions, strict=False)]
    for budget in (0, 5, 60):
        monkeypatch.setattr("rlm.recall.neighbourhood.POSTINGS", budget)
        for seqs, q, right in zip(around, some.questions, whole, strict=False):
            found = compared(memory, seqs, q.text, 10)[0]
            assert [r.seq for r in found.ranked] == [r.seq for r in right.ranked]


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
    compared(talked, sorted(inside), question, k)


def test_what_it_finds_is_what_a_search_of_everything_finds(streamed: tuple[Memory, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    memory, some = streamed
    monkeypatch.setattr(memory.index.scorer, "ranker", replace(DEFAULT_WEIGHTS, opening=0.0))  # moves what was found, after scoring
    for q in some.questions[150:190]:
        query = memory.query(q.text)
        with memory.index.snapshot():
            right = memory.ctx.search.searcher.retrieve_and_rank(query, 10)[1][:10]
        first, _ = compared(memory, np.arange(1, 701), q.text, 10)
        assert [r.seq for r in first.ranked[:10]] == [r.seq for r in right] and first.left == 0


def test_a_namespace_of_nothing_has_an_empty_neighbourhood() -> None:
    with Memory(":memory:", embedder="none", checkpoints="full") as memory:
        memory.index.model()
        index, ranker = memory.index, NeighbourhoodRanker(memory.index)
        assert not len(index.metadata["seq"])
        with index.snapshot():
            features = index.scorer.query_features("a boat")
            first = ranker.rank(Neighbourhood(index, None, np.zeros(0, np.int64)), index.lexical.plan(["boat"]), features, None, 10)
            second = ranker.rank_with_matches(first, features, None, 10)
        assert not first.ranked and not second.ranked and first.size == 0 == first.left == second.size


@pytest.fixture
def large(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Memory, Any]]:
    "The same, but for vectors: there are too many of them to be in memory, and their codes have axes."
    some, path = stream(700, 4, 60), tmp_path / "memory.db"
    begun(path, some)
    monkeypatch.setattr("rlm.search.semantic_index.DENSE_LIMIT", 0)
    with_axes = partial(open_index, config=replace(DEFAULT_CONFIG, axes_from=256))
    monkeypatch.setattr("rlm.search.semantic_index.open_index", with_axes)
    with Memory(path, embedder=model_of(some), checkpoints="full") as memory:
        memory.index.model()
        for turn in list(some.turns())[some.live:some.live + 20]:
            memory.write(**turn)
            memory.index.model()
        assert not memory.index.semantic.is_dense and len(memory.index.semantic.index.state.recent)
        yield memory, some


def test_what_is_being_erased_is_no_answer(large: tuple[Memory, Any]) -> None:
    memory, some = large
    index, said = memory.index, set[str]()
    for q in some.questions:
        asked = asked_of(memory, q.text)
        with index.snapshot():
            around, ranker = Neighbourhood(index, source_of(index), np.arange(200, 420)), NeighbourhoodRanker(index)
            base = (codes := index.semantic.index).state.base

            def answered(valid: bool, margin: float) -> LocalAnswer:
                codes.segments.remap(base, replace(base, is_valid=lambda: valid))  # noqa: B023
                return ranker.answer(around, *asked, 10, 10, margin, 2)  # noqa: B023
            for margin in np.arange(-1, 3, 0.5):
                before, after = answered(True, margin), answered(False, margin)  # the file was overwritten
                said.add(after.declined)
                assert list(after.ranked) == list(before.ranked) or after.declined == "being erased"
            codes.segments.remap(codes.state.base, base)
    assert {"", "being erased"} <= said, "the first step reads no codes"
