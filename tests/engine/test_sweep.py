"""The sweep: several at once, limits of one's own, and by which plan an account keeps."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from functools import partial
from pathlib import Path
from threading import Thread

import pytest

from runmemory_core import Client, RunDeleted, StoreError
from runmemory_core.engine import sweeping
from runmemory_core.engine.keys import (
    ADDRESS_KEY_MS,
    address_keys,
    caller_at_address,
    caller_of_key,
    issue_free_key,
    issue_key,
)
from runmemory_core.engine.sweeping import Walk, sweep, sweep_all
from runmemory_core.model import LIMITS, Limits, Plan
from runmemory_core.store.codec import unpack
from runmemory_core.store.sqlite import SqliteStore
from tests.contract.faces import DAY, EmbeddedFace


@pytest.fixture
def face(tmp_path: Path) -> Iterator[EmbeddedFace]:
    with closing(EmbeddedFace(tmp_path)) as opened:
        yield opened


@pytest.fixture
def store(face: EmbeddedFace) -> Iterator[SqliteStore]:
    with closing(SqliteStore(face.path)) as opened:
        yield opened


def damage(client: Client, path: Path) -> None:
    """Save a paused run of two checkpoints, and lose a page of parts that the newest needs."""
    state = {"v": ["x" * 300 + str(number) for number in range(40)]}
    for number in range(2):
        client.save_checkpoint("damaged", f"{number}", state={**state, "n": number}, status="paused")
    with closing(sqlite3.connect(path)) as connection, connection:
        parts = connection.execute("SELECT rowid, body FROM parts").fetchall()
        pages = [rowid for rowid, body in parts if unpack(body).startswith("[{")]
        assert pages
        connection.execute("DELETE FROM parts WHERE rowid = ?", pages[:1])


def run_ids(face: EmbeddedFace, account: str) -> set[str]:
    rows = face.client(account=account).list_checkpoints(limit=500).checkpoints
    return {row.run_id for row in rows}


def pieces(store: SqliteStore, now_ms: int) -> list[int]:
    """How many records each piece of a walk removed."""
    walk, removed = Walk(), list[int]()
    while walk.place is not None:
        count, walk.place = store.transact(partial(sweep, walk=walk, now_ms=now_ms))
        removed.append(count)
    return removed


def test_a_sweep_goes_on_where_it_stopped_and_does_a_bounded_piece(
    face: EmbeddedFace, store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sweeping, "LOOKED_AT_ONCE", 4)
    monkeypatch.setattr(sweeping, "ROWS_AT_ONCE", 9)
    for account in ("one", "two", "three"):
        client = face.client(account=account, plan=Plan.PRO)
        for number in range(3):
            client.save_checkpoint(f"{number}", "one", idempotency_key=f"{account} {number}")
    watching = [face.client(account=f"visitor {number}", plan=Plan.WATCH) for number in range(5)]
    for client in watching:
        client.save_checkpoint("import", "one")
    face.clock.forward(31 * DAY)
    assert pieces(store, face.clock.now_ms) == [4, 4, 1 + 4, 4, 3, 3, 1, 4, 0]
    assert sweep_all(store, now_ms=face.clock.now_ms) == 0


def test_two_sweeps_at_once_remove_everything_once(face: EmbeddedFace) -> None:
    client = face.client(account="customer", plan=Plan.PRO)
    for number in range(120):
        client.save_checkpoint(f"{number}", "one", state={"a": ["x" * 5_000]})
    face.clock.forward(31 * DAY)
    client.save_checkpoint("active", "one")
    counts: list[int] = []
    threads = [Thread(target=lambda: counts.append(face.sweep())) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sum(counts) == 120
    assert run_ids(face, "customer") == {"active"}


def test_limits_of_ones_own_can_be_given(face: EmbeddedFace, store: SqliteStore) -> None:
    face.client().save_checkpoint("silent", "one")
    face.clock.forward(2 * DAY)
    limits = {**LIMITS, Plan.OWN: Limits(kept_for_ms=DAY)}
    assert sweep_all(store, now_ms=face.clock.now_ms) == 0
    assert sweep_all(store, now_ms=face.clock.now_ms, limits=limits) == 1


@pytest.mark.parametrize(
    ("plans", "kept_by"),
    [
        ([Plan.PRO], "pro"),
        ([Plan.WATCH, Plan.PRO], "pro"),
        ([Plan.PRO, Plan.WATCH], "pro"),
        ([Plan.PRO, Plan.OWN, Plan.PRO], "own"),
        ([Plan.WATCH], "watch"),
    ],
)
def test_an_account_keeps_by_the_most_that_a_key_of_it_was_issued_for(
    store: SqliteStore, plans: list[Plan], kept_by: str
) -> None:
    for number, plan in enumerate(plans):
        key = {"key_sha256": bytes([number]), "key_id": f"{number}", "label": ""}
        store.transact(partial(issue_key, account="mine", plan=plan, now_ms=0, **key))
    assert store.read(lambda tx: tx.one("account_by_name", name="mine"))["plan"] == kept_by


def test_a_run_of_many_rows_goes_in_many_pieces_and_is_gone_from_the_first(
    face: EmbeddedFace, store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sweeping, "ROWS_AT_ONCE", 10)
    client = face.client(account="customer", plan=Plan.PRO)
    client.save_checkpoint("large", "one", state={"a": 1}, done=[f"{n}" for n in range(45)])
    face.clock.forward(31 * DAY)
    client.save_checkpoint("later", "one")
    walk = Walk()
    count, walk.place = store.transact(partial(sweep, walk=walk, now_ms=face.clock.now_ms))
    assert count == 1
    with pytest.raises(RunDeleted, match="large expired"):
        client.save_checkpoint("large", "late")
    rows = [line for line in face.dump() if line.startswith('INSERT INTO "done"')]
    assert len(rows) == 36
    begun = client.resume("large")
    assert (begun.status, begun.done) == ("new", [])
    assert client.save_checkpoint("large", "anew", done=["44"]).seq == 1
    face.clock.forward(31 * DAY)
    assert sum(pieces(store, face.clock.now_ms)) == 2
    assert not any(line.startswith('INSERT INTO "done"') for line in face.dump())


def test_a_damaged_run_stops_the_sweep_of_no_other_and_is_told_of(
    face: EmbeddedFace, store: SqliteStore
) -> None:
    client = face.client(account="customer", plan=Plan.PRO)
    damage(client, face.path)
    client.save_checkpoint("later", "one")
    face.clock.forward(31 * DAY)
    for _ in range(2):
        with pytest.raises(StoreError, match="the database is damaged"):
            sweep_all(store, now_ms=face.clock.now_ms)
    assert client.resume("later", peek=True).outcome.startswith("Run later expired")
    assert [row.seq for row in client.list_checkpoints("damaged").checkpoints] == [2, 1]


def test_a_free_key_goes_thirty_days_after_its_last_use(face: EmbeddedFace, store: SqliteStore) -> None:
    visitor = caller_at_address(b"somewhere", [b"k" * 32])

    def exists(key: bytes) -> bool:
        face.sweep()
        face.sweep()  # its account goes after what was recorded for it
        return store.read(partial(caller_of_key, key_sha256=key)) is not None

    for key_id in ("used", "unused"):
        issue = partial(issue_free_key, key_sha256=key_id.encode(), key_id=key_id, caller=visitor)
        store.transact(partial(issue, now_ms=face.clock.now_ms))
    used = face.client(account="free:used", plan=Plan.WATCH)
    for _ in range(2):
        face.clock.forward(20 * DAY)
        used.save_checkpoint("import", "one")
        assert exists(b"used")
    assert not exists(b"unused")
    face.clock.forward(30 * DAY)
    assert exists(b"used")
    face.clock.forward(DAY)
    assert not exists(b"used")
    assert not any(line.startswith(('INSERT INTO "accounts"', 'INSERT INTO "usage"')) for line in face.dump())


def test_the_usage_of_every_plan_goes_once_no_report_looks_at_it(face: EmbeddedFace) -> None:
    for plan in (Plan.PRO, Plan.OWN):
        face.client(account=plan.value, plan=plan).save_checkpoint("import", "one")

    def days() -> int:
        return sum(line.startswith('INSERT INTO "usage"') for line in face.dump())

    face.clock.forward(8 * DAY)
    face.sweep()
    assert days() == 2
    face.clock.forward(DAY)
    face.sweep()
    assert days() == 0


def test_a_destroyed_key_of_addresses_is_overwritten_in_the_file(tmp_path: Path) -> None:
    path, keys = tmp_path / "runs.db", list[bytes]()
    with closing(SqliteStore(path)) as store:
        for period in range(6):
            newest, *_ = store.transact(partial(address_keys, now_ms=period * ADDRESS_KEY_MS))
            keys.append(newest)
    assert [key in path.read_bytes() for key in keys] == [False] * 4 + [True] * 2
