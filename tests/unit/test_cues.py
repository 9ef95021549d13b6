"What is looked for first, to be done sooner, hides nothing that a question says."
import pytest
from hypothesis import given
from hypothesis import strategies as st

import rlm.store.cues as cues

WORDS = ("in", "of", "May", "MAY", "may", "Jan.", "\u017feptember", "SEPT", "march", "12", "3rd", "2023", "20231", "1999-05",
         "2024-11-03", "\uff15월", "5월", "11월 3일", "2024년", "when", "WHEN", "whenever", "what day", "how long", "somehow", "which year",
         "언제", "며칠", "몇 시", "몇시", "얼마나 오래",
         "Mina", "mina's", "Minaret", "민아", "민아가", "joon", "준이", "Kim", "\u212aim", "?", "'")
QUESTIONS = st.lists(st.sampled_from(WORDS) | st.text("maysept19월wh몇 ", max_size=6), max_size=7).map(" ".join)
KNOWN = {"mina": {0}, "민아": {1, 2}, "joon": {3}, "준": {4}, "kim": {5}}


@given(QUESTIONS)
def test_nothing_is_hidden(question: str) -> None:
    cues.dates_in.cache_clear()
    cues.asks_when.cache_clear()
    quick = cues.dates_in(question), cues.asks_when(question), cues.speakers_in(question, KNOWN)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cues, "_MONTHLY", ("",))  # which is in every question
        patch.setattr(cues, "_STARTS", ("",))
        patch.setattr(cues, "FEW", -1)
        cues.dates_in.cache_clear()
        cues.asks_when.cache_clear()
        assert quick == (cues.dates_in(question), cues.asks_when(question), cues.speakers_in(question, KNOWN))


def test_there_is_something_to_hide() -> None:
    assert cues.dates_in("in \u017feptember") == (cues.Date(None, 9),)  # which folds to an s, and which patterns take for one
    assert cues.dates_in("11월") and cues.dates_in("1999-05") and cues.asks_when("WHEN") and cues.asks_when("몇시")
    assert cues.speakers_in("\u212aim", KNOWN) == {5} and cues.speakers_in("민아가", KNOWN) == {1, 2}
