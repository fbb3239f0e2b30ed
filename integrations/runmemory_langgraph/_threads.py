"""What this process knows of each thread it works on: what it loaded, and what it put since.

From that follows whether a put is a restart, whether a subgraph's namespace can hold anything yet, and what deserves
a warning. Nothing here is needed for correctness of what is stored: it may be forgotten at any time.
"""

from __future__ import annotations

import logging
import threading
from collections import OrderedDict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import PendingWrite
from langgraph.checkpoint.serde.types import ERROR, INTERRUPT

from runmemory_core.client import around_forks
from runmemory_core.model import RunStatus
from runmemory_langgraph._mapping import place_of
from runmemory_langgraph._remembering import Once

logger = logging.getLogger("runmemory")

REMEMBERED_THREADS = 1_000
REMEMBERED_ROOTS = 10_000
_GOES_ON = "loop"
DELIBERATE = frozenset({"update", "fork"})
"""Sources of checkpoints that leave the latest one on purpose: `update_state` and time travel."""


@dataclass(slots=True)
class _Thread:
    made: dict[str, str] = field(default_factory=dict[str, str])
    """The latest key put to each namespace since the thread was loaded."""
    asked: set[str] = field(default_factory=set[str])
    """Checkpoints at which a person is asked."""
    halted: set[str] = field(default_factory=set[str])
    """Checkpoints at which a task asked or failed, until one follows: the invocation may return at any moment."""
    stopped_at: str | None = None
    """The root checkpoint at which an earlier attempt stopped, as far as it looks."""
    chosen: str | None = None
    """The root checkpoint that was asked for by its id: going on from it is time travel."""


class _RootsPut:
    """The root checkpoints that this process put, whichever saver of it did: none of them outlived its process.

    Continued here, a thread that ends in one was not stopped by a crash. That is all there is to go by: LangGraph
    stores the same checkpoint for a stop at ``interrupt_before`` and for a process that is killed there.
    """

    def __init__(self) -> None:
        self._keys: OrderedDict[str, None] = OrderedDict()
        self._unlock()
        around_forks(after_in_child=self._unlock)

    def _unlock(self) -> None:
        """Begin with a lock that nobody holds, also in a forked child."""
        self._lock = threading.Lock()

    def add(self, key: str, *, parent: str | None) -> None:
        """``key`` follows ``parent``, which nobody will find as the latest any more."""
        with self._lock:
            self._keys.pop(parent or "", None)
            self._keys[key] = None
            while len(self._keys) > REMEMBERED_ROOTS:
                self._keys.popitem(last=False)

    def __contains__(self, key: str) -> bool:
        return key in self._keys


_roots_put = _RootsPut()


class Threads:
    """Thread-safe; a bounded number of threads is remembered."""

    def __init__(self) -> None:
        self._unlock()
        around_forks(after_in_child=self._unlock)
        self._threads: OrderedDict[str, _Thread] = OrderedDict()
        self._warned = Once()

    def _unlock(self) -> None:
        """Begin with a lock that nobody holds, also in a forked child."""
        self._lock = threading.Lock()

    def note_loaded(
        self, run_id: str, key: str | None, pending: Iterable[PendingWrite], *, chosen: bool
    ) -> None:
        """The latest root checkpoint was read, or a ``chosen`` one: an invocation may begin."""
        channels = {channel for _, channel, _ in pending}
        with self._lock:
            thread = self._of(run_id)
            thread.made.clear()
            thread.asked.clear()
            thread.chosen = key if chosen else None
            if chosen:
                return
            # Reading a thread that this process is working on is no sign of a stop, unless a node failed.
            stopped = key is not None and (key not in _roots_put or ERROR in channels)
            thread.stopped_at = key if stopped and INTERRUPT not in channels else None

    def note_put(self, run_id: str, lane: str, key: str, *, parent: str | None, source: str) -> bool:
        """A checkpoint is put; whether it goes on where an earlier attempt stopped."""
        if parent is not None and key <= parent:
            self.warn_once(
                run_id,
                "clock",
                f"checkpoint {key} of thread {run_id} is not greater than its parent {parent}: a clock runs behind, "
                "and the latest checkpoint is the greatest one",
            )
        with self._lock:
            thread = self._of(run_id)
            thread.halted.discard(parent or "")
            thread.made[lane] = key
            if lane != "":
                return False
            restart = source == _GOES_ON and parent is not None and parent == thread.stopped_at
            thread.stopped_at = None
            _roots_put.add(key, parent=parent)
            return restart

    def travels(self, run_id: str, parent: str | None) -> bool:
        """Whether what follows ``parent`` leaves the latest checkpoint on purpose.

        Newer versions of LangGraph begin time travel with a checkpoint of source ``fork``; 1.0 just goes on.
        """
        with self._lock:
            return parent is not None and self._of(run_id).chosen == parent

    def note_halt(self, run_id: str, key: str, *, asks: bool) -> None:
        """A task at this checkpoint failed, or ``asks`` a person; its put may come later."""
        with self._lock:
            thread = self._of(run_id)
            thread.halted.add(key)
            if asks:
                thread.asked.add(key)

    def is_halted(self, run_id: str, key: str) -> bool:
        """Whether a task at this checkpoint asked or failed, so that no put may follow what others result in."""
        with self._lock:
            return key in self._of(run_id).halted

    def status_at(self, run_id: str, key: str) -> RunStatus:
        """Whether the run waits for a person once this checkpoint is put."""
        with self._lock:
            return "paused" if key in self._of(run_id).asked else "running"

    def is_new(self, config: RunnableConfig) -> bool:
        """Whether a namespace belongs to a call that only this invocation can have begun, and has not yet.

        That is so below a checkpoint that it put itself: calls are named after the task, and tasks after their
        checkpoint.
        """
        run_id, lane, key = place_of(config)
        above, _, call = lane.rpartition("|")
        if key is not None or ":" not in call:
            return False
        started_by: Mapping[str, Any] = config.get("configurable", {}).get("checkpoint_map") or {}
        with self._lock:
            made = self._of(run_id).made
            return lane not in made and above in made and made[above] == started_by.get(above)

    def forget(self, run_id: str) -> None:
        """The thread was deleted or changed from outside."""
        with self._lock:
            self._threads.pop(run_id, None)

    def warn_once(self, run_id: str, subject: str, words: str) -> None:
        """Warn of a subject once for each thread."""
        if self._warned.is_new(run_id, subject):
            logger.warning("runmemory: %s", words)

    def _of(self, run_id: str) -> _Thread:
        thread = self._threads.setdefault(run_id, _Thread())
        self._threads.move_to_end(run_id)
        while len(self._threads) > REMEMBERED_THREADS:
            self._threads.popitem(last=False)
        return thread
