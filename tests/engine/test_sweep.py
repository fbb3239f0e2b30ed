"""The sweep: several at once, limits of one's own, and by which plan an account keeps."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from functools import partial
from pathlib import Path
from threading import Thread

import pytest

from runmemory_core.engine.keys import issue_key
from runmemory_core.engine.sweeping import sweep_all
from runmemory_core.model import LIMITS, Limits, Plan
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


def run_ids(face: EmbeddedFace, account: str) -> set[str]:
    rows = face.client(account=account).list_checkpoints(limit=500).checkpoints
    return {row.run_id for row in rows}


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
