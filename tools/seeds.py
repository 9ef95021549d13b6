"""Which test shows which requirement of the design documents behind the package: `docs/design/seeds.md`, from the markers in the tests.

    python tools/seeds.py           write the page
    python tools/seeds.py --check   exit with 1 where the page is not what the tests say, or a requirement has no test
"""
import ast
import sys
from collections import defaultdict
from pathlib import Path

import yaml

from tree import ROOT

PAGE, REQUIREMENTS = ROOT / "docs" / "design" / "seeds.md", ROOT / "tests" / "data" / "requirements.yaml"
Shown = dict[str, list[tuple[str, str]]]  # '000 schema' → (file, test)


def marked(root: Path,  # a folder of tests
           ) -> Shown:
    "Return the tests that name a requirement, by requirement: functions under a decorator `pytest.mark.seed(KEY, …)`."
    found: Shown = defaultdict(list)
    for path in sorted(root.rglob("test_*.py")):
        nodes = ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        for node in (n for n in nodes if isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef)):
            for call in node.decorator_list:
                if isinstance(call, ast.Call) and ast.unparse(call.func) == "pytest.mark.seed":
                    for key in call.args:
                        found[str(ast.literal_eval(key))].append((path.relative_to(ROOT).as_posix(), node.name))
    return found


def wanted() -> dict[str, dict[str, str]]:
    "Return the requirements by document: its heading → key → what is asked for."
    said = yaml.safe_load(REQUIREMENTS.read_text(encoding="utf-8"))
    return {f"{number} {part['title']}": {f"{number} {key}": text["text"] if isinstance(text, dict) else text
                                               for key, text in part["requirements"].items()}
            for number, part in said.items()}


def not_built() -> dict[str, str]:
    "Return the requirements that no test shows, each with the reason: it is not built, not reached, or a benchmark measures it."
    said = yaml.safe_load(REQUIREMENTS.read_text(encoding="utf-8"))
    return {f"{number} {key}": text["not_built"] for number, part in said.items() for key, text in part["requirements"].items()
            if isinstance(text, dict)}


def mistakes(shown: Shown,                       # tests by requirement
             asked: dict[str, dict[str, str]],   # requirements by document
             ) -> list[str]:
    "Return requirements without a test, and markers that name no requirement."
    keys, open_ = {key for part in asked.values() for key in part}, not_built().keys()
    return [*(f"No test shows the requirement {key!r}." for key in sorted(keys - shown.keys() - open_)),
            *(f"A test shows {key!r}, which is said not to be built." for key in sorted(shown.keys() & open_)),
            *(f"{shown[key][0][1]} names {key!r}, which is no requirement." for key in sorted(shown.keys() - keys))]


def page(shown: Shown,                       # tests by requirement
         asked: dict[str, dict[str, str]],   # requirements by document
         ) -> str:
    "Return the page as Markdown."
    lines = ["# Requirements and the tests that show them", "",
             "The package grew out of design documents. Each row is a requirement, and the tests that fail when it is not met, or why no",
             "test shows it: it is not built, a benchmark measures it, or it is not reached. `python tools/seeds.py` writes the page from",
             "markers in the tests; a test holds that no requirement is without either."]
    missing = not_built()
    for title, part in asked.items():
        lines += ["", f"## {title}", "", "| key | requirement | tests |", "|---|---|---|"]
        for key, text in part.items():
            tests = "<br>".join(f"[{name}](../../{path})" for path, name in shown.get(key, ())) or missing.get(key, "")
            lines.append(f"| {key.split(' ', 1)[1]} | {text} | {tests} |")
    return "\n".join(lines) + "\n"


def main() -> int:
    "Write the page, or check it."
    shown, asked = marked(ROOT / "tests"), wanted()
    wrong = mistakes(shown, asked)
    if "--check" not in sys.argv:
        PAGE.write_text(page(shown, asked), encoding="utf-8")
    elif not PAGE.exists() or PAGE.read_text(encoding="utf-8") != page(shown, asked):
        wrong.append("docs/design/seeds.md is not what the tests say: python tools/seeds.py")
    print("\n".join(wrong) or f"Each requirement has a test, but {len(not_built())}: not built, not reached, or measured by a benchmark.")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
