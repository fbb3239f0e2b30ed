"""Several processes, forks and threads on one file: nothing is lost and nobody is told that it is locked."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from contextlib import ExitStack, closing
from pathlib import Path
from threading import Thread

import pytest

from runmemory_core import Client
from runmemory_core.errors import StoreBusy
from runmemory_core.store.sqlite import SqliteStore
from tests.store.processes import Process, run

SAVER = """
import sys
from runmemory_core import Client

path, name, count = sys.argv[1], sys.argv[2], int(sys.argv[3])
print("ready", flush=True)
sys.stdin.readline()
with Client(f"sqlite:///{path}") as client:
    for number in range(count):
        client.save_checkpoint("shared", f"{name} {number}", state={"n": number}, done=[f"{name} {number}"])
        if number % 10 == 0:
            client.resume("shared", peek=True)
"""


def saved_steps(path: Path) -> list[str]:
    """The steps of the shared run by seq, of which none may be missing."""
    rows: dict[int, str] = {}
    with Client(f"sqlite:///{path}") as client:
        cursor = None
        while True:
            page = client.list_checkpoints("shared", limit=500, cursor=cursor)
            rows |= {row.seq: row.step for row in page.checkpoints}
            if (cursor := page.cursor) is None:
                break
        assert client.resume("shared", peek=True).done_count == len(rows)
    assert sorted(rows) == list(range(1, len(rows) + 1))
    return [rows[seq] for seq in sorted(rows)]


def start_together(path: Path, names: Sequence[str], count: int) -> None:
    with ExitStack() as stack:
        processes = [stack.enter_context(Process(SAVER, path, name, count)) for name in names]
        assert [process.line() for process in processes] == ["ready"] * len(names)
        for process in processes:
            process.tell()
        for process in processes:
            process.end()


def test_four_processes_that_save_at_once_lose_nothing(tmp_path: Path) -> None:
    path = tmp_path / "runs.db"
    start_together(path, "abcd", 200)
    steps = saved_steps(path)
    for name in "abcd":
        assert [step for step in steps if step.startswith(name)] == [
            f"{name} {number}" for number in range(200)
        ]


CREATORS = """
import multiprocessing, sys
from runmemory_core import Client

def create(barrier, folder, files, name):
    for number in range(files):
        barrier.wait()
        with Client(f"sqlite:///{folder}/{number}/runs.db") as client:
            client.save_checkpoint("shared", name, done=[name])

folder, files, creators = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
forking = multiprocessing.get_context("fork")
barrier = forking.Barrier(creators)
processes = [forking.Process(target=create, args=(barrier, folder, files, f"{n}")) for n in range(creators)]
for process in processes:
    process.start()
for process in processes:
    process.join()
    assert process.exitcode == 0
"""


def test_processes_that_create_a_file_at_the_same_moment_all_save(tmp_path: Path) -> None:
    run(CREATORS, tmp_path, 10, 4)
    for number in range(10):
        assert sorted(saved_steps(tmp_path / f"{number}" / "runs.db")) == list("0123")


def test_opening_waits_where_sqlite_would_not(tmp_path: Path) -> None:
    """The switch to a write-ahead log fails at once when another process writes, however long one would wait."""
    path = tmp_path / "runs.db"
    with closing(sqlite3.connect(path, isolation_level=None)) as another:
        another.execute("PRAGMA application_id = 1")  # there is a file before the switch, and no table
        another.execute("BEGIN IMMEDIATE")
        opening = Thread(target=lambda: SqliteStore(path).close())
        opening.start()
        opening.join(0.2)
        assert opening.is_alive()
        another.execute("COMMIT")
        opening.join()
    with Client(f"sqlite:///{path}") as client:
        assert client.save_checkpoint("import", "one").seq == 1


FORKER = """
import os, sys
from runmemory_core import Client

client = Client(f"sqlite:///{sys.argv[1]}")
client.save_checkpoint("shared", "parent before", done=["1"])
client.resume("shared", peek=True)
child_saved, parent_closed = os.pipe(), os.pipe()
if (child := os.fork()) == 0:
    client.save_checkpoint("shared", "child while the parent is open", done=["2"])
    os.write(child_saved[1], b".")
    os.read(parent_closed[0], 1)
    client.save_checkpoint("shared", "child after the parent closed", done=["3"])
    assert client.resume("shared", peek=True).checkpoint.seq == 3
    if (grandchild := os.fork()) == 0:
        client.save_checkpoint("shared", "grandchild", done=["4"])
        sys.exit()
    sys.exit(os.waitstatus_to_exitcode(os.waitpid(grandchild, 0)[1]))
os.read(child_saved[0], 1)
client.close()
os.write(parent_closed[1], b".")
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
Client(f"sqlite:///{sys.argv[1]}").save_checkpoint("shared", "parent after", done=["5"])
"""


def test_a_forked_child_keeps_what_it_saves_when_its_parent_closes(tmp_path: Path) -> None:
    run(FORKER, tmp_path / "runs.db")
    assert saved_steps(tmp_path / "runs.db") == [
        "parent before",
        "child while the parent is open",
        "child after the parent closed",
        "grandchild",
        "parent after",
    ]


FORKER_AMONG_THREADS = """
import os, sys, threading
from runmemory_core import Client

client = Client(f"sqlite:///{sys.argv[1]}")

def save(name, count):
    for number in range(count):
        client.save_checkpoint("shared", f"{name} {number}", done=[f"{name} {number}"])
        client.resume("shared", peek=True)

threads = [threading.Thread(target=save, args=(f"thread {n}", 30)) for n in range(4)]
for thread in threads:
    thread.start()
for n in range(5):
    if (child := os.fork()) == 0:
        save(f"child {n}", 5)
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
for thread in threads:
    thread.join()
"""


def test_forks_among_busy_threads_lose_nothing_and_wait_for_nobody(tmp_path: Path) -> None:
    run(FORKER_AMONG_THREADS, tmp_path / "runs.db")
    assert len(saved_steps(tmp_path / "runs.db")) == 4 * 30 + 5 * 5


ASYNC_FORKER = """
import asyncio, os, sys
from runmemory_core import AsyncClient

client = AsyncClient(f"sqlite:///{sys.argv[1]}")

async def save(name):
    steps = [f"{name} {number}" for number in range(20)]
    await asyncio.gather(*(client.save_checkpoint("shared", step, done=[step]) for step in steps))

asyncio.run(save("parent"))
if (child := os.fork()) == 0:
    asyncio.run(save("child"))
    os._exit(0)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
asyncio.run(save("parent again"))
asyncio.run(client.close())
"""


def test_an_async_client_saves_on_both_sides_of_a_fork(tmp_path: Path) -> None:
    run(ASYNC_FORKER, tmp_path / "runs.db")
    assert len(saved_steps(tmp_path / "runs.db")) == 60


HOLDER = """
import sqlite3, sys

connection = sqlite3.connect(sys.argv[1], isolation_level=None)
connection.execute("BEGIN IMMEDIATE")
print("held", flush=True)
sys.stdin.readline()
connection.execute("COMMIT")
"""


def test_a_save_waits_for_another_process_and_says_so_when_that_is_too_long(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("runmemory_core.store.sqlite.BUSY_WAIT_SECONDS", 0.1)
    path = tmp_path / "runs.db"
    with Client(f"sqlite:///{path}") as client:
        client.save_checkpoint("import", "one")
        with Process(HOLDER, path) as holder:
            assert holder.line() == "held"
            with pytest.raises(StoreBusy, match="another process held the database for over"):
                client.save_checkpoint("import", "two")
            checkpoint = client.resume("import", peek=True).checkpoint
            assert checkpoint is not None
            assert checkpoint.seq == 1
            holder.tell()
            holder.end()
        assert client.save_checkpoint("import", "two").seq == 2
