"""A context provider of Microsoft's Agent Framework over a `Memory`: memories before a run, what was said after it.

Needs `agent-framework-core`. The memory may be one behind a server.
"""

from typing import Any

from rlm.core.errors import need

need("agent_framework", "The provider for Agent Framework", "agent_framework")

from agent_framework import ContextProvider, Message

from rlm.adapters.pages import check_memory
from rlm.companion.composer import without_block
from rlm.core.text import is_blank
from rlm.service.memory import Memory

ROLES = ("user", "assistant")  # speakers whose words are kept; calls of tools and their answers are not


class RecallProvider(ContextProvider):
    "Memories for an agent: `Agent(client, context_providers=[RecallProvider(memory)])`."

    def __init__(self,
                 memory: Memory,          # an open namespace
                 tokens: int = 512,       # most tokens of the block of memories
                 source_id: str = "rlm",  # name of the provider
                 ) -> None:
        super().__init__(source_id)
        check_memory(memory, remote=True)
        self.memory, self.tokens = memory, tokens

    async def before_run(self,
                         *,
                         agent: Any,    # agent that runs; not used
                         session: Any,  # its session; not used
                         context: Any,  # context of the run; the block is added to it
                         state: Any,    # state of the provider; not used
                         ) -> None:
        "Add the memories that answer what was said last, as data in a message."
        said = [m.text for m in context.input_messages if str(m.role) == "user" and not is_blank(m.text)]
        if said and (block := await self.memory.acontext(said[-1], self.tokens)).text:
            context.extend_messages(self, [Message("user", [block.text])])

    async def after_run(self,
                        *,
                        agent: Any,    # agent that ran; not used
                        session: Any,  # its session, of which the conversation has its name
                        context: Any,  # words that were said
                        state: Any,    # state of the provider; not used
                        ) -> None:
        "Keep what was said and answered; of a history that is handed over again, what is new."
        said = [*context.input_messages, *(context.response.messages if context.response else ())]
        turns = [{"text": words, "role": str(m.role)} for m in said if str(m.role) in ROLES and (words := without_block(m.text))]
        if turns:
            await self.memory.aadd_conversation(turns, context.session_id, history=True)
