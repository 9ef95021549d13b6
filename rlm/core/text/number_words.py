"""Numbers as words, in English and Korean: each word once."""

ENGLISH_NUMBERS = ("one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve")  # from 1
ENGLISH_TENS = ("twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety")  # from 20
KOREAN_NUMBERS = ("하나", "둘", "셋", "넷", "다섯", "여섯", "일곱", "여덟", "아홉", "열", "열하나", "열둘")  # from 1, alone
KOREAN_COUNTING = ("한", "두", "세", "네", "다섯", "여섯", "일곱", "여덟", "아홉", "열", "열한", "열두")  # from 1, as in 세 마리
KOREAN_NUMERAL = (  # a number of two syllables or more: 구십, 백십오, 만오천
    "(?<![가-힣])(?:[이삼사오육칠팔구][십백천]|[일이삼사오육칠팔구]?[십백천만](?=[일이삼사오육칠팔구십백천]))")
KOREAN_TENS = ("스물", "서른", "마흔", "쉰", "예순", "일흔", "여든", "아흔")  # from 20


def one_of(words: tuple[str, ...],  # one of the lists above
           first: int = 1,          # number of the first word that counts, in a list from 1
           last: int | None = None,  # number of the last one; None: to the end
           ) -> str:
    "Return the words from a number to another as an alternation of a pattern, without a group: `two|three` of 2 to 3."
    return "|".join(words[first - 1:last])


def number_told(word: str,  # a word in small letters
                ) -> int:   # 0: it is none of the lists from 1
    "Return the number that a word says, 1 to 12, in either language."
    return next((words.index(word) + 1 for words in (ENGLISH_NUMBERS, KOREAN_NUMBERS, KOREAN_COUNTING) if word in words), 0)


_TEENS = ("thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen")
_ORDINALS = ("first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth", "eleventh", "twelfth")
_SINO = ("", *"일이삼사오육칠팔구")


def spelled(number: int,  # a whole number
            ) -> tuple[str, ...]:  # none above 99; in English none of two words, in Korean none of one syllable
    "Return how a number is said in one word: `twelve`, `twelfth`, 십이."
    if not 0 < number < 100:
        return ()
    tens, ones = divmod(number, 10)
    cardinal = (*ENGLISH_NUMBERS, *_TEENS)[number - 1:number] or (() if ones else ENGLISH_TENS[tens - 2:tens - 1])
    sino = f"{_SINO[tens] if tens > 1 else ''}{'십' if tens else ''}{_SINO[ones]}"
    return (*cardinal, *_ORDINALS[number - 1:number], *((sino,) if len(sino) > 1 else ()))
