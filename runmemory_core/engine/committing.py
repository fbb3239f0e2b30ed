"""`commit` and `claim`: how adapters write. Ordered changes and new parts, all or nothing.

A commit that comes again is known by the hashes of the last ones, which stand in the run's row. Beyond these, putting
a key again keeps its seq, and writes that are the newest of their task are not added again.
"""

from __future__ import annotations

from typing import Any

from pydantic_core import from_json

from runmemory_core import parts
from runmemory_core.engine._context import (
    Context,
    call_hash,
    check_attempt,
    check_tombstone,
    find_replay,
    remember,
    set_status,
)
from runmemory_core.engine._marks import Marks
from runmemory_core.engine._measuring import Sizes, check_states, measured, named
from runmemory_core.engine._scrubbing import nodes_of_change, scrubbed
from runmemory_core.engine._states import collect_parts, drop_call_lanes, trim_lane
from runmemory_core.engine.attempts import begin_run, claim_run, record_attempt
from runmemory_core.errors import InvalidJson, InvalidRequest, SeqConflict, StateTooLarge
from runmemory_core.model import Reply
from runmemory_core.operations.calls import Call
from runmemory_core.operations.storage import Change, Claim, Commit
from runmemory_core.policy import admission
from runmemory_core.policy.json_rules import write
from runmemory_core.store.codec import pack, unpack


def claim(at: Context, call: Call) -> Reply:
    """Raise the attempt of an adapter's run, so that an earlier holder is fenced."""
    request = call.request
    assert isinstance(request, Claim)
    at.require_acting("claim")
    run = at.run(request.run_id)
    body = call_hash(request)
    if (recorded := find_replay(at, request.idempotency_key)) is not None:
        admission.check_replay(recorded["body"], body)
        return {"run_id": request.run_id, "attempt": int(recorded["number"])}
    if run is None:
        run = begin_run(at, request.run_id, adapter=request.adapter)
        record_attempt(at, run)
        attempt = int(run["attempt"])
    else:
        check_tombstone(run, begins_anew=False)
        admission.check_owner(request.run_id, run["adapter"], request.adapter)
        attempt = claim_run(at, run, restart=run["status"] in ("running", "failed"))
    remember(at, call, run=run["run"], number=attempt, body=body)
    return {"run_id": request.run_id, "attempt": attempt}


def commit(at: Context, call: Call) -> Reply:
    """Record the changes in order, or answer ``missing`` and record nothing."""
    request = call.request
    assert isinstance(request, Commit)
    at.require_acting("commit")
    run = at.run(request.run_id)
    marks = Marks.of(request)
    if (seqs := _seqs_before(at, run, request, marks)) is not None:
        return _answer(at, {"seqs": seqs, "replayed": True})
    begins_anew = any(change.op == "put" and change.parent is None for change in request.operations)
    if run is not None:
        check_tombstone(run, begins_anew=begins_anew)
        if run["deleted_at"] is None:
            admission.check_owner(request.run_id, run["adapter"], request.adapter)
            check_attempt(at, run, request.attempt)
    else:
        admission.check_unknown(request.run_id, request.attempt)
    _check_parts(at, request)
    request = scrubbed(request) if call.redacts else request
    sizes, missing = measured(at, run, request)
    if missing:
        return {"missing": missing}
    check_states(request, sizes, at.caller.limits.run_state_bytes)
    heads, forks = _heads(at, run, request)
    at.check_quota()
    if run is None or run["deleted_at"] is not None:
        run = begin_run(at, request.run_id, adapter=request.adapter)
    reply: Reply = {"seqs": _record(at, run, request, heads, marks=marks, sizes=sizes)}
    if forks:
        reply["forks"] = forks
    return _answer(at, reply)


def _answer(at: Context, reply: Reply) -> Reply:
    return reply | {"usage": at.usage()} if at.caller.limits.calls_a_day is not None else reply


def _seqs_before(at: Context, run: Any, request: Commit, marks: Marks) -> list[int] | None:
    """The seqs that a commit was answered which now comes again; None for one that is new, or whose puts are gone."""
    if (
        run is None
        or run["deleted_at"] is not None
        or run["adapter"] != request.adapter
        or not marks.known(run)
    ):
        return None
    ids = {"account_id": at.account_id, "run": run["run"]}
    seqs: list[int] = []
    for change in request.operations:
        if change.op == "put":
            row = at.tx.one("seq_by_key", **ids, name=change.lane, key=change.key)
            if row is None:
                return None
            seqs.append(int(row["seq"]))
    return seqs


def _check_parts(at: Context, request: Commit) -> None:
    limit = at.caller.limits.part_bytes
    for address, text in request.parts.items():
        if parts.address(text) != address:
            raise InvalidRequest(
                f"part {address} does not have the text that its address says: it was changed on the way",
                pointers={f"/parts/{address}": "address and text differ"},
            )
        # A character is one byte at least, so most parts need no encoding to be measured.
        size = len(text) if len(text) * 4 <= limit else len(text.encode())
        if size > limit:
            raise StateTooLarge(
                f"part {address} is {size:,} bytes; the limit is {limit:,}: cut it into chunks",
                size=size,
                limit=limit,
            )
    for number, change in enumerate(request.operations):
        nodes = [(name, node) for name, node in change.state] + [
            (name, node) for _, name, node in change.writes
        ]
        if change.extra is not None:
            nodes.append(("extra", change.extra))
        for name, node in nodes:
            pages = (request.parts[page] for page in parts.pages(node) if page in request.parts)
            if not parts.well_formed(node) or not all(map(parts.well_formed_page, pages)):
                raise InvalidRequest(
                    f"operations.{number} has a node of no known form under {name!r}",
                    pointers={f"/operations/{number}": "a node of no known form"},
                )
            _check_inline(name, node, number, limit)
    _check_texts(request)


def _check_inline(name: str, node: parts.Node, number: int, limit: int) -> None:
    """Raise for a value that stands in its node though it is over the size of a part."""
    size = len(write(node["="]).encode()) if "=" in node else 0
    if size > limit:
        raise StateTooLarge(
            f"operations.{number} holds {size:,} bytes inline under {name!r}; the limit is {limit:,}: send parts",
            size=size,
            limit=limit,
        )


def _check_texts(request: Commit) -> None:
    """Raise for a part that is named as one whole value and is no JSON; chunks are pieces."""
    nodes = [node for change in request.operations for node in nodes_of_change(change)]
    pages = {page for node in nodes for page in parts.pages(node) if page in request.parts}
    nodes += [node for page in pages for node in from_json(request.parts[page])]
    items = [item for node in nodes for item in (node.get("l") or (node,))]
    for address in {item["p"] for item in items if "p" in item} & request.parts.keys():
        try:
            from_json(request.parts[address], allow_inf_nan=False)
        except ValueError as error:
            raise InvalidJson(
                f"part {address} is named as a whole value and is not JSON: {error}",
                pointers={f"/parts/{address}": "not JSON"},
            ) from None


def _heads(at: Context, run: Any, request: Commit) -> tuple[dict[str, str | None], list[str]]:
    """The latest key of each lane that is put to, and the new keys that do not continue it."""
    heads: dict[str, str | None] = {}
    latest: dict[str, str | None] = {}
    forks: list[str] = []
    number = 0 if run is None or run["deleted_at"] is not None else int(run["run"])
    ids = {"account_id": at.account_id, "run": number}
    for change in request.operations:
        if change.op != "put":
            continue
        lane, key = change.lane, change.key
        if lane not in heads:
            row = at.tx.one("head_key", **ids, name=lane)
            heads[lane] = latest[lane] = None if row is None else row["key"]
        head = latest[lane]
        if head is not None and change.parent != head:
            if key > head or at.tx.one("seq_by_key", **ids, name=lane, key=key) is None:
                forks.append(key)
            if request.linear and key in forks:
                raise SeqConflict(
                    f"checkpoint {key} of run {request.run_id} continues {change.parent or 'nothing'}, but {head} "
                    "is the latest there: another worker goes on with this run; stop, or read it again",
                    expected_key=change.parent,
                    current_key=head,
                )
        latest[lane] = max(head or "", key)
    return heads, forks


def _record(
    at: Context, run: Any, request: Commit, heads: dict[str, str | None], *, marks: Marks, sizes: Sizes
) -> list[int]:
    ids = {"account_id": at.account_id, "run": run["run"]}
    _add_parts(at, ids, request, sizes)
    lanes: dict[str, int] = {}
    evicted: dict[str, str] = {}
    results: dict[tuple[int, str], list[tuple[str, str]]] = {}
    seqs: list[int] = []
    seq, status = run["seq"], run["status"]
    for change in request.operations:
        lane = lanes.get(change.lane)
        if lane is None:
            row = at.tx.one("lane", **ids, name=change.lane) or at.tx.give(
                "add_lane", **ids, name=change.lane
            )
            lane = lanes[change.lane] = int(row["lane"])
            evicted[change.lane] = row["evicted_through"] or ""
        if change.op == "writes":
            # Nothing would ever collect what comes late for a checkpoint that retention removed.
            late = change.key <= evicted[change.lane]
            if not late or at.tx.one("seq_by_key", **ids, name=change.lane, key=change.key) is not None:
                results.setdefault((lane, change.key), []).append(_result(change))
        else:
            head = heads[change.lane]
            placed = _put(
                at,
                ids,
                lane,
                change,
                run=run,
                state_bytes=sizes.of({"o": change.state}),
                next_seq=seq + 1,
                is_new=head is None or change.key > head,
            )
            seqs.append(placed)
            seq = max(seq, placed)
        status = change.status or status
    for (lane, key), added in results.items():
        _add_writes(at, ids | {"lane": lane, "key": key}, added)
    marked = {**marks.after(run), "kept_for_ms": at.own_term_ms}
    at.tx.run("advance_adapter_run", **ids, seq=seq, now=at.now, **marked)
    set_status(at, run, status)
    _evict(at, run["run"], lanes, before=run["seq"], after=seq)
    at.count_call()
    return seqs


def _add_parts(at: Context, ids: dict[str, int], request: Commit, sizes: Sizes) -> None:
    # What only a scrubbed value named is not kept.
    for address in named(request) & request.parts.keys():
        at.tx.run(
            "add_part",
            **ids,
            address=address,
            bytes=sizes.texts[address],
            list_bytes=sizes.pages.get(address),
            body=pack(request.parts[address]),
        )


def _result(change: Change) -> tuple[str, str]:
    """A task, and its results as they are kept."""
    writes = [list(item) for item in change.writes]
    return change.task_id, write({"task_id": change.task_id, "task_path": change.task_path, "writes": writes})


def _add_writes(at: Context, place: dict[str, Any], results: list[tuple[str, str]]) -> None:
    """Add the results that their task did not report last, in one row, because those of a superstep are alike."""
    rows = at.tx.all("writes", **place)
    newest = {task["task_id"]: write(task) for row in rows for task in from_json(unpack(row["body"]))}
    added: list[str] = []
    for task_id, text in results:
        if newest.get(task_id) != text:
            added.append(text)
            newest[task_id] = text
    if added:
        n = rows[-1]["n"] + 1 if rows else 0
        at.tx.run("add_write", **place, n=n, body=pack(f"[{','.join(added)}]"))


def _put(
    at: Context,
    ids: dict[str, int],
    lane: int,
    change: Change,
    *,
    run: Any,
    state_bytes: int,
    next_seq: int,
    is_new: bool,
) -> int:
    body: dict[str, Any] = {"state": [list(pair) for pair in change.state]}
    if change.extra is not None:
        body["extra"] = change.extra
    text = write(body)
    values: dict[str, Any] = {
        "parent": change.parent,
        "step": change.step,
        "bytes": state_bytes,
        "now": at.now,
        "metadata": write(change.metadata),
        "body": pack(text),
    }
    there = None if is_new else at.tx.one("seq_by_key", **ids, name=change.lane, key=change.key)
    if there is not None:
        at.tx.run("replace_checkpoint", **ids, seq=there["seq"], **values)
        return int(there["seq"])
    if change.restart:
        claim_run(at, run, restart=True)
    at.tx.run(
        "add_checkpoint",
        **ids,
        seq=next_seq,
        lane=lane,
        key=change.key,
        attempt=run["attempt"],
        removed=None,
        **values,
    )
    return next_seq


def _evict(at: Context, run: int, lanes: dict[str, int], *, before: int, after: int) -> None:
    keep = at.caller.limits.keep
    if keep is None:
        return
    for lane in lanes.values():
        trim_lane(at, run, lane, keep)
    if "" in lanes:
        drop_call_lanes(at, run)
    # Parts are looked through once in as many puts as are kept: by then as many checkpoints went.
    if before // keep != after // keep:
        collect_parts(at, run)
