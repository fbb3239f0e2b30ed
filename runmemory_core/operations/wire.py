"""The JSON of calls and replies between a client and the service.

States and parts are texts that were measured and hashed once, so they are spliced in as they are and never
written anew.
"""

from __future__ import annotations

from typing import Any

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
    if isinstance(value, _Raw):
        return str(value)
    if isinstance(value, dict):
        return "{" + ",".join(f"{write_plain(k)}:{write(v)}" for k, v in value.items()) + "}"
    if isinstance(value, list) and any(isinstance(item, _NESTED) for item in value):
        return "[" + ",".join(map(write, value)) + "]"
    return write_plain(value)


def revive(value: Any) -> Any:
    """``value`` with each `raw` text parsed: what a reader of `write`'s text would get."""
    if isinstance(value, _Raw):
        return from_json(value, allow_inf_nan=False)
    if isinstance(value, dict):
        return {k: revive(v) if isinstance(v, _NESTED) else v for k, v in value.items()}
    if isinstance(value, list) and any(isinstance(item, _NESTED) for item in value):
        return [revive(item) for item in value]
    return value


def write_call(call: Call) -> bytes:
    """The body of the request for ``call``; absent arguments are left out."""
    fields = call.request.model_dump(mode="json", exclude_unset=True)
    if call.state is not None:
        fields["state"] = raw(call.state.text)
    return write(fields).encode()
