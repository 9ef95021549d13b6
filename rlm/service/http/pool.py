"""The memories of a server, one a namespace, within the files that its process may open.

The store is opened once, for the namespace of the settings, and stays open; the model that turns text into vectors is
loaded once. Another namespace is opened when it is asked for, shared by all threads, over connections that it does
not own. The least recently used idle namespace is saved and closed when too many are open; it reopens on demand. What
a closed namespace has counted is kept: a counter never falls.

A process may open a limited number of files, on many systems 1,024 and on some 256. A caller's connection is a file,
and a connection to the store is two. All namespaces share the store's connections, one a thread; what a namespace has
for itself is its index, which for a large one is a file too.
"""

import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field, replace
from typing import Any

from rlm.core.clock import DeadlineExceeded, call_within
from rlm.core.errors import RlmError, StoreMoved
from rlm.core.settings import Settings
from rlm.recall.anchors import BEAM, AnchorCounters
from rlm.search.embedding.base import Embedder, choose_embedder
from rlm.search.embedding.worker import EmbeddingWorker
from rlm.service.memory import Memory

from .errors import HttpProblem
from .health import READY_WAIT_S


CONNECTIONS = 512  # callers connected at a time, at most; one more is answered with 503
FEWEST = 8  # callers that are let in, however few files there are
THREADS = 40  # requests that are worked on at a time: the default size of anyio's thread pool
OTHER_FILES = 64  # files beside connections and store: the process's streams and log, the tokens, the model, callers that are turned away
FILES_PER_THREAD = 2  # the thread's connection to the store, and the write-ahead log beside it
FILES_PER_NAMESPACE = 4  # at most: the index of vectors, its successor, and while that is built a connection to the store
MAX_NAMESPACES = 500  # namespaces that stay open, whatever the limit of files: their indexes are in memory


def file_limit() -> int | None:
    "Return how many files this process may open; None: any number, or the system does not say."
    try:
        import resource
    except ImportError:
        return None
    soft = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    return None if soft == resource.RLIM_INFINITY else soft


def connection_limit(files: int | None,  # files that the process may open; None: any number
                     ) -> int:
    "Return how many callers may be connected at a time, `FEWEST` to `CONNECTIONS`, so that the store can open what their requests need."
    if files is None:
        return CONNECTIONS
    free, request = files - OTHER_FILES, FILES_PER_THREAD + FILES_PER_NAMESPACE
    fits = free // (1 + request)  # callers, each with a thread and a namespace of its own
    return max(FEWEST, min(CONNECTIONS, fits if fits < THREADS else free - THREADS * request))


def namespace_limit(files: int | None,  # files that the process may open; None: any number
                    ) -> int:
    "Return how many namespaces may stay open: never fewer than requests are worked on at a time, so that one of them is always idle."
    if files is None:
        return MAX_NAMESPACES
    connections = connection_limit(files)
    free = files - connections - FILES_PER_THREAD * THREADS - OTHER_FILES
    return max(min(THREADS, connections), min(MAX_NAMESPACES, free // FILES_PER_NAMESPACE))


@dataclass
class PoolEntry:
    "A namespace that is asked for, and its memory."

    namespace: str  # the partition
    memory: Memory | None = None  # None: it is not open yet, or no more
    users: int = 0  # requests that use it, and the one that is closing it
    lock: threading.Lock = field(default_factory=threading.Lock)  # held while it is opened or closed


def anchor_counters(memory: Memory) -> AnchorCounters:
    "Return what its anchors and its graph have counted; the links of the store are not among them."
    c, reach = memory.anchors.counts, memory.anchors.reach
    return replace(c, unstored=c.unstored + memory.attention.unstored, added=memory.graph.added, beam=BEAM if reach is None else reach.beam)


class MemoryPool:
    "The memories of a server, by namespace, of which the least recently used are closed when too many are open. Threads may share it."

    def __init__(self,
                 settings: Settings,        # settings of the server
                 limit: int | None = None,  # namespaces that stay open, beside the one of the settings; None: as the files allow
                 **more: Any,               # arguments of `Memory`: a settings file, a clock, a model
                 ) -> None:
        self.settings, self.limit = settings, namespace_limit(file_limit()) if limit is None else limit
        self._model: Embedder | str | None = more.pop("embedder", None)
        mine = {name: getattr(settings, name) for name, source in settings.sources.items() if source == "argument"}
        self._given = {name: value for name, value in mine.items() if name != "db_path"} | {"path": settings.db_path} | more
        self._lock, self._opening = threading.Lock(), threading.Lock()
        self._entries = dict[str, PoolEntry]()  # the most recently used stand last
        self._store: Memory | None = None
        self._away = False  # whether the settings' namespace went to another instance of a cluster: it is then opened like any other
        self._closing, self._past = 0, AnchorCounters()  # idle namespaces that are being closed; counters of closed ones
        self._links = 0  # links in the store when they were counted last

    def store(self) -> Memory:
        "Return the memory of the settings' namespace, which stays open."
        with self._opening:
            if self._store is None:
                if self._model is None:
                    self._model = choose_embedder(settings=self.settings) or "none"
                self._store = Memory(**self._given | {"namespace": self.settings.namespace, "embedder": self._model,
                                                      "embedding": "now" if self.settings.embedding == "now" else "later"})
                self._store.embeddings.resume()
            return self._store

    @contextmanager
    def use(self,
            namespace: str,  # the partition
            ) -> Iterator[Memory]:
        "Give the memory of a namespace, which stays open while it is used. Raises `HttpProblem` when too many others are in use."
        store = self.store()
        if namespace == self.settings.namespace and not self._away:
            try:
                yield store
            except StoreMoved:
                self._away = True
                raise
            return
        entry, surplus = self._enter(namespace)
        try:
            with ExitStack() as closing:
                for idle in surplus:
                    closing.callback(self._evict, idle)
            with entry.lock:
                if entry.memory is None:
                    entry.memory = store.namespace(namespace)
                memory = entry.memory
            yield memory
        except StoreMoved:
            with entry.lock:  # moved to another instance: the next request opens it there
                if entry.memory is not None and entry.users == 1:
                    entry.memory.close()
                entry.memory = None
            raise
        finally:
            with self._lock:
                self._left(entry)

    def open_memories(self) -> list[Memory]:
        "Return the memories that are open, the one of the settings' namespace first, then the least recently used."
        with self._lock:
            return self._open()

    def counters(self) -> AnchorCounters:
        """Return what anchors and graphs have counted since the server began, and the links in the store; while that does not answer, those
        that it had. It loads no graph."""
        with self._lock:
            past, memories, store = self._past, self._open(), self._store
        if store is not None:
            with suppress(DeadlineExceeded, RlmError):
                self._links = call_within(READY_WAIT_S, store.backend.edge_table.count)
        return sum((anchor_counters(m) for m in memories), past + AnchorCounters(edges=self._links))

    def embedding_worker(self) -> EmbeddingWorker | None:
        "Return what embeds later; None while the store is not open."
        return None if (store := self._store) is None else store.embeddings.worker

    def close(self) -> None:
        "Close all namespaces, and the store."
        for memory in reversed(self.open_memories()):
            memory.close()
        with self._lock:
            self._entries.clear()
            self._store = None

    def _open(self) -> list[Memory]:
        "Return the memories that are open. The lock is held by the caller."
        return [m for m in (self._store, *(e.memory for e in self._entries.values())) if m is not None]

    def _enter(self, namespace: str) -> tuple[PoolEntry, list[PoolEntry]]:
        "Return a namespace's entry, counted as used, and the idle entries that have to be closed for it. Raises `HttpProblem`."
        with self._lock:
            entry, idle = self._entries.get(namespace), list[PoolEntry]()
            if entry is None:
                surplus = len(self._entries) - self._closing + 1 - self.limit
                idle = [e for e in self._entries.values() if not e.users][:max(surplus, 0)]
                if len(idle) < surplus:
                    raise HttpProblem(503, f"Requests for {self.limit} namespaces are under way.", "Try again a little later.",
                                      {"Retry-After": "1"})
                entry = PoolEntry(namespace)
            for e in (*idle, entry):
                e.users += 1
            self._closing += len(idle)
            self._entries.pop(namespace, None)
            self._entries[namespace] = entry
            return entry, idle

    def _left(self, entry: PoolEntry) -> None:
        "Count one user less; forget an entry that has neither a user nor a memory. The lock is held by the caller."
        entry.users -= 1
        if not entry.users and entry.memory is None:
            del self._entries[entry.namespace]

    def _evict(self, entry: PoolEntry) -> None:
        "Save and close an idle namespace. A request for it waits until it is closed, and opens it again; others do not wait."
        try:
            with entry.lock:
                if entry.memory is not None:
                    entry.memory.close()
                    with self._lock:
                        self._past, entry.memory = self._past + anchor_counters(entry.memory), None
        finally:
            with self._lock:  # at once: between the two the entry would count as one in use
                self._closing -= 1
                self._left(entry)
