"""The command line: all groups under one name, and the settings in force."""

import os
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

import click
from click.shell_completion import CompletionItem, get_completion_class

from rlm.core.errors import InvalidInput
from rlm.service.cli.common import Group, example, json_option, print_json, print_rows, store_options


SETTINGS_FILE = Path("rml_config.yaml")  # name under which a settings file is written when none is given
COMMANDS = {  # name → where the command is, and what the list of commands says of it
    "memory": ("rlm.service.cli.strategies:memory_group", "Write, search and manage memories."),
    "conversation": ("rlm.service.cli.memory:conversation_group", "Store the turns of a conversation, and read them."),
    "context": ("rlm.service.cli.companion:context_command",
                "Print a block for a prompt about QUERY: what is pinned, then what answers it."),
    "review": ("rlm.service.cli.companion:review_group", "Correct for good: accept what is right, reject what is wrong, lift rejections."),
    "audit": ("rlm.service.cli.companion:audit_command",
              "Show what was believed about QUERY at a moment, and what had been served by then."),
    "policy": ("rlm.service.cli.companion:policy_command", "Say whether TURN is worth saving, and why."),
    "sleep": ("rlm.service.cli.companion:sleep_command",
              "Merge memories that say the same, archive what is not used, save what was learned."),
    "rules": ("rlm.service.cli.rules:rules_group", "Store, apply, judge and audit rules: what to do when."),
    "strategies": ("rlm.service.cli.strategies:strategies_group", "Bring in, export, read and train strategies: how tasks were solved."),
    "agent": ("rlm.service.cli.agent:main", "Run an agent that answers questions about ontologies and gets better at it."),
    "anchors": ("rlm.service.cli.recall:anchors_group", "Look at the anchors A, B and C, and set, pin and carry them."),
    "attention": ("rlm.service.cli.recall:attention_group", "Show working memory: recent subjects, and the memories they lead to."),
    "graph": ("rlm.service.cli.recall:graph_group", "Make the links between memories, count them and look at them."),
    "db": ("rlm.service.cli.db:db_group", "Back up, restore, check, export and import a store."),
    "import": ("rlm.service.cli.interchange:import_command", "Read what another program remembers, or rlm itself: its export PATH."),
    "namespaces": ("rlm.service.cli.db:namespaces_group", "List the namespaces of a store; erase one, or purge some."),
    "cluster": ("rlm.service.cli.cluster:cluster_group", "Make one store of several PostgreSQL instances, and move namespaces."),
    "reembed": ("rlm.service.cli.db:reembed_command", "Make all vectors of the store anew, while the old ones serve."),
    "eval": ("rlm.service.cli.evaluation:eval_command", "Ask the labelled questions of FILE: how many are answered, why others are not."),
    "train-ranker": ("rlm.service.cli.evaluation:train_ranker_command", "Learn how to rank from questions with known answers."),
    "export": ("rlm.service.cli.interchange:export_command", "Write what is stored to the file TARGET: for rlm, other programs or people."),
    "serve": ("rlm.service.cli.server:serve_command", "Serve the store over HTTP: REST under /v1, the explorer at /, figures at /metrics."),
    "mcp": ("rlm.service.cli.mcp:mcp_group", "Serve memory to an assistant over MCP, on standard input and output. A client starts it."),
    "hook": ("rlm.service.cli.hook:hook_group", "Give Claude Code context and keep what is said: reads an event from standard input."),
    "proxy": ("rlm.service.cli.server:proxy_command", "Stand before a server of OpenAI's protocol: add memories, keep what is said."),
    "tokens": ("rlm.service.cli.server:tokens_group", "Add, list, rotate and revoke tokens: who may call the server."),
    "federation": ("rlm.service.cli.federation:federation_group", "Learn what to save together with others; no memory leaves the store."),
    "bench": ("rlm.bench.cli:bench", "Run benchmarks: each prints a table, or writes the JSON that its chapter plots.")}


class _LazyGroup(Group):
    "A group that imports the module of a command when that command is used, and lists all of them without importing any."

    def __init__(self, *args: Any, lazy: Mapping[str, tuple[str, str]], **more: Any) -> None:
        super().__init__(*args, **more)
        self.lazy = lazy

    def list_commands(self, ctx: click.Context) -> list[str]:
        "All names, those first that are always loaded."
        return [*super().list_commands(ctx), *self.lazy]

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        "A command by its name; its module is imported now."
        if name not in self.lazy:
            return super().get_command(ctx, name)
        module, attribute = self.lazy[name][0].split(":")
        found: click.Command = getattr(import_module(module), attribute)
        return found

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        "Return the names that a word may become, from the table: no command is imported for it."
        names = {**{n: c.get_short_help_str() for n, c in self.commands.items()}, **{n: about for n, (_, about) in self.lazy.items()}}
        return [CompletionItem(n, help=about) for n, about in names.items() if n.startswith(incomplete)]

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        "Write the list of commands, from the table."
        own = {name: command.get_short_help_str(200) for name, command in self.commands.items()}
        about = {name: own.get(name) or self.lazy[name][1] for name in self.list_commands(ctx)}
        with formatter.section("Commands"):
            formatter.write_dl(list(about.items()))


@click.group(cls=_LazyGroup, lazy=COMMANDS, context_settings={"help_option_names": ["-h", "--help"]},
             epilog=example('rlm memory write "I am allergic to peanuts." --tag health',
                            'rlm memory search "peanut allergy"'))
@click.version_option(package_name="rlm", prog_name="rlm")
def main() -> None:
    "Long-term memory for language-model agents, in one file."


@main.command(epilog=example("rlm completion bash", "rlm completion zsh"))
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def completion(shell: str) -> None:
    """Print what lets a SHELL complete commands and options.

    bash: put `eval "$(rlm completion bash)"` into ~/.bashrc; zsh the same with zsh into ~/.zshrc; fish: rlm completion fish | source"""
    found = get_completion_class(shell)
    assert found is not None
    click.echo(found(main, {}, "rlm", "_RLM_COMPLETE").source())


@main.group(cls=Group, invoke_without_command=True, epilog=example("rlm config", "rlm config --db notes.db --json"))
@store_options
@json_option
@click.pass_context
def config(ctx: click.Context, db: Path | None, namespace: str | None, config: Path | None, as_json: bool) -> None:
    "Show every setting: its value, and where that came from."
    if ctx.invoked_subcommand is not None:
        return
    from rlm.core.settings import load_settings
    settings = load_settings(config, db_path=db, namespace=namespace)
    rows = settings.table()
    print_rows(as_json, {name: {"value": value, "from": source, "about": about} for name, value, source, about in rows},
               rows, ["setting", "value", "from", "what it does"])


@config.command(epilog=example("rlm config init", "rlm config init team.yaml --json"))
@click.argument("path", type=click.Path(path_type=Path), default=SETTINGS_FILE)
@json_option
def init(path: Path, as_json: bool) -> None:
    """Write a settings file to PATH: every setting with its default and what it does. Default: rml_config.yaml, which is read in this
    folder, unless rlm.yaml is there."""
    from rlm.core.settings import find_file, settings_file
    before = find_file(None, os.environ)
    if path == SETTINGS_FILE and before is not None and before != path and (before.parent == path.parent or os.environ.get("RLM_CONFIG")):
        raise InvalidInput(f"Settings are read from {str(before)!r}, and would not be from {str(path)!r}; nothing was written.",
                           "Edit that file, or name another one, such as: rlm config init team.yaml")
    try:
        with open(path, "x", encoding="utf-8") as file:
            file.write(settings_file())
    except FileExistsError:
        raise InvalidInput(f"There is a file {str(path)!r} already.", "Name another one, or move it away first.") from None
    now = find_file(None, os.environ)
    if now is None or not now.samefile(path):
        what = f"It is read where it is named: --config {path}, or RLM_CONFIG."
    else:
        what = "It is read in this folder" + (f" from now on, instead of {before}." if before else ".")
    print_json({"path": str(path), "instead_of": before and str(before)}) if as_json else click.echo(f"Written to {path}. {what}")
