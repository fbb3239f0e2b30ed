"""The tools in watch mode: everything is previewed and no state is stored.

What is recorded goes to an account of its own, in the rows that acting uses too: a run's id and attempts, a checkpoint
with step, size and time but an empty body, and keyed hashes of steps. It is what the weekly report needs, no more.
"""

from __future__ import annotations

from typing import Any

from runmemory_core.engine import wording
from runmemory_core.engine._context import Context, check_attempt, find_replay, remember, set_status
from runmemory_core.engine._states import add_checkpoint
from runmemory_core.engine.attempts import (
    Reported,
    add_asked,
    begin_attempt,
    begin_run,
    counts_after,
    keyed_hash,
    record_attempt,
)
from runmemory_core.engine.reports import list_rows
from runmemory_core.engine.resuming import answer, find_checkpoint, looks_only, unfinished
from runmemory_core.engine.saving import EMPTY
from runmemory_core.errors import NotFound, RunMemoryError
from runmemory_core.model import LIMITS, Plan, Reply
from runmemory_core.operations.calls import Call, PreparedState
from runmemory_core.operations.tools import ListCheckpoints, Resume, SaveCheckpoint
from runmemory_core.operations.wire import raw
from runmemory_core.policy import admission, retention
from runmemory_core.policy.times import rfc3339

ACTING = LIMITS[Plan.PRO]
"""The plan whose doing is previewed."""

_KEPT_NOTICE = "this was stored before; in watch mode nothing newer is"
_PREVIOUS_STAYS = (
    "no state was given: acting, the previous one would stay; watch mode keeps none that it could show"
)
_NO_BODY = b""
_NOT_SHOWN = ""


# --- save_checkpoint ------------------------------------------------------------------------------------


def save_checkpoint(at: Context, call: Call) -> Reply:
    """What would be stored, exactly; that this step was reported is recorded."""
    request = call.request
    assert isinstance(request, SaveCheckpoint)
    run = at.run(request.run_id)
    state = call.state or _previous_state(at, run)
    if (recorded := find_replay(at, request.idempotency_key)) is not None:
        admission.check_replay(recorded["body"], _body(at, call, request.run_id, request.step))
        return _preview(at, call, request, state) | {"replayed": True}
    if refusal := _refusal(at, run, request):
        return _would_refuse(at, call, request, refusal)
    state.check_size(at.caller.limits)
    at.check_quota()
    run = run or begin_run(at, request.run_id)
    _record(at, run, request, state)
    body = _body(at, call, request.run_id, request.step)
    remember(at, call, run=run["run"], number=run["seq"] + 1, body=body)
    at.count_call()
    return _preview(at, call, request, state)


def _body(at: Context, call: Call, *names: str) -> bytes:
    """What tells calls apart by idempotency key: of a state not even a hash is kept."""
    return keyed_hash("\0".join((call.operation.name, *names)), at.salt)


def _previous_state(at: Context, run: Any) -> PreparedState:
    """In place of the state that would stay: of it only the size was recorded."""
    if run is None or run["seq"] <= run["generation_seq"]:
        return EMPTY
    last = at.tx.one("latest_checkpoint", account_id=at.account_id, run=run["run"])
    return EMPTY if last is None else PreparedState(_NOT_SHOWN, last["bytes"], ())


def _refusal(at: Context, run: Any, request: SaveCheckpoint) -> str:
    """Why acting would refuse the save; neighbours behind one address do not refuse each other's."""
    if at.caller.anonymous:
        return ""
    try:
        if run is None:
            admission.check_unknown(request.run_id, request.attempt)
        else:
            check_attempt(at, run, request.attempt)
            admission.check_finished(request.run_id, run["status"])
        admission.check_expected_seq(request.run_id, request.expected_seq, current=run["seq"] if run else 0)
    except RunMemoryError as refusal:
        return refusal.detail
    return ""


def _would_refuse(at: Context, call: Call, request: SaveCheckpoint, refusal: str) -> Reply:
    reply = at.envelope(
        understood=f'preview saving "{request.step}" of run {request.run_id}',
        job=request.job or request.run_id,
        outcome=wording.would_refuse(request.step, refusal),
        code="would_refuse",
        notices=call.notices,
    )
    return reply | {"saved": False, "run_id": request.run_id, "step": request.step}


def _record(at: Context, run: Any, request: SaveCheckpoint, state: PreparedState) -> None:
    ids = {"account_id": at.account_id, "run": run["run"]}
    gap_ms = max(0, at.now - run["updated_at"])
    items = (request.done or [request.step])[: at.caller.limits.watched_ids]
    reported = add_asked(at, run, items)
    seq = add_checkpoint(at, run, step=request.step, state_bytes=state.size, body=_NO_BODY)
    at.tx.run(
        "advance_run",
        **ids,
        seq=seq,
        error=None,
        job=None,
        last_body=None,
        in_flight=None,
        done_count=run["done_count"] + _new(reported, request),
        worked_ms=run["worked_ms"] + gap_ms - reported.share(gap_ms),
        **counts_after(run, reported, gap_ms=gap_ms),
        now=at.now,
        kept_for_ms=at.own_term_ms,
    )
    set_status(at, run, request.status or "running")
    at.tx.run("evict_checkpoints", **ids, through=retention.evicted_through(seq, ACTING.keep))


def _new(reported: Reported, request: SaveCheckpoint) -> int:
    """How many ids this save would have added to the done set."""
    return reported.asks - reported.repeats if request.done else 0


def _preview(at: Context, call: Call, request: SaveCheckpoint, state: PreparedState) -> Reply:
    reply = at.envelope(
        understood=f'preview saving "{request.step}" of run {request.run_id}',
        job=request.job or request.run_id,
        outcome=wording.would_save(state.size, request.step, state.keys),
        code="would_save",
        notices=call.notices if state.text else (*call.notices, _PREVIOUS_STAYS),
    )
    shown: Reply = {"step": request.step, "bytes": state.size} | wording.removed(state.removed)
    if state.text:
        shown["state"] = raw(state.text)
    return reply | {"saved": False, "run_id": request.run_id, "step": request.step, "would_save": shown}


# --- resume ---------------------------------------------------------------------------------------------


def resume(at: Context, call: Call) -> Reply:
    """``new``, with the crash point that acting would have resumed from; the attempt is recorded."""
    request = call.request
    assert isinstance(request, Resume)
    before = at.run(request.run_id)
    replayed = find_replay(at, request.idempotency_key)
    if replayed is not None:
        admission.check_replay(replayed["body"], _body(at, call, request.run_id))
    stored = _stored(at.kept(), request.run_id)
    if request.seq is not None and (stored is None or find_checkpoint(at.kept(), request, stored) is None):
        raise NotFound(
            f"there is no checkpoint {request.seq} of run {request.run_id}: watch mode stores none"
        )
    run = before if looks_only(request) or replayed is not None else _begin(at, call, request, before)
    if stored is not None:
        return _with_notice(answer(at.kept(), request, stored))
    reply = _new_run(at, request, before, run)
    return reply if replayed is None else reply | {"attempt": int(replayed["number"]), "replayed": True}


def _stored(kept: Context, run_id: str) -> Any:
    """The row of a run that the account stored before it became watch, or None."""
    run = kept.run(run_id)
    return None if run is None or run["deleted_at"] is not None else run


def _begin(at: Context, call: Call, request: Resume, run: Any) -> Any:
    """The run with its next attempt, which is recorded over quota too; unknown runs are not, then."""
    if run is None:
        if at.over_quota():
            return None
        run = begin_run(at, request.run_id)
        record_attempt(at, run)
    elif request.attempt is None or request.start_over:
        run = begin_attempt(at, run, anew=request.start_over or run["status"] == "finished")
    if not at.over_quota():
        at.count_call()
    remember(at, call, run=run["run"], number=run["attempt"], body=_body(at, call, request.run_id))
    return run


def _new_run(at: Context, request: Resume, before: Any, run: Any) -> Reply:
    crash_point = None if request.start_over else _crash_point(at, before)
    reply = at.envelope(
        understood=f"{'look at' if request.peek else 'resume'} run {request.run_id}",
        job=request.run_id,
        outcome=wording.would_resume(request.run_id, crash_point),
        code="new",
    )
    reply |= {"status": "new", "run_id": request.run_id}
    if run is not None:
        reply["attempt"] = run["attempt"]
        reply |= {"restart": True} if run["restarted"] else {}
    if crash_point is not None:
        return reply | {"would_resume": crash_point}
    return reply | unfinished(at, request.run_id)


def _crash_point(at: Context, run: Any) -> Reply | None:
    """The last step of the run before this attempt; None when nothing was reported."""
    if run is None or run["seq"] <= run["generation_seq"]:
        return None
    last = at.tx.one("latest_checkpoint", account_id=at.account_id, run=run["run"])
    if last is None:  # the run is resumed again and again, and its last step is too long ago
        return None
    return {
        "seq": last["seq"],
        "step": last["step"],
        "saved_at": rfc3339(last["saved_at"]),
        "bytes": last["bytes"],
        "run_status": run["status"],
    }


# --- list_checkpoints -----------------------------------------------------------------------------------


def list_checkpoints(at: Context, call: Call) -> Reply:
    """What acting would have kept; what the account stored before it became watch comes first."""
    request = call.request
    assert isinstance(request, ListCheckpoints)
    kept = at.kept()
    if request.run_id is not None:
        has_stored = _stored(kept, request.run_id) is not None
    else:
        has_stored = kept.tx.one("has_checkpoints", account_id=kept.account_id) is not None
    if has_stored:
        return _with_notice(list_rows(kept, request, limits=ACTING))
    return list_rows(at, request, limits=ACTING, would="that would have been kept")


def _with_notice(reply: Reply) -> Reply:
    return reply | {"notices": [*reply.get("notices", ()), _KEPT_NOTICE]}
