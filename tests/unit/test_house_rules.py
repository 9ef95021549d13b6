"""The rules of the house, checked on the code itself: no towers of classes, imports that run downward, names used once, sizes, and what a
committed file may say. `tools/house.py` finds what breaks them; the list of offenders may only shrink."""
import ast
import json
import re
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

import house
from house import dotted, imported, modules, statements
from links import relink
from tree import ROOT, project_files

MODULES = modules()
found = cache(house.found)  # two tests ask the same


@pytest.mark.parametrize("rule", house.RULES)
def test_nothing_new_breaks_a_rule(rule: str) -> None:
    new = sorted(set(found(rule)) - set(house.listed().get(rule, [])))
    assert not new, f"{house.RULES[rule][1]}: {', '.join(new)}"


@pytest.mark.parametrize("rule", house.RULES)
def test_the_list_of_offenders_shrinks(rule: str) -> None:
    gone = sorted(set(house.listed().get(rule, [])) - set(found(rule)))
    assert not gone, f"no longer found; python tools/house.py --shrink takes them out: {', '.join(gone)}"


def test_every_rule_of_the_list_is_one_of_the_house() -> None:
    assert set(house.listed()) <= set(house.RULES)


def test_a_tower_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    source = ("class A:\n    def f(self): return B(self)\nclass B(A): pass\nclass C(B):\n    'Too few words.'\n"
              "    def __getattr__(self, name): return 1\nclass Taking(Exception): pass\nclass Detail(Taking): pass\n")
    made = tuple(house.Class(n.name, "core.made", n, [house.last_name(b) for b in n.bases])
                 for n in ast.parse(source).body if isinstance(n, ast.ClassDef))
    house.aside.cache_clear()
    monkeypatch.setattr(house, "classes", lambda: made)
    try:
        assert house.found("long chains") == ["C"]
        assert house.found("single subclasses") == ["A", "B"]
        assert house.found("delegation") == ["C"]
        assert house.found("references to owner") == ["A -> B"]
        assert house.found("banned names") == ["Taking"]
        assert "C" in house.found("riddles")
    finally:
        house.aside.cache_clear()


def test_an_engine_named_above_the_store_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(house, "imports_of", lambda path: ("rlm.store.sqlite.database.SQLiteDatabase",))
    seen = house.found("engines above the store")
    assert "search.explainer" in seen and not any(name.startswith(("store.", "bench.")) for name in seen)
    assert "service.cli.cluster" not in seen  # it may, and does


def test_statements_are_counted_rightly() -> None:
    source = ("class C:\n    'doc'\n    x: int = 1\n    def f(self, a=1):\n        'doc'\n        if a:\n            return a\n"
              "        return 2\n")
    assert statements(ast.parse(source).body[0]) == 3
    kernel = ("def g():\n    @njit(cache=True)\n    def k():\n        return 1\n    @app.get('/')\n    def r():\n        return 2\n"
              "    return k\n")
    assert statements(ast.parse(kernel).body[0]) == 1


def test_benchmarks_are_mounted_in_one_place_and_late() -> None:
    naming = [dotted(p) for p in (ROOT / "rlm").rglob("*.py") if p.name != "_modidx.py" and dotted(p).split(".")[0] != "bench"
              and ("rlm.bench" in p.read_text(encoding="utf-8")
                   or any(n.startswith("rlm.bench") for n in imported(house.parsed(p), list(p.relative_to(ROOT).parent.parts))))]
    assert all(name.startswith("service.cli") for name in naming), naming
    code = "import sys, rlm.service.cli; sys.exit(any(name.startswith('rlm.bench') for name in sys.modules))"
    assert subprocess.run([sys.executable, "-c", code], cwd=ROOT).returncode == 0


def test_importing_the_package_imports_no_benchmark() -> None:
    names = imported(ast.parse((ROOT / "rlm" / "__init__.py").read_text(encoding="utf-8")), ["rlm"])
    assert not [n for n in names if n.startswith("rlm.bench")]


def test_imports_are_read_rightly() -> None:
    source = "from ..core import text\nfrom .index import x\nimport rlm.agent.run\ndef f():\n    from ...rlm import y"
    assert list(imported(ast.parse(source), ["rlm", "store"])) == [
        "rlm.core.text", "rlm.store.index.x", "rlm.agent.run", "rlm.y"]


def name_of(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def test_normal_forms_are_made_in_one_place() -> None:
    "In which marks without end take linear time."
    found = [name_of(m) for m in MODULES if "unicodedata.normalize(" in m.read_text(encoding="utf-8")]
    assert found == ["rlm/core/text/normal_form.py"]


def test_no_heading_was_taken_for_code() -> None:
    "A chapter's prose that lost its cell would be exported as comments."
    assert not [name_of(m) for m in MODULES if re.search(r"^# #", m.read_text(encoding="utf-8"), re.MULTILINE)]


POSSESSIVE_GROUP = re.compile(r"\)(?:[*+?]|\{\d*,?\d*\})\+")


def test_no_pattern_repeats_a_group_possessively() -> None:
    "Python 3.11.0 to 3.11.4 reads such patterns wrongly (CPython issue 106052); `(?>(?:…)*)` is the same, and right."
    paths = [p for p in project_files() if p.suffix == ".py" and p.name != Path(__file__).name]
    found = [f"{p}: {m[0]}" for p in paths for m in POSSESSIVE_GROUP.finditer((ROOT / p).read_text(encoding="utf-8"))]
    assert paths and not found, "\n".join(found)


def test_possessive_groups_are_seen() -> None:
    assert all(POSSESSIVE_GROUP.search(p) for p in [r"(?:a|b)*+", r"(a)++", r"(?:ab)?+", r"(?:ab){2,3}+", r"(a){,3}+"])
    assert not any(POSSESSIVE_GROUP.search(p) for p in [r"\w*+", r"[ab]++", r"(?>(?:a|b)*)", r"(a)+", "f(x) + g(y)"])


# Paths of the machine that a file was written on, put together here so that this file has none.
MACHINE_PATHS = re.compile("|".join(["/" + "work/", "/" + r"tmp/(?!rlm|\$|\{|…)[\w.-]", "/" + "root/", "/home/" + r"(?!user)\w"]))


def test_no_committed_file_names_a_place_on_this_machine() -> None:
    found = []
    for name in project_files():
        try:
            text = (ROOT / name).read_text(encoding="utf-8")
        except UnicodeDecodeError:
            continue  # a picture or a database
        found += [f"{name}:{text.count(chr(10), 0, m.start()) + 1}: {text[m.start():m.start() + 40]!r}"
                  for m in MACHINE_PATHS.finditer(text)]
    assert not found, "\n".join(found)


def prose() -> list[tuple[Path, str]]:
    "Every written page, and the prose of every chapter."
    pages = [p for p in project_files() if p.suffix in (".md", ".ipynb")]
    return [(p, "\n".join("".join(c["source"]) for c in json.loads((ROOT / p).read_text(encoding="utf-8"))["cells"]
                          if c["cell_type"] == "markdown") if p.suffix == ".ipynb" else (ROOT / p).read_text(encoding="utf-8"))
            for p in pages]


def test_links_lead_to_files_that_are_there() -> None:
    found = []
    for page, text in prose():
        relink(text, lambda target, page=page: found.append((page, target)) or target)  # type: ignore[misc]
    gone = [f"{page}: {target}" for page, target in found if not (ROOT / page.parent / target.split("#")[0]).exists()]
    assert len(found) > 50 and not gone, "\n".join(gone)


def test_a_chapter_begins_with_a_cell_of_title_and_sentence_alone() -> None:
    "What else stands in that cell does not reach the site."
    for path in (ROOT / "nbs").rglob("[!_.]*.ipynb"):
        title, sentence = "".join(json.loads(path.read_text(encoding="utf-8"))["cells"][0]["source"]).strip().split("\n")
        assert title.startswith("# ") and sentence.startswith("> "), path


def test_the_changelog_says_what_a_user_notices() -> None:
    "A line for what changes how somebody uses the package; git has the rest."
    assert len((ROOT / "CHANGELOG.md").read_text(encoding="utf-8").splitlines()) <= 60
