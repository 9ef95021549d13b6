"""Of several facts in one text only the rejected one goes: it is served no more and refused, the others stay and are found."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from rlm import Memory
from rlm.companion.rejection import RejectedValue, refused_values, rejectable, without_rejected
from rlm.companion.text_parts import text_parts
from rlm.core.clock import ManualClock
from rlm.store.records import new_record

NOW = ManualClock("2026-01-01").now()
LEFT = (  # a text, what of it is rejected, what is left
    ("hey, so about me: I live in Leeds, have a dog named Rex and work at Arup", "I live in Leeds",
     "hey, I have a dog named Rex and work at Arup […]"),
    ("I live in Leeds, have a dog named Rex and work at Arup.", "I work at Arup", "I live in Leeds, have a dog named Rex. […]"),
    ("User is a vet and lives in Austin with two kids.", "User is a vet", "User lives in Austin with two kids. […]"),
    ("User is a vet and lives in Austin with two kids.", "I live in Austin", "User is a vet. […]"),
    ("Allergic to peanuts, drinks oat milk, birthday on 3 March.", "allergic to peanuts", "Drinks oat milk, birthday on 3 March. […]"),
    ("The user's name is Dmitri and he is 34 years old.", "My name is Dmitri", "The user is 34 years old. […]"),
    ("Tom is my boss. My mum is called Ruth and she is a nurse.", "My mum is a nurse", "Tom is my boss. My mum is called Ruth. […]"),
    ("I like sushi, ramen and olives.", "I like olives", "I like sushi, ramen. […]"),
    ("I like sushi, ramen and olives.", "I like sushi", "I like ramen and olives. […]"),
    ("My brother lives in Leeds and I live in Leeds.", "I live in Leeds", "My brother lives in Leeds. […]"),
    ("I live in Leeds with my wife Ana and our two kids.", "I live in Leeds", "I live with my wife Ana and our two kids. […]"),
    ("City: Leeds\nDog: Rex\nEmployer: Arup", "I live in Leeds", "Dog: Rex\nEmployer: Arup […]"),
    ('{"user": {"homeCity": "Leeds", "dog": "Rex"}}', "I live in Leeds", '{"user": {"dog": "Rex"}}'),
    ("저는 대전에 살고 강아지 이름은 보리고 네이버에서 일해요", "나는 대전에 살아", "저는 강아지 이름은 보리고 네이버에서 일해요 […]"),
    ("사용자는 간호사이고 부산에 살며 고양이 두 마리를 키운다.", "나는 간호사야", "사용자는 부산에 살며 고양이 두 마리를 키운다. […]"),
    ("나는 당뇨가 있고 매일 아침 산책을 해.", "나는 당뇨가 있어", "나는 매일 아침 산책을 해. […]"),
    ("이름은 김서준, 나이는 29살, 회사는 쿠팡", "내 이름은 김서준이야", "나이는 29살, 회사는 쿠팡 […]"),
    ("나는 커피, 녹차, 와인을 좋아해.", "나는 와인을 좋아해", "나는 커피, 녹차를 좋아해. […]"),
    ("User lives in 판교, likes 떡볶이, and has a son, Minjun.", "User lives in 판교", "User likes 떡볶이, and has a son, Minjun. […]"),
    ("Hi, I live in Leeds.", "I live in Leeds", ""), ("나는 전주에 살아. 집은 전주야.", "나는 전주에 살아", ""))


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[Memory]:
    with Memory(tmp_path / "memory.db", embedder=None, clock=ManualClock("2026-01-01")) as memory:
        yield memory


@pytest.mark.parametrize(("text", "rejected", "left"), LEFT)
def test_what_is_rejected_is_left_out_and_the_rest_stands(text: str, rejected: str, left: str) -> None:
    values, record = rejectable(new_record(rejected, NOW)), new_record(text, NOW)
    assert set(values) & set(refused_values(record)), "the text states it"
    assert without_rejected(record, values) == left
    assert not set(values) & set(refused_values(new_record(left or "A note.", NOW))), "the rest does not"


@pytest.mark.parametrize(("rejected", "text"), [
    ("I work at Siemens.", "My brother has moved. Works at Siemens now."), ("I work at Siemens.", "Tom, works at Siemens"),
    ("I work at Siemens.", "Does Tom live in Leeds and work at Siemens?"),
    ("I live in Leeds.", "I dreamt that I moved, and lived in Leeds."), ("나는 간호사야.", "언니는 부산에 살고 간호사야."),
    ("I like tea.", "My sister likes cake and tea."), ("나는 와인을 좋아해.", "아빠는 커피, 와인을 좋아해.")])
def test_a_part_about_something_else_is_no_rejected_one(rejected: str, text: str) -> None:
    assert not set(rejectable(new_record(rejected, NOW))) & set(refused_values(new_record(text, NOW)))


@pytest.mark.parametrize(("text", "parts"), [
    ("My ex Daniel lives in Porto and plays the drums", ["My ex Daniel lives in Porto", "My ex Daniel plays the drums"]),
    ("Sam is 41, diabetic and drives a blue Skoda.", ["Sam is 41, diabetic", "Sam drives a blue Skoda."]),
    ("My mum is called Ruth and she's a nurse", ["My mum is called Ruth", "My mum is a nurse"]),
    ("언니는 간호사이고 부산에 살아", ["언니는 간호사이고", "언니는 부산에 살아"]), ("I live in Leeds.", ["I live in Leeds."])])
def test_each_part_is_in_words_of_its_own(text: str, parts: list[str]) -> None:
    assert [part.words for part in text_parts(text)] == parts


@pytest.mark.parametrize(("text", "rejected", "gone", "question", "found"), [
    ("I live in Leeds, have a dog named Rex and work at Arup.", "I live in Leeds.", "Leeds", "What is my dog called?", "Rex"),
    ("저는 대전에 살고 강아지 이름은 보리고 네이버에서 일해요", "나는 대전에 살아", "대전", "강아지 이름이 뭐야?", "보리")])
def test_a_rejection_leaves_the_other_facts_and_can_be_taken_back(
        memory: Memory, tmp_path: Path, text: str, rejected: str, gone: str, question: str, found: str) -> None:
    kept = memory.write(text, pinned=True, tags=["me"])
    made = memory.companion.reject(text=rejected)
    now = memory.get(kept.id)
    assert kept.id in made.note and gone not in now.text and now.pinned and now.tags == kept.tags and now.version == kept.version + 1
    assert memory.search(question)[0].id == kept.id and found in memory.context(question).text
    assert gone not in memory.context(rejected).text and not any(gone in h.memory.text for h in memory.search(rejected))
    with pytest.raises(RejectedValue):
        memory.restore(kept.id)
    with pytest.raises(RejectedValue):
        memory.write(text)
    told = repr(memory.history(kept.id))
    assert "reject" in told and text in [r.text for r in memory.history(kept.id).versions]
    memory.companion.lift(made.id)
    assert memory.restore(kept.id).text == text and memory.search(rejected)[0].id == kept.id
    memory.delete(kept.id, erase=True)
    assert gone.encode() not in b"".join(p.read_bytes() for p in tmp_path.glob("memory.db*"))


def test_a_part_of_a_named_memory_is_left_out_and_the_whole_goes_without_one(memory: Memory) -> None:
    note, other = memory.write("Smokes, likes hiking and has a wife called Ana."), memory.write("I like hiking, chess and tea.")
    made = memory.companion.reject(note.id, part="I smoke")
    assert memory.get(note.id).text == "Likes hiking and has a wife called Ana. […]" and made.memory_id == note.id
    assert "stands as it is" in memory.companion.reject(other.id, part="I live in Leeds").note
    assert memory.companion.reject(other.id).note == "" or memory.find(other.id) is None
    assert [r.id for r in memory.list()] == [note.id]


def test_a_later_version_is_not_overwritten(memory: Memory) -> None:
    kept = memory.write("I live in Leeds and have a dog named Rex.")
    made = memory.companion.reject(text="I live in Leeds.")
    memory.companion.lift(made.id)
    memory.update(kept.id, text="I have a dog named Max.")
    with pytest.raises(Exception, match="is not deleted"):
        memory.restore(kept.id)
