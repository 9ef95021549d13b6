"Eight processes gossip on loopback through kills, restarts, a partition and a clock that is an hour ahead; the wire is recorded."
import json
import random
import shutil
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from rlm import Memory
from rlm.federation.gossip import GossipConfig, PeerCard
from rlm.service.federation import FederationFolder

PEOPLE = 8
TURNS = ("The tram was late again this morning, so I walked to the bakery.", "오늘은 비가 와서 버스를 타고 회사에 갔다.")
START = """
import sys
from rlm.core.clock import SystemClock
from rlm.service.cli import main
told, ahead = SystemClock.seconds, float(sys.argv.pop(1))
SystemClock.seconds = lambda self: told(self) + ahead
main()
"""


class Wire:
    "Relays between peers, one for each sending half and each receiver: they record all bytes, and can be cut between the halves."

    def __init__(self) -> None:
        self.sent, self.cut, self.targets = list[bytes](), False, dict[int, int]()
        self.ports: dict[tuple[int, int], int] = {}
        self.listeners = list[socket.socket]()
        for half in (0, 1):
            for n in range(PEOPLE):
                listener = socket.create_server(("127.0.0.1", 0))
                self.ports[half, n] = listener.getsockname()[1]
                self.listeners.append(listener)
                threading.Thread(target=self._accept, args=(listener, half, n), daemon=True).start()

    def _accept(self, listener: socket.socket, half: int, receiver: int) -> None:
        with suppress(OSError):  # the listener was closed: the test is over
            while True:
                here, _ = listener.accept()
                threading.Thread(target=self._relay, args=(here, self.cut and half != receiver % 2, receiver), daemon=True).start()

    def _relay(self, here: socket.socket, refuse: bool, receiver: int) -> None:
        with here, suppress(OSError):
            if refuse:
                return
            with socket.create_connection(("127.0.0.1", self.targets[receiver]), timeout=5) as there:
                there.settimeout(20)
                back = threading.Thread(target=self._copy, args=(there, here), daemon=True)
                back.start()
                self._copy(here, there)
                back.join()

    def close(self) -> None:
        for listener in self.listeners:
            with suppress(OSError):
                listener.shutdown(socket.SHUT_RDWR)
            listener.close()

    def _copy(self, source: socket.socket, target: socket.socket) -> None:
        with suppress(OSError):
            while data := source.recv(65536):
                self.sent.append(data)
                target.sendall(data)
        with suppress(OSError):
            target.shutdown(socket.SHUT_WR)


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as found:
        return int(found.getsockname()[1])


@pytest.fixture
def stores(tmp_path: Path) -> Iterator[tuple[list[Path], list[FederationFolder], Wire]]:
    "Stores of eight people, half of each language, whose companions have got feedback, and who know each other through relays."
    for n, turn in enumerate(TURNS):
        with Memory(tmp_path / f"taught{n}.db", embedder="none") as memory:
            memory.write(turn)
            for _ in range(20):
                decision = memory.companion.decide(turn)
                memory.companion.learn(decision, 1.0 if decision.save else -1.0)
    wire, paths, folders = Wire(), [tmp_path / f"{n}.db" for n in range(PEOPLE)], list[FederationFolder]()
    for n, path in enumerate(paths):
        shutil.copy(tmp_path / f"taught{n % 2}.db", path)
        wire.targets[n] = free_port()
        with Memory(path, embedder="none") as memory:
            folders.append(FederationFolder.of(memory))
        folders[n].create("family", GossipConfig(port=wire.targets[n], noise=2.0, budget=100.0, interval_s=0.3, timeout_s=2.0,
                                                 requests_per_minute=6000))
    cards = [f.card() for f in folders]
    for n, folder in enumerate(folders):
        for other, card in enumerate(cards):
            if other != n:
                folder.add(PeerCard("family", card.key, f"http://127.0.0.1:{wire.ports[n % 2, other]}"))
    yield paths, folders, wire
    wire.close()


def started(path: Path, ahead: float) -> "subprocess.Popen[bytes]":
    with path.with_suffix(".log").open("ab") as log:
        return subprocess.Popen([sys.executable, "-c", START, str(ahead), "federation", "run", "--db", str(path)], stdout=log, stderr=log)


@pytest.mark.parametrize("seconds", [pytest.param(6, marks=pytest.mark.nightly), pytest.param(600, marks=pytest.mark.heavy)])
def test_eight_processes_converge_and_send_no_private_text(stores: tuple[list[Path], list[FederationFolder], Wire], seconds: int) -> None:
    paths, folders, wire = stores
    skews, rng = [3600.0 if n == 3 else 0.0 for n in range(PEOPLE)], random.Random(0)
    running = [started(path, ahead) for path, ahead in zip(paths, skews, strict=True)]
    own = [f.key().public for f in folders]
    seen = [dict.fromkeys(own, 0) for _ in own]

    def watch() -> None:
        "No number of an update that a peer has seen ever falls, across kills too."
        for n, folder in enumerate(folders):
            for key, peer in folder.state().get("peers", {}).items():
                assert peer["sequence"] >= seen[n][key]
                seen[n][key] = peer["sequence"]

    def converged() -> bool:
        states = [f.state() for f in folders]
        newest = {key: s.get("sequence", 0) for key, s in zip(own, states, strict=True)}
        return all(newest.values()) and all(s["peers"].get(k, {}).get("sequence") == newest[k]
                                            for s, me in zip(states, own, strict=True) for k in own if k != me)
    try:
        begun = time.monotonic()
        while (elapsed := time.monotonic() - begun) < seconds:
            wire.cut = 0.3 < elapsed / seconds < 0.6
            victim = rng.randrange(PEOPLE)
            running[victim].kill()
            running[victim].wait()
            watch()
            time.sleep(min(5.0, seconds / 20))
            running[victim] = started(paths[victim], skews[victim])
            time.sleep(min(10.0, seconds / 4))
        wire.cut = False
        limit = time.monotonic() + 120
        while not converged() and time.monotonic() < limit:
            time.sleep(0.5)
        watch()
        assert converged(), "\n".join(p.with_suffix(".log").read_text(encoding="utf-8")[-300:] for p in paths)
        assert all(p.poll() is None for p in running), "none ended by itself"
    finally:
        for process in running:
            process.kill()
            process.wait()
    sent = b"".join(wire.sent)
    assert all(key.encode() in sent for key in own) and b"values" in sent, "the control: the search finds what was sent"
    for turn in TURNS:
        for word in [w.strip(".,") for w in turn.split() if len(w) > 3 or not w.isascii()]:
            assert word.encode() not in sent and json.dumps(word).strip('"').encode() not in sent, word
    print(f"{seconds} s: {len(sent):,} bytes on the wire, all of {PEOPLE} updates everywhere")
