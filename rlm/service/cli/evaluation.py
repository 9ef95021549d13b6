"""`rlm eval`: recall, rank and misses on labelled questions of one's own."""

import sys
from pathlib import Path

import click

from rlm.service.cli.common import example, json_option, print_json, with_memory
from rlm.service.memory import Memory


@click.command("eval", epilog=example(
    "rlm eval questions.jsonl", "rlm eval questions.jsonl -k 5 --min-recall 0.5", "rlm eval questions.jsonl --json"))
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False))
@click.option("-k", type=click.IntRange(1, 100), default=10, show_default=True, help="Hits that count; what is below them is a miss.")
@click.option("--min-recall", type=click.FloatRange(0, 1), help="Exit with code 1 if recall among the first k is less.")
@with_memory()
@json_option
def eval_command(memory: Memory, file: Path, k: int, min_recall: float | None, as_json: bool) -> None:
    """Ask the labelled questions of FILE: how many are answered, why others are not.

    One JSON object a line: {"query": "When is the dentist?", "expect": ["dentist"]}. What is expected is an id, or words that the memory
    holds; an empty list says that nothing in the store answers. Nothing is written."""
    from rlm.service.evaluation import evaluate, read_expected
    found = evaluate(memory, read_expected(file), k)
    print_json(found.as_dict()) if as_json else click.echo(found)
    reached = found.recall()
    if min_recall is not None and (reached is None or reached < min_recall):
        shown = "unknown" if reached is None else f"{reached:.2f}"
        click.echo(f"Recall among the first {k} is {shown}, less than {min_recall:g}.", err=True)
        sys.exit(1)
