"""How a call is put to a service and its answer read: as an operation's own POST, or as an MCP tool call.

Pure: what is sent and what came back; `http` carries it. MCP here is the revision of 2026-07-28, in which a call
is one POST without a session, so it needs no SDK.
"""

from __future__ import annotations

import gzip
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, cast

from pydantic_core import from_json

from runmemory_core.errors import InvalidRequest, RunMemoryError, from_problem
from runmemory_core.model import KIB, Reply
from runmemory_core.operations import agents
from runmemory_core.operations.calls import Call
from runmemory_core.operations.wire import raw, write, write_call
from runmemory_core.transports.retries import Answer, Read, not_ours, read_reply

COMPRESSED_FROM_BYTES = 16 * KIB
_FASTEST = 1
MCP_REVISION = "2026-07-28"
_META = "io.modelcontextprotocol/"


class Request(NamedTuple):
    """What to POST below the address of the service."""

    path: str
    headers: Mapping[str, str]
    body: bytes


@dataclass(frozen=True, slots=True)
class Wire:
    """One way to put calls and read answers."""

    request: Callable[[Call], Request]
    read: Read


def _rest_request(call: Call) -> Request:
    body = write_call(call)
    if call.operation.group == "store" and len(body) >= COMPRESSED_FROM_BYTES:
        # What an adapter sends much of; the service takes compressed bodies at its store paths only.
        packed = gzip.compress(body, _FASTEST, mtime=0)
        return Request(call.operation.path, {"content-encoding": "gzip"}, packed)
    return Request(call.operation.path, {}, body)


def _mcp_request(call: Call) -> Request:
    name = call.operation.name
    if call.operation.group != "run":
        raise InvalidRequest(
            f"client.store.{name} needs HTTP: MCP carries the five tools only. Connect to https://host instead "
            "of mcp+https://host/mcp"
        )
    meta: dict[str, Any] = {f"{_META}protocolVersion": MCP_REVISION, f"{_META}clientCapabilities": {}}
    params: dict[str, Any] = {"name": name, "arguments": raw(write_call(call).decode()), "_meta": meta}
    headers = {
        "accept": "application/json, text/event-stream",
        "mcp-protocol-version": MCP_REVISION,
        "mcp-method": "tools/call",
        "mcp-name": name,
    }
    message: dict[str, Any] = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
    return Request("/mcp", headers, write(message).encode())


def _mcp_read(answer: Answer, where: str) -> Reply:
    try:
        message: Any = from_json(answer.body, allow_inf_nan=False)
    except ValueError:
        message = None
    match message:
        case {"result": {"_meta": {agents.PROBLEM_META: problem}}}:
            raise from_problem(problem)
        case {"result": {"structuredContent": reply}}:
            return cast("Reply", reply)
        case {"error": {"data": {"code": str(), "detail": str()} as problem}}:
            raise from_problem(cast("dict[str, Any]", problem))
        case {"error": {"message": str(words)}}:
            raise RunMemoryError(f"{where} refused the call: {words}")
        case _:
            raise not_ours(answer, where)


REST = Wire(_rest_request, read_reply)
MCP = Wire(_mcp_request, _mcp_read)
