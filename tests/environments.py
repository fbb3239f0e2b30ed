"""Python environments that tests make for themselves, in a cache, beside the one they run in."""

from __future__ import annotations

import fcntl
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path


def interpreter_of(environment: Path) -> Path:
    """The Python of an environment."""
    return environment / "bin" / "python"


def make_environment(environment: Path, *requirements: str | Path) -> None:
    """Make an environment anew; ``requirements`` are what uv's ``pip install`` takes."""
    uv = [sys.executable, "-m", "uv"]
    subprocess.run([*uv, "venv", "--quiet", "--clear", "--python", sys.executable, environment], check=True)
    install = [*uv, "pip", "install", "--quiet", "--python", interpreter_of(environment)]
    subprocess.run([*install, *requirements], check=True)


@contextmanager
def alone(folder: Path) -> Generator[bool]:
    """Hold ``folder`` alone, since several processes may want it made; yields whether it is complete already.

    It is complete once the block has ended without an exception.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        complete = folder / "complete"
        yield complete.exists()
        complete.touch()
