"""The files of `deploy/`, part by part: no container engine is needed. The start command and the health check of the Dockerfile
run as processes, behind Caddy where it is installed; units are read by systemd's own checker; the dashboard asks for figures that
the server has."""
import json
import os
import re
import shlex
import shutil
import signal
import socket
import ssl
import subprocess
import sys
from collections.abc import Iterator
from configparser import ConfigParser
from contextlib import contextmanager
from pathlib import Path
from time import monotonic, sleep
from types import SimpleNamespace
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest
import yaml
from click.testing import CliRunner

from rlm.core.settings import KNOWN
from rlm.service.cli import main
from rlm.service.http.telemetry import AnchorCounters, Metrics

ROOT = Path(__file__).resolve().parents[2]
DEPLOY = ROOT / "deploy"
BIN = Path(sys.executable).parent
CADDY = shutil.which("caddy")
pytestmark = pytest.mark.usefixtures("bare")


def instructions(path: Path) -> list[tuple[str, str]]:
    "Instructions of a Dockerfile and what follows them, with lines that go on joined."
    lines = [line for line in path.read_text(encoding="utf-8").splitlines() if not line.startswith("#")]
    joined = re.sub(r"\\\n\s*", "", "\n".join(lines))
    return [(word, rest) for word, _, rest in (line.partition(" ") for line in joined.splitlines() if line)]


DOCKERFILE = instructions(DEPLOY / "Dockerfile")


def of(word: str) -> list[str]:
    "What follows each instruction of one kind."
    return [rest for name, rest in DOCKERFILE if name == word]


START = json.loads(of("CMD")[0])


def container(folder: Path, port: int) -> dict[str, str]:
    "The variables of the container, with its folders under one of ours and a port of ours."
    given = dict(pair.split("=", 1) for rest in of("ENV") for pair in shlex.split(rest))
    given |= {n: v.replace("/data", str(folder / "data")).replace("/opt/rlm", str(folder)) for n, v in given.items()}
    (folder / "data").mkdir(exist_ok=True)
    path = f"{BIN}{os.pathsep}{os.environ['PATH']}"
    return os.environ | given | {"HOME": str(folder / "data"), "PATH": path, "RLM_EMBEDDER": "none", "RLM_SERVE_PORT": str(port)}


def health(port: int, env: dict[str, str]) -> int:
    "The exit code of the image's health check."
    command = json.loads(of("HEALTHCHECK")[0].partition("CMD ")[2])
    return subprocess.run([w.replace("8377", str(port)) for w in command], env=env, capture_output=True, check=False).returncode


@contextmanager
def started(folder: Path, port: int) -> Iterator[subprocess.Popen[bytes]]:
    "The start command of the image, until its health check passes."
    env = container(folder, port)
    with subprocess.Popen(START, cwd=folder / "data", env=env, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) as process:
        try:
            wait_for(port, process)
            assert health(port, env) == 0
            yield process
        finally:
            process.kill()


def wait_for(port: int, process: subprocess.Popen[bytes]) -> None:
    "Wait until somebody listens there, or the process has ended; a machine that does much else takes minutes."
    end = monotonic() + 900
    while True:
        with socket.socket() as s:
            if not s.connect_ex(("127.0.0.1", port)):
                return
        assert process.poll() is None and monotonic() < end
        sleep(.1)


def free_port() -> int:
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return int(s.getsockname()[1])


def rlm(folder: Path, *words: str) -> str:
    "A command as `docker compose exec rlm rlm …` runs it."
    done = subprocess.run(["rlm", *words], cwd=folder / "data", env=container(folder, 0), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@pytest.mark.nightly
def test_a_container_starts_stops_starts_again_and_survives_a_restore(tmp_path: Path) -> None:
    port = free_port()
    env = container(tmp_path, port)
    assert health(port, env) == 1
    refused = subprocess.run(START, cwd=tmp_path / "data", env=env, capture_output=True, text=True, check=False)
    assert refused.returncode == 1 and "rlm tokens add" in refused.stderr
    asking = {"Authorization": f"Bearer {rlm(tmp_path, 'tokens', 'add')}"}
    address = f"http://127.0.0.1:{port}/v1/memories"
    with started(tmp_path, port) as process:
        assert httpx.post(address, json={"text": "The spare key is with Mina.", "id": "key"}, headers=asking).status_code == 201
        assert httpx.get(f"{address}/key").status_code == 401
        for _ in range(3):
            rlm(tmp_path, "db", "backup", str(tmp_path / "backups"), "--keep", "2")
        process.send_signal(getattr(signal, of("STOPSIGNAL")[0]))
        _, told = process.communicate(timeout=60)
        assert process.returncode in (0, -signal.SIGTERM)
        lines = [json.loads(line) for line in told.decode().splitlines() if line.startswith("{")]
        assert {line["status"] for line in lines} >= {200, 201, 401} and "Mina" not in told.decode()
    backups = sorted((tmp_path / "backups").iterdir())
    assert len(backups) == 2
    with started(tmp_path, port):
        changed = httpx.patch(f"{address}/key", json={"text": "It is lost."}, headers=asking)
        assert changed.json()["text"] == "It is lost."
        rlm(tmp_path, "db", "restore", str(backups[-1]), "--yes")
        assert httpx.get(f"{address}/key", headers=asking).json()["text"] == "The spare key is with Mina."


@pytest.mark.nightly
@pytest.mark.skipif(CADDY is None, reason="needs caddy: apt install caddy, or its binary on the path")
def test_the_proxy_serves_tls_and_waits_for_a_server_that_restarts(tmp_path: Path) -> None:
    port, front = free_port(), free_port()
    options = f"admin off\n\thttp_port {free_port()}\n\thttps_port {front}\n\tskip_install_trust"
    env = {"HOME": str(tmp_path), "XDG_DATA_HOME": str(tmp_path / "tls"), "PATH": os.environ["PATH"], "RLM_SITE": "localhost",
           "RLM_UPSTREAM": f"127.0.0.1:{port}", "RLM_CADDY": options}
    container(tmp_path, port)
    asking = {"Authorization": f"Bearer {rlm(tmp_path, 'tokens', 'add')}"}
    assert CADDY is not None
    with open(tmp_path / "caddy.log", "wb") as log, subprocess.Popen(
            [CADDY, "run", "--config", str(DEPLOY / "Caddyfile"), "--adapter", "caddyfile"], env=env, stderr=log) as caddy:
        try:
            root = tmp_path / "tls" / "caddy" / "pki" / "authorities" / "local" / "root.crt"
            end = monotonic() + 60
            with started(tmp_path, port) as process:
                while not root.exists():
                    assert monotonic() < end, (tmp_path / "caddy.log").read_text()
                    sleep(.1)
                wait_for(front, caddy)
                trusted = ssl.create_default_context(cafile=str(root))
                with httpx.Client(base_url=f"https://localhost:{front}", verify=trusted, headers=asking, timeout=60) as client:
                    assert client.post("/v1/memories", json={"text": "Over TLS.", "id": "tls"}).status_code == 201
                    page = client.get("/")
                    assert page.status_code == 200 and page.headers["strict-transport-security"] == "max-age=31536000"
                    process.terminate()
                    process.wait(60)
                    again = subprocess.Popen(START, cwd=tmp_path / "data", env=container(tmp_path, port), stderr=subprocess.DEVNULL)
                    try:
                        assert client.get("/v1/memories/tls").json()["text"] == "Over TLS."
                    finally:
                        again.terminate()
                        again.wait(60)
        finally:
            caddy.terminate()


def test_the_image_is_built_of_what_is_there() -> None:
    for rest in of("COPY"):
        words = [w for w in rest.split() if not w.startswith("--")]
        if "--from=build" not in rest:
            assert all((ROOT / w).exists() for w in words[:-1]), rest
            assert all(f"!{w}" in (ROOT / ".dockerignore").read_text().splitlines() for w in words[:-1]), rest
    settings = ConfigParser(delimiters=["="])
    settings.read(ROOT / "settings.ini", encoding="utf-8")
    extras = next(rest for rest in of("ARG") if rest.startswith("EXTRAS=")).removeprefix("EXTRAS=").split(",")
    assert extras and all(f"{name}_extra" in settings["DEFAULT"] for name in extras)


def test_every_variable_is_a_setting() -> None:
    known = {v for meta in KNOWN.values() for v in meta.get("env", ())} | {f"RLM_{name.upper()}" for name in KNOWN}
    known |= {"RLM_SITE", "RLM_UPSTREAM", "RLM_CADDY", "RLM_MEMORY"}  # names of the proxy and the compose file alone
    known |= {"RLM_OWNER_PASSWORD", "RLM_APP_PASSWORD"}  # names of the roles of PostgreSQL
    for file in DEPLOY.iterdir():
        used = set(re.findall(r"\bRLM_[A-Z_]+", file.read_text(encoding="utf-8")))
        assert used <= known, (file.name, used - known)


def test_the_compose_file_agrees_with_the_image() -> None:
    services = yaml.safe_load((DEPLOY / "compose.yaml").read_text(encoding="utf-8"))["services"]
    assert (DEPLOY / services["rlm"]["build"]["context"] / services["rlm"]["build"]["dockerfile"]).exists()
    targets = {v.partition(":")[2] for v in services["rlm"]["volumes"]}
    assert targets == set(json.loads(of("VOLUME")[0])) == {v.partition(":")[2] for v in services["backup"]["volumes"]}
    assert services["rlm"]["expose"] == of("EXPOSE") and services["proxy"]["environment"]["RLM_UPSTREAM"] == f"rlm:{of('EXPOSE')[0]}"
    assert "ports" not in services["rlm"], "the proxy alone is reached from outside"
    for name in ("rlm", "backup"):
        assert services[name]["read_only"] and services[name]["cap_drop"] == ["ALL"] and services[name]["image"] == "rlm"
    command = re.search(r"rlm (.+?); done", services["backup"]["command"][-1])
    assert command and CliRunner().invoke(main, [*command[1].split(), "--help"]).exit_code == 0


def test_the_compose_file_of_postgresql_starts_what_there_is_in_order() -> None:
    plain, more = (yaml.safe_load((DEPLOY / name).read_text(encoding="utf-8"))["services"]
                   for name in ("compose.yaml", "compose.postgres.yaml"))
    assert {"rlm", "backup"} <= plain.keys() & more.keys() and all(d in more for s in more.values() for d in s.get("depends_on", ()))
    for name in ("tables", "rlm"):
        assert CliRunner().invoke(main, [*more[name]["command"][1:], "--help"]).exit_code == 0
    role = urlsplit(more["rlm"]["environment"]["RLM_DB_PATH"]).username
    assert more["tables"]["command"][-1] == role and urlsplit(more["tables"]["command"][3]).username != role
    assert f"CREATE ROLE {role}" in more["prepare"]["command"][-1] and "ports" not in more["postgres"]


UNITS = ("rlm.service", "rlm-backup.service", "rlm-backup.timer")


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="needs systemd-analyze: apt install systemd")
def test_systemd_takes_the_units_and_finds_them_hardened(tmp_path: Path) -> None:
    for name in UNITS:
        (tmp_path / name).write_text((DEPLOY / name).read_text(encoding="utf-8").replace("/opt/rlm/bin/rlm", str(BIN / "rlm")))
    seen = subprocess.run(["systemd-analyze", "verify", *(str(tmp_path / n) for n in UNITS)], capture_output=True, text=True, check=False)
    assert seen.returncode == 0 and str(tmp_path) not in seen.stderr, seen.stderr
    for name in UNITS[:2]:
        command = ["systemd-analyze", "security", "--offline=true", "--threshold=25", str(tmp_path / name)]
        seen = subprocess.run(command, capture_output=True, text=True, check=False)
        assert seen.returncode == 0, seen.stdout.splitlines()[-1]


def test_the_backup_unit_makes_a_backup(tmp_path: Path) -> None:
    unit = (DEPLOY / "rlm-backup.service").read_text(encoding="utf-8")
    words = re.search(r"^ExecStart=/opt/rlm/bin/rlm (.*)$", unit, re.M)
    assert words and CliRunner().invoke(main, ["memory", "write", "kept", "--db", str(tmp_path / "memory.db")]).exit_code == 0
    command = [w.replace("/var/backups/rlm", str(tmp_path / "backups")) for w in words[1].split()]
    (tmp_path / "backups").mkdir()
    other = tmp_path / "backups" / "memory-of-another-20250101T000000000000Z.db"
    other.write_bytes(b"")
    for _ in range(15):
        assert CliRunner().invoke(main, [*command, "--db", str(tmp_path / "memory.db")]).exit_code == 0
    assert len(list((tmp_path / "backups").glob("memory-2*.db"))) == 14 and other.exists()


def test_the_dashboard_asks_for_figures_that_are_there() -> None:
    worker: Any = SimpleNamespace(waiting=3, embedded=5, error=None)
    metrics = Metrics(lambda: AnchorCounters(), lambda: worker, "rlm")
    metrics.requests.labels("GET", "/v1/memories", "200").inc()
    metrics.seconds.labels("/v1/memories").observe(.01)
    metrics.count_search("cache", .01)
    there = set(re.findall(r"^(rlm_\w+)", metrics.page().decode(), re.M))
    dashboard = json.loads((DEPLOY / "grafana.json").read_text(encoding="utf-8"))
    exprs = [t["expr"] for panel in dashboard["panels"] for t in panel["targets"]]
    asked = {name for expr in exprs for name in re.findall(r"\brlm_\w+", expr)}
    assert asked and asked <= there, asked - there
    families = {re.sub(r"_(total|bucket|count|sum|created)$", "", name) for name in there}
    assert {re.sub(r"_(total|bucket|count|sum)$", "", name) for name in asked} == families, "every figure has a panel"
    boxes = [(p["gridPos"]["x"], p["gridPos"]["y"]) for p in dashboard["panels"]]
    assert len(set(boxes)) == len(boxes) and len({p["id"] for p in dashboard["panels"]}) == len(boxes)
    [job] = yaml.safe_load((DEPLOY / "prometheus.yml").read_text(encoding="utf-8"))["scrape_configs"]
    assert job["metrics_path"] == "/metrics" and job["static_configs"][0]["targets"] == ["127.0.0.1:8377"]


def test_the_table_of_sizes_says_what_was_measured() -> None:
    "Each cell is linked to its row of a result; `test_claims.py` compares the figures."
    page = (ROOT / "docs" / "deployment.md").read_text(encoding="utf-8")
    columns = ("store", "index files", "memory of its own", "files in memory", "index built", "search", "write")
    rows = {size: re.findall(r'results/speed\.json "([^"]+)"', cells) for size, cells in re.findall(r"^\| ([\d,]+) \|(.+)$", page, re.M)}
    assert rows == {size: [f"{name}, {size} memories" for name in columns] for size in ("1,000", "10,000", "100,000", "1,000,000")}
    result = json.loads((ROOT / "nbs/95_bench/results/embedding.json").read_text(encoding="utf-8"))
    [vectors] = [row["value"] for row in result["rows"] if row["name"] == "passages"]
    assert re.search(rf"makes \[?{vectors:g}\b", page)
