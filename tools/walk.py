"""Measure the walks of the architecture page: the calls that a write, a search and a run of the agent consist of.

`python tools/walk.py` prints them, by a profile hook, from calls in a store that vanishes."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from types import FrameType

# The parts whose calls are steps: classes, whose public methods all are, and functions. What they work on is no step.
PARTS = {
    "a write": {"Memory", "MemoryWriter", "guarded", "EmbeddingService", "facts_of", "SQLStorage.transaction", "refuse_rejected",
                "SQLWriter", "FactKeeper"},
    "a search": {"Memory", "MemorySearcher", "EmbeddingService", "IndexBuilder", "Explainer", "Searcher", "FilterResolver",
                 "CandidateGenerator", "Scorer", "RecordCache"},
    "a run of the agent": {"run", "setup_ontology_context", "rlm_run_with_memory", "named_in", "SQLiteStrategyStore.retrieve", "rlm_run",
                           "MontySandbox.start", "Budget.ask", "MontySandbox.run", "judge_trajectory", "extract_memories",
                           "SQLiteStrategyStore.save_artifacts"},
}


def _module(frame: FrameType | None) -> str:
    "The module of the nearest frame of the package."
    while frame is not None:
        if (name := str(frame.f_globals.get("__name__", ""))).startswith("rlm."):
            return name
        frame = frame.f_back
    return ""


def _is_property(frame: FrameType, name: str) -> bool:
    owner, _, method = name.rpartition(".")
    return bool(owner) and isinstance(vars(frame.f_globals.get(owner, object)).get(method), property)


def walk(act: Callable[[], object],  # what is done once
         parts: set[str],            # classes and functions whose calls are steps
         ) -> list[str]:
    "Return the public calls by which one module enters a part in another, in order."
    steps: list[str] = []
    seen: dict[int, FrameType] = {}  # a generator is called again each time it goes on

    def hook(frame: FrameType, event: str, _: object) -> None:
        name, module = frame.f_code.co_qualname, str(frame.f_globals.get("__name__", ""))
        if event != "call" or not module.startswith("rlm.") or not {name, name.partition(".")[0]} & parts or id(frame) in seen:
            return
        if "._" not in name and _module(frame.f_back) != module and not _is_property(frame, name):
            seen[id(frame)] = frame
            steps.append(name)

    sys.setprofile(hook)
    try:
        act()
    finally:
        sys.setprofile(None)
    return steps


def measure(folder: Path,  # for the stores
            ) -> dict[str, list[str]]:
    "Return the steps of each walk, in a store where each has happened before."
    from rlm import Memory
    from rlm.agent import run
    from rlm.agent.models import ScriptedModel

    def ask() -> None:
        code = '```repl\nprint(search_entity("activity"))\nFINAL("What happens over time.")\n```'
        replies = [code, '{"verdict": "yes", "reason": "it is"}', "[]"]
        found = run("What is an activity?", "prov", folder / "agent.db", model=ScriptedModel(replies), log_dir=folder)
        if not found.converged:
            raise RuntimeError(f"The run came to nothing: {found!r}")

    with Memory(folder / "memory.db") as memory:
        memory.write("The library has a reading room.")
        memory.search("library")
        ask()
        acts: dict[str, Callable[[], object]] = {"a write": lambda: memory.write("The bakery on the corner opens at seven."),
                                                 "a search": lambda: memory.search("When does the bakery open?"), "a run of the agent": ask}
        return {name: walk(act, PARTS[name]) for name, act in acts.items()}


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as made:
        for title, steps in measure(Path(made)).items():
            print(title, *(f"{n}. `{step}`" for n, step in enumerate(steps, start=1)), sep="\n", end="\n\n")
