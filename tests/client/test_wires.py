"""What an MCP answer becomes in a client: a reply, or the exception that the service described."""

from __future__ import annotations

import json
from typing import Any

import pytest

from runmemory_core.errors import RunMemoryError, StaleAttempt, Unauthorized
from runmemory_core.operations.calls import prepare
from runmemory_core.transports.retries import Answer
from runmemory_core.transports.wires import MCP

URL = "https://h"


def read(body: Any, status: int = 200) -> Any:
    sent = body if isinstance(body, bytes) else json.dumps(body).encode()
    return MCP.read(Answer(status, {}, sent), URL)


def test_a_call_is_one_tool_call_with_its_arguments_as_they_were_prepared() -> None:
    call = prepare("save_checkpoint", {"run_id": "r", "step": "s", "state": {"n": 12345678901234567890123}})
    path, headers, body = MCP.request(call)
    sent = json.loads(body)
    assert path == "/mcp"
    assert (headers["mcp-method"], headers["mcp-name"]) == (sent["method"], sent["params"]["name"])
    assert sent["params"]["arguments"]["state"] == {"n": 12345678901234567890123}


def test_a_result_is_the_reply() -> None:
    assert read({"result": {"structuredContent": {"code": "saved"}}}) == {"code": "saved"}


def test_a_refusal_becomes_its_exception() -> None:
    problem = StaleAttempt("stop", current_attempt=3).to_problem()
    with pytest.raises(StaleAttempt) as refusal:
        read({"result": {"isError": True, "_meta": {"runmemory/problem": problem}}})
    assert refusal.value.facts == {"current_attempt": 3}


def test_a_refusal_of_the_whole_message_becomes_its_exception() -> None:
    with pytest.raises(Unauthorized):
        read({"error": {"code": -32600, "message": "no", "data": Unauthorized("no").to_problem()}}, 401)


def test_an_error_of_the_protocol_keeps_its_words() -> None:
    with pytest.raises(RunMemoryError, match="https://h refused the call: unknown"):
        read({"error": {"code": -32601, "message": "unknown"}})


@pytest.mark.parametrize("body", [b"<html>", b"[]", b"{}", b'{"result": {"content": []}}'])
def test_an_answer_of_something_else_asks_for_the_url(body: bytes) -> None:
    with pytest.raises(RunMemoryError, match="is the URL right"):
        read(body, 404)
