"Two tenants of one file: nothing that one of them is shown depends on what the other stores."
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from rlm import Memory
from rlm.core.clock import ManualClock
from rlm.core.text import tokens
from rlm.service.cli import main
from rlm.store import Filters, SQLStorage, Weights

pytestmark = pytest.mark.usefixtures("bare")
LATER, EVERY = "2026-06-01T00:00:00Z", Filters.read(status="any")
QUERIES = ("harbour", "tea harbour zebra", "고양이가 학교에서", "coffee tea tea", "lighthouse")


def fill(memory: Memory) -> None:
    memory.write("Tea at the harbour, said Mina.", id="a", tags=["drink"], session="s", speaker="Mina")
    memory.write("Coffee, please.", id="b", session="s", speaker="Jun")
    memory.write("고양이가 학교에서 잤다", id="c", title="고양이")
    memory.write("A zebra in the harbour drinks coffee and tea.", id="d")
    memory.update("a", text="Green tea at the harbour, said Mina.")
    memory.delete("d")
    memory.link("a", "b", "similar")


def shown(memory: Memory, path: Path) -> dict[str, Any]:
    "Everything with a statistic in it; the size of the file, which is said to be the file's, aside."
    found: dict[str, Any] = {}
    for query in QUERIES:
        for name, when in (("present", {}), ("past", {"as_of": LATER})):
            hits = memory.search(query, **when)
            found[f"{name} {query}"] = [(h.id, h.score, {t: dict(p) for t, p in h.parts.items()}) for h in hits]
            found[f"why {name} {query}"] = repr(memory.explain(query, "a", **when))
        stats = memory.backend.fulltext.term_statistics(tokens(query), memory.ctx.namespace)
        found[f"terms {query}"] = (stats.documents, stats.mean_length, dict(stats.frequencies))
        matches = memory.backend.fulltext.match(tokens(query), memory.ctx.namespace, EVERY, 9, Weights())
        found[f"words {query}"] = [(m.record.id, m.score) for m in matches]
    found["stats"] = {k: v for k, v in memory.stats().items() if k != "bytes"}
    found["graph"] = memory.graph.stats()
    for words in (("memory", "stats"), ("graph", "stats"), ("memory", "search", "tea harbour", "--as-of", LATER)):
        where = {"RLM_DB_PATH": str(path), "RLM_NAMESPACE": memory.ctx.namespace}
        done = CliRunner().invoke(main, [*words, "--json"], prog_name="rlm", env=where)
        assert done.exit_code == 0, done.output
        said = json.loads(done.output)
        found[" ".join(words)] = {k: v for k, v in said.items() if k != "bytes"} if isinstance(said, dict) else said
    return found


def others(memory: Memory) -> None:
    memory.write_many([f"harbour tea zebra 고양이 lighthouse {'tail ' * (n % 40)}{n}" for n in range(300)])
    memory.write("tea", session="s", speaker="Mina", id="a")
    memory.update("a", text="tea tea")


@pytest.mark.parametrize("writes", [others, lambda m: (others(m), m.delete([r.id for r in m.recent(200)], erase=True))])
def test_what_a_tenant_is_shown_does_not_depend_on_another(path: Path, writes: Callable[[Memory], None]) -> None:
    clock = ManualClock("2026-05-08")
    with Memory(path, namespace="mine", clock=clock) as mine, Memory(path, namespace="theirs", clock=clock) as theirs:
        fill(mine)
        before = shown(mine, path)
        assert before["words harbour"] and before["past lighthouse"] == [] and before["terms tea harbour zebra"][0] == 5
        writes(theirs)
        assert shown(mine, path) == before and mine.check() == []
    with Memory(path, namespace="mine", clock=clock) as mine:
        assert shown(mine, path) == before


def test_statistics_that_disagree_are_found_and_mended(path: Path) -> None:
    with Memory(path) as memory:
        fill(memory)
        storage: SQLStorage = memory.backend
        kept = storage.db.query("SELECT * FROM namespace_statistics")
        for damage in ("UPDATE namespace_statistics SET tokens = tokens + 1", "DELETE FROM namespace_statistics",
                       "INSERT INTO namespace_statistics VALUES ('nobody', 1, 1)"):
            with storage.transaction():
                storage.db.query(damage)
            assert "statistics" in memory.check()[0]
            storage.repair()
            assert memory.check() == [] and storage.db.query("SELECT * FROM namespace_statistics") == kept


def test_a_namespace_without_documents_leaves_no_statistics(path: Path) -> None:
    with Memory(path) as memory:
        fill(memory)
        memory.delete(["a", "b", "c", "d"], erase=True)
        assert memory.backend.db.query("SELECT * FROM namespace_statistics") == []
