"""Statements of the store's tables, which are written once, for SQLite, in the words of PostgreSQL.

Most statements are written so that both engines read them. What differs: whole statements, by the names that the store's modules have for
them; words inside statements; and patterns, such as lists that are given as JSON.
"""

import re
from functools import lru_cache

from ..protocols import TEXT_COLUMNS
from ..events import LAST_VERSION
from ..fulltext import ADD_DOCUMENT, DOCUMENT_SIZES, DROP_DOCUMENT, FREQUENCIES, OCCURRENCES
from ..integrity import ODD_VECTORS
from ..memories import NAMESPACE_TABLES, STORE_BYTES
from ..memories import TAGS_OF as TAGS_IN_SQLITE
from ..sqlite.schema import COUNTED
from ..writer import NEXT_NUMBERS
from .schema import TAGS_OF

_NUMBERS = {"seq", "vid", "src", "dst", "docid", "recall", "anchor", "ended_by"}  # columns of numbers
_LIST = r"\(SELECT value FROM json_each\((\S+?)\)\)"
_MEMBER = re.compile(rf"(?<![\w.])(?:\w+\.)?(\w+) (NOT )?IN {_LIST}")
_ELEMENTS = re.compile(r"json_each\((:\w+|\?|\w+\.\w+)\)(?: j\b)?")
_STRING = re.compile(r"('(?:[^']|'')*')")
_NAMED = re.compile(r"(?<![:\w]):([A-Za-z_]\w*)")
_PLUS = re.compile(r"(?<=[\s(])\+(?=[a-z])")
_NUMBERED = re.compile(r"(?:seq|vid|src|dst|d\.id) = -?j\.value")
_FIELD = re.compile(r"json_extract\((\w+(?:\.\w+)?), '\$\.(\w+)'\)")  # a field of a JSON object, as text
_TABLE_INFO = re.compile(r"PRAGMA table_info\((\w+)\)")

_STATEMENTS = {  # statement for SQLite → statement for PostgreSQL
    "PRAGMA foreign_key_check": "SELECT 1 WHERE false",  # PostgreSQL never lets a reference dangle
    "PRAGMA integrity_check(10)": "SELECT 'ok'",  # pages are the server's business (`amcheck`, data checksums)
    "VACUUM": "VACUUM memories, memory_versions, memory_tags, postings, documents, vectors, edges, facts, slots, slot_refs, events, "
              "trajectories, judgments, recalls, recalled, thread_checkpoints, thread_writes",
    "PRAGMA wal_checkpoint(TRUNCATE)": "SELECT 0",
    STORE_BYTES: "SELECT sum(pg_total_relation_size(c.oid))::bigint FROM pg_class c "
                 "WHERE c.relnamespace = current_schema()::regnamespace AND c.relkind = 'r'",
    "SELECT block FROM memories_fts_data WHERE id = 10": "SELECT ''::bytea WHERE false",  # one index of postings, no segments
    "INSERT INTO memories_fts (memories_fts) VALUES ('delete-all')": "DELETE FROM postings; DELETE FROM documents",
    "INSERT INTO memories_fts (memories_fts) VALUES ('optimize')": "SELECT 1",
    ADD_DOCUMENT: "SELECT add_document(?, ?, ?, ?, ?, ?, ?)",
    DROP_DOCUMENT: "SELECT drop_document(?, ?, ?, ?, ?, ?, ?)",
    FREQUENCIES: "SELECT j.key, count(DISTINCT p.doc) FROM json_each(?) j JOIN postings p ON p.term = j.value GROUP BY 1",
    OCCURRENCES:
        f"SELECT * FROM (SELECT j.key, p.doc, sum(p.tf * (ARRAY[{', '.join(f':{c}' for c in TEXT_COLUMNS)}]::float8[])[p.col]) AS f "
        "FROM json_each(:terms) j JOIN postings p ON p.term = j.value GROUP BY 1, 2) AS found WHERE f > 0",
    DOCUMENT_SIZES: "SELECT d.id, varint(d.words) FROM json_each(?) j JOIN documents d ON d.id = j.value",
    "UPDATE sqlite_sequence SET seq = max(seq, ?) WHERE name = ?": "SELECT advance(b, a) FROM (SELECT ?::bigint, ?) AS v (a, b)",
    "INSERT INTO sqlite_sequence (name, seq) VALUES (?, ?)": "SELECT advance(?, ?)",
    "SELECT last_insert_rowid()": "SELECT lastval()",
    NEXT_NUMBERS: "SELECT nextval('memory_numbers') FROM json_each(?) j",
    LAST_VERSION:  # a version of another namespace may be stored later, with a lower number
        "SELECT coalesce(CASE current_setting('rlm.whole') WHEN 'on' THEN (SELECT max(vid) FROM memory_versions) ELSE "
        "(SELECT max(vid) FROM memory_versions WHERE namespace = current_setting('rlm.namespace')) END, 0)",
    NAMESPACE_TABLES:
        "SELECT c.table_name::text FROM information_schema.columns c JOIN information_schema.tables t USING (table_schema, table_name) "
        "WHERE c.table_schema = current_schema() AND c.column_name = 'namespace' AND t.table_type = 'BASE TABLE' "
        "AND c.table_name NOT IN ('pending_scrubs', 'generations', 'moved_namespaces') ORDER BY 1",
    ODD_VECTORS:
        "SELECT m.id FROM meta s JOIN vectors v ON v.model = s.value::jsonb ->> 0 AND (v.dim <> (s.value::jsonb ->> 1)::bigint "
        "OR length(v.vector) <> 2 * v.dim) JOIN memories m ON m.seq = v.seq WHERE s.key = 'vector_model'",
}
_WORDS = (  # part of a statement for SQLite, the same for PostgreSQL
    (COUNTED,
     "SELECT namespace, count(*), sum(words)::bigint FROM (SELECT m.namespace, d.words FROM memories m JOIN documents d ON d.id = m.seq "
     "UNION ALL SELECT v.namespace, d.words FROM memory_versions v JOIN documents d ON d.id = -v.vid) AS sizes GROUP BY namespace"),
    (TAGS_IN_SQLITE, TAGS_OF),
    ("(SELECT json_group_array(t.tag) FROM memory_tags t WHERE t.seq = m.seq)", TAGS_OF),
    ("(SELECT count(*) FROM json_each(:tags) WHERE value IN (SELECT value FROM json_each(m.tags_json)))",
     "cardinality(ARRAY(SELECT jsonb_array_elements_text(:tags::jsonb) INTERSECT SELECT jsonb_array_elements_text(m.tags_json::jsonb)))"),
    (" INDEXED BY memories_pinned", ""),
    ("CROSS JOIN", "JOIN"),
    ("substr(p.text, -:reach)", "right(p.text, :reach)"),
    ("json_remove(detail_json, '$.query')", "(detail_json::jsonb - 'query')::text"),
    ("AS (VALUES (:reply_to) UNION", "AS (VALUES (:reply_to::text COLLATE \"C\") UNION"),
)


def _elements(sql: str) -> str:
    "Lists that are given as JSON, as rows."
    def member(found: re.Match[str]) -> str:
        column, no, given = found[1], found[2] or "", found[3]
        kind = "::bigint" if column in _NUMBERS else ' COLLATE "C"'
        name = found[0].split(" ", 1)[0]
        listed = f"(ARRAY(SELECT jsonb_array_elements_text({given}::jsonb){kind}))"  # an array, so that an index is asked for each
        return f"{name} <> ALL {listed}" if no else f"{name} = ANY {listed}"

    sql = _MEMBER.sub(member, sql)
    kind = "::bigint" if _NUMBERED.search(sql) else ' COLLATE "C"'
    return _ELEMENTS.sub(lambda f: f"(SELECT e.value{kind} AS value, e.place - 1 AS key FROM jsonb_array_elements_text({f[1]}::jsonb) "
                                   "WITH ORDINALITY AS e (value, place)) j", sql)


def _table_info(table: str) -> str:
    "The columns of a table as SQLite describes them: number, name, type, whether it must be there, default, place in the primary key."
    return ("SELECT a.attnum - 1, a.attname::text, CASE format_type(a.atttypid, NULL) WHEN 'bigint' THEN 'INTEGER' "
            "WHEN 'double precision' THEN 'REAL' WHEN 'bytea' THEN 'BLOB' ELSE 'TEXT' END, a.attnotnull::int, NULL, "
            "coalesce(array_position(i.indkey::int2[], a.attnum), 0) FROM pg_attribute a "
            f"LEFT JOIN pg_index i ON i.indrelid = a.attrelid AND i.indisprimary WHERE a.attrelid = to_regclass('{table}') "
            "AND a.attnum > 0 AND NOT a.attisdropped AND a.attname <> 'rowid' ORDER BY a.attnum")


@lru_cache(maxsize=2000)
def translated(sql: str,  # a statement as the tables of a store write it, for SQLite
               ) -> str:  # the same for psycopg, with its placeholders
    "Return a statement in the words of PostgreSQL. The tables write some hundred different ones; each is translated once."
    sql = _STATEMENTS.get(sql, sql)
    if found := _TABLE_INFO.fullmatch(sql):
        sql = _table_info(found[1])
    for old, new in _WORDS:
        sql = sql.replace(old, new)
    sql = _FIELD.sub(r"(\1::jsonb ->> '\2')", _elements(sql))
    parts = [part.replace("%", "%%") for part in _STRING.split(sql)]
    parts[::2] = [_NAMED.sub(r"%(\1)s", _PLUS.sub("", part)).replace("?", "%s") for part in parts[::2]]
    return "".join(parts)
