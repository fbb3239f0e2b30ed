"""`/mcp` over HTTP: what makes every client's requests acceptable to the MCP SDK, and the SDK's answers to them.

Clients in use send odd Accept headers, no content type, trailing spaces, session ids of servers long gone; many
of them turn an unexpected 401, 404 or redirect into an OAuth flow or wait for minutes. Belongs here: methods,
headers, CORS, who asks. The shape of a message is `mcp_messages`', what a call does `mcp_tools`'.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from http import HTTPStatus
from typing import Any

from mcp.server.lowlevel.server import Server
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp_types import INTERNAL_ERROR, INVALID_REQUEST
from starlette.requests import ClientDisconnect
from starlette.types import Message, Receive, Scope, Send

from runmemory_core.errors import RunMemoryError
from runmemory_core.service.addresses import reached_at
from runmemory_core.service.answers import (
    JSON,
    Headers,
    answer,
    discreet,
    fault,
    refusal_headers,
    while_stopping,
)
from runmemory_core.service.bodies import read_body
from runmemory_core.service.cors import preflight, with_cors
from runmemory_core.service.heads import declared_bytes, headers_of, is_gzip
from runmemory_core.service.mcp_messages import Misfit, error_body, message_in
from runmemory_core.service.mcp_origins import check_host, check_origin
from runmemory_core.service.mcp_tools import Asker, Context, tool_server
from runmemory_core.service.rest import LARGE_BYTES, Engine

PATH = "/mcp"
PATHS = frozenset({PATH, f"{PATH}/"})

_METHODS = b"POST, OPTIONS"
_UNNEEDED = frozenset({b"accept", b"content-type", b"content-length", b"mcp-session-id", b"last-event-id"})
_ACCEPTABLE: Headers = [
    (b"accept", b"application/json, text/event-stream"),
    (b"content-type", b"application/json"),
]
_EVENTS = (b"content-type", b"text/event-stream")
_ASKER = "runmemory.asker"


class McpEndpoint:
    """The ASGI application at `PATHS`; it answers while `running`.

    ``server`` is another than that of the five tools, for judging the endpoint by itself.
    """

    def __init__(self, engine: Engine, *, server: Server[Any] | None = None) -> None:
        self._engine = engine
        self._manager = StreamableHTTPSessionManager(
            server or tool_server(engine, _asker),
            json_response=True,
            stateless=True,
            max_request_body_size=engine.settings.run_body_bytes,
        )

    @asynccontextmanager
    async def running(self) -> AsyncGenerator[None]:
        """Carry calls until the block ends."""
        async with self._manager.run():
            yield

    async def __call__(self, scope: Scope, receive: Receive, send: Send, *, stopping: bool = False) -> None:
        send = with_cors(send)
        scope = dict(scope) | {"headers": [(name, value.strip()) for name, value in scope["headers"]]}
        try:
            headers = headers_of(scope)
            if _events_only(headers.get(b"accept", b"")):
                send = _as_event(send)
            if scope["method"] == "OPTIONS":
                await preflight(send, headers, methods=_METHODS)
            elif scope["method"] != "POST":
                await _refuse_method(send)
            else:
                if stopping:
                    raise while_stopping()
                await self._post(scope, receive, send, headers)
        except ClientDisconnect:
            pass  # nobody is left to answer
        except Misfit as misfit:
            await answer(send, misfit.answer, status=misfit.status)
        except RunMemoryError as error:
            await _refuse(send, discreet(error, where=self._engine.store.where))
        except Exception as error:  # noqa: BLE001 - the last floor: whatever it is, it gets an answer and a log entry
            await _refuse(send, fault(error))

    async def _post(
        self, scope: dict[str, Any], receive: Receive, send: Send, headers: Mapping[bytes, bytes]
    ) -> None:
        engine = self._engine
        check_host(headers.get(b"host", b""), engine.settings)
        check_origin(headers.get(b"origin"), engine.settings)
        caller = await engine.authenticator.caller(scope, headers)
        is_gzip(headers, accepted=False)
        limit = engine.settings.run_body_bytes
        body = bytes(await read_body(receive, limit=limit, declared=declared_bytes(headers), path=PATH))
        if len(body) < LARGE_BYTES:
            incoming = message_in(body)
        else:
            incoming = await asyncio.get_running_loop().run_in_executor(engine.threads, message_in, body)
        if incoming.answers_nothing:
            await answer(send, b"", status=HTTPStatus.ACCEPTED)
            return
        where = reached_at(scope, headers, engine.settings)
        kept = [header for header in scope["headers"] if header[0] not in _UNNEEDED]
        prepared = scope | {
            "headers": [*kept, *_ACCEPTABLE, (b"content-length", str(len(incoming.text)).encode())],
            _ASKER: Asker(caller, len(body), where, refusal=incoming.refusal),
        }
        await self._manager.handle_request(prepared, _replay(incoming.text, receive), send)


def _asker(context: Context) -> Asker:
    """Who sent the very message that is answered: the SDK keeps the request beside it."""
    assert context.request is not None
    return context.request.scope[_ASKER]


def _events_only(accept: bytes) -> bool:
    kinds = {kind.partition(b";")[0].strip().lower() for kind in accept.split(b",")}
    return b"text/event-stream" in kinds and kinds <= {b"text/event-stream", b""}


# --- answers ----------------------------------------------------------------------------------------------


def _as_event(send: Send) -> Send:
    """Answers of one piece as one event of a stream; others, and refusals of HTTP, as they are."""
    held: Message | None = None

    async def as_event(message: Message) -> None:
        nonlocal held
        if message["type"] == "http.response.start":
            held = message
            return
        start, held = held, None
        if start is None or start["status"] != HTTPStatus.OK or JSON not in start["headers"]:
            await _both(send, start, message)
            return
        body = b"event: message\r\ndata: " + message["body"] + b"\r\n\r\n"
        await answer(send, body, headers=[_EVENTS, (b"cache-control", b"no-store")])

    return as_event


async def _both(send: Send, start: Message | None, message: Message) -> None:
    if start is not None:
        await send(start)
    await send(message)


def _replay(body: bytes, receive: Receive) -> Receive:
    message: Message | None = {"type": "http.request", "body": body, "more_body": False}

    async def replay() -> Message:
        nonlocal message
        if message is None:
            return await receive()
        sent, message = message, None
        return sent

    return replay


async def _refuse_method(send: Send) -> None:
    words = "this path takes JSON-RPC by POST; it keeps no session and streams nothing"
    body = error_body(INVALID_REQUEST, words, {})
    await answer(send, body, status=HTTPStatus.METHOD_NOT_ALLOWED, headers=[JSON, (b"allow", _METHODS)])


async def _refuse(send: Send, error: RunMemoryError) -> None:
    """Answer with a JSON-RPC error, which is what clients of this path show, and the problem in its data."""
    status = error.http_status
    code = INTERNAL_ERROR if status >= HTTPStatus.INTERNAL_SERVER_ERROR else INVALID_REQUEST
    body = error_body(code, error.detail, error.to_problem())
    await answer(send, body, status=status, headers=[JSON, *refusal_headers(error)])
