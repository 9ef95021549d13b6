import asyncio

from google.adk.events import Event
from google.adk.sessions import InMemorySessionService
from google.genai.types import Content, Part

from rlm import Memory
from rlm.adapters.google_adk import AdkMemoryService


async def main() -> None:
    sessions = InMemorySessionService()
    with Memory("agent.db", namespace="adk") as memory:
        service = AdkMemoryService(memory)  # Runner(agent=…, session_service=sessions, memory_service=service)
        session = await sessions.create_session(app_name="house", user_id="mina")
        said = Content(role="user", parts=[Part(text="Yuna Park services the boiler.")])
        await sessions.append_event(session, Event(author="user", content=said))
        await service.add_session_to_memory(session)
        found = await service.search_memory(app_name="house", user_id="mina", query="who services the boiler?")
        print(found.memories[0].content.parts[0].text)
        print((await service.search_memory(app_name="house", user_id="jun", query="boiler")).memories)  # another user's: nothing
asyncio.run(main())
