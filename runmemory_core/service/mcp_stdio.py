"""MCP over stdin and stdout, for clients that start a local command: the engine on a file of this machine."""

from __future__ import annotations

import asyncio
import io
import sys
from collections.abc import AsyncIterable
from typing import Any

import anyio
from anyio.streams.memory import MemoryObjectSendStream
from mcp.server.stdio import stdio_server
from mcp.shared.message import SessionMessage
from mcp_types import jsonrpc_message_adapter

from runmemory_core.model import Caller
from runmemory_core.service.mcp_messages import Misfit, answers_nothing, message_in
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
    owner = Asker(Caller(), database=engine.store.where)
    server = tool_server(engine, lambda _: owner)
    nothing = anyio.wrap_file(io.StringIO())
    send, incoming = anyio.create_memory_object_stream[SessionMessage | Exception]()
    # The SDK's own reader would leave malformed lines without an answer, so it is given none to read.
    async with stdio_server(stdin=nothing) as (_, outgoing), anyio.create_task_group() as tasks:
        tasks.start_soon(_read, anyio.wrap_file(sys.stdin.buffer), send, outgoing)
        await server.run(incoming, outgoing, server.create_initialization_options())


async def _read(
    lines: AsyncIterable[bytes], messages: MemoryObjectSendStream[SessionMessage | Exception], outgoing: Any
) -> None:
    """Hand on each line that is a message, and answer each other one."""
    async with messages:
        async for line in lines:
            if not line.strip():
                continue
            try:
                message = message_in(line)
            except Misfit as misfit:
                await outgoing.send(_session_message(misfit.answer))
                continue
            if not answers_nothing(message):
                await messages.send(_session_message(line))


def _session_message(text: bytes) -> SessionMessage:
    return SessionMessage(jsonrpc_message_adapter.validate_json(text, by_name=False))
