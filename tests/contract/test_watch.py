"""Watch mode: everything is previewed, nothing is stored."""

from __future__ import annotations

import pytest

from runmemory_core import AccountRequired, Client, RunMemoryError, StateTooLarge
from runmemory_core.model import Plan
from tests.contract.faces import Face


@pytest.mark.rule("WAT-01")
def test_a_preview_shows_exactly_what_would_be_saved(face: Face) -> None:
    client = face.client(plan=Plan.WATCH)
    state = {"cursor": "invoice-312", "batch": [311, 12]}
    reply = client.save_checkpoint("import", "imported invoice 312 of 400", state=state, done=["312"])
    assert reply.outcome == (
        'Watch-only: would save 41 B after "imported invoice 312 of 400" (cursor, batch). '
        "Nothing stored; with Pro a crash would resume right here."
    )
    assert (reply.mode, reply.code, reply.saved, reply.seq) == ("watch", "would_save", False, None)
    assert reply.would_save is not None
    assert reply.would_save.model_dump() == {
        "step": "imported invoice 312 of 400",
        "bytes": 41,
        "removed": [],
        "removed_count": 0,
        "state": state,
    }
    shown = client.save_checkpoint(
        "import", "log in", state={"password": "hunter2", "user": "ann"}
    ).would_save
    assert shown is not None
    assert (shown.state, shown.removed) == ({"password": "[removed]", "user": "ann"}, ["/password"])
    assert shown.bytes == len('{"password":"[removed]","user":"ann"}')
    with pytest.raises(StateTooLarge):
        client.save_checkpoint("import", "too much", state={"a": "x" * 262_144})


@pytest.mark.rule("WAT-02")
def test_in_watch_no_call_changes_the_database(face: Face) -> None:
    acting = face.client()
    acting.save_checkpoint("import", "one", state={"a": 1})
    watching = [face.client(account=name, plan=Plan.WATCH) for name in ("default", "visitor")]
    before = face.dump()
    for client in watching:
        for number in range(3):
            assert client.resume("import").mode == "watch"
            client.resume("new")
            client.resume("new", start_over=True, idempotency_key=f"r{number}")
            client.save_checkpoint("import", "two", state={"b": 2}, done=["x"], idempotency_key=f"s{number}")
            client.save_checkpoint("new", "one", status="finished")
        client.weekly_report()
        client.usage_and_upgrade()
        client.list_checkpoints()
    assert face.dump() == before
    assert watching[1].resume("import").status == "new"


@pytest.mark.rule("WAT-03")
def test_in_watch_the_storage_interface_writes_nothing(face: Face) -> None:
    face.client().save_checkpoint("import", "one")
    store = face.client(plan=Plan.WATCH).store
    before = face.dump()
    put = {"op": "put", "key": "a", "state": []}
    writers = [
        lambda: store.claim("graph", "langgraph"),
        lambda: store.commit("graph", "langgraph", operations=[put], parts={}),
        lambda: store.delete_run("import"),
        lambda: store.delete_by_metadata("langgraph", metadata={"a": 1}),
        lambda: store.copy_run("import", target_run_id="copy"),
        lambda: store.prune("import"),
    ]
    for write in writers:
        with pytest.raises(AccountRequired, match="needs an API key"):
            write()
    assert face.dump() == before


@pytest.mark.rule("DEL-01")
def test_a_deleted_run_refuses_late_writes_until_a_resume(face: Face, client: Client) -> None:
    client.resume("import")
    client.save_checkpoint("import", "one", state={"a": 1}, done=["a"], next_step="two", attempt=1)
    assert client.store.delete_run("import").count == 1
    assert client.store.delete_run("import").count == 0
    before = face.dump()
    for attempt in (None, 1):
        with pytest.raises(
            RunMemoryError, match=r"import was deleted at 2026-03-01T12:00:00\.000Z: call resume"
        ) as refusal:
            client.save_checkpoint("import", "two", attempt=attempt)
        assert refusal.value.code == "run_deleted"
    assert client.resume("import", peek=True).status == "new"
    assert face.dump() == before
    assert [row.run_id for row in client.list_checkpoints().checkpoints] == []

    reply = client.resume("import")
    assert (reply.status, reply.attempt, reply.done, reply.in_flight, reply.restart) == (
        "new",
        2,
        [],
        [],
        False,
    )
    with pytest.raises(RunMemoryError, match="another worker resumed this run"):
        client.save_checkpoint("import", "two", attempt=1)
    assert client.save_checkpoint("import", "two", attempt=2).saved
    assert client.resume("import").done == []
