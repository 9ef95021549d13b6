"""Statements of the store's tables, which are written once, in the words of PostgreSQL."""

import re
from functools import lru_cache

from ..protocols import TEXT_COLUMNS
from .schema import PRIMARY_KEYS, TAGS_OF

_NUMBERS = {"seq", "vid", "src", "dst", "docid", "recall", "anchor", "ended_by"}  # columns of numbers
_LIST = r"\(SELECT value FROM json_each\((\S+?)\)\)"
_MEMBER = re.compile(rf"(?<![\w.])(?:\w+\.)?(\w+) (NOT )?IN {_LIST}")
_ELEMENTS = re.compile(r"json_each\((:\w+|\?|\w+\.\w+)\)(?: j\b)?")
_STRING = re.compile(r"('(?:[^']|'')*')")
_NAMED = re.compile(r"(?<![:\w]):([A-Za-z_]\w*)")
_PLUS = re.compile(r"(?<=[\s(])\+(?=[a-z])")
_NUMBERED = re.compile(r"(?:seq|vid|src|dst|d\.id) = -?j\.value")

_EXACT = {  # statements of SQLite's own words: what PostgreSQL is asked instead; None: nothing, there is no such thing
    "PRAGMA foreign_key_check": "SELECT 1 WHERE false",  # PostgreSQL never lets a reference dangle
    "PRAGMA integrity_check(10)": "SELECT 'ok'",  # pages are the server's business (`amcheck`, data checksums)
    "VACUUM": "VACUUM memories, memory_versions, memory_tags, postings, documents, vectors, edges, facts, slots, slot_refs, events, "
              "trajectories, judgments, recalls, recalled, thread_checkpoints, thread_writes",
    "PRAGMA wal_checkpoint(TRUNCATE)": "SELECT 0",
    "SELECT page_count * page_size FROM pragma_page_count(), pragma_page_size()":
        "SELECT sum(pg_total_relation_size(c.oid))::bigint FROM pg_class c WHERE c.relnamespace = current_schema()::regnamespace "
        "AND c.relkind = 'r'",
    "SELECT block FROM memories_fts_data WHERE id = 10": "SELECT ''::bytea WHERE false",  # one index of postings, no segments
    "INSERT INTO memories_fts (memories_fts) VALUES ('delete-all')": "DELETE FROM postings; DELETE FROM documents",
    "INSERT INTO memories_fts (memories_fts) VALUES ('optimize')": "SELECT 1",
    "UPDATE sqlite_sequence SET seq = max(seq, ?) WHERE name = ?": "SELECT advance(b, a) FROM (SELECT ?::bigint, ?) AS v (a, b)",
    "INSERT INTO sqlite_sequence (name, seq) VALUES (?, ?)": "SELECT advance(?, ?)",
    "INSERT OR REPLACE INTO meta VALUES ('tokeniser', ?)":
        "INSERT INTO meta VALUES ('tokeniser', ?) ON CONFLICT (key) DO UPDATE SET value = excluded.value",
    "SELECT doc, col, offset, term FROM memories_instances": 'SELECT doc, col, "offset", term FROM memories_instances',
    "SELECT last_insert_rowid()": "SELECT lastval()",
    "SELECT coalesce((SELECT seq FROM sqlite_sequence WHERE name = 'memories'), 0) + j.value FROM json_each(?) j":
        "SELECT nextval('memory_numbers') FROM json_each(?) j",
    "SELECT coalesce(max(vid), 0) FROM memory_versions":  # a version of another namespace may be stored later, with a lower number
        "SELECT coalesce(CASE current_setting('rlm.whole') WHEN 'on' THEN (SELECT max(vid) FROM memory_versions) ELSE "
        "(SELECT max(vid) FROM memory_versions WHERE namespace = current_setting('rlm.namespace')) END, 0)",
}
_BEGINNINGS = {  # the beginning of a statement: all that PostgreSQL is asked instead
    "INSERT INTO memories_fts (rowid, ": "SELECT add_document(?, ?, ?, ?, ?, ?, ?)",
    "INSERT INTO memories_fts (memories_fts, rowid, ": "SELECT drop_document(?, ?, ?, ?, ?, ?, ?)",
    "SELECT j.key, t.doc FROM json_each(?) j JOIN memories_terms":
        "SELECT j.key, count(DISTINCT p.doc) FROM json_each(?) j JOIN postings p ON p.term = j.value GROUP BY 1",
    "SELECT j.key, i.doc, sum(CASE i.col":
        f"SELECT * FROM (SELECT j.key, p.doc, sum(p.tf * (ARRAY[{', '.join(f':{c}' for c in TEXT_COLUMNS)}]::float8[])[p.col]) AS f "
        "FROM json_each(:terms) j JOIN postings p ON p.term = j.value GROUP BY 1, 2) AS found WHERE f > 0",
    "SELECT d.id, d.sz FROM json_each(?) j": "SELECT d.id, varint(d.words) FROM json_each(?) j JOIN documents d ON d.id = j.value",
    "SELECT t.name FROM sqlite_master t JOIN pragma_table_info(t.name)":
        "SELECT c.table_name::text FROM information_schema.columns c JOIN information_schema.tables t USING (table_schema, table_name) "
        "WHERE c.table_schema = current_schema() AND c.column_name = 'namespace' AND t.table_type = 'BASE TABLE' "
        "AND c.table_name NOT IN ('pending_scrubs', 'generations', 'moved_namespaces') ORDER BY 1",
    "WITH RECURSIVE sizes (namespace, bytes)":
        "SELECT namespace, count(*), sum(words)::bigint FROM (SELECT m.namespace, d.words FROM memories m JOIN documents d ON d.id = m.seq "
        "UNION ALL SELECT v.namespace, d.words FROM memory_versions v JOIN documents d ON d.id = -v.vid) AS sizes GROUP BY namespace",
    "SELECT m.id FROM meta s JOIN vectors v ON v.model = json_extract":
        "SELECT m.id FROM meta s JOIN vectors v ON v.model = s.value::jsonb ->> 0 AND (v.dim <> (s.value::jsonb ->> 1)::bigint "
        "OR length(v.vector) <> 2 * v.dim) JOIN memories m ON m.seq = v.seq WHERE s.key = 'vector_model'",
}
_WORDS = (  # what is spelled otherwise inside statements
    ("(SELECT json_group_array(tag) FROM (SELECT tag FROM memory_tags t WHERE t.seq = m.seq ORDER BY tag))", TAGS_OF),
    ("(SELECT json_group_array(t.tag) FROM memory_tags t WHERE t.seq = m.seq)", TAGS_OF),
    ("(SELECT count(*) FROM json_each(:tags) WHERE value IN (SELECT value FROM json_each(m.tags_json)))",
     "cardinality(ARRAY(SELECT jsonb_array_elements_text(:tags::jsonb) INTERSECT SELECT jsonb_array_elements_text(m.tags_json::jsonb)))"),
    (" INDEXED BY memories_pinned", ""),
    ("substr(p.text, -:reach)", "right(p.text, :reach)"), ("substr(n.text, 1, :reach)", "left(n.text, :reach)"),
    ("max(coalesce(last_used_at, ''), ?)", "greatest(coalesce(last_used_at, ''), ?)"),
    ("iif(edges.origin LIKE '%write%' AND excluded.origin NOT LIKE '%write%', '+write', '')",
     "CASE WHEN edges.origin LIKE '%write%' AND excluded.origin NOT LIKE '%write%' THEN '+write' ELSE '' END"),
    ("SET documents = documents + excluded.documents, tokens = tokens +",
     "SET documents = namespace_statistics.documents + excluded.documents, tokens = namespace_statistics.tokens +"),
    ("json_remove(detail_json, '$.query')", "(detail_json::jsonb - 'query')::text"),
    ("json_extract(detail_json, '$.query')", "(detail_json::jsonb ->> 'query')"),
    ("json_extract(detail_json, '$.success')", "(detail_json::jsonb ->> 'success')::bigint"),
    ("json_extract(detail_json, '$.failure')", "(detail_json::jsonb ->> 'failure')::bigint"),
    ("AS (VALUES (:reply_to) UNION", "AS (VALUES (:reply_to::text COLLATE \"C\") UNION"),
    (" IN ()", " IN (SELECT 0 WHERE false)"),
    ("LIMIT ?", "LIMIT nullif(?, -1)"), ("LIMIT :limit", "LIMIT nullif(:limit, -1)"),
)
_TABLE_INFO = re.compile(r"PRAGMA table_info\((\w+)\)")
_COUNTED_ROWS = re.compile(r"FROM (\(SELECT 1 .*\))$", re.DOTALL)
_UPSERT = re.compile(r"(?s)^(INSERT INTO (\w+) .*ON CONFLICT) DO UPDATE")


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
    sql = _EXACT.get(sql, sql)
    for start, other in _BEGINNINGS.items():
        if sql.lstrip().startswith(start):
            sql = other
        elif (at := sql.find(start)) > 0 and sql.startswith("INSERT INTO namespace_statistics"):
            sql = sql[:at] + other
    if found := _TABLE_INFO.fullmatch(sql):
        sql = _table_info(found[1])
    for old, new in _WORDS:
        sql = sql.replace(old, new)
    sql = _elements(sql).replace("CROSS JOIN", "JOIN")
    sql = _COUNTED_ROWS.sub(r"FROM \1 AS counted", sql)
    if upsert := _UPSERT.match(sql):
        sql = f"{upsert[1]} ({PRIMARY_KEYS[upsert[2]]}) DO UPDATE{sql[upsert.end():]}"
    parts = [part.replace("%", "%%") for part in _STRING.split(sql)]
    parts[::2] = [_NAMED.sub(r"%(\1)s", _PLUS.sub("", part)).replace("?", "%s") for part in parts[::2]]
    return "".join(parts)
