"""A memory that answers a question stands above one that is only near it."""
import json
from collections import Counter
from pathlib import Path

import pytest

from rlm import Memory
from rlm.search.embedding.base import choose_embedder

PAIRS = [json.loads(line) for line in (Path(__file__).parents[1] / "data" / "answer_pairs.jsonl").read_text(encoding="utf-8").splitlines()]
# reached: .859 .906 .826; by words, where equal scores fall either way from run to run, .577 to .599, .679 to .698, .261
FLOORS = {"e5": {"en": 0.84, "ko": 0.88, "mixed": 0.79}, "none": {"en": 0.54, "ko": 0.64, "mixed": 0.2}}


def test_lives_are_of_one_split_and_questions_have_a_name_of_their_own() -> None:
    assert len({p["id"] for p in PAIRS}) == len(PAIRS) == 1463
    splits = {(p["life"], p["split"]) for p in PAIRS}
    assert len(splits) == len({life for life, _ in splits}) == 97
    assert all(p["answer"]["text"] != p["near"]["text"] for p in PAIRS)


@pytest.mark.parametrize("embedder", FLOORS)
def test_the_answer_stands_above_the_near_miss(embedder: str) -> None:
    "In a store of two memories, for each question of the development lives; a question that is answered with nothing counts as missed."
    if embedder == "e5":
        pytest.importorskip("onnxruntime")
    model, asked, right = choose_embedder(embedder), Counter[str](), Counter[str]()
    for pair in (p for p in PAIRS if p["split"] == "dev"):
        with Memory(":memory:", embedder=model or "none") as memory:
            memory.write_many([pair["near"], pair["answer"]])
            hits = memory.search(pair["question"])
        asked[pair["language"]] += 1
        right[pair["language"]] += bool(hits) and hits[0].text == pair["answer"]["text"]
    reached = {language: round(right[language] / n, 3) for language, n in asked.items()}
    assert all(reached[language] >= floor for language, floor in FLOORS[embedder].items()), reached


def test_near_misses_are_asked_with_and_without_their_answers() -> None:
    lines = (Path(__file__).parents[1] / "data" / "near_misses.jsonl").read_text(encoding="utf-8").splitlines()
    lives = {life["life"]: life for life in map(json.loads, lines)}
    whole = {name: life for name, life in lives.items() if not name.endswith("-without")}
    assert len(whole) == 237 and sum(len(life["questions"]) for life in whole.values()) == 2826
    for life in whole.values():
        ids = {item["id"] for item in life["items"]}
        assert all(q["gold"] and q["not"] and {*q["gold"], *q["not"]} <= ids and not {*q["gold"]} & {*q["not"]} for q in life["questions"])
    for name, life in whole.items():
        if life["split"] == "dev":
            texts, asked = ({item["text"] for item in life["items"]}, [q["question"] for q in life["questions"]])
            without = lives[f"{name}-without"]
            assert [q["question"] for q in without["questions"]] == asked and not any(q["gold"] for q in without["questions"])
            answers = {i["text"] for i in life["items"] if any(i["id"] in q["gold"] for q in life["questions"])}
            assert {item["text"] for item in without["items"]} <= texts - answers


def test_questions_of_small_stores_name_memories_of_their_store() -> None:
    lines = (Path(__file__).parents[1] / "data" / "small_stores.jsonl").read_text(encoding="utf-8").splitlines()
    stores = [json.loads(line) for line in lines]
    assert len({s["store"] for s in stores}) == len(stores) == 2779
    questions = [(q, len(s["memories"])) for s in stores for q in s["questions"]]
    assert len(questions) == 50155 and sum(not q["gold"] for q, _ in questions) == 16108
    assert all(q["question"] and all(0 <= place < memories for place in q["gold"]) for q, memories in questions)
    assert all(len(set(s["memories"])) == len(s["memories"]) for s in stores)
    assert Counter(s["split"] for s in stores) == {"train": 2548, "dev": 231}
