"Strategies pass the write guard like all that is stored, whoever wrote them and wherever they are kept."

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from rlm.agent.extraction import extract_memories
from rlm.agent.judge import extract_trajectory_artifact
from rlm.agent.memory_file import MemoryStore, open_memory
from rlm.agent.memory_store import SQLiteMemoryBackend
from rlm.agent.models import ScriptedModel
from rlm.agent.packs import shipped_pack, shipped_packs
from rlm.agent.procedural_memory import Experience, Judgment, MemoryBackend, make_item, safe_item
from rlm.agent.trajectory import Step, ToolCall, Trajectory
from rlm.core.errors import InvalidInput
from rlm.core.settings import Settings
from rlm.store.database import Database
from rlm.store.sqlite import SQLiteBackend

pytestmark = pytest.mark.usefixtures("bare")
KEY = "sk-" + "a1B2c3D4e5F6g7H8" * 2
ITEM = make_item(title=f"Log in with {KEY}", description=f"Uses {KEY}.", content=f"Send {KEY}.", examples=[f"what is {KEY}", "who am I"],
                 task_query=f"does {KEY} work?", source_type="success")
RUN = Trajectory(f"What is {KEY}?", (Step(1, "", f"found = search_entity('{KEY}')\nFINAL(found)", value=KEY,
                 calls=(ToolCall("search_entity", repr(KEY), "{}"), ToolCall("FINAL", "found", "None"))),),
                 KEY, True, "answered", value=KEY)


def test_a_strategy_loses_its_credentials_and_keeps_its_shape() -> None:
    kept = safe_item(ITEM)
    assert KEY not in repr((kept.title, kept.description, kept.content, kept.examples, kept.task_query))
    assert len(kept.examples) == 2 and kept.examples[1] == "who am I" and kept.provenance["flags"] and kept.memory_id != ITEM.memory_id
    assert safe_item(kept).memory_id == kept.memory_id and safe_item(kept).examples == kept.examples
    assert safe_item(ITEM, "allow").content == ITEM.content
    plain = make_item(title="Look up", content="Run it.")
    assert safe_item(plain) is plain
    with pytest.raises(InvalidInput, match="holds a"):
        safe_item(ITEM, "refuse")


@pytest.mark.parametrize("open_one", [lambda folder: SQLiteMemoryBackend(SQLiteBackend(Database(folder / "memory.db"))),
                                      lambda folder: MemoryStore(folder / "memory.json")], ids=["sqlite", "file"])
def test_no_backend_stores_a_credential(open_one: Callable[[Path], MemoryBackend], tmp_path: Path) -> None:
    backend = open_one(tmp_path)
    assert backend.add(ITEM) and not backend.add(ITEM)
    [kept] = backend.items()
    backend.update(replace(kept, description=f"Now {KEY}.", examples=(f"is {KEY} mine",)))
    [kept] = backend.items()
    assert "redacted" in kept.description and "redacted" in kept.examples[0]
    if isinstance(backend, SQLiteMemoryBackend):
        backend.close()
    assert KEY.encode() not in b"".join(p.read_bytes() for p in tmp_path.iterdir())


SAID = f'{{"strategies": [{{"title": "Use {KEY}", "description": "d", "content": "c {KEY}"}}]}}'


@pytest.mark.parametrize("model", [None, ScriptedModel([SAID])])
def test_what_a_run_teaches_holds_none(model: ScriptedModel | None) -> None:
    items = extract_memories(RUN, Judgment(True, "It does.", "high"), model=model)
    assert items and all(KEY not in repr((i.title, i.description, i.content, i.examples, i.task_query)) for i in items)


def test_the_shipped_packs_have_nothing_to_hide() -> None:
    for name in shipped_packs():
        assert all(safe_item(item) is item for item in shipped_pack(name))


DONE = Experience("r-1", "t-1", RUN.task, KEY, 1, True, extract_trajectory_artifact(RUN), Judgment(False, f"No, {KEY}.", "low", (KEY,)),
                  notes=f"비밀번호는 hunter2x9! and {KEY}")


@pytest.mark.parametrize("mode", ["redact", "refuse", "allow"])
@pytest.mark.parametrize("name", ["memory.db", "memory.json"])
def test_a_run_is_kept_without_credentials_unless_they_are_allowed(name: str, mode: str, tmp_path: Path) -> None:
    backend = open_memory(tmp_path / name, settings=Settings(secrets=mode))
    backend.save_artifacts(DONE)
    [kept] = backend.experiences()
    if isinstance(backend, SQLiteMemoryBackend):
        backend.close()
    bytes_there = b"".join(p.read_bytes() for p in tmp_path.iterdir())
    if mode == "allow":
        assert kept == DONE and KEY.encode() in bytes_there
        return
    assert KEY.encode() not in bytes_there and b"hunter2x9" not in bytes_there
    assert kept.task == "What is [redacted: token]?" and kept.answer == "[redacted: token]" and kept.judgment is not None
    assert kept.judgment.missing == ("[redacted: token]",) and kept.artifact["steps"][0]["calls"] == ["search_entity", "FINAL"]
    assert kept.artifact["converged"] is True and kept.trajectory_id == "t-1"
