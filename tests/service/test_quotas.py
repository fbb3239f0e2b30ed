"""Quotas over HTTP: exact under concurrency, told in headers, and no obstacle to reading."""

from __future__ import annotations

import re
import sqlite3
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

import pytest

from runmemory_core import Client, OverQuota
from runmemory_core.model import Plan
from tests.service.serving import Service, new_key_in

SAVE, RESUME = "/api/run/save_checkpoint", "/api/run/resume"


def set_calls(service: Service, account: str, calls: int) -> None:
    """So many calls of this day, whichever it is, were made."""
    with closing(sqlite3.connect(service.database.removeprefix("sqlite:///"))) as connection, connection:
        where = "account_id = (SELECT account_id FROM accounts WHERE name = ?)"
        assert connection.execute(f"UPDATE usage SET calls = {calls} WHERE {where}", (account,)).rowcount


def key_with(service: Service, account: str, plan: Plan, *, calls: int) -> str:
    key = new_key_in(service.database, account=account, plan=plan)
    first = service.ask("POST", SAVE, {"run_id": "first", "step": "one", "state": {}}, key=key)
    assert first.json["usage"]["used"] == 1
    set_calls(service, f"watch:{account}" if plan is Plan.WATCH else account, calls)
    return key


@pytest.mark.rule("LIM-07")
def test_of_40_calls_at_once_at_490_of_500_exactly_10_pass(service: Service, run_id: str) -> None:
    key = key_with(service, run_id, Plan.WATCH, calls=490)

    def save(number: int) -> int:
        return service.ask("POST", SAVE, {"run_id": f"{number % 5}", "step": f"{number}"}, key=key).status

    with ThreadPoolExecutor(40) as threads:
        assert Counter(threads.map(save, range(40))) == {200: 10, 429: 30}
    assert service.ask("POST", "/api/run/usage_and_upgrade", key=key).json["usage"]["used"] == 500


@pytest.mark.rule("LIM-08")
def test_headers_tell_the_policy_and_what_is_left(service: Service, run_id: str) -> None:
    key = key_with(service, run_id, Plan.PRO, calls=100)
    answers = [
        service.ask("POST", SAVE, {"run_id": run_id, "step": "two"}, key=key),
        service.ask("POST", RESUME, {"run_id": run_id, "peek": True}, key=key),
    ]
    change = {"op": "put", "key": "1", "state": []}
    commit = {"run_id": f"{run_id}/graph", "adapter": "test", "operations": [change]}
    answers.append(service.ask("POST", "/api/store/commit", commit, key=key))
    lefts: list[str] = []
    for answer in answers:
        assert answer.headers["ratelimit-policy"] == '"day";q=50000;w=86400'
        found = re.fullmatch(r'"day";r=(\d+);t=(\d+)', answer.headers["ratelimit"])
        assert found
        assert 0 < int(found[2]) <= 86_400
        lefts.append(found[1])
    assert lefts == ["49899", "49899", "49898"]
    unlimited = service.tool("save_checkpoint", {"run_id": run_id, "step": "one"})
    assert "ratelimit" not in unlimited.headers
    assert "ratelimit-policy" not in unlimited.headers


@pytest.mark.rule("LIM-08")
def test_over_quota_is_429_with_the_time_to_wait_and_reading_works_on(service: Service, run_id: str) -> None:
    key = key_with(service, run_id, Plan.PRO, calls=50_000)
    refused = service.ask("POST", SAVE, {"run_id": "first", "step": "two", "state": {}}, key=key)
    assert (refused.status, refused.code, refused.json["saved"]) == (429, "over_quota", False)
    assert 0 < int(refused.headers["retry-after"]) <= 86_400
    assert refused.headers["ratelimit-policy"] == '"day";q=50000;w=86400'
    assert refused.headers["ratelimit"] == f'"day";r=0;t={refused.headers["retry-after"]}'
    with Client(service.url, api_key=key) as client:
        with pytest.raises(OverQuota) as refusal:
            client.save_checkpoint("first", "two")
        assert refusal.value.facts["saved"] is False
        assert client.resume("first", peek=True).status == "resumed"
        resumed = client.resume("first")
        assert (resumed.status, resumed.attempt, resumed.usage.used) == ("resumed", 2, 50_000)
        assert client.list_checkpoints("first").checkpoints
        assert client.weekly_report().numbers["restarts"] == 1
        assert any("saves are refused until" in notice for notice in client.usage_and_upgrade().notices)


@pytest.mark.rule("LIM-08")
def test_from_four_fifths_on_replies_warn(service: Service, run_id: str) -> None:
    key = key_with(service, run_id, Plan.WATCH, calls=398)
    notices = [
        service.ask("POST", SAVE, {"run_id": "first", "step": step, "state": {}}, key=key).json.get("notices")
        for step in ("two", "three")
    ]
    assert notices[0] is None
    assert re.match(r"400 of 500 calls of this UTC day are used; after that saves are", notices[1][0])


@pytest.mark.rule("ERR-02")
def test_a_store_that_fails_is_named_in_the_log_only(service: Service, run_id: str) -> None:
    service.tool("save_checkpoint", {"run_id": run_id, "step": "one", "state": {"text": ["x" * 5_000]}})
    path = service.database.removeprefix("sqlite:///")
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("ALTER TABLE usage RENAME TO lost")
    try:
        refused = service.tool("save_checkpoint", {"run_id": run_id, "step": "two"})
    finally:
        with closing(sqlite3.connect(path)) as connection, connection:
            connection.execute("ALTER TABLE lost RENAME TO usage")
    assert (refused.status, refused.code) == (500, "store_error")
    assert path not in refused.body.decode()
    assert refused.json["detail"] == "the database: no such table: usage"
    assert path in service.log.read_text()
