"""Runs of the agent beside a memory: the rules and memories that a task is given, and runs that a client waits for."""

from collections.abc import Mapping
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from rlm.agent.learning.pipeline import Advice
from rlm.core.errors import NotFound, suggest

if TYPE_CHECKING:
    from rlm.service.memory import Memory

RUN_S = 60.0  # seconds that a run may take that a client waits for; one that the client gave up ends then at the latest
TICK_S = 1.0  # seconds between two notices of progress
AGENT_PACKAGES = ("pyoxigraph", "pydantic_monty")  # packages of the extra `agent`; without them no client is offered a run
RESULT = ("answer", "converged", "judgment", "model", "iterations", "run_id", "reason")  # fields of a run that a client is shown
ADVICE_TOKENS = 600  # tokens of rules and memories together; a layer of the prompt holds 3,000 characters


class MemoryAdvisor:
    "Advises the agent from an open memory, and counts how its rules and memories did."

    def __init__(self,
                 memory: "Memory",                            # the memory; it stays open
                 facts: Mapping[str, object] | None = None,   # facts of the situation: name → value
                 ) -> None:
        self.memory, self.facts = memory, dict(facts or {})

    def advise(self,
               question: str,  # the task
               ) -> Advice:
        "Return a block of rules and memories for a prompt, with their ids. Raises `InvalidInput` for facts that are none."
        block = self.memory.context(question, ADVICE_TOKENS, facts=self.facts)
        return Advice(block.text, block.rules, tuple(id for id, _ in block.used if id not in block.rules))

    def record(self,
               used: Advice,        # rules and memories that a run went by
               right: bool | None,  # whether it was judged right; None: that is not known
               question: str,       # its task
               before: bool | None = None,  # an earlier judgment, which is taken back from the memories; None: there was none
               ) -> list[str]:      # rules that are held now
        """Count a use of rules and memories, for or against them: for a memory as `Memory.feedback` counts it, with the question, so that
        `rlm train-ranker` learns from it. What is gone meanwhile is left out."""
        from rlm.rules.resolution import StoredRulePolicy
        helped, failed = (int(right is v) - int(before is v) for v in (True, False))
        for id in used.memories if helped or failed else ():
            try:
                self.memory.writer.count_use(id, helped, failed, int(before is None), question, least=-1)
            except NotFound:
                continue
        return StoredRulePolicy(self.memory.rules).record(used.rules, right) if used.rules and right is not None else []


def agent_available() -> bool:
    "Return whether what a run needs is installed."
    return all(find_spec(package) is not None for package in AGENT_PACKAGES)


def bundled_ontology(name: str,  # name of an ontology that comes with the package
                     ) -> Any:
    "Return the file of a bundled ontology; other files are the server's. Raises `NotFound`."
    from rlm.agent.ontology.rdf_client import bundled
    if name not in (ours := bundled()):
        raise NotFound(f"There is no ontology {name[:200]!r}.", suggest(name, ours))
    return ours[name]


def run_agent(memory: "Memory",  # an open memory, in whose store and namespace the run learns
              question: str,     # question to the agent
              source: Any,       # file of the ontology
              ) -> dict[str, Any]:
    "Have the agent answer a question within `RUN_S`, and return `RESULT`. Raises what `run` raises."
    from rlm.agent import RunLimits, run
    given = memory.settings
    found = run(question, source, given.db_path, model=given.model, namespace=memory.ctx.namespace, clock=memory.clock,
                limits=RunLimits(seconds=RUN_S), advisor=MemoryAdvisor(memory)).as_dict()
    return {name: found[name] for name in RESULT}
