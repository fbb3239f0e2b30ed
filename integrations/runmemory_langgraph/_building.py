"""Building the objects that judged bytes name, or saying which class does not take what was saved of it.

LangGraph's own reconstruction never fails: where a class changed since, it hands on a dict, a list or an unvalidated
model instead, and the graph goes on with that. Here each class takes all that was saved of it, or nothing is loaded.

Belongs here: calling the classes. Does not belong here: whether they may be called (`_decoding`).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from enum import Enum
from importlib import import_module
from typing import Any, Final, NamedTuple, TypeAlias, cast

from langgraph.types import Send
from pydantic import BaseModel

from runmemory_core.policy.secret_formats import MARKER
from runmemory_langgraph._bridge import unpack

try:
    from langgraph.checkpoint.serde import types as _types

    snapshot_of = _types._DeltaSnapshot  # noqa: SLF001 # pyright: ignore[reportPrivateUsage]
except (
    ImportError,
    AttributeError,
):  # the class is private; without it a snapshot is refused as what nothing takes
    snapshot_of = None

ClassName: TypeAlias = tuple[str, str]
"""Module and name of a class, as stored."""

_UNNAMED: Final = {6: ("numpy", "ndarray"), 7: ("langgraph", "snapshot of a delta channel")}
_MARKER_BYTES: Final = MARKER.encode()


class Failure(NamedTuple):
    """A class that did not take what was saved of it; nothing of the value itself."""

    module: str
    name: str
    error: str


class Builder:
    """An extension hook that builds ``judged`` classes; those in ``given`` are called as they are, not by name.

    The unpacker hides exceptions of its hook, so ``failure`` says what failed first. For one value.
    """

    def __init__(self, judged: frozenset[ClassName], given: Mapping[ClassName, type]) -> None:
        self._judged = judged
        self._given = given
        self.failure: Failure | None = None

    def __call__(self, code: int, data: bytes) -> Any:
        """The object of one extension."""
        held = unpack(data, self)
        named = _UNNAMED[code] if code in _UNNAMED else (held[0], held[1])
        try:
            if code == 7:
                return cast("Any", snapshot_of)(held)
            if code == 6:
                return _array(*held)
            return _BUILDERS[code](self._found(named), data, *held[2:])
        except Exception as error:
            self.failure = self.failure or Failure(*named, type(error).__name__)
            raise

    def _found(self, named: ClassName) -> Any:
        if named not in self._judged:
            raise LookupError(
                named
            )  # a second lock: the judgement named every class that these bytes ask for
        return self._given.get(named) or getattr(import_module(named[0]), named[1])


def _array(dtype: str, shape: list[int], order: Any, data: bytes) -> Any:
    import numpy as np  # noqa: PLC0415 - whoever has no arrays need not have it

    return np.frombuffer(data, dtype=np.dtype(dtype)).reshape(shape, order=order)


def _of_one(found: Any, _: bytes, held: Any) -> Any:
    if held.__class__ is list and isinstance(found, type) and issubclass(found, (Enum, set, frozenset)):
        held = _as_hashable(held)
    return cast("Callable[[Any], Any]", found)(held)


def _of_positions(found: Any, _: bytes, held: list[Any]) -> Any:
    if found is Send and len(held) == 3:
        return Send(held[0], held[1], timeout=held[2])  # pyright: ignore[reportCallIssue] - newer than 1.0
    return found(*held)


def _of_names(found: Any, _: bytes, held: dict[str, Any]) -> Any:
    """A dataclass gets its fields that its constructor does not take as well."""
    later = (
        {field.name for field in dataclasses.fields(found) if not field.init} if _is_dataclass(found) else ()
    )
    made = found(**{name: value for name, value in held.items() if name not in later})
    for name in held.keys() & later:
        object.__setattr__(made, name, held[name])
    return made


def _of_method(found: Any, _: bytes, held: Any, method: str) -> Any:
    return getattr(found, method)(held)


def _of_old_model(found: Any, _: bytes, held: dict[str, Any]) -> Any:
    fields: Mapping[str, Any] = getattr(found, "__fields__", {})
    return found(**{fields[name].alias if name in fields else name: value for name, value in held.items()})


def _of_model(found: Any, data: bytes, held: dict[str, Any], _method: str) -> Any:
    """A pydantic model from what it dumped, which goes by the names of fields and never by aliases."""
    try:
        return found(**held)
    except Exception:
        if not (isinstance(found, type) and issubclass(found, BaseModel)):
            raise
        try:
            return found.model_validate(held, by_name=True)  # since pydantic 2.11
        except Exception:
            if _MARKER_BYTES not in data:
                raise
            return found.model_construct(**held)  # a removed value need not fit its field, and was warned of


def _as_hashable(held: Any) -> Any:
    """What was a tuple, as only that can have been in a set or be the value of an enum's member in good order."""
    return tuple(map(_as_hashable, cast("list[Any]", held))) if held.__class__ is list else held


def _is_dataclass(found: Any) -> bool:
    return isinstance(found, type) and dataclasses.is_dataclass(found)


_BUILDERS: Final[dict[int, Callable[..., Any]]] = {
    0: _of_one,
    1: _of_positions,
    2: _of_names,
    3: _of_method,
    4: _of_old_model,
    5: _of_model,
}
