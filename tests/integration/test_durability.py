"What was acknowledged is there: under many processes, and under kills. The trials themselves are in `rlm.bench.crash`."
from pathlib import Path

import pytest

from rlm.bench.crash import kill_test, power_loss, soak
from rlm.search.embedding.e5 import e5_problem


@pytest.mark.nightly
def test_eight_processes_on_one_file_lose_nothing(tmp_path: Path) -> None:
    found = soak(tmp_path / "crowd.db", processes=8, seconds=60)
    assert (found.errors, found.problems) == ((), ())
    assert (found.lost, found.double, found.torn, found.stale, found.resurfaced) == (0, 0, 0, 0, 0)
    assert found.processes == 8 and found.memories > 1000
    assert min(found.rates) > max(found.rates) / 10, "some process hardly got its turn"
    assert all(found.waits[kind] for kind in ("write", "write_many", "update", "erase", "get", "search", "recent"))


@pytest.mark.nightly
def test_three_processes_with_a_model_on_one_file_lose_nothing(tmp_path: Path) -> None:
    if e5_problem():
        pytest.skip("needs the extra e5")
    found = soak(tmp_path / "crowd.db", processes=3, seconds=20, embedder="e5")
    assert found.clean and found.processes == 3 and all(found.waits[kind] for kind in ("write", "update", "erase", "search"))


@pytest.mark.nightly
def test_what_was_acknowledged_survives_two_hundred_kills(tmp_path: Path) -> None:
    found = kill_test(tmp_path, kills=200)
    assert found.problems == ()
    assert (found.kills, found.lost, found.torn, found.resurfaced) == (200, 0, 0, 0)
    assert found.acknowledged > 200, "the victims were killed before they did anything"
    assert found.pending_absent + found.pending_whole > 20, "hardly any kill came in the middle of a step"
    assert found.erasing > 5, "hardly any kill came in the middle of an erasure"


@pytest.mark.nightly
@pytest.mark.parametrize("synchronous", ["full", "normal"])
def test_after_a_power_cut_a_prefix_is_there_and_no_file_speaks_of_what_is_not(tmp_path: Path, synchronous: str) -> None:
    found = power_loss(tmp_path, cuts=20, seed=1, synchronous=synchronous)
    assert found.problems == () and (found.torn, found.wrong, found.resurfaced) == (0, 0, 0)
    assert found.cuts == 20 and found.acknowledged > 200
    assert found.lost == 0 if synchronous == "full" else found.lost > 0, "a cut that loses nothing where writes are not synced is none"
