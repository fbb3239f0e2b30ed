"""What lies between the clients and the service in tests.

A server on a thread of its own, and a network that says where calls come from and may lose answers.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import AbstractAsyncContextManager
from ipaddress import ip_network
from threading import Thread

import uvicorn
from starlette.types import ASGIApp, Message, Receive, Scope, Send

PROXIES = ip_network("10.0.0.0/8")
"""Whom the service of the tests believes when they say for whom they call."""


class Network:
    """An application in front of another."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        self.address = "127.0.0.1"
        self.forwarded: str | None = None
        self.lost_answers = 0
        """So many answers to come are replaced by that of a gateway."""
        self.requests: list[str] = []
        """The path of each request, in order."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self.requests.append(scope["path"])
        headers = list(scope["headers"])
        if self.forwarded is not None:
            headers.append((b"x-forwarded-for", self.forwarded.encode()))
        scope = {**scope, "client": (self.address, 5), "headers": headers}
        if not self.lost_answers:
            await self._app(scope, receive, send)
            return
        self.lost_answers -= 1

        async def lose(message: Message) -> None:
            del message

        await self._app(scope, receive, lose)
        await send({"type": "http.response.start", "status": 502, "headers": [(b"content-length", b"0")]})
        await send({"type": "http.response.body", "body": b""})


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
