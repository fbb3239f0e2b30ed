"""The contract: every operation once, with its request, its reply and what it does.

REST routes, the HTTP transport, MCP and LangChain tools and OpenAPI are made from `OPERATIONS`; nothing
else may list operations. Requests and replies live in `tools` (shown to agents) and `storage` (adapters),
the way from arguments to a checked `Call` in `calls`, their JSON in `wire`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from runmemory_core.operations import storage, tools
from runmemory_core.operations._fields import Request, Shown

Group = Literal["run", "store"]


@dataclass(frozen=True, slots=True)
class Operation:
    """One operation: ``writes`` tells whether it may change the database, ``metered`` whether it counts."""

    name: str
    group: Group
    request: type[Request]
    reply: type[Shown]
    description: str
    writes: bool = False
    metered: bool = False
    hidden: frozenset[str] = field(default_factory=frozenset[str])
    """Arguments for REST and the client that agents are not shown."""

    @property
    def path(self) -> str:
        """Where the service answers it by POST."""
        return f"/api/{self.group}/{self.name}"


_TABLE = (
    Operation(
        "resume",
        "run",
        tools.Resume,
        tools.ResumeReply,
        "Call FIRST when a run starts, with a run_id you would choose again after a crash. If a checkpoint "
        "exists you get the last step, its state and the items already done: continue from there and skip "
        "finished work. status is new, resumed or finished. Pass the returned attempt to save_checkpoint.",
        writes=True,
        metered=True,
        hidden=frozenset({"idempotency_key"}),
    ),
    Operation(
        "save_checkpoint",
        "run",
        tools.SaveCheckpoint,
        tools.SaveReply,
        "Call after each completed step with the state you would need to continue (cursor, ids done, "
        "partial results; at most 262,144 bytes of JSON). Never put passwords or API keys in it: values "
        "under names like these are replaced by [removed]. A crash afterwards resumes right here.",
        writes=True,
        metered=True,
        hidden=frozenset({"expected_seq"}),
    ),
    Operation(
        "list_checkpoints",
        "run",
        tools.ListCheckpoints,
        tools.ListReply,
        "List recent checkpoints (step, size, time), newest first, for one run or for all runs.",
        hidden=frozenset({"cursor"}),
    ),
    Operation(
        "weekly_report",
        "run",
        tools.WeeklyReport,
        tools.ReportReply,
        "Draft a plain-English report of the last 7 days: runs, checkpoints, restarts. Sends nothing.",
    ),
    Operation(
        "usage_and_upgrade",
        "run",
        tools.UsageAndUpgrade,
        tools.UsageReply,
        "Calls used today, the plan and its limits, and how to get more. Not metered.",
    ),
    Operation(
        "claim",
        "store",
        storage.Claim,
        storage.ClaimReply,
        "Raise and return the attempt of an adapter's run.",
        writes=True,
    ),
    Operation(
        "commit",
        "store",
        storage.Commit,
        storage.CommitReply,
        "Store checkpoints, writes and new parts in order, all or nothing.",
        writes=True,
        metered=True,
    ),
    Operation(
        "fetch", "store", storage.Fetch, storage.FetchReply, "One checkpoint with its writes and parts."
    ),
    Operation(
        "history", "store", storage.History, storage.EntriesReply, "Checkpoints newest first, filtered."
    ),
    Operation(
        "chain", "store", storage.Chain, storage.EntriesReply, "A checkpoint and its ancestors in one call."
    ),
    Operation(
        "delete_run",
        "store",
        storage.DeleteRun,
        storage.CountReply,
        "Delete a run; late writes to it are refused for 7 days.",
        writes=True,
    ),
    Operation(
        "delete_by_metadata",
        "store",
        storage.DeleteByMetadata,
        storage.CountReply,
        "Delete the checkpoints whose metadata equals the given values.",
        writes=True,
    ),
    Operation(
        "copy_run",
        "store",
        storage.CopyRun,
        storage.CountReply,
        "Copy all checkpoints, writes and parts of a run to another run_id.",
        writes=True,
    ),
    Operation(
        "prune",
        "store",
        storage.Prune,
        storage.CountReply,
        "Keep only the latest checkpoint of each lane, or none.",
        writes=True,
    ),
)

OPERATIONS: dict[str, Operation] = {operation.name: operation for operation in _TABLE}
TOOLS: tuple[Operation, ...] = tuple(operation for operation in _TABLE if operation.group == "run")
