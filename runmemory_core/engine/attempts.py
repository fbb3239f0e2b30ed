"""Attempts: how a run and each further life of it begin, and what is counted of the lives that follow a restart.

The counts are for the weekly report. Those of the attempt under way stand in the run's row, which each save writes
anyway; they move to the attempt's own row when the next one begins.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any

from runmemory_core.engine._context import Context
from runmemory_core.engine._states import ALL_ROWS, clear_run

_HASH_BYTES = 16


@dataclass(frozen=True, slots=True)
class Reported:
    """What one save reported: steps not yet reported in this attempt, and how many of them earlier ones had."""

    asks: int
    repeats: int

    def share(self, length_ms: int) -> int:
        """The part of ``length_ms`` that went into repeats."""
        return length_ms * self.repeats // self.asks if self.asks else 0


def begin_run(at: Context, run_id: str, *, adapter: str | None = None, job: str | None = None) -> Any:
    """The row of a run nobody knows, or of one that was deleted; its first attempt is not recorded yet."""
    account_id = at.open_account()
    buried = _make_room(at, run_id)
    if buried is not None:
        at.tx.run(
            "revive_run",
            account_id=account_id,
            run=buried["run"],
            adapter=adapter,
            job=job,
            attempt=buried["attempt"] + 1,
            now=at.now,
            kept_for_ms=at.own_term_ms,
        )
    else:
        at.tx.run(
            "add_run",
            account_id=account_id,
            run=at.tx.give("next_run", account_id=account_id)["run"],
            run_id=run_id,
            adapter=adapter,
            job=job,
            attempt=1,
            now=at.now,
            kept_for_ms=at.own_term_ms,
        )
    return at.run(run_id)


def _make_room(at: Context, run_id: str) -> Any:
    """The tombstone that a run begins under, with nothing left below it; None without one, or after its time."""
    row = at.tx.one("run", account_id=at.account_id, run_id=run_id)
    if row is None:
        return None
    ids = {"account_id": at.account_id, "run": row["run"]}
    clear_run(at.tx, **ids)  # which a sweep may have come halfway through
    if not at.long_gone(row):
        return row
    at.tx.run("forget_run", **ids)
    return None


def begin_attempt(at: Context, run: Any, *, anew: bool, base_seq: int | None = None) -> Any:
    """The run's row with its next attempt; ``anew`` clears what was done and starts another generation.

    ``base_seq`` is the older checkpoint that the attempt was asked to go on from.
    """
    ids = {"account_id": at.account_id, "run": run["run"]}
    restart = not anew and run["status"] in ("running", "failed")
    if run["restarted"]:
        counts = {name: run[name] for name in ("asks", "repeats", "repeated_ms")}
        at.tx.run("end_attempt", **ids, attempt=run["attempt"], **counts)
    at.tx.run(
        "begin_attempt",
        **ids,
        attempt=run["attempt"] + 1,
        generation=run["generation"] + anew,
        generation_seq=run["seq"] if anew else run["generation_seq"],
        done_count=0 if anew else run["done_count"],
        worked_ms=0 if anew else run["worked_ms"],
        in_flight=None if anew else run["in_flight"],
        restarted=restart,
        base_seq=None if base_seq == run["seq"] else base_seq,
        now=at.now,
        kept_for_ms=at.own_term_ms,
    )
    if anew:
        at.tx.run("clear_done", **ids, limit=ALL_ROWS)
    if anew or at.caller.mode == "acting":
        # Acting needs hashes only to tell steps of one attempt apart.
        at.tx.run("clear_asked", **ids, limit=ALL_ROWS)
    before, run = run, at.run(run["run_id"])
    record_attempt(at, run, restart=restart, before=before)
    return run


def claim_run(at: Context, run: Any, *, restart: bool) -> int:
    """The number of the next attempt of an adapter's run; what the run stands at stays as it is."""
    attempt = int(at.tx.give("claim_run", account_id=at.account_id, run=run["run"], now=at.now)["attempt"])
    record_attempt(at, at.run(run["run_id"]), restart=restart, before=run)
    return attempt


def record_attempt(at: Context, run: Any, *, restart: bool = False, before: Any = None) -> None:
    """Record how the run's attempt began and, after a restart, what the one ``before`` left."""
    ids = {"account_id": at.account_id, "run": run["run"]}
    last = at.tx.one("latest_checkpoint", **ids) if restart else None
    at.tx.run(
        "add_attempt",
        **ids,
        attempt=run["attempt"],
        generation=run["generation"],
        now=at.now,
        from_seq=run["seq"],
        restart=restart,
        crash_step=last["step"] if last else None,
        crash_at=before["updated_at"] if restart else None,
        crash_error=before["error"] if before is not None else None,
        lost_ms=_lost_ms(at, before, last) if last else None,
        abandoned=before is not None and not restart and before["status"] == "running",
        handed=run["done_count"],
        handed_ms=run["worked_ms"],
        found=before["status"] if before is not None else None,
    )
    at.tx.run("forget_attempts", **ids, through=run["attempt"] - at.caller.limits.attempts_kept)


def _lost_ms(at: Context, before: Any, last: Any) -> int | None:
    """How long the work took that ended in a reported failure; unknown when the process fell silent."""
    if before["status"] != "failed":
        return None
    previous = at.tx.one("checkpoint", account_id=at.account_id, run=before["run"], seq=before["seq"] - 1)
    return None if previous is None else max(0, last["saved_at"] - previous["saved_at"])


def add_asked(at: Context, run: Any, items: Sequence[str]) -> Reported:
    """Note the steps ``items`` as reported in the run's attempt, by their keyed hashes."""
    salt, attempt, found = at.salt, run["attempt"], Reported(0, 0)
    for item in items:
        row = at.tx.give(
            "add_asked",
            account_id=at.account_id,
            run=run["run"],
            item=keyed_hash(item, salt),
            attempt=attempt,
            now=at.now,
        )
        if row is not None:
            found = Reported(found.asks + 1, found.repeats + (row["first"] < attempt))
    return found


def keyed_hash(text: str, salt: bytes) -> bytes:
    """What is kept of a text where the text itself must not be."""
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=_HASH_BYTES, key=salt).digest()


def counts_after(run: Any, reported: Reported, *, gap_ms: int) -> dict[str, int]:
    """The run's counts once a save that took ``gap_ms`` added ``reported`` to them."""
    if not run["restarted"]:
        return {name: run[name] for name in ("asks", "repeats", "repeated_ms")}
    return {
        "asks": run["asks"] + reported.asks,
        "repeats": run["repeats"] + reported.repeats,
        "repeated_ms": run["repeated_ms"] + reported.share(gap_ms),
    }
