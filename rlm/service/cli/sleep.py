"""The command over the nights of a namespace: `rlm sleep`."""

import click
from tqdm import tqdm

from rlm.core.errors import InvalidInput
from rlm.service.cli.common import example, json_option, print_json, print_table, with_memory
from rlm.service.memory import Memory


def show_nights(memory: Memory,  # open namespace
                as_json: bool,   # print JSON
                ) -> None:
    "Print the nights of a namespace, the newest first."
    found = memory.companion.nights()
    if as_json:
        print_json(found)
    elif not found:
        click.echo("There was no night yet.")
    else:
        rows = [(n["night"], n["began"][:16].replace("T", " "), "yes" if n["ended"] else "cut short",
                 ", ".join(f"{count} {kind}" for kind, count in n["counts"].items() if count)) for n in found]
        print_table(rows, ["night", "began", "ended", "changes"])


@click.command("sleep", epilog=example("rlm sleep --dry-run", "rlm sleep --keep --json", "rlm sleep --nights"))
@click.option("--dry-run", is_flag=True, help="Only tell what would be done.")
@click.option("--keep", is_flag=True, help="Forget nothing: merge what says the same, and store facts that are missing.")
@click.option("--undo", "night", help="Take back what this night did, except what it deleted for good.")
@click.option("--nights", is_flag=True, help="List the nights so far.")
@with_memory()
@json_option
def sleep_command(memory: Memory, dry_run: bool, keep: bool, night: str | None, nights: bool, as_json: bool) -> None:
    "Merge memories that say the same, put away what is not used, save what was learned. What one night did can be undone."
    if sum((dry_run or keep, night is not None, nights)) > 1:
        raise InvalidInput("One run sleeps, undoes a night or lists them.", "Give one of --dry-run, --undo and --nights.")
    if nights:
        return show_nights(memory, as_json)
    if night is not None:
        undone = memory.companion.undo_sleep(night)
        return print_json(undone.as_dict()) if as_json else click.echo(str(undone))
    with tqdm(desc="sleeping", disable=None, leave=False) as bar:
        def progress(done: int, planned: int) -> None:
            bar.total = planned
            bar.update(done - bar.n)
        report = memory.companion.sleep(dry_run, not keep, progress=progress)
    if as_json:
        return print_json(report.as_dict())
    click.echo(str(report))
    if report.changes and not dry_run:
        click.echo(f"To take it back: rlm sleep --undo {report.night}")
    return None
