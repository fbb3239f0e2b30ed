"""The official conformance suite against our endpoint, with the suite's own fixture tools behind it."""

from __future__ import annotations

import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.clients.conftest import Clients
from tests.service.serving import environment

pytestmark = pytest.mark.long

HERE = Path(__file__).parent


@pytest.fixture(scope="module")
def fixtures() -> Iterator[str]:
    """The address of the fixture tools."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [sys.executable, "-m", "tests.clients.conformance_app", str(port)]
    with subprocess.Popen(
        command, cwd=HERE.parents[1], env=environment(), text=True, stdout=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        yield f"http://127.0.0.1:{port}/mcp"
        process.terminate()


@pytest.mark.parametrize("revision", ["2025-11-25", "2026-07-28"])
def test_the_endpoint_conforms_but_for_what_the_baseline_names(
    clients: Clients, fixtures: str, revision: str
) -> None:
    command = ["conformance", "server", "--url", fixtures, "--requirements", revision]
    baseline = HERE / f"conformance-{revision}.yaml"
    said = clients.run([*command, "--expected-failures", baseline, "--output-dir", clients.home / "results"])
    assert "server-initialize" in said or "server-stateless" in said
    assert " 0 passed" not in said.partition("Total:")[2].splitlines()[0]
