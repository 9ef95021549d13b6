from typing import TypedDict

from langgraph.graph import StateGraph

from rlm import Memory
from rlm.adapters.langgraph_checkpoints import LangGraphCheckpointer


class State(TypedDict):
    said: str
    heard: list


def listen(state: State) -> dict:
    return {"heard": [*state.get("heard", []), state["said"]]}


for said in ("Yuna Park services the boiler.", "The harbour closes at five."):  # two runs of a program
    with Memory("agent.db", namespace="mina") as memory:
        threads = LangGraphCheckpointer(memory)
        graph = StateGraph(State).add_node("listen", listen).set_entry_point("listen").compile(checkpointer=threads)
        print(graph.invoke({"said": said}, {"configurable": {"thread_id": "repairs"}})["heard"])
