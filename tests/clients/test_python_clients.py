"""Python clients of mcp 1.x and 2.x, each in an environment of its own, against a running service."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from runmemory_core.operations import TOOLS
from runmemory_core.operations.agents import INSTRUCTIONS
from tests.clients import install
from tests.clients.conftest import Clients
from tests.environments import interpreter_of
from tests.service.serving import Service

pytestmark = pytest.mark.long


def talk(clients: Clients, service: Service, environment: str, key: str) -> dict[str, Any]:
    script = Path(__file__).with_name(f"talk_{environment}.py")
    interpreter = interpreter_of(clients.folder / environment)
    with clients.start([interpreter, script, f"{service.url}/mcp", key]) as process:
        out, err = process.communicate(timeout=90)
    assert process.returncode == 0, err
    return json.loads(out.splitlines()[-1])


@pytest.mark.parametrize("environment", install.PYTHON)
def test_what_a_client_saved_it_resumes(
    clients: Clients, service: Service, key: str, environment: str
) -> None:
    said = talk(clients, service, environment, key)
    assert said["tools"] == [operation.name for operation in TOOLS]
    assert said["resumed"]["mode"] == "acting"
    assert said["resumed"]["checkpoint"]["state"] == {"cursor": 1}


@pytest.mark.parametrize("environment", ["mcp1", "mcp2"])
def test_the_official_client_gets_the_instructions_and_refusals_in_words(
    clients: Clients, service: Service, key: str, environment: str
) -> None:
    said = talk(clients, service, environment, key)
    assert said["instructions"] == INSTRUCTIONS
    assert said["refused"] == [True, "run_id is required by resume"]
