"""The MCP Inspector, which reports schemas that some client would misread."""

from __future__ import annotations

import json

import pytest

from runmemory_core.operations import TOOLS
from tests.clients.conformance_app import MISREAD
from tests.clients.conftest import Clients
from tests.service.serving import Service

pytestmark = pytest.mark.long


def listed(clients: Clients, url: str) -> str:
    """What the Inspector makes of the tools there; it ends well for all but its worst findings."""
    command = ["mcp-inspector", "--cli", url, "--method", "tools/list", "--strict", "--format", "json"]
    return clients.run(command)


def test_the_schemas_are_portable(clients: Clients, service: Service) -> None:
    said = json.loads(listed(clients, f"{service.url}/mcp"))  # a report on stderr, and it were no JSON
    assert said.keys() == {"result"}
    assert [tool["name"] for tool in said["result"]["tools"]] == [operation.name for operation in TOOLS]


def test_a_schema_that_some_client_misreads_is_noticed(clients: Clients, fixtures: str) -> None:
    said = listed(clients, fixtures)
    assert '"schemaFindings"' in said
    assert f'Warning: tool "{MISREAD}"' in said


def test_a_tool_is_called(clients: Clients, service: Service) -> None:
    command = ["mcp-inspector", "--cli", f"{service.url}/mcp", "--method", "tools/call"]
    command += ["--header", f"Authorization: Bearer {service.key}"]
    step = ["--tool-arg", "run_id=inspected", "step=one", 'state={"cursor": 1}']
    saved = json.loads(clients.run([*command, "--tool-name", "save_checkpoint", *step]))
    assert saved["structuredContent"]["saved"] is True
    found = json.loads(clients.run([*command, "--tool-name", "resume", "--tool-arg", "run_id=inspected"]))
    assert found["structuredContent"]["checkpoint"]["state"] == {"cursor": 1}
