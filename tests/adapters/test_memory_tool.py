"""Anthropic's memory tool: the same replies as the tool that its SDK keeps in files, command by command."""

import random
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("anthropic.lib.tools", reason="needs anthropic: make adapters")

from anthropic.lib.tools import ToolError
from anthropic.tools import BetaLocalFilesystemMemoryTool

from rlm import Memory
from rlm.adapters.memory_tool import MemoryTool

PATHS = ["/memories/a.md", "/memories/메모.md", "/memories/p/b", "/memories/p/q/c", "/memories/p", "/memories", "/memories/none",
         "/etc/passwd", "/memories/../x"]
TEXTS = ["", "one", "one\ntwo\n", "하나\n둘\n셋", "two\ntwo\n\n", "\n"]


def random_command(rng: random.Random) -> dict[str, Any]:
    "A command as a model could give it; every second one is about a file that is likely to be there."
    path = rng.choice(PATHS[:4]) if rng.random() < .7 else rng.choice(PATHS)
    kind = rng.choice(["view", "create", "create", "str_replace", "insert", "delete", "rename"])
    fields: dict[str, Any] = {"path": path}
    if kind == "view" and rng.random() < .5:
        fields["view_range"] = rng.choice([[1, 2], [2, -1], [1, 1], [3, 9]])
    if kind == "create":
        fields["file_text"] = rng.choice(TEXTS)
    if kind == "str_replace":
        fields |= {"old_str": rng.choice(["one", "two", "하나", "none"]), "new_str": rng.choice(["", "둘", "a\nb"])}
    if kind == "insert":
        fields |= {"insert_line": rng.choice([-1, 0, 1, 2, 9]), "insert_text": rng.choice(["x", "y\n", "한\n글\n"])}
    if kind == "rename":
        fields = {"old_path": path, "new_path": rng.choice(PATHS)}
    return {"command": kind, **fields}


def reply(tool: Any, command: dict[str, Any]) -> str:
    "What a tool says; an error with the word error before it."
    try:
        return str(tool.call(command))
    except ToolError as e:
        return f"error: {e.content if hasattr(e, 'content') else e}"
    except OSError:  # the files' own: a path through a file, a directory moved into itself
        return "error: of the file system"


def is_listing(said: str) -> bool:
    "Whether a reply lists a directory: there sizes differ, and empty directories."
    return said.startswith("Here're the files")


@pytest.mark.parametrize("seed", range(20))
def test_the_replies_are_those_of_the_sdk(seed: int, tmp_path: Path) -> None:
    rng, theirs = random.Random(seed), BetaLocalFilesystemMemoryTool(str(tmp_path))
    with Memory(":memory:", embedder="none") as memory:
        ours = MemoryTool(memory)
        for n in range(60):
            # a directory without files is there for the SDK alone
            for folder in sorted(tmp_path.glob("memories/**/"), reverse=True):
                if folder.name != "memories" and not any(folder.iterdir()):
                    folder.rmdir()
            command = random_command(rng)
            mine, other = reply(ours, command), reply(theirs, command)
            if is_listing(other):
                assert is_listing(mine)
                names = [[line.split("\t")[1].rstrip("/") for line in said.splitlines()[1:]] for said in (mine, other)]
                assert sorted(names[0]) == sorted(names[1]), (n, command)
            elif other == "error: of the file system":
                assert mine.startswith("error: "), (n, command, mine)
            else:
                assert mine == other, (n, command)


def test_it_tells_the_api_what_it_is() -> None:
    with Memory(":memory:", embedder="none") as memory:
        assert MemoryTool(memory).to_dict() == {"type": "memory_20250818", "name": "memory"}
