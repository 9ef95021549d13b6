"""The server on standard input and output: one client, which started it.

Standard output belongs to the protocol, so every log goes to standard error. The store is opened before the first message is read: what
is wrong with it is said at once, in a sentence. The model that turns text into vectors is loaded meanwhile, in a thread.
"""

import asyncio
import logging
import os
import signal
import stat
import sys
import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from mcp.server.stdio import stdio_server

from rlm.core.errors import RlmError
from rlm.core.settings import Settings
from rlm.core.clock import zone

from ..memory import Memory
from ..nights import NightThread, sleep_everywhere
from .mcp_server import MemoryServer, memory_server
from .sources import LocalMemory

log = logging.getLogger("rlm.mcp")
LONGEST_LINE = 2**30  # bytes of a message; the client is the one who started this process


def _warm_up(memory: Memory) -> None:
    "Search once, so that the index and the model are loaded when the first question comes. What fails is said in the log."
    try:
        memory.search("Is it ready? 어디까지 준비됐어?", 1)
    except RlmError as e:
        log.warning("%s", e)


def _are_pipes() -> bool:
    "Whether standard input and output are pipes or sockets, as those of a server that a client has started."
    return sys.platform != "win32" and all(stat.S_ISFIFO(m) or stat.S_ISSOCK(m) for m in (os.fstat(n).st_mode for n in (0, 1)))


async def _serve_pipes(server: MemoryServer) -> None:
    """Serve over standard input and output, which the event loop reads and writes itself: the SDK's own way takes three threads' turns
    a call. Meanwhile nothing else is read from standard input, and what is printed goes to the standard error."""
    loop, kept = asyncio.get_running_loop(), (os.dup(0), os.dup(1))
    with open(os.devnull, "rb") as nothing:
        os.dup2(nothing.fileno(), 0)
    os.dup2(2, 1)
    lines = asyncio.StreamReader(LONGEST_LINE)
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(lines), os.fdopen(kept[0], "rb", 0))
    transport, protocol = await loop.connect_write_pipe(lambda: asyncio.streams.FlowControlMixin(loop=loop), os.fdopen(kept[1], "wb", 0))
    writer = asyncio.StreamWriter(transport, protocol, None, loop)

    async def write(text: str) -> None:
        writer.write(text.encode())
    given: Any = lines, SimpleNamespace(write=write, flush=writer.drain)  # the end of a pipe as the SDK's transport writes to it
    async with stdio_server(*given) as (requests, answers):
        lowlevel = server._lowlevel_server
        await lowlevel.run(requests, answers, lowlevel.create_initialization_options())
    while transport.get_write_buffer_size() and not transport.is_closing():
        await asyncio.sleep(.01)  # a client that reads slowly gets the last answer


def serve_stdio(settings: Settings,          # store and namespace
                config: Path | None = None,  # settings file that was named
                read_only: bool = False,     # True: only tools that change nothing
                ) -> None:
    "Serve until the client closes standard input. Raises what the store raises."
    given = {name: getattr(settings, name) for name, source in settings.sources.items() if source == "argument" and name != "db_path"}
    given["embedding"] = "now" if settings.embedding == "now" else "later"
    with Memory(settings.db_path, config=config, read_only=read_only, **given) as memory:
        memory.embeddings.resume()
        server = memory_server(LocalMemory(memory))
        signal.signal(signal.SIGINT, signal.SIG_DFL)  # the thread that reads standard input would hold up a Ctrl-C; each write is whole
        warming = threading.Thread(target=_warm_up, args=(memory,), name="rlm-mcp-warm-up")
        warming.start()
        nights = NightThread(lambda: sleep_everywhere(memory, [memory.ctx.namespace]), zone(settings.time_zone),
                             lambda: sleep_everywhere(memory, [memory.ctx.namespace]))
        nights.start()
        try:
            asyncio.run(_serve_pipes(server)) if _are_pipes() else server.run("stdio")
        finally:
            nights.stop()
            warming.join()
