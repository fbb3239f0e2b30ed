"""Ways for a checked `Call` to reach an engine: in this process, or over HTTP, there as REST or as MCP (`wires`).

A transport has one verb. `remote` says whether an answer can get lost on the way, so that the client gives each
call an idempotency key.
"""

from __future__ import annotations

from typing import Protocol

from runmemory_core.model import Reply
from runmemory_core.operations.calls import Call


class Transport(Protocol):
    """Sends a call and waits for the reply; refusals are raised as the exceptions of the engine."""

    @property
    def remote(self) -> bool: ...

    @property
    def where(self) -> str:
        """Where calls go, for people, without credentials."""
        ...

    def send(self, call: Call, /) -> Reply: ...

    def close(self) -> None: ...


class AsyncTransport(Protocol):
    """`Transport` for an event loop."""

    @property
    def remote(self) -> bool: ...

    @property
    def where(self) -> str: ...

    async def send(self, call: Call, /) -> Reply: ...

    async def close(self) -> None: ...
