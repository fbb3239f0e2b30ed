"""`RunMemorySaver(watch=True)`: real checkpoints in another saver, previews for the service, which stores none.

A graph cannot go on without its checkpoints: an answered interrupt would be asked again for ever. So they are kept
by a local saver, LangGraph's own in memory unless one is given.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from os import PathLike
from typing import Any

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import (
    BaseCheckpointSaver,
    ChannelVersions,
    Checkpoint,
    CheckpointMetadata,
    CheckpointTuple,
    DeltaChannelHistory,
)
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.serde.types import INTERRUPT

from runmemory_core import RunMemoryError, StoreError, Unavailable
from runmemory_core.client.spooling import FIRST_PAUSE_SECONDS, LONGEST_PAUSE_SECONDS
from runmemory_core.operations.tools import WouldSave
from runmemory_langgraph import _mapping
from runmemory_langgraph._saver import RunMemorySaver

logger = logging.getLogger("runmemory")


class WatchingSaver(RunMemorySaver):
    """Keeps checkpoints in ``local`` and shows the service each root checkpoint, for previews and the report."""

    def __init__(
        self,
        url: str | PathLike[str] | None = None,
        *,
        local: BaseCheckpointSaver[Any] | None = None,
        on_preview: Callable[[WouldSave], object] | None = None,
        **options: Any,
    ) -> None:
        super().__init__(url, local=local, on_preview=on_preview, **options)
        self._local: BaseCheckpointSaver[Any] = local or InMemorySaver(serde=self.serde)
        self._in_memory = local is None
        self._on_preview = on_preview
        self._problem = ""
        self._pause = FIRST_PAUSE_SECONDS
        self._retry_at = 0.0
        self._restarted: set[str] = set()
        """Threads whose restart the service was not told of yet."""
        if self._in_memory:
            logger.warning(
                "runmemory: watching only: checkpoints are kept in this process and end with it; pass local= to keep "
                "them, or an API key to resume after a crash"
            )

    def _note_interrupt(self, config: RunnableConfig, writes: Sequence[tuple[str, Any]]) -> None:
        if self._in_memory and any(channel == INTERRUPT for channel, _ in writes):
            run_id, _, _ = _mapping.place_of(config)
            self._threads.warn_once(
                run_id,
                "interrupt",
                f"thread {run_id} waits for an answer, and only this process can take it: watching stores nothing",
            )

    def _preview(self, config: RunnableConfig, checkpoint: Checkpoint, metadata: CheckpointMetadata) -> None:
        run_id, lane, parent = _mapping.place_of(config)
        if lane:
            return
        if self._threads.note_put(
            run_id, lane, checkpoint["id"], parent=parent, source=metadata.get("source", "")
        ):
            self._restarted.add(run_id)
        if time.monotonic() < self._retry_at:
            return
        try:
            state = {
                name: self._encoder.tagged(name, value)
                for name, value in checkpoint["channel_values"].items()
            }
            if run_id in self._restarted:
                self._client.resume(run_id)
                self._restarted.discard(run_id)
            reply = self._client.save_checkpoint(run_id, _mapping.label(metadata, checkpoint), state=state)
        except (RunMemoryError, TypeError) as error:
            self._note_problem(error)
            return
        self._problem, self._pause = "", FIRST_PAUSE_SECONDS
        if reply.would_save is not None and self._on_preview is not None:
            self._on_preview(reply.would_save)

    def _note_problem(self, error: Exception) -> None:
        """A preview must never stop a run, nor slow each step of it; the same problem is told once."""
        problem = error.code if isinstance(error, RunMemoryError) else type(error).__name__
        if isinstance(error, (Unavailable, StoreError)):
            self._retry_at = time.monotonic() + self._pause
            self._pause = min(LONGEST_PAUSE_SECONDS, self._pause * 2)
        if problem != self._problem:
            self._problem = problem
            logger.warning("runmemory: no preview: %s", error)

    def _loaded_from(self, config: RunnableConfig, found: CheckpointTuple | None) -> CheckpointTuple | None:
        run_id, lane, asked = _mapping.place_of(config)
        if not lane:
            key = None if found is None else found.checkpoint["id"]
            pending = () if found is None else found.pending_writes or ()
            self._threads.note_loaded(run_id, key, pending, chosen=asked is not None)
        return found

    # --- the local saver's methods, and what is shown of them -------------------------------------------

    def get_next_version(self, current: Any, channel: None) -> Any:
        return self._local.get_next_version(current, channel)

    def get_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        return self._loaded_from(config, self._local.get_tuple(config))

    async def aget_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        return self._loaded_from(config, await self._local.aget_tuple(config))

    def list(self, config: RunnableConfig | None, **options: Any) -> Iterator[CheckpointTuple]:
        if config is not None:
            _mapping.place_of(config)
        return self._local.list(config, **options)

    def alist(self, config: RunnableConfig | None, **options: Any) -> AsyncIterator[CheckpointTuple]:
        return self._local.alist(config, **options)

    def put(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        _mapping.place_of(config)
        put = self._local.put(config, checkpoint, metadata, new_versions)
        self._preview(config, checkpoint, metadata)
        return put

    async def aput(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        _mapping.place_of(config)
        put = await self._local.aput(config, checkpoint, metadata, new_versions)
        await asyncio.to_thread(self._preview, config, checkpoint, metadata)
        return put

    def put_writes(
        self, config: RunnableConfig, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str = ""
    ) -> None:
        self._local.put_writes(config, writes, task_id, task_path)
        self._note_interrupt(config, writes)

    async def aput_writes(
        self, config: RunnableConfig, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str = ""
    ) -> None:
        await self._local.aput_writes(config, writes, task_id, task_path)
        self._note_interrupt(config, writes)

    def get_delta_channel_history(self, **asked: Any) -> Mapping[str, DeltaChannelHistory]:
        return self._local.get_delta_channel_history(**asked)

    async def aget_delta_channel_history(self, **asked: Any) -> Mapping[str, DeltaChannelHistory]:
        return await self._local.aget_delta_channel_history(**asked)

    def delete_thread(self, thread_id: str) -> None:
        self._local.delete_thread(thread_id)
        self._threads.forget(thread_id)

    async def adelete_thread(self, thread_id: str) -> None:
        await self._local.adelete_thread(thread_id)
        self._threads.forget(thread_id)

    def delete_for_runs(self, run_ids: Sequence[str]) -> None:
        self._local.delete_for_runs(run_ids)

    async def adelete_for_runs(self, run_ids: Sequence[str]) -> None:
        await self._local.adelete_for_runs(run_ids)

    def copy_thread(self, source_thread_id: str, target_thread_id: str) -> None:
        self._local.copy_thread(source_thread_id, target_thread_id)

    async def acopy_thread(self, source_thread_id: str, target_thread_id: str) -> None:
        await self._local.acopy_thread(source_thread_id, target_thread_id)

    def prune(self, thread_ids: Sequence[str], *, strategy: str = "keep_latest") -> None:
        self._local.prune(thread_ids, strategy=strategy)

    async def aprune(self, thread_ids: Sequence[str], *, strategy: str = "keep_latest") -> None:
        await self._local.aprune(thread_ids, strategy=strategy)
