"""Commands `rlm-agent run`, `judge` and `show`: one question about an ontology, whether its answer was right, and what a run did.

Made to be called by programs: what is printed with `--json` is stable, everything else goes to the standard error,
and the exit code says how it went: 0 for an answer, 3 when it does not know or a limit ended the run,
1 when something was wrong with the question, a file, a key or a server, 2 when the command was typed wrongly.
"""

import re
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import click

from rlm.agent import RunLimits, load_trajectory, run
from rlm.agent.loop.prompt import read_context_file
from rlm.agent.memory.stores import open_memory
from rlm.agent.runner import CASE_BASED_K, OPINIONS, READER_K, judge_stored_run, resume, stored_run
from rlm.core.errors import InvalidInput, NotFound
from rlm.core.promotion import PromotionPolicy
from rlm.core.settings import CASE_BASED, load_settings
from rlm.core.text import clip
from rlm.service.advice import MemoryAdvisor
from rlm.service.cli.common import Group, example, json_option, print_json, refuse_missing_store, store_options


IN_KOREAN = {"yes": "예", "no": "아니요", "none": "없음"}  # answers that are words, as a Korean question is answered; JSON keeps them
NOT_CONVERGED = 3  # exit code of a run that a limit ended, or that found no answer


def read_budget(parts: tuple[str, ...],  # amounts such as `0.50` (dollars), `20000t` (tokens), `60s` (seconds)
                iterations: int | None,  # largest number of steps; None: the default
                ) -> RunLimits:
    "Return the limits of a run from what a command was given. Raises `InvalidInput`."
    found: dict[str, Any] = {} if iterations is None else {"iterations": iterations}
    for part in parts:
        text = part.strip().lower().lstrip("$").replace("_", "")
        name, number = {"t": ("tokens", text[:-1]), "s": ("seconds", text[:-1])}.get(text[-1:], ("cost", text))
        try:
            found[name] = int(number) if name == "tokens" else float(number)
        except ValueError:
            raise InvalidInput(f"The budget {part!r} can't be read.",
                               "Write dollars like 0.50, tokens like 20000t, seconds like 60s.") from None
    return RunLimits(**found)


@click.group(cls=Group, context_settings={"help_option_names": ["-h", "--help"]},
             epilog=example('rlm-agent run --ontology prov --query "Find all subclasses of Activity" --db memory.db --json'))
@click.version_option(package_name="rlm", prog_name="rlm-agent")
def main() -> None:
    "Run an agent that answers questions about ontologies and gets better at it."


@main.command("run", epilog=example('rlm-agent run --ontology prov --query "Find all subclasses of Activity" --db memory.db --json',
                                    'rlm-agent run --ontology prov --query "Activity의 하위 클래스는 몇 개인가요?" --db memory.db',
                                    'rlm-agent run --ontology time --query "What is the domain of before?" --db memory.db --memory-k 0'))
@click.option("--ontology", help="A file, or the name of a bundled ontology: prov, skos, time, sosa, ssn, org, rlm.")
@click.option("--query", help="The question. The default model reads English and Korean.")
@click.option("--resume", "broken", metavar="RUN",
              help="Go on with a run that broke off: its run_id, or last. What was paid is not asked again.")
@click.option("--context", "texts", multiple=True, type=click.Path(path_type=Path), metavar="FILE",
              help="A text, a table (CSV, TSV), JSON: a variable that the model reads by code. May be repeated; needs a language model.")
@click.option("--schema", type=click.Path(path_type=Path), help="A file with a JSON schema that the answer must fit.")
@click.option("--model", help="case-based, openai:NAME, anthropic:NAME or scripted:FILE. Default: the setting model.")
@click.option("--ontology-name", help="What to call the ontology. Default: the file's name.")
@click.option("--log-dir", type=click.Path(path_type=Path), help="Where the log goes. Default: logs, beside the store.")
@click.option("--memory-k", type=click.IntRange(min=0),
              help=f"How many experiences to use. Default: {CASE_BASED_K} for case-based, {READER_K} for models that read.")
@click.option("--no-extract", is_flag=True, help="Learn nothing from this run.")
@click.option("--max-iterations", type=click.IntRange(min=1), help="Steps at most. Default: 20.")
@click.option("--fact", "facts", multiple=True, help="What is known, as name=value, for the rules that a model is given; repeatable.")
@click.option("--mcp", "servers", multiple=True, metavar="COMMAND",
              help="A server of tools (MCP) for a language model, such as 'rlm mcp'; repeatable. Default: the setting mcp_servers.")
@click.option("--stream", "streams", is_flag=True, help="Show what a language model writes while it writes it, on the standard error.")
@click.option("--budget", multiple=True, help="Dollars (0.50), tokens (20000t) or seconds (60s); may be repeated. Default: 300s.")
@store_options
@json_option
@click.pass_context
def run_command(ctx: click.Context, ontology: str | None, texts: tuple[Path, ...], schema: Path | None, query: str | None,
                broken: str | None, model: str | None, ontology_name: str | None, log_dir: Path | None,
                memory_k: int | None, no_extract: bool, max_iterations: int | None, facts: tuple[str, ...],
                servers: tuple[str, ...], streams: bool, budget: tuple[str, ...],
                db: Path | None, namespace: str | None, config: Path | None, as_json: bool) -> None:
    """Answer one question about an ontology, or about texts and tables.

    The exit code is 0 for an answer, 3 when it does not know or a limit ended the run, 1 or 2 for a mistake."""
    if broken is None and (query is None or (ontology is None and not texts and not servers)):
        raise click.UsageError("Missing option '--query'." if query is None else "Missing option '--ontology', '--context' or '--mcp'.")
    tell = (lambda text: click.echo(text, nl=False, err=True)) if streams else None
    limits, settings = read_budget(budget, max_iterations), load_settings(config, db_path=db, namespace=namespace)
    with ExitStack() as stack:
        advisor = None
        reads = broken or (model or settings.model) not in CASE_BASED  # it reads no rules, and a JSON file has none
        if reads and not str(settings.db_path).endswith((":memory:", ".json")):
            from rlm.service.cli.rules import read_facts  # here, as it loads the language of rules
            from rlm.service.memory import Memory
            memory = stack.enter_context(Memory(db, namespace=namespace, config=config))
            advisor = MemoryAdvisor(memory, read_facts(facts))
        if broken is not None:
            found = resume(broken, db, log_dir=log_dir, limits=limits if budget or max_iterations else None, namespace=namespace,
                           config=config, advisor=advisor, stream=tell, **({"model": model} if model else {}))
        else:
            found = run(str(query), ontology, db, memory_k=memory_k, enable_extraction=not no_extract, log_dir=log_dir, model=model,
                        ontology_name=ontology_name, limits=limits, namespace=namespace, config=config, advisor=advisor,
                        context=list(texts) or None, answer_type=None if schema is None else read_context_file(schema), mcp=servers or None,
                        stream=tell)
    if streams:
        click.echo(err=True)
    if as_json:
        print_json(found.as_dict())
    else:
        click.echo(IN_KOREAN.get(found.answer, found.notes.text) if re.search("[가-힣]", query or "") else found.notes.text)
        for note in found.notes.notes:
            click.echo(note, err=True)
        ending = found.learned.trajectory.ending
        ending = ending.replace("answered", "refused", 1) if found.abstained else ending
        click.echo(f"{ending}, log: {found['log_path'] or 'none'}, run: {found['run_id']}", err=True)
    ctx.exit(0 if found.converged and not found.abstained else NOT_CONVERGED)


@main.command("judge", epilog=example("rlm-agent judge last yes --db memory.db", "rlm-agent judge last partly --db memory.db --json"))
@click.argument("name", metavar="RUN")
@click.argument("opinion", type=click.Choice(list(OPINIONS)))
@store_options
@json_option
def judge_command(name: str, opinion: str, db: Path | None, namespace: str | None, config: Path | None, as_json: bool) -> None:
    """Say whether the answer of RUN was right; it counts for or against the strategy and the rules that led to it.

    RUN is a run_id or trajectory_id, or last for the last run. OPINION is yes, no or partly; partly counts for nothing. A run that
    a person judged already is not judged again."""
    from rlm.service.memory import Memory
    settings = load_settings(config, db_path=db, namespace=namespace)
    refuse_missing_store(settings.db_path)
    gate = PromotionPolicy.of(settings)
    if str(settings.db_path).endswith(".json"):  # such a file has no rules that could be counted
        run, counted, promoted = judge_stored_run(open_memory(settings.db_path, settings=settings), name, opinion, gate)
    else:
        with Memory(db, namespace=namespace, config=config) as memory:
            run, counted, promoted = judge_stored_run(memory.strategies, name, opinion, gate, MemoryAdvisor(memory))
    if as_json:
        print_json({"trajectory_id": run.trajectory_id, "query": run.task, "opinion": opinion, "counted": counted, "promoted": promoted})
    else:
        answer = clip(run.answer, 60) if run.answer else "no answer"
        click.echo(f"{run.trajectory_id} is judged: {opinion}. {clip(run.task, 90)} – {answer}")
        way = {"yes": "for", "no": "against"}.get(opinion)
        click.echo(f"It counts {way} the strategy {', '.join(counted)}." if counted and way else "It counts for or against no strategy.")
        for id, status in promoted.items():
            click.echo(f"{id} is now {status}.")


@main.command("show", epilog=example("rlm-agent show last --db memory.db", "rlm-agent show logs/rlm_example.jsonl --json"))
@click.argument("log", metavar="RUN")
@click.option("--width", type=click.IntRange(min=40), default=2000, show_default=True, help="Characters of each text that are shown.")
@store_options
@json_option
def show_command(log: str, width: int, db: Path | None, namespace: str | None, config: Path | None, as_json: bool) -> None:
    """Show what a run did, step by step, out of its log.

    RUN is the path of a log, a run_id or trajectory_id, or last for the last run."""
    if re.fullmatch("last|[rt]-[0-9a-f]{12}", log) and not Path(log).exists():
        settings = load_settings(config, db_path=db, namespace=namespace)
        refuse_missing_store(settings.db_path)
        with ExitStack() as stack:
            from rlm.service.memory import Memory
            in_file = str(settings.db_path).endswith(".json")
            strategies = (open_memory(settings.db_path, settings=settings) if in_file else
                          stack.enter_context(Memory(db, namespace=namespace, config=config)).strategies)
            found = stored_run(strategies, log)
        if found.log_path is None:
            raise NotFound(f"The run {found.run_id} has no log.", "A run with --log-dir, or with a store in a file, writes one.")
        log = found.log_path
    trajectory = load_trajectory(log)
    if as_json:
        print_json(trajectory.as_dict(width))
    else:
        trajectory.show(width)
