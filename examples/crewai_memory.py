from crewai.llms.base_llm import BaseLLM
from crewai.memory.unified_memory import Memory as CrewMemory

from rlm import Memory
from rlm.adapters.crewai_storage import CrewAIStorage


class Quiet(BaseLLM):
    def call(self, messages, **more):
        return "{}"


def embed(texts):  # your embedder; without one, CrewAI asks OpenAI's
    return [[float(text.lower().count(word)) for word in ("boiler", "harbour")] + [0.1] for text in texts]


about = {"scope": "/house", "categories": ["repairs"], "importance": 0.5, "metadata": {}}  # what is said, no model has to find out
with Memory("agent.db", namespace="crew") as memory:
    crew = CrewMemory(storage=CrewAIStorage(memory), embedder=embed, llm=Quiet(model="quiet"))
    crew.remember("Yuna Park services the boiler.", **about)
    crew.remember("The harbour closes at five.", **about)
    print(crew.recall("boiler", depth="shallow", limit=1)[0].record.content)
    crew.close()
