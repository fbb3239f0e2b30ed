"""The SQLite store: one file, write-ahead log, every commit on disk before it is acknowledged.

One writing connection behind a lock and a few reading ones; several processes share the file through
SQLite's own locks. No connection is open while the process forks: a child that inherits SQLite's notes of one
believes in locks it does not hold, and what it saves is lost when its parent closes.
"""

from __future__ import annotations

import contextlib
import errno
import sqlite3
import threading
import time
from collections.abc import Callable, Generator
from pathlib import Path
from queue import LifoQueue
from typing import Any, TypeVar

from runmemory_core.errors import RunMemoryError, StoreBusy, StoreError, StoreFull, StoreReadOnly, StoreTooNew
from runmemory_core.store import Tx
from runmemory_core.store._forks import around_forks
from runmemory_core.store._queries import migrations, queries, statements

Result = TypeVar("Result")

BUSY_WAIT_SECONDS = 30.0
READERS = 8
APPLICATION_ID = int.from_bytes(b"RunM")
"""What the first migration writes into the header, so that no other program's file is taken for ours."""
_LOOK = """
SELECT (SELECT application_id FROM pragma_application_id), (SELECT user_version FROM pragma_user_version),
       EXISTS (SELECT * FROM sqlite_schema)
"""
_STATEMENTS = 256
_FULL = frozenset({errno.ENOSPC, errno.EDQUOT})
_REFUSED = frozenset({errno.EACCES, errno.EPERM, errno.EROFS})


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

    Raises `StoreTooNew` for a file of a newer release, `StoreReadOnly`, `StoreFull`, `StoreBusy` after 30 s
    of waiting for another process, `StoreError` for anything else; nothing is half-written in any of them.
    """

    def __init__(self, path: str | Path) -> None:
        self._path = Path(path).absolute()
        self._start()
        with self._words():
            self._path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            self._path.touch(mode=0o600)
        self._writing()
        around_forks(before=self._rest, after_in_parent=self._wake, after_in_child=self._start)

    @property
    def where(self) -> str:
        return str(self._path)

    def transact(self, work: Callable[[Tx], Result], /, *, wait: bool = True) -> Result:
        with self._lock, self._words():
            connection = self._writing()
            _begin(connection, wait=wait)
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
            connection = self._readers.get()
            try:
                connection = connection or self._connect(read_only=True)
                connection.execute("BEGIN")
                return work(_Transaction(connection))
            finally:
                if connection is not None and connection.in_transaction:
                    connection.execute("ROLLBACK")
                self._readers.put(connection)

    def close(self) -> None:
        self._rest()
        self._wake()

    def _start(self) -> None:
        """Begin without connections, and with locks that nobody holds: a forked child comes here too."""
        self._lock = threading.Lock()
        self._writer: sqlite3.Connection | None = None
        self._readers: LifoQueue[sqlite3.Connection | None] = LifoQueue()
        self._offer_readers()

    def _rest(self) -> None:
        """Wait for running transactions, close every connection and let no new one begin."""
        self._lock.acquire()
        for _ in range(READERS):
            if (reader := self._readers.get()) is not None:
                reader.close()
        # Last, because only a connection that may write can clear the log away.
        if self._writer is not None:
            self._writer.close()
            self._writer = None

    def _wake(self) -> None:
        """Let transactions begin again; they open their connections."""
        self._offer_readers()
        self._lock.release()

    def _offer_readers(self) -> None:
        for _ in range(READERS):
            self._readers.put(None)

    def _writing(self) -> sqlite3.Connection:
        if self._writer is None:
            with self._words():
                connection = self._connect(read_only=False)
                try:
                    self._format(connection)
                    _patiently(lambda: connection.execute("PRAGMA journal_mode = WAL").fetchone())
                    connection.execute("PRAGMA synchronous = FULL")
                    # What is deleted from a page is overwritten there: a destroyed key must not be read from the file.
                    # FAST leaves pages alone that became free as a whole, which would have to be written for it.
                    connection.execute("PRAGMA secure_delete = FAST")
                    self._migrate(connection)
                except BaseException:
                    connection.close()
                    raise
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

    def _format(self, connection: sqlite3.Connection) -> int:
        """The format of the file, looked at before anything in it is touched."""
        # One statement, so that a file which another process is just making is seen before or after.
        program, found, has_tables = connection.execute(_LOOK).fetchone()
        if has_tables and program != APPLICATION_ID:
            raise StoreError(f"{self._path} is another program's SQLite database: name another file")
        known = len(migrations("sqlite"))
        if found > known:
            raise StoreTooNew(
                f"{self._path} has format {found}; this release knows formats up to {known}: "
                "upgrade runmemory, or name another file",
                found=found,
                known=known,
            )
        return found

    def _migrate(self, connection: sqlite3.Connection) -> None:
        scripts = migrations("sqlite")
        if self._format(connection) == len(scripts):
            return
        connection.execute("BEGIN IMMEDIATE")
        try:
            for script in scripts[self._format(connection) :]:
                for statement in statements(script):
                    connection.execute(statement)
            connection.execute(f"PRAGMA user_version = {len(scripts)}")
            connection.execute("COMMIT")
        except BaseException:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            raise

    @contextlib.contextmanager
    def _words(self) -> Generator[None]:
        try:
            yield
        except (sqlite3.Error, OSError) as error:
            raise _in_words(error, self._path) from error


def _begin(connection: sqlite3.Connection, *, wait: bool) -> None:
    """Begin to write; with ``wait`` off without SQLite's patience, which holds for a connection."""
    if not wait:
        connection.execute("PRAGMA busy_timeout = 0")
    try:
        connection.execute("BEGIN IMMEDIATE")
    finally:
        if not wait:
            connection.execute(f"PRAGMA busy_timeout = {BUSY_WAIT_SECONDS * 1_000:.0f}")


def _in_words(error: sqlite3.Error | OSError, path: Path) -> RunMemoryError:
    """The exception a user can act on; SQLite's primary result code is the low byte of the extended one."""
    extended = getattr(error, "sqlite_errorcode", 0)
    code = extended & 0xFF
    error_number = getattr(error, "errno", None)
    if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
        return StoreBusy(
            f"{path}: another process held the database for over {BUSY_WAIT_SECONDS:.0f} s: try again"
        )
    # IOERR_SHMSIZE: no room for the index of the log, which is made when the file is opened.
    if code == sqlite3.SQLITE_FULL or extended == sqlite3.SQLITE_IOERR_SHMSIZE or error_number in _FULL:
        return StoreFull(f"{path}: the disk is full; nothing of this call was kept: free space and try again")
    # SQLite says CANTOPEN where it may not put its log beside the file.
    if code in (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN) or error_number in _REFUSED:
        return StoreReadOnly(
            f"{path} cannot be written: check its permissions and its folder's, or name another file"
        )
    if code in (sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_CORRUPT):
        return StoreError(
            f"{path} is not a healthy SQLite database ({error}): restore it, or name another file"
        )
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
