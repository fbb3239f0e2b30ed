"""One service for all tests that leave it running; each of them uses run_ids of its own."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.service.serving import Service, running_service


@pytest.fixture(scope="session")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    folder = tmp_path_factory.mktemp("service")
    with running_service(f"sqlite:///{folder / 'runs.db'}") as running:
        yield running


@pytest.fixture
def run_id(request: pytest.FixtureRequest) -> str:
    """A run_id that no other test uses."""
    return request.node.name[:200]
