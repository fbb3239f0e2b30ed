"""Which texts are JSON-RPC messages, for both faces of MCP, and what the others are answered.

The SDK answers some malformed messages with its validator's text, which quotes them, and others not at all: it
is given none of them. Belongs here: the shape of the envelope. What carries it is `mcp_endpoint`'s and `mcp_stdio`'s,
what a call does `mcp_tools`'.
"""

from __future__ import annotations

from collections.abc import Mapping
from http import HTTPStatus
from typing import Any, cast

from mcp_types import INVALID_PARAMS, INVALID_REQUEST, PARSE_ERROR
from pydantic_core import from_json

from runmemory_core.errors import InvalidRequest, MalformedBody, RunMemoryError
from runmemory_core.operations.wire import write
from runmemory_core.policy.json_rules import read_laxly
from runmemory_core.service.bodies import ENVELOPE_DEPTH

Number = int | str | None
"""The id of a message; None where there is none, or none that can be told."""


class Misfit(Exception):
    """A text that the SDK is not given, with what it is answered."""

    def __init__(
        self, code: int, error: RunMemoryError, *, number: Number, status: int = HTTPStatus.BAD_REQUEST
    ) -> None:
        super().__init__(error.detail)
        self.status = status
        self.answer = error_body(code, error.detail, error.to_problem(), number=number)


def error_body(code: int, message: str, problem: Mapping[str, Any], *, number: Number = None) -> bytes:
    """A JSON-RPC error, which clients show, with the problem for programs in its data."""
    error = {"code": code, "message": message} | ({"data": dict(problem)} if problem else {})
    return write({"jsonrpc": "2.0", "id": number, "error": error}).encode()


def message_in(text: bytes) -> dict[str, Any]:
    """The one message that a text is; raises `Misfit`."""
    try:
        message: Any = from_json(text)
    except ValueError as error:
        _, refusal = read_laxly(text, max_depth=ENVELOPE_DEPTH, cause=str(error))
        raise Misfit(PARSE_ERROR, refusal, number=None) from None
    if isinstance(message, list):
        raise _no_message("a batch is not accepted: send each JSON-RPC message by itself")
    if not isinstance(message, dict):
        raise _no_message('this is no JSON-RPC message: an object with jsonrpc "2.0" is needed')
    fields = cast("dict[str, Any]", message)
    number = _number_of(fields)
    if fields.get("jsonrpc") != "2.0":
        raise _no_message('jsonrpc is missing or not "2.0": send a JSON-RPC 2.0 message', number)
    if "id" in fields and number is None:
        raise _no_message("id must be a string or an integer; without id the message is a notification")
    is_answer = "method" not in fields and {"result", "error"} & fields.keys()
    if not is_answer and not isinstance(fields.get("method"), str):
        raise _no_message("method must be a string, such as tools/call", number)
    if not isinstance(fields.get("params", {}), dict):
        words = 'params must be an object, such as {"name": "resume", "arguments": {...}}'
        raise _no_message(words, number)
    _check_arguments(fields, number)
    return fields


def answers_nothing(message: Mapping[str, Any]) -> bool:
    """Whether it is an answer to a question that was never asked: it is taken and nothing is done."""
    return "method" not in message


def _number_of(fields: Mapping[str, Any]) -> Number:
    number = fields.get("id")
    return number if isinstance(number, int | str) and not isinstance(number, bool) else None


def _no_message(words: str, number: Number = None) -> Misfit:
    return Misfit(INVALID_REQUEST, MalformedBody(words), number=number)


def _check_arguments(fields: Mapping[str, Any], number: Number) -> None:
    """Raise `Misfit` for a tool call whose arguments are no object, where the SDK has no words for a model."""
    params: Mapping[str, Any] = fields.get("params") or {}
    arguments = params.get("arguments")
    if fields.get("method") != "tools/call" or arguments is None or isinstance(arguments, dict):
        return
    error = InvalidRequest(
        'arguments must be a JSON object, such as {"run_id": "invoice-import"}',
        pointers={"/params/arguments": "a JSON object is needed"},
    )
    raise Misfit(INVALID_PARAMS, error, number=number, status=HTTPStatus.OK)
