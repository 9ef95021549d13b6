"""Commands `rlm conversation …`: turns that belong together, stored and read in order."""

from typing import IO

import click

from rlm.core.errors import InvalidInput, NotFound
from rlm.service.cli.common import Group, example, print_rows, print_value, with_memory
from rlm.service.cli.memory import read_jsonl, take_session
from rlm.service.memory import Memory
from rlm.service.results import memory_dict


@click.group("conversation", cls=Group)
def conversation_group() -> None:
    "Store the turns of a conversation, and read them."


@conversation_group.command("add", epilog=example("rlm conversation add turns.jsonl",
                                                  "rlm conversation add turns.jsonl --session june --json"))
@click.argument("file", type=click.File(encoding="utf-8"))
@click.option("--session", help="The conversation; one that is there is continued. Default: as the first turn says, else a new one.")
@with_memory(makes=True)
def add(memory: Memory, file: IO[str], session: str | None, as_json: bool) -> None:
    """Store the turns in FILE, all or none; - for standard input.

    FILE has a JSON object a line: text, speaker, role, time …"""
    turns = list(read_jsonl(file))
    if not turns:
        raise InvalidInput("There is no turn to store.", 'Give one a line, such as {"speaker": "Mina", "text": "…"}.')
    if session is not None:
        turns = [{name: value for name, value in turn.items() if name != "session"} for turn in turns]
    stored = memory.add_conversation(turns, take_session(turns) if session is None else session)
    print_value(as_json, [memory_dict(r) for r in stored], f"{len(stored):,} turns stored in conversation {stored[0].session}.")


@conversation_group.command("show", epilog=example("rlm conversation show s", "rlm conversation show s -k 20 --json"))
@click.argument("session")
@click.option("-k", type=int, default=100, show_default=True, help="How many of the last turns.")
@with_memory()
def show(memory: Memory, session: str, k: int, as_json: bool) -> None:
    "Print the last turns of the conversation SESSION, in order."
    turns = list(reversed(memory.list(k, session=session)))
    if not turns:
        raise NotFound(f"There is no conversation {session[:60]!r} in namespace {memory.ctx.namespace!r}.", "Check its name, or add it.")
    rows = [(f"{t.valid_from:%Y-%m-%d %H:%M}", t.speaker or t.role or "", " ".join(t.text.split())) for t in turns]
    print_rows(as_json, [memory_dict(t) for t in turns], rows, ["when", "who", "said"])
