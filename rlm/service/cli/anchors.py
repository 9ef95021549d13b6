"""Look at the anchors, set, pin and unpin them, and carry them to another store."""

from pathlib import Path

import click

from rlm.recall.anchors import AnchorManager
from rlm.recall.snapshots import anchors_dict, anchors_line, import_anchors
from rlm.service.cli.common import Group, context_option, example, print_rows, report_export, with_memory, write_export
from rlm.service.memory import Memory
from rlm.store.records import read_count
from rlm.store.sqlite.slots import SLOTS


@click.group("anchors", cls=Group)
def anchors_group() -> None:
    "Look at the anchors A, B and C, and set, pin and carry them."


def _show(anchors: AnchorManager, as_json: bool) -> None:
    headers, rows = anchors.table()
    print_rows(as_json, anchors_dict(anchors), rows, headers)


@anchors_group.command(epilog=example("rlm anchors status", "rlm anchors status --context chat-7 --json"))
@context_option
@with_memory()
def status(memory: Memory, context: str | None, as_json: bool) -> None:
    "Show where each anchor is, how far it looks, and how often it was used."
    _show(memory.anchors.of(context), as_json)


@anchors_group.command("set", epilog=example("rlm anchors set A tea", "rlm anchors set A tea --hops 3"))
@click.argument("slot")
@click.argument("id")
@click.option("--hops", type=int, help="Links a search walks from it, 1 to 3. Default: by use.")
@context_option
@with_memory()
def set_(memory: Memory, slot: str, id: str, hops: int | None, context: str | None, as_json: bool) -> None:
    "Put the anchor SLOT at the memory ID, pinned or not."
    anchors = memory.anchors.of(context)
    anchors.set(slot, id, hop_budget=hops)
    _show(anchors, as_json)


@anchors_group.command(epilog=example("rlm anchors hops A 3", "rlm anchors hops A auto"))
@click.argument("slot")
@click.argument("links")
@context_option
@with_memory()
def hops(memory: Memory, slot: str, links: str, context: str | None, as_json: bool) -> None:
    "Let searches from the anchor SLOT walk LINKS links, 1 to 3; auto: by use. Nothing else of it changes."
    anchors = memory.anchors.of(context)
    anchors.budget(slot, None if links == "auto" else read_count(int(links) if links.isdecimal() else links, "links"))
    _show(anchors, as_json)


@anchors_group.command(epilog=example("rlm anchors clear C"))
@click.argument("slot")
@context_option
@with_memory()
def clear(memory: Memory, slot: str, context: str | None, as_json: bool) -> None:
    "Empty the anchor SLOT."
    anchors = memory.anchors.of(context)
    anchors.set(slot, None)
    _show(anchors, as_json)


@anchors_group.command(epilog=example("rlm anchors pin A tea"))
@click.argument("slot")
@click.argument("id", required=False)
@context_option
@with_memory()
def pin(memory: Memory, slot: str, id: str | None, context: str | None, as_json: bool) -> None:
    "Keep the anchor SLOT where it is, or at the memory ID: searches and writes do not move it."
    anchors = memory.anchors.of(context)
    anchors.pin(slot, id)
    _show(anchors, as_json)


@anchors_group.command(epilog=example("rlm anchors unpin A"))
@click.argument("slot")
@context_option
@with_memory()
def unpin(memory: Memory, slot: str, context: str | None, as_json: bool) -> None:
    "Let the anchor SLOT move again."
    anchors = memory.anchors.of(context)
    anchors.unpin(slot)
    _show(anchors, as_json)


@anchors_group.command("export", epilog=example("rlm anchors export anchors.json"))
@click.argument("path", type=click.Path(path_type=Path, allow_dash=True))
@with_memory()
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
