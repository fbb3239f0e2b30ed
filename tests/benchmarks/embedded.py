"""An embedded, durable save of 2 KB against a bare SQLite transaction that inserts the same bytes."""

import json
import sqlite3
from itertools import count

from runmemory_core import Client
from tests.benchmarks.measuring import alternate, microseconds, ratio, raw_flush, scratch, show

STATE = {
    "cursor": 0,
    "batch": [{"invoice": f"INV-{n:05}", "total": n * 17.25, "posted": n % 2 == 0} for n in range(38)],
}


def bare_insert(path: str):
    """A bare durable insert with the settings of the store."""
    db = sqlite3.connect(path, isolation_level=None)
    for setting in ("journal_mode = WAL", "synchronous = FULL"):
        db.execute(f"PRAGMA {setting}")
    db.execute("CREATE TABLE saves (id INTEGER PRIMARY KEY, run_id TEXT, state TEXT)")
    text = json.dumps(STATE, separators=(",", ":"))

    def insert() -> None:
        db.execute("BEGIN IMMEDIATE")
        db.execute("INSERT INTO saves (run_id, state) VALUES ('invoice-import', ?)", (text,))
        db.execute("COMMIT")

    return insert


def main() -> None:
    with scratch() as folder:
        client = Client(f"sqlite:///{folder}/ours.db")
        numbers = count()

        def save() -> None:
            STATE["cursor"] = next(numbers)
            client.save_checkpoint("invoice-import", "imported a batch", state=STATE)

        def resume() -> None:
            client.resume("invoice-import", peek=True)

        taken = alternate(
            {"bare insert": bare_insert(f"{folder}/bare.db"), "save_checkpoint": save}, rounds=40, calls=50
        )
        bare = taken["bare insert"]
        size = len(json.dumps(STATE, separators=(",", ":")))
        show(
            f"embedded, durable, {size:,} bytes of state",
            ["", "µs a call", "over bare insert", "aim"],
            [
                ["bare insert", microseconds(bare), "1.00", ""],
                [
                    "save_checkpoint",
                    microseconds(taken["save_checkpoint"]),
                    ratio(taken["save_checkpoint"], bare),
                    "≤ 1.4",
                ],
                [
                    "resume(peek=True)",
                    microseconds(alternate({"r": resume}, rounds=20, calls=50)["r"]),
                    "",
                    "",
                ],
            ],
            note=f"a bare 4 KB pwrite and fdatasync took {raw_flush(folder) * 1e6:.0f} µs",
        )


if __name__ == "__main__":
    main()
