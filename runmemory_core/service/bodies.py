"""Request bodies: counted while they arrive, so that no header can lie about them, and read as JSON.

How long a body may take is watched in `runmemory_core.service.server`, which disconnects slow clients. What
is still under way when a body was refused is thrown away there, for as long as that patience lasts.
"""

from __future__ import annotations

import zlib
from typing import Any, cast

from pydantic_core import from_json
from starlette.requests import ClientDisconnect
from starlette.types import Receive

from runmemory_core.errors import BodyTooLarge, MalformedBody
from runmemory_core.policy.json_rules import parse, read_laxly

ENVELOPE_DEPTH = 200
"""The nesting that is read at all; each state in an envelope has a bound of its own."""
_GZIP_ONLY = 16 + zlib.MAX_WBITS


async def read_body(receive: Receive, *, limit: int, declared: int, path: str) -> bytes | bytearray:
    """The whole body; raises `BodyTooLarge` as soon as it is known to be, and `ClientDisconnect`."""
    _check_size(declared, limit, path)
    body, more = await _piece(receive)
    _check_size(len(body), limit, path)
    if not more:
        return body
    pieces = bytearray(body)
    while more:
        body, more = await _piece(receive)
        pieces += body
        _check_size(len(pieces), limit, path)
    return pieces


async def _piece(receive: Receive) -> tuple[bytes, bool]:
    message = await receive()
    if message["type"] == "http.disconnect":
        raise ClientDisconnect
    return message["body"], message.get("more_body", False)


def _check_size(size: int, limit: int, path: str) -> None:
    if size > limit:
        raise BodyTooLarge(
            f"the body has at least {size:,} bytes; the limit of {path} is {limit:,}: keep large results "
            "elsewhere and save their ids",
            size=size,
            limit=limit,
        )


def gunzip(body: bytes | bytearray, *, limit: int, path: str) -> bytes:
    """The content of a gzip body; no more than ``limit`` bytes of it are ever made."""
    unpacker = zlib.decompressobj(_GZIP_ONLY)
    try:
        content = unpacker.decompress(body, limit + 1)
    except zlib.error:
        raise MalformedBody(
            "the body is not the gzip that its Content-Encoding says: send plain JSON"
        ) from None
    _check_size(len(content), limit, path)
    if not unpacker.eof or unpacker.unused_data:
        raise MalformedBody(
            "the gzip body ends too early, or something follows it: send it whole, or plain JSON"
        )
    return content


def read_json(body: bytes | bytearray, *, deep: bool) -> dict[str, Any]:
    """The arguments in a body, where an empty one holds none.

    ``deep`` looks everywhere for numbers out of bounds, which otherwise whoever reads the arguments does.
    """
    if not body:
        return {}
    try:
        arguments: Any = (
            parse(bytes(body), max_depth=ENVELOPE_DEPTH) if deep else from_json(body, allow_inf_nan=False)
        )
    except ValueError as error:
        raise read_laxly(bytes(body), max_depth=ENVELOPE_DEPTH, cause=str(error))[1] from None
    if not isinstance(arguments, dict):
        raise MalformedBody('the body is JSON but no object; one like {"run_id": "invoice-import"} is needed')
    return cast("dict[str, Any]", arguments)
