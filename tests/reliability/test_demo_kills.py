"""The import of the demonstration, killed at random moments, ends as if it had never been killed.

`make demo` kills at two chosen moments; here a seeded generator chooses 50. That the counting would notice a
broken claim is shown below, with the traces of imports that went wrong.
"""

from __future__ import annotations

import importlib
import os
import random
import signal
import subprocess
import threading
from contextlib import nullcontext, suppress
from pathlib import Path
from types import ModuleType

import pytest

KILLS = 25  # in each of the two stores
INSIDE_A_STEP = 20


@pytest.fixture
def demo(monkeypatch: pytest.MonkeyPatch, project: Path) -> ModuleType:
    monkeypatch.syspath_prepend(str(project / "examples"))
    return importlib.import_module("langgraph_resume")


def was_killed(command: list[str], settings: dict[str, str], *, step: int, after_seconds: float) -> bool:
    """Run an import and kill it a while after the given step of this life began, unless it ends before."""
    with subprocess.Popen(
        command,
        env=os.environ | settings,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        bufsize=1,
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        kill = threading.Timer(after_seconds, process.kill)
        begun = 0
        for line in process.stdout:
            begun += line.startswith("started")
            if begun == step and line.startswith("started"):
                kill.start()
            with suppress(BrokenPipeError):
                process.stdin.write("go on\n")
        kill.cancel()
    assert process.returncode in {0, -signal.SIGKILL}
    return process.returncode != 0


def ended_inside_a_step(demo: ModuleType, folder: Path) -> bool:
    event, _ = demo.events_of(folder)[-1]
    return event in {"started", "halfway"}


@pytest.mark.long
@pytest.mark.parametrize(("store", "seed"), [("embedded", 1), ("served", 2)])
def test_an_import_killed_at_random_moments_loses_nothing_and_repeats_no_stored_step(
    demo: ModuleType, tmp_path: Path, store: str, seed: int
) -> None:
    moments = random.Random(seed)
    source = importlib.import_module("langgraph_import")
    step_seconds = source.BATCH * source.SECONDS_AN_INVOICE
    embedded = nullcontext({"RUNMEMORY_URL": f"sqlite:///{tmp_path / 'embedded.db'}"})
    folders = [tmp_path / "import-0"]
    killed = inside = 0
    with embedded if store == "embedded" else demo.served(tmp_path) as settings:
        while killed < KILLS:
            command = demo.import_command(folders[-1])
            # A little more than a step lasts, so that some kills fall between steps and into the next one.
            after_seconds = moments.uniform(0, 1.1 * step_seconds)
            if was_killed(command, settings, step=moments.randint(1, 6), after_seconds=after_seconds):
                killed += 1
                inside += ended_inside_a_step(demo, folders[-1])
            else:
                folders.append(tmp_path / f"import-{len(folders)}")
        if folders[-1].exists():
            demo.run_import(folders[-1], settings, on_event=lambda _: None)
        else:
            folders.pop()
    print(f"{store}: {killed} kills, {inside} of them inside a step, {len(folders)} imports")
    assert [fault for folder in folders for fault in demo.faults_of(folder)] == []
    assert inside >= INSIDE_A_STEP


@pytest.fixture
def finished_import(demo: ModuleType, tmp_path: Path) -> Path:
    """What an import that ran in one go leaves, written by hand."""
    source = importlib.import_module("langgraph_import")
    folder = tmp_path / "import"
    source.make_invoices(folder)
    invoices = source.invoices_of(folder)
    told: list[str] = []
    for number in range(1, demo.STEPS + 1):
        batch = invoices[(number - 1) * demo.BATCH : number * demo.BATCH]
        (folder / f"step-{number:02}.csv").write_text("".join(f"{name},{cents}\n" for name, cents in batch))
        told += [f"stored {number - 1}", f"started {number}", f"halfway {number}", f"finished {number}"]
    told += [f"stored {demo.STEPS}", f"total {sum(cents for _, cents in invoices)}"]
    (folder / "steps.txt").write_text("\n".join(told) + "\n")
    return folder


def test_the_demonstration_finds_no_fault_in_an_import_that_ran_in_one_go(
    demo: ModuleType, finished_import: Path
) -> None:
    assert demo.faults_of(finished_import) == []


def test_the_demonstration_notices_a_step_that_ran_again_after_its_checkpoint(
    demo: ModuleType, finished_import: Path
) -> None:
    steps = finished_import / "steps.txt"
    steps.write_text(steps.read_text().replace("started 8\n", "started 7\nstarted 8\n"))
    assert demo.faults_of(finished_import) == ["step 7 ran again after its checkpoint was stored"]


def test_the_demonstration_notices_a_missing_and_a_doubled_invoice(
    demo: ModuleType, finished_import: Path
) -> None:
    batch = finished_import / "step-03.csv"
    first, second, *others = batch.read_text().splitlines()
    batch.write_text("\n".join([first, first, *others]) + "\n")
    names = [line.split(",")[0] for line in (first, second)]
    assert demo.faults_of(finished_import) == [
        f"{names[0]} was imported 2 times",
        f"{names[1]} was imported 0 times",
    ]


def test_the_demonstration_notices_a_total_that_a_lost_state_would_leave(
    demo: ModuleType, finished_import: Path
) -> None:
    steps = finished_import / "steps.txt"
    steps.write_text(steps.read_text().replace("total ", "total 1"))
    assert demo.faults_of(finished_import) == ["the state at the end does not hold the total of all invoices"]
