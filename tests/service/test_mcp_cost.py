"""That no message over MCP holds up the others: what is large is read on another thread."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from runmemory_core.service.mcp_endpoint import McpEndpoint
from runmemory_core.service.rest import LARGE_BYTES, Engine
from runmemory_core.service.settings import Settings
from runmemory_core.store import open_store


class CountingPool(ThreadPoolExecutor):
    """Threads that remember what they were given to do."""

    def __init__(self) -> None:
        super().__init__(1)
        self.given: list[str] = []

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        self.given.append(getattr(fn, "__name__", ""))
        return super().submit(fn, *args, **kwargs)


async def post(endpoint: McpEndpoint, body: bytes) -> int:
    """The status that a body is answered with."""
    statuses: list[int] = []

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": body, "more_body": False}

    async def send(message: Any) -> None:
        statuses.extend([message["status"]] if "status" in message else [])

    scope = {"type": "http", "method": "POST", "path": "/mcp", "scheme": "http", "client": ("127.0.0.1", 1)}
    async with endpoint.running():
        await endpoint(scope | {"headers": [(b"host", b"localhost")]}, receive, send)
    return statuses[0]


@pytest.mark.parametrize(("padding", "elsewhere"), [(10, 0), (LARGE_BYTES, 1)])
def test_a_large_message_is_read_on_another_thread(tmp_path: Path, padding: int, elsewhere: int) -> None:
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": 7, "params": {"a": "x" * padding}}).encode()
    database = f"sqlite:///{tmp_path}/runs.db"
    store = open_store(database)
    engine = Engine(store, Settings(database=database))
    engine.threads.shutdown()
    engine.threads = threads = CountingPool()
    engine.authenticator._executor = threads  # pyright: ignore[reportPrivateUsage]
    try:
        assert asyncio.run(post(McpEndpoint(engine), body)) == 400
        assert threads.given.count("message_in") == elsewhere
    finally:
        engine.close()
        store.close()
