"""Watch mode: everything is previewed, no state is stored."""

from __future__ import annotations

import pytest

from runmemory_core import (
    AccountRequired,
    Client,
    IdempotencyKeyReused,
    NotFound,
    OverQuota,
    RunMemoryError,
    StateTooLarge,
)
from runmemory_core.model import Limits, Plan
from tests.contract.faces import DAY, MINUTE, Face, checkpoint_of


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
    without = client.save_checkpoint("import", "no state")
    assert [notice.partition(":")[0] for notice in without.notices] == ["no state was given"]
    assert client.save_checkpoint("import", "empty", state={}).notices == []
    with pytest.raises(StateTooLarge):
        client.save_checkpoint("import", "too much", state={"a": "x" * 262_144})


@pytest.mark.rule("WAT-02")
def test_in_watch_no_state_is_stored(face: Face) -> None:
    acting = face.client()
    acting.save_checkpoint("import", "one", state={"a": 1})
    acting.resume("import")
    client = face.client(account="visitor", plan=Plan.WATCH)
    kept = [line for line in face.dump() if 'INTO "checkpoints"' in line]
    state = {"cursor": "canary-state", "batch": ["canary-state"] * 50, "password": "canary-secret"}
    for number in range(3):
        client.resume("new", idempotency_key=f"r{number}")
        client.save_checkpoint(
            "new",
            f"label {number}",
            state=state,
            done=[f"canary-id {number}"],
            next_step="canary-next",
            error="canary-error",
            job="canary-job",
            idempotency_key=f"s{number}",
        )
    client.resume("new", start_over=True)
    client.save_checkpoint("new", "end", state=state, status="finished")
    client.weekly_report()
    client.list_checkpoints()
    dump = face.dump()
    assert "canary" not in "\n".join(dump)
    assert b"canary" not in b"".join(file.read_bytes() for file in face.path.parent.glob("runs.db*"))
    # What is recorded is told apart from what is kept by its empty body.
    added = [line for line in dump if 'INTO "checkpoints"' in line and line not in kept]
    assert len(added) == 4
    assert all(line.endswith("X'',0);") for line in added)
    assert {table for table, count in face.rows().items() if count} <= {
        *("accounts", "api_keys", "asked", "attempts", "checkpoints", "replays", "runs", "usage"),
    }


@pytest.mark.rule("WAT-04")
def test_in_watch_a_resume_names_the_crash_point(face: Face) -> None:
    client = face.client(account="visitor", plan=Plan.WATCH)
    first = client.resume("import")
    assert (first.status, first.attempt, first.restart, first.would_resume) == ("new", 1, False, None)
    client.save_checkpoint("import", "imported invoice 311 of 400", state={"cursor": 311})
    face.clock.forward(MINUTE)
    client.save_checkpoint("import", "imported invoice 312 of 400", state={"cursor": 312})
    before = face.dump()
    for looked in (client.resume("import", peek=True), client.resume("import", peek=True)):
        assert looked.attempt == 1
    assert face.dump() == before
    again = client.resume("import")
    assert (again.status, again.attempt, again.restart, again.checkpoint) == ("new", 2, True, None)
    assert again.outcome == (
        "Watch-only: nothing is stored for import, so start from the beginning. "
        'With Pro it would resume after "imported invoice 312 of 400".'
    )
    assert again.would_resume is not None
    assert again.would_resume.model_dump() == {
        "seq": 2,
        "step": "imported invoice 312 of 400",
        "saved_at": "2026-03-01T12:01:00.000Z",
        "bytes": 14,
        "run_status": "running",
    }
    assert client.resume("import", attempt=2).attempt == 2
    with pytest.raises(NotFound, match="watch mode stores none"):
        client.resume("import", seq=1)
    client.save_checkpoint("import", "end", status="finished")
    ended = client.resume("import")
    assert ended.restart is False
    assert ended.would_resume is not None
    assert ended.would_resume.run_status == "finished"
    assert 'With Pro it would be finished after "end".' in ended.outcome
    assert [run.run_id for run in client.resume("imports").unfinished] == []
    client.save_checkpoint("import", "anew")
    assert [run.run_id for run in client.resume("importt").unfinished] == ["import"]
    assert client.resume("import", start_over=True).would_resume is None


@pytest.mark.rule("WAT-05")
def test_in_watch_the_list_shows_what_would_have_been_kept(face: Face) -> None:
    client = face.client(account="visitor", plan=Plan.WATCH)
    for number in range(1, 23):
        client.save_checkpoint("import", f"step {number}", state={"n": number})
    reply = client.list_checkpoints("import", limit=500)
    assert [row.seq for row in reply.checkpoints] == list(range(22, 2, -1))
    assert reply.checkpoints[0].model_dump() == {
        "run_id": "import",
        "seq": 22,
        "step": "step 22",
        "bytes": 8,
        "saved_at": "2026-03-01T12:00:00.000Z",
        "expires_at": "2026-03-31T12:00:00.000Z",
        "lane": "",
        "run_status": "running",
    }
    assert reply.outcome == "20 checkpoints that would have been kept of run import, newest first."
    assert len(client.list_checkpoints().checkpoints) == 5


@pytest.mark.rule("WAT-06")
def test_what_was_kept_before_a_plan_became_watch_stays_readable(face: Face) -> None:
    face.client().save_checkpoint("import", "one", state={"a": 1}, done=["a"])
    client = face.client(plan=Plan.WATCH)
    assert not client.save_checkpoint("import", "two", state={"a": 2}).saved
    client.save_checkpoint("other", "one")
    reply = client.resume("import")
    assert (reply.status, reply.mode, reply.done) == ("resumed", "watch", ["a"])
    assert checkpoint_of(reply).state == {"a": 1}
    assert any("in watch mode nothing newer is" in notice for notice in reply.notices)
    assert reply.usage.used == 3
    listed = client.list_checkpoints("import")
    assert [row.step for row in listed.checkpoints] == ["one"]
    assert any("in watch mode nothing newer is" in notice for notice in listed.notices)
    assert [row.step for row in client.list_checkpoints().checkpoints] == ["one"]
    assert [row.run_id for row in client.list_checkpoints("other").checkpoints] == ["other"]
    assert face.client().resume("import", peek=True).attempt == 1


@pytest.mark.rule("WAT-06")
def test_what_a_cancelled_plan_kept_stays_readable_until_it_expires(face: Face) -> None:
    face.client(account="customer", plan=Plan.PRO).save_checkpoint("import", "one", state={"a": 1})
    client = face.client(account="customer", plan=Plan.WATCH)
    face.clock.forward(30 * DAY)
    face.sweep()
    assert checkpoint_of(client.resume("import")).state == {"a": 1}
    face.clock.forward(1)
    face.sweep()
    reply = client.resume("import", peek=True)
    assert (reply.status, reply.checkpoint) == ("new", None)


@pytest.mark.rule("WAT-07")
def test_in_watch_saves_and_resumes_are_metered_and_resumes_recorded_over_quota(face: Face) -> None:
    client = face.client(account="visitor", plan=Plan.WATCH, limits=Limits(calls_a_day=3))
    client.resume("import")
    client.save_checkpoint("import", "one", idempotency_key="k")
    again = client.save_checkpoint("import", "one", idempotency_key="k")
    assert (again.replayed, again.usage.used) == (True, 2)
    with pytest.raises(IdempotencyKeyReused):
        client.save_checkpoint("import", "two", idempotency_key="k")
    assert client.save_checkpoint("import", "two").usage.remaining == 0
    with pytest.raises(OverQuota) as refusal:
        client.save_checkpoint("import", "three")
    assert refusal.value.facts["saved"] is False
    resumed = client.resume("import", idempotency_key="r")
    assert (resumed.attempt, resumed.restart, resumed.usage.used) == (2, True, 3)
    assert client.resume("import", idempotency_key="r").replayed
    assert client.resume("unknown").attempt is None
    with pytest.raises(IdempotencyKeyReused):
        client.resume("another", idempotency_key="r")
    report = client.weekly_report()
    assert report.numbers["restarts"] == 1
    assert "Not seen: saves after all 3 calls were used, on 2026-03-01." in report.text


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
        lambda: store.fetch("graph"),  # which begins there: an adapter hears of it before it does any work
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


@pytest.mark.rule("WAT-08", "REP-03")
@pytest.mark.parametrize("by", ["done ids", "step labels"])
def test_the_worked_example_of_the_page_comes_out(face: Face, by: str) -> None:
    """34 invoices and a crash after 30: in watch all are asked for again, acting goes on with the rest."""
    ids = [f"invoice {number}" for number in range(34)]

    def work(client: Client, names: list[str]) -> None:
        for name in names:
            face.clock.forward(MINUTE)
            client.save_checkpoint("import", name, done=[name] if by == "done ids" else None)

    client = face.client(account="visitor", plan=Plan.WATCH)
    client.resume("import")
    work(client, ids[:30])
    client.resume("import")
    work(client, ids)
    report = client.weekly_report()
    assert report.numbers == {
        "runs": 1,
        "finished": 0,
        "checkpoints": 64,
        "restarts": 1,
        "abandoned": 0,
        "asks": 34,
        "skippable": 30,
        "new": 4,
        "repeated_ms": 30 * MINUTE,
    }
    assert "34 asks, 30 skippable, about 30 minutes repeated (measured)" in report.text
    client.resume("import")
    assert client.weekly_report().numbers["skippable"] == 30

    client = face.client(account="customer", plan=Plan.PRO)
    client.resume("import")
    work(client, ids[:30])
    reply = client.resume("import")
    work(client, ids[30:])
    numbers = client.weekly_report().numbers
    assert (numbers["asks"], numbers["repeated"], numbers["new"]) == (4, 0, 4)
    if by == "done ids":
        assert reply.done == ids[:30]
        assert (numbers["skipped"], numbers["not_repeated_ms"]) == (30, 30 * MINUTE)
    client.resume("import")
    assert client.weekly_report().numbers["asks"] == 4


@pytest.mark.rule("WAT-08")
def test_a_step_is_asked_for_once_in_an_attempt_however_often_it_is_reported(face: Face) -> None:
    for plan in (Plan.WATCH, Plan.PRO):
        client = face.client(account=plan.value, plan=plan)
        client.resume("import")
        client.save_checkpoint("import", "batch", done=["a", "b"])
        client.resume("import")
        for number in range(3):
            client.save_checkpoint("import", "batch", state={"n": number}, done=["b", "c", "b"])
            client.save_checkpoint("import", "label", state={"n": number})
        numbers = client.weekly_report().numbers
        assert (numbers["asks"], numbers["new"]) == (3, 2)
        assert numbers["skippable" if plan is Plan.WATCH else "repeated"] == 1
        if plan is Plan.PRO:
            assert numbers["skipped"] == 1
            assert "1 done id handed back and repeated all the same." in client.weekly_report().text


@pytest.mark.rule("WAT-08")
def test_what_follows_a_pause_or_an_end_is_no_restart_and_counts_nothing(face: Face) -> None:
    for plan in (Plan.WATCH, Plan.PRO):
        client = face.client(account=plan.value, plan=plan)
        for status in ("paused", "finished"):
            client.resume("import")
            client.save_checkpoint("import", "one", done=["a"], status=status)
        client.resume("import", start_over=True)
        client.save_checkpoint("import", "two", done=["a"])
        numbers = client.weekly_report().numbers
        assert (numbers["restarts"], numbers["asks"], numbers["abandoned"]) == (0, 0, 0)
        client.resume("import", start_over=True)
        assert client.weekly_report().numbers["abandoned"] == 1
        face.clock.forward(DAY)
        assert client.weekly_report().numbers["abandoned"] == 2


@pytest.mark.rule("WAT-09")
def test_what_watch_recorded_goes_after_eight_days(face: Face) -> None:
    client = face.client(account="visitor", plan=Plan.WATCH)
    client.save_checkpoint("silent", "one", done=["a"])
    client.resume("going")
    client.save_checkpoint("going", "one", done=["a"])
    face.clock.forward(4 * DAY)
    client.resume("going")
    client.save_checkpoint("going", "two", done=["b"])
    face.clock.forward(4 * DAY)
    before = face.rows()
    face.sweep()
    # Idempotency keys of the first day, which go after 7.
    assert set(before - face.rows()) <= {"replays"}
    face.clock.forward(1)
    # One run, and of the other its first attempt, step and id.
    assert face.sweep() > 0
    assert face.rows()["runs"] == face.rows()["asked"] == 1
    assert [row.step for row in client.list_checkpoints("going").checkpoints] == ["two"]
    face.clock.forward(DAY * 9)
    face.sweep()
    assert {table: face.rows()[table] for table in ("runs", "asked", "attempts", "checkpoints")} == {
        "runs": 0,
        "asked": 0,
        "attempts": 0,
        "checkpoints": 0,
    }
    assert "watch:visitor" not in "\n".join(face.dump())


@pytest.mark.rule("WAT-09")
def test_a_run_that_is_only_resumed_forgets_its_last_step(face: Face) -> None:
    client = face.client(account="visitor", plan=Plan.WATCH)
    client.save_checkpoint("import", "one")
    for _ in range(9):
        face.clock.forward(DAY)
        client.resume("import")
    face.sweep()
    reply = client.resume("import")
    assert (reply.would_resume, reply.restart, reply.attempt) == (None, True, 11)
    assert client.resume("another").unfinished == []
