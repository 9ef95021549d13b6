"""Couples, health and times of life: the sentences that tell of them, and the facts that are over with one."""

import re

from ..core.text.calendar_words import DAYS_NEAR, MONTH, SEASON
from ..core.text.kinship import english_names, korean_names
from ..core.text.normal_form import LazyPattern
from ..store.facts import Fact, FactTable
from .statement import POSSESSION, Statement, normal_value, relation_of

TOGETHER_AGAIN = "together again"  # relation of a couple that was parted; its value is a name, or empty

_EN_NOUNS, _KO_NOUNS = english_names("spouse", "partner"), korean_names("spouse", "partner")
_SPOUSES = english_names("spouse") + korean_names("spouse")
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
    r"(?:bro(?:ke|ken) up|split(?: up)?|separated?|divorced|parted ways|(?:no longer|not) (?:together|a couple|married|engaged|dating)"
    r"(?! (?:this|tonight|today|until|till|at|for a|for the)\b)|"
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
_PAIR = LazyPattern(rf"(?:(?P<x>{_NAME}) and I|I and (?P<y>{_NAME}))(?:'re| are| got| have been|(?= remarried))(?: now| just| finally)?"
                    rf" (?P<r>(?:re)?married|hitched|tied the knot|eloped|engaged|dating|a couple|together|going out)"
                    rf"(?: for (?!a while$)[\w ]+)?{_WHEN}")
_WED = LazyPattern(rf"(?:[Ww]e|I)(?:'re|'ve|'m)?(?: (?:have|has|are|am|just|finally|officially|actually|got|now))* "
                   rf"(?:(?P<m>married|hitched|tied the knot|eloped)|(?<=got )engaged){_WHEN}")  # not *was married*
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
        wed = m["r"] in ("married", "remarried", "hitched", "tied the knot", "eloped")
        return Statement(speaker, "spouse" if wed else "partner", m["x"] or m["y"], True), plain[m.end():]
    if (m := _WED.match(plain)) and not re.search(r"\b(?:19|20)\d\d\b|\bago\b", m[0]):
        return Statement(speaker, _STATUS, "married" if m["m"] else "engaged", True), plain[m.end():]
    return None


_PARTS = (r"arms?|legs?|foot|feet|ankles?|wrists?|hands?|fingers?|knees?|elbows?|shoulders?|thumb|toes?|neck|back|hips?|head|tooth|teeth|"
          r"ears?|throat|stomach|tummy|eyes?|chest|ribs?|skin|nose|jaw")
_SIDE = r"(?:(?:left|right|lower|upper|bad|whole) )?"
_PART_OF = LazyPattern(rf"(?P<s>.+)'s {_SIDE}(?P<b>{_PARTS})$")
_ILL = (r"(?:[\w-]+ )?(?:cold|flu|covid|corona|pneumonia|cancer|shingles|chickenpox|measles|mumps|fever|cough|migraines?|rash|infection|"
        r"virus|stomach bug|bug|food poisoning|hay fever|hernia|concussion|pain|ache|toothache|headaches?|backache|tumou?r|anaemia|anemia|"
        r"depression|insomnia|vertigo|nausea|sciatica|eczema|gout|[a-z]+(?:itis|aemia|noma))")
_HURTS = LazyPattern(r"(?:hurts?|aches?|"
                     r"(?:is|are) (?:hurting|aching|sore|swollen|broken|sprained|bruised|painful|stiff|infected|killing me))\b")
_BROKE = LazyPattern(r"(?:have |has )?(?:broke|broken|sprained|twisted|injured|fractured|tore|torn|pulled|dislocated|hurt) "
                     rf"(?:my|his|her|their) {_SIDE}(?P<b>{_PARTS})\b")
_WELL = LazyPattern(r"(?:(?:is|are|feels?) (?:(?:completely|totally|fully|all|absolutely) )?(?:fine|all right|alright|ok(?:ay)?|healed|"
                    r"recovered|cured|good as new|back to normal|all better|pain[- ]free)|(?:has |have )?(?:completely |fully )?healed|"
                    r"stopped hurting)(?: up| nicely| well| completely)?(?: now)?(?:,? no (?:more )?pain)?$")
_ALL_WELL = LazyPattern(  # of a person: *I'm fine* is no news
    r"(?:am|is|are|feel|feels|(?:have|has) been) (?:(?:completely|totally|fully|all) (?:better|recovered|healed|cured|healthy|well)|cured|"
    r"cancer[- ]free|in remission|recovered|pain[- ]free)$|(?:have |has )?(?:fully |completely )?recovered$|tested negative$|"
    r"(?:have |has )?(?:got|had|was given|been given|were given) (?:the|an) (?:all[- ])?clear$")
_OVER_IT = LazyPattern(rf"(?:(?:am|is|are|got|gotten|have got|has got) over|(?:have |has )?(?:recovered from|beaten|beat)) "
                       rf"(?:the |my |his |her |this )?(?P<v>{_ILL})$")
_IT_IS_GONE = LazyPattern(r"(?:is|are|has|have) (?:(?:completely|finally|all) )?(?:gone|cleared up|passed|over)(?: away)?$|"
                          r"(?:cleared up|went away)$")
_NAMED_ILL = LazyPattern(rf"(?:(?:the|my|this) |.+'s )(?P<v>{_ILL})$", re.I)
_NONE_LEFT = LazyPattern(rf"(?:have|has) no (?:more )?(?P<v>{_ILL})$")


def health_statement(subject: str,    # whom or what a clause is about
                     predicate: str,  # verb and what follows it, without negation and adverbs
                     over: bool,      # whether the clause denies it, or says that it is over
                     speaker: str,    # speaker
                     ) -> Statement | None:
    "Return that somebody is ill or has a pain, or that this is over: *My knee hurts*, *I'm over my cold*, *Dad has recovered*."
    if part := _PART_OF.fullmatch(subject):
        if _HURTS.match(predicate) or _WELL.match(predicate):
            return Statement(part["s"], "illness", part["b"], ended=over or not _HURTS.match(predicate))
        return None
    if m := _BROKE.match(predicate):
        return None if over else Statement(subject, "illness", m["b"])
    if m := _OVER_IT.match(predicate) or (_NONE_LEFT.match(predicate) if over else None):
        return Statement(subject, "", m["v"], ended=True)
    if (m := _NAMED_ILL.fullmatch(subject)) and _IT_IS_GONE.match(predicate) and not over:
        return Statement(subject.rpartition("'s ")[0] or speaker, "", m["v"], ended=True)
    return Statement(subject, "illness", "", ended=True) if not over and _ALL_WELL.match(predicate) else None


_KO_PARTS = ("허리|무릎|어깨|머리|배|목|발목|손목|팔|다리|손|발|손가락|발가락|이|치아|눈|귀|위|속|등|가슴|골반|엉덩이|"
             "허벅지|종아리|팔꿈치|발바닥|사랑니|잇몸|목구멍")
_KO_ILL = ("감기|독감|코로나|몸살|식중독|대상포진|수두|홍역|두통|편두통|복통|치통|요통|생리통|기침|열|설사|체|담|"
           "[가-힣]+(?:염|병|암|증)|부상|화상|골절|디스크")
_KO_NOUN = LazyPattern(f"{_KO_PARTS}|{_KO_ILL}")
_KO_WHAT = rf"(?:(?:(?:왼쪽|오른쪽|양쪽) )?(?P<v>{_KO_PARTS}|{_KO_ILL})(?:이|가|은|는|도|을|를|에|에서)? ?)"
_KO_HURTS = LazyPattern(
    rf"{_KO_WHAT}(?:(?:너무|많이|좀|자꾸|계속|요즘|심하게|또) )*(?:아[파프]|아픈|쑤[셔시]|걸[렸려]|앓고|다쳤|다치셨|삐었|삐끗했|"
    r"부러졌|났어|결려|욱신|저려|시려)|(?P<w>아프셔|아프세요|아프시|편찮으[셔시]|아파|아픔)|"
    r"(?P<x>감기|독감|코로나|몸살|식중독|[가-힣]+(?:염|암))(?:이야|야|이에요|예요|입니다|임)$")
_KO_WELL = LazyPattern(  # `감기 다 나았어`, `허리 이제 안 아파`, `발목 이제 괜찮아`
    rf"{_KO_WHAT}?(?:(?:이제는?|이젠|다|완전히|싹|깨끗이|깨끗하게|드디어|이미|벌써|더 이상|더는|하나도|전혀) )*"
    r"(?:나았|나으[셨시]|낫게 됐|완쾌|완치|회복(?:했|됐|되었|하셨|되셨)|안 아[파프픔]|아프지 않|멀쩡해)|"
    rf"{_KO_WHAT.replace('<v>', '<w>')}(?:이제는?|이젠|다|완전히) ?괜찮아")


def korean_health(subject: str,    # whom or what a clause is about
                  predicate: str,  # the rest of the clause
                  speaker: str,    # speaker
                  ) -> Statement | None:
    "Return that somebody is ill or has a pain, or that this is over: `허리가 아파`, `감기 다 나았어`, `엄마 다 나으셨어`."
    own = subject.removeprefix(f"{speaker}'s ")
    if _KO_NOUN.fullmatch(own):  # `허리가 아파`, `내 허리가 아파`
        subject, predicate = speaker, f"{own} {predicate}"
    over = _KO_WELL.match(predicate)
    m = over or _KO_HURTS.match(predicate)
    value = next(filter(None, m.groups()), "") if m else ""
    return Statement(subject, "illness", value, ended=over is not None) if value or over else None


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


_OUT_OF_WORK = LazyPattern(r"unemployed|jobless|out of (?:work|a job)|between jobs|백수|무직|실직.*")
_TURNS = tuple((relation, begins, LazyPattern(value), over, LazyPattern(of)) for relation, begins, value, over, of in (
    # relation of a fact, whether it begins or ends, and its value; the relation that is over with it, and its values
    ("school", False, ".*", "occupation", r".*student.*|.*학원?생|[초중고][1-6]|.*학년"),
    ("service", False, ".*", "occupation", r"soldier|군인|.*병|사회복무요원"),
    ("employer", True, ".+", "employment", ".*"), ("employment", True, _OUT_OF_WORK.pattern, "employer", ".*"),
    ("marital status", True, "married|결혼|재혼|기혼|유부.", "partner", ".*"),
    ("illness", False, "", "have", _ILL), ("illness", False, "", "has", _ILL),
    ("missing", False, "", "hospital", ".*"), ("missing", False, "", "custody", ".*"), ("custody", False, "", "hospital", ".*")))
_KINDS_OF = (  # what of *the gym*, *piano* or `수영` may be given up
    " membership", " subscription", " account", " lesson", " lessons", " class", " classes", "장", " 학원", " 수업", " 회원권")
_PET_NOUNS = frozenset({*english_names("pet", "animal"), *korean_names("pet", "animal")})
_PARENTS = frozenset({"pregnancy"})  # relations that a couple has together


def over_with_life(facts: FactTable,   # facts of the store
                   namespace: str,     # partition of the memory
                   me: str,            # its speaker, in normal form
                   fact: Fact,         # a fact that it states
                   ) -> list[Fact]:
    """Return the current facts that are over with a turn of somebody's life, though they have another relation or value: a student with
    the school, a search for work with an employer, *the dentist appointment* with *the dentist* that is cancelled, a pet that has another
    home, and what is over with a couple."""
    begins, who, value = not (fact.negated or fact.ended), fact.subject_key, fact.value_key
    out = list[Fact]()
    turns = [(over, of) for relation, begun, told, over, of in _TURNS
             if (relation, begun) == (fact.relation_key, begins) and told.fullmatch(value)]
    if turns:
        had = facts.about_any(namespace, [(who, over) for over, _ in turns])
        out += [o for o in had if any(over == o.relation_key and of.fullmatch(o.value_key) for over, of in turns)]
    if fact.ended and fact.relation_key in _PARENTS and (who == me or who.removeprefix(f"{me}'s ") in (*_EN_NOUNS, *_KO_NOUNS)):
        couple = [me, *(f"{me}'s {noun}" for noun in (*_EN_NOUNS, *_KO_NOUNS))]
        out += facts.about_any(namespace, [(one, fact.relation_key) for one in couple])
    if fact.ended and value and fact.relation_key in ("", POSSESSION, "pet", "medication"):
        out += _parted_with(facts, namespace, who, value)
    return [*over_with_couple(facts, namespace, me, fact), *(o for o in out if not (o.negated or o.ended))]


def _parted_with(facts: FactTable, namespace: str, who: str, value: str) -> list[Fact]:
    "The current facts about what is cancelled, given up or given away: its membership or lessons, its time, and that it is a pet."
    kinds = {f"{value}{kind}" for kind in _KINDS_OF}
    names = [owner + name for owner in ("", f"{who}'s ") for name in (value, f"{value} appointment", f"appointment with {value}",
                                                                     *_event_names(value))]
    had = facts.about_any(namespace, [*((name, "time") for name in names), (value, "is"), *((who, r) for r in ("have", "subscription",
                                      "lesson", "pet", "medication")), *((f"{who}'s {noun}", "name") for noun in _PET_NOUNS)])
    return [o for o in had if (
        o.relation_key == "time" or (o.relation_key == "name" and o.value_key == value)
        or (o.relation_key == "is" and not _PET_NOUNS.isdisjoint(o.value_key.split()))
        or (o.relation_key == "medication" and o.value_key.endswith(f" of {value}"))
        or (o.relation_key == "pet" and (o.value_key.endswith((f" called {value}", f" named {value}")) or o.value_key == value))
        or o.value_key in kinds)]


def _event_names(value: str) -> list[str]:
    "How else an event may be named: *rome trip* is *trip to rome*."
    of, _, event = value.rpartition(" ")
    return [f"{event} {word} {of}" for word in ("to", "in", "with", "at") if of]


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
                or (relation == "spouse" and not o.ended and o.value_key == value and (o.relation_key == "partner" or (
                    o.relation_key in ("name", "is") and not o.subject_key.endswith(tuple(_SPOUSES)))))]
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
