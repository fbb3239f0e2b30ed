"""What callers over MCP hear when something is wrong with the service, and what only its log says."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from tests.service.messages import REVISIONS, call, post, refused
from tests.service.serving import Service, running_service


def without(table: str, service: Service) -> None:
    """Take a table away from under a service that runs."""
    with closing(sqlite3.connect(service.database.removeprefix("sqlite:///"))) as connection, connection:
        connection.execute(f"DROP TABLE {table}")


@pytest.mark.parametrize("revision", REVISIONS)
def test_where_the_database_lies_is_told_to_the_log_and_to_no_caller(tmp_path: Path, revision: str) -> None:
    with running_service(f"sqlite:///{tmp_path}/runs.db") as service:
        post(service, "tools/list", revision=revision)
        without("runs", service)
        result = call(service, "resume", {"run_id": "r"}, key=None, revision=revision)
        assert refused(result) == "the database: no such table: runs"
        assert str(tmp_path) not in str(result)
        rest = service.ask("POST", "/api/run/resume", {"run_id": "r"})
        assert rest.json["detail"] == refused(result)
        assert service.log.read_text().count(f"store_error: {tmp_path}/runs.db: no such table: runs") == 2


def test_a_store_that_fails_while_a_key_is_looked_up_is_logged_and_not_shown(tmp_path: Path) -> None:
    with running_service(f"sqlite:///{tmp_path}/runs.db") as service:
        without("api_keys", service)
        answer = post(service, "tools/list", key=service.key)
        assert answer.status == 500
        assert answer.json["error"]["message"].startswith("the database: ")
        assert str(tmp_path).encode() not in answer.body
        assert "store_error: " in service.log.read_text()
