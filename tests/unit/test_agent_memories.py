"Memories that a run of the agent went by: which they were is kept, and a judgment counts for or against them, and can be taken back."
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from rlm import Memory
from rlm.agent import ScriptedModel, run
from rlm.agent.learning.pipeline import Advice, used_advice
from rlm.agent.runner import judge_stored_run
from rlm.agent.tracing.trajectory import Step, Trajectory, read_log
from rlm.core.errors import InvalidInput
from rlm.core.promotion import PromotionPolicy
from rlm.service.advice import MemoryAdvisor

pytest.importorskip("pydantic_monty")
pytestmark = pytest.mark.usefixtures("bare")

LOOK = "By [{}].\n```repl\nhierarchy('prov:Agent')\nFINAL('Person, Organization, SoftwareAgent')\n```"
VERDICT = '{{"success": "{}", "reason": "By its definition.", "confidence": "medium", "missing": []}}'
QUESTION = "Which classes are below Agent?"


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[Memory]:
    with Memory(tmp_path / "m.db", embedder="none") as memory:
        memory.write("Agent has one class below it, Person.", id="stale")
        memory.write("The classes below Agent are listed in the annex.", id="annex")
        yield memory


def counts(memory: Memory) -> dict[str, tuple[int, int, int]]:
    return {i: (r.success, r.failure, r.access_count) for i in ("stale", "annex") for r in memory.ctx.storage.get([i], "default")}


def asked(memory: Memory, named: str, verdict: str) -> dict[str, object]:
    model = ScriptedModel([LOOK.format(named), VERDICT.format(verdict)])
    found = run(QUESTION, "prov", memory.ctx.settings.db_path, model=model, embedder="none", enable_extraction=False,
                advisor=MemoryAdvisor(memory))
    assert "[stale" in model.seen[0][-1].content and "[annex" in model.seen[0][-1].content
    return found.as_dict()


def test_a_judged_failure_counts_against_the_memory_that_the_run_named(memory: Memory) -> None:
    found = asked(memory, "stale", "no")
    assert found["recalled_used"] == ["stale"] and counts(memory) == {"stale": (0, 1, 1), "annex": (0, 0, 0)}
    [start], [judged] = ([e for e in read_log(str(found["log_path"])) if e["kind"] == kind] for kind in ("start", "judgment"))
    assert sorted(start["meta"]["memories"]) == ["annex", "stale"]
    assert (judged["counts"], judged["memories"]) == ("against", ["stale"])
    assert memory.ctx.storage.event_log.usage_balance("default") == [(QUESTION, "stale", -1)]  # what `rlm train-ranker` learns from


@pytest.mark.parametrize(("named", "verdict"), [("nothing", "no"), ("stale", "unknown")])
def test_where_it_is_not_known_which_or_whether_nothing_is_blamed(memory: Memory, named: str, verdict: str) -> None:
    found = asked(memory, named, verdict)
    assert counts(memory) == {"stale": (0, 0, 0), "annex": (0, 0, 0)}
    assert "counts" not in next(e for e in read_log(str(found["log_path"])) if e["kind"] == "judgment")


def test_a_person_takes_back_what_a_model_counted_and_the_log_says_so(memory: Memory) -> None:
    found = asked(memory, "stale", "no")
    gate = PromotionPolicy.of(memory.settings)
    judge_stored_run(memory.strategies, "last", "yes", gate, MemoryAdvisor(memory))
    assert counts(memory)["stale"] == (1, 0, 1) and memory.ctx.storage.event_log.usage_balance("default") == [(QUESTION, "stale", 1)]
    last = [json.loads(line) for line in Path(str(found["log_path"])).read_text().splitlines()][-1]
    assert (last["kind"], last["counts"], last["memories"]) == ("judgment", "for", ["stale"])
    with pytest.raises(InvalidInput, match="judged already"):
        judge_stored_run(memory.strategies, "last", "no", gate, MemoryAdvisor(memory))
    assert counts(memory)["stale"] == (1, 0, 1)


def test_partly_takes_back_what_was_counted_and_a_memory_that_is_gone_is_left_out(memory: Memory) -> None:
    asked(memory, "stale", "no")
    asked(memory, "annex", "no")
    memory.delete("annex")
    judge_stored_run(memory.strategies, "last", "partly", PromotionPolicy.of(memory.settings), MemoryAdvisor(memory))
    MemoryAdvisor(memory).record(Advice("", (), ("stale",)), None, QUESTION, before=False)
    assert counts(memory) == {"stale": (0, 0, 1)}


def test_a_run_names_what_it_goes_by_or_was_given_it_alone() -> None:
    def went(reply: str, given: Advice) -> Advice:
        return used_advice(Trajectory("?", (Step(1, reply),)), given)
    both = Advice("…", ("r1",), ("a1", "b2"))
    assert went("By [a1].", both) == Advice("", ("r1",), ("a1",)) and went("…", both) == Advice("", ("r1",))
    assert went("…", Advice("…", (), ("a1",))).memories == ("a1",)
