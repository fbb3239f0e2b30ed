"""What the application lets go of when it ends, in whichever way."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path

import pytest

from runmemory_core.service.app import Service, create_app
from runmemory_core.service.settings import Settings
from runmemory_core.store import open_store


async def fail_within(app: Service) -> None:
    """An error in whatever runs the application, after it did some work on its threads."""
    async with app.lifespan_context(app):
        await app._engine.check()  # pyright: ignore[reportPrivateUsage]
        raise OSError("gone")


async def tasks_left_by(app: Service) -> int:
    with pytest.raises(ExceptionGroup):
        await fail_within(app)
    return len(asyncio.all_tasks()) - 1


def test_an_application_that_ends_in_an_error_leaves_no_thread_and_no_task(tmp_path: Path) -> None:
    database = f"sqlite:///{tmp_path}/runs.db"
    store = open_store(database)
    before = set(threading.enumerate())
    try:
        assert asyncio.run(tasks_left_by(create_app(store, Settings(database=database)))) == 0
        assert set(threading.enumerate()) == before
    finally:
        store.close()
