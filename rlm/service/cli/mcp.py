"""The MCP server from the command line, and its entry in the configuration of the programs that start it.

A configuration is a JSON file with an object of servers. What is there stays as it is; a file that cannot be read as JSON, such as one
with comments, is not touched.
"""

import json
import os
import shutil
import sys
from collections.abc import Callable, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import click

from rlm.core.errors import InvalidInput, NotFound, StoreError
from rlm.core.files import replace_file
from rlm.core.settings import load_settings
from rlm.service.cli.common import Group, example, json_option, print_json, store_from_anywhere, store_options


CLIENTS = ("claude-desktop", "claude-code", "cursor", "vscode")
SERVERS_KEY = {"vscode": "servers"}  # client → name of its object of servers; all others call it mcpServers
TYPED = ("claude-code", "vscode")  # clients whose entries name the transport


def _desktop_folder(platform: str, home: Path, environment: Mapping[str, str]) -> Path:
    "Return the folder in which Claude Desktop keeps its configuration."
    if platform == "darwin":
        return home / "Library" / "Application Support" / "Claude"
    if platform == "win32":
        return Path(environment.get("APPDATA") or home / "AppData" / "Roaming") / "Claude"
    return Path(environment.get("XDG_CONFIG_HOME") or home / ".config") / "Claude"


def config_path(client: str,               # one of `CLIENTS`
                folder: Path,              # project's folder, for clients that are configured by project
                platform: str = sys.platform,  # platform in Python's words
                home: Path | None = None,  # None: the user's
                environment: Mapping[str, str] = os.environ,  # variables of the process
                ) -> Path:
    "Return the file in which a client looks for its servers. Raises `InvalidInput` for a client that is not known."
    home = home or Path.home()
    places = {"claude-desktop": _desktop_folder(platform, home, environment) / "claude_desktop_config.json",
              "claude-code": folder / ".mcp.json", "cursor": home / ".cursor" / "mcp.json", "vscode": folder / ".vscode" / "mcp.json"}
    if client not in places:
        raise InvalidInput(f"The client {client!r} is not known.", f"Known: {', '.join(CLIENTS)}.")
    return places[client]


def program() -> str:
    "Return the full path of `rlm`: a client starts it from another folder, with a search path of its own. Raises `NotFound`."
    beside = Path(sys.executable).with_name("rlm.exe" if sys.platform == "win32" else "rlm")
    found = str(beside) if beside.exists() else shutil.which("rlm")
    if found is None:
        raise NotFound(f"There is no program `rlm` beside {sys.executable}.", "Install the package: pip install 'rlm[mcp]'")
    return found


def read_config(path: Path,  # a client's file
                ) -> dict[str, Any]:  # empty if it is not there
    "Return what stands in a client's configuration. Raises `InvalidInput` for a file that is not a JSON object, and leaves it."
    try:
        text = path.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        return {}
    except (OSError, UnicodeDecodeError) as e:
        raise StoreError(f"{str(path)!r} can't be read ({e}).", "Check the path, and what you may do there.") from None
    try:
        found = json.loads(text) if text.strip() else {}
    except ValueError as e:
        raise InvalidInput(f"{str(path)!r} is not plain JSON ({e}).",
                           "It was not changed. Leave out --write, and paste what is printed where its servers stand.") from None
    if not isinstance(found, dict):
        raise InvalidInput(f"{str(path)!r} holds no JSON object.", "It was not changed. Mend it first.")
    return found


def merged(config: Mapping[str, Any],  # contents of a client's file
           client: str,                # one of `CLIENTS`
           name: str,                  # name under which the client shows the server
           command: Sequence[str],     # full path of the program that is the server, and its arguments
           ) -> dict[str, Any]:
    "Return a configuration with the server in it; everything else is as it was. Raises `InvalidInput`."
    key = SERVERS_KEY.get(client, "mcpServers")
    servers = config.get(key, {})
    if not isinstance(servers, dict):
        raise InvalidInput(f"The {key} of this file are no JSON object.", "It was not changed. Mend it first.")
    entry = ({"type": "stdio"} if client in TYPED else {}) | {"command": command[0], "args": list(command[1:])}
    kept = servers.get(name)
    own = (kept if isinstance(kept, dict) else {}) | entry  # an env that somebody added stays
    return {**config, key: {**servers, name: own}}


def write_config(path: Path,  # a client's file
                 config: Mapping[str, Any],  # contents it shall have
                 ) -> Path | None:  # the copy of what it held; None: it was not there, or would not change
    "Write a client's configuration whole, and keep a copy of the one before. Raises `StoreError`."
    text = json.dumps(config, ensure_ascii=False, indent=2)
    if path.exists() and read_config(path) == config:
        return None
    backup = None
    if path.exists():
        backup = next(b for n in range(1, 10_000) if not (b := path.with_name(f"{path.name}.backup-{n}")).exists())
        shutil.copy2(path, backup)
    path.parent.mkdir(parents=True, exist_ok=True)
    replace_file(path, [text])
    return backup


def install_entry(path: Path,                        # a program's file
                  put: Callable[[dict[str, Any]], dict[str, Any]],  # puts the entry into what the file holds
                  write: bool,                       # False: only print what would be put into an empty one
                  as_json: bool,                     # print JSON
                  names: tuple[str, str, str],       # entry and program for people, contents in JSON
                  told: Mapping[str, Any] = {},      # more that JSON says
                  ) -> None:
    "Put an entry into a program's configuration, or print it, and say what to do next. Raises `InvalidInput`, `StoreError`."
    entry, program, contents = names
    if write:
        backup = write_config(path, put(read_config(path)))
        made: dict[str, Any] = {"backup": None if backup is None else str(backup)}
        notes = [f"What it held before is in {backup}." if backup else "Nothing else in it was changed.",
                 f"Restart {program}, so that it reads it."]
    else:
        made, notes = {contents: put({})}, [f"Put this into {path}, or run the same again with --write."]
    if as_json:
        print_json({**told, "path": str(path), **made})
        return
    click.echo(f"{entry} is in {path}.") if write else print_json(made[contents])
    for note in notes:
        click.echo(note, err=True)


WAITING = """rlm mcp speaks MCP on its standard input and output: a client starts it, such as Claude Desktop.
Print what to put into the client's configuration with: rlm mcp install --client claude-desktop
It waits for a client now; Ctrl-C ends it."""


@click.group("mcp", cls=Group, invoke_without_command=True,
             epilog=example("rlm mcp install --client claude-desktop", "rlm mcp --http --port 0"))
@click.option("--http", is_flag=True, help="Over HTTP instead, for clients that are given an address; `rlm serve` answers there too.")
@click.option("--host", help="With --http: a name or an address. Default: the setting serve_host, which is this machine alone.")
@click.option("--port", type=int, help="With --http: 0 is any that is free. Default: the setting serve_port, 8377.")
@click.option("--token-file", type=click.Path(path_type=Path), help="With --http: who may call. Default: the setting token_file.")
@click.option("--read-only", is_flag=True, help="Offer only the tools that change nothing.")
@store_options
@click.pass_context
def mcp_group(ctx: click.Context, http: bool, host: str | None, port: int | None, token_file: Path | None, read_only: bool,
              db: Path | None, namespace: str | None, config: Path | None) -> None:
    "Serve memory to an assistant over MCP, on standard input and output. A client starts it."
    if ctx.invoked_subcommand is not None:
        return
    if http:
        from rlm.service.mcp.http import serve_mcp
        serve_mcp(load_settings(config, db_path=db, namespace=namespace, serve_host=host, serve_port=port, token_file=token_file), config,
                  read_only)
        return
    if host is not None or port is not None or token_file is not None:
        raise click.UsageError("--host, --port and --token-file say something only with --http.")
    from rlm.service.mcp.stdio import serve_stdio
    if sys.stdin.isatty():
        click.echo(WAITING, err=True)
    serve_stdio(load_settings(config, db_path=db, namespace=namespace), config, read_only)


@mcp_group.command("install", epilog=example("rlm mcp install --client claude-desktop", "rlm mcp install --client claude-code --write",
                                             "rlm mcp install --client cursor -n agent-7 --db notes.db --json"))
@click.option("--client", required=True, type=click.Choice(CLIENTS), help="The program that will start the server.")
@click.option("--write", is_flag=True, help="Put it into the program's configuration; what is there stays, and a copy is kept.")
@click.option("--name", default="rlm", show_default=True, help="Name under which the program shows the server.")
@click.option("--read-only", is_flag=True, help="Offer only the tools that change nothing.")
@store_options
@json_option
def install(client: str, write: bool, name: str, read_only: bool, db: Path | None, namespace: str | None, config: Path | None,
            as_json: bool) -> None:
    "Print what goes into a program's configuration so that it starts the server; with --write, put it there."
    settings, more = load_settings(config, db_path=db, namespace=namespace), [] if config is None else ["--config", str(config.absolute())]
    inside = settings.namespace if settings.sources.get("namespace") == "argument" else None
    where = ["mcp", "--db", store_from_anywhere(settings.db_path), *(["-n", inside] if inside is not None else [])]
    command = [program(), *where, *more, *(["--read-only"] if read_only else [])]
    path = config_path(client, Path.cwd())
    if find_spec("mcp") is None:
        click.echo("The server needs the package mcp, which is not installed here: pip install 'rlm[mcp]'", err=True)
    install_entry(path, lambda config: merged(config, client, name, command), write, as_json,
                  (name, client.replace("-", " ").title(), "config"), {"client": client})
