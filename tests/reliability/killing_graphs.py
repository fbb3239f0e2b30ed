"""Runs an example graph in forked processes that die at one point each, and says how the thread ended.

    python killing_graphs.py GRAPH DURABILITY FOLDER [URL KEY]

Prints one JSON object a line: where it was killed, what ran before the kill, what ran afterwards, the result. The
first one was not killed. A point is the n-th time a node works (``node``), the moment before or after the n-th
commit (``before``, ``after``), or that after the n-th ``invoke`` returned (``returned``).
"""

import json
import os
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import langgraph_graphs as examples  # pyright: ignore[reportMissingImports]
from langgraph.checkpoint.serde.types import INTERRUPT
from langgraph.graph import START, StateGraph
from langgraph.types import interrupt

from runmemory_langgraph import RunMemorySaver
from tests.adapters.test_langgraph_graphs import Log

KILLED = 9
Point = tuple[str, int]


def question_beside_work(saver: Any, tell: Callable[[str], None]) -> Any:
    """Two branches, of which one is done only after the other asked: no checkpoint follows what it results in."""
    asked = threading.Event()
    stored = saver.put_writes

    def put_writes(config: Any, writes: Any, *task: Any) -> None:
        stored(config, writes, *task)
        if writes[0][0] == INTERRUPT:
            asked.set()

    def ask(state: Log) -> Any:
        said = interrupt("sure?")
        asked.set()
        tell("ask")
        return {"log": [said]}

    def pay(state: Log) -> Any:
        assert asked.wait(30)
        tell("pay")
        return {"log": ["paid"]}

    saver.put_writes = put_writes
    builder: Any = StateGraph(Log)
    builder.add_node("ask", ask)
    builder.add_node("pay", pay)
    builder.add_edge(START, "ask")
    builder.add_edge(START, "pay")
    return builder.compile(checkpointer=saver)


GRAPHS = {**examples.GRAPHS, "question-beside-work": (question_beside_work, {"log": []})}


def run(
    name: str,
    durability: str,
    saver: RunMemorySaver,
    thread: str,
    log: Path,
    *,
    point: Point | None,
) -> Any:
    """Take the thread to its end, or die at ``point``; each node and each commit is noted in ``log``."""
    counts = {"node": 0, "before": 0, "after": 0, "returned": 0}

    def pass_by(kind: str) -> None:
        counts[kind] += 1
        if point == (kind, counts[kind]):
            os._exit(KILLED)

    def note(line: str) -> None:
        with log.open("a") as file:
            file.write(f"{line}\n")

    def tell(node: str) -> None:
        note(node)
        pass_by("node")

    def commit(*given: Any) -> Any:
        pass_by("before")
        missing = send(*given)
        note("#commit")
        pass_by("after")
        return missing

    send = saver._outbox._commit
    saver._outbox._commit = commit
    build, given = GRAPHS[name]
    graph = build(saver, tell)
    invoke = graph.invoke

    def invoked(*given: Any, **options: Any) -> Any:
        result = invoke(*given, **options)
        note("#return")
        pass_by("returned")
        return result

    graph.invoke = invoked
    return examples.go_on(graph, given, thread, durability)


def in_a_process(work: Callable[[], Any]) -> str | None:
    """The repr of what ``work`` returns in a forked process; None if it was killed."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.write(writing, repr(work()).encode())
        finally:
            os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        said = pipe.read().decode()
    _, status = os.waitpid(child, 0)
    return None if os.waitstatus_to_exitcode(status) == KILLED else said


def lines(log: Path) -> list[str]:
    return log.read_text().split("\n")[:-1] if log.exists() else []


def main() -> None:
    name, durability, folder, *service = sys.argv[1:]
    url, key = service or (f"sqlite:///{folder}/runs.db", None)

    def life(thread: str, log: Path, point: Point | None) -> str | None:
        def work() -> Any:
            with RunMemorySaver(url, api_key=key) as saver:
                return run(name, durability, saver, thread, log, point=point)

        return in_a_process(work)

    log = Path(folder) / "undisturbed.log"
    result = life("undisturbed", log, None)
    ran = lines(log)
    print(json.dumps({"point": None, "before": ran, "after": [], "result": result}))
    commits = ran.count("#commit")
    returns = ran.count("#return")
    points: list[Point] = [("node", n + 1) for n in range(len(ran) - commits - returns)]
    points += [("returned", n + 1) for n in range(returns)]
    points += [(kind, n + 1) for kind in ("before", "after") for n in range(commits)]
    for kind, number in points:
        log = Path(folder) / f"{kind}-{number}.log"
        killed = life(log.stem, log, (kind, number)) is None
        before = lines(log)
        log.unlink(missing_ok=True)
        result = life(log.stem, log, None)
        print(
            json.dumps(
                {
                    "point": [kind, number],
                    "killed": killed,
                    "before": before,
                    "after": lines(log),
                    "result": result,
                }
            )
        )


if __name__ == "__main__":
    main()
