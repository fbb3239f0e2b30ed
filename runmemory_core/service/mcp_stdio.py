"""MCP over stdin and stdout, for clients that start a local command: the engine on a file of this machine."""

from __future__ import annotations

import asyncio

from mcp.server.stdio import stdio_server

from runmemory_core.model import Caller
from runmemory_core.service.mcp_tools import Asker, tool_server
from runmemory_core.service.rest import Engine
from runmemory_core.service.settings import Settings
from runmemory_core.store import open_store


def speak(settings: Settings) -> None:
    """Answer until stdin ends. Raises `RunMemoryError` when the store cannot be opened."""
    store = open_store(settings.database)
    engine = Engine(store, settings)
    try:
        asyncio.run(_speak(engine))
    finally:
        engine.close()
        store.close()


async def _speak(engine: Engine) -> None:
    owner = Asker(Caller())
    server = tool_server(engine, lambda _: owner)
    async with stdio_server() as (incoming, outgoing):
        await server.run(incoming, outgoing, server.create_initialization_options())
