"""Spans of OpenTelemetry: where the time of a request goes, for those who collect such things.

Nothing is exported unless the setting `traces` says where to. With `off`, spans go to the provider that the process
has set up by itself, if there is one; OpenTelemetry's own default drops them. `console` prints them. `otlp` sends
them to a collector, whose place OpenTelemetry's own variables name (`OTEL_EXPORTER_OTLP_ENDPOINT`).

A span holds names, numbers and ids of traces. Questions, texts, tokens, namespaces and addresses are not in it: a
collector is another place, often with other readers. OpenTelemetry's instrumentation of ASGI is not used for that
reason: it records the address, and with it the ids of memories and what stands behind the question mark.
"""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, TextIO

from rlm.core.errors import MissingExtra

from .middleware import App, Receive, RequestContext, Scope, Send

try:
    from opentelemetry import propagate, trace
except ImportError:  # the extra is not installed: no spans
    trace = propagate = None  # type: ignore[assignment]


def tracer_provider(target: str,               # 'console' or 'otlp', as in the setting traces
                    out: TextIO | None = None,  # stream for console; None: the standard error
                    ) -> Any:
    "Return OpenTelemetry's provider of tracers that exports spans to a target. Raises `MissingExtra`."
    try:
        from opentelemetry.sdk.resources import Resource
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor, ConsoleSpanExporter, SimpleSpanProcessor
        provider = TracerProvider(resource=Resource.create({"service.name": "rlm"}))
        if target == "console":
            provider.add_span_processor(SimpleSpanProcessor(ConsoleSpanExporter(out=out or sys.stderr)))
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
                 target: str = "off",        # setting traces: off, console or otlp
                 out: TextIO | None = None,  # stream for console; None: the standard error
                 ) -> None:
        self.provider = None if target == "off" else tracer_provider(target, out)
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


def route_of(scope: Scope,  # connection scope of ASGI, after the application has seen it
             ) -> str:
    "Return the route that a request took, such as /v1/memories/{id}; 'other' for what is no route. Routes are few, paths are not."
    return getattr(scope.get("route"), "path", None) or "other"


class TracingMiddleware:
    """An ASGI application with a span around each request, named by method and route as OpenTelemetry's conventions have it.

    A trace that began at the caller goes on (W3C's `traceparent`)."""

    def __init__(self,
                 app: App,            # application that answers
                 tracer: SpanTracer,  # maker of the spans
                 ) -> None:
        self.app, self.tracer = app, tracer

    async def __call__(self,
                       scope: Scope,      # connection scope of ASGI
                       receive: Receive,  # source of the body
                       send: Send,        # sink of the answer
                       ) -> None:
        "Serve one request."
        if scope["type"] != "http" or not self.tracer.active:
            return await self.app(scope, receive, send)
        carried = {key.decode("latin-1"): value.decode("latin-1") for key, value in scope["headers"]}
        context = RequestContext(scope, send)
        with self.tracer.span(scope["method"], "SERVER", propagate.extract(carried)) as span:
            await self.app(scope, receive, context.answer)
            span.update_name(f"{scope['method']} {route_of(scope)}")
            span.set_attributes({"http.request.method": scope["method"], "http.route": route_of(scope),
                                 "http.response.status_code": context.status})
