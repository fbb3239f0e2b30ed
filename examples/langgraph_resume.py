"""An import is killed with SIGKILL and goes on where it was: what `make demo` runs.

The import of `langgraph_import.py`, a LangGraph graph of ten steps for 400 invoices, runs as a process of its
own. This program kills that process, starts the same command again, and counts how often each step ran. It
kills at two moments:

- after the checkpoint of step 7 was stored: the import resumes at step 8;
- inside step 7: the import resumes at step 7, so that step runs again.

First the import keeps its checkpoints in a SQLite file of its own, then in a `runmemory serve`. The exit code
is 1 if a finished step ran twice, or an invoice is missing or doubled.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Generator
from contextlib import contextmanager, nullcontext
from pathlib import Path

from langgraph_import import BATCH, STEPS, invoices_of
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn
from rich.table import Table

RUNMEMORY = [sys.executable, "-m", "runmemory_core.cli"]  # the command `runmemory` of this environment

# The event of the import at which it is killed, and how a reader calls that moment.
MOMENTS = {"stored 7": "after step 7", "halfway 7": "inside step 7"}


# --- killing --------------------------------------------------------------------------------------------


def import_command(folder: Path) -> list[str]:
    """The command of the import: the same whether it begins or goes on."""
    return [sys.executable, str(Path(__file__).with_name("langgraph_import.py")), "--paced", str(folder)]


def run_import(
    folder: Path, settings: dict[str, str], *, on_event: Callable[[str], None], kill_at: str | None = None
) -> None:
    """Run the import to its end, or to the event at which it is killed.

    The import waits after each event, so the kill falls exactly there, on a machine of any speed.
    """
    with subprocess.Popen(
        import_command(folder),
        env=os.environ | settings,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        bufsize=1,
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        for line in process.stdout:
            event = line.strip()
            on_event(event)
            if event == kill_at:
                process.kill()  # SIGKILL: the process cannot do anything about it
                return
            process.stdin.write("go on\n")
    if process.returncode != 0:
        sys.exit(f"the import itself failed with exit code {process.returncode}")


@contextmanager
def served(folder: Path) -> Generator[dict[str, str]]:
    """`runmemory serve` on a free port, as what its clients need in their environment."""
    database = ["--database", f"sqlite:///{folder / 'service.db'}"]
    issued = json.loads(subprocess.check_output([*RUNMEMORY, "keys", "issue", "--json", *database]))
    with subprocess.Popen(
        [*RUNMEMORY, "serve", "--port", "0", *database], stdout=subprocess.PIPE, text=True
    ) as service:
        assert service.stdout is not None
        try:
            url = re.findall(r"http://[\w.]+:\d+", service.stdout.readline())[0]
            yield {"RUNMEMORY_URL": url, "RUNMEMORY_API_KEY": issued["key"]}
        finally:
            service.terminate()


# --- counting -------------------------------------------------------------------------------------------


def events_of(folder: Path) -> list[tuple[str, int]]:
    """What the steps told, in order, over all lives of the process."""
    told = [line.split() for line in (folder / "steps.txt").read_text().splitlines()]
    return [(event, int(number)) for event, number in told]


def starts_of(folder: Path) -> list[int]:
    """The steps that ran, in order."""
    return [number for event, number in events_of(folder) if event == "started"]


def faults_of(folder: Path) -> list[str]:
    """What must not have happened, in words; nothing when the import ended as if it was never killed."""
    faults: list[str] = []
    stored: set[int] = set()
    for event, number in events_of(folder):
        if event == "stored":
            stored.add(number)
        elif event == "started" and number in stored:
            faults.append(f"step {number} ran again after its checkpoint was stored")
    invoices = invoices_of(folder)
    lines = [line for file in folder.glob("step-*.csv") for line in file.read_text().splitlines()]
    times = Counter(line.split(",")[0] for line in lines)
    faults += [f"{name} was imported {times[name]} times" for name, _ in invoices if times[name] != 1]
    if ("total", sum(cents for _, cents in invoices)) not in events_of(folder):
        faults.append("the state at the end does not hold the total of all invoices")
    return faults


# --- showing --------------------------------------------------------------------------------------------


def demonstrate(folder: Path, settings: dict[str, str], kill_at: str, progress: Progress) -> None:
    """One import: killed at an event, started again, with a bar of the invoices imported."""
    bar = progress.add_task(folder.name, total=STEPS * BATCH)

    def show(event: str) -> None:
        name, number = event.split()
        if name in {"halfway", "finished"}:
            progress.update(bar, completed=int(number) * BATCH - (BATCH // 2 if name == "halfway" else 0))

    run_import(folder, settings, on_event=show, kill_at=kill_at)
    before = starts_of(folder)
    run_import(folder, settings, on_event=show)
    resumed_at = starts_of(folder)[len(before)]
    again = ", which runs again" if resumed_at in before else ""
    progress.print(f"{folder.name}: resumes at step {resumed_at}{again}")


def table_of(folders: list[Path]) -> Table:
    """How often each step ran, import by import."""
    headings = [folder.name.replace(", ", "\n") for folder in folders]
    table = Table("step", *headings, title="How often each step ran")
    counts = [Counter(starts_of(folder)) for folder in folders]
    for number in range(1, STEPS + 1):
        times = [count[number] for count in counts]
        table.add_row(str(number), *("1" if n == 1 else f"[bold yellow]{n}[/]" for n in times))
    return table


def kill_and_count(parent: Path) -> list[str]:
    """The whole demonstration in one folder; the faults that were found."""
    stores = {
        "embedded": nullcontext({"RUNMEMORY_URL": f"sqlite:///{parent / 'embedded.db'}"}),
        "served": served(parent),
    }
    folders: list[Path] = []
    with Progress(TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn()) as progress:
        for name, store in stores.items():
            with store as settings:
                for kill_at, moment in MOMENTS.items():
                    folders.append(parent / f"{name}, killed {moment}")
                    demonstrate(folders[-1], settings, kill_at, progress)
    Console().print(table_of(folders))
    return [f"{folder.name}: {fault}" for folder in folders for fault in faults_of(folder)]


def main() -> int:
    parser = argparse.ArgumentParser(description="Kill an import with SIGKILL and watch it resume.")
    parser.add_argument("--keep-files", action="store_true", help="leave the files of the imports to look at")
    keep_files: bool = parser.parse_args().keep_files
    parent = Path(tempfile.mkdtemp(prefix="runmemory-demo-"))
    try:
        faults = kill_and_count(parent)
    finally:
        if keep_files:
            print(f"the files are in {parent}")
        else:
            shutil.rmtree(parent)
    done = "No step ran again after its checkpoint was stored, and each of 400 invoices is there once."
    print("\n".join(faults) or done)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
