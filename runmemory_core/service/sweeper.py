"""The sweep of a running service: one bounded piece after the other, with the writes of everybody else between.

Several processes on one database may all do it.
"""

from __future__ import annotations

import asyncio
import logging
from functools import partial

from runmemory_core.engine.sweeping import Walk, sweep
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
        except Exception:  # whatever it is, what expires later must go all the same
            logger.exception("the sweep goes on later")


async def _walk(engine: Engine) -> None:
    """One walk; a run that cannot be swept is passed by, and said to be."""
    walk = Walk()
    while walk.place is not None:
        try:
            _, walk.place = await engine.write(partial(sweep, walk=walk, now_ms=engine.clock_ms()))
        except Exception as error:
            if not walk.passes_by(error):
                raise
            logger.warning("the sweep passes by %s, which it cannot sweep", walk.at, exc_info=error)
        await asyncio.sleep(engine.settings.sweep_pause_seconds)
