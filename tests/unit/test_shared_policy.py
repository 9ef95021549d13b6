"A model that was learned with others lies over one's own policy: used while it is good, noticed when it is worse, gone without a trace."
from collections.abc import Iterator

import numpy as np
import pytest

from rlm import Memory
from rlm.core.errors import InvalidInput
from rlm.federation.update import MODELS, linear_model
from rlm.service.companion import Companion
from rlm.service.policy_store import FEEDBACK_KEPT, SHARED

TURNS = ("The tram was late again this morning, so I walked.", "오늘은 비가 와서 버스를 타고 회사에 갔다.")


@pytest.fixture(params=TURNS)
def turn(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def companion() -> Iterator[Companion]:
    with Memory(":memory:", embedder="none") as memory:
        yield memory.companion


def teach(companion: Companion, turn: str, keep: bool, times: int = 24) -> None:
    for _ in range(times):
        decision = companion.decide(turn)
        companion.learn(decision, 1.0 if decision.save == keep else -1.0)


@pytest.mark.parametrize("shape", MODELS)
def test_switching_off_restores_ones_own_policy_to_the_bit(companion: Companion, turn: str, shape: str) -> None:
    teach(companion, turn, keep=True)
    own, parameters = companion.decide(turn), companion.policy().bandit.parameters()
    companion.policies.adopt(MODELS[shape](companion.policies.feedback()) / 4)
    assert companion.decide(turn).scores != own.scores and companion.policies.shared() is not None
    assert companion.policy().bandit.parameters() == parameters, "one's own is not touched"
    assert companion.policies.drop_shared() and not companion.policies.drop_shared() and companion.policies.shared() is None
    assert companion.decide(turn).scores == own.scores


def test_a_worse_model_is_refused_and_nothing_changes(companion: Companion, turn: str) -> None:
    teach(companion, turn, keep=True)
    good = linear_model(companion.policies.feedback()) / 4
    companion.policies.adopt(good)
    before = companion.decide(turn).scores
    for bad, reason in ((-good * 20, "refused"), (good[:5], "33"), (good * np.nan, "33")):
        with pytest.raises(InvalidInput, match=reason):
            companion.policies.adopt(bad)
        assert companion.decide(turn).scores == before


def test_a_model_that_feedback_turns_against_is_dropped(companion: Companion, turn: str) -> None:
    teach(companion, turn, keep=True)
    companion.policies.adopt(linear_model(companion.policies.feedback()) / 4)
    for _ in range(FEEDBACK_KEPT):
        if companion.policies.shared() is None:
            return
        teach(companion, turn, keep=False, times=1)
    raise AssertionError("it was never dropped")


def test_too_little_feedback_judges_no_model(companion: Companion, turn: str) -> None:
    teach(companion, turn, keep=True, times=8)
    with pytest.raises(InvalidInput, match="can't judge"):
        companion.policies.adopt(np.zeros(33))


def test_feedback_is_kept_as_numbers_without_words_and_bounded_and_forgotten(
        companion: Companion, turn: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rlm.service.policy_store.FEEDBACK_KEPT", 30)
    teach(companion, turn, keep=True, times=33)
    assert len(companion.policies.feedback()) == 30
    newest = companion.storage.learned.newest(companion.namespace, "companion policy")
    assert newest is not None and not any(word in newest.parameters.decode() for word in turn.split() if len(word) > 1)
    companion.policies.adopt(linear_model(companion.policies.feedback()) / 4)
    companion.forget_learned()
    assert companion.policies.feedback() == [] and companion.policies.shared() is None
    assert companion.storage.learned.newest(companion.namespace, SHARED) is None
