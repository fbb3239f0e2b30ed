"""MCP over stdin and stdout, for clients that start a local command: the engine on a file of this machine."""

from __future__ import annotations

import asyncio
import io
import signal
import sys
from collections.abc import AsyncIterable
from dataclasses import replace
from typing import Any

import anyio
from anyio.streams.memory import MemoryObjectSendStream
from mcp.server.stdio import stdio_server
from mcp.shared.message import ServerMessageMetadata, SessionMessage
from mcp_types import jsonrpc_message_adapter

from runmemory_core.errors import RunMemoryError
from runmemory_core.model import Caller
from runmemory_core.service.mcp_messages import Misfit, message_in
from runmemory_core.service.mcp_tools import Asker, tool_server
from runmemory_core.service.rest import Engine
from runmemory_core.service.settings import Settings
from runmemory_core.store import open_store


def speak(settings: Settings) -> None:
    """Answer until stdin ends. Raises `RunMemoryError` when the store cannot be opened."""
    # A handler would wait for the thread that reads stdin; what was acknowledged is on disk whenever the process ends.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    store = open_store(settings.database)
    engine = Engine(store, settings)
    try:
        asyncio.run(_speak(engine))
    finally:
        engine.close()
        store.close()


async def _speak(engine: Engine) -> None:
    owner = Asker(Caller(), database=engine.store.where)
    server = tool_server(engine, lambda context: replace(owner, refusal=context.request))
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
                incoming = message_in(line)
            except Misfit as misfit:
                await outgoing.send(_session_message(misfit.answer))
                continue
            if not incoming.answers_nothing:
                await messages.send(_session_message(incoming.text, incoming.refusal))


def _session_message(text: bytes, refusal: RunMemoryError | None = None) -> SessionMessage:
    message = jsonrpc_message_adapter.validate_json(text, by_name=False)
    return SessionMessage(message, ServerMessageMetadata(request_context=refusal))
