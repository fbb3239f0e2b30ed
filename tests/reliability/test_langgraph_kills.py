"""Crash parity: a graph killed anywhere ends as one that was never killed, and repeats no more than is promised."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.service.serving import environment, running_service

pytestmark = pytest.mark.long

ROOT = Path(__file__).resolve().parents[2]
BESIDE = "question-beside-work"
GRAPHS = ("tools", "fan-out", "approval", "subgraphs", "functional", "time-travel")
PARALLEL = {"fan-out", "functional", BESIDE}


def lives(name: str, durability: str, folder: Path, *service: str) -> list[dict[str, Any]]:
    paths = os.pathsep.join(map(str, (ROOT, ROOT / "integrations", ROOT / "examples")))
    done = subprocess.run(
        [
            sys.executable,
            str(Path(__file__).with_name("killing_graphs.py")),
            name,
            durability,
            str(folder),
            *service,
        ],
        env={**environment(), "PYTHONPATH": paths},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def worked(lines: list[str]) -> list[str]:
    """The nodes among the lines of a log."""
    return [line for line in lines if not line.startswith("#")]


def check(name: str, durability: str, found: list[dict[str, Any]]) -> None:
    undisturbed, *killed = found
    nodes = sorted(worked(undisturbed["before"]))
    assert len(nodes) == len(set(nodes))
    assert len(killed) > len(nodes)
    # With "async" two commits may become one, so the very last points may never come.
    assert sum(life["killed"] for life in killed) >= len(nodes)
    for life in killed:
        before, after = worked(life["before"]), worked(life["after"])
        assert life["result"] == undisturbed["result"], life
        assert len(after) == len(set(after)), life  # nothing runs twice within one life
        assert {*after, *before} == set(nodes), life
        repeated = [line for line in before if line in after]
        if life["point"][0] == "returned":
            assert life["killed"], life
            assert repeated == [], life  # all of it was stored when invoke returned
        if name not in PARALLEL:
            # What is repeated is the end of what was done: nothing stored was lost in between.
            assert repeated == before[len(before) - len(repeated) :], life
            if durability == "sync":
                assert len(repeated) <= 1, life


@pytest.mark.parametrize("durability", ["sync", "async", "exit"])
@pytest.mark.parametrize("name", GRAPHS)
def test_a_graph_killed_anywhere_ends_like_one_that_never_was(tmp_path, name, durability):
    check(name, durability, lives(name, durability, tmp_path))


@pytest.mark.parametrize("durability", ["sync", "async"])
def test_a_question_beside_work_killed_anywhere_ends_like_one_that_never_was(tmp_path, durability):
    check(BESIDE, durability, lives(BESIDE, durability, tmp_path))


@pytest.mark.parametrize("name", ["tools", "subgraphs", BESIDE])
def test_a_graph_on_a_service_killed_anywhere_ends_like_one_that_never_was(tmp_path, name):
    with running_service(f"sqlite:///{tmp_path}/served.db") as service:
        check(name, "sync", lives(name, "sync", tmp_path, service.url, service.key))
