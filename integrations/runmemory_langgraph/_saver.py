"""`RunMemorySaver`: LangGraph's checkpointer over Run Memory, blocking and async in one class.

Here calls are made; what they carry is `_mapping`'s. The async methods run the blocking ones on worker threads: an
httpx call costs less that way than on the loop, the loop is never blocked, and a saver can be made before any loop
runs and used from several.
"""

from __future__ import annotations

import asyncio
import copy
import random
from collections.abc import (
    AsyncIterator,
    Awaitable,
    Callable,
    Collection,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from datetime import timedelta
from os import PathLike
from typing import Any, Literal, Self, cast

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import (
    WRITES_IDX_MAP,
    BaseCheckpointSaver,
    ChannelVersions,
    Checkpoint,
    CheckpointMetadata,
    CheckpointTuple,
    DeltaChannelHistory,
)
from langgraph.checkpoint.serde.base import SerializerProtocol
from langgraph.checkpoint.serde.types import ERROR, INTERRUPT

from runmemory_core import AccountRequired, Client
from runmemory_core.client import StoreClient
from runmemory_core.client.spooling import Health, SpooledStore
from runmemory_core.model import MIB
from runmemory_core.operations.storage import MAX_KNOWN, EntriesReply
from runmemory_core.operations.tools import WouldSave
from runmemory_langgraph import _mapping
from runmemory_langgraph._decoding import ClassName, Packed
from runmemory_langgraph._encoding import Encoder, OnRedact, metadata_value
from runmemory_langgraph._loading import Reading, Restore, Values
from runmemory_langgraph._options import Done, allowed, check_choices, check_place
from runmemory_langgraph._outbox import Outbox, is_final
from runmemory_langgraph._remembering import Remembered
from runmemory_langgraph._threads import DELIBERATE, Threads

ADAPTER = "langgraph"
_PAGE = 50
_HALTING = {ERROR, INTERRUPT}
_REMEMBERED_BYTES = 32 * MIB


class RunMemorySaver(BaseCheckpointSaver[str]):
    """A checkpointer that keeps threads in Run Memory: a file of this machine, or a service.

    Without ``url`` it is the embedded store. ``allow`` names classes of yours that may be built on loading beside
    LangGraph's safe ones and the imported pydantic models, dataclasses, enums and named tuples; anything else raises
    `DecodingRefused`. Values under names of secrets are saved as ``[removed]`` with a warning; ``redact=False`` turns
    that off for an embedded store. ``keep`` and ``expire_after`` bound an embedded store.

    Raises `AccountRequired` for a URL without a key, since nothing would be stored there.
    """

    def __new__(cls, *_: Any, watch: bool = False, **__: Any) -> Self:
        """The saver, or for ``watch=True`` the one that stores nothing in the service."""
        if watch:
            from runmemory_langgraph._watching import WatchingSaver  # noqa: PLC0415 - it is made of this class

            return cast("Self", object.__new__(WatchingSaver))
        return object.__new__(cls)

    def __init__(
        self,
        url: str | PathLike[str] | None = None,
        *,
        api_key: str | None = None,
        client: Client | None = None,
        serde: SerializerProtocol | None = None,
        allow: Iterable[type | ClassName] = (),
        redact: bool | Literal["strict"] = True,
        restore: Restore | None = None,
        on_redact: OnRedact | None = None,
        on_error: Literal["spool", "raise"] = "spool",
        on_conflict: Literal["warn", "raise"] = "warn",
        keep: int | None = None,
        expire_after: timedelta | None = None,
        timeout_seconds: float = 30.0,
        watch: bool = False,
        local: BaseCheckpointSaver[Any] | None = None,
        on_preview: Callable[[WouldSave], object] | None = None,
    ) -> None:
        super().__init__(serde=serde)
        check_choices(redact=redact, on_error=on_error, on_conflict=on_conflict)
        self._allow = allowed(allow)
        self._owns_client = client is None
        self._client = client or Client(
            url,
            api_key=api_key,
            keep=keep,
            expire_after=expire_after,
            timeout_seconds=timeout_seconds,
            retries=not watch,  # no step waits for a preview longer than it must
        )
        check_place(
            self._client, redact=redact, watch=watch, previews=local is not None or on_preview is not None
        )
        self._watches = watch
        self._restore = restore
        self._linear = on_conflict == "raise"
        self._store: StoreClient = StoreClient(self._client, redacted=True)
        if self._client.remote and on_error == "spool" and not watch:
            self._store = SpooledStore(self._client)
        self._threads = Threads()
        self._loaded: Remembered[Mapping[str, Packed]] = Remembered(_REMEMBERED_BYTES)
        self._encoder = Encoder(self.serde, redact=redact, on_redact=on_redact)
        self._outbox = Outbox(self._encoder, self._commit)

    @classmethod
    def from_conn_string(cls, conn_string: str | PathLike[str], **options: Any) -> RunMemorySaver:
        """The saver for a URL or file, usable as it is, in ``with`` and in ``async with``."""
        return cls(conn_string, **options)

    def setup(self) -> Awaitable[None]:
        """Check that the store answers and takes what the key saves. Calling it is optional and may be repeated.

        It is done on return; ``await saver.setup()`` works as well, for programs that come from an async saver.
        """
        reply = self._client.usage_and_upgrade()
        if reply.mode == "watch" and not self._watches:
            raise AccountRequired(
                f"the API key is of plan {reply.plan}, for which {self._client.where} stores nothing, and the graph "
                "would start over after a crash: use a key of an acting plan, or only look with watch=True"
            )
        return Done()

    @property
    def health(self) -> Health:
        """Whether everything is stored where it should be, and what waits on this machine."""
        return self._store.health if isinstance(self._store, SpooledStore) else Health()

    def close(self) -> None:
        """Release the connection; a client that was passed in stays open."""
        try:
            self._outbox.close()
        finally:
            if isinstance(self._store, SpooledStore):
                self._store.close()
            if self._owns_client:
                self._client.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await asyncio.to_thread(self.close)

    def with_allowlist(self, extra_allowlist: Collection[tuple[str, ...]]) -> RunMemorySaver:
        """A copy that may build the given ``(module, name)`` too; both share one connection and one memory."""
        clone = copy.copy(self)
        clone.__dict__["_allow"] = self._allow | {(entry[0], entry[1]) for entry in extra_allowlist}
        return clone

    def get_next_version(self, current: str | int | None, channel: None) -> str:
        """A version greater than ``current``; its random tail keeps two forks of one checkpoint apart."""
        del channel
        number = int(str(current).partition(".")[0]) if current is not None else 0
        return f"{number + 1:032}.{random.random():016}"  # noqa: S311 - tells forks apart, protects nothing

    # --- reading ----------------------------------------------------------------------------------------

    def get_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        """The checkpoint of a config, the latest without checkpoint_id; raises `CheckpointGone` for an evicted one."""
        run_id, lane, key = _mapping.checked_place_of(config)
        if self._threads.is_new(config):
            return None
        self._outbox.flush(run_id)
        known = self._loaded.find(run_id, lane) or {}
        reply = self._store.fetch(run_id, lane=lane, key=key, known=list(known)[-MAX_KNOWN:])
        found = None
        if reply.entry is not None:
            values = Values(reply.parts, reading=self._reading, known=known)
            found = _mapping.tuple_of(reply.entry, values)
            self._loaded.keep(values.packed, values.packed_bytes, run_id, lane)
        if not lane:
            at, pending = (reply.entry.key, found.pending_writes) if reply.entry and found else (None, None)
            self._threads.note_loaded(run_id, at, pending or (), chosen=key is not None)
        return found

    def list(
        self,
        config: RunnableConfig | None,
        *,
        filter: dict[str, Any] | None = None,  # noqa: A002 - LangGraph's name
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> Iterator[CheckpointTuple]:
        """Checkpoints newest first; no checkpoint_ns means every namespace, no config every thread."""
        query = self._query(config, filter, before)
        left, cursor = limit, None
        while left is None or left > 0:
            page = self._page(query, left, cursor)
            yield from self._tuples(page)
            left, cursor = None if left is None else left - len(page.entries), page.cursor
            if cursor is None:
                return

    def _query(
        self, config: RunnableConfig | None, wanted: Mapping[str, Any] | None, before: RunnableConfig | None
    ) -> dict[str, Any]:
        query: dict[str, Any] = {"adapter": ADAPTER}
        if config is None:
            self._outbox.flush()
        else:
            run_id, lane, key = _mapping.checked_place_of(config)
            self._outbox.flush(run_id)
            query |= {"run_id": run_id, "key": key}
            if "checkpoint_ns" in config.get("configurable", {}):
                query["lane"] = lane
        if before is not None:
            query["before"] = before.get("configurable", {}).get("checkpoint_id") or None
        if wanted:
            query["metadata"] = {name: metadata_value(value) for name, value in wanted.items()}
        return query

    def _page(self, query: Mapping[str, Any], left: int | None, cursor: str | None) -> EntriesReply:
        limit = _PAGE if left is None else min(left, _PAGE)
        return self._store.history(**query, limit=limit, cursor=cursor)

    def _tuples(self, page: EntriesReply) -> list[CheckpointTuple]:
        values = Values(page.parts, reading=self._reading)
        return [_mapping.tuple_of(entry, values) for entry in page.entries]

    def get_delta_channel_history(
        self, *, config: RunnableConfig, channels: Sequence[str]
    ) -> Mapping[str, DeltaChannelHistory]:
        """The writes and the seed that rebuild delta channels, whatever the length of the chain in a call or few.

        Raises `CheckpointGone` when retention removed an ancestor that is needed.
        """
        walk = _mapping.DeltaWalk(channels)
        target = self.get_tuple(config) if channels else None
        above = target.parent_config if target is not None else None
        while above is not None and not walk.done:
            run_id, lane, key = _mapping.place_of(above)
            chain = self._store.chain(run_id, key=str(key), lane=lane)
            if not chain.entries:
                self._store.fetch(run_id, lane=lane, key=key)  # raises if it is gone, not if it never was
                break
            values = Values(chain.parts, reading=self._reading)
            for entry in chain.entries:
                if not walk.done:
                    walk.visit(entry, values)
            parent = chain.entries[-1].parent
            above = None if parent is None else _mapping.config_of(run_id, lane, parent)
        return walk.result()

    @property
    def _reading(self) -> Reading:
        return Reading(self.serde, self._allow, self._restore)

    # --- writing ----------------------------------------------------------------------------------------

    def put(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        """Store a checkpoint; on return it is on disk: the service's, or this machine's while that is away."""
        del new_versions  # every value is at hand, and parts find out what is new
        run_id, lane, parent = _mapping.checked_place_of(config)
        restart = self._threads.note_put(
            run_id, lane, checkpoint["id"], parent=parent, source=metadata.get("source", "")
        )
        self._outbox.send(
            run_id,
            lambda batch: _mapping.put_change(
                config,
                checkpoint,
                metadata,
                encoder=self._encoder,
                batch=batch,
                # Asked for when it is sent: a question may come before its checkpoint does.
                status=self._threads.status_at(run_id, checkpoint["id"]),
                restart=restart,
            ),
        )
        return _mapping.config_of(run_id, _mapping.namespace_of(config), checkpoint["id"])

    def put_writes(
        self,
        config: RunnableConfig,
        writes: Sequence[tuple[str, Any]],
        task_id: str,
        task_path: str = "",
    ) -> None:
        """Store the results of a task that is done before its superstep is.

        They are sent with the superstep's checkpoint or after 50 ms. Errors and interrupts are sent at once, and so is
        what comes after one in its superstep: then no checkpoint follows, and ``invoke`` returns.
        """
        if not writes:
            return
        run_id, _, key = _mapping.checked_place_of(config)
        channels = {channel for channel, _ in writes}
        if key is not None and channels & _HALTING:
            self._threads.note_halt(run_id, key, asks=INTERRUPT in channels)
        deliver = self._outbox.send if channels & WRITES_IDX_MAP.keys() else self._outbox.linger
        results = [(channel, self._encoder.frozen(channel, value)) for channel, value in writes]
        _mapping.check_results(results)
        deliver(
            run_id,
            lambda batch: _mapping.writes_change(
                config, results, task_id=task_id, task_path=task_path, encoder=self._encoder, batch=batch
            ),
        )
        # Asked only now: whoever halts it after this sends what lingers.
        if key is not None and self._threads.is_halted(run_id, key):
            self._outbox.flush(run_id)

    def _commit(self, run_id: str, operations: list[dict[str, Any]], texts: dict[str, str]) -> list[str]:
        going_on = {
            change["key"]
            for change in operations
            if change["op"] == "put"
            and change["metadata"].get("source") not in DELIBERATE
            and not self._threads.travels(run_id, change.get("parent"))
        }
        reply = self._store.commit(
            run_id, ADAPTER, operations=operations, parts=texts, linear=self._linear and bool(going_on)
        )
        for key in going_on.intersection(reply.forks):
            self._threads.warn_once(
                run_id,
                "fork",
                f"checkpoint {key} of thread {run_id} does not continue the latest one: another worker goes on with "
                'this thread, and both are kept; on_conflict="raise" refuses the second',
            )
        return reply.missing

    # --- managing ---------------------------------------------------------------------------------------

    def delete_thread(self, thread_id: str) -> None:
        """Delete a thread with everything in it; late writes to it are refused for 7 days."""
        run_id = _mapping.checked(str(thread_id))
        try:
            self._outbox.flush(run_id)
        except Exception as error:
            # What is refused for good is no reason to keep the rest.
            if not is_final(error):
                raise
        self._encoder.forget(run_id)
        self._loaded.forget(run_id)
        self._threads.forget(run_id)
        self._store.delete_run(run_id)

    def delete_for_runs(self, run_ids: Sequence[str]) -> None:
        """Delete the checkpoints that LangGraph runs of these ids made."""
        self._outbox.flush()
        for run_id in run_ids:
            self._store.delete_by_metadata(ADAPTER, metadata={"run_id": run_id})

    def copy_thread(self, source_thread_id: str, target_thread_id: str) -> None:
        """Copy a thread whole to a new thread_id."""
        source, target = (_mapping.checked(str(name)) for name in (source_thread_id, target_thread_id))
        self._outbox.flush(source)
        self._store.copy_run(source, target_run_id=target)

    def prune(self, thread_ids: Sequence[str], *, strategy: str = "keep_latest") -> None:
        """Keep each namespace's latest checkpoint and the ancestors its delta channels need, or ``delete`` all."""
        if strategy not in ("keep_latest", "delete"):
            raise ValueError(f"strategy is {strategy!r}; it is keep_latest or delete")
        for thread_id in thread_ids:
            self._outbox.flush(str(thread_id))
            self._encoder.forget(str(thread_id))
            self._store.prune(str(thread_id), strategy=strategy)

    # --- the same for event loops -----------------------------------------------------------------------

    async def aget_delta_channel_history(
        self, *, config: RunnableConfig, channels: Sequence[str]
    ) -> Mapping[str, DeltaChannelHistory]:
        return await asyncio.to_thread(self.get_delta_channel_history, config=config, channels=channels)

    async def aget_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        return await asyncio.to_thread(self.get_tuple, config)

    async def alist(
        self,
        config: RunnableConfig | None,
        *,
        filter: dict[str, Any] | None = None,  # noqa: A002 - LangGraph's name
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> AsyncIterator[CheckpointTuple]:
        query = await asyncio.to_thread(self._query, config, filter, before)
        left, cursor = limit, None
        while left is None or left > 0:
            page = await asyncio.to_thread(self._page, query, left, cursor)
            for found in self._tuples(page):
                yield found
            left, cursor = None if left is None else left - len(page.entries), page.cursor
            if cursor is None:
                return

    async def aput(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        return await asyncio.to_thread(self.put, config, checkpoint, metadata, new_versions)

    async def aput_writes(
        self,
        config: RunnableConfig,
        writes: Sequence[tuple[str, Any]],
        task_id: str,
        task_path: str = "",
    ) -> None:
        await asyncio.to_thread(self.put_writes, config, writes, task_id, task_path)

    async def adelete_thread(self, thread_id: str) -> None:
        await asyncio.to_thread(self.delete_thread, thread_id)

    async def adelete_for_runs(self, run_ids: Sequence[str]) -> None:
        await asyncio.to_thread(self.delete_for_runs, run_ids)

    async def acopy_thread(self, source_thread_id: str, target_thread_id: str) -> None:
        await asyncio.to_thread(self.copy_thread, source_thread_id, target_thread_id)

    async def aprune(self, thread_ids: Sequence[str], *, strategy: str = "keep_latest") -> None:
        await asyncio.to_thread(self.prune, thread_ids, strategy=strategy)
