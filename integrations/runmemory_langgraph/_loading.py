"""From nodes and the texts of parts to objects, unpacking only what this process has not loaded before.

A chat is loaded at the beginning of each invocation, and most of it was there the last time. So the bytes that the
serializer reads are remembered by the address of their part, and `fetch` leaves out what is known. Objects are never
shared between two loads: they may be changed in place.

Belongs here: the values of one reply, and what is remembered of it. Does not belong here: what may be built
(`_decoding`), and what a checkpoint consists of (`_mapping`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from langgraph.checkpoint.serde.base import SerializerProtocol
from pydantic_core import from_json

from runmemory_core import parts
from runmemory_core.policy.secret_formats import MARKER
from runmemory_langgraph._bridge import is_msgpack, replace_strings
from runmemory_langgraph._decoding import (
    ClassName,
    Packed,
    decode,
    load_packed,
    packed_element,
    packed_list,
)
from runmemory_langgraph._encoding import METADATA_SERDE

_INDEX = re.compile(r"^/\d+")

Restore = Callable[[str, str], Any]
"""Given channel and JSON pointer of a removed value, the value to put there, or None to leave it.

An element of a list that is only to be added has the index ``-``, the element after the last one.
"""


@dataclass(frozen=True, slots=True)
class Reading:
    """How stored values become objects."""

    serde: SerializerProtocol
    allow: frozenset[type | ClassName]
    restore: Restore | None = None


class Values:
    """The values of one reply, by node."""

    def __init__(
        self, texts: Mapping[str, str], *, reading: Reading, known: Mapping[str, Packed] | None = None
    ) -> None:
        self._texts = texts
        self._reading = reading
        self._known = known or {}
        self.packed: dict[str, Packed] = {}
        """What can be remembered of the values asked for: msgpack by the address of its part."""

    @property
    def packed_bytes(self) -> int:
        """The size of ``packed``."""
        return sum(len(each.data) for each in self.packed.values())

    def value(self, channel: str, node: parts.Node, *, added: bool = False) -> Any:
        """The object that ``node`` of a channel stands for; raises `DecodingRefused` for what may not be built.

        What a task ``added`` does not know the place that it will have in a list.
        """
        if "l" in node:
            items = list(parts.unpaged(node["l"], self._text))
            if all("=" in item for item in items):  # small values, such as numbers, cost less together
                return self.decoded(self._json(channel, "", {"l": items}, added=added))
            packed = packed_list(
                [
                    self._packed(channel, "/-" if added else f"/{index}", item)
                    for index, item in enumerate(items)
                ]
            )
        elif (known := self._known.get(node.get("p", ""))) is not None:
            packed = self.packed[node["p"]] = known
        else:
            return self.decoded(self._json(channel, "", node, added=added))
        return load_packed(packed, serde=self._reading.serde, allow=self._reading.allow)

    def decoded(self, value: Any) -> Any:
        """The object of a value's tagged JSON."""
        return decode(value, serde=self._reading.serde, allow=self._reading.allow)

    def decoded_metadata(self, value: Any) -> Any:
        """The object of a metadata value, which is LangGraph's own serializer's whatever the graph's."""
        return decode(value, serde=METADATA_SERDE, allow=self._reading.allow)

    def text(self, node: parts.Node) -> str:
        """The JSON text that ``node`` stands for."""
        return parts.join(node, self._text)

    def _text(self, address: str) -> str:
        return self._texts[address]

    def _packed(self, channel: str, pointer: str, node: parts.Node) -> Packed:
        """One element of a list."""
        where = node.get("p", "")
        packed = self._known.get(where)
        if packed is None:
            value = self._json(channel, pointer, node)
            packed = packed_element(value, serde=self._reading.serde)
            if not where or MARKER in self._texts[where] or not is_msgpack(value):
                return packed
        self.packed[where] = packed
        return packed

    def _json(self, channel: str, pointer: str, node: parts.Node, *, added: bool = False) -> Any:
        text = None if "=" in node else self.text(node)
        value = node["="] if text is None else from_json(text)
        restore = self._reading.restore
        if restore is not None and (text is None or MARKER in text):
            placeless = added and value.__class__ is list
            value = replace_strings(
                value,
                MARKER,
                lambda inner: restore(channel, _INDEX.sub("/-", inner) if placeless else inner),
                pointer,
            )
        return value
