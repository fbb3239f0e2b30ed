"""The sweep: removes what has expired, a bounded piece at a time.

It walks through all runs in the order of their key, so it needs no index that each save would have to renew, and
several processes may walk at once: each piece is a transaction of its own that looks again before it removes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from runmemory_core.engine._context import Context
from runmemory_core.engine._states import clear_run, collect_parts, trim_lane
from runmemory_core.model import LIMITS, Caller, Limits, Plan
from runmemory_core.policy import retention
from runmemory_core.policy.times import day_of
from runmemory_core.store import Store, Tx

LOOKED_AT_ONCE = 500
REMOVED_AT_ONCE = 50


@dataclass(frozen=True, slots=True)
class Place:
    """Up to where a walk has come: replays first, then runs, then accounts of watch mode without runs."""

    account_id: int = 0
    run: int = 0
    runs_are_done: bool = False


START = Place()


@dataclass(frozen=True, slots=True)
class Swept:
    """What one piece removed, and where the next begins; None at the end."""

    removed: int
    next: Place | None


def sweep(tx: Tx, place: Place = START, *, now_ms: int, limits: Mapping[Plan, Limits] = LIMITS) -> Swept:
    """Do one piece of the walk; ``limits`` say how long what an account of each plan keeps."""
    if place.runs_are_done:
        return _sweep_accounts(tx, place, now_ms=now_ms)
    removed = 0
    if place == START:
        before = now_ms - LIMITS[Plan.OWN].replays_kept_for_ms
        removed = tx.run("forget_replays", before=before, limit=LOOKED_AT_ONCE)
        if removed == LOOKED_AT_ONCE:
            return Swept(removed, START)
    rows = tx.all("runs_after", account_id=place.account_id, run=place.run, limit=LOOKED_AT_ONCE)
    gone = 0
    for row in rows:
        place = Place(row["account_id"], row["run"])
        plan = Plan(row["plan"])
        gone += _sweep_run(tx, row, plan, limits[plan], now_ms=now_ms)
        if gone >= REMOVED_AT_ONCE:
            return Swept(removed + gone, place)
    ended = len(rows) < LOOKED_AT_ONCE
    return Swept(removed + gone, Place(runs_are_done=True) if ended else place)


def sweep_all(store: Store, *, now_ms: int, limits: Mapping[Plan, Limits] = LIMITS) -> int:
    """Walk from the start to the end, a transaction for each piece; how many records went."""
    removed = 0
    place: Place | None = START
    while place is not None:
        swept = store.transact(partial(sweep, place=place, now_ms=now_ms, limits=limits))
        removed, place = removed + swept.removed, swept.next
    return removed


def _sweep_run(tx: Tx, run: Any, plan: Plan, limits: Limits, *, now_ms: int) -> int:
    """1 when the run went, or what it no longer needs."""
    ids = {"account_id": run["account_id"], "run": run["run"]}
    if run["deleted_at"] is not None:
        return _forget(tx, ids) if run["deleted_at"] < now_ms - limits.tombstones_kept_for_ms else 0
    if plan is Plan.WATCH:
        return _sweep_watched(tx, run, ids, before=now_ms - limits.watched_for_ms)
    paused = run["status"] == "paused"
    silent_ms = now_ms - run["updated_at"]
    kept_for_ms = retention.kept_for_ms(limits)
    if kept_for_ms is None or silent_ms <= kept_for_ms:
        return 0
    if paused and silent_ms <= (retention.kept_for_ms(limits, paused_newest=True) or 0):
        return _keep_newest(tx, run, ids, now_ms=now_ms)
    # What is left says for some time that the run was known: its silence must not look like a new one's.
    clear_run(tx, account_id=ids["account_id"], run=ids["run"])
    tx.run("bury_run", **ids, status="expired", now=now_ms)
    return 1


def _forget(tx: Tx, ids: Mapping[str, int]) -> int:
    clear_run(tx, account_id=ids["account_id"], run=ids["run"])
    tx.run("forget_run", **ids)
    return 1


def _keep_newest(tx: Tx, run: Any, ids: Mapping[str, int], *, now_ms: int) -> int:
    """Leave a run that waits for a person the newest checkpoint of each lane."""
    at = Context(tx, Caller(account=run["account"]), now_ms)
    count = sum(trim_lane(at, run["run"], lane["lane"], 1) for lane in tx.all("lanes", **ids))
    newest = tx.one("latest_checkpoint", **ids)
    if newest is not None and newest["key"] is None:
        count += tx.run("evict_checkpoints", **ids, through=newest["seq"] - 1)
    if count:
        collect_parts(at, run["run"])
    return int(count > 0)


def _sweep_watched(tx: Tx, run: Any, ids: Mapping[str, int], *, before: int) -> int:
    """What watch mode recorded goes piece by piece, since a run may be watched for longer."""
    if run["updated_at"] < before:
        return _forget(tx, ids)
    count = tx.run("forget_asked", **ids, before=before)
    count += tx.run("forget_attempts_before", **ids, before=before)
    count += tx.run("forget_checkpoints_before", **ids, before=before)
    return int(count > 0)


def _sweep_accounts(tx: Tx, place: Place, *, now_ms: int) -> Swept:
    before = now_ms - LIMITS[Plan.WATCH].watched_for_ms
    rows = tx.all("watching_accounts", after=place.account_id, limit=LOOKED_AT_ONCE)
    removed = 0
    for row in rows:
        account_id = row["account_id"]
        tx.run("forget_usage", account_id=account_id, before=day_of(before))
        if row["created_at"] < before and not (row["has_runs"] or row["has_keys"]):
            removed += tx.run("forget_idle_account", account_id=account_id)
    if len(rows) < LOOKED_AT_ONCE:
        return Swept(removed, None)
    return Swept(removed, Place(rows[-1]["account_id"], runs_are_done=True))
