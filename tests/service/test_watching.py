"""Callers without a key: who they are, what is kept of them, and the free key that shows labels."""

from __future__ import annotations

import asyncio
import re
import sqlite3
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

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


# --- addresses ------------------------------------------------------------------------------------------

TRUSTED = from_environment(
    database="sqlite:///x",
    default_database=str,
    environment={"RUNMEMORY_TRUSTED_PROXIES": "10.0.0.0/8, 192.168.1.1 fd00::/8"},
).trusted_proxies


def address(client: str | None, *forwarded: str) -> bytes:
    headers = {b"x-forwarded-for": ", ".join(forwarded).encode()} if forwarded else {}
    return address_of({"client": client and (client, 5)}, headers, TRUSTED)


def test_an_ipv6_caller_is_known_by_its_network_and_ipv4_by_its_address() -> None:
    assert address("203.0.113.7") == bytes([203, 0, 113, 7]) == address("::ffff:203.0.113.7")
    assert address("203.0.113.8") != address("203.0.113.7")
    assert address("2001:db8:1:2::1") == address("2001:db8:1:2:ffff::9") != address("2001:db8:1:3::1")
    assert address(None) == address("not an address") == b""


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
