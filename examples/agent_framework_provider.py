import asyncio

from agent_framework import Agent, BaseChatClient, ChatResponse, Message

from rlm import Memory
from rlm.adapters.agent_framework import RecallProvider


class Scripted(BaseChatClient):
    async def _inner_get_response(self, *, messages, stream, options, **more):
        print(*(m.text for m in messages), sep="\n")  # what a model would be given
        return ChatResponse(messages=[Message("assistant", ["Noted."])])


async def main() -> None:
    with Memory("agent.db", namespace="maf") as memory:
        agent = Agent(Scripted(), context_providers=[RecallProvider(memory)])
        await agent.run("Yuna Park services the boiler.", session=agent.create_session())
        await agent.run("Who services the boiler?", session=agent.create_session())
asyncio.run(main())
