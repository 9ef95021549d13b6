"How the command of a benchmark ends."
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from rlm.bench.cli import bench, deliver
from rlm.bench.report import Report, Row, read_report

MISSED = Report("example", "0.1.0", "2026-11-21", {}, 0, 1, {}, (Row("lost", "", 1, target=0),))


def test_a_missed_target_ends_with_an_error_and_the_report_is_kept(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(click.exceptions.Exit) as ended:
        deliver(MISSED, tmp_path / "report.json", as_json=True, strict=True)
    out, err = capsys.readouterr()
    assert ended.value.exit_code == 1 and read_report(tmp_path / "report.json") == MISSED
    assert '"met": false' in out and "missed: lost: 1 (target 0)" in err


def test_the_misses_of_a_quick_run_are_shown_only(capsys: pytest.CaptureFixture[str]) -> None:
    deliver(MISSED, None, as_json=False, strict=False)
    assert "missed: lost: 1 (target 0)" in capsys.readouterr().err


def test_a_benchmark_tells_its_options_and_an_example() -> None:
    said = CliRunner().invoke(bench, ["durability", "--help"], prog_name="rlm bench").output
    assert "Measure durable writes" in said and "rlm bench durability --quick --out durability.json" in said
