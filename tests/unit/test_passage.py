"A passage is whole sentences of about 300 characters, around what was asked for, in English and Korean, for any text."
import gc
import random
import time

import pytest

from rlm import Memory
from rlm.search.passages import PASSAGE_SIZE, best_passage

FILLING = "The bins are emptied on Tuesdays. Rent is due on the first. "
KOREAN = "월세는 매달 1일에 낸다. 쓰레기는 화요일에 가져간다. "


@pytest.mark.parametrize(("filling", "answer", "question"), [
    (FILLING, "The plumber is Dan, 0117 496 0102.", "Who is the plumber?"),
    (KOREAN, "배관공은 김 씨이고 번호는 010-1234-5678이다.", "배관공 번호가 뭐였지?")])
@pytest.mark.parametrize("before", [0, 3, 40])
def test_the_passage_of_a_long_note_holds_the_answer(filling: str, answer: str, question: str, before: int) -> None:
    with Memory(":memory:", embedder="none") as memory:
        note = memory.write(filling * before + answer + " " + filling * 20)
        [hit] = memory.search(question, 1)
        assert answer in hit.passage.text and len(hit.passage.text) <= PASSAGE_SIZE
        assert note.text[hit.passage.start:hit.passage.end] == hit.passage.text
        assert hit.as_dict()["passage"] == {"text": hit.passage.text, "start": hit.passage.start, "end": hit.passage.end}
        assert answer.split()[0] in repr(memory.search(question, 1))


def test_a_short_memory_is_its_own_passage() -> None:
    with Memory(":memory:", embedder="none") as memory:
        memory.write("I keep the spare key with Mrs. Okafor.")
        assert memory.search("spare key")[0].passage.text == "I keep the spare key with Mrs. Okafor."


def test_a_sentence_is_never_cut_unless_it_is_two_passages_long() -> None:
    long = "the " + "very " * 100 + "old boiler."  # 515 characters
    assert best_passage(FILLING * 9 + long, {"boiler": 1.0}).text == long
    endless = best_passage("word " * 2000 + "boiler " + "word " * 2000, {"boiler": 1.0})
    assert "boiler" in endless.text and len(endless.text) <= PASSAGE_SIZE


def test_any_text_has_a_passage_where_it_says() -> None:
    rng = random.Random(0)
    for _ in range(300):
        text = "".join(rng.choices(["boiler", "보일러 ", ". ", "\n", " ", "?! ", "…", "x" * 90, "\u200b", "。"], k=rng.randint(0, 200)))
        found = best_passage(text, {"boiler": 0.5, "보일러": 0.4})
        assert text[found.start:found.end] == found.text and len(found.text) <= 2 * PASSAGE_SIZE


def test_a_text_of_many_short_sentences_takes_time_in_proportion() -> None:
    def seconds(n: int) -> float:
        gc.disable()  # it looks at all that the other tests have left
        try:
            start = time.process_time()
            best_passage("Boiler. " * n, {"boiler": 1.0})
            return time.process_time() - start
        finally:
            gc.enable()
    assert seconds(8000) < 30 * max(seconds(1000), 0.002)
