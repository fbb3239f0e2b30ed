"""What a web page of another origin may read: everything of `/mcp`, and that there is no OAuth here."""

from __future__ import annotations

from collections.abc import Mapping
from http import HTTPStatus

from starlette.types import Message, Send

from runmemory_core.service.answers import Headers

_ORIGINS: Headers = [
    (b"access-control-allow-origin", b"*"),
    (b"access-control-expose-headers", b"WWW-Authenticate, Retry-After"),
]
_USUAL_HEADERS = (
    b"authorization, content-type, accept, mcp-protocol-version, mcp-method, mcp-name, mcp-session-id"
)


def with_cors(send: Send) -> Send:
    """``send``, with what lets any page read the answer."""

    async def sending(message: Message) -> None:
        if message["type"] == "http.response.start":
            message["headers"] = [*message["headers"], *_ORIGINS]
        await send(message)

    return sending


async def preflight(send: Send, headers: Mapping[bytes, bytes], *, methods: bytes) -> None:
    """Answer a browser that asks whether a page may call with these methods and whatever headers it names."""
    asked = headers.get(b"access-control-request-headers") or _USUAL_HEADERS
    allowed: Headers = [
        (b"access-control-allow-methods", methods),
        (b"access-control-allow-headers", asked),
        (b"access-control-max-age", b"86400"),
        (b"allow", methods),
    ]
    await send({"type": "http.response.start", "status": HTTPStatus.NO_CONTENT, "headers": allowed})
    await send({"type": "http.response.body", "body": b""})
