"""The head of a request: headers that count once, and what they say of the body that follows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from runmemory_core.errors import MalformedBody

_ONCE = (b"host", b"authorization", b"origin")
"""With two of these, a proxy may go by one and the service by the other."""


def headers_of(scope: Mapping[str, Any]) -> dict[bytes, bytes]:
    """The headers by name; raises `MalformedBody` when one that says who calls whom is there twice."""
    listed: list[tuple[bytes, bytes]] = list(scope["headers"])
    headers = dict(listed)
    if len(headers) != len(listed):
        names = [name for name, _ in listed]
        if twice := [name.decode().title() for name in _ONCE if names.count(name) > 1]:
            raise MalformedBody(f"the header {twice[0]} is there more than once: send it once")
    return headers


def declared_bytes(headers: Mapping[bytes, bytes]) -> int:
    """The Content-Length, which the server has checked to be a number; 0 when there is none."""
    return int(headers.get(b"content-length", b"0"))


def is_gzip(headers: Mapping[bytes, bytes], *, accepted: bool) -> bool:
    """Whether the body is compressed; raises `MalformedBody` unless it is plain, or gzip where that is accepted."""
    encoding = headers.get(b"content-encoding", b"identity").lower()
    if encoding != b"identity" and not (accepted and encoding == b"gzip"):
        raise MalformedBody("the body is compressed, which is not understood here: send plain JSON")
    return encoding == b"gzip"
