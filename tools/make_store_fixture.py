"""Make tests/data/store_vN.db.gz: a small store with a bit of everything, as this version of rlm writes it.

Run it once for every schema version, before a release. A file of an older version is never made again: it is what people
have on their disks, and the tests open every one of them with today's code."""
import gzip
import tempfile
from pathlib import Path

from rlm import Memory
from rlm.core.clock import ManualClock
from rlm.store.records import Edge
from rlm.store.sqlite.schema import SCHEMA_VERSION
from tree import ROOT

FOLDER = ROOT / "tests" / "data"
FOUND = {  # query → the memory that must come first, in every version
    "dentist appointment": "dentist", "치과는 언제 가?": "치과", "what does Mina drink": "tea", "고양이 이름": "cat",
    "where is the key": "t1", "black tea": "tea", "tired": "rest",
}
REST = """
INSERT INTO triples VALUES (1, 'Mina', 'drinks', 'tea', 0), (2, 'Mina', 'likes', '커피', 1);
INSERT INTO facts VALUES (2, 5, 'default', 'Mina', 'drinks', 'tea', 'mina', 'drinks', 'tea', 0, 0, 0, 1, '2026-01-01', NULL, NULL);
INSERT INTO vectors VALUES (1, 'e5', 0, 3, x'00ff10');
INSERT INTO slots VALUES ('default', 'A', 'anchor', 2, 'now', 'h', NULL, 'e5', x'0102', 3, 1, 5, '2026-01-01T00:00:00.000000Z', NULL, '{}');
INSERT INTO slot_refs VALUES ('default', 'A', 1, 0.5, 0.25, '2026-01-01T00:00:00.000000Z', '2026-01-01T00:00:00.000000Z');
INSERT INTO runs VALUES ('r1', 'default', '2026-01-01T00:00:00.000000Z', 'habit', 'prov', 'prov.ttl', NULL);
INSERT INTO trajectories VALUES ('j1', 'r1', 'q', 'a', 3, 1, '[]', NULL, 'c', 'k', '2026-01-01T00:00:00.000000Z');
INSERT INTO judgments VALUES ('j1', NULL, 'cannot say', 'low', '[]');
INSERT INTO memory_usage VALUES ('j1', 'tea', 1, 0.5);
INSERT INTO snapshots VALUES ('s1', 'default', 'reranker', '2026-01-01T00:00:00.000000Z', '{}', x'deadbeef');
"""


def fill(path: Path,  # path of a new store
         ) -> None:
    "Write the memories."
    clock = ManualClock("2026-01-01")
    with Memory(path, embedder="none", clock=clock) as memory, Memory(path, embedder="none", namespace="team", clock=clock) as team:
        memory.write("Mina drinks green tea", id="tea", tags=["drink", "선호"], extra={"n": 1.5}, confidence=0.5)
        memory.write("다음 주 화요일에 치과 예약이 있어", id="치과", valid_from="2026-01-06")
        memory.write("The dentist appointment is on Tuesday", id="dentist", category="health", session="day", role="user")
        memory.write("고양이 이름은 나비", id="cat", title="반려동물", summary="나비", pinned=True)
        memory.write("When tired, rest", kind="rule", id="rest", formal="when tired then rest", status="ltm", success=7, failure=1)
        memory.write("1. search_entity 2. describe_entity", kind="strategy", title="Find a class", source_type="human",
                     scope={"ontology": None, "tools": ["search_entity"]}, provenance={"task_query": "What is Activity?"})
        memory.add_conversation([{"id": "t0", "speaker": "A", "text": "Where is the key?"},
                                 {"id": "t1", "speaker": "B", "text": "Under the mat.", "reply_to": 0}], session="keys")
        memory.write_many([{"text": "said and deleted", "id": "gone"}, {"text": "secret", "id": "erased"}])
        team.write("A plum that belongs to the team", id="tea", tags=["team"])
        clock.advance(days=1)
        memory.update("tea", text="Mina drinks black tea", tags=["drink"])
        memory.update("dentist", status="archived")
        memory.update("dentist", status="hot")
        with memory.backend.transaction() as tx:  # as the first version linked and counted: without a word in the diary
            tx.link([Edge("tea", "cat", "similar", 0.25)], memory.ctx.namespace, clock.now())
            tx.count("tea", memory.ctx.namespace, clock.now(), access=1, success=1, failure=0)
        memory.delete("gone")
        memory.delete("erased", erase=True)
        with memory.backend.db.transaction():
            for line in REST.strip().splitlines():
                memory.backend.db.query(line)


def make(target: Path,  # the file to write
         ) -> None:
    "Fill a store and compress it."
    with tempfile.TemporaryDirectory() as folder:
        fill(Path(folder) / "store.db")
        with Memory(Path(folder) / "store.db") as memory:
            memory.backend.db.query("UPDATE meta SET value = '0123456789abcdef0123456789abcdef' WHERE key = 'database_id'")
            memory.backend.backup(Path(folder) / "copy.db")
        with gzip.GzipFile(target, "wb", mtime=0) as packed:
            packed.write((Path(folder) / "copy.db").read_bytes())
    print(f"{target.relative_to(ROOT)}: {target.stat().st_size:,} bytes")


if __name__ == "__main__":
    make(FOLDER / f"store_v{SCHEMA_VERSION}.db.gz")
