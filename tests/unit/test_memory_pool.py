"The memories of a server: as many namespaces as there may be, within the files that a process may open."
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import anyio.to_thread
import pytest

from rlm import Memory
from rlm.core.clock import ManualClock
from rlm.core.settings import load_settings
from rlm.recall.graph import GraphIndex
from rlm.service.cli.recall import status_of
from rlm.service.http.errors import HttpProblem
from rlm.service.http.pool import THREADS, MemoryPool, namespace_limit
from rlm.service.memory import Memory as Facade

FILES = Path("/proc/self/fd")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "m.db"


@pytest.fixture
def make(path: Path) -> Iterator[Callable[..., MemoryPool]]:
    made = list[MemoryPool]()

    def build(most: int | None = None, **more: Any) -> MemoryPool:
        made.append(MemoryPool(load_settings(db_path=path, environment={}), most, **{"embedder": "none"} | more))
        return made[-1]
    yield build
    for pool in made:
        pool.close()


def names(pool: MemoryPool) -> list[str]:
    return [m.ctx.namespace for m in pool.open_memories()]


def test_another_namespace_is_a_memory_in_all_that_it_does(path: Path) -> None:
    with Memory(path, namespace="plain", embedder="none") as plain, Memory(path, embedder="none") as store:
        room = store.namespace("room")
        assert vars(room).keys() == vars(plain).keys() and type(room) is type(plain)
        assert (room.ctx.namespace, room.settings.namespace, store.ctx.namespace) == ("room", "room", "default")
        assert room.ctx.storage.db is store.ctx.storage.db and room.ctx.embeddings is store.ctx.embeddings
        for m in (plain, room):
            m.write("The boat is in the harbour.", id="boat", slot="A")
            m.write("Cats like salmon.", id="cats")
        for m in (plain, room):
            assert [h.id for h in m.search("boat", slot="A")] == ["boat"] and m.recall("boat")[0].id == "boat"
            assert m.stats()["memories"] == 2
        room.close()
        assert store.recent() == [] and store.namespace("room").anchors.state()[0].id == "boat", "the store is still open"


def test_the_ones_asked_last_stay_open(make: Callable[..., MemoryPool]) -> None:
    pool = make(3)
    for name in "abcadeae":
        with pool.use(name) as memory:
            memory.write(f"a note of {name}")
        assert len(pool.open_memories()) <= 4
    assert names(pool) == ["default", "d", "a", "e"]
    for name in "abcde":
        with pool.use(name) as memory:
            assert {r.text for r in memory.recent()} == {f"a note of {name}"}


def test_one_in_use_is_never_closed(make: Callable[..., MemoryPool], monkeypatch: pytest.MonkeyPatch) -> None:
    pool, closed = make(2), list[str]()
    close = Facade.close
    monkeypatch.setattr(Facade, "close", lambda self: (closed.append(self.ctx.namespace), close(self))[1])
    with pool.use("a") as a:
        for name in "bcdb":
            with pool.use(name), pool.use("a") as again:
                assert again is a
        assert closed == ["b", "c", "d"]
        with pool.use("b"):
            with pytest.raises(HttpProblem) as refused, pool.use("c"):
                pass
            assert (refused.value.status, refused.value.headers["Retry-After"]) == (503, "1")
            with pool.use("default") as store:
                assert store.recent() == [], "the server's own namespace needs no place"
    with pool.use("c"):
        assert names(pool) == ["default", "b", "c"]


def test_closing_one_keeps_nobody_else_waiting(make: Callable[..., MemoryPool], monkeypatch: pytest.MonkeyPatch) -> None:
    pool, begun, go = make(2), threading.Event(), threading.Event()
    close = Facade.close

    def slowly(self: Memory) -> None:
        if self.ctx.namespace == "a":
            begun.set()
            assert go.wait(20)
        close(self)
    for name in "ab":
        with pool.use(name) as memory:
            memory.write(name)
    monkeypatch.setattr(Facade, "close", slowly)

    def texts(name: str) -> list[str]:
        with pool.use(name) as memory:
            return [r.text for r in memory.recent()]
    with ThreadPoolExecutor(3) as threads:
        third = threads.submit(texts, "c")
        assert begun.wait(20)
        assert texts("b") == ["b"]
        again = threads.submit(texts, "a")
        time.sleep(0.05)
        assert not third.done() and not again.done(), "who wants the one that is being closed waits until it is"
        go.set()
        assert (third.result(20), again.result(20)) == ([], ["a"])
    monkeypatch.undo()
    texts("d")
    assert len(pool.open_memories()) <= 3, "and what was opened meanwhile is not one too many for good"


def test_a_namespace_that_cannot_be_opened_leaves_no_place_behind(make: Callable[..., MemoryPool], monkeypatch: pytest.MonkeyPatch) -> None:
    pool = make(2)
    with monkeypatch.context() as patch:
        patch.setattr(Facade, "namespace", lambda *_: (_ for _ in ()).throw(OSError(24, "Too many open files")))
        for name in "abcde":
            with pytest.raises(OSError, match="Too many"), pool.use(name):
                pass
    assert names(pool) == ["default"]
    with pool.use("a"), pool.use("b"):
        assert names(pool) == ["default", "a", "b"]


def test_what_was_counted_in_closed_rooms_remains_counted(make: Callable[..., MemoryPool]) -> None:
    pool, before = make(1), 0
    for n in range(6):
        with pool.use("ab"[n % 2]) as memory:
            memory.write(f"The boat {n}", slot="A", policy="min_w=0")
            memory.search("boat", slot="A")
        now = pool.counters()
        assert now.searches == n + 1 and now.added >= before
        before = now.added
    assert before > 0
    with pool.use("a") as a, pytest.raises(HttpProblem), pool.use("b"):
        pass
    with pool.use("b") as b:
        links = b.graph.edge_count
    assert pool.counters().edges == links + a.graph.edge_count > links > 0, "links are counted whether their namespace is open or not"


def test_a_scrape_loads_no_graph(make: Callable[..., MemoryPool], monkeypatch: pytest.MonkeyPatch) -> None:
    pool = make()
    with pool.use("a") as memory:
        for n in range(3):
            memory.write(f"The boat {n}", slot="A", policy="min_w=0")
    monkeypatch.setattr(GraphIndex, "sync", lambda _: 1 / 0)
    found = pool.counters()
    assert found.edges == len(memory.backend.edge_table.links("a")) > 0


def test_attention_survives_being_closed(make: Callable[..., MemoryPool]) -> None:
    pool = make(1, clock=ManualClock("2026-11-21T09:00:00Z"), checkpoints="create")
    with pool.use("a") as memory:
        memory.write("The boat is in the harbour.", id="boat")
        memory.search("boat", slot="B")
        memory.recall("the boat in the harbour")
        memory.write("The sail is torn.")
        memory.recall("the sail")
        held = status_of(memory.attention)["slots"]
    assert held
    with pool.use("b"):
        assert names(pool) == ["default", "b"]
    with pool.use("a") as memory:
        assert memory.anchors.state()[1].id == "boat" and status_of(memory.attention)["slots"] == held


@pytest.mark.skipif(not FILES.exists(), reason="this system does not list open files")
def test_many_namespaces_in_many_threads_open_few_files(make: Callable[..., MemoryPool]) -> None:
    pool, workers, most, seen = make(8), 8, 30, list[int]()
    pool.store().write("warm")
    before = len(list(FILES.iterdir()))

    def work(n: int) -> None:
        for i in range(24):
            name = f"team {(7 * n + 5 * i) % most}"
            with pool.use(name) as memory:
                memory.write(f"{name}: {n} {i}")
                assert {h.text.partition(":")[0] for h in memory.search(f"{n} {i}", 50)} == {name}
            seen.append(len(list(FILES.iterdir())))
    with ThreadPoolExecutor(workers) as threads:
        list(threads.map(work, range(workers)))
    assert max(seen) <= before + 3 * workers + 8, "a connection, two files, for each thread"
    assert len(pool.open_memories()) <= 9 and sum(m.stats()["memories"] for m in [pool.store()]) == 1
    total = 0
    for n in range(most):
        with pool.use(f"team {n}") as memory:
            total += memory.stats()["memories"]
    assert total == workers * 24


@pytest.mark.parametrize(("limit", "most"), [(None, 500), (1_000_000, 500), (1024, 92), (256, 27), (0, 8)])
def test_the_bound_is_of_the_file_limit(limit: int | None, most: int) -> None:
    assert namespace_limit(limit) == most


def test_there_is_a_place_for_every_thread() -> None:
    async def tokens() -> float:
        return anyio.to_thread.current_default_thread_limiter().total_tokens
    assert anyio.run(tokens) == THREADS


SERVED = """
import resource, sys
resource.setrlimit(resource.RLIMIT_NOFILE, (330, 330))
sys.path.insert(0, {tests!r})
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from serving import serving
from rlm.service.http.tokens import TokenFile
book = TokenFile(Path({folder!r}) / "tokens")
tokens = [book.add(f"team {{n}}")[0] for n in range(90)]
with serving(Path({folder!r}) / "m.db", book) as running:
    def work(n):
        with running.client() as client:
            said = set()
            for token in (tokens[n:] + tokens[:n])[:6]:
                given = {{"Authorization": f"Bearer {{token}}"}}
                said.add(client.post("/v1/write", json={{"text": f"a note {{n}}"}}, headers=given).status_code)
                said.add(client.post("/v1/search", json={{"q": "note"}}, headers=given).status_code)
            return said
    with ThreadPoolExecutor(8) as pool:
        print(set().union(*pool.map(work, range(0, 90, 4))))
    with running.client() as client:
        print(client.get("/health").status_code)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="there is no file limit")
def test_a_server_keeps_within_its_files(tmp_path: Path) -> None:
    code = SERVED.format(tests=str(Path(__file__).parents[1]), folder=str(tmp_path))
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=240)
    said = done.stdout.splitlines()
    assert done.returncode == 0 and said == ["{200, 201}", "200"], done.stdout + done.stderr
