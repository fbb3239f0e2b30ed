"""Quotas, retention, sizes, JSON and redaction."""

from __future__ import annotations

import json
from typing import Any

import pytest

from runmemory_core import (
    CheckpointGone,
    Client,
    InvalidJson,
    OverQuota,
    StateTooLarge,
)
from runmemory_core.errors import CredentialInName
from runmemory_core.model import Limits, Plan
from runmemory_core.operations.tools import SaveReply
from tests.contract.faces import DAY, Face, checkpoint_of


@pytest.mark.rule("LIM-01")
def test_over_quota_nothing_is_saved_and_reading_works(face: Face) -> None:
    client = face.client(limits=Limits(calls_a_day=3))
    client.resume("import")
    client.save_checkpoint("import", "one")
    usage = client.save_checkpoint("import", "two", state={"a": 1}).usage
    assert (usage.used, usage.limit, usage.remaining) == (3, 3, 0)
    before = face.dump()
    put = {"op": "put", "key": "a", "state": []}
    calls = [
        lambda: client.save_checkpoint("import", "three"),
        lambda: client.save_checkpoint("another", "one"),
        lambda: client.resume("import", start_over=True),
        lambda: client.store.commit("graph", "langgraph", operations=[put], parts={}),
    ]
    for call in calls:
        with pytest.raises(
            OverQuota, match=r"all 3 calls .* nothing was saved: they reset at 2026-03-02T00"
        ) as refusal:
            call()
        assert refusal.value.facts == {
            "limit": 3,
            "reset_at": "2026-03-02T00:00:00.000Z",
            "retry_after": DAY // 2 // 1_000,
            "saved": False,
        }
    # What nobody began yet begins without being recorded.
    assert client.resume("another").attempt is None
    assert face.dump() == before
    assert checkpoint_of(client.resume("import", peek=True)).state == {"a": 1}
    assert len(client.list_checkpoints("import").checkpoints) == 2
    assert client.usage_and_upgrade().usage.remaining == 0
    face.clock.forward(DAY // 2)
    assert client.save_checkpoint("import", "three").seq == 3


@pytest.mark.rule("LIM-02")
def test_saves_resumes_and_commits_are_metered_and_nothing_else(client: Client) -> None:
    put = {"op": "put", "key": "a", "state": [], "metadata": {"a": 1}}

    def used() -> int:
        return client.usage_and_upgrade().usage.used

    client.save_checkpoint("import", "one", idempotency_key="k")
    client.resume("import", idempotency_key="r")
    client.store.commit("graph", "langgraph", operations=[put], parts={})
    assert used() == 3
    client.save_checkpoint("import", "one", idempotency_key="k")
    client.resume("import", idempotency_key="r")
    client.resume("import", peek=True)
    client.list_checkpoints()
    client.weekly_report()
    client.store.commit(
        "graph", "langgraph", operations=[put | {"state": [["x", {"p": "A" * 22}]]}], parts={}
    )
    client.store.claim("graph", "langgraph")
    client.store.fetch("graph")
    client.store.history("graph")
    client.store.chain("graph", key="a")
    client.store.copy_run("graph", target_run_id="copy")
    client.store.prune("graph")
    client.store.delete_by_metadata("langgraph", metadata={"a": 1})
    client.store.delete_run("import")
    assert used() == 3


@pytest.mark.rule("LIM-03")
def test_the_newest_checkpoints_are_kept_and_each_is_whole(face: Face) -> None:
    client = face.client(limits=Limits(keep=3))

    def state(number: int) -> dict[str, Any]:
        chat = [f"message {n} " + "text " * 80 for n in range(40 + number)]
        return {"chat": chat, "n": [f"{number} " * 200]}

    for number in range(1, 11):
        client.save_checkpoint("import", f"step {number}", state=state(number), done=[number])
        for seq in range(max(1, number - 2), number + 1):
            assert checkpoint_of(client.resume("import", peek=True, seq=seq)).state == state(seq)
        if number > 3:
            with pytest.raises(CheckpointGone):
                client.resume("import", peek=True, seq=number - 3)
    assert [row.seq for row in client.list_checkpoints("import").checkpoints] == [10, 9, 8]
    assert client.resume("import").done_count == 10


@pytest.mark.rule("LIM-03")
def test_pro_keeps_twenty_of_each_run_and_ones_own_machine_all(face: Face) -> None:
    for plan, kept in ((Plan.PRO, 20), (Plan.OWN, 22)):
        client = face.client(account=plan.value, plan=plan)
        for number in range(22):
            client.save_checkpoint("import", f"step {number}")
            client.save_checkpoint("other", f"step {number}")
        for run_id in ("import", "other"):
            assert len(client.list_checkpoints(run_id, limit=500).checkpoints) == kept


NESTED_64: dict[str, Any] = json.loads('{"a":' * 63 + "{}" + "}" * 63)


@pytest.mark.rule("JSN-01")
def test_what_json_cannot_hold_is_refused(face: Face, client: Client) -> None:
    states: list[tuple[Any, str]] = [
        ({"a": [1, float("nan")]}, "/state/a/1"),
        ({"a": float("inf")}, "/state/a"),
        ('{"a": {"b": 1e999}}', "/state/a/b"),
        ('{"a": NaN}', "/state/a"),
        ({"a": "\ud800"}, "/state/a"),
        ('{"a/b": "\\ud800"}', "/state/a~1b"),
        ({"a": 10**4_000}, "/state/a"),
        ('{"a": ' + "9" * 5_000 + "}", "/state/a"),
        ({"a": NESTED_64}, "/state" + "/a" * 64),
        ({"a": {1: "x"}}, "/state/a"),
        ({"a": (1, 2)}, "/state/a"),
        ({"a": {1, 2}}, "/state/a"),
        ({"a": b"x"}, "/state/a"),
        ([1], "/state"),
    ]
    client.save_checkpoint("import", "one", state=NESTED_64)
    before = face.dump()
    for state, pointer in states:
        with pytest.raises(InvalidJson) as refusal:
            client.save_checkpoint("import", "two", state=state)
        assert list(refusal.value.pointers) == [pointer]
    assert face.dump() == before


@pytest.mark.rule("JSN-02")
def test_unusual_json_comes_back_exactly(client: Client) -> None:
    unusual = {
        "nul": "a\0b",
        "big": 2**64 + 1,
        "one": 1.0,
        "tiny": 5e-324,
        "minus zero": -0.0,
        "": [[], {}, None, True, "\u2028\U0001f600\x7f"],
    }
    for state in (unusual, unusual | {"large": [unusual | {"number": number} for number in range(60)]}):
        client.save_checkpoint("a\0b", "step\0", state=state)
        checkpoint = checkpoint_of(client.resume("a\0b"))
        assert json.dumps(checkpoint.state) == json.dumps(state)
        assert checkpoint.step == "step\0"


@pytest.mark.rule("JSN-04")
def test_integers_that_other_readers_round_are_named_once(client: Client) -> None:
    state = {"ids": [2**53, 2**53 + 1], "cursor": 7}
    (notice,) = client.save_checkpoint("r", "a", state=state).notices
    assert "an integer beyond 2^53 (/ids/1)" in notice
    peeked = client.resume("r", peek=True).checkpoint
    assert peeked is not None
    assert peeked.state == state
    assert client.save_checkpoint("r", "b", state={"n": list(range(2**53 - 5, 2**53 + 1))}).notices == []


@pytest.mark.rule("JSN-03")
def test_of_duplicate_keys_the_last_wins(client: Client) -> None:
    client.save_checkpoint("import", "one", state='{"a": 1, "password": "hunter2", "a": 2, "password": ""}')
    state = checkpoint_of(client.resume("import")).state
    assert state is not None
    assert state["a"] == 2
    assert "hunter2" not in str(state)


@pytest.mark.rule("SIZ-01")
def test_a_state_of_exactly_256_kib_passes_and_one_byte_more_does_not(face: Face, client: Client) -> None:
    two_bytes = "é" * ((262_144 - len('{"a":""}')) // 2)
    client.save_checkpoint("import", "one", state={"a": two_bytes})
    assert checkpoint_of(client.resume("import")).bytes == 262_144
    before = face.dump()
    with pytest.raises(StateTooLarge) as refusal:
        client.save_checkpoint("import", "two", state={"a": two_bytes + "x"})
    assert refusal.value.detail == (
        "state is 262,145 bytes after redaction; the limit is 262,144: "
        "keep large results elsewhere and save their ids"
    )
    assert refusal.value.facts == {"size": 262_145, "limit": 262_144}
    assert face.dump() == before
    # The id of a finished item is not part of the state.
    client.save_checkpoint("import", "two", state={"a": two_bytes}, done=["x" * 200])


@pytest.mark.rule("RED-01")
def test_a_secret_is_removed_before_anything_is_kept(face: Face, client: Client) -> None:
    state = {"user": "ann", "login": {"password": "hunter2-hunter2"}, "a": 1}
    saved = client.save_checkpoint("import", "one", state=state)
    assert (saved.removed, saved.removed_count) == (["/login/password"], 1)
    checkpoint = checkpoint_of(client.resume("import"))
    assert checkpoint.state == {"user": "ann", "login": {"password": "[removed]"}, "a": 1}
    assert checkpoint.removed == ["/login/password"]
    client.save_checkpoint("import", "two")
    assert checkpoint_of(client.resume("import")).removed == ["/login/password"]
    assert "hunter2-hunter2" not in "\n".join(face.dump())
    assert b"hunter2-hunter2" not in b"".join(file.read_bytes() for file in face.path.parent.glob("runs.db*"))


@pytest.mark.rule("RED-05")
def test_of_the_removed_places_fifty_are_told_and_all_are_counted(face: Face) -> None:
    state = {"logins": [{"password": f"hunter2-{number}"} for number in range(60)]}
    places = [f"/logins/{number}/password" for number in range(50)]
    saved = face.client().save_checkpoint("import", "one", state=state)
    loaded = checkpoint_of(face.client().resume("import"))
    shown = face.client(account="visitor", plan=Plan.WATCH).save_checkpoint("import", "one", state=state)
    assert shown.would_save is not None
    for told in (saved, loaded, shown.would_save):
        assert (told.removed, told.removed_count) == (places, 60)


@pytest.mark.rule("RED-02")
def test_a_credential_in_a_name_is_refused(face: Face, client: Client) -> None:
    client.save_checkpoint("import", "one")
    before = face.dump()
    credential = "ghp_" + "a1B2c3D4e5F6" * 3
    for name in ("run_id", "step", "next_step", "job"):
        arguments = {"run_id": "import", "step": "two", name: f"use {credential}"}
        with pytest.raises(CredentialInName) as refusal:
            client._ask(SaveReply, "save_checkpoint", arguments)
        assert list(refusal.value.pointers) == [f"/{name}"]
        assert credential not in refusal.value.detail
    elsewhere = [
        lambda: client.resume(credential),
        lambda: client.list_checkpoints(credential),
        lambda: client.store.claim(credential, "langgraph"),
        lambda: client.store.copy_run("import", target_run_id=credential),
    ]
    for call in elsewhere:
        with pytest.raises(CredentialInName):
            call()
    assert face.dump() == before


@pytest.mark.rule("RED-03")
def test_a_credential_in_an_error_is_removed(face: Face, client: Client) -> None:
    credential = "ghp_" + "a1B2c3D4e5F6" * 3
    client.save_checkpoint("import", "one", status="failed", error=f"403 for {credential} at api.example")
    client.resume("import")
    assert ": 403 for [removed] at api.example." in client.weekly_report().text
    assert credential not in "\n".join(face.dump())
