"""The provenance of memories, runs and strategies as RDF."""

from contextlib import closing

import click

from rlm.core.errors import InvalidInput
from rlm.service.cli.common import example, json_option, one_namespace, only_option, report_export, write_export, with_memory
from rlm.service.memory import Memory
from rlm.service.rdf_export import rdf_blocks


@click.command("export", epilog=example("rlm export --rdf memory.ttl -n default --no-text", "rlm export --rdf"))
@click.argument("target", default="-")
@click.option("--rdf", is_flag=True, help="As Turtle, in the vocabulary of PROV-O and rlm.ttl.")
@only_option
@click.option("--text/--no-text", "words", default=True, help="With what memories, tasks and answers say, or without.")
@with_memory(named=True)
@json_option
def export_command(memory: Memory, target: str, rdf: bool, only: str | None, words: bool, named: str | None, as_json: bool) -> None:
    "Write where memories come from to the file TARGET, or - for standard output: of the whole store, or of the namespace that -n names."
    if not rdf:
        raise InvalidInput(
            "There is no format given.", "Use --rdf for linked data; rlm db export writes JSON Lines that rlm can read again."
        )
    with closing(rdf_blocks(memory.backend, one_namespace(named, only), words)) as blocks:
        count = write_export(target, blocks)
    report_export(target, count, "paragraphs", as_json)
