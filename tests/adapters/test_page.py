"""The examples of the page about adapters run, where their framework is installed."""

import re
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[2] / "docs" / "adapters.md"
EXAMPLES = re.findall(r"^```py\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.M | re.S)


@pytest.mark.parametrize("example", EXAMPLES, ids=[e.splitlines()[0] for e in EXAMPLES])
def test_an_example_runs(example: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in re.findall(r"^(?:from|import) (langgraph|agents|claude_agent_sdk|anthropic)", example, re.M):
        pytest.importorskip(name, reason=f"needs {name}: make adapters")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("RLM_EMBEDDER", "none")
    assert len(example.splitlines()) <= 25
    exec(compile(example, str(PAGE), "exec"), {"__name__": "example"})
