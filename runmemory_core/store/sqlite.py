"""The SQLite store: one file, write-ahead log, every commit on disk before it is acknowledged.

One writing connection behind a lock and a few reading ones; several processes share the file through
SQLite's own locks. Connections are opened anew after a fork, because SQLite forbids carrying them over.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
import threading
import time
import weakref
from collections import deque
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

from runmemory_core.errors import RunMemoryError, StoreBusy, StoreError, StoreFull, StoreReadOnly, StoreTooNew
from runmemory_core.store import Tx
from runmemory_core.store._queries import migrations, queries, statements

Result = TypeVar("Result")

BUSY_WAIT_SECONDS = 30.0
_STATEMENTS = 256


class _Transaction:
    """A `Tx` over one connection."""

    __slots__ = ("_execute", "_queries", "changes")

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._execute = connection.execute
        self._queries = queries("sqlite")
        self.changes = 0

    def one(self, query: str, /, **values: Any) -> Any:
        return self._execute(self._queries[query], values).fetchone()

    def all(self, query: str, /, **values: Any) -> list[Any]:
        return self._execute(self._queries[query], values).fetchall()

    def run(self, query: str, /, **values: Any) -> int:
        self.changes += 1
        return self._execute(self._queries[query], values).rowcount

    def give(self, query: str, /, **values: Any) -> Any:
        self.changes += 1
        rows = self._execute(self._queries[query], values).fetchall()
        return rows[0] if rows else None


class SqliteStore:
    """A `Store` in the file ``path``, which is created with its folder when missing.

    Raises `StoreTooNew` for a file of a newer release, `StoreReadOnly`, `StoreFull`, `StoreBusy` after 30 s of
    waiting for another process, `StoreError` for anything else; nothing is half-written in any of them.
    """

    def __init__(self, path: str | Path) -> None:
        self._path = Path(path).absolute()
        self._forget_connections()
        with self._words():
            self._path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            self._path.touch(mode=0o600)
        self._writing()
        os.register_at_fork(after_in_child=_weakly(self._forget_connections))

    @property
    def where(self) -> str:
        return str(self._path)

    def transact(self, work: Callable[[Tx], Result], /) -> Result:
        with self._lock, self._words():
            connection = self._writing()
            connection.execute("BEGIN IMMEDIATE")
            try:
                result = work(_Transaction(connection))
                connection.execute("COMMIT")
            except BaseException:
                # SQLite has rolled back by itself when the disk was full.
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
                raise
            return result

    def read(self, work: Callable[[Tx], Result], /) -> Result:
        with self._words():
            connection = self._readers.pop() if self._readers else self._connect(read_only=True)
            connection.execute("BEGIN")
            try:
                return work(_Transaction(connection))
            finally:
                connection.execute("ROLLBACK")
                self._readers.append(connection)

    def close(self) -> None:
        with self._lock:
            while self._readers:
                self._readers.pop().close()
            if self._writer is not None:
                self._writer.close()
                self._writer = None

    def _forget_connections(self) -> None:
        # A forked child must neither use nor close what its parent opened, so the old ones are kept alive.
        self._abandoned: list[Any] = [getattr(self, "_writer", None), getattr(self, "_readers", None)]
        self._lock = threading.Lock()
        self._writer: sqlite3.Connection | None = None
        self._readers: deque[sqlite3.Connection] = deque()

    def _writing(self) -> sqlite3.Connection:
        if self._writer is None:
            with self._words():
                connection = self._connect(read_only=False)
                _patiently(lambda: connection.execute("PRAGMA journal_mode = WAL").fetchone())
                connection.execute("PRAGMA synchronous = FULL")
                self._migrate(connection)
            self._writer = connection
        return self._writer

    def _connect(self, *, read_only: bool) -> sqlite3.Connection:
        mode = "ro" if read_only else "rw"
        connection = sqlite3.connect(
            f"{self._path.as_uri()}?mode={mode}",
            uri=True,
            timeout=BUSY_WAIT_SECONDS,
            isolation_level=None,
            check_same_thread=False,
            cached_statements=_STATEMENTS,
        )
        connection.row_factory = sqlite3.Row
        return connection

    def _migrate(self, connection: sqlite3.Connection) -> None:
        scripts = migrations("sqlite")
        if connection.execute("PRAGMA user_version").fetchone()[0] == len(scripts):
            return
        connection.execute("BEGIN IMMEDIATE")
        try:
            found: int = connection.execute("PRAGMA user_version").fetchone()[0]
            if found > len(scripts):
                raise StoreTooNew(
                    f"{self._path} has format {found}; this release knows formats up to {len(scripts)}: "
                    "upgrade runmemory, or name another file",
                    found=found,
                    known=len(scripts),
                )
            for script in scripts[found:]:
                for statement in statements(script):
                    connection.execute(statement)
            connection.execute(f"PRAGMA user_version = {len(scripts)}")
            connection.execute("COMMIT")
        except BaseException:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            raise

    @contextlib.contextmanager
    def _words(self) -> Iterator[None]:
        try:
            yield
        except (sqlite3.Error, OSError) as error:
            raise _in_words(error, self._path) from error


def _in_words(error: sqlite3.Error | OSError, path: Path) -> RunMemoryError:
    """The exception a user can act on; SQLite's primary result code is the low byte of the extended one."""
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
        return StoreBusy(f"{path}: another process held the database for over {BUSY_WAIT_SECONDS:.0f} s: try again")
    if code == sqlite3.SQLITE_FULL:
        return StoreFull(f"{path}: the disk is full; nothing of this call was kept: free space and try again")
    if code in (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM) or isinstance(error, PermissionError):
        return StoreReadOnly(f"{path} cannot be written: check its permissions and its folder's, or name another file")
    if code in (sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_CORRUPT):
        return StoreError(f"{path} is not a healthy SQLite database ({error}): restore it, or name another file")
    return StoreError(f"{path}: {error}")


def _patiently(step: Callable[[], Any]) -> None:
    """Repeat ``step`` while another process changes the journal mode, which ignores SQLite's busy timeout."""
    deadline = time.monotonic() + BUSY_WAIT_SECONDS
    while True:
        try:
            step()
        except sqlite3.OperationalError as error:
            busy = getattr(error, "sqlite_errorcode", 0) & 0xFF == sqlite3.SQLITE_BUSY
            if not busy or time.monotonic() > deadline:
                raise
            time.sleep(0.01)
        else:
            return


def _weakly(method: Callable[[], None]) -> Callable[[], None]:
    """``method`` without keeping its object alive: fork hooks cannot be unregistered."""
    reference = weakref.WeakMethod(method)

    def call() -> None:
        if (alive := reference()) is not None:
            alive()

    return call
