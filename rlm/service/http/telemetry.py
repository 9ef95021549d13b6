"""What a server tells of itself: figures in the format of Prometheus, spans of OpenTelemetry, and an access log.

Requests and searches are counted as they happen, with histograms of how long they took: requests by route, searches
by the layer that answered. Anchors and graphs count for themselves, as plain numbers; a scrape computes its gauges
from those. The figures are about the process as a whole: no label names a namespace, a token or a question.

Spans are exported where the setting `traces` says. With `off`, they go to the provider that the process has set up by itself,
if there is one; OpenTelemetry's own default drops them. `console` prints them. `otlp` sends them to a collector, whose place
OpenTelemetry's own variables name (`OTEL_EXPORTER_OTLP_ENDPOINT`). A span holds names, numbers and ids of traces. Questions,
texts, tokens, namespaces and addresses are not in it: a collector is another place, often with other readers. OpenTelemetry's
instrumentation of ASGI is not used for that reason: it records the address, and with it the ids of memories and what stands
behind the question mark.

A line of the access log has the route, such as `/v1/memories/{id}`, not the address with its ids and questions, so that an erased
memory leaves nothing in it; and the token's public name, never the token.
"""

import json
import logging
import os
import re
import socket
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any, TextIO

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from rlm.core.clock import Clock, DeadlineExceeded, SystemClock, call_within, to_iso
from rlm.core.errors import MissingExtra, RlmError, SettingsError
from rlm.core.files import read_path
from rlm.recall.anchors import AnchorCounters
from rlm.search.embedding.worker import EmbeddingWorker

from .health import READY_WAIT_S
from .middleware import App, Receive, RequestContext, Scope, Send, address_of


try:
    from opentelemetry import propagate, trace
except ImportError:  # the extra is not installed: no spans
    trace = propagate = None  # type: ignore[assignment]


def _tracer_provider(target: str) -> Any:
    "Return OpenTelemetry's provider of tracers that exports spans to a target. Raises `MissingExtra`."
    try:
        from opentelemetry.sdk.resources import Resource
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor, ConsoleSpanExporter, SimpleSpanProcessor
        provider = TracerProvider(resource=Resource.create({"service.name": "rlm"}))
        if target == "console":
            provider.add_span_processor(SimpleSpanProcessor(ConsoleSpanExporter(out=sys.stderr)))
        else:
            from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
            provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    except ImportError:
        raise MissingExtra("Spans need OpenTelemetry, which is not installed.", "Install it with: pip install 'rlm[otel]', or set "
                           "traces: off.") from None
    return provider


class SpanTracer:
    "Makes spans; without OpenTelemetry, none."

    def __init__(self,
                 target: str = "off",  # setting traces: off, console or otlp
                 ) -> None:
        self.provider = None if target == "off" else _tracer_provider(target)
        self.tracer = None if trace is None else trace.get_tracer("rlm", tracer_provider=self.provider)

    @property
    def active(self) -> bool:
        "Return whether spans go anywhere: to the setting's target, or to a provider that the process has set up by itself."
        return self.tracer is not None and (self.provider is not None or not isinstance(trace.get_tracer_provider(),
                                                                                       trace.ProxyTracerProvider))

    @contextmanager
    def span(self,
             name: str,               # name of what is done, for example memory.search
             kind: str = "INTERNAL",  # INTERNAL or SERVER
             parent: Any = None,      # context that came with the request; None: the present one
             **attributes: Any,       # names, numbers and ids
             ) -> Iterator[Any]:
        "Put a span around what is done inside; gives the span, or None where spans go nowhere."
        if self.tracer is None or not self.active:
            yield None
            return
        with self.tracer.start_as_current_span(name, parent, trace.SpanKind[kind], attributes, record_exception=False) as made:
            yield made

    def close(self) -> None:
        "Send the spans that are still to be sent."
        if self.provider is not None:
            self.provider.shutdown()


def _route_of(scope: Scope) -> str:
    """Return the route that a request took, such as /v1/memories/{id}, or that it asked for where it was refused before; 'other' for what
    is no route. Routes are few, paths are not."""
    return getattr(scope.get("route"), "path", None) or scope.get("rlm.route") or "other"


def route_namer(paths: Iterable[str],  # paths of all routes, such as /v1/memories/{id}
                ) -> Callable[[str], str]:
    "Return a function that gives the route of a path, whatever the method; empty: there is none."
    known = set(paths)
    patterns = [(re.compile(re.sub(r"\\{\w+\\}", "[^/]+", re.escape(path))), path) for path in sorted(known, key=lambda p: p.count("{"))
                if "{" in path]

    def name(path: str) -> str:
        return path if path in known else next((route for pattern, route in patterns if pattern.fullmatch(path)), "")
    return name


class TracingMiddleware:
    """An ASGI application with a span around each request, named by method and route as OpenTelemetry's conventions have it.

    A trace that began at the caller goes on (W3C's `traceparent`)."""

    def __init__(self,
                 app: App,            # application that answers
                 tracer: SpanTracer,  # maker of the spans
                 ) -> None:
        self.app, self.tracer = app, tracer

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        "Serve one request."
        if scope["type"] != "http" or not self.tracer.active:
            return await self.app(scope, receive, send)
        carried = {key.decode("latin-1"): value.decode("latin-1") for key, value in scope["headers"]}
        context = RequestContext(scope, send)
        with self.tracer.span(scope["method"], "SERVER", propagate.extract(carried)) as span:
            await self.app(scope, receive, context.answer)
            span.update_name(f"{scope['method']} {_route_of(scope)}")
            span.set_attributes({"http.request.method": scope["method"], "http.route": _route_of(scope),
                                 "http.response.status_code": context.status})


LATENCY_BUCKETS_S = (.0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1.0, 2.5)  # upper ends of a histogram's parts
MINUTE_S = 60.0
METHODS = ("GET", "POST", "PATCH", "HEAD", "OPTIONS", "PUT", "DELETE")  # methods that are counted by name; others as 'other'


class _GrowthRate:
    "How fast a counter grows, over the last minute or so."

    def __init__(self, now: Callable[[], float]) -> None:
        self.now, self._readings = now, deque([(now(), 0)])

    def per_minute(self, total: int) -> float:
        "Return the growth a minute since the last reading that is a minute old, or since the first one."
        now = self.now()
        while len(self._readings) > 1 and self._readings[1][0] <= now - MINUTE_S:
            self._readings.popleft()
        at, before = self._readings[0]
        self._readings.append((now, total))
        return MINUTE_S * (total - before) / max(now - at, 1.0)


def _ratio(part: float, whole: float) -> float:
    "Return a part of a whole, in [0, 1]; of nothing, 0."
    return part / whole if whole else 0.0


class StoreCollector(Collector):
    """The eight figures about anchors and links under each prefix, how often attention was not stored, and what embeds later.

    The eight names are those of the anchors' design, which has the prefix `greeum`; dashboards made for it go on."""

    def __init__(self,
                 count: Callable[[], AnchorCounters],        # called at each scrape
                 prefixes: Iterable[str] = ("rlm",),         # prefixes of the names
                 now: Callable[[], float] = time.monotonic,  # clock, in seconds
                 worker: Callable[[], EmbeddingWorker | None] = lambda: None,  # worker that embeds later; None: no store is open yet
                 ) -> None:
        self.count, self.prefixes, self.worker = count, tuple(prefixes), worker
        self.switching, self.growing = _GrowthRate(now), _GrowthRate(now)
        self._lock, self._waiting = threading.Lock(), 0  # memories without vectors when they were counted last

    def describe(self) -> Iterable[Any]:
        "Return nothing: registering the collector must not read the store."
        return []

    def collect(self) -> Iterator[Any]:
        "Yield the figures of this moment."
        with self._lock:
            found = self.count()
            rates = self.switching.per_minute(found.switches), self.growing.per_minute(found.added)
        gauges = (("anchors_switches_per_min", "Changes of the active anchor a minute", rates[0]),
                  ("local_hit_rate", "Share of searches near an anchor that were answered there", _ratio(found.local_hits, found.searches)),
                  ("fallback_rate", "Share of them where no answer lay near the anchor", _ratio(found.fallbacks, found.searches)),
                  ("avg_hops", "Links walked to a hit of a local answer", _ratio(found.hops, found.local_hits)),
                  ("beam_width", "Memories that a walk keeps at each step", found.beam),
                  ("edge_count", "Links in the store", found.edges),
                  ("edge_growth_rate", "Links that this process added a minute", rates[1]))
        for prefix in self.prefixes:
            yield from (GaugeMetricFamily(f"{prefix}_{name}", about, value=value) for name, about, value in gauges)
            yield CounterMetricFamily(f"{prefix}_anchor_moves", "Moves of anchors", value=found.moves)
        yield CounterMetricFamily("rlm_attention_unstored", "Times that attention was not stored after an answer", value=found.unstored)
        if (worker := self.worker()) is not None:
            with suppress(DeadlineExceeded, RlmError):  # while the store does not answer, those that it had
                self._waiting = call_within(READY_WAIT_S, lambda: worker.waiting)
            yield GaugeMetricFamily("rlm_embedding_waiting", "Memories of the store that have no vectors yet", value=self._waiting)
            yield CounterMetricFamily("rlm_embedding_embedded", "Memories that were given their vectors later", value=worker.embedded)
            yield GaugeMetricFamily("rlm_embedding_failing", "1 while the model can't embed", value=float(bool(worker.error)))


class MetricsExchange:
    """Lets the processes of a server ask each other for their figures: whichever a scrape reaches tells those of all. It is made before
    they are forked. A question is one end of a pair of sockets, into which the answer is written."""

    def __init__(self,
                 count: int,  # processes, numbered from 0
                 ) -> None:
        self.pairs = [socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM) for _ in range(count)]  # where one is asked, and by whom
        for _, asking in self.pairs:
            asking.setblocking(False)  # what a process does not take at once is not waited for

    def answer(self,
               number: int,                   # this process
               figures: Callable[[], bytes],  # called at each question
               ) -> None:
        "Answer the questions of the others from now on, in a thread."
        threading.Thread(target=self._answer, args=(self.pairs[number][0], figures), name="rlm-figures", daemon=True).start()

    def _answer(self, asked: socket.socket, figures: Callable[[], bytes]) -> None:
        while True:
            _, (end,), *_ = socket.recv_fds(asked, 1, 1)
            with socket.socket(fileno=end) as there, suppress(OSError):  # who asked may have gone
                there.settimeout(ANSWER_S)
                there.sendall(figures())

    def ask(self,
            number: int,  # another process
            ) -> bytes:   # its answer; empty: it did not answer within `ANSWER_S`
        "Return the figures of another process."
        ours, theirs = socket.socketpair()
        with ours, suppress(OSError):  # it hangs, or has ended and is being started again
            ours.settimeout(ANSWER_S)
            with theirs:
                socket.send_fds(self.pairs[number][1], [b"?"], [theirs.fileno()])
            return b"".join(iter(partial(ours.recv, 65536), b""))
        return b""


ANSWER_S = 1.0  # seconds that a process waits for the figures of another one
_OF_THE_STORE = ("_ready", "_embedding_waiting", "_edge_count")  # ends of names of figures that are the same in each process


class _ProcessFigures(Collector):
    "Figures of several processes, each as `Metrics` tells them to another process."

    def __init__(self, pages: Iterable[bytes]) -> None:
        self.pages = [json.loads(page) for page in pages if page]

    def collect(self) -> Iterator[Metric]:
        "Yield each figure once, with the values of all processes."
        found = dict[str, Metric]()
        for name, about, kind, samples in chain.from_iterable(self.pages):
            if name not in found or not name.endswith(_OF_THE_STORE):
                for sample in samples:
                    found.setdefault(name, Metric(name, about, kind)).add_sample(*sample)
        yield from found.values()


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
        self.ready = Gauge("rlm_ready", "1 while the store answers and takes writes, as /health tells", registry=self.registry)
        self.registry.register(StoreCollector(count, dict.fromkeys(("rlm", prefix)), now, worker))
        self._number, self._exchange = 0, MetricsExchange(0)

    def join(self,
             number: int,                # this process
             exchange: MetricsExchange,  # way to the other processes of the server
             ) -> None:
        "Tell the figures of all processes from now on, each with its number as the label `process`."
        self._number, self._exchange = number, exchange
        exchange.answer(number, self._told)

    def _told(self) -> bytes:
        "The figures of this process, for another one."
        def values(found: Metric) -> list[tuple[str, dict[str, str], float]]:
            label = {} if found.name.endswith(_OF_THE_STORE) else {"process": str(self._number)}
            return [(s.name, s.labels | label, s.value) for s in found.samples]
        return json.dumps([(m.name, m.documentation, m.type, values(m)) for m in self.registry.collect()]).encode()

    def count_request(self, context: RequestContext) -> None:
        "Count a request, by method, route and status."
        route, method = _route_of(context.scope), context.scope["method"]
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
        if not self._exchange.pairs:
            return generate_latest(self.registry)
        others = (self._exchange.ask(n) for n in range(len(self._exchange.pairs)) if n != self._number)
        return generate_latest(_ProcessFigures([self._told(), *others]))


log = logging.getLogger("rlm.serve")


class AccessLog:
    "Writes a line for each request that is over."

    def __init__(self,
                 target: str,  # a file, which is appended to; '-': the standard error
                 ) -> None:
        self.clock, self._failed = SystemClock(), False
        try:
            self.out: TextIO = sys.stderr if target == "-" else os.fdopen(
                os.open(read_path(Path(target)), os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600), "a", encoding="utf-8", buffering=1)
        except OSError as e:
            raise SettingsError(f"The access log {target!r} can't be written ({e.strerror}).", "Check the setting access_log.") from None

    def __call__(self, context: RequestContext) -> None:
        "Write a line. One that can't be written is said once in the server's log: no request fails for it."
        try:
            self.out.write(json.dumps(_access_line(context, self.clock), ensure_ascii=False) + "\n")
        except (OSError, ValueError) as e:
            if not self._failed:
                log.warning("The access log can't be written: %s", e)
            self._failed = True

    def close(self) -> None:
        "Close the file."
        if self.out is not sys.stderr:
            self.out.close()


def _access_line(context: RequestContext, clock: Clock) -> dict[str, Any]:
    "Return what the log says of a request."
    caller = context.scope.get("rlm.caller")
    wanted = context.scope.get("rlm.refused_namespace")  # one that the token does not open
    who = {} if caller is None else {"token": caller.id, "namespace": wanted or caller.namespace}
    return {"at": to_iso(clock.now()), "address": address_of(context.scope), **who, "method": context.scope["method"],
            "route": _route_of(context.scope), "status": context.status, "ms": round(1000 * (time.perf_counter() - context.begun), 3)}
