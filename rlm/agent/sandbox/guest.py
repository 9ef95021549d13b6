"""What the child process of a sandbox gives up before it runs a line of a model's code. Its source text is sent to the child.

Bubblewrap starts the child in namespaces of its own: no network, no other process to be seen, a file system that holds Python and the
system's libraries alone, read-only, and an empty environment. The child gives up the rest itself, in this order:

1. It imports every module on the list, and what those import late, so that it needs no file again.
2. It forgets where Python lies on this machine.
3. It changes its root to an empty folder that can't be written: from here on there is nothing to read and nothing to execute.
4. It becomes user *nobody*, when root started it, and drops every capability for good: no program could give one back, and a process that
   has changed its root may make no namespace in which it has them again.
5. It limits itself: memory, open files, no new processes or threads, no bytes written to any file.

Only then it reads its first request.
"""

import ctypes
import importlib
import os
import random
import resource
import sys
from collections.abc import Mapping
from json import dumps, loads
from typing import Any, BinaryIO

from .interpreter import SAFE_MODULES, Interpreter, process_guard

_CODECS = ("ascii", "cp949", "euc_kr", "idna", "latin_1", "punycode", "unicode_escape", "utf_16", "utf_32")
LATE_MODULES = ("_strptime", "locale", "traceback", *(f"encodings.{name}" for name in _CODECS))  # imported by others when they are used


def load_modules() -> None:
    "Import what the code may need."
    for name in sorted(SAFE_MODULES | set(LATE_MODULES)):
        importlib.import_module(name)


def _forget_paths() -> None:
    "Take the host's paths out of modules and of `sys`, so that no repr of a module shows one. Nothing can be imported from files after it."
    for module in list(sys.modules.values()):
        spec = getattr(module, "__spec__", None)
        if getattr(module, "__file__", None) is None or spec is None:
            continue
        spec.origin = spec.loader = spec.cached = spec.submodule_search_locations = None
        vars(module).update({"__file__": None, "__cached__": None, "__loader__": None})
        if hasattr(module, "__path__"):
            module.__path__ = []
    sys.path, sys.path_importer_cache, sys.orig_argv = [], {}, []
    sys.prefix = sys.exec_prefix = sys.base_prefix = sys.base_exec_prefix = sys.executable = ""


NOBODY = 65534
_CAPABILITIES_3 = 0x20080522  # the version of the kernel's structure, from linux/capability.h


def _drop_privileges(empty: str) -> None:
    "Leave the file system, the user and all capabilities behind. Raises `OSError`."
    if empty:
        os.chroot(empty)
        os.chdir("/")
    if os.getuid() == 0:
        os.setgroups([])
        os.setresgid(NOBODY, NOBODY, NOBODY)
        os.setresuid(NOBODY, NOBODY, NOBODY)
    if sys.platform != "linux":
        return
    libc = ctypes.CDLL(None, use_errno=True)
    header, none = (ctypes.c_uint32 * 2)(_CAPABILITIES_3, 0), (ctypes.c_uint32 * 6)()
    if libc.capset(header, none):
        raise OSError(ctypes.get_errno(), "the capabilities can't be dropped")
    if libc.prctl(38, 1, 0, 0, 0):  # PR_SET_NO_NEW_PRIVS
        raise OSError(ctypes.get_errno(), "new privileges can't be refused")


# Memory is counted twice: what is written to (`RLIMIT_DATA`), and the whole address space, in which shared memory counts too. The
# interpreter with its modules takes some 20 MiB of the one and 60 MiB of the other, on top of what the code may take.
_OWN = 32 * 2**20  # bytes that the interpreter may take itself
_SPACE = 256 * 2**20  # bytes of address space for its libraries


def _set_limits(memory: int) -> None:
    "Limit memory, processes, files and the stack of this process, for good."
    most = {"DATA": memory + _OWN, "AS": memory + _OWN + _SPACE, "NPROC": 0, "FSIZE": 0, "CORE": 0, "NOFILE": 16, "STACK": 64 * 2**20}
    for name, limit in most.items():
        number = getattr(resource, f"RLIMIT_{name}")
        hard = resource.getrlimit(number)[1]
        limit = limit if hard == resource.RLIM_INFINITY else min(limit, hard)
        resource.setrlimit(number, (limit, limit))


# Requests come on standard input, a line each; replies and questions go out on standard output. `print` reaches neither.
LINE = 16 * 2**20  # bytes of one message


class LineChannel:
    "Messages to and from the host, a line of JSON each."

    def __init__(self,
                 incoming: BinaryIO,  # the host writes it
                 outgoing: BinaryIO,  # the host reads it
                 ) -> None:
        self._in, self._out = incoming, outgoing

    def read(self) -> dict[str, Any]:
        "Return the next message; at the end of the input the process ends."
        line = self._in.readline()
        if not line:
            os._exit(0)
        message: dict[str, Any] = loads(line)
        return message

    def write(self,
              message: Mapping[str, Any],  # message for the host
              ) -> None:
        "Send a message. Raises `ValueError` when it is too long."
        line = dumps(message).encode() + b"\n"
        if len(line) > LINE:
            raise ValueError(f"{len(line):,} characters are too much to leave the sandbox at once")
        self._out.write(line)
        self._out.flush()

    def ask(self,
            question: dict[str, Any],  # question to the host
            ) -> dict[str, Any]:
        "Send a question and return the host's answer."
        self.write(question)
        return self.read()


def serve() -> None:
    "Give up what is not needed, then do what the host asks until it hangs up."
    channel = LineChannel(os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb"))
    os.close(0)
    os.close(1)
    sys.stdin = sys.stdout = sys.__stdin__ = sys.__stdout__ = None  # type: ignore[misc]
    settings = channel.read()
    load_modules()
    _forget_paths()
    _drop_privileges(settings["empty"])
    _set_limits(settings["memory"])
    os.environ.clear()
    sys.setrecursionlimit(1000)
    random.seed(0)
    interpreter = Interpreter(settings["tools"], settings["handles"], settings["limits"], channel.ask, after_code=process_guard())
    channel.write({"ready": True})
    while True:
        request = channel.read()
        try:
            channel.write({"done": interpreter.handle(request)})
        except (MemoryError, RecursionError, ValueError) as e:
            channel.write({"done": {"error": f"{type(e).__name__}: {str(e)[:200]}"}})
