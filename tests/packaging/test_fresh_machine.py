"""A machine that has Python, make and a package index, and nothing of ours yet."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.packaging.test_distribution import source_files_of

pytestmark = pytest.mark.long


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    """What a new user's shell holds: an empty home, and no tool of this environment on the path."""
    home = tmp_path / "home"
    home.mkdir()
    ours = str(Path(sys.prefix) / "bin")
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("MAKE", "MFLAGS", "PYTHON", "RUNMEMORY_", "UV_", "VIRTUAL_ENV", "XDG_"))
    }
    path = os.pathsep.join(entry for entry in os.environ["PATH"].split(os.pathsep) if entry != ours)
    return {**kept, "HOME": str(home), "PATH": path}


def run(command: list[str], folder: Path, environment: dict[str, str]) -> str:
    done = subprocess.run(
        command,
        cwd=folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout
    return done.stdout


def test_make_demo_runs_in_a_fresh_folder_and_installs_only_once(
    project: Path, tmp_path: Path, environment: dict[str, str]
) -> None:
    folder = tmp_path / "clone"
    for name in source_files_of(project):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(project / name, folder / name)
    assert "installing" in run(["make", "demo"], folder, environment)
    assert "installing" not in run(["make", ".venv/demo.stamp"], folder, environment)
    assert list((folder / ".venv" / "bin").glob("runmemory"))


def test_the_install_command_of_the_readme_brings_a_working_saver(
    project: Path, tmp_path: Path, environment: dict[str, str], wheel: Path
) -> None:
    """pip is told to take this wheel, and the locked version of everything else."""
    locked = re.findall(
        r"^[\w.-]+==[^\\\n]+", (project / "requirements.lock").read_text(), flags=re.MULTILINE
    )
    constraints = tmp_path / "constraints.txt"
    constraints.write_text("\n".join([f"runmemory=={wheel.name.split('-')[1]}", *locked]) + "\n")
    run([sys.executable, "-m", "venv", str(tmp_path / "venv")], tmp_path, environment)
    new = {
        **environment,
        "PATH": os.pathsep.join([str(tmp_path / "venv" / "bin"), environment["PATH"]]),
        "PIP_CONSTRAINT": str(constraints),
        "PIP_DISABLE_PIP_VERSION_CHECK": "1",
        "PIP_FIND_LINKS": f"{environment.get('PIP_FIND_LINKS', '')} {wheel.parent}",
    }
    run(["bash", "-euo", "pipefail", str(project / "examples" / "install.sh")], tmp_path, new)
    program = "import runmemory_langgraph as adapter; print(adapter.RunMemorySaver(), adapter.__file__)"
    assert str(tmp_path / "venv") in run(["python", "-c", program], tmp_path, new)
