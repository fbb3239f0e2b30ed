"""How long things live: answers by key, tombstones, terms, and what is said when one of them ends."""

from __future__ import annotations

import pytest

from runmemory_core import Client, IdempotencyKeyReused, RunDeleted, StaleAttempt
from runmemory_core.model import Limits, Plan
from tests.contract.faces import DAY, Face

KEEPS_TWO = Limits(keep=2, kept_for_ms=30 * DAY)


@pytest.mark.rule("SAV-25")
def test_a_late_resume_does_not_fence_the_worker_that_started_over(client: Client) -> None:
    client.resume("import", idempotency_key="first")
    client.save_checkpoint("import", "one", state={"cursor": 1})
    worker = client.resume("import", start_over=True)
    late = client.resume("import", idempotency_key="first")
    assert (late.attempt, late.replayed) == (1, True)
    assert client.save_checkpoint("import", "anew", attempt=worker.attempt).seq == 2
    with pytest.raises(StaleAttempt):
        client.save_checkpoint("import", "late", attempt=late.attempt)


@pytest.mark.rule("SAV-25")
def test_a_repeated_start_over_leaves_the_newer_generation_alone(client: Client) -> None:
    client.resume("import", start_over=True, idempotency_key="over")
    client.resume("import", start_over=True)
    client.save_checkpoint("import", "newest", done=["a"])
    assert client.resume("import", start_over=True, idempotency_key="over").attempt == 1
    now = client.resume("import", peek=True)
    assert (now.attempt, now.done) == (2, ["a"])


@pytest.mark.rule("SAV-25")
def test_a_save_repeated_after_start_over_is_answered_again_and_stored_once(client: Client) -> None:
    client.save_checkpoint("import", "one", state={"cursor": 1}, idempotency_key="k")
    client.save_checkpoint("import", "two")
    client.resume("import", start_over=True)
    again = client.save_checkpoint("import", "one", state={"cursor": 1}, idempotency_key="k")
    assert (again.seq, again.replayed) == (1, True)
    assert again.notices == ["the run was begun anew since this was saved, and does not go on from it"]
    assert client.resume("import", peek=True).status == "new"
    with pytest.raises(IdempotencyKeyReused):
        client.save_checkpoint("another", "one", idempotency_key="k")


@pytest.mark.rule("SAV-25")
def test_a_save_repeated_when_start_over_and_retention_took_its_checkpoint_is_stale(face: Face) -> None:
    client = face.client(account="customer", plan=Plan.PRO, limits=KEEPS_TWO)
    client.save_checkpoint("import", "one", idempotency_key="k")
    client.resume("import", start_over=True)
    for step in ("two", "three"):
        client.save_checkpoint("import", step)
    with pytest.raises(
        StaleAttempt, match="begun anew since this save was answered, at attempt 1"
    ) as refusal:
        client.save_checkpoint("import", "one", idempotency_key="k")
    assert refusal.value.facts == {"attempt": 1, "current_attempt": 2}


@pytest.mark.rule("SAV-25")
def test_nothing_repeated_revives_a_deleted_run(client: Client) -> None:
    client.resume("import", idempotency_key="r")
    client.save_checkpoint("import", "one", state={"cursor": 1}, idempotency_key="k")
    client.store.delete_run("import")
    late = client.resume("import", idempotency_key="r")
    assert (late.status, late.attempt, late.replayed) == ("new", 1, True)
    with pytest.raises(RunDeleted, match="was deleted or expired since this save was answered"):
        client.save_checkpoint("import", "one", state={"cursor": 1}, idempotency_key="k")
    with pytest.raises(RunDeleted):
        client.save_checkpoint("import", "two", attempt=late.attempt)


@pytest.mark.rule("SAV-25")
def test_the_state_of_a_deleted_run_does_not_become_that_of_the_one_begun_anew(client: Client) -> None:
    client.save_checkpoint("import", "one", state={"cursor": 1}, idempotency_key="k")
    client.store.delete_run("import")
    begun = client.resume("import")
    for _ in range(2):
        with pytest.raises(StaleAttempt, match="at attempt 1, and is at attempt 2 now; stop"):
            client.save_checkpoint("import", "one", state={"cursor": 1}, idempotency_key="k")
        # The second time there is a checkpoint of that seq again.
        client.save_checkpoint("import", "anew", state={"cursor": 0}, attempt=begun.attempt)
    checkpoint = client.resume("import", peek=True).checkpoint
    assert checkpoint is not None
    assert (checkpoint.seq, checkpoint.state) == (1, {"cursor": 0})


@pytest.mark.rule("SAV-26")
def test_a_save_without_a_state_repeats_its_size_after_its_checkpoint_went(face: Face) -> None:
    client = face.client(account="customer", plan=Plan.PRO, limits=KEEPS_TWO)
    client.save_checkpoint("import", "one", state={"text": "x" * 500})
    first = client.save_checkpoint("import", "two", idempotency_key="k")
    for step in ("three", "four"):
        client.save_checkpoint("import", step)
    again = client.save_checkpoint("import", "two", idempotency_key="k")
    assert (again.seq, again.bytes, again.attempt, again.replayed) == (2, first.bytes, 1, True)
    assert again.outcome == first.outcome


@pytest.mark.rule("DEL-03")
def test_a_run_id_is_free_seven_days_after_its_deletion_without_any_sweep(face: Face) -> None:
    client = face.client()
    client.save_checkpoint("import", "one", state={"cursor": 1}, done=["a"])
    client.resume("import")
    client.store.delete_run("import")
    face.clock.forward(7 * DAY)
    with pytest.raises(RunDeleted):
        client.save_checkpoint("import", "late")
    face.clock.forward(1)
    assert client.resume("import", peek=True).outcome.startswith("No checkpoint for import yet")
    assert client.save_checkpoint("import", "anew", attempt=1).seq == 1
    resumed = client.resume("import")
    assert (resumed.attempt, resumed.done) == (2, [])


@pytest.mark.rule("STO-25")
def test_a_copy_hands_over_the_steps_in_flight(client: Client) -> None:
    client.save_checkpoint("import", "one", next_step="two")
    client.store.copy_run("import", target_run_id="copy")
    assert client.resume("copy").in_flight == ["two"]


@pytest.mark.rule("STO-25")
def test_a_copy_in_place_of_a_deleted_run_is_not_written_by_its_old_worker(client: Client) -> None:
    client.save_checkpoint("import", "one")
    client.save_checkpoint("old", "one", attempt=1, idempotency_key="k")
    client.store.delete_run("old")
    client.store.copy_run("import", target_run_id="old")
    for key in (None, "k"):
        with pytest.raises(StaleAttempt):
            client.save_checkpoint("old", "one", attempt=1, idempotency_key=key)
    assert client.resume("old", peek=True).attempt == 2


@pytest.mark.rule("SAV-27")
def test_the_step_in_flight_that_is_one_too_many_is_named(client: Client) -> None:
    for number in range(50):
        assert client.save_checkpoint("import", f"step {number}", next_step=f"next {number}").notices == []
    (notice,) = client.save_checkpoint("import", "step", next_step="next").notices
    assert notice == (
        'over 50 steps are in flight: "next 0", the oldest, is not kept as one any more; report steps by the name that '
        "next_step announced"
    )
    in_flight = client.resume("import").in_flight
    assert (len(in_flight), in_flight[0], in_flight[-1]) == (50, "next 1", "next")


@pytest.mark.rule("SAV-27")
def test_the_first_done_argument_says_what_of_the_done_list_counts_no_more(client: Client) -> None:
    client.save_checkpoint("import", "one", state={"done": ["a", "b", 3]})
    assert client.resume("import").done == ["a", "b", "3"]
    reply = client.save_checkpoint("import", "two", state={"done": ["a", "b", 3, "c"]}, done=["c"])
    (notice,) = reply.notices
    assert notice == (
        "from the first done argument on, resume hands back what was given there, not 3 ids that only the state's done "
        "list names: give these as done too"
    )
    assert client.resume("import").done == ["c"]
    assert client.save_checkpoint("import", "three", done=["d"]).notices == []
    client.save_checkpoint("other", "one", state={"done": ["a"]})
    assert client.save_checkpoint("other", "two", done=["a", "b"]).notices == []
    first = client.save_checkpoint("third", "one", state={"done": ["a"]}, done=["b"])
    assert "1 id that only" in first.notices[0]
