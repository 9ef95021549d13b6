"""Commands `rlm memory …`: write, search, show, update, delete and explain memories; and `rlm conversation …`: turns in their order."""

import io
import json
import sys
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import IO, Any

import click

from rlm.core.clock import in_zone
from rlm.core.errors import InvalidInput, NotFound, suggest_existing
from rlm.core.text import clip
from rlm.service.capture import same_again
from rlm.service.proposals import memories_about
from rlm.service.cli.common import (Group, context_option, example, options, print_counts, print_json, print_rows, print_table, print_value,
                                    tell_redacted, terminal_width, text_width, with_memory)
from rlm.service.importers import kakaotalk_conversations
from rlm.service.kakaotalk import is_kakaotalk
from rlm.service.memory import Memory
from rlm.service.note_text import chat_turns
from rlm.service.results import memory_dict
from rlm.store.records import KINDS, STATUSES, MemoryRecord, read_count


@click.group("memory", cls=Group)
def memory_group() -> None:
    "Write, search and manage memories."


description_options = options(
    click.option("--tag", "tags", multiple=True, help="A tag; repeat for several."),
    click.option("--category", help="For example fact, preference, experience, technical."),
    click.option("--title", help="A short title."),
    click.option("--summary", help="One or two sentences, for when space is short."),
    click.option("--speaker", help="Who said it, by name."),
    click.option("--role", help="user, assistant, system, developer, tool or function."),
    click.option("--time", "--valid-from", "valid_from", help="When it was said or became true: 2026-01-31 or 2026-01-31T09:00:00Z."),
    click.option("--valid-to", help="When it stops being true; none: never."),
    click.option("--status", type=click.Choice(STATUSES), help="Where it stands in its life."),
    click.option("--pinned/--unpinned", default=None, help="Protect it from being forgotten."),
    click.option("--immutable", is_flag=True, default=None, help="Never change it."))


def set_options(**values: Any,  # values of options, as click passes them
          ) -> dict[str, Any]:
    "What the user really set: no Nones, no empty lists; an end that is `none` is None."
    found = {k: list(v) if isinstance(v, tuple) else v for k, v in values.items() if v is not None and v != ()}
    return found | ({"valid_to": None} if str(found.get("valid_to")).lower() == "none" and "valid_to" in found else {})


def _read_jsonl(lines: IO[str]) -> Iterator[dict[str, Any]]:
    "Yield the fields of a memory for each line of JSON; a line that is a text has that alone. Raises `InvalidInput` with its number."
    for number, line in enumerate(lines, start=1):
        if line.strip():
            try:
                item = json.loads(line)
            except (ValueError, RecursionError) as e:
                raise InvalidInput(f"Line {number} is not JSON ({e}).",
                                   "Give one JSON object a line. Nothing was stored.") from None
            if not isinstance(item, dict | str):
                raise InvalidInput(f"Line {number} is a {type(item).__name__}.",
                                   'Give objects like {"text": "…"}. Nothing was stored.')
            yield {"text": item} if isinstance(item, str) else item


def _spoken_texts(given: tuple[str, ...]) -> list[str]:
    "Return the texts that arguments stand for: words without quotes are one. Raises `InvalidInput` for words beside quoted texts."
    single = [len(t.split()) == 1 and t != "-" for t in given]
    if len(given) < 2 or not any(single):
        return list(given)
    if all(single):
        return [" ".join(given)]
    word = given[single.index(True)]
    raise InvalidInput(f"{word!r} stands beside a text of several words.", "Put quotes around each text. Nothing was stored.")


@memory_group.command(epilog=example('rlm memory write "I am allergic to peanuts." --tag health --slot B --policy link_k=8,min_w=.35',
                                     'echo "다음 주 화요일에 치과 예약이 있어" | rlm memory write -',
                                     "rlm memory write --jsonl turns.jsonl --json"))
@click.argument("text", nargs=-1)
@click.option("--jsonl", type=click.File(encoding="utf-8-sig"),
              help="Read many from a file: a JSON object of fields a line; - for standard input.")
@click.option("--id", "id_", help="An id of your own; default: a fresh one.")
@click.option("--kind", type=click.Choice(KINDS), help="Default: block.")
@click.option("--session", help="The conversation it belongs to.")
@click.option("--reply-to", help="The id of the memory it answers.")
@click.option("--slot", help="Write near this anchor: A, B, C, or auto.")
@click.option("--policy", help="How it is linked there, such as link_k=8,min_w=.35.")
@context_option
@description_options
@with_memory(makes=True)
def write(memory: Memory, text: tuple[str, ...], jsonl: IO[str] | None, id_: str | None, slot: str | None, policy: str | None,
          context: str | None, as_json: bool, **fields: Any) -> None:
    """Store each TEXT as a memory; - reads one from standard input. What is known already, word for word, is not stored again.

    Words without quotes are one memory: `rlm memory write I am allergic`."""
    common = set_options(id=id_, **fields)
    texts = [sys.stdin.buffer.read().decode() if t == "-" else t for t in _spoken_texts(text)]
    items = [{**common, "text": t} for t in texts] + [{**common, **item} for item in (_read_jsonl(jsonl) if jsonl else ())]
    if not items:
        raise InvalidInput("There is nothing to write.", "Give a text, - for standard input, or --jsonl FILE.")
    again = {n: r for n, t in enumerate(texts) if (r := same_again(memory, t, common))} if not (slot or policy or context) else {}
    new = [item for n, item in enumerate(items) if n not in again]
    stored = memory.write_many(new, slot=slot, policy=policy, context=context) if new else []
    if as_json:
        print_json([memory_dict(r) | {"duplicate": True} for r in again.values()] + [memory_dict(r) for r in stored])
    elif len(stored) <= 20:
        ended = 0
        for r in again.values():
            click.echo(f"{r.id}  known already: {clip(r.text, 75)}")
        for r in stored:
            click.echo(f"{r.id}  {clip(r.text, 90)}")
            for old in memory.superseded_by(r.id):
                click.echo(f"{'':12}  ends {'' if old.valid_to else 'a statement of '}{old.id}: {clip(old.text, 76)}")
                ended += old.valid_to is not None
        if ended:
            click.echo(HOLDS_AGAIN, err=True)
    else:
        click.echo(f"{len(stored):,} memories stored.")
    tell_redacted(*stored)


HOLDS_AGAIN = "What has ended is kept in the history; rlm memory update ID --valid-to none makes it current again."


def _read_messages(file: IO[str]) -> list[Any]:
    """Return the messages of a conversation: JSON, an object or text a line, a chat in Markdown or of KakaoTalk, or plain lines. Raises
    `InvalidInput`."""
    text = file.read()
    start = text.lstrip("\ufeff \t\r\n")[:1]
    if start in ("{", '"'):
        return list(_read_jsonl(io.StringIO(text)))
    if is_kakaotalk(text):
        return [{"speaker": t["speaker"], "text": t["text"]} for c in kakaotalk_conversations(text) for t in c.turns]
    if start != "[" and (turns := chat_turns(text)):
        return turns
    if start != "[":
        return [line for line in text.splitlines() if line.strip()]
    try:
        found = json.loads(text)
    except (ValueError, RecursionError) as e:
        raise InvalidInput(f"The conversation is not JSON ({e}).", 'Give a list like [{"role": "user", "content": "…"}].') from None
    return list(found)


def _take_session(turns: list[Any]) -> str | None:
    "Return the session that turns name; None: they name none. Raises `InvalidInput` where they are of several."
    named = {turn.pop("session") for turn in turns if isinstance(turn, dict) and "session" in turn}
    if len(named) > 1:
        raise InvalidInput(f"The turns are of {len(named)} conversations.", "Give a file for each, or --session where a command has it.")
    return next(iter(named), None)


@memory_group.command(epilog=example("rlm memory remember turns.jsonl",
                                     "echo '제 여동생은 제주에 살아요. 날씨 좋네요!' | rlm memory remember - --json"))
@click.argument("file", type=click.File(encoding="utf-8-sig"))
@click.option("--model", help="A language model that reads it: openai:NAME, anthropic:NAME; 'configured': the setting model.")
@with_memory(makes=True)
def remember(memory: Memory, file: IO[str], model: str | None, as_json: bool) -> None:
    """Note what is worth keeping of the conversation in FILE as candidates, and say why the rest is not; - for standard input.

    FILE is a JSON list of messages, a JSON object a line, a chat in Markdown or of KakaoTalk, or a line of plain text for each message of
    one person. What was noted waits for `rlm review accept` or `reject`; it is served meanwhile, marked."""
    messages = _read_messages(file)
    _take_session(messages)
    found = memory.remember(messages, model)
    if as_json:
        return print_json(found.as_dict())
    for proposed in found.as_dict()["proposed"]:
        facts = "; ".join(f"{f['subject']}, {f['relation']}: {'not ' if 'negated' in f else ''}{f['value']}" for f in proposed["facts"])
        click.echo(f"+ {proposed['id']}  {clip(proposed['text'], 90)}" + (f"  ({clip(facts, 90)})" if facts else ""))
        for old, said in ((id, text) for id, text, by in found.superseded if by == proposed["id"]):
            click.echo(f"{'':12}  ends {old}: {clip(said, 76)}")
    for words, why in found.passed_over:
        click.echo(f"- {words}: {why}" if words else f"- {why}")
    if found.superseded:
        click.echo(HOLDS_AGAIN, err=True)
    count = len(found.proposed)
    click.echo(f"{count:,} noted, and to be confirmed: rlm review waiting" if count else "Nothing was noted.", err=True)


filter_options = options(
    click.option("--tag", "tags", multiple=True, help="Only with this tag; repeat for several."),
    click.option("--match", type=click.Choice(["all", "any"]), help="Must all tags be there, or any? Default: all."),
    click.option("--category", help="Only of this category."),
    click.option("--kind", type=click.Choice(KINDS), help="Only of this kind."),
    click.option("--status", type=click.Choice([*STATUSES, "any"]), multiple=True, help="Default: hot and ltm."),
    click.option("--session", help="Only from this conversation."),
    click.option("--speaker", help="Only said by this speaker."),
    click.option("--role", help="Only said in this role."),
    click.option("--since", help="Only said or true from this time on."),
    click.option("--until", help="Only said or true before this time."),
    click.option("--valid-at", help="Only what was true at this time, by what is known now."),
    click.option("--as-of", help="What the store knew at this time, right or wrong: of a move in May that was told "
                 "in June, --valid-at 2026-05-20 finds the new home, --as-of 2026-05-20 the old one."))


def _filter_arguments(status: tuple[str, ...] = (), **filters: Any) -> dict[str, Any]:
    "Filters as `Memory.search` takes them."
    return set_options(status="any" if "any" in status else status, **filters)


def _tell_if_empty(memory: Memory) -> None:
    "Say on the standard error that the namespace holds nothing, and which ones do: its name may be misspelt."
    if not memory.stats()["memories"]:
        others = [n for n in memory.namespaces() if n != memory.ctx.namespace]
        click.echo(f"There are no memories in namespace {memory.ctx.namespace!r}."
                   + (f" {suggest_existing(memory.ctx.namespace, others)}" if others else ""), err=True)


@memory_group.command(epilog=example('rlm memory search "peanut allergy" -k 3',
                                     'rlm memory search "치과는 언제 가?" --tag health --since 2026-05-01 --json',
                                     'rlm memory search "the boat" --slot auto --radius 2 --top-k 8 --trace'))
@click.argument("query")
@click.option("-k", "--top-k", "--limit", "k", type=int, help="How many at most. Default: the setting search_k.")
@click.option("--slot", help="Say which hits lie near this anchor, and move it: A, B, C, or auto.")
@click.option("--radius", type=int, help="Links to walk from the anchor; 0: the anchor alone. Default: by its use.")
@click.option("--no-fallback", is_flag=True, help="Only what is near the anchor.")
@context_option
@click.option("--min-score", type=float, help="Least relevance, 0 to 1. Default: nothing if the best is below the floor.")
@click.option("--trace", is_flag=True, help="Show which layer gave each, and by which way.")
@filter_options
@with_memory()
def search(memory: Memory, query: str, k: int | None, slot: str | None, radius: int | None, no_fallback: bool, context: str | None,
           min_score: float | None, trace: bool, as_json: bool, **filters: Any) -> None:
    "Find the memories that fit QUERY best."
    hits = memory.search(query, k, slot=slot, radius=radius, fallback=not no_fallback, min_score=min_score, context=context,
                         **_filter_arguments(**filters))
    memory.searcher.record(hits, "cli")
    print_json(hits.as_dicts()) if as_json else click.echo(repr(hits.trace()) if trace else hits.text(terminal_width(), text_width()))
    if as_json and hits.waiting:
        click.echo(hits.still_waiting, err=True)
    if not hits:
        _tell_if_empty(memory)
    if hits.source != "index" and hits.filters.as_of is None:
        found = "Found by full text alone" if hits.source == "full text" else "Nothing was looked for"
        click.echo(f"{found}: the search index is being built, and this command ends when it is.", err=True)


@memory_group.command("list", epilog=example("rlm memory list -k 5 --tag health", "rlm memory list --ended"))
@click.option("-k", "--limit", "k", type=int, default=10, show_default=True, help="How many at most.")
@click.option("--ended", is_flag=True, help="Those whose time is over: superseded or expired.")
@filter_options
@with_memory()
def list_(memory: Memory, k: int, ended: bool, as_json: bool, **filters: Any) -> None:
    "List the memories stored last, newest first."
    given = _filter_arguments(**filters)
    page = None if ended else memory.list(k, **given)
    found = memory.reader.ended(k, given) if page is None else page
    where = memory.ctx.where
    rows = [[r.id, f"{in_zone(r.valid_from, where):%Y-%m-%d}", r.status, ", ".join(r.tags), clip(r.text, text_width())] for r in found]
    for row, record in zip(rows, found if ended else (), strict=False):
        by = memory.reader.ended_by(record.id)
        over = in_zone(record.valid_to or record.valid_from, where)
        row[2:3] = [f"{over:%Y-%m-%d}", "" if by is None else f"{by.id}: {clip(by.text, text_width())}"]
    print_rows(as_json, [memory_dict(r) for r in found], rows,
               ["id", "from", *(("ended", "by") if ended else ("status",)), "tags", "memory"])
    if page is not None and page.next_cursor is not None:
        click.echo(f"These are the newest {k:,}; -k {2 * k} shows more.", err=True)
    if not found and not ended:
        _tell_if_empty(memory)


@memory_group.command(epilog=example("rlm memory show tea", "rlm memory show tea --as-of 2026-05-01 --json"))
@click.argument("id")
@click.option("--as-of", help="The version that was present at this time.")
@with_memory()
def show(memory: Memory, id: str, as_of: str | None, as_json: bool) -> None:
    "Show the memory ID, whole."
    found = memory_dict(memory.get(id, as_of), memory.links(id) if as_of is None else ())
    if as_json:
        print_json(found)
    else:
        print_table([(k, clip(str(v), 100)) for k, v in found.items() if k != "text"], ["field", "value"])
        click.echo("\n" + "".join(c if c.isprintable() or c in "\n\t" else "\ufffd" for c in str(found["text"])))


@memory_group.command(epilog=example('rlm memory explain "green tea" tea'))
@click.argument("query")
@click.argument("id")
@filter_options
@with_memory()
def explain(memory: Memory, query: str, id: str, as_json: bool, **filters: Any) -> None:
    "Explain why the memory ID is found for QUERY, or why not."
    why = memory.explain(query, id, **_filter_arguments(**filters))
    print_json(why.as_dict()) if as_json else click.echo(repr(why))


@memory_group.command(epilog=example("rlm memory history tea"))
@click.argument("id")
@with_memory()
def history(memory: Memory, id: str, as_json: bool) -> None:
    "Show every version of the memory ID and what happened to it, also after its deletion."
    story = memory.history(id)
    print_json(story.as_dict()) if as_json else click.echo(repr(story))
    if story.past:
        click.echo(f"If it holds after all: rlm memory update {id} --valid-to none", err=True)


@memory_group.command(epilog=example("rlm memory stats --json"))
@with_memory()
def stats(memory: Memory, as_json: bool) -> None:
    "Count the memories by kind, status and category, and show how large the store is."
    found = memory.stats()
    print_counts(as_json, found)


@memory_group.command(epilog=example('rlm memory update tea --text "Mina prefers black tea." --tag drinks',
                                     "rlm memory update tea --status archived"))
@click.argument("id")
@click.option("--text", help="The new words.")
@click.option("--formal", help="Of a rule: when CONDITION then OUTCOME.")
@description_options
@with_memory()
def update(memory: Memory, id: str, as_json: bool, **fields: Any) -> None:
    "Make a new version of the memory ID; the old one stays in its history. Tags given replace all tags."
    changes = set_options(**fields)
    if not changes:
        raise InvalidInput("There is nothing to change.", "Give at least one option, for example --text.")
    changed = memory.update(id, **changes)
    print_value(as_json, memory_dict(changed), f"{changed.id}  version {changed.version}  {clip(changed.text, 90)}")
    tell_redacted(changed)


@memory_group.command(epilog=example("rlm memory restore tea"))
@click.argument("id")
@with_memory()
def restore(memory: Memory, id: str, as_json: bool) -> None:
    "Bring the deleted memory ID back, as its next version; what was erased is gone."
    back = memory.restore(id)
    print_value(as_json, memory_dict(back), f"{back.id}  version {back.version}  {clip(back.text, 90)}")


@memory_group.command(epilog=example("rlm memory delete tea", "rlm memory delete tea --erase --yes"))
@click.argument("id", nargs=-1, required=True)
@click.option("--erase", is_flag=True, help="Leave no trace: every version, index entry and freed byte.")
@click.option("--force", is_flag=True, help="Also immutable memories.")
@click.option("--restart", is_flag=True, help="Their conversations begin anew: the same words are stored again.")
@click.option("--yes", is_flag=True, help="Don't ask before erasing.")
@with_memory()
def delete(memory: Memory, id: tuple[str, ...], erase: bool, force: bool, restart: bool, yes: bool, as_json: bool) -> None:
    "Delete each memory ID; its history stays, and restore brings it back. With --erase, nothing of it is left in the file."
    if erase and not yes:
        texts = [memory.history(one).versions[-1].text for one in id]  # what is not there is said before anything is asked
        click.confirm(f"Erase {f'{len(id)} memories' if len(id) > 1 else repr(clip(texts[0], 60))} for good?", abort=True, err=True)
    ended = _ended_by(memory, id)
    _report_deleted(memory, memory.delete(list(id), erase=erase, force=force, restart=restart), erase, as_json, ended=ended)


def _ended_by(memory: Memory, ids: Sequence[str]) -> list[MemoryRecord]:
    "The memories that others have ended, which are not among them."
    found = dict[str, MemoryRecord]()
    for one in ids:
        with suppress(NotFound):  # one that is deleted already, and is to be erased, ends nothing
            found |= {r.id: r for r in memory.superseded_by(one) if r.id not in ids and r.valid_to is not None}
    return list(found.values())


def _report_deleted(memory: Memory, count: int, erase: bool, as_json: bool, ids: Sequence[str] = (),
                    ended: Sequence[MemoryRecord] = ()) -> None:
    "Print how many memories were deleted or erased, what is current again without them, and which copies may still hold their text."
    copies, again = memory.copies() if erase else [], [r for r in ended if memory.get(r.id).valid_to is None]
    if as_json:
        chosen = ({"ids": list(ids)} if ids else {}) | ({"current_again": [r.id for r in again]} if again else {})
        return print_json(({"erased": count, "copies": list(map(str, copies))} if erase else {"deleted": count}) | chosen)
    click.echo(f"{count} {'memory' if count == 1 else 'memories'} {'erased' if erase else 'deleted'}.")
    for one in again:
        click.echo(f"  Current again, as what had ended it is gone: {one.id}  {clip(one.text, 100)}")
    for copy in copies:
        click.echo(f"  A copy made earlier may still hold the text: {copy}")


@memory_group.command(epilog=example('rlm memory forget "the garage code" --yes', "rlm memory forget 차고 --keep tea --erase --yes"))
@click.argument("about")
@click.option("--keep", multiple=True, help="The id of one that stays; repeat for several.")
@click.option("--erase", is_flag=True, help="Leave no trace: every version, index entry and freed byte.")
@click.option("--yes", is_flag=True, help="Don't ask.")
@with_memory()
def forget(memory: Memory, about: str, keep: tuple[str, ...], erase: bool, yes: bool, as_json: bool) -> None:
    """Show every memory about ABOUT, ask, and delete them; their history stays. With --erase, nothing of them is left in the file.

    About it is what has every word of it, also what has ended or is archived, and what most likely answers it. Immutable memories stay."""
    found = [r for r in memories_about(memory.searcher, about) if r.id not in keep and not r.immutable]
    if not as_json:
        click.echo("\n".join(f"{r.id}  {clip(r.text, text_width())}" for r in found) or f"Nothing is known about {clip(about)!r}.")
    if found and not yes:
        click.confirm(f"{'Erase' if erase else 'Forget'} {'this' if len(found) == 1 else f'these {len(found)}'}?", abort=True, err=True)
    ids = [r.id for r in found]
    ended = _ended_by(memory, ids)
    _report_deleted(memory, memory.delete(ids, erase=erase) if found else 0, erase, as_json, ids, ended)


@memory_group.command(epilog=example('rlm memory recall "peanut allergy" -k 3', 'rlm memory recall "치과는 언제 가?" --json'))
@click.argument("query")
@click.option("-k", "--top-k", "--limit", "k", type=int, help="How many at most. Default: the setting search_k.")
@filter_options
@with_memory()
def recall(memory: Memory, query: str, k: int | None, as_json: bool, **filters: Any) -> None:
    "Find the memories that fit QUERY best, from working memory if that is enough."
    said = memory.intelligent_search(query, k=k, **_filter_arguments(**filters))
    if as_json:
        print_json(said | {"results": [h.as_dict() for h in said["results"]]})
    else:
        click.echo(said["results"].text(terminal_width(), text_width()))
        click.echo(f"from {said['source']}")


@memory_group.command(epilog=example('rlm memory used tea --query "what do I drink?" --helped 1', "rlm memory used tea --failed 1 --json"))
@click.argument("id")
@click.option("--query", help="The question that it was found for; `rlm train-ranker` learns from it.")
@click.option("--helped", type=int, default=0, help="How often it helped.")
@click.option("--failed", type=int, default=0, help="How often it misled.")
@with_memory()
def used(memory: Memory, id: str, query: str | None, helped: int, failed: int, as_json: bool) -> None:
    "Report that the memory ID was used, and how it went."
    if (found := memory.get(id)).kind == "rule":
        raise InvalidInput(f"The memory {found.id!r} is a rule.", f"Report it with: rlm rules used {found.id} --helped 1")
    counts = {"success": read_count(helped, "--helped"), "failure": read_count(failed, "--failed")}
    memory.record_usage(id, **counts, query=query)
    found = memory.get(id)
    print_value(as_json, {"id": found.id, "success": found.success, "failure": found.failure, "access_count": found.access_count},
                f"{found.id}  used {found.access_count} times: {found.success} helped, {found.failure} failed")


@click.group("conversation", cls=Group)
def conversation_group() -> None:
    "Store the turns of a conversation, and read them."


@conversation_group.command("add", epilog=example("rlm conversation add turns.jsonl",
                                                  "rlm conversation add turns.jsonl --session june --json"))
@click.argument("file", type=click.File(encoding="utf-8-sig"))
@click.option("--session", help="The conversation; one that is there is continued. Default: as the first turn says, else a new one.")
@with_memory(makes=True)
def add(memory: Memory, file: IO[str], session: str | None, as_json: bool) -> None:
    """Store the turns in FILE, all or none; - for standard input.

    FILE is as `rlm memory remember` reads it: a JSON list, or an object a line, of text, speaker, role, time …"""
    turns = _read_messages(file)
    if not turns:
        raise InvalidInput("There is no turn to store.", 'Give one a line, such as {"speaker": "Mina", "text": "…"}.')
    if session is not None:
        turns = [{n: v for n, v in turn.items() if n != "session"} if isinstance(turn, dict) else turn for turn in turns]
    stored = memory.add_conversation(turns, where := _take_session(turns) if session is None else session)
    name = stored[0].session if stored else where  # none is left where all were deleted
    print_value(as_json, [memory_dict(r) for r in stored], f"{len(stored):,} turns stored in conversation {name}.")
    tell_redacted(*stored)
    for number, why in stored.refused.items():
        click.echo(f"left out turn {number + 1}: {why}", err=True)


@conversation_group.command("show", epilog=example("rlm conversation show s", "rlm conversation show s -k 20 --json"))
@click.argument("session")
@click.option("-k", type=int, default=100, show_default=True, help="How many of the last turns.")
@with_memory()
def show_turns(memory: Memory, session: str, k: int, as_json: bool) -> None:
    "Print the last turns of the conversation SESSION, in order."
    turns = list(reversed(memory.list(k, session=session, status="any")))
    if not turns:
        raise NotFound(f"There is no conversation {session[:60]!r} in namespace {memory.ctx.namespace!r}.", "Check its name, or add it.")
    where = memory.ctx.where
    rows = [(f"{in_zone(t.valid_from, where):%Y-%m-%d %H:%M}", t.speaker or t.role or "", " ".join(t.text.split())) for t in turns]
    print_rows(as_json, [memory_dict(t) for t in turns], rows, ["when", "who", "said"])
