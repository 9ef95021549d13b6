"""Vectors that follow: a write is committed and found by its words, a thread embeds it, and nothing that happens meanwhile is lost."""
import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from prometheus_client.parser import text_string_to_metric_families
from toy import Toy

from rlm import Memory
from rlm.core.errors import EmbeddingError, StoreMoved
from rlm.core.settings import load_settings
from rlm.search.embedding import worker
from rlm.search.embedding.base import Kind
from rlm.search.embedding.worker import EmbeddingWorker
from rlm.service.cli.main import main
from rlm.service.http.pool import MemoryPool
from rlm.service.http.routes import search_response
from rlm.service.http.telemetry import Metrics
from rlm.service.mcp.sources import LocalMemory
from rlm.service.mcp.tools import MemoryTools
from rlm.store.embedding_model import EmbeddingModelInfo, Vectors
from rlm.store.vectors import VectorTable

LINES = ["The boat came in late.", "고양이가 잠을 잔다.", "Bread is baked at six."]


class Gated(Toy):
    "Embeds passages only while its gate is open."

    def __init__(self) -> None:
        super().__init__()
        self.gate, self.asked = threading.Event(), threading.Event()

    def embed(self, texts: Sequence[str], kind: Kind) -> Vectors:
        if kind == "passage":
            self.asked.set()
            assert self.gate.wait(20)
        return super().embed(texts, kind)


class Choosy(Toy):
    "Can't read some texts; can't read any while it is out of reach."
    out_of_reach = False

    def embed(self, texts: Sequence[str], kind: Kind) -> Vectors:
        if kind == "passage" and (self.out_of_reach or any("unreadable" in t for t in texts)):
            raise EmbeddingError("The model does not answer.")
        return super().embed(texts, kind)


def missing(memory: Memory) -> list[str]:
    "Texts of the memories without vectors."
    vectors = memory.backend.vectors
    return sorted(s.text for s in vectors.sources(vectors.missing("toy")))


@pytest.fixture
def gated(tmp_path: Path) -> Iterator[tuple[Memory, Gated]]:
    model = Gated()
    with Memory(tmp_path / "m.db", embedder=model, embedding="later") as memory:
        yield memory, model
        model.gate.set()


def test_a_write_returns_before_its_vector_and_is_found_by_its_words(gated: tuple[Memory, Gated]) -> None:
    memory, model = gated
    written = memory.write(LINES[0])
    assert model.asked.wait(20) and missing(memory) == [LINES[0]]
    assert [h.id for h in memory.search("boat")] == [written.id]
    model.gate.set()
    assert memory.embeddings.worker.wait(20) and not missing(memory)
    assert [h.id for h in memory.search("harbour")] == [written.id]  # by its meaning


def test_an_error_of_what_follows_keeps_no_memory_from_its_vector(gated: tuple[Memory, Gated], caplog: pytest.LogCaptureFixture) -> None:
    memory, model = gated
    called = list[list[int]]()

    def fails(seqs: list[int]) -> None:
        called.append(seqs)
        raise ValueError("no judgement")

    def moves(seqs: list[int]) -> None:
        raise StoreMoved("moved to b")
    model.gate.set()
    memory.writer._judge = fails  # type: ignore[method-assign]
    stored = [memory.write(line) for line in LINES]
    assert memory.embeddings.worker.wait(20) and not missing(memory) and not memory.embeddings.worker.error
    assert sorted(s for seqs in called for s in seqs) == [r.seq for r in stored] and "no judgement" in caplog.text
    caplog.clear()
    memory.writer._judge = moves  # type: ignore[method-assign]
    memory.write("It went elsewhere.")
    assert memory.embeddings.worker.wait(20) and "moved to b" in caplog.text and "Traceback" not in caplog.text


@pytest.mark.parametrize("error", [ValueError("odd letters"), MemoryError(), StopIteration()])
def test_an_unforeseen_error_of_a_model_costs_one_memory_and_neither_the_thread_nor_who_waits(tmp_path: Path, error: Exception) -> None:
    class Odd(Toy):
        def embed(self, texts: Sequence[str], kind: Kind) -> Vectors:
            if any("odd" in text for text in texts):
                raise error
            return super().embed(texts, kind)
    with Memory(tmp_path / "m.db", embedder=Odd(), embedding="later") as memory:
        memory.write_many([LINES[0], "An odd line.", LINES[2]])
        assert memory.embeddings.worker.wait(20) and missing(memory) == ["An odd line."]
        [said] = memory.embeddings.worker.refused.values()
        assert type(error).__name__ in said
        memory.write(LINES[1])
        assert memory.embeddings.worker.wait(20) and missing(memory) == ["An odd line."]


def test_an_error_of_the_store_is_waited_out_and_refuses_no_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for pause in ("FIRST_PAUSE_S", "LONGEST_PAUSE_S"):
        monkeypatch.setattr(f"rlm.search.embedding.worker.{pause}", .01)
    stored, full = VectorTable.insert, [True]

    def insert(table: VectorTable, info: EmbeddingModelInfo, vectors: Mapping[int, Vectors]) -> None:
        if full[0]:
            raise OSError("no space left")
        stored(table, info, vectors)
    monkeypatch.setattr(VectorTable, "insert", insert)
    with Memory(tmp_path / "m.db", embedder=Toy(), embedding="later") as memory:
        memory.write_many(LINES)
        worker = memory.embeddings.worker
        assert not worker.wait(20) and "no space left" in worker.error and not worker.refused
        full[0], deadline = False, time.monotonic() + 60
        while not worker.wait(20) and time.monotonic() < deadline:
            time.sleep(.02)
        assert not missing(memory) and not worker.error


def test_a_model_that_can_not_be_loaded_is_said_and_tried_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker, "FIRST_PAUSE_S", .05)
    with Memory(tmp_path / "m.db", embedder=Toy(), embedding="later") as memory:
        load, fails = memory.embeddings.worker.load, [MemoryError(), RuntimeError("no engine")]

        def failing() -> object:
            if fails:
                raise fails.pop(0)
            return load()
        monkeypatch.setattr(memory.embeddings.worker, "load", failing)
        memory.write(LINES[0])
        deadline = time.monotonic() + 20
        assert not memory.embeddings.worker.wait(20) and "Error" in memory.embeddings.worker.error
        while missing(memory) and time.monotonic() < deadline:
            time.sleep(.05)
        assert not missing(memory)


def test_what_changes_while_it_is_embedded_gets_the_vector_of_its_new_text(gated: tuple[Memory, Gated]) -> None:
    memory, model = gated
    kept, gone = memory.write_many(["The boat is red.", "A kitten sleeps."])
    assert model.asked.wait(20)
    memory.update(kept.id, text="The piano is red.")
    memory.delete(gone.id)
    model.gate.set()
    assert memory.embeddings.worker.wait(20) and not missing(memory)
    info = memory.backend.vectors.model()
    assert info is not None
    [stored] = memory.backend.vectors.read(info, [memory.get(kept.id).seq or 0])[2].astype(np.float32)
    assert float(stored @ Toy.embed(model, ["The piano is red."], "query")[0]) > .999


def test_an_update_of_other_fields_embeds_nothing(gated: tuple[Memory, Gated]) -> None:
    memory, model = gated
    model.gate.set()
    written = memory.write(LINES[0])
    assert memory.embeddings.worker.wait(20)
    before = model.texts
    memory.update(written.id, pinned=True)
    assert memory.embeddings.worker.wait(20) and model.texts == before
    memory.delete(written.id)
    memory.restore(written.id)
    assert memory.embeddings.worker.wait(20) and not missing(memory)


def test_every_way_in_is_embedded_in_the_end(tmp_path: Path, gated: tuple[Memory, Gated]) -> None:
    memory, model = gated
    model.gate.set()
    with Memory(tmp_path / "other.db", embedder="none") as other:
        other.write("A train leaves.")
        other.export_jsonl(tmp_path / "x.jsonl")
    memory.write_many(LINES)
    memory.add_conversation([{"role": "user", "content": "The garden is wet."}, {"role": "assistant", "content": "Take boots."}])
    memory.import_jsonl(tmp_path / "x.jsonl")
    memory.rules.add_rule("when rain then boots = True")
    memory.namespace("second").write("Another namespace.")
    assert memory.embeddings.worker.wait(20) and not missing(memory)


def test_a_write_near_an_anchor_is_embedded_at_once(gated: tuple[Memory, Gated]) -> None:
    memory, model = gated
    model.gate.set()
    memory.write_many(LINES[2:], slot="A")
    assert not missing(memory)


def test_one_text_that_the_model_cannot_read_keeps_no_other_from_its_vector(tmp_path: Path) -> None:
    with Memory(tmp_path / "m.db", embedder=Choosy(), embedding="later") as memory:
        memory.write_many([*LINES, "an unreadable line"])
        assert memory.embeddings.worker.wait(20)
        assert missing(memory) == ["an unreadable line"] and len(memory.embeddings.worker.refused) == 1
        memory.update(memory.search("unreadable")[0].id, text="A line.")
        assert memory.embeddings.worker.wait(20) and not missing(memory) and not memory.embeddings.worker.refused


def test_many_texts_that_the_model_cannot_read_do_not_pass_for_an_outage(tmp_path: Path) -> None:
    with Memory(tmp_path / "m.db", embedder=Choosy(), embedding="later") as memory:
        memory.write_many([*(f"an unreadable line {n}" for n in range(9)), *LINES])
        assert memory.embeddings.worker.wait(20) and not memory.embeddings.worker.error
        assert len(missing(memory)) == 9 == len(memory.embeddings.worker.refused)


@pytest.mark.parametrize("count", [1, 3, 9])
def test_an_outage_is_told_and_waited_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, count: int) -> None:
    for pause in ("FIRST_PAUSE_S", "LONGEST_PAUSE_S"):
        monkeypatch.setattr(f"rlm.search.embedding.worker.{pause}", .01)
    model = Choosy()
    model.out_of_reach = True
    with Memory(tmp_path / "m.db", embedder=model, embedding="later") as memory:
        memory.write_many([f"line {n}" for n in range(count)])
        worker = memory.embeddings.worker
        assert not worker.wait(20) and "does not answer" in worker.error and worker.waiting == count and not worker.refused
        model.out_of_reach = False
        deadline = time.monotonic() + 60
        while not worker.wait(20) and time.monotonic() < deadline:
            time.sleep(.02)
        assert not missing(memory) and not worker.error


def test_without_a_model_nothing_waits(tmp_path: Path) -> None:
    with Memory(tmp_path / "m.db", embedder="none", embedding="later") as memory:
        memory.write_many(LINES)
        assert not memory.embeddings.later and memory.embeddings.worker.waiting == 0 and memory.search("boat")
        assert not any(t.name == "rlm-embedding" for t in threading.enumerate())


def open_once_closing(model: Gated, worker: EmbeddingWorker) -> None:
    "Let the batch under way end once the store is being closed, which only a field of the worker's own tells."
    while not worker._closed:
        time.sleep(.005)
    model.gate.set()


def test_a_burst_of_writes_is_embedded_once_it_pauses(gated: tuple[Memory, Gated], monkeypatch: pytest.MonkeyPatch) -> None:
    memory, model = gated
    monkeypatch.setattr(worker, "REST_S", 60)
    model.gate.set()
    assert memory.embeddings.worker.wait(20)
    model.asked.clear()
    for n in range(8):
        memory.write(f"line {n}")
    assert not model.asked.wait(.3) and len(missing(memory)) == 8
    assert memory.embeddings.worker.wait(20) and not missing(memory)  # whoever waits for the vectors ends the rest


def test_writes_without_a_pause_put_their_vectors_off_for_a_while_only(gated: tuple[Memory, Gated], monkeypatch: pytest.MonkeyPatch,
                                                                       ) -> None:
    memory, model = gated
    monkeypatch.setattr(worker, "REST_S", .2)
    monkeypatch.setattr(worker, "LONGEST_REST_S", .2)
    model.gate.set()
    assert memory.embeddings.worker.wait(20)
    model.asked.clear()
    for n in range(400):
        memory.write(f"line {n}")
        if model.asked.wait(.05):
            break
    assert model.asked.is_set()


def test_a_store_that_is_closed_while_writes_are_awaited_embeds_a_batch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker, "REST_S", 60)
    with Memory(tmp_path / "m.db", embedder=Toy(), embedding="later") as memory:
        memory.write(LINES[0])
    with Memory(tmp_path / "m.db", embedder="none") as memory:
        assert not missing(memory)


def test_closing_ends_the_thread_and_leaves_the_rest_for_the_next_opening(tmp_path: Path) -> None:
    model = Gated()
    with Memory(tmp_path / "m.db", embedder=model, embedding="later") as memory:
        memory.write_many([f"line {n}" for n in range(20)])
        assert model.asked.wait(20)
        threading.Thread(target=open_once_closing, args=(model, memory.embeddings.worker)).start()
    assert not any(t.name == "rlm-embedding" for t in threading.enumerate())
    with Memory(tmp_path / "m.db", embedder=Toy(), embedding="later") as memory:
        assert missing(memory)
        memory.embeddings.resume()
        assert memory.embeddings.worker.wait(20) and not missing(memory)


def test_what_a_killed_process_left_is_embedded_by_the_command(tmp_path: Path) -> None:
    script = textwrap.dedent("""
        import os, signal, sys, time
        sys.path[:0] = [sys.argv[2]]
        import toy
        from rlm import Memory
        class Killed(toy.Toy):
            def embed(self, texts, kind):
                if self.texts > 20:
                    os.kill(os.getpid(), signal.SIGKILL)
                return super().embed(texts, kind)
        memory = Memory(sys.argv[1], embedder=Killed(), embedding="later")
        memory.write_many([f"line {n} of the boat" for n in range(60)])
        time.sleep(60)
    """)
    path = tmp_path / "m.db"
    done = subprocess.run([sys.executable, "-c", script, str(path), str(Path(__file__).parent.parent)], env=os.environ, timeout=60,
                          check=False)
    assert done.returncode == -signal.SIGKILL
    with Memory(path, embedder=Toy()) as memory:
        assert len(memory.list(k=100)) == 60 and missing(memory) and not memory.check()
    result = CliRunner().invoke(main, ["reembed", "--missing", "--embedder", "subjects", "--db", str(path)])
    assert result.exit_code == 0 and "memories embedded with toy" in result.output
    with Memory(path, embedder=Toy()) as memory:
        assert not missing(memory) and not memory.check()


def test_two_processes_worth_of_workers_on_one_file_agree(tmp_path: Path) -> None:
    path = tmp_path / "m.db"
    with Memory(path, embedder=Toy(), embedding="later") as one, Memory(path, embedder=Toy(), embedding="later") as two:
        for n in range(30):
            (one if n % 2 else two).write(f"line {n}")
        one.embeddings.resume()
        assert one.embeddings.worker.wait(20) and two.embeddings.worker.wait(20)
        assert not missing(one) and not one.check()


def test_what_an_earlier_process_left_is_embedded_by_one_at_a_time(tmp_path: Path) -> None:
    path = tmp_path / "m.db"
    Memory(path, embedder="none").write(LINES[0])
    code = f"""
import sys, time
from rlm import Memory
with Memory({str(path)!r}, embedder="none").backend.db.lease("embedding") as mine:
    print(mine, flush=True)
    time.sleep(60)
"""
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout is not None and other.stdout.readline() == "True\n"
        with Memory(path, embedder=Toy(), embedding="later") as memory:
            with memory.backend.db.lease("embedding") as mine, memory.backend.db.lease("sleep default") as sleeps:
                assert (mine, sleeps) == (False, True)
            memory.embeddings.resume()
            assert not memory.embeddings.worker.wait(.2) and missing(memory)
            other.kill()  # gives its lock back
            assert memory.embeddings.worker.wait(20) and not missing(memory)
    with Memory(path, read_only=True, embedder="none") as memory, memory.backend.db.lease("embedding") as mine:
        assert mine, "nothing is done where nothing is written"


def test_what_comes_without_vectors_meanwhile_is_embedded_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    "A backup that is restored under a running server, or another process that has no model; also while something is written all the time."
    monkeypatch.setattr(worker, "LOOK_S", .5)
    with Memory(tmp_path / "m.db", embedder=Toy(), embedding="later") as memory:
        memory.write(LINES[0])
        assert memory.embeddings.worker.wait(20)
        with Memory(tmp_path / "m.db", embedder="none") as other:
            other.write(LINES[1])
        until = time.monotonic() + 20
        while LINES[1] in missing(memory) and time.monotonic() < until:
            memory.write("Another one.")
            time.sleep(.05)
        assert LINES[1] not in missing(memory)


def test_a_server_embeds_later_and_shows_it_in_its_metrics(tmp_path: Path) -> None:
    pool = MemoryPool(load_settings(db_path=tmp_path / "m.db", environment={}), embedder=Toy())
    metrics = Metrics(pool.counters, pool.embedding_worker)
    assert b"rlm_embedding" not in metrics.page()
    with pool.use("default") as memory:
        assert memory.embeddings.later
        memory.write(LINES[0])
        assert memory.embeddings.worker.wait(20)
    figures = {s.name: s.value for f in text_string_to_metric_families(metrics.page().decode()) for s in f.samples}
    assert (figures["rlm_embedding_waiting"], figures["rlm_embedding_embedded_total"], figures["rlm_embedding_failing"]) == (0, 1, 0)
    pool.close()
    with MemoryPool(load_settings(db_path=tmp_path / "m.db", embedding="now", environment={}), embedder=Toy()).use("default") as memory:
        assert not memory.embeddings.later
        memory.close()


def test_a_store_that_is_only_read_has_no_worker(tmp_path: Path) -> None:
    Memory(tmp_path / "m.db", embedder="none").write(LINES[0])
    with Memory(tmp_path / "m.db", embedder=Toy(), embedding="later", read_only=True) as memory:
        memory.embeddings.resume()
        assert isinstance(memory.embeddings.worker, EmbeddingWorker) and memory.search("boat")
        assert not any(t.name == "rlm-embedding" for t in threading.enumerate())


NOISE = ["The boat is in the harbour.", "Tea is at six.", "The bus leaves at noon.", "The cat sleeps."]


def without_vectors(path: Path, texts: list[str]) -> None:
    "A store whose first memories have vectors and whose later ones have none, as after `--later`."
    with Memory(path, embedder=Toy()) as memory:
        memory.write_many(NOISE)
    with Memory(path, embedder="none") as memory:
        memory.write_many([{"text": t, "id": f"w{n}"} for n, t in enumerate(texts)])


def test_a_memory_without_a_vector_is_found_by_its_words_and_a_search_says_how_many_wait(tmp_path: Path) -> None:
    without_vectors(tmp_path / "m.db", [*(f"Order {31400 + n} was sent." for n in range(40)), "The ferry to Skye is full."])
    with Memory(tmp_path / "m.db", embedder="none", read_only=True) as words:
        by_words = words.search("order 31415")
        assert not by_words.waiting and "no vector" not in repr(by_words)
    with Memory(tmp_path / "m.db", embedder=Toy(), read_only=True) as memory:
        found = memory.search("order 31415")
        assert found.waiting == 41 == memory.stats()["without_vector"] == memory.embeddings.worker.waiting
        assert found[0].text == by_words[0].text == "Order 31415 was sent."
        assert found[0].score == pytest.approx(sum(sum(p.values()) for p in found[0].parts.values()))
        assert repr(found).endswith("41 memories have no vector yet, and can be found by words alone (rlm reembed --missing)")
        assert found.as_dicts()[0]["waiting"] == 41 and "no vector" in found._repr_html_()
        assert memory.search("Is the ferry full?")[0].text == "The ferry to Skye is full."
    with Memory(tmp_path / "m.db", embedder=Toy()) as memory:
        assert memory.search("order 31415").waiting == 41
        memory.write("Another one.")
        assert memory.search("order 31415").waiting == 41, "one that has its vector at once does not count"
        memory.delete("w3")
        assert memory.search("order 31415").waiting == 40
        assert memory.embeddings.embed_missing("default", memory.clock) == 40 and not memory.search("order 31415").waiting
        assert memory.stats()["without_vector"] == 0


def test_a_memory_without_a_vector_is_as_likely_as_by_words_and_no_floor_cuts_it(tmp_path: Path) -> None:
    def fitted() -> Toy:
        return Toy("multilingual-e5-small, a toy")
    with Memory(tmp_path / "m.db", embedder=fitted()) as memory:
        memory.write_many([f"The {w} is in the harbour." for w in ("boat", "ferry", "yacht")])
    with Memory(tmp_path / "m.db", embedder="none") as memory:
        memory.write_many([f"Order {31400 + n} was sent." for n in range(40)])
        by_words = memory.search("order 31415")[0]
    with Memory(tmp_path / "m.db", embedder=fitted(), read_only=True) as memory:
        found = memory.search("order 31415")
        assert found[0].text == by_words.text == "Order 31415 was sent." and found.waiting == 40
        assert found[0].relevance == pytest.approx(by_words.relevance)


def test_each_interface_says_how_many_memories_have_no_vector(tmp_path: Path) -> None:
    without_vectors(tmp_path / "m.db", ["Order 31415 was sent."])
    settings = load_settings(db_path=tmp_path / "m.db", embedding="now", environment={})
    with MemoryPool(settings, embedder=Toy()).use("default") as memory:
        assert search_response(memory.search("order 31415"), "default", 0.0)["waiting"] == 1
        assert MemoryTools(LocalMemory(memory)).memory_search("order 31415")["waiting"] == 1
        memory.embeddings.embed_missing("default", memory.clock)
        assert "waiting" not in search_response(memory.search("order 31415"), "default", 0.0)
        memory.close()
