"""The server on standard input and output: one client, which started it.

Standard output belongs to the protocol, so every log goes to standard error. The store is opened before the first message is read: what
is wrong with it is said at once, in a sentence. The model that turns text into vectors is loaded meanwhile, in a thread.
"""

import logging
import signal
import threading
from pathlib import Path

from rlm.core.errors import RlmError
from rlm.core.settings import Settings
from rlm.rules.scheduler import zone

from ..memory import Memory
from ..nights import NightThread, sleep_everywhere
from .mcp_server import memory_server
from .sources import LocalMemory

log = logging.getLogger("rlm.mcp")


def warm_up(memory: Memory,  # open store
            ) -> None:
    "Search once, so that the index and the model are loaded when the first question comes. What fails is said in the log."
    try:
        memory.search("ready", 1)
    except RlmError as e:
        log.warning("%s", e)


def serve_stdio(settings: Settings,          # where, and which namespace
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
        warming = threading.Thread(target=warm_up, args=(memory,), name="rlm-mcp-warm-up")
        warming.start()
        nights = NightThread(lambda: sleep_everywhere(memory, [memory.ctx.namespace]), zone(settings.time_zone),
                             lambda: sleep_everywhere(memory, [memory.ctx.namespace]))
        nights.start()
        try:
            server.run("stdio")
        finally:
            nights.stop()
            warming.join()
