"""What every call takes and every reply gives."""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest

from runmemory_core import Client, InvalidRequest, RunMemoryError
from runmemory_core.model import Plan
from runmemory_core.operations.tools import SaveReply
from tests.contract.faces import DAY, NOON, Face


def save(client: Client, **arguments: Any) -> SaveReply:
    """A save whose arguments no type checker has seen."""
    return client.save_checkpoint(**arguments)


@pytest.mark.rule("ENV-01")
def test_every_reply_carries_the_envelope(client: Client) -> None:
    replies = [
        client.resume("import"),
        client.save_checkpoint("import", "one", state={}),
        client.list_checkpoints("import"),
        client.weekly_report(),
        client.usage_and_upgrade(),
    ]
    assert [reply.code for reply in replies] == ["new", "saved", "listed", "reported", "usage"]
    assert [reply.usage.used for reply in replies] == [1, 2, 2, 2, 2]
    assert [reply.understood for reply in replies] == [
        "resume run import",
        'save "one" of run import',
        "list checkpoints of run import",
        "report on the last 7 days",
        "show usage and plan",
    ]
    for reply in replies:
        assert reply.job
        assert "\n" not in reply.outcome
        assert reply.mode == "acting"


@pytest.mark.rule("ENV-01")
def test_in_watch_every_reply_carries_the_envelope(face: Face) -> None:
    client = face.client(plan=Plan.WATCH)
    replies = [
        client.resume("import"),
        client.save_checkpoint("import", "one", state={}, job="March invoices"),
        client.list_checkpoints("import"),
        client.weekly_report(),
        client.usage_and_upgrade(),
    ]
    assert [reply.code for reply in replies] == ["new", "would_save", "listed", "reported", "usage"]
    assert [reply.usage.remaining for reply in replies] == [499, 498, 498, 498, 498]
    assert replies[1].job == "March invoices"
    for reply in replies:
        assert (reply.mode, reply.usage.limit) == ("watch", 500)
        assert reply.understood
        assert reply.job
        assert "\n" not in reply.outcome


@pytest.mark.rule("ENV-04")
def test_an_outcome_says_saved_only_when_it_was(face: Face) -> None:
    acting, watching = face.client(), face.client(account="visitor", plan=Plan.WATCH)
    for replayed in (False, True):
        reply = acting.save_checkpoint("import", "one", idempotency_key="k")
        assert (reply.saved, reply.replayed) == (True, replayed)
        assert reply.outcome.startswith("Saved checkpoint 1 ")
        assert acting.list_checkpoints("import").checkpoints[0].seq == reply.seq
    replies = [
        watching.save_checkpoint("import", "one"),
        watching.resume("import"),
        watching.list_checkpoints(),
        acting.resume("import"),
        acting.usage_and_upgrade(),
    ]
    for reply in replies:
        assert "saved" not in reply.outcome.lower()


@pytest.mark.rule("ENV-02")
def test_the_job_is_the_one_given_else_the_run(client: Client) -> None:
    assert client.save_checkpoint("import", "one").job == "import"
    assert client.save_checkpoint("import", "two", job="March invoices").job == "March invoices"
    assert client.resume("import").job == "March invoices"
    assert client.save_checkpoint("import", "three").job == "import"
    assert client.resume("import").job == "March invoices"


@pytest.mark.rule("ENV-03")
def test_usage_counts_the_calls_of_the_utc_day(face: Face, client: Client) -> None:
    client.save_checkpoint("import", "one")
    assert client.save_checkpoint("import", "two").usage.model_dump() == {
        "used": 2,
        "limit": None,
        "remaining": None,
        "reset_at": "2026-03-02T00:00:00.000Z",
    }
    face.clock.forward(DAY // 2 - 1)
    assert client.usage_and_upgrade().usage.used == 2
    face.clock.forward(1)
    usage = client.usage_and_upgrade().usage
    assert (usage.used, usage.reset_at) == (0, "2026-03-03T00:00:00.000Z")
    assert face.clock.now_ms == NOON + DAY // 2


@pytest.mark.rule("ARG-01")
def test_names_have_1_to_200_characters(face: Face, client: Client) -> None:
    names = ("run_id", "step", "job", "next_step")
    arguments = {"run_id": "import", "step": "one"}
    for name in names:
        save(client, **arguments | {name: "ü" * 200})
    before = face.dump()
    bounds = {"": "it takes at least 1", "ü" * 201: "has 201 characters; it takes at most 200"}
    for name, (wrong, words) in product(names, bounds.items()):
        with pytest.raises(InvalidRequest, match=words) as refusal:
            save(client, **arguments | {name: wrong})
        assert list(refusal.value.pointers) == [f"/{name}"]
    assert face.dump() == before


@pytest.mark.rule("ARG-07")
def test_an_id_of_a_finished_item_has_1_to_200_characters(face: Face, client: Client) -> None:
    client.save_checkpoint("import", "one", done=["\xfc" * 200])
    before = face.dump()
    for wrong in ("", "\xfc" * 201):
        with pytest.raises(InvalidRequest) as refusal:
            client.save_checkpoint("import", "two", done=["a", wrong])
        assert list(refusal.value.pointers) == ["/done/1"]
    assert face.dump() == before


@pytest.mark.rule("ARG-02")
def test_an_integer_id_equals_its_decimal_string(client: Client) -> None:
    client.save_checkpoint(7, "one", done=[312, "313"])
    assert client.resume("7").done == ["312", "313"]
    assert client.save_checkpoint("7", "two", done=["312"]).seq == 2
    assert client.resume(7).done == ["312", "313"]
    names = {"step": 1, "job": 2, "next_step": 3, "idempotency_key": 4}
    assert save(client, run_id=8, **names).job == "2"
    assert save(client, run_id="8", **{name: str(number) for name, number in names.items()}).replayed
    resumed = client.resume("8")
    assert (resumed.job, resumed.in_flight) == ("2", ["3"])
    assert resumed.checkpoint is not None
    assert resumed.checkpoint.step == "1"


@pytest.mark.rule("ARG-03")
def test_null_counts_as_absent(client: Client) -> None:
    client.save_checkpoint("import", "one", state={"cursor": 1}, next_step="two")
    nothing = dict.fromkeys(
        ("state", "done", "next_step", "status", "error", "attempt", "job", "expected_seq")
    )
    save(client, run_id="import", step="two", **nothing)
    checkpoint = client.resume("import").checkpoint
    assert checkpoint is not None
    assert checkpoint.state == {"cursor": 1}


@pytest.mark.rule("ARG-04")
def test_an_unknown_argument_is_refused_by_name(face: Face, client: Client) -> None:
    client.save_checkpoint("import", "one")
    before = face.dump()
    with pytest.raises(
        InvalidRequest, match="stat is not an argument of save_checkpoint; it takes run_id"
    ) as refusal:
        client._ask(SaveReply, "save_checkpoint", {"run_id": "import", "step": "two", "stat": {"a": 1}})
    assert list(refusal.value.pointers) == ["/stat"]
    assert face.dump() == before


@pytest.mark.rule("ARG-05")
def test_nothing_is_converted(face: Face, client: Client) -> None:
    wrong_types: list[tuple[str, Any]] = [
        ("run_id", True),
        ("run_id", 1.5),
        ("step", ["one"]),
        ("attempt", "1"),
        ("attempt", True),
        ("attempt", 1.0),
        ("attempt", 0),
        ("expected_seq", -1),
        ("done", "one"),
        ("done", [True]),
        ("done", [None]),
        ("done", [1.5]),
        ("status", "done"),
        ("error", 5),
        ("error", "e" * 2_001),
    ]
    client.save_checkpoint("import", "one")
    before = face.dump()
    for name, wrong in wrong_types:
        with pytest.raises(InvalidRequest) as refusal:
            save(client, **{"run_id": "import", "step": "two"} | {name: wrong})
        (pointer,) = refusal.value.pointers
        assert pointer.removesuffix("/0") == f"/{name}"
    assert face.dump() == before


@pytest.mark.rule("ARG-06")
def test_a_missing_argument_is_refused_by_name(client: Client) -> None:
    with pytest.raises(InvalidRequest, match="run_id is required by save_checkpoint") as refusal:
        client._ask(SaveReply, "save_checkpoint", {"step": "one"})
    assert refusal.value.pointers == {"/run_id": "is required by save_checkpoint"}


@pytest.mark.rule("ERR-01")
def test_a_refusal_has_a_code_and_pointers_and_no_value(client: Client) -> None:
    sent = "do-not-show-this"
    attempts: list[dict[str, Any]] = [
        {"step": sent * 20},
        {"status": sent},
        {"attempt": sent},
        {"done": [sent * 20]},
        {"state": [sent]},
        {"state": sent},
        {"state": {sent: float("nan")}, "step": "x"},
        {"state": {"a": sent * 20_000}},
    ]
    for arguments in attempts:
        with pytest.raises(RunMemoryError) as refusal:
            save(client, **{"run_id": "import", "step": "one"} | arguments)
        problem = refusal.value.to_problem()
        assert problem["code"] in {"invalid_request", "invalid_json", "state_too_large"}
        assert sent not in problem["detail"].replace(f"/state/{sent}", "")
        assert problem["code"] == "state_too_large" or problem["errors"]
