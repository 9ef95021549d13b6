"The command `rlm-agent`, as it is typed."
import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import click
import pytest
from click.testing import CliRunner, Result

from rlm.agent.runner import CASE_BASED_K, READER_K
from rlm.agent.tracing.trajectory import load_trajectory
from rlm.service.cli import main as rlm_main
from rlm.service.cli.agent import main
from rlm.service.memory import Memory

pytest.importorskip("pydantic_monty")
pytest.importorskip("pyoxigraph")
AGENT = str(Path(sys.executable).with_name("rlm-agent"))
OURS = ("RLM_", "AIMEMORY_", "OPENAI_", "ANTHROPIC_")
FIRST = 'run --ontology prov --query "Find all subclasses of Activity" --db memory.db'
EXAMPLES = [line.strip() for command in [main, *main.commands.values()] for line in (command.epilog or "").splitlines()[2:]]


def typed(home: Path, line: str) -> "subprocess.CompletedProcess[str]":
    "Run a line behind the installed `rlm-agent` in a folder."
    env = {n: v for n, v in os.environ.items() if not n.startswith(OURS)}
    return subprocess.run([AGENT, *shlex.split(line)], cwd=home, env={**env, "HOME": str(home), "LC_ALL": "C.UTF-8"},
                          capture_output=True, text=True, check=False)


def agent(line: str, **variables: str) -> Result:
    "The same in this process, which is quicker."
    return CliRunner().invoke(main, shlex.split(line), prog_name="rlm-agent", env=variables)


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    "A working folder with a script, a file that is no ontology, and a log; and none of our environment variables."
    for name in [n for n in os.environ if n.startswith(OURS)]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "idle.txt").write_text("```repl\n1\n```\n---\n```repl\n2\n```\n", encoding="utf-8")
    (tmp_path / "notes.ttl").write_text("dear diary", encoding="utf-8")
    (tmp_path / "logs").mkdir()
    start = {"kind": "start", "task": "차는?", "model": "case-based", "sandbox": "monty", "isolated": True}
    (tmp_path / "logs" / "rlm_example.jsonl").write_text(json.dumps(start, ensure_ascii=False) + "\n", encoding="utf-8")
    return tmp_path


@pytest.mark.seed("003 cli")
def test_the_main_job(home: Path) -> None:
    done = typed(home, f"{FIRST} --json")
    found = json.loads(done.stdout)
    assert (done.returncode, done.stderr) == (0, "")
    assert {"answer", "iterations", "converged", "run_id", "trajectory_id", "log_path", "memories_used"} <= found.keys()
    assert found["converged"] is True and found["iterations"] == 2 and {"prov:Accept", "prov:Create"} <= set(found["value"])
    assert [m["rank"] for m in found["memories_used"]] == list(range(1, len(found["memories_used"]) + 1))
    assert all(0 < m["score"] <= 1 and re.fullmatch("[0-9a-f]{16}", m["memory_id"]) for m in found["memories_used"])
    assert load_trajectory(home / found["log_path"]).answer == found["answer"]
    again = json.loads(agent(f"{FIRST} --json --no-extract --memory-k 1 --log-dir elsewhere").stdout)
    assert again["answer"] == found["answer"] and len(again["memories_used"]) == 1 and list((home / "elsewhere").iterdir())


@pytest.mark.parametrize("line", EXAMPLES)
def test_every_example_runs(line: str, home: Path) -> None:
    if " last" in line:
        agent(FIRST)
    done = agent(line.removeprefix("rlm-agent "))
    assert done.exit_code == 0 and done.stdout.strip() and "Traceback" not in done.stderr, done.stderr
    if "--json" in line:
        json.loads(done.stdout)


def test_korean_comes_out_as_it_is(home: Path) -> None:
    done = agent('run --ontology prov --query "Activity의 하위 클래스는 몇 개인가요?" --db 기억.db --json')
    assert done.exit_code == 0 and "기억" not in done.stderr and (home / "기억.db").exists()
    assert "차는?" in agent("show logs/rlm_example.jsonl").stdout
    assert agent('run --ontology prov --query "Person은 Agent야?" --db m.db').stdout == "예\n"
    unknown = agent('run --ontology prov --query "에이전트의 하위 클래스가 몇 갠지 알려줄래?" --db m.db').stdout
    assert "모르겠습니다" in unknown and "에이전트의 " in unknown and "의의" not in unknown


@pytest.mark.parametrize(("line", "code", "said"), [
    ("run --ontology nowhere.ttl --query x --db m.db", 1, "nowhere.ttl"),
    ("run --ontology notes.ttl --query x --db m.db", 1, "notes.ttl"),
    ("run --ontology prov --query ' ' --db m.db", 1, "question is blank"),
    ("run --ontology prov --query x --db m.db --model gpt", 1, "no model 'gpt'"),
    ("run --ontology prov --query x --db m.db --model openai:gpt-4.1", 1, "no key for OpenAI"),
    ("run --ontology prov --query x --db m.db --model scripted:none.txt", 1, "none.txt"),
    ("run --ontology prov --query x --db m.db --budget much", 1, "budget 'much'"),
    ("run --ontology prov --query x --db .", 1, "is a folder"),
    ("run --ontology prov --query x --db m.db --log-dir notes.ttl", 1, "can't be written"),
    ("run --query x", 2, "Missing option '--ontology'"),
    ("run --ontology prov --query x --memory-k -1", 2, "--memory-k"),
    ("judge last yes --db m.db", 1, "no store"),
    ("judge last maybe --db m.db", 2, "maybe"),
    ("show nowhere.jsonl", 1, "nowhere.jsonl"),
    ("show notes.ttl", 1, "no line of a run's log"),
    ("shw", 2, "No such command 'shw'")])
def test_a_mistake_is_one_sentence(line: str, code: int, said: str, home: Path) -> None:
    done = agent(line)
    assert (done.exit_code, done.stdout) == (code, "") and said in done.stderr, done.stderr
    assert done.stderr.count("Error: ") == 1 and "Traceback" not in done.stderr and len(done.stderr.splitlines()) <= 4


@pytest.mark.seed("003 judge")
def test_what_a_person_says_counts_once_and_for_the_strategy_that_was_followed(home: Path) -> None:
    found = json.loads(agent(f"{FIRST} --json").stdout)
    assert found["judgment"] == "success"  # by the second route; what a person says takes its place
    followed = load_trajectory(home / found["log_path"]).steps[-1].reply
    [used] = [m["memory_id"] for m in found["memories_used"] if f"[{m['memory_id']}]" in followed]

    def counts() -> dict[str, tuple[int, int]]:
        with Memory(home / "memory.db") as memory:
            return {i.memory_id: (i.success_count, i.failure_count) for i in memory.strategies.items()}

    first = counts()
    assert "partly" in agent(f"judge {found['run_id']} partly --db memory.db").stdout
    before = {**first, used: (first[used][0] - 1, first[used][1])}
    assert counts() == before
    assert "no run 'r-none'" in agent("judge r-none yes --db memory.db").stderr
    said = json.loads(agent(f"judge {found['trajectory_id']} no --db memory.db --json").stdout)
    assert said["opinion"] == "no" and counts() == {**before, used: (before[used][0], before[used][1] + 1)}
    again = agent("judge last yes --db memory.db")
    assert again.exit_code == 1 and "judged already: failure" in again.stderr and counts()[used] == (before[used][0], before[used][1] + 1)


def test_a_run_is_shown_by_its_name_and_judged_by_its_question(home: Path) -> None:
    assert "no store at" in agent("show last --db memory.db").stderr
    said = agent(FIRST).stderr
    id = re.search(r"run: (r-[0-9a-f]{12})$", said.strip())
    assert id and agent("show last --db memory.db").stdout == agent(f"show {id[1]} --db memory.db").stdout != ""
    assert "no run 'r-000000000000'" in agent("show r-000000000000 --db memory.db").stderr
    told = agent("judge last yes --db memory.db").stdout
    assert "Find all subclasses of Activity" in told and "It counts for the strategy " in told
    agent('run --ontology prov --query "What is Agent supposed to eat?" --db memory.db')
    told = agent("judge last partly --db memory.db").stdout
    assert "What is Agent supposed to eat? – I do not know" in told and "for or against no strategy" in told


def test_a_refused_connection_is_one_sentence(home: Path) -> None:
    done = agent('run --ontology prov --query "x" --db m.db --model openai:qwen', OPENAI_BASE_URL="http://127.0.0.1:9/v1")
    assert done.exit_code == 1 and "can't be reached" in done.stderr and "Traceback" not in done.stderr


def test_a_run_that_hits_a_limit_has_its_own_code(home: Path) -> None:
    done = agent(f"{FIRST} --model scripted:idle.txt --max-iterations 2 --json")
    found = json.loads(done.stdout)
    assert (done.exit_code, found["converged"], found["stopped"], found["answer"]) == (3, False, "iterations", "2")


@pytest.mark.parametrize(("program", "words"), [(main, ["run"]), (rlm_main, ["memory", "train"])], ids=["run", "train"])
def test_help_names_the_number_of_experiences_that_is_used(program: click.Command, words: list[str]) -> None:
    shown = " ".join(CliRunner().invoke(program, [*words, "--help"]).output.split()).replace("case- based", "case-based")  # broken there
    assert f"Default: {CASE_BASED_K} for case-based, {READER_K} for models that read." in shown


def test_help_is_there_for_every_command() -> None:
    for command in [main, *main.commands.values()]:
        assert isinstance(command, click.Command) and command.help and "Examples:" in (command.epilog or "")
