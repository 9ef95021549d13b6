"Gossip over real sockets: what a stranger can send is bounded, refusals name their reason, and no text of a memory is on the wire."
import http.client
import json
import math
import socket
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from rlm import Memory
from rlm.core.errors import AlreadyExists, InvalidInput, NotFound, StoreCorrupt, StoreError
from rlm.federation.gossip import MOST_MESSAGE, GossipConfig, GossipNode
from rlm.service.companion import Companion
from rlm.service.federation import FederationFolder, GossipServer, http_send, running_node, status_of

TURN = {"en": "The tram was late again this morning, so I walked.", "ko": "오늘은 비가 와서 버스를 타고 회사에 갔다."}
FREE = GossipConfig(port=0, noise=0.5, budget=math.inf, attackers=0, fanout=3, interval_s=0, requests_per_minute=600, timeout_s=30)


def taught(companion: Companion, turn: str, count: int = 24) -> None:
    for _ in range(count):
        decision = companion.decide(turn)
        companion.learn(decision, 1.0 if decision.save else -1.0)


@pytest.fixture
def people(tmp_path: Path) -> Iterator[list[tuple[Memory, FederationFolder]]]:
    "Four stores of one federation, in both languages."
    memories = [Memory(tmp_path / f"{n}.db", embedder="none") for n in range(4)]
    for memory, turn in zip(memories, [TURN["en"], TURN["ko"]] * 2, strict=True):
        memory.write(turn)
        taught(memory.companion, turn)
    yield [(m, FederationFolder.of(m)) for m in memories]
    for memory in memories:
        memory.close()


def started(people: list[tuple[Memory, FederationFolder]]) -> list[tuple[GossipNode, GossipServer]]:
    "Nodes that listen and know each other."
    for _, folder in people:
        folder.create("family", GossipConfig(port=0))
    found = []
    for memory, folder in people:
        node = running_node(folder, memory.companion)
        node.config = FREE
        node.budget.budget = math.inf
        server = GossipServer(node)
        server.start()
        found.append((node, server))
    peers = {node.key.public: f"http://127.0.0.1:{server.port}" for node, server in found}
    for node, _ in found:
        node.set_peers(peers)
    return found


def test_four_stores_learn_from_one_another_and_no_words_are_sent(people: list[tuple[Memory, FederationFolder]]) -> None:
    nodes, wire = started(people), list[bytes]()
    real = http_send(30)

    def send(url: str, body: bytes, signature: str) -> tuple[bytes, str]:
        reply = real(url, body, signature)
        wire.extend([body, reply[0]])
        return reply
    for _ in range(3):
        reports = [node.step(send) for node, _ in nodes]
    assert all(len(node.have()) == 4 for node, _ in nodes) and all((r.asked and r.updates == 3) or r.note for r in reports)
    sent = b"".join(wire)
    assert wire and all(key in sent for key in (b'"have"', b'values')), "the control: the search finds what was sent"
    for turn in TURN.values():
        for word in [w for w in turn.split() if len(w) > 3 or not w.isascii()]:
            assert word.encode() not in sent and json.dumps(word).strip('"').encode() not in sent
    for _, server in nodes:
        server.stop()
    with pytest.raises(StoreError, match="does not answer"):
        real(f"http://127.0.0.1:{nodes[0][1].port}", b"", "")


def time_stands_still(server: GossipServer) -> None:
    "Let no place be given back to callers while they call, however slow the machine is: a rate has no public clock."
    moment = time.monotonic()
    server._peers.now = server._addresses.now = lambda: moment


def test_what_a_stranger_can_send_is_bounded(people: list[tuple[Memory, FederationFolder]]) -> None:
    (node, server), *others = started(people)
    before = node.state()

    def ask(method: str, path: str, body: bytes = b"", **headers: str) -> tuple[int, str]:
        connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)
        connection.putrequest(method, path)
        for name, value in headers.items():
            connection.putheader(name.replace("_", "-"), value)
        connection.endheaders(body)
        answer = connection.getresponse()
        found = answer.status, answer.read().decode()
        connection.close()
        return found
    assert ask("POST", "/gossip", b"x" * 5, Content_Length="5")[0] == 403
    assert ask("POST", "/", b"", Content_Length="0")[0] == 404
    assert ask("POST", "/gossip")[0] == ask("POST", "/gossip", Content_Length="-1")[0] == 411
    assert ask("POST", "/gossip", Content_Length=str(MOST_MESSAGE + 1))[0] == ask("POST", "/gossip", Content_Length="9" * 50)[0] == 413
    assert ask("GET", "/gossip")[0] == 501
    with socket.create_connection(("127.0.0.1", server.port)) as half:
        half.sendall(b"POST /gossip HTTP/1.1\r\nContent-Length: 100\r\n\r\nhalf")
    time_stands_still(server)
    assert any(ask("POST", "/")[0] == 429 for _ in range(2_000)), "an address has a rate"
    assert node.state() == before
    for _, other in [(node, server), *others]:
        other.stop()


def test_a_peer_has_a_rate_and_a_peer_that_left_is_refused(people: list[tuple[Memory, FederationFolder]]) -> None:
    (a, first), (b, second), (_, third), (_, fourth) = started(people)

    def ask_often() -> None:
        for _ in range(200):
            a.exchange(b.key.public, http_send(30))
    time_stands_still(second)
    with pytest.raises(StoreError, match="busy"):
        ask_often()
    b.set_peers({})
    second._peers.rate = 0  # the rate would answer first
    with pytest.raises(InvalidInput, match="no peer here"):
        a.exchange(b.key.public, http_send(30))
    for server in (first, second, third, fourth):
        server.stop()
    third.node.config = GossipConfig(port=first.port)
    blocker = socket.create_server(("127.0.0.1", first.port))
    with pytest.raises(StoreError, match="Nothing can listen"):
        GossipServer(third.node)
    blocker.close()


def test_the_folder_keeps_key_and_spent_privacy_and_names_its_mistakes(people: list[tuple[Memory, FederationFolder]]) -> None:
    (memory, folder), (_, other), *_ = people
    with pytest.raises(NotFound, match="no federation here"):
        status_of(folder, memory.companion)
    with pytest.raises(InvalidInput, match="no name"):
        folder.create("My Family", GossipConfig())
    folder.create("family", GossipConfig())
    other.create("work", GossipConfig())
    with pytest.raises(AlreadyExists):
        folder.create("family", GossipConfig())
    for card, reason in ((other.card(), "federation work"), (folder.card(), "one's own")):
        with pytest.raises(InvalidInput, match=reason):
            folder.add(card)
    assert (folder.path / "key").stat().st_mode & 0o077 == 0
    running_node(folder, memory.companion).publish()
    card, spent = folder.card(), status_of(folder, memory.companion)["epsilon_spent"]
    assert 0 < spent < 1
    folder.leave()
    folder.create("family", GossipConfig())
    assert folder.card() == card and status_of(folder, memory.companion)["epsilon_spent"] == spent
    (folder.path / "state.json").write_text("{", encoding="utf-8")
    with pytest.raises(StoreCorrupt, match=r"state\.json"):
        running_node(folder, memory.companion)
