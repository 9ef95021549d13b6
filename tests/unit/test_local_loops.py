"A look around with compiled loops sees what one in numpy sees."
import ast
import gc
import importlib.util
from collections.abc import Iterator
from dataclasses import replace
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
from rlm.recall import local_loops
from rlm.recall.bar import RELEVANCE, SPARE, lifted, luck, stands
from rlm.recall.local_loops import LOOK, MAY_REACH, WORDS
from rlm.recall.looking import Look, QuickLook, QuickRecall, Seen, shelved
from rlm.recall.neighbourhoods import Neighbourhood, Rows
from rlm.store.cues import Cues
from rlm.store.filters import Filters
from rlm.store.meaning import StoredVectors
from rlm.store.ranking import FEW, MIX, PARTS, Mix
from rlm.store.storage import MAX_TERMS
from rlm.store.vector_fold import DEFAULTS

pytestmark = pytest.mark.skipif(importlib.util.find_spec("numba") is None, reason="numba is not installed, so nothing is compiled")


@pytest.fixture(autouse=True, scope="module")
def compiled() -> None:
    load()


def same(fast: Seen, plain: Seen) -> None:
    "Alike but for the last digits of cosines."
    assert fast.size == plain.size and fast.left == pytest.approx(plain.left, abs=1e-12)
    assert [r.seq for r in fast.ranked] == [r.seq for r in plain.ranked]
    for a, b in zip(fast.ranked, plain.ranked, strict=True):
        assert a.score == pytest.approx(b.score, abs=1e-6) and dict(a.parts) == pytest.approx(dict(b.parts), abs=1e-6)


def compared(memory: Memory, seqs: Any, question: str, k: int, passing: Any = None) -> tuple[QuickLook, Seen, Seen]:
    "Both looks of both kinds; returns what the quick one saw."
    index, query = memory.index, memory.query(question)
    with index.moment():
        stamp = index.meaning.stamp
        source = None if stamp is None else Rows(StoredVectors(index.backend, stamp, index.namespace), index.meaning)
        around, quick, plain = Neighbourhood(index, source, np.asarray(seqs, np.int64)), QuickLook(index), Look(index)
        cues, asked = index.cues(question), index.meaning.ask(query.vector)
        given_ = around, index.wanted(cues, query.terms), cues, asked, k, passing
        first = quick.first(*given_)
        assert quick._walked is not None  # it was not left to numpy
        with interpreted():
            assert LOOK.run is None
            same(first, plain.first(*given_))
        second = quick.second()
        with interpreted():
            right = plain.second()
        taken = around.shelf.places.arrays[WORDS][first.size:second.size]
        if second.left < taken.min(initial=np.inf) - 1e-6:  # else equals stand on both sides of the edge, and any may be taken
            same(second, right)
        assert second.left == pytest.approx(right.left, abs=1e-6)
        assert not plain.holders._room.any() and not index.blank().any()
    return quick, first, second


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
    for n, q in enumerate(some.questions[:150]):
        seqs = rng.permutation(700)[:rng.integers(1, 120)] + 1 if n % 2 else np.arange(max(1, q.about - 40), q.about + 50)
        _, first, second = compared(memory, seqs, q.text, (1, 10, 40)[n % 3])
        looked += second.size > first.size
    assert looked > 100


def test_only_what_passes_is_found(streamed: tuple[Memory, Any]) -> None:
    memory, some = streamed
    passing = np.random.default_rng(2).random(memory.index.catalogue["seq"].size) < 0.5
    for q in some.questions[:40]:
        _, first, second = compared(memory, np.arange(q.about - 30, q.about + 40).clip(1), q.text, 10, passing)
        found = memory.index.catalogue.numbers([r.seq for seen in (first, second) for r in seen.ranked])
        assert passing[found].all()


def test_words_that_very_many_hold_are_looked_up_late(streamed: tuple[Memory, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    memory, some = streamed
    for budget in (0, 5, 60):
        monkeypatch.setattr("rlm.recall.looking.POSTINGS", budget)
        monkeypatch.setattr("rlm.recall.holders.POSTINGS", budget)
        for q in some.questions[:40]:
            quick, _, _ = compared(memory, np.arange(q.about - 30, q.about + 40).clip(1), q.text, 10)
            assert len(quick._own[0]) == budget


SAID = ("The blue boat with the red sail, last week.", "배를 5월에 샀어, 바다에 가려고.", "My cat likes the garden.",
        "고양이가 정원에서 논다.", "Thanks!", "When is the train to the harbour?", "We bought bread at the bakery in May 2023.")
QUESTIONS = ("When did Mina buy the boat in May?", "배는 언제 샀어?", "Who has a cat in the garden?", "what did Joon say about the train",
             "zzz", "boat garden bread sea", "the")


@pytest.fixture(params=["vectors", "words"], scope="module")
def talked(request: pytest.FixtureRequest) -> Iterator[Memory]:
    "Two languages, long texts of several units and vectors, memories that are gone or were written anew."
    with Memory(":memory:", embedder=Toy() if request.param == "vectors" else "none") as memory:
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


WORTHS = st.lists(st.floats(-2, 2), min_size=len(PARTS), max_size=len(PARTS))


@settings(deadline=None, max_examples=60)
@given(inside=st.sets(st.integers(1, 95), min_size=1), k=st.sampled_from([1, 3, 10]), question=st.sampled_from(QUESTIONS), worths=WORTHS)
def test_no_ranking_is_left_out_that_would_have_reached_the_bar(talked: Memory, inside: set[int], k: int, question: str,
                                                                worths: list[float]) -> None:
    talked.index.model()
    index, query, cues = talked.index, talked.query(question), replace(talked.index.cues(question), dates=())
    for mix in (Mix(*worths), Mix()):
        with index.moment(), pytest.MonkeyPatch.context() as patch:
            patch.setattr(index, "mix", mix)
            patch.setattr("rlm.recall.looking.chance", lambda n: 0.1)  # else no vector here would stand out
            look = QuickLook(index)
            stamp = index.meaning.stamp
            source = None if stamp is None else Rows(StoredVectors(index.backend, stamp, index.namespace), index.meaning)
            around = Neighbourhood(index, source, np.array(sorted(inside)))
            best = look.first(around, index.wanted(cues, query.terms), cues, index.meaning.ask(query.vector), k).ranked
            assert look._walked is not None and MAY_REACH.run is not None
            shelf, told = look._walked[0], look._walked[4]
            if len(best) >= k:
                assert MAY_REACH.run(shelf.places.places, look._places[0], *told, shelf.size, best[k - 1].score)
            assert not MAY_REACH.run(shelf.places.places, look._places[0], *told, shelf.size, 1e9)
            assert MAY_REACH.run(shelf.places.places, look._places[0], *told, shelf.size, -np.inf)


def test_most_rankings_that_would_not_do_are_left_out(streamed: tuple[Memory, Any]) -> None:
    memory, some = streamed
    index, left_out = memory.index, 0
    with index.moment():
        source = Rows(StoredVectors(index.backend, index.meaning.stamp, index.namespace), index.meaning)
        for q in some.questions[:60]:
            query, cues, look = memory.query(q.text), index.cues(q.text), QuickLook(index)
            around = Neighbourhood(index, source, np.arange(max(1, q.about - 40), q.about + 50))
            best = look.first(around, index.wanted(cues, query.terms), cues, index.meaning.ask(query.vector), 10).ranked
            s, told, bar = look._walked[0], look._walked[4], best[9].score + 0.35
            left_out += not MAY_REACH.run(s.places.places, look._places[0], *told, s.size, bar)
    assert left_out > 40


def test_who_wants_or_says_very_much_is_left_to_numpy(streamed: tuple[Memory, Any]) -> None:
    memory, some = streamed
    index, q = memory.index, some.questions[0]
    with index.moment():
        query, cues = memory.query(q.text), index.cues(q.text)
        around, terms, many = Neighbourhood(index, None, np.arange(1, 50)), index.wanted(cues, query.terms), list(index.lexical.vocabulary)
        for given_ in ((around, terms, cues, None, FEW + 1, None), (around, many[:MAX_TERMS + 1], cues, None, 10, None)):
            quick, plain = QuickLook(index), Look(index)
            same(quick.first(*given_), plain.first(*given_))
            assert quick._walked is None
            same(quick.second(), plain.second())
        quick.first(around, many[:MAX_TERMS], cues, None, 10, None)
        assert quick._walked is not None


def test_what_it_finds_is_what_a_search_of_everything_finds(streamed: tuple[Memory, Any]) -> None:
    memory, some = streamed
    for q in some.questions[150:190]:
        query = memory.query(q.text)
        with memory.index.moment():
            right = memory.index.best(query, 10, Filters())[1][:10]
        _, first, _ = compared(memory, np.arange(1, 701), q.text, 10)
        assert [r.seq for r in first.ranked[:10]] == [r.seq for r in right] and first.left == 0


def test_a_namespace_of_nothing_has_an_empty_neighbourhood() -> None:
    with Memory(":memory:", embedder="none", checkpoints="full") as memory:
        memory.index.model()
        assert not len(memory.index.catalogue["seq"])
        _, first, second = compared(memory, [], "a boat", 10)
        assert first == second._replace(ranked=first.ranked) and not first.ranked and first.size == 0 == first.left


def test_what_came_later_is_not_found_yet_and_other_dimensions_are_refused(streamed: tuple[Memory, Any]) -> None:
    memory, some = streamed
    q, early = some.questions[-1], np.ones(500, bool)  # who may be found was noted when there were five hundred
    index, query = memory.index, memory.query(q.text)
    with index.moment():
        around = Neighbourhood(index, None, np.arange(1, 701))
        few = Neighbourhood(index, None, np.arange(1, 9))
        for one in (around, few):
            quick = QuickLook(index)
            found = [quick.first(one, index.wanted(index.cues(q.text), query.terms), index.cues(q.text), None, 200, early), quick.second()]
            numbers = index.catalogue.numbers([r.seq for seen in found for r in seen.ranked])
            assert len(numbers) and numbers.max() < 500
        for vector in (query.vector[:100], np.append(query.vector, 1), query.vector[None]):
            with pytest.raises(InvalidInput, match="384 numbers"):
                index.meaning.ask(vector)
            with interpreted(), pytest.raises(InvalidInput, match="384 numbers"):
                index.meaning.ask(vector)


def test_all_at_once_is_one_after_the_other(streamed: tuple[Memory, Any]) -> None:
    memory, some = streamed
    index, there, right, looks, names = memory.index, list[str](), list[str](), list[int](), ["W1", "W2", "W3", "W4"]
    with index.moment():
        stamp = index.meaning.stamp
        source = Rows(StoredVectors(index.backend, stamp, index.namespace), index.meaning)
        places = [Neighbourhood(index, source, np.arange(a, a + 100)) for a in (1, 200, 400, 550)]
        where = np.array([p.vectors.rows.mean(axis=0) for p in places])
        where = np.asarray(where / np.linalg.norm(where, axis=1)[:, None], np.float32)
        around = shelved(names, where, [*(p.shelf for p in places[:3]), None], index.numbering)
        at_once, each, documents = QuickRecall(index), QuickLook(index), index.lexical.documents
        for n, q in enumerate(some.questions):
            query, cues, passing = memory.query(q.text), index.cues(q.text), np.arange(700) % 7 > 0 if n % 3 == 0 else None
            terms, asked, k, spare = index.wanted(cues, query.terms), index.meaning.ask(query.vector), 1 + n % 12, 0.5 - n % 2
            measured, said = at_once.recall(around, terms, cues, query.vector, k, passing, 1.5, spare)
            if measured is None:
                assert cues.dates
                continue
            assert measured[2:] == asked[2:] and (measured.unit == asked.unit).all() and (measured.vector == asked.vector).all()
            best = int((where @ asked.unit).argmax())
            there.append("" if said is None else said.slot)
            fits = float(where[best] @ asked.unit - asked.mean) / asked.spread >= 1.5
            right.append(names[best] if fits and best < 3 else "")
            assert (said is None) == (fits and best == 3)
            if right[-1]:
                first = each.first(places[best], terms, cues, asked, k, passing)
                bar = spare + lifted(cues) + luck(k, documents - 100)
                looks.append(1 if stands(first.ranked, k, bar + MIX.words * first.left) else 2)
                seen = first if looks[-1] == 1 else each.second()
                assert bool(said.ranked) == stands(seen.ranked, k, bar + MIX.words * seen.left)
                assert list(said.ranked) == (list(seen.ranked) if said.ranked else [])
                assert said.declined == ("" if said.ranked else "too few" if len(seen.ranked) < k else "too weak")
    assert there == right and set(right) == {"", *names[:3]} and set(looks) == {1, 2}


def test_a_neighbourhood_of_everything_needs_no_bar(streamed: tuple[Memory, Any]) -> None:
    memory, some = streamed
    index, q = memory.index, some.questions[3]
    with index.moment():
        source = Rows(StoredVectors(index.backend, index.meaning.stamp, index.namespace), index.meaning)
        all_ = Neighbourhood(index, source, np.arange(1, 701))
        asked = index.meaning.ask(memory.query(q.text).vector)
        around = shelved(["W1"], asked.unit[None], [all_.shelf], index.numbering)
        given_ = index.wanted(index.cues(q.text), memory.query(q.text).terms), index.cues(q.text), memory.query(q.text).vector
        for k, spare in ((10, 1e9), (FEW, 1e9)):
            said = QuickRecall(index).recall(around, *given_, k, None, 1.5, spare)[1]
            assert said is not None and len(said.ranked) and said.slot == "W1"


@pytest.fixture
def large(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Memory, Any]]:
    "The same, but for vectors: there are too many of them to be in memory, and their codes have axes."
    some, path = stream(700, 4, 60), tmp_path / "memory.db"
    begun(path, some)
    monkeypatch.setattr("rlm.store.meaning.WHOLE", 0)
    with Memory(path, embedder=model_of(some), checkpoints="full") as memory:
        memory.index.meaning._tuning = replace(DEFAULTS, axes_from=256)
        memory.index.model()
        for turn in list(some.turns())[some.live:some.live + 20]:
            memory.write(**turn)
            memory.index.model()
        assert not memory.index.meaning.few and len(memory.index.meaning._index.state.recent)
        yield memory, some


def around_the_middle(index: Any) -> tuple[Neighbourhood, Any]:
    "A neighbourhood of a third of it, and a slot that each question belongs to."
    source = Rows(StoredVectors(index.backend, index.meaning.stamp, index.namespace), index.meaning)
    one = Neighbourhood(index, source, np.arange(200, 420))
    return one, shelved(["W1"], one.vectors.rows.mean(axis=0)[None], [one.shelf], index.numbering)


def test_codes_are_compared_at_once_too(large: tuple[Memory, Any]) -> None:
    memory, some = large
    index, looks, apart = memory.index, list[int](), list[float]()
    with index.moment():
        one, around = around_the_middle(index)
        at_once, plain = QuickRecall(index), Look(index)
        for q in some.questions:
            query, cues = memory.query(q.text), index.cues(q.text)
            terms, asked = index.wanted(cues, query.terms), index.meaning.ask(query.vector)
            said = at_once.recall(around, terms, cues, query.vector, 10, None, -99.0, 0.5)[1]
            assert (said is None) == bool(cues.dates)
            with interpreted():
                first = plain.first(one, terms, cues, asked, 10)
                bar = 0.5 + lifted(cues) + luck(10, index.lexical.documents - len(one.seqs))
                seen = first if stands(first.ranked, 10, bar + MIX.words * first.left) else plain.second()
            looks.append(1 if seen is first else 2)
            needed = bar + MIX.words * seen.left
            if said is not None and abs(seen.ranked[9].score - needed) > 0.05:
                assert bool(said.ranked) == stands(seen.ranked, 10, needed)
                found, right = ({r.seq: r.score for r in ranked} for ranked in (said.ranked, seen.ranked))
                apart += [abs(score - right[seq]) for seq, score in found.items() if seq in right]
                assert not found or len(found.keys() & right.keys()) > 8
    assert set(looks) == {1, 2} and 0 < max(apart) < 0.05, "codes in axes of whole steps are near, and not the same"


def test_what_loops_cant_read_goes_the_long_way(large: tuple[Memory, Any]) -> None:
    memory, some = large
    index, q = memory.index, next(q for q in some.questions if not memory.index.cues(q.text).dates)
    given_ = index.wanted(index.cues(q.text), memory.query(q.text).terms), index.cues(q.text), memory.query(q.text).vector
    with index.moment():
        look, around = QuickRecall(index), around_the_middle(index)[1]
        asked, said = look.recall(around, *given_, 10, None, -99.0, -99.0)
        assert asked is not None and said.ranked
        assert look.recall(around, *given_, 10, None, -99.0, 99.0)[1].declined == "too weak"
        codes, state = index.meaning._index, index.meaning.state
        codes.state = replace(state, base=replace(state.base, axes=None))
        asked, said = look.recall(around, *given_, 10, None, -99.0, 99.0)
        assert asked is not None and said is None, "codes without axes"
        codes.state = state
        assert look.recall(around, *given_, 10, None, -99.0, 99.0)[1].declined == "too weak"


def test_nothing_old_is_kept_alive_or_read(large: tuple[Memory, Any]) -> None:
    memory, some = large
    index, q = memory.index, next(q for q in some.questions if not memory.index.cues(q.text).dates)
    given_ = index.wanted(index.cues(q.text), memory.query(q.text).terms), index.cues(q.text), memory.query(q.text).vector, 10, None, -99.0
    with index.moment():
        look, around = QuickRecall(index), around_the_middle(index)[1]
        right, before = look.recall(around, *given_, 0.5)[1], ref(index.meaning.state.base.rows.head)
        position = index.position
        index.meaning._index.fold()
        assert look.recall(around, *given_, 0.5)[1].ranked.seqs.tolist() == right.ranked.seqs.tolist() != []
        gc.collect()
        assert before() is None and index.position is position, "a fold makes a new base, and what is asked next reads that"
        segments = [ref(s.unit) for s in index.lexical.segments]
        index.lexical.compact()
        look.recall(around, *given_, 0.5)
        gc.collect()
        assert len(segments) > 1 and not any(s() for s in segments)


def test_what_was_interrupted_begins_anew(large: tuple[Memory, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    memory, _ = large
    look = QuickRecall(memory.index)
    places = look.ready(10)
    with monkeypatch.context() as patch:
        patch.setattr(look, "_measure", lambda: (_ for _ in ()).throw(KeyboardInterrupt()))
        with pytest.raises(KeyboardInterrupt):
            look.ready(1000)
    assert look._as_of[0] == ("", 0) and look.ready(1000) is not places and look.ready(1000) is look.ready(1000)


def test_a_date_raises_no_other_bar(streamed: tuple[Memory, Any]) -> None:
    memory, some = streamed
    index = memory.index
    with index.moment():
        one, around = around_the_middle(index)
        q = next(q for q in some.questions if index.cues(q.text) == Cues(script=-1))
        query, looks = memory.query(q.text), [QuickRecall(index), QuickRecall(index)]
        given_ = index.wanted(index.cues(q.text), query.terms), index.cues(q.text), query.vector, 10, None
        looks[0].first(one, given_[0], index.cues("in May 2024"), index.meaning.ask(query.vector), 10)
        for spare in np.arange(0, 2, 0.1):
            said = [look.recall(around, *given_, RELEVANCE, spare)[1] for look in looks]
            assert said[0].declined == said[1].declined and list(said[0].ranked) == list(said[1].ranked)
        assert looks[0]._tell(Cues(script=-1), 10)[1][local_loops.BAR] == SPARE


def test_what_is_being_erased_is_no_answer(large: tuple[Memory, Any]) -> None:
    memory, some = large
    index, said = memory.index, set[str]()
    with index.moment():
        look, around = QuickRecall(index), around_the_middle(index)[1]
        for q in some.questions:
            given_ = index.wanted(index.cues(q.text), memory.query(q.text).terms), index.cues(q.text), memory.query(q.text).vector, 10, None
            codes, state = index.meaning._index, index.meaning.state  # after a question was embedded, the index is in step: made anew
            for spare in np.arange(-1, 3, 0.1):
                codes.state = state
                before = look.recall(around, *given_, -99.0, spare)[1]
                codes.state = replace(state, base=replace(state.base, intact=lambda: False))  # the file was overwritten
                after = look.recall(around, *given_, -99.0, spare)[1]
                said.add("" if after is None else after.declined)
                assert before is None or list(after.ranked) == list(before.ranked) or after.declined == "being erased"
    assert said == {"", "too weak", "being erased"}, "the first look reads no codes; and what is too weak is so anyway"


def test_what_cant_be_done_at_once_is_left_to_others(streamed: tuple[Memory, Any]) -> None:
    memory, some = streamed
    index, vector, no = memory.index, memory.query(some.questions[0].text).vector, (None, None)
    with index.moment():
        here, cues = Neighbourhood(index, None, np.arange(1, 50)).shelf, index.cues("boats")
        around, nothing = shelved(["W1"], vector[None], [here], 0), shelved([], np.zeros((0, 0), np.float32), [], 0)
        assert QuickRecall(index).recall(around, ["boat"], cues, vector, 10, None, 1.5, 0.5)[0] is not None
        for given_ in ((nothing, ["boat"], cues, vector, 10), (around, ["boat"], index.cues("in May 2024"), vector, 10),
                       (around, ["boat"], cues, vector[:100], 10), (around, ["boat"], cues, vector[None], 10),
                       (around, ["boat"], cues, vector, FEW + 1), (around, ["boat"] * (MAX_TERMS + 1), cues, vector, 10)):
            assert QuickRecall(index).recall(*given_, None, 1.5, 0.5) == no
        with interpreted():
            assert QuickRecall(index).recall(around, ["boat"], cues, vector, 10, None, 1.5, 0.5) == no
    with Memory(":memory:", embedder=Toy()) as empty:
        empty.index.model()
        toy = np.ones((1, 64), np.float32)
        assert QuickRecall(empty.index).recall(shelved(["W1"], toy, [None], 0), ["boat"], cues, toy[0], 10, None, 1.5, 0.5) == no


def test_each_array_is_read_as_what_it_is() -> None:
    kinds = {"shelf": local_loops.SHELF.split(), "place": local_loops.PLACE.split(), "index": local_loops.INDEX.split(),
             "model": local_loops.MODEL.split(), "vectors": local_loops.WHOLE.split(), "tables": local_loops.ALL.split()}
    wide = {("shelf", "ROWS"), ("place", "ADDED"), ("place", "FOUND"), ("model", "CODES"), ("vectors", "VECTORS"), ("tables", "SUBJECTS"),
            *(("tables", name) for name in ("AROUND", "WORK", "EVERY", "PARTED", "MEASURED", "COMPARED"))}
    segment, read = local_loops.SEGMENT.split(), set[tuple[str, int]]()
    for node in ast.walk(ast.parse(Path(local_loops.__file__).read_text("utf-8"))):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and isinstance(getattr(local_loops, node.func.id, None), Reader):
            (table, at), reader = map(ast.unparse, node.args), getattr(local_loops, node.func.id)
            if table == "segments":
                place = int(at.rpartition("+")[2]) if "+" in at else 0
                assert at.startswith("4 * s") and reader.kind == segment[place]
            else:
                place = getattr(local_loops, at)
                assert reader.kind == kinds[table][place] and reader.rows == ((table, at) in wide), ast.unparse(node)
            read.add((table, place))
    assert len(read) == sum(map(len, kinds.values())) + len(segment)  # nothing stands in a table that nobody reads
