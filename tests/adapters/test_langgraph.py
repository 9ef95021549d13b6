"""The LangGraph store: the shapes that LangGraph's own stores are tested with, and what a memory adds to them."""

from pathlib import Path
from typing import Any, TypedDict

import pytest

pytest.importorskip("langgraph.store.base", reason="needs langgraph-checkpoint: make adapters")

from langgraph.store.base import (
    BaseStore,
    GetOp,
    InvalidNamespaceError,
    ListNamespacesOp,
    MatchCondition,
    PutOp,
    SearchOp,
)

from rlm import Memory
from rlm.adapters.langgraph import LangGraphStore
from rlm.core.clock import ManualClock
from rlm.core.errors import InvalidInput

USERS = ("users", "mina")


class State(TypedDict):
    "What a graph hands from node to node."

    said: str
    answer: str


def test_a_store_over_the_path_of_a_memory_is_refused_at_once() -> None:
    with pytest.raises(InvalidInput, match=r"Open it: Memory\('x.db'\)"):
        LangGraphStore("x.db")  # type: ignore[arg-type]


@pytest.fixture
def store() -> Any:
    with Memory(":memory:", embedder="none", clock=ManualClock("2026-11-21T09:00:00Z")) as memory:
        yield LangGraphStore(memory)


def test_items_are_put_got_changed_and_deleted(store: LangGraphStore) -> None:
    assert store.get(USERS, "tea") is None
    store.put(USERS, "tea", {"text": "likes tea", "n": 1, "deep": {"list": [1, {"x": None}]}})
    first = store.get(USERS, "tea")
    assert first is not None and first.value == {"text": "likes tea", "n": 1, "deep": {"list": [1, {"x": None}]}}
    assert (first.namespace, first.key) == (USERS, "tea") and first.created_at == first.updated_at
    store.memory.clock.advance(minutes=5)  # type: ignore[attr-defined]
    store.put(USERS, "tea", {"text": "likes coffee"})
    second = store.get(USERS, "tea")
    assert second is not None and second.value == {"text": "likes coffee"} and second.updated_at > second.created_at
    store.delete(USERS, "tea")
    store.delete(USERS, "tea")
    assert store.get(USERS, "tea") is None
    store.put(USERS, "tea", {"again": True})
    assert store.get(USERS, "tea").value == {"again": True}  # type: ignore[union-attr]


def test_a_batch_reads_before_it_writes_and_the_last_write_of_a_key_counts(store: LangGraphStore) -> None:
    store.put(USERS, "a", {"n": 1})
    results = store.batch(
        [
            PutOp(USERS, "a", {"n": 2}),
            GetOp(USERS, "a"),
            PutOp(USERS, "a", {"n": 3}),
            SearchOp(("users",)),
            ListNamespacesOp(),
            PutOp(USERS, "b", None),
            GetOp(USERS, "none"),
        ]
    )
    assert [type(r).__name__ for r in results] == ["NoneType", "Item", "NoneType", "list", "list", "NoneType", "NoneType"]
    assert results[1].value == {"n": 1} and store.get(USERS, "a").value == {"n": 3}  # type: ignore[union-attr]


async def _async(store: LangGraphStore) -> None:
    await store.aput(USERS, "k", {"text": "차를 좋아한다"})
    assert (await store.aget(USERS, "k")).value == {"text": "차를 좋아한다"}  # type: ignore[union-attr]
    assert [i.key for i in await store.asearch(("users",), query="차")] == ["k"]
    assert await store.alist_namespaces() == [USERS]
    await store.adelete(USERS, "k")


def test_the_twins_for_asyncio_do_the_same(store: LangGraphStore) -> None:
    import asyncio

    asyncio.run(_async(store))


@pytest.mark.parametrize(
    ("wanted", "keys"),
    [
        ({"n": 1}, ["a"]),
        ({"n": {"$eq": 2}}, ["b"]),
        ({"n": {"$ne": 1}}, ["c", "b"]),
        ({"n": {"$gt": 1}}, ["c", "b"]),
        ({"n": {"$gte": 2, "$lt": 3}}, ["b"]),
        ({"n": {"$lte": 1}}, ["a"]),
        ({"kind": "x", "n": {"$gt": 1}}, ["b"]),
        ({"none": 1}, []),
        ({"n": "1"}, []),
        ({"n": {"$gt": "a"}}, []),
    ],
)
def test_filters_compare_fields(store: LangGraphStore, wanted: dict[str, Any], keys: list[str]) -> None:
    for n, (key, kind) in enumerate([("a", "x"), ("b", "x"), ("c", "y")], 1):
        store.put(USERS, key, {"n": n, "kind": kind})
    assert [i.key for i in store.search(USERS, filter=wanted)] == keys


def test_an_unknown_operator_is_an_error(store: LangGraphStore) -> None:
    store.put(USERS, "a", {"n": 1})
    with pytest.raises(ValueError, match=r"no operator '\$in'"):
        store.search(USERS, filter={"n": {"$in": [1]}})


HOSTILE = ["a'b", 'a"b', "a%b", "a_b", "a*b", "a[b]", "a/b", "a\\b", "a;DROP TABLE memories", "한글", "a b", "$a", "🙂"]


@pytest.mark.parametrize("label", HOSTILE)
def test_labels_and_keys_are_only_themselves(store: LangGraphStore, label: str) -> None:
    store.put(("docs", label), label, {"x": label})
    store.put(("docs", f"{label}2"), "k", {"x": 2})
    store.put(("docs",), "k", {"x": 3})
    assert store.get(("docs", label), label).value == {"x": label}  # type: ignore[union-attr]
    assert [i.value["x"] for i in store.search(("docs", label))] == [label]
    assert store.list_namespaces(prefix=("docs", label)) == [("docs", label)] and len(store.search(("docs",))) == 3


def test_prefixes_end_at_labels(store: LangGraphStore) -> None:
    for path in (("a", "bc"), ("a", "b"), ("ab", "c"), ("a", "b", "c")):
        store.put(path, "k", {"p": list(path)})
    assert {i.namespace for i in store.search(("a", "b"))} == {("a", "b"), ("a", "b", "c")}
    assert len(store.search(())) == 4


@pytest.mark.parametrize("path", [(), ("a.b",), ("",), ("langgraph", "x"), ("a\0b",)])
def test_wrong_namespaces_are_refused(store: LangGraphStore, path: tuple[str, ...]) -> None:
    with pytest.raises(InvalidNamespaceError):
        store.put(path, "k", {"x": 1})
    if path and "." in path[0]:
        with pytest.raises(InvalidNamespaceError):
            store.batch([PutOp(path, "k", {"x": 1})])


def test_namespaces_are_listed_by_prefix_suffix_wildcards_and_depth(store: LangGraphStore) -> None:
    paths = [("a", "b", "c"), ("a", "b", "d", "e"), ("a", "x", "i"), ("b", "c"), ("users", "1", "prefs"), ("users", "2", "prefs")]
    for path in paths:
        store.put(path, "k", {"x": 1})
    assert store.list_namespaces() == sorted(paths)
    assert store.list_namespaces(prefix=("a", "b")) == [("a", "b", "c"), ("a", "b", "d", "e")]
    assert store.list_namespaces(suffix=("prefs",)) == [("users", "1", "prefs"), ("users", "2", "prefs")]
    assert store.list_namespaces(prefix=("users", "*")) == [("users", "1", "prefs"), ("users", "2", "prefs")]
    assert (
        store.list_namespaces(max_depth=1) == [("a",), ("b",), ("users",)]
        and store.list_namespaces(limit=2, offset=1) == sorted(paths)[1:3]
    )
    both = ListNamespacesOp((MatchCondition("prefix", ("a",)), MatchCondition("suffix", ("e",))))
    assert store.batch([both]) == [[("a", "b", "d", "e")]]


def test_a_search_finds_by_words_and_pages(store: LangGraphStore) -> None:
    for n in range(30):
        store.put(
            ("notes", str(n % 3)),
            f"n{n}",
            {"title": f"note {n}", "body": "the boat is in the harbour" if n < 20 else "bread", "n": n},
        )
    found = store.search(("notes",), query="boat harbour", limit=8)
    assert len(found) == 8 and all("boat" in i.value["body"] and i.score is not None for i in found)
    rest = store.search(("notes",), query="boat harbour", limit=50, offset=8)
    assert len(rest) == 12 and not {i.key for i in rest} & {i.key for i in found}
    odd = store.search(("notes",), query="boat", filter={"n": {"$gte": 18}}, limit=10)
    assert {i.key for i in odd} == {"n18", "n19"}
    assert [i.key for i in store.search(("notes",), limit=3)] == ["n29", "n28", "n27"] and len(
        store.search(("notes", "0"), limit=50)
    ) == 10


def test_only_indexed_fields_are_found(store: LangGraphStore) -> None:
    store.put(USERS, "a", {"title": "boat", "secret": "zebra"}, index=["title"])
    store.put(USERS, "b", {"title": "ship", "list": [{"t": "kayak"}, {"t": "canoe"}]}, index=["list[*].t"])
    store.put(USERS, "c", {"title": "ferry"}, index=False)
    assert [i.key for i in store.search(USERS, query="boat")] == ["a"] and not store.search(USERS, query="zebra")
    assert [i.key for i in store.search(USERS, query="canoe")] == ["b"] and not store.search(USERS, query="ship")
    assert not store.search(USERS, query="ferry") and store.get(USERS, "c") is not None


def test_items_live_as_long_as_they_are_told(store: LangGraphStore) -> None:
    clock: Any = store.memory.clock
    store.put(USERS, "short", {"x": 1}, ttl=10)
    store.put(USERS, "long", {"x": 2})
    clock.advance(minutes=8)
    assert store.get(USERS, "short") is not None  # and it lives on
    clock.advance(minutes=8)
    assert store.get(USERS, "short", refresh_ttl=False) is not None
    clock.advance(minutes=5)
    assert store.get(USERS, "short") is None and [i.key for i in store.search(USERS)] == ["long"]
    assert store.sweep_ttl() == 1 and store.sweep_ttl() == 0


def test_a_user_is_erased_and_the_others_stay(tmp_path: Path) -> None:
    with Memory(tmp_path / "m.db", embedder="none") as memory:
        store = LangGraphStore(memory)
        store.put(("mina", "facts"), "a", {"text": "lives in Zweibruecken"})
        store.put(("mina", "facts"), "a", {"text": "lives in Quakenbrueck"})
        store.put(("mina", "talk"), "b", {"text": "likes Pumpernickel"})
        store.put(("minah", "facts"), "a", {"text": "lives in Oldenburg"})
        store.delete(("mina", "talk"), "b")
        for wrong in ((), "mina"):
            with pytest.raises(InvalidInput, match="prefix"):
                store.erase(wrong)
        assert store.erase(("mina",)) == 2 and store.erase(("mina",)) == 0
        assert [i.value["text"] for i in store.search(())] == ["lives in Oldenburg"] and not memory.check()
    held = b"".join(p.read_bytes() for p in tmp_path.rglob("*") if p.is_file())
    assert b"Oldenburg" in held and not [w for w in (b"Zweibruecken", b"Quakenbrueck", b"Pumpernickel") if w in held]


def test_what_was_put_has_a_history_and_outlives_the_process(tmp_path: Path) -> None:
    with Memory(tmp_path / "m.db", embedder="none") as memory:
        store = LangGraphStore(memory)
        store.put(USERS, "a", {"text": "lives in Seoul"})
        store.put(USERS, "a", {"text": "lives in Busan"})
    with Memory(tmp_path / "m.db", embedder="none") as memory:
        [found] = LangGraphStore(memory).search(USERS, query="busan")
        assert found.value == {"text": "lives in Busan"} and not memory.check()
        assert [v.text for v in memory.history(memory.list(k=1, status="any")[0].id).versions] == [
            "lives in Seoul",
            "lives in Busan",
        ]


def test_a_graph_uses_it() -> None:
    graph = pytest.importorskip("langgraph.graph")

    def remember(state: dict[str, Any], *, store: BaseStore) -> dict[str, Any]:
        store.put(("facts",), "name", {"text": state["said"]})
        return {"answer": store.search(("facts",), query="name")[0].value["text"]}

    with Memory(":memory:", embedder="none") as memory:
        built = graph.StateGraph(State)
        built.add_node("remember", remember)
        built.set_entry_point("remember")
        app = built.compile(store=LangGraphStore(memory))
        assert app.invoke({"said": "My name is Mina", "answer": ""})["answer"] == "My name is Mina"
