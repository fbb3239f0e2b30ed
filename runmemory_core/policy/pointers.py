"""JSON pointers (RFC 6901) to places in a value, made only for the few places that are told.

A walk that wrote a pointer for every place would need the length of the keys times the number of items; so it
keeps the containers on the way instead. Belongs here: the way to a place, and how much of it is shown. Does
not belong here: what a place is told for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple, cast

MAX_POINTER_CHARACTERS = 1024
"""A longer pointer is cut to the nearest container it lies in, so that reports stay small."""
POINTERS_SHOWN = 50

NameKey = Callable[[Any], str | int]
"""What is shown of a key."""


class Pointers(NamedTuple):
    """At how many places something was found, and pointers to the first of them."""

    total: int = 0
    shown: tuple[str, ...] = ()


NOWHERE = Pointers()


@dataclass(slots=True, eq=False)
class Place:
    """A container on the way through a value; with its parents it is the way to itself.

    The topmost only holds the value and has the pointer of the value; other pointers are made when asked for.
    """

    parent: Place | None
    key: Any
    pointer: str | None = field(default=None, init=False)
    is_cut: bool = field(default=False, init=False)
    """Whether the pointer would be too long and is that of a container around it."""


def child_pointer(pointer: str, key: str | int) -> str:
    """The JSON pointer of one member or item under ``pointer``."""
    escaped = key if isinstance(key, int) else key.replace("~", "~0").replace("/", "~1")
    return f"{pointer}/{escaped}"


def point_at(place: Place, key: Any, name_key: NameKey | None = None) -> tuple[str, bool]:
    """The pointer of the member ``key`` of a container, and whether it is that of one around it instead."""
    missing: list[Place] = []
    above: Place = place
    while above.pointer is None and above.parent is not None:
        missing.append(above)
        above = above.parent
    for lower in reversed(missing):
        lower.pointer, lower.is_cut = _join(above, lower.key, name_key)
        above = lower
    return _join(above, key, name_key)


def _join(place: Place, key: Any, name_key: NameKey | None) -> tuple[str, bool]:
    around = place.pointer or ""
    if place.parent is None or place.is_cut:
        return around, place.is_cut
    name = name_key(key) if name_key else key
    is_too_long = isinstance(name, str) and len(name) > MAX_POINTER_CHARACTERS
    joined = "" if is_too_long else child_pointer(around, name)
    is_cut = is_too_long or len(joined) > MAX_POINTER_CHARACTERS
    return (around if is_cut else joined), is_cut


class Step(NamedTuple):
    """A value met on a walk: the member ``key`` of the container ``parent``."""

    parent: Place
    key: Any
    value: Any
    depth: int

    @property
    def pointer(self) -> str:
        return point_at(self.parent, self.key)[0]


def walk(value: Any, pointer: str = "") -> Iterator[Step]:
    """Everything in a value, itself first, in document order; who stops asking ends it, also in a circle."""
    holder = Place(None, None)
    holder.pointer = pointer
    stack: list[tuple[Place, Iterator[tuple[Any, Any]]]] = [(holder, iter([(None, value)]))]
    while stack:
        place, members = stack[-1]
        for key, item in members:
            yield Step(place, key, item, len(stack))
            if isinstance(item, dict | list):
                stack.append((Place(place, key), _members(cast("dict[Any, Any] | list[Any]", item))))
                break
        else:
            stack.pop()


def _members(container: dict[Any, Any] | list[Any]) -> Iterator[tuple[Any, Any]]:
    return iter(list(container.items()) if isinstance(container, dict) else enumerate(container))


def collect(places: Iterable[Step]) -> Pointers:
    """The pointers as replies show them: the first 50 and a count."""
    total = 0
    shown: dict[str, None] = {}
    for place in places:
        total += 1
        if len(shown) < POINTERS_SHOWN:
            shown[place.pointer] = None
    return Pointers(total, tuple(shown))
