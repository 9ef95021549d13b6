"""A peer of a federation beside its store: the folder of its files, gossip over HTTP, and the status of both.

The folder `memory.db.federation/NAMESPACE` holds three files. `federation.json` is what a person decided: name, address, peers,
configuration. `key` is the secret half of the peer's key, readable by its owner alone. `state.json` is what the node must not forget:
counters against replay, ε spent, the newest updates. They are no part of the store, so that a store restored from a copy rolls none of it
back.

A message is `POST /gossip` with its signature in the header `Rlm-Signature`; the reply carries its own. The server is Python's, one thread
a connection, sixteen connections at once, on loopback unless told otherwise. Before a signature is checked, an address may send ten times
as many requests as a peer may; at most a million bytes are read, within the time-out. A refusal names its reason.
"""

import http.client
import json
import os
import re
import threading
from dataclasses import asdict
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlsplit

from ..core.errors import AlreadyExists, InvalidInput, NotFound, RlmError, StoreCorrupt, StoreError
from ..core.files import read_path, replace_file, server_url
from ..core.ids import canonical_json
from ..federation.gossip import MOST_MESSAGE, GossipConfig, GossipNode, PeerCard, PeerKey, Send, read_card, read_config
from ..federation.gossip import read_message, rule_hash
from ..federation.update import epsilon
from .companion import Companion
from .http.middleware import RateLimiter


PATH, SIGNATURE = "/gossip", "Rlm-Signature"
MOST_CONNECTIONS = 16  # at once; more are told to come back
STRANGERS = 10  # times a peer's rate that one address may send in all: several peers may share one


def http_send(timeout: float,  # seconds for connecting, and for each read
              ) -> Send:
    "Return a function that sends a request over HTTP. It raises `StoreError` without an answer, `InvalidInput` for a refusal."
    def send(url: str, body: bytes, signature: str) -> tuple[bytes, str]:
        parts = urlsplit(url)
        connect = http.client.HTTPSConnection if parts.scheme == "https" else http.client.HTTPConnection
        connection = connect(parts.hostname or "", parts.port, timeout=timeout)
        try:
            connection.request("POST", PATH, body, {"Content-Type": "application/json", SIGNATURE: signature})
            answer = connection.getresponse()
            data = answer.read(MOST_MESSAGE + 1)
            if answer.status in (429, 503):
                raise StoreError(f"The peer at {url} is busy.", "It is asked again later.")
            if answer.status != 200:
                raise InvalidInput(f"The peer at {url} refused: {_reason(data)}", "See its reason.")
            return data, answer.getheader(SIGNATURE, "")
        except (OSError, http.client.HTTPException) as e:
            raise StoreError(f"The peer at {url} does not answer ({e}).", "It may be offline; it is asked again later.") from e
        finally:
            connection.close()
    return send


def _reason(data: bytes) -> str:
    "What a refusal says, on one line of 300 letters at most."
    try:
        said = json.loads(data)["error"]
    except (ValueError, KeyError, TypeError, RecursionError):
        said = "without a reason"
    return " ".join(str(said)[:300].split())


class GossipServer:
    "Serves a node over HTTP in threads of its own, from `start` to `stop`."

    def __init__(self,
                 node: GossipNode,  # node that answers the messages; its configuration says where to listen
                 ) -> None:
        self.node = node
        rate = node.config.requests_per_minute / 60
        self._peers, self._addresses = RateLimiter(rate), RateLimiter(rate * STRANGERS)
        self._limits, self._free = threading.Lock(), threading.BoundedSemaphore(MOST_CONNECTIONS)
        try:
            self._server = ThreadingHTTPServer((node.config.host, node.config.port), self._handler())
        except OSError as e:
            raise StoreError(f"Nothing can listen on {node.config.host}:{node.config.port} ({e.strerror or e}).",
                             "Another node may be running; --port 0 picks a free port.") from e
        self._server.daemon_threads = True

    @property
    def port(self) -> int:
        "Return the port that is listened on."
        return int(self._server.server_address[1])

    def start(self) -> None:
        "Start answering, in the background."
        threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.1}, name="gossip", daemon=True).start()

    def stop(self) -> None:
        "Stop answering and give the port back."
        self._server.shutdown()
        self._server.server_close()

    def answer(self,
               address: str,    # caller's address, as the connection knows it
               path: str,       # path of the request
               length: str,     # header Content-Length
               ) -> tuple[int, str]:  # status and reason; 200: the body may be read
        "Check a request before its body is read."
        with self._limits:
            wait = self._addresses.wait(address)
        if wait:
            return 429, "Too many requests from this address."
        if path != PATH:
            return 404, "There is nothing here but gossip."
        if not (length.isascii() and length.isdigit()):
            return 411, "A request says how long it is."
        if int(length[:12]) > MOST_MESSAGE:
            return 413, f"A request has at most {MOST_MESSAGE} bytes."
        return 200, ""

    def take(self,
             body: bytes,     # request
             signature: str,  # its signature
             ) -> tuple[int, bytes, str]:  # status, reply or reason, signature
        "Answer a request that was read whole."
        try:
            sender = read_message(body)["sender"]
            with self._limits:
                wait = self._peers.wait(sender) if sender in self.node.peers else 0.0
            if wait:
                return 429, _error("Too many requests of this peer."), ""
            return (200, *self.node.receive(body, signature))
        except InvalidInput as e:
            return 403, _error(e.message), ""
        except RlmError:
            return 503, _error("The peer can't answer now."), ""

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        server = self

        class Handler(BaseHTTPRequestHandler):
            "Answers the requests of one connection, one after the other."

            timeout = server.node.config.timeout_s
            server_version, sys_version = "rlm", ""

            def do_POST(self) -> None:
                if not server._free.acquire(blocking=False):
                    return self._send(503, _error("Too many connections."))
                try:
                    length = self.headers.get("Content-Length", "")
                    status, why = server.answer(self.client_address[0], self.path, length)
                    if status != 200:
                        return self._send(status, _error(why))
                    body = self.rfile.read(int(length))
                    if len(body) == int(length):
                        self._send(*server.take(body, self.headers.get(SIGNATURE, "")))
                except OSError:  # the other side went away or was too slow: there is nobody to tell
                    self.close_connection = True
                finally:
                    server._free.release()

            def _send(self, status: int, data: bytes, signature: str = "") -> None:
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(data)))
                self.send_header("Connection", "close")
                if signature:
                    self.send_header(SIGNATURE, signature)
                self.end_headers()
                self.wfile.write(data)
                self.close_connection = True

            def log_message(self, *_: object) -> None:
                "Say nothing: refusals are noted by the node."
        return Handler


def _error(why: str) -> bytes:
    return json.dumps({"error": why}).encode()


if TYPE_CHECKING:
    from rlm.service.memory import Memory

_NAME, _HASH = re.compile(r"[a-z0-9-]{1,64}"), re.compile(r"[0-9a-f]{64}")


class FederationFolder:
    "The files of one peer: key, peers and configuration, state."

    def __init__(self,
                 path: Path,  # folder; made by `create`
                 ) -> None:
        self.path = path

    @classmethod
    def of(cls,
           memory: "Memory",  # an open store, of the namespace whose policy takes part
           ) -> "FederationFolder":
        "Return the folder of a namespace, there or not. Raises `InvalidInput` for a store in memory."
        path = str(memory.ctx.settings.db_path)
        if path == ":memory:":
            raise InvalidInput("A store in memory can't take part in a federation.", "Open a file.")
        if server_url(path) is not None:
            raise InvalidInput("A store in a server can't take part in a federation: its keys are files beside a store.", "Open a file.")
        return cls(Path(f"{os.path.realpath(read_path(path))}.federation") / quote(memory.ctx.namespace, safe=""))

    @property
    def exists(self) -> bool:
        "Whether there is a federation here."
        return (self.path / "federation.json").exists()

    def create(self,
               name: str,             # name of the federation: small letters, digits, hyphens
               config: GossipConfig,  # pace, privacy, address
               url: str | None = None,  # address at which others find this peer; None: where it listens
               ) -> None:
        "Make the files; a key that is there is kept. Raises `AlreadyExists`, `InvalidInput`."
        if self.exists:
            raise AlreadyExists(f"There is a federation here already: {self._read('federation.json')['name']}.", "Leave it first.")
        if not _NAME.fullmatch(name):
            raise InvalidInput(f"{name!r} is no name of a federation.", "Use small letters, digits and hyphens, 64 at most.")
        host = f"[{config.host}]" if ":" in config.host else config.host
        where = url or f"http://{host}:{config.port or 8791}"
        self.path.mkdir(parents=True, exist_ok=True, mode=0o700)
        if not (self.path / "key").exists():
            replace_file(self.path / "key", [PeerKey.new().secret.hex()])
        read_card(f"{name}/{self.key().public}@{where}")  # an address that no card could carry is refused
        self._write("federation.json", {"name": name, "url": where, "peers": {}, "allowed_rules": [], "config": asdict(config)})

    def _write(self, name: str, value: dict[str, Any]) -> None:
        replace_file(self.path / name, [canonical_json(value)])

    def _read(self, name: str) -> dict[str, Any]:
        try:
            found = json.loads((self.path / name).read_text(encoding="utf-8"))
        except FileNotFoundError:
            raise NotFound("There is no federation here.", "Make one with `rlm federation init NAME`, or join one.") from None
        except ValueError as e:
            raise StoreCorrupt(f"The file {name} of the federation is damaged.", "Restore it from a copy, or leave and join anew.") from e
        if not isinstance(found, dict):
            raise StoreCorrupt(f"The file {name} of the federation is damaged.", "Restore it from a copy, or leave and join anew.")
        return found

    def decided(self) -> dict[str, Any]:
        "Return what a person decided: name, url, peers, allowed_rules and config. Raises `NotFound` where there is no federation."
        return self._read("federation.json")

    def key(self) -> PeerKey:
        "Return this peer's key. Raises `StoreCorrupt`."
        try:
            return PeerKey(bytes.fromhex((self.path / "key").read_text(encoding="utf-8").strip()))
        except (OSError, ValueError) as e:
            raise StoreCorrupt("The key of the federation can't be read.", "Restore it from a copy, or delete it and join anew.") from e

    def card(self) -> PeerCard:
        "Return what is given to others."
        found = self._read("federation.json")
        return PeerCard(found["name"], self.key().public, found["url"])

    def peers(self) -> dict[str, str]:
        "Return the addresses of peers, by key."
        return dict(self._read("federation.json")["peers"])

    def config(self) -> GossipConfig:
        "Return pace, privacy and address."
        return read_config(self._read("federation.json")["config"])

    def add(self,
            card: PeerCard,                  # another peer's card
            allow_rules: str | None = None,  # SHA-256 of other safety rules that are taken too
            ) -> None:
        "Know a peer from now on, or its new address. Raises `InvalidInput`."
        found = self._read("federation.json")
        if card.federation != found["name"]:
            raise InvalidInput(f"The card is of the federation {card.federation}, and this peer is in {found['name']}.", "Leave it first.")
        if card.key == self.key().public:
            raise InvalidInput("This is one's own card.", "Give it to others, and join theirs.")
        if allow_rules is not None and not _HASH.fullmatch(allow_rules):
            raise InvalidInput("A hash of safety rules has 64 hexadecimal characters.", "The refusal of a peer names it.")
        rules = sorted({*found["allowed_rules"], *([allow_rules] if allow_rules else [])})
        self._write("federation.json", found | {"peers": found["peers"] | {card.key: card.url}, "allowed_rules": rules})

    def leave(self) -> None:
        "Forget federation and peers; key, counters and ε spent stay, for what was sent stays sent."
        self._read("federation.json")
        (self.path / "federation.json").unlink()

    def state(self) -> dict[str, Any]:
        "Return what a node saved last; nothing before its first start."
        return self._read("state.json") if (self.path / "state.json").exists() else {}

    def save(self,
             state: dict[str, Any],  # state, made by `GossipNode.state`
             ) -> None:
        "Keep what a node must not forget, whole or not at all."
        self._write("state.json", state)


def running_node(folder: FederationFolder, companion: Companion) -> GossipNode:
    "Return the peer's node as it was when it last saved. Raises `NotFound` where there is no federation."
    found = folder.decided()
    return GossipNode(folder.key(), found["name"], companion.policies, folder.peers(), folder.config(), folder.state(),
                      folder.save, found["allowed_rules"], companion.ctx.clock)


def status_of(folder: FederationFolder, companion: Companion) -> dict[str, Any]:
    "Return the status of a peer and of its peers, for people and for JSON."
    node = running_node(folder, companion)
    peers = [{"key": k, "url": p.url, "updates": len(p.values), "sequence": p.sequence, "unanswered": p.failures,
              "reputation": node.reputation.of(k)}
             for k, p in sorted(node.peers.items())]
    return {"federation": node.federation, "key": node.key.public, "url": folder.card().url, "shape": node.config.shape,
            "safety_rules": rule_hash(), "feedback": len(companion.policies.feedback()), "rounds_sent": len(node.budget.spent),
            "epsilon_spent": round(epsilon(node.budget.spent, node.budget.delta), 4),
            "epsilon_budget": node.budget.budget, "delta": node.budget.delta,
            "shared_model_in_use": companion.policies.shared() is not None,
            "peers": peers}
