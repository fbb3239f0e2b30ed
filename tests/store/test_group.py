"""The group-committing writer: many works share a transaction, and none harms another."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Generator, Iterator
from concurrent.futures import Future, wait
from contextlib import closing, contextmanager
from pathlib import Path
from threading import Event
from typing import Any

import pytest

from runmemory_core import NotFound, Unavailable
from runmemory_core.errors import StoreBusy
from runmemory_core.store import Tx
from runmemory_core.store.group import BATCH_BYTES, BATCH_CALLS, GroupWriter
from runmemory_core.store.sqlite import SqliteStore

DEADLINE_SECONDS = 30


class CountingStore(SqliteStore):
    """A store that counts its transactions, and may find that another process is in the way."""

    transactions = 0
    busy = False

    def transact(self, work: Callable[[Tx], Any], /, *, wait: bool = True) -> Any:
        self.transactions += 1
        if self.busy:
            raise StoreBusy("another process is in the way")
        return super().transact(work, wait=wait)


@pytest.fixture
def counting(tmp_path: Path) -> Iterator[CountingStore]:
    with closing(CountingStore(tmp_path / "runs.db")) as store:
        yield store


@pytest.fixture
def writer(counting: CountingStore) -> Iterator[GroupWriter]:
    with closing(GroupWriter(counting)) as opened:
        yield opened


def adding(name: str) -> Callable[[Tx], int]:
    return lambda tx: tx.give("add_account", name=name, plan="watch", now=1)["account_id"]


def refusing_after(name: str) -> Callable[[Tx], None]:
    def work(tx: Tx) -> None:
        tx.run("add_account", name=name, plan="watch", now=1)
        raise NotFound("changed my mind")

    return work


def refusing(tx: Tx) -> None:
    assert tx.one("account_by_name", name="nobody") is None
    raise NotFound("nobody")


def failing(tx: Tx) -> None:
    raise ZeroDivisionError


def names(store: SqliteStore) -> list[str]:
    rows = store.read(
        lambda tx: sorted(
            tx.all("accounts_after", watching="", after=0, limit=9_999), key=lambda row: row["account_id"]
        )
    )
    return [row["name"] for row in rows]


@contextmanager
def held(writer: GroupWriter) -> Generator[None]:
    """The writer is busy with a first work until the block ends, so that all of the block waits."""
    busy, go_on = Event(), Event()

    def work(tx: Tx) -> None:
        busy.set()
        assert go_on.wait(DEADLINE_SECONDS)

    first = writer.submit(work)
    assert busy.wait(DEADLINE_SECONDS)
    yield
    go_on.set()
    first.result(DEADLINE_SECONDS)


def results(futures: list[Future[Any]]) -> list[Any]:
    wait(futures, DEADLINE_SECONDS)
    return [future.exception() or future.result() for future in futures]


def test_all_that_waits_shares_one_transaction(counting: CountingStore, writer: GroupWriter) -> None:
    with held(writer):
        futures = [writer.submit(adding(f"name {number}")) for number in range(BATCH_CALLS)]
    assert results(futures) == list(range(1, BATCH_CALLS + 1))
    assert counting.transactions == 2
    assert names(counting) == [f"name {number}" for number in range(BATCH_CALLS)]


def test_a_batch_is_bounded_in_calls_and_in_bytes(counting: CountingStore, writer: GroupWriter) -> None:
    with held(writer):
        futures = [writer.submit(adding(f"small {number}")) for number in range(BATCH_CALLS + 1)]
    results(futures)
    assert counting.transactions == 3
    with held(writer):
        futures = [writer.submit(adding(f"large {n}"), size_bytes=BATCH_BYTES // 2) for n in range(6)]
    results(futures)
    assert counting.transactions == 3 + 1 + 3


def test_a_lone_work_waits_for_nobody(counting: CountingStore, writer: GroupWriter) -> None:
    for number in range(5):
        assert writer.submit(adding(f"name {number}")).result(DEADLINE_SECONDS) == number + 1
    assert counting.transactions == 5


def test_a_result_is_given_only_when_it_is_committed(counting: CountingStore, writer: GroupWriter) -> None:
    seen: list[list[str]] = []
    with held(writer), closing(SqliteStore(counting.where)) as another:
        futures = [writer.submit(adding(name)) for name in ("one", "two")]
        futures[0].add_done_callback(lambda _: seen.append(names(another)))
        assert names(another) == []
    results(futures)
    assert seen == [["one", "two"]]


def test_a_refusal_before_writing_costs_its_neighbours_nothing(
    counting: CountingStore, writer: GroupWriter
) -> None:
    with held(writer):
        futures = [writer.submit(work) for work in (adding("one"), refusing, adding("two"))]
    first, refusal, last = results(futures)
    assert (first, last) == (1, 2)
    assert isinstance(refusal, NotFound)
    assert counting.transactions == 2


@pytest.mark.parametrize("bad", [failing, refusing_after("half")])
def test_a_work_that_fails_takes_back_only_itself(
    counting: CountingStore, writer: GroupWriter, bad: Callable[[Tx], None]
) -> None:
    with held(writer):
        futures = [writer.submit(work) for work in (adding("one"), bad, adding("two"))]
    first, failure, last = results(futures)
    assert (first, last) == (1, 2)
    assert isinstance(failure, (ZeroDivisionError, NotFound))
    assert names(counting) == ["one", "two"]


def test_a_busy_database_is_told_to_the_whole_batch_at_once(
    counting: CountingStore, writer: GroupWriter
) -> None:
    """Each waiting its own 30 s would hold up everybody behind them."""
    with held(writer):
        futures = [writer.submit(adding(f"name {number}")) for number in range(3)]
        counting.busy = True
    assert [type(result) for result in results(futures)] == [StoreBusy] * 3
    assert counting.transactions == 2
    counting.busy = False
    assert writer.submit(adding("after")).result(DEADLINE_SECONDS) == 1


def test_closing_commits_what_was_accepted_and_refuses_the_rest(
    counting: CountingStore, writer: GroupWriter
) -> None:
    with held(writer):
        futures = [writer.submit(adding(f"name {number}")) for number in range(BATCH_CALLS + 10)]
    writer.close()
    assert all(future.done() for future in futures)
    assert len(names(counting)) == BATCH_CALLS + 10
    with pytest.raises(Unavailable, match="the store is closing"):
        writer.submit(adding("late"))
    writer.close()


def test_an_event_loop_gets_its_results(counting: CountingStore, writer: GroupWriter) -> None:
    async def add_all() -> list[Any]:
        loop = asyncio.get_running_loop()
        with held(writer):
            works = [adding("one"), refusing, refusing_after("half"), failing, adding("two")]
            futures = [writer.submit_from(loop, work) for work in works]
        return await asyncio.gather(*futures, return_exceptions=True)

    first, *failures, last = asyncio.run(add_all())
    assert (first, last) == (1, 2)
    assert [type(failure) for failure in failures] == [NotFound, NotFound, ZeroDivisionError]
    assert names(counting) == ["one", "two"]


def test_a_task_that_was_cancelled_harms_nobody(counting: CountingStore, writer: GroupWriter) -> None:
    async def add_and_leave() -> int:
        loop = asyncio.get_running_loop()
        with held(writer):
            left = writer.submit_from(loop, adding("left"))
            stayed = writer.submit_from(loop, adding("stayed"))
            left.cancel()
        return await stayed

    assert asyncio.run(add_and_leave()) == 2
    assert writer.submit(adding("after")).result(DEADLINE_SECONDS) == 3
    assert names(counting) == ["left", "stayed", "after"]


def test_a_loop_that_is_gone_harms_nobody(counting: CountingStore, writer: GroupWriter) -> None:
    async def leave() -> None:
        writer.submit_from(asyncio.get_running_loop(), adding("left"))

    with held(writer):
        asyncio.run(leave())
        future = writer.submit(adding("stayed"))
    assert future.result(DEADLINE_SECONDS) == 2
    assert names(counting) == ["left", "stayed"]


def test_a_writer_that_nobody_used_needs_no_thread(counting: CountingStore) -> None:
    writer = GroupWriter(counting)
    assert writer._thread is None
    writer.close()
    with pytest.raises(Unavailable):
        writer.submit(adding("late"))
