"A model whose vectors change their size: nothing is mixed, and the store says what to do."
from pathlib import Path

import pytest
from toy import Toy

from rlm import Memory
from rlm.core.errors import ModelMismatch
from rlm.search.embedding.base import model_info
from rlm.search.embedding.worker import embed_batch, reembed, switch_model


def resized(path: Path, n: int = 30) -> None:
    "A store whose model has since begun to give longer vectors."
    with Memory(path, embedder=Toy("openai:m", 8)) as memory:
        memory.write_many([f"boat number {i}" for i in range(n)])
        assert memory.recall("boat")


def test_vectors_of_another_size_are_refused_and_made_anew(path: Path) -> None:
    resized(path)
    longer = Toy("openai:m", 16)
    with Memory(path, embedder=longer) as memory:
        for act in (lambda: memory.write("a cat"), lambda: memory.search("boat"), lambda: memory.recall("boat"),
                    lambda: memory.write_many(["a cat", "a dog"]), lambda: memory.update(memory.recent(1)[0].id, text="a ship")):
            with pytest.raises(ModelMismatch, match=r"8 numbers.*16 numbers.*reembed"):
                act()
        assert len(memory.recent(100)) == 30 and memory.check() == []
        report = reembed(memory.backend, longer, memory.clock)
        assert (report.model, report.embedded, report.removed) == ("openai:m", 30, 0)
        cat = memory.write("a cat")
        assert memory.search("kitten", k=1)[0].id == cat.id and memory.recall("boat") and memory.check() == []
        assert memory.backend.db.query("SELECT DISTINCT dim FROM vectors") == [(16,)]
        assert reembed(memory.backend, longer, memory.clock).embedded == 0
    with Memory(path, embedder=longer) as memory:
        assert memory.recall("kitten")[0].id == cat.id


def test_a_store_that_has_mixed_sizes_says_so_and_is_mended(path: Path) -> None:
    resized(path)
    longer = Toy("openai:m", 16)
    with Memory(path, embedder="none") as memory:
        odd = memory.write("a cat")
        row = longer.embed(["a cat"], "passage")[0].astype("<f2").tobytes()
        memory.backend.db.query("INSERT INTO vectors VALUES (?, 'openai:m', 0, 16, ?)", (odd.seq, row))
        assert [p for p in memory.check() if "reembed" in p and odd.id in p]
        assert reembed(memory.backend, longer, memory.clock).embedded == 30
        assert memory.check() == [] and memory.backend.db.query("SELECT count(*) FROM vectors WHERE dim = 16") == [(31,)]


@pytest.mark.nightly
def test_a_killed_reembedding_to_another_size_goes_on(path: Path) -> None:
    resized(path)
    longer = Toy("openai:m", 16)
    with Memory(path, embedder="none") as memory:
        storage = memory.backend
        assert embed_batch(storage, longer, model_info(longer), storage.vectors.missing("openai:m", 0, 10, dim=16), memory.clock) == 10
        assert switch_model(storage, model_info(longer), memory.clock) is False
        assert reembed(storage, longer, memory.clock).embedded == 20 and memory.check() == []
