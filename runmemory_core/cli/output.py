"""How commands print: lines and tables for people, JSON for programs."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Sequence
from importlib import import_module
from typing import Any

_PIPED_WIDTH = 1_000


class ExtraMissing(Exception):
    """A package that comes with one of the extras is not installed."""


def plain(text: str) -> str:
    """One line without what could steer a terminal: names of runs and steps come from anywhere."""
    return "".join(
        character if character.isprintable() else "\N{REPLACEMENT CHARACTER}" for character in text
    )


def line(text: str = "") -> None:
    """Print text for people, at once."""
    sys.stdout.write("\n".join(map(plain, text.split("\n"))) + "\n")
    sys.stdout.flush()


def second(moment: str) -> str:
    """An RFC 3339 moment to the second, as a table shows it; its column says that it is UTC."""
    return moment[:19].replace("T", " ")


def data(value: Any) -> None:
    """Print JSON for programs."""
    sys.stdout.write(json.dumps(value, indent=2) + "\n")


def check_tables() -> None:
    """Raise `ExtraMissing` before anything is printed or asked, if `table` could not print."""
    try:
        import_module("rich")
    except ImportError:
        raise ExtraMissing('runmemory needs rich: pip install "runmemory[cli]"') from None


def table(title: str, columns: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Print rows, at least one, for people; what is wider than the terminal is folded, never cut."""
    check_tables()
    from rich import box  # noqa: PLC0415
    from rich.console import Console  # noqa: PLC0415 - only people need it
    from rich.table import Table  # noqa: PLC0415
    from rich.text import Text  # noqa: PLC0415

    shown = [[f"{cell:,}" if isinstance(cell, int) else plain(str(cell)) for cell in row] for row in rows]
    printed = Table(title=Text(plain(title)), title_justify="left", box=box.SIMPLE)
    for column, cells in zip(columns, zip(*shown, strict=True), strict=True):
        numeric = all(cell.replace(",", "").isdecimal() for cell in cells)
        printed.add_column(column, justify="right" if numeric else "left", overflow="fold")
    for row in shown:
        printed.add_row(*map(Text, row))
    Console(width=None if sys.stdout.isatty() else _PIPED_WIDTH).print(printed)
