"Through each interface a part of a memory is rejected, and the rest of it stays."
import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("mcp", reason="the extra mcp is not installed")
pytest.importorskip("fastapi", reason="the extra serve is not installed")

from click.testing import CliRunner
from mcp import Client
from mcp_types import ElicitResult
from serving import serving

import rlm
from rlm import Memory
from rlm.service.cli import main
from rlm.service.mcp.mcp_server import memory_server
from rlm.service.mcp.sources import LocalMemory

pytestmark = pytest.mark.usefixtures("bare")

TEXT, WRONG = "I live in Leeds, have a dog named Rex and work at Arup.", "I live in Leeds"
LEFT = "I have a dog named Rex and work at Arup. […]"


def test_the_command_line(tmp_path: Path) -> None:
    def run(*words: str) -> Any:
        done = CliRunner().invoke(main, [*words, "--db", str(tmp_path / "m.db")])
        assert done.exit_code == 0, done.output
        return done
    run("memory", "write", TEXT, "--id", "me")
    assert LEFT in run("review", "reject", "me", "--part", WRONG).stderr
    assert json.loads(run("memory", "show", "me", "--json").stdout)["text"] == LEFT
    run("review", "lift", "--memory", "me")
    run("memory", "restore", "me")
    assert json.loads(run("memory", "show", "me", "--json").stdout)["text"] == TEXT


def test_a_server_and_a_remote_memory(tmp_path: Path) -> None:
    with serving(tmp_path / "m.db", serve_rate=0) as running, running.client() as client:
        for id, body in (("one", {"id": "one", "part": WRONG}), ("two", {"text": WRONG})):
            assert client.post("/v1/memories", json={"text": TEXT.replace("Rex", f"Rex the {id}"), "id": id}).status_code == 201
            made = client.post("/v1/review/rejections", json=body)
            assert made.status_code == 201 and id in made.json()["note"]
            assert client.get(f"/v1/memories/{id}").json()["text"] == LEFT.replace("Rex", f"Rex the {id}")
            assert client.delete(f"/v1/review/rejections/{made.json()['id']}").status_code == 200
        assert client.post("/v1/review/rejections", json={"part": WRONG}).status_code == 422
        far = rlm.connect(running.url)
        kept = far.write(TEXT)
        assert LEFT in far.reject(kept.id, part=WRONG)["note"] and far.get(kept.id).text == LEFT


@pytest.mark.parametrize("yes", [True, False])
def test_an_assistant_names_the_part_and_the_person_is_asked(yes: bool) -> None:
    asked = list[str]()

    async def person(_context: Any, question: Any) -> ElicitResult:
        asked.append(question.message)
        return ElicitResult(action="accept", content={"reject": yes})
    with Memory(":memory:", embedder="none") as memory:
        id = memory.write(TEXT).id

        async def session() -> Any:
            async with Client(memory_server(LocalMemory(memory)), elicitation_callback=person) as client:
                return (await client.call_tool("memory_reject", {"id": id, "part": WRONG})).structured_content
        told = asyncio.run(session())
        assert len(asked) == 1 and WRONG in asked[0] and memory.get(id).text == (LEFT if yes else TEXT)
        assert (LEFT in told["note"]) == yes and len(memory.companion.rejections()) == yes


def test_where_no_person_can_be_asked_the_proposal_tells_which_part() -> None:
    with Memory(":memory:", embedder="none") as memory:
        id = memory.write(TEXT).id

        async def session() -> Any:
            async with Client(memory_server(LocalMemory(memory))) as client:
                await client.call_tool("memory_reject", {"id": id, "part": WRONG, "reason": "never"})
                return (await client.call_tool("memory_review", {})).structured_content
        assert WRONG in asyncio.run(session())["waiting"][0]["reason"] and memory.get(id).text == TEXT
