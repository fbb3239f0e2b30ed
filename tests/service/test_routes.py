"""What is answered beside the operations: health, large states, unknown paths, faults of our own."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from runmemory_core import parts
from runmemory_core.operations import OPERATIONS
from tests.service.serving import Service, running_service

LARGE = {"rows": [{"id": n, "text": "ä" * 300} for n in range(1_000)]}


def test_health_is_answered_without_a_key(service: Service) -> None:
    answer = service.ask("GET", "/healthz")
    assert (answer.status, answer.json) == (200, {"status": "ok"})


def test_the_start_message_tells_in_one_line_where_it_listens_and_stores(service: Service) -> None:
    assert service.url in service.said
    assert service.database.removeprefix("sqlite:///") in service.said
    assert f"runmemory keys issue --database {service.database}" in service.said
    assert service.said.count("\n") == 1


@pytest.mark.parametrize("path", ["/nope", "/healthz/", "/api/run/", "/api/run/forget", "/api/store/save"])
def test_an_unknown_path_is_404_as_a_problem(service: Service, path: str) -> None:
    answer = service.ask("POST", path, {}, key=service.key)
    assert (answer.status, answer.code) == (404, "not_found")
    assert f"there is nothing at '{path}'" in answer.json["detail"]


@pytest.mark.parametrize("path", [operation.path for operation in OPERATIONS.values()])
def test_an_operation_answers_post_only(service: Service, path: str) -> None:
    answer = service.ask("GET", path, key=service.key)
    assert (answer.status, answer.code, answer.headers["allow"]) == (405, "method_not_allowed", "POST")


def test_what_is_read_answers_get_only(service: Service) -> None:
    answer = service.ask("DELETE", "/healthz")
    assert (answer.status, answer.code) == (405, "method_not_allowed")
    assert set(answer.headers["allow"].split(", ")) == {"GET", "HEAD"}


@pytest.fixture
def large_run(service: Service, run_id: str) -> str:
    """A run of an adapter whose state is too large for the reply to resume."""
    texts: dict[str, str] = {}
    state = parts.split_object(LARGE, texts)["o"]
    changes = [{"op": "put", "key": "1", "state": state}]
    commit = {"run_id": f"{run_id}/large", "adapter": "test", "parts": texts, "operations": changes}
    assert service.ask("POST", "/api/store/commit", commit, key=service.key).status == 200
    return f"{run_id}/large"


def test_a_large_state_is_read_whole_or_in_pieces(service: Service, large_run: str) -> None:
    path = f"/api/run/{large_run.replace('[', '%5B')}/state"
    whole = service.ask("GET", path, key=service.key)
    assert (whole.status, whole.headers["content-type"]) == (200, "application/json")
    assert whole.json == LARGE
    text = whole.body.decode()
    assert whole.headers["run-memory-characters"] == str(len(text))
    pieces: list[str] = []
    while len(read := "".join(pieces)) < len(text):
        piece = service.ask("GET", f"{path}?seq=1&offset={len(read)}&length=100000", key=service.key)
        assert piece.headers["content-type"].startswith("text/plain")
        pieces.append(piece.body.decode())
    assert read == text
    assert len(pieces) > 2


@pytest.mark.parametrize("query", ["seq=-1", "seq=one", "offset=1.5", "length=" + "9" * 30, "seq=0"])
def test_a_piece_is_asked_for_in_numbers(service: Service, large_run: str, query: str) -> None:
    answer = service.ask("GET", f"/api/run/{large_run}/state?{query}", key=service.key)
    assert (answer.status, answer.code) == (422, "invalid_request")


def test_a_state_that_is_not_there_is_404(service: Service, large_run: str) -> None:
    for path in ("nobody/state", f"{large_run}/state?seq=2"):
        answer = service.ask("GET", f"/api/run/{path}", key=service.key)
        assert (answer.status, answer.code) == (404, "not_found")


def test_a_fault_of_our_own_is_500_with_a_reference_and_without_any_value(tmp_path: Path) -> None:
    """A row that nothing of ours could have written stands for a fault that nobody thought of."""
    database = f"sqlite:///{tmp_path / 'runs.db'}"
    with running_service(database) as service:
        service.tool("save_checkpoint", {"run_id": "marked run", "step": "one", "state": {"a": "marked"}})
        with closing(sqlite3.connect(tmp_path / "runs.db")) as connection, connection:
            connection.execute("UPDATE checkpoints SET removed = 'marked, and no JSON'")
        answer = service.tool("resume", {"run_id": "marked run", "peek": True})
        assert (answer.status, answer.code) == (500, "error")
        log = service.log.read_text()
        assert answer.json["reference"] in log
        assert "JSONDecodeError" in log
        assert "marked" not in log + answer.body.decode()
        assert service.ask("GET", "/healthz").status == 200
