"""The samples of the README do what it says of them: killed in the middle, they go on."""

from __future__ import annotations

import os
import subprocess
import sys
from itertools import islice
from pathlib import Path

import pytest

LINES_BEFORE_THE_KILL = 4

# How the lines of each sample begin, and the number its second life begins at.
SAMPLES = {
    # A page is announced before it is read: the fourth was not.
    "quickstart_langgraph.py": ("reading page {0}", 4),
    # A checkpoint is announced once it is saved: the fourth was.
    "quickstart_python.py": ('Saved checkpoint {0} (14 B) after "imported invoice-{0}"', 5),
}


def check_that_it_resumes(path: Path, folder: Path, settings: dict[str, str]) -> None:
    line, resumes_at = SAMPLES[path.name]
    command = [sys.executable, str(path)]
    environment = {**os.environ, **settings, "PYTHONUNBUFFERED": "1"}
    with subprocess.Popen(command, cwd=folder, env=environment, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        first = list(islice(process.stdout, LINES_BEFORE_THE_KILL))
        process.kill()
    again = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert first[0].startswith(line.format(1))
    assert again.stdout.startswith(line.format(resumes_at)), again.stdout + again.stderr
    assert again.returncode == 0


@pytest.mark.parametrize("sample", SAMPLES)
def test_a_sample_that_was_killed_goes_on_where_it_was(project: Path, tmp_path: Path, sample: str) -> None:
    check_that_it_resumes(project / "examples" / sample, tmp_path, {})
    assert list(tmp_path.rglob("runmemory.db"))


@pytest.mark.parametrize("sample", SAMPLES)
def test_the_environment_is_all_a_sample_needs_to_save_to_a_service(
    project: Path, tmp_path: Path, service: dict[str, str], sample: str
) -> None:
    check_that_it_resumes(project / "examples" / sample, tmp_path, service)
    assert not list(tmp_path.rglob("runmemory.db"))
