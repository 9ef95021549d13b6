"Memories that were written singly with the same text are one hit: the newest, which names the others. Turns of a chat are not."

from collections.abc import Iterator

import pytest

from rlm.core.clock import ManualClock
from rlm.search.candidates import CandidateSet, Query, Searcher
from rlm.search.scoring import RankedList
from rlm.service.memory import Memory

TEA, RENT = "Mina drinks green tea.", "Mina pays the rent on the first."


@pytest.fixture
def memory() -> Iterator[Memory]:
    with Memory(":memory:", embedder="none", clock=ManualClock("2026-01-05")) as found:
        yield found


def told(memory: Memory, *texts: str, **fields: object) -> list[str]:
    "Write texts singly, a day apart."
    ids = []
    for text in texts:
        ids.append(memory.write(text, **fields).id)
        memory.clock.advance(days=1)  # type: ignore[attr-defined]
    return ids


@pytest.mark.parametrize("k", [1, 2, 3, 10])
def test_equal_texts_are_one_hit_and_leave_their_places_to_others(memory: Memory, k: int) -> None:
    first, rent, second, third = told(memory, TEA, RENT, TEA, TEA)
    hits = memory.search("What does Mina drink? green tea", k=k)
    assert [(h.id, h.duplicates) for h in hits] == [(third, (second, first)), (rent, ())][:k] and [h.rank for h in hits] == [1, 2][:k]
    assert hits[0].as_dict()["duplicates"] == [second, first] and "(written 3 times)" in str(hits)
    assert "duplicates" not in hits[-1].as_dict() or k == 1


def test_equal_texts_are_one_hit_of_recall(memory: Memory) -> None:
    first, rent, second = told(memory, TEA, RENT, TEA)
    found = memory.intelligent_search("What does Mina drink? green tea")
    assert [(h.id, h.duplicates) for h in found["results"]] == [(second, (first,)), (rent, ())] and found["result_count"] == 2


def test_the_best_hits_beside_many_equal_texts_are_found(memory: Memory) -> None:
    told(memory, *[TEA] * 40)
    (other,) = told(memory, RENT)
    first, second = memory.search("Mina green tea", k=2)
    assert len(first.duplicates) == 39 and second.id == other


@pytest.mark.parametrize("number", [40, 3000])
def test_very_many_equal_texts_are_ranked_twice_at_most(memory: Memory, monkeypatch: pytest.MonkeyPatch, number: int) -> None:
    memory.write_many([{"text": TEA}] * number)
    memory.write(RENT)
    wanted, rank = list[int](), Searcher.retrieve_and_rank

    def counted(searcher: Searcher, query: Query, k: int, known: CandidateSet | None = None) -> tuple[CandidateSet, RankedList]:
        wanted.append(k)
        return rank(searcher, query, k, known)
    monkeypatch.setattr(Searcher, "retrieve_and_rank", counted)
    found = memory.search("Mina green tea", k=3)
    assert found[0].memory.text == TEA and len(found) == (2 if number == 40 else 1)
    assert len(wanted) == 2, f"{number} equal texts were ranked for {wanted}"


def test_what_a_search_shows_for_an_older_memory_is_explained(memory: Memory) -> None:
    old, new = told(memory, TEA, TEA)
    assert "Found at rank 1" in memory.explain("green tea", old).verdict
    assert f"Shown as {new}, a newer memory with the same text." in memory.explain("green tea", old).verdict
    assert "Shown as" not in memory.explain("green tea", new).verdict


def test_the_fact_that_is_asked_for_is_one_hit(memory: Memory) -> None:
    "The search adds what states the fact, though it has no word of the question."
    old, new = told(memory, "I moved to Busan.", "I moved to Busan.")
    assert [(h.id, h.duplicates) for h in memory.search("Where do I live?")] == [(new, (old,))]


def test_a_block_has_the_words_once(memory: Memory) -> None:
    told(memory, TEA, TEA, RENT)
    assert memory.context("green tea").text.count("green tea") == 1


def test_turns_and_what_differs_besides_the_text_are_hits_of_their_own(memory: Memory) -> None:
    memory.add_conversation([{"role": "user", "content": TEA}, {"role": "user", "content": TEA}], session="talk")
    told(memory, TEA)
    told(memory, TEA, speaker="Jo")
    told(memory, TEA, provenance={"facts": False})
    told(memory, TEA, title="Drinks")
    hits = memory.search("green tea")
    assert len(hits) == 6 and not any(h.duplicates for h in hits)


def test_what_holds_again_is_no_duplicate_of_what_has_ended(memory: Memory) -> None:
    told(memory, "I live in Seoul.", "I live in Busan.", "I live in Seoul.")
    assert [len(h.duplicates) for h in memory.search("Where do I live?")] == [0]
    assert all(not h.duplicates for h in memory.search("Where did I live before?"))
