"""Compiled loops and numpy give the same answers: to the last bit, but for rough figures by which a large store chooses candidates, where
scalar products are made several numbers at a time."""
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from toy import Toy

from rlm import Memory
from rlm.bench.stream import begun, model_of, stream
from rlm.bench.workload import LookupEmbedder, Stock, fill, stock
from rlm.core import compiled
from rlm.core.clock import ManualClock
from rlm.search import semantic_index
from rlm.search.metadata_table import MetadataTable
from rlm.search.scorer import change_positions, with_openings
from rlm.search.scoring import SCORE, RankedList
from rlm.store.protocols import IndexDocument

numba = pytest.importorskip("numba", reason="needs numba: pip install 'rlm[fast]'")

SAID = ("The blue boat with the red sail, last week.",
        "배를 5월에 샀어, 바다에 가려고.", "My cat likes the garden.", "고양이가 정원에서 논다.",
        "Thanks!", "When is the train to the harbour?", "We bought bread at the bakery in May 2023.", "빵집은 역 옆이야.",
        "She plays the piano every morning.")
QUESTIONS = ("When did Mina buy the boat?", "배를 언제 샀어?", "Who has a cat in the garden?", "bread in May",
             "what did Joon say about the train",
             "piano music", "고양이 garden", "zzz", "5월에 뭘 샀지?", "the")


@pytest.fixture(autouse=True)
def ready(bare: Path) -> Iterator[None]:
    "Loops are there, and are there again afterwards."
    assert compiled.prepare()
    yield
    assert SCORE.run is not None


@pytest.fixture
def memory(clock: ManualClock) -> Iterator[Memory]:
    "Conversations in two languages, with long texts, roles, speakers, and memories that are gone, held or expired."
    with Memory(":memory:", clock=clock, embedder=Toy()) as opened:
        for n in range(60):
            said = SAID[n % len(SAID)] + ("" if n % 7 else " And then we talked about the sea and the station for a while." * 25)
            opened.write(f"{said} {n}", id=f"m{n}", session=f"s{n // 10}" if n % 11 else None, speaker=("Mina", "Joon", "민아")[n % 3],
                         role=("user", "assistant", None)[n % 3], tags=[f"t{n % 4}"], valid_from=f"202{3 + n % 3}-05-0{1 + n % 9}",
                         **({"valid_to": "2026-01-02"} if n % 13 == 5 else {}))
        opened.delete(["m3", "m17"])
        opened.update("m20", text="The otter took the train")
        opened.update("m21", status="archived")
        yield opened


def scores(hits: Any) -> list[tuple[str, float, dict[str, Any]]]:
    return [(h.id, h.score, {term: dict(shares) for term, shares in h.parts.items()}) for h in hits]


def agree(ask: Callable[[], Any]) -> list[Any]:
    "What loops say, which is what numpy says."
    fast = ask()
    with compiled.interpreted():
        plain = ask()
    assert fast == plain
    return list(fast)


@pytest.mark.parametrize("question", QUESTIONS)
@pytest.mark.parametrize("filters", [{}, {"tags": ["t1"]}, {"speaker": "Joon", "since": "2024-01-01"},
                                     {"status": ("ltm", "hot", "archived")}], ids=str)
def test_a_small_store(memory: Memory, question: str, filters: dict[str, Any], clock: ManualClock) -> None:
    for k in (1, 5, 300):
        agree(lambda k=k: scores(memory.search(question, k, **filters)))
    clock.advance(days=3)  # some have expired
    agree(lambda: scores(memory.search(question, 10, **filters)))


def test_an_explanation(memory: Memory) -> None:
    for question in QUESTIONS:
        for hit in memory.search(question, 3):
            fast = memory.explain(question, hit.id)
            with compiled.interpreted():
                plain = memory.explain(question, hit.id)
            assert (fast.rank, dict(fast.parts), fast.frequencies) == (plain.rank, dict(plain.parts), plain.frequencies)


@pytest.fixture(scope="module")
def some() -> Stock:
    return stock(3000, 30, 11)


@pytest.mark.parametrize("size", ["whole", "by heads", "large"])
def test_a_store_of_any_size(some: Stock, size: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(semantic_index, "EXACT_LIMIT", 4096 if size == "whole" else 0)
    monkeypatch.setattr(semantic_index, "DENSE_LIMIT", 0 if size == "large" else 20_000)
    fill(tmp_path / "memory.db", some)
    with Memory(tmp_path / "memory.db", embedder=LookupEmbedder(some.questions, some.asked)) as memory:
        assert memory.index.model() and memory.ctx.search.searcher.candidates.scores_all == (size != "large")
        for question in some.questions:
            if size != "large":
                agree(lambda question=question: scores(memory.search(question, 10)))
                continue
            fast = agree(lambda question=question: [(h.id, round(h.score, 5)) for h in memory.search(question, 10)])
            assert len(fast) == 10


def test_what_moves_is_found_alike() -> None:
    rng, table, when = np.random.default_rng(5), MetadataTable(), datetime(2026, 5, 1, tzinfo=UTC)
    seqs = np.cumsum(rng.integers(1, 4, 300)).tolist()
    table.add([IndexDocument(seq, {"text": ["x"]}, ("I moved.", "I sail.")[seq % 2], True, when, None,
                             None if (talk := rng.integers(0, 20)) < 8 else f"s{talk}", None, None) for seq in seqs])
    table.remove(seqs[::7])
    there, moved = [seq for n, seq in enumerate(seqs) if n % 7], 0
    for n in (1, 8, 64, 200) * 5:
        scores, parts = np.sort(rng.integers(0, 50, n))[::-1] / 50, rng.integers(0, 4, (n, 2)) / 10  # some are equal
        ranked = RankedList.from_columns(("words", "session"), rng.choice(there, n, replace=False), scores, parts)
        fast, changes = with_openings(ranked, table, 2.0), change_positions(ranked, table)
        with compiled.interpreted():
            plain, also = with_openings(ranked, table, 2.0), change_positions(ranked, table)
        assert np.array_equal(fast.rows, plain.rows) and changes.tolist() == also.tolist()
        moved += (fast is not ranked) + (len(changes) > 0)
    assert moved > 20


def test_attention(tmp_path: Path) -> None:
    some, said = stream(600, 3), list[list[Any]]()
    for fast in (True, False):
        path, said_here = tmp_path / f"{fast}.db", list[Any]()
        begun(path, some)
        model, turns, at = model_of(some), list(some.turns()), some.live
        with (nullcontext() if fast else compiled.interpreted()), Memory(path, embedder=model, checkpoints="full") as memory:
            for q in some.questions[:120]:
                for turn in turns[at:q.at]:
                    memory.write(**turn)
                at = max(at, q.at)
                found = memory.attention.intelligent_search(q.text, model.embed([q.text], "query")[0])
                said_here.append((found["source"], [(r.seq, r.score) for r in found["results"]]))
        said.append(said_here)
    assert {layer for layer, _ in said[0]} >= {"checkpoint", "ltm_fallback"}
    assert said[0] == said[1]


def test_a_learned_ranker_goes_by_columns(memory: Memory) -> None:
    class Doubled:
        def weigh(self, parts: Any) -> Any:
            return {name: 2.0 * np.asarray(amounts, np.float64) for name, amounts in parts.items()}
    memory.index.scorer.ranker = Doubled()
    agree(lambda: scores(memory.search("boat", 5)))


def test_one_question_loads_no_compiler_and_many_do(tmp_path: Path) -> None:
    code = ("import sys; from rlm import Memory\n"
            "from rlm.core import compiled\n"
            "with Memory(':memory:', embedder='none') as m:\n"
            "    m.write('the boat')\n"
            "    for n in range(int(sys.argv[1])): m.search('boat')\n"
            "    print('numba' in sys.modules, end=' ')\n"
            "    thread = compiled._loader\n"
            "    if thread is not None: thread.join()\n"
            "    m.search('boat')\n"
            "print('numba' in sys.modules, compiled._waiting == [])")
    said = [subprocess.run([sys.executable, "-c", code, str(n)], capture_output=True, text=True, check=True, cwd=tmp_path).stdout.strip()
            for n in (compiled.LATER - 1, compiled.LATER)]
    assert said == ["False False False", "False True True"], "no search waits for it; a rest does"


def test_loops_are_compiled_by_a_process_of_its_own(tmp_path: Path) -> None:
    code = ("import os, sys; from rlm import Memory\n"
            "from rlm.core import compiled\n"
            "seen = []\n"
            "before, folder = compiled._compiled, os.environ['NUMBA_CACHE_DIR']\n"
            "compiled._compiled = lambda *given: seen.append(os.listdir(folder)) or before(*given)\n"
            "with Memory(':memory:', embedder='none') as m:\n"
            "    m.write('the boat')\n"
            "    for n in range(compiled.LATER - 1): m.search('boat')\n"
            "    compiled._waiting[:] = [it for it in compiled._waiting if it.body.__module__ == 'rlm.search.lexical.bm25']\n"
            "    m.search('boat')\n"  # the loops of one module are enough here
            "    compiled._loader.join()\n"
            "print(bool(seen), all(any(name.startswith('rlm-loops-') for name in names) for names in seen))")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=tmp_path,
                          env=os.environ | {"NUMBA_CACHE_DIR": str(tmp_path)})
    assert done.stdout.strip() == "True True" and not done.stderr, "here they are only loaded"


def test_threads_that_search_at_once_load_once(tmp_path: Path) -> None:
    code = ("import threading, warnings; warnings.simplefilter('error')\n"
            "from rlm import Memory\n"
            "from rlm.core import compiled\n"
            "with Memory(':memory:', embedder='none') as m:\n"
            "    m.write('the boat')\n"
            "    found = []\n"
            "    def search():\n"
            "        for _ in range(9): found.append(len(m.search('boat')))\n"
            "    threads = [threading.Thread(target=search) for _ in range(4)]\n"
            "    [t.start() for t in threads]; [t.join() for t in threads]\n"
            "    compiled._loader.join()\n"
            "print(len(found), sum(found), len(compiled._ready) == len({r.__name__ for r in compiled._ready}), compiled._waiting)")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=tmp_path)
    assert done.stdout.strip() == "36 36 True []" and not done.stderr


def test_a_compiler_that_does_not_fit_is_said_once_and_no_search_fails(tmp_path: Path) -> None:
    (tmp_path / "numba.py").write_text("raise ImportError('needs another numpy')")
    code = ("from rlm import Memory\n"
            "from rlm.core import compiled\n"
            "with Memory(':memory:', embedder='none') as m:\n"
            "    m.write('the boat')\n"
            "    found = sum(len(m.search('boat')) for _ in range(10))\n"
            "    compiled._loader.join()\n"
            "    print(found + sum(len(m.search('boat')) for _ in range(10)))")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=tmp_path,
                          env={"PYTHONPATH": str(tmp_path)})
    assert done.stdout.strip() == "20" and done.stderr.count("does not compile: ImportError: needs another numpy") == 1


def test_processes_that_start_together_compile_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from rlm.core.files import file_lock
    marks, loaded = [str(tmp_path / "rlm-loops-1")], list[float]()
    monkeypatch.setattr(compiled, "load", lambda: loaded.append(0.0))
    monkeypatch.setattr(os, "nice", lambda n: 0)
    with file_lock(tmp_path / "rlm-loops"):  # another process compiles
        second = threading.Thread(target=compiled._compile_once, args=([], marks))
        second.start()
        second.join(0.2)
        assert second.is_alive() and not loaded, "it did not wait"
        compiled.mark_compiled(marks)
    second.join(60)
    assert not second.is_alive() and not loaded
    Path(marks[0]).unlink()
    compiled._compile_once([], marks)
    assert loaded and Path(marks[0]).exists()
