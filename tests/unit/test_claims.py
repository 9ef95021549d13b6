"""A figure that a page links to a committed result is the one in that result; a section with figures names their source."""
import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from rlm.bench.report import read_report

ROOT = Path(__file__).parents[2]
RESULTS = {path.stem: read_report(path) for path in sorted((ROOT / "nbs" / "95_bench" / "results").glob("*.json"))}
PAGES = [ROOT / "README.md", ROOT / "README.ko.md", *sorted((ROOT / "docs").rglob("*.md"))]
# [.52](…/results/mixed.json "name of the row")
CLAIM = re.compile(r'\[(-?[\d,]*\.?\d+)( ?%)?[^\]]*\]\([^)\s]*results/(\w+)\.json "([^"]+)"\)')
FIGURE = re.compile(r"(?<![\w.,-])-?\.\d{2,3}(?![\w.])|\b\d[\d,.]* ?(?:ms|µs|MB|GB)\b")  # as figures of quality, time and size are written
MEASURED = r"95_bench/|tests/data/|30_search/10_relevance|30_search/17_past_index"  # results, data sheets, chapters that measure
SOURCE = re.compile(rf"\]\([^)]*({MEASURED})[^)]*\)|`rlm bench")
CONSTANTS = {  # sections whose figures are settings or parts of a formula, and no results
    ("docs/recall.md", "How the score is made"), ("docs/rules.md", "Its life"), ("docs/design/anchorized-memory.md", "Parts")}


def texts() -> Iterator[tuple[Path, str]]:
    "Pages and chapters, with their prose."
    for page in PAGES:
        yield page, page.read_text(encoding="utf-8")
    for notebook in sorted((ROOT / "nbs").rglob("[!_.]*.ipynb")):
        cells = json.loads(notebook.read_text(encoding="utf-8"))["cells"]
        yield notebook, "\n\n".join("".join(c["source"]) for c in cells if c["cell_type"] == "markdown")


CLAIMS = [(page, *found) for page, text in texts() for found in CLAIM.findall(text)]


def holds(shown: str, percent: str, value: float) -> bool:
    "Whether a figure, as it is written, is a value rounded to as many places."
    places = len(shown.partition(".")[2])
    return abs(float(shown.replace(",", "")) - value * (100 if percent else 1)) <= 0.5 * 10**-places + 1e-9


def test_figures_are_compared_as_they_are_written() -> None:
    assert holds(".52", "", 0.5211) and holds("86", " %", 0.857) and holds("1,234", "", 1234.4) and holds("-.003", "", -0.002609)
    assert not holds(".52", "", 0.5261) and not holds("86", " %", 0.85) and not holds(".003", "", -0.003)
    assert CLAIM.findall('[.52 / x](../a/results/mixed.json "first: e5")') == [(".52", "", "mixed", "first: e5")]
    assert FIGURE.search("takes 3.3 ms") and FIGURE.search("is .79 here") and not FIGURE.search("`x.py` of 2026, 12 memories, 0.1.0")


def test_there_are_figures_to_check() -> None:
    pages = {page.name for page, *_ in CLAIMS}
    assert len(CLAIMS) >= 70 and {"README.md", "recall.md", "attention.md", "companion.md", "federation.md"} <= pages


@pytest.mark.parametrize("page", sorted({page for page, *_ in CLAIMS}), ids=lambda p: p.name)
def test_each_figure_is_the_one_in_the_result(page: Path) -> None:
    wrong = [f"{shown}{percent}: {file} has {RESULTS[file][row].value} for {row!r}"
             for at, shown, percent, file, row in CLAIMS if at == page and not holds(shown, percent, RESULTS[file][row].value)]
    assert not wrong, "\n".join(wrong)


def sections(text: str) -> Iterator[tuple[str, str]]:
    "Headings of the second level with the prose below them: without code, in blocks and in lines."
    prose = re.sub(r"^```.*?^```", "", text, flags=re.M | re.S)
    prose = re.sub(r"^ {4}.*$", "", prose, flags=re.M)
    for part in re.split(r"^## ", prose, flags=re.M):
        yield part.split("\n", 1)[0], part


@pytest.mark.parametrize("page", PAGES, ids=lambda p: str(p.relative_to(ROOT)))
def test_a_section_with_figures_names_their_source(page: Path) -> None:
    name = str(page.relative_to(ROOT))
    bare = {heading: FIGURE.findall(re.sub(r"`[^`\n]+`", "", part)) for heading, part in sections(page.read_text(encoding="utf-8"))
            if (name, heading) not in CONSTANTS and not SOURCE.search(part)}
    assert not {heading: figures for heading, figures in bare.items() if figures}


LINK = re.compile(SOURCE.pattern.replace("95_bench/|", "95_bench/|tests/unit/|", 1))
SHARE = re.compile(rf"{FIGURE.pattern}|\b\d[\d.,]* ?%(?! interval)")
SETTINGS = {"docs/companion.md": ["3 %"]}  # figures that are settings, outside the sections above


def without_source(text: str) -> Iterator[str]:
    "Paragraphs, and rows of tables, with a figure and no link to its source; the link may stand in the table's header."
    for block in re.split(r"\n\s*\n", text):
        lines = block.strip().split("\n")
        for part in lines if lines[0].startswith("|") else [block]:
            if SHARE.search(re.sub(r"`[^`\n]+`", "", part)) and not LINK.search(part) and not LINK.search(lines[0]):
                yield part


def test_a_row_of_a_table_needs_a_source_of_its_own() -> None:
    linked = '| a | [.52](../nbs/95_bench/results/mixed.json "first: e5") |'
    assert list(without_source(f"| set | e5 |\n|---|---|\n{linked}\n| b | .97 |")) == ["| b | .97 |"]
    assert list(without_source("86 % come first.\n\n95 % intervals")) == ["86 % come first."]


@pytest.mark.parametrize("page", PAGES, ids=lambda p: str(p.relative_to(ROOT)))
def test_a_paragraph_with_figures_names_their_source(page: Path) -> None:
    name = str(page.relative_to(ROOT))
    bare = [part for heading, text in sections(page.read_text(encoding="utf-8")) if (name, heading) not in CONSTANTS
            for part in without_source(text) if not any(figure in part for figure in SETTINGS.get(name, ()))]
    assert not bare, "\n\n".join(bare)


def test_a_figure_of_a_chapter_names_its_source() -> None:
    found: dict[str, list[str]] = {}
    for page, text in texts():
        if page.suffix == ".ipynb":
            prose = re.sub(r"^```.*?^```|^ {4}.*?$", "", text, flags=re.M | re.S).replace("](results/", "](95_bench/results/")
            if bare := list(without_source(prose)):
                found[page.relative_to(ROOT / "nbs").with_suffix("").as_posix()] = bare
    assert not found
