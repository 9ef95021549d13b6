from typing import TypedDict

from langgraph.graph import StateGraph
from langgraph.store.base import BaseStore

from rlm import Memory
from rlm.adapters.langgraph import LangGraphStore


class State(TypedDict):
    said: str
    answer: str


def remember(state: State, *, store: BaseStore) -> dict:
    store.put(("mina", "facts"), state["said"][:20], {"text": state["said"]})
    return {"answer": store.search(("mina",), query="who services the boiler?")[0].value["text"]}


with Memory("agent.db", namespace="langgraph") as memory:
    graph = StateGraph(State).add_node("remember", remember).set_entry_point("remember").compile(store=LangGraphStore(memory))
    print(graph.invoke({"said": "Yuna Park services the boiler.", "answer": ""})["answer"])
