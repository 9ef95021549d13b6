"The bundled ontologies: the axioms of the originals, definitions of our own, and nothing of their prose."
import os
import re
from pathlib import Path

import pytest
from conftest import SHARED

rdflib = pytest.importorskip("rdflib", reason="needs the extra agent")
pyoxigraph = pytest.importorskip("pyoxigraph", reason="needs the extra agent")
from rdflib.compare import graph_diff, to_isomorphic  # noqa: E402

from rlm.agent.ontology import setup_ontology_context  # noqa: E402
from rlm.agent.ontology.graph import DC, DCTERMS, OWL, PROV, RDF, RDFS, SKOS  # noqa: E402
from rlm.agent.ontology.rdf_client import bundled, find_ontology  # noqa: E402
from rlm.core.errors import NotFound  # noqa: E402

NAMES = ("org", "prov", "rlm", "skos", "sosa", "ssn", "time")
NAMESPACES = {"prov": PROV, "skos": SKOS, "time": "http://www.w3.org/2006/time#", "sosa": "http://www.w3.org/ns/sosa/",
              "ssn": "http://www.w3.org/ns/ssn/", "org": "http://www.w3.org/ns/org#", "rlm": "https://rlm.github.io/rlm/ns#"}
PROSE = {
    RDFS + "comment",
    DCTERMS + "description",
    DC + "description",
    *(PROV + n for n in ("definition", "editorsDefinition", "editorialNote")),
    *(SKOS + n for n in ("definition", "note", "editorialNote", "changeNote", "historyNote", "scopeNote", "example")),
}
MAILBOX = "http://xmlns.com/foaf/0.1/mbox"
DEFINITION = rdflib.URIRef(SKOS + "definition")


NPM = os.environ.get("RLM_NPM")  # read once, before a test can take it away


def original(name: str) -> Path:
    "The original of an edition: among the shared data, or in a folder of unpacked npm packages that RLM_NPM names."
    places = [SHARED / "ontologies" / f"{name}.ttl", SHARED / "data" / "ontologies" / f"{name}.ttl"]
    if npm := NPM:
        places += [
            Path(npm, "@vocabulary", name, f"{name}.nq"),
            Path(npm, "node_modules", "@vocabulary", name, f"{name}.nq"),
            Path(npm, name, "package", f"{name}.nq"),
        ]
    for place in places:
        if place.is_file():
            return place
    pytest.skip(f"needs the original of {name}: {name}.ttl in the shared data, or RLM_NPM as tools/originals.py says")


def is_prose(predicate: str, value: rdflib.term.Node) -> bool:
    "Whether a triple is prose about a term, or an address of a person's mailbox, and no fact about the domain."
    long = predicate == OWL + "versionInfo" and len(value) > 100
    return predicate == MAILBOX or (isinstance(value, rdflib.Literal) and (predicate in PROSE or long))


def read(path: Path) -> list[tuple[rdflib.term.Node, rdflib.term.Node, rdflib.term.Node]]:
    "A file's triples, of all its graphs. Oxigraph reads it, so that rdflib compares what it has not normalised."
    syntax = pyoxigraph.RdfFormat.N_QUADS if path.suffix == ".nq" else pyoxigraph.RdfFormat.TURTLE
    quads = pyoxigraph.parse(path=str(path), format=syntax, base_iri=f"https://www.w3.org/ns/{path.stem}")  # where npm read it
    lines = dict.fromkeys(f"{q.subject} {q.predicate} {q.object} ." for q in quads)
    return list(rdflib.Graph().parse(data="\n".join(lines), format="nt"))


def facts(path: Path) -> rdflib.Graph:
    "A file's graph without its prose."
    graph = rdflib.Graph()
    for s, p, o in read(path):
        if not is_prose(str(p), o):
            graph.add((s, p, o))
    return graph


@pytest.mark.parametrize("name", [n for n in NAMES if n != "rlm"])
def test_an_edition_has_exactly_the_facts_of_the_original(name: str) -> None:
    ours, theirs = to_isomorphic(facts(bundled()[name])), to_isomorphic(facts(original(name)))
    assert len(ours) > 100
    if ours != theirs:
        _, only_ours, only_theirs = graph_diff(ours, theirs)
        pytest.fail(f"only ours: {sorted(only_ours)[:5]}; only theirs: {sorted(only_theirs)[:5]}")


@pytest.mark.parametrize("name", [n for n in NAMES if n != "rlm"])
def test_no_sentence_of_the_original_is_in_an_edition(name: str) -> None:
    prose = " ".join(str(o) for _, p, o in read(original(name)) if is_prose(str(p), o))
    theirs = " ".join(re.findall(r"\w+", prose.lower()))
    ours = rdflib.Graph().parse(data=bundled()[name].read_bytes(), format="turtle")
    for text in {str(o) for o in ours.objects(None, DEFINITION)}:
        words = re.findall(r"\w+", text.lower())
        runs = [" ".join(words[i:i + 8]) for i in range(len(words) - 7)]
        assert not [run for run in runs if f" {run} " in f" {theirs} "], text


@pytest.mark.parametrize("name", NAMES)
def test_every_term_has_one_short_definition(name: str) -> None:
    graph = rdflib.Graph().parse(data=bundled()[name].read_bytes(), format="turtle")
    kinds = [rdflib.URIRef(OWL + k) for k in ("Class", "ObjectProperty", "DatatypeProperty", "AnnotationProperty")] + [
        rdflib.URIRef(RDF + "Property")
    ]
    terms = {s for k in kinds for s in graph.subjects(rdflib.RDF.type, k) if str(s).startswith(NAMESPACES[name])}
    labelled = {t for t in terms if (t, rdflib.RDFS.label, None) in graph}
    without = {str(t) for t in labelled if (t, DEFINITION, None) not in graph}
    assert not without
    for _, text in graph.subject_objects(DEFINITION):
        assert 15 <= len(text) <= 160 or text.language == "ko", text
        assert text.endswith(".") and text.language in ("en", "ko"), text
    several = [t for t in terms if len([o for o in graph.objects(t, DEFINITION) if o.language == "en"]) > 1]
    assert not several


def test_our_own_vocabulary_speaks_two_languages_and_stands_on_prov() -> None:
    with setup_ontology_context("rlm") as ours, setup_ontology_context("prov") as prov:
        o = ours.ontology
        mine = [t for t in (*o.kinds.classes, *o.kinds.properties) if t.startswith(NAMESPACES["rlm"])]
        assert len(mine) > 40
        assert all({s.lang for s in o.labels.labels(t)} == {"en", "ko"} for t in mine)
        used = {t for t in (*ours.index.hierarchies.classes.nodes, *ours.index.hierarchies.properties.nodes) if t.startswith(PROV)}
        assert used and all(t in prov.ontology.graph for t in used)
        assert ours.tools["hierarchy"]("기억")["total"] == 3


def test_sources_name_every_file(root: Path) -> None:
    text = (root / "ontology" / "SOURCES.md").read_text(encoding="utf-8")
    assert tuple(bundled()) == NAMES
    assert all(f"`{name}.ttl`" in text for name in NAMES)


def test_a_bundled_ontology_is_found_by_name_from_anywhere(bare: Path) -> None:
    assert find_ontology("prov") == find_ontology("ontology/prov.ttl") == bundled()["prov"]
    Path("prov").write_text("mine", encoding="utf-8")
    assert find_ontology("prov") == Path("prov")
    Path("prov").unlink()
    for wrong in ("prov.ttl", "data/prov.ttl", "ontology", "ontology/prov.owl"):
        with pytest.raises(NotFound):
            find_ontology(wrong)
