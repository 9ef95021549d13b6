"""Commands over labelled questions of one's own: `rlm eval` counts the answers, `rlm train-ranker` learns from them how to rank."""

import sys
from pathlib import Path

import click
from tqdm import tqdm

from rlm.core.errors import InvalidInput
from rlm.search.ranker import TrainingExample, TrainingReport, cross_validate, train
from rlm.search.training_examples import LabelledQuestion, forget_rankers, read_labelled, recorded_questions, save_ranker, training_examples
from rlm.service.cli.common import example, print_json, with_memory
from rlm.service.memory import Memory


@click.command("eval", epilog=example(
    "rlm eval questions.jsonl", "rlm eval questions.jsonl -k 5 --min-recall 0.5", "rlm eval questions.jsonl --json"))
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False))
@click.option("-k", type=click.IntRange(1, 100), default=10, show_default=True, help="Hits that count; what is below them is a miss.")
@click.option("--min-recall", type=click.FloatRange(0, 1), help="Exit with code 1 if recall among the first k is less.")
@with_memory()
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


FEWEST = 20  # questions to learn from


def _collect(memory: Memory, labelled: list[LabelledQuestion], source: str) -> list[TrainingExample]:
    "What can be learned from these questions, those left out whose answers a search does not see. Raises `InvalidInput` at too few."
    asked = ((memory.query(q.query), q) for q in tqdm(labelled, "asking", disable=None, leave=False))
    found = list(training_examples(memory.ctx.search.searcher, asked))
    if len(found) < FEWEST or len({e.group for e in found}) < 2:
        unseen = len(labelled) - len(found)
        beside = f" Of {unseen} more, no answer is among what a search looks at: check their ids, and the namespace." if unseen else ""
        raise InvalidInput(f"There are {len(found)} questions to learn from in {source}; it takes {FEWEST}, in two groups or more.{beside}",
                           "Write them to a file for --questions, or tell what helped: rlm memory used ID --query … --helped 1.")
    return found


def _refuse_trees(ctx: click.Context, param: click.Parameter, given: bool) -> None:
    "Say what stands for `--trees`, an option of the first edition."
    if given:
        raise click.UsageError("--trees went with LightGBM: a ranker is a set of weights now. Leave --trees out to learn them.")


@click.command("train-ranker", epilog=example("rlm train-ranker --questions labelled.jsonl", "rlm train-ranker --forget"))
@click.option("--questions", type=click.Path(path_type=Path, dir_okay=False),
              help='JSON Lines: {"query": …, "relevant": [ids], "group": …}. Default: what `rlm memory used` was told.')
@click.option("--forget", is_flag=True, help="Remove what was learned: back to the usual mix.")
@click.option("--trees", is_flag=True, hidden=True, expose_value=False, callback=_refuse_trees,
              help="Gone with LightGBM: a ranker is a set of weights.")
@with_memory()
def train_ranker_command(memory: Memory, questions: Path | None, forget: bool, as_json: bool) -> None:
    "Learn how to rank from questions with known answers. Kept only if it beats the usual mix on questions held out, beyond chance."
    if forget:
        count = forget_rankers(memory.backend, memory.ctx.namespace, memory.clock)
        print_json({"forgotten": count}) if as_json else click.echo(f"{count} forgotten; searches use the usual mix.")
        return
    source = questions.name if questions else "recorded use"
    labelled = read_labelled(questions) if questions else recorded_questions(memory.backend, memory.ctx.namespace)
    found = _collect(memory, labelled, source)
    unseen = len(labelled) - len(found)
    figures = cross_validate(found)
    better = figures["least gain"] > 0
    training = TrainingReport(source, len(found), f"{memory.clock.now():%Y-%m-%d}", figures)
    if better:
        save_ranker(memory.backend, memory.ctx.namespace, train(found, training), memory.clock)
    if as_json:
        print_json({"kept": better, "questions": len(found), "left_out": unseen, "held_out": figures, "training": str(training)})
    else:
        said = "Searches use it from now on." if better else "That is not better than the usual mix beyond chance, so the mix stays in use."
        shown = ", ".join(f"{name} {value:.3f}" for name, value in figures.items())
        beside = f" Left out: {unseen} more, of which no search sees an answer." if unseen else ""
        click.echo(f"On {len(found)} questions, held out in turn: {shown}.{beside} {said}")
