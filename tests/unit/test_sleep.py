"Sleep merges what says the same and nothing else, forgets by the right clocks, and can be taken back."
import json
import os
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from toy import Toy

from rlm import Memory
from rlm.companion.consolidation import same_things
from rlm.companion.sleep import BATCH, NIGHT
from rlm.core.clock import ManualClock
from rlm.core.errors import NotFound, StoreBusy, StoreError, StoreUnreachable
from rlm.search.embedding.base import Kind
from rlm.service.nights import sleep_everywhere, sleep_if_due
from rlm.store import erasure
from rlm.store.embedding_model import Vectors
from rlm.store.records import Event, new_record

DATA = Path(__file__).parents[1] / "data"
PAIRS = [json.loads(line) for line in (DATA / "companion_merges.jsonl").read_text(encoding="utf-8").splitlines()]


class Alike(Toy):
    "A model to which all texts mean the same: what is kept apart is kept apart by its words."

    def embed(self, texts: Sequence[str], kind: Kind) -> Vectors:
        return np.tile(np.eye(1, self.dim, dtype=np.float32), (len(texts), 1))


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock("2026-01-01T09:00:00Z")


@pytest.fixture
def memory(tmp_path: Path, clock: ManualClock) -> Iterator[Memory]:
    with Memory(tmp_path / "memory.db", clock=clock, embedder="none") as memory:
        yield memory


def contents(memory: Memory) -> dict[str, Any]:
    "What a person sees of a namespace: texts, states, links and facts, without versions."
    found = memory.backend.find("default", memory.searcher.parse("x", {"status": "any"}).filters, 10_000)
    links = {(e.src, e.dst, e.relation, e.weight) for r in found for e in memory.links(r.id)}
    facts = {r.id: [(str(f), f.valid_to) for f in memory.backend.facts.of([r.seq]).get(r.seq, [])] for r in found}
    return {"records": {r.id: (r.text, r.status, r.archived_at, r.valid_to, r.tags, dict(r.extra), r.access_count) for r in found},
            "links": links, "facts": facts}


@pytest.mark.parametrize("language", ["en", "ko"])
@pytest.mark.seed("002 consolidation")
def test_at_most_one_near_miss_in_a_hundred_is_merged_and_most_duplicates_are_found(language: str, clock: ManualClock) -> None:
    mine = [p for p in PAIRS if p["language"] == language]
    said = {True: [0, 0], False: [0, 0]}
    for p in mine:
        merged = bool(same_things(new_record(p["a"], clock.now()), new_record(p["b"], clock.now())))
        said[p["same"]][0] += merged
        said[p["same"]][1] += 1
    assert said[False][0] <= 0.01 * said[False][1] and said[False][1] > 100
    assert said[True][0] >= 0.7 * said[True][1]


def test_of_two_that_say_the_same_the_one_that_was_used_more_stays_with_the_links_of_both(tmp_path: Path, clock: ManualClock) -> None:
    with Memory(tmp_path / "memory.db", clock=clock, embedder=Alike()) as memory:
        said = {"a": "I am allergic to nuts.", "b": "Well, I'm allergic to nuts", "c": "I like hiking.", "d": "The dog is old."}
        for id, text in said.items():
            memory.write(text, id=id)
        memory.link("a", "c", "with")
        memory.link("d", "b", "near")
        memory.feedback("b", helped=1)
        before = contents(memory)
        planned = memory.companion.sleep(dry_run=True)
        assert contents(memory) == before and planned.counts["merge"] == 1
        found = memory.companion.sleep()
        assert [(c.id, c.into) for c in found.changes] == [("a", "b")]
        assert {("b", "c"), ("d", "b")} <= {(e.src, e.dst) for e in memory.links("b")}


def test_without_vectors_only_words_that_are_equal_but_for_case_and_marks_are_merged(memory: Memory) -> None:
    for id, text in (("a", "I am allergic to nuts."), ("b", "Well, I'm allergic to nuts"), ("c", "i am allergic to nuts!")):
        memory.write(text, id=id)
    assert {c.id for c in memory.companion.sleep().changes} < {"a", "c"}


@pytest.mark.seed("002 undo")
def test_a_night_is_taken_back_whole_and_what_was_taken_back_is_not_done_again(memory: Memory, clock: ManualClock) -> None:
    said = {"a": "I am allergic to nuts.", "b": "i am allergic to nuts", "c": "I like hiking.", "mood": "I feel so sad today."}
    for id, text in said.items():
        memory.write(text, id=id, tags=["x"])
    memory.link("a", "c", "with")
    memory.feedback("b", helped=1)
    clock.advance(days=40)
    before = contents(memory)
    report = memory.companion.sleep()
    assert {c.kind: c.id for c in report.changes}["merge"] == "a" and memory.get("a").status == "archived"
    assert ("b", "c", "with", 1.0) in contents(memory)["links"] and memory.get("b").access_count == before["records"]["b"][-1]
    assert not memory.search("feel sad today", 5)
    undone = memory.companion.undo_sleep(report.night)
    assert set(undone.restored) == {c.id for c in report.changes} and not undone.kept
    assert contents(memory) == before
    assert not memory.companion.sleep(dry_run=True).changes
    with pytest.raises(NotFound):
        memory.companion.undo_sleep("never")


@pytest.mark.seed("002 protected")
def test_what_is_protected_and_what_a_person_archived_is_left_alone(memory: Memory, clock: ManualClock) -> None:
    for id in ("one", "two"):
        memory.write("The train was late.", id=f"pinned-{id}", pinned=True, provenance={"n": id})
        memory.write("Never change.", id=f"stone-{id}", immutable=True, provenance={"n": id})
    memory.add_conversation([("Mina", "ok then"), ("Joon", "ok then"), ("Mina", "ok then")], session="s")
    memory.write("An old plan.", id="mine")
    memory.update("mine", status="archived")
    before = contents(memory)
    clock.advance(days=400)
    assert not memory.companion.sleep().changes and contents(memory) == before


def test_what_is_disputed_waits_for_a_person_and_states_of_trust_are_not_merged(memory: Memory, clock: ManualClock) -> None:
    for id, trust in (("a", "disputed"), ("b", "candidate"), ("c", "active")):
        record = memory.writer.prepare({"text": "I like hiking.", "id": id}, clock.now())
        memory.writer.insert([record.changed(provenance={"trust": trust})], 1)
    clock.advance(days=400)
    report = memory.companion.sleep()
    assert "a" not in {c.id for c in report.changes} and not report.counts["merge"] and memory.get("a").status == "hot"


@pytest.mark.seed("002 forgetting")
def test_forgetting_counts_from_the_last_use_and_deletion_from_the_archiving(memory: Memory, clock: ManualClock) -> None:
    memory.write("The train was late.", id="train", valid_from="2020-01-01")
    memory.write("The bus was late, too.", id="bus")
    clock.advance(days=45)
    memory.feedback("bus", helped=1)
    clock.advance(days=5)
    assert [(c.kind, c.id) for c in memory.companion.sleep().changes] == [("archive", "train")]
    clock.advance(days=29)
    assert not [c for c in memory.companion.sleep().changes if c.kind == "delete"]
    clock.advance(days=2)
    report = memory.companion.sleep()
    assert [c.id for c in report.changes if c.kind == "delete"] == ["train"]
    assert memory.companion.undo_sleep(report.night).kept["train"] == "deleted for good"
    assert [e.detail["reason"] for e in memory.backend.events("default", kinds=("forget",))]
    assert "bus" in {r.id for r in memory.list(status="any")} and "train" not in {r.id for r in memory.list(status="any")}


def test_a_night_whose_erasure_fails_has_forgotten_nothing(memory: Memory, clock: ManualClock, monkeypatch: pytest.MonkeyPatch) -> None:
    memory.write("어제 기차가 늦었어.", id="old", valid_from="2020-01-01")
    clock.advance(days=50)
    assert [(c.kind, c.id) for c in memory.companion.sleep().changes] == [("archive", "old")]
    clock.advance(days=31)
    before = memory.history("old").as_dict()

    def fail(*given: object) -> int:
        raise StoreError("The disk is full.", "Make room.")
    with monkeypatch.context() as broken:
        broken.setattr(erasure, "erase_rows", fail)
        with pytest.raises(StoreError, match="disk is full"):
            memory.companion.sleep()
    assert memory.history("old").as_dict() == before
    clock.advance(days=1)
    memory.companion.sleep()
    assert not memory.list(status="any") and [e.kind for e in memory.history("old").events][-2:] == ["forget", "erase"]


def test_what_a_forgotten_memory_had_ended_stays_ended(memory: Memory, clock: ManualClock) -> None:
    memory.write("I live in Seoul.", id="seoul", pinned=True)
    clock.advance(days=1)
    memory.write("I moved to Busan.", id="busan")
    assert memory.get("seoul").valid_to is not None
    clock.advance(days=200)
    memory.companion.sleep()
    clock.advance(days=31)
    memory.companion.sleep()
    assert "busan" not in {r.id for r in memory.list(status="any")} and memory.get("seoul").valid_to is not None


def test_one_night_changes_no_more_than_its_limit_and_the_most_faded_go_first(tmp_path: Path, clock: ManualClock) -> None:
    with Memory(tmp_path / "memory.db", clock=clock, embedder="none", sleep_limit=3) as memory:
        for n in range(6):
            memory.write(f"Odd remark {n}.", id=f"m{n}")
            clock.advance(days=1)
        clock.advance(days=60)
        report = memory.companion.sleep()
        assert [c.id for c in report.changes] == ["m0", "m1", "m2"] and report.put_off == 3
        assert [c.id for c in memory.companion.sleep().changes] == ["m3", "m4", "m5"]


def test_a_night_that_was_cut_short_goes_on_once(memory: Memory, clock: ManualClock) -> None:
    memory.write_many([f"Odd remark {n}." for n in range(2 * BATCH)])
    clock.advance(days=60)

    with pytest.raises(KeyboardInterrupt):
        memory.companion.sleep(progress=_crash)
    [cut] = memory.companion.nights()
    assert cut["ended"] is None
    report = memory.companion.sleep()
    assert report.night == cut["night"] and report.counts["archive"] == BATCH
    assert len(memory.companion.undo_sleep(report.night).restored) == 2 * BATCH


def test_two_processes_do_not_sleep_at_once(memory: Memory, clock: ManualClock) -> None:
    with memory.backend.transaction() as tx:  # what another process has noted that runs: the parent of this one
        detail = {"stage": "begin", "pid": os.getppid(), "host": __import__("platform").node()}
        tx.log([Event(clock.now(), NIGHT, "other", "default", detail)])
    with pytest.raises(StoreBusy):
        memory.companion.sleep()
    assert memory.companion.sleep(dry_run=True).dry_run
    assert sleep_if_due(memory) is None


def test_two_threads_do_not_sleep_at_once(memory: Memory, clock: ManualClock) -> None:
    memory.write_many([f"Odd remark {n}." for n in range(2 * BATCH)])
    clock.advance(days=60)
    met = list[Exception | None]()

    def second(done: int, planned: int) -> None:  # a request beside the nightly thread
        thread = threading.Thread(target=lambda: met.append(_failure(memory.companion.sleep)))
        thread.start()
        thread.join()
    with pytest.raises(KeyboardInterrupt):
        memory.companion.sleep(progress=_crash)
    for _ in range(2):  # a night that was cut short and goes on, and a new one
        before = len(met)
        report = memory.companion.sleep(progress=second)
        assert len(met) == before + len(report.changes) // BATCH and all(isinstance(e, StoreBusy) for e in met)
        clock.advance(days=300)
    assert len(met) == 3 and len(memory.companion.nights()) == 2 and all(n["ended"] for n in memory.companion.nights())


def _crash(done: int, planned: int) -> None:
    raise KeyboardInterrupt


def _failure(call: Callable[[], object]) -> Exception | None:
    try:
        call()
    except Exception as e:
        return e
    return None


def test_a_rejected_memory_is_not_brought_back_by_the_undoing_of_a_night(memory: Memory, clock: ManualClock) -> None:
    memory.write("I live in Oslo.", id="oslo")
    clock.advance(days=150)
    report = memory.companion.sleep()
    assert [c.id for c in report.changes if c.kind == "archive"] == ["oslo"]
    memory.companion.reject(relation="residence", value="Oslo")
    assert not memory.companion.undo_sleep(report.night).restored and not memory.search("Oslo")


@pytest.mark.seed("002 resolutions")
def test_a_compressed_memory_is_told_shortly_and_found_as_before(memory: Memory, clock: ManualClock) -> None:
    text = "I live in Leeds. The flat has a view of the canal, and the boiler makes a noise like an old tram when it starts in the morning."
    memory.write(text, id="flat", category="experience")
    long = memory.context("Where do I live?").tokens
    clock.advance(days=30)
    assert [c.kind for c in memory.companion.sleep().changes] == ["compress"]
    block = memory.context("Where do I live?")
    assert block.tokens < long and "Leeds" in block.text and "tram" not in block.text
    assert memory.search("noise like an old tram")[0].text == text


@pytest.mark.seed("002 checkpoint")
def test_what_the_policy_has_learned_is_saved_by_a_night_and_can_be_gone_back_to(memory: Memory) -> None:
    companion = memory.companion
    assert not companion.rewind_learned()
    companion.learn(companion.decide("The train was late."), 1.0)
    assert companion.sleep().checkpoint and not companion.sleep().checkpoint
    companion.learn(companion.decide("The train was late."), -1.0)
    assert companion.policy().bandit.updates == 2
    assert companion.rewind_learned() and companion.policy().bandit.updates == 1


@pytest.mark.parametrize(("wanted", "kinds"), [("off", set()), ("tidy", {"merge"}), ("forget", {"merge", "archive"})])
def test_unasked_a_night_does_what_the_setting_says(wanted: str, kinds: set[str], tmp_path: Path, clock: ManualClock) -> None:
    with Memory(tmp_path / "memory.db", clock=clock, embedder="none", sleep=wanted) as memory:
        for id, text in (("a", "I like hiking."), ("b", "i like hiking"), ("c", "The train was late.")):
            memory.write(text, id=id)
        assert sleep_if_due(memory) is None  # too young
        clock.advance(days=100)
        report = sleep_if_due(memory)
        assert ({c.kind for c in report.changes} if report else set()) == kinds
        assert sleep_if_due(memory) is None  # it has slept


def test_another_namespace_is_not_touched(memory: Memory, clock: ManualClock) -> None:
    other = memory.namespace("other")
    other.write("The train was late.", id="train")
    clock.advance(days=400)
    assert not memory.companion.sleep().changes and other.get("train").status == "hot"


def test_one_namespace_that_cannot_be_opened_keeps_no_other_from_its_night(
        memory: Memory, clock: ManualClock, monkeypatch: pytest.MonkeyPatch) -> None:
    opened, closed, real = list[str](), list[str](), Memory.namespace

    def of(self: Memory, name: str) -> Memory:
        if name == "away":
            raise StoreUnreachable("The instance does not answer.", "Start it.")
        opened.append(name)
        made = real(self, name)
        monkeypatch.setattr(made, "close", lambda: (closed.append(name), Memory.close(made)))
        return made
    monkeypatch.setattr(Memory, "namespace", of)
    memory.write("The boat is blue.")
    clock.advance(days=40)
    assert list(sleep_everywhere(memory, ["away", "default"])) == ["default"]
    assert opened == closed == ["default"]
