"""Commands that serve: the REST server and the tokens that open it, and a proxy for clients of OpenAI's protocol."""

from datetime import datetime, timedelta
from pathlib import Path

import click

from rlm.core.clock import to_iso
from rlm.core.errors import MissingExtra, name_list
from rlm.core.files import hidden_password, read_path
from rlm.core.settings import load_settings
from rlm.service.cli.common import Group, example, json_option, options, print_json, print_rows, store_options
from rlm.service.http.tokens import RIGHTS, Token, TokenFile, TokenUses, read_expiry, read_lifetime


@click.command("serve", epilog=example("rlm serve", "rlm serve --port 0 --db notes.db"))
@click.option("--host", help="A name or an address. Default: the setting serve_host, which is this machine alone.")
@click.option("--port", type=int, help="0: any that is free. Default: the setting serve_port, 8377.")
@click.option("--token-file", type=click.Path(path_type=Path), help="Who may call. Default: the setting token_file, if it is there.")
@click.option("--workers", type=click.IntRange(1, 64), default=1, show_default=True, help="Processes that answer.")
@click.option("--metrics-prefix", help="rlm, or greeum: eight figures under that name too. Default: the setting.")
@click.option("--traces", help="Spans of OpenTelemetry: off, console, otlp. Default: the setting traces.")
@store_options
def serve_command(host: str | None, port: int | None, token_file: Path | None, workers: int, metrics_prefix: str | None,
                  traces: str | None, db: Path | None, namespace: str | None, config: Path | None) -> None:
    "Serve the store over HTTP: REST under /v1, the explorer at /, figures at /metrics. Ctrl-C ends it."
    try:
        from rlm.service.http.server import serve
    except ImportError as e:
        raise MissingExtra(f"The server needs {e.name}, which is not installed.", "Install it with: pip install 'rlm[serve]'") from None
    serve(load_settings(config, db_path=db, namespace=namespace, serve_host=host, serve_port=port, token_file=token_file,
                        metrics_prefix=metrics_prefix, traces=traces), config, workers)


token_options = options(
    click.option("--token-file", type=click.Path(path_type=Path), help="Default: the setting token_file."),
    click.option("--config", type=click.Path(path_type=Path), help="A settings file instead of the usual ones."))


@click.group("tokens", cls=Group)
def tokens_group() -> None:
    "Add, list, rotate and revoke tokens: who may call the server."


def _token_dict(token: Token, used: datetime | None = None) -> dict[str, object]:
    "Return what is known of a token, for JSON: never the token itself, nor its hash."
    found = {"id": token.id, "namespace": token.namespace, "rights": list(token.rights), **token.details()}
    return found | {"namespaces": list(token.namespaces)} | ({"last_used": to_iso(used)} if used else {})


def minute(moment: datetime | None,  # in UTC
           ) -> str:
    "Return a moment as people read it; nothing for none."
    return "" if moment is None else f"{moment:%Y-%m-%d %H:%M}"


def _show_token(secret: str, made: Token, as_json: bool, **more: object) -> None:
    "Print a token, this once; what it opens goes to the standard error."
    if as_json:
        return print_json({"token": secret, **_token_dict(made), **more})
    click.echo(secret)
    where = f"{'namespaces' if made.others else 'namespace'} {name_list(repr(n) for n in made.namespaces)}"
    until = f" until {minute(made.expires)} UTC" if made.expires else ""
    click.echo(f"Token {made.id} opens {where} to {' and '.join(made.rights)}{until}. It is not shown again.", err=True)


@tokens_group.command("add", epilog=example("rlm tokens add", "rlm tokens add -n agent-7 --right read --json",
                                            "rlm tokens add -n agent-7 -n shared --label laptop --expires 90d"))
@click.option("-n", "--namespace", "namespaces", multiple=True,
              help="A partition it opens; repeat for several, the usual one first. Default: the setting namespace.")
@click.option("--right", "rights", type=click.Choice(RIGHTS), multiple=True, default=("write",), show_default=True,
              help="What for; repeat for several. write lets read as well, admin lets everything, and alone erases for good.")
@click.option("--label", default="", help="What you call it, for lists.")
@click.option("--expires", help="When it ends: a date, a time, or a span like 2w, 90d, 12h or 30m. Default: never.")
@token_options
@json_option
def add(namespaces: tuple[str, ...], rights: tuple[str, ...], label: str, expires: str | None, token_file: Path | None, config: Path | None,
        as_json: bool) -> None:
    "Make a token, and show it this once."
    settings = load_settings(config, namespace=namespaces[0] if namespaces else None, token_file=token_file)
    tokens = TokenFile(settings.token_file)
    ends = None if expires is None else read_expiry(expires, tokens.clock.now())
    _show_token(*tokens.add((settings.namespace, *namespaces[1:]), rights, label=label, expires=ends), as_json)


@tokens_group.command("list", epilog=example("rlm tokens list"))
@token_options
@json_option
def list_(token_file: Path | None, config: Path | None, as_json: bool) -> None:
    "List all tokens: names, namespaces, rights, labels, and when they were made, last used, and end."
    tokens = TokenFile(load_settings(config, token_file=token_file).token_file)
    known, used = tokens.tokens(), TokenUses(tokens.path).read()
    rows = [(t.id, name_list(t.namespaces), ", ".join(t.rights), t.label, minute(t.created), minute(used.get(t.id)),
             minute(t.expires) if t.valid_at(tokens.clock.now()) else "expired") for t in known]
    print_rows(as_json, [_token_dict(t, used.get(t.id)) for t in known], rows,
               ["id", "namespace", "rights", "label", "made", "last used", "ends"], "There are no tokens. Make one with: rlm tokens add")


@tokens_group.command("rotate", epilog=example("rlm tokens rotate 5e5e5e5e", "rlm tokens rotate 5e5e5e5e --grace 24h --json"))
@click.argument("id")
@click.option("--grace", help="How long the old one still works: a span like 24h. Default: not at all.")
@token_options
@json_option
def rotate(id: str, grace: str | None, token_file: Path | None, config: Path | None, as_json: bool) -> None:
    "Replace the token with this ID by a new one that opens the same, and show that this once; say until when the old one works."
    tokens = TokenFile(load_settings(config, token_file=token_file).token_file)
    secret, made = tokens.rotate(id, timedelta() if grace is None else read_lifetime(grace))
    ends = next((t.expires for t in tokens.tokens() if t.id == id), None)
    _show_token(secret, made, as_json, replaced={"id": id, "works_until": ends and to_iso(ends)})
    if not as_json:
        click.echo(f"Token {id}, which it replaces, {f'works until {minute(ends)} UTC' if ends else 'is refused from now on'}.", err=True)


@tokens_group.command("revoke", epilog=example("rlm tokens revoke 5e5e5e5e"))
@click.argument("id")
@token_options
@json_option
def revoke(id: str, token_file: Path | None, config: Path | None, as_json: bool) -> None:
    "Take the token with this ID back."
    gone = TokenFile(load_settings(config, token_file=token_file).token_file).revoke(id)
    print_json(_token_dict(gone)) if as_json else click.echo(f"Token {gone.id} for {gone.namespace!r} is revoked.")


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
        from rlm.service.http.middleware import served_names
        from rlm.service.http.pool import MemoryPool
        from rlm.service.http.proxy import BASE, MemoryProxy, proxy_application
        from rlm.service.http.server import PLACE, answer_at, listening, load_token_store
    except ModuleNotFoundError as e:
        raise MissingExtra(f"The proxy needs {e.name}, which is not installed.", "Install it: pip install 'rlm[serve,openai]'") from None
    settings = load_settings(config, db_path=db, namespace=namespace, serve_host=host, serve_port=port, token_file=token_file)
    book = load_token_store(settings)
    pool = MemoryPool(settings, config=config)
    proxy = MemoryProxy(upstream or settings.openai_url, pool, book, served_names(settings), tokens, not no_capture)
    pool.store().search("Is it ready? 어디까지 준비됐어?", 1)  # the index, the model and the grammar are there before anyone waits for them
    pool.store().companion.decide("ready")
    beside = f"(upstream {proxy.upstream}, memories {hidden_password(str(read_path(settings.db_path)))})"
    with listening(settings.serve_host, settings.serve_port) as here:
        answer_at(here, proxy_application(proxy), f"Base URL for clients: http://{PLACE}{BASE} {beside}")
