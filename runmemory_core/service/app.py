"""The ASGI application: its routes, and the shell around them that turns every failure into an answer."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from functools import lru_cache
from http import HTTPStatus

from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route, Router
from starlette.types import Receive, Scope, Send

from runmemory_core.errors import RunMemoryError
from runmemory_core.operations import OPERATIONS
from runmemory_core.service import catalogue, mcp_endpoint
from runmemory_core.service.addresses import reached_at
from runmemory_core.service.answers import confess, discreet, refuse, refuse_http, while_stopping
from runmemory_core.service.cors import preflight, with_cors
from runmemory_core.service.free_keys import FREE_KEY_PATH, FreeKeyEndpoint
from runmemory_core.service.heads import headers_of
from runmemory_core.service.rest import Engine, OperationEndpoint, StateEndpoint
from runmemory_core.service.settings import Settings
from runmemory_core.service.sweeper import sweep_forever
from runmemory_core.store import Store
from runmemory_core.store.clock import wall_clock_ms

_HTTP_WORDS = {
    404: "there is nothing at {path}; /openapi.json lists what there is",
    405: "this path answers another method, which the Allow header names",
}

_PATH_SHOWN = 200
_FOR_ANY_PAGE = {"access-control-allow-origin": "*"}


class Service(Router):
    """Run Memory as an ASGI application over an open store, which stays the caller's to close.

    While ``stopping`` is set, new requests are sent away and those under way are finished.
    """

    def __init__(self, store: Store, settings: Settings, *, clock_ms: Callable[[], int]) -> None:
        self.stopping = False
        self._clock_ms = clock_ms
        self._engine = Engine(store, settings, clock_ms=clock_ms)
        self.mcp = mcp_endpoint.McpEndpoint(self._engine)
        self._operations = {
            operation.path: OperationEndpoint(operation, self._engine) for operation in OPERATIONS.values()
        }
        routes = [Route(path, endpoint, methods=["POST"]) for path, endpoint in self._operations.items()]
        routes += [
            Route("/api/run/{run_id:path}/state", StateEndpoint(self._engine), methods=["GET"]),
            Route(FREE_KEY_PATH, FreeKeyEndpoint(self._engine), methods=["POST"]),
            Route("/healthz", self._health, methods=["GET"]),
            *(Route(file.path, _publishing(file, settings), methods=["GET"]) for file in catalogue.FILES),
            Route("/", _publishing(catalogue.FRONT, settings), methods=["GET"]),
        ]
        super().__init__(routes, redirect_slashes=False, lifespan=self._lifespan)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await super().__call__(scope, receive, send)
            return
        if scope["path"] in mcp_endpoint.PATHS:
            await self.mcp(scope, receive, send, stopping=self.stopping)
            return
        try:
            if self.stopping:
                raise while_stopping()
            endpoint = self._operations.get(scope["path"])
            if endpoint is not None and scope["method"] == "POST":
                # Straight to it: the router would cost a save a tenth more.
                await endpoint(scope, receive, send)
                return
            scope["app"] = self  # has the router raise where it would answer by itself
            await super().__call__(scope, receive, send)
        except RunMemoryError as error:
            told = discreet(error, where=self._engine.store.where)
            await refuse(send, told, now_ms=self._clock_ms())
        except HTTPException as error:
            await _refuse_http(scope, send, error)
        except ClientDisconnect:
            pass  # nobody is left to answer
        except Exception as error:  # noqa: BLE001 - the last floor: whatever it is, it gets an answer and a log entry
            await confess(send, error)

    async def _health(self, request: Request) -> Response:
        """Answers 200 when the store does."""
        del request
        await self._engine.check()
        return Response(b'{"status":"ok"}', media_type="application/json")

    @asynccontextmanager
    async def _lifespan(self, app: object) -> AsyncGenerator[None]:
        del app
        sweeping = asyncio.create_task(sweep_forever(self._engine))
        try:
            async with self.mcp.running():
                yield
        finally:
            sweeping.cancel()
            with suppress(asyncio.CancelledError):
                await sweeping
            self._engine.close()


async def _refuse_http(scope: Scope, send: Send, error: HTTPException) -> None:
    """Answer what HTTP refuses; pages look for OAuth at paths that are not there, and have to be able to read that."""
    if error.status_code == HTTPStatus.NOT_FOUND:
        send = with_cors(send)
        if scope["method"] == "OPTIONS":
            await preflight(send, dict(scope["headers"]), methods=b"OPTIONS")
            return
    words = _HTTP_WORDS.get(error.status_code, error.detail).replace(
        "{path}", repr(scope["path"][:_PATH_SHOWN])
    )
    await refuse_http(send, error.status_code, words, error.headers)


def _publishing(file: catalogue.Published, settings: Settings) -> Callable[[Request], Awaitable[Response]]:
    """Answers with a file of the catalogue, in which the service has the address it was asked at."""
    text_for = lru_cache(maxsize=16)(file.text)

    async def publish(request: Request) -> Response:
        where = reached_at(request.scope, headers_of(request.scope), settings)
        return Response(text_for(where), media_type=file.media_type, headers=_FOR_ANY_PAGE)

    return publish


def create_app(store: Store, settings: Settings, *, clock_ms: Callable[[], int] = wall_clock_ms) -> Service:
    """The application over an open ``store``; run it with `runmemory_core.service.server.serve`."""
    return Service(store, settings, clock_ms=clock_ms)
