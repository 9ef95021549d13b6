"Attention: working memory, the cache, checkpoints, local search and the coordinator."
import itertools
import json
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st
from toy import Toy

from rlm import Memory
from rlm.core.clock import ManualClock
from rlm.core.errors import InvalidInput, ModelMismatch, StoreError
from rlm.recall.attention_state import FLUSH_THRESHOLD
from rlm.recall.checkpoints import Checkpoint, CheckpointManager, nearest_first
from rlm.recall.coordinator import SearchCoordinator
from rlm.recall.local_search import NeighbourhoodCache
from rlm.recall.neighbourhood import LexicalCandidates, Neighbourhood
from rlm.recall.working_memory import Slot
from rlm.search import namespace_index
from rlm.search.candidates import Searcher
from rlm.search.embedding.base import Kind, register_embedder
from rlm.search.embedding.worker import reembed
from rlm.search.ranker import TrainingExample, TrainingReport, feature_matrix, train
from rlm.search.scoring import DEFAULT_WEIGHTS, EMPTY_RANKING, PARTS
from rlm.search.training_examples import save_ranker
from rlm.service.cli.recall import attention_group, status_of
from rlm.store.embedding_model import Vectors

CLOCK = ManualClock("2026-01-01")
ZOE = ("The piano teacher is called Zoe.", "Zoe tunes the piano on Monday.", "The piano of Zoe is black.", "조이의 피아노는 검다")
SUBJECTS = ("boat at sea", "cat and kitten", "garden with tomato", "piano music", "bread of the bakery", "train at the station")


def turns(n: int) -> list[dict[str, Any]]:
    "Ten memories on a subject, then ten on the next."
    return [{"text": f"{SUBJECTS[i // 10 % 6]} number {i} word{i % 7}", "id": f"m{i}", "session": f"s{i // 10}"} for i in range(n)]


@pytest.fixture(autouse=True)
def rolled_out(monkeypatch: pytest.MonkeyPatch, bare: Path) -> None:
    "Local search is off by default."
    monkeypatch.setenv("RLM_CHECKPOINTS", "full")


@pytest.fixture
def full(path: Path, clock: ManualClock) -> Any:
    "A store with 240 memories and a model."
    with Memory(path, clock=clock, embedder=Toy()) as memory:
        memory.write_many(turns(240))
        yield memory


def slots_of(mind: SearchCoordinator) -> dict[str, Slot]:
    "The slots that are in mind, by name."
    return mind.state.working_memory.slots


def places(mind: SearchCoordinator) -> NeighbourhoodCache:
    "The neighbourhoods that are made."
    return mind.local.neighbourhoods


def slot(at: Any = None, context: str = "boats", model: str | None = None) -> Slot:
    return Slot("W1", context, model, None, at or CLOCK.now(), at or CLOCK.now())


def refs(seqs: list[int], relevance: list[float] | None = None) -> list[Checkpoint]:
    now = CLOCK.now()
    return [Checkpoint(s, 1.0 if relevance is None else relevance[n], 0.0, now, now) for n, s in enumerate(seqs)]


# ---- checkpoints

@given(st.sets(st.integers(1, 400), min_size=1, max_size=5), st.integers(0, 30), st.integers(5, 200))
def test_a_neighbourhood_begins_with_its_centres_and_is_cut_afterwards(centres: set[int], radius: int, limit: int) -> None:
    manager = CheckpointManager(radius=radius, limit=limit)
    manager.create_checkpoint(slot(), refs(sorted(centres)), CLOCK.now())
    found = manager.get_checkpoint_radius(slot(), np.arange(1, 401)).tolist()
    assert set(found[:len(centres)]) == centres and len(found) <= limit and len(set(found)) == len(found)
    steps = [min(abs(s - c) for c in centres) for s in found]
    assert steps == sorted(steps) and max(steps) <= radius


@given(st.sets(st.integers(1, 400), min_size=1, max_size=5), st.integers(0, 20), st.integers(0, 20))
@pytest.mark.seed("001 radius")
def test_a_larger_radius_explores_no_less(centres: set[int], radius: int, more: int) -> None:
    manager = CheckpointManager(limit=1000)
    manager.create_checkpoint(slot(), refs(sorted(centres)), CLOCK.now())
    order = np.arange(1, 401)
    small, large = (set(manager.get_checkpoint_radius(slot(), order, radius=r).tolist()) for r in (radius, radius + more))
    assert small <= large


@given(st.lists(st.tuples(st.integers(1, 50), st.floats(0, 1)), min_size=1, max_size=30))
@pytest.mark.seed("001 limits")
def test_at_most_five_stay_those_worth_most(given_: list[tuple[int, float]]) -> None:
    manager, clock = CheckpointManager(), ManualClock("2026-01-01")
    for seq, relevance in given_:
        before = {r.seq: r.worth(clock.now()) for r in manager.of(slot())}
        now = clock.now()
        kept = manager.create_checkpoint(slot(), [Checkpoint(seq, relevance, 0.0, now, now)], now)
        assert len(kept) <= 5 and list(kept) == sorted(kept, key=lambda r: (-r.worth(now), r.seq))
        gone = before.keys() - {r.seq for r in kept}
        assert all(before[s] <= min(r.worth(now) for r in kept) + 1e-12 for s in gone)
        clock.advance(minutes=7)


@pytest.mark.seed("001 decay")
def test_recency_outweighs_relevance_in_time() -> None:
    manager, clock = CheckpointManager(per_slot=1), ManualClock("2026-01-01")
    now = clock.now()
    manager.create_checkpoint(slot(now), [Checkpoint(1, 1.0, 0.0, now, now)], now)
    assert [r.seq for r in manager.create_checkpoint(slot(now), [Checkpoint(2, .6, 0.0, now, now)], now)] == [1]
    later = clock.advance(hours=1)
    assert [r.seq for r in manager.create_checkpoint(slot(now), [Checkpoint(2, .6, 0.0, later, later)], later)] == [2]


def test_another_subject_or_model_makes_checkpoints_stale() -> None:
    manager = CheckpointManager()
    manager.create_checkpoint(slot(), refs([3]), CLOCK.now())
    assert [r.seq for r in manager.of(slot())] == [3]
    assert manager.of(slot(context="cats")) == manager.of(slot(model="e5")) == ()
    assert not len(manager.get_checkpoint_radius(slot(context="cats"), np.arange(1, 10)))


def test_links_are_near_too() -> None:
    manager = CheckpointManager(radius=1, neighbours=lambda seqs, limit: (np.array([300, 7000]), np.array([.9, .9])))
    manager.create_checkpoint(slot(), refs([10]), CLOCK.now())
    assert set(manager.get_checkpoint_radius(slot(), np.arange(1, 401)).tolist()) == {9, 10, 11, 300}  # 7000 is not there


@given(st.lists(st.lists(st.tuples(st.integers(1, 30), st.integers(0, 9)), min_size=1), min_size=1, max_size=3), st.integers(1, 40))
def test_each_memory_counts_once_by_its_nearest_place(found: list[list[tuple[int, int]]], limit: int) -> None:
    arrays = [(np.array([s for s, _ in part]), np.array([p for _, p in part])) for part in found]
    best: dict[int, int] = {}
    for seq, place in itertools.chain.from_iterable(found):
        best[seq] = min(place, best.get(seq, place))
    assert nearest_first(arrays, limit).tolist() == sorted(best, key=lambda s: (best[s], s))[:limit]


# ---- scoring

def test_a_neighbourhood_scores_as_the_index_does(full: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    index = full.index
    monkeypatch.setattr(index.scorer, "ranker", replace(DEFAULT_WEIGHTS, opening=0.0))  # moves what was found, after scoring
    full.recall("boat at sea")
    with index.snapshot():
        every = Neighbourhood(index, places(full.attention).vectors(), index.metadata["seq"].astype(np.int64))
        for question in ("boat number 3", "a kitten, word5", "고양이", "nothing of the kind", "tomato 22 in the garden"):
            query = full.query(question)
            searcher = Searcher(index)
            right = searcher.retrieve_and_rank(query, 10)[1][:10]
            features = index.scorer.query_features(query.text)
            walked = full.attention.local.ranker.lexical.score(searcher.candidates.plan(features, query), every.units)
            heard = every.candidates(walked.inside, index.semantic.measure(query.vector))
            ours = index.scorer.rank(features, heard, 10)[:10]
            assert [r.seq for r in ours] == [r.seq for r in right]
            assert np.allclose([r.score for r in ours], [r.score for r in right], atol=1e-5)


def test_long_texts_have_several_units_and_vectors(path: Path) -> None:
    with Memory(path, embedder=Toy()) as memory:
        memory.write_many([{"text": " ".join(f"{SUBJECTS[(i + j) % 6]} w{j * i}." for j in range(i * 15 + 1))} for i in range(12)])
        memory.recall("boat")
        with memory.index.snapshot():
            every = Neighbourhood(memory.index, places(memory.attention).vectors(), memory.index.metadata["seq"].astype(np.int64))
            for question in ("w30 boat", "kitten w12 w24", "bread"):
                query = memory.query(question)
                right = memory.ctx.search.searcher.retrieve_and_rank(query, 12)[1][:12]
                features = memory.index.scorer.query_features(query.text)
                plan = memory.ctx.search.searcher.candidates.plan(features, query)
                walked = memory.attention.local.ranker.lexical.score(plan, every.units)
                heard = every.candidates(walked.inside, memory.index.semantic.measure(query.vector))
                ours = memory.index.scorer.rank(features, heard, 12)[:12]
                assert [r.seq for r in ours] == [r.seq for r in right]


@given(st.lists(st.text("abcd ", min_size=1, max_size=12), min_size=1, max_size=40), st.text("abcde ", max_size=8),
       st.sets(st.integers(0, 39), max_size=10), st.integers(1, 12))
def test_a_walk_along_postings_scores_as_the_index_does(texts: list[str], question: str, inside: set[int], n: int) -> None:
    with Memory(":memory:", embedder="none") as memory:
        memory.write_many([{"text": f"{text} x"} for text in texts])
        index = memory.index
        with index.snapshot():
            lexical = index.lexical
            plan = lexical.plan(list(dict.fromkeys(question.split())))
            numbers = np.array(sorted(i for i in inside if i < len(texts)), np.int64)
            right = lexical.score_all(plan) / (plan.idf_sum or 1.0)
            right = right.copy()
            lexical_candidates = LexicalCandidates(index)
            walked = lexical_candidates.score(plan, lexical.docs.passages(numbers).astype(np.int32))
            assert np.allclose(walked.inside, right[numbers], atol=1e-5) and not lexical_candidates._sums.any()
            found, right[numbers] = lexical_candidates.best(walked, n), 0
            assert np.allclose(found.scores, right[found.docs], atol=1e-5) and not set(found.docs) & set(numbers)
            assert len(found.docs) == min(n, np.count_nonzero(right)) and walked.left == pytest.approx(right.max(initial=0), abs=1e-5)
            right[found.docs] = 0
            assert found.left == pytest.approx(right.max(initial=0), abs=1e-5)


# ---- the coordinator

def test_local_search_is_off_unless_asked_for(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("RLM_CHECKPOINTS")
    with Memory(path, embedder=Toy()) as memory:
        memory.write_many(turns(60))
        assert memory.attention.checkpoints() == "off"
        for n in range(3):
            assert ids(memory.recall(f"boat word{n}")) == ids(memory.search(f"boat word{n}"))
        assert not memory.attention.state.checkpoints.held and not slots_of(memory.attention)


def ids(hits: Any) -> list[str]:
    return [h.id for h in hits]


@pytest.mark.seed("001 envelope")
def test_the_envelope_tells_who_answered(full: Memory) -> None:
    first = full.attention.intelligent_search("boat at sea word3")
    assert set(first) == {"results", "source", "search_time_ms", "result_count"}
    assert first["source"] == "ltm_fallback" and first["result_count"] == len(first["results"]) == 10
    again, reworded = full.attention.intelligent_search(" Boat at  sea word3"), full.attention.intelligent_search("word3 boat sea at")
    assert again["source"] == "cache" and [r.seq for r in again["results"]] == [r.seq for r in first["results"]]
    assert reworded["source"] in ("working_memory", "checkpoint", "ltm_fallback")
    counts = full.attention.counts
    assert counts.searches == 3 and counts.answered["cache"] == 1 and sum(v["share"] for v in counts.as_dict()["layers"].values()) == 1
    assert first["results"][0].record.text.startswith("boat at sea") and {r.layer for r in again["results"]} == {"cache"}
    assert full.recall("boat at sea word3")[0].layer == "cache"


@pytest.mark.seed("001 keys")
def test_a_hit_of_each_layer_tells_what_the_design_asks_for(full: Memory) -> None:
    full.attention.local.margin = -9.0
    seen = set[str]()
    for question in ("boat at sea word3", "boat at sea word3", "sea at boat word3", "the boat word5", "the boat at sea, word4"):
        vector = Toy().embed([question], "query")[0]
        said = full.attention.intelligent_search(question, vector)
        hit = said["results"][0].as_dict()
        seen.add(said["source"])
        assert hit["content"] == full.attention.record(hit["block_index"]).text and hit["keywords"] == []
        assert -1 <= hit["checkpoint_relevance"] <= 1 and 0.2 < hit["similarity_score"] <= 1.001
        assert hit["final_score"] == pytest.approx(0.7 * hit["similarity_score"] + 0.3 * hit["checkpoint_relevance"])
    assert len(seen) > 1


@pytest.mark.parametrize("bad", [np.ones(7), np.ones(500), np.ones((1, 16)), np.full(16, np.nan), [1.0, 2.0]],
                         ids=["short", "long", "deep", "not a number", "list"])
def test_a_vector_that_cannot_be_compared_is_refused(full: Memory, bad: Any) -> None:
    full.attention.intelligent_search("boat at sea word3")
    for text in ("word3 boat sea at", "boat at sea word4", "zanzibar"):  # as before in other words, on the same subject, on none
        with pytest.raises(InvalidInput, match="The question's vector"):
            full.attention.intelligent_search(text, bad)
    good = Toy().embed(["boat at sea word4"], "query")[0]
    assert full.attention.intelligent_search("boat at sea word4", good.tolist())["source"] == "checkpoint"  # nothing was remembered


@pytest.mark.parametrize("n", [20, 240])
def test_a_model_that_makes_no_numbers_is_refused_by_every_search(path: Path, n: int) -> None:
    class Broken(Toy):
        def embed(self, texts: Sequence[str], kind: Kind) -> Vectors:
            return super().embed(texts, kind) * np.float32(np.nan if kind == "query" else 1)

    with Memory(path, embedder=Broken()) as memory:
        memory.write_many(turns(n))
        for search in (memory.search, memory.recall, memory.intelligent_search):
            with pytest.raises(InvalidInput, match="the length nan"):
                search("boat at sea word4")


@pytest.mark.seed("001 working-memory")
def test_the_same_question_in_other_words_is_answered_from_mind(path: Path) -> None:
    with Memory(path, embedder="none") as memory:
        memory.write_many(turns(60))
        first = memory.attention.intelligent_search("boat word3 sea")
        second = memory.attention.intelligent_search("sea, boat: word3!")
        assert second["source"] == "working_memory" and [r.seq for r in second["results"]] == [r.seq for r in first["results"]]
        other = memory.attention.intelligent_search("sea boat word4")
        assert [r.record.id for r in other["results"]][:3] == ids(memory.search("sea boat word4"))[:3]


@pytest.mark.seed("001 working-memory")
@pytest.mark.parametrize("given", [True, False])
def test_what_was_just_written_is_answered_from_mind_and_its_slot_is_fresh(path: Path, clock: ManualClock, given: bool) -> None:
    with Memory(path, clock=clock, embedder=Toy()) as memory:
        memory.write_many(turns(400))
        mind = memory.attention
        mind.sync()
        for n, text in enumerate(ZOE):
            memory.write(text, id=f"new{n}", session="new")
            mind.sync()
        clock.advance(hours=2)
        faded = max(s.strength(clock.now()) for s in slots_of(mind).values())
        asked = "Who plays the piano, Zoe the teacher?"
        said = mind.intelligent_search(asked, Toy().embed([asked], "query")[0] if given else None, top_k=3)
        assert said["source"] == "working_memory"
        assert [r.record.id for r in said["results"]] == ids(memory.search(asked, 3))
        mind.state.note_local_answers()
        assert faded < 0.3 and slots_of(mind)[said["results"][0].source_slot].strength(clock.now()) == 1


@pytest.mark.seed("001 order")
def test_what_is_in_mind_answers_before_the_cache_and_with_as_many_as_are_wanted(full: Memory) -> None:
    full.attention.sync()
    for n, text in enumerate(ZOE):
        full.write(text, id=f"new{n}", session="new")
        full.attention.sync()
    asked = "Who plays the piano, Zoe the teacher?"
    for _ in range(2):
        said = full.attention.intelligent_search(asked, Toy().embed([asked], "query")[0])
        assert (said["source"], said["result_count"]) == ("working_memory", 10)
        assert [r.record.id for r in said["results"]][:3] == ids(full.search(asked))[:3]


@pytest.mark.parametrize(("one", "other"), [
    ("What did Mina say about the boat?", "What did Joon say about the boat?"), ("the boat in May", "the boat in June"),
    ("Who sold the boat?", "When sold the boat?"), ("민아가 5월에 본 boat", "민아가 7월에 본 boat"),
    ("the boat of 2024-05-04", "the boat of 2024-07-04"),
])
def test_whoever_else_and_whenever_else_is_another_question(path: Path, one: str, other: str) -> None:
    with Memory(path, embedder="none") as memory:
        memory.write_many([{"text": f"the boat has a {what}", "speaker": who, "valid_from": f"2024-0{month}-04",
                            "provenance": {"facts": False}}  # an item of a program: a search shows each
                           for month in (5, 6, 7) for who in ("Mina", "Joon", "민아") for what in ("sail", "mast")])
        memory.recall(one)
        found = memory.recall(other)
        assert ids(found) == ids(memory.search(other)) and not {h.layer for h in found} & {"cache", "working_memory"}


@pytest.mark.seed("001 local")
def test_a_subject_in_mind_is_searched_locally(full: Memory) -> None:
    full.attention.local.margin = -9.0
    for n in range(3):
        full.recall(f"boat at sea word{n}")
    said = full.attention.intelligent_search("the boat at sea, word5")
    assert said["source"] == "checkpoint" and said["results"][0].source_slot == "W1"
    members = places(full.attention).get(slots_of(full.attention)["W1"]).members
    assert {r.seq for r in said["results"]} <= members and len(members) <= 100


def test_who_holds_the_words_is_found_far_from_the_subject(full: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    full.write("zanzibar marzipan in the garden", id="far", session="s2")
    for n in range(4):
        full.recall(f"boat at sea word{n}")
    full.attention.local.margin = -9.0
    local = full.attention.local
    rank = local.ranker.rank
    monkeypatch.setattr(local.ranker, "rank", lambda *given: rank(*given)._replace(ranked=EMPTY_RANKING))
    said = full.attention.intelligent_search("the boat at sea, marzipan, zanzibar")
    assert said["source"] == "checkpoint"
    far = full.get("far").seq
    assert far in [r.seq for r in said["results"]] and far not in places(full.attention).get(slots_of(full.attention)["W1"]).members


def test_what_was_learned_about_ranking_ends_cached_answers(full: Memory) -> None:
    question = "tomato number word1"
    for _ in range(2):
        full.recall(question)
    assert full.recall(question)[0].layer == "cache"
    parts = {name: np.linspace(0, 3, 8) for name in PARTS}
    parts |= dict.fromkeys(("conversation", "before", "asks", "rarity"), np.zeros(8, int))
    examples = [TrainingExample(feature_matrix(parts), parts["words"] < 1, str(n % 2)) for n in range(8)]  # fewer words are better
    save_ranker(full.backend, full.ctx.namespace, train(examples, TrainingReport("a test", 8, "2026-01-01", {})), full.clock)
    hits = full.recall(question)
    assert hits[0].layer != "cache" and ids(hits) == ids(full.search(question))
    assert full.attention.counts.declined["learned ranking"] == 1


def test_other_vectors_make_slots_meaningless(path: Path) -> None:
    with Memory(path, embedder=Toy()) as memory:
        memory.write_many(turns(60))
        memory.recall("boat at sea")
        assert not slots_of(memory.attention), "what was found is learned later"
        memory.attention.state.process_pending()
        assert slots_of(memory.attention)
        memory.attention.state.working_memory.put(replace(next(iter(slots_of(memory.attention).values())), model="another"))
        memory.write("boat at sea again")
        memory.attention.sync()
        assert {s.model for s in slots_of(memory.attention).values()} <= {"toy", Toy().name}


def test_memories_that_get_other_numbers_are_looked_up_again(full: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(namespace_index, "MAX_GAPS", 0)
    engine, index = full.attention.local, full.index
    full.recall("Who has a boat at sea?", 3)
    full.attention.state.process_pending()
    held = next(iter(slots_of(full.attention).values()))
    with index.snapshot():
        before = engine.neighbourhoods.get(held)
    for n in range(200, 240):  # far from the boats that were asked for
        for _ in range(8):
            full.update(f"m{n}", text=f"{SUBJECTS[n // 10 % 6]} number {n} said anew {_}")
    with index.snapshot():
        assert index.doc_id_epoch, "there were enough gaps"
        after = engine.neighbourhoods.get(held)
        assert (index.metadata["seq"][after.docs] == after.seqs).all()
        assert not before.current or after is before


def test_what_is_nearest_to_a_slot_is_searched_for_again_once_it_has_moved_on(full: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    full.recall("boat at sea word1")
    full.attention.state.process_pending()
    engine, meaning, searched = full.attention.local, full.index.semantic, list[int]()
    find, held = meaning.nearest, next(s for s in slots_of(full.attention).values() if s.embedding is not None)
    monkeypatch.setattr(meaning, "nearest", lambda *a: searched.append(1) or find(*a))
    where = held.embedding
    assert where is not None
    aside = np.roll(where, 1) - (np.roll(where, 1) @ where) * where
    aside /= np.linalg.norm(aside)

    def after(cosine: float) -> int:
        moved = replace(held, embedding=np.asarray(cosine * where + (1 - cosine**2) ** 0.5 * aside, np.float32))
        with full.index.snapshot():
            found = engine.neighbourhoods.near(moved)
        assert found is not None and len(found)
        return len(searched)
    engine.neighbourhoods._nearest.clear()
    assert [after(cosine) for cosine in (1.0, 1.0, 0.96)] == [1, 1, 1]
    assert [after(cosine) for cosine in (0.94, 0.95, 0.6, 1.0)] == [2, 2, 3, 4]
    full.write_many([{"text": f"another note {n}"} for n in range(engine.manager.limit - 1)])
    assert after(1.0) == 4
    full.write("one more")
    assert after(1.0) == 5 == after(1.0)
    held = replace(held, context="another subject")
    assert after(1.0) == 6


def test_local_search_never_falls_back_by_itself(full: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    full.recall("boat at sea word1")
    attention = full.attention
    attention.state.process_pending()
    query = full.query("boat at sea word2")
    monkeypatch.setattr(attention.searcher, "retrieve_and_rank", lambda *a: pytest.fail("it searched everything"))
    for least in (-9.0, 1e9):
        attention.local.margin = least
        with attention.index.snapshot():
            asked = attention.index.semantic.measure(query.vector)
            said = attention.local.search_with_checkpoints(query, asked, attention.state.working_memory)
        assert bool(said.ranked) == (least < 0) and (said.declined == "too weak") == (least > 0)


@pytest.mark.parametrize("mode", ["off", "create", "parallel", "full"])
@pytest.mark.seed("001 rollout")
def test_the_setting_is_consulted(path: Path, mode: str) -> None:
    with Memory(path, embedder=Toy(), checkpoints=mode) as memory:
        memory.write_many(turns(240))
        memory.attention.local.margin = -9.0
        found = [memory.attention.intelligent_search(f"boat at sea word{n}") for n in range(5)]
        assert ("checkpoint" in [f["source"] for f in found]) == (mode == "full")
        memory.attention.state.process_pending()
        assert bool(memory.attention.state.checkpoints.held) == (mode != "off")
        assert (memory.attention.counts.compared > 0) == (mode == "parallel")


def test_a_plain_search_moves_nothing(full: Memory) -> None:
    full.recall("boat at sea")
    before = (dict(slots_of(full.attention)), dict(full.attention.state.checkpoints.held), full.attention.counts.searches)
    full.search("piano music")
    assert before == (dict(slots_of(full.attention)), dict(full.attention.state.checkpoints.held), full.attention.counts.searches)


def test_reading_writes_nothing_to_memories(full: Memory) -> None:
    position = full.backend.position()
    for n in range(40):
        full.recall(f"piano word{n}")
    full.attention.flush()
    assert full.backend.position() == position and full.get("m3").access_count == 0


# ---- writes

@pytest.mark.seed("001 working-memory")
def test_what_was_written_is_found_at_once(full: Memory, path: Path) -> None:
    for n in range(3):
        full.recall(f"boat at sea word{n}")
    full.write("boat at sea zanzibar word2", id="new")
    assert ids(full.recall("boat at sea zanzibar word2"))[0] == "new"
    a = full.attention
    assert any(r.seq == 241 for s in slots_of(a).values() for r in a.state.checkpoints.of(s))
    with Memory(path, embedder=Toy()) as other:
        other.write("boat at sea quagga word2", id="other")
    assert ids(full.recall("boat at sea quagga word2"))[0] == "other"


@pytest.mark.seed("001 cache")
def test_a_write_ends_a_cached_answer_only_if_it_may_change_it(full: Memory, path: Path) -> None:
    full.recall("tomato word1")
    with Memory(path, namespace="elsewhere", embedder=Toy()) as other:
        other.write("tomato word1")
    full.record_usage("m3")
    assert full.attention.intelligent_search("tomato word1")["source"] == "cache"
    full.write("tomato word1 word1", id="better", session="s2")
    said = full.intelligent_search("tomato word1")
    assert said["source"] != "cache" and "better" in ids(said["results"])
    assert ids(said["results"]) == ids(full.search("tomato word1"))


def test_records_are_as_they_are_now(full: Memory, path: Path) -> None:
    assert full.recall("tomato word1")[0].memory.access_count == 0
    top = full.recall("tomato word1")[0].id
    with Memory(path, embedder=Toy()) as other:
        other.record_usage(top)
    hit = full.recall("tomato word1")[0]
    assert (hit.layer, hit.memory.access_count) == ("cache", 1)


def in_a_thread(what: Any) -> Any:
    "What comes of it in a thread of its own, which ends, and its connection with it."
    found = list[Any]()
    thread = threading.Thread(target=lambda: found.append(what()))
    thread.start()
    thread.join()
    return found[0]


def test_threads_that_come_and_go_miss_nothing(full: Memory, path: Path) -> None:
    question = "boat at sea word2"
    with Memory(path, embedder=Toy()) as other:
        for n in range(12):  # a new connection tends to get the address, and the two numbers, of the one that is gone
            in_a_thread(lambda: full.recall(question))
            other.write(f"boat at sea word2 word2 {n}", id=f"new{n}")
            assert f"new{n}" in ids(in_a_thread(lambda: full.recall(question, 30)))
            assert ids(in_a_thread(lambda: full.recall(question))) == ids(full.search(question, 10))
            other.delete(f"new{n}")


def test_what_a_transaction_took_back_is_not_remembered(full: Memory) -> None:
    hit = full.attention.intelligent_search("tomato word1")["results"][0]
    before = hit.record.text

    def tried() -> None:
        with full.backend.transaction():
            full.update(hit.record.id, text="never stored")
            assert hit.record.text == "never stored"
            raise RuntimeError

    with pytest.raises(RuntimeError):
        tried()
    assert hit.record.text == before


def test_what_expires_is_gone_everywhere(full: Memory, clock: ManualClock) -> None:
    full.write("bread today only zulu", id="soon", valid_to=clock.now() + timedelta(hours=1))
    for question in ("bread today only zulu", "only zulu bread today", "bread zulu"):
        assert "soon" in ids(full.recall(question))
    clock.advance(hours=2)
    for question in ("bread today only zulu", "only zulu bread today", "bread zulu"):
        assert "soon" not in ids(full.recall(question))


@pytest.mark.parametrize("erase", [False, True])
def test_what_is_deleted_is_gone_from_every_layer(full: Memory, path: Path, erase: bool) -> None:
    full.attention.local.margin = -9.0
    for n in range(4):
        full.recall(f"boat at sea word{n}")
    full.attention.flush()
    gone = full.recall("boat at sea word1")[0].id
    full.delete(gone, erase=erase)
    for question in [f"boat at sea word{n}" for n in range(4)] + ["sea boat word1 at", "boat word6"]:
        assert gone not in ids(full.recall(question))
    seq = int(gone[1:]) + 1
    assert all(seq != r.seq for s in slots_of(full.attention).values() for r in full.attention.state.checkpoints.of(s))
    with Memory(path, embedder=Toy()) as other:
        assert not other.backend.db.query("SELECT 1 FROM slot_refs WHERE seq = ?", (seq,))
        for question in ("boat at sea word1", "boat word6"):
            assert gone not in ids(other.recall(question))


def test_an_erasure_leaves_no_question_behind(path: Path) -> None:
    with Memory(path, embedder=Toy()) as memory:
        memory.write_many(turns(60))
        memory.write("the boat at sea is called Marzipanade", id="secret")
        memory.recall("Who sails the boat Marzipanade at sea?")
        memory.attention.flush()
        assert memory.backend.db.query("SELECT 1 FROM slots WHERE kind = 'working'")
        memory.delete("secret", erase=True)
        assert not memory.backend.db.query("SELECT 1 FROM slots WHERE kind = 'working'")
    assert b"arzipanade" not in path.read_bytes()


# ---- walls

def test_namespaces_are_walls(path: Path) -> None:
    with Memory(path, namespace="one", embedder=Toy()) as one, Memory(path, namespace="two", embedder=Toy()) as two:
        for memory in (one, two):
            memory.write_many([{**t, "text": t["text"] + f" {memory.ctx.namespace}"} for t in turns(240)])
            memory.attention.local.margin = -9.0
        for n in range(6):
            for memory in (one, two):
                assert {h.memory.namespace for h in memory.recall(f"boat at sea word{n}")} == {memory.ctx.namespace}
            one.write(f"boat at sea word{n} fresh")
        for memory in (one, two):
            memory.attention.flush()
            spaces = "SELECT DISTINCT m.namespace FROM slot_refs r JOIN memories m ON m.seq = r.seq WHERE r.namespace = ?"
            assert memory.backend.db.query(spaces, (memory.ctx.namespace,)) == [(memory.ctx.namespace,)]


STEPS = st.lists(st.one_of(
    st.tuples(st.just("ask"), st.integers(0, 5), st.integers(0, 6), st.sampled_from([None, "red", "blue"])),
    st.tuples(st.just("write"), st.integers(0, 5), st.integers(0, 6), st.sampled_from([None, "red", "blue"])),
    st.tuples(st.just("delete"), st.integers(0, 200), st.just(0), st.none()),
    st.tuples(st.just("archive"), st.integers(0, 200), st.just(0), st.none())), max_size=25)


@settings(max_examples=25)
@given(STEPS)
def test_every_layer_gives_only_what_is_there_and_passes(steps: list[tuple[str, int, int, str | None]]) -> None:
    with Memory(":memory:", embedder=Toy(), clock=ManualClock("2026-01-01")) as memory:
        memory.write_many([{**t, "tags": ["red"] if n % 2 else ["blue"]} for n, t in enumerate(turns(120))])
        memory.attention.local.margin = -9.0
        known = [f"m{n}" for n in range(120)]
        for what, a, b, tag in steps:
            if what == "ask":
                hits = memory.recall(f"{SUBJECTS[a]} word{b}", 5, **({"tags": [tag]} if tag else {}))
                assert len({h.id for h in hits}) == len(hits) and [h.rank for h in hits] == list(range(1, len(hits) + 1))
                for h in hits:
                    assert h.memory == memory.get(h.id) and h.memory.status in ("hot", "ltm") and (tag is None or tag in h.memory.tags)
                if hits and hits[0].layer == "cache":
                    assert memory.attention.watcher.generation <= memory.backend.position()[1]
            elif what == "write":
                known.append(memory.write(f"{SUBJECTS[a]} word{b}", tags=[tag] if tag else []).id)
            elif known and what == "delete":
                memory.delete(known.pop(a % len(known)))
            elif known:
                memory.update(known.pop(a % len(known)), status="archived")


@settings(max_examples=15)
@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 6), st.booleans()), min_size=1, max_size=12))
@pytest.mark.seed("001 rollout")
def test_without_checkpoints_recall_is_search(steps: list[tuple[int, int, bool]]) -> None:
    with Memory(":memory:", embedder=Toy(), checkpoints="off", clock=ManualClock("2026-01-01")) as memory:
        memory.write_many(turns(60))
        for n, (a, b, write) in enumerate(steps):
            if write:  # no text twice: a search makes one hit of those
                memory.write(f"{SUBJECTS[a]} word{b} more {n}")
            question = f"{SUBJECTS[a]} word{b}"
            assert ids(memory.recall(question)) == ids(memory.search(question))


# ---- lasting

@pytest.mark.seed("001 persistence")
def test_attention_outlives_the_process(path: Path, clock: ManualClock) -> None:
    with Memory(path, clock=clock, embedder=Toy()) as memory:
        memory.write_many(turns(240))
        for n in range(3):
            memory.recall(f"boat at sea word{n}")
        slots = dict(slots_of(memory.attention))
        held = {name: refs for name, (_, refs) in memory.attention.state.checkpoints.held.items()}
    with Memory(path, clock=clock, embedder=Toy()) as memory:
        memory.recall("piano music word1")
        again = memory.attention
        for name, slot_ in slots.items():
            assert slots_of(again)[name].context_hash == slot_.context_hash
            assert {r.seq for r in again.state.checkpoints.of(slots_of(again)[name])} == {r.seq for r in held[name]}
        memory.attention.local.margin = -9.0
        assert memory.attention.intelligent_search("boat at sea word6")["source"] == "checkpoint"


@pytest.mark.parametrize("after", ["close", "ask", "write"])
def test_what_was_erased_is_not_learned_later(path: Path, after: str) -> None:
    with Memory(path, embedder=Toy()) as memory:
        memory.write_many(turns(60))
        memory.write("the boat at sea is called Marzipanade", id="secret")
        memory.recall("Who sails the boat Marzipanade at sea?")
        assert len(memory.attention.state.pending) == 1 and memory.attention.state.unsaved
        memory.delete("secret", erase=True)
        if after != "close":
            memory.recall("piano music") if after == "ask" else memory.write("bread of the bakery")
            memory.attention.sync()
            assert all("Marzipanade" not in s.context for s in slots_of(memory.attention).values())
            assert all("Marzipanade" not in f.text for f in memory.attention.state.pending)
    with Memory(path, embedder=Toy()) as memory:
        memory.attention.peek()
        assert all("Marzipanade" not in s.context for s in slots_of(memory.attention).values())
    assert "marzipanade" not in str(in_store(path)).casefold()


def test_what_was_found_is_learned_by_the_next_who_needs_it(path: Path) -> None:
    with Memory(path, embedder=Toy(), checkpoints="create") as memory:
        memory.write_many(turns(240))
        mind = memory.attention
        for n in range(3):
            memory.recall(f"boat at sea word{n}")
        texts = [f.text for f in mind.state.pending]
        assert texts == [f"boat at sea word{n}" for n in range(3)] and mind.state.unsaved == 3 and not slots_of(mind)
        memory.write("boat at sea again")
        mind.sync()
        assert not mind.state.pending and mind.state.checkpoints.held
        memory.recall("piano music word1")
    with Memory(path, embedder=Toy(), checkpoints="create") as memory:
        memory.attention.peek()
        assert "piano music word1" in {s.context for s in slots_of(memory.attention).values()}  # it was learned at the close
        for n in range(3 * FLUSH_THRESHOLD):
            memory.recall(f"garden with tomato and {n}")
            assert len(memory.attention.state.pending) < FLUSH_THRESHOLD
        assert slots_of(memory.attention)


def test_what_was_learned_is_used_without_a_write(full: Memory) -> None:
    "A neighbourhood of which more is known by now is made anew when what is there declines, not only when something is written."
    mind = full.attention
    full.recall("boat at sea word1")
    mind.state.process_pending()
    (slot,) = slots_of(mind).values()
    with full.index.snapshot():
        before = places(mind).get(slot)
    places(mind).mark_stale(slot.slot_id)
    mind.local.margin = -9.0
    assert mind.intelligent_search("boat at sea word2")["source"] == "checkpoint" and places(mind).get_possibly_stale(slot) is before
    mind.local.margin = 1e9
    assert full.attention.intelligent_search("boat at sea word3")["source"] == "ltm_fallback"
    assert places(mind).get_possibly_stale(slot) is not before and not places(mind).is_stale(slot)


def test_a_question_waits_only_for_what_may_help_it(full: Memory) -> None:
    mind = full.attention
    full.recall("boat at sea word1")
    assert len(mind.state.pending) == 1 and not slots_of(mind)
    full.recall("piano music word1")  # another subject: what is known of boats would not help
    assert len(mind.state.pending) == 2 and not slots_of(mind)
    assert mind.intelligent_search("boat at sea word2")["source"] == "checkpoint" and not mind.state.pending and len(slots_of(mind)) == 2
    full.recall("cat and kitten word3")
    full.write("something new")
    full.recall("tomato word1")
    assert len(slots_of(mind)) >= 3 and len(mind.state.pending) == 1, "a write is when the rest is learned"


@pytest.mark.parametrize("dim", [16, 32])
def test_nothing_is_learned_of_another_models_vectors(path: Path, dim: int) -> None:
    register_embedder("wide", lambda rest, settings: Toy("wide", dim))
    with Memory(path, embedder=Toy()) as memory:
        memory.write_many(turns(60))
        memory.recall("boat at sea")
        reembed(memory.backend, Toy("wide", dim))
        with pytest.raises(ModelMismatch):
            memory.recall("cat and kitten word3")
    assert not in_store(path)[0]


def test_what_is_known_of_a_question_is_forgotten_when_the_index_moves_on(path: Path) -> None:
    said = [{**t, "speaker": ("Anna", "Boris", "Clara")[n % 3]} for n, t in enumerate(turns(60))]
    with Memory(path, embedder=Toy()) as memory, Memory(path, embedder=Toy()) as other:
        memory.write_many(said)
        memory.recall("bread")
        features, once = memory.index.scorer.query_features, list[Any]()

        def heard_then_written(text: str) -> Any:
            found = features(text)
            if not once:
                once.append(other.delete(["m0"], erase=True))  # all is read anew, and speakers get other numbers
            return found
        memory.index.scorer.query_features = heard_then_written  # type: ignore[method-assign]
        found = memory.attention.intelligent_search("What did Boris say of the piano music?", top_k=5)["results"]
        with memory.index.snapshot():
            query = memory.query("What did Boris say of the piano music?")
            right = memory.ctx.search.searcher.retrieve_and_rank(query, 5)[1][:5]
        assert once and [r.seq for r in found] == [r.seq for r in right] and found[0].record.speaker == "Boris"


def test_what_is_found_while_attention_waits_to_be_stored_is_stored_or_counted(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with Memory(path, embedder=Toy()) as memory:
        memory.write_many(turns(240))
        memory.recall("boat at sea")
        mind, db, waits = memory.attention, memory.backend.db, list[threading.Thread]()
        transaction = db.transaction

        def waiting(*given: Any) -> Any:
            if not waits:
                waits.append(threading.Thread(target=mind.intelligent_search, args=("piano music",)))
                waits[0].start()
                waits[0].join()
            return transaction(*given)
        monkeypatch.setattr(db, "transaction", waiting)
        mind.flush()
    with Memory(path, embedder=Toy()) as memory:
        memory.attention.peek()
        assert {s.context for s in slots_of(memory.attention).values()} == {"boat at sea", "piano music"}


def test_what_cant_be_learned_leaves_the_rest(full: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    mind = full.attention
    mind.checkpoints = lambda: "create"  # nothing is learned in between
    for n in range(4):
        full.recall(f"boat at sea word{n}")
    assert len(mind.state.pending) == mind.state.unsaved == 4
    train, asked = mind.state.learn, list[str]()

    def fails(answer: Any) -> None:
        asked.append(answer.text)
        if len(asked) == 2:
            raise StoreError("no", "again")
        train(answer)
    monkeypatch.setattr(mind.state, "learn", fails)
    with pytest.raises(StoreError):
        mind.state.process_pending()
    assert len(mind.state.pending) == 2
    mind.state.process_pending()
    assert asked == [f"boat at sea word{n}" for n in range(4)] and not mind.state.pending and mind.state.unsaved == 3


def in_store(path: Path) -> Any:
    "What a store keeps of attention."
    with sqlite3.connect(path) as db:
        found = [db.execute(f"SELECT * FROM {table} ORDER BY 1, 2, 3").fetchall() for table in ("slots", "slot_refs")]
    db.close()
    return found


@pytest.mark.parametrize("mode", ["off", "create", "full"])
def test_to_look_at_attention_keeps_nothing(path: Path, monkeypatch: pytest.MonkeyPatch, mode: str) -> None:
    with Memory(path, embedder="subjects") as memory:
        memory.write_many(turns(60))
        memory.recall("boat at sea")
    with Memory(path, embedder="subjects") as memory:
        memory.write("a cat and a kitten", id="meanwhile")
    monkeypatch.setenv("RLM_CHECKPOINTS", mode)
    before = in_store(path)
    said = CliRunner().invoke(attention_group, ["status", "--db", str(path), "--json"], env={"RLM_EMBEDDER": "subjects"})
    assert said.exit_code == 0 and in_store(path) == before and before[0]
    shown = [c["id"] for s in json.loads(said.output)["slots"] for c in s["checkpoints"]]
    assert ("meanwhile" in shown) == (mode != "off"), "what is new is shown, if it would be in mind"
    with Memory(path, embedder="subjects") as memory:
        memory.recall("piano music")
        status_of(memory.attention)
    assert (in_store(path) == before) == (mode == "off"), "what a question has changed is stored, whoever looks"
    assert str(memory.settings.checkpoints) == mode


@pytest.mark.parametrize("embedder", ["subjects", "none"])
def test_use_counts_over_processes(path: Path, embedder: str) -> None:
    with Memory(path, embedder=embedder) as memory:
        memory.write_many(turns(60))
        memory.recall("boat at sea")
        memory.recall("piano music")
    before = {s["slot"]: s for s in shown(path, embedder)}
    for n in range(3):
        with Memory(path, embedder=embedder) as memory:
            memory.attention.local.margin = -9.0
            said = memory.attention.intelligent_search(f"boat at sea number {n}", top_k=3)
            assert said["source"] in ("working_memory", "checkpoint")
            led = said["results"][0].source_slot
        after = {s["slot"]: s for s in shown(path, embedder)}
        assert after[led]["uses"] == before[led]["uses"] + 1
        before = after


def test_two_processes_that_keep_attention_leave_each_other_theirs(path: Path) -> None:
    with Memory(path, embedder=Toy()) as memory:
        memory.write_many(turns(60))
        memory.recall("train at the station")
    with Memory(path, embedder=Toy()) as one, Memory(path, embedder=Toy()) as other:
        one.recall("train to the station")  # both have it in mind
        other.recall("train from the station")
        one.recall("boat at sea")
        other.recall("piano music")
        for _ in range(2):
            one.attention.flush()
            other.attention.flush()
            one.recall("boat at sea again")
            other.recall("piano music again")
    found = {s["context"]: s for s in shown(path, Toy())}
    assert found.keys() == {"train at the station", "boat at sea", "piano music"}
    assert len({s["slot"] for s in found.values()}) == 3 and found["train at the station"]["uses"] == 3
    with sqlite3.connect(path) as db:
        assert all(n > 0 for (n,) in db.execute("SELECT (SELECT count(*) FROM slot_refs r WHERE r.slot = s.slot) FROM slots s"))
    db.close()


def test_attention_that_knows_events_of_another_store_is_left_out(path: Path, tmp_path: Path) -> None:
    with Memory(path, embedder=Toy()) as memory:
        memory.write_many(turns(60))
        memory.recall("boat at sea")
    shutil.copy(path, copy := tmp_path / "copy.db")
    assert shown(copy, Toy()), "the very same events"
    with Memory(path, embedder=Toy()) as memory:
        memory.write("the piano is new")
        memory.recall("piano music")
    with sqlite3.connect(path) as db, sqlite3.connect(copy) as other:  # attention of a store that went on, in one that did not
        rows = db.execute("SELECT * FROM slots").fetchall()
        other.execute("DELETE FROM slots")
        other.executemany(f"INSERT INTO slots VALUES ({', '.join('?' * len(rows[0]))})", rows)
    db.close()
    other.close()
    assert not shown(copy, Toy())
    with Memory(copy, embedder=Toy()) as memory:
        memory.write("another event of that number")
    assert [s["context"] for s in shown(copy, Toy()) if s["context"] == "boat at sea"] == []


def shown(path: Path, embedder: Any) -> list[dict[str, Any]]:
    "What another process sees in mind."
    with Memory(path, embedder=embedder) as memory:
        return list(status_of(memory.attention)["slots"])


@pytest.mark.parametrize("embedder", ["subjects", "none"])
def test_local_answers_seldom_store_attention(path: Path, embedder: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with Memory(path, embedder=embedder) as memory:
        memory.write_many(turns(60))
        memory.recall("boat at sea")
        memory.attention.flush()
        memory.attention.local.margin, stored = -9.0, []
        monkeypatch.setattr("rlm.recall.attention_state.write_slots", lambda *given: stored.append(given))
        for n in range(2 * FLUSH_THRESHOLD):
            assert memory.attention.intelligent_search(f"boat at sea word{n}", top_k=3)["source"] in ("working_memory", "checkpoint")
        assert not stored and memory.attention.state.unsaved <= 1
        memory.attention.flush()
        assert len(stored) == 1 and not memory.attention.state.unsaved


def test_a_subject_that_comes_up_again_with_nothing_to_learn_was_used(path: Path) -> None:
    with Memory(path, embedder=Toy()) as memory:
        memory.write_many(turns(60))
        memory.recall("boat at sea")
        memory.attention.flush()
        mind = memory.attention
        (slot_,) = slots_of(mind).values()
        mind.local.relevance = 99.0  # local search declines
        places(mind).get(slot_)
        before = in_store(path)
        assert mind.intelligent_search("sea, the boat")["source"] == "ltm_fallback" and mind.state.unsaved == 1
        mind.state.process_pending()
        assert mind.state.unsaved == 1
        assert places(mind).is_made(slots_of(mind)[slot_.slot_id]), "a checkpoint more, and it would have to be made anew"
    assert in_store(path) != before


def test_what_was_written_meanwhile_is_caught_up_with(path: Path) -> None:
    with Memory(path, embedder=Toy()) as memory:
        memory.write_many(turns(60))
        memory.recall("boat at sea")
    with Memory(path, embedder=Toy()) as other:
        other.write("boat at sea meanwhile", id="meanwhile")
    with Memory(path, embedder=Toy()) as memory:
        memory.recall("piano")
        a = memory.attention
        assert 61 in [r.seq for s in slots_of(a).values() for r in a.state.checkpoints.of(s)]


def test_another_models_slots_are_ignored(path: Path) -> None:
    with Memory(path, embedder=Toy()) as memory:
        memory.write_many(turns(60))
        memory.recall("boat at sea")
    with Memory(path, embedder=Toy("another")) as memory:
        memory.backend.db.query("UPDATE meta SET value = ? WHERE key = 'vector_model'", (json.dumps(["another", 16]),))
        memory.index.model()
        with memory.index.snapshot():
            memory.attention.keeper._load()
        assert not slots_of(memory.attention)


def test_a_store_that_cant_be_written_to_keeps_attention_in_memory(path: Path) -> None:
    with Memory(path, embedder=Toy()) as memory:
        memory.write_many(turns(240))
    with Memory(path, embedder=Toy(), read_only=True) as memory:
        memory.attention.local.margin = -9.0
        found = [memory.intelligent_search(f"boat at sea word{n}")["source"] for n in range(3)]
        assert found[0] == "ltm_fallback" and "checkpoint" in found
        memory.attention.flush()
        assert not memory.backend.db.query("SELECT 1 FROM slots")


def test_a_failed_write_of_attention_leaves_what_was_there(full: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    full.recall("boat at sea")
    full.attention.flush()
    rows = full.backend.db.query("SELECT slot, context_hash FROM slots"), full.backend.db.query("SELECT slot, seq FROM slot_refs")
    full.recall("piano music")
    with monkeypatch.context() as patch:
        patch.setattr("rlm.recall.attention_state.write_checkpoints", lambda *a: (_ for _ in ()).throw(StoreError("full disk")))
        with pytest.raises(StoreError):
            full.attention.flush()
    assert rows == (full.backend.db.query("SELECT slot, context_hash FROM slots"), full.backend.db.query("SELECT slot, seq FROM slot_refs"))
    full.attention.flush()
    assert len(full.backend.db.query("SELECT slot FROM slots")) > len(rows[0])


def test_uses_that_a_failed_commit_took_back_are_stored_by_the_next(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with Memory(path, embedder=Toy()) as memory:
        memory.write_many(turns(60))
        memory.recall("boat at sea")
        mind, db = memory.attention, memory.backend.db
        mind.flush()
        (held,) = slots_of(mind).values()
        mind.state.working_memory.put(held.used(CLOCK.now(), times=5))
        mind.state.unsaved += 1
        span = db.transaction

        @contextmanager
        def fails(*given: Any) -> Iterator[None]:
            with span(*given):
                yield
                raise StoreError("The disk is full.", "Make room.")
        with monkeypatch.context() as patch:
            patch.setattr(db, "transaction", fails)
            with pytest.raises(StoreError):
                mind.flush()
        mind.flush()
        assert db.query("SELECT uses FROM slots WHERE kind = 'working'") == [(held.uses + 5,)]


def test_what_is_known_of_stored_slots_has_no_text_and_does_not_grow(path: Path) -> None:
    with Memory(path, embedder="none") as memory:
        mind = memory.attention
        mind.sync()
        for n in range(50):
            mind.state.subject(None, frozenset(), f"secret subject {n}", CLOCK.now() + timedelta(seconds=n))
            mind.flush()
        known = mind.keeper.repository.uses  # no public name tells of it
        assert len(known) == len(slots_of(mind)) == len(memory.backend.db.query("SELECT 1 FROM slots WHERE kind = 'working'")) == 8
        assert "secret" not in repr(known)
        mind.clear()
        mind.state.subject(None, frozenset(), "another", CLOCK.now() + timedelta(hours=1))
        mind.flush()
        stored = memory.backend.db.query("SELECT context FROM slots WHERE kind = 'working'")
        assert stored == [("another",)], "what was cleared is taken out"


def test_a_store_that_cant_be_written_to_learns_in_batches(path: Path) -> None:
    with Memory(path, embedder=Toy()) as memory:
        memory.write_many(turns(60))
    with Memory(path, embedder=Toy(), read_only=True) as memory:
        mind = memory.attention
        mind.sync()
        mind.state.unsaved = FLUSH_THRESHOLD
        memory.recall("boat at sea")
        assert not mind.state.unsaved and not mind.state.pending and slots_of(mind)
        memory.recall("piano music")
        assert len(mind.state.pending) == 1, "what was found is learned later"


def test_a_kept_hit_can_be_read_after_the_store_has_got_another_model(path: Path) -> None:
    with Memory(path, embedder=Toy()) as memory:
        memory.write_many(turns(60))
        kept = memory.attention.intelligent_search("boat at sea")["results"]
        assert kept[0].as_dict()["similarity_score"] > 0.5
        reembed(memory.backend, Toy("wide", 32))
        with memory.index.snapshot():
            assert memory.index.semantic.model == "wide"
        said = kept[0].as_dict()
        assert said["content"] == kept[0].record.text and (said["similarity_score"], said["checkpoint_relevance"]) == (0.0, 0.0)


def test_attention_is_brought_into_step_under_its_lock(full: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    mind, free = full.attention, list[bool]()

    def other_thread_can_take(lock: Any) -> bool:
        found = list[bool]()
        thread = threading.Thread(target=lambda: found.append(lock.acquire(blocking=False) and not lock.release()))
        thread.start()
        thread.join()
        return found[0]
    load = mind.keeper.sync
    monkeypatch.setattr(mind.keeper, "sync", lambda *a: free.append(other_thread_can_take(mind.lock)) or load(*a))
    mind.sync()
    assert free == [False]
    stacked = type(places(mind).vectors()).stacked
    monkeypatch.setattr("rlm.recall.neighbourhood.TrueVectors.stacked",
                        lambda *a: free.append(other_thread_can_take(full.index.locked())) or stacked(*a))
    vector, hit = Toy().embed(["boat at sea"], "query")[0], mind.intelligent_search("boat at sea")["results"][0]
    mind.state.process_pending()
    free.clear()
    assert hit["similarity_score"] > 0.5 and mind.slots.search_with_checkpoints(vector)
    mind.slots.create_checkpoint(min(slots_of(mind)), [{"block_index": 1}])
    assert len(free) >= 3 and not any(free), "vectors are read while the index holds still"


def test_an_answer_does_not_fail_for_attention_that_cant_be_stored(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rlm.recall.attention_state.FLUSH_THRESHOLD", 1)
    with Memory(path, embedder=Toy(), busy_timeout_s=60) as full:
        full.write_many(turns(240))
        full.recall("boat at sea")
        mind, rows = full.attention, full.backend.db.query("SELECT slot, context_hash FROM slots")
        other = sqlite3.connect(path, isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        began = time.monotonic()
        assert rows and len(full.recall("piano music")) == 10 and time.monotonic() - began < 30
        assert mind.unstored == 1 and mind.state.unsaved and "piano music" in [s.context for s in slots_of(mind).values()]
        assert status_of(mind)["unstored"] == 1
        other.execute("ROLLBACK")
        other.close()
        full.backend.db.query("PRAGMA max_page_count = 1")  # as many as there are, and no more
        assert len(full.recall("cat and kitten " + "x" * 500_000)) == 10 and mind.unstored == 2
        assert full.backend.db.query("SELECT slot, context_hash FROM slots") == rows
        full.backend.db.query("PRAGMA max_page_count = 100000")
        assert len(full.recall("train at the station")) == 10 and not mind.state.unsaved


CHILD = """
import sys
sys.path.insert(0, sys.argv[2])
from toy import Toy
from rlm import Memory
from rlm.recall import attention_state
attention_state.FLUSH_THRESHOLD = 1
with Memory(sys.argv[1], embedder=Toy()) as memory:
    for n in range(100_000):
        memory.recall(f"boat at sea word{n}")
        memory.write(f"piano music word{n}")
        if n == 1:
            print("ready", flush=True)
"""


@pytest.mark.nightly
@pytest.mark.skipif(os.name != "posix", reason="needs SIGKILL")
def test_a_kill_at_any_moment_leaves_whole_slots(path: Path) -> None:
    with Memory(path, embedder=Toy()) as memory:
        memory.write_many(turns(60))
    stored = 0
    for wait in (0.05, 0.2, 0.37):
        child = subprocess.Popen([sys.executable, "-c", CHILD, str(path), str(Path(__file__).parent.parent)], stdout=subprocess.PIPE)
        assert child.stdout is not None and child.stdout.readline() == b"ready\n"
        with pytest.raises(subprocess.TimeoutExpired):
            child.wait(wait)
        child.send_signal(signal.SIGKILL)
        child.wait()
        child.stdout.close()
        with Memory(path, embedder=Toy()) as memory:
            assert memory.check() == []
            db = memory.backend.db
            alone = "SELECT 1 FROM slot_refs r LEFT JOIN slots s ON (s.namespace, s.slot) = (r.namespace, r.slot) WHERE s.slot IS NULL"
            assert not db.query(alone)
            assert not db.query("PRAGMA foreign_key_check")
            assert len(memory.recall("boat at sea word1")) == 10
            stored += len(db.query("SELECT 1 FROM slots"))
            for s in slots_of(memory.attention).values():
                assert len(memory.attention.state.checkpoints.of(s)) <= 5
    assert stored, "nothing was ever stored, so nothing could be torn"


# ---- slots

def test_what_rests_fades_and_makes_room(full: Memory, clock: ManualClock) -> None:
    full.attention.state.working_memory.size = 3
    for n, subject in enumerate(SUBJECTS):
        full.recall(f"{subject} word{n % 7}")
        clock.advance(minutes=30)
    full.attention.state.process_pending()
    contexts = {s.context for s in slots_of(full.attention).values()}
    assert len(slots_of(full.attention)) == 3 and contexts == {f"{s} word{n}" for n, s in list(enumerate(SUBJECTS))[3:]}
    assert full.attention.state.working_memory.get_active_slots(clock.advance(days=2)) == []


def test_questions_about_the_past_and_inside_a_transaction_are_plain_searches(full: Memory, clock: ManualClock) -> None:
    full.recall("boat at sea")
    then = clock.now()
    clock.advance(days=1)
    full.write("boat at sea later", id="later")
    assert "later" not in ids(full.recall("boat at sea later", as_of=then))
    with full.backend.transaction():
        before = full.attention.counts.searches
        assert full.recall("boat at sea")
        assert full.attention.counts.searches == before


def test_an_empty_store_has_nothing_to_recall(memory: Memory) -> None:
    assert len(memory.recall("anything")) == 0 and memory.intelligent_search("anything")["result_count"] == 0
    memory.write("a boat")
    assert len(memory.recall("boat")) == 1


def test_words_alone_will_do(path: Path) -> None:
    with Memory(path, embedder="none") as memory:
        memory.write_many(turns(240))
        memory.attention.local.margin = -9.0
        said = [memory.intelligent_search(f"boat at sea word{n}") for n in range(4)]
        assert said[-1]["source"] == "checkpoint" and len(said[-1]["results"]) == 10



def test_slots_outlive_everything_that_they_led_to(path: Path) -> None:
    with Memory(path, embedder="none") as memory:
        memory.write_many(turns(60))
        for n in range(4):
            memory.recall(f"boat word{n}")
    with Memory(path, embedder="none") as memory:
        memory.delete([record.id for record in memory.recent(100)])
    with Memory(path, embedder="none") as memory:  # its index has no memory at all
        assert not memory.recall("boat word3") and slots_of(memory.attention) and not len(memory.index.metadata["seq"])
        memory.write("a new boat", id="new")
        assert ids(memory.recall("boat")) == ["new"]


def test_each_search_call_looks_up_the_fact_that_is_asked_for() -> None:
    with Memory(":memory:", embedder="none") as memory:
        memory.write("Tea is nice in the afternoon.")
        busan = memory.write("I moved to Busan.")
        other = memory.namespace("other")
        other.write("I moved to Daegu.")
        asked = "Where do I live?"
        for store, text in ((memory, "I moved to Busan."), (other, "I moved to Daegu.")):
            hits = [store.search(asked), store.search(asked, slot="auto"), store.recall(asked), store.intelligent_search(asked)["results"]]
            assert [[h.text for h in found][:1] for found in hits] == 4 * [[text]]
            assert text in store.context(asked).text
        said = memory.intelligent_search(asked, k=1)
        assert said["result_count"] == 1 and said["results"][0]["block_index"] == busan.seq
        assert not memory.recall(asked, tags=["none"]) and not memory.recall("Where does Ann live?")
