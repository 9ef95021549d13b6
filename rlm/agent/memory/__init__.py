"Strategies: how kinds of questions were answered, stored, found and carried from store to store."

from rlm.agent.memory.store import Judgment, StoredRun, StrategyStore
from rlm.agent.memory.strategy import Strategy

MemoryItem = Strategy  # its name in the seed

__all__ = ["Judgment", "MemoryItem", "StoredRun", "Strategy", "StrategyStore"]
