"""The official conformance suite against our endpoint, with the suite's own fixture tools behind it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.clients.conftest import Clients

pytestmark = pytest.mark.long

HERE = Path(__file__).parent


@pytest.mark.parametrize("revision", ["2025-11-25", "2026-07-28"])
def test_the_endpoint_conforms_but_for_what_the_baseline_names(
    clients: Clients, fixtures: str, revision: str
) -> None:
    command = ["conformance", "server", "--url", fixtures, "--requirements", revision]
    baseline = HERE / f"conformance-{revision}.yaml"
    said = clients.run([*command, "--expected-failures", baseline, "--output-dir", clients.home / "results"])
    assert "server-initialize" in said or "server-stateless" in said
    assert " 0 passed" not in said.partition("Total:")[2].splitlines()[0]
