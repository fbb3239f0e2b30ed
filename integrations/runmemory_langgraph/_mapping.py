"""Between LangGraph's checkpoints and the entries of the store. Pure, but for the encoder's memory.

thread_id becomes run_id, checkpoint_ns the lane, checkpoint_id the key. Beside the channels' values an entry keeps
``extra``: the rest of the checkpoint, with maps of versions as lists of pairs, because channel and node names are
data there and must be neither redacted nor renamed. Those of a graph of hundreds of nodes are packed, and a namespace
that is too long for a lane gets a shorter name, with the whole one in ``extra``.
"""

from __future__ import annotations

import zlib
from base64 import b64decode, b64encode
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import lru_cache
from hashlib import blake2b
from typing import Any, cast

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import (
    WRITES_IDX_MAP,
    Checkpoint,
    CheckpointMetadata,
    CheckpointTuple,
    DeltaChannelHistory,
    PendingWrite,
    get_checkpoint_metadata,
)
from langgraph.checkpoint.serde.types import INTERRUPT
from pydantic_core import from_json

from runmemory_core import CredentialInName, InvalidRequest, parts
from runmemory_core.model import LIMITS, Plan, RunStatus
from runmemory_core.operations._fields import NAME_CHARACTERS
from runmemory_core.operations.storage import Entry, TaskWrites
from runmemory_core.policy.admission import run_state_too_large
from runmemory_core.policy.json_rules import write
from runmemory_core.policy.redaction import contains_credential
from runmemory_langgraph._encoding import Batch, Encoder, Frozen
from runmemory_langgraph._loading import Values

_STEP_CHARACTERS = 200
_LANE_CHARACTERS = 2_000
_READABLE_VERSIONS = 500
_INLINE_CHARACTERS = 200_000
_OWN_FIELDS = frozenset({"id", "channel_values", "channel_versions", "versions_seen"})


def place_of(config: RunnableConfig) -> tuple[str, str, str | None]:
    """thread_id, checkpoint_ns and checkpoint_id of a config; raises `ValueError` without a thread_id."""
    configurable = config.get("configurable", {})
    if configurable.get("thread_id") is None:
        raise ValueError(
            "the config has no thread_id, or None, which would be one thread for all: "
            'pass {"configurable": {"thread_id": "…"}}, the same after a crash'
        )
    checkpoint_id = configurable.get("checkpoint_id")
    return (
        str(configurable["thread_id"]),
        lane_of(namespace_of(config)),
        str(checkpoint_id) if checkpoint_id else None,
    )


@lru_cache(maxsize=1_000)
def checked(thread_id: str) -> str:
    """A thread_id that may name a run; raises `InvalidRequest` or `CredentialInName` in LangGraph's words."""
    if not 0 < len(thread_id) <= NAME_CHARACTERS:
        raise InvalidRequest(
            f"thread_id has {len(thread_id):,} characters; it takes 1 to {NAME_CHARACTERS}",
            pointers={"/thread_id": "length"},
        )
    if contains_credential(thread_id):
        raise CredentialInName(
            "thread_id contains what looks like a credential, and it is shown in lists and logs: use another, such as "
            "a hash of it",
            pointers={"/thread_id": "holds a credential"},
        )
    return thread_id


def checked_place_of(config: RunnableConfig) -> tuple[str, str, str | None]:
    """`place_of` a config whose thread_id may name a run."""
    run_id, lane, key = place_of(config)
    return checked(run_id), lane, key


def namespace_of(config: RunnableConfig) -> str:
    """checkpoint_ns of a config, of any length."""
    return str(config.get("configurable", {}).get("checkpoint_ns") or "")


def lane_of(checkpoint_ns: str) -> str:
    """The lane of a namespace: itself, or of one that is too long what it begins with and a hash of it."""
    if len(checkpoint_ns) <= _LANE_CHARACTERS:
        return checkpoint_ns
    hashed = blake2b(checkpoint_ns.encode(), digest_size=16).hexdigest()
    return f"{checkpoint_ns[: _LANE_CHARACTERS - len(hashed) - 1]}~{hashed}"


def config_of(thread_id: str, checkpoint_ns: str, checkpoint_id: str) -> RunnableConfig:
    """The config that names one checkpoint."""
    return {
        "configurable": {
            "thread_id": thread_id,
            "checkpoint_ns": checkpoint_ns,
            "checkpoint_id": checkpoint_id,
        }
    }


# --- to the store ---------------------------------------------------------------------------------------


def put_change(
    config: RunnableConfig,
    checkpoint: Checkpoint,
    metadata: CheckpointMetadata,
    *,
    encoder: Encoder,
    batch: Batch,
    status: RunStatus,
    restart: bool,
) -> dict[str, Any]:
    """The change that puts a checkpoint."""
    _, lane, parent = place_of(config)
    whole = get_checkpoint_metadata(config, metadata)
    batch.sizes.clear()
    change: dict[str, Any] = {
        "op": "put",
        "lane": lane,
        "key": checkpoint["id"],
        "step": label(metadata, checkpoint),
        "state": [
            (channel, encoder.node(channel, value, batch, lane=lane))
            for channel, value in checkpoint["channel_values"].items()
        ],
        "extra": _extra_node(_extra(config, checkpoint, encoder), batch),
        "metadata": encoder.metadata(whole),
        "status": status,
    }
    _check_size(batch.sizes)
    if parent is not None:
        change["parent"] = parent
    if restart:
        change["restart"] = True
    return change


def check_results(results: Iterable[tuple[str, Frozen | list[Frozen]]]) -> None:
    """Raise `StateTooLarge` for results over the cap when they come: later, nobody may be left to hear of it."""
    sizes: dict[str, int] = {}
    for channel, frozen in results:
        items = frozen if isinstance(frozen, list) else [frozen]
        sizes[channel] = sizes.get(channel, 0) + sum(len(item.data) for item in items)
    _check_size(sizes)


def _check_size(sizes: Mapping[str, int]) -> None:
    """Raise `StateTooLarge` for a state over the cap before it is sent; the store measures it again."""
    size, limit = sum(sizes.values()), LIMITS[Plan.OWN].run_state_bytes
    if size > limit:
        raise run_state_too_large(size, limit, sizes)


def writes_change(
    config: RunnableConfig,
    writes: Sequence[tuple[str, Any]],
    *,
    task_id: str,
    task_path: str,
    encoder: Encoder,
    batch: Batch,
) -> dict[str, Any]:
    """The change that records a task's results beside the checkpoint it started from."""
    _, lane, key = place_of(config)
    if key is None:
        raise ValueError("put_writes needs the checkpoint_id that the writes belong to in its config")
    change: dict[str, Any] = {
        "op": "writes",
        "lane": lane,
        "key": key,
        "task_id": task_id,
        "task_path": task_path,
        "writes": [
            (WRITES_IDX_MAP.get(channel, position), channel, encoder.node(channel, value, batch))
            for position, (channel, value) in enumerate(writes)
        ],
    }
    if any(channel == INTERRUPT for channel, _ in writes):
        change["status"] = "paused"  # retention gives a person time to answer
    return change


def _extra_node(extra: dict[str, Any], batch: Batch) -> parts.Node:
    text = write(extra)
    return {"=": extra} if len(text) <= _INLINE_CHARACTERS else parts.of_text(text, batch.texts)


def _extra(config: RunnableConfig, checkpoint: Checkpoint, encoder: Encoder) -> dict[str, Any]:
    versions = {
        "versions": _pairs(checkpoint["channel_versions"]),
        "seen": [[node, _pairs(versions)] for node, versions in checkpoint["versions_seen"].items()],
    }
    channels = len(checkpoint["channel_versions"]) + len(checkpoint["versions_seen"])
    # They are written with each checkpoint, and in a part of its own the service would take the names for secrets'.
    extra: dict[str, Any] = versions if channels <= _READABLE_VERSIONS else {"packed": _pack(versions)}
    _, lane, _ = place_of(config)
    if (namespace := namespace_of(config)) != lane:
        extra["namespace"] = namespace
    for name, value in checkpoint.items():
        if name not in _OWN_FIELDS:
            extra[name] = encoder.tagged(name, value)
    return extra


def _pack(value: Any) -> str:
    return b64encode(zlib.compress(write(value).encode())).decode()


def _unpack(text: str) -> Any:
    return from_json(zlib.decompress(b64decode(text)))


def _pairs(mapping: Mapping[str, Any]) -> list[list[Any]]:
    return list(map(list, mapping.items()))


def label(metadata: CheckpointMetadata, checkpoint: Checkpoint) -> str:
    """What a person reads in a list of steps: the number and the channels that changed."""
    source, step = metadata.get("source", ""), metadata.get("step", "")
    changed = ", ".join(name for name in checkpoint.get("updated_channels") or () if ":" not in name)
    return f"{source} {step}: {changed}"[:_STEP_CHARACTERS].rstrip(": ")


# --- from the store -------------------------------------------------------------------------------------


def tuple_of(entry: Entry, values: Values) -> CheckpointTuple:
    """The checkpoint tuple of an entry; every value it had, or an exception."""
    state = {channel: values.value(channel, node) for channel, node in entry.body.state}
    extra: dict[str, Any] = from_json(values.text(entry.body.extra or {"=": {}}))
    if (packed := extra.pop("packed", None)) is not None:
        extra |= _unpack(packed)
    namespace = extra.pop("namespace", entry.lane)
    versions, seen = extra.pop("versions", ()), extra.pop("seen", ())
    checkpoint: dict[str, Any] = {name: values.decoded(value) for name, value in extra.items()}
    checkpoint |= {
        "id": entry.key,
        "channel_values": state,
        "channel_versions": dict(versions),
        "versions_seen": {node: dict(pairs) for node, pairs in seen},
    }
    metadata = {name: values.decoded_metadata(value) for name, value in entry.metadata.items()}
    return CheckpointTuple(
        config=config_of(entry.run_id, namespace, entry.key),
        checkpoint=cast("Checkpoint", checkpoint),
        metadata=cast("CheckpointMetadata", metadata),
        parent_config=None if entry.parent is None else config_of(entry.run_id, namespace, entry.parent),
        pending_writes=pending_writes(entry.writes, values),
    )


def pending_writes(
    rows: Iterable[TaskWrites], values: Values, *, only: Collection[str] | None = None
) -> list[PendingWrite]:
    """Writes as LangGraph applies them: by task path, task and index; of all channels or ``only`` some.

    For an index from 0 the first write stands, since it may have been acted on; below 0, where errors and interrupts
    are kept, the last one does.
    """
    merged: dict[tuple[str, str, int], tuple[str, parts.Node]] = {}
    for row in rows:
        for index, channel, node in row.writes:
            place = (row.task_path, row.task_id, index)
            if index < 0 or place not in merged:
                merged[place] = (channel, node)
    return [
        (task_id, channel, values.value(channel, node, added=True))
        for (_, task_id, _), (channel, node) in sorted(merged.items(), key=lambda item: item[0])
        if only is None or channel in only
    ]


class DeltaWalk:
    """Collects, from a checkpoint's parent towards the root, what rebuilds its delta channels."""

    def __init__(self, channels: Sequence[str]) -> None:
        self._open = set(channels)
        self._found: dict[str, DeltaChannelHistory] = {channel: {"writes": []} for channel in channels}

    @property
    def done(self) -> bool:
        """Whether each channel has met the value it starts from."""
        return not self._open

    def visit(self, entry: Entry, values: Values) -> None:
        """Take the next ancestor: its writes come before those met so far, its value ends the walk of a channel."""
        writes = pending_writes(entry.writes, values, only=self._open)
        for each in reversed(writes):
            self._found[each[1]]["writes"].insert(0, each)
        for channel, node in entry.body.state:
            if channel in self._open:
                self._found[channel]["seed"] = values.value(channel, node)
                self._open.discard(channel)

    def result(self) -> dict[str, DeltaChannelHistory]:
        """What `BaseCheckpointSaver.get_delta_channel_history` promises."""
        return self._found
