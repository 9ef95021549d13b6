"What a run did, step by step, and its log."

from rlm.agent.tracing.trajectory import RLMLogger, load_trajectory
from rlm.agent.tracing.trajectory import Step, ToolCall, Trajectory

__all__ = ["RLMLogger", "Step", "ToolCall", "Trajectory", "load_trajectory"]
