"""The examples run where their framework is installed, and the page about adapters shows them as they are."""

import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))
SHOWN = re.findall(r"^```py\n(.*?)^```", (ROOT / "docs" / "adapters.md").read_text(encoding="utf-8"), re.M | re.S)


def test_the_page_shows_the_examples() -> None:
    assert sorted(SHOWN) == sorted(e.read_text(encoding="utf-8") for e in EXAMPLES)
    assert max(len(shown.splitlines()) for shown in SHOWN) <= 25


def installed(name: str) -> bool:
    "Tell whether a package is there; `google` alone is a folder of several."
    try:
        return importlib.util.find_spec(name) is not None
    except ModuleNotFoundError:
        return False


@pytest.mark.parametrize("example", EXAMPLES, ids=[e.stem for e in EXAMPLES])
def test_an_example_runs(example: Path, tmp_path: Path) -> None:
    text = example.read_text(encoding="utf-8")
    names = r"^from (fastapi|langgraph|agents|anthropic|crewai|llama_index|google\.adk|agent_framework|pydantic_ai_harness)"
    for name in re.findall(names, text, re.M):
        if not installed(name):
            pytest.skip(f"needs {name}: make {'crewai' if name == 'crewai' else 'adapters'}")
    env = os.environ | {"RLM_EMBEDDER": "none", "PYTHONPATH": str(ROOT)}
    done = subprocess.run([sys.executable, example], cwd=tmp_path, env=env, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert "Yuna Park" in done.stdout or "serviced in June" in done.stdout
