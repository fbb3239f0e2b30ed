"""Which texts are JSON-RPC messages, for both faces of MCP, and what the others are answered.

The SDK answers some malformed messages with its validator's text, which quotes them, and others not at all: it
is given none of them. Belongs here: the shape of the envelope. What carries it is `mcp_endpoint`'s and `mcp_stdio`'s,
what a call does `mcp_tools`'.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, cast

from mcp_types import INVALID_PARAMS, INVALID_REQUEST, PARSE_ERROR
from pydantic_core import from_json

from runmemory_core.errors import InvalidJson, InvalidRequest, MalformedBody, RunMemoryError
from runmemory_core.operations.wire import write
from runmemory_core.policy.json_rules import MAX_EXACT_INTEGER, canonical, read_laxly
from runmemory_core.service.bodies import ENVELOPE_DEPTH

_ARGUMENTS = "/params/arguments"

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


@dataclass(frozen=True, slots=True)
class Incoming:
    """A message, as the SDK is given it."""

    text: bytes
    answers_nothing: bool = False
    """It is an answer to a question that was never asked, and not for the SDK."""
    refusal: RunMemoryError | None = None
    """What the result of this tool call is, whatever the tool; its arguments were taken out."""


def message_in(text: bytes) -> Incoming:
    """The one message that a text is; raises `Misfit`."""
    try:
        message: Any = from_json(text)
    except ValueError as error:
        lax, refusal = read_laxly(text, max_depth=ENVELOPE_DEPTH, cause=str(error))
        return _refused_call(lax, refusal)
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
    if fields.get("params", 0) is None:
        del fields["params"]  # null counts as absent, except for the SDK
        text = write(fields).encode()
    if not isinstance(fields.get("params", {}), dict):
        words = 'params must be an object, such as {"name": "resume", "arguments": {...}}'
        raise _no_message(words, number)
    _check_arguments(fields, number)
    return Incoming(text, answers_nothing=bool(is_answer))


def _refused_call(lax: Any, refusal: RunMemoryError) -> Incoming:
    """A tool call with arguments that JSON cannot hold, which its result says; raises `Misfit` for what else it is."""
    match lax:
        case {
            "method": "tools/call",
            "id": int() | str() as number,
            "params": {"arguments": dict()} as params,
        }:
            sound: dict[str, Any] = lax | {"params": params | {"arguments": {}}}
            with suppress(InvalidJson):
                return Incoming(canonical(sound).text.encode(), refusal=_within_arguments(refusal))
        case {"id": int() | str() as number}:
            pass
        case _:
            number = None
    known = (
        number.isascii()
        if isinstance(number, str)
        else number is not None and abs(number) <= MAX_EXACT_INTEGER
    )
    raise Misfit(PARSE_ERROR, refusal, number=number if known else None)


def _within_arguments(refusal: RunMemoryError) -> RunMemoryError:
    """The refusal with the pointers that the tool would have given."""
    detail = refusal.detail.removeprefix(_ARGUMENTS)
    pointers = {pointer.removeprefix(_ARGUMENTS): words for pointer, words in refusal.pointers.items()}
    return InvalidJson(f"arguments{detail}" if detail.startswith(" ") else detail, pointers=pointers)


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
        pointers={_ARGUMENTS: "a JSON object is needed"},
    )
    raise Misfit(INVALID_PARAMS, error, number=number, status=HTTPStatus.OK)
