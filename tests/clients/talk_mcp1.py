"""Run by the interpreter that has mcp 1.x: the five tools through its client. ``URL KEY`` -> JSON."""

# pyright: basic, reportMissingImports=false, reportAttributeAccessIssue=false

import asyncio
import json
import sys

from mcp import ClientSession
from mcp.client.streamable_http import streamablehttp_client


async def main(url, key):
    headers = {"Authorization": f"Bearer {key}"}
    async with (
        streamablehttp_client(url, headers=headers) as (incoming, outgoing, _),
        ClientSession(incoming, outgoing) as session,
    ):
        begun = await session.initialize()
        listed = await session.list_tools()
        await session.call_tool("save_checkpoint", {"run_id": "r", "step": "one", "state": {"cursor": 1}})
        found = await session.call_tool("resume", {"run_id": "r"})
        refused = await session.call_tool("resume", {})
        return {
            "instructions": begun.instructions,
            "tools": [tool.name for tool in listed.tools],
            "resumed": found.structuredContent,
            "refused": [refused.isError, refused.content[0].text],
        }


print(json.dumps(asyncio.run(main(*sys.argv[1:]))))
