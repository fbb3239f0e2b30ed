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
from runmemory_core.model import Limits
from tests.contract.faces import EmbeddedFace


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


def test_opening_a_file_with_expire_after_sweeps_it(face: EmbeddedFace) -> None:
    face.clock.now_ms = 0
    face.client().save_checkpoint("long ago", "one")
    with Client(f"sqlite:///{face.path}") as client:
        client.save_checkpoint("now", "one")
        assert len(client.list_checkpoints().checkpoints) == 2
    with Client(f"sqlite:///{face.path}", expire_after=timedelta(days=30)) as client:
        rows = client.list_checkpoints().checkpoints
        assert [row.run_id for row in rows] == ["now"]
        assert rows[0].expires_at is not None


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
