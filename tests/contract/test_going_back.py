"""Attempts that go on from where they were asked to, and what is said of how the run was left."""

from __future__ import annotations

import re

import pytest

from runmemory_core import CheckpointGone, Client, InvalidRequest, StaleAttempt


def saved(client: Client, *values: int) -> None:
    for value in values:
        client.save_checkpoint("import", f"step {value}", state={"cursor": value}, done=[value])


@pytest.mark.rule("RES-18")
def test_a_save_without_a_state_keeps_that_of_the_checkpoint_that_was_asked_for(client: Client) -> None:
    saved(client, 1, 2, 3)
    back = client.resume("import", seq=1)
    assert back.checkpoint is not None
    assert (back.checkpoint.seq, back.checkpoint.state) == (1, {"cursor": 1})
    assert back.notices == [
        "this attempt goes on from checkpoint 1, not from the latest, 3; done also holds what was reported after it"
    ]
    peeked = client.resume("import", peek=True)
    assert peeked.checkpoint == back.checkpoint
    again = client.resume("import", attempt=back.attempt)
    assert again.checkpoint == back.checkpoint
    assert client.save_checkpoint("import", "another way", attempt=back.attempt).seq == 4
    now = client.resume("import", peek=True)
    assert now.checkpoint is not None
    assert (now.checkpoint.seq, now.checkpoint.state, now.notices) == (4, {"cursor": 1}, [])


@pytest.mark.rule("RES-18")
def test_an_attempt_that_died_after_going_back_is_followed_by_one_at_the_latest(client: Client) -> None:
    saved(client, 1, 2)
    client.resume("import", seq=1)
    latest = client.resume("import")
    assert latest.checkpoint is not None
    assert (latest.checkpoint.seq, latest.notices) == (2, [])
    assert client.resume("import", seq=2).notices == []
    client.save_checkpoint("import", "on", attempt=4)
    peeked = client.resume("import", peek=True)
    assert peeked.checkpoint is not None
    assert peeked.checkpoint.state == {"cursor": 2}


@pytest.mark.rule("RES-18")
def test_a_look_at_an_older_checkpoint_changes_nothing(client: Client) -> None:
    saved(client, 1, 2)
    client.resume("import", seq=1, peek=True)
    client.save_checkpoint("import", "on")
    peeked = client.resume("import", peek=True)
    assert peeked.checkpoint is not None
    assert peeked.checkpoint.state == {"cursor": 2}


@pytest.mark.rule("RES-19")
def test_start_over_contradicts_a_look_and_an_older_checkpoint(client: Client) -> None:
    saved(client, 1, 2)
    with pytest.raises(
        InvalidRequest, match="start_over begins the run anew and seq asks for one checkpoint"
    ):
        client.resume("import", seq=1, start_over=True)
    with pytest.raises(InvalidRequest, match="and peek only looks: send one of the two") as refusal:
        client.resume("import", peek=True, start_over=True)
    assert set(refusal.value.pointers) == {"/peek", "/start_over"}
    peeked = client.resume("import", peek=True)
    assert (peeked.attempt, peeked.done_count) == (1, 2)


@pytest.mark.rule("RES-09")
def test_starting_over_says_that_there_was_something_before(client: Client) -> None:
    saved(client, 1, 2)
    assert client.resume("import", start_over=True).outcome == (
        "import begins anew: state and done are cleared, checkpoints up to 2 are of before. Start from the beginning."
    )


@pytest.mark.rule("RES-20")
def test_a_paused_run_says_that_it_waits_for_a_person(client: Client) -> None:
    client.save_checkpoint("pay", "asked Ann", state={}, status="paused", next_step="pay 50 EUR")
    for reply in (client.resume("pay", peek=True), client.resume("pay"), client.resume("pay", peek=True)):
        assert (reply.run_status, reply.error, reply.restart) == ("paused", None, False)
        assert reply.outcome.endswith("(estimate). It was paused: it waits for a person.")
    client.save_checkpoint("pay", "Ann said yes", attempt=2)
    assert client.resume("pay", peek=True).run_status is None


@pytest.mark.rule("RES-20")
def test_a_failed_run_hands_back_its_error(client: Client) -> None:
    client.save_checkpoint("import", "one", status="failed", error="disk full")
    for reply in (
        client.resume("import", peek=True),
        client.resume("import"),
        client.resume("import", peek=True),
    ):
        assert (reply.run_status, reply.error) == ("failed", "disk full")
        assert reply.outcome.endswith("(estimate). It had failed: disk full.")
    client.save_checkpoint("import", "two", attempt=2, status="failed", error="x" * 2_000)
    assert client.resume("import").outcome.endswith(f"It had failed: {'x' * 200}…")
    client.resume("import")
    assert client.resume("import", peek=True).run_status is None


@pytest.mark.rule("RES-07")
def test_every_attempt_that_saved_nothing_counts(client: Client) -> None:
    saved(client, 1, 2)
    for _ in range(5):
        client.resume("import")
    stuck = client.resume("import").stuck
    assert stuck is not None
    assert (stuck.attempts, stuck.from_seq, stuck.fall_back_seq) == (5, 2, 1)


@pytest.mark.rule("SAV-19")
@pytest.mark.parametrize(
    ("error", "kept"),
    [
        ("disk full, password=hunter2 for db", "disk full, password=[removed] for db"),
        ("login failed: api_key: 'a b c'; retry", "login failed: api_key: [removed]; retry"),
        ("KeyError: 'password'", "KeyError: 'password'"),
        ("password = hunter2", "password = [removed]"),
        ('{"api_key" => "a b c"}', '{"api_key" => [removed]}'),
        ("timeout: 30 tokens: 5 page_token=abc", "timeout: 30 tokens: 5 page_token=abc"),
    ],
)
def test_an_error_keeps_no_value_that_its_name_gives_away(client: Client, error: str, kept: str) -> None:
    client.save_checkpoint("import", "one", status="failed", error=error)
    assert client.resume("import").error == kept


@pytest.mark.rule("SAV-19")
def test_an_error_that_grows_by_what_is_removed_still_fits(client: Client) -> None:
    client.save_checkpoint("import", "one", status="failed", error="pwd=ab " * 285)
    error = client.resume("import").error
    assert error is not None
    assert error.startswith("pwd=[removed] ")
    assert len(error) == 2_000


@pytest.mark.rule("SAV-20")
def test_the_outcome_says_what_became_of_the_run(client: Client) -> None:
    told = {
        status: client.save_checkpoint(status, "s", status=status).outcome.partition('"s". ')[2]
        for status in ("running", "paused", "failed", "finished")
    }
    assert told == {
        "running": "A crash now resumes right here.",
        "paused": "The run is paused; it resumes right here.",
        "failed": "The attempt failed; the next one resumes right here.",
        "finished": "The run is finished.",
    }


@pytest.mark.rule("RES-21")
def test_an_attempt_of_an_unknown_run_is_refused(client: Client) -> None:
    with pytest.raises(StaleAttempt, match="there is no run import, so attempt 7 of it does not exist"):
        client.resume("import", attempt=7)
    assert client.resume("import", peek=True).attempt is None


@pytest.mark.rule("RES-21")
def test_a_finished_run_names_its_last_step_whatever_seq_is_asked_for(client: Client) -> None:
    saved(client, 1)
    client.save_checkpoint("import", "the end", status="finished")
    reply = client.resume("import", seq=1)
    assert reply.outcome == 'import is finished; its last step was "the end". Nothing to do again.'
    assert reply.checkpoint is not None
    assert reply.checkpoint.step == "step 1"


@pytest.mark.rule("RES-22")
def test_a_deleted_run_is_said_to_be_gone_and_not_never_to_have_been(client: Client) -> None:
    saved(client, 1)
    client.store.delete_run("import")
    with pytest.raises(
        CheckpointGone, match=r"run import was deleted at 20..-.*: none of its checkpoints is kept"
    ):
        client.resume("import", seq=1)
    for reply in (client.resume("import", peek=True), client.resume("import")):
        assert reply.status == "new"
        assert re.fullmatch(
            "Run import was deleted at 20.*Z: nothing of it is kept. Start from the beginning.", reply.outcome
        )
    assert client.resume("import").outcome == "No checkpoint for import yet: start from the beginning."


@pytest.mark.rule("RES-02")
def test_runs_that_saved_nothing_hide_no_unfinished_one(client: Client) -> None:
    saved(client, 1)
    for number in range(101):
        client.resume(f"sub-run {number}")
    assert [run.run_id for run in client.resume("imprt").unfinished] == ["import"]


@pytest.mark.rule("RES-20")
def test_an_error_is_handed_back_whatever_the_status(client: Client) -> None:
    client.save_checkpoint("pay", "asked", status="paused", error="waiting for Bob")
    assert (client.resume("pay").run_status, client.resume("pay", peek=True).error) == (
        "paused",
        "waiting for Bob",
    )
    client.save_checkpoint("import", "one", error="page 3 was skipped")
    reply = client.resume("import")
    assert (reply.run_status, reply.error) == (None, "page 3 was skipped")
    assert client.resume("import", start_over=True).error is None
