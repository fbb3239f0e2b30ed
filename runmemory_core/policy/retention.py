"""Which checkpoints are kept, and until when: pure rules over counts, seqs and moments."""

from __future__ import annotations

from runmemory_core.model import Limits


def evicted_through(seq: int, keep: int | None) -> int:
    """The greatest seq that is no longer kept in an unbroken chain that ends at ``seq``; 0 when all are."""
    return 0 if keep is None else max(0, seq - keep)


def expires_at(last_activity_ms: int, limits: Limits) -> int | None:
    """When a run that stays silent is removed; one clock per run, None when never."""
    return None if limits.kept_for_ms is None else last_activity_ms + limits.kept_for_ms
