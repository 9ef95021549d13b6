"Every command and route that reads says of a tenant the same, whatever another one stores, and whether a file or a server holds it."
import json
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner
from serving import serving

from rlm import Memory
from rlm.core.clock import ManualClock
from rlm.core.files import hidden_password, server_path
from rlm.service.cli import main
from rlm.service.http.tokens import TokenFile
from rlm.store.records import new_record

AT = "2026-05-08"
COMMANDS: dict[str, list[str]] = {
    "memory list": ["--ended", "--status", "any"], "memory search": ["tea harbour", "--trace"], "memory recall": ["tea harbour"],
    "memory explain": ["tea harbour", "a"], "memory history": ["a"], "memory show": ["a"], "memory stats": [], "memory report": [],
    "memory candidates": [], "conversation show": ["s"], "context": ["Where does Mina drink tea?"],
    "review list": [], "review proposals": [], "review waiting": [], "audit": ["harbour"], "sleep": ["--nights"],
    "policy": ["The train was late again."],
    "rules apply": ["hour=9", "--resolve"], "rules audit": [], "rules conflicts": [], "rules export": ["rules.json"],
    "rules history": ["tea"], "rules list": [], "rules search": ["tea"], "rules show": ["tea"], "rules run-jobs": ["--dry-run"],
    "strategies report": [], "strategies candidates": [], "strategies export": ["strategies.json"], "memory export": ["learned.json"],
    "anchors status": [], "anchors export": ["anchors.json"], "attention status": [], "graph stats": [], "graph show": ["a"],
    "graph bootstrap": [], "graph export": ["graph.json"], "db export": ["all.jsonl"], "export": ["all.md", "--format", "markdown"],
    "eval": ["questions.jsonl"], "federation status": []}
ROUTES: list[tuple[str, str, dict[str, Any] | None]] = [
    *(("GET", f"/v1/{path}", None) for path in (
        "memories?status=any", "audit?query=harbour", "memories/a", "memories/a/history", "memories/a/links", "memories/a/neighbours",
        "conversations/s", "review", "sleep", "namespaces", "stats", "rules", "rules:conflicts", "rules:audit", "rules/tea",
        "rules/tea/history", "timeline", "anchors")),
    *(("POST", f"/v1/{path}", body) for path, body in (
        ("memories:search", {"query": "tea harbour"}), ("search", {"query": "tea harbour", "slot": "A"}),
        ("recall", {"query": "tea harbour"}),
        ("memories/a/explain", {"query": "tea harbour"}), ("context", {"query": "Where does Mina drink tea?"}),
        ("policy", {"text": "The train was late again."}),
        ("rules:apply", {"facts": {"hour": 9}, "resolve": True})))]
OF_THE_SERVER = ("/health", "/health/live", "/metrics")
APART = {  # what is not walked, and why
    "of no store": ["agent show", "completion", "config init", "db init", "hook install", "hook status", "mcp install", "proxy", "serve",
                    "tokens add", "tokens list", "tokens revoke", "tokens rotate"],
    "of the whole store": ["cluster add", "cluster init", "cluster move", "cluster status", "db backup", "db check", "db copy",
                           "db restore", "namespaces list", "namespaces purge", "reembed"],
    "writes": ["agent judge", "agent run", "anchors clear", "anchors hops", "anchors import", "anchors pin", "anchors set", "anchors unpin",
               "conversation add", "db import", "federation init", "federation invite", "federation join", "federation leave",
               "federation run", "graph import", "import", "memory delete", "memory forget", "memory import", "memory remember",
               "memory restore",
               "memory train", "memory update", "memory used", "memory write", "namespaces erase", "review accept", "review dismiss",
               "review lift", "review propose", "review reject", "rules add", "rules archive", "rules hold", "rules import",
               "rules judge", "rules promote", "rules release", "rules scheduler", "rules used", "strategies import",
               "strategies train", "train-ranker"]}


def leaves(command: click.Command, path: tuple[str, ...] = ()) -> Iterator[str]:
    "The names of all commands, but those of the benchmarks."
    if not isinstance(command, click.Group):
        yield " ".join(path)
    elif path != ("bench",):
        for name in command.list_commands(context := click.Context(command)):
            yield from leaves(command.get_command(context, name) or command, (*path, name))


def fill(memory: Memory, word: str) -> None:
    "An ordinary week of a tenant: memories, a conversation, rules, corrections, links, attention."
    memory.write(f"Mina drinks {word} at the harbour.", id="a", tags=["drink"], speaker="Mina")
    memory.write("내 동생 민아는 부산에 산다.", id="b")
    memory.write(f"A zebra drinks {word}.", id="d")
    memory.update("a", text=f"Mina drinks green {word} at the harbour.")
    memory.delete("d")
    memory.link("a", "b", "similar")
    talk = ("user", f"Where is my {word}?"), ("assistant", "At home.")
    memory.add_conversation([{"role": role, "content": text} for role, text in talk], session="s")
    memory.rules.add_rules([{"rule_id": id, "expr": f"{what} in the morning", "formal": f"when hour < 11 then drink = '{what}'"}
                            for id, what in ((word, word), ("c", "coffee"))])
    memory.rules.update_usage(word, success_inc=2)
    memory.companion.reject(memory.write(f"The harbour sells no {word}.", id="r").id)
    with memory.backend.transaction() as tx:
        tx.insert([new_record(f"A candidate about {word}.", memory.clock.now(), memory.ctx.namespace, id="w",
                              provenance={"trust": "candidate"})])
    memory.embeddings.embed_missing(memory.ctx.namespace, memory.clock)
    memory.anchors.move_anchor("A", "a")
    memory.recall(f"{word} harbour")
    memory.context(f"Where is the {word}?")


def others(memory: Memory) -> None:
    fill(memory, "coffee")
    memory.write_many([f"harbour tea zebra 고양이 lighthouse {'tail ' * (n % 40)}{n}" for n in range(200)])
    memory.delete([r.id for r in memory.recent(50)], erase=True)
    memory.bootstrap()
    memory.context("Where is the lighthouse?")


@pytest.fixture
def stores(path: Path) -> tuple[Path, Path]:
    "A store of one tenant, and a copy of it in which another one has stored something since."
    clock, beside = ManualClock(AT), path.with_name("beside.db")
    Path("questions.jsonl").write_text(json.dumps({"query": "Who drinks green tea?", "expect": ["a"]}) + "\n")
    with Memory(path, namespace="mine", clock=clock) as memory:
        fill(memory, "tea")
    shutil.copy(path, beside)
    with Memory(beside, namespace="theirs", clock=clock) as memory:
        others(memory)
    return path, beside


def timeless(text: str, place: object) -> str:
    "What was said, but for where and which the store is, how large its file is, when it was asked, and the numbers of events in exports."
    text = re.sub(rf"(?!{AT})20\d\d-\d\d-\d\dT[\d:.]+Z", "now", text.replace(hidden_password(str(place)), "here"))
    return re.sub(r'("bytes"|"search_time_ms"|"table":"events","id"|\\"seen\\"): ?[\d.]+|"store": ?"\w+"', "", text)


def told(place: object) -> dict[str, Any]:
    "What each command says of the tenant, and writes into a file."
    found: dict[str, Any] = {}
    for name, args in COMMANDS.items():
        done = CliRunner().invoke(main, [*name.split(), *args, "-n", "mine", "--json"], env={"RLM_DB_PATH": str(place)})
        assert done.exit_code == 0 or name == "federation status", (name, done.output)
        files = [timeless(Path(a).read_text(), place) for a in args if Path(a).is_file()]
        found[name] = timeless(done.stdout, place), *files
    return found


def test_each_command_is_walked_or_said_why_not() -> None:
    assert sorted([*COMMANDS, *(name for names in APART.values() for name in names)]) == sorted(leaves(main))


def test_no_command_says_more_of_a_tenant_when_another_one_stores_something(stores: tuple[Path, Path]) -> None:
    alone, beside = (told(place) for place in stores)
    assert {name: (alone[name], beside[name]) for name in alone if alone[name] != beside[name]} == {}
    assert "green tea" in str(alone["memory search"]) and "lighthouse" not in str(beside)


@pytest.mark.nightly
def test_each_command_says_of_a_server_what_it_says_of_a_file(stores: tuple[Path, Path], postgres: str) -> None:
    copied = CliRunner().invoke(main, ["db", "copy", str(stores[1]), postgres])
    assert copied.exit_code == 0, copied.output
    file, server = told(stores[1]), told(server_path(postgres))
    assert {name: (file[name], server[name]) for name in file if file[name] != server[name]} == {}


def test_no_route_says_more_of_a_tenant_when_another_one_stores_something(stores: tuple[Path, Path], tmp_path: Path) -> None:
    def ask(place: Path) -> dict[str, Any]:
        book = TokenFile(tmp_path / f"{place.stem}.tokens")
        with serving(place, book, serve_rate=0) as running, running.client(book.add("mine", ["admin"])[0]) as client:
            walked = {(method, re.sub(r"/(a|tea|s)(?=/|$)", "/{}", path.partition("?")[0])) for method, path, _ in ROUTES}
            known = {(method.upper(), re.sub(r"{\w+}", "{}", path)) for path, methods in client.get("/openapi.json").json()["paths"].items()
                     for method in methods}
            assert walked <= known and {r for r in known - walked if r[0] == "GET"} == {("GET", p) for p in OF_THE_SERVER}
            answers = {path: client.request(method, path, **({"json": body} if body else {})) for method, path, body in ROUTES}
            assert {path: a.status_code for path, a in answers.items()} == dict.fromkeys(answers, 200)
            return {path: timeless(a.text, place) for path, a in answers.items()}
    alone, beside = (ask(place) for place in stores)
    assert {path: (alone[path], beside[path]) for path in alone if alone[path] != beside[path]} == {}
    assert "green tea" in alone["/v1/memories:search"] and "lighthouse" not in str(beside)
