"""The agent: ontologies in bounded views, a sandbox, the loop, and what it learns from its runs.

The public names are loaded when they are first used: the processes that parse files and run code import modules of this
room too, and need none of the rest.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rlm.agent.casebased.policy import CaseBasedModel
    from rlm.agent.casebased.policy import CaseBasedModel as HabitModel
    from rlm.agent.loop.budget import RunLimits
    from rlm.agent.loop.loop import rlm_run
    from rlm.agent.models import Model, ScriptedModel, open_model
    from rlm.agent.ontology import setup_ontology_context
    from rlm.agent.runner import RunResult, arun, resume, run, stream
    from rlm.agent.runner import RunResult as Outcome
    from rlm.agent.tracing.trajectory import RLMLogger, load_trajectory
    from rlm.agent.tracing.trajectory import Trajectory

_HOMES = {"CaseBasedModel": "casebased.policy", "Model": "models", "RLMLogger": "tracing", "RunLimits": "loop", "RunResult": "runner",
          "ScriptedModel": "models", "Trajectory": "tracing", "load_trajectory": "tracing", "open_model": "models",
          "rlm_run": "loop", "arun": "runner", "resume": "runner", "run": "runner",
          "stream": "runner", "setup_ontology_context": "ontology"}
_ALIASES = {"HabitModel": "CaseBasedModel", "Outcome": "RunResult"}  # earlier names

__all__ = ["CaseBasedModel", "arun", "stream", "HabitModel", "Model", "Outcome", "RLMLogger", "RunLimits", "RunResult", "ScriptedModel",
           "Trajectory", "load_trajectory", "open_model", "resume", "rlm_run", "run", "setup_ontology_context"]


def __getattr__(name: str) -> Any:
    "A public name, from the module that it lives in."
    now = _ALIASES.get(name, name)
    if now not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[now]}"), now)
