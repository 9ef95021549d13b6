"Search by words does not get worse unseen: a floor for each of the sets that its weights were chosen on, below what was measured."
from collections.abc import Iterable, Sequence
from pathlib import Path

import pytest

from rlm import Memory
from rlm.bench.korean import read_pairs
from rlm.bench.public_sets import Conversation, read_beam, read_locomo
from rlm.bench.recall import score


def recall(conversations: Iterable[Conversation]) -> float:
    "The mean share of the evidence that is among the first ten, over all questions, each conversation in a store of its own."
    found: list[float] = []
    for conversation in conversations:
        with Memory(":memory:", embedder="none") as memory:
            memory.write_many([dict(turn) for turn in conversation.turns])
            found += [score(conversation, q, [hit.id for hit in memory.search(q.text, 10, min_score=0)]).recall
                      for q in conversation.questions]
    return sum(found) / len(found)


def named(conversations: Sequence[Conversation], names: set[str]) -> list[Conversation]:
    chosen = [c for c in conversations if c.name in names]
    assert len(chosen) == len(names)
    return chosen


def test_locomo_by_words(shared: Path) -> None:
    assert recall(named(read_locomo(shared / "data" / "locomo_dev"), {"conv-26"})) >= .76  # .777


def test_beam_by_words(shared: Path) -> None:
    assert recall(named(read_beam(shared / "data" / "beam_dev"), {"chat-11", "chat-2"})) >= .46  # .478


@pytest.mark.parametrize(("told", "asked", "least"), [("ko", "ko", .81), ("en", "en", .80), ("ko", "en", .66), ("en", "ko", .64)])
def test_the_korean_pairs_by_words(root: Path, told: str, asked: str, least: float) -> None:
    pairs = read_pairs(root / "tests" / "data" / "korean_pairs.jsonl")
    with Memory(":memory:", embedder="none") as memory:
        memory.write_many([{"id": str(n), "text": pair.memory[told]} for n, pair in enumerate(pairs)])
        first = [str(n) in {hit.id for hit in memory.search(pair.question[asked], 5, min_score=0)}
                 for n, pair in enumerate(pairs) if pair.question]
    assert sum(first) / len(first) >= least  # .83, .83, .69 and .67
