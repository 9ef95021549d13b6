"Small files and calls that would take very long or very much memory: each comes back at once."
import re
import time
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlm.agent.ontology.entity_tools import ClassTools, EntityTools
from rlm.agent.ontology.graph import (
    OWL,
    RDF,
    RDFS,
    SHARED,
    VIEW_CHARACTERS,
    Literal,
    NamespaceTree,
    PrefixMap,
    Term,
    TripleStore,
    characters,
    split_name,
)
from rlm.agent.ontology.hierarchy import Hierarchy
from rlm.agent.ontology.index import OntologyIndex
from rlm.agent.ontology.query_tools import ResultHandle
from rlm.agent.ontology.vocabulary import Ontology
from rlm.core.errors import InvalidInput, NotFound

E = "http://example.org/x#"


TOOL_NAMES = {"search_entity", "describe_entity", "probe_relationships", "hierarchy", "find_path", "class_properties", "relate",
              "list_entities", "instances", "check_iris"}


def views_of(triples: list[tuple[str, str, Term]]) -> SimpleNamespace:
    "Every tool of a graph by its name, and its index."
    index = OntologyIndex(Ontology.build(TripleStore(triples), {"x": E}, "x"))
    groups = (EntityTools(index), ClassTools(index))
    return SimpleNamespace(index=index, **{name: getattr(g, name) for g in groups for name in dir(g) if name in TOOL_NAMES})


@contextmanager
def at_once() -> Iterator[None]:
    "What is done within takes far less than the two seconds that it may take of this thread."
    begun = time.thread_time()
    yield
    assert time.thread_time() - begun < 2


@contextmanager
def little_memory() -> Iterator[None]:
    "What is done within takes less than 30 MB."
    tracemalloc.start()
    try:
        yield
        assert tracemalloc.get_traced_memory()[1] < 30 << 20
    finally:
        tracemalloc.stop()


def listed(name: str, members: list[str]) -> list[tuple[str, str, Term]]:
    "An RDF list."
    cells = [f"_:{name}{n}" for n in range(len(members))] + [RDF + "nil"]
    return [t for n, m in enumerate(members) for t in ((cells[n], RDF + "first", m), (cells[n], RDF + "rest", cells[n + 1]))]


# ---------------------------------------------------------------- names

def test_thousands_of_namespaces_get_their_names() -> None:
    graph = TripleStore((f"http://e.org/item/{n}/{k}", RDFS + "label", Literal("x")) for n in range(4000) for k in "abc")
    with at_once():
        names = PrefixMap(graph, {}, "x")
        assert len({names.curie(f"http://e.org/item/{n}/new") for n in range(4000)}) == 4000
    assert names.used["x"] == "http://e.org/item/0/" and names.curie("http://e.org/item/1/a") == "ns1:a"


def test_namespaces_within_namespaces_take_no_time() -> None:
    declared = {f"p{n}x": "http://e.org/" + "a" * n for n in range(1000)}
    graph = TripleStore((f"http://e.org/{'a' * n}-", RDFS + "label", Literal("x")) for n in range(1000))
    with at_once():
        PrefixMap(graph, declared, "x")


@given(st.lists(st.text("ab/-", max_size=6), max_size=12), st.text("ab/-.", max_size=9))
def test_the_longest_namespace_that_leaves_a_name_is_found(namespaces: list[str], iri: str) -> None:
    known, good = NamespaceTree(namespaces), "ab"
    fits = [n for n in namespaces if iri.startswith(n) and (rest := iri[len(n):]) and rest[0] in good and rest[-1] in good + "-"
            and "/" not in rest]
    assert known.of(iri) == max(fits, key=len, default=None)
    for n in namespaces:
        assert list(known.outer(n)) == sorted({m for m in namespaces if n.startswith(m) and n != m}, key=len, reverse=True)


# ---------------------------------------------------------------- hierarchies

SHAPES: dict[str, Callable[[int], list[tuple[str, str]]]] = {
    "hourglass": lambda n: [("m", f"r{i}") for i in range(n)] + [(f"l{i}", "m") for i in range(n)],
    "chain": lambda n: [(f"{i}", f"{i + 1}") for i in range(n)],
    "circle": lambda n: [(f"{i}", f"{(i + 1) % n}") for i in range(n)]}


@pytest.mark.parametrize("shape", SHAPES)
def test_roots_are_counted_at_once(shape: str) -> None:
    edges = SHAPES[shape](3000)
    with at_once(), little_memory():
        h = Hierarchy(edges)
        assert h.roots == {"hourglass": sorted(f"r{i}" for i in range(3000)), "chain": ["3000"], "circle": []}[shape]


def test_what_is_kept_of_a_hierarchy_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rlm.agent.ontology.hierarchy.KEPT", 5000)
    h = Hierarchy(SHAPES["chain"](300))
    for _ in range(2):
        assert sum(len(h.ancestors(n)) for n in h.nodes) == 300 * 301 // 2 and sum(map(len, h._up._kept.values())) <= 5000


def test_two_classes_with_very_many_common_ancestors_are_compared_at_once() -> None:
    h = Hierarchy([(low, f"r{i}") for i in range(2000) for low in "ab"])
    with at_once():
        shared, lowest = h.common_ancestors("a", "b")
    assert len(shared) == 2000 and lowest == shared


@given(st.lists(st.tuples(st.sampled_from("abcdef"), st.sampled_from("abcdef")), max_size=14))
def test_sizes_and_lowest_are_what_they_are_by_definition(edges: list[tuple[str, str]]) -> None:
    h = Hierarchy(edges, "z")
    assert h.sizes == {t: len(h.descendants(t)) for t in h.nodes}
    assert h.roots == sorted((t for t in h.nodes if t not in h.parents), key=lambda t: (-len(h.descendants(t)), t))
    shared, lowest = h.common_ancestors("a", "b")
    under = {t: [s for s in shared if t in h.ancestors(s) and s not in h.ancestors(t)] for t in shared}
    assert lowest == [t for t in shared if not under[t]]


# ---------------------------------------------------------------- views

def test_classes_that_all_exclude_each_other_are_described_at_once() -> None:
    classes = [f"{E}c{n}" for n in range(2000)]
    views = views_of([*((c, RDF + "type", OWL + "Class") for c in classes), ("_:d", RDF + "type", OWL + "AllDisjointClasses"),
                      ("_:d", OWL + "members", "_:l0"), *listed("l", classes)])
    with at_once(), little_memory():
        assert views.describe_entity("c0", "disjoint with")["total"] == 1999
        assert views.relate("c5", "c1999")["because"] == "x:c5 is disjoint with x:c1999" and not views.relate("c5", "c5")["disjoint"]


def test_lists_that_share_their_ends_are_not_all_read() -> None:
    classes = [f"{E}c{n}" for n in range(1000)]
    kept: list[tuple[str, str, Term]] = [*((c, RDF + "type", OWL + "Class") for c in classes), *listed("l", classes)]
    for n in range(1000):
        kept += [(f"_:d{n}", RDF + "type", OWL + "AllDisjointClasses"), (f"_:d{n}", OWL + "members", f"_:l{n}"),
                 (f"{E}p{n}", RDFS + "domain", f"_:u{n}"), (f"_:u{n}", OWL + "unionOf", f"_:l{n}")]
    views = views_of(kept)
    with at_once():
        assert views.describe_entity("c5", "disjoint with")["total"] == 104 and views.class_properties("c5")["total"] == 6
    assert len(views.index.ontology.graph.list_members("_:l5")) == SHARED
    assert len(TripleStore(listed("l", classes)).list_members("_:l0")) == 1000


def test_a_domain_that_many_properties_share_is_read_once() -> None:
    classes = [f"{E}c{n}" for n in range(1000)]
    kept: list[tuple[str, str, Term]] = [*((f"{E}p{n}", RDFS + "domain", "_:u") for n in range(1000)), ("_:u", OWL + "unionOf", "_:l0")]
    views = views_of([*kept, *listed("l", classes)])
    with at_once():
        assert views.class_properties("x:c5")["total"] == 1000


def test_very_many_ways_between_two_classes_are_not_all_walked() -> None:
    kept: list[tuple[str, str, Term]] = [(E + c, RDF + "type", OWL + "Class") for c in "ABM"]
    for n in range(1000):
        kept += [(f"{E}p{n}", RDFS + "domain", E + "A"), (f"{E}p{n}", RDFS + "range", E + "M"),
                 (f"{E}q{n}", RDFS + "domain", E + "M"), (f"{E}q{n}", RDFS + "range", E + "B")]
    with at_once(), little_memory():
        related = views_of(kept).relate("A", "B")
    assert related["total"] == 1000 and "only the 1,000" in related["note"]
    assert related["items"][1]["path"] == "x:A –x:p0→ x:M –x:q1→ x:B"
    few = views_of([t for t in kept if t[0][-2:] in ("p1", "q1", "q2", "#A", "#B", "#M")]).relate("A", "B")
    assert few["total"] == 2 and "note" not in few


def test_a_graph_with_a_thousand_ways_to_define_is_searched_at_once() -> None:
    views = views_of([(f"{E}c{n}", f"{E}a{n}_description", Literal("said")) for n in range(3000)])
    with at_once():
        assert views.search_entity("said", limit=1)["total"] == 3000


# ---------------------------------------------------------------- what a tool is asked with

def wide_row() -> ResultHandle:
    return ResultHandle(["x"], [("a" * 40,), ("b" * 1000,), ("AbC\nd",)], 3)


def test_a_pattern_with_many_stars_takes_no_time() -> None:
    with at_once():
        assert wide_row().where("x", "*a" * 8 + "*b")["total"] == 0 and wide_row().where("x", "*a" * 30 + "*")["total"] == 1
        assert ResultHandle(["x"], [("a" * 1_000_000,)], 1).where("x", "*" + "a" * 900 + "b*")["total"] == 0


@given(st.text("aAbB*\n.?", max_size=7), st.text("aAbB\n.?*", max_size=8))
def test_a_pattern_means_what_it_means_as_a_regular_expression(pattern: str, text: str) -> None:
    means = re.compile(".*".join(map(re.escape, pattern.split("*"))), re.I | re.S)
    assert ResultHandle(["x"], [(text,)], 1).where("x", pattern)["total"] == bool(means.fullmatch(text))


@given(st.text("aAB1_ é-", max_size=12))
def test_names_are_split_where_two_kinds_of_letters_meet(name: str) -> None:
    spaced = re.sub(r"([a-z0-9])([A-Z])|([A-Z]+)([A-Z][a-z])", lambda m: f"{m[1] or m[3]} {m[2] or m[4]}", name)
    assert split_name(name) == " ".join(re.split(r"[\s_.-]+", spaced)).strip()


def test_what_is_too_long_to_be_looked_for_is_refused() -> None:
    views = views_of([(E + "Agent", RDF + "type", OWL + "Class")])
    long = "A" * 200_000
    with at_once():
        assert len(split_name(long)) == len(long)
        for call in (lambda: views.search_entity(long), lambda: views.describe_entity(long), lambda: views.check_iris(["x", long]),
                     lambda: views.describe_entity("Agent", fact=long), lambda: views.list_entities(long),
                     lambda: wide_row().where(long, "x"), lambda: wide_row().group(long)):
            with pytest.raises(InvalidInput, match=r"has 200,000 characters\. Give at most 1,000"):
                call()
        assert views.check_iris(["Agnt"] * 50_000, limit=3)["missing"] == 50_000


def test_names_that_are_nearly_alike_are_not_all_compared() -> None:
    labels = [("aabb" * 20)[:n] for n in range(40, 60)]
    views = views_of([(f"{E}C{n}", RDFS + "label", Literal(f"{labels[n % 20]}{n}")) for n in range(1000)])
    with at_once(), pytest.raises(NotFound):
        views.describe_entity("ab" * 30)
    with at_once():
        views.search_entity("ab" * 30)


# ---------------------------------------------------------------- pages

@given(st.integers(1, 90), st.integers(1, 120), st.text(max_size=40), st.integers(1, 5))
def test_every_page_of_wide_rows_holds_at_least_one(columns: int, letters: int, cell: str, rows: int) -> None:
    names = [f"{n}{'c' * letters}" for n in range(columns)]
    handle, seen = ResultHandle(names, [(cell,) * columns] * rows, rows), 0
    while seen < rows:
        view = handle.page(offset=seen)
        assert view["items"] and characters(view) <= VIEW_CHARACTERS and view["truncated"] == bool(view["more"])
        seen += len(view["items"])
    assert not view["truncated"]


def test_what_is_left_out_of_a_wide_row_is_counted() -> None:
    row = ResultHandle([f"c{n}" for n in range(60)], [("x" * 30,) * 60], 1).page()["items"][0]
    assert row["…"] == f"[+{60 - len(row) + 1}]" and list(row)[:2] == ["c0", "c1"]
