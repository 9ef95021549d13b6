"Labelled questions of one's own: figures as computed by hand, and a reason for each miss."
import json
import re
from pathlib import Path

import pytest
from click.testing import CliRunner

from rlm import Memory
from rlm.core.errors import InvalidInput, NotFound
from rlm.service.cli import main
from rlm.service.evaluation import (
    DEPTH,
    AskedQuestion,
    Evaluation,
    ExpectedAnswer,
    FoundAnswer,
    evaluate,
    parse_expected,
    read_expected,
    wilson,
)

ROOT = Path(__file__).parents[2]


def asked(*ranks: int | None) -> AskedQuestion:
    "A question whose expected memories have these ranks."
    return AskedQuestion("?", tuple(FoundAnswer("m", "m", "m", r) for r in ranks), "first")


def test_figures_are_those_computed_by_hand() -> None:
    silent, noisy = AskedQuestion("?", (), ""), AskedQuestion("?", (), "hit")
    found = Evaluation((asked(1), asked(3, None), asked(12), asked(None), silent, noisy), k=10, memories=5)
    assert found.mrr == pytest.approx((1 + 1 / 3 + 1 / 12 + 0) / 4)
    assert [found.recall(k) for k in (1, 3, 12)] == pytest.approx([1 / 4, 1.5 / 4, 2.5 / 4])
    assert [found.answered(k) for k in (1, 3, 12)] == [1, 2, 3]
    assert found.cuts == [1, 3, 5, 10] and len(found.misses) == 4  # one found half, two below the ten, one that should be silent
    assert found.as_dict()["unanswerable"] == {"questions": 2, "left unanswered": 1}


def test_the_interval_is_that_of_the_literature() -> None:
    assert wilson(9, 10) == pytest.approx((0.5958, 0.9821), abs=1e-4)
    assert wilson(0, 5)[0] == 0 and wilson(5, 5)[1] == 1


def test_each_miss_says_why() -> None:
    with Memory(":memory:", embedder="none") as memory:
        memory.write_many([{"id": "old", "text": "The gym is on Elm Street.", "status": "archived"},
                           {"id": "tea", "text": "민아는 녹차를  좋아한다"}, {"id": "rent", "text": "The rent is due on the first."}])
        before = memory.stats()["events"]
        told = {q: evaluate(memory, [ExpectedAnswer(q, (e,))]).asked[0].found[0] for q, e in
                [("Where is the gym?", "old"), ("열쇠는?", "RENT is due"), ("Who is the landlord?", "Mr Purcell"),
                 ("민아의 차", "녹차를 좋아한다")]}
        assert [f.why for f in told.values()] == ["held back by status=('hot', 'ltm')", "no word in common", "not in the store", ""]
        assert [f.id for f in told.values()] == ["old", "rent", None, "tea"] and told["민아의 차"].rank == 1
        assert memory.stats()["events"] == before and not memory.audit(query="gym").as_dict()["recalls"]
        with pytest.raises(InvalidInput, match="101"):
            evaluate(memory, [], DEPTH + 1)


@pytest.mark.parametrize("line", ["", "3", '{"query": "", "expect": []}', '{"query": "a"}', '{"query": "a", "expect": [1]}',
                                  '{"query": "a", "expect": [" "]}', '{"query": 3, "expect": []}', "[" * 100_000])
def test_what_is_no_labelled_question_is_refused(line: str) -> None:
    with pytest.raises(InvalidInput, match="no labelled question"):
        parse_expected(line)


def test_a_file_names_the_line_that_is_wrong(tmp_path: Path) -> None:
    path = tmp_path / "q.jsonl"
    path.write_text('{"query": "차\\u2028?", "expect": "tea"}\n\n{"query": "a", "relevant": ["b", "b"]}\n', encoding="utf-8")
    assert read_expected(path) == [ExpectedAnswer("차\u2028?", ("tea",)), ExpectedAnswer("a", ("b",))]
    path.write_text('{"query": "a", "expect": []}\nno\n', encoding="utf-8")
    with pytest.raises(InvalidInput, match=r"q\.jsonl, line 2"):
        read_expected(path)
    with pytest.raises(NotFound):
        read_expected(tmp_path)
    path.write_text("\n", encoding="utf-8")
    with pytest.raises(InvalidInput, match="no question"):
        read_expected(path)


def test_the_page_shows_what_the_command_prints(tmp_path: Path) -> None:
    page = (ROOT / "docs" / "evaluation.md").read_text(encoding="utf-8")
    questions = (ROOT / "examples" / "questions.jsonl").read_text(encoding="utf-8")
    assert f"<<'END'\n{questions}END\n" in page
    (tmp_path / "q.jsonl").write_text(questions, encoding="utf-8")
    db, env = str(tmp_path / "m.db"), {"RLM_EMBEDDER": "none"}
    with Memory(db, embedder="none") as memory:
        for text, id in re.findall(r'^rlm memory write "(.+)" --id (\w+)$', page, re.M):
            memory.write(text, id=id)
    done = CliRunner().invoke(main, ["eval", str(tmp_path / "q.jsonl"), "-k", "3", "--db", db], env=env)
    assert done.exit_code == 0 and done.output.strip() in page, done.output
    assert json.loads(CliRunner().invoke(main, ["eval", str(tmp_path / "q.jsonl"), "--db", db, "--json"], env=env).output)["recall"] == 0.8
    done = CliRunner().invoke(main, ["eval", str(tmp_path / "q.jsonl"), "--db", db, "--min-recall", "0.81"], env=env)
    assert done.exit_code == 1 and "0.80, less than 0.81" in done.output
