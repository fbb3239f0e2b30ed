"""`weekly_report`: what was observed in the last 7 times 24 hours, in words and in numbers.

Only observations; zero stays zero. Where a number is an estimate or cannot be known, the text says so.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from runmemory_core.engine._context import Context
from runmemory_core.engine.reports import NO_LABELS
from runmemory_core.model import DAY_MS, Limits, Reply
from runmemory_core.operations.calls import Call
from runmemory_core.policy.times import clock_time, day_of, duration

WEEK_MS = 7 * DAY_MS
_CRASH_POINTS_SHOWN = 50


def weekly_report(at: Context, call: Call) -> Reply:  # noqa: ARG001 - every use case has one shape
    """Runs, checkpoints, restarts with their crash points, and what was asked again or skipped after them."""
    since = at.now - WEEK_MS
    ids = {"account_id": at.account_id, "since": since}
    runs, begun = at.tx.all("runs_since", **ids), at.tx.all("attempts_since", **ids)
    restarts = [row for row in begun if row["restart"]]
    watching = at.caller.mode == "watch"
    numbers = _of_runs(runs, begun, now_ms=at.now, limits=at.caller.limits)
    numbers |= _watched(restarts) if watching else _acted(restarts)
    saved = "would have been saved" if watching else "saved"
    first = (
        f"Last 7 days: {_count(numbers['runs'], 'run')}, {numbers['finished']} finished, "
        f"{_count(numbers['checkpoints'], 'checkpoint')} {saved}, {_count(numbers['restarts'], 'restart')}."
    )
    lines = [first, *(_watched_words(numbers) if watching else _acted_words(numbers))]
    if not at.caller.anonymous:
        lines += [_crash_point(row, watching=watching) for row in restarts[-_CRASH_POINTS_SHOWN:]]
    lines += _blind_spots(at, runs, since)
    reply = at.envelope(
        understood="report on the last 7 days",
        job="all runs",
        outcome=first,
        code="reported",
        notices=(NO_LABELS,) if at.caller.anonymous else (),
    )
    return reply | {"text": "\n".join(lines), "numbers": numbers}


# --- numbers --------------------------------------------------------------------------------------------


def _of_runs(runs: Sequence[Any], begun: Sequence[Any], *, now_ms: int, limits: Limits) -> dict[str, int]:
    silent = [
        run
        for run in runs
        if run["status"] == "running"
        and run["adapter"] is None
        and run["updated_at"] <= now_ms - limits.abandoned_after_ms
    ]
    return {
        "runs": len(runs),
        "finished": sum(run["status"] == "finished" for run in runs),
        # Of a run that is older than the week, what retention removed is not known any more.
        "checkpoints": sum(run["kept"] for run in runs),
        "restarts": sum(row["restart"] for row in begun),
        "abandoned": len(silent) + sum(row["abandoned"] for row in begun),
    }


def _watched(restarts: Sequence[Any]) -> dict[str, int]:
    asks, repeats = (sum(row[name] for row in restarts) for name in ("asks", "repeats"))
    repeated_ms = sum(row["repeated_ms"] for row in restarts)
    return {"asks": asks, "skippable": repeats, "new": asks - repeats, "repeated_ms": repeated_ms}


def _acted(restarts: Sequence[Any]) -> dict[str, int]:
    asks, repeats = (sum(row[name] for row in restarts) for name in ("asks", "repeats"))
    # An attempt that reported nothing has not shown yet that it skips anything.
    went_on = [row for row in restarts if row["asks"]]
    return {
        "asks": asks,
        "skipped": sum(max(0, row["handed"] - row["repeats"]) for row in went_on),
        "repeated": repeats,
        "new": asks - repeats,
        "not_repeated_ms": sum(_not_repeated_ms(row) for row in went_on),
    }


def _not_repeated_ms(row: Any) -> int:
    """What the handed back work took at first, without the share that was done again all the same."""
    handed = row["handed"]
    return row["handed_ms"] * max(0, handed - row["repeats"]) // handed if handed else row["handed_ms"]


# --- words ----------------------------------------------------------------------------------------------


def _watched_words(numbers: dict[str, int]) -> Iterator[str]:
    if numbers["restarts"]:
        yield (
            f"After restarts: {_count(numbers['asks'], 'ask')}, {numbers['skippable']:,} skippable, "
            f"{duration(numbers['repeated_ms'])} repeated (measured)."
        )


def _acted_words(numbers: dict[str, int]) -> Iterator[str]:
    if numbers["restarts"]:
        yield (
            f"After restarts: {_count(numbers['asks'], 'ask')}, {numbers['skipped']:,} skipped, "
            f"{duration(numbers['not_repeated_ms'])} not repeated (estimate)."
        )
    if numbers["repeated"]:
        yield f"{_count(numbers['repeated'], 'done id')} handed back and repeated all the same."


def _crash_point(row: Any, *, watching: bool) -> str:
    where = f'after "{row["crash_step"]}"' if row["crash_step"] else "before its first checkpoint"
    error = f": {row['crash_error']}" if row["crash_error"] else ""
    at = row["crash_at"]
    lost = ""
    if watching and row["repeats"]:
        lost = f" {_count(row['repeats'], 'step')} repeated, {duration(row['repeated_ms'])}."
    elif row["lost_ms"] is not None:
        lost = f" {duration(row['lost_ms']).capitalize()} of work was lost."
    return f"- {row['run_id']} stopped {where} on {day_of(at)} at {clock_time(at)} UTC{error}.{lost}"


def _blind_spots(at: Context, runs: Sequence[Any], since: int) -> Iterator[str]:
    limit = at.caller.limits.calls_a_day
    if limit is not None:
        days = at.tx.all("usage_since", account_id=at.account_id, since=day_of(since))
        if full := [row["day"] for row in days if row["calls"] >= limit]:
            yield f"Not seen: saves after all {limit:,} calls were used, on {', '.join(full)}."
    unfinished = sum(run["status"] not in ("finished", "paused") and run["adapter"] is None for run in runs)
    if unfinished:
        yield f"Not known: how {_count(unfinished, 'run')} that never reported finished ended."
    if once := sum(run["seq"] <= 1 and run["status"] != "finished" for run in runs):
        yield f"Seen once: {_count(once, 'run_id')} with one step or none; a new name each time hides restarts."


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
