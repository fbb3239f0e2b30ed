"""What directories of tools, and agents that look around, read of a service: made from the operation table.

A service answers these files with its own address in them. The package carries them in `published`, with the
address of the hosted service; ``make format`` renews those.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, NamedTuple

from runmemory_core.model import RELEASE, SUMMARY
from runmemory_core.operations import TOOLS
from runmemory_core.operations.agents import INSTRUCTIONS, tools
from runmemory_core.service import openapi

NAME = "run-memory"
TITLE = "Run Memory"

_SERVER_SCHEMA = "https://static.modelcontextprotocol.io/schemas/2025-12-11/server.schema.json"
_WHEN = (
    "Use it whenever work takes several steps and might be interrupted: imports, migrations, crawls, long "
    "refactorings, batches of documents. Call resume first, save_checkpoint after each step; after a crash, a "
    "timeout or a context compaction the work goes on where it was instead of starting over."
)


class Published(NamedTuple):
    """One file: where it is served, where it lies in the package, its type, and its text for an address."""

    path: str
    file: str
    media_type: str
    text: Callable[[str], str]


def skill(where: str) -> str:
    """SKILL.md in the Agent Skills form: who reads its head decides whether to read on."""
    needs = f"Needs the tools of the MCP server at {where}/mcp, or HTTP access to {where}."
    rows = "\n".join(f"| `{operation.name}` | {operation.description} |" for operation in TOOLS)
    return f"""\
---
name: {NAME}
description: {json.dumps(f"{SUMMARY} {_WHEN}")}
license: MIT
compatibility: {json.dumps(needs)}
metadata:
  version: "{RELEASE}"
---

# {TITLE}

{INSTRUCTIONS}
## The tools

| tool | what it does |
|---|---|
{rows}

## A run, start to end

1. `resume` with `{{"run_id": "invoice-import"}}` answers `"status": "new", "attempt": 1`: begin.
2. `save_checkpoint` with `{{"run_id": "invoice-import", "step": "imported page 1", "attempt": 1,
   "state": {{"cursor": "page 2"}}, "done": ["page 1"]}}` answers `"saved": true, "seq": 1`.
3. The process dies. The next one calls `resume` with the same run_id and gets `"status": "resumed",
   "attempt": 2`, the state with the cursor, and `done`: it goes on with page 2.
4. After the last page: `save_checkpoint` with `"status": "finished"`.

## When the tools are not connected

{_connecting(where)}
Without any of these, POST the same arguments as JSON: `{where}/api/run/resume`, `{where}/api/run/save_checkpoint`.
The key goes into the header `Authorization: Bearer KEY`. It is optional: without one nothing is stored, and
`would_save` shows what would be. A long state is read in parts with
`GET {where}/api/run/RUN_ID/state?seq=SEQ&offset=0&length=10000`.
"""


def _connecting(where: str) -> str:
    return f"""\
- Claude Code: `claude mcp add --transport http {NAME} {where}/mcp`, with a key
  `--header "Authorization: Bearer KEY"` behind it.
- Codex: `codex mcp add {NAME} --url {where}/mcp`, with a key `--bearer-token-env-var RUNMEMORY_API_KEY`.
- Others: a remote MCP server (Streamable HTTP) with the URL `{where}/mcp`.
- Without a service, on this machine: `pip install "runmemory[mcp]"`, then a local MCP server with the command
  `runmemory mcp`.

"""


def tool(where: str) -> str:
    """tool.json: the entry of a catalogue, with what is needed to connect and to choose."""
    return _json(
        {
            "name": NAME,
            "title": TITLE,
            "description": SUMMARY,
            "version": RELEASE,
            "homepage": where,
            "license": "MIT",
            "mcp": {"transport": "streamable-http", "url": f"{where}/mcp"},
            "rest": {
                "method": "POST",
                "url": f"{where}/api/run/{{tool}}",
                "openapi": f"{where}/openapi.json",
            },
            "auth": {"required": False, "scheme": "bearer", "header": "Authorization"},
            "skill": f"{where}/SKILL.md",
            "tools": tools(),
        }
    )


def server(where: str) -> str:
    """server.json: the entry of the MCP registry, by its schema of 2025-12-11."""
    key = {
        "name": "Authorization",
        "description": "Bearer and an API key. Optional: without one nothing is stored, calls are previews.",
        "isRequired": False,
        "isSecret": True,
    }
    return _json(
        {
            "$schema": _SERVER_SCHEMA,
            "name": f"com.cloudforbots/{NAME}",
            "title": TITLE,
            "description": SUMMARY,
            "version": RELEASE,
            "websiteUrl": where,
            "remotes": [{"type": "streamable-http", "url": f"{where}/mcp", "headers": [key]}],
        }
    )


def llms(where: str) -> str:
    """llms.txt: the way to everything else, for a model that reads one page."""
    listed = "\n".join(
        f"- [{operation.name}]({where}{operation.path}): {operation.description}" for operation in TOOLS
    )
    return f"""\
# {TITLE}

> {SUMMARY} {_WHEN}

{INSTRUCTIONS}
## Connect

{_connecting(where)}
## Tools

{listed}

## More

- [SKILL.md]({where}/SKILL.md): the same with an example, as an agent skill
- [tool.json]({where}/tool.json): the catalogue entry with the schemas of all arguments
- [server.json]({where}/server.json): the entry of the MCP registry
- [openapi.json]({where}/openapi.json): every call over HTTP
"""


def _openapi(where: str) -> str:
    return _json(openapi.document(where))


def _json(value: Any) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False) + "\n"


FILES = (
    Published("/SKILL.md", f"{NAME}/SKILL.md", "text/markdown", skill),
    Published("/tool.json", "tool.json", "application/json", tool),
    Published("/server.json", "server.json", "application/json", server),
    Published("/llms.txt", "llms.txt", "text/plain", llms),
    Published("/openapi.json", "openapi.json", "application/json", _openapi),
)
