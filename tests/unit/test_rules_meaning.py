"Rules are found by what they mean, by a store of their own as by a `Memory`, and what they say passes the guard."

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner
from toy import Toy

from rlm import Memory
from rlm.core.clock import ManualClock
from rlm.core.errors import InvalidInput, ModelMismatch
from rlm.rules import RuleStore
from rlm.service.cli import main

pytestmark = pytest.mark.usefixtures("bare")
SEA = "Who goes to sea?"
RULES = [
    {"rule_id": "boat", "expr": "Praise my old boat", "formal": "when guest then say = 'ship'"},
    {"rule_id": "배", "expr": "배를 탔다고 하면 축하한다"},
    {"rule_id": "cat", "expr": "Let the kitten sleep", "formal": "when hour < 9 then quiet"},
    {"rule_id": "bread", "expr": "Buy warm bakery goods", "tags": ["food"]},
]


@pytest.fixture
def rules(path: Path, clock: ManualClock) -> Iterator[RuleStore]:
    with RuleStore(path, clock=clock, embedder=Toy()) as store:
        store.add_rules(RULES)
        yield store


def found(rules: RuleStore, question: str = SEA) -> set[str]:
    return {h.rule.rule_id for h in rules.search(question, 2)}


def test_a_store_of_rules_asks_by_meaning(rules: RuleStore) -> None:
    for question in (SEA, "바다에는 누가 가?"):
        assert found(rules, question) == {"boat", "배"}
        assert all(h.shares["(meaning)"]["meaning"] > 0 for h in rules.search(question, 2))
    assert rules.backend.vectors.model().model == "toy" and rules.backend.vectors.missing("toy") == []
    assert [h.rule.rule_id for h in rules.search(SEA, tags=["food"])] == []


def test_a_memory_and_a_store_of_rules_find_the_same(rules: RuleStore, clock: ManualClock) -> None:
    with Memory(rules.backend.path, clock=clock, embedder=Toy()) as memory:
        within = RuleStore.within(memory)
        for question in (SEA, "kitten", "빵"):
            assert [(h.rule, h.score) for h in within.search(question)] == [(h.rule, h.score) for h in rules.search(question)]
            assert [h.id for h in memory.search(question, 5, kind="rule")] == [h.rule.rule_id for h in rules.search(question)]
        within.add_rule("The harbour opens at nine.", rule_id="harbour")
        assert found(rules, "sail") <= {"boat", "배", "harbour"} and "harbour" in {h.rule.rule_id for h in rules.search(SEA, 3)}


def test_a_rule_that_says_something_else_is_found_by_that(rules: RuleStore, clock: ManualClock) -> None:
    rules.hold("cat"), rules.release("cat"), rules.update_usage("cat", 1)
    assert rules.search("고양이")[0].rule.rule_id == "cat"
    assert rules.backend.vectors.missing("toy") == []  # a change of status keeps them
    with Memory(rules.backend.path, clock=clock, embedder=Toy()) as memory:
        memory.update("cat", text="Let the piano be")
    assert rules.search("음악")[0].rule.rule_id == "cat" and "cat" not in found(rules, "고양이")


def test_imported_rules_are_found_by_meaning(rules: RuleStore, tmp_path: Path, clock: ManualClock) -> None:
    toy = Toy()
    with RuleStore(tmp_path / "other.db", clock=clock, embedder=toy) as other:
        assert other.import_lines(rules.export_lines()).added == 4 and found(other) == {"boat", "배"}
        said = toy.texts
        assert other.import_lines(rules.export_lines()).unchanged == 4 and toy.texts == said  # nothing is embedded twice


def test_without_a_model_words_alone(path: Path, clock: ManualClock) -> None:
    with RuleStore(path, clock=clock) as rules:
        rules.add_rules(RULES)
        assert rules.search(SEA) == [] and found(rules, "old boat") == {"boat"} and rules.backend.vectors.model() is None


def test_vectors_of_another_model_are_refused_before_anything_is_stored(rules: RuleStore, clock: ManualClock) -> None:
    with RuleStore(rules.backend.path, clock=clock, embedder=Toy("other")) as other:
        with pytest.raises(ModelMismatch, match="rlm reembed"):
            other.search(SEA)
        with pytest.raises(ModelMismatch, match="rlm reembed"):
            other.add_rule("one more", rule_id="more")
        assert len(other.get_rules("any")) == 4


def test_the_command_line_finds_by_meaning(rules: RuleStore) -> None:
    words = ["rules", "search", SEA, "-k", "2", "--json", "--db", str(rules.backend.path)]
    done = CliRunner().invoke(main, words, env={"RLM_EMBEDDER": "subjects"})
    assert done.exit_code == 0, done.output
    assert {hit["rule"]["rule_id"] for hit in json.loads(done.stdout)} == {"boat", "배"}


@pytest.mark.parametrize("mode", ["redact", "refuse"])
def test_what_a_rule_says_passes_the_guard(path: Path, clock: ManualClock, mode: str) -> None:
    key = "sk-" + "a1B2c3D4e5F6g7H8" * 2
    with RuleStore(path, clock=clock, secrets=mode) as rules:
        for add in (lambda: rules.add_rule(f"Log in with {key}"), lambda: rules.add_rules([{"formal": f"when a then key = '{key}'"}]),
                    lambda: rules.import_lines([json.dumps({"rule_id": "x", "expr": f"Log in with {key}"})])):
            if mode == "refuse":
                with pytest.raises(InvalidInput, match="holds a"):
                    add()
            else:
                add()
        kept = "".join(rules.export_lines())
        assert key not in kept and kept.count("redacted") >= (3 if mode == "redact" else 0)
