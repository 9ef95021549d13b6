"Ontologies as people write them: defined classes, OBO's numbers, schema.org's includes, and sets of terms by conditions."

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from rlm.agent.ontology import OntologyContext, setup_ontology_context

DATA = Path(__file__).parents[1] / "data" / "ontologies"


@pytest.fixture(scope="module")
def opened() -> Iterator[dict[str, OntologyContext]]:
    found = {name: setup_ontology_context(DATA / f"{name}.ttl") for name in ("bakery", "seedling", "market")}
    yield found
    for context in found.values():
        context.close()


def listed(view: dict[str, Any]) -> set[str]:
    return {i["iri"] for i in view["items"]}


def test_a_defined_class_is_below_what_its_definition_names(opened: dict[str, OntologyContext]) -> None:
    view = opened["bakery"].tools["hierarchy"]("Bread", depth=1)
    assert listed(view) == {"b:Rye_Bread", "b:Baguette", "b:Brioche", "b:Flatbread", "b:Sourdough_Bread"}
    assert {i["iri"] for i in view["items"] if i.get("by") == "definition"} == {"b:Sourdough_Bread"}, "stated and defined are told apart"
    assert opened["bakery"].tools["relate"]("b:Butter", "b:Dairy")["is_a"] == "a is a b", "a member of a union is below it"
    assert opened["seedling"].tools["relate"]("root meristem", "plant structure")["is_a"] == "a is a b"
    assert opened["seedling"].tools["relate"]("plant structure", "root meristem")["is_a"] == "b is a a"


def test_only_an_intersection_places_a_class(opened: dict[str, OntologyContext]) -> None:
    told = opened["bakery"].tools["relate"]("b:Vegan_Baked_Good", "b:Animal_Product")
    assert told["is_a"] == "neither", "what is complemented is no parent"
    assert "b:Sourdough_Bread" not in listed(opened["bakery"].tools["list_entities"]("root class"))


def test_restrictions_within_a_definition_give_properties(opened: dict[str, OntologyContext]) -> None:
    items = opened["bakery"].tools["class_properties"]("b:Sourdough_Bread", inherited=False)["items"]
    assert ("b:hasLeavening", "restriction") in {(i["iri"], i.get("by")) for i in items}


def test_what_schema_org_includes_is_domain_and_range(opened: dict[str, OntologyContext]) -> None:
    tools = opened["market"].tools
    assert {f["value"] for f in tools["describe_entity"]("m:seller", fact="range")["items"]} == {"m:Organization", "m:Person"}
    assert listed(tools["class_properties"]("m:Book", inherited=False)) == {"m:isbn", "m:numberOfPages"}
    assert [f["value"] for f in tools["describe_entity"]("m:vendor", fact="replaced by")["items"]] == ["m:seller"]
    assert [f["value"] for f in tools["describe_entity"]("m:itemOffered", fact="inverse")["items"]] == ["m:offers"]


@pytest.mark.parametrize(("name", "conditions", "found"), [
    ("bakery", {"lacks": "range", "kind": "object property"}, {"b:isIngredientOf", "b:bakes"}),
    ("bakery", {"below": "b:Cake", "deprecated": False}, {"b:Sponge_Cake", "b:Cheesecake", "b:Cupcake"}),
    ("bakery", {"uses": "b:Egg"}, {"b:Brioche", "b:Sponge_Cake"}),
    ("bakery", {"uses": "b:Wheat_Flour"}, set()),  # a baguette has nothing else; that it has wheat flour is not said
    ("bakery", {"kind": "property", "range": "date"}, {"b:bakedOn"}),
    ("bakery", {"instance_of": "b:Bread"}, {"b:house_rye"}),
    ("bakery", {"below": "b:Bread", "defined": True}, {"b:Sourdough_Bread"}),
    ("bakery", {"kind": "property", "characteristic": "functional"}, {"b:hasSweetness", "b:weightInGrams"}),
    ("seedling", {"kind": "term", "deprecated": True}, {"obo:SDL_0000018", "obo:SDL_0000019"}),
    ("seedling", {"below": "plant organ", "exclude": ["root"]},
     {"obo:SDL_0000007", "obo:SDL_0000008", "obo:SDL_0000009", "obo:SDL_0000011"}),
    ("seedling", {"on": "part of", "uses": "embryo"}, {"obo:SDL_0000008", "obo:SDL_0000011"}),
    ("market", {"kind": "property", "domain": "m:Offer", "range": "m:Organization"}, {"m:seller", "m:vendor"}),
    ("market", {"kind": "property", "deprecated": True}, {"m:vendor"}),
    ("market", {"kind": "property", "range": "number"}, {"m:price", "m:numberOfPages", "m:wheels"}),
])
def test_terms_are_found_by_what_they_have_and_lack(name: str, conditions: dict[str, Any], found: set[str],
                                                    opened: dict[str, OntologyContext]) -> None:
    assert listed(opened[name].tools["find_terms"](**conditions)) == found


def test_the_header_is_told_under_plain_names(opened: dict[str, OntologyContext]) -> None:
    def told(name: str, fact: str) -> list[str]:
        return [i["value"] for i in opened[name].tools["about_ontology"](fact)["items"]]
    assert told("bakery", "creator") == ["Jonas Weber", "Mina Park"]
    assert (told("seedling", "version"), told("market", "modified")) == (["2025-02-01"], ["2025-08-30"])
    assert "obo: <http://purl.obolibrary.org/obo/>" in told("seedling", "prefix")


def test_of_several_headers_those_that_say_it_are_heard_and_the_placeholder_is_not_shown() -> None:
    about = setup_ontology_context("prov").tools["about_ontology"]
    assert [i["value"] for i in about("version")["items"]] == ["Working Group Note version 2013-04-30", "Recommendation version 2013-04-30"]
    bound = [i["value"] for i in about("prefix")["items"]]
    assert "xsd: <http://www.w3.org/2001/XMLSchema#>" in bound and not [n for n in bound if "rlm.invalid" in n]


def test_common_prefixes_need_no_declaration(opened: dict[str, OntologyContext]) -> None:
    assert opened["market"].sparql("ASK { ?x a skos:Concept }").answer is False
    assert opened["market"].sparql("ASK { ?x rdfs:label ?l FILTER(DATATYPE(?l) = xsd:string) }").answer is True


def test_a_relative_name_is_shown_and_understood_as_the_file_has_it() -> None:
    with setup_ontology_context("prov") as context:
        listed = context.tools["list_entities"]("ontology")["items"]
        assert "<prov.ttl#>" in [i["iri"] for i in listed] and "rlm.invalid" not in str(listed) + context.summary()
        assert context.ontology.exists("<prov.ttl#>")
        assert context.sparql("SELECT ?o { <prov.ttl#> owl:imports ?o }").page()["items"] == [{"o": "<http://www.w3.org/ns/prov-o#>"}]
