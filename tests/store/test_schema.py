"""The SQL files agree with each other, and with the engine that uses them."""

from __future__ import annotations

import ast
import re
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from importlib.resources import files
from pathlib import Path

import pytest

from runmemory_core.store._queries import migrations, queries, statements

SQL = files("runmemory_core.store").joinpath("sql", "sqlite")


@pytest.fixture
def migrated() -> Iterator[sqlite3.Connection]:
    with closing(sqlite3.connect(":memory:")) as connection:
        for script in migrations("sqlite"):
            for statement in statements(script):
                connection.execute(statement)
        yield connection


def objects(connection: sqlite3.Connection) -> dict[str, str]:
    rows = connection.execute("SELECT name, sql FROM sqlite_schema WHERE sql IS NOT NULL")
    return {name: " ".join(sql.split()) for name, sql in rows}


def test_the_schema_is_the_sum_of_the_migrations(migrated: sqlite3.Connection) -> None:
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.executescript(SQL.joinpath("schema.sql").read_text())
        assert objects(connection) == objects(migrated)
    assert objects(migrated)


def test_a_script_is_split_into_all_of_its_statements() -> None:
    script = (
        "-- a; comment\nCREATE TABLE a (b TEXT DEFAULT ';');\n\nCREATE TABLE c (\nd);\nCREATE TABLE e (f);\n"
    )
    with closing(sqlite3.connect(":memory:")) as connection:
        for statement in statements(script):
            connection.execute(statement)
        assert set(objects(connection)) == {"a", "c", "e"}


def test_migrations_are_numbered_without_a_gap() -> None:
    names = sorted(entry.name for entry in SQL.joinpath("migrations").iterdir())
    assert [int(name[:4]) for name in names] == list(range(1, len(names) + 1))


def test_every_primary_key_starts_with_the_account(migrated: sqlite3.Connection) -> None:
    tables = [name for (name,) in migrated.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")]
    assert len(tables) > 5
    for table in tables:
        columns = migrated.execute(f"SELECT name FROM pragma_table_info('{table}') WHERE pk = 1").fetchall()
        assert columns == [("account_id",)], table


@pytest.mark.parametrize("name", queries("sqlite"))
def test_every_query_can_be_prepared(migrated: sqlite3.Connection, name: str) -> None:
    query = queries("sqlite")[name]
    values = dict.fromkeys(re.findall(r":(\w+)", query), "1")
    assert migrated.execute(f"EXPLAIN {query}", values).fetchall()


def test_every_query_is_used_and_every_one_that_is_used_is_there(project: Path) -> None:
    """Names that are put together, such as ``clear_{table}``, count for every query that fits."""
    used: set[str] = set()
    for path in (project / "runmemory_core").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            match node:
                case ast.Call(func=ast.Attribute(attr="one" | "all" | "run" | "give"), args=[name, *_]):
                    used |= names_of(name)
                case _:
                    pass
    assert used == set(queries("sqlite"))


def names_of(argument: ast.expr) -> set[str]:
    match argument:
        case ast.Constant(value=str(name)):
            return {name}
        case ast.JoinedStr(values=[ast.Constant(value=str(start)), *_]):
            return {name for name in queries("sqlite") if name.startswith(start)}
        case _:
            return set()
