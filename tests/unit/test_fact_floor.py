"Of facts that contradict earlier ones, the newest is served as current: a floor on the development split of FactConsolidation."
import json
from pathlib import Path

import pytest

from rlm import Memory
from rlm.core.clock import ManualClock


@pytest.mark.parametrize("name", ["6k", pytest.param("32k", marks=pytest.mark.nightly)])
def test_the_first_hit_holds_what_is_true_now(shared: Path, words_only: None, name: str) -> None:
    found = json.loads((shared / "data" / "fact_dev" / f"factconsolidation_sh_{name}.json").read_text(encoding="utf-8"))
    clock = ManualClock("2026-01-01")
    with (Memory(":memory:", embedder="none", clock=clock) as memory,
          Memory(":memory:", embedder="none", clock=clock, supersede="off") as control):
        shares = []
        for store in (memory, control):
            for number, fact in enumerate(found["facts"]):
                store.write(fact, id=f"fact{number:05}")  # scores that are equal are ordered by id
                clock.advance(seconds=1)  # a question about the present prefers the later by whole seconds: none may depend on the hour
            best = [(asked["answers"], [hit.text.casefold() for hit in store.search(asked["q"], 1)]) for asked in found["questions"]]
            shares.append(sum(any(a.casefold() in text for text in texts for a in answers) for answers, texts in best) / len(best))
    assert shares[0] >= 0.95 and shares[1] < 0.85, shares  # the control: without supersession the older fact is often first
