"""The benchmark of a language model: which questions, what it may be given, the log that a run goes on with, the figures."""
import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from rlm.agent.memory.packs import shipped_pack
from rlm.agent.models.base import ScriptedModel
from rlm.agent.ontology.rdf_client import bundled
from rlm.bench.gold import GoldGraph, TermsAnswer, names_of, read_gold
from rlm.bench.learning import ExamFixture
from rlm.bench.model import ArmMemory, ModelAnswer, balanced, choose, leaks, memories, read_log, rows_of, run
from rlm.core.errors import InvalidInput, RlmError

LOOKS = '```repl\nsearch_entity("term")\nFINAL("I do not know: nothing fits.")\n```'


@pytest.fixture(scope="module")
def skos() -> GoldGraph:
    return read_gold(bundled()["skos"], "skos")


@pytest.fixture(scope="module")
def opened(skos: GoldGraph) -> Iterator[tuple[ExamFixture, dict[str, ArmMemory]]]:
    with ExamFixture({"skos": bundled()["skos"]}) as fixture:
        yield fixture, memories(fixture, [skos], 0, ("none", "packs", "learned", "others", "unrelated"), each=1)


def test_every_fifth_question_has_no_answer_and_both_languages_are_asked() -> None:
    graphs = [read_gold(path, name) for name, path in bundled().items()]
    found = choose(graphs, 0, 48)
    assert found == choose(graphs, 0, 48) and len({q.id for q in found}) == 48
    assert [q.template == "absent" for q in found] == [n % 5 == 4 for n in range(48)]
    assert {q.language for q in found} == {"en", "ko"} and len({q.ontology for q in found}) == len(graphs)


def test_no_arm_shows_a_question_its_terms_or_its_answer(skos: GoldGraph, opened: tuple[ExamFixture, dict[str, ArmMemory]]) -> None:
    fixture, known = opened
    names, shown = names_of(skos), dict.fromkeys(known, 0)
    for question in choose([skos], 0, 10):
        for arm, memory in known.items():
            page = memory.page(question, fixture.contexts["skos"], names)
            shown[arm] += len(page.shown)
            assert [leaks(question, item, names) for item, _ in page.shown] in ([], [[]]), (arm, question.text)
            assert question.text not in "".join(" ".join(item.examples) for item, _ in page.shown)
    assert shown["none"] == 0 and min(shown[arm] for arm in known if arm != "none") > 0, shown


def test_what_gives_an_answer_away_is_found(skos: GoldGraph) -> None:
    names, harmless = names_of(skos), shipped_pack("core_v1")[0]
    question = next(q for q in choose([skos], 0, 10) if isinstance(q.answer, TermsAnswer) and q.answer.members)
    assert leaks(question, harmless, names) == []
    assert isinstance(question.answer, TermsAnswer)
    for told in (question.text, names.curie(question.subjects[0]), *(names.curie(t) for t in question.answer.members)):
        assert leaks(question, replace(harmless, content=f"It is\n```repl\nFINAL(['{told}'])\n```"), names) == [told]


def test_the_control_shows_another_strategy_of_about_the_same_length(skos: GoldGraph,
                                                                     opened: tuple[ExamFixture, dict[str, ArmMemory]]) -> None:
    fixture, known = opened
    for question in choose([skos], 0, 10):
        fits, other = (known[arm].page(question, fixture.contexts["skos"], names_of(skos)).shown for arm in ("packs", "unrelated"))
        assert len(fits) == len(other) and not {i.memory_id for i, _ in fits} & {i.memory_id for i, _ in other}


def test_a_run_that_broke_off_goes_on_behind_its_last_line(tmp_path: Path) -> None:
    log, arms = tmp_path / "answers.jsonl", ("none", "packs")
    with pytest.raises(RlmError):  # the server is gone in the fourth run
        run(ScriptedModel([LOOKS] * 3), log, 4, 0, arms, ontologies=("skos",))
    first = log.read_text(encoding="utf-8")
    log.write_text(first + '{"question": "cut o', encoding="utf-8")
    report = run(ScriptedModel([LOOKS] * 5), log, 4, 0, arms, ontologies=("skos",))
    lines = read_log(log)
    assert log.read_text(encoding="utf-8").startswith(first) and len(lines) == len({(a.question, a.arm) for a in lines}) == 8
    assert [a.arm for a in lines] == ["none", "packs"] * 4 and report.n == 4 and report["refused: none"].value == 1
    assert run(ScriptedModel([]), log, 4, 0, arms, ontologies=("skos",)).rows == report.rows  # nothing is asked again
    log.write_text("{}\n", encoding="utf-8")
    with pytest.raises(InvalidInput, match="can't be read"):
        read_log(log)


def test_only_questions_of_every_arm_count_and_differences_are_paired() -> None:
    def answer(question: str, arm: str, outcome: str, tokens: int) -> ModelAnswer:
        return ModelAnswer(question, arm, "skos", "domain", "en", "?", outcome, "", "answered", 1, tokens, 0, 0, 1.0)
    log = [answer(str(n), arm, "right" if arm == "packs" else "wrong", 100 if arm == "packs" else 400)
           for n in range(8) for arm in ("none", "packs")] + [answer("9", "none", "right", 1)]
    by = balanced(log, ("none", "packs"))
    rows = {row.name: row for row in rows_of(by, 0)}
    assert len(by["none"]) == 8 and (rows["right: none"].value, rows["right: packs"].value) == (0, 1)
    assert rows["right, packs minus none"].value == 1 and rows["wrong, packs minus none"].met
    assert rows["tokens, packs minus none"].value == -300
    assert rows["least gain of right answers, packs"].met
    same = {row.name: row for row in rows_of({"none": by["none"], "packs": by["none"]}, 0)}
    assert same["least gain of right answers, packs"].met is False
    assert json.loads(json.dumps([row.as_dict() for row in rows.values()]))
