"""`Run` and `AsyncRun`: a resumable piece of work in a with block."""

from __future__ import annotations

import asyncio
import logging
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from runmemory_core import AsyncClient, Client, InvalidRequest, RunFinished, StaleAttempt
from runmemory_core.operations.tools import ResumeReply


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path}/runs.db"


@pytest.fixture
def client(url: str) -> Iterator[Client]:
    with Client(url) as opened:
        yield opened


def look(client: Client, run_id: str = "import") -> ResumeReply:
    return client.resume(run_id, peek=True)


WORKER = """
import logging, os, signal, sys
from runmemory_core import Client

logging.basicConfig(level=logging.INFO, format="%(message)s", stream=sys.stdout)
die_in = sys.argv[2]
with Client(sys.argv[1]).run("import", job="March") as run:
    print("begins", run.attempt, run.restart, run.in_flight, run.state, run.last_step)
    for item in run.remaining(range(1, 11)):
        if str(item) == die_in:
            os.kill(os.getpid(), signal.SIGKILL)
        run.save(f"imported {item}", state={"cursor": item}, done=[item])
        print("did", item)
"""


def work(url: str, die_in: str = "") -> tuple[int, list[str]]:
    done = subprocess.run(
        [sys.executable, "-u", "-c", WORKER, url, die_in], capture_output=True, text=True, check=False
    )
    return done.returncode, done.stdout.splitlines() + done.stderr.splitlines()[-1:]


def test_a_killed_run_goes_on_after_its_last_step(url: str, client: Client) -> None:
    killed = -signal.SIGKILL
    assert work(url, "8") == (killed, ["begins 1 False [] {} None", *(f"did {n}" for n in range(1, 8))])
    assert work(url, "9") == (
        killed,
        [
            "resumed at step 8 of import; 7 steps skipped, under a second not repeated (estimate)",
            "begins 2 True ['8'] {'cursor': 7} imported 7",
            "did 8",
        ],
    )
    assert work(url)[1][1:] == ["begins 3 True ['9'] {'cursor': 8} imported 8", "did 9", "did 10"]
    reply = look(client)
    assert (reply.status, reply.done_count, reply.in_flight, reply.job) == ("finished", 10, [], "March")
    status, said = work(url)
    assert status == 1
    assert "run import is finished already" in said[-1]


def test_a_finished_run_is_not_entered_again_unless_asked(client: Client) -> None:
    with client.run("import") as run:
        run.save("one", state={"a": 1}, done=["x"])
    assert look(client).status == "finished"
    with pytest.raises(RunFinished, match="run import is finished already; again=True begins it anew"):
        client.run("import").__enter__()
    with client.run("import", again=True) as run:
        assert (run.resumed, run.state, run.done, run.attempt) == (False, {}, set(), 2)
        assert list(run.remaining(["x", "y"])) == ["x", "y"]
    assert look(client).status == "finished"


def test_a_run_without_any_step_is_finished_all_the_same(client: Client) -> None:
    with client.run("import"):
        pass
    reply = look(client)
    assert reply.checkpoint is not None
    assert (reply.status, reply.checkpoint.step) == ("finished", "started")


def test_an_exception_is_reported_as_failed_and_comes_through(client: Client) -> None:
    with pytest.raises(KeyError), client.run("import") as run:  # noqa: PT012 - the block is what is tested
        run.save("one", state={"a": 1})
        raise KeyError("price")
    (row, *_) = client.list_checkpoints("import").checkpoints
    assert (row.run_status, row.step) == ("failed", "one")
    with client.run("import") as run:
        assert (run.resumed, run.restart, run.state) == (True, True, {"a": 1})
    assert 'import stopped after "one"' in client.weekly_report().text
    assert ": KeyError: 'price'." in client.weekly_report().text


def test_an_error_that_holds_a_credential_is_reported_without_it(client: Client) -> None:
    credential = "ghp_" + "a1B2c3D4e5F6" * 3
    with pytest.raises(ValueError, match="ghp_"), client.run("import"):
        raise ValueError(f"refused: {credential}")
    client.resume("import")
    assert ": ValueError: refused: [removed]." in client.weekly_report().text
    assert credential not in client.weekly_report().text


def test_a_worker_that_was_replaced_stops_and_reports_nothing(
    client: Client, caplog: pytest.LogCaptureFixture
) -> None:
    with pytest.raises(StaleAttempt, match="another worker resumed this run"), client.run("import") as run:  # noqa: PT012
        run.save("one")
        with client.run("import") as other:
            other.save("two")
        run.save("three")
    reply = look(client)
    assert reply.checkpoint is not None
    assert (reply.status, reply.checkpoint.step) == ("finished", "two")
    assert "could not be reported" not in caplog.text


def test_an_exception_is_not_hidden_by_a_report_that_fails(
    client: Client, caplog: pytest.LogCaptureFixture
) -> None:
    with pytest.raises(KeyError, match="mine"), client.run("import") as run:  # noqa: PT012
        run.save("one")
        client.resume("import")
        raise KeyError("mine")
    assert "run import could not be reported as failed: another worker resumed this run" in caplog.text


def test_a_clean_exit_that_cannot_be_reported_is_an_error(client: Client) -> None:
    with pytest.raises(StaleAttempt), client.run("import") as run:  # noqa: PT012
        run.save("one")
        client.resume("import")


def test_items_that_are_done_are_skipped_and_none_is_left_out(client: Client) -> None:
    class Invoice:
        def __init__(self, number: int) -> None:
            self.number = number

    client.save_checkpoint("import", "before", done=["2", "4"])
    with client.run("import") as run:
        invoices = [Invoice(number) for number in range(1, 6)]
        numbers = [invoice.number for invoice in run.remaining(invoices, key=lambda invoice: invoice.number)]
        assert numbers == [1, 3, 5]
        assert list(run.remaining([None, 0, False])) == [None, 0, False]
        assert list(run.remaining([])) == []


def test_an_item_that_is_named_twice_is_done_once(client: Client) -> None:
    with client.run("import") as run:
        seen: list[str] = []
        for item in run.remaining(["a", "a", "b", "a", "b"]):
            seen.append(item)
            run.save(f"did {item}", done=[item])
    assert seen == ["a", "b"]


def test_the_item_that_comes_next_is_announced(client: Client) -> None:
    with client.run("import") as run:
        announced: list[list[str]] = []
        for item in run.remaining(["a", "b", "c"]):
            run.save(f"did {item}", done=[item])
            announced.append(look(client).in_flight)
        assert announced == [["b"], ["c"], []]
        run.save("more", next_step="by hand")
        assert look(client).in_flight == ["by hand"]


def test_all_pages_of_done_are_known(client: Client) -> None:
    ids = [str(number) for number in range(2_500)]
    client.save_checkpoint("import", "before", done=ids)
    with client.run("import") as run:
        assert run.done == set(ids)
        assert look(client).attempt == run.attempt


def test_what_is_saved_is_known_at_once(client: Client) -> None:
    with client.run("import") as run:
        assert run.save("one", state={"a": 1}, done=[1]).seq == 1
        assert (run.last_step, run.state, run.done) == ("one", {"a": 1}, {"1"})
        run.save("two")
        assert (run.last_step, run.state) == ("two", {"a": 1})


# --- for event loops ------------------------------------------------------------------------------------


def test_an_async_run_goes_on_and_finishes(url: str, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "runmemory")

    async def work_on(die_at: str) -> list[str]:
        seen: list[str] = []
        async with AsyncClient(url) as client, client.run("import", job="March") as run:
            for item in run.remaining(["a", "b", "c"]):
                if item == die_at:
                    raise KeyError(item)
                await run.save(f"did {item}", state={"at": item}, done=[item])
                seen.append(f"{run.attempt} {item} {run.state}")
        return seen

    with pytest.raises(KeyError):
        asyncio.run(work_on("c"))
    assert asyncio.run(work_on("")) == ["2 c {'at': 'c'}"]
    assert "resumed at step 3 of import; 2 steps skipped" in caplog.text
    with pytest.raises(RunFinished):
        asyncio.run(work_on(""))


def test_an_async_run_begins_anew_when_asked(url: str) -> None:
    async def begin_again() -> tuple[set[str], int | None]:
        async with AsyncClient(url) as client:
            await client.save_checkpoint("import", "end", done=["a"], status="finished")
            async with client.run("import", again=True) as run:
                return run.done, run.attempt

    assert asyncio.run(begin_again()) == (set(), 2)


def test_an_async_run_knows_all_pages_of_done(url: str) -> None:
    ids = [str(number) for number in range(1_001)]

    async def enter() -> set[str]:
        async with AsyncClient(url) as client:
            await client.save_checkpoint("import", "before", done=ids)
            async with client.run("import") as run:
                return set(run.done)

    assert asyncio.run(enter()) == set(ids)


@pytest.mark.parametrize(("error", "raised"), [(None, StaleAttempt), (KeyError("mine"), KeyError)])
def test_an_async_run_that_was_replaced_hides_no_exception(
    url: str, error: Exception | None, raised: type[Exception]
) -> None:
    async def lose() -> None:
        async with AsyncClient(url) as client, client.run("import") as run:
            await run.save("one")
            await client.resume("import")
            if error is not None:
                raise error

    with pytest.raises(raised):
        asyncio.run(lose())


def test_an_async_worker_that_was_replaced_stops_at_its_next_save(url: str) -> None:
    async def go_on() -> None:
        async with AsyncClient(url) as client, client.run("import") as run:
            await client.resume("import")
            await run.save("late")

    with pytest.raises(StaleAttempt):
        asyncio.run(go_on())


@pytest.mark.parametrize("key", [None, True, 1.5, {"a": 1}, ["a"], object()])
def test_a_key_whose_text_names_no_item_is_refused(client: Client, key: object) -> None:
    with client.run("import") as run:
        with pytest.raises(
            InvalidRequest, match=r"the key of item 1 is of type .*, which names no item: pass key="
        ):
            list(run.remaining(["a"], key=lambda _: key))
        with pytest.raises(InvalidRequest, match="names no item"):
            run.save("one", done=["fine", key])
    assert look(client).done == []


def test_an_item_that_was_passed_over_leaves_the_run_paused(
    client: Client, caplog: pytest.LogCaptureFixture
) -> None:
    with client.run("import") as run:
        for item in run.remaining(["a", "b", "c"]):
            if item != "b":
                run.save(item, done=[item])
    assert look(client).run_status == "paused"
    assert "1 items of run import were met and not reported done: it stays paused" in caplog.text
    with client.run("import") as run:
        assert [(item, run.save(item, done=[item]).saved) for item in run.remaining(["a", "b", "c"])] == [
            ("b", True)
        ]
    assert look(client).status == "finished"


def test_a_loop_that_reports_no_items_finishes(client: Client) -> None:
    with client.run("import") as run:
        for item in run.remaining(["a", "b"]):
            run.save(item, state={"cursor": item})
    assert look(client).status == "finished"


def test_what_was_removed_is_told_to_the_log(client: Client, caplog: pytest.LogCaptureFixture) -> None:
    with client.run("import") as run:
        run.save("one", state={"password": "hunter2"})
    assert "run import: 1 values looked like secrets and were saved as [removed] (/password)" in caplog.text
