"""What a server does by itself: a job at each midnight and one soon after a start, in threads; and the sleep of memories.

A program that an assistant starts for an hour seldom sees midnight, so the job runs some minutes after a start too, and each namespace
says itself whether a night is due.
"""

import logging
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import tzinfo

from rlm.companion.sleep import SleepReport
from rlm.core.clock import zone
from rlm.core.errors import RlmError, StoreBusy, StoreMoved, StoreUnreachable
from rlm.core.settings import Settings
from rlm.rules.lifecycle import DueReport, MidnightScheduler, RuleLifecycle

from .memory import Memory

FIRST_S = 300.0  # seconds after a start at which what is due is done: short sessions are not slowed
log = logging.getLogger("rlm.nights")


@contextmanager
def _telling_refusals(job: str, namespace: str) -> Iterator[None]:
    "Have a job that is refused logged, so that those of other namespaces go on."
    try:
        yield
    except (StoreBusy, StoreMoved, StoreUnreachable) as e:
        log.info("Namespace %r: %s", namespace, e.message)
    except RlmError as e:
        log.warning("The %s of namespace %r did not run: %s", job, namespace, e.message)


def sleep_if_due(memory: Memory) -> SleepReport | None:
    "Sleep in one namespace, if its settings want it and a night is due; None: nothing was done. A refusal is logged."
    if (wanted := memory.settings.sleep) == "off" or memory.backend.read_only:
        return None
    with _telling_refusals("sleep", memory.ctx.namespace), \
            memory.backend.db.lease(f"sleep {memory.ctx.namespace}") as mine:  # one of several servers sleeps
        cycle = memory.companion.sleep_cycle()
        return cycle.run(forget=wanted == "forget") if mine and cycle.is_due() else None
    return None


def sleep_everywhere(memory: Memory,  # one namespace of the store
                     names: Iterable[str] | None = None,  # namespaces; None: all of the store
                     ) -> dict[str, SleepReport]:
    "Sleep in each namespace in which a night is due, and return the reports."
    found = dict[str, SleepReport]()
    for name in memory.backend.memories.namespaces() if names is None else names:
        with _telling_refusals("sleep", name), memory.namespace(name) as opened:
            if (report := sleep_if_due(opened)) is not None:
                found[name] = report
    return found


class NightThread:
    "Runs one job at each midnight, and another one some minutes after the start, in threads, from `start` to `stop`."

    def __init__(self,
                 job: Callable[[], object],    # work at midnight; its errors are logged
                 where: tzinfo,                # zone whose midnights count
                 first: Callable[[], object],  # work `FIRST_S` after the start
                 ) -> None:
        self._scheduler, self._first = MidnightScheduler(job, where), first
        self._thread = threading.Thread(target=self._scheduler.run, name="rlm-nights", daemon=True)
        self._timer = threading.Timer(FIRST_S, self._begin)
        self._timer.daemon = True

    def _begin(self) -> None:
        try:
            self._first()
        except Exception:
            log.exception("The job after the start failed; it is tried again at midnight.")

    def start(self) -> None:
        "Start both threads: for midnight, and for the job after the start."
        self._thread.start()
        self._timer.start()

    def stop(self) -> None:
        "End at once, or ten seconds later at most: a night that is cut short goes on after the next start."
        self._timer.cancel()
        self._scheduler.stop()
        for thread in (self._thread, self._timer):
            thread.join(10)


def _run_rule_jobs(memory: Memory) -> dict[str, DueReport]:
    "Promote, demote and archive what is due, in each namespace; one whose job is refused is logged and passed over. Returns the reports."
    reports = dict[str, DueReport]()
    for name in memory.backend.memories.namespaces():
        with _telling_refusals("job of rules", name), (backend := memory.backend.for_namespace(name)).db.lease(f"rules {name}") as mine:
            if mine:  # one of several servers does it
                reports[name] = RuleLifecycle(backend, replace(memory.settings, namespace=name), memory.clock).run_due()
    return reports


def night_thread(store: Callable[[], Memory],  # gives one namespace of the store
                 settings: Settings,           # all settings; `time_zone` says where midnight is
                 ) -> NightThread:
    "Return what runs the rules' job and the sleep of memories at each midnight, and a sleep that is due soon after the start."
    def night() -> None:
        _run_rule_jobs(store())
        sleep_everywhere(store())
    return NightThread(night, zone(settings.time_zone), lambda: sleep_everywhere(store()))
