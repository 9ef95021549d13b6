"""The nightly job inside the server: at 00:00 in the zone of the settings, over every namespace of the store, rules first, then sleep."""

from dataclasses import replace

from rlm.core.errors import RlmError
from rlm.rules.lifecycle import DueReport, RuleLifecycle
from rlm.rules.scheduler import zone

from ..nights import NightThread, sleep_everywhere
from .errors import log
from .routing import Service


def run_rule_jobs(service: Service,  # memories of a server
                  ) -> dict[str, DueReport]:
    "Promote, demote and archive what is due, in each namespace; one whose job is refused is logged and passed over. Returns the reports."
    memory, reports = service.pool.store(), dict[str, DueReport]()
    for name in memory.backend.memories.namespaces():
        try:
            backend = memory.backend.for_namespace(name)
            with backend.db.lease(f"rules {name}") as mine:  # one of several servers does it
                if mine:
                    reports[name] = RuleLifecycle(backend, replace(memory.settings, namespace=name), memory.clock).run_due()
        except RlmError as e:
            log.warning("The nightly job of namespace %r did not run: %s", name, e.message)
    return reports


def night_thread(service: Service,  # memories of a server; its setting time_zone says where midnight is
                 ) -> NightThread:
    "Return what runs the rules' job and the sleep of memories at each midnight, and a sleep that is due soon after the start."
    def sleep() -> None:
        sleep_everywhere(service.pool.store())

    def night() -> None:
        run_rule_jobs(service)
        sleep()
    return NightThread(night, zone(service.settings.time_zone), sleep)
