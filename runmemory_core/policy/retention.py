"""Which checkpoints are kept, and until when: pure rules over counts, seqs and moments."""

from __future__ import annotations

from runmemory_core.model import Limits


def evicted_through(seq: int, keep: int | None) -> int:
    """The greatest seq that is no longer kept in an unbroken chain that ends at ``seq``; 0 when all are."""
    return 0 if keep is None else max(0, seq - keep)


def kept_for_ms(limits: Limits, *, paused_newest: bool = False) -> int | None:
    """How long after the run's last activity; longer for the newest checkpoint of a run that waits for a person."""
    if limits.kept_for_ms is None or not paused_newest:
        return limits.kept_for_ms
    return max(limits.kept_for_ms, limits.paused_kept_for_ms)


def expires_at(last_activity_ms: int, limits: Limits, *, paused_newest: bool = False) -> int | None:
    """When a checkpoint of a run that stays silent may be removed; one clock per run, None when never."""
    length_ms = kept_for_ms(limits, paused_newest=paused_newest)
    return None if length_ms is None else last_activity_ms + length_ms
