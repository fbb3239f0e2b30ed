"""Where a client's calls go: arguments first, then the environment, then this machine's own file.

The only module besides the service's settings that reads the environment.
"""

from __future__ import annotations

import logging
import os
import re
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING

from runmemory_core.errors import InvalidRequest
from runmemory_core.model import HOSTED_URL, Caller
from runmemory_core.policy.secret_formats import masked_url

if TYPE_CHECKING:
    from runmemory_core.store import Store
    from runmemory_core.transports import AsyncTransport, Transport
    from runmemory_core.transports.wires import Wire

_MCP = "mcp+"
logger = logging.getLogger("runmemory")


@dataclass(frozen=True, slots=True, repr=False)
class Target:
    """Where to connect to; its repr shows no key."""

    url: str
    api_key: str | None
    timeout_seconds: float
    caller: Caller
    retries: bool = True

    def __repr__(self) -> str:
        return f"Target({masked_url(self.url)!r}, api_key={'****' if self.api_key else None})"

    @property
    def embedded(self) -> bool:
        """Whether the engine runs in this process."""
        return self.url.startswith("sqlite:")


def target(
    url: str | os.PathLike[str] | None,
    *,
    api_key: str | None,
    timeout_seconds: float,
    keep: int | None,
    expire_after: timedelta | None,
    redacts: bool = True,
    retries: bool = True,
) -> Target:
    """The target for a client's arguments; raises `InvalidRequest` for ones that are wrong or contradict each other."""
    _check_type("url", url, (str, os.PathLike), "a text or a path")
    _check_type("api_key", api_key, (str,), "a text")
    _check_type("timeout_seconds", timeout_seconds, (int, float), "a number of seconds")
    _check_type("keep", keep, (int,), "a whole number")
    _check_type("expire_after", expire_after, (timedelta,), "a timedelta such as timedelta(days=30)")
    _check_limits(keep, expire_after, timeout_seconds)
    api_key = api_key or os.environ.get("RUNMEMORY_API_KEY") or None
    url = file_url(
        url or os.environ.get("RUNMEMORY_URL") or (HOSTED_URL if api_key else default_url()),
    )
    caller = Caller()
    if url.startswith("sqlite:"):
        kept_for_ms = None if expire_after is None else int(expire_after.total_seconds() * 1_000)
        caller = replace(caller, limits=replace(caller.limits, keep=keep, kept_for_ms=kept_for_ms))
        return Target(url.rstrip("/"), api_key, timeout_seconds, caller, retries)
    _check_remote(url)
    if keep is not None or expire_after is not None:
        raise InvalidRequest(
            "keep and expire_after are the service's to decide: they can be set for an embedded store only",
            pointers={"/keep": "embedded only"},
        )
    if not redacts:
        raise InvalidRequest(
            "redacts=False is for an embedded store only: secrets must not leave this machine in clear",
            pointers={"/redacts": "embedded only"},
        )
    return Target(url.rstrip("/"), api_key, timeout_seconds, caller, retries)


def _check_remote(url: str) -> None:
    """Raise `InvalidRequest` for what is no address of a service."""
    if url.startswith(_MCP) and not re.match(r"mcp\+https?://[^/]+(/.*)?/mcp/?$", url):
        raise InvalidRequest(
            f"{masked_url(url)!r} is no MCP address of a service: it looks like mcp+https://host/mcp",
            pointers={"/url": "not an MCP address"},
        )
    if re.match(r"https?://.*/mcp/?$", url):
        raise InvalidRequest(
            f"{masked_url(url)!r} is the address for MCP clients: leave out /mcp, or write mcp+{masked_url(url)} to "
            "speak MCP",
            pointers={"/url": "an MCP address"},
        )
    if not re.match(r"(mcp\+)?https?://[^/]", url):
        raise InvalidRequest(
            f"cannot tell what {masked_url(url)!r} is: use https://host, or a file as in "
            "sqlite:///relative.db, sqlite:////absolute.db, ./relative.db or /absolute.db",
            pointers={"/url": "unknown scheme"},
        )


def file_url(place: str | os.PathLike[str]) -> str:
    """The URL of the embedded store in a file; a text that is plainly no path is left as it is.

    A bare name counts as a file by its suffix only: ``localhost`` is rather a URL that lacks its beginning.
    """
    text = os.fspath(place)
    if text in {":memory:", "sqlite://"} or (text.startswith("sqlite:") and ":memory:" in text):
        raise InvalidRequest(
            "a store in memory would be gone with its process, as the run would: name a file, such as "
            "sqlite:///runs.db, for a test one in a temporary folder",
            pointers={"/url": "in memory"},
        )
    named_so = text.endswith((".db", ".sqlite", ".sqlite3")) and not re.match(r"sqlite:|\w+://", text)
    if named_so or not isinstance(place, str) or text.startswith(("/", "./", "../", "~")):
        return f"sqlite:///{Path(text).expanduser()}"
    return text


def _check_type(name: str, value: object, types: tuple[type, ...], words: str) -> None:
    if value is not None and (not isinstance(value, types) or isinstance(value, bool)):
        raise InvalidRequest(
            f"{name} is of type {type(value).__name__}; {words} is needed",
            pointers={f"/{name}": "wrong type"},
        )


def _check_limits(keep: int | None, expire_after: timedelta | None, timeout_seconds: float) -> None:
    if keep is not None and keep < 1:
        raise InvalidRequest(
            f"keep is {keep}; at least 1 checkpoint must stay", pointers={"/keep": "below 1"}
        )
    if expire_after is not None and expire_after <= timedelta(0):
        raise InvalidRequest(
            f"expire_after is {expire_after}; a run must be kept for some time",
            pointers={"/expire_after": "not positive"},
        )
    if not timeout_seconds > 0:
        raise InvalidRequest(
            f"timeout_seconds is {timeout_seconds}; an answer takes some time",
            pointers={"/timeout_seconds": "not positive"},
        )


def default_url() -> str:
    """The URL of this machine's own store, whose path is told once."""
    path = own_file()
    _tell_once(path)
    return f"sqlite:///{path}"


def own_file() -> Path:
    """The file of this machine's own store."""
    import platformdirs  # noqa: PLC0415 - only the embedded default needs it

    return Path(platformdirs.user_data_dir("runmemory", appauthor=False)) / "runmemory.db"


def spool_file(where: Target) -> Path:
    """Where writes for a service wait while it is away: a file for each URL and key, so that accounts never mix."""
    return _spool_of(where, key_id(where.api_key or ""))


def previous_spool_file(where: Target) -> Path | None:
    """The file of the key that the one in use replaced, as ``RUNMEMORY_PREVIOUS_KEY_ID`` says.

    It says so of ``RUNMEMORY_API_KEY``: a program may use keys of other accounts beside.
    """
    previous = os.environ.get("RUNMEMORY_PREVIOUS_KEY_ID", "").strip()
    if not re.fullmatch("[0-9a-f]+", previous) or where.api_key != os.environ.get("RUNMEMORY_API_KEY"):
        return None
    return _spool_of(where, previous)


def _spool_of(where: Target, key: str) -> Path:
    return spool_folder() / f"{sha256(where.url.encode()).hexdigest()[:16]}-{key}.db"


def key_id(api_key: str) -> str:
    """The name of a key in the service's lists, which tells nothing about the key."""
    return sha256(api_key.encode()).hexdigest()[:10]


def spool_folder() -> Path:
    """Where the files lie in which writes wait for services; ``RUNMEMORY_SPOOL`` names another folder."""
    named = os.environ.get("RUNMEMORY_SPOOL")
    return Path(named).expanduser() if named else own_file().with_name("spool")


@cache
def _tell_once(path: Path) -> None:
    logger.info("runmemory: saving to %s (this machine only)", path)
    if _in_container() and not _on_a_mount(path):
        logger.warning(
            "runmemory: this looks like a container, and %s may vanish with it: mount a volume there, "
            "or set RUNMEMORY_URL and RUNMEMORY_API_KEY",
            path,
        )


def _in_container() -> bool:
    marks = (Path("/.dockerenv"), Path("/run/.containerenv"))
    return "KUBERNETES_SERVICE_HOST" in os.environ or any(mark.exists() for mark in marks)


def _on_a_mount(path: Path) -> bool:
    """Whether a folder above it is a mount of its own, such as a volume; the root of all is none."""
    return any(os.path.ismount(folder) for folder in list(path.parents)[:-1])


def _store(where: Target) -> Store:
    from runmemory_core.store import open_store  # noqa: PLC0415 - SQLite is loaded on demand

    return open_store(where.url)


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
    return HttpTransport(
        url, api_key=where.api_key, timeout_seconds=where.timeout_seconds, wire=wire, retries=where.retries
    )


def connect_async(where: Target) -> AsyncTransport:
    """The transport for an event loop; needs none to be running yet."""
    if where.embedded:
        from runmemory_core.transports.embedded import AsyncEmbeddedTransport  # noqa: PLC0415

        return AsyncEmbeddedTransport(_store(where), caller=where.caller)
    from runmemory_core.transports.http import AsyncHttpTransport  # noqa: PLC0415

    url, wire = _remote(where)
    return AsyncHttpTransport(
        url, api_key=where.api_key, timeout_seconds=where.timeout_seconds, wire=wire, retries=where.retries
    )
