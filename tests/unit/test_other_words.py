"Everyday words for a relation are believed where the file bears them out, and nowhere else."

from collections.abc import Callable

import pytest
from test_natural_questions import answered

from rlm.agent.learning.annotation import annotate
from rlm.agent.ontology import setup_ontology_context
from rlm.agent.ontology.query_tools import TermQueryTools, relation_senses
from rlm.core.errors import NotFound

ZOO = """@prefix : <https://e.org/z#> . @prefix owl: <http://www.w3.org/2002/07/owl#> .
@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> . @prefix xsd: <http://www.w3.org/2001/XMLSchema#> .
<https://e.org/z> a owl:Ontology .
:Animal a owl:Class ; rdfs:label "animal"@en, "동물"@ko . :Food a owl:Class ; rdfs:label "food"@en .
:Shed a owl:Class ; rdfs:label "shed"@en, "우리"@ko .
:Keeper a owl:Class ; rdfs:label "keeper"@en . :Herb a owl:Class ; rdfs:subClassOf :Food ; rdfs:label "herb"@en .
:Otter a owl:Class ; rdfs:subClassOf :Animal, [ owl:onProperty :hasDiet ; owl:someValuesFrom :Trout ],
  [ owl:onProperty :hasHabitat ; owl:someValuesFrom :River ] ; rdfs:label "otter"@en, "수달"@ko .
:Tapir a owl:Class ; rdfs:subClassOf :Animal, [ owl:onProperty :hasDiet ; owl:someValuesFrom :Herb ] ; rdfs:label "tapir"@en .
:Trout a owl:Class ; rdfs:subClassOf :Food ; rdfs:label "trout"@en . :River a owl:Class ; rdfs:label "river"@en .
:Balm a owl:Class ; rdfs:label "balm"@en ; rdfs:subClassOf [ owl:onProperty :derivesFrom ; owl:someValuesFrom :Herb ],
  [ owl:onProperty :hasMaterial ; owl:someValuesFrom :Trout ], [ owl:onProperty :cures ; owl:someValuesFrom :Mange ] .
:Mange a owl:Class ; rdfs:label "mange"@en .
:hasDiet a owl:ObjectProperty ; rdfs:label "has diet" . :hasHabitat a owl:ObjectProperty ; rdfs:label "has habitat" .
:derivesFrom a owl:ObjectProperty ; rdfs:label "derives from" . :hasMaterial a owl:ObjectProperty ; rdfs:label "has material" .
:cures a owl:ObjectProperty ; rdfs:label "cures" . :keptIn a owl:ObjectProperty ; rdfs:label "kept in" ; rdfs:range :Shed .
:employs a owl:ObjectProperty ; rdfs:label "employs" ; rdfs:domain :Shed ; rdfs:range :Keeper .
:maker a owl:DatatypeProperty ; rdfs:label "manufacturer" ; rdfs:domain :Shed . :weight a owl:DatatypeProperty ; rdfs:label "weight" .
:dueBack a owl:DatatypeProperty ; rdfs:label "return day" ; rdfs:comment "The day on which a loan ends." ; rdfs:domain :Loan .
:Loan a owl:Class ; rdfs:label "loan"@en .
:s1 a :Shed ; rdfs:label "S-1" ; :maker "Holt" ; :employs :ivo . :ivo a :Keeper ; rdfs:label "Ivo" .
:momo a :Otter ; rdfs:label "Momo" ; :keptIn :s1 ; :weight 9.5 . :pip a :Otter ; rdfs:label "Pip" ; :keptIn :s1 ; :weight 7.0 .
"""


@pytest.fixture(scope="module")
def zoo(ontology_file: Callable[[str, str], str]) -> str:
    return ontology_file("zoo", ZOO)


def test_a_word_for_a_relation_is_read_as_the_only_property_of_its_sense_that_says_something_here(zoo: str) -> None:
    with setup_ontology_context(zoo) as context:
        tools = TermQueryTools(context.index)
        view = tools.related_terms("zoo:Otter", "lives in")
        assert [i["iri"] for i in view["items"]] == ["zoo:River"] and "'lives in' is read as 'has habitat'" in view["note"]
        assert "note" not in tools.related_terms("zoo:Otter", "has diet")
        assert not tools.related_terms("zoo:Tapir", "lives in")["items"]
        for term, words in (("zoo:Balm", "made of"), ("zoo:Otter", "adores")):  # two properties, no such sense
            with pytest.raises(NotFound):
                tools.related_terms(term, words)


def test_the_answer_says_how_a_word_was_read(zoo: str) -> None:
    said = {"What do otters feed on?": "'feed on' was read as zoo:hasDiet.", "수달은 뭘 먹어?": "‘먹어’: zoo:hasDiet(으)로 읽었습니다.",
            "In which shed is Momo?": "Found by zoo:keptIn."}
    with setup_ontology_context(zoo) as context:
        for (question, note), found in zip(said.items(), answered(zoo, [*said]), strict=True):
            assert annotate(found.learned.trajectory, found.learned.named, context).notes == (note,), question


def test_who_does_it_and_a_passive_lead_the_other_way() -> None:
    forth, back = relation_senses("makes"), relation_senses("made by")
    assert {(n, not turned) for n, turned in forth} == back and relation_senses("manufacturer") <= back
    assert relation_senses("먹어") >= relation_senses("feeds on") and not relation_senses("adores")


def test_everyday_words_are_answered_and_what_the_file_does_not_say_is_not(zoo: str) -> None:
    said = {"What do otters feed on?": ["zoo:Trout"], "수달은 뭘 먹어?": ["zoo:Trout"], "수달은 어디에 살아?": ["zoo:River"],
            "Which animals prey on trout?": ["zoo:Otter"], "How do you treat mange?": ["zoo:Balm"], "Who made S-1?": ["Holt"],
            "Where is Ivo employed?": ["zoo:s1"], "In which shed is Momo?": ["zoo:s1"], "Which shed is Momo in?": ["zoo:s1"],
            "What is inside S-1?": ["zoo:momo", "zoo:pip"], "Where do tapirs live?": None,
            "What is balm made of?": None, "What do otters adore?": None,
            "What does Momo own?": None, "Who made Momo?": None, "How do you treat otters?": None, "Momo는 뭘 만들어?": None,
            "In which river is Momo?": None, "Where is Momo employed?": None}
    for (question, wanted), found in zip(said.items(), answered(zoo, [*said]), strict=True):
        assert found.abstained if wanted is None else found["value"] == wanted, (question, found.answer)


def test_a_thing_named_with_its_kind_is_that_thing_if_it_is_of_the_kind(zoo: str) -> None:
    said = {"In which shed is otter Momo?": ["zoo:s1"], "In which shed is tapir Momo?": None, "How heavy is otter Momo?": [9.5]}
    for (question, wanted), found in zip(said.items(), answered(zoo, [*said]), strict=True):
        assert found.abstained if wanted is None else found["value"] == wanted, (question, found.answer)


def test_two_are_compared_and_those_that_are_named_are_chosen_from(zoo: str) -> None:
    said = {"Which is heavier, Momo or Pip?": ["zoo:momo"], "Is Pip heavier than Momo?": False, "Which is faster, Momo or Pip?": None,
            "Which otter is lighter, Momo or Pip?": ["zoo:pip"], "Momo와 Pip 중에서 무게가 더 큰 건?": None,
            "Which of these feeds on trout: otter or tapir?": ["zoo:Otter"], "Which of these feeds on rivers: otter or tapir?": None}
    for (question, wanted), found in zip(said.items(), answered(zoo, [*said]), strict=True):
        assert found.abstained if wanted is None else found["value"] == wanted, (question, found.answer)


def test_a_property_is_found_by_what_it_should_say_when_all_words_fit_just_one(zoo: str) -> None:
    said = {"Which property tells me the day a loan ends?": ["zoo:dueBack"], "Which property tells me the colour a loan has?": None,
            "Which property tells me when a shed ends?": None, "Where do I put the company of a shed?": ["zoo:maker"],
            "shed의 제조사는 어느 속성에 적어?": ["zoo:maker"], "shed의 온도는 어느 속성에 적어?": None}
    for (question, wanted), found in zip(said.items(), answered(zoo, [*said]), strict=True):
        assert found.abstained if wanted is None else found["value"] == wanted, (question, found.answer)
