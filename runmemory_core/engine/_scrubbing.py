"""What the service does to a commit before it is stored: values under names of secrets are removed.

The adapter has done the same before sending; this is for clients that did not. A part keeps its address when its text
changes, since the client goes on naming it so. Pieces of one long text are no JSON by themselves: only the client
sees them whole.
"""

from __future__ import annotations

from typing import Any

from pydantic_core import from_json

from runmemory_core import parts
from runmemory_core.operations.storage import Change, Commit
from runmemory_core.policy.json_rules import write
from runmemory_core.policy.tagged_json import redact_tagged

_SOME_VALUE = "a value"


def scrubbed(request: Commit) -> Commit:
    """``request`` without the values that stand under names of secrets."""
    changes = [_change(change) for change in request.operations]
    texts = {address: _text(text) for address, text in request.parts.items()}
    return request.model_copy(update={"operations": changes, "parts": texts})


def _change(change: Change) -> Change:
    return change.model_copy(
        update={
            "state": [(channel, _node(channel, node)) for channel, node in change.state],
            "writes": [(index, channel, _node(channel, node)) for index, channel, node in change.writes],
            "metadata": redact_tagged(change.metadata).value,
        }
    )


def _node(channel: str, node: parts.Node) -> parts.Node:
    if "=" in node:
        return {"=": _value(channel, node["="])}
    # A part or a list is never empty, so under a name of a secret it goes whole.
    return node if _value(channel, _SOME_VALUE) == _SOME_VALUE else {"=": _value(channel, _SOME_VALUE)}


def _value(channel: str, value: Any) -> Any:
    return redact_tagged(value, name=channel).value


def _text(text: str) -> str:
    try:
        value = from_json(text)
    except ValueError:
        return text
    redacted = redact_tagged(value)
    return write(redacted.value) if redacted.removed else text
