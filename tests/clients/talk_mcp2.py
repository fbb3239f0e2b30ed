"""Run by the interpreter that has mcp 2.x: the five tools through its client. ``URL KEY`` -> JSON."""

# pyright: basic, reportMissingImports=false, reportAttributeAccessIssue=false

import asyncio
import json
import sys

from mcp.client import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared._httpx_utils import create_mcp_http_client


async def main(url, key):
    headers = {"Authorization": f"Bearer {key}"}
    async with (
        create_mcp_http_client(headers=headers) as http,
        Client(streamable_http_client(url, http_client=http)) as client,
    ):
        listed = await client.list_tools()
        await client.call_tool("save_checkpoint", {"run_id": "r", "step": "one", "state": {"cursor": 1}})
        found = await client.call_tool("resume", {"run_id": "r"})
        refused = await client.call_tool("resume", {})
        return {
            "instructions": client.instructions,
            "tools": [tool.name for tool in listed.tools],
            "resumed": found.structured_content,
            "refused": [refused.is_error, refused.content[0].text],
        }


print(json.dumps(asyncio.run(main(*sys.argv[1:]))))
