"""What model-written code can't do in a sandbox: reach files, environment, network or processes; take more memory, time or output
than it is given; shadow tools; get more out of a handle than it exposes. Each holds in every isolated kind on this machine."""
import builtins
import os
import shutil
import socket
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from rlm.agent.sandbox import DIALECT, Limits, Sandbox, SandboxError, StepResult, open_sandbox
from rlm.agent.sandbox.session import InterpreterSandbox, Session, answer_question
from rlm.agent.sandbox.tool_bridge import ToolBridge, ToolError
from rlm.core.errors import InvalidInput, NotFound

pytest.importorskip("pydantic_monty", reason="the extra `agent` is not installed")
BWRAP = pytest.mark.skipif(not shutil.which("bwrap"), reason="bubblewrap is not installed: apt-get install bubblewrap")
KINDS = ["monty", pytest.param("process", marks=BWRAP)]
LIMITS = Limits(seconds=1, memory=64 * 2**20, calls=50, stdout=400, value=300, error=500, variable=1000, handles=20)


class Rows:
    "A handle with things to hide."

    EXPOSED = ("total", "head", "rest", "fail", "_hidden", "__class__")
    shared = "rosebud"

    def __init__(self, rows: list[str]) -> None:
        self._hidden = self.password = "rosebud"
        self._rows, self.total = rows, len(rows)

    def head(self, n: int = 2) -> list[str]:
        return self._rows[:n]

    def rest(self) -> "Rows":
        return Rows(self._rows[1:])

    def fail(self) -> None:
        raise OSError("the disk is full")

    def drop(self) -> None:
        self._rows = []


class Host:
    "Tools with a memory, so that a test sees what was really called."

    def __init__(self) -> None:
        self.found: list[str] = []
        self.answer: object = None

    def find(self, word: str) -> Rows:
        self.found.append(word)
        return Rows([f"{word} {n}" for n in range(1000)])

    def final(self, value: object) -> None:
        self.answer = value

    def echo(self, *args: Any, **kwargs: Any) -> object:
        return [*args, kwargs] if kwargs else args[0]

    def nap(self, seconds: float) -> str:
        time.sleep(seconds)
        return "rested"

    def tools(self) -> dict[str, Callable[..., Any]]:
        return {"find": self.find, "FINAL": self.final, "echo": self.echo, "nap": self.nap, "leak": lambda: self}


@pytest.fixture
def host() -> Host:
    return Host()


@pytest.fixture(params=KINDS)
def box(request: pytest.FixtureRequest, host: Host) -> Iterator[Sandbox]:
    with open_sandbox(request.param) as sandbox:
        sandbox.start(host.tools(), {"rows": Rows(["물", "불", "흙"])}, LIMITS)
        assert sandbox.isolated
        yield sandbox


@pytest.fixture(scope="module", params=KINDS)
def steady(request: pytest.FixtureRequest) -> Iterator[Sandbox]:
    "One sandbox for many attempts that leave nothing behind."
    with open_sandbox(request.param) as sandbox:
        sandbox.start(Host().tools(), {"rows": Rows(["물", "불", "흙"])}, LIMITS)
        yield sandbox


@pytest.fixture
def walled(host: Host) -> Iterator[Sandbox]:
    "The process kind, with Python's own internals in hand: `os` and `sys` as dictionaries, got by way of classes."
    if not shutil.which("bwrap"):
        pytest.skip("bubblewrap is not installed")
    with open_sandbox("process") as sandbox:
        sandbox.start(host.tools(), {"rows": Rows(["물"])}, LIMITS)
        step = sandbox.run("os = [c for c in ().__class__.__base__.__subclasses__() if c.__name__ == '_wrap_close'][0]"
                           ".__init__.__globals__\nsys = os['sys']\ndef attempt(f, *args):\n    try:\n        return f(*args)\n"
                           "    except BaseException as e:\n        return type(e).__name__")
        assert step.ok
        yield sandbox


def failed(step: StepResult) -> bool:
    return bool(step.error) and not step.value


# ---------------------------------------------------------------- what is out of reach

FILES = ["open({0!r}).read()", "import os\nos.listdir('/')", "import os\nos.open({0!r}, 0)",
         "import pathlib\npathlib.Path({0!r}).read_text()", "import io\nio.open({0!r}).read()",
         "import shutil\nshutil.copy({0!r}, '/x')", "open('{0}.copy', 'w').write('x')",
         "import os\nos.unlink({0!r})", "__builtins__['open']({0!r}).read()", "import csv\nlist(csv.reader(open({0!r})))"]


@pytest.mark.parametrize("code", FILES)
def test_there_are_no_files(steady: Sandbox, code: str, tmp_path: Path) -> None:
    secret = tmp_path / "secret.txt"
    secret.write_text("rosebud")
    for path in (str(secret), "/etc/passwd", "/proc/self/environ"):
        step = steady.run(code.format(path))
        assert failed(step) and "rosebud" not in step.error
    assert secret.read_text() == "rosebud"


@pytest.mark.parametrize("code", [
    "import os\nos.environ['RLM_TEST_SECRET']", "import os\nos.getenv('RLM_TEST_SECRET').upper()", "import sys\nsys.modules",
    "import socket\nsocket.create_connection(('127.0.0.1', {port}))",
    "import urllib.request\nurllib.request.urlopen('http://127.0.0.1:{port}')",
    "import http.client\nhttp.client.HTTPConnection('127.0.0.1', {port}).request('GET', '/')", "import asyncio\nasyncio.open_connection",
    "import subprocess\nsubprocess.run(['true'])", "import os\nos.system('true')", "import os\nos.fork()", "import os\nos.kill({pid}, 0)",
    "import multiprocessing\nmultiprocessing.Process(target=print).start()", "import threading\nthreading.Thread(target=print).start()",
    "import ctypes\nctypes.CDLL(None)", "import gc\ngc.get_objects()", "import inspect\ninspect.stack()",
    "import rlm", "import numpy", "import pip", "import importlib\nimportlib.import_module('os')", "input()", "breakpoint()",
    "import _posixsubprocess", "import pickle", "import tools.os",
])
def test_no_environment_network_or_process(steady: Sandbox, code: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RLM_TEST_SECRET", "rosebud")
    with socket.create_server(("127.0.0.1", 0)) as server:
        step = steady.run(code.format(port=server.getsockname()[1], pid=os.getpid()))
        server.setblocking(False)
        with pytest.raises(BlockingIOError):
            server.accept()
    assert failed(step) and "rosebud" not in step.error


def test_behind_the_wall_there_is_nothing(walled: Sandbox) -> None:
    "Going round the import guard reaches Python's internals, and through them nothing."
    with socket.create_server(("127.0.0.1", 0)) as server:
        attempts = {
            "attempt(os['listdir'], '/')": "[]",
            "attempt(os['open'], '/etc/passwd', 0)": "'FileNotFoundError'",
            "attempt(os['open'], '/new', 0o101)": "'OSError'",
            "attempt(os['mkdir'], '/new')": "'OSError'",
            "attempt(os['execv'], '/bin/sh', ['sh'])": "'FileNotFoundError'",
            "attempt(os['fork'])": "'BlockingIOError'",
            "attempt(os['chroot'], '/')": "'PermissionError'",
            "attempt(os['setuid'], 0) in ('PermissionError', 'OSError')": "True",
            "attempt(os['getuid'])": "65534",
            "attempt(os['getppid']) < 10": "True",
            f"attempt(os['kill'], {os.getpid()}, 0)": "'ProcessLookupError'",
            "dict(os['environ']), os['environb']": "({}, environ({}))",
            "attempt(lambda: os['write'](os['memfd_create']('x'), b'x'))": "'OSError'",
            "attempt(sys.modules['box.guest'].resource.setrlimit, 9, (1 << 40, 1 << 40))": "'ValueError'",
            "attempt(__import__('time').sleep and sys.modules['_thread'].start_new_thread, print, ())": "'RuntimeError'",
            "len([n for n in range(64) if attempt(os['fstat'], n) != 'OSError']) < 6": "True",
        }
        for code, value in attempts.items():
            assert walled.run(code).value == value, code
        place = server.getsockname()
        step = walled.run(f"s = sys.modules['builtins'].__import__('socket')\ns.create_connection({place})")
        assert failed(step)


def test_forged_messages_and_death_end_the_step_only(walled: Sandbox, host: Host) -> None:
    "Code that speaks for its own process, or kills it, loses its step."
    walled.run("kept = find('강')")
    for code in (r"""os['write'](4, b'{"done": {"value": "forged"}}\n{"done": {}}\n')""",
                 r"os['write'](4, b'[' * 100000 + b'\n')", "os['write'](4, b'nonsense\\n')", "os['close'](4)", "os['_exit'](0)",
                 "os['kill'](os['getpid'](), 9)", "sys.modules['ctypes'].string_at(0)",
                 "big = b'x' * 65536\nwhile True: os['write'](4, big)"):
        step = walled.run(code)
        assert failed(step) and not step.state_lost, code
        assert walled.run("kept.total").value == "1000"
    assert host.found == ["강"], "a session that is played again calls no tool"


# ---------------------------------------------------------------- what is bounded

ALIKE = "k * (2**61 - 1) for k in range(300)"


@pytest.mark.parametrize("given", ["[0] * 60 + [10**5000]", "{-10**4500: 1}", f"{{{ALIKE}}}", f"dict.fromkeys([{ALIKE}])",
                                   f"[(1, frozenset([{ALIKE}]))]"])
def test_what_could_harm_the_host_does_not_cross(steady: Sandbox, given: str) -> None:
    step = steady.run(f"echo({given})")
    assert failed(step) and "TypeError" in step.error and "can't cross" in step.error
    step = steady.run(f"try:\n    FINAL({given})\nexcept TypeError:\n    print('well')")
    assert step.stdout == "well\n" and step.ok


def test_a_forged_message_does_not_hold_the_host() -> None:
    "Without a limit, 20,000 numbers with one hash would take some seconds."
    bridge = ToolBridge({"echo": lambda value: value}, {}, LIMITS)
    numbers = [{"int": hex(k * (2**61 - 1))} for k in range(20_000)]
    begun = time.process_time()
    for held in ({"set": numbers}, {"frozenset": numbers}, {"dict": [[n, 1] for n in numbers]}):
        forged = {"ask": "echo", "on": None, "read": False, "args": {"tuple": [held]}, "kwargs": {"dict": []}}
        assert answer_question(bridge, forged) == {"raise": ["ValueError", "this is no value: ValueError"]}
    assert time.process_time() - begun < 2 and not bridge.calls


def test_half_a_surrogate_pair_does_not_leave_a_sandbox(box: Sandbox, host: Host) -> None:
    "Monty has none; Python has."
    step = box.run("half = 'a\\ud800b'\nFINAL([half, {half: half}])\nprint(half)\nhalf")
    assert step.ok and host.answer == ["a\ufffdb", {"a\ufffdb": "a\ufffdb"}] and box.get("half") == "a\ufffdb"
    step = box.run("raise ValueError(half)")
    for text in (step.stdout, step.value, step.error):
        assert text.encode().decode() == text


ENDLESS = ["while True: pass", "while True: print('물' * 1000)",
           "while True:\n    try:\n        nothing_here\n    except NameError:\n        pass",
           "while True:\n    try:\n        while True: pass\n    except BaseException:\n        pass", "sum(range(10**12))",
           "while True:\n    try:\n        echo(1)\n    except RuntimeError:\n        pass", "import time\nwhile True: time.time()"]


@pytest.mark.parametrize("code", ENDLESS)
def test_time_is_bounded_and_the_state_kept(steady: Sandbox, code: str) -> None:
    assert steady.run("kept = ['가', 1]").ok
    begun = time.monotonic()
    step = steady.run(f"kept = None\n{code}")
    assert step.timed_out and not step.state_lost and "undone" in step.error
    assert time.monotonic() - begun < 60
    assert steady.run("kept").value == "['가', 1]" and len(step.stdout) < 500


def test_sleep_does_not_outlast_the_limit(steady: Sandbox) -> None:
    begun = time.monotonic()
    steady.run("import time\ntime.sleep(3600)")
    assert time.monotonic() - begun < 60


def test_a_regular_expression_does_not_run_for_ever(steady: Sandbox) -> None:
    begun = time.monotonic()
    steady.run("import re\nre.match('(a+)+$', 'a' * 60 + 'b')")
    assert time.monotonic() - begun < 60 and steady.run("1 + 1").value == "2"


def test_the_time_of_tools_does_not_count(steady: Sandbox) -> None:
    step = steady.run("nap(1.3)")
    assert step.value == "'rested'" and step.seconds > 1.3


@pytest.mark.parametrize("code", [
    "x = []\nwhile True: x.append('y' * 100000)", "'a' * 10**10", "[0] * 10**10", "10 ** 10 ** 9", "x = 'a'\nwhile True: x += x",
    "x = {}\nfor n in range(10**9): x[n] = [n]", "f'{1:>1000000000}'", "bytes(10**10)"])
def test_memory_is_bounded_and_the_state_kept(steady: Sandbox, code: str) -> None:
    assert steady.run("kept = 7").ok
    step = steady.run(f"kept = 8\n{code}")
    assert failed(step) and not step.state_lost
    assert steady.run("kept").value in ("7", "8") and steady.run("len('b' * 10**6)").value == "1000000"


@pytest.mark.parametrize("code", ["def f(): return f()\nf()", "x = []\nfor _ in range(100000): x = [x]\nx", "(" * 300 + ")" * 300,
                                  "eval('-' * 100000 + '1')",
                                  "class A:\n    def __repr__(self): return repr(self)\nA()"])
def test_depth_is_bounded(steady: Sandbox, code: str) -> None:
    assert steady.run("kept = 7").ok
    steady.run(code)
    assert steady.run("kept").value == "7"


def test_output_is_cut_at_both_ends_and_says_so(steady: Sandbox) -> None:
    step = steady.run("print('first'); print('물' * 10**5); print('last')\n['강' * 10**5]")
    for text, limit, head, tail in ((step.stdout, LIMITS.stdout, "first", "last\n"), (step.value, LIMITS.value, "['강", "강']")):
        assert text.startswith(head) and text.endswith(tail) and "characters left out" in text and len(text) < limit + 60
    error = steady.run("raise ValueError('x' * 10**6)").error
    assert len(error) < LIMITS.error + 60 and "characters left out" in error and "line 1" in error
    assert "Nothing was run" in steady.run("1" * (LIMITS.code + 1)).error


def test_calls_are_bounded_and_written_down(steady: Sandbox) -> None:
    step = steady.run("n = 0\ntry:\n    while True:\n        echo(n)\n        n += 1\nexcept RuntimeError as e:\n    print(e)\nn")
    assert step.value == str(LIMITS.calls) == str(len(step.calls)) and "limit" in step.stdout
    step = steady.run("echo('x' * 100000)\nrows.head(1)\nNone")
    assert [c.name for c in step.calls] == ["echo", "Rows.head"] and len(step.calls[0].arguments) < LIMITS.call + 60
    assert steady.run("echo(1)").value == "1", "the next step has its own"


# ---------------------------------------------------------------- tools

@pytest.mark.parametrize("code", [
    "def find(word): return 'mine'", "find = lambda word: 'mine'", "import re as find", "for find in [1]: pass", "class find: pass",
    "[find := 3]", "find.__code__ = (lambda *a: 'mine').__code__", "globals()['find'] = lambda word: 'mine'", "exec('find = 3')",
    "rows = 3", "import tools\ntools.find = 3", "rows.total = 5", "type(rows).total = 5", "rows.__class__.__getattr__ = lambda s, n: 5",
    "echo = FINAL = print = len = str = None"])
def test_tools_and_handles_cannot_be_shadowed(box: Sandbox, host: Host, code: str) -> None:
    box.run(code)
    step = box.run("found = find('강')\nFINAL([found.total, rows.total])\necho('물')")
    assert step.value == "'물'" and host.answer == [1000, 3], step.error
    assert [c.name for c in step.calls if "." not in c.name] == ["find", "FINAL", "echo"]


def test_a_handle_gives_what_it_exposes_and_nothing_else(steady: Sandbox) -> None:
    assert steady.run("rows.total, rows.head(), rows.rest().total, rows.rest().rest().head()").value == "(3, ['물', '불'], 2, ['흙'])"
    for name in ("password", "_hidden", "_rows", "shared", "drop", "__dict__", "__init__.__globals__", "head.__self__", "EXPOSED",
                 "head.__func__", "head.__globals__", "__class__.shared", "__class__.password", "__reduce__()"):
        step = steady.run(f"rows.{name}")
        assert "rosebud" not in step.value and "drop" not in step.value and "Host" not in step.value, name
    for code in ("'{0.password}'.format(rows)", "getattr(rows, 'password')", "vars(rows)['password']", "f'{rows.password}'", "rows.drop()",
                 "rows.__class__(['x']).password", "object.__getattribute__(rows, 'password')", "rows['password']", "rows.head.__call__.x",
                 "type(rows).password", "rows.head(n=rows.password)", "leak()"):
        step = steady.run(code)
        assert failed(step) and "rosebud" not in step.error, code
    assert "disk is full" in steady.run("rows.fail()").error and steady.run("rows.total").value == "3"


def test_handles_of_old_results_are_let_go(box: Sandbox) -> None:
    box.run("many = [find(str(n)) for n in range(25)]")
    assert "no longer kept" in box.run("many[0].head()").error
    assert box.run("many[-1].head(1), rows.total").value == "(['24 0'], 3)"


def test_what_tools_are_given_is_a_copy_of_plain_data(box: Sandbox, host: Host) -> None:
    values = "[None, True, 3, -2.5, '물', b'x', (1, [2]), {1: {'a'}}, 10**50, float('inf')]"
    assert box.run(f"x = {values}\nFINAL(x)\nx.append(1)\necho(x) == x").value == "True"
    assert host.answer == [None, True, 3, -2.5, "물", b"x", (1, [2]), {1: {"a"}}, 10**50, float("inf")]
    assert box.run("echo(1, b=rows)").value.startswith("[1, {'b': ")
    for code in ("echo(len)", "class A: pass\necho(A())", "leak()"):
        step = box.run(code)
        assert failed(step) and not step.state_lost, code


def test_tools_record_state_and_raise_inside(box: Sandbox, host: Host) -> None:
    step = box.run("try:\n    find()\nexcept TypeError as e:\n    FINAL('caught')\nfind('강').total")
    assert step.value == "1000" and host.answer == "caught" and step.calls[0].error and host.found == ["강"]
    assert "Traceback" not in (error := box.run("x = 1\nrows.head('a')").error) and "line 2" in error and "TypeError" in error


# ---------------------------------------------------------------- exceptions that are up to something

TREACHEROUS = {
    "class E(Exception):\n  def __str__(self): raise KeyError('x')\nraise E": "E: (its text can't be had: KeyError was raised)",
    "class E(Exception):\n  def __str__(self): raise SystemExit(3)\nraise E": "E: (its text can't be had: SystemExit was raised)",
    "class X(BaseException): pass\nclass E(Exception):\n  def __str__(self): raise X\nraise E": "E: (its text can't be had: X was raised)",
    "class E(Exception):\n  def __str__(self): return 3\nraise E": "E: (its text can't be had: TypeError was raised)",
    "class S(str):\n  def __len__(self): raise SystemExit\nclass E(Exception):\n  def __str__(self): return S('said')\nraise E": "E: said",
    "class M(type):\n  __name__ = property(lambda c: 1 / 0)\nclass E(Exception, metaclass=M): pass\nraise E('said')": "E: said",
    "e = SyntaxError('said')\ne.lineno, e.text = 1, 5\nraise e": "SyntaxError: said (line 1)",
    "class E(Exception):\n  __traceback__ = property(lambda e: 1 / 0)\nraise E('said')": "E: said",
    "class X(BaseException): pass\nraise X('out')": "X: out", "raise GeneratorExit('out')": "GeneratorExit: out",
    "class A:\n  def __repr__(self): raise SystemExit(4)\nA()": "SystemExit: 4",
}


@pytest.mark.parametrize("kind", ["inprocess", pytest.param("process", marks=BWRAP)])
def test_an_exception_ends_its_step_only_whatever_it_does(kind: str) -> None:
    with open_sandbox(kind) as sandbox:
        sandbox.start({}, {}, LIMITS)
        sandbox.run("kept = 7")
        for code, told in TREACHEROUS.items():
            step = sandbox.run(code)
            assert step.error.splitlines()[-1] == told and not step.state_lost and not step.timed_out, (code, step)
        sandbox.run("class A:\n  def __repr__(self): raise TypeError('no')\n"
                    "class B:\n  def __repr__(self): raise SystemExit\na, b = A(), B()")
        for name in "ab":
            with pytest.raises(InvalidInput, match="can't be read"):
                sandbox.get(name)
        assert sandbox.run("kept").value == "7"


def test_time_is_up_in_the_midst_of_an_exceptions_text() -> None:
    with open_sandbox("inprocess") as sandbox:
        sandbox.start({}, {}, LIMITS)
        step = sandbox.run("class E(Exception):\n  def __str__(self):\n    while True: pass\nraise E")
        assert step.timed_out and sandbox.run("1").value == "1"


def test_a_sandbox_of_a_new_kind_says_what_it_lacks() -> None:
    class Half(Session):
        def close(self) -> None: ...

    class Bare(InterpreterSandbox): ...
    for lacking, method in ((Half, "exchange"), (Bare, "open_session")):
        with pytest.raises(TypeError, match=method):
            lacking()  # type: ignore[abstract, call-arg]


class Odd(KeyError, OSError):
    "Of a kind that Python itself has none of."


@pytest.mark.parametrize(("error", "kind", "message"), [
    (ValueError("no"), "ValueError", "no"), (KeyError("name"), "KeyError", "name"), (KeyError(), "KeyError", ""),
    (ZeroDivisionError("by 0"), "ZeroDivisionError", "by 0"), (TimeoutError("late"), "TimeoutError", "late"),
    (NotImplementedError("not yet"), "NotImplementedError", "not yet"), (UnicodeError("bytes"), "ValueError", "UnicodeError: bytes"),
    (RecursionError("deep"), "RuntimeError", "RecursionError: deep"), (OSError("disk full"), "RuntimeError", "OSError: disk full"),
    (Odd("both"), "KeyError", "Odd: both"), (NotFound("There is none.", "Look."), "LookupError", "There is none. Look."),
    (InvalidInput("Odd."), "ValueError", "Odd."), (SandboxError("Shut."), "RuntimeError", "Shut."),
    (StopIteration(), "RuntimeError", "StopIteration: "),
    (ValueError("x" * 900), "ValueError", None)])
def test_what_a_tool_raises_comes_in_as_one_of_pythons_own(error: Exception, kind: str, message: str | None) -> None:
    "The kinds that code inside may catch are few; what else there is comes as the nearest of them, and says what it was."
    told = ToolError.from_exception(error, 500)
    assert told.kind == kind and (told.message == message if message is not None else "characters left out" in told.message)
    assert issubclass(getattr(builtins, told.kind), Exception)


# ---------------------------------------------------------------- state

def test_state_survives_an_exception_and_the_last_expression_is_echoed(box: Sandbox) -> None:
    assert "line 2" in (step := box.run("a = 1\nb = a / 0\nc = 3")).error and not step.timed_out
    assert box.run("a").value == "1" and "NameError" in box.run("c").error
    assert [box.run(code).value for code in ("a; a + 1", "x = 5", "None", "'물'", "if a: 7", "print(3)")] == ["2", "", "", "'물'", "", ""]
    assert "SyntaxError" in box.run("x = (").error


def test_variables_in_and_out(box: Sandbox) -> None:
    handle = Rows(["새"])
    box.put("given", {"text": "물" * 300, "rows": handle, "n": (1, 2.5, None)})
    assert box.run("given['rows'].head() + [len(given['text'])]").value == "['새', 300]"
    got = box.get("given")
    assert got["rows"] is handle and got["n"] == (1, 2.5, None) and box.run("given = {'a': [1]}").ok and box.get("given") == {"a": [1]}
    box.run("big, fun = '물' * 5000, lambda: 1")
    assert "function" in box.get("fun")
    with pytest.raises(InvalidInput, match=r"5,002 characters; 1,000 are the limit"):
        box.get("big")
    with pytest.raises(NotFound):
        box.get("nothing")
    for name in ("find", "rows", "not a name", "__builtins__", "a.b", "x; y"):
        with pytest.raises(InvalidInput):
            box.get(name)
        with pytest.raises(InvalidInput):
            box.put(name, 1)
    with pytest.raises(InvalidInput):
        box.put("x", object())


def test_a_variable_that_fights_back_when_read(steady: Sandbox) -> None:
    steady.run("kept = 1\nclass A:\n    def __repr__(self):\n        while True: pass\nx = A()")
    with pytest.raises(InvalidInput):
        steady.get("x")
    assert steady.get("kept") == 1


def test_a_state_is_dumped_and_loaded(box: Sandbox, host: Host) -> None:
    box.run("words = ['물']\ndef longer(n): return words * n\nfound = find('강')")
    state = box.dump()
    box.run("words = None")
    box.load(state)
    assert box.run("longer(2), rows.total").value == "(['물', '물'], 3)" and host.found == ["강"]
    with open_sandbox(box.kind) as other:
        other.start(host.tools(), {"rows": Rows(["물", "불", "흙"])}, LIMITS)
        other.load(state)
        assert other.run("longer(1)").value == "['물']"
    for nonsense in (b"", b"nonsense", b"[[1, 2]]", b"\x00" * 100):
        with pytest.raises(SandboxError):
            box.load(nonsense)
    assert box.run("longer(1)").value == "['물']", "what was there before stays"


def test_an_interrupt_leaves_a_sandbox_that_works(box: Sandbox) -> None:
    def interrupted() -> None:
        raise KeyboardInterrupt
    box.start({"stop": interrupted}, {}, LIMITS)
    box.run("a = 1")
    with pytest.raises(KeyboardInterrupt):
        box.run("stop()")
    assert box.run("a").value == "1"


# ---------------------------------------------------------------- kinds

def test_a_sandbox_says_what_it_is(box: Sandbox) -> None:
    assert isinstance(box, Sandbox) and box.isolated and box.kind in DIALECT
    box.close()
    box.close()
    with pytest.raises(SandboxError):
        box.run("1")


def test_a_child_process_without_bubblewrap_is_refused_or_says_so() -> None:
    from rlm.agent.sandbox.process import ProcessSandbox
    with pytest.raises(SandboxError, match=r"not isolated.*apt-get install bubblewrap"):
        ProcessSandbox(bwrap="no-such-program")
    with ProcessSandbox(unisolated=True) as open_one:
        open_one.start({}, {}, LIMITS)
        assert not open_one.isolated and open_one.run("1 + 1").value == "2"
        assert failed(open_one.run("import os"))


def test_the_unwalled_kind_must_be_asked_for() -> None:
    with open_sandbox("inprocess") as here:
        here.start({"find": lambda word: Rows([word])}, {}, LIMITS)
        assert not here.isolated and here.run("import os\nos.getpid()").value == str(os.getpid())
        assert here.run("a = 1\nwhile True: pass").timed_out and here.run("find('물').total").value == "1"
    assert open_sandbox().kind == "monty"
    with pytest.raises(InvalidInput, match="Did you mean 'process'"):
        open_sandbox("proces")


def children() -> set[str]:
    place = Path(f"/proc/{os.getpid()}/task/{os.getpid()}/children")
    return set(place.read_text().split()) if place.exists() else set()


def test_no_process_stays_behind(host: Host) -> None:
    before = threading.active_count(), children()
    for kind in ("monty", "process") if shutil.which("bwrap") else ("monty",):
        with open_sandbox(kind) as sandbox:
            sandbox.start(host.tools(), {}, LIMITS)
            sandbox.run("while True: pass")
    assert (threading.active_count(), children()) == before


def test_monty_is_as_the_prompt_says() -> None:
    missing = ["def f():\n    yield 1", "class A: pass\nclass B(A): pass", "class A:\n    @property\n    def x(self): return 1",
               "x = 1\ndel x", "input()", "open('x')", "globals()", "dir(1)", "callable(1)", "str.upper('x')", "import numpy"]
    there = DIALECT["monty"].split("Importable: ")[1].split(". ")[0].split(", ")
    with open_sandbox() as sandbox:
        sandbox.start({}, {}, LIMITS)
        for code in missing:
            assert failed(sandbox.run(code)), code
        assert [name for name in there if not sandbox.run(f"import {name}").ok] == []
        assert len(there) > 15


@pytest.mark.parametrize("late", [1, 2, 3])
def test_a_worker_that_is_late_to_begin_is_replaced(host: Host, monkeypatch: pytest.MonkeyPatch, late: int) -> None:
    from rlm.agent.sandbox import monty
    feed, tried = monty.MontyWorker.feed, list[str]()

    class Killed(RuntimeError):
        "As Monty's own error, which nobody else can make."

    def slow(self: Any, code: str, *args: Any, **inputs: Any) -> Any:
        tried.append(code)
        if len(tried) <= late:
            raise Killed("monty worker killed after exceeding request timeout of 1s")
        return feed(self, code, *args, **inputs)
    monkeypatch.setattr(monty.MontyWorker, "feed", slow)
    monkeypatch.setattr(monty, "MontyCrashedError", Killed)
    with open_sandbox("monty") as sandbox:
        if late == 3:
            with pytest.raises(SandboxError, match="does not start"):
                sandbox.start(host.tools(), {}, LIMITS)
            return
        sandbox.start(host.tools(), {}, LIMITS)
        assert sandbox.run("1 + 1").value == "2" and tried[:late + 1] == ["len"] * (late + 1)
