"""The MCP server from the command line, and its entry in the configuration of the programs that start it."""

import sys
from importlib.util import find_spec
from pathlib import Path

import click

from rlm.core.settings import load_settings
from rlm.service.cli.common import Group, example, json_option, print_json, store_options
from rlm.service.mcp.clients import CLIENTS, config_path, merged, read_config, server_entry, write_config

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
    from rlm.core.files import read_path
    settings, more = load_settings(config, db_path=db, namespace=namespace), [] if config is None else ["--config", str(config.absolute())]
    inside = settings.namespace if settings.sources.get("namespace") == "argument" else None
    entry = server_entry(name, read_path(settings.db_path), inside, [*more, *(["--read-only"] if read_only else [])])
    path = config_path(client, Path.cwd())
    if find_spec("mcp") is None:
        click.echo("The server needs the package mcp, which is not installed here: pip install 'rlm[mcp]'", err=True)
    if not write:
        if as_json:
            print_json({"client": client, "path": str(path), "config": merged({}, client, entry)})
        else:
            print_json(merged({}, client, entry))
            click.echo(f"Put this into {path}, or run the same again with --write.", err=True)
        return
    backup = write_config(path, merged(read_config(path), client, entry))
    if as_json:
        print_json({"client": client, "path": str(path), "backup": None if backup is None else str(backup)})
    else:
        click.echo(f"{name} is in {path}.")
        click.echo(f"What it held before is in {backup}." if backup else "Nothing else in it was changed.", err=True)
        click.echo(f"Restart {client.replace('-', ' ').title()}, so that it reads it.", err=True)
