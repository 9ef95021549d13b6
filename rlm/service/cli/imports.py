"""Conversations and memories of other programs, from the command line."""

from pathlib import Path

import click

from rlm.service.cli.common import example, json_option, print_json, with_memory
from rlm.service.importers import READERS_OF, import_export
from rlm.service.memory import Memory


@click.command("import", epilog=example("rlm import chatgpt conversations.json", "rlm import claude claude-export.zip --json",
                                        "rlm import markdown notes", "rlm import jsonl facts.jsonl -n work"))
@click.argument("format", type=click.Choice(list(READERS_OF)))
@click.argument("path", type=click.Path(path_type=Path))
@click.option("--later", is_flag=True, help="Make no vectors now: `rlm serve`, `rlm mcp` or `rlm reembed --missing` makes them.")
@with_memory(makes=True)
@json_option
def import_command(memory: Memory, format: str, path: Path, later: bool, as_json: bool) -> None:
    """Read what another program remembers: its export PATH.

    FORMAT says which program; PATH is a file, a folder or a zip archive as it was downloaded. A second time it adds what is new; what was
    deleted here stays deleted. A store of rlm itself is read with `rlm db import`."""
    report = import_export(memory, path, format, embed=False)
    if not later and memory.embeddings.model() is not None:
        click.echo(f"{report.added:,} memories are stored, and found by their words. Ctrl-C leaves what has no vector for later.", err=True)
        memory.embeddings.embed_missing(memory.ctx.namespace, memory.clock)
    if as_json:
        print_json(report.as_dict())
        return
    click.echo(repr(report))
    for id, why in list(report.refused.items())[:10]:
        click.echo(f"refused {id}: {why}", err=True)
