"A tie between rules is settled by the configured model from the command line, and only when asked."
import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from rlm import Memory
from rlm.service.cli.rules import rules_group

pytestmark = pytest.mark.usefixtures("bare")


def applied(path: Path, *words: str, model: str) -> tuple[int, str]:
    env = {"RLM_MODEL": model, "RLM_EMBEDDER": "none"}
    done = CliRunner().invoke(rules_group, ["apply", "hour=9", "--db", str(path), *words], env=env)
    return done.exit_code, done.output


@pytest.fixture
def tied(path: Path) -> Path:
    with Memory(path, embedder="none") as memory:
        for rule_id, drink in (("a", "차"), ("b", "coffee")):
            memory.rules.add_rule({"rule_id": rule_id, "formal": f"when hour < 11 then drink = '{drink}'"})
    return path


@pytest.mark.seed("000 fallbacks")
@pytest.mark.parametrize(("said", "stage", "outcomes"), [
    ("drink = 'water'", "antinomic", {"drink": "water"}),
    ("Ask her.\nThen decide.\n---\nI would not know.\n---\nStill not.\n---\nOffer water.", "base", {})])
def test_a_tie_is_settled_by_the_configured_model(said: str, stage: str, outcomes: dict[str, str], tied: Path, tmp_path: Path) -> None:
    (tmp_path / "script.txt").write_text(said, encoding="utf-8")
    code, out = applied(tied, "--ask-model", "--json", model=f"scripted:{tmp_path / 'script.txt'}")
    found = json.loads(out)
    assert (code, found["rulings"][0]["stage"], found["outcomes"]) == (0, stage, outcomes)


def test_no_model_is_asked_unless_one_is_wanted_and_configured(tied: Path) -> None:
    code, out = applied(tied, "--resolve", "--json", model="scripted:nowhere.txt")
    assert (code, json.loads(out)["rulings"][0]["stage"]) == (0, "tie-break")
    code, out = applied(tied, "--ask-model", model="case-based")
    assert code == 1 and "No language model is configured" in out
