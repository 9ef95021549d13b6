"Ten chats, whole, as people write them: a plain question finds the turn that answers it, and a small block for a prompt holds it."
import hashlib
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from rlm.companion.policy import answers_nothing, only_acknowledges
from rlm.core.clock import ManualClock
from rlm.search.embedding.base import choose_embedder
from rlm.service.memory import Memory

CHATS = Path(__file__).parents[1] / "data/chats.txt"
ROLES = {"u": "user", "a": "assistant"}


def chats() -> Iterator[tuple[str, str, list[dict[str, object]], list[tuple[str, str]]]]:
    "Yield each chat: its name, language, turns and questions with a word of the answer."
    for part in CHATS.read_text(encoding="utf-8").split("# ")[1:]:
        head, *lines = part.splitlines()
        language, name, day = head.split()
        asked = [tuple(line[2:].split(" | ")) for line in lines if line.startswith("? ")]
        turns = [line.split(": ", 1) for line in lines if not line.startswith("? ")]
        start = datetime.fromisoformat(day).replace(tzinfo=UTC, hour=9)
        yield name, language, [
            {"id": hashlib.md5(f"{name}{n}".encode()).hexdigest()[:12], "text": text, "valid_from": start + timedelta(minutes=n),
             **({"role": ROLES[who]} if who in ROLES else {"speaker": who})} for n, (who, text) in enumerate(turns)], asked  # type: ignore[misc]


@pytest.mark.parametrize(("model", "floors"), [
    ("none", {"en": (25, 27, 25), "ko": (29, 35, 30)}),
    ("e5", {"en": (32, 38, 34), "ko": (33, 38, 35)})])
def test_the_turn_that_answers_a_plain_question_is_found_and_is_in_a_small_block(
        model: str, floors: dict[str, tuple[int, int, int]]) -> None:
    if model == "e5":
        pytest.importorskip("onnxruntime", reason="needs e5: pip install 'rlm[e5]'")
    embedder, counted = choose_embedder(model) if model == "e5" else "none", {"en": [0, 0, 0], "ko": [0, 0, 0]}
    for name, language, turns, asked in chats():
        with Memory(":memory:", embedder=embedder) as memory:
            memory.add_conversation(turns, session=name)
            for question, word in asked:
                held = [word in h.memory.text for h in memory.search(question, k=3)]
                block = memory.context(question, 80)
                assert block.tokens <= 80
                for n, right in enumerate((held[:1] == [True], any(held), word in block.text)):
                    counted[language][n] += right
    assert all(tuple(counted[k])[n] >= floors[k][n] for k in floors for n in range(3)), counted


def test_a_line_of_a_block_tells_the_date_where_the_line_above_has_another() -> None:
    with Memory(":memory:", embedder="none", clock=ManualClock("2026-03-09")) as memory:
        memory.add_conversation([{"id": "one", "text": "The tea shop opens at nine.", "valid_from": "2026-03-02T09:00:00Z"},
                                 {"id": "two", "text": "The tea there is green and good.", "valid_from": "2026-03-02T09:05:00Z"}],
                                session="a")
        assert memory.context("Where is the tea shop?").text.splitlines()[1:-1] == [
            "[one 2026-03-02 09:00] The tea shop opens at nine.", "[two 09:05] The tea there is green and good."]


@pytest.mark.parametrize("text", ["That sounds fun.", "Ouch! Poor her.", "No way! Congratulations!", "So cute.", "I'm sorry to hear that.",
                                  "How exciting!", "You will be great.", "강릉 좋죠!", "재밌겠다.", "아이고, 아팠겠다.", "좋은 생각이에요!",
                                  "대박! 축하해!", "너무 귀엽다.", "정말 친절하시네요.", "잘할 거야."])
def test_a_reaction_answers_nothing(text: str) -> None:
    assert only_acknowledges(text)


@pytest.mark.parametrize("text", ["Thanks! I'm so nervous.", "The movie was so good.", "He is a good guy.", "So, good: 40 euros.",
                                  "Deal at Tesco: two for one.", "Cool: the AC code is 4417.", "This is terrible coffee.",
                                  "I love it there.",
                                  "That was the good doctor.", "회를 좋아해요.", "나는 민트가 좋다.", "그 영화 재밌다.", "강릉 갔다 왔어.",
                                  "다음 주에 갈게요."])
def test_a_turn_that_tells_something_is_no_reaction(text: str) -> None:
    assert not answers_nothing(text)


def test_the_reply_stands_in_a_small_block_before_the_turn_that_asks() -> None:
    with Memory(":memory:", embedder="none") as memory:
        memory.add_conversation([{"speaker": "Lena", "text": "Perfect. How is Eva?"},
                                 {"speaker": "Tom", "text": "She broke her wrist skiing, but she is back at work at the radio station."}],
                                session="a")
        assert "radio station" in memory.context("Where does Eva work?", 70).text
