"""Moments and durations as people and programs read them. A moment is milliseconds since 1970 in UTC."""

from __future__ import annotations

from datetime import UTC, datetime
from functools import lru_cache

from runmemory_core.model import DAY_MS

_MINUTE = 60
_HOUR = 60 * _MINUTE
_DAY = 24 * _HOUR


def rfc3339(moment_ms: int) -> str:
    """The moment as ``2026-11-30T12:03:00.250Z``."""
    seconds, milliseconds = divmod(moment_ms, 1_000)
    return f"{datetime.fromtimestamp(seconds, UTC).isoformat()[:-6]}.{milliseconds:03}Z"


def day_of(moment_ms: int) -> str:
    """The UTC day of the moment, ``2026-11-30``: what quotas count by."""
    return _date(moment_ms // DAY_MS)


@lru_cache(maxsize=64)
def _date(day_number: int) -> str:
    return datetime.fromtimestamp(day_number * DAY_MS / 1_000, UTC).date().isoformat()


@lru_cache(maxsize=8)
def end_of_day(day_number: int) -> str:
    """When the UTC day of this number, counted from 1970, ends, in RFC 3339."""
    return rfc3339((day_number + 1) * DAY_MS)


def next_day(moment_ms: int) -> int:
    """The moment at which the next UTC day begins; UTC days all have the same length here."""
    return (moment_ms // DAY_MS + 1) * DAY_MS


def clock_time(moment_ms: int) -> str:
    """The UTC time of day as ``12:03``."""
    return datetime.fromtimestamp(moment_ms / 1_000, UTC).strftime("%H:%M")


def duration(length_ms: int) -> str:
    """The length in words of one unit: ``about 30 minutes``; under a second is ``under a second``."""
    seconds = length_ms // 1_000
    if seconds < 1:
        return "under a second"
    units = ((_DAY, "day"), (_HOUR, "hour"), (_MINUTE, "minute"))
    size, unit = next(((size, unit) for size, unit in units if seconds >= 2 * size), (1, "second"))
    count = round(seconds / size)
    return f"about {count} {unit}{'' if count == 1 else 's'}"
