"""Long-term memory for language-model agents: one file, two languages, every hit explained."""

__version__ = "0.1.0"

from rlm.core.errors import RlmError
from rlm.service.memory import Memory

__all__ = ["Memory", "RlmError", "__version__"]
