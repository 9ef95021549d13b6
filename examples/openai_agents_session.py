import asyncio

from rlm import Memory
from rlm.adapters.sessions import AgentSession


async def main() -> None:
    with Memory("agent.db", namespace="chats") as memory:
        session = AgentSession("chat-7", memory)  # Runner.run(agent, "…", session=session)
        await session.add_items([{"role": "user", "content": "My boiler is serviced by Yuna Park."}])
        print(await session.get_items(limit=10))
        print(memory.search("who services the boiler?")[0].text)  # also in another session
asyncio.run(main())
