"""The engine in this process, over a store of this machine."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial

from runmemory_core.engine import perform, reads_only
from runmemory_core.model import Caller, Reply
from runmemory_core.operations.calls import Call
from runmemory_core.operations.wire import revive
from runmemory_core.store import Store
from runmemory_core.store.clock import wall_clock_ms
from runmemory_core.store.group import GroupWriter

Clock = Callable[[], int]


class EmbeddedTransport:
    """Blocking: each call is a transaction of its own."""

    remote = False

    def __init__(self, store: Store, *, caller: Caller, clock_ms: Clock = wall_clock_ms) -> None:
        self._store = store
        self._caller = caller
        self._clock_ms = clock_ms

    @property
    def where(self) -> str:
        return self._store.where

    def send(self, call: Call, /) -> Reply:
        work = partial(perform, call=call, caller=self._caller, now_ms=self._clock_ms())
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

    @property
    def where(self) -> str:
        return self._store.where

    async def send(self, call: Call, /) -> Reply:
        work = partial(perform, call=call, caller=self._caller, now_ms=self._clock_ms())
        if reads_only(call, self._caller):
            return revive(await asyncio.to_thread(self._store.read, work))
        return revive(await self._writer.submit_from(asyncio.get_running_loop(), work))

    async def close(self) -> None:
        await asyncio.to_thread(self._writer.close)
        self._store.close()
