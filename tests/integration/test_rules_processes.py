"Rules under several processes: no use is lost, a kill leaves whole steps, and every cache sees what others did."

import os
import signal
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path

import pytest

from rlm import Memory
from rlm.core.clock import ManualClock
from rlm.rules import RuleStore

pytestmark = pytest.mark.usefixtures("bare")
COUNT = """
import sys
from rlm.rules import RuleStore
with RuleStore(sys.argv[1]) as rules:
    for n in range(int(sys.argv[2])):
        rules.update_usage("shared", success_inc=n % 2, fail_inc=1 - n % 2)
"""
JOB = """
import sys
from rlm.rules import RuleStore
with RuleStore(sys.argv[1]) as rules:
    print("ready", flush=True)
    rules.run_due("2026-03-01")
"""
TAKEN = "SELECT count(*) FROM events WHERE kind IN ('promote', 'archive')"


def start(code: str, *arguments: object) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-W", "ignore", "-c", code, *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )


def test_two_processes_lose_no_use(path: Path) -> None:
    with RuleStore(path, max_fail_rate=1.0) as rules:
        rules.add_rule("shared by two", rule_id="shared", formal="when a then b")
        running = [start(COUNT, path, 5000) for _ in range(2)]
        errors = [p.communicate(timeout=300)[1].decode() for p in running]
        assert [p.returncode for p in running] == [0, 0], errors
        assert (rules.get("shared").success, rules.get("shared").fail) == (5000, 5000)
        uses = [e.detail for e in rules.backend.events("default", "shared") if e.kind == "use"]
        assert len(uses) == 10_000 and sum(u["success"] for u in uses) == 5000
        assert [e.kind for e in rules.backend.events("default", "shared") if e.kind not in ("use", "write")] == [
            "hold"
        ], "held once, by one of them"


def test_a_job_killed_between_steps_is_finished_by_the_next(path: Path) -> None:
    clock = ManualClock("2026-01-01")
    with RuleStore(path, clock=clock) as rules:
        rules.add_rules([{"rule_id": f"r{n:04}", "expr": f"규칙 {n}", "success": 5 * (n % 2)} for n in range(1500)])
    left = []
    for steps_done in (1, 300, 900):
        job = start(JOB, path)
        assert job.stdout and job.stdout.readline() == b"ready\n"
        with closing(sqlite3.connect(path)) as db:
            deadline = time.monotonic() + 60
            while job.poll() is None and db.execute(TAKEN).fetchone()[0] < steps_done:
                assert time.monotonic() < deadline, "the job takes no steps"
                time.sleep(0.002)
        job.send_signal(signal.SIGKILL)
        job.communicate()
        with RuleStore(path, clock=clock) as rules, Memory(path, read_only=True) as memory:
            assert memory.check() == []
            for r in rules.get_rules("any"):  # whole steps: status, version, history and event go together
                steps = [e.kind for e in rules.backend.events("default", r.rule_id) if e.kind != "write"]
                assert (r.status, r.version, steps) in [
                    ("hot", 1, []),
                    ("ltm", 2, ["promote"]),
                    ("archived", 2, ["archive"]),
                ]
            left.append(len(rules.get_rules("hot")))
    assert any(0 < n < 1500 for n in left), f"no kill fell between two steps: {left} were left to do"
    clock.advance(days=59)
    with RuleStore(path, clock=clock) as rules:
        rules.run_due()
        assert {(r.rule_id, r.status) for r in rules.get_rules("any")} == {
            (f"r{n:04}", "ltm" if n % 2 else "archived") for n in range(1500)
        }
        assert rules.run_due().done == ()


def test_a_cache_sees_what_another_process_did(path: Path) -> None:
    clock = ManualClock("2026-01-01")
    with RuleStore(path, clock=clock) as here:
        here.add_rule("첫째", rule_id="a", formal="when x then y = 1", tags=["t"])
        assert len(here.apply({"x": True}).fired) == 1
        code = (
            "import sys; from rlm.rules import RuleStore; r = RuleStore(sys.argv[1]); r.hold('a'); "
            "r.add_rule('second', rule_id='b', formal='when x then y = 2', tags=['t'], status='ltm')"
        )
        done = start(code, path)
        assert done.communicate(timeout=60)[1] == b"" and done.returncode == 0
        assert [f.rule_id for f in here.apply({"x": True}).fired] == ["b"] and [
            r.rule_id for r in here.get_rules("any", ["t"])
        ] == ["a", "b"]
        assert here.get_rules("held")[0].rule_id == "a"


@pytest.mark.skipif(os.name != "posix", reason="needs SIGINT as Unix has it")
def test_the_scheduler_waits_and_ends_when_told(path: Path) -> None:
    RuleStore(path).close()
    waiting = subprocess.Popen(
        [Path(sys.executable).with_name("rlm"), "rules", "scheduler", "--db", path], stderr=subprocess.PIPE
    )
    assert waiting.stderr and waiting.stderr.readline().startswith(b"Waiting for 2")
    waiting.send_signal(signal.SIGINT)
    try:
        assert waiting.communicate(timeout=120)[1].strip() == b"Ended." and waiting.returncode == 0
    finally:
        waiting.kill()
