"""Group commit: all work that waits runs in one transaction and shares one flush to disk.

There is no timer. While one batch is being committed the next one gathers, so a lone caller waits for nothing
and many callers share the cost. Knows nothing of what the work does.
"""

from __future__ import annotations

import asyncio
import queue
import threading
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future
from contextlib import suppress
from typing import Any, NamedTuple

from runmemory_core.errors import RunMemoryError, StoreBusy, Unavailable
from runmemory_core.store import Store, Tx
from runmemory_core.store._forks import around_forks

BATCH_CALLS = 256
BATCH_BYTES = 262_144

Work = Callable[[Tx], Any]


class _Job(NamedTuple):
    """``loop`` is set when ``done`` belongs to an event loop, and is resolved there."""

    work: Work
    done: Future[Any] | asyncio.Future[Any]
    size_bytes: int
    loop: asyncio.AbstractEventLoop | None


class GroupWriter:
    """Performs submitted work in order on a thread of its own, many in one transaction of ``store``."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._reset()
        around_forks(after_in_child=self._reset)

    def _reset(self) -> None:
        self._queue: queue.SimpleQueue[_Job | None] = queue.SimpleQueue()
        self._starting = threading.Lock()
        self._thread: threading.Thread | None = None
        self._closed = False

    def submit(self, work: Work, *, size_bytes: int = 0) -> Future[Any]:
        """Queue ``work``; the future is done once its transaction is committed, or holds why it is not."""
        done: Future[Any] = Future()
        # Running from the start: a cancelled future would hide whether the work was done.
        done.set_running_or_notify_cancel()
        self._put(_Job(work, done, size_bytes, None))
        return done

    def submit_from(
        self, loop: asyncio.AbstractEventLoop, work: Work, *, size_bytes: int = 0
    ) -> asyncio.Future[Any]:
        """`submit` for the running ``loop``, which is woken once for all of its work in a transaction."""
        done = loop.create_future()
        self._put(_Job(work, done, size_bytes, loop))
        return done

    def _put(self, job: _Job) -> None:
        with self._starting:
            if self._closed:
                raise Unavailable("the store is closing: send the call again to a running one", retry_after=1)
            if self._thread is None:
                self._thread = threading.Thread(target=self._loop, name="runmemory-writer", daemon=True)
                self._thread.start()
            self._queue.put(job)

    def close(self) -> None:
        """Commit what was accepted and stop; later submissions are refused."""
        with self._starting:
            self._closed = True
            thread, self._thread = self._thread, None
            if thread is not None:
                self._queue.put(None)
        if thread is not None:
            thread.join()

    def _loop(self) -> None:
        going = True
        while going:
            batch, going = self._gather()
            if batch:
                self._commit(batch)

    def _gather(self) -> tuple[list[_Job], bool]:
        """All that waits now, at least one, up to a bounded count and size; False when asked to stop."""
        batch: list[_Job] = []
        size = 0
        job = self._queue.get()
        while job is not None:
            batch.append(job)
            size += job.size_bytes
            if len(batch) == BATCH_CALLS or size >= BATCH_BYTES:
                return batch, True
            try:
                job = self._queue.get_nowait()
            except queue.Empty:
                return batch, True
        return batch, False

    def _commit(self, batch: list[_Job]) -> None:
        try:
            outcomes = self._store.transact(lambda tx: [_outcome(tx, job.work) for job in batch])
        except BaseException as error:  # noqa: BLE001 - whatever it is, those who wait must hear of it
            if len(batch) == 1 or isinstance(error, StoreBusy):
                _deliver(batch, [error] * len(batch))
                return
            # One of them failed after writing, or the commit did: each is tried alone, so that only the
            # guilty one hears of it.
            for job in batch:
                self._commit([job])
            return
        _deliver(batch, outcomes)


def _outcome(tx: Tx, work: Work) -> Any:
    """The result of ``work``, or its refusal if it wrote nothing before refusing."""
    before = tx.changes
    try:
        return work(tx)
    except RunMemoryError as refusal:
        if tx.changes != before:
            raise
        return refusal


def _deliver(batch: Sequence[_Job], outcomes: Sequence[Any]) -> None:
    settled = list(zip(batch, outcomes, strict=True))
    for loop in {job.loop for job in batch}:
        of_loop = [(job.done, outcome) for job, outcome in settled if job.loop is loop]
        if loop is None:
            _settle(of_loop)
        else:
            with suppress(RuntimeError):  # the loop was closed: nobody waits there any more
                loop.call_soon_threadsafe(_settle, of_loop)


def _settle(outcomes: Iterable[tuple[Future[Any] | asyncio.Future[Any], Any]]) -> None:
    for done, outcome in outcomes:
        if done.cancelled():
            continue
        if isinstance(outcome, BaseException):
            done.set_exception(outcome)
        else:
            done.set_result(outcome)
