"""From where a call without a key comes: the address that stands for its caller, never kept as it is.

Behind a proxy everybody has the proxy's address, so those that are configured are asked for whom they call. What
anybody else says of it is not believed.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping, Sequence
from typing import Any

from runmemory_core.service.settings import Network

_IPV6_NETWORK_BYTES = 8
"""A household or a server owns the other half of an IPv6 address."""

Address = ipaddress.IPv4Address | ipaddress.IPv6Address


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


def _parsed(text: str) -> Address | None:
    try:
        found = ipaddress.ip_address(text.strip("[]"))
    except ValueError:
        return None
    return found.ipv4_mapped or found if isinstance(found, ipaddress.IPv6Address) else found
