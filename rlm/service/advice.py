"""Gives a run of the agent the rules that apply to its task and what a memory holds about it."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rlm.service.memory import Memory

ADVICE_TOKENS = 600  # tokens of rules and memories together; a layer of the prompt holds 3,000 characters


class MemoryAdvisor:
    "Advises the agent from an open memory, and counts how its rules did."

    def __init__(self,
                 memory: "Memory",                            # the memory; it stays open
                 facts: Mapping[str, object] | None = None,   # facts of the situation: name → value
                 ) -> None:
        self.memory, self.facts = memory, dict(facts or {})

    def advise(self,
               question: str,  # the task
               ) -> tuple[str, tuple[str, ...]]:
        "Return a block of rules and memories for a prompt, and the ids of the rules in it. Raises `InvalidInput` for facts that are none."
        block = self.memory.context(question, ADVICE_TOKENS, facts=self.facts)
        return block.text, block.rules

    def record(self,
               rules: Sequence[str],  # ids of the rules that were followed
               right: bool,           # whether the run was judged right
               ) -> list[str]:        # those that are held now
        "Count a use of rules, for or against them."
        from rlm.rules.resolution import StoredRulePolicy
        return StoredRulePolicy(self.memory.rules).record(rules, right)
