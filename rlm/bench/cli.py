"""`rlm bench …`: each benchmark as a command that prints a table or writes the JSON that its chapter plots.

All commands have the same options. The root command loads this module for its own commands only: nothing else in the package imports a
benchmark. A benchmark that missed a target ends with exit code 1, so that a script notices; the misses of a quick run are shown only.
"""

import tempfile
from dataclasses import asdict
from pathlib import Path

import click

from . import companion as companions, durability as durable, federation as federated, feedback as feedbacks
from . import graph as graphs, interfaces as served, korean as koreans, local as attended, mixed as lived, ontology as ontologies
from . import postgres as postgresql, recall as recalled, rules as ruled, speed as speeds
from . import supersession as superseding
from .public_sets import Conversation, RecallQuestion
from .report import Report, ready, write_report
from .reproduction import QUICK_RUNS, agreement_table, reproduce
from .serve import CLIENTS
from ..core.errors import InvalidInput
from ..service.cli.common import Group, example, json_option, options, print_json, terminal_width
from ..store.records import read_count


@click.group(cls=Group)
def bench() -> None:
    "Run benchmarks: each prints a table, or writes the JSON that its chapter plots."


def _tried(ctx: click.Context, option: click.Parameter, out: Path | None) -> Path | None:
    "A file that can be written, or the run would be for nothing."
    if out:
        ready(out)
    return out


out_option = click.option("--out", type=click.Path(path_type=Path, dir_okay=False), callback=_tried,
                          help="Write the report to this JSON file; print no table.")
bench_options = options(
    click.option("--quick", is_flag=True, help="Small sizes: a look, not a result."),
    click.option("--seed", type=int, default=0, show_default=True, help="Seed of everything random."),
    out_option,
    json_option)

public_sets = options(
    click.option("--locomo", type=click.Path(path_type=Path, exists=True),
                 help="LoCoMo: locomo10.json, its zip, or conv-*.json in a folder."),
    click.option("--beam", type=click.Path(path_type=Path, exists=True, file_okay=False),
                 help="BEAM: a folder such as chats/100K, or of chat-*.json."),
    click.option("--realmem", type=click.Path(path_type=Path, exists=True, file_okay=False),
                 help="RealMem: a folder of NAME_dialogues_256k.json."))


def deliver(report: Report,     # results of a benchmark
            out: Path | None,   # file to write it to; None: none
            as_json: bool,      # print JSON
            strict: bool,       # exit with 1 when a target was missed
            ) -> None:
    "Print or write a report, and name the baselines that do not run here and the rows that missed their target."
    if out:
        write_report(report, out)
    click.echo(report.json() if as_json else f"Written to {out}." if out else repr(report))
    for name, why in report.parameters.get("skipped", {}).items():
        click.echo(f"skipped: {name}: {why}", err=True)
    for row in report.missed:
        click.echo(f"missed: {row.name}: {row.value:g} (target {row.target:g}) {row.unit}".rstrip(), err=True)
    if report.missed and strict:
        raise click.exceptions.Exit(1)


@bench.command(epilog=example("rlm bench durability --quick --out durability.json"))
@bench_options
def durability(quick: bool, seed: int, out: Path | None, as_json: bool) -> None:
    "Measure durable writes, reads and opening, and count what is lost under many processes and under kills. About ten minutes."
    deliver(durable.run(quick, seed), out, as_json, strict=not quick)


@bench.command(epilog=example("rlm bench recall --locomo locomo --beam beam --realmem realmem --embedder none --out recall.json"))
@public_sets
@click.option("--embedder", default="auto", show_default=True, help="The model; none: words alone.")
@click.option("--seed", type=int, default=0, show_default=True, help="Seed of the intervals.")
@out_option
@json_option
def recall(locomo: Path | None, beam: Path | None, realmem: Path | None, embedder: str, seed: int, out: Path | None, as_json: bool) -> None:
    "Measure how much of what answers a question comes back among the first ten, step by step, and say what was missed and why. Minutes."
    deliver(recalled.run(locomo, beam, realmem, seed, embedder), out, as_json, strict=False)


@bench.command(epilog=example("rlm bench embedding --quick --out embedding.json"))
@bench_options
@click.option("--locomo", type=click.Path(path_type=Path, exists=True, file_okay=False),
              help="A folder of LoCoMo conversations, conv-*.json.")
def embedding(quick: bool, seed: int, out: Path | None, as_json: bool, locomo: Path | None) -> None:
    "Measure the embedding model e5: its time for a question, what centring buys. Half a minute."
    deliver(speeds.run_embedding(quick, seed, locomo), out, as_json, strict=not quick)


@bench.command(epilog=example("rlm bench ontology --quick --ontology prov --out ontology.json"))
@bench_options
@click.option("--ontology", help="A file, or a bundled ontology's name. Default: PROV-O.")
def ontology(quick: bool, seed: int, out: Path | None, as_json: bool, ontology: str | None) -> None:
    "Measure how an ontology is loaded in safety and looked at in bounded views, beside rdflib. About half a minute."
    deliver(ontologies.run(quick, seed, ontology), out, as_json, strict=not quick)


@bench.command(epilog=example("rlm bench rules --quick --out rules.json"))
@bench_options
def rules(quick: bool, seed: int, out: Path | None, as_json: bool) -> None:
    "Measure rules: asking, applying, resolving, an audit against what was planted, two processes at once. About five minutes."
    deliver(ruled.run(quick, seed), out, as_json, strict=not quick)


@bench.command(epilog=example("rlm bench learning --quick --out learning.json"))
@bench_options
@click.option("--test", "tests", type=click.Path(path_type=Path, exists=True, dir_okay=False), multiple=True,
              help="An ontology to ask about, again and again; without any, some of the bundled ones.")
@click.option("--people", type=click.Path(path_type=Path, exists=True, dir_okay=False), multiple=True,
              help="Questions that people worded about the bundled ontologies, JSON lines.")
def learning(quick: bool, seed: int, out: Path | None, as_json: bool, tests: tuple[Path, ...], people: tuple[Path, ...]) -> None:
    "Measure what memory is worth to the agent: with shipped strategies, without, and in training. About ten minutes."
    from rlm.bench import learning as learned  # needs the packages for ontologies, which the other benchmarks do without
    deliver(learned.run(tests, people, quick, seed), out, as_json, strict=not quick)


@bench.command(epilog=example("rlm bench korean --pairs pairs.jsonl --embedder none --out korean.json"))
@click.option("--pairs", type=click.Path(path_type=Path, dir_okay=False), default=Path("tests/data/korean_pairs.jsonl"), show_default=True,
              help="File of the pairs; the default is found in a checkout.")
@click.option("--embedder", default="e5", show_default=True, help="The model; none: words only.")
@click.option("--seed", type=int, default=0, show_default=True, help="Seed of the orders, the draws and the intervals.")
@out_option
@json_option
def korean(pairs: Path, embedder: str, seed: int, out: Path | None, as_json: bool) -> None:
    "Measure how often the memory that answers comes first, Korean and English each way. About a minute."
    deliver(koreans.run(pairs, embedder, seed), out, as_json, strict=False)


@bench.command(epilog=example("rlm bench feedback --locomo locomo --lives lives.jsonl --out feedback.json"))
@public_sets
@click.option("--lives", type=click.Path(path_type=Path, dir_okay=False), default=Path("tests/data/lives.jsonl"), show_default=True,
              help="File of the lives; the default is found in a checkout.")
@click.option("--seed", type=int, default=0, show_default=True, help="Seed of the intervals.")
@out_option
@json_option
def feedback(locomo: Path | None, beam: Path | None, realmem: Path | None, lives: Path, seed: int, out: Path | None, as_json: bool) -> None:
    "Measure whether a ranker that learned from feedback ranks better in a set that it has not seen. Half a minute."
    deliver(feedbacks.run(locomo, beam, realmem, lives, seed), out, as_json, strict=False)


@bench.command(epilog=example("rlm bench mixed --lives lives.jsonl --quick --embedder none --out mixed.json"))
@click.option("--lives", type=click.Path(path_type=Path, dir_okay=False), default=Path("tests/data/lives.jsonl"), show_default=True,
              help="File of the lives; the default is found in a checkout.")
@click.option("--split", type=click.Choice(["dev", "held", "all"]), default="dev", show_default=True,
              help="The development lives, those held out, or all.")
@click.option("--embedder", default="e5", show_default=True, help="The model; none: words only.")
@bench_options
def mixed(lives: Path, split: str, embedder: str, quick: bool, seed: int, out: Path | None, as_json: bool) -> None:
    "Measure how often the memory that answers comes first in the stores of forty invented people. About two minutes."
    deliver(lived.run(lives, embedder, split, seed, quick), out, as_json, strict=False)


@bench.command(epilog=example("rlm bench soak --minutes 0.05 --out soak.json"))
@click.option("--minutes", type=click.FloatRange(min=0.01), default=30, show_default=True, help="How long it lasts.")
@click.option("--seed", type=int, default=0, show_default=True, help="Seed of the texts and the calls.")
@out_option
@json_option
def soak(minutes: float, seed: int, out: Path | None, as_json: bool) -> None:
    "Write, change, erase and search without a pause, and watch whether memory stays flat and files bounded. Half an hour."
    deliver(durable.run_soak(minutes, seed), out, as_json, strict=minutes >= 5)


@bench.command(epilog=example("rlm bench postgres --lives lives.jsonl --embedder none --quick --out postgres.json"))
@click.option("--lives", type=click.Path(path_type=Path, dir_okay=False), default=Path("tests/data/lives.jsonl"), show_default=True,
              help="File of the lives; the default is found in a checkout.")
@click.option("--server", help="Address of a server whose role may make databases; without it one of its own is started.")
@click.option("--locomo", type=click.Path(path_type=Path, exists=True), help="LoCoMo, about which both are asked, too.")
@click.option("--beam", type=click.Path(path_type=Path, exists=True), help="BEAM: a folder of chats.")
@click.option("--realmem", type=click.Path(path_type=Path, exists=True), help="RealMem: a folder of dialogues.")
@click.option("--korean", type=click.Path(path_type=Path, exists=True), help="Pairs; in the repository: tests/data/korean_pairs.jsonl.")
@click.option("--embedder", default="e5", show_default=True, help="The model of these four and of the lives; none: words alone.")
@bench_options
def postgres(lives: Path, server: str | None, locomo: Path | None, beam: Path | None, realmem: Path | None, korean: Path | None,
             embedder: str, quick: bool, seed: int, out: Path | None, as_json: bool) -> None:
    "Compare a store in PostgreSQL with one in a file: speed, many clients, the same answers, kills of the server. About ten minutes."
    deliver(postgresql.run(lives, server, seed, quick, postgresql.read_sets(locomo, beam, realmem, korean), embedder), out, as_json,
            strict=not quick)


@bench.command(epilog=example("rlm bench choices --quick --out choices.json"))
@bench_options
def choices(quick: bool, seed: int, out: Path | None, as_json: bool) -> None:
    "Compare what else PostgreSQL offers with what is used: pgvector, NOTIFY, statements that are planned each time. About three minutes."
    deliver(postgresql.run_choices(seed, quick), out, as_json, strict=False)


@bench.command(epilog=example("rlm bench companion --data data --quick --embedder none --out companion.json"))
@click.option("--data", type=click.Path(path_type=Path, exists=True, file_okay=False), default=Path("tests/data"), show_default=True,
              help="Folder of the labelled sets; the default is found in a checkout.")
@click.option("--split", type=click.Choice(["dev", "held"]), default="dev", show_default=True,
              help="The development half or the half held out.")
@click.option("--embedder", default="e5", show_default=True, help="The model; none: words only.")
@bench_options
def companion(data: Path, split: companions.Split, embedder: str, quick: bool, seed: int, out: Path | None, as_json: bool) -> None:
    "Measure the companion: answers per token, decisions, false retirements and merges, time. About ten minutes."
    deliver(companions.run(data, embedder, split, seed, quick), out, as_json, strict=False)


@bench.command(epilog=example("rlm bench supersession --data data --quick --embedder none --out supersession.json"))
@click.option("--data", type=click.Path(path_type=Path, exists=True, file_okay=False), default=Path("tests/data"), show_default=True,
              help="Folder of supersession_pairs.jsonl; the default is found in a checkout.")
@click.option("--split", type=click.Choice(["dev", "held"]), default="dev", show_default=True, help="Which domains of life.")
@click.option("--embedder", default="e5", show_default=True, help="The model; none: patterns alone.")
@click.option("--quick", is_flag=True, help="Some of the pairs, in stores of two memories.")
@out_option
@json_option
def supersession(data: Path, split: companions.Split, embedder: str, quick: bool, out: Path | None, as_json: bool) -> None:
    "Measure updates in free words: is what is true now first, and does what is still true stay? Three minutes."
    deliver(superseding.run(data, embedder, split, quick), out, as_json, strict=False)


@bench.command(epilog=example("rlm bench year --quick --out year.json"))
@click.option("--embedder", default="none", show_default=True, help="The model; none: words only.")
@bench_options
def year(embedder: str, quick: bool, seed: int, out: Path | None, as_json: bool) -> None:
    "Simulate a year of two people, with a night after each day: is the store bounded, and what is served true? Minutes."
    deliver(companions.run_year(quick, seed, embedder), out, as_json, strict=not quick)


@bench.command(epilog=example("rlm bench serve --quick --out serve.json"))
@bench_options
@click.option("--clients", type=click.IntRange(1, 500), default=CLIENTS, show_default=True, help="At once.")
def serve(quick: bool, seed: int, out: Path | None, as_json: bool, clients: int) -> None:
    "Measure the REST server with many clients at once, and what each interface adds: REST, MCP, proxy, hook, commands. Five minutes."
    deliver(served.run(quick, seed, clients), out, as_json, strict=not quick)


@bench.command(epilog=example("rlm bench tools --situations situations.jsonl --out tools.json"))
@click.option("--situations", type=click.Path(path_type=Path, dir_okay=False),
              default=Path("tests/data/tool_situations.jsonl"), show_default=True,
              help="File of the situations; the default is found in a checkout.")
@click.option("--split", type=click.Choice(["dev", "held"]), default="dev", show_default=True,
              help="The development half or the half held out.")
@click.option("--model", help="A language model, like openai:NAME or anthropic:NAME; without one, a search by words alone.")
@click.option("--seed", type=int, default=0, show_default=True, help="Seed of the intervals.")
@out_option
@json_option
def tools(situations: Path, split: served.Split, model: str | None, seed: int, out: Path | None, as_json: bool) -> None:
    "Measure which tool of the MCP server a language model calls in short situations. A few minutes with a model."
    from rlm.agent import open_model
    deliver(served.run_tool_choice(situations, None if model is None else open_model(model), split, seed), out, as_json, strict=False)


@bench.command("long-context", epilog=example("rlm bench long-context --quick --out long_context.json"))
@bench_options
@click.option("--model", help="A language model, like openai:NAME; without one, a model with a script, which measures the loop.")
def long_context(quick: bool, seed: int, out: Path | None, as_json: bool, model: str | None) -> None:
    "Ask about texts of up to two million characters, by code and in a window, and measure the loop's own time. About a minute."
    from rlm.agent import open_model
    from rlm.bench import long_context as long_texts  # needs the package of the sandbox
    deliver(long_texts.run(None if model is None else open_model(model), seed, quick), out, as_json, strict=not quick)


@bench.command(epilog=example("rlm bench model --model scripted:replies.json --questions 5 --ontology skos --log answers.jsonl"))
@click.option("--model", "name", required=True, help="The language model, like openai:NAME.")
@click.option("--log", type=click.Path(path_type=Path, dir_okay=False), required=True, callback=_tried,
              help="The log of the answers; a run that broke off goes on behind its last line.")
@click.option("--questions", "count", type=click.IntRange(min=1), default=48, show_default=True, help="How many.")
@click.option("--arm", "arms", type=click.Choice(["none", "packs", "learned", "others", "unrelated"]), multiple=True,
              help="What it is given, again and again; without any, all of them.")
@click.option("--ontology", "ontologies", multiple=True, help="A bundled ontology, again and again; without any, all of them.")
@click.option("--people", type=click.Path(path_type=Path, exists=True, dir_okay=False), multiple=True,
              help="Questions that people worded about the bundled ontologies, JSON lines.")
@click.option("--seed", type=int, default=0, show_default=True, help="Seed of everything random.")
@out_option
@json_option
def model(name: str, log: Path, count: int, arms: tuple[str, ...], ontologies: tuple[str, ...], people: tuple[Path, ...],
          seed: int, out: Path | None, as_json: bool) -> None:
    "Ask a language model the same questions without and with strategies, and compare. Hours; it goes on where it stopped."
    from rlm.bench import model as asked_models  # needs the packages for ontologies
    found = asked_models.run(name, log, count, seed, arms or asked_models.ARMS, people, ontologies)
    deliver(found, out, as_json, strict=False)


@bench.command(epilog=example("rlm bench federation --data data --quick --out federation.json"))
@click.option("--data", type=click.Path(path_type=Path, exists=True, file_okay=False), default=Path("tests/data"), show_default=True,
              help="Folder of the labelled sets; the default is found in a checkout.")
@click.option("--quick", is_flag=True, help="Few people: a look, not a result.")
@click.option("--seed", type=int, default=10, show_default=True,
              help="Seed of the first of three runs; the parameters were chosen with other seeds.")
@out_option
@json_option
def federation(data: Path, quick: bool, seed: int, out: Path | None, as_json: bool) -> None:
    "Measure what people learn from one another: alone and together, with liars, under privacy. About a minute."
    deliver(federated.run(data, seed, quick), out, as_json, strict=False)


def _spoken_life(life: lived.Life,  # single memories, notes and conversations
                 ) -> Conversation:
    "Return a life as one conversation."
    named = {"user": "role", "assistant": "role"}
    turns = tuple({"id": i["id"], "text": i["text"], "valid_from": i["when"],
                   **({"session": i["conversation"], named.get(str(i.get("speaker")), "speaker"): i.get("speaker") or "user"}
                      if i.get("conversation") else {})} for i in life.items)
    asked = tuple(RecallQuestion(q["question"], frozenset(q["gold"]), q["type"]) for q in life.questions)
    return Conversation(life.name, turns, asked)


@bench.command(epilog=example("rlm bench local --sizes 400 --out local.json"))
@click.option("--sizes", default=",".join(map(str, attended.SIZES)), show_default=True, help="Memories, with commas.")
@click.option("--locomo", type=click.Path(path_type=Path, exists=True), help="LoCoMo: locomo10.json, its zip, or conv-*.json in a folder.")
@click.option("--realmem", type=click.Path(path_type=Path, exists=True, file_okay=False), help="RealMem: a folder of NAME.json.")
@click.option("--beam", type=click.Path(path_type=Path, exists=True, file_okay=False), help="BEAM: a folder of chat-*.json.")
@click.option("--lives", type=click.Path(path_type=Path, dir_okay=False), help="Lives; in the repository: tests/data/lives.jsonl.")
@click.option("--embedder", default="e5", show_default=True, help="The model for the conversations.")
@click.option("--seed", type=int, default=0, show_default=True, help="Seed of everything random.")
@out_option
@json_option
def local(sizes: str, locomo: Path | None, realmem: Path | None, beam: Path | None, lives: Path | None, embedder: str, seed: int,
          out: Path | None, as_json: bool) -> None:
    "Measure the layers before a full search: how often, how quickly and how rightly they answer. A few minutes."
    wanted = [read_count(int(n) if n.strip().isdecimal() else n, "sizes", 100) for n in sizes.split(",")]
    spoken = [_spoken_life(life) for life in lived.read_lives(lives)] if lives else []
    deliver(attended.run(wanted, seed, locomo, embedder, realmem, beam, spoken), out, as_json, strict=set(wanted) == set(attended.SIZES))


@bench.command(epilog=example("rlm bench speed --sizes 200 --out speed.json"))
@click.option("--sizes", default=",".join(map(str, speeds.SIZES)), show_default=True, help="Memories, with commas.")
@click.option("--seed", type=int, default=0, show_default=True, help="Seed of everything random.")
@out_option
@json_option
def speed(sizes: str, seed: int, out: Path | None, as_json: bool) -> None:
    "Measure a search from a thousand memories to a million, stage by stage, beside other engines. A quarter of an hour."
    wanted = [read_count(int(n) if n.strip().isdecimal() else n, "sizes", 100) for n in sizes.split(",")]
    deliver(speeds.run(wanted, seed), out, as_json, strict=set(wanted) == set(speeds.SIZES))


@bench.command(epilog=example("rlm bench graph --sizes 200 --embedder none --out graph.json"))
@click.option("--sizes", default=",".join(map(str, graphs.SIZES)), show_default=True, help="Memories, with commas.")
@click.option("--locomo", type=click.Path(path_type=Path, exists=True), help="LoCoMo: locomo10.json, its zip, or conv-*.json in a folder.")
@click.option("--realmem", type=click.Path(path_type=Path, exists=True), help="RealMem: NAME.json in a folder; with --locomo.")
@click.option("--embedder", default="auto", show_default=True, help="The model for LoCoMo; none: without its questions.")
@click.option("--seed", type=int, default=0, show_default=True, help="Seed of everything random.")
@click.option("--note", default="", help="About the circumstances, such as what else the machine did.")
@out_option
@json_option
def graph(sizes: str, locomo: Path | None, realmem: Path | None, embedder: str, seed: int, note: str, out: Path | None,
          as_json: bool) -> None:
    "Measure the graph's bootstrap, anchors on a stream of topics, and whether attention makes answers better. Ten minutes."
    wanted = [read_count(int(n) if n.strip().isdecimal() else n, "sizes", 100) for n in sizes.split(",")]
    deliver(graphs.run(wanted, locomo, realmem, seed, embedder, note), out, as_json, strict=False)


@bench.command("all", epilog=example("rlm bench all --quick --only ontology --results results --data data"))
@click.option("--quick", is_flag=True, help="Small sizes; there is no other way: whole benchmarks take hours and run one by one.")
@click.option("--results", type=click.Path(path_type=Path, file_okay=False), default=Path("nbs/95_bench/results"), show_default=True,
              help="The folder of the committed reports.")
@click.option("--data", type=click.Path(path_type=Path, file_okay=False), default=Path("tests/data"), show_default=True,
              help="The folder of the labelled sets.")
@click.option("--locomo", type=click.Path(path_type=Path, exists=True), help="LoCoMo: then recall is measured, too.")
@click.option("--beam", type=click.Path(path_type=Path, exists=True, file_okay=False), help="BEAM: likewise.")
@click.option("--only", help="Benchmarks, with commas; default: all.")
@click.option("--out", type=click.Path(path_type=Path, file_okay=False), help="Keep the new reports in this folder.")
@json_option
def all_(quick: bool, results: Path, data: Path, locomo: Path | None, beam: Path | None, only: str | None, out: Path | None,
         as_json: bool) -> None:
    """Run each benchmark once, small, and compare its figures with the committed ones: does each keep its shape? A quarter of an hour.

    A time or rate is near within a factor of 2, a share of 0 to 1 within .1. --json names those that are not."""
    if not quick:
        raise InvalidInput("Whole benchmarks take hours.", "Give --quick, or run one by its name, as in: rlm bench speed")
    named = [x for option, path in (("--locomo", locomo), ("--beam", beam)) if path for x in (option, str(path.absolute()))]
    extra, wanted = ({"recall": tuple(named)} if named else {}), tuple(only.split(",")) if only else ()
    if unknown := [name for name in wanted if name not in QUICK_RUNS and name not in extra]:
        raise InvalidInput(f"There is no quick run of {unknown[0]!r}.",
                           f"There are: {', '.join(QUICK_RUNS)}; recall with --locomo or --beam.")
    with tempfile.TemporaryDirectory() as folder:
        if out:
            out.mkdir(parents=True, exist_ok=True)
        steps = reproduce(results, out or Path(folder), data, extra, wanted, lambda name: click.echo(f"{name} …", err=True))
        found = list(steps)
    print_json([asdict(a) for a in found]) if as_json else click.echo(agreement_table(found, terminal_width()))
