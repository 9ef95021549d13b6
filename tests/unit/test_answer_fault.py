"Answers that can't be right, refused without asking a model."

import pytest
from naturally import ontology_path

from rlm.agent.learning.judge import answer_fault
from rlm.agent.memory.linking import named_in
from rlm.agent.models import ScriptedModel
from rlm.agent.ontology import setup_ontology_context
from rlm.agent.runner import run
from rlm.agent.tracing.trajectory import Trajectory


def fault(ontology: str, question: str, answer: str, value: object = None) -> str:
    with setup_ontology_context(ontology_path(ontology) or ontology) as context:
        done = Trajectory(question, (), answer, True, "answered", value=value)
        return answer_fault(question, named_in(question, context), context, done)


@pytest.mark.parametrize(("ontology", "question", "answer", "value"), [
    ("prov", "Find all subclasses of Entity", "prov:Bundle, prov:Collection, prov:Plan", None),  # one level
    ("prov", "List the direct subclasses of Entity", "prov:Bundle", None),
    ("prov", "What is the range of wasGeneratedBy?", "prov:Entity", None),
    ("prov", "wasGeneratedBy의 레인지는?", "prov:Entity", None),
    ("prov", "How many direct subclasses does Entity have?", "7", 7),
    ("prov", "What is the range of wasGeneratedBy?", "none", []),
    ("prov", "Is Plan a subclass of Entity?", "prov:Entity, prov:Plan", ["prov:Entity", "prov:Plan"]),
    ("prov", "Is Plan a subclass of Entity?", "none", None),
    ("prov", "Which classes are disjoint with Entity?", "https://creativecommons.org/licenses/by/4.0/", None),
    ("prov", "What does Plan mean?", "There is no path of two properties.", None),
    ("prov", "What are the subclasses of Entity?", '{"items": []}', {"items": [], "total": 5}),
    ("soil", "What are all subclasses of soil?", "obo:SOIL_0000010", None)])
def test_what_the_file_refutes_is_refused(ontology: str, question: str, answer: str, value: object) -> None:
    said = fault(ontology, question, answer, value)
    assert said.startswith("I do not know: " if question.isascii() else "모르겠습니다: "), said


@pytest.mark.parametrize(("ontology", "question", "answer", "value"), [
    ("prov", "What are the subclasses of Entity?", "prov:Bundle, prov:Collection, prov:Plan", None),  # it does not say how deep
    ("prov", "Find all subclasses of Entity", "prov:Plan, prov:EmptyCollection, prov:Collection, prov:EmptyDictionary, prov:Bundle", None),
    ("prov", "What is the range of wasGeneratedBy?", "The range of wasGeneratedBy is prov:Activity.", None),
    ("prov", "What are the subclasses of Plan?", "none", []),  # which is true
    ("prov", "How many direct subclasses does Entity have?", "There are 3.", None),
    ("prov", "What does Plan mean?", "A set of steps that agents mean to follow.", None),  # in other words
    ("prov", "Is Plan a subclass of Entity?", "Yes, it is.", None),
    ("prov", "Which classes are disjoint with Entity?", "prov:Activity, prov:InstantaneousEvent", None),
    ("prov", "Which properties can an Activity have?", "prov:used", None),
    ("soil", "What are all subclasses of soil?", "obo:SOIL_0000002, obo:SOIL_0000003, obo:SOIL_0000004, obo:SOIL_0000006, "
     "obo:SOIL_0000005, obo:SOIL_0000007", None),  # one of them by its definition
    ("soil", "What is soil made of?", "I do not know: nothing says so.", None)])
def test_what_may_be_right_stays(ontology: str, question: str, answer: str, value: object) -> None:
    assert fault(ontology, question, answer, value) == ""


def test_a_model_that_reads_is_refuted_and_its_answer_is_told() -> None:
    model = ScriptedModel(["```repl\nfound = describe_entity('prov:Entity')\nFINAL([found['iri']])\n```", '{"success": "unknown"}'])
    found = run("What is the range of prov:wasGeneratedBy?", "prov", ":memory:", model=model)
    assert found.abstained and found.answer == "I do not know: the run found prov:Entity, but the file says prov:Activity."


def test_what_is_asked_of_texts_too_is_not_refuted() -> None:
    model = ScriptedModel(["```repl\nprint(context)\nFINAL('none')\n```", '{"success": "unknown"}'])
    assert run("Which classes of the text are in prov?", "prov", ":memory:", model=model, context="Plan").answer == "none"
