"""Whether a server can answer requests, and what is wrong where it can't.

A question to a store that does not answer waits: to a PostgreSQL server that is down, for as long as a write would wait for it. So a thread
of its own asks, one at a time, and a request waits two seconds for it at most. What is wrong is told in sentences that name no file and no
server, since anyone may ask; the log of the server says more.
"""

import asyncio
import logging
import math
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future

from rlm.core.errors import RlmError, SettingsError, StoreBusy, StoreCorrupt, StoreFull, StoreReadOnly, StoreUnreachable

from .errors import is_out_of_files

READY_AGE_S = 1.0  # seconds for which an answer is kept: anyone may ask, so the store is read once a second at most
READY_WAIT_S = 2.0  # seconds that a request waits for the store to answer
SILENT = "The store does not answer."
SENTENCES: dict[type[RlmError], str] = {
    SettingsError: "The settings or the tokens of the server can't be read.", StoreUnreachable: SILENT,
    StoreBusy: "The store is kept busy by another process.",
    StoreCorrupt: "The store is damaged.", StoreFull: "There is no room left for the store.", StoreReadOnly: "The store can only be read."}

log = logging.getLogger("rlm.serve")


def problem_sentence(error: Exception,  # error of a check
                     ) -> str:
    "Return what is wrong, in a sentence that names no file."
    if is_out_of_files(error):
        return "The server has no room for one open file more."
    return next((said for kind, said in SENTENCES.items() if isinstance(error, kind)), SILENT)


class ReadinessProbe:
    "Asks whether the server can serve, at most once in a while, and never twice at a time."

    def __init__(self,
                 checks: Callable[[], None],    # check of store and tokens, which raises what is wrong
                 age_s: float = READY_AGE_S,    # seconds for which an answer is kept
                 ) -> None:
        self.checks, self.age_s = checks, age_s
        self._began, self._problem = -math.inf, ""
        self._pending = Future[None]()  # done when the checks have ended
        self._pending.set_result(None)

    async def problem(self) -> str:
        "Return what is wrong, or was a moment ago; empty: nothing. It is asked from one event loop."
        if self._pending.done() and time.monotonic() - self._began >= self.age_s:
            self._pending, self._began = Future(), time.monotonic()
            threading.Thread(target=self._ask, args=(self._pending,), name="rlm-ready", daemon=True).start()
        if not (pending := self._pending).done():
            await asyncio.wait([asyncio.wrap_future(pending)], timeout=max(0.0, self._began + READY_WAIT_S - time.monotonic()))
            if not pending.done():
                self._note(SILENT, f"It has not answered for {READY_WAIT_S:g} seconds.")
        return self._problem

    def _ask(self, pending: Future[None]) -> None:
        "Run the checks in this thread, and note what they raise."
        said, why = "", ""
        try:
            self.checks()
        except Exception as e:
            said, why = problem_sentence(e), str(e)
            if not isinstance(e, RlmError | OSError):
                log.exception("Whether the server can serve could not be found out.")
        self._note(said, why)
        pending.set_result(None)

    def _note(self, said: str, why: str) -> None:
        "Keep what is wrong; the log says it when it begins and when it ends."
        if said != self._problem:
            log.warning("Not ready: %s %s", said, why) if said else log.warning("Ready again.")
        self._problem = said
