"The whole circle without a network: retrieve, inject, run, judge, extract, store, export; and what an erasure leaves of it."
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from rlm import Memory
from rlm.agent.casebased.policy import CaseBasedModel
from rlm.agent.learning.judge import read_expectation
from rlm.agent.learning.pipeline import (
    AgentConfig,
    RunRecord,
    Task,
    context_for,
    read_curriculum,
    rlm_run_with_memory,
    train,
)
from rlm.agent.loop.budget import RunLimits
from rlm.agent.loop.prompt import CONTEXT_LIMIT
from rlm.agent.memory.packs import ensure_packs, export_pack, read_pack, shipped_pack
from rlm.agent.memory.retrieval import format_memories_for_injection
from rlm.agent.memory.stores import SQLiteStrategyStore
from rlm.agent.memory.strategy import Judgment, make_item, memory_report
from rlm.agent.models.base import ScriptedModel, rough_tokens
from rlm.agent.ontology import OntologyContext, setup_ontology_context
from rlm.core.clock import ManualClock

ROOT = Path(__file__).resolve().parents[2]
LOOK = 'I look.\n```repl\nsearch_entity("Bundle")["total"]\n```'
ANSWER = 'Down.\n```repl\nFINAL([i["iri"] for i in hierarchy("prov:Entity", depth=1)["items"]])\n```'
JUDGED = '{"success": "yes", "reason": "the view shows them", "confidence": "high", "missing": []}'
TAUGHT = json.dumps({"strategies": [{
    "title": "One level down", "description": "Lists direct subclasses", "examples": ["what is right below {entity}?"],
    "content": "Ask for depth 1.\n```repl\nFINAL(hierarchy({entity}, depth=1)[\"items\"])\n```"}]})


@pytest.fixture(scope="module")
def prov() -> Iterator[OntologyContext]:
    with setup_ontology_context(ROOT / "ontology" / "prov.ttl", name="prov") as context:
        yield context


@pytest.fixture
def store(path: Path) -> Iterator[Memory]:
    with Memory(path, clock=ManualClock(), embedder="none") as opened:
        yield opened


def strategies(store: Memory) -> SQLiteStrategyStore:
    return SQLiteStrategyStore(store.backend, store.ctx.namespace, store.clock)


def rows(store: Memory, table: str) -> int:
    return int(store.backend.db.query(f"SELECT count(*) FROM {table}")[0][0])


@pytest.mark.seed("003 loop")
def test_the_circle_closes(store: Memory, prov: OntologyContext, tmp_path: Path) -> None:
    backend = strategies(store)
    ensure_packs(backend)
    critic = ScriptedModel([JUDGED, TAUGHT])
    setting = AgentConfig(ScriptedModel([LOOK, ANSWER]), critic=critic, log_dir=tmp_path / "logs")
    done = rlm_run_with_memory(Task("Which classes are right below Entity?"), backend, setting, prov)
    assert done.trajectory.converged and done.judgment.success is True and done.judgment.confidence == "medium"
    assert [i.title for i in done.learned] == ["One level down"] and done.retrieved
    counts = [rows(store, t) for t in ("runs", "trajectories", "judgments", "memory_usage", "memory_items")]
    assert counts == [1, 1, 1, len(done.retrieved), len(shipped_pack("core_v1")) + 1]
    kept = backend.runs()[0]
    assert kept.log_path and Path(kept.log_path).is_file() and kept.ontology_name == "prov" and kept.answer
    learned = backend.item(done.learned[0].memory_id)
    assert (learned.status, learned.source_type, learned.provenance["trajectory_id"]) == ("hot", "success", kept.trajectory_id)
    assert learned.memory_id in export_pack(backend, "mine_v1").refused, "it has not proved itself"
    for _ in range(5):
        store.record_usage(learned.memory_id, success=1)
    assert learned.scope["ontology"] == "prov" and learned.memory_id in export_pack(backend, "mine_v1").refused, "it is meant for prov"
    assert learned.memory_id in {i.memory_id for i in read_pack(export_pack(backend, "prov_v9", "prov").text)}


def test_the_prompt_says_what_it_may_say(store: Memory, prov: OntologyContext) -> None:
    backend, model = strategies(store), ScriptedModel([LOOK, ANSWER])
    ensure_packs(backend)
    task = Task("What are the direct subclasses of Entity?", read_expectation({"truth": True}))
    done = rlm_run_with_memory(task, backend, AgentConfig(model), prov)
    prompt = "\n".join(m.content for m in model.seen[0])
    assert "Assess whether it applies" in prompt and done.retrieved[0][0].memory_id in prompt and done.judgment.success is False
    assert [i.source_type for i in done.learned] == ["failure"]


def test_without_extraction_and_memory_nothing_is_kept(store: Memory, prov: OntologyContext) -> None:
    done = rlm_run_with_memory(Task("Below Entity?"), None, AgentConfig(ScriptedModel([LOOK, ANSWER])), prov)
    assert done.trajectory.converged and done.retrieved == () and rows(store, "runs") == 0
    setting = AgentConfig(ScriptedModel([LOOK, ANSWER]), extract=False)
    rlm_run_with_memory(Task("Below Entity?", read_expectation({"truth": True})), strategies(store), setting, prov)
    assert rows(store, "trajectories") == 1 and rows(store, "memory_items") == 0


@pytest.mark.parametrize("code", ["FINAL('a\\ud800b')", "print('a\\ud800b')\nFINAL('a\ud800b')", "FINAL([0] * 60 + [10**5000])",
                                  "FINAL('7' * 5000)"])
def test_what_no_file_can_hold_costs_no_run(store: Memory, code: str) -> None:
    "Halves of surrogate pairs, from the code, the model and the critic; integers that Python does not write."
    lines = ["```repl\n1 + 1\n```", f"```repl\n{code}\n```", "```repl\nFINAL('the second')\n```"]
    critic = ScriptedModel([r'{"success": "no", "reason": "it says \ud800", "confidence": "high", "missing": ["\udfff"]}'] * 2)
    done = rlm_run_with_memory(Task("q"), strategies(store), AgentConfig(ScriptedModel(lines), critic=critic))
    [kept] = strategies(store).runs()
    assert done.trajectory.converged and kept.answer in ("a\ufffdb", "the second", "7" * 5000)
    assert kept.judgment == Judgment(False, "it says \ufffd", "medium", ("\ufffd",))


@pytest.mark.parametrize("code", [
    'import tools\nx = hierarchy("prov:Agent", depth=1)["items"]\nFINAL([i["iri"] for i in x])',
    'f = hierarchy\nFINAL([i["iri"] for i in f("prov:Agent", depth=1)["items"]])',
    f'seen = {dict.fromkeys(range(1200))}\nFINAL([i["iri"] for i in hierarchy("prov:Agent", depth=1)["items"]])'])
def test_a_run_that_makes_no_strategy_is_kept(store: Memory, prov: OntologyContext, code: str) -> None:
    "No tool called by name, or far too long: nothing to learn, but an answer."
    task = Task("What is below Agent?", read_expectation({"terms": ["prov:Organization", "prov:Person", "prov:SoftwareAgent"]}))
    lines = [LOOK, f"```repl\n{code.replace('import tools', '1')}\n```"]
    done = rlm_run_with_memory(task, strategies(store), AgentConfig(ScriptedModel(lines)), prov)
    assert done.judgment.success is True and strategies(store).runs()[0].answer == done.answer
    assert [i.title for i in done.learned] == (["hierarchy({entity}, depth=1)"] if code.startswith("import") else [])


def test_a_fault_in_extraction_costs_no_run(store: Memory, prov: OntologyContext, monkeypatch: pytest.MonkeyPatch,
                                            caplog: pytest.LogCaptureFixture) -> None:
    def fail(*_: object, **__: object) -> None:
        raise RecursionError("too deep")
    monkeypatch.setattr("rlm.agent.learning.pipeline.extract_memories", fail)
    task = Task("What is below Entity?", read_expectation({"contains": ["prov:Bundle"]}))
    done = rlm_run_with_memory(task, strategies(store), AgentConfig(ScriptedModel([LOOK, ANSWER])), prov)
    [kept] = strategies(store).runs()
    assert kept == done.experience and kept.judgment == done.judgment and "RecursionError" in (kept.notes or "") and done.learned == ()
    [said] = caplog.records
    assert said.exc_info and kept.run_id in said.getMessage()


def test_what_was_not_shown_gets_no_credit(store: Memory, prov: OntologyContext) -> None:
    backend = strategies(store)
    examples = ["Which classes are right below {entity}?"]
    for title in "ab":
        backend.add(make_item(title=f"Right below {title}", content=f"Do {title}. " + "so " * 1800, examples=examples))
    task = Task("Which classes are right below Entity?", read_expectation({"contains": ["prov:Bundle"]}))
    model = ScriptedModel([LOOK, ANSWER])
    done = rlm_run_with_memory(task, backend, AgentConfig(model, memory_k=3, extract=False), prov)
    [(shown, _)] = done.retrieved
    assert "1 more left out" in model.seen[0][1].content
    assert [n for n, *_ in backend.usage()[done.experience.trajectory_id]] == [shown.memory_id]
    assert {i.memory_id: (i.access_count, i.success_count) for i in backend.items() if i.access_count} == {shown.memory_id: (1, 1)}


def test_judge_and_extraction_are_on_the_bill(store: Memory, prov: OntologyContext) -> None:
    def asked(tokens: int | None) -> tuple[RunRecord, int, int]:
        critic, model = ScriptedModel([JUDGED, TAUGHT]), ScriptedModel([LOOK, ANSWER])
        setting = AgentConfig(model, memory_k=0, critic=critic, options={"limits": RunLimits(tokens=tokens)})
        done = rlm_run_with_memory(Task("Which classes are right below Entity?"), strategies(store), setting, prov)
        own, others = (sum(rough_tokens(m.content) for seen in who.seen for m in seen) for who in (model, critic))
        usage = done.trajectory.usage
        assert done.trajectory.converged and usage.prompt_tokens == own + others and usage.calls == 2 + len(critic.seen)
        return done, own, len(critic.seen)

    _, own, judged = asked(None)
    assert judged == 2 == asked(100_000)[2]
    done, _, judged = asked(own + 60)
    assert judged == 0 and done.judgment.success is None and "tokens of this run are spent" in done.judgment.reason


@pytest.mark.seed("003 layers")
def test_the_context_is_bounded_on_a_large_ontology(shared: Path, store: Memory) -> None:
    backend = strategies(store)
    ensure_packs(backend)
    with setup_ontology_context(shared / "data" / "ontologies" / "sio.owl", name="sio") as sio:
        page = format_memories_for_injection([(i, 1.0) for i in backend.items()])
        assert len(context_for(sio, page)) <= CONTEXT_LIMIT


def test_a_curriculum_may_name_an_ontology_that_comes_with_rlm(tmp_path: Path) -> None:
    for path in ("prov", "ontology/prov.ttl"):  # as a curriculum is printed, in a folder that is no checkout
        (tmp_path / "c.yaml").write_text(f"id: mine\nontology: {{name: prov, path: {path}}}\ntasks: [{{id: a, query: agents}}]")
        assert read_curriculum(tmp_path / "c.yaml").path.name == "prov.ttl"


@pytest.mark.seed("003 curriculum")
def test_training_teaches_resumes_and_reports(store: Memory, tmp_path: Path) -> None:
    curriculum, backend = read_curriculum(ROOT / "docs/curricula/skos_v1.yaml"), strategies(store)
    with setup_ontology_context(curriculum.path, name="skos") as skos:
        setting = AgentConfig(CaseBasedModel(), memory_k=3, options={"limits": RunLimits(iterations=12)})
        first = train(curriculum, backend, setting, skos, control=True)
        second = train(curriculum, backend, setting, skos, passes=2)
    assert second.skipped == len(curriculum.tasks) == len(second.results)
    arms = {(row[0], row[1]): row for row in [*first.rows(), *second.rows()]}
    assert float(str(arms["memory", 2][6])) < float(str(arms["control", 1][6])), "with memory it takes fewer steps"
    assert int(str(arms["memory", 2][3])) >= int(str(arms["control", 1][3])), "and is right no less often"
    assert any(i.source_type == "success" and i.procedure for i in backend.items())
    report = memory_report(backend)
    assert report["shortens"] and report["teaches"] and json.dumps(report)


def test_an_erasure_reaches_the_runs(store: Memory, prov: OntologyContext, tmp_path: Path) -> None:
    backend, secret = strategies(store), "Quagga"
    lines = [LOOK, f'```repl\nseen = search_entity("{secret}")["total"]\nFINAL("{secret}" + str(seen))\n```']
    task = Task(f"Is there a {secret}?", read_expectation({"contains": [secret]}))
    done = rlm_run_with_memory(task, backend, AgentConfig(ScriptedModel(lines), log_dir=tmp_path / "logs"), prov)
    log = Path(backend.runs()[0].log_path or "")
    assert done.learned and log.is_file() and secret in log.read_text(encoding="utf-8")
    store.delete([i.memory_id for i in done.learned], erase=True)
    assert not log.exists()
    [kept] = backend.runs()
    assert (kept.task, kept.answer, dict(kept.artifact), kept.log_path) == ("(erased)", None, {"erased": True}, None)
    assert kept.judgment and kept.judgment.success is True and kept.judgment.reason == "(erased)" and kept.iterations == 2
    assert [p for p in Path(store.backend.db.path).parent.rglob("*") if p.is_file() and secret.encode() in p.read_bytes()] == []
