"""The reading tools `list_checkpoints` and `usage_and_upgrade`; the report is `runmemory_core.engine.weekly`."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import fields, replace
from typing import Any

from runmemory_core.engine._context import Context
from runmemory_core.engine.resuming import counted
from runmemory_core.errors import InvalidRequest, NotFound
from runmemory_core.model import HOSTED_URL, Limits, Plan, Reply
from runmemory_core.operations._fields import MAX_COUNT
from runmemory_core.operations.calls import Call
from runmemory_core.operations.tools import ListCheckpoints
from runmemory_core.policy import retention
from runmemory_core.policy.json_rules import write
from runmemory_core.policy.times import rfc3339

NO_LABELS = (
    "without a key others may share your address, so this shows counts and times only: POST /api/keys/free gives a "
    "free key at once"
)
_CURSOR = re.compile(r"([0-9]{1,16})\.([0-9]{1,16})\.([0-9]{1,16})")


def list_checkpoints(at: Context, call: Call) -> Reply:
    """The newest checkpoints of one run, by seq, or of all runs, by time."""
    request = call.request
    assert isinstance(request, ListCheckpoints)
    return list_rows(at, request, limits=at.caller.limits)


def list_rows(at: Context, request: ListCheckpoints, *, limits: Limits, would: str = "") -> Reply:
    """The reply with rows that expire by ``limits``; ``would`` says what they are when they are not kept."""
    if at.caller.anonymous:
        return _count_rows(at, request, would)
    found = _of_one_run(at, request) if request.run_id else _of_all_runs(at, request)
    rows = [_row(row, _limits_of(row, at, limits)) for row in found[: request.limit]]
    reply = _listed(at, request, len(rows), would)
    reply["checkpoints"] = rows
    if len(found) > request.limit:
        reply["outcome"] = reply["outcome"].removesuffix(".") + "; there are more."
        last = found[request.limit - 1]
        reply["cursor"] = ".".join(map(str, _order(last)))
    return reply


def _listed(
    at: Context, request: ListCheckpoints, count: int, would: str, notices: tuple[str, ...] = ()
) -> Reply:
    subject = f"run {request.run_id}" if request.run_id else "all runs"
    each = at.caller.limits.listed_of_each_run
    if not request.run_id and not at.caller.anonymous:
        subject = f"all runs, the newest {each} of each"
    what = f"{count} checkpoint{'' if count == 1 else 's'}{would and ' ' + would} of {subject}"
    return at.envelope(
        understood=f"list checkpoints of {subject}",
        job=request.run_id or "all runs",
        outcome=f"{what}, newest first." if count else f"No checkpoints of {subject} yet.",
        code="listed",
        notices=notices,
    )


def _count_rows(at: Context, request: ListCheckpoints, would: str) -> Reply:
    found = at.tx.one(
        "checkpoint_counts", account_id=at.account_id, run_id=request.run_id, unfinished=request.unfinished
    )
    reply = _listed(at, request, found["count"], would, (NO_LABELS,))
    reply["checkpoints"] = []
    if found["count"]:
        reply["counted"] = counted(found["count"], found["oldest"], found["newest"])
    return reply


def _of_one_run(at: Context, request: ListCheckpoints) -> Sequence[Any]:
    run = at.run(str(request.run_id))
    if run is None or run["deleted_at"] is not None:
        raise NotFound(f"there is no run {request.run_id} in this account")
    if request.unfinished and run["status"] == "finished":
        return ()
    _, _, before = _place(request.cursor)
    ids = {"account_id": at.account_id, "run": run["run"]}
    return at.tx.all("checkpoint_rows", **ids, before=before, limit=request.limit + 1)


def _of_all_runs(at: Context, request: ListCheckpoints) -> Sequence[Any]:
    """The newest rows before the cursor, found in the runs that were active last.

    A run's rows are no newer than its last activity, so runs are looked through until those left are older than what
    was found. Each look takes as many runs again as all before.
    """
    moment, run, before = _place(request.cursor)
    place = {"moment": moment, "run": run, "before": before, "of_each": at.caller.limits.listed_of_each_run}
    ids, found, offset, wanted = {"account_id": at.account_id}, list[Any](), 0, request.limit + 1
    while True:
        limit = max(wanted, offset)
        runs = at.tx.all("recent_runs", **ids, unfinished=request.unfinished, limit=limit, offset=offset)
        asked = write([row["run"] for row in runs])
        found += at.tx.all("newest_checkpoint_rows", **ids, **place, runs=asked)
        found = sorted(found, key=_order, reverse=True)[:wanted]
        if len(runs) < limit:
            return found
        last = runs[-1]
        if len(found) == wanted and _order(found[-1])[:2] >= (last["updated_at"], last["run"]):
            return found
        offset += limit


def _order(row: Any) -> tuple[int, int, int]:
    """By time; a clock that was set back does not make a row newer than its run."""
    return row["moment"], row["run"], row["seq"]


def _place(cursor: str | None) -> tuple[int, int, int]:
    """Moment, run and seq of the last row that was shown; beyond every row when none was."""
    if cursor is None:
        return MAX_COUNT, MAX_COUNT, MAX_COUNT
    if (match := _CURSOR.fullmatch(cursor)) is None:
        raise InvalidRequest("cursor is not one that a reply gave", pointers={"/cursor": "unknown cursor"})
    return int(match[1]), int(match[2]), int(match[3])


def _limits_of(found: Any, at: Context, limits: Limits) -> Limits:
    """``limits`` with the term of the run itself, where its clients decide it."""
    return replace(limits, kept_for_ms=found["kept_for_ms"]) if at.caller.plan is Plan.OWN else limits


def _row(found: Any, limits: Limits) -> Reply:
    row: Reply = {
        "run_id": found["run_id"],
        "seq": found["seq"],
        "step": found["step"],
        "bytes": found["bytes"],
        "saved_at": rfc3339(found["saved_at"]),
        "lane": found["lane"],
        "run_status": found["status"],
    }
    waiting = found["status"] == "paused" and found["seq"] == found["run_seq"]
    expires = retention.expires_at(found["updated_at"], limits, paused_newest=waiting)
    return row if expires is None else row | {"expires_at": rfc3339(expires)}


def usage_and_upgrade(at: Context, call: Call) -> Reply:  # noqa: ARG001 - every use case has one shape
    """Calls used today, the plan, its limits, and how to get more."""
    limits = {name: _bound(at.caller.limits, name) for name in (f.name for f in fields(Limits))}
    used = at.used()
    day_limit = at.caller.limits.calls_a_day
    budget = f"{used:,} of {day_limit:,}" if day_limit is not None else f"{used:,}, unlimited"
    reply = at.envelope(
        understood="show usage and plan",
        job="usage",
        outcome=f"Plan {at.caller.plan.value}: calls today {budget}.",
        code="usage",
    )
    return reply | {"plan": at.caller.plan.value, "limits": limits, "upgrade": _UPGRADE[at.caller.plan]}


def _bound(limits: Limits, name: str) -> int | None:
    value: int | None = getattr(limits, name)
    return value


_UPGRADE = {
    Plan.WATCH: f"Pro saves for real: {HOSTED_URL}. Self-hosted: runmemory keys issue.",
    Plan.PRO: "This plan saves; on one's own server runmemory keys issue makes unlimited keys.",
    Plan.OWN: "Nothing to upgrade: this is your own store. runmemory serve and runmemory keys issue share it.",
}
