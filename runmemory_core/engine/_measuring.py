"""How large what a commit puts and writes is when put together, without reading what the store holds of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from pydantic_core import from_json

from runmemory_core import parts
from runmemory_core.engine._context import Context
from runmemory_core.engine._scrubbing import nodes_of_change
from runmemory_core.operations.storage import Change, Commit
from runmemory_core.policy import admission
from runmemory_core.policy.json_rules import write


@dataclass(frozen=True, slots=True)
class Sizes:
    """The bytes of parts: of each one's text, and of the elements that each page stands for."""

    texts: dict[str, int]
    pages: dict[str, int]

    def of(self, node: parts.Node) -> int:
        """The bytes of the JSON that ``node`` stands for."""
        return parts.measure(node, self.texts.__getitem__, self.pages.__getitem__)


def named(request: Commit) -> set[str]:
    """The addresses that the changes name, those inside the pages they bring among them."""
    nodes = [node for change in request.operations for node in nodes_of_change(change)]
    found = {address for node in nodes for address in parts.direct_addresses(node)}
    for page in _pages(request) & request.parts.keys():
        found.update(parts.page_addresses(request.parts[page]))
    return found


def measured(at: Context, run: Any, request: Commit) -> tuple[Sizes, list[str]]:
    """The sizes of all parts that a commit names, and which it neither holds nor the store.

    A part that the store never saw as a page is missing where it is named as one: nobody looked at what it names.
    """
    sent, pages = request.parts, _pages(request)
    sizes = Sizes({address: _bytes(text) for address, text in sent.items()}, {})
    needed = named(request) - sent.keys()
    if needed and run is not None and run["deleted_at"] is None:
        for row in at.tx.all(
            "present_parts", account_id=at.account_id, run=run["run"], addresses=write(list(needed))
        ):
            sizes.texts[row["address"]] = row["bytes"]
            if row["list_bytes"] is not None:
                sizes.pages[row["address"]] = row["list_bytes"]
    missing = (needed - sizes.texts.keys()) | (pages - sizes.pages.keys() - sent.keys())
    if not missing:
        for page in pages & sent.keys():
            sizes.pages[page] = parts.measure_elements(from_json(sent[page]), sizes.texts.__getitem__)
    return sizes, sorted(missing)


def check_states(request: Commit, sizes: Sizes, limit: int) -> None:
    """Raise `StateTooLarge`, with the sizes by channel, for a state or the results of a task over ``limit``."""
    for change in request.operations:
        channels = _channels(change)
        size = sizes.of({"o": channels})
        if size > limit:
            by_channel: dict[str, int] = {}
            for channel, node in channels:
                by_channel[channel] = by_channel.get(channel, 0) + sizes.of(node)
            raise admission.run_state_too_large(size, limit, by_channel)


def _channels(change: Change) -> list[tuple[str, parts.Node]]:
    return [*change.state, *((channel, node) for _, channel, node in change.writes)]


def _pages(request: Commit) -> set[str]:
    nodes = (node for change in request.operations for node in nodes_of_change(change))
    return {page for node in nodes for page in parts.pages(node)}


def _bytes(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode())
