"""What the house forbids, found in the code itself: towers of classes, upward imports, names used twice, long bodies, notebooks
out of order. `tests/unit/test_house_rules.py` holds what is found against `tests/data/house_offenders.json`, a list that may only
shrink: nothing may be found that it does not name, and it may name nothing that is no longer found.

    python tools/house.py            print what is found, a line each
    python tools/house.py --shrink   take out of the list what is no longer found
"""
import ast
import json
import re
import sys
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from tree import ROOT

LIST = ROOT / "tests" / "data" / "house_offenders.json"
CLASS_STATEMENTS, FUNCTION_STATEMENTS = 200, 80  # what fails; a class of 100 and a function of 40 are long already
CHAIN = 2  # classes of ours in one line of inheritance, the class itself counted

# What each room may import, itself aside. A key with a dot is a room within a room.
BELOW: dict[str, set[str]] = {
    "core": set(),
    "store": {"core"},
    "search": {"core", "store"},
    "recall": {"core", "store", "search"},
    "rules": {"core", "store", "search"},
    "agent.ontology": {"core"},
    "agent.models": {"core"},
    "agent.sandbox": {"core"},
    "agent.tracing": {"core", "agent.models", "agent.sandbox"},
    "agent.loop": {"core", "agent.ontology", "agent.models", "agent.sandbox", "agent.tracing"},
    "agent.memory": {"core", "store", "search", "agent.ontology", "agent.models", "agent.sandbox", "agent.tracing", "agent.loop"},
    "agent.learning": {"core", "store", "search", "agent.ontology", "agent.models", "agent.sandbox", "agent.tracing", "agent.loop",
                       "agent.memory"},
    "agent.casebased": {"core", "store", "search", "agent.ontology", "agent.models", "agent.sandbox", "agent.tracing",
                        "agent.loop", "agent.memory", "agent.learning"},
    "agent": {"core", "store", "search"},
    "companion": {"core", "store", "search", "recall", "agent.models"},
    "federation": {"core", "companion"},
    "service": {"core", "store", "search", "recall", "rules", "agent", "companion", "federation"},
    "adapters": {"core", "store", "search", "recall", "rules", "companion", "service"},
    "bench": {"core", "store", "search", "recall", "rules", "agent", "companion", "federation", "service"},
}
ENGINE_NAMED = {  # modules above the store that may name an engine, each because the engine itself is what it is about
    "service.cli.db": "roles of a server, backups of a file", "service.cli.cluster": "instances of servers",
    "service.cli.common": "the instance that an operator's command goes to"}
BENCH_MOUNT = ("service", "bench")  # the command line mounts the benchmarks, lazily: tested on its own

BANNED = {  # names of things that the field has a word for; the word is in the second place
    "Asked": "QueryFeatures", "Best": "RankedList", "Books": "Budget", "Cues": "QueryFeatures", "Doors": "ToolBridge",
    "Found": "SearchResult", "Held": "a noun", "Kept": "a noun", "Lent": "a borrowed storage", "Mix": "ScoreWeights",
    "Room": "Tenant", "Rooms": "TenantPool", "Said": "LabelValue", "Seen": "SearchResult", "Trouble": "CliError",
    "AllLayers": "a noun", "Beginning": "a noun", "Patience": "RetryPolicy", "Opinions": "FusionWeights",
}
PARTICIPLE = re.compile(r"^_?[A-Z][a-z]+(?:ing|ed)$")  # one bare word: `Taking`, `Held`
NOUNS = {"Embedding", "Setting", "Mapping", "Binding", "Ranking", "String", "Reading", "Timing", "Ruling"}
RIDDLE = 4  # words; a class's docstring of so few says nothing in help() alone
WEAK = ("of ", "to ", "that ", "whose ", "any ", "which ", "where ", "who ", "what ", "as ", "it ")  # no comment of a parameter begins so


@dataclass
class Class:
    "A class of ours, with what the rules ask of it."
    name: str  # as it is defined
    module: str  # below the package, for example `store.records`
    node: ast.ClassDef  # its syntax tree
    bases: list[str] = field(default_factory=list)  # last names of its bases

    @property
    def where(self) -> str:
        "The class's name with its module's."
        return f"{self.module}.{self.name}"


def modules() -> list[Path]:
    "The modules of the package, packages' own files and the generated index aside."
    return sorted(p for p in (ROOT / "rlm").rglob("*.py") if p.name not in ("__init__.py", "_modidx.py"))


@cache
def parsed(path: Path,  # a module
           ) -> ast.Module:
    "The syntax tree of a module, read once."
    return ast.parse(path.read_text(encoding="utf-8"))


def dotted(path: Path,  # a module
           ) -> str:    # its name without `rlm.`
    "The name of a module below the package, for example `store.records`."
    return ".".join(path.relative_to(ROOT / "rlm").with_suffix("").parts)


def last_name(node: ast.expr,  # a base class as it is written
              ) -> str:
    "The last name of an expression: `Generic` of `typing.Generic[T]`."
    if isinstance(node, ast.Subscript):
        return last_name(node.value)
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


@cache
def classes() -> tuple[Class, ...]:
    "Every class at the top level of a module."
    return tuple(Class(n.name, dotted(p), n, [last_name(b) for b in n.bases])
                 for p in modules() for n in parsed(p).body if isinstance(n, ast.ClassDef))


def resolved(c: Class,  # a class
             base: str,  # the name of one of its bases
             ) -> Class | None:
    "The class of ours that a base is: of the same module first, else the only one of that name that is imported."
    same = [o for o in classes() if o.name == base and o.module == c.module and o is not c]
    if same:
        return same[-1]
    there = [o for o in classes() if o.name == base]
    return there[0] if there else None


@cache
def aside() -> frozenset[str]:
    "Where exceptions and protocols stand: inheritance is what they are made of."
    out: set[str] = set()
    roots = {"Exception", "BaseException", "Protocol", "ValueError", "RuntimeError", "TimeoutError", "Enum", "StrEnum", "IntEnum",
             "NamedTuple", "TypedDict", "KeyError", "TypeError", "OSError", "LookupError", "Warning", "UserWarning"}
    for _ in range(12):
        for c in classes():
            if c.where in out:
                continue
            parents = [resolved(c, b) for b in c.bases]
            if any(b in roots for b in c.bases) or any(p is not None and p.where in out for p in parents):
                out.add(c.where)
    return frozenset(out)


def parents_of(c: Class,  # a class
               ) -> list[Class]:
    "The bases of a class that are ours and count."
    return [p for b in c.bases if (p := resolved(c, b)) is not None and p.where not in aside()]


def chain(c: Class,  # a class
          seen: frozenset[str] = frozenset(),  # classes already counted
          ) -> int:
    "How many classes of ours stand above one another, the class itself counted."
    return 1 + max((chain(p, seen | {c.where}) for p in parents_of(c) if p.where not in seen | {c.where}), default=0)


def long_chains() -> Iterator[str]:
    "Classes that stand on more than one class of ours."
    yield from (c.name for c in classes() if c.where not in aside() and chain(c) > CHAIN)


def many_bases() -> Iterator[str]:
    "Classes with two bases of ours."
    yield from (c.name for c in classes() if c.where not in aside() and len(parents_of(c)) > 1)


def single_subclasses() -> Iterator[str]:
    "A base with one subclass is a class cut in two."
    children = Counter(p.where for c in classes() if c.where not in aside() for p in parents_of(c))
    yield from (c.name for c in classes() if children[c.where] == 1)


def delegation() -> Iterator[str]:
    "Classes that answer for attributes they do not have."
    yield from (c.name for c in classes() for n in c.node.body if isinstance(n, ast.FunctionDef)
                and n.name in ("__getattr__", "__getattribute__"))


def split_classes() -> Iterator[str]:
    "Methods that are not written in their class: `@patch`, or a function of the module put in by assignment."
    for p in modules():
        functions = {n.name for n in parsed(p).body if isinstance(n, ast.FunctionDef)}
        for node in parsed(p).body:
            if isinstance(node, ast.FunctionDef) and any(last_name(d) in ("patch", "patch_to") for d in node.decorator_list):
                yield f"{dotted(p)}.{node.name}"
            if isinstance(node, ast.ClassDef):
                yield from (f"{node.name}.{t.id}" for s in node.body if isinstance(s, ast.Assign) and isinstance(s.value, ast.Name)
                            and s.value.id in functions for t in s.targets if isinstance(t, ast.Name))


def references_to_owner() -> Iterator[str]:
    "A collaborator that is handed its owner (`Part(self, …)`) is the tower again."
    ours = {c.name for c in classes()}
    for c in classes():
        for node in ast.walk(c.node):
            if isinstance(node, ast.Call) and last_name(node.func) in ours and any(
                    isinstance(a, ast.Name) and a.id == "self" for a in [*node.args, *[k.value for k in node.keywords]]):
                yield f"{c.name} -> {last_name(node.func)}"


ROUTES = {"get", "post", "put", "patch", "delete", "head", "route", "command", "group", "middleware", "exception_handler"}
KERNELS = {"loop", "njit", "kernel", "jit"}


def decorated(node: ast.FunctionDef | ast.AsyncFunctionDef,  # a function
              names: set[str],                               # decorators' last names
              ) -> bool:
    "Whether one of these decorators stands above a function."
    return any(last_name(d.func if isinstance(d, ast.Call) else d) in names for d in node.decorator_list)


def statements(node: ast.AST,  # a function, a class or a body
               ) -> int:
    "Statements in function bodies: no docstrings, signatures, fields, declared routes or compiled kernels."
    total = 0
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
            if not decorated(child, ROUTES | KERNELS):
                total += statements(child)
            continue
        if isinstance(child, ast.stmt) and not isinstance(node, ast.ClassDef):
            total += not (isinstance(child, ast.Expr) and isinstance(child.value, ast.Constant))
        if isinstance(child, ast.stmt | ast.excepthandler | ast.match_case):
            total += statements(child)
    return total


def long_classes() -> Iterator[str]:
    "Classes with too many statements."
    yield from (c.name for c in classes() if statements(c.node) > CLASS_STATEMENTS)


def long_functions() -> Iterator[str]:
    "Functions with too many statements."
    for p in modules():
        for node in ast.walk(parsed(p)):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and not decorated(node, KERNELS) \
                    and statements(node) > FUNCTION_STATEMENTS:
                yield f"{dotted(p)}.{node.name}"


def names_used_twice() -> Iterator[str]:
    "Names that two public classes have."
    counted = Counter(c.name for c in classes() if not c.name.startswith("_"))
    yield from (name for name, times in counted.items() if times > 1)


def banned_names() -> Iterator[str]:
    "Classes named by a participle, a metaphor or a pronoun."
    for c in classes():
        if c.name in BANNED or (PARTICIPLE.match(c.name) and c.name.lstrip("_") not in NOUNS):
            yield c.name


def riddles() -> Iterator[str]:
    "A public class whose docstring has at most four words."
    yield from (c.name for c in classes() if not c.name.startswith("_")
                and len((ast.get_docstring(c.node) or "").split()) <= RIDDLE)


def weak_comments() -> Iterator[str]:
    "Modules with a parameter's comment that begins with *of, to, that, whose, any*; how many stand in each."
    for p in modules():
        lines = p.read_text(encoding="utf-8").splitlines()
        for node in ast.walk(parsed(p)):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                args = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
                if any("#" in lines[(a.end_lineno or a.lineno) - 1]
                       and lines[(a.end_lineno or a.lineno) - 1].rsplit("#", 1)[1].strip().lower().startswith(WEAK) for a in args):
                    yield dotted(p)
                    break


def room_of(name: str,  # a dotted name below the package
            ) -> str:   # empty for the package itself
    "The room that a module or name lives in."
    parts = name.split(".")
    two = ".".join(parts[:2])
    inner = len(parts) > 1 and two in BELOW and (ROOT / "rlm" / parts[0] / parts[1]).is_dir()
    return two if inner else parts[0] if parts[0] in BELOW else ""


@cache
def imports_of(path: Path,  # a module
               ) -> tuple[str, ...]:
    "The full names of everything that a module imports, read once."
    return tuple(imported(parsed(path), list(path.relative_to(ROOT).parent.parts)))


def imported(source: ast.AST,      # a module
             package: list[str],  # the package that it lies in
             ) -> Iterator[str]:
    "The full names of everything that a module imports, wherever in it the import stands."
    for node in ast.walk(source):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = package[:len(package) - node.level + 1] if node.level else []
            stem = ".".join([*base, *([node.module] if node.module else [])])
            yield from (f"{stem}.{alias.name}" for alias in node.names)


def may_import(room: str,   # the one that imports
               other: str,  # the one that is imported
               ) -> bool:
    "Whether a room lies above another one."
    allowed = BELOW[room]
    return other in allowed or other.split(".")[0] in allowed or (room == "agent" and other.split(".")[0] == "agent")


def upward_imports() -> Iterator[str]:
    "Modules that import from a room which does not lie below theirs."
    for p in sorted((ROOT / "rlm").rglob("*.py")):
        name = dotted(p).removesuffix(".__init__")
        room = room_of(name)
        if not room or p.name == "_modidx.py":
            continue
        for full in imports_of(p):
            if not full.startswith("rlm."):
                if full == "rlm":
                    yield f"{name} -> the whole package"
                continue
            other = room_of(full.removeprefix("rlm.")) or "service"
            if full in ("rlm.__version__", "rlm._modidx") or other == room or (room, other) == BENCH_MOUNT:
                continue
            if not may_import(room, other):
                yield f"{name.split('.')[-1]} -> {other}"


def sqlite3_elsewhere() -> Iterator[str]:
    "Modules outside of `store/sqlite` that import sqlite3."
    yield from (dotted(p).split(".")[-1] for p in modules() if not dotted(p).startswith("store.sqlite.")
                and any(f.split(".")[0] == "sqlite3" for f in imports_of(p)))


STATEMENT_CALLS = {"query", "iterate", "executemany", "execute"}


def sql_above_the_store() -> Iterator[str]:
    "Modules above the store, benchmarks aside, that run a statement on a database."
    for p in modules():
        if room_of(dotted(p)) not in ("store", "bench") and any(
                isinstance(n, ast.Call) and isinstance(n.func, ast.Attribute) and n.func.attr in STATEMENT_CALLS
                and last_name(n.func.value) in ("db", "connection") for n in ast.walk(parsed(p))):
            yield dotted(p)


def engines_above_the_store() -> Iterator[str]:
    "Modules above the store, benchmarks and the operator's commands aside, that name an engine; what is said may and does not."
    found = {dotted(p) for p in modules() for full in imports_of(p)
             if full.startswith(("rlm.store.sqlite", "rlm.store.postgres", "rlm.store.SQLiteDatabase"))
             and room_of(dotted(p)) not in ("store", "bench")}
    yield from found ^ set(ENGINE_NAMED)


def notebooks() -> list[Path]:
    "The chapters' notebooks, sorted."
    return sorted(p for p in (ROOT / "nbs").rglob("*.ipynb") if ".ipynb_checkpoints" not in p.parts and p.parent != ROOT / "nbs")


@cache
def code_of(notebook: Path,  # a chapter
            ) -> tuple[str, ...]:
    "The sources of a notebook's code cells."
    cells = json.loads(notebook.read_text(encoding="utf-8"))["cells"]
    return tuple("".join(c["source"]) for c in cells if c["cell_type"] == "code")


def module_of(notebook: Path,  # a chapter
              ) -> str:
    "The module that a notebook exports to, or nothing."
    found = [m[1] for s in code_of(notebook) if (m := re.search(r"^#\| *default_exp +(\S+)", s, re.M))]
    return found[0] if found else ""


def exported_imports(notebook: Path,  # a chapter
                     ) -> set[str]:
    "The modules of ours that a notebook's exported cells import."
    out: set[str] = set()
    for source in code_of(notebook):
        if re.match(r"\s*#\|\s*exports?i?\b", source):
            out |= {m.removeprefix("rlm.") for n in ast.walk(ast.parse(source)) if isinstance(n, ast.ImportFrom) and n.module
                    and (m := n.module).startswith("rlm.")}
    return out


NUMBERED = re.compile(r"^\d\d_[a-z0-9_]+$")


def notebook_numbers() -> Iterator[str]:
    "Notebooks not named `NN_name`, of a number or (since pages are named by it) a name that another one has, or of another module."
    by_chapter: dict[Path, Counter[str]] = defaultdict(Counter)
    for nb in notebooks():
        by_chapter[nb.parent][nb.stem[:2]] += 1
        by_chapter[nb.parent][nb.stem[3:]] += 1
    for nb in notebooks():
        name = f"{nb.parent.name}/{nb.stem}"
        module = module_of(nb)
        if not NUMBERED.match(nb.parent.name) or not NUMBERED.match(nb.stem) or by_chapter[nb.parent][nb.stem[:2]] > 1 \
                or by_chapter[nb.parent][nb.stem[3:]] > 1 \
                or (module and module.split(".")[-1] != nb.stem[3:]):
            yield name


def notebook_order() -> Iterator[str]:
    "Notebooks that import what a later one of the same chapter defines."
    at = {module: nb for nb in notebooks() if (module := module_of(nb))}
    for nb in notebooks():
        if nb.parent.name == "00_start":
            continue
        if any((other := at.get(m)) is not None and other.parent == nb.parent and other.stem > nb.stem for m in exported_imports(nb)):
            yield f"{nb.parent.name}/{nb.stem}"


def unlisted_modules() -> Iterator[str]:
    "Plain modules, without a notebook, that the architecture page does not name."
    page = (ROOT / "docs" / "design" / "architecture.md").read_text(encoding="utf-8")
    for p in modules():
        if "# AUTOGENERATED! DO NOT EDIT!" not in p.read_text(encoding="utf-8") and f"`{p.relative_to(ROOT).as_posix()}`" not in page:
            yield p.relative_to(ROOT).as_posix()


RULES: dict[str, tuple[Callable[[], Iterator[str]], str]] = {
    "long chains": (long_chains, f"inheritance deeper than {CHAIN} classes of ours: compose"),
    "several bases": (many_bases, "more than one base of ours: compose"),
    "single subclasses": (single_subclasses, "a base with exactly one subclass: one class"),
    "delegation": (delegation, "`__getattr__` hides what an object can do: write the methods"),
    "split classes": (split_classes, "a class's methods stand in its body"),
    "references to owner": (references_to_owner, "a collaborator is handed its owner: hand it what it needs"),
    "long classes": (long_classes, f"more than {CLASS_STATEMENTS} statements: extract functions or a collaborator"),
    "long functions": (long_functions, f"more than {FUNCTION_STATEMENTS} statements: extract functions"),
    "names used twice": (names_used_twice, "two classes of one name: rename one"),
    "banned names": (banned_names, "a bare participle, a metaphor or a pronoun: the literature's noun"),
    "riddles": (riddles, f"a docstring of at most {RIDDLE} words: say what it is"),
    "weak comments": (weak_comments, "a parameter's comment is a noun phrase; it begins with none of of, to, that, whose, any"),
    "upward imports": (upward_imports, "imports run downward"),
    "sqlite3 elsewhere": (sqlite3_elsewhere, "only `store/sqlite` imports sqlite3"),
    "SQL above the store": (sql_above_the_store, "nothing above `store/` runs a statement: a table class has a method for it"),
    "engines above the store": (engines_above_the_store, "nothing above `store/` knows SQLite from PostgreSQL: `open_database` chooses"),
    "notebook numbers": (notebook_numbers, "NN_chapter/NN_name, unique in its chapter, named as its module"),
    "notebook order": (notebook_order, "a chapter's notebooks stand in the order of their imports"),
    "unlisted modules": (unlisted_modules, "a module without a notebook is named, with the reason, in docs/design/architecture.md"),
}


def found(rule: str,  # a key of `RULES`
          ) -> list[str]:
    "What breaks a rule now, sorted, each once."
    return sorted(set(RULES[rule][0]()))


def listed() -> dict[str, list[str]]:
    "What the list of offenders names."
    stored: dict[str, list[str]] = json.loads(LIST.read_text(encoding="utf-8")) if LIST.exists() else {}
    return stored


def shrink() -> int:
    "Take out of the list what is no longer found; return how many went."
    before = listed()
    after = {rule: sorted(set(before.get(rule, [])) & set(found(rule))) for rule in RULES}
    after = {rule: names for rule, names in after.items() if names}
    LIST.write_text(json.dumps(after, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    return sum(map(len, before.values())) - sum(map(len, after.values()))


if __name__ == "__main__":
    if sys.argv[1:] == ["--shrink"]:
        print(f"{shrink()} taken out of the list")
    else:
        for rule in RULES:
            known = set(listed().get(rule, []))
            for name in found(rule):
                print(f"{rule}: {name}{'' if name in known else '  (new)'}")
