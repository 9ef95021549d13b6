"A program that sends its whole history with each turn stores each turn once; what people say twice stays twice."
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from rlm import Memory
from rlm.core.errors import InvalidInput

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


@pytest.mark.parametrize("erase", [False, True])
@pytest.mark.parametrize("gone", [[0], [3], [4], [2, 3], [3, 4], [0, 1, 2, 3, 4]])
def test_whichever_turns_were_deleted_the_history_brings_none_back(gone: list[int], erase: bool, memory: Memory) -> None:
    stored = memory.add_conversation(TALK[:5], session="c")
    memory.delete([stored[n].id for n in gone], erase=erase)
    left = [t["content"] for n, t in enumerate(TALK) if n not in gone]
    for sent in (TALK[:5], TALK, TALK, [*TALK, TALK[4]]):
        back = memory.add_conversation(sent, session="c")
        assert [r.text for r in back] == texts(memory)
    assert texts(memory) == [*left, TALK[4]["content"]], "and what is said again is new"
    if erase:
        for table in ("events", "memory_versions"):
            kept = repr(memory.backend.db.query(f"SELECT * FROM {table}"))
            assert not any(TALK[n]["content"] in kept for n in gone) and "'c'" not in kept


@pytest.mark.parametrize("erase", [False, True])
def test_a_conversation_that_begins_anew_takes_the_same_words(erase: bool, memory: Memory) -> None:
    stored = memory.add_conversation(TALK, session="c")
    memory.add_conversation(TALK, session="other")
    memory.delete(stored[5].id)
    memory.delete([r.id for r in stored[:5]], erase=erase, restart=True)
    assert texts(memory) == []
    anew = memory.add_conversation(TALK[:3], session="c")
    assert texts(memory) == [t["content"] for t in TALK[:3]] and not {r.id for r in anew} & {r.id for r in stored}
    memory.delete(anew[1].id, erase=erase)
    memory.add_conversation(TALK, session="c")
    assert texts(memory) == [t["content"] for n, t in enumerate(TALK) if n != 1], "one that is deleted alone stays away"
    memory.delete([r.id for r in memory.list(100, session="c")])
    assert memory.add_conversation(TALK, session="c") == [], "and so do all, unless the conversation begins anew"
    assert len(memory.list(100, session="other")) == len(TALK) and memory.check() == []


def test_a_program_that_drops_what_was_deleted_is_understood(memory: Memory) -> None:
    stored = memory.add_conversation(TALK[:5], session="c")
    memory.delete(stored[3].id)
    memory.add_conversation([*TALK[:3], *TALK[4:]], session="c")
    assert texts(memory) == [t["content"] for n, t in enumerate(TALK) if n != 3]


def test_a_turn_in_other_words_restored_or_after_a_deleted_one_is_known_again(memory: Memory) -> None:
    stored = memory.add_conversation(TALK[:5], session="c")
    memory.update(stored[4].id, text="Thank you, 고마워")
    memory.delete([stored[2].id, stored[3].id])
    memory.restore(stored[2].id)
    back = memory.add_conversation([*TALK[:5], {"role": "assistant", "content": "천만에요.", "reply_to": 3}], session="c")
    assert [r.id for r in back[:-1]] == [stored[n].id for n in (0, 1, 2, 4)] and back[-1].reply_to is None
    assert sorted(r.text for r in back) == sorted(texts(memory)) and len(back) == 5
    memory.delete(back[-1].id)
    memory.write("좋아", session="c")  # its place is given away
    assert memory.restore(back[-1].id).turn == 6 and memory.check() == []


def test_two_writers_of_one_history_store_it_once(tmp_path: Path) -> None:
    with Memory(tmp_path / "memory.db", embedder="none") as memory:
        find, met = memory.backend.find, threading.Barrier(2)

        def both_have_read(*given: Any, **named: Any) -> Any:
            found = find(*given, **named)
            with suppress(threading.BrokenBarrierError):
                met.wait(2)  # once: later readers find it broken
            met.abort()
            return found
        memory.backend.find = both_have_read  # type: ignore[method-assign]
        threads = [threading.Thread(target=memory.add_conversation, args=(TALK, "c")) for _ in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert texts(memory) == [t["content"] for t in TALK]


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


@pytest.mark.parametrize("at", [0, 1, 2, 3, 6])
def test_a_rejected_sentence_is_named_and_keeps_no_other_turn_out(at: int, memory: Memory) -> None:
    wrong = memory.write("I live in Oslo.")
    memory.companion.reject(wrong.id)
    talk = [*TALK[:at], {"role": "user", "content": "I live in Oslo."}, *TALK[at:]]
    first = True
    for count in (3, 4, 7, 7):
        told = memory.add_conversation(talk[:count], session="c")
        assert texts(memory) == [r.text for r in told] == [t["content"] for n, t in enumerate(talk[:count]) if n != at]
        if at < count:
            assert list(told.refused) == [at] or not first, "it is named when it is sent first"
            assert all("rejected by human" in why for why in told.refused.values())
            first = False
    alone = memory.add_conversation([talk[at]], session="c")
    assert alone == [] and list(alone.refused) == [0] and len(texts(memory)) == len(TALK)
    [answer] = memory.add_conversation([talk[at], {"speaker": "Mina", "text": "Since when?", "reply_to": 0}], session="d")
    assert answer.reply_to is None and not memory.check()


def test_what_was_rejected_of_a_conversation_stays_away_and_lets_the_rest_in(memory: Memory) -> None:
    talk = [{"role": "user", "content": "I live in Oslo."}, *TALK]
    memory.companion.reject(memory.add_conversation(talk[:3], session="c")[0].id)
    again = {"role": "user", "content": "I live in Oslo."}
    for sent in (talk[:5], talk, [*talk, again], [*talk, again]):
        memory.add_conversation(sent, session="c")
    assert texts(memory) == [t["content"] for t in TALK]
    for sent in (talk, [*talk, again]):
        memory.add_conversation(sent, session="c", history=True)
    assert texts(memory) == [t["content"] for t in TALK]


@pytest.mark.parametrize("odd", [None, "a web page", ["부산"]])
def test_a_call_whose_extra_is_no_object_is_refused_with_a_sentence(odd: object) -> None:
    call = {"role": "assistant", "content": None, "tool_calls": [{"function": {"name": "weather"}}], "extra": odd}
    with Memory(":memory:", embedder="none") as memory, pytest.raises(InvalidInput, match=r"The extra is a .*\(turn 1\)"):
        memory.add_conversation([{"role": "user", "content": "비가 와?"}, call])
