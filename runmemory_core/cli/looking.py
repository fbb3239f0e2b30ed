"""Commands that ask a client: what a person wants to know of their runs, in a file or at a service."""

from __future__ import annotations

import argparse
import json

from runmemory_core.cli import output
from runmemory_core.client import Client
from runmemory_core.errors import NotFound
from runmemory_core.operations.tools import CheckpointRow, ResumeReply

_ROWS = 500


def runs(chosen: argparse.Namespace) -> None:
    """The runs of the newest checkpoints, each with its last one."""
    _check_tables(chosen)
    with Client(chosen.url) as client:
        reply = client.list_checkpoints(unfinished=chosen.unfinished, limit=_ROWS)
        where = client.where
    latest: dict[str, CheckpointRow] = {}
    for row in reply.checkpoints:
        latest.setdefault(row.run_id, row)
    complete = len(reply.checkpoints) < _ROWS
    if chosen.json:
        listed = [row.model_dump(mode="json", exclude_none=True) for row in latest.values()]
        output.data({"where": where, "mode": reply.mode, "complete": complete, "runs": listed})
        return
    if latest:
        rows = [
            (row.run_id, row.run_status, row.seq, row.step, row.bytes, output.second(row.saved_at))
            for row in latest.values()
        ]
        output.table(
            f"Runs in {where}", ("run", "status", "seq", "last step", "bytes", "saved at (UTC)"), rows
        )
    else:
        output.line(f"No {'unfinished ' if chosen.unfinished else ''}runs in {where}.")
    if not complete:
        output.line(f"Older runs are left out: these are the runs of the newest {_ROWS} checkpoints.")
    if reply.mode == "watch":
        output.line("Watch mode, where nothing is stored: set RUNMEMORY_API_KEY to see an account's runs.")


def show(chosen: argparse.Namespace) -> None:
    """One run, only looked at: no attempt begins."""
    _check_tables(chosen)
    with Client(chosen.url) as client:
        checkpoints = client.list_checkpoints(chosen.run)
        reply = client.resume(chosen.run, peek=True)
    if chosen.json:
        rows = [row.model_dump(mode="json", exclude_none=True) for row in checkpoints.checkpoints]
        output.data({"run": reply.model_dump(mode="json", exclude_none=True), "checkpoints": rows})
        return
    output.line(_at(reply))
    output.line(f"attempt {reply.attempt or 0}, {reply.done_count:,} done")
    if reply.in_flight:
        output.line(f"in flight, outcome unknown: {', '.join(reply.in_flight)}")
    rows = [
        (row.seq, row.step, row.bytes, output.second(row.saved_at), row.lane)
        for row in checkpoints.checkpoints
    ]
    title = "Newest checkpoints, of more" if checkpoints.cursor else "Checkpoints"
    if rows:
        output.table(title, ("seq", "step", "bytes", "saved at (UTC)", "lane"), rows)
    if (last := reply.checkpoint) is not None and last.state is not None:
        output.line(json.dumps(last.state, indent=2, ensure_ascii=False))
    elif last is not None:
        output.line(f"The state of seq {last.seq} has {last.bytes:,} bytes, too many to show here.")


def _at(reply: ResumeReply) -> str:
    """Where a run stands: its outcome, which for a run that can be resumed speaks of resuming."""
    if reply.status != "resumed" or reply.checkpoint is None:
        return reply.outcome
    return f'At: "{reply.checkpoint.step}", the last step of {reply.run_id} that was saved'


def _check_tables(chosen: argparse.Namespace) -> None:
    if not chosen.json:
        output.check_tables()


def report(chosen: argparse.Namespace) -> None:
    """The weekly report."""
    with Client(chosen.url) as client:
        reply = client.weekly_report()
    if chosen.json:
        output.data({"text": reply.text, "numbers": reply.numbers})
    else:
        output.line(reply.text)


def usage(chosen: argparse.Namespace) -> None:
    """Calls of today, the plan and its limits."""
    _check_tables(chosen)
    with Client(chosen.url) as client:
        reply = client.usage_and_upgrade()
        where = client.where
    if chosen.json:
        output.data(reply.model_dump(mode="json"))
        return
    output.line(reply.outcome)
    limits = [
        (name.replace("_", " "), "unlimited" if limit is None else limit)
        for name, limit in reply.limits.items()
    ]
    output.table(f"Limits of {where}", ("limit", "value"), limits)
    output.line(f"{reply.upgrade} Calls are counted anew at {reply.usage.reset_at}.")


def delete(chosen: argparse.Namespace) -> None:
    """Delete a run; raises `NotFound` when there is none."""
    with Client(chosen.url) as client:
        count = client.store.delete_run(chosen.run).count
        where = client.where
    if not count:
        raise NotFound(f"there is no run {chosen.run} in {where}")
    if chosen.json:
        output.data({"deleted": chosen.run})
    else:
        output.line(f"Deleted run {chosen.run} from {where}; for 7 days late writes to it are refused.")
