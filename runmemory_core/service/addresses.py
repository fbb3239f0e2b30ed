"""From where a call comes, which stands for its caller when there is no key, and at which address it arrived.

Behind a proxy everybody has the proxy's address, and calls it by another name: proxies that are configured are
asked for whom they call and at which address. What anybody else says of it is not believed.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Mapping, Sequence
from typing import Any

from runmemory_core.service.settings import Network, Settings

_IPV6_NETWORK_BYTES = 8
"""A household or a server owns the other half of an IPv6 address."""

Address = ipaddress.IPv4Address | ipaddress.IPv6Address

_HOST = re.compile(r"(?:\[(?P<ipv6>[0-9A-Fa-f:.]+)\]|(?P<name>[0-9A-Za-z._-]+))(?::[0-9]{1,5})?")
_SCHEMES = frozenset({"http", "https"})


def address_of(scope: Mapping[str, Any], headers: Mapping[bytes, bytes], trusted: Sequence[Network]) -> bytes:
    """The bytes that tell one caller from another; empty for one without an address, such as a local socket."""
    client = scope.get("client")
    found = _parsed(client[0]) if client else None
    forwarded = headers.get(b"x-forwarded-for", b"").decode("latin-1").split(",")
    while found is not None and forwarded and any(found in network for network in trusted):
        # Each proxy appends whom it heard, so the last entry is what the nearest one says.
        before = _parsed(forwarded.pop().strip())
        if before is None:
            break
        found = before
    if found is None:
        return b""
    return found.packed if found.version == 4 else found.packed[:_IPV6_NETWORK_BYTES]


def reached_at(scope: Mapping[str, Any], headers: Mapping[bytes, bytes], settings: Settings) -> str:
    """The address of the service as this caller knows it, for everything that names it."""
    if settings.public_url is not None:
        return settings.public_url
    scheme, host = scope["scheme"], headers.get(b"host", b"").decode("latin-1")
    client = scope.get("client")
    nearest = _parsed(client[0]) if client else None
    if nearest is not None and any(nearest in network for network in settings.trusted_proxies):
        said = _last_of(headers, b"x-forwarded-proto").lower()
        scheme = said if said in _SCHEMES else scheme
        host = _last_of(headers, b"x-forwarded-host") or host
    if name_in(host) is None:
        # What is no name would be read as something else where it is put.
        name, port = scope.get("server") or (settings.host, settings.port)
        host = f"[{name}]:{port}" if ":" in name else f"{name}:{port}"
    return f"{scheme}://{host}"


def name_in(host: str) -> str | None:
    """The name or address in a host with or without a port; None for what is no host."""
    found = _HOST.fullmatch(host)
    return found and (found["ipv6"] or found["name"])


def _last_of(headers: Mapping[bytes, bytes], name: bytes) -> str:
    """What the nearest proxy says: each appends to what it was told."""
    return headers.get(name, b"").decode("latin-1").rpartition(",")[2].strip()


def _parsed(text: str) -> Address | None:
    try:
        found = ipaddress.ip_address(text.strip("[]"))
    except ValueError:
        return None
    return found.ipv4_mapped or found if isinstance(found, ipaddress.IPv6Address) else found
