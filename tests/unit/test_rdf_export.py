"A store as RDF: well-formed whatever was written, in the vocabulary, and of one namespace."
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rlm import Memory
from rlm.core.errors import NotFound
from rlm.service.rdf_export import rdf_blocks, text

rdflib = pytest.importorskip("rdflib", reason="needs the extra agent")
RLM = rdflib.Namespace("https://rlm.github.io/rlm/ns#")
PROV = rdflib.Namespace("http://www.w3.org/ns/prov#")


def exported(memory: Memory, namespace: str | None = None, words: bool = True) -> rdflib.Graph:
    return rdflib.Graph().parse(data="\n".join(rdf_blocks(memory.backend, namespace, words)), format="turtle")


def filled(memory: Memory) -> Memory:
    "A store with a run, a strategy that it was given, and one that was learned from it."
    given = memory.write("hierarchy() gives the total.", kind="strategy", title="Count once", source_type="human", tags=["hierarchy"])
    memory.write("Check each IRI.", kind="strategy", title="Check", source_type="success", provenance={"run_id": "r-1", "pack": "prov_v1"})
    memory.write("when tea then milk", kind="rule")
    memory.write("민아는 녹차를 좋아한다.", id="tea", speaker="민아")
    memory.write("Me too.", id="too", speaker="Jo", reply_to="tea")
    memory.link("tea", "too", "next")
    rows = {"runs": ("r-1", "default", "2026-01-01T00:00:00Z", "habit", "prov", "ontology/prov.ttl", None),
            "trajectories": ("t-1", "r-1", "how many subclasses?", "9", 1, 1, "{}", None, "prov_v1", "p-1", "2026-01-01T00:00:00Z"),
            "judgments": ("t-1", 0, "it counted wrongly", "high", "[]"), "memory_usage": ("t-1", given.id, 1, 0.0)}
    with memory.backend.transaction():
        for table, row in rows.items():
            memory.backend.db.query(f"INSERT INTO {table} VALUES ({', '.join('?' * len(row))})", row)
    return memory


def test_everything_about_a_store_is_said_in_the_vocabulary(memory: Memory, root: Path) -> None:
    graph = exported(filled(memory))
    known = rdflib.Graph().parse(data=(root / "ontology" / "rlm.ttl").read_bytes(), format="turtle")
    used = {t for s, p, o in graph for t in (p, o) if str(t).startswith(str(RLM))}
    assert not {t for t in used if (t, rdflib.RDF.type, None) not in known}
    kinds = {str(o).removeprefix(str(RLM)) for o in graph.objects(None, rdflib.RDF.type)}
    assert kinds == {"Namespace", "Block", "Rule", "Strategy", "Speaker", "Run", "MemoryUsage", "Trajectory", "Judgment", "Edge", "Event"}


def test_a_strategy_leads_to_its_run_and_the_run_to_what_it_was_given(memory: Memory) -> None:
    graph = exported(filled(memory))
    [run] = graph.subjects(rdflib.RDF.type, RLM.Run)
    [learned] = graph.subjects(RLM.learnedFrom, run)
    assert str(graph.value(learned, rdflib.RDFS.label)) == "Check" and str(graph.value(learned, RLM.inPack)).endswith("pack:prov_v1")
    [given] = graph.objects(run, RLM.usedMemory)
    assert str(graph.value(given, rdflib.RDFS.label)) == "Count once"
    usage = graph.value(run, PROV.qualifiedUsage)
    assert (graph.value(usage, PROV.entity), graph.value(usage, RLM.rank).toPython(), graph.value(usage, RLM.score).toPython()) == (
        given,
        1,
        0.0,
    )
    [judgment] = graph.subjects(rdflib.RDF.type, RLM.Judgment)
    assert graph.value(judgment, RLM.success).toPython() is False
    assert str(graph.value(run, RLM.followed)).endswith("curriculum:prov_v1")


def test_an_unknown_judgment_is_no_failure(memory: Memory) -> None:
    filled(memory)
    with memory.backend.transaction():
        memory.backend.db.query("UPDATE judgments SET is_success = NULL")
    graph = exported(memory)
    [judgment] = graph.subjects(rdflib.RDF.type, RLM.Judgment)
    assert (judgment, RLM.success, None) not in graph


def test_without_text_nothing_of_it_is_there(memory: Memory) -> None:
    filled(memory)
    whole, bare = ("\n".join(rdf_blocks(memory.backend, None, words)) for words in (True, False))
    for secret in ("녹차", "hierarchy()", "Count once", "how many subclasses", "counted wrongly"):
        assert secret in whole and secret not in bare
    assert "rlm:learnedFrom" in bare and "rlm:iterations" in bare


def test_a_namespace_is_exported_alone(path: Path) -> None:
    with Memory(path, namespace="team a") as a, Memory(path, namespace="b") as b:
        a.write("of a", id="one")
        b.write("of b", id="two")
        said = "\n".join(rdf_blocks(a.backend, "team a"))
        assert "of a" in said and "of b" not in said and "team%20a" in said
        with pytest.raises(NotFound, match="no namespace 'c'"):
            list(rdf_blocks(a.backend, "c"))


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.text(st.characters(exclude_categories=()), max_size=40))
def test_any_text_is_read_back(said: str) -> None:
    graph = rdflib.Graph().parse(data=f"<urn:a> <urn:b> {text(said)} .", format="turtle")
    [found] = graph.objects()
    assert str(found) == said.encode("utf-8", "replace").decode()
