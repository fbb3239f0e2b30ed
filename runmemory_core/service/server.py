"""Running the application under uvicorn: the socket, the start message, slow clients, and a graceful stop."""

from __future__ import annotations

import asyncio
import signal
import socket
import time
from collections.abc import Callable, Iterable
from types import FrameType
from typing import cast

import uvicorn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

from runmemory_core.errors import MalformedBody, RunMemoryError
from runmemory_core.operations.wire import write
from runmemory_core.policy.secret_formats import masked_url
from runmemory_core.service.app import Service, create_app
from runmemory_core.service.settings import Settings
from runmemory_core.store import open_store

_TICKS_A_SECOND = 10
_BACKLOG = 2_048
_STOP_SECONDS = 30.0


def serve(settings: Settings, *, announce: Callable[[str], None]) -> None:
    """Serve until SIGTERM or SIGINT; ``announce`` is told where in one line, once calls are answered.

    Raises `RunMemoryError` when the store cannot be opened or the address cannot be had.
    """
    store = open_store(settings.database)
    try:
        listener = _listen(settings.host, settings.port)
        app = create_app(store, settings)
        server = _Server(app, settings)
        where = _url(listener)
        server.announce = lambda: announce(
            f"Run Memory listens on {where} and stores in {store.where}; to issue a key: "
            f"runmemory keys issue --database {masked_url(settings.database)}"
        )
        server.run(sockets=[listener])
    finally:
        store.close()


def _listen(host: str, port: int) -> socket.socket:
    try:
        family, _, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        return socket.create_server((str(address[0]), port), family=family, backlog=_BACKLOG)
    except OSError as error:
        reason = (error.strerror or str(error)).partition(" (")[0]
        raise RunMemoryError(
            f"cannot listen on {host}:{port}: {reason}; name another --host, or --port 0 for any free one"
        ) from None


def _url(listener: socket.socket) -> str:
    host, port = listener.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


class _Protocol(HttpToolsProtocol):
    """uvicorn's, with a count of what arrived, and its refusal in the form of all others."""

    received_bytes = 0

    def data_received(self, data: bytes) -> None:
        self.received_bytes += len(data)
        super().data_received(data)

    def send_400_response(self, msg: str) -> None:
        del msg
        error = MalformedBody("this is no HTTP request: its head is malformed, or a length in it is not true")
        body = write(error.to_problem())
        self.transport.write(
            "HTTP/1.1 400 Bad Request\r\ncontent-type: application/problem+json\r\nconnection: close\r\n"
            f"content-length: {len(body)}\r\n\r\n{body}".encode()
        )
        self.transport.close()


class _Patience:
    """Disconnects clients that keep the service waiting: for a head, for a body, between two requests."""

    def __init__(self, settings: Settings) -> None:
        self._seconds = settings.patience_seconds
        self._body_bytes_a_second = settings.body_bytes_a_second
        # What each waits for -> since when, and how much had arrived by then.
        self._waiting: dict[tuple[_Protocol, RequestResponseCycle | None, bool], tuple[float, int]] = {}

    def disconnect_slow(self, connections: Iterable[_Protocol], *, now_seconds: float) -> None:
        waiting, self._waiting = self._waiting, {}
        for connection in connections:
            cycle = cast("RequestResponseCycle | None", connection.cycle)
            between = cycle is None or cycle.response_complete
            if not between and cycle is not None and not cycle.more_body:
                continue  # it waits for us
            key = (connection, cycle, between)
            since, received = waiting.get(key, (now_seconds, connection.received_bytes))
            earned = 0 if between else (connection.received_bytes - received) / self._body_bytes_a_second
            if now_seconds - since > self._seconds + earned:
                connection.transport.close()
            else:
                self._waiting[key] = (since, received)


class _Server(uvicorn.Server):
    """uvicorn's server that finishes what it accepted before it stops, and then exits with 0."""

    def __init__(self, app: Service, settings: Settings) -> None:
        config = uvicorn.Config(
            app,
            http=_Protocol,
            ws="none",
            lifespan="on",
            log_config=None,
            access_log=settings.access_log,
            server_header=False,
            proxy_headers=False,
            timeout_keep_alive=int(settings.patience_seconds),
            timeout_graceful_shutdown=int(settings.patience_seconds),
        )
        super().__init__(config)
        self.announce: Callable[[], None] = lambda: None
        self._app = app
        self._patience = _Patience(settings)

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if self.started:
            self.announce()

    async def on_tick(self, counter: int) -> bool:
        if counter % _TICKS_A_SECOND == 0:
            self._disconnect_slow()
        return await super().on_tick(counter)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        # uvicorn would note the signal, and end the process by raising it again after a graceful stop.
        del frame
        self.force_exit = self.should_exit and sig == signal.SIGINT
        self.should_exit = True
        self._app.stopping = True

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        under_way = set(self.server_state.tasks)
        deadline = time.monotonic() + _STOP_SECONDS
        while under_way and not self.force_exit and time.monotonic() < deadline:
            _, under_way = await asyncio.wait(under_way, timeout=1 / _TICKS_A_SECOND)
            self._disconnect_slow()
        await super().shutdown(sockets)

    def _disconnect_slow(self) -> None:
        connections = cast("Iterable[_Protocol]", list(self.server_state.connections))
        self._patience.disconnect_slow(connections, now_seconds=time.monotonic())
