"""`save_checkpoint`: one step reported complete, with the state to continue from.

All checks come before the first write, in the order of `runmemory_core.policy.admission`, so a refusal leaves
nothing behind.
"""

from __future__ import annotations

import json
from hashlib import blake2b
from typing import Any

from runmemory_core.engine import wording
from runmemory_core.engine._context import (
    Context,
    check_attempt,
    check_tombstone,
    find_replay,
    remember,
    set_status,
)
from runmemory_core.engine._states import (
    add_checkpoint,
    collect_parts,
    done_in_state,
    removed_of,
    standing_checkpoint,
    state_body,
    state_text,
)
from runmemory_core.engine.attempts import Reported, add_asked, begin_run, counts_after
from runmemory_core.errors import InvalidRequest
from runmemory_core.model import Reply
from runmemory_core.operations.calls import Call, PreparedState
from runmemory_core.operations.tools import SaveCheckpoint
from runmemory_core.policy import admission, retention
from runmemory_core.policy.json_rules import write
from runmemory_core.store.codec import pack

IN_FLIGHT_KEPT = 50
_HASHED = tuple(name for name in SaveCheckpoint.model_fields if name not in ("idempotency_key", "state"))
EMPTY = PreparedState("{}", 2, ())
_OF_AN_EARLIER_GENERATION = "the run was begun anew since this was saved, and does not go on from it"


def save_checkpoint(at: Context, call: Call) -> Reply:
    """Store the checkpoint."""
    request = call.request
    assert isinstance(request, SaveCheckpoint)
    run = at.run(request.run_id)
    body = body_hash(call, request)
    if (replayed := _replay(at, run, call, request, body)) is not None:
        return replayed
    status = request.status or "running"
    if run is not None:
        check_tombstone(run, begins_anew=False)
        admission.check_owner(request.run_id, run["adapter"], None)
        check_attempt(at, run, request.attempt)
        admission.check_finished(request.run_id, run["status"])
    else:
        admission.check_unknown(request.run_id, request.attempt)
    admission.check_expected_seq(request.run_id, request.expected_seq, current=run["seq"] if run else 0)
    if call.state is not None:
        call.state.check_size(at.caller.limits)
    _check_done_count(at, run, request)
    at.check_quota()
    if run is None:
        run = begin_run(at, request.run_id, job=request.job)
    return _store(at, run, call, request, status=status, body=body)


def body_hash(call: Call, request: SaveCheckpoint) -> bytes:
    """What tells two saves apart: every argument but the idempotency key, the state as it is kept."""
    fields = [f"{name}={getattr(request, name)!r}" for name in _HASHED]
    text = "\0".join(fields) + (call.state.text if call.state else "")
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()


def _replay(at: Context, run: Any, call: Call, request: SaveCheckpoint, body: bytes) -> Reply | None:
    if (recorded := find_replay(at, request.idempotency_key)) is not None:
        admission.check_replay(recorded["body"], body)
        return _answer_again(at, run, call, request, recorded)
    if run is None or run["last_body"] != body or request.attempt not in (None, run["attempt"]):
        return None
    same = at.tx.one("checkpoint", account_id=at.account_id, run=run["run"], seq=run["seq"])
    remember(at, call, run=run["run"], number=run["seq"], body=body, state_bytes=same["bytes"])
    state = call.state or _state_of(same, "")
    again = {"run": run["run"], "seq": run["seq"], "attempt": run["attempt"]}
    return _answer(at, call, request, **again, state=state, replayed=True)


def _answer_again(at: Context, run: Any, call: Call, request: SaveCheckpoint, recorded: Any) -> Reply:
    """The first answer, unless what it said was saved went with the run or with an earlier generation of it."""
    seq, attempt = recorded["number"], recorded["attempt"]
    kept = at.tx.one("checkpoint", account_id=at.account_id, run=recorded["run"], seq=seq)
    # A run that begins anew after its deletion counts from 1 again, but its attempts go on.
    if kept is not None and kept["attempt"] != attempt:
        kept = None
    if kept is None:
        admission.check_begun_anew(
            request.run_id,
            deleted=run is None or run["deleted_at"] is not None or run["run"] != recorded["run"],
            anew=run is not None and run["generation"] != recorded["generation"],
            attempt=attempt,
            current=run["attempt"] if run is not None else 0,
        )
    state = call.state or (_state_of(kept, "") if kept is not None else _state_of_size(recorded["bytes"]))
    reply = _answer(
        at, call, request, run=recorded["run"], seq=seq, state=state, attempt=attempt, replayed=True
    )
    if run is not None and run["generation"] != recorded["generation"]:
        reply["notices"] = [*reply.get("notices", ()), _OF_AN_EARLIER_GENERATION]
    elif run is not None and run["seq"] != seq:
        since = f"this is the answer of then: the run went on since, to checkpoint {run['seq']}"
        reply["notices"] = [*reply.get("notices", ()), since]
    return reply


def _state_of_size(state_bytes: int | None) -> PreparedState:
    return EMPTY if state_bytes is None else PreparedState("", state_bytes, ())


def _check_done_count(at: Context, run: Any, request: SaveCheckpoint) -> None:
    limit = at.caller.limits.done_ids
    items = request.done or ()
    count = (run["done_count"] if run else 0) + len(items)
    if count > limit and run is not None:
        # Only here is it worth looking which of them are in the set already.
        known = at.tx.one("known_done", account_id=at.account_id, run=run["run"], items=write(items))
        count = run["done_count"] + len(set(items)) - known["count"]
    if count > limit:
        raise InvalidRequest(
            f"done would hold {count:,} ids; the limit is {limit:,} a run: report ranges or pages instead",
            pointers={"/done": f"at most {limit:,} ids a run"},
        )


def _store(at: Context, run: Any, call: Call, request: SaveCheckpoint, *, status: str, body: bytes) -> Reply:
    ids = {"account_id": at.account_id, "run": run["run"]}
    state = call.state or _previous_state(at, run)
    new_parts: dict[str, str] = {}
    kept = state_body(state.text, new_parts)
    for address, text in new_parts.items():
        at.tx.run(
            "add_part", **ids, address=address, bytes=len(text.encode()), list_bytes=None, body=pack(text)
        )
    seq = add_checkpoint(
        at, run, step=request.step, state_bytes=state.size, removed=state.removed, body=pack(kept)
    )
    in_flight, notices = _in_flight(run["in_flight"], request)
    notices += _listed_no_more(at, run, state, request)
    done_count, reported = _report(at, run, request)
    gap_ms = max(0, at.now - run["updated_at"])
    at.tx.run(
        "advance_run",
        **ids,
        seq=seq,
        error=request.error,
        job=request.job or run["job"],
        last_body=body,
        in_flight=in_flight,
        done_count=done_count,
        # What is repeated was counted when it was done first.
        worked_ms=run["worked_ms"] + gap_ms - reported.share(gap_ms),
        **counts_after(run, reported, gap_ms=gap_ms),
        now=at.now,
        kept_for_ms=at.own_term_ms,
    )
    set_status(at, run, status)
    _evict(at, run["run"], seq)
    remember(at, call, run=run["run"], number=seq, body=body, state_bytes=state.size)
    at.count_call()
    attempt = run["attempt"]
    return _answer(at, call, request, run=run["run"], seq=seq, state=state, attempt=attempt, notices=notices)


def _previous_state(at: Context, run: Any) -> PreparedState:
    """The state that stays when a save brings none; a new generation begins with an empty one."""
    last = standing_checkpoint(at, run)
    return EMPTY if last is None else _state_of(last, state_text(at, last))


def _state_of(checkpoint: Any, text: str) -> PreparedState:
    return PreparedState(text, checkpoint["bytes"], (), removed_of(checkpoint))


def _report(at: Context, run: Any, request: SaveCheckpoint) -> tuple[int, Reported]:
    """The new size of the done set with what this save adds to it, and what it reported after a restart."""
    count: int = run["done_count"]
    if not request.done:
        return count, add_asked(at, run, [request.step]) if run["restarted"] else Reported(0, 0)
    repeats = 0
    for item in request.done:
        row = at.tx.give(
            "add_done",
            account_id=at.account_id,
            run=run["run"],
            item=item,
            n=count,
            attempt=run["attempt"],
        )
        if row is None:
            continue
        is_new = row["n"] == count
        count += is_new
        repeats += not is_new
    return count, Reported(count - run["done_count"] + repeats, repeats)


def _listed_no_more(at: Context, run: Any, state: PreparedState, request: SaveCheckpoint) -> tuple[str, ...]:
    """The notice that the ``done`` list of the states, which resume handed back so far, counts no more."""
    if run["done_count"] or not request.done:
        return ()
    standing = standing_checkpoint(at, run)
    listed = {*done_in_state(state.text), *(done_in_state(state_text(at, standing)) if standing else ())}
    if not (lost := listed.difference(request.done)):
        return ()
    what = "1 id" if len(lost) == 1 else f"{len(lost):,} ids"
    notice = (
        f"from the first done argument on, resume hands back what was given there, not {what} that only the state's "
        "done list names: give these as done too"
    )
    return (notice,)


def _in_flight(before: str | None, request: SaveCheckpoint) -> tuple[str | None, tuple[str, ...]]:
    """The steps in flight after this save as they are kept, and the notice of one that is not any more."""
    if (before is None and request.next_step is None) or request.status == "finished":
        return None, ()
    reported = {request.step, request.next_step, *(request.done or ())}
    steps = [step for step in json.loads(before or "[]") if step not in reported]
    if request.next_step is not None:
        steps.append(request.next_step)
    kept = steps[-IN_FLIGHT_KEPT:]
    notices = tuple(
        f'over {IN_FLIGHT_KEPT} steps are in flight: "{step}", the oldest, is not kept as one any more; report steps '
        "by the name that next_step announced"
        for step in steps[: -len(kept)]
    )
    return json.dumps(kept) if kept else None, notices


def _evict(at: Context, run: int, seq: int) -> None:
    keep = at.caller.limits.keep
    through = retention.evicted_through(seq, keep)
    if through == 0:
        return
    ids = {"account_id": at.account_id, "run": run}
    at.tx.run("evict_checkpoints", **ids, through=through)
    # Parts are looked through once in as many saves as are kept: by then as many checkpoints went.
    if keep and seq % keep == 0:
        collect_parts(at, run)


def _answer(
    at: Context,
    call: Call,
    request: SaveCheckpoint,
    *,
    run: int,
    seq: int,
    state: PreparedState,
    attempt: int,
    replayed: bool = False,
    notices: tuple[str, ...] = (),
) -> Reply:
    reply = at.envelope(
        understood=f'save "{request.step}" of run {request.run_id}',
        job=request.job or request.run_id,
        outcome=wording.saved(seq, state.size, request.step, state.keys, status=request.status or "running"),
        code="replayed" if replayed else "saved",
        notices=call.notices + notices,
    )
    reply |= {"saved": True, "run_id": request.run_id, "step": request.step, "seq": seq, "bytes": state.size}
    reply |= wording.removed(state.removed)
    if replayed:
        reply["replayed"] = True
    reply["attempt"] = attempt
    if request.attempt is None and _was_resumed(at, run, attempt):
        reply["unfenced"] = True
    return reply


def _was_resumed(at: Context, run: int, attempt: int) -> bool:
    """Whether somebody holds the attempt: the first one of a run that nobody resumed is not recorded."""
    return attempt > 1 or at.tx.one("attempt", account_id=at.account_id, run=run, attempt=1) is not None
