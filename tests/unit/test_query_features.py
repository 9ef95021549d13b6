"What is looked for first, to be done sooner, hides nothing that a question says."
import re
import time
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

import rlm.search.query_features as features
from rlm import Memory

WORDS = ("in", "of", "May", "MAY", "may", "Jan.", "\u017feptember", "SEPT", "march", "12", "3rd", "2023", "20231", "1999-05",
         "2024-11-03", "\uff15월", "5월", "11월 3일", "2024년", "when", "WHEN", "whenever", "what day", "what TIME",
         "how long", "somehow", "which year", "wh\u0131ch", "which", "what", "month", "t\u0131me",
         "언제", "며칠", "몇 시", "몇시", "얼마나 오래",
         "Mina", "mina's", "Minaret", "민아", "민아가", "joon", "준이", "Kim", "\u212aim", "?", "'")
QUESTIONS = st.lists(st.sampled_from(WORDS) | st.text("maysept19월wh몇 ", max_size=6), max_size=7).map(" ".join)
KNOWN = {"mina": {0}, "민아": {1, 2}, "joon": {3}, "준": {4}, "kim": {5}}


@given(QUESTIONS)
def test_nothing_is_hidden(question: str) -> None:
    whole = features.extract_query_features(question, KNOWN)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(features, "_HINTS", re.compile(""))  # which is in every question
        patch.setattr(features, "FEW_NAMES", -1)
        assert whole == features.extract_query_features(question, KNOWN)
        assert whole.script == features.dominant_script(unicodedata.normalize("NFC", question))


def test_there_is_something_to_hide() -> None:
    assert features.dates_in("in \u017feptember") == (features.PartialDate(None, 9),)  # it folds to an s, and patterns take it for one
    assert features.dates_in("11월") and features.dates_in("1999-05") and features.asks_when("WHEN") and features.asks_when("몇시")
    assert features.named_speakers("\u212aim", KNOWN) == {5} and features.named_speakers("민아가", KNOWN) == {1, 2}


def test_korean_in_letters_says_what_it_says_in_syllables() -> None:
    with Memory(":memory:", embedder="none") as memory:
        memory.write_many([{"text": text if n % 2 else unicodedata.normalize("NFD", text), "id": str(n), "speaker": who, "valid_from": said}
                           for n, (text, who, said) in enumerate([
                               ("바다에 갔다", "민아", "2026-05-03"), ("산에 갔다", "준", "2026-07-03"),
                               ("지난주에 산에 갔어", "준", "2026-07-05"), ("어제 바다에 갔어", "준", "2026-07-06")])])
        for question in ("민아가 바다에 언제 갔어?", "5월에 바다 갔던 사람", "언제 산에 갔어?"):
            said = [[(h.id, h.score) for h in memory.search(unicodedata.normalize(form, question))] for form in ("NFC", "NFD")]
            assert said[0] == said[1]
        assert memory.search("언제 산에 갔어?")[0].id == "2" and memory.search("민아가 갔던 곳")[0].id == "0"


def test_marks_in_any_number_and_order_take_no_time() -> None:
    began = time.process_time()
    assert features.extract_query_features("When? a" + "\u0301\u0316" * 100_000, KNOWN) == features.QueryFeatures(when=True, script=-1)
    assert time.process_time() - began < 2  # composing them takes seven seconds
