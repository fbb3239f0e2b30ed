"""The faces of Run Memory, all with the surface of `Client`, so that one test holds for each of them.

A face is a way in (embedded or over HTTP, blocking or async) to one database with a clock that tests turn.
"""

from __future__ import annotations

import asyncio
import inspect
import socket
import sqlite3
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from contextlib import AbstractAsyncContextManager, closing
from dataclasses import replace
from functools import partial, wraps
from pathlib import Path
from threading import Thread
from typing import Any, cast

import uvicorn
from starlette.types import ASGIApp, Receive, Scope, Send

from runmemory_core import AsyncClient, Client
from runmemory_core.client import AsyncStoreClient, StoreClient
from runmemory_core.engine.keys import issue_key
from runmemory_core.engine.sweeping import sweep_all
from runmemory_core.model import LIMITS, Caller, Limits, Plan
from runmemory_core.operations.tools import ResumeReply, SavedCheckpoint
from runmemory_core.service.app import Service, create_app
from runmemory_core.service.auth import Authenticator
from runmemory_core.service.keys import digest, id_of, new_key
from runmemory_core.service.settings import Settings
from runmemory_core.store.sqlite import SqliteStore
from runmemory_core.transports.embedded import AsyncEmbeddedTransport, EmbeddedTransport

NOON = 1_772_366_400_000
"""2026-03-01T12:00:00Z, when every test begins."""

MINUTE = 60_000
HOUR = 60 * MINUTE
DAY = 24 * HOUR


def checkpoint_of(reply: ResumeReply) -> SavedCheckpoint:
    """The checkpoint that a resumed run has."""
    assert reply.checkpoint is not None
    return reply.checkpoint


class Clock:
    """Milliseconds since 1970 that pass only when a test says so."""

    def __init__(self) -> None:
        self.now_ms = NOON

    def __call__(self) -> int:
        return self.now_ms

    def forward(self, length_ms: int) -> None:
        self.now_ms += length_ms


class Waited:
    """An `AsyncClient` whose methods are waited for."""

    def __init__(self, inner: Any, loop: asyncio.AbstractEventLoop) -> None:
        self._inner = inner
        self._loop = loop

    @property
    def store(self) -> Waited:
        return Waited(self._inner.store, self._loop)

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._inner, name)
        if not inspect.iscoroutinefunction(found):
            return found

        @wraps(found)
        def wait(*args: Any, **arguments: Any) -> Any:
            return self._loop.run_until_complete(found(*args, **arguments))

        return wait


class Face:
    """One way in; `client` gives clients for different callers of the same database."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "runs.db"
        self.clock = Clock()
        self._closing: list[Callable[[], object]] = []

    def client(
        self, *, account: str = "default", plan: Plan = Plan.OWN, limits: Limits | None = None
    ) -> Client:
        """A client of ``account``; ``limits`` other than the plan's make tests of bounds short."""
        caller = Caller(account=account, plan=plan, limits=limits or LIMITS[plan])
        client = self._connect(caller)
        self._closing.append(client.close)
        return client

    def _connect(self, caller: Caller) -> Client:
        raise NotImplementedError

    def dump(self) -> list[str]:
        """Everything in the database, as SQL."""
        with closing(sqlite3.connect(f"{self.path.as_uri()}?mode=ro", uri=True)) as connection:
            return list(connection.iterdump())

    def sweep(self) -> int:
        """Remove what has expired by now, as `runmemory sweep` does; how many records went."""
        with closing(SqliteStore(self.path)) as store:
            return sweep_all(store, now_ms=self.clock.now_ms)

    def close(self) -> None:
        for close in reversed(self._closing):
            close()


class EmbeddedFace(Face):
    """`Client` on a file."""

    def _connect(self, caller: Caller) -> Client:
        client = Client(f"sqlite:///{self.path}")
        opened = cast("EmbeddedTransport", client._transport)
        client._transport = EmbeddedTransport(opened._store, caller=caller, clock_ms=self.clock)
        return client


class AsyncEmbeddedFace(Face):
    """`AsyncClient` on a file."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self._loop = asyncio.new_event_loop()
        self._closing.append(lambda: self._loop.run_until_complete(self._loop.shutdown_default_executor()))

    def _connect(self, caller: Caller) -> Client:
        client = AsyncClient(f"sqlite:///{self.path}")
        opened = cast("AsyncEmbeddedTransport", client._transport)
        client._transport = AsyncEmbeddedTransport(opened._store, caller=caller, clock_ms=self.clock)
        return cast("Client", Waited(client, self._loop))

    def close(self) -> None:
        super().close()
        self._loop.close()


class _Server(uvicorn.Server):
    """uvicorn's, which tells its loop, so that a test can have an application started there."""

    loop: asyncio.AbstractEventLoop

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        self.loop = asyncio.get_running_loop()
        await super().startup(sockets)


class Served:
    """An HTTP server on a thread of its own, which answers with the application of the current test."""

    def __init__(self) -> None:
        self.app: ASGIApp | None = None
        listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        config = uvicorn.Config(self._answer, interface="asgi3", lifespan="off", log_config=None)
        self._server = _Server(config)
        # What connects before the server runs waits in the listener's backlog.
        self._thread = Thread(target=self._server.run, kwargs={"sockets": [listener]})
        self._thread.start()

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        assert self.app is not None
        await self.app(scope, receive, send)

    def running(self, context: AbstractAsyncContextManager[None]) -> Callable[[], object]:
        """Enter ``context`` on the server's loop; what is returned leaves it, in the same task."""
        while not self._server.started:
            self._thread.join(0.01)
        stop = asyncio.Event()
        entered: Future[None] = Future()

        async def hold() -> None:
            async with context:
                entered.set_result(None)
                await stop.wait()

        holding = asyncio.run_coroutine_threadsafe(hold(), self._server.loop)
        entered.result()

        def leave() -> None:
            self._server.loop.call_soon_threadsafe(stop.set)
            holding.result()

        return leave

    def close(self) -> None:
        self._server.should_exit = True
        self._thread.join()


class LimitingAuthenticator(Authenticator):
    """The service's own, where a test may give a key other limits than its plan has."""

    limits: dict[bytes, Limits]

    async def caller(self, scope: Scope, headers: Mapping[bytes, bytes]) -> Caller:
        caller = await super().caller(scope, headers)
        limits = self.limits.get(headers.get(b"authorization", b""))
        return caller if limits is None else replace(caller, limits=limits)


class HttpFace(Face):
    """`Client` of a service."""

    def __init__(self, folder: Path, served: Served) -> None:
        super().__init__(folder)
        self.url = served.url
        self._store = SqliteStore(self.path)
        settings = Settings(database=f"sqlite:///{self.path}")
        served.app = service = create_app(self._store, settings, clock_ms=self.clock)
        engine = service._engine
        self._callers = LimitingAuthenticator(self._store, engine.threads, settings, clock_ms=self.clock)
        self._callers.limits = {}
        engine.authenticator = self._callers
        self._closing += [self._store.close, engine.close]

    def _key_for(self, caller: Caller) -> str:
        key = new_key()
        issue = partial(
            issue_key,
            key_sha256=digest(key),
            key_id=id_of(key),
            account=caller.account,
            plan=caller.plan,
            label="",
            now_ms=NOON,
        )
        self._store.transact(issue)
        self._callers.limits[f"Bearer {key}".encode()] = caller.limits
        return key

    def _connect(self, caller: Caller) -> Client:
        return Client(self.url, api_key=self._key_for(caller))


class AsyncHttpFace(HttpFace):
    """`AsyncClient` of a service."""

    def __init__(self, folder: Path, served: Served) -> None:
        super().__init__(folder, served)
        self._loop = asyncio.new_event_loop()

    def _connect(self, caller: Caller) -> Client:
        return cast("Client", Waited(AsyncClient(self.url, api_key=self._key_for(caller)), self._loop))

    def close(self) -> None:
        super().close()
        self._loop.close()


class ToolsOverMcp(Client):
    """A `Client` over MCP, whose `store`, which MCP does not carry, is that of a client over HTTP."""

    def __init__(self, http: Client, key: str) -> None:
        super().__init__(f"mcp+{http.where}/mcp", api_key=key)
        self._beside = http

    @property
    def store(self) -> StoreClient:
        return self._beside.store

    def close(self) -> None:
        super().close()
        self._beside.close()


class AsyncToolsOverMcp(AsyncClient):
    """`ToolsOverMcp` for an event loop."""

    def __init__(self, http: AsyncClient, key: str) -> None:
        super().__init__(f"mcp+{http.where}/mcp", api_key=key)
        self._beside = http

    @property
    def store(self) -> AsyncStoreClient:
        return self._beside.store

    async def close(self) -> None:
        await super().close()
        await self._beside.close()


class McpFace(HttpFace):
    """`Client` of a service, over MCP."""

    def __init__(self, folder: Path, served: Served) -> None:
        super().__init__(folder, served)
        assert isinstance(served.app, Service)
        self._closing.append(served.running(served.app.mcp.running()))

    def _connect(self, caller: Caller) -> Client:
        key = self._key_for(caller)
        return ToolsOverMcp(Client(self.url, api_key=key), key)


class AsyncMcpFace(AsyncHttpFace):
    """`AsyncClient` of a service, over MCP."""

    def __init__(self, folder: Path, served: Served) -> None:
        super().__init__(folder, served)
        assert isinstance(served.app, Service)
        self._closing.append(served.running(served.app.mcp.running()))

    def _connect(self, caller: Caller) -> Client:
        key = self._key_for(caller)
        client = AsyncToolsOverMcp(AsyncClient(self.url, api_key=key), key)
        return cast("Client", Waited(client, self._loop))


FACES = ("embedded-blocking", "embedded-async", "http-blocking", "http-async", "mcp-blocking", "mcp-async")


def open_face(name: str, folder: Path, served: Callable[[], Served]) -> Face:
    """The face of this name; ``served`` gives the server that the faces over HTTP share."""
    match name:
        case "embedded-blocking":
            return EmbeddedFace(folder)
        case "embedded-async":
            return AsyncEmbeddedFace(folder)
        case "http-blocking":
            return HttpFace(folder, served())
        case "http-async":
            return AsyncHttpFace(folder, served())
        case "mcp-blocking":
            return McpFace(folder, served())
        case _:
            return AsyncMcpFace(folder, served())
