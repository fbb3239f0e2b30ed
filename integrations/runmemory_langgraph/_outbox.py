"""What waits to be sent: a task's results go with the next checkpoint of their thread, in one call.

A step's results are followed by its checkpoint within milliseconds, so sending them apart would double the calls
and the flushes to disk. Results of a long parallel step are sent after 50 ms, so that a crash repeats little.

What may be stored later goes on waiting. What is refused for good is told once and given up, so that its thread can go
on; the checkpoint that was made of it is refused with the same words.
"""

from __future__ import annotations

import atexit
import logging
import threading
import time
import weakref
from collections import OrderedDict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from runmemory_core import (
    AccountRequired,
    OverQuota,
    RunDeleted,
    RunMemoryError,
    StoreError,
    Unauthorized,
    Unavailable,
)
from runmemory_core.client import around_forks
from runmemory_core.client.spooling import PIECE_CHARACTERS
from runmemory_langgraph._encoding import Batch, Encoder

LINGER_SECONDS = 0.05
_AWAKE_SECONDS = 1.0
logger = logging.getLogger("runmemory")
# Threads share locks by hash, so that a process that serves many of them for long keeps no lock for each.
_LOCKS = 64
_REMEMBERED_REFUSALS = 1_000
_MADE_OF_RESULTS = "loop"
_LATER = (Unavailable, OverQuota, StoreError, Unauthorized, AccountRequired)

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


def is_final(error: Exception) -> bool:
    """Whether sending the same again cannot help."""
    return not isinstance(error, _LATER) and type(error) is not RunMemoryError


class Outbox:
    """Sends the changes of each thread in order, one call at a time for each. Thread-safe."""

    def __init__(self, encoder: Encoder, commit: Commit) -> None:
        self._encoder = encoder
        self._commit = commit
        self._closed = False
        self._start()
        around_forks(after_in_child=self._start)
        atexit.register(_weakly(self._flush_at_exit))

    def _start(self) -> None:
        """Begin with nothing to send and with locks that nobody holds; a forked child's parent sends what waits."""
        self._guard = threading.Condition()
        self._waiting: dict[str, _Waiting] = {}
        self._sending = [threading.RLock() for _ in range(_LOCKS)]
        self._refused: OrderedDict[tuple[str, str, str, str], Exception] = OrderedDict()
        """By thread, namespace, checkpoint and task: results that were given up."""
        self._timer: threading.Thread | None = None

    def linger(self, run_id: str, encode: Encode) -> None:
        """Take a change to be sent with the next one of its thread, or soon."""
        with self._lock_of(run_id):
            with self._guard:
                waiting = self._waiting.get(run_id)
            if waiting is None:
                waiting = _Waiting(self._encoder.batch(run_id))
            waiting.add(encode)
            with self._guard:
                # A task that ran again has other results now.
                self._refused.pop(_task_of(run_id, waiting.changes[-1]), None)
                self._waiting[run_id] = waiting
                if self._timer is None:
                    self._timer = threading.Thread(target=self._watch, name="runmemory-outbox", daemon=True)
                    self._timer.start()

    def send(self, run_id: str, encode: Encode | None = None) -> None:
        """Send what waits for a thread, followed by one more change; returns once it is stored.

        When that fails the exception is raised, and what waited goes on waiting unless it is refused for good.
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
                    self._raise_refusal(run_id, waiting.changes[-1])
                self._deliver(run_id, waiting)
            except RunDeleted:
                raise
            except Exception as error:
                del waiting.changes[lingering:], waiting.encoders[lingering:]
                if is_final(error):
                    self._send_each(run_id, waiting)
                elif lingering:
                    self._keep(run_id, waiting)
                raise

    def _send_each(self, run_id: str, waiting: _Waiting) -> None:
        """Send each change alone, after something was refused: only what is refused by itself is given up."""
        for change, encode in zip(waiting.changes, waiting.encoders, strict=True):
            alone = _Waiting(self._encoder.batch(run_id))
            try:
                alone.add(encode)
                self._deliver(run_id, alone)
            except Exception as error:  # noqa: BLE001 - whoever sends hears of what was refused first
                if not is_final(error):
                    self._keep(run_id, waiting)  # what arrived may be sent again
                    return
                self._give_up(run_id, change, error)

    def _keep(self, run_id: str, waiting: _Waiting) -> None:
        with self._guard:
            self._waiting[run_id] = waiting

    def _give_up(self, run_id: str, change: dict[str, Any], error: Exception) -> None:
        error.__context__ = None  # tracebacks would keep the values alive
        with self._guard:
            self._refused[_task_of(run_id, change)] = error.with_traceback(None)
            while len(self._refused) > _REMEMBERED_REFUSALS:
                self._refused.popitem(last=False)
        logger.error(
            "runmemory: results of task %s of thread %s are not stored: %s", change["task_id"], run_id, error
        )

    def _raise_refusal(self, run_id: str, change: dict[str, Any]) -> None:
        """Raise, once, why results that a checkpoint was made of were given up: without them it is not whole."""
        if change["op"] != "put":
            return
        place = (run_id, change["lane"], change.get("parent"))
        with self._guard:
            refusals = [self._refused.pop(task) for task in list(self._refused) if task[:3] == place]
        # An input or an edit goes on without the results of unfinished tasks.
        if refusals and change["metadata"].get("source") == _MADE_OF_RESULTS:
            raise refusals[0]

    def flush(self, run_id: str | None = None) -> None:
        """Send what waits, for one thread or for all; what another caller is sending is waited for.

        Of all threads, those are sent that can be before the first exception is raised.
        """
        if run_id is not None:
            self.send(run_id)
            return
        with self._guard:
            due = list(self._waiting)
        failed: Exception | None = None
        for each in due:
            try:
                self.send(each)
            except Exception as error:  # noqa: BLE001 - raised below
                failed = failed or error
        for lock in self._sending:
            with lock:
                pass
        if failed is not None:
            raise failed

    def _flush_at_exit(self) -> None:
        """Send what waits, when nobody is left to hear of an exception."""
        try:
            self.flush()
        except Exception as error:  # noqa: BLE001 - a traceback would come after the program's own last words
            logger.error("runmemory: the last results were not stored: %s", error)  # noqa: TRY400 - as above

    def close(self) -> None:
        """Send what waits and stop the timer, also when something cannot be sent."""
        try:
            self.flush()
        finally:
            with self._guard:
                self._closed = True
                timer = self._timer
                self._guard.notify()
            if timer is not None:
                timer.join()

    def _deliver(self, run_id: str, waiting: _Waiting, *, repeats: bool = False) -> None:
        texts = waiting.batch.to_send()
        if len(waiting.changes) > 1 and sum(map(len, texts.values())) > PIECE_CHARACTERS:
            half = len(waiting.changes) // 2
            for encoders in (waiting.encoders[:half], waiting.encoders[half:]):
                self._deliver(run_id, self._encoded(run_id, encoders), repeats=repeats)
            return
        missing = self._commit(run_id, waiting.changes, texts)
        if missing and repeats:
            raise RuntimeError(f"the store still misses {len(missing)} parts that were just sent")
        if missing:
            # The store no longer holds what it held: retention or a deletion came between. Every value is at
            # hand, so everything is encoded and sent again.
            self._encoder.forget(run_id)
            self._deliver(run_id, self._encoded(run_id, waiting.encoders), repeats=True)
            return
        self._encoder.confirm(waiting.batch)

    def _encoded(self, run_id: str, encoders: Iterable[Encode]) -> _Waiting:
        made = _Waiting(self._encoder.batch(run_id))
        for encode in encoders:
            made.add(encode)
        return made

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


def _task_of(run_id: str, change: dict[str, Any]) -> tuple[str, str, str, str]:
    return (run_id, change["lane"], change["key"], change["task_id"])


def _weakly(method: Callable[[], None]) -> Callable[[], None]:
    """``method`` for `atexit`, without keeping its object alive until then; it goes with the object."""
    reference = weakref.WeakMethod(method, lambda _: atexit.unregister(call))

    def call() -> None:
        if (alive := reference()) is not None:
            alive()

    return call
