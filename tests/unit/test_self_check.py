"Answers that are checked by a second route over the triples: what agrees teaches, what differs or has no second route does not."

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from rlm.agent.learning.judge import Expectation, check_by_second_route, explore, is_abstention, second_route
from rlm.agent.learning.pipeline import AgentConfig, RunRecord, Task, rlm_run_with_memory, train_queue, waiting
from rlm.agent.loop.budget import RunLimits
from rlm.agent.loop.loop import rlm_run
from rlm.agent.memory.linking import named_in
from rlm.agent.memory.packs import ensure_packs
from rlm.agent.memory.stores import JSONStrategyStore, SQLiteStrategyStore
from rlm.agent.models import ScriptedModel, open_model
from rlm.agent.ontology import OntologyContext, setup_ontology_context
from rlm.agent.runner import judge_stored_run, setting_for
from rlm.core.errors import InvalidInput
from rlm.core.promotion import PromotionPolicy
from rlm.core.settings import load_settings
from rlm.store.sqlite.database import SQLiteDatabase
from rlm.store.storage import SQLStorage


@pytest.fixture(scope="module")
def prov() -> Iterator[OntologyContext]:
    with setup_ontology_context("prov") as context:
        yield context


def asked(backend: SQLiteStrategyStore | None, question: str, context: OntologyContext) -> RunRecord:
    setting = setting_for(open_model("case-based", load_settings(db_path=":memory:")), None, True, None, {})
    return rlm_run_with_memory(Task(question), backend, setting, context)


@pytest.mark.parametrize(("question", "expected"), [
    ("What is the range of used?", Expectation("terms", ["prov:Entity"])), ("used의 치역은?", Expectation("terms", ["prov:Entity"])),
    ("How many subclasses does Activity have?", Expectation("number", 9)),
    ("What is the inverse of wasGeneratedBy?", Expectation("terms", ["prov:generated"])),
    ("Which agents never used an Entity?", None), ("Is Person a subclass of Agent?", None),
    ("What is the domain and the range of used?", None),
    ("Which properties of Agent are functional?", None), ("How are Agent and Plan related?", None)])
def test_there_is_a_second_route_where_nothing_is_left_over(prov: OntologyContext, question: str, expected: Expectation | None) -> None:
    assert second_route(question, named_in(question, prov), prov) == expected


@pytest.mark.parametrize(("code", "success"), [
    ('FINAL([i["iri"] for i in hierarchy("prov:Agent")["items"]])', True),
    ('FINAL([i["iri"] for i in hierarchy("prov:Plan")["items"]])', None),
    ('check_iris(["prov:Agent"])\nFINAL(["prov:Person", "prov:Flurb"])', None)])
def test_what_both_routes_give_is_right_and_what_differs_is_unknown(prov: OntologyContext, code: str, success: bool | None) -> None:
    question = "Find all subclasses of Agent"
    done = rlm_run(question, ScriptedModel([f"```repl\n{code}\n```"]), tools=dict(prov.tools))
    judged = check_by_second_route(question, named_in(question, prov), prov, done)
    assert judged is not None and judged.success is success and (success is None or judged.confidence == "medium")


def test_a_question_that_was_refused_is_worked_out_for_the_next_time(prov: OntologyContext) -> None:
    backend = SQLiteStrategyStore(SQLStorage(SQLiteDatabase(":memory:")))
    first = asked(backend, "How many subclasses does Activity have?", prov)
    assert first.answer.startswith("I do not know") and first.judgment.success is None and len(first.learned) == 1
    again = asked(backend, "How many subclasses does Agent have?", prov)
    assert (again.answer, again.judgment.verdict) == ("5", "success")
    [learned] = backend.items()
    assert (learned.ontology, learned.success_count, learned.provenance["source"]) == ("prov", 1, "extracted")


def test_what_was_learned_answers_no_other_question(prov: OntologyContext) -> None:
    backend = SQLiteStrategyStore(SQLStorage(SQLiteDatabase(":memory:")))
    asked(backend, "How many subclasses does Activity have?", prov)
    for other in ("How many subclasses of Agent have no definition?", "How many direct superclasses does Person have?",
                  "Why does Agent have subclasses?"):
        assert asked(backend, other, prov).answer.startswith("I do not know"), other


def test_what_two_ontologies_confirm_is_tried_in_a_third(prov: OntologyContext) -> None:
    backend = SQLiteStrategyStore(SQLStorage(SQLiteDatabase(":memory:")))
    with setup_ontology_context("org") as org, setup_ontology_context("time") as time:
        for question, context in (("How many subclasses does Activity have?", prov), ("How many subclasses does Agent have?", org)):
            assert is_abstention(asked(backend, question, context).answer), "what one ontology taught is for it alone"
        answered = asked(backend, "How many subclasses does TemporalEntity have?", time)
    assert answered.answer == "4" and answered.judgment.verdict == "success"
    [wide] = [i for i in backend.items() if i.ontology is None]
    assert wide.provenance["confirmed_on"] == ["org", "prov"] and wide.scope["transferable"] is True


def test_what_was_refused_is_refused_at_once_the_second_time(prov: OntologyContext) -> None:
    backend = SQLiteStrategyStore(SQLStorage(SQLiteDatabase(":memory:")))
    first, again = (asked(backend, "What is Agent supposed to eat?", prov) for _ in range(2))
    assert is_abstention(first.answer) and is_abstention(again.answer) and "asked before" in again.answer
    assert again.trajectory.iterations == 2 < first.trajectory.iterations


def test_without_a_second_route_nothing_is_tried(prov: OntologyContext) -> None:
    assert explore("Which agents never sleep?", named_in("Which agents never sleep?", prov), prov) is None
    asked = "What stands right above prov:Plan?"  # no second route reads this; the answer of the task confirms a program
    assert explore(asked, named_in(asked, prov), prov) is None
    done = explore(asked, named_in(asked, prov), prov, None, Expectation("terms", ["prov:Entity"]))
    assert done is not None and done.value == ["prov:Entity"] and "hierarchy('prov:Plan'" in done.steps[0].code
    for common in (Expectation("truth", True), Expectation("number", 1), Expectation("refuses", True)):
        assert explore(asked, named_in(asked, prov), prov, None, common) is None, "many programs give this"


def test_a_person_overrules_the_second_route_once(prov: OntologyContext) -> None:
    backend = SQLiteStrategyStore(SQLStorage(SQLiteDatabase(":memory:")))
    asked(backend, "How many subclasses does Activity have?", prov)
    done = asked(backend, "How many subclasses does Agent have?", prov).experience
    [learned] = backend.items()
    judge_stored_run(backend, done.trajectory_id, "no", PromotionPolicy())
    [judged] = backend.items()
    assert (learned.success_count, learned.failure_count) == (1, 0) and (judged.success_count, judged.failure_count) == (0, 1)
    with pytest.raises(InvalidInput, match="judged already"):
        judge_stored_run(backend, done.trajectory_id, "yes", PromotionPolicy())


# ---------------------------------------------------------------- the queue

def without_exploring(**given: object) -> AgentConfig:
    made = setting_for(open_model("case-based", load_settings(db_path=":memory:")), None, True, None, {})
    return replace(made, explore=None, **given)  # type: ignore[arg-type]  # fields of the configuration


def test_a_refused_question_is_explored_by_the_queue_answered_and_leaves_it(prov: OntologyContext) -> None:
    backend, question = SQLiteStrategyStore(SQLStorage(SQLiteDatabase(":memory:"))), "Which classes are directly below Activity?"
    rlm_run_with_memory(Task(question), backend, without_exploring(), prov)
    rlm_run_with_memory(Task("Which agents never sleep?"), backend, without_exploring(), prov)
    assert [r.task for r in waiting(backend)] == [question, "Which agents never sleep?"]
    report = train_queue(backend, replace(without_exploring(), explore=explore), lambda run: prov)
    assert [(r.task_id, r.number, r.verdict) for r in report.results] == [
        (question, 1, "unknown"), (question, 2, "success"), ("Which agents never sleep?", 1, "unknown")]
    assert report.as_dict()["tasks"] == {question: "success", "Which agents never sleep?": "unknown"}
    assert [r.task for r in waiting(backend)] == ["Which agents never sleep?"], "what nothing confirmed stays"


def test_an_answer_that_was_judged_wrong_is_never_confirmed_by_the_queue(prov: OntologyContext) -> None:
    backend, question = SQLiteStrategyStore(SQLStorage(SQLiteDatabase(":memory:"))), "Find all subclasses of Agent"
    code = 'FINAL([i["iri"] for i in hierarchy("prov:Agent")["items"]])'
    setting = replace(without_exploring(), model=ScriptedModel([f"I list them.\n```repl\n{code}\n```"] * 3), extract=False)
    done = rlm_run_with_memory(Task(question), backend, setting, prov)
    judge_stored_run(backend, done.experience.trajectory_id, "no", PromotionPolicy())
    report = train_queue(backend, replace(setting, extract=True, explore=explore), lambda run: prov)
    assert {r.verdict for r in report.results} == {"unknown"} and not backend.items(), "the second route gives the same answer"
    assert [r.trajectory_id for r in waiting(backend)] == [done.experience.trajectory_id]


def test_a_wrong_answer_is_replaced_by_what_exploring_confirms(prov: OntologyContext) -> None:
    backend, question = SQLiteStrategyStore(SQLStorage(SQLiteDatabase(":memory:"))), "What is the range of used?"
    wrong = ScriptedModel(['I guess.\n```repl\ncheck_iris(["prov:Agent"])\nFINAL(["prov:Agent"])\n```'])
    done = rlm_run_with_memory(Task(question), backend, replace(without_exploring(), model=wrong, extract=False), prov)
    judge_stored_run(backend, done.experience.trajectory_id, "no", PromotionPolicy())
    train_queue(backend, replace(without_exploring(), explore=explore), lambda run: prov)
    assert not waiting(backend) and backend.runs()[-1].answer == "prov:Entity"


@pytest.mark.parametrize(("question", "begins"), [("What is the range of used?", "I do not know: "), ("used의 치역은?", "모르겠습니다: ")])
@pytest.mark.parametrize("kept", ["store", "file"])
def test_an_answer_that_a_person_judged_wrong_is_not_given_again(prov: OntologyContext, tmp_path: Path, kept: str, question: str,
                                                                 begins: str) -> None:
    backend = (SQLiteStrategyStore(SQLStorage(SQLiteDatabase(":memory:"))) if kept == "store"
               else JSONStrategyStore(tmp_path / "runs.json"))
    setting = replace(without_exploring(), explore=explore)
    ensure_packs(backend, "prov")
    first = rlm_run_with_memory(Task(question), backend, setting, prov)
    assert first.experience.answer == "prov:Entity"
    judge_stored_run(backend, "last", "no", PromotionPolicy())
    for _ in range(2):
        again = rlm_run_with_memory(Task(question), backend, setting, prov)
        assert again.answer.startswith(begins) and "prov:Entity" in again.answer and again.trajectory.value is None
        assert again.judgment.success is None and not again.learned
    assert rlm_run_with_memory(Task("What is the range of wasDerivedFrom?"), backend, setting, prov).experience.answer == "prov:Entity"
    assert [r.trajectory_id for r in waiting(backend)] == [first.experience.trajectory_id], "the queue knows which answer was wrong"
    changed = tmp_path / "prov.ttl"
    changed.write_text(Path(prov.meta.path).read_text("utf-8") + "\n# changed\n", "utf-8")
    with setup_ontology_context(changed) as context:
        assert rlm_run_with_memory(Task(question), backend, setting, context).experience.answer == "prov:Entity", "another file"


def test_a_model_that_reads_gets_more_steps_and_a_second_try_without_memory(prov: OntologyContext) -> None:
    backend = SQLiteStrategyStore(SQLStorage(SQLiteDatabase(":memory:")))
    look = "I look.\n```repl\nhierarchy('prov:Agent')['total']\n```"
    options = {"limits": RunLimits(iterations=2)}
    setting = AgentConfig(ScriptedModel(["```repl\nFINAL('I do not know: it is not said.')\n```"]), options=options)
    rlm_run_with_memory(Task("Which agents never sleep?"), backend, setting, prov)
    told = ScriptedModel([look, look, look, "```repl\nFINAL('I do not know: it is not said.')\n```"] * 2)
    report = train_queue(backend, replace(setting, model=told), lambda run: prov)
    assert [(r.number, r.iterations, r.characters) for r in report.results] == [(1, 4, 0), (2, 4, 0)]


def test_a_question_whose_file_is_gone_is_not_asked(prov: OntologyContext) -> None:
    backend = SQLiteStrategyStore(SQLStorage(SQLiteDatabase(":memory:")))
    asked(backend, "Which agents never sleep?", prov)
    report = train_queue(backend, without_exploring(), lambda run: None)
    assert (report.skipped, report.results) == (1, ()) and len(waiting(backend)) == 1
