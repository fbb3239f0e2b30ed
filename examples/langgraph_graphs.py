"""Six kinds of graphs on one checkpointer. Run it twice: each thread goes on where it is, so nothing runs again.

python examples/langgraph_graphs.py [tools|fan-out|approval|subgraphs|functional|time-travel …]
"""

import operator
import sys
from collections.abc import Callable
from typing import Annotated, Any, TypedDict

from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, ToolMessage
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.func import entrypoint, task
from langgraph.graph import END, START, StateGraph
from langgraph.graph.message import add_messages
from langgraph.types import Command, Durability, Send, interrupt

from runmemory_langgraph import RunMemorySaver

Tell = Callable[[str], None]
"""Called with a name whenever a node has done its work."""


def config_of(thread: str) -> Any:
    return {"configurable": {"thread_id": thread}}


# --- a model that calls tools until it knows enough -----------------------------------------------------


class Chat(TypedDict):
    """A growing chat."""

    messages: Annotated[list[AnyMessage], add_messages]


def scripted_model(messages: list[AnyMessage]) -> AIMessage:
    """What a model would answer: three times a question to a tool, then the sum."""
    known = [int(str(message.content)) for message in messages if isinstance(message, ToolMessage)]
    number = len(known)
    if number == 3:
        return AIMessage(f"the sum is {sum(known)}", id=f"ai-{number}")
    call = {"name": "square", "args": {"n": number + 2}, "id": f"call-{number}"}
    return AIMessage("", id=f"ai-{number}", tool_calls=[call])


def tools(saver: BaseCheckpointSaver[Any], tell: Tell) -> Any:
    def model(state: Chat) -> dict[str, Any]:
        answer = scripted_model(state["messages"])
        tell(f"model {answer.id}")
        return {"messages": [answer]}

    def square(state: Chat) -> dict[str, Any]:
        (call,) = getattr(state["messages"][-1], "tool_calls", [])
        tell(f"tool {call['id']}")
        answer = ToolMessage(str(call["args"]["n"] ** 2), tool_call_id=call["id"], id=f"result-{call['id']}")
        return {"messages": [answer]}

    def asks(state: Chat) -> str:
        return "square" if getattr(state["messages"][-1], "tool_calls", None) else END

    builder = StateGraph(Chat)
    builder.add_node("model", model)
    builder.add_node("square", square)
    builder.add_edge(START, "model")
    builder.add_conditional_edges("model", asks)
    builder.add_edge("square", "model")
    return builder.compile(checkpointer=saver)


# --- many branches at once, collected at the end --------------------------------------------------------


class Orders(TypedDict):
    """Orders to price."""

    orders: list[int]
    prices: Annotated[list[int], operator.add]
    total: int


def fan_out(saver: BaseCheckpointSaver[Any], tell: Tell) -> Any:
    def spread(state: Orders) -> list[Send]:
        return [Send("price", {"order": order}) for order in state["orders"]]

    def price(given: Any) -> dict[str, Any]:
        tell(f"price {given['order']}")
        return {"prices": [given["order"] * 10]}

    def add(state: Orders) -> dict[str, Any]:
        tell("add")
        return {"total": sum(state["prices"])}

    builder: Any = StateGraph(Orders)
    builder.add_node("price", price)
    builder.add_node("add", add)
    builder.add_conditional_edges(START, spread, ["price"])
    builder.add_edge("price", "add")
    return builder.compile(checkpointer=saver)


# --- a person decides -----------------------------------------------------------------------------------


class Payment(TypedDict):
    """An amount, and what became of it."""

    amount: int
    log: Annotated[list[str], operator.add]


def approval(saver: BaseCheckpointSaver[Any], tell: Tell) -> Any:
    def prepare(state: Payment) -> dict[str, Any]:
        tell("prepare")
        return {"log": [f"prepared {state['amount']}"]}

    def ask(state: Payment) -> dict[str, Any]:
        answer = interrupt({"question": f"pay {state['amount']}?"})
        tell("answered")
        return {"log": [f"a person said {answer}"]}

    def pay(state: Payment) -> dict[str, Any]:
        tell("pay")
        return {"log": [f"paid {state['amount']}"]}

    builder = StateGraph(Payment)
    for before, name, node in ((START, "prepare", prepare), ("prepare", "ask", ask), ("ask", "pay", pay)):
        builder.add_node(name, node)
        builder.add_edge(before, name)
    return builder.compile(checkpointer=saver)


# --- a graph inside a graph -----------------------------------------------------------------------------


class Text(TypedDict):
    """What each node noted."""

    log: Annotated[list[str], operator.add]


def _step(name: str, tell: Tell) -> Any:
    def node(state: Text) -> dict[str, Any]:
        tell(name)
        return {"log": [f"{name} after {len(state['log'])}"]}

    return node


def subgraphs(saver: BaseCheckpointSaver[Any], tell: Tell) -> Any:
    inner = StateGraph(Text)
    outer = StateGraph(Text)
    for builder, names in ((inner, ("read", "check")), (outer, ("fetch", "publish"))):
        for name in names:
            builder.add_node(name, _step(name, tell))
    inner.add_edge(START, "read")
    inner.add_edge("read", "check")
    outer.add_node("review", inner.compile())
    outer.add_edge(START, "fetch")
    outer.add_edge("fetch", "review")
    outer.add_edge("review", "publish")
    return outer.compile(checkpointer=saver)


# --- plain functions ------------------------------------------------------------------------------------


def functional(saver: BaseCheckpointSaver[Any], tell: Tell) -> Any:
    @task
    def load(number: int) -> int:
        tell(f"load {number}")
        return number * 100

    @task
    def store(total: int) -> str:
        tell("store")
        return f"stored {total}"

    @entrypoint(checkpointer=saver)
    def work(numbers: list[int]) -> str:
        loaded = [load(number) for number in numbers]
        return store(sum(each.result() for each in loaded)).result()

    return work


# --- back to an earlier checkpoint, and on from there ---------------------------------------------------


def time_travel(saver: BaseCheckpointSaver[Any], tell: Tell) -> Any:
    builder = StateGraph(Text)
    for before, name in ((START, "draft"), ("draft", "edit"), ("edit", "print")):
        builder.add_node(name, _step(name, tell))
        builder.add_edge(before, name)
    return builder.compile(checkpointer=saver)


# --- running them ---------------------------------------------------------------------------------------

GRAPHS: dict[str, tuple[Callable[[BaseCheckpointSaver[Any], Tell], Any], Any]] = {
    "tools": (tools, {"messages": [HumanMessage("add the squares of 2, 3 and 4", id="question")]}),
    "fan-out": (fan_out, {"orders": [1, 2, 3, 4], "prices": [], "total": 0}),
    "approval": (approval, {"amount": 50, "log": []}),
    "subgraphs": (subgraphs, {"log": []}),
    "functional": (functional, [1, 2, 3]),
    "time-travel": (time_travel, {"log": []}),
}


# [start:go-on]
def go_on(graph: Any, given: Any, thread: str, durability: Durability = "sync") -> Any:
    """The result of a thread, whether it is new, was stopped anywhere, waits for a person or is finished."""
    config = config_of(thread)
    found = graph.get_state(config)
    if found.created_at is None:  # never started
        graph.invoke(given, config, durability=durability)
    elif found.tasks and not found.interrupts:  # stopped on the way
        graph.invoke(None, config, durability=durability)
    while (found := graph.get_state(config)).interrupts:  # a person is asked
        graph.invoke(Command(resume="yes"), config, durability=durability)
    return found.values


# [end:go-on]


# [start:fork]
def edited(graph: Any, thread: str) -> Any:
    """The result of going on from the checkpoint after the draft with another draft; the first result stays."""
    after_draft = next(s for s in graph.get_state_history(config_of(thread)) if s.next == ("edit",))
    fork = graph.update_state(after_draft.config, {"log": ["a better draft"]})
    return graph.invoke(None, fork)


# [end:fork]


def main(names: list[str]) -> None:
    with RunMemorySaver() as saver:
        for name in names:
            ran: list[str] = []
            build, given = GRAPHS[name]
            graph = build(saver, ran.append)
            result = go_on(graph, given, f"example-{name}")
            print(f"{name}: ran {len(ran)}, result {result}")
            if name == "time-travel":
                print(f"  edited: {edited(graph, f'example-{name}')}")


if __name__ == "__main__":
    main(sys.argv[1:] or [*GRAPHS])
