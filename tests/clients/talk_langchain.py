"""Run by the interpreter that has langchain-mcp-adapters: the tools as LangChain's. ``URL KEY`` -> JSON."""

# pyright: basic, reportMissingImports=false, reportAttributeAccessIssue=false

import asyncio
import json
import sys

from langchain_mcp_adapters.client import MultiServerMCPClient


async def main(url, key):
    headers = {"Authorization": f"Bearer {key}"}
    server = {"transport": "streamable_http", "url": url, "headers": headers}
    tools = {tool.name: tool for tool in await MultiServerMCPClient({"run-memory": server}).get_tools()}
    await tools["save_checkpoint"].ainvoke({"run_id": "r", "step": "one", "state": {"cursor": 1}})
    found = await tools["resume"].ainvoke({"run_id": "r"})
    text = found if isinstance(found, str) else found[0]["text"]
    return {"tools": list(tools), "resumed": json.loads(text)}


print(json.dumps(asyncio.run(main(*sys.argv[1:]))))
