"The machine's clock is set back by a day, and forward again: what is written later stays later."

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from rlm import Memory

NOON = datetime(2026, 3, 10, 12, tzinfo=UTC)


class MachineClock:
    "A clock of a machine, which a person sets."

    def __init__(self) -> None:
        self.at = NOON

    def now(self) -> datetime:
        return self.at

    def seconds(self) -> float:
        return self.at.timestamp()


@pytest.mark.parametrize(("first", "second", "third", "question"), [
    ("I live in Oslo.", "I live in Rome.", "I live in Paris.", "Where do I live now?"),
    ("나는 서울에 살아.", "나는 부산에 살아.", "나는 제주에 살아.", "나는 지금 어디에 살아?")])
def test_a_fact_written_after_the_clock_was_set_back_is_the_newer_one(tmp_path: Path, first: str, second: str, third: str,
                                                                      question: str) -> None:
    clock, path = MachineClock(), tmp_path / "memory.db"
    with Memory(path, clock=clock, embedder="none") as memory:
        old = memory.write(first)
        clock.at -= timedelta(days=1)
        new = memory.write(second)
        assert old.created_at < new.created_at and old.valid_from < new.valid_from
        assert memory.get(old.id).valid_to is not None and memory.get(new.id).valid_to is None
        assert [h.id for h in memory.search(question, 5)] == [new.id]
        assert [r.id for r in memory.list(as_of=NOON)] == [old.id]
        noted = memory.write("The kettle is red.", id="kettle")
        changed = memory.update("kettle", text="The kettle is blue.")
        assert noted.updated_at < changed.updated_at
    with Memory(path, clock=clock, embedder="none") as memory:  # another process, in which the clock never stood at noon
        clock.at += timedelta(hours=1)
        last = memory.write(third)
        assert new.created_at < last.created_at
        assert [h.id for h in memory.search(question, 5)] == [last.id]
        assert [r.text for r in memory.history("kettle").versions] == ["The kettle is red.", "The kettle is blue."]
        clock.at = NOON + timedelta(days=2)
        later = memory.write("The kettle is on the shelf.")
        assert later.created_at == clock.at
        times = [e.at for e in memory.backend.events("default")]
        assert times == sorted(times)
        for moment, current in ((NOON, old), (new.created_at, new), (last.created_at, last), (clock.at, last)):
            assert memory.search(question, 5, as_of=moment, valid_at=moment)[0].id == current.id
        assert memory.search(question, 5, as_of=NOON)[0].id == old.id


def test_a_clock_that_goes_on_is_told_to_the_microsecond(tmp_path: Path) -> None:
    clock = MachineClock()
    with Memory(tmp_path / "memory.db", clock=clock, embedder="none") as memory:
        written = []
        for n in range(3):
            clock.at += timedelta(microseconds=n)
            written.append(memory.write(f"The {n} boats are red.").created_at)
        assert written == [NOON, NOON + timedelta(microseconds=1), NOON + timedelta(microseconds=3)]


@pytest.mark.parametrize(("text", "question"), [
    ("The market is on Sunday.", "When is the market?"), ("장은 일요일에 서.", "장은 언제 서?")])
def test_a_search_and_the_attention_live_at_the_same_time(tmp_path: Path, text: str, question: str) -> None:
    clock = MachineClock()
    with Memory(tmp_path / "memory.db", clock=clock, embedder="none") as memory:
        memory.write(text, valid_to=NOON + timedelta(hours=1))
        assert memory.search(question) and memory.intelligent_search(question)["results"]
        clock.at += timedelta(hours=2)
        memory.write("Boots are wet.")
        clock.at -= timedelta(hours=3)
        assert memory.clock.seconds() == memory.clock.now().timestamp()
        assert not memory.search(question) and not memory.intelligent_search(question)["results"]
