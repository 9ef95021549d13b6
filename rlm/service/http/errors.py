"""Errors as HTTP answers: `application/problem+json` of RFC 9457, the same shape for every error.

A message about bad input, a taken id, a version that is past, or a memory that is not there, is written
for the caller and is sent as it is. Every other message may name a file of the server: it goes into the log, and the
caller gets a general sentence.
"""

import errno
import json
import logging
from collections.abc import Mapping
from typing import Any

from rlm.core.errors import (AlreadyExists, InvalidInput, NotFound, RlmError, SettingsError, StoreBusy, StoreClash, StoreFull, StoreMoved,
                             StoreReadOnly, StoreUnreachable, VersionConflict)

log = logging.getLogger("rlm.serve")

TITLES = {400: "Bad request", 401: "A token is needed", 403: "Not allowed", 404: "Not found", 405: "No such method here",
          408: "The request came too slowly", 409: "It contradicts what is stored", 412: "It was changed meanwhile",
          413: "The request is too large", 414: "The address is too long", 415: "This is not JSON",
          421: "Called under a wrong name", 422: "It can't be taken as it is",
          429: "Too many requests", 500: "The server failed", 503: "Busy", 507: "There is no room left"}


class HttpProblem(Exception):
    "An error that is answered with a status, a title, a detail and a hint."

    def __init__(self,
                 status: int,         # status code of HTTP
                 detail: str = "",    # sentence about what was wrong with this request
                 hint: str = "",      # remedy, a sentence
                 headers: Mapping[str, str] | None = None,  # headers that are sent with the answer
                 **more: Any,         # further members of the answer
                 ) -> None:
        super().__init__(detail or TITLES.get(status, "Error"))
        self.status, self.headers = status, dict(headers or {})
        members = {"title": TITLES.get(status, "Error"), "status": status, "detail": detail, "hint": hint, **more}
        self.content = {name: value for name, value in members.items() if value != ""}

    def body(self) -> bytes:
        "Return the answer as JSON. Lone surrogates, which UTF-8 can't encode, become question marks."
        return json.dumps(self.content, ensure_ascii=False).encode("utf-8", "replace")


SPOKEN_PROBLEMS: dict[type[RlmError], int] = {  # error whose message is written for the caller → status
    AlreadyExists: 409, InvalidInput: 422, NotFound: 404, VersionConflict: 412}
STORE_PROBLEMS: dict[type[RlmError], tuple[int, str, str]] = {  # error of the store → status, and sentences that name no file
    StoreMoved: (503, "The namespace went to another instance of the cluster; nothing was stored.", "Send it again: it is found there."),
    StoreUnreachable: (503, "The database of the store gives no connection; nothing was stored.", "Send it again a little later."),
    StoreBusy: (503, "Another process is writing to the store; nothing was stored.", "Send it again a little later."),
    StoreClash: (409, "An id is taken, or a memory that is named is not there; nothing was stored.", ""),
    StoreReadOnly: (403, "The store can only be read.", "Whoever runs the server can let it write to the store's file and folder."),
    SettingsError: (500, "The server's settings or tokens can't be read.", "The reason is in the log of the server, for its operator."),
    StoreFull: (507, "Nothing was stored.", "Make room on the server's disk, then send it again; what is stored can be read.")}


def is_out_of_files(error: BaseException | None,  # an error; its causes are looked at too
                    ) -> bool:
    "Return whether the process, or the machine, has as many files open as it may."
    while error is not None:
        if isinstance(error, OSError) and error.errno in (errno.EMFILE, errno.ENFILE):
            return True
        if getattr(error, "sqlite_errorname", "") == "SQLITE_CANTOPEN":  # SQLite does not say why a file can't be opened
            return True
        error = error.__cause__
    return False


def problem_of(error: Exception,  # an error that ended a request
               ) -> HttpProblem:
    "Return the answer for an error. It names no file of the server."
    if (spoken := next((s for kind, s in SPOKEN_PROBLEMS.items() if isinstance(error, kind)), None)) and isinstance(error, RlmError):
        return HttpProblem(spoken, error.message, error.hint)
    if is_out_of_files(error):
        return HttpProblem(503, "The server has no room for one open file more.", "Try again a little later.", {"Retry-After": "1"})
    failed = 500, "Its log says more.", ""
    status, detail, hint = next((found for kind, found in STORE_PROBLEMS.items() if isinstance(error, kind)), failed)
    return HttpProblem(status, detail, hint, headers={"Retry-After": "1"} if status == 503 else None)


def log_problem(error: Exception,  # an error that ended a request
                ) -> HttpProblem:
    "Return the answer for an error; an error that is not the caller's doing goes into the log too."
    if isinstance(error, HttpProblem):
        return error
    problem = problem_of(error)
    if problem.status >= 500:
        log.error("%s", error, exc_info=None if isinstance(error, RlmError) else error)
    return problem
