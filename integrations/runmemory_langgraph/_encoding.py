"""From LangGraph's values to nodes and parts, converting only what is new.

Values are dumped by the graph's own serializer, shown as tagged JSON (`_bridge`), redacted by names, and cut
into parts (`runmemory_core.parts`). A list is dumped element by element, and the node of an element is
remembered by a digest of its bytes, so that of a chat only the new messages are converted.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import lru_cache
from hashlib import blake2b
from typing import Any, Literal, NamedTuple, cast

import ormsgpack
from langgraph.checkpoint.base import WRITES_IDX_MAP
from langgraph.checkpoint.serde.base import SerializerProtocol
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer

from runmemory_core import parts
from runmemory_core.model import MIB
from runmemory_core.policy.json_rules import write
from runmemory_core.policy.redaction import Mode
from runmemory_core.policy.secret_formats import MARKER
from runmemory_core.policy.tagged_json import redact_tagged
from runmemory_langgraph._bridge import (
    find_arrays_of_objects,
    find_secrets,
    head_bytes,
    is_opaque,
    list_of_packed,
    to_json,
    without_tags,
)
from runmemory_langgraph._remembering import Once, Remembered

OnRedact = Callable[[str, str], object]
"""Told the channel and the JSON pointer in its value of each value that was removed."""

METADATA_SERDE = JsonPlusSerializer()
REMEMBERED_NODES = 20_000
"""Of one run; where the memory of all runs is over its bytes, those are forgotten that were not used for longest."""
REMEMBERED_NODE_BYTES = 32 * MIB
NODE_BYTES = 700
"""About what one node takes, with its digest and address."""
REMEMBERED_LIST_BYTES = 32 * MIB
_SHORT_LIST = 100
_LONG_LIST = 8
_IN_LISTS = frozenset({"msgpack", "null", "bytes"})
"""Kinds of serialization whose values look the same inside a list as alone."""
_LANGGRAPHS_OWN = frozenset({"source", "step", "parents", "run_id", "counters_since_delta_snapshot"})
"""Metadata that LangGraph goes by: a node may be called ``auth_token``, and is no secret."""
_REDACTION_GUIDE = (
    "keep secrets in the runtime context or the environment instead of the state, or use redact=False with an "
    "embedded store"
)
logger = logging.getLogger("runmemory")


@dataclass(slots=True)
class _Memory:
    """What one thread of a graph sent before: node by digest, and the addresses the store confirmed."""

    nodes: dict[bytes, parts.Node] = field(default_factory=dict[bytes, parts.Node])
    addresses: set[str] = field(default_factory=set[str])
    removed: dict[bytes, list[str]] = field(default_factory=dict[bytes, list[str]])
    """Pointers to what was removed from a value, by its digest."""
    told: dict[tuple[str, str, int | str], bytes] = field(
        default_factory=dict[tuple[str, str, "int | str"], bytes]
    )
    """The value of which ``on_redact`` was told last, by lane, channel and index."""

    def clear(self) -> None:
        self.nodes.clear()
        self.addresses.clear()
        self.removed.clear()
        self.told.clear()


class Frozen(NamedTuple):
    """A value, or an element of a list, as the serializer wrote it."""

    kind: str
    data: bytes


class _Listed(NamedTuple):
    """A list as it was encoded: its msgpack after the head, and of each element digest and node."""

    data: bytes
    elements: list[tuple[bytes, parts.Node]]


@dataclass(slots=True)
class Batch:
    """What one commit carries beyond what the store holds already: new nodes and the texts of their parts."""

    run_id: str
    memory: _Memory
    nodes: dict[bytes, parts.Node] = field(default_factory=dict[bytes, parts.Node])
    texts: dict[str, str] = field(default_factory=dict[str, str])
    sizes: dict[str, int] = field(default_factory=dict[str, int])
    """Serialized bytes of each channel of the change that is being encoded."""
    lists: dict[tuple[str, str], _Listed] = field(default_factory=dict[tuple[str, str], "_Listed"])
    """The lists of states by lane and channel."""

    def find(self, digest: bytes) -> parts.Node | None:
        """The node of a value that was sent before or is in this batch."""
        return self.memory.nodes.get(digest) or self.nodes.get(digest)

    def to_send(self) -> dict[str, str]:
        """The texts that the store is not known to hold."""
        known = self.memory.addresses
        return {address: text for address, text in self.texts.items() if address not in known}


def metadata_value(value: Any) -> Any:
    """Tagged JSON of a metadata value, by LangGraph's own serializer whatever the graph's: it is filtered by."""
    if value is None or type(value) is bool or (type(value) is str and value.isascii()):
        return value
    return to_json(METADATA_SERDE.dumps_typed(value))


_Element = tuple[int | str, tuple[bytes, parts.Node]]
"""Digest and node of a value or an element, by its index or ``""``."""


class _OnlyWhole(Exception):
    """An element of a list cannot be shown alone: the list is encoded as one value."""


class Encoder:
    """Turns values into nodes; remembers what it converted and what the store confirmed.

    The memory only saves work: when the store answers that a part is missing, `forget` and encode again. Different
    threads of a graph may be encoded at the same time, one of them by one caller at a time.
    """

    def __init__(
        self,
        serde: SerializerProtocol,
        *,
        redact: bool | Literal["strict"],
        on_redact: OnRedact | None = None,
    ) -> None:
        self._serde = serde
        # Of another serializer, or a cipher, nothing is known of what it writes: its values are kept whole.
        self._stock = type(serde).dumps_typed is JsonPlusSerializer.dumps_typed
        self._redacts = bool(redact)
        self._mode: Mode = "full" if redact == "strict" else "names"
        self._on_redact = on_redact
        self._memories: Remembered[_Memory] = Remembered(REMEMBERED_NODE_BYTES)
        self._lists: Remembered[_Listed] = Remembered(REMEMBERED_LIST_BYTES)
        self._warned = Once()

    def batch(self, run_id: str) -> Batch:
        """An empty batch for one commit to ``run_id``."""
        return Batch(run_id, self._memories.find(run_id) or _Memory())

    def confirm(self, batch: Batch) -> None:
        """Remember that the store holds what ``batch`` carried."""
        memory = batch.memory
        if len(memory.nodes) > REMEMBERED_NODES:
            memory.clear()
        memory.nodes.update(batch.nodes)
        memory.addresses.update(batch.texts)
        known = max(len(memory.nodes), len(memory.addresses)) + len(memory.told)
        self._memories.keep(memory, NODE_BYTES * known, batch.run_id)
        for place, listed in batch.lists.items():
            size = len(listed.data) + NODE_BYTES * len(listed.elements)
            self._lists.keep(listed, size, batch.run_id, *place)

    def forget(self, run_id: str) -> None:
        """Forget what the store was thought to hold of a run."""
        self._memories.forget(run_id)
        self._lists.forget(run_id)

    def node(self, channel: str, value: Any, batch: Batch, *, lane: str | None = None) -> parts.Node:
        """The node of a channel's value; raises `TypeError` with channel and path for what cannot be dumped.

        With ``lane`` the value is of a state: if it is a list, the next state probably begins with it. Only then, and
        for what never gets into a state, is ``on_redact`` told: a result does not know its place in a list.
        """
        node, found = self._whole_or_list(channel, value, batch, lane)
        if self._on_redact is not None and (lane is not None or channel in WRITES_IDX_MAP):
            self._tell(self._on_redact, lane or "", channel, found, batch)
        return node

    def _whole_or_list(
        self, channel: str, value: Any, batch: Batch, lane: str | None
    ) -> tuple[parts.Node, list[_Element]]:
        if self._is_taken_apart(value):
            items = cast("list[Any]", value)
            with suppress(_OnlyWhole):
                if lane is None or len(items) < _LONG_LIST:
                    found = self._elements(channel, items, batch)
                else:
                    found = self._grown(lane, channel, items, batch)
                return self._list(found, batch), list(enumerate(found))
        digest, node = self._element(channel, "", value, batch)
        return node, [("", (digest, node))]

    def _is_taken_apart(self, value: Any) -> bool:
        if type(value) is not list or not self._stock:
            return False
        items = cast("list[Any]", value)
        return bool(items) and not _holds_pairs(items)

    def frozen(self, channel: str, value: Any) -> Frozen | list[Frozen]:
        """``value`` as it is now, for `node`: what waits, or is sent again, may have been changed in place since."""
        if self._is_taken_apart(value):
            items = [
                Frozen(*self._typed(channel, index, item))
                for index, item in enumerate(cast("list[Any]", value))
            ]
            if _IN_LISTS.issuperset(item.kind for item in items):
                return items
        return Frozen(*self._typed(channel, "", value))

    def _tell(
        self, on_redact: OnRedact, lane: str, channel: str, found: Iterable[_Element], batch: Batch
    ) -> None:
        """Tell ``on_redact`` of what was removed from the values, once for each place and value."""
        removed, told = batch.memory.removed, batch.memory.told
        for index, (digest, _) in found if removed else ():
            if digest in removed and told.get((lane, channel, index)) != digest:
                told[lane, channel, index] = digest
                for pointer in removed[digest]:
                    on_redact(channel, pointer if index == "" else f"/{index}{pointer}")

    def metadata(self, metadata: Mapping[str, Any]) -> dict[str, Any]:
        """Metadata as tagged JSON; LangGraph merges the config's scalars into it, keys among them."""
        shown = {name: metadata_value(value) for name, value in metadata.items()}
        if not self._redacts:
            return shown
        others = {name: value for name, value in shown.items() if name not in _LANGGRAPHS_OWN}
        kept, removed = self._redacted("metadata", "", others)
        if self._on_redact is not None:
            for pointer in removed:
                self._on_redact("metadata", pointer)
        return shown | kept

    def tagged(self, channel: str, value: Any) -> Any:
        """The tagged JSON of a value that stands inline, as the graph's serializer writes it."""
        return to_json(self._typed(channel, "", value))

    def _elements(
        self, channel: str, items: list[Any], batch: Batch, *, start: int = 0
    ) -> list[tuple[bytes, parts.Node]]:
        return [self._element(channel, start + i, item, batch) for i, item in enumerate(items[start:])]

    def _grown(
        self, lane: str, channel: str, items: list[Any], batch: Batch
    ) -> list[tuple[bytes, parts.Node]]:
        """The elements of a list, converting only those after what the list was in the state before.

        To dump a list at once costs less than each element alone, and its msgpack is that of the elements in a row.
        """
        _, data = self._typed(channel, "", items)
        data = data[head_bytes(len(items)) :]
        before = batch.lists.get((lane, channel)) or self._lists.find(batch.run_id, lane, channel)
        old: list[tuple[bytes, parts.Node]] = []
        if before is not None and data.startswith(before.data):
            old = before.elements
            batch.sizes[channel] = len(before.data)
        elements = old + self._elements(channel, items, batch, start=len(old))
        batch.lists[lane, channel] = _Listed(data, elements)
        return elements

    def _list(self, found: list[tuple[bytes, parts.Node]], batch: Batch) -> parts.Node:
        nodes = [node for _, node in found]
        if len(nodes) < _SHORT_LIST and all("=" in node for node in nodes):
            shown = [node["="] for node in nodes]
            if len(write(shown)) <= parts.INLINE_CHARACTERS:
                return {"=": shown}
        full = parts.full_pages(len(nodes))
        pages: list[parts.Node] = []
        for start in range(0, full, parts.PAGE_NODES):
            inside = slice(start, start + parts.PAGE_NODES)
            digest = b"".join(digest for digest, _ in found[inside])
            page = batch.find(digest)
            if page is None:
                page = batch.nodes[digest] = parts.page(nodes[inside], batch.texts)
            pages.append(page)
        return {"l": pages + nodes[full:]}

    def _element(self, channel: str, index: int | str, value: Any, batch: Batch) -> tuple[bytes, parts.Node]:
        kind, data = typed = self._typed(channel, index, value)
        if index != "" and kind not in _IN_LISTS:
            raise _OnlyWhole
        batch.sizes[channel] = batch.sizes.get(channel, 0) + len(data)
        hashed = _salted(channel, kind).copy()
        hashed.update(data)
        digest = hashed.digest()
        node = batch.find(digest)
        if node is None:
            shown = to_json(typed)
            _refuse_arrays_of_objects(channel, index, shown, data)
            if index != "" and is_opaque(shown):
                raise _OnlyWhole
            if self._redacts:
                shown, removed = self._redacted(channel, index, shown)
                if removed:
                    batch.memory.removed[digest] = removed
            node = batch.nodes[digest] = parts.of_text(write(shown), batch.texts)
        return digest, node

    def _typed(self, channel: str, index: int | str, value: Any) -> tuple[str, bytes]:
        if type(value) is Frozen:
            return value
        if type(value) is list and value and type(cast("list[Any]", value)[0]) is Frozen:
            return _thawed(cast("list[Frozen]", value))
        try:
            typed = self._serde.dumps_typed(value)
        except Exception as error:
            start = "" if index == "" else f"/{index}"
            where = f"{start}{_unserializable(value, self._serde.dumps_typed)}"
            raise TypeError(
                f"channel {channel!r} holds a value at {where or '/'} that cannot be saved ({error}): "
                "make it a pydantic model, a dataclass or plain data, or keep it out of the state"
            ) from error
        if typed[0].startswith("pickle"):
            raise TypeError(
                f"channel {channel!r} would be saved as a pickle, which is never loaded since it can run any code: "
                "use a serializer without pickle_fallback"
            )
        return typed

    def _redacted(self, channel: str, index: int | str, shown: Any) -> tuple[Any, list[str]]:
        """The value without what stands under names of secrets or is of a type for secrets; where that stood."""
        place = f"/{channel}" if index == "" else f"/{channel}/{index}"
        if is_opaque(shown):
            self._warn(f"{place} is kept as opaque bytes, so nothing in it was looked at or removed")
            return shown, []
        removed: list[str] = []
        for pointer in find_secrets(shown):
            removed.append(without_tags(shown, pointer))
            _replace(shown, pointer, MARKER)
        redacted = redact_tagged(shown, name=channel, mode=self._mode)
        removed += redacted.removed
        for pointer in removed:
            self._warn(f"saved {MARKER} instead of the value at {place}{pointer}: {_REDACTION_GUIDE}")
        for pointer in redacted.warned:
            self._warn(
                f"{place}{pointer} holds what looks like a credential and was kept as it is: take it out of the "
                'state, or use redact="strict"'
            )
        return redacted.value, removed

    def _warn(self, words: str) -> None:
        if self._warned.is_new(words):
            logger.warning("runmemory: %s", words)


def _replace(value: Any, pointer: str, new: Any) -> None:
    """Put ``new`` at a JSON pointer below ``value``."""
    *way, last = [token.replace("~1", "/").replace("~0", "~") for token in pointer[1:].split("/")]
    for token in way:
        value = value[int(token) if isinstance(value, list) else token]
    value[int(last) if isinstance(value, list) else last] = new


def _refuse_arrays_of_objects(channel: str, index: int | str, shown: Any, data: bytes) -> None:
    for pointer in find_arrays_of_objects(shown, data):
        where = without_tags(shown, pointer) if index == "" else f"/{index}{without_tags(shown, pointer)}"
        raise TypeError(
            f"channel {channel!r} holds a NumPy array of objects or named fields at {where or '/'}, of which only "
            "addresses or bare bytes would be saved: make it a list, or an array of numbers or text"
        )


@lru_cache(maxsize=1_000)
def _salted(channel: str, kind: str) -> blake2b:
    # The name of its channel decides whether a value is redacted, so equal values of two channels differ.
    return blake2b(f"{len(kind)}:{kind}{len(channel)}:{channel}:".encode(), digest_size=16)


def _thawed(items: Sequence[Frozen]) -> Frozen:
    """The list of these elements as the serializer writes it at once."""
    packed = [
        data if kind == "msgpack" else ormsgpack.packb(None if kind == "null" else data)
        for kind, data in items
    ]
    return Frozen("msgpack", list_of_packed(packed))


def _holds_pairs(items: list[Any]) -> bool:
    """Whether items may be name and value, such as headers: only side by side do they say what is secret."""
    return any(type(item) in (list, tuple) and len(item) == 2 for item in items)


def _unserializable(value: Any, dump: Callable[[Any], object]) -> str:
    """The JSON pointer of the first innermost value that ``dump`` refuses, as far as plain containers lead."""
    children: Iterable[tuple[object, Any]]
    match value:
        case Mapping():
            children = cast("Mapping[object, Any]", value).items()
        case list() | tuple():
            children = enumerate(cast("Sequence[Any]", value))
        case _:
            children = getattr(value, "__dict__", {}).items()
    for name, child in children:
        try:
            dump(child)
        except Exception:  # noqa: BLE001 - whatever a serializer raises says that it cannot
            return f"/{name}{_unserializable(child, dump)}"
    return ""
