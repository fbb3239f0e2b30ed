"""How tests of the storage interface write and read: short names for what an adapter sends."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pydantic_core import from_json

from runmemory_core import Client, parts
from runmemory_core.operations.storage import CommitReply, Entry, FetchReply

GRAPH = "langgraph"
NO_ADDRESS = "A" * 22


def put(key: str, state: Mapping[str, Any], texts: dict[str, str], **more: Any) -> dict[str, Any]:
    """A put of ``state``, whose parts are added to ``texts``."""
    return {"op": "put", "key": key, "state": parts.split_object(state, texts)["o"], **more}


def writes(key: str, *values: Any, task_id: str = "task", **more: Any) -> dict[str, Any]:
    results = [[index, "channel", {"=": value}] for index, value in enumerate(values)]
    return {"op": "writes", "key": key, "task_id": task_id, "writes": results, **more}


def addressed(text: str) -> dict[str, str]:
    return {parts.address(text): text}


def commit(
    client: Client, *operations: dict[str, Any], texts: Mapping[str, str] | None = None, **more: Any
) -> CommitReply:
    return client.store.commit("graph", GRAPH, operations=operations, parts=texts or {}, **more)


def state_of(entry: Entry | None, texts: Mapping[str, str]) -> dict[str, Any]:
    assert entry is not None
    state: dict[str, Any] = from_json(parts.join({"o": entry.body.state}, texts.__getitem__))
    return state


def fetched(reply: FetchReply) -> Entry:
    assert reply.entry is not None
    return reply.entry


def keys(entries: Sequence[Entry]) -> list[str]:
    return [entry.key for entry in entries]
