"""Writes that wait on this disk while the service is away, for adapters: their frameworks lose a run when one fails.

The spool is an embedded store of Run Memory. It takes the very calls that the service would have taken, answers
reads of what it holds, is safe after a crash and shared by processes; nothing but the way back is written here.
There is one for each URL and key. One process at a time sends what waits, run by run and in order.

Belongs here: when to spool, and the way back. Does not belong here: retries of one call (`transports.retries`).
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from runmemory_core.client._both import Both
from runmemory_core.client._calls import ReplyModel, make_call, read_reply
from runmemory_core.client._file_lock import locked
from runmemory_core.client._spooled import (
    SpooledRun,
    forget,
    forget_if_same,
    read_run,
    run_ids,
    texts_of,
    writes_ahead,
)
from runmemory_core.client.blocking import Client, StoreClient
from runmemory_core.errors import (
    AccountRequired,
    OverQuota,
    RunDeleted,
    RunMemoryError,
    StoreError,
    Unauthorized,
    Unavailable,
)
from runmemory_core.model import MIB, Caller
from runmemory_core.operations.calls import Call
from runmemory_core.operations.storage import CommitReply, CountReply, Entry, Fetch, FetchReply
from runmemory_core.store._forks import around_forks

if TYPE_CHECKING:
    from runmemory_core.store import Store

logger = logging.getLogger("runmemory")

SPOOL_BYTES = 256 * MIB
PIECE_CHARACTERS = 8 * MIB
"""Of parts in one commit, beyond which its changes are sent in halves: a service takes no body of any length."""
FIRST_PAUSE_SECONDS = 5.0
LONGEST_PAUSE_SECONDS = 60.0
_WARNED_SHARE = 0.8
_LISTED = {"history": Both.history, "chain": Both.chain}
_ROUNDS = 4
"""Of asking what is missing: nodes, pages, what is inside pages, and once more."""


@dataclass(frozen=True, slots=True)
class Health:
    """How saving goes: ``problem`` is why writes wait on this disk, None while they reach the service."""

    problem: str | None = None
    spooled_checkpoints: int = 0
    spool: str = ""
    forks: int = 0
    """Checkpoints sent later that no longer continued the latest one; they are kept beside it."""

    @property
    def ok(self) -> bool:
        """Whether everything saved so far is in the service."""
        return self.problem is None and self.spooled_checkpoints == 0


class SpooledStore(StoreClient):
    """`StoreClient` of a service whose commits do not fail when the service does.

    Reads are never soft: what only the service can know raises `Unavailable` while it is away. A key that was never
    accepted is refused at the first call. ``pause_seconds`` is how long a service that failed is left alone.
    """

    def __init__(
        self, client: Client, *, pause_seconds: float = FIRST_PAUSE_SECONDS, limit_bytes: int = SPOOL_BYTES
    ) -> None:
        super().__init__(client)
        self._path = client.spool_file
        self._limit_bytes = limit_bytes
        self._first_pause = self._pause = pause_seconds
        self._retry_at = 0.0
        self._unlock()
        self._health = Health(spool=str(self._path))
        self._accepted = False
        self._opened: Store | None = None
        self._prune_at = limit_bytes
        self._warned_day = ""
        self._refused: dict[str, RunMemoryError] = {}
        self._pruned: set[str] = set()
        self._keeps = 0
        self._may_hold = True
        self._closed = False
        around_forks(after_in_child=self._unlock)

    @property
    def health(self) -> Health:
        """How saving goes at this moment."""
        waiting = 0
        if (store := self._spool(create=False)) is not None:
            runs = store.read(run_ids)
            waiting = sum(len(store.read(partial(read_run, run_id=run_id)).puts) for run_id in runs)
        return replace(self._health, spooled_checkpoints=waiting)

    def close(self) -> None:
        """Send what waits if the service answers; otherwise the next process does. The client stays open."""
        if self._closed:
            return
        self._closed = True
        try:
            self._replay(wait=False)
        except RunMemoryError as error:
            logger.warning(
                "runmemory: %s keeps what could not be sent for the next start: %s", self._path, error
            )
        if self._opened is not None:
            self._opened.close()

    def _ask(self, model: type[ReplyModel], name: str, arguments: Mapping[str, Any]) -> ReplyModel:
        call = make_call(name, arguments, remote=self._client.remote, redacts=False)
        if name == "commit":
            return self._commit(model, call)
        if name == "fetch":
            return self._fetch(model, call)
        try:
            self._replay(wait=True)
        except OverQuota:
            if (listed := _LISTED.get(name)) and (store := self._spool(create=False)) is not None:
                found = listed(self._both(store), call.request.model_dump())
                return model.model_validate(found.model_dump())
            if (run_id := getattr(call.request, "run_id", None)) is None or self._waits(run_id):
                raise
        reply = self._reach(model, call)
        if name == "delete_run":
            self._drop(arguments["run_id"])
        return reply

    # --- writing ----------------------------------------------------------------------------------------

    def _commit(self, model: type[ReplyModel], call: Call) -> ReplyModel:
        if self._may_try():
            try:
                self._replay(wait=False)
                reply = self._reach(model, call)
            except RunMemoryError as error:
                if not self._is_soft(error):
                    raise
                self._note_problem(error)
            else:
                self._note_usage(reply)
                return reply
        return self._keep(model, call)

    def _is_soft(self, error: RunMemoryError) -> bool:
        """Whether a run should go on all the same. A key that worked before may be revoked in the middle of it."""
        if isinstance(error, Unauthorized | AccountRequired):
            return self._accepted
        return isinstance(error, Unavailable | OverQuota | StoreError) or type(error) is RunMemoryError

    def _reach(self, model: type[ReplyModel], call: Call) -> ReplyModel:
        reply = self._client.send(model, call)
        self._accepted = True
        with self._state:
            self._retry_at, self._pause = 0.0, self._first_pause
            recovered = self._health.problem is not None
            self._health = replace(self._health, problem=None)
        if recovered:
            logger.warning("runmemory: %s answers again", self._client.where)
        return reply

    def _may_try(self) -> bool:
        """Whether the service is to be asked; one call at a time tries a service that failed."""
        with self._state:
            now = time.monotonic()
            if self._health.problem is None:
                return True
            if now < self._retry_at:
                return False
            self._retry_at = now + self._pause
            return True

    def _note_problem(self, error: RunMemoryError) -> None:
        with self._state:
            first = self._health.problem is None
            self._health = replace(self._health, problem=error.detail)
            self._retry_at = time.monotonic() + self._pause
            self._pause = min(LONGEST_PAUSE_SECONDS, self._pause * 2)
        if first:
            logger.warning(
                "runmemory: %s. The run goes on: what it saves waits in %s and is sent when that is possible again",
                error.detail.rstrip("."),
                self._path,
            )

    def _note_usage(self, reply: object) -> None:
        usage = reply.usage if isinstance(reply, CommitReply) else None
        if usage is None or not usage.limit or usage.used < _WARNED_SHARE * usage.limit:
            return
        if self._warned_day != usage.reset_at:
            self._warned_day = usage.reset_at
            logger.warning(
                "runmemory: %s of today's %s calls are used; from then on until %s checkpoints wait on this machine",
                f"{usage.used:,}",
                f"{usage.limit:,}",
                usage.reset_at,
            )

    def _keep(self, model: type[ReplyModel], call: Call) -> ReplyModel:
        store = self._spool(create=True)
        assert store is not None
        self._make_room(store)
        reply = self._locally(model, call, store)
        with self._state:
            self._keeps += 1
            self._may_hold = True
        return reply

    def _make_room(self, store: Store) -> None:
        """Beyond the limit only the newest checkpoint of each lane stays."""
        if _used_bytes(store) < self._prune_at:
            return
        for run_id in store.read(run_ids):
            self._pruned.add(run_id)
            pruning = make_call("prune", {"run_id": run_id}, remote=False)
            self._locally(CountReply, pruning, store)
        used = _used_bytes(store)
        # Looking through everything again is worth it only once more has come.
        self._prune_at = max(self._limit_bytes, used + used // 10)
        logger.warning(
            "runmemory: %s reached %s bytes; only the newest checkpoints stay in it",
            self._path,
            f"{self._limit_bytes:,}",
        )

    # --- reading ----------------------------------------------------------------------------------------

    def _fetch(self, model: type[ReplyModel], call: Call) -> ReplyModel:
        request = call.request
        assert isinstance(request, Fetch)
        try:
            self._replay(wait=True)
            self._raise_refusal(request.run_id)
            return self._reach(model, call)
        except OverQuota:
            if (store := self._spool(create=False)) is None:
                raise
            return model.model_validate(self._both(store).fetch(request.model_dump()).model_dump())
        except RunMemoryError as error:
            if not isinstance(error, Unavailable | StoreError) and type(error) is not RunMemoryError:
                raise
            self._note_problem(error)
            store = self._spool(create=False)
            kept = None if store is None else self._locally(FetchReply, call, store)
            if kept is None or kept.entry is None:
                raise
            return model.model_validate(kept.model_dump())

    def _both(self, store: Store) -> Both:
        """Reads of what is in the service and in the spool: they are free, so that both can answer over quota."""

        def service(model: type[ReplyModel], name: str, arguments: Mapping[str, Any]) -> ReplyModel:
            return self._client.send(model, make_call(name, arguments, remote=True, redacts=False))

        def spool(model: type[ReplyModel], name: str, arguments: Mapping[str, Any]) -> ReplyModel:
            return self._locally(model, make_call(name, arguments, remote=False), store)

        def ahead(entry: Entry) -> tuple[list[Any], dict[str, str]]:
            return store.read(partial(writes_ahead, run_id=entry.run_id, lane=entry.lane, key=entry.key))

        return Both(service, spool, ahead)

    def _waits(self, run_id: str) -> bool:
        store = self._spool(create=False)
        return store is not None and run_id in store.read(run_ids)

    # --- the way back -----------------------------------------------------------------------------------

    def _replay(self, *, wait: bool) -> None:
        """Send what waits. Raises why not; `Unavailable` too while another process is at it and ``wait`` is off."""
        # Reads always look: another process may have left something.
        store = self._spool(create=False) if self._may_hold or wait else None
        if store is None:
            return
        keeps = self._keeps
        with locked(self._path.with_suffix(".lock"), wait=wait) as held:
            waiting = [run_id for run_id in store.read(run_ids) if run_id not in self._refused]
            if waiting and not held:
                raise Unavailable(f"another process is sending what waits in {self._path}")
            for run_id in waiting:
                self._replay_run(store, run_id)
            with self._state:
                # What another thread kept in the meantime may have come too late for this round.
                if keeps == self._keeps:
                    self._may_hold = bool(self._refused)

    def _raise_refusal(self, run_id: str) -> None:
        if (refusal := self._refused.get(run_id)) is not None:
            raise refusal

    def _replay_run(self, store: Store, run_id: str) -> None:
        sent: list[str] = []
        while True:
            run = store.read(partial(read_run, run_id=run_id))
            try:
                for changes in run.commits():
                    if (text := repr(changes)) not in sent:
                        self._send(store, run, changes, first=not sent)
                        sent.append(text)
            except RunDeleted as refusal:
                logger.warning("runmemory: what waited for run %s is dropped: %s", run_id, refusal)
            except RunMemoryError as refusal:
                if self._is_soft(refusal) or isinstance(refusal, Unauthorized | AccountRequired):
                    raise
                self._refused[run_id] = refusal
                logger.warning(
                    "runmemory: what waited for run %s stays in %s: %s", run_id, self._path, refusal
                )
                return
            # What came in the meantime is sent in another round.
            if store.transact(partial(forget_if_same, run=run)):
                return

    def _send(self, store: Store, run: SpooledRun, changes: list[dict[str, Any]], *, first: bool) -> None:
        texts: dict[str, str] = {}
        for _ in range(_ROUNDS):
            call = make_call(
                "commit",
                {"run_id": run.run_id, "adapter": run.adapter, "operations": changes, "parts": texts},
                remote=True,
                redacts=False,
            )
            reply = self._reach(CommitReply, call)
            if not reply.missing:
                break
            texts |= store.read(partial(texts_of, run_id=run.run_id, addresses=reply.missing))
            if len(changes) > 1 and sum(map(len, texts.values())) > PIECE_CHARACTERS:
                half = len(changes) // 2
                self._send(store, run, changes[:half], first=first)
                self._send(store, run, changes[half:], first=False)
                return
        else:
            raise StoreError(f"{self._path} lacks parts that its own checkpoints need: it is damaged")
        if first and reply.forks and run.run_id not in self._pruned:
            self._health = replace(self._health, forks=self._health.forks + 1)
            logger.warning(
                "runmemory: run %s went on elsewhere while the service was away; checkpoint %s is kept as a fork",
                run.run_id,
                reply.forks[0],
            )

    def _drop(self, run_id: str) -> None:
        """Drop what waits for a run that was deleted, and what was said against it."""
        if (store := self._spool(create=False)) is not None:
            store.transact(partial(forget, run_id=run_id))
        self._refused.pop(run_id, None)

    # --- the spool itself -------------------------------------------------------------------------------

    def _unlock(self) -> None:
        """Begin with a lock that nobody holds: the thread that might let go of it is not in a forked child."""
        self._state = threading.Lock()

    def _spool(self, *, create: bool) -> Store | None:
        with self._state:
            if self._opened is None and (create or self._path.exists()):
                from runmemory_core.store.sqlite import SqliteStore  # noqa: PLC0415 - loaded only when needed

                self._opened = SqliteStore(self._path)
            return self._opened

    def _locally(self, model: type[ReplyModel], call: Call, store: Store) -> ReplyModel:
        from runmemory_core.transports.embedded import EmbeddedTransport  # noqa: PLC0415 - as above

        return read_reply(model, EmbeddedTransport(store, caller=Caller()).send(call), call)


def _used_bytes(store: Store) -> int:
    return int(store.read(lambda tx: tx.one("used_bytes"))["bytes"])
