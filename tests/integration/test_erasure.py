"""Erasure is whole: after `delete(…, erase=True)` no byte beside the store tells what the memory said.

The proof reads the files: the database, its write-ahead log, its shared memory, and whatever else lies in the folder. It
looks for the texts themselves in UTF-8, for each of their distinctive words, and for the terms that the index made of
them."""
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from rlm import Memory
from rlm.core.clock import ManualClock, SystemClock
from rlm.core.errors import StoreBusy, StoreError
from rlm.core.text import tokens
from rlm.store.runs import RunTable
from rlm.store.sqlite.database import restore

# No word of these is a part of any other word in the tests or the schema.
WORDS = {"text": "zwiebelkuchen", "title": "quarzsand", "summary": "frostbeule", "tag": "xylofonist", "speaker": "wuchtbrumme",
         "extra": "jodphosphat", "scope": "mauerqualle", "provenance": "kolkrabe", "category": "pfauenauge", "formal": "nachtijglu",
         "update": "dromedarhuf", "korean": "뀕뷁쒧", "neighbour": "galgenvogel"}
AT = "2026-01-01T00:00:00.000000Z"


def trajectory(id: str, question: str, answer: str, log: str | None = None) -> dict[str, object]:
    "A row of the run r."
    return {"trajectory_id": id, "run_id": "r", "task_query": question, "final_answer": answer, "iteration_count": 1, "converged": 1,
            "artifact_json": "{}", "rlm_log_path": log, "created_at": AT}


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
    (tmp_path / "store").mkdir()
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


KILLED = """
import os, sys
from datetime import UTC, datetime
from rlm.store import SQLiteDatabase, SQLStorage
from rlm.store import erasure
path, id, step = sys.argv[1:]
def die(*args, **kwargs): os._exit(9)
real = erasure.scrub
if step == "after": erasure.remove_logs = die
else: setattr(*{"files": (erasure.DerivedFiles, "drop"), "bytes": (erasure, "scrub")}[step], die)
SQLStorage(SQLiteDatabase(path)).erase([id], "default", datetime.now(UTC))
"""


@pytest.mark.parametrize("step", ["files", "bytes", "after"])
def test_an_erasure_that_was_killed_is_finished_at_the_next_opening(tmp_path: Path, step: str) -> None:
    path, log = tmp_path / "store" / "memory.db", tmp_path / "logs" / "rlm_x.jsonl"
    path.parent.mkdir()
    log.parent.mkdir()
    log.write_text(f'{{"kind": "start", "task": "{WORDS["text"]}"}}\n')
    with Memory(path, embedder="none") as store:
        fill(store, 2500)  # large enough for an index file
        id = secret(store)
        with store.backend.transaction():
            RunTable(store.backend.db).put_run({"run_id": "r", "namespace": "default", "created_at": AT})
            RunTable(store.backend.db).put_trajectory(trajectory("t-1", "q", "a", str(log)))
        store.update(id, provenance={"trajectory_id": "t-1"})
        assert store.search(WORDS["text"])[0].id == id
    with Memory(path, embedder="none"):
        pass
    assert traces(path.parent, [WORDS["text"]])
    killed = subprocess.run([sys.executable, "-c", KILLED, str(path), id, step], check=False)
    assert killed.returncode == 9 and log.exists()
    if step != "after":
        assert traces(path.parent, [WORDS["text"]]), "the erasure was over before it was killed"
    with Memory(path, embedder="none", read_only=True) as looking:
        assert len(looking.check()) == 1 and "is not finished" in looking.check()[0]
        assert not looking.search(WORDS["text"])
    with Memory(path, embedder="none") as store:
        assert traces(tmp_path, list(WORDS.values())) == [] and not log.exists() and store.check() == []
        assert store.backend.db.query("SELECT * FROM pending_scrubs") == [] and len(store.recent(1000)) == 1000
    assert traces(tmp_path, list(WORDS.values())) == []


def test_erasing_again_finishes_what_could_not_be_finished(store: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    id = secret(store)

    def refuse(*args: object) -> None:
        raise StoreBusy("not now")
    with monkeypatch.context() as patch:
        patch.setattr("rlm.store.erasure.scrub", refuse)
        with pytest.raises(StoreBusy, match="traces of them are left"):
            store.delete(id, erase=True)
        with Memory(store.backend.db.path, embedder="none") as second:  # opens all the same
            assert "is not finished" in second.check()[0]
    assert traces(folder_of(store), [WORDS["text"]])
    assert store.delete(id, erase=True) == 0
    assert traces(folder_of(store), list(WORDS.values())) == [] and store.check() == []


def test_a_log_that_can_not_be_removed_is_named_and_the_file_is_rewritten_once(store: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    id = secret(store)
    with monkeypatch.context() as patch:
        patch.setattr("rlm.store.erasure.remove_logs", lambda paths: ["/logs/rlm_x.jsonl"])
        with pytest.raises(StoreError, match=r"rlm_x\.jsonl"):
            store.delete(id, erase=True)
        patch.setattr("rlm.store.erasure.scrub", lambda *args: pytest.fail("rewritten again"))
        with Memory(store.backend.db.path, embedder="none") as second:
            assert len(second.check()) == 1
    assert traces(folder_of(store), list(WORDS.values())) == []
    Memory(store.backend.db.path, embedder="none").close()
    assert store.check() == []


def test_what_was_deleted_before_a_moment_is_purged(tmp_path: Path) -> None:
    clock = ManualClock("2026-01-01")
    with Memory(tmp_path / "memory.db", embedder="none", clock=clock) as memory:
        fill(memory)
        old, kept = secret(memory), memory.write(WORDS["update"]).id
        present = memory.write("It is present, and was changed.").id
        memory.delete(old)
        clock.advance(days=10)
        memory.delete(kept)
        memory.update(present, text="It is present, and was changed again.")
        clock.advance(days=10)
        assert memory.backend.purge("default", clock.now() - timedelta(days=15), clock.now()) == 1
        assert traces(tmp_path, [w for name, w in WORDS.items() if name != "update"]) == []
        assert memory.get(kept, as_of="2026-01-05T00:00:00Z").text == WORDS["update"]
        assert len(memory.history(present).versions) == 2 and memory.check() == []
        assert memory.backend.purge("default", clock.now() - timedelta(days=5), clock.now()) == 1
        assert traces(tmp_path, [WORDS["update"]]) == [] and memory.backend.purge("default", clock.now(), clock.now()) == 0


def test_a_namespace_is_erased_in_one_call(tmp_path: Path) -> None:
    log = tmp_path / "rlm_x.jsonl"
    log.write_text('{"kind": "start", "task": "eberesche"}\n')
    path = tmp_path / "memory.db"
    with Memory(path, embedder="none") as mine, Memory(path, embedder="none", namespace="team") as team:
        fill(mine)
        kept = mine.write("Tea at six.", id="kept")
        fill(team, 2500)
        team.update(secret(team), text=WORDS["update"])
        gone = team.write(WORDS["neighbour"], session="s").id
        team.delete(gone)
        team.anchors.set("A", team.recent(1)[0].id)
        with team.backend.transaction():
            RunTable(team.backend.db).put_run({"run_id": "r", "namespace": "team", "created_at": AT, "notes": "eberesche"})
            RunTable(team.backend.db).put_trajectory(trajectory("t-1", "eberesche", "eberesche", str(log)))
        assert team.search(WORDS["update"]) and mine.search("tea at six")[0].id == "kept"
        with Memory(path, embedder="none", namespace="team") as elsewhere:
            assert len(elsewhere.search("tea")) == 10
            assert [(n.name, n.memories, n.deleted, n.runs) for n in mine.backend.namespaces()] == [
                ("default", 201, 0, 0), ("team", 2501, 1, 1)]
            assert mine.backend.erase_namespace("team", mine.clock.now()) == 2502
            assert not elsewhere.search("tea") and not team.search("tea") and elsewhere.recent(1) == []
            assert [e.kind for e in elsewhere.history(gone).events] == ["erase"]
        assert [n.name for n in mine.backend.namespaces()] == ["default"]
        assert mine.check() == [] and mine.get("kept") == kept and mine.search("tea at six")[0].id == "kept"
    assert traces(tmp_path, [*WORDS.values(), "eberesche"]) == [] and not log.exists()


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
    path.parent.mkdir()
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
    word, db = WORDS["text"], store.backend.db
    with store.backend.transaction():
        assert RunTable(db).put_run({"run_id": "r", "namespace": "default", "created_at": AT})
        for name in ("t-1", "t-2", "t-3"):
            answer = "There is tea." if name == "t-3" else f"There is {word}."
            RunTable(db).put_trajectory(trajectory(name, answer, answer))
    memory = store.write(f"There is {word}.", provenance={"trajectory_id": "t-1"})
    store.update(memory.id, provenance={"trajectory_id": "t-2"})
    store.update(memory.id, provenance={"source": "human"})
    store.delete(memory.id, erase=True)
    assert [t["final_answer"] for t in RunTable(db).read("default")] == [None, None, "There is tea."]
    assert traces(folder_of(store), [word]) == []


def test_the_questions_that_were_logged_go_with_what_answered_them(tmp_path: Path) -> None:
    with Memory(tmp_path / "memory.db", embedder="none", namespace="mina") as memory:
        dish = memory.write(f"The dish of Mina is {WORDS['text']}.").id
        memory.write("The kettle is blue.")
        for words in (f"dish {WORDS['title']}", f"kettle dish {WORDS['summary']}", f"nothing of {WORDS['tag']}"):
            memory.searcher.record(memory.search(words), "rest", "caller")
        memory.ctx.recalls.flush()
        assert len(memory.ctx.recalls.table.read("mina")) == 3
        memory.delete(dish, erase=True)
        assert not traces(tmp_path, [WORDS["text"], WORDS["title"], WORDS["summary"]])
        assert traces(tmp_path, [WORDS["tag"]]), "what found something else stays until its namespace goes"
        memory.admin.erase_namespace("mina")
        assert not traces(tmp_path, [WORDS["tag"], "kettle"]) and not memory.ctx.recalls.table.read("mina")
