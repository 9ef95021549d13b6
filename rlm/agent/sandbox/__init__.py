"Where code that a model wrote is run: two kinds of sandbox behind one protocol."

from rlm.agent.sandbox.protocol import DIALECT, ToolCall, Limits, Sandbox, SandboxError, StepResult, open_sandbox

__all__ = ["DIALECT", "Limits", "Sandbox", "SandboxError", "StepResult", "ToolCall", "open_sandbox"]
