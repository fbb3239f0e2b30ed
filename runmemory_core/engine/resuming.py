"""`resume`: begin an attempt with what earlier ones left, or only look."""

from __future__ import annotations

import json
from itertools import islice
from typing import Any

from runmemory_core.engine import wording
from runmemory_core.engine._context import (
    Context,
    call_hash,
    check_attempt,
    find_replay,
    remember,
    what_became_of,
)
from runmemory_core.engine._states import done_in_state, removed_of, standing_checkpoint, state_text
from runmemory_core.engine.attempts import begin_attempt, begin_run, record_attempt
from runmemory_core.errors import CheckpointGone, NotFound, RunMemoryError
from runmemory_core.model import Reply
from runmemory_core.operations.calls import Call
from runmemory_core.operations.tools import Resume
from runmemory_core.operations.wire import raw
from runmemory_core.policy import admission
from runmemory_core.policy.times import duration, rfc3339

STUCK_ATTEMPTS = 3
UNFINISHED_SHOWN = 5
_UNFINISHED_SEARCHED = 500
"""Of each status, the newest begun: enough to find a name among, without looking at a million runs."""


def resume(at: Context, call: Call) -> Reply:
    """The last checkpoint and the work already done; unless ``peek``, a new attempt begins."""
    request = call.request
    assert isinstance(request, Resume)
    run = at.run(request.run_id)
    gone = what_became_of(run)
    known: Any = None if gone else run
    if known is not None and request.start_over:
        admission.check_owner(request.run_id, known["adapter"], None)
    if looks_only(request) or (known is not None and known["adapter"] is not None):
        return answer(at, request, known, gone=gone)
    body = call_hash(request)
    if (recorded := find_replay(at, request.idempotency_key)) is not None:
        # The attempt of then: a worker that was replaced since must not come by the newer one.
        admission.check_replay(recorded["body"], body)
        again = answer(at, request, known, gone=gone)
        return again | {"attempt": int(recorded["number"]), "replayed": True}
    if request.seq is not None:
        _find_asked(at, request, known, gone)  # a refusal begins no attempt
    if known is None:
        admission.check_unknown(request.run_id, request.attempt)
        if at.over_quota():
            return answer(at, request, None, gone=gone)
        run = begin_run(at, request.run_id)
        record_attempt(at, run)
    else:
        run = known
        check_attempt(at, run, request.attempt)
        if request.start_over:
            at.check_quota()
        if request.start_over or (request.attempt is None and run["status"] != "finished"):
            run = begin_attempt(at, run, anew=request.start_over, base_seq=request.seq)
    # Over quota a known run is still handed back and its restart recorded: only saving waits for the next day.
    if not at.over_quota():
        at.count_call()
    remember(at, call, run=run["run"], number=run["attempt"], body=body)
    return answer(at, request, run, gone=gone)


# --- the answer -----------------------------------------------------------------------------------------


def answer(at: Context, request: Resume, run: Any, *, gone: str = "") -> Reply:
    """What ``run`` left, or that nothing is known of it; ``gone`` says what became of all that it had."""
    checkpoint = _find_asked(at, request, run, gone)
    if run is None or checkpoint is None:
        return _new(at, request, run, gone)
    finished = run["status"] == "finished"
    step, text = checkpoint["step"], state_text(at, checkpoint)
    if finished and request.seq is not None:
        step = at.tx.one("latest_checkpoint", account_id=at.account_id, run=run["run"])["step"]
    done, done_count, done_cursor = _done(at, run, request, text)
    found = warnings(at, run)
    outcome = (
        f'{request.run_id} is finished; its last step was "{step}". Nothing to do again.'
        if finished
        else wording.resuming(request.run_id, step, done_count, run["worked_ms"], found)
    )
    status = "finished" if finished else "resumed"
    reply = at.envelope(
        understood=f"{'look at' if looks_only(request) else 'resume'} run {request.run_id}",
        job=run["job"] or request.run_id,
        outcome=outcome,
        code=status,
        notices=_gone_back(run),
    )
    reply |= {"status": status, "run_id": request.run_id, "attempt": run["attempt"]}
    reply |= found
    if not finished:
        reply["not_repeated"] = duration(run["worked_ms"])
    reply |= {"done_count": done_count, "done": done}
    if done_cursor is not None:
        reply["done_cursor"] = done_cursor
    return reply | {"checkpoint": _shown(at, checkpoint, text)}


def looks_only(request: Resume) -> bool:
    """Whether no attempt begins: a further page of done is for the attempt that is under way."""
    return request.peek or request.done_cursor is not None


def _find_asked(at: Context, request: Resume, run: Any, gone: str) -> Any:
    if request.seq is not None and gone:
        raise CheckpointGone(f"run {request.run_id} {gone}: none of its checkpoints is kept", oldest_seq=None)
    if run is None and request.seq is not None:
        raise NotFound(
            f"there is no run {request.run_id} in this account, so no checkpoint {request.seq} of it"
        )
    return None if run is None else find_checkpoint(at, request, run)


def _new(at: Context, request: Resume, run: Any, gone: str) -> Reply:
    reply = at.envelope(
        understood=f"{'look at' if looks_only(request) else 'resume'} run {request.run_id}",
        job=(run["job"] if run is not None else None) or request.run_id,
        outcome=wording.beginning(
            request.run_id, earlier=run["generation_seq"] if run is not None else 0, gone=gone
        ),
        code="new",
    )
    reply |= {"status": "new", "run_id": request.run_id}
    if run is not None:
        reply["attempt"] = run["attempt"]
        reply |= warnings(at, run)
    return reply | unfinished(at, request.run_id)


def find_checkpoint(at: Context, request: Resume, run: Any) -> Any:
    """The checkpoint that ``request`` is shown of ``run``, or None before the first; raises for a seq not kept."""
    ids = {"account_id": at.account_id, "run": run["run"]}
    if request.seq is not None:
        found = at.tx.one("checkpoint", **ids, seq=request.seq)
        if found is None or found["thin"]:
            raise _missing(at, request.run_id, request.seq, run)
        return found
    if run["adapter"] is not None:
        lane = at.tx.one("lane", **ids, name="")
        return at.tx.one("lane_head", **ids, lane=lane["lane"]) if lane else None
    return standing_checkpoint(at, run)


def _gone_back(run: Any) -> tuple[str, ...]:
    base: int | None = run["base_seq"]
    if base is None:
        return ()
    done = "done also holds what was reported after it"
    if base <= run["generation_seq"]:
        done = "that is of before the run began anew, and done is not"
    notice = f"this attempt goes on from checkpoint {base}, not from the latest, {run['seq']}; {done}"
    return (notice,)


def _missing(at: Context, run_id: str, seq: int, run: Any) -> RunMemoryError:
    if seq > run["seq"]:
        return NotFound(f"run {run_id} has no checkpoint {seq}; its latest is {run['seq']}")
    oldest = at.tx.one("oldest_seq", account_id=at.account_id, run=run["run"])["seq"]
    return CheckpointGone(
        f"checkpoint {seq} of run {run_id} was removed by retention; the oldest kept is {oldest}",
        oldest_seq=oldest,
    )


def _shown(at: Context, checkpoint: Any, text: str) -> Reply:
    size = len(text.encode())
    shown: Reply = {
        "seq": checkpoint["seq"],
        "step": checkpoint["step"],
        "saved_at": rfc3339(checkpoint["saved_at"]),
        "bytes": size,
    } | wording.removed(removed_of(checkpoint))
    if checkpoint["lane"]:
        lanes = at.tx.all("lanes", account_id=at.account_id, run=checkpoint["run"])
        shown["lane"] = next(row["name"] for row in lanes if row["lane"] == checkpoint["lane"])
    if size <= at.caller.limits.state_bytes:
        shown["state"] = raw(text)
    return shown


def _done(at: Context, run: Any, request: Resume, state: str) -> tuple[list[str], int, int | None]:
    """One page of the done ids in order of first report, how many there are, where the next begins."""
    page, start = at.caller.limits.done_page, request.done_cursor or 0
    count: int = run["done_count"]
    if count or run["adapter"] is not None:
        rows = at.tx.all("done_page", account_id=at.account_id, run=run["run"], from_n=start, limit=page)
        items = [row["item"] for row in rows]
    else:
        listed = done_in_state(state)
        count, items = len(listed), listed[start : start + page]
    return items, count, start + page if start + page < count else None


def warnings(at: Context, run: Any) -> Reply:
    """What a person would want to know before going on: a restart, steps in flight, a run that is stuck."""
    found: Reply = {}
    recent = at.tx.all("last_attempts", account_id=at.account_id, run=run["run"], limit=STUCK_ATTEMPTS + 1)
    if recent and recent[0]["restart"]:
        found["restart"] = True
    found |= _left_with(run, recent[0] if recent else None)
    if run["in_flight"]:
        found["in_flight"] = json.loads(run["in_flight"])
    idle = [
        row for row in recent[1:] if row["from_seq"] == run["seq"] and row["generation"] == run["generation"]
    ]
    if len(idle) == STUCK_ATTEMPTS and run["seq"] == recent[0]["from_seq"]:
        ids = {"account_id": at.account_id, "run": run["run"]}
        count = at.tx.one("idle_attempts", **ids, from_seq=run["seq"], generation=run["generation"])["count"]
        found["stuck"] = {"attempts": count - 1, "from_seq": run["seq"]}
        before = run["seq"] - 1
        if before > run["generation_seq"] and at.tx.one("checkpoint", **ids, seq=before) is not None:
            found["stuck"]["fall_back_seq"] = before
    return found


def _left_with(run: Any, attempt: Any) -> Reply:
    """The status and error the run was left with, until its next save; no status when it just fell silent."""
    status, error = run["status"], run["error"]
    if (
        status == "running"
        and attempt is not None
        and run["seq"] == attempt["from_seq"] > run["generation_seq"]
    ):
        status, error = attempt["found"], error or attempt["crash_error"]
    found: Reply = {"run_status": status} if status in {"paused", "failed"} else {}
    return found | ({"error": error} if error is not None else {})


def unfinished(at: Context, asked: str) -> Reply:
    """Recent unfinished runs: the caller may have the name wrong. Without a key, how many and when."""
    rows: list[Any] = []
    for status in ("running", "paused", "failed"):
        rows += at.tx.all(
            "runs_with_status",
            account_id=at.account_id,
            status=status,
            asked=asked,
            limit=_UNFINISHED_SEARCHED,
        )
    rows.sort(key=lambda row: row["updated_at"], reverse=True)
    if not rows:
        return {}
    if at.caller.anonymous:
        return {"unfinished_counted": counted(len(rows), rows[-1]["updated_at"], rows[0]["updated_at"])}
    shown = (_unfinished_row(at, row) for row in rows)
    return {"unfinished": list(islice(filter(None, shown), UNFINISHED_SHOWN))}


def counted(count: int, oldest: int, newest: int) -> Reply:
    """What callers without a key are shown instead of labels, since others share their address."""
    return {"count": count, "oldest_at": rfc3339(oldest), "newest_at": rfc3339(newest)}


def _unfinished_row(at: Context, run: Any) -> Reply | None:
    last = at.tx.one("latest_checkpoint", account_id=at.account_id, run=run["run"])
    if last is None:  # only watch mode forgets the last step of a run
        return None
    return {
        "run_id": run["run_id"],
        "step": last["step"],
        "seq": run["seq"],
        "status": run["status"],
        "updated_at": rfc3339(run["updated_at"]),
    }
