"""Questions with exact answers: the queries against answers worked out by hand, the verifier against the same answers spelt in
several ways, and the split."""
import random
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlm.bench.gold import (
    ZOO,
    Answer,
    ChainAnswer,
    NumberAnswer,
    TermNames,
    TermsAnswer,
    TextAnswer,
    TruthAnswer,
    gold_of,
    names_of,
    read_gold,
    spell,
    zoo,
)
from rlm.bench.questions import (
    TEMPLATES,
    Attempt,
    Question,
    answered,
    ask,
    asked,
    generate,
    mention,
    part_of,
    read_questions,
    verify,
)

rdflib = pytest.importorskip("rdflib")


def z(*names: str) -> list[str]:
    return [f"https://zoo.example/#{n}" for n in names]


def terms(*names: str) -> TermsAnswer:
    return TermsAnswer(frozenset(z(*names)))


# Worked out with a pencil from the text of the zoo.
BY_HAND: list[tuple[str, list[str], Answer]] = [
    ("label_iri", z("hasPart"), terms("hasPart")), ("definition_iri", z("Cat"), terms("Cat")),
    ("describe", z("Animal"), TextAnswer(("A being that moves.",))), ("describe", z("Cat"), TextAnswer(("An animal that purrs.",))),
    ("direct_subclasses", z("Animal"), terms("Bird", "Cat")), ("direct_superclasses", z("Bird"), terms("Animal")),
    ("domain", z("hasWing"), terms("Bird")), ("range", z("eats"), terms("Plant")), ("inverse", z("partOf"), terms("hasPart")),
    ("inverse", z("hasPart"), terms("partOf")), ("subproperties", z("hasPart"), terms("hasWing")),
    ("superproperties", z("hasWing"), terms("hasPart")),
    ("all_subclasses", z("Being"), terms("Animal", "Plant", "Bird", "Cat", "Owl", "Hen")),
    ("ancestors", z("Owl"), terms("Bird", "Animal", "Being")),
    ("path_to_root", z("Owl"), ChainAnswer(frozenset([tuple(z("Owl", "Bird", "Animal", "Being"))]))),
    ("count_direct", z("Being"), NumberAnswer(2)), ("count_all", z("Being"), NumberAnswer(6)), ("count_all", z("Animal"), NumberAnswer(4)),
    ("is_a", z("Owl", "Being"), TruthAnswer(True)), ("is_a", z("Being", "Owl"), TruthAnswer(False)),
    ("is_a", z("Owl", "Hen"), TruthAnswer(False)),
    ("characteristic", [*z("hasPart"), "http://www.w3.org/2002/07/owl#TransitiveProperty"], TruthAnswer(True)),
    ("characteristic", [*z("partOf"), "http://www.w3.org/2002/07/owl#TransitiveProperty"], TruthAnswer(False)),
    ("instances", z("Hen"), terms("berta", "frida")), ("restrictions", z("Bird"), terms("hasPart")),
    ("disjoint_with", z("Plant"), terms("Animal")), ("inherited_properties", z("Owl"), terms("hasPart", "hasWing", "eats")),
    ("are_disjoint", z("Owl", "Plant"), TruthAnswer(True)), ("are_disjoint", z("Owl", "Hen"), TruthAnswer(False)),
    ("common_ancestor", z("Owl", "Cat"), terms("Animal")), ("common_ancestor", z("Owl", "Plant"), terms("Being")),
    ("two_property_path", z("Owl", "Farm"), ChainAnswer(frozenset([tuple(z("eats", "growsOn"))]))),
    ("comparison", z("Bird", "Being"), None), ("properties_between", z("Animal", "Plant"), terms("eats")),
]  # type: ignore[list-item]


@pytest.mark.parametrize(("template", "subjects", "answer"), [c for c in BY_HAND if c[2] is not None])
def test_answers_are_those_worked_out_by_hand(template: str, subjects: list[str], answer: Answer) -> None:
    t = TEMPLATES[template]
    query = spell(t.gold, **dict(zip("xy", subjects, strict=False)))
    assert answered(t, zoo(), query, subjects) == answer


def test_every_template_is_worked_out_by_hand() -> None:
    assert {name for name, *_ in BY_HAND} | {"absent"} == set(TEMPLATES)


MORE = ZOO + """
:Dog a owl:Class ; rdfs:subClassOf :Animal . :Fly a owl:Class ; rdfs:subClassOf :Bird . :Bat a owl:Class ; rdfs:subClassOf :Bird, :Cat .
:feeds a owl:ObjectProperty ; rdfs:domain [ owl:unionOf (:Cat :Owl) ] ; rdfs:range :Animal, owl:Thing .
[] a owl:AllDisjointClasses ; owl:members ( :Owl :Hen :Cat ) .
:Tomcat a owl:Class ; rdfs:subClassOf :Cat, [ a owl:Restriction ; owl:onProperty :eats ; owl:maxCardinality 9 ] ;
  owl:equivalentClass [ owl:intersectionOf ( :Cat [ a owl:Restriction ; owl:onProperty :feeds ; owl:allValuesFrom :Bird ] ) ] .
"""


@pytest.mark.parametrize(("template", "subjects", "answer"), [
    ("comparison", z("Bird", "Being"), TermsAnswer(frozenset(z("Bird")), tuple(z("Bird", "Being")))),
    ("domain", z("feeds"), terms("Cat", "Owl")), ("range", z("feeds"), terms("Animal")),
    ("disjoint_with", z("Hen"), terms("Owl", "Cat")), ("are_disjoint", z("Owl", "Tomcat"), TruthAnswer(True)),
    ("restrictions", z("Tomcat"), terms("eats", "feeds")), ("inherited_properties", z("Tomcat"), terms("feeds", "eats", "hasPart")),
    ("path_to_root", z("Bat"),
     ChainAnswer(frozenset([tuple(z("Bat", "Bird", "Animal", "Being")), tuple(z("Bat", "Cat", "Animal", "Being"))]))),
    ("common_ancestor", z("Bat", "Tomcat"), terms("Cat")), ("count_all", z("Animal"), NumberAnswer(8)),
])
def test_awkward_axioms(template: str, subjects: list[str], answer: Answer) -> None:
    graph = gold_of(rdflib.Graph().parse(data=MORE, format="turtle"), "more")
    t = TEMPLATES[template]
    assert answered(t, graph, spell(t.gold, **dict(zip("xy", subjects, strict=False))), subjects) == answer


# ---------------------------------------------------------------- right, and nearly right

def right_values(answer: Answer, names: TermNames, rng: random.Random) -> list[object]:
    "The right answer, its terms spelt in three ways and in any order."
    def spelt(some: Sequence[str]) -> list[object]:
        labels = [next((n for n in names.labels.get(m, ()) if names.exact.get(n) == m), names.show(m)) for m in some]
        return [list(some), [names.show(m) for m in some], labels]
    match answer:
        case TermsAnswer(members, options):
            return spelt([*members, *(o for o in options if o not in members)] if options else rng.sample(sorted(members), len(members)))
        case ChainAnswer(ways):
            return [*spelt(min(ways)), *spelt(min(ways)[::-1]), [*min(ways), "owl:Thing"]]
        case TextAnswer(texts):
            return [texts[0], f"It is defined like this: {texts[0]}"]
    return [answer.value]


def wrong_values(answer: Answer, names: TermNames, rng: random.Random) -> list[object]:
    "Answers that are nearly right."
    other = "https://zoo.example/#Nothing_at_all"
    match answer:
        case TermsAnswer(members, ()):
            wrong = next(t for t in rng.sample(sorted(names.labels), len(names.labels)) if t not in members)
            return [[*members, wrong], [*members, other], sorted(members)[1:] or [wrong], 42, True]
        case TermsAnswer(members, options):
            return [[o for o in options if o not in members], "both"]
        case ChainAnswer(ways):
            return [min(ways)[1:], [*min(ways), other], min(ways)[:1]]
        case NumberAnswer(value):
            return [value + 1, [value, value + 1], "some", True]
        case TruthAnswer(value):
            return [not value, "perhaps", int(value)]
    return ["Something else entirely.", 42]


def check(questions: list[Question], names: TermNames) -> None:
    rng = random.Random(0)
    for q in questions:
        for value in right_values(q.answer, names, rng):
            v = verify(Attempt(str(value), value), q.answer, names)
            assert v.outcome == "right" and v.f1 == 1, (q.template, q.text, value, v)
        for value in wrong_values(q.answer, names, rng):
            v = verify(Attempt(str(value), value), q.answer, names)
            assert v.outcome == "wrong" and v.f1 < 1, (q.template, q.text, value, v)
        for attempt in (Attempt("I don't know.", "I don't know.", abstained=True), Attempt("")):
            assert verify(attempt, q.answer, names).outcome == "refused", q.text


def test_the_verifier_reads_every_right_answer_and_no_wrong_one() -> None:
    graph = zoo()
    check(generate(graph, each=6), names_of(graph))


@pytest.mark.parametrize("file", ["org", "prov", "skos", "sosa", "ssn", "time"])
def test_the_same_over_real_ontologies(root: Path, file: str) -> None:
    graph = read_gold(root / "ontology" / f"{file}.ttl")
    questions = generate(graph, each=4)
    assert len(questions) > 20 and len({q.id for q in questions}) == len(questions)
    check(questions, names_of(graph))


@pytest.mark.parametrize("file", ["uniprot-core.ttl", "sio.owl"])
def test_the_same_over_large_ontologies(shared: Path, file: str) -> None:
    graph = read_gold(shared / "data" / "ontologies" / file)
    questions = generate(graph, each=4)
    assert len(questions) > 90 and len({q.id for q in questions}) == len(questions)
    check(questions, names_of(graph))


@pytest.mark.parametrize(("file", "least"), [("asked_by_people", 60), ("asked_afresh", 30)])
def test_what_people_ask_has_exact_answers(root: Path, file: str, least: int) -> None:
    graphs = [read_gold(root / "ontology" / f"{name}.ttl") for name in ("org", "prov", "skos", "sosa", "ssn", "time")]
    questions = read_questions(root / "tests" / "data" / f"{file}.jsonl", graphs)
    korean = [q for q in questions if q.language == "ko"]
    assert len(questions) >= least and abs(len(korean) - len(questions) / 2) <= 4 and len({q.text for q in questions}) == len(questions)
    for q in questions:
        if isinstance(q.answer, TermsAnswer) and "urn:none" not in q.subjects:
            assert q.answer.members, q.text
        assert not isinstance(q.answer, TextAnswer) or q.answer.texts, q.text
        assert not isinstance(q.answer, ChainAnswer) or q.answer.ways, q.text
    for graph in graphs:
        check([q for q in questions if q.ontology == graph.name], names_of(graph))


@pytest.mark.parametrize(("file", "least"), [("asked_third", 90), ("asked_fourth", 50), ("asked_fifth", 60)])
def test_what_others_ask_of_large_ontologies_has_exact_answers(root: Path, shared: Path, file: str, least: int) -> None:
    large = shared / "data" / "ontologies"
    paths = [*(root / "ontology").glob("*.ttl"), large / "sio.owl", large / "uniprot-core.ttl"]
    graphs = [read_gold(path) for path in paths]
    questions = read_questions(root / "tests" / "data" / f"{file}.jsonl", graphs)
    assert len(questions) == least == len({q.text for q in questions})
    assert min(sum(q.language == k for q in questions) for k in ("en", "ko")) >= .4 * least
    for q in questions:
        assert not isinstance(q.answer, TermsAnswer) or q.answer.members or "urn:none" in q.subjects, q.text
        assert not isinstance(q.answer, TextAnswer) or q.answer.texts, q.text
        assert not isinstance(q.answer, ChainAnswer) or q.answer.ways, q.text


@given(st.text(max_size=200) | st.lists(st.text(max_size=20)) | st.integers() | st.booleans() | st.none())
def test_no_answer_breaks_the_verifier(value: object) -> None:
    for answer in (terms("Owl", "Hen"), TermsAnswer(frozenset()), NumberAnswer(3), TruthAnswer(True), TextAnswer(("A being that moves.",)),
                   ChainAnswer(frozenset([tuple(z("Owl", "Bird"))])), TermsAnswer(frozenset(z("Owl")), tuple(z("Owl", "Hen")))):
        assert verify(Attempt(str(value), value), answer, _names()).outcome in ("right", "wrong", "refused")


def _names(kept: list[TermNames] = []) -> TermNames:  # noqa: B006
    return kept[0] if kept else kept.append(names_of(zoo())) or kept[0]


# ---------------------------------------------------------------- the generator

def test_a_pack_cannot_store_answers(root: Path) -> None:
    graphs = [read_gold(root / "ontology" / f"{name}.ttl") for name in ("prov", "time")]
    train, test = ([q for g in graphs for q in generate(g, each=6, part=p)] for p in ("train", "test"))  # type: ignore[arg-type]
    asked_about = [{s for q in part for s in q.subjects if not s.startswith("http://www.w3.org/2002/07/owl#")} for part in (train, test)]
    assert len(train) > 100 < len(test) and not asked_about[0] & asked_about[1]
    assert not {q.text for q in train} & {q.text for q in test}


def test_yes_and_no_are_as_frequent() -> None:
    graph = gold_of(rdflib.Graph().parse(data=MORE, format="turtle"), "more")
    found = asked(TEMPLATES["is_a"], graph, names_of(graph), seed=0, count=10, part=None)
    assert [q.answer for q in found].count(TruthAnswer(True)) == [q.answer for q in found].count(TruthAnswer(False)) == 5


def test_both_languages_by_turns() -> None:
    found = generate(zoo(), each=4)
    assert abs(sum(q.language == "ko" for q in found) - len(found) / 2) < len(found) / 8
    assert all(any("가" <= c <= "힣" for c in q.text) for q in found if q.language == "ko")


def test_an_ambiguous_name_is_never_used() -> None:
    kiwi = ':Kiwi a owl:Class ; rdfs:label "bird" ; rdfs:subClassOf :Bird .'
    graph = gold_of(rdflib.Graph().parse(data=ZOO + kiwi, format="turtle"), "two")
    names, rng = names_of(graph), random.Random(0)
    said = {mention(names, iri, rng, "en") for iri in z("Bird", "Kiwi") for _ in range(50)}
    assert "bird" not in said and all(names.resolve(s) in z("Bird", "Kiwi") for s in said)
    assert ask(TEMPLATES["label_iri"], graph, names, (z("Kiwi")[0],), "en", rng) is None


def test_parts_go_by_name_not_by_namespace() -> None:
    assert part_of("http://a.example/wasGeneratedBy", 3) == part_of("http://b.example#was_generated_by", 3)
