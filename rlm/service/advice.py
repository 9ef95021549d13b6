"""Gives a run of the agent the rules that apply to its task and what a memory holds about it."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from rlm.agent.learning.pipeline import Advice
from rlm.core.errors import NotFound

if TYPE_CHECKING:
    from rlm.service.memory import Memory

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
