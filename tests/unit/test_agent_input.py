"What others hand in: logs, scripts, replies of servers, files that can't be read, and interpreters that were tampered with."

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from rlm.agent import rlm_run, run
from rlm.agent.learning.pipeline import AgentConfig, Curriculum, Task, train
from rlm.agent.memory.stores import SQLiteStrategyStore
from rlm.agent.memory.strategy import Judgment, StoredRun, make_item
from rlm.agent.models import Completion, ScriptedModel, open_model
from rlm.agent.models.clients import Prices, anthropic_reply, openai_reply
from rlm.agent.ontology import setup_ontology_context
from rlm.agent.ontology.rdf_client import OntologyError
from rlm.agent.sandbox import Limits
from rlm.agent.sandbox.interpreter import Interpreter
from rlm.agent.sandbox.marshalling import decode, encode
from rlm.agent.sandbox.process import ProcessSandbox
from rlm.agent.sandbox.session import InprocessSandbox, answer_question, is_reply
from rlm.agent.sandbox.tool_bridge import ToolBridge
from rlm.agent.tracing.trajectory import load_trajectory
from rlm.core.clock import ManualClock
from rlm.core.errors import InvalidInput
from rlm.service.cli.agent import main
from rlm.store.sqlite.database import SQLiteDatabase
from rlm.store.storage import SQLStorage

pytestmark = pytest.mark.usefixtures("bare")
ROOT = Path(__file__).resolve().parents[2]
DEEP = "[" * 100_000


# ---------------------------------------------------------------- files

START = '{"kind": "start", "task": "x", "value": '


@pytest.mark.parametrize("odd", [DEEP, START + DEEP, START + "[" * 900 + "]" * 900 + "}"])
def test_a_log_that_is_nested_without_end_is_none(odd: str, tmp_path: Path) -> None:
    (log := tmp_path / "rlm_x.jsonl").write_text(odd + "\n{}\n")
    with pytest.raises(InvalidInput, match=r"Line 1 of .* is no line"):
        load_trajectory(log)
    done = CliRunner().invoke(main, ["show", str(log)])
    assert done.exit_code == 1 and "is no line of a run's log" in done.output


def test_a_script_that_is_nested_without_end_is_none(tmp_path: Path) -> None:
    (script := tmp_path / "deep.json").write_text(DEEP)
    with pytest.raises(InvalidInput, match="is not JSON"):
        open_model(f"scripted:{script}")


def test_an_ontology_that_may_not_be_read_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (file := tmp_path / "o.ttl").write_text("<a:a> <a:b> <a:c> .")

    def refuse(*_: object) -> bytes:
        raise PermissionError(13, "Permission denied", str(file))
    monkeypatch.setattr(Path, "read_bytes", refuse)  # root may read everything
    with pytest.raises(OntologyError, match="can't be read \\(Permission denied\\)"):
        setup_ontology_context(file)


# ---------------------------------------------------------------- servers

def openai(count: Any) -> Completion:
    return openai_reply({"choices": [{"message": {"content": "x"}}], "usage": {"prompt_tokens": count}}, Prices(1, 1))


def anthropic(count: Any) -> Completion:
    return anthropic_reply({"content": [{"type": "text", "text": "x"}], "usage": {"cache_read_input_tokens": count}}, Prices(1, 1))


@pytest.mark.parametrize("read", [openai, anthropic])
def test_a_count_of_tokens_is_a_count(read: Callable[[Any], Completion]) -> None:
    for odd in ("1e999", "-1e999", "NaN", "1" * 400, "1e300", '"many"', "[1]"):
        with pytest.raises(ValueError, match=r"is no number of tokens$|^cannot convert float NaN|^invalid literal for int|no text in it"):
            print(odd, read(json.loads(odd)))
    assert [read(json.loads(n)).usage.prompt_tokens for n in ("7", "7.0", '"7"', "null", "-3")] == [7, 7, 7, 0, 0]


# ---------------------------------------------------------------- interpreters

FORGED = """forged = next(c.cell_contents.__self__ for c in search.__closure__ if hasattr(c.cell_contents, "__self__"))
type(forged).get = lambda self, name, most: {}
answer["ready"] = True"""
DEEPLY = "__import__('functools').reduce(lambda a, _: [a], range(900), 1)"


BOXES = [pytest.param(InprocessSandbox, id="inprocess"),
         pytest.param(lambda: ProcessSandbox(unisolated=shutil.which("bwrap") is None), id="process")]


@pytest.fixture
def own_class(monkeypatch: pytest.MonkeyPatch) -> None:
    "In this process the interpreter's class is this process's own: it is put right afterwards."
    monkeypatch.setattr(Interpreter, "get", Interpreter.get)


@pytest.mark.usefixtures("own_class")
@pytest.mark.parametrize("make", BOXES)
@pytest.mark.parametrize("reply", ["{'size': 'x'}", "{'size': True}", "{'size': 1e999}", "{'error': [1]}", f"{{'error': {DEEPLY}}}",
                                   f"{{'value': {DEEPLY}}}", "{'value': {'dict': [[[1], 2]]}}", "{}", "{'missing': 1, 'size': None}"])
def test_a_forged_answer_of_the_interpreter_is_an_error_of_ours(reply: str, make: Callable[[], Any]) -> None:
    with make() as box:
        box.start({"search": lambda word: []}, {}, Limits(seconds=5))
        box.run("answer = 1")
        box.run(FORGED.format(reply).replace('answer["ready"] = True', ""))
        with pytest.raises(InvalidInput, match="answer can't be read"):
            box.get("answer")
        assert box.run("1 + 1").value == "2", "the sandbox goes on"


@pytest.mark.usefixtures("own_class")
@pytest.mark.parametrize("kind", ["inprocess", "process"])
def test_a_run_goes_on_after_a_forged_answer(kind: str) -> None:
    if kind == "process" and shutil.which("bwrap") is None:
        pytest.skip("bubblewrap is not installed")
    for reply in ("{'size': 'x'}", f"{{'value': {DEEPLY}}}"):
        lines = [f"```repl\n{FORGED.format(reply)}\n```", "```repl\nsearch('x')\n```", "```repl\nFINAL('done')\n```"]
        done = rlm_run("q", model=ScriptedModel(lines), tools={"search": lambda word: []}, sandbox=kind)
        assert (done.stopped, done.answer) == ("answered", "done")


def test_what_is_no_question_gets_no_answer() -> None:
    bridge = ToolBridge({}, {}, Limits())
    deep = json.loads("[" * 900 + "]" * 900)
    question = {"ask": "f", "on": None, "args": {"tuple": []}, "kwargs": {"dict": []}}
    for odd in ({"ask": deep}, {"args": deep}, {"args": {"tuple": [deep]}}, {"ask": 3}, {"on": True}):
        assert answer_question(bridge, question | odd)["raise"][0] == "ValueError"
    with pytest.raises(ValueError, match="this is no value"):
        decode(deep)
    assert is_reply({"run": ""}, {"stdout": "", "value": "", "error": ""}) and not is_reply({"run": ""}, {"value": []})
    assert is_reply({"get": "x"}, {"value": [[1]]}) and not is_reply({"get": "x"}, {"size": True})


ALIKE = [{"int": hex(n * (2**61 - 1))} for n in range(101)]  # numbers with one hash


@pytest.mark.parametrize("odd", [
    {"ref": ["x", "Rows", [], []]}, {"ref": [True, "Rows", [], []]}, {"ref": [1, 2, [], []]}, {"a": 1}, {}, {"a": 1, "b": 2}, {"int": []},
    {"bytes": "ä"}, {"bytes": "x"}, {"set": [[1]]}, {"dict": [1]}, {"dict": [[[1], 2]]}, {"complex": "ab"}, {"datetime": 3}, {"date": "x"},
    {"timedelta": [1e99]}, {"tuple": 3}, {"set": ALIKE}, {"frozenset": ALIKE}, {"dict": [[n, 1] for n in ALIKE]}], ids=str)
def test_what_no_value_is_written_as_is_none(odd: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="this is no value"):
        decode(odd)
    for nested in ([odd], {"tuple": [odd]}, {"dict": [["x", odd]]}):
        with pytest.raises(ValueError, match="this is no value"):
            decode(nested)


@pytest.mark.parametrize("value", [b"", b"\0\xff" * 99, -2**2000, float("-inf"), "\ud800", {(1, b"x"): {frozenset({2})}}])
def test_a_value_comes_back_from_a_line(value: Any) -> None:
    assert decode(json.loads(json.dumps(encode(value)))) == value


# ---------------------------------------------------------------- answers

@pytest.mark.parametrize(("said", "value"), [("float('nan')", "nan"), ("[float('inf'), 1.5]", ["inf", 1.5]),
                                             ("{(1, 2): {3}}", {"(1, 2)": [3]})])
def test_an_answer_is_printed_as_json(said: str, value: object, tmp_path: Path) -> None:
    (script := tmp_path / "s.txt").write_text(f"```repl\nlist_entities()\n```\n---\n```repl\nFINAL({said})\n```")
    about = ["--ontology", str(ROOT / "ontology/prov.ttl"), "--query", "q", "--model", f"scripted:{script}"]
    done = CliRunner().invoke(main, ["run", *about, "--db", str(tmp_path / "m.db"), "--json"])

    def refuse(word: str) -> None:
        raise ValueError(f"{word} is not JSON")
    assert done.exit_code == 0, done.output
    found = json.loads(done.stdout, parse_constant=refuse)
    assert found["value"] == value
    for line in Path(found["log_path"]).read_text().splitlines():
        json.loads(line, parse_constant=refuse)


# ---------------------------------------------------------------- training that goes on

def test_the_gate_looks_after_every_pass_whoever_asked_its_last_question(tmp_path: Path) -> None:
    backend = SQLiteStrategyStore(SQLStorage(SQLiteDatabase(":memory:")), clock=ManualClock())
    item = make_item(title="t", content="c", source_type="success", provenance={"source": "extracted"})
    for n in range(9):
        stored = StoredRun(f"r-{n}", f"t-{n}", "q", "a", 1, True, {}, Judgment(True, "yes", "high"), curriculum_id="c_v1", task_id="last")
        backend.save_artifacts(stored, [item], [(backend.item(item.memory_id), 1.0)] if n else ())
    lessons = Curriculum("c_v1", "prov", ROOT / "ontology/prov.ttl", (Task("q?", None, "c_v1", "new"), Task("q", None, "c_v1", "last")))
    model = ScriptedModel(["```repl\nlist_entities()\n```", "```repl\nFINAL('unknown')\n```"])
    with setup_ontology_context(lessons.path, name="prov") as prov:
        done = train(lessons, backend, AgentConfig(model, memory_k=0, extract=False, options={"clock": ManualClock()}), prov)
    assert done.skipped == 1 and len(done.results) == 1 and done.promoted == {item.memory_id: "ltm"}
    assert backend.item(item.memory_id).status == "ltm"
    backend.close()


def test_a_run_in_python_gives_plain_json_too(tmp_path: Path) -> None:
    lines = ["```repl\nlist_entities()\n```", "```repl\nFINAL(float('nan'))\n```"]
    found = run("q", ROOT / "ontology/prov.ttl", tmp_path / "m.db", model=ScriptedModel(lines), enable_extraction=False)
    assert json.loads(json.dumps(found.as_dict(), allow_nan=False))["value"] == "nan"
