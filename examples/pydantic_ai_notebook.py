from pydantic_ai import Agent
from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.function import FunctionModel
from pydantic_ai_harness import Memory as Notebook

from rlm import Memory
from rlm.adapters.pydantic_ai import NotebookStore


def scripted(messages, info):  # a model that writes a note first
    if len(messages) == 1:
        return ModelResponse([ToolCallPart("write_memory", {"content": "Yuna Park services the boiler."})])
    return ModelResponse([TextPart(messages[-1].parts[0].model_response_str())])


with Memory("agent.db", namespace="pydantic") as memory:
    agent = Agent(FunctionModel(scripted), capabilities=[Notebook(NotebookStore(memory))])
    print(agent.run_sync("Remember that Yuna Park services the boiler.").output)
    print(memory.search("who services the boiler?")[0].text)
