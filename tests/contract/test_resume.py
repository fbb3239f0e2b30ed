"""resume: what a run left, and how attempts begin."""

from __future__ import annotations

import pytest

from runmemory_core import AdapterRun, CheckpointGone, Client, IdempotencyKeyReused, NotFound, StaleAttempt
from runmemory_core.model import Limits, Plan, RunStatus
from tests.contract.faces import HOUR, MINUTE, Face, checkpoint_of


@pytest.mark.rule("RES-01")
def test_a_run_without_a_checkpoint_is_new(client: Client) -> None:
    for attempt in (1, 2):
        reply = client.resume("import")
        assert (reply.status, reply.code, reply.checkpoint, reply.done) == ("new", "new", None, [])
        assert reply.attempt == attempt
        assert reply.outcome == "No checkpoint for import yet: start from the beginning."


@pytest.mark.rule("RES-02")
def test_a_new_run_comes_with_five_recent_unfinished_runs(face: Face, client: Client) -> None:
    for number in range(7):
        face.clock.forward(MINUTE)
        client.save_checkpoint(f"run-{number}", f"step of {number}")
    client.save_checkpoint("run-5", "end", status="finished")
    client.save_checkpoint("run-4", "ask", status="paused")
    face.clock.forward(MINUTE)
    client.save_checkpoint("run-0", "again")
    client.resume("never-saved")
    found = client.resume("runn-3").unfinished
    assert [run.run_id for run in found] == ["run-0", "run-6", "run-4", "run-3", "run-2"]
    assert found[0].model_dump() == {
        "run_id": "run-0",
        "step": "again",
        "seq": 2,
        "status": "running",
        "updated_at": "2026-03-01T12:08:00.000Z",
    }
    assert found[2].status == "paused"
    assert client.resume("run-3").unfinished == []


@pytest.mark.rule("RES-03")
def test_a_resumed_run_brings_its_latest_checkpoint(client: Client) -> None:
    client.save_checkpoint("import", "one", state={"cursor": 1})
    client.save_checkpoint("import", "two", state={"cursor": 2, "names": ["ü"]})
    reply = client.resume("import")
    assert reply.status == "resumed"
    assert checkpoint_of(reply).model_dump() == {
        "seq": 2,
        "step": "two",
        "saved_at": "2026-03-01T12:00:00.000Z",
        "bytes": len('{"cursor":2,"names":["ü"]}'.encode()),
        "removed": [],
        "removed_count": 0,
        "lane": "",
        "state": {"cursor": 2, "names": ["ü"]},
    }


@pytest.mark.rule("RES-03")
def test_a_large_state_comes_back_whole(client: Client) -> None:
    state = {f"list {n}": [f"{n} {i} " + "é" * 60 * (i % 5) for i in range(n)] for n in range(40)}
    client.save_checkpoint("import", "one", state=state | {"text": "\U0001f600" * 10_000})
    client.save_checkpoint("import", "two", state=state | {"number": 1.0})
    assert checkpoint_of(client.resume("import", seq=1)).state == state | {"text": "\U0001f600" * 10_000}
    assert checkpoint_of(client.resume("import")).state == state | {"number": 1.0}


@pytest.mark.rule("RES-04")
def test_done_comes_in_pages_of_1000_in_order_of_first_report(client: Client) -> None:
    ids = [f"invoice {number}" for number in reversed(range(2_001))]
    client.save_checkpoint("import", "one", done=ids[:1_500])
    client.save_checkpoint("import", "two", done=ids)
    reply = client.resume("import")
    assert (reply.done, reply.done_count, reply.done_cursor) == (ids[:1_000], 2_001, 1_000)
    reply = client.resume("import", peek=True, done_cursor=reply.done_cursor)
    assert (reply.done, reply.done_cursor) == (ids[1_000:2_000], 2_000)
    reply = client.resume("import", peek=True, done_cursor=reply.done_cursor)
    assert (reply.done, reply.done_cursor) == (ids[2_000:], None)


@pytest.mark.rule("RES-05")
def test_restart_is_true_after_an_attempt_that_did_not_end(client: Client) -> None:
    assert client.resume("import").restart is False
    client.save_checkpoint("import", "one")
    assert client.resume("import").restart is True
    assert client.resume("import", peek=True).restart is True
    client.save_checkpoint("import", "two", status="failed", error="ValueError: no")
    assert client.resume("import").restart is True
    client.save_checkpoint("import", "three", status="finished")
    assert client.resume("import", start_over=True).restart is False


@pytest.mark.rule("RES-06")
def test_in_flight_lists_what_was_announced_and_not_reported(client: Client) -> None:
    client.save_checkpoint("import", "one", next_step="two")
    assert client.resume("import").in_flight == ["two"]
    client.save_checkpoint("import", "two", next_step="three", done=["b"])
    client.save_checkpoint("import", "and", next_step="c")
    assert client.resume("import").in_flight == ["three", "c"]
    client.save_checkpoint("import", "imported c", done=["c"])
    assert client.resume("import").in_flight == ["three"]
    client.save_checkpoint("import", "all", status="finished")
    assert client.resume("import").in_flight == []


@pytest.mark.rule("RES-07")
def test_a_run_is_stuck_after_three_attempts_that_saved_nothing(client: Client) -> None:
    client.save_checkpoint("import", "one")
    client.save_checkpoint("import", "two")
    for _ in range(3):
        assert client.resume("import").stuck is None
    stuck = client.resume("import").stuck
    assert stuck is not None
    assert stuck.model_dump() == {"attempts": 3, "from_seq": 2, "fall_back_seq": 1}
    assert client.resume("import", peek=True).stuck == stuck
    client.save_checkpoint("import", "three")
    assert client.resume("import").stuck is None


@pytest.mark.rule("RES-07")
def test_a_stuck_run_names_no_checkpoint_that_is_gone(face: Face) -> None:
    client = face.client(limits=Limits(keep=1))
    client.save_checkpoint("import", "one")
    client.save_checkpoint("import", "two")
    stuck = [client.resume("import").stuck for _ in range(4)][-1]
    assert stuck is not None
    assert stuck.fall_back_seq is None


@pytest.mark.rule("RES-08")
def test_a_finished_run_shows_its_state_and_begins_nothing(client: Client) -> None:
    client.resume("import")
    client.save_checkpoint("import", "end", state={"sum": 5}, done=["a"], status="finished")
    for _ in range(2):
        reply = client.resume("import")
        assert (reply.status, reply.attempt, reply.restart, reply.done) == ("finished", 1, False, ["a"])
        assert checkpoint_of(reply).state == {"sum": 5}
        assert reply.outcome == 'import is finished; its last step was "end". Nothing to do again.'


@pytest.mark.rule("RES-09", "SAV-09")
@pytest.mark.parametrize("status", ["running", "finished"])
def test_start_over_begins_without_state_or_done_while_seq_goes_on(client: Client, status: RunStatus) -> None:
    client.resume("import")
    client.save_checkpoint("import", "one", state={"a": 1}, done=["a"], next_step="two", status=status)
    reply = client.resume("import", start_over=True)
    assert (reply.status, reply.checkpoint, reply.done, reply.in_flight) == ("new", None, [], [])
    assert reply.attempt == 2
    saved = client.save_checkpoint("import", "anew", attempt=2)
    assert saved.seq == 2
    reply = client.resume("import")
    assert (reply.done_count, checkpoint_of(reply).state) == (0, {})
    client.save_checkpoint("import", "more", done=["b", "a"])
    assert client.resume("import").done == ["b", "a"]
    assert checkpoint_of(client.resume("import", seq=1)).state == {"a": 1}


@pytest.mark.rule("RES-09")
def test_start_over_with_the_current_attempt_begins_anew_and_with_an_old_one_does_not(client: Client) -> None:
    client.save_checkpoint("import", "one")
    client.resume("import")
    with pytest.raises(StaleAttempt):
        client.resume("import", attempt=1, start_over=True)
    assert client.resume("import", peek=True).status == "resumed"
    reply = client.resume("import", attempt=2, start_over=True)
    assert (reply.status, reply.attempt) == ("new", 3)


@pytest.mark.rule("RES-23")
@pytest.mark.parametrize("plan", list(Plan))
def test_start_over_abandons_the_generation_of_a_running_run_only(face: Face, plan: Plan) -> None:
    client = face.client(plan=plan)
    for status in ("finished", "paused", "failed"):
        client.save_checkpoint("import", status, status=status)
        client.resume("import", start_over=True)
        client.save_checkpoint("import", "end", status="finished")
        client.resume("import", start_over=True)
    assert client.weekly_report().numbers["abandoned"] == 0
    client.save_checkpoint("import", "one")
    assert client.resume("import", start_over=True).restart is False
    numbers = client.weekly_report().numbers
    assert (numbers["abandoned"], numbers["restarts"]) == (1, 0)


@pytest.mark.rule("RES-10")
def test_a_resume_raises_the_attempt_by_one(client: Client) -> None:
    assert [client.resume("import").attempt for _ in range(3)] == [1, 2, 3]
    assert client.save_checkpoint("other", "one").attempt == 1
    assert client.resume("other").attempt == 2


@pytest.mark.rule("RES-11")
def test_peek_changes_nothing(face: Face, client: Client) -> None:
    client.save_checkpoint("import", "one", state={"a": 1}, next_step="two")
    before = face.dump()
    for run_id in ("import", "unknown"):
        reply = client.resume(run_id, peek=True)
    assert (reply.status, reply.attempt) == ("new", None)
    assert checkpoint_of(client.resume("import", peek=True)).state == {"a": 1}
    assert face.dump() == before


@pytest.mark.rule("RES-12")
def test_a_resume_with_the_current_attempt_begins_none(client: Client) -> None:
    client.save_checkpoint("import", "one")
    assert client.resume("import").attempt == 2
    reply = client.resume("import", attempt=2)
    assert (reply.attempt, reply.status) == (2, "resumed")
    assert client.resume("import", peek=True).attempt == 2
    for wrong in (1, 3):
        with pytest.raises(StaleAttempt):
            client.resume("import", attempt=wrong)


@pytest.mark.rule("RES-13")
def test_a_repeated_resume_answers_the_attempt_of_then(client: Client) -> None:
    client.save_checkpoint("import", "one")
    first = client.resume("import", idempotency_key="k")
    again = client.resume("import", idempotency_key="k")
    assert (first.attempt, again.attempt, again.replayed) == (2, 2, True)
    assert again.usage.used == first.usage.used
    assert client.resume("import").attempt == 3
    # Another worker took over, so this one must not be handed the newer attempt.
    assert client.resume("import", idempotency_key="k").attempt == 2
    assert client.resume("import", peek=True).attempt == 3
    with pytest.raises(IdempotencyKeyReused):
        client.resume("other", idempotency_key="k")


@pytest.mark.rule("RES-14")
def test_seq_asks_for_one_kept_checkpoint(client: Client) -> None:
    for number in (1, 2, 3):
        client.save_checkpoint("import", f"step {number}", state={"n": number})
    assert checkpoint_of(client.resume("import", seq=2)).state == {"n": 2}
    with pytest.raises(NotFound, match="no checkpoint 4; its latest is 3"):
        client.resume("import", seq=4)
    with pytest.raises(NotFound):
        client.resume("unknown", seq=1)
    with pytest.raises(NotFound, match="there is no run unknown"):
        client.resume("unknown", peek=True, seq=1)
    assert client.resume("unknown", peek=True).attempt is None
    assert client.resume("import", peek=True).attempt == 2


@pytest.mark.rule("RES-15")
def test_a_removed_checkpoint_is_gone_and_the_oldest_kept_is_named(face: Face) -> None:
    client = face.client(limits=Limits(keep=3))
    for number in range(1, 6):
        client.save_checkpoint("import", f"step {number}")
    with pytest.raises(CheckpointGone, match="the oldest kept is 3") as refusal:
        client.resume("import", seq=2)
    assert refusal.value.facts == {"oldest_seq": 3}
    assert checkpoint_of(client.resume("import", seq=3)).step == "step 3"


@pytest.mark.rule("RES-16")
def test_an_adapters_run_is_shown_like_a_peek(face: Face, client: Client) -> None:
    put = {"op": "put", "key": "a", "step": "node", "state": [["x", {"=": [1]}]]}
    inner = {"op": "put", "lane": "sub|1", "key": "b", "step": "inner", "state": [["x", {"=": 2}]]}
    client.store.commit("graph", "langgraph", operations=[put, inner], parts={})
    before = face.dump()
    reply = client.resume("graph")
    assert (reply.status, reply.attempt) == ("resumed", 1)
    assert checkpoint_of(reply).step == "node"
    assert checkpoint_of(reply).state == {"x": [1]}
    assert checkpoint_of(reply).bytes == len('{"x":[1]}')
    assert checkpoint_of(reply).lane == ""
    inside = checkpoint_of(client.resume("graph", seq=2))
    assert (inside.step, inside.lane, inside.state) == ("inner", "sub|1", {"x": 2})
    with pytest.raises(AdapterRun, match="run graph is written by the langgraph adapter"):
        client.resume("graph", start_over=True)
    assert face.dump() == before


@pytest.mark.rule("RES-17")
def test_the_outcome_says_where_how_much_and_how_long(face: Face, client: Client) -> None:
    client.resume("invoice-import")
    for number in range(6):
        face.clock.forward(5 * MINUTE)
        ids = list(range(52 * number + 1, 52 * number + 53))
        client.save_checkpoint("invoice-import", f"imported invoice {ids[-1]} of 400", done=ids)
    face.clock.forward(HOUR)
    assert client.resume("invoice-import").outcome == (
        'Resuming invoice-import after "imported invoice 312 of 400": '
        "312 done, about 30 minutes not repeated (estimate)."
    )


@pytest.mark.rule("RES-04")
def test_a_further_page_of_done_begins_no_attempt(face: Face) -> None:
    client = face.client(limits=Limits(done_page=2))
    client.save_checkpoint("import", "one", done=["a", "b", "c"])
    first = client.resume("import")
    before = face.dump()
    rest = client.resume("import", done_cursor=first.done_cursor)
    assert (rest.done, rest.attempt) == (["c"], first.attempt)
    assert face.dump() == before
    assert client.save_checkpoint("import", "two", attempt=first.attempt).saved


@pytest.mark.rule("RES-14")
def test_a_resume_of_a_missing_seq_begins_no_attempt(face: Face, client: Client) -> None:
    client.save_checkpoint("import", "one")
    before = face.dump()
    for run_id in ("import", "unknown"):
        with pytest.raises(NotFound):
            client.resume(run_id, seq=99)
    assert face.dump() == before
