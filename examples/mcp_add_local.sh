pip install "runmemory[mcp]"
claude mcp add run-memory -- runmemory mcp
codex mcp add run-memory -- runmemory mcp
