"""A served, durable save of 2 KB from 16 clients: against bare SQLite inserts, and a bare ASGI app on uvicorn.

The server is put on the first core, the clients on the second.
"""

import os
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from statistics import median

from tests.benchmarks.embedded import bare_insert
from tests.benchmarks.measuring import raw_flush, scratch, show
from tests.service.serving import new_key_in

ROUNDS = 7
REQUESTS = 4_000
PINNED = len(os.sched_getaffinity(0)) > 1


def on_core(core: int, command: list[str]) -> list[str]:
    return ["taskset", "-c", str(core), *command] if PINNED else command


@contextmanager
def serving(command: list[str], url: str) -> Generator[None]:
    with subprocess.Popen(on_core(0, command), stdout=subprocess.DEVNULL) as process:
        for _ in range(200):
            try:
                urllib.request.urlopen(url + "/healthz").close()
                break
            except OSError:
                time.sleep(0.05)
        try:
            yield
        finally:
            process.terminate()


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def requests_a_second(url: str, key: str) -> float:
    command = [sys.executable, "-m", "tests.benchmarks.load", url, key, str(REQUESTS)]
    return float(
        subprocess.run(on_core(1, command), capture_output=True, text=True, check=True, timeout=120).stdout
    )


def inserts_a_second(insert) -> float:
    begun = time.perf_counter()
    for _ in range(REQUESTS // 4):
        insert()
    return REQUESTS // 4 / (time.perf_counter() - begun)


def main() -> None:
    with scratch() as folder:
        database = f"sqlite:///{folder}/served.db"
        key = new_key_in(database)
        ours, theirs = (f"http://127.0.0.1:{free_port()}" for _ in range(2))
        serve = [sys.executable, "-m", "runmemory_core.cli", "serve", "--database", database, "--port"]
        app = [
            sys.executable,
            "-m",
            "uvicorn",
            "--no-access-log",
            "--log-level",
            "warning",
            "--loop",
            "uvloop",
        ]
        app += ["--http", "httptools", "tests.benchmarks.bare_app:app", "--port", theirs.rpartition(":")[2]]
        insert = bare_insert(f"{folder}/bare.db")
        found: dict[str, list[float]] = {
            "bare inserts, one a transaction": [],
            "bare ASGI app": [],
            "saves": [],
        }
        with serving([*serve, ours.rpartition(":")[2]], ours), serving(app, theirs):
            for _ in range(ROUNDS):
                found["bare inserts, one a transaction"].append(inserts_a_second(insert))
                found["bare ASGI app"].append(requests_a_second(theirs, key))
                found["saves"].append(requests_a_second(ours, key))
        show_rates(*found.values(), flush_seconds=raw_flush(Path(folder)))


def show_rates(inserts: list[float], asgi: list[float], saves: list[float], *, flush_seconds: float) -> None:
    """The medians, and the medians of each round's ratio."""
    over_inserts = median(a / b for a, b in zip(saves, inserts, strict=True))
    over_asgi = median(a / b for a, b in zip(saves, asgi, strict=True))
    show(
        "served, 2 KB, 16 clients, durable, one server core",
        ["", "a second", "saves against it", "aim"],
        [
            ["bare inserts, one a transaction", f"{median(inserts):,.0f}", f"{over_inserts:.2f}", "≥ 3"],
            ["bare ASGI app", f"{median(asgi):,.0f}", f"{over_asgi:.2f}", "≥ 0.33"],
            ["saves", f"{median(saves):,.0f}", "", ""],
        ],
        note=f"a bare 4 KB pwrite and fdatasync took {flush_seconds * 1e6:.0f} µs",
    )


if __name__ == "__main__":
    main()
