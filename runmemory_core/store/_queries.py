"""Reads the named statements and the numbered migrations of a dialect from its SQL files."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterator
from functools import cache
from importlib.resources import files

_PACKAGE = "runmemory_core.store"
_NAME = re.compile(r"^-- name: (\w+)$", re.MULTILINE)


@cache
def queries(dialect: str) -> dict[str, str]:
    """Statement by name, from ``sql/<dialect>/queries.sql``."""
    pieces = _NAME.split(_read(dialect, "queries.sql"))
    return {name: text.strip().rstrip(";") for name, text in zip(pieces[1::2], pieces[2::2], strict=True)}


@cache
def migrations(dialect: str) -> tuple[str, ...]:
    """The scripts that lead from nothing to the current format; the n-th leads to format n."""
    folder = files(_PACKAGE).joinpath("sql", dialect, "migrations")
    names = sorted(entry.name for entry in folder.iterdir() if entry.name.endswith(".sql"))
    return tuple(_read(dialect, "migrations", name) for name in names)


def statements(script: str) -> Iterator[str]:
    """The single statements of a script, so that a migration can run inside one transaction."""
    pending = ""
    for line in script.splitlines(keepends=True):
        pending += line
        if sqlite3.complete_statement(pending):
            yield pending
            pending = ""


def _read(dialect: str, *path: str) -> str:
    return files(_PACKAGE).joinpath("sql", dialect, *path).read_text(encoding="utf-8")
