"One memory must not make the search of a namespace hang: what reads stored text takes linear time, whatever short piece it repeats."
import gc
import time
from collections.abc import Callable
from typing import Any

import pytest

from rlm import Memory
from rlm.agent.loop.loop import first_block
from rlm.core.guard import screen
from rlm.core.text import compose_hangul, normalise, split_sentences, tokens
from rlm.search.query_features import asked_types, dates_in, extract_query_features, question_form, told_types
from rlm.service.note_text import chat_turns, note_words

TEXT = ["a", "A", "7", "1,", "1.1", "a.", "a'", "a-", "aB", "A1", ".", "-", "_", " ", "\n", "가", "봐도 ", "나라는", "가는", "7th ",
        "C++", "\u1100", "東", "é", "?", "!", "don't ", "1,000"]
GUARD = ["-----BEGIN PRIVATE KEY-----", "-----BEGIN ", "-----END PRIVATE KEY-----", "-----BEGIN A ", "PRIVATE KEY ", "sk-", "sk-1",
         "eyJ", "eyJ-", "eyJaaaaaaaaaaa.", "xoxa-1", "SG.", "Bearer ", "Bearer a1", "://", "a://", "a://a:a", "http://a:b", "password",
         "password: ", "password is ", "token=", "key: \"", "pin: 1", "비밀번호 ", "비밀번호는 ", "키 ", "핀 번호 ", "4", "4 ",
         "4111-", "ignore ", "ignore all ", "forget your ", "you are now ", "show a ", "do not tell ", "<|", "\n## ", "이전 ",
         "이전 가 ", "시스템 ", "지시 ", "너는 이제 가 ", "사용자에게 "]
SENTENCES = ["1. ", "1.", "1 ", " 1. ", ". ", ".", "...", "? ", "a. ", "A. ", "Dr. ", "e.g. ", ".\" ", ". (", ".)", "\n", "\n ",
             "\n- ", "- ", "。", "」。", "다.", "다. ", "a.b", "* "]
CUES = ["7", "7 ", "1 ", "?", "? ", "?a", "？", "!", " ", "\n", "may ", "in may ", "in  ", "May 1 ", "jan ", "1 of ", "1st of ",
        "2020 ", "2020-", "2020년 ", "2020년", "1월 ", "1월", "몇 ", "얼마나 ", "what ", "how ", "last", "가", "a",
        "7-", "a7", "how much ", "A", "A-", ", A", "a@", "$ ", "가 씨"]


def seconds(read: Callable[[str], Any], piece: str, size: int) -> float:
    "Without the collector, which looks at all that the other tests have left, the more often the more is found."
    text = "a" + piece * (size // len(piece)) + "a"
    gc.disable()
    try:
        begun = time.process_time()
        read(text)
        return time.process_time() - begun
    finally:
        gc.enable()


@pytest.mark.nightly
@pytest.mark.parametrize(("reads", "pieces", "size"), [
    ((tokens, normalise, compose_hangul), TEXT, 10_000),
    ((screen,), GUARD + TEXT, 10_000),
    ((split_sentences,), SENTENCES, 10_000),
    ((question_form, told_types, dates_in, asked_types, lambda text: extract_query_features(text, {"mina": [1]})), CUES, 10_000)],
    ids=["text", "guard", "sentences", "cues"])
def test_repeated_pieces_take_linear_time(reads: tuple[Callable[[str], Any], ...], pieces: list[str], size: int) -> None:
    slow = []
    for read in reads:
        for piece in pieces:
            short = seconds(read, piece, size)
            assert short < 3, (read, piece, short)  # before it is tried on four times as much
            long = seconds(read, piece, 4 * size)
            if long > .05 and long > 9 * short:  # four would be linear, sixteen quadratic
                long, short = min(long, seconds(read, piece, 4 * size)), max(short, seconds(read, piece, size))
                slow += [(read, piece, short, long)] if long > 9 * short else []
    assert slow == []


def test_the_numbers_of_a_list_are_looked_up_in_linear_time() -> None:
    "Hundreds of thousands of them: to look back to the line's beginning from each is a copy, which shows late."
    begun = time.process_time()
    assert len(split_sentences("1. " * 300_000 + "\n2. a")) > 1
    assert time.process_time() - begun < 6  # measured: 1.2


@pytest.mark.parametrize("text", ["7" * 16_000, "?" * 16_000 + "a", "may " * 4_000, "my key: " + "-----BEGIN PRIVATE KEY-----" * 1_000,
                                  "1. " * 10_000])
def test_one_memory_does_not_hold_up_a_search(text: str) -> None:
    with Memory(":memory:", embedder="none") as memory:
        begun = time.process_time()
        memory.write(text)
        memory.write("tea at four", id="tea")
        assert memory.search("tea")[0].id == "tea"
        assert time.process_time() - begun < 2  # measured: at most .1


def test_blank_lines_within_a_chat_that_was_written_out_cost_nothing() -> None:
    text = "## User\nhello\n" + "\n" * 5_000 + "부산에 산다\n\n---\n\n## Assistant\nyes\n\n***\n"
    begun = time.process_time()
    assert [turn["text"] for turn in chat_turns(text)] == ["hello\n\n부산에 산다", "yes"]
    assert time.process_time() - begun < 3  # forty lines took years


@pytest.mark.parametrize("piece", ["<img ", '<a b="x', "<a b='x", "<a b=x", "<style ", "[a](", "![a](", "[[a|",
                                   "[^a]: ", "\n\n", "a|b\n-|-\n"])
def test_the_words_of_a_note_are_read_in_linear_time(piece: str) -> None:
    note_words(piece, {})
    short = seconds(lambda text: note_words(text, {}), piece, 20_000)
    assert short < 3, short
    assert seconds(lambda text: note_words(text, {}), piece, 80_000) < max(.2, 9 * short)


def test_pictures_and_markup_of_a_note_are_left_out() -> None:
    note = 'See <a href=/x?a=b title="부산">the <b>boat</b></a><img src="a.png" alt="boat">. <script src=x>run()</script>Now <br/>go.'
    assert note_words(note, {}) == "See the boat. Now  go."


@pytest.mark.parametrize("piece", ["~", "`", "~~~ ", "```a", "~~~~\n"])
def test_a_reply_of_a_model_that_repeats_itself_takes_linear_time(piece: str) -> None:
    assert seconds(first_block, piece, 20_000) < 1
