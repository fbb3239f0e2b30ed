"""The one clock of what runs for real; the engine is handed the moment, and tests hand in their own."""

from __future__ import annotations

import time


def wall_clock_ms() -> int:
    """Now, in milliseconds since 1970 in UTC."""
    return time.time_ns() // 1_000_000
