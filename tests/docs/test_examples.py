"""Every file of `examples/` runs to its end, in a home of its own.

A Python example is a program that exits with 0. A shell example is what a reader pastes into a terminal;
those that need more than a terminal have a way to run below.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

# Examples that start services and kill processes by the dozen.
LONG = {"examples/langgraph_resume.py"}


def run_to_the_end(command: list[str], folder: Path, environment: Mapping[str, str]) -> None:
    done = subprocess.run(
        command,
        cwd=folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def serve_and_stop(command: list[str], folder: Path, environment: Mapping[str, str]) -> None:
    """Run a script that ends in a service: it says where it listens, answers there, and stops when told."""
    with subprocess.Popen(
        command,
        cwd=folder,
        env={**environment, "RUNMEMORY_PORT": "0"},  # the default one may be taken here
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    ) as process:
        assert process.stdout is not None
        try:
            said: list[str] = []
            for line in process.stdout:
                said.append(line)
                if found := re.search(r"listens on (http://[\d.]+:\d+)", line):
                    break
            else:
                pytest.fail("the service never said where it listens:\n" + "".join(said))
            with urllib.request.urlopen(f"{found[1]}/healthz") as answer:
                assert answer.status == 200
        finally:
            os.killpg(process.pid, signal.SIGTERM)
        process.stdout.read()
        assert process.wait() in {0, -signal.SIGTERM}


def make_targets_exist(command: list[str], folder: Path, environment: Mapping[str, str]) -> None:
    """Ask make what it would do: running `make test` inside `make test` would never end.

    `tests/packaging/test_fresh_machine.py` really runs them, one by one.
    """
    del folder
    run_to_the_end(command, ROOT, {**environment, "MAKEFLAGS": "n"})


Runner = Callable[[list[str], Path, Mapping[str, str]], None]

SHELL_RUNNERS: dict[str, Runner] = {
    "examples/clone.sh": make_targets_exist,
    "examples/serve.sh": serve_and_stop,
}

# Need a service to call.
SERVED = {"examples/call_over_http.py", "examples/call_over_mcp.py"}

# Run by the test of the packaging folder that has the wheel to install, and by those that have the clients.
ELSEWHERE = {"examples/install.sh", "examples/mcp_add.sh", "examples/mcp_add_local.sh"}

EXAMPLES = sorted(
    str(path.relative_to(ROOT)) for path in (ROOT / "examples").glob("*") if path.suffix in {".py", ".sh"}
)


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    """A new user's: an empty home, no settings, and the commands of this environment first on the path."""
    home = tmp_path / "home"
    home.mkdir()
    inherited = {
        name: value for name, value in os.environ.items() if not name.startswith(("RUNMEMORY_", "XDG_"))
    }
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    return {**inherited, "HOME": str(home), "PATH": path}


@pytest.mark.parametrize(
    "example",
    [
        pytest.param(name, marks=pytest.mark.long if name in LONG else ())
        for name in EXAMPLES
        if name not in ELSEWHERE | SERVED
    ],
)
def test_an_example_runs(example: str, tmp_path: Path, environment: dict[str, str]) -> None:
    path = ROOT / example
    folder = tmp_path / "folder"
    folder.mkdir()
    if path.suffix == ".py":
        run_to_the_end([sys.executable, "-W", "error", str(path)], folder, environment)
    else:
        runner = SHELL_RUNNERS.get(example, run_to_the_end)
        runner(["bash", "-euo", "pipefail", str(path)], folder, environment)


@pytest.mark.parametrize("example", sorted(SERVED))
def test_an_example_that_calls_a_service_runs(
    example: str, tmp_path: Path, environment: dict[str, str], service: dict[str, str]
) -> None:
    run_to_the_end([sys.executable, "-W", "error", str(ROOT / example)], tmp_path, environment | service)


def test_each_example_has_a_run_of_its_own() -> None:
    """A reader runs one after another in one home, where a run of an adapter and one of the tools do not mix."""
    named: dict[str, str] = {}
    of_a_run = re.compile(
        r"""(?:\.run\(|resume\(|save_checkpoint\(|"(?:run|thread)_id": |default=Path\()"([\w-]+)\""""
    )
    for example in sorted(EXAMPLES):
        for run_id in of_a_run.findall((ROOT / example).read_text()):
            assert named.setdefault(run_id, example) == example
    assert len(named) >= 6


def test_a_refused_call_over_http_is_told_in_words(
    tmp_path: Path, environment: dict[str, str], service: dict[str, str]
) -> None:
    wrong = environment | service | {"RUNMEMORY_API_KEY": "wrong"}
    command = [sys.executable, str(ROOT / "examples" / "call_over_http.py")]
    done = subprocess.run(command, cwd=tmp_path, env=wrong, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "API key" in done.stderr
    assert "Traceback" not in done.stderr


def test_no_way_to_run_is_kept_for_an_example_that_left() -> None:
    assert (set(SHELL_RUNNERS) | ELSEWHERE | LONG | SERVED) <= set(EXAMPLES)
