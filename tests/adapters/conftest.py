"""Savers over every transport."""

from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path

import pytest

from runmemory_langgraph import RunMemorySaver
from tests.service.serving import Plan, Service, new_key_in, running_service

SaverMaker = Callable[..., RunMemorySaver]
_accounts = count()


@pytest.fixture(scope="session")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    folder = tmp_path_factory.mktemp("adapters")
    with running_service(f"sqlite:///{folder / 'runs.db'}") as running:
        yield running


@pytest.fixture(params=["embedded", "http"])
def transport(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture
def saver_maker(transport: str, tmp_path: Path, request: pytest.FixtureRequest) -> SaverMaker:
    """Makes savers over one account; each has caches and connections of its own, like another process."""
    if transport == "embedded":
        return lambda **options: RunMemorySaver(f"sqlite:///{tmp_path}/runs.db", **options)
    running: Service = request.getfixturevalue("service")
    # An account of its own for each test, so that their threads do not meet.
    key = new_key_in(running.database, account=f"test-{next(_accounts)}", plan=Plan.OWN)
    return lambda **options: RunMemorySaver(running.url, api_key=key, **options)


@pytest.fixture
def saver(saver_maker: SaverMaker) -> Iterator[RunMemorySaver]:
    with saver_maker() as made:
        yield made
