"The tokeniser, the sentences, the FTS5 quoting and the checks on text, tried on any text hypothesis can think of."
import re
import sqlite3
import threading
import time
import unicodedata
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from rlm.core.errors import InvalidInput
from rlm.core.guard import screen
from rlm.core.ids import squeeze
from rlm.core.text import (
    FTS_TOKENIZE,
    FUNCTION_WORDS,
    compose_hangul,
    fts_query,
    normalise,
    sentence_spans,
    split_sentences,
    tokens,
    valid_text,
)
from rlm.core.text.normal_form import JOINER, MARKS, normal_form
from rlm.core.text.tokenizer import hangul_tokens, latin_words, noun_reading, split_ending, split_words

settings.register_profile("unhurried", deadline=None)  # a busy machine is no failure
settings.load_profile("unhurried")

SPICE = ["don't", "'s", "C++", ".NET", "x_y", "camelCase", "2023-05-08", "1,000.5", "https://a.b/c?d=e", "학교에서",
         "을", "Python을", "東京", "नमस्ते", "สวัสดี", "👨\u200d👩\u200d👧", "¨", "\u200b", "\u0301", "ß", "İ", "ﬁ",
         "NEAR(", "*", '"', "^", "-", "text:", "AND", "OR", "NOT", "{a b}:", "\\", "\x00", "\x7f", "\x85", "\ud800",
         "the", "", " ", "\n", "ㅋㅋ", "\u115f", "마셨어요.", "뭐야?", "Dr. ", "...", "。」", "- a", "1. ", "\ud7fb다"]
texts = st.one_of(st.text(), st.lists(st.sampled_from(SPICE), max_size=8).map(" ".join),
                  st.lists(st.sampled_from(SPICE), max_size=8).map("".join),
                  st.lists(st.one_of(st.sampled_from(SPICE), st.text(max_size=4)), max_size=8).map("".join))
anything = st.one_of(texts, st.text(st.characters(exclude_categories=())))  # lone surrogates too


@pytest.fixture(scope="module")
def fts() -> sqlite3.Connection:
    db = sqlite3.connect(":memory:")
    db.execute(f"CREATE VIRTUAL TABLE t USING fts5(x, {FTS_TOKENIZE})")
    db.execute("CREATE VIRTUAL TABLE v USING fts5vocab(t, 'instance')")
    return db


@given(anything)
def test_tokens_are_clean(text: str) -> None:
    found = tokens(text)
    assert bool(found) == bool(text.strip())
    for token in found:
        assert token and not any(c.isspace() or unicodedata.category(c) == "Cc" for c in token)
        assert len(token) <= 64
        token.encode("utf-8")
    assert tokens(text) == found, "a memo must not change the answer"


@given(anything)
@example("x" * 100_000)
@example("¨")
def test_sqlite_keeps_every_token(fts: sqlite3.Connection, text: str) -> None:
    found = tokens(text)
    fts.execute("DELETE FROM t")
    fts.execute("INSERT INTO t VALUES (?)", (" ".join(found),))
    assert [term for (term,) in fts.execute("SELECT term FROM v ORDER BY offset")] == found
    if found:
        assert fts.execute("SELECT count(*) FROM t WHERE t MATCH ?", (fts_query(found),)).fetchone() == (1,)
        for token in set(found):
            for term, hits in [(token, 1), ("7:" + token, 0)]:
                assert fts.execute("SELECT count(*) FROM t WHERE t MATCH ?", (fts_query([term]),)).fetchone() == (hits,)


@given(st.lists(anything))
def test_any_terms_make_a_valid_query(fts: sqlite3.Connection, terms: list[str]) -> None:
    if any(term.strip() for term in terms):
        fts.execute("SELECT count(*) FROM t WHERE t MATCH ?", (fts_query(terms),)).fetchone()
    else:
        with pytest.raises(InvalidInput) as error:
            fts_query(terms)
        assert error.value.hint


@given(st.lists(st.sampled_from(sorted(filter(str.isascii, FUNCTION_WORDS))), min_size=1))
def test_function_words_alone_are_kept(words: list[str]) -> None:
    assert len(tokens(" ".join(words))) >= len(words)


@given(texts)
def test_composed_and_decomposed_are_the_same(text: str) -> None:
    assert normalise(unicodedata.normalize("NFD", text)) == normalise(unicodedata.normalize("NFC", text))
    assert normalise(normalise(text)) == normalise(text)


@given(texts | st.text(st.characters(min_codepoint=0xac00, max_codepoint=0xd7a3) | st.characters(max_codepoint=127)))
def test_what_has_one_spelling_only_is_normalised_sooner_not_otherwise(text: str) -> None:
    once = unicodedata.normalize("NFKC", unicodedata.normalize("NFD", text).casefold())
    assert normalise(text) == unicodedata.normalize("NFKC", once.casefold())
    if len(re.sub("[\x00-\x7f\uac00-\ud7a3]", "", text)) == 0:
        assert compose_hangul(text) == text == unicodedata.normalize("NFC", text)


@given(texts, st.sampled_from(["NFC", "NFD", "NFKC", "NFKD"]))
def test_a_normal_form_is_unicodes(text: str, form: Any) -> None:
    assert normal_form(form, text * 40) == unicodedata.normalize(form, text * 40)


marks = st.text(st.sampled_from("\u0301\u0316\u0323\u0344\u0345\u0f73\u0e38\u302e\u20dd\u0903" + JOINER), min_size=200, max_size=400)


@given(st.sampled_from(["e", "가", "漢", "ก", " ", ""]), marks, st.sampled_from(["NFC", "NFD", "NFKC", "NFKD"]))
def test_marks_without_end_are_kept_and_joined(letter: str, behind: str, form: Any) -> None:
    safe = normal_form(form, letter + behind)
    assert normal_form(form, safe) == safe
    apart, whole = (sorted(unicodedata.normalize("NFD", t.replace(JOINER, ""))) for t in (safe, normal_form(form, letter) + behind))
    assert apart == whole
    row = longest = 0
    for char in unicodedata.normalize("NFD", safe):
        row = row + 1 if unicodedata.combining(char) else 0
        longest = max(longest, row)
    assert longest <= 2 * MARKS  # one mark falls apart into two at most


@pytest.mark.parametrize("letter", ["e", "가", "漢", "ก", ""])
@pytest.mark.parametrize("behind", ["\u0301\u0316", "\u0f73", "\u0344\u0316", "\u0345\u0316", "\u1161"])
@pytest.mark.parametrize("read", [tokens, normalise, screen, squeeze])
def test_marks_without_end_are_read_in_linear_time(letter: str, behind: str, read: Any) -> None:
    "Sorted all at once, these took ten seconds and more."
    text = letter + behind * 40_000
    began = time.process_time()
    read(text)
    assert time.process_time() - began < 4


@given(st.text(st.characters(min_codepoint=0xac00, max_codepoint=0xd7a3), min_size=1))
def test_hangul_in_either_form(text: str) -> None:
    assert tokens(unicodedata.normalize("NFD", text)) == tokens(text)


@given(st.text(st.sampled_from("abcXYZ '’.,!?()\"-")))
def test_case_does_not_matter_for_plain_words(text: str) -> None:
    assert tokens(text.lower()) == tokens(text.lower().upper().lower())


@given(anything, st.integers(1, 50))
def test_valid_text_says_why_or_gives_it_back(text: str, limit: int) -> None:
    good = bool(text.strip()) and len(text) <= limit and "\0" not in text
    try:
        text.encode()
    except UnicodeEncodeError:
        good = False
    if good:
        assert valid_text(text, limit=limit) is text
    else:
        with pytest.raises(InvalidInput) as error:
            valid_text(text, "note", limit=limit)
        assert "note" in error.value.message and error.value.hint


@pytest.mark.parametrize("value", [None, 3, b"bytes", ["a"], object()])
def test_only_str_is_text(value: object) -> None:
    with pytest.raises(InvalidInput, match="note"):
        valid_text(value, "note")


def test_threads_agree() -> None:
    words = [f"running{i} happily jumps{i % 7} nationality{i}" for i in range(3000)]
    expected, results = [tokens(w) for w in words], {}

    def work(k: int) -> None:
        results[k] = [tokens(w + f" {k}")[:-1] for w in words]

    threads = [threading.Thread(target=work, args=(k,)) for k in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(result == expected for result in results.values())


PIECES = ["a", "'", "1,", "1.", "a-", "-", "가", "을", "東", "A", "aB", "\u0301", "😀", " a", "..", "\x01", "ก็", ". ",
          "。", "\n", "\n ", "가.", "a.b", "!\"", "Dr. "]


@pytest.mark.parametrize("piece", PIECES)
def test_long_text_takes_linear_time(piece: str) -> None:
    text = piece * (200_000 // len(piece))
    start = time.process_time()
    assert tokens(text) or not text.strip()
    sentence_spans(text)
    assert time.process_time() - start < 5  # measured: at most .4


ENGLISH = "Hey Caroline! I went to the LGBTQ support group yesterday and it was so powerful. " \
          "How's the kids' camp going, are they having fun in the mountains?"
KOREAN = "어제 친구랑 한강 공원에서 자전거를 탔는데 날씨가 좋아서 기분이 좋았어요. " \
         "다음 주말에도 또 가기로 약속했습니다. 그리고 치킨을 먹었어요!"


@pytest.mark.parametrize("turn", [ENGLISH, KOREAN])
def test_a_chat_turn_takes_microseconds(turn: str) -> None:
    tokens(turn)
    best = min(_seconds(turn) for _ in range(5)) / 1000
    assert best < 25e-6, f"{best * 1e6:.1f} µs"  # measured: 3 to 4


def _seconds(turn: str) -> float:
    start = time.process_time()
    for _ in range(1000):
        tokens(turn)
    return time.process_time() - start


@given(texts)
def test_sentences_lose_only_white_space(text: str) -> None:
    spans = sentence_spans(text)
    assert "".join("".join(text[a:b].split()) for a, b in spans) == "".join(text.split())
    assert all(text[a:b] == text[a:b].strip() != "" for a, b in spans)
    assert [text[a:b] for a, b in spans] == split_sentences(text)
    assert all(end <= start for (_, end), (start, _) in pairwise(spans))


@given(texts.filter(lambda t: t.strip()))
def test_a_sentence_found_is_found_by_tokens(text: str) -> None:
    assert all(tokens(sentence) for sentence in split_sentences(text))


# ---------------------------------------------------------------- words of two languages

@pytest.mark.parametrize(("written", "words"), [
    ("don't", ["dont"]), ("DON'T", ["dont"]), ("dont", ["dont"]), ("email", ["email"]), ("c", ["c"]), ("C++", ["c++"]),
    ("(.NET)", [".net", "net"]), ("C++11", ["c++", "11"]), ("1,000", ["1000"]), ("1,2,3", ["1", "2", "3"]), ("5'11", ["5", "11"]),
    ("deadbeef01a2b3c4d5e6f7", ["deadbeef01a2b3c4d5e6f7"])])
def test_words_with_signs_are_read_as_people_write_them(written: str, words: list[str]) -> None:
    assert latin_words(written) == words


def test_a_word_is_found_with_its_sign_and_without() -> None:
    assert set(latin_words("email")) <= set(latin_words("e-mail")) and set(latin_words("nodejs")) <= set(latin_words("Node.js"))
    assert latin_words("how-to-bake-a-cake-in-ten-minutes")[-1] == "minutes", "a slug is nothing but parts"


@pytest.mark.parametrize(("forms", "stem"), [
    ("마셨어요 마신다 마십니다 마셔요 마실까 마시는", "마시"), ("먹었다 먹는다 먹어요 먹습니다 먹으면서 먹은", "먹"),
    ("공부했습니다 공부한다 공부해요 공부하면서 공부하셨다", "공부"), ("집을 집에서", "집"), ("서울로", "서울"), ("을", "을")])
def test_forms_of_a_korean_word_have_one_stem(forms: str, stem: str) -> None:
    assert {split_ending(form)[0] for form in forms.split()} == {stem}


def test_a_korean_word_keeps_what_is_no_ending() -> None:
    words = ["가을", "마을", "사이", "사과", "고양이", "있다"]
    assert [split_ending(w)[0] for w in words] == ["가을", "마을", "사이", "사과", "고양이", "있"]


@pytest.mark.parametrize(("words", "read"), [
    ("소녀도 태도 올해도 나라는 감기에 바다가 강아지만 빨래 만나요", "소녀 태도 올해 나라 감기 바다 강아지 빨래 만나"),
    ("마셔도 먹어서 공부해요 하지만 뭐라고 있다", "마시 먹 공부 하 뭐 있")])
def test_an_ending_that_may_be_part_of_a_noun_is_read_so(words: str, read: str) -> None:
    assert [noun_reading(w, *split_ending(w)) for w in words.split()] == read.split()


@pytest.mark.parametrize(("word", "found"), [
    ("건강검진을", ["건강", "강검", "검진"]), ("여름휴가", ["여름", "름휴", "휴가"]), ("소녀도", ["소녀", "소니"]), ("마셔도", ["마시"]),
    ("나라는", ["나라", "나"]), ("차가", ["차가", "차"]), ("차를", ["차"]), ("빌린", ["빌린", "빌리"]), ("빌렸지", ["빌리"])])
def test_tokens_of_a_korean_word(word: str, found: list[str]) -> None:
    assert hangul_tokens(word) == found


def test_function_words_stay_where_nothing_else_is_said() -> None:
    assert tokens("To be, or not to be?") == ["to", "be", "or", "not", "to", "be"]
    assert tokens("the cat") == ["cat"] and tokens(normal_form("NFD", "학교")) == tokens("학교")


@pytest.mark.parametrize(("text", "found"), [
    ("pass\u200bport", ["pass", "port", "passport"]), ("비밀\u200b번호", [*tokens("비밀 번호"), *tokens("비밀번호")]),
    ("ภาษา\u200bไทย", tokens("ภาษาไทย")), ("\u200bhello\u200b", ["hello"]), ("room ٤٢ of १२ ４", ["room", "42", "12", "4"])])
def test_a_text_is_found_by_what_it_looks_like(text: str, found: list[str]) -> None:
    assert tokens(text) == found


@pytest.mark.parametrize("end", ["", ".", "?!", "...", ")", "'", "_", "~^^", "#", "+", "(수", "3", "a", "…"])
@pytest.mark.parametrize("word", ["이", "에서", "부산으로", "먹었어요", "힣", "가", "(이", "a에", "3에", "태도", "힣가" * 40])
def test_a_word_of_korean_is_read_alike_the_short_way_and_the_long_one(word: str, end: str) -> None:
    assert split_words(f"{word}{end}") == split_words(f"{word}{end}\u00ad") == split_words(f"\u00ad{word}{end}")
