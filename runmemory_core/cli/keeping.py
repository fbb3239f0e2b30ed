"""Commands for where the database lies: serving it, the keys of those who may call, and the sweep."""

from __future__ import annotations

import argparse
import logging
import re
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from runmemory_core.cli import output
from runmemory_core.client._connect import default_url, file_url, own_file
from runmemory_core.engine.keys import issue_key, list_keys, revoke_key
from runmemory_core.engine.sweeping import sweep_all
from runmemory_core.errors import InvalidRequest, NotFound
from runmemory_core.model import DAY_MS, HOSTED_URL, LIMITS, Limits, Plan
from runmemory_core.policy.times import rfc3339
from runmemory_core.service.keys import digest, id_of, new_key
from runmemory_core.service.settings import Settings, from_environment, variables
from runmemory_core.store import Store, open_store
from runmemory_core.store.clock import wall_clock_ms

_ANY_HOST = frozenset({"0.0.0.0", "::"})  # noqa: S104 - recognised, not bound


def serve(chosen: argparse.Namespace) -> None:
    """Serve until told to stop."""
    logging.basicConfig(level=logging.WARNING, format="%(asctime)s %(levelname)s %(message)s")
    if chosen.access_log:
        logging.getLogger("uvicorn.access").setLevel(logging.INFO)
    try:
        from runmemory_core.service import server  # noqa: PLC0415 - needs the server extra
    except ImportError as error:
        raise output.ExtraMissing(
            f'runmemory serve needs {error.name}: pip install "runmemory[server]"'
        ) from None
    settings = _settings(chosen, host=chosen.host, port=chosen.port, access_log=chosen.access_log)
    server.serve(settings, announce=output.line)


def mcp(chosen: argparse.Namespace) -> None:
    """Speak MCP on stdin and stdout until stdin ends; what is stored is this machine's own file."""
    logging.basicConfig(level=logging.WARNING, format="%(asctime)s %(levelname)s %(message)s")
    logging.getLogger("runmemory").setLevel(logging.INFO)  # which file it is, once
    elsewhere = next((name for name in ("RUNMEMORY_URL", "RUNMEMORY_API_KEY") if name in variables()), None)
    if chosen.database is None and elsewhere is not None:
        raise InvalidRequest(
            f"{elsewhere} is set, so programs save to a service, and this command saves to a file of this machine: "
            f"give the MCP client the service's own address with /mcp ({HOSTED_URL}/mcp where none is named), or "
            "name --database here",
            pointers={"/database": f"not named while {elsewhere} is set"},
        )
    settings = _settings(chosen, default_database=default_url)
    try:
        from runmemory_core.service import mcp_stdio  # noqa: PLC0415 - needs the mcp extra
    except ImportError as error:
        raise output.ExtraMissing(f'runmemory mcp needs {error.name}: pip install "runmemory[mcp]"') from None
    mcp_stdio.speak(settings)


def issue(chosen: argparse.Namespace) -> None:
    """Make a key; only its hash is kept, so this is the one time it is seen."""
    if chosen.url is not None and not re.fullmatch(r"https?://[^\s/'\"]\S*", chosen.url):
        raise InvalidRequest(
            "--url takes an address such as https://host", pointers={"/url": "not an address"}
        )
    settings = _settings(chosen)
    key, plan = new_key(), Plan(chosen.plan)
    made = {"key_id": id_of(key), "account": chosen.account, "label": chosen.label}
    with _opened(settings, creates=True) as store:
        store.transact(partial(issue_key, key_sha256=digest(key), plan=plan, now_ms=wall_clock_ms(), **made))
        where = store.where
    if chosen.json:
        output.data({"key": key, "plan": plan.value, **made})
        return
    output.line(
        f"API key {made['key_id']} of account {chosen.account}, plan {plan.value}, in {where}, shown only now:\n"
    )
    output.line(f"export RUNMEMORY_URL={chosen.url or settings.public_url or _listening(settings)}")
    output.line(f"export RUNMEMORY_API_KEY={key}")


def _listening(settings: Settings) -> str:
    """Where a service with these settings is reached from the machine it runs on."""
    host = "127.0.0.1" if settings.host in _ANY_HOST else settings.host
    return f"http://[{host}]:{settings.port}" if ":" in host else f"http://{host}:{settings.port}"


def list_all(chosen: argparse.Namespace) -> None:
    """Every key, without what would let one use it."""
    settings = _settings(chosen)
    with _opened(settings) as store:
        listed = [_shown(row) for row in store.read(list_keys)]
        where = store.where
    if chosen.json:
        output.data({"keys": listed})
    elif listed:
        columns = ("id", "account", "plan", "label", "made at (UTC)", "revoked at (UTC)")
        output.table(f"API keys in {where}", columns, map(_row, listed))
    else:
        output.line(f"No API keys in {where}.")


def _shown(row: Any) -> dict[str, Any]:
    shown = {name: row[name] for name in ("key_id", "account", "plan", "label")}
    revoked_at = row["revoked_at"]
    shown["created_at"] = rfc3339(row["created_at"])
    shown["revoked_at"] = None if revoked_at is None else rfc3339(revoked_at)
    return shown


def _row(key: dict[str, Any]) -> list[str]:
    moments = (output.second(key[name] or "") for name in ("created_at", "revoked_at"))
    return [key["key_id"], key["account"], key["plan"], key["label"], *moments]


def revoke(chosen: argparse.Namespace) -> None:
    """Make a key worthless; raises `NotFound` for an unknown one."""
    with _opened(_settings(chosen)) as store:
        store.transact(partial(revoke_key, key_id=chosen.key_id, now_ms=wall_clock_ms()))
    if chosen.json:
        output.data({"revoked": chosen.key_id})
    else:
        output.line(f"Key {chosen.key_id} is revoked; running services refuse it within seconds.")


def sweep(chosen: argparse.Namespace) -> None:
    """Remove what has expired, in transactions of a bounded size."""
    limits = dict(LIMITS)
    if chosen.runs_older_than is not None:
        if chosen.runs_older_than < 1:
            raise InvalidRequest(
                "--runs-older-than takes at least 1 day", pointers={"/runs_older_than": "below 1"}
            )
        kept_for_ms = chosen.runs_older_than * DAY_MS
        limits = {plan: _at_most(plan_limits, kept_for_ms) for plan, plan_limits in LIMITS.items()}
    with _opened(_settings(chosen)) as store:
        removed = sweep_all(store, now_ms=wall_clock_ms(), limits=limits)
    if chosen.json:
        output.data({"removed": removed})
    else:
        output.line(f"Removed {removed:,} expired records.")


def _at_most(limits: Limits, kept_for_ms: int) -> Limits:
    planned = limits.kept_for_ms
    return replace(limits, kept_for_ms=kept_for_ms if planned is None else min(planned, kept_for_ms))


def _settings(
    chosen: argparse.Namespace,
    *,
    default_database: Callable[[], str] = lambda: file_url(own_file()),
    **more: Any,
) -> Settings:
    settings = from_environment(database=chosen.database, default_database=default_database, **more)
    return replace(settings, database=file_url(settings.database))


@contextmanager
def _opened(settings: Settings, *, creates: bool = False) -> Generator[Store]:
    """The database, which must be there already unless the command ``creates`` it: a typing error makes no file."""
    path = Path(settings.database.removeprefix("sqlite:///"))
    if settings.database.startswith("sqlite:///") and not creates and not path.exists():
        raise NotFound(
            f"there is no database at {path.absolute()}: name the one that the service keeps, or issue a key"
        )
    store = open_store(settings.database)
    try:
        yield store
    finally:
        store.close()
