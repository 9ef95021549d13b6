"""The proxy from the command line: memory for any client of OpenAI's protocol that can be given another base URL."""

from contextlib import suppress
from pathlib import Path

import click

from rlm.core.errors import MissingExtra
from rlm.core.files import read_path
from rlm.core.settings import load_settings
from rlm.service.cli.common import example, store_options

PORT = 8378  # one beside that of `rlm serve`


@click.command("proxy", epilog=example("rlm proxy --port 0", "rlm proxy --upstream http://127.0.0.1:11434/v1 --port 0 -n chats"))
@click.option("--upstream", help="Base URL of the server that answers. Default: the setting openai_url.")
@click.option("--host", help="A name or an address. Default: the setting serve_host, which is this machine alone.")
@click.option("--port", type=int, default=PORT, show_default=True, help="0: any that is free.")
@click.option("--token-file", type=click.Path(path_type=Path), help="Who may call. Default: the setting token_file, if it is there.")
@click.option("--tokens", type=int, default=1024, show_default=True, help="What a block of memories may cost.")
@click.option("--no-capture", is_flag=True, help="Store nothing; only give context.")
@store_options
def proxy_command(upstream: str | None, host: str | None, port: int, token_file: Path | None, tokens: int, no_capture: bool,
                  db: Path | None, namespace: str | None, config: Path | None) -> None:
    "Stand before a server of OpenAI's protocol: add memories, keep what is said. Ctrl-C ends it."
    try:
        from rlm.service.http.middleware import is_loopback
        from rlm.service.http.pool import MemoryPool
        from rlm.service.http.proxy import BASE, MemoryProxy, proxy_application
        from rlm.service.http.server import AnnouncedServer, http_config, listening, load_token_store
    except ModuleNotFoundError as e:
        raise MissingExtra(f"The proxy needs {e.name}, which is not installed.", "Install it: pip install 'rlm[serve,openai]'") from None
    settings = load_settings(config, db_path=db, namespace=namespace, serve_host=host, serve_port=port, token_file=token_file)
    book, names = load_token_store(settings), None
    if is_loopback(settings.serve_host):
        names = frozenset(n.strip().lower() for n in settings.serve_names.split(","))
    pool = MemoryPool(settings, config=config)
    proxy = MemoryProxy(upstream or settings.openai_url, pool, book, names, tokens, not no_capture)
    pool.store().search("ready", 1)  # the index and the model are there before anyone waits for them
    with listening(settings.serve_host, settings.serve_port) as here, suppress(KeyboardInterrupt):
        shown, number = here.getsockname()[:2]
        place = f"[{shown}]:{number}" if ":" in shown else f"{shown}:{number}"
        notice = f"Base URL for clients: http://{place}{BASE} (upstream {proxy.upstream}, memories {read_path(settings.db_path)})"
        AnnouncedServer(http_config(proxy_application(proxy)), notice).run(sockets=[here])
