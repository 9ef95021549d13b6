"""The nightly job runs at each midnight of its zone, whatever happens to the clock, and ends when it is told to."""

import logging
import threading
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest

from rlm.core.clock import ManualClock, to_iso
from rlm.core.errors import SettingsError
from rlm.rules.lifecycle import LONGEST_NAP, MidnightScheduler, next_runs, zone


def runs(
    start: str, where: str, count: int, jump: Callable[[ManualClock, int], None] = lambda clock, n: None
) -> list[str]:
    "The times of the first runs in UTC; `jump` may set the clock in each nap, and is told how many runs there were."
    clock, seen = ManualClock(start), list[str]()

    def job() -> None:
        seen.append(to_iso(clock.now())[:16])
        if len(seen) == count:
            scheduler.stop()

    def sleep(seconds: float) -> None:
        assert 0 < seconds <= LONGEST_NAP
        clock.advance(seconds=seconds)
        jump(clock, len(seen))

    scheduler = MidnightScheduler(job, zone(where), clock, sleep)
    scheduler.run()
    return seen


@pytest.mark.parametrize(
    ("start", "where", "expected"),
    [
        ("2026-01-31T12:00:00Z", "UTC", ["2026-02-01T00:00", "2026-02-02T00:00"]),
        ("2026-01-31T15:00:00Z", "Asia/Seoul", ["2026-02-01T15:00", "2026-02-02T15:00"]),  # it is midnight there
        ("2026-03-07T12:00:00Z", "America/New_York", ["2026-03-08T05:00", "2026-03-09T04:00"]),  # a night of 23 hours
        ("2026-10-31T12:00:00Z", "America/New_York", ["2026-11-01T04:00", "2026-11-02T05:00"]),  # and one of 25
        ("2026-04-23T12:00:00Z", "Africa/Cairo", ["2026-04-23T22:00", "2026-04-24T21:00"]),  # a day without a midnight
    ],
)
@pytest.mark.seed("000 midnight")
def test_the_job_runs_at_each_midnight_of_its_zone(start: str, where: str, expected: list[str]) -> None:
    assert runs(start, where, 2) == expected


def test_midnights_that_were_slept_through_are_made_up_for_once() -> None:
    suspended = iter([timedelta(days=3)])

    def jump(clock: ManualClock, done: int) -> None:
        if done == 1:
            clock.advance(seconds=next(suspended, timedelta(0)).total_seconds())

    assert runs("2026-01-01T23:00:00Z", "UTC", 3, jump) == ["2026-01-02T00:00", "2026-01-05T00:00", "2026-01-06T00:00"]


def test_a_clock_that_is_set_back_brings_the_next_midnight_nearer() -> None:
    corrections = iter([timedelta(days=-300)])

    def jump(clock: ManualClock, done: int) -> None:
        clock.advance(seconds=next(corrections, timedelta(0)).total_seconds())

    assert runs("2026-11-01T12:00:00Z", "UTC", 2, jump) == ["2026-01-06T00:00", "2026-01-07T00:00"]


def test_a_job_that_fails_is_logged_and_runs_again_the_next_night(caplog: pytest.LogCaptureFixture) -> None:
    clock, calls = ManualClock("2026-01-01T12:00:00Z"), list[datetime]()

    def job() -> None:
        calls.append(clock.now())
        if len(calls) == 2:
            scheduler.stop()
        raise OSError("the disk is full")

    scheduler = MidnightScheduler(job, UTC, clock, lambda seconds: clock.advance(seconds=seconds))
    with caplog.at_level(logging.ERROR, "rlm.rules"):
        scheduler.run()
    assert [c.day for c in calls] == [2, 3] and len(caplog.records) == 2


def test_a_waiting_scheduler_ends_at_once_when_another_thread_stops_it() -> None:
    for _ in range(50):  # the waiting thread is met at different moments
        scheduler = MidnightScheduler(lambda: None, UTC, ManualClock("2026-01-01T12:00:00Z"))
        thread = threading.Thread(target=scheduler.run, daemon=True)
        thread.start()
        scheduler.stop()
        thread.join(LONGEST_NAP - 5)
        assert not thread.is_alive()


def test_a_job_can_end_its_own_scheduler() -> None:
    assert runs("2026-01-01T23:59:59Z", "UTC", 1) == ["2026-01-02T00:00"]


@pytest.mark.parametrize("name", ["Asia/Soul", "", "../etc"])
def test_a_zone_that_does_not_exist_is_refused(name: str) -> None:
    with pytest.raises(SettingsError, match="no time zone"):
        next_runs(name, datetime(2026, 1, 1, tzinfo=UTC))
