"""A graph of ten steps: stop it with Ctrl-C or kill it, start it again, and it goes on."""

# [start:all]
import time
from typing import TypedDict

from langchain_core.runnables import RunnableConfig
from langgraph.graph import START, StateGraph

from runmemory_langgraph import RunMemorySaver


class State(TypedDict):
    """What one step hands to the next."""

    pages: int


def read_page(state: State) -> State:
    print("reading page", state["pages"] + 1)
    time.sleep(0.2)  # your work
    return {"pages": state["pages"] + 1}


builder = StateGraph(State).add_sequence([(f"page {n}", read_page) for n in range(1, 11)])
builder.add_edge(START, "page 1")

graph = builder.compile(checkpointer=RunMemorySaver())  # the one change to an existing graph
thread: RunnableConfig = {"configurable": {"thread_id": "read-pages"}}

if graph.get_state(thread).tasks:  # an earlier run did not finish: None goes on after its last step
    result = graph.invoke(None, thread, durability="sync")
else:
    result = graph.invoke({"pages": 0}, thread, durability="sync")
print(result)
# [end:all]
