"A step that breaks its sandbox, or takes too long, costs itself and what it broke: the rest goes on, and nothing is done twice."
import os
import shutil
import signal
import subprocess
import threading
import time
from pathlib import Path

import pytest

from rlm.agent.sandbox import Limits, open_sandbox
from rlm.agent.sandbox import process as process_kind

BWRAP = pytest.mark.skipif(not shutil.which("bwrap"), reason="bubblewrap is not installed: apt-get install bubblewrap")


@BWRAP
@pytest.mark.parametrize("poison", ["len.__self__.len = lambda x: 0", "len.__self__.exec = lambda *a, **k: None",
                                    "len.__self__.repr = len.__self__.print = None", "import json\njson.dumps = json.loads = None"])
def test_broken_names_break_their_own_step_only(poison: str) -> None:
    with open_sandbox("process") as box:
        box.start({}, {}, Limits(seconds=5))
        box.run("kept = [1, 2]")
        box.run(poison)
        assert "ZeroDivisionError" in box.run("1 / 0").error
        step = box.run("print(42)\nlen(kept)")
        assert (step.stdout, step.value, step.dropped) == ("42\n", "2", 0)


@BWRAP
def test_a_step_that_broke_the_interpreter_is_dropped_and_the_next_says_so() -> None:
    with open_sandbox("process") as box:
        box.start({}, {}, Limits(seconds=5))
        box.run("kept = 7")
        box.run("import contextlib\ncontextlib.redirect_stdout.__enter__ = None")
        step = box.run("kept")
        assert step.dropped == 1 and not step.state_lost and "broken" in step.error
        assert box.run("kept").value == "7"


@BWRAP
def test_steps_that_took_long_are_not_all_run_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process_kind, "_LEAST", 0.1)
    with open_sandbox("process") as box:
        box.start({}, {}, Limits(seconds=2))
        box.put("given", "x")
        for n in range(4):
            assert box.run(f"import time\ntime.sleep(0.9)\nn = {n}").ok
        step = box.run("while True: pass")
        assert step.timed_out and (step.dropped >= 2 or step.state_lost)
        assert step.state_lost or box.get("given") == "x"


def test_in_this_process_nothing_is_done_twice(tmp_path: Path) -> None:
    file = tmp_path / "log"
    with open_sandbox("inprocess") as box:
        box.start({}, {}, Limits(seconds=0.3))
        box.run(f"n = 1\nwith open({str(file)!r}, 'a') as f: f.write('x')\nf = None")
        state = box.dump()
        assert box.run("n = 2\nwhile True: pass").timed_out and box.get("n") == 1
        box.load(state)
        assert box.get("n") == 1 and file.read_text() == "x"


@pytest.mark.parametrize("kind", ["monty", pytest.param("process", marks=BWRAP), "inprocess"])
def test_a_tools_error_names_no_folder_of_the_host(kind: str, tmp_path: Path) -> None:
    def fail() -> None:
        (tmp_path / "nothing.txt").read_text()
    with open_sandbox(kind) as box:
        box.start({"fail": fail}, {}, Limits())
        step = box.run("fail()")
        assert "nothing.txt" in step.error and str(tmp_path) not in step.error + step.calls[0].error


def descendants(pid: int) -> list[int]:
    "Processes below one, each after its parent."
    listed = subprocess.run(["ps", "-eo", "pid=,ppid=,comm="], capture_output=True, text=True, check=True).stdout.splitlines()
    rows = [line.split(None, 2) for line in listed]
    pairs, found = [(int(child), int(parent)) for child, parent, name in rows if name != "ps"], [pid]
    for one in found:
        found += [child for child, parent in pairs if parent == one]
    return found[1:]


@pytest.mark.skipif(os.name != "posix" or not shutil.which("ps"), reason="needs SIGKILL and ps")
@pytest.mark.parametrize("kind", ["monty", pytest.param("process", marks=BWRAP)])
def test_a_step_whose_process_is_killed_ends_at_once_and_variables_stay(kind: str) -> None:
    before = set(descendants(os.getpid()))

    def kill() -> None:
        os.kill([pid for pid in descendants(os.getpid()) if pid not in before][-1], signal.SIGKILL)
    with open_sandbox(kind) as box:
        box.start({}, {}, Limits(seconds=60))
        box.run("kept = 7")
        timer, begun = threading.Timer(.5, kill), time.monotonic()
        timer.start()
        step = box.run("n = 0\nwhile True:\n    n += 1")
        assert step.error and not step.timed_out and not step.state_lost and time.monotonic() - begun < 30
        assert box.run("kept").value == "7"
        kill()
        box.run("1")  # between two steps: this one may fail
        assert box.run("kept").value == "7"
