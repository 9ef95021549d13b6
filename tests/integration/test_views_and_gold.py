"Two readings of the same ontologies, written apart: the views that an agent uses, and the queries that say what is right."
import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from rlm.agent.ontology import OntologyContext, setup_ontology_context
from rlm.bench.gold import ChainAnswer, NumberAnswer, TermNames, TermsAnswer, TruthAnswer, names_of, read_gold
from rlm.bench.questions import Question, generate

OWL = "http://www.w3.org/2002/07/owl#"


@pytest.fixture(scope="module", params=[
    "org.ttl", "prov.ttl", "skos.ttl", "sosa.ttl", "ssn.ttl", "time.ttl", "uniprot-core.ttl", "sio.owl"])
def both(request: pytest.FixtureRequest, root: Path) -> Iterator[tuple[OntologyContext, list[Question], TermNames]]:
    path = root / "ontology" / request.param
    if not path.is_file():
        path = request.getfixturevalue("shared") / "data" / "ontologies" / request.param
    graph = read_gold(path)
    with setup_ontology_context(path, name=graph.name) as context:
        yield context, generate(graph, each=12), names_of(graph)


def everything(view: Callable[..., dict[str, Any]], *terms: str, **how: Any) -> list[dict[str, Any]]:
    "All items of a view, page by page."
    found: list[dict[str, Any]] = []
    while True:
        page = view(*terms, offset=len(found), **how)
        found += page["items"]
        if not page["items"] or len(found) >= page["total"]:
            return found


def stated(view: Callable[..., dict[str, Any]], *terms: str, **how: Any) -> list[str]:
    "Terms of a hierarchy that are there by statements, as the questions ask; definitions place others, and are marked."
    return [i["iri"] for i in everything(view, *terms, **how) if i.get("by") != "definition"]


def facts(context: OntologyContext, term: str, fact: str) -> list[str]:
    return [i["value"] for i in everything(context.tools["describe_entity"], term) if i["fact"] == fact]


def seen(context: OntologyContext, q: Question) -> list[str] | int | bool | None:
    "What the views say to a question; None for kinds that they answer only together."
    t, x, y = context.tools, q.subjects[0], q.subjects[-1]
    match q.template:
        case "direct_subclasses" | "subproperties":
            return stated(t["hierarchy"], x, depth=1)
        case "direct_superclasses" | "superproperties":
            return stated(t["hierarchy"], x, direction="up", depth=1)
        case "all_subclasses":
            return stated(t["hierarchy"], x)
        case "ancestors":
            return stated(t["hierarchy"], x, direction="up")
        case "count_direct":
            return len(stated(t["hierarchy"], x, depth=1))
        case "count_all":
            return len(stated(t["hierarchy"], x))
        case "domain" | "range" | "inverse":
            return [v.strip("()").split()[0] for value in facts(context, x, q.template) for v in value.split(" or ")]
        case "is_a":
            return t["relate"](x, y)["is_a"] == "a is a b"
        case "common_ancestor":
            return [i if isinstance(i, str) else i["iri"] for i in t["relate"](x, y)["nearest_common"]]
        case "are_disjoint":
            return bool(t["relate"](x, y)["disjoint"])
        case "inherited_properties":
            return [i["iri"] for i in everything(t["class_properties"], x) if "by" not in i]
        case "instances":
            return [i["iri"] for i in everything(t["instances"], x)]
    return None


def test_they_agree(both: tuple[OntologyContext, list[Question], TermNames]) -> None:
    context, questions, names = both
    differing, compared = [], 0
    for q in questions:
        if (said := seen(context, q)) is None:
            continue
        compared += 1
        ours = TermsAnswer(frozenset(names.resolve(s) or s for s in said) - {OWL + "Thing"}) if isinstance(said, list) else (
            TruthAnswer(said) if isinstance(said, bool) else NumberAnswer(said))
        if ours != q.answer:
            differing.append((q.template, q.subjects, said, q.answer))
    assert compared and not differing, f"{len(differing)} of {compared}: {differing[:5]}"


def test_paths_agree(both: tuple[OntologyContext, list[Question], TermNames]) -> None:
    context, questions, names = both
    for q in questions:
        if q.template == "path_to_root":
            assert isinstance(q.answer, ChainAnswer)
            paths = [i["path"].split(" > ") for i in everything(context.tools["find_path"], q.subjects[0])]
            ways = {tuple(t for s in path if (t := names.resolve(s) or s) != OWL + "Thing") for path in paths}
            assert ways == q.answer.ways, q.subjects


def test_a_label_finds_its_term(both: tuple[OntologyContext, list[Question], TermNames]) -> None:
    context, questions, names = both
    asked = [q for q in questions if q.template == "label_iri"]
    random.Random(0).shuffle(asked)
    for q in asked:
        label = names.labels[q.subjects[0]][0]
        assert names.resolve(context.tools["search_entity"](label)["items"][0]["iri"]) == q.subjects[0], label
