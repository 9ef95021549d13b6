"""The constructors and calls of the design documents, as they print them, on the parts of an open memory: nothing is made twice."""
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rlm.core.errors import InvalidInput
from rlm.recall.attention_state import AnswerCache
from rlm.recall.coordinator import SearchCoordinator, SlotSearch
from rlm.service.memory import Memory
from rlm.service.results import SearchResults
from rlm.store.storage import SQLStorage

__all__ = ["CheckpointManager", "LocalizedSearchEngine", "PhaseThreeSearchCoordinator", "search", "write"]


def _together(*parts: tuple[object, object]) -> None:
    "Raise `InvalidInput` unless each part is the one of the memory."
    if any(given is not own for given, own in parts):
        raise InvalidInput("These parts are not of one memory.", "Pass the parts of one open `Memory`.")


def CheckpointManager(db_manager: SQLStorage,  # `memory.backend`
                      block_manager: Memory,   # an open memory
                      ) -> SlotSearch:
    "Return the checkpoints of a memory: `memory.attention.slots`. Raises `InvalidInput` where the parts are of two memories."
    _together((db_manager, block_manager.backend))
    return block_manager.attention.slots


def LocalizedSearchEngine(checkpoint_manager: SlotSearch,  # checkpoints of the memory
                          block_manager: Memory,           # an open memory
                          ) -> SlotSearch:
    "Return the search around checkpoints: `memory.attention.slots`. Raises `InvalidInput` where the parts are of two memories."
    _together((checkpoint_manager, block_manager.attention.slots))
    return checkpoint_manager


def PhaseThreeSearchCoordinator(hybrid_stm: SearchCoordinator,   # `memory.attention`, which holds working memory
                                cache_manager: AnswerCache,      # `memory.attention.state.cache`
                                checkpoint_manager: SlotSearch,  # checkpoints of the memory
                                localized_engine: SlotSearch,    # search around them
                                ) -> SearchCoordinator:
    "Return the coordinator of the layers: `memory.attention`. Raises `InvalidInput` where the parts are of two memories."
    _together((cache_manager, hybrid_stm.state.cache), (checkpoint_manager, hybrid_stm.slots), (localized_engine, hybrid_stm.slots))
    return hybrid_stm


def search(query: str,  # words in any language
           *,
           slot: str | None = None,    # A, B, C or auto; None: everything is searched
           radius: int | None = None,  # links to walk from the anchor; None: by use
           fallback: bool = True,      # ask the index where the neighbourhood is not enough
           top_k: int = 8,             # largest number of memories
           path: str | Path | None = None,  # store; None: the setting db_path
           ) -> SearchResults:
    "Search a store that is opened for this call: `Memory.search` with `top_k` of 8. Raises `InvalidInput`."
    with Memory(path) as memory:
        return memory.search(query, top_k, slot=slot, radius=radius, fallback=fallback)


def write(text: str,  # content of the memory
          *,
          slot: str | None = None,  # A, B, C or auto; None: near no anchor
          policy: Mapping[str, Any] | str | None = None,  # link policy, such as link_k=8,min_w=.35
          path: str | Path | None = None,  # store; None: the setting db_path
          ) -> str:
    "Store a text in a store that is opened for this call, and return its id: that of the record `Memory.write` returns."
    with Memory(path) as memory:
        return memory.write(text, slot=slot, policy=policy).id
