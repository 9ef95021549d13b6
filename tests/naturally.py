"""Questions as users of Protégé, OLS and schema.org ask them: what is expected, and whether an answer is right, wrong or refused."""

import os
import re
import unicodedata
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal, NamedTuple

from rlm.agent.ontology import OntologyContext

DATA = Path(__file__).parent / "data"
SUB = "(rdfs:subClassOf|owl:equivalentClass/owl:intersectionOf/rdf:rest*/rdf:first)"
Verdict = Literal["right", "wrong", "refused"]


class Asked(NamedTuple):
    "A question of a set."

    ontology: str  # name of a file in `data/ontologies`, of a bundled one, or of one in the shared folder
    kind: str  # T: terms; L: literals, all of which must be said; N: a number; A: yes or no; R: what no ontology tells, to be refused
    gold: str  # SPARQL; several readings of a question are separated by ` ;;; `
    text: str  # as it was asked


def questions(name: str) -> list[Asked]:
    "The questions of a set."
    return [Asked(*line.split("\t")) for line in (DATA / f"{name}.tsv").read_text("utf-8").splitlines() if line]


def ontology_path(name: str) -> str | None:
    "Where an ontology is; None for one that is not here."
    own = DATA / "ontologies" / f"{name}.ttl"
    if own.exists():
        return str(own)
    if name in {"prov", "skos", "org", "time", "sosa", "ssn", "rlm"}:
        return name
    folder = Path(os.environ.get("RLM_SHARED", "/nowhere")) / "data" / "ontologies"
    found = next(iter(sorted(folder.glob(f"{name}.*"))), None)
    return str(found) if found else None


def expected(asked: Asked, context: OntologyContext) -> list[Any]:
    "What the answer may be: one of these."
    return [_expected(asked._replace(gold=gold), context) for gold in asked.gold.split(" ;;; ")]


def _expected(asked: Asked, context: OntologyContext) -> Any:
    where = re.sub(r"\bSUB\b", SUB, asked.gold)
    if asked.kind == "A":
        return context.sparql(f"ASK {{ {where} }}").answer
    rows = context.sparql(f"SELECT DISTINCT ?x {{ {where} {'' if asked.kind == 'L' else 'FILTER(isIRI(?x))'} }}")
    found = {str(i["x"]) for i in _rows(rows)}
    return len(found) if asked.kind == "N" else found


def _rows(handle: Any) -> Iterator[dict[str, Any]]:
    offset = 0
    while True:
        view = handle.page(limit=200, offset=offset)
        yield from view["items"]
        offset += len(view["items"])
        if not view["truncated"] or not view["items"]:
            return


def _plain(text: str) -> str:
    return " ".join(re.sub(r"[^\w]+", " ", unicodedata.normalize("NFKC", re.sub(r"@[a-z]{2}\b", "", text)).casefold()).split())


def _iri(context: OntologyContext, name: str) -> str:
    return context.ontology.prefixes.expand(name.strip("<>")) or name.strip("<>")


def marked(asked: Asked, value: Any, answer: str, refused: bool, context: OntologyContext) -> Verdict:
    "Right, wrong or refused: terms by their IRIs exactly, literals by being said."
    if asked.kind == "R":
        return "right" if refused else "wrong"
    if refused:
        return "refused"
    return "right" if any(_agrees(asked.kind, gold, value, answer, context) for gold in expected(asked, context)) else "wrong"


def _agrees(kind: str, gold: Any, value: Any, answer: str, context: OntologyContext) -> bool:
    if kind == "A":
        said = value if isinstance(value, bool) else {"yes": True, "no": False}.get(answer.split(",")[0].split(".")[0].strip().lower())
        return bool(said == gold)
    if kind == "N":
        return str(value) == str(gold)
    if kind == "L":
        said_text = _plain(answer)
        return bool(gold) and all(_plain(g.strip("<>").split("…")[0])[:200] in said_text for g in gold)
    given = value if isinstance(value, list) else [value]
    return {_iri(context, str(v)) for v in given} == {_iri(context, g) for g in gold}
