"Strategies: how kinds of questions were answered, stored, found and carried from store to store."

from rlm.agent.memory.strategy import Judgment, StoredRun, Strategy, StrategyStore

MemoryItem = Strategy  # its name in the seed

__all__ = ["Judgment", "MemoryItem", "StoredRun", "Strategy", "StrategyStore"]
