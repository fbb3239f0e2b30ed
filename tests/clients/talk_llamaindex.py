"""Run by the interpreter that has llama-index-tools-mcp: the tools as LlamaIndex's. ``URL KEY`` -> JSON."""

# pyright: basic, reportMissingImports=false, reportAttributeAccessIssue=false

import asyncio
import json
import sys

from llama_index.tools.mcp import BasicMCPClient, McpToolSpec


async def main(url, key):
    client = BasicMCPClient(url, headers={"Authorization": f"Bearer {key}"})
    tools = {tool.metadata.name: tool for tool in await McpToolSpec(client=client).to_tool_list_async()}
    await tools["save_checkpoint"].acall(run_id="r", step="one", state={"cursor": 1})
    found = await tools["resume"].acall(run_id="r")
    return {"tools": list(tools), "resumed": found.raw_output.structuredContent}


print(json.dumps(asyncio.run(main(*sys.argv[1:]))))
