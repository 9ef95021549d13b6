"CrewAI's unified memory over a Memory: records come back as they were, are found, corrected, erased, and stay inside their scope."
import asyncio
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("crewai.memory.storage.backend", reason="needs crewai: make crewai")

from crewai.llms.base_llm import BaseLLM
from crewai.memory.storage.backend import EmbeddingDimensionMismatchError, StorageBackend
from crewai.memory.types import MemoryRecord
from crewai.memory.unified_memory import Memory as CrewMemory

from rlm import Memory
from rlm.adapters.crewai_storage import CrewAIStorage


class Silent(BaseLLM):
    "A model that is not asked: all that it would find out is said."

    def call(self, *args: Any, **more: Any) -> str:
        raise AssertionError("nothing is asked")


WORDS = ("boiler", "harbour", "peanut", "땅콩")


def embed(texts: list[str]) -> list[list[float]]:
    "Count words: enough to tell these texts apart."
    return [[float(text.lower().count(word)) for word in WORDS] + [0.1] for text in texts]


def record(id: str, content: str, scope: str = "/", **more: Any) -> MemoryRecord:
    return MemoryRecord(id=id, content=content, scope=scope, embedding=embed([content])[0], created_at=datetime(2026, 1, 2), **more)


def test_records_come_back_and_keep_to_their_scope(tmp_path: Path) -> None:
    with Memory(tmp_path / "crew.db", embedder="none") as memory:
        storage = CrewAIStorage(memory)
        assert isinstance(storage, StorageBackend) and storage.search(embed(["boiler"])[0]) == []
        storage.save([record("a", "Yuna services the boiler.", "/crew/house", categories=["repairs"], metadata={"n": 1}, importance=.9),
                      record("b", "The harbour closes at five.", "/crew/town"),
                      record("c", "땅콩 알레르기가 있어요", "/crewless", private=True)])
        memory.write("A memory of somebody else about the boiler.")
        found = storage.search(embed(["Who services the boiler?"])[0], limit=2)
        assert found[0][0].model_dump() == storage.get_record("a").model_dump() and found[0][1] > .9 > found[1][1]
        assert (found[0][0].categories, found[0][0].metadata, found[0][0].importance) == (["repairs"], {"n": 1}, .9)
        assert found[0][0].created_at == datetime(2026, 1, 2)
        assert storage.count() == 3 and storage.count("/crew") == 2 and storage.list_scopes("/") == ["/crew", "/crewless"]
        assert storage.list_scopes("/crew") == ["/crew/house", "/crew/town"] and storage.list_categories() == {"repairs": 1}
        info = storage.get_scope_info("/crew")
        assert (info.record_count, info.child_scopes, info.categories) == (2, ["/crew/house", "/crew/town"], ["repairs"])
        assert [r.id for r, _ in storage.search(embed(["boiler"])[0], metadata_filter={"n": 1}, categories=["repairs"])] == ["a"]
        storage.update(record("a", "Yuna repairs the boiler.", "/crew/house"))
        assert storage.get_record("a").content == "Yuna repairs the boiler." and storage.count() == 3
        assert memory.search("누가 땅콩?", 1)[0].id == "c"  # and by words, for everybody else
        with pytest.raises(EmbeddingDimensionMismatchError):
            storage.search([1.0, 2.0])
        assert asyncio.run(storage.adelete(scope_prefix="/crew", record_ids=["b", "c"])) == 1 and storage.get_record("b") is None
        storage.reset()
        assert storage.count() == 0 and len(memory.list()) == 1


def test_crewais_memory_remembers_over_a_restart(tmp_path: Path) -> None:
    about: Any = {"scope": "/crew", "categories": ["repairs"], "importance": .5, "metadata": {}}
    with Memory(tmp_path / "crew.db", embedder="none") as memory:
        crew = CrewMemory(storage=CrewAIStorage(memory), embedder=embed, llm=Silent(model="silent"))
        crew.remember("Yuna services the boiler.", **about)
        crew.remember("The harbour closes at five.", **about)
        crew.close()
    with Memory(tmp_path / "crew.db", embedder="none") as memory:
        crew = CrewMemory(storage=CrewAIStorage(memory), embedder=embed, llm=Silent(model="silent"))
        assert crew.recall("boiler", depth="shallow", limit=1)[0].record.content == "Yuna services the boiler."
        crew.close()
