"""`/mcp` over HTTP: what makes every client's requests acceptable to the MCP SDK, and the SDK's answers to them.

Clients in use send odd Accept headers, no content type, trailing spaces, session ids of servers long gone; many
of them turn an unexpected 401, 404 or redirect into an OAuth flow or wait for minutes. Belongs here: methods,
headers, CORS, who asks, the shape of the envelope. What a call does is `mcp_tools`'.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from http import HTTPStatus
from typing import Any, cast

from mcp.server.lowlevel.server import Server
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp_types import INTERNAL_ERROR, INVALID_PARAMS, INVALID_REQUEST, PARSE_ERROR
from pydantic_core import from_json
from starlette.requests import ClientDisconnect
from starlette.types import Message, Receive, Scope, Send

from runmemory_core.errors import BodyTooLarge, InvalidJson, MalformedBody, RunMemoryError, Unavailable
from runmemory_core.operations.wire import write
from runmemory_core.policy.json_rules import parse
from runmemory_core.service.answers import JSON, Headers, answer, fault, refusal_headers, report
from runmemory_core.service.bodies import read_body
from runmemory_core.service.mcp_origins import check_host, check_origin
from runmemory_core.service.mcp_tools import Asker, Context, tool_server
from runmemory_core.service.rest import Engine

PATHS = frozenset({"/mcp", "/mcp/"})

_METHODS = (b"allow", b"POST, OPTIONS")
_CORS: Headers = [
    (b"access-control-allow-origin", b"*"),
    (b"access-control-expose-headers", b"WWW-Authenticate, Retry-After"),
]
_PREFLIGHT_HEADERS = (
    b"authorization, content-type, accept, mcp-protocol-version, mcp-method, mcp-name, mcp-session-id"
)
_UNNEEDED = frozenset({b"accept", b"content-type", b"content-length", b"mcp-session-id", b"last-event-id"})
_ACCEPTABLE: Headers = [
    (b"accept", b"application/json, text/event-stream"),
    (b"content-type", b"application/json"),
]
_EVENTS = (b"content-type", b"text/event-stream")
_ENVELOPE_DEPTH = 200
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
        send = _with_cors(send)
        scope = dict(scope) | {"headers": [(name, value.strip()) for name, value in scope["headers"]]}
        headers: dict[bytes, bytes] = dict(scope["headers"])
        try:
            if scope["method"] == "OPTIONS":
                await _preflight(send, headers)
            elif scope["method"] != "POST":
                await _refuse_method(send)
            else:
                if stopping:
                    raise Unavailable(
                        "the service is stopping: send the call again in a moment", retry_after=1
                    )
                await self._post(scope, receive, send, headers)
        except ClientDisconnect:
            pass  # nobody is left to answer
        except RunMemoryError as error:
            report(error, where=self._engine.store.where)
            await _refuse(send, error)
        except Exception as error:  # noqa: BLE001 - the last floor: whatever it is, it gets an answer and a log entry
            await _refuse(send, fault(error))

    async def _post(
        self, scope: dict[str, Any], receive: Receive, send: Send, headers: Mapping[bytes, bytes]
    ) -> None:
        engine = self._engine
        check_host(headers.get(b"host", b""), engine.settings)
        check_origin(headers.get(b"origin"), engine.settings)
        # A header without a value is what a client sends whose key was never filled in: no credentials.
        given = {name: value for name, value in headers.items() if value or name != b"authorization"}
        caller = await engine.authenticator.caller(scope, given)
        if headers.get(b"content-encoding", b"identity") != b"identity":
            raise MalformedBody("the body is compressed, which is not understood here: send plain JSON")
        declared = int(headers.get(b"content-length", b"0"))
        limit = engine.settings.run_body_bytes
        body = bytes(await read_body(receive, limit=limit, declared=declared, path="/mcp"))
        message = _message_in(body)
        if (refusal := _misplaced_arguments(message)) is not None:
            await answer(send, refusal)
            return
        where = f"{scope['scheme']}://{headers.get(b'host', b'').decode('latin-1')}"
        kept = [header for header in scope["headers"] if header[0] not in _UNNEEDED]
        prepared = scope | {
            "headers": [*kept, *_ACCEPTABLE, (b"content-length", str(len(body)).encode())],
            _ASKER: Asker(caller, len(body), where),
        }
        if _events_only(headers.get(b"accept", b"")):
            send = _as_event(send)
        await self._manager.handle_request(prepared, _replay(body, receive), send)


def _asker(context: Context) -> Asker:
    """Who sent the very message that is answered: the SDK keeps the request beside it."""
    assert context.request is not None
    return context.request.scope[_ASKER]


def _message_in(body: bytes) -> dict[str, Any]:
    """The JSON-RPC message that a body is; raises `MalformedBody`, where the SDK's words would quote the body."""
    try:
        message: Any = from_json(body)
    except ValueError:
        message = parse(body, max_depth=_ENVELOPE_DEPTH)  # says what is wrong and where
    if isinstance(message, list):
        raise _NotOneMessage("a batch is not accepted: send each JSON-RPC message in a POST of its own")
    if not isinstance(message, dict):
        raise _NotOneMessage('the body is no JSON-RPC message: an object with jsonrpc "2.0" is needed')
    fields = cast("dict[str, Any]", message)
    if fields.get("jsonrpc") != "2.0":
        raise _NotOneMessage('jsonrpc is missing or not "2.0": send a JSON-RPC 2.0 message')
    number = fields.get("id", 0)
    if isinstance(number, bool) or not isinstance(number, int | str):
        raise _NotOneMessage("id must be a string or an integer; without id the message is a notification")
    # An answer to a question that was never asked has no method; the SDK acknowledges it.
    if not isinstance(fields.get("method"), str) and not {"result", "error"} & fields.keys():
        raise _NotOneMessage("method must be a string, such as tools/call")
    if not isinstance(fields.get("params", {}), dict):
        raise _NotOneMessage('params must be an object, such as {"name": "resume", "arguments": {...}}')
    return fields


def _misplaced_arguments(message: Mapping[str, Any]) -> bytes | None:
    """What to answer a tool call whose arguments are no object, where the SDK has no words for a model."""
    params: Mapping[str, Any] = message.get("params") or {}
    arguments = params.get("arguments")
    if message.get("method") != "tools/call" or arguments is None or isinstance(arguments, dict):
        return None
    words = 'arguments must be a JSON object, such as {"run_id": "invoice-import"}'
    return _error_body(INVALID_PARAMS, words, {}, number=message.get("id"))


class _NotOneMessage(MalformedBody):
    """JSON that is not one JSON-RPC message."""


def _events_only(accept: bytes) -> bool:
    kinds = {kind.partition(b";")[0].strip().lower() for kind in accept.split(b",")}
    return b"text/event-stream" in kinds and kinds <= {b"text/event-stream", b""}


# --- answers ----------------------------------------------------------------------------------------------


def _with_cors(send: Send) -> Send:
    async def with_cors(message: Message) -> None:
        if message["type"] == "http.response.start":
            message["headers"] = [*message["headers"], *_CORS]
        await send(message)

    return with_cors


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


async def _preflight(send: Send, headers: Mapping[bytes, bytes]) -> None:
    asked = headers.get(b"access-control-request-headers") or _PREFLIGHT_HEADERS
    allowed: Headers = [
        (b"access-control-allow-methods", b"POST, OPTIONS"),
        (b"access-control-allow-headers", asked),
        (b"access-control-max-age", b"86400"),
        _METHODS,
    ]
    await send({"type": "http.response.start", "status": HTTPStatus.NO_CONTENT, "headers": allowed})
    await send({"type": "http.response.body", "body": b""})


async def _refuse_method(send: Send) -> None:
    words = "this path takes JSON-RPC by POST; it keeps no session and streams nothing"
    body = _error_body(INVALID_REQUEST, words, {})
    await answer(send, body, status=HTTPStatus.METHOD_NOT_ALLOWED, headers=[JSON, _METHODS])


async def _refuse(send: Send, error: RunMemoryError) -> None:
    """Answer with a JSON-RPC error, which is what clients of this path show, and the problem in its data."""
    status = error.http_status
    match error:
        case InvalidJson():
            code, status = PARSE_ERROR, HTTPStatus.BAD_REQUEST
        case _NotOneMessage() | BodyTooLarge():
            code = INVALID_REQUEST
        case MalformedBody():
            code = PARSE_ERROR
        case _:
            code = INTERNAL_ERROR if status >= HTTPStatus.INTERNAL_SERVER_ERROR else INVALID_REQUEST
    body = _error_body(code, error.detail, error.to_problem())
    await answer(send, body, status=status, headers=[JSON, *refusal_headers(error)])


def _error_body(
    code: int, message: str, problem: Mapping[str, Any], *, number: int | str | None = None
) -> bytes:
    error = {"code": code, "message": message} | ({"data": dict(problem)} if problem else {})
    return write({"jsonrpc": "2.0", "id": number, "error": error}).encode()
