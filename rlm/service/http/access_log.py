"""The access log: a line of JSON for each request, where the setting `access_log` wants it.

A line has the route, such as `/v1/memories/{id}`, not the address with its ids and questions, so that an erased memory
leaves nothing in it; and the token's public name, never the token.
"""

import json
import logging
import sys
import time
from pathlib import Path
from typing import Any, TextIO

from rlm.core.clock import Clock, SystemClock, to_iso
from rlm.core.errors import SettingsError
from rlm.core.files import read_path

from .middleware import RequestContext, address_of
from .tracing import route_of

log = logging.getLogger("rlm.serve")


class AccessLog:
    "Writes a line for each request that is over."

    def __init__(self,
                 target: str,                 # a file, which is appended to; '-': the standard error
                 clock: Clock | None = None,  # None: the machine's
                 ) -> None:
        self.clock, self._failed = clock or SystemClock(), False
        try:
            self.out: TextIO = sys.stderr if target == "-" else read_path(Path(target)).open("a", encoding="utf-8", buffering=1)
        except OSError as e:
            raise SettingsError(f"The access log {target!r} can't be written ({e.strerror}).", "Check the setting access_log.") from None

    def __call__(self,
                 context: RequestContext,  # a request that is over
                 ) -> None:
        "Write a line. One that can't be written is said once in the server's log: no request fails for it."
        try:
            self.out.write(json.dumps(access_line(context, self.clock), ensure_ascii=False) + "\n")
        except (OSError, ValueError) as e:
            if not self._failed:
                log.warning("The access log can't be written: %s", e)
            self._failed = True

    def close(self) -> None:
        "Close the file."
        if self.out is not sys.stderr:
            self.out.close()


def access_line(context: RequestContext,  # a request that is over
                clock: Clock,             # the present
                ) -> dict[str, Any]:
    "Return what the log says of a request."
    caller = context.scope.get("rlm.caller")
    who = {} if caller is None else {"token": caller.id, "namespace": caller.namespace}
    return {"at": to_iso(clock.now()), "address": address_of(context.scope), **who, "method": context.scope["method"],
            "route": route_of(context.scope), "status": context.status, "ms": round(1000 * (time.perf_counter() - context.begun), 3)}
