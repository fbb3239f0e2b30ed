"""What the SQLite store promises to whoever works in its transactions."""

from __future__ import annotations

import sqlite3
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from threading import Event, Thread

import pytest

from runmemory_core import NotFound, StoreError
from runmemory_core.store import Tx, open_store
from runmemory_core.store.sqlite import READERS, SqliteStore


def add(tx: Tx, name: str) -> int:
    return tx.give("add_account", name=name, plan="watch", now=1)["account_id"]


def names(store: SqliteStore) -> set[str]:
    return store.read(
        lambda tx: {row["name"] for row in tx.all("accounts_after", watching="", after=0, limit=9_999)}
    )


def test_every_commit_is_flushed_to_disk_before_it_is_acknowledged(store: SqliteStore) -> None:
    connection = store._writing()
    assert connection.execute("PRAGMA journal_mode").fetchone()[0] == "wal"
    assert connection.execute("PRAGMA synchronous").fetchone()[0] == 2


def test_what_was_committed_is_there_for_others(store: SqliteStore) -> None:
    store.transact(lambda tx: add(tx, "one"))
    with closing(SqliteStore(store.where)) as another:
        assert names(another) == {"one"}
    assert names(store) == {"one"}


@pytest.mark.parametrize("error", [NotFound("no"), ValueError("no"), KeyboardInterrupt()])
def test_any_exception_rolls_back_and_comes_through(store: SqliteStore, error: BaseException) -> None:
    def fail(tx: Tx) -> None:
        add(tx, "half")
        raise error

    with pytest.raises(type(error)) as raised:
        store.transact(fail)
    assert raised.value is error
    assert names(store) == set()
    store.transact(lambda tx: add(tx, "whole"))
    assert names(store) == {"whole"}


def test_a_failing_statement_is_a_store_error_and_rolls_back(store: SqliteStore) -> None:
    def twice(tx: Tx) -> None:
        add(tx, "same")
        add(tx, "same")

    with pytest.raises(StoreError, match="UNIQUE"):
        store.transact(twice)
    assert names(store) == set()


def test_changes_counts_the_statements_that_may_change_something(store: SqliteStore) -> None:
    def work(tx: Tx) -> list[int]:
        counts = [tx.changes]
        tx.all("accounts_after", watching="", after=0, limit=9_999)
        tx.one("account_by_name", name="one")
        counts.append(tx.changes)
        add(tx, "one")
        counts.append(tx.changes)
        tx.run("count_call", account_id=1, day="2026-03-01")
        return [*counts, tx.changes]

    assert store.transact(work) == [0, 0, 1, 2]


def test_run_tells_how_many_rows_it_changed(store: SqliteStore) -> None:
    revoke = {"key_id": "k", "now": 2}
    key = {"account_id": 1, "key_id": "k", "key_sha256": b"", "plan": "own", "label": "", "now": 1}
    assert store.transact(lambda tx: tx.run("revoke_key", **revoke)) == 0
    assert store.transact(lambda tx: (tx.run("add_key", **key), tx.run("revoke_key", **revoke))) == (1, 1)


def test_reading_cannot_change_anything(store: SqliteStore) -> None:
    with pytest.raises(StoreError, match="cannot be written"):
        store.read(lambda tx: add(tx, "one"))
    assert names(store) == set()


def test_a_reader_sees_one_moment_while_others_write(store: SqliteStore) -> None:
    store.transact(lambda tx: add(tx, "one"))

    def look_twice(tx: Tx) -> tuple[int, int]:
        first = len(tx.all("accounts_after", watching="", after=0, limit=9_999))
        store.transact(lambda writing: add(writing, "two"))
        return first, len(tx.all("accounts_after", watching="", after=0, limit=9_999))

    assert store.read(look_twice) == (1, 1)
    assert len(names(store)) == 2


def test_more_readers_than_connections_all_get_their_turn(store: SqliteStore) -> None:
    store.transact(lambda tx: add(tx, "one"))
    with ThreadPoolExecutor(4 * READERS) as threads:
        results = list(threads.map(lambda _: len(names(store)), range(20 * READERS)))
    assert results == [1] * 20 * READERS


def test_a_reader_that_fails_gives_its_connection_back(store: SqliteStore) -> None:
    def fail(tx: Tx) -> None:
        tx.all("accounts_after", watching="", after=0, limit=9_999)
        raise LookupError

    for _ in range(2 * READERS):
        with pytest.raises(LookupError):
            store.read(fail)
    assert names(store) == set()


def test_closing_waits_for_who_reads_and_leaves_one_file(store: SqliteStore) -> None:
    store.transact(lambda tx: add(tx, "one"))
    reading, go_on, results = Event(), Event(), list[int]()

    def read(tx: Tx) -> int:
        reading.set()
        assert go_on.wait(10)
        return len(tx.all("accounts_after", watching="", after=0, limit=9_999))

    reader = Thread(target=lambda: results.append(store.read(read)))
    closer = Thread(target=store.close)
    reader.start()
    assert reading.wait(10)
    closer.start()
    go_on.set()
    reader.join()
    closer.join()
    assert results == [1]
    folder = store._path.parent
    assert [file.name for file in folder.iterdir()] == [store._path.name]
    store.close()


def test_a_store_is_opened_by_its_url(store: SqliteStore) -> None:
    store.transact(lambda tx: add(tx, "one"))
    with closing(open_store(f"sqlite:///{store.where}")) as opened:
        assert opened.where == store.where
        assert opened.read(lambda tx: len(tx.all("accounts_after", watching="", after=0, limit=9_999))) == 1


def test_an_older_format_is_brought_up_to_date_whole_or_not_at_all(
    store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.transact(lambda tx: add(tx, "one"))
    path = store._path
    store.close()
    from runmemory_core.store import sqlite
    from runmemory_core.store._queries import migrations

    known = migrations("sqlite")
    broken = "CREATE TABLE more (a);\nCREATE TABLE more (a);\n"
    monkeypatch.setattr(sqlite, "migrations", lambda _: (*known, broken))
    with pytest.raises(StoreError, match="table more already exists"):
        SqliteStore(path)
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("PRAGMA user_version").fetchone()[0] == len(known)
        assert connection.execute("SELECT count(*) FROM sqlite_schema WHERE name = 'more'").fetchone()[0] == 0
    monkeypatch.setattr(sqlite, "migrations", lambda _: (*known, "CREATE TABLE more (a);\n"))
    with closing(SqliteStore(path)) as opened:
        assert names(opened) == {"one"}
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("PRAGMA user_version").fetchone()[0] == len(known) + 1
