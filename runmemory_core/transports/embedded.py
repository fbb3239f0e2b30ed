"""The engine in this process, over a store of this machine."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from functools import partial

from runmemory_core.engine import perform, reads_only
from runmemory_core.engine.sweeping import sweep_all
from runmemory_core.errors import StoreBusy
from runmemory_core.model import Caller, Reply
from runmemory_core.operations.calls import Call
from runmemory_core.operations.wire import revive
from runmemory_core.store import Store
from runmemory_core.store.clock import wall_clock_ms
from runmemory_core.store.group import GroupWriter

Clock = Callable[[], int]
logger = logging.getLogger("runmemory")

PIECES_AT_FIRST = 4


def _sweep(store: Store, caller: Caller, now_ms: int) -> None:
    """A bounded part of what a service does all the time: no service stands beside a file, so whoever opens it sweeps.

    One that wants runs to expire sweeps all of it. Nobody waits for it and nothing fails by it.
    """
    pieces = None if caller.limits.kept_for_ms is not None else PIECES_AT_FIRST
    try:
        sweep_all(store, now_ms=now_ms, pieces=pieces, wait=False)
    except StoreBusy:
        return  # whoever writes now has opened it too
    except Exception:
        logger.warning("%s was not swept", store.where, exc_info=True)


class EmbeddedTransport:
    """Blocking: each call is a transaction of its own."""

    remote = False

    def __init__(self, store: Store, *, caller: Caller, clock_ms: Clock = wall_clock_ms) -> None:
        self._store = store
        self._caller = caller
        self._clock_ms = clock_ms
        self._swept = False

    @property
    def where(self) -> str:
        return self._store.where

    def send(self, call: Call, /) -> Reply:
        now_ms = self._clock_ms()
        if not self._swept:
            self._swept = True
            _sweep(self._store, self._caller, now_ms)
        work = partial(perform, call=call, caller=self._caller, now_ms=now_ms)
        in_transaction = self._store.read if reads_only(call, self._caller) else self._store.transact
        return revive(in_transaction(work))

    def close(self) -> None:
        self._store.close()


class AsyncEmbeddedTransport:
    """For an event loop: writes of many tasks share transactions, reads run on worker threads."""

    remote = False

    def __init__(self, store: Store, *, caller: Caller, clock_ms: Clock = wall_clock_ms) -> None:
        self._store = store
        self._caller = caller
        self._clock_ms = clock_ms
        self._writer = GroupWriter(store)
        self._swept = False

    @property
    def where(self) -> str:
        return self._store.where

    async def send(self, call: Call, /) -> Reply:
        now_ms = self._clock_ms()
        if not self._swept:
            self._swept = True
            # Not awaited, since calls are performed in the order in which they were made.
            _sweep(self._store, self._caller, now_ms)
        work = partial(perform, call=call, caller=self._caller, now_ms=now_ms)
        if reads_only(call, self._caller):
            return revive(await asyncio.to_thread(self._store.read, work))
        return revive(await self._writer.submit_from(asyncio.get_running_loop(), work))

    async def close(self) -> None:
        await asyncio.to_thread(self._writer.close)
        self._store.close()
