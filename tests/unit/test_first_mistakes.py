"What a newcomer gives by mistake is answered by a sentence that names what was wrong."
from pathlib import Path

import pytest
from click.testing import CliRunner
from serving import serving

from rlm import Memory
from rlm.core.errors import InvalidInput
from rlm.service.cli import main


def test_a_name_that_is_too_long_is_not_to_be_parted() -> None:
    with Memory(":memory:", embedder="none") as memory, pytest.raises(InvalidInput, match="Give a shorter one") as wrong:
        memory.write("Bees.", title="t" * 513)
    assert "title" in str(wrong.value) and "parts" not in str(wrong.value)


@pytest.mark.parametrize("count", [7, None, "tokens", lambda text: text, lambda text: None, lambda text: -1])
def test_a_counter_that_counts_nothing_is_named(count: object) -> None:
    with Memory(":memory:", embedder="none") as memory:
        memory.write("The bees live behind the shed.")
        with pytest.raises(InvalidInput, match="counts tokens"):
            memory.context("Where do the bees live?", count=count)  # type: ignore[arg-type]
        assert memory.context("Where do the bees live?", count=len).used


def test_an_id_that_is_none_is_asked_for_as_an_id() -> None:
    with Memory(":memory:", embedder="none") as memory, pytest.raises(InvalidInput, match="Give an id, or a list of them"):
        memory.delete(None)  # type: ignore[arg-type]


def test_a_word_of_broken_bytes_on_the_command_line_is_the_text(tmp_path: Path) -> None:
    done = CliRunner().invoke(main, ["memory", "write", "bad\udcff", "--db", str(tmp_path / "m.db")])
    assert done.exit_code == 1 and "The text holds half a surrogate pair" in done.output


def test_a_server_without_tokens_says_how_a_second_namespace_is_opened(tmp_path: Path) -> None:
    with serving(tmp_path / "m.db") as running, running.client() as client:
        refused = client.get("/v1/memories", headers={"Rlm-Namespace": "bo"})
    assert refused.status_code == 403 and "rlm tokens add -n" in refused.text and "'default'" in refused.text
