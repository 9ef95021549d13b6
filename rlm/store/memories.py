"""Memories as rows, read by id, number and filter; their versions, short ids and statistics; and a cache of records.

The statements that ask for one memory by its id are made once, others are put together from filters. The numbers of `statistics` are all of
one moment, so that they add up while others write. Writing is in `writer`.
"""

import json
import re
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..core.clock import to_iso
from ..core.errors import InvalidInput, NotFound
from .filters import TIME_CONDITIONS, Filters, filter_conditions
from .records import COLUMNS, KINDS, MemoryRecord, from_row, stored_id, unreadable
from .protocols import Database, KnownRows, Question, known_rows, one_of


TAGS_OF = "(SELECT json_group_array(tag) FROM (SELECT tag FROM memory_tags t WHERE t.seq = m.seq ORDER BY tag))"
MEMORY_FIELDS = ", ".join(f"m.{c}" for c in COLUMNS)


def source(as_of: datetime | None,  # None: the present
           ) -> tuple[str, str, str]:
    "Return table, columns (tags last) and document number of the present or the history, as SQL."
    if as_of is None:
        return "memories m", f"{MEMORY_FIELDS}, {TAGS_OF}", "m.seq"
    return "memory_history m", f"{MEMORY_FIELDS}, m.tags_json", "m.docid"


def documents_source(as_of: datetime | None,  # None: the present
                     ) -> str:
    "Return the rows of the documents whose numbers are given as JSON in `:documents`, as a table expression `m`: each is looked up."
    given = "FROM json_each(:documents) j CROSS JOIN"
    present = f"SELECT m.seq AS docid, {MEMORY_FIELDS}, {TAGS_OF} AS tags_json, NULL AS replaced_at {given} memories m ON m.seq = j.value"
    if as_of is None:
        return f"({present}) m"
    past = MEMORY_FIELDS.replace("m.", "v.")
    return f"({present} UNION ALL SELECT -v.vid, {past}, v.tags_json, v.replaced_at {given} memory_versions v ON v.vid = -j.value) m"


def to_record(row: tuple[Any, ...],  # values of `source` columns
              ) -> MemoryRecord:
    "Return the record of a row of the present or the history."
    try:
        return from_row(row, tuple(json.loads(row[-1])) if row[-1] != "[]" else ())
    except (ValueError, TypeError) as e:
        raise unreadable(f"The memory {row[0]!r}") from e


_GET = f"SELECT {MEMORY_FIELDS}, {TAGS_OF} FROM memories m WHERE m.namespace = ? AND m.id = ?"
_GET_AS_OF = (f"SELECT {MEMORY_FIELDS}, m.tags_json FROM memory_history m WHERE m.namespace = :namespace AND m.id = :id "
              f"AND {TIME_CONDITIONS['as_of']}")


@dataclass(frozen=True, slots=True)
class NamespaceSummary:
    "Counts what a store holds of one namespace."

    name: str  # the namespace
    memories: int  # number of present memories
    deleted: int  # number of deleted memories whose text is kept as history
    runs: int  # number of runs of agents
    last: str | None  # recorded time of the last event, as ISO 8601; None: there is none


SHORTEST_ID = 4   # letters of a short id at least
COLLISIONS = 0.01  # chance that a short id is the beginning of another id, too; a letter more costs half a token a line
_MADE_ID = re.compile("[0-9a-f]{12}|[0-9a-f]{16}")  # ids that the store makes; of another, only the whole names a memory
SHORT_ID = re.compile(f"[0-9a-f]{{{SHORTEST_ID},11}}")
_BEGIN = " UNION ".join(f"SELECT {column} FROM {table} WHERE namespace = :namespace AND {column} >= :low AND {column} < :high{more}"
                        for table, column, more in (("memories", "id", ""), ("memory_versions", "id", ""),
                                                    ("events", "subject", " AND kind = 'erase'")))
_LENGTH = " ".join(f"WHEN h.held <= {int(COLLISIONS * 16 ** n)} THEN {n}" for n in range(SHORTEST_ID, 11))
_ALIKE = " OR ".join(f"EXISTS (SELECT 1 FROM {table} m WHERE m.namespace = :namespace AND m.id >= substr(j.value, 1, l.n) "
                     "AND m.id < substr(j.value, 1, l.n) || 'g' AND m.id <> j.value)" for table in ("memories", "memory_versions"))
_SHORT = f"""SELECT j.value, substr(j.value, 1, l.n) FROM (SELECT CASE {_LENGTH} ELSE 11 END AS n FROM (
  SELECT coalesce(max(documents), 0) AS held FROM namespace_statistics WHERE namespace = :namespace) h) l,
  json_each(:ids) j WHERE NOT ({_ALIKE})"""
_NAMESPACES = """
SELECT name, (SELECT count(*) FROM memories WHERE namespace = name),
  (SELECT count(DISTINCT v.id) FROM memory_versions v WHERE v.namespace = name
    AND NOT EXISTS (SELECT 1 FROM memories m WHERE m.namespace = v.namespace AND m.id = v.id)),
  (SELECT count(*) FROM runs WHERE namespace = name), (SELECT max(at) FROM events WHERE namespace = name)
FROM (SELECT j.value AS name FROM json_each(?) j) AS names ORDER BY name"""


NAMESPACE_TABLES = ("SELECT t.name FROM sqlite_master t JOIN pragma_table_info(t.name) c ON c.name = 'namespace' "
                    "WHERE t.type = 'table' AND t.name <> 'pending_scrubs' ORDER BY t.name")
STORE_BYTES = "SELECT page_count * page_size FROM pragma_page_count(), pragma_page_size()"


def namespace_tables(db: Database,  # a store
                     ) -> list[str]:
    "Return the names of the tables whose rows belong to a namespace; what an erasure has still to do is none of them."
    return [str(name) for (name,) in db.query(NAMESPACE_TABLES)]


def short_ids_question(namespace: str,      # the partition
                       ids: Sequence[str],  # ids of memories
                       ) -> Question:
    "Return what `MemoryTable.short_ids` asks."
    made = [id for id in dict.fromkeys(ids) if _MADE_ID.fullmatch(id)]
    return _SHORT, {"namespace": namespace, "ids": json.dumps(made)}


def pinned_question(namespace: str,   # the partition to look in
                    now: datetime,    # the present
                    limit: int = 50,  # how many at most
                    ) -> Question:
    "Return what `MemoryTable.pinned` asks."
    _, columns, _ = source(None)
    sql = (f"SELECT {columns} FROM memories m INDEXED BY memories_pinned WHERE m.namespace = :namespace AND m.pinned = 1 "
           f"AND m.kind = 'block' AND m.status IN ('hot', 'ltm') AND {TIME_CONDITIONS['now']} "
           "ORDER BY m.access_count DESC, m.seq DESC LIMIT :limit")
    return sql, {"namespace": namespace, "now": to_iso(now), "limit": limit}


def find_question(namespace: str,             # the partition to look in
                  filters: Filters,           # conditions that a memory meets to count
                  limit: int,                 # how many at most
                  newest_first: bool = True,  # by position in the store, descending
                  offset: int = 0,            # how many to skip first
                  below: int | None = None,   # only those at a lower position; None: all
                  ) -> Question:
    "Return what `SQLStorage.find` asks."
    table, columns, _ = source(filters.as_of)
    where, values = filter_conditions(filters, namespace)
    place = "+m.seq" if filters.session else "m.seq"  # +: find the session and sort it, don't walk all to find its turns
    order = f"{place} {'DESC' if newest_first else 'ASC'}"
    if below is not None:
        where, values = f"{where} AND {place} < :below", values | {"below": below}
    sql = f"SELECT {columns} FROM {table} WHERE {where} ORDER BY {order} LIMIT :limit OFFSET :offset"
    return sql, values | {"limit": limit, "offset": offset}


class MemoryTable:
    "The memories of a store, present and past. Reads only; writing is in `writer`."

    def __init__(self,
                 db: Database,        # database of the store; it must stay open as long as this object is used
                 ) -> None:
        self.db = db

    def get(self,
            ids: Sequence[str],             # ids of memories
            namespace: str,                 # the partition to look in
            as_of: datetime | None = None,  # a moment: the versions that were present then
            ) -> list[MemoryRecord]:
        "Return the memories with these ids, in this order; unknown ids are left out."
        if as_of is None:
            return [to_record(row) for i in ids for row in self.db.query(_GET, (namespace, i))]
        values = {"namespace": namespace, "as_of": to_iso(as_of)}
        return [to_record(row) for i in ids for row in self.db.query(_GET_AS_OF, values | {"id": i})]

    def pinned(self,
               namespace: str,   # the partition to look in
               now: datetime,    # the present: what has ended by then is left out
               limit: int = 50,  # maximum number
               ) -> list[MemoryRecord]:
        "Return the pinned blocks that are current, those used most first, then the newest. Reads an index of pinned memories alone."
        return [to_record(row) for row in self.db.query(*pinned_question(namespace, now, limit))]

    def with_trust(self,
                   namespace: str,         # the partition to look in
                   states: Sequence[str],  # trust states, as provenance names them
                   limit: int = 100,       # maximum number
                   ) -> list[MemoryRecord]:
        "Return the current blocks whose provenance has one of these states of trust, oldest first. Reads the whole partition."
        _, columns, _ = source(None)
        sql = (f"SELECT {columns} FROM memories m WHERE m.namespace = :namespace AND m.provenance_json LIKE '%\"trust\":%' "
               "AND m.kind = 'block' AND m.status IN ('hot', 'ltm') AND m.valid_to IS NULL "
               "AND json_extract(m.provenance_json, '$.trust') IN (SELECT value FROM json_each(:states)) ORDER BY m.seq LIMIT :limit")
        values = {"namespace": namespace, "states": json.dumps(list(states)), "limit": limit}
        return [to_record(row) for row in self.db.query(sql, values)]

    def passes(self,
               memory_id: str,    # id of one memory
               namespace: str,    # its partition
               filters: Filters,  # the question
               ) -> bool:
        "Return whether this memory passes these filters."
        table, _, _ = source(filters.as_of)
        where, values = filter_conditions(filters, namespace)
        return bool(self.db.query(f"SELECT 1 FROM {table} WHERE {where} AND m.id = :id", values | {"id": memory_id}))

    def versions(self,
                 memory_id: str,  # id of one memory
                 namespace: str,  # its partition
                 ) -> list[MemoryRecord]:
        "Return every version still kept, oldest first; the present one is last, unless the memory was deleted."
        sql = f"SELECT {MEMORY_FIELDS}, m.tags_json FROM memory_history m WHERE m.namespace = ? AND m.id = ? ORDER BY m.version"
        return [to_record(row) for row in self.db.query(sql, (namespace, memory_id))]

    def has_turn(self,
                 namespace: str,    # the partition
                 session: str,      # a conversation
                 turn: int | None,  # place in it, from 0
                 ) -> bool:
        "Return whether a conversation has a memory of this turn."
        return bool(self.db.query("SELECT 1 FROM memories WHERE namespace = ? AND session = ? AND turn = ?", (namespace, session, turn)))

    def ids_tagged(self,
                   namespace: str,  # the partition
                   tag: str,        # a tag, exactly
                   ) -> list[str]:  # in their order
        "Return the ids of the memories that have a tag in any version that is kept, deleted ones included."
        rows = self.db.query("SELECT DISTINCT id, tags_json FROM memory_history WHERE namespace = ? ORDER BY id", (namespace,))
        return list(dict.fromkeys(id for id, tags in rows if tag in json.loads(tags)))

    def latest(self,
               ids: Sequence[str],  # ids of memories, present or deleted
               namespace: str,      # their partition
               ) -> list[MemoryRecord]:
        "Return the last known version of each, deleted or not."
        return [r for i in dict.fromkeys(ids) for r in self.versions(i, namespace)[-1:]]

    def summaries(self) -> list[NamespaceSummary]:
        "Return what the store holds of each namespace that has a row in any table, by name; events of erasures are none."
        db = self.db.for_namespace(None)
        rows = " UNION ".join(f"SELECT namespace FROM {table}" + (" WHERE kind <> 'erase'" if table == "events" else "")
                              for table in namespace_tables(db))
        return [NamespaceSummary(*row) for row in db.query(_NAMESPACES, (json.dumps([name for (name,) in db.query(rows)]),))]

    def records(self,
                seqs: Sequence[int],  # numbers of memories; those that are gone are left out
                ) -> dict[int, MemoryRecord]:
        "Return memories by their numbers."
        return {seq: record for seq, (record, _) in self.records_with_ends(seqs).items()}

    def records_with_ends(self,
                          seqs: Sequence[int],  # numbers of memories; those that are gone are left out
                          ) -> dict[int, tuple[MemoryRecord, bool]]:  # number → memory, and whether a fact of it has ended
        "Return memories by their numbers, each with whether a fact that it states has ended."
        table, columns, _ = source(None)
        which, values = one_of(seqs)
        ends = "EXISTS (SELECT 1 FROM facts f WHERE f.seq = m.seq AND f.valid_to IS NOT NULL)"
        rows = self.db.query(f"SELECT {ends}, {columns} FROM {table} WHERE m.seq IN {which}", values)
        return {record.seq: (record, bool(end)) for end, *row in rows for record in (to_record(tuple(row)),)}

    def past(self,
             versions: Sequence[int],  # numbers of past versions; those that are gone are left out
             ) -> dict[int, MemoryRecord]:
        "Return past versions by their numbers."
        which, values = one_of(versions)
        rows = self.db.query(f"SELECT m.vid, {MEMORY_FIELDS}, m.tags_json FROM memory_versions m WHERE m.vid IN {which}", values)
        return {vid: to_record(tuple(row)) for vid, *row in rows}

    def past_ids(self,
                 versions: Collection[int],  # numbers of past versions; those that are gone are left out
                 ) -> dict[int, str]:
        "Return the ids of the memories that past versions are of, by the numbers of the versions."
        which, values = one_of(list(versions))
        return dict(self.db.query(f"SELECT vid, id FROM memory_versions WHERE vid IN {which}", values))

    def version_number(self,
                       namespace: str,  # the partition
                       memory_id: str,  # id of a memory
                       version: int,    # number of the version
                       ) -> int:        # 0: it is no past version
        "Return the number of a past version."
        sql = "SELECT vid FROM memory_versions WHERE namespace = ? AND id = ? AND version = ?"
        found = self.db.query(sql, (namespace, memory_id, version))
        return int(found[0][0]) if found else 0

    def matching_past(self,
                      namespace: str,    # the partition
                      filters: Filters,  # about a past moment: with `as_of`
                      ) -> NDArray[np.int64]:
        "Return the numbers of the past versions that pass filters, ascending."
        where, values = filter_conditions(filters, namespace)
        rows = self.db.query(f"SELECT m.vid FROM memory_versions m WHERE {where}", values)
        return np.sort(np.fromiter((row[0] for row in rows), np.int64, len(rows)))

    def namespaces(self) -> list[str]:
        "Return every namespace that has a memory, in order; the index is asked once for each."
        sql = ("WITH RECURSIVE found(name) AS (SELECT min(namespace) FROM memories UNION ALL "
               "SELECT (SELECT min(namespace) FROM memories WHERE namespace > name) FROM found WHERE name IS NOT NULL) "
               "SELECT name FROM found WHERE name IS NOT NULL")
        return [n for (n,) in self.db.for_namespace(None).query(sql)]

    def seqs(self,
             namespace: str,  # the partition
             among: Sequence[int] | None = None,  # numbers to look for; None: all
             ) -> list[int]:
        "Return the numbers of the memories of a namespace, ascending."
        which, values = ("", ()) if among is None else (" AND seq IN (SELECT value FROM json_each(?))", (json.dumps(among),))
        return [row[0] for row in self.db.query(f"SELECT seq FROM memories WHERE namespace = ?{which} ORDER BY seq", (namespace, *values))]

    def matching(self,
                 namespace: str,    # the partition
                 filters: Filters,  # about the present: without `as_of`
                 ) -> NDArray[np.int64]:
        "Return the numbers of the memories that pass filters, ascending."
        where, values = filter_conditions(filters, namespace)
        rows = self.db.query(f"SELECT m.seq FROM memories m WHERE {where}", values)  # ordered, SQLite would walk all to find a few
        return np.sort(np.fromiter((row[0] for row in rows), np.int64, len(rows)))

    def count(self,
              namespace: str,  # the partition
              limit: int,      # highest number worth counting to
              ) -> int:
        "Return how many memories a namespace has, or the limit if there are more."
        sql = "SELECT count(*) FROM (SELECT 1 FROM memories WHERE namespace = ? LIMIT ?) AS counted"
        return int(self.db.query(sql, (namespace, limit))[0][0])

    def seqs_of(self,
                namespace: str,      # the partition
                kind: str,           # block, rule or strategy
                ids: Sequence[str],  # ids of memories of any kind, there or not
                ) -> list[int]:
        "Return the numbers of those that are there and of this kind."
        sql = "SELECT seq FROM memories WHERE namespace = ? AND kind = ? AND id IN (SELECT value FROM json_each(?))"
        return [seq for (seq,) in self.db.query(sql, (namespace, kind, json.dumps(list(ids))))]

    def ids(self,
            namespace: str,         # the partition
            seqs: Collection[int],  # numbers of memories; those that are gone, or elsewhere, are left out
            ) -> dict[int, str]:
        "Return ids by number."
        which, values = one_of(list(seqs))
        sql = f"SELECT seq, id FROM memories WHERE seq IN {which} AND +namespace = ?"  # +: by number, never by a walk through the namespace
        return dict(self.db.query(sql, (*values, namespace)))

    def lowest_ids(self,
                   namespace: str,       # the partition
                   seqs: Sequence[int],  # numbers of memories
                   n: int,               # number of memories wanted
                   ) -> list[int]:  # numbers
        "Return the `n` memories with the lowest ids, the lowest first."
        which, values = one_of(seqs)
        sql = f"SELECT seq FROM memories WHERE seq IN {which} AND +namespace = ? ORDER BY id LIMIT ?"
        return [seq for seq, in self.db.query(sql, (*values, namespace, n))]

    def known_id(self,
                 namespace: str,  # the partition
                 id: object,      # id of a memory, as a caller gave it, or the beginning by which a block tells it
                 ) -> str:        # whole id, of a memory that is there or was, else the given one
        """Return the id that a caller means. A whole id comes first; of an id that a caller chose, only the whole names a memory. Raises
        `InvalidInput` where several ids begin so."""
        given = stored_id(id)
        if not SHORT_ID.fullmatch(given) or self.find_seq(namespace, given) is not None:
            return given
        found = self.db.query(_BEGIN, {"namespace": namespace, "low": given, "high": f"{given}g"})
        begin = [one for one, in found if one == given or _MADE_ID.fullmatch(one)]
        if len(begin) > 1 and given not in begin:
            raise InvalidInput(f"{len(begin)} ids begin with {given!r}: {', '.join(begin[:4])}.", "Give the one that is meant, whole.")
        return begin[0] if len(begin) == 1 else given

    def short_ids(self,
                  namespace: str,      # the partition
                  ids: Sequence[str],  # ids of memories
                  ) -> dict[str, str]:  # id → its beginning, or itself if it was chosen by a caller
        """Return the beginnings of ids that `known_id` understands: four letters in a namespace of up to 655 documents, one more for each
        sixteen times as many. An id stays whole where another, of a memory that is there or was, begins alike."""
        return {id: id for id in ids} | dict(self.db.query(*short_ids_question(namespace, ids)))

    def find_seq(self,
                 namespace: str,  # the partition
                 memory_id: str,  # id of a memory
                 ) -> int | None:  # None: there is none
        "Return the number of a memory; None: there is none."
        found = self.db.query("SELECT seq FROM memories WHERE namespace = ? AND id = ?", (namespace, memory_id))
        return int(found[0][0]) if found else None

    def seq(self,
            namespace: str,  # the partition
            id: object,      # id of a memory, as a caller gave it
            ) -> int:
        "Return the number of one memory. Raises `NotFound`, `InvalidInput`."
        found = self.find_seq(namespace, self.known_id(namespace, id))
        if found is None:
            raise NotFound(f"There is no memory {id!r} in namespace {namespace!r}.", "Search for it, or see its history.")
        return found

    def rules(self,
              namespace: str,                     # the partition
              seqs: Sequence[int] | None = None,  # numbers of rules; None: all
              ) -> tuple[list[tuple[Any, ...]], list[tuple[Any, ...]]]:
        """Return rules in the order of their numbers, as id, seq, status, success, failure, valid_from if that is later than when it was
        made, valid_to, text, version and formal; and their tags, as seq and tag."""
        which = "" if seqs is None else " AND m.seq IN (SELECT value FROM json_each(:seqs))"
        where, values = f"m.namespace = :namespace AND m.kind = 'rule'{which}", {"namespace": namespace, "seqs": json.dumps(seqs)}
        tags = self.db.query(f"SELECT t.seq, t.tag FROM memories m JOIN memory_tags t ON t.seq = m.seq WHERE {where}", values)
        begins = "CASE WHEN m.valid_from > m.created_at THEN m.valid_from END"
        return self.db.query(f"SELECT m.id, m.seq, m.status, m.success, m.failure, {begins}, m.valid_to, m.text, m.version, m.formal "
                             f"FROM memories m WHERE {where} ORDER BY m.seq", values), tags

    def rule_count(self,
                   namespace: str,  # the partition
                   ) -> int:
        "Return how many rules are hot, promoted or held. Reads an index alone."
        sql = "SELECT count(*) FROM memories WHERE kind = 'rule' AND status IN ('hot', 'ltm', 'held') AND namespace = ?"
        return int(self.db.query(sql, (namespace,))[0][0])

    def rules_due(self,
                  namespace: str,    # the partition
                  status: str,       # hot, ltm or held
                  success: int,      # successes from which on a rule is returned
                  failure: int,      # failures above which it is
                  before: datetime,  # a moment: what was not used since is returned, too
                  ) -> list[MemoryRecord]:
        "Return the rules whose status may have to change, by number. Their counts and last use are read from an index."
        _, columns, _ = source(None)
        values = {"namespace": namespace, "status": status, "success": success, "failure": failure, "before": to_iso(before)}
        which = "SELECT seq FROM memories WHERE kind = 'rule' AND status = :status AND namespace = :namespace AND"
        sql = (f"SELECT {columns} FROM memories m WHERE m.seq IN ({which} (success >= :success OR failure > :failure) "
               f"UNION {which} last_used_at < :before UNION {which} last_used_at IS NULL AND created_at < :before) ORDER BY m.seq")
        return [to_record(row) for row in self.db.query(sql, values)]

    def statistics(self,
                   namespace: str,  # the partition to count
                   kinds: Sequence[str] = KINDS,  # kinds of memories that are counted
                   ) -> dict[str, Any]:
        "Return counts by kind, status and category; versions, edges and events; the file's size in bytes; first and last date."
        with self.db.snapshot():
            found = self.db.query("SELECT kind, status, coalesce(category, ''), count(*), min(created_at), max(updated_at) FROM memories "
                                  "WHERE namespace = ? GROUP BY 1, 2, 3", (namespace,))
            total = {name: self.db.query(f"SELECT count(*) FROM {table} WHERE namespace = ?", (namespace,))[0][0]
                     for name, table in (("versions", "memory_versions"), ("events", "events"))}
            edges = self.db.query("SELECT count(*) FROM edges e JOIN memories m ON m.seq = e.src "
                                  "WHERE m.namespace = ?", (namespace,))[0][0]
            size = self.size()
        by = [Counter[str]() for _ in range(3)]
        for *labels, n, _, _ in (row for row in found if row[0] in kinds):
            for counter, label in zip(by, labels, strict=True):
                counter[label] += n
        return {"namespace": namespace, "memories": sum(by[0].values()), "by_kind": dict(by[0]), "by_status": dict(by[1]),
                "by_category": {k: v for k, v in by[2].items() if k}, **total, "edges": edges,
                "first": min((row[4] for row in found), default=None), "last": max((row[5] for row in found), default=None),
                "path": self.db.path, "bytes": size}

    def size(self) -> int:
        "Return the bytes of the store's file, or of a server's tables."
        return int(self.db.query(STORE_BYTES)[0][0])


# The same memories are found again and again, and reading ten of them costs as much as finding them among a thousand. So a cache keeps the
# records that a connection has read until any process writes to the store.
CACHED_RECORDS = 4000  # records of one connection, after which its cache is emptied


class RecordCache:
    "Reads memories by number, each only once until the store is written to. Threads may share it."

    def __init__(self,
                 table: MemoryTable,  # memories of the store
                 ) -> None:
        self.table, self._known = table, KnownRows()

    def records(self,
                seqs: Sequence[int],  # numbers of memories; those that are gone are left out
                ) -> dict[int, MemoryRecord]:
        "Return memories by number, as they are now. Each caller gets copies, whose dictionaries may be changed."
        records = self._read(seqs)
        return {s: records[s][0].copy() for s in seqs if s in records}

    def with_ends(self,
                  seqs: Sequence[int],  # numbers of memories
                  ) -> list[int]:
        "Return the memories that state a fact which has ended."
        records = self._read(seqs)
        return [s for s in seqs if s in records and records[s][1]]

    def _read(self, seqs: Sequence[int]) -> dict[int, tuple[MemoryRecord, bool]]:
        records = known_rows(self.table.db, self._known, CACHED_RECORDS)
        if missing := [s for s in seqs if s not in records]:
            records |= self.table.records_with_ends(missing)
        return records
