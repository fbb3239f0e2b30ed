"""save_checkpoint: what is kept, in which order, and what is refused."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import pytest

from runmemory_core import (
    Client,
    IdempotencyKeyReused,
    InvalidRequest,
    OverQuota,
    RunDeleted,
    RunFinished,
    RunMemoryError,
    SeqConflict,
    StaleAttempt,
    StateTooLarge,
)
from runmemory_core.errors import CredentialInName
from runmemory_core.model import Limits, RunStatus
from tests.contract.faces import HOUR, MINUTE, Face, checkpoint_of


@pytest.mark.rule("SAV-01")
def test_the_outcome_says_what_was_saved(client: Client) -> None:
    for number in range(1, 12):
        client.save_checkpoint("import", f"imported invoice {number} of 400")
    state = {"cursor": "invoice-312", "batch": [311, 12]}
    reply = client.save_checkpoint("import", "imported invoice 312 of 400", state=state)
    assert reply.outcome == (
        'Saved checkpoint 12 (41 B) after "imported invoice 312 of 400" (cursor, batch). '
        "A crash now resumes right here."
    )
    assert (reply.saved, reply.code, reply.seq, reply.bytes) == (True, "saved", 12, 41)


@pytest.mark.rule("SAV-01")
def test_the_outcome_is_one_short_line_whatever_the_names_hold(client: Client) -> None:
    state = {"line\nbreak": 1, "k" * 100_000: 2}
    reply = client.save_checkpoint("r\u2028un", "a\x1b[2J\r\nb", state=state)
    assert reply.outcome == (
        f'Saved checkpoint 1 (97.7 KB) after "a [2J b" (line break, {"k" * 40}…). A crash now resumes right here.'
    )
    assert reply.understood == 'save "a [2J b" of run r un'
    assert reply.run_id == "r\u2028un"
    found = client.resume("r\u2028un", peek=True)
    assert found.outcome.startswith('Resuming r un after "a [2J b": ')
    assert found.checkpoint is not None
    assert found.checkpoint.step == "a\x1b[2J\r\nb"


@pytest.mark.rule("SAV-02")
def test_a_string_that_holds_an_object_is_taken_as_it(client: Client) -> None:
    reply = client.save_checkpoint("import", "one", state=' {"a": [1, 2]} ')
    assert reply.notices == ["state was a string that holds a JSON object; it was taken as that object"]
    assert reply.bytes == len('{"a":[1,2]}')
    assert checkpoint_of(client.resume("import")).state == {"a": [1, 2]}
    for wrong in ("[1]", "plain", '{"a": 1', "3", ""):
        with pytest.raises(InvalidRequest) as refusal:
            client.save_checkpoint("import", "two", state=wrong)
        assert list(refusal.value.pointers) == ["/state"]


@pytest.mark.rule("SAV-03")
def test_without_a_state_the_previous_one_stays(client: Client) -> None:
    client.save_checkpoint("import", "one")
    assert checkpoint_of(client.resume("import")).state == {}
    large = {"list": [f"item {n} " * 40 for n in range(100)]}
    client.save_checkpoint("import", "two", state=large)
    reply = client.save_checkpoint("import", "three")
    assert checkpoint_of(client.resume("import")).state == large
    assert reply.bytes == checkpoint_of(client.resume("import")).bytes
    client.save_checkpoint("import", "four", state={})
    assert checkpoint_of(client.resume("import")).state == {}


@pytest.mark.rule("SAV-04")
def test_done_is_a_union_in_order_of_first_report_outside_retention(face: Face) -> None:
    client = face.client(limits=Limits(keep=1))
    client.save_checkpoint("import", "one", done=["b", "a", "b"])
    client.save_checkpoint("import", "two", done=["c", "a"])
    client.save_checkpoint("import", "three", done=[])
    reply = client.resume("import")
    assert (reply.done, reply.done_count) == (["b", "a", "c"], 3)


@pytest.mark.rule("SAV-05")
def test_the_done_set_is_bounded_and_known_ids_do_not_count_again(face: Face) -> None:
    client = face.client(limits=Limits(done_ids=5))
    client.save_checkpoint("import", "one", done=["a", "b", "c"])
    client.save_checkpoint("import", "two", done=["a", "b", "c", "d", "d"])
    before = face.dump()
    with pytest.raises(InvalidRequest, match="done would hold 6 ids; the limit is 5") as refusal:
        client.save_checkpoint("import", "three", done=["c", "e", "f"])
    assert list(refusal.value.pointers) == ["/done"]
    assert face.dump() == before
    client.save_checkpoint("import", "three", done=["c", "e", "e"])
    assert client.resume("import").done == ["a", "b", "c", "d", "e"]
    with pytest.raises(InvalidRequest):
        face.client().save_checkpoint("import", "four", done=[str(number) for number in range(100_001)])


@pytest.mark.rule("SAV-06")
def test_a_done_list_in_the_state_counts_while_none_was_reported(face: Face) -> None:
    client = face.client(limits=Limits(done_page=2))
    client.save_checkpoint("import", "one", state={"done": ["a", 2, 1.5]})
    reply = client.resume("import")
    assert (reply.done, reply.done_count, reply.done_cursor) == (["a", "2"], 3, 2)
    assert client.resume("import", peek=True, done_cursor=2).done == ["1.5"]
    assert 'after "one": 3 done' in reply.outcome
    client.save_checkpoint("import", "two", state={"done": [{"id": 1}]})
    assert client.resume("import").done == []
    client.save_checkpoint("import", "three", state={"done": ["a"]}, done=["b"])
    assert client.resume("import").done == ["b"]


@pytest.mark.rule("SAV-07")
def test_a_paused_run_that_is_resumed_did_not_restart(client: Client) -> None:
    client.resume("import")
    client.save_checkpoint("import", "waits for approval", status="paused")
    reply = client.resume("import")
    assert (reply.status, reply.restart) == ("resumed", False)
    assert client.resume("import").restart is True


@pytest.mark.rule("SAV-08")
def test_a_failed_run_keeps_its_error_for_the_report(client: Client) -> None:
    client.save_checkpoint("import", "one", status="failed", error="ValueError: no such file")
    assert client.list_checkpoints("import").checkpoints[0].run_status == "failed"
    client.resume("import")
    assert 'import stopped after "one" on 2026-03-01 at 12:00 UTC: ValueError: no such file.' in (
        client.weekly_report().text
    )


@pytest.mark.rule("SAV-24")
def test_a_save_says_the_status_and_running_unless_it_does(client: Client) -> None:
    statuses: list[tuple[RunStatus | None, RunStatus]] = [
        ("paused", "paused"),
        (None, "running"),
        ("failed", "failed"),
        ("running", "running"),
    ]
    for given, shown in statuses:
        client.save_checkpoint("import", f"{given}", status=given)
        assert client.list_checkpoints("import").checkpoints[0].run_status == shown


@pytest.mark.rule("SAV-09")
def test_nothing_is_saved_after_finished(face: Face, client: Client) -> None:
    client.save_checkpoint("import", "end", status="finished")
    before = face.dump()
    with pytest.raises(RunFinished, match=r"import is finished: .* start_over=true"):
        client.save_checkpoint("import", "more", state={"a": 1}, done=["x"])
    assert face.dump() == before
    client.resume("import", start_over=True)
    assert client.save_checkpoint("import", "more").seq == 2


@pytest.mark.rule("SAV-10")
def test_seq_has_no_gap_whatever_is_refused_in_between(client: Client) -> None:
    seqs: list[int | None] = []
    refusals: list[Callable[[], object]] = [
        partial(client.save_checkpoint, "import", "x", state={"a": "x" * 262_144}),
        partial(client.save_checkpoint, "import", "x", expected_seq=99),
        partial(client.save_checkpoint, "import", "x", attempt=9),
        partial(client.save_checkpoint, "import", ""),
        partial(client.save_checkpoint, "import", "x", state={"a": float("nan")}),
        partial(client.resume, "import", seq=99),
    ]
    for number, refused in enumerate(refusals):
        seqs.append(client.save_checkpoint("import", f"step {number}").seq)
        with pytest.raises(RunMemoryError):
            refused()
        client.save_checkpoint("other", f"step {number}")
    assert seqs == [1, 2, 3, 4, 5, 6]
    assert client.save_checkpoint("other", "last").seq == 7


@pytest.mark.rule("SAV-11")
def test_a_replaced_attempt_is_refused_with_the_time_of_the_takeover(face: Face, client: Client) -> None:
    first = client.resume("import").attempt
    client.save_checkpoint("import", "one", attempt=first)
    face.clock.forward(3 * MINUTE)
    second = client.resume("import").attempt
    face.clock.forward(HOUR)
    before = face.dump()
    with pytest.raises(StaleAttempt, match=r"^another worker resumed this run at 12:03; stop") as refusal:
        client.save_checkpoint("import", "two", attempt=first)
    assert refusal.value.facts == {"attempt": 1, "current_attempt": 2}
    with pytest.raises(StaleAttempt, match="attempt 3 of run import does not exist yet"):
        client.save_checkpoint("import", "two", attempt=3)
    assert face.dump() == before
    assert client.save_checkpoint("import", "two", attempt=second).seq == 2


@pytest.mark.rule("SAV-11")
def test_a_run_that_does_not_exist_adopts_no_attempt(face: Face, client: Client) -> None:
    client.save_checkpoint("import", "one")
    before = face.dump()
    with pytest.raises(StaleAttempt, match="there is no run forgotten, so attempt 3 of it does not exist"):
        client.save_checkpoint("forgotten", "one", attempt=3)
    for argument in ("attempt", "expected_seq"):
        with pytest.raises(
            InvalidRequest, match=f"{argument} should be less than or equal to 9007199254740992"
        ):
            client.save_checkpoint("import", "two", **{argument: 2**70})
    assert face.dump() == before
    assert client.save_checkpoint("forgotten", "one", attempt=1).attempt == 1


@pytest.mark.rule("SAV-12")
def test_a_save_without_its_attempt_is_unfenced_once_the_run_was_resumed(client: Client) -> None:
    client.resume("new")
    assert client.save_checkpoint("new", "one").unfenced is True
    assert client.save_checkpoint("new", "two", attempt=1).unfenced is False
    assert client.save_checkpoint("import", "one").unfenced is False
    attempt = client.resume("import").attempt
    assert client.save_checkpoint("import", "two").unfenced is True
    assert client.save_checkpoint("import", "three", attempt=attempt).unfenced is False


@pytest.mark.rule("SAV-13")
def test_expected_seq_refuses_when_the_run_moved_on(face: Face, client: Client) -> None:
    client.save_checkpoint("import", "one", expected_seq=0)
    client.save_checkpoint("import", "two", expected_seq=1)
    before = face.dump()
    with pytest.raises(SeqConflict, match="is at seq 2, not 1") as refusal:
        client.save_checkpoint("import", "three", expected_seq=1)
    assert refusal.value.facts == {"expected_seq": 1, "current_seq": 2}
    with pytest.raises(SeqConflict):
        client.save_checkpoint("new", "one", expected_seq=1)
    assert face.dump() == before


@pytest.mark.rule("SAV-14")
def test_a_repeated_save_answers_the_first_answer(face: Face, client: Client) -> None:
    client.resume("import")
    client.save_checkpoint("import", "one", state={"a": "ü"}, idempotency_key="other")
    client.resume("import")
    for state in ({"b": 1}, None):
        first = client.save_checkpoint("import", "two", state=state, idempotency_key=f"{state}")
        third = client.save_checkpoint("import", "three")
        before = face.dump()
        again = client.save_checkpoint("import", "two", state=state, idempotency_key=f"{state}")
        assert again.replayed
        assert again.code == "replayed"
        since = f"this is the answer of then: the run went on since, to checkpoint {third.seq}"
        assert again.notices == [*first.notices, since]
        changed = {"replayed": False, "code": "saved", "usage": first.usage, "notices": first.notices}
        assert again.model_copy(update=changed) == first
        assert face.dump() == before


@pytest.mark.rule("SAV-14")
def test_a_key_counts_for_all_operations_and_for_a_week_at_least(face: Face, client: Client) -> None:
    first = client.save_checkpoint("import", "one", idempotency_key="k")
    client.save_checkpoint("import", "two")
    face.clock.forward(7 * 24 * HOUR - 1)
    assert client.save_checkpoint("import", "one", idempotency_key="k").seq == first.seq
    with pytest.raises(IdempotencyKeyReused):
        client.resume("import", idempotency_key="k")


@pytest.mark.rule("SAV-15")
def test_a_key_with_another_body_is_refused(face: Face, client: Client) -> None:
    client.save_checkpoint("import", "one", state={"a": 1}, idempotency_key="k")
    before = face.dump()
    others = [
        partial(client.save_checkpoint, "import", "two", state={"a": 1}),
        partial(client.save_checkpoint, "import", "one", state={"a": 2}),
        partial(client.save_checkpoint, "import", "one"),
        partial(client.save_checkpoint, "export", "one", state={"a": 1}),
        partial(client.save_checkpoint, "import", "one", state={"a": 1}, done=["x"]),
    ]
    for other in others:
        with pytest.raises(IdempotencyKeyReused) as refusal:
            other(idempotency_key="k")
        assert list(refusal.value.pointers) == ["/idempotency_key"]
    assert face.dump() == before


@pytest.mark.rule("SAV-16")
def test_a_save_identical_to_the_one_before_is_a_replay(client: Client) -> None:
    first = client.save_checkpoint("import", "one", state={"a": 1})
    again = client.save_checkpoint("import", "one", state={"a": 1})
    assert (again.seq, again.replayed, again.usage.used) == (1, True, first.usage.used)
    client.save_checkpoint("import", "two", state={"a": 1})
    assert client.save_checkpoint("import", "one", state={"a": 1}).seq == 3
    client.resume("import")
    assert client.save_checkpoint("import", "one", state={"a": 1}).seq == 4
    ended = client.save_checkpoint("import", "end", status="finished")
    assert client.save_checkpoint("import", "end", status="finished").seq == ended.seq


@pytest.mark.rule("SAV-16")
def test_a_replay_is_remembered_under_its_own_key_too(client: Client) -> None:
    client.save_checkpoint("import", "one", idempotency_key="a")
    assert client.save_checkpoint("import", "one", idempotency_key="b").seq == 1
    client.save_checkpoint("import", "two", idempotency_key="c")
    # Delivered late and twice: it must not become the newest checkpoint.
    assert client.save_checkpoint("import", "one", idempotency_key="b").seq == 1
    assert checkpoint_of(client.resume("import")).step == "two"


@pytest.mark.rule("SAV-17")
def test_admission_looks_in_its_order(face: Face) -> None:
    client = face.client()
    tight = face.client(limits=Limits(calls_a_day=4, state_bytes=100))
    client.save_checkpoint("gone", "one")
    client.store.delete_run("gone")
    client.save_checkpoint("import", "one", attempt=1, idempotency_key="replay")
    client.resume("import")
    client.resume("other")

    def save(run_id: str, *, attempt: int = 1, expected_seq: int = 9, text: str = "x" * 200) -> object:
        state = {"text": text}
        return tight.save_checkpoint(run_id, "two", state=state, attempt=attempt, expected_seq=expected_seq)

    assert tight.save_checkpoint("import", "one", attempt=1, idempotency_key="replay").seq == 1
    with pytest.raises(RunDeleted):
        save("gone")
    with pytest.raises(StaleAttempt):
        save("import")
    with pytest.raises(SeqConflict):
        save("import", attempt=2)
    with pytest.raises(StateTooLarge):
        save("import", attempt=2, expected_seq=1)
    with pytest.raises(OverQuota):
        save("import", attempt=2, expected_seq=1, text="")


@pytest.mark.rule("SAV-18")
def test_order_is_seq_whatever_the_clock_does(face: Face, client: Client) -> None:
    for number in (1, 2, 3):
        client.save_checkpoint("import", f"step {number}", state={"n": number})
        face.clock.forward(-HOUR)
    reply = client.resume("import")
    assert checkpoint_of(reply).step == "step 3"
    assert "under a second not repeated" in reply.outcome
    assert [row.seq for row in client.list_checkpoints("import").checkpoints] == [3, 2, 1]


@pytest.mark.rule("RED-02")
def test_a_credential_in_an_error_is_removed_and_in_a_done_id_refused(face: Face, client: Client) -> None:
    key = "sk-ant-" + "api03-" + "Zx8Qw3Er5Ty7Ui9Op1As" * 4
    client.save_checkpoint("import", "one", status="failed", error=f"401 for {key}")
    assert key not in "\n".join(face.dump())
    assert "401 for [removed]" in "\n".join(face.dump())
    with pytest.raises(CredentialInName) as refusal:
        client.save_checkpoint("import", "two", done=["a", "b", key])
    assert list(refusal.value.pointers) == ["/done/2"]
    change = {"op": "put", "key": "a", "state": [], "step": key}
    with pytest.raises(CredentialInName) as refusal:
        client.store.commit("graph", "langgraph", operations=[change], parts={})
    assert list(refusal.value.pointers) == ["/operations/0/step"]
