"The enhanced policy: opt-in, as the plain one before feedback, taught by turns' vectors, kept over a restart, dropped on request."
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from rlm import Memory
from rlm.companion.policy import CAPACITY, FEATURES, EnhancedBandit, PolicyRules, autonomous
from rlm.core.errors import InvalidInput
from rlm.store.embedding_model import Vectors

BUILDS = ["The build ran on heron for nine minutes.", "The build ran on crane for six minutes.", "빌드가 두루미에서 9분 걸렸음 그리고 끝남"]
RECIPES = ["The soup took nine minutes on the stove.", "The rice took six minutes on the stove.", "국이 가스불에서 9분 걸렸음 그리고 끝남"]


class TopicModel:
    "An embedder that knows two topics."

    name, dim, calibration = "topics", 16, None

    def embed(self, texts: Sequence[str], kind: str) -> Vectors:
        made = np.zeros((len(texts), self.dim), np.float32)
        for n, text in enumerate(texts):
            made[n, int("build" in text or "빌드" in text)] = 1
        return made


def opened(path: Path, on: str = "on", embedder: object = None) -> Memory:
    return Memory(path, embedder=embedder or TopicModel(), enhanced_policy=on, policy_epsilon=0)


def test_it_is_the_plain_policy_before_feedback_and_where_there_is_no_model(path: Path) -> None:
    with opened(path) as enhanced, opened(path, "off") as plain, opened(path.with_name("b.db"), embedder="none") as blind:
        for turn in [*BUILDS, *RECIPES, "My name is Mina.", "ok thanks", "Where do I live?", "나는 부산에 살아"]:
            decided = [m.companion.decide(turn) for m in (enhanced, plain, blind)]
            assert len({(d.save, d.retrieve, d.reason) for d in decided}) == 1
            assert [len(d.state) for d in decided] == [16 + len(FEATURES), len(FEATURES), len(FEATURES)]


@pytest.mark.seed("002 enhanced")
def test_it_learns_by_what_a_turn_means_and_a_restart_keeps_it(path: Path) -> None:
    with opened(path) as memory:
        for _ in range(20):
            for turn, wanted in [(BUILDS[0], True), (RECIPES[0], False), (BUILDS[2], True), (RECIPES[2], False)]:
                decision = memory.companion.decide(turn)
                memory.companion.learn(decision, 1 if decision.save == wanted else -1)
    with opened(path) as memory:
        assert memory.companion.decide(BUILDS[1]).save and not memory.companion.decide(RECIPES[1]).save
        assert memory.companion.decide("My name is Mina.").save, "rules stand above what was learned"
        assert memory.companion.policy().bandit.updates == 80 and memory.companion.policy().rules.save_from > 0.7
        memory.companion.sleep()
        assert memory.companion.forget_learned() == 1 and memory.companion.policy().bandit.updates == 0
        assert memory.companion.rewind_learned() and memory.companion.policy().bandit.updates == 80, "a night has kept it"
    with opened(path, "off") as memory:
        assert memory.companion.policy().bandit.updates == 80, "the plain policy has learned from the same"


def test_parameters_that_do_not_fit_are_refused() -> None:
    bandit = EnhancedBandit(26)
    for wrong in (b"", b"nonsense", EnhancedBandit(30).parameters()):
        with pytest.raises(InvalidInput):
            bandit.restore(wrong)
    assert bandit.replay.maxlen == CAPACITY == 5_000


@pytest.mark.seed("002 enhanced")
def test_praise_widens_what_is_learned_and_never_narrows_it() -> None:
    bounds = [(r.skip_up_to, r.save_from) for r in (autonomous(PolicyRules(), n) for n in (0, 9, 10, 100, 10_000))]
    assert bounds[0] == bounds[1] == (0.1, 0.7) and bounds[-1] == (0.0, 0.9) and bounds == sorted(bounds, key=lambda b: b[1])
    assert autonomous(PolicyRules(save_from=0.95), 100).save_from == 0.95
