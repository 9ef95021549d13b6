"Answers as a person reads them: labels, deprecated terms, one level or all."

import pytest
from naturally import ontology_path

from rlm.agent.learning.annotation import AnswerNotes
from rlm.agent.runner import run


def asked(ontology: str, question: str) -> AnswerNotes:
    return run(question, ontology_path(ontology), ":memory:").notes


def test_numbers_are_shown_with_their_labels() -> None:
    found = asked("soil", "subclasses of soil horizon")
    assert found.text == "obo:SOIL_0000011 (topsoil), obo:SOIL_0000012 (subsoil), obo:SOIL_0000013 (bedrock)"
    assert [t.label for t in found.terms] == ["topsoil", "subsoil", "bedrock"] and not found.notes


def test_names_within_a_sentence_have_their_labels_too() -> None:
    assert asked("soil", "domain and range of eats").text == "domain: obo:SOIL_0000020 (soil organism); range: none stated"
    assert asked("prov", "What does used connect?").text == "domain: prov:Activity; range: prov:Entity"


def test_a_name_that_says_what_the_label_says_stands_alone() -> None:
    assert asked("prov", "direct subclasses of Entity").text == "prov:Bundle, prov:Collection, prov:Plan"


def test_a_korean_question_is_shown_korean_labels_where_there_are_some() -> None:
    found = asked("pottery", "유약의 하위 개념은?")
    assert "납유" in found.text and "폐기됨" in found.text, found.text


@pytest.mark.parametrize(("ontology", "question", "said"), [
    ("soil", "What is muck?", "obo:SOIL_0000090 (obsolete muck) is deprecated; use obo:SOIL_0000004 (peat) instead."),
    ("soil", "What does obsolete muck mean?", "obo:SOIL_0000090 (obsolete muck) is deprecated; use obo:SOIL_0000004 (peat) instead."),
    ("soil", "superclasses of obo:SOIL_0000091", "obo:SOIL_0000091 (obsolete loess) is deprecated."),
    ("bakery", "머핀이 뭐야?", "b:Muffin: 폐기된 용어입니다. 대신 쓸 것: b:Cupcake.")])
def test_a_deprecated_term_is_said_to_be_deprecated(ontology: str, question: str, said: str) -> None:
    assert said in asked(ontology, question).notes


@pytest.mark.parametrize("question", ["Is muck deprecated?", "What replaces muck?", "What should I use instead of muck?"])
def test_who_asks_about_that_is_not_told_it_twice(question: str) -> None:
    assert not asked("soil", question).notes


@pytest.mark.parametrize(("question", "said"), [
    ("subproperties of wasInfluencedBy", "Direct subproperties only; at any depth there are 16: ask for all subproperties."),
    ("How many subproperties does wasInfluencedBy have?",
     "Direct subproperties only; at any depth there are 16: ask for all subproperties."),
    ("subclasses of Entity", "All levels; direct: 3 of 5. Ask for direct subclasses to see only these."),
    ("wasInfluencedBy의 하위 속성은?", "바로 아래의 하위 속성만입니다. 단계와 상관없이 모두 16개입니다: ‘모든’을 붙여 물으세요.")])
def test_a_list_says_whether_it_holds_one_level_or_all(question: str, said: str) -> None:
    assert said in asked("prov", question).notes


@pytest.mark.parametrize("question", ["all subproperties of wasInfluencedBy", "direct subclasses of Entity", "subclasses of Plan",
                                      "Is Plan an Entity?",
                                      "How many subproperties does wasInfluencedBy have in total?", "What is the domain of used?"])
def test_nothing_is_said_where_the_question_says_it_or_both_are_the_same(question: str) -> None:
    assert not asked("prov", question).notes


def test_the_notes_are_in_the_json() -> None:
    found = run("Which terms are deprecated?", ontology_path("soil"), ":memory:").as_dict()
    assert found["terms"][0] == {"iri": "obo:SOIL_0000090", "label": "obsolete muck", "deprecated": True,
                                 "replaced_by": ("obo:SOIL_0000004",)}
    assert found["notes"] == [] and found["answer"] == "obo:SOIL_0000090, obo:SOIL_0000091"
