"A model writes code, sees what comes out, and writes again, within a budget."

from rlm.agent.loop.budget import Budget, RunLimits
from rlm.agent.loop.loop import rlm_run

__all__ = ["Budget", "RunLimits", "rlm_run"]
