"""The reading tools: `list_checkpoints`, `weekly_report`, `usage_and_upgrade`."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import fields
from typing import Any

from runmemory_core.engine._context import Context
from runmemory_core.errors import InvalidRequest, NotFound
from runmemory_core.model import DAY_MS, Limits, Plan, Reply
from runmemory_core.operations._fields import MAX_COUNT
from runmemory_core.operations.calls import Call
from runmemory_core.operations.tools import ListCheckpoints
from runmemory_core.policy import retention
from runmemory_core.policy.times import clock_time, day_of, rfc3339

WEEK_MS = 7 * DAY_MS
_CURSOR = re.compile(r"([0-9]{1,16})\.([0-9]{1,16})\.([0-9]{1,16})")


def list_checkpoints(at: Context, call: Call) -> Reply:
    """The newest checkpoints of one run, by seq, or of all runs, by time."""
    request = call.request
    assert isinstance(request, ListCheckpoints)
    found = _of_one_run(at, request) if request.run_id else _of_all_runs(at, request)
    rows = [_row(at, row) for row in found[: request.limit]]
    subject = f"run {request.run_id}" if request.run_id else "all runs"
    count = f"{len(rows)} checkpoint{'' if len(rows) == 1 else 's'}"
    reply = at.envelope(
        understood=f"list checkpoints of {subject}",
        job=request.run_id or "all runs",
        outcome=f"{count} of {subject}, newest first." if rows else f"No checkpoints of {subject} yet.",
        code="listed",
    )
    reply["checkpoints"] = rows
    if len(found) > request.limit:
        last = found[request.limit - 1]
        reply["cursor"] = f"{last['saved_at']}.{last['run']}.{last['seq']}"
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
    saved_at, run, before = _place(request.cursor)
    return at.tx.all(
        "all_checkpoint_rows",
        account_id=at.account_id,
        unfinished=request.unfinished,
        saved_at=saved_at,
        run=run,
        before=before,
        limit=request.limit + 1,
    )


def _place(cursor: str | None) -> tuple[int, int, int]:
    """Moment, run and seq of the last row that was shown; beyond every row when none was."""
    if cursor is None:
        return MAX_COUNT, MAX_COUNT, MAX_COUNT
    if (match := _CURSOR.fullmatch(cursor)) is None:
        raise InvalidRequest("cursor is not one that a reply gave", pointers={"/cursor": "unknown cursor"})
    return int(match[1]), int(match[2]), int(match[3])


def _row(at: Context, found: Any) -> Reply:
    row: Reply = {
        "run_id": found["run_id"],
        "seq": found["seq"],
        "step": found["step"],
        "bytes": found["bytes"],
        "saved_at": rfc3339(found["saved_at"]),
        "lane": found["lane"],
        "run_status": found["status"],
    }
    expires = retention.expires_at(found["updated_at"], at.caller.limits)
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
        (
            f"Last 7 days: {numbers['runs']} runs, {numbers['finished']} finished, "
            f"{numbers['checkpoints']} checkpoints saved and still kept, {numbers['restarts']} restarts."
        )
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
