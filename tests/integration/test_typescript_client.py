"The TypeScript client against a server: its verbs, its routes, and types made from the OpenAPI page."
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from serving import serving

from rlm.service.http.tokens import TokenFile

pytestmark = pytest.mark.usefixtures("bare")
CLIENT = Path(__file__).parents[2] / "clients" / "ts"


def test_types_and_routes_are_those_of_the_openapi_page(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", [str(root / "tools"), *sys.path])
    import ts_client
    page = ts_client.page()
    assert ts_client.TARGET.read_text(encoding="utf-8") == ts_client.types(page["components"]["schemas"]), "run tools/ts_client.py"
    routes = re.findall(r'^  (\w+): \["(\w+)", "(/v1[^"]*)"\]', (CLIENT / "index.js").read_text(encoding="utf-8"), re.M)
    known = {(method.upper(), re.sub(r"{\w+}", "{}", path)) for path, methods in page["paths"].items() for method in methods}
    assert len(routes) == 29
    assert [verb for verb, method, path in routes if (method, re.sub(r"{\w+}", "{}", path)) not in known] == []
    declared = (CLIENT / "index.d.ts").read_text(encoding="utf-8")
    assert [verb for verb, _, _ in routes if f"  {verb}(" not in declared] == []


@pytest.mark.skipif(shutil.which("node") is None, reason="needs node")
def test_the_client_does_what_it_says(tmp_path: Path) -> None:
    book = TokenFile(tmp_path / "tokens")
    (token, _), (reader, _) = book.add(["default", "서윤", "가" * 60], ["write", "admin"]), book.add("default", ["read"])
    with serving(tmp_path / "memory.db", tokens=book, serve_rate=0) as running:
        env = os.environ | {"RLM_URL": running.url, "RLM_TOKEN": token, "RLM_READER": reader}
        done = subprocess.run(["node", "--test", "test/"], cwd=CLIENT, env=env, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "pass 7" in done.stdout
