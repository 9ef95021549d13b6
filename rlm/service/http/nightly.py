"""The nightly job of the rules, inside the server: at 00:00 in the zone of the settings, over every namespace of the store."""

import threading
from dataclasses import replace

from rlm.core.errors import RlmError
from rlm.rules.lifecycle import DueReport, RuleLifecycle
from rlm.rules.scheduler import MidnightScheduler, zone

from .errors import log
from .routes import Service


def run_rule_jobs(service: Service,  # memories of a server
                  ) -> dict[str, DueReport]:
    "Promote, demote and archive what is due, in each namespace; one whose job is refused is logged and passed over. Returns the reports."
    memory, reports = service.pool.store(), dict[str, DueReport]()
    for name in memory.backend.memories.namespaces():
        try:
            reports[name] = RuleLifecycle(memory.backend, replace(memory.settings, namespace=name), memory.clock).run_due()
        except RlmError as e:
            log.warning("The nightly job of namespace %r did not run: %s", name, e.message)
    return reports


class NightlyJob:
    "Runs the rules' job at each midnight, in a thread, from `start` to `stop`."

    def __init__(self,
                 service: Service,  # memories of a server; its setting time_zone says where midnight is
                 ) -> None:
        self._scheduler = MidnightScheduler(lambda: run_rule_jobs(service), zone(service.settings.time_zone))
        self._thread = threading.Thread(target=self._scheduler.run, name="rlm-nightly", daemon=True)

    def start(self) -> None:
        "Begin to wait for midnight."
        self._thread.start()

    def stop(self) -> None:
        "End at once, or after the job that is running."
        self._scheduler.stop()
        self._thread.join()
