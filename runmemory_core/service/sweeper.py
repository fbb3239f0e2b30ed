"""The sweep of a running service: one bounded piece after the other, with the writes of everybody else between.

Several processes on one database may all do it.
"""

from __future__ import annotations

import asyncio
import logging
from functools import partial

from runmemory_core.engine.sweeping import START, Place, Swept, sweep
from runmemory_core.errors import RunMemoryError
from runmemory_core.service.rest import Engine

logger = logging.getLogger("runmemory.service")


async def sweep_forever(engine: Engine) -> None:
    """Walk through what may have expired, rest, and begin again, until cancelled."""
    while True:
        await asyncio.sleep(engine.settings.sweep_seconds)
        try:
            await _walk(engine)
        except RunMemoryError as error:
            logger.warning("the sweep goes on later: %s: %s", error.code, error.detail)


async def _walk(engine: Engine) -> None:
    place: Place | None = START
    while place is not None:
        swept: Swept = await engine.write(partial(sweep, place=place, now_ms=engine.clock_ms()))
        place = swept.next
        await asyncio.sleep(engine.settings.sweep_pause_seconds)
