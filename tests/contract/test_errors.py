"""How refusals and failures look from each side."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from runmemory_core import RunFinished, RunMemoryError, SeqConflict, StaleAttempt, StateTooLarge
from runmemory_core.errors import CredentialInName, InvalidJson, InvalidRequest, StoreError
from runmemory_core.operations.tools import SaveReply
from tests.contract.faces import Face, HttpFace, served_only

SAVE = "/api/run/save_checkpoint"


@pytest.mark.rule("ERR-04")
def test_when_the_database_fails_the_call_fails_and_nothing_is_kept(face: Face) -> None:
    client = face.client()
    client.save_checkpoint("import", "one", state={"a": 1})
    # The last that a save writes: what it wrote before has to go.
    face.change("ALTER TABLE usage RENAME TO lost")
    before = face.dump()
    with pytest.raises(StoreError, match="no such table: usage"):
        client.save_checkpoint("import", "two", state={"text": ["x" * 5_000]}, done=["a"])
    assert face.dump() == before
    face.change("ALTER TABLE lost RENAME TO usage")
    assert client.save_checkpoint("import", "two").seq == 2


@served_only
@pytest.mark.rule("ERR-02")
def test_only_the_log_is_told_where_the_database_lies(
    face: HttpFace, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.ERROR)
    key = face.key()
    client = face.client_with(key)
    client.save_checkpoint("import", "one")
    face.change("ALTER TABLE usage RENAME TO lost")
    with pytest.raises(StoreError) as refusal:
        client.save_checkpoint("import", "two")
    assert refusal.value.detail == "the database: no such table: usage"
    assert str(face.path) in caplog.text
    answer = face.ask("POST", SAVE, {"run_id": "import", "step": "two"}, key=key)
    assert (answer.status, answer.code) == (500, "store_error")
    assert str(face.path) not in answer.body.decode()


@served_only
@pytest.mark.rule("ERR-03")
def test_a_refusal_is_a_problem_with_the_status_of_the_class_that_clients_raise(face: HttpFace) -> None:
    key = face.key()
    client = face.client_with(key)
    client.save_checkpoint("going", "one")
    client.save_checkpoint("ended", "one", status="finished")
    save = {"run_id": "going", "step": "two"}
    refused: list[tuple[dict[str, Any], type[RunMemoryError], int]] = [
        ({"run_id": "going"}, InvalidRequest, 422),
        (save | {"stat": 1}, InvalidRequest, 422),
        (save | {"state": [1]}, InvalidJson, 422),
        (save | {"job": "ghp_" + "a1B2c3D4e5F6" * 3}, CredentialInName, 422),
        (save | {"state": {"a": "x" * 262_144}}, StateTooLarge, 413),
        (save | {"attempt": 9}, StaleAttempt, 409),
        (save | {"expected_seq": 9}, SeqConflict, 409),
        (save | {"run_id": "ended"}, RunFinished, 409),
    ]
    for body, cls, status in refused:
        answer = face.ask("POST", SAVE, body, key=key)
        assert (answer.status, answer.code) == (status, cls.code)
        with pytest.raises(cls) as refusal:
            client._ask(SaveReply, "save_checkpoint", body)
        assert type(refusal.value) is cls
        assert refusal.value.to_problem() == answer.json
