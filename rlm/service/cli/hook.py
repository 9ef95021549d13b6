"""Memory for Claude Code without a tool call: the hook, the settings that start it, and what it did."""

import json
import os
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import click

from rlm.core.errors import InvalidInput
from rlm.core.files import read_path
from rlm.service.cli.common import Group, example, json_option, options, print_json, print_table, store_from_anywhere, store_options
from rlm.service.hook import EVENTS, HOME, TOKENS, URL

TIMEOUT_S = 10  # seconds after which Claude Code ends the hook
LAST = 10  # events that `status` shows
MATCHERS = {"SessionStart": "*", "PreCompact": "*"}  # events whose entries name what they match
LOG = os.path.join(HOME, "hook.log")
log_option = click.option("--log", default=LOG, show_default=True, help="Where each event is noted, without a text.")
hook_options = options(
    click.option("--secret", type=click.Path(path_type=Path), help="A file with a token for the server."),
    click.option("--tokens", type=int, default=TOKENS, show_default=True, help="What a block of memories may cost."),
    click.option("--no-capture", is_flag=True, help="Store nothing; only give context."),
    log_option,
    store_options)


@click.group("hook", cls=Group, invoke_without_command=True, epilog=example("rlm hook install", "rlm hook status"))
@click.option("--url", default=URL, show_default=True, help="A server of `rlm serve`; where none answers, the store is read by words.")
@hook_options
@click.pass_context
def hook_group(ctx: click.Context, /, log: str, **given: Any) -> None:
    "Give Claude Code context and keep what is said: reads an event from standard input. Claude Code starts it."
    if ctx.invoked_subcommand is not None:
        return
    from rlm.service.hook import main
    if sys.stdin.isatty():
        raise InvalidInput("rlm hook reads an event of Claude Code from standard input.", "Set it up with: rlm hook install --write")
    sys.exit(main(_hook_words(log=log, **given)))


def _hook_words(**given: Any) -> list[str]:
    "Return options as words of a command line; those that are not given, and defaults, are left out."
    defaults, words = {"url": URL, "tokens": TOKENS, "log": LOG}, list[str]()
    for name, value in given.items():
        if value is True:
            words.append(f"--{name.replace('_', '-')}")
        elif value not in (None, False, defaults.get(name)):
            words += [f"--{name.replace('_', '-')}", str(value)]
    return words


def quoted(words: list[str],  # a command and its arguments
           ) -> str:
    "Return a command as the shell of this system reads it."
    return subprocess.list2cmdline(words) if sys.platform == "win32" else shlex.join(words)


def _with_hooks(settings: dict[str, Any], command: str) -> dict[str, Any]:
    "Return the settings with the hook for each event; an earlier entry of ours is replaced, all others stay. Raises `InvalidInput`."
    hooks = settings.get("hooks", {})
    if not isinstance(hooks, dict) or not all(isinstance(entries, list) for entries in hooks.values()):
        raise InvalidInput("The hooks of this file are not as Claude Code has them.", "It was not changed. Mend it first.")
    out = dict(hooks)
    for event in EVENTS:
        kept = [e for e in hooks.get(event, []) if "rlm.service.hook" not in json.dumps(e)]
        entry = {"hooks": [{"type": "command", "command": command, "timeout": TIMEOUT_S}]}
        out[event] = [*kept, ({"matcher": MATCHERS[event]} if event in MATCHERS else {}) | entry]
    return {**settings, "hooks": out}


@hook_group.command("install", epilog=example("rlm hook install", "rlm hook install --project --write",
                                              "rlm hook install -n work --no-capture --json"))
@click.option("--project", is_flag=True, help="For this folder's project (.claude/settings.local.json), not for all.")
@click.option("--write", is_flag=True, help="Put it into the settings; what is there stays, and a copy is kept.")
@click.option("--url", default=URL, show_default=True, help="A server of `rlm serve`.")
@hook_options
@json_option
def install(project: bool, write: bool, url: str, secret: Path | None, tokens: int, no_capture: bool, log: str, db: Path | None,
            namespace: str | None, config: Path | None, as_json: bool) -> None:
    "Print what goes into the settings of Claude Code so that it starts the hook; with --write, put it there."
    from rlm.core.settings import load_settings
    from rlm.service.cli.mcp import install_entry
    settings = load_settings(config, db_path=db, namespace=namespace)
    words = _hook_words(url=url, secret=secret and secret.absolute(), tokens=tokens, no_capture=no_capture, log=log,
                       db=store_from_anywhere(settings.db_path), config=config and config.absolute())
    inside = ["--namespace", settings.namespace] if namespace is not None else []
    command = quoted([sys.executable, "-P", "-m", "rlm.service.hook", *words, *inside])
    path = Path.cwd() / ".claude" / "settings.local.json" if project else Path.home() / ".claude" / "settings.json"
    install_entry(path, lambda held: _with_hooks(held, command), write, as_json, ("The hook", "Claude Code", "settings"))


def _read_log(path: Path) -> list[dict[str, Any]]:
    "Return the events in a log, oldest first; a line that was cut is left out."
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except FileNotFoundError:
        return []
    found = list[dict[str, Any]]()
    for line in lines:
        try:
            one = json.loads(line)
        except ValueError:
            continue
        found += [one] if isinstance(one, dict) else []
    return found


@hook_group.command("status", epilog=example("rlm hook status", "rlm hook status --json"))
@log_option
@json_option
def status(log: str, as_json: bool) -> None:
    "Show what the hook did last, and why it failed."
    events = _read_log(read_path(log))
    failed = [e for e in events if "failed" in e]
    if as_json:
        print_json({"log": str(read_path(log)), "events": len(events), "failed": len(failed), "last": events[-LAST:]})
    elif not events:
        click.echo("The hook has not run yet. Set it up with: rlm hook install --write")
    else:
        rows = [(e.get("at", ""), e.get("event", ""), e.get("by", ""), e.get("memories", ""), e.get("stored", ""), e.get("ms", ""),
                 e.get("failed", "")) for e in events[-LAST:]]
        print_table(rows, ["at", "event", "by", "memories", "stored", "ms", "failed"])
        if failed and failed[-1] not in events[-LAST:]:
            click.echo(f"The last failure, at {failed[-1].get('at', '')}: {failed[-1]['failed']}")
        click.echo(f"{len(events)} events in {read_path(log)}, {len(failed)} failed.", err=True)
