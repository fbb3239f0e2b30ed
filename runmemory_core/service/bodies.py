"""Request bodies: counted while they arrive, so that no header can lie about them, and read as JSON.

How long a body may take is watched elsewhere (`runmemory_core.service.server`): a client that is too slow
is disconnected.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Any

from pydantic_core import from_json
from starlette.requests import ClientDisconnect
from starlette.types import Receive

from runmemory_core.errors import BodyTooLarge, MalformedBody
from runmemory_core.policy.json_rules import parse

_ENVELOPE_DEPTH = 200
_DRAINED_BYTES = 32 * 1_024 * 1_024
_DRAINED_SECONDS = 2.0


async def read_body(receive: Receive, *, limit: int, declared: int | None, path: str) -> bytes:
    """The whole body; raises `BodyTooLarge` as soon as it is known to be too large."""
    if declared is not None and declared > limit:
        raise _too_large(declared, limit, path)
    message = await receive()
    if message["type"] == "http.disconnect":
        raise ClientDisconnect
    body: bytes = message["body"]
    if not message.get("more_body"):
        if len(body) > limit:
            raise _too_large(len(body), limit, path)
        return body
    pieces = [body]
    size = len(body)
    while size <= limit and message.get("more_body"):
        message = await receive()
        if message["type"] == "http.disconnect":
            raise ClientDisconnect
        pieces.append(message["body"])
        size += len(pieces[-1])
    if size > limit:
        raise _too_large(size, limit, path)
    return b"".join(pieces)


async def drain(receive: Receive) -> None:
    """Read on for a little while: a client that is still sending may not look at the answer before it has sent."""
    drained = 0
    with suppress(TimeoutError):
        async with asyncio.timeout(_DRAINED_SECONDS):
            while drained < _DRAINED_BYTES:
                message = await receive()
                if not message.get("more_body"):
                    return
                drained += len(message["body"])


def read_json(body: bytes, *, deep: bool) -> dict[str, Any]:
    """The arguments in a body, of which none means no arguments.

    ``deep`` looks for numbers out of bounds everywhere; otherwise whoever reads the arguments does.
    """
    if not body:
        return {}
    try:
        arguments = from_json(body, allow_inf_nan=False)
    except ValueError:
        arguments = None
    if arguments is None or deep:
        arguments = parse(body, max_depth=_ENVELOPE_DEPTH)
    if not isinstance(arguments, dict):
        kind = type(arguments).__name__
        raise MalformedBody(f"the body is a JSON {kind}; an object such as {{"run_id": "invoice-import"}} is needed")
    return arguments


def _too_large(size: int, limit: int, path: str) -> BodyTooLarge:
    return BodyTooLarge(
        f"the body is {size:,} bytes or more; the limit of {path} is {limit:,}: keep large results elsewhere "
        "and save their ids",
        size=size,
        limit=limit,
    )
