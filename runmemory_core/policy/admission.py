"""Whether a save may happen, checked in the order replay, tombstone, attempt, expected_seq, size, quota.

Each function looks at one rule and raises its refusal in words; the order is the caller's.
"""

from __future__ import annotations

from collections.abc import Mapping

from runmemory_core.errors import (
    AdapterRun,
    IdempotencyKeyReused,
    OverQuota,
    RunDeleted,
    RunFinished,
    SeqConflict,
    StaleAttempt,
    StateTooLarge,
)
from runmemory_core.policy.times import clock_time, next_day, rfc3339

_CHANNELS_SHOWN = 8


def check_replay(recorded: bytes, body: bytes) -> None:
    """Raise unless the call with this idempotency key is the one that was answered before."""
    if recorded != body:
        raise IdempotencyKeyReused(
            "this idempotency_key was used before with another body: make a new key for each new call",
            pointers={"/idempotency_key": "used before with another body"},
        )


def check_begun_anew(run_id: str, *, deleted: bool, anew: bool, attempt: int, current: int) -> None:
    """Raise for a save that was answered before, when its checkpoint is gone with the run or its generation."""
    if deleted:
        raise RunDeleted(
            f"run {run_id} was deleted or expired since this save was answered; its checkpoint is gone: "
            "call resume to begin the run anew, or use another run_id"
        )
    if anew:
        raise StaleAttempt(
            f"run {run_id} was begun anew since this save was answered, at attempt {attempt:,}, and is at attempt "
            f"{current:,} now; stop",
            attempt=attempt,
            current_attempt=current,
        )


def check_tombstone(run_id: str, deleted_at: int | None, *, begins_anew: bool, expired: bool = False) -> None:
    """Raise for a late write to a deleted run, or to one of which all expired."""
    if deleted_at is not None and not begins_anew:
        what = "expired" if expired else "was deleted"
        raise RunDeleted(
            f"run {run_id} {what} at {rfc3339(deleted_at)}: call resume to begin it anew, or use another run_id"
        )


def check_unknown(run_id: str, attempt: int | None) -> None:
    """Raise for an attempt of a run that does not exist, beyond the first."""
    if attempt is not None and attempt != 1:
        raise StaleAttempt(
            f"there is no run {run_id}, so attempt {attempt} of it does not exist: call resume first",
            attempt=attempt,
            current_attempt=0,
        )


def check_owner(run_id: str, owner: str | None, writer: str | None) -> None:
    """Raise when the five tools write an adapter's run, an adapter another's, or one the tools' run."""
    if owner != writer:
        belongs = f"the {owner} adapter" if owner else "the five tools"
        raise AdapterRun(f"run {run_id} is written by {belongs}: use another run_id here")


def check_finished(run_id: str, status: str) -> None:
    """Raise for a save after the run reported `finished`."""
    if status == "finished":
        raise RunFinished(
            f"run {run_id} is finished: nothing more is saved; resume with start_over=true begins it anew"
        )


def check_attempt(run_id: str, attempt: int | None, *, current: int, resumed_at: int | None) -> None:
    """Raise when another worker resumed the run since, or when the attempt never existed."""
    if attempt is None or attempt == current:
        return
    if attempt < current:
        at = f" at {clock_time(resumed_at)}" if resumed_at is not None else ""
        raise StaleAttempt(
            f"another worker resumed this run{at}; stop: {run_id} is at attempt {current}, this is {attempt}",
            attempt=attempt,
            current_attempt=current,
        )
    raise StaleAttempt(
        f"attempt {attempt} of run {run_id} does not exist yet; the current one is {current}: "
        "pass the attempt that resume returned",
        attempt=attempt,
        current_attempt=current,
    )


def check_expected_seq(run_id: str, expected: int | None, *, current: int) -> None:
    """Raise when the run moved on since the caller looked."""
    if expected is not None and expected != current:
        raise SeqConflict(
            f"run {run_id} is at seq {current}, not {expected}: resume to see what was saved since",
            expected_seq=expected,
            current_seq=current,
        )


def run_state_too_large(size: int, limit: int, channels: Mapping[str, int]) -> StateTooLarge:
    """The refusal of an adapter's state over ``limit``, with the sizes of its largest channels."""
    largest = sorted(channels.items(), key=lambda item: item[1], reverse=True)[:_CHANNELS_SHOWN]
    shown = ", ".join(f"{channel} {bytes_:,}" for channel, bytes_ in largest)
    return StateTooLarge(
        f"the state is {size:,} bytes; the limit is {limit:,}: keep large results elsewhere and save their ids. "
        f"By channel: {shown}",
        size=size,
        limit=limit,
        channels=dict(largest),
    )


def check_quota(used: int, limit: int | None, *, now_ms: int, what: str = "calls") -> None:
    """Raise when the calls, or ``what`` else is counted, of this UTC day are used up."""
    if limit is not None and used >= limit:
        reset = next_day(now_ms)
        raise OverQuota(
            f"all {limit:,} {what} of this UTC day are used; nothing was saved: they reset at {rfc3339(reset)}",
            limit=limit,
            reset_at=rfc3339(reset),
            retry_after=(reset - now_ms + 999) // 1_000,
            saved=False,
        )


_HINT_FROM = 0.8
"""From this share of the calls of a day on, replies warn."""


def quota_hint(used: int, limit: int, *, now_ms: int) -> str | None:
    """The warning that comes before the refusal."""
    if used < limit * _HINT_FROM:
        return None
    reset = rfc3339(next_day(now_ms))
    if used >= limit:
        return (
            f"all {limit:,} calls of this UTC day are used: saves are refused until {reset}; reading works on"
        )
    return f"{used:,} of {limit:,} calls of this UTC day are used; after that saves are refused until {reset}"
