"""Which JSON Run Memory accepts, and the one compact text it keeps of a value.

Good values take a path that runs in C: write, parse back, compare. Only a value that fails is walked in
Python, to name the place, and no farther than others can wait. Belongs here: parsing, writing, bounds and
JSON pointers (RFC 6901). Does not belong here: sizes in bytes and what is removed from a value.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain, islice
from typing import Any, NamedTuple, cast

from pydantic_core import from_json, to_json

from runmemory_core import errors
from runmemory_core.policy.secret_formats import find_credentials, remove_spans
from runmemory_core.policy.secret_names import Secrecy, secrecy

MAX_DEPTH = 64
MAX_INTEGER_DIGITS = 4000
MAX_EXACT_INTEGER = 2**53
NAMED_VALUES = 50_000
"""So many values are looked at to name the place of a bad one; beyond that it is only said that there is one."""

_INTEGER_BOUND = 10**MAX_INTEGER_DIGITS
_LONG_NUMBER = re.compile(r"[:,\[]-?[0-9]{16}")
_OVERLONG_NUMBER = re.compile(rf"(?<![0-9])[0-9]{{{MAX_INTEGER_DIGITS + 1}}}")
_HALF_PAIR = re.compile("[\ud800-\udfff]")
_LEXEME = re.compile(r'"((?:[^"\\]|\\.)*+)"(?:[ \t\r\n]*+(:))?|[\[\]{},]', re.DOTALL)
_UNWRITABLE = (ValueError, TypeError, OverflowError, RecursionError)


class Canonical(NamedTuple):
    """A value as it is kept: its compact JSON text, and a copy that shares nothing with the original."""

    text: str
    value: Any


def canonical(value: Any, *, pointer: str = "", parsed: bool = False) -> Canonical:
    """The text and a private copy of a Python value that comes back from JSON exactly as it was.

    Subclasses of dict, list, str, int and float pass because they come back equal; everything that would
    come back as something else is refused with its JSON pointer, which begins with ``pointer``.
    With ``parsed`` the value is one that was just read from JSON and belongs to the caller: it is kept itself.
    """
    try:
        text = write(value)
        copy = value if parsed else from_json(text, allow_inf_nan=False)
        if (parsed or copy == value) and _is_bounded(copy, text):
            return Canonical(text, copy)
    except _UNWRITABLE:
        pass  # the walk below says what and where
    raise _find_refusal(value, pointer, MAX_DEPTH) or _refusal(
        pointer, "does not come back from JSON as it was", "send plain JSON and let no thread change it"
    )


def write(value: Any) -> str:
    """The compact text of a value that `parse` or `canonical` made: nothing is checked again."""
    return to_json(value).decode()


def parse(body: bytes | str, *, field: str = "", max_depth: int = MAX_DEPTH) -> Any:
    """The value of a JSON text; of duplicate keys the last wins.

    ``field`` is the JSON pointer that the text itself stands at. An envelope around states passes a higher
    ``max_depth``, at most 200, so that `canonical` applies the bound to each state alone.
    """
    try:
        value = from_json(body, allow_inf_nan=False)
    except (ValueError, TypeError) as error:
        raise read_laxly(body, field=field, max_depth=max_depth, cause=str(error))[1] from None
    if not _is_finite_and_bounded(value, max_depth) and (refusal := _find_refusal(value, field, max_depth)):
        raise refusal
    return value


def read_laxly(
    body: bytes | str, *, field: str = "", max_depth: int = MAX_DEPTH, cause: str
) -> tuple[Any, errors.RunMemoryError]:
    """What the standard, laxer parser reads in a text that the strict one refused for ``cause``, and why it is refused.

    The value is None for what is not JSON by any reading, or holds too much to be read twice; it must not be kept.
    """
    commas = body.count(",") if isinstance(body, str) else body.count(b",")
    if commas > NAMED_VALUES:
        return None, _unplaced(field, cause)
    try:
        text = body if isinstance(body, str) else bytes(body).decode()
        value = json.loads(text, parse_int=_read_integer if _OVERLONG_NUMBER.search(text) else None)
    except RecursionError:
        return None, _find_depth(body, field, max_depth)
    except ValueError:
        value = None
    return value, _find_refusal(value, field, max_depth) or errors.MalformedBody(
        f"{field or 'the body'} is not JSON: {cause}", pointers={field: "not JSON"} if field else None
    )


def child_pointer(pointer: str, key: str | int) -> str:
    """The JSON pointer of one member or item under ``pointer``."""
    return pointer_of([key], pointer)


def pointer_of(path: Iterable[str | int], pointer: str = "") -> str:
    """The JSON pointer of what lies at ``path`` under ``pointer``."""
    return pointer + "".join(f"/{str(key).replace('~', '~0').replace('/', '~1')}" for key in path)


def walk(value: Any) -> Iterator[tuple[list[str | int], Any]]:
    """Each value inside a parsed one, and itself, in document order, with the path to it.

    The path is one list, which the walk goes on changing: a pointer for each value would cost their number times
    the length of the keys.
    """
    path: list[str | int] = []
    open_containers: list[Iterator[tuple[Any, Any]]] = []
    item = value
    while True:
        yield path, item
        if isinstance(item, dict | list):
            open_containers.append(_members(cast("dict[Any, Any] | list[Any]", item)))
            path.append("")
        while open_containers:
            if (member := next(open_containers[-1], None)) is not None:
                break
            open_containers.pop()
            path.pop()
        else:
            return
        path[-1], item = member


def big_integers(text: str) -> list[tuple[str | int, ...]]:
    """Paths to the integers beyond 2^53 in a checked JSON text, which a JavaScript reader rounds."""
    if _LONG_NUMBER.search(text) is None:
        return []
    return [
        tuple(path)
        for path, item in walk(from_json(text))
        if isinstance(item, int) and not -MAX_EXACT_INTEGER <= item <= MAX_EXACT_INTEGER
    ]


# --- the quick checks -----------------------------------------------------------------------------------


def _is_bounded(copy: Any, text: str) -> bool:
    """Whether depth and numbers are in bounds; a text too short to break a bound is not walked."""
    is_short = len(text) <= MAX_INTEGER_DIGITS and text.count("[") + text.count("{") <= MAX_DEPTH
    if is_short and "Infinity" not in text:
        return True
    return _is_finite_and_bounded(copy, MAX_DEPTH)


def _is_finite_and_bounded(value: Any, max_depth: int) -> bool:
    """Whether a parsed value keeps the bounds, level by level so that the work stays in comprehensions."""
    level: list[Any] = [value]
    for _ in range(max_depth + 1):
        numbers = [item for item in level if type(item) is int or type(item) is float]
        if numbers and not -_INTEGER_BOUND < min(numbers) <= max(numbers) < _INTEGER_BOUND:
            return False  # infinities, too, lie outside
        inner: list[Iterable[Any]] = [item for item in level if type(item) is list]
        inner += [item.values() for item in level if type(item) is dict]
        if not inner:
            return True
        level = list(chain.from_iterable(inner))
    return False


# --- naming the place -----------------------------------------------------------------------------------


def _read_integer(text: str) -> int:
    """The integer, or in place of one too long to convert another of about as many digits."""
    digits = len(text.lstrip("-"))
    return int(text) if digits <= MAX_INTEGER_DIGITS else 1 << math.ceil((digits - 1) / math.log10(2))


def _find_depth(body: bytes | str, field: str, max_depth: int) -> errors.InvalidJson:
    """The first container below ``max_depth`` in a text too deep for any parser."""
    text = body if isinstance(body, str) else bytes(body).decode(errors="replace")
    path: list[str | int] = []
    for match in islice(_LEXEME.finditer(text), NAMED_VALUES):
        lexeme = match[0]
        if lexeme in "[{":
            if len(path) == max_depth:
                return _too_deep(pointer_of(path, field), max_depth)
            path.append(0 if lexeme == "[" else "")
        elif lexeme in "]}":
            path.pop()
        elif lexeme == "," and isinstance(place := path[-1], int):
            path[-1] = place + 1
        elif match[2]:
            path[-1] = json.loads(f'"{match[1]}"').encode(errors="replace").decode()
    return _unplaced(field)


def _find_refusal(value: Any, pointer: str, max_depth: int) -> errors.InvalidJson | None:
    """The first thing in ``value`` that JSON cannot hold, in document order."""
    for looked_at, (path, item) in enumerate(walk(value)):
        if looked_at == NAMED_VALUES:
            return _unplaced(pointer)
        if not isinstance(item, dict | list):
            if fault := _fault_of(item):
                return _refusal(pointer_of(path, pointer), *fault)
        elif len(path) >= max_depth:
            return _too_deep(pointer_of(path, pointer), max_depth)
        elif isinstance(item, dict) and (fault := _fault_of_keys(cast("dict[Any, Any]", item))):
            return _refusal(pointer_of(path, pointer), *fault)
    return None


def _unplaced(
    pointer: str,
    cause: str = "look for NaN, infinities, half a surrogate pair, overlong integers, deep nesting",
) -> errors.InvalidJson:
    """The refusal of a value that was not looked at to its end: each look costs time that others wait for."""
    return _refusal(pointer, f"holds what JSON does not, in more than {NAMED_VALUES:,} values", cause)


def _fault_of_keys(item: Mapping[object, object]) -> tuple[str, str] | None:
    for key in item:
        if not isinstance(key, str):
            return f"has a key of type {type(key).__name__}", "JSON keys are strings"
        if not _is_unicode(key):
            return "has a key with half a surrogate pair", "keys are Unicode text"
    return None


def _fault_of(item: object) -> tuple[str, str] | None:
    match item:
        case None | bool():
            return None
        case str():
            return None if _is_unicode(item) else ("holds half a surrogate pair", "text is Unicode")
        case float():
            way_out = "JSON has finite numbers only: send null or a string"
            return None if math.isfinite(item) else ("is NaN, infinite or overflows a double", way_out)
        case int():
            digits = int(item.bit_length() * math.log10(2)) + 1
            way_out = f"the limit is {MAX_INTEGER_DIGITS:,}: send it as a string"
            fits = -_INTEGER_BOUND < item < _INTEGER_BOUND
            return None if fits else (f"is an integer of about {digits:,} digits", way_out)
        case _:
            way_out = "JSON holds objects, lists, strings, numbers, true, false and null"
            return f"is a {type(item).__name__}", way_out


def _members(container: Mapping[Any, Any] | list[Any]) -> Iterator[tuple[Any, Any]]:
    # The members of an object are copied: another thread may change it meanwhile.
    return iter(list(container.items()) if isinstance(container, Mapping) else enumerate(container))


def _is_unicode(text: str) -> bool:
    return _HALF_PAIR.search(text) is None


def _too_deep(pointer: str, max_depth: int) -> errors.InvalidJson:
    way_out = f"the limit is {max_depth}: flatten it or store it as text"
    return _refusal(pointer, f"is nested over {max_depth} deep", way_out)


def _refusal(pointer: str, problem: str, way_out: str) -> errors.InvalidJson:
    shown = _showable(pointer)
    return errors.InvalidJson(f"{shown or 'the value'} {problem}; {way_out}", pointers={shown: problem})


def _showable(pointer: str) -> str:
    """The pointer as an error may show it: credentials masked, and nothing of what is inside a secret."""
    shown = remove_spans(pointer, find_credentials(pointer))
    keys = shown.split("/")
    secret = next((place for place, key in enumerate(keys) if secrecy(key) > Secrecy.STRINGS), len(keys))
    return "/".join(keys[: secret + 1])
