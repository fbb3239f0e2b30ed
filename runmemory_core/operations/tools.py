"""Requests and replies of the five tools, as every face shows them.

A reply field that is None was absent: None never stands for an empty value.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from runmemory_core.model import Mode, RunStatus
from runmemory_core.operations._fields import (
    MAX_COUNT,
    Absent,
    Attempt,
    Flag,
    IdempotencyKey,
    Job,
    JsonObject,
    Limit,
    Name,
    Names,
    Request,
    RunId,
    Seq,
    Shown,
    Status,
)

ERROR_CHARACTERS = 2_000

# --- requests -------------------------------------------------------------------------------------------


class Resume(Request):
    run_id: RunId
    peek: Annotated[
        Flag, Field(description="Only look: start no attempt. Use it after a context compaction.")
    ] = False
    seq: Seq | Absent = None
    attempt: Attempt | Absent = None
    start_over: Annotated[Flag, Field(description="Begin the run anew: state and done are cleared.")] = False
    done_cursor: (
        Annotated[
            int,
            Field(
                strict=True,
                ge=0,
                le=MAX_COUNT,
                description="From the previous reply: the next 1,000 ids of done.",
            ),
        ]
        | Absent
    ) = None
    idempotency_key: IdempotencyKey | Absent = None


class SaveCheckpoint(Request):
    run_id: RunId
    step: Annotated[Name, Field(description="The step just completed, 1-200 characters.")]
    state: (
        Annotated[
            JsonObject,
            Field(
                description="What you need to continue: cursor, ids, partial results. A JSON object of at "
                "most 262,144 bytes. Omitted: the previous state stays."
            ),
        ]
        | Absent
    ) = None
    done: (
        Annotated[
            Names,
            Field(
                max_length=100_000,
                description="Ids just finished, 1-200 characters each, added to the done set: at most 100,000.",
            ),
        ]
        | Absent
    ) = None
    next_step: (
        Annotated[
            Name, Field(description="The step you start now, 1-200 characters; in flight after a crash.")
        ]
        | Absent
    ) = None
    status: Status | Absent = None
    error: (
        Annotated[
            str,
            Field(
                max_length=ERROR_CHARACTERS,
                description="With status failed: what went wrong, at most 2,000 characters.",
            ),
        ]
        | Absent
    ) = None
    attempt: Attempt | Absent = None
    job: Job | Absent = None
    idempotency_key: IdempotencyKey | Absent = None
    expected_seq: (
        Annotated[
            int,
            Field(strict=True, ge=0, le=MAX_COUNT, description="Refuse unless this is the run's latest seq."),
        ]
        | Absent
    ) = None


class ListCheckpoints(Request):
    run_id: RunId | Absent = None
    unfinished: Annotated[Flag, Field(description="Only runs that are not finished.")] = False
    limit: Limit = 20
    cursor: Annotated[str, Field(max_length=100)] | Absent = None


class WeeklyReport(Request):
    pass


class UsageAndUpgrade(Request):
    pass


# --- replies --------------------------------------------------------------------------------------------


class Usage(Shown):
    """Calls of the current UTC day; ``limit`` and ``remaining`` are None when unlimited."""

    used: int
    limit: int | None = None
    remaining: int | None = None
    reset_at: str


class Envelope(Shown):
    """What every reply carries: ``outcome`` is one line an agent can repeat to its user."""

    understood: str
    job: str
    outcome: str
    mode: Mode
    code: str
    usage: Usage
    notices: list[str] = Field(default_factory=list)


class SavedCheckpoint(Shown):
    """A stored checkpoint; ``state`` is None when it is over 256 KB (see ``state_url``)."""

    seq: int
    step: str
    saved_at: str
    bytes: int
    removed: list[str] = Field(default_factory=list)
    removed_count: int = 0
    lane: str = ""
    state: dict[str, Any] | None = None


class UnfinishedRun(Shown):
    run_id: str
    step: str | None = None
    seq: int = 0
    status: RunStatus = "running"
    updated_at: str


class Stuck(Shown):
    """``attempts`` in a row began at ``from_seq`` and saved nothing; ``fall_back_seq`` is the one before."""

    attempts: int
    from_seq: int
    fall_back_seq: int | None = None


class WouldResume(Shown):
    """The last step reported in watch mode, from which an acting plan would resume."""

    seq: int
    step: str
    saved_at: str
    bytes: int
    run_status: RunStatus


class Counted(Shown):
    """What callers without a key see instead of labels: others may share their address."""

    count: int
    oldest_at: str
    newest_at: str


class ResumeReply(Envelope):
    """``run_status`` is ``paused`` or ``failed``, with its ``error``, for a run left so that saved nothing since.

    ``not_repeated`` estimates in words how long the work took that need not be repeated.
    """

    status: Literal["new", "resumed", "finished"]
    run_id: str
    attempt: int | None = None
    checkpoint: SavedCheckpoint | None = None
    done: list[str] = Field(default_factory=list)
    done_count: int = 0
    done_cursor: int | None = None
    restart: bool = False
    run_status: RunStatus | None = None
    error: str | None = None
    not_repeated: str = ""
    in_flight: list[str] = Field(default_factory=list)
    stuck: Stuck | None = None
    unfinished: list[UnfinishedRun] = Field(default_factory=list)
    unfinished_counted: Counted | None = None
    would_resume: WouldResume | None = None
    replayed: bool = False


class WouldSave(Shown):
    """What an acting plan would have stored, exactly."""

    step: str
    bytes: int
    removed: list[str] = Field(default_factory=list)
    removed_count: int = 0
    state: dict[str, Any] | None = None


class SaveReply(Envelope):
    saved: bool
    run_id: str
    step: str
    seq: int | None = None
    attempt: int | None = None
    bytes: int = 0
    removed: list[str] = Field(default_factory=list)
    removed_count: int = 0
    replayed: bool = False
    unfenced: bool = False
    would_save: WouldSave | None = None


class CheckpointRow(Shown):
    run_id: str
    seq: int
    step: str
    bytes: int
    saved_at: str
    expires_at: str | None = None
    lane: str = ""
    run_status: RunStatus


class ListReply(Envelope):
    checkpoints: list[CheckpointRow]
    cursor: str | None = None
    counted: Counted | None = None


class ReportReply(Envelope):
    text: str
    numbers: dict[str, int]


class UsageReply(Envelope):
    plan: str
    limits: dict[str, int | None]
    upgrade: str
