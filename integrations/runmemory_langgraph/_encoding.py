"""From LangGraph's values to nodes and parts, converting only what is new.

Values are dumped by the graph's own serializer, shown as tagged JSON (`_bridge`), redacted by names, and cut
into parts (`runmemory_core.parts`). A list is dumped element by element, and the node of an element is
remembered by a digest of its bytes, so that of a chat only the new messages are converted.
"""

from __future__ import annotations

import json
import logging
import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any

from langgraph.checkpoint.serde.base import SerializerProtocol
from runmemory_core import parts
from runmemory_core.policy.redaction import redact
from runmemory_langgraph._bridge import to_json

REMEMBERED_ELEMENTS = 20_000
REMEMBERED_RUNS = 200
_REDACTION_GUIDE = (
    "keep secrets in the runtime context or the environment instead of the state, or use redact=False with an "
    "embedded store"
)
logger = logging.getLogger("runmemory")

_dumps = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode


@dataclass(slots=True)
class Batch:
    """What one commit carries: the texts of the parts it names and the store may lack."""

    run_id: str
    known: set[str]
    texts: dict[str, str] = field(default_factory=dict[str, str])

    def needs(self, node: parts.Node) -> bool:
        """Whether a text that ``node`` names is neither known to be stored nor in this batch."""
        return any(a not in self.known and a not in self.texts for a in parts.direct_addresses(node))

    def to_send(self) -> dict[str, str]:
        """The texts that the store is not known to hold."""
        return {address: text for address, text in self.texts.items() if address not in self.known}


class Encoder:
    """Turns values into nodes; remembers what it converted and what the store confirmed. Thread-safe.

    The memory only saves work: when the store answers that a part is missing, `forget` and encode again.
    """

    def __init__(self, serde: SerializerProtocol, *, redacts: bool) -> None:
        self._serde = serde
        self._redacts = redacts
        self._lock = threading.Lock()
        self._elements: OrderedDict[bytes, parts.Node] = OrderedDict()
        self._known: OrderedDict[str, set[str]] = OrderedDict()
        self._warned: set[str] = set()

    def with_serde(self, serde: SerializerProtocol) -> Encoder:
        """The same memory over another serializer of the same values."""
        clone = Encoder.__new__(Encoder)
        clone.__dict__ = self.__dict__ | {"_serde": serde}
        return clone

    def batch(self, run_id: str) -> Batch:
        """An empty batch for one commit to ``run_id``."""
        with self._lock:
            known = self._known.setdefault(run_id, set())
            self._known.move_to_end(run_id)
            while len(self._known) > REMEMBERED_RUNS:
                self._known.popitem(last=False)
            return Batch(run_id, known)

    def confirm(self, batch: Batch) -> None:
        """Remember that the store holds what ``batch`` carried."""
        batch.known.update(batch.texts)

    def forget(self, run_id: str) -> None:
        """Forget what the store was thought to hold of a run."""
        with self._lock:
            self._known.pop(run_id, None)

    def node(self, channel: str, value: Any, batch: Batch) -> parts.Node:
        """The node of a channel's value; raises `TypeError` with channel and path for what cannot be dumped."""
        if type(value) is list and len(value) > 1:  # pyright: ignore[reportUnknownArgumentType]
            items = [self._element(channel, f"/{i}", item, batch) for i, item in enumerate(value)]
            if sum(map(_length, items)) > parts.INLINE_CHARACTERS:
                return {"l": parts.paged(items, batch.texts)}
        return self._element(channel, "", value, batch)

    def tagged(self, channel: str, value: Any) -> Any:
        """The tagged JSON of a small value that stands inline: metadata, filters."""
        return to_json(self._typed(channel, "", value))

    def _element(self, channel: str, path: str, value: Any, batch: Batch) -> parts.Node:
        typed = self._typed(channel, path, value)
        digest = blake2b(typed[1], digest_size=16, key=typed[0].encode(), salt=_salt(channel)).digest()
        with self._lock:
            node = self._elements.get(digest)
        if node is not None and not batch.needs(node):
            return node
        shown = to_json(typed)
        if self._redacts:
            shown = self._redacted(channel, path, shown)
        node = parts.of_text(_dumps(shown), batch.texts)
        with self._lock:
            self._elements[digest] = node
            while len(self._elements) > REMEMBERED_ELEMENTS:
                self._elements.popitem(last=False)
        return node

    def _typed(self, channel: str, path: str, value: Any) -> tuple[str, bytes]:
        try:
            return self._serde.dumps_typed(value)
        except Exception as error:
            where = f"{path}{_unserializable(value, self._serde.dumps_typed)}"
            raise TypeError(
                f"channel {channel!r} holds a value at {where or '/'} that cannot be saved ({error}): "
                "make it a pydantic model, a dataclass or plain data, or keep it out of the state"
            ) from error

    def _redacted(self, channel: str, path: str, shown: Any) -> Any:
        redacted = redact({channel: shown}, mode="names")
        for pointer in redacted.removed:
            place = f"/{channel}{path}{pointer.removeprefix('/' + channel)}"
            if place not in self._warned:
                self._warned.add(place)
                logger.warning("runmemory: saved [removed] instead of the value at %s: %s", place, _REDACTION_GUIDE)
        return redacted.value[channel]


def _salt(channel: str) -> bytes:
    # The name of its channel decides whether a value is redacted, so equal values of two channels differ.
    return blake2b(channel.encode(), digest_size=16).digest()


def _length(node: parts.Node) -> int:
    return len(_dumps(node["="])) if "=" in node else parts.INLINE_CHARACTERS


def _unserializable(value: Any, dump: Callable[[Any], object]) -> str:
    """The JSON pointer of the first innermost value that ``dump`` refuses, as far as plain containers lead."""
    if isinstance(value, Mapping):
        children: list[tuple[object, Any]] = list(value.items())
    elif isinstance(value, (list, tuple)):
        children = list(enumerate(value))
    else:
        children = [(name, inner) for name, inner in getattr(value, "__dict__", {}).items()]
    for name, child in children:
        try:
            dump(child)
        except Exception:  # noqa: BLE001 - whatever a serializer raises says that it cannot
            return f"/{name}{_unserializable(child, dump)}"
    return ""
