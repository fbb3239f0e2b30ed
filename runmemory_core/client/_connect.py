"""Where a client's calls go: arguments first, then the environment, then this machine's own file.

The only module besides the service's settings that reads the environment.
"""

from __future__ import annotations

import logging
import os
import re
import time
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING

from runmemory_core.errors import InvalidRequest
from runmemory_core.model import LIMITS, Caller, Plan

if TYPE_CHECKING:
    from runmemory_core.store import Store
    from runmemory_core.transports import AsyncTransport, Transport
    from runmemory_core.transports.wires import Wire

HOSTED_URL = "https://memory.cloudforbots.com"
_MCP = "mcp+"
logger = logging.getLogger("runmemory")


@dataclass(frozen=True, slots=True, repr=False)
class Target:
    """Where to connect to; its repr shows no key."""

    url: str
    api_key: str | None
    timeout_seconds: float
    caller: Caller

    def __repr__(self) -> str:
        return f"Target({_without_userinfo(self.url)!r}, api_key={'****' if self.api_key else None})"

    @property
    def embedded(self) -> bool:
        """Whether the engine runs in this process."""
        return self.url.startswith("sqlite:")


def target(
    url: str | None,
    *,
    api_key: str | None,
    timeout_seconds: float,
    keep: int | None,
    expire_after: timedelta | None,
) -> Target:
    """The target for a client's arguments; raises `InvalidRequest` for ones that contradict each other."""
    api_key = api_key or os.environ.get("RUNMEMORY_API_KEY") or None
    url = url or os.environ.get("RUNMEMORY_URL") or (HOSTED_URL if api_key else default_url())
    caller = Caller()
    if url.startswith("sqlite:"):
        kept_for_ms = None if expire_after is None else int(expire_after.total_seconds() * 1_000)
        if keep is not None and keep < 1:
            raise InvalidRequest(
                f"keep is {keep}; at least 1 checkpoint must stay", pointers={"/keep": "below 1"}
            )
        if kept_for_ms is not None and kept_for_ms <= 0:
            raise InvalidRequest(
                f"expire_after is {expire_after}; a run must be kept for some time",
                pointers={"/expire_after": "not positive"},
            )
        caller = replace(caller, limits=replace(caller.limits, keep=keep, kept_for_ms=kept_for_ms))
    elif url.startswith(_MCP) and not re.match(r"mcp\+https?://[^/]+(/.*)?/mcp/?$", url):
        raise InvalidRequest(
            f"{_without_userinfo(url)!r} is no MCP address of a service: it looks like mcp+https://host/mcp",
            pointers={"/url": "not an MCP address"},
        )
    elif not re.match(r"(mcp\+)?https?://[^/]", url):
        raise InvalidRequest(
            f"cannot tell what {_without_userinfo(url)!r} is: use https://host, or sqlite:///path for a file",
            pointers={"/url": "unknown scheme"},
        )
    elif keep is not None or expire_after is not None:
        raise InvalidRequest(
            "keep and expire_after are the service's to decide: they can be set for an embedded store only",
            pointers={"/keep": "embedded only"},
        )
    return Target(url.rstrip("/"), api_key, timeout_seconds, caller)


def _without_userinfo(url: str) -> str:
    return re.sub(r"//[^/@]*@", "//****@", url)


def default_url() -> str:
    """The file of this machine's own store."""
    import platformdirs  # noqa: PLC0415 - only the embedded default needs it

    path = Path(platformdirs.user_data_dir("runmemory", appauthor=False)) / "runmemory.db"
    _tell_once(path)
    return f"sqlite:///{path}"


def spool_file(where: Target) -> Path:
    """Where writes for a service wait while it is away: a file for each URL and key, so that accounts never mix."""
    import platformdirs  # noqa: PLC0415 - as above

    name = sha256(f"{where.url}\0{where.api_key or ''}".encode()).hexdigest()[:24]
    return Path(platformdirs.user_data_dir("runmemory", appauthor=False)) / "spool" / f"{name}.db"


@cache
def _tell_once(path: Path) -> None:
    logger.info("runmemory: saving to %s (this machine only)", path)
    if _in_container():
        logger.warning(
            "runmemory: this looks like a container, and %s may vanish with it: mount a volume there, "
            "or set RUNMEMORY_URL and RUNMEMORY_API_KEY",
            path,
        )


def _in_container() -> bool:
    marks = (Path("/.dockerenv"), Path("/run/.containerenv"))
    return "KUBERNETES_SERVICE_HOST" in os.environ or any(mark.exists() for mark in marks)


def _store(where: Target) -> Store:
    from runmemory_core.store import open_store  # noqa: PLC0415 - SQLite is loaded on demand

    store = open_store(where.url)
    limits = where.caller.limits
    if limits.kept_for_ms is not None:
        # A file has no service beside it that sweeps, so whoever opens it does.
        from runmemory_core.engine.sweeping import sweep_all  # noqa: PLC0415 - as above

        sweep_all(store, now_ms=time.time_ns() // 1_000_000, limits={**LIMITS, Plan.OWN: limits})
    return store


def _remote(where: Target) -> tuple[str, Wire]:
    """The address of the service, and how calls are put to it."""
    from runmemory_core.transports.wires import MCP, REST  # noqa: PLC0415 - as above

    if not where.url.startswith(_MCP):
        return where.url, REST
    return where.url.removeprefix(_MCP).removesuffix("/mcp"), MCP


def connect(where: Target) -> Transport:
    """The blocking transport; loads only what it needs."""
    if where.embedded:
        from runmemory_core.transports.embedded import EmbeddedTransport  # noqa: PLC0415

        return EmbeddedTransport(_store(where), caller=where.caller)
    from runmemory_core.transports.http import HttpTransport  # noqa: PLC0415

    url, wire = _remote(where)
    return HttpTransport(url, api_key=where.api_key, timeout_seconds=where.timeout_seconds, wire=wire)


def connect_async(where: Target) -> AsyncTransport:
    """The transport for an event loop; needs none to be running yet."""
    if where.embedded:
        from runmemory_core.transports.embedded import AsyncEmbeddedTransport  # noqa: PLC0415

        return AsyncEmbeddedTransport(_store(where), caller=where.caller)
    from runmemory_core.transports.http import AsyncHttpTransport  # noqa: PLC0415

    url, wire = _remote(where)
    return AsyncHttpTransport(url, api_key=where.api_key, timeout_seconds=where.timeout_seconds, wire=wire)
