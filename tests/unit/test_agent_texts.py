"Runs about texts and tables, answers of a type, and runs that are watched while they go on: with scripted models."

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from rlm.agent import RunLimits, RunResult, ScriptedModel, arun, load_trajectory, rlm_run, run, stream
from rlm.agent.loop.prompt import context_variables, read_answer_type
from rlm.agent.tracing.trajectory import Step
from rlm.core.errors import InvalidInput, NotFound, RlmError
from rlm.service.cli.agent import main

pytest.importorskip("pydantic_monty")


def says(*codes: str) -> ScriptedModel:
    return ScriptedModel([f"I look.\n```repl\n{code}\n```" for code in codes])


def about(text: Any, model: ScriptedModel, **options: Any) -> RunResult:
    return run("How many needles are there?", None, ":memory:", model=model, context=text, **options)


def test_a_text_is_a_variable_that_the_model_is_told_the_size_of() -> None:
    model = says('FINAL(context.count("needle"))')
    found = about("hay " * 100_000 + "needle", model)
    assert (found["value"], found.converged, found["iterations"]) == (1, True, 1)
    shown = "\n".join(m.content for m in model.seen[0])
    assert "- context: str, 400,006 characters" in shown and "hay hay" not in shown


def test_files_are_read_by_what_they_are(tmp_path: Path) -> None:
    (tmp_path / "2026 sales.csv").write_text("city,sum\n서울,3\nBusan,4\n", "utf-8")
    (tmp_path / "class.json").write_text('{"a": [1]}')
    (tmp_path / "log.jsonl").write_text('{"n": 1}\n\n{"n": 2}\n')
    (tmp_path / "letter.txt").write_text("hello")
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "letter.txt").write_text("again")
    paths = [*sorted(p for p in tmp_path.iterdir() if p.is_file()), tmp_path / "sub" / "letter.txt"]
    assert context_variables(paths) == {
        "_2026_sales": [{"city": "서울", "sum": "3"}, {"city": "Busan", "sum": "4"}], "class_": {"a": [1]}, "letter": "hello",
        "log": [{"n": 1}, {"n": 2}], "letter_2": "again"}
    (tmp_path / "bad.json").write_text("{")
    for wrong, error in ((tmp_path / "none.txt", NotFound), (tmp_path / "bad.json", InvalidInput), ({"no name": 1}, InvalidInput)):
        with pytest.raises(error):
            context_variables(wrong)  # type: ignore[arg-type]


def test_a_folder_is_a_mapping_of_its_texts(tmp_path: Path) -> None:
    (tmp_path / "notes" / "sub").mkdir(parents=True)
    for name, data in (("a.txt", "차".encode()), ("sub/b.csv", b"x\n1\n"), ("photo.png", b"\xff\xd8"), (".hidden", b"no")):
        (tmp_path / "notes" / name).write_bytes(data)
    assert context_variables([tmp_path / "notes"]) == {"notes": {"a.txt": "차", "sub/b.csv": [{"x": "1"}]}}
    found = about(tmp_path / "notes", says("FINAL(len(notes) + int(notes['sub/b.csv'][0]['x']))"))
    assert found["value"] == 3
    (tmp_path / "empty").mkdir()
    with pytest.raises(NotFound, match="no texts"):
        context_variables(tmp_path / "empty")


def test_a_long_conversation_is_shortened_and_the_variables_stay() -> None:
    model = says("x = 7\nprint('y' * 3000)", *[f"print({n}, 'y' * 3000)" for n in range(9)], "FINAL(x)")
    made = rlm_run("?", model, data={"text": "z"}, tools={"look": len}, limits=RunLimits(history=18_000))
    assert made.value == 7 and max(sum(len(m.content) for m in shown) for shown in model.seen) < 18_000 + 3_500
    assert model.seen[-1][:2] == model.seen[0] and "left out" in model.seen[-1][3].content and "y" * 2000 in model.seen[-1][-1].content


def test_the_command_takes_texts_and_a_schema(tmp_path: Path) -> None:
    (tmp_path / "sales.csv").write_text("city,sum\nSeoul,3\nBusan,4\n")
    (tmp_path / "schema.json").write_text('{"type": "integer", "minimum": 1}')
    (tmp_path / "script.txt").write_text('```repl\nFINAL(sum(int(row["sum"]) for row in sales))\n```')
    base = ["run", "--query", "What is the sum?", "--context", str(tmp_path / "sales.csv"), "--db", str(tmp_path / "m.db"), "--json"]
    done = CliRunner().invoke(main, [*base, "--model", f"scripted:{tmp_path / 'script.txt'}", "--schema", str(tmp_path / "schema.json")])
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)["value"] == 7 and json.loads(done.stdout)["memories_learned"] == []
    refused = CliRunner().invoke(main, [*base, "--model", "case-based"])
    assert refused.exit_code == 1 and "language model" in refused.output
    nothing = CliRunner().invoke(main, ["run", "--query", "?", "--db", str(tmp_path / "m.db")])
    assert nothing.exit_code == 2 and "Missing option '--ontology', '--context' or '--mcp'" in nothing.output
    with pytest.raises(InvalidInput, match="neither an ontology nor a text"):
        run("?", None, ":memory:", model=says())


# ---------------------------------------------------------------- answers of a type

def test_an_answer_that_does_not_fit_is_sent_back_once() -> None:
    pydantic = pytest.importorskip("pydantic")

    class City(pydantic.BaseModel):  # type: ignore[misc,name-defined]
        name: str
        people: int

    model = says('FINAL({"name": "Seoul", "people": len(context) and "many"})', 'FINAL({"name": "Seoul", "people": "9400000"})')
    found = about("…", model, answer_type=City)
    assert found.typed == City(name="Seoul", people=9_400_000) and found["value"] == {"name": "Seoul", "people": 9_400_000}
    assert "JSON schema" in model.seen[0][0].content and "people" in model.seen[0][0].content
    assert "does not fit: the answer.people" in model.seen[1][-1].content


def test_a_second_misfit_ends_the_run_and_says_so_in_json_and_log(tmp_path: Path) -> None:
    found = about("abc", says("FINAL(len(context))", "FINAL(len(context) + 1)", "FINAL([])"), answer_type={"type": "array"},
                  log_dir=tmp_path)
    assert (found.converged, found["stopped"], found["iterations"], found.typed) == (False, "errors", 2, None)
    assert found["reason"] == "The answer does not fit: the answer: 4 is not of type 'array'."
    assert load_trajectory(found["log_path"]).reason == found["reason"]


@pytest.mark.parametrize(("schema", "fits", "not_so"), [
    ({"type": "integer"}, [3, 3.0, "4"], [True, 3.5, "x", None]), ({"type": ["string", "null"]}, ["", None], [1]),
    ({"type": "array", "items": {"enum": ["a", "b"]}, "maxItems": 2}, [[], ["a"]], [["c"], ["a", "a", "a"], {}]),
    ({"type": "object", "required": ["n"], "properties": {"n": {"minimum": 1}}, "additionalProperties": False},
     [{"n": 1}], [{}, {"n": 0}, {"n": 1, "m": 1}]),
    ({"type": "string", "pattern": "^prov:", "minLength": 6}, ["prov:A"], ["prov:", "Agent prov:", 5]), ({"const": 0}, [0], [1]),
    ({"anyOf": [{"type": "integer"}, {"$ref": "#/$defs/name"}], "$defs": {"name": {"maxLength": 3}}}, [4, "abc"], ["abcd"])])
def test_a_schema_says_what_fits(schema: dict[str, Any], fits: list[Any], not_so: list[Any]) -> None:
    kind = read_answer_type(schema)
    for value in fits:
        kind.check(value)
    for value in not_so:
        with pytest.raises(InvalidInput):
            kind.check(value)


@pytest.mark.parametrize("schema", [
    {"oneOf": []}, {"type": "text"}, {"properties": {"a": {"$ref": "http://example.org/a"}}}, {"minimun": 3}, {"items": 3}])
def test_what_would_not_be_checked_is_refused(schema: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput):
        about("x", says(), answer_type=schema)


# ---------------------------------------------------------------- watched

def test_a_stream_gives_steps_and_then_the_result() -> None:
    events = list(stream("?", None, ":memory:", model=says("len(context)", "FINAL(len(context))"), context="abc"))
    assert [type(e) for e in events] == [Step, Step, RunResult] and events[-1]["value"] == 3
    with pytest.raises(RlmError):
        list(stream("?", None, ":memory:", model=says(), context="abc"))


def test_a_run_that_nobody_listens_to_ends() -> None:
    model = says(*["len(context)"] * 50)
    events = stream("?", None, ":memory:", model=model, context="abc", limits=RunLimits(iterations=50, errors=50))
    next(events)
    events.close()  # type: ignore[attr-defined]
    seen = -1
    while seen != len(model.seen):  # until it stands still
        seen = len(model.seen)
        import time
        time.sleep(0.5)
    assert seen < 50


def test_runs_beside_one_another_in_an_event_loop() -> None:
    async def both() -> list[RunResult]:
        return await asyncio.gather(*(arun("?", None, ":memory:", model=says("FINAL(len(context))"), context="x" * n) for n in (1, 2)))
    assert [r["value"] for r in asyncio.run(both())] == [1, 2]


def test_what_a_watcher_raises_ends_the_run() -> None:
    def watch(step: Step) -> None:
        raise KeyError(step.number)
    with pytest.raises(KeyError):
        rlm_run("?", says("1", "2"), on_step=watch)
