"The learning benchmark, small: what it reports, and that memory is what makes the difference."
from pathlib import Path

import pytest

from rlm.bench.gold import read_gold
from rlm.bench.learning import ExamFixture, run
from rlm.bench.questions import examine, generate, names_by, part_of
from rlm.bench.report import Report, read_report, write_report


@pytest.fixture(scope="module")
def report() -> Report:
    return run(quick=True)


@pytest.mark.nightly
def test_memory_makes_the_difference(report: Report, tmp_path: Path) -> None:
    r = report
    assert r["accuracy: shipped packs"].value > 3 * r["accuracy: no memory"].value
    assert r["accuracy: no memory"].role == "control"
    assert r["iterations: shipped packs"].value < 0.6 * r["iterations: no memory"].value
    assert r["injected: no memory"].value == 0 < r["injected: shipped packs"].value <= 8000 >= (r["injected: shipped packs"].max or 0)
    for arm in ("shipped packs", "no memory", "trained"):
        parts = [r[f"{what}: {arm}"].value for what in ("accuracy", "wrong", "refused")]
        assert sum(parts) == pytest.approx(1, abs=1e-3)
    assert not set(r.parameters["test"]) & set(r.parameters["train"])
    assert read_report(write_report(r, tmp_path / "learning.json"))["accuracy: trained"].value == r["accuracy: trained"].value


@pytest.mark.nightly
def test_what_is_learned_is_kept_and_used(root: Path) -> None:
    path = root / "ontology" / "time.ttl"
    graph = read_gold(path)
    lesson, exam = (generate(graph, each=2, part=part) for part in ("train", "test"))  # type: ignore[arg-type]
    with ExamFixture({"time": path}) as fixture:
        learner = fixture.agent("empty")
        before = examine(exam, learner, names_by([graph]))
        assert learner.known() == 0
        for question in lesson:
            learner.learn(question)
        after = examine(exam, learner, names_by([graph]))
        known = learner.backend.items() if learner.backend else []
    right = [sum(m.outcome == "right" for m in marks) for marks in (before, after)]
    assert known and right[1] > right[0] and sum(m.attempt.iterations for m in after) < sum(m.attempt.iterations for m in before)
    named = {s.rsplit("#")[-1] for q in exam for s in q.subjects if part_of(s, 0) == "test"}
    assert not [i for i in known if any(n in i.procedure for n in named if len(n) > 6)], "a strategy holds a term of the exam"
