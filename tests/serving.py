"A server for tests: real sockets, in a thread of this process."
import json
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import uvicorn

from rlm.core.settings import load_settings
from rlm.service.http.app import guarded_application
from rlm.service.http.middleware import PATIENCE_S
from rlm.service.http.routing import Service
from rlm.service.http.server import Listener, http_config, listening
from rlm.service.http.tokens import TokenFile


class Running:
    "A server that runs, and how to reach it."

    def __init__(self, service: Service, here: Listener) -> None:
        self.service, self.here, self.port = service, here, here.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"

    def client(self, token: str = "", **headers: str) -> httpx.Client:
        given = {"Authorization": f"Bearer {token}"} if token else {}
        return httpx.Client(base_url=self.url, headers=given | headers, timeout=120)

    def raw(self, data: bytes) -> tuple[int, bytes]:
        "Send these bytes, and give status and the whole answer."
        with socket.create_connection(("127.0.0.1", self.port), timeout=120) as s:
            s.sendall(data)
            answer = b""
            while part := s.recv(65536):
                answer += part
        return int(answer.split()[1]), answer


@contextmanager
def serving(db: Path, tokens: TokenFile | None = None, more: dict[str, Any] | None = None, patience_s: float = PATIENCE_S,
            connections: int | None = None, **settings: Any) -> Iterator[Running]:
    "Serve a store."
    service = Service(load_settings(db_path=db, **settings), **{"embedder": "none", "ready_age_s": 0.0} | (more or {}))
    server = uvicorn.Server(http_config(guarded_application(service, tokens), patience_s, connections))
    with listening("127.0.0.1", 0) as here:
        thread = threading.Thread(target=server.run, kwargs={"sockets": [here]})
        thread.start()
        try:
            yield Running(service, here)
        finally:
            server.should_exit = True
            thread.join(30)
    assert not thread.is_alive()


def request(method: str, path: str, body: bytes = b"", **headers: str) -> bytes:
    "An HTTP/1.1 request as it goes over the wire."
    named = {"Host": "127.0.0.1", "Connection": "close", **{k.replace("_", "-"): v for k, v in headers.items()}}
    if body:
        named = {"Content-Type": "application/json", "Content-Length": str(len(body)), **named}
    return "".join([f"{method} {path} HTTP/1.1\r\n", *(f"{k}: {v}\r\n" for k, v in named.items()), "\r\n"]).encode("latin-1") + body


def problem(answer: httpx.Response) -> dict[str, Any]:
    "An error, as the server says it."
    assert answer.headers["content-type"] == "application/problem+json", answer.text
    found: dict[str, Any] = json.loads(answer.content)
    assert found["status"] == answer.status_code and found["title"]
    return found
