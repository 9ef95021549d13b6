"What an editor, a type checker and `help` see of `Memory`, and the calls that came with the second edition."
import asyncio
import inspect
import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

import jedi
import pytest
from toy import Toy

from rlm import Memory
from rlm.core.clock import ManualClock
from rlm.core.errors import AlreadyExists, InvalidInput, NotFound, RlmError, SettingsError, VersionConflict
from rlm.service.memory import EARLIER_NAMES
from rlm.service.memory_context import MemoryContext
from rlm.store.records import MemoryRecord

METHODS = ["write", "write_many", "add_conversation", "get", "list", "search", "update", "delete", "restore", "explain", "history", "link",
           "unlink", "links", "feedback", "context", "stats", "namespace", "namespaces", "close"]
ASIDE = {"bootstrap", "recall", "intelligent_search"}
PARTS = {"anchors": "AnchorManager", "graph": "GraphIndex", "attention": "SearchCoordinator", "rules": "RuleStore",
         "strategies": "SQLiteStrategyStore", "companion": "Companion", "admin": "MemoryAdmin"}


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock("2026-05-08T09:00:00Z")


@pytest.fixture
def memory(clock: ManualClock) -> Iterator[Memory]:
    with Memory(":memory:", clock=clock, embedder="none") as opened:
        yield opened


def public() -> dict[str, Any]:
    return {name: f for name, f in vars(Memory).items() if inspect.isfunction(f) and not name.startswith("_")}


# ---------------------------------------------------------------- what others see of it

def test_memory_is_one_class() -> None:
    assert Memory.__mro__ == (Memory, object) and not hasattr(Memory, "__getattr__")
    assert set(METHODS) <= public().keys() and EARLIER_NAMES.keys() | ASIDE <= vars(Memory).keys()
    text = subprocess.run([sys.executable, "-c", "from rlm import Memory; help(Memory)"], capture_output=True, text=True, check=True).stdout
    for name, f in public().items():
        assert len((inspect.getdoc(f) or "").split()) > 4, name
        assert f" {name}(" in text, name


@pytest.mark.parametrize("name", sorted(n for n in public() if not n.startswith("a") or n == "add_conversation"))
def test_each_method_has_a_twin_of_the_same_signature(name: str) -> None:
    method, twin = getattr(Memory, name), getattr(Memory, f"a{name}")
    assert inspect.iscoroutinefunction(twin) and inspect.signature(twin) == inspect.signature(method)
    assert twin.__qualname__ == f"Memory.a{name}"


def test_an_editor_completes_it_and_shows_signatures() -> None:
    begun = "from rlm.service.memory import Memory\nmemory = Memory('m.db')\n"
    found = {c.name for c in jedi.Script(f"{begun}memory.").complete(3, 7)}
    assert found >= {*METHODS, *(f"a{name}" for name in METHODS), *PARTS, *EARLIER_NAMES, *ASIDE}
    for name in ("search", "asearch", "write", "awrite", "list"):
        [shown] = jedi.Script(f"{begun}memory.{name}(").get_signatures(3, len(f"memory.{name}("))
        wanted = [p.name for p in inspect.signature(getattr(Memory, name)).parameters.values() if p.name != "self"]
        assert [p.name for p in shown.params][:-1] == wanted[:-1] and shown.params[-1].kind.name == "VAR_KEYWORD", name
        assert shown.docstring(), name
    for part, kind in PARTS.items():
        assert {n.name for n in jedi.Script(f"{begun}memory.{part}").infer(3, 8)} == {kind}
    returned = {"search('x')": "SearchResults", "list()": "MemoryPage", "get('x')": "MemoryRecord", "namespace('x')": "Memory"}
    for call, made in returned.items():
        assert {n.name for n in jedi.Script(f"{begun}found = memory.{call}\nfound").infer(4, 2)} == {made}, call


def test_a_type_checker_sees_the_twins(tmp_path: Path) -> None:
    source = tmp_path / "used.py"
    source.write_text("from rlm import Memory\n\n\nasync def use(memory: Memory) -> None:\n"
                      "    reveal_type(await memory.asearch('boat', top_k=3))\n    reveal_type(await memory.alist(3))\n"
                      "    reveal_type(memory.rules)\n    await memory.asearch(3)\n")
    said = subprocess.run([sys.executable, "-m", "mypy", "--strict", str(source)],
                          capture_output=True, text=True, cwd=Path(__file__).parents[2]).stdout
    assert 'Revealed type is "rlm.service.results.SearchResults"' in said and 'Revealed type is "rlm.service.results.MemoryPage"' in said
    assert 'Revealed type is "rlm.rules.rule_store.RuleStore"' in said and 'incompatible type "int"; expected "str"' in said


def test_twins_do_what_their_methods_do(memory: Memory) -> None:
    async def use() -> None:
        stored = await memory.awrite("The boat is red.", id="boat")
        assert await memory.aget("boat") == stored == memory.get("boat") and (await memory.asearch("boat", top_k=1))[0].id == "boat"
        assert (await memory.alist(5))[0] == stored and await memory.anamespaces() == ["default"]
        assert await memory.adelete("boat") == 1 and (await memory.arestore("boat")).version == 2
    asyncio.run(use())


# ---------------------------------------------------------------- one argument with two names

def test_k_and_top_k_are_the_same_argument(memory: Memory) -> None:
    memory.write_many([f"boat number {n}" for n in range(5)])
    for find in (memory.search, memory.recall):
        assert len(find("boat", 2)) == len(find("boat", k=2)) == len(find("boat", top_k=2)) == len(find("boat", 2, top_k=2)) == 2
        with pytest.raises(InvalidInput, match="k is 2 and top_k is 3"):
            find("boat", 2, top_k=3)
        with pytest.raises(InvalidInput, match="k is 0"):
            find("boat", top_k=0)
    assert len(memory.list(top_k=3)) == 3 and memory.intelligent_search("boat", top_k=1)["result_count"] == 1


OTHER_NAMES: list[tuple[Callable[[Any], object], str]] = [  # what users of other libraries type first, and what they are told
    (lambda m: m.search("tea", limit=3), "is k."), (lambda m: m.search("tea", n_results=3), "is k."), (lambda m: m.list(limit=3), "is k."),
    (lambda m: m.search("tea", user_id="al"), "Memory(namespace=NAME)"), (lambda m: m.search("tea", threshold=.3), "is min_score."),
    (lambda m: m.search("tea", where={"a": 1}), "Each filter is an argument"), (lambda m: m.search("tea", run_id="x"), "'session'"),
    (lambda m: m.write("tea", user_id="al"), "Memory(namespace=NAME)"), (lambda m: m.write("tea", metadata={}), "'extra'"),
    (lambda m: m.write("tea", timestamp="2025-01-01"), "'valid_from'"), (lambda m: m.update("x", data="tea"), "given as text"),
    (lambda m: Memory(":memory:", user_id="al"), "'namespace'"), (lambda m: Memory(db="x.db"), "'db_path'")]


@pytest.mark.parametrize(("call", "told"), OTHER_NAMES)
def test_the_name_of_another_library_is_answered_with_ours(memory: Memory, call: Callable[[Any], object], told: str) -> None:
    with pytest.raises((InvalidInput, SettingsError)) as refused:
        call(memory)
    assert told in str(refused.value)


def test_the_file_may_be_given_as_the_setting_it_is(tmp_path: Path, words_only: None) -> None:
    with Memory(db_path=tmp_path / "a.db") as memory:
        assert memory.write("tea").text == "tea" and (tmp_path / "a.db").exists()


def test_an_empty_slot_is_no_slot(memory: Memory) -> None:
    attempts: list[Callable[[], Any]] = [lambda: memory.write("boat", slot=""), lambda: memory.search("boat", slot=""),
                                         lambda: memory.write_many(["boat"], slot="")]
    for act in attempts:
        with pytest.raises(InvalidInput):
            act()
    assert not memory.recent()


# ---------------------------------------------------------------- contexts and namespaces

def test_namespaces_share_a_file_and_a_model_and_nothing_else(clock: ManualClock, tmp_path: Path) -> None:
    with Memory(tmp_path / "m.db", clock=clock, embedder=Toy()) as first:
        second = first.namespace("second")
        first.write("The boat is in the harbour.", id="one", slot="A")
        second.write("The kitten sleeps.", id="two")
        assert first.namespaces() == ["default", "second"] == second.namespaces()
        assert second.ctx.storage.db is first.ctx.storage.db and second.embeddings is first.embeddings and second.clock is clock
        assert [h.id for h in first.search("boat kitten")] == ["one"] and [h.id for h in second.search("boat kitten")] == ["two"]
        assert not second.graph.edge_count and second.anchors.state()[0].id is None and second.rules.namespace == "second"
        second.close()
        assert first.get("one").text and first.namespace("second").get("two").namespace == "second"
        for odd in ("", " ", "a\nb", 7):
            with pytest.raises(InvalidInput):
                first.namespace(odd)  # type: ignore[arg-type]


def test_a_memory_is_made_of_a_context_that_is_open(clock: ManualClock) -> None:
    context = MemoryContext.open(":memory:", clock=clock, embedder="none", namespace="team", search_k=2)
    with Memory(context=context) as memory:
        memory.write_many(["boat one", "boat two", "boat three"])
        assert memory.ctx is context and len(memory.search("boat")) == 2 and memory.settings is context.settings
        assert Memory(context=context).get(memory.recent()[0].id) == memory.recent()[0]


def test_rules_and_strategies_are_those_of_the_namespace(memory: Memory) -> None:
    memory.rules.add_rule("Take the tram when it rains.", formal="when rain then tram = True", rule_id="tram")
    assert memory.rules is memory.rules and memory.rules.apply({"rain": True}).outcomes == {"tram": {True: ("tram",)}}
    assert memory.get("tram").kind == "rule" and memory.namespace("other").rules.apply({"rain": True}).outcomes == {}
    memory.write("Look first.", kind="strategy", title="Look", id="look")
    assert [s.title for s in memory.strategies.items()] == ["Look"] and memory.namespace("other").strategies.items() == []


# ---------------------------------------------------------------- lists

def test_pages_hold_every_memory_once_whatever_is_written_meanwhile(memory: Memory) -> None:
    memory.write_many([{"text": f"note {n}", "id": f"n{n}", "tags": ["odd"] if n % 2 else []} for n in range(25)])
    seen, cursor = list[MemoryRecord](), None
    while True:
        page = memory.list(4, cursor=cursor)
        seen += page
        memory.write("written meanwhile")
        if (cursor := page.next_cursor) is None:
            break
    assert [r.id for r in seen] == [f"n{n}" for n in reversed(range(25))]
    odd = memory.list(12, tags="odd")
    assert [r.id for r in odd] == [f"n{n}" for n in range(23, 0, -2)] and odd.next_cursor is None
    assert json.loads(json.dumps(odd.as_dict()))["items"][0]["id"] == "n23" and "n23" in repr(odd)
    assert list(memory.list(3, status="archived")) == [] and memory.list(3, status="archived").next_cursor is None


def test_a_page_of_the_past_and_of_a_conversation(memory: Memory, clock: ManualClock) -> None:
    memory.add_conversation([("Mina", f"turn {n}") for n in range(5)], session="s")
    memory.write("elsewhere")
    clock.advance(days=1)
    then = clock.advance(days=1)
    clock.advance(days=1)
    memory.delete([r.id for r in memory.recent(9, session="s")])
    for more in ({"session": "s", "as_of": then}, {"as_of": then, "speaker": "Mina"}):
        first = memory.list(3, **more)
        second = memory.list(3, cursor=first.next_cursor, **more)
        assert [r.text for r in (*first, *second)] == [f"turn {n}" for n in reversed(range(5))] and second.next_cursor is None
    assert len(memory.list(3)) == 1


def test_a_cursor_tells_nothing_and_opens_its_own_namespace_alone(memory: Memory) -> None:
    memory.write_many(["one", "two", "three"])
    other = memory.namespace("other")
    other.write_many([f"note {n}" for n in range(40)])
    cursor = memory.list(1).next_cursor
    assert cursor is not None and len(cursor) == 22 and [r.text for r in memory.list(5, cursor=cursor)] == ["two", "one"]
    with pytest.raises(InvalidInput, match="cursor"):
        other.list(1, cursor=cursor)
    swapped = cursor[:-2] + ("AA" if cursor[-2:] != "AA" else "BA")
    with pytest.raises(InvalidInput, match="cursor"):
        memory.list(1, cursor=swapped)


def test_what_goes_out_as_json_counts_no_writes_of_others(memory: Memory) -> None:
    memory.write("mine", id="a")
    before = json.dumps([memory.get("a").id, memory.search("mine")[0].as_dict(), memory.history("a").as_dict(), memory.list(1).as_dict()])
    memory.namespace("other").write_many([f"note {n}" for n in range(40)])
    memory.delete("a", erase=True)
    memory.write("mine", id="a")
    after = json.dumps([memory.get("a").id, memory.search("mine")[0].as_dict(), memory.history("a").as_dict(), memory.list(1).as_dict()])
    assert [e["kind"] for e in json.loads(after)[2]["events"]] == ["write", "erase", "write"] and "seq" not in before + after
    assert json.loads(after)[:2] == json.loads(before)[:2] and json.loads(after)[3] == json.loads(before)[3]


def test_a_change_that_expects_another_version_changes_nothing(memory: Memory) -> None:
    memory.write("Mina drinks tea.", id="tea")
    assert memory.update("tea", if_version=1, text="Mina drinks black tea.").version == 2
    for stale in (1, 3):
        with pytest.raises(VersionConflict, match="has version 2"):
            memory.update("tea", if_version=stale, text="Mina drinks nothing.")
        with pytest.raises(VersionConflict, match="has version 2"):
            memory.update("tea", if_version=stale)
        for erase in (False, True):
            with pytest.raises(VersionConflict, match="has version 2"):
                memory.delete("tea", if_version=stale, erase=erase)
    assert memory.get("tea").text == "Mina drinks black tea." and memory.get("tea").version == 2
    assert memory.delete("tea", if_version=2) == 1


def test_of_many_who_change_one_version_one_succeeds(path: Path, words_only: None) -> None:
    with Memory(path) as memory:
        memory.write("0", id="n")

        def change(n: int) -> bool:
            with suppress(VersionConflict):
                return memory.update("n", if_version=1, text=f"by {n}").version == 2
            return False
        with ThreadPoolExecutor(8) as pool:
            assert sum(pool.map(change, range(24))) == 1
        assert memory.get("n").version == 2


def test_a_taken_id_has_an_error_of_its_own(memory: Memory) -> None:
    memory.write("one", id="a")
    with pytest.raises(AlreadyExists, match="already a memory 'a'"):
        memory.write("two", id="a")
    assert memory.get("a").text == "one"


def test_an_answer_names_the_layer_that_gave_it(memory: Memory, clock: ManualClock) -> None:
    for n in range(4):
        memory.write(f"The boat {n} is in the harbour.")
    asked = "Which boat is in the harbour?"
    assert [memory.recall(asked, 3).source, memory.recall(asked, 3).source] == ["index", "cache"]
    again = memory.intelligent_search(asked, k=3)
    assert (again["source"], again["results"].source, memory.recall("the boat in the harbour", 3).source) == ("cache", "cache",
                                                                                                              "working_memory")
    past = memory.intelligent_search(asked, k=3, as_of=clock.now())
    assert (past["source"], past["results"].source, past["results"].trace().by_layer()) == ("history", "history", {"history": 3})
    assert memory.search(asked, as_of=clock.now()).source == "history" and "from the" not in repr(past["results"])


@pytest.mark.parametrize("cursor", ["", "x", "-1", "1.5", "١", "9" * 40, 3, "2", "A" * 22, "가" * 22, "-" * 22, "A" * 21 + "="])
def test_a_cursor_that_is_none_is_refused(memory: Memory, cursor: Any) -> None:
    with pytest.raises(InvalidInput, match="cursor"):
        memory.list(3, cursor=cursor)


# ---------------------------------------------------------------- deleted, and back

def test_a_deleted_memory_is_restored_as_its_next_version(memory: Memory, clock: ManualClock) -> None:
    memory.write("Mina drinks green tea.", id="tea", tags=["drinks"], category="preference", session="s", extra={"n": 1})
    memory.write("The cat sleeps.", id="cat")
    memory.link("tea", "cat")
    memory.feedback("tea", helped=2)
    old = memory.get("tea")
    clock.advance(days=1)
    memory.delete("tea")
    gone = clock.advance(days=1)
    clock.advance(days=1)
    back = memory.restore("tea")
    assert back == memory.get("tea") and back.version == 2 and back.seq > old.seq and back.updated_at == clock.now()
    kept = ["text", "tags", "category", "session", "turn", "extra", "success", "created_at", "valid_from", "status"]
    assert [getattr(back, name) for name in kept] == [getattr(old, name) for name in kept]
    assert memory.search("green tea")[0].id == "tea" and not memory.search("green tea", as_of=gone) and memory.links("tea") == []
    assert [e.kind for e in memory.history("tea").events][-2:] == ["delete", "write"] and memory.check() == []
    assert memory.history("tea").events[-1].detail == {"restored": 1} and memory.history("tea").events[-1].at == clock.now()
    memory.update("tea", text="Mina drinks black tea.")
    assert [v.version for v in memory.history("tea").versions] == [1, 2, 3]


def test_what_can_not_be_restored_is_said(memory: Memory) -> None:
    memory.write("boat", id="here")
    memory.write("sail", id="erased")
    memory.delete("erased", erase=True)
    for id, kind in {"here": InvalidInput, "erased": NotFound, "nobody": NotFound}.items():
        before = memory.backend.position()
        with pytest.raises(kind) as told:
            memory.restore(id)
        assert told.value.hint and memory.backend.position() == before


def test_a_restored_turn_keeps_its_place_unless_it_was_given_away(memory: Memory) -> None:
    memory.add_conversation([{"text": f"turn {n}", "id": f"t{n}"} for n in range(3)], session="s")
    memory.delete(["t1", "t2"])
    assert memory.restore("t1").turn == 1
    memory.write("another last word", id="new", session="s")
    assert memory.get("new").turn == 2 and memory.restore("t2").turn == 3 and memory.check() == []


def test_a_restored_memory_has_vectors_again_and_is_guarded(tmp_path: Path, clock: ManualClock) -> None:
    key = "AKIA" + "IOSFODNN7EXAMPLE"
    with Memory(tmp_path / "m.db", clock=clock, embedder=Toy(), secrets="allow") as memory:
        memory.write(f"The boat's key is {key}.", id="key")
        memory.delete("key")
    with Memory(tmp_path / "m.db", clock=clock, embedder=Toy()) as memory:
        assert key not in memory.restore("key").text
        assert memory.search("sail on the sea")[0].id == "key" and memory.check() == []


# ---------------------------------------------------------------- links

def test_links_are_removed(memory: Memory) -> None:
    memory.write_many([{"text": t, "id": t} for t in ("a", "b", "c")])
    for relation in ("likes", "knows"):
        memory.link("a", "b", relation)
    memory.link("b", "a", "likes")
    memory.link("a", "c")
    assert memory.graph.edge_count == 2, "pairs that are linked"
    assert memory.unlink("a", "b", "likes") == 1 and {(e.src, e.dst, e.relation) for e in memory.links("b")} == {
        ("a", "b", "knows"), ("b", "a", "likes")}
    assert memory.unlink("a", "b") == 1 and memory.unlink("a", "b") == 0 and memory.unlink("b", "a") == 1
    assert [id for id, _ in memory.graph.neighbors("a")] == ["c"] and memory.links("b") == []
    assert memory.history("a").events[-1].detail == {"dst": "b", "relation": "knows", "removed": True}
    before = memory.backend.position()
    for pair in (("a", "nobody"), ("nobody", "a")):
        with pytest.raises(NotFound):
            memory.unlink(*pair)
    assert memory.backend.position() == before and memory.unlink("a", "a") == 0


def test_a_link_of_the_graph_is_removed_from_either_end(tmp_path: Path) -> None:
    with Memory(tmp_path / "m.db", embedder=Toy()) as memory:
        memory.write_many([{"text": f"boat at sea {n}", "id": f"b{n}"} for n in range(3)])
        memory.bootstrap(progress=False)
        assert {"b0", "b1"} <= {id for id, _ in memory.graph.neighbors("b2")}
        assert memory.unlink("b2", "b0") >= 1 and memory.unlink("b1", "b2") >= 1
        assert not memory.graph.neighbors("b2") and memory.check() == []
    with Memory(tmp_path / "m.db", embedder=Toy()) as again:
        assert not again.graph.neighbors("b2")


def test_feedback_counts_what_helped_and_what_misled(memory: Memory) -> None:
    memory.write("boat", id="boat")
    memory.feedback("boat", helped=2, failed=1, query="where is the boat?")
    memory.record_usage("boat", success=1, access=0)
    found = memory.get("boat")
    assert (found.success, found.failure, found.access_count) == (3, 1, 1)
    assert memory.history("boat").events[-2].detail["query"] == "where is the boat?"
    with pytest.raises(InvalidInput):
        memory.feedback("boat", helped=-1)


# ---------------------------------------------------------------- a user leaves

def test_a_namespace_is_erased_with_a_receipt_and_nothing_of_it_comes_back(tmp_path: Path) -> None:
    with Memory(tmp_path / "app.db", namespace="mina", embedder="none") as mina:
        kept, gone = mina.write("Xylophon lessons on Monday."), mina.write("Quarzuhr repairs on Friday.")
        mina.delete(gone.id)
        mina.recall("lessons")
        mina.namespace("joon").write("Joon likes tea.")
        done = mina.admin.erase_namespace("mina")
        assert (done.namespace, done.erased, set(done.ids)) == ("mina", 2, {kept.id, gone.id}) and done.copies == ()
        assert mina.namespaces() == ["joon"] and not mina.search("lessons") and not mina.check()
        with pytest.raises(NotFound, match="nothing in namespace 'mina'"):
            mina.admin.erase_namespace("mina")
    held = b"".join(path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())
    assert b"Joon likes tea" in held and b"Xylophon" not in held and b"Quarzuhr" not in held
    with Memory(tmp_path / "app.db", embedder="none", read_only=True) as reader, pytest.raises(RlmError):
        reader.admin.erase_namespace("joon")


def test_a_memory_is_opened_and_closed_by_asyncio() -> None:
    async def words() -> str:
        async with Memory(":memory:", embedder="none") as memory:
            await memory.awrite("The tea is green.")
            return (await memory.asearch("tea"))[0].text
    assert asyncio.run(words()) == "The tea is green."


def test_the_hint_for_a_wrong_setting_is_one_name_not_all() -> None:
    with pytest.raises(RlmError) as caught:
        Memory(":memory:", user_id="al")
    assert caught.value.hint == "Did you mean 'namespace'?"
