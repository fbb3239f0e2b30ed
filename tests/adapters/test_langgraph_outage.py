"""A service that goes away and comes back: runs end normally, nothing is lost, and nothing is made up."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from langgraph.graph import END, START, StateGraph
from langgraph.types import Command, interrupt

from runmemory_core import (
    AccountRequired,
    Client,
    InvalidRequest,
    OverQuota,
    RunMemoryError,
    StoreError,
    Unauthorized,
    Unavailable,
)
from runmemory_core.client.spooling import SpooledStore
from runmemory_core.service.keys import id_of
from runmemory_langgraph import RunMemorySaver
from tests.adapters.test_langgraph_graphs import CONFIG, Log, line
from tests.adapters.test_langgraph_guards import noting
from tests.adapters.test_langgraph_redaction import messages
from tests.adapters.test_langgraph_saver import put, values_at
from tests.service.serving import Plan, Service, new_key_in, running_service

THREAD: Any = {"configurable": {"thread_id": "t", "checkpoint_ns": ""}}
STEPS = [f"n{i}" for i in range(8)]


class Place:
    """A service at one address that a test may take away and bring back."""

    def __init__(self, folder: Path) -> None:
        self.database = f"sqlite:///{folder / 'served.db'}"
        with socket.create_server(("127.0.0.1", 0)) as probe:
            self.port = probe.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"
        self.key = new_key_in(self.database, account="a")
        self._stack = ExitStack()
        self._made: list[RunMemorySaver] = []
        self._running: Service | None = None

    def start(self) -> None:
        self._running = self._stack.enter_context(running_service(self.database, port=self.port))

    def kill(self) -> None:
        assert self._running is not None
        self._running.process.kill()
        self._running.process.wait()

    def saver(self, **options) -> RunMemorySaver:
        made = RunMemorySaver(self.url, api_key=self.key, **options)
        if isinstance(made._store, SpooledStore):
            made._store._first_pause = made._store._pause = 60.0
        self._made.append(made)
        return made

    def reader(self) -> Client:
        """A client that sees only what the service holds."""
        return self._stack.enter_context(Client(self.url, api_key=self.key))

    def kept(self) -> list[int]:
        """How many names each of the thread's checkpoints in the service has, oldest first."""
        with self.saver(on_error="raise") as looking:
            return [len(each.checkpoint["channel_values"].get("log", [])) for each in looking.list(CONFIG)][
                ::-1
            ]

    def close(self) -> None:
        for saver in self._made:
            saver.close()
        self._stack.close()


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    made = Place(tmp_path)
    try:
        yield made
    finally:
        made.close()


class At(list):
    """Notes what ran, and does something when a name comes by."""

    def __init__(self, actions: dict[str, Callable[[], object]]) -> None:
        super().__init__()
        self._actions = actions

    def append(self, name):
        super().append(name)
        if name in self._actions:
            self._actions[name]()


@pytest.mark.parametrize("durability", ["sync", "async", "exit"])
def test_a_run_ends_normally_while_the_service_is_away_and_all_of_it_arrives(place, durability, caplog):
    place.start()
    ran = At({"n3": place.kill})
    saver = place.saver()
    result = line(saver, STEPS, ran).invoke({"log": []}, CONFIG, durability=durability)
    assert result == {"log": STEPS}
    assert not saver.health.ok
    assert saver.health.spooled_checkpoints
    assert Path(saver.health.spool).stat().st_mode & 0o777 == 0o600
    warned = [record.getMessage() for record in caplog.records if "waits in" in record.getMessage()]
    assert len(warned) == 1
    place.start()
    saver.close()
    kept = place.kept()
    assert kept == sorted(kept)
    assert kept[-1] == len(STEPS)
    if durability != "exit":
        assert kept == [0, *range(len(STEPS) + 1)]
    with place.saver() as again:
        assert again.health.ok
        assert line(again, STEPS, []).invoke(None, CONFIG) == {"log": STEPS}


def test_a_service_that_comes_back_in_the_middle_of_a_run_gets_what_waited_first(place):
    place.start()
    saver = place.saver()
    saver._store._first_pause = saver._store._pause = 0.0
    ran = At({"n2": place.kill, "n5": place.start})
    assert line(saver, STEPS, ran).invoke({"log": []}, CONFIG, durability="sync") == {"log": STEPS}
    assert saver.health.ok
    saver.close()
    seqs = [each.seq for each in place.reader().list_checkpoints("t", limit=100).checkpoints]
    assert seqs == sorted(seqs, reverse=True)
    assert place.kept() == [0, *range(len(STEPS) + 1)]


@pytest.mark.long
def test_a_service_that_is_away_for_a_minute_of_a_run_misses_nothing_of_it(place):
    """The run works on all the while, with the pauses between attempts that users have."""
    place.start()
    steps = [f"n{i}" for i in range(40)]
    work: dict[str, Callable[[], object]] = {f"n{i}": lambda: time.sleep(2) for i in range(3, 33)}
    ran = At(work | {"n2": place.kill, "n33": place.start})
    with RunMemorySaver(place.url, api_key=place.key) as saver:
        assert line(saver, steps, ran).invoke({"log": []}, CONFIG, durability="sync") == {"log": steps}
    assert place.kept() == [0, *range(len(steps) + 1)]
    with place.saver() as again:
        assert again.health.ok
        assert line(again, steps, []).invoke(None, CONFIG) == {"log": steps}


def test_a_service_that_was_never_there_is_told_before_any_node_has_run(place, caplog):
    ran = []
    with place.saver() as saver, pytest.raises(Unavailable):
        line(saver, STEPS, ran).invoke({"log": []}, CONFIG)
    assert ran == []
    assert messages(caplog) == []  # nothing waits, so nobody is told that it does


def test_a_wrong_key_is_told_at_setup_and_before_any_node_has_run(place):
    place.start()
    ran = []
    wrong = place.key[:-4] + ("aaaa" if not place.key.endswith("aaaa") else "bbbb")
    with RunMemorySaver(place.url, api_key=wrong) as saver:
        with pytest.raises(Unauthorized):
            saver.setup()
        with pytest.raises(Unauthorized):
            line(saver, STEPS, ran).invoke({"log": []}, CONFIG)
        with pytest.raises(Unauthorized):
            put(saver, {"x": 1})
        assert ran == []
        assert saver.health.ok


def test_a_key_for_which_nothing_is_stored_is_told_at_setup_and_before_any_node_has_run(place):
    place.start()
    place.key = new_key_in(place.database, account="looks", plan=Plan.WATCH)
    ran = []
    with place.saver() as saver:
        with pytest.raises(AccountRequired, match=r"the API key is of plan watch.*acting plan"):
            saver.setup()
        with pytest.raises(AccountRequired, match="with one of plan watch Run Memory only previews"):
            line(saver, STEPS, ran).invoke({"log": []}, CONFIG)
        with pytest.raises(AccountRequired):
            put(saver, {"x": 1})
        assert ran == []
        assert saver.health.ok
    with place.saver(watch=True) as saver:
        saver.setup()


def test_a_service_that_failed_is_left_alone_for_a_while(place, monkeypatch):
    place.start()
    with place.saver() as saver:
        at = put(saver, {"x": 0})
        place.kill()
        asked = []
        send = saver._client.send
        monkeypatch.setattr(saver._client, "send", lambda *given: asked.append(1) or send(*given))
        for n in range(5):
            at = put(saver, {"x": n}, at)
        assert len(asked) == 1
        assert saver.health.spooled_checkpoints == 5


def test_on_error_raise_says_so_at_the_write(place):
    place.start()
    with place.saver(on_error="raise") as saver:
        at = put(saver, {"x": 0})
        place.kill()
        with pytest.raises(Unavailable):
            put(saver, {"x": 1}, at)


def test_what_the_spool_holds_whole_is_read_while_the_service_is_away_and_nothing_else(place):
    place.start()
    long = ["message " * 100, "another " * 100]
    with place.saver() as saver:
        first = put(saver, {"messages": long})
        place.kill()
        second = put(saver, {"messages": [*long, "third " * 100]}, first)
        saver.put_writes(second, [("x", 1)], "task")
        found = saver.get_tuple(THREAD)
        assert found.config == second
        assert found.checkpoint["channel_values"] == {"messages": [*long, "third " * 100]}
        assert found.pending_writes == [("task", "x", 1)]
        for ask in (
            lambda: saver.get_tuple(first),
            lambda: [*saver.list(THREAD)],
            lambda: saver.get_tuple({"configurable": {"thread_id": "other"}}),
            lambda: saver.delete_thread("t"),
        ):
            with pytest.raises(Unavailable):
                ask()


def test_results_that_wait_for_a_checkpoint_in_the_service_reach_it(place):
    place.start()
    with place.saver() as saver:
        at = put(saver, {"x": 1})
        place.kill()
        saver.put_writes(at, [("__interrupt__", ["ask"])], "task")
        saver.put_writes(at, [("x", "w" * 1_000)], "task")
    place.start()
    with place.saver() as saver:
        assert saver.get_tuple(at).pending_writes == [
            ("task", "__interrupt__", ["ask"]),
            ("task", "x", "w" * 1_000),
        ]


def test_a_step_of_more_than_a_service_takes_at_once_reaches_it(place):
    place.start()
    with place.saver() as saver:
        first = put(saver, {"x": 0})
        place.kill()
        at = put(saver, {"x": 1}, first)
        results = ["".join(f"{n}{i:06}" for i in range(1_000_000)) for n in range(4)]
        for n, result in enumerate(results):
            saver.put_writes(at, [("x", result)], f"task-{n}")
        place.start()
        saver._store._retry_at = 0.0
        assert values_at(saver) == {"x": 1}
        assert saver.health.ok
    with place.saver(on_error="raise") as looking:
        assert [result for _, _, result in looking.get_tuple(at).pending_writes] == results
        assert len([*looking.list(THREAD)]) == 2


def test_a_thread_whose_waiting_checkpoints_are_refused_is_free_again_once_it_is_deleted(place):
    place.start()
    with place.saver() as saver:
        saver.setup()
        saver.get_tuple(THREAD)
        place.kill()
        put(saver, {"x": 1})
        place.start()
        saver._store._retry_at = 0.0
        place.reader().save_checkpoint("t", "another program's")
        with pytest.raises(RunMemoryError, match="t "):
            saver.get_tuple(THREAD)
        assert saver.health.spooled_checkpoints == 1
        saver.delete_thread("t")
        assert saver.health.ok
        assert saver.get_tuple(THREAD) is None
        put(saver, {"x": 2})
        assert values_at(saver) == {"x": 2}


@pytest.mark.parametrize("moment", ["_make_room", "_replay_run"])
def test_what_is_kept_while_another_threads_replay_ends_is_sent_before_what_follows_it(
    place, monkeypatch, moment
):
    """A replay of thread u and a save of thread t meet: the one in the middle of the other, either way."""
    place.start()
    other: Any = {"configurable": {"thread_id": "u", "checkpoint_ns": ""}}
    with place.saver() as saver:
        at = [put(saver, {"x": 1})]
        place.kill()
        put(saver, {"x": 1}, other)
        place.start()
        passed_by = getattr(saver._store, moment)

        def meet(*given):
            monkeypatch.setattr(saver._store, moment, passed_by)
            if moment == "_make_room":
                saver._store._retry_at = 0.0
                assert values_at(saver, other) == {"x": 1}
            else:
                at.append(put(saver, {"x": 2}, at[-1]))
            return passed_by(*given)

        monkeypatch.setattr(saver._store, moment, meet)
        if moment == "_make_room":
            at.append(put(saver, {"x": 2}, at[-1]))
        else:
            saver._store._retry_at = 0.0
            assert values_at(saver, other) == {"x": 1}
        assert saver.health.spooled_checkpoints == 1
        put(saver, {"x": 3}, at[-1])
        assert saver.health.ok
    with place.saver(on_error="raise") as looking:
        assert [each.checkpoint["channel_values"]["x"] for each in looking.list(THREAD)] == [3, 2, 1]


CRASHING = textwrap.dedent(
    """
    import os, signal, sys
    from runmemory_langgraph import RunMemorySaver
    from tests.adapters.test_langgraph_graphs import line, CONFIG

    class Ran(list):
        def append(self, name):
            if name == "n2":
                os.kill({pid}, signal.SIGKILL)
            if name == "n6":
                os._exit(9)

    saver = RunMemorySaver({url!r}, api_key={key!r})
    line(saver, {steps!r}, Ran()).invoke({{"log": []}}, CONFIG, durability="sync")
    """
)


def run_in_process(script: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=False, timeout=120
    )


def test_a_process_that_dies_while_it_spools_loses_nothing(place):
    place.start()
    script = CRASHING.format(pid=place._running.process.pid, url=place.url, key=place.key, steps=STEPS)
    assert run_in_process(script).returncode == 9
    place._running.process.wait()
    place.start()
    ran = []
    with place.saver() as saver:
        assert line(saver, STEPS, ran).invoke(None, CONFIG) == {"log": STEPS}
    assert ran == ["n6", "n7"]
    assert place.kept() == [0, *range(len(STEPS) + 1)]


LEAVING = textwrap.dedent(
    """
    from runmemory_langgraph import RunMemorySaver
    from tests.adapters.test_langgraph_saver import put
    import os, signal
    saver = RunMemorySaver({url!r}, api_key={key!r}, on_error={on_error!r})
    at = put(saver, {{"x": 1}})
    os.kill({pid}, signal.SIGKILL)
    saver.put_writes(at, [("x", 2)], "task")
    """
)


@pytest.mark.parametrize("on_error", ["spool", "raise"])
def test_the_end_of_a_process_prints_no_traceback_when_the_service_stays_away(place, on_error):
    place.start()
    script = LEAVING.format(pid=place._running.process.pid, url=place.url, key=place.key, on_error=on_error)
    done = run_in_process(script)
    assert done.returncode == 0
    assert "Traceback" not in done.stderr
    assert done.stderr
    place._running.process.wait()


def test_a_run_that_went_on_elsewhere_is_kept_beside_as_a_fork(place, caplog):
    place.start()
    with place.saver() as saver:
        root = put(saver, {"x": "root"})
        place.kill()
        mine = put(saver, {"x": "mine"}, root)
        place.start()
        theirs = put(place.saver(on_error="raise"), {"x": "theirs"}, root)
        assert values_at(saver, mine) == {"x": "mine"}
        assert values_at(saver, theirs) == {"x": "theirs"}
        assert values_at(saver) == {"x": "theirs"}  # the latest is the greatest id, as ever
        assert saver.health.forks == 1
    assert any("kept as a fork" in record.getMessage() for record in caplog.records)


def test_what_a_killed_process_left_is_told_of_as_a_fork_when_another_machine_finished(
    place, monkeypatch, tmp_path, caplog
):
    place.start()
    script = CRASHING.format(pid=place._running.process.pid, url=place.url, key=place.key, steps=STEPS)
    assert run_in_process(script).returncode == 9
    place._running.process.wait()
    place.start()
    with monkeypatch.context() as elsewhere:
        elsewhere.setenv("XDG_DATA_HOME", str(tmp_path / "another-machine"))
        with place.saver() as saver:
            line(saver, STEPS, []).invoke(None, CONFIG, durability="sync")
            assert saver.health.forks == 0
    with place.saver() as saver:
        assert line(saver, STEPS, []).get_state(CONFIG).values == {"log": STEPS}
        assert saver.health.forks == 1
    assert sum("kept as a fork" in record.getMessage() for record in caplog.records) == 1


def test_what_waits_under_a_key_that_was_replaced_is_named_and_sent_with_the_new_one(
    place, monkeypatch, caplog
):
    place.start()
    with place.saver() as saver:
        at = put(saver, {"x": 0})
        place.kill()
        put(saver, {"x": 1}, at)
        old, old_file = id_of(place.key), saver.health.spool
    place.key = new_key_in(place.database, account="a")
    place.start()
    with place.saver() as saver:
        assert values_at(saver) == {"x": 0}
    place.saver()  # by then it is known
    told = [text for text in messages(caplog) if f"RUNMEMORY_PREVIOUS_KEY_ID={old}" in text]
    assert len(told) == 1
    assert f"{old_file} holds 1 checkpoints of 1 runs" in told[0]

    monkeypatch.setenv("RUNMEMORY_PREVIOUS_KEY_ID", old)
    monkeypatch.setenv("RUNMEMORY_API_KEY", new_key_in(place.database, account="another"))
    with place.saver() as saver:
        assert values_at(saver) == {"x": 0}  # the variable speaks of the key beside it only
    monkeypatch.setenv("RUNMEMORY_API_KEY", place.key)
    with place.saver() as saver:
        assert saver.health.spooled_checkpoints == 1
        assert values_at(saver) == {"x": 1}
        assert saver.health.ok
    monkeypatch.delenv("RUNMEMORY_PREVIOUS_KEY_ID")
    with place.saver() as saver:
        assert values_at(saver) == {"x": 1}


def test_a_thread_deleted_in_the_meantime_stays_deleted(place):
    place.start()
    with place.saver() as saver:
        at = put(saver, {"x": 1})
        place.kill()
        put(saver, {"x": 2}, at)
        place.start()
        place.reader().store.delete_run("t")
        assert saver.get_tuple(THREAD) is None
        assert saver.health.ok


def test_a_subgraph_begins_while_the_service_is_away(place):
    def kill(state: Log):
        place.kill()
        return {"log": ["kill"]}

    inner = StateGraph(Log)
    inner.add_node("one", noting("one"))
    inner.add_edge(START, "one")
    outer = StateGraph(Log)
    outer.add_node("kill", kill)
    outer.add_node("sub", inner.compile())
    outer.add_edge(START, "kill")
    outer.add_edge("kill", "sub")
    place.start()
    saver = place.saver()
    result = outer.compile(checkpointer=saver).invoke({"log": []}, CONFIG, durability="sync")
    assert result["log"][-1] == "one"
    place.start()
    saver.close()
    with place.saver(on_error="raise") as looking:
        assert {each.config["configurable"]["checkpoint_ns"] != "" for each in looking.list(CONFIG)} == {
            True,
            False,
        }


def test_over_quota_a_run_ends_and_goes_on_here_and_is_sent_the_next_day(place, caplog):
    place.start()
    key = new_key_in(place.database, account="small", plan=Plan.PRO)
    place.key = key
    with Client(place.database) as direct:
        spend(direct, "small", 49_990)
    ran = []
    with place.saver() as saver:
        result = line(saver, [f"n{i}" for i in range(12)], ran).invoke({"log": []}, CONFIG, durability="sync")
        assert len(result["log"]) == 12
        assert not saver.health.ok
        assert "2 checkpoints" not in (saver.health.problem or "")
        assert line(saver, STEPS, []).get_state(CONFIG).values == result
        spend(direct, "small", 0)
    assert any("of today's 50,000 calls" in record.getMessage() for record in caplog.records)
    assert place.kept() == [0, *range(13)]


def test_over_quota_histories_hold_what_is_in_the_service_and_what_waits_here(place):
    place.start()
    place.key = new_key_in(place.database, account="small", plan=Plan.PRO)
    with Client(place.database) as direct, place.saver() as saver:
        at = put(saver, {"x": 0})
        for number in range(1, 6):
            at = put(saver, {"x": number}, at)
        spend(direct, "small", 50_000)
        saver.put_writes(at, [("x", "waits")], "task")
        in_service = at
        for number in range(6, 10):
            at = put(saver, {"x": number}, at)
        # Some of it is sent, and the calls are used up again before the rest.
        spend(direct, "small", 49_998)
        saver._store._retry_at = 0.0
        for limit in (None, 1, 3, 50):
            found = list(saver.list(THREAD, limit=limit))
            assert [each.checkpoint["channel_values"]["x"] for each in found] == list(range(9, -1, -1))[
                :limit
            ]
        assert not saver.health.ok
        pages = entries_by_page(saver, limit=2)
        assert [entry.key for entry in pages] == [each.checkpoint["id"] for each in saver.list(THREAD)]
        (waiting,) = saver.list(in_service)
        assert waiting.pending_writes == [("task", "x", "waits")]
        chain = saver._store.chain("t", key=at["configurable"]["checkpoint_id"])
        assert [entry.key for entry in chain.entries] == [entry.key for entry in pages]
        assert len(chain.entries[4].writes) == 1
        chain = saver._store.chain("t", key=in_service["configurable"]["checkpoint_id"], limit=3)
        assert [entry.key for entry in chain.entries] == [entry.key for entry in pages[4:7]]
        cursor = saver._store.history("t", limit=2).cursor
        with pytest.raises(OverQuota):
            saver.delete_thread("t")
        spend(direct, "small", 0)
        # What waited is sent by now, so that the service has other pages.
        with pytest.raises(InvalidRequest, match="cursor is not one that a reply gave"):
            saver._store.history("t", cursor=cursor)
        assert entries_by_page(saver, limit=4) == saver._store.history("t").entries
        assert saver.health.ok


def entries_by_page(saver, limit):
    entries, cursor = [], None
    while True:
        page = saver._store.history("t", limit=limit, cursor=cursor)
        assert len(page.entries) <= limit
        entries += page.entries
        if (cursor := page.cursor) is None:
            return entries


def test_a_list_that_began_before_the_calls_were_used_up_is_begun_anew(place):
    place.start()
    place.key = new_key_in(place.database, account="small", plan=Plan.PRO)
    with Client(place.database) as direct, place.saver() as saver:
        at = put(saver, {"x": 1}, put(saver, {"x": 0}))
        cursor = saver._store.history("t", limit=1).cursor
        spend(direct, "small", 50_000)
        put(saver, {"x": 2}, at)
        with pytest.raises(InvalidRequest, match="read it again from the beginning"):
            saver._store.history("t", limit=1, cursor=cursor)
        spend(direct, "small", 0)


def spend(client: Client, account: str, calls: int) -> None:
    """Set how many calls of today an account has made."""
    from runmemory_core.policy.times import day_of
    from runmemory_core.store.clock import wall_clock_ms
    from runmemory_core.transports.embedded import EmbeddedTransport

    transport = client._transport
    assert isinstance(transport, EmbeddedTransport)
    path = Path(transport.where)
    import sqlite3
    from contextlib import closing

    with closing(sqlite3.connect(path)) as connection, connection:
        found = connection.execute("SELECT account_id FROM accounts WHERE name = ?", (account,)).fetchone()
        connection.execute(
            "INSERT INTO usage (account_id, day, calls) VALUES (?, ?, ?) "
            "ON CONFLICT (account_id, day) DO UPDATE SET calls = excluded.calls",
            (found[0], day_of(wall_clock_ms()), calls),
        )


def test_beyond_its_limit_the_spool_keeps_the_newest_of_each_lane(place, caplog):
    place.start()
    saver = place.saver()
    saver._store._limit_bytes = saver._store._prune_at = 400_000
    at = put(saver, {"x": 0})
    place.kill()
    for _ in range(40):
        at = put(saver, {"x": os.urandom(15_000).hex()}, at)
    kept = values_at(saver)
    assert saver.health.spooled_checkpoints < 40
    assert Path(saver.health.spool).stat().st_size < 3_000_000
    assert any("only the newest" in record.getMessage() for record in caplog.records)
    place.start()
    saver.close()
    with place.saver() as again:
        assert values_at(again) == kept


def test_a_spool_that_cannot_be_changed_is_no_reason_to_leave_a_service_that_answers(place, caplog):
    place.start()
    with place.saver() as saver:
        at = put(saver, {"x": 0})
        place.kill()
        at = put(saver, {"x": 1}, at)
        saver._store._opened._writing().execute("PRAGMA query_only = 1")  # as on a disk that has become full
        saver._store._retry_at = 0.0
        with pytest.raises(
            StoreError, match=r"cannot be reached.*cannot wait.*RUNMEMORY_SPOOL names another"
        ):
            put(saver, {"x": "lost"}, at)
        with pytest.raises(
            StoreError, match=r"cannot be reached.*cannot wait.*RUNMEMORY_SPOOL names another"
        ):
            put(saver, {"x": "lost"}, at)
        place.start()
        at = put(saver, {"x": 2}, at)  # before it is time to ask the service again
        put(saver, {"x": 2}, {"configurable": {"thread_id": "other", "checkpoint_ns": ""}})
        assert [each.checkpoint["channel_values"]["x"] for each in saver.list(THREAD)] == [2, 1, 0]
        assert (saver.health.problem, saver.health.spooled_checkpoints) == (None, 1)
        told = [record.getMessage() for record in caplog.records]
        assert sum("is sent but stays in" in text for text in told) == 1
        assert sum("answers again" in text for text in told) == 1
        saver._store._opened._writing().execute("PRAGMA query_only = 0")
        assert values_at(saver) == {"x": 2}
        assert saver.health.ok


def test_a_folder_for_what_waits_can_be_named(place, tmp_path, monkeypatch):
    place.start()
    (tmp_path / "a-file").touch()
    monkeypatch.setenv("RUNMEMORY_SPOOL", str(tmp_path / "a-file"))
    unwritable = place.saver()
    monkeypatch.setenv("RUNMEMORY_SPOOL", str(tmp_path / "volume"))
    saver = place.saver()
    at = put(saver, {"x": 0})
    unwritable.setup()
    place.kill()
    with pytest.raises(StoreError, match="RUNMEMORY_SPOOL names another folder"):
        put(unwritable, {"x": 1}, at)
    put(saver, {"x": 1}, at)
    assert Path(saver.health.spool).parent == tmp_path / "volume"
    assert Path(saver.health.spool).exists()


def test_a_question_asked_while_the_service_is_away_is_answered_afterwards(place):
    def build(saver):
        def ask(state: Log):
            return {"log": [interrupt("pay?")]}

        builder = StateGraph(Log)
        builder.add_node("ask", ask)
        builder.add_edge(START, "ask")
        builder.add_edge("ask", END)
        return builder.compile(checkpointer=saver)

    place.start()
    saver = place.saver()
    saver.setup()
    assert saver.get_tuple(THREAD) is None
    graph = build(saver)
    graph.update_state(CONFIG, {"log": []}, as_node="__start__")
    place.kill()
    # The thread's head is in the service only, so nothing may go on blindly …
    with pytest.raises(Unavailable):
        graph.invoke(None, CONFIG)
    place.start()
    saver._store._retry_at = 0.0
    assert graph.invoke(None, CONFIG)["__interrupt__"][0].value == "pay?"
    saver.close()
    with place.saver() as other:
        assert build(other).invoke(Command(resume="yes"), CONFIG) == {"log": ["yes"]}
