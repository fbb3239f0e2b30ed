"""Forks beside what waits on this disk: a child neither waits for a thread it lacks nor keeps a lock for its parent."""

from __future__ import annotations

from pathlib import Path

from tests.store.processes import run

FORKED_IN_THE_MIDDLE = """
import os, signal
from threading import Event, Thread
from runmemory_core import Client
from runmemory_core.client.spooling import SpooledStore

store = SpooledStore(Client("http://127.0.0.1:9", api_key="rm_key"))
held, done = Event(), Event()

def hold():
    with store._state:
        held.set()
        done.wait()

thread = Thread(target=hold, daemon=True)
thread.start()
held.wait()
if (child := os.fork()) == 0:
    signal.alarm(60)
    os._exit(0 if store.health.ok else 1)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
done.set()
thread.join()
"""

FORKED_UNDER_THE_FILE_LOCK = """
import os, sys
from pathlib import Path
from threading import Event, Thread
from runmemory_core.client._file_lock import locked

path = Path(sys.argv[1])
held, done = Event(), Event()

def hold():
    with locked(path, wait=True):
        held.set()
        done.wait()

thread = Thread(target=hold, daemon=True)
thread.start()
held.wait()
looked, ended = os.pipe(), os.pipe()
if (child := os.fork()) == 0:
    os.close(ended[1])  # so that the parent's end is the child's as well
    with locked(path, wait=False) as free:
        os.write(looked[1], b"+" if free else b"-")
    os.read(ended[0], 1)
    os._exit(0)
assert os.read(looked[0], 1) == b"-", "the child took what its parent holds"
done.set()
thread.join()
with locked(path, wait=False) as free:
    assert free, "the child holds what its parent let go of"
os.write(ended[1], b".")
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
"""


def test_a_child_forked_in_the_middle_of_a_spools_work_can_use_it() -> None:
    run(FORKED_IN_THE_MIDDLE)


def test_a_child_does_not_hold_on_to_the_lock_of_its_parents_spool(tmp_path: Path) -> None:
    run(FORKED_UNDER_THE_FILE_LOCK, tmp_path / "spool.lock")
