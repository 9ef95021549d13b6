"""Make the links, count them, look at a neighbourhood, and carry them to another store."""

from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from rlm.core.errors import InvalidInput
from rlm.core.files import replacing
from rlm.core.text import clip
from rlm.recall.adjacency import LinkWeights
from rlm.recall.snapshots import graph_lines, import_graph
from rlm.service.cli.common import (Group, example, options, print_counts, print_json, print_rows, print_value, report_export, with_memory,
                                    write_export)
from rlm.service.memory import Memory


@click.group("graph", cls=Group)
def graph_group() -> None:
    "Make the links between memories, count them and look at them."


mixture_options = options(
    click.option("--alpha", type=float, default=0.7, show_default=True, help="Share of similarity in a link's weight."),
    click.option("--beta", type=float, default=0.2, show_default=True, help="Share of being said one after the other."),
    click.option("--gamma", type=float, default=0.1, show_default=True, help="Share of tags and conversations in common."),
    click.option("--theta", type=float, default=0.35, show_default=True, help="A link of similarity weighs at least this."),
    click.option("--kmax", type=int, default=32, show_default=True, help="Links of one memory."))


@graph_group.command(epilog=example("rlm graph bootstrap", "rlm graph bootstrap --alpha 0.5 --beta 0.4 --json"))
@mixture_options
@click.option("-k", type=int, default=16, show_default=True, help="Neighbours in meaning that each memory brings.")
@with_memory()
def bootstrap(memory: Memory, k: int, as_json: bool, **shares: Any) -> None:
    "Link all memories by meaning, time, tags and conversations; set empty anchors at the latest subjects. May be run again."
    done = memory.bootstrap(LinkWeights(**shares), k)
    memory.anchors.initialize()
    if as_json:
        print_json(asdict(done))
    elif done.unchanged:
        click.echo(f"Nothing has changed since the last run: {done.memories:,} memories.")
    else:
        went_on = ", going on where an earlier run had stopped" if done.resumed else ""
        click.echo(f"{done.memories:,} memories linked{went_on}: {done.added:,} links added, {done.dropped:,} dropped.")


@graph_group.command(epilog=example("rlm graph stats", "rlm graph stats --json"))
@with_memory()
def stats(memory: Memory, as_json: bool) -> None:
    "Count the links, and say where they come from."
    found = memory.graph.stats()
    print_counts(as_json, found)


@graph_group.command(epilog=example("rlm graph show tea", "rlm graph show tea --radius 2 --plot tea.png"))
@click.argument("id")
@click.option("--radius", type=int, default=1, show_default=True, help="Links to walk.")
@click.option("--beam", type=int, default=32, show_default=True, help="Memories that a hop goes on with.")
@click.option("--plot", type=click.Path(path_type=Path, dir_okay=False), help="Draw a picture into this file; needs matplotlib.")
@with_memory()
def show(memory: Memory, id: str, radius: int, beam: int, plot: Path | None, as_json: bool) -> None:
    "Show what lies around the memory ID."
    reached = memory.graph.explore(id, radius, beam)
    if plot is not None:
        try:
            with replacing(plot) as part:
                memory.graph.plot(id, radius).figure.savefig(part, format=plot.suffix[1:] or "png")
        except ValueError as e:
            raise InvalidInput(f"The picture {str(plot)!r} can't be written ({e}).", "Give a path like tea.png.") from None
    print_rows(as_json, [asdict(r) for r in reached],
               [(r.id, r.hops, f"{r.weight:.3f}", " → ".join(r.path[:-1]), clip(memory.get(r.id).text)) for r in reached],
               ["id", "hops", "weight", "over", "memory"])


@graph_group.command("export", epilog=example("rlm graph export graph.jsonl"))
@click.argument("path", type=click.Path(path_type=Path, allow_dash=True))
@with_memory()
def export_(memory: Memory, path: Path, as_json: bool) -> None:
    "Write the links that the graph has made to the file PATH, as JSON Lines; - for standard output."
    count = write_export(path, graph_lines(memory.graph)) - 2  # the first line says what follows, the last how much
    report_export(path, count, "links", as_json)


@graph_group.command("import", epilog=example("rlm graph import graph.jsonl"))
@click.argument("path", type=click.Path(path_type=Path))
@with_memory()
def import_(memory: Memory, path: Path, as_json: bool) -> None:
    "Read links from the file PATH: all of it, or nothing."
    done = import_graph(memory.graph, path)
    print_value(as_json, asdict(done), f"{done.links:,} links, {done.added:,} of them new; {done.unknown:,} of memories that are not here.")
