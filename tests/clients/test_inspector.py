"""The MCP Inspector, which reports schemas that some client would misread."""

from __future__ import annotations

import json

import pytest

from tests.clients.conftest import Clients
from tests.service.serving import Service

pytestmark = pytest.mark.long


def test_the_schemas_are_portable(clients: Clients, service: Service) -> None:
    command = ["mcp-inspector", "--cli", f"{service.url}/mcp", "--method", "tools/list", "--strict"]
    listed = clients.run(command)
    assert '"save_checkpoint"' in listed
    assert "schema" not in listed.partition("\n}\n")[2].lower()


def test_a_tool_is_called(clients: Clients, service: Service) -> None:
    command = ["mcp-inspector", "--cli", f"{service.url}/mcp", "--method", "tools/call"]
    command += ["--header", f"Authorization: Bearer {service.key}"]
    step = ["--tool-arg", "run_id=inspected", "step=one", 'state={"cursor": 1}']
    saved = json.loads(clients.run([*command, "--tool-name", "save_checkpoint", *step]))
    assert saved["structuredContent"]["saved"] is True
    found = json.loads(clients.run([*command, "--tool-name", "resume", "--tool-arg", "run_id=inspected"]))
    assert found["structuredContent"]["checkpoint"]["state"] == {"cursor": 1}
