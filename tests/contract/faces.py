"""The faces of Run Memory, all with the surface of `Client`, so that one test holds for each of them.

A face is a way in (embedded or over HTTP, blocking or async) to one database with a clock that tests turn.
"""

from __future__ import annotations

import asyncio
import inspect
import re
import sqlite3
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import replace
from functools import partial, wraps
from pathlib import Path
from typing import Any, cast

import pytest
from starlette.types import Scope

from runmemory_core import AsyncClient, Client
from runmemory_core.client import AsyncStoreClient, StoreClient
from runmemory_core.engine.keys import issue_key, revoke_key
from runmemory_core.engine.sweeping import sweep_all
from runmemory_core.model import LIMITS, Caller, Limits, Plan
from runmemory_core.operations.tools import ResumeReply, SavedCheckpoint
from runmemory_core.service.app import create_app
from runmemory_core.service.auth import Authenticator
from runmemory_core.service.keys import digest, id_of, new_key
from runmemory_core.service.settings import Settings
from runmemory_core.store.sqlite import SqliteStore
from runmemory_core.transports.embedded import AsyncEmbeddedTransport, EmbeddedTransport
from tests.contract.network import PROXIES, Network, Served
from tests.service.serving import Answer, ask

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


Call = Callable[[Any], Any]
"""What a client is asked, as in ``lambda client: client.resume("import")``."""


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

    def at_once(self, calls: Sequence[Call]) -> list[Any]:
        async def gather() -> list[Any]:
            return await asyncio.gather(*(call(self._inner) for call in calls), return_exceptions=True)

        return self._loop.run_until_complete(gather())


def at_once(client: Client, calls: Sequence[Call]) -> list[Any]:
    """What each call answered, or the exception that it raised; all begin before any is waited for."""
    if isinstance(client, Waited):
        return client.at_once(calls)
    with ThreadPoolExecutor(len(calls)) as threads:
        futures = [threads.submit(call, client) for call in calls]
    return [future.exception() or future.result() for future in futures]


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
        return self._opened(Caller(account=account, plan=plan, limits=limits or LIMITS[plan]))

    def stranger(self) -> Client:
        """A client without a key, who shares an account with everybody at the same address."""
        limits = LIMITS[Plan.WATCH]
        return self._opened(Caller(account="anonymous:here", plan=Plan.WATCH, limits=limits, anonymous=True))

    def _opened(self, caller: Caller) -> Client:
        client = self._connect(caller)
        self._closing.append(client.close)
        return client

    def _connect(self, caller: Caller) -> Client:
        raise NotImplementedError

    def dump(self) -> list[str]:
        """Everything in the database, as SQL."""
        with closing(sqlite3.connect(f"{self.path.as_uri()}?mode=ro", uri=True)) as connection:
            return list(connection.iterdump())

    def rows(self) -> Counter[str]:
        """How many rows each table has."""
        dump = "\n".join(self.dump())
        return Counter(re.findall(r'^INSERT INTO "(\w+)"', dump, flags=re.MULTILINE))

    def change(self, sql: str) -> None:
        """Change the database behind the back of Run Memory."""
        with closing(sqlite3.connect(self.path)) as connection, connection:
            connection.execute(sql)

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
        settings = Settings(database=f"sqlite:///{self.path}", trusted_proxies=(PROXIES,))
        self.service = create_app(self._store, settings, clock_ms=self.clock)
        served.app = self.network = Network(self.service)
        engine = self.service._engine
        self._callers = LimitingAuthenticator(self._store, engine.threads, settings, clock_ms=self.clock)
        self._callers.limits = {}
        engine.authenticator = self._callers
        self._closing += [self._store.close, engine.close]

    def ask(self, method: str, path: str, body: Any = None, **more: Any) -> Answer:
        """One plain request, with the ``key`` and ``headers`` that are given."""
        return ask(self.url, method, path, body, **more)

    def key(self, *, account: str = "default", plan: Plan = Plan.OWN) -> str:
        """A new key for plain requests."""
        return self._issued(Caller(account=account, plan=plan, limits=LIMITS[plan]))

    def revoke(self, key: str) -> None:
        self._store.transact(lambda tx: revoke_key(tx, id_of(key), now_ms=self.clock.now_ms))

    def client_with(self, key: str | None) -> Client:
        """A client that has this key."""
        client = self._client(key)
        self._closing.append(client.close)
        return client

    def _connect(self, caller: Caller) -> Client:
        return self._client(None if caller.anonymous else self._issued(caller))

    def _client(self, key: str | None) -> Client:
        return Client(self.url, api_key=key)

    def _issued(self, caller: Caller) -> str:
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


class AsyncHttpFace(HttpFace):
    """`AsyncClient` of a service."""

    def __init__(self, folder: Path, served: Served) -> None:
        super().__init__(folder, served)
        self._loop = asyncio.new_event_loop()

    def _client(self, key: str | None) -> Client:
        return cast("Client", Waited(AsyncClient(self.url, api_key=key), self._loop))

    def close(self) -> None:
        super().close()
        self._loop.close()


class ToolsOverMcp(Client):
    """A `Client` over MCP, whose `store`, which MCP does not carry, is that of a client over HTTP."""

    def __init__(self, http: Client, key: str | None) -> None:
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

    def __init__(self, http: AsyncClient, key: str | None) -> None:
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
        self._closing.append(served.running(self.service.mcp.running()))

    def _client(self, key: str | None) -> Client:
        return ToolsOverMcp(Client(self.url, api_key=key), key)


class AsyncMcpFace(AsyncHttpFace):
    """`AsyncClient` of a service, over MCP."""

    def __init__(self, folder: Path, served: Served) -> None:
        super().__init__(folder, served)
        self._closing.append(served.running(self.service.mcp.running()))

    def _client(self, key: str | None) -> Client:
        client = AsyncToolsOverMcp(AsyncClient(self.url, api_key=key), key)
        return cast("Client", Waited(client, self._loop))


SERVED = ("http-blocking", "http-async", "mcp-blocking", "mcp-async")
FACES = ("embedded-blocking", "embedded-async", *SERVED)

served_only = pytest.mark.parametrize("face", SERVED, indirect=True)
"""For the rules in `SERVED_ONLY` of the manifest; such a test takes its face as an `HttpFace`."""


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
