"""What the store holds, in formats for rlm, for other programs, for people and for linked data."""

from collections.abc import Generator
from contextlib import closing
from pathlib import PurePath

import click

from rlm.core.errors import InvalidInput
from rlm.service.cli.common import example, json_option, one_namespace, only_option, report_export, write_export, with_memory
from rlm.service.interchange import markdown_lines, pam_lines
from rlm.service.memory import Memory
from rlm.service.rdf_export import rdf_blocks
from rlm.store.transfer.export import export_lines

UNITS = {"jsonl": "lines", "pam": "lines", "markdown": "lines", "rdf": "paragraphs"}  # format → what is counted
ENDINGS = {".jsonl": "jsonl", ".json": "pam", ".md": "markdown", ".ttl": "rdf"}  # ending of a file → format


def export_parts(memory: Memory,         # an open store
                 format: str,            # one of `UNITS`
                 namespace: str | None,  # the one namespace that is wanted; None: not named
                 words: bool,            # with texts, where the format can do without
                 ) -> Generator[str, None, None]:
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
@with_memory(named=True)
@json_option
def export_command(memory: Memory, target: str, format: str | None, rdf: bool, only: str | None, words: bool, named: str | None,
                   as_json: bool) -> None:
    """Write what is stored to the file TARGET: for rlm, other programs or people.

    TARGET may be - for standard output. jsonl and rdf are of the whole store, or of the namespace that -n names; pam and markdown are
    of one namespace."""
    chosen = "rdf" if rdf and format is None else format or ENDINGS.get(PurePath(target).suffix.lower())
    if chosen is None or (rdf and chosen != "rdf"):
        raise InvalidInput("There is no format given." if chosen is None else f"--rdf and --format {chosen} say two things.",
                           "Give one with --format: jsonl for rlm, pam for other programs, markdown for people, rdf for linked data.")
    with closing(export_parts(memory, chosen, one_namespace(named, only), words)) as parts:
        count = write_export(target, parts)
    report_export(target, count, UNITS[chosen], as_json)
