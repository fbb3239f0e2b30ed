"""Deleting, copying and pruning runs, and the sweep that removes what has expired."""

from __future__ import annotations

from typing import Any

from pydantic_core import from_json

from runmemory_core.engine._context import Context
from runmemory_core.engine._states import clear_run, collect_parts, trim_lane
from runmemory_core.errors import InvalidRequest, NotFound
from runmemory_core.model import Limits, Reply
from runmemory_core.operations.calls import Call
from runmemory_core.operations.storage import CopyRun, DeleteByMetadata, DeleteRun, Prune
from runmemory_core.store import Tx

SWEPT_AT_ONCE = 500


def delete_run(at: Context, call: Call) -> Reply:
    """Delete a run with all its checkpoints; a tombstone stays, so that a late write cannot revive half of it."""
    request = call.request
    assert isinstance(request, DeleteRun)
    at.require_acting("delete_run")
    run = at.run(request.run_id)
    if run is None or run["deleted_at"] is not None:
        return {"count": 0}
    _bury(at, run["run"])
    return {"count": 1}


def _bury(at: Context, run: int) -> None:
    clear_run(at.tx, account_id=at.account_id, run=run)
    at.tx.run("bury_run", account_id=at.account_id, run=run, now=at.now)


def delete_by_metadata(at: Context, call: Call) -> Reply:
    """Delete the checkpoints of an adapter's runs whose metadata equals the given values, with their writes."""
    request = call.request
    assert isinstance(request, DeleteByMetadata)
    at.require_acting("delete_by_metadata")
    count = 0
    for run in at.tx.all("adapter_runs", account_id=at.account_id, adapter=request.adapter):
        ids = {"account_id": at.account_id, "run": run["run"]}
        rows = at.tx.all("run_checkpoints", **ids)
        doomed = [row for row in rows if _equals(row["metadata"], request.metadata)]
        for row in doomed:
            at.tx.run("delete_writes", **ids, lane=row["lane"], key=row["key"])
            at.tx.run("delete_checkpoint", **ids, seq=row["seq"])
        count += len(doomed)
        if doomed and len(doomed) == len(rows):
            _bury(at, run["run"])
        elif doomed:
            collect_parts(at, run["run"])
    return {"count": count}


def _equals(metadata: str | None, wanted: dict[str, Any]) -> bool:
    kept: dict[str, Any] = from_json(metadata or "{}")
    return all(name in kept and kept[name] == value for name, value in wanted.items())


def copy_run(at: Context, call: Call) -> Reply:
    """Copy a run whole to a new run_id; the copy goes on by itself."""
    request = call.request
    assert isinstance(request, CopyRun)
    at.require_acting("copy_run")
    source, target = at.run(request.run_id), at.run(request.target_run_id)
    if source is None or source["deleted_at"] is not None:
        raise NotFound(f"there is no run {request.run_id} in this account")
    if target is not None and target["deleted_at"] is None:
        raise InvalidRequest(
            f"run {request.target_run_id} exists already: copy to a new run_id, or delete it first",
            pointers={"/target_run_id": "exists already"},
        )
    ids = {"account_id": at.account_id}
    if target is not None:
        at.tx.run("forget_run", **ids, run=target["run"])
    number = at.tx.one("next_run", **ids)["run"]
    at.tx.run(
        "add_run",
        **ids,
        run=number,
        run_id=request.target_run_id,
        adapter=source["adapter"],
        job=source["job"],
        attempt=1,
        now=at.now,
    )
    for what in ("lanes", "checkpoints", "writes", "parts", "done", "progress"):
        at.tx.run(f"copy_{what}", **ids, run=source["run"], target=number)
    return {"count": len(at.tx.all("run_checkpoints", **ids, run=number))}


def prune(at: Context, call: Call) -> Reply:
    """Keep the latest checkpoint of each lane and the ancestors it needs, or delete the run."""
    request = call.request
    assert isinstance(request, Prune)
    at.require_acting("prune")
    run = at.run(request.run_id)
    if run is None or run["deleted_at"] is not None:
        return {"count": 0}
    if request.strategy == "delete":
        count = len(at.tx.all("run_checkpoints", account_id=at.account_id, run=run["run"]))
        _bury(at, run["run"])
        return {"count": count}
    lanes = at.tx.all("lanes", account_id=at.account_id, run=run["run"])
    count = sum(trim_lane(at, run["run"], lane["lane"], 1) for lane in lanes)
    collect_parts(at, run["run"])
    return {"count": count}


def sweep(tx: Tx, *, limits: Limits, now_ms: int) -> int:
    """Remove expired runs, old tombstones and old replays, a bounded number at a time; how many went."""
    count = tx.run("forget_replays", before=now_ms - limits.replays_kept_for_ms, limit=SWEPT_AT_ONCE)
    for account in tx.all("accounts"):
        ids = {"account_id": account["account_id"]}
        if limits.kept_for_ms is not None:
            expired = tx.all("expired_runs", **ids, before=now_ms - limits.kept_for_ms, limit=SWEPT_AT_ONCE)
            for run in expired:
                clear_run(tx, **ids, run=run["run"])
                tx.run("forget_run", **ids, run=run["run"])
            count += len(expired)
        old = tx.all(
            "old_tombstones", **ids, before=now_ms - limits.tombstones_kept_for_ms, limit=SWEPT_AT_ONCE
        )
        for run in old:
            tx.run("forget_run", **ids, run=run["run"])
        count += len(old)
    return count
