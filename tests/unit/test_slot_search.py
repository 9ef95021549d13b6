"""Checkpoints by the name of a slot: they are stored, touched by an answer out of the cache, and shared by both ways to search."""
import pickle
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from toy import Toy

from rlm import Memory
from rlm.core.clock import ManualClock
from rlm.core.errors import InvalidInput, NotFound
from rlm.service.design_calls import CheckpointManager, LocalizedSearchEngine, PhaseThreeSearchCoordinator

TEXTS = ["The boat needs a sail.", "A sail for the boat costs forty.", "Boat and harbour in winter.", "The harbour is closed.",
         "바다에서 배를 봤다",
         "Bread from the bakery.", "The bakery opens at six.", "빵을 샀다", "The train was late.", "The station is old."]


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[Memory]:
    clock = ManualClock("2026-05-08T09:00:00Z")
    with Memory(tmp_path / "memory.db", embedder=Toy(), checkpoints="full", clock=clock) as found:
        found.write_many([{"id": f"m{n}", "text": text} for n, text in enumerate(TEXTS)])
        for question in ("Which boat has a sail?", "sail for the boat", "the boat in the harbour"):
            found.recall(question, 3)
        found.attention.flush()
        yield found


@pytest.mark.seed("001 final-score")
def test_what_lies_around_a_slot_is_scored_by_likeness_and_relevance(memory: Memory) -> None:
    slots = memory.attention.slots
    found = slots.search_with_checkpoints(Toy().embed(["boat and sail"], "query")[0], top_k=3)
    assert [r["final_score"] for r in found] == sorted((r["final_score"] for r in found), reverse=True) and len(found) == 3
    for r in found:
        assert r["final_score"] == pytest.approx(0.7 * r["similarity_score"] + 0.3 * r["checkpoint_relevance"])
        assert r["source_slot"].startswith("W") and r["content"] in TEXTS[:5]


@pytest.mark.seed("001 fallback")
def test_a_question_about_no_slot_is_compared_with_everything(memory: Memory) -> None:
    found = memory.attention.slots.search_with_checkpoints(Toy().embed(["the train station"], "query")[0], top_k=2)
    assert {r["source_slot"] for r in found} == {""} and {r["content"] for r in found} == {"The train was late.", "The station is old."}


def test_checkpoints_made_by_hand_are_stored(memory: Memory, tmp_path: Path) -> None:
    slots = memory.attention.slots
    name = min(slots.state.working_memory.slots)
    seq = memory.recall("bread from the bakery", 1)[0].memory.id
    number = memory.ctx.storage.memories.seq("default", seq)
    assert number is not None
    made = slots.create_checkpoint(name, [{"block_index": number, "similarity_score": 1.0}])
    assert number in {b["block_index"] for b in made["ltm_blocks"]} and number in slots.get_checkpoint_radius(name, 0)
    memory.attention.flush()
    with Memory(tmp_path / "memory.db", embedder=Toy(), checkpoints="full", clock=ManualClock("2026-05-08T09:00:01Z")) as again:
        again.recall("boat", 1)
        assert number in {b["block_index"] for b in again.attention.slots.as_dict(again.attention.slots.slot(name))["ltm_blocks"]}


def test_an_answer_out_of_the_cache_keeps_its_slot_fresh(memory: Memory) -> None:
    state = memory.attention.state
    memory.recall("a boat with a sail in the harbour", 3)
    kept = memory.attention.intelligent_search("a boat with a sail in the harbour", None, None, 3)
    assert kept["source"] == "cache"
    slot = kept["results"][0].source_slot
    if not slot:  # everything was asked the first time: no slot led to it
        pytest.skip("the first answer came from a search of everything")
    before = state.working_memory.slots[slot].uses
    memory.attention.intelligent_search("a boat with a sail in the harbour", None, None, 3)
    state.note_local_answers()
    assert state.working_memory.slots[slot].uses > before


def test_what_can_not_be_compared_is_named(memory: Memory) -> None:
    with pytest.raises(InvalidInput, match="block_index"):
        memory.attention.slots.create_checkpoint(min(memory.attention.state.working_memory.slots), [{"similarity_score": 1.0}])
    with pytest.raises(InvalidInput, match="shape"):
        memory.attention.slots.search_with_checkpoints([0.0, 1.0])


@pytest.mark.parametrize("block", [3, None, {"block_index": 1, "similarity_score": "high"}, {"block_index": 1, "similarity_score": None},
                                   {"block_index": 1, "similarity_score": float("nan")}, {"block_index": 1, "similarity_score": 7},
                                   {"block_index": 1, "similarity_score": 10**400}, {"block_index": 1, "similarity_score": True}])
def test_a_related_block_that_makes_no_checkpoint_is_named(memory: Memory, block: Any) -> None:
    slots = memory.attention.slots
    name = min(slots.state.working_memory.slots)
    before = slots.as_dict(slots.slot(name))
    with pytest.raises(InvalidInput, match="related block"):
        slots.create_checkpoint(name, [{"block_index": 1}, block])
    assert slots.as_dict(slots.slot(name)) == before


@pytest.mark.parametrize(("cosine", "relevance"), [(0.25, 0.25), (-0.5, 0.0), (1.0000001, 1.0), (np.float32(0.5), 0.5)])
def test_the_cosine_of_a_hit_is_the_relevance_of_a_checkpoint(memory: Memory, cosine: Any, relevance: float) -> None:
    slots = memory.attention.slots
    name = min(slots.state.working_memory.slots)
    slots.state.checkpoints.clear()
    made = slots.create_checkpoint(name, [{"block_index": 6, "similarity_score": cosine}])
    assert [b["relevance_score"] for b in made["ltm_blocks"]] == [relevance]


@pytest.mark.parametrize("bad", ["x", -3, 1.5, None, True])
def test_a_radius_and_a_number_of_memories_are_checked(memory: Memory, bad: Any) -> None:
    name, vector = min(memory.attention.state.working_memory.slots), Toy().embed(["boat"], "query")[0]
    with pytest.raises(InvalidInput, match="radius"):
        memory.get_checkpoint_radius(name, bad)
    with pytest.raises(InvalidInput, match="top_k"):
        memory.search_with_checkpoints(vector, top_k=bad)


def test_a_radius_beyond_the_store_is_all_of_it(memory: Memory) -> None:
    name = min(memory.attention.state.working_memory.slots)
    everything = memory.get_checkpoint_radius(name, 10**15)
    assert sorted(everything) == list(range(1, len(TEXTS) + 1)) and everything == memory.get_checkpoint_radius(name, len(TEXTS))
    assert memory.search_with_checkpoints(Toy().embed(["the train station"], "query")[0], top_k=10**15)


@pytest.mark.seed("001 checkpoint-calls")
def test_a_slot_that_is_no_longer_in_mind_has_no_neighbourhood_and_marking_it_changes_nothing(memory: Memory) -> None:
    slots = memory.attention.slots
    before = dict(slots.state.working_memory.slots)
    slots.update_checkpoint_access("W99")
    assert slots.get_checkpoint_radius("W99", radius=10) == [] and slots.state.working_memory.slots == before
    with pytest.raises(NotFound, match="W99"):
        slots.create_checkpoint("W99", [{"block_index": 1}])


@pytest.mark.seed("001 checkpoint-calls")
def test_the_calls_of_the_design_run_as_it_prints_them(memory: Memory) -> None:
    vector = Toy().embed(["boat and sail"], "query")[0]
    said = memory.intelligent_search(user_input="boat and sail", query_embedding=vector, keywords=["boat", "sail"])
    assert set(said) == {"results", "source", "search_time_ms", "result_count"} and said["result_count"] == len(said["results"]) > 0
    slots, mind = memory, memory.attention.state.working_memory
    slot = mind.get_active_slots()[0]
    made = slots.create_checkpoint(slot, [{"block_index": 1, "similarity_score": 0.8, "embedding": vector}])
    slots.update_checkpoint_access(slot.slot_id)
    assert made["slot_id"] == slot.slot_id and 1 in slots.get_checkpoint_radius(slot.slot_id, radius=10)
    found = slots.search_with_checkpoints(vector, mind, top_k=5)
    assert {"block_index", "similarity_score", "checkpoint_relevance", "final_score", "content", "keywords", "source_slot"} == set(found[0])


@pytest.mark.seed("001 earlier-parts")
def test_a_vector_alone_searches_everything_or_what_is_in_mind_and_a_number_gives_a_block(memory: Memory) -> None:
    asked = Toy().embed(["the train station"], "query")[0]
    near = memory.search_by_embedding(asked, top_k=2)
    assert [r["content"] for r in near] == [TEXTS[r["block_index"] - 1] for r in near] and {r["source_slot"] for r in near} == {""}
    assert {r["content"] for r in near} == {"The train was late.", "The station is old."}
    block = memory.get_block_by_index(near[0]["block_index"])
    assert block is not None and block["context"] == near[0]["content"] and block["keywords"] == []
    assert np.allclose(block["embedding"], Toy().embed([block["context"]], "passage")[0], atol=0.01)
    memory.delete(f"m{near[0]['block_index'] - 1}")
    assert memory.get_block_by_index(near[0]["block_index"]) is None and memory.get_block_by_index(10**9) is None
    mind = memory.attention.search_working_memory(Toy().embed(["boat and sail"], "query")[0])
    assert len(mind) >= 3 and {r["block_index"] for r in mind} <= memory.attention.state.local.in_mind.recent.slot_of.keys()
    assert [r["final_score"] for r in mind] == sorted((r["final_score"] for r in mind), reverse=True)
    assert {r["source_slot"] for r in mind} <= {"", *memory.attention.working_memory.slots}
    with pytest.raises(InvalidInput, match="block_index"):
        memory.get_block_by_index(0)


@pytest.mark.seed("001 keys")
def test_a_hit_gives_each_value_by_its_key_and_keeps_them_in_a_copy(memory: Memory) -> None:
    for way in (memory, memory.attention):
        hit = way.intelligent_search("boat and sail")["results"][0]
        assert hit["content"] in TEXTS and TEXTS[hit["block_index"] - 1] == hit["content"] and hit["keywords"] == []
        assert hit["final_score"] == pytest.approx(0.7 * hit["similarity_score"] + 0.3 * hit["checkpoint_relevance"])
        with pytest.raises(KeyError):
            hit["embedding"]
    kept = memory.recall("boat and sail")[0]
    assert (copy := pickle.loads(pickle.dumps(kept))) == kept and copy["similarity_score"] == kept["similarity_score"] != 0
    assert memory.search("boat and sail")[0]["content"] in TEXTS


@pytest.mark.seed("001 constructors")
def test_the_constructors_of_the_design_give_the_parts_of_the_memory(memory: Memory, tmp_path: Path) -> None:
    attention, vector = memory.attention, Toy().embed(["boat and sail"], "query")[0]
    manager = CheckpointManager(memory.backend, memory)
    engine = LocalizedSearchEngine(manager, memory)
    coordinator = PhaseThreeSearchCoordinator(attention, attention.state.cache, manager, engine)
    assert engine.search_with_checkpoints(vector, attention.state.working_memory, top_k=5)
    assert coordinator.intelligent_search("boat and sail", vector, ["boat", "sail"])["result_count"] > 0
    with Memory(tmp_path / "other.db", embedder=Toy()) as other, pytest.raises(InvalidInput, match="one memory"):
        CheckpointManager(other.backend, memory)


def test_a_number_of_another_namespace_names_no_memory(memory: Memory, tmp_path: Path) -> None:
    with Memory(tmp_path / "memory.db", namespace="another", embedder=Toy()) as another:
        seq = another.write("the boat of another").seq
    assert seq is not None and memory.get_block_by_index(seq) is None
    slot = memory.attention.working_memory.get_active_slots()[0]
    with pytest.raises(NotFound, match=f"block index {seq}"):
        memory.create_checkpoint(slot, [{"block_index": seq}])
