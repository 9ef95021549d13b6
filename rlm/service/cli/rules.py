"""Add, list, apply, judge, audit and move rules from the command line."""

import json
import sys
from collections.abc import Callable, Sequence
from functools import wraps
from pathlib import Path
from typing import IO, Any

import click

from rlm.core.clock import zone
from rlm.core.errors import InvalidInput, each_once
from rlm.core.settings import CASE_BASED, Settings
from rlm.core.text import clip
from rlm.rules.audit import audit as audited
from rlm.rules.conflicts import VERDICTS, ConflictLog, repeat_offenders
from rlm.rules.decision_tables import export_table, import_table
from rlm.rules.lifecycle import DueReport, MidnightScheduler, next_runs
from rlm.rules.model import Rule
from rlm.rules.resolution import AntinomicLoop, BaseGeneration, ConflictResolver, Fallback
from rlm.rules.rule_store import RuleStore
from rlm.rules.transfer import read_rules_file
from rlm.service.cli.common import Group, example, options, print_json, print_rows, report_export, report_import, with_memory, write_export
from rlm.service.cli.memory import set_options
from rlm.service.memory import Memory
from rlm.store.records import STATUSES, read_count


@click.group("rules", cls=Group)
def rules_group() -> None:
    "Store, apply, judge and audit rules: what to do when."


def _with_rules(makes: bool = False, held: bool = False) -> Callable[[Callable[..., None]], Any]:
    "Add the options that name a store, and pass the command its `RuleStore` as the first argument."
    def decorate(command: Callable[..., None]) -> Any:
        @with_memory(makes, held=held)
        @wraps(command)
        def run(memory: Memory, *args: Any, **kwargs: Any) -> None:
            command(RuleStore.within(memory), *args, **kwargs)
        return run
    return decorate


def _show_rule(rule: Rule, as_json: bool) -> None:
    "Print one rule."
    if as_json:
        return print_json(rule.as_dict())
    click.echo(f"{rule.rule_id}  {rule.status}, version {rule.version}, {rule.success} helped, {rule.fail} failed")
    click.echo(f"  {clip(rule.expr, 100)}")
    if rule.formal is not None and rule.formal != rule.expr:
        click.echo(f"  {clip(rule.formal, 100)}")


@rules_group.command(epilog=example(
    'rlm rules add "Green tea in the morning." --formal "when hour < 11 then drink = \'tea\'" --tag drinks',
    'rlm rules add "회의 전에는 커피" --formal "when 회의 then 음료 = \'커피\'" --id coffee --json'))
@click.argument("expr", required=False)
@click.option("--formal", help="When it applies and what follows: when CONDITION then OUTCOME.")
@click.option("--id", "rule_id", help="An id of your own; default: a fresh one.")
@click.option("--tag", "tags", multiple=True, help="A tag; repeat for several.")
@click.option("--status", type=click.Choice(STATUSES), help="Default: hot.")
@click.option("--pinned", is_flag=True, default=None, help="Never archive it for its age.")
@_with_rules(makes=True)
def add(rules: RuleStore, expr: str | None, as_json: bool, **fields: Any) -> None:
    "Store a rule: EXPR says it in words, --formal so that it can be applied."
    _show_rule(rules.add_rule(expr, **set_options(**fields)), as_json)


which_options = options(
    click.option("--status", type=click.Choice([*STATUSES, "any"]), multiple=True, help="Only of this status; repeat for several."),
    click.option("--tag", "tags", multiple=True, help="Only with this tag; repeat for several."),
    click.option("--match", type=click.Choice(["all", "any"]), default="all", show_default=True, help="Must all tags be there, or any?"))


def statuses(chosen: tuple[str, ...],   # each --status, 'any' perhaps among them
             default: "str | tuple[str, ...]",  # if none was given
             ) -> "str | tuple[str, ...]":
    "Return the statuses that a command is about."
    return "any" if "any" in chosen else chosen or default


@rules_group.command("list", epilog=example("rlm rules list", "rlm rules list --status hot --tag drinks -k 5 --json"))
@click.option("-k", "limit", type=int, default=20, show_default=True, help="How many at most.")
@which_options
@_with_rules()
def list_(rules: RuleStore, limit: int, status: tuple[str, ...], tags: tuple[str, ...], match: str, as_json: bool) -> None:
    "List rules, the most trusted first."
    found = rules.get_rules(statuses(status, "any"), tags, limit, match=match)
    print_json([r.as_dict() for r in found]) if as_json else click.echo(repr(found))
    if len(found) == limit and len(rules.get_rules(statuses(status, "any"), tags, limit + 1, match=match)) > limit:
        click.echo(f"These are the first {limit:,}; -k {2 * limit} shows more.", err=True)


@rules_group.command(epilog=example("rlm rules search 녹차 -k 3", 'rlm rules search "what to drink" --json'))
@click.argument("query")
@click.option("-k", "k", type=int, default=5, show_default=True, help="How many at most.")
@_with_rules()
def search(rules: RuleStore, query: str, k: int, as_json: bool) -> None:
    "Find the rules that say most about QUERY."
    hits = rules.search(query, k)
    rows = [(f"{h.score:.3f}", h.rule.rule_id, h.rule.status, clip(h.rule.expr, 90)) for h in hits]
    print_rows(as_json, [{"score": round(h.score, 4), "rule": h.rule.as_dict()} for h in hits], rows, ["score", "rule", "status", "says"],
               "No rule says anything about that.")


@rules_group.command(epilog=example("rlm rules show morning", "rlm rules show morning --json"))
@click.argument("id")
@_with_rules()
def show(rules: RuleStore, id: str, as_json: bool) -> None:
    "Show the rule ID."
    found = rules.get(id)
    print_rows(as_json, found.as_dict(), [(name, clip(str(value), 100)) for name, value in found.as_dict().items()], ["", "value"])


@rules_group.command(epilog=example("rlm rules history morning", "rlm rules history morning --json"))
@click.argument("id")
@_with_rules()
def history(rules: RuleStore, id: str, as_json: bool) -> None:
    "Show what happened to the rule ID, with the evidence for each change."
    line = rules.history(id)
    print_json(line.as_dict()) if as_json else click.echo(repr(line))


@rules_group.command(epilog=example("rlm rules used morning --helped 1",
                                    "rlm rules used morning --failed 1 --at 2026-06-02T09:00:00+09:00 --json"))
@click.argument("id")
@click.option("--helped", type=int, default=0, help="How often it helped.")
@click.option("--failed", type=int, default=0, help="How often it misled; too often, and it is held.")
@click.option("--at", "timestamp", help="When, with a time zone. Default: now.")
@_with_rules()
def used(rules: RuleStore, id: str, helped: int, failed: int, timestamp: str | None, as_json: bool) -> None:
    "Report that the rule ID was used, and how it went."
    helped, failed = read_count(helped, "--helped"), read_count(failed, "--failed")
    _show_rule(rules.update_usage(id, helped, failed, timestamp), as_json)


def read_fact(text: str,  # a fact as name=value
              ) -> tuple[str, object]:
    "Read a fact. A number, truth value or quoted text as in JSON is that; all else is a text."
    name, mark, value = text.partition("=")
    if not mark or not name.strip():
        raise InvalidInput(f"{text!r} is no fact.", "Write it like hour=9, vip=true or user=Mina.")
    try:
        found = json.loads(value, parse_constant=str)
    except (ValueError, RecursionError):
        found = value
    return name.strip(), found if isinstance(found, bool | int | float | str) else value


def read_facts(texts: Sequence[str],  # facts, each as name=value
               ) -> dict[str, object]:
    "Read facts from the command line. Raises `InvalidInput`, also for a name that stands twice."
    return each_once(map(read_fact, texts), "fact")


def _read_facts_json(file: IO[str]) -> dict[str, object]:
    "Read facts from a file. Raises `InvalidInput`."
    try:
        found = json.load(file)
    except (ValueError, RecursionError) as e:
        raise InvalidInput(f"The facts are not JSON ({e}).", 'Give an object like {"hour": 9}.') from None
    if not isinstance(found, dict):
        raise InvalidInput(f"The facts are a {type(found).__name__}.", 'Give an object like {"hour": 9}.')
    return found


def _model_fallbacks(settings: Settings) -> tuple[Fallback, ...]:
    "Return the fallbacks of a tie: a synthesis by the configured model, then its free answer. Raises `InvalidInput`, `ModelError`."
    from rlm.agent.models.base import Message
    from rlm.agent.models.clients import open_model
    if settings.model in CASE_BASED:
        raise InvalidInput("No language model is configured to settle a tie.", "Set RLM_MODEL to openai:NAME or anthropic:NAME.")
    model = open_model(settings=settings)

    def ask(question: str) -> str:
        return model.complete([Message("user", question)]).text
    return AntinomicLoop(ask), BaseGeneration(ask)


@rules_group.command(epilog=example("rlm rules apply hour=9 meeting=true", "rlm rules apply hour=9 meeting=true 회의=true --resolve --json",
                                    "echo '{\"hour\": 9}' | rlm rules apply --facts - --record"))
@click.argument("facts", nargs=-1)
@click.option("--facts", "file", type=click.File(encoding="utf-8-sig"), help="A file with a JSON object of facts; - for standard input.")
@click.option("--tag", "tags", multiple=True, help="Only rules with this tag; repeat for several.")
@click.option("--match", type=click.Choice(["all", "any"]), default="all", show_default=True, help="Must all tags be there, or any?")
@click.option("--resolve", is_flag=True, help="Resolve what is in dispute, and say how.")
@click.option("--record", is_flag=True, help="Resolve, and write it down; a rule that is disproved again gets a failure.")
@click.option("--ask-model", is_flag=True, help="Resolve; where proof and vote leave a tie, ask the model of the setting model.")
@_with_rules()
def apply(rules: RuleStore, facts: tuple[str, ...], file: IO[str] | None, tags: tuple[str, ...], match: str, resolve: bool,
          record: bool, ask_model: bool, as_json: bool) -> None:
    "Apply rules to FACTS, each written name=value: show which fire, and what they say."
    situation = {**(_read_facts_json(file) if file else {}), **read_facts(facts)}
    found: Any = rules.apply(situation, filter_tags=tags, match=match)
    if resolve or record or ask_model:
        resolver = ConflictResolver(rules, _model_fallbacks(rules.settings) if ask_model else ())
        found = resolver.resolve(found)
        if record and found.rulings:
            resolver.record(found)
    print_json(found.as_dict()) if as_json else click.echo(repr(found))


@rules_group.command("conflicts", epilog=example("rlm rules conflicts", "rlm rules conflicts --rule morning --stage vote --json",
                                                 "rlm rules conflicts --since 2026-05-01 --offenders"))
@click.option("--rule", help="Only conflicts of this rule.")
@click.option("--stage", help="Only those that this stage decided: entailment, vote, tie-break, antinomic, base, none.")
@click.option("--since", help="Only from this time on.")
@click.option("--until", help="Only before this time.")
@click.option("--verdict", type=click.Choice(VERDICTS), help="Only those that were judged so; unknown: not judged.")
@click.option("-k", "limit", type=int, default=50, show_default=True, help="How many at most.")
@click.option("--offenders", is_flag=True, help="Count by rule: those that were disproved, or followed wrongly, at least twice.")
@_with_rules()
def conflicts(rules: RuleStore, rule: str | None, stage: str | None, since: str | None, until: str | None, verdict: str | None, limit: int,
              offenders: bool, as_json: bool) -> None:
    "List the conflicts that were recorded, the newest first: the rules, what decided, who was followed, who was disproved, the verdict."
    found = ConflictLog(rules).read(rule, stage, since, until, verdict, None if offenders else limit)
    if not offenders:
        print_json([d.as_dict() for d in found]) if as_json else click.echo(repr(found))
        return
    counts = repeat_offenders(found)[:limit]
    print_rows(as_json, counts, [tuple(c.values()) for c in counts], ["rule", "disputes", "followed", "disproved", "judged wrong"],
               "no offenders")


@rules_group.command("judge", epilog=example("rlm rules judge last wrong", "rlm rules judge last right --by Mina --json"))
@click.argument("conflict")
@click.argument("verdict", type=click.Choice(VERDICTS))
@click.option("--by", "judge", default="person", show_default=True, help="Who judges.")
@_with_rules()
def judge_(rules: RuleStore, conflict: str, verdict: str, judge: str, as_json: bool) -> None:
    "Judge the decision of a recorded CONFLICT, its id or last: VERDICT right or wrong counts for the rules that were followed."
    found = ConflictLog(rules).judge(conflict, verdict, judge)
    print_json(found.as_dict()) if as_json else click.echo(f"{found.id} is judged {found.verdict}.")


def decision(name: str,                                    # name of the command
             act: Callable[[RuleStore, str, str], Rule],   # takes the store, a rule's id and the reason
             said: str,                                    # sentence for the help
             shown: str,                                   # an example
             ) -> click.Command:
    "Make a command that changes the status of one rule, as a person decides."
    @rules_group.command(name, help=said, epilog=example(shown))
    @click.argument("id")
    @click.option("--reason", default="", help="Why, for the history.")
    @_with_rules()
    def decide(rules: RuleStore, id: str, reason: str, as_json: bool) -> None:
        "Decide, and show the rule."
        _show_rule(act(rules, id, reason), as_json)
    return decide


promote = decision("promote", RuleStore.promote, "Promote the rule ID; it is judged by what comes from now on.",
                   'rlm rules promote morning --reason "asked Mina"')
archive = decision("archive", RuleStore.archive, "Put the rule ID away.", "rlm rules archive morning --json")
hold = decision("hold", RuleStore.hold, "Stop applying the rule ID until someone decides about it.",
                'rlm rules hold morning --reason "under discussion"')
release = decision("release", RuleStore.release, "Make the rule ID, held or archived, hot again; it is judged by what comes from now on.",
                   'rlm rules release cola --reason "the doctor agrees"')


@rules_group.command("run-jobs", epilog=example("rlm rules run-jobs --dry-run", "rlm rules run-jobs --json"))
@click.option("--now", help="The time to judge by. Default: the clock's.")
@click.option("--dry-run", is_flag=True, help="Only say what would happen.")
@click.option("--force", is_flag=True, help="Even if the clock went back since the last run.")
@_with_rules()
def run_jobs(rules: RuleStore, now: str | None, dry_run: bool, force: bool, as_json: bool) -> None:
    "Promote, demote and archive whatever is due; from cron, or by hand. A second run changes nothing."
    report = rules.run_due(now, dry_run=dry_run, force=force)
    print_json(report.as_dict()) if as_json else click.echo(repr(report))


@rules_group.command("scheduler", epilog=example("rlm rules scheduler --show", "rlm rules scheduler --show --json"))
@click.option("--show", is_flag=True, help="Say when the job would run next, and end.")
@_with_rules()
def scheduler_(rules: RuleStore, show: bool, as_json: bool) -> None:
    "Run the job every day at 00:00 in the zone of the setting time_zone, until stopped."
    runs = [f"{at:%Y-%m-%d %H:%M %Z}" for at in next_runs(rules.settings.time_zone, rules.clock.now())]
    if show:
        print_json({"time_zone": rules.settings.time_zone, "next": runs}) if as_json else click.echo("\n".join(runs))
        return

    def report(done: DueReport) -> None:
        click.echo(json.dumps(done.as_dict(), ensure_ascii=False) if as_json else repr(done))
        sys.stdout.flush()
    waiting = MidnightScheduler(lambda: report(rules.run_due()), zone(rules.settings.time_zone), rules.clock)
    try:
        click.echo(f"Waiting for {runs[0]}; Ctrl-C ends it.", err=True)
        waiting.run()
    except (KeyboardInterrupt, SystemExit):
        click.echo("Ended.", err=True)


@rules_group.command(epilog=example("rlm rules audit", "rlm rules audit --status any --json"))
@click.option("--status", type=click.Choice([*STATUSES, "any"]), multiple=True, help="Default: hot and ltm.")
@click.option("--strict", is_flag=True, help="Exit with 1 when something was found.")
@_with_rules()
def audit(rules: RuleStore, status: tuple[str, ...], strict: bool, as_json: bool) -> None:
    "Find rules that can contradict each other (with an example), never fire, say nothing, or are superfluous."
    report = audited(rules, statuses(status, ("hot", "ltm")))
    print_json(report.as_dict()) if as_json else click.echo(repr(report))
    if strict and report.findings:
        raise click.exceptions.Exit(1)


format_option = click.option("--format", "form", type=click.Choice(["jsonl", "csv"]), help="jsonl: a line of JSON for each rule; csv: a "
                             "decision table. Default: by the end of PATH, else jsonl.")


def _is_table(path: Path, form: str | None) -> bool:
    "Return whether a file of rules is a decision table."
    return form == "csv" or (form is None and path.suffix.lower() == ".csv")


@rules_group.command("export", epilog=example("rlm rules export mine.jsonl", "rlm rules export - > mine.jsonl", "rlm rules export mine.csv",
                                              "rlm rules export - --format csv", "rlm rules export mine.jsonl --json"))
@click.argument("path", type=click.Path(path_type=Path, allow_dash=True))
@format_option
@_with_rules(held=True)
def export_(rules: RuleStore, path: Path, form: str | None, as_json: bool) -> None:
    """Write all rules to PATH, a line of JSON each; - for standard output. A decision table in CSV has the rules with a formal side,
    without their counts."""
    if _is_table(path, form):
        report_export(path, write_export(path, export_table(rules)) - 1, "rules", as_json)
    else:
        report_export(path, write_export(path, rules.export_lines()), "rules", as_json)


@rules_group.command("import", epilog=example("rlm rules import rules.jsonl", "rlm rules import drinks.csv",
                                              "rlm rules export - | rlm rules import - -n other --json"))
@click.argument("path", type=click.Path(path_type=Path, allow_dash=True))
@format_option
@_with_rules(makes=True)
def import_(rules: RuleStore, path: Path, form: str | None, as_json: bool) -> None:
    """Take rules in from PATH, all or none; - for standard input. What is here already stays as it is; exit code 1 if a rule differs
    from it. A decision table in CSV names its hit policy in the first cell: unique, any, first, collect, collect < or collect >."""
    text = sys.stdin.buffer.read().decode() if str(path) == "-" else read_rules_file(path)
    report = import_table(rules, text) if _is_table(path, form) else rules.import_lines(text.split("\n"))
    told = {"added": report.added, "unchanged": report.unchanged, "refused": dict(report.refused)}
    report_import(told, f"{report.added} added, {report.unchanged} unchanged, {len(report.refused)} refused.", report.refused, as_json)
