"""The documentation site, built from a copy of the project: every page is there, everything it links to too, and it asks
no other host for anything."""
import html
import json
import posixpath
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote

import pytest

from docs import site_path
from tree import copy_tree
from vendor import KATEX, outside_requests

pytestmark = pytest.mark.nightly
DATA = Path(__file__).parent.parent / "data"

PAGE = """# A written page

See [the errors](../../nbs/10_core/00_errors.ipynb#notfound), [the licence](../../LICENSE) and [the other](other.md).
A formula: $a^2 + b^2$.
"""


@dataclass
class Links:
    "What a page links to, and the places in it that can be linked to."

    targets: list[str]
    places: set[str]


def build(tree: Path, out: Path, cache: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "tools/docs.py", "--out", str(out), "--cache", str(cache)]
    return subprocess.run(command, cwd=tree, capture_output=True, text=True, check=False)


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    "A copy of the project with two more written pages, one with a formula."
    tree = copy_tree(tmp_path_factory.mktemp("docs") / "project")
    (tree / "docs" / "design").mkdir(parents=True, exist_ok=True)
    (tree / "docs" / "design" / "written.md").write_text(PAGE, encoding="utf-8")
    (tree / "docs" / "design" / "other.md").write_text("# Another\n\nBack to [the first](written.md).\n", encoding="utf-8")
    return tree


@pytest.fixture(scope="module")
def site(tree: Path) -> Path:
    "The built site; KaTeX stands ready in the cache, so that no network is needed."
    dist = tree.parent / "cache" / f"katex-{KATEX.version}" / "package" / "dist"
    (dist / "contrib").mkdir(parents=True)
    for name in ("katex.min.css", "katex.min.js", "contrib/auto-render.min.js"):
        (dist / name).write_text("/**/", encoding="utf-8")
    done = build(tree, tree.parent / "site", tree.parent / "cache")
    assert done.returncode == 0, done.stdout + done.stderr
    return tree.parent / "site"


ATTRIBUTE = re.compile(r'\s(href|src|id)=(?:"([^"]+)"|\'([^\']+)\'|([^\s"\'>]+))')


def read(page: Path) -> Links:
    "Attributes of tags; what code shows has its `<` escaped, so that no tag begins there."
    text = re.sub(r"(?s)<!--.*?-->|(<(?:script|style)\b[^>]*>).*?</(?:script|style)>", r"\1", page.read_text(encoding="utf-8"))
    tags = re.findall(r"<[a-zA-Z][^<>]*>", text)
    found = [(name, html.unescape(a or b or c)) for tag in tags for name, a, b, c in ATTRIBUTE.findall(tag)]
    return Links([value for name, value in found if name != "id"], {value for name, value in found if name == "id"})


def test_every_notebook_has_a_page_with_its_title(site: Path, tree: Path) -> None:
    for notebook in sorted((tree / "nbs").rglob("[!_.]*.ipynb")):
        first = "".join(json.loads(notebook.read_text(encoding="utf-8"))["cells"][0]["source"])
        page = (site / site_path(notebook.relative_to(tree / "nbs"))).with_suffix(".html")
        title = first.splitlines()[0].removeprefix("# ")
        assert title in re.sub(r"<[^>]+>", "", page.read_text(encoding="utf-8")), page


def test_every_module_has_an_api_page(site: Path, tree: Path) -> None:
    titles = {re.search(r"<h1[^>]*>(.*?)</h1>", p.read_text(encoding="utf-8")) for p in (site / "api").glob("*.html")}
    shown = {re.sub(r"<[^>]+>", "", t[1]) for t in titles if t}
    modules = {".".join(p.relative_to(tree).with_suffix("").parts) for p in (tree / "rlm").rglob("[!_]*.py")}
    assert modules <= shown


def test_the_search_index_knows_every_page(site: Path) -> None:
    index = json.loads((site / "search.json").read_text(encoding="utf-8"))
    found = {entry["href"].partition("#")[0] for entry in index}
    assert found >= {p.relative_to(site).as_posix() for p in site.rglob("*.html")}
    assert any("InvalidInput" in entry["section"] + entry["text"] for entry in index)


@pytest.mark.skipif(not shutil.which("node"), reason="the site's search runs in Node or a browser, and Node is not here")
def test_a_question_in_english_or_korean_finds_its_guide_among_the_first_two(site: Path, tmp_path: Path) -> None:
    "Each development question does; of those that the search was not tuned on, as many as did when they were first asked."
    lines = (DATA / "site_questions.tsv").read_text(encoding="utf-8").splitlines()
    asked = [(split, question, pages.split()) for split, question, pages in (line.split("\t") for line in lines)]
    script = tmp_path / "ask.js"
    script.write_text("\n".join(["global.window = {};", (site / "site_libs" / "fuse" / "fuse.min.js").read_text(encoding="utf-8"),
                                 f"const fuse = new window.Fuse(require({json.dumps(str(site / 'search.json'))}));",
                                 f"const asked = {json.dumps([question for _, question, _ in asked])};",
                                 "console.log(JSON.stringify(asked.map((q) => fuse.search(q, {limit: 2}).map((hit) => hit.item.href))));"]),
                      encoding="utf-8")
    found = json.loads(subprocess.run(["node", script], capture_output=True, text=True, check=True, timeout=60).stdout)
    missed = {(split, question) for (split, question, pages), hrefs in zip(asked, found, strict=True) if not set(pages) & set(hrefs)}
    assert not {question for split, question in missed if split == "dev"}
    assert len({question for split, question in missed if split == "held"}) <= 5


def test_no_page_asks_another_host(site: Path) -> None:
    assert outside_requests(site) == []


def test_formulas_are_drawn_by_the_site_itself(site: Path) -> None:
    assert "../../site_libs/katex/katex.min.js" in (site / "docs" / "design" / "written.html").read_text(encoding="utf-8")
    assert (site / "site_libs" / "katex" / "contrib" / "auto-render.min.js").exists()


def test_every_link_inside_the_site_leads_somewhere(site: Path) -> None:
    pages = {p.relative_to(site).as_posix(): read(p) for p in site.rglob("*.html")}
    broken = []
    for name, page in pages.items():
        for target in set(page.targets):
            if re.match(r"[a-z]+:|//", target):
                continue
            path, _, place = unquote(target).partition("#")
            goal = posixpath.normpath(posixpath.join(posixpath.dirname(name), path)) if path else name
            goal = posixpath.join(goal, "index.html") if (site / goal).is_dir() else goal
            if not (site / goal).exists() or (place and goal in pages and place not in pages[goal].places):
                broken.append(f"{name}: {target}")
    assert not broken


def test_written_pages_link_to_notebooks_pages_and_files(site: Path) -> None:
    targets = read(site / "docs" / "design" / "written.html").targets
    assert "../../10_core/errors.html#notfound" in targets
    assert "other.html" in targets
    assert any(t.endswith("/blob/main/LICENSE") for t in targets)


def test_both_modes_and_the_chapters_are_there(site: Path) -> None:
    home = (site / "10_core" / "errors.html").read_text(encoding="utf-8")
    assert 'data-mode="light"' in home
    assert 'data-mode="dark"' in home
    for chapter in ("Core", "Design", "Project", "Reference", "Python"):
        assert f">{chapter}</span>" in home


def test_signatures_read_as_the_source_does(site: Path) -> None:
    "A class is shown as a class with its fields, and no module is named `__main__`."
    blocks = re.compile(r"<pre[^>]*>(.*?)</pre>", re.DOTALL)
    shown = {page: [html.unescape(re.sub("<[^>]+>", "", code)) for code in blocks.findall(page.read_text("utf-8"))]
             for folder in site.glob("[0-9]*_*") for page in folder.glob("*.html")}
    anchors = shown[site / "40_recall" / "anchors.html"]
    assert any(code.startswith("class Anchor:\n    slot: str  # A, B or C\n") for code in anchors)
    assert any(code.startswith("def choose(self,\n           topic: Vectors | None,") for code in anchors)
    wrong = [(page.name, code[:80]) for page, codes in shown.items() for code in codes if re.match(r"def [A-Z]+[a-z]\w*\(", code)]
    assert wrong == [] and not [page.name for page, codes in shown.items() for code in codes if re.search(r"\b__main__\.\w", code)]


@pytest.fixture
def small(tmp_path: Path) -> Path:
    "The project with one chapter of one notebook, one room and one written page: built in seconds, by the same tool."
    tree = copy_tree(tmp_path / "project")
    kept = {"nbs/10_core/00_errors.ipynb", "rlm/__init__.py", "rlm/core/__init__.py", "rlm/core/errors.py"}
    for file in [f for f in tree.rglob("*") if f.is_file()]:
        name = file.relative_to(tree).as_posix()
        if name.startswith(("nbs/", "rlm/", "docs/")) and file.suffix in (".ipynb", ".py", ".md") and name not in kept:
            file.unlink()
    for page in ("CONTRIBUTING.md", "CHANGELOG.md", "README.ko.md"):
        (tree / page).unlink(missing_ok=True)
    (tree / "rlm" / "__init__.py").write_text('"A small package."\n__version__ = "0"\n', encoding="utf-8")
    cells = [{"cell_type": "markdown", "id": "title", "metadata": {}, "source": ["# Small\n", "> A small site."]}]
    index = {"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}
    (tree / "nbs" / "index.ipynb").write_text(json.dumps(index), encoding="utf-8")
    (tree / "docs" / "page.md").write_text("# Page\n\n[the errors](../nbs/10_core/00_errors.ipynb#notfound)\n", encoding="utf-8")
    return tree


def test_a_broken_link_fails_the_build(small: Path, tmp_path: Path) -> None:
    done = build(small, tmp_path / "right", tmp_path / "cache")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "../10_core/errors.html#notfound" in read(tmp_path / "right" / "docs" / "page.html").targets
    (small / "docs" / "wrong.md").write_text("# Wrong\n\n[gone](nowhere.md) [gone](../nbs/10_core/99_lost.ipynb)\n", encoding="utf-8")
    done = build(small, tmp_path / "wrong", tmp_path / "cache")
    assert done.returncode != 0
    assert all(said in done.stdout + done.stderr for said in ("2 broken links", "nowhere.md", "99_lost"))
    assert not (tmp_path / "wrong").exists()
