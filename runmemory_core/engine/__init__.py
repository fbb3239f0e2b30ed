"""The engine: plain synchronous use cases over an open transaction.

`perform` is the one door. It takes a checked `Call`, who asks, and the moment; it knows no clock, no socket
and no database driver. Refusals are exceptions raised before anything was written.
"""

from __future__ import annotations

from collections.abc import Callable

from runmemory_core.engine import committing, fetching, managing, reports, resuming, saving
from runmemory_core.engine._context import Context
from runmemory_core.model import Caller, Reply
from runmemory_core.operations.calls import Call
from runmemory_core.store import Tx

_USE_CASES: dict[str, Callable[[Context, Call], Reply]] = {
    "resume": resuming.resume,
    "save_checkpoint": saving.save_checkpoint,
    "list_checkpoints": reports.list_checkpoints,
    "weekly_report": reports.weekly_report,
    "usage_and_upgrade": reports.usage_and_upgrade,
    "claim": committing.claim,
    "commit": committing.commit,
    "fetch": fetching.fetch,
    "history": fetching.history,
    "chain": fetching.chain,
    "delete_run": managing.delete_run,
    "delete_by_metadata": managing.delete_by_metadata,
    "copy_run": managing.copy_run,
    "prune": managing.prune,
}


def perform(tx: Tx, call: Call, *, caller: Caller, now_ms: int) -> Reply:
    """Do what ``call`` asks inside ``tx`` and return its reply; any `RunMemoryError` means nothing was kept."""
    return _USE_CASES[call.operation.name](Context(tx, caller, now_ms), call)


def reads_only(call: Call, caller: Caller) -> bool:
    """Whether ``call`` can run on a read-only view: reading operations, and everything in watch mode."""
    if not call.operation.writes or caller.mode == "watch":
        return True
    return bool(getattr(call.request, "peek", False))
