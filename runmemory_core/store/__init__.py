"""What a store is: a place that runs functions inside transactions, over named statements.

`transact` and `read` take a function that can be started again, since a transaction may be retried. The
statements live in ``sql/<dialect>/queries.sql`` under the same names in every dialect. No rule of the
product belongs here: those are the engine's.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol, TypeVar

Result = TypeVar("Result")
Row = Mapping[str, Any]


class Tx(Protocol):
    """An open transaction; parameters are named, rows are read by column name."""

    changes: int
    """How many statements that may change something ran so far."""

    def one(self, query: str, /, **values: Any) -> Any:
        """The first row of a named query, or None."""
        ...

    def all(self, query: str, /, **values: Any) -> Sequence[Any]:
        """All rows of a named query."""
        ...

    def run(self, query: str, /, **values: Any) -> int:
        """Run a named statement; the number of rows it changed."""
        ...

    def give(self, query: str, /, **values: Any) -> Any:
        """Run a named statement with RETURNING; its first row, or None."""
        ...


class Store(Protocol):
    """A database: SQLite in one file, or PostgreSQL."""

    @property
    def where(self) -> str:
        """Where it keeps its data, for people, without credentials."""
        ...

    def transact(self, work: Callable[[Tx], Result], /, *, wait: bool = True) -> Result:
        """Run ``work`` in a write transaction, committed durably on return, rolled back on any exception.

        With ``wait`` off, raises `StoreBusy` at once when another process writes.
        """
        ...

    def read(self, work: Callable[[Tx], Result], /) -> Result:
        """Run ``work`` on one consistent view, concurrently with writers."""
        ...

    def close(self) -> None:
        """Close every connection; calling it again does nothing."""
        ...


def open_store(url: str) -> Store:
    """The store at ``sqlite:///path``; raises `StoreError` in words for anything it cannot open."""
    from runmemory_core.errors import StoreError  # noqa: PLC0415 - the interface itself needs no errors

    scheme, _, path = url.partition("://")
    if scheme == "sqlite" and len(path) > 1 and path.startswith("/"):
        from runmemory_core.store.sqlite import SqliteStore  # noqa: PLC0415 - loads SQLite on demand

        return SqliteStore(path[1:])
    raise StoreError(
        f"cannot open a database with the scheme {scheme!r}: use sqlite:///relative.db or sqlite:////absolute.db"
    )
