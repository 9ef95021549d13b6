"""Deaths and couples: the sentences that tell of them, and the facts that are over with a couple."""

import re

from ..core.text.calendar_words import DAYS_NEAR, MONTH, SEASON
from ..core.text.kinship import english_names, korean_names
from ..core.text.normal_form import LazyPattern
from ..store.sqlite.facts import Fact, FactTable
from .statement import Statement, normal_value, relation_of

TOGETHER_AGAIN = "together again"  # relation of a couple that was parted; its value is a name, or empty

COUPLE_CUES = frozenset((  # first four letters of words of which one is in every sentence about a couple that other lists do not know
    "brok", "spli", "sepa", "divo", "part", "toge", "coup", "dump", "ende", "call", "marr", "enga", "dati", "back", "took", "seei", "over"))
_EN_NOUNS, _KO_NOUNS = english_names("spouse", "partner"), korean_names("spouse", "partner")
_NOUN = rf"(?:{'|'.join(_EN_NOUNS)})"
_NO_NAME = "He|She|It|They|We|You|I|The|This|That|These|Those|My|Our|His|Her|Who|What|If|When|Both|And|But|So"
_NAME = rf"(?!(?:{_NO_NAME})\b)[A-Z][\w'-]*"
_WHO = rf"(?:(?P<n>{_NAME})|[Mm]y (?:ex-)?{_NOUN}(?:,? (?P<m>{_NAME}))?)"
_WHEN = (rf"(?:(?:,? (?:in (?:the )?(?:(?:early|late) )?(?:(?i:{MONTH})|(?i:{SEASON})|(?:19|20)\d\d|end)|on \w+day|at the weekend|last|"
         rf"this|{'|'.join(DAYS_NEAR)}|(?:an?|two|three|four|five|six|a few|some|\d+) \w+ ago|recently|finally|officially|for good|"
         r"any ?more|any longer|again|now|after|because|since)\b[^;.!?]*)?)(?=[.!;]|, | and | but |$)")
_HAVE = r"(?:'ve|'re|'d)?(?: (?:have|has|had|are|am|were|was|got|just|recently|finally|sadly|officially|both|now|actually|decided to))*"
_PARTED = tuple(LazyPattern(pattern) for pattern in (  # *Erik and I broke up*, *I left my husband*, *Erik dumped me*
    rf"(?:{_WHO} and (?:I|me)|(?:[Ii]|[Mm]e) and {_WHO.replace('<n>', '<n2>').replace('<m>', '<m2>')}|[Ww]e){_HAVE} "
    r"(?:bro(?:ke|ken) up|split(?: up)?|separated?|divorced|parted ways|(?:no longer|not) (?:together|a couple|married|engaged|dating)|"
    r"(?:called|broke|broken) off (?:the|our) (?:wedding|engagement)|called (?:the|our) (?:wedding|engagement) off|"
    rf"ended (?:it|things|our (?:relationship|marriage|engagement))){_WHEN}",
    rf"I{_HAVE} (?:dumped|divorced|left(?= my)|(?:bro(?:ke|ken)|split) (?:it )?(?:up|off) with|split from|separated from|divorced from|"
    rf"ended (?:it|things) with|called off (?:the|my) engagement (?:to|with)) {_WHO}{_WHEN}",
    rf"{_WHO}{_HAVE} (?:(?:dumped|left|divorced) me(?: for \w+(?: \w+)?)?|(?:broke|broken|split) up with me|"
    rf"(?:ended|called|broke|broken) (?:it|things) (?:off )?with me){_WHEN}",
    rf"(?:[Mm]y|[Oo]ur) (?:marriage|relationship|engagement)(?: (?:to|with) {_WHO})?{_HAVE} "
    rf"(?:is|are|broke|fell)? ?(?:over|ended|off|apart){_WHEN}"))
_AGAIN = LazyPattern(  # *We're back together*, *I'm seeing Marcus again*
    rf"(?:(?:{_WHO} and (?:I|me)|[Ww]e){_HAVE} (?:(?:gotten |getting )?back together|together again|(?:dating|seeing each other) again)|"
    rf"I{_HAVE} (?:(?:gotten )?back (?:together )?with|took) (?P<o>{_NAME}|my (?:ex|{_NOUN}))(?: back)?){_WHEN}")
_IS = LazyPattern(rf"(?P<x>{_NAME}(?: {_NAME})?) (?:is|'s) (?:now )?my (?P<r>(?:ex-?)?(?:{_NOUN}))[.! ]*$")
_HAS = LazyPattern(rf"I(?: have|'ve)(?: got)? an? (?:new )?(?P<r>{_NOUN})(?:,? (?:called |named )?(?P<x>{_NAME}))?(?: now)?[.! ]*$")
_PAIR = LazyPattern(rf"(?:(?P<x>{_NAME}) and I|I and (?P<y>{_NAME}))(?:'re| are| got| have been)(?: now| just| finally)?"
                    rf" (?P<r>married|engaged|dating|a couple|together|going out){_WHEN}")
_OPENER = LazyPattern(r"(?:(?:[Ss]adly|[Ww]ell|[Ss]o|[Oo]h|[Oo]k(?:ay)?|[Uu]nfortunately|[Yy]es|[Nn]o|[Uu]pdate|[Nn]ews|[Bb]ad news|"
                      r"[Gg]ood news|[Ll]ast \w+|[Yy]esterday|[Tt]oday|[Bb]y the way|[Aa]nyway)[,:.! ]+)+")


def couple_statement(sentence: str,  # one English sentence, with contractions
                     speaker: str,   # speaker, who is one of the couple
                     ) -> tuple[Statement, str] | None:  # the statement, and the words after it
    "Return what a sentence tells of the speaker's couple: *Erik and I broke up*, *We're back together*, *Marcus is my boyfriend*."
    plain = sentence.replace("’", "'").strip()
    if plain.endswith("?") or not re.search(r"\b(?:I|[Ww]e|[Mm]y|[Oo]ur|me)\b", plain):
        return None
    plain = plain[m.end():] if (m := _OPENER.match(plain)) else plain
    for pattern in _PARTED:
        if m := pattern.match(plain):
            name = next((v for key, v in m.groupdict().items() if v and key in ("n", "m", "n2", "m2")), "")
            return Statement(speaker, "partner", name, True, ended=True), plain[m.end():]
    if m := _AGAIN.match(plain):
        name = m["n"] or m["m"] or m["o"] or ""
        return Statement(speaker, TOGETHER_AGAIN, "" if name.startswith("my ") else name), plain[m.end():]
    if m := _IS.match(plain):
        former = m["r"].startswith("ex")
        return Statement(speaker, "partner" if former else relation_of(m["r"])[0], m["x"], True, ended=former), ""
    if m := _HAS.match(plain):
        return Statement(speaker, relation_of(m["r"])[0], m["x"] or m["r"], m["x"] is not None), ""
    if m := _PAIR.match(plain):
        return Statement(speaker, "spouse" if m["r"] == "married" else "partner", m["x"] or m["y"], True), plain[m.end():]
    return None


_COUPLE = ("spouse", "partner", TOGETHER_AGAIN)
_STATUS = "marital status"
_ALONE = frozenset(("single", "divorced", "widowed", "separated", "이혼", "파혼", "솔로", "미혼", "싱글", "돌싱"))
_NAMED_NOUN = LazyPattern(rf"(?:new )?{_NOUN}(?:,? (?:called |named )?(?P<x>.+))?")


def is_of_a_couple(statement: Statement,  # a statement that the grammar has read
                   ) -> bool:
    "Return whether a statement says who the speaker's partner is, in a form that has several values: `내 남자친구는 준호야`."
    return statement.relation == "is" and statement.subject.rpartition("'s ")[2] in _KO_NOUNS and "'s " in statement.subject


def _partner(fact: Fact) -> str:
    "The name of the partner in a fact; empty: it tells none."
    if fact.relation_key == _STATUS or fact.value_key in (*_EN_NOUNS, *_KO_NOUNS):
        return ""
    m = _NAMED_NOUN.fullmatch(fact.value_key) if fact.relation_key == "have" else None
    return m["x"] or "" if m else fact.value_key


def over_with_couple(facts: FactTable,  # facts of the store
                     namespace: str,    # partition of the memory
                     me: str,           # its speaker, in normal form
                     fact: Fact,        # a fact that it states
                     ) -> list[Fact]:
    """Return the current facts that are over when a couple parts, marries or comes together again, and of a new partner that one was
    single. A name that no fact has is another's; without a name the one partner is meant."""
    relation, value, denies = fact.relation_key, fact.value_key, fact.negated or fact.ended
    single = relation == _STATUS and not denies and value in _ALONE
    parted = single or (fact.ended and relation in _COUPLE)
    left = fact.ended and relation == "employer" and value != ""  # *I left Erik*
    begins = not denies and relation in _COUPLE
    if fact.subject_key != me or not (parted or left or begins):
        return []
    had = facts.about_any(namespace, [*((me, r) for r in (*_COUPLE, _STATUS, "have")),
                                      *((f"{me}'s {n}", r) for n in (*_EN_NOUNS, *_KO_NOUNS) for r in ("name", "is"))])
    if begins:
        again = relation == TOGETHER_AGAIN
        return [o for o in had if (o.relation_key == _STATUS and o.value_key in _ALONE and not again)
                or (again and o.ended and o.relation_key in _COUPLE and (not value or o.value_key in ("", value)))
                or (relation == "spouse" and o.relation_key == "partner" and not o.ended and o.value_key == value)]
    had = [o for o in had if not (o.negated or o.ended) and (o.relation_key != "have" or _NAMED_NOUN.fullmatch(o.value_key))
           and not (o.relation_key == _STATUS and (single or o.value_key in _ALONE))]
    names = {name for o in had if (name := _partner(o))}
    if value and not single and value not in (*_EN_NOUNS, *_KO_NOUNS, *_ALONE):
        names = {n for n in names if n == value or value in n.split() or n in value.split()}
        if not names and (left or any(_partner(o) for o in had)):
            return []
    elif len({n.split()[0] for n in names if n.isascii()} | {n for n in names if not n.isascii()}) > 1:
        return []
    return [o for o in had if _partner(o) in ("", *names)]


def told_alone(value: str,  # value of a statement about a partner
               ) -> bool:
    "Return whether a value is no name but what the partner is: *boyfriend*, `남자친구`; it ends no other partner."
    return normal_value(value) in (*_EN_NOUNS, *_KO_NOUNS)
