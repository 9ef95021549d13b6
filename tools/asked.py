"""Ask the sets `tests/data/asked_*.tsv` without a language model, and write how many answers are right, wrong and refused.

    python tools/asked.py               # all sets
    python tools/asked.py newly_dev …   # some; the rows of the others stay
"""

import sys
from collections import Counter
from datetime import date
from importlib import import_module
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path += [str(ROOT / "tests"), str(ROOT / "tests" / "unit")]

from rlm import __version__  # noqa: E402
from rlm.agent.ontology import setup_ontology_context  # noqa: E402
from rlm.bench.report import Report, Row, machine, read_report, write_report  # noqa: E402

tests, naturally = import_module("test_natural_questions"), import_module("naturally")
RESULT = ROOT / "nbs" / "95_bench" / "results" / "asked.json"
READ = ("first, set aside",)  # asked before its answers were read: its rows stay as they were that day
SETS = {"naturally_dev": "first, development", "naturally_held": "first, since read", "anew_dev": "second, development",
        "anew_held": "second, set aside", "freshly_dev": "third, development", "freshly_held": "third, set aside",
        "sets_dev": "fourth, development", "sets_held": "fourth, set aside", "plainly": "fifth",
        "conditions": "sixth", "newly_dev": "seventh", "lately": "eighth",
        "openly_dev": "ninth, development", "openly_held": "ninth, set aside", "everyday_dev": "tenth, development",
        "everyday_more": "tenth, written later", "everyday_held": "tenth, set aside"}

MARKS = ("right", "wrong", "refused")


def ask(name: str,  # set, as its file is called
        ) -> list[Row]:
    "Ask a set and return its rows: right, wrong, refused."
    asked, marks = naturally.questions(f"asked_{name}"), Counter[str]()
    for ontology in sorted({a.ontology for a in asked}):
        some = [a for a in asked if a.ontology == ontology]
        if (path := naturally.ontology_path(ontology)) is None:
            raise SystemExit(f"{name} asks about {ontology}, which is not here: RLM_SHARED names its folder.")
        with setup_ontology_context(path) as context:
            for a, r in zip(some, tests.answered(ontology, [a.text for a in some]), strict=True):
                value = r.learned.trajectory.as_dict(sys.maxsize)["value"]
                marks[naturally.marked(a, value, r.answer, r.abstained or not r.converged, context)] += 1
    return [Row(f"{SETS[name]}: {mark}", "", marks[mark], n=len(asked), better="higher" if mark == "right" else "lower",
                note=f"{date.today()}") for mark in MARKS]


def main() -> None:
    "Ask, and write the result."
    rows = {r.name: r for r in read_report(RESULT).rows} if RESULT.exists() else {}
    for name in sys.argv[1:] or SETS:
        asked = ask(name)
        rows |= {r.name: r for r in asked}
        print(*(f"{r.name} {r.value}" for r in asked), sep=", ")
    found = [rows[f"{said}: {mark}"] for said in (*READ, *SETS.values()) for mark in MARKS if f"{said}: {mark}" in rows]
    size = sum(r.n for r in found if not r.name.startswith(READ)) // len(MARKS)
    write_report(Report("asked", __version__, f"{date.today()}", machine(ROOT), 0, size, {"model": "case-based"}, tuple(found)), RESULT)


if __name__ == "__main__":
    main()
