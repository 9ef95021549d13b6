"""Erasure is whole: after `delete(…, erase=True)` no byte beside the store tells what the memory said.

The proof reads the files: the database, its write-ahead log, its shared memory, and whatever else lies in the folder. It
looks for the texts themselves in UTF-8, for each of their distinctive words, and for the terms that the index made of
them."""
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from rlm import Memory
from rlm.core.clock import SystemClock
from rlm.core.errors import StoreBusy
from rlm.core.text import tokens
from rlm.store.sqlite.database import restore
from rlm.store.sqlite.runs import RunRow, RunTable, TrajectoryRow

# No word of these is a part of any other word in the tests or the schema.
WORDS = {"text": "zwiebelkuchen", "title": "quarzsand", "summary": "frostbeule", "tag": "xylofonist", "speaker": "wuchtbrumme",
         "extra": "jodphosphat", "scope": "mauerqualle", "provenance": "kolkrabe", "category": "pfauenauge", "formal": "nachtijglu",
         "update": "dromedarhuf", "korean": "뀕뷁쒧", "neighbour": "galgenvogel"}


def traces(folder: Path, words: Iterator[str] | list[str]) -> list[str]:
    "Which of the words, or of the terms the index makes of them, are in any file of the folder; and where."
    found = []
    needles = {needle for word in words for needle in (word, *tokens(word)) if len(needle) > 2 or not needle.isascii()}
    for file in sorted(folder.rglob("*")):
        if file.is_file():
            data = file.read_bytes().lower()
            found += [f"{needle!r} in {file.name}" for needle in sorted(needles) if needle.encode() in data]
    return found


def fill(memory: Memory, count: int = 200) -> None:
    "Other memories, before and after, so that pages and index segments are shared."
    memory.write_many([{"text": f"Ordinary note number {i} about tea and trains.", "tags": ["ordinary"]} for i in range(count)])


def secret(memory: Memory) -> str:
    "A memory that has a telling word in every field."
    return memory.write(f"{WORDS['text']} and {WORDS['korean']}에서", title=WORDS["title"], summary=WORDS["summary"], tags=[WORDS["tag"]],
                        speaker=WORDS["speaker"], category=WORDS["category"], formal=WORDS["formal"], extra={"k": WORDS["extra"]},
                        scope={"k": WORDS["scope"]}, provenance={"k": WORDS["provenance"]}).id


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Memory]:
    "A store in a folder of its own."
    with Memory(tmp_path / "store" / "memory.db", busy_timeout_s=1, embedder="none") as memory:
        fill(memory)
        yield memory


def folder_of(memory: Memory) -> Path:
    return Path(memory.backend.db.path).parent


def test_the_search_for_traces_finds_what_is_there(store: Memory) -> None:
    secret(store)
    there = " ".join(traces(folder_of(store), list(WORDS.values())))
    assert all(repr(WORDS[name]) in there for name in WORDS.keys() - {"update", "neighbour"})


def test_every_field_is_gone(store: Memory) -> None:
    id = secret(store)
    fill(store)
    assert store.delete(id, erase=True) == 1
    assert traces(folder_of(store), list(WORDS.values())) == []
    assert store.check() == []


def test_old_versions_are_gone(store: Memory) -> None:
    id = secret(store)
    store.update(id, text=WORDS["update"], tags=["other"], title="another title", extra={})
    fill(store)
    store.update(id, text="a third text")
    store.delete(id, erase=True)
    assert traces(folder_of(store), list(WORDS.values())) == []
    assert store.history(id).versions == () and [e.kind for e in store.history(id).events] == ["write", "update", "update", "erase"]


def test_a_deleted_memory_can_be_erased_later(store: Memory) -> None:
    id = secret(store)
    store.delete(id)
    assert traces(folder_of(store), [WORDS["text"]])
    store.delete(id, erase=True)
    assert traces(folder_of(store), list(WORDS.values())) == []
    assert store.check() == []


def test_the_documents_of_neighbours_forget_it_too(store: Memory) -> None:
    turns = store.add_conversation([("Mina", "Shall we meet?"), ("Jonas", f"Yes, at the {WORDS['neighbour']}."), ("Mina", "Good.")])
    answer = store.write("I will bring bread.", reply_to=turns[1].id)
    assert {h.id for h in store.search(WORDS["neighbour"])} == {*(t.id for t in turns), answer.id}
    store.delete(turns[1].id, erase=True)
    assert traces(folder_of(store), [WORDS["neighbour"]]) == []
    assert not store.search(WORDS["neighbour"]) and store.get(turns[0].id) and store.check() == []
    assert store.get(answer.id).reply_to == turns[1].id


def test_a_whole_conversation_at_once(store: Memory) -> None:
    turns = store.add_conversation([("Mina", f"{WORDS['text']} {i}") for i in range(30)])
    assert store.delete([t.id for t in turns], erase=True) == 30
    assert traces(folder_of(store), [WORDS["text"]]) == [] and store.check() == []


def test_a_long_text_is_gone(store: Memory) -> None:
    id = store.write(" ".join([WORDS["text"]] * 20_000)).id  # many pages, and overflow pages of the index
    store.update(id, text=" ".join([WORDS["update"]] * 20_000))
    store.delete(id, erase=True)
    assert traces(folder_of(store), list(WORDS.values())) == []


def test_other_namespaces_keep_what_they_have(store: Memory) -> None:
    id = secret(store)
    with Memory(store.backend.db.path, namespace="other") as other:
        kept = other.write(f"{WORDS['text']} of another agent", id=id)
        store.delete(id, erase=True)
        assert other.get(id) == kept and [h.id for h in other.search(WORDS["text"])] == [id]
    assert traces(folder_of(store), [word for name, word in WORDS.items() if name != "text"]) == []


def test_while_others_have_the_store_open(store: Memory) -> None:
    id = secret(store)
    with Memory(store.backend.db.path) as second:
        assert second.get(id)  # its pages are in the other connection's cache
        reader = subprocess.Popen([sys.executable, "-c", "import sys; from rlm import Memory; m = Memory(sys.argv[1]); m.get(sys.argv[2]);"
                                   "print('read', flush=True); sys.stdin.readline(); print(len(m.recent(1000)), flush=True)",
                                   store.backend.db.path, id], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert reader.stdout and reader.stdout.readline() == "read\n"
        store.delete(id, erase=True)
        assert traces(folder_of(store), list(WORDS.values())) == []
        assert reader.communicate("go\n")[0] == "200\n" and reader.returncode == 0
        assert len(second.recent(1000)) == 200 and second.check() == []
    assert traces(folder_of(store), list(WORDS.values())) == []


def test_a_reader_that_holds_the_log_is_named_and_the_rest_can_be_done_later(store: Memory) -> None:
    id = secret(store)
    holding, release = threading.Event(), threading.Event()

    def read() -> None:
        with store.backend.snapshot():
            assert store.recent(1)
            holding.set()
            release.wait(30)

    reader = threading.Thread(target=read)
    reader.start()
    assert holding.wait(10)
    try:
        with pytest.raises(StoreBusy, match=r"deleted, but traces .* still reads .* log .*rlm db check --repair"):
            store.delete(id, erase=True)
        assert not store.search(WORDS["text"])
    finally:
        release.set()
        reader.join()
    assert traces(folder_of(store), list(WORDS.values())), "nothing was left, so there was nothing to complain about"
    store.backend.repair()
    assert traces(folder_of(store), list(WORDS.values())) == [] and store.check() == []


def test_an_erased_memory_is_not_in_a_backup_made_afterwards(store: Memory, tmp_path: Path) -> None:
    id = secret(store)
    store.delete(id, erase=True)
    (tmp_path / "copies").mkdir()
    store.backup(tmp_path / "copies" / "backup.db")
    store.export_jsonl(tmp_path / "copies" / "export.jsonl")
    assert traces(tmp_path, list(WORDS.values())) == []
    sound = sqlite3.connect(tmp_path / "copies" / "backup.db")
    assert sound.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    sound.close()


def test_a_store_has_one_place_by_whatever_name_it_is_opened(tmp_path: Path) -> None:
    (real := tmp_path / "real").mkdir()
    (home := tmp_path / "home").mkdir()
    (home / "m.db").symlink_to(real / "m.db")
    with Memory(home / "m.db", embedder="none") as memory:
        memory.write_many([{"text": f"note {i}", "id": f"n{i}"} for i in range(2500)])
        id = secret(memory)
        assert memory.search(WORDS["text"])[0].id == id
    assert [p.name for p in home.iterdir()] == ["m.db"] and list((real / "m.db.index").iterdir()), "the index is beside the file"
    with Memory(real / "m.db", embedder="none") as memory:
        memory.delete(id, erase=True)
    assert traces(tmp_path, list(WORDS.values())) == []
    with Memory(home / "m.db", embedder="none") as memory:
        memory.backup(tmp_path / "backup.db")
    (real / "m.db").write_bytes((real / "m.db").read_bytes()[:5000])
    kept = restore(tmp_path / "backup.db", home / "m.db", SystemClock().now())
    assert kept and kept.parent == real and (home / "m.db").is_symlink(), "a damaged one is moved aside, not the link to it"


def test_an_event_without_text_remains(store: Memory) -> None:
    id = secret(store)
    store.delete(id, erase=True)
    assert [(e.kind, dict(e.detail)) for e in store.history(id).events] == [("write", {}), ("erase", {"version": 1})]


@pytest.mark.parametrize("asks", [False, True])
@pytest.mark.parametrize("elsewhere", [False, True])
def test_attention_does_not_write_back_what_was_erased(tmp_path: Path, elsewhere: bool, asks: bool) -> None:
    path = tmp_path / "store" / "memory.db"
    with Memory(path, embedder="none", checkpoints="full") as memory, Memory(path, embedder="none", checkpoints="full") as other:
        fill(memory, 20)
        id = secret(memory)
        assert memory.recall(f"tea, or {WORDS['text']}?") and memory.attention.state.unsaved
        (other if elsewhere else memory).delete(id, erase=True)
        if asks:
            memory.recall("tea and trains")
            mind = memory.attention
            contexts = [s.context for s in mind.state.working_memory.slots.values()]
            assert WORDS["text"] not in str((contexts, mind.state.cache._exact, mind.state.cache._reworded, mind.state.pending))
    assert traces(tmp_path, list(WORDS.values())) == []
    with Memory(path, embedder="none", checkpoints="full") as memory:
        assert memory.recall("tea and trains")
        memory.attention.state.process_pending()
        assert memory.attention.state.working_memory.slots, "attention goes on"


def test_the_runs_that_earlier_versions_came_from_are_forgotten_too(store: Memory) -> None:
    run, db = RunRow("r", "default", "2026-01-01T00:00:00.000000Z"), store.backend.db
    word = WORDS["text"]
    with store.backend.transaction():
        assert RunTable(db).put_run(run)
        for name in ("t-1", "t-2", "t-3"):
            answer = "There is tea." if name == "t-3" else f"There is {word}."
            RunTable(db).put_trajectory(TrajectoryRow(name, "r", answer, answer, 1, 1, "{}", None, None, None, run.created_at))
    memory = store.write(f"There is {word}.", provenance={"trajectory_id": "t-1"})
    store.update(memory.id, provenance={"trajectory_id": "t-2"})
    store.update(memory.id, provenance={"source": "human"})
    store.delete(memory.id, erase=True)
    assert [t.final_answer for _, t, _ in RunTable(db).read("default")] == [None, None, "There is tea."]
    assert traces(folder_of(store), [word]) == []
