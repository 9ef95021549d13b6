"A ranker that is learned from feedback is judged on questions that it has not seen, and kept only if it gains beyond chance."

import json
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from rlm import Memory
from rlm.bench.feedback import SHOWN, feedback_of, ndcg, rows_of, run
from rlm.core.errors import InvalidInput
from rlm.search.ranker import TrainingExample, answer_ranks, cross_validate, evaluate, feature_matrix
from rlm.search.scoring import PARTS
from rlm.service.cli import main

LIVES = Path(__file__).parent.parent / "data" / "lives.jsonl"


def examples(helps: bool, n: int = 60) -> list[TrainingExample]:
    "Questions whose answers the part *user* shows, or nothing does."
    draw, found = np.random.default_rng(0), list[TrainingExample]()
    for k in range(n):
        parts = {name: np.zeros(20) for name in PARTS} | {"words": draw.random(20), "user": (draw.random(20) < 0.5).astype(float)}
        parts |= {"conversation": np.zeros(20, int), "before": np.full(20, -1), "asks": np.zeros(20, int), "rarity": np.zeros(20)}
        answer = draw.choice(np.flatnonzero(parts["user"]) if helps else 20)
        found.append(TrainingExample(feature_matrix(parts), np.arange(20) == answer, str(k % 3)))
    return found


def test_ndcg_is_one_where_all_answers_stand_first_and_counts_ten_places() -> None:
    assert ndcg([1, 2]) == ndcg([1]) == 1 and ndcg([11]) == 0
    assert ndcg([2]) == pytest.approx(1 / np.log2(3)) and ndcg([1, 11]) < 1


def test_the_least_gain_tells_a_ranker_that_learned_something_from_one_that_learned_noise() -> None:
    assert cross_validate(examples(True))["least gain"] > 0 > cross_validate(examples(False))["least gain"]


def test_the_ranks_of_answers_give_recall_and_the_reciprocal_rank() -> None:
    for example in examples(False, 9):
        (rank,) = answer_ranks(example, None)
        assert evaluate(example, None) == (float(rank <= 10), 1 / rank)


def test_only_what_is_shown_teaches() -> None:
    hidden = TrainingExample(np.zeros((1, 30)), np.arange(30) == SHOWN, "a")
    both = TrainingExample(np.zeros((1, 30)), np.isin(np.arange(30), (0, SHOWN)), "a")
    assert [e.relevant.nonzero()[0].tolist() for e in feedback_of([hidden, both])] == [[0]]


def test_a_set_can_be_left_out_only_of_two(bare: Path) -> None:
    with pytest.raises(InvalidInput, match="fewer than two"):
        run(lives=LIVES)
    refused = CliRunner().invoke(main, ["bench", "feedback", "--lives", str(LIVES)])
    assert refused.exit_code != 0 and "--locomo" in refused.output + str(refused.stderr)


def test_a_set_of_one_conversation_has_no_other_to_learn_from_and_silence_teaches_nothing() -> None:
    one = [TrainingExample(e.features, e.relevant, "one") for e in examples(True, 9)]
    rows = {row.name: row.value for row in rows_of({"one": one, "many": examples(True, 12)}, 0)}
    assert "one nDCG@10 gained: learned from another set" in rows and "one nDCG@10 gained: learned from another conversation" not in rows
    hidden = [TrainingExample(np.zeros((len(one[0].features), 30)), np.arange(30) == SHOWN, str(n % 2)) for n in range(4)]
    silent = {row.name: row.value for row in rows_of({"hidden": hidden, "one": one}, 0)}
    assert silent["one nDCG@10 gained: learned from another set"] == 0, "the default weights stay"


def test_noise_is_not_kept_by_the_command(bare: Path) -> None:
    runner, db = CliRunner(), ["--db", str(bare / "m.db")]
    draw = np.random.default_rng(1)
    with Memory(bare / "m.db", embedder="none") as memory:
        memory.write_many([{"id": f"n{n}", "text": f"note {n} about the weather and the garden"} for n in range(40)])
    rows = [{"query": "the weather and the garden", "relevant": [f"n{draw.integers(40)}"], "group": str(k % 4)} for k in range(24)]
    (bare / "q.jsonl").write_text("\n".join(map(json.dumps, rows)))
    said = runner.invoke(main, ["train-ranker", "--questions", str(bare / "q.jsonl"), "--json", *db], catch_exceptions=False)
    assert said.exit_code == 0, said.output
    told = json.loads(said.stdout)
    assert not told["kept"] and told["held_out"]["least gain"] <= 0
