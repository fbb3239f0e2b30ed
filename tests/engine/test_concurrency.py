"""Many callers at once: quotas are exact, seqs have no gaps, and a replaced worker is never acknowledged."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier
from typing import Any, cast

import pytest

from runmemory_core import AsyncClient, Client, OverQuota, RunMemoryError, StaleAttempt
from runmemory_core.model import Limits
from tests.contract.faces import AsyncEmbeddedFace, EmbeddedFace, Waited


@pytest.mark.parametrize("opened", [EmbeddedFace, AsyncEmbeddedFace])
def test_40_calls_at_once_with_10_left_save_exactly_10(
    tmp_path: Path, opened: type[EmbeddedFace | AsyncEmbeddedFace]
) -> None:
    face = opened(tmp_path)
    client = face.client(limits=Limits(calls_a_day=15))
    for number in range(5):
        client.save_checkpoint("import", f"before {number}")
    saved = asyncio_saves(client, 40) if isinstance(client, Waited) else threaded_saves(client, 40)
    face.close()
    assert sorted(seq for seq in saved if seq is not None) == list(range(6, 16))
    assert saved.count(None) == 30


def threaded_saves(client: Client, calls: int) -> list[int | None]:
    barrier = Barrier(calls)

    def save(number: int) -> int | None:
        barrier.wait()
        try:
            return client.save_checkpoint("import", f"step {number}").seq
        except OverQuota:
            return None

    with ThreadPoolExecutor(calls) as threads:
        return list(threads.map(save, range(calls)))


def asyncio_saves(client: Waited, calls: int) -> list[int | None]:
    inner = cast("AsyncClient", client._inner)

    async def save(number: int) -> int | None:
        try:
            return (await inner.save_checkpoint("import", f"step {number}")).seq
        except OverQuota:
            return None

    async def save_all() -> list[int | None]:
        return await asyncio.gather(*map(save, range(calls)))

    return client._loop.run_until_complete(save_all())


def test_one_key_sent_many_times_at_once_saves_once(tmp_path: Path) -> None:
    clients = [Client(f"sqlite:///{tmp_path}/runs.db") for _ in range(4)]
    barrier = Barrier(16)

    def save(number: int) -> int | None:
        barrier.wait()
        return clients[number % 4].save_checkpoint("import", "one", idempotency_key="k").seq

    with ThreadPoolExecutor(16) as threads:
        assert list(threads.map(save, range(16))) == [1] * 16
    usage = clients[0].usage_and_upgrade().usage
    for client in clients:
        client.close()
    assert usage.used == 1


def test_a_stale_attempt_is_never_acknowledged_after_a_later_resume_returned(tmp_path: Path) -> None:
    """Four workers take the run over again and again; whoever saves must still be the latest then."""
    clients = [Client(f"sqlite:///{tmp_path}/runs.db") for _ in range(4)]
    barrier = Barrier(4)

    def work(client: Client) -> int:
        refused = 0
        for number in range(15):
            attempt = client.resume("import").attempt
            if number % 2 == 0:
                barrier.wait()  # all four have resumed, so at most one of them may save
            for _ in range(3):
                try:
                    client.save_checkpoint(
                        "import", f"{attempt}", state={"n": number, "a": attempt}, attempt=attempt
                    )
                except StaleAttempt:
                    refused += 1
        return refused

    with ThreadPoolExecutor(4) as threads:
        stale = sum(threads.map(work, clients))
    rows = clients[0].list_checkpoints("import", limit=500).checkpoints
    current = clients[0].resume("import", peek=True).attempt
    for client in clients:
        client.close()
    attempts = [int(row.step) for row in reversed(rows)]
    assert attempts == sorted(attempts), "a save of an earlier attempt came after one of a later"
    assert [row.seq for row in reversed(rows)] == list(range(1, len(rows) + 1))
    assert stale >= 8 * 3 * 3
    assert current == 60


def test_runs_and_accounts_that_many_threads_create_are_all_there(tmp_path: Path) -> None:
    client = Client(f"sqlite:///{tmp_path}/runs.db")
    barrier = Barrier(8)

    def create(number: int) -> int | None:
        barrier.wait()
        return client.save_checkpoint(f"run {number}", "one").seq

    with ThreadPoolExecutor(8) as threads:
        assert list(threads.map(create, range(8))) == [1] * 8
    rows = client.list_checkpoints().checkpoints
    client.close()
    assert {row.run_id for row in rows} == {f"run {number}" for number in range(8)}


@pytest.mark.parametrize("cancelled_at", range(4))
def test_a_cancelled_save_leaves_the_client_working(tmp_path: Path, cancelled_at: int) -> None:
    async def cancel_one() -> list[int | None]:
        async with AsyncClient(f"sqlite:///{tmp_path}/runs.db") as client:
            tasks = [asyncio.ensure_future(client.save_checkpoint("import", f"{n}")) for n in range(4)]
            await asyncio.sleep(0)
            tasks[cancelled_at].cancel()
            results = await asyncio.gather(*tasks, return_exceptions=True)
            last = await client.save_checkpoint("import", "after")
            saved = [result.seq for result in results if not isinstance(result, BaseException)]
            return [*saved, last.seq]

    seqs = asyncio.run(cancel_one())
    assert seqs == sorted(seqs, key=lambda seq: seq or 0)
    assert len(set(seqs)) == 4
    assert seqs[-1] in {4, 5}


def test_a_refused_save_among_many_harms_none(tmp_path: Path) -> None:
    async def save_all() -> list[Any]:
        async with AsyncClient(f"sqlite:///{tmp_path}/runs.db") as client:
            calls: list[Callable[[], Any]] = []
            for number in range(10):
                calls.append(lambda number=number: client.save_checkpoint("import", f"{number}"))
                calls.append(lambda: client.save_checkpoint("import", "x", expected_seq=99))
                calls.append(lambda number=number: client.resume(f"unknown {number}", seq=5))
            return await asyncio.gather(*(call() for call in calls), return_exceptions=True)

    results = asyncio.run(save_all())
    assert [result.seq for result in results[::3]] == list(range(1, 11))
    assert all(isinstance(result, RunMemoryError) for result in results[1::3] + results[2::3])
