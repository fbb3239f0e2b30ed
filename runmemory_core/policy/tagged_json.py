"""Redaction of adapters' values, in which a dict with the key ``$lg`` stands for what JSON lacks.

The names inside such a tag (``code``, ``type``, ``value``, …) are the format's, not the user's: judged as names of
secrets they could break the value. So tags are opened before redaction and closed after it, and what it sees are the
user's own names. The forms are those of the LangGraph adapter's bridge: ``ext`` holds ``value`` or ``data``, ``map``
``items``, ``b64`` ``data``, ``int`` and ``float`` a number as text, ``json`` a ``text``.
"""

from __future__ import annotations

import re
from typing import Any, NamedTuple, cast

from runmemory_core.policy.redaction import Mode, Redacted, redact
from runmemory_core.policy.secret_formats import MARKER

TAG = "$lg"

_HELD = {"ext": ("value", "data"), "map": ("items",), "b64": ("data",), "json": ("text",)}
_NUMBERS = frozenset({"int", "float"})
_SOME_NUMBER = 0
_NUMBER = re.compile(r"[-+]?(?:[0-9]+(?:\.[0-9]*)?(?:[eE][-+]?[0-9]+)?|inf(?:inity)?|nan)", re.IGNORECASE)


class _Opened(NamedTuple):
    """A tag taken out of ``container[key]``, and the field of it whose value stands there now."""

    container: Any
    key: str | int
    tag: dict[str, Any]
    field: str


def redact_tagged(value: Any, *, name: str = "", mode: Mode = "names") -> Redacted:
    """`redact` for a value with tags: pointers lead through the user's names only. Changed in place."""
    holder = {name: value}
    opened: list[_Opened] = []
    _open(holder, name, opened)
    redacted = redact(holder[name], name=name, mode=mode)
    holder[name] = redacted.value
    for place in reversed(opened):
        _close(place)
    return redacted._replace(value=holder[name])


def _open(container: Any, key: str | int, opened: list[_Opened]) -> None:
    waiting: list[tuple[Any, str | int]] = [(container, key)]
    while waiting:
        container, key = waiting.pop()
        value = container[key]
        while isinstance(value, dict) and TAG in value:
            tag = cast("dict[str, Any]", value)
            field = _field(tag)
            if field is None:
                break
            opened.append(_Opened(container, key, tag, field))
            value = container[key] = _SOME_NUMBER if tag[TAG] in _NUMBERS else tag[field]
        if isinstance(value, dict):
            waiting += [(value, inner) for inner in cast("dict[str, Any]", value)]
        elif isinstance(value, list):
            waiting += [(value, inner) for inner in range(len(cast("list[Any]", value)))]


def _field(tag: dict[str, Any]) -> str | None:
    kind = tag[TAG]
    if not isinstance(kind, str):
        return None
    if kind in _NUMBERS:
        return "value" if _is_number(tag) else None
    return next((field for field in _HELD.get(kind, ()) if field in tag), None)


def _is_number(tag: dict[str, Any]) -> bool:
    """Whether the tag holds a number's text and nothing beside it, so that there is nothing to look for."""
    text = tag.get("value")
    return tag.keys() == {TAG, "value"} and isinstance(text, str) and _NUMBER.fullmatch(text) is not None


def _close(place: _Opened) -> None:
    """Put the tag back around what redaction left; what it replaced whole stays the marker, without a tag."""
    container, key, tag, field = place
    now = container[key]
    before = _SOME_NUMBER if tag[TAG] in _NUMBERS else tag[field]
    if now == MARKER and before != MARKER:
        return
    if tag[TAG] not in _NUMBERS:
        tag[field] = now
    container[key] = tag
