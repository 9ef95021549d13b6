"Files of strategies come from anybody: what a pack may say, what it may not, and what becomes of what is known here."

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from rlm.agent.learning.pipeline import promote
from rlm.agent.memory.packs import (
    candidates,
    ensure_packs,
    export_pack,
    import_items,
    pack_text,
    pack_version,
    read_authored,
    read_pack,
    read_strategies,
    read_yaml,
    refusal,
    shipped_pack,
)
from rlm.agent.memory.stores import JSONStrategyStore, SQLiteStrategyStore, open_memory
from rlm.agent.memory.strategy import (
    CONTENT_LIMIT,
    Judgment,
    StoredRun,
    Strategy,
    StrategyStore,
    make_item,
    redact_strategy,
)
from rlm.core.errors import InvalidInput, NotFound
from rlm.core.promotion import PromotionPolicy
from rlm.store.sqlite.database import SQLiteDatabase
from rlm.store.storage import SQLStorage

pytestmark = pytest.mark.usefixtures("bare")
SECRET = "password = Xk29!qqpl7"
CODE = "Look.\n\n```repl\nfor c in {entity}:\n  FINAL(c)\n```"


@pytest.fixture(params=["sqlite", "file"])
def backend(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[StrategyStore]:
    "An empty memory of either kind."
    if request.param == "file":
        yield JSONStrategyStore(tmp_path / "memory.json")
        return
    with_rows = SQLiteStrategyStore(SQLStorage(SQLiteDatabase(":memory:")))
    yield with_rows
    with_rows.close()


def line(item: Strategy, pack: str = "mine_v1", **more: Any) -> str:
    "A pack of one strategy, with more in it than a pack has."
    told = json.loads(pack_text([item], pack))
    return json.dumps(told | more | {"provenance": told["provenance"] | more.get("provenance", {})})


def only(backend: StrategyStore) -> Strategy:
    [found] = backend.items()
    return found


# ---------------------------------------------------------------- versions

@pytest.mark.parametrize("name", ["x_v" + "9" * 5000, "x_v1234567890", "core_v1", None, 3, ["x_v2"]])
def test_no_name_of_a_pack_stops_the_store(name: Any, backend: StrategyStore) -> None:
    assert 0 <= pack_version(name) < 10**9
    item = shipped_pack("core_v1")[0]
    import_items(backend, read_pack(line(item, provenance={"pack": name})))
    assert len(ensure_packs(backend).refused) == 0


def test_versions_are_compared_within_one_pack_only(backend: StrategyStore) -> None:
    item = make_item(title="t", content="c")

    def told(pack: str) -> str:
        import_items(backend, read_pack(line(replace(item, description=f"by {pack}"), pack)))
        return only(backend).description
    assert [told(p) for p in ("core_v2", "mine_v9", "core_v1", "core_v2", "core_v3", "mine_v9", "mine_v10", "core_v3")] == [
        "by core_v2", "by mine_v9", "by mine_v9", "by mine_v9", "by core_v3", "by core_v3", "by mine_v10", "by mine_v10"]
    before = backend.items()
    assert told("core_v3") == told("mine_v10") == "by mine_v10"
    assert backend.items() == before, "import is idempotent"


# ---------------------------------------------------------------- what a pack may say

def test_a_pack_brings_no_counters_and_no_runs(backend: StrategyStore) -> None:
    claims = {"source": "extracted", "run_id": "r-1", "trajectory_id": "t-1", "confidence": "high",
              "earlier": ["mine_v3"], "curriculum_id": "prov_v1"}
    counts = {"access_count": 500, "success_count": 500, "failure_count": 2}
    odd = line(make_item(title="t", content="c", source_type="success"), **counts, status="held", task_query="whose?", provenance=claims)
    import_items(backend, read_pack(odd))
    kept = only(backend)
    assert (kept.access_count, kept.success_count, kept.failure_count, kept.status, kept.task_query) == (0, 0, 0, "ltm", None)
    assert kept.provenance == {"source": "pack", "pack": "mine_v1", "curriculum_id": "prov_v1"}


def test_a_file_of_candidates_brings_none_either(tmp_path: Path, backend: StrategyStore) -> None:
    entry = {"title": "t", "content": "c", "success_count": 500, "task_query": "q", "provenance": {"source": "extracted", "run_id": "r"}}
    for pack in ("mine_v1", None):
        (file := tmp_path / "c.yaml").write_text(yaml.safe_dump({"pack": pack, "strategies": [entry]}))
        [item] = read_strategies(file)
        assert (item.success_count, item.task_query) == (0, None)
        assert item.provenance == ({"source": "pack", "pack": pack} if pack else {})


# ---------------------------------------------------------------- what was learned here

def learned(backend: StrategyStore, **more: Any) -> Strategy:
    "A strategy that a run taught, on trial."
    item = make_item(title="Subclasses", content=CODE, source_type="success", examples=["What is below {entity}?"],
                     provenance={"source": "extracted", "run_id": "r-1", "trajectory_id": "t-1", "confidence": "medium"}, **more)
    backend.save_artifacts(StoredRun("r-1", "t-1", "q", "a", 1, True, {}, Judgment(True, "yes", "high")), [item])
    return item


def reviewed(backend: StrategyStore, folder: Path, **edits: Any) -> Strategy:
    "What is in the store after a person has edited its candidates."
    found = yaml.safe_load(candidates(backend.items(), "mine_v1"))
    found["strategies"] = [{**entry, "keep": True, **edits} for entry in found["strategies"]]
    (file := folder / "candidates.yaml").write_text(yaml.safe_dump(found))
    import_items(backend, read_strategies(file), reviewed=True)
    return only(backend)


@pytest.mark.parametrize("edits", [{"description": "All below"}, {"content": CODE.replace("  FINAL", "    FINAL")}, {}])
def test_a_review_counts_and_keeps_what_taught_it(backend: StrategyStore, tmp_path: Path, edits: dict[str, Any]) -> None:
    item = learned(backend)
    now = reviewed(backend, tmp_path, **edits)
    assert now.memory_id == item.memory_id and now.status == "ltm" and refusal(now) == ""
    assert now.description == edits.get("description", item.description)
    assert now.content == edits.get("content", item.content).strip() + "\n"
    assert {k: now.provenance[k] for k in item.provenance} == dict(item.provenance), "the run that taught it"
    backend.save_artifacts(StoredRun("r-2", "t-2", "q", "a", 1, True, {}, Judgment(False, "no", "high")), (), [(now, 1.0)])
    backend.save_artifacts(StoredRun("r-3", "t-3", "q", "a", 1, True, {}, Judgment(False, "no", "high")), (), [(now, 1.0)])
    assert promote(backend, PromotionPolicy()) == {item.memory_id: "hot"}, "the gate still looks at it"


def test_a_pack_describes_what_was_learned_here_and_leaves_it_on_trial(backend: StrategyStore) -> None:
    item = learned(backend)
    better = replace(item, description="All below")
    assert import_items(backend, read_pack(pack_text([better], "mine_v1"))).updated == (item.memory_id,)
    now = only(backend)
    assert now.status == "hot" and now.description == "All below" and now.provenance["source"] == "extracted"
    runs = [StoredRun(f"r-{n}", f"u-{n}", "q", "a", 1, True, {}, Judgment(True, "yes", "high")) for n in range(5)]
    for run in runs:
        backend.save_artifacts(run, (), [(now, 1.0)])
    assert promote(backend, PromotionPolicy()) == {item.memory_id: "ltm"}


def test_a_held_strategy_is_not_freed_by_a_review(backend: StrategyStore, tmp_path: Path) -> None:
    item = learned(backend)
    backend.update(replace(only(backend), status="held"))
    assert reviewed(backend, tmp_path, description="x").status == "held" and only(backend).memory_id == item.memory_id


def test_a_mended_indentation_arrives(backend: StrategyStore) -> None:
    item = make_item(title="t", content=CODE)
    correct_spelling = replace(item, content=item.content.replace("  FINAL", "    FINAL"))
    assert correct_spelling.memory_id == item.memory_id
    import_items(backend, read_pack(pack_text([item], "mine_v1")))
    assert import_items(backend, read_pack(pack_text([correct_spelling], "mine_v2"))).updated == (item.memory_id,)
    assert only(backend).content == correct_spelling.content
    assert import_items(backend, read_pack(pack_text([item], "mine_v1"))).unchanged == (item.memory_id,)
    assert import_items(backend, read_pack(pack_text([correct_spelling], "mine_v2"))).unchanged == (item.memory_id,)


def test_a_mended_content_is_found_in_the_store(tmp_path: Path) -> None:
    backend = open_memory(tmp_path / "m.db")
    assert isinstance(backend, SQLiteStrategyStore)
    item = make_item(title="List things", content=CODE, examples=["list {entity}"])
    backend.add(item)
    backend.update(replace(only(backend), title="list Things", content=CODE.replace("  FINAL", "    FINAL") + "\n"))
    [record] = backend.store.get([item.memory_id], "default")
    assert record.title == "list Things" and "    FINAL" in record.text and record.version == 2
    assert [i.memory_id for i, _ in backend.retrieve("list Activity")] == [item.memory_id]
    backend.close()


# ---------------------------------------------------------------- credentials

def test_a_pack_with_a_credential_is_known_the_second_time(backend: StrategyStore) -> None:
    text = pack_text([make_item(title="t", content=f"Log in: {SECRET}"), make_item(title="u", content="c", description=SECRET)], "mine_v1")
    reports = [import_items(backend, read_pack(text)) for _ in range(3)]
    assert [len(r.added) for r in reports] == [2, 0, 0] and [len(r.unchanged) for r in reports] == [0, 2, 2]
    assert set(reports[0].added) == {i.memory_id for i in backend.items()}, "the ids that are told are there"


FULL = {"title": 160, "description": 600, "content": CONTENT_LIMIT, "examples": 240, "task_query": 10_000, "tags": 512}


@pytest.mark.parametrize("back", [0, 4, 11, 18])
@pytest.mark.parametrize("field", FULL)
def test_what_was_redacted_can_be_read_again(field: str, back: int, backend: StrategyStore, tmp_path: Path) -> None:
    end = " pin: 1234" + " y" * (back // 2)
    said = ("x " * 6000)[:FULL[field] - len(end)] + end
    given: dict[str, Any] = {"title": "t", "content": "c", field: [said] if field in ("examples", "tags") else said}
    assert backend.add(item := make_item(**given))
    kept = only(backend)
    again = make_item(**{n: getattr(kept, n) for n in ("title", "description", "content", "examples", "task_query", "tags", "scope")})
    assert again.memory_id == kept.memory_id and again == replace(kept, created_at=None, provenance={}), "within its limits"
    shown = getattr(kept, field)
    shown = shown if isinstance(shown, str) else shown[0]
    assert "1234" not in shown and shown.count("[") == shown.count("]"), "no note is cut in two"
    assert import_items(backend, read_pack(pack_text([item], "mine_v1"))).added == ()
    if isinstance(backend, JSONStrategyStore):
        assert open_memory(backend.path).items() == [kept]


def test_a_person_judges_a_run_once_in_either_kind_of_memory(backend: StrategyStore) -> None:
    backend.add(item := make_item(title="t", content="c"))
    run = StoredRun("r-1", "t-1", "q", "a", 1, True, {}, Judgment(True, "A second route agrees.", "medium"))
    backend.save_artifacts(run, retrieved=[(item, 1.0)], credited=[item.memory_id])
    assert (only(backend).success_count, only(backend).failure_count) == (1, 0)
    backend.judge_run("t-1", Judgment(False, "A person said: no.", "high"), [item.memory_id])
    assert (only(backend).success_count, only(backend).failure_count) == (0, 1) and str(backend.runs()[0].judgment).count("no")
    with pytest.raises(InvalidInput, match="judged already: failure"):
        backend.judge_run("t-1", Judgment(True, "yes", "high"), [item.memory_id])
    with pytest.raises(NotFound):
        backend.judge_run("t-2", Judgment(True, "yes", "high"), [])


def test_labels_are_cut_after_redaction_too() -> None:
    label = "x" * 500 + " pin: 1234"
    kept = redact_strategy(make_item(title="t", content="c", scope={"tools": [label]}))
    assert make_item(title="t", content="c", scope=kept.scope).memory_id == kept.memory_id
    assert redact_strategy(odd := make_item(title="t", content="c", tags=["b", "a"])) is odd


def test_a_file_of_another_limit_is_read_as_it_is(tmp_path: Path) -> None:
    store = JSONStrategyStore(tmp_path / "m.json")
    long = Strategy("t" * 200, "", "c" * 9000, examples=("e" * 300,), scope={"note": "x"})
    assert store.add(long) and JSONStrategyStore(store.path).items() == store.items()
    assert "no store would take it" in refusal(long) and export_pack(store, "mine_v1").items == ()
    for field, odd in [("title", 3), ("tags", "ab"), ("status", "x"), ("access_count", -1), ("source_type", "pack"), ("more", 1)]:
        found = json.loads(store.path.read_text())
        found["strategies"][0][field] = odd
        (bad := tmp_path / "bad.json").write_text(json.dumps(found))
        with pytest.raises(Exception, match="is no memory of strategies"):
            JSONStrategyStore(bad)


def test_a_content_of_exactly_the_limit_goes_round() -> None:
    item = make_item(title="t", content="c" * CONTENT_LIMIT)
    assert read_pack(pack_text([item], "mine_v1"))[0].content == item.content
    with pytest.raises(InvalidInput, match="8,001"):
        make_item(title="t", content="c" * (CONTENT_LIMIT + 1))


# ---------------------------------------------------------------- bytes, and what YAML makes of odd words

def test_the_same_strategy_is_the_same_bytes() -> None:
    scopes = [{"ontology": None, "slots": {"entity": "class", "number": "number"}, "tools": ["a"]},
              {"tools": ["a"], "slots": {"number": "number", "entity": "class"}, "ontology": None}]
    came = [{"written_by": "Mina", "task_id": "t"}, {"task_id": "t", "written_by": "Mina"}]
    items = [make_item(title="t", content="c", scope=s, provenance=p) for s, p in zip(scopes, came, strict=True)]
    assert items[0].memory_id == items[1].memory_id and pack_text(items[:1], "mine_v1") == pack_text(items[1:], "mine_v1")


@pytest.mark.parametrize("odd", ["!!bool maybe", '!!int ""', "!!timestamp foo", '!!float ""', "!!int _", "1:" + "59:" * 400 + "0.5",
                                 "1:" + "59:" * 100_000 + "0", "1" * 401, "!!set [a]", "!!binary é", "!!python/name:os.system"])
@pytest.mark.parametrize("read", [lambda t: read_yaml(t, "file"), lambda t: read_authored(f"strategies:\n- title: {t}\n  content: c")])
def test_yaml_that_means_nothing_is_refused_in_a_sentence(odd: str, read: Callable[[str], object]) -> None:
    with pytest.raises(InvalidInput, match="can't be read as YAML"):
        read(odd)
