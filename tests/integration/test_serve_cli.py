"`rlm serve` as a program: how it starts, how it stops, and when it does not start. And what it traces."
import http.server
import io
import json
import logging
import os
import re
import signal
import socket
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest
from serving import serving

from rlm import Memory
from rlm.core.errors import MissingExtra
from rlm.core.settings import Settings
from rlm.service.http import server
from rlm.service.http.telemetry import SpanTracer
from rlm.service.http.tokens import TokenFile

RLM = Path(sys.executable).with_name("rlm")
pytestmark = pytest.mark.usefixtures("bare")


@contextmanager
def program(home: Path, *words: str, **variables: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    "`rlm serve`, and where it says it is."
    env = {n: v for n, v in os.environ.items() if not n.startswith("RLM_")} | {"HOME": str(home), "RLM_EMBEDDER": "none"} | variables
    with subprocess.Popen([RLM, "serve", "--port", "0", *words], cwd=home, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          text=True) as process:
        try:
            assert process.stdout is not None
            said = process.stdout.readline()
            yield process, said.rsplit(" at ", 1)[1].strip() if said else ""
        finally:
            process.kill()


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM])
def test_it_starts_serves_and_stops_when_told_to(tmp_path: Path, how: signal.Signals) -> None:
    with program(tmp_path) as (process, url):
        assert httpx.get(f"{url}health").json() == {"live": True, "ready": True}
        assert httpx.post(f"{url}v1/write", json={"text": "kept", "id": "kept"}).status_code == 201
        process.send_signal(how)
        out, err = process.communicate(timeout=120)
    assert (out, err) == ("", "") and process.returncode in (0, -how)
    with Memory(tmp_path / ".rlm" / "memory.db") as memory:
        assert memory.get("kept").text == "kept" and memory.check() == []


def test_two_processes_serve_one_file(tmp_path: Path) -> None:
    with program(tmp_path, "--workers", "2") as (process, url):
        for n in range(12):  # a connection each, so that both processes have their turn
            ticket = {"text": f"Yuna has the ticket number {n}.", "id": f"t{n}"}
            assert httpx.post(f"{url}v1/memories", json=ticket, timeout=60).status_code == 201
            found = httpx.post(f"{url}v1/memories:search", json={"query": f"ticket number {n}", "k": 1}, timeout=60).json()
            assert found["hits"][0]["memory"]["id"] == f"t{n}", "what one process stored, the other finds"
        told = re.findall(r'^rlm_http_requests_total\{method="POST",process="[01]",route="/v1/memories",status="201"\} (\d+)',
                          httpx.get(f"{url}metrics", timeout=60).text, re.M)
        assert sum(map(int, told)) == 12, "whichever process is asked, the requests of both are told"
        process.terminate()
        assert process.wait(60) == 0
    with Memory(tmp_path / ".rlm" / "memory.db") as memory:
        assert memory.stats()["memories"] == 12 and memory.check() == []
    with program(tmp_path, "--workers", "2", "--db", ":memory:") as (process, url):
        assert process.wait(60) and process.stderr is not None and "one process" in process.stderr.read() and not url


def test_until_a_process_is_ready_callers_are_refused_at_once(tmp_path: Path) -> None:
    code = """
        import sys, time
        from pathlib import Path
        from rlm.service.cli import main
        from rlm.service.http import server
        def slowly():
            Path("begun").touch()
            while not Path("go").exists(): time.sleep(.05)
        server.prepare = slowly
        main()
        """
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    env = {n: v for n, v in os.environ.items() if not n.startswith("RLM_")} | {"HOME": str(tmp_path), "RLM_EMBEDDER": "none"}
    with subprocess.Popen([sys.executable, "-c", textwrap.dedent(code), "serve", "--port", port, "--workers", "2"], cwd=tmp_path, env=env,
                          stdout=subprocess.PIPE, text=True) as process:
        try:
            while not (tmp_path / "begun").exists():
                assert process.poll() is None
                time.sleep(.05)
            with pytest.raises(httpx.ConnectError):
                httpx.get(f"http://127.0.0.1:{port}/health", timeout=5)
            (tmp_path / "go").touch()
            assert process.stdout is not None and process.stdout.readline().startswith("Serving ")
            assert httpx.get(f"http://127.0.0.1:{port}/health", timeout=60).json() == {"live": True, "ready": True}
        finally:
            process.kill()


def test_who_has_read_where_it_is_can_stop_it_at_once(tmp_path: Path) -> None:
    code = """
        import sys, time, uvicorn
        from rlm.service.cli import main
        made = uvicorn.Config.configure_logging
        def slowly(self):
            try: time.sleep(1)
            except KeyboardInterrupt: raise RuntimeError("interrupted while it was set up")
            made(self)
        uvicorn.Config.configure_logging = slowly
        sys.argv = ["rlm", "serve", "--port", "0"]
        main()
        """
    env = {n: v for n, v in os.environ.items() if not n.startswith("RLM_")} | {"HOME": str(tmp_path), "RLM_EMBEDDER": "none"}
    with subprocess.Popen([sys.executable, "-c", textwrap.dedent(code)], cwd=tmp_path, env=env, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None and process.stdout.readline().startswith("Serving ")
            process.send_signal(signal.SIGINT)
            out, err = process.communicate(timeout=120)
        finally:
            process.kill()
    assert (out, err, process.returncode) == ("", "", 0)


def test_a_token_file_where_the_setting_has_it_shuts_the_door(tmp_path: Path) -> None:
    token, _ = TokenFile(tmp_path / ".rlm" / "tokens").add("default")
    with program(tmp_path) as (_, url):
        assert httpx.get(f"{url}v1/timeline").status_code == 401
        assert httpx.get(f"{url}v1/timeline", headers={"Authorization": f"Bearer {token}"}).status_code == 200


def test_other_hosts_are_served_with_tokens_only(tmp_path: Path) -> None:
    with program(tmp_path, "--host", "0.0.0.0") as (process, url):
        assert url == "" and process.wait(120) == 1
        assert process.stderr is not None
        assert "there is no token" in (said := process.stderr.read()) and "rlm tokens add" in said and "Traceback" not in said
    token, _ = TokenFile(tmp_path / "keys").add("default")
    with program(tmp_path, "--host", "0.0.0.0", "--token-file", "keys") as (_, url):
        port = url.rsplit(":", 1)[1]
        answer = httpx.get(f"http://127.0.0.1:{port}v1/timeline", headers={
            "Authorization": f"Bearer {token}", "Host": "memory.example"})
        assert answer.status_code == 200


def test_a_port_that_is_taken_and_a_store_that_is_none_are_said_in_a_sentence(tmp_path: Path) -> None:
    def fails(*words: str) -> str:
        with program(tmp_path, *words) as (process, url):
            assert url == "" and process.wait(120) == 1 and process.stderr is not None
            said = process.stderr.read()
            assert said.startswith("Error: ") and "Traceback" not in said and len(said.splitlines()) <= 2
            return said
    with program(tmp_path) as (_, url):
        assert "can't be listened on" in fails("--port", url.rsplit(":", 1)[1].strip("/"))
    (tmp_path / "picture.png").write_bytes(b"\x89PNG" * 1000)
    assert "no SQLite database" in fails("--db", "picture.png")
    assert "no token file" in fails("--token-file", "typo")
    TokenFile(tmp_path / "keys").add("default")
    for host in ("..", "a..b", "x" * 64, f"{'x' * 64}.example", "한" * 60, ".", "no such host", "256.1.1.1"):
        said = fails("--host", host, "--token-file", "keys")
        assert "UTF-8" not in said and "port 0" in said and ("is no host" in said or "can't be listened on" in said), (host, said)


def test_without_the_extra_it_says_what_to_install(tmp_path: Path) -> None:
    code = "import sys; sys.modules['fastapi'] = None; sys.argv = ['rlm', 'serve', '--port', '0']; from rlm.service.cli import main; main()"
    done = subprocess.run([sys.executable, "-c", code], env=os.environ | {"HOME": str(tmp_path)}, cwd=tmp_path, capture_output=True,
                          text=True)
    assert done.returncode == 1 and "pip install 'rlm[serve]'" in done.stderr and "Traceback" not in done.stderr


# ---------------------------------------------------------------- traces

def spans(text: str) -> list[dict[str, object]]:
    "What the console exporter wrote."
    decoder, found, at = json.JSONDecoder(), [], 0
    while at < len(text.rstrip()):
        span, at = decoder.raw_decode(text, at)
        found.append(span)
        at += len(text[at:]) - len(text[at:].lstrip())
    return found


def test_spans_tell_routes_and_numbers_and_no_text(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", heard := io.StringIO())
    with serving(path, traces="console") as running, running.client() as client:
        client.post("/v1/write", json={"text": "a private matter", "id": "secret"})
        client.post("/v1/search", json={"q": "private matter"}, headers={"traceparent": f"00-{'ab' * 16}-{'cd' * 8}-01"})
        client.get("/v1/memories/nothing")
    monkeypatch.undo()
    made = {str(s["name"]): s for s in spans(heard.getvalue())}
    assert set(made) == {"memory.write", "POST /v1/write", "memory.search", "POST /v1/search", "GET /v1/memories/{id}"}
    request, inner = made["POST /v1/search"], made["memory.search"]
    assert request["parent_id"] == f"0x{'cd' * 8}" and inner["parent_id"] == request["context"]["span_id"]  # type: ignore[index]
    assert inner["attributes"] == {"slot": "", "rlm.hits": 1, "rlm.layer": "index"}
    assert made["GET /v1/memories/{id}"]["attributes"]["http.response.status_code"] == 404  # type: ignore[index]
    assert "private" not in heard.getvalue() and "secret" not in heard.getvalue()

def test_serving_closes_no_log_of_the_process(path: Path, tmp_path: Path) -> None:
    kept = logging.FileHandler(tmp_path / "app.log")
    logging.getLogger("app").addHandler(kept)
    try:
        with serving(path) as running, running.client() as client:
            assert client.get("/health").status_code == 200
        assert kept.stream is not None and not kept.stream.closed
    finally:
        logging.getLogger("app").removeHandler(kept)
        kept.close()


def test_spans_go_to_the_collector_that_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    got: list[tuple[str, bytes]] = []

    class Collector(http.server.BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            got.append((self.path, self.rfile.read(int(self.headers["Content-Length"]))))
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass
    with http.server.HTTPServer(("127.0.0.1", 0), Collector) as collector:
        thread = threading.Thread(target=collector.serve_forever)
        thread.start()
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", f"http://127.0.0.1:{collector.server_address[1]}")
        tracing = SpanTracer("otlp")
        with tracing.span("memory.search", k=3):
            pass
        tracing.close()
        collector.shutdown()
        thread.join()
    assert [p for p, _ in got] == ["/v1/traces"] and b"memory.search" in got[0][1]


def test_nothing_is_sent_unless_it_is_asked_for(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:9")
    with serving(path) as running, running.client() as client:
        assert client.get("/v1/timeline").status_code == 200
        assert running.service.tracer.provider is None
        with running.service.tracer.span("x") as span:
            assert span is None


def test_without_the_extra_traces_say_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "opentelemetry.sdk.trace", None)
    with pytest.raises(MissingExtra, match="otel"):
        SpanTracer("console")


PROCESSES = """
import os, sys, time
from pathlib import Path
from rlm.service.http import server
server.SHORTEST_LIFE_S = float(sys.argv[2])
folder = Path(sys.argv[1])
def work(number):
    (folder / f"{number}-{os.getpid()}").touch()
    if number and len(list(folder.glob("1-*"))) > 1 and not (folder / "back").exists():
        raise SystemExit("The store is away.")
    time.sleep(300)
server._run_processes(2, work)
"""


def until(true: Callable[[], object]) -> None:
    "Wait for something, two minutes at most."
    deadline = time.monotonic() + 120
    while not true() and time.monotonic() < deadline:
        time.sleep(.05)
    assert true()


@pytest.mark.skipif(os.name != "posix", reason="there is no fork")
def test_processes_outlast_a_store_that_is_away_and_end_with_their_parent_also_where_it_is_killed(tmp_path: Path) -> None:
    def started(number: int) -> list[int]:
        return [int(p.name[2:]) for p in sorted(tmp_path.glob(f"{number}-*"), key=lambda p: p.stat().st_mtime)]

    with subprocess.Popen([sys.executable, "-c", PROCESSES, str(tmp_path), ".3"], stderr=subprocess.DEVNULL) as parent:
        until(lambda: started(0) and started(1))
        time.sleep(.5)  # they have served for a while
        os.kill(started(1)[0], signal.SIGKILL)
        until(lambda: len(started(1)) >= 4)
        assert parent.poll() is None and len(started(0)) == 1, "the other one goes on while this one is tried again"
        (tmp_path / "back").touch()
        until(lambda: Path(f"/proc/{started(1)[-1]}").exists() or sys.platform != "linux")
        parent.kill()
        parent.wait()
    last = [started(0)[0], started(1)[-1]]
    until(lambda: not any(is_running(pid) for pid in last))


@pytest.mark.skipif(os.name != "posix", reason="there is no fork")
def test_a_process_that_ends_again_and_again_keeps_no_other_from_being_replaced(tmp_path: Path) -> None:
    with subprocess.Popen([sys.executable, "-c", PROCESSES, str(tmp_path), "5"], stderr=subprocess.DEVNULL) as parent:
        until(lambda: len(list(tmp_path.glob("?-*"))) == 2)
        time.sleep(5)  # they have served for a while
        for number in (1, 0):
            os.kill(int(next(tmp_path.glob(f"{number}-*")).name[2:]), signal.SIGKILL)
            until(lambda number=number: len(list(tmp_path.glob(f"{number}-*"))) == 2)
        assert len(list(tmp_path.glob("1-*"))) == 2, "it is not tried a third time before the other one is there"
        parent.kill()


@pytest.mark.skipif(os.name != "posix", reason="there is no fork")
def test_what_processes_share_is_loaded_before_they_are_forked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    done = list[str]()
    monkeypatch.setattr(server, "prepare", lambda: done.append("loops"))
    monkeypatch.setattr(server, "_run_processes", lambda count, work: done.append(f"{count} processes"))
    monkeypatch.setattr("gc.freeze", lambda: done.append("frozen"))
    monkeypatch.setattr(server, "MetricsExchange", lambda count: None)
    server.serve(Settings(db_path=tmp_path / "memory.db", serve_port=0), workers=2)
    assert done == ["loops", "frozen", "2 processes"] and "rlm.service.mcp.http" in sys.modules


def is_running(pid: int) -> bool:
    "Whether a process is there, and no zombie."
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    found = subprocess.run(["ps", "-o", "stat=", "-p", str(pid)], capture_output=True, text=True, check=False).stdout
    return bool(found) and not found.startswith("Z")
