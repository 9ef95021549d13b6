"Half an hour of writes, changes, erasures and searches: memory flat, files bounded, nothing lost."
import os

import pytest

from rlm.bench import durability


@pytest.mark.heavy
def test_a_soak_leaves_memory_flat_and_files_bounded() -> None:
    report = durability.run_soak(float(os.environ.get("RLM_SOAK_MINUTES", "30")))
    assert not report.missed, report
