"Where code that a model wrote is run: three kinds of sandbox behind one protocol."

from rlm.agent.sandbox.protocol import DIALECT, Call, Limits, Sandbox, SandboxError, StepResult, open_sandbox

__all__ = ["DIALECT", "Call", "Limits", "Sandbox", "SandboxError", "StepResult", "open_sandbox"]
