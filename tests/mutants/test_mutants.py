"""A guarantee that is removed is noticed: each patch here breaks one rule, and the tests it names must fail.

A patch begins with a line that says which rule of `tests/contract/manifest.py` it breaks and what runs it. It is
applied to a copy of the sources. When one no longer applies, the code it breaks has changed: write it anew.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.contract.manifest import RULES

FOLDER = Path(__file__).parent
PATCHES = sorted(FOLDER.glob("*.patch"))
ALL_PASSED, SOME_FAILED = 0, 1


def header(patch: Path) -> tuple[str, str]:
    """The rule that the patch breaks, and the arguments for pytest that notice it."""
    first = patch.read_text().partition("\n")[0]
    found = re.fullmatch(r"Breaks ([A-Z]+-\d+); run by: (.+)", first)
    assert found, f"{patch.name} begins with {first!r}"
    return found[1], found[2]


def copy_sources(project: Path, folder: Path) -> Path:
    for name in ("runmemory_core", "tests"):
        shutil.copytree(project / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(project / "pyproject.toml", folder)
    return folder


def in_memory(folder: Path) -> Path | None:
    shared = Path("/dev/shm")
    return shared / f"runmemory-{os.getpid()}-{folder.name}" if shared.is_dir() else None


@pytest.fixture(autouse=True)
def nothing_left_in_memory(tmp_path: Path) -> Iterator[None]:
    yield
    if (scratch := in_memory(tmp_path)) is not None:
        shutil.rmtree(scratch, ignore_errors=True)


def run_tests(folder: Path, arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", "-p", "no:xdist"]
    # Which rules hold does not depend on the disk, and in memory it is not waited for.
    memory = [f"--basetemp={scratch}"] if (scratch := in_memory(folder)) else []
    return subprocess.run(
        [*command, *memory, "-m", "not long", *shlex.split(arguments)],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(folder)},
        capture_output=True,
        text=True,
        check=False,
    )


def test_at_least_25_rules_are_broken_and_all_of_them_are_rules() -> None:
    rules = [header(patch)[0] for patch in PATCHES]
    assert len(set(rules)) >= 25
    assert set(rules) <= set(RULES)


@pytest.mark.long
def test_whole_sources_pass(project: Path, tmp_path: Path) -> None:
    """The control: what fails with a patch would otherwise prove nothing."""
    sources = copy_sources(project, tmp_path)
    runs = {header(patch)[1] for patch in PATCHES}
    for arguments in sorted(runs):
        done = run_tests(sources, arguments)
        assert done.returncode == ALL_PASSED, done.stdout[-3_000:]


@pytest.mark.long
@pytest.mark.parametrize("patch", PATCHES, ids=lambda patch: patch.stem)
def test_a_broken_rule_is_noticed(project: Path, tmp_path: Path, patch: Path) -> None:
    rule, arguments = header(patch)
    sources = copy_sources(project, tmp_path)
    applied = subprocess.run(
        ["git", "apply", "--unsafe-paths", str(patch)],
        cwd=sources,
        capture_output=True,
        text=True,
        check=False,
    )
    assert applied.returncode == 0, f"{patch.name} no longer applies, write it anew: {applied.stderr}"
    done = run_tests(sources, arguments)
    assert done.returncode == SOME_FAILED, f"{rule} is broken and nobody noticed:\n{done.stdout[-3_000:]}"
