"Gossip between nodes: what is forged, replayed, foreign or malformed is refused with a reason and changes nothing; the rest converges."
import json
import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from rlm.companion.policy import ContextualBandit
from rlm.core.clock import ManualClock
from rlm.core.errors import InvalidInput, StoreError
from rlm.core.ids import canonical_json
from rlm.federation.aggregation import FederatedBandit
from rlm.federation.gossip import (
    MOST_MESSAGE,
    GossipConfig,
    GossipNode,
    PeerCard,
    PeerKey,
    read_card,
    read_config,
    rule_hash,
    rule_table,
    verify,
)
from rlm.federation.update import SHAPES, Array, FeedbackExample, PolicyUpdate, encode_update

KEYS = [PeerKey(bytes([n + 1] * 32)) for n in range(6)]
URLS = {k.public: f"http://127.0.0.1:{9000 + n}" for n, k in enumerate(KEYS)}
ROBUST = GossipConfig(noise=0, budget=math.inf, interval_s=0, attackers=1)
STRANGER = PeerKey(bytes([99] * 32))
SILENT = GossipConfig(noise=0, budget=math.inf, interval_s=0, attackers=0)


class Answers:
    "Feedback of somebody who wants what is technical saved, or, with -1, does not."

    def __init__(self, seed: int, likes: float = 1.0) -> None:
        states = np.random.default_rng(seed).integers(0, 2, (24, 10)).astype(float)
        self.found = [FeedbackExample(tuple(s), "SAVE", likes if s[6] else -likes) for s in states]
        self.shared: Array | None = None

    def feedback(self) -> list[FeedbackExample]:
        return self.found

    def adopt(self, shared: Array) -> tuple[float, float]:
        errors = FederatedBandit(ContextualBandit(), self.found).accept(shared)
        self.shared = shared
        return errors


def node(n: int, config: GossipConfig = SILENT, source: Answers | None = None, **more: Any) -> GossipNode:
    return GossipNode(KEYS[n], "family", source or Answers(n), URLS, config, clock=more.pop("clock", ManualClock()), seed=n, **more)


def network(nodes: list[GossipNode], cut: Callable[[str], bool] = lambda url: False) -> Callable[[str, bytes, str], tuple[bytes, str]]:
    by_url = {URLS[n.key.public]: n for n in nodes}

    def send(url: str, body: bytes, signature: str) -> tuple[bytes, str]:
        if cut(url) or url not in by_url:
            raise StoreError("unreachable", "")
        return by_url[url].receive(body, signature)
    return send


def update(sender: PeerKey = KEYS[1], **change: Any) -> tuple[str, str]:
    made = PolicyUpdate("family", sender.public, 5, "linear", tuple(n / 100 for n in range(33)), 1.0, 4.0, rule_hash())
    data = encode_update(replace(made, **change))
    return data.decode(), sender.sign("update", data)


def request(sender: PeerKey = KEYS[1], signer: PeerKey | None = None, **change: Any) -> tuple[bytes, str]:
    body = canonical_json({"version": 1, "federation": "family", "sender": sender.public, "receiver": KEYS[0].public, "counter": 7,
                           "have": {}, "updates": []} | change).encode()
    return body, (signer or sender).sign("request", body)


def test_a_card_is_read_as_it_was_written() -> None:
    card = PeerCard("family", KEYS[0].public, "http://127.0.0.1:8791")
    assert read_card(f" {card}\n") == card
    for bad in ("", "family", str(card)[:-30], str(card).replace("http", "ftp"), f"{card}/path", str(card).replace("8791", "99999"),
                str(card).replace("family", "Fam ily"), str(card).replace("127", "me:secret@127")):
        with pytest.raises(InvalidInput):
            read_card(bad)


def test_a_signature_holds_for_one_key_one_kind_and_one_message() -> None:
    signature = KEYS[0].sign("update", b"x")
    verify(KEYS[0].public, "update", b"x", signature)
    for public, kind, data, shown in ((KEYS[1].public, "update", b"x", signature), (KEYS[0].public, "request", b"x", signature),
                                      (KEYS[0].public, "update", b"y", signature), (KEYS[0].public, "update", b"x", ""),
                                      (KEYS[0].public, "update", b"x", "0" * 128), ("00" * 32, "update", b"x", signature),
                                      (KEYS[0].public, "update", b"x", signature.upper())):
        with pytest.raises(InvalidInput, match="not its own"):
            verify(public, kind, data, shown)


WEAKENED = rule_hash(rule_table()[1:])


@pytest.mark.parametrize(("text", "signature", "reason"), [
    (*update(federation="work"), "another federation"), (*update(STRANGER), "no peer here"), (*update(rules=WEAKENED), "safety rules"),
    (update()[0], STRANGER.sign("update", update()[0].encode()), "not its own"), (update(sequence=6)[0], update()[1], "not its own"),
    (*update(values=(0.0,) * 899, shape="network"), "shape"), (*update(clip=2.0), "clip"), (*update(noise=101.0), "noise"),
    (*update(noise=0.0, values=(9.0,) * 33), "longer"), ("x" * 40_000, "00" * 64, "bytes"),
    (update()[0].replace("0.01", "NaN"), update()[1], "finite"),
    (update()[0].replace('"version":1', '"version":2'), update()[1], "version 2"),
    (update()[0].replace("0.01,", ""), update()[1], "32 values"), ("\ud800", "", "not text")])
def test_an_update_that_is_not_believed_is_refused_with_a_reason_and_changes_nothing(text: str, signature: str, reason: str) -> None:
    here = node(0)
    before = here.state()
    with pytest.raises(InvalidInput, match=reason):
        here.take(text, signature)
    assert here.state() == before
    assert here.take(*update()) and here.state() != before, "an honest one is taken"


def test_replayed_and_rolled_back_updates_are_refused_also_after_a_restart() -> None:
    kept: list[dict[str, Any]] = []
    here = node(0, save=kept.append)
    here.receive(*request(updates=[update(sequence=9)]))
    for again in (here, node(0, state=json.loads(json.dumps(kept[-1])))):
        assert not again.take(*update(sequence=9)), "the same is no news"
        for old in (update(sequence=8), update(sequence=9, noise=5.0)):
            with pytest.raises(InvalidInput, match="replay"):
                again.take(*old)
        with pytest.raises(InvalidInput, match="replay"):
            again.receive(*request())
        again.set_peers({})
        again.set_peers(URLS)
        with pytest.raises(InvalidInput, match="replay"):
            again.take(*update(sequence=8))


@pytest.mark.parametrize(("body", "signature", "reason"), [
    (*request(federation="work"), "another federation"), (*request(receiver=KEYS[2].public), "another peer"),
    (*request(STRANGER), "no peer"),
    (*request(signer=STRANGER), "not its own"), (request()[0], request(counter=8)[1], "not its own"), (*request(version=2), "version 1"),
    (*request(text="I live in Busan"), "exactly the fields"), (*request(counter="7"), "another kind"),
    (*request(counter=True), "another kind"),
    (*request(have=[]), "another kind"), (*request(have={"a": -1}), "another kind"), (*request(updates=[["x"]]), "another kind"),
    (*request(updates=[["x", "y"]] * 501), "another kind"), (b"[" * 20_000, "", "not JSON"), (b"\xff", "", "not JSON"),
    (b"[]", "", "fields"),
    (b"x" * (MOST_MESSAGE + 1), "", "bytes")])
def test_a_malformed_or_foreign_request_is_refused_with_a_reason_and_changes_nothing(body: bytes, signature: str, reason: str) -> None:
    here = node(0)
    before = here.state()
    with pytest.raises(InvalidInput, match=reason):
        here.receive(body, signature)
    assert here.state() == before and here.refusals
    reply, signed = here.receive(*request())
    verify(KEYS[0].public, "reply", reply, signed)


def test_a_reply_is_believed_only_to_the_request_that_was_sent() -> None:
    a, b = node(0), node(1)
    b.publish()
    old: list[tuple[bytes, str]] = []

    def send(url: str, body: bytes, signature: str) -> tuple[bytes, str]:
        old.append(b.receive(body, signature))
        return old[0]
    a.exchange(KEYS[1].public, send)
    before = a.have()
    with pytest.raises(InvalidInput, match="another request"):
        a.exchange(KEYS[1].public, send)
    assert a.have() == before


@pytest.mark.seed("002 gossip")
@pytest.mark.parametrize("shape", SHAPES)
def test_five_converge_through_a_partition_and_an_offline_peer_and_learn_the_same(shape: str) -> None:
    sources = [Answers(n) for n in range(5)]
    clocks = [ManualClock(f"2026-05-01T{10 + (n == 3)}:00:00Z") for n in range(5)]  # one clock is an hour ahead
    nodes = [node(n, replace(SILENT, shape=shape), sources[n], clock=clocks[n]) for n in range(5)]
    apart = {URLS[KEYS[n].public] for n in (0, 1)}
    for n in nodes[:2]:
        n.step(network(nodes, lambda url: url not in apart))
    for n in nodes[2:4]:
        n.step(network(nodes, lambda url: url in apart or url == URLS[KEYS[4].public]))
    assert len(nodes[0].have()) <= 2 and not nodes[4].have()
    for _ in range(6):
        for n in nodes:
            n.step(network(nodes))
    assert all(n.have() == nodes[0].have() and len(n.have()) == 5 for n in nodes)
    assert all(s.shared is not None for s in sources)
    for n in nodes:
        assert n.step(network(nodes)).errors is not None


def test_a_message_of_many_long_updates_is_cut_and_the_rest_follows() -> None:
    keys = [PeerKey(bytes([n + 1] * 32)) for n in range(60)]
    urls = {k.public: f"http://127.0.0.1:{9000 + n}" for n, k in enumerate(keys)}
    config = replace(SILENT, shape="network")
    full, empty = (GossipNode(k, "family", Answers(n), urls, config, clock=ManualClock(), seed=n) for n, k in enumerate(keys[:2]))
    for n, key in enumerate(keys[2:]):
        full.take(*update(key, shape="network", values=tuple(round(v, 9) for v in np.random.default_rng(n).normal(0, 4, 899).tolist())))
    def send(url: str, body: bytes, signature: str) -> tuple[bytes, str]:
        reply = full.receive(body, signature)
        assert max(len(body), len(reply[0])) <= MOST_MESSAGE
        return reply
    came = [empty.exchange(keys[0].public, send) for _ in range(3)]
    assert sum(came) == 58 and came[0] < 58 and came[2] == 0


def test_what_is_worse_for_a_person_is_not_adopted() -> None:
    odd = Answers(0, likes=-1.0)
    nodes = [node(0, source=odd), *(node(n) for n in range(1, 5))]
    for _ in range(4):
        reports = [n.step(network(nodes)) for n in nodes]
    assert odd.shared is None and "refused" in reports[0].note and reports[1].errors is not None


@pytest.mark.seed("002 robust")
def test_a_liar_is_named_and_outvoted() -> None:
    nodes = [node(n, ROBUST) for n in range(5)]
    for n in nodes:
        n.publish()
    liar = update(KEYS[5], sequence=5, values=tuple(-v for v in json.loads(nodes[1].update)["values"]), noise=0.0)
    for n in nodes:
        n.take(*liar)
    for _ in range(4):
        reports = [n.step(network(nodes, lambda url: url == URLS[KEYS[5].public])) for n in nodes]
    assert KEYS[5].public in reports[0].outliers and nodes[0].reputation.of(KEYS[5].public) < 1 and reports[0].errors is not None


def test_a_spent_budget_stops_sending_and_goes_on_receiving() -> None:
    clock = ManualClock()
    here = node(0, GossipConfig(noise=13.0, round_s=1.0, interval_s=0), clock=clock)
    for n in range(10):
        clock.advance(days=1)
        assert here.publish().round == n + 1
    sequence, text = here.sequence, here.update
    with pytest.raises(InvalidInput, match="nothing was sent"):
        here.publish()
    assert (here.sequence, here.update) == (sequence, text)
    assert here.take(*update())
    with pytest.raises(InvalidInput, match="nothing was sent"):
        node(0, here.config, clock=clock, state=here.state()).publish()


def test_too_little_feedback_sends_nothing_and_costs_nothing() -> None:
    source = Answers(0)
    source.found = source.found[:7]
    here = node(0, source=source)
    with pytest.raises(InvalidInput, match="too few"):
        here.publish()
    assert here.budget.spent == [] and here.update == ""


def test_a_node_that_lost_its_state_goes_on_from_what_others_remember() -> None:
    early, late = ManualClock("2026-05-01"), ManualClock("2026-06-01")
    before, other = node(0, clock=late), node(1)
    before.publish()
    other.take(before.update, before.signature)
    after = node(0, clock=early)
    after.take(before.update, before.signature)
    after.publish()
    assert other.take(after.update, after.signature)


def test_a_peer_that_does_not_answer_is_retried_and_then_left_alone_for_a_while() -> None:
    tries: list[str] = []

    def send(url: str, body: bytes, signature: str) -> tuple[bytes, str]:
        tries.append(url)
        raise StoreError("no answer", "")
    here = GossipNode(KEYS[0], "family", Answers(0), dict(list(URLS.items())[:2]), replace(SILENT, interval_s=1000.0, retries=2), seed=0)
    report = here.step(send)
    assert len(tries) == 3 and report.offline == (KEYS[1].public,)
    assert str(report).startswith(f"0 peers answered, not {KEYS[1].public[:12]}…"), "it is named"
    here.step(send)
    assert len(tries) == 3, "it waits"


def test_a_configuration_is_read_and_mistakes_are_named() -> None:
    assert read_config({"noise": 4.0}).noise == 4 and read_config({}).host == "127.0.0.1"
    for bad, reason in (({"nois": 1}, "nois"), ({"rule": "vote"}, "vote"), ({"fanout": 0}, "fanout"), ({"port": 70_000}, "70000"),
                        ({"noise": math.nan}, "numbers"), ({"clip": "1"}, "numbers"), ({"clip": True}, "numbers")):
        with pytest.raises(InvalidInput, match=reason):
            read_config(bad)
