"The bounded views: their bounds on any graph, and what they say on real ones."
import json
import random
import re
import time
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rlm.agent.ontology import OntologyContext, setup_ontology_context
from rlm.agent.ontology.context import CARD_CHARACTERS, graph_meta, sense_card
from rlm.agent.ontology.entity_tools import ClassTools, EntityTools
from rlm.agent.ontology.graph import (
    OWL,
    RDF,
    RDFS,
    SH,
    SKOS,
    VIEW_CHARACTERS,
    XSD,
    Literal,
    Term,
    TripleStore,
    characters,
)
from rlm.agent.ontology.hierarchy import Hierarchy
from rlm.agent.ontology.index import OntologyIndex
from rlm.agent.ontology.rdf_client import RdfSource
from rlm.agent.ontology.vocabulary import Ontology
from rlm.core.errors import NotFound, RlmError

pytest.importorskip("pyoxigraph", reason="needs the extra agent")

E = "http://example.org/x#"
NODES = [E + n for n in ("A", "B", "C", "D", "p", "q", "개념", "with-dash", "a" * 300)] + ["_:b1", "_:b2", "urn:x:y", "http://e/ space"]
PREDICATES = [
    RDF + "type",
    RDFS + "subClassOf",
    RDFS + "subPropertyOf",
    RDFS + "domain",
    RDFS + "range",
    RDFS + "label",
    SKOS + "definition",
    SKOS + "broader",
    OWL + "disjointWith",
    OWL + "inverseOf",
    OWL + "unionOf",
    OWL + "onProperty",
    OWL + "someValuesFrom",
    OWL + "maxCardinality",
    RDF + "first",
    RDF + "rest",
    SH + "property",
    SH + "path",
    SH + "select",
    E + "other",
]
OBJECTS: list[Term] = [
    *NODES,
    OWL + "Class",
    OWL + "ObjectProperty",
    OWL + "NamedIndividual",
    OWL + "AllDisjointClasses",
    SH + "NodeShape",
    RDF + "nil",
    SKOS + "Concept",
]
TEXTS = st.builds(
    Literal,
    st.one_of(st.text(max_size=30), st.sampled_from(["", "0", "x" * 5000, "라벨" * 900, "'\"\\\n" * 300])),
    st.sampled_from(["", "en", "ko"]),
    st.sampled_from([XSD + "string", XSD + "integer", XSD + "boolean"]),
)
TRIPLES = st.lists(st.tuples(st.sampled_from(NODES), st.sampled_from(PREDICATES), st.one_of(st.sampled_from(OBJECTS), TEXTS)), max_size=60)


TOOL_NAMES = {"search_entity", "describe_entity", "probe_relationships", "hierarchy", "find_path", "class_properties", "relate",
              "list_entities", "instances", "check_iris"}


def views_of(triples: list[tuple[str, str, Term]]) -> SimpleNamespace:
    "Every tool of a graph by its name, and its index."
    index = OntologyIndex(Ontology.build(TripleStore(triples), {"x": E}, "x"))
    groups = (EntityTools(index), ClassTools(index))
    return SimpleNamespace(index=index, **{name: getattr(g, name) for g in groups for name in dir(g) if name in TOOL_NAMES})


def calls(views: SimpleNamespace, term: str, other: str) -> Iterator[tuple[str, Any]]:
    "Every view, called with a term."
    yield from (
        (name, lambda f=f: f(term))
        for name, f in {
            "search": views.search_entity,
            "describe": views.describe_entity,
            "probe": views.probe_relationships,
            "down": views.hierarchy,
            "path": views.find_path,
            "properties": views.class_properties,
            "instances": views.instances,
            "check": views.check_iris,
        }.items()
    )
    yield "up", lambda: views.hierarchy(term, "up", 2)
    yield "range", lambda: views.class_properties(term, role="range", inherited=False)
    yield "relate", lambda: views.relate(term, other)
    yield "probe one", lambda: views.probe_relationships(term, RDF + "type", "in")
    yield "definition", lambda: views.describe_entity(term, "definition")
    yield "list", lambda: views.list_entities("property")
    yield "roots", lambda: views.list_entities("root class")


@settings(max_examples=60)
@given(TRIPLES, st.sampled_from(NODES), st.sampled_from(NODES))
def test_every_view_is_bounded_honest_and_repeatable_on_any_graph(triples: list[tuple[str, str, Term]], term: str, other: str) -> None:
    views, again, said = views_of(triples), views_of(triples), [0]
    for (name, call), (_, repeated) in zip(calls(views, term, other), calls(again, term, other), strict=True):
        try:
            view = call()
        except NotFound as e:
            said.append(len(str(e)))
            continue
        assert characters(view) <= VIEW_CHARACTERS, name
        assert {"items", "total", "truncated", "more"} <= set(view), name
        assert view["truncated"] == (len(view["items"]) < view["total"]), name
        assert bool(view["more"]) == view["truncated"], name
        assert view["total"] == 0 or view["items"], f"{name}: a page that holds nothing never ends"
        assert view == repeated(), name
        json.dumps(view)
    assert max(said) < 1500


@settings(max_examples=40)
@given(TRIPLES)
def test_the_sense_card_is_bounded_on_any_graph(triples: list[tuple[str, str, Term]]) -> None:
    views = views_of(triples)
    meta = graph_meta(RdfSource("x" * 200, Path("x"), b""), views.index)
    assert len(sense_card(meta, views.index)) <= CARD_CHARACTERS and len(meta.summary()) <= 1200


EDGES = st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), max_size=30).map(lambda ps: [(str(a), str(b)) for a, b in ps])


@given(EDGES)
def test_the_hierarchy_agrees_with_a_closure_by_definition(edges: list[tuple[str, str]]) -> None:
    h = Hierarchy(edges)
    up = {(a, b) for a, b in edges if a != b}
    while new := {(a, d) for a, b in up for c, d in up if b == c} - up:
        up |= new
    for n in map(str, range(10)):
        assert set(h.ancestors(n)) == {b for a, b in up if a == n and b != n}
        assert set(h.descendants(n)) == {a for a, b in up if b == n and a != n}
        for goal in ("0", None):
            found = h.paths(n, goal, depth=4)
            assert all(len(p) <= 5 and len(set(p)) == len(p) and set(pairwise(p)) <= set(edges) for p in found)
            assert [len(p) for p in found] == sorted(len(p) for p in found)
    shared, lowest = h.common_ancestors("1", "2")
    assert set(lowest) <= set(shared) and bool(lowest) == bool(shared)


def read_on(call: Any, **arguments: Any) -> list[Any]:
    "All items of a view, page by page."
    items: list[Any] = []
    while True:
        view = call(offset=len(items), **arguments)
        assert characters(view) <= VIEW_CHARACTERS
        items += view["items"]
        if not view["truncated"]:
            assert len(items) == view["total"]
            return items


@pytest.fixture(scope="module")
def prov() -> Iterator[OntologyContext]:
    with setup_ontology_context("prov") as context:
        yield context


def test_prov_is_described_rightly(prov: OntologyContext) -> None:
    t = prov.tools
    assert [i["iri"] for i in t["hierarchy"]("Agent", depth=1)["items"]] == ["prov:Organization", "prov:Person", "prov:SoftwareAgent"]
    assert t["hierarchy"]("prov:Activity")["total"] == 9 and t["hierarchy"]("activity")["iri"] == "prov:Activity"
    facts = {(i["fact"], i["value"]) for i in t["describe_entity"]("prov:used")["items"]}
    assert {("domain", "prov:Activity"), ("range", "prov:Entity"), ("superproperty", "prov:wasInfluencedBy")} <= facts
    domain = t["describe_entity"]("prov:wasInfluencedBy", fact="domain")["items"][0]
    assert domain["members"] == ["prov:Activity", "prov:Agent", "prov:Entity"]
    assert {"fact": "restriction", "value": "prov:hadActivity max 0"} in t["describe_entity"](
        "prov:ActivityInfluence", fact="restriction"
    )["items"]
    related = t["relate"]("prov:Person", "prov:Generation")
    assert (
        related["disjoint"]
        and related["because"] == "prov:Agent is disjoint with prov:InstantaneousEvent"
        and related["is_a"] == "neither"
    )
    assert t["relate"]("prov:Revision", "prov:Quotation")["nearest_common"] == ["prov:Derivation"]
    assert t["check_iris"](["prov:Agent", "prov:Agnt", "<http://www.w3.org/ns/prov#used>"])["missing"] == 1


@pytest.mark.parametrize(
    ("asked", "found"),
    [
        ("Activity", "prov:Activity"),
        ("activties", "prov:Activity"),
        ("was derived from", "prov:wasDerivedFrom"),
        ("wasDerivdFrom", "prov:wasDerivedFrom"),
        ("Activity의 하위 클래스를 모두 찾아줘", "prov:Activity"),
        ("software agents", "prov:SoftwareAgent"),
        ("primary-source", "prov:PrimarySource"),
    ],
)
def test_mentions_find_their_term(asked: str, found: str, prov: OntologyContext) -> None:
    assert prov.tools["search_entity"](asked)["items"][0]["iri"] == found


def test_misuse_is_a_sentence(prov: OntologyContext) -> None:
    t = prov.tools
    for call in [
        lambda: t["hierarchy"]("prov:Nothing"),
        lambda: t["hierarchy"]("Agent", "sideways"),
        lambda: t["hierarchy"]("Agent", depth=0),
        lambda: t["describe_entity"]("Agent", fact="colour"),
        lambda: t["list_entities"]("gadget"),
        lambda: t["hierarchy"]("Agent", offset=-1),
        lambda: t["hierarchy"](None),
        lambda: t["search_entity"]("x", limit=0),
        lambda: t["hierarchy"](""),
    ]:
        with pytest.raises(RlmError) as caught:
            call()
        assert caught.value.hint and len(str(caught.value)) < 500


@pytest.mark.parametrize("axiom", [
    "_:w{0}x{1} owl:unionOf ({2}) .", "_:w{0}x{1} owl:oneOf ({2}) .",
    "_:w{0}x{1} owl:onProperty :p ; owl:someValuesFrom {3} .",
    "_:w{0}x{1} owl:onDatatype _:w{0}x{1} ; owl:withRestrictions ( _:w{0}x{1} ) ."])
def test_nested_expressions_take_no_time(axiom: str, tmp_path: Path) -> None:
    "Six levels of fifteen nodes, each of which holds all of the next: eleven million words."
    width, levels = 15, 6
    lines = ["@prefix : <http://e/#> . @prefix owl: <http://www.w3.org/2002/07/owl#> .",
             ":A a owl:Class ; <http://www.w3.org/2000/01/rdf-schema#subClassOf> _:w0x0 ."]
    for level in range(levels):
        inner = [f"_:w{level + 1}x{n}" if level + 1 < levels else f":L{n}" for n in range(width)]
        lines += [axiom.format(level, n, " ".join(inner), ", ".join(inner)) for n in range(width)]
    (tmp_path / "deep.ttl").write_text("\n".join(lines), encoding="utf-8")
    with setup_ontology_context(tmp_path / "deep.ttl", name="deep") as deep:
        begun = time.process_time()
        for tool in ("describe_entity", "probe_relationships"):
            assert characters(deep.tools[tool](":A")) <= VIEW_CHARACTERS
        assert time.process_time() - begun < 1


def test_falsy_values_and_many_labels_are_kept() -> None:
    views = views_of(
        [
            (E + "A", RDF + "type", OWL + "Class"),
            (E + "A", E + "n", Literal("0", "", XSD + "integer")),
            (E + "A", E + "n", Literal("false", "", XSD + "boolean")),
            (E + "A", E + "n", Literal("")),
            (E + "A", RDFS + "label", Literal("one")),
            (E + "A", RDFS + "label", Literal("하나", "ko", "")),
            (E + "A", SKOS + "altLabel", Literal("uno", "es", "")),
        ]
    )
    values = [i["value"] for i in views.describe_entity("x:A")["items"]]
    assert all(any(v == w and type(v) is type(w) for v in values) for w in (0, False, "")) and {
        "one",
        "하나@ko",
        "uno@es",
    } <= set(values)
    assert [views.search_entity(q)["items"][0]["iri"] for q in ("one", "하나", "uno")] == ["x:A"] * 3


@pytest.mark.parametrize("name", ["prov", "skos", "time", "sosa", "ssn", "org", "rlm"])
def test_every_name_on_a_sense_card_exists(name: str) -> None:
    with setup_ontology_context(name) as context:
        grounded(context)


def grounded(context: OntologyContext) -> None:
    card, names = context.sense_card(), context.ontology.prefixes
    assert len(card) <= CARD_CHARACTERS and len(context.summary()) <= 1200
    curies = [c for c in re.findall(r"<[^>]+>|\b[\w-]+:[\w.-]*\w", card) if c.split(":")[0] in names.used or c.startswith("<")]
    assert len(curies) > 3
    assert all(names.expand(c) in context.ontology.graph for c in curies)


# ---------------------------------------------------------------- on ontologies that are too large to be here

def ontology(shared: Path, name: str) -> Path:
    for place in (shared / "ontologies" / name, shared / "data" / "ontologies" / name):
        if place.is_file():
            return place
    pytest.skip(f"needs {name} among the shared data")


@pytest.mark.parametrize("name", ["sio.owl", "uniprot-core.ttl", "prov.ttl", "skos.ttl"])
def test_views_are_exact_on_real_ontologies(name: str, shared: Path) -> None:
    with setup_ontology_context(ontology(shared, name)) as context:
        grounded(context)
        t, o = context.tools, context.ontology
        counted = context.sparql(
            "SELECT (COUNT(DISTINCT ?c) AS ?n) { ?c a ?k VALUES ?k { owl:Class rdfs:Class } FILTER(isIRI(?c)) }"
        ).page()["items"][0]["n"]
        assert counted == context.meta.counts["class"] == t["list_entities"]("class", limit=1)["total"]
        for iri in random.Random(0).sample(o.kinds.classes, min(12, len(o.kinds.classes))):
            curie = o.curie(iri)
            below = context.sparql(f"SELECT DISTINCT ?c {{ ?c rdfs:subClassOf+ <{iri}> FILTER(isIRI(?c) && ?c != <{iri}>) }}").total
            assert t["hierarchy"](curie)["total"] == below
            if below < 400:
                assert len({i["iri"] for i in read_on(lambda offset, c=curie: t["hierarchy"](c, offset=offset))}) == below
            for tool in ("describe_entity", "probe_relationships", "class_properties", "find_path", "instances"):
                assert characters(t[tool](curie)) <= VIEW_CHARACTERS
            read_on(lambda offset, c=curie: t["describe_entity"](c, offset=offset))
        assert all(characters(t["search_entity"](q)) <= VIEW_CHARACTERS for q in ("cell", "has part", "proces", "세포"))


def test_a_term_of_sio_is_found_by_its_label(shared: Path) -> None:
    with setup_ontology_context(ontology(shared, "sio.owl")) as context:
        chosen = random.Random(1).sample(context.ontology.kinds.classes, 60)
        first = [
            context.tools["search_entity"](context.ontology.label(c))["items"][0]["iri"] == context.ontology.curie(c)
            for c in chosen
        ]
        typed = [context.tools["search_entity"](context.ontology.label(c).replace("e", "", 1))["items"] for c in chosen]
        assert sum(first) >= 58
        assert (
            sum(any(i["iri"] == context.ontology.curie(c) for i in items[:3]) for items, c in zip(typed, chosen, strict=True))
            >= 48
        )
