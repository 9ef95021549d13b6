"""Programs for paths, ties and statements: what individuals are said to have, which has most, which comes after a date.

A program is source text for the sandbox, chosen in `composition` by the lines of `rlm/data/programs.tsv` that bear its name."""

import re
from collections.abc import Callable, Mapping
from textwrap import indent

from ..memory.linking import Link, bare, singular
from ..ontology.entity_tools import IRREGULAR
from ..ontology.query_tools import other_words
from ..memory.questions import guards_in, match_intents, senses, words_called
from ...core.text import FUNCTION_WORDS, tokens
from ...core.text.calendar_words import MONTH, month_number
from ...core.text.number_words import number_told

Marks = Mapping[str, Link]  # mark in a question → the name in its place
Program = Callable[[re.Match[str], Marks, str], str]  # match of its line, names, words of the question → code; empty where it is none


def iri_of(marks: Marks,  # names of a question by their marks
           mark: str,     # mark of a name in the question
           ) -> str:
    "Return the term that a mark stands for."
    return marks[mark].terms[0].iri


def sparql_name(iri: str,  # short name of a term, or its IRI
                ) -> str:
    "Write a term for a query."
    return f"<{iri}>" if iri.startswith("http") else iri


def property_of(link: Link) -> str:
    "Return the property that a name stands for; empty where it is none."
    return next((t.iri for t in link.terms if t.kind.endswith("property")), "")


def relation_name(m: re.Match[str],  # match of a line with a group `rel`
                  marks: Marks,      # names by their marks
                  ) -> str:
    "Return a property by its short name; else the words that should name one."
    link = marks.get(m["rel"])
    return m["rel"] if link is None else property_of(link) or link.mention.text.lower()


def _individuals(m: re.Match[str], marks: Marks) -> str:
    "Code for `items`: the individuals of the kind that a question names, or all."
    kind = m.groupdict().get("kind")
    return pages(f"find_terms(kind='individual'{f', instance_of={iri_of(marks, kind)!r}' if kind else ''}", NAMES)


def pages(call: str,                    # call of a tool, written up to its last argument
          shown: str = 'view["items"]',  # expression for the kept part of a page
          ) -> str:
    "Write code that collects all pages of a call as `items`."
    return (f"items, more = [], True\nwhile more:\n    view = {call}, offset=len(items))\n    items += {shown}\n"
            "    more = view[\"truncated\"] and len(view[\"items\"]) > 0\n")


NAMES = '[i["iri"] for i in view["items"]]'
_PATH = """up = find_path({a!r}, {b!r}, limit=1)["items"]
down = find_path({b!r}, {a!r}, limit=1)["items"]
if up or down:
    way = (up or down)[0]["path"].split(" > ")
    FINAL(way if up else way[::-1])
else:
    ways = [i["path"].split(" ") for i in relate({a!r}, {b!r}, limit=1)["items"]]
    FINAL([w.strip("–→") for way in ways for w in way if w.startswith("–")])
"""
_TIES = """view = relate({a!r}, {b!r})
ways = [i["path"].split(" ") for i in view["items"]]
single = sorted({{w[1].strip("–→") for w in ways if len(w) == 3}})
if view["is_a"] == "a is a b":
    FINAL({a!r} + {is_a!r} + {b!r})
elif view["is_a"] == "b is a a":
    FINAL({b!r} + {is_a!r} + {a!r})
else:
    FINAL(single or [" ".join(w) for w in ways[:5]])
"""
_PURPOSE = """told = [f["value"] for f in describe_entity({term!r}, fact="definition")["items"]][:1]
told = [v.rpartition("@")[0] if v[-3:-2] == "@" else v for v in told]
"""
_CRITERIA = _PURPOSE + """told += [f["value"] for f in describe_entity({term!r}, fact="equivalent class")["items"] if " " in f["value"]]
FINAL("; ".join(told))
"""
_HEADER = """told = [f["value"] for f in about_ontology({fact!r})["items"]]
FINAL(told)
"""


def filled(code: str,  # code with the groups of a line in braces
           ) -> Program:
    "Return a program of fixed code, with the terms that a question names."
    def program(m: re.Match[str], marks: Marks, question: str) -> str:
        said = {group: iri_of(marks, text) if text in marks else text for group, text in m.groupdict().items()}
        return code.format(**said, is_a=" is a kind of " if m.string.isascii() else ": 하위 클래스, 상위: ")
    return program


def _header(m: re.Match[str], marks: Marks, question: str) -> str:
    "Code for what the file's header says."
    return _HEADER.format(fact=_meant("about", m["fact"]))


# Values of individuals. A relation may be words; the first individual's call tells which property they mean.
_RELATION = """def relation_of(term, names):
    for name in names:
        try:
            return related_terms(term, name)["relation"]
        except (ValueError, LookupError):  # the ontology has no such property
            continue
    return ""
"""
_ROWS = _RELATION + """def value_rows(known, *names):
    prop = relation_of(known[0], names)
    name = "<" + prop + ">" if prop.startswith("http") else prop
    handle = sparql("SELECT DISTINCT ?x ?v { ?x ?p ?v . ?p <http://www.w3.org/2000/01/rdf-schema#subPropertyOf>* " + name + " }")
""" + indent(pages("handle.page(limit=200"), "    ") + """    return prop, [(r["x"], r["v"]) for r in items if r["x"] in known]
def comparable(rows, dated):
    if dated:
        return [(x, str(v)) for x, v in rows if str(v)[:4].isdigit() and len(str(v)) in (4, 7, 10, 19, 20, 25)]
    return [(x, v) for x, v in rows if isinstance(v, (int, float)) and v is not True and v is not False]
"""
_MEASURED = """def states_unit(prop, unit):
    facts = describe_entity(prop)["items"]
    told = " ".join([str(f["value"]) for f in facts if f["fact"] in ("definition", "label") or "unit" in f.get("by", "").lower()])
    words = "".join([c if c.isalnum() else " " for c in told.lower()]).split()
    return any([all([p in words for p in w.split("/")]) or (len(w) > 4 and any([t.startswith(w) for t in words])) for w in unit])
"""
_ATTRIBUTE = "[가-힣]{0,6}[" + "".join(chr(0xAC00 + 28 * i + final) for i in range(399) for final in (4, 8)) + "]"
_KOREAN_DAY = r"\d{4}년(?: ?\d\d?월)?(?: ?\d\d?일)?"
_DATE = rf"(?:\d{{4}}(?:-\d\d){{0,2}}|{_KOREAN_DAY}|(?:\d\d? )?(?:{MONTH})(?: \d\d?,?)? \d{{4}})"


def _any_of(*groups: str) -> str:
    return "(?:" + "|".join(words for group in groups for words in senses(group).values()) + ")"


SIGNS = {"<CMP>": _any_of("sign"), "<WHEN>": _any_of("when"), "<MOST>": _any_of("most"), "<LAST>": _any_of("last"),
         "<MORE>": _any_of("more"), "<DEGREE>": _any_of("degree"),
         "<THAN>": re.sub(r"est\b", "er", _any_of("degree").replace("least ", "less ").replace("most ", "more ")),
         "<LATER>": _any_of("later"), "<ABOUT>": _any_of("about"),
         "<DATE>": _DATE, "<KDOES>": _ATTRIBUTE,
         "<NUMBER>": r"-?\d+(?:[.,]\d+)*", "<DOES>": "(?:does|do|did)", "<KPART>": r"(?:일부|부분|\{p\d+\})",
         "<UNIT>": "(?P<unit>[a-z%]+(?:/[a-z]+)?|(?!보다|[을를이가] |넘|초과|이상|이하|미만)[가-힣]{1,4}?)?"}  # sign in a line → pattern


def _meant(group: str, words: str) -> str:
    "What words of a group mean; empty for words of another."
    return next((sense for sense, pattern in senses(group).items() if re.fullmatch(pattern.replace("(?<=보다 )", ""), words)), "")


def _date(words: str) -> str:
    "A day, month or year as ISO 8601 writes it."
    if named := re.fullmatch(rf"(\d\d? )?({MONTH})( \d\d?,?)? (\d{{4}})", words):
        day = (named[1] or named[3] or "").strip(" ,")
        return f"{named[4]}-{month_number(named[2]):02}" + (f"-{int(day):02}" if day else "")
    year, *rest = re.findall(r"\d+", words)
    return "-".join([year, *(f"{int(n):02}" for n in rest)])


def _rows(m: re.Match[str], marks: Marks, dated: bool) -> str:
    "Code for `kept`: the individuals of a kind, or all that the relation is said of, with their numbers or dates."
    rel = relation_name(m, marks)
    names = f"{rel + ' date'!r}, {rel!r}" if dated and rel not in marks else f"{rel!r}"
    return _ROWS + _individuals(m, marks) + f"prop, rows = value_rows(items, {names})\nkept = comparable(rows, {dated})\n"


def _unit(m: re.Match[str]) -> list[str]:
    "Words for the unit that a question says; none where it says none."
    unit = m.groupdict().get("unit")
    return [unit, *senses("unit").get(unit, "").split()] if unit else []


def _compared(m: re.Match[str], marks: Marks, question: str) -> str:
    "Code for the individuals whose number is above or below one; a unit must be the property's."
    number, unit = m["number"].replace(",", ""), _unit(m)
    code = _rows(m, marks, False) + f"said = sorted({{x for x, v in kept if v {_meant('sign', m['cmp'])} {number}}})\n"
    if not unit:
        return code + "FINAL(said)\n"
    return code + _MEASURED + f"if states_unit(prop, {unit!r}):\n    FINAL(said)\n"


def _dated(m: re.Match[str], marks: Marks, question: str) -> str:
    "Code for the individuals with a date before or after one. Korean counts the bound itself or not, so a value there leaves no answer."
    bound, sign = _date(m["date"]), _meant("when", m["when"])
    near = f"[x for x, v in kept if v[:{len(bound)}] == {bound!r}] == [] and " if sign.endswith("?") else ""
    return _rows(m, marks, True) + (f"said = sorted({{x for x, v in kept if v[:{len(bound)}] {sign.rstrip('?')} {bound!r}}})\n"
                                    f"if {near}said:\n    FINAL(said)\n")


def _first(m: re.Match[str], marks: Marks, question: str) -> str:
    "Code for the individuals with the highest or lowest number, or the latest or earliest date."
    dated = _meant("last", m["most"])
    best = f"{dated or _meant('most', m['most'])}([v for x, v in kept])"
    return _rows(m, marks, dated != "") + f"if kept:\n    FINAL(sorted({{x for x, v in kept if v == {best}}}))\n"


_MORE_OF_TWO = """if len(kept) == 2 and values[0] != values[1]:
            more = [x for x, v in kept if v == (max(values) if best == "max" else min(values))][0]
            FINAL(more == {a!r} if {asks} else [more])"""


def _degree_of_two(m: re.Match[str], marks: Marks, question: str) -> str:
    "Code for which of two individuals has more of what an adjective measures, or whether the first has: *which is longer, A or B?*"
    a, b = iri_of(marks, m["a"]), iri_of(marks, m["b"])
    ways = _ways(_superlative(m["degree"]))
    chosen = _MORE_OF_TWO.format(a=a, asks="asks" in m.groupdict() and m["asks"] is not None)
    return _ROWS + f"items = [{a!r}, {b!r}]\n" + _DEGREE.format(ways=ways, chosen=chosen) if ways else ""


def _of_two(m: re.Match[str], marks: Marks, question: str) -> str:
    "Code for which of two individuals has the higher number or the later date, or whether the first has."
    a, b, dated = iri_of(marks, m["a"]), iri_of(marks, m["b"]), _meant("later", m["more"])
    sign = ">" if (dated or _meant("more", m["more"])) == "max" else "<"
    code = _ROWS + (f"prop, rows = value_rows([{a!r}, {b!r}], {relation_name(m, marks)!r})\n"
                             f"kept = comparable(rows, {dated != ''})\none = [v for x, v in kept if x == {a!r}]\n"
                             f"other = [v for x, v in kept if x == {b!r}]\nif len(one) == 1 and len(other) == 1 and one != other:\n")
    if "asks" in m.groupdict():
        return code + f"    FINAL(one[0] {sign} other[0])\n"
    return code + f"    FINAL({a!r} if one[0] {sign} other[0] else {b!r})\n"


def _rows_among(variables: str, pattern: str) -> str:
    "Code for `said`: the distinct values of variables in a SPARQL pattern whose ?x is one of `items`."
    return f"known = items\nhandle = sparql('SELECT DISTINCT {variables} ' + {pattern!r})\n" + pages("handle.page(limit=200") + (
        "said = [r for r in items if r[\"x\"] in known]\n")


_BY_ONE_PROPERTY = """if len({r["p"] for r in said}) == 1:
    FINAL(sorted({r["x"] for r in said}))
"""


def _valued(m: re.Match[str], marks: Marks, question: str) -> str:
    "Code for the individuals of a kind that one property leads to a value: a concept, with those narrower, or an individual."
    term = next((t for t in marks[m["value"]].terms if t.kind in ("concept", "individual")), None)
    if term is None:
        return ""
    pattern = (f"{{ ?x ?p ?v . ?v <http://www.w3.org/2004/02/skos/core#broader>* {sparql_name(term.iri)} "
               "FILTER(?p != <http://www.w3.org/1999/02/22-rdf-syntax-ns#type>) }")
    return _individuals(m, marks) + _rows_among("?x ?p", pattern) + _BY_ONE_PROPERTY


_ADJECTIVE = """classes = [i for i in search_entity({name!r}, limit=4)["items"] if i["kind"] == "class"]
heads = [i["iri"] for i in classes if i["why"] in ("exact", "same letters")]
if len(heads) == 1 and relate(heads[0], {kind!r})["is_a"] == "a is a b":
    FINAL([i["iri"] for i in instances(heads[0])["items"]])
"""


def _called(m: re.Match[str], marks: Marks, question: str) -> str:
    "Code for the instances of the class that an adjective and the kind name together: *which assets are critical?*"
    link = marks[m["kind"]]
    return _ADJECTIVE.format(name=f"{m['adjective']} {link.terms[0].text.lower()}", kind=link.terms[0].iri)


BOUNDS = """def bounds(whole, part, prop=""):
    lows, highs = [-1], [10 ** 9]
    for kind in [whole, *[i["iri"] for i in hierarchy(whole, direction="up")["items"]]]:
        for fact in describe_entity(kind, fact="restriction")["items"]:
            words = fact["value"].split()
            at = [i + 1 for i, w in enumerate(words) if w in ("exactly", "min", "max") and words[i + 1:i + 2]]
            if not at or not words[at[0]].isdigit() or prop not in ("", words[0]):
                continue
            sign, number, filler = words[at[0] - 1], int(words[at[0]]), words[at[0] + 1:at[0] + 2]
            ranges = [f["value"] for f in describe_entity(words[0], fact="range")["items"]]
            named = part in (words[0], words[0].rpartition(":")[2].lower().removeprefix("has"))
            if part in (filler or ranges) or (named and (not filler or filler[0] in ranges or sign == "min")):
                lows += [number] if sign != "max" else []
                highs += [number] if sign != "min" else []
    return max(lows), min(highs)
"""  # lowest and highest number of parts that the restrictions of a class, and of those above it, leave
_BOUND = BOUNDS + """prop = {rel!r} if {rel!r} in ("", "have", "has") else related_terms({whole!r}, {rel!r})["relation"]
low, high = bounds({whole!r}, {part!r}, prop if ":" in prop else "")
if {least} <= low and high <= {most}:
    FINAL(True)
elif {most} < low or high < {least}:
    FINAL(False)
"""


def _bound(m: re.Match[str], marks: Marks, question: str) -> str:
    "Code for whether restrictions say that each thing of a class has so many of another."
    number = int(m["number"]) if m["number"].isdigit() else number_told(m["number"].replace("a single", "one"))
    rel, part = relation_name(m, marks), m.groupdict().get("part")
    return _BOUND.format(whole=iri_of(marks, m["whole"]), rel=rel, part=iri_of(marks, part) if part else rel,
                         least=-1 if m["bound"] == "at most" else number, most=10 ** 9 if m["bound"] == "at least" else number)


_KOREAN_WAY = """found = related_terms({term!r}, {rel!r}, direction="{way}"{among})
if "note" not in found:
    prop = found["relation"]
    labels = [f["value"].partition("@")[0] for f in describe_entity(prop, fact="label")["items"] if f["value"].endswith("@ko")]
    agent = prop.lower().endswith(("or", "er", "by")) or any([v.endswith(("자", "처", "인", "사", "사람")) for v in labels])  # 수행자
    found = related_terms({term!r}, prop, direction="to" if agent == {subject} else "from"{among})
if not found["truncated"]:
    FINAL([i["iri"] if "iri" in i else i["value"] for i in found["items"]])
"""


def _korean_way(subject: bool) -> Program:
    "A program for what a Korean verb leads to: of a term that does it (*{}가 공급하는 설비*), or of one that it is done to."
    def program(m: re.Match[str], marks: Marks, question: str) -> str:
        if len(marks) != len(set(re.findall(r"\{[citp]\d+\}", m[0]))):
            return ""
        kind = m.groupdict().get("kind")
        among = f", kind={iri_of(marks, kind)!r}" if kind else ""
        return _KOREAN_WAY.format(term=iri_of(marks, m["term"]), rel=relation_name(m, marks), subject=subject, among=among,
                                  way="from" if subject else "to")
    return program


def _stated(m: re.Match[str], marks: Marks, question: str) -> str:
    """Code for the individuals that have a value, or a yes or no: *which lift has the serial number AC-209?*, *which are not audited?*;
    where no property is named, as in *films from Korea*, by the only one that has the value."""
    said = m.groupdict()
    value = said.get("value", "").strip("'\"“”‘’")
    sort = said.get("sort")
    known = pages(f"find_terms(kind={sort!r}", NAMES) if sort else _individuals(m, marks)
    if "rel" not in said:
        pattern = (f'{{ ?x ?p ?v . FILTER(isLiteral(?v) && LCASE(STR(?v)) = "{value}" '
                   '&& !REGEX(STR(?p), "(label|name|title)$", "i")) }')
        plain = re.fullmatch(r"[\w .,&-]+", value) and not match_intents(m[0])  # *bread in Korean* asks for its label
        return known + _rows_among("?x ?p", pattern) + _BY_ONE_PROPERTY if plain else ""
    test = f"str(v).lower() in ({value!r}, {value + '.0'!r}) or str(v).lower().rpartition('@')[0] == {value!r}" if value else (
        f"v is {not said['no']}")
    return _ROWS + known + (f"rows = value_rows(items, {relation_name(m, marks)!r})[1]\n"
                            f"FINAL(sorted({{x for x, v in rows if {test}}}))\n")


_DEGREE = """def told(prop):
    said = prop.rpartition(":")[2] + " " + " ".join([str(f["value"]) for f in describe_entity(prop, fact="label")["items"]])
    apart = "".join([" " + c if c.isupper() else c if c.isalnum() else " " for c in said])
    return [w.lower() for w in apart.split()]
for best, words, dated in {ways!r}:
    props = [p["iri"] for p in find_terms(kind="property", limit=200)["items"]]
    props = [p for p in props if any([w.startswith(word) for w in told(p) for word in words])]
    found = [(p, comparable(value_rows(items, p)[1], dated)) for p in props]
    found = [(p, rows) for p, rows in found if rows]
    if len(found) == 1:
        prop, kept = found[0]
        values = [v for x, v in kept]
        {chosen}
"""
_EXTREME = """if len(kept) > 1:
            FINAL(sorted([x for x, v in kept if v == (max(values) if best == "max" else min(values))]))"""
_BEYOND = """if not dated and ({unit!r} == [] or states_unit(prop, {unit!r})):
            FINAL(sorted({{x for x, v in kept if {test}}}))"""


def _superlative(words: str) -> str:
    "The superlative of an English comparative: *tallest* of *taller*; other words as they are."
    return re.sub("er$", "est", re.sub("^less ", "least ", re.sub("^more ", "most ", words)))


def _ways(words: str) -> list[tuple[str, list[str], bool]]:
    "Where the degree of an adjective or its superlative may be found: highest or lowest, words of a property, whether it is a date."
    forms = (words, f"{words}est", f"{words}st", f"{words[:-1]}iest", f"{words}{words[-1:]}est", f"most {words}")
    meant = next(filter(None, (_meant("degree", form) for form in forms)), "")
    return [(best, told, "date" in told) for best, *told in map(str.split, meant.split("/"))] if meant else []


def _degree(m: re.Match[str], marks: Marks, question: str) -> str:
    """Code for the individuals of a kind with the highest or lowest value of the only property that an adjective or a verb measures, or
    with more or less of it than a number: *which is the tallest?*, *which are taller than 50 cm?*, *which cost less than 10 euros?*"""
    said = m.groupdict()
    number, verb, sign = said.get("number"), said.get("verb"), _meant("sign", said.get("cmp") or "")
    ways = _ways(_meant("measure", verb) if verb else _superlative(m["degree"]) if number else m["degree"])
    if said.get("end") in ("least", "shortest"):
        ways = [("min" if best == "max" else "max", words, dated) for best, words, dated in ways]
    test = f"v {sign} {{n}}" if sign else '(v > {n} if best == "max" else v < {n})'
    chosen = _BEYOND.format(test=test.format(n=number.replace(",", "")), unit=_unit(m)) if number else _EXTREME
    return _ROWS + _MEASURED + _individuals(m, marks) + _DEGREE.format(ways=ways, chosen=chosen) if ways else ""


_JOINED = """view = related_terms({term!r}, "any", kind={kind!r})
if not view["truncated"]:
    FINAL([i["iri"] for i in view["items"]])
"""  # by the only property that joins a term with terms of a kind


_WHICH = """def plain(facts):
    told = "".join([c if c.isalnum() else " " for c in " ".join([str(f["value"]) for f in facts])])
    return (told + " " + "".join([" " + c if c.isupper() else c for c in told])).lower().split()
wanted, kinds, found = {words!r}, {kinds!r}, []
for prop in [p["iri"] for p in find_terms(kind="property", deprecated=False, limit=500)["items"]]:
    facts = [f for f in describe_entity(prop)["items"] if f["fact"] in ("label", "definition", "domain", "range")]
    ends = [v for f in facts if f["fact"] in ("domain", "range") for v in f.get("members", [f["value"]]) if ":" in v and " " not in v]
    ends = [e for e in ends if not e.startswith("xsd:")]
    said = plain(facts + [f for e in ends for f in describe_entity(e, fact="label")["items"]])
    of = [k for k, names in kinds if any([n in said for n in names]) or any([relate(k, e)["is_a"] == "a is a b" for e in ends])]
    if len(of) == len(kinds) and all([any([w.startswith(o) for w in said for o in others]) for others in wanted]):
        found.append(prop)
if len(found) == 1:
    FINAL(found)
"""


_ASKING = {"when", "where", "who", "how", "much", "many", "must", "should", "put", "whether", "언제", "언제까지", "어디에", "얼마나",
           "누가"}


def _which_property(m: re.Match[str], marks: Marks, question: str) -> str:
    """Code for the only property whose labels, definition and ends have all words of what it should say, or other words for them:
    *which property tells when a copy has to be back?*"""
    classes = [marks[x] for x in dict.fromkeys(re.findall(r"\{c\d+\}", m["words"]))]
    kinds = [(k.terms[0].iri, k.mention.text.lower().split()) for k in classes]
    said = re.sub(r"\{[itp]\d+\}", lambda x: f" {marks[x[0]].mention.text.lower()} ", re.sub(r"\{c\d+\}", " ", m["words"]))
    wanted = []
    for word in (w for w in re.findall(r"[^\W_]+", said) if w not in known_words() | FUNCTION_WORDS | _ASKING):
        stem = next(iter(tokens(word)), word)
        stem = stem if word.startswith(stem) else stem[:-1]
        forms = [f for f in bare(word) if len(f) > 1] if not word.isascii() else [stem] if len(stem) > 3 else []
        others = other_words(forms[-1] if forms and not word.isascii() else word)
        others = [o for o in others if not any(o in names for _, names in kinds)]
        wanted.append([*(forms or [word]), *others])
    fits = wanted and kinds and not guards_in(m.string) - {"model"}
    return _WHICH.format(words=wanted, kinds=kinds) if fits else ""


def _measured(m: re.Match[str], marks: Marks, question: str) -> str:
    "Code for a number that is said of an individual, asked for by an adjective or a verb: *how long is it?*, *how much does it cost?*"
    said = m.groupdict()
    verb, adjective = said.get("verb") or "", said.get("adjective") or ""
    meant = _meant("measure", verb) or (adjective if verb in _MOVES else "")
    ways = [way for way in _ways(meant) if not way[2]] if meant and adjective in ("", "much", "many", meant) else []
    code = _ROWS + f"items = [{iri_of(marks, m['term'])!r}]\n" + _DEGREE.format(ways=ways, chosen="FINAL(values)")
    return code if ways else ""


_MOVES = ("", "go", "run", "drive", "travel", "move", "fly", "get")
_WHEN = """prop, rows = value_rows([{term!r}], *{names!r})
said = sorted({{v for x, v in comparable(rows, True)}})
if len(said) == 1:
    FINAL(said)
"""


def _when(m: re.Match[str], marks: Marks, question: str) -> str:
    "Code for the date at which something was done to an individual, by a property of the verb: *when was it commissioned?*"
    rel = relation_name(m, marks)
    verbs = () if m["rel"] in marks else dict.fromkeys((rel, IRREGULAR.get(rel, rel)))
    names = [f"{verb} {noun}" for verb in verbs for noun in ("date", "on", "day", "time", "year")]
    if m["rel"] not in marks and match_intents(rel):
        return ""
    return _ROWS + _WHEN.format(term=iri_of(marks, m["term"]), names=[*names, rel])


_COUNTED = """found = related_terms({term!r}, relation_of({term!r}, {names!r}))
said, name = found["items"], found["relation"].rpartition(":")[2].lower().removeprefix("has")
numbers = [i["value"] for i in said if isinstance(i.get("value"), (int, float))]
if len(numbers) == len(said) == 1:
    FINAL(numbers)
elif {sure} or name in {names!r}:
    FINAL(len([i for i in said if "iri" in i]))
"""


def _counted(m: re.Match[str], marks: Marks, question: str) -> str:
    "Code for how many things of a kind an individual has: the number that a property states, or how many things it leads to."
    rel = relation_name(m, marks)
    names = dict.fromkeys([rel] if m["rel"] in marks else [rel, singular(rel)])
    sure = m["rel"] in marks and property_of(marks[m["rel"]]) == rel
    return _RELATION + _COUNTED.format(term=iri_of(marks, m["term"]), names=[*names], sure=sure)


_MOST_BELOW = """handle = sparql("SELECT ?c (COUNT(DISTINCT ?x) AS ?n) {{ ?x {way} ?c . {among}"
                "FILTER(isIRI(?c) && isIRI(?x) && ?c != ?x) }} GROUP BY ?c")
counts = [(r["n"], r["c"]) for r in handle.page(limit=1000)["items"] if not r["c"].startswith("owl:")]
most = [c for n, c in counts if n == max([n for n, c in counts])] if handle.total < 1000 else []
if {everywhere} and most != [i["iri"] for i in list_entities("root class", limit=1)["items"]]:
    most = []
FINAL(most)
"""


def _most_below(m: re.Match[str], marks: Marks, question: str) -> str:
    """Code for the class with most classes one level below it, or most instances; where no level is named, only if it also has most
    below it at any depth."""
    kind, of = m.groupdict().get("kind"), re.match("inst|indi|memb|val|인스|개체|값", m["what"])
    name = iri_of(marks, kind) if kind else ""
    among = f"?c <http://www.w3.org/2000/01/rdf-schema#subClassOf>+ {sparql_name(name)} . " if name else ""
    way = "<http://www.w3.org/1999/02/22-rdf-syntax-ns#type>" if of else "<http://www.w3.org/2000/01/rdf-schema#subClassOf>"
    return _MOST_BELOW.format(way=way, among=among, everywhere=not (of or m["direct"] or kind))


_MORE_BELOW = """def number(term, direct):
    if {instances}:
        return instances(term, limit=1)["total"]
    return hierarchy(term, depth=1, limit=1)["total"] if direct else hierarchy(term, limit=1)["total"]
said = [number({a!r}, d) {sign} number({b!r}, d) for d in {levels}]
if len({{*said}}) == 1:
    FINAL(said[0])
"""


def _more_below(m: re.Match[str], marks: Marks, question: str) -> str:
    "Code for whether a class has more or fewer below it than another; where no level is named, only if one level and all say the same."
    levels = (True,) if m["level"] in ("direct ", "immediate ", "직속 ", "직접 ") else (False,) if m["level"] else (True, False)
    return _MORE_BELOW.format(a=iri_of(marks, m["a"]), b=iri_of(marks, m["b"]), sign="<" if m["sign"] in ("fewer", "적") else ">",
                              instances=re.match("inst|indi|인스|개체", m["what"]) is not None, levels=levels)


_SO_MANY_BELOW = """sets = []
for way in {ways!r}:
    handle = sparql("SELECT ?c (COUNT(DISTINCT ?x) AS ?n) {{ ?x <http://www.w3.org/2000/01/rdf-schema#subClassOf>" + way + " ?c . "
                    "FILTER(isIRI(?c) && isIRI(?x) && ?c != ?x) }} GROUP BY ?c HAVING (COUNT(DISTINCT ?x) {sign} {number})")
    sets.append([c for c in handle.distinct("c")["items"] if not c.startswith("owl:")])
if sets[0] == sets[-1] and len(sets[0]) < 1000:
    FINAL(sets[0])
"""


def _so_many_below(m: re.Match[str], marks: Marks, question: str) -> str:
    "Code for the classes with so many below them; where no level is named, only if one level and all give the same classes."
    number = int(m["number"]) if m["number"].isdigit() else number_told(m["number"])
    sign = "=" if m["sign"] in (None, "exactly", "only") else "<" if m["sign"] == "fewer than" else _meant("sign", m["sign"])
    uncounted = not number or "<" in sign  # classes without any
    return "" if uncounted else _SO_MANY_BELOW.format(ways=("",) if m["direct"] else ("", "+"), sign=sign, number=number)


_LEADS = _RELATION + """prop = relation_of({a!r}, {names!r})
steps = [f["value"].lower() for f in describe_entity(prop, fact="characteristic")["items"]]
seen, waiting = [], [{a!r}]
while waiting:
    for i in related_terms(waiting.pop(), prop)["items"]:
        if "iri" in i and i["iri"] not in seen:
            seen.append(i["iri"])
            if "transitive" in steps:
                waiting.append(i["iri"])
if any([t == {b!r} or relate(t, {b!r})["is_a"] == "a is a b" for t in seen]):
    FINAL(True)
"""


def _leads(m: re.Match[str], marks: Marks, question: str) -> str:
    "Code for whether a relation leads from one term to another, in steps where it is transitive; it never says no."
    if m["rel"] not in marks and match_intents(m["rel"]):
        return ""
    names = [relation_name(m, marks), *(() if m.string.isascii() else _PART)]
    return _LEADS.format(a=iri_of(marks, m["a"]), b=iri_of(marks, m["b"]), names=names)


_NEEDED = """known = [{kind!r}, *[i["iri"] for i in hierarchy({kind!r})["items"]]]
handle = sparql("SELECT DISTINCT ?x {{ {name} <http://www.w3.org/2000/01/rdf-schema#subClassOf>* ?d . "
                "?d <http://www.w3.org/2000/01/rdf-schema#subClassOf> ?r . ?r owl:someValuesFrom|owl:onClass ?x . "
                "FILTER NOT EXISTS {{ ?r owl:maxQualifiedCardinality ?n }} }}")
FINAL([x for x in handle.distinct("x")["items"] if x in known])
"""


def _needed(m: re.Match[str], marks: Marks, question: str) -> str:
    "Code for what each thing of a class must have, of a kind."
    whole = iri_of(marks, m["whole"])
    return _NEEDED.format(kind=iri_of(marks, m["kind"]), name=sparql_name(whole))


def _can_have(m: re.Match[str], marks: Marks, question: str) -> str:
    "Code for whether a property may be said of a class, by its domains."
    prop = property_of(marks[m["property"]])
    return prop and _CAN_HAVE.format(whole=iri_of(marks, m["whole"]), property=prop)


_CAN_HAVE = """if related_terms({whole!r}, {property!r})["items"]:
    FINAL(True)
domains = []
for f in describe_entity({property!r}, fact="domain")["items"]:
    domains += f["members"] if "members" in f else [f["value"]]
if domains:
    FINAL(any([d == {whole!r} or relate({whole!r}, d)["is_a"] in ("a is a b", "b is a a") for d in domains]))
"""
_PART = ("part of", "partOf")  # what a Korean *부분* stands for where no property has a Korean name
_PART_OF = _RELATION + f"""prop = relation_of({{term!r}}, [{{rel!r}}, *{_PART}])
FINAL([i["iri"] for i in related_terms({{term!r}}, prop)["items"] if "iri" in i])
"""


def _can_be(m: re.Match[str], marks: Marks, question: str) -> str:
    "Code for what may be the value of a property; what may belong to a class is another question, and has no answer."
    prop = property_of(marks[m["term"]])
    return f"FINAL([f[\"value\"] for f in describe_entity({prop!r}, fact=\"range\")[\"items\"]])\n" if prop else "[]\n"


def known_words() -> set[str]:
    "Words that only ask."
    return {*words_called("idle"), *words_called("empty"), "may", "what", "which", "also"}


def _headers(m: re.Match[str], marks: Marks, question: str) -> str:
    "Code for two facts of the file's header, where both are stated."
    facts, known = [], known_words() | {"under", "was"}
    for part in (m["one"], m["other"]):
        told = [(fact, s) for fact, pattern in senses("about").items() if (s := re.search(rf"(?<![a-z가-힣])(?:{pattern})", part))]
        rest = part.replace(told[0][1][0], " ") if len(told) == 1 else "?"
        if len(told) != 1 or any(w not in known and w.rstrip("은는이가을를의") not in known for w in re.findall(r"[^\W_]+", rest)):
            return ""
        facts.append(told[0][0])
    return _HEADERS.format(facts=facts) if facts[0] != facts[1] else ""


_HEADERS = """told = [[f["fact"], f["value"]] for fact in {facts!r} for f in about_ontology(fact)["items"]]
said = [fact + ": " + ", ".join([v for name, v in told if name.startswith(fact)]) for fact in {facts!r}]
if not any([s.endswith(": ") for s in said]):
    FINAL("; ".join(said))
"""
_XREFS = """found = related_terms({term!r}, "http://www.geneontology.org/formats/oboInOwl#hasDbXref")["items"]
said = [str(i["value"]) for i in found if "value" in i]
found = [v for v in said if v.partition(":")[0].lower().startswith({db!r})]
FINAL(len(found) if {count} else found)
"""
_XREFS_TO = """handle = sparql("SELECT DISTINCT ?x ?v {{ ?x <http://www.geneontology.org/formats/oboInOwl#hasDbXref> ?v }}")
""" + pages("handle.page(limit=200") + """told = [(r["x"], str(r["v"]).lower()) for r in items]
FINAL(sorted({{x for x, v in told if {db!r} in (v, v.partition(":")[0])}}))
"""


def _xrefs(m: re.Match[str], marks: Marks, question: str) -> str:
    "Code for the cross-references of an OBO term, of one database where that is named: *the NCBI taxon id of …*."
    db = (m["db"] or "").replace(" ", "")
    code = _XREFS.format(term=iri_of(marks, m["term"]), db=db, count=m.groupdict().get("count") is not None)
    return code if db or not re.search(r"\b(?:id|iden)|아이디|식별|번호", m.string) else ""


_LOCATED = _RELATION + """found = related_terms({term!r}, relation_of({term!r}, ["location", "located in", "place", "장소", "위치"]))
if found["relation"].rpartition(":")[2].lower().removeprefix("is") in ("location", "haslocation", "locatedin", "place"):
    FINAL([i["iri"] if "iri" in i else i["value"] for i in found["items"]])
"""
_WHOLE = _RELATION + """prop = relation_of({term!r}, ["located in", "has location", "part of"])
FINAL([i["iri"] for i in related_terms({term!r}, prop)["items"] if "iri" in i])
"""  # where things of a class are: in what they are part of
_SKOS = """FINAL([i["iri"] for i in related_terms({{term!r}}, "http://www.w3.org/2004/02/skos/core#{name}")["items"]])
"""
_INSIDE = _RELATION + """prop = relation_of({term!r}, ["http://www.w3.org/2004/02/skos/core#member"])
said = related_terms({term!r}, prop)["items"] if prop else []
FINAL([i["iri"] for i in said or related_terms({term!r}, "located in", direction="to")["items"] if "iri" in i])
"""  # *what is in the collection?*, *what is inside the station?*
_DESCRIBED = """known = [i["iri"] for i in [*hierarchy({kind!r})["items"], *instances({kind!r})["items"]]]
said, doubt = [], False
for term in known:
    for fact in describe_entity(term, fact="definition")["items"]:
        words = "".join([c if c.isalnum() else " " for c in fact["value"].lower()]).split()
        wanted = {words!r}
        for w in words:
            if wanted and w.startswith(wanted[0]):
                wanted = wanted[1:]
        if not wanted:
            said.append(term)
            doubt = doubt or any([w in {turns!r} for w in words]) or ("by" in words) != {by}
FINAL(said if len({{*said}}) == 1 and not doubt else [])
"""


def _described(m: re.Match[str], marks: Marks, question: str) -> str:
    "Code for the only term of a kind whose definition has the words of the question in their order: *in which mechanic do players bid?*"
    said = re.sub(r"\{[citp]\d+\}", lambda x: marks[x[0]].mention.text.lower(), m["words"])
    words = [t for t in tokens(said) if t not in FUNCTION_WORDS]
    if len(words) < 3 or match_intents(m["words"]) or guards_in(m.string) or not m.string.isascii():
        return ""
    turns = ("not", "no", "without", "never", "except", "unlike", "cannot", "rather", "but", "or")
    return _DESCRIBED.format(kind=iri_of(marks, m["kind"]), words=words, turns=turns, by=" by " in m["words"])


_ABOUT_REPLACEMENT = (r"\b(?:(?:deprecated|obsolete|retired|withdrawn)(?: ones?)?|replac(?:es|ed|ing)|replacements?|successors?|"
                      r"instead(?: of them)?|each of them|(?:should|can|must) (?:i|we|you|one)|used?|terms?|class(?:es)?|concepts?|"
                      r"propert(?:y|ies)|them|with|respective|their)\b"
                      r"|폐기(?:된|한)?|대체(?:된|하는|할|한)?|대신(?: 쓸| 써야 할)?|용어|클래스|속성|개념|각각")
_SORTS = {"class": "class", "클래스": "class", "propert": "property", "속성": "property", "individual": "individual", "개체": "individual"}


def _labelled(m: re.Match[str], marks: Marks, question: str) -> str:
    "Code for the terms whose label has a word or a part of one, or for their number."
    word = (marks[m["word"]].mention.text if m["word"] in marks else m["word"]).lower()
    kind = next((sort for name, sort in _SORTS.items() if m["kind"].startswith(name)), "term")
    if not re.fullmatch(r"[\w -]+", word):
        return ""
    pattern = ("{ ?x ?p ?l . FILTER(isIRI(?x) && ?p IN (<http://www.w3.org/2000/01/rdf-schema#label>, "
               f"<http://www.w3.org/2004/02/skos/core#prefLabel>) && CONTAINS(LCASE(STR(?l)), '{word}')) }}")
    return pages(f"find_terms(kind={kind!r}", NAMES) + _rows_among("?x", pattern) + (
        "FINAL(len(said))\n" if m["count"] else "FINAL(sorted([r[\"x\"] for r in said]))\n")


_REPLACED = """said = []
for term in items:
    new, near = [[f["value"] for f in describe_entity(term, fact=fact)["items"]] for fact in ("replaced by", "consider")]
    said.append(term + ": " + (", ".join(new) if new else "consider " + ", ".join(near) if near else {none!r}))
if said:
    FINAL("; ".join(said))
"""


def _replaced(m: re.Match[str], marks: Marks, question: str) -> str:
    "Code for the deprecated terms, each with what replaces it, or with what the file says to consider."
    words = re.findall(r"[^\W_]+", re.sub(_ABOUT_REPLACEMENT, " ", m["said"]))
    kind = next((sort for name, sort in _SORTS.items() if name in m["said"]), "term")
    if any(w not in known_words() and w.rstrip("은는이가을를의와과") not in known_words() | {""} for w in words):
        return ""
    none = "none stated" if m.string.isascii() else "없음"
    return pages(f"find_terms(kind={kind!r}, deprecated=True", NAMES) + _REPLACED.format(none=none)


PROGRAMS: Mapping[str, Program] = {  # name in the table → program
    "path": filled(_PATH), "ties": filled(_TIES), "criteria": filled(_CRITERIA), "header": _header, "compared": _compared,
    "dated": _dated, "first": _first, "of two": _of_two, "valued": _valued, "called": _called, "bound": _bound, "doing": _korean_way(True),
    "done": _korean_way(False), "stated": _stated, "degree": _degree, "degree of two": _degree_of_two, "most below": _most_below,
    "more below": _more_below, "so many below": _so_many_below,
    "leads": _leads, "needed": _needed, "can have": _can_have, "part of": filled(_PART_OF), "headers": _headers,
    "exists": filled("FINAL(True)\n"), "described": _described, "xrefs": _xrefs, "xrefs to": filled(_XREFS_TO),
    "itself": filled("FINAL([{term!r}])\n"), "purpose": filled(_PURPOSE + "FINAL(told)\n"), "can be": _can_be,
    "labelled": _labelled, "measured": _measured, "located": filled(_LOCATED), "in": filled(_INSIDE), "whole": filled(_WHOLE),
    "members": filled(_SKOS.format(name="member")), "relatives": filled(_SKOS.format(name="related")), "when": _when,
    "which property": _which_property, "joined": filled(_JOINED), "counted": _counted, "replaced": _replaced}
