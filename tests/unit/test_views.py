"The names that the designs give as tables exist as views, with their literal columns, for whoever reads the file with SQL."
import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from rlm import Memory
from rlm.core.clock import ManualClock

pytestmark = pytest.mark.usefixtures("bare")
RULES = ("rule_id", "expr", "formal", "tags", "version", "status", "success", "fail", "last_used")
MEMORY_ITEMS = ("memory_id", "title", "description", "content", "source_type", "task_query", "created_at", "tags_json", "scope_json",
                "provenance_json", "access_count", "success_count", "failure_count")


def rows(path: Path, sql: str) -> list[dict[str, Any]]:
    "As another program would read them."
    with closing(sqlite3.connect(path)) as connection:
        cursor = connection.execute(sql)
        return [dict(zip([d[0] for d in cursor.description], row, strict=True)) for row in cursor]


@pytest.fixture
def filled(path: Path, clock: ManualClock) -> Path:
    with Memory(path, clock=clock) as memory, Memory(path, clock=clock, namespace="team") as team:
        memory.write("If tired, rest", kind="rule", id="rest",
                     formal='when city == "Seoul" then drink = "tea"', tags=["삶", "health"], success=4, failure=1)
        memory.write("A rule without anything else", kind="rule", id="bare")
        memory.write("1. search\n2. describe", kind="strategy", id="find", title="Find a class", summary="Two steps", tags=["sparql"],
                     scope={"ontology": None, "tools": ["search"]}, provenance={"task_query": "What is Activity?", "source": "human"},
                     source_type="success", success=2)
        memory.write("only content", kind="strategy", id="plain")
        memory.write("said", kind="block", id="block")
        team.write("the team's own rule", kind="rule", id="rest")
        clock.advance(days=1)
        memory.update("rest", status="ltm")
        memory.record_usage("rest", success=1)
        memory.record_usage("find", access=3, failure=1)
        memory.write("deleted", kind="rule", id="gone")
        memory.delete("gone")
    return path


def test_rules(filled: Path) -> None:
    found = rows(filled, "SELECT * FROM rules WHERE namespace = 'default' ORDER BY rule_id")
    assert set(RULES) <= found[0].keys() and [r["rule_id"] for r in found] == ["bare", "rest"]
    rest = found[1]
    assert {n: rest[n] for n in RULES} == {
        "rule_id": "rest", "expr": "If tired, rest", "formal": 'when city == "Seoul" then drink = "tea"',
        "tags": '["health","삶"]', "version": 2, "status": "ltm",
        "success": 5, "fail": 1, "last_used": "2026-01-02T00:00:00.000000Z"}
    assert (found[0]["tags"], found[0]["last_used"], found[0]["formal"], found[0]["fail"]) == ("[]", None, None, 0)
    assert [r["expr"] for r in rows(filled, "SELECT * FROM rules WHERE namespace = 'team'")] == ["the team's own rule"]


@pytest.mark.seed("003 views")
def test_memory_items(filled: Path) -> None:
    found = {r["memory_id"]: r for r in rows(filled, "SELECT * FROM memory_items")}
    assert found.keys() == {"find", "plain"}
    item = {n: found["find"][n] for n in MEMORY_ITEMS}
    assert json.loads(item.pop("scope_json")) == {"ontology": None, "tools": ["search"]}
    assert json.loads(item.pop("provenance_json")) == {"task_query": "What is Activity?", "source": "human"}
    assert item == {"memory_id": "find", "title": "Find a class", "description": "Two steps", "content": "1. search\n2. describe",
                    "source_type": "success", "task_query": "What is Activity?", "created_at": "2026-01-01T00:00:00.000000Z",
                    "tags_json": '["sparql"]', "access_count": 3, "success_count": 2, "failure_count": 1}


def test_columns_that_the_design_declares_not_null_never_are(filled: Path) -> None:
    for row in rows(filled, "SELECT * FROM memory_items"):
        assert [n for n in MEMORY_ITEMS if row[n] is None] in ([], ["task_query"])


def test_a_deep_provenance_does_not_break_the_view(path: Path) -> None:
    deep: dict[str, Any] = {}
    for _ in range(98):
        deep = {"in": deep}
    with Memory(path) as memory:
        memory.write("content", kind="strategy", provenance={**deep, "task_query": "q"})
    assert [r["task_query"] for r in rows(path, "SELECT * FROM memory_items")] == ["q"]


def test_the_names_are_views_and_cannot_be_written(filled: Path) -> None:
    with closing(sqlite3.connect(filled)) as connection:
        for name in ("rules", "memory_items"):
            with pytest.raises(sqlite3.OperationalError, match="view"):
                connection.execute(f"DELETE FROM {name}")
