"""The command line as a person meets it, in a folder and a home of its own. Every example in the help is run, and every mistake ends
in one sentence. Commands run in this process; what only a process shows runs the installed `rlm`, as test_documents does."""
import contextlib
import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import traceback
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner, Result

from rlm import Memory
from rlm.agent.memory.strategy import Strategy
from rlm.agent.ontology.rdf_client import find_ontology
from rlm.core.clock import ManualClock
from rlm.core.errors import NotFound
from rlm.core.settings import KNOWN
from rlm.rules import RuleStore
from rlm.service.cli import main
from rlm.store.records import Event
from rlm.store.transfer.export import export_file, export_lines

ROOT = Path(__file__).resolve().parents[2]
RLM = Path(sys.executable).with_name("rlm")
STORE = Path(".rlm") / "memory.db"  # where the settings' default has it, from the home


def walk(command: click.Command, name: str, above: click.Context | None = None) -> Iterator[click.Context]:
    "A command and all below it, as `rlm`, `rlm db`, `rlm db check` …"
    ctx = click.Context(command, above, name, **command.context_settings)
    yield ctx
    if isinstance(command, click.Group):
        for inner in command.list_commands(ctx):
            found = command.get_command(ctx, inner)
            assert found, inner
            yield from walk(found, inner, ctx)


pytestmark = pytest.mark.usefixtures("bare")
COMMANDS = list(walk(main, "rlm"))
LEAVES = [ctx for ctx in COMMANDS if not isinstance(ctx.command, click.Group)]


def examples(ctx: click.Context) -> list[str]:
    "The lines under `Examples:` in a command's help."
    _, mark, lines = (ctx.command.epilog or "").partition("Examples:\n")
    assert mark, f"{ctx.command_path} has no examples"
    return [line.strip() for line in lines.splitlines() if line.strip()]


EXAMPLES = [pytest.param(line, marks=pytest.mark.nightly if line.startswith("rlm bench") else ())
            for line in dict.fromkeys(line for ctx in COMMANDS if ctx.command.epilog for line in examples(ctx))
            if not line.startswith(("rlm-agent", "rlm cluster"))]  # test_agent_cli and test_cluster run those
# what an example takes for granted, beside the prepared folder
BEFORE = {"rlm review dismiss": "rlm review propose tea",
          "rlm review lift": "rlm review reject tea", "rlm memory restore": "rlm memory delete tea",
          "rlm anchors hops": "rlm anchors set A tea",
          "rlm conversation show": "rlm conversation add turns.jsonl",
          "rlm db restore": "rlm db backup monday.db", "rlm strategies export": "rlm strategies import core_v1",
          "rlm federation invite": "rlm federation init family", "rlm federation status": "rlm federation init family",
          "rlm federation leave": "rlm federation init family", "rlm federation run": "rlm federation init family",
          "rlm anchors import": "rlm anchors export anchors.json", "rlm graph import": "rlm graph export graph.jsonl"}


# ---------------------------------------------------------------- a place to run it in

@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    "A home with a store, and the files that the examples name."
    home = tmp_path_factory.mktemp("home")
    clock = ManualClock("2026-04-01T09:00:00Z")
    (home / STORE).parent.mkdir()
    with Memory(home / STORE, clock=clock) as memory:
        memory.write("민아는 커피보다 녹차를 좋아한다. Green tea, not coffee.", id="tea", tags=["음료"], speaker="민아")
        memory.write("I am allergic to peanuts.", id="peanuts", tags=["health"], category="fact")
        memory.write("다음 주 화요일에 치과 예약이 있어", id="dentist", tags=["health"], valid_from="2026-05-12")
        memory.write("Never change.", id="stone", immutable=True)
        clock.advance(days=60)
        memory.update("tea", category="preference")
        shutil.copy(memory.backup(home / "copy"), home / "notes.db")
        (home / "copy").unlink()
    with RuleStore(home / STORE, clock=clock) as rules:
        rules.add_rule("아침에는 차. Tea.", rule_id="morning", formal="when hour < 11 then drink = 'tea'", tags=["drinks"])
        rules.add_rule("Offer a cola.", rule_id="cola", formal="when meeting then drink = 'cola'", status="held")
        rules.export_jsonl(home / "rules.jsonl")
        (home / "drinks.csv").write_text('first,when 시각,then 음료\n차,< 11,"""차"""\n물,-,"""물"""\n', encoding="utf-8")
        with rules.backend.transaction() as tx:  # as `ConflictResolver.record` logs it
            detail = {"rules": ["cola", "morning"], "stage": "vote", "winners": ["morning"], "losers": ["cola"], "disproved": []}
            tx.log([Event(clock.now(), "conflict", "c1", rules.namespace, detail)])
    with Memory(home / STORE, namespace="agent-7", clock=clock) as memory:
        memory.write("Only agent 7 knows this.", id="seven")
        memory.export_jsonl(home / "store.jsonl")
    asked = [("which peanuts am I allergic to", "peanuts"), ("green tea or coffee", "tea"), ("치과 예약은 언제야", "dentist")]
    labelled = [{"query": f"{q} {n}", "relevant": [i], "group": str(n % 4)} for n in range(8) for q, i in asked]
    (home / "labelled.jsonl").write_text("\n".join(json.dumps(line) for line in labelled), encoding="utf-8")
    expected = [{"query": "green tea or coffee", "expect": ["tea"]}, {"query": "치과 예약은 언제야", "expect": ["치과 예약"]}]
    (home / "questions.jsonl").write_text("\n".join(json.dumps(line) for line in expected), encoding="utf-8")
    (home / ".rlm" / "tokens").write_text(f"{'5e' * 32}\tdefault\twrite\n", encoding="utf-8")
    (home / ".rlm" / "tokens").chmod(0o600)
    turns = [{"id": "t0", "session": "s", "text": "언제 만날까?"}, {"id": "t1", "session": "s", "reply_to": "t0", "text": "Tuesday!"}]
    said = [{"dia_id": "D1:1", "speaker": "Mina", "text": "I moved to Busan."}, {"dia_id": "D1:2", "speaker": "Joon", "text": "When?"}]
    asked = {"question": "Where did Mina move?", "category": 4, "evidence": ["D1:1"]}
    chat = {"sessions": [{"session": 1, "date": "1:56 pm on 8 May, 2023", "turns": said}], "qa": [asked]}
    (home / "locomo").mkdir()
    (home / "locomo" / "conv-1.json").write_text(json.dumps(chat), encoding="utf-8")
    turn = {"id": 0, "role": "user", "session": 0, "date": "March-15-2024", "text": "My flight leaves at six."}
    long_chat = {"turns": [turn], "questions": [{"question": "When is my flight?", "kind": "temporal", "evidence": [0]}]}
    (home / "beam").mkdir()
    (home / "beam" / "chat-1.json").write_text(json.dumps(long_chat), encoding="utf-8")
    stream = [{"id": f"a:{n}", "text": text, "role": "user", "session": n, "date": "2026-01-05"}
              for n, text in enumerate(["I fly at six.", "And then?"])]
    (home / "realmem").mkdir()
    (home / "realmem" / "Ann.json").write_text(json.dumps({"turns": stream, "questions": [
        {"q": "When do I fly?", "evidence": ["a:0"], "before_session": 1}]}), encoding="utf-8")
    pair = {"group": "particles", "scene": 1, "question": {"ko": "어디로 이사했어?", "en": "Where did I move?"},
            "memory": {"ko": "부산으로 이사했다.", "en": "I moved to Busan."}}
    (home / "pairs.jsonl").write_text(json.dumps(pair) + "\n", encoding="utf-8")
    life = {"life": "one", "language": "en", "split": "dev", "questions": [
        {"question": "Who has the key?", "type": "single", "gold": ["m1"]}, {"question": "Which car?", "type": "unanswerable", "gold": []}],
        "items": [{"id": "m1", "kind": "fact", "when": "2025-01-02", "text": "The spare key is with Mrs. Okafor."}]}
    (home / "lives.jsonl").write_text(json.dumps(life) + "\n", encoding="utf-8")
    situation = {"split": "dev", "language": "en", "tools": ["memory_stats"], "says": "How many things do you remember?"}
    (home / "situations.jsonl").write_text(json.dumps(situation) + "\n", encoding="utf-8")
    looks = '```repl\nsearch_entity("term")\nFINAL("I do not know: nothing fits.")\n```'
    (home / "replies.json").write_text(json.dumps([looks] * 25), encoding="utf-8")
    (home / "data").mkdir()
    shutil.copytree(ROOT / "nbs" / "95_bench" / "results", home / "results")
    for name in ("turns", "turns_late", "nonconflicts", "merges"):
        lines = (ROOT / "tests" / "data" / f"companion_{name}.jsonl").read_text(encoding="utf-8").splitlines()
        (home / "data" / f"companion_{name}.jsonl").write_text("\n".join(lines[::11]), encoding="utf-8")
    question = {"question": "Who has the key?", "type": "single", "gold": ["m1"], "answer_words": ["Okafor"]}
    shutil.copy(ROOT / "tests" / "data" / "supersession_pairs.jsonl", home / "data")
    (home / "data" / "lives.jsonl").write_text(json.dumps(life | {"questions": [question]}) + "\n", encoding="utf-8")
    (home / "ontology").mkdir()
    shutil.copy(ROOT / "ontology" / "skos.ttl", home / "ontology")
    shutil.copy(ROOT / "docs" / "curricula" / "skos_v1.yaml", home)
    node = {"message": {"id": "m1", "author": {"role": "user"}, "content": {"parts": ["Which boat?"]}}, "parent": None, "children": []}
    tree = [{"conversation_id": "c1", "title": "Boats", "mapping": {"m1": node}, "current_node": "m1"}]
    (home / "conversations.json").write_text(json.dumps(tree), encoding="utf-8")
    with zipfile.ZipFile(home / "claude-export.zip", "w") as archive:
        chat = [{"uuid": "c1", "name": "Boats", "chat_messages": [{"uuid": "m1", "sender": "human", "text": "Which boat?"}]}]
        archive.writestr("conversations.json", json.dumps(chat))
    (home / "notes").mkdir()
    (home / "notes" / "boat.md").write_text("# Boat\n\nThe filter is changed in May.\n", encoding="utf-8")
    (home / "facts.jsonl").write_text('{"text": "The boiler is serviced in November."}\n', encoding="utf-8")
    (home / "turns.jsonl").write_text("".join(json.dumps(t) + "\n" for t in turns), encoding="utf-8")
    return home


@pytest.fixture
def home(prepared: Path, tmp_path: Path) -> Path:
    "A copy of the prepared home, for one test to do with as it likes."
    return Path(shutil.copytree(prepared, tmp_path / "home"))


Done = subprocess.CompletedProcess[bytes]


def settings_of(home: Path, words: Sequence[str | bytes], variables: Mapping[str, str]) -> dict[str, str]:
    "The environment of a command: the prepared home, none of our variables but those given."
    model = {} if "reembed" in words else {"RLM_EMBEDDER": "none"}  # what needs no model is not slowed down by one
    return {"HOME": str(home), "LC_ALL": "C.UTF-8", **model, **variables}


def run(home: Path, *words: str | bytes, stdin: bytes = b"", **variables: str) -> Done:
    "Run `rlm` in this process with the prepared home as both home and working folder."
    env: dict[str, str | None] = {n: None for n in os.environ if n.startswith(("RLM_", "AIMEMORY_"))} | settings_of(home, words, variables)
    with contextlib.chdir(home):
        done = CliRunner().invoke(main, [os.fsdecode(w) for w in words], stdin, env, prog_name="rlm", terminal_width=78)
    failed = done.exception is not None and not isinstance(done.exception, SystemExit)
    trace = "".join(traceback.format_exception(done.exception)).encode() if failed else b""
    return Done(words, done.exit_code, done.stdout_bytes, done.stderr_bytes + trace)


def process(home: Path, *words: str | bytes, stdin: bytes = b"", **variables: str) -> Done:
    "Run the installed `rlm` in the same way."
    env = {n: v for n, v in os.environ.items() if not n.startswith(("RLM_", "AIMEMORY_"))} | settings_of(home, words, variables)
    return subprocess.run([RLM, *words], cwd=home, env=env, input=stdin, capture_output=True, check=False)


def shell(home: Path, line: str) -> Done:
    "Run a line as a shell would: words in quotes, pipes, `>` into a file; programs are `echo` and `rlm`."
    lexer = shlex.shlex(line, posix=True, punctuation_chars="|>")
    lexer.whitespace_split = True
    words = list(lexer)
    target = words[-1] if words[-2:-1] == [">"] else None
    stages: list[list[str]] = [[]]
    for word in words[:-2] if target else words:
        stages.append([]) if word == "|" else stages[-1].append(word)
    done = Done([], 0, b"", b"")
    for program, *rest in stages:
        if program == "echo":
            done = Done([], 0, (" ".join(rest) + "\n").encode(), b"")
        else:
            assert program == "rlm", f"an example runs {program}"
            running = process if rest[0] == "bench" else run  # a benchmark forks, sets limits and starts servers
            done = running(home, *rest, stdin=done.stdout)
        assert done.returncode == 0, f"{line}\n{done.stderr.decode()}"
    if target:
        (home / target).write_bytes(done.stdout)
    return done


def started(home: Path, line: str) -> Done:
    "Run a line that goes on until it is told to stop, and tell it."
    env = {n: v for n, v in os.environ.items() if not n.startswith("RLM_")}
    env |= {"HOME": str(home), "RLM_EMBEDDER": "none", "RLM_SERVE_PORT": "0"}
    with subprocess.Popen([RLM, *line.split()[1:]], cwd=home, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        try:
            assert process.stdout is not None
            said = process.stdout.readline()
            process.send_signal(signal.SIGINT)
            out, err = process.communicate(timeout=120)
        finally:
            process.kill()
    assert process.returncode == 0, err.decode()
    return Done(line, process.returncode, said + out, err)


# ---------------------------------------------------------------- the help, and what it says

@pytest.mark.parametrize("ctx", COMMANDS, ids=lambda ctx: ctx.command_path)
def test_every_command_has_help_and_examples(ctx: click.Context, prepared: Path) -> None:
    done = run(prepared, *ctx.command_path.split()[1:], "--help")
    text = done.stdout.decode()
    assert (done.returncode, done.stderr) == (0, b"")
    assert f"Usage: {ctx.command_path}" in text
    said = (ctx.command.help or "").split("\n")[0].split(":")[0]
    assert said in re.sub(r"\s+", " ", text)
    assert (" " in said and not re.match(r"(An?|The|What|How|Which|Every|Each)\b", said)) or ctx.parent is None, "help begins with a verb"
    if ctx.parent is None or ctx in LEAVES:
        assert all(f"  {line}\n" in text for line in examples(ctx)), "an example is broken over lines"


@pytest.mark.parametrize(("line", "stdin"), [
    ("", b""), ("--version", b""), ("memory search --help", b""), ("memory search 녹차 --json", b""), ("memory show nobody", b""),
    ("memory serch tea", b""), ("memory write -", b"\xff\xfe"), ("db export -", b""), ("rules list", b""),
    ("memory list --db typo.db --json", b"")])
def test_the_installed_program_says_the_same(line: str, stdin: bytes, home: Path) -> None:
    here, there = (program(home, *shlex.split(line), stdin=stdin) for program in (run, process))
    now = rb'"exported_at": ?[^,}]+'
    assert (here.returncode, re.sub(now, b"", here.stdout), here.stderr) == (there.returncode, re.sub(now, b"", there.stdout), there.stderr)


def test_the_short_option_does_the_same(prepared: Path) -> None:
    for words in [[], ["db"], ["memory", "search"]]:
        assert run(prepared, *words, "-h").stdout == run(prepared, *words, "--help").stdout


@pytest.mark.parametrize("line", EXAMPLES)
def test_every_example_runs(line: str, home: Path) -> None:
    for start, first in BEFORE.items():
        if line.startswith(start):
            shell(home, first)
    done = started(home, line) if line.startswith(("rlm serve", "rlm mcp --http", "rlm proxy")) else shell(home, line)
    assert done.stdout.strip()
    assert b"Traceback" not in done.stderr
    if "--json" in line:
        json.loads(done.stdout)


def test_a_line_is_read_as_a_shell_reads_it(home: Path) -> None:
    shell(home, 'echo "물을 | 마시자 > 지금" | rlm memory write - --id water')
    shell(home, "rlm memory show water --json > shown.json")
    assert json.loads((home / "shown.json").read_text(encoding="utf-8"))["text"] == "물을 | 마시자 > 지금\n"


def test_two_stores_are_joined_by_a_pipe(home: Path) -> None:
    done = shell(home, "rlm db export - | rlm db import - --db other.db --json")
    assert json.loads(done.stdout)["added"] == 7
    assert run(home, "memory", "show", "tea", "--db", "other.db").returncode == 0


REFUSED = ("rlm db backup", "rlm db restore", "rlm db check", "rlm namespaces", "rlm reembed")  # they are of the whole store
ONE_SPACE = [line for ctx in LEAVES if any(p.name == "namespace" for p in ctx.command.params) and ctx.command.name not in ("serve", "proxy")
             for line in examples(ctx) if not set("|>") & set(line)]


def rows_of_carol(home: Path) -> list[str]:
    "All that the store holds of one namespace."
    with Memory(home / STORE, namespace="carol", clock=ManualClock("2026-05-01T00:00:00Z"), read_only=True) as memory:
        return list(export_lines(memory.backend, memory.clock.now(), "carol"))


def test_a_namespace_that_is_named_is_the_only_one_touched(prepared: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    "Every example of every command, with -n default, beside the rows of carol: none shows them, writes them to a file or changes them."
    secret = "xylophone"
    own = Path(shutil.copytree(prepared, tmp_path / "own"))
    with RuleStore(own / STORE, namespace="carol", clock=ManualClock("2026-05-01T00:00:00Z")) as rules:
        rules.add_rule(f"No {secret} at night.", rule_id="quiet", tags=[secret])
    with Memory(own / STORE, namespace="carol", clock=ManualClock("2026-05-01T00:00:00Z")) as memory:
        memory.write(f"I play the {secret}.", id="tea", tags=[secret], speaker=secret, title=secret, session=secret)
        memory.write(f"Not the {secret}!", id="peanuts", reply_to="tea", session=secret)
        memory.link("tea", "peanuts", secret)
    whole, before, worked = own / "whole.jsonl", rows_of_carol(own), 0
    with Memory(own / STORE) as memory:
        export_file(memory.backend, whole, memory.clock.now())
    for number, line in enumerate([*ONE_SPACE, "rlm db import whole.jsonl --db other.db"]):
        home = Path(shutil.copytree(own, tmp_path / str(number)))
        monkeypatch.chdir(home)
        monkeypatch.setenv("HOME", str(home))
        lines = [first for start, first in BEFORE.items() if line.startswith(start) and start not in REFUSED] + [line]
        for words in map(shlex.split, lines):
            done = CliRunner().invoke(main, [*words[1:], "-n", "default"], env={"RLM_EMBEDDER": "none"})
            assert secret not in done.output and not isinstance(done.exception, AssertionError), line
        if line.startswith(REFUSED):
            assert done.exit_code == 1 and "of the whole store" in done.stderr, line
        worked += done.exit_code == 0
        made = [p for p in home.rglob("*") if p.is_file() and p != home / whole.name and not p.is_relative_to((home / STORE).parent)]
        assert not [p for p in made if secret.encode() in p.read_bytes()], line
        assert rows_of_carol(home) == before, line
    assert worked > len(ONE_SPACE) * 0.7


def test_an_import_takes_the_named_namespace_out_of_a_file_that_holds_others(home: Path) -> None:
    assert run(home, "db", "export", "both.jsonl").returncode == 0
    done = run(home, "db", "import", "both.jsonl", "-n", "agent-7", "--db", "new.db", "--json")
    told = json.loads(done.stdout)
    assert (done.returncode, told["added"]) == (0, 1) and told["left_out"] > 4
    with Memory(home / "new.db") as memory:
        assert memory.stats()["memories"] == 0 and memory.check() == []
    assert run(home, "memory", "show", "seven", "-n", "agent-7", "--db", "new.db").returncode == 0
    done = run(home, "db", "import", "store.jsonl", "-n", "carol", "--db", "new.db")
    assert done.returncode == 1 and b"nothing of the namespace 'carol', only of 'agent-7'" in done.stderr
    assert run(home, "db", "export", "-", "-n", "default", "--only", "agent-7").returncode == 1


def test_every_command_and_setting_is_in_the_documentation() -> None:
    notebooks = [json.loads(p.read_text(encoding="utf-8")) for p in sorted((ROOT / "nbs").rglob("[!_.]*.ipynb"))]
    cells = [cell for notebook in notebooks for cell in notebook["cells"]]
    said = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "markdown"]
    outputs = [o for cell in cells for o in cell.get("outputs", [])]
    said += ["".join(o.get("text", [])) for o in outputs]
    said += ["".join(o.get("data", {}).get("text/markdown", [])) for o in outputs]
    said += [p.read_text(encoding="utf-8") for p in [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]]
    text = "\n".join(said)
    assert not [ctx.command_path for ctx in COMMANDS if not re.search(rf"{ctx.command_path}\b", text)]
    assert not [name for name in KNOWN if not re.search(rf"\b{name}\b", text)]


# ---------------------------------------------------------------- mistakes

def damaged(home: Path) -> None:
    "The store with everything behind its first page overwritten."
    data = (home / STORE).read_bytes()
    (home / STORE).write_bytes(data[:4096] + b"\xa5" * (len(data) - 4096))
    for end in ("-wal", "-shm"):
        (home / f"{STORE}{end}").unlink(missing_ok=True)


def foreign(home: Path) -> None:
    "A picture where the store should be."
    (home / STORE).write_bytes(b"\x89PNG" * 1000)


def misspelt(home: Path) -> None:
    "A settings file with a key that is nearly right."
    (home / "rlm.yaml").write_text("serch_k: 3\n", encoding="utf-8")


OTHER_NAMES = (  # what users of other programs type first, and what they are told
    ("namespaces delete x", "It is: rlm namespaces erase"), ("namespaces rm x", "It is: rlm namespaces erase"),
    ("collections", "It is: rlm namespaces"), ("users", "It is: rlm namespaces"), ("insert x", "It is: rlm memory write"),
    ("memory get-all", "It is: rlm memory list"), ("memory ls", "It is: rlm memory list"), ("memory count", "It is: rlm memory stats"),
    ("memory reset", "rlm namespaces erase NAME"), ("memory context x", "It is: rlm context"), ("mcp start", "It is: rlm mcp"),
    ("start", "It is: rlm serve"), ("db migrate", "upgraded when it is opened"),
    ("version", "rlm --version"), ("check", "It is: rlm db check"), ("init", "It is: rlm config init"),
    ("export --output x.jsonl", "rlm export FILE"),
    ("export -o x.jsonl", "rlm export FILE"), ("memory search tea --user-id alice", "Did you mean '--namespace'?"),
    ("memory search tea --format json", "Did you mean '--json'?"),
    ("memory search tea --sinc 2026", "Did you mean '--since'?"),
    ("memory search tea --threshold 0.3", "Did you mean '--min-score'?"), ("memory write x --labels a", "Did you mean '--tag'?"))
LONG = "x" * 300  # more than a file's name may have
MISTAKES: list[tuple[str, int, str, bytes, Callable[[Path], None] | None]] = [
    # what is typed; the exit code; what the message says; the standard input; what is wrong with the place
    ("memory search tea --colour red", 2, "No such option '--colour'", b"", None),
    ("memory serch tea", 2, "No such command 'serch'", b"", None),
    ("memory search", 2, "Missing argument 'QUERY'", b"", None),
    ("search tea", 2, "It is: rlm memory search", b"", None), ("memory add tea", 2, "It is: rlm memory write", b"", None),
    ("memry list", 2, "Did you mean 'memory'?", b"", None), ("tokens remove x", 2, "It is: rlm tokens revoke", b"", None),
    *((words, 2, said, b"", None) for words, said in OTHER_NAMES),
    ("memory delete nobody --erase", 1, "'nobody'", b"", None),  # before it asks
    ("memory search tea -k many", 2, "'many' is not a valid integer", b"", None),
    ("memory list --kind note", 2, "'note' is not one of", b"", None),
    ("memory write --jsonl missing.jsonl", 2, "missing.jsonl", b"", None),
    ("memory show nobody", 1, "no memory 'nobody'", b"", None),
    ("memory show tea -n nowhere", 1, "namespace 'nowhere'", b"", None),
    ("memory history nobody", 1, "'nobody'", b"", None),
    ("memory explain tea nobody", 1, "'nobody'", b"", None),
    ("memory update nobody --text x", 1, "'nobody'", b"", None),
    ("memory update tea", 1, "nothing to change", b"", None),
    ("memory update stone --text x", 1, "'stone' is immutable", b"", None),
    ("memory delete tea nobody", 1, "'nobody'", b"", None),
    ("memory delete stone", 1, "'stone' is immutable", b"", None),
    ("memory write again --id tea", 1, "'tea'", b"", None),
    ("memory write x --reply-to nobody", 1, "'nobody'", b"", None),
    ("memory write", 1, "nothing to write", b"", None),
    ("memory write '   '", 1, "text is blank", b"", None),
    ("memory write -", 1, "text is blank", b"\n", None),
    ("memory write -", 1, "not UTF-8", b"\xff\xfe", None),
    ("memory write --jsonl -", 1, "not UTF-8", b'{"text": "\xff"}\n', None),
    ("memory write --jsonl -", 1, "Line 2 is not JSON", b'{"text": "a"}\nb\n', None),
    ("memory write --jsonl -", 1, "Line 1 is a list", b"[1]\n", None),
    ("memory write --jsonl -", 1, "no field 'colour'", b'{"text": "a", "colour": "red"}\n', None),
    ("memory write x --time yesterday", 1, "'yesterday' is not a date or time", b"", None),
    ("memory write x --valid-from yesterday", 1, "'yesterday' is not a date or time", b"", None),
    ("memory search '  '", 1, "query is blank", b"", None),
    ("memory search tea -k 0", 1, "k is 0", b"", None),
    ("memory search tea --since 2026-13-01", 1, "'2026-13-01' is not a date or time", b"", None),
    ("memory search tea --since 2026-02-01 --until 2026-01-01", 1, "not after since", b"", None),
    ("memory show tea --as-of soon", 1, "'soon' is not a date or time", b"", None),
    ("memory search tea --db typo.db", 1, "no store at 'typo.db'", b"", None),
    (f"memory search tea --db {LONG}", 1, "no store at", b"", None),
    ("memory search tea --db .", 1, "is a folder", b"", None),
    ("memory write x --db .", 1, "is a folder", b"", None),
    ("memory write x --db notes.db/x.db", 1, "notes.db", b"", None),
    ("memory search tea -n ' '", 1, "namespace", b"", None),
    ("memory search tea", 1, "damaged", b"", damaged),
    ("memory search tea", 1, "memory.db", b"", foreign),
    ("memory search tea", 1, "unknown key 'serch_k'", b"", misspelt),
    ("config", 1, "unknown key 'serch_k'", b"", misspelt),
    ("config --config nowhere.yaml", 1, "settings file 'nowhere.yaml' can't be read", b"", None),
    (f"config --config {LONG}", 1, "can't be read (File name too long)", b"", None),
    ("memory import core_v9", 1, "pack 'core_v9' can't be read", b"", None),
    ("memory import turns.jsonl", 1, "Line 1 of the pack is no strategy", b"", None),
    ("memory export missing/mine_v1.jsonl", 1, "can't be written", b"", None),
    ("memory export mine_v1.yaml", 1, "would be a file in YAML", b"", None),
    ("memory export mine_v1.jsonl --db typo.db", 1, "no store at 'typo.db'", b"", None),
    ("memory train nowhere.yaml", 1, "curriculum 'nowhere.yaml' can't be read", b"", None),
    ("memory train turns.jsonl", 1, "turns.jsonl", b"", None),
    ("memory report --db typo.db", 1, "no store at 'typo.db'", b"", None),
    ("db check --db typo.db", 1, "no store at 'typo.db'", b"", None),
    ("db check", 1, "damaged", b"", damaged),
    ("db backup notes.db", 1, "exists already", b"", None),
    ("db restore missing.db --yes", 1, "can't be read (No such file", b"", None),
    (f"db restore {LONG} --yes", 1, "can't be read (File name too long)", b"", None),
    (f"db restore notes.db --db {LONG} --yes", 1, "can't be replaced (File name too long)", b"", None),
    ("db restore notes.db --db notes.db/x/y.db --yes", 1, "can't be replaced (Not a directory)", b"", None),
    (f"db backup {LONG}", 1, "can't be written (File name too long)", b"", None),
    (f"db export {LONG}", 1, "can't be written (File name too long)", b"", None),
    ("db restore turns.jsonl --yes", 1, "turns.jsonl", b"", None),
    ("db export missing/store.jsonl", 1, "can't be written", b"", None),
    ("db import turns.jsonl", 1, "not an export", b"", None),
    ("db import -", 1, "not UTF-8", b"\xff", None),
    ("export", 1, "no format", b"", None),
    ("export --rdf --only nowhere", 1, "nothing in namespace 'nowhere'", b"", None),
    ("export --rdf missing/notes.ttl", 1, "can't be written", b"", None),
    ("rules add x --formal 'when hour < then y'", 1, "at character 11", b"", None),
    ("rules add x --formal 'when __import__(1) then y'", 1, "a call is not part of the language", b"", None),
    ("rules add", 1, "needs its words", b"", None),
    ("rules add again --id tea", 1, "'tea'", b"", None),
    ("rules add again --id morning", 1, "'morning'", b"", None),
    ("rules show nobody", 1, "no rule 'nobody'", b"", None),
    ("rules show tea", 1, "is a block, not a rule", b"", None),
    ("rules history nobody", 1, "'nobody'", b"", None),
    ("rules used nobody --helped 1", 1, "no rule 'nobody'", b"", None),
    ("rules used morning --failed -1", 1, "--failed is -1", b"", None),
    ("rules used morning --helped -1", 1, "--helped is -1", b"", None),
    ("rules used morning --helped 1 --at 2026-06-01T09:00", 1, "no time zone", b"", None),
    ("rules used morning --helped 1 --at 2100-01-01", 1, "in the future", b"", None),
    ("rules apply hour", 1, "'hour' is no fact", b"", None),
    ("rules apply 1st=2", 1, "no name of a fact", b"", None),
    ("rules apply --facts -", 1, "are not JSON", b"{", None),
    ("rules apply --facts -", 1, "are a list", b"[]", None),
    ("rules list --status warm", 2, "'warm' is not one of", b"", None),
    ("rules hold cola --db typo.db", 1, "no store at 'typo.db'", b"", None),
    ("rules promote nobody", 1, "no rule 'nobody'", b"", None),
    ("rules run-jobs --now tomorrow", 1, "'tomorrow' is not a date or time", b"", None),
    ("rules import missing.jsonl", 1, "can't be read", b"", None),
    ("rules import turns.jsonl", 1, "Line 1 is no rule", b"", None),
    ("rules import -", 1, "not UTF-8", b"\xff", None),
    ("serve --port 0 --db .", 1, "is a folder", b"", None),
    ("serve --port 99999", 1, "serve_port", b"", None),
    ("serve --host 0.0.0.0 --token-file typo", 1, "no token file 'typo'", b"", None),
    ("serve --traces mail", 1, "traces", b"", None),
    ("tokens revoke nobody", 1, "no token 'nobody'", b"", None),
    ("tokens add --right all", 2, "'all' is not one of", b"", None),
    ("tokens add -n ' '", 1, "namespace", b"", None),
    ("tokens add --expires 2020-01-01", 1, "is past", b"", None),
    ("tokens add --expires soon", 1, "can't be read", b"", None),
    ("tokens rotate nobody", 1, "no token 'nobody'", b"", None),
    ("tokens rotate 5e5e5e5e --grace long", 1, "span of time 'long'", b"", None),
    ("tokens list --token-file turns.jsonl", 1, "Line 1 of the token file", b"", None),
    ("rules export missing/rules.jsonl", 1, "can't be written", b"", None),
    (f"rules export {LONG}", 1, "can't be written (File name too long)", b"", None),
    (f"anchors export {LONG}", 1, "can't be written (File name too long)", b"", None),
]


def store_of(home: Path) -> list[Any]:
    "What the store holds, if it can be read."
    with Memory(home / STORE, read_only=True) as memory:
        return memory.backend.db.query("SELECT * FROM events") + memory.backend.db.query("SELECT * FROM memories")


def said(done: Done) -> str:
    "What an error told; it is one sentence and perhaps a hint, and no traceback."
    text = done.stderr.decode()
    assert text.count("Error: ") == 1 and text.splitlines()[-1 if done.returncode == 2 else 0].startswith("Error: "), text
    assert "Traceback" not in text and len(text.splitlines()) <= 4, text
    assert done.stdout == b""
    return text


@pytest.mark.parametrize(("line", "code", "message", "stdin", "spoil"), MISTAKES,
                         ids=[f"{m[0]}{' …' * bool(m[3])}".replace(LONG, "LONG") for m in MISTAKES])
def test_a_mistake_is_one_sentence(line: str, code: int, message: str, stdin: bytes, spoil: Callable[[Path], None] | None,
                                   home: Path) -> None:
    before = store_of(home)
    if spoil:
        spoil(home)
    files = sorted(home.rglob("*"))
    done = run(home, *shlex.split(line), stdin=stdin)
    assert done.returncode == code, done.stderr.decode()
    assert message in said(done)
    assert [f for f in sorted(home.rglob("*")) if f.suffix not in (".db-wal", ".db-shm")] == [
        f for f in files if f.suffix not in (".db-wal", ".db-shm")], "it left a file behind"
    if spoil in (None, misspelt):
        (home / "rlm.yaml").unlink(missing_ok=True)
        assert store_of(home) == before


def test_bytes_that_are_no_text_are_refused(home: Path) -> None:
    for words in [["memory", "write", b"a\xffb"], ["memory", "search", b"\xff"], ["memory", "show", b"\xff"],
                  ["memory", "write", "x", "--tag", b"\xff"], ["memory", "show", "tea", "-n", b"\xff"]]:
        done = run(home, *words)
        assert done.returncode in (1, 2), words
        said(done)


@pytest.mark.parametrize(("variable", "value"), [("RLM_SEARCH_K", "many"), ("RLM_DB_PAHT", "x.db"), ("RLM_CONFIG", "nowhere.yaml")])
def test_a_wrong_variable_is_named(variable: str, value: str, home: Path) -> None:
    done = run(home, "memory", "search", "tea", **{variable: value})
    assert done.returncode == 1
    assert variable in said(done)


def test_a_reader_that_goes_away_is_no_error(home: Path) -> None:
    env = {**os.environ, "HOME": str(home)}
    with subprocess.Popen([RLM, "db", "export", "-"], cwd=home, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as asked:
        assert asked.stdout and asked.stderr
        asked.stdout.close()
        assert b"Traceback" not in asked.stderr.read()


# ---------------------------------------------------------------- what programs read

@pytest.mark.parametrize("line", [
    "memory write '하늘은 파랗다' --json", "memory search 녹차 --json", "memory list --json", "memory show tea --json",
    "memory explain 녹차 tea --json", "memory history tea --json", "memory update tea --text '홍차로 바꿨다' --json",
    "config --db 기억.db --json", "memory write --jsonl turns.jsonl --json"])
def test_json_holds_korean_as_it_is(line: str, home: Path) -> None:
    done = run(home, *shlex.split(line))
    text = done.stdout.decode()
    assert done.returncode == 0, done.stderr.decode()
    assert re.search("[가-힣]", text)
    assert "\\u" not in text
    assert json.loads(text)


@pytest.mark.parametrize("ctx", [ctx for ctx in LEAVES if any(p.name == "as_json" for p in ctx.command.params)
                                 and not ctx.command_path.startswith(("rlm bench", "rlm agent", "rlm cluster"))],
                         ids=lambda ctx: ctx.command_path)
def test_every_command_that_offers_json_prints_it(ctx: click.Context, home: Path) -> None:
    line = examples(ctx)[0]
    for start, first in BEFORE.items():
        if line.startswith(start):
            shell(home, first)
    json.loads(shell(home, line if "--json" in line else f"{line} --json").stdout)


# ---------------------------------------------------------------- what can't be undone asks first

def test_erasing_asks(home: Path) -> None:
    for answer, code in [(b"n\n", 1), (b"", 1), (b"\n", 1), (b"y\n", 0)]:
        done = run(home, "memory", "delete", "tea", "--erase", stdin=answer)
        assert (done.returncode, "Erase '민아는".encode() in done.stderr) == (code, True)
        assert run(home, "memory", "show", "tea").returncode == 1 - code
    assert run(home, "memory", "history", "tea").returncode == 0  # an event says that there was one
    assert "녹차".encode() not in (home / STORE).read_bytes()


def test_restoring_asks(home: Path) -> None:
    run(home, "memory", "write", "since the backup", "--id", "new")
    for answer, code in [(b"n\n", 1), (b"", 1), (b"y\n", 0)]:
        done = run(home, "db", "restore", "notes.db", stdin=answer)
        assert (done.returncode, b"Replace " in done.stderr) == (code, True)
        assert run(home, "memory", "show", "new").returncode == 1 - code
    assert len(list((home / STORE).parent.glob("memory.db.replaced-*"))) == 1


def test_a_store_is_not_restored_from_itself_by_whatever_name(home: Path) -> None:
    (home / "link.db").symlink_to(home / STORE)
    (home / "hard.db").hardlink_to(home / STORE)
    before = (home / STORE).read_bytes()
    for name in (str(STORE), "link.db", "hard.db"):
        done = run(home, "db", "restore", name, "--yes")
        assert done.returncode == 1 and b"is the store itself; nothing was changed" in done.stderr
    assert (home / STORE).read_bytes() == before and not list((home / STORE).parent.glob("memory.db.replaced-*"))


def test_a_new_settings_file_says_whether_it_is_read(home: Path) -> None:
    assert b"Written to rml_config.yaml. It is read in this folder.\n" in run(home, "config", "init").stdout
    (home / "rml_config.yaml").rename(home / "rlm.yaml")
    done = run(home, "config", "init")
    assert done.returncode == 1 and b"Settings are read from 'rlm.yaml'" in done.stderr and not (home / "rml_config.yaml").exists()
    assert b"It is read where it is named: --config team.yaml, or RLM_CONFIG." in run(home, "config", "init", "team.yaml").stdout
    (home / "rlm.yaml").rename(home / ".rlm" / "rlm.yaml")
    said = json.loads(run(home, "config", "init", "--json").stdout)
    assert said["path"] == "rml_config.yaml" and said["instead_of"].endswith(".rlm/rlm.yaml")
    assert b"file rml_config.yaml" in run(home, "config").stdout


def test_a_rotated_token_says_how_long_the_old_one_works(home: Path) -> None:
    done = run(home, "tokens", "rotate", "5e5e5e5e", "--grace", "2h")
    assert b"Token 5e5e5e5e, which it replaces, works until 20" in done.stderr and len(done.stdout.strip()) == 47
    new = json.loads(run(home, "tokens", "list", "--json").stdout)[1]["id"]
    done = run(home, "tokens", "rotate", new)
    assert f"Token {new}, which it replaces, is refused from now on.".encode() in done.stderr
    found = json.loads(run(home, "tokens", "rotate", "5e5e5e5e", "--grace", "1h", "--json").stdout)
    assert found["replaced"]["id"] == "5e5e5e5e" and found["replaced"]["works_until"].startswith("20")


def test_a_copy_that_may_still_hold_the_text_is_named(home: Path) -> None:
    run(home, "db", "restore", "notes.db", "--yes")
    done = run(home, "memory", "delete", "tea", "--erase", "--yes")
    assert b"may still hold the text" in done.stdout and b"memory.db.replaced-" in done.stdout


def test_a_check_that_finds_something_ends_with_one(home: Path) -> None:
    with Memory(home / STORE) as memory:
        memory.backend.db.query("UPDATE memories SET text = 'tampered with' WHERE id = 'tea'")
    done = run(home, "db", "check", "--json")
    assert done.returncode == 1 and json.loads(done.stdout)["ok"] is False
    assert run(home, "db", "check", "--repair").returncode == 0


@pytest.mark.parametrize(("line", "text"), [
    ("eval FILE", '{"query": "tea", "expect": ["tea"]}'), ("memory write --jsonl FILE", '{"text": "The kettle is blue."}'),
    ("conversation add FILE", '{"speaker": "Mina", "text": "The kettle is red."}'), ("import FILE --format jsonl", '{"text": "A kettle."}'),
    ("import FILE", '{"text": "The other kettle."}'), ("memory remember FILE", '[{"role": "user", "content": "My sister lives in Jeju."}]'),
    ("rules apply --facts FILE", '{"hour": 9}'), ("rules import FILE", '{"expr": "It is late.", "formal": "when hour > 20 then late"}'),
    ("config --config FILE", "search_k: 7")], ids=lambda v: v[:24])
def test_a_file_saved_by_windows_is_read(line: str, text: str, home: Path) -> None:
    (home / "saved.jsonl").write_text(f"\ufeff{text}\n", encoding="utf-8")
    done = run(home, *line.replace("FILE", "saved.jsonl").split(), RLM_EMBEDDER="none")
    assert done.returncode == 0 and "\ufeff".encode() not in done.stdout + done.stderr, done


def test_a_pack_can_hold_only_what_was_learned_here(home: Path) -> None:
    run(home, "memory", "import", "core_v1")
    everything, ours = (run(home, "memory", "export", f"{name}_v1.jsonl", *more) for name, more in (("all", ()), ("ours", ("--learned",))))
    assert b" 0 learned here" in everything.stdout and ours.stdout.startswith(b"0 strategies written") and ours.returncode == 0


# ---------------------------------------------------------------- what is written to a file

WRITERS = ["memory export {}", "memory candidates --out {}", "graph export {}", "anchors export {}", "export --rdf {}", "db export {}",
           "rules export {}", "db backup {}", "graph show tea --plot {}", "bench rules --quick --out {}", "tokens add --token-file {}",
           "tokens revoke x --token-file {}", "tokens rotate x --token-file {}"]


@pytest.fixture
def near(home: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    "The prepared home, where commands are run in this process: the same, and sooner."
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("RLM_EMBEDDER", "none")
    monkeypatch.chdir(home)
    return home


def call(line: str, stdin: bytes = b"") -> Result:
    "Run a command in this process."
    return CliRunner().invoke(main, shlex.split(line), stdin)


@pytest.mark.parametrize("line", WRITERS)
def test_no_command_replaces_a_store(line: str, near: Path) -> None:
    folder = near / ".rlm"
    (folder / "soft").symlink_to("memory.db")
    (folder / "hard").hardlink_to(folder / "memory.db")
    (folder / "memory.db.index").mkdir(exist_ok=True)
    names = ["memory.db", "memory.db-wal", "memory.db-shm", "soft", "hard", "memory.db.index"]
    names += [] if line.startswith(("db backup", "tokens")) else ["memory.db.index/new"]
    with Memory(near / STORE, embedder="none") as memory:  # its log is there while it is open
        memory.write("precious", id="precious")
        before = {name: (folder / name).lstat().st_ino for name in names if (folder / name).exists()}
        for name in names:
            done = call(line.format(f".rlm/{name}"))
            assert done.exit_code in (1, 2) and "Error: " in done.stderr and not done.stdout, (name, done.output)
        assert before == {name: (folder / name).lstat().st_ino for name in names if (folder / name).exists()}
        assert memory.get("precious").text == "precious" and memory.check() == []


@pytest.mark.parametrize("line", WRITERS[:7])
def test_an_export_is_a_whole_private_file_or_goes_to_the_standard_output(line: str, near: Path) -> None:
    call("memory import core_v1")
    Path("out").write_text("old")
    Path("mine_v1").symlink_to("out")
    os.mkfifo("pipe")
    assert call(line.format("mine_v1")).exit_code == 0
    assert Path("mine_v1").is_symlink() and Path("out").stat().st_mode & 0o777 == 0o600
    assert "is no file" in call(line.format("pipe")).stderr and Path("pipe").is_fifo()
    told, when = call(line.format("-")), rb'"(?:exported|built|updated)_at": ?"[^"]+"'
    assert told.exit_code == 0 and re.sub(when, b"", told.stdout_bytes) == re.sub(when, b"", Path("out").read_bytes())
    assert not Path("-").exists() and not list(near.glob("*.part"))


@pytest.mark.parametrize(("line", "what"), [("db export {}", "lines"), ("graph export {}", "links"), ("anchors export {}", "slots"),
                                            ("export --rdf {}", "paragraphs"), ("rules export {}", "rules")])
def test_an_export_tells_a_program_where_and_how_much(line: str, what: str, near: Path) -> None:
    call("memory write 'a note' --slot A")
    call("graph bootstrap")
    done = call(f"{line.format('out')} --json")
    told = json.loads(done.stdout)
    assert done.exit_code == 0 and told.keys() == {what, "path"} and told["path"] == "out" and not done.stderr
    assert f"{told[what]:,} {what} written to out." in call(line.format("out")).stdout
    streamed = call(f"{line.format('-')} --json")
    assert json.loads(streamed.stderr) == told | {"path": "-"}
    assert len(streamed.stdout.splitlines()) == len(Path("out").read_text().splitlines()), "beside the export itself"


def test_candidates_are_told_as_rows(near: Path) -> None:
    assert json.loads(call("memory candidates --json").stdout) == []
    with Memory(near / STORE, embedder="none") as memory:
        memory.strategies.add(Strategy(title="Count subclasses", description="How many subclasses it has.", content="Count them.",
                                             source_type="success"))
    (row,) = json.loads((done := call("memory candidates --json")).stdout)
    assert (row["title"], row["keep"], row["tags"]) == ("Count subclasses", False, []) and not done.stderr
    assert json.loads(call("memory candidates --json --out mine.yaml").stdout) == [row]
    assert Path("mine.yaml").read_text() == call("memory candidates").stdout


@pytest.mark.parametrize("line", ["export --rdf {} --only nowhere", "export {} --format jsonl -n 오타", "export {} --format pam -n 오타",
                                  "export {} --format markdown --only 오타", "db export {} -n 오타", "rules export {} -n 오타",
                                  "graph export {} -n 오타", "anchors export {} -n 오타"])
def test_an_export_that_fails_or_names_an_unknown_namespace_leaves_the_earlier_one(line: str, near: Path) -> None:
    Path("good.ttl").write_text("good")
    done = call(line.format("good.ttl"))
    assert done.exit_code == 1 and "There is nothing in namespace" in done.stderr and "default" in done.stderr
    assert Path("good.ttl").read_text() == "good" and not list(near.glob("*.part"))


def test_a_conversation_is_added_from_a_json_list_too(near: Path) -> None:
    Path("talk.json").write_text('[{"role": "user", "content": "제 여동생은 제주에 살아요.", "session": "유월"}, '
                                 '{"role": "assistant", "content": "Noted."}]')
    assert "2 turns stored in conversation 유월" in call("conversation add talk.json").stdout
    assert [t["text"] for t in json.loads(call("conversation show 유월 --json").stdout)] == ["제 여동생은 제주에 살아요.", "Noted."]


# ---------------------------------------------------------------- what the system and the terminal do

@pytest.mark.parametrize("line", ["memory list --db ~nosuchuser/x.db", "db export ~nosuchuser/x.jsonl", "db backup ~nosuchuser/x.db",
                                  "config --config ~nosuchuser/rlm.yaml", "memory write x --db ~nosuchuser/x.db"])
def test_a_home_that_nobody_has_is_an_error(line: str, near: Path) -> None:
    done = call(line)
    assert done.exit_code == 1 and done.stderr.startswith("Error: ") and not done.stdout


def test_a_working_folder_that_is_gone_is_an_error(home: Path) -> None:
    (home / "gone").mkdir()
    line = f"cd gone; rmdir ../gone; {shlex.quote(str(RLM))} memory list --db x.db"
    done = subprocess.run(["sh", "-c", line], cwd=home, env={**os.environ, "HOME": str(home)}, capture_output=True, check=False)
    assert done.returncode == 1
    said(done)


@pytest.mark.parametrize("line", ["memory write -", "memory write --jsonl -", "rules import -", "db import -", "rules apply --facts -",
                                  "memory delete tea --erase"])
def test_a_closed_standard_input_is_an_error(line: str, home: Path) -> None:
    done = subprocess.run(["sh", "-c", f"{shlex.quote(str(RLM))} {line} <&-"], cwd=home, env={**os.environ, "HOME": str(home),
                          "RLM_EMBEDDER": "none"}, capture_output=True, check=False)
    assert done.returncode == 1 and b"There is no standard input." in done.stderr and b"Traceback" not in done.stderr


@pytest.mark.parametrize("line", ["memory list", "db export -", "memory stats --json"])
def test_a_full_disk_behind_the_output_is_an_error(line: str, home: Path) -> None:
    with open("/dev/full", "wb") as full:
        done = subprocess.run([RLM, *line.split()], cwd=home, env={**os.environ, "HOME": str(home)}, stdout=full,
                              stderr=subprocess.PIPE, check=False)
    assert done.returncode == 1
    if "--json" in line:
        assert json.loads(done.stderr)["error"]["message"].startswith("The output can't be written")
    else:
        assert done.stderr.startswith(b"Error: The output can't be written") and len(done.stderr.splitlines()) == 2


def test_an_ontology_with_an_over_long_name_is_not_there(home: Path) -> None:
    with pytest.raises(NotFound):
        find_ontology("x" * 300)


def test_letters_that_the_terminal_lacks_are_written_as_numbers(home: Path) -> None:
    told = {"PYTHONIOENCODING": "cp949", "RLM_EMBEDDER": "none"}
    done = process(home, "memory", "write", "좋아요 😀", "--id", "smile", **told)
    assert done.returncode == 0 and done.stdout.decode("cp949").strip() == "smile  좋아요 \\U0001f600"
    for line in ("memory list", "memory search 좋아요", "graph show smile", "memory show smile"):
        assert process(home, *line.split(), **told).returncode == 0
    for line in ("memory list --json", "memory show smile --json"):
        found = json.loads(process(home, *line.split(), **told).stdout)
        assert (found[0] if isinstance(found, list) else found)["text"] == "좋아요 😀"
    assert process(home, "db", "export", "-", **told).stdout.decode().count("좋아요 😀")  # an export is UTF-8 wherever it goes


def test_many_near_a_slot_are_stored_all_or_none(near: Path) -> None:
    lines = ['{"text": "one"}', '{"text": "two"}', '{"text": "three", "time": "2026-01-01"}']
    for stdin in ("\n".join(lines), '{"text": "one"}\n{"text": "two", "id": "tea"}'):
        before = store_of(near)
        done = call("memory write --jsonl - --slot auto", stdin.encode())
        assert done.exit_code == 1 and store_of(near) == before, done.output
    assert "(item 2)" in call("memory write --jsonl - --slot auto", "\n".join(lines).encode()).stderr
    assert call("memory write one two --slot D").exit_code == 1 and store_of(near) == before
    assert call("memory write one two --slot B --policy link_k=4").exit_code == 0 and len(store_of(near)) > len(before)
    assert "two" in call("anchors status").stdout


def test_what_is_stored_does_not_steer_a_terminal(near: Path) -> None:
    text = "hello\x1b]0;pwned\x07\x1b[31m esc"
    with Memory(near / STORE, embedder="none") as memory:
        memory.write(text, id="esc")
        memory.record_usage("esc", success=1, query=text)
        memory.anchors.set("A", "esc")
    with RuleStore(near / STORE) as rules:
        rules.hold("morning", reason=text)
    for line in ("anchors status", "memory history esc", "rules history morning", "memory list", "anchors set B esc"):
        found = call(line).stdout
        assert "hello" in found and "\x1b" not in found and "\x07" not in found, line


def test_a_reason_is_guarded(near: Path) -> None:
    secret = "sk-abcdefghijklmnopqrstuvwxyz123456"
    assert call(f"rules hold morning --reason 'key {secret}'").exit_code == 0
    assert secret not in call("rules history morning --json").stdout and secret.encode() not in (near / STORE).read_bytes()
    with Memory(near / STORE, embedder="none") as memory:
        assert secret not in str(memory.backend.db.query("SELECT * FROM events"))


def test_bytes_that_are_no_text_are_refused_as_reasons_and_names(home: Path) -> None:
    for words in [["rules", "hold", "morning", "--reason", b"\xff"], ["rules", "history", b"\xff"],
                  ["db", "export", "-", "--only", b"\xff"], ["export", "--rdf", "--only", b"\xff"]]:
        done = run(home, *words)
        assert done.returncode == 1, words
        said(done)


def test_a_report_that_can_not_be_written_is_refused_before_the_run(near: Path) -> None:
    done = call("bench speed --sizes 200 --out .rlm/memory.db/x.json")
    assert done.exit_code == 1 and "can't be" in done.stderr


def test_the_first_lines_of_an_export_are_enough(home: Path) -> None:
    run(home, "memory", "write", *(f"{n} " + "word " * 2000 for n in range(60)))
    with subprocess.Popen([RLM, "export", "--rdf"], cwd=home, env={**os.environ, "HOME": str(home)}, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE) as asked:
        assert asked.stdout and asked.stderr
        asked.stdout.readline()
        asked.stdout.close()
        assert asked.stderr.read() == b""


def test_erased_memories_name_their_copies_in_json_too(near: Path) -> None:
    call("db restore notes.db --yes")
    found = json.loads(call("memory delete tea --erase --yes --json").stdout)
    assert found["erased"] == 1 and "memory.db.replaced-" in found["copies"][0]


@pytest.mark.parametrize("as_json", ["", " --json"])
def test_an_import_with_refusals_ends_with_one(as_json: str, near: Path) -> None:
    call("rules export own.jsonl")
    Path("own.jsonl").write_text(Path("own.jsonl").read_text().replace("Offer a cola.", "Offer water."))
    done = call(f"rules import own.jsonl{as_json}")
    assert done.exit_code == 1 and "cola" in done.stdout
    call("memory write 'the boat is blue' --id hull --db other.db")
    call("db export other.jsonl --db other.db")
    Path("other.jsonl").write_text(Path("other.jsonl").read_text().replace("is blue", "is red"))
    done = call(f"db import other.jsonl --db other.db{as_json}")
    assert done.exit_code == 1 and "hull" in done.stdout
    assert call("memory import core_v1 --db other.db").exit_code == 0
    gone = json.loads(call("memory list --kind strategy -k 1 --json --db other.db").stdout)[0]["id"]
    call(f"memory delete {gone} --db other.db")
    done = call(f"memory import core_v1 --db other.db{as_json}")
    assert done.exit_code == 1 and gone in done.stdout
    for group in ("rules", "memory", "db"):
        assert "Exit code 1 if" in " ".join(call(f"{group} import --help").stdout.split()).replace("exit", "Exit")


def test_a_namespace_is_listed_purged_and_erased(home: Path) -> None:
    assert [n["name"] for n in json.loads(run(home, "namespaces", "list", "--json").stdout)] == ["agent-7", "default"]
    run(home, "memory", "delete", "peanuts")
    assert b"0 memories erased" in run(home, "namespaces", "purge", "default", "--days", "1", "--yes").stdout
    assert b"allergic" in (home / STORE).read_bytes()
    assert json.loads(run(home, "namespaces", "purge", "default", "--days", "0", "--yes", "--json").stdout)["erased"] == 1
    assert b"allergic" not in (home / STORE).read_bytes()
    run(home, "memory", "delete", "seven", "-n", "agent-7")
    planned = json.loads(run(home, "namespaces", "purge", "--all", "--days", "0", "--dry-run", "--json").stdout)
    assert [(one["namespace"], one["erased"], one["dry_run"]) for one in planned] == [("agent-7", 1, True), ("default", 0, True)]
    assert b"Only agent 7" in (home / STORE).read_bytes()
    assert run(home, "namespaces", "purge", "--all", "--days", "1", "--yes").stdout.splitlines() == [
        b"agent-7: 0 memories erased.", b"default: 0 memories erased."]
    for wrong in ([], ["default", "--all"]):
        assert b"Name them, or give --all." in run(home, "namespaces", "purge", "--days", "1", "--yes", *wrong).stderr
    assert run(home, "memory", "restore", "seven", "-n", "agent-7").returncode == 0
    done = run(home, "namespaces", "erase", "agent-7", stdin=b"n\n")
    assert done.returncode == 1 and b"Erase the namespace agent-7 for good?" in done.stderr
    assert b"1 memory erased" in run(home, "namespaces", "erase", "agent-7", "--yes").stdout
    assert b"Only agent 7" not in (home / STORE).read_bytes()
    assert [n["name"] for n in json.loads(run(home, "namespaces", "list", "--json").stdout)] == ["default"]
    done = run(home, "namespaces", "erase", "agent-7", "--yes")
    assert done.returncode == 1 and b"There is nothing in namespace 'agent-7'" in done.stderr
