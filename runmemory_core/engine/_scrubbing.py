"""What the service does to a commit before it is stored: values under names of secrets are removed.

The adapter has done the same before sending; this is for clients that did not. A part keeps its address when its text
changes, since the client goes on naming it so. Pieces of one long text are no JSON by themselves: only the client
sees them whole.
"""

from __future__ import annotations

from typing import Any, cast

from pydantic_core import from_json

from runmemory_core import parts
from runmemory_core.operations.storage import Change, Commit
from runmemory_core.policy.json_rules import write
from runmemory_core.policy.tagged_json import redact_tagged

_SOME_VALUE = "a value"
OWN_METADATA = frozenset({"source", "step", "parents", "run_id", "counters_since_delta_snapshot"})
_VERSIONS = frozenset({"versions", "seen"})


def scrubbed(request: Commit) -> Commit:
    """``request`` without the values that stand under names of secrets."""
    changes = [_change(change) for change in request.operations]
    pages = {
        address for change in changes for node in nodes_of_change(change) for address in parts.pages(node)
    }
    texts = {
        address: _page(text) if address in pages else _text(text) for address, text in request.parts.items()
    }
    return request.model_copy(update={"operations": changes, "parts": texts})


def _change(change: Change) -> Change:
    return change.model_copy(
        update={
            "state": [(channel, _node(channel, node)) for channel, node in change.state],
            "writes": [(index, channel, _node(channel, node)) for index, channel, node in change.writes],
            "metadata": _metadata(change.metadata),
            "extra": None if change.extra is None else _extra(change.extra),
        }
    )


def _metadata(metadata: dict[str, Any]) -> dict[str, Any]:
    """Redacted, but for what LangGraph itself goes by: names and ids of its own, which are no user's secrets."""
    own = {name: value for name, value in metadata.items() if name in OWN_METADATA}
    rest = {name: value for name, value in metadata.items() if name not in OWN_METADATA}
    return own | redact_tagged(rest).value if rest else own


def _extra(node: parts.Node) -> parts.Node:
    """Maps of versions are kept as lists of pairs, because the names in them are data: only members are judged."""
    value = node.get("=")
    if not isinstance(value, dict):
        return _node("", node)
    members = cast("dict[str, Any]", value)
    return {
        "=": {name: inner if name in _VERSIONS else _value(name, inner) for name, inner in members.items()}
    }


def _node(channel: str, node: parts.Node) -> parts.Node:
    if "=" in node:
        return {"=": _value(channel, node["="])}
    if "l" in node and _value(channel, _SOME_VALUE) == _SOME_VALUE:
        return {"l": [_node(channel, item) if "=" in item else item for item in node["l"]]}
    # A part or a list is never empty, so under a name of a secret it goes whole.
    return node if _value(channel, _SOME_VALUE) == _SOME_VALUE else {"=": _value(channel, _SOME_VALUE)}


def _value(channel: str, value: Any) -> Any:
    return redact_tagged(value, name=channel).value


def nodes_of_change(change: Change) -> list[parts.Node]:
    """Every node of a change."""
    nodes = [node for _, node in change.state] + [node for _, _, node in change.writes]
    return [*nodes, change.extra] if change.extra else nodes


def _page(text: str) -> str:
    """The nodes of a page with what they hold inline redacted; of which channel they are is not known here."""
    nodes = [_node("", node) for node in from_json(text)]
    written = write(nodes)
    return written if written != write(from_json(text)) else text


def _text(text: str) -> str:
    try:
        value = from_json(text)
    except ValueError:
        return text
    redacted = redact_tagged(value)
    return write(redacted.value) if redacted.removed else text
