"A person's *no* for a strategy of a pack counts against it for the ontology that was asked, and for no other."

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from rlm.agent.ontology.rdf_client import bundled
from rlm.service.cli.agent import main as agent
from rlm.service.cli.main import main as rlm


def score(db: Path, ontology: str, question: str) -> float:
    done = CliRunner().invoke(agent, ["run", "--ontology", ontology, "--query", question, "--db", str(db), "--json"])
    return float(json.loads(done.stdout)["memories_used"][0]["score"])


@pytest.mark.parametrize("name", ["m.db", "m.json"])
def test_a_no_counts_where_it_was_said(tmp_path: Path, name: str) -> None:
    db = tmp_path / name
    before = score(db, "org", "What are the subclasses of Agent?")
    asked = score(db, "prov", "What are the subclasses of Entity?")
    assert CliRunner().invoke(agent, ["judge", "last", "no", "--db", str(db)]).exit_code == 0
    assert score(db, "prov", "What are the subclasses of Activity?") == pytest.approx(asked * 2 / 3, abs=0.01)
    assert score(db, "org", "What are the subclasses of Agent?") == pytest.approx(before, abs=0.01)
    score(db, "prov", "What are the subclasses of Influence?")
    assert CliRunner().invoke(agent, ["judge", "last", "yes", "--db", str(db)]).exit_code == 0
    assert score(db, "prov", "What are the subclasses of Plan?") == pytest.approx(asked * 3 / 4, abs=0.01)


def test_what_was_learned_is_counted_and_exported_for_every_ontology(tmp_path: Path) -> None:
    db, pack = tmp_path / "m.db", tmp_path / "ours_v1.jsonl"
    for ontology, name, expected in (("prov", "prov:used", "prov:Activity"), ("org", "org:postIn", "org:Post")):
        lesson = tmp_path / f"{ontology}_v1.yaml"
        lesson.write_text(f"id: {ontology}_v1\nontology: {{name: {ontology}, path: {bundled()[ontology]}}}\ntasks:\n"
                          f"- {{id: one, query: 'What is the domain of {name}?', expect: {{terms: ['{expected}']}}}}\n")
        done = CliRunner().invoke(rlm, ["memory", "train", str(lesson), "--db", str(db), "--no-packs", "--passes", "2"])
        assert done.exit_code == 0, done.output
    stats = json.loads(CliRunner().invoke(rlm, ["memory", "stats", "--db", str(db), "--json"]).stdout)
    assert set(stats["learned_strategies"]) >= {"org", "prov"}, stats
    done = CliRunner().invoke(rlm, ["memory", "export", str(pack), "--learned", "--db", str(db)])
    assert done.exit_code == 0 and "1 for org" in done.output and "1 for prov" in done.output, done.output
    other = tmp_path / "other.db"
    done = CliRunner().invoke(rlm, ["memory", "import", str(pack), "--db", str(other)])
    assert done.exit_code == 0, done.output
    line = ["memory", "export", str(tmp_path / "p_v1.jsonl"), "--learned", "--for", "prov", "--db", str(db), "--json"]
    for_prov = CliRunner().invoke(rlm, line)
    assert len(json.loads(for_prov.stdout)["exported"]) == 1
