"The compiled local search finds what the one in numpy finds."
import ast
import gc
import importlib.util
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any
from weakref import ref

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from toy import Toy

from rlm import Memory
from rlm.bench.stream import begun, model_of, stream
from rlm.core.compiled import Reader, interpreted, load
from rlm.core.errors import InvalidInput
from rlm.recall import kernels
from rlm.recall.local_kernel import (
    MARGIN,
    RELEVANCE,
    LocalAnswer,
    LocalKernel,
    SlotBuffers,
    cue_bound,
    is_conclusive,
    slot_buffers,
    tail_bound,
)
from rlm.recall.local_search import LocalRanking, NeighbourhoodRanker
from rlm.recall.neighbourhood import Neighbourhood, TrueVectors
from rlm.search.candidates import Searcher
from rlm.search.query_features import QueryFeatures
from rlm.search.scoring import DEFAULT_WEIGHTS, KERNEL_TOP_K
from rlm.search.semantic_index import StoredVectors
from rlm.search.vector.vector_file import open_index
from rlm.search.vector.vector_segments import DEFAULT_CONFIG
from rlm.store.protocols import MAX_TERMS

pytestmark = pytest.mark.skipif(importlib.util.find_spec("numba") is None, reason="numba is not installed, so nothing is compiled")


@pytest.fixture(autouse=True, scope="module")
def compiled() -> None:
    load()


def same(fast: LocalAnswer, plain: LocalRanking) -> None:
    "Alike but for the last digits of cosines."
    assert [r.seq for r in fast.ranked] == [r.seq for r in plain.ranked]
    for a, b in zip(fast.ranked, plain.ranked, strict=True):
        assert a.score == pytest.approx(b.score, abs=1e-6) and dict(a.parts) == pytest.approx(dict(b.parts), abs=1e-6)


def source_of(index: Any) -> TrueVectors:
    return TrueVectors(StoredVectors(index.storage, index.semantic.stamp, index.namespace), index.semantic)


def asked_of(memory: Memory, question: str) -> tuple[Any, ...]:
    "What the kernel takes of a question: the terms to search for, its features and its vector."
    query, features = memory.query(question), memory.index.scorer.query_features(question)
    return memory.ctx.search.searcher.candidates.search_terms(features, query.terms), features, query.vector


def compared(memory: Memory, seqs: Any, question: str, k: int, passing: Any = None) -> tuple[LocalRanking, LocalRanking, int]:
    "Both steps, compiled and in numpy; returns what numpy says, and how many of them one call could answer."
    index, query, answered = memory.index, memory.query(question), 0
    with index.snapshot():
        around = Neighbourhood(index, source_of(index), np.asarray(seqs, np.int64))
        kernel, ranker = LocalKernel(index), NeighbourhoodRanker(index)
        features, asked = index.scorer.query_features(question), index.semantic.measure(query.vector)
        terms, outside = Searcher(index).candidates.search_terms(features, query.terms), index.lexical.documents - len(around.seqs)
        table = slot_buffers(["W1"], asked.unit[None], [around.buffers], index.doc_id_epoch)
        with interpreted():
            first = ranker.rank(around, terms, features, asked, k, passing)
            second = ranker.rank_with_matches(first, features, asked, k)
        others = cue_bound(features) + (tail_bound(k, outside) if outside > 0 else 0.0) + DEFAULT_WEIGHTS.words * first.left
        slack = first.ranked[k - 1].score - others if len(first.ranked) >= k else 0.0
        for seen, margin in ((first, slack - 1e-6), (second, slack + 1e-6)):  # the least at which the first step does, and does not do
            measured, answer = kernel.run(table, terms, features, query.vector, k, passing, -99.0, margin)
            assert (measured is None) == bool(features.dates or index.scorer.spoken_share(features) < 1)
            if answer is not None and answer.ranked and (seen is first or outside > 0) and len(first.ranked) >= k:
                taken = second.scored.words[first.size:]
                if seen is first or second.left < taken.min(initial=np.inf) - 1e-6:  # else equals stand at the edge, and any may be taken
                    same(answer, seen)
                    answered += 1
        assert not ranker.lexical._sums.any() and not index.scorer.session_buffer().any()
    return first, second, answered


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
    rng, looked, answered = np.random.default_rng(1), 0, 0
    for n, q in enumerate(some.questions[:150]):
        seqs = rng.permutation(700)[:rng.integers(1, 120)] + 1 if n % 2 else np.arange(max(1, q.about - 40), q.about + 50)
        first, second, found = compared(memory, seqs, q.text, (1, 10, 40)[n % 3])
        looked, answered = looked + (second.size > first.size), answered + found
    assert looked > 100 and answered > 150


def test_only_what_passes_is_found(streamed: tuple[Memory, Any]) -> None:
    memory, some = streamed
    passing = np.random.default_rng(2).random(memory.index.metadata["seq"].size) < 0.5
    for q in some.questions[:40]:
        first, second, _ = compared(memory, np.arange(q.about - 30, q.about + 40).clip(1), q.text, 10, passing)
        found = memory.index.metadata.docs([r.seq for seen in (first, second) for r in seen.ranked])
        assert passing[found].all()


def test_words_that_very_many_hold_are_looked_up_late(streamed: tuple[Memory, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    memory, some = streamed
    for budget in (0, 5, 60):
        monkeypatch.setattr("rlm.recall.local_kernel.POSTINGS", budget)
        monkeypatch.setattr("rlm.recall.neighbourhood.POSTINGS", budget)
        assert len(LocalKernel(memory.index).tables.workspace[0]) == budget
        for q in some.questions[:40]:
            compared(memory, np.arange(q.about - 30, q.about + 40).clip(1), q.text, 10)


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
        first, _, answered = compared(memory, np.arange(1, 701), q.text, 10)
        assert [r.seq for r in first.ranked[:10]] == [r.seq for r in right] and first.left == 0
        assert answered or memory.index.scorer.query_features(q.text).dates


def test_a_namespace_of_nothing_has_an_empty_neighbourhood() -> None:
    with Memory(":memory:", embedder="none", checkpoints="full") as memory:
        memory.index.model()
        index, ranker = memory.index, NeighbourhoodRanker(memory.index)
        assert not len(index.metadata["seq"])
        with index.snapshot():
            features = index.scorer.query_features("a boat")
            first = ranker.rank(Neighbourhood(index, None, np.zeros(0, np.int64)), ["boat"], features, None, 10)
            second = ranker.rank_with_matches(first, features, None, 10)
        assert not first.ranked and not second.ranked and first.size == 0 == first.left == second.size


def test_what_came_later_is_not_found_yet_and_other_dimensions_are_refused(streamed: tuple[Memory, Any]) -> None:
    memory, some = streamed
    q, early = some.questions[-1], np.ones(500, bool)  # who may be found was noted when there were five hundred
    index, query = memory.index, memory.query(q.text)
    with index.snapshot():
        asked = index.semantic.measure(query.vector)
        for seqs in (np.arange(1, 701), np.arange(1, 9)):
            table = slot_buffers(["W1"], asked.unit[None], [Neighbourhood(index, None, seqs).buffers], index.doc_id_epoch)
            found = [LocalKernel(index).run(table, *asked_of(memory, q.text), k, early, -99.0, -99.0)[1] for k in (1, 5, 50)]
            numbers = index.metadata.docs([r.seq for answer in found if answer for r in answer.ranked])
            assert len(numbers) and numbers.max() < 500
        for vector in (query.vector[:100], np.append(query.vector, 1), query.vector[None]):
            with pytest.raises(InvalidInput, match="384 numbers"):
                index.semantic.measure(vector)
            with interpreted(), pytest.raises(InvalidInput, match="384 numbers"):
                index.semantic.measure(vector)


def test_one_call_is_one_step_after_the_other(streamed: tuple[Memory, Any]) -> None:
    memory, some = streamed
    index, there, right, looks, names = memory.index, list[str](), list[str](), list[int](), ["W1", "W2", "W3", "W4"]
    with index.snapshot():
        places = [Neighbourhood(index, source_of(index), np.arange(a, a + 100)) for a in (1, 200, 400, 550)]
        where = np.array([p.rows.mean(axis=0) for p in places])
        where = np.asarray(where / np.linalg.norm(where, axis=1)[:, None], np.float32)
        around = slot_buffers(names, where, [*(p.buffers for p in places[:3]), None], index.doc_id_epoch)
        at_once, each, documents = LocalKernel(index), NeighbourhoodRanker(index), index.lexical.documents
        many = np.arange(index.metadata["seq"].size)
        for n, q in enumerate(some.questions):
            query, features, passing = memory.query(q.text), index.scorer.query_features(q.text), many % 7 > 0 if n % 3 == 0 else None
            terms, asked = Searcher(index).candidates.search_terms(features, query.terms), index.semantic.measure(query.vector)
            k, spare = 1 + n % 12, 0.5 - n % 2
            measured, said = at_once.run(around, terms, features, query.vector, k, passing, 1.5, spare)
            if measured is None:
                assert features.dates
                continue
            assert measured[2:] == asked[2:] and (measured.unit == asked.unit).all() and (measured.vector == asked.vector).all()
            best = int((where @ asked.unit).argmax())
            there.append("" if said is None else said.slot)
            fits = float(where[best] @ asked.unit - asked.mean) / asked.spread >= 1.5
            right.append(names[best] if fits and best < 3 else "")
            assert (said is None) == (fits and best == 3)
            if right[-1]:
                first = each.rank(places[best], terms, features, asked, k, passing)
                bound = spare + cue_bound(features) + tail_bound(k, documents - 100)
                looks.append(1 if is_conclusive(first.ranked, k, bound + DEFAULT_WEIGHTS.words * first.left) else 2)
                seen = first if looks[-1] == 1 else each.rank_with_matches(first, features, asked, k)
                assert bool(said.ranked) == is_conclusive(seen.ranked, k, bound + DEFAULT_WEIGHTS.words * seen.left)
                if said.ranked:
                    same(said, seen)
                assert said.declined == ("" if said.ranked else "too few" if len(seen.ranked) < k else "too weak")
    assert there == right and set(right) == {"", *names[:3]} and set(looks) == {1, 2}


def test_a_neighbourhood_of_everything_needs_no_bound(streamed: tuple[Memory, Any]) -> None:
    memory, some = streamed
    index, q = memory.index, some.questions[3]
    with index.snapshot():
        all_ = Neighbourhood(index, source_of(index), np.arange(1, 701))
        asked = index.semantic.measure(memory.query(q.text).vector)
        around = slot_buffers(["W1"], asked.unit[None], [all_.buffers], index.doc_id_epoch)
        given_ = asked_of(memory, q.text)
        for k, spare in ((10, 1e9), (KERNEL_TOP_K, 1e9)):
            said = LocalKernel(index).run(around, *given_, k, None, 1.5, spare)[1]
            assert said is not None and len(said.ranked) and said.slot == "W1"


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


def around_the_middle(index: Any) -> tuple[Neighbourhood, SlotBuffers]:
    "A neighbourhood of a third of it, and a slot that each question belongs to."
    one = Neighbourhood(index, source_of(index), np.arange(200, 420))
    return one, slot_buffers(["W1"], one.rows.mean(axis=0)[None], [one.buffers], index.doc_id_epoch)


def test_codes_are_compared_at_once_too(large: tuple[Memory, Any]) -> None:
    memory, some = large
    index, looks, apart = memory.index, list[int](), list[float]()
    with index.snapshot():
        one, around = around_the_middle(index)
        at_once, plain = LocalKernel(index), NeighbourhoodRanker(index)
        for q in some.questions:
            query, features = memory.query(q.text), index.scorer.query_features(q.text)
            terms, asked = Searcher(index).candidates.search_terms(features, query.terms), index.semantic.measure(query.vector)
            said = at_once.run(around, terms, features, query.vector, 10, None, -99.0, 0.5)[1]
            assert (said is None) == bool(features.dates)
            with interpreted():
                first = plain.rank(one, terms, features, asked, 10)
                bound = 0.5 + cue_bound(features) + tail_bound(10, index.lexical.documents - len(one.seqs))
                seen = (first if is_conclusive(first.ranked, 10, bound + DEFAULT_WEIGHTS.words * first.left)
                        else plain.rank_with_matches(first, features, asked, 10))
            looks.append(1 if seen is first else 2)
            needed = bound + DEFAULT_WEIGHTS.words * seen.left
            if said is not None and abs(seen.ranked[9].score - needed) > 0.05:
                assert bool(said.ranked) == is_conclusive(seen.ranked, 10, needed)
                found, right = ({r.seq: r.score for r in ranked} for ranked in (said.ranked, seen.ranked))
                apart += [abs(score - right[seq]) for seq, score in found.items() if seq in right]
                assert not found or len(found.keys() & right.keys()) > 8
    assert set(looks) == {1, 2} and 0 < max(apart) < 0.05, "codes in axes of whole steps are near, and not the same"


def test_what_loops_cant_read_goes_the_long_way(large: tuple[Memory, Any]) -> None:
    memory, some = large
    index, q = memory.index, next(q for q in some.questions if not memory.index.scorer.query_features(q.text).dates)
    given_ = asked_of(memory, q.text)
    with index.snapshot():
        look, around = LocalKernel(index), around_the_middle(index)[1]
        asked, said = look.run(around, *given_, 10, None, -99.0, -99.0)
        assert asked is not None and said.ranked
        assert look.run(around, *given_, 10, None, -99.0, 99.0)[1].declined == "too weak"
        codes, base = index.semantic.index, index.semantic.state.base
        codes.segments.remap(base, replace(base, axes=None))
        asked, said = look.run(around, *given_, 10, None, -99.0, 99.0)
        assert asked is not None and said is None, "codes without axes"
        codes.segments.remap(base, base)
        assert look.run(around, *given_, 10, None, -99.0, 99.0)[1].declined == "too weak"


def test_nothing_old_is_kept_alive_or_read(large: tuple[Memory, Any]) -> None:
    memory, some = large
    index, q = memory.index, next(q for q in some.questions if not memory.index.scorer.query_features(q.text).dates)
    given_ = *asked_of(memory, q.text), 10, None, -99.0
    with index.snapshot():
        look, around = LocalKernel(index), around_the_middle(index)[1]
        right, before = look.run(around, *given_, 0.5)[1], ref(index.semantic.state.base.codes.coarse)
        position = index.position
        index.semantic.index.compact()
        assert look.run(around, *given_, 0.5)[1].ranked.seqs.tolist() == right.ranked.seqs.tolist() != []
        gc.collect()
        assert before() is None and index.position is position, "a compaction makes a new base, and what is asked next reads that"
        segments = [ref(s.passage) for s in index.lexical.segments]
        index.lexical.compact()
        look.run(around, *given_, 0.5)
        gc.collect()
        assert len(segments) > 1 and not any(s() for s in segments)


def test_what_was_interrupted_begins_anew(large: tuple[Memory, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    memory, _ = large
    tables = LocalKernel(memory.index).tables
    places = tables.places(10)
    with monkeypatch.context() as patch:
        patch.setattr(tables, "_measure_places", lambda view: (_ for _ in ()).throw(KeyboardInterrupt()))
        with pytest.raises(KeyboardInterrupt):
            tables.places(1000)
    assert not tables.are_current() and tables.places(1000) is not places and tables.places(1000) is tables.places(1000)


def test_a_date_raises_no_other_bound(streamed: tuple[Memory, Any]) -> None:
    memory, some = streamed
    index = memory.index
    with index.snapshot():
        around = around_the_middle(index)[1]
        q = next(q for q in some.questions if index.scorer.query_features(q.text) == QueryFeatures(script=-1))
        looks = [LocalKernel(index), LocalKernel(index)]
        given_ = *asked_of(memory, q.text), 10, None
        dated = index.scorer.query_features("in May 2024")
        assert looks[0].run(around, given_[0], dated, given_[2], 10, None, RELEVANCE, MARGIN) == (None, None)
        looks[0]._question_figures(index.scorer.query_features("in May 2024"), 10, 10, 10, RELEVANCE, MARGIN)
        for spare in np.arange(0, 2, 0.1):
            said = [look.run(around, *given_, RELEVANCE, spare)[1] for look in looks]
            assert said[0].declined == said[1].declined and list(said[0].ranked) == list(said[1].ranked)
        assert looks[0]._question_figures(QueryFeatures(script=-1), 10, 10, 10, RELEVANCE, MARGIN)[1][kernels.MARGIN] == MARGIN


def test_what_is_being_erased_is_no_answer(large: tuple[Memory, Any]) -> None:
    memory, some = large
    index, said = memory.index, set[str]()
    with index.snapshot():
        look, around = LocalKernel(index), around_the_middle(index)[1]
        for q in some.questions:
            given_ = *asked_of(memory, q.text), 10, None
            codes, base = index.semantic.index, index.semantic.state.base  # after a question was embedded, the index is in step: made anew
            for spare in np.arange(-1, 3, 0.1):
                codes.segments.remap(base, base)
                before = look.run(around, *given_, -99.0, spare)[1]
                codes.segments.remap(base, replace(base, is_valid=lambda: False))  # the file was overwritten
                after = look.run(around, *given_, -99.0, spare)[1]
                said.add("" if after is None else after.declined)
                assert before is None or list(after.ranked) == list(before.ranked) or after.declined == "being erased"
    assert said == {"", "too weak", "being erased"}, "the first look reads no codes; and what is too weak is so anyway"


def test_what_cant_be_done_at_once_is_left_to_others(streamed: tuple[Memory, Any]) -> None:
    memory, some = streamed
    index, vector, no = memory.index, memory.query(some.questions[0].text).vector, (None, None)
    with index.snapshot():
        here, features = Neighbourhood(index, None, np.arange(1, 50)).buffers, index.scorer.query_features("boats")
        around, nothing = slot_buffers(["W1"], vector[None], [here], 0), slot_buffers([], np.zeros((0, 0), np.float32), [], 0)
        assert LocalKernel(index).run(around, ["boat"], features, vector, 10, None, 1.5, 0.5)[0] is not None
        dated = index.scorer.query_features("in May 2024")
        for given_ in ((nothing, ["boat"], features, vector, 10), (around, ["boat"], dated, vector, 10),
                       (around, ["boat"], features, vector[:100], 10), (around, ["boat"], features, vector[None], 10),
                       (around, ["boat"], features, vector, KERNEL_TOP_K + 1), (around, ["boat"] * (MAX_TERMS + 1), features, vector, 10)):
            assert LocalKernel(index).run(*given_, None, 1.5, 0.5) == no
        with interpreted():
            assert LocalKernel(index).run(around, ["boat"], features, vector, 10, None, 1.5, 0.5) == no
    with Memory(":memory:", embedder=Toy()) as empty:
        empty.index.model()
        toy = np.ones((1, 64), np.float32)
        assert LocalKernel(empty.index).run(slot_buffers(["W1"], toy, [None], 0), ["boat"], features, toy[0], 10, None, 1.5, 0.5) == no


def test_each_array_is_read_as_what_it_is() -> None:
    kinds = {"buffer": kernels.BUFFER.split(), "place": kernels.WORKSPACE.split(), "index": kernels.INDEX.split(),
             "model": kernels.MODEL.split(), "vectors": kernels.WHOLE.split(), "tables": kernels.ALL.split()}
    wide = {("buffer", "ROWS"), ("place", "ADDED"), ("place", "FOUND"), ("model", "CODES"), ("vectors", "VECTORS"), ("tables", "SUBJECTS"),
            *(("tables", name) for name in ("AROUND", "WORK", "EVERY", "PARTED", "MEASURED", "COMPARED"))}
    segment, read = kernels.SEGMENT.split(), set[tuple[str, int]]()
    for node in ast.walk(ast.parse(Path(kernels.__file__).read_text("utf-8"))):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and isinstance(getattr(kernels, node.func.id, None), Reader):
            (table, at), reader = map(ast.unparse, node.args), getattr(kernels, node.func.id)
            if table == "segments":
                place = int(at.rpartition("+")[2]) if "+" in at else 0
                assert at.startswith("4 * s") and reader.kind == segment[place]
            else:
                place = getattr(kernels, at)
                assert reader.kind == kinds[table][place] and reader.rows == ((table, at) in wide), ast.unparse(node)
            read.add((table, place))
    assert len(read) == sum(map(len, kinds.values())) + len(segment)  # nothing stands in a table that nobody reads
