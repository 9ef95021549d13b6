"""List the namespaces of a store, erase one whole, and erase what was deleted in it long ago."""

from dataclasses import asdict
from datetime import timedelta

import click

from rlm.core.errors import NotFound
from rlm.core.text import valid_label
from rlm.service.cli.common import Group, example, json_option, print_json, print_rows, with_memory
from rlm.service.memory import Memory


@click.group("namespaces", cls=Group)
def namespaces_group() -> None:
    "List the namespaces of a store, and erase one."


@namespaces_group.command("list", epilog=example("rlm namespaces list", "rlm namespaces list --json"))
@with_memory(whole="The list of namespaces")
@json_option
def list_(memory: Memory, as_json: bool) -> None:
    "Show each namespace with its number of memories, of deleted ones whose text is kept, and of runs."
    found = [asdict(n) for n in memory.backend.namespaces()]
    print_rows(as_json, found, [list(row.values()) for row in found], ["namespace", "memories", "deleted", "runs", "last event"])


def known_namespace(memory: Memory,  # memory whose store is looked into
                    name: str,       # name of a namespace, as it was typed
                    ) -> str:        # the same, in its stored form
    "Return a namespace of the store. Raises `NotFound`, `InvalidInput`."
    found = valid_label(name, "namespace")
    if found not in (names := [n.name for n in memory.backend.namespaces()]):
        raise NotFound(f"There is nothing in namespace {found!r}.", f"The store has: {', '.join(names) or 'none'}.")
    return found


@namespaces_group.command(epilog=example("rlm namespaces erase agent-7 --yes"))
@click.argument("name")
@click.option("--yes", is_flag=True, help="Don't ask.")
@with_memory(whole="The erasure of a namespace, whose name is the argument,")
@json_option
def erase(memory: Memory, name: str, yes: bool, as_json: bool) -> None:
    "Remove the namespace NAME out of the file: memories, history, runs, attention and index files."
    found = known_namespace(memory, name)
    if not yes:
        click.confirm(f"Erase the namespace {found} for good?", abort=True, err=True)
    report_erased(memory, memory.backend.erase_namespace(found, memory.clock.now()), as_json)


@namespaces_group.command(epilog=example("rlm namespaces purge default --days 30"))
@click.argument("name")
@click.option("--days", type=click.FloatRange(min=0), required=True, help="How long ago the deletion was, at least.")
@with_memory(whole="The purge of a namespace, whose name is the argument,")
@json_option
def purge(memory: Memory, name: str, days: float, as_json: bool) -> None:
    "Erase the memories of the namespace NAME that were deleted long ago; their text was kept as history."
    now = memory.clock.now()
    report_erased(memory, memory.backend.purge(known_namespace(memory, name), now - timedelta(days=min(days, 36500)), now), as_json)


def report_erased(memory: Memory,  # memory whose store was erased from
                  count: int,      # number of memories erased
                  as_json: bool,   # whether JSON is wanted
                  ) -> None:
    "Print how many memories were erased, and which copies may still hold their text."
    copies = list(map(str, memory.copies()))
    if as_json:
        return print_json({"erased": count, "copies": copies})
    click.echo(f"{count:,} {'memory' if count == 1 else 'memories'} erased.")
    for copy in copies:
        click.echo(f"  A copy made earlier may still hold the text: {copy}")
