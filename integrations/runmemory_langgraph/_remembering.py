"""A bounded memory of what was worked out for each run, to save doing it again; forgetting is always safe."""

from __future__ import annotations

import threading
from collections import OrderedDict
from typing import Generic, TypeVar

from runmemory_core.client import around_forks

Value = TypeVar("Value")


class Remembered(Generic[Value]):
    """Values by run and place in it; beyond ``limit_bytes`` those go that were not used for longest. Thread-safe."""

    def __init__(self, limit_bytes: int) -> None:
        self._limit_bytes = limit_bytes
        self._start()
        around_forks(after_in_child=self._start)

    def _start(self) -> None:
        """Begin empty: in a forked child, a thread that it lacks may hold the lock in the middle of a change."""
        self._lock = threading.Lock()
        self._kept: OrderedDict[tuple[str, ...], tuple[Value, int]] = OrderedDict()
        self._bytes = 0

    def find(self, run_id: str, *place: str) -> Value | None:
        """What was kept last for the place."""
        with self._lock:
            found = self._kept.get((run_id, *place))
            if found is None:
                return None
            self._kept.move_to_end((run_id, *place))
            return found[0]

    def keep(self, value: Value, size_bytes: int, run_id: str, *place: str) -> None:
        """Remember ``value`` for the place, instead of what was there."""
        with self._lock:
            self._drop((run_id, *place))
            self._kept[run_id, *place] = value, size_bytes
            self._bytes += size_bytes
            while self._bytes > self._limit_bytes:
                self._drop(next(iter(self._kept)))

    def forget(self, run_id: str) -> None:
        """Forget what was kept for a run."""
        with self._lock:
            for place in [place for place in self._kept if place[0] == run_id]:
                self._drop(place)

    def _drop(self, place: tuple[str, ...]) -> None:
        _, size_bytes = self._kept.pop(place, (None, 0))
        self._bytes -= size_bytes


class Once:
    """What was told, to tell it once; all may be told again after more than ``limit``. Thread-safe, without a lock."""

    def __init__(self, limit: int = 1_000) -> None:
        self._limit = limit
        self._told: dict[tuple[str, ...], object] = {}

    def is_new(self, *subject: str) -> bool:
        """Whether it is to be told now."""
        mark = object()
        new = (
            self._told.setdefault(subject, mark) is mark
        )  # one step: of two threads one is told that it is new
        if len(self._told) > self._limit:
            self._told = {subject: mark}
        return new
