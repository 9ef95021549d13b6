"Rows of the store that chapters do not show: records in a cache, short ids, runs of the agent."
from collections.abc import Iterator
from contextlib import closing

import pytest

from rlm.core.clock import ManualClock
from rlm.core.errors import StoreClash
from rlm.store.filters import Filters
from rlm.store.memories import NamespaceSummary, RecordCache, namespace_tables, short_ids_question
from rlm.store.records import new_record
from rlm.store.runs import RunTable, storable
from rlm.store.sqlite.database import SQLiteDatabase
from rlm.store.storage import SQLStorage

AT = "2026-11-21T09:00:00.000000Z"


@pytest.fixture
def storage() -> Iterator[SQLStorage]:
    made, clock = SQLStorage(SQLiteDatabase(":memory:")), ManualClock(AT)
    with made.transaction() as tx:
        tx.insert([new_record("Which boat?", clock.now(), id="m0")])
    yield made
    made.db.close()


def test_a_cache_of_records_sees_its_own_transaction_and_keeps_nothing_undone(storage: SQLStorage) -> None:
    cache, now = RecordCache(storage.memories), ManualClock(AT).now()
    def undone() -> None:
        with storage.transaction() as tx:
            tx.count("m0", "default", now, access=1)
            assert cache.records([1])[1].access_count == 1
            raise ZeroDivisionError
    with pytest.raises(ZeroDivisionError):
        undone()
    assert cache.records([1])[1].access_count == 0
    with storage.transaction() as tx:
        tx.count("m0", "default", now, access=2)
    assert cache.records([1])[1].access_count == 2


def test_each_caller_of_a_cache_gets_a_copy(storage: SQLStorage) -> None:
    cache = RecordCache(storage.memories)
    one, other = (cache.records([1])[1] for _ in range(2))
    one.extra["mine"] = 1
    assert other.extra == {} and list(cache.records([1, 99])) == [1]


def test_a_namespace_is_summed_up_and_counted(storage: SQLStorage) -> None:
    assert storage.memories.summaries() == [NamespaceSummary("default", 1, 0, 0, AT)] and len(namespace_tables(storage.db)) == 12
    assert storage.memories.matching("default", Filters.read(speaker="Mina")).tolist() == []
    assert storage.memories.count("default", 9) == 1


def test_an_id_that_a_caller_chose_is_never_shortened() -> None:
    assert short_ids_question("default", ["a1b2c3d4e5f6", "tea"])[1] == {"namespace": "default", "ids": '["a1b2c3d4e5f6"]'}


def test_a_run_keeps_its_questions_judgments_and_memories() -> None:
    with closing(SQLiteDatabase(":memory:")) as db:
        runs = RunTable(db)
        run = {"run_id": "r-1", "namespace": "team", "created_at": AT, "model": "habit"}
        asked = [{"trajectory_id": f"t-{n}", "run_id": "r-1", "task_query": task, "final_answer": "[]", "iteration_count": n,
                  "converged": 1, "artifact_json": "{}", "created_at": AT}
                 for n, task in enumerate(["Subclasses of Activity?", "Entity의 하위 클래스는?"], start=1)]
        with db.transaction():
            assert [runs.put_run(run), runs.put_run(run), runs.put_run({**run, "namespace": "other"})] == [True, True, False]
            for row in asked:
                runs.put_trajectory(row)
            runs.put_judgment({"trajectory_id": "t-1", "is_success": 1, "reason": "as expected", "confidence": "high",
                               "missing_json": "[]"})
            runs.put_usage("t-2", [("m-1", 0.75), ("m-2", 0.5)])
        assert (runs.verdicts("t-1", "team"), runs.verdicts("t-2", "team"), runs.verdicts("t-1", "other")) == ([1], [None], [])
        assert [t | row for t, row in zip(runs.read("team"), asked, strict=True)] == runs.read("team") and runs.read("other") == []
        assert runs.has_usage("t-2") and runs.usage("team") == [("t-2", "m-1", 1, 0.75), ("t-2", "m-2", 2, 0.5)]
        assert runs.last_answer("team", "Subclasses of Activity?", "prov") is None, "no ontology was named"
        with pytest.raises(StoreClash):
            runs.put_trajectory(asked[0])


def test_what_an_export_can_not_carry_is_replaced() -> None:
    assert storable("a\x00b, half \ud83d of a pair") == "a\ufffdb, half \ufffd of a pair"
