import asyncio

from llama_index.core.llms import ChatMessage
from llama_index.core.memory import Memory as Chat

from rlm import Memory
from rlm.adapters.llama_index import RecallBlock


async def main() -> None:
    with Memory("agent.db", namespace="llama") as memory:
        long_ago = Chat.from_defaults(session_id="monday", memory_blocks=[RecallBlock(memory=memory)], token_limit=20, token_flush_size=10)
        for said in ("Yuna Park services the boiler.", "The harbour closes at five.", "It rains a lot these days, and the roof holds."):
            await long_ago.aput_messages([ChatMessage(role="user", content=said), ChatMessage(role="assistant", content="Noted.")])
        chat = Chat.from_defaults(session_id="friday", memory_blocks=[RecallBlock(memory=memory)])
        await chat.aput(ChatMessage(role="user", content="Who services the boiler?"))
        print(*(await chat.aget()), sep="\n---\n")  # what an agent's model is given: Agent.run(…, memory=chat)
asyncio.run(main())
