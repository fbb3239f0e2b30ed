"""The oldest LangGraph that the extra allows, in an environment of its own: what holds for the newest holds for it."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
from pathlib import Path

import platformdirs
import pytest

from tests.environments import alone, interpreter_of, make_environment
from tests.service.serving import environment

pytestmark = pytest.mark.long

OLDEST = "langgraph==1.0.6"
REQUIREMENTS = (
    OLDEST,
    "langgraph-checkpoint-conformance==0.0.2",
    "langgraph-checkpoint-sqlite",
    "hypothesis",
    "numpy",
    "pytest>=9",
)
ADAPTER = ("bridge", "conformance", "decoding", "graphs", "guards", "redaction", "saver", "watch")


@pytest.fixture(scope="module")
def interpreter(project: Path) -> Path:
    """A Python with the oldest LangGraph and what the project itself needs."""
    pyproject = project / "pyproject.toml"
    made_of = json.dumps([REQUIREMENTS, pyproject.read_text()])
    version = hashlib.sha256(made_of.encode()).hexdigest()[:12]
    folder = platformdirs.user_cache_path("runmemory-langgraph") / version
    extras = (f"--extra={name}" for name in ("langgraph", "server"))
    with alone(folder) as complete:
        if not complete:
            make_environment(folder / "oldest", "-r", pyproject, *extras, *REQUIREMENTS)
    return interpreter_of(folder / "oldest")


def run(interpreter: Path, project: Path, *arguments: str) -> None:
    command = [interpreter, "-m", "pytest", "-q", "-p", "no:cacheprovider", *arguments]
    paths = os.pathsep.join(map(str, (project, project / "integrations")))
    done = subprocess.run(
        command,
        cwd=project,
        env=environment() | {"PYTHONPATH": paths},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-9_000:] + done.stderr


def test_the_adapter_passes_its_tests_with_the_oldest_langgraph(interpreter: Path, project: Path) -> None:
    files = [f"tests/adapters/test_langgraph_{name}.py" for name in ADAPTER]
    run(interpreter, project, *files, "-k", "not http and not delta_channel")  # which are newer


def test_crash_parity_holds_with_the_oldest_langgraph(interpreter: Path, project: Path) -> None:
    run(interpreter, project, "tests/reliability/test_langgraph_kills.py", "-k", "sync and not async")
