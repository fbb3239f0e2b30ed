"""Serialized checkpoint values as tagged JSON: readable, redactable, and back to the identical bytes.

LangGraph's serializer writes msgpack with extension types that name a class. Here that becomes plain JSON, in
which a dict with the key ``$lg`` stands for what JSON lacks:

========  =============================================================================================
``ext``   an extension: ``code``, and ``type`` (``module:name``) with ``value`` and perhaps ``method``,
          or ``value`` alone (arrays, snapshots), or ``data`` in base64 where its form is not known
``map``   a dict with keys that are not strings, or with the key ``$lg`` itself: ``items``, a list of pairs
``b64``   bytes: ``data``; with a ``type`` a whole value: bytes, or what cannot be shown exactly (opaque)
``int``   an integer beyond 2^53, in decimal
``float`` ``nan``, ``-nan``, ``inf``, ``-inf`` or ``-0.0``
``json``  a value the serializer already wrote as JSON ``text``
========  =============================================================================================

Belongs here: the two directions and what can be read off the tags. Nothing here imports a class by its name
or builds one: that, and the decision whether it may be built, is `_decoding`.
"""

from __future__ import annotations

import math
import sys
from base64 import b64decode, b64encode
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final, TypeAlias

import ormsgpack

Json: TypeAlias = Any
"""A dict, list, str, int, float, bool or None, of the same all the way down."""

Typed: TypeAlias = tuple[str, bytes]
"""What ``serde.dumps_typed`` returns: the kind of serialization and its bytes."""

TAG: Final = "$lg"
MAX_NESTING: Final = 56
"""Levels of tagged JSON; the service refuses 65, and a state is shown inside a few more."""

NAMING_CODES: Final = frozenset(range(6))
"""Extensions that hold ``(module, name, payload)`` and maybe a method: a thing to be called."""

HOLDING_CODES: Final = frozenset({6, 7})
"""Extensions that hold one plain value: a NumPy array, the snapshot of a delta channel."""

_HELD: Final = ("value", "items", "text")
"""Members of a tag that hold the user's values."""

_UNREADABLE_ARRAYS: Final = (b"|O", b"|V")
_TAG_BYTES: Final = TAG.encode()
_EXACT_INT: Final = 2**53
_MALFORMED: Final = (ValueError, KeyError, TypeError, AttributeError)
_AS_THEY_ARE: Final = frozenset({str, bool, type(None)})
_CONTAINERS: Final = frozenset({dict, list})
_STRINGS: Final = frozenset({str})
_PYDANTIC_SECRETS: Final = frozenset({"Secret", "SecretStr", "SecretBytes"})


def to_json(typed: Typed) -> Json:
    """The tagged JSON of a serialized value; never raises, whatever the bytes.

    `from_json` of the answer was compared with the bytes given. Where they would differ, or nest deeper than
    `MAX_NESTING`, the value is kept as opaque base64.
    """
    kind, data = typed
    if kind == "msgpack":
        try:
            value = _tagged(unpack(data, _wrapped), 1)
            if from_json(value) == typed:
                return value
        except ValueError:
            pass  # not msgpack, or not to be shown as JSON: the base64 below loses nothing
    elif kind == "null" and not data:
        return None
    elif kind == "json":
        try:
            return {TAG: "json", "text": str(data, "utf-8")}
        except UnicodeDecodeError:
            pass
    return {TAG: "b64", "type": kind, "data": _base64(data)}


def from_json(value: Json) -> Typed:
    """The serialized value that `to_json` was given; its argument is left as it is.

    Raises ValueError for what `to_json` cannot have written.
    """
    try:
        if value is None:
            return "null", b""
        tag = _tag_of(value)
        if tag == "b64" and "type" in value:
            return str(value["type"]), b64decode(value["data"], validate=True)
        if tag == "json":
            return "json", value["text"].encode()
        return "msgpack", _packed_untagged(value)
    except _MALFORMED as error:
        raise _not_tagged(error) from error


def element_from_json(value: Json) -> bytes:
    """The msgpack of a value that `to_json` showed as an element of a list; raises ValueError as `from_json` does."""
    try:
        return _packed_untagged(value)
    except _MALFORMED as error:
        raise _not_tagged(error) from error


def is_msgpack(value: Json) -> bool:
    """Whether the serializer writes the value alone as msgpack, and so just as it does in a list."""
    return value is not None and not (
        _tag_of(value) == "json" or (_tag_of(value) == "b64" and "type" in value)
    )


def list_of_packed(items: Sequence[bytes]) -> bytes:
    """The msgpack of a list of values that are packed already."""
    count = len(items)
    match head_bytes(count):
        case 1:
            head = bytes((0x90 | count,))
        case 3:
            head = b"\xdc" + count.to_bytes(2)
        case _:
            head = b"\xdd" + count.to_bytes(4)
    return head + b"".join(items)


def head_bytes(count: int) -> int:
    """How many bytes stand before the elements in the msgpack of a list of so many (fixarray, array 16, array 32)."""
    return 1 if count < 2**4 else 3 if count < 2**16 else 5


def is_opaque(value: Json) -> bool:
    """Whether nothing can be seen inside: encrypted, another serializer's, or not exact as JSON."""
    return _tag_of(value) == "b64" and value.get("type", "bytes") not in ("bytes", "bytearray")


def find_secrets(value: Json) -> list[str]:
    """JSON pointers (RFC 6901) to what secret types hold, which the serializer writes in clear.

    Secret types are pydantic's, and every imported class with a ``get_secret_value``.
    """
    return _find_extensions(value, _is_secret, "value")


def find_arrays_of_objects(value: Json, data: bytes) -> list[str]:
    """JSON pointers to NumPy arrays whose bytes are addresses or unnamed fields; ``data`` is the value's msgpack."""
    if not any(
        mark in data for mark in _UNREADABLE_ARRAYS
    ):  # a look that values without arrays hardly pay for
        return []
    return _find_extensions(value, _is_array_of_objects)


def without_tags(value: Json, pointer: str) -> str:
    """A pointer into tagged JSON as a user would write it: through the user's own names only."""
    kept: list[str] = []
    for token in pointer.split("/")[1:]:
        if _tag_of(value) is None:
            kept.append(token)
        name = token.replace("~1", "/").replace("~0", "~")
        value = value[int(name) if value.__class__ is list else name]
    return "".join(f"/{token}" for token in kept)


def replace_strings(value: Json, old: str, new: Callable[[str], Any], pointer: str = "") -> Json:
    """``value`` with each string ``old`` replaced by what ``new`` returns for its pointer, None leaving it.

    Pointers go through the user's own names only, as `without_tags` gives them. Changed in place.
    """
    if value.__class__ is str:
        found = new(pointer) if value == old else None
        return value if found is None else found
    children: Iterable[tuple[Any, Any]] = ()
    tagged = _tag_of(value) is not None
    if value.__class__ is dict:
        children = [(name, value[name]) for name in _HELD if name in value] if tagged else list(value.items())
    elif value.__class__ is list:
        children = list(enumerate[Any](value))
    for key, child in children:
        value[key] = replace_strings(child, old, new, pointer if tagged else pointer + _pointer([key]))
    return value


def imported(module: str, name: str) -> object:
    """What an already imported module holds at its top level under that name; None if nothing."""
    return getattr(sys.modules.get(module), "__dict__", {}).get(name)  # getattr on a module may import


def unpack(data: bytes, ext_hook: Callable[[int, bytes], Any]) -> Any:
    """Unpack msgpack as LangGraph does, each extension by ``ext_hook``; ValueError if it is none."""
    return ormsgpack.unpackb(data, ext_hook=ext_hook, option=ormsgpack.OPT_NON_STR_KEYS)


def _tag_of(value: Json) -> Any:
    return value.get(TAG) if value.__class__ is dict else None


# --- to tagged JSON: in place, in the containers that unpacking just made -------------------------------


def _wrapped(code: int, data: bytes) -> tuple[int, bytes]:
    """An extension, unopened; a tuple cannot be mistaken, since unpacking makes tuples only of keys."""
    return code, data


def _tagged(value: Any, level: int) -> Json:
    kind = value.__class__
    return value if kind in _AS_THEY_ARE else _TAGGERS[kind](value, level)


def _tagged_children(children: Iterable[tuple[Any, Any]], into: Any, level: int) -> None:
    _check(level)
    for key, child in children:
        kind = child.__class__
        if kind in _AS_THEY_ARE or (kind is int and -_EXACT_INT <= child <= _EXACT_INT):
            continue
        if kind is float and child and child - child == 0:  # finite and not -0.0
            continue
        into[key] = _TAGGERS[kind](child, level + 1)


def _tagged_dict(value: dict[Any, Any], level: int) -> Json:
    if TAG in value or not _STRINGS.issuperset(map(type, value)):
        _tagged_children(value.items(), value, level + 2)
        return {TAG: "map", "items": [[_tagged_key(k, level + 3), v] for k, v in value.items()]}
    _tagged_children(value.items(), value, level)
    return value


def _tagged_list(value: list[Any], level: int) -> Json:
    if not _is_plain(value):
        _tagged_children(enumerate(value), value, level)
    return value


def _is_plain(items: list[Any]) -> bool:
    """Whether no item needs a tag, for lists worth a look without a loop: texts, embeddings, token ids."""
    kinds: set[type] = set(map(type, items))
    if kinds == {float}:
        return 0.0 not in items and math.isfinite(sum(items))
    if kinds == {int}:
        return min(items) >= -_EXACT_INT and max(items) <= _EXACT_INT
    return kinds <= _AS_THEY_ARE


def _tagged_key(key: Any, level: int) -> Json:
    _check(level)
    kind = key.__class__
    return [_tagged_key(part, level + 1) for part in key] if kind is tuple else _tagged(key, level)


def _check(level: int) -> None:
    if level > MAX_NESTING:
        raise ValueError(level)


def _tagged_bytes(value: bytes, _level: int) -> Json:
    return {TAG: "b64", "data": _base64(value)}


def _tagged_int(value: int, _level: int) -> Json:
    return value if -_EXACT_INT <= value <= _EXACT_INT else {TAG: "int", "value": str(value)}


def _tagged_float(value: float, _level: int) -> Json:
    if math.isfinite(value) and (value or math.copysign(1, value) > 0):
        return value
    sign = "-" if math.isnan(value) and math.copysign(1, value) < 0 else ""  # x86 computes negative NaNs
    return {TAG: "float", "value": f"{sign}{value}"}


def _tagged_ext(value: tuple[int, bytes], level: int) -> Json:
    _check(level)
    code, data = value
    tag: dict[str, Any] = {TAG: "ext", "code": code}
    try:
        payload = unpack(data, _wrapped)
    except ValueError:
        return tag | {"data": _base64(data)}
    match payload:
        case [str(module), str(name), held, *method] if code in NAMING_CODES and _method_fits(module, method):
            tag["type"] = f"{module}:{name}"
            tag["value"] = _tagged(held, level + 1)
            if method:
                tag["method"] = method[0]
        case _ if code in HOLDING_CODES:
            tag["value"] = _tagged(payload, level + 1)
        case _:
            tag["data"] = _base64(data)
    return tag


def _method_fits(module: str, method: list[Any]) -> bool:
    return ":" not in module and (not method or (len(method) == 1 and type(method[0]) is str))


def _base64(data: bytes) -> str:
    return b64encode(data).decode()


_TAGGERS: Final[dict[type, Callable[[Any, int], Json]]] = {
    dict: _tagged_dict,
    list: _tagged_list,
    tuple: _tagged_ext,
    bytes: _tagged_bytes,
    int: _tagged_int,
    float: _tagged_float,
}


# --- from tagged JSON: copying only the containers that hold a tag --------------------------------------


def _packed(value: Any) -> bytes:
    return ormsgpack.packb(value, option=ormsgpack.OPT_NON_STR_KEYS)


def _packed_untagged(value: Json) -> bytes:
    packed = _packed(value)  # with the search it costs a tenth of a walk, which values without tags save
    return _packed(_untagged(value)) if _TAG_BYTES in packed else packed


def _not_tagged(error: Exception) -> ValueError:
    return ValueError(f"not the tagged JSON of a checkpoint value ({type(error).__name__})")


def _untagged(value: Json) -> Any:
    kind = value.__class__
    if kind is dict:
        if TAG in value:
            return _UNTAGGERS[value[TAG]](value)
        if not _CONTAINERS.isdisjoint(map(type, value.values())):
            return {k: _untagged(v) if type(v) in _CONTAINERS else v for k, v in value.items()}
    elif kind is list and not _CONTAINERS.isdisjoint(map(type, value)):
        return [_untagged(v) if type(v) in _CONTAINERS else v for v in value]
    return value


def _untagged_key(key: Json) -> Any:
    kind = key.__class__
    return tuple(map(_untagged_key, key)) if kind is list else _untagged(key)


def _untagged_ext(tag: dict[str, Any]) -> ormsgpack.Ext:
    if "data" in tag:
        return ormsgpack.Ext(tag["code"], b64decode(tag["data"], validate=True))
    held = _untagged(tag["value"])
    if "type" in tag:
        module, _, name = tag["type"].partition(":")
        held = [module, name, held, tag["method"]] if "method" in tag else [module, name, held]
    return ormsgpack.Ext(tag["code"], _packed(held))


_UNTAGGERS: Final[dict[str, Callable[[dict[str, Any]], Any]]] = {
    "ext": _untagged_ext,
    "map": lambda tag: {_untagged_key(k): _untagged(v) for k, v in tag["items"]},
    "b64": lambda tag: b64decode(tag["data"], validate=True),
    "int": lambda tag: int(tag["value"]),
    "float": lambda tag: float(tag["value"]),
}


# --- extensions of a kind --------------------------------------------------------------------------------


def _find_extensions(value: Json, wanted: Callable[[dict[str, Any]], bool], *member: str) -> list[str]:
    """JSON pointers to extensions that are ``wanted``, or to a ``member`` of them."""
    found: list[str] = []
    path: list[str | int] = []

    def look(value: Json) -> None:
        kind = value.__class__
        children: Iterable[tuple[Any, Any]] = ()
        if kind is dict:
            if value.get(TAG) == "ext" and wanted(value):
                found.append(_pointer([*path, *member]))
                return
            children = value.items()
        elif kind is list and not _CONTAINERS.isdisjoint(map(type, value)):
            children = enumerate[Any](value)
        for key, child in children:
            if type(child) in _CONTAINERS:
                path.append(key)
                look(child)
                path.pop()

    look(value)
    return found


def _is_array_of_objects(ext: dict[str, Any]) -> bool:
    match ext:
        case {"code": 6, "value": [str(dtype), *_]}:
            return dtype[:2].encode() in _UNREADABLE_ARRAYS
        case _:
            return False


def _is_secret(ext: dict[str, Any]) -> bool:
    module, _, name = ext.get("type", "").partition(":")
    if ext["code"] != 0:
        return False
    if module.startswith("pydantic.") and name.partition("[")[0] in _PYDANTIC_SECRETS:
        return True
    return callable(getattr(imported(module, name), "get_secret_value", None))


def _pointer(path: Iterable[str | int]) -> str:
    return "".join("/" + str(step).replace("~", "~0").replace("/", "~1") for step in path)
