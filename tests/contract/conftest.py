"""Each test of the contract runs over every face."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from runmemory_core import Client
from tests.contract.faces import FACES, Face, open_face
from tests.contract.network import Served


@pytest.fixture(scope="session")
def served() -> Iterator[Served]:
    running = Served()
    yield running
    running.close()


@pytest.fixture(params=FACES)
def face(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Face]:
    opened = open_face(request.param, tmp_path, lambda: request.getfixturevalue("served"))
    yield opened
    opened.close()


@pytest.fixture
def client(face: Face) -> Client:
    """A client without limits."""
    return face.client()
