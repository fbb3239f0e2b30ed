"""Deleting, copying and pruning runs, on request."""

from __future__ import annotations

from runmemory_core.engine._context import Context, call_hash, find_replay, remember
from runmemory_core.engine._states import clear_run, collect_parts, drop_call_lanes, trim_lane
from runmemory_core.engine.attempts import begin_run
from runmemory_core.engine.fetching import metadata_equals
from runmemory_core.errors import InvalidRequest, NotFound
from runmemory_core.model import Reply
from runmemory_core.operations.calls import Call
from runmemory_core.operations.storage import CopyRun, DeleteByMetadata, DeleteRun, Prune
from runmemory_core.policy import admission


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
    at.tx.run("bury_run", account_id=at.account_id, run=run, status="deleted", now=at.now)


def delete_by_metadata(at: Context, call: Call) -> Reply:
    """Delete the checkpoints of an adapter's runs whose metadata equals the given values, with their writes."""
    request = call.request
    assert isinstance(request, DeleteByMetadata)
    at.require_acting("delete_by_metadata")
    count = 0
    for run in at.tx.all("adapter_runs", account_id=at.account_id, adapter=request.adapter):
        ids = {"account_id": at.account_id, "run": run["run"]}
        rows = at.tx.all("run_checkpoints", **ids)
        doomed = [row for row in rows if metadata_equals(row["metadata"], request.metadata)]
        for row in doomed:
            at.tx.run("delete_writes", **ids, lane=row["lane"], key=row["key"])
            at.tx.run("delete_checkpoint", **ids, seq=row["seq"])
        count += len(doomed)
        if doomed and len(doomed) == len(rows):
            _bury(at, run["run"])
        elif doomed:
            _forget_some(at, run["run"])
    return {"count": count}


def _forget_some(at: Context, run: int) -> None:
    """What was removed on request is new when it is committed again."""
    at.tx.run("forget_commits", account_id=at.account_id, run=run)
    collect_parts(at, run)


def copy_run(at: Context, call: Call) -> Reply:
    """Copy a run whole to a new run_id; the copy goes on by itself."""
    request = call.request
    assert isinstance(request, CopyRun)
    at.require_acting("copy_run")
    body = call_hash(request)
    if (recorded := find_replay(at, request.idempotency_key)) is not None:
        admission.check_replay(recorded["body"], body)
        return {"count": int(recorded["number"])}
    source, target = at.run(request.run_id), at.run(request.target_run_id)
    if source is None or source["deleted_at"] is not None:
        raise NotFound(f"there is no run {request.run_id} in this account")
    if target is not None and target["deleted_at"] is None:
        raise InvalidRequest(
            f"run {request.target_run_id} exists already: copy to a new run_id, or delete it first",
            pointers={"/target_run_id": "exists already"},
        )
    ids = {"account_id": at.account_id}
    begun = begin_run(at, request.target_run_id, adapter=source["adapter"], job=source["job"])
    number: int = begun["run"]
    # What was copied belongs to the copy's own attempt: an answer to a run of that name is told from it thereby.
    for what in ("lanes", "checkpoints", "writes", "parts", "done", "progress"):
        at.tx.run(f"copy_{what}", **ids, run=source["run"], target=number, attempt=begun["attempt"])
    count = len(at.tx.all("run_checkpoints", **ids, run=number))
    remember(at, call, run=number, number=count, body=body)
    return {"count": count}


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
    drop_call_lanes(at, run["run"])
    _forget_some(at, run["run"])
    return {"count": count}
