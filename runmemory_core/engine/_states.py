"""Between a state and what lies in the database: nodes in the checkpoint's body, texts in parts."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, cast

from pydantic_core import from_json

from runmemory_core import parts
from runmemory_core.engine._context import Context
from runmemory_core.errors import StoreError
from runmemory_core.policy.json_rules import write
from runmemory_core.policy.pointers import NOWHERE, Pointers
from runmemory_core.store import Tx
from runmemory_core.store.codec import unpack

WHOLE_CHARACTERS = 4_096
"""A state up to this size is kept as one text: parts would cost more than they save."""

ALL_ROWS = -1
"""Where a statement that removes rows takes a limit."""

_WHOLE = '{"=":'


def state_body(text: str, new_parts: dict[str, str]) -> str:
    """The body that keeps a state's JSON ``text``; what does not fit is added to ``new_parts``."""
    if len(text) <= WHOLE_CHARACTERS:
        return f"{_WHOLE}{text}}}"
    return write(parts.split_object(from_json(text), new_parts))


def add_checkpoint(
    at: Context, run: Any, *, step: str, state_bytes: int, removed: Pointers = NOWHERE, body: bytes
) -> int:
    """Record the run's next checkpoint of the five tools, and return its seq."""
    seq: int = run["seq"] + 1
    at.tx.run(
        "add_checkpoint",
        account_id=at.account_id,
        run=run["run"],
        seq=seq,
        lane=0,
        key=None,
        parent=None,
        step=step,
        attempt=run["attempt"],
        bytes=state_bytes,
        now=at.now,
        removed=json.dumps(removed._asdict()) if removed.total else None,
        metadata=None,
        body=body,
    )
    return seq


def removed_of(checkpoint: Any) -> Pointers:
    """Where the state of a checkpoint holds the marker."""
    if not checkpoint["removed"]:
        return NOWHERE
    kept = json.loads(checkpoint["removed"])
    return Pointers(kept["total"], tuple(kept["shown"]))


def standing_checkpoint(at: Context, run: Any) -> Any:
    """The checkpoint that the run goes on from: the one its attempt asked for, else the generation's latest."""
    ids = {"account_id": at.account_id, "run": run["run"]}
    if run["base_seq"] is not None:
        return at.tx.one("checkpoint", **ids, seq=run["base_seq"])
    return at.tx.one("latest_checkpoint", **ids) if run["seq"] > run["generation_seq"] else None


def state_text(at: Context, checkpoint: Any) -> str:
    """The JSON text of a stored checkpoint's state, exactly as it was measured."""
    body = unpack(checkpoint["body"])
    if body.startswith(_WHOLE):
        return body[len(_WHOLE) : -1]
    return parts.join(_node(body), lambda address: part_text(at, checkpoint["run"], address))


def done_in_state(text: str) -> list[str]:
    """The ids of a top-level ``done`` list of scalars: what counts while no ``done`` was ever reported."""
    listed = from_json(text).get("done")
    items = cast("list[object]", listed) if isinstance(listed, list) else []
    if any(isinstance(item, dict | list) for item in items):
        return []
    return [item if isinstance(item, str) else write(item) for item in items]


def part_text(at: Context, run: int, address: str) -> str:
    """The text of a part that a kept checkpoint refers to."""
    row = at.tx.one("part", account_id=at.account_id, run=run, address=address)
    if row is None:
        raise lost_part(address)
    return unpack(row["body"])


def lost_part(address: str) -> StoreError:
    """What is raised where a kept checkpoint refers to a part that is not there."""
    return StoreError(
        f"part {address} is missing although a kept checkpoint needs it: the database is damaged; restore it"
    )


def _node(body: str) -> parts.Node:
    """The top node of a body; an adapter's body holds its state's members and more beside them."""
    value = from_json(body)
    return {"o": value["state"]} if "state" in value else value


def nodes_of(body: str) -> list[parts.Node]:
    """The nodes in the body of a checkpoint or of writes."""
    value = from_json(body)
    if isinstance(value, list):
        tasks = cast("list[dict[str, Any]]", value)
        return [node for task in tasks for _, _, node in task["writes"]]
    if "state" in value:
        return [{"o": value["state"]}, value.get("extra") or {}]
    return [value]


def collect_parts(at: Context, run: int) -> int:
    """Delete the parts of a run that no kept checkpoint and no kept writes reach; how many went."""
    ids = {"account_id": at.account_id, "run": run}
    present = {row["address"] for row in at.tx.all("part_addresses", **ids)}
    if not present:
        return 0
    kept = [*at.tx.all("run_checkpoints", **ids), *at.tx.all("run_writes", **ids)]
    nodes = [node for row in kept for node in nodes_of(unpack(row["body"]))]
    unreached = present - parts.reachable(nodes, lambda where: part_text(at, run, where))
    for address in unreached:
        at.tx.run("delete_part", **ids, address=address)
    return len(unreached)


def trim_lane(at: Context, run: int, lane: int, keep: int) -> int:
    """Remove all but the newest ``keep`` checkpoints of a lane; how many went.

    A delta channel is rebuilt from the writes of its ancestors, so of each kept checkpoint as many of them stay,
    thin, as it counts supersteps since a snapshot.
    """
    ids = {"account_id": at.account_id, "run": run, "lane": lane}
    if at.tx.one("count_kept", **ids)["count"] <= keep:
        return 0
    rows = at.tx.all("lane_checkpoints", **ids)
    living = [row for row in rows if not row["thin"]]
    needed = _ancestors_needed(rows, living[:keep])
    kept = {row["seq"] for row in living[:keep]}
    gone = [row for row in rows if row["seq"] not in kept]
    for row in gone:
        of_one = {"account_id": at.account_id, "run": run, "seq": row["seq"]}
        if row["key"] not in needed:
            at.tx.run("delete_writes", **ids, key=row["key"])
            at.tx.run("delete_checkpoint", **of_one)
        elif not row["thin"]:
            at.tx.run("thin_checkpoint", **of_one)
    at.tx.run("evict_lane", **ids, through=living[keep]["key"])
    return len(living) - keep


def _ancestors_needed(rows: Sequence[Any], kept: Sequence[Any]) -> set[str]:
    """The keys of the ancestors from which the delta channels of the ``kept`` checkpoints are rebuilt."""
    parents = {row["key"]: row["parent"] for row in rows}
    reach: dict[str, int] = {}
    for row in kept:
        key, left = row["parent"], _supersteps(row["metadata"])
        while left > reach.get(key, 0) and key in parents:
            reach[key] = left
            key, left = parents[key], left - 1
    return set(reach)


def drop_call_lanes(at: Context, run: int) -> None:
    """Remove the lanes of subgraph calls whose root checkpoint was removed.

    A call's lane is named after its task (``node:task``), and its checkpoints say in ``parents`` which root
    checkpoint started it. A lane without a task lives on from call to call and keeps its newest.
    """
    ids = {"account_id": at.account_id, "run": run}
    root = at.tx.one("lane", **ids, name="")
    through: str = "" if root is None else root["evicted_through"] or ""
    for row in at.tx.all("call_lane_heads", **ids) if through else ():
        metadata: dict[str, Any] = from_json(row["metadata"] or "{}")
        parents = metadata.get("parents")
        started_by = cast("dict[str, Any]", parents).get("") if isinstance(parents, dict) else None
        of_a_call = ":" in row["name"].rpartition("|")[2]
        if not of_a_call or not isinstance(started_by, str) or started_by > through:
            continue
        at.tx.run("delete_lane_checkpoints", **ids, lane=row["lane"])
        at.tx.run("delete_lane_writes", **ids, lane=row["lane"])
        at.tx.run("evict_lane", **ids, lane=row["lane"], through=row["key"])


def _supersteps(metadata: str | None) -> int:
    """The most supersteps any delta channel counts since its snapshot (LangGraph's own metadata)."""
    counters = from_json(metadata or "{}").get("counters_since_delta_snapshot")
    pairs = cast("dict[str, Any]", counters).values() if isinstance(counters, dict) else ()
    counted = [count for pair in pairs if isinstance(pair, list) for count in cast("list[Any]", pair)[1:2]]
    return max((count for count in counted if type(count) is int), default=0)


def clear_run(tx: Tx, *, account_id: int, run: int, rows: int | None = None) -> int:
    """Remove what lies below a run's row, or the first ``rows`` of it; how many rows went."""
    gone = 0
    for table in ("checkpoints", "writes", "parts", "lanes", "done", "attempts", "asked"):
        limit = ALL_ROWS if rows is None else rows - gone
        gone += tx.run(f"clear_{table}", account_id=account_id, run=run, limit=limit)
    return gone
