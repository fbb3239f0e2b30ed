"""JSON-RPC over HTTP as clients of each MCP revision send it, without any SDK."""

from __future__ import annotations

import json
from collections.abc import Mapping
from itertools import count
from typing import Any

from tests.service.serving import Answer, Service

HANDSHAKE = ("2025-06-18", "2025-11-25")
MODERN = "2026-07-28"
REVISIONS = (*HANDSHAKE, MODERN)

_ENVELOPE = {
    "io.modelcontextprotocol/protocolVersion": MODERN,
    "io.modelcontextprotocol/clientCapabilities": {},
    "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
}
_numbers = count(1)


def message(method: str, params: Mapping[str, Any] | None = None, *, revision: str) -> dict[str, Any]:
    """A request of this revision."""
    sent = dict(params or {})
    if revision == MODERN:
        sent["_meta"] = _ENVELOPE
    return {"jsonrpc": "2.0", "id": next(_numbers), "method": method, "params": sent}


def headers_for(sent: Mapping[str, Any], *, revision: str) -> dict[str, str]:
    """The headers that the revision asks for beside a message."""
    headers = {
        "accept": "application/json, text/event-stream",
        "content-type": "application/json",
        "mcp-protocol-version": revision,
    }
    if revision == MODERN:
        headers["mcp-method"] = sent["method"]
        if "name" in sent["params"]:
            headers["mcp-name"] = sent["params"]["name"]
    return headers


def post(
    service: Service,
    method: str,
    params: Mapping[str, Any] | None = None,
    *,
    revision: str = MODERN,
    headers: Mapping[str, str] | None = None,
    **more: Any,
) -> Answer:
    """One message to /mcp, with nothing said about who asks unless ``key`` is given."""
    sent = message(method, params, revision=revision)
    named = headers_for(sent, revision=revision) | dict(headers or {})
    return service.ask("POST", "/mcp", sent, headers=named, **more)


def call(service: Service, name: str, arguments: Mapping[str, Any], **more: Any) -> dict[str, Any]:
    """The result of a tool call, with the service's key unless ``key`` is given."""
    params = {"name": name, "arguments": dict(arguments)}
    more = {"key": service.key} | more
    answer = post(service, "tools/call", params, **more)
    assert answer.status == 200, answer.body
    return answer.json["result"]


def shown(result: Mapping[str, Any]) -> dict[str, Any]:
    """What a model sees of a result that is no error; text and structure have to agree."""
    assert result.get("isError") is not True, result
    (content,) = result["content"]
    assert json.loads(content["text"]) == result["structuredContent"]
    return result["structuredContent"]


def refused(result: Mapping[str, Any]) -> str:
    """The words of a refusal, which has nothing but text."""
    assert result["isError"] is True, result
    assert "structuredContent" not in result
    (content,) = result["content"]
    assert content["type"] == "text"
    return content["text"]
