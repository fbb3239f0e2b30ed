"""Processes on one embedded file, killed at random moments: what was acknowledged is there, and only once."""

from __future__ import annotations

import json
import random
import sqlite3
import time
from collections import Counter
from contextlib import closing
from pathlib import Path

import pytest

from runmemory_core import Client
from tests.store.processes import Process

KILLS = 50

BLOCKING = """
import json, sys
from runmemory_core import Client

((run_id, item),) = json.loads(sys.argv[2]).items()
with Client(sys.argv[1]) as client:
    while True:
        client.save_checkpoint(
            run_id, f"item {item}", state={"text": f"{item} " * (item % 50) * 40}, done=[item],
            idempotency_key=f"{run_id} {item}",
        )
        print(json.dumps([run_id, item]), flush=True)
        item += 1
"""

ASYNC = """
import asyncio, json, sys
from runmemory_core import AsyncClient

async def save_all(client, run_id, item):
    while True:
        await client.save_checkpoint(
            run_id, f"item {item}", state={"item": item}, done=[item], idempotency_key=f"{run_id} {item}"
        )
        print(json.dumps([run_id, item]), flush=True)
        item += 1

async def save_everywhere():
    async with AsyncClient(sys.argv[1]) as client:
        await asyncio.gather(*(save_all(client, *start) for start in json.loads(sys.argv[2]).items()))

asyncio.run(save_everywhere())
"""


@pytest.mark.long
@pytest.mark.parametrize(
    ("program", "runs"), [(BLOCKING, ["a"]), (ASYNC, ["a", "b", "c", "d"])], ids=["blocking", "async"]
)
def test_what_was_acknowledged_before_a_kill_is_there_once(
    tmp_path: Path, program: str, runs: list[str]
) -> None:
    """Whoever comes after a killed process repeats its unacknowledged items with their keys."""
    chance = random.Random(20260301)
    path = tmp_path / "runs.db"
    url = f"sqlite:///{path}"
    acknowledged = Counter[str]()
    for _ in range(KILLS):
        one, other = (
            json.dumps({f"{process} {run}": acknowledged[f"{process} {run}"] + 1 for run in runs})
            for process in ("one", "other")
        )
        with Process(program, url, one) as first, Process(program, url, other) as second:
            for _ in range(chance.randrange(1, 30)):
                acknowledge(acknowledged, first.line())
            time.sleep(chance.random() / 500)  # so that it dies anywhere within a save
            for process in (first, second):
                process.kill()
            for process in (first, second):
                while line := process.line():
                    acknowledge(acknowledged, line)
    assert acknowledged.total() > KILLS
    kept = {run_id: len(kept_items(url, run_id)) for run_id in acknowledged}
    for run_id, last in acknowledged.items():
        # The very last save may have been committed without its answer getting out.
        assert kept[run_id] in {last, last + 1}
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("SELECT sum(calls) FROM usage").fetchone()[0] == sum(kept.values())


def acknowledge(acknowledged: Counter[str], line: str) -> None:
    run_id, item = json.loads(line)
    assert item == acknowledged[run_id] + 1
    acknowledged[run_id] = item


def kept_items(url: str, run_id: str) -> list[int]:
    """The items that are kept of a run, which have to be 1, 2, 3 … with the seqs 1, 2, 3 …"""
    rows: dict[int, str] = {}
    with Client(url) as client:
        cursor = None
        while True:
            page = client.list_checkpoints(run_id, limit=500, cursor=cursor)
            rows |= {row.seq: row.step for row in page.checkpoints}
            if (cursor := page.cursor) is None:
                break
        assert client.resume(run_id, peek=True).done_count == len(rows)
    assert rows == {seq: f"item {seq}" for seq in range(1, len(rows) + 1)}
    return sorted(rows)
