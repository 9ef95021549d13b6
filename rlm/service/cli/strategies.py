"""Commands `rlm strategies import`, `export`, `candidates`, `report` and `train`; `rlm memory` knows them by their earlier names, which its
help does not list."""

import copy
from collections import Counter
from contextlib import ExitStack
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import click
import yaml

from rlm.core.errors import InvalidInput
from rlm.service.cli.common import Group, example, print_json, report_import, with_memory, write_export
from rlm.service.cli.memory import memory_group
from rlm.service.memory import Memory


if TYPE_CHECKING:
    from rlm.agent.learning.pipeline import CurriculumReport


@click.group("strategies", cls=Group)
def strategies_group() -> None:
    "Bring in, export, read and train strategies: how tasks were solved."


@strategies_group.command("import", epilog=example("rlm strategies import core_v1", "rlm strategies import prov_v1 --json"))
@click.argument("source")
@with_memory(makes=True)
def import_command(memory: Memory, source: str, as_json: bool) -> None:
    """Bring in the strategies of SOURCE: a pack that comes with rlm, a pack (.jsonl), or candidates (.yaml), which count as read by a
    person. Exit code 1 if some were refused."""
    from rlm.agent.memory.packs import import_items, read_strategies, shipped_pack, shipped_packs
    items = shipped_pack(source) if source in shipped_packs() else read_strategies(source)
    report = import_items(memory.strategies, items, reviewed=Path(source).suffix in (".yaml", ".yml"))
    counts = {name: len(found) for name, found in report.as_dict().items()}
    report_import(report.as_dict(), ", ".join(f"{n} {name}" for name, n in counts.items()) + ".", report.refused, as_json)


@strategies_group.command("export", epilog=example("rlm strategies export mine_v1.jsonl",
                                                "rlm strategies export prov_v2.jsonl --for prov --json",
                                                "rlm strategies export ours_v1.jsonl --learned"))
@click.argument("target", type=click.Path(path_type=Path, dir_okay=False, allow_dash=True))
@click.option("--for", "ontology", help="The ontology that the pack is for. Default: any; with --learned, the one of each strategy.")
@click.option("--learned", is_flag=True, help="Write all that was learned here, each for its ontology, and leave out what comes with rlm.")
@with_memory(held=True)
def export_command(memory: Memory, target: Path, ontology: str | None, learned: bool, as_json: bool) -> None:
    "Write the strategies that pass the gates to TARGET, a pack named like the file; - for standard output, and the pack mine_v1."
    from rlm.agent.memory.packs import export_pack, is_shipped, mark_exported
    from rlm.core.promotion import PromotionPolicy
    streamed = str(target) == "-"
    if target.suffix in (".yaml", ".yml"):
        raise InvalidInput(f"{str(target)!r} would be a file in YAML, and a pack is JSON Lines.",
                           f"Write it to {target.stem}.jsonl; to edit strategies: rlm strategies candidates --out {target.name}")
    pack, gate = "mine_v1" if streamed else target.stem, PromotionPolicy.of(memory.settings)
    done = export_pack(memory.strategies, pack, ontology, gate, learned)
    write_export(target, done.text.split("\n")[:-1])
    if not streamed:
        mark_exported(memory.strategies, done)
    if as_json:
        return print_json({"pack": done.pack, "exported": [i.memory_id for i in done.items], "refused": dict(done.refused)}, err=streamed)
    written, shipped = len(done.items), sum(map(is_shipped, done.items))
    click.echo(f"{written} strategies written to {target}, {written - shipped} learned here and {shipped} that come with rlm; "
               f"{len(done.refused)} left out.", err=streamed)
    if learned and written:
        each = Counter(i.ontology or "any ontology" for i in done.items)
        click.echo("  " + ", ".join(f"{n} for {name}" for name, n in sorted(each.items())), err=streamed)
    for item in (i for i in memory.strategies.items() if i.memory_id in done.refused):
        click.echo(f"  {item.memory_id} {item.title}: {done.refused[item.memory_id]}", err=streamed)


@strategies_group.command("candidates", epilog=example("rlm strategies candidates", "rlm strategies candidates --out candidates.yaml"))
@click.option("--out", type=click.Path(path_type=Path, dir_okay=False, allow_dash=True), default="-",
              help="A file instead of the standard output.")
@click.option("--pack", default="mine_v1", show_default=True, help="The name of the pack they are meant for.")
@click.option("--for", "ontology", help="The ontology that the pack is for. Default: for any.")
@with_memory()
def candidates_command(memory: Memory, out: Path, pack: str, ontology: str | None, as_json: bool) -> None:
    "Print what was learned as YAML to read and edit; what the gates refuse has 'keep: false'."
    from rlm.agent.memory.packs import candidates
    from rlm.core.promotion import PromotionPolicy
    items = [i for i in memory.strategies.items() if i.provenance.get("source") != "pack"]
    text = candidates(items, pack, ontology, PromotionPolicy.of(memory.settings))
    if not as_json or str(out) != "-":
        write_export(out, text.split("\n")[:-1])
    if as_json:
        print_json(yaml.safe_load(text)["strategies"])
    elif str(out) != "-":
        click.echo(f"{len(items)} candidates written to {out}. Edit them, then: rlm strategies import {out}")


@strategies_group.command("report", epilog=example("rlm strategies report", "rlm strategies report --json"))
@click.option("--most", type=click.IntRange(min=1), default=20, show_default=True, help="Rows of each answer.")
@with_memory()
def report_command(memory: Memory, most: int, as_json: bool) -> None:
    "Report which strategies go with shorter runs, which mislead, and which tasks taught what is used elsewhere."
    from rlm.agent.memory.strategy import memory_report, report_text
    report = memory_report(memory.strategies, most)
    print_json(report) if as_json else click.echo(report_text(report))


def _show_training(done: "CurriculumReport") -> None:
    "Print a table of the passes, and which strategies the gate promoted."
    click.echo(repr(done) if done.results else "Nothing was left to be asked.")
    if done.curriculum == "queue":
        for question, verdict in done.as_dict()["tasks"].items():
            click.echo(f"{verdict}: {question}")
        if done.skipped:
            click.echo(f"{done.skipped} not asked: the file of the ontology is gone.")
    for id, status in done.promoted.items():
        click.echo(f"{id} is now {status}.")


@strategies_group.command("train", epilog=example("rlm strategies train skos_v1.yaml --db trained.db",
                                              "rlm strategies train --curriculum skos_v1.yaml --db trained.db --passes 2",
                                              "rlm strategies train --queue",
                                              "rlm strategies train skos_v1.yaml --db trained.db --control --no-packs --json"))
@click.argument("file", required=False, type=click.Path(path_type=Path, dir_okay=False))
@click.option("--curriculum", type=click.Path(path_type=Path, dir_okay=False), help="The curriculum, instead of as the argument.")
@click.option("--queue", is_flag=True, help="Ask again what was refused or judged wrong, longer and in two ways, instead of a curriculum.")
@click.option("--passes", type=click.IntRange(min=1), default=1, show_default=True, help="How often each question is to have been asked.")
@click.option("--control", is_flag=True, help="Also ask without memory, to see what it is worth.")
@click.option("--no-packs", is_flag=True, help="Start without the strategies that come with rlm.")
@click.option("--model", help="case-based, openai:NAME, anthropic:NAME or scripted:FILE. Default: the setting model.")
@click.option("--memory-k", type=click.IntRange(min=0),
              help="Experiences a run is given. Default: 3 for case-based, 1 for models that read.")
@click.option("--log-dir", type=click.Path(path_type=Path, file_okay=False), help="Where the logs of the runs go. Default: none are kept.")
@with_memory(makes=True)
def train_command(memory: Memory, file: Path | None, curriculum: Path | None, queue: bool, passes: int, control: bool, no_packs: bool,
                  model: str | None, memory_k: int | None, log_dir: Path | None, as_json: bool) -> None:
    "Ask the questions of FILE, a curriculum in YAML, and learn from the answers. Interrupted training goes on where it stopped."
    from rlm.agent.learning.pipeline import read_curriculum, train, train_queue
    from rlm.agent.models import open_model
    from rlm.agent.ontology import OntologyContext, setup_ontology_context
    from rlm.agent.memory.packs import ensure_packs
    from rlm.agent.memory.strategy import StoredRun
    from rlm.agent.runner import setting_for
    from rlm.core.promotion import PromotionPolicy
    chosen = curriculum or file
    if (chosen is None) is not queue or (curriculum and file) or (queue and (control or passes > 1)):
        raise click.UsageError("Name one curriculum (rlm strategies train --curriculum FILE) or --queue without --control and --passes.")
    backend, gate = memory.strategies, PromotionPolicy.of(memory.settings)
    setting = setting_for(open_model(model, memory.settings), memory_k, True, log_dir, {"clock": memory.clock})
    with ExitStack() as stack:
        @cache
        def ontology(path: Path, name: str | None) -> OntologyContext:
            if not no_packs and name:
                ensure_packs(backend, name)
            return stack.enter_context(setup_ontology_context(path, name=name))

        def opened(run: StoredRun) -> OntologyContext | None:
            path = Path(run.ontology_path or "")
            return ontology(path, run.ontology_name) if path.is_file() else None
        if chosen is None:
            done = train_queue(backend, setting, opened, gate=gate)
        else:
            lessons = read_curriculum(chosen)
            done = train(lessons, backend, setting, ontology(lessons.path, lessons.ontology), passes=passes, control=control, gate=gate)
    print_json(done.as_dict()) if as_json else _show_training(done)


for _command in strategies_group.commands.values():
    _earlier = copy.copy(_command)
    _earlier.hidden = True
    memory_group.add_command(_earlier)
