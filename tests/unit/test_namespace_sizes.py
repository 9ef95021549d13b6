"A namespace costs memory for what it holds, wherever its memories lie in the store."
import random
import tracemalloc
from pathlib import Path

import numpy as np
import pytest
from toy import Toy

from rlm import Memory
from rlm.search.arrays import SeqTable
from rlm.search.vector.vector_segments import passing_rows

pytestmark = pytest.mark.usefixtures("bare")
FAR = 20_000_000


def far(memory: Memory, number: int) -> None:
    "Go on counting memories from a number, as in a store where others have written as many."
    memory.write("a first one, so that there is a counter", id="first")
    memory.delete("first", erase=True)
    with memory.backend.transaction():
        memory.backend.db.query("UPDATE sqlite_sequence SET seq = ? WHERE name = 'memories'", (number,))


@pytest.mark.parametrize("model", [Toy(), "none"])
def test_a_namespace_of_one_memory_takes_little_memory_in_a_store_of_millions(path: Path, model: Toy | str) -> None:
    with Memory(path, embedder=model) as memory:
        memory.write_many(["boat", "kitten", "tomato"])
        for query in ("boat at sea", "kitten"):  # what a process loads once
            memory.search(query)
            memory.recall(query)
    with Memory(path, namespace="mine", embedder=model) as memory:
        far(memory, FAR)
        one = memory.write("an old boat at sea", id="boat")
        assert one.seq == FAR + 1
        tracemalloc.start()
        assert [h.id for h in memory.search("boat")] == [h.id for h in memory.search("boat", role=None, status="any")] == ["boat"]
        assert [h.id for h in memory.search("boat", tags=[], category=None, since="2000-01-01")] == ["boat"]
        before, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert peak < 2_000_000, f"{peak:,} bytes"
        assert before < 1_000_000


@pytest.mark.parametrize("model", [Toy(), "none"])
def test_memories_that_lie_far_apart_are_found_as_if_they_did_not(path: Path, tmp_path: Path, model: Toy | str) -> None:
    rng = random.Random(3)
    texts = [f"{rng.choice(['boat', 'kitten', 'tomato', 'piano'])} {rng.choice(['red', 'blue'])} number{n}" for n in range(60)]
    with Memory(path, embedder=model) as near, Memory(tmp_path / "far.db", embedder=model) as far_apart:
        far(far_apart, FAR)
        for n, text in enumerate(texts):
            if n % 20 == 7:
                with far_apart.backend.transaction():
                    far_apart.backend.db.query("UPDATE sqlite_sequence SET seq = seq + 3000000 WHERE name = 'memories'")
            for memory in (near, far_apart):
                memory.write(text, id=f"m{n}", speaker=("Mina", "Joon")[n % 2], session="s" if n % 3 else None)
            if n % 6 == 5:
                for memory in (near, far_apart):
                    memory.update(f"m{n - 3}", text=texts[n - 3] + " again")
                    memory.delete(f"m{n - 4}")
                for query in ("red boat", "kitten number7", "blue piano", f"number{n}"):
                    for filters in ({}, {"speaker": "Mina"}, {"session": "s"}, {"as_of": near.clock.now()}):
                        here, there = near.search(query, 5, **filters), far_apart.search(query, 5, **filters)
                        assert [h.id for h in there] == [h.id for h in here]
                        assert [h.score for h in there] == pytest.approx([h.score for h in here], abs=1e-4 if model == "none" else 0.05)
        far_apart.link("m2", "m5")
        assert far_apart.graph.stats()["memories linked"] == 2 and far_apart.check() == []


def test_a_table_by_memory_is_what_a_dictionary_is() -> None:
    rng = np.random.default_rng(5)
    for top in (300, 10**6, 10**12):
        table, known = SeqTable(), dict[int, int]()
        for n in range(40):
            seqs = np.unique(rng.integers(1, top, rng.integers(0, 30))) + (0 if n % 2 else top // 2)
            values = rng.integers(0, 5, len(seqs))
            table.set(seqs, values)
            known |= dict(zip(seqs.tolist(), values.tolist(), strict=True))
            asked = np.concatenate([seqs, rng.integers(0, 2 * top, 50)])
            assert table.get(asked).tolist() == [known.get(s, 0) for s in asked.tolist()]
            assert table.seqs().tolist() == sorted(s for s, value in known.items() if value)
        assert table.nbytes < 200_000


def test_rows_pass_wherever_their_memories_lie() -> None:
    for seqs in ([3, 5, 5, 9], [3, 5, 5, 10**9]):
        column, allowed = np.array(seqs), np.array([1, 5, seqs[-1], 2 * 10**9])
        assert passing_rows(column, allowed).tolist() == [False, True, True, True]
    assert passing_rows(np.array([3, 5, 9]), np.array([False] * 5 + [True])).tolist() == [False, True, False]
