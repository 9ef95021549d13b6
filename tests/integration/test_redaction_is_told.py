"A secret is cut out before a memory is stored, and whoever wrote it is told of which kind it was, never what it was."
import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("mcp", reason="the extra mcp is not installed")
pytest.importorskip("fastapi", reason="the extra serve is not installed")

from click.testing import CliRunner
from mcp import Client
from serving import serving

import rlm
from rlm import Memory
from rlm.service.cli import main
from rlm.service.mcp.mcp_server import memory_server
from rlm.service.mcp.sources import LocalMemory

pytestmark = pytest.mark.usefixtures("bare")

SECRET, CARD = "hunter2!Zebra", "4111 1111 1111 1111"
TEXT = f"A note about the boat, the shed, the bees and the long wall of the orchard. The password is {SECRET}"
KOREAN = f"카드 번호는 {CARD} 이고 비밀번호는 {SECRET} 이다"


def test_python_tells_it_by_the_memory_that_it_returns() -> None:
    with Memory(":memory:", embedder="none") as memory:
        kept = memory.write(TEXT)
        assert kept.redacted == ("password",) and "redacted=['password']" in repr(kept) and SECRET not in repr(kept)
        assert memory.write(KOREAN).redacted == ("card number", "password")
        assert memory.write("Bees.", extra={"password": SECRET}).redacted == ("password",)
        assert [r.redacted for r in memory.add_conversation([("Mina", TEXT), ("Mina", "I keep bees.")])] == [("password",), ()]
        assert memory.update(kept.id, text="The boat is blue.").redacted == () == memory.write("A [redacted: token] is shown.").redacted
        said = str(memory.companion.observe(f"Remember that I live in Busan. The password of my bank is {SECRET}"))
        assert said.endswith(", without the password") and SECRET not in said
    with Memory(":memory:", embedder="none", secrets="allow") as memory:
        assert memory.write(TEXT).redacted == ()


def test_the_command_line_tells_it_beside_what_it_prints(tmp_path: Path) -> None:
    def run(*words: str, input: str | None = None) -> Any:
        done = CliRunner().invoke(main, [*words, "--db", str(tmp_path / "m.db")], input)
        assert done.exit_code == 0 and SECRET not in done.output, done.output
        return done
    said = "Cut out before it was stored: "
    assert f"{said}password" in run("memory", "write", TEXT, "--id", "boat").stderr
    assert f"{said}card number, password" in run("memory", "update", "boat", "--text", KOREAN).stderr
    assert f"{said}password" in run("conversation", "add", "-", input=json.dumps([{"text": TEXT}])).stderr
    told = run("memory", "write", TEXT + " too", "--json")
    assert json.loads(told.stdout)[0]["redacted"] == ["password"] and said in told.stderr
    assert said not in run("memory", "write", "I keep bees.").stderr


def test_a_server_and_a_remote_memory_tell_it(tmp_path: Path) -> None:
    with serving(tmp_path / "m.db", serve_rate=0) as running, running.client() as client:
        said = f"Remember that I live in Busan. The password of my bank is {SECRET}"
        for path, body in (("/v1/memories", {"text": TEXT, "id": "boat"}), ("/v1/observe", {"text": said})):
            answer = client.post(path, json=body)
            assert SECRET not in answer.text and answer.json()["redacted"] == ["password"], answer.text
        assert client.patch("/v1/memories/boat", json={"text": KOREAN}).json()["redacted"] == ["card number", "password"]
        turns = client.post("/v1/conversations", json={"turns": [{"text": TEXT}, {"text": "I keep bees."}]}).json()["items"]
        assert [t.get("redacted") for t in turns] == [["password"], None]
        assert rlm.connect(running.url).write(TEXT + " too").redacted == ("password",)


def test_an_assistant_is_told_of_which_kind_it_was() -> None:
    with Memory(":memory:", embedder="none") as memory:
        async def session() -> list[Any]:
            async with Client(memory_server(LocalMemory(memory))) as client:
                saved = (await client.call_tool("memory_save", {"text": TEXT})).structured_content
                changed = (await client.call_tool("memory_update", {"id": saved["memory"]["id"], "text": KOREAN})).structured_content
                plain = (await client.call_tool("memory_save", {"text": "Mina keeps bees."})).structured_content
                return [saved["note"], changed["note"], plain.get("note")]
        assert [*map(str, asyncio.run(session()))] == [
            "A secret was cut out before it was stored: password. Do not save passwords, keys or card numbers.",
            "A secret was cut out before it was stored: card number, password. Do not save passwords, keys or card numbers.", "None"]
