"""Requests and replies of `client.store`: what adapters use and agents never see.

Frameworks name their checkpoints themselves (``lane``, ``key``), write many small results beside them and
keep states of any size, so a commit holds ordered operations, small manifests and content-addressed parts
(see `runmemory_core.parts`).
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from runmemory_core.model import RunStatus
from runmemory_core.operations._fields import (
    Absent,
    Attempt,
    IdempotencyKey,
    Key,
    Lane,
    Limit,
    Name,
    Op,
    Request,
    RunId,
    Shown,
)
from runmemory_core.operations.tools import Usage

Node = dict[str, Any]
Metadata = dict[str, Any]
Address = Annotated[str, Field(min_length=22, max_length=22)]
MAX_KNOWN = 5_000


class Change(Request):
    """One ordered part of a commit: a checkpoint (``put``) or the results of a task (``writes``).

    ``restart`` says that the put goes on where an earlier process stopped: it is counted in the weekly report.
    """

    op: Op
    lane: Lane = ""
    key: Key
    parent: Key | Absent = None
    step: Annotated[str, Field(max_length=200)] = ""
    state: list[tuple[str, Node]] = Field(default_factory=list)
    extra: Node | Absent = None
    metadata: Metadata = Field(default_factory=dict)
    status: RunStatus | Absent = None
    restart: bool = False
    task_id: Annotated[str, Field(max_length=200)] = ""
    task_path: Annotated[str, Field(max_length=2_000)] = ""
    writes: list[tuple[int, str, Node]] = Field(default_factory=list)


class Claim(Request):
    run_id: RunId
    adapter: Name
    idempotency_key: IdempotencyKey | Absent = None


class Commit(Request):
    run_id: RunId
    adapter: Name
    operations: Annotated[list[Change], Field(min_length=1, max_length=10_000)]
    parts: dict[Address, str] = Field(default_factory=dict)
    attempt: Attempt | Absent = None
    idempotency_key: IdempotencyKey | Absent = None
    linear: bool = False
    """Refuse a new checkpoint whose parent is not the latest of its lane, as `SeqConflict`."""


class Fetch(Request):
    """``known`` names parts that the client holds: they are left out of the reply, except pages."""

    run_id: RunId
    lane: Lane = ""
    key: Key | Absent = None
    known: Annotated[list[Address], Field(max_length=MAX_KNOWN)] = Field(default_factory=list)


class History(Request):
    """Checkpoints newest first by key; no ``lane`` means all lanes, no ``run_id`` all adapter runs."""

    run_id: RunId | Absent = None
    adapter: Name | Absent = None
    lane: Lane | Absent = None
    key: Key | Absent = None
    before: Key | Absent = None
    metadata: Metadata = Field(default_factory=dict)
    limit: Limit = 50
    cursor: Annotated[str, Field(max_length=3_000)] | Absent = None


class Chain(Request):
    """The checkpoint ``key`` and its ancestors, newest first, each with its writes."""

    run_id: RunId
    lane: Lane = ""
    key: Key
    limit: Limit = 500


class DeleteRun(Request):
    run_id: RunId


class DeleteByMetadata(Request):
    adapter: Name
    metadata: Annotated[Metadata, Field(min_length=1)]


class CopyRun(Request):
    run_id: RunId
    target_run_id: RunId
    idempotency_key: IdempotencyKey | Absent = None


class Prune(Request):
    run_id: RunId
    strategy: Literal["keep_latest", "delete"] = "keep_latest"


class Body(Shown):
    """A state by channel, and what an adapter keeps beside it."""

    state: list[tuple[str, Node]]
    extra: Node | None = None


class TaskWrites(Shown):
    """The results of one task as they arrived: index, channel and node of each."""

    task_id: str
    task_path: str = ""
    writes: list[tuple[int, str, Node]]


class Entry(Shown):
    """A stored checkpoint with its writes in order of arrival; nodes refer to the ``parts`` beside it."""

    run_id: str
    lane: str
    key: str
    parent: str | None = None
    seq: int
    step: str = ""
    saved_at: str
    body: Body
    metadata: Metadata = Field(default_factory=dict)
    writes: list[TaskWrites] = Field(default_factory=list)


class ClaimReply(Shown):
    run_id: str
    attempt: int


class CommitReply(Shown):
    """``missing`` lists part addresses the service lacks; then nothing of the commit was recorded.

    ``seqs`` holds the seq of each put, in their order. ``forks`` names the new checkpoints whose parent was not the
    latest of their lane; ``usage`` is there where the calls of a day are limited; ``replayed`` says that the same
    commit was recorded before.
    """

    seqs: list[int] = Field(default_factory=list)
    forks: list[str] = Field(default_factory=list)
    usage: Usage | None = None
    missing: list[str] = Field(default_factory=list)
    replayed: bool = False


class FetchReply(Shown):
    entry: Entry | None = None
    parts: dict[str, str] = Field(default_factory=dict)


class EntriesReply(Shown):
    entries: list[Entry]
    parts: dict[str, str] = Field(default_factory=dict)
    cursor: str | None = None


class CountReply(Shown):
    count: int
