"""What `Run` refuses or reports rather than losing work without a word."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

from runmemory_core import (
    AccountRequired,
    AsyncClient,
    Client,
    InvalidJson,
    InvalidRequest,
    StateTooLarge,
    parts,
)
from tests.service.serving import Service, running_service

CREDENTIAL = "ghp_" + "a1B2c3D4e5F6" * 3


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    with running_service(f"sqlite:///{tmp_path_factory.mktemp('runs') / 'runs.db'}") as running:
        yield running


@pytest.fixture
def client(tmp_path: Path) -> Iterator[Client]:
    with Client(f"sqlite:///{tmp_path}/runs.db") as opened:
        yield opened


def stored(client: Client, run_id: str = "import") -> tuple[str, dict[str, Any] | None]:
    """The status of a run and its last state."""
    (row, *_) = client.list_checkpoints(run_id).checkpoints
    checkpoint = client.resume(run_id, peek=True).checkpoint
    return row.run_status, checkpoint and checkpoint.state


# --- where nothing would be stored ----------------------------------------------------------------------


def test_a_run_where_nothing_is_stored_is_not_entered(service: Service) -> None:
    async def enter() -> None:
        async with AsyncClient(service.url) as client, client.run("import"):
            pass

    way_out = r"pass api_key=, set RUNMEMORY_API_KEY, or only look with run\(…, preview=True\)"
    with Client(service.url) as client, pytest.raises(AccountRequired, match=way_out):
        client.run("import").__enter__()
    with pytest.raises(AccountRequired, match=way_out):
        asyncio.run(enter())


def test_a_preview_goes_on_where_nothing_is_stored(service: Service) -> None:
    with Client(service.url) as client, client.run("import", preview=True) as run:
        saves = [run.save(f"did {item}", done=[item]) for item in run.remaining("ab")]
        assert [save.saved for save in saves] == [False, False]
        assert run.done == {"a", "b"}


# --- a state that is not handed back --------------------------------------------------------------------


def test_a_run_whose_state_is_left_out_is_not_entered_with_an_empty_one(client: Client) -> None:
    texts: dict[str, str] = {}
    node = parts.split(["x" * 1_000] * 300, texts)
    put = {"op": "put", "key": "a", "state": [["text", node]]}
    client.store.commit("graph", "langgraph", operations=[put], parts=texts)
    with pytest.raises(StateTooLarge, match="go on with the adapter that wrote it, or use another run_id"):
        client.run("graph").__enter__()


# --- a run that was not entered -------------------------------------------------------------------------


def test_a_run_that_was_not_entered_does_nothing(client: Client) -> None:
    with client.run("import") as before:
        before.save("one", state={"a": 1}, done=["x"])
    run = client.run("import")
    way_out = r"run import was not resumed: enter it first, with client.run\(...\) as run"
    for use in (
        lambda: run.state,
        lambda: run.done,
        lambda: run.remaining(["x", "y"]),
        lambda: run.save("two"),
    ):
        with pytest.raises(InvalidRequest, match=way_out):
            use()
    with pytest.raises(InvalidRequest, match=way_out):
        run.state = {}
    assert stored(client) == ("finished", {"a": 1})


# --- a state that is changed in place -------------------------------------------------------------------


def test_a_state_that_was_changed_in_place_is_saved(client: Client) -> None:
    with client.run("import") as run:
        run.state["pages"] = []
        for page in (1, 2):
            run.state["pages"].append(page)
            run.save(f"page {page}")
            assert stored(client) == ("running", {"pages": list(range(1, page + 1))})
        run.state["total"] = 2
    assert stored(client) == ("finished", {"pages": [1, 2], "total": 2})


def test_a_state_goes_on_being_changed_after_it_was_resumed(client: Client) -> None:
    client.save_checkpoint("import", "before", state={"n": {"pages": 1}})
    with client.run("import") as run:
        run.state["n"]["pages"] = True  # equal to 1 in Python, and another value in JSON
        run.save("after")
        assert stored(client) == ("running", {"n": {"pages": True}})
        run.state = {"other": 1}
        run.save("other")
        assert stored(client) == ("running", {"other": 1})


def test_an_unchanged_state_is_not_sent_again(client: Client) -> None:
    given = {"password": "hunter2", "list": [1]}
    with client.run("import") as run:
        assert run.save("one", state=given).removed_count == 1
        given["list"].append(2)  # type: ignore[attr-defined]
        run.save("two")
        assert stored(client) == ("running", {"password": "[removed]", "list": [1]})
        assert run.state == {"password": "hunter2", "list": [1]}


def test_a_state_that_is_no_json_is_refused_where_it_is_saved(client: Client) -> None:
    with client.run("import") as run:
        run.state["when"] = {1, 2}
        with pytest.raises(InvalidJson, match="/state/when"):
            run.save("one")
        run.state = {}


def test_what_an_exception_left_of_a_state_is_not_saved(client: Client) -> None:
    with pytest.raises(KeyError), client.run("import") as run:  # noqa: PT012 - the block is what is tested
        run.save("one", state={"a": 1})
        run.state["a"] = 2
        raise KeyError("price")
    assert stored(client) == ("failed", {"a": 1})


# --- keys that are no names, and loops that end early ---------------------------------------------------


@pytest.mark.parametrize(
    ("bad", "words"),
    [
        (CREDENTIAL, "contains a credential"),
        ("x" * 201, "has 201 characters; it takes 1 to 200"),
        ("", "has 0 characters"),
    ],
)
def test_a_key_that_is_no_name_is_told_before_any_work(client: Client, bad: str, words: str) -> None:
    told = pytest.raises(InvalidRequest, match=f"the key of item 3 {words}.*: pass key=")
    with told as refusal, client.run("import") as run:
        for item in run.remaining(["a", "b", bad]):
            pytest.fail(f"{item} was begun")
    assert CREDENTIAL not in refusal.value.detail
    with client.run("import") as run:
        assert list(run.remaining(["a", "b", bad], key=lambda item: f"length {len(item)}")) == ["a", "b", bad]


def test_a_key_of_an_iterator_is_told_when_it_is_met(client: Client) -> None:
    begun: list[str] = []
    told = pytest.raises(InvalidRequest, match="the key of item 3 contains a credential")
    with told, client.run("import") as run:
        for item in run.remaining(iter(["a", "b", CREDENTIAL, "c"])):
            begun.append(item)
            run.save(f"did {item}", done=[item])
    assert begun == ["a"]
    assert stored(client)[0] == "failed"


def test_a_loop_that_is_left_early_pauses_the_run(client: Client) -> None:
    with client.run("import") as run:
        for item in run.remaining(["a", "b", "c"]):
            run.save(f"did {item}", done=[item])
            if item == "b":
                break
    assert stored(client)[0] == "paused"
    with client.run("import") as run:
        assert (run.resumed, run.restart) == (True, False)
        assert list(islice(run.remaining(["a", "b", "c"]), 1)) == ["c"]
    assert stored(client)[0] == "paused"
    with client.run("import") as run:
        for item in run.remaining(["a", "b", "c"]):
            run.save(f"did {item}", done=[item])
            break  # after the last one there is nothing left
    assert stored(client)[0] == "finished"


def test_a_loop_that_another_one_completes_does_not_pause_the_run(client: Client) -> None:
    with client.run("import") as run:
        for _ in run.remaining(["a", "b"]):
            break
        for item in run.remaining(["a", "b"]):
            run.save(f"did {item}", done=[item])
    assert stored(client)[0] == "finished"


def test_an_async_loop_that_is_left_early_pauses_the_run(client: Client) -> None:
    async def leave() -> None:
        async with AsyncClient(f"sqlite:///{client.where}") as opened, opened.run("import") as run:
            for item in run.remaining(["a", "b"]):
                run.state["at"] = item
                await run.save(f"did {item}", done=[item])
                break

    asyncio.run(leave())
    assert stored(client) == ("paused", {"at": "a"})
