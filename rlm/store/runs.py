"""Runs of the agent as rows: a run has a trajectory for each question, which may have a judgment and may have been given memories.

Strategies are learned from runs, so runs are kept beside them. What they mean is the agent's business; the store knows the columns of its
schema and takes and gives rows by their names. A run may have several trajectories, so a run that is there already is left as it is;
everything else is written once.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from .protocols import Database


RUN_TABLES = ("runs", "trajectories", "judgments", "memory_usage")
_UNSTORABLE = re.compile("[\0\ud800-\udfff]")


def storable(text: str,  # words of a model, or of its code
             ) -> str:
    "Return the text as an export can carry it: a replacement character stands for NUL, and for half of a surrogate pair."
    return _UNSTORABLE.sub("\ufffd", text)


_READ = ("t.trajectory_id", "t.run_id", "t.task_query", "t.final_answer", "t.iteration_count", "t.converged", "t.artifact_json",
         "t.rlm_log_path", "t.curriculum_id", "t.task_id", "t.created_at", "r.model", "r.ontology_name", "r.ontology_path", "r.notes",
         "j.is_success", "j.reason", "j.confidence", "j.missing_json")  # columns of a trajectory, its run and its judgment


class RunTable:
    "The runs of a store with their trajectories, judgments and memory usage."

    def __init__(self,
                 db: Database,        # database of the store; it must stay open as long as this object is used
                 ) -> None:
        self.db = db

    def put_run(self,
                row: Mapping[str, Any],  # columns of `runs` with their values
                ) -> bool:               # False: a run of this id belongs to another namespace
        "Store a run, inside a transaction, unless one of its id is there; return whether the stored one is of this namespace."
        self._insert("runs", row, "ON CONFLICT DO NOTHING")
        return self.db.query("SELECT namespace FROM runs WHERE run_id = ?", (row["run_id"],)) == [(row["namespace"],)]

    def put_trajectory(self,
                       row: Mapping[str, Any],  # columns of `trajectories` with their values, of a run that is there
                       ) -> None:
        "Store a trajectory, inside a transaction. Raises `StoreClash` if its id is taken."
        self._insert("trajectories", row)

    def put_judgment(self,
                     row: Mapping[str, Any],  # columns of `judgments` with their values, of a trajectory that is there
                     instead: bool = False,   # whether it replaces the one that is there
                     ) -> None:
        "Store a judgment, inside a transaction. Raises `StoreClash` if there is one and it is not replaced."
        if instead:
            self.db.query("DELETE FROM judgments WHERE trajectory_id = ?", (row["trajectory_id"],))
        self._insert("judgments", row)

    def put_usage(self,
                  trajectory_id: str,                  # id of a trajectory that is there
                  given: Sequence[tuple[str, float]],  # ids of memories with scores, best first
                  ) -> None:
        "Store the memories in a trajectory's prompt, inside a transaction; their ranks count from 1."
        self.db.executemany("INSERT INTO memory_usage (trajectory_id, memory_id, rank, score) VALUES (?, ?, ?, ?)",
                            [(trajectory_id, memory_id, rank, score) for rank, (memory_id, score) in enumerate(given, start=1)])

    def read(self,
             namespace: str,  # the partition
             task: str | None = None,  # a question, word by word; None: all
             ) -> list[dict[str, Any]]:  # columns of each with their values; those of the judgment are None where there is none
        "Return every trajectory of a namespace, or of a question, with its run and its judgment, in the order it was stored."
        rows = self.db.query(f"SELECT {', '.join(_READ)} FROM trajectories t JOIN runs r ON r.run_id = t.run_id LEFT JOIN judgments j "
                             "ON j.trajectory_id = t.trajectory_id WHERE r.namespace = ? AND t.task_query = coalesce(?, t.task_query) "
                             "ORDER BY t.rowid",
                             (namespace, task))
        return [dict(zip((name[2:] for name in _READ), row, strict=True)) for row in rows]

    def verdicts(self,
                 trajectory_id: str,     # id of a trajectory
                 namespace: str,         # its partition
                 ) -> list[int | None]:  # 1, 0, or None for unknown or not judged; empty: no such trajectory
        "Return the verdict of a trajectory, as a list of one."
        rows = self.db.query("SELECT j.is_success FROM trajectories t JOIN runs r ON r.run_id = t.run_id LEFT JOIN judgments j "
                             "ON j.trajectory_id = t.trajectory_id WHERE t.trajectory_id = ? AND r.namespace = ?",
                             (trajectory_id, namespace))
        return [success for (success,) in rows]

    def last_answer(self,
                    namespace: str,  # the partition
                    task: str,       # a question, word by word
                    ontology: str,   # name of the ontology that it is about
                    ) -> tuple[str | None, str] | None:
        "Return the last answer to a question, and when it was given; None if it was not asked."
        rows = self.db.query("SELECT t.final_answer, t.created_at FROM trajectories t JOIN runs r ON r.run_id = t.run_id "
                             "WHERE r.namespace = ? AND t.task_query = ? AND r.ontology_name = ? ORDER BY t.rowid DESC LIMIT 1",
                             (namespace, task, ontology))
        return (rows[0][0], rows[0][1]) if rows else None

    def judged(self,
               namespace: str,  # the partition
               ontology: str,   # name of the ontology that was asked
               reason: str,     # beginning of the judgment's reason, which says who judged
               ) -> list[tuple[str, int]]:  # artifact of the trajectory, 1 for right and 0 for wrong
        "Return how runs about an ontology were judged for a reason, in the order they were stored."
        rows = self.db.query("SELECT t.artifact_json, j.is_success FROM judgments j "
                             "JOIN trajectories t ON t.trajectory_id = j.trajectory_id JOIN runs r ON r.run_id = t.run_id "
                             "WHERE r.namespace = ? AND r.ontology_name = ? "
                             "AND substr(j.reason, 1, ?) = ? AND j.is_success IS NOT NULL ORDER BY t.rowid",
                             (namespace, ontology, len(reason), reason))
        return [(artifact, success) for artifact, success in rows]

    def has_usage(self,
                  trajectory_id: str,  # id of a trajectory
                  ) -> bool:
        "Return whether the memories in a trajectory's prompt were stored."
        return bool(self.db.query("SELECT 1 FROM memory_usage WHERE trajectory_id = ?", (trajectory_id,)))

    def usage(self,
              namespace: str,  # the partition
              ) -> list[tuple[str, str, int, float | None]]:  # trajectory, memory, rank, score
        "Return the memories in the prompts of a namespace's trajectories, in the order they were stored, best first."
        rows = self.db.query("SELECT u.trajectory_id, u.memory_id, u.rank, u.score FROM memory_usage u JOIN trajectories t ON "
                             "t.trajectory_id = u.trajectory_id JOIN runs r ON r.run_id = t.run_id WHERE r.namespace = ? "
                             "ORDER BY t.rowid, u.rank", (namespace,))
        return [(trajectory, memory, rank, score) for trajectory, memory, rank, score in rows]

    def _insert(self, table: str, row: Mapping[str, Any], otherwise: str = "") -> None:
        self.db.query(f"INSERT INTO {table} ({', '.join(row)}) VALUES ({', '.join('?' * len(row))}) {otherwise}",
                      [storable(value) if isinstance(value, str) else value for value in row.values()])
