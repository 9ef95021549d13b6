"""Commands over recall: working memory, the anchors, and the links between memories."""

from collections.abc import Callable
from dataclasses import asdict
from functools import wraps
from pathlib import Path
from typing import Any

import click

from rlm.core.clock import to_iso
from rlm.core.errors import InvalidInput
from rlm.core.files import replacing
from rlm.core.text import clip
from rlm.recall.adjacency import LinkWeights
from rlm.recall.anchors import AnchorManager
from rlm.recall.coordinator import SearchCoordinator
from rlm.recall.snapshots import anchors_dict, anchors_line, graph_lines, import_anchors, import_graph
from rlm.service.cli.common import (Group, context_option, example, options, print_counts, print_json, print_rows, print_value,
                                    report_export, with_memory, write_export)
from rlm.service.memory import Memory
from rlm.store.records import read_count
from rlm.store.slots import SLOTS


@click.group("attention", cls=Group)
def attention_group() -> None:
    "Show working memory: recent subjects, and the memories they lead to."


def status_of(attention: SearchCoordinator) -> dict[str, Any]:
    "For JSON: the slots with their checkpoints, and what the layers did in this process."
    with attention.lock:
        attention.peek()
        now = attention.clock.now()
        memory, refs = attention.state.working_memory, attention.state.checkpoints.of
        records = attention.records([r.seq for s in memory.slots.values() for r in refs(s)])
        slots = [{"slot": s.slot_id, "context": s.context, "strength": round(s.strength(now), 3), "uses": s.uses,
                  "last_used_at": to_iso(s.last_used_at), "context_hash": s.context_hash,
                  "checkpoints": [{"id": records[r.seq].id, "relevance": round(r.relevance, 3), "distance": round(r.distance, 3),
                                   "text": records[r.seq].text} for r in refs(s) if r.seq in records]}
                 for s in memory.get_active_slots(now, 0.0)]
        return {"checkpoints": attention.checkpoints(), "slots": slots, "unstored": attention.unstored,
                "counts": attention.counts.as_dict()}


@attention_group.command("status", epilog=example("rlm attention status", "rlm attention status --json"))
@with_memory()
def show_attention(memory: Memory, as_json: bool) -> None:
    "Show the subjects of working memory, the strongest first, and where each leads."
    found = status_of(memory.attention)
    rows = [(s["slot"], s["strength"], s["uses"], clip(s["context"], 40), clip("; ".join(c["text"] for c in s["checkpoints"]), 60))
            for s in found["slots"]]
    print_rows(as_json, found, rows, ["slot", "strength", "uses", "subject", "leads to"])


@click.group("anchors", cls=Group)
def anchors_group() -> None:
    "Look at the anchors A, B and C, and set, pin and carry them."


def _show(anchors: AnchorManager, as_json: bool) -> None:
    headers, rows = anchors.table()
    print_rows(as_json, anchors_dict(anchors), rows, headers)


def _with_anchors(command: Callable[..., None]) -> Any:
    "Add `--context` and the options of a store, pass the command the anchors that they name as its first argument, and show them after it."
    @context_option
    @with_memory()
    @wraps(command)
    def run(memory: Memory, context: str | None, as_json: bool, **given: Any) -> None:
        command(anchors := memory.anchors.of(context), **given)
        _show(anchors, as_json)
    return run


@anchors_group.command(epilog=example("rlm anchors status", "rlm anchors status --context chat-7 --json"))
@_with_anchors
def status(anchors: AnchorManager) -> None:
    "Show where each anchor is, how far it looks, and how often it was used."


@anchors_group.command("set", epilog=example("rlm anchors set A tea", "rlm anchors set A tea --hops 3"))
@click.argument("slot")
@click.argument("id")
@click.option("--hops", type=int, help="Links a search walks from it, 1 to 3. Default: by use.")
@_with_anchors
def set_(anchors: AnchorManager, slot: str, id: str, hops: int | None) -> None:
    "Put the anchor SLOT at the memory ID, pinned or not."
    anchors.set(slot, id, hop_budget=hops)


@anchors_group.command(epilog=example("rlm anchors hops A 3", "rlm anchors hops A auto"))
@click.argument("slot")
@click.argument("links")
@_with_anchors
def hops(anchors: AnchorManager, slot: str, links: str) -> None:
    "Let searches from the anchor SLOT walk LINKS links, 1 to 3; auto: by use. Nothing else of it changes."
    anchors.budget(slot, None if links == "auto" else read_count(int(links) if links.isdecimal() else links, "links"))


@anchors_group.command(epilog=example("rlm anchors clear C"))
@click.argument("slot")
@_with_anchors
def clear(anchors: AnchorManager, slot: str) -> None:
    "Empty the anchor SLOT."
    anchors.set(slot, None)


@anchors_group.command(epilog=example("rlm anchors pin A tea"))
@click.argument("slot")
@click.argument("id", required=False)
@_with_anchors
def pin(anchors: AnchorManager, slot: str, id: str | None) -> None:
    "Keep the anchor SLOT where it is, or at the memory ID: searches and writes do not move it."
    anchors.pin(slot, id)


@anchors_group.command(epilog=example("rlm anchors unpin A"))
@click.argument("slot")
@_with_anchors
def unpin(anchors: AnchorManager, slot: str) -> None:
    "Let the anchor SLOT move again."
    anchors.unpin(slot)


@anchors_group.command("export", epilog=example("rlm anchors export anchors.json"))
@click.argument("path", type=click.Path(path_type=Path, allow_dash=True))
@with_memory(held=True)
def export_(memory: Memory, path: Path, as_json: bool) -> None:
    "Write the anchors to the file PATH; - for standard output."
    write_export(path, [anchors_line(memory.anchors)])
    report_export(path, len(SLOTS), "slots", as_json)


@anchors_group.command("import", epilog=example("rlm anchors import anchors.json"))
@click.argument("path", type=click.Path(path_type=Path))
@with_memory()
def import_(memory: Memory, path: Path, as_json: bool) -> None:
    "Set the anchors as the file PATH has them."
    import_anchors(memory.anchors, path)
    _show(memory.anchors, as_json)


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


@graph_group.command("show", epilog=example("rlm graph show tea", "rlm graph show tea --radius 2 --plot tea.png"))
@click.argument("id")
@click.option("--radius", type=int, default=1, show_default=True, help="Links to walk.")
@click.option("--beam", type=int, default=32, show_default=True, help="Memories that a hop goes on with.")
@click.option("--plot", type=click.Path(path_type=Path, dir_okay=False), help="Draw a picture into this file; needs matplotlib.")
@with_memory()
def show_links(memory: Memory, id: str, radius: int, beam: int, plot: Path | None, as_json: bool) -> None:
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
@with_memory(held=True)
def export_links(memory: Memory, path: Path, as_json: bool) -> None:
    "Write the links that the graph has made to the file PATH, as JSON Lines; - for standard output."
    count = write_export(path, graph_lines(memory.graph)) - 2  # the first line says what follows, the last how much
    report_export(path, count, "links", as_json)


@graph_group.command("import", epilog=example("rlm graph import graph.jsonl"))
@click.argument("path", type=click.Path(path_type=Path))
@with_memory()
def import_links(memory: Memory, path: Path, as_json: bool) -> None:
    "Read links from the file PATH: all of it, or nothing."
    done = import_graph(memory.graph, path)
    print_value(as_json, asdict(done), f"{done.links:,} links, {done.added:,} of them new; {done.unknown:,} of memories that are not here.")
