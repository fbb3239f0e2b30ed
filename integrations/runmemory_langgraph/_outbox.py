"""What waits to be sent: a task's results go with the next checkpoint of their thread, in one call.

A step's results are followed by its checkpoint within milliseconds, so sending them apart would double the calls
and the flushes to disk. Results of a long parallel step are sent after 50 ms, so that a crash repeats little.
"""

from __future__ import annotations

import atexit
import logging
import threading
import time
import weakref
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from runmemory_core import RunDeleted
from runmemory_langgraph._encoding import Batch, Encoder

LINGER_SECONDS = 0.05
_AWAKE_SECONDS = 1.0
logger = logging.getLogger("runmemory")
# Threads share locks by hash, so that a process that serves many of them for long keeps no lock for each.
_LOCKS = 64

Encode = Callable[[Batch], dict[str, Any]]
Commit = Callable[[str, list[dict[str, Any]], dict[str, str]], list[str]]
"""Sends changes and parts of a run; returns the addresses the store misses."""


@dataclass(slots=True)
class _Waiting:
    """Changes of one thread in order: as encoded, and how to encode them again when parts are missing."""

    batch: Batch
    changes: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    encoders: list[Encode] = field(default_factory=list[Encode])
    since: float = field(default_factory=time.monotonic)

    def add(self, encode: Encode) -> None:
        self.changes.append(encode(self.batch))
        self.encoders.append(encode)


class Outbox:
    """Sends the changes of each thread in order, one call at a time for each. Thread-safe."""

    def __init__(self, encoder: Encoder, commit: Commit) -> None:
        self._encoder = encoder
        self._commit = commit
        self._guard = threading.Condition()
        self._waiting: dict[str, _Waiting] = {}
        self._sending = [threading.RLock() for _ in range(_LOCKS)]
        self._timer: threading.Thread | None = None
        self._closed = False
        atexit.register(_weakly(self._flush_at_exit))

    def linger(self, run_id: str, encode: Encode) -> None:
        """Take a change to be sent with the next one of its thread, or soon."""
        with self._lock_of(run_id):
            with self._guard:
                waiting = self._waiting.get(run_id)
            if waiting is None:
                waiting = _Waiting(self._encoder.batch(run_id))
            waiting.add(encode)
            with self._guard:
                self._waiting[run_id] = waiting
                if self._timer is None:
                    self._timer = threading.Thread(target=self._watch, name="runmemory-outbox", daemon=True)
                    self._timer.start()

    def send(self, run_id: str, encode: Encode | None = None) -> None:
        """Send what waits for a thread, followed by one more change; returns once it is stored.

        When that fails what waited goes on waiting, and the exception is raised.
        """
        with self._lock_of(run_id):
            with self._guard:
                waiting = self._waiting.pop(run_id, None)
            if waiting is None:
                if encode is None:
                    return
                waiting = _Waiting(self._encoder.batch(run_id))
            lingering = len(waiting.changes)
            try:
                if encode is not None:
                    waiting.add(encode)
                self._deliver(run_id, waiting)
            except RunDeleted:
                raise
            except Exception:
                del waiting.changes[lingering:], waiting.encoders[lingering:]
                with self._guard:
                    if lingering:
                        self._waiting[run_id] = waiting
                raise

    def flush(self, run_id: str | None = None) -> None:
        """Send what waits, for one thread or for all; what another caller is sending is waited for."""
        if run_id is not None:
            self.send(run_id)
            return
        with self._guard:
            due = list(self._waiting)
        for each in due:
            self.send(each)
        for lock in self._sending:
            with lock:
                pass

    def _flush_at_exit(self) -> None:
        """Send what waits, when nobody is left to hear of an exception."""
        try:
            self.flush()
        except Exception as error:  # noqa: BLE001 - a traceback would come after the program's own last words
            logger.error("runmemory: the last results were not stored: %s", error)  # noqa: TRY400 - as above

    def close(self) -> None:
        """Send what waits and stop the timer."""
        self.flush()
        with self._guard:
            self._closed = True
            timer = self._timer
            self._guard.notify()
        if timer is not None:
            timer.join()

    def _deliver(self, run_id: str, waiting: _Waiting) -> None:
        missing = self._commit(run_id, waiting.changes, waiting.batch.to_send())
        if missing:
            # The store no longer holds what it held: retention or a deletion came between. Every value is at
            # hand, so everything is encoded and sent again.
            self._encoder.forget(run_id)
            waiting.batch = self._encoder.batch(run_id)
            waiting.changes = [encode(waiting.batch) for encode in waiting.encoders]
            missing = self._commit(run_id, waiting.changes, waiting.batch.to_send())
        if missing:
            raise RuntimeError(f"the store still misses {len(missing)} parts that were just sent")
        self._encoder.confirm(waiting.batch)

    def _lock_of(self, run_id: str) -> threading.RLock:
        return self._sending[hash(run_id) % _LOCKS]

    def _watch(self) -> None:
        """Send what has waited long enough; ends after a second without work, and with it what holds the outbox."""
        busy = time.monotonic()
        while True:
            with self._guard:
                now = time.monotonic()
                busy = now if self._waiting else busy
                if self._closed or now - busy > _AWAKE_SECONDS:
                    self._timer = None
                    return
                due = [
                    run_id
                    for run_id, waiting in self._waiting.items()
                    if waiting.since + LINGER_SECONDS <= now
                ]
                if not due:
                    self._guard.wait(LINGER_SECONDS / 2)
            self._send_due(due)

    def _send_due(self, due: list[str]) -> None:
        for run_id in due:
            try:
                self.send(run_id)
            except Exception:  # noqa: BLE001 - whatever it is, the thread's next call raises it or sends what waits
                # Trying again at once would spin.
                with self._guard:
                    if (waiting := self._waiting.get(run_id)) is not None:
                        waiting.since = time.monotonic() + 1.0


def _weakly(method: Callable[[], None]) -> Callable[[], None]:
    """``method`` for `atexit`, without keeping its object alive until then; it goes with the object."""
    reference = weakref.WeakMethod(method, lambda _: atexit.unregister(call))

    def call() -> None:
        if (alive := reference()) is not None:
            alive()

    return call
