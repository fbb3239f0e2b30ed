"""``runmemory doctor``: what works from here, one line for each thing that could be the matter."""

from __future__ import annotations

import argparse
import logging
import platform
import re
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from typing import Any, NamedTuple

from runmemory_core import __version__
from runmemory_core.cli import output
from runmemory_core.client import Client
from runmemory_core.client._connect import spool_folder
from runmemory_core.client._spool_files import key_of, waiting_in
from runmemory_core.errors import RunMemoryError
from runmemory_core.model import DAY_MS
from runmemory_core.policy.times import rfc3339
from runmemory_core.service.settings import variables
from runmemory_core.store import Tx, open_store
from runmemory_core.store.clock import wall_clock_ms

_EXTRAS = {
    "cli": ("rich",),
    "server": ("uvicorn", "starlette", "httptools"),
    "mcp": ("mcp",),
    "langgraph": ("langgraph",),
}
_LEAST = {"langgraph": ("langgraph-checkpoint", (4, 3))}


class Finding(NamedTuple):
    """One thing looked at; ``ok`` is None where it is neither good nor bad."""

    what: str
    ok: bool | None
    detail: str


def doctor(chosen: argparse.Namespace) -> None:
    """Print the findings; raises `RunMemoryError` when one of them is bad."""
    findings = [*_surroundings(), *_waiting(), *_place(chosen.url)]
    if chosen.json:
        output.data({"findings": [finding._asdict() for finding in findings]})
    else:
        words = {True: "ok", False: "FAILED", None: ""}
        output.table(
            "Run Memory", ("check", "result", "detail"), [(f.what, words[f.ok], f.detail) for f in findings]
        )
    if failed := [finding.what for finding in findings if finding.ok is False]:
        raise RunMemoryError(f"does not work: {', '.join(failed)}")


def _surroundings() -> Iterator[Finding]:
    yield Finding("version", None, f"runmemory {__version__} on Python {platform.python_version()}")
    for extra, modules in _EXTRAS.items():
        missing = [module for module in modules if find_spec(module) is None]
        absent = f'not installed: pip install "runmemory[{extra}]"'
        yield Finding(f"extra {extra}", None, absent if missing else _old(extra) or "installed")
    yield Finding("environment", None, ", ".join(variables()) or "no RUNMEMORY_ variable is set")


def _old(extra: str) -> str | None:
    """What is too old for an extra; others may have installed it."""
    if extra not in _LEAST:
        return None
    package, least = _LEAST[extra]
    try:
        found = version(package)
    except PackageNotFoundError:
        found = "0 (unknown)"
    if tuple(map(int, re.findall(r"\d+", found)[: len(least)])) >= least:
        return None
    needed = ".".join(map(str, least))
    return f'{package} {found} is too old, {needed} is needed: pip install -U "runmemory[{extra}]"'


def _waiting() -> Iterator[Finding]:
    """What adapters could not send to a service, file by file: never what is in it."""
    for path in sorted(spool_folder().glob("*.db")):
        try:
            runs, checkpoints, since = waiting_in(path)
        except RunMemoryError as error:
            yield Finding("waiting", False, f"{path}: {error.detail}")
            continue
        if runs:
            days = (wall_clock_ms() - since) // DAY_MS
            yield Finding(
                "waiting",
                None,
                f"{path}: {checkpoints:,} checkpoints of {runs:,} runs since {output.second(rfc3339(since))} UTC "
                f"({days:,} days): the next program sends them that saves to the same URL with the same key, "
                f"{key_of(path)} in the lists of keys; if another key of its account replaced it, set "
                f"RUNMEMORY_PREVIOUS_KEY_ID={key_of(path)} beside RUNMEMORY_API_KEY",
            )


def _place(url: str | None) -> Iterator[Finding]:
    """Where a client saves, and what works there."""
    try:
        with _silence():
            client = Client(url)
    except RunMemoryError as error:
        yield Finding("store", False, error.detail)
        return
    with client:
        if client.remote:
            yield _tried(f"service {client.where}", lambda: _service(client))
        else:
            yield Finding("store", True, f"{client.where}, this machine only")
            yield from _file(client.where)


@contextmanager
def _silence() -> Generator[None]:
    """What a client logs when it opens is among the findings."""
    logger = logging.getLogger("runmemory")
    before, logger.disabled = logger.disabled, True
    try:
        yield
    finally:
        logger.disabled = before


def _service(client: Client) -> str:
    reply = client.usage_and_upgrade()
    stored = "saves are stored" if reply.mode == "acting" else "watch mode: without a key nothing is stored"
    return f"answers; plan {reply.plan}: {stored}"


def _file(path: str) -> Iterator[Finding]:
    store = open_store(f"sqlite:///{path}")
    try:
        yield _tried("format", lambda: f"{store.read(_format)}, which this release knows")
        yield _tried("writable", lambda: store.transact(_nothing))
    finally:
        store.close()


def _tried(what: str, attempt: Callable[[], str]) -> Finding:
    try:
        return Finding(what, True, attempt())
    except RunMemoryError as error:
        return Finding(what, False, error.detail)


def _format(tx: Tx) -> Any:
    return tx.one("format")["format"]


def _nothing(tx: Tx) -> str:
    """Taking the lock of a writer is enough to find out."""
    del tx
    return "yes"
