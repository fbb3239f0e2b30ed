"""An import of 400 invoices as a LangGraph graph of ten steps, without a model: kill it, and start it again.

    python langgraph_import.py [FOLDER]

FOLDER (`invoice-import` if none is named) gets the file of invoices, one file of imported invoices from each
step, and `steps.txt`, to which the steps append what they do: `langgraph_resume.py` counts there.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TypedDict

from langchain_core.runnables import RunnableConfig
from langgraph.graph import END, START, StateGraph

from runmemory_langgraph import RunMemorySaver

STEPS = 10
BATCH = 40
SECONDS_AN_INVOICE = 0.002  # stands for the request or the model call that a real import waits for

Tell = Callable[[str], None]


class Import(TypedDict):
    """The state: what a step needs from the steps before it, and nothing that can be read elsewhere."""

    cursor: int
    total_cents: int


def import_invoices(folder: Path, tell: Tell) -> None:
    """Begin the import, or go on with it: the same call, whatever happened before."""
    # [start:continue]
    # Where checkpoints go is not the graph's business: RUNMEMORY_URL names a file or a service. Without it,
    # they go to a file in the user's data folder.
    with RunMemorySaver() as saver:
        graph = graph_of(folder, tell).compile(checkpointer=saver)
        thread: RunnableConfig = {"configurable": {"thread_id": folder.name}}
        found = graph.get_state(thread)
        if found.created_at is None:  # never started
            # "sync" stores the checkpoint of a step before the next step begins.
            result = graph.invoke({"cursor": 0, "total_cents": 0}, thread, durability="sync")
        elif found.tasks:  # not finished
            # None goes on after the last checkpoint; with the input again it would begin again, at step 1.
            result = graph.invoke(None, thread, durability="sync")
        else:
            result = found.values
    # [end:continue]
    tell(f"stored {STEPS}")
    tell(f"total {result['total_cents']}")


def graph_of(folder: Path, tell: Tell) -> StateGraph[Import]:
    """Ten steps in a line."""
    graph = StateGraph(Import)
    names = [f"import {number}" for number in range(1, STEPS + 1)]
    for number, name in enumerate(names, start=1):
        graph.add_node(name, partial(import_batch, folder, number, tell))
    for earlier, later in zip([START, *names], [*names, END], strict=True):
        graph.add_edge(earlier, later)
    return graph


def import_batch(folder: Path, number: int, tell: Tell, state: Import) -> Import:
    """One step: the next 40 invoices, written to a file of the step's own."""
    # With durability="sync", being called is the proof that the checkpoint of the step before is stored.
    tell(f"stored {number - 1}")
    tell(f"started {number}")
    batch = invoices_of(folder)[state["cursor"] : state["cursor"] + BATCH]
    unfinished = folder / f"step-{number:02}.part"
    with unfinished.open("w") as output:
        for index, (invoice, cents) in enumerate(batch):
            if index == BATCH // 2:
                tell(f"halfway {number}")
            time.sleep(SECONDS_AN_INVOICE)
            output.write(f"{invoice},{cents}\n")
    # A step that was killed runs again, so what it does must bear being done twice. Renaming replaces what an
    # earlier try left; appending to one file for all steps would double its invoices.
    unfinished.replace(unfinished.with_suffix(".csv"))
    tell(f"finished {number}")
    total_cents = state["total_cents"] + sum(cents for _, cents in batch)
    return {"cursor": state["cursor"] + len(batch), "total_cents": total_cents}


def invoices_of(folder: Path) -> list[tuple[str, int]]:
    """What there is to import: pairs of an invoice's number and its amount."""
    rows = [line.split(",") for line in (folder / "invoices.csv").read_text().splitlines()]
    return [(invoice, int(cents)) for invoice, cents in rows]


def make_invoices(folder: Path) -> None:
    """The file to import, the same every time."""
    amounts = [100 + 7_919 * number % 90_000 for number in range(1, STEPS * BATCH + 1)]
    lines = [f"invoice-{number:03},{cents}\n" for number, cents in enumerate(amounts, start=1)]
    folder.mkdir(exist_ok=True)
    (folder / "invoices.csv").write_text("".join(lines))


def main() -> None:
    parser = argparse.ArgumentParser(description="Import 400 invoices; kill it, and start it again.")
    parser.add_argument("folder", nargs="?", type=Path, default=Path("invoice-import"), help="for its files")
    parser.add_argument("--paced", action="store_true", help="after each event wait for a line of input")
    arguments = parser.parse_args()
    folder: Path = arguments.folder
    make_invoices(folder)

    def tell(event: str) -> None:
        # What is appended to a file outlives a SIGKILL; what stands in this process's memory does not.
        with (folder / "steps.txt").open("a") as steps:
            steps.write(f"{event}\n")
        print(event, flush=True)
        if arguments.paced:
            sys.stdin.readline()

    import_invoices(folder, tell)


if __name__ == "__main__":
    main()
