"What peers send each other, what is believed of it, and what is refused with a reason."
import json
import math
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rlm.companion.policy import ACTIONS, FEATURES, ContextualBandit
from rlm.core.errors import InvalidInput
from rlm.core.ids import canonical_json
from rlm.federation.aggregation import FederatedBandit, Reputation, aggregate, enlarged, judge_shared, krum, krum_scores
from rlm.federation.gossip import check_rules, rule_hash, rule_table
from rlm.federation.update import (
    MODELS,
    PASSES,
    SHAPES,
    FeedbackExample,
    PolicyUpdate,
    PrivacyBudget,
    clip_norm,
    decode_update,
    encode_update,
    epsilon,
    gaussian_noise,
    linear_model,
    model_scores,
)

REFERENCES: list[dict[str, Any]] = json.loads(Path(__file__).parents[1].joinpath("data", "byzfl_vectors.json").read_text(encoding="utf-8"))
UPDATE = PolicyUpdate("family", "ab" * 32, 7, "linear", tuple(n / 100 for n in range(33)), 1.0, 4.0, "cd" * 32)


def examples(count: int, seed: int = 0) -> list[FeedbackExample]:
    rng = np.random.default_rng(seed)
    return [FeedbackExample(tuple(rng.random(10)), ACTIONS[n % 2], float(rng.choice([-1, 1]))) for n in range(count)]


def test_an_update_is_small_and_the_seeds_parameters_are_an_option() -> None:
    assert SHAPES["linear"] == 3 * (len(FEATURES) + 1) <= 50
    assert all(model(examples(20)).shape == (SHAPES[shape],) for shape, model in MODELS.items())
    assert not any(model([]).any() for model in MODELS.values()), "who has no feedback says nothing"
    assert linear_model(examples(20))[:22].any() and not linear_model(examples(20))[22:].any(), "RETRIEVE was never rewarded"


def test_an_encoded_update_holds_its_nine_fields_and_no_other_byte() -> None:
    wire = json.loads(encode_update(UPDATE))
    assert set(wire) == {"federation", "sender", "sequence", "shape", "values", "clip", "noise", "rules", "version"}
    assert all(isinstance(v, float) for v in wire["values"])
    assert decode_update(encode_update(UPDATE)) == UPDATE


@pytest.mark.parametrize(("change", "reason"), [
    ({"version": 2}, "version 2"), ({"version": True}, "version"), ({"sequence": 0}, "sequence"), ({"sequence": 1.5}, "sequence"),
    ({"sequence": 2 ** 60}, "sequence"), ({"shape": "cubic"}, "unknown shape"), ({"shape": ["linear"]}, "unknown shape"),
    ({"values": [0.0] * 32}, "32 values"), ({"values": []}, "0 values"), ({"values": ["1"] * 33}, "finite"),
    ({"values": [True] * 33}, "finite"),
    ({"values": [math.nan] * 33}, "finite"), ({"values": [math.inf] * 33}, "finite"), ({"values": [1e308] * 33}, "too large"),
    ({"sender": "me"}, "hexadecimal"), ({"sender": 5}, "hexadecimal"), ({"rules": ""}, "hexadecimal"),
    ({"federation": "A b"}, "federation"),
    ({"clip": 0.0}, "clip"), ({"noise": -1.0}, "noise"), ({"text": "I live in Busan"}, "exactly the fields"), ({"values": None}, "fields")])
def test_a_malformed_update_is_refused_with_its_reason(change: dict[str, Any], reason: str) -> None:
    with pytest.raises(InvalidInput, match=reason):
        decode_update(canonical_json(asdict(UPDATE) | change).encode())


@pytest.mark.parametrize(("data", "reason"), [
    (b"", "not JSON"), (b"\xff\xfe", "not JSON"), (b"[" * 20_000, "not JSON"), (b"[]", "fields"), (b"x" * 40_000, "bytes"),
    (json.dumps(asdict(UPDATE)).encode(), "canonical")])
def test_other_bytes_are_refused(data: bytes, reason: str) -> None:
    with pytest.raises(InvalidInput, match=reason):
        decode_update(data)


@pytest.mark.seed("002 federation")
def test_clipping_keeps_direction_and_bounds_length() -> None:
    long = np.arange(33.0)
    assert np.linalg.norm(clip_norm(long, 2.0)) == pytest.approx(2)
    assert clip_norm(long, 2.0) / np.linalg.norm(clip_norm(long, 2.0)) == pytest.approx(long / np.linalg.norm(long))
    assert np.array_equal(clip_norm(long / 100, 2.0), long / 100)
    for bad in (np.array([np.nan]), np.array([np.inf])):
        with pytest.raises(InvalidInput):
            clip_norm(bad)


@pytest.mark.seed("002 federation")
def test_privacy_is_accounted_over_rounds_and_a_budget_stops_it() -> None:
    exact = 1 / (2 * 16) + math.sqrt(2 * math.log(1e5) / 16)  # the simple conversion of one round; the accountant's is tighter
    assert .5 * exact < epsilon([4]) < exact
    assert epsilon([4] * 10) > epsilon([4] * 2) > epsilon([4]) and epsilon([4, 4]) > epsilon([4, 8])
    assert epsilon([]) == 0 and epsilon([4, 0]) == math.inf
    budget = PrivacyBudget(1.0)
    first = budget.charge(16)
    assert "ε" in str(first) and first.epsilon == epsilon([16]) and first.delta == 1e-5
    with pytest.raises(InvalidInput, match="nothing was sent"):
        budget.charge(1)
    assert budget.spent == [16], "what was refused is not counted"
    with pytest.raises(InvalidInput):
        PrivacyBudget(1.0, spent=[16] * 500).charge(16)


def test_noise_has_the_standard_deviation_that_is_accounted_for() -> None:
    noise = gaussian_noise(np.zeros(20_000), 2.0, 3.0, np.random.default_rng(0))
    assert noise.std() == pytest.approx(6, rel=.03)
    assert not np.array_equal(gaussian_noise(np.zeros(3), 1, 1), gaussian_noise(np.zeros(3), 1, 1))


@pytest.mark.parametrize("rule", ["krum", "multi-krum", "median", "centred-clipping"])
@pytest.mark.seed("002 robust")
def test_robust_rules_equal_byzfl(rule: str) -> None:
    for case in REFERENCES:
        found = aggregate({f"{n:02}": np.array(v) for n, v in enumerate(case["vectors"])}, case["f"], rule).values
        assert np.abs(found - case["answers"][rule]).max() < 1e-6


def test_too_few_updates_for_the_attackers_are_refused() -> None:
    for n, f in ((4, 1), (6, 2), (2, 0)):
        with pytest.raises(InvalidInput, match="2f \\+ 3"):
            krum_scores(np.zeros((n, 3)), f)
    assert krum(np.zeros((5, 3)), 1).shape == (3,)
    with pytest.raises(InvalidInput, match="lengths"):
        aggregate({"a": np.zeros(3), "b": np.zeros(4), "c": np.zeros(3)}, 0)
    with pytest.raises(InvalidInput, match="no aggregation rule"):
        aggregate({k: np.zeros(3) for k in "abc"}, 0, "vote")


def test_a_liar_is_named_loses_its_reputation_and_can_win_it_back() -> None:
    rng, reputation = np.random.default_rng(1), Reputation()
    honest = {f"peer {n}": rng.normal(1, .1, 5) for n in range(6)}
    for _ in range(8):
        reputation.record(aggregate(honest | {"liar": np.full(5, -9.0)}, 1))
    assert not reputation.trusted("liar") and all(reputation.trusted(p) for p in honest)
    for _ in range(8):
        reputation.record(aggregate(honest | {"liar": np.ones(5)}, 1))
    assert reputation.trusted("liar")


@pytest.mark.seed("002 rule-hashes")
def test_rules_are_compared_with_hashes_held_here() -> None:
    weakened = rule_hash(rule_table()[1:])
    check_rules(rule_hash())
    with pytest.raises(InvalidInput, match=f"of a37b…, {weakened}, differ"):  # whole: `--allow-rules` takes no less
        check_rules(weakened, sender="a37b…")
    check_rules(weakened, held=[weakened])
    changed = rule_table()
    changed[0] = changed[0] | {"pattern": changed[0]["pattern"] + "?"}
    assert rule_hash(changed) != rule_hash(), "one letter of one pattern is seen"
    assert replace(UPDATE, rules=rule_hash()).rules in encode_update(replace(UPDATE, rules=rule_hash())).decode()


def liking_technical(count: int, seed: int) -> list[FeedbackExample]:
    states = np.random.default_rng(seed).integers(0, 2, (count, 10)).astype(float)
    return [FeedbackExample(tuple(s), "SAVE", 1.0 if s[6] else -1.0) for s in states]


def test_shared_parameters_score_as_the_network_that_was_trained() -> None:
    trained, found = ContextualBandit(), examples(20)
    for e in found * PASSES:
        trained.learn(np.array(e.state), e.action, e.reward)
    states = np.array([e.state for e in found])
    assert np.allclose(model_scores(MODELS["network"](found))(states), trained.scores(states))
    assert not model_scores(np.zeros(SHAPES["network"]))(states).any(), "a model that says nothing adds nothing"


@pytest.mark.seed("002 federation-off")
@pytest.mark.parametrize("shape", SHAPES)
def test_leaving_restores_ones_own_scores_to_the_bit(shape: str) -> None:
    own, alone, state = ContextualBandit(), ContextualBandit(), np.linspace(0, 1, 10)
    federated = FederatedBandit(own, liking_technical(20, 2))
    federated.accept(clip_norm(MODELS[shape](liking_technical(40, 1))))
    assert not np.array_equal(federated.scores(state), own.scores(state)), "it is used"
    for e in liking_technical(30, 3):
        own.learn(np.array(e.state), e.action, e.reward)
        alone.learn(np.array(e.state), e.action, e.reward)
    federated.leave()
    assert np.array_equal(federated.scores(state), alone.scores(state)) and own.parameters() == alone.parameters()


@pytest.mark.seed("002 federation-off")
@pytest.mark.parametrize("shape", SHAPES)
def test_a_worse_shared_model_is_refused_by_feedback_that_it_has_not_seen(shape: str) -> None:
    federated, good = FederatedBandit(ContextualBandit(), liking_technical(20, 2)), clip_norm(MODELS[shape](liking_technical(40, 1)))
    alone, together = federated.accept(good)
    assert together < alone
    state = np.linspace(0, 1, 10)
    before = federated.scores(state)
    for bad, reason in ((-good, "refused"), (good * 0, "refused"), (good[:5], "33"), (good * np.nan, "33")):
        with pytest.raises(InvalidInput, match=reason):
            federated.accept(bad)
        assert np.array_equal(federated.scores(state), before), "nothing changed"
    with pytest.raises(InvalidInput, match="can't judge"):
        FederatedBandit(ContextualBandit(), liking_technical(15, 2)).accept(good)


def test_where_a_person_has_answered_the_answers_decide_and_elsewhere_the_others() -> None:
    others = clip_norm(linear_model(liking_technical(40, 1)))
    technical, preference = np.zeros(10), np.zeros(10)
    technical[6] = preference[[5, 6]] = 1
    mine = [FeedbackExample(tuple(preference), "SAVE", -1.0)] * 6
    federated = FederatedBandit(ContextualBandit(), mine, enlarged(others))
    assert federated.scores(technical)[0] > 0 > -0.3 > federated.scores(preference)[0]


def test_a_shared_model_must_save_a_tenth_of_the_error_and_one_in_use_any_of_it() -> None:
    mine, rng = liking_technical(24, 2), np.random.default_rng(0)
    weak = 0.05 * clip_norm(linear_model(liking_technical(40, 1)) + rng.normal(0, 0.01, 33))
    alone, together = judge_shared(weak, mine, margin=0)
    assert alone > together > 0.9 * alone
    with pytest.raises(InvalidInput, match="refused"):
        judge_shared(weak, mine)


def test_a_node_without_updates_says_how_many_it_waits_for() -> None:
    with pytest.raises(InvalidInput, match="There are 0 updates to aggregate: with 1 that may lie, it takes 2f \\+ 3 = 5"):
        aggregate({}, 1)
