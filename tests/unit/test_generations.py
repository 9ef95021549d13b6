"Files that are made from a store are believed only if the store has the very events that they know."
import os
import random
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from toy import Toy

from rlm import Memory
from rlm.core.clock import ManualClock
from rlm.search.arrays import index_path, read_index, write_index
from rlm.search.vector.vector_file import save_index, vector_file_path
from rlm.store.events import Generation
from rlm.store.storage import SQLStorage

pytestmark = pytest.mark.usefixtures("bare")


def test_a_store_holds_its_own_past_and_no_other(path: Path, tmp_path: Path) -> None:
    with Memory(path) as memory:
        storage: SQLStorage = memory.backend
        nothing = storage.event_log.generation()
        assert (nothing.event, nothing.digest) == (0, "") and storage.event_log.holds(nothing)
        memory.write("first")
        one = storage.event_log.generation()
        memory.write("second")
        two = storage.event_log.generation()
        assert (one.event, two.event) == (1, 2) and one == storage.event_log.generation(1) and one.digest != two.digest
        assert storage.event_log.holds(one) and storage.event_log.holds(two) and storage.event_log.holds(nothing)
        assert not storage.event_log.holds(Generation(one.identity, 3, two.digest)), "an event that is not there yet"
        assert not storage.event_log.holds(Generation("another", 2, two.digest))
        assert Generation.from_stamp({"format": 1, **two.as_stamp()}) == two
        for stamp in ({}, {"identity": 1, "event": 1, "digest": ""}, {"identity": "a", "event": True, "digest": ""}):
            with pytest.raises(ValueError, match="no generation"):
                Generation.from_stamp(stamp)
    shutil.copy(path, tmp_path / "copy.db")
    with Memory(path) as memory:
        memory.write("third")
        three, at = memory.backend.event_log.generation(), memory.backend.position()
    with Memory(tmp_path / "copy.db") as memory:
        memory.write("another third")
        assert memory.backend.event_log.holds(two) and memory.backend.position() == at and not memory.backend.event_log.holds(three)


def test_a_generation_outlives_the_erasure_of_another_namespace_that_came_later(path: Path) -> None:
    clock = ManualClock("2026-01-01")
    with Memory(path, clock=clock) as mine, Memory(path, namespace="theirs", clock=clock) as theirs:
        mine.write("mine")
        known = mine.backend.event_log.generation()
        theirs.write("theirs")
        clock.advance(days=1)
        mine.backend.erase_namespace("theirs", clock.now())
        assert mine.backend.event_log.holds(known) and mine.backend.event_log.holds(mine.backend.event_log.generation())


@pytest.fixture
def kept(monkeypatch: pytest.MonkeyPatch, files_at_once: None) -> None:
    "An index is worth a file after fifty memories."
    monkeypatch.setattr("rlm.search.namespace_index.SAVE_AFTER", 50)


def sentences(seed: int, count: int) -> list[str]:
    rng = random.Random(seed)
    syllables = [a + b for a in "bdfgklmnprst" for b in "aeiou"]
    return [" ".join("".join(rng.choices(syllables, k=2)) for _ in range(6)) for _ in range(count)]


def write(path: Path, texts: list[str]) -> None:
    "Write memories and let their index be saved."
    with Memory(path, embedder=Toy()) as memory:
        memory.write_many(texts)
        memory.search("anything at all")


def environment() -> dict[str, str]:
    return os.environ | {"PYTHONPATH": os.pathsep.join([str(Path(__file__).parent), str(Path(__file__).parents[1]), *sys.path])}


def losing_the_log(path: Path) -> None:
    "A power cut: what only stood in the log is gone."
    code = ("import os, sys; from test_generations import *; import rlm.search.namespace_index as n; n.SAVE_AFTER = 50\n"
            "m = Memory(sys.argv[1], embedder=Toy()); m.backend.db.query('PRAGMA wal_autocheckpoint = 0')\n"
            "m.write_many(sentences(2, 150)); m.search('anything at all'); m.index._saver.join(); os._exit(9)")
    done = subprocess.run([sys.executable, "-c", code, str(path)], cwd=Path(__file__).parents[2], env=environment(), check=False)
    assert done.returncode == 9 and Path(f"{path}-wal").stat().st_size > 0
    Path(f"{path}-wal").unlink()
    Path(f"{path}-shm").unlink(missing_ok=True)


def writing_to_a_copy(path: Path) -> None:
    "A backup by `cp`: what was written since stands in the original, whose index files stay."
    shutil.copy(path, copy := path.with_name("copy.db"))
    write(path, sentences(2, 150))
    with sqlite3.connect(path) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    connection.close()
    copy.replace(path)


@pytest.mark.parametrize("lose", [losing_the_log, writing_to_a_copy])
@pytest.mark.parametrize("after", [10, 150, 300], ids=["fewer", "as many", "more"])
def test_files_that_know_lost_events_are_not_believed(path: Path, kept: None, lose: Callable[[Path], None], after: int) -> None:
    write(path, sentences(1, 100))
    lose(path)
    folder = Path(f"{path}.index")
    assert sorted(p.suffix for p in folder.iterdir()) == [".npz", ".vectors"], "the files know what the store does not"
    new = sentences(3, after)
    with Memory(path, embedder=Toy()) as memory, Memory(path, embedder=Toy()) as writing:
        writing.write_many(new)
        assert memory.stats()["memories"] == 100 + after and memory.check() == []
        for text in [*sentences(1, 100)[::7], *new[::7]]:
            assert memory.search(text)[0].text == text
            assert memory.search(text, as_of=memory.clock.now())[0].text == text
        present = {m.text for m in memory.recent(1000)}
        for text in sentences(2, 150)[::10]:
            assert all(h.text in present for h in memory.search(text)) and not any(h.text == text for h in memory.search(text))
        shutil.rmtree(folder)
        with Memory(path, embedder=Toy()) as fresh:
            for text in [*new[::11], *sentences(2, 150)[::30]]:
                assert [(h.id, h.score) for h in memory.search(text)] == [(h.id, pytest.approx(h.score)) for h in fresh.search(text)]


def exchange(arrays: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    "Two memories have each other's number."
    seqs = arrays["fact.seq"].copy()
    seqs[[3, 7]] = seqs[[7, 3]]
    return arrays | {"fact.seq": seqs}


def forget_postings(arrays: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    "The postings of one memory are another's."
    passages = arrays["0.unit"].copy()
    passages[passages == 5] = 6
    return arrays | {"0.unit": passages}


def misremember(arrays: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    "A memory was said by somebody else."
    user = arrays["fact.user"].copy()
    user[2] = ~user[2]
    return arrays | {"fact.user": user}


@pytest.mark.parametrize("wrong", [exchange, forget_postings, misremember])
def test_a_check_compares_the_words_of_an_index_file_with_the_rows(path: Path, kept: None, wrong: Callable[..., Any]) -> None:
    write(path, sentences(1, 100))
    with Memory(path, embedder=Toy()) as memory:
        assert memory.check() == []
        files, place = memory.backend.derived_files, index_path(Path(f"{path}.index"), "words", "default")
        found = read_index(place, {"namespace": "default"})
        assert found is not None
        stamp, arrays = found
        own = {k: stamp[k] for k in ("store", "namespace", "tokeniser", "columns")}
        assert write_index(files, place, own, stamp["position"], wrong(arrays))
        memory.write("one more, which the file does not know")
        [said] = memory.check()
        assert "index file of words of namespace 'default' disagrees with" in said and "--repair" in said
        memory.admin.repair()
        assert memory.check() == []


def test_a_check_compares_the_vectors_of_an_index_file_with_the_rows(path: Path, kept: None) -> None:
    write(path, sentences(1, 100))
    with Memory(path, embedder=Toy()) as memory:
        semantic, files = memory.index.semantic, memory.backend.derived_files
        memory.search("boat")
        assert semantic.index is not None and semantic.model is not None and memory.check() == []
        base = semantic.index.state.base
        order = np.arange(len(base.codes))
        order[[3, 7]] = order[[7, 3]]
        moved = replace(base.codes.take(order), seq=base.codes.seq, chunk=base.codes.chunk)
        semantic.index.restore(replace(base, codes=moved), semantic.index.state.recent, semantic.index.state.position)
        model, place = semantic.model, vector_file_path(path, "default", semantic.model)
        save_index(semantic.index, place, "default", model, files.write, files.digest)
        [said] = memory.check()
        assert "index file of vectors of namespace 'default' disagrees with 2 memories" in said
        memory.admin.repair()
        assert memory.check() == []
