"""`Run` and `AsyncRun`: a resumable piece of work in a ``with`` block, for plain Python.

What happens on the way is shared and pure (`_Progress`); the two classes only send.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, TypeVar

from runmemory_core.errors import (
    AccountRequired,
    InvalidRequest,
    RunFinished,
    RunMemoryError,
    StaleAttempt,
    StateTooLarge,
)
from runmemory_core.model import LIMITS, Plan
from runmemory_core.operations._fields import NAME_CHARACTERS
from runmemory_core.operations.tools import ERROR_CHARACTERS, ResumeReply, SaveReply
from runmemory_core.policy.json_rules import canonical
from runmemory_core.policy.redaction import contains_credential, redact_message

if TYPE_CHECKING:
    from runmemory_core.client.asynchronous import AsyncClient
    from runmemory_core.client.blocking import Client

Item = TypeVar("Item")
logger = logging.getLogger("runmemory")


class _Progress:
    """What a run knows of itself: its state, its done set, its attempt."""

    def __init__(self, run_id: str, *, job: str | None, again: bool, preview: bool) -> None:
        self.run_id = run_id
        self.job = job
        self.again = again
        self.preview = preview
        self.attempt: int | None = None
        self.resumed = False
        self.restart = False
        self.in_flight: list[str] = []
        self.last_step: str | None = None
        self._entered = False
        self._state: dict[str, Any] = {}
        self._saved_state = _text({})
        self._done: set[str] = set()
        self._next_step: str | None = None
        self._ahead: dict[object, list[str]] = {}
        self._open: set[str] = set()

    @property
    def state(self) -> dict[str, Any]:
        """The state to continue from; `save` without a state saves it when it was changed in place."""
        self._check_entered()
        return self._state

    @state.setter
    def state(self, state: dict[str, Any]) -> None:
        self._check_entered()
        self._state = state

    @property
    def done(self) -> set[str]:
        """The ids of finished items."""
        self._check_entered()
        return self._done

    def remaining(self, items: Iterable[Item], *, key: Callable[[Item], object] = str) -> Iterator[Item]:
        """The items whose key is not in the done set; the following one is announced with each save.

        Keys are names: `InvalidRequest` for one that is empty, over 200 characters or holds a credential, before the
        first item of a sequence, or when the item is met. A loop that is left early leaves the run paused.
        """
        self._check_entered()
        named = self._named(items, key)
        return self._remaining(iter(list(named)) if isinstance(items, Sequence) else named)

    def _named(self, items: Iterable[Item], key: Callable[[Item], object]) -> Iterator[tuple[str, Item]]:
        for number, item in enumerate(items, start=1):
            name = _name_of(key(item), number)
            if name not in self._done:
                _check_key(name, number)
                yield name, item

    def _remaining(self, named: Iterator[tuple[str, Item]]) -> Iterator[Item]:
        mine = object()
        ahead = ((name, item) for name, item in named if name not in self._done)
        current = next(ahead, None)
        while current is not None:
            following = next(ahead, None)
            name, item = current
            if name not in self._done:  # a list may name an item twice
                self._next_step = None if following is None else following[0]
                self._ahead[mine] = [name] if following is None else [name, following[0]]
                self._open.add(name)
                yield item
                self._open -= self._done
            current = following
        self._ahead.pop(mine, None)
        self._next_step = None

    def _check_entered(self) -> None:
        if not self._entered:
            raise InvalidRequest(
                f"run {self.run_id} was not resumed: enter it first, with client.run(...) as run",
                pointers={"/run_id": "not entered"},
            )

    def _check_reply(self, reply: ResumeReply, where: str) -> None:
        """Raise for a run that must not go on without its caller's word."""
        if reply.mode == "watch" and not self.preview:
            raise AccountRequired(
                f"{where} stores nothing without the key of an acting plan, so run {self.run_id} would start over "
                "after a crash: pass api_key=, set RUNMEMORY_API_KEY, or only look with run(…, preview=True)"
            )
        if reply.status == "finished" and not self.again:
            raise RunFinished(
                f"run {self.run_id} is finished already; again=True begins it anew, a new run_id is another run"
            )

    def _take(self, reply: ResumeReply) -> None:
        state = self._state_in(reply)
        self._entered = True
        self.attempt = reply.attempt
        self.restart = reply.restart
        self.in_flight = reply.in_flight
        self._done.update(reply.done)
        if reply.checkpoint is None:
            return
        self.resumed = True
        self._keep(state)
        self.last_step = reply.checkpoint.step
        # A step is a finished item; without items a checkpoint, of which a failure reported one too many.
        steps = reply.done_count or reply.checkpoint.seq
        logger.info(
            "resumed at step %d of %s; %d steps skipped, %s not repeated (estimate)",
            *(steps + 1, self.run_id, steps, reply.not_repeated),
        )

    def _state_in(self, reply: ResumeReply) -> dict[str, Any]:
        """The state of ``reply``; raises where it was left out, since a run must not go on from an empty one."""
        if reply.checkpoint is None:
            return {}
        if reply.checkpoint.state is not None:
            return reply.checkpoint.state
        size, limit = reply.checkpoint.bytes, LIMITS[Plan.OWN].state_bytes
        raise StateTooLarge(
            f"the state of run {self.run_id} is {size:,} bytes and resume hands back {limit:,} at most: this would go "
            "on from an empty one: go on with the adapter that wrote it, or use another run_id",
            size=size,
            limit=limit,
        )

    def _keep(self, state: Mapping[str, Any]) -> None:
        """Know ``state`` as saved; only what the caller holds as `state` stays shared with it."""
        self._saved_state, copy = canonical(state, pointer="/state")
        if state is not self._state:
            self._state = copy

    def _changed_state(self) -> dict[str, Any] | None:
        return None if _text(self._state) == self._saved_state else self._state

    def _saving(
        self, step: str, state: Mapping[str, Any] | None, done: Sequence[object], next_step: str | None
    ) -> dict[str, Any]:
        self._check_entered()
        return {
            "step": step,
            "state": self._changed_state() if state is None else state,
            "done": [_name_of(item, number) for number, item in enumerate(done, start=1)] or None,
            "next_step": next_step or self._next_step,
            "attempt": self.attempt,
            "job": self.job,
        }

    def _saved(self, saving: Mapping[str, Any], reply: SaveReply) -> None:
        if reply.removed:
            logger.warning(
                "run %s: %d values looked like secrets and were saved as [removed] (%s)",
                *(self.run_id, reply.removed_count, ", ".join(reply.removed[:5])),
            )
        self.last_step = saving["step"]
        self._done.update(saving["done"] or ())
        if saving["state"] is not None:
            self._keep(saving["state"])

    def _closing(self, error: BaseException | None) -> dict[str, Any] | None:
        """The last save: finished, paused in the middle of `remaining`, or failed with the error's words.

        None when another worker took over.
        """
        if isinstance(error, StaleAttempt):
            return None
        closing: dict[str, Any] = {
            "step": self.last_step or "started",
            "attempt": self.attempt,
            "job": self.job,
        }
        if error is not None:  # what it left of the state may be half of a change
            return closing | {"status": "failed", "error": _in_words(error)}
        left = any(name not in self._done for names in self._ahead.values() for name in names)
        if passed_over := len(self._open - self._done) if self._done else 0:
            logger.warning(
                "%d items of run %s were met and not reported done: it stays paused, and the next start meets them",
                *(passed_over, self.run_id),
            )
            left = True
        return closing | {"status": "paused" if left else "finished", "state": self._changed_state()}

    def _not_reported(self, refusal: RunMemoryError) -> None:
        # The caller's own exception goes on; unreported, the run counts as crashed, which resumes alike.
        logger.warning("run %s could not be reported as failed: %s", self.run_id, refusal)


def _in_words(error: BaseException) -> str:
    message = redact_message(str(error))  # before it is cut, which could leave half of a credential
    return f"{type(error).__name__}{message and ': '}{message}"[:ERROR_CHARACTERS]


def _text(state: Mapping[str, Any]) -> str:
    return canonical(state, pointer="/state").text


def _name_of(key: object, number: int) -> str:
    """A key as a name; what is neither text nor a number of its own is refused, for its text may name many things."""
    if isinstance(key, str):
        return str(key)
    kind = type(key)
    says_nothing = kind.__str__ is object.__str__ and kind.__repr__ is object.__repr__
    if says_nothing or key is None or issubclass(kind, (bool, float, dict, list, set)):
        raise InvalidRequest(
            f"the key of item {number:,} is of type {kind.__name__}, which names no item: pass key= to name items "
            "by a text or a whole number",
            pointers={f"/items/{number - 1}": "no key"},
        )
    return str(key)


def _check_key(name: str, number: int) -> None:
    if not name or len(name) > NAME_CHARACTERS:
        problem = f"has {len(name):,} characters; it takes 1 to {NAME_CHARACTERS}"
    elif contains_credential(name):
        problem = "contains a credential, and names are shown in lists and logs"
    else:
        return
    raise InvalidRequest(
        f"the key of item {number:,} {problem}: pass key= to name items otherwise",
        pointers={f"/items/{number - 1}": "no key"},
    )


class Run(_Progress):
    """A run in a ``with`` block: resumes on entry, reports `finished` on a clean exit, `failed` otherwise.

    Leaving `remaining` before its end reports `paused`. Entering a finished run raises `RunFinished` unless
    ``again=True``, which begins it anew; where nothing would be stored, `AccountRequired` unless ``preview=True``.
    Saving after another worker resumed the run raises `StaleAttempt`: stop then.
    """

    def __init__(
        self,
        client: Client,
        run_id: str,
        *,
        job: str | None = None,
        again: bool = False,
        preview: bool = False,
    ) -> None:
        super().__init__(run_id, job=job, again=again, preview=preview)
        self._client = client

    def __enter__(self) -> Self:
        reply = self._client.resume(self.run_id)
        self._check_reply(reply, self._client.where)
        if reply.status == "finished":
            reply = self._client.resume(self.run_id, start_over=True)
        self._take(reply)
        while reply.done_cursor is not None:
            reply = self._client.resume(self.run_id, peek=True, done_cursor=reply.done_cursor)
            self._done.update(reply.done)
        return self

    def save(
        self,
        step: str,
        *,
        state: Mapping[str, Any] | None = None,
        done: Sequence[object] = (),
        next_step: str | None = None,
    ) -> SaveReply:
        """Save after ``step``; on return it is on disk. ``done`` ids are skipped by `remaining` from then on.

        Without ``state``, what `state` was changed to since the last save is saved; unchanged, it stays as it was.
        """
        saving = self._saving(step, state, done, next_step)
        reply = self._client.save_checkpoint(self.run_id, **saving)
        self._saved(saving, reply)
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
        self,
        client: AsyncClient,
        run_id: str,
        *,
        job: str | None = None,
        again: bool = False,
        preview: bool = False,
    ) -> None:
        super().__init__(run_id, job=job, again=again, preview=preview)
        self._client = client

    async def __aenter__(self) -> Self:
        reply = await self._client.resume(self.run_id)
        self._check_reply(reply, self._client.where)
        if reply.status == "finished":
            reply = await self._client.resume(self.run_id, start_over=True)
        self._take(reply)
        while reply.done_cursor is not None:
            reply = await self._client.resume(self.run_id, peek=True, done_cursor=reply.done_cursor)
            self._done.update(reply.done)
        return self

    async def save(
        self,
        step: str,
        *,
        state: Mapping[str, Any] | None = None,
        done: Sequence[object] = (),
        next_step: str | None = None,
    ) -> SaveReply:
        """Save after ``step``; on return it is on disk. ``done`` ids are skipped by `remaining` from then on.

        Without ``state``, what `state` was changed to since the last save is saved; unchanged, it stays as it was.
        """
        saving = self._saving(step, state, done, next_step)
        reply = await self._client.save_checkpoint(self.run_id, **saving)
        self._saved(saving, reply)
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
