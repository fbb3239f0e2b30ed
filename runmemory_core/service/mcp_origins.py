"""Which Host and Origin headers `/mcp` answers to.

A web page can have a browser send requests to this machine under a name of its own. Without a configuration a
service that listens on this machine only therefore answers to this machine's names only.
"""

from __future__ import annotations

from urllib.parse import urlsplit

from runmemory_core.errors import WrongOrigin
from runmemory_core.service.settings import Settings

LOOPBACK = frozenset({"127.0.0.1", "localhost", "::1"})
_ANY = "*"


def check_host(header: bytes, settings: Settings) -> None:
    """Raise `WrongOrigin` unless the Host header names this service."""
    if _local_only(settings.allowed_hosts, settings):
        allowed = LOOPBACK | _public_name(settings)
    elif not settings.allowed_hosts or _ANY in settings.allowed_hosts:
        return
    else:
        allowed = frozenset(settings.allowed_hosts) | _public_name(settings)
    host = header.decode("latin-1").lower()
    if host not in allowed and _name_in(f"//{host}") not in allowed:
        raise WrongOrigin(
            "this service was not told that it has the name in the Host header: set RUNMEMORY_ALLOWED_HOSTS "
            "to it, or to * for any name"
        )


def check_origin(header: bytes | None, settings: Settings) -> None:
    """Raise `WrongOrigin` for a web page that may not call; other programs send no Origin."""
    if not header:
        return
    origin = header.decode("latin-1").lower()
    if settings.public_url is not None and origin == _origin_of(settings.public_url):
        return
    if _local_only(settings.allowed_origins, settings):
        allowed = _name_in(origin) in LOOPBACK
    elif not settings.allowed_origins or _ANY in settings.allowed_origins:
        return
    else:
        allowed = origin in settings.allowed_origins
    if not allowed:
        raise WrongOrigin(
            "web pages of this origin may not call this service: set RUNMEMORY_ALLOWED_ORIGINS to it, or to "
            "* for any"
        )


def _local_only(listed: tuple[str, ...], settings: Settings) -> bool:
    return not listed and settings.host in LOOPBACK


def _public_name(settings: Settings) -> frozenset[str]:
    """The name that proxies in front of the service have for it."""
    name = _name_in(settings.public_url or "")
    return frozenset({name} if name else ())


def _origin_of(url: str) -> str:
    parts = urlsplit(url.lower())
    return f"{parts.scheme}://{parts.netloc}"


def _name_in(url: str) -> str | None:
    try:
        return urlsplit(url).hostname
    except ValueError:
        return None
