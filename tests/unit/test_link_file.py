"Links in a file beside the store: read quickly, believed only if it is this store's, and read in a thread where there is none."
import sqlite3
import threading
from pathlib import Path

import pytest

from rlm import Memory
from rlm.core.clock import ManualClock
from rlm.recall import graph as graphs
from rlm.store.edges import EdgeTable


@pytest.fixture(autouse=True)
def few_are_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(graphs, "SAVE_FROM", 5)
    monkeypatch.setattr(graphs, "SAVE_AFTER", 1)


def opened(path: Path) -> Memory:
    return Memory(path, embedder="none", clock=ManualClock("2026-11-21T09:00:00Z"))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    with opened(tmp_path / "m.db") as m:
        m.write_many([{"text": f"boat {n}", "id": f"b{n}", "session": f"s{n // 5}"} for n in range(20)])
        m.bootstrap(progress=False)
    return tmp_path / "m.db"


@pytest.fixture
def no_reading(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    "Counts how often all links were read from the database."
    read, links = list[int](), EdgeTable.links

    def counted(self: EdgeTable, namespace: str, seqs: object = None) -> object:
        read.extend([1] if seqs is None else [])
        return links(self, namespace, seqs)  # type: ignore[arg-type]
    monkeypatch.setattr(EdgeTable, "links", counted)
    return read


def files(path: Path) -> list[Path]:
    return sorted(Path(f"{path}.index").glob("links-*"))


@pytest.mark.seed("004 links-file")
def test_a_process_reads_the_links_from_their_file_and_what_came_later_from_the_store(path: Path, no_reading: list[int]) -> None:
    assert files(path)
    with opened(path) as m, opened(path) as other:
        other.link("b0", "b19", "x", .9)
        other.write("boat 20", id="b20", session="s3")
        found = {f"b{n}": m.graph.neighbors(f"b{n}") for n in range(21)}
        assert not no_reading and found["b0"][0][0] == "b19"
        assert m.check() == [] and no_reading, "the check has compared them with the database"
        files(path)[0].unlink()
    with opened(path) as m:
        assert {f"b{n}": m.graph.neighbors(f"b{n}") for n in range(21)} == found


@pytest.mark.seed("004 links-file")
def test_a_file_that_is_not_of_this_store_is_not_believed(path: Path, no_reading: list[int]) -> None:
    files(path)[0].write_bytes(files(path)[0].read_bytes()[:-100])
    with opened(path) as m:
        before = m.graph.neighbors("b0")
        assert before and no_reading
        m.bootstrap(progress=False)
        for n in range(6):
            m.link("b0", f"b{n + 9}", "x", .8)
        assert len(m.graph.neighbors("b0")) > len(before)
        m.graph.save(wait=True)
    with sqlite3.connect(path) as db:  # as if the last events had never reached the disk, and others had got their numbers
        db.execute("DELETE FROM edges WHERE relation = 'x'")
        db.execute("UPDATE events SET detail_json = '{}', subject = 'other' WHERE id = (SELECT max(id) FROM events)")
    db.close()
    no_reading.clear()
    with opened(path) as m:
        assert len(m.graph.neighbors("b0")) == len(before) and no_reading


def test_wrong_links_in_a_file_are_reported(path: Path) -> None:
    with sqlite3.connect(path) as db:
        db.execute("UPDATE edges SET weight = .5 WHERE src = (SELECT min(src) FROM edges)")  # past the events
    db.close()
    with opened(path) as m:
        assert [p for p in m.check() if "saved links" in p]


def test_an_erasure_takes_the_file_along(path: Path) -> None:
    with opened(path) as m:
        m.delete("b3", erase=True)
        assert not files(path) and "b3" not in dict(m.graph.neighbors("b2")) and m.check() == []


def test_while_links_are_read_a_search_from_an_anchor_asks_the_whole_index(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files(path)[0].unlink()
    go, links = threading.Event(), EdgeTable.links

    def slow(self: EdgeTable, namespace: str, seqs: object = None) -> object:
        assert threading.current_thread().name == "rlm-links" and go.wait(60)
        return links(self, namespace, seqs)  # type: ignore[arg-type]
    with opened(path) as m:
        m.anchors.set("A", "b0")
        plain = [h.id for h in m.search("boat 3", 5)]
        monkeypatch.setattr(EdgeTable, "links", slow)
        hits = m.search("boat 3", 5, slot="A")
        assert [h.id for h in hits] == plain and {h.layer for h in hits} == {""}
        assert m.anchors.state()[0].id == "b0" and m.anchors.state()[0].failures == 0, "nothing was found out about the anchor"
        go.set()
        m.graph.close()
        monkeypatch.undo()
        assert "anchor A" in {h.layer for h in m.search("boat 3", 5, slot="A")} and files(path)
