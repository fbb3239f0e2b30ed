"""JSON text inside a string: read with every duplicate key, and rewritten only where it changed.

Belongs here: telling JSON from other text, and splicing changed values into it. Does not belong here: what
is changed, and JSON that is a whole request (`json_rules`).
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from json.decoder import scanstring  # type: ignore[attr-defined]
from typing import Any, cast

_BLANK = re.compile(r"[ \t\n\r]*")
_OUTSIDE = " \t\n\r\ufeff"
_ENDS = {"{": "}", "[": "]", '"': '"'}


class _Repeated(str):
    """A key that its object already has: hashed apart from every other, so that both values are looked at."""

    __slots__ = ()
    __hash__ = object.__hash__


def _keep_repeated(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) == len(pairs):
        return members
    members = dict[str, Any]()
    for key, value in pairs:
        members[_Repeated(key) if key in members else key] = value
    return members


_DECODER = json.JSONDecoder(object_pairs_hook=_keep_repeated, strict=False)


def read(text: str) -> Any:
    """The value of a string that is a JSON object, list or string, or None where it is anything else."""
    bare = text.strip(_OUTSIDE)
    if len(bare) < 2 or _ENDS.get(bare[0]) != bare[-1]:
        return None
    try:
        return _DECODER.decode(bare)
    except (ValueError, RecursionError):
        return None


def splice(text: str, changed: Any) -> str:
    """The text with the values written anew in which ``changed`` differs from it; the rest byte for byte.

    ``changed`` is what `read` returned, with values and keys replaced but none added, removed or moved.
    """
    pieces: list[str] = []
    done = 0
    for start, end, new in _find_changes(text, changed):
        pieces += (text[done:start], new)
        done = end
    return "".join((*pieces, text[done:]))


def _find_changes(text: str, changed: Any) -> Iterator[tuple[int, int, str]]:
    """Start, end and new text of each value and key that differs, going through text and value in step."""
    place = len(text) - len(text.lstrip(_OUTSIDE))
    stack: list[Iterator[tuple[str | None, Any]]] = [iter([(None, changed)])]
    while stack:
        for key, node in stack[-1]:
            if key is not None:
                written, end = cast("tuple[str, int]", scanstring(text, place + 1, False))
                if str.__str__(key) != written:
                    yield place, end, _write(str.__str__(key))
                place = _skip_blank(text, _skip_blank(text, end) + 1)
            if inner := _members_of(node, text[place]):
                stack.append(inner)
                place = _skip_blank(text, place + 1)
                break
            value, end = _DECODER.raw_decode(text, place)
            if value != node:
                yield place, end, _write(node)
            place = _skip_comma(text, end)
        else:
            stack.pop()
            place = _skip_comma(text, place + 1)


def _members_of(node: Any, bracket: str) -> Iterator[tuple[str | None, Any]] | None:
    if isinstance(node, dict) and bracket == "{":
        return iter(cast("dict[str, Any]", node).items())
    if isinstance(node, list) and bracket == "[":
        return ((None, item) for item in cast("list[Any]", node))
    return None


def _skip_blank(text: str, place: int) -> int:
    blank = _BLANK.match(text, place)
    return blank.end() if blank else place


def _skip_comma(text: str, place: int) -> int:
    place = _skip_blank(text, place)
    return _skip_blank(text, place + 1) if text.startswith(",", place) else place


def _write(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)
