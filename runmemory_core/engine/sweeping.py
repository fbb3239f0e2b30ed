"""The sweep: removes what has expired, a bounded piece at a time.

It walks through all runs in the order of their key, so it needs no index that each save would have to renew, and
several processes may walk at once: each piece is a transaction of its own that looks again before it removes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from runmemory_core.engine._context import WATCHING, Context
from runmemory_core.engine._states import clear_run, collect_parts, trim_lane
from runmemory_core.engine.keys import FREE
from runmemory_core.errors import StoreBusy, StoreFull, StoreReadOnly, Unavailable
from runmemory_core.model import LIMITS, Caller, Limits, Plan
from runmemory_core.policy import retention
from runmemory_core.policy.times import day_of
from runmemory_core.store import Store, Tx

LOOKED_AT_ONCE = 500
ROWS_AT_ONCE = 2_000
"""So many rows go in one transaction, since everybody else's writes wait for it."""

_NO_RUNS_FAULT = (StoreBusy, StoreFull, StoreReadOnly, Unavailable)


@dataclass(frozen=True, slots=True)
class Place:
    """Up to where a walk has come: replays first, then runs, then accounts."""

    account_id: int = 0
    run: int = 0
    runs_are_done: bool = False


START = Place()


@dataclass(slots=True)
class Walk:
    """A walk from the start to the end: where its next piece begins, and the runs that could not be swept.

    ``at`` is the run that is being swept, by which the guilty one is known when a piece fails.
    """

    place: Place | None = START
    at: Place | None = None
    passed: dict[Place, Exception] = field(default_factory=dict[Place, Exception])

    def passes_by(self, error: Exception) -> bool:
        """Leave the run out at which a piece failed; False when the failure was no run's."""
        if self.at is None or isinstance(error, _NO_RUNS_FAULT):
            return False
        self.passed[self.at] = error
        return True


def sweep(
    tx: Tx, walk: Walk, *, now_ms: int, limits: Mapping[Plan, Limits] = LIMITS
) -> tuple[int, Place | None]:
    """Do one piece of ``walk``: how many records went, and where the next begins, None at the end.

    ``limits`` say how long what an account of each plan keeps.
    """
    walk.at, place = None, walk.place or START
    if place.runs_are_done:
        return _sweep_accounts(tx, place, now_ms=now_ms)
    removed = 0
    if place == START:
        before = now_ms - LIMITS[Plan.OWN].replays_kept_for_ms
        removed = tx.run("forget_replays", before=before, limit=LOOKED_AT_ONCE)
        if removed == LOOKED_AT_ONCE:
            return removed, START
    rows = tx.all("runs_after", account_id=place.account_id, run=place.run, limit=LOOKED_AT_ONCE)
    left = ROWS_AT_ONCE
    for row in rows:
        here = Place(row["account_id"], row["run"])
        if here not in walk.passed:
            walk.at = here
            gone = _sweep_run(tx, row, limits[Plan(row["plan"])], now_ms=now_ms, rows=left)
            removed, left = removed + gone.records, left - gone.rows
        if left <= 0:  # this run may have more, so the next piece looks at it again
            return removed, place
        place = here
    return removed, Place(runs_are_done=True) if len(rows) < LOOKED_AT_ONCE else place


def sweep_all(
    store: Store,
    *,
    now_ms: int,
    limits: Mapping[Plan, Limits] = LIMITS,
    pieces: int | None = None,
    wait: bool = True,
) -> int:
    """Walk from the start to the end, or some ``pieces``, a transaction for each; how many records went.

    A run that cannot be swept stops no other: what was wrong with the first is raised at the end. With ``wait`` off,
    raises `StoreBusy` at once when another process writes.
    """
    removed, walk = 0, Walk()
    count = 0
    while walk.place is not None and count != pieces:
        count += 1
        try:
            work = partial(sweep, walk=walk, now_ms=now_ms, limits=limits)
            gone, walk.place = store.transact(work, wait=wait)
        except Exception as error:
            if not walk.passes_by(error):
                raise
        else:
            removed += gone
    for error in walk.passed.values():
        raise error
    return removed


@dataclass(frozen=True, slots=True)
class _Gone:
    """What went of one run: records as they are counted for people, and rows as they cost time."""

    records: int = 0
    rows: int = 0


def _sweep_run(tx: Tx, run: Any, limits: Limits, *, now_ms: int, rows: int) -> _Gone:
    """Remove the run, or what it no longer needs, about ``rows`` rows of it."""
    ids = {"account_id": run["account_id"], "run": run["run"]}
    if run["deleted_at"] is not None:
        return _forget(tx, ids, rows, keep_row=run["deleted_at"] >= now_ms - limits.tombstones_kept_for_ms)
    if run["plan"] == Plan.WATCH:
        return _sweep_watched(tx, run, ids, before=now_ms - limits.watched_for_ms, rows=rows)
    limits = _with_its_term(limits, run["kept_for_ms"])
    paused = run["status"] == "paused"
    silent_ms = now_ms - run["updated_at"]
    kept_for_ms = retention.kept_for_ms(limits)
    if kept_for_ms is None or silent_ms <= kept_for_ms:
        return _Gone()
    if paused and silent_ms <= (retention.kept_for_ms(limits, paused_newest=True) or 0):
        return _keep_newest(tx, run, ids, now_ms=now_ms)
    # What is left says for some time that the run was known: its silence must not look like a new one's.
    # It comes first, so that nobody sees a run of which a part is cleared.
    tx.run("bury_run", **ids, status="expired", now=now_ms)
    return _Gone(1, 1 + clear_run(tx, **ids, rows=rows))


def _with_its_term(limits: Limits, kept_for_ms: int | None) -> Limits:
    """``limits`` with the run's own term, unless that of its plan is shorter."""
    if kept_for_ms is None or (limits.kept_for_ms is not None and limits.kept_for_ms < kept_for_ms):
        return limits
    return replace(limits, kept_for_ms=kept_for_ms)


def _sweep_account(tx: Tx, account: Any, *, now_ms: int) -> int:
    """Forget the usage of long ago, and an account of watch mode that nobody used since; 1 when it went.

    What a free key did stands in an account of its own beside the key's, which goes first: its days of usage tell when
    the key was used last.
    """
    account_id, name = account["account_id"], account["name"]
    limits = LIMITS[Plan.WATCH]
    of_a_free_key = name.removeprefix(WATCHING).startswith(FREE)
    before = now_ms - (limits.unused_keys_kept_for_ms if of_a_free_key else limits.watched_for_ms)
    tx.run("forget_usage", account_id=account_id, before=day_of(before))
    if account["plan"] != Plan.WATCH or account["created_at"] >= before or account["has_runs"]:
        return 0
    if account["has_keys"]:
        if account["is_watched"] or not of_a_free_key:
            return 0
        tx.run("forget_keys", account_id=account_id)
    return tx.run("forget_idle_account", account_id=account_id)


def _forget(tx: Tx, ids: Mapping[str, int], rows: int, *, keep_row: bool) -> _Gone:
    """Clear what lies below a run's row, and then the row as well."""
    count = clear_run(tx, **ids, rows=rows)
    if keep_row or count == rows:
        return _Gone(0, count)
    tx.run("forget_run", **ids)
    return _Gone(1, count + 1)


def _keep_newest(tx: Tx, run: Any, ids: Mapping[str, int], *, now_ms: int) -> _Gone:
    """Leave a run that waits for a person the newest checkpoint of each lane."""
    at = Context(tx, Caller(account=run["account"]), now_ms)
    count = sum(trim_lane(at, run["run"], lane["lane"], 1) for lane in tx.all("lanes", **ids))
    newest = tx.one("latest_checkpoint", **ids)
    if newest is not None and newest["key"] is None:
        count += tx.run("evict_checkpoints", **ids, through=newest["seq"] - 1)
    if count:
        count += collect_parts(at, run["run"])
    return _Gone(int(count > 0), count)


def _sweep_watched(tx: Tx, run: Any, ids: Mapping[str, int], *, before: int, rows: int) -> _Gone:
    """What watch mode recorded goes piece by piece, since a run may be watched for longer."""
    if run["updated_at"] < before:
        return _forget(tx, ids, rows, keep_row=False)
    count = 0
    for what in ("asked", "attempts", "checkpoints"):
        count += tx.run(f"forget_old_{what}", **ids, before=before, limit=rows - count)
    return _Gone(int(count > 0), count)


def _sweep_accounts(tx: Tx, place: Place, *, now_ms: int) -> tuple[int, Place | None]:
    rows = tx.all("accounts_after", watching=WATCHING, after=place.account_id, limit=LOOKED_AT_ONCE)
    removed = sum(_sweep_account(tx, row, now_ms=now_ms) for row in rows)
    if len(rows) < LOOKED_AT_ONCE:
        return removed, None
    return removed, Place(rows[-1]["account_id"], runs_are_done=True)
