"A day is one of the setting `time_zone`: at half past seven in the morning it is still the day before in UTC, and in Seoul it is not."
import json
from argparse import Namespace
from collections.abc import Iterator
from datetime import date
from pathlib import Path

import pytest
from click.testing import CliRunner

from rlm import Memory
from rlm.core.clock import ManualClock, parse_time, zone
from rlm.search.query_features import past_moment
from rlm.service.cli import main
from rlm.service.hook_alone import word_context
from rlm.service.interchange import markdown_lines

MORNING = "2026-03-31T22:30:00Z"  # the first of April in Seoul, 07:30


@pytest.fixture
def memory(bare: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Memory]:
    monkeypatch.setenv("RLM_TIME_ZONE", "Asia/Seoul")
    monkeypatch.setenv("RLM_DB_PATH", str(tmp_path / "m.db"))
    monkeypatch.setenv("RLM_EMBEDDER", "none")
    with Memory(clock=ManualClock(MORNING)) as memory:
        memory.write("나는 서울에 산다. I live in Seoul.", id="home")
        yield memory


def test_tables_tell_the_days_of_the_zone(memory: Memory) -> None:
    shown = [memory.search("Seoul"), memory.list(1), memory.history("home"), memory.search("서울", as_of=MORNING)]
    assert all("2026-04-01" in repr(table) and "2026-03-31" not in repr(table) for table in shown)
    assert "2026-04-01 07:30:00" in repr(memory.history("home"))
    assert "Known, 2026-04" in "\n".join(markdown_lines(memory)) and "*2026-04-01*" in "\n".join(markdown_lines(memory))
    memory.update("home", valid_to="2026-04-03")
    clock = memory.clock
    assert isinstance(clock, ManualClock)
    clock.advance(days=3)
    assert "its time ended on 2026-04-03" in repr(memory.explain("Seoul", "home"))
    memory.delete("home")
    with pytest.raises(Exception, match="deleted on 2026-04-04 at 07:30 KST"):
        memory.get("home")


def test_a_date_that_is_written_begins_in_the_zone(memory: Memory) -> None:
    for given in ("2026-05-12", date(2026, 5, 12)):
        dentist = memory.write("치과 예약이 있어", valid_from=given)
        assert dentist.valid_from == parse_time("2026-05-11T15:00:00Z") and "2026-05-12" in repr(memory.list(1))
        assert [r.id for r in memory.list(9, since="2026-05-12", until="2026-05-13")] == [dentist.id]
        memory.delete(dentist.id)
    assert memory.update("home", valid_to="2026-05-13").valid_to == parse_time("2026-05-12T15:00:00Z")
    [turn] = memory.add_conversation([{"text": "안녕", "time": "2026-02-01"}], session="s")
    assert turn.valid_from == parse_time("2026-01-31T15:00:00Z")
    assert memory.write("x", valid_from="2026-05-12T09:00:00Z").valid_from == parse_time("2026-05-12T09:00:00Z"), "a moment is a moment"


def test_the_tables_of_the_command_line_do_so_too(memory: Memory) -> None:
    memory.write("A claim of a model.", id="claim", provenance={"actor": "model", "source": "mcp"})
    memory.add_conversation([{"text": "Good morning!", "speaker": "Mina"}], session="s")
    memory.companion.reject("home", reason="moved")
    for command in ("memory list", "memory search morning", "conversation show s", "review list", "memory history claim",
                    "export - --format markdown"):
        done = CliRunner().invoke(main, command.split())
        assert done.exit_code == 0 and "2026-04-01" in done.output and "2026-03-31" not in done.output, (command, done.output)
    assert json.loads(CliRunner().invoke(main, ["memory", "show", "claim", "--json"]).output)["valid_from"] == "2026-03-31T22:30:00.000000Z"


def test_a_hook_without_a_server_tells_them_too(memory: Memory, tmp_path: Path) -> None:
    for given in (Namespace(db=str(tmp_path / "m.db"), namespace="default", config=None, tokens=300),
                  Namespace(db=None, namespace=None, config=None, tokens=300)):
        assert "2026-04-01" in word_context(given, "Where in Seoul?", None)[0]


def test_a_year_that_a_question_names_ends_in_the_zone() -> None:
    now = parse_time(MORNING)
    assert past_moment("where did I live in 2025", now, zone("Asia/Seoul")) == parse_time("2025-12-31T14:59:59.999999Z")
    assert past_moment("where did I live in March 2026", now, zone("Asia/Seoul")) == parse_time("2026-03-31T14:59:59.999999Z")
    assert past_moment("where did I live in March 2026", now) is None, "in UTC it is not over"
