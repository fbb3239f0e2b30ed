"""Every setting of the service, and the only place of it that reads the environment."""

from __future__ import annotations

import ipaddress
import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from runmemory_core.errors import InvalidRequest
from runmemory_core.model import MIB
from runmemory_core.policy.secret_formats import masked_url

Network = ipaddress.IPv4Network | ipaddress.IPv6Network

_LARGEST_PORT = 65_535


@dataclass(frozen=True, slots=True, repr=False)
class Settings:
    """How to serve; ``RUNMEMORY_DATABASE``, ``RUNMEMORY_HOST`` and ``RUNMEMORY_PORT`` set the first three.

    ``RUNMEMORY_PUBLIC_URL`` sets ``public_url``.
    ``RUNMEMORY_TRUSTED_PROXIES``, ``RUNMEMORY_ALLOWED_HOSTS`` and ``RUNMEMORY_ALLOWED_ORIGINS`` are lists with commas.
    """

    database: str
    host: str = "127.0.0.1"
    port: int = 8787
    """0 takes any free one."""
    access_log: bool = False
    trusted_proxies: tuple[Network, ...] = ()
    """Only these are believed when they say for whom they call, and at which address."""
    public_url: str | None = None
    """The address under which others reach the service, for all that names it. None: the one each request names."""

    run_body_bytes: int = MIB
    store_body_bytes: int = 24 * MIB
    """With an acting key; without one `run_body_bytes` holds there too."""

    allowed_hosts: tuple[str, ...] = ()
    """Host names that `/mcp` answers to, ``*`` for any. None named: those of this machine while `host` is one of
    them, otherwise any, so that a web page cannot reach a service that only this machine should reach."""
    allowed_origins: tuple[str, ...] = ()
    """Origins of web pages, as ``https://name``, that may call `/mcp`; ``*`` and none named as above."""

    reading_threads: int = 4
    key_cache_seconds: float = 2.0
    """So long may a revoked key still be answered."""
    key_cache_size: int = 4_096

    patience_seconds: float = 10.0
    """So long may a client take for a request's head, or stay silent between two requests. Bodies too, and a
    second more for each `body_bytes_a_second` that arrived."""
    body_bytes_a_second: int = 262_144

    sweep_seconds: float = 60.0
    """Between two walks through what may have expired."""
    sweep_pause_seconds: float = 0.25
    """Between two pieces of a walk."""

    def __repr__(self) -> str:
        return f"Settings({masked_url(self.database)!r}, host={self.host!r}, port={self.port})"


def from_environment(
    *,
    database: str | None = None,
    host: str | None = None,
    port: int | None = None,
    access_log: bool = False,
    default_database: Callable[[], str],
    environment: Mapping[str, str] = os.environ,
) -> Settings:
    """The settings: arguments first, then the environment, then the defaults. Raises `InvalidRequest`."""
    text = environment.get("RUNMEMORY_PORT") or None
    given: dict[str, Any] = {
        "host": host or environment.get("RUNMEMORY_HOST") or None,
        "port": _port(port if port is not None else text),
    }
    proxies = environment.get("RUNMEMORY_TRUSTED_PROXIES") or ""
    return Settings(
        trusted_proxies=tuple(_network(text) for text in proxies.replace(",", " ").split()),
        database=database or environment.get("RUNMEMORY_DATABASE") or default_database(),
        access_log=access_log,
        public_url=_address(environment.get("RUNMEMORY_PUBLIC_URL")),
        allowed_hosts=_listed(environment.get("RUNMEMORY_ALLOWED_HOSTS")),
        allowed_origins=_listed(environment.get("RUNMEMORY_ALLOWED_ORIGINS")),
        **{name: value for name, value in given.items() if value is not None},
    )


def variables(environment: Mapping[str, str] = os.environ) -> list[str]:
    """The names of the variables that are set for Run Memory; their values may be secret, and empty ones are absent."""
    return sorted(name for name, value in environment.items() if value and name.startswith("RUNMEMORY_"))


def _network(text: str) -> Network:
    try:
        return ipaddress.ip_network(text, strict=False)
    except ValueError:
        raise InvalidRequest(
            f"{text!r} in RUNMEMORY_TRUSTED_PROXIES is no address: use one such as 10.0.0.7 or 10.0.0.0/8",
            pointers={"/trusted_proxies": "not an address"},
        ) from None


def _address(text: str | None) -> str | None:
    if not text:
        return None
    if not re.fullmatch(
        r"https?://(\[[0-9a-f:.]+\]|[\w.-]+)(:\d{1,5})?(/[^\s?#\"'<>]*)?",
        text,
        flags=re.IGNORECASE | re.ASCII,
    ):
        raise InvalidRequest(
            "RUNMEMORY_PUBLIC_URL is no address of a service: use one such as https://runs.example.com",
            pointers={"/public_url": "not an address"},
        )
    return text.rstrip("/")


def _listed(text: str | None) -> tuple[str, ...]:
    return tuple(name.strip().lower() for name in (text or "").split(",") if name.strip())


def _port(given: int | str | None) -> int | None:
    if given is None:
        return None
    text = str(given)
    if not text.isascii() or not text.isdecimal() or int(text) > _LARGEST_PORT:
        raise InvalidRequest(
            f"{text!r} is no port: a number from 0 to {_LARGEST_PORT:,} is needed, 0 for any free one",
            pointers={"/port": "not a port"},
        )
    return int(text)
