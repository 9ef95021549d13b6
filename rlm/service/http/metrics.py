"""What the server counts, in the format of Prometheus.

Requests and searches are counted as they happen, with histograms of how long they took: requests by route, searches
by the layer that answered. Anchors and graphs count for themselves, as plain numbers; a scrape computes its gauges
from those. The figures are about the process as a whole: no label names a namespace, a token or a question.
"""

import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, fields
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.registry import Collector

from rlm.search.embedding.worker import EmbeddingWorker

from .middleware import RequestContext
from .tracing import route_of

LATENCY_BUCKETS_S = (.0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1.0, 2.5)  # upper ends of a histogram's parts
MINUTE_S = 60.0
METHODS = ("GET", "POST", "PATCH", "HEAD", "OPTIONS", "PUT", "DELETE")  # methods that are counted by name; others as 'other'


@dataclass(frozen=True)
class AnchorCounters:
    "What anchors and graphs have counted since the process began, over all its namespaces."

    searches: int = 0  # searches near an anchor
    local_hits: int = 0  # searches that were answered there
    fallbacks: int = 0  # searches without an answer near the anchor
    hops: float = 0.0  # links walked to a hit there: the mean of each search, summed
    moves: int = 0  # moves of anchors
    switches: int = 0  # switches of the active anchor
    unstored: int = 0  # answers after which attention could not be stored
    edges: int = 0  # links in the store
    added: int = 0  # links that this process added
    beam: int = 0  # memories that a walk keeps at each hop

    def __add__(self, other: "AnchorCounters") -> "AnchorCounters":
        sums = {f.name: getattr(self, f.name) + getattr(other, f.name) for f in fields(self)}
        return AnchorCounters(**sums | {"beam": max(self.beam, other.beam)})


class GrowthRate:
    "How fast a counter grows, over the last minute or so."

    def __init__(self,
                 now: Callable[[], float],  # clock, in seconds
                 ) -> None:
        self.now, self._readings = now, deque([(now(), 0)])

    def per_minute(self,
                   total: int,  # present value of the counter
                   ) -> float:
        "Return the growth a minute since the last reading that is a minute old, or since the first one."
        now = self.now()
        while len(self._readings) > 1 and self._readings[1][0] <= now - MINUTE_S:
            self._readings.popleft()
        at, before = self._readings[0]
        self._readings.append((now, total))
        return MINUTE_S * (total - before) / max(now - at, 1.0)


def ratio(part: float,   # numerator
          whole: float,  # denominator
          ) -> float:
    "Return a part of a whole, in [0, 1]; of nothing, 0."
    return part / whole if whole else 0.0


class AnchorCollector(Collector):
    """The eight figures about anchors and links under each prefix, and how often attention was not stored.

    The eight names are those of the anchors' design, which has the prefix `greeum`; dashboards made for it go on."""

    def __init__(self,
                 count: Callable[[], AnchorCounters],        # called at each scrape
                 prefixes: Iterable[str] = ("rlm",),         # prefixes of the names
                 now: Callable[[], float] = time.monotonic,  # clock, in seconds
                 ) -> None:
        self.count, self.prefixes = count, tuple(prefixes)
        self.switching, self.growing = GrowthRate(now), GrowthRate(now)
        self._lock = threading.Lock()

    def describe(self) -> Iterable[Any]:
        "Return nothing: registering the collector must not read the store."
        return []

    def collect(self) -> Iterator[Any]:
        "Yield the figures of this moment."
        with self._lock:
            found = self.count()
            rates = self.switching.per_minute(found.switches), self.growing.per_minute(found.added)
        gauges = (("anchors_switches_per_min", "Changes of the active anchor a minute", rates[0]),
                  ("local_hit_rate", "Share of searches near an anchor that were answered there", ratio(found.local_hits, found.searches)),
                  ("fallback_rate", "Share of them where no answer lay near the anchor", ratio(found.fallbacks, found.searches)),
                  ("avg_hops", "Links walked to a hit of a local answer", ratio(found.hops, found.local_hits)),
                  ("beam_width", "Memories that a walk keeps at each step", found.beam),
                  ("edge_count", "Links in the store", found.edges),
                  ("edge_growth_rate", "Links that this process added a minute", rates[1]))
        for prefix in self.prefixes:
            yield from (GaugeMetricFamily(f"{prefix}_{name}", about, value=value) for name, about, value in gauges)
            yield CounterMetricFamily(f"{prefix}_anchor_moves", "Moves of anchors", value=found.moves)
        yield CounterMetricFamily("rlm_attention_unstored", "Times that attention was not stored after an answer", value=found.unstored)


class EmbeddingCollector(Collector):
    "What the worker that embeds later has done, and has before it."

    def __init__(self,
                 worker: Callable[[], EmbeddingWorker | None],  # the store's worker; None: no store is open yet
                 ) -> None:
        self.worker = worker

    def describe(self) -> Iterable[Any]:
        "Return nothing: registering the collector must not open the store."
        return []

    def collect(self) -> Iterator[Any]:
        "Yield the figures of this moment."
        if (worker := self.worker()) is not None:
            yield GaugeMetricFamily("rlm_embedding_waiting", "Memories that this process stored and that have no vectors yet",
                                    value=worker.waiting)
            yield CounterMetricFamily("rlm_embedding_embedded", "Memories that were given their vectors later", value=worker.embedded)
            yield GaugeMetricFamily("rlm_embedding_failing", "1 while the model can't embed", value=float(bool(worker.error)))


class Metrics:
    "Everything that a server counts, in a registry of its own."

    def __init__(self,
                 count: Callable[[], AnchorCounters],        # counters of anchors and graphs
                 worker: Callable[[], EmbeddingWorker | None] = lambda: None,  # worker that embeds later; None: no store is open yet
                 prefix: str = "rlm",                        # 'greeum': the eight figures under that name too
                 now: Callable[[], float] = time.monotonic,  # clock, in seconds
                 ) -> None:
        self.registry = CollectorRegistry()
        self.requests = Counter("rlm_http_requests", "Requests", ("method", "route", "status"), registry=self.registry)
        self.seconds = Histogram("rlm_http_request_seconds", "How long requests took", ("route",), registry=self.registry,
                                 buckets=LATENCY_BUCKETS_S)
        self.layers = Histogram("rlm_search_seconds", "How long searches took, by the layer that answered", ("layer",),
                                registry=self.registry, buckets=LATENCY_BUCKETS_S)
        self.registry.register(AnchorCollector(count, dict.fromkeys(("rlm", prefix)), now))
        self.registry.register(EmbeddingCollector(worker))

    def count_request(self,
                      context: RequestContext,  # a request that is over
                      ) -> None:
        "Count a request, by method, route and status."
        route, method = route_of(context.scope), context.scope["method"]
        self.requests.labels(method if method in METHODS else "other", route, str(context.status)).inc()
        self.seconds.labels(route).observe(time.perf_counter() - context.begun)

    def count_search(self,
                     layer: str,      # layer that answered
                     seconds: float,  # duration of the search
                     ) -> None:
        "Count a search, by the layer that answered."
        self.layers.labels(layer).observe(seconds)

    def page(self) -> bytes:
        "Return all figures, as Prometheus reads them."
        return generate_latest(self.registry)
