"""Building the objects of a checkpoint, and refusing those that stored bytes may not ask for.

LangGraph's serializer imports and calls whatever the bytes name: who owns the store would run code in every
client. So the names are judged first, in the very bytes that are loaded afterwards, and nothing else is built.

Belongs here: that judgement and the loading. Does not belong here: the form of tagged JSON (`_bridge`), and the
calling of classes (`_building`).
"""

from __future__ import annotations

import copy
import dataclasses
import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from enum import Enum
from functools import lru_cache
from typing import Any, Final, Literal, NamedTuple, NoReturn, TypeAlias

from langgraph.checkpoint.serde.base import SerializerProtocol
from langgraph.checkpoint.serde.encrypted import EncryptedSerializer
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from pydantic import BaseModel, Secret, SecretBytes, SecretStr

from runmemory_core.errors import RunMemoryError
from runmemory_langgraph._bridge import (
    HOLDING_CODES,
    NAMING_CODES,
    Json,
    Typed,
    element_from_json,
    from_json,
    imported,
    list_of_packed,
    unpack,
)
from runmemory_langgraph._building import Builder, ClassName, Failure

try:
    from langgraph.checkpoint.serde import _msgpack as _langgraph
except ImportError:  # the module is private; without its lists their types need `allow`, as the refusal says
    _langgraph = None

Asked: TypeAlias = tuple[int, str, str, str]
"""Extension code, module, name and method (or ``""``) of what stored bytes want called."""

_METHOD_CODE: Final = 3
_SAFE_TYPES: Final[frozenset[tuple[str, ...]]] = getattr(_langgraph, "SAFE_MSGPACK_TYPES", frozenset())
_SAFE_METHODS: Final[frozenset[tuple[str, ...]]] = getattr(_langgraph, "SAFE_MSGPACK_METHODS", frozenset())
_PLAIN_BASES: Final = frozenset[type]({BaseModel, Enum, SecretStr, SecretBytes, Secret})
_PLAIN_KINDS: Final = frozenset({"null", "bytes", "bytearray"})
_OWN_METHOD: Final = "fromisoformat"
_ONLY_DATETIME: Final = f"only {_OWN_METHOD} of datetime is called, and of classes that are allowed"
_SHOWN_CHARACTERS: Final = 200


class DecodingRefused(RunMemoryError):
    """Stored bytes ask for a class that was not allowed, or that no longer takes what was saved of it.

    Allow the class by ``allow=[…]`` if it is yours, or import its module before the checkpoint is read. A class that
    changed needs a way to take its old form, such as a default or a validator.
    """

    code = "decoding_refused"
    http_status = 422


def decode(
    value: Json,
    *,
    serde: SerializerProtocol,
    allow: Iterable[type | ClassName] = frozenset(),
    on_unknown: Literal["raise", "raw"] = "raise",
) -> Any:
    """The object that ``serde`` serialized and `to_json` made JSON of.

    Built are LangGraph's safe types, those in ``allow``, and pydantic models, dataclasses, enums and named
    tuples whose module is imported already. Anything else raises `DecodingRefused`; with
    ``on_unknown="raw"`` the tagged JSON comes back instead. A serializer of the user's own reads its own
    kinds of bytes by its own rules, except that a pickle is never handed on.
    """
    try:
        return _load(_typed(value), serde, _named(frozenset(allow)))
    except DecodingRefused:
        if on_unknown == "raw":
            return value
        raise


class Packed(NamedTuple):
    """A value in msgpack, and all that its bytes want called; not judged yet."""

    data: bytes
    asks: frozenset[Asked]


def packed_element(value: Json, *, serde: SerializerProtocol) -> Packed:
    """An element of a list, by its tagged JSON."""
    try:
        data = element_from_json(value)
    except ValueError as error:
        raise _changed_there(error) from error
    return Packed(data, _asked(data, foreign_codes=not _is_stock(serde)))


def packed_list(items: Sequence[Packed]) -> Packed:
    """The list of values that were packed one by one."""
    return Packed(
        list_of_packed([item.data for item in items]),
        frozenset[Asked]().union(*(item.asks for item in items)),
    )


def load_packed(
    packed: Packed, *, serde: SerializerProtocol, allow: Iterable[type | ClassName] = frozenset()
) -> Any:
    """`decode` of a packed value."""
    return _load(("msgpack", packed.data), serde, _named(frozenset(allow)), packed.asks)


def _typed(value: Json) -> Typed:
    try:
        return from_json(value)
    except ValueError as error:
        raise _changed_there(error) from error


def _changed_there(error: ValueError) -> DecodingRefused:
    return DecodingRefused(
        f"what the store holds is {error}: it was changed there, or written by a newer release"
    )


def _load(
    typed: Typed,
    serde: SerializerProtocol,
    allow: Mapping[ClassName, type | None],
    asks: frozenset[Asked] | None = None,
) -> Any:
    kind, data = typed
    if kind.partition("+")[0] == "pickle":
        message = "a pickle is never loaded, since it can run any code: save values that msgpack can hold"
        raise DecodingRefused(message)
    if isinstance(serde, EncryptedSerializer) and type(serde).loads_typed is EncryptedSerializer.loads_typed:
        # Decrypted here, to judge what is inside: a cipher need not prove who wrote it, nor as which kind.
        kind, plus, cipher = kind.partition("+")
        return _load((kind, serde.cipher.decrypt(cipher, data) if plus else data), serde.serde, allow)
    if isinstance(serde, JsonPlusSerializer):
        stock = _is_stock(serde)
        if kind == "msgpack":
            judged = _judged(_asked(data, foreign_codes=not stock) if asks is None else asks, allow)
            if not _has_own_hook(serde):
                return _built(serde, data, Builder(judged, {n: c for n, c in allow.items() if c is not None}))
        elif kind == "json":
            _refuse_constructors(data)
        elif stock and kind not in _PLAIN_KINDS:
            message = f"this checkpoint value is {_shown(kind)}: give the saver the serializer that wrote it"
            raise DecodingRefused(message)
    return serde.loads_typed((kind, data))


def _built(serde: JsonPlusSerializer, data: bytes, builder: Builder) -> Any:
    serde = copy.copy(serde)
    serde._unpack_ext_hook = builder  # noqa: SLF001 # pyright: ignore[reportPrivateUsage] - loads_typed may be derived
    try:
        return serde.loads_typed(("msgpack", data))
    except Exception as error:
        if builder.failure is None:
            raise
        raise _not_taken(builder.failure) from error


def _not_taken(failure: Failure) -> DecodingRefused:
    named = _shown(f"{failure.module}.{failure.name}")
    return DecodingRefused(
        f"this checkpoint holds a value of {named} that the class does not take ({failure.error}), probably since it "
        "changed after the save: let it take the old form too (a default, a validator, _missing_), pass the class "
        "itself in allow=[…] if another one has its name, or read the thread with the release that saved it",
        module=_shown(failure.module),
        name=_shown(failure.name),
    )


def _is_stock(serde: SerializerProtocol) -> bool:
    return type(serde) is JsonPlusSerializer and not _has_own_hook(serde)


def _has_own_hook(serde: JsonPlusSerializer) -> bool:
    return bool(getattr(serde, "_custom_unpack_ext_hook", False))


@lru_cache(maxsize=32)
def _named(allow: frozenset[type | ClassName]) -> Mapping[ClassName, type | None]:
    """What is allowed by its stored name, with the class where that was given."""
    by_name: dict[ClassName, type | None] = {each: None for each in allow if not isinstance(each, type)}
    return by_name | {(each.__module__, each.__name__): each for each in allow if isinstance(each, type)}


# --- judging --------------------------------------------------------------------------------------------


def _judged(asked: Iterable[Asked], allow: Mapping[ClassName, object]) -> frozenset[ClassName]:
    """The classes that are asked for; all of them may be built."""
    for code, module, name, method in asked:
        allowed = (module, name) in allow
        if code == _METHOD_CODE:
            if not (allowed and method == _OWN_METHOD) and (module, name, method) not in _SAFE_METHODS:
                _refuse(module, name, _ONLY_DATETIME)
        elif not allowed and (module, name) not in _SAFE_TYPES:
            _judge_class(module, name)
    return frozenset((module, name) for _, module, name, _ in asked)


def _asked(data: bytes, *, foreign_codes: bool) -> frozenset[Asked]:
    """All that the bytes want called.

    An unpacking of its own, so that it meets each extension that loading will meet, also one that a repeated
    key hides from the result.
    """
    asked: set[Asked] = set()

    def note(code: int, payload: bytes) -> None:
        if code in NAMING_CODES:
            match unpack(payload, note):
                case [str(module), str(name), _]:
                    asked.add((code, module, name, ""))
                case [str(module), str(name), _, str(method)]:
                    asked.add((code, module, name, method))
                case _:
                    raise ValueError(code)
        elif code in HOLDING_CODES:
            unpack(payload, note)
        elif not foreign_codes:
            raise ValueError(code)  # LangGraph's serializer would make None of it

    try:
        unpack(data, note)
    except ValueError as error:
        message = "this checkpoint value is not msgpack of the form that LangGraph's serializer writes"
        raise DecodingRefused(message) from error
    return frozenset(asked)


def _judge_class(module: str, name: str) -> None:
    if module not in sys.modules:
        _refuse(module, name, f"its module is not imported here: import {_shown(module)} first")
    found = imported(module, name)
    if found is None:
        _refuse(module, name, "its module has no such name at the top level (renamed, or defined further in)")
    if not _is_plain_value_class(found):
        _refuse(module, name, "it is no pydantic model, dataclass, enum or named tuple")


def _is_plain_value_class(found: object) -> bool:
    if not isinstance(found, type):
        return False
    bases: set[object] = {*found.__mro__}
    return (
        not _PLAIN_BASES.isdisjoint(bases)
        or imported("pydantic.v1.main", "BaseModel") in bases
        or (tuple in bases and hasattr(found, "_fields"))
        or dataclasses.is_dataclass(found)
    )


def _refuse(module: str, name: str, why: str) -> NoReturn:
    raise DecodingRefused(
        f"this checkpoint asks for {_shown(f'{module}.{name}')}, which is not built: {why}; "
        f"if the class is yours and safe to build, pass allow=[{_shown(repr((module, name)))}]",
        module=_shown(module),
        name=_shown(name),
    )


def _shown(text: str) -> str:
    return text[:_SHOWN_CHARACTERS]


def _refuse_constructors(data: bytes) -> None:
    """Refuse an object in LangGraph's old JSON form; it is no longer written, only plain values pass."""

    def refuse_marked(value: dict[str, Any]) -> None:
        if "lc" in value:
            raise DecodingRefused("this checkpoint value asks for an object in LangGraph's old JSON form")

    try:
        json.loads(data, object_hook=refuse_marked)
    except (ValueError, RecursionError) as error:
        raise DecodingRefused("this checkpoint value is not the JSON it is said to be") from error
