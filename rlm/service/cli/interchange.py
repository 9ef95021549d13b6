"""Commands `rlm import` and `rlm export`: memories of other programs, and memories for other programs, people and linked data."""

import json
import re
import sys
from collections.abc import Generator
from contextlib import closing
from pathlib import Path, PurePath

import click

from rlm.core.errors import InvalidInput, NotFound
from rlm.service.cli.common import (example, one_namespace, only_option, print_json, print_value, report_export, report_import, with_memory,
                                    write_export)
from rlm.service.export_files import export_files, text_of
from rlm.service.importers import READERS_OF, import_export
from rlm.service.interchange import markdown_lines, pam_lines
from rlm.service.kakaotalk import is_kakaotalk
from rlm.service.memory import Memory
from rlm.service.rdf_export import rdf_blocks
from rlm.store.transfer.export import FORMAT, export_lines
from rlm.store.transfer.importer import read_lines


HEAD = 200_000  # bytes at the beginning of a file that show its format
MARKS = (("pam", '"portable-ai-memory"'), ("chatgpt", '"mapping"'), ("claude", '"chat_messages"'), ("gemini", '"safeHtmlItem"'),
         ("mem0", '"memory"'), ("langmem", '"namespace"'))
PREFERRED = ("chatgpt", "claude", "gemini", "kakaotalk", "markdown", "pam", "mem0", "langmem", "jsonl", "csv")  # most telling first
SUFFIXES = re.compile(r"(?i)\.(?:jsonl?|md|markdown|txt|csv|tsv)$")  # names of files that are read


def format_of(path: Path,  # file, folder or zip archive that a person downloaded
              ) -> str:
    "Return the format of an export, by the names in it and their beginnings. Raises `NotFound`, `InvalidInput` where they do not tell."
    found = set[str]()
    try:
        for name, read in export_files(path, SUFFIXES):
            suffix, beginning = PurePath(name).suffix.lower(), text_of(read(HEAD))
            if suffix == ".json":
                found.update([next((format for format, mark in MARKS if mark in beginning), "")])
            elif suffix in (".txt", ".csv", ".tsv"):
                found.update(["kakaotalk"] if is_kakaotalk(beginning) else [] if suffix == ".txt" else ["csv"])
            elif suffix in (".jsonl", ".md", ".markdown"):
                found.add("jsonl" if suffix == ".jsonl" else "markdown")
    except NotFound:  # nothing in it is called like an export
        if not path.exists():
            raise
    if told := next((format for format in PREFERRED if format in found), ""):
        return told
    raise InvalidInput(f"It is not clear which program wrote {str(path)!r}.",
                       f"Say it: --format {', '.join(READERS_OF)}. Sets such as LoCoMo and BEAM are read by: rlm bench recall")


def _is_store(path: Path) -> bool:
    "Return whether a file is what `rlm export` writes of a whole store."
    with open(path, encoding="utf-8-sig", errors="replace") as file:
        try:
            head = json.loads(file.readline())
        except ValueError:
            return False
    return isinstance(head, dict) and head.get("format") == FORMAT


def _import_store(memory: Memory, path: Path, named: str | None, as_json: bool, dry_run: bool = False) -> None:
    "Read an export of rlm itself: all of it, or nothing."
    with open(path, encoding="utf-8-sig") as lines:
        if dry_run:
            ids = dict[str, list[str]]()
            for row in read_lines(lines)[1]:
                if row.get("table") == "memories" and named in (None, row["namespace"]):
                    ids.setdefault(row["namespace"], []).append(row["id"])
            total = sum(map(len, ids.values()))
            here = sum(len(memory.backend.get(some, name)) for name, some in ids.items())
            told = {"format": FORMAT, "added": total - here, "present": here, "dry_run": True}
            return print_value(as_json, told, f"{total - here:,} memories would be added, {here:,} are there already. Nothing is stored.")
        report = memory.admin.import_lines(lines, named)
    told = {"format": FORMAT, "added": report.added, "present": report.unchanged, "left_out": report.left_out,
            "refused": dict(report.refused)}
    line = f"{report.added:,} added, {report.unchanged:,} there already, {len(report.refused):,} refused."
    report_import(told, line, report.refused, as_json)


@click.command("import", epilog=example("rlm import chatgpt conversations.json", "rlm import claude claude-export.zip --json",
                                        "rlm import notes", "rlm import facts.jsonl --format jsonl -n work"))
@click.argument("given", nargs=-1, required=True, metavar="[FORMAT] PATH")
@click.option("--format", "named_format", type=click.Choice(list(READERS_OF)), help="The program that wrote it, if the file does not tell.")
@click.option("--later", is_flag=True, help="Make no vectors now: `rlm serve`, `rlm mcp` or `rlm reembed --missing` makes them.")
@click.option("--user", help="The user_id whose memories are read, of mem0's file with several users.")
@click.option("--facts", is_flag=True, help="Read conversations for what people say of themselves, and propose it: `rlm review waiting`.")
@click.option("--dry-run", is_flag=True, help="Store nothing: say what would come in, and show the first memories.")
@with_memory(makes=True, named=True)
def import_command(memory: Memory, given: tuple[str, ...], named_format: str | None, later: bool, user: str | None, facts: bool,
                   dry_run: bool, as_json: bool, named: str | None) -> None:
    """Read what another program remembers, or rlm itself: its export PATH.

    [FORMAT] PATH: a file, a folder or a zip archive as it was downloaded, and before it, or with --format, the program that wrote it. A
    second time it adds what is new; what was deleted here stays deleted. A file that can't be read is named, the others are stored, and the
    exit code is 1."""
    if len(given) > 2 or (len(given) == 2 and named_format):
        raise InvalidInput(f"There are too many words: {' '.join(given)}.", "Give one PATH, and one format.")
    path = Path(given[-1])
    format = given[0] if len(given) == 2 else named_format or format_of(path)
    if format == "jsonl" and path.is_file() and _is_store(path):
        _import_store(memory, path, named, as_json, dry_run)
        return
    report = import_export(memory, path, format, embed=False, facts=facts, user=user, dry_run=dry_run)
    if report.added and not (later or dry_run) and memory.embeddings.model() is not None:
        click.echo(f"{report.added:,} memories are stored, and found by their words. Ctrl-C leaves what has no vector for later.", err=True)
        try:
            memory.embeddings.embed_missing(memory.ctx.namespace, memory.clock)
        except KeyboardInterrupt:
            click.echo("The rest gets its vectors by `rlm reembed --missing`, or beside the work of `rlm serve` and `rlm mcp`.", err=True)
    if as_json:
        print_json(report.as_dict() | ({"dry_run": True} if dry_run else {}))
    else:
        click.echo("\n".join([repr(report), *report.examples, *(["Nothing is stored: this was a dry run."] if dry_run else [])]))
        lines = [f"refused {id}: {why}" for id, why in report.refused.items() if id not in report.unread]
        more = [f"and {len(lines) - 10:,} more; --json names all"] if len(lines) > 10 else []
        for line in [*lines[:10], *more, *(f"could not be read: {name}: {report.refused[name]}" for name in report.unread)]:
            click.echo(line, err=True)
    if report.unread:
        sys.exit(1)


UNITS = {"jsonl": "lines", "pam": "lines", "markdown": "lines", "rdf": "paragraphs"}  # format → what is counted
ENDINGS = {".jsonl": "jsonl", ".json": "pam", ".md": "markdown", ".ttl": "rdf"}  # ending of a file → format


def _export_parts(memory: Memory, format: str, namespace: str | None, words: bool) -> Generator[str, None, None]:
    "Return the lines of an export, or its paragraphs."
    if format == "jsonl":
        return export_lines(memory.backend, memory.clock.now(), namespace)
    if format == "rdf":
        return rdf_blocks(memory.backend, namespace, words)
    here = memory if namespace is None else memory.namespace(namespace)
    return pam_lines(here) if format == "pam" else markdown_lines(here)


@click.command("export", epilog=example("rlm export memories.jsonl", "rlm export --format markdown",
                                        "rlm export memories.json --format pam", "rlm export --rdf memory.ttl -n default --no-text"))
@click.argument("target", default="-")
@click.option("--format", "format", type=click.Choice(list(UNITS)), help="jsonl: all of the store, for rlm. pam: what is said and known, "
              "for other programs (Portable AI Memory). markdown: the same for people. rdf: provenance. Default: by TARGET's ending.")
@click.option("--rdf", is_flag=True, help="The same as --format rdf.")
@only_option
@click.option("--text/--no-text", "words", default=True, help="In rdf with what memories, tasks and answers say, or without.")
@with_memory(named=True, held=True)
def export_command(memory: Memory, target: str, format: str | None, rdf: bool, only: str | None, words: bool, named: str | None,
                   as_json: bool) -> None:
    """Write what is stored to the file TARGET: for rlm, other programs or people.

    TARGET may be - for standard output. jsonl (the lines of `rlm db export`) and rdf are of the whole store, or of the namespace
    that -n names; pam and markdown are of one namespace."""
    chosen = "rdf" if rdf and format is None else format or ENDINGS.get(PurePath(target).suffix.lower())
    if chosen is None or (rdf and chosen != "rdf"):
        raise InvalidInput("There is no format given." if chosen is None else f"--rdf and --format {chosen} say two things.",
                           "Give one with --format: jsonl for rlm, pam for other programs, markdown for people, rdf for linked data.")
    with closing(_export_parts(memory, chosen, one_namespace(named, only), words)) as parts:
        count = write_export(target, parts)
    report_export(target, count, UNITS[chosen], as_json)
