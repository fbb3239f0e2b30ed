"""The JSON of calls and replies between a client and the service.

States and parts are texts that were measured and hashed once, so they are spliced in as they are and never
written anew.
"""

from __future__ import annotations

from typing import Any, cast

from pydantic_core import from_json

from runmemory_core.model import RawJson
from runmemory_core.operations.calls import Call
from runmemory_core.policy.json_rules import write as write_plain


class _Raw(str):
    """Marks `RawJson` at run time."""

    __slots__ = ()


_NESTED = (dict, list, _Raw)


def raw(text: str) -> RawJson:
    """``text`` marked as final JSON for `write` and `revive`."""
    return RawJson(_Raw(text))


def write(value: Any) -> str:
    """Compact JSON of ``value``, with each `raw` text standing as it is."""
    match value:
        case _Raw():
            return str(value)
        case dict():
            members = cast("dict[str, Any]", value).items()
            return "{" + ",".join(f"{write_plain(name)}:{write(inner)}" for name, inner in members) + "}"
        case list() if _nests(items := cast("list[Any]", value)):
            return "[" + ",".join(map(write, items)) + "]"
        case _:
            return write_plain(value)


def revive(value: Any) -> Any:
    """``value`` with each `raw` text parsed: what a reader of `write`'s text would get."""
    match value:
        case _Raw():
            return from_json(value, allow_inf_nan=False)
        case dict():
            members = cast("dict[str, Any]", value).items()
            return {name: revive(inner) if isinstance(inner, _NESTED) else inner for name, inner in members}
        case list() if _nests(items := cast("list[Any]", value)):
            return [revive(item) for item in items]
        case _:
            return value


def _nests(items: list[Any]) -> bool:
    return any(isinstance(item, _NESTED) for item in items)


def write_call(call: Call) -> bytes:
    """The body of the request for ``call``; absent arguments are left out."""
    fields = call.request.model_dump(mode="json", exclude_unset=True)
    if call.state is not None:
        fields["state"] = raw(call.state.text)
    return write(fields).encode()
