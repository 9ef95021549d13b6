"""People and animals near to somebody, and titles, in English and Korean: each word once, with what it is."""

from typing import NamedTuple


class Kin(NamedTuple):
    "One person or animal near to somebody, by all of its names."

    kind: str  # relation: `parent`, `sibling`, `flatmate`
    pronoun: str  # she, he; `-`: either
    english: tuple[str, ...]  # names in English
    korean: tuple[str, ...]  # names in Korean; the first stands for the others


# A row with names in both languages is a translation: what one language stores of it, the other finds. A name may stand in several rows, as
# *sister* does, which is an elder or a younger one. An underscore is a space.
_ROWS = """
parent she: mom mum mother = 엄마 어머니 어머님
parent she: mam ma =
parent he: dad father = 아빠 아버지 아버님
parent he: papa pa =
parent -: parents = 부모님
grandparent she: grandmother grandma = 할머니
grandparent she: gran nan granny =
grandparent she: = 외할머니
grandparent he: grandfather grandpa = 할아버지
grandparent he: grandad granddad =
grandparent he: = 외할아버지
sibling she: sister older_sister = 언니
sibling she: sister older_sister = 누나 누님
sibling he: brother older_brother = 오빠
sibling he: brother older_brother = 형 형님
younger_sibling -: = 동생
younger_sibling she: sister younger_sister = 여동생
younger_sibling he: brother younger_brother = 남동생
spouse he: husband = 남편 신랑
spouse she: wife = 아내 와이프 집사람
partner he: boyfriend = 남자친구 남친
partner she: girlfriend = 여자친구 여친
spouse he: hubby =
partner he: bf =
partner she: gf =
partner he: fiancé =
partner she: fiancée =
partner -: partner =
child he: son = 아들
child she: daughter = 딸
child -: child kid baby toddler twin boy girl =
child -: = 아이 애 애기 아기
grandchild he: grandson = 손자
grandchild she: granddaughter = 손녀
relative she: aunt = 이모
relative she: aunt = 고모
relative she: auntie niece =
relative he: uncle = 삼촌
relative he: nephew =
relative -: = 조카
cousin -: cousin = 사촌
in_law she: mother-in-law = 시어머니 시어머님
in_law she: mother-in-law = 장모님 장모
in_law he: father-in-law = 시아버지 시아버님
in_law he: father-in-law = 장인어른 장인
in_law she: = 며느리
in_law he: = 사위
in_law he: = 처남
in_law he: = 매형 매부
in_law he: = 형부
in_law he: = 시동생 도련님
in_law she: = 처제
in_law she: = 처형
in_law she: = 시누이 시누
in_law she: = 올케
in_law she: = 형수 형수님
landlord -: landlord = 집주인
landlord she: landlady =
flatmate -: roommate flatmate = 룸메이트 룸메
flatmate -: housemate =
pet -: dog = 강아지 강쥐 반려견
pet -: cat = 고양이 냥이 반려묘
animal -: puppy kitten rabbit hamster parrot bird fish turtle horse pony goat hen =
animal -: = 개 토끼 햄스터 앵무새 거북이
chief -: = 팀장 팀장님
chief -: = 사장 사장님
chief -: = 부장 부장님
chief -: = 담임 담임쌤 담임_선생님
boss -: boss manager = 상사
acquaintance -: friend = 친구
acquaintance -: colleague = 동료
acquaintance -: neighbour neighbor = 옆집 이웃
acquaintance -: assistant = 직원
"""


def _read(row: str) -> Kin:
    "A row of the table."
    who, _, names = row.partition(": ")
    english, korean = (tuple(name.replace("_", " ") for name in part.split()) for part in names.split("="))
    kind, pronoun = who.split()
    return Kin(kind.replace("_", " "), pronoun, english, korean)


KIN = tuple(map(_read, _ROWS.strip().splitlines()))
FAMILY = ("parent", "grandparent", "sibling", "younger sibling", "spouse", "partner", "child", "grandchild", "relative", "cousin", "in law")
NEAR = (*(kind for kind in FAMILY if kind not in ("grandchild", "cousin")), "landlord", "flatmate", "pet", "chief")
# kinds of those who are the speaker's where no owner is named, as in `엄마 생일`; 친구, 사촌 and 손자 may be anybody's
TRANSLATED = tuple((kin.korean[0], *kin.english) for kin in KIN if kin.kind in NEAR and kin.english and kin.korean)
# names in both languages of those who are the speaker's: `엄마`, *mom*, *mum*, *mother*
ENGLISH_TITLE = "dr|mrs?|ms|prof|professor"  # pattern of a title before a name, small
KOREAN_TITLES = (  # after a name; `님` may follow
    "씨", "선생", "쌤", "박사", "주임", "대리", "과장", "차장", "부장", "팀장", "실장", "이사", "상무", "전무", "사장", "교수", "원장",
    "소장")


def english_names(*kinds: str,  # kinds of `KIN`
                  pronoun: str = "",  # she or he; empty: whichever
                  ) -> tuple[str, ...]:
    "Return the English names of some kinds of people, each once."
    return tuple(dict.fromkeys(name for kin in KIN if kin.kind in kinds and pronoun in ("", kin.pronoun) for name in kin.english))


ADDRESSED = frozenset(english_names("parent", "grandparent", "sibling", "spouse", "partner", "landlord")) - {
    "parents", "ma", "pa", "partner"}
# names that are the speaker's without an owner: *Mum*, *Gran*, *brother's in Kuwait*


def korean_names(*kinds: str,  # kinds of `KIN`
                 ) -> tuple[str, ...]:
    "Return the Korean names of some kinds of people, each once."
    return tuple(dict.fromkeys(name for kin in KIN if kin.kind in kinds for name in kin.korean))


def names_of(*names: str,  # names in either language
             ) -> tuple[str, ...]:
    "Return all names of those who have one of these names, in both languages: *mum* is also *mother* and `엄마`."
    each = [(*kin.english, *kin.korean) for kin in KIN]
    return tuple(dict.fromkeys(name for all_names in each if not {*names}.isdisjoint(all_names) for name in all_names))
