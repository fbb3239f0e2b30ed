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
GRAPHS = ("tools", "fan-out", "approval", "subgraphs", "functional", "time-travel")
PARALLEL = {"fan-out", "functional"}


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


def check(name: str, durability: str, found: list[dict[str, Any]]) -> None:
    undisturbed, *killed = found
    nodes = sorted(line for line in undisturbed["before"] if line != "#commit")
    assert len(nodes) == len(set(nodes))
    assert len(killed) > len(nodes)
    # With "async" two commits may become one, so the very last points may never come.
    assert sum(life["killed"] for life in killed) >= len(nodes)
    for life in killed:
        after = [line for line in life["after"] if line != "#commit"]
        assert life["result"] == undisturbed["result"], life
        assert len(after) == len(set(after)), life  # nothing runs twice within one life
        assert {*after, *life["before"]} - {"#commit"} == set(nodes), life
        if name not in PARALLEL:
            worked = [line for line in life["before"] if line != "#commit"]
            repeated = [line for line in worked if line in after]
            # What is repeated is the end of what was done: nothing stored was lost in between.
            assert repeated == worked[len(worked) - len(repeated) :], life
            if durability == "sync":
                assert len(repeated) <= 1, life


@pytest.mark.parametrize("durability", ["sync", "async", "exit"])
@pytest.mark.parametrize("name", GRAPHS)
def test_a_graph_killed_anywhere_ends_like_one_that_never_was(tmp_path, name, durability):
    check(name, durability, lives(name, durability, tmp_path))


@pytest.mark.parametrize("name", ["tools", "subgraphs"])
def test_a_graph_on_a_service_killed_anywhere_ends_like_one_that_never_was(tmp_path, name):
    with running_service(f"sqlite:///{tmp_path}/served.db") as service:
        check(name, "sync", lives(name, "sync", tmp_path, service.url, service.key))
