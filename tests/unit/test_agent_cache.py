"What a run keeps in files that can be made again: believed only when whole, never somebody's words, shared by processes."

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from rlm.agent import run
from rlm.agent.memory import retrieval
from rlm.agent.memory.packs import is_shipped, shipped_pack
from rlm.agent.memory.retrieval import ExampleCache, ExampleIndex
from rlm.agent.memory.strategy import Strategy
from rlm.agent.ontology import rdf_client
from rlm.core.files import MOST_CACHED, read_cached, write_cached

OWN = Strategy("How many keys are under the mat", "Asks about the mat.", "```repl\nFINAL(1)\n```",
               examples=("where is the spare zwiebelschlüssel",))


def asked(folder: Path, question: str = "Find all subclasses of Activity") -> str:
    return run(question, "prov", folder / "memory.db", model="case-based", cache=folder / "cache").answer


def test_the_second_run_parses_nothing_and_takes_nothing_apart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    retrieval._indexes.clear()
    first = asked(tmp_path)
    retrieval._indexes.clear()  # as in a new process
    monkeypatch.setattr(rdf_client.RemoteGraph, "load", lambda self: pytest.fail("the ontology was parsed again"))
    monkeypatch.setattr(retrieval, "ridge", lambda *_: pytest.fail("the regression was solved again"))
    assert asked(tmp_path) == first and "prov:Publish" in first


@pytest.mark.parametrize("harm", [lambda b: b[:-5], lambda b: b.replace(b"prov", b"evil"), lambda b: b"", lambda b: b"\n" + b])
def test_a_damaged_file_is_made_again(tmp_path: Path, harm: object) -> None:
    assert callable(harm)
    first = asked(tmp_path)
    for file in (tmp_path / "cache").rglob("*.*"):
        file.write_bytes(harm(file.read_bytes()))
    retrieval._indexes.clear()
    assert asked(tmp_path) == first
    assert all(read_cached(f) is not None for f in (tmp_path / "cache").rglob("*.*"))


def test_what_was_learned_here_stands_in_no_such_file_and_is_found(tmp_path: Path) -> None:
    cache, items = ExampleCache(tmp_path, is_shipped), [*shipped_pack("core_v1"), OWN]
    index = cache.index(items)
    assert not any(b"zwiebel" in f.read_bytes() or b"mat" in f.read_bytes().split() for f in tmp_path.iterdir())
    same = ExampleIndex(items)
    question = retrieval.analyze_question("Where is the spare zwiebelschlüssel?")
    found, wanted = index.component_scores(question), same.component_scores(question)
    assert max(found["regression"], key=lambda i: found["regression"][i]) == OWN.memory_id
    assert found["regression"] == pytest.approx(wanted["regression"])


def test_a_file_scores_as_what_it_was_made_of(tmp_path: Path) -> None:
    items = shipped_pack("core_v1")
    fresh = ExampleIndex(items)
    ExampleCache(tmp_path, is_shipped).index(items)
    retrieval._indexes.clear()
    again = ExampleCache(tmp_path, is_shipped).index(items)
    for text in ("Which classes have no subclasses?", "Role의 상위 클래스는?", "How many properties has Plan?"):
        a = retrieval.analyze_question(text)
        assert again.component_scores(a) == fresh.component_scores(a)
        assert [again.coverage(a, i) for i in again.ids] == [fresh.coverage(a, i) for i in fresh.ids]


def test_writers_at_the_same_time_leave_a_whole_file_and_the_oldest_go(tmp_path: Path) -> None:
    def write(n: int) -> bool:
        return write_cached(tmp_path / f"{n % 3}.bin", bytes([n % 3]) * 100_000)
    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(write, range(60)))
    assert all(read_cached(tmp_path / f"{n}.bin") == bytes([n]) * 100_000 for n in range(3))
    for n in range(MOST_CACHED + 5):
        write_cached(tmp_path / f"k{n}.bin", b"x")
    assert len(list(tmp_path.glob("*.bin"))) == MOST_CACHED and not list(tmp_path.glob("*.part*"))


def test_a_folder_that_cannot_be_written_costs_time_only(tmp_path: Path) -> None:
    (tmp_path / "cache").write_text("a file where the folder should be")
    assert "prov:Publish" in asked(tmp_path)
