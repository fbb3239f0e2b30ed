"""What is removed, when, and that nothing which is needed goes with it."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from runmemory_core import CheckpointGone, Client, InvalidRequest, parts
from runmemory_core.engine import sweeping
from runmemory_core.model import Limits
from runmemory_core.transports.embedded import PIECES_AT_FIRST
from tests.contract.faces import DAY, EmbeddedFace


@pytest.fixture
def face(tmp_path: Path) -> Iterator[EmbeddedFace]:
    with closing(EmbeddedFace(tmp_path)) as opened:
        yield opened


def count(face: EmbeddedFace, table: str) -> int:
    with closing(sqlite3.connect(face.path)) as connection:
        return connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0]


def chat(length: int) -> list[str]:
    return [f"message {number} " * 40 for number in range(length)]


def put(key: str, state: dict[str, Any], texts: dict[str, str], **more: Any) -> dict[str, Any]:
    return {"op": "put", "key": key, "state": parts.split_object(state, texts)["o"], **more}


def test_parts_of_evicted_checkpoints_are_collected(face: EmbeddedFace) -> None:
    client = face.client(limits=Limits(keep=3))
    for number in range(1, 31):
        client.save_checkpoint("import", f"step {number}", state={"text": [f"{number} " * 2_000]})
        assert count(face, "checkpoints") == min(number, 3)
        assert count(face, "parts") <= 6
    assert count(face, "parts") == 3


def test_a_growing_list_keeps_each_element_once(face: EmbeddedFace) -> None:
    client = face.client(limits=Limits(keep=3))
    for length in range(20, 110):
        client.save_checkpoint("import", f"step {length}", state={"chat": chat(length)})
    pages = 109 // parts.PAGE_NODES
    assert count(face, "parts") == 109 + pages


def test_pruning_and_deleting_by_metadata_collect_parts(face: EmbeddedFace) -> None:
    client = face.client()
    texts: dict[str, str] = {}
    for number in range(4):
        change = put(f"k{number}", {"text": f"{number} " * 200}, texts, metadata={"even": number % 2 == 0})
        client.store.commit("graph", "langgraph", operations=[change], parts=texts)
    assert count(face, "parts") == 4
    client.store.delete_by_metadata("langgraph", metadata={"even": True})
    assert count(face, "parts") == 2
    client.store.prune("graph")
    assert count(face, "parts") == 1
    client.store.delete_run("graph")
    tables = ("checkpoints", "parts", "writes", "lanes", "attempts", "done")
    assert {count(face, table) for table in tables} == {0}


def test_parts_that_only_writes_reach_stay(face: EmbeddedFace) -> None:
    client = face.client(limits=Limits(keep=1))
    texts: dict[str, str] = {}
    node = parts.split("result " * 100, texts)
    writes = {"op": "writes", "key": "k9", "task_id": "t", "writes": [[0, "out", node]]}
    client.store.commit("graph", "langgraph", operations=[writes], parts=texts)
    for number in range(5):
        client.store.commit("graph", "langgraph", operations=[put(f"k{number}", {}, {})], parts={})
    assert count(face, "parts") == 1
    change = put("k9", {}, {})
    client.store.commit("graph", "langgraph", operations=[change], parts={})
    reply = client.store.fetch("graph")
    assert reply.entry is not None
    assert (
        parts.join(reply.entry.writes[0].writes[0][2], reply.parts.__getitem__) == '"' + "result " * 100 + '"'
    )


def test_a_term_holds_for_the_runs_that_a_client_with_it_wrote_last(face: EmbeddedFace) -> None:
    bounded = face.client(limits=Limits(keep=2, kept_for_ms=30 * DAY))
    others = face.client()
    for number in range(3):
        bounded.save_checkpoint("bounded", f"{number}")
        others.save_checkpoint("others", f"{number}")
        bounded.save_checkpoint("taken over", f"{number}")
    others.resume("taken over")
    listed = {(row.run_id, row.seq): row.expires_at for row in others.list_checkpoints().checkpoints}
    assert {run_id for (run_id, _), expires in listed.items() if expires} == {"bounded"}
    assert [seq for run_id, seq in listed if run_id == "others"] == [3, 2, 1]
    face.clock.forward(30 * DAY + 1)
    # Whoever opens the file sweeps it, by the terms of each run.
    for client in (face.client(), face.client(limits=Limits(kept_for_ms=1))):
        rows = client.list_checkpoints().checkpoints
        assert {row.run_id for row in rows} == {"others", "taken over"}


def test_opening_a_file_sweeps_a_bounded_part_of_it_and_waits_for_nobody(
    face: EmbeddedFace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sweeping, "LOOKED_AT_ONCE", 2)
    client = face.client()
    for number in range(20):
        client.save_checkpoint("import", f"{number}", idempotency_key=f"{number}")
    face.clock.forward(8 * DAY)

    def left() -> int:
        return sum(line.startswith('INSERT INTO "replays"') for line in face.dump())

    with closing(sqlite3.connect(face.path, isolation_level=None)) as connection:
        connection.execute("BEGIN IMMEDIATE")
        assert face.client().resume("import", peek=True).status == "resumed"
        assert left() == 20
    assert face.client().resume("import", peek=True).status == "resumed"
    assert left() == 20 - 2 * PIECES_AT_FIRST


def test_a_file_that_cannot_be_swept_is_used_all_the_same(
    face: EmbeddedFace, caplog: pytest.LogCaptureFixture
) -> None:
    client = face.client(limits=Limits(kept_for_ms=30 * DAY))
    client.save_checkpoint("import", "one", status="paused")
    state = {"v": ["x" * 300 + str(number) for number in range(40)]}
    client.save_checkpoint("import", "two", state=state, status="paused")
    with closing(sqlite3.connect(face.path)) as connection, connection:
        connection.execute("DELETE FROM parts")
        connection.execute("INSERT INTO parts (account_id, run, address, body) VALUES (1, 1, 'another', 'x')")
    face.clock.forward(31 * DAY)
    assert face.client().save_checkpoint("import", "three", state={}).seq == 3
    assert "was not swept" in caplog.text


def test_keep_and_expire_after_of_a_client_are_checked() -> None:
    with pytest.raises(InvalidRequest, match="keep is 0; at least 1 checkpoint must stay"):
        Client("sqlite:///unused.db", keep=0)
    with pytest.raises(InvalidRequest, match="expire_after is 0:00:00"):
        Client("sqlite:///unused.db", expire_after=timedelta(0))


def test_keep_of_a_client_bounds_each_run(tmp_path: Path) -> None:
    with Client(f"sqlite:///{tmp_path}/runs.db", keep=3) as client:
        for number in range(5):
            client.save_checkpoint("import", f"step {number}")
            client.save_checkpoint("export", f"step {number}")
        for run_id in ("import", "export"):
            assert [row.seq for row in client.list_checkpoints(run_id).checkpoints] == [5, 4, 3]


def _nothing_needed(number: int) -> dict[str, Any]:
    return {"op": "put", "key": f"{number:03}", "state": [], "metadata": {}}


def test_the_lane_of_a_call_goes_with_the_checkpoint_that_started_it_though_a_thin_record_of_it_stays(
    face: EmbeddedFace,
) -> None:
    client = face.client(limits=Limits(keep=1))
    call = {"op": "put", "lane": "sub:1", "key": "x", "state": [], "metadata": {"parents": {"": "002"}}}
    counters = {"counters_since_delta_snapshot": {"items": [1, 1]}}

    def put(number: int, **metadata: Any) -> None:
        change = _nothing_needed(number) | {"metadata": metadata}
        if number > 1:
            change["parent"] = f"{number - 1:03}"
        client.store.commit("r", "langgraph", operations=[change], parts={})

    def has_call() -> bool:
        return client.store.fetch("r", lane="sub:1").entry is not None

    put(1)
    put(2)
    client.store.commit("r", "langgraph", operations=[call], parts={})
    assert has_call()
    put(3, **counters)
    assert not has_call()
    # Of the ancestor only what rebuilds the delta channel is left.
    assert [entry.key for entry in client.store.chain("r", key="003").entries] == ["003", "002"]
    with pytest.raises(CheckpointGone):
        client.store.fetch("r", key="002")
