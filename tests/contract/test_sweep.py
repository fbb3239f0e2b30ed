"""The sweep: what has expired goes, by the plan of each account, a bounded piece at a time."""

from __future__ import annotations

import pytest

from runmemory_core import CheckpointGone, NotFound, RunDeleted
from runmemory_core.model import Plan
from tests.contract.commits import put
from tests.contract.faces import DAY, Face


def swept(face: Face) -> dict[str, int]:
    """How many rows of each table a sweep removes, but for days of usage and the keys that remote clients make."""
    before = face.rows()
    face.sweep()
    gone = before - face.rows()
    return {table: count for table, count in gone.items() if table not in {"replays", "usage"}}


def run_ids(face: Face, account: str) -> set[str]:
    rows = face.client(account=account).list_checkpoints(limit=500).checkpoints
    return {row.run_id for row in rows}


@pytest.mark.rule("LIM-05")
def test_each_account_is_swept_by_the_plan_it_is_on(face: Face) -> None:
    for account, plan in (("mine", Plan.OWN), ("customer", Plan.PRO)):
        client = face.client(account=account, plan=plan)
        client.save_checkpoint("silent", "one", state={"a": ["x" * 5_000]}, done=["a"])
        client.resume("silent")
        client.store.commit("graph", "langgraph", operations=[put("a", {}, {})], parts={})
    face.clock.forward(30 * DAY)
    face.client(account="customer", plan=Plan.PRO).save_checkpoint("active", "one")
    assert swept(face) == {}
    face.clock.forward(1)
    assert swept(face)["checkpoints"] == 2
    assert run_ids(face, "customer") == {"active"}
    assert run_ids(face, "mine") == {"silent", "graph"}
    assert swept(face) == {}
    customer = face.client(account="customer", plan=Plan.PRO)
    with pytest.raises(RunDeleted, match="run silent expired at"):
        customer.save_checkpoint("silent", "anew")
    with pytest.raises(CheckpointGone, match="what run graph kept expired at 2026-03-31"):
        customer.store.fetch("graph", key="a")
    assert customer.store.fetch("graph").entry is None
    assert customer.resume("silent").status == "new"
    assert customer.save_checkpoint("silent", "anew").seq == 1


@pytest.mark.rule("LIM-06")
def test_a_paused_run_keeps_its_newest_checkpoint_for_a_year(face: Face) -> None:
    client = face.client(account="customer", plan=Plan.PRO)
    for number in range(3):
        status = "paused" if number == 2 else "running"
        client.save_checkpoint("waits", f"ask {number}", state={"n": ["x" * 5_000, number]}, status=status)
    lanes = [
        put("a", {}, {}),
        put("b", {}, {}, status="paused"),
        put("c", {}, {}, lane="sub|1"),
        put("d", {}, {}, lane="sub|1"),
    ]
    client.store.commit("graph", "langgraph", operations=lanes, parts={})
    expiries = {row.seq: row.expires_at for row in client.list_checkpoints("waits").checkpoints}
    assert expiries == {
        3: "2027-03-01T12:00:00.000Z",
        2: "2026-03-31T12:00:00.000Z",
        1: "2026-03-31T12:00:00.000Z",
    }
    face.clock.forward(30 * DAY + 1)
    assert swept(face)["checkpoints"] == 2 + 2
    assert [row.seq for row in client.list_checkpoints("waits").checkpoints] == [3]
    with pytest.raises(CheckpointGone):
        client.resume("waits", peek=True, seq=2)
    entries = client.store.history("graph").entries
    assert [(entry.lane, entry.key) for entry in entries] == [("sub|1", "d"), ("", "b")]
    assert swept(face) == {}
    face.clock.forward(335 * DAY - 1)
    assert swept(face) == {}
    checkpoint = client.resume("waits", peek=True).checkpoint
    assert checkpoint is not None
    assert checkpoint.state == {"n": ["x" * 5_000, 2]}
    face.clock.forward(1)
    assert swept(face)["checkpoints"] == 1 + 2
    with pytest.raises(NotFound):
        client.list_checkpoints("waits")


@pytest.mark.rule("SAV-14", "DEL-02")
def test_replays_and_tombstones_go_after_seven_days(face: Face) -> None:
    client = face.client()
    client.save_checkpoint("import", "one", idempotency_key="k")
    client.save_checkpoint("deleted", "one")
    client.store.delete_run("deleted")
    face.clock.forward(7 * DAY)
    assert face.sweep() == 0
    assert client.save_checkpoint("import", "one", idempotency_key="k").replayed
    with pytest.raises(RunDeleted):
        client.save_checkpoint("deleted", "two")
    face.clock.forward(1)
    assert swept(face) == {"runs": 1}
    assert face.rows()["replays"] == 0
    assert client.save_checkpoint("deleted", "two").seq == 1


@pytest.mark.rule("SAV-14")
def test_a_key_is_forgotten_after_seven_days_without_any_sweep(face: Face) -> None:
    client = face.client()
    assert client.save_checkpoint("import", "one", idempotency_key="k").seq == 1
    client.save_checkpoint("import", "two")
    face.clock.forward(7 * DAY + 1)
    saved = client.save_checkpoint("import", "three", idempotency_key="k")
    assert (saved.seq, saved.replayed) == (3, False)
    assert client.save_checkpoint("import", "three", idempotency_key="k").seq == 3
