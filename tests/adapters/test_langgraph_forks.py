"""A process forked while a saver is at work: the child can use the saver, and sends nothing of its parent's."""

from __future__ import annotations

from tests.store.processes import run

FORKED_AT_WORK = """
import os, signal, sys
from contextlib import ExitStack
from threading import Event, Thread
from runmemory_langgraph import RunMemorySaver, _outbox, _threads
from tests.adapters.test_langgraph_saver import put, values_at

url, key = sys.argv[1:]
options = {"api_key": key} if key else {}
saver = RunMemorySaver(url, **options)
first = put(saver, {"x": 1})
at = put(saver, {"x": ["long " * 100] * 20}, first)
_outbox.LINGER_SECONDS = 3_600  # so that the parent's timer lives and has nothing to do
saver.put_writes(at, [("x", "parent")], "task-0")

held, done = Event(), Event()
encoder, outbox = saver._encoder, saver._outbox
locks = [
    *outbox._sending, outbox._guard, encoder._memories._lock, encoder._lists._lock,
    saver._loaded._lock, saver._threads._lock, _threads._roots_put._lock,
]

def hold():
    with ExitStack() as stack:
        for lock in locks:
            stack.enter_context(lock)
        held.set()
        done.wait()

thread = Thread(target=hold, daemon=True)
thread.start()
held.wait()
if (child := os.fork()) == 0:
    signal.alarm(60)
    _outbox.LINGER_SECONDS = 0
    saver.put_writes(at, [("x", "child")], "task-1")
    with RunMemorySaver(url, **options) as looking:
        while not (found := looking.get_tuple(at).pending_writes):
            pass
    assert found == [("task-1", "x", "child")], found
    assert saver.get_tuple(at).pending_writes == found
    put(saver, {"x": 3}, at)
    assert values_at(saver) == {"x": 3}
    saver.close()
    os._exit(0)
done.set()
thread.join()
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
assert [value for _, _, value in saver.get_tuple(at).pending_writes] == ["parent", "child"]
saver.close()
"""


def test_a_child_forked_while_a_saver_is_at_work_can_use_it(saver_maker) -> None:
    with saver_maker() as saver:
        run(FORKED_AT_WORK, saver._client.where, saver._client._target.api_key or "")
