"""`fetch`, `history` and `chain`: how adapters read. Whole entries or an error, in a bounded number of queries."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, cast

from pydantic_core import from_json

from runmemory_core import parts
from runmemory_core.engine._context import Context
from runmemory_core.engine._states import lost_part, nodes_of
from runmemory_core.errors import CheckpointGone, InvalidRequest
from runmemory_core.model import Reply
from runmemory_core.operations._fields import MAX_COUNT
from runmemory_core.operations.calls import Call
from runmemory_core.operations.storage import Chain, Fetch, History
from runmemory_core.operations.wire import raw
from runmemory_core.policy.json_rules import write
from runmemory_core.policy.times import rfc3339
from runmemory_core.store.codec import unpack

_SEARCHED_AT_ONCE = 500


def fetch(at: Context, call: Call) -> Reply:
    """One checkpoint, the lane's latest without ``key``; an absent one that retention removed raises."""
    request = call.request
    assert isinstance(request, Fetch)
    run = at.run(request.run_id)
    if run is None:
        # Nothing could be kept of a run that would begin now: told before it does any work.
        at.require_acting(f"fetching {request.run_id}, of which nothing is kept,")
    if run is not None and run["status"] == "expired" and request.key is not None:
        raise CheckpointGone(
            f"what run {request.run_id} kept expired at {rfc3339(run['deleted_at'])}: begin it anew without a "
            "checkpoint, or keep runs longer with expire_after="
        )
    run, lane = _place(at, request.run_id, request.lane)
    if run is None or lane is None:
        return {}
    ids = {"account_id": at.account_id, "run": run["run"], "lane": lane["lane"]}
    if request.key is None:
        row = at.tx.one("lane_head", **ids)
    else:
        row = at.tx.one("checkpoint_by_key", **ids, key=request.key)
        evicted = lane["evicted_through"] is not None and request.key <= lane["evicted_through"]
        if (row is None and evicted) or (row is not None and row["thin"]):
            raise CheckpointGone(
                f"checkpoint {request.key} of run {request.run_id} was removed by retention: "
                "continue from a newer one, or keep more with keep=",
                evicted_through=lane["evicted_through"],
            )
    if row is None:
        return {}
    place = (run["run"], request.run_id, [row["seq"]])
    entries, texts = _entries(at, [place], known=frozenset(request.known))
    return {"entry": entries[0], "parts": texts}


def history(at: Context, call: Call) -> Reply:
    """A page of checkpoints, newest first by key, whose metadata equals what is asked for."""
    request = call.request
    assert isinstance(request, History)
    run = _living(at, request.run_id) if request.run_id is not None else None
    if request.run_id is not None and run is None:
        return {"entries": [], "parts": {}}
    found, more = _matching(at, request, run)
    groups: dict[tuple[int, str], list[int]] = {}
    for row in found:
        groups.setdefault((row["run"], row["run_id"]), []).append(row["seq"])
    entries, texts = _entries(at, [(number, run_id, seqs) for (number, run_id), seqs in groups.items()])
    place = {(row["run_id"], row["seq"]): index for index, row in enumerate(found)}
    entries.sort(key=lambda entry: place[entry["run_id"], entry["seq"]])
    reply: Reply = {"entries": entries, "parts": texts}
    if more:
        last = found[-1]
        reply["cursor"] = json.dumps([last["key"], last["run"], last["lane"]])
    return reply


def chain(at: Context, call: Call) -> Reply:
    """The checkpoint and its ancestors, newest first, as far as they are kept."""
    request = call.request
    assert isinstance(request, Chain)
    run, lane = _place(at, request.run_id, request.lane)
    if run is None or lane is None:
        return {"entries": [], "parts": {}}
    rows = at.tx.all(
        "chain",
        account_id=at.account_id,
        run=run["run"],
        lane=lane["lane"],
        key=request.key,
        limit=request.limit,
    )
    entries, texts = _entries(at, [(run["run"], request.run_id, [row["seq"] for row in rows])])
    return {"entries": entries, "parts": texts}


def _living(at: Context, run_id: str) -> Any:
    run = at.run(run_id)
    return None if run is None or run["deleted_at"] is not None else run


def _place(at: Context, run_id: str, lane: str) -> tuple[Any, Any]:
    """The rows of a run and of a lane in it, each None when there is none."""
    run = _living(at, run_id)
    return run, run and at.tx.one("lane", account_id=at.account_id, run=run["run"], name=lane)


def _matching(at: Context, request: History, run: Any) -> tuple[list[Any], bool]:
    """Up to ``limit`` rows that match, and whether there may be more after them."""
    after = _cursor(request.cursor)
    found: list[Any] = []
    while True:
        rows = at.tx.all(
            "adapter_checkpoints",
            account_id=at.account_id,
            run=run["run"] if run is not None else None,
            adapter=request.adapter,
            lane_name=request.lane,
            key=request.key,
            before=request.before,
            after_key=after[0],
            after_run=after[1],
            after_lane=after[2],
            limit=_SEARCHED_AT_ONCE if request.metadata else request.limit + 1,
        )
        for row in rows:
            if len(found) == request.limit:
                return found, True
            if metadata_equals(row["metadata"], request.metadata):
                found.append(row)
        if not request.metadata or len(rows) < _SEARCHED_AT_ONCE:
            return found, False
        after = (rows[-1]["key"], rows[-1]["run"], rows[-1]["lane"])


def metadata_equals(metadata: str | None, wanted: dict[str, Any]) -> bool:
    """Whether stored ``metadata`` has every wanted value: a bool is no number, an absent one is no null."""
    if not wanted:
        return True
    kept: dict[str, Any] = from_json(metadata or "{}")
    return all(name in kept and _equals(kept[name], value) for name, value in wanted.items())


def _equals(kept: Any, wanted: Any) -> bool:
    if isinstance(kept, dict) and isinstance(wanted, dict):
        mine, theirs = cast("dict[str, Any]", kept), cast("dict[str, Any]", wanted)
        return mine.keys() == theirs.keys() and all(_equals(mine[name], theirs[name]) for name in mine)
    if isinstance(kept, list) and isinstance(wanted, list):
        items, others = cast("list[Any]", kept), cast("list[Any]", wanted)
        return len(items) == len(others) and all(map(_equals, items, others))
    return kept == wanted and isinstance(kept, bool) == isinstance(wanted, bool)


def _cursor(cursor: str | None) -> tuple[str | None, int, int]:
    if cursor is None:
        return None, 0, 0
    try:
        place = from_json(cursor)
    except ValueError:
        place = None
    match place:
        case [str(key), int(run), int(lane)] if 0 <= run <= MAX_COUNT and 0 <= lane <= MAX_COUNT:
            return key, run, lane
        case _:
            raise InvalidRequest(
                "cursor is not one that a reply gave", pointers={"/cursor": "unknown cursor"}
            )


def _entries(
    at: Context, groups: Sequence[tuple[int, str, list[int]]], *, known: frozenset[str] = frozenset()
) -> tuple[list[Reply], dict[str, str]]:
    """The entries of the given seqs by run, in the given order, and the texts of their parts but ``known``."""
    entries: list[Reply] = []
    texts: dict[str, str] = {}
    for run, run_id, seqs in groups:
        ids = {"account_id": at.account_id, "run": run, "seqs": write(seqs)}
        writes: dict[int, list[str]] = {}
        for row in at.tx.all("writes_by_seq", **ids):
            writes.setdefault(row["seq"], []).append(unpack(row["body"]))
        rows = {row["seq"]: row for row in at.tx.all("checkpoints_by_seq", **ids)}
        bodies = {seq: unpack(rows[seq]["body"]) for seq in seqs}
        entries += [_entry(rows[seq], run_id, bodies[seq], writes.get(seq, [])) for seq in seqs]
        kept = [*bodies.values(), *(text for of_seq in writes.values() for text in of_seq)]
        texts |= _texts(at, run, [node for text in kept for node in nodes_of(text)], known)
    return entries, texts


def _entry(row: Any, run_id: str, body: str, writes: list[str]) -> Reply:
    entry: Reply = {
        "run_id": run_id,
        "lane": row["lane_name"],
        "key": row["key"],
        "parent": row["parent"],
        "seq": row["seq"],
        "step": row["step"],
        "saved_at": rfc3339(row["saved_at"]),
        "body": raw(body),
        "metadata": raw(row["metadata"]),
    }
    if writes:
        entry["writes"] = raw(f"[{','.join(text[1:-1] for text in writes)}]")
    return entry


def _texts(at: Context, run: int, nodes: list[parts.Node], known: frozenset[str]) -> dict[str, str]:
    direct = {address for node in nodes for address in parts.direct_addresses(node)}
    pages = {address for node in nodes for address in parts.pages(node)}
    texts = _load(at, run, (direct - known) | pages)
    inside = {address for page in pages for address in parts.page_addresses(texts[page])}
    return texts | _load(at, run, inside - known - texts.keys())


def _load(at: Context, run: int, addresses: set[str]) -> dict[str, str]:
    if not addresses:
        return {}
    rows = at.tx.all("parts", account_id=at.account_id, run=run, addresses=write(list(addresses)))
    found = {row["address"]: unpack(row["body"]) for row in rows}
    if lost := addresses - found.keys():
        raise lost_part(min(lost))
    return found
