"What the store knew at an earlier moment."
import random
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from rlm import Memory
from rlm.core.clock import ManualClock
from rlm.search import past_index
from rlm.store.filters import Filters

pytestmark = pytest.mark.usefixtures("bare")
WORDS = ("boat", "harbour", "고양이", "학교", "kite", "tomato", "piano", "기차")


def changed(memory: Memory, clock: ManualClock, seed: int, steps: int) -> None:
    "Write, correct, archive and delete at random, an hour apart."
    rng = random.Random(seed)
    for n in range(steps):
        clock.advance(hours=1)
        there = [r.id for r in memory.recent(1000, status="any")]
        text = " ".join(rng.sample(WORDS, 3)) + f" number{n}"
        match rng.randrange(6) if there else 0:
            case 0 | 1:
                memory.write(text, tags=rng.sample(["x", "y"], 1), speaker=rng.choice(["Mina", "Joon"]), session=rng.choice(["s", None]))
            case 2 | 3:
                memory.update(rng.choice(there), text=text, tags=rng.sample(["x", "y", "z"], 2))
            case 4:
                memory.update(rng.choice(there), status=rng.choice(["archived", "ltm", "held"]))
            case _:
                memory.delete(rng.choice(there))


def expected(memory: Memory, word: str, **filters: Any) -> dict[str, str]:
    "What full-text search over the rows finds, which knows nothing of an index in memory."
    request = memory.searcher.parse(word, filters)
    return {h.id: h.text for h in memory.searcher.full_text(request, 1000)}


@pytest.mark.parametrize("seed", [1, 2])
def test_a_past_moment_is_searched_as_the_rows_say(path: Path, seed: int) -> None:
    clock = ManualClock("2026-01-01")
    begun = clock.now()
    with Memory(path, clock=clock) as memory, Memory(path, clock=clock) as other:
        for part in range(3):
            changed(memory if part % 2 else other, clock, 10 * seed + part, 40)
            hours = int((clock.now() - begun).total_seconds() / 3600)
            for at in range(0, hours + 2, 7):
                when = begun + timedelta(hours=at)
                for more in ({}, {"tags": ["x"]}, {"speaker": "Mina", "status": "any"}, {"session": "s"}, {"status": "archived"}):
                    for word in WORDS[at % 3::3]:
                        found = memory.search(word, k=1000, as_of=when, **more)
                        assert {h.id: h.text for h in found} == expected(memory, word, as_of=when, **more), (at, more, word)
                        assert [(-h.score, h.id) for h in found] == sorted((-h.score, h.id) for h in found)


def test_what_a_hit_of_the_past_scores_is_explained(memory: Memory, clock: ManualClock) -> None:
    memory.write_many([{"id": "a", "text": "The boat is in the harbour.", "tags": ["boat"]},
                       {"id": "b", "text": "배는 항구에 있다", "title": "boat"}])
    then = clock.now()
    clock.advance(days=1)
    memory.update("a", text="The boat is at sea.")
    for hit in memory.search("boat harbour 항구", as_of=then):
        told = memory.explain("boat harbour 항구", hit.id, as_of=then)
        assert told.rank == hit.rank and told.score == pytest.approx(hit.score, rel=1e-3)
        assert sum(sum(p.values()) for p in hit.parts.values()) == pytest.approx(hit.score, rel=1e-3)
    assert memory.explain("sea", "a", as_of=then).rank is None and memory.explain("harbour", "a", as_of=then).rank == 1


def test_what_is_erased_or_purged_is_at_no_moment(path: Path) -> None:
    clock = ManualClock("2026-01-01")
    with Memory(path, clock=clock) as memory, Memory(path, clock=clock) as other:
        memory.write_many([{"id": id, "text": f"secret harbour {id}"} for id in "abc"])
        then = clock.now()
        clock.advance(days=1)
        for id in "abc":
            memory.update(id, text="nothing")
        assert len(memory.search("secret", as_of=then)) == 3
        other.delete("a", erase=True)
        assert [h.id for h in memory.search("secret", as_of=then)] == ["b", "c"]
        other.delete("b")
        clock.advance(days=1)
        memory.backend.purge("default", clock.now(), clock.now())
        assert [h.id for h in memory.search("secret", as_of=then)] == ["c"]
        other.write("secret again", id="b")
        assert [h.id for h in memory.search("secret", as_of=clock.now())] == ["b"]


@pytest.mark.parametrize("change", ["text", "status", "delete"])
def test_a_text_that_is_replaced_after_a_clock_went_back_was_there_at_some_moment(path: Path, change: str) -> None:
    clock = ManualClock("2026-01-02")
    with Memory(path, clock=clock) as memory:
        one = memory.write("the boat is blue")
        clock.advance(hours=-20)
        for text in ("the boat is red", "the boat is green"):
            if change == "delete":
                memory.delete(one.id)
                break
            memory.update(one.id, **({"text": text} if change == "text" else {"status": "held" if "red" in text else "ltm"}))
        history = memory.history(one.id).versions
        for version in history:
            assert memory.get(one.id, as_of=version.updated_at) == version, "each version was present when it was recorded"
            assert [h.text for h in memory.search("boat", as_of=version.updated_at, status="any")] == [version.text]
        assert memory.check() == [] and len({v.updated_at for v in history}) == len(history)


def test_a_long_past_is_read_by_a_thread(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = ManualClock("2026-01-01")
    with Memory(path, clock=clock) as memory:
        memory.write_many([{"id": f"m{n}", "text": f"boat {n}"} for n in range(40)])
        then = clock.now()
        clock.advance(days=1)
        for n in range(40):
            memory.update(f"m{n}", text=f"kite {n}")
    monkeypatch.setattr(past_index, "READ_AT_ONCE", 10)
    monkeypatch.setattr(past_index, "BATCH", 7)
    with Memory(path, clock=clock) as memory:
        past = memory.ctx.search.past
        assert not past.ready(), "a thread reads it"
        assert len(memory.search("boat", k=100, as_of=then)) == 40, "and meanwhile, or afterwards, everything is found"
        assert past._thread is not None
        past._thread.join()
        assert past.ready() and past.lexical.documents == 40
        assert next(h.id for h in memory.search("boat 7", as_of=then)) == "m7"
        assert len(past.search(["boat"], Filters.read(as_of=then), 100)) == 40
    with Memory(path, clock=clock) as memory:
        memory.ctx.search.past.ready()  # closing does not wait for all of it
