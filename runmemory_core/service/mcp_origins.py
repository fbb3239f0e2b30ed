"""Which Host and Origin headers `/mcp` answers to.

A web page can have a browser send requests to this machine under a name of its own. Without a configuration a
service that listens on this machine only therefore answers to this machine's names only.
"""

from __future__ import annotations

import ipaddress
from urllib.parse import urlsplit

from runmemory_core.errors import WrongOrigin
from runmemory_core.service.addresses import name_in
from runmemory_core.service.settings import Settings

_ANY = "*"


def check_host(header: bytes, settings: Settings) -> None:
    """Raise `WrongOrigin` unless the Host header names this service."""
    listed = settings.allowed_hosts
    local_only = _local_only(listed, settings)
    if _ANY in listed or not (listed or local_only):
        return
    host = header.decode("latin-1").lower()
    name = name_in(host)
    named_so = name is not None and (
        not {host, name}.isdisjoint(listed)
        or name in {name_in(each) for each in listed if ":" not in each.rpartition("]")[2]}
        or name == _public_name(settings)
        or (local_only and _is_loopback(name))
    )
    if not named_so:
        raise WrongOrigin(
            "this service was not told that it has the name in the Host header: set RUNMEMORY_ALLOWED_HOSTS "
            "to it, or to * for any name"
        )


def check_origin(header: bytes | None, settings: Settings) -> None:
    """Raise `WrongOrigin` for a web page that may not call; other programs send no Origin."""
    listed = settings.allowed_origins
    local_only = _local_only(listed, settings)
    if not header or _ANY in listed or not (listed or local_only):
        return
    origin = header.decode("latin-1").lower()
    name = name_in(origin.partition("://")[2])
    may_call = (
        origin in listed
        or origin == _public_origin(settings)
        or (local_only and name is not None and _is_loopback(name))
    )
    if not may_call:
        raise WrongOrigin(
            "web pages of this origin may not call this service: set RUNMEMORY_ALLOWED_ORIGINS to it, or to "
            "* for any"
        )


def _local_only(listed: tuple[str, ...], settings: Settings) -> bool:
    return not listed and _is_loopback(settings.host)


def _is_loopback(name: str) -> bool:
    try:
        return ipaddress.ip_address(name).is_loopback
    except ValueError:
        return name.lower() == "localhost"


def _public_origin(settings: Settings) -> str | None:
    parts = urlsplit((settings.public_url or "").lower())
    return f"{parts.scheme}://{parts.netloc}" if parts.netloc else None


def _public_name(settings: Settings) -> str | None:
    """The name that proxies in front of the service have for it."""
    return name_in(urlsplit((settings.public_url or "").lower()).netloc)
