"""Callers without a key: who they are, what is kept of them, and the free key that shows labels."""

from __future__ import annotations

import asyncio
import re
import sqlite3
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from runmemory_core.errors import InvalidRequest
from runmemory_core.model import Caller
from runmemory_core.service.addresses import address_of
from runmemory_core.service.auth import Authenticator
from runmemory_core.service.settings import Settings, from_environment
from runmemory_core.store.sqlite import SqliteStore
from tests.contract.faces import DAY, Clock
from tests.service.serving import Service, running_service, until

SAVE, RESUME = "/api/run/save_checkpoint", "/api/run/resume"


@pytest.fixture
def own_service(tmp_path: Path) -> Iterator[Service]:
    """A service that nobody else calls without a key."""
    with running_service(f"sqlite:///{tmp_path / 'runs.db'}") as service:
        yield service


def dump(service: Service) -> list[str]:
    with closing(sqlite3.connect(service.database.removeprefix("sqlite:///"))) as connection:
        return list(connection.iterdump())


@pytest.mark.rule("WAT-02")
def test_fifty_anonymous_saves_leave_names_sizes_times_hashes_and_counters(own_service: Service) -> None:
    before = set(dump(own_service))
    for number in range(50):
        body = {"run_id": "r-canary", "step": f"step {number}", "done": [f"id-{number}-secret"]}
        body |= {
            "state": {"cursor": number, "text": "state-text"},
            "job": "job-text",
            "next_step": "next-text",
        }
        answer = own_service.ask("POST", SAVE, body, headers={"user-agent": "agent-text"})
        assert (answer.status, answer.json["mode"], answer.json["saved"]) == (200, "watch", False)
        assert answer.json["would_save"]["state"] == {"cursor": number, "text": "state-text"}
    added = [line for line in dump(own_service) if line not in before]
    # Everything that is no hash, number, day or NULL:
    values = re.sub(r"X'[0-9A-F]*'", "", "\n".join(added))
    texts = set(re.findall(r"'((?:[^']|'')*)'", values))
    texts = {text for text in texts if not re.fullmatch(r"\d{4}-\d\d-\d\d", text)}
    account = next(text for text in texts if text.startswith("watch:"))
    assert re.fullmatch("watch:anonymous:[0-9a-f]{32}", account)
    labels = {f"step {number}" for number in range(30, 50)}
    assert texts == {account, "watch", "running", "r-canary", *labels}
    files = Path(own_service.database.removeprefix("sqlite:///")).parent.glob("*")
    held = b"".join(file.read_bytes() for file in files)
    for text in ("127.0.0.1", "state-text", "job-text", "next-text", "-secret", "agent-text"):
        assert text.encode() not in held


@pytest.mark.rule("WAT-10")
def test_without_a_key_only_counts_and_times_are_shown(own_service: Service) -> None:
    for number in range(3):
        own_service.ask("POST", SAVE, {"run_id": "neighbour", "step": f"private {number}"})
    own_service.ask("POST", RESUME, {"run_id": "neighbour"})
    listed = own_service.ask("POST", "/api/run/list_checkpoints").json
    assert listed["checkpoints"] == []
    assert listed["counted"]["count"] == 3
    assert listed["counted"]["newest_at"] >= listed["counted"]["oldest_at"]
    assert any("POST /api/keys/free" in notice for notice in listed["notices"])
    one = own_service.ask("POST", "/api/run/list_checkpoints", {"run_id": "neighbour"}).json
    assert one["counted"]["count"] == 3
    resumed = own_service.ask("POST", RESUME, {"run_id": "another"}).json
    assert "unfinished" not in resumed
    assert resumed["unfinished_counted"]["count"] == 1
    report = own_service.ask("POST", "/api/run/weekly_report").json
    assert (report["numbers"]["runs"], report["numbers"]["restarts"]) == (2, 1)
    assert any("POST /api/keys/free" in notice for notice in report["notices"])
    for reply in (listed, one, resumed, report):
        assert "private" not in str(reply)
        assert "neighbour" not in str(reply).replace("'run_id': 'neighbour'", "") or reply is one


@pytest.mark.rule("WAT-13")
def test_a_free_key_comes_at_once_and_shows_labels(own_service: Service) -> None:
    made = own_service.ask("POST", "/api/keys/free")
    assert (made.status, made.json["plan"], made.headers["cache-control"]) == (201, "watch", "no-store")
    key = made.json["key"]
    assert own_service.ask("POST", SAVE, {"run_id": "mine", "step": "one"}, key=key).json["mode"] == "watch"
    own_service.ask("POST", RESUME, {"run_id": "mine"}, key=key)
    listed = own_service.ask("POST", "/api/run/list_checkpoints", key=key).json
    assert [row["step"] for row in listed["checkpoints"]] == ["one"]
    assert (
        'mine stopped after "one"' in own_service.ask("POST", "/api/run/weekly_report", key=key).json["text"]
    )
    assert key not in "\n".join(dump(own_service))
    statuses = [own_service.ask("POST", "/api/keys/free").status for _ in range(10)]
    assert statuses == [201] * 9 + [429]
    refused = own_service.ask("POST", "/api/keys/free")
    assert refused.code == "over_quota"
    assert "all 10 free keys of this UTC day are used" in refused.json["detail"]


# --- addresses ------------------------------------------------------------------------------------------

TRUSTED = from_environment(
    database="sqlite:///x",
    default_database=str,
    environment={"RUNMEMORY_TRUSTED_PROXIES": "10.0.0.0/8, 192.168.1.1 fd00::/8"},
).trusted_proxies


def address(client: str | None, *forwarded: str) -> bytes:
    headers = {b"x-forwarded-for": ", ".join(forwarded).encode()} if forwarded else {}
    return address_of({"client": client and (client, 5)}, headers, TRUSTED)


@pytest.mark.rule("WAT-11")
def test_an_ipv6_caller_is_known_by_its_network_and_ipv4_by_its_address() -> None:
    assert address("203.0.113.7") == bytes([203, 0, 113, 7]) == address("::ffff:203.0.113.7")
    assert address("203.0.113.8") != address("203.0.113.7")
    assert address("2001:db8:1:2::1") == address("2001:db8:1:2:ffff::9") != address("2001:db8:1:3::1")
    assert address(None) == address("not an address") == b""


@pytest.mark.rule("WAT-11")
def test_forwarded_addresses_are_believed_only_of_configured_proxies() -> None:
    assert address("203.0.113.7", "198.51.100.1") == address("203.0.113.7")
    assert address("10.1.1.1", "198.51.100.1") == address("198.51.100.1")
    # Whoever calls the proxy may have invented what stands before the entry that the proxy added.
    assert address("10.1.1.1", "198.51.100.9", "198.51.100.1") == address("198.51.100.1")
    assert address("10.1.1.1", "198.51.100.1", "192.168.1.1") == address("198.51.100.1")
    assert address("10.1.1.1", "nonsense") == address("10.1.1.1")
    assert address("10.1.1.1", "198.51.100.1", "nonsense") == address("10.1.1.1")
    assert address("10.1.1.1") == address("10.1.1.1", "") != address("10.1.1.2")
    assert address("fd00::1", "[2001:db8::1]") == address("2001:db8::2")
    with pytest.raises(InvalidRequest, match="'proxy' in RUNMEMORY_TRUSTED_PROXIES is no address"):
        from_environment(default_database=str, environment={"RUNMEMORY_TRUSTED_PROXIES": "10.0.0.1,proxy"})


def callers(authenticator: Authenticator, *clients: str) -> list[Caller]:
    async def ask() -> list[Caller]:
        return [await authenticator.caller({"client": (client, 5)}, {}) for client in clients]

    return asyncio.run(ask())


@pytest.mark.rule("WAT-12")
def test_the_key_of_addresses_changes_every_8_days_and_the_one_before_is_looked_up(tmp_path: Path) -> None:
    clock = Clock()
    settings = Settings(database="unused")
    with closing(SqliteStore(tmp_path / "runs.db")) as store, ThreadPoolExecutor(1) as threads:

        def authenticator() -> Authenticator:
            return Authenticator(store, threads, settings, clock_ms=clock)

        one = authenticator()
        first, again, other = callers(one, "203.0.113.7", "203.0.113.7", "203.0.113.8")
        assert first == again
        assert first.account != other.account
        assert (first.anonymous, first.mode, first.formerly) == (True, "watch", None)
        # Another process on the same database knows them too.
        assert callers(authenticator(), "203.0.113.7") == [first]
        clock.forward(8 * DAY)
        (second,) = callers(one, "203.0.113.7")
        assert second.account != first.account
        assert second.formerly == first.account
        assert callers(authenticator(), "203.0.113.7") == [second]
        clock.forward(8 * DAY)
        (third,) = callers(one, "203.0.113.7")
        assert third.formerly == second.account
        keys = store.read(lambda tx: tx.all("address_keys", since=0))
        assert len(keys) == 2
        clock.forward(16 * DAY)
        assert callers(one, "203.0.113.7")[0].formerly is None


@pytest.mark.rule("WAT-12")
def test_what_was_recorded_under_the_former_key_goes_on(tmp_path: Path) -> None:
    from runmemory_core.engine import perform
    from runmemory_core.engine.keys import address_keys, caller_at_address
    from runmemory_core.operations.calls import prepare

    clock = Clock()
    with closing(SqliteStore(tmp_path / "runs.db")) as store:

        def call(name: str, **arguments: Any) -> Any:
            keys = store.transact(lambda tx: address_keys(tx, now_ms=clock.now_ms))
            caller = caller_at_address(b"1234", keys)
            prepared = prepare(name, arguments)
            return store.transact(lambda tx: perform(tx, prepared, caller=caller, now_ms=clock.now_ms))

        call("save_checkpoint", run_id="import", step="one")
        for days in (8, 8, 8):
            clock.forward(days * DAY)
            assert call("resume", run_id="import", peek=True)["would_resume"]["step"] == "one"
            assert call("resume", run_id="import")["would_resume"]["step"] == "one"
        with closing(sqlite3.connect(tmp_path / "runs.db")) as connection:
            assert connection.execute("SELECT count(*) FROM accounts").fetchone() == (1,)
        clock.forward(16 * DAY)
        assert "would_resume" not in call("resume", run_id="import")


@pytest.mark.rule("LIM-05")
def test_a_running_service_sweeps(tmp_path: Path) -> None:
    from runmemory_core import Client

    database = tmp_path / "runs.db"
    with Client(f"sqlite:///{database}") as client:
        client.save_checkpoint("import", "one", idempotency_key="old")
    with closing(sqlite3.connect(database)) as connection, connection:
        connection.execute("UPDATE replays SET answered_at = 0")
        connection.execute("UPDATE runs SET updated_at = 0")

    def left() -> tuple[int, ...]:
        with closing(sqlite3.connect(database)) as connection:
            return connection.execute(
                "SELECT (SELECT count(*) FROM replays), (SELECT count(*) FROM runs WHERE deleted_at IS NULL)"
            ).fetchone()

    assert left() == (1, 1)
    with running_service(f"sqlite:///{database}", sweep_seconds=0.1):
        with closing(sqlite3.connect(database)) as connection, connection:
            # As if no key of the plan own had ever been issued.
            connection.execute("UPDATE accounts SET plan = 'pro'")
        until(lambda: left() == (0, 0))


@pytest.mark.rule("LIM-05")
def test_a_running_service_passes_by_what_it_cannot_sweep_and_says_so(tmp_path: Path) -> None:
    from runmemory_core import Client

    database = tmp_path / "runs.db"
    with Client(f"sqlite:///{database}") as client:
        for run_id in ("damaged", "later"):
            client.save_checkpoint(run_id, "one", state={"v": ["x" * 5_000]}, status="paused")
            client.save_checkpoint(run_id, "two", state={"v": ["y" * 5_000]}, status="paused")

    def left() -> tuple[int]:
        with closing(sqlite3.connect(database)) as connection:
            return connection.execute("SELECT count(*) FROM runs WHERE deleted_at IS NULL").fetchone()

    with closing(sqlite3.connect(database)) as connection, connection:
        connection.execute("UPDATE runs SET updated_at = 0 WHERE run_id = 'later'")
        connection.execute("UPDATE runs SET updated_at = updated_at - 86400000 * 40 WHERE run_id = 'damaged'")
        connection.execute("UPDATE checkpoints SET body = x'00' WHERE run = 1")
    with running_service(f"sqlite:///{database}", sweep_seconds=0.1) as service:
        with closing(sqlite3.connect(database)) as connection, connection:
            connection.execute("UPDATE accounts SET plan = 'pro'")
        until(lambda: left() == (1,))
        assert (
            "the sweep passes by Place(account_id=1, run=1, runs_are_done=False)" in service.log.read_text()
        )
