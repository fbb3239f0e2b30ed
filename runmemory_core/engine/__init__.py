"""The engine: plain synchronous use cases over an open transaction.

`perform` is the one door. It takes a checked `Call`, who asks, and the moment; it knows no clock, no socket
and no database driver. Refusals are exceptions raised before anything was written.
"""

from __future__ import annotations

from collections.abc import Callable

from runmemory_core.engine import committing, fetching, managing, reports, resuming, saving, watching, weekly
from runmemory_core.engine._context import Context
from runmemory_core.model import Caller, Reply
from runmemory_core.operations.calls import Call
from runmemory_core.operations.tools import Resume
from runmemory_core.store import Tx

_USE_CASES: dict[str, Callable[[Context, Call], Reply]] = {
    "resume": resuming.resume,
    "save_checkpoint": saving.save_checkpoint,
    "list_checkpoints": reports.list_checkpoints,
    "weekly_report": weekly.weekly_report,
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

_WATCHING: dict[str, Callable[[Context, Call], Reply]] = {
    "resume": watching.resume,
    "save_checkpoint": watching.save_checkpoint,
    "list_checkpoints": watching.list_checkpoints,
}
"""What differs where nothing is stored."""


def perform(tx: Tx, call: Call, *, caller: Caller, now_ms: int) -> Reply:
    """Do what ``call`` asks inside ``tx`` and return its reply; any `RunMemoryError` means nothing was kept."""
    name = call.operation.name
    if caller.mode == "watch" and call.operation.group == "run":
        return _WATCHING.get(name, _USE_CASES[name])(Context(tx, caller, now_ms, watching=True), call)
    return _USE_CASES[name](Context(tx, caller, now_ms), call)


def reads_only(call: Call, caller: Caller) -> bool:
    """Whether ``call`` can run on a read-only view: reading operations, looks, and what watch mode refuses."""
    if not call.operation.writes or (caller.mode == "watch" and call.operation.group == "store"):
        return True
    return isinstance(call.request, Resume) and resuming.looks_only(call.request)
