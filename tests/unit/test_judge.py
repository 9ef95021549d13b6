"Answers in English and Korean as a verifier reads them: what looks alike must not be read alike."

from dataclasses import replace
from typing import Any

import pytest

from rlm.agent.learning.judge import judge_trajectory, read_expectation
from rlm.agent.loop.loop import answer_text
from rlm.agent.models.base import ScriptedModel
from rlm.agent.tracing.trajectory import Step, Trajectory
from rlm.core.errors import InvalidInput


def run(given: object) -> Trajectory:
    "A run that called FINAL with this."
    return Trajectory("q", (Step(1, "r", "FINAL(1)"),), answer_text(given), True, "answered", value=given)


def verdict(given: object, expected: dict[str, Any]) -> bool | None:
    judged = judge_trajectory(run(given), read_expectation(expected))
    assert judged.confidence == ("low" if judged.success is None else "high")
    return judged.success


TRUE = ("yes", "Yes.", "**Yes**, it is", "true", "네", "네, 그렇습니다", "예", "예입니다", "네.", "맞습니다", "맞아요",
        "맞다", "그렇습니다", "그래요", "옳습니다", "참입니다", "있습니다", "있어요.", "It is.", "They do", "네, 네 개가 있습니다", True)
FALSE = ("no", "No.", "No, it is not", "no it is not", "No\nIt has none", "false", "아니요", "아니오",
         "아닙니다", "아닌 것 같습니다", "아뇨", "아님", "맞지 않습니다", "그렇지 않습니다", "거짓", "없습니다.", "없어요", "It is not.",
         "it isn't", "It isn’t a class", False)
OTHER = ([], ["prov:Plan"], 3, 1.0, "prov:Plan", "prov:Plan, prov:Agent입니다", "3", "3, 4", "http://e.org/a#b")
NEITHER = ("none", None, "Northern", "Norway", "No one", "Notable", "nothing", "예를 들면 prov:Plan",
           "네덜란드", "그렇지만", "맞춤", "hm", "yesterday", "아마도", "네 개의 클래스가 있습니다", "네 가지입니다", "네 명",
           "네 번째 클래스", "네 번입니다", "네 종류", "있다면", "It is, however, hard to say", "It is not clear", "They are many",
           "없지 않을까")


@pytest.mark.parametrize("truth", [True, False])
@pytest.mark.parametrize("given", [*TRUE, *FALSE, *OTHER])
def test_yes_and_no(given: object, truth: bool) -> None:
    said = None if given in OTHER and not isinstance(given, bool) else given in TRUE
    assert verdict(given, {"truth": truth}) is (said is truth)


@pytest.mark.parametrize("truth", [True, False])
@pytest.mark.parametrize("given", NEITHER)
@pytest.mark.seed("003 judge")
def test_what_can_not_be_read_is_unknown(given: object, truth: bool) -> None:
    assert verdict(given, {"truth": truth}) is None


@pytest.mark.parametrize(("given", "success"), [
    ("Leads from a concept to any above it, however many steps away", False), ("A property of broader, for all that I see", None),
    ("As far as I see, it is so", None), ("한 개념에서 그 위에 놓인 모든 개념으로 이어진다", False)])
def test_a_sentence_about_something_else_is_no_answer(given: str, success: bool | None) -> None:
    judged = judge_trajectory(replace(run(given), task="Is broader transitive?"), read_expectation({"truth": True}))
    assert judged.success is success


@pytest.mark.parametrize("given", ["네 대부분입니다", "네 개념입니다", "네 번역입니다", "네 명사입니다", "네 가지고 있습니다",
                                   "네 분류입니다", "네 종속됩니다"])
def test_a_yes_before_a_noun_is_no_four(given: str) -> None:
    assert verdict(given, {"truth": True}) is True


@pytest.mark.parametrize(("given", "number"), [
    ("5개입니다", 5), ("3개", 3), ("3", 3), ("There are 3.", 3), ("총 12 개", 12), ("모두 3입니다", 3),
    ("1,234", 1234), ("1,234,567개", 1234567), ("-3", -3), ("−3", -3), ("1,2", None), ("1,2345", None),
    ("12,34", None), ("3-5", None), ("3/4", None), ("3.5", None), ("3 or 4", None), ("prov-3", None), ("v3", None),
    ("ISO-8601 has 5", 5), ("7" * 5000, None), (3, 3), (True, None), ("3.0", 3), ("3.00개", 3), (3.0, 3), (3.5, None), (float("inf"), None),
    (float("nan"), None), ("3.05", None), ("1.0.2", None), ("three", 3), ("Twelve.", 12), ("There are three subclasses.", 3),
    ("세 개입니다", 3), ("세개", 3), ("하위 클래스는 다섯 가지입니다", 5), ("모두 열둘", 12), ("한 개", 1), ("하나입니다.", 1),
    ("three or 4", None),
    ("two or three", None), ("세 번째", "?"), ("셋 중 하나", "?"), ("No one", "?"), ("one of them", "?"), ("세 개 이상", "?"),
    ("many", "?"), ("없습니다", "?"), ("yes", None), ("아니요", None), ("prov:Plan", None), ([], None), ("두 개 또는 세 개", None)])
def test_numbers(given: object, number: int | str | None) -> None:
    for wanted in (3, 12, 5, -3, 1, 2, 4, number if isinstance(number, int) else 0):
        assert verdict(given, {"number": wanted}) is (None if number == "?" else wanted == number), wanted


@pytest.mark.parametrize("given", [
    "prov:Agent와 prov:Plan", "prov:Agent 및 prov:Plan", "prov:Agent 그리고 prov:Plan",
    "prov:Agent, 그리고 prov:Plan", "prov:Agent와 prov:Plan입니다.", "prov:Plan과 prov:Agent", "prov:Agent and prov:Plan",
    "prov:Agent, prov:Plan", ["prov:Agent", "prov:Plan"], "prov:Agent, prov:Plan이에요", "prov:Agent, prov:Plan예요.",
    "<http://www.w3.org/ns/prov#Agent>와 <http://www.w3.org/ns/prov#Plan>"])
def test_terms_are_parted(given: object) -> None:
    assert verdict(given, {"terms": ["prov:Agent", "prov:Plan"]}) is True


def test_terms_in_hangul() -> None:
    assert verdict(":활동과 :계획", {"terms": [":활동", ":계획"]}) is True
    assert verdict(":사과", {"terms": [":사과"]}) is True and verdict("없습니다", {"terms": []}) is True
    assert verdict("prov:Agent", {"terms": ["prov:Agent", "prov:Plan"]}) is False


ADMITTED = ("I do not know.", "I do not know: no term fits", "I don't know", "I don’t know", "unknown", "unknown: x", "Unknown.",
            "It is unknown", "Nobody knows", "Not known", "Not sure…", "No idea", "I'm not sure.", "I cannot tell", "Sorry, I can't say",
            "모르겠습니다", "잘 모르겠어요", "알 수 없습니다", "prov:Foo가 무엇인지 알 수 없습니다.", "모릅니다")
FORMS = ({"truth": False}, {"truth": True}, {"number": 3}, {"terms": ["prov:Plan"]}, {"terms": []}, {"text": "x"}, {"contains": ["know"]})


@pytest.mark.parametrize("expected", FORMS)
@pytest.mark.parametrize("given", ADMITTED)
def test_who_does_not_know_is_neither_right_nor_wrong(given: str, expected: dict[str, Any]) -> None:
    assert verdict(given, expected) is None


@pytest.mark.parametrize("given", [*ADMITTED, "There is no such class.", "prov:Foo does not exist", "그런 클래스는 없습니다",
                                   "존재하지 않습니다"])
def test_unless_that_was_to_be_found_out(given: str) -> None:
    assert verdict(given, {"refuses": True}) is True and verdict(given, {"refuses": False}) is False


@pytest.mark.parametrize("given", ADMITTED)
def test_no_critic_is_asked_about_it(given: str) -> None:
    critic = ScriptedModel(['{"success": "yes", "reason": "fine", "confidence": "high", "missing": []}'])
    assert judge_trajectory(run(given), model=critic).success is None and not critic.seen


REFUSED = {"There are no problems: the answer is prov:Agent": False, "prov:Agent. There is no other.": False,
           "문제가 없습니다: prov:Agent": False,
           "prov:Agent입니다. 다른 클래스는 없습니다.": False, "There is no such class; prov:Agent comes nearest.": None,
           "I looked at all of them. There is no such class.": None, "There are no subclasses but prov:Agent": None,
           "There is no class called prov:Foo.": True, "There is no prov:Foo; no Flurb exists, nor prov:Flurb.": True,
           "Sorry, no such class. Did you mean something else?": True, "prov:Foo는 존재하지 않습니다": True}


@pytest.mark.parametrize(("given", "refused"), REFUSED.items())
def test_a_refusal_denies_what_was_asked_for(given: str, refused: bool | None) -> None:
    judged = judge_trajectory(replace(run(given), task="What are the subclasses of Flurb?"), read_expectation({"refuses": True}))
    assert judged.success is refused and judged.confidence == ("low" if refused is None else "high")


@pytest.mark.parametrize("given", [{"contains": []}, {"contains": [""]}, {"contains": ["a", "\t"]}, {"text": ""}, {"text": " \u3000"}])
def test_what_any_answer_fulfils_is_refused(given: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput, match="any answer would do"):
        read_expectation(given)
