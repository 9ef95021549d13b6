"A ranker that is learned, stored and loaded gives the same scores; it knows who answers; use becomes a ranker."

import json
import math
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st
from toy import Toy

from rlm import Memory
from rlm.core.clock import ManualClock
from rlm.core.errors import InvalidInput, ModelMismatch
from rlm.core.text import tokens
from rlm.search.ranker import (
    FEATURES,
    RAREST,
    REACH,
    LearnedRanker,
    TrainingExample,
    TrainingReport,
    candidate_facts,
    dump_ranker,
    feature_matrix,
    fit,
    load_ranker,
    loss,
    prior_penalty,
    train,
)
from rlm.search.scoring import PARTS
from rlm.search.training_examples import recorded_questions
from rlm.service.cli import main

pytestmark = pytest.mark.usefixtures("bare")
MADE = TrainingReport("a test", 40, "2026-01-01", {"R@10": 0.5})


def candidates(seed: int, count: int = 40) -> dict[str, np.ndarray]:
    "Parts of the scores of some candidates, and facts about them."
    rng = np.random.default_rng(seed)
    parts = {name: rng.random(count) * 3 for name in PARTS}
    return parts | {"conversation": rng.integers(-1, 3, count), "before": rng.integers(-1, count, count), "asks": rng.integers(0, 3, count),
                    "rarity": rng.random(count) * 5}


def question(seed: int) -> TrainingExample:
    "What answers it has middling words and much meaning: no weighted sum can say that."
    parts = candidates(seed)
    fit = -abs(parts["words"] - 1.5) + parts["meaning"] / 3
    return TrainingExample(feature_matrix(parts), fit >= np.sort(fit)[-3], str(seed % 4))


EXAMPLES = [question(n) for n in range(40)]


def scores(ranker: LearnedRanker, parts: Mapping[str, np.ndarray]) -> np.ndarray:
    return np.sum(list(ranker.weigh(parts).values()), axis=0)


@pytest.fixture(scope="module")
def ranker() -> LearnedRanker:
    return train(EXAMPLES, MADE)


@given(st.integers(0, 10**6), st.integers(1, 30))
@settings(max_examples=20)
def test_a_stored_ranker_gives_the_same_scores(ranker: LearnedRanker, seed: int, count: int) -> None:
    again = load_ranker(dump_ranker(ranker))
    assert type(again) is type(ranker) and again.training == MADE and dump_ranker(again) == dump_ranker(ranker)
    one, other = ranker.weigh(candidates(seed, count)), again.weigh(candidates(seed, count))
    assert one.keys() == other.keys() == {*PARTS} and all(np.array_equal(one[p], other[p]) for p in one)


def test_learning_is_the_same_each_time(ranker: LearnedRanker) -> None:
    assert dump_ranker(train(EXAMPLES, MADE)) == dump_ranker(ranker)


def test_a_ranker_with_trees_of_an_older_store_is_used_without_them() -> None:
    plain = dump_ranker(train(EXAMPLES, MADE))
    older = json.dumps(json.loads(plain) | {"trees": "tree"}).encode()
    assert dump_ranker(load_ranker(older)) == plain


def test_a_ranker_of_another_version_is_refused(ranker: LearnedRanker) -> None:
    data = json.loads(dump_ranker(ranker))
    data["weights"].pop(next(iter(FEATURES)))
    with pytest.raises(InvalidInput, match="train-ranker"):
        load_ranker(json.dumps(data).encode())


@pytest.mark.parametrize("seed", range(4))
def test_learning_arrives_where_whole_steps_would_leap_to_and_fro(seed: int) -> None:
    "Few values far above the others, as the square of meaning has: Newton's steps, whole ones, never settle."
    rng, found = np.random.default_rng(seed), []
    for _ in range(6):
        seen = abs(rng.normal(size=(2, 400))) ** 3
        answer = np.argsort(-seen.sum(axis=0))[rng.integers(4)] if rng.random() > 0.2 else rng.integers(400)
        found.append(TrainingExample(seen, np.arange(400) == answer))
    usual = np.array([1.0, 0.0])
    spread = np.concatenate([e.features for e in found], axis=1).std(axis=1)
    pairs = [(e.features / spread[:, None], e.relevant / 1) for e in found]
    penalty = 2 * 20 / len(found) * prior_penalty(usual * spread)
    _, slope, _ = loss(fit(found, usual, 20) * spread, pairs, penalty)
    assert abs(slope).max() < 1e-4


# ---------------------------------------------------------------- what a ranker knows of memories

def told(memory: Memory, ids: list[str]) -> dict[str, list[float]]:
    "The facts of some memories, in this order; `before` as ids."
    index = memory.index
    with index.snapshot():
        numbers = index.metadata.docs([memory.get(i).seq for i in ids])
        found = candidate_facts(index.metadata, index.lexical, numbers)
    return {name: values.tolist() for name, values in found.items()} | {"before": [ids[n] if n >= 0 else "" for n in found["before"]]}


def turn(id: str, text: str, session: str | None = "s") -> dict[str, str | None]:
    return {"id": id, "text": text, "session": session}


def test_who_was_asked_is_found_among_what_was_written_in_between(memory: Memory) -> None:
    memory.write_many([turn("a", "How long have you had them?"), turn("x", "Is it late?", "other"), turn("n", "A note?", None),
                       turn("b", "Three years."), turn("c", "Nice."), turn("y", "Yes.", "other")])
    every = ["y", "c", "b", "n", "x", "a"]
    assert told(memory, every)["before"] == ["x", "b", "a", "", "", ""] and told(memory, every)["asks"] == [0, 0, 0, 2, 2, 2]
    assert told(memory, ["b", "c"])["before"] == ["", "b"]  # a is no candidate
    memory.update("b", text="Four years!")  # it gets another number in the index, and stays where it was said
    assert told(memory, every)["before"] == ["x", "b", "a", "", "", ""]
    memory.delete("b")
    assert told(memory, ["c", "a"])["before"] == ["a", ""]


def test_the_turn_before_is_not_looked_for_everywhere(memory: Memory) -> None:
    memory.write_many([turn("a", "And?"), *(turn(f"n{n}", "a note", None) for n in range(REACH)), turn("b", "Yes.")])
    assert told(memory, ["b", "a"])["before"] == ["", ""]


def test_rarity_is_of_the_rarest_words(memory: Memory) -> None:
    texts = {"a": "red boat", "b": "red boat in the harbour of Busan", "c": "red red red", "d": "!",
             "e": "a long walk, a very long walk " * 40}
    memory.write_many([turn(i, t) for i, t in texts.items()])
    held = [set(tokens(t)) for t in texts.values()]

    def expected(words: set[str]) -> float:
        each = [math.log(1 + (5 - n + 0.5) / (n + 0.5)) for n in (sum(w in other for other in held) for w in words)]
        return sum(sorted(each)[-RAREST:]) / RAREST

    assert told(memory, [*texts])["rarity"] == pytest.approx([expected(words) for words in held])


def test_a_ranker_learns_that_what_follows_a_question_answers_it(path: Path, clock: ManualClock) -> None:
    "The answers share no word with the questions, and a question comes first until it is known that it tells nothing."
    with Memory(path, clock=clock, embedder="none") as memory:
        for n in range(30):
            thing = f"{('red', 'blue', 'old')[n % 3]} {('boat', 'house', 'river', 'train', 'garden')[n % 5]} {n}"
            memory.write_many([turn(f"q{n}", f"Where is the {thing}?", f"s{n}"),
                               turn(f"a{n}", f"In Harbour Street, number {n * n + 1000}.", f"s{n}"),
                               turn(f"x{n}", f"The {thing}, I see.", f"s{n}")])
            memory.record_usage(f"a{n}", query=f"where is the {thing}", success=1)
        ask = lambda: [h.id for h in memory.search("where is the blue house 1", k=3)]  # noqa: E731
        assert ask()[0] == "q1"
        assert json.loads(rlm("train-ranker", "--json", "--db", str(path)))["kept"]
        assert ask()[0] == "a1"
        hit = memory.search("where is the blue house 1", k=1)[0]
        assert sum(sum(share.values()) for share in hit.parts.values()) == pytest.approx(hit.score)


# ---------------------------------------------------------------- use

@pytest.fixture
def answered(path: Path, clock: ManualClock) -> Path:
    "Thirty questions, and after each what answers it; all but one are reported."
    with Memory(path, clock=clock, embedder="none") as memory:
        for n in range(30):
            thing = f"{('red', 'blue', 'old')[n % 3]} {('boat', 'house', 'river', 'train', 'garden')[n % 5]} {n}"
            memory.write_many([{"text": f"What about the {thing}?", "role": "user"},
                               {"id": f"a{n}", "text": f"The {thing} is in Harbour Street.", "role": "assistant"}])
            if n:
                memory.record_usage(f"a{n}", query=f"where is the {thing}", success=1)
    return path


def rlm(*words: str) -> str:
    done = CliRunner().invoke(main, [*words], env={"RLM_EMBEDDER": "none"}, catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done.stdout


@pytest.mark.seed("002 re-ranker")
def test_what_was_used_becomes_a_ranker_that_says_so(answered: Path) -> None:
    db, asked = ["--db", str(answered)], ["memory", "search", "where is the blue house 1", "-k", "1"]
    told = json.loads(rlm("memory", "used", "a0", "--query", "where is the red boat 0", "--helped", "1", "--json", *db))
    assert told == {"id": "a0", "success": 1, "failure": 0, "access_count": 1}
    [before] = json.loads(rlm(*asked, "--json", *db))
    assert before["ranked_by"] == "" and before["memory"]["role"] == "user" and "ranker" not in rlm(*asked, *db)
    assert json.loads(rlm("train-ranker", "--json", *db))["questions"] == 30
    [after] = json.loads(rlm(*asked, "--json", *db))
    assert after["memory"]["id"] == "a1" and after["ranked_by"].startswith("trained on 30 questions from recorded use")
    assert f"ranker {after['ranked_by']}" in rlm(*asked, *db)


def test_a_question_that_is_recorded_passes_the_guard(memory: Memory) -> None:
    key = "sk-" + "a1B2c3D4e5F6g7H8" * 2
    memory.write("My notes", id="a")
    memory.record_usage("a", query=f"what is {key} for?", success=1)
    [kept] = recorded_questions(memory.backend, memory.ctx.namespace)
    assert key not in kept.query and "redacted" in kept.query
    assert key not in str(memory.backend.db.query("SELECT detail_json FROM events"))
    with Memory(":memory:", clock=memory.clock, secrets="refuse") as strict:
        strict.write("My notes", id="a")
        with pytest.raises(InvalidInput, match="holds a"):
            strict.record_usage("a", query=f"what is {key} for?", success=1)
        assert strict.get("a").access_count == 0


@pytest.mark.parametrize(("words", "said"), [
    (["used", "nobody"], "no memory 'nobody'"), (["used", "a", "--helped", "-1"], "whole number"), (["used", "r"], "rlm rules used r")])
def test_what_cannot_be_reported(path: Path, words: list[str], said: str) -> None:
    with Memory(path) as memory:
        memory.write("My notes", id="a")
        memory.write("Be kind", id="r", kind="rule")
    done = CliRunner().invoke(main, ["memory", *words, "--db", str(path)])
    assert done.exit_code == 1 and said in done.output and "Traceback" not in done.output


# ---------------------------------------------------------------- models

def test_two_models_are_told_apart_in_one_voice(path: Path, clock: ManualClock) -> None:
    with Memory(path, clock=clock, embedder=Toy()) as memory:
        memory.write("my boat")
    with Memory(path, clock=clock, embedder=Toy("other")) as memory:
        told = set()
        check_model = memory.backend.vectors.check_model
        for act in (lambda: memory.search("sea"), lambda: memory.write("a cat"), lambda: check_model("other", 16)):
            with pytest.raises(ModelMismatch) as e:
                act()
            told.add(str(e.value))
        assert len(told) == 1 and "are of 'toy', but the model in use is 'other'" in (said := told.pop())
        assert "rlm reembed --embedder other" in said and "embedder: none" in said
        with pytest.raises(ModelMismatch, match=r"of 'toy' \(16 numbers\), but the model in use is 'toy' \(8 numbers\)"):
            check_model("toy", 8)


def test_an_imported_store_is_found_by_meaning_in_every_namespace(path: Path, tmp_path: Path, clock: ManualClock) -> None:
    for name in ("default", "agent-7"):
        with Memory(path, clock=clock, namespace=name, embedder="none") as memory:
            memory.write_many([{"id": "boat", "text": "my old boat"}, {"id": "cat", "text": "the kitten sleeps"}])
    lines, copy = tmp_path / "store.jsonl", tmp_path / "copy.db"
    rlm("db", "export", str(lines), "--db", str(path))
    done = CliRunner().invoke(main, ["db", "import", str(lines), "--db", str(copy)], env={"RLM_EMBEDDER": "subjects"})
    assert done.exit_code == 0, done.output
    for name in ("default", "agent-7"):
        with Memory(copy, clock=clock, namespace=name, embedder=Toy()) as memory:
            assert memory.backend.vectors.missing("toy") == []
            assert [h.id for h in memory.search("Who goes to sea?", k=1)] == ["boat"]


def test_a_ranker_of_an_older_store_has_two_features_by_their_old_names(ranker: LearnedRanker) -> None:
    data = json.loads(dump_ranker(ranker))
    old = {"type": "when", "type × words": "when × words"}
    data["weights"] = {old.get(name, name): weight for name, weight in data["weights"].items()}
    assert dump_ranker(load_ranker(json.dumps(data).encode())) == dump_ranker(ranker)


@pytest.mark.parametrize("damaged", [b"", b"{", b"\xff", b"null", b"[1]", b"{}", b'{"weights": []}', b'{"weights": {}, "training": {}}',
                                     b'{"weights": {"words": "much"}, "training": {}}', b'{"weights": {"whenever": 1}, "training": {}}'])
def test_a_damaged_ranker_is_refused_with_a_hint(damaged: bytes) -> None:
    with pytest.raises(InvalidInput, match="train-ranker"):
        load_ranker(damaged)
