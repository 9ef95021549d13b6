"""What all commands share: options, output, and errors without tracebacks."""

import codecs
import errno
import io
import json
import os
import re
import shutil
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import redirect_stderr
from functools import partial, wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from rlm.core.errors import InvalidInput, MissingExtra, NotFound, RlmError, StoreError, guess, nearest, our_names

if TYPE_CHECKING:
    from rlm.core.settings import Settings
    from rlm.store.records import MemoryRecord


class CliError(click.ClickException):
    "An error of ours, shown without a traceback; exit code 1."

    def __init__(self,
                 error: RlmError,  # its message and hint are shown
                 as_json: bool = False,  # shown as JSON
                 ) -> None:
        super().__init__(error.message)
        self.hint, self.as_json = error.hint, as_json

    def show(self,
             file: Any = None,  # click's; not used
             ) -> None:
        "Message and hint, on the standard error; as JSON where the command was asked for JSON."
        if self.as_json:
            print_json({"error": {"message": self.message, "hint": self.hint}}, err=True)
            return
        click.echo(f"Error: {self.message}", err=True)
        if self.hint:
            click.echo(f"  {self.hint}", err=True)


class _JsonUsageError(click.UsageError):
    "Words that no command understands, where the command was asked for JSON; exit code 2."

    def show(self, file: Any = None) -> None:
        "Message and hint, as JSON on the standard error."
        print_json({"error": {"message": self.format_message(), "hint": "See --help."}}, err=True)


class _NoInput(io.RawIOBase):
    "A standard input that was closed."

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        raise InvalidInput("There is no standard input.", "It was closed; give a file, or a pipe.")


def _fit_streams() -> None:
    "Let the standard streams take and give what they can."
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    if sys.stdin is None:
        sys.stdin = io.TextIOWrapper(io.BufferedReader(_NoInput()), encoding="utf-8")


def _from_system(e: OSError) -> RlmError:
    "An error of the system as one of ours."
    if e.filename is not None:
        return StoreError(f"{os.fsdecode(e.filename)!r} can't be used ({e.strerror}).", "Check the path, and what you may do there.")
    if e.errno == errno.ENOENT:
        return StoreError("The working folder is gone.", "Change to one that is there.")
    try:
        print(end="", flush=True)
    except OSError as full:  # what is left must go somewhere, or Python tries again at its end, and tells of it
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return StoreError(f"The output can't be written ({full.strerror}).", "Make room, or write it elsewhere.")
    return StoreError(f"The system refused to read or write: {e.strerror or e}.", "Check what the command is given.")


EXTRAS = {"pyoxigraph": "agent", "rdflib": "agent", "oxrdflib": "agent", "pydantic_monty": "agent", "httpx": "openai",
          "z3": "rules", "fastapi": "serve", "starlette": "serve", "pydantic": "serve", "uvicorn": "serve",
          "prometheus_client": "serve", "opentelemetry": "otel", "mcp": "mcp", "mcp_types": "mcp",
          "numba": "fast", "dp_accounting": "federation", "cryptography": "federation"}  # package → what brings it


def _missing_extra(error: ModuleNotFoundError) -> MissingExtra:
    "Say which package is not installed, and the line that installs it. An error that is about no package of an extra is raised again."
    package = (error.name or "").partition(".")[0]
    if package not in EXTRAS:
        raise error
    return MissingExtra(f"This command needs the package {package}, which is not installed.",
                        f"Install it with: pip install 'rlm[{EXTRAS[package]}]'")


VALUED = ("--db", "-n", "--namespace", "--config")  # options of a store, which may stand before the command, too
FLAGS = ("--json", "--quiet", "-q")
QUIET, JSON = "rlm.quiet", "rlm.json"  # what the context of a run keeps


def _options_last(args: Sequence[str]) -> list[str]:
    "Return the words with options that stand before a command after it; without a command, as they are."
    moved, at = list[str](), 0
    while at < len(args) and args[at].startswith("-"):
        word, size = args[at], 2 if args[at] in VALUED else 1
        if not (word in (*VALUED, *FLAGS) or word.startswith(tuple(f"{v}=" for v in VALUED if v != "-n"))
                or (word.startswith("-n") and len(word) > 2)):
            return list(args)
        moved += args[at:at + size]
        at += size
    if not moved or at >= len(args):
        return list(args)
    rest = list(args[at:])
    end = rest.index("--") if "--" in rest else len(rest)
    return [*rest[:end], *moved, *rest[end:]]


def _usage_error(error: click.UsageError, as_json: bool) -> click.ClickException:
    "Return the error as it is shown: by click, with the usage, or as JSON. An option that there is not is told with the one that is meant."
    if isinstance(error, click.NoSuchOption) and error.ctx is not None:
        options = {opt.lstrip("-").replace("-", "_"): opt for p in error.ctx.command.params for opt in p.opts if opt.startswith("-")}
        near = nearest(name := error.option_name.lstrip("-").replace("-", "_"), options)
        if said := f"Did you mean {options[near]!r}?" if near else guess(name, ()):
            error = click.UsageError(f"No such option {error.option_name!r}. {said}", error.ctx)
    return _JsonUsageError(error.format_message(), error.ctx) if as_json else error


PLACES = ("memory", "namespaces", "config", "db", "review", "mcp")  # groups in which a command is looked for that people type without one


def _usual_command(ctx: click.Context, word: str) -> str:
    "Return a sentence about where the command is that a word means, by our name or another library's; empty: it is not known."
    group, root = ctx.command, ctx.find_root()
    assert isinstance(group, click.Group) and isinstance(root.command, click.Group)
    if ctx.parent is not None and group.invoke_without_command and "serve" in our_names(word):
        return f"It is: {ctx.command_path}"  # *mcp start*
    groups = [(ctx.command_path, group), ("rlm", root.command)]
    if ctx.parent is None:
        groups += [(f"rlm {name}", found) for name in PLACES if isinstance(found := root.command.get_command(root, name), click.Group)]
    for path, place in groups:
        if ours := next((name for name in our_names(word) if name in place.list_commands(ctx)), ""):
            return f"It is: {path} {ours}"
    return guess(word, group.list_commands(ctx))


class Group(click.Group):
    """A group of commands whose errors are shown as `CliError`. Options of the store may stand before the command's name; `--quiet`
    anywhere silences what is told beside the result."""

    def parse_args(self,
                   ctx: click.Context,  # click's context of this run
                   args: list[str],     # words after the group's name
                   ) -> list[str]:
        "Read the words; notes whether the run is quiet, and whether it is about JSON."
        args = _options_last(args)
        if ctx.parent is None:
            end = args.index("--") if "--" in args else len(args)
            said = args[:end]
            ctx.meta[QUIET], ctx.meta[JSON] = bool({"--quiet", "-q"} & set(said)), "--json" in said
            args = [word for word in said if word not in ("--quiet", "-q")] + args[end:]
        try:
            return super().parse_args(ctx, args)
        except click.UsageError as e:
            raise _usage_error(e, bool(ctx.meta.get(JSON))) from e

    def resolve_command(self,
                        ctx: click.Context,  # click's context of this run
                        args: list[str],     # words after the group's name
                        ) -> tuple[str | None, click.Command | None, list[str]]:
        "Return the command that the first word names. Raises `click.UsageError`, which tells where what people look for is."
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError as e:
            if said := _usual_command(ctx, args[0]):
                raise click.UsageError(f"No such command {args[0]!r}. {said}", ctx) from e
            raise

    def invoke(self,
               ctx: click.Context,  # click's context of this run
               ) -> Any:
        "Run the command; turn our errors, and the system's, into click's."
        if ctx.parent is not None:
            return self._run(ctx)
        _fit_streams()
        if not ctx.meta.get(QUIET):
            return self._run(ctx)
        with open(os.devnull, "w", encoding="utf-8") as nowhere, redirect_stderr(nowhere):
            return self._run(ctx)

    def _run(self, ctx: click.Context) -> Any:
        as_json = bool(ctx.meta.get(JSON))
        try:
            return super().invoke(ctx)
        except RlmError as e:
            raise CliError(e, as_json) from e
        except ModuleNotFoundError as e:
            raise CliError(_missing_extra(e), as_json) from e
        except UnicodeError as e:  # also of words from the command line that are none
            raise CliError(InvalidInput("The input is not UTF-8 text.", "Convert it first. Nothing was stored."), as_json) from e
        except OSError as e:
            if e.errno == errno.EPIPE:  # a reader that has seen enough, which click knows
                raise
            raise CliError(_from_system(e), as_json) from e
        except click.UsageError as e:
            raise _usage_error(e, as_json) from e


Decorator = Callable[[Any], Any]


def options(*decorators: Decorator,  # results of `click.option`
            ) -> Decorator:
    "Several click options as one decorator, in the order given."
    return partial(_decorate, decorators)


def _decorate(decorators: Sequence[Decorator], command: Any) -> Any:
    for decorate in reversed(decorators):
        command = decorate(command)
    return command


store_options = options(
    click.option("--db", type=click.Path(path_type=Path), help="The store, a file or postgresql://… Default: the setting db_path."),
    click.option("-n", "--namespace", help="The partition. Default: the setting namespace."),
    click.option("--config", type=click.Path(path_type=Path), help="A settings file instead of the usual ones."))
context_option = click.option("--context", help="A conversation that has anchors of its own. Default: those of the namespace.")
json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON.")


only_option = click.option("--only", help="The same as -n.")


def one_namespace(named: str | None,  # value of -n, checked; None: it was not given
                  only: str | None,   # value of --only; None: it was not given
                  ) -> str | None:    # None: the whole store
    "Return the namespace that an export is limited to. Raises `InvalidInput` when the two options name two."
    from rlm.core.text import valid_label
    if only is None:
        return named
    only = valid_label(only, "namespace")
    if named not in (None, only):
        raise InvalidInput(f"-n names {named!r} and --only names {only!r}.", "Give one of them.")
    return only


def refuse_namespace(namespace: str | None,  # value of the option -n; None: it was not given
                     what: str,              # subject of the sentence, such as "A backup"
                     ) -> None:
    "Raise `InvalidInput` when a command that works on the whole store is given one namespace."
    if namespace is not None:
        raise InvalidInput(f"{what} is of the whole store, never of one namespace.",
                           f"Leave -n out; one namespace is written with: rlm db export FILE -n {namespace}")


def refuse_missing_store(db: "str | Path",  # path or address of a store
                         ) -> None:
    "Raise `NotFound` for a file that is not there: a command that reads makes none."
    if not _is_there(db):
        from rlm.core.files import read_path
        raise NotFound(f"There is no store at {str(read_path(db))!r}.", "Write a memory first, or give the right file with --db.")


def _is_there(db: "str | Path") -> bool:
    from rlm.core.files import read_path, server_url
    return server_url(path := read_path(db)) is not None or os.path.exists(path)


def store_from_anywhere(db: "str | Path",  # path or address of a store
                        ) -> str:
    "Return a store as a program that starts in another folder finds it. A password stays out, which is said on the standard error."
    from rlm.core.files import hidden_password, read_path, server_url
    if (url := server_url(db)) is None:
        path = read_path(db).absolute()
        return str(path.resolve() if ".." in path.parts else path)
    bare = re.sub(r":\*\*\*(?=@)|(?<=[?&])password=\*\*\*&?", "", shown := hidden_password(url))
    if bare != shown:
        click.echo("The password of the store is left out: put it into ~/.pgpass, which libpq reads.", err=True)
    return bare


def _namespace_here(settings: "Settings") -> str:
    "Return a namespace of the very store that settings name, to open it by for what is of the whole store. Raises `StoreError`."
    from rlm.core.files import server_url
    if (url := server_url(settings.db_path)) is None:
        return settings.namespace
    from rlm.store.postgres.cluster import namespace_of_instance
    return namespace_of_instance(url, settings.namespace)


def with_memory(makes: bool = False,  # may the command make a store that is not there yet?
                whole: str = "",      # act of the command, if that is never of one namespace: then -n is refused
                named: bool = False,  # should the command be told, as `named`, the namespace that -n names, if it does?
                held: bool = False,   # must the store hold something of a namespace that is named?
                ) -> Decorator:
    "Add `store_options` and `--json` to a command, and pass it the opened `Memory` as its first argument."
    def decorate(command: Callable[..., None]) -> Any:
        @store_options
        @json_option
        @wraps(command)
        def run(*args: Any, db: "str | Path | None", namespace: str | None, config: Path | None, **kwargs: Any) -> None:
            from rlm.core.settings import load_settings
            from rlm.service.memory import Memory
            if whole:
                refuse_namespace(namespace, whole)
            if not makes:
                refuse_missing_store(load_settings(config, db_path=db).db_path)
            if kwargs.get("dry_run") and not _is_there(load_settings(config, db_path=db).db_path):
                db = ":memory:"  # a dry run makes no store
            opened = namespace if namespace is not None or not (whole or named) else _namespace_here(load_settings(config, db_path=db))
            with Memory(db, namespace=opened, config=config) as memory:
                if held and (wanted := kwargs.get("only") or namespace) is not None:
                    memory.admin.find_namespace(wanted)  # an export of a misspelt one would replace a good file
                told = {"named": None if namespace is None else memory.ctx.namespace} if named else {}
                command(memory, *args, **told, **kwargs)
        return run
    return decorate


def print_json(value: Any,         # value that JSON can hold; anything else is written with `str`
               err: bool = False,  # on the standard error, where the output is something else
               ) -> None:
    "One JSON value, readable, real characters where the stream has them."
    name = getattr(sys.stderr if err else sys.stdout, "encoding", None) or "utf-8"
    click.echo(json.dumps(value, ensure_ascii=codecs.lookup(name).name != "utf-8", indent=2, default=str), err=err)


def print_table(rows: Sequence[Sequence[object]],  # cells, written as they are
                headers: Sequence[str],            # one a column
                ) -> None:
    "A table that fits the terminal; wide characters are counted as wide."
    from rlm.core.tables import text_table
    click.echo(text_table(headers, rows, terminal_width()))


def print_value(as_json: bool,  # print JSON
                value: Any,     # value that JSON can hold
                text: str,      # the same in words
                ) -> None:
    "One value, as JSON or in words."
    print_json(value) if as_json else click.echo(text)


def tell_redacted(*records: "MemoryRecord") -> None:  # memories that were stored just now
    "Say on the standard error which kinds of secrets were cut out of memories; nothing where none was."
    if kinds := sorted({kind for r in records for kind in r.redacted}):
        click.echo(f"Cut out before it was stored: {', '.join(kinds)} (setting secrets).", err=True)


def print_rows(as_json: bool,                     # print JSON
               value: Any,                        # value that JSON can hold
               rows: Sequence[Sequence[object]],  # the same as cells
               headers: Sequence[str],            # one a column
               none: str = "",                    # sentence in the place of a table without rows
               ) -> None:
    "One value, as JSON or as a table."
    if as_json:
        print_json(value)
    elif none and not rows:
        click.echo(none)
    else:
        print_table(rows, headers)


def print_counts(as_json: bool,             # print JSON
                 value: Mapping[str, Any],  # name → figure, or figures by name
                 ) -> None:
    "Figures, as JSON or as a table without empty rows."
    rows = [(k, ", ".join(f"{n:,} {w}" for w, n in v.items()) if isinstance(v, dict) else v) for k, v in value.items() if v != {}]
    print_rows(as_json, value, rows, ["", "value"])


def terminal_width() -> int | None:
    "The columns of the terminal; None where the output goes to a file or another program, which may have any."
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else None


def text_width() -> int:
    "The longest text of a memory in a table: 60 characters in a terminal, all of it in a file or for another program."
    return 60 if sys.stdout.isatty() else 1_000_000


def report_import(told: Mapping[str, Any],     # report of the import, for JSON
                  line: str,                   # the same in words
                  refused: Mapping[str, str],  # id → why
                  as_json: bool,               # True: JSON is wanted
                  ) -> None:
    "What an import did. The command ends with exit code 1 if it refused something."
    if as_json:
        print_json(told)
    else:
        click.echo("\n".join([line, *(f"  {id}: {why}" for id, why in refused.items())]))
    if refused:
        sys.exit(1)


def write_export(target: "str | Path",  # a file, or - for the standard output
                 lines: Iterable[str],  # without line ends
                 ) -> int:              # number of them
    "Write what a command exports: UTF-8, wherever it goes, for that is what imports read. Raises `StoreError`."
    if str(target) != "-":
        from rlm.core.files import replace_file
        return replace_file(target, lines)
    count = 0
    for line in lines:
        click.echo(line.encode())
        count += 1
    return count


def report_export(target: "str | Path",  # a file, or - for the standard output
                  count: int,            # number of written lines
                  what: str,             # noun: lines, links, rules …
                  as_json: bool,         # whether it is told as JSON
                  ) -> None:
    "What an export did, beside what it wrote."
    streamed = str(target) == "-"
    if as_json:
        print_json({what: count, "path": str(target)}, err=streamed)
    elif not streamed:
        click.echo(f"{count:,} {what} written to {target}.")


def example(*lines: str,  # commands as one types them
            ) -> str:
    "The epilog of a command's help: commands to copy. Each of them is run by the tests."
    return "\b\nExamples:\n" + "\n".join(f"  {line}" for line in lines)
