"""Programs for values of individuals (which has most, which is the oldest), needed parts, ranges and the file's header.

A program is source text for the sandbox, chosen in `composition` by the lines of `rlm/data/programs.tsv` that bear its name."""

import re
from collections.abc import Callable, Mapping
from textwrap import indent

from ..memory.linking import Link
from ..memory.questions import senses

Marks = Mapping[str, Link]  # mark in a question → the name in its place
Program = Callable[[re.Match[str], Marks, str], str]  # match of its line, names, words of the question → code; empty where it is none


def iri_of(marks: Marks,  # names of a question by their marks
           mark: str,     # mark of a name in the question
           ) -> str:
    "Return the term that a mark stands for."
    return marks[mark].terms[0].iri


def pages(call: str,                    # call of a tool, written up to its last argument
          shown: str = 'view["items"]',  # expression for the kept part of a page
          ) -> str:
    "Write code that collects all pages of a call as `items`."
    return (f"items, more = [], True\nwhile more:\n    view = {call}, offset=len(items))\n    items += {shown}\n"
            "    more = view[\"truncated\"] and len(view[\"items\"]) > 0\n")


NAMES = '[i["iri"] for i in view["items"]]'
_HEADER = """told = [f["value"] for f in about_ontology({fact!r})["items"]]
FINAL(told)
"""


def filled(code: str,  # code with the groups of a line in braces
           ) -> Program:
    "Return a program of fixed code, with the terms that a question names."
    def program(m: re.Match[str], marks: Marks, question: str) -> str:
        said = {group: iri_of(marks, text) if text in marks else text for group, text in m.groupdict().items()}
        return code.format(**said)
    return program


def _header(m: re.Match[str], marks: Marks, question: str) -> str:
    "Code for what the file's header says."
    return _HEADER.format(fact=_meant("about", m["fact"]))


# Values of individuals. A relation may be words; the first individual's call tells which property they mean.
_ROWS = """def value_rows(those, dated, *names):
    prop = ""
    for name in names:
        try:
            prop = prop or related_terms(those[0], name)["relation"]
        except (ValueError, LookupError):  # the ontology has no such property
            continue
    name = "<" + prop + ">" if prop.startswith("http") else prop
    handle = sparql("SELECT DISTINCT ?x ?v {{ ?x ?p ?v . ?p <http://www.w3.org/2000/01/rdf-schema#subPropertyOf>* " + name + " }}")
""" + indent(pages("handle.page(limit=200"), "    ") + """    rows = [(r["x"], r["v"]) for r in items if r["x"] in those]
    if dated:
        return [(x, str(v)) for x, v in rows if str(v)[:4].isdigit() and len(str(v)) in (4, 7, 10, 19, 20, 25)]
    return [(x, v) for x, v in rows if isinstance(v, (int, float)) and v is not True and v is not False]
"""


def _any_of(*groups: str) -> str:
    return "(?:" + "|".join(words for group in groups for words in senses(group).values()) + ")"


SIGNS = {"<MOST>": _any_of("most"), "<LAST>": _any_of("last"), "<DEGREE>": _any_of("degree"), "<ABOUT>": _any_of("about"),
         "<KPART>": "(?:일부|부분)"}  # sign in a line → pattern


def _meant(group: str, words: str) -> str:
    "What words of a group mean; empty for words of another."
    return next((sense for sense, pattern in senses(group).items() if re.fullmatch(pattern, words)), "")


def named_relation(m: re.Match[str],  # match of a line with the group `rel`
                   marks: Marks,       # names of the question by their marks
                   ) -> str:
    "Return a property by its short name; else the words that should name one."
    link = marks.get(m["rel"])
    return m["rel"] if link is None else next((t.iri for t in link.terms if t.kind.endswith("property")), link.mention.text.lower())


def _first(m: re.Match[str], marks: Marks, question: str) -> str:
    "Code for the individuals with the highest or lowest number, or the latest or earliest date."
    dated, rel = _meant("last", m["most"]), named_relation(m, marks)
    names = f"{rel + ' date'!r}, {rel!r}" if dated and rel == m["rel"] else repr(rel)
    among = f", instance_of={iri_of(marks, m['kind'])!r}"
    best = f"{dated or _meant('most', m['most'])}([v for x, v in kept])"
    return _ROWS.format() + pages(f"find_terms(kind='individual'{among}", NAMES) + (
        f"kept = value_rows(items, {dated != ''}, {names})\nif kept:\n    FINAL(sorted({{x for x, v in kept if v == {best}}}))\n")


_DEGREE = """def told(prop):
    said = prop.rpartition(":")[2] + " " + " ".join([str(f["value"]) for f in describe_entity(prop, fact="label")["items"]])
    apart = "".join([" " + c if c.isupper() else c if c.isalnum() else " " for c in said])
    return [w.lower() for w in apart.split()]
for best, words, dated in {ways!r}:
    props = [p["iri"] for p in find_terms(kind="property", limit=200)["items"]]
    props = [p for p in props if any([w.startswith(word) for w in told(p) for word in words])]
    kept = [value_rows(items, dated, p) for p in props]
    kept = [rows for rows in kept if rows]
    if len(kept) == 1 and len(kept[0]) > 1:
        values = [v for x, v in kept[0]]
        FINAL(sorted([x for x, v in kept[0] if v == (max(values) if best == "max" else min(values))]))
"""


def _degree(m: re.Match[str], marks: Marks, question: str) -> str:
    "Code for the individuals of a kind with the highest or lowest value of the only property that an adjective measures."
    ways = [(best, words, "date" in words) for best, *words in map(str.split, _meant("degree", m["degree"]).split("/"))]
    start = pages(f"find_terms(kind='individual', instance_of={iri_of(marks, m['kind'])!r}", NAMES)
    return _ROWS.format() + start + _DEGREE.format(ways=ways)


_NEEDED = """known = [{kind!r}, *[i["iri"] for i in hierarchy({kind!r})["items"]]]
handle = sparql("SELECT DISTINCT ?x {{ {name} <http://www.w3.org/2000/01/rdf-schema#subClassOf>* ?d . "
                "?d <http://www.w3.org/2000/01/rdf-schema#subClassOf> ?r . ?r owl:someValuesFrom|owl:onClass ?x . "
                "FILTER NOT EXISTS {{ ?r owl:maxQualifiedCardinality ?n }} }}")
FINAL([x for x in handle.distinct("x")["items"] if x in known])
"""


def _needed(m: re.Match[str], marks: Marks, question: str) -> str:
    "Code for what each thing of a class must have, of a kind."
    whole = iri_of(marks, m["whole"])
    return _NEEDED.format(kind=iri_of(marks, m["kind"]), name=f"<{whole}>" if whole.startswith("http") else whole)


def _can_be(m: re.Match[str], marks: Marks, question: str) -> str:
    "Code for what may be the value of a property; what may belong to a class is another question, and has no answer."
    prop = next((t.iri for t in marks[m["term"]].terms if t.kind.endswith("property")), "")
    return f"FINAL([f[\"value\"] for f in describe_entity({prop!r}, fact=\"range\")[\"items\"]])\n" if prop else "[]\n"


PROGRAMS: Mapping[str, Program] = {  # name in the table → program
    "header": _header, "first": _first, "degree": _degree, "needed": _needed, "can be": _can_be,
    "none": filled("[]\n")}  # a question that is recognised, and that nothing answers: another program would answer another question
