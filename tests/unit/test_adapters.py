"What adapters do without their framework: a sentence says how to get it, and a history that is handed over again is kept once."
import importlib
import json
import sys
from pathlib import Path

import pytest

import rlm
from rlm import Memory
from rlm.adapters.memory_files import MemoryFiles
from rlm.adapters.pages import check_memory
from rlm.adapters.sessions import AgentSession, TranscriptStore
from rlm.core.errors import InvalidInput, MissingExtra
from rlm.service.writer import split_resent

NEEDS = {"agent_framework": ("agent_framework", "'rlm[agent_framework]'"), "crewai_storage": ("crewai", "crewai"),
         "google_adk": ("google.adk", "'rlm[adk]'"), "langgraph": ("langgraph.store.base", "'rlm[langgraph]'"),
         "langgraph_checkpoints": ("langgraph.checkpoint.base", "'rlm[langgraph]'"),
         "llama_index": ("llama_index.core", "'rlm[llama_index]'"),
         "memory_tool": ("anthropic", "anthropic"), "pydantic_ai": ("pydantic_ai_harness", "'rlm[pydantic_ai]'")}


@pytest.mark.parametrize("module", NEEDS)
def test_an_adapter_says_how_its_framework_is_installed(module: str, monkeypatch: pytest.MonkeyPatch) -> None:
    package, brings = NEEDS[module]
    for name in [n for n in sys.modules if n == package or n.startswith(f"{package}.")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, package.partition(".")[0], None)
    monkeypatch.delitem(sys.modules, f"rlm.adapters.{module}", raising=False)
    with pytest.raises(MissingExtra) as missing:
        importlib.import_module(f"rlm.adapters.{module}")
    assert str(missing.value).endswith(f"needs the package {package}, which is not installed. Install it with: pip install {brings}")
    assert isinstance(missing.value, ImportError)  # what a program tries an optional import with


ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("part", ["adapters", "crewai"])
def test_the_page_names_the_frameworks_of_the_last_run_and_none_failed(part: str) -> None:
    ran = json.loads((ROOT / "tests" / "adapters" / "results.json").read_text(encoding="utf-8"))[part]
    page = (ROOT / "docs" / "adapters.md").read_text(encoding="utf-8").partition("## What to know")[2].lower()
    assert ran["passed"] and not ran["failed"] and ran["versions"]
    assert [name for name in ran["versions"] if name not in page] == []
    assert all(f"make {other}" in why for other in {"adapters", "crewai"} - {part} for why in ran["skipped"])


HISTORY = [("user", "Do you like tea?"), ("assistant", "Yes."), ("user", "And coffee?"), ("assistant", "Yes.")]
HANDED: dict[str, tuple[list[tuple[str, str]], list[tuple[str, str]]]] = {  # what a framework hands over after HISTORY → what is new in it
    "the newest turns alone": ([("user", "And milk?"), ("assistant", "Yes.")], [("user", "And milk?"), ("assistant", "Yes.")]),
    "the same answer again": ([("assistant", "Yes.")], [("assistant", "Yes.")]),
    "all": (HISTORY, []),
    "all and more": ([*HISTORY, ("user", "And milk?")], [("user", "And milk?")]),
    "without its beginning": ([*HISTORY[1:], ("user", "And milk?")], [("user", "And milk?")]),
    "without answers": ([HISTORY[0], HISTORY[2], ("user", "And milk?")], [HISTORY[2], ("user", "And milk?")]),
    "with a summary of its beginning": ([("assistant", "Tea was liked."), *HISTORY[2:], ("user", "And milk?")],
                                        [("assistant", "Tea was liked."), ("user", "And milk?")]),
    "its last question edited": ([*HISTORY[:2], ("user", "And cocoa?"), ("assistant", "No.")],
                                 [("user", "And cocoa?"), ("assistant", "No.")]),
    "its first question edited": ([("user", "Is tea good?"), *HISTORY[1:]], [("user", "Is tea good?")]),
}


@pytest.mark.parametrize("case", HANDED)
def test_a_history_handed_over_again_is_kept_once(case: str) -> None:
    handed, wanted = HANDED[case]
    with Memory(":memory:", embedder="none") as memory:
        memory.add_conversation([{"role": role, "text": text} for role, text in HISTORY], "monday")
        memory.add_conversation([{"role": "user", "text": "And milk?"}], "tuesday")
        turns = [{"role": role, "text": text} for role, text in handed]
        new = split_resent(memory.backend, memory.writer.prepare_turns(turns, "monday", {}), history=True)[1]
        assert [(t.role, t.text) for t in new] == wanted
        memory.add_conversation(turns, "monday", history=True)
        assert [(r.role, r.text) for r in reversed(memory.list(100, session="monday"))] == [*HISTORY, *wanted]
        again = split_resent(memory.backend, memory.writer.prepare_turns(
            [{"role": role, "text": text} for role, text in wanted], "monday", {}), history=True)[1] if len(wanted) > 1 else []
        assert again == []  # one turn alone may be said again
        assert len(memory.add_conversation([{"role": "user", "text": "And milk?"}], history=True)) == 1


@pytest.mark.parametrize("erase", [False, True])
@pytest.mark.parametrize("gone", [[0], [1], [2], [3], [1, 2], [2, 3], [0, 1, 2, 3]])
@pytest.mark.parametrize("handed", [[0, 1, 2, 3], [1, 2, 3], [0, 2], [2, 3], [0, 1, 3]])
def test_a_history_handed_over_again_brings_back_nothing_that_was_deleted(handed: list[int], gone: list[int], erase: bool) -> None:
    talk = [{"role": role, "text": text} for role, text in [*HISTORY[:3], ("assistant", "No.")]]
    with Memory(":memory:", embedder="none") as memory:
        stored = memory.add_conversation(talk, "monday")
        memory.delete([stored[n].id for n in gone], erase=erase)
        left = [r.id for r in memory.list(100, session="monday")]
        sent = [*(talk[n] for n in handed), {"role": "user", "text": "And milk?"}]
        memory.add_conversation(sent, "monday", history=True)
        memory.add_conversation(sent, "monday", history=True)
        texts = [r.text for r in reversed(memory.list(100, session="monday"))]
        assert not {talk[n]["text"] for n in gone} & set(texts) and texts[-1] == "And milk?"
        if handed not in ([0, 2], [0, 1, 3]):  # a turn that is left, and stands alone there, may be said again
            assert [r.id for r in memory.list(100, session="monday")][1:] == left


def test_a_turn_told_otherwise_here_stays_so_when_a_history_is_handed_over_again() -> None:
    talk = [{"role": role, "text": text} for role, text in HISTORY]
    with Memory(":memory:", embedder="none") as memory:
        stored = memory.add_conversation(talk, "monday")
        memory.update(stored[2].id, text="And black coffee?")
        for sent in (talk, [talk[0], talk[2]], [*talk[1:], {"role": "user", "text": "And milk?"}]):
            memory.add_conversation(sent, "monday", history=True)
        assert [r.text for r in reversed(memory.list(100, session="monday"))] == [
            "Do you like tea?", "Yes.", "And black coffee?", "Yes.", "And milk?"]


@pytest.mark.parametrize("given", ["x.db", Path("x.db"), None, Memory, rlm.connect("http://127.0.0.1:1")], ids=str)
def test_an_adapter_takes_an_open_memory_alone_and_says_so_at_once(given: object, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for make in (MemoryFiles, TranscriptStore, lambda memory: AgentSession("chat-7", memory)):
        with pytest.raises(InvalidInput, match=r"Memory\(") as wrong:
            make(given)
    assert isinstance(given, str | Path) == ("Open it: Memory('x.db')" in str(wrong.value)) and not any(tmp_path.iterdir())


def test_an_adapter_that_only_calls_a_memory_takes_one_behind_a_server() -> None:
    check_memory(rlm.connect("http://127.0.0.1:1"), remote=True)
    with pytest.raises(InvalidInput):
        check_memory("x.db", remote=True)
