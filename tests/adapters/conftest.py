"""Savers over every transport."""

from collections.abc import Callable

import pytest
from runmemory_langgraph import RunMemorySaver

SaverMaker = Callable[..., RunMemorySaver]


@pytest.fixture(params=["embedded"])
def saver_maker(request, tmp_path) -> SaverMaker:
    """Makes savers over one store; each has caches and connections of its own, like another process."""

    def make(**options) -> RunMemorySaver:
        return RunMemorySaver(f"sqlite:///{tmp_path}/runs.db", **options)

    return make


@pytest.fixture
def saver(saver_maker):
    with saver_maker() as made:
        yield made
