"""The five tools from Python where only MCP is let through: RUNMEMORY_URL and RUNMEMORY_API_KEY name the service."""

# [start:all]
import os

from runmemory_core import Client

with Client(f"mcp+{os.environ['RUNMEMORY_URL']}/mcp") as client:
    print(client.save_checkpoint("pages-over-mcp", "page 1", state={"cursor": 1}).outcome)
# [end:all]
