"""The five tools as an MCP server, whatever carries its messages: arguments in, result or refusal out.

Belongs here: what a tool call answers. How HTTP and its clients are borne with is `mcp_endpoint`'s, what agents
read is `runmemory_core.operations.agents`'.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias, cast

import mcp_types as types
from mcp import MCPError
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel.server import Server
from pydantic_core import from_json

from runmemory_core.errors import OverQuota, RunMemoryError
from runmemory_core.model import HOSTED_URL, RELEASE, Caller
from runmemory_core.operations import OPERATIONS, TOOLS
from runmemory_core.operations.agents import INSTRUCTIONS, PROBLEM_META, for_agents, tools
from runmemory_core.operations.calls import Call, prepare
from runmemory_core.policy.json_rules import write
from runmemory_core.service.answers import discreet, fault
from runmemory_core.service.rest import LARGE_BYTES, Engine

_SCHEMAS = {tool["name"]: tool["inputSchema"] for tool in tools()}
_NAMES = frozenset(_SCHEMAS)
_COMPLETE = {"isError": False, "resultType": "complete"}
"""The second is needed from 2026-07-28 on and taken out for earlier revisions."""

Context: TypeAlias = ServerRequestContext[Any, Any]
Result = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Asker:
    """Who sent a message, how long it was, and where a long state is read: at the service, or in a database."""

    caller: Caller
    size_bytes: int = 0
    where: str | None = None
    database: str | None = None
    refusal: RunMemoryError | None = None
    """Why the message is refused, when its envelope is sound and what it carries is not."""


def tool_server(engine: Engine, who: Callable[[Context], Asker]) -> Server[Any]:
    """The MCP server over ``engine``; ``who`` tells of a message's context who sent it."""

    async def list_tools(
        context: Context, params: types.PaginatedRequestParams | None
    ) -> types.ListToolsResult:
        del context, params
        return types.ListToolsResult.model_validate({"tools": tools()})

    async def call_tool(context: Context, params: types.CallToolRequestParams) -> Any:
        if params.name not in _NAMES:
            known = ", ".join(operation.name for operation in TOOLS)
            raise MCPError(types.INVALID_PARAMS, f"there is no tool of this name; the tools are {known}")
        return await _call(engine, who(context), params.name, params.arguments or {})

    return Server(
        "run-memory",
        title="Run Memory",
        version=RELEASE,
        website_url=HOSTED_URL,
        instructions=INSTRUCTIONS,
        get_tool_input_schema=_SCHEMAS.get,
        on_list_tools=list_tools,
        on_call_tool=call_tool,
    )


async def _call(engine: Engine, asker: Asker, name: str, arguments: Mapping[str, Any]) -> Result:
    if asker.refusal is not None:
        return _refusal(asker.refusal)
    try:
        call = await _prepared(engine, asker, name, arguments)
        body, _ = await engine.run(call, asker.caller, size_bytes=asker.size_bytes)
        reply = from_json(body)
    except OverQuota as error:
        return _result(_over_quota(name, error)) | _for_programs(error)
    except RunMemoryError as error:
        return _refusal(discreet(error, where=engine.store.where))
    except Exception as error:  # noqa: BLE001 - whatever it is, the model is answered and the log has the place
        return _refusal(fault(error))
    return _result(for_agents(cast("dict[str, Any]", reply), where=asker.where, database=asker.database))


async def _prepared(engine: Engine, asker: Asker, name: str, arguments: Mapping[str, Any]) -> Call:
    if asker.size_bytes < LARGE_BYTES:
        return prepare(name, arguments)
    return await asyncio.get_running_loop().run_in_executor(engine.threads, prepare, name, arguments)


def _result(shown: dict[str, Any]) -> Result:
    return {"content": [{"type": "text", "text": write(shown)}], "structuredContent": shown} | _COMPLETE


def _refusal(error: RunMemoryError) -> Result:
    return {
        "content": [{"type": "text", "text": error.detail}],
        "isError": True,
        "resultType": "complete",
    } | _for_programs(error)


def _for_programs(error: RunMemoryError) -> Result:
    return {"_meta": {PROBLEM_META: error.to_problem()}}


def _over_quota(name: str, error: OverQuota) -> dict[str, Any]:
    """An answer, not a failure: nothing is wrong with the call, and repeating it today is of no use."""
    saved = {"saved": False} if OPERATIONS[name].request.model_fields.keys() >= {"state"} else {}
    hints = ["usage_and_upgrade tells how to get more calls now; it is not metered"]
    return saved | {"outcome": error.detail, "code": error.code} | error.facts | {"hints": hints}
