"""The reading tools: `list_checkpoints`, `weekly_report`, `usage_and_upgrade`."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

from runmemory_core.engine._context import Context
from runmemory_core.errors import InvalidRequest, NotFound
from runmemory_core.model import DAY_MS, Limits, Plan, Reply
from runmemory_core.operations.calls import Call
from runmemory_core.operations.tools import ListCheckpoints
from runmemory_core.policy import retention
from runmemory_core.policy.times import clock_time, day_of, rfc3339

WEEK_MS = 7 * DAY_MS
_ANY_SEQ = 2**62


def list_checkpoints(at: Context, call: Call) -> Reply:
    """The newest checkpoints of one run, or of the runs that were active last."""
    request = call.request
    assert isinstance(request, ListCheckpoints)
    rows, cursor = _one_run(at, request) if request.run_id else (_all_runs(at, request), None)
    subject = f"run {request.run_id}" if request.run_id else "all runs"
    count = f"{len(rows)} checkpoint{'' if len(rows) == 1 else 's'}"
    reply = at.envelope(
        understood=f"list checkpoints of {subject}",
        job=request.run_id or "all runs",
        outcome=f"{count} of {subject}, newest first." if rows else f"No checkpoints of {subject} yet.",
        code="listed",
    )
    reply["checkpoints"] = rows
    return reply if cursor is None else reply | {"cursor": cursor}


def _one_run(at: Context, request: ListCheckpoints) -> tuple[list[Reply], str | None]:
    run = at.run(str(request.run_id))
    if run is None or run["deleted_at"] is not None:
        raise NotFound(f"there is no run {request.run_id} in this account")
    if request.unfinished and run["status"] == "finished":
        return [], None
    before = _before(request.cursor)
    found = at.tx.all(
        "checkpoint_rows", account_id=at.account_id, run=run["run"], before=before, limit=request.limit + 1
    )
    lanes = {row["lane"]: row["name"] for row in at.tx.all("lanes", account_id=at.account_id, run=run["run"])}
    rows = [_row(at, run, row, lanes.get(row["lane"], "")) for row in found[: request.limit]]
    return rows, str(rows[-1]["seq"]) if len(found) > request.limit else None


def _before(cursor: str | None) -> int:
    if cursor is None:
        return _ANY_SEQ
    if not cursor.isdecimal():
        raise InvalidRequest("cursor is not one that a reply gave", pointers={"/cursor": "unknown cursor"})
    return int(cursor)


def _all_runs(at: Context, request: ListCheckpoints) -> list[Reply]:
    # A run's newest checkpoint is as old as its last activity, so the newest n rows lie in the newest n runs.
    rows: list[Reply] = []
    for run in at.tx.all("latest_runs", account_id=at.account_id, limit=request.limit):
        if request.unfinished and run["status"] == "finished":
            continue
        found = at.tx.all(
            "checkpoint_rows", account_id=at.account_id, run=run["run"], before=_ANY_SEQ, limit=request.limit
        )
        rows += [_row(at, run, row, "") for row in found]
    rows.sort(key=lambda row: row["saved_at"], reverse=True)
    return rows[: request.limit]


def _row(at: Context, run: Any, checkpoint: Any, lane: str) -> Reply:
    row: Reply = {
        "run_id": run["run_id"],
        "seq": checkpoint["seq"],
        "step": checkpoint["step"],
        "bytes": checkpoint["bytes"],
        "saved_at": rfc3339(checkpoint["saved_at"]),
        "lane": lane,
        "run_status": run["status"],
    }
    expires = retention.expires_at(run["updated_at"], at.caller.limits)
    return row if expires is None else row | {"expires_at": rfc3339(expires)}


def weekly_report(at: Context, call: Call) -> Reply:  # noqa: ARG001 - every use case has one shape
    """What was observed in the last 7 times 24 hours, in words and in numbers."""
    since = at.now - WEEK_MS
    runs = at.tx.all("runs_since", account_id=at.account_id, since=since)
    restarts = at.tx.all("attempts_since", account_id=at.account_id, since=since)
    saved = at.tx.one("saved_since", account_id=at.account_id, since=since)["count"]
    numbers = {
        "runs": len(runs),
        "finished": sum(run["status"] == "finished" for run in runs),
        "checkpoints": saved,
        "restarts": len(restarts),
    }
    lines = [
        f"Last 7 days: {numbers['runs']} runs, {numbers['finished']} finished, "
        f"{numbers['checkpoints']} checkpoints saved and still kept, {numbers['restarts']} restarts."
    ]
    lines += [_crash_point(row) for row in restarts]
    reply = at.envelope(
        understood="report on the last 7 days", job="all runs", outcome=lines[0], code="reported"
    )
    return reply | {"text": "\n".join(lines), "numbers": numbers}


def _crash_point(row: Any) -> str:
    where = f'after "{row["crash_step"]}"' if row["crash_step"] else "before its first checkpoint"
    error = f": {row['crash_error']}" if row["crash_error"] else ""
    at = row["crash_at"]
    return f"- {row['run_id']} stopped {where} on {day_of(at)} at {clock_time(at)} UTC{error}."


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
    Plan.WATCH: "Send an API key to save for real. Self-hosted: runmemory keys issue.",
    Plan.PRO: "This plan saves; on one's own server runmemory keys issue makes unlimited keys.",
    Plan.OWN: "Nothing to upgrade: this is your own machine. To share it: runmemory serve, then keys issue.",
}
