"""`Run` and `AsyncRun`: a resumable piece of work in a ``with`` block, for plain Python.

What happens on the way is shared and pure (`_Progress`); the two classes only send.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, TypeVar

from runmemory_core.errors import RunFinished, RunMemoryError, StaleAttempt
from runmemory_core.operations.tools import ResumeReply, SaveReply
from runmemory_core.policy.redaction import contains_credential

if TYPE_CHECKING:
    from runmemory_core.client.asynchronous import AsyncClient
    from runmemory_core.client.blocking import Client

Item = TypeVar("Item")
logger = logging.getLogger("runmemory")

_ERROR_CHARACTERS = 500


class _Progress:
    """What a run knows of itself: its state, its done set, its attempt."""

    def __init__(self, run_id: str, *, job: str | None, again: bool) -> None:
        self.run_id = run_id
        self.job = job
        self.again = again
        self.state: dict[str, Any] = {}
        self.done: set[str] = set()
        self.attempt: int | None = None
        self.resumed = False
        self.restart = False
        self.in_flight: list[str] = []
        self.last_step: str | None = None
        self._next_step: str | None = None

    def remaining(self, items: Iterable[Item], *, key: Callable[[Item], object] = str) -> Iterator[Item]:
        """The items whose key is not in the done set; the following one is announced with each save."""
        named = ((str(key(item)), item) for item in items)
        ahead = ((name, item) for name, item in named if name not in self.done)
        current = next(ahead, None)
        while current is not None:
            following = next(ahead, None)
            name, item = current
            if name not in self.done:  # a list may name an item twice
                self._next_step = None if following is None else following[0]
                yield item
            current = following
        self._next_step = None

    def _check_finished(self, reply: ResumeReply) -> None:
        if reply.status == "finished" and not self.again:
            raise RunFinished(
                f"run {self.run_id} is finished already; again=True begins it anew, a new run_id is another run"
            )

    def _take(self, reply: ResumeReply) -> None:
        self.attempt = reply.attempt
        self.restart = reply.restart
        self.in_flight = reply.in_flight
        if reply.checkpoint is None:
            return
        self.resumed = True
        self.state = dict(reply.checkpoint.state or {})
        self.last_step = reply.checkpoint.step
        # A step is a finished item; without items a checkpoint, of which a failure reported one too many.
        steps = reply.done_count or reply.checkpoint.seq
        spared = reply.outcome.rpartition(", ")[2].rstrip(".")
        logger.info("resumed at step %d of %s; %d steps skipped, %s", steps + 1, self.run_id, steps, spared)

    def _saving(
        self, step: str, state: Mapping[str, Any] | None, done: Sequence[object], next_step: str | None
    ) -> dict[str, Any]:
        ids = [str(item) for item in done]
        return {
            "step": step,
            "state": state,
            "done": ids or None,
            "next_step": next_step or self._next_step,
            "attempt": self.attempt,
            "job": self.job,
        }

    def _saved(self, step: str, state: Mapping[str, Any] | None, done: Sequence[object]) -> None:
        self.last_step = step
        self.done.update(str(item) for item in done)
        if state is not None:
            self.state = dict(state)

    def _closing(self, error: BaseException | None) -> dict[str, Any] | None:
        """The last save: finished, or failed with the error's words; None when another worker took over."""
        if isinstance(error, StaleAttempt):
            return None
        closing: dict[str, Any] = {
            "step": self.last_step or "started",
            "attempt": self.attempt,
            "job": self.job,
        }
        if error is None:
            return closing | {"status": "finished"}
        return closing | {"status": "failed", "error": _in_words(error)}

    def _not_reported(self, refusal: RunMemoryError) -> None:
        # The caller's own exception goes on; unreported, the run counts as crashed, which resumes alike.
        logger.warning("run %s could not be reported as failed: %s", self.run_id, refusal)


def _in_words(error: BaseException) -> str:
    message = str(error)
    if contains_credential(message):
        message = "[removed]"
    return f"{type(error).__name__}: {message}"[:_ERROR_CHARACTERS]


class Run(_Progress):
    """A run in a ``with`` block: resumes on entry, reports `finished` on a clean exit, `failed` otherwise.

    Entering a finished run raises `RunFinished` unless ``again=True``, which begins it anew. Saving after another
    worker resumed the run raises `StaleAttempt`: stop then.
    """

    def __init__(self, client: Client, run_id: str, *, job: str | None = None, again: bool = False) -> None:
        super().__init__(run_id, job=job, again=again)
        self._client = client

    def __enter__(self) -> Self:
        reply = self._client.resume(self.run_id)
        self._check_finished(reply)
        if reply.status == "finished":
            reply = self._client.resume(self.run_id, start_over=True)
        self._take(reply)
        self.done.update(reply.done)
        while reply.done_cursor is not None:
            reply = self._client.resume(self.run_id, peek=True, done_cursor=reply.done_cursor)
            self.done.update(reply.done)
        return self

    def save(
        self,
        step: str,
        *,
        state: Mapping[str, Any] | None = None,
        done: Sequence[object] = (),
        next_step: str | None = None,
    ) -> SaveReply:
        """Save after ``step``; on return it is on disk. ``done`` ids are skipped by `remaining` from then on."""
        reply = self._client.save_checkpoint(self.run_id, **self._saving(step, state, done, next_step))
        self._saved(step, state, done)
        return reply

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if (closing := self._closing(error)) is None:
            return
        try:
            self._client.save_checkpoint(self.run_id, **closing)
        except RunMemoryError as refusal:
            if error is None:
                raise
            self._not_reported(refusal)


class AsyncRun(_Progress):
    """`Run` for an event loop, used in ``async with``."""

    def __init__(
        self, client: AsyncClient, run_id: str, *, job: str | None = None, again: bool = False
    ) -> None:
        super().__init__(run_id, job=job, again=again)
        self._client = client

    async def __aenter__(self) -> Self:
        reply = await self._client.resume(self.run_id)
        self._check_finished(reply)
        if reply.status == "finished":
            reply = await self._client.resume(self.run_id, start_over=True)
        self._take(reply)
        self.done.update(reply.done)
        while reply.done_cursor is not None:
            reply = await self._client.resume(self.run_id, peek=True, done_cursor=reply.done_cursor)
            self.done.update(reply.done)
        return self

    async def save(
        self,
        step: str,
        *,
        state: Mapping[str, Any] | None = None,
        done: Sequence[object] = (),
        next_step: str | None = None,
    ) -> SaveReply:
        """Save after ``step``; on return it is on disk. ``done`` ids are skipped by `remaining` from then on."""
        reply = await self._client.save_checkpoint(self.run_id, **self._saving(step, state, done, next_step))
        self._saved(step, state, done)
        return reply

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if (closing := self._closing(error)) is None:
            return
        try:
            await self._client.save_checkpoint(self.run_id, **closing)
        except RunMemoryError as refusal:
            if error is None:
                raise
            self._not_reported(refusal)
