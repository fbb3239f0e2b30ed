"""The group writer as the service uses it: one loop, many callers, some of whom do not wait."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from runmemory_core import AsyncClient, Client, NotFound, RunDeleted


def test_a_caller_who_gives_up_stops_nobody_else(tmp_path: Path) -> None:
    database = f"sqlite:///{tmp_path / 'runs.db'}"

    async def work() -> None:
        async with AsyncClient(database) as client:
            for n in range(20):
                saving = asyncio.create_task(client.save_checkpoint("given up", f"step {n}", state={"n": n}))
                await asyncio.sleep(0)
                saving.cancel()
            await client.save_checkpoint("other", "one", state={})

    asyncio.run(work())
    with Client(database) as client:
        assert client.resume("other", peek=True).status == "resumed"


def test_one_refusal_in_a_batch_is_heard_by_its_own_caller_only(tmp_path: Path) -> None:
    async def work() -> list[object]:
        async with AsyncClient(f"sqlite:///{tmp_path / 'runs.db'}") as client:
            await client.save_checkpoint("deleted", "one", state={})
            await client.store.delete_run("deleted")
            saves = [client.save_checkpoint(f"run {n}", "one", state={"n": n}) for n in range(20)]
            refused = client.save_checkpoint("deleted", "two", state={})
            unknown = client.store.copy_run("nobody", target_run_id="copy")
            return await asyncio.gather(*saves[:10], refused, unknown, *saves[10:], return_exceptions=True)

    outcomes = asyncio.run(work())
    refusals = [type(outcome) for outcome in outcomes if isinstance(outcome, Exception)]
    assert refusals == [RunDeleted, NotFound]
    assert len(outcomes) == 22


def test_what_was_accepted_before_a_close_is_committed(tmp_path: Path) -> None:
    database = f"sqlite:///{tmp_path / 'runs.db'}"

    async def work() -> None:
        client = AsyncClient(database)
        saves = [asyncio.create_task(client.save_checkpoint(f"run {n}", "one", state={})) for n in range(50)]
        await asyncio.sleep(0)
        await client.close()
        assert all(reply.saved for reply in await asyncio.gather(*saves))

    asyncio.run(work())
    with Client(database) as client:
        assert len(client.list_checkpoints(limit=100).checkpoints) == 50
        with pytest.raises(NotFound):
            client.list_checkpoints("nobody")
