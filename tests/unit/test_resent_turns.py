"A program that sends its whole history with each turn stores each turn once; what people say twice stays twice."
from collections.abc import Iterator

import pytest

from rlm import Memory

TALK = [{"role": "user", "content": "나는 갑각류 알레르기가 있어."}, {"role": "assistant", "content": "Noted."},
        {"role": "user", "content": "What can I cook?"}, {"role": "assistant", "content": "Noted."},
        {"role": "user", "content": "Thanks"}, {"role": "assistant", "content": "You're welcome."}]


@pytest.fixture
def memory() -> Iterator[Memory]:
    with Memory(":memory:", embedder="none") as opened:
        yield opened


def texts(memory: Memory) -> list[str]:
    return [r.text for r in reversed(memory.list(100, session="c", status="any"))]


def test_a_growing_history_is_stored_once(memory: Memory) -> None:
    first = memory.add_conversation(TALK[:2], session="c")
    again = [memory.add_conversation(TALK[:n], session="c") for n in (4, 6, 6)]
    assert texts(memory) == [t["content"] for t in TALK]
    assert all([r.id for r in some[:2]] == [r.id for r in first] for some in again)
    assert [r.id for r in again[1]] == [r.id for r in again[2]] and len(again[2]) == 6
    assert [r.turn for r in again[2]] == [0, 1, 2, 3, 4, 5]


def test_the_last_part_of_a_history_is_enough(memory: Memory) -> None:
    memory.add_conversation(TALK[:4], session="c")
    memory.add_conversation(TALK[2:], session="c")
    assert texts(memory) == [t["content"] for t in TALK]


def test_what_was_deleted_does_not_come_back_with_the_history(memory: Memory) -> None:
    stored = memory.add_conversation(TALK[:4], session="c")
    memory.delete(stored[0].id, erase=True)
    memory.add_conversation(TALK, session="c")
    assert texts(memory) == [t["content"] for t in TALK[1:]]


def test_a_reply_to_a_known_turn_names_the_stored_one(memory: Memory) -> None:
    stored = memory.add_conversation(TALK[:2], session="c")
    more = memory.add_conversation([*TALK[:2], {"speaker": "Mina", "text": "Which?", "reply_to": 0}], session="c")
    assert more[2].reply_to == stored[0].id


@pytest.mark.parametrize(("before", "sent"), [
    (TALK[:4], TALK[2:4]),                                # the same exchange once more
    (TALK[:2], [TALK[1]]),                                # one turn
    (TALK[:4], [TALK[0], TALK[3]]),                       # others between
    (TALK[:4], [{**TALK[2], "role": "assistant"}, TALK[3], TALK[4]])])  # said by another
def test_what_is_said_twice_is_stored_twice(before: list[dict[str, str]], sent: list[dict[str, str]], memory: Memory) -> None:
    memory.add_conversation(before, session="c")
    memory.add_conversation(sent, session="c")
    assert texts(memory) == [t["content"] for t in [*before, *sent]]


def test_a_rejected_sentence_is_named(memory: Memory) -> None:
    wrong = memory.write("I live in Oslo.")
    memory.companion.reject(wrong.id)
    with pytest.raises(ValueError, match="Text 2 of 2 was rejected"):
        memory.add_conversation([TALK[0], {"role": "user", "content": "I live in Oslo."}], session="c")
