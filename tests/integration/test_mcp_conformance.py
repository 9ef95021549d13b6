"The conformance suite of MCP, from npm, against `rlm mcp --http`: each scenario ends as the page says."
import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest

pytest.importorskip("mcp", reason="the extra mcp is not installed")
from test_mcp_http import mcp_serving

pytestmark = [pytest.mark.usefixtures("bare"), pytest.mark.filterwarnings("ignore::ResourceWarning"), pytest.mark.heavy]
SUITE, NODE = "@modelcontextprotocol/conformance@0.1.16", "node@22.23.3"  # the suite needs Node 22; npm brings one


def test_each_scenario_does_what_the_page_says(root: Path, tmp_path: Path) -> None:
    npm = shutil.which("npm")
    if npm is None:
        pytest.skip("npm is not installed")
    page = (root / "docs" / "mcp.md").read_text(encoding="utf-8")
    told = {name: cells[2].strip() for line in page.splitlines() if line.startswith("| `") and len(cells := line.split("|")) == 5
            for name in re.findall("`([a-z0-9-]+)`", cells[1])}
    subprocess.run([npm, "install", "--no-audit", "--prefix", str(tmp_path), NODE, SUITE], check=True, capture_output=True, timeout=300)
    modules = tmp_path / "node_modules"
    program = modules / "@modelcontextprotocol" / "conformance" / "dist" / "index.js"
    with mcp_serving(tmp_path / "memory.db") as url:
        subprocess.run([modules / ".bin" / "node", program, "server", "--url", url, "--suite", "all", "-o", tmp_path / "out"], check=False,
                       capture_output=True, timeout=300)  # it ends with 1: the sample's tools are not here
    found = {re.sub("^server-|-[0-9]{4}-[0-9]{2}-[0-9]{2}T.*$", "", f.parent.name): json.loads(f.read_text(encoding="utf-8"))
             for f in (tmp_path / "out").glob("*/checks.json")}
    passed = {name for name, checks in found.items() if checks and all(c["status"] in ("SUCCESS", "INFO") for c in checks)}
    assert len(found) == 32 and passed == {name for name in found if told[name].startswith("passes")}
