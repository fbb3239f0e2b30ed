"""The client for event loops. `Client` has the same surface; a test compares them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta
from os import PathLike
from pathlib import Path
from typing import Any, Literal, Self

from runmemory_core.client._calls import ReplyModel, make_call, read_reply
from runmemory_core.client._connect import connect_async, previous_spool_file, spool_file, target
from runmemory_core.client._run import AsyncRun
from runmemory_core.errors import InvalidRequest
from runmemory_core.model import RunStatus
from runmemory_core.operations.calls import Call
from runmemory_core.operations.storage import (
    ClaimReply,
    CommitReply,
    CountReply,
    EntriesReply,
    FetchReply,
)
from runmemory_core.operations.tools import ListReply, ReportReply, ResumeReply, SaveReply, UsageReply
from runmemory_core.transports import AsyncTransport


def _arguments(given: Mapping[str, Any]) -> dict[str, Any]:
    """A method's own arguments, from its ``locals()``."""
    return {name: value for name, value in given.items() if name != "self"}


class AsyncClient:
    """Client for an event loop; the same methods as `Client`, awaited.

    ``url`` is a service or a file. Without it and key it is a file of this machine. ``keep`` and ``expire_after``
    bound what an embedded store holds of the runs that this client wrote last. With ``retries=False`` a service that
    does not answer is asked only once. Safe to share between tasks of one loop.
    """

    def __init__(
        self,
        url: str | PathLike[str] | None = None,
        *,
        api_key: str | None = None,
        timeout_seconds: float = 30.0,
        keep: int | None = None,
        expire_after: timedelta | None = None,
        redacts: bool = True,
        retries: bool = True,
    ) -> None:
        self._target = target(
            url,
            api_key=api_key,
            timeout_seconds=timeout_seconds,
            keep=keep,
            expire_after=expire_after,
            redacts=redacts,
            retries=retries,
        )
        self._closed = False
        self._redacts = redacts
        self._transport: AsyncTransport = connect_async(self._target)

    def __repr__(self) -> str:
        return f"AsyncClient({self._target!r})"

    @property
    def where(self) -> str:
        """Where this client saves, for people."""
        return self._transport.where

    @property
    def remote(self) -> bool:
        """Whether calls leave this process."""
        return self._transport.remote

    @property
    def redacts(self) -> bool:
        """Whether what is saved is looked through for secrets first."""
        return self._redacts

    @property
    def has_key(self) -> bool:
        """Whether calls carry an API key."""
        return self._target.api_key is not None

    @property
    def spool_file(self) -> Path:
        """Where adapters let writes wait while the service is away."""
        return spool_file(self._target)

    @property
    def previous_spool_file(self) -> Path | None:
        """Where they waited under the key that this client's replaced; None where nothing says so."""
        return previous_spool_file(self._target)

    @property
    def store(self) -> AsyncStoreClient:
        """The storage interface for adapters."""
        return AsyncStoreClient(self)

    def run(
        self, run_id: str | int, *, job: str | None = None, again: bool = False, preview: bool = False
    ) -> AsyncRun:
        """A run for plain Python, used in ``async with``: resumes on entry, finishes on a clean exit.

        ``again`` begins a finished run anew; ``preview`` goes on where nothing is stored, only to look.
        """
        return AsyncRun(self, str(run_id), job=job, again=again, preview=preview)

    async def resume(
        self,
        run_id: str | int,
        *,
        peek: bool = False,
        seq: int | None = None,
        attempt: int | None = None,
        start_over: bool = False,
        done_cursor: int | None = None,
        idempotency_key: str | None = None,
    ) -> ResumeReply:
        """What a run left and the work already done; call first, and after each start of the process.

        Raises `CheckpointGone` for a ``seq`` that retention removed, `StaleAttempt` for an old ``attempt``.
        """
        return await self._ask(ResumeReply, "resume", _arguments(locals()))

    async def save_checkpoint(
        self,
        run_id: str | int,
        step: str,
        *,
        state: Mapping[str, Any] | str | None = None,
        done: Sequence[str | int] | None = None,
        next_step: str | None = None,
        status: RunStatus | None = None,
        error: str | None = None,
        attempt: int | None = None,
        job: str | None = None,
        idempotency_key: str | None = None,
        expected_seq: int | None = None,
    ) -> SaveReply:
        """Save after a completed step; returns once it is on disk. ``state`` is at most 262,144 bytes of JSON.

        Raises `InvalidJson`, `StateTooLarge`, `StaleAttempt`, `SeqConflict`, `RunFinished`, `RunDeleted`,
        `OverQuota`, `Unavailable`; nothing was kept then.
        """
        return await self._ask(SaveReply, "save_checkpoint", _arguments(locals()))

    async def list_checkpoints(
        self,
        run_id: str | int | None = None,
        *,
        unfinished: bool = False,
        limit: int = 20,
        cursor: str | None = None,
    ) -> ListReply:
        """Checkpoints newest first, of one run or of all."""
        return await self._ask(ListReply, "list_checkpoints", _arguments(locals()))

    async def weekly_report(self) -> ReportReply:
        """The last 7 days in words and numbers; sends nothing."""
        return await self._ask(ReportReply, "weekly_report", {})

    async def usage_and_upgrade(self) -> UsageReply:
        """Calls used today, the plan and its limits."""
        return await self._ask(UsageReply, "usage_and_upgrade", {})

    async def send(self, model: type[ReplyModel], call: Call) -> ReplyModel:
        """Send a prepared call; for adapters and the methods above."""
        if self._closed:
            raise InvalidRequest(f"this client of {self.where} is closed: open another, or close it later")
        return read_reply(model, await self._transport.send(call), call)

    async def _ask(self, model: type[ReplyModel], name: str, arguments: Mapping[str, Any]) -> ReplyModel:
        call = make_call(name, arguments, remote=self._transport.remote, redacts=self._redacts)
        return await self.send(model, call)

    async def close(self) -> None:
        """Release connections; what was acknowledged is safe already."""
        self._closed = True
        await self._transport.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()


class AsyncStoreClient:
    """What adapters use; see `runmemory_core.operations.storage` for shapes.

    ``redacted`` says that the adapter removes secrets itself: an embedded store does not look for them again, a service
    always does.
    """

    def __init__(self, client: AsyncClient, *, redacted: bool = False) -> None:
        self._client = client
        self._redacts = client.redacts and not redacted

    async def claim(self, run_id: str, adapter: str, *, idempotency_key: str | None = None) -> ClaimReply:
        """Raise and return the attempt of an adapter's run."""
        return await self._ask(ClaimReply, "claim", _arguments(locals()))

    async def commit(
        self,
        run_id: str,
        adapter: str,
        *,
        operations: Sequence[Mapping[str, Any]],
        parts: Mapping[str, str],
        attempt: int | None = None,
        linear: bool | None = None,
        idempotency_key: str | None = None,
    ) -> CommitReply:
        """Record changes in order, all or nothing; `CommitReply.missing` names parts to send along again."""
        return await self._ask(CommitReply, "commit", _arguments(locals()))

    async def fetch(
        self, run_id: str, *, lane: str = "", key: str | None = None, known: Sequence[str] | None = None
    ) -> FetchReply:
        """One checkpoint with writes and parts but the ``known`` ones, the lane's latest without ``key``.

        Raises `CheckpointGone`.
        """
        return await self._ask(FetchReply, "fetch", _arguments(locals()))

    async def history(
        self,
        run_id: str | None = None,
        *,
        adapter: str | None = None,
        lane: str | None = None,
        key: str | None = None,
        before: str | None = None,
        metadata: Mapping[str, Any] | None = None,
        limit: int = 50,
        cursor: str | None = None,
    ) -> EntriesReply:
        """A page of checkpoints, newest first by key; ``cursor`` of the reply leads to the next."""
        return await self._ask(EntriesReply, "history", _arguments(locals()))

    async def chain(self, run_id: str, *, key: str, lane: str = "", limit: int = 500) -> EntriesReply:
        """A checkpoint and its ancestors, newest first."""
        return await self._ask(EntriesReply, "chain", _arguments(locals()))

    async def delete_run(self, run_id: str) -> CountReply:
        """Delete a run; a tombstone refuses late writes for 7 days."""
        return await self._ask(CountReply, "delete_run", _arguments(locals()))

    async def delete_by_metadata(self, adapter: str, *, metadata: Mapping[str, Any]) -> CountReply:
        """Delete the checkpoints whose metadata equals ``metadata``."""
        return await self._ask(CountReply, "delete_by_metadata", _arguments(locals()))

    async def copy_run(
        self, run_id: str, *, target_run_id: str, idempotency_key: str | None = None
    ) -> CountReply:
        """Copy a run whole to a run_id that does not exist."""
        return await self._ask(CountReply, "copy_run", _arguments(locals()))

    async def prune(
        self, run_id: str, *, strategy: Literal["keep_latest", "delete"] = "keep_latest"
    ) -> CountReply:
        """Keep only each lane's latest checkpoint with the ancestors it needs, or delete the run."""
        return await self._ask(CountReply, "prune", _arguments(locals()))

    async def _ask(self, model: type[ReplyModel], name: str, arguments: Mapping[str, Any]) -> ReplyModel:
        return await self._client.send(
            model, make_call(name, arguments, remote=self._client.remote, redacts=self._redacts)
        )
