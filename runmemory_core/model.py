"""The nouns of Run Memory as frozen values: plans, limits, callers, usage.

No behaviour beyond what follows from the values themselves, and no I/O: a noun may be built by any floor.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Literal, NewType

RELEASE = "0.1.0"
"""Of this package, as in pyproject.toml."""

HOSTED_URL = "https://memory.cloudforbots.com"
SUMMARY = "Checkpoints for long agent runs: crashed at step 7, resume at step 8."

Mode = Literal["acting", "watch"]
RunStatus = Literal["running", "paused", "finished", "failed"]

RawJson = NewType("RawJson", str)
"""JSON text that is already final: writers splice it in unchanged instead of writing it anew."""

DAY_MS = 86_400_000
KIB = 1_024
MIB = 1_024 * KIB


class Plan(StrEnum):
    """What a caller may do: `WATCH` only previews, `PRO` saves with limits, `OWN` is one's own machine."""

    WATCH = "watch"
    PRO = "pro"
    OWN = "own"

    @property
    def rank(self) -> int:
        """Higher for the plan that keeps more."""
        return list(Plan).index(self)


@dataclass(frozen=True, slots=True)
class Limits:
    """Every number of the specification in one value; None means unlimited.

    ``keep`` counts checkpoints per run and lane; ``kept_for_ms`` runs from the last activity of the run, and
    where it is set the newest checkpoint of a paused run stays for ``paused_kept_for_ms``. What watch mode records
    goes after ``watched_for_ms``; of one call it records ``watched_ids`` done ids. A free key goes when it was not used
    for ``unused_keys_kept_for_ms``.
    """

    calls_a_day: int | None = None
    keep: int | None = None
    kept_for_ms: int | None = None
    state_bytes: int = 262_144
    part_bytes: int = 262_144
    run_state_bytes: int = 16 * MIB
    done_ids: int = 100_000
    done_page: int = 1_000
    replays_kept_for_ms: int = 7 * DAY_MS
    tombstones_kept_for_ms: int = 7 * DAY_MS
    paused_kept_for_ms: int = 365 * DAY_MS
    watched_for_ms: int = 8 * DAY_MS
    watched_ids: int = 1_000
    unused_keys_kept_for_ms: int = 30 * DAY_MS
    attempts_kept: int = 1_000
    listed_of_each_run: int = 5
    abandoned_after_ms: int = DAY_MS


LIMITS: dict[Plan, Limits] = {
    Plan.WATCH: Limits(calls_a_day=500),
    Plan.PRO: Limits(calls_a_day=50_000, keep=20, kept_for_ms=30 * DAY_MS),
    Plan.OWN: Limits(),
}

DEFAULT_ACCOUNT = "default"


@dataclass(frozen=True, slots=True)
class Caller:
    """Who asks: the account's name, its plan and the limits in force for it.

    ``formerly`` is the name that the same anonymous caller had before the key of addresses changed.
    """

    account: str = DEFAULT_ACCOUNT
    plan: Plan = Plan.OWN
    limits: Limits = field(default=LIMITS[Plan.OWN])
    anonymous: bool = False
    formerly: str | None = None

    @property
    def mode(self) -> Mode:
        """`watch` when nothing may be stored for this caller, otherwise `acting`."""
        return "watch" if self.plan is Plan.WATCH else "acting"


Reply = dict[str, Any]
"""An answer of the engine: JSON values in which ready texts stand as `RawJson`."""
