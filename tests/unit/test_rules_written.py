"A rule that is written as a memory is held to what the store of rules asks."

from collections.abc import Iterator
from typing import Any

import pytest

from rlm import Memory
from rlm.core.clock import ManualClock
from rlm.core.errors import InvalidInput
from rlm.rules import FormalError, RuleStore

pytestmark = pytest.mark.usefixtures("bare")
BROKEN: tuple[dict[str, Any], ...] = ({"formal": "when hour < then b"}, {"formal": 5}, {"extra": {"counted_from": {}}})


@pytest.fixture
def memory() -> Iterator[Memory]:
    with Memory(":memory:", clock=ManualClock("2026-01-01")) as store:
        yield store


@pytest.mark.parametrize("odd", BROKEN)
def test_what_cannot_be_read_is_refused_and_nothing_is_stored(memory: Memory, odd: dict[str, Any]) -> None:
    for write in (lambda: memory.write("x", kind="rule", **odd),
                  lambda: memory.write_many(["fine", {"text": "x", "kind": "rule", **odd}]),
                  lambda: memory.add_conversation([{"text": "fine"}, {"text": "x", **odd}], kind="rule")):
        with pytest.raises(InvalidInput):
            write()
    assert not memory.recent()


@pytest.mark.parametrize("odd", BROKEN)
def test_an_update_is_refused_too(memory: Memory, odd: dict[str, Any]) -> None:
    old = memory.write("x", kind="rule", formal="when a then b")
    with pytest.raises(InvalidInput):
        memory.update(old.id, **odd)
    assert memory.get(old.id) == old


def test_the_position_is_told(memory: Memory) -> None:
    with pytest.raises(FormalError, match="at character 11"):
        memory.write("x", kind="rule", formal="when hour < then b")
    with pytest.raises(FormalError, match="at character 11"):
        memory.update(memory.write("x", kind="rule").id, formal="when hour < then b")
    with pytest.raises(InvalidInput, match=r"at character 11.*\(item 0\)"):
        memory.write_many([{"text": "x", "kind": "rule", "formal": "when hour < then b"}])


def test_what_can_be_read_is_applied(memory: Memory) -> None:
    rule = memory.write("Tea", kind="rule", formal="when hour < 11 then drink = 'tea'")
    memory.update(rule.id, formal="when hour < 9 then drink = 'tea'")
    rules = RuleStore.within(memory)
    assert not rules.apply({"hour": 10}).fired and rules.apply({"hour": 8}).fired
    memory.update(rule.id, formal=None)
    assert not rules.apply({"hour": 8}).fired


def test_other_memories_may_say_what_they_like(memory: Memory) -> None:
    block = memory.write("x", formal="when hour < then b", extra={"counted_from": 5})
    assert memory.update(block.id, formal="when").formal == "when"
