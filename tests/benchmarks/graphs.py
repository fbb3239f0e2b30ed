"""The graphs that savers are measured on.

a, a small counter; b, a chat that grows by a message of 2 KB a step; b delta, the same in a DeltaChannel; c, 50 KB
that stay as they are beside a counter; d, a fan-out of 20 and its collection, again and again.
"""

from __future__ import annotations

import operator
import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any, TypedDict

from langchain_core.messages import AIMessage, AnyMessage
from langgraph.channels.delta import DeltaChannel
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.graph import END, START, StateGraph
from langgraph.graph.message import add_messages
from langgraph.types import Send

Saver = BaseCheckpointSaver[Any] | None


class Counter(TypedDict):
    count: int


class Chat(TypedDict):
    messages: Annotated[list[AnyMessage], add_messages]


def _joined(old: Any, new: Any) -> Any:
    return old + [message for messages in new for message in messages]


class DeltaChat(TypedDict):
    messages: Annotated[list[AnyMessage], DeltaChannel(_joined, list)]


class Document(TypedDict):
    document: str
    count: int


class FanOut(TypedDict):
    found: Annotated[list[int], operator.add]
    rounds: int


_SYLLABLES = [a + b for a in "bcdfghklmnprstvz" for b in ("a", "e", "i", "o", "u", "an", "er", "is")]


def words(number: int, size_bytes: int) -> str:
    """A text that no other number has, and that compresses about as prose does."""
    choose = random.Random(number)
    found = " ".join("".join(choose.choices(_SYLLABLES, k=3)) for _ in range(size_bytes // 5))
    return found[:size_bytes]


def message(number: int, size_bytes: int = 2_000) -> AIMessage:
    """A message of its own."""
    return AIMessage(words(number, size_bytes), id=f"m{number}")


def _loop(state: type, node: Callable[[Any], Any], goes_on: Callable[[Any], bool], saver: Saver) -> Any:
    builder: Any = StateGraph(state)
    builder.add_node("node", node)
    builder.add_edge(START, "node")
    builder.add_conditional_edges("node", lambda state: "node" if goes_on(state) else END)
    return builder.compile(checkpointer=saver)


def counter(steps: int, saver: Saver) -> Any:
    def add(state: Counter) -> Any:
        return {"count": state["count"] + 1}

    return _loop(Counter, add, lambda state: state["count"] < steps, saver)


def chat(steps: int, saver: Saver, *, state: type = Chat, size_bytes: int = 2_000) -> Any:
    def answer(state: Any) -> Any:
        return {"messages": [message(len(state["messages"]), size_bytes)]}

    return _loop(state, answer, lambda state: len(state["messages"]) < steps, saver)


def delta_chat(steps: int, saver: Saver) -> Any:
    return chat(steps, saver, state=DeltaChat)


def document(steps: int, saver: Saver) -> Any:
    def add(state: Document) -> Any:
        return {"count": state["count"] + 1}

    return _loop(Document, add, lambda state: state["count"] < steps, saver)


def fan_out(steps: int, saver: Saver) -> Any:
    def work(given: Any) -> Any:
        return {"found": [given]}

    def collect(state: FanOut) -> Any:
        return {"rounds": state["rounds"] + 1}

    def spread(state: FanOut) -> Any:
        return [Send("work", n) for n in range(20)] if state["rounds"] * 2 < steps else END

    builder: Any = StateGraph(FanOut)
    builder.add_node("work", work)
    builder.add_node("collect", collect)
    builder.add_conditional_edges(START, spread, ["work", END])
    builder.add_edge("work", "collect")
    builder.add_conditional_edges("collect", spread, ["work", END])
    return builder.compile(checkpointer=saver)


@dataclass(frozen=True)
class Graph:
    """A graph with what it is given and how many supersteps it takes."""

    build: Callable[[int, Saver], Any]
    steps: int
    given: Any


GRAPHS = {
    "a: counter": Graph(counter, 100, {"count": 0}),
    "b: chat to 200 x 2 KB": Graph(chat, 200, {"messages": []}),
    "b with DeltaChannel": Graph(delta_chat, 200, {"messages": []}),
    "c: 50 KB that stay": Graph(document, 100, {"document": words(0, 50_000), "count": 0}),
    "d: fan-out of 20": Graph(fan_out, 20, {"found": [], "rounds": 0}),
}
