"""Moments and durations in words."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runmemory_core.model import DAY_MS
from runmemory_core.policy.times import clock_time, day_of, duration, end_of_day, next_day, rfc3339

SECOND, MINUTE, HOUR = 1_000, 60_000, 3_600_000
MOMENTS = st.integers(min_value=0, max_value=253_402_300_799_999)


@given(MOMENTS)
def test_a_moment_comes_back_from_rfc_3339(moment_ms: int) -> None:
    text = rfc3339(moment_ms)
    assert text.endswith("Z")
    assert round(datetime.fromisoformat(text).timestamp() * 1_000) == moment_ms


@given(MOMENTS)
def test_a_day_is_the_utc_day(moment_ms: int) -> None:
    assert day_of(moment_ms) == rfc3339(moment_ms)[:10]
    assert clock_time(moment_ms) == rfc3339(moment_ms)[11:16]


@given(MOMENTS.filter(lambda moment: moment < 253_402_214_400_000))
def test_the_next_day_begins_when_this_one_ends(moment_ms: int) -> None:
    midnight = next_day(moment_ms)
    assert 0 < midnight - moment_ms <= DAY_MS
    assert rfc3339(midnight).endswith("T00:00:00.000Z")
    assert day_of(midnight - 1) == day_of(moment_ms) != day_of(midnight)
    assert end_of_day(moment_ms // DAY_MS) == rfc3339(midnight)


def test_milliseconds_are_kept_without_rounding() -> None:
    assert rfc3339(1_772_366_400_001) == "2026-03-01T12:00:00.001Z"
    assert rfc3339(1_772_366_399_999) == "2026-03-01T11:59:59.999Z"
    assert datetime(2026, 3, 1, 12, tzinfo=UTC).timestamp() * 1_000 == 1_772_366_400_000


@pytest.mark.parametrize(
    ("length_ms", "words"),
    [
        (-5, "under a second"),
        (0, "under a second"),
        (999, "under a second"),
        (SECOND, "about 1 second"),
        (2 * SECOND, "about 2 seconds"),
        (119 * SECOND, "about 119 seconds"),
        (2 * MINUTE, "about 2 minutes"),
        (30 * MINUTE + 29 * SECOND, "about 30 minutes"),
        (119 * MINUTE, "about 119 minutes"),
        (2 * HOUR, "about 2 hours"),
        (47 * HOUR, "about 47 hours"),
        (48 * HOUR, "about 2 days"),
        (365 * DAY_MS, "about 365 days"),
    ],
)
def test_a_duration_is_said_in_one_unit(length_ms: int, words: str) -> None:
    assert duration(length_ms) == words
