"""The server from the command line, and the tokens that open it."""

from collections.abc import Sequence
from pathlib import Path

import click

from rlm.core.errors import MissingExtra
from rlm.core.settings import load_settings
from rlm.service.cli.common import Group, example, json_option, options, print_json, print_table, store_options
from rlm.service.http.tokens import RIGHTS, Token, TokenFile


@click.command("serve", epilog=example("rlm serve", "rlm serve --port 0 --db notes.db"))
@click.option("--host", help="A name or an address. Default: the setting serve_host, which is this machine alone.")
@click.option("--port", type=int, help="0: any that is free. Default: the setting serve_port, 8377.")
@click.option("--token-file", type=click.Path(path_type=Path), help="Who may call. Default: the setting token_file, if it is there.")
@click.option("--metrics-prefix", help="rlm, or greeum: eight figures under that name too. Default: the setting.")
@click.option("--traces", help="Spans of OpenTelemetry: off, console, otlp. Default: the setting traces.")
@store_options
def serve_command(host: str | None, port: int | None, token_file: Path | None, metrics_prefix: str | None, traces: str | None,
                  db: Path | None, namespace: str | None, config: Path | None) -> None:
    "Serve the store over HTTP: REST under /v1, the explorer at /, figures at /metrics. Ctrl-C ends it."
    try:
        from rlm.service.http.server import serve
    except ImportError as e:
        raise MissingExtra(f"The server needs {e.name}, which is not installed.", "Install it with: pip install 'rlm[serve]'") from None
    serve(load_settings(config, db_path=db, namespace=namespace, serve_host=host, serve_port=port, token_file=token_file,
                        metrics_prefix=metrics_prefix, traces=traces), config)


token_options = options(
    click.option("--token-file", type=click.Path(path_type=Path), help="Default: the setting token_file."),
    click.option("--config", type=click.Path(path_type=Path), help="A settings file instead of the usual ones."))


@click.group("tokens", cls=Group)
def tokens_group() -> None:
    "Add, list and revoke tokens: who may call the server."


def shown(tokens: Sequence[Token],  # what is known of some
          ) -> list[dict[str, object]]:
    "For JSON."
    return [{"id": t.id, "namespace": t.namespace, "rights": list(t.rights)} for t in tokens]


@tokens_group.command("add", epilog=example("rlm tokens add", "rlm tokens add -n agent-7 --right read --json"))
@click.option("-n", "--namespace", help="The partition it opens. Default: the setting namespace.")
@click.option("--right", "rights", type=click.Choice(RIGHTS), multiple=True, default=("write",), show_default=True,
              help="What for; repeat for several. write lets read as well.")
@token_options
@json_option
def add(namespace: str | None, rights: tuple[str, ...], token_file: Path | None, config: Path | None, as_json: bool) -> None:
    "Make a token, and show it this once."
    settings = load_settings(config, namespace=namespace, token_file=token_file)
    secret, made = TokenFile(settings.token_file).add(settings.namespace, rights)
    if as_json:
        print_json({"token": secret, **shown([made])[0]})
    else:
        click.echo(secret)
        click.echo(f"Token {made.id} opens namespace {made.namespace!r} to {' and '.join(made.rights)}. It is not shown again.", err=True)


@tokens_group.command("list", epilog=example("rlm tokens list"))
@token_options
@json_option
def list_(token_file: Path | None, config: Path | None, as_json: bool) -> None:
    "List the names, namespaces and rights of all tokens."
    known = TokenFile(load_settings(config, token_file=token_file).token_file).tokens()
    if as_json:
        print_json(shown(known))
    elif not known:
        click.echo("There are no tokens. Make one with: rlm tokens add")
    else:
        print_table([(t.id, t.namespace, ", ".join(t.rights)) for t in known], ["id", "namespace", "rights"])


@tokens_group.command("revoke", epilog=example("rlm tokens revoke 5e5e5e5e"))
@click.argument("id")
@token_options
@json_option
def revoke(id: str, token_file: Path | None, config: Path | None, as_json: bool) -> None:
    "Take the token with this ID back."
    gone = TokenFile(load_settings(config, token_file=token_file).token_file).revoke(id)
    print_json(shown([gone])[0]) if as_json else click.echo(f"Token {gone.id} for {gone.namespace!r} is revoked.")
