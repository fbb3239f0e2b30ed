"""Reading: it waits for no writer, and what is damaged is said so."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from runmemory_core import Client, StoreError
from runmemory_core.engine import fetching, wording
from runmemory_core.errors import StoreBusy
from runmemory_core.model import Plan
from tests.contract.faces import EmbeddedFace


@pytest.fixture
def face(tmp_path: Path) -> Iterator[EmbeddedFace]:
    with closing(EmbeddedFace(tmp_path)) as opened:
        yield opened


@pytest.fixture
def client(face: EmbeddedFace) -> Client:
    return face.client()


def put(key: str, text: str, **more: Any) -> dict[str, Any]:
    return {"op": "put", "key": key, "state": [["text", {"=": text}]], **more}


def test_reading_waits_for_no_writer(
    face: EmbeddedFace, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("runmemory_core.store.sqlite.BUSY_WAIT_SECONDS", 0.05)
    client = face.client()
    client.save_checkpoint("import", "one", state={"a": 1})
    client.store.commit("graph", "langgraph", operations=[put("a", "x")], parts={})
    watching = face.client(plan=Plan.WATCH)
    with closing(sqlite3.connect(face.path, isolation_level=None)) as another:
        another.execute("BEGIN IMMEDIATE")
        assert client.resume("import", peek=True).status == "resumed"
        assert len(client.list_checkpoints().checkpoints) == 2
        assert client.weekly_report().numbers["runs"] == 2
        assert client.usage_and_upgrade().usage.used == 2
        assert client.store.fetch("graph").entry is not None
        assert len(client.store.history("graph").entries) == 1
        assert len(client.store.chain("graph", key="a").entries) == 1
        assert watching.resume("import", peek=True).status == "resumed"
        assert watching.list_checkpoints("import").checkpoints
        with pytest.raises(StoreBusy):
            client.resume("import")


def damage(face: EmbeddedFace) -> None:
    with closing(sqlite3.connect(face.path)) as connection, connection:
        assert connection.execute("DELETE FROM parts").rowcount > 0


def test_a_state_that_lost_a_part_is_an_error_and_never_shorter(face: EmbeddedFace, client: Client) -> None:
    client.save_checkpoint("import", "one", state={"text": ["x" * 5_000]})
    damage(face)
    with pytest.raises(
        StoreError, match="is missing although a kept checkpoint needs it: the database is damaged"
    ):
        client.resume("import", peek=True)


def test_an_entry_that_lost_a_part_is_an_error_and_never_shorter(face: EmbeddedFace, client: Client) -> None:
    from runmemory_core import parts

    for state in ({"text": "x" * 500}, {"list": ["x" * 500 + str(number) for number in range(40)]}):
        texts: dict[str, str] = {}
        change = {"op": "put", "key": "a", "state": parts.split_object(state, texts)["o"]}
        client.store.commit("graph", "langgraph", operations=[change], parts=texts)
        damage(face)
        with pytest.raises(StoreError, match="the database is damaged"):
            client.store.fetch("graph")


def test_a_metadata_filter_looks_through_any_number_of_checkpoints(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fetching, "_SEARCHED_AT_ONCE", 3)
    for number in range(11):
        change = put(f"k{number:02}", "x", metadata={"rest": number % 5})
        client.store.commit("graph", "langgraph", operations=[change], parts={})
    found = client.store.history("graph", metadata={"rest": 0})
    assert [entry.key for entry in found.entries] == ["k10", "k05", "k00"]
    page = client.store.history("graph", metadata={"rest": 0}, limit=2)
    assert [entry.key for entry in page.entries] == ["k10", "k05"]
    rest = client.store.history("graph", metadata={"rest": 0}, limit=2, cursor=page.cursor)
    assert ([entry.key for entry in rest.entries], rest.cursor) == (["k00"], None)


@pytest.mark.parametrize(
    ("count_bytes", "words"),
    [(0, "0 B"), (1_023, "1023 B"), (1_024, "1.0 KB"), (12_700, "12.4 KB"), (1_572_864, "1.5 MB")],
)
def test_sizes_are_said_for_people(count_bytes: int, words: str) -> None:
    assert wording.size(count_bytes) == words


def test_at_most_five_names_of_a_state_are_said() -> None:
    assert wording.saved(1, 2, "one", []) == (
        'Saved checkpoint 1 (2 B) after "one". A crash now resumes right here.'
    )
    assert "(a, b, c, d, e)." in wording.saved(1, 2, "one", list("abcde"))
    assert "(a, b, c, d, e, +2 more)." in wording.would_save(2, "one", list("abcdefg"))


def test_the_first_50_removed_places_are_shown_and_all_are_counted(client: Client) -> None:
    state = {f"password {number}": "hunter2-hunter2" for number in range(60)}
    saved = client.save_checkpoint("import", "one", state={"logins": [{"password": "hunter2"}] * 60} | state)
    assert (len(saved.removed), saved.removed_count) == (50, 120)
    checkpoint = client.resume("import").checkpoint
    assert checkpoint is not None
    assert (checkpoint.removed, checkpoint.removed_count) == (saved.removed, 120)
