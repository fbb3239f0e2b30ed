"""RunMemorySaver against no saver, InMemorySaver and SqliteSaver: CPU and wall time a superstep, bytes kept.

Graphs: a, a small counter; b, a chat that grows by a message of 2 KB a step to 200 messages.
"""

import statistics
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, TypedDict

from langchain_core.messages import AIMessage, AnyMessage
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.graph import END, START, StateGraph
from langgraph.graph.message import add_messages

from runmemory_langgraph import RunMemorySaver
from tests.benchmarks.measuring import bytes_of, scratch, show

ROUNDS = 5


class Counter(TypedDict):
    count: int


class Chat(TypedDict):
    messages: Annotated[list[AnyMessage], add_messages]


def counter(steps: int, saver: BaseCheckpointSaver | None) -> Any:
    builder: Any = StateGraph(Counter)
    builder.add_node("add", lambda state: {"count": state["count"] + 1})
    builder.add_edge(START, "add")
    builder.add_conditional_edges("add", lambda state: "add" if state["count"] < steps else END)
    return builder.compile(checkpointer=saver)


def chat(steps: int, saver: BaseCheckpointSaver | None) -> Any:
    def answer(state: Chat) -> dict[str, Any]:
        number = len(state["messages"])
        return {"messages": [AIMessage(f"message {number}: " + "lorem ipsum dolor " * 110, id=f"m{number}")]}

    builder: Any = StateGraph(Chat)
    builder.add_node("answer", answer)
    builder.add_edge(START, "answer")
    builder.add_conditional_edges("answer", lambda state: "answer" if len(state["messages"]) < steps else END)
    return builder.compile(checkpointer=saver)


GRAPHS: dict[str, tuple[Callable[..., Any], int, Any]] = {
    "a: counter": (counter, 200, {"count": 0}),
    "b: chat to 200 x 2 KB": (chat, 200, {"messages": []}),
}


def savers(folder: Path, stack: ExitStack) -> dict[str, BaseCheckpointSaver | None]:
    return {
        "no saver": None,
        "InMemorySaver": InMemorySaver(),
        "SqliteSaver": stack.enter_context(SqliteSaver.from_conn_string(str(folder / "sqlite.db"))),
        "RunMemorySaver": stack.enter_context(RunMemorySaver(f"sqlite:///{folder}/ours.db")),
    }


@dataclass
class Taken:
    cpu: list[float] = field(default_factory=list)
    wall: list[float] = field(default_factory=list)


def run(
    build: Callable[..., Any], steps: int, given: Any, saver: BaseCheckpointSaver | None, thread: str
) -> Taken:
    graph = build(steps, saver)
    config = {"configurable": {"thread_id": thread}, "recursion_limit": steps + 10}
    cpu, wall = time.process_time(), time.perf_counter()
    graph.invoke(given, config, durability="sync") if saver else graph.invoke(given, config)
    return Taken([(time.process_time() - cpu) / steps], [(time.perf_counter() - wall) / steps])


def measure(name: str) -> None:
    build, steps, given = GRAPHS[name]
    with scratch() as folder, ExitStack() as stack:
        contenders = savers(folder, stack)
        taken = {contender: Taken() for contender in contenders}
        for number in range(ROUNDS + 1):
            for contender, saver in contenders.items():
                once = run(build, steps, given, saver, f"thread-{number}")
                if number:  # the first one warms up
                    taken[contender].cpu += once.cpu
                    taken[contender].wall += once.wall
        threads = ROUNDS + 1
        kept = {
            "SqliteSaver": bytes_of(folder / "sqlite.db") / threads / steps,
            "RunMemorySaver": bytes_of(folder / "ours.db") / threads / steps,
        }
        base = statistics.median(taken["no saver"].cpu)
        theirs = statistics.median(taken["SqliteSaver"].cpu) - base
        rows = [
            [
                contender,
                f"{statistics.median(found.cpu) * 1e6:,.0f}",
                f"{statistics.median(found.wall) * 1e6:,.0f}",
                f"{(statistics.median(found.cpu) - base) / theirs:.2f}",
                f"{kept[contender]:,.0f}" if contender in kept else "",
            ]
            for contender, found in taken.items()
        ]
        show(
            f"LangGraph, graph {name}, {steps} supersteps, durability sync",
            ["", "CPU µs/step", "wall µs/step", "overhead / SqliteSaver's", "bytes kept/step"],
            rows,
            note="overhead: CPU over no saver; aims 0.6 (a) and 0.5 (b); bytes with the write-ahead log, no VACUUM",
        )


def main() -> None:
    for name in GRAPHS:
        measure(name)


if __name__ == "__main__":
    main()
