"""Whole graphs over RunMemorySaver, among them ones whose process is killed."""

import asyncio
import operator
import subprocess
import sys
import textwrap
import threading
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any, TypedDict

import pytest
from langchain_core.messages import AIMessage, HumanMessage
from langgraph.checkpoint.serde.types import ERROR, INTERRUPT
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.types import Command, Send, interrupt

from runmemory_langgraph import _outbox

CONFIG: Any = {"configurable": {"thread_id": "t"}}


class Log(TypedDict):
    log: Annotated[list[str], operator.add]


def line(saver, names, ran, *, fails_at=None):
    """A graph of nodes in a line that note in ``ran`` when they run."""
    builder: Any = StateGraph(Log)

    def node(name):
        def run(state):
            ran.append(name)
            if name == fails_at:
                raise RuntimeError("boom")
            return {"log": [name]}

        return run

    for before, name in zip([START, *names], names, strict=False):
        builder.add_node(name, node(name))
        builder.add_edge(before, name)
    builder.add_edge(names[-1], END)
    return builder.compile(checkpointer=saver)


def test_a_failed_graph_goes_on_after_its_last_finished_node(saver_maker):
    ran = []
    with saver_maker() as saver, pytest.raises(RuntimeError, match="boom"):
        line(saver, ["a", "b", "c"], ran, fails_at="c").invoke({"log": []}, CONFIG, durability="sync")
    with saver_maker() as saver:
        result = line(saver, ["a", "b", "c"], ran).invoke(None, CONFIG)
    assert result == {"log": ["a", "b", "c"]}
    assert ran == ["a", "b", "c", "c"]


KILLED = textwrap.dedent(
    """
    import os, sys
    sys.path.insert(0, {folder!r})
    from test_langgraph_graphs import line
    from runmemory_langgraph import RunMemorySaver

    class Ran(list):
        def append(self, name):
            with open({log!r}, "a") as file:
                file.write(name + "\\n")
            if name == {dies_at!r}:
                os._exit(9)

    saver = RunMemorySaver({url!r})
    graph = line(saver, list("abcdefgh"), Ran())
    config = {{"configurable": {{"thread_id": "t"}}}}
    started = graph.get_state(config).values
    print(graph.invoke(None if started else {{"log": []}}, config, durability="sync")["log"])
    """
)


@pytest.mark.parametrize("dies_at", ["a", "d", "h"])
def test_a_killed_process_is_continued_by_another_one(tmp_path, dies_at):
    log, url = tmp_path / "log", f"sqlite:///{tmp_path}/runs.db"

    def run(dies_at):
        script = KILLED.format(folder=str(Path(__file__).parent), log=str(log), url=url, dies_at=dies_at)
        return subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)

    assert run(dies_at).returncode == 9
    assert run("").stdout.strip() == str([*"abcdefgh"])
    ran = log.read_text().split()
    assert sorted(ran) == sorted([*"abcdefgh", dies_at])


def test_a_fan_out_collects_the_results_of_every_branch(saver):
    class State(TypedDict):
        found: Annotated[list[int], operator.add]

    builder: Any = StateGraph(State)
    builder.add_node("work", lambda given: {"found": [given["n"] ** 2]})
    builder.add_conditional_edges(START, lambda _: [Send("work", {"n": n}) for n in range(20)])
    builder.add_edge("work", END)
    graph = builder.compile(checkpointer=saver)
    assert graph.invoke({"found": []}, CONFIG)["found"] == [n**2 for n in range(20)]
    assert graph.get_state(CONFIG).values["found"] == [n**2 for n in range(20)]


def approval(saver):
    builder: Any = StateGraph(Log)
    builder.add_node("ask", lambda _: {"log": [interrupt({"question": "pay?"})]})
    builder.add_edge(START, "ask")
    return builder.compile(checkpointer=saver)


def test_a_persons_answer_reaches_a_graph_in_another_process(saver_maker):
    with saver_maker() as saver:
        asked = approval(saver).invoke({"log": []}, CONFIG)
        assert asked["__interrupt__"][0].value == {"question": "pay?"}
    with saver_maker() as saver:
        assert approval(saver).invoke(Command(resume="yes"), CONFIG) == {"log": ["yes"]}


@pytest.mark.parametrize("halt", ["asks", "fails"])
def test_a_branch_that_ends_after_its_sibling_stopped_is_not_run_again_by_another_process(
    saver_maker, monkeypatch, halt
):
    monkeypatch.setattr(_outbox, "LINGER_SECONDS", 3_600)
    halted = threading.Event()
    ran = []

    def build(saver):
        def stop(state):
            if halt == "fails" and not halted.is_set():
                raise RuntimeError("boom")
            return {"log": [interrupt("sure?") if halt == "asks" else "stop"]}

        def pay(state):
            ran.append("pay")
            assert halted.wait(30)
            return {"log": ["paid"]}

        builder: Any = StateGraph(Log)
        builder.add_node("stop", stop)
        builder.add_node("pay", pay)
        builder.add_edge(START, "stop")
        builder.add_edge(START, "pay")
        return builder.compile(checkpointer=saver)

    with saver_maker() as first, saver_maker() as second:
        stored = first.put_writes

        def telling(config, writes, *task):
            stored(config, writes, *task)
            if writes[0][0] in (ERROR, INTERRUPT):
                halted.set()

        monkeypatch.setattr(first, "put_writes", telling)
        with suppress(RuntimeError):
            build(first).invoke({"log": []}, CONFIG, durability="sync")
        result = build(second).invoke(Command(resume="stop") if halt == "asks" else None, CONFIG)
    assert result == {"log": ["paid", "stop"]}
    assert ran == ["pay"]


def test_a_subgraph_goes_on_inside_itself(saver_maker):
    ran = []

    def build(saver, *, fails):
        def inner_node(state):
            ran.append("inner")
            return {"log": ["inner"]}

        def failing(state):
            ran.append("failing")
            if fails:
                raise RuntimeError("boom")
            return {"log": ["failing"]}

        inner = StateGraph(Log)
        inner.add_node("one", inner_node)
        inner.add_node("two", failing)
        inner.add_edge(START, "one")
        inner.add_edge("one", "two")
        outer = StateGraph(Log)
        outer.add_node("sub", inner.compile())
        outer.add_edge(START, "sub")
        return outer.compile(checkpointer=saver)

    with saver_maker() as saver, pytest.raises(RuntimeError):
        build(saver, fails=True).invoke({"log": []}, CONFIG, durability="sync")
    with saver_maker() as saver:
        assert build(saver, fails=False).invoke(None, CONFIG)["log"] == ["inner", "failing"]
    assert ran == ["inner", "failing", "failing"]


def test_messages_come_back_as_the_same_objects_over_many_turns(saver_maker):
    def build(saver):
        builder: Any = StateGraph(MessagesState)
        builder.add_node(
            "answer", lambda state: {"messages": [AIMessage(f"answer {len(state['messages'])}")]}
        )
        builder.add_edge(START, "answer")
        return builder.compile(checkpointer=saver)

    result: Any = None
    for turn in range(4):
        with saver_maker() as saver:
            result = build(saver).invoke({"messages": [HumanMessage(f"question {turn}")]}, CONFIG)
    assert [message.content for message in result["messages"]] == [
        text for turn in range(4) for text in (f"question {turn}", f"answer {2 * turn + 1}")
    ]
    assert all(isinstance(message, (HumanMessage, AIMessage)) for message in result["messages"])


def test_time_travel_forks_and_leaves_the_past_alone(saver):
    ran = []
    graph = line(saver, ["a", "b", "c"], ran)
    graph.invoke({"log": []}, CONFIG)
    after_a = next(state for state in graph.get_state_history(CONFIG) if state.next == ("b",))
    forked = graph.update_state(after_a.config, {"log": ["changed"]})
    assert graph.invoke(None, forked)["log"] == ["a", "changed", "b", "c"]
    assert graph.get_state(after_a.config).values["log"] == ["a"]


@pytest.mark.parametrize("durability", ["sync", "async", "exit"])
def test_an_async_graph_ends_the_same_in_every_durability(saver, durability):
    graph = line(saver, ["a", "b", "c"], [])
    result = asyncio.run(graph.ainvoke({"log": []}, CONFIG, durability=durability))
    assert result == {"log": ["a", "b", "c"]}
    assert asyncio.run(graph.aget_state(CONFIG)).values == {"log": ["a", "b", "c"]}
    assert next(state.values["log"] for state in graph.get_state_history(CONFIG)) == ["a", "b", "c"]


def test_a_delta_channel_is_rebuilt_from_its_ancestors_in_few_calls(saver_maker, monkeypatch):
    from langgraph.channels.delta import DeltaChannel

    def reduce(values, updates):
        return values + [item for update in updates for item in update]

    class State(TypedDict):
        items: Annotated[list, DeltaChannel(reduce, list)]

    def build(saver):
        builder: Any = StateGraph(State)
        builder.add_node("add", lambda state: {"items": [len(state["items"])]})
        builder.add_edge(START, "add")
        builder.add_conditional_edges("add", lambda state: "add" if len(state["items"]) < 60 else END)
        return builder.compile(checkpointer=saver)

    config: Any = CONFIG | {"recursion_limit": 100}
    with saver_maker() as saver:
        build(saver).invoke({"items": []}, config)
    with saver_maker() as saver:
        calls = []
        send = saver._client.send
        monkeypatch.setattr(saver._client, "send", lambda *given: calls.append(1) or send(*given))
        assert build(saver).get_state(config).values["items"] == [*range(60)]
        assert len(calls) <= 3
