"""`rlm train-ranker`: learn from questions how this store's memories are best ranked."""

from pathlib import Path

import click
from tqdm import tqdm

from rlm.core.errors import InvalidInput
from rlm.service.cli.common import example, json_option, print_json, with_memory
from rlm.service.memory import Memory
from rlm.search.training_examples import LabelledQuestion, forget_rankers, read_labelled, recorded_questions, save_ranker, training_examples
from rlm.search.ranker import TrainingExample, TrainingReport, cross_validate, train


FEWEST = 20  # questions to learn from


def collect(memory: Memory,                # the store
            labelled: list[LabelledQuestion],      # questions with known answers
            source: str,                   # where they come from
            ) -> list[TrainingExample]:
    "What can be learned from these questions, those left out whose answers a search does not see. Raises `InvalidInput` at too few."
    asked = ((memory.query(q.query), q) for q in tqdm(labelled, "asking", disable=None, leave=False))
    found = list(training_examples(memory.ctx.search.searcher, asked))
    if len(found) < FEWEST or len({e.group for e in found}) < 2:
        unseen = len(labelled) - len(found)
        beside = f" Of {unseen} more, no answer is among what a search looks at: check their ids, and the namespace." if unseen else ""
        raise InvalidInput(f"There are {len(found)} questions to learn from in {source}; it takes {FEWEST}, in two groups or more.{beside}",
                           "Write them to a file for --questions, or tell what helped: rlm memory used ID --query … --helped 1.")
    return found


@click.command("train-ranker", epilog=example("rlm train-ranker --questions labelled.jsonl", "rlm train-ranker --forget"))
@click.option("--questions", type=click.Path(path_type=Path, dir_okay=False),
              help='JSON Lines: {"query": …, "relevant": [ids], "group": …}. Default: what `rlm memory used` was told.')
@click.option("--forget", is_flag=True, help="Remove what was learned: back to the usual mix.")
@with_memory()
@json_option
def train_ranker_command(memory: Memory, questions: Path | None, forget: bool, as_json: bool) -> None:
    "Learn how to rank from questions with known answers. Kept only if it does better than the usual mix on questions held out."
    if forget:
        count = forget_rankers(memory.backend, memory.ctx.namespace, memory.clock)
        print_json({"forgotten": count}) if as_json else click.echo(f"{count} forgotten; searches use the usual mix.")
        return
    source = questions.name if questions else "recorded use"
    labelled = read_labelled(questions) if questions else recorded_questions(memory.backend, memory.ctx.namespace)
    found = collect(memory, labelled, source)
    unseen = len(labelled) - len(found)
    figures = cross_validate(found)
    better = figures["R@10"] + figures["MRR"] > figures["R@10 of the mix"] + figures["MRR of the mix"]
    training = TrainingReport(source, len(found), f"{memory.clock.now():%Y-%m-%d}", figures)
    if better:
        save_ranker(memory.backend, memory.ctx.namespace, train(found, training), memory.clock)
    if as_json:
        print_json({"kept": better, "questions": len(found), "left_out": unseen, "held_out": figures, "training": str(training)})
    else:
        said = "Searches use it from now on." if better else "That is no better than the usual mix, which stays in use."
        shown = ", ".join(f"{name} {value:.3f}" for name, value in figures.items())
        beside = f" Left out: {unseen} more, of which no search sees an answer." if unseen else ""
        click.echo(f"On {len(found)} questions, held out in turn: {shown}.{beside} {said}")
