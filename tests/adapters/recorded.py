"""What passed against which releases is kept in `results.json`: `make adapters` and `make crewai` each write their part of it."""

import json
import os
import platform
from datetime import UTC, datetime
from importlib.metadata import distributions
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).with_name("results.json")
PACKAGES = {"langgraph", "langgraph-checkpoint-conformance", "openai-agents", "claude-agent-sdk", "anthropic", "llama-index-core",
            "google-adk", "agent-framework-core", "pydantic-ai-harness", "crewai"}


def pytest_terminal_summary(terminalreporter: Any) -> None:
    "Write the outcome of a whole run, where `RLM_RECORD` names the environment."
    if part := os.environ.get("RLM_RECORD"):
        stats = {outcome: terminalreporter.stats.get(outcome, []) for outcome in ("passed", "failed", "error", "skipped")}
        made = {"on": datetime.now(UTC).date().isoformat(), "python": platform.python_version(),
                "versions": {d.name: d.version for d in sorted(distributions(), key=lambda d: d.name) if d.name in PACKAGES},
                "passed": len(stats["passed"]), "failed": sorted(r.nodeid for r in stats["failed"] + stats["error"]),
                "skipped": sorted(f"{r.nodeid}: {r.longrepr[2].removeprefix('Skipped: ')}" for r in stats["skipped"])}
        kept = json.loads(RESULTS.read_text(encoding="utf-8")) if RESULTS.exists() else {}
        RESULTS.write_text(json.dumps(kept | {part: made}, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
