"""A LlamaIndex memory block over a `Memory`: what leaves the short-term memory is kept, and what answers the last question comes back.

Needs `llama-index-core`. The memory may be one behind a server.
"""

from typing import Any

from rlm.core.errors import need

need("llama_index.core", "The block for LlamaIndex", "llama_index")

from llama_index.core.base.llms.types import ChatMessage
from llama_index.core.memory import BaseMemoryBlock

from rlm.adapters.pages import check_memory
from rlm.companion.composer import without_block
from rlm.core.text import is_blank

ROLES = ("user", "assistant")  # speakers whose words are kept; calls of tools and their answers are not


class RecallBlock(BaseMemoryBlock[str]):
    "A block of memories that answer the last question: `Memory.from_defaults(memory_blocks=[RecallBlock(memory=memory)])`."

    name: str = "long_term_memory"
    memory: Any  # an open `rlm.Memory`
    tokens: int = 512  # most tokens of the block; it keeps to it by itself

    def model_post_init(self,
                        context: Any,  # pydantic's own; not used
                        /) -> None:
        "Look at the memory that was given. Raises `InvalidInput`."
        check_memory(self.memory, remote=True)

    async def _aget(self, messages: list[ChatMessage] | None = None, **block_kwargs: Any) -> str:
        said = [m.content for m in messages or () if m.role.value == "user" and not is_blank(m.content or "")]
        return (await self.memory.acontext(said[-1], self.tokens)).text if said else ""

    async def _aput(self, messages: list[ChatMessage]) -> None:
        sessions = dict[str | None, list[dict[str, Any]]]()
        for m in messages:
            if m.role.value in ROLES and (words := without_block(m.content or "")):
                sessions.setdefault(m.additional_kwargs.get("session_id"), []).append({"text": words, "role": m.role.value})
        for session, turns in sessions.items():
            await self.memory.aadd_conversation(turns, session, history=True)
