"""Measuring two sides fairly on a shared, noisy machine: in turn, in rounds, medians of each."""

import os
import sqlite3
import statistics
import tempfile
import time
from collections.abc import Callable, Generator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path

from rich.console import Console
from rich.table import Table

console = Console(width=110)


@contextmanager
def scratch() -> Generator[Path]:
    """A folder on the disk this project lies on: /tmp may be memory, where a flush costs nothing."""
    with tempfile.TemporaryDirectory(dir=Path.cwd(), prefix=".bench-") as folder:
        yield Path(folder)


def alternate(
    sides: Mapping[str, Callable[[], None]],
    *,
    rounds: int,
    calls: int,
    clock: Callable[[], float] = time.perf_counter,
) -> dict[str, list[float]]:
    """Seconds a call of each side, one figure a round, the sides taking turns."""
    taken: dict[str, list[float]] = {name: [] for name in sides}
    for side in sides.values():
        side()
    for _ in range(rounds):
        for name, side in sides.items():
            begun = clock()
            for _ in range(calls):
                side()
            taken[name].append((clock() - begun) / calls)
    return taken


def microseconds(seconds: list[float]) -> str:
    """The median, in microseconds."""
    return f"{statistics.median(seconds) * 1e6:,.0f}"


def ratio(a: list[float], b: list[float]) -> str:
    """The median of the ratios, round by round."""
    return f"{statistics.median(x / y for x, y in zip(a, b, strict=True)):.2f}"


def raw_flush(folder: Path, *, calls: int = 300) -> float:
    """Median seconds of a bare 4 KB pwrite and fdatasync: what durability costs on this disk right now."""
    taken: list[float] = []
    with (folder / "raw").open("wb", buffering=0) as file:
        for i in range(calls):
            begun = time.perf_counter()
            os.pwrite(file.fileno(), b"x" * 4096, i % 64 * 4096)
            os.fdatasync(file.fileno())
            taken.append(time.perf_counter() - begun)
    return statistics.median(taken)


def bytes_of(path: Path) -> int:
    """Size of a SQLite database as it lies there, write-ahead log included."""
    return sum(file.stat().st_size for file in path.parent.glob(f"{path.name}*"))


def bytes_while_open(path: Path) -> int:
    """The same of a database that a service holds open: its log is emptied first, as closing would do.

    A log grows to 4 MB whatever is kept, and is then used again.
    """
    with closing(sqlite3.connect(path, timeout=30)) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    return bytes_of(path)


def show(title: str, columns: list[str], rows: list[list[str]], *, note: str = "") -> None:
    """Print one table."""
    table = Table(title=title, title_justify="left")
    for number, column in enumerate(columns):
        table.add_column(column, justify="left" if number == 0 else "right")
    for row in rows:
        table.add_row(*row)
    console.print(table)
    if note:
        console.print(f"[dim]{note}[/dim]")
