"""Commands over the companion: what a prompt is given, what a person corrects, what was known when, and the nights."""

import click
from tqdm import tqdm

from rlm.core.clock import in_zone, to_iso
from rlm.core.errors import InvalidInput
from rlm.service.capture import decide_prompt, teach_policy
from rlm.service.cli.common import Group, example, print_json, print_rows, print_value, with_memory
from rlm.service.memory import Memory
from rlm.service.proposals import dismiss_proposal, open_proposals, propose_rejection
from rlm.service.results import memory_dict
from rlm.store.facts import Rejection


@click.command("context", epilog=example('rlm context "is it green tea?"', 'rlm context "치과는 언제 가?" --tokens 200 --json',
                                    'rlm context "what shall I drink?" --fact hour=9'))
@click.argument("query")
@click.option("--tokens", type=int, default=1024, show_default=True, help="What the block may cost, all of it.")
@click.option("-k", type=int, help="How many memories compete for room, at most; 20 unless said, of a large budget one for 20 tokens.")
@click.option("--least", type=click.FloatRange(0, 1), default=0.0, help="Relevance that a memory must have, where it is known.")
@click.option("--fact", "facts", multiple=True, help="What is known, as name=value, for the rules; may be repeated.")
@with_memory()
def context_command(memory: Memory, query: str, tokens: int, k: int | None, least: float, facts: tuple[str, ...], as_json: bool) -> None:
    "Print a block for a prompt about QUERY: what is pinned, then what answers it. Rules that apply come first, the budget is kept."
    known: dict[str, object] = {}
    if facts:
        from rlm.service.cli.rules import read_facts  # here, as it loads the language of rules
        known = read_facts(facts)
    block = memory.companion.context(query, tokens, k, door="cli", least=least, facts=known)
    if as_json:
        print_json({"text": block.text, "tokens": block.tokens, "budget": block.budget, "used": [id for id, _ in block.used],
                    "left_out": list(block.left_out), "rules": list(block.rules)})
    elif block.text:
        click.echo(block.text)
    else:
        click.echo("Nothing fits into so few tokens." if block.left_out else "Nothing is known about it.", err=True)


@click.command("audit", epilog=example('rlm audit "green tea"', "rlm audit --id tea", 'rlm audit "치과" --when 2026-05-01 --json'))
@click.argument("query", required=False)
@click.option("--id", help="A memory: its version then, and who was given it.")
@click.option("--when", help="A moment, or a day: its end. Default: now.")
@click.option("-k", type=int, default=20, show_default=True, help="How many memories and recalls, at most.")
@with_memory()
def audit_command(memory: Memory, query: str | None, id: str | None, when: str | None, k: int, as_json: bool) -> None:
    "Show what was believed about QUERY at a moment, and what had been served by then: to whom, in which version, with which score."
    found = memory.audit(when, query, id, k)
    print_json(found.as_dict()) if as_json else click.echo(str(found))


NOTHING_WAITS = "Nothing waits for a decision."


@click.group("review", cls=Group)
def review_group() -> None:
    "Correct for good: accept what is right, reject what is wrong, lift rejections."


def _rejection_dict(rejection: Rejection) -> dict[str, str | None]:
    "Return a rejection for JSON. It does not say what was rejected: the store has only its hash."
    return {"id": rejection.id, "at": to_iso(rejection.created_at), "actor": rejection.actor, "reason": rejection.reason,
            "memory_id": rejection.memory_id} | ({"note": rejection.note} if rejection.note else {})


@review_group.command(epilog=example('rlm review reject tea --reason "I never drank tea"',
                                     'rlm review reject tea --part "Green tea, not coffee"', 'rlm review reject --text "I live in Oslo."',
                                     'rlm review reject --relation residence --value Oslo',
                                     'rlm review reject --relation "사는 곳" --value 오슬로'))
@click.argument("id", required=False)
@click.option("--part", help="What is wrong of the memory ID, where the rest of it is right.")
@click.option("--text", help="Words that are wrong, instead of an ID.")
@click.option("--subject", default="user", show_default=True, help="What the wrong fact is about.")
@click.option("--relation", help="What it says of it: residence, employer, 사는 곳 …")
@click.option("--value", help="The value that is wrong.")
@click.option("--reason", help="Why, in your words. It is shown when the value is refused.")
@with_memory()
def reject(memory: Memory, id: str | None, part: str | None, text: str | None, subject: str, relation: str | None, value: str | None,
           reason: str | None, as_json: bool) -> None:
    """Refuse what the memory ID states from now on, in these words or as the same fact. It is left out of memories that state something
    else too; the others that state it are deleted."""
    made = memory.companion.reject(id, part=part, text=text, subject=subject, relation=relation, value=value, reason=reason)
    print_json(_rejection_dict(made)) if as_json else click.echo(f"Rejected. To allow it again: rlm review lift {made.id}")
    if made.note and not as_json:
        click.echo(made.note, err=True)


@review_group.command(epilog=example("rlm review accept tea", 'rlm review accept peanuts --text "I am allergic to peanuts and cashews."'))
@click.argument("id")
@click.option("--text", help="Other words for it.")
@with_memory()
def accept(memory: Memory, id: str, text: str | None, as_json: bool) -> None:
    "Confirm the memory ID: it is trusted, ends what it contradicts, and is not ended by what no person has confirmed."
    found = memory.companion.accept(id, text)
    print_json(memory_dict(found)) if as_json else click.echo(f"{found.id} is trusted: {found.text}")


@review_group.command(epilog=example("rlm review waiting", "rlm review waiting --json"))
@click.option("-k", type=int, default=20, show_default=True, help="How many, at most.")
@with_memory()
def waiting(memory: Memory, k: int, as_json: bool) -> None:
    "List the memories that no person has confirmed, or that contradict a confirmed one. They are served meanwhile, marked."
    found = memory.companion.waiting(k)
    where = memory.ctx.where
    rows = [(w.memory.id, f"{in_zone(w.memory.updated_at, where):%Y-%m-%d}", w.state, str(w.memory.provenance.get("source", "")),
             w.memory.text, ", ".join(r.id for r in w.against)) for w in found]
    print_rows(as_json, [w.as_dict() for w in found], rows, ["id", "on", "state", "source", "memory", "against"], NOTHING_WAITS)


@review_group.command(epilog=example("rlm review lift --memory tea"))
@click.argument("id", required=False)
@click.option("--memory", "rejected", help="The memory whose rejections are lifted, instead of the ID of one rejection.")
@with_memory()
def lift(memory: Memory, id: str | None, rejected: str | None, as_json: bool) -> None:
    "Allow again what the rejection ID refuses. A memory that was deleted for it comes back with `rlm memory restore ID`."
    if (id is None) == (rejected is None):
        raise InvalidInput("A rejection is named by its id, or by its memory.", "Give the id that `rlm review list` shows, or --memory.")
    chosen = [id] if id is not None else [r.id for r in memory.companion.rejections() if r.memory_id == rejected]
    if not chosen:
        raise InvalidInput(f"No rejection is of the memory {rejected!r}.", "See `rlm review list`.")
    lifted = [memory.companion.lift(one) for one in chosen]
    print_value(as_json, [_rejection_dict(r) for r in lifted], "\n".join(f"Lifted: {r.id}" for r in lifted))
    for gone in dict.fromkeys(r.memory_id for r in lifted if r.memory_id):
        click.echo(f"The memory that was deleted for it comes back with: rlm memory restore {gone}", err=True)


@review_group.command("list", epilog=example("rlm review list", "rlm review list --json"))
@with_memory()
def list_(memory: Memory, as_json: bool) -> None:
    "List what was rejected: who, when and why. What it was is not stored, only its hash."
    found = memory.companion.rejections()
    rows = [(r.id, f"{in_zone(r.created_at, memory.ctx.where):%Y-%m-%d}", r.actor, r.memory_id or "", r.reason or "") for r in found]
    print_rows(as_json, [_rejection_dict(r) for r in found], rows, ["id", "on", "by", "memory", "reason"])


@review_group.command(epilog=example('rlm review propose tea --reason "I never drank tea"'))
@click.argument("id")
@click.option("--reason", default="", help="Why it is wrong.")
@with_memory()
def propose(memory: Memory, id: str, reason: str, as_json: bool) -> None:
    "Propose that the memory ID be rejected, as an assistant does: it stands until a person rejects it."
    made = propose_rejection(memory.reader, id, reason, {"source": "cli"})
    print_json(made.as_dict()) if as_json else click.echo(f"Proposed. To reject it: rlm review reject {made.memory.id}")


@review_group.command(epilog=example("rlm review proposals", "rlm review proposals --json"))
@with_memory()
def proposals(memory: Memory, as_json: bool) -> None:
    "List the memories that were proposed to be rejected, or to be deleted with `rlm memory delete`, and why. They are served until then."
    found = open_proposals(memory.reader)
    where = memory.ctx.where
    rows = [(p.memory.id, f"{in_zone(p.at, where):%Y-%m-%d}", p.action, p.actor.get("source", ""), p.reason, p.memory.text) for p in found]
    print_rows(as_json, [p.as_dict() for p in found], rows, ["id", "on", "to", "by", "reason", "memory"], NOTHING_WAITS)


@review_group.command(epilog=example("rlm review dismiss tea"))
@click.argument("id")
@with_memory()
def dismiss(memory: Memory, id: str, as_json: bool) -> None:
    "Keep the memory ID, which was proposed to be rejected or deleted."
    found = dismiss_proposal(memory.reader, id)
    print_json(found.as_dict()) if as_json else click.echo(f"{found.memory.id} stands: {found.memory.text}")


@click.command("policy", epilog=example('rlm policy "The train was late again."', 'rlm policy "The train was late again." --feedback skip',
                                   'rlm policy "오늘 버스가 늦었어" --feedback save --json'))
@click.argument("turn")
@click.option("--feedback", help="What is right, save or skip; or how right it was, from -1 to 1; or what the person said next.")
@click.option("--session", help="Conversation whose last stored turn TURN may answer.")
@with_memory()
def policy_command(memory: Memory, turn: str, feedback: str | None, session: str | None, as_json: bool) -> None:
    "Say whether TURN is worth saving, and why. With --feedback, teach what is right: later turns like it are decided so."
    if feedback is None:
        decided = decide_prompt(memory, turn, session)
        print_json({"now": decided.as_dict()}) if as_json else click.echo(str(decided))
        return
    try:
        given: float | str = float(feedback)
    except ValueError:
        given = feedback
    taught = teach_policy(memory, turn, given, session)
    print_json(taught.as_dict()) if as_json else click.echo(str(taught))


def _show_nights(memory: Memory, as_json: bool) -> None:
    "Print the nights of a namespace, the newest first."
    found = memory.companion.nights()
    rows = [(n["night"], n["began"][:16].replace("T", " "), "yes" if n["ended"] else "cut short",
             ", ".join(f"{count} {kind}" for kind, count in n["counts"].items() if count)) for n in found]
    print_rows(as_json, found, rows, ["night", "began", "ended", "changes"], "There was no night yet.")


@click.command("sleep", epilog=example("rlm sleep --dry-run", "rlm sleep --keep --json", "rlm sleep --nights"))
@click.option("--dry-run", is_flag=True, help="Only tell what would be done.")
@click.option("--keep", is_flag=True, help="Forget nothing: merge what says the same, and store facts that are missing.")
@click.option("--undo", "night", help="Take back what this night did, except what it deleted for good.")
@click.option("--nights", is_flag=True, help="List the nights so far.")
@with_memory()
def sleep_command(memory: Memory, dry_run: bool, keep: bool, night: str | None, nights: bool, as_json: bool) -> None:
    "Merge memories that say the same, archive what is not used, save what was learned. What one night did can be undone."
    if sum((dry_run or keep, night is not None, nights)) > 1:
        raise InvalidInput("One run sleeps, undoes a night or lists them.", "Give one of --dry-run, --undo and --nights.")
    if nights:
        return _show_nights(memory, as_json)
    if night is not None:
        undone = memory.companion.undo_sleep(night)
        return print_json(undone.as_dict()) if as_json else click.echo(str(undone))
    with tqdm(desc="sleeping", disable=None, leave=False) as bar:
        def progress(done: int, planned: int) -> None:
            bar.total = planned
            bar.update(done - bar.n)
        report = memory.companion.sleep(dry_run, not keep, progress=progress)
    if as_json:
        return print_json(report.as_dict())
    click.echo(str(report))
    if report.changes and not dry_run:
        click.echo(f"To take it back: rlm sleep --undo {report.night}")
    return None
