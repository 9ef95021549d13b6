"""The application served over sockets: limits of connections and of time, tokens, and processes that share a port.

A connection that sends half a head costs its caller nothing and needs no token: five hundred of them would keep all others out. So a
connection is looked at when the server's patience has passed, and dropped unless a request is being worked on or bytes of an answer have
left since. The patience begins anew with each answer.

A process may open a limited number of files, often 256, and each connection is one. When none is left, Python's event loop logs a traceback
and tries again two thousand times in a row: three hundred idle callers filled the disk with nine megabytes a second. So `Listener` counts
connections where they are accepted. Some beyond the limit are let in and answered 503 at their first request; what comes beyond these is
answered 503 and closed, with a file that is held back for that, and the log says so once a minute.

The store is opened before the server listens, so that an error of the store is said at once. The address is printed once the server can be
told to stop: a Ctrl-C that came earlier would end it in the middle of another library's code.
"""

import asyncio
import errno
import gc
import logging
import math
import os
import signal
import socket
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from http import HTTPStatus
from pathlib import Path
from typing import Any
from weakref import WeakSet

import click
import uvicorn
from uvicorn import Server as UvicornServer
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from ...core.compiled import prepare
from ...core.errors import RlmError, SettingsError
from ...core.files import hidden_password, read_path
from ...core.settings import Settings
from ...core.text import clip
from .app import guarded_application
from .errors import HttpProblem, log
from .pool import CONNECTIONS, FEWEST, connection_limit, file_limit
from .middleware import PATIENCE_S, App, Receive, RequestContext, Scope, Send, is_loopback
from .routing import Service
from .tokens import TokenFile
from .telemetry import MetricsExchange, TracingMiddleware
from ...store.storage import open_storage


CROWDED = HttpProblem(503, "As many connections are open as the server takes.", "Try again a little later.",
                      {"Retry-After": "1", "Connection": "close"})
MALFORMED = HttpProblem(400, "The request is not HTTP as it should be.",
                        "Percent-encode what is no ASCII in an address: 건강 is %EA%B1%B4%EA%B0%95.", {"Connection": "close"})


def _raw_answer(problem: HttpProblem) -> bytes:
    "An error as bytes of HTTP, where there is no request yet."
    body = problem.body()
    lines = [f"HTTP/1.1 {problem.status} {HTTPStatus(problem.status).phrase}", "Content-Type: application/problem+json",
             f"Content-Length: {len(body)}", *(f"{name}: {value}" for name, value in problem.headers.items())]
    return ("\r\n".join(lines) + "\r\n\r\n").encode() + body


async def crowded(scope: Scope, receive: Receive, send: Send) -> None:
    "An application for those who came too late."
    await RequestContext(scope, send).refuse(CROWDED)


SPARE = 16  # connections beyond the limit that are let in, to be told at their first request
HELD_BACK = 24  # files held back for the requests of those who are connected, for when callers have taken all others
TURNED_AWAY = 64  # connections that are closed in a row before the event loop has its turn
NOTICE_S = 60.0  # seconds between two notices in the log


class Listener(socket.socket):
    "A listening socket that accepts so many connections at a time, and answers and closes what comes beyond."

    def __init__(self,
                 family: int,  # address family, as `socket` has it
                 proto: int,   # IPPROTO_TCP, or asyncio does not set TCP_NODELAY, and an answer on a kept connection takes 44 ms
                 limit: int,   # connections at a time
                 ) -> None:
        super().__init__(family, socket.SOCK_STREAM, proto)
        self.limit, self._accepted = limit, WeakSet[socket.socket]()
        self._held_back, self._notice = [os.open(os.devnull, os.O_RDONLY) for _ in range(HELD_BACK)], 0.0

    def accepted(self) -> list[socket.socket]:
        "Return the connections that are open."
        return [s for s in self._accepted if s.fileno() >= 0]

    def accept(self) -> tuple[socket.socket, Any]:
        "Return a new connection, and its address. Raises `BlockingIOError` when nobody waits, or no more can be accepted now."
        for _ in range(TURNED_AWAY):
            try:
                made, address = super().accept()
            except OSError as e:
                if e.errno not in (errno.EMFILE, errno.ENFILE):
                    raise
                self._make_room()
                continue
            if len(self.accepted()) < self.limit:
                self._accepted.add(made)
                return made, address
            self._turn_away(made)
        raise BlockingIOError

    def _make_room(self) -> None:
        "Take no more callers than now, leave what is held back to their requests, and turn this one away. With no file, wait a little."
        self.limit = min(self.limit, max(FEWEST, len(self.accepted())))
        self._give_up()
        try:
            self._turn_away(super().accept()[0])
        except OSError:
            time.sleep(.01)
        finally:
            with suppress(OSError):
                self._held_back.append(os.open(os.devnull, os.O_RDONLY))

    def _turn_away(self, made: socket.socket) -> None:
        if (now := time.monotonic()) - self._notice > NOTICE_S or not self._notice:
            self._notice = now
            log.warning("%d connections are open; others are turned away.", len(self.accepted()))
        with made, suppress(OSError):
            made.setblocking(False)
            made.send(_raw_answer(CROWDED))

    def close(self) -> None:
        "Stop listening; connections that are open end."
        if self.fileno() >= 0:
            self._give_up()
        super().close()

    def _give_up(self) -> None:
        "Close the files that are held back."
        while self._held_back:
            os.close(self._held_back.pop())


def listening(host: str,  # a name or an address
              port: int,  # 0: any that is free
              late: bool = False,  # True: callers are refused until a server starts on it; False: they wait
              ) -> Listener:
    "Return a socket there, which takes as many connections as the process has files for. Raises `SettingsError`."
    try:
        family, _, proto, _, place = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0]
        made = Listener(family, proto, connection_limit(file_limit()) + SPARE)
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        made.bind(place)
        if not late:
            made.listen(CONNECTIONS)  # who comes from now on waits until the server has started
        return made
    except ValueError:  # as the codec of internet names says of labels that are empty or too long
        raise SettingsError(f"{clip(host)!r}, port {port}: that is no host.", "Give the name or the address of this machine.") from None
    except OSError as e:
        raise SettingsError(f"{host}, port {port}, can't be listened on ({e.strerror or e}).",
                            "Is a server running there? Another port is given with --port; 0 takes any that is free.") from None


MAX_HEAD = 65_536  # bytes of a request before its body


class _HttpConnection(HttpToolsProtocol):
    "One connection: HTTP/1.1, as uvicorn speaks it, with an end to waiting, and to what comes before a body."

    def __init__(self, *args: Any, limit: int, **more: Any) -> None:
        super().__init__(*args, **more)
        self.limit = limit

    _timer: asyncio.TimerHandle | None = None
    _left = 0  # bytes of answers that the caller had still to take when the timer was set
    _head: int | None = 0  # bytes of the head that have come; None: it is complete

    def connection_made(self, transport: Any) -> None:
        "Take a connection; one beyond the limit is told that the server is crowded."
        super().connection_made(transport)
        if len(self.connections) > self.limit:
            self.app = crowded
        self._wait()

    def send_400_response(self, msg: str) -> None:
        "Answer what the parser of HTTP does not understand, and close the connection."
        self.transport.write(_raw_answer(MALFORMED))
        self.transport.close()

    def connection_lost(self, exc: Exception | None) -> None:
        "Stop waiting for a connection that has ended."
        if self._timer is not None:
            self._timer.cancel()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        "Take what a caller sends; a head that does not end is refused."
        super().data_received(data)
        if self._head is not None:
            self._head += len(data)
            if self._head > MAX_HEAD and not self.transport.is_closing():
                self.send_400_response("The head of the request is too long.")

    def on_message_begin(self) -> None:
        "A request begins."
        self._head = 0
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        "The head of a request is there."
        self._head = None
        super().on_headers_complete()

    def _unsupported_upgrade_warning(self) -> None:
        "Say nothing: such a request is answered as any other."

    def on_response_complete(self) -> None:
        "An answer is on its way."
        self._wait()
        super().on_response_complete()

    def _wait(self) -> None:
        "Look again when the patience is over."
        if self._timer is not None:
            self._timer.cancel()
        self._left = self.transport.get_write_buffer_size()
        self._timer = self.loop.call_later(self.timeout_keep_alive, self._look)

    def _look(self) -> None:
        "Drop the connection, unless something happens on it."
        left = self.transport.get_write_buffer_size()
        asked = self.cycle is not None and not self.cycle.response_complete
        if left < self._left or (asked and not left):
            self._wait()
        else:
            self.transport.abort()


def http_config(app: App,                        # application to serve
                patience_s: float = PATIENCE_S,  # seconds that a caller may let the server wait, whole
                connections: int | None = None,  # at a time; None: as the files of the process allow
                ) -> uvicorn.Config:
    "Return how it is served."
    protocol: Any = partial(_HttpConnection, limit=connection_limit(file_limit()) if connections is None else connections)
    return uvicorn.Config(app, log_config=None,  # its own would close every handler of the process that logs
                          log_level="warning", access_log=False, server_header=False, proxy_headers=False, ws="none", lifespan="on",
                          loop="asyncio", http=protocol, timeout_keep_alive=math.ceil(patience_s), timeout_graceful_shutdown=10)


# Without a token file anyone may call who reaches the server, which is fit for loopback alone. A file that was named must be there: a typo
# must not let anyone in.
def load_token_store(settings: Settings) -> TokenFile:
    "Return the token file that the server goes by; a server beyond this machine has a token in it. Raises `SettingsError`."
    book = TokenFile(settings.token_file)
    known = book.tokens()
    if not book.path.exists() and "token_file" in settings.sources:
        raise SettingsError(f"There is no token file {str(book.path)!r}.", f"Make one with: rlm tokens add --token-file {book.path}")
    if not known and not is_loopback(settings.serve_host):
        raise SettingsError(f"Whoever reaches {settings.serve_host} could read and write everything: there is no token.",
                            "Make one with: rlm tokens add, or serve this machine only, with --host 127.0.0.1.")
    return book


class AnnouncedServer(UvicornServer):
    "A server that says where it is once it listens and can be told to stop."

    def __init__(self,
                 config: uvicorn.Config,  # configuration of the server
                 notice: str,             # announcement that it prints; empty: none
                 ) -> None:
        super().__init__(config)
        self.notice = notice

    async def startup(self,
                      sockets: list[socket.socket] | None = None,  # address at which it listens
                      ) -> None:
        "Listen, then say so."
        await super().startup(sockets)
        if self.started and self.notice:
            click.echo(self.notice)


GARBAGE = 10_000  # new objects until young ones are collected; with Python's 700, each request waits for collections


def _application_of(settings: Settings, config: Path | None, number: int = 0,
                    exchange: MetricsExchange | None = None) -> TracingMiddleware:
    "The whole application, with its store open; `exchange`: of one process of several. Raises `SettingsError`, and what the store raises."
    keeper = load_token_store(settings)
    service = Service(settings, config=config)
    if exchange is not None:
        service.metrics.join(number, exchange)
    prepare()  # compiled loops, the index and the model are there before anyone waits for them
    service.pool.store().search("Is it ready? 어디까지 준비됐어?", 1)
    gc.collect()
    gc.freeze()  # what is loaded by now stays: no collection looks through it again
    gc.set_threshold(GARBAGE)
    return guarded_application(service, keeper)


def serve(settings: Settings,          # address, store and tokens
          config: Path | None = None,  # the settings file that was named
          workers: int = 1,            # processes that answer
          ) -> None:
    "Serve until told to stop. Raises `SettingsError`, and what the store raises."
    logging.basicConfig(format="%(asctime)s %(levelname)s %(name)s: %(message)s")  # before the SDK of MCP, whose log breaks lines
    if workers > 1 and str(settings.db_path) == ":memory:":
        raise SettingsError(f"A store in memory is of one process, not of {workers}.", "Leave --workers out, or keep the store in a file.")
    if workers == 1:
        app = _application_of(settings, config)
        with listening(settings.serve_host, settings.serve_port) as here:
            _answer(app, settings, here)
        return
    open_storage(settings, False).close()  # what is wrong with the store is said once
    _load_ahead()
    with listening(settings.serve_host, settings.serve_port, late=True) as here:  # the first process that is ready listens
        exchange = MetricsExchange(workers)
        _run_processes(workers, lambda number: _answer(_application_of(settings, config, number, exchange), settings, here, number))


def _load_ahead() -> None:
    "Load here, once, what forked processes share: one that takes the place of another answers in a part of the time."
    prepare()
    if find_spec("mcp") is not None:
        import_module("rlm.service.mcp.http")
    gc.collect()
    gc.freeze()  # what their collections don't look through stays in the memory of all


def _run_processes(count: int, work: Callable[[int], None]) -> None:
    """Do something in forked processes until this one is told to stop, then tell them; they end with it, also where it is killed. One that
    ends by itself is started again. Raises `SettingsError` when one ends within five seconds and none has lived longer: later a store may
    be away for a while, which the others wait for."""
    running, stopping, proven = dict[int, tuple[int, float]](), list[int](), False
    ours, theirs = os.pipe()  # nothing is written: it is closed when this process ends, however it ends

    def start(number: int, rest: float = 0.0) -> None:
        if (pid := os.fork()) == 0:
            code = 1
            try:
                signal.signal(signal.SIGTERM, signal.SIG_DFL)
                signal.signal(signal.SIGINT, signal.default_int_handler)
                os.close(theirs)
                threading.Thread(target=_end_with, args=(ours,), name="rlm-parent", daemon=True).start()
                time.sleep(rest)  # here: a process that ends again and again keeps no other from being replaced
                work(number)
                code = 0
            except RlmError as e:
                click.echo(f"{e.message}\n  {e.hint}", err=True)
            except Exception:
                log.exception("The process %d of the server failed.", number)
            finally:
                os._exit(code)
        running[pid] = number, time.monotonic() + rest

    def stop(signum: int, frame: object) -> None:
        stopping.append(signum)
        for pid in running:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGTERM)

    before = {s: signal.signal(s, stop) for s in (signal.SIGTERM, signal.SIGINT)}
    failed = False
    try:
        for number in range(count):
            start(number)
        while running:
            pid, _ = os.wait()
            number, began = running.pop(pid)
            proven = proven or time.monotonic() - min([began, *(at for _, at in running.values())]) >= SHORTEST_LIFE_S
            if not stopping and not proven:
                failed = True
                stop(signal.SIGTERM, None)
            elif not stopping:
                log.warning("The process %d of the server ended; another one takes its place.", pid)
                start(number, max(0.0, min(began + SHORTEST_LIFE_S - time.monotonic(), SHORTEST_LIFE_S)))  # not again and again at once
    finally:
        for end in (ours, theirs):
            os.close(end)
        for s, handler in before.items():
            signal.signal(s, handler)
    if failed:
        raise SettingsError("A process of the server could not begin.", "What it said stands above.")


SHORTEST_LIFE_S = 5.0  # seconds; a process that ends sooner would end again, and is started so long after its last start


def _end_with(parent: int) -> None:
    "Tell this process to stop when its parent, which has the other end of a pipe, has ended."
    with suppress(OSError):
        os.read(parent, 1)
        os.kill(os.getpid(), signal.SIGTERM)


def _answer(app: TracingMiddleware, settings: Settings, here: Listener, number: int = 0) -> None:
    "Answer requests until told to stop; the first process says where."
    who = "who has a token" if app.app.config.tokens.required() else "anyone on this machine"  # type: ignore[attr-defined]
    notice = f"Serving {hidden_password(str(read_path(settings.db_path)))} for {who} at http://{PLACE}/"
    answer_at(here, app, "" if number else notice)


PLACE = "\0"  # stands in a notice for host and port, which are known once a server listens


def answer_at(here: Listener,  # socket that listens
              app: App,        # application that answers
              notice: str,     # announcement with `PLACE` in it; empty: none
              ) -> None:
    "Answer requests until told to stop."
    host, port = here.getsockname()[:2]
    place = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
    with suppress(KeyboardInterrupt):
        AnnouncedServer(http_config(app), notice.replace(PLACE, place)).run(sockets=[here])
