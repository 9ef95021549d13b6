"""What is open when a program ends is closed: a thread within a library's machine code would take the process down as Python ends."""

import atexit
import logging
import os
from typing import Any
from weakref import WeakKeyDictionary

_open: WeakKeyDictionary[Any, int] = WeakKeyDictionary()  # with the process that opened it: a fork closes nothing of its parent


def close_at_exit(opened: Any,  # an object that holds a thread or a file, and has a `close` that may be called twice
                  ) -> None:
    "Close something when the program ends, if it is still in use and was not closed before. The last opened is closed first."
    _open[opened] = os.getpid()


def close_all() -> None:
    "Close what is open. Called when the program ends; an error is logged, and the others are closed."
    for opened, process in reversed(list(_open.items())):
        if process == os.getpid():
            try:
                opened.close()
            except Exception:
                logging.getLogger("rlm").exception("%s was not closed when the program ended.", type(opened).__name__)
    _open.clear()


atexit.register(close_all)
